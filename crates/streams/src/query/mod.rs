//! The query language over events (spec riemann §5).
//!
//! Path of a text: `token` -> `parser` -> [`Tree`] (what `riemann.query/ast` gives; configs also build it by hand) ->
//! [`Query`], which checks one event at a time.
//! A query comes from outside, so text, depth and the number of expressions are limited (`limits`), and each check of
//! an event counts its work in a [`Meter`], for callers that divide a long search into slices.
//! Not here: which events are checked (`index`), and a cache of compiled queries, which belongs to its user.

mod error;
mod java;
mod like;
pub mod limits;
mod meter;
mod parser;
mod pattern;
mod predicate;
mod printed;
mod quoted;
mod token;
mod tree;

#[cfg(test)]
mod tests;

pub use error::QueryError;
pub use like::Like;
pub use meter::Meter;
pub use parser::ast;
pub use pattern::{Pattern, PatternError};
pub use predicate::{Query, tag_texts};
pub use tree::{Comparison, Operand, Tree};
