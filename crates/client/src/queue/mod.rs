//! `staunch queue`: inspects and changes queues on disk, with or without a running daemon.
//!
//! `ls`, `check` and `export` read the files and write nothing. `drop` and `replay` go through the daemon's HTTP API while a daemon
//! runs, so that only one process writes; otherwise they use `DiskQueue` under the lock of the data directory.
//! Exit codes: 0 good, 1 damage found or the queue was full, 2 the command failed.

mod api;
mod change;
mod check;
mod counts;
pub mod document;
mod drop;
mod export;
mod list;
mod place;
mod replay;

use std::process::ExitCode;

use self::place::Place;
use crate::ReadPlan;
use crate::args::{QueueArgs, QueueVerb, Whose};

/// `staunch queue`
///
/// # Errors
/// When the config or the data directory cannot be used, there is no such queue, or a file or the daemon fails.
pub fn queue(args: QueueArgs, read_plan: ReadPlan<'_>) -> anyhow::Result<ExitCode> {
    let QueueArgs { verb, whose, access, json } = args;
    let whose = match &verb {
        QueueVerb::Ls { file } => Whose { config: file.clone().or(whose.config), ..whose },
        QueueVerb::Check { .. } | QueueVerb::Export(_) | QueueVerb::Drop(_) | QueueVerb::Replay(_) => whose,
    };
    if let QueueVerb::Check { names } = &verb {
        place::are_no_paths(names)?;
    }
    let mut place = Place::find(&whose, read_plan)?;
    let access = &access.or_of(place.plan.as_ref()).of_this_machine();
    match verb {
        QueueVerb::Ls { file: _ } => list::list(&place, api::listed(&place, access).as_deref(), json),
        QueueVerb::Check { names } => check::check((&mut place, access), &names, json),
        QueueVerb::Export(args) => export::export(&place, &args, json),
        QueueVerb::Drop(args) => drop::drop_waiting((&place, access), &args, json),
        QueueVerb::Replay(args) => replay::replay((&place, access), &args, json),
    }
}
