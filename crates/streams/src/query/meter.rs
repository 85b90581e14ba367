//! The work that checks of events have done.

/// Counts of work, which the caller compares with its own limits between two events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    /// Work so far: one for each part of a query that was evaluated, and more for long texts and for expressions. A
    /// step takes some ten nanoseconds.
    pub steps: u64,
    /// Searches with a regular expression that gave up at a limit, and so did not match.
    pub gave_up: u64,
}

impl Meter {
    /// Counts reading a text of that many bytes.
    pub(super) fn text(&mut self, bytes: usize) {
        self.steps += (bytes / 64) as u64;
    }
}
