//! `staunch relay`: carbon-c-relay's command line.
//!
//! Path: `args` (flags as words) -> `import::relay::flags` (settings) -> one of `test_mode` (-t and -tt), `explain` or `daemon`.
//! `files` reads configuration files from disk, `addresses` resolves the names of servers.
//! Not here: the language (`import::relay`), routing (`process::relay`).

pub(super) mod addresses;
mod args;
pub(super) mod check;
mod daemon;
pub(super) mod explain;
pub(super) mod files;
mod import;
pub(super) mod version;

use std::io::IsTerminal;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use ::import::relay::flags::{FlagMistake, Machine, Settings, Test, settings};
use ::import::relay::{Reading, render_mistakes};
use clap::CommandFactory;
use config::diagnostic::Severity;

pub(crate) use self::args::RelayArgs;
pub(crate) use self::check::checked;
pub(crate) use self::import::import;
use super::test_mode;
use crate::cli::args::Args;
use crate::cli::{MISTAKES, load};
use client::stdio;
use client::stdio::wants_colour;

/// Where HTTP listens without `--http`.
const HTTP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8680);

/// `staunch relay`
pub(crate) fn relay(args: &RelayArgs, log_level: &str) -> anyhow::Result<ExitCode> {
    if args.version {
        stdio::data(version::lines().as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let ignored = |word| format!("warning: `{word}` belongs to no flag and is ignored\n");
    let ignored: String = args.ignored.iter().map(ignored).collect();
    let (settings, mistakes) = settings(&args.flags(), &machine());
    let said = ignored + &report(&mistakes);
    let Some(settings) = settings else {
        stdio::data(usage().as_bytes())?;
        stdio::say(&said);
        return Ok(ExitCode::from(MISTAKES));
    };
    let wrong = unread_authorities(&settings);
    if settings.test == Test::No && args.explain.is_empty() && wrong.is_none() {
        return daemon::run(args, settings, &said, log_level);
    }
    stdio::say(&said);
    if let Some(wrong) = wrong {
        stdio::say(&wrong);
        return Ok(ExitCode::from(MISTAKES));
    }
    match settings.test {
        Test::Parse => test_mode::parse(&settings),
        Test::Names => test_mode::names(&args.flags(), &settings),
        Test::No => explain::explain(args, &settings),
    }
}

/// The output for invalid flags: the usage on stdout, as in the original.
pub(crate) fn refused(error: &clap::Error) -> ExitCode {
    // Stdout may be closed; the exit code is the same.
    let _closed = stdio::data(usage().as_bytes());
    let text = error.to_string();
    stdio::say(&format!("{}\n", text.split("\n\n").next().unwrap_or(&text).trim_end()));
    ExitCode::from(MISTAKES)
}

/// The short help.
fn usage() -> String {
    let mut command = Args::command().term_width(80);
    command.build();
    let relay = command.find_subcommand_mut("relay").expect("it is one of the verbs");
    relay.render_help().to_string()
}

fn report(mistakes: &[FlagMistake]) -> String {
    let text = |mistake: &FlagMistake| {
        let severity = if mistake.severity == Severity::Error { "error" } else { "warning" };
        format!("{severity}: {}\n  hint: {}\n", mistake.message, mistake.hint)
    };
    mistakes.iter().map(text).collect()
}

fn machine() -> Machine {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Machine { hostname: load::hostname(), cores }
}

/// The original opens the CA file before anything else.
fn unread_authorities(settings: &Settings) -> Option<String> {
    let path = settings.ca.as_ref()?;
    let why = std::fs::File::open(path).err()?;
    let why = files::words(&why);
    Some(format!("failed to open TLS/SSL CA file '{}': {why}\n", path.display()))
}

/// Whether a person reads stderr: errors are then shown in our longer format.
pub(super) fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Whether stderr is in colour.
pub(super) fn colour() -> bool {
    wants_colour(stderr_is_terminal())
}

/// Errors and warnings for people; empty without any.
pub(super) fn rendered(reading: &Reading, colour: bool) -> String {
    if reading.mistakes.is_empty() {
        return String::new();
    }
    render_mistakes(&reading.files, &reading.mistakes, colour)
}
