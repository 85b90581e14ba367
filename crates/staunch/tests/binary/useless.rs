//! Endpoints that accept connections and reject every line: they are logged, and counted as failing.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use crate::support::{Builder, Daemon, wait_for};

/// Takes connections, reads a little from each, answers so and closes it.
fn closer(answer: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = listener.local_addr().expect("it is bound");
    // Ends with the test.
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let _len = stream.read(&mut [0; 16]);
            let _gone = stream.write_all(answer);
        }
    });
    at
}

fn config(to: SocketAddr) -> String {
    format!(
        "stop_timeout = \"100ms\"\n\
         [sources.in]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [outputs.o]\ntype = \"graphite\"\nfrom = [\"in\"]\nto = [\"tcp://{to}\"]\n\
         min_retry_delay = \"10ms\"\nmax_retry_delay = \"100ms\"\n"
    )
}

#[test]
fn an_endpoint_that_closes_each_connection_at_once_is_logged_with_its_answer() {
    for (answer, want) in [
        (
            &b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"[..],
            "it answers `HTTP/1.1 400 Bad Request`",
        ),
        (b"", "it closes each connection at once"),
    ] {
        let mut daemon = Builder::native(&config(closer(answer))).start();
        let mut client = TcpStream::connect(daemon.at("in", "tcp")).expect("it listens");
        let mut lines = 0_u64;
        wait_for("a log line about the endpoint", || {
            lines += 1;
            client.write_all(format!("a.b {lines} 1700000000\n").as_bytes()).expect("it reads");
            daemon.stderr().contains(want).then_some(())
        });
        let output = daemon.output("o");
        assert_eq!((&output["state"], &output["last_error"]), (&"down".into(), &"closes_at_once".into()));
        assert!(Daemon::number(&output, "errors_by/closes_at_once") > 0, "{output}");
        let text = output["last_error_text"].as_str().unwrap_or_default();
        assert!(
            text.starts_with("The endpoint accepts connections and closes each") && text.contains(want),
            "{text}"
        );
        assert!(Daemon::number(&output, "last_error_time_ms") > 1_700_000_000_000, "{output}");
        assert!(Daemon::number(&output, "connects") >= 3, "{output}");
        daemon.wait_source("in", "routed", lines);
        daemon.assert_sums_hold();
        daemon.stop();
        let logged = daemon.stderr();
        assert_eq!(logged.matches(want).count(), 1, "once, however often it closes:\n{logged}");
        assert!(logged.contains("does it accept the data of this output?"), "{logged}");
    }
}

/// An endpoint that closes connections unread has nothing, whatever its kernel acknowledged.
#[test]
fn an_endpoint_that_resets_each_connection_at_once_uses_up_no_queue() {
    // More than a receive buffer takes that nobody reads: some are left when the first connection is reset.
    const LINES: u64 = 50_000;
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let to = listener.local_addr().expect("it is bound");
    let (reads, is_to_read) = std::sync::mpsc::channel::<()>();
    let reader = std::thread::spawn(move || {
        loop {
            let (mut stream, _) = listener.accept().expect("the daemon connects");
            // Something must have come, or it is closed in order.
            let _there = stream.peek(&mut [0; 1]);
            if is_to_read.try_recv().is_ok() {
                let mut lines = String::new();
                let _len = stream.read_to_string(&mut lines).expect("text");
                return lines;
            }
        }
    });
    let mut daemon = Builder::native(&config(to)).start();
    let mut client = TcpStream::connect(daemon.at("in", "tcp")).expect("it listens");
    let lines: String = (0..LINES).map(|line| format!("a.b {line} 1700000000\n")).collect();
    client.write_all(lines.as_bytes()).expect("it reads");
    daemon.wait_source("in", "routed", LINES);
    wait_for("many connections", || (Daemon::number(&daemon.output("o"), "connects") >= 20).then_some(()));
    let output = daemon.output("o");
    let delivered = Daemon::number(&output, "delivered");
    assert!(Daemon::number(&output, "in_doubt") > 0 && output["losses"] == serde_json::json!({}), "{output}");
    reads.send(()).expect("it waits");
    daemon.wait_output("o", "delivered", LINES);
    daemon.assert_sums_hold();
    daemon.stop();
    let came = reader.join().expect("no panic");
    // The first connection took what it took; all the rest is there, once.
    let first = came.lines().next().and_then(|line| line.split(' ').nth(1)?.parse::<u64>().ok());
    assert_eq!((first, came.lines().count() as u64), (Some(delivered), LINES - delivered));
}
