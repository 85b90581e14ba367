//! The pipeline in one thread with a seeded world around it.
//!
//! - [`flow::run()`] runs `.flow` files, as `staunch test` does.
//! - [`storm()`] runs a whole pipeline through random traffic and faults from a seed, and checks everything.
//! - [`clock_storm()`] sets the wall clock of an aggregation whose process is stopped, killed and replaced.
//! - [`relay_storm()`] is a storm of a relay and the clusters of its endpoints.
//! - [`chain_storm()`] does it with random graphs of relays that feed each other.
//! - [`store_storm()`] is a storm of a store and its files.
//! - [`stream_storm()`] is a storm of a Riemann config and what its streams remember.
//!
//! All drive the real intakes, shard, queues and senders; only sockets, files and clocks are simulated.

mod chain_storm;
mod clock_storm;
pub mod flow;
mod glob;
mod random;
mod relay_storm;
mod store_storm;
mod storm;
mod stream_storm;
mod world;

pub use chain_storm::{ChainCalm, chain_storm, chain_storm_with};
pub use clock_storm::{ClockCalm, clock_storm, clock_storm_with};
pub use relay_storm::{RelayCalm, relay_storm};
pub use store_storm::{StoreCalm, store_storm, store_storm_with};
pub use storm::{Calm, Found, Story, Tally, storm, storm_with, storm_with_story};
pub use stream_storm::{StreamCalm, stream_storm, stream_storm_with};
pub use world::canary::Canary;
