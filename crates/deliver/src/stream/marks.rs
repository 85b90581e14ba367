//! Where a stream of lines and what goes over the wire for it meet: for connections that are packed or encrypted.
//!
//! A sender thinks in bytes of its lines, the kernel in bytes of the wire. What lies between says at each flush that so many
//! bytes of the wire make all lines so far readable; when the peer's kernel has those, the lines have arrived.
//!
//! How the binary drives it, for a sender whose connection is wrapped: [`Marks::take`] what the wrapping took of a `Write`,
//! beside `on_written`; [`Marks::flushed`] behind each flush; and in place of the kernel's figure [`Marks::unacked`] for
//! `on_acked`. A new connection has new marks.
//! Not here: compression (`wire::compression`), TLS and sockets (`staunch`).
//! Invariant: lines count as arrived only when all of the wire that they need has.

use std::collections::VecDeque;

/// Most flushes between what is sent and what is acknowledged that are told apart. Beyond it neighbours become one, and
/// their lines settle together.
pub const MARKS_MAX: usize = 1024;

/// Whoever has so many bytes of the wire can read so many bytes of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    wire: u64,
    lines: u64,
}

/// The marks of one connection.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    /// Both figures grow from one to the next.
    marks: VecDeque<Mark>,
    /// Bytes of lines that were taken.
    taken: u64,
    /// Bytes of them that the peer can read.
    arrived: u64,
}

impl Marks {
    /// So many more bytes of lines were taken.
    pub fn take(&mut self, lines: usize) {
        self.taken += lines as u64;
    }

    /// Bytes of lines that no flush has made readable yet.
    pub fn unflushed(&self) -> u64 {
        self.taken - self.marks.back().map_or(self.arrived, |mark| mark.lines)
    }

    /// All that was taken can be read by who has the first `wire` bytes of the wire.
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

    /// The peer's kernel has the first `wire` bytes. Gives how many bytes of lines, of those taken, it cannot make use of
    /// yet.
    pub fn unacked(&mut self, wire: u64) -> u64 {
        while let Some(mark) = self.marks.front().filter(|mark| mark.wire <= wire) {
            self.arrived = mark.lines;
            self.marks.pop_front();
        }
        self.taken - self.arrived
    }
}

#[test]
fn lines_arrive_with_the_flush_that_has_their_end() {
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
fn marks_past_their_limit_settle_together_and_never_early() {
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
