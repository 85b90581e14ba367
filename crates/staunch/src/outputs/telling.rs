//! Log lines about an output's endpoint: one for each change of its state, and one from time to time while it is down.
//!
//! Path of a failure: a sender notes it -> **[`Teller::look`]** stores the system's message and counts it ->
//! [`Teller::tell`] logs the sender's state change with it. Not here: which changes are logged (`deliver::endpoint`),
//! log lines of health checks (`check`).

use deliver::{EndpointState, Failure, StateChange};
use model::{Now, SECOND_NS};

use crate::carbon_c_relay::log_targets::{NOT_AN_ERROR, ORIGINAL, OURS};
use crate::carbon_c_relay::original;
use crate::daemon::outlet::Outlet;
use client::stdio;

/// For the log: the records of an endpoint that is down …
const WAITS: &str = "records stay queued";

/// … and packets to a closed port.
const PROBES: &str = "packets sent just before are lost and count as `rejected_by_peer`; other records stay queued, and single \
                      packets probe whether a process listens again";

/// The log lines about the endpoint of one sender.
#[derive(Debug)]
pub struct Teller {
    /// The endpoint's name in logs.
    place: String,
    /// It is a UDP endpoint, whose state is only partly known.
    is_udp: bool,
    last: Option<(Failure, Now)>,
    /// The message for the last failure; `None` if its name is enough.
    words: Option<String>,
}

impl Teller {
    /// No failure yet.
    pub fn new(place: String) -> Teller {
        let is_udp = place.starts_with("udp://");
        Teller { place, is_udp, last: None, words: None }
    }

    /// Reads the sender's state. For a new failure, `words` returns the message.
    pub fn look(
        &mut self,
        outlet: &Outlet,
        state: EndpointState,
        words: impl FnOnce(Failure) -> Option<String>,
    ) {
        if state.last_failure == self.last {
            return;
        }
        self.last = state.last_failure;
        if let Some((failure, _)) = state.last_failure {
            outlet.errors.count_failure(failure);
            self.words = words(failure);
            outlet.set_error_words(failure.word(), self.words.as_deref());
        }
    }

    /// One log line.
    pub fn tell(&self, outlet: &Outlet, change: StateChange) {
        let (name, place) = (&outlet.name, &self.place);
        self.tell_as_the_original(change);
        match change {
            StateChange::Up => tracing::info!("output `{name}`: {place} is up"),
            StateChange::Down { failure } => {
                let what = self.what(failure);
                let so = if self.is_udp && failure == Failure::Refused { PROBES } else { WAITS };
                tracing::warn!(target: OURS, "output `{name}`: {what}; {so}");
            }
            StateChange::NewReason { failure } if self.is_udp => {
                let what = self.what(failure);
                tracing::warn!(target: OURS, "output `{name}`: the reason changed: {what}");
            }
            StateChange::NewReason { failure } => {
                let why = self.why(failure);
                tracing::warn!(target: OURS, "output `{name}`: {place} is still down, for another reason ({why})");
            }
            StateChange::StillDown { failure, down_ns } => {
                let (what, long) = (self.what(failure), long(down_ns));
                let (records, bytes) = (stdio::records(outlet.sum().queued), stdio::bytes(outlet.bytes()));
                tracing::warn!(
                    target: NOT_AN_ERROR,
                    "output `{name}`: {what} for {long}; {records} ({bytes}) queued"
                );
            }
            StateChange::Recovered { down_ns, attempts, waiting_copies } => {
                let seconds = down_ns as f64 / SECOND_NS as f64;
                let plural = if attempts == 1 { "" } else { "s" };
                let records = stdio::records(waiting_copies);
                tracing::info!(
                    target: OURS,
                    "output `{name}`: {place} is back after {seconds:.1} s and {attempts} attempt{plural}; {records} queued"
                );
            }
        }
    }

    /// The known facts about an endpoint with this failure.
    fn what(&self, failure: Failure) -> String {
        let (place, why) = (&self.place, self.why(failure));
        match failure {
            _ if !self.is_udp => format!("{place} is down ({why})"),
            Failure::Refused => format!("the port of {place} is closed: its machine refuses packets (ICMP)"),
            _ => format!("nothing can be sent to {place} ({why})"),
        }
    }

    fn why(&self, failure: Failure) -> &str {
        self.words.as_deref().unwrap_or_else(|| failure.word())
    }

    /// The same in the texts that scripts of carbon-c-relay's users search for (spec graphite §2.13).
    fn tell_as_the_original(&self, change: StateChange) {
        let place = original::endpoint(&self.place);
        match change {
            StateChange::Up | StateChange::StillDown { .. } => {}
            StateChange::Down { failure } | StateChange::NewReason { failure } => {
                let why = self.why(failure);
                // The system's message without its number.
                let why = why.split(" (os error").next().unwrap_or(why);
                let what = match failure {
                    Failure::ConnectFailed
                    | Failure::Unresolved
                    | Failure::Loop
                    | Failure::ConnectTimeout => "connect",
                    _ => "write",
                };
                tracing::error!(target: ORIGINAL, "failed to {what}() to {place}: {why}");
            }
            StateChange::Recovered { .. } => tracing::info!(target: ORIGINAL, "server {place}: OK"),
        }
    }
}

/// A time of a minute or more, for people.
fn long(ns: u64) -> String {
    let minutes = ns / SECOND_NS / 60;
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

#[test]
fn log_lines_about_udp_endpoints_claim_only_known_facts() {
    let closed = "the port of udp://a:1 is closed: its machine refuses packets (ICMP)";
    for (place, failure, want) in [
        ("tcp://a:1", Failure::ConnectFailed, "tcp://a:1 is down (connect_failed)"),
        ("unixgram:///a", Failure::Broken, "unixgram:///a is down (broken)"),
        ("udp://a:1", Failure::Refused, closed),
        ("udp://a:1", Failure::Unresolved, "nothing can be sent to udp://a:1 (unresolved)"),
    ] {
        assert_eq!(Teller::new(place.to_owned()).what(failure), want);
    }
}

#[test]
fn long_times_are_formatted_for_people() {
    for (seconds, want) in
        [(60, "1 min"), (659, "10 min"), (3600, "1 h"), (7_300, "2 h 1 min"), (90_000, "25 h")]
    {
        assert_eq!(long(seconds * SECOND_NS), want);
    }
}
