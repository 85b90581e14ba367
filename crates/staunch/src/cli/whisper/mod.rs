//! `staunch whisper`: the command line tools of Python's whisper library, with their options and output (spec graphite §5.9).
//!
//! | file | what it does |
//! |---|---|
//! | `args.rs` | the options |
//! | `files.rs` | opens files, finds those of a tree, refuses to change the tree of a daemon that runs |
//! | `python.rs` | numbers and times as Python prints them |
//! | `show.rs` | `info`, `fetch`, `dump` |
//! | `diff.rs` | `diff` |
//! | `change.rs` | `create`, `update`, `set-aggregation`, `set-xff` |
//! | `pairs.rs` | `merge`, `fill` |
//! | `resize.rs` | `resize` |
//!
//! `delete`, `rename` and `drain` have a running daemon change its store (`client::store`).
//! Not here: what the tools do to files (`graphite::whisper::tools`). A link with the name of a script, such as whisper-info.py, is the
//! command.

mod args;
mod change;
mod diff;
mod files;
mod pairs;
mod python;
mod resize;
mod show;

use std::process::ExitCode;

use self::args::Verb;
pub(crate) use self::args::WhisperArgs;
use super::MISTAKES;
use client::ReadPlan;

/// Names of the scripts without `whisper-`, and our words for those that differ.
pub(crate) const SCRIPTS: [(&str, &str); 11] = [
    ("create", "create"),
    ("info", "info"),
    ("fetch", "fetch"),
    ("dump", "dump"),
    ("update", "update"),
    ("resize", "resize"),
    ("merge", "merge"),
    ("fill", "fill"),
    ("diff", "diff"),
    ("set-aggregation-method", "set-aggregation"),
    ("set-xfilesfactor", "set-xff"),
];

/// `staunch whisper`
pub(crate) fn whisper(args: &WhisperArgs, read_plan: ReadPlan<'_>) -> anyhow::Result<ExitCode> {
    let done = match &args.verb {
        Verb::Create(args) => change::create(args),
        Verb::Info(args) => show::info(args),
        Verb::Fetch(args) => show::fetch(args),
        Verb::Dump(args) => show::dump(args),
        Verb::Update(args) => change::update(args),
        Verb::Resize(args) => resize::resize(args),
        Verb::Merge(args) => pairs::merge(args),
        Verb::Fill(args) => pairs::fill(args),
        Verb::Diff(args) => diff::diff(args),
        Verb::SetAggregation(args) => change::set_aggregation(args),
        Verb::SetXff(args) => change::set_xff(args),
        // These are none of the scripts, and have the messages and exit codes of our other verbs.
        Verb::Delete(args) => return client::store::delete(args, read_plan),
        Verb::Rename(args) => return client::store::rename(args, read_plan),
        Verb::Drain(args) => return client::store::drain(args, read_plan),
    };
    match done {
        Ok(code) => Ok(code),
        Err(error) => {
            client::stdio::say(&format!("[ERROR] {error:#}\n"));
            Ok(ExitCode::from(MISTAKES))
        }
    }
}
