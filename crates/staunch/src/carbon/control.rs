//! `stop` and `status`, by the file with the process id (spec graphite §4.1). Scripts read these lines and exit codes.
//!
//! A process that has the number and is another program counts as not running: the original would end it.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;

use super::places::Places;
use crate::cli::MISTAKES;
use crate::daemon::hot_restart::link::CONTROL_FILE;
use client::stdio;
use sys::clock::Clock;

/// Longest wait for a process that is stopping: the defaults of `stop_timeout`, of the daemon and of a store, and some seconds.
const STOP_MAX: Duration = Duration::from_secs(75);

/// Time between two looks at it.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// There is none.
    Nothing,
    /// It has no number.
    Corrupt,
    /// This process, and whether it runs.
    Process { pid: u32, runs: bool },
}

fn found(places: &Places) -> anyhow::Result<Found> {
    let text = match fs::read_to_string(&places.pid_file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => {
            return Err(error)
                .with_context(|| format!("Could not read pidfile {}", places.pid_file.display()));
        }
    };
    Ok(match text.trim().parse() {
        Ok(pid) => Found::Process { pid, runs: sys::is_running(pid) && is_ours(pid) },
        Err(_) => Found::Corrupt,
    })
}

/// Whether a process is a daemon of carbon, the original or this program. True where that cannot be known.
fn is_ours(pid: u32) -> bool {
    let Ok(words) = fs::read(format!("/proc/{pid}/cmdline")) else { return true };
    let words = String::from_utf8_lossy(&words);
    words.contains("carbon") || words.contains("staunch")
}

fn say(line: &str) -> anyhow::Result<()> {
    stdio::data(format!("{line}\n").as_bytes())?;
    Ok(())
}

fn remove_corrupt(places: &Places) -> anyhow::Result<ExitCode> {
    let file = places.pid_file.display();
    say(&format!("Failed to parse pid from pidfile {file}\nremoving corrupted pidfile {file}"))?;
    fs::remove_file(&places.pid_file).with_context(|| format!("Could not remove pidfile {file}"))?;
    Ok(ExitCode::from(MISTAKES))
}

/// Asks it to end, and does not wait for that.
pub(super) fn stop(places: &Places) -> anyhow::Result<ExitCode> {
    match found(places)? {
        Found::Nothing => say(&format!("Pidfile {} does not exist", places.pid_file.display()))?,
        Found::Corrupt => return remove_corrupt(places),
        Found::Process { pid, runs } => {
            say(&format!("Sending kill signal to pid {pid}"))?;
            if runs {
                sys::terminate(pid).with_context(|| format!("cannot stop process {pid}"))?;
            } else {
                say(&format!("No process with pid {pid} running"))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Says whether it runs.
pub(super) fn status(places: &Places) -> anyhow::Result<ExitCode> {
    let Places { program, instance, .. } = places;
    match found(places)? {
        Found::Process { pid, runs: true } => {
            say(&format!("{program} (instance {instance}) is running with pid {pid}"))?;
            Ok(ExitCode::SUCCESS)
        }
        Found::Corrupt => remove_corrupt(places),
        Found::Nothing | Found::Process { .. } => {
            say(&format!("{program} (instance {instance}) is not running"))?;
            Ok(ExitCode::from(MISTAKES))
        }
    }
}

/// Waits for the end of a process that is stopping: a stop writes the points in memory, and takes longer than the original's.
fn wait_while_stopping(places: &Places) -> anyhow::Result<()> {
    let Places { program, instance, data_dir, .. } = places;
    let until_ns = Clock::mono_ns() + STOP_MAX.as_nanos() as u64;
    let mut is_said = false;
    while let Found::Process { pid, runs: true } = found(places)?
        && is_stopping(pid, data_dir)
        && Clock::mono_ns() < until_ns
    {
        if !is_said {
            say(&format!("{program} (instance {instance}) with pid {pid} is stopping: waiting for its end"))?;
            is_said = true;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// Whether this program runs there without its control socket: it removes that one first. The original never had one.
fn is_stopping(pid: u32, data_dir: &Path) -> bool {
    let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let is_python = program.file_name().is_none_or(|name| name.to_string_lossy().starts_with("python"));
    !is_python && data_dir.is_dir() && !data_dir.join(CONTROL_FILE).exists()
}

/// Before a start: the exit code if it must not start.
pub(super) fn before_start(places: &Places, replaces: bool) -> anyhow::Result<Option<ExitCode>> {
    let Places { program, instance, pid_file, .. } = places;
    if !replaces {
        wait_while_stopping(places)?;
    }
    match found(places)? {
        Found::Process { runs: true, .. } if replaces => {}
        Found::Process { pid, runs: true } => {
            say(&format!("{program} (instance {instance}) is already running with pid {pid}"))?;
            return Ok(Some(ExitCode::from(MISTAKES)));
        }
        Found::Process { .. } => {
            say(&format!("Removing stale pidfile {}", pid_file.display()))?;
            fs::remove_file(pid_file)
                .with_context(|| format!("Could not remove pidfile {}", pid_file.display()))?;
        }
        Found::Corrupt => return remove_corrupt(places).map(Some),
        Found::Nothing => {}
    }
    if let Some(folder) = pid_file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    say(&format!("Starting {program} (instance {instance})"))?;
    Ok(None)
}
