//! Which sources wait for room in an outlet's queue, and since when: for the log, `/ready` and the metrics.
//!
//! Not here: the decision to wait (`deliver::queue::OutputQueue::room`), the turn that asks (`pipeline::Turn`).

use std::sync::{MutexGuard, PoisonError};

use deliver::queue::{Queue, Room, WaitReport};
use model::{Dropped, Now, SourceId};

use super::Outlet;

/// A source that waits, and since when, monotonic nanoseconds.
pub type BlockedSource = (SourceId, u64);

impl Outlet {
    /// Room for a batch of `bytes` and `records` of a source that can wait. An empty queue takes any, as far as the disk
    /// has room for it. With `when_full = "wait"`, a queue that sources have waited for long enough drops its oldest blocks.
    pub fn room(&self, bytes: u64, records: u64, now: Now) -> Room {
        let dropped = || self.account.dropped(Dropped::QueueFull);
        let before = dropped();
        let (room, report) = {
            let mut queue = self.queue();
            (queue.room(bytes, records, || self.is_down(), now), queue.take_wait_report())
        };
        if dropped() != before {
            self.changed();
        }
        report.into_iter().for_each(|report| self.log_wait(report));
        room
    }

    /// Latest time of the next [`Self::room`] while a source waits, monotonic nanoseconds.
    pub fn look_again_ns(&self) -> u64 {
        self.queue().look_again_ns()
    }

    /// What happens when the queue is full, as a config file says it.
    pub fn when_full(&self) -> &'static str {
        self.queue().limits().when_full.as_str()
    }

    /// Notes whether a batch of `source` has found room.
    pub fn note_room(&self, source: SourceId, has_room: bool, now: Now) {
        let mut blocked = self.blocked();
        let known = blocked.iter().position(|(blocked, _)| *blocked == source);
        match (known, has_room) {
            (None, false) => blocked.push((source, now.mono_ns)),
            (Some(at), true) => drop(blocked.remove(at)),
            (None, true) | (Some(_), false) => {}
        }
    }

    /// No source waits any more.
    pub fn end_waits(&self) {
        self.blocked().clear();
    }

    /// Sources that wait, the longest wait first.
    pub fn blocked_sources(&self) -> Vec<BlockedSource> {
        self.blocked().clone()
    }

    fn blocked(&self) -> MutexGuard<'_, Vec<BlockedSource>> {
        self.blocked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log_wait(&self, report: WaitReport) {
        let name = &self.name;
        match report {
            WaitReport::DropsBegin => tracing::warn!(
                "output `{name}`: its queue is full, and sources have waited for it as long as `max_wait` allows in 10 s: \
                 it drops its oldest records until it is half empty"
            ),
            WaitReport::DropsEnd(copies) => tracing::info!(
                "output `{name}`: sources wait for its queue less than `max_wait` again; it has dropped {copies} records \
                 (queue_full)"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use deliver::plan::QueueLimits;

    use super::*;

    #[test]
    fn each_source_that_waits_is_listed_from_its_own_beginning() {
        let at = |s: u64| Now::default().plus_ns(s * model::SECOND_NS);
        let outlet = Outlet::new("o", QueueLimits::default(), &Arc::default());
        let (one, two) = (SourceId(1), SourceId(2));
        // (source, second, has it room, sources that wait and since when)
        for (source, second, has_room, blocked) in [
            (one, 1, true, vec![]),
            (one, 2, false, vec![(one, 2)]),
            (two, 3, false, vec![(one, 2), (two, 3)]),
            (one, 4, false, vec![(one, 2), (two, 3)]),
            (one, 5, true, vec![(two, 3)]),
            (two, 6, true, vec![]),
            (two, 7, false, vec![(two, 7)]),
        ] {
            outlet.note_room(source, has_room, at(second));
            let want: Vec<BlockedSource> =
                blocked.into_iter().map(|(source, second)| (source, at(second).mono_ns)).collect();
            assert_eq!(outlet.blocked_sources(), want, "second {second}");
        }
        outlet.end_waits();
        assert_eq!(outlet.blocked_sources(), []);
    }
}
