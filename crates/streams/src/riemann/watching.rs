//! Subscribers outside of the config: which of their queries an event matches (spec riemann §§6.1 to 6.3).
//!
//! Path of an event: `publishing::publish` -> [`Watches::matching`] -> an effect, `Published` -> the engine's owner, which has the subscribers.
//! Subscribers with the same channel and query are one watch: an event is checked once for all of them. Without watches an event costs
//! one comparison. Not here: who the subscribers are, and what they have not read yet.

use std::sync::Arc;

use arcstr::ArcStr;

use crate::event::Event;
use crate::query::{Meter, Query};

/// Different queries of subscribers, at most: each event of their channel is checked against all of them.
pub const WATCHES_MAX: usize = 1_000;
/// Regular expressions of all of them, at most: a compiled one may take hundreds of kilobytes.
pub const PATTERNS_MAX: usize = 500;
/// Work for one event, at most, in steps of some ten nanoseconds. Past it the query that took most is ended, and the events after it cost
/// less.
pub const EVENT_STEPS_MAX: u64 = 200_000;

/// A watch of an engine. Its number is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WatchId(u64);

/// Why a query cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// There are too many.
    #[error("subscribers have {WATCHES_MAX} different queries already")]
    TooMany,
    /// They have too many expressions.
    #[error("subscribers have {PATTERNS_MAX} different regular expressions already")]
    TooManyPatterns,
}

/// How an event is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// As a record: standard fields that it does not have are null.
    Record,
    /// As a map: they are left out. So are those of expired events (spec riemann §3.4).
    Map,
}

/// All watches of an engine.
#[derive(Debug, Default)]
pub struct Watches {
    all: Vec<Watch>,
    next: u64,
}

#[derive(Debug)]
struct Watch {
    id: WatchId,
    channel: ArcStr,
    query: Arc<Query>,
}

impl Watches {
    /// Adds one.
    ///
    /// # Errors
    /// [`WatchError::TooMany`].
    pub(super) fn add(&mut self, channel: &str, query: Arc<Query>) -> Result<WatchId, WatchError> {
        if self.all.len() >= WATCHES_MAX {
            return Err(WatchError::TooMany);
        }
        let patterns = self.all.iter().map(|watch| watch.query.patterns()).sum::<usize>();
        if patterns + query.patterns() > PATTERNS_MAX {
            return Err(WatchError::TooManyPatterns);
        }
        let id = WatchId(self.next);
        self.next += 1;
        self.all.push(Watch { id, channel: channel.into(), query });
        Ok(id)
    }

    /// Removes one.
    pub(super) fn remove(&mut self, id: WatchId) {
        self.all.retain(|watch| watch.id != id);
    }

    /// True when nobody watches.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Those of a channel whose query an event matches. If that took too much work, the one that took most is ended and returned too.
    pub(super) fn matching(&mut self, channel: &str, event: &Event) -> (Vec<WatchId>, Option<WatchId>) {
        let (mut meter, mut found, mut worst) = (Meter::default(), Vec::new(), None);
        for watch in self.all.iter().filter(|watch| watch.channel == channel) {
            let before = meter.steps;
            if watch.query.matches(event, &mut meter) {
                found.push(watch.id);
            }
            worst = worst.max(Some((meter.steps - before, watch.id)));
        }
        let ended = worst.filter(|_| meter.steps > EVENT_STEPS_MAX).map(|(_, id)| id);
        ended.into_iter().for_each(|id| self.remove(id));
        (found, ended)
    }
}
