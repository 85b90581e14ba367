//! The index: the latest event of each [host service] (spec riemann §4).
//!
//! Path of an event: [`Index::insert`] -> `keys` (its slot) -> `share` (its texts as they are kept) -> `entries`, and for a
//! new key or changed tags also `terms` (host, service, tags) -> `deadlines`.
//! Path of a query: [`Search::new`] -> `plan` (which events can match) -> [`Search::run`], in slices, which checks each.
//! The index publishes nothing: it returns what happened, and expired events, to the caller.
//! Invariant: every plan gives the events that a scan of all gives.

mod deadlines;
mod entries;
mod expiry;
mod hasher;
mod keys;
mod limits;
mod memory;
mod pages;
mod plan;
mod recent;
mod search;
mod share;
mod slot_set;
mod table;
mod tag_lists;
mod terms;

#[cfg(test)]
mod tests;

pub use expiry::{Age, DEFAULT_TTL_S, KeepKeys, age, expired_event, is_infinity};
pub use limits::{Limits, Progress, Reject, SLICE_STEPS, SWEEP_EVENTS, SearchLimits, Stop};
pub use search::{Search, SearchCounts, same_fields};
pub use table::{Change, Expired, Index};
