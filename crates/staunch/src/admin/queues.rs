//! `/api/v1/queues`: the queued records of each output, and commands to drop and replay them.
//!
//! Dropping and replaying lock the queue in short steps, so the shard and the senders continue in between. Not here:
//! permission for changes (`guard`), queues of a stopped daemon (`client::queue`).
//! Invariant: dropped records are counted as dropped (`dropped`), and replayed ones as routed, like all others.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use axum::http::StatusCode;
use deliver::disk_queue::{Position, Promise};
use deliver::queue::Block;
use model::{Dropped, Now, SECOND_NS};
use serde::Deserialize;

use super::accounts::{Took, in_slices};
use super::bodies::Whole;
use super::refusal::Refusal;
use crate::daemon::outlet::{Outlet, is_retired};
use crate::daemon::shared::Shared;
use client::blocks::{Form, LineBlocks, from_json, takes};
use client::queue::document::{Amount, DiskFigures, DropResult, QueueRow, QueuesPage, Replayed};
use sys::clock::Clock;

/// Most bytes of a replay request.
pub const REPLAY_BYTES_MAX: usize = 32 << 20;

/// Most bytes of a drop request.
pub(super) const DROP_BYTES_MAX: usize = 4096;

/// Blocks that are dropped at a time.
const DROP_STEP: usize = 256;

/// Timeout until replayed records are safe.
const SAFE_WAIT: Duration = Duration::from_secs(10);

/// Pause before retrying a locked queue.
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// Body of a drop request.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct DropOrder {
    older_than_ms: Option<u64>,
    quarantine: bool,
}

/// `GET /api/v1/queues`
pub(super) async fn page(shared: &Shared) -> QueuesPage {
    let wiring = shared.wiring.load_full();
    let now = Clock::now();
    let mut queues = Vec::new();
    let each = |at: usize| {
        let plan = &wiring.plan.outputs[at];
        if is_retired(plan) {
            return Took::Microseconds;
        }
        let row = row(&wiring.outlets[at], plan.queue.bytes_max, now);
        let took = Took::of(row.busy);
        queues.push(row);
        took
    };
    in_slices(0..wiring.outlets.len(), each).await;
    QueuesPage { queues }
}

/// Records in flight count as queued until they have an outcome.
fn waiting(outlet: &Outlet) -> Amount {
    let account = &outlet.account;
    Amount { copies: account.copies_queued(), bytes: account.queued_bytes.load(Relaxed) }
}

fn row(outlet: &Outlet, max_bytes: u64, now: Now) -> QueueRow {
    let look = outlet.look(now);
    let Amount { copies, bytes } = waiting(outlet);
    let disk = look.disk.map(|disk| DiskFigures {
        segments: disk.segments,
        damaged_ranges: disk.counts.damaged_ranges,
        damaged_records: disk.counts.damaged_records,
        quarantined_bytes: disk.counts.quarantined_bytes,
        records_missing: disk.missing.map_or(0, |missing| missing.copies),
    });
    QueueRow {
        name: outlet.name.clone(),
        kind: if disk.is_some() { "disk" } else { "memory" }.to_owned(),
        copies,
        bytes,
        max_bytes,
        oldest_s: look.oldest_age_ns.map(|age_ns| age_ns as f64 / SECOND_NS as f64),
        busy: look.busy,
        disk,
    }
}

/// The queue of a current output, with its encodings.
pub(super) fn find(shared: &Shared, name: &str) -> Result<(Arc<Outlet>, &'static [Form]), Refusal> {
    let wiring = shared.wiring.load();
    let mut outputs = wiring.plan.outputs.iter().zip(&wiring.outlets);
    let found = outputs.find(|(plan, _)| plan.name == name && !is_retired(plan));
    let (plan, outlet) = found.ok_or((StatusCode::NOT_FOUND, format!("there is no output `{name}`")))?;
    if shared.stopping.load(Relaxed) {
        return Err((StatusCode::SERVICE_UNAVAILABLE, "the daemon is stopping".into()));
    }
    if shared.handing_over.load(Relaxed) {
        return Err(parked());
    }
    // Another process may still own the queued records and continue with them.
    if !shared.ready.load(Relaxed) {
        let why = "the daemon is starting, and its queues are not open yet: retry";
        return Err((StatusCode::SERVICE_UNAVAILABLE, why.into()));
    }
    Ok((Arc::clone(outlet), takes(&plan.kind)))
}

