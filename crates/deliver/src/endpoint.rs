//! State of an endpoint: up or down, since when, and the state changes to log.

use std::collections::VecDeque;

use model::{Now, SECOND_NS};

/// Most state changes kept until they are taken; older ones are discarded.
const STATE_CHANGES_MAX: usize = 8;

/// A long outage is logged again after these seconds, and from then on each time the last interval has passed again.
const REMINDERS_S: [u64; 3] = [60, 600, 3600];

/// Why an attempt failed, as far as the sender knows. The binary has the system's error text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// It could not be reached.
    ConnectFailed,
    /// Its file or folder could not be opened.
    OpenFailed,
    /// Its name does not resolve to an address.
    Unresolved,
    /// It is one of our own listeners: records sent there would loop.
    Loop,
    /// The connection was not established within `connect_timeout_ms`.
    ConnectTimeout,
    /// The peer closed the connection while data was in flight.
    ClosedByPeer,
    /// The connection was reset, or reading or writing failed.
    Broken,
    /// The peer accepted no data for `write_timeout_ms`.
    WriteTimeout,
    /// No encrypted connection was established or kept: a certificate was rejected, or the endpoint does not support TLS.
    TlsFailed,
    /// It accepts TLS only, and was sent plain lines.
    TlsWanted,
    /// It accepts connections and closed each of the last ones right after the first bytes.
    ClosesAtOnce,
    /// It rejected a packet (ICMP port unreachable).
    Refused,
    /// The system had no buffer space for a packet for a long time.
    Blocked,
    /// Sending or writing failed.
    WriteFailed,
    /// It answered a request by an error that may pass.
    AnswersError,
    /// It did not answer a request in time.
    NoAnswer,
}

impl Failure {
    /// The name used in the API and in logs.
    pub fn word(self) -> &'static str {
        match self {
            Failure::ConnectFailed => "connect_failed",
            Failure::OpenFailed => "open_failed",
            Failure::Unresolved => "unresolved",
            Failure::Loop => "loop",
            Failure::ConnectTimeout => "connect_timeout",
            Failure::ClosedByPeer => "closed_by_peer",
            Failure::Broken => "broken",
            Failure::WriteTimeout => "write_timeout",
            Failure::TlsFailed => "tls_failed",
            Failure::TlsWanted => "tls_wanted",
            Failure::ClosesAtOnce => "closes_at_once",
            Failure::Refused => "refused",
            Failure::Blocked => "blocked",
            Failure::WriteFailed => "write_failed",
            Failure::AnswersError => "answers_error",
            Failure::NoAnswer => "no_answer",
        }
    }
}

/// Whether an endpoint is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Not reached yet, and no failure yet.
    Starting,
    /// It accepts data.
    Up,
    /// It was up and closed the connection while nothing was in flight. The sender reconnects when there is data.
    Idle,
    /// The last attempt failed and nothing was delivered since.
    Down,
    /// Its sender has stopped.
    Stopped,
}

impl Status {
    /// The name used in the API and in self-metrics.
    pub fn word(self) -> &'static str {
        match self {
            Status::Starting => "starting",
            Status::Up => "up",
            Status::Idle => "idle",
            Status::Down => "down",
            Status::Stopped => "stopped",
        }
    }
}

/// Current state of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointState {
    /// Whether it is up.
    pub status: Status,
    /// Monotonic nanoseconds of the last change of `status`; 0 before the first.
    pub since_ns: u64,
    /// Consecutive failures since the last delivery.
    pub attempts: u32,
    /// The last failure and its time; kept after recovery.
    pub last_failure: Option<(Failure, Now)>,
}

