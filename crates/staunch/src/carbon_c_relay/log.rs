//! The log of `staunch relay` in the original's format: `[2024-03-13 15:42:30] (MSG) text`.
//!
//! Path: `-l FILE`, or stdout for messages and stderr for errors -> [`start`]; SIGHUP -> [`reopen`]; SIGUSR1 ->
//! [`toggle_debug`]. Not here: the messages (everywhere, and `original`).

use std::fmt;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use import::relay::flags::Settings;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

use crate::carbon_c_relay::log_targets::{NOT_AN_ERROR, ORIGINAL, ORIGINAL_DEBUG, OURS};
use crate::log_file::LogFile;
use crate::log_stream;
use sys::clock::Clock;

/// The log of the process.
static LOG: OnceLock<Log> = OnceLock::new();

struct Log {
    file: Option<LogFile>,
    debug: AtomicBool,
    /// Enables or disables debug messages.
    set_debug: Box<dyn Fn(bool) + Send + Sync>,
}

/// Opens the log and makes it the log of the process.
///
/// # Errors
/// When the file cannot be opened.
pub(super) fn start(settings: &Settings, level: &str) -> anyhow::Result<()> {
    let file = settings.log.as_deref().map(LogFile::open).transpose()?;
    let level = level.to_owned();
    let talkative = settings.debug;
    let filter = move |debug: bool| filter(if debug { "debug" } else { &level }, talkative);
    let subscriber = tracing_subscriber::fmt()
        .with_writer(Lines)
        .with_ansi(false)
        .event_format(Form { marked: file.is_some() })
        .with_env_filter(filter(settings.trace))
        .with_filter_reloading();
    let handle = subscriber.reload_handle();
    let log = Log {
        file,
        debug: AtomicBool::new(settings.trace),
        // It fails only when the log has ended with the process.
        set_debug: Box::new(move |debug| drop(handle.reload(filter(debug)))),
    };
    if LOG.set(log).is_ok() {
        subscriber.init();
    }
    Ok(())
}

/// The given level. It excludes messages that have an original's equivalent, and, unless `talkative` (`-d`), debug
/// messages.
fn filter(level: &str, talkative: bool) -> EnvFilter {
    let filter = EnvFilter::try_from_env("STAUNCH_LOG").unwrap_or_else(|_unset| EnvFilter::new(level));
    let left_out = [OURS, ORIGINAL_DEBUG].into_iter().filter(|target| *target == OURS || !talkative);
    left_out.filter_map(|target| format!("{target}=off").parse().ok()).fold(filter, EnvFilter::add_directive)
}

/// Opens the file again, because another program may have renamed it. An error is logged in the open file.
pub(super) fn reopen() {
    let Some(file) = LOG.get().and_then(|log| log.file.as_ref()) else { return };
    tracing::info!(target: ORIGINAL, "closing logfile");
    if let Err(error) = file.reopen() {
        return tracing::error!("{error:#}");
    }
    tracing::info!(target: ORIGINAL, "reopening logfile");
}

/// Whether the log is a file: then a reader of it does not see stderr.
pub(super) fn has_file() -> bool {
    LOG.get().is_some_and(|log| log.file.is_some())
}

/// Writes a text of several lines unchanged, without times.
pub(super) fn text(text: &str) {
    let mut line = Line { error: false };
    // The log is closed: the text is lost.
    let _closed = line.write_all(text.as_bytes());
}

/// Toggles debug messages.
pub(super) fn toggle_debug() {
    if let Some(log) = LOG.get() {
        (log.set_debug)(!log.debug.fetch_xor(true, Relaxed));
    }
}

/// The format of a line.
struct Form {
    /// Whether it contains (MSG) or (ERR): in a file both are needed.
    marked: bool,
}

impl<S, N> FormatEvent<S, N> for Form
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut line: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let stamp = stamp(Clock::now().wall_seconds());
        let mark = match (self.marked, is_error(event.metadata())) {
            (false, _) => "",
            (true, false) => " (MSG)",
            (true, true) => " (ERR)",
        };
        write!(line, "[{stamp}]{mark} ")?;
        context.field_format().format_fields(line.by_ref(), event)?;
        writeln!(line)
    }
}

fn is_error(metadata: &Metadata<'_>) -> bool {
    *metadata.level() <= Level::WARN && metadata.target() != NOT_AN_ERROR
}

/// Each line after its time, as in a log that is not a file.
pub(super) fn stamped(lines: &str) -> String {
    let time = stamp(Clock::now().wall_seconds());
    lines.lines().map(|line| format!("[{time}] {line}\n")).collect()
}

/// Local time.
fn stamp(time_s: u64) -> String {
    let local_s = i64::try_from(time_s).unwrap_or(i64::MAX).saturating_add(sys::utc_offset_s(time_s));
    wire::report::numeric_date(u64::try_from(local_s).unwrap_or(0))
}

/// The destination of lines: the file, or stdout and stderr.
struct Lines;

struct Line {
    error: bool,
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line { error: true }
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> Line {
        Line { error: is_error(metadata) }
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match LOG.get().and_then(|log| log.file.as_ref()) {
            Some(file) => file.write(bytes),
            _ if self.error => log_stream::to_stderr(bytes),
            _ => log_stream::to_stdout(bytes),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn timestamps_are_local_time_before_and_after_a_change_to_summer_time() {
    const ZONE: &str = "EST5EDT,M3.2.0,M11.1.0";
    if std::env::var("TZ").as_deref() != Ok(ZONE) {
        // The time zone belongs to the process: the test starts itself with the right one.
        let own = std::env::current_exe().expect("it runs");
        let name = "carbon_c_relay::log::timestamps_are_local_time_before_and_after_a_change_to_summer_time";
        let run = std::process::Command::new(own).args(["--exact", name]).env("TZ", ZONE).output();
        let run = run.expect("it runs again");
        let said = String::from_utf8_lossy(&run.stdout).into_owned();
        assert!(run.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    for (time_s, want) in [
        (1_709_164_800, "2024-02-28 19:00:00"),
        (1_710_053_999, "2024-03-10 01:59:59"),
        (1_710_054_000, "2024-03-10 03:00:00"),
        (1_730_613_599, "2024-11-03 01:59:59"),
        (1_730_613_600, "2024-11-03 01:00:00"),
    ] {
        assert_eq!(stamp(time_s), want, "{time_s}");
    }
    assert!(stamped("a\nb\n").lines().all(|line| line.starts_with("[20") && line.len() == 23));
}
