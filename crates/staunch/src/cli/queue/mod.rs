//! `staunch queue`: looking into queues on disk, and changing them, beside a running daemon or without one.
//!
//! Looking reads the files and writes nothing. Changing goes through the daemon's HTTP API while one runs, so that it
//! stays the only one to write; otherwise through `DiskQueue`, under the lock of the data directory.
//! Exit codes: 0 good, 1 damage found or not all could be put back, 2 could not do it.

mod api;
mod change;
mod check;
mod drop;
mod export;
mod list;
mod place;
mod replay;

use std::process::ExitCode;

use super::args::{QueueArgs, QueueVerb, Whose};
use place::Place;
pub(super) use place::{http_of, plan_of};

/// `staunch queue`
pub(super) fn queue(args: QueueArgs) -> anyhow::Result<ExitCode> {
    let QueueArgs { verb, whose, access, json } = args;
    let whose = match &verb {
        QueueVerb::Ls { file } => Whose { config: file.clone().or(whose.config), ..whose },
        QueueVerb::Check { .. } | QueueVerb::Export(_) | QueueVerb::Drop(_) | QueueVerb::Replay(_) => whose,
    };
    if let QueueVerb::Check { names } = &verb {
        place::are_no_paths(names)?;
    }
    let mut place = Place::find(&whose)?;
    let access = &access.or_of(place.plan.as_ref()).of_this_machine();
    match verb {
        QueueVerb::Ls { file: _ } => list::list(&place, api::listed(&place, access).as_deref(), json),
        QueueVerb::Check { names } => check::check((&mut place, access), &names, json),
        QueueVerb::Export(args) => export::export(&place, &args, json),
        QueueVerb::Drop(args) => drop::drop_waiting((&place, access), &args, json),
        QueueVerb::Replay(args) => replay::replay((&place, access), &args, json),
    }
}

/// So many of something, in words.
fn count_of(count: u64, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

fn copies(count: u64) -> String {
    count_of(count, "copy", "copies")
}

fn files(count: u64) -> String {
    count_of(count, "file", "files")
}
