//! `POST /api/v1/stores/NAME/delete`, `rename` and `drain`: changes to an open store.
//!
//! Series are changed on a query's thread, for some seconds per request; the answer says how many are left. Not here: permission
//! (`guard`), the changes themselves (`graphite::store`), files of a stopped daemon (`cli::whisper`).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use client::store::document::{Changed, DeleteOrder, DrainOrder, Drained, RenameOrder};
use config::plan::{OutputKind, OutputPlan};
use graphite::catalog::{Wanted, is_pattern, normal_name};
use graphite::query::Selector;
use graphite::store::{ChangeError, Reader};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sys::clock::Clock;

use crate::admin::bodies::Whole;
use crate::admin::graphite::{AllStores, NAMES_MAX, Queries, query_refusal};
use crate::admin::queues;
use crate::admin::refusal::Refusal;
use crate::daemon::outlet::is_retired;
use crate::daemon::shared::Shared;
use crate::daemon::shared::stores::OpenStore;

/// Most bytes of an order.
pub(in crate::admin) const ORDER_BYTES_MAX: usize = 1 << 20;

/// Longest time of one request. What is left then takes another one.
const TIME_MAX: Duration = Duration::from_secs(5);

/// Names and failures that an answer lists.
const LISTED_MAX: usize = 20;

/// How often a series that is being written is tried again, and the pause before.
const BUSY_TRIES: usize = 100;
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// Time between two looks at what is left.
const DRAIN_PAUSE: Duration = Duration::from_millis(20);

/// How long a drain waits for progress of a store that is down.
const DOWN_WAIT: Duration = Duration::from_secs(1);

/// The open store of that name.
pub(in crate::admin) fn find(shared: &Shared, name: &str) -> Result<Arc<OpenStore>, Refusal> {
    let all = shared.stores.all();
    let found = all.iter().find(|store| store.name == name);
    found.cloned().ok_or_else(|| not_open(shared, name))
}

/// Why there is no open store of that name.
fn not_open(shared: &Shared, name: &str) -> Refusal {
    let shown = client::stdio::shown(name);
    let outputs = &shared.wiring.load().plan.outputs;
    let is_store =
        |output: &&OutputPlan| matches!(output.kind, OutputKind::Whisper(_)) && !is_retired(output);
    let mut stores = outputs.iter().filter(is_store);
    if !stores.clone().any(|output| output.name == name) {
        let known: Vec<&str> = stores.by_ref().take(LISTED_MAX).map(|output| &*output.name).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let why = format!("there is no output of type whisper `{shown}`; those are: {known}");
        return (StatusCode::NOT_FOUND, why);
    }
    let why = match shared.stores.last_not_open().filter(|(other, _)| other == name) {
        Some((_, why)) => format!("the store `{shown}` cannot be opened: {why}; it is tried again"),
        None => format!("the store `{shown}` is being opened: retry later"),
    };
    (StatusCode::SERVICE_UNAVAILABLE, why)
}

/// Deletes series, with their files and their points in memory.
pub(in crate::admin) async fn delete(
    queries: &Queries,
    store: Arc<OpenStore>,
    body: &Whole,
) -> Result<Vec<u8>, Refusal> {
    let order: DeleteOrder = order(body)?;
    let dry_run = order.dry_run;
    run(queries, store, dry_run, "deleted", move |store, all| {
        let mut names = BTreeSet::new();
        for name in &order.names {
            if is_pattern(name.as_bytes()) {
                names.extend(paths(store, all, Selector::Glob(name.clone()))?);
            } else if let Some(known) = known(store, all, name)? {
                names.insert(known);
            }
        }
        if !order.tags.is_empty() {
            names.extend(paths(store, all, Selector::Tags(order.tags.clone()))?);
        }
        let names = names.into_iter().map(|name| Task { name, to: Vec::new() });
        Ok(names.collect())
    })
    .await
}

/// Renames a series, or all of a branch.
pub(in crate::admin) async fn rename(
    queries: &Queries,
    store: Arc<OpenStore>,
    body: &Whole,
) -> Result<Vec<u8>, Refusal> {
    let RenameOrder { from, to, dry_run } = order(body)?;
    if is_pattern(from.as_bytes()) || is_pattern(to.as_bytes()) {
        return Err((
            StatusCode::BAD_REQUEST,
            "`from` and `to` are names of series or branches, not globs".into(),
        ));
    }
    let new = normal_name(to.as_bytes());
    let new =
        new.map_err(|bad| (StatusCode::BAD_REQUEST, format!("`to` is not a name of a series: {bad}")))?;
    run(queries, store, dry_run, "renamed", move |store, all| {
        let series = known(store, all, &from)?.map(|name| Task { name, to: new.clone() });
        let below = match from.contains(';') {
            true => Vec::new(),
            false => paths(store, all, Selector::Glob(format!("{from}.**")))?,
        };
        let moved = |name: Vec<u8>| {
            let to = [to.as_bytes(), name.get(from.len()..).unwrap_or_default()].concat();
            Task { name, to }
        };
        Ok(series.into_iter().chain(below.into_iter().map(moved)).collect())
    })
    .await
}

