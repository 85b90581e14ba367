//! A queue on a faulty disk, with its syncing thread: jobs begin when they are due and take time, while the queue
//! continues.
//!
//! Not here: faults of the disk (`storm`), the data that the queue must still have afterwards (`storm::vault`).

use std::sync::Arc;

use deliver::disk_queue::faulty_disk::FaultyDisk;
use deliver::disk_queue::{DiskQueue, DiskQueuePlan, Position, SyncDone, SyncJob};
use deliver::plan::QueueLimits;
use deliver::queue::Queue;
use model::{DiskError, Now, OutputAccount};

use crate::random::{Digest, Random};

use super::canary::Canary;

/// Most jobs at one moment. A queue that wants more is in an endless loop.
const JOBS_MAX: usize = 100;

/// The disk of one output's queue.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) disk: FaultyDisk,
    plan: DiskQueuePlan,
    random: Random,
    running: Option<Running>,
    /// Shortest and longest time of a job, in nanoseconds.
    sync_ns: (u64, u64),
    /// No record before it may return: after a kill, and after a power loss.
    pub(crate) cursor_written: Position,
    pub(crate) cursor_synced: Position,
    canary: Option<Canary>,
}

/// A sync in progress.
#[derive(Debug)]
struct Running {
    end_ns: u64,
    work: Work,
}

/// When the disk syncs: at the end of the job, including later writes, or at its beginning, without them.
#[derive(Debug)]
enum Work {
    Late(SyncJob<usize>),
    Early(SyncDone),
}

impl Stored {
    /// An empty disk. The seed decides how long syncs take and what survives a power loss.
    pub(crate) fn new(plan: DiskQueuePlan, sync_ns: (u64, u64), seed: u64, canary: Option<Canary>) -> Stored {
        Stored {
            disk: FaultyDisk::new(seed),
            plan,
            random: Random::new(seed),
            running: None,
            sync_ns,
            cursor_written: Position(0),
            cursor_synced: Position(0),
            canary,
        }
    }

    /// New limits for each queue that is opened from now on.
    pub(crate) fn set_limits(&mut self, limits: QueueLimits) {
        self.plan.limits = limits;
    }

    /// A new process opens the queue.
    ///
    /// # Errors
    /// When the process has died before, or dies in this call.
    pub(crate) fn open(
        &mut self,
        account: &Arc<OutputAccount>,
        now: Now,
    ) -> Result<DiskQueue<FaultyDisk>, DiskError> {
        self.running = None;
        let fresh_id = self.random.next();
        let open = |account| DiskQueue::open(self.disk.clone(), self.plan, account, fresh_id, now);
        let (queue, _report) = open(Arc::clone(account))?;
        Ok(match self.canary {
            Some(canary) => canary.let_into(queue),
            None => queue,
        })
    }

    /// All blocks that a new process would find, in order, and the copies that it would count as damaged.
    pub(crate) fn peek(&self, now: Now) -> (Vec<(Position, Vec<u8>)>, u64) {
        let account = Arc::new(OutputAccount::default());
        // Reading for a check must not expire records.
        let limits = QueueLimits { age_max_ms: 0, ..self.plan.limits };
        let plan = DiskQueuePlan { limits, ..self.plan };
        let opened = DiskQueue::open(self.disk.copy(), plan, Arc::clone(&account), 1, now);
        let Ok((mut queue, report)) = opened else { return (Vec::new(), 0) };
        let mut found = Vec::new();
        while let Some(entry) = queue.pop(now) {
            let bytes = entry.block().bytes.to_vec();
            entry.settle(model::CopyOutcome::Delivered);
            found.push((Position(queue.settled_up_to().0 - 1), bytes));
        }
        debug_assert_eq!(account.sum(0).copies, report.copies_queued);
        (found, account.dropped(model::Dropped::Damaged))
    }

    /// Does the current work of the syncing thread. Returns when its next work is due (monotonic nanoseconds).
    ///
    /// # Errors
    /// When work is always due.
    pub(crate) fn sync(&mut self, queue: &mut DiskQueue<FaultyDisk>, now: Now) -> Result<u64, String> {
        if queue.read_again(now) {
            // The sender must try first.
            return Ok(now.mono_ns);
        }
        for _ in 0..JOBS_MAX {
            if let Some(running) = self.running.take_if(|running| running.end_ns <= now.mono_ns) {
                self.finish(queue, running);
            }
            if let Some(running) = &self.running {
                return Ok(running.end_ns);
            }
            match queue.sync_due_ns(now) {
                Some(due_ns) if due_ns <= now.mono_ns => self.begin(queue, now),
                due_ns => return Ok(due_ns.unwrap_or(u64::MAX)),
            }
        }
        Err("a sync is always due and never done".into())
    }

    fn begin(&mut self, queue: &mut DiskQueue<FaultyDisk>, now: Now) {
        let settled = queue.settled_up_to();
        let write_errors = queue.counts().write_errors;
        let job = queue.begin_sync(now);
        if !self.disk.is_dead() && queue.counts().write_errors == write_errors {
            self.cursor_written = self.cursor_written.max(settled);
        }
        let Some(job) = job else { return };
        let (from_ns, to_ns) = self.sync_ns;
        let work =
            if self.random.chance(50) { Work::Late(job) } else { Work::Early(job.perform(&self.disk)) };
        let end_ns = now.mono_ns.saturating_add(self.random.between(from_ns, to_ns));
        self.running = Some(Running { end_ns, work });
    }

    fn finish(&mut self, queue: &mut DiskQueue<FaultyDisk>, running: Running) {
        let done = match running.work {
            Work::Late(job) => job.perform(&self.disk),
            Work::Early(done) => done,
        };
        let synced = queue.on_synced(done);
        if let Some(cursor) = synced.cursor {
            self.cursor_synced = self.cursor_synced.max(cursor);
        }
    }

    /// The end of an orderly stop: syncs the rest, including the cursor.
    pub(crate) fn last_sync(&mut self, queue: &mut DiskQueue<FaultyDisk>) {
        if let Some(running) = self.running.take() {
            self.finish(queue, running);
        }
        if let Some(job) = queue.begin_last_sync() {
            self.finish(queue, Running { end_ns: 0, work: Work::Late(job) });
        }
    }

    /// The process has died, alone or with a power loss. This decides what the next one may find.
    pub(crate) fn die(&mut self, power: bool) {
        self.running = None;
        if power {
            self.disk.lose_power();
            self.cursor_written = self.cursor_synced;
        } else {
            self.disk.restart();
        }
    }

    /// The contents of the cursor are unknown.
    pub(crate) fn forget_cursor(&mut self) {
        (self.cursor_written, self.cursor_synced) = (Position(0), Position(0));
    }

    /// Disk space beyond queued records: an incompletely settled segment, and quarantined data.
    pub(crate) fn overhead_max(&self) -> u64 {
        self.plan.segment_bytes + self.plan.quarantine_bytes_max
    }

    /// Bytes of all files together.
    pub(crate) fn used(&self) -> u64 {
        self.files().iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }

    /// All files, by name.
    pub(crate) fn files(&self) -> Vec<(String, Vec<u8>)> {
        let names = self.disk.names();
        names.into_iter().filter_map(|name| Some((name.clone(), self.disk.bytes(&name)?))).collect()
    }

    /// Fingerprint of everything on the disk.
    pub(crate) fn digest(&self) -> Digest {
        let mut digest = Digest::default();
        for (name, bytes) in self.files() {
            digest.add(name.as_bytes());
            digest.add(&bytes);
        }
        digest
    }
}
