//! Trials: what makes nodes later, for a fork or a key, makes some while the config is loaded too. They are removed at once.
//!
//! So a load finds the mistakes of such code, and knows the outputs that it declares and the streams that it makes.

use super::{Graph, NodeId};
use crate::language::diagnostic::Diagnostic;
use crate::language::error::EvalError;

/// Trials of one load, at most: code can make streams that make streams without an end. Those after it are left out.
const TRIALS_MAX: usize = 10_000;
/// Trials within each other, at most.
const DEPTH_MAX: u32 = 32;

impl Graph {
    /// Lets a node have its trial, while a config is loaded.
    pub fn add_trial(&mut self, node: NodeId) {
        if self.evaluation.here().is_some() {
            self.trials.waiting.push(node);
        }
    }

    /// Runs the trials that wait, with what is left of the budget of the load. Returns what they threw.
    pub fn run_trials(&mut self) -> Vec<Diagnostic> {
        self.evaluation.begin_trials();
        self.run_trials_from(0);
        self.evaluation.end_trials();
        self.cancel_all_timers_of_removed();
        std::mem::take(&mut self.trials).failed
    }

    /// Runs the trials of the nodes that a trial made.
    pub(super) fn run_trials_from(&mut self, first: usize) {
        let nodes = self.trials.waiting.split_off(first);
        for node in nodes {
            if self.trials.done == TRIALS_MAX || self.trials.depth == DEPTH_MAX {
                return;
            }
            self.trials.done += 1;
            self.trials.depth += 1;
            let tried = self.visit(node, |node, turn| node.trial(turn));
            self.trials.depth -= 1;
            if let Some(Err(error)) = tried {
                let diagnostic = self.failure(node, &error);
                self.trials.failed.push(diagnostic);
            }
        }
    }

    fn failure(&self, node: NodeId, error: &EvalError) -> Diagnostic {
        let at = match error.at() {
            at if at.is_known() => at.clone(),
            _ => self.origin(node).map(|(_, at)| at.clone()).unwrap_or_default(),
        };
        Diagnostic { at, message: error.in_words(), hint: None }
    }
}
