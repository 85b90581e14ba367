//! StatsD lines on their way through: filtered by their parts, edited, put into another form, packed anew (spec statsd
//! §14 R4, R5).
//!
//! Path of a line: a packet of a fan-out -> [`parts()`] -> the endpoint's `process::stage` decides -> [`Rewrite::write`]
//! -> [`Packer`] -> packets for the endpoint's queue. Aggregates take [`AggregateEncoder`] in place of the first three
//! (§16.51).
//! Not here: which lines an endpoint wants (`process::stage`), numbers as samples (`Parser`): a line's values travel as
//! the bytes that they are.
//! Pure: no I/O, no clock. No allocation per line but for lines of more than 16 tags.
//! Invariants: every line gives its parts or a reject, and no byte string makes it panic; a plan that changes nothing
//! gives the line's own bytes; a line is never split, and none is lost between two packets (fuzz target `rewrite`).

mod aggregates;
mod form;
mod pack;
mod parts;
mod plan;
#[cfg(any(test, feature = "reference"))]
pub mod promises;
mod tags;
#[cfg(test)]
mod tests;
mod write;

pub use aggregates::{AggregateEncoder, AggregateEncoding, Encoded, LeftOut, NegativeGauges, TimerType};
pub use form::{Distributions, Form, Gauges, Strip, TagFormat};
pub use pack::Packer;
pub use parts::{Bit, Field, FieldKind, LineKind, Parts, parts};
pub use plan::{Rewrite, RewriteError, RewritePlan};
pub use write::Written;
