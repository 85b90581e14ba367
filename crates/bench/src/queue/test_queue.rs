//! A queue for tests: `DiskQueue` alone, synced all the time.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use deliver::disk_queue::DiskQueue;
use deliver::queue::{Appended, Block, Queue as _};
use model::Now;
use sys::disk::Folder;

use super::DaemonQueue;

struct TestQueue {
    queue: Mutex<DiskQueue<Folder>>,
    folder: Folder,
    closed: AtomicBool,
}

pub(super) fn wrap(queue: DiskQueue<Folder>, folder: Folder) -> Box<dyn DaemonQueue> {
    Box::new(TestQueue { queue: Mutex::new(queue), folder, closed: AtomicBool::new(false) })
}

impl TestQueue {
    fn queue(&self) -> MutexGuard<'_, DiskQueue<Folder>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DaemonQueue for TestQueue {
    fn append(&self, block: Block, now: Now) -> bool {
        self.queue().append(block, now) == Appended::Kept
    }

    fn sync_until_closed(&self) {
        while !self.closed.load(Relaxed) {
            self.sync();
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn is_safe(&self) -> bool {
        let queue = self.queue();
        queue.safe_up_to() == queue.accepted_up_to()
    }

    fn close(&self, _now: Now) {
        self.closed.store(true, Relaxed);
    }

    fn sync(&self) {
        let job = self.queue().begin_last_sync();
        if let Some(job) = job {
            let synced = job.perform(&self.folder);
            assert_eq!(self.queue().on_synced(synced).error, None);
        }
    }

    fn copies_queued(&self) -> u64 {
        self.queue().account().copies_queued()
    }
}