/// `POST /api/v1/queues/NAME/drop`
pub(super) async fn drop_waiting(shared: &Shared, name: &str, body: &[u8]) -> Result<DropResult, Refusal> {
    let order: DropOrder = serde_json::from_slice(body)
        .map_err(|error| (StatusCode::BAD_REQUEST, format!("invalid request body: {error}")))?;
    let (outlet, _) = find(shared, name)?;
    let dropped = on_thread(move || dropped(&outlet, order)).await??;
    tracing::warn!(
        "output `{name}`: {} copies ({} bytes) lost as `by_operator`: dropped by request",
        dropped.dropped.copies,
        dropped.dropped.bytes
    );
    Ok(dropped)
}

fn dropped(outlet: &Outlet, order: DropOrder) -> Result<DropResult, Refusal> {
    let mut result = DropResult { queue: outlet.name.clone(), ..DropResult::default() };
    if order.quarantine {
        let failed = |error| (StatusCode::INTERNAL_SERVER_ERROR, format!("cannot remove all files: {error}"));
        let mut queue = outlet.queue();
        if outlet.is_parked() {
            return Err(parked());
        }
        let names = queue.on_disk().map_or(Ok(Vec::new()), |queue| queue.quarantined());
        drop(queue);
        for name in names.map_err(failed)? {
            // Each removal may take long: the shard gets the queue's lock in between.
            std::thread::yield_now();
            let mut queue = outlet.queue();
            if outlet.is_parked() {
                return Err(parked());
            }
            let removed = queue.on_disk().map_or(Ok(None), |queue| queue.remove_quarantined(&name));
            if let Some(bytes) = removed.map_err(failed)? {
                result.quarantine.copies += 1;
                result.quarantine.bytes += bytes;
            }
        }
    } else {
        let now = Clock::now();
        // Records that arrive meanwhile have no age yet.
        let age_ns = order.older_than_ms.unwrap_or(0).saturating_mul(SECOND_NS / 1000).max(1);
        // Two concurrent requests each show the result of both.
        let lost = |reason| Amount::dropped(&outlet.account, reason);
        let before = (lost(Dropped::ByOperator), lost(Dropped::Damaged));
        while outlet.drop_older(age_ns, Dropped::ByOperator, DROP_STEP, now).ok_or_else(parked)? {}
        outlet.changed();
        let after = (lost(Dropped::ByOperator), lost(Dropped::Damaged));
        result.dropped.copies = after.0.copies - before.0.copies;
        result.dropped.bytes = after.0.bytes - before.0.bytes;
        result.damaged = after.1.copies - before.1.copies;
    }
    result.left = waiting(outlet);
    Ok(result)
}

fn parked() -> Refusal {
    (StatusCode::SERVICE_UNAVAILABLE, "a hot restart is in progress: retry".into())
}

/// `POST /api/v1/queues/NAME/replay`: lines, or blocks as JSON lines.
pub(super) async fn replay(
    shared: &Shared,
    name: &str,
    as_json: bool,
    body: Whole,
) -> Result<Replayed, Refusal> {
    let (outlet, forms) = find(shared, name)?;
    let taker = Arc::clone(&outlet);
    // The body is freed here, before waiting for the disk.
    let (mut done, last) = on_thread(move || append(&taker, &body, as_json, forms)).await??;
    done.safe = match last {
        Some(last) => is_safe(&outlet, last).await,
        None => true,
    };
    tracing::info!("output `{name}`: {} copies appended by request", done.copies);
    Ok(done)
}

