//! What all evaluations of one config share, at load time and for each event.
//!
//! The graph owns it, and a [`Machine`](super::machine::Machine) works on it through the graph. So a function of the config that
//! calls a stream, and a stream that calls a function, use the same budget and the same stack, however they are nested.

use std::sync::Arc;

use arcstr::ArcStr;

use super::budget::{Budget, Limits};
use super::diagnostic::Diagnostic;
use super::error::{EvalError, Outcome};
use super::host::Host;
use super::world::World;
use crate::effort;
use crate::object::reference::Var;
use crate::position::Position;
use crate::value::Value;

/// Most forms of files that are kept for those who look at them after the load.
pub const FORMS_MAX: usize = 100_000;

/// See the module's header.
pub struct Evaluation {
    /// What the config defined.
    pub world: Arc<World>,
    /// The world outside.
    pub host: Box<dyn Host>,
    /// What is left to use.
    pub budget: Budget,
    /// What each event and each timer may use.
    pub event_limits: Limits,
    /// The current namespace.
    pub namespace: ArcStr,
    /// Arguments and locals of the functions that run.
    pub(super) stack: Vec<Value>,
    /// What `binding` bound, the innermost last.
    pub(super) bindings: Vec<(Arc<Var<Value>>, Value)>,
    /// Files that are being loaded, the innermost last.
    pub(super) loading: Vec<ArcStr>,
    /// Mistakes of the files that are being loaded.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The forms of the files that were loaded, as they were read, up to [`FORMS_MAX`]. The owner of the load takes them.
    pub forms: Vec<Value>,
    /// What ended the evaluation of a file.
    pub(super) ended: Option<EvalError>,
    /// The value of the last form at the top level.
    pub(super) last: Value,
    /// How many loads are running, one inside the other.
    pub(super) loads: u32,
    /// Whether a trial runs: code of the config makes streams that are removed at once.
    is_trial: bool,
    /// Where the native function was called that runs, while a config is loaded.
    pub(super) here: Position,
    /// What `with-out-str` has of what is printed, the innermost last.
    pub(super) printed: Vec<String>,
}

impl Evaluation {
    /// For a config that is not loaded yet, in namespace `user`.
    pub fn new(world: Arc<World>, host: Box<dyn Host>) -> Evaluation {
        Evaluation {
            world,
            host,
            budget: Budget::new(Limits::EVENT),
            event_limits: Limits::EVENT,
            namespace: arcstr::literal!("user"),
            stack: Vec::new(),
            bindings: Vec::new(),
            loading: Vec::new(),
            diagnostics: Vec::new(),
            forms: Vec::new(),
            ended: None,
            last: Value::Nil,
            loads: 0,
            is_trial: false,
            here: Position::default(),
            printed: Vec::new(),
        }
    }

    /// Where the native function was called that runs, while a config is loaded.
    pub fn here(&self) -> Option<&Position> {
        (self.loads > 0).then_some(&self.here)
    }

    /// From now on, the places of calls are known, as while a config is loaded.
    pub fn keep_places(&mut self) {
        self.loads += 1;
    }

    /// Trials of streams belong to the load of a config.
    pub(crate) fn begin_trials(&mut self) {
        self.loads += 1;
        self.is_trial = true;
    }

    /// The load goes on.
    pub(crate) fn end_trials(&mut self) {
        self.loads -= 1;
        self.is_trial = false;
    }

    /// Whether code of the config makes streams for a trial: what it prints, logs and subscribes has no effect.
    pub fn is_trial(&self) -> bool {
        self.is_trial
    }

    /// Fills the budget for an event or a timer, unless something runs already: what is nested uses what is left.
    pub fn begin_event(&mut self) {
        if self.loads == 0 && self.budget.depth() == 0 {
            effort::take();
            self.budget = Budget::new(self.event_limits);
        }
    }

    /// Charges the budget for what comparing, hashing and computing have cost.
    ///
    /// # Errors
    /// If it was more than [`effort::EFFORT_MAX`], so that the answers are wrong, or than what is left.
    pub fn charge_effort(&mut self) -> Outcome<()> {
        match effort::take() {
            0 => Ok(()),
            effort::EFFORT_PAST.. => Err(EvalError::too_many_steps()),
            spent => self.budget.step((spent / effort::EFFORT_PER_STEP) as usize),
        }
    }
}

impl std::fmt::Debug for Evaluation {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Evaluation").field("budget", &self.budget).finish_non_exhaustive()
    }
}
