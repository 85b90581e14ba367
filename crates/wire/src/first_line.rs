//! Protocol detection on the first line of a connection: rejects HTTP requests and TLS handshakes on a port for
//! lines.
//!
//! A web page can make any browser send a request to a local port. Without this check the request body would be
//! parsed as lines. The only memory is the state machine, so the result does not depend on where reads cut the bytes,
//! nor on the length of the line.
//! Not here: closing the connection (`staunch`). Protocols with length-prefixed frames need no check: such bytes are
//! a length over every limit.
//! Invariants: every HTTP request is detected, with any method that RFC 9110 allows, of any length; no valid sample
//! or point is taken for a request. `GET 1 1700000000` is a valid point: a request ends in `HTTP/1.1` or the like,
//! which is no time, value or type, and its target contains no `#`, which starts tags in StatsD.

use model::Reject;

/// Bytes of a TLS ClientHello record that are checked: record header, handshake header, version.
const HELLO_BYTES: usize = 11;

/// A protocol that is not lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// An HTTP request, the preface of HTTP/2 included.
    Http,
    /// A TLS handshake.
    Tls,
}

impl Foreign {
    /// The reject reason, and the protocol's name for the log.
    pub fn reason(self) -> (Reject, &'static str) {
        match self {
            Foreign::Http => (Reject::HttpRequest, "an HTTP request"),
            Foreign::Tls => (Reject::TlsHandshake, "a TLS handshake"),
        }
    }
}

/// The result so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// Not decided yet: push more bytes.
    Undecided,
    /// Lines: no further check is needed.
    Lines,
    /// Another protocol: close the connection.
    Foreign(Foreign),
}

/// Checks the first non-empty line of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct FirstLine {
    state: State,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    /// At most empty lines so far.
    #[default]
    Begin,
    /// In a method.
    Method,
    /// After the first space; true once a byte of the target was read.
    Target(bool),
    /// In `HTTP/`, after this many of its bytes.
    Protocol(u8),
    /// In the digits of the version.
    Version(Version),
    /// In the first bytes of a TLS record.
    Hello([u8; HELLO_BYTES], u8),
    Decided(Opening),
}

#[derive(Clone, Copy, Debug)]
enum Version {
    Begin,
    Major,
    Dot,
    Minor,
}

impl FirstLine {
    /// Takes the next bytes of the connection.
    pub fn push(&mut self, bytes: &[u8]) -> Opening {
        for byte in bytes {
            if let State::Decided(opening) = self.state {
                return opening;
            }
            self.state = self.state.after(*byte);
        }
        match self.state {
            State::Decided(opening) => opening,
            _ => Opening::Undecided,
        }
    }
}

impl State {
    fn after(self, byte: u8) -> State {
        const LINES: State = State::Decided(Opening::Lines);
        match (self, byte) {
            (State::Begin, b'\r' | b'\n') => State::Begin,
            (State::Begin | State::Method, byte) if is_token(byte) => State::Method,
            (State::Begin, 0x16) => State::Hello([0x16; HELLO_BYTES], 1),
            (State::Method, b' ') => State::Target(false),
            (State::Target(true), b' ') => State::Protocol(0),
            (State::Target(_), b'!'..=b'"' | b'$'..=b'~' | 0x80..) => State::Target(true),
            (State::Protocol(at), byte) if b"HTTP/".get(usize::from(at)) == Some(&byte) => {
                if at == 4 {
                    State::Version(Version::Begin)
                } else {
                    State::Protocol(at + 1)
                }
            }
            (State::Version(Version::Begin), b'0'..=b'9') => State::Version(Version::Major),
            (State::Version(Version::Major), b'.') => State::Version(Version::Dot),
            (State::Version(Version::Dot), b'0'..=b'9') => State::Version(Version::Minor),
            (State::Version(Version::Major | Version::Minor), b'\r' | b'\n') => {
                State::Decided(Opening::Foreign(Foreign::Http))
            }
            (State::Hello(mut hello, at), byte) => {
                hello[usize::from(at)] = byte;
                let at = at + 1;
                match usize::from(at) == HELLO_BYTES {
                    false if may_be_hello(&hello[..usize::from(at)]) => State::Hello(hello, at),
                    true if is_hello(&hello) => State::Decided(Opening::Foreign(Foreign::Tls)),
                    _ => LINES,
                }
            }
            (State::Decided(_), _) => self,
            _ => LINES,
        }
    }
}

/// Bytes allowed in a method (`tchar` of RFC 9110 §5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Major version 3 covers SSL 3.0 to TLS 1.3. Type 1 is ClientHello, whose length has three bytes.
fn may_be_hello(begin: &[u8]) -> bool {
    let wanted: [fn(u8) -> bool; HELLO_BYTES] = [
        |byte| byte == 0x16,
        |byte| byte == 3,
        |byte| byte <= 4,
        |_| true,
        |_| true,
        |byte| byte == 1,
        |byte| byte == 0,
        |_| true,
        |_| true,
        |byte| byte == 3,
        |byte| byte <= 4,
    ];
    begin.iter().zip(wanted).all(|(byte, wanted)| wanted(*byte))
}

