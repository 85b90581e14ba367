//! Flow files: a pipeline's behaviour as a list of steps. Bug report, regression test and the user's own test in one.
//!
//! Path of a file: text -> `parse` (steps) -> `run` (each step on a simulated `World`) -> failures.
//! The language is described in `docs/flow-files.md`, word by word.

mod escape;
mod expect;
mod figures;
mod parse;
mod plan;
mod run;
mod step;
#[cfg(test)]
mod tests;
mod words;

/// What is wrong with a flow file, or with the pipeline that it describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Line in the flow file, from 1.
    pub line: usize,
    /// What was wanted, what was found, what to do. May have several lines.
    pub message: String,
}

/// Reads a flow file without running it.
///
/// # Errors
/// Every mistake in its language.
pub fn check(text: &str) -> Result<(), Vec<Failure>> {
    parse::parse(text).map(|_steps| ())
}

/// Runs a flow file. `read` gives the text of a file that the flow names, by its path relative to the flow file.
///
/// # Errors
/// Every mistake in its language; or else, with its line, every check that failed and every sum that did not hold.
pub fn run(text: &str, read: &dyn Fn(&str) -> Result<String, String>) -> Result<(), Vec<Failure>> {
    digest(text, read).map(|_digest| ())
}

/// Runs a flow file as [`run()`] does, and gives the fingerprint of all bytes that arrived at its outputs.
///
/// # Errors
/// As [`run()`].
pub fn digest(text: &str, read: &dyn Fn(&str) -> Result<String, String>) -> Result<u64, Vec<Failure>> {
    run::run(text, &parse::parse(text)?, read)
}
