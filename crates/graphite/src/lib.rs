//! Graphite as a store: whisper files, the catalog of names, and graphite-web's query language. Pure: files come through
//! a trait, times are arguments.

pub mod catalog;
pub mod query;
pub mod whisper;
