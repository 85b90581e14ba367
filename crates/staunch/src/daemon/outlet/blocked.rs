//! Which sources wait for room in an outlet's queue, and since when: for the log, `/ready` and the metrics.
//!
//! Not here: the decision to wait (`deliver::queue::OutputQueue::room`), the turn that asks (`pipeline::Turn`).

use std::sync::{MutexGuard, PoisonError};

use deliver::queue::{OutputQueue, Queue, Room, WaitReport};
use model::{Dropped, Now, SourceId};
use sys::disk::Folder;

use super::Outlet;
use super::state::BlockedSource;

impl Outlet {
    /// Room for a batch of `bytes` and `records` of a source that can wait. An empty queue accepts any, if the disk has
    /// room. With `when_full = "wait"`, a queue that sources have waited for long enough drops its oldest blocks.
    pub fn room(&self, bytes: u64, records: u64, now: Now) -> Room {
        self.ask(|queue| queue.room(bytes, records, || self.is_down(), now))
    }

    /// Whether there is room for such a batch. Without room, no wait begins.
    pub fn takes(&self, bytes: u64, records: u64, now: Now) -> bool {
        self.ask(|queue| queue.takes_more(bytes, records, now))
    }

    /// Both may drop old blocks, and leave something for the log.
    fn ask<T>(&self, ask: impl FnOnce(&mut OutputQueue<Folder>) -> T) -> T {
        let dropped = || self.account.dropped(Dropped::QueueFull);
        let before = dropped();
        let (answer, report) = {
            let mut queue = self.queue();
            (ask(&mut queue), queue.take_wait_report())
        };
        if dropped() != before {
            self.changed();
        }
        report.into_iter().for_each(|report| self.log_wait(report));
        answer
    }

    /// Latest time of the next [`Self::room`] while a source waits, monotonic nanoseconds.
    pub fn look_again_ns(&self) -> u64 {
        self.queue().look_again_ns()
    }

    /// The action when the queue is full, as in a config file.
    pub fn when_full(&self) -> &'static str {
        self.queue().limits().when_full.as_str()
    }

    /// Notes that `source` waits since then, now for this queue, or that it does not wait for this one.
    pub fn note_wait(&self, source: SourceId, since_ns: Option<u64>) {
        let mut blocked = self.blocked();
        blocked.retain(|(known, _)| *known != source);
        if let Some(since_ns) = since_ns {
            let at = blocked.partition_point(|(_, known_ns)| *known_ns <= since_ns);
            blocked.insert(at, (source, since_ns));
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
    fn sources_that_wait_are_listed_with_the_longest_wait_first() {
        let outlet = Outlet::new("o", QueueLimits::default(), &Arc::default());
        let (one, two) = (SourceId(1), SourceId(2));
        // (source, since when it waits if it does, sources that wait and since when)
        for (source, since_ns, blocked) in [
            (one, None, vec![]),
            (one, Some(2), vec![(one, 2)]),
            (two, Some(3), vec![(one, 2), (two, 3)]),
            (one, Some(2), vec![(one, 2), (two, 3)]),
            (one, Some(4), vec![(two, 3), (one, 4)]),
            (one, None, vec![(two, 3)]),
            (one, Some(1), vec![(one, 1), (two, 3)]),
            (two, None, vec![(one, 1)]),
        ] {
            outlet.note_wait(source, since_ns);
            assert_eq!(outlet.blocked_sources(), blocked, "{source:?} since {since_ns:?}");
        }
        outlet.end_waits();
        assert_eq!(outlet.blocked_sources(), []);
    }
}
