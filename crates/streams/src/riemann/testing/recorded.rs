//! What taps and assertions of a test record.

use arcstr::ArcStr;

use crate::collections::element::Element;
use crate::language::error::{EvalError, Outcome};
use crate::object::class;
use crate::position::Position;
use crate::value::Value;

/// Events of all taps in one test, at most.
pub const TAPPED_MAX: usize = 1_000_000;
/// Most tests of a config.
pub const TESTS_MAX: usize = 10_000;
/// Timers that one `inject!` or `advance!` runs, at most.
pub(super) const TIMERS_MAX: usize = 10_000_000;

/// An assertion that does not hold, or a test that threw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Where.
    pub at: Position,
    /// What the test says about it.
    pub message: Option<String>,
    /// What should be.
    pub expected: String,
    /// What is.
    pub actual: String,
    /// Whether something was thrown.
    pub is_error: bool,
}

/// A place in the streams whose events are recorded.
#[derive(Clone, Debug)]
pub(in crate::riemann) struct Tap {
    pub(super) name: Value,
    at: Position,
    pub(super) events: Vec<Value>,
}

/// A test.
#[derive(Clone, Debug)]
pub(in crate::riemann) struct Test {
    pub(super) namespace: ArcStr,
    pub(super) name: ArcStr,
    pub(super) at: Position,
    pub(super) function: Value,
}

/// Taps, tests, and what has become of the test that runs.
#[derive(Debug, Default)]
pub struct Testing {
    pub(super) taps: Vec<Tap>,
    pub(super) tests: Vec<Test>,
    tapped: usize,
    pub(super) assertions: u64,
    pub(super) failures: Vec<Failure>,
}

impl Testing {
    /// Adds a tap, or finds the one of the same place in the config: a fork of `by` and a function make its stream as often as they run.
    ///
    /// # Errors
    /// If there is one of that name elsewhere: the tap's events would be those of two places.
    pub(super) fn add_tap(&mut self, name: Value, at: Position) -> Outcome<usize> {
        if let Some(known) = self.taps.iter().position(|tap| tap.name.equal(&name)) {
            let other = &self.taps[known];
            if other.at == at {
                return Ok(known);
            }
            let name = crate::print::to_text(&name, true);
            let message = format!("there is a tap {name} already, in {}", other.at);
            return Err(EvalError::throw(&class::RUNTIME_EXCEPTION, message).within(&at));
        }
        self.taps.push(Tap { name, at, events: Vec::new() });
        Ok(self.taps.len() - 1)
    }

    /// Records an event of a tap.
    ///
    /// # Errors
    /// If there are too many.
    pub(super) fn record(&mut self, tap: usize, event: Value) -> Outcome<()> {
        if self.tapped == TAPPED_MAX {
            let message = format!("taps record {TAPPED_MAX} events at most");
            return Err(EvalError::throw(&class::ILLEGAL_STATE, message));
        }
        self.tapped += 1;
        self.taps[tap].events.push(event);
        Ok(())
    }
}
