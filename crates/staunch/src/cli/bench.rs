//! `staunch bench`: the table on stdout, progress on stderr. Exit 1 when a limit was not kept.
//!
//! Not here: the measurements (crate `bench`). They get the daemon's queue on disk from here ([`BenchQueue`]).

use std::process::ExitCode;

use super::MISTAKES;
use super::args::{BenchArgs, BenchKind};
use crate::daemon::outlet::Outlet;
use crate::daemon::queues::syncs;
use ::bench::queue::DaemonQueue;
use ::bench::{fanout, queue, relay, riemann, statsd, store};
use client::stdio;
use deliver::disk_queue::DiskQueue;
use deliver::queue::{Block, Queue as _};
use model::Now;
use sys::disk::Folder;

/// `staunch bench`
pub(crate) fn bench(args: &BenchArgs) -> anyhow::Result<ExitCode> {
    let mut tell = |progress: &str| stdio::say(&format!("{progress}\n"));
    let report = match &args.kind {
        BenchKind::Statsd(statsd) => statsd::run(statsd, &mut tell)?,
        BenchKind::Fanout(fanout) => fanout::run(fanout, &mut tell)?,
        BenchKind::Queue(queue) => queue::run(queue, &wrap, &mut tell)?,
        BenchKind::Relay(relay) => relay::run(relay, &mut tell)?,
        BenchKind::Store(store) => store::run(store, &mut tell)?,
        BenchKind::Riemann(riemann) => riemann::run(riemann, &mut tell)?,
    };
    let text = if args.json { serde_json::to_string_pretty(&report)? + "\n" } else { report.to_string() };
    stdio::data(text.as_bytes())?;
    Ok(if report.all_met() { ExitCode::SUCCESS } else { ExitCode::from(MISTAKES) })
}

/// The daemon's queue on disk, for `staunch bench queue`.
struct BenchQueue(Outlet);

fn wrap(queue: DiskQueue<Folder>, folder: Folder) -> Box<dyn DaemonQueue> {
    Box::new(BenchQueue(Outlet::on_disk("bench", queue, folder)))
}

impl DaemonQueue for BenchQueue {
    fn append(&self, block: Block, now: Now) -> bool {
        self.0.append(block, now).is_some()
    }

    fn sync_until_closed(&self) {
        syncs::run(&self.0);
    }

    fn is_safe(&self) -> bool {
        self.0.queue().on_disk().is_none_or(|queue| queue.safe_up_to() == queue.accepted_up_to())
    }

    fn close(&self, now: Now) {
        self.0.close(0, now);
        self.0.set_ended(0);
    }

    fn sync(&self) {
        let job = self.0.queue().on_disk().and_then(|queue| queue.begin_last_sync());
        if let (Some(job), Some(disk)) = (job, self.0.disk()) {
            let _error = self.0.on_synced(job.perform(disk.folder()));
        }
    }

    fn copies_queued(&self) -> u64 {
        self.0.account.copies_queued()
    }
}

#[test]
fn queues_of_the_daemon_are_measured_and_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let args =
        queue::Args { folder: folder.path().into(), runs: 1, megabytes: 1, window: 5, start_gigabytes: 0.0 };
    let report = queue::run(&args, &wrap, &mut |_line| {}).expect("it runs");
    let rows = &report.scenarios[0].rows;
    assert!(rows.len() == 8 && rows.iter().all(|row| row.runs.iter().all(|run| *run > 0.0)));
    assert_eq!(std::fs::read_dir(folder.path()).expect("it is there").count(), 0);
}
