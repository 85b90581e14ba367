//! An outlet whose queue is on disk: the state that it shares with the thread that syncs it (`daemon::queues::syncs`).
//!
//! The thread sleeps until a commit window ends or the disk has to record settled blocks; it is woken only if it would
//! sleep past that. Not here: what a sync does (`deliver::disk_queue`), and the thread itself.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use deliver::disk_queue::{DiskQueue, SyncDone};
use deliver::queue::{MemoryQueue, OutputQueue, Queue};
use model::DiskError;

use super::Outlet;
use super::state::MS_NS;
use sys::clock::Clock;
use sys::disk::Folder;

/// A thread that syncs is not woken for settled blocks if it wakes by itself within this time.
const SETTLED_WITHIN_NS: u64 = 20 * MS_NS;

/// What the thread that syncs a queue on disk needs besides the queue.
#[derive(Debug)]
pub struct OnDisk {
    folder: Folder,
    /// Monotonic nanosecond at which the thread wakes by itself; 0 while it is awake.
    sleeps_until_ns: AtomicU64,
    /// Outlets of the queue whose tasks have not ended.
    pub(super) open: AtomicU32,
    /// The daemon ends: the queue is synced a last time when all tasks have ended.
    pub(super) closing: AtomicBool,
    /// No thread syncs it any more.
    pub(super) released: AtomicBool,
    /// A reload has removed its output: its files are closed when all tasks have ended and nothing waits.
    retired: AtomicBool,
    /// A look needs the age of the oldest record, and must not read for it.
    pub(super) wants_oldest: AtomicBool,
    work: Condvar,
    /// Outlets of the queue for new endpoints of reloads.
    successors: Mutex<Vec<Weak<Outlet>>>,
}

impl OnDisk {
    /// The folder of the queue.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    pub(super) fn new(folder: Folder) -> OnDisk {
        OnDisk {
            folder,
            sleeps_until_ns: AtomicU64::new(0),
            open: AtomicU32::new(0),
            closing: AtomicBool::new(false),
            released: AtomicBool::new(false),
            retired: AtomicBool::new(false),
            wants_oldest: AtomicBool::new(true),
            work: Condvar::new(),
            successors: Mutex::default(),
        }
    }

    /// From now on `outlet` is woken as well when the disk has something to send.
    pub fn followed_by(&self, outlet: &Arc<Outlet>) {
        let mut successors = self.successors.lock().unwrap_or_else(PoisonError::into_inner);
        successors.retain(|outlet| outlet.strong_count() > 0);
        successors.push(Arc::downgrade(outlet));
    }

    fn wake_successors(&self) {
        let successors = self.successors.lock().unwrap_or_else(PoisonError::into_inner);
        successors.iter().filter_map(Weak::upgrade).for_each(|outlet| outlet.wake());
    }

    /// True when the daemon ends and nothing is settled or appended any more: only the last sync is left.
    pub fn is_done(&self) -> bool {
        self.closing.load(Relaxed) && self.open.load(Relaxed) == 0
    }

    /// Whether a reload has removed its output.
    pub fn set_retired(&self, retired: bool) {
        self.retired.store(retired, Relaxed);
    }

    /// True when no output uses the queue any more.
    pub fn is_left(&self) -> bool {
        self.retired.load(Relaxed) && self.open.load(Relaxed) == 0
    }

    /// Called by the thread, with the queue locked, before it looks for work.
    pub fn falls_asleep(&self) {
        self.sleeps_until_ns.store(u64::MAX, Relaxed);
    }

    /// Called by the thread when it has found work.
    pub fn is_awake(&self) {
        self.sleeps_until_ns.store(0, Relaxed);
    }

    /// True once after a look needed the age of the oldest record.
    pub fn take_wants_oldest(&self) -> bool {
        self.wants_oldest.swap(false, Relaxed)
    }

    /// Sleeps until it is woken, or for `pause`.
    pub fn sleep(&self, queue: MutexGuard<'_, OutputQueue<Folder>>, now_ns: u64, pause: Option<Duration>) {
        match pause {
            Some(pause) => {
                let until_ns = now_ns.saturating_add(pause.as_nanos() as u64);
                self.sleeps_until_ns.store(until_ns, Relaxed);
                let _guard = self.work.wait_timeout(queue, pause).unwrap_or_else(PoisonError::into_inner);
            }
            None => {
                let _guard = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        }
        self.is_awake();
    }

    /// Wakes the thread if it would sleep past `at_ns`. The queue is locked, so that the thread is awake or waits.
    pub(super) fn wake_before(&self, at_ns: u64, _locked: &OutputQueue<Folder>) {
        if self.sleeps_until_ns.load(Relaxed) > at_ns {
            self.is_awake();
            self.work.notify_one();
        }
    }
}

impl Outlet {
    /// Replaces an empty queue in memory by one on disk. Once.
    pub fn put_on_disk(&self, queue: DiskQueue<Folder>, folder: Folder) {
        let mut place = self.queue();
        debug_assert!(place.copies() == 0, "what was in memory would be dropped");
        let disk = OnDisk::new(folder);
        disk.open.store(u32::from(!self.has_ended()), Relaxed);
        self.disk.store(Some(Arc::new(disk)));
        *place = OutputQueue::Disk(Box::new(queue));
        drop(place);
        self.wake();
    }

    /// What the thread that syncs needs; none for a queue in memory.
    pub fn disk(&self) -> Option<Arc<OnDisk>> {
        self.disk.load_full()
    }

    /// True when no output uses the queue any more and nothing waits in it, is in flight or in doubt.
    pub fn is_done_with(&self, disk: &OnDisk, queue: &OutputQueue<Folder>) -> bool {
        disk.is_left() && queue.copies() == 0 && self.account.copies_queued() == 0
    }

    /// Closes the files of a queue on disk that is no longer used. An output of its name opens them again. False when
    /// one has come back meanwhile.
    pub fn close_files(&self, disk: &OnDisk) -> bool {
        let mut queue = self.queue();
        let done = self.is_done_with(disk, &queue);
        if done {
            let place = queue.accepted_up_to();
            *queue =
                OutputQueue::Memory(MemoryQueue::after(place, queue.limits(), Arc::clone(&self.account)));
            self.disk.store(None);
        }
        done
    }

    /// Wakes the output and its successors: which of them sends is not known here.
    pub fn wake_all(&self) {
        self.wake();
        self.disk().into_iter().for_each(|disk| disk.wake_successors());
    }

    /// Blocks may have been settled, which the disk has to record soon: wakes a thread that would sleep for long.
    pub(super) fn wake_sync(&self) {
        let Some(disk) = self.disk() else { return };
        let soon_ns = Clock::mono_ns() + SETTLED_WITHIN_NS;
        if disk.sleeps_until_ns.load(Relaxed) > soon_ns {
            disk.wake_before(soon_ns, &self.queue());
        }
    }

    /// Applies the result of a sync, and notifies those who wait for one. Returns the first error.
    pub fn on_synced(&self, done: SyncDone) -> Option<DiskError> {
        let error = self.queue().on_disk().and_then(|queue| queue.on_synced(done).error);
        self.synced.notify_waiters();
        self.progressed();
        error
    }

    /// The records that stay on disk, of an output that a reload has removed and whose time is over; none while the
    /// daemon ends, or when a successor continues.
    pub fn left_on_disk(&self) -> Option<(Arc<OnDisk>, u64)> {
        let copies = self.queue().copies();
        let disk = self.disk().filter(|disk| !disk.closing.load(Relaxed))?;
        (copies > 0 && self.ending.deadline_ns.load(Relaxed) != 0).then_some((disk, copies))
    }
}
