//! The ends of a daemon: [`stop`] for good, in the order that loses nothing, and [`leave`] when another process goes on.

pub(in crate::daemon) mod stop_guard;

use std::io;
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use config::plan::Plan;
use model::{Dropped, SECOND_NS};
use tokio::sync::oneshot::Receiver;
use tokio::task::JoinSet;
use tokio::time::error::Elapsed;

use crate::admin::{
    self,
    accounts::{AccountsPage, DiskRow},
};
use crate::daemon::checkpoint::LastCheckpoints;
use crate::daemon::hot_restart::{Control, EndsHere};
use crate::daemon::original::Original;
use crate::daemon::running::Running;
use crate::daemon::shared::Shared;
use crate::daemon::worker::{Stopped, Worker};
use crate::daemon::{supervisor, watch};
use client::stdio;
use sys::clock::Clock;

/// Share of `stop_timeout` that sources may take to read what has come already, in percent; the rest is for the last
/// flush and the outputs. Only a machine that is very busy needs it.
const SOURCES_STOP_PERCENT: u64 = 50;

/// Share of it that relays may then take to search for names of lines that have come, in percent.
const SEARCH_STOP_PERCENT: u64 = 10;

/// How long clients may take to read their last acknowledgement.
const LAST_WORD_MAX: Duration = Duration::from_millis(250);

/// Least time that the last checkpoint and the note for the next start may take, however long the outputs took.
const CHECKPOINT_STOP_MIN_NS: u64 = SECOND_NS / 2;

/// How much later than `stop_timeout` the last flush may end. The queues on disk then still have it; beyond that a disk
/// hangs.
const FLUSH_LATE_MAX_NS: u64 = 2 * SECOND_NS;

/// Longest wait for requests that are being answered when another process has taken over.
const ANSWERS_MAX: Duration = Duration::from_secs(1);

/// Pause between two looks whether what waits for room was taken.
const ROOM_LOOK: Duration = Duration::from_millis(20);

/// Pause in which each reader finds out what has come on connections.
const LOOK_AROUND: Duration = Duration::from_millis(2);

