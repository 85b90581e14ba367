//! Who runs code, and what natives and macros are.
//!
//! Calls are in `call`, expressions in `eval`, sequences in `sequence`; they add methods to [`Machine`].

use std::any::Any;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use arcstr::ArcStr;

use super::budget::{Budget, Limits};
use super::error::{EvalError, Outcome};
use super::evaluation::Evaluation;
use crate::function::Native;
use crate::graph::Graph;
use crate::object::class;
use crate::object::reference::Var;
use crate::position::Position;
use crate::value::Value;

/// Runs code of a config, on the graph of its streams.
#[derive(Debug)]
pub struct Machine<'g> {
    /// The streams, with the state of the evaluation.
    pub graph: &'g mut Graph,
}

impl Deref for Machine<'_> {
    type Target = Evaluation;

    fn deref(&self) -> &Evaluation {
        &self.graph.evaluation
    }
}

impl DerefMut for Machine<'_> {
    fn deref_mut(&mut self) -> &mut Evaluation {
        &mut self.graph.evaluation
    }
}

impl<'g> Machine<'g> {
    /// A machine with a full budget.
    pub fn new(graph: &'g mut Graph, limits: Limits) -> Self {
        graph.evaluation.budget = Budget::new(limits);
        Machine { graph }
    }

    /// A machine that uses what is left of the budget.
    pub fn within(graph: &'g mut Graph) -> Self {
        Machine { graph }
    }

    /// Where the native function was called that runs: natives that make streams and services name this place in errors,
    /// and ask for it before they call anything. Known while a config is loaded only.
    pub fn here(&self) -> &Position {
        &self.here
    }

    /// Whether a config is being loaded.
    pub fn is_loading(&self) -> bool {
        self.loads > 0
    }

    /// Prints a text: to the innermost `with-out-str`, else to the host.
    pub fn print(&mut self, text: &str) {
        let is_trial = self.is_trial();
        match self.printed.last_mut() {
            Some(to) => to.push_str(text),
            None if is_trial => {}
            None => self.host.print(text),
        }
    }

    /// What a function prints.
    ///
    /// # Errors
    /// What it throws.
    pub(super) fn captured_print(&mut self, function: &Value) -> Outcome<String> {
        self.printed.push(String::new());
        let result = self.call(function, &mut []);
        let text = self.printed.pop().unwrap_or_default();
        result.map(|_| text)
    }

    /// Whether the files that are being loaded have no mistake so far.
    pub(super) fn is_right(&self) -> bool {
        self.diagnostics.is_empty()
    }

    /// Calls a function with vars bound.
    ///
    /// # Errors
    /// What it throws.
    pub(super) fn with_bindings(
        &mut self,
        bound: Vec<(Arc<Var<Value>>, Value)>,
        function: &Value,
    ) -> Outcome {
        let mark = self.bindings.len();
        self.bindings.extend(bound);
        let result = self.call(function, &mut []);
        self.bindings.truncate(mark);
        result
    }

    /// Gives a var another value where `binding` bound it last.
    ///
    /// # Errors
    /// If nothing bound it.
    pub(super) fn set_binding(&mut self, var: &Arc<Var<Value>>, value: Value) -> Outcome {
        let found = self.bindings.iter_mut().rev().find(|(bound, _)| Arc::ptr_eq(bound, var));
        let unbound = || format!("Can't change/establish root binding of: {}", var.name);
        let (_, old) = found.ok_or_else(|| EvalError::throw(&class::ILLEGAL_STATE, unbound()))?;
        *old = value.clone();
        Ok(value)
    }
}

/// A native function's code: the machine, to call functions, and the arguments, which it may take out of their places.
pub type NativeFn = fn(&mut Machine<'_>, &mut [Value]) -> Outcome;

/// The code of a native function.
#[derive(Clone, Copy, Debug)]
pub struct Run(pub NativeFn);

/// The code of a native; `None` for one that was not made by [`natives!`](crate::natives).
pub fn code(native: &Native) -> Option<NativeFn> {
    let code: &dyn Any = native.code;
    code.downcast_ref::<Run>().map(|Run(run)| *run)
}

/// A macro's code: forms to a form.
pub type ExpandFn = fn(&mut Expansion<'_, '_>, &[Value]) -> Outcome;

/// The code of a macro.
#[derive(Clone, Copy, Debug)]
pub struct Expand(pub ExpandFn);

/// The code of a macro; `None` for one that was not made by [`macros!`](crate::macros).
pub fn macro_code(native: &Native) -> Option<ExpandFn> {
    let code: &dyn Any = native.code;
    code.downcast_ref::<Expand>().map(|Expand(expand)| *expand)
}

/// What a macro can ask while it expands.
pub struct Expansion<'e, 'h> {
    /// The machine that loads the config.
    pub machine: &'e mut Machine<'h>,
    /// Where the macro is used.
    pub at: Position,
    /// The names of the locals around it.
    pub locals: &'e [ArcStr],
}

impl Expansion<'_, '_> {
    /// A symbol that nobody else has.
    pub fn unique(&self, stem: &str) -> Value {
        let number = self.machine.world.unique();
        Value::symbol(&format!("{stem}__{number}__auto__"))
    }

    /// Whether a local of this name is around the form.
    pub fn is_local(&self, name: &str) -> bool {
        self.locals.iter().any(|local| local == name)
    }
}

/// Declares tables of functions: `natives! { pub TABLE = { "name", 1, 2, "what it does", function; … } }`; `ANY` is no upper
/// limit.
#[macro_export]
macro_rules! natives {
    ($($(#[$meta:meta])* $vis:vis $table:ident = { $($name:literal, $min:expr, $max:expr, $doc:literal, $run:expr;)* })*) => {
        $(
            $(#[$meta])*
            $vis static $table: &[$crate::function::Native] = &[$(
                $crate::function::Native {
                    name: $name,
                    arity: $crate::function::Arity { min: $min, max: $crate::language::machine::most($max) },
                    doc: $doc,
                    code: &$crate::language::machine::Run($run),
                },
            )*];
        )*
    };
}

/// Declares a table of macros, as [`natives!`](crate::natives) does.
#[macro_export]
macro_rules! macros {
    ($($(#[$meta:meta])* $vis:vis $table:ident = { $($name:literal, $min:expr, $max:expr, $doc:literal, $expand:expr;)* })*) => {
        $(
            $(#[$meta])*
            $vis static $table: &[$crate::function::Native] = &[$(
                $crate::function::Native {
                    name: $name,
                    arity: $crate::function::Arity { min: $min, max: $crate::language::machine::most($max) },
                    doc: $doc,
                    code: &$crate::language::machine::Expand($expand),
                },
            )*];
        )*
    };
}

/// In tables: any number of arguments.
pub const ANY: usize = usize::MAX;

/// The upper limit of an arity in a table.
pub const fn most(max: usize) -> Option<usize> {
    if max == ANY { None } else { Some(max) }
}
