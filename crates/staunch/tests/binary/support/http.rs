//! HTTP by hand: one request, one connection, the whole answer.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::PATIENCE;

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Status code.
    pub(crate) status: u16,
    /// Everything before the blank line, in small letters.
    pub(crate) head: String,
    /// The body.
    pub(crate) body: String,
}

/// GET `path`. None when nobody listens or the answer was cut.
pub(crate) fn get(at: SocketAddr, path: &str) -> Option<Answer> {
    ask(at, &format!("GET {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n"))
}

/// POST of `body` to `path`, in the same way.
#[allow(dead_code, reason = "not every program needs it")]
pub(crate) fn post(at: SocketAddr, path: &str, content_type: &str, body: &str) -> Option<Answer> {
    let len = body.len();
    let head = format!("Host: {at}\r\nContent-Type: {content_type}\r\nContent-Length: {len}");
    ask(at, &format!("POST {path} HTTP/1.1\r\n{head}\r\nConnection: close\r\n\r\n{body}"))
}

/// A request with a method and headers of its own, each ending in `\r\n`.
#[allow(dead_code, reason = "not every program needs it")]
pub(crate) fn with_headers(at: SocketAddr, what: &str, headers: &str, body: &str) -> Option<Answer> {
    let length = body.len();
    let head = format!("Host: {at}\r\n{headers}Content-Length: {length}\r\nConnection: close");
    ask(at, &format!("{what} HTTP/1.1\r\n{head}\r\n\r\n{body}"))
}

fn ask(at: SocketAddr, request: &str) -> Option<Answer> {
    let mut stream = TcpStream::connect(at).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8(answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let head = head.to_lowercase();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    assert!(!head.contains("transfer-encoding"), "a body whose length is known is not chunked: {head}");
    Some(Answer { status, head, body: body.to_owned() })
}
