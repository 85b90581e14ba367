//! Who gets the room that becomes free behind an output that makes its clients wait.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use crate::support::{Builder, Daemon, wait_for};

/// Connections of the peer that has many.
const CONNECTIONS: usize = 400;

/// What the endpoint may read before the honest client has its answer: less than what was in the exchange before it.
const BETWEEN_BYTES_MAX: usize = 4 << 20;

/// Between two reads of the endpoint.
const PACE: Duration = Duration::from_millis(5);

fn from(last: u8, to: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), 0)).into()).expect("it is this machine's");
    socket.connect(&to.into()).expect("it listens");
    socket.into()
}

/// An endpoint that reads only when it is asked to.
struct Slow(TcpListener);

impl Slow {
    fn new() -> Slow {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        // Taken over by each connection.
        socket2::SockRef::from(&listener).set_recv_buffer_size(64 * 1024).expect("it is a socket");
        Slow(listener)
    }
}

#[test]
fn who_makes_sources_wait_is_shown_and_is_no_reason_to_send_nothing() {
    let slow = Slow::new();
    let to = slow.0.local_addr().expect("it is bound");
    let config = format!(
        "stop_timeout = \"1s\"\n\
         [sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [outputs.store]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"tcp://{to}\"]\n\
         queue = {{ kind = \"memory\", max_bytes = \"1MiB\", when_full = \"block\" }}\n"
    );
    let mut daemon = Builder::native(&config).start();
    let (endpoint, _) = slow.0.accept().expect("the output connects");
    let ready = || (daemon.get("/ready").status, daemon.get("/ready").body);
    assert_eq!(ready(), (200, "ready\n".to_owned()));
    let mut client = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
    client.set_nonblocking(true).expect("it is a socket");
    let lines = format!("{}:1|c\n", "a".repeat(1_000)).repeat(64);
    let logged = "source `app` waits for room in the queue of output `store` (when_full = \"block\"), for ";
    wait_for("the queue to be full", || {
        // Cut lines are as good as any.
        while client.write(lines.as_bytes()).is_ok() {}
        let (status, body) = ready();
        assert_eq!(status, 200, "{body}");
        body.strip_prefix("ready\n").is_some_and(|rest| rest.starts_with(logged)).then_some(())
    });
    assert!(Daemon::number(&daemon.output("store"), "stalls") > 0);
    wait_for("the seconds", || (Daemon::number(&daemon.output("store"), "stalled_for_s") > 0).then_some(()));
    // They are for those who may read them.
    let mut stream = TcpStream::connect(daemon.http()).expect("it listens");
    stream
        .write_all(b"GET /ready HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
        .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\nready\n"), "{answer}");
    drop((client, endpoint, slow));
    daemon.signal("KILL");
    daemon.wait_exit();
}

#[test]
#[cfg(target_os = "linux")]
fn room_goes_from_peer_to_peer_and_not_from_connection_to_connection() {
    let slow = Slow::new();
    let to = slow.0.local_addr().expect("it is bound");
    let config = format!(
        "stop_timeout = \"1s\"\n\
         [sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\nack_when = \"accepted\"\n\
         max_connections = 1000\nmax_connections_per_peer = 900\n\
         [outputs.store]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"tcp://{to}\"]\n\
         queue = {{ kind = \"memory\", max_bytes = \"1MiB\", when_full = \"block\" }}\n"
    );
    let mut daemon = Builder::native(&config).start();
    let at = daemon.at("app", "tcp");
    let (mut endpoint, _) = slow.0.accept().expect("the output connects");
    let ended = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&ended);
    let mut crowd: Vec<TcpStream> =
        (0..CONNECTIONS).map(|_| TcpStream::connect(at).expect("it listens")).collect();
    crowd.iter().for_each(|stream| stream.set_nonblocking(true).expect("it is a socket"));
    let flood = std::thread::spawn(move || {
        let lines = format!("{}:1|c\n", "a".repeat(1_000)).repeat(64);
        while !ends.load(Relaxed) {
            for stream in &mut crowd {
                // Cut lines are as good as any. Answers are not read: there are few before it all stands still.
                let _full = stream.write(lines.as_bytes());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    // The queue and the exchange are full, and hundreds of connections wait for room.
    wait_for("room is short", || {
        let stalled = daemon.output("store")["stalled_for_s"].as_f64().unwrap_or(0.0) > 0.2;
        let held = Daemon::number(&daemon.source("app"), "in_flight");
        (stalled && held > 1_000).then_some(())
    });
    let mut honest = from(2, at);
    honest.write_all(b"honest:1|c\n").expect("it reads");
    honest.set_nonblocking(true).expect("it is a socket");
    let (mut read, mut answer, mut bytes) = (0, [0; 64], vec![0; 64 * 1024]);
    let answered = loop {
        match honest.read(&mut answer) {
            Ok(len) => break len,
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
        }
        read += endpoint.read(&mut bytes).expect("the output writes");
        // As a slow endpoint does: what is read while the daemon's threads have no processor is little.
        std::thread::sleep(PACE);
        assert!(read < 100 << 20, "no answer after {read} bytes");
    };
    println!("the endpoint read {read} bytes before the answer");
    assert_eq!(&answer[..answered], b"ack 1\n");
    assert!(read < BETWEEN_BYTES_MAX, "{read} bytes before the answer");
    ended.store(true, Relaxed);
    flood.join().expect("it only writes");
    daemon.signal("KILL");
    daemon.wait_exit();
}
