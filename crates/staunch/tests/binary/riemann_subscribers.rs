//! `ws-server` and `sse-server` of a Riemann config: dashboards subscribe to the index and to channels, clients put events, and subscribers
//! that sleep harm nobody.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocket};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::riemann::{connect, reply};
use crate::riemann_config::message;
use crate::support::http::{get, with_headers};
use crate::support::{Builder, Daemon, PATIENCE, wait_for};

pub(crate) fn config(streams: &str) -> String {
    format!(
        "(tcp-server {{:port 0}})\n(ws-server {{:host \"127.0.0.3\" :port 0}})\n(sse-server {{:host \"127.0.0.2\" :port 0}})\n\
         (instrumentation {{:enabled? false}})\n{streams}\n"
    )
}

/// A daemon, a client of its TCP server, and the address of its WebSockets.
pub(crate) fn start(streams: &str) -> (Daemon, TcpStream, SocketAddr) {
    let daemon = Builder::riemann(&config(streams)).start();
    let (client, at) = (connect(daemon.at("riemann", "tcp")), daemon.at("riemann-ws-0", "tcp"));
    (daemon, client, at)
}

pub(crate) fn send(client: &mut TcpStream, service: &str, metric: i64) {
    client.write_all(&message(service, metric, 60.0, None)).expect("it reads");
    assert_eq!(reply(client), wire::riemann::OK_REPLY);
}

/// A subscriber.
pub(crate) struct Socket(WebSocket<TcpStream>);

/// The head of the answer to a handshake, and the connection.
fn shake_hands(stream: TcpStream, path: &str, headers: &str) -> (String, TcpStream) {
    let mut stream = stream;
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}Connection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("it reads");
    let (mut answer, mut byte) = (Vec::new(), [0]);
    while !answer.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
        answer.push(byte[0]);
    }
    (String::from_utf8(answer).expect("a head is text"), stream)
}

impl Socket {
    pub(crate) fn open(at: SocketAddr, path: &str) -> Socket {
        Socket::on(TcpStream::connect(at).expect("it listens"), path)
    }

    fn on(stream: TcpStream, path: &str) -> Socket {
        Socket::with_headers(stream, path, "")
    }

