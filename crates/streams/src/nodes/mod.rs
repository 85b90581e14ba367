//! Riemann's streams as nodes of a graph (spec riemann §§8-11), one file a family.
//!
//! [`table::STREAMS`] lists all of them: [`library`] makes functions of the language from it, and the reference page has its rows. A
//! call `(rate 5 a b)` of a config adds a node to the machine's graph. What the language has as macros is rewritten by [`forms`] to
//! such calls.
//! Not here: `index`, `publish`, outputs, and whatever else leaves the graph.

pub mod arguments;
mod by;
mod changes;
pub mod clocked;
mod counters;
pub mod fields;
mod filling;
pub mod forms;
pub mod function;
mod idle;
mod latest;
pub mod library;
mod mapping;
mod parts;
mod plumbing;
pub mod predicate;
mod ranking;
mod rates;
mod routing;
mod state;
pub mod table;
mod throttling;
mod windows;

#[cfg(test)]
pub(crate) mod tests;

use crate::graph::Graph;
use crate::language::error::{EvalError, Outcome};
use crate::value::Value;

/// Adds a stream to a graph, as its constructor does in a config. Returns the stream.
///
/// # Errors
/// If there is no stream of that name, and of arguments that it does not take.
pub fn construct(graph: &mut Graph, name: &str, arguments: &[Value]) -> Outcome {
    match table::find(name) {
        Some(stream) => graph.call(&Value::Native(&stream.native), arguments),
        None => Err(EvalError::illegal_argument(format!("there is no stream `{name}`"))),
    }
}