/// Waits, for some seconds, until the points that the output has are in synced files. A store that is down and makes no progress is
/// not waited for.
pub(in crate::admin) async fn drain(
    shared: &Shared,
    store: &Arc<OpenStore>,
    body: &Whole,
) -> Result<Vec<u8>, Refusal> {
    let DrainOrder { copies, max_wait_ms } = order(body)?;
    let (outlet, _forms) = queues::find(shared, &store.name)?;
    let account = &outlet.account;
    let settled = || account.sum(0).copies.saturating_sub(account.copies_queued());
    let begun = settled();
    let wanted = copies.unwrap_or_else(|| account.copies_queued());
    let _draining = store.drain();
    let max_wait = max_wait_ms.map_or(TIME_MAX, |wait_ms| TIME_MAX.min(Duration::from_millis(wait_ms)));
    let begun_ns = Clock::mono_ns();
    let after_ns = |wait: Duration| begun_ns + wait.as_nanos() as u64;
    let (ends_ns, down_ends_ns) = (after_ns(max_wait), after_ns(max_wait.min(DOWN_WAIT)));
    loop {
        let left = wanted.saturating_sub(settled().saturating_sub(begun)).min(account.copies_queued());
        let (done, now_ns) = (left == 0, Clock::mono_ns());
        let is_stuck = !done && now_ns >= down_ends_ns && settled() == begun && outlet.is_down();
        if done || is_stuck || now_ns >= ends_ns {
            let queued = account.copies_queued().saturating_sub(left);
            let down = is_stuck.then(|| outlet.last_error_text(outlet.shown(Clock::now()).last_error));
            return json(&Drained { store: store.name.clone(), done, queued, left, down });
        }
        tokio::time::sleep(DRAIN_PAUSE).await;
    }
}

/// A series to change: renamed, if it has another name.
struct Task {
    name: Vec<u8>,
    to: Vec<u8>,
}

/// Finds the series of an order, and changes as many as there is time for.
async fn run(
    queries: &Queries,
    store: Arc<OpenStore>,
    dry_run: bool,
    word: &'static str,
    find: impl FnOnce(&OpenStore, &mut AllStores) -> Result<Vec<Task>, Refusal> + Send + 'static,
) -> Result<Vec<u8>, Refusal> {
    let stores = Arc::new(vec![Arc::clone(&store)]);
    let done = queries.run(stores, move |all| {
        let tasks = find(&store, all)?;
        let mut changed = Changed {
            store: store.name.clone(),
            series: tasks.len() as u64,
            names: tasks.iter().take(LISTED_MAX).map(|task| text(&task.name)).collect(),
            ..Changed::default()
        };
        if dry_run {
            return Ok(changed);
        }
        let ends_ns = Clock::mono_ns() + TIME_MAX.as_nanos() as u64;
        for (at, task) in tasks.iter().enumerate() {
            if Clock::mono_ns() >= ends_ns || all.goes_on().is_err() {
                changed.left = (tasks.len() - at) as u64;
                break;
            }
            match change(&store, task) {
                Ok(found) => changed.changed += u64::from(found),
                Err(why) => {
                    changed.failed += 1;
                    if changed.failures.len() < LISTED_MAX {
                        changed.failures.push(format!("{}: {why}", text(&task.name)));
                    }
                }
            }
        }
        let (name, count) = (&store.name, changed.changed);
        tracing::warn!("output `{name}`: {count} series {word} by request");
        Ok(changed)
    });
    json(&done.await?)
}

fn change(store: &OpenStore, task: &Task) -> Result<bool, String> {
    store.check_may_write()?;
    let mut tries = 0;
    loop {
        let done = if task.to.is_empty() {
            store.store.delete(&store.tree, &task.name)
        } else {
            store.store.rename(&store.tree, &task.name, &task.to)
        };
        match done {
            Err(ChangeError::Busy) if tries < BUSY_TRIES => {
                tries += 1;
                std::thread::sleep(BUSY_PAUSE);
            }
            Ok(found) => return Ok(found),
            Err(ChangeError::BadName) => {
                return Err(format!("`{}` is not a name of a series", text(&task.to)));
            }
            Err(ChangeError::Taken) => return Err(format!("there is a series `{}` already", text(&task.to))),
            Err(error) => return Err(error.to_string()),
        }
    }
}

fn paths(store: &OpenStore, all: &AllStores, selector: Selector) -> Result<Vec<Vec<u8>>, Refusal> {
    let mut reader = Reader::new(&store.store, &store.tree, all.now, || all.goes_on());
    let found = reader.find(&selector, Wanted::Leaves, NAMES_MAX).map_err(query_refusal)?;
    Ok(found.nodes().map(|node| node.path.to_vec()).collect())
}

/// A name in its normal form, if there is a series of that name.
fn known(store: &OpenStore, all: &AllStores, name: &str) -> Result<Option<Vec<u8>>, Refusal> {
    let Ok(normal) = normal_name(name.as_bytes()) else { return Ok(None) };
    if store.store.catalog().find(&normal).is_some() {
        return Ok(Some(normal));
    }
    let reader = Reader::new(&store.store, &store.tree, all.now, || Ok(()));
    let failed =
        |error| (StatusCode::INTERNAL_SERVER_ERROR, format!("{}: {error}", client::stdio::shown(name)));
    Ok(reader.header(&normal).map_err(failed)?.map(|_| normal))
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

fn order<T: DeserializeOwned>(body: &Whole) -> Result<T, Refusal> {
    serde_json::from_slice(body)
        .map_err(|error| (StatusCode::BAD_REQUEST, format!("invalid request body: {error}")))
}

fn json<T: Serialize>(document: &T) -> Result<Vec<u8>, Refusal> {
    let failed =
        |error| (StatusCode::INTERNAL_SERVER_ERROR, format!("the answer cannot be written: {error}"));
    serde_json::to_vec(document).map_err(failed)
}