    pub(crate) fn with_headers(stream: TcpStream, path: &str, headers: &str) -> Socket {
        let (head, stream) = shake_hands(stream, path, headers);
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        assert!(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
        Socket(WebSocket::from_raw_socket(stream, Role::Client, None))
    }

    /// The next text, or the code and the reason of the close.
    pub(crate) fn read(&mut self) -> Result<String, (CloseCode, String)> {
        loop {
            match self.0.read() {
                Ok(Message::Text(text)) => return Ok(text.to_string()),
                Ok(Message::Close(Some(frame))) => return Err((frame.code, frame.reason.to_string())),
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                other => panic!("not a text and not a close: {other:?}"),
            }
        }
    }

    /// Service and metric of the next event.
    pub(crate) fn event(&mut self) -> (String, i64) {
        let text = self.read().expect("an event");
        let event: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        (event["service"].as_str().unwrap_or("").to_owned(), event["metric"].as_i64().unwrap_or(-1))
    }
}

const OF_A: &str = "/index?subscribe=true&query=service%20%3D~%20%22a%25%22";

#[test]
fn a_subscriber_gets_what_is_in_the_index_and_then_what_changes() {
    let (mut daemon, mut client, at) = start("(streams (index))");
    send(&mut client, "a1", 1);
    send(&mut client, "b1", 2);
    let mut dashboard = Socket::open(at, OF_A);
    let text = dashboard.read().expect("an event");
    assert!(
        text.starts_with(
            "{\"host\":\"web1\",\"service\":\"a1\",\"state\":null,\"description\":null,\"metric\":1,\"tags\":null,\"time\":\"20"
        ) && text.ends_with("Z\",\"ttl\":60.0}"),
        "{text}"
    );
    send(&mut client, "b2", 3);
    send(&mut client, "a2", 4);
    send(&mut client, "a1", 5);
    assert_eq!(dashboard.event(), ("a2".into(), 4));
    assert_eq!(dashboard.event(), ("a1".into(), 5));
    // Frames of a subscriber have no meaning.
    dashboard.0.send(Message::text("hello")).expect("it reads");
    send(&mut client, "a3", 6);
    assert_eq!(dashboard.event(), ("a3".into(), 6));
    let mut once = Socket::open(at, "/index/?query=metric+%3E+4");
    let mut found = [once.event(), once.event()];
    found.sort();
    assert_eq!(found, [("a1".into(), 5), ("a3".into(), 6)]);
    assert_eq!(once.read(), Err((CloseCode::Normal, "these are all".into())));
    let metrics = daemon.get("/metrics").body;
    assert!(metrics.contains("staunch_streams_subscribers{transform=\"streams\"} 1"), "{metrics}");
    daemon.signal("TERM");
    assert_eq!(dashboard.read(), Err((CloseCode::Away, "the daemon stops".into())));
    assert!(daemon.wait_exit().success());
}

#[test]
fn a_subscriber_of_a_channel_gets_what_is_published_there() {
    let (mut daemon, mut client, at) = start("(streams (where (metric 2) (publish \"a/b\")) (publish :a))");
    let mut dashboard = Socket::open(at, "/pubsub/a%2Fb?query=true");
    let mut other = Socket::open(at, "/pubsub/a?query=true");
    // A subscription begins after the handshake.
    wait_for("both", || {
        daemon
            .get("/metrics")
            .body
            .contains("staunch_streams_subscribers{transform=\"streams\"} 2")
            .then_some(())
    });
    send(&mut client, "a", 1);
    send(&mut client, "b", 2);
    assert_eq!(dashboard.event(), ("b".into(), 2));
    let mut index = Socket::open(at, OF_A);
    assert_eq!(index.read(), Err((CloseCode::Policy, "no index".into())));
    daemon.signal("TERM");
    assert_eq!(other.read().map_err(|(code, _)| code), Err(CloseCode::Away), "a keyword is another channel");
    assert!(daemon.wait_exit().success());
}

#[test]
fn a_request_without_a_right_query_is_closed_with_the_reason() {
    let (mut daemon, _client, at) = start("(streams (index))");
    let long = format!("/index?query={}", "x".repeat(20_000));
    for (path, reason) in [
        ("/index?subscribe=true", "the address has no query"),
        ("/index?query=oh+no", "mismatched input 'no' expecting"),
        ("/pubsub/a?query=", ""),
        ("/other?query=true", "there is no /other"),
        (&long, "the query has more than 16384 bytes"),
    ] {
        let (code, why) = Socket::open(at, path).read().expect_err("it is closed");
        assert_eq!(code, CloseCode::Policy, "{path}: {why}");
        assert!(why.starts_with(reason), "{path}: {why}");
    }
    assert_eq!(get(at, "/other").expect("it answers").status, 404);
    assert_eq!(get(at, "/index").expect("it answers").status, 400);
    daemon.stop();
}

#[test]
fn events_that_are_put_are_in_the_index_and_have_a_reply_each() {
    let (mut daemon, _client, at) = start("(streams (index))");
    let body = "{\"service\":\"a1\",\"metric\":1,\"tags\":[\"t\"],\"n\":{\"b\":[true]}}\n[]\nno json\n{\"service\":\"a2\",\"metric\":2}";
    let answer = with_headers(at, "PUT /events", "", body).expect("it answers");
    assert_eq!(answer.status, 200);
    let lines: Vec<&str> = answer.body.lines().collect();
    assert_eq!(lines.len(), 4, "{}", answer.body);
    assert_eq!((lines[0], lines[1], lines[3]), ("{}", "{\"error\":\"an event must be an object\"}", "{}"));
    let mut client = Socket::open(at, "/events");
    client.0.send(Message::text("{\"service\":\n\"a3\",\"metric\":3}")).expect("it reads");
    assert_eq!(client.read(), Ok("{}".to_owned()));
    client.0.send(Message::text("{\"time\":5}")).expect("it reads");
    assert!(client.read().expect("a reply").starts_with("{\"error\":"));
    client.0.send(Message::text("null")).expect("it reads");
    assert_eq!(client.read().map_err(|(code, _)| code), Err(CloseCode::Normal));
    daemon.wait_source("riemann-ws-0", "aggregated", 3);
    let mut once = Socket::open(at, "/index?query=true");
    let mut found = [once.event(), once.event(), once.event()];
    found.sort();
    assert_eq!(found, [("a1".into(), 1), ("a2".into(), 2), ("a3".into(), 3)]);
    let mut tagged = Socket::open(at, "/index?query=tagged+%22t%22");
    assert!(tagged.read().expect("an event").ends_with(",\"n\":{\"b\":[true]}}"));
    let source = daemon.source("riemann-ws-0");
    assert_eq!(source["losses"]["rejected"]["bad_message"], serde_json::json!(3), "{source}");
    daemon.assert_sums_hold();
    daemon.stop();
}

#[test]
fn server_sent_events_are_the_index_and_what_changes() {
    let (mut daemon, mut client, _) = start("(streams (index))");
    send(&mut client, "a1", 1);
    let mut stream = TcpStream::connect(daemon.at("riemann-sse-0", "tcp")).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream
        .write_all(
            b"GET /index?query=true HTTP/1.1\r\nHost: 127.0.0.2\r\nOrigin: http://localhost:4567\r\n\r\n",
        )
        .expect("it reads");
    let mut got = String::new();
    let mut until = |stream: &mut TcpStream, what: &str| {
        let mut piece = [0; 4096];
        while !got.contains(what) {
            let len = stream.read(&mut piece).expect("it sends");
            assert!(len > 0, "{got}");
            got.push_str(std::str::from_utf8(&piece[..len]).expect("text"));
        }
        got.clone()
    };
    let head = until(&mut stream, "\"ttl\":60.0}\n\n").to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 200 ok\r\n"), "{head}");
    for header in [
        "content-type: text/event-stream",
        "cache-control: no-cache",
        "access-control-allow-origin: http://localhost:4567",
    ] {
        assert!(head.contains(header), "{head}");
    }
    assert!(head.contains("data: {\"host\":\"web1\",\"service\":\"a1\""), "{head}");
    send(&mut client, "a2", 2);
    until(&mut stream, "data: {\"host\":\"web1\",\"service\":\"a2\"");
    daemon.signal("TERM");
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("it ends");
    assert!(daemon.wait_exit().success());
}

#[test]
fn a_web_page_elsewhere_may_not_subscribe() {
    let (mut daemon, _client, at) = start("(streams (index))");
    for (origin, status) in [("http://evil.example", "403"), ("http://localhost:4567", "101")] {
        let stream = TcpStream::connect(at).expect("it listens");
        let (head, _) = shake_hands(stream, OF_A, &format!("Origin: {origin}\r\n"));
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{origin}: {head}");
    }
    let answer =
        with_headers(at, "PUT /events", "Origin: http://evil.example\r\n", "{}").expect("it answers");
    assert_eq!(answer.status, 403);
    assert!(answer.body.contains("`allowed_origins`"), "{}", answer.body);
    daemon.stop();
}

#[test]
fn a_subscriber_stays_through_a_reload() {
    let (mut daemon, mut client, at) = start("(streams (index))");
    send(&mut client, "a1", 1);
    let mut dashboard = Socket::open(at, OF_A);
    assert_eq!(dashboard.event(), ("a1".into(), 1));
    let file = daemon.file.clone().expect("it has a config");
    let changed = config("(let [i (index)] (streams (with :service \"a2\" i)))");
    daemon.hang_up("done", || std::fs::write(&file, changed).expect("it can be written"));
    send(&mut client, "b", 7);
    assert_eq!(dashboard.event(), ("a2".into(), 7));
    daemon.stop();
}

#[test]
fn subscribers_that_sleep_are_closed_and_the_others_get_every_event() {
    const EACH: usize = 15;
    const EVENTS: i64 = 160;
    let (mut daemon, mut client, at) = start(
        "(streams (smap (fn [e] (assoc e :description (apply str (repeat 5000 \"0123456789\")))) (publish \"c\")))",
    );
    let subscribe = || {
        let socket =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
        socket.set_recv_buffer_size(16 * 1024).expect("a socket");
        socket.connect(&at.into()).expect("it listens");
        Socket::on(socket.into(), "/pubsub/c?query=true")
    };
    let sleepers: Vec<Socket> = (0..EACH).map(|_| subscribe()).collect();
    let mut readers: Vec<Socket> = (0..EACH).map(|_| subscribe()).collect();
    let open = format!("staunch_streams_subscribers{{transform=\"streams\"}} {}", 2 * EACH);
    wait_for("all", || daemon.get("/metrics").body.contains(&open).then_some(()));
    for number in 0..EVENTS {
        send(&mut client, "a", number);
        for reader in &mut readers {
            assert_eq!(reader.event(), ("a".into(), number));
        }
    }
    for mut sleeper in sleepers {
        let mut read = 0;
        let end = loop {
            match sleeper.0.read() {
                Ok(Message::Text(_)) => read += 1,
                Ok(Message::Ping(_)) => {}
                Ok(Message::Close(frame)) => break frame.map(|frame| frame.code),
                // After half a minute without a byte read.
                Err(Error::Io(_) | Error::Protocol(_) | Error::ConnectionClosed) => break None,
                other => panic!("{other:?}"),
            }
        };
        assert!(read < EVENTS, "it has lost some");
        assert!(matches!(end, None | Some(CloseCode::Again)), "{end:?}");
    }
    send(&mut client, "a", EVENTS);
    assert!(readers.iter_mut().all(|reader| reader.event() == ("a".into(), EVENTS)));
    let open = format!("staunch_streams_subscribers{{transform=\"streams\"}} {EACH}");
    wait_for("the sleepers have gone", || daemon.get("/metrics").body.contains(&open).then_some(()));
    daemon.assert_sums_hold();
    daemon.stop();
}
