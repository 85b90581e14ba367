//! Points in the bodies of HTTP requests: lines, pickle and protobuf, and what is refused.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::json;

use crate::support::graphite::FakeGraphite;
use crate::support::http::{Answer, post, with_headers};
use crate::support::{Builder, Daemon, PATIENCE};

const CONFIG: &str = "[sources.web]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\nencoding = \"http\"\n\
    max_message_bytes = \"1KiB\"\nidle_timeout = \"300ms\"\n\
    [outputs.o]\ntype = \"graphite\"\nfrom = [\"web\"]\nto = [\"tcp://127.0.0.1:1\"]\n";

/// `a.b` with 1.5 at 1444991955, from python's pickle, protocol 2 (spec graphite §1.2).
const PICKLE: &[u8] =
    b"\x80\x02]q\x00U\x03a.bq\x01J\xd3\xd0\x20VG\x3f\xf8\x00\x00\x00\x00\x00\x00\x86q\x02\x86q\x03a.";

fn start(endpoint: &FakeGraphite) -> (Daemon, SocketAddr) {
    let daemon = Builder::native(&CONFIG.replace("tcp://127.0.0.1:1", &endpoint.to())).start();
    let at = daemon.at("web", "tcp");
    (daemon, at)
}

fn lines(at: SocketAddr, body: &str) -> Answer {
    post(at, "/", "text/plain", body).expect("it answers")
}

fn bytes(at: SocketAddr, headers: &str, body: &[u8]) -> String {
    let mut stream = TcpStream::connect(at).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let head = format!("POST / HTTP/1.1\r\nHost: a\r\n{headers}Connection: close\r\n\r\n");
    stream.write_all(&[head.as_bytes(), body].concat()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

fn with_length(kind: &str, body: &[u8]) -> String {
    format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", body.len())
}

#[test]
fn bodies_of_lines_and_messages_are_points() {
    let endpoint = FakeGraphite::new();
    let (mut daemon, at) = start(&endpoint);
    let answer = lines(at, "a.b 1 1444991955\nc.d 2 1444991955");
    assert_eq!(
        (answer.status, answer.body.as_str()),
        (200, "2 points accepted\n"),
        "the last line has no line feed"
    );
    let protobuf = b"\x0a\x16\x0a\x03a.b\x12\x0f\x08\xd3\xa1\x83\xb1\x05\x11\x00\x00\x00\x00\x00\x00\xf8\x3f";
    for (kind, body) in [
        ("application/python-pickle", PICKLE),
        ("application/protobuf; a=b", &protobuf[..]),
        ("x/y", b"e.f 3 1444991955\n"),
    ] {
        let answer = bytes(at, &with_length(kind, body), body);
        assert!(
            answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("1 point accepted\n"),
            "{kind}: {answer}"
        );
    }
    // Two requests on a connection; the first body is in chunks, which cut a line.
    let mut stream = TcpStream::connect(at).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let chunks: String = ["g.h", " 4 1444991955\ni.", "j 5 1444991955\nk", ""].map(chunk).concat();
    let chunked = format!("PUT /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
    let next =
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 17\r\nConnection: close\r\n\r\nl.m 6 1444991955\n";
    stream.write_all(format!("{chunked}{next}").as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    assert!(answer.contains("2 points accepted; the first bad line is `no_value`"), "{answer}");
    assert!(answer.ends_with("1 point accepted\n"), "{answer}");
    let source = daemon.source("web");
    assert_eq!(
        (&source["received"], &source["losses"]["rejected"]["no_value"]),
        (&json!(9), &json!(1)),
        "{source}"
    );
    assert_eq!(source["balanced"], json!(true));
    daemon.stop();
}

#[test]
fn what_cannot_be_taken_is_answered_with_a_reason() {
    let endpoint = FakeGraphite::new();
    let (mut daemon, at) = start(&endpoint);
    let ask =
        |what: &str, headers: &str, body: &str| with_headers(at, what, headers, body).expect("it answers");
    let long = "x".repeat(1025);
    let cases = [
        (ask("GET /", "", ""), 405, "with POST"),
        (ask("POST /", "Origin: http://a.example\r\n", "a 1 1"), 403, "web page"),
        (ask("POST /", "Content-Encoding: gzip\r\n", "a 1 1"), 415, "compressed"),
        (ask("POST /", "Content-Type: application/python-pickle\r\n", "no pickle"), 400, "bad_message"),
        (ask("POST /", "Content-Type: application/protobuf\r\n", &long), 413, "long"),
        (ask("POST /", "", "only words\n"), 400, "bad_value"),
        (lines(at, ""), 200, "0 points"),
    ];
    for (answer, status, words) in cases {
        assert_eq!(answer.status, status, "{}", answer.body);
        assert!(answer.body.contains(words), "{words}: {}", answer.body);
    }
    let chunked = "Content-Type: application/protobuf\r\nTransfer-Encoding: chunked\r\n";
    assert!(bytes(at, chunked, b"0\r\n\r\n").starts_with("HTTP/1.1 411 "));
    // A client that stops in its body: what came whole counts.
    let silent = bytes(at, "Content-Length: 100\r\n", b"a 1 1444991955\nb 2");
    assert!(silent.starts_with("HTTP/1.1 408 ") && silent.contains("300 ms"), "{silent}");
    let source = daemon.source("web");
    assert_eq!((&source["received"], &source["balanced"]), (&json!(5), &json!(true)), "{source}");
    daemon.stop();
}

#[test]
fn options_that_http_does_not_have_are_refused() {
    let more = "transport = \"gzip\"\n[outputs.o]";
    let (_, all) = Builder::native(&CONFIG.replace("[outputs.o]", more)).run_to_end();
    assert!(all.contains("`transport` has no meaning with `encoding = \"http\"`"), "{all}");
}

#[test]
fn each_request_is_judged_by_itself() {
    let endpoint = FakeGraphite::new();
    let (mut daemon, at) = start(&endpoint);
    for _ in 0..3 {
        let bad = lines(at, "bad\n");
        assert_eq!(bad.status, 400, "{}", bad.body);
        assert!(bad.body.starts_with("0 points accepted; the first bad line is `no_value`"), "{}", bad.body);
        let mixed = lines(at, "a.b 1 1444991955\na.b xx 1444991955\nbad\n");
        assert_eq!(mixed.status, 200, "{}", mixed.body);
        assert!(
            mixed.body.starts_with("1 point accepted; the first bad line is `bad_value`"),
            "{}",
            mixed.body
        );
        assert_eq!(lines(at, "").body, "0 points accepted\n", "an empty body is no mistake");
    }
    daemon.stop();
}