/// A change of state, worth one log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateChange {
    /// Reached for the first time.
    Up,
    /// Down now; up, idle or starting before.
    Down {
        /// What failed first.
        failure: Failure,
    },
    /// Still down, for another reason, which was not reported in this outage yet.
    NewReason {
        /// What failed now.
        failure: Failure,
    },
    /// Still down; reported at growing intervals.
    StillDown {
        /// What failed last.
        failure: Failure,
        /// How long it has been down.
        down_ns: u64,
    },
    /// Up again after an outage.
    Recovered {
        /// How long it was down.
        down_ns: u64,
        /// Failed attempts.
        attempts: u32,
        /// Copies queued for it when it was reached.
        waiting_copies: u64,
    },
}

/// Keeps an [`EndpointState`] and the state changes to log.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    state: EndpointState,
    changes: VecDeque<StateChange>,
    /// Reasons reported in this outage, one bit each.
    reasons_logged: u32,
    /// When the outage is reported again, in nanoseconds since its start.
    reminder_ns: u64,
}

impl Health {
    pub(crate) fn new() -> Health {
        let state = EndpointState { status: Status::Starting, since_ns: 0, attempts: 0, last_failure: None };
        Health { state, changes: VecDeque::new(), reasons_logged: 0, reminder_ns: 0 }
    }

    pub(crate) fn state(&self) -> EndpointState {
        self.state
    }

    pub(crate) fn take_state_change(&mut self) -> Option<StateChange> {
        self.changes.pop_front()
    }

    /// Something was delivered, or nothing was queued and the connection was established.
    pub(crate) fn succeed(&mut self, waiting_copies: u64, now: Now) {
        match self.state.status {
            Status::Up | Status::Stopped => return,
            Status::Idle => {}
            Status::Starting => self.push(StateChange::Up),
            Status::Down => {
                let down_ns = now.mono_ns.saturating_sub(self.state.since_ns);
                self.push(StateChange::Recovered { down_ns, attempts: self.state.attempts, waiting_copies });
            }
        }
        self.state.attempts = 0;
        self.change(Status::Up, now);
    }

    /// An attempt failed.
    pub(crate) fn fail(&mut self, failure: Failure, now: Now) {
        if self.state.status == Status::Stopped {
            return;
        }
        self.state.attempts = self.state.attempts.saturating_add(1);
        self.state.last_failure = Some((failure, now));
        let reason = 1 << failure as u32;
        let down_ns = now.mono_ns.saturating_sub(self.state.since_ns);
        if self.state.status != Status::Down {
            self.push(StateChange::Down { failure });
            self.change(Status::Down, now);
            (self.reasons_logged, self.reminder_ns) = (reason, reminder_after(0));
        } else if self.reasons_logged & reason == 0 {
            self.push(StateChange::NewReason { failure });
            self.reasons_logged |= reason;
        } else if down_ns >= self.reminder_ns {
            self.push(StateChange::StillDown { failure, down_ns });
            self.reminder_ns = reminder_after(down_ns);
        }
    }

    /// The connection ended with nothing in flight.
    pub(crate) fn idle(&mut self, now: Now) {
        if self.state.status == Status::Up {
            self.change(Status::Idle, now);
        }
    }

    pub(crate) fn stop(&mut self, now: Now) {
        if self.state.status != Status::Stopped {
            self.change(Status::Stopped, now);
        }
    }

    fn change(&mut self, status: Status, now: Now) {
        self.state.status = status;
        self.state.since_ns = now.mono_ns;
    }

    fn push(&mut self, change: StateChange) {
        if self.changes.len() == STATE_CHANGES_MAX {
            self.changes.pop_front();
        }
        self.changes.push_back(change);
    }
}

