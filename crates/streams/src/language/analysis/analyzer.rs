//! The state of an analysis, and its mistakes.

use super::scope::Scope;
use crate::language::diagnostic::Diagnostic;
use crate::language::expr::Expr;
use crate::language::machine::Machine;
use crate::position::Position;
use crate::value::Value;

/// Most mistakes that are kept.
const DIAGNOSTICS_MAX: usize = 100;

/// Turns the forms of one config to expressions.
pub(in crate::language) struct Analyzer<'m, 'h> {
    pub(super) machine: &'m mut Machine<'h>,
    /// The functions around the form, the innermost last; the first one is the top level.
    pub(super) scopes: Vec<Scope>,
    pub(in crate::language) diagnostics: Vec<Diagnostic>,
    /// The innermost known place.
    pub(super) at: Position,
    pub(super) depth: u32,
}

/// What replaces a form with a mistake.
pub(super) const MISTAKE: Expr = Expr::Constant(Value::Nil);

impl<'m, 'h> Analyzer<'m, 'h> {
    pub(in crate::language) fn new(machine: &'m mut Machine<'h>) -> Self {
        Analyzer {
            machine,
            scopes: vec![Scope::default()],
            diagnostics: Vec::new(),
            at: Position::default(),
            depth: 0,
        }
    }

    /// Notes a mistake.
    pub(super) fn mistake(
        &mut self,
        at: &Position,
        message: impl Into<String>,
        hint: Option<String>,
    ) -> Expr {
        let at = if at.is_known() { at.clone() } else { self.at.clone() };
        if self.diagnostics.len() < DIAGNOSTICS_MAX {
            self.diagnostics.push(Diagnostic { at, message: message.into(), hint });
        }
        MISTAKE
    }

    /// Notes a mistake of the form at hand.
    pub(super) fn complain(&mut self, message: &str) -> Expr {
        self.mistake(&Position::default(), message, None)
    }
}
