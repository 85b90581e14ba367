//! What the binary is made of: the daemon with its sockets, threads and ports, and the command line.

pub mod admin;
pub mod admission;
pub mod cli;
pub mod daemon;
mod disk_room;
pub mod kernel;
mod log_stream;
pub mod log_targets;
pub mod outputs;
pub mod route_explanation;
pub mod sources;
