//! graphite-web's query language: times, targets, series and functions.

pub mod time;
