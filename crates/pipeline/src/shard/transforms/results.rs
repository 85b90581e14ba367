//! Points made of an aggregation's results, for the transforms that take points from it.
//!
//! Path of a series: `process::aggregate` flush -> **[`Results::flushed`]** (Graphite lines, with the aggregation's
//! names) -> `Fed::route` -> the relays and Riemann configs that take from the aggregation. Not here: outputs that take results
//! directly (`encode`): they build their own names.
//! Invariant: a point is routed once to each of them, or counted as dropped on each edge.

use model::{Dropped, FlushInfo, Flushed, Now, Outcome, Point, RecordAccount, Span};
use process::aggregate::FlushEnd;
use wire::graphite::{Encoded, Encoder, Namespace, OwnFigures};

/// Points that wait to be routed.
#[derive(Debug)]
pub(crate) struct Results {
    encoder: Encoder,
    /// Their lines, each with its LF.
    pub(crate) bytes: Vec<u8>,
    pub(crate) points: Vec<Point>,
    /// The number of them that all transforms have.
    pub(crate) routed: usize,
    /// Points that could not be written.
    lost: Encoded,
}

impl Results {
    pub(crate) fn new(namespace: &Namespace) -> Results {
        Results {
            encoder: Encoder::new(namespace.clone()),
            bytes: Vec::new(),
            points: Vec::new(),
            routed: 0,
            lost: Encoded::default(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Adds one series of a flush.
    pub(crate) fn flushed(&mut self, info: &FlushInfo, flushed: &Flushed<'_>) {
        let begin = self.bytes.len();
        let encoded = self.encoder.lines(info, flushed, &mut self.bytes);
        self.add(begin, encoded);
    }

    /// Adds the aggregation's figures about its flush.
    pub(crate) fn end_flush(&mut self, end: &FlushEnd, now: Now) {
        let taken_ms = (now.mono_ns - end.started.mono_ns) / 1_000_000;
        let own = OwnFigures {
            time_s: end.info.time_s,
            num_stats: end.series,
            calculation_ms: taken_ms,
            processing_ms: taken_ms,
            ..OwnFigures::default()
        };
        let begin = self.bytes.len();
        let encoded = self.encoder.own_lines_of_flush(&own, &mut self.bytes);
        self.add(begin, encoded);
    }

    fn add(&mut self, begin: usize, encoded: Encoded) {
        self.lost += Encoded { points: 0, ..encoded };
        let mut at = begin;
        for end in memchr::memchr_iter(b'\n', &self.bytes[begin..]) {
            let line = &self.bytes[at..begin + end];
            let name_and_tags = memchr::memchr(b' ', line).unwrap_or(line.len());
            let name = memchr::memchr(b';', &line[..name_and_tags]).unwrap_or(name_and_tags);
            self.points.push(Point {
                // Each relay has its own hashes.
                hash: 0,
                line: Span::new(at, line.len()),
                name_len: name as u32,
                tags_len: (name_and_tags - name) as u32,
            });
            at = begin + end + 1;
        }
    }

    /// Counts points that could not be written, on an edge.
    pub(crate) fn count_lost(&self, edge: &RecordAccount) {
        let lost =
            [(Dropped::NonFinitePoint, self.lost.non_finite), (Dropped::UnsafeName, self.lost.unsafe_names)];
        for (reason, points) in lost.into_iter().filter(|(_, points)| *points > 0) {
            edge.receive(u64::from(points));
            edge.settle(Outcome::Dropped(reason), u64::from(points));
        }
    }

    /// Removes all of them once they have been routed.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.points.clear();
        self.routed = 0;
        self.lost = Encoded::default();
    }
}
