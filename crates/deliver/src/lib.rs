//! Delivery: queues, senders and their accounts. No sockets, no clock, no files.
//!
//! Path of a packet: blocks of bytes from the pipeline -> [`queue::MemoryQueue`] -> a sender, which returns the next
//! action -> the binary performs it and reports the result -> the copies are settled in the output's account.
//!
//! - [`queue::MemoryQueue`]: the queue in memory.
//! - [`disk_queue::DiskQueue`]: the queue on disk; its records survive a restart.
//! - [`shared_queue::SharedQueue`]: one queue shared by several connections to one endpoint.
//! - [`stream::StreamSender`]: one TCP or unix stream connection (Graphite lines, pickle frames, repeater).
//! - [`datagram::DatagramSender`]: one UDP or unix datagram socket (repeater).
//! - [`file::FileSender`]: one file, rotated or not; also the console, which is a file that is always open.
//! - [`request::RequestSender`]: requests with answers, such as HTTP.
//! - [`store::StoreSender`]: a store of records, such as whisper files.
//! - [`failover::Failover`]: whether other members of a cluster replace an endpoint that is down.
//!
//! Invariant: an output has one account and one queue, and between any two calls
//! `account.sum(queue.copies() + senders' waiting_copies()).holds()`.

pub mod block;
pub mod datagram;
pub mod disk_queue;
pub mod endpoint;
pub mod failover;
pub mod file;
mod pause;
pub mod plan;
pub mod queue;
pub mod request;
pub mod shared_queue;
pub mod store;
pub mod stream;

pub use endpoint::{EndpointState, Failure, StateChange, Status};

/// Whether this build can enable known bugs (canaries). The released binary does not compile with this feature.
pub const HAS_CANARIES: bool = cfg!(feature = "canary");
