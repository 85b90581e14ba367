//! Outputs of type `email`: what a server gets, and what its replies mean for the events.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::support::{Builder, Daemon, wait_for};

/// What a server does in a dialogue.
#[derive(Clone, Copy, Debug)]
enum Manner {
    /// Accepts the mail.
    Accept,
    /// Replies so to the command that begins with this.
    Reply(&'static str, &'static str),
    /// Never greets.
    Hang,
}

/// What arrived: the commands, and the mail.
#[derive(Clone, Debug, Default)]
struct Dialogue {
    commands: Vec<String>,
    mail: String,
}

/// A server that does what its script says, and then accepts all mails. Each connection has a thread.
struct Server {
    at: SocketAddr,
    dialogues: Arc<Mutex<Vec<Dialogue>>>,
}

impl Server {
    fn new(script: &[Manner]) -> Server {
        Server::with(script, None)
    }

    /// With TLS it offers STARTTLS.
    fn with(script: &[Manner], tls: Option<Arc<rustls::ServerConfig>>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let at = listener.local_addr().expect("it is bound");
        let script = Mutex::new(script.iter().copied().collect::<VecDeque<_>>());
        let dialogues = Arc::new(Mutex::new(Vec::new()));
        let server = Server { at, dialogues: Arc::clone(&dialogues) };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let manner = script.lock().expect("no thread panics").pop_front().unwrap_or(Manner::Accept);
                let (dialogues, tls) = (Arc::clone(&dialogues), tls.clone());
                std::thread::spawn(move || {
                    let mut dialogue = Dialogue::default();
                    serve(stream, manner, tls, &mut dialogue);
                    dialogues.lock().expect("no thread panics").push(dialogue);
                });
            }
        });
        server
    }

    /// The mails that were accepted.
    fn wait(&self, number: usize) -> Vec<Dialogue> {
        wait_for("the mails", || {
            let dialogues = self.dialogues.lock().expect("no thread panics");
            let mails: Vec<Dialogue> = dialogues.iter().filter(|one| !one.mail.is_empty()).cloned().collect();
            (mails.len() >= number).then_some(mails)
        })
    }
}

fn serve(mut stream: TcpStream, manner: Manner, tls: Option<Arc<rustls::ServerConfig>>, into: &mut Dialogue) {
    if matches!(manner, Manner::Hang) {
        return std::thread::sleep(Duration::from_secs(60));
    }
    if stream.write_all(b"220 mail.test\r\n").is_err() {
        return;
    }
    let Some(tls) = tls else { return talk(stream, manner, into) };
    let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
    for (command, reply) in [("EHLO", "250-mail.test\r\n250 STARTTLS\r\n"), ("STARTTLS", "220 go\r\n")] {
        let mut line = String::new();
        if reader.read_line(&mut line).is_err()
            || !line.starts_with(command)
            || stream.write_all(reply.as_bytes()).is_err()
        {
            return;
        }
        into.commands.push(line.trim().to_owned());
    }
    let session = rustls::ServerConnection::new(tls).expect("good settings");
    talk(rustls::StreamOwned::new(session, stream), manner, into);
}

fn talk(mut stream: impl Read + Write, manner: Manner, into: &mut Dialogue) {
    let mut is_data = false;
    let mut line = Vec::new();
    loop {
        let mut byte = [0];
        if stream.read_exact(&mut byte).is_err() {
            return;
        }
        line.push(byte[0]);
        if !line.ends_with(b"\r\n") {
            continue;
        }
        let text = String::from_utf8_lossy(&std::mem::take(&mut line)).into_owned();
        if is_data && text != ".\r\n" {
            into.mail.push_str(&text);
            continue;
        }
        is_data = text.starts_with("DATA");
        let mut reply = match &*text {
            text if text.starts_with("EHLO") => "250-mail.test\r\n250 AUTH PLAIN",
            text if text.starts_with("AUTH") => "235 welcome",
            text if text.starts_with("DATA") => "354 go",
            text if text.starts_with("QUIT") => "221 bye",
            _ => "250 ok",
        };
        if let Manner::Reply(command, other) = manner
            && text.starts_with(command)
        {
            reply = other;
            is_data = false;
            // What came before is no accepted mail.
            into.mail.clear();
        }
        into.commands.push(text.trim().to_owned());
        if stream.write_all(format!("{reply}\r\n").as_bytes()).and_then(|()| stream.flush()).is_err() {
            return;
        }
    }
}

