//! Rewrites StatsD lines between clients and servers: filter by parts, edit, convert, and repack (spec statsd §14 R4,
//! R5).
//!
//! Path of a line: a packet of a fan-out -> [`parts()`] -> the endpoint's `process::stage` decides ->
//! [`Rewrite::write`] -> [`Packer`] -> packets for the endpoint's queue. Aggregates take [`AggregateEncoder`] instead
//! of the first three (§16.51).
//! Not here: which lines an endpoint gets (`process::stage`), numbers as samples (`Parser`): a line's values are
//! copied as bytes.
//! Pure: no I/O, no clock. No allocation per line, except for lines of more than 16 tags.
//! Invariants: every line gives its parts or a reject, and no input makes it panic; a plan without changes reproduces
//! the line's bytes; a line is never split, and none is lost between two packets (fuzz target `rewrite`).

mod aggregates;
mod form;
mod pack;
mod parts;
mod plan;
#[cfg(any(test, feature = "reference"))]
pub mod properties;
mod tags;
#[cfg(test)]
mod tests;
mod validated;
mod write;

pub use aggregates::{AggregateEncoder, AggregateEncoding, Encoded, LeftOut, NegativeGauges, TimerType};
pub use form::{Distributions, Form, Gauges, Strip, TagFormat};
pub use pack::Packer;
pub use parts::{Bit, Field, FieldKind, LineKind, Parts, parts};
pub use plan::{RewriteError, RewritePlan};
pub use validated::Rewrite;
pub use write::Written;
