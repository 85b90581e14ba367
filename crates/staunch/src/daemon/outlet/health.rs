//! Where an output stands: what its check has found, what sending has shown, and whether its queue is nearly full.

use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use deliver::{EndpointState, Status};
use model::Now;

use super::{Outlet, Seat};

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
        self.has_checks.store(false, Relaxed);
    }

    /// Tells what the endpoint's check has found.
    pub fn set_checked(&self, found: CheckState, now: Now) {
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        let since_ns = checked.filter(|(before, _)| before.up == found.up).map(|(_, since_ns)| since_ns);
        *checked = Some((found, since_ns.unwrap_or(now.mono_ns)));
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

    /// State of the endpoint; none before the first attempt. Of several connections that of one that is down, if there
    /// is one: what is of its series waits.
    pub fn state(&self) -> Option<EndpointState> {
        let states = self.senders.iter().filter_map(Seat::state);
        states.max_by_key(|state| (state.status == Status::Down, state.status == Status::Up))
    }
}
