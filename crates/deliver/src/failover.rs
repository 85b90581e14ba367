//! Whether others stand in for an endpoint: how long it may fail, and how full its queue may be, until they do.
//!
//! Path: a sender's attempt -> [`EndpointState`] -> **[`Failover::look`]** -> whoever places records on the members of a
//! cluster. It comes back with the first success.
//! Not here: who stands in (`process::relay`), and what becomes of the records that wait (`pipeline::Moves`).
//! Invariant: a queue that wavers about its bound is told of once: it has room again for twice what it must have.

use crate::endpoint::{EndpointState, Status};
use crate::plan::QueueLimits;
use crate::queue::Queue;
use model::{Now, SECOND_NS};

/// Failures in a row after which the members of a cluster that shares records out lose patience …
const ATTEMPTS_MAX: u32 = 6;

/// … or the time after the first of them, in nanoseconds: what the original takes for so many (spec graphite §2.8).
const PATIENCE_NS: u64 = 3 * SECOND_NS / 2;

/// Room for less than this is none: one batch of a connection, in bytes and records. Of a small queue an eighth.
const BATCH_BYTES: u64 = 256 * 1024;
const BATCH_RECORDS: u64 = 2500;

/// How long an endpoint may fail until others stand in for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Patience {
    /// Not at all: a `failover` cluster.
    None,
    /// A second and a half, or six failures; and its queue must have room: clusters that share records out.
    AWhile,
}

impl Patience {
    fn is_at_its_end(self, state: EndpointState, now: Now) -> bool {
        let failing_ns = now.mono_ns.saturating_sub(state.since_ns);
        let long = state.attempts >= ATTEMPTS_MAX || failing_ns >= PATIENCE_NS;
        state.status == Status::Down && (self == Patience::None || long)
    }
}

/// How an endpoint stands with those that would stand in for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failover {
    patience: Patience,
    given_up: bool,
    full: bool,
}

impl Failover {
    /// One that nothing is known against.
    pub fn new(patience: Patience) -> Failover {
        Failover { patience, given_up: false, full: false }
    }

    /// The same with another patience.
    pub fn set_patience(&mut self, patience: Patience) {
        self.patience = patience;
        self.full &= patience == Patience::AWhile;
    }

    /// New records go to it.
    pub fn is_live(&self) -> bool {
        !self.given_up && !self.full
    }

    /// It has failed for so long that what waits for it may go to others, too.
    pub fn is_given_up(&self) -> bool {
        self.given_up
    }

    /// Its queue has no room for a batch.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Takes notice of what sending has shown, or of a check that says that the endpoint is down. True when
    /// [`Failover::is_live`] is another one now.
    pub fn look(&mut self, state: Option<EndpointState>, checked_down: bool, now: Now) -> bool {
        let was_live = self.is_live();
        let failing = state.is_some_and(|state| self.patience.is_at_its_end(state, now));
        self.given_up = failing || checked_down;
        was_live != self.is_live()
    }

    /// Takes notice of how full its queue is; likewise.
    pub fn look_at_room(&mut self, queue: &impl Queue) -> bool {
        let was_live = self.is_live();
        let QueueLimits { bytes_max, records_max, .. } = queue.limits();
        let bytes = BATCH_BYTES.min(bytes_max / 8);
        let records = if records_max == 0 { 0 } else { BATCH_RECORDS.min(records_max / 8).max(1) };
        let wanted = 1 + u64::from(self.full);
        self.full = self.patience == Patience::AWhile && !queue.has_room(wanted * bytes, wanted * records);
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
    fn others_stand_in_when_patience_ends_and_until_the_first_success() {
        // (patience, failures in a row, milliseconds since the first, whether records still go to it)
        let table = [
            (Patience::None, 1, 0, false),
            (Patience::AWhile, 1, 0, true),
            (Patience::AWhile, 5, 1499, true),
            (Patience::AWhile, 6, 10, false),
            (Patience::AWhile, 1, 1500, false),
        ];
        for (patience, attempts, ms, live) in table {
            let mut failover = Failover::new(patience);
            assert!(!failover.look(None, false, at(0)) && failover.is_live(), "nothing is known of it");
            assert_eq!(failover.look(down(attempts), false, at(ms)), !live, "{patience:?} {attempts} {ms}");
            assert_eq!((failover.is_live(), failover.is_given_up()), (live, !live));
            assert!(!failover.look(down(attempts), false, at(ms)), "told once");
            for status in [Status::Up, Status::Idle, Status::Starting] {
                let mut failover = failover;
                let up = down(0).map(|state| EndpointState { status, ..state });
                assert_eq!(failover.look(up, false, at(ms)), !live);
                assert!(failover.is_live());
            }
        }
        let mut failover = Failover::new(Patience::AWhile);
        assert!(failover.look(None, true, at(0)) && failover.is_given_up(), "a check has its own patience");
    }

    #[test]
    fn a_queue_without_room_for_a_batch_is_spared_until_there_is_room_for_two() {
        let one = || Block::lines(b"a 1 2\n".to_vec(), 1, 0);
        let bytes_max = 16 * one().memory_bytes();
        for (bytes_max, records_max) in [(bytes_max, 0), (1 << 30, 16)] {
            let limits = QueueLimits { bytes_max, records_max, ..QueueLimits::default() };
            let mut queue = MemoryQueue::new(limits, Arc::new(OutputAccount::default()));
            let mut failover = Failover::new(Patience::AWhile);
            for blocks in 1..=16 {
                assert_eq!(queue.append(one(), at(0)), Appended::Kept);
                assert_eq!(failover.look_at_room(&queue), blocks == 15, "{blocks} of 16");
                assert!(!Failover::new(Patience::None).look_at_room(&queue), "`failover` goes by failures");
            }
            assert!(!failover.is_live() && !failover.is_given_up());
            for blocks in (0..16).rev() {
                queue.pop(at(0)).expect("it waits").settle(CopyOutcome::Delivered);
                assert_eq!(failover.look_at_room(&queue), blocks == 12, "{blocks} of 16");
            }
        }
    }
}
