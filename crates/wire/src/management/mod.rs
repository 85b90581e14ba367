//! StatsD's management port (spec statsd §11), and that of its cluster proxy (§13): bytes to commands, values to
//! replies.
//!
//! Path of a command: connection -> `Commands::push` -> `Command::parse` -> the owner of the state looks up the
//! values -> `Replies` and `Dump` write the answer -> connection. This module keeps no state of the daemon.

mod command;
mod commands;
mod proxy;
mod replies;

pub use command::{Command, Names, Pattern};
pub use commands::{COMMAND_BYTES_MAX, Commands};
pub use proxy::{HEALTH_REPLY_BYTES_MAX, HEALTH_REQUEST, ProxyCommand, ProxyReplies, health_reply};
pub use replies::{Dump, Replies, TargetFigures};

/// Which original program's syntax and replies to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Node statsd (spec statsd §11.1).
    Node,
    /// Net::Statsd::Server (spec statsd §11.2).
    Perl,
}

#[cfg(test)]
mod tests;
