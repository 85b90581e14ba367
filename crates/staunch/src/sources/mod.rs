//! Sources: sockets that records come in by. Datagram sockets are read by the shard's thread (`daemon::worker`),
//! connections by tasks of their own.

pub mod accept;
mod answered;
pub mod bind;
mod handshakes;
mod log_throttle;
pub mod own;
pub mod parked;
mod shares;
pub mod stream;
pub mod turns;
mod unfinished;
mod wrapping;
