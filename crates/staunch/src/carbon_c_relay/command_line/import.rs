//! `staunch import relay`: a relay.conf and its flags as a plan that can be printed.
//!
//! Not here: the native format (`config::print`).

use std::path::Path;

use clap::Parser;
use import::relay::flags::{Flags, settings};

use super::args::RelayArgs;
use super::daemon;
use super::diagnostics::report;
use super::machine::machine;
use crate::cli::load::Imported;

/// Only the flags of carbon-c-relay.
#[derive(Debug, Parser)]
#[command(name = "carbon-c-relay", disable_help_flag = true)]
struct Alone {
    #[command(flatten)]
    relay: RelayArgs,
}

/// Imports carbon-c-relay's file and flags.
///
/// # Errors
/// When the flags are not carbon-c-relay's.
pub(crate) fn import(file: &Path, words: &[String]) -> anyhow::Result<Imported> {
    let words = std::iter::once("carbon-c-relay").chain(words.iter().map(String::as_str));
    let mut args = Alone::try_parse_from(words).map_err(|error| {
        let text = error.to_string();
        anyhow::anyhow!("behind `--`: {}", text.split("\n\n").next().unwrap_or(&text).trim_end())
    })?;
    args.relay.config = Some(file.display().to_string());
    let flags = args.relay.flags();
    let (settings, mistakes) = settings(&flags, &machine());
    let left_out = left_out(&flags);
    let said = report(&mistakes) + &left_out;
    let Some(settings) = settings else { return Ok(Imported { plan: None, said, loses_a_line: true }) };
    let loaded = daemon::load(&args.relay, &settings);
    let loses_a_line = loaded.loses_a_line || !left_out.is_empty();
    Ok(Imported { plan: loaded.plan, said: said + &loaded.said, loses_a_line })
}

/// Flags without an option in a native file.
fn left_out(flags: &Flags) -> String {
    let given = [
        ("-l", flags.log.is_some(), "the log goes to stderr: have the service manager store it"),
        ("-P", flags.pid_file.is_some(), "the service manager knows the process"),
        ("-D", flags.daemonise, "the service manager runs it"),
        ("-d", flags.debug > 0, "RUST_LOG sets the log level"),
        ("-w", flags.workers.is_some(), "one thread routes"),
        ("-b", flags.batch.is_some(), "sending has no batches of records"),
        ("-L", flags.stalls.is_some(), "`queue` of the outputs says what happens when it is full"),
        ("-B", flags.backlog.is_some(), "the backlog is 1024, or net.core.somaxconn if that is lower"),
        ("-s", flags.submission, "statistics are at /metrics"),
        ("-S", flags.submission_report, "`staunch top` shows figures"),
    ];
    let given = given.into_iter().filter(|(_, given, _)| *given);
    given.map(|(flag, _, hint)| format!("warning: {flag} has no counterpart\n  hint: {hint}\n")).collect()
}

#[test]
fn flags_become_options_or_are_reported() {
    let file = std::env::temp_dir().join(format!("staunch-import-relay-{}.conf", std::process::id()));
    std::fs::write(&file, "cluster c forward 10.0.0.1;\nmatch ^a\\. send to c stop;\n").expect("a file");
    let words = ["-p", "2013", "-q100", "-b", "5", "-c", "-_", "-D", "-l", "relay.log"].map(str::to_owned);
    let Imported { plan, said, loses_a_line } = import(&file, &words).expect("right flags");
    assert!(loses_a_line, "-b, -D and -l");
    let refused = import(&file, &["-Z".to_owned()]);
    std::fs::remove_file(&file).expect("it is ours");
    let text = config::print(&plan.expect("a plan"));
    for wanted in ["tcp://[::]:2013", "max_records = 100", "name_characters = \"-_\"", "match = ['^a\\.']"] {
        assert!(text.contains(wanted), "{wanted} in\n{text}");
    }
    assert!(said.contains("-b has no") && said.contains("-D has no") && !said.contains("-q"), "{said}");
    assert!(refused.is_err_and(|error| error.to_string().contains("-Z")));
}
