//! The result of parsing packets, and of rebuilding one line.

use model::{Point, Reject, Span};

/// The result of parsing packets. Reuse it: [`Parsed::clear`] keeps the memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// The points' lines in their final form, each with its LF and no bytes between them.
    pub bytes: Vec<u8>,
    /// Points, in order of arrival; their spans point into `bytes`.
    pub points: Vec<Point>,
    /// Non-empty lines, valid or not.
    pub lines: u64,
    /// Lines rejected, by [`Reject::index`].
    pub rejects: [u64; Reject::COUNT],
    /// The first invalid line, as a span of the input, and its reason: for the log message.
    pub first_reject: Option<(Reject, Span)>,
    /// A message's elements, before they are parsed as lines; empty between two calls.
    pub(super) elements: Vec<u8>,
}

// Not derived: the standard library has no default of such a long array.
impl Default for Parsed {
    fn default() -> Parsed {
        Parsed {
            bytes: Vec::new(),
            points: Vec::new(),
            lines: 0,
            rejects: [0; Reject::COUNT],
            first_reject: None,
            elements: Vec::new(),
        }
    }
}

impl Parsed {
    /// Empties it, and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.points.clear();
        self.lines = 0;
        self.rejects = [0; Reject::COUNT];
        self.first_reject = None;
    }

    /// Rejected lines of all reasons.
    pub fn rejected(&self) -> u64 {
        self.rejects.iter().sum()
    }

    pub(super) fn reject(&mut self, why: Reject, line: Span) {
        self.rejects[why.index()] += 1;
        if self.first_reject.is_none() {
            self.first_reject = Some((why, line));
        }
    }
}

/// The parts of a line that was rebuilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) name_len: usize,
    pub(super) tags_len: usize,
}
