//! The command line: what can be asked, and which file answers.
//!
//! Exit codes: 0 good, 1 mistakes in what was given, 2 could not do it. Data goes to stdout, talk to stderr.

mod args;
#[cfg(unix)]
mod bench;
mod check;
mod copies;
mod explain;
mod import;
mod load;
mod manual;
mod outcomes;
mod queue;
mod relay;
mod run;
#[cfg(windows)]
mod service;
mod test;
mod unacked;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

use self::args::{Args, TopArgs, Verb};

/// Exit code for mistakes in what was given.
pub(crate) const MISTAKES: u8 = 1;

/// Exit code for what could not be done.
pub(crate) const FAILED: u8 = 2;

/// Runs the program.
pub fn main() -> ExitCode {
    let args = Args::parse_from(as_statsd(std::env::args_os()));
    start_log(&args);
    let done = match args.verb {
        Verb::Run(args) => run::run(&args),
        #[cfg(windows)]
        Verb::Service(args) => service::service(&args),
        Verb::Statsd(args) => run::statsd(&args),
        Verb::StatsdProxy(args) => run::statsd_proxy(&args),
        Verb::Fanout(args) => run::fanout(&args),
        Verb::Relay(args) => relay::relay(&args),
        Verb::Check(args) => check::check(&args),
        Verb::Import(args) => import::import(&args),
        Verb::Test(args) => test::test(&args),
        #[cfg(unix)]
        Verb::Bench(kind) => bench::bench(&kind),
        Verb::Top(args) => top(args),
        Verb::Queue(args) => queue::queue(args),
        Verb::Explain(args) => explain::explain(&args),
        Verb::Manual(args) => manual::manual(&args),
    };
    done.unwrap_or_else(|error| {
        crate::talk::say(&format!("staunch: {error:#}\n"));
        ExitCode::from(FAILED)
    })
}

/// `staunch top`
fn top(args: TopArgs) -> anyhow::Result<ExitCode> {
    let TopArgs { api, json, once } = args;
    crate::top::run(&crate::top::Options { api: api.0, json, once })
}

/// Called by the name `statsd`, the program takes node's command line: `statsd CONFIG`.
fn as_statsd(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<OsString> = args.collect();
    let name = args.first().map(std::path::Path::new).and_then(|path| path.file_name());
    if name.is_some_and(|name| name == "statsd") {
        args.insert(1, "statsd".into());
    }
    args
}

fn start_log(args: &Args) {
    let filter =
        EnvFilter::try_from_env("STAUNCH_LOG").unwrap_or_else(|_unset| EnvFilter::new(&args.log_level));
    let colour = wants_colour(std::io::stderr().is_terminal());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(colour)
        .with_target(false)
        .init();
}

/// Colour on a terminal, unless `NO_COLOR` is set.
pub(crate) fn wants_colour(terminal: bool) -> bool {
    terminal && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty())
}

#[test]
fn the_name_statsd_is_nodes_command_line() {
    let args = |words: &[&str]| as_statsd(words.iter().map(OsString::from));
    assert_eq!(args(&["/usr/bin/statsd", "a.js"]), ["/usr/bin/statsd", "statsd", "a.js"]);
    assert_eq!(args(&["/usr/bin/staunch", "run"]), ["/usr/bin/staunch", "run"]);
}
