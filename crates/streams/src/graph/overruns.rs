//! Streams that use up what an event may use, again and again: they are left out for a while, since each of these events stops everything
//! else for some tens of milliseconds.

use std::collections::HashMap;

use foldhash::fast::FixedState;

/// Events in a second that a stream may end at a limit with. Streams of the same form in the forks of a `by` count together, functions of
/// the config each for itself.
pub(super) const OVERRUNS_MAX: u32 = 4;

/// Streams that are counted in a second. More do not fit into one, as each takes a full budget.
const STREAMS_MAX: usize = 10_000;

/// The streams that overran in this second.
#[derive(Debug, Default)]
pub(super) struct Overruns {
    second: i64,
    /// By form, or by place.
    streams: HashMap<u64, u32, FixedState>,
}

impl Overruns {
    /// Whether no stream overran lately: most of the time.
    pub(super) fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Whether a stream is left out for the rest of this second.
    pub(super) fn leave_out(&mut self, stream: u64, now_us: i64) -> bool {
        self.turn_to(now_us);
        self.streams.get(&stream).is_some_and(|times| *times >= OVERRUNS_MAX)
    }

    /// A stream has used up what an event may use.
    pub(super) fn note(&mut self, stream: u64, now_us: i64) {
        self.turn_to(now_us);
        if self.streams.len() < STREAMS_MAX {
            *self.streams.entry(stream).or_default() += 1;
        }
    }

    fn turn_to(&mut self, now_us: i64) {
        let second = now_us.div_euclid(1_000_000);
        if second != self.second {
            self.second = second;
            self.streams.clear();
        }
    }
}
