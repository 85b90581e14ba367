//! The whole binary from outside: started as a process, spoken to over sockets, stopped by signals.
//!
//! Every test has a daemon of its own, on ports that the system chose, in a folder of its own; all run side by side.
//! What they wait for they poll, with deadlines far beyond what a loaded machine needs; no test asserts that
//! something was quick, other than that the daemon does not make one thing wait for another.
//! Not here: what single crates prove beside their code, and behaviour files (`tests/flow`).

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests wait on the machine's own clock, and tell what they skipped or what a daemon said"
)]

mod acks;
mod alerts;
mod bad_input;
mod bench;
#[cfg(target_os = "linux")]
mod carbon;
mod carbonlink;
mod check;
#[cfg(target_os = "linux")]
mod closed_listeners;
mod compressed;
mod deleted;
mod disk_queue;
mod email;
mod encrypted;
#[cfg(target_os = "linux")]
mod exhausted;
mod fanout;
mod first_run;
mod full_queues;
mod graphite;
mod graphite_api;
mod graphite_events;
mod graphite_http;
mod graphite_peers;
#[cfg(target_os = "linux")]
mod hot_restart;
#[cfg(target_os = "linux")]
mod hot_restart_refused;
mod http;
mod http_guard;
mod http_output;
mod kernel_drops;
mod management;
mod one_daemon;
mod opentsdb;
mod outputs;
mod packaging;
mod packet_readers;
mod points;
mod queue;
mod readers;
#[cfg(unix)]
mod relay_cli;
mod relay_delivery;
#[cfg(target_os = "linux")]
mod relay_endpoints;
mod relay_log;
mod relay_statistics;
mod relay_turns;
mod reload;
mod restart;
mod riemann;
mod riemann_config;
mod riemann_corpus;
mod riemann_dashboards;
mod riemann_lines;
mod riemann_output;
mod riemann_points;
mod riemann_state;
mod riemann_subscribers;
mod room;
mod sources;
mod stop;
mod supervisor;
mod support;
mod top;
mod unproven;
mod useless;
mod whisper_store;
mod whisper_tools;
mod words;
