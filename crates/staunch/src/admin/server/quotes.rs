//! Request lines as people type them: `"`, `<` and `>` in the path or query become `%22`, `%3C` and `%3E`.
//!
//! A URL has them escaped, and hyper answers 400 otherwise. graphite-web takes them as they are, and so do the scripts that were written for
//! it: `curl 'http://host/render?target=alias(a,"b")'`.
//! Path of a byte: the socket, or TLS -> **[`Quotes`]** -> hyper. It follows the framing of requests, so that no byte of a body changes:
//! headers without a length end a request, `Content-Length` says how many bytes follow. After anything else ([`Part::Rest`]) the rest of the
//! connection passes as it is.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Most bytes that are read at once outside of bodies.
const READ_BYTES: usize = 4096;

/// First bytes of a header that are looked at: the longest name that counts, and the largest length.
const HEADER_BYTES_MAX: usize = 64;

/// Where in a request the next byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// In the request line, behind so many spaces. The target is behind the first one.
    Line { spaces: u8, begun: bool },
    /// In the headers. So many bytes of a body follow them.
    Headers { body: Option<u64> },
    /// In a body, before so many bytes.
    Body(u64),
    /// Something that only hyper understands.
    Rest,
}

impl Part {
    const START: Part = Part::Line { spaces: 0, begun: false };
}

/// A place in the requests of a connection.
#[derive(Debug)]
struct Place {
    part: Part,
    /// The beginning of the current header.
    header: Vec<u8>,
}

impl Place {
    fn new() -> Place {
        Place { part: Part::START, header: Vec::with_capacity(HEADER_BYTES_MAX) }
    }

    /// Appends `raw` to `out`, with escapes.
    fn pass(&mut self, mut raw: &[u8], out: &mut Vec<u8>) {
        while let Some((byte, rest)) = raw.split_first() {
            match self.part {
                Part::Rest => {
                    out.extend_from_slice(raw);
                    return;
                }
                Part::Body(left) => {
                    let (body, behind) =
                        raw.split_at(usize::try_from(left).map_or(raw.len(), |left| left.min(raw.len())));
                    out.extend_from_slice(body);
                    let left = left - body.len() as u64;
                    self.part = if left == 0 { Part::START } else { Part::Body(left) };
                    raw = behind;
                    continue;
                }
                Part::Line { spaces, begun } => self.line(*byte, (spaces, begun), out),
                Part::Headers { body } => {
                    out.push(*byte);
                    self.header(*byte, body);
                }
            }
            raw = rest;
        }
    }

    fn line(&mut self, byte: u8, (spaces, begun): (u8, bool), out: &mut Vec<u8>) {
        match byte {
            b'"' if spaces == 1 => out.extend_from_slice(b"%22"),
            b'<' if spaces == 1 => out.extend_from_slice(b"%3C"),
            b'>' if spaces == 1 => out.extend_from_slice(b"%3E"),
            _ => out.push(byte),
        }
        self.part = match byte {
            // Empty lines before a request are skipped.
            b'\r' | b'\n' if !begun => Part::START,
            b'\n' => Part::Headers { body: Some(0) },
            b' ' => Part::Line { spaces: spaces.saturating_add(1), begun: true },
            _ => Part::Line { spaces, begun: true },
        };
    }

    fn header(&mut self, byte: u8, body: Option<u64>) {
        if byte != b'\n' {
            if self.header.len() < HEADER_BYTES_MAX {
                self.header.push(byte);
            }
            return;
        }
        let is_cut = self.header.len() == HEADER_BYTES_MAX;
        let line = self.header.trim_ascii_end();
        self.part = if line.is_empty() {
            match body {
                Some(0) => Part::START,
                Some(bytes) => Part::Body(bytes),
                None => Part::Rest,
            }
        } else {
            Part::Headers { body: body_after((line, is_cut), body) }
        };
        self.header.clear();
    }
}

/// The bytes of a body, as a header line says, of which the end may be cut off. None: not known.
fn body_after((line, is_cut): (&[u8], bool), before: Option<u64>) -> Option<u64> {
    let (name, value) = line.split_at(line.iter().position(|byte| *byte == b':').unwrap_or(line.len()));
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    if is("content-length") {
        let digits = value.get(1..).unwrap_or_default().trim_ascii();
        let is_plain = !is_cut && (1..=18).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
        let bytes = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
        // A second one is hyper's to judge.
        return bytes.filter(|_| is_plain && before == Some(0));
    }
    if is("transfer-encoding") || is("upgrade") {
        return None;
    }
    // A name with a space, or a folded line: others may read something else in it.
    let is_plain = name.iter().all(|byte| byte.is_ascii_graphic());
    before.filter(|_| is_plain)
}