/// Appends the blocks of a request until the queue is full, after all of them were checked. Returns the position of the
/// last accepted one.
fn append(
    outlet: &Outlet,
    body: &[u8],
    as_json: bool,
    forms: &[Form],
) -> Result<(Replayed, Option<Position>), Refusal> {
    // The body is parsed twice, so that only one block is in memory besides it.
    each_block(body, as_json, forms, |_block| ControlFlow::Continue(()))?;
    let (mut done, mut last) = (Replayed::default(), None);
    each_block(body, as_json, forms, |block| {
        let copies = u64::from(block.copies);
        let Some(place) = outlet.offer(block, Clock::now()) else {
            done.full = true;
            return ControlFlow::Break(());
        };
        done.blocks += 1;
        done.copies += copies;
        last = Some(place);
        ControlFlow::Continue(())
    })?;
    Ok((done, last))
}

/// Passes the blocks of a request to `take` until it stops.
fn each_block(
    body: &[u8],
    as_json: bool,
    forms: &[Form],
    mut take: impl FnMut(Block) -> ControlFlow<()>,
) -> Result<(), Refusal> {
    let mut lines = LineBlocks::default();
    let now_ns = Clock::mono_ns();
    let wrong = |at: usize, why: String| (StatusCode::BAD_REQUEST, format!("line {}: {why}", at + 1));
    for (at, line) in body.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let block = if !as_json {
            lines.push(line, now_ns).map_err(|why| wrong(at, why))?
        } else if line.iter().all(u8::is_ascii_whitespace) {
            None
        } else {
            Some(from_json(line, now_ns).map_err(|why| wrong(at, why))?)
        };
        let Some(block) = block else { continue };
        Form::check(&block, forms).map_err(|why| (StatusCode::BAD_REQUEST, why))?;
        if take(block).is_break() {
            return Ok(());
        }
    }
    if let Some(block) = lines.take(now_ns) {
        Form::check(&block, forms).map_err(|why| (StatusCode::BAD_REQUEST, why))?;
        let _last = take(block);
    }
    Ok(())
}

/// Waits until a block is safe, or will never be known to be. A queue in memory is never safe.
async fn is_safe(outlet: &Outlet, place: Position) -> bool {
    if outlet.disk().is_none() {
        return false;
    }
    let synced = async {
        loop {
            // Before the check, so that no notification is missed.
            let news = outlet.synced.notified();
            match outlet.promise_soon(place) {
                None => tokio::time::sleep(BUSY_PAUSE).await,
                Some(Promise::Accepted) => news.await,
                Some(promise) => return promise == Promise::Safe,
            }
        }
    };
    tokio::time::timeout(SAFE_WAIT, synced).await.unwrap_or(false)
}

/// Runs work with files and locks on another thread than the connections.
async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
    let ended = |error| (StatusCode::INTERNAL_SERVER_ERROR, format!("the request failed: {error}"));
    tokio::task::spawn_blocking(work).await.map_err(ended)
}

#[cfg(test)]
mod tests {
    use deliver::disk_queue::{DiskQueue, DiskQueuePlan};
    use deliver::plan::QueueLimits;
    use serde_json::Value;
    use sys::disk::Folder;

    use super::*;

