//! Maps acknowledged bytes on the wire to lines, for compressed or encrypted connections.
//!
//! A sender counts bytes of its lines, the kernel counts bytes on the wire. At each flush the compressor or TLS
//! session reports how many bytes on the wire make all lines so far readable. When the peer's kernel has acknowledged
//! those bytes, the lines are delivered.
//!
//! How the binary uses it, for a compressed or encrypted connection: call [`Marks::take`] with the bytes accepted
//! from a `Write`, beside `on_written`; [`Marks::flushed`] after each flush; and pass [`Marks::unacked`] to
//! `on_acked` instead of the kernel's figure. A new connection needs new marks.
//! Not here: compression (`wire::compression`), TLS and sockets (`staunch`).
//! Invariant: lines count as delivered only when all bytes on the wire that they need are acknowledged.

use std::collections::VecDeque;

/// Most flushes between sent and acknowledged bytes that are tracked one by one. Beyond it neighbours are merged, and
/// their lines settle together.
pub const MARKS_MAX: usize = 1024;

/// So many bytes on the wire make so many bytes of lines readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    wire: u64,
    lines: u64,
}

/// The flush marks of one connection.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    /// Both figures grow from one mark to the next.
    marks: VecDeque<Mark>,
    /// Bytes of lines accepted.
    taken: u64,
    /// Bytes of lines that the peer can read.
    arrived: u64,
}

impl Marks {
    /// So many more bytes of lines were accepted.
    pub fn take(&mut self, lines: usize) {
        self.taken += lines as u64;
    }

    /// Bytes of lines that no flush has made readable yet.
    pub fn unflushed(&self) -> u64 {
        self.taken - self.marks.back().map_or(self.arrived, |mark| mark.lines)
    }

    /// All accepted lines are readable from the first `wire` bytes on the wire.
    pub fn flushed(&mut self, wire: u64) {
        if self.unflushed() == 0 {
            return;
        }
        debug_assert!(self.marks.back().is_none_or(|last| last.wire < wire), "a flush adds to the wire");
        if self.marks.len() == MARKS_MAX {
            self.marks.pop_back();
        }
        self.marks.push_back(Mark { wire, lines: self.taken });
    }

    /// The peer's kernel has the first `wire` bytes. Returns how many accepted bytes of lines the peer cannot read yet.
    pub fn unacked(&mut self, wire: u64) -> u64 {
        while let Some(mark) = self.marks.front().filter(|mark| mark.wire <= wire) {
            self.arrived = mark.lines;
            self.marks.pop_front();
        }
        self.taken - self.arrived
    }
}

#[test]
fn lines_are_readable_after_the_flush_of_their_end() {
    let mut marks = Marks::default();
    assert_eq!(marks.unacked(1_000), 0, "nothing was taken");
    marks.take(100);
    assert_eq!((marks.unflushed(), marks.unacked(1_000)), (100, 100), "nothing was flushed");
    marks.flushed(1_030);
    marks.flushed(1_030);
    marks.take(50);
    assert_eq!(marks.unflushed(), 50);
    assert_eq!(marks.unacked(1_029), 150);
    assert_eq!(marks.unacked(1_030), 50);
    marks.flushed(1_040);
    assert_eq!((marks.unacked(1_039), marks.unacked(1_040)), (50, 0));
}

#[test]
fn flush_marks_past_their_limit_are_merged_and_settle_late() {
    let mut marks = Marks::default();
    for n in 1..=MARKS_MAX as u64 + 3 {
        marks.take(10);
        marks.flushed(n);
    }
    assert_eq!(marks.marks.len(), MARKS_MAX);
    let taken = 10 * (MARKS_MAX as u64 + 3);
    assert_eq!(marks.unacked(MARKS_MAX as u64 - 1), taken - 10 * (MARKS_MAX as u64 - 1));
    assert_eq!(
        marks.unacked(MARKS_MAX as u64 + 2),
        taken - 10 * (MARKS_MAX as u64 - 1),
        "not before the last"
    );
    assert_eq!(marks.unacked(MARKS_MAX as u64 + 3), 0);
}