/// A stream whose reader gets the request lines escaped.
#[derive(Debug)]
pub(super) struct Quotes<S> {
    stream: S,
    place: Place,
    /// Read and not passed on: an escape can be longer than the reader's room.
    pending: Vec<u8>,
    passed: usize,
}

impl<S> Quotes<S> {
    /// At the beginning of a connection.
    pub(super) fn new(stream: S) -> Quotes<S> {
        Quotes { stream, place: Place::new(), pending: Vec::new(), passed: 0 }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Quotes<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Quotes { stream, place, pending, passed } = &mut *self;
        if *passed == pending.len() {
            if place.part == Part::Rest {
                return Pin::new(stream).poll_read(cx, into);
            }
            let mut raw = [0; READ_BYTES];
            let mut raw = ReadBuf::new(&mut raw);
            ready!(Pin::new(stream).poll_read(cx, &mut raw))?;
            pending.clear();
            *passed = 0;
            place.pass(raw.filled(), pending);
        }
        let next = &pending[*passed..];
        let next = &next[..next.len().min(into.remaining())];
        into.put_slice(next);
        *passed += next.len();
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Quotes<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, from)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, from)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[test]
    fn only_targets_of_request_lines_are_escaped() {
        let get = "GET /r?t=a(\"b\")&<> HTTP/1.1\r\nX: \"\r\n\r\n";
        let got = "GET /r?t=a(%22b%22)&%3C%3E HTTP/1.1\r\nX: \"\r\n\r\n";
        for (sent, want) in [
            (get.to_owned(), got.to_owned()),
            // One after the other, also with empty lines between them and with LF alone.
            (
                format!("{get}\r\n{}{get}", get.replace('\r', "")),
                format!("{got}\r\n{}{got}", got.replace('\r', "")),
            ),
            // A body that looks like a request.
            (
                format!("POST / HTTP/1.1\r\ncontent-LENGTH: {}\r\n\r\n{get}{get}", get.len()),
                format!("POST / HTTP/1.1\r\ncontent-LENGTH: {}\r\n\r\n{get}{got}", get.len()),
            ),
            (
                format!("POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n{get}"),
                format!("POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n{got}"),
            ),
        ] {
            let mut out = Vec::new();
            Place::new().pass(sent.as_bytes(), &mut out);
            assert_eq!(String::from_utf8_lossy(&out), want);
            // In the same way byte by byte.
            let (mut place, mut out) = (Place::new(), Vec::new());
            sent.bytes().for_each(|byte| place.pass(&[byte], &mut out));
            assert_eq!(String::from_utf8_lossy(&out), want);
        }
        // Where another reader may see another end of the request, nothing changes behind it.
        for doubtful in [
            "Transfer-Encoding: chunked",
            "Content-Length: 5\r\nContent-Length: 5",
            "Content-Length: 0x5",
            "Content-Length: +5",
            "Content-Length: 9999999999999999999999",
            "Content-Length",
            "Content-Length:                                               5",
            "Content-Length : 5",
            "X: y\r\n Content-Length: 5",
            "Upgrade: websocket",
        ] {
            let sent = format!("POST / HTTP/1.1\r\n{doubtful}\r\n\r\n12345{get}");
            let mut out = Vec::new();
            Place::new().pass(sent.as_bytes(), &mut out);
            assert_eq!(String::from_utf8_lossy(&out), sent);
        }
        // Neither methods nor versions.
        for line in ["G\"T / HTTP/1.1\r\n", "GET / \"HTTP/1.1\r\n", "\"\r\n"] {
            let mut out = Vec::new();
            Place::new().pass(line.as_bytes(), &mut out);
            assert_eq!(String::from_utf8_lossy(&out), line);
        }
    }

    #[tokio::test]
    async fn a_reader_with_little_room_gets_all() {
        let (ours, mut theirs) = tokio::io::duplex(1 << 16);
        let quotes = "\"".repeat(10_000);
        theirs.write_all(format!("GET /{quotes} HTTP/1.1\r\n\r\n").as_bytes()).await.expect("there is room");
        drop(theirs);
        let (mut ours, mut got, mut room) = (Quotes::new(ours), Vec::new(), [0; 7]);
        loop {
            match ours.read(&mut room).await.expect("no error") {
                0 => break,
                len => got.extend_from_slice(&room[..len]),
            }
        }
        assert_eq!(got, format!("GET /{} HTTP/1.1\r\n\r\n", "%22".repeat(10_000)).into_bytes());
    }
}
