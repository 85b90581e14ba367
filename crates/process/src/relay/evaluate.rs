//! Evaluates the statements: rules in order, from a name to a decision for its lines (spec graphite §2.5).
//!
//! Path of a line: `CachedRouter::route` -> **`Router::decide`** for a name that is not cached -> `Decision::run`.
//! A decision for a name is valid as long as the plan. Parts that depend on the rest of a line, or on endpoints
//! being up, are steps in it. `explain` evaluates the same rules in another way, and tests compare the two.
//! Invariants: rules are evaluated strictly in order; evaluation terminates, because statements only lead forward.

use super::To;
use super::decision::{Decision, Draft, End};
use super::found::GaveUp;
use super::prefilter::Candidates;
use super::router::{Action, Entry, Router, Statements};

impl Router {
    /// The decision for lines of this name, which ends before the first `;` or white space.
    pub fn decide(&self, entry: Entry, name: &[u8]) -> Decision {
        let mut draft = Draft::default();
        self.draft(entry, name, &mut draft);
        draft.content().decision()
    }

    /// As `decide`, in a draft whose buffers are reused.
    pub(super) fn draft(&self, entry: Entry, name: &[u8], draft: &mut Draft) {
        draft.begin(name);
        self.begin_name();
        let end = match self.direct(entry) {
            Some(to) => self.send(draft, to, None).unwrap_or(End::Stopped),
            None => {
                let mut candidates = std::mem::take(&mut draft.candidates);
                let end = self.walk(draft, &mut candidates);
                draft.candidates = candidates;
                end
            }
        };
        draft.finish(end, self.statements.once);
    }

    /// The destination of lines of this entry that bypass the statements.
    pub(super) fn direct(&self, entry: Entry) -> Option<&To> {
        let to = match entry {
            Entry::Records => return None,
            Entry::Result(aggregation_rule) => &self.statements.results[usize::from(aggregation_rule)],
            Entry::Statistics => &self.statements.statistics,
        };
        (*to != To::Nowhere).then_some(to)
    }

    fn walk(&self, draft: &mut Draft, candidates: &mut Candidates) -> End {
        let Statements { rules, prefilter, .. } = &*self.statements;
        prefilter.candidates(draft.name(), candidates);
        let (mut next, mut replaced) = (0, false);
        while let Some(at) = candidates.next(next) {
            next = at + 1;
            let rule = &rules[at];
            if replaced && !rule.feeds() {
                continue;
            }
            let found = match rule.find(draft.name()) {
                Ok(Some(found)) => found,
                Ok(None) => continue,
                Err(GaveUp) => {
                    draft.gave_up();
                    continue;
                }
            };
            match &rule.action {
                Action::Rewrite { into, every_occurrence } => {
                    match rule.rewritten(draft.name(), found, into, *every_occurrence) {
                        Ok(name) => draft.rename(name),
                        Err(GaveUp) => draft.gave_up(),
                    }
                    prefilter.candidates(draft.name(), candidates);
                }
                Action::Feed { aggregation_rule, names, stop, replaces } => {
                    for (compute, name) in names.iter().enumerate() {
                        let name = name.replace(draft.name(), &found);
                        replaced |= *replaces && name == draft.name();
                        draft.feed(*aggregation_rule, compute as u16, name);
                    }
                    if *stop {
                        return End::Stopped;
                    }
                }
                Action::Send { check, key, to, stop } => {
                    let key = key.as_ref().map(|key| key.replace(draft.name(), &found));
                    let check = check.map(|check| draft.check(check, *to == To::Nowhere));
                    let end = self.send(draft, to, key);
                    if let Some(check) = check {
                        draft.checked(check);
                    }
                    if let Some(end) = end.or_else(|| (*stop && *to != To::Nowhere).then_some(End::Stopped)) {
                        return end;
                    }
                }
            }
        }
        if replaced { End::Stopped } else { End::Exhausted }
    }

    /// Executes one `send to`. Returns why evaluation ends, if it does.
    fn send(&self, draft: &mut Draft, to: &To, key: Option<Vec<u8>>) -> Option<End> {
        match to {
            To::Nowhere => None,
            To::Blackhole => Some(End::Blackholed),
            To::Clusters(clusters) => {
                let key = key.map(|key| draft.text(key));
                clusters.iter().for_each(|cluster| draft.send(self, *cluster, key));
                None
            }
        }
    }
}
