//! graphite-web's query language: times, targets, series and functions.
//!
//! Path of a request: [`render`] -> `target` (text to tree) -> `table` (checks) -> one [`Fetch::fetch`] -> `eval` and
//! `functions` -> [`limit_points`] where a client wants fewer points.
//! Pure: no I/O, no clock. The store comes as a [`Fetch`], the current time and the zone with the [`Request`].
//! Invariant: the work and the memory of a request are bounded by its [`Limits`], whatever its targets are; the store can
//! end it at any time ([`Fetch::keep_going`]).
//! Not here: the HTTP API, the formats of answers, images.

mod budget;
mod call;
mod error;
mod eval;
mod fetch;
mod functions;
pub mod numbers;
mod pattern;
mod series;
pub mod table;
pub mod target;
#[cfg(test)]
mod tests;
pub mod time;
mod time_ranges;

pub use budget::{Limits, NAME_BYTES_MAX, Room, STEPS_BETWEEN_POLLS};
pub use call::{Compat, Range, Request, Value};
pub use error::{Code, QueryError};
pub use eval::{ASKS_MAX, render};
pub use jiff::tz::TimeZone;

pub use fetch::{Ask, Fetch, FetchError, Selector, Stop};
pub use pattern::PATTERN_BYTES_MAX;
pub use series::aggregate::Aggregation;
pub use series::consolidate::{Consolidation, limit_points};
pub use series::{Drawing, Fetched, Series, Tags};
pub use time_ranges::SHIFTS_MAX;
