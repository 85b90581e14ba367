//! The state of an output: the results of its check and of sending, and whether its queue is nearly full.

use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use deliver::queue::Queue;
use deliver::{EndpointState, Status};
use model::Now;

use super::Outlet;
use super::state::{CheckState, Checked, MS_NS, SenderSlot, ShownState};
use crate::outputs::failures;

/// Percentage of a queue above which its output is `degraded` (spec statsd §14 R8).
const DEGRADED_PERCENT: u64 = 80;

/// Most characters of an error in a line of `/ready`: it may have a path, and the system's message.
const LINE_TEXT_MAX: usize = 300;

impl Outlet {
    /// True for the one caller that may start checking the endpoint; false while it is being checked.
    pub fn begin_checks(&self) -> bool {
        !self.health.has_checks.swap(true, Relaxed)
    }

    /// Called at the end of checking: the state of the endpoint is unknown again.
    pub fn end_checks(&self) {
        *self.health.checked.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.look_at_endpoint();
        self.health.has_checks.store(false, Relaxed);
    }

    /// Stores the result of the endpoint's check.
    pub fn set_checked(&self, found: CheckState, now: Now) {
        let mut checked = self.health.checked.lock().unwrap_or_else(PoisonError::into_inner);
        let same = checked.filter(|before| before.found.up == found.up);
        let failed = found.failure.map(|_| now).or(checked.and_then(|before| before.failed));
        let since_ns = same.map_or(now.mono_ns, |before| before.since_ns);
        *checked = Some(Checked { found, since_ns, failed });
        drop(checked);
        self.look_at_endpoint();
    }

    /// The state of the output: that of sending, unless a check shows that the endpoint is down; and `degraded` while
    /// the endpoint accepts data but the queue is nearly full.
    pub fn shown(&self, now: Now) -> ShownState {
        let shown = |word, (last_error, failed): (&'static str, Option<Now>), since_ns: u64| {
            // 0: no change of state has been seen yet.
            let for_ns = if since_ns == 0 { 0 } else { now.mono_ns.saturating_sub(since_ns) };
            let last_error_time_ms = failed.map_or(0, |failed| failed.wall_ns / MS_NS);
            ShownState { word, last_error, last_error_time_ms, for_ns }
        };
        let checked = *self.health.checked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Checked { found: CheckState { up: false, failure }, since_ns, failed }) = checked {
            return shown("down", (failure.unwrap_or("check_failed"), failed), since_ns);
        }
        let Some(state) = self.state() else { return shown("new", ("", None), 0) };
        let last_error = state.last_failure.map_or(("", None), |(failure, at)| (failure.word(), Some(at)));
        let degraded_since_ns = self.health.degraded_since_ns.load(Relaxed);
        if degraded_since_ns != 0 && matches!(state.status, Status::Up | Status::Idle) {
            return shown("degraded", last_error, degraded_since_ns);
        }
        shown(state.status.word(), last_error, state.since_ns)
    }

    /// Keeps the system's message for a failure of that word.
    pub fn set_error_words(&self, word: &'static str, words: Option<&str>) {
        let words = words.map(|words| (word, words.to_owned()));
        *self.health.error_words.lock().unwrap_or_else(PoisonError::into_inner) = words;
    }

    /// A sentence about the last failure, whose word is `last_error`, for users.
    pub fn last_error_text(&self, last_error: &str) -> String {
        let words = self.health.error_words.lock().unwrap_or_else(PoisonError::into_inner);
        let words = words.as_ref().filter(|(word, _)| *word == last_error);
        failures::text(last_error, words.map(|(_, words)| words.as_str()))
    }

    /// [`Outlet::last_error_text`] for the end of a line: behind a colon, at most [`LINE_TEXT_MAX`] characters, without control
    /// characters. Empty without a failure.
    pub fn last_error_line(&self, last_error: &str) -> String {
        let text = self.last_error_text(last_error);
        if text.is_empty() {
            return text;
        }
        let mut line: String = client::stdio::shown(&text).chars().take(LINE_TEXT_MAX).collect();
        if text.chars().count() > LINE_TEXT_MAX {
            line.push('…');
        }
        format!(": {line}")
    }

    /// True while sending or its check shows that the endpoint is down.
    pub fn is_down(&self) -> bool {
        self.is_checked_down() || self.state().is_some_and(|state| state.status == Status::Down)
    }

    /// True while its check shows that the endpoint is down.
    pub(super) fn is_checked_down(&self) -> bool {
        let checked = *self.health.checked.lock().unwrap_or_else(PoisonError::into_inner);
        checked.is_some_and(|checked| !checked.found.up)
    }

    /// State of the endpoint; none before the first attempt. With several connections, that of one that is down, if
    /// there is one: the records of its series wait.
    pub fn state(&self) -> Option<EndpointState> {
        let states = self.senders.iter().filter_map(SenderSlot::state);
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
        let ShownState { word, last_error, last_error_time_ms, for_ns } = outlet.shown(at(s));
        assert_eq!(last_error_time_ms == 0, last_error.is_empty(), "a failure has its time");
        (word, last_error, for_ns / SECOND_NS)
    }

    #[test]
    fn a_failed_check_overrides_the_state_of_sending() {
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
    fn the_last_failure_has_its_time_and_only_its_own_system_message() {
        let outlet = Outlet::new("o", QueueLimits::default(), &Arc::new(OutputAccount::default()));
        outlet.publish(0, 0, 0, endpoint(Status::Down, 3));
        outlet.set_error_words("refused", Some("Connection refused"));
        assert_eq!(outlet.shown(at(9)).last_error_time_ms, at(3).wall_ns / MS_NS);
        assert!(outlet.last_error_text("refused").ends_with(" (Connection refused)"));
        outlet.set_checked(CheckState { up: false, failure: Some("check_timeout") }, at(5));
        outlet.set_checked(CheckState { up: false, failure: None }, at(7));
        assert_eq!(outlet.shown(at(9)).last_error_time_ms, at(5).wall_ns / MS_NS);
        assert_eq!(
            outlet.last_error_text("check_timeout"),
            "The health check of the endpoint was not answered in time"
        );
    }

    #[test]
    fn the_text_for_a_line_is_cut_and_has_no_control_characters() {
        let outlet = Outlet::new("o", QueueLimits::default(), &Arc::new(OutputAccount::default()));
        assert_eq!(outlet.last_error_line(""), "");
        let path = |bytes| format!("{}: no space", "a".repeat(bytes));
        outlet.set_error_words("write_failed", Some("a\nb"));
        assert_eq!(outlet.last_error_line("write_failed"), ": Sending or writing failed (a\u{fffd}b)");
        let rest = LINE_TEXT_MAX - "Sending or writing failed (: no space)".len();
        outlet.set_error_words("write_failed", Some(&path(rest)));
        assert!(outlet.last_error_line("write_failed").ends_with(": no space)"));
        outlet.set_error_words("write_failed", Some(&path(rest + 1)));
        let line = outlet.last_error_line("write_failed");
        assert!(line.ends_with(": no space…") && line.chars().count() == LINE_TEXT_MAX + 3, "{line}");
    }

    #[test]
    fn an_output_is_degraded_while_its_queue_is_nearly_full() {
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
