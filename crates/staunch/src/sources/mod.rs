//! Sources: sockets that records come in by. Datagram sockets are read by the shard's thread (`daemon::worker`),
//! connections by tasks of their own.

mod answered;
pub mod bind;
pub mod own;
pub mod parked;
pub mod stream;
mod wrapping;
