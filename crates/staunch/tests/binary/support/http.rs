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
    let mut stream = TcpStream::connect(at).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8(answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let head = head.to_lowercase();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    assert!(!head.contains("transfer-encoding"), "a body whose length is known is not chunked: {head}");
    Some(Answer { status, head, body: body.to_owned() })
}
