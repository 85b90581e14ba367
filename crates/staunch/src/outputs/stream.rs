//! One TCP or unix stream endpoint: connects, writes the sender's bytes, and reports the results to it.
//!
//! Not here: the data, outcomes and retries (`deliver::stream`), addresses (`addresses::locator`).

pub mod hearing;
pub mod wrapping;

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use config::plan::{Addresses, Compression};
use deliver::endpoint::Failure;
use deliver::plan::SenderPlan;
use deliver::stream::{Action, CloseReason, StreamSender};
use model::OutputId;
use tokio::task::JoinHandle;

use self::hearing::{Answers, FirstLine, Hearing};
use self::wrapping::Wrapping;
use crate::daemon::outlet::Outlet;
use crate::daemon::shared::Shared;
use crate::outputs::addresses::locator::{Found, Locator};
use crate::outputs::progress::{end, publish, worked};
use crate::outputs::socket::StreamSocket;
use crate::outputs::telling::Teller;
use sys::clock::Clock;
use sys::{self, AsFd};

/// Bytes of replies that one read drops. Graphite never replies; a reply means a mistake in the config.
const ANSWER_BYTES: usize = 4 * 1024;

/// How to connect to an endpoint.
#[derive(Clone, Default)]
pub struct Dialing {
    /// Which of its addresses to use.
    pub addresses: Addresses,
    /// Compression of the bytes.
    pub compression: Compression,
    /// For TLS: the source of the current settings, read at each connection.
    pub tls: Option<(Arc<Shared>, OutputId)>,
}

impl Dialing {
    /// True when lines are sent without compression and TLS.
    pub fn is_plain(&self) -> bool {
        self.compression == Compression::Plain && self.tls.is_none()
    }

    /// The compression and TLS of a new connection.
    fn wrapping(&self) -> io::Result<Option<Wrapping>> {
        let tls = match &self.tls {
            None => None,
            // Without the settings nothing is sent, so that nothing is sent in clear text.
            Some((shared, id)) => Some(
                shared
                    .wiring
                    .load()
                    .certificates
                    .of_output(*id)
                    .ok_or_else(|| io::Error::other("no certificates"))?,
            ),
        };
        Wrapping::new(self.compression, tls.as_ref())
    }
}

/// The state of the connection.
enum Link {
    Closed,
    /// To be opened as soon as the address is known.
    Wanted,
    Opening(Attempt),
    Open(Box<Connection>),
}

/// A connection attempt.
struct Attempt {
    task: JoinHandle<io::Result<Box<Connection>>>,
    /// The connection succeeded, and the handshake has begun.
    shakes_hands: Arc<AtomicBool>,
}

/// An open connection.
struct Connection {
    socket: StreamSocket,
    /// `None` without compression and TLS.
    wrapping: Option<Wrapping>,
    /// The peer has reset it. For a unix socket, it is then unknown what it had read.
    is_reset: bool,
    hearing: Hearing,
    said: FirstLine,
}

impl Connection {
    /// After connecting: does the handshake, if there is one.
    async fn begin(
        socket: io::Result<StreamSocket>,
        wrapping: io::Result<Option<Wrapping>>,
        shakes_hands: &AtomicBool,
    ) -> io::Result<Box<Connection>> {
        let (socket, wrapping) = (socket?, wrapping?);
        let (hearing, said) = (Hearing::default(), FirstLine::default());
        let mut open = Connection { socket, wrapping, is_reset: false, hearing, said };
        if let Some(wrapping) = &mut open.wrapping {
            shakes_hands.store(wrapping.is_encrypted(), Relaxed);
            wrapping.shake_hands(&open.socket).await?;
        }
        Ok(Box::new(open))
    }

    /// Bytes of lines that the peer has not received, or cannot decode yet. `None` while, or since, that is unknown.
    fn unacked(&mut self) -> io::Result<Option<u64>> {
        let is_linux = cfg!(target_os = "linux");
        let unacked = match &self.socket {
            StreamSocket::Tcp(socket) if is_linux => Some(sys::unacked(socket.as_fd())?),
            // The check for the end of the stream would also succeed after a reset.
            StreamSocket::Unix(_) if is_linux && self.is_reset => None,
            StreamSocket::Unix(socket) if is_linux => {
                let unread = sys::unread(socket.as_fd());
                self.noted(unread)?
            }
            // If the system does not report it, bytes accepted by the socket count as arrived.
            _ => Some(0),
        };
        Ok(unacked.map(|unacked| match &mut self.wrapping {
            Some(wrapping) => wrapping.unacked(unacked),
            None => unacked,
        }))
    }

