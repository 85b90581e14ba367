//! Flow files describe a pipeline's behaviour as a list of steps. They are bug reports, regression tests and users' own
//! tests.
//!
//! Path of a file: text -> `parse` (steps) -> `run` (each step on a simulated `World`) -> failures.
//! `docs/flow-files.md` describes the language word by word.

mod escape;
mod expect;
mod failure;
mod figures;
mod names;
mod parse;
mod plan;
mod run;
mod step;
mod streams;
#[cfg(test)]
mod tests;
mod words;

pub use failure::Failure;

/// Parses a flow file without running it.
///
/// # Errors
/// Every mistake in its language.
pub fn check(text: &str) -> Result<(), Vec<Failure>> {
    parse::parse(text).map(|_steps| ())
}

/// Runs a flow file. `read` returns the text of a file that the flow names, by its path relative to the flow file.
///
/// # Errors
/// Every mistake in its language; without mistakes, every failed check and every unbalanced account with its line.
pub fn run(text: &str, read: &dyn Fn(&str) -> Result<String, String>) -> Result<(), Vec<Failure>> {
    digest(text, read).map(|_digest| ())
}

/// Runs a flow file as [`run()`] does, and returns the fingerprint of all bytes that arrived at its outputs.
///
/// # Errors
/// As [`run()`].
pub fn digest(text: &str, read: &dyn Fn(&str) -> Result<String, String>) -> Result<u64, Vec<Failure>> {
    run::run(text, &parse::parse(text)?, read)
}
