//! Forms to expressions: macros are expanded and names resolved, so that a wrong name is found before anything runs.
//!
//! Mistakes are collected, not returned one by one: a config with three wrong names reports all three. An expression with a
//! mistake must not run.
//!
//! - `analyzer`: the state. `form`: any form. `scope`, `locals`: locals, captures, slots. `names`: what a symbol means.
//! - `special`, `function`, `attempt`: special forms.
//! - `destructure`: patterns of `let` and arguments. `interop`: what looks like Java.

mod analyzer;
mod attempt;
mod destructure;
mod form;
mod function;
mod interop;
mod locals;
mod meaning;
mod names;
mod scope;
mod special;

pub(super) use analyzer::Analyzer;
pub(super) use special::NAMES as SPECIAL_FORMS;

/// Whether a name is that of a special form.
pub(super) fn is_special(name: &str) -> bool {
    special::find(name).is_some()
}
