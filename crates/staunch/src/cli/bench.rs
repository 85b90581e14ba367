//! `staunch bench`: the table on stdout, progress on stderr. Exit 1 when a limit was not kept.

use std::process::ExitCode;

use super::MISTAKES;
use super::args::{BenchArgs, BenchKind};
use crate::bench::{fanout, queue, relay, statsd};
use client::stdio;

/// `staunch bench`
pub(crate) fn bench(args: &BenchArgs) -> anyhow::Result<ExitCode> {
    let mut tell = |progress: &str| stdio::say(&format!("{progress}\n"));
    let report = match &args.kind {
        BenchKind::Statsd(statsd) => statsd::run(statsd, &mut tell)?,
        BenchKind::Fanout(fanout) => fanout::run(fanout, &mut tell)?,
        BenchKind::Queue(queue) => queue::run(queue, &mut tell)?,
        BenchKind::Relay(relay) => relay::run(relay, &mut tell)?,
    };
    let text = if args.json { serde_json::to_string_pretty(&report)? + "\n" } else { report.to_string() };
    stdio::data(text.as_bytes())?;
    Ok(if report.all_met() { ExitCode::SUCCESS } else { ExitCode::from(MISTAKES) })
}