/// A config: DogStatsD events to a mail output with these options.
fn config(at: SocketAddr, options: &str) -> String {
    format!(
        "[sources.in]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [outputs.mail]\ntype = \"email\"\nfrom = [\"in\"]\nsmtp = \"smtp://{at}\"\nrecipients = [\"a@ops.test\", \"b@ops.test\"]\n\
         min_retry_delay = \"1ms\"\nmax_retry_delay = \"50ms\"\n{options}\n"
    )
}

fn send(daemon: &Daemon, titles: &[&str]) {
    let mut stream = TcpStream::connect(daemon.at("in", "tcp")).expect("it listens");
    for title in titles {
        let event = format!("_e{{{},4}}:{title}|text|d:1700000000|h:web1\n", title.len());
        stream.write_all(event.as_bytes()).expect("it reads");
    }
}

/// The name of this machine, as the mails have it.
fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("Linux has it");
    name.trim().to_owned()
}

/// The `Message-ID` of a mail.
fn identifier(mail: &str) -> &str {
    mail.lines().find_map(|line| line.strip_prefix("Message-ID: ")).unwrap_or_default()
}

#[test]
fn events_share_a_mail_with_the_default_subject_and_text() {
    let server = Server::new(&[]);
    let options = "user = \"u\"\npassword = \"p\"\nmax_batch_events = 2\nsender = \"staunch@ops.test\"";
    let mut daemon = Builder::native(&config(server.at, options)).start();
    send(&daemon, &["cpu", "disk"]);
    let mails = server.wait(1);
    daemon.wait_output("mail", "delivered", 2);
    daemon.assert_sums_hold();
    let Dialogue { commands, mail } = &mails[0];
    // "\0u\0p" in base64.
    assert!(commands.iter().any(|command| command == "AUTH PLAIN AHUAcA=="), "{commands:?}");
    assert!(commands.iter().any(|command| command == "MAIL FROM:<staunch@ops.test>"), "{commands:?}");
    let recipients: Vec<&String> = commands.iter().filter(|command| command.starts_with("RCPT")).collect();
    assert_eq!(recipients, ["RCPT TO:<a@ops.test>", "RCPT TO:<b@ops.test>"]);
    for line in [
        "Subject: web1 cpu and disk\r\n",
        "To: a@ops.test, b@ops.test\r\n",
        "MIME-Version: 1.0\r\n",
        "At Tue Nov 14 22:13:20 UTC 2023\r\nweb1 cpu  ()\r\n",
        "text\r\n\r\n\r\nAt Tue Nov 14 22:13:20 UTC 2023\r\nweb1 disk  ()\r\n",
    ] {
        assert!(mail.contains(line), "{line:?} in {mail}");
    }
    let host = host();
    assert_eq!(commands[0], format!("EHLO {host}"));
    let id = identifier(mail);
    assert!(id.starts_with('<') && id.ends_with(&format!("@{host}>")), "{id}");
    daemon.stop();
}

