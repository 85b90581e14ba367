//! A Graphite that records lines and behaves as badly as a test wants.
//!
//! While it is "away" its port is kept by a socket that does not listen, so that no other test gets it: see
//! [`FakeGraphite::refuse`].

use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::wait_for;

/// How connections are treated, from the next read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Take everything.
    Accept,
    /// Accept connections and read nothing.
    Hang,
    /// Reset each connection after so many bytes.
    ResetAfter(usize),
    /// Close each connection after so many bytes.
    CloseAfter(usize),
}

/// One point line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    /// Name of the series.
    pub(crate) name: String,
    /// Its value.
    pub(crate) value: f64,
    /// Its Unix second.
    pub(crate) time_s: u64,
    /// When its line was whole.
    pub(crate) arrived: Instant,
}

#[derive(Debug)]
struct State {
    manner: Mutex<Manner>,
    bytes: Mutex<Vec<u8>>,
    points: Mutex<Vec<Point>>,
    connections: Mutex<u64>,
    open: Mutex<u64>,
    /// Counts questions; see [`FakeGraphite::catch_up`].
    asked: AtomicU64,
    /// Last question that each thread has seen while it had nothing to read or accept.
    seen: Mutex<Vec<Arc<AtomicU64>>>,
}

/// See the module's header.
#[derive(Debug)]
pub(crate) struct FakeGraphite {
    at: SocketAddr,
    state: Arc<State>,
    acceptor: Option<(Arc<AtomicBool>, JoinHandle<()>)>,
    /// Keeps the port while nobody listens.
    away: Option<socket2::Socket>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread of the fake panics")
}

impl FakeGraphite {
    /// One that takes everything.
    pub(crate) fn new() -> FakeGraphite {
        let state = Arc::new(State {
            manner: Mutex::new(Manner::Accept),
            bytes: Mutex::default(),
            points: Mutex::default(),
            connections: Mutex::default(),
            open: Mutex::default(),
            asked: AtomicU64::new(0),
            seen: Mutex::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let at = listener.local_addr().expect("it is bound");
        let mut fake = FakeGraphite { at, state, acceptor: None, away: None };
        fake.serve(listener);
        fake
    }

    fn serve(&mut self, listener: TcpListener) {
        listener.set_nonblocking(true).expect("a socket can be asked not to block");
        let away = Arc::new(AtomicBool::new(false));
        let (state, gone) = (Arc::clone(&self.state), Arc::clone(&away));
        // Before the thread runs, which may be a while: nobody is to think that all has been read by then.
        let seen = self.state.witness();
        let acceptor = std::thread::spawn(move || accept(&listener, &state, &gone, &seen));
        self.acceptor = Some((away, acceptor));
    }

    /// Where it listens.
    pub(crate) fn at(&self) -> SocketAddr {
        self.at
    }

    /// `tcp://host:port`, as configs write it.
    pub(crate) fn to(&self) -> String {
        format!("tcp://{}", self.at)
    }

    /// Treats connections in another way from now on, the open ones too.
    pub(crate) fn behave(&self, manner: Manner) {
        *lock(&self.state.manner) = manner;
    }

    /// Refuses connections from now on and resets the open ones, until [`Self::come_back`].
    pub(crate) fn refuse(&mut self) {
        if let Some((away, acceptor)) = self.acceptor.take() {
            away.store(true, SeqCst);
            acceptor.join().expect("no thread of the fake panics");
            // Someone's outgoing connection may have the port for a moment.
            self.away = Some(wait_for("the port to be free again", || {
                let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).ok()?;
                socket.set_reuse_address(true).ok()?;
                socket.bind(&self.at.into()).ok()?;
                Some(socket)
            }));
        }
    }

    /// Listens again at the same port.
    pub(crate) fn come_back(&mut self) {
        let socket = self.away.take().expect("it was away");
        self.behave(Manner::Accept);
        socket.listen(64).expect("the port is ours");
        self.serve(TcpListener::from(socket));
    }

    /// Waits until everything that has come so far is recorded: a daemon that has ended has sent what it will send,
    /// but we may not have read it.
    fn catch_up(&self) {
        let asked = self.state.asked.fetch_add(1, SeqCst) + 1;
        wait_for("the fake to read what came", || {
            lock(&self.state.seen).iter().all(|seen| seen.load(SeqCst) >= asked).then_some(())
        });
    }

    /// Everything that came over all connections, one after another in the order of arrival.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.catch_up();
        lock(&self.state.bytes).clone()
    }

