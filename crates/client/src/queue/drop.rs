//! `staunch queue drop`: drops queued records, or the files in quarantine, after it has printed what they are.

use std::io::{BufRead, IsTerminal};
use std::process::ExitCode;

use anyhow::bail;
use deliver::disk_queue::inspect::Inspection;
use deliver::disk_queue::salvage::quarantined;
use deliver::queue::Queue as _;
use model::{Dropped, SECOND_NS};
use serde_json::json;

use super::api;
use super::change::Opened;
use super::counts::{copies, files};
use super::document::{Amount, DropResult};
use super::place::{Place, Queue};
use crate::api_client::Access;
use crate::args::QueueDropArgs;
use crate::exit_code::MISTAKES;
use crate::stdio::{self, shown};
use crate::top::figure;
use sys::clock::Clock;

/// `staunch queue drop`
pub(super) fn drop_waiting(
    (place, access): (&Place, &Access),
    args: &QueueDropArgs,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let queue = place.one(&args.name)?;
    stdio::say(&format!("staunch: {}\n", intent(place, &queue, args)?));
    if !args.yes && !agreed()? {
        stdio::say("staunch: nothing was dropped\n");
        return Ok(ExitCode::from(MISTAKES));
    }
    let dropped = match place.owner {
        Some(owner) => {
            let order = json!({ "older_than_ms": args.older_than, "quarantine": args.quarantine });
            api::drop_waiting((owner, access), &queue.name, &order)?
        }
        None => alone(place, &queue, args)?,
    };
    if as_json {
        let mut text = serde_json::to_string_pretty(&dropped)?;
        text.push('\n');
        stdio::data(text.as_bytes())?;
    } else {
        stdio::say(&summary(&queue.name, &dropped, args.quarantine));
    }
    Ok(ExitCode::SUCCESS)
}

/// What would be dropped.
fn intent(place: &Place, queue: &Queue, args: &QueueDropArgs) -> anyhow::Result<String> {
    let disk = queue.folder()?;
    let inspection = Inspection::of(&disk, place.owner.is_some())
        .map_err(|error| anyhow::anyhow!("cannot read {}: {error}", queue.path.display()))?;
    let name = shown(&queue.name);
    if args.quarantine {
        let quarantine = quarantined(&inspection, &disk);
        let bytes = quarantine.iter().map(|file| file.bytes).sum();
        return Ok(format!(
            "this removes the quarantine of `{name}`\n  {}, {}",
            files(quarantine.len() as u64),
            stdio::bytes(bytes)
        ));
    }
    let waiting = inspection.waiting();
    let made_ns = inspection.oldest_wall_ns(&disk);
    let age_s = |made_ns: u64| Clock::now().wall_ns.saturating_sub(made_ns) as f64 / SECOND_NS as f64;
    let oldest = made_ns
        .map_or_else(String::new, |made_ns| format!(", the oldest {} old", figure::age(age_s(made_ns))));
    let waits = format!("{}, {}{oldest}", copies(waiting.copies), stdio::bytes(waiting.disk_bytes));
    Ok(match args.older_than {
        Some(ms) => format!(
            "this drops all records of `{name}` that are {} old or older\n  queued: {waits}",
            config::text::duration(ms)
        ),
        None => format!("this drops all records in the queue of `{name}`\n  queued: {waits}"),
    })
}

/// Asks on a terminal. Without one nobody can answer.
fn agreed() -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("stdin is not a terminal, so nobody can confirm\n  hint: add --yes");
    }
    stdio::say("  This cannot be undone; `staunch queue export` keeps a copy.\nContinue? [y/N] ");
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Drops it where no daemon runs.
fn alone(place: &Place, queue: &Queue, args: &QueueDropArgs) -> anyhow::Result<DropResult> {
    let mut opened = Opened::open(place, queue)?;
    let mut dropped = DropResult { queue: queue.name.clone(), ..DropResult::default() };
    if args.quarantine {
        let (copies, bytes) = opened.queue.remove_quarantine()?;
        dropped.quarantine = Amount { copies, bytes };
    } else {
        let age_ns = args.older_than.unwrap_or(0).saturating_mul(SECOND_NS / 1000);
        opened.queue.drop_older(age_ns, Dropped::ByOperator, usize::MAX, Clock::now());
        dropped.dropped = Amount::dropped(&opened.account, Dropped::ByOperator);
    }
    dropped.damaged = opened.damaged();
    dropped.left = Amount { copies: opened.queue.copies(), bytes: opened.queue.bytes() };
    opened.close()?;
    Ok(dropped)
}

fn summary(name: &str, dropped: &DropResult, quarantine: bool) -> String {
    let name = shown(name);
    if quarantine {
        let Amount { copies: count, bytes } = dropped.quarantine;
        return format!("staunch: {} of `{name}` removed, {}\n", files(count), stdio::bytes(bytes));
    }
    let Amount { copies: count, bytes } = dropped.dropped;
    let mut text = format!(
        "staunch: {} of `{name}` dropped, {}; {} still queued\n",
        copies(count),
        stdio::bytes(bytes),
        dropped.left.copies
    );
    if dropped.damaged > 0 {
        text.push_str(&format!("  {} damaged ones were removed too\n", dropped.damaged));
    }
    text
}

#[test]
fn control_characters_in_queue_names_are_replaced() {
    for quarantine in [false, true] {
        let text = summary("a\x1bb", &DropResult::default(), quarantine);
        assert!(text.contains("`a\u{fffd}b`") && !text.contains('\x1b'), "{text:?}");
    }
}
