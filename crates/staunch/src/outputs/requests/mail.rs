//! Mails to an SMTP server: one connection for each mail.
//!
//! Path of a record: `requests::run` -> [`MailPeer::send`] (records of one head become one mail) -> lettre -> the server's reply.
//! Not here: what an answer means for the records (`deliver::request`), the texts (`wire::mail`).
//! The connection is ours, so that names, TLS and timeouts are those of all outputs; lettre has the message and the dialogue.

use std::hash::BuildHasher as _;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use config::plan::EmailPlan;
use deliver::endpoint::Failure;
use deliver::request::Answer;
use lettre::message::header::{ContentType, MIME_VERSION_1_0};
use lettre::message::{Mailbox, MessageBuilder};
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, AsyncTokioStream};
use lettre::transport::smtp::commands::{Data, Mail, Quit, Rcpt};
use lettre::transport::smtp::extension::ClientId;
use lettre::{Address, Message};
use sys::clock::Clock;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader, ReadBuf};
use tokio::net::TcpStream;
use wire::mail::{addresses, subject, text_of};
use wire::request::record;

use super::connecting::{NotConnected, Of, connect, encrypt};
use super::sent::{Sent, number, quoted};
use crate::outputs::addresses::locator::Locator;

/// Most bytes of the replies before STARTTLS.
const REPLIES_BYTES_MAX: usize = 16 << 10;

/// The name of a machine that has none which can be part of an address.
const NO_NAME: &str = "localhost";

/// Adds a recipient to a mail.
type AddRecipient = fn(MessageBuilder, Mailbox) -> MessageBuilder;

/// The client of one output.
pub struct MailPeer {
    plan: EmailPlan,
    /// The name of the machine: the server is greeted with it, and it is the domain of addresses that have none.
    host: String,
    /// The mail that was not accepted yet, as the hash of its records, with its identifier: if it arrives twice, it is the same one.
    pending: Option<(u64, String)>,
    /// For TLS: the source of the current settings, read at each connection.
    shared: Of,
}

/// Why a mail was not accepted.
struct Trouble {
    answer: Answer,
    words: String,
}

impl Trouble {
    fn failed(why: Failure, in_doubt: bool, words: impl Into<String>) -> Trouble {
        Trouble { answer: Answer::Failed { why, retry_after_ms: None, in_doubt }, words: words.into() }
    }

    fn rejected(words: impl Into<String>) -> Trouble {
        Trouble { answer: Answer::Rejected, words: words.into() }
    }

    /// A reply, or a connection that broke. `is_about_mail`: the reply is about this mail, so a permanent one rejects it. Others
    /// are about the server or its user, and pass.
    fn of(error: &lettre::transport::smtp::Error, is_about_mail: bool, in_doubt: bool) -> Trouble {
        let words = std::error::Error::source(error)
            .map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"));
        let words = quoted(words.as_bytes());
        match (error.is_permanent(), error.is_transient()) {
            (true, _) if is_about_mail => Trouble::rejected(words),
            (true, _) | (_, true) => Trouble::failed(Failure::AnswersError, false, words),
            (false, false) => Trouble::failed(Failure::Broken, in_doubt, words),
        }
    }
}

impl From<NotConnected> for Trouble {
    fn from((why, words): NotConnected) -> Trouble {
        Trouble::failed(why, false, words)
    }
}

impl MailPeer {
    /// Not connected yet.
    pub fn new(plan: &EmailPlan, shared: Of) -> MailPeer {
        let host = sys::host_name();
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
        let is_good = host.chars().all(is_name) && Address::new("a", &host).is_ok();
        let host = if is_good { host } else { NO_NAME.to_owned() };
        MailPeer { plan: plan.clone(), host, pending: None, shared }
    }

    /// The endpoint's name in logs.
    pub fn place(&self) -> String {
        self.plan.smtp.clone()
    }

    /// Sends the records at the front that have the same head as one mail.
    pub async fn send(&mut self, lines: &[&[u8]], locator: &mut Locator) -> Sent {
        let head = record(lines[0]).head;
        let same = lines.iter().take_while(|line| record(line).head == head).count();
        let id = self.id(&lines[..same]);
        let (answer, words) = match self.mail(&lines[..same], &id, locator).await {
            Ok(()) => (Answer::Accepted, None),
            Err(Trouble { answer, words }) => (answer, Some(words)),
        };
        if matches!(answer, Answer::Accepted | Answer::Rejected) {
            self.pending = None;
        }
        Sent { records: number(same), answer, is_doubled: false, words }
    }