    /// Notes a reset in a result.
    fn noted<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        self.is_reset |= done.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionReset);
        done
    }

    /// Reads what the endpoint says, and throws it away but for the first line. False when it has closed its side. What comes on a
    /// plain connection is counted in `answers`.
    fn hear(&mut self, answer: &mut [u8], answers: &mut Answers) -> io::Result<bool> {
        let read = self.socket.try_read(answer);
        let len = self.noted(read)?;
        self.hearing.heard(&answer[..len], Clock::mono_ns);
        match (len, &mut self.wrapping) {
            (0, _) => Ok(false),
            (len, Some(wrapping)) => wrapping.receive(&answer[..len], &mut self.said),
            (len, None) => {
                self.said.heard(&answer[..len]);
                answers.heard(&answer[..len]);
                Ok(true)
            }
        }
    }

    /// Resolves when there is data to read, or the end, and reading is not paused. Cancel-safe.
    async fn readable(&self) -> io::Result<()> {
        let rest_ns = self.hearing.rest_ns(Clock::mono_ns);
        if rest_ns > 0 {
            tokio::time::sleep(Duration::from_nanos(rest_ns)).await;
        }
        self.socket.readable().await
    }

    /// Writes the first bytes of `lines`, and returns how many were accepted.
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        let Some(wrapping) = &mut self.wrapping else {
            let written = self.socket.try_write(lines);
            return self.noted(written);
        };
        match wrapping.take(lines)? {
            0 => self.send().map(|()| 0),
            taken => Ok(taken),
        }
    }

    /// Sends pending bytes, as far as the socket accepts them.
    fn send(&mut self) -> io::Result<()> {
        while let Some(wrapping) = self.wrapping.as_mut().filter(|wrapping| !wrapping.unsent().is_empty()) {
            let sent = self.socket.try_write(wrapping.unsent());
            if let Ok(sent) = &sent {
                wrapping.on_sent(*sent);
            }
            self.noted(sent)?;
        }
        Ok(())
    }

    /// No more lines for now: sends the accepted ones.
    fn flush(&mut self) -> io::Result<()> {
        if let Some(wrapping) = &mut self.wrapping {
            wrapping.flush()?;
        }
        self.send()
    }

    /// Ends the stream in its format, as far as the socket accepts that at once.
    fn finish(&mut self) {
        if let Some(wrapping) = self.wrapping.as_mut().filter(|wrapping| wrapping.is_at_rest()) {
            // The lines have arrived without it.
            let _unsent = wrapping.finish().and_then(|()| self.send());
        }
    }
}

/// Which address is tried first.
struct Turns {
    addresses: Addresses,
    /// The address of the last connection.
    last: Option<SocketAddr>,
}

impl Turns {
    fn remember(&mut self, link: &Link) {
        if let Link::Open(open) = link
            && self.addresses == Addresses::RoundRobin
        {
            self.last = open.socket.peer().or(self.last);
        }
    }

    /// In turn: the addresses after the last one, those before it, and then itself.
    fn order(&self, addresses: &mut [SocketAddr]) {
        if let Some(at) = addresses.iter().position(|address| Some(*address) == self.last) {
            addresses.rotate_left(at + 1);
        }
    }
}

/// All other handshake failures have their own messages.
const UNANSWERED: &str =
    "the TLS handshake was not answered within `connect_timeout`: does the endpoint speak TLS?";

/// Details of the last failure, for people.
#[derive(Default)]
struct Trouble {
    /// The system's message.
    words: Option<String>,
    /// The first line of the last reply of an ended connection.
    said: Option<String>,
    /// What was answered on all connections.
    answers: Answers,
}

impl Trouble {
    /// The connection is about to be closed: its last reply may explain why.
    fn hear_out(&mut self, open: &mut Connection) {
        let _ended = open.hear(&mut [0; ANSWER_BYTES], &mut self.answers);
        self.said = open.said.quoted().or(self.said.take());
    }

