//! graphite-web's query language: times, targets, series and functions.

mod error;
pub mod numbers;
pub mod target;
pub mod time;

pub use error::{Code, QueryError};