/// The two lengths must match: a message continues in another record only when the first record is full.
fn is_hello(begin: &[u8; HELLO_BYTES]) -> bool {
    let record = u32::from(u16::from_be_bytes([begin[3], begin[4]]));
    let message = u32::from(u16::from_be_bytes([begin[7], begin[8]])) + 4;
    may_be_hello(begin) && (message == record || (message > record && record >= HELLO_BYTES as u32))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The result, asserted to be the same wherever the bytes are cut.
    #[track_caller]
    fn opening(bytes: &[u8]) -> Opening {
        let whole = FirstLine::default().push(bytes);
        for step in 1..4 {
            let mut first = FirstLine::default();
            let mut found = Opening::Undecided;
            for piece in bytes.chunks(step) {
                found = first.push(piece);
            }
            assert_eq!(found, whole, "{} in pieces of {step}", bytes.escape_ascii());
        }
        whole
    }

    #[test]
    fn http_requests_are_detected_and_similar_lines_are_not() {
        let http = Opening::Foreign(Foreign::Http);
        let table: &[(&str, Opening)] = &[
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\na:1|c\n", http),
            ("POST /a:1|c HTTP/1.0\n", http),
            ("POST /?a=1 HTTP/1.1\r", http),
            ("OPTIONS * HTTP/1.1\r\n", http),
            ("CONNECT a.test:443 HTTP/1.1\r\n", http),
            ("M-SEARCH * HTTP/1.1\r\n", http),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", http),
            ("GET http://a.test/ HTTP/3\r\n", http),
            ("\r\n\nPUT /\u{fc} HTTP/1.1\r\n", http),
            ("patch / HTTP/1.1\r\n", http),
            ("x!#$%&'*+-.^_`|~9 / HTTP/1.1\r\n", http),
            // Incomplete so far.
            ("", Opening::Undecided),
            ("GET", Opening::Undecided),
            ("GET 1", Opening::Undecided),
            ("GET / HTTP/1.1", Opening::Undecided),
            // Valid lines, and invalid ones that are not requests.
            ("GET 1 1700000000\n", Opening::Lines),
            ("GET 1 1700000000", Opening::Lines),
            ("GET\n", Opening::Lines),
            ("GET:1|c\nGET / HTTP/1.1\n", Opening::Lines),
            ("GET /:1|c\n", Opening::Lines),
            ("GET /:1|c|#a: HTTP/1.1\n", Opening::Lines),
            ("GET / HTTP/1.1:1|c\n", Opening::Lines),
            ("GET / HTTP/1.1|c\n", Opening::Lines),
            ("GET / HTTP/11\n", Opening::Lines),
            ("GET / HTTP/.1\n", Opening::Lines),
            ("GET / HTTP/1.\n", Opening::Lines),
            ("GET / HTTP/1.1 \n", Opening::Lines),
            ("GET  / HTTP/1.1\n", Opening::Lines),
            ("GET\t/ HTTP/1.1\n", Opening::Lines),
            ("GET /\n", Opening::Lines),
            ("GET / http/1.1\n", Opening::Lines),
            ("get: / HTTP/1.1\n", Opening::Lines),
            ("g\u{e9}t / HTTP/1.1\n", Opening::Lines),
            ("a 1 1700000000\n", Opening::Lines),
            ("a;b=c 1 1700000000\n", Opening::Lines),
            (" GET / HTTP/1.1\n", Opening::Lines),
            ("api.hits:3|c\n", Opening::Lines),
            ("health\n", Opening::Lines),
        ];
        for (bytes, want) in table {
            assert_eq!(opening(bytes.as_bytes()), *want, "{bytes:?}");
        }
    }

    #[test]
    fn http_requests_with_a_long_method_or_target_are_detected() {
        // The line of a long request would be discarded as too long, and its body parsed.
        for (method, target) in [(300_000, 1), (1, 300_000)] {
            let long = format!("{} /{} HTTP/1.1\r\n", "M".repeat(method), "a".repeat(target));
            assert_eq!(FirstLine::default().push(long.as_bytes()), Opening::Foreign(Foreign::Http));
        }
    }

    #[test]
    fn tls_handshakes_are_detected_and_unusual_names_are_not() {
        let hello = |record: u16, message: u16| {
            let mut bytes = vec![0x16, 3, 1];
            bytes.extend_from_slice(&record.to_be_bytes());
            bytes.extend_from_slice(&[1, 0]);
            bytes.extend_from_slice(&message.to_be_bytes());
            bytes.extend_from_slice(&[3, 3]);
            bytes
        };
        let tls = Opening::Foreign(Foreign::Tls);
        // Here 10 is part of a length, not a line feed.
        for (bytes, want) in [
            (hello(512, 508), tls),
            (hello(10, 6), tls),
            (hello(512, 1600), tls),
            (hello(512, 400), Opening::Lines),
            (hello(512, 508)[..10].to_vec(), Opening::Undecided),
            (b"\x16\x03:1|c\n".to_vec(), Opening::Lines),
            (b"\x16\x03\x01\n".to_vec(), Opening::Undecided),
            (b"\x16\x03\x01ab:1|c\n".to_vec(), Opening::Lines),
        ] {
            assert_eq!(opening(&bytes), want, "{}", bytes.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn no_valid_line_is_taken_for_a_request(
            name in "(GET|POST|put|[A-Z-]{1,9}|[a-z0-9_.|*-]{1,9})( [!-~]{1,9})?",
            kind in "c|g|ms|s|h|d",
            value in any::<i32>(),
            tags in "(\\|#[a-zA-Z/:,. 0-9]{1,12}( HTTP/1\\.1)?)?",
            time in 1u32..,
            crlf in any::<bool>(),
        ) {
            let end = if crlf { "\r\n" } else { "\n" };
            let lines =
                [format!("{name}:{value}|{kind}{tags}{end}"), format!("{name} {value} {time}{end}")];
            for line in lines {
                prop_assert!(
                    !matches!(FirstLine::default().push(line.as_bytes()), Opening::Foreign(_)), "{line:?}"
                );
            }
        }
    }
}
