//! Messages to another Riemann (spec riemann §1.3, §1.4): over TCP one connection with one message at a time, over UDP datagrams.
//!
//! Path of a record: `requests::run` -> [`RiemannPeer::send`] (records become one message) -> the reply.
//! Not here: what an answer means for the records (`deliver::request`), the message's fields (`wire::riemann`), which are written
//! before they are queued (`pipeline`).
//!
//! A reply with `ok` false may be about any event of its message, and those before it were processed. So the events of such a
//! message are sent one by one; an event that is refused alone is tried [`ATTEMPTS_MAX`] times, with pauses, and then rejected.

use std::io;
use std::time::Duration;

use config::plan::RiemannOutputPlan;
use deliver::endpoint::Failure;
use deliver::request::Answer;
use model::{EventTime, EventsBuilder};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use wire::request::record;
use wire::riemann::{Limits, decode, framed};

use super::connecting::{NotConnected, Of, addresses, connect, encrypt};
use super::sent::{Sent, number, quoted};
use crate::outputs::addresses::locator::Locator;
use crate::outputs::socket::DatagramSocket;

/// Longest reply: one to events is `ok`, or a text for people.
const REPLY_BYTES_MAX: usize = 64 << 10;

/// How often an event is sent that the endpoint refuses alone.
const ATTEMPTS_MAX: u32 = 3;

/// A connection, encrypted or not.
trait Connection: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Connection for T {}

/// The client of one output.
pub struct RiemannPeer {
    plan: RiemannOutputPlan,
    of: Of,
    open: Option<Box<dyn Connection>>,
    socket: Option<DatagramSocket>,
    /// Events at the front that are sent one by one.
    one_by_one: usize,
    /// The event that was refused alone, and how often.
    refused: Option<(Vec<u8>, u32)>,
}

/// Why a message has no reply.
struct Trouble {
    why: Failure,
    in_doubt: bool,
    words: String,
}

impl Trouble {
    fn broken(error: &io::Error) -> Trouble {
        let why = match error.kind() {
            io::ErrorKind::UnexpectedEof => Failure::ClosedByPeer,
            _ => Failure::Broken,
        };
        Trouble { why, in_doubt: true, words: error.to_string() }
    }
}

impl From<NotConnected> for Trouble {
    fn from((why, words): NotConnected) -> Trouble {
        Trouble { why, in_doubt: false, words }
    }
}

/// What a reply says: `Err` with its text if `ok` is not true.
type Reply = Result<(), String>;

impl RiemannPeer {
    /// Not connected yet.
    pub fn new(plan: &RiemannOutputPlan, of: Of) -> RiemannPeer {
        RiemannPeer { plan: plan.clone(), of, open: None, socket: None, one_by_one: 0, refused: None }
    }

    /// The endpoint's name in logs.
    pub fn place(&self) -> String {
        self.plan.to.to_string()
    }

    /// Sends the first records as one message.
    pub async fn send(&mut self, lines: &[&[u8]], locator: &mut Locator) -> Sent {
        if self.plan.to.is_datagram() {
            return self.datagram(lines, locator).await;
        }
        let lines = if self.one_by_one > 0 { &lines[..1] } else { lines };
        match self.request(lines, locator).await {
            Ok(Err(_)) if lines.len() > 1 => {
                self.one_by_one = lines.len();
                let replied = self.request(&lines[..1], locator).await;
                self.sent(&lines[..1], replied)
            }
            replied => self.sent(lines, replied),
        }
    }

    /// What a reply means for these records.
    fn sent(&mut self, lines: &[&[u8]], replied: Result<Reply, Trouble>) -> Sent {
        let records = lines.len();
        let said = match replied {
            Err(Trouble { why, in_doubt, words }) => {
                return Sent::failed(records, why, in_doubt, Some(words));
            }
            Ok(Err(said)) => said,
            Ok(Ok(())) => {
                self.settled(records);
                return Sent {
                    records: number(records),
                    answer: Answer::Accepted,
                    is_doubled: false,
                    words: None,
                };
            }
        };
        let before = match &self.refused {
            Some((line, times)) if line == lines[0] => *times,
            Some(_) | None => 0,
        };
        if before + 1 < ATTEMPTS_MAX {
            self.refused = Some((lines[0].to_vec(), before + 1));
            return Sent::failed(records, Failure::AnswersError, false, Some(said));
        }
        self.settled(records);
        Sent { records: number(records), answer: Answer::Rejected, is_doubled: false, words: Some(said) }
    }

    fn settled(&mut self, records: usize) {
        self.refused = None;
        self.one_by_one = self.one_by_one.saturating_sub(records);
    }

