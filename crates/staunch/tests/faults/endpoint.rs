//! An endpoint that reads every line over TCP, and is away or silent when a case wants it.
//!
//! A socket that does not listen holds its port for the case's life: while the endpoint is away connections are
//! refused, and no other program gets the port.

use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::{Domain, SockRef, Socket, Type};

use crate::finding::Bench;
use crate::oracle::{Form, Oracle};

/// Pause between two looks at what is to be done.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Bytes of one read.
const READ_BYTES: usize = 256 * 1024;

/// See the module's header.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// What came.
    pub(crate) oracle: Arc<Oracle>,
    at: SocketAddr,
    _port: Socket,
    silent: Arc<AtomicBool>,
    /// Connections that are read.
    open: Arc<AtomicU64>,
    acceptor: Option<(Arc<AtomicBool>, JoinHandle<()>)>,
}

impl Endpoint {
    /// One that takes everything.
    pub(crate) fn new(form: Form) -> Endpoint {
        let port = reusable();
        port.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a free port");
        let at = port.local_addr().ok().and_then(|at| at.as_socket()).expect("it is bound");
        let oracle = Arc::new(Oracle::new(form));
        let mut endpoint = Endpoint {
            oracle,
            at,
            _port: port,
            silent: Arc::default(),
            open: Arc::default(),
            acceptor: None,
        };
        endpoint.come_back();
        endpoint
    }

    /// `tcp://host:port`, as configs write it.
    pub(crate) fn to(&self) -> String {
        format!("tcp://{}", self.at)
    }

    /// `host:port`, as a relay's config writes it.
    pub(crate) fn place(&self) -> SocketAddr {
        self.at
    }

    /// Keeps its connections and reads nothing, or reads again.
    pub(crate) fn be_silent(&self, silent: bool) {
        self.silent.store(silent, SeqCst);
    }

    /// Resets its connections and refuses new ones, until [`Self::come_back`].
    pub(crate) fn go_away(&mut self) {
        if let Some((away, acceptor)) = self.acceptor.take() {
            away.store(true, SeqCst);
            acceptor.join().expect("no thread of the endpoint panics");
        }
    }

    /// Waits until everything is read that a daemon sent that has ended: its connections come to their end.
    pub(crate) fn read_to_the_end(&self, bench: &Bench) {
        let read = || {
            let none_is_open = self.open.load(SeqCst) == 0;
            // One that the daemon made at its very end is accepted by then.
            std::thread::sleep(4 * LOOK_EVERY);
            (none_is_open && self.open.load(SeqCst) == 0).then_some(())
        };
        let read = bench.wait("the endpoint to read", Duration::from_secs(60), read);
        assert!(read.is_some(), "the connections of a daemon that has ended stay open");
    }

    /// Listens at its port, and reads.
    pub(crate) fn come_back(&mut self) {
        assert!(self.acceptor.is_none(), "it is here");
        self.be_silent(false);
        let listener = reusable();
        listener.bind(&self.at.into()).and_then(|()| listener.listen(64)).expect("the port is held for it");
        listener.set_nonblocking(true).expect("a socket can be asked not to block");
        let away = Arc::new(AtomicBool::new(false));
        let (oracle, silent, gone) = (Arc::clone(&self.oracle), Arc::clone(&self.silent), Arc::clone(&away));
        let open = Arc::clone(&self.open);
        let acceptor = std::thread::spawn(move || accept(&listener.into(), &oracle, &silent, &open, &gone));
        self.acceptor = Some((away, acceptor));
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.go_away();
    }
}

fn reusable() -> Socket {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a descriptor is free");
    socket.set_reuse_address(true).expect("a socket can be asked to share its port");
    socket
}

fn accept(
    listener: &TcpListener,
    oracle: &Arc<Oracle>,
    silent: &Arc<AtomicBool>,
    open: &Arc<AtomicU64>,
    away: &Arc<AtomicBool>,
) {
    let mut connections = Vec::new();
    while !away.load(SeqCst) {
        match listener.accept() {
            Ok((stream, _)) => {
                open.fetch_add(1, SeqCst);
                let (oracle, silent) = (Arc::clone(oracle), Arc::clone(silent));
                let (open, away) = (Arc::clone(open), Arc::clone(away));
                connections.push(std::thread::spawn(move || {
                    read(stream, &oracle, &silent, &away);
                    open.fetch_sub(1, SeqCst);
                }));
            }
            Err(_nobody) => std::thread::sleep(LOOK_EVERY),
        }
    }
    connections.into_iter().for_each(|connection| connection.join().expect("no reader panics"));
}

fn read(mut stream: TcpStream, oracle: &Oracle, silent: &AtomicBool, away: &AtomicBool) {
    stream.set_nonblocking(false).expect("a socket can be asked to block");
    stream.set_read_timeout(Some(LOOK_EVERY)).expect("a time-out can be set");
    let mut buffer = vec![0; READ_BYTES];
    // An unfinished line is at the buffer's beginning; what its connection does not finish never arrived.
    let mut kept = 0;
    loop {
        if away.load(SeqCst) {
            // A reset, so that the peer does not take it for an end in good order.
            let _reset = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
            return;
        }
        if silent.load(SeqCst) {
            std::thread::sleep(LOOK_EVERY);
            continue;
        }
        match stream.read(&mut buffer[kept..]) {
            Ok(0) => return,
            Ok(len) => {
                let all = kept + len;
                let whole = buffer[..all].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                oracle.hear(&buffer[..whole]);
                buffer.copy_within(whole..all, 0);
                kept = all - whole;
                assert!(kept < READ_BYTES, "a line of {READ_BYTES} bytes");
            }
            Err(error) if is_timeout(&error) => {}
            Err(_broken) => return,
        }
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}
