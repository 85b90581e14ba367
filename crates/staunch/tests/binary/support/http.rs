//! HTTP by hand: one request, one connection, the whole answer.

use std::fmt::Display;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

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
    try_get(at, path).ok()
}

/// GET `path`; otherwise what failed, and after how long.
pub(crate) fn try_get(at: SocketAddr, path: &str) -> Result<Answer, String> {
    try_ask(at, &format!("GET {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n"))
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
    try_ask(at, request).ok()
}

fn try_ask(at: SocketAddr, request: &str) -> Result<Answer, String> {
    let since = Instant::now();
    let failed = |what: &str, why: &dyn Display| format!("{what} after {:?}: {why}", since.elapsed());
    let mut stream = TcpStream::connect(at).map_err(|error| failed("no connection", &error))?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(|error| failed("no timeout", &error))?;
    stream.write_all(request.as_bytes()).map_err(|error| failed("the request was not taken", &error))?;
    let mut answer = Vec::new();
    if let Err(error) = stream.read_to_end(&mut answer) {
        return Err(failed(&format!("the answer was cut at {} bytes", answer.len()), &error));
    }
    let answer = String::from_utf8(answer).map_err(|error| failed("the answer is no text", &error))?;
    let cut = || failed("the answer was cut", &format!("{answer:?}"));
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(cut)?;
    let head = head.to_lowercase();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(cut)?;
    assert!(!head.contains("transfer-encoding"), "a body whose length is known is not chunked: {head}");
    Ok(Answer { status, head, body: body.to_owned() })
}