    /// The message for `failure`, the last one.
    fn take_words(&mut self, failure: Failure) -> Option<String> {
        let words = self.words.take();
        match failure {
            Failure::ClosesAtOnce => Some(closing_words(self.said.as_deref())),
            Failure::TlsWanted => Some("it answers plain lines with a TLS alert: set `tls`".to_owned()),
            Failure::TlsFailed => words.or_else(|| Some(UNANSWERED.to_owned())),
            _ => words,
        }
    }
}

/// The message for an endpoint that closes each connection at once.
fn closing_words(said: Option<&str>) -> String {
    match said {
        Some(line) => format!("it answers `{line}`: does it accept the data of this output?"),
        None => "it closes each connection at once: does it accept the data of this output?".to_owned(),
    }
}

/// Drives the sender of connection `number` to an endpoint until its outlet stops.
pub async fn run(
    mut locator: Locator,
    plan: SenderPlan,
    dialing: Dialing,
    (outlet, number): (Arc<Outlet>, usize),
    seed: u64,
) {
    let mut sender = StreamSender::new(plan, Arc::clone(&outlet.account), seed);
    if cfg!(not(target_os = "linux")) && dialing.is_plain() {
        sender = sender.without_acks();
    }
    let mut teller = Teller::new(locator.to().to_string());
    let connect_within = Duration::from_millis(plan.connect_timeout_ms);
    let mut link = Link::Closed;
    let mut turns = Turns { addresses: dialing.addresses, last: None };
    let mut trouble = Trouble::default();
    while !sender.stopped() {
        let since_ns = Clock::mono_ns();
        if outlet.is_stopping() {
            match outlet.leaves_by_ns() {
                Some(by_ns) => sender.begin_drain(by_ns),
                None => sender.begin_stop(outlet.deadline_ns(number)),
            }
        }
        report_acks(&mut sender, &mut link);
        if matches!(&link, Link::Opening(attempt) if attempt.shakes_hands.load(Relaxed)) {
            sender.on_handshake_begun();
        }
        sender.probe(outlet.is_watched());
        let step = step(&mut sender, (&outlet, number), &mut link, &mut trouble);
        if matches!(link, Link::Wanted) {
            let (next, words) = open(&mut sender, &mut locator, &turns, (connect_within, &dialing));
            link = next;
            trouble.words = words.or(trouble.words);
        }
        teller.look(&outlet, sender.state(), |failure| trouble.take_words(failure));
        while let Some(change) = sender.take_state_change() {
            teller.tell(&outlet, change);
        }
        publish(&outlet, number, sender.waiting_copies(), sender.queued_bytes(), sender.state());
        worked(&outlet, since_ns);
        // A sender that has just ended always returns `Idle`.
        if let Some(waits_for_room) = step.filter(|_| !sender.stopped()) {
            let slot = (&*outlet, number);
            wait(&mut sender, slot, (&mut link, &mut trouble), &mut locator, waits_for_room).await;
            turns.remember(&link);
        } else {
            // A fast endpoint would keep the thread from all other work.
            tokio::task::yield_now().await;
        }
    }
    outlet.finish_stop(number, &mut sender, Clock::now());
    end(&outlet, number, sender.state());
}

fn report_acks(sender: &mut StreamSender, link: &mut Link) {
    if sender.in_flight_bytes() == 0 {
        return;
    }
    let Link::Open(open) = link else { return };
    if let Ok(Some(unacked)) = open.unacked() {
        sender.on_acked(unacked, Clock::now());
    }
}