/// When an outage is reported again after a report at `down_ns`.
fn reminder_after(down_ns: u64) -> u64 {
    let down_s = down_ns / SECOND_NS;
    let every_s = REMINDERS_S[REMINDERS_S.len() - 1];
    let next_s = REMINDERS_S.into_iter().find(|at_s| *at_s > down_s);
    next_s.unwrap_or(down_s - down_s % every_s + every_s) * SECOND_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: u64) -> Now {
        Now::default().plus_ns(s * model::SECOND_NS)
    }

    #[test]
    fn an_outage_is_logged_at_start_and_end_regardless_of_attempts() {
        let mut health = Health::new();
        health.succeed(0, at(1));
        assert_eq!((health.take_state_change(), health.state().status), (Some(StateChange::Up), Status::Up));
        for attempt in 1..=5 {
            health.fail(Failure::ConnectFailed, at(10 + attempt));
            assert_eq!(health.state().attempts, attempt as u32);
        }
        assert_eq!(health.take_state_change(), Some(StateChange::Down { failure: Failure::ConnectFailed }));
        assert_eq!((health.take_state_change(), health.state().since_ns), (None, at(11).mono_ns));
        health.succeed(7, at(20));
        let back = StateChange::Recovered { down_ns: 9 * model::SECOND_NS, attempts: 5, waiting_copies: 7 };
        assert_eq!((health.take_state_change(), health.take_state_change()), (Some(back), None));
        assert_eq!(health.state().last_failure, Some((Failure::ConnectFailed, at(15))));
        assert_eq!(health.state().attempts, 0);
    }

    #[test]
    fn a_long_outage_is_logged_again_at_growing_intervals() {
        let mut health = Health::new();
        let mut changes = Vec::new();
        for s in (0..5 * 3600).step_by(15) {
            health.fail(Failure::ConnectFailed, at(1 + s));
            changes.extend(health.take_state_change());
        }
        let still =
            |s: u64| StateChange::StillDown { failure: Failure::ConnectFailed, down_ns: s * SECOND_NS };
        let first = StateChange::Down { failure: Failure::ConnectFailed };
        let want = [first, still(60), still(600), still(3600), still(7200), still(10_800), still(14_400)];
        assert_eq!(changes, want);
        // No records for hours, so no attempt either: one reminder, and the next on the hour.
        let mut health = Health::new();
        for s in [0, 20_000, 21_000, 21_600] {
            health.fail(Failure::ConnectFailed, at(1 + s));
        }
        let changes: Vec<StateChange> = std::iter::from_fn(|| health.take_state_change()).collect();
        assert_eq!(changes, [first, still(20_000), still(21_600)]);
    }

    #[test]
    fn each_reason_of_an_outage_is_logged_once() {
        use Failure::{ConnectFailed, TlsFailed, Unresolved};
        let mut health = Health::new();
        for outage in 0..2 {
            for (s, failure) in
                [ConnectFailed, ConnectFailed, Unresolved, ConnectFailed, Unresolved, TlsFailed, TlsFailed]
                    .into_iter()
                    .enumerate()
            {
                health.fail(failure, at(1 + s as u64));
            }
            health.succeed(0, at(10));
            let changes: Vec<StateChange> = std::iter::from_fn(|| health.take_state_change()).collect();
            let changed = |failure| StateChange::NewReason { failure };
            let first = StateChange::Down { failure: ConnectFailed };
            assert_eq!(changes[..3], [first, changed(Unresolved), changed(TlsFailed)], "outage {outage}");
            assert!(matches!(changes[3..], [StateChange::Recovered { .. }]), "{changes:?}");
        }
    }

    #[test]
    fn an_idle_close_is_not_logged() {
        let mut health = Health::new();
        health.succeed(0, at(1));
        health.take_state_change();
        health.idle(at(2));
        assert_eq!(health.state().status, Status::Idle);
        health.succeed(0, at(3));
        assert_eq!((health.take_state_change(), health.state().status), (None, Status::Up));
    }

    #[test]
    fn state_changes_not_taken_are_bounded() {
        let mut health = Health::new();
        for round in 0..100 {
            health.fail(Failure::Broken, at(2 * round));
            health.succeed(round, at(2 * round + 1));
            assert!(health.changes.len() <= STATE_CHANGES_MAX);
        }
        assert_eq!(health.changes.len(), STATE_CHANGES_MAX);
        assert!(matches!(health.changes.back(), Some(StateChange::Recovered { waiting_copies: 99, .. })));
    }
}
