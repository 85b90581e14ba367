//! Sources: sockets that receive records. The shard's thread reads datagram sockets (`daemon::worker`), tasks read
//! connections.

pub mod accept;
mod answered;
pub(crate) mod compiled;
pub mod listener;
mod log_throttle;
pub mod own;
pub mod parked;
mod post;
mod queries;
mod shares;
pub mod stream;
pub mod subscribers;