    /// The pause of a look at a queue that somebody has is one of its task, and not of the thread.
    #[tokio::test]
    async fn a_replay_that_waits_for_a_busy_queue_delays_no_other_request() {
        let held = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(held.path().join("queue")).expect("it can be made");
        let opened =
            DiskQueue::open(folder.clone(), DiskQueuePlan::default(), Arc::default(), 1, Clock::now());
        let outlet = Arc::new(Outlet::on_disk("o", opened.expect("it is empty").0, folder));
        let line = Block::lines(b"a 1 2\n".to_vec(), 1, 0);
        let place = outlet.append(line, Clock::now()).expect("there is room");
        let job = outlet.queue().on_disk().and_then(|queue| queue.begin_last_sync());
        let disk = outlet.disk().expect("it is on disk");
        outlet.on_synced(job.expect("a record is not synced").perform(disk.folder()));
        let (release, released) = std::sync::mpsc::channel::<()>();
        let (locked, is_locked) = tokio::sync::oneshot::channel();
        let holder = Arc::clone(&outlet);
        let holder = std::thread::spawn(move || {
            let _busy = holder.queue();
            locked.send(()).expect("the test waits");
            released.recv().expect("the other request runs");
        });
        is_locked.await.expect("the thread runs");
        // Runs on the same thread, while the first one waits.
        let other = async { release.send(()).expect("the queue is busy until then") };
        let (is_safe, ()) = tokio::join!(is_safe(&outlet, place), other);
        assert!(is_safe);
        holder.join().expect("it only waits");
    }

    #[test]
    fn the_page_on_the_api_shows_these_documents() {
        let page = include_str!("../../../../docs/api.md");
        let (_, page) = page.split_once("\n## Queues\n").expect("a section");
        let examples = page.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next());
        let shown: Vec<Value> =
            examples.map(|json| serde_json::from_str(json).expect("the example is JSON")).collect();
        let [queues, dropped, replayed] = shown.as_slice() else { panic!("{} documents", shown.len()) };
        fn members(value: &Value) -> Vec<&String> {
            value.as_object().into_iter().flat_map(|object| object.keys()).collect()
        }
        let row = QueueRow { disk: Some(DiskFigures::default()), ..QueueRow::default() };
        let row = serde_json::to_value(row).expect("serializes");
        assert_eq!(members(&queues["queues"][0]), members(&row));
        assert_eq!(
            members(dropped),
            members(&serde_json::to_value(DropResult::default()).expect("serializes"))
        );
        assert_eq!(
            members(replayed),
            members(&serde_json::to_value(Replayed::default()).expect("serializes"))
        );
    }

    #[test]
    fn a_request_is_checked_completely_before_any_block_is_appended() {
        let good = r#"{"encoding":"lines","copies":1,"bytes":"a 1 2\n"}"#;
        let packets = r#"{"encoding":"packets","copies":1,"packets":[[0,1]],"bytes":"a"}"#;
        // (body, as JSON, number of blocks, or a part of the error)
        let table: &[(String, bool, Result<u64, &str>)] = &[
            ("a 1 2\nb 1 2".into(), false, Ok(1)),
            (String::new(), false, Ok(0)),
            (format!("{good}\n\n{good}\n"), true, Ok(2)),
            (format!("{good}\nnothing\n"), true, Err("line 2: ")),
            (format!("{good}\n{packets}\n"), true, Err("the output takes lines")),
            (format!("a\n{}\n", "x".repeat(2 << 20)), false, Err("line 2: it is longer")),
        ];
        for (body, as_json, want) in table {
            let outlet = Outlet::new("o", QueueLimits::default(), &Arc::default());
            match (append(&outlet, body.as_bytes(), *as_json, &[Form::Lines]), want) {
                (Ok((done, _last)), Ok(count)) => assert_eq!((done.blocks, done.full), (*count, false)),
                (Err((status, why)), Err(word)) => {
                    assert!(status == StatusCode::BAD_REQUEST && why.contains(word), "{why}");
                    assert_eq!(outlet.sum().copies, 0);
                }
                (found, want) => panic!("{found:?} instead of {want:?}"),
            }
        }
        let limits = QueueLimits { records_max: 1, ..QueueLimits::default() };
        let outlet = Outlet::new("o", limits, &Arc::default());
        let two = format!("{good}\n{good}\n");
        let (done, last) = append(&outlet, two.as_bytes(), true, &[Form::Lines]).expect("both are good");
        assert_eq!((done.blocks, done.copies, done.full, last.is_some()), (1, 1, true, true));
    }
}
