//! The actions of a run, line by line, to find the cause of a failure.

use model::Now;

/// Steps that are kept: the cause of a failure is usually recent.
const STEPS_MAX: usize = 40;

/// See the module's header.
#[derive(Clone, Debug, Default)]
pub struct Story {
    steps: std::collections::VecDeque<(String, Vec<String>)>,
}

impl Story {
    /// The next step begins.
    pub(super) fn step(&mut self, number: usize, now: Now) {
        if self.steps.len() == STEPS_MAX {
            self.steps.pop_front();
        }
        let ms = now.mono_ns / 1_000_000;
        self.steps.push_back((format!("step {number} at {}.{:03} s", ms / 1000, ms % 1000), Vec::new()));
    }

    /// Adds an action to the current step.
    pub(super) fn tell(&mut self, what: String) {
        if let Some((_, actions)) = self.steps.back_mut() {
            actions.push(what);
        }
    }

    /// The last steps: one line each.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.steps.iter().map(|(step, actions)| format!("{step}: {}", actions.join("; ")))
    }
}