    /// The whole lines that came, in order.
    pub(crate) fn points(&self) -> Vec<Point> {
        self.catch_up();
        lock(&self.state.points).clone()
    }

    /// The points of one series.
    pub(crate) fn of(&self, name: &str) -> Vec<Point> {
        self.points().into_iter().filter(|point| point.name == name).collect()
    }

    /// The sum of one series' values.
    pub(crate) fn total(&self, name: &str) -> f64 {
        self.of(name).iter().map(|point| point.value).sum()
    }

    /// Connections open now.
    pub(crate) fn open(&self) -> u64 {
        *lock(&self.state.open)
    }

    /// Connections accepted so far.
    pub(crate) fn connections(&self) -> u64 {
        *lock(&self.state.connections)
    }
}

impl Drop for FakeGraphite {
    fn drop(&mut self) {
        self.refuse();
    }
}

/// Pause between two looks at what is to be done.
const LOOK_EVERY: Duration = Duration::from_millis(5);

fn accept(listener: &TcpListener, state: &Arc<State>, away: &Arc<AtomicBool>, seen: &AtomicU64) {
    let mut connections = Vec::new();
    while !away.load(SeqCst) {
        let asked = state.asked.load(SeqCst);
        match listener.accept() {
            Ok((stream, _)) => {
                *lock(&state.connections) += 1;
                // Before this thread says that it has nobody left to accept.
                let seen = state.witness();
                let (state, away) = (Arc::clone(state), Arc::clone(away));
                connections.push(std::thread::spawn(move || {
                    *lock(&state.open) += 1;
                    serve(stream, &state, &away, &seen);
                    seen.store(u64::MAX, SeqCst);
                    *lock(&state.open) -= 1;
                }));
            }
            Err(_nobody) => {
                seen.store(asked, SeqCst);
                std::thread::sleep(LOOK_EVERY);
            }
        }
    }
    seen.store(u64::MAX, SeqCst);
    connections.into_iter().for_each(|connection| connection.join().expect("no thread of the fake panics"));
}

impl State {
    fn witness(&self) -> Arc<AtomicU64> {
        let seen = Arc::new(AtomicU64::new(0));
        lock(&self.seen).push(Arc::clone(&seen));
        seen
    }
}

fn serve(mut stream: TcpStream, state: &State, away: &AtomicBool, seen: &AtomicU64) {
    stream.set_nonblocking(false).expect("a socket can be asked to block");
    stream.set_read_timeout(Some(LOOK_EVERY)).expect("a time-out can be set");
    let mut line = Vec::new();
    let mut total = 0;
    loop {
        let asked = state.asked.load(SeqCst);
        let manner = *lock(&state.manner);
        if away.load(SeqCst) {
            return reset(&stream);
        }
        let room = match manner {
            Manner::Accept => 64 * 1024,
            Manner::Hang => {
                seen.store(asked, SeqCst);
                std::thread::sleep(LOOK_EVERY);
                continue;
            }
            Manner::ResetAfter(bytes) if total >= bytes => return reset(&stream),
            Manner::CloseAfter(bytes) if total >= bytes => return,
            Manner::ResetAfter(bytes) | Manner::CloseAfter(bytes) => bytes - total,
        };
        let mut buffer = vec![0; room];
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(len) => {
                total += len;
                record(state, &mut line, &buffer[..len]);
            }
            Err(error) if is_timeout(&error) => seen.store(asked, SeqCst),
            Err(_broken) => return,
        }
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}

fn reset(stream: &TcpStream) {
    let linger = socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO));
    linger.expect("a socket can be made to reset");
}

fn record(state: &State, line: &mut Vec<u8>, bytes: &[u8]) {
    lock(&state.bytes).extend_from_slice(bytes);
    for byte in bytes {
        if *byte != b'\n' {
            line.push(*byte);
            continue;
        }
        if let Some(point) = parse(&String::from_utf8_lossy(line)) {
            lock(&state.points).push(point);
        }
        line.clear();
    }
}

fn parse(line: &str) -> Option<Point> {
    let mut words = line.split(' ');
    let (name, value, time) = (words.next()?, words.next()?, words.next()?);
    Some(Point {
        name: name.to_owned(),
        value: value.parse().ok()?,
        time_s: time.parse().ok()?,
        arrived: Instant::now(),
    })
}