/// Does the sender's action. `None`: continue at once; `Some(true)`: wait, also for room in the socket.
fn step(
    sender: &mut StreamSender,
    (outlet, number): (&Outlet, usize),
    link: &mut Link,
    trouble: &mut Trouble,
) -> Option<bool> {
    let now = Clock::now();
    let action = outlet.poll(number, sender, now);
    match action {
        Action::Connect => {
            if let Link::Opening(attempt) = std::mem::replace(link, Link::Closed) {
                attempt.task.abort();
            }
            *link = Link::Wanted;
            None
        }
        Action::Write(bytes) => {
            let Link::Open(open) = link else {
                // The sender writes nothing before it knows of the connection.
                return Some(false);
            };
            match open.write(bytes) {
                Ok(written) => {
                    sender.on_written(written, Clock::now());
                    None
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Some(true),
                Err(broken) => {
                    outlet.errors.count(&broken);
                    trouble.words = Some(broken.to_string());
                    trouble.hear_out(open);
                    close(sender, link, CloseReason::Broken);
                    None
                }
            }
        }
        Action::Close(why) => {
            match std::mem::replace(link, Link::Closed) {
                Link::Opening(attempt) => attempt.task.abort(),
                Link::Open(mut open) if why == CloseReason::Stopped => open.finish(),
                _ => {}
            }
            None
        }
        Action::WaitUntil(_) | Action::Idle => {
            let Link::Open(open) = link else { return Some(false) };
            match open.flush() {
                Ok(()) => Some(false),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Some(true),
                Err(broken) => {
                    outlet.errors.count(&broken);
                    trouble.words = Some(broken.to_string());
                    trouble.hear_out(open);
                    close(sender, link, CloseReason::Broken);
                    None
                }
            }
        }
    }
}

/// Begins to connect, if the address is known; otherwise also returns a message.
fn open(
    sender: &mut StreamSender,
    locator: &mut Locator,
    turns: &Turns,
    (within, dialing): (Duration, &Dialing),
) -> (Link, Option<String>) {
    let wrapping = dialing.wrapping();
    let shakes_hands = Arc::new(AtomicBool::new(false));
    let begun = Arc::clone(&shakes_hands);
    let task =
        match locator.find() {
            Found::NotYet => return (Link::Wanted, None),
            Found::Nowhere(why, words) => {
                sender.on_attempt_failed(why, Clock::now());
                return (Link::Closed, Some(words));
            }
            Found::Path(path) => tokio::spawn(async move {
                Connection::begin(StreamSocket::unix(&path).await, wrapping, &begun).await
            }),
            Found::Addresses(mut addresses) => {
                turns.order(&mut addresses);
                tokio::spawn(async move {
                    Connection::begin(StreamSocket::tcp(&addresses, within).await, wrapping, &begun).await
                })
            }
        };
    (Link::Opening(Attempt { task, shakes_hands }), None)
}

/// The last counts of a broken connection are useful: they show what arrived.
fn close(sender: &mut StreamSender, link: &mut Link, why: CloseReason) {
    report_acks(sender, link);
    *link = Link::Closed;
    sender.on_closed(why, Clock::now());
}

/// Waits for an event.
async fn wait(
    sender: &mut StreamSender,
    (outlet, number): (&Outlet, usize),
    (link, trouble): (&mut Link, &mut Trouble),
    locator: &mut Locator,
    for_room: bool,
) {
    let pause = match sender.wake_ns() {
        Some(at_ns) => Duration::from_nanos(at_ns.saturating_sub(Clock::mono_ns())),
        None => Duration::from_secs(3600),
    };
    // All branches are cancel-safe: a connection attempt is a separate task and stays in `link`, readiness is only
    // queried, and a missed wake-up leaves its permit.
    tokio::select! {
        () = outlet.woken(number) => {}
        () = tokio::time::sleep(pause) => {}
        event = event(link, locator, for_room) => on_event(event, sender, outlet, (link, trouble)),
    }
}

/// An event of a connection.
enum Event {
    Found,
    Opened(io::Result<Box<Connection>>),
    Room,
    Readable(io::Result<()>),
}

async fn event(link: &mut Link, locator: &mut Locator, for_room: bool) -> Event {
    match link {
        Link::Closed => pending().await,
        Link::Wanted => {
            locator.changed().await;
            Event::Found
        }
        Link::Opening(attempt) => match (&mut attempt.task).await {
            Ok(opened) => Event::Opened(opened),
            Err(ended) => Event::Opened(Err(io::Error::other(ended))),
        },
        Link::Open(open) => {
            // Cancel-safe: both only query.
            tokio::select! {
                _room = open.socket.writable(), if for_room => Event::Room,
                readable = open.readable() => Event::Readable(readable),
            }
        }
    }
}

/// Counts what the endpoint has answered, and logs a line of it once a minute.
fn note_answers(answers: &mut Answers, outlet: &Outlet) {
    let Some((lines, said)) = answers.take() else { return };
    outlet.account.answer_lines.fetch_add(lines, Relaxed);
    if let Some(said) = said.filter(|_| answers.is_due(Clock::mono_ns())) {
        tracing::warn!("output `{}`: the endpoint answers `{said}`", outlet.name);
    }
}

fn on_event(
    event: Event,
    sender: &mut StreamSender,
    outlet: &Outlet,
    (link, trouble): (&mut Link, &mut Trouble),
) {
    match event {
        // The next turn resolves the address.
        Event::Found | Event::Room => {}
        Event::Opened(Ok(open)) => {
            *link = Link::Open(open);
            sender.on_connected(Clock::now());
        }
        Event::Opened(Err(error)) => {
            *link = Link::Closed;
            let is_tls = tls::words::cause(&error).is_some();
            if !is_tls {
                outlet.errors.count(&error);
            }
            let why = if is_tls { Failure::TlsFailed } else { Failure::ConnectFailed };
            sender.on_attempt_failed(why, Clock::now());
            trouble.words = Some(tls::words::connecting(&error, "tls.ca"));
        }
        Event::Readable(readable) => {
            let Link::Open(open) = link else { return };
            let heard = readable.and_then(|()| open.hear(&mut [0; ANSWER_BYTES], &mut trouble.answers));
            note_answers(&mut trouble.answers, outlet);
            let why = match heard {
                Ok(true) => return,
                Ok(false) => CloseReason::Peer,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(broken) => match tls::words::cause(&broken) {
                    Some(cause) => {
                        trouble.words = Some(tls::words::of(cause, "tls.ca"));
                        CloseReason::TlsFailed
                    }
                    None => {
                        outlet.errors.count(&broken);
                        trouble.words = Some(broken.to_string());
                        CloseReason::Broken
                    }
                },
            };
            trouble.said = open.said.quoted().or(trouble.said.take());
            let wants_tls = open.hearing.is_tls_alert() && open.wrapping.is_none();
            close(sender, link, if wants_tls { CloseReason::TlsWanted } else { why });
        }
    }
}

#[cfg(test)]
mod tests {
    use config::plan::{Destination, Endpoint};
    use deliver::plan::QueueLimits;
    use deliver::queue::{Block, BlockEncoding};
    use model::OutputAccount;

    use super::*;
    use crate::outputs::addresses::locator::{Directory, OwnListeners};
    use crate::outputs::addresses::names::tests::Dns;

    /// The first line on the next connection.
    async fn line(listener: &tokio::net::TcpListener) -> (tokio::net::TcpStream, Vec<u8>) {
        let read = async {
            let (mut stream, _) = listener.accept().await.expect("it listens");
            let mut line = Vec::new();
            while line.last() != Some(&b'\n') {
                let byte = tokio::io::AsyncReadExt::read_u8(&mut stream).await;
                line.push(byte.expect("a whole line comes"));
            }
            (stream, line)
        };
        tokio::time::timeout(Duration::from_secs(30), read).await.expect("a line comes")
    }

    #[tokio::test]
    async fn a_changed_address_of_a_name_is_used_for_the_next_connection() {
        let dns = Dns::new().await;
        let first = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = first.local_addr().expect("it is bound").port();
        let Ok(second) = tokio::net::TcpListener::bind(("127.0.0.2", port)).await else {
            crate::outputs::skip(&format!("127.0.0.2:{port} cannot be bound here"));
            return;
        };
        let account = Arc::new(OutputAccount::default());
        let outlet = Arc::new(Outlet::new("o", QueueLimits::default(), &account));
        let append = |text: &[u8]| {
            let now = Clock::now();
            outlet.append(Block::lines(text.to_vec(), 1, now.mono_ns), now);
        };
        let directory = Directory { names: Arc::clone(&dns.names), own: OwnListeners::default() };
        let to = Destination::Tcp(Endpoint { host: "carbon.test.".into(), port });
        let locator = Locator::new(to, Arc::new(directory));
        let running = tokio::spawn(run(
            locator,
            SenderPlan::default(),
            Dialing::default(),
            (Arc::clone(&outlet), 0),
            1,
        ));
        // The name is not resolved yet: it waits.
        append(b"early 1 2\n");
        dns.set("carbon.test.", &[[127, 0, 0, 1]]);
        let (stream, got) = line(&first).await;
        assert_eq!(got, b"early 1 2\n");
        // All addresses are one endpoint: if one does not accept, the next is tried.
        dns.set("carbon.test.", &[[127, 0, 0, 3], [127, 0, 0, 2]]);
        drop((stream, first));
        append(b"late 1 2\n");
        let (_stream, got) = line(&second).await;
        assert_eq!(got, b"late 1 2\n");
        outlet.stop(Clock::mono_ns() + 30_000_000_000);
        let ended = tokio::time::timeout(Duration::from_secs(30), running).await;
        ended.expect("it ends").expect("without a panic");
        assert!(outlet.sum().holds() && outlet.sum().delivered == 2, "{:?}", outlet.sum());
    }

    #[tokio::test]
    async fn round_robin_connects_to_the_next_address_each_time() {
        let dns = Dns::new().await;
        let first = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = first.local_addr().expect("it is bound").port();
        let Ok(second) = tokio::net::TcpListener::bind(("127.0.0.2", port)).await else {
            crate::outputs::skip(&format!("127.0.0.2:{port} cannot be bound here"));
            return;
        };
        dns.set("carbon.test.", &[[127, 0, 0, 1], [127, 0, 0, 2]]);
        let account = Arc::new(OutputAccount::default());
        let outlet = Arc::new(Outlet::new("o", QueueLimits::default(), &account));
        let directory = Directory { names: Arc::clone(&dns.names), own: OwnListeners::default() };
        let to = Destination::Tcp(Endpoint { host: "carbon.test.".into(), port });
        let locator = Locator::new(to, Arc::new(directory));
        let plan = SenderPlan { retry_min_ms: 1, retry_max_ms: 50, ..SenderPlan::default() };
        let round_robin = Dialing { addresses: Addresses::RoundRobin, ..Dialing::default() };
        let running = tokio::spawn(run(locator, plan, round_robin, (Arc::clone(&outlet), 0), 1));
        let mut places = Vec::new();
        for number in 0..4 {
            let text = format!("n{number} 1 2\n");
            let now = Clock::now();
            outlet.append(Block::lines(text.clone().into_bytes(), 1, now.mono_ns), now);
            let (stream, got) = tokio::select! {
                taken = line(&first) => taken,
                taken = line(&second) => taken,
            };
            assert_eq!(got, text.into_bytes());
            places.push(stream.local_addr().expect("it is connected").ip());
            // Closed by the peer: the next line needs another connection.
            drop(stream);
        }
        assert!(places[0] != places[1] && places[0] == places[2] && places[1] == places[3], "{places:?}");
        outlet.stop(Clock::mono_ns() + 30_000_000_000);
        let ended = tokio::time::timeout(Duration::from_secs(30), running).await;
        ended.expect("it ends").expect("without a panic");
        assert!(outlet.sum().holds() && outlet.sum().delivered == 4, "{:?}", outlet.sum());
    }

    #[tokio::test]
    async fn an_endpoint_that_is_down_does_not_delay_the_stop() {
        let account = Arc::new(OutputAccount::default());
        let outlet = Arc::new(Outlet::new("o", QueueLimits::default(), &account));
        let now = Clock::now();
        let line = Arc::new(b"a 1 2\n".to_vec());
        outlet.append(
            Block {
                bytes: line,
                copies: 1,
                encoding: BlockEncoding::Lines,
                at_ns: now.mono_ns,
                partition: None,
            },
            now,
        );
        outlet.stop(now.mono_ns + 100_000_000);
        // Bound and closed again: connections are rejected.
        let closed = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = closed.expect("a free port").port();
        let to = Destination::Tcp(Endpoint { host: "127.0.0.1".into(), port });
        let locator = Locator::new(to, Arc::new(Directory::of_system()));
        let ended = run(locator, SenderPlan::default(), Dialing::default(), (Arc::clone(&outlet), 0), 1);
        tokio::time::timeout(Duration::from_secs(5), ended).await.expect("ends at its deadline");
        assert_eq!(account.dropped(model::Dropped::Stopped), 1);
        assert!(outlet.errors.table().contains_key("ECONNREFUSED"));
        assert!(outlet.sum().holds() && outlet.sum().queued == 0);
    }
}
