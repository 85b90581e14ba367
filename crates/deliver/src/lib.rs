//! Getting records out: queues, senders, accounts. No sockets, no clock, no files.
//!
//! Path of a packet: blocks of bytes from the pipeline -> [`queue::MemoryQueue`] -> one of the senders, which
//! says what to do next -> the binary does it and reports back -> the copies are settled in the output's account.
//!
//! - [`disk_queue::DiskQueue`]: the queue for outputs whose records have to survive a restart.
//! - [`lanes::Lanes`]: one queue between several senders of one endpoint.
//! - [`stream::StreamSender`]: one TCP or unix stream connection (Graphite lines, pickle frames, repeater).
//! - [`datagram::DatagramSender`]: one UDP or unix datagram socket (repeater).
//! - [`standing::Failover`]: whether others stand in for an endpoint.
//! - [`file::FileSender`]: one file, rotated or not; also the console, which is a file that is always open.
//!
//! Invariant: one output has one account and one queue, and between any two calls
//! `account.sum(queue.copies() + senders' waiting_copies()).holds()`.

pub mod block;
pub mod datagram;
pub mod disk_queue;
pub mod endpoint;
pub mod failover;
pub mod file;
pub mod lanes;
mod pause;
pub mod plan;
pub mod queue;
pub mod stream;

pub use endpoint::{EndpointState, Failure, News, Status};

/// Whether this build can let known bugs in. What is shipped does not compile with it.
pub const HAS_CANARIES: bool = cfg!(feature = "canary");
