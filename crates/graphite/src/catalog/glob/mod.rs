//! Graphite's globs (spec graphite §6.6): compiled once, matched component by component.

mod component;
mod nfa;
mod query;

pub use query::{BadGlob, GLOB_BYTES_MAX, GLOB_LEVELS_MAX, NameGlob, is_pattern};
pub(in crate::catalog) use query::{LEVELS_SET_MAX, Part};
