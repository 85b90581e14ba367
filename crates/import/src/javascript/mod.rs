//! Evaluates the JavaScript expressions in node statsd's configuration files (spec statsd §10.3), and reads the JSON of
//! Net::Statsd::Server's.
//!
//! `evaluate`: text -> `lexer` (tokens) -> `interpreter` (a tree of [`Node`]s, each with its place in the text). The supported language is that of configuration files: literals, `process.env`, operators, a
//! few functions, and one function around all of it that is called at once. Every expression is evaluated at most
//! once, so any text ends in time proportional to its length.
//! Not here: the meaning of the keys (`import::statsd`), reading files and the environment (the caller).
//! Invariant: any text gives a tree or located diagnostics; never a panic. The `_MAX` constants limit nesting,
//! text and value sizes.

mod fault;
mod interpreter;
mod lexer;
mod number;
mod strings;
mod value;

pub use interpreter::{DEPTH_MAX, Environment, MADE_MAX};
pub use number::{to_number, to_text};
pub use value::{Member, Node, Value};

use config::diagnostic::{Diagnostic, Place};
use fault::Fault;
use lexer::Grammar;

/// Longest text in bytes.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// Evaluates a configuration file's text.
///
/// # Errors
/// One located diagnostic: a syntax error, an error that node reports as well, or JavaScript that is not supported here,
/// with a workaround.
pub fn evaluate(text: &str, environment: &Environment<'_>) -> Result<Node, Vec<Diagnostic>> {
    let run = |tokens: Vec<lexer::Token>| interpreter::run(&tokens, environment);
    tokens(text, Grammar::JavaScript).and_then(run).map_err(|fault| vec![fault.diagnostic()])
}

/// Reads a file of Net::Statsd::Server: JSON with `#` comments and trailing commas, without single quotes or bare keys
/// (spec statsd §10.2).
///
/// # Errors
/// One located diagnostic with the first mistake.
pub fn perl(text: &str) -> Result<Node, Vec<Diagnostic>> {
    json(text, Grammar::PerlJson).map_err(|fault| vec![fault.diagnostic()])
}

fn json(text: &str, grammar: Grammar) -> Result<Node, Fault> {
    interpreter::json(&tokens(text, grammar)?, grammar)
}

fn tokens(text: &str, grammar: Grammar) -> Result<Vec<lexer::Token>, Fault> {
    // Texts of `JSON.parse` are limited by `MADE_MAX`.
    if grammar != Grammar::Json && text.len() > TEXT_BYTES_MAX {
        let message = format!("the file is longer than {TEXT_BYTES_MAX} bytes");
        return Err(Fault::syntax(Place::new(0, 0), message, ""));
    }
    lexer::tokens(text, grammar)
}

/// Whether there is a `#` that JavaScript does not allow: a Perl file's comment.
pub(crate) fn stops_at_hash(text: &str) -> bool {
    let stop = lexer::tokens(text, Grammar::JavaScript).err().map(|fault| fault.place);
    stop.is_some_and(|place| text.get(place.start..place.end) == Some("#"))
}

#[cfg(test)]
mod perl_tests;
#[cfg(test)]
mod tests;
