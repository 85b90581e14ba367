//! `staunch import`: the native file on stdout, messages on stderr, and of a Riemann config which streams run natively. The exit code is 1 when there is no native file, or when a
//! setting of the original is missing from it.

use std::path::Path;
use std::process::ExitCode;

use config::diagnostic::has_errors;

use super::args::{ImportArgs, ImportKind};
use super::kind::FileKind;
use super::load::{Imported, Loaded};
use super::{MISTAKES, load, relay};
use client::stdio;

/// `staunch import`
pub(crate) fn import(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let of_loaded = |loaded: Loaded| {
        let said = loaded.rendered();
        let loses_a_line = loaded.diagnostics.iter().any(|found| load::loses_a_line(found.code));
        let plan = loaded.plan.filter(|_| !has_errors(&loaded.diagnostics));
        Imported { plan, said, loses_a_line }
    };
    let file = &args.original.file;
    let Imported { plan, said, loses_a_line } = match args.kind {
        ImportKind::Statsd => of_loaded(load::statsd(&args.original)?),
        ImportKind::StatsdProxy => of_loaded(load::statsd_proxy(file)?),
        ImportKind::Relay => relay::import(file, &args.flags)?,
        ImportKind::Riemann => of_loaded(load::riemann(file)?),
        ImportKind::Carbon => load::carbon_section(file, args.section.as_deref(), args.instance.as_deref())?,
    };
    stdio::say(&said);
    let loaded = plan.iter().flat_map(|plan| plan.streams()).filter_map(|(.., one)| one.loaded.as_ref());
    for loaded in loaded {
        stdio::say(&::import::riemann::parts_text(&load::riemann_parts(&loaded.files)));
    }
    if plan.is_none()
        && let Some(instead) = of_another(args.kind, file)
    {
        stdio::say(&format!("staunch: {instead}\n"));
    }
    let is_whole = plan.is_some() && !loses_a_line;
    if let Some(plan) = plan {
        stdio::data(with_comments(&config::print(&plan)).as_bytes())?;
        if loses_a_line {
            stdio::say(
                "staunch: the native file is printed, but some settings or rules of the original are not in it (the warnings \
                 name them): exit code 1\n",
            );
        }
    }
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::from(MISTAKES) })
}

/// The printed file with a comment for tables that contain options of the original, which nothing else uses.
fn with_comments(printed: &str) -> String {
    const HEADING: &str = "\n[management.config]\n";
    const COMMENT: &str = "\n# The reply to the `config` command of the management port, and nothing else: changing it changes no \
        behaviour.";
    printed.replacen(HEADING, &format!("{COMMENT}{HEADING}"), 1)
}

/// The expected file and advice, if this one is not a config of `kind`.
fn of_another(kind: ImportKind, file: &Path) -> Option<String> {
    // A pipe can only be read once.
    if load::is_special(file) {
        return None;
    }
    let (name, text) = load::read(file).ok()?;
    let is = FileKind::of(file, &text);
    let (wanted, expected) = match kind {
        ImportKind::Statsd => {
            (FileKind::Statsd, "a config of node's statsd or Net::Statsd::Server: an object, { … }")
        }
        ImportKind::StatsdProxy => (FileKind::Statsd, "a proxyConfig.js of node's statsd: an object, { … }"),
        ImportKind::Relay => {
            (FileKind::Relay, "a config of carbon-c-relay: statements, such as `match * send to NAME;`")
        }
        ImportKind::Riemann => (FileKind::Riemann, "a riemann.config: Clojure, such as (streams prn)"),
        ImportKind::Carbon => {
            (FileKind::Carbon, "a carbon.conf: sections, such as [relay], with keys in capitals")
        }
    };
    let found =
        is.instead_of_native(&name, &text).unwrap_or_else(|| format!("{name} does not look like one"));
    (is != wanted).then(|| format!("expected {expected}\nstaunch: {found}"))
}
