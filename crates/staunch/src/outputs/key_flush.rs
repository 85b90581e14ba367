//! The report of busy names (`keyFlush`): appended to its file, or written to stdout.

use std::fs::OpenOptions;
use std::io::{self, Write};

use config::plan::{Plan, SelfCounters};
use wire::report::{KeyFlushEncoding, key_flush_lines};

use crate::daemon::worker::KeyFlushReport;

/// Writes one report to the destination in its transform's plan.
///
/// # Errors
/// When the file cannot be opened or written.
pub fn write(plan: &Plan, report: &KeyFlushReport) -> io::Result<()> {
    let transform = plan.transforms.get(report.transform.index());
    let Some(aggregate) = transform.and_then(|transform| transform.kind.as_aggregate()) else {
        return Ok(());
    };
    let form = match aggregate.self_counters {
        SelfCounters::Perl => KeyFlushEncoding::Perl,
        SelfCounters::Node | SelfCounters::None => KeyFlushEncoding::Node,
    };
    let mut text = Vec::new();
    let names = report.names.iter().map(|(name, count)| (name.as_slice(), *count));
    key_flush_lines(form, report.at.wall_seconds(), names, &mut text);
    match &aggregate.key_flush_log {
        Some(path) => OpenOptions::new().append(true).create(true).open(path)?.write_all(&text),
        None => {
            crate::log_stream::to_stdout(&text);
            Ok(())
        }
    }
}