/// Stops: sources, last flush, outputs, and a log line about what could not be delivered. An `original` that it replaces
/// has its own words for each step.
pub(super) async fn stop(running: Running, original: Option<&dyn Original>) -> anyhow::Result<ExitCode> {
    let Running {
        shared,
        mut listeners,
        mut outputs,
        mut syncs,
        data_dir,
        mut checks,
        stop,
        control,
        worker,
        ..
    } = running;
    // Beside everything else: it is in the data directory, whose disk may hang.
    let unasked = tokio::task::spawn_blocking(move || control.iter().for_each(Control::remove));
    shared.stopping.store(true, Relaxed);
    supervisor::stopping();
    let timeout_ns = shared.wiring.load().plan.stop_timeout_ms * 1_000_000;
    let deadline_ns = Clock::now().mono_ns + timeout_ns;
    tracing::info!("stopping: last flush, then {}", limits(&shared.wiring.load().plan));
    let sources_max_ns = timeout_ns / 100 * SOURCES_STOP_PERCENT;
    let sources_max = Duration::from_nanos(sources_max_ns);
    let sources_until_ns = Clock::mono_ns() + sources_max_ns;
    // The runtime of HTTP hears signals too, and may have passed this one on before ours has looked at its sockets. What
    // had come by then counts: for a pause the runtimes of the readers have to look.
    shared.readers.look_around(LOOK_AROUND).await;
    listeners.stop(sources_max).await;
    wait_until_taken(&shared, sources_until_ns).await;
    original.iter().for_each(|original| original.listeners_closed(&shared));
    let search_until_ns = Clock::mono_ns() + timeout_ns / 100 * SEARCH_STOP_PERCENT;
    let Ok(stopped) = last_flush(&shared, search_until_ns, deadline_ns + FLUSH_LATE_MAX_NS).await else {
        return Ok(without_last_flush(&shared));
    };
    // Both beside the outputs, which wait for others and not for the disk.
    let last_checkpoints =
        stopped.and_then(|stopped| stopped.checkpoints).map(LastCheckpoints::write_on_thread);
    let noted = shared.handover.write_on_thread();
    original.iter().for_each(|original| original.worker_stopped(&shared));
    // Connections that were still handing on find that nobody takes anything any more, and say so in the account.
    listeners.stop(sources_max / 5).await;
    let outputs_until_ns = close_outputs(&shared, deadline_ns, timeout_ns);
    drain(&mut outputs, &mut syncs, left_until(outputs_until_ns) + Duration::from_millis(250)).await;
    shared.acks.finish(&shared.wiring.load().outlets, LAST_WORD_MAX).await;
    let until_ns = deadline_ns.max(Clock::mono_ns() + CHECKPOINT_STOP_MIN_NS);
    tell_written(last_checkpoints, noted, until_ns).await;
    // What hangs is left: nobody but us would miss the socket.
    let _hangs = tokio::time::timeout(left_until(until_ns), unasked).await;
    checks.shutdown().await;
    stop.send_replace(true);
    if worker.join().is_err() {
        tracing::error!("the shard's thread panicked");
    }
    original.iter().for_each(|original| original.outputs_stopped());
    let page = tell_what_is_left(&shared);
    original.iter().for_each(|original| original.accounts_closed(&page));
    drop(data_dir);
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// Nothing more comes: outputs deliver what they have until the deadline, and stores until their own. Gives the last one.
fn close_outputs(shared: &Shared, deadline_ns: u64, timeout_ns: u64) -> u64 {
    let (wiring, now) = (shared.wiring.load(), Clock::now());
    let mut last_ns = deadline_ns;
    for (outlet, output) in wiring.outlets.iter().zip(&wiring.plan.outputs) {
        let more_ns = (wiring.plan.stop_ms_of(output) * 1_000_000).saturating_sub(timeout_ns);
        outlet.close(deadline_ns + more_ns, now);
        last_ns = last_ns.max(deadline_ns + more_ns);
    }
    last_ns
}

/// How long the outputs may take: the daemon's limit, and those outputs with a longer one of their own, such as a store.
fn limits(plan: &Plan) -> String {
    let (all_ms, mut more) = (plan.stop_timeout_ms, String::new());
    for output in &plan.outputs {
        let own_ms = plan.stop_ms_of(output);
        if own_ms > all_ms {
            more += &format!(", {} for output `{}`", seconds(own_ms * 1_000_000), output.name);
        }
    }
    format!("at most {} for the outputs{more}", seconds(all_ms * 1_000_000))
}

/// The time until `until_ns` (monotonic).
fn left_until(until_ns: u64) -> Duration {
    Duration::from_nanos(until_ns.saturating_sub(Clock::mono_ns()))
}

/// The shard's thread has not come to its last flush, or not to its end: it waits for a disk. A task that asks for the queue
/// that it writes to would wait as well, so the process ends.
fn without_last_flush(shared: &Shared) -> ExitCode {
    tracing::error!(
        "the last flush did not end in time, because a queue's disk hangs: {}",
        stop_guard::what_is_lost(shared)
    );
    ExitCode::FAILURE
}

/// The shard's last flush. It answers after it has handed its last blocks to the outlets, some of which write them to a
/// disk. None when there is no thread any more to ask; an error when it is too late.
async fn last_flush(
    shared: &Shared,
    search_until_ns: u64,
    until_ns: u64,
) -> Result<Option<Stopped>, Elapsed> {
    let stopped = shared.shard.call(move |worker| worker.stop(search_until_ns));
    let flushed = tokio::time::timeout(left_until(until_ns), stopped).await?;
    if flushed.is_err() {
        tracing::error!("the shard's thread ended before the last flush");
    }
    Ok(flushed.ok())
}

/// Waits for what is written to the data directory beside the outputs, and says what was not.
async fn tell_written(checkpoints: Option<Receiver<()>>, noted: Receiver<io::Result<()>>, until_ns: u64) {
    if let Some(written) = checkpoints
        && tokio::time::timeout(left_until(until_ns), written).await.is_err()
    {
        tracing::warn!("the last checkpoint was not written in time: the previous one remains");
    }
    match tokio::time::timeout(left_until(until_ns), noted).await {
        Ok(Ok(Ok(()))) => {}
        Ok(Ok(Err(error))) => tracing::warn!("cannot write the handover note for the next start: {error}"),
        Ok(Err(_no_thread)) => tracing::warn!("cannot write the handover note for the next start"),
        Err(_late) => tracing::warn!(
            "the handover note for the next start was not written in time: a window may reuse an earlier timestamp"
        ),
    }
}

/// Lets outputs end, and then what syncs their queues.
async fn drain(outputs: &mut JoinSet<()>, syncs: &mut JoinSet<()>, at_most: Duration) {
    let drained = tokio::time::timeout(at_most, async {
        while outputs.join_next().await.is_some() {}
        while syncs.join_next().await.is_some() {}
    });
    if drained.await.is_err() {
        tracing::warn!("an output did not end in time");
    }
}

/// A word on what came too late, what could not be delivered, and what waits for the next start.
fn tell_what_is_left(shared: &Shared) -> AccountsPage {
    let page = admin::accounts::page(shared, Clock::now());
    for row in &page.sources {
        let lost = row.losses.get("dropped").and_then(|dropped| dropped.get("stopped")).copied().unwrap_or(0);
        if lost > 0 {
            tracing::warn!(
                "source `{}`: {} lost as `stopped`: too late for the last flush",
                row.name,
                stdio::records(lost)
            );
        }
    }
    for row in &page.outputs {
        let stopped =
            row.losses.get("dropped").and_then(|dropped| dropped.get("stopped")).copied().unwrap_or(0);
        let lost = if row.disk.is_some() { stopped } else { stopped + row.sum.queued };
        if lost > 0 {
            tracing::warn!(
                "output `{}`: {} lost as `stopped`: not delivered before the stop",
                row.name,
                stdio::records(lost)
            );
        }
        let deleted =
            row.losses.get("dropped").and_then(|dropped| dropped.get("deleted")).copied().unwrap_or(0);
        if deleted > 0 {
            tracing::warn!(
                "output `{}`: {} lost as `deleted`: files of its queue on disk were deleted",
                row.name,
                stdio::records(deleted)
            );
        }
        if let Some(disk) = row.disk.as_ref().filter(|_| row.sum.queued > 0) {
            tell_what_waits(&row.name, row.sum.queued, disk);
        }
    }
    watch::last_words(&page);
    page
}

fn tell_what_waits(name: &str, waiting: u64, disk: &DiskRow) {
    match &disk.missing {
        None => {
            tracing::info!("output `{name}`: {} queued on disk for the next start", stdio::records(waiting))
        }
        Some(why) => tracing::warn!(
            "output `{name}`: {} queued on disk for the next start, and {} not available: {why}: {}",
            stdio::records(waiting.saturating_sub(disk.records_missing)),
            stdio::records(disk.records_missing),
            disk.folder
        ),
    }
}

/// Lets the shard take what waits in the exchange for room in a queue, as long as there is time for it: behind the last
/// flush nothing can wait any more.
async fn wait_until_taken(shared: &Shared, until_ns: u64) {
    let taken = async {
        while !shared.exchange.is_empty() {
            // Cancel-safe: room that came just before is seen at the next look.
            let _room = tokio::time::timeout(ROOM_LOOK, shared.room.notified()).await;
        }
    };
    // Out of time: the rest is dropped, and counted.
    let _late =
        tokio::time::timeout(Duration::from_nanos(until_ns.saturating_sub(Clock::mono_ns())), taken).await;
}

/// Ends after another process has taken over: what that one does not have is delivered, as at a stop.
pub(super) async fn leave(running: Running, ends: &[EndsHere]) -> anyhow::Result<ExitCode> {
    let Running { shared, mut outputs, mut syncs, mut checks, mut ports, worker, .. } = running;
    // Nothing is settled here any more: who waits for that asks the other process.
    shared.acks.finish(&shared.wiring.load().outlets, LAST_WORD_MAX).await;
    let timeout = Duration::from_millis(shared.wiring.load().plan.stop_ms()) + Duration::from_millis(250);
    drain(&mut outputs, &mut syncs, timeout).await;
    tell_what_ends(&shared, ends);
    let answered = async { while ports.tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(ANSWERS_MAX, answered).await.is_err() {
        tracing::debug!("requests were still open");
    }
    checks.shutdown().await;
    let _gone = shared.shard.call(Worker::end).await;
    if worker.join().is_err() {
        tracing::error!("the shard's thread panicked");
    }
    tracing::info!("stopped: the new process continues");
    Ok(ExitCode::SUCCESS)
}

/// What outputs lose that end with this process: their accounts were handed over before, and nobody else counts it.
fn tell_what_ends(shared: &Shared, ends: &[EndsHere]) {
    let wiring = shared.wiring.load();
    for EndsHere { output, lost_before } in ends {
        let outlet = &wiring.outlets[output.index()];
        // Of one that did not end in time all is lost that waits.
        let waiting = if outlet.disk().is_some() { 0 } else { outlet.sum().queued };
        for (at, (family, reason, count)) in outlet.account.losses().into_iter().enumerate() {
            let before = lost_before.get(at).map_or(0, |(_, _, count)| *count);
            let stopped = if (family, reason) == ("dropped", Dropped::Stopped.word()) { waiting } else { 0 };
            let lost = count.saturating_sub(before) + stopped;
            if lost > 0 && family != "filtered" {
                tracing::warn!(
                    "output `{}`: {} lost as `{reason}`: the new process does not have this output, or has another \
                     endpoint for it",
                    outlet.name,
                    stdio::records(lost)
                );
            }
        }
    }
}

fn seconds(ns: u64) -> String {
    format!("{} s", ns as f64 / SECOND_NS as f64)
}