    /// The `Message-ID` of a mail: the same one when it is sent again.
    fn id(&mut self, lines: &[&[u8]]) -> String {
        let hash = foldhash::fast::FixedState::default().hash_one(lines);
        if let Some((pending, id)) = &self.pending
            && *pending == hash
        {
            return id.clone();
        }
        // Its keys are random.
        let random = foldhash::quality::RandomState::default().hash_one(Clock::now().wall_ns);
        let id = format!("<{:x}.{random:016x}@{}>", Clock::now().wall_ns, self.host);
        self.pending = Some((hash, id.clone()));
        id
    }

    async fn mail(&self, lines: &[&[u8]], id: &str, locator: &mut Locator) -> Result<(), Trouble> {
        let message = self.message(lines, id)?;
        let within = Duration::from_millis(self.plan.sender.connect_timeout_ms);
        let connected = tokio::time::timeout(within, connect(locator, within, &self.shared)).await;
        let stream = connected
            .map_err(|_elapsed| Trouble::failed(Failure::ConnectTimeout, false, "not connected in time"))??;
        let timeout = Duration::from_millis(self.plan.sender.write_timeout_ms);
        let sent = tokio::time::timeout(timeout, self.dialogue(stream, &message)).await;
        sent.map_err(|_elapsed| Trouble::failed(Failure::NoAnswer, true, "no answer in time"))?
    }

    /// The mail of these records, which have one head.
    fn message(&self, lines: &[&[u8]], id: &str) -> Result<Message, Trouble> {
        let mut head =
            record(lines[0]).head_fields().map(|field| String::from_utf8_lossy(&field).into_owned());
        let mut next = || head.next().filter(|field| !field.is_empty());
        let (from, to, own_subject) = (next(), next(), next());
        let (cc, bcc, sender, reply_to) = (next(), next(), next(), next());
        let records: Vec<Vec<u8>> = lines
            .iter()
            .map(|line| {
                let mut body = Vec::new();
                record(line).body(&mut body);
                body
            })
            .collect();
        let texts: Vec<_> = records.iter().map(|record| String::from_utf8_lossy(text_of(record))).collect();
        let to = to.unwrap_or_else(|| self.plan.to.join(","));
        let from = self.mailbox(from.as_deref().unwrap_or(&self.plan.from))?;
        let subject = own_subject.unwrap_or_else(|| subject(&records));
        let subject: String = subject.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let mut builder = Message::builder().message_id(Some(id.to_owned())).from(from).subject(subject);
        let mut recipients = 0;
        let kinds: [(Option<String>, AddRecipient); 3] =
            [(Some(to), MessageBuilder::to), (cc, MessageBuilder::cc), (bcc, MessageBuilder::bcc)];
        for (list, add) in kinds {
            for address in list.iter().flat_map(|list| addresses(list)) {
                builder = add(builder, self.mailbox(address)?);
                recipients += 1;
            }
        }
        // What is queued on disk may have been written with another limit.
        if recipients > EmailPlan::RECIPIENTS_MAX {
            let words = format!("it has more than {} recipients", EmailPlan::RECIPIENTS_MAX);
            return Err(Trouble::rejected(words));
        }
        if let Some(sender) = sender {
            builder = builder.sender(self.mailbox(&sender)?);
        }
        if let Some(reply_to) = reply_to {
            builder = builder.reply_to(self.mailbox(&reply_to)?);
        }
        let typed = builder.header(MIME_VERSION_1_0).header(ContentType::TEXT_PLAIN);
        let message = typed.body(texts.join("\n\n\n"));
        message.map_err(|error| Trouble::rejected(format!("it is no mail: {error}")))
    }

    fn mailbox(&self, text: &str) -> Result<Mailbox, Trouble> {
        let with_domain = if text.contains('@') { text.to_owned() } else { format!("{text}@{}", self.host) };
        let address: Result<Address, _> = with_domain.parse();
        let wrong = |_| Trouble::rejected(format!("`{}` is no address", quoted(text.as_bytes())));
        Ok(Mailbox::new(None, address.map_err(wrong)?))
    }

