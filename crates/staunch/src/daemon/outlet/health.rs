//! Where an output stands: what its check has found, what sending has shown, and whether its queue is nearly full.

use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use deliver::queue::Queue;
use deliver::{EndpointState, Status};
use model::Now;

use super::{Outlet, Seat};

/// Share of a queue, in hundredths, past which its output is `degraded` (spec statsd §14 R8).
const DEGRADED_PERCENT: u64 = 80;

/// What an output's check has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckState {
    /// Whether enough results say that the endpoint is well.
    pub up: bool,
    /// How the last check failed, in a word; none when it did not.
    pub failure: Option<&'static str>,
}

/// Where an output stands, as the API shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownState {
    /// The state.
    pub word: &'static str,
    /// The last failure in a word; empty for none.
    pub last_error: &'static str,
    /// How long it has been so, in nanoseconds; 0 before the first attempt.
    pub for_ns: u64,
}

impl Outlet {
    /// True for the one caller that may begin to check the endpoint; false while somebody does.
    pub fn begin_checks(&self) -> bool {
        !self.has_checks.swap(true, Relaxed)
    }

    /// Told by whoever checks as the last act: nothing is known any more.
    pub fn end_checks(&self) {
        *self.checked.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.look_at_endpoint();
        self.has_checks.store(false, Relaxed);
    }

    /// Tells what the endpoint's check has found.
    pub fn set_checked(&self, found: CheckState, now: Now) {
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        let since_ns = checked.filter(|(before, _)| before.up == found.up).map(|(_, since_ns)| since_ns);
        *checked = Some((found, since_ns.unwrap_or(now.mono_ns)));
        drop(checked);
        self.look_at_endpoint();
    }

    /// Where the output stands: what sending has shown, unless a check says that the endpoint is down; and
    /// `degraded` while it takes what it is sent but its queue is nearly full.
    pub fn shown(&self, now: Now) -> ShownState {
        let shown = |word, last_error, since_ns: u64| {
            // 0: no change of state has been seen yet.
            let for_ns = if since_ns == 0 { 0 } else { now.mono_ns.saturating_sub(since_ns) };
            ShownState { word, last_error, for_ns }
        };
        let checked = *self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((CheckState { up: false, failure }, since_ns)) = checked {
            return shown("down", failure.unwrap_or("check_failed"), since_ns);
        }
        let Some(state) = self.state() else { return ShownState { word: "new", last_error: "", for_ns: 0 } };
        let last_error = state.last_failure.map_or("", |(failure, _)| failure.word());
        let degraded_since_ns = self.degraded_since_ns.load(Relaxed);
        if degraded_since_ns != 0 && matches!(state.status, Status::Up | Status::Idle) {
            return shown("degraded", last_error, degraded_since_ns);
        }
        shown(state.status.word(), last_error, state.since_ns)
    }

    /// True while sending or its check says that the endpoint is down.
    pub fn is_down(&self) -> bool {
        self.is_checked_down() || self.state().is_some_and(|state| state.status == Status::Down)
    }

    /// True while its check says that the endpoint is down.
    pub(super) fn is_checked_down(&self) -> bool {
        let checked = *self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        checked.is_some_and(|(found, _)| !found.up)
    }

    /// State of the endpoint; none before the first attempt. Of several connections that of one that is down, if there
    /// is one: what is of its series waits.
    pub fn state(&self) -> Option<EndpointState> {
        let states = self.senders.iter().filter_map(Seat::state);
        states.max_by_key(|state| (state.status == Status::Down, state.status == Status::Up))
    }

    pub(super) fn is_nearly_full(&self, queue: &impl Queue) -> bool {
        let limits = queue.limits();
        let past = |held: u64, most: u64| {
            most > 0 && u128::from(held) * 100 > u128::from(most) * u128::from(DEGRADED_PERCENT)
        };
        past(self.account.queued_bytes.load(Relaxed), limits.bytes_max)
            || past(self.account.copies_queued(), limits.records_max)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use deliver::Failure;
    use deliver::plan::QueueLimits;
    use deliver::queue::Block;
    use model::{CopyOutcome, OutputAccount, SECOND_NS};

    use super::*;

    fn at(s: u64) -> Now {
        Now::default().plus_ns(s * SECOND_NS)
    }

    fn endpoint(status: Status, since_s: u64) -> EndpointState {
        let last_failure = (status == Status::Down).then(|| (Failure::Refused, at(since_s)));
        EndpointState { status, since_ns: at(since_s).mono_ns, attempts: 0, last_failure }
    }

    fn shown(outlet: &Outlet, s: u64) -> (&'static str, &'static str, u64) {
        let ShownState { word, last_error, for_ns } = outlet.shown(at(s));
        (word, last_error, for_ns / SECOND_NS)
    }

    #[test]
    fn a_check_that_says_down_is_believed_before_what_sending_has_shown() {
        let outlet = Outlet::new("o", QueueLimits::default(), &Arc::new(OutputAccount::default()));
        assert_eq!(shown(&outlet, 5), ("new", "", 0));
        outlet.publish(0, 0, 0, endpoint(Status::Starting, 0));
        assert_eq!(shown(&outlet, 5), ("starting", "", 0), "not since the machine was started");
        outlet.publish(0, 0, 0, endpoint(Status::Up, 2));
        assert_eq!(shown(&outlet, 5), ("up", "", 3));
        outlet.set_checked(CheckState { up: true, failure: Some("check_timeout") }, at(6));
        assert_eq!(shown(&outlet, 7), ("up", "", 5));
        for s in [8, 9] {
            outlet.set_checked(CheckState { up: false, failure: Some("check_answer") }, at(s));
        }
        assert_eq!(shown(&outlet, 10), ("down", "check_answer", 2));
        outlet.publish(0, 0, 0, endpoint(Status::Down, 3));
        outlet.set_checked(CheckState { up: true, failure: None }, at(11));
        assert_eq!(shown(&outlet, 12), ("down", "refused", 9));
    }

    #[test]
    fn an_output_whose_queue_is_nearly_full_is_degraded_until_it_is_not() {
        let one = || Block::lines(b"a 1 2\n".to_vec(), 1, 0);
        for (bytes_max, records_max) in [(1_000_000, 10), (10 * one().memory_bytes(), 0)] {
            let account = Arc::new(OutputAccount::default());
            let limits = QueueLimits { bytes_max, records_max, ..QueueLimits::default() };
            let outlet = Outlet::new("o", limits, &account);
            outlet.publish(0, 0, 0, endpoint(Status::Up, 1));
            for _ in 0..8 {
                let _place = outlet.append(one(), at(2));
            }
            assert_eq!(shown(&outlet, 5).0, "up", "eight of ten are not over 80 %");
            assert!(outlet.append(one(), at(3)).is_some());
            assert!(outlet.append(one(), at(4)).is_some());
            assert_eq!(shown(&outlet, 5), ("degraded", "", 2));
            outlet.publish(0, 0, 0, endpoint(Status::Down, 5));
            assert_eq!(shown(&outlet, 6), ("down", "refused", 1));
            for _ in 0..2 {
                let entry = outlet.queue().pop(at(6)).expect("it was appended");
                entry.settle(CopyOutcome::Delivered);
            }
            outlet.publish(0, 0, 0, endpoint(Status::Up, 6));
            assert_eq!(shown(&outlet, 7), ("up", "", 1));
        }
    }
}
