//! The client side of the command line: verbs that inspect a running daemon over its HTTP API, or its files on disk.
//!
//! `top` shows a running daemon in a terminal. `queue` lists, checks, exports, drops and replays queues on disk: it asks the daemon
//! while one runs, and opens the files itself while none does. `api_client` sends the HTTP requests.
//! `store` deletes and renames series of a running daemon, and has it write all points.
//! What the daemon shares with these verbs is here as well: the documents of `/api/v1/queues`, blocks of queues as text, and
//! output to a terminal.
//! Not here: the daemon (`staunch`), queue files (`deliver`), reading a config: the binary passes a function for it ([`ReadPlan`]).

mod api_client;
pub mod args;
pub mod blocks;
pub mod exit_code;
mod owner;
pub mod queue;
pub mod status;
pub mod stdio;
pub mod store;
pub mod top;

use std::path::Path;

use config::plan::Plan;

/// Reads and checks the config of a daemon.
pub type ReadPlan<'a> = &'a dyn Fn(&Path) -> anyhow::Result<Plan>;