    async fn dialogue(&self, stream: TcpStream, message: &Message) -> Result<(), Trouble> {
        let hello = ClientId::Domain(self.host.clone());
        let about_server = |error: lettre::transport::smtp::Error| Trouble::of(&error, false, false);
        let stream = self.encrypted(stream).await?;
        let mut server =
            AsyncSmtpConnection::connect_with_transport(stream, &hello).await.map_err(about_server)?;
        if let (Some(user), Some(password)) = (&self.plan.user, &self.plan.password) {
            let credentials = Credentials::new(user.clone(), password.clone());
            server.auth(DEFAULT_MECHANISMS, &credentials).await.map_err(about_server)?;
        }
        let about_mail = |error: lettre::transport::smtp::Error| Trouble::of(&error, true, false);
        let envelope = message.envelope();
        server.command(Mail::new(envelope.from().cloned(), Vec::new())).await.map_err(about_mail)?;
        let (mut accepted, mut refused) = (0, None);
        for to in envelope.to() {
            match server.command(Rcpt::new(to.clone(), Vec::new())).await {
                Ok(_) => accepted += 1,
                // The others get it.
                Err(error) if error.is_permanent() => refused = Some(error),
                Err(error) => return Err(about_mail(error)),
            }
        }
        if let Some(error) = refused {
            let trouble = about_mail(error);
            if accepted == 0 {
                return Err(trouble);
            }
            tracing::warn!("{}: a recipient of a mail is refused: {}", self.plan.smtp, trouble.words);
        }
        server.command(Data).await.map_err(about_mail)?;
        // From here on the mail may have arrived even if its reply does not.
        server.message(&message.formatted()).await.map_err(|error| Trouble::of(&error, true, true))?;
        // The mail is accepted, whatever the server says to this.
        let _said = server.command(Quit).await;
        Ok(())
    }

    /// The connection, encrypted as the options want it.
    async fn encrypted(&self, mut stream: TcpStream) -> Result<Box<dyn AsyncTokioStream>, Trouble> {
        if self.plan.tls.is_none() {
            return Ok(Box::new(stream));
        }
        if self.plan.starttls {
            start_tls(&mut stream, &self.host).await?;
        }
        let stream = encrypt(stream, &self.shared).await?;
        // After STARTTLS the server does not greet again, and lettre waits for a greeting.
        let greeting: &[u8] = if self.plan.starttls { b"220 after STARTTLS\r\n" } else { b"" };
        Ok(Box::new(Encrypted { greeting, stream: Box::new(stream) }))
    }
}

/// The beginning of a dialogue, up to the reply after which TLS begins.
async fn start_tls(stream: &mut TcpStream, host: &str) -> Result<(), Trouble> {
    expect(stream, b"220", false).await?;
    for (command, code) in [(format!("EHLO {host}\r\n"), &b"250"[..]), ("STARTTLS\r\n".to_owned(), b"220")] {
        stream.write_all(command.as_bytes()).await.map_err(|error| broken(&error))?;
        expect(stream, code, command.starts_with("STARTTLS")).await?;
    }
    Ok(())
}

fn broken(error: &io::Error) -> Trouble {
    Trouble::failed(Failure::Broken, false, error.to_string())
}

/// Reads a reply of several lines. Bytes behind that of STARTTLS are not read: they would have come in clear text.
async fn expect(stream: &mut TcpStream, code: &[u8], is_starttls: bool) -> Result<(), Trouble> {
    let mut reader = BufReader::with_capacity(1, stream);
    let mut bytes = 0;
    loop {
        let mut line = Vec::new();
        reader.read_until(b'\n', &mut line).await.map_err(|error| broken(&error))?;
        bytes += line.len();
        if line.is_empty() || bytes > REPLIES_BYTES_MAX {
            return Err(Trouble::failed(Failure::ClosedByPeer, false, "its replies end early, or never"));
        }
        if !line.starts_with(code) {
            let words = quoted(&line);
            let why = if is_starttls { Failure::TlsFailed } else { Failure::AnswersError };
            return Err(Trouble::failed(why, false, words));
        }
        if line.get(3) != Some(&b'-') {
            return Ok(());
        }
    }
}

/// An encrypted connection, with what is read before its own bytes.
#[derive(Debug)]
struct Encrypted {
    greeting: &'static [u8],
    stream: Box<tokio_rustls::client::TlsStream<TcpStream>>,
}

impl AsyncTokioStream for Encrypted {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.get_ref().0.peer_addr()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.greeting.is_empty() {
            let (now, later) = self.greeting.split_at(self.greeting.len().min(into.remaining()));
            into.put_slice(now);
            self.greeting = later;
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut *self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream).poll_shutdown(context)
    }
}