#[test]
fn replies_decide_whether_events_are_sent_again_or_rejected() {
    let server = Server::new(&[
        Manner::Reply("MAIL", "451 later"),
        Manner::Reply("EHLO", "550 not you"),
        Manner::Reply("DATA", "421 busy"),
        Manner::Accept,
        Manner::Reply(".", "550 spam"),
        Manner::Reply("RCPT", "550 nobody"),
        Manner::Reply("RCPT TO:<a", "550 gone"),
    ]);
    let mut daemon = Builder::native(&config(
        server.at,
        "max_batch_events = 1\nsubject = \"{{service}}!\"\nbody = \"{{description}}\"",
    ))
    .start();
    send(&daemon, &["one"]);
    daemon.wait_output("mail", "delivered", 1);
    send(&daemon, &["two"]);
    daemon.wait_output("mail", "losses/rejected_by_peer/by_peer", 1);
    send(&daemon, &["three"]);
    daemon.wait_output("mail", "losses/rejected_by_peer/by_peer", 2);
    // One recipient is enough.
    send(&daemon, &["four"]);
    daemon.wait_output("mail", "delivered", 2);
    daemon.assert_sums_hold();
    let mails = server.wait(2);
    assert_ne!(identifier(&mails[0].mail), identifier(&mails[1].mail));
    for (mail, service) in mails.iter().zip(["one", "four"]) {
        assert!(mail.mail.contains(&format!("Subject: {service}!\r\n")), "{}", mail.mail);
        assert!(mail.mail.ends_with("\r\n\r\ntext\r\n"), "{}", mail.mail);
    }
    daemon.stop();
    let log = daemon.stderr();
    assert!(log.contains("the endpoint rejected 1 record") && log.contains("spam"), "{log}");
    assert!(log.contains("a recipient of a mail is refused") && log.contains("gone"), "{log}");
}

#[test]
fn a_server_that_hangs_delays_nothing_else() {
    let server = Server::new(&[Manner::Hang]);
    let options = "timeout = \"300ms\"\nmax_batch_delay = \"0s\"\n[outputs.file]\ntype = \"event_file\"\nfrom = [\"in\"]\npath = \"events\"";
    let mut daemon = Builder::native(&config(server.at, options)).start();
    send(&daemon, &["a"]);
    daemon.wait_output("file", "delivered", 1);
    daemon.wait_output("mail", "delivered", 1);
    daemon.wait_logged("is down (no answer in time)");
    daemon.stop();
}

#[test]
fn after_starttls_the_dialogue_is_encrypted_and_without_it_nothing_is_sent() {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("a good name");
    let cert = params.self_signed(&key).expect("it signs itself");
    let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("it supports them")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], private)
        .expect("they fit");
    let server = Server::with(&[], Some(Arc::new(tls)));
    let plain = Server::new(&[Manner::Reply("STARTTLS", "502 what?"); 100]);
    let more = format!(
        "starttls = true\nmax_batch_delay = \"0s\"\ntls = {{ ca = \"ca.pem\" }}\n[outputs.plain]\ntype = \"email\"\nfrom = [\"in\"]\n\
         smtp = \"smtp://{}\"\nstarttls = true\nrecipients = [\"a@ops.test\"]\nmax_batch_delay = \"0s\"\ntls = {{ ca = \"ca.pem\" }}",
        plain.at
    );
    let builder = Builder::native(&config(server.at, &more));
    std::fs::write(builder.folder().join("ca.pem"), cert.pem()).expect("a folder of our own");
    let mut daemon = builder.start();
    send(&daemon, &["a"]);
    daemon.wait_output("mail", "delivered", 1);
    let mails = server.wait(1);
    let hello = format!("EHLO {}", host());
    assert_eq!(mails[0].commands[..3], [&hello, "STARTTLS", &hello]);
    wait_for("the failure", || (daemon.output("plain")["last_error"] == "tls_failed").then_some(()));
    daemon.signal("KILL");
    daemon.wait_exit();
    let dialogues = plain.dialogues.lock().expect("no thread panics");
    assert!(dialogues.iter().all(|one| one.mail.is_empty() && one.commands.len() <= 2), "{dialogues:?}");
}

