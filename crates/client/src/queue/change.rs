//! A queue of a stopped daemon, opened to be changed.
//!
//! Invariant: it is open only while this process holds the lock of the data directory. Changes are synced before they are
//! reported.

use std::sync::Arc;

use anyhow::{Context, bail};
use deliver::disk_queue::{DiskQueue, DiskQueuePlan};
use deliver::plan::{QueueLimits, WhenFull};
use model::{Dropped, OutputAccount};

use super::place::{Place, Queue};
use sys::clock::Clock;
use sys::data_dir::DataDir;
use sys::disk::Folder;

/// A queue that is ours.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) queue: DiskQueue<Folder>,
    pub(super) account: Arc<OutputAccount>,
    folder: Folder,
    /// Held until all is done.
    _data_dir: DataDir,
}

impl Opened {
    /// Opens it. Nothing of it becomes too old meanwhile, and only `max_bytes` of the config bounds it.
    pub(super) fn open(place: &Place, found: &Queue) -> anyhow::Result<Opened> {
        let data_dir = DataDir::lock(&place.data_dir, None)?;
        let output = place.output(&found.name);
        let bytes_max = output.map_or(u64::MAX, |output| output.queue.bytes_max);
        let limits = QueueLimits { bytes_max, when_full: WhenFull::Block, ..QueueLimits::default() };
        let usual = DiskQueuePlan::default();
        let plan = DiskQueuePlan::within(limits, usual.sync_window_ms);
        let failed = || format!("cannot open the queue in {}", found.path.display());
        let folder = Folder::open(found.path.clone()).with_context(failed)?;
        let account = Arc::<OutputAccount>::default();
        let opened =
            DiskQueue::open(folder.clone(), plan, Arc::clone(&account), sys::random_seed(), Clock::now());
        let (queue, _) = opened.with_context(failed)?;
        Ok(Opened { queue, account, folder, _data_dir: data_dir })
    }

    /// Copies that turned out to be damaged.
    pub(super) fn damaged(&self) -> u64 {
        self.account.dropped(Dropped::Damaged)
    }

    /// Syncs everything, the cursor included.
    ///
    /// # Errors
    /// When the disk failed: what was done may not be there any more.
    pub(super) fn close(mut self) -> anyhow::Result<()> {
        if let Some(job) = self.queue.begin_last_sync()
            && let Some(error) = self.queue.on_synced(job.perform(&self.folder)).error
        {
            bail!("syncing the queue failed ({error}): run `staunch queue check`");
        }
        Ok(())
    }
}
