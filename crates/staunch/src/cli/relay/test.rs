//! `-t` and `-tt`: the test mode of carbon-c-relay, byte for byte (spec graphite §2.11), so that what reads its output
//! reads ours.
//!
//! Without names on stdin it is a check that prints what it understood. Mistakes are told in the original's words, line by
//! line with the time in front; a person at a terminal, and whoever says `-tt`, gets all of them in ours as well.

use std::fmt::Write as _;
use std::io::{BufRead, Read, Write};
use std::process::ExitCode;

use anyhow::Context;
use config::import::relay::flags::{Flags, Settings, Submission};
use config::import::relay::{
    FileText, Form, Reading, RelayConf, Surroundings, TestView, print_test, upstream_lines, upstream_warnings,
};

use super::explain::place;
use super::meetings::Meetings;
use super::{files, rendered, stderr_is_terminal, version};
use crate::cli::MISTAKES;
use crate::clock::Clock;
use crate::explained::GaveUpAt;
use crate::talk;

/// Longest line on stdin: a name that is longer is none.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// `-tt`: whether the configuration is right.
pub(super) fn parse(settings: &Settings) -> anyhow::Result<ExitCode> {
    let reading = files::reading(&settings.config);
    talk::say(&rendered(&reading));
    if reading.conf.is_some() {
        return Ok(ExitCode::SUCCESS);
    }
    talk::say(&stamped(&upstream_lines(&reading.files, &reading.mistakes)));
    Ok(ExitCode::from(MISTAKES))
}

/// `-t`: the configuration, and what each name on stdin meets.
pub(super) fn names(flags: &Flags, settings: &Settings) -> anyhow::Result<ExitCode> {
    let reading = files::reading(&settings.config);
    // First what is said, then what is printed: readers who take both find mistakes above the configuration.
    say_mistakes(&reading);
    let mut out = head(flags, settings);
    let Some(conf) = reading.conf else {
        talk::data(out.as_bytes())?;
        return Ok(ExitCode::from(MISTAKES));
    };
    let prefix = conf.statistics.prefix_for(&settings.hostname);
    let surroundings = Surroundings { port: settings.port, prefix: Some(&prefix), form: Form::Original };
    let view = TestView { debug: settings.debug, group_from: settings.optimise };
    out.push_str("parsed configuration follows:\n");
    out.push_str(&print_test(&conf, &surroundings, view));
    out.push('\n');
    if talk::data(out.as_bytes())? {
        meet_all(&conf, &reading.files, settings)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn say_mistakes(reading: &Reading) {
    if stderr_is_terminal() {
        talk::say(&rendered(reading));
    }
    talk::say(&stamped(&upstream_warnings(&reading.mistakes)));
    talk::say(&stamped(&upstream_lines(&reading.files, &reading.mistakes)));
}

/// The first line of the log, and the settings.
fn head(flags: &Flags, settings: &Settings) -> String {
    let mut out = stamped(&format!("starting {}, pid={}\n", version::name(), std::process::id()));
    out.push_str("configuration:\n");
    let mut row = |name: &str, value: &dyn std::fmt::Display| {
        let _ = writeln!(out, "    {name} = {value}");
    };
    row("relay hostname", &settings.hostname);
    row("workers", &settings.workers);
    row("send batch size", &settings.batch);
    row("server queue size", &settings.queue);
    row("server max stalls", &settings.stalls);
    row("listen backlog", &settings.backlog);
    if let Some(bytes) = settings.buffer_bytes {
        row("socket bufsize", &bytes);
    }
    if let Some(path) = &settings.ca {
        row("tls/ssl CA", &path.display());
    }
    row("server connection IO timeout", &format_args!("{}ms", settings.timeout_ms));
    let idle = if settings.idle_timeout_ms == 0 { "never" } else { "10m" };
    row("idle connections disconnect timeout", &idle);
    if let Some(allowed) = &flags.allowed {
        row("extra allowed characters", allowed);
    }
    if settings.line_bytes_max != Settings::LINE_BYTES_MAX {
        row("max input length", &settings.line_bytes_max);
    }
    if flags.name_bytes_max.is_some() {
        row("max metric length", &settings.name_bytes_max);
    }
    if settings.debug {
        row("debug", &true);
    } else if settings.submission != Submission::No {
        row("submission", &true);
    }
    row("configuration", &settings.config);
    out.push('\n');
    out
}

/// Each line with the time in front, as in a log.
fn stamped(lines: &str) -> String {
    let time = wire::report::numeric_date(Clock::now().wall_seconds());
    lines.lines().map(|line| format!("[{time}] {line}\n")).collect()
}

fn meet_all(conf: &RelayConf, files: &[FileText], settings: &Settings) -> anyhow::Result<()> {
    let place = |statement, expression| place(conf, files, statement, expression);
    let meetings = Meetings::new(conf, settings.debug, settings.allowed.contains(&b';'));
    let mut lines = std::io::stdin().lock();
    let mut line = Vec::new();
    let mut text = Vec::new();
    loop {
        line.clear();
        let read = lines.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        if read.context("cannot read names from stdin")? == 0 {
            return Ok(());
        }
        let name = line.strip_suffix(b"\n").unwrap_or(&line);
        let name = name.strip_suffix(b"\r").unwrap_or(name);
        if name.is_empty() {
            continue;
        }
        text.clear();
        let gave_up = meetings.write(name, &mut text, &place);
        if !write(&text)? {
            return Ok(());
        }
        gave_up.iter().for_each(|one| talk::say(&stamped(&warning(one, name))));
    }
}

/// What the original has no words for: it is told on stderr.
fn warning(gave_up: &GaveUpAt, name: &[u8]) -> String {
    let GaveUpAt { at, kind, expression } = gave_up;
    let name = String::from_utf8_lossy(name).replace(char::is_control, "\u{fffd}");
    format!("warning: {at}: {kind} {expression} gave up on {name}, which counts as no match\n")
}

/// Writes to stdout; false when its reader has gone away.
fn write(bytes: &[u8]) -> std::io::Result<bool> {
    match std::io::stdout().lock().write_all(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}
