//! `staunch whisper delete`, `rename` and `drain`: changes to the store of a running daemon, over its HTTP API.
//!
//! Not here: files without a daemon (the binary's `whisper`).

pub mod document;

use std::io::{BufRead, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use hyper::StatusCode;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;

use self::document::{Changed, DeleteOrder, DrainOrder, Drained, RenameOrder, StoreNames};
use crate::ReadPlan;
use crate::api_client::{Question, Server, ask, escaped};
use crate::args::{StoreArgs, StoreDeleteArgs, StoreDrainArgs, StoreRenameArgs};
use crate::exit_code::MISTAKES;
use crate::stdio::{self, shown};
use crate::top::no_daemon;
use sys::clock::Clock;

/// Longest wait for one answer: the daemon answers within ten seconds, with what is left.
const WAIT: Duration = Duration::from_secs(60);

/// A store of a daemon.
struct Place {
    server: Server,
    runtime: Runtime,
    hint: String,
    name: String,
}

/// `staunch whisper delete`
///
/// # Errors
/// When no daemon answers, it refuses, or nobody can confirm.
pub fn delete(args: &StoreDeleteArgs, read_plan: ReadPlan<'_>) -> anyhow::Result<ExitCode> {
    if args.names.is_empty() && args.tags.is_empty() {
        bail!("name the series to delete: a name, a glob such as 'servers.old.**', or --tag host=old");
    }
    let place = Place::find(&args.store, "whisper delete", read_plan)?;
    let order = |dry_run| DeleteOrder { names: args.names.clone(), tags: args.tags.clone(), dry_run };
    place.change("delete", "deleted", (args.dry_run, args.yes, args.store.json), order)
}

/// `staunch whisper rename`
///
/// # Errors
/// When no daemon answers, it refuses, or nobody can confirm.
pub fn rename(args: &StoreRenameArgs, read_plan: ReadPlan<'_>) -> anyhow::Result<ExitCode> {
    let place = Place::find(&args.store, "whisper rename", read_plan)?;
    let order = |dry_run| RenameOrder { from: args.from.clone(), to: args.to.clone(), dry_run };
    place.change("rename", "renamed", (args.dry_run, args.yes, args.store.json), order)
}

/// `staunch whisper drain`
///
/// # Errors
/// When no daemon answers, the store is down, or the points are not in their files after `--timeout`.
pub fn drain(args: &StoreDrainArgs, read_plan: ReadPlan<'_>) -> anyhow::Result<ExitCode> {
    let place = Place::find(&args.store, "whisper drain", read_plan)?;
    let ends = Duration::from_millis(args.timeout);
    let begun_ns = Clock::mono_ns();
    let mut copies = None;
    loop {
        let left = ends.saturating_sub(Duration::from_nanos(Clock::mono_ns() - begun_ns));
        let max_wait_ms = u64::try_from(left.as_millis()).ok();
        let drained: Drained = place.post("drain", &DrainOrder { copies, max_wait_ms })?;
        let passed = Duration::from_nanos(Clock::mono_ns() - begun_ns);
        if drained.done || drained.down.is_some() || passed >= ends {
            if args.store.json {
                print(&drained)?;
            } else if drained.done {
                let name = shown(&drained.store);
                stdio::say(&format!("staunch: all points of `{name}` are in their files\n"));
            }
            if let Some(why) = &drained.down {
                bail!(
                    "the store is down: {}; {} points are not in their files, and stay in its queue on disk",
                    shown(why),
                    drained.left
                );
            }
            if !drained.done {
                bail!(
                    "{} points are not in their files after {:.1} s; the daemon's log names the file that cannot be written",
                    drained.left,
                    passed.as_secs_f64()
                );
            }
            return Ok(ExitCode::SUCCESS);
        }
        stdio::say(&format!("staunch: {} points to write\n", drained.left));
        copies = Some(drained.left);
    }
}

impl Place {
    fn find(args: &StoreArgs, verb: &str, read_plan: ReadPlan<'_>) -> anyhow::Result<Place> {
        let hint = args.daemon.hint(verb);
        let server = args.daemon.clone().server(read_plan)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut place = Place { server, runtime, hint, name: String::new() };
        let stores: StoreNames = place.asked("/api/v1/stores".to_owned(), None)?;
        let names: Vec<String> = stores.stores.into_iter().map(|store| store.name).collect();
        let listed = || names.iter().map(|name| shown(name)).collect::<Vec<_>>().join(", ");
        place.name = match (&args.output, names.as_slice()) {
            // The daemon knows also those that are not open, and why not.
            (Some(name), _) => name.clone(),
            (None, []) => bail!("the daemon has no open output of type whisper (see `staunch status`)"),
            (None, [name]) => name.clone(),
            (None, _) => bail!("which output?\n  hint: --output with one of {}", listed()),
        };
        Ok(place)
    }

    /// Says what would change, asks, and changes it, in as many requests as it takes.
    fn change<T: Serialize>(
        &self,
        verb: &str,
        done: &str,
        (dry_run, yes, json): (bool, bool, bool),
        order: impl Fn(bool) -> T,
    ) -> anyhow::Result<ExitCode> {
        let found: Changed = self.post(verb, &order(true))?;
        if !json || !dry_run {
            stdio::say(&listed(&found, done));
        }
        if found.series == 0 || dry_run {
            if json {
                print(&found)?;
            }
            return Ok(if found.series == 0 { ExitCode::from(MISTAKES) } else { ExitCode::SUCCESS });
        }
        if !yes && !agreed()? {
            stdio::say("staunch: nothing was changed\n");
            return Ok(ExitCode::from(MISTAKES));
        }
        let mut all = Changed { series: found.series, ..Changed::default() };
        loop {
            let part: Changed = self.post(verb, &order(false))?;
            all.store = part.store;
            all.changed += part.changed;
            (all.left, all.failed, all.failures) = (part.left, part.failed, part.failures);
            if part.left == 0 || part.changed == 0 {
                break;
            }
            stdio::say(&format!("staunch: {} {done}, {} left\n", all.changed, all.left));
        }
        all.names = found.names;
        if json {
            print(&all)?;
        } else {
            for failure in &all.failures {
                stdio::say(&format!("staunch: {}\n", shown(failure)));
            }
            let failed = if all.failed > 0 { format!(", {} failed", all.failed) } else { String::new() };
            stdio::say(&format!("staunch: {} series {done}{failed}\n", all.changed));
        }
        Ok(if all.failed + all.left > 0 { ExitCode::from(MISTAKES) } else { ExitCode::SUCCESS })
    }

    fn post<T: Serialize, A: DeserializeOwned>(&self, verb: &str, order: &T) -> anyhow::Result<A> {
        let path = format!("/api/v1/stores/{}/{verb}", escaped(&self.name));
        self.asked(path, Some(("application/json", serde_json::to_vec(order)?)))
    }

    fn asked<A: DeserializeOwned>(
        &self,
        path: String,
        body: Option<(&'static str, Vec<u8>)>,
    ) -> anyhow::Result<A> {
        let answer = self.runtime.block_on(ask(&self.server, Question { path, body, wait: WAIT }));
        let (status, answer) = answer.map_err(|why| no_daemon(&self.server, &why, &self.hint))?;
        if status != StatusCode::OK {
            bail!("the daemon answers {status}: {}", shown(String::from_utf8_lossy(&answer).trim()));
        }
        serde_json::from_slice(&answer).context("the daemon's answer cannot be read")
    }
}

fn print<T: Serialize>(document: &T) -> anyhow::Result<()> {
    stdio::data((serde_json::to_string_pretty(document)? + "\n").as_bytes())?;
    Ok(())
}

/// What would change.
fn listed(found: &Changed, done: &str) -> String {
    let name = shown(&found.store);
    if found.series == 0 {
        return format!("staunch: `{name}` has no such series\n");
    }
    let mut text = format!("staunch: {} series of `{name}` would be {done}:\n", found.series);
    for name in &found.names {
        text.push_str(&format!("  {}\n", shown(name)));
    }
    if found.series > found.names.len() as u64 {
        text.push_str(&format!("  … and {} more\n", found.series - found.names.len() as u64));
    }
    text
}

/// Asks on a terminal. Without one nobody can answer.
fn agreed() -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("stdin is not a terminal, so nobody can confirm\n  hint: add --yes");
    }
    stdio::say("  This cannot be undone.\nContinue? [y/N] ");
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
