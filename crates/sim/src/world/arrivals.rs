//! The arrivals at an output's endpoint: bytes split into points, lines and packets, as the endpoint would read them.
//!
//! Invariant: a line or frame has arrived when its end has arrived. The unfinished rest of a broken connection is
//! dropped, as carbon does, and counted.

use std::collections::VecDeque;

use config::plan::{Link, OutputKind, Written};

/// The format that an endpoint reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// `name value time` lines.
    Points,
    /// Pickle frames of points.
    Pickle,
    /// Lines of any kind.
    Lines,
    /// Datagrams.
    Packets,
}

impl Reading {
    pub(crate) fn of(kind: &OutputKind) -> Reading {
        let facts = kind.facts();
        match (facts.written, facts.link) {
            (_, Link::Datagrams { .. }) => Reading::Packets,
            (Written::PointLines, _) => Reading::Points,
            (Written::Pickle, _) => Reading::Pickle,
            (Written::Lines | Written::Documents | Written::Packets, _) => Reading::Lines,
        }
    }
}

/// A complete arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    Point { name: String, value: String, time_s: u64 },
    Line(Vec<u8>),
    Packet(Vec<u8>),
}

impl Arrived {
    /// The line or packet as on the wire; for a pickled point, the equivalent line.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Arrived::Point { name, value, time_s } => format!("{name} {value} {time_s}").into_bytes(),
            Arrived::Line(bytes) | Arrived::Packet(bytes) => bytes.clone(),
        }
    }
}

/// One arrival in a mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) what: Arrived,
    /// A step has expected it.
    pub(crate) seen: bool,
}

/// Splits the bytes of connections, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Cutter {
    reading: Reading,
    tail: Vec<u8>,
    /// Unfinished lines and frames of ended connections.
    pub(crate) torn: u64,
}

impl Cutter {
    pub(crate) fn new(reading: Reading) -> Cutter {
        Cutter { reading, tail: Vec::new(), torn: 0 }
    }

    /// Adds bytes of the connection.
    pub(crate) fn push(&mut self, bytes: &[u8], into: &mut VecDeque<Arrived>) {
        if self.reading == Reading::Packets {
            into.push_back(Arrived::Packet(bytes.to_vec()));
            return;
        }
        self.tail.extend_from_slice(bytes);
        let mut used = 0;
        while let Some((unit, len)) = next_unit(self.reading, &self.tail[used..]) {
            match self.reading {
                Reading::Pickle => into.extend(pickled(unit)),
                Reading::Points => {
                    into.push_back(point(unit).unwrap_or_else(|| Arrived::Line(unit.to_vec())))
                }
                Reading::Lines | Reading::Packets => into.push_back(Arrived::Line(unit.to_vec())),
            }
            used += len;
        }
        self.tail.drain(..used);
    }

    /// True in the middle of a line or frame.
    pub(crate) fn in_line(&self) -> bool {
        !self.tail.is_empty()
    }

    /// Drops the unfinished rest without counting it.
    pub(crate) fn forget(&mut self) {
        self.tail.clear();
    }

    /// The connection ended.
    pub(crate) fn end(&mut self) {
        self.torn += u64::from(!self.tail.is_empty());
        self.tail.clear();
    }
}

/// The first whole line (without LF) or frame's body, and the bytes that it takes up.
fn next_unit(reading: Reading, bytes: &[u8]) -> Option<(&[u8], usize)> {
    if reading == Reading::Pickle {
        let len = u32::from_be_bytes(*bytes.first_chunk()?) as usize;
        return Some((bytes.get(4..4 + len)?, 4 + len));
    }
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    Some((&bytes[..end], end + 1))
}

/// `name value time`; `None` for any other line.
fn point(line: &[u8]) -> Option<Arrived> {
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split(' ');
    let (name, value, time_s) = (words.next()?, words.next()?, words.next()?.parse().ok()?);
    value.parse::<f64>().ok()?;
    let whole = words.next().is_none() && !name.is_empty();
    whole.then(|| Arrived::Point { name: name.into(), value: value.into(), time_s })
}

/// The points of a pickle frame in the form that node and our outputs send (spec statsd §8.4). Any other frame arrives
/// as one line, which fails every expectation and check.
fn pickled(body: &[u8]) -> Vec<Arrived> {
    points_of(body).unwrap_or_else(|| vec![Arrived::Line(body.to_vec())])
}

fn points_of(body: &[u8]) -> Option<Vec<Arrived>> {
    let mut rest = std::str::from_utf8(body).ok()?.strip_prefix("(l")?;
    let mut points = Vec::new();
    while rest != "." {
        let (name, after) = rest.strip_prefix("(S'")?.split_once("'\n(L")?;
        let (time_s, after) = after.split_once("L\nS'")?;
        let (value, after) = after.split_once("'\ntta")?;
        points.push(Arrived::Point { name: name.into(), value: value.into(), time_s: time_s.parse().ok()? });
        rest = after;
    }
    Some(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(reading: Reading, pieces: &[&[u8]]) -> (Vec<Arrived>, u64) {
        let mut cutter = Cutter::new(reading);
        let mut into = VecDeque::new();
        pieces.iter().for_each(|piece| cutter.push(piece, &mut into));
        cutter.end();
        (into.into(), cutter.torn)
    }

    fn a_point(name: &str, value: &str, time_s: u64) -> Arrived {
        Arrived::Point { name: name.into(), value: value.into(), time_s }
    }

    #[test]
    fn lines_split_between_reads_arrive_whole() {
        let (arrived, torn) = cut(Reading::Points, &[b"a.b 1", b"", b".5 10\nc 2 1", b"1\nd 3"]);
        assert_eq!(arrived, [a_point("a.b", "1.5", 10), a_point("c", "2", 11)]);
        assert_eq!(torn, 1, "`d 3` never ended");
    }

    #[test]
    fn a_line_that_is_no_point_stays_a_line() {
        for line in ["a 1", "a x 1", "a 1 x", " 1 1", "a 1 1 1", ""] {
            let (arrived, _) = cut(Reading::Points, &[line.as_bytes(), b"\n"]);
            assert_eq!(arrived, [Arrived::Line(line.into())], "{line:?}");
        }
    }

    #[test]
    fn pickle_frames_give_points() {
        let body = b"(l(S'a.b'\n(L10L\nS'1.5'\ntta(S'c'\n(L11L\nS'2'\ntta.";
        let mut frame = (body.len() as u32).to_be_bytes().to_vec();
        frame.extend_from_slice(body);
        let halves = frame.split_at(7);
        let (arrived, torn) = cut(Reading::Pickle, &[halves.0, halves.1, &frame[..5]]);
        assert_eq!(arrived, [a_point("a.b", "1.5", 10), a_point("c", "2", 11)]);
        assert_eq!(torn, 1);
        let (arrived, _) = cut(Reading::Pickle, &[&[0, 0, 0, 2], b"(x"]);
        assert_eq!(arrived, [Arrived::Line(b"(x".to_vec())]);
    }

    #[test]
    fn packets_keep_their_borders() {
        let (arrived, torn) = cut(Reading::Packets, &[b"a:1|c\nb:2|c", b""]);
        assert_eq!(arrived, [Arrived::Packet(b"a:1|c\nb:2|c".to_vec()), Arrived::Packet(Vec::new())]);
        assert_eq!(torn, 0);
    }
}