    /// One message and its reply, within the time-outs.
    async fn request(&mut self, lines: &[&[u8]], locator: &mut Locator) -> Result<Reply, Trouble> {
        let mut bytes = Vec::new();
        let is_whole = framed(&mut bytes, |out| lines.iter().for_each(|line| record(line).body(out)));
        debug_assert!(is_whole, "a message has about 1 MiB");
        // It is put back only when it can be used again, so that a dropped future leaves nothing behind.
        let usable = match self.open.take() {
            Some(mut open) => is_quiet(&mut open).await.then_some(open),
            None => None,
        };
        let mut open = match usable {
            Some(open) => open,
            None => self.connect(locator).await?,
        };
        let timeout = Duration::from_millis(self.plan.sender.write_timeout_ms);
        let replied = tokio::time::timeout(timeout, exchange(&mut open, &bytes)).await;
        let late = |_elapsed| Trouble {
            why: Failure::NoAnswer,
            in_doubt: true,
            words: "no answer in time".to_owned(),
        };
        let reply = replied.map_err(late)?.map_err(|error| Trouble::broken(&error))?;
        self.open = Some(open);
        Ok(reply)
    }

    async fn connect(&self, locator: &mut Locator) -> Result<Box<dyn Connection>, Trouble> {
        let within = Duration::from_millis(self.plan.sender.connect_timeout_ms);
        let connected = tokio::time::timeout(within, async {
            let stream = connect(locator, within, &self.of).await?;
            if self.plan.tls.is_none() {
                return Ok::<Box<dyn Connection>, Trouble>(Box::new(stream));
            }
            Ok(Box::new(encrypt(stream, &self.of).await?))
        });
        let words = "not connected in time".to_owned();
        connected.await.map_err(|_elapsed| Trouble {
            why: Failure::ConnectTimeout,
            in_doubt: false,
            words,
        })?
    }

    /// The first records that fit into a datagram. Nobody replies to it: sent is delivered.
    async fn datagram(&mut self, lines: &[&[u8]], locator: &mut Locator) -> Sent {
        let (mut bytes, mut records) = (Vec::new(), 0);
        for line in lines {
            let end = bytes.len();
            record(line).body(&mut bytes);
            if records > 0 && bytes.len() > RiemannOutputPlan::SHARED_DATAGRAM_BYTES {
                bytes.truncate(end);
                break;
            }
            records += 1;
        }
        match self.send_datagram(&bytes, locator).await {
            Ok(()) => {
                Sent { records: number(records), answer: Answer::Accepted, is_doubled: false, words: None }
            }
            Err((why, words)) => {
                self.socket = None;
                Sent::failed(records, why, false, Some(words))
            }
        }
    }

    async fn send_datagram(&mut self, bytes: &[u8], locator: &mut Locator) -> Result<(), NotConnected> {
        let failed = |error: io::Error| match error.kind() {
            // About an earlier datagram: nobody listens.
            io::ErrorKind::ConnectionRefused => (Failure::Refused, error.to_string()),
            _ => (Failure::WriteFailed, error.to_string()),
        };
        let socket = match &self.socket {
            Some(socket) => socket,
            None => {
                let within = Duration::from_millis(self.plan.sender.connect_timeout_ms);
                let found = tokio::time::timeout(within, addresses(locator)).await;
                let unknown = |_elapsed| (Failure::Unresolved, "no address in time".to_owned());
                let address = found.map_err(unknown)??[0];
                let socket = DatagramSocket::udp(address)
                    .map_err(|error| (Failure::ConnectFailed, error.to_string()))?;
                self.socket.insert(socket)
            }
        };
        match socket {
            DatagramSocket::Udp(socket) => socket.send(bytes).await.map(drop).map_err(failed),
            DatagramSocket::Unix(_) => Err((Failure::ConnectFailed, "no address".to_owned())),
        }
    }
}

/// Whether the endpoint has neither closed an unused connection nor written to it. Cancel-safe: nothing that was read is needed.
async fn is_quiet(open: &mut Box<dyn Connection>) -> bool {
    let mut byte = [0];
    tokio::select! {
        biased;
        _read = open.read(&mut byte) => false,
        () = std::future::ready(()) => true,
    }
}

/// Writes a message and reads its reply.
async fn exchange(open: &mut Box<dyn Connection>, message: &[u8]) -> io::Result<Reply> {
    open.write_all(message).await?;
    open.flush().await?;
    let len = open.read_u32().await? as usize;
    if len > REPLY_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a reply of {len} bytes")));
    }
    let mut reply = vec![0; len];
    open.read_exact(&mut reply).await?;
    let mut events = EventsBuilder::default();
    let reply = decode(&reply, EventTime::Seconds(0), Limits::default(), &mut events);
    let reply = reply.map_err(|_reject| {
        io::Error::new(io::ErrorKind::InvalidData, "the reply is no message of Riemann's")
    })?;
    Ok(match reply.ok {
        Some(true) => Ok(()),
        Some(false) | None => Err(match &reply.error {
            Some(error) => format!("it answers: `{}`", quoted(error.as_bytes())),
            None => "it answers neither ok nor an error".to_owned(),
        }),
    })
}
