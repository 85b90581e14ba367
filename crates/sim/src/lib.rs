//! The pipeline in one thread with a seeded world around it.
//!
//! - [`flow::run()`] runs `.flow` files: what `staunch test` does.
//! - [`storm()`] runs a whole pipeline through random traffic and faults from a seed, and checks everything.
//!
//! Both drive the real intakes, shard, queues and senders; only sockets, files and clocks are simulated.

pub mod flow;
mod glob;
mod random;
mod storm;
mod world;

pub use storm::{Calm, Found, Story, Tally, storm, storm_told, storm_with};
pub use world::canary::Canary;
