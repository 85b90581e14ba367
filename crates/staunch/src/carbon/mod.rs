//! The compatibility mode for carbon's Python daemons: `staunch carbon cache|relay|aggregator|aggregator-cache`, with their command
//! line, files and folders (spec graphite §4.1).
//!
//! | file | what it does |
//! |---|---|
//! | `args.rs` | the options |
//! | `places.rs` | carbon.conf, rule files, pid file and log of one daemon, from options and environment |
//! | `control.rs` | `stop`, `status`, and whether it runs already |
//! | `daemon.rs` | `start` |
//! | `log.rs` | the log: a file, or stderr |
//! | `self_metrics.rs` | the daemon's own figures under carbon's names |
//!
//! Not here: the meaning of carbon.conf and its rules (`import::carbon`), the store (`outputs::store`).

mod args;
mod control;
mod daemon;
mod log;
mod places;
pub(crate) mod self_metrics;

use std::process::ExitCode;

pub(crate) use self::args::CarbonArgs;
use self::args::{Action, Program};
use self::places::Places;
use crate::cli::MISTAKES;
use client::stdio;

/// Names of carbon's programs, and the word of each on our command line.
pub(crate) const PROGRAMS: [(&str, &str); 4] = [
    ("carbon-cache", "cache"),
    ("carbon-relay", "relay"),
    ("carbon-aggregator", "aggregator"),
    ("carbon-aggregator-cache", "aggregator-cache"),
];

/// `staunch carbon`
pub(crate) fn carbon(args: &CarbonArgs, log_level: &str) -> anyhow::Result<ExitCode> {
    if let Some(wrong) = wrong(args) {
        stdio::say(&format!("staunch: {wrong}\n"));
        return Ok(ExitCode::from(MISTAKES));
    }
    let places = Places::of(args)?;
    match args.action {
        Action::Start => daemon::start(args, places, log_level),
        Action::Stop => control::stop(&places),
        Action::Status => control::status(&places),
    }
}

/// An option that this program does not have in carbon either.
fn wrong(args: &CarbonArgs) -> Option<String> {
    let is_aggregator = matches!(args.program, Program::Aggregator | Program::AggregatorCache);
    let program = args.program.word();
    if args.rewrite_rules.is_some() && !is_aggregator {
        return Some(format!("carbon-{program} has no --rewrite-rules: only aggregators rewrite"));
    }
    if args.rules.is_some() && args.program == Program::Cache {
        return Some("carbon-cache has no --rules: it stores every point".to_owned());
    }
    None
}