#[test]
fn a_riemann_config_sends_mails_and_posts_messages() {
    let server = Server::new(&[]);
    let text = "[sources.in]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
                [transforms.rules]\ntype = \"streams\"\nfrom = [\"in\"]\nfile = \"riemann.config\"\n";
    let web = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let (host, port) = (web.local_addr().expect("it is bound"), server.at.port());
    let rules = format!(
        "(def email (mailer {{:host \"127.0.0.1\" :port {port} :from \"r@ops.test\" :cc \"y@ops.test\" :bcc \"z@ops.test\" :sender \"s@ops.test\" :reply-to \"r2@ops.test\"}}))
         (def other (slack {{:webhook_uri \"http://{host}/other\"}} {{}}))
         (streams (email \"x@ops.test\") (slack {{:webhook_uri \"http://{host}/hook\"}} {{:channel \"#ops\"}}))"
    );
    let builder = Builder::native(text);
    std::fs::write(builder.folder().join("riemann.config"), rules).expect("a folder of our own");
    let mut daemon = builder.start();
    send(&daemon, &["cpu"]);
    // Outputs to one server have different names, in the order of the config.
    daemon.wait_output(&format!("rules/{host}-2"), "copies", 1);
    assert_eq!(daemon.output(&format!("rules/{host}"))["copies"], 0);
    let mails = server.wait(1);
    let of = |begin: &str| -> Vec<&String> {
        mails[0].commands.iter().filter(|command| command.starts_with(begin)).collect()
    };
    assert_eq!(of("MAIL"), ["MAIL FROM:<s@ops.test>"]);
    assert_eq!(
        of("RCPT"),
        ["x", "y", "z"].map(|name| format!("RCPT TO:<{name}@ops.test>")).iter().collect::<Vec<_>>()
    );
    let mail = &mails[0].mail;
    for line in [
        "Subject: web1 cpu",
        "From: r@ops.test",
        "Sender: s@ops.test",
        "Cc: y@ops.test",
        "Reply-To: r2@ops.test",
        "At Tue Nov 14 22:13:20 UTC 2023",
    ] {
        assert!(mail.contains(&format!("{line}\r\n")), "{line} in {mail}");
    }
    assert!(!mail.contains("z@ops.test"), "{mail}");
    let (mut stream, _) = web.accept().expect("it connects");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a head");
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    assert!(head.starts_with("post /hook http/1.1\r\n"), "{head}");
    assert!(head.contains("content-type: application/x-www-form-urlencoded\r\n"), "{head}");
    let mut body = [0; 30];
    stream.read_exact(&mut body).expect("a body");
    assert_eq!(&body, b"payload=%7B%22channel%22%3A%22");
    daemon.signal("KILL");
    daemon.wait_exit();
}

#[test]
fn events_name_their_recipients_up_to_a_limit() {
    let server = Server::new(&[]);
    let text = format!(
        "[sources.in]\ntype = \"riemann\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [outputs.mail]\ntype = \"email\"\nfrom = [\"in\"]\nsmtp = \"smtp://{}\"\nfrom_event = true\nmax_batch_events = 1\n",
        server.at
    );
    let mut daemon = Builder::native(&text).start();
    let mut client = crate::riemann::connect(daemon.at("in", "tcp"));
    let mut events = model::EventsBuilder::default();
    for others in [99, 100] {
        let mut event = events.event();
        event.plain_text(model::TextField::Service, "s");
        let to = vec!["a@ops.test"; others].join(", ");
        for (name, value) in [("to", &*to), ("cc", "c@ops.test")] {
            event.plain_attribute(name, value).expect("it is within the limits");
        }
        event.finish();
    }
    let mut message = Vec::new();
    wire::riemann::request(None, events.view().iter(), &mut message);
    client.write_all(&crate::riemann::framed(&message)).expect("it reads");
    daemon.wait_output("mail", "delivered", 1);
    daemon.wait_output("mail", "losses/dropped/too_many_recipients", 1);
    daemon.assert_sums_hold();
    let mails = server.wait(1);
    assert_eq!(mails[0].commands.iter().filter(|command| command.starts_with("RCPT")).count(), 100);
    daemon.stop();
}
