//! What the binary is made of: the daemon with its sockets, threads and ports, and the command line.

pub mod admin;
pub mod admission;
pub mod build;
#[cfg(unix)]
mod carbon;
pub mod carbon_c_relay;
pub mod chain_explanation;
pub mod cli;
pub mod daemon;
mod disk_room;
pub mod kernel;
mod log_file;
mod log_stream;
pub mod outputs;
pub mod route_explanation;
pub mod sources;
