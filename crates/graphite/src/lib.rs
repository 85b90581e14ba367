//! Graphite as a store: whisper files, the catalog of names, and graphite-web's query language. Pure: files come through
//! a trait, times are arguments.

pub mod answer;
pub mod catalog;
mod codec;
pub mod draw;
mod file_series;
#[cfg(any(test, feature = "memory_tree"))]
pub mod memory_tree;
pub mod peer;
mod python_regex;
pub mod query;
pub mod store;
pub mod whisper;

pub use file_series::series_of_file;
pub use python_regex::RegexFault;
