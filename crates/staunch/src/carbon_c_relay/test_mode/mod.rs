//! `-t` and `-tt`: the test mode of carbon-c-relay, byte for byte (spec graphite §2.11), so that programs that read its
//! output can read ours.
//!
//! Without names on stdin, it is a check that prints the parsed configuration. Errors are printed in the original's
//! format, line by line after the time. At a terminal, and with `-tt`, all are also printed in ours.

pub(super) mod meetings;
pub(super) mod preamble;

use std::io::{BufRead, Read, Write};
use std::process::ExitCode;

use anyhow::Context;
use import::relay::addresses::{names_of_use_all, with_all_used};
use import::relay::flags::{Flags, Settings};
use import::relay::plan::Relay;
use import::relay::{FileText, Reading, RelayConf, has_errors, upstream_lines, upstream_warnings};

use self::meetings::Meetings;
use self::preamble::{configuration_text, settings_text, starting};
use super::command_line::check::plan_of;
use super::command_line::diagnostics::{colour, rendered, stderr_is_terminal};
use super::command_line::explain::place;
use super::command_line::{addresses, files};
use super::log::stamped;
use crate::cli::MISTAKES;
use crate::route_explanation::GaveUpAt;
use client::stdio;

/// Longest line on stdin: a longer name is invalid.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// `-tt`: whether the configuration is valid.
pub(super) fn parse(settings: &Settings) -> anyhow::Result<ExitCode> {
    let mut reading = files::reading(&settings.config);
    if let Some(conf) = &reading.conf {
        // Includes errors that would prevent a start: the original does not check these before.
        let asked = Relay { conf, settings, queue_given: false, queue_dir: None, http: None };
        reading.mistakes.extend(plan_of(&asked).1);
    }
    stdio::say(&rendered(&reading, colour()));
    if !has_errors(&reading.mistakes) {
        return Ok(ExitCode::SUCCESS);
    }
    stdio::say(&stamped(&upstream_lines(&reading.files, &reading.mistakes)));
    Ok(ExitCode::from(MISTAKES))
}

/// `-t`: the configuration, and the matching rules of each name on stdin.
pub(super) fn names(flags: &Flags, settings: &Settings) -> anyhow::Result<ExitCode> {
    let reading = files::reading(&settings.config);
    // First the messages, then the output, so that a reader of both finds errors above the configuration.
    say_mistakes(&reading);
    let mut out = stamped(&starting()) + &settings_text(flags, settings);
    let Some(conf) = reading.conf else {
        stdio::data(out.as_bytes())?;
        return Ok(ExitCode::from(MISTAKES));
    };
    let conf = with_use_all(&conf);
    out.push_str(&configuration_text(&conf, settings));
    if stdio::data(out.as_bytes())? {
        meet_all(&conf, &reading.files, settings)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn say_mistakes(reading: &Reading) {
    if stderr_is_terminal() {
        stdio::say(&rendered(reading, colour()));
    }
    stdio::say(&stamped(&upstream_warnings(&reading.mistakes)));
    stdio::say(&stamped(&upstream_lines(&reading.files, &reading.mistakes)));
}

/// With the addresses of `useall` as members, because the chosen member depends on their number. No other name is
/// resolved.
fn with_use_all(conf: &RelayConf) -> RelayConf {
    let known = addresses::of(&names_of_use_all(conf));
    let (conf, wrong) = with_all_used(conf, &|name| addresses::among(&known, name));
    let said: String = wrong.iter().map(|wrong| format!("warning: {}\n", wrong.message)).collect();
    stdio::say(&stamped(&said));
    conf
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
        gave_up.iter().for_each(|one| stdio::say(&stamped(&warning(one, name))));
    }
}

/// Warnings without an equivalent in the original go to stderr.
fn warning(gave_up: &GaveUpAt, name: &[u8]) -> String {
    let GaveUpAt { at, kind, expression } = gave_up;
    let name = String::from_utf8_lossy(name).replace(char::is_control, "\u{fffd}");
    format!("warning: {at}: {kind} {expression} gave up on {name}, which counts as no match\n")
}

/// Writes to stdout; false when it is closed.
fn write(bytes: &[u8]) -> std::io::Result<bool> {
    match std::io::stdout().lock().write_all(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}
