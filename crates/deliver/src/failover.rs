//! Failover: when the records of an endpoint go to other members of its cluster, and when they go to it again.
//!
//! Path: a sender's attempt -> [`EndpointState`] -> **[`Failover::update`]** -> the router of the cluster. The endpoint
//! is used again after its first success.
//! Not here: which member replaces the endpoint (`process::relay`), and moving the queued records (`pipeline::Moves`).
//! Invariant: a queue near its limit does not flap. It counts as having room again once it has room for two batches.

use crate::endpoint::{EndpointState, Status};
use crate::plan::QueueLimits;
use crate::queue::Queue;
use model::{Now, SECOND_NS};

/// Consecutive failures after which a member of a sharding cluster fails over …
const ATTEMPTS_MAX: u32 = 6;

/// … or time since the first failure, in nanoseconds: the original's time for so many failures (spec graphite §2.8).
const FAILOVER_AFTER_NS: u64 = 3 * SECOND_NS / 2;

/// A queue with less room than this is full: one batch of a connection, in bytes and in records. For a small queue, an
/// eighth of its limit.
const BATCH_BYTES: u64 = 256 * 1024;
const BATCH_RECORDS: u64 = 2500;

/// How long an endpoint may fail before failover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailoverDelay {
    /// Fails over at once: a `failover` cluster.
    None,
    /// Fails over after 1.5 seconds or six failures, or when its queue is full: clusters that shard records.
    Grace,
}

impl FailoverDelay {
    fn has_passed(self, state: EndpointState, now: Now) -> bool {
        let failing_ns = now.mono_ns.saturating_sub(state.since_ns);
        let long = state.attempts >= ATTEMPTS_MAX || failing_ns >= FAILOVER_AFTER_NS;
        state.status == Status::Down && (self == FailoverDelay::None || long)
    }
}

/// Failover state of one endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failover {
    delay: FailoverDelay,
    failed: bool,
    full: bool,
}

impl Failover {
    /// An endpoint without failures.
    pub fn new(delay: FailoverDelay) -> Failover {
        Failover { delay, failed: false, full: false }
    }

    /// Sets another delay, after a reload.
    pub fn set_delay(&mut self, delay: FailoverDelay) {
        self.delay = delay;
        self.full &= delay == FailoverDelay::Grace;
    }

    /// Whether new records go to this endpoint.
    pub fn is_live(&self) -> bool {
        !self.failed && !self.full
    }

    /// It has failed for so long that its queued records may move to other members as well.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Its queue has no room for a batch.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Updates the state from the sender's results, or from a health check that reports the endpoint as down. True when
    /// [`Failover::is_live`] has changed.
    pub fn update(&mut self, state: Option<EndpointState>, checked_down: bool, now: Now) -> bool {
        let was_live = self.is_live();
        let failing = state.is_some_and(|state| self.delay.has_passed(state, now));
        self.failed = failing || checked_down;
        was_live != self.is_live()
    }

    /// Updates the state from the free room of its queue. True when [`Failover::is_live`] has changed.
    pub fn update_room(&mut self, queue: &impl Queue) -> bool {
        let was_live = self.is_live();
        let QueueLimits { bytes_max, records_max, .. } = queue.limits();
        let bytes = BATCH_BYTES.min(bytes_max / 8);
        let records = if records_max == 0 { 0 } else { BATCH_RECORDS.min(records_max / 8).max(1) };
        let wanted = 1 + u64::from(self.full);
        self.full = self.delay == FailoverDelay::Grace && !queue.has_room(wanted * bytes, wanted * records);
        was_live != self.is_live()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::endpoint::Failure;
    use crate::queue::{Appended, Block, MemoryQueue};
    use model::{CopyOutcome, OutputAccount};

    fn at(ms: u64) -> Now {
        Now::default().plus_ns(ms * SECOND_NS / 1000)
    }

    fn down(attempts: u32) -> Option<EndpointState> {
        let last_failure = Some((Failure::ConnectFailed, at(0)));
        Some(EndpointState { status: Status::Down, since_ns: 0, attempts, last_failure })
    }

    #[test]
    fn failover_begins_after_its_delay_and_ends_at_the_first_success() {
        // (delay, consecutive failures, milliseconds since the first, whether records still go to it)
        let table = [
            (FailoverDelay::None, 1, 0, false),
            (FailoverDelay::Grace, 1, 0, true),
            (FailoverDelay::Grace, 5, 1499, true),
            (FailoverDelay::Grace, 6, 10, false),
            (FailoverDelay::Grace, 1, 1500, false),
        ];
        for (delay, attempts, ms, live) in table {
            let mut failover = Failover::new(delay);
            assert!(!failover.update(None, false, at(0)) && failover.is_live(), "no failures yet");
            assert_eq!(failover.update(down(attempts), false, at(ms)), !live, "{delay:?} {attempts} {ms}");
            assert_eq!((failover.is_live(), failover.has_failed()), (live, !live));
            assert!(!failover.update(down(attempts), false, at(ms)), "reported once");
            for status in [Status::Up, Status::Idle, Status::Starting] {
                let mut failover = failover;
                let up = down(0).map(|state| EndpointState { status, ..state });
                assert_eq!(failover.update(up, false, at(ms)), !live);
                assert!(failover.is_live());
            }
        }
        let mut failover = Failover::new(FailoverDelay::Grace);
        assert!(
            failover.update(None, true, at(0)) && failover.has_failed(),
            "a health check has its own threshold"
        );
    }

    #[test]
    fn a_full_queue_fails_over_until_it_has_room_for_two_batches() {
        let one = || Block::lines(b"a 1 2\n".to_vec(), 1, 0);
        let bytes_max = 16 * one().memory_bytes();
        for (bytes_max, records_max) in [(bytes_max, 0), (1 << 30, 16)] {
            let limits = QueueLimits { bytes_max, records_max, ..QueueLimits::default() };
            let mut queue = MemoryQueue::new(limits, Arc::new(OutputAccount::default()));
            let mut failover = Failover::new(FailoverDelay::Grace);
            for blocks in 1..=16 {
                assert_eq!(queue.append(one(), at(0)), Appended::Kept);
                assert_eq!(failover.update_room(&queue), blocks == 15, "{blocks} of 16");
                assert!(
                    !Failover::new(FailoverDelay::None).update_room(&queue),
                    "`failover` ignores the queue"
                );
            }
            assert!(!failover.is_live() && !failover.has_failed());
            for blocks in (0..16).rev() {
                queue.pop(at(0)).expect("it is queued").settle(CopyOutcome::Delivered);
                assert_eq!(failover.update_room(&queue), blocks == 12, "{blocks} of 16");
            }
        }
    }
}
