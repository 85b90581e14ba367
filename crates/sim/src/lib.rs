//! The pipeline in one thread with a seeded world around it.
//!
//! - [`flow::run()`] runs `.flow` files: what `staunch test` does.
//! - [`storm()`] runs a whole pipeline through random traffic and faults from a seed, and checks everything.
//! - [`relay_storm()`] does the same with a relay and the clusters of its endpoints.
//!
//! All drive the real intakes, shard, queues and senders; only sockets, files and clocks are simulated.

pub mod flow;
mod glob;
mod random;
mod relay_storm;
mod storm;
mod world;

pub use relay_storm::{RelayCalm, relay_storm};
pub use storm::{Calm, Found, Story, Tally, storm, storm_told, storm_with};
pub use world::canary::Canary;
