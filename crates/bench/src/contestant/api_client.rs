//! Asks a daemon for its counts: Staunch over HTTP, node statsd over its management port.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Longest answer that is read.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// Longest wait for a byte of an answer.
const ANSWER_WAIT: Duration = Duration::from_secs(10);

/// What a daemon counted since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Datagrams received.
    pub packets: u64,
    /// Samples, good or bad.
    pub samples: u64,
    /// Datagrams that the kernel dropped before they were received.
    pub dropped: u64,
}

impl Counts {
    /// What was added since `before`.
    pub(crate) fn since(self, before: Counts) -> Counts {
        Counts {
            packets: self.packets.saturating_sub(before.packets),
            samples: self.samples.saturating_sub(before.samples),
            dropped: self.dropped.saturating_sub(before.dropped),
        }
    }
}

/// The accounts of a Staunch whose HTTP server listens at `http`.
///
/// # Errors
/// When it does not answer, or not with JSON.
pub(crate) fn staunch_accounts(http: SocketAddr) -> io::Result<Value> {
    let mut connection = connect(http)?;
    // HTTP/1.0: the answer ends with the connection, and comes in one piece.
    connection.write_all(b"GET /api/v1/accounts HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut answer = Vec::new();
    connection.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    let end = memchr::memmem::find(&answer, b"\r\n\r\n").ok_or_else(|| wrong("no HTTP answer"))?;
    let status = String::from_utf8_lossy(&answer[..end]);
    if status.split(' ').nth(1) != Some("200") {
        return Err(wrong(status.lines().next().unwrap_or_default()));
    }
    Ok(serde_json::from_slice(&answer[end + 4..])?)
}

/// The counts of all its sources.
///
/// # Errors
/// When it does not answer, or not with accounts.
pub(crate) fn staunch_counts(http: SocketAddr) -> io::Result<Counts> {
    sources(&staunch_accounts(http)?)
}

/// Adds up the sources of an accounts document.
fn sources(document: &Value) -> io::Result<Counts> {
    let sources = document["sources"].as_array().ok_or_else(|| wrong("no sources in the accounts"))?;
    let mut counts = Counts::default();
    for source in sources {
        let field =
            |name: &str| source[name].as_u64().ok_or_else(|| wrong(&format!("no `{name}` in a source")));
        counts.packets += field("packets")?;
        counts.samples += field("received")?;
        counts.dropped += field("kernel_dropped")?;
    }
    Ok(counts)
}

/// The counts of a node statsd whose management port is `management`. Its flush sets them to 0, so the window must
/// be longer than the run. Node does not know what the kernel dropped.
///
/// # Errors
/// When it does not answer, or not with its counters.
pub(crate) fn node_counts(management: SocketAddr) -> io::Result<Counts> {
    let mut connection = connect(management)?;
    connection.write_all(b"counters\n")?;
    let mut answer = Vec::new();
    let mut part = vec![0; 64 * 1024];
    while !answer.ends_with(b"END\n\n") {
        let got = connection.read(&mut part)?;
        answer.extend_from_slice(&part[..got]);
        if got == 0 || answer.len() as u64 > ANSWER_BYTES_MAX {
            return Err(wrong("the answer to `counters` has no end"));
        }
    }
    counters(&String::from_utf8_lossy(&answer))
        .ok_or_else(|| wrong("no `packets_received` among the counters"))
}

/// Node's own counters in a dump of all: `'statsd.packets_received': 12,`.
fn counters(dump: &str) -> Option<Counts> {
    let counter = |name: &str| {
        let (_, after) = dump.split_once(name)?;
        let number = after.trim_start_matches(['\'', '"', ':', ' ']);
        let end = number.find(|other: char| !other.is_ascii_digit()).unwrap_or(number.len());
        number[..end].parse().ok()
    };
    Some(Counts {
        packets: counter("statsd.packets_received")?,
        samples: counter("statsd.metrics_received")?,
        dropped: 0,
    })
}

fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let connection = TcpStream::connect_timeout(&to, ANSWER_WAIT)?;
    connection.set_read_timeout(Some(ANSWER_WAIT))?;
    Ok(connection)
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Serves one connection: reads a little, answers, closes.
    fn answering(answer: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            let _question = connection.read(&mut [0; 1024]).unwrap();
            connection.write_all(answer.as_bytes()).unwrap();
        });
        address
    }

    #[test]
    fn accounts_add_up_over_sources() {
        let http = answering(
            "HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n{\"sources\":[\
             {\"name\":\"a\",\"received\":5,\"packets\":2,\"kernel_dropped\":1},\
             {\"name\":\"b\",\"received\":30,\"packets\":1,\"kernel_dropped\":0}],\"outputs\":[]}",
        );
        assert_eq!(staunch_counts(http).unwrap(), Counts { packets: 3, samples: 35, dropped: 1 });
    }

    #[test]
    fn a_document_without_accounts_is_an_error() {
        for answer in [
            "",
            "HTTP/1.0 404 Not Found\r\n\r\n{}",
            "HTTP/1.0 200 OK\r\n\r\n{}",
            "HTTP/1.0 200 OK\r\n\r\n{\"sources\":[{\"received\":5}]}",
            "HTTP/1.0 200 OK\r\n\r\n<html>",
        ] {
            assert!(staunch_counts(answering(answer)).is_err(), "{answer:?}");
        }
    }

    #[test]
    fn nodes_counters_are_read_from_its_dump() {
        let node = answering(
            "{\n  'statsd.bad_lines_seen': 0,\n  'statsd.packets_received': 12,\n  \
             'statsd.metrics_received': 360,\n  'bench.web1': 7\n}\nEND\n\n",
        );
        assert_eq!(node_counts(node).unwrap(), Counts { packets: 12, samples: 360, dropped: 0 });
        for answer in ["", "ERROR\n", "{ 'statsd.bad_lines_seen': 0 }\nEND\n\n"] {
            assert!(node_counts(answering(answer)).is_err(), "{answer:?}");
        }
    }
}
