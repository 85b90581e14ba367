//! Log lines about outputs whose full queues make the connections of their sources wait.
//!
//! A source waits from its first record that found no room until one is taken, whichever of its outputs lacks room meanwhile: so
//! each wait is logged once for each output, however often the outputs take turns.

use std::sync::Arc;

use model::{Now, SourceId};
use pipeline::Shard;

use crate::daemon::outlet::{BlockedSource, Outlet};

/// A source waits so long for a queue before that is logged: a slow endpoint makes it wait for moments all the time.
const LOGGED_AFTER_NS: u64 = 5 * model::SECOND_NS;

/// Outputs of which the log says that sources wait for them.
#[derive(Debug, Default)]
pub(super) struct Stalls {
    logged: Vec<Logged>,
}

/// An output and the sources that were logged as waiting for it.
#[derive(Debug, PartialEq, Eq)]
struct Logged {
    output: usize,
    sources: Vec<SourceId>,
}

/// What the log reports next.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    /// These sources have waited for the output for long.
    Begins(usize, Vec<SourceId>),
    /// The sources that waited for it wait no more.
    Ends(usize),
}

impl Stalls {
    /// Logs the begin and the end of each long wait, once.
    pub(super) fn log(&mut self, outlets: &[Arc<Outlet>], shard: &Shard, now: Now) {
        let blocked: Vec<Vec<BlockedSource>> =
            outlets.iter().map(|outlet| outlet.blocked_sources()).collect();
        for change in self.changes(&blocked, now) {
            match change {
                Change::Begins(at, sources) => {
                    let names: Vec<&str> = sources.iter().map(|source| shard.source_name(*source)).collect();
                    tracing::warn!(
                        "output `{}`: its queue is full, and the connections of these sources are not read until it has \
                         room (when_full = \"{}\"): {}",
                        outlets[at].name,
                        outlets[at].when_full(),
                        names.join(", ")
                    );
                }
                Change::Ends(at) => tracing::info!(
                    "output `{}`: its queue has room again, and connections are read again",
                    outlets[at].name
                ),
            }
        }
    }

    /// What has changed, given the sources that wait for each output and since when.
    fn changes(&mut self, blocked: &[Vec<BlockedSource>], now: Now) -> Vec<Change> {
        let mut changes = Vec::new();
        let waits = |source: &SourceId| blocked.iter().flatten().any(|(known, _)| known == source);
        // Another output may be the one that its sources wait for now: they are not read yet.
        self.logged.retain(|Logged { output, sources }| {
            let is_over = !sources.iter().any(waits);
            if is_over && *output < blocked.len() {
                changes.push(Change::Ends(*output));
            }
            !is_over
        });
        for (output, sources) in blocked.iter().enumerate() {
            let is_long =
                |(_, since_ns): &&BlockedSource| now.mono_ns.saturating_sub(*since_ns) >= LOGGED_AFTER_NS;
            let is_logged = self.logged.iter().any(|logged| logged.output == output);
            if !is_logged && sources.iter().any(|source| is_long(&source)) {
                let sources: Vec<SourceId> = sources.iter().map(|(source, _)| *source).collect();
                self.logged.push(Logged { output, sources: sources.clone() });
                changes.push(Change::Begins(output, sources));
            }
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_that_moves_between_outputs_is_logged_once_for_each_and_ends_with_the_source() {
        let (a, b) = (SourceId(0), SourceId(1));
        let since_ns = 1;
        let first = vec![vec![(a, since_ns)], vec![]];
        let second = vec![vec![], vec![(a, since_ns)]];
        let mut stalls = Stalls::default();
        let late = |s: u64| Now { mono_ns: since_ns, ..Now::default() }.plus_ns(s * model::SECOND_NS);
        // (seconds, who waits for each output, changes)
        for (seconds, blocked, want) in [
            (4, &first, vec![]),
            (5, &second, vec![Change::Begins(1, vec![a])]),
            (6, &first, vec![Change::Begins(0, vec![a])]),
            (7, &second, vec![]),
            (8, &first, vec![]),
            (9, &vec![vec![], vec![(b, late(8).mono_ns)]], vec![Change::Ends(1), Change::Ends(0)]),
            (12, &vec![vec![], vec![(b, late(8).mono_ns)]], vec![]),
            (13, &vec![vec![], vec![(b, late(8).mono_ns)]], vec![Change::Begins(1, vec![b])]),
            (14, &vec![vec![], vec![]], vec![Change::Ends(1)]),
            (15, &vec![vec![], vec![]], vec![]),
        ] {
            assert_eq!(stalls.changes(blocked, late(seconds)), want, "after {seconds} s");
        }
    }

    #[test]
    fn nothing_is_logged_for_an_output_that_a_reload_has_removed() {
        let mut stalls = Stalls::default();
        let now = Now::default().plus_ns(LOGGED_AFTER_NS);
        assert_eq!(stalls.changes(&[vec![(SourceId(0), 0)]], now), [Change::Begins(0, vec![SourceId(0)])]);
        assert_eq!(stalls.changes(&[], now), []);
        assert_eq!(stalls.logged, []);
    }
}
