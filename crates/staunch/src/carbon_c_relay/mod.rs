//! The compatibility mode for carbon-c-relay: everything that only `staunch relay` needs.
//!
//! | file or folder | what it does |
//! |---|---|
//! | `command_line/` | its flags, its configuration file, and the daemon that they start; `staunch check` and `staunch import` of a relay.conf |
//! | `test_mode/` | `-t` and `-tt`, and the texts that a start prints |
//! | `log.rs` | its log format |
//! | `log_targets.rs` | which log lines of the daemon go into that log |
//! | `original.rs` | what the daemon does at start, reload and stop: its log lines and signals |
//! | `closing.rs` | its last report: what became of every line |
//! | `statistics/` | its statistics, as a source of points, log lines or lines on stdout |
//!
//! Not here: its configuration language (`import::relay`), routing (`process::relay`), relays of a native config: their API
//! (`admin::relay`), metrics (`admin::metrics::relay`) and the explanation of a route (`route_explanation`).

mod closing;
pub(crate) mod command_line;
mod log;
pub mod log_targets;
pub mod original;
pub mod statistics;
mod test_mode;
