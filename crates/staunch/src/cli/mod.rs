//! The command line: the commands, and the file of each.
//!
//! Exit codes: 0 success, 1 errors in the input, 2 failure. Data goes to stdout, messages to stderr.

pub(crate) mod args;
#[cfg(unix)]
mod bench;
pub(crate) mod check;
mod explain;
mod import;
pub(crate) mod kind;
mod links;
pub(crate) mod load;
mod log_format;
mod manual;
pub(crate) mod riemann_replay;
pub(crate) mod riemann_test;
mod run;
#[cfg(windows)]
mod service;
mod test;
mod whisper;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;

use tracing_subscriber::EnvFilter;

pub(crate) use client::exit_code::{FAILED, MISTAKES};
use client::stdio::wants_colour;

use self::args::{Args, Verb};
use self::log_format::LogFormat;
use crate::carbon_c_relay::command_line as relay;
use crate::daemon::signals::Signals;
use crate::log_stream;

/// Runs the program.
pub fn main() -> ExitCode {
    #[cfg(unix)]
    sys::block_signals();
    log_stream::log_panics();
    if let Some(instead) = std::env::args_os().next().and_then(|program| links::not_here(&program)) {
        client::stdio::say(&format!("staunch: {instead}\n"));
        return ExitCode::from(FAILED);
    }
    let words = links::as_original(std::env::args_os());
    if is_verbose_version(&words) {
        return match client::stdio::data(crate::build::verbose().as_bytes()) {
            Ok(_) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(FAILED),
        };
    }
    if is_version_of_verb(&words) {
        return match client::stdio::data(format!("staunch {}\n", crate::build::VERSION).as_bytes()) {
            Ok(_) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(FAILED),
        };
    }
    let args = match links::parsed(&words) {
        Err(error) if error.use_stderr() && is_relay(&words) => return relay::refused(&error),
        parsed => parsed.unwrap_or_else(|error| error.exit()),
    };
    if !args.verb.has_own_log() {
        start_log(&args);
    }
    #[cfg(unix)]
    if !args.verb.is_daemon() {
        sys::unblock_signals();
    }
    let log_level = args.log_level.clone();
    let done = match args.verb {
        Verb::Run(args) => run::run(&args),
        #[cfg(windows)]
        Verb::Service(args) => service::service(&args),
        Verb::Statsd(args) => run::statsd(&args),
        Verb::StatsdProxy(args) => run::statsd_proxy(&args),
        Verb::Fanout(args) => run::fanout(&args),
        Verb::Riemann(args) => run::riemann(&args),
        Verb::Relay(args) => relay::relay(&args, &log_level),
        #[cfg(unix)]
        Verb::Carbon(args) => crate::carbon::carbon(&args, &log_level),
        Verb::Check(args) => check::check(&args),
        Verb::Import(args) => import::import(&args),
        Verb::Test(args) => test::test(&args),
        #[cfg(unix)]
        Verb::Bench(kind) => bench::bench(&kind),
        Verb::Status(args) => client::status::status(args, &check::plan_of),
        Verb::Top(args) => client::top::run(args, &check::plan_of, stop_signal),
        Verb::Queue(args) => client::queue::queue(args, &check::plan_of),
        Verb::Explain(args) => explain::explain(&args),
        Verb::Manual(args) => manual::manual(&args),
        Verb::Whisper(args) => whisper::whisper(&args, &check::plan_of),
    };
    let code = done.unwrap_or_else(|error| {
        log_stream::last_words(&format!("staunch: {error:#}\n"));
        ExitCode::from(FAILED)
    });
    log_stream::finish();
    code
}

/// A signal that ends `staunch top`: any that stops or reloads a daemon.
fn stop_signal() -> std::io::Result<impl Future<Output = ()>> {
    let mut signals = Signals::take()?;
    Ok(async move {
        let _any = signals.next().await;
    })
}

/// `staunch --version --verbose`, in any order, or as short flags.
fn is_verbose_version(words: &[OsString]) -> bool {
    let [_, words @ ..] = words else { return false };
    let has = |names: [&str; 2]| words.iter().any(|word| names.iter().any(|name| word == name));
    words.len() == 2 && has(["--version", "-V"]) && has(["--verbose", "-v"])
        || words == ["-vV"]
        || words == ["-Vv"]
}

/// `staunch VERB --version`, and so `statsd --version` by an original's name.
fn is_version_of_verb(words: &[OsString]) -> bool {
    let [_, verb, flag] = words else { return false };
    let is_verb = verb.to_str().is_some_and(|verb| !verb.starts_with('-') && verb != "help");
    is_verb && flag == "--version"
}

#[test]
fn a_verb_has_the_version_of_the_program() {
    for (words, want) in [
        ("staunch run --version", true),
        ("statsd statsd --version", true),
        ("staunch --version", false),
        ("staunch run a.toml --version", false),
        ("staunch run -V", false),
    ] {
        let words: Vec<OsString> = words.split_whitespace().map(OsString::from).collect();
        assert_eq!(is_version_of_verb(&words), want, "{words:?}");
    }
}

#[test]
fn a_verbose_version_is_asked_for_by_two_flags_and_nothing_else() {
    for (words, want) in [
        ("staunch --version --verbose", true),
        ("staunch -v -V", true),
        ("staunch -vV", true),
        ("staunch --version", false),
        ("staunch --verbose", false),
        ("staunch run --version --verbose", false),
        ("", false),
    ] {
        let words: Vec<OsString> = words.split_whitespace().map(OsString::from).collect();
        assert_eq!(is_verbose_version(&words), want, "{words:?}");
    }
    let text = crate::build::verbose();
    for line in ["staunch ", "commit: ", "features: ", "target: ", "rustc: rustc "] {
        assert!(text.lines().any(|found| found.starts_with(line)), "{line}: {text}");
    }
}

/// Whether this is the relay's command line: invalid flags get the original's message.
fn is_relay(words: &[OsString]) -> bool {
    words.get(1).is_some_and(|verb| verb == "relay" || verb == "c-relay")
}

fn start_log(args: &Args) {
    let filter =
        EnvFilter::try_from_env("STAUNCH_LOG").unwrap_or_else(|_unset| EnvFilter::new(&args.log_level));
    let colour = wants_colour(std::io::stderr().is_terminal());
    let filter = match format!("{}=off", crate::carbon_c_relay::log_targets::ORIGINAL).parse() {
        Ok(directive) => filter.add_directive(directive),
        Err(_) => filter,
    };
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(log_stream::Stderr);
    match args.log_format {
        LogFormat::Text => log.with_ansi(colour).with_target(false).init(),
        LogFormat::Json => {
            log_stream::set_json();
            log.with_ansi(false).event_format(log_format::Json).init();
        }
    }
}
