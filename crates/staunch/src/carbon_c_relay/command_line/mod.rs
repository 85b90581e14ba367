//! `staunch relay`: carbon-c-relay's command line.
//!
//! Path: `args` (flags as words) -> `import::relay::flags` (settings) -> one of `test_mode` (-t and -tt), `explain` or `daemon`.
//! `files` reads configuration files from disk, `addresses` resolves the names of servers, `diagnostics` shows errors.
//! Not here: the language (`import::relay`), routing (`process::relay`).

pub(super) mod addresses;
mod args;
pub(super) mod check;
mod daemon;
pub(super) mod diagnostics;
pub(super) mod explain;
pub(super) mod files;
mod import;
mod machine;
pub(super) mod version;

use std::process::ExitCode;

use ::import::relay::flags::{Settings, Test, settings};
use clap::CommandFactory;

pub(crate) use self::args::RelayArgs;
pub(crate) use self::check::checked;
use self::diagnostics::report;
pub(crate) use self::import::import;
use self::machine::machine;
use super::test_mode;
use crate::cli::MISTAKES;
use crate::cli::args::Args;
use client::stdio;

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

/// The original opens the CA file before anything else.
fn unread_authorities(settings: &Settings) -> Option<String> {
    let path = settings.ca.as_ref()?;
    let why = std::fs::File::open(path).err()?;
    let why = files::words(&why);
    Some(format!("failed to open TLS/SSL CA file '{}': {why}\n", path.display()))
}
