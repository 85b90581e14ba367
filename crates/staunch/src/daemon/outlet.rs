//! An output's queue, with the state that is shared by its task, the shard and, for a queue on disk, the thread that
//! syncs it.
//!
//! A queue on disk belongs to a name. When a reload gives the name to another endpoint the outlet gets a successor,
//! which shares the queue and the account, and whose task starts when that of the first has ended.
//!
//! Here: appends, and wake-ups. In separate files: `connections` (what each sender takes), `on_disk` (the thread that
//! syncs), `health` and `look` (its state for the API), `failover` (other outputs replace it), `ending`, and `parking`
//! (a hot restart). `state` has the fields of these.
//! Invariant: no lock of an outlet is held during a sync of a disk.

mod blocked;
mod connections;
mod ending;
mod failover;
mod health;
mod look;
mod on_disk;
mod parking;
mod queues;
mod state;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use config::plan::OutputPlan;
use deliver::disk_queue::{DiskQueue, DiskQueuePlan, Position, Promise};
use deliver::plan::{QueueKind, QueueLimits};
use deliver::queue::{Admission, Appended, Block, MemoryQueue, OutputQueue, Queue};
use deliver::shared_queue::SharedQueue;
use model::{Now, OutputAccount, OutputSum};
use tokio::sync::Notify;

use self::state::{Ending, FailoverWatch, Found, Health, MS_NS, SenderSlot};
use crate::outputs::errors::ErrorCounts;
pub use ending::is_retired;
pub use look::Look;
pub use on_disk::OnDisk;
pub use queues::Outlets;
pub use state::{BlockedSource, CheckState, DiskLook, NotifyLive};
use sys::disk::Folder;

/// Between the shard, which appends, and the output's task or thread, which sends.
#[derive(Debug)]
pub struct Outlet {
    /// Its name in the plan.
    pub name: String,
    /// Its account.
    pub account: Arc<OutputAccount>,
    /// Errors of its endpoint or file, by the system's word. They are kept with the account.
    pub errors: Arc<ErrorCounts>,
    queue: Arc<Mutex<OutputQueue<Folder>>>,
    /// Only for a queue on disk, while its files are open. Shared by all outlets of the queue.
    disk: Arc<ArcSwapOption<OnDisk>>,
    /// Notified after each sync of a queue on disk: promises may have changed.
    pub synced: Arc<Notify>,
    /// Between the senders of an output of several connections; locked after the queue.
    lanes: Option<Mutex<SharedQueue>>,
    /// One for each connection.
    senders: Box<[SenderSlot]>,
    /// Wakes an output that is a thread.
    more_for_thread: Condvar,
    /// A thread has waited: only then is there one to wake, which costs a system call.
    is_thread: AtomicBool,
    /// The state of its endpoint.
    health: Health,
    /// The results of the last looks at the queue.
    found: Mutex<Found>,
    /// Its file has to be opened again: it may have been moved away.
    reopens: AtomicBool,
    /// When it is to end.
    ending: Ending,
    /// Whether other outputs replace it.
    failover: FailoverWatch,
    /// Sources that wait for room in the queue, the longest wait first.
    blocked: Mutex<Vec<BlockedSource>>,
    /// Notified when something in the queue may have been settled or synced; empty until a connection waits for that.
    progress: Progress,
}

/// Notified when a queue makes progress. Shared by all outlets of the queue.
type Progress = Arc<OnceLock<Arc<Notify>>>;

/// What the thread of an output already knows, and need not wake up for again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Records wait, which it cannot send yet.
    pub records: bool,
    /// It has to end.
    pub stop: bool,
}

impl Outlet {
    /// An empty queue in memory within `limits`.
    pub fn new(name: &str, limits: QueueLimits, account: &Arc<OutputAccount>) -> Outlet {
        let queue = MemoryQueue::new(limits, Arc::clone(account));
        Outlet::with_queue(name, OutputQueue::Memory(queue), None, account)
    }

    /// A queue on disk, open in `folder`.
    pub fn on_disk(name: &str, queue: DiskQueue<Folder>, folder: Folder) -> Outlet {
        let account = Arc::clone(queue.account());
        Outlet::with_queue(name, OutputQueue::Disk(Box::new(queue)), Some(OnDisk::new(folder)), &account)
    }

    /// Another outlet of the same queue on disk, for another endpoint. Its task may start when this one's has ended.
    /// None when the files of the queue are closed: it has to be opened again.
    pub fn successor(&self) -> Option<Outlet> {
        // The files are closed under the queue's lock.
        let _open = self.queue();
        self.disk()?;
        let queue = Arc::clone(&self.queue);
        let (disk, synced) = (Arc::clone(&self.disk), Arc::clone(&self.synced));
        let mut outlet = Outlet::sharing(&self.name, queue, disk, synced, &self.account);
        outlet.progress = Arc::clone(&self.progress);
        outlet.errors = Arc::clone(&self.errors);
        Some(outlet)
    }

    /// True when both share one queue.
    pub fn shares_queue_with(&self, other: &Outlet) -> bool {
        Arc::ptr_eq(&self.queue, &other.queue)
    }

    /// Continues the error counts of an outlet of the same name, as it does with its account.
    #[must_use]
    pub fn with_errors_of(mut self, earlier: &Outlet) -> Outlet {
        self.errors = Arc::clone(&earlier.errors);
        self
    }

    fn with_queue(
        name: &str,
        queue: OutputQueue<Folder>,
        disk: Option<OnDisk>,
        account: &Arc<OutputAccount>,
    ) -> Outlet {
        let (queue, disk) = (Arc::new(Mutex::new(queue)), ArcSwapOption::from_pointee(disk));
        Outlet::sharing(name, queue, Arc::new(disk), Arc::default(), account)
    }

    fn sharing(
        name: &str,
        queue: Arc<Mutex<OutputQueue<Folder>>>,
        disk: Arc<ArcSwapOption<OnDisk>>,
        synced: Arc<Notify>,
        account: &Arc<OutputAccount>,
    ) -> Outlet {
        if let Some(disk) = &*disk.load() {
            disk.open.fetch_add(1, Relaxed);
        }
        Outlet {
            name: name.to_owned(),
            account: Arc::clone(account),
            errors: Arc::default(),
            queue,
            disk,
            synced,
            lanes: None,
            senders: Box::new([SenderSlot::default()]),
            more_for_thread: Condvar::new(),
            is_thread: AtomicBool::new(false),
            found: Mutex::default(),
            reopens: AtomicBool::new(false),
            health: Health::default(),
            ending: Ending::default(),
            failover: FailoverWatch::default(),
            blocked: Mutex::default(),
            progress: Progress::default(),
        }
    }

    /// The queue, for one short step.
    pub fn queue(&self) -> MutexGuard<'_, OutputQueue<Folder>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Position of the next block.
    pub fn position(&self) -> Position {
        self.queue().accepted_up_to()
    }

    /// What is known of the block that was appended at `of`.
    pub fn promise(&self, of: Position) -> Promise {
        self.queue().promise(of)
    }

    /// Every block before it has its outcome.
    pub fn settled_up_to(&self) -> Position {
        self.queue().settled_up_to()
    }

    /// Appends a block. A full queue drops blocks that cannot wait, and counts them. Returns the block's position, if
    /// it was kept.
    pub fn append(&self, block: Block, now: Now) -> Option<Position> {
        self.append_as(block, Admission::Bounded, now)
    }

    /// The same for a block that may have been admitted.
    pub fn append_as(&self, block: Block, admission: Admission, now: Now) -> Option<Position> {
        let partition = block.partition;
        let (place, kept) = {
            let mut queue = self.queue();
            let place = queue.accepted_up_to();
            // The shard serves sources that cannot wait, so it cannot wait either.
            let appended = queue.append_as(block, admission, now);
            self.note_append(&mut queue, now);
            (place, appended == Appended::Kept)
        };
        // Older blocks may have been dropped to make room.
        self.progressed();
        match self.lanes().map(|lanes| lanes.connection_of(partition)) {
            None => self.wake(),
            Some(number) => self.senders[number].more.notify_one(),
        }
        kept.then_some(place)
    }

    /// Appends a block that the caller keeps if there is no room now, whatever `when_full` is: nothing else is dropped
    /// to make room. Returns its position, if it was accepted.
    pub fn offer(&self, block: Block, now: Now) -> Option<Position> {
        let (place, appended) = {
            let mut queue = self.queue();
            if self.is_parked() {
                return None;
            }
            let place = queue.accepted_up_to();
            let appended = queue.offer(block, now);
            self.note_append(&mut queue, now);
            (place, appended)
        };
        self.wake();
        (appended == Appended::Kept).then_some(place)
    }

    /// The sync of a queue on disk is due, and a queue that is nearly full may fail over.
    fn note_append(&self, queue: &mut OutputQueue<Folder>, now: Now) {
        if let (Some(disk), OutputQueue::Disk(on_disk)) = (self.disk(), &*queue) {
            let window_ns = on_disk.plan().sync_window_ms * MS_NS;
            disk.wake_before(now.mono_ns + window_ns, queue);
        }
        if self.is_nearly_full(queue) {
            // It stays as it is when it is already set.
            let _since =
                self.health.degraded_since_ns.compare_exchange(0, now.mono_ns.max(1), Relaxed, Relaxed);
            // Only then can it be full enough to fail over.
            self.update_room(queue);
        }
    }

    /// To be called after settling something in the queue itself: the disk has to record it, and there may be room.
    pub fn changed(&self) {
        self.progressed();
        self.wake();
        self.wake_sync();
    }

    /// True for a queue in memory with room for everything that `bytes` and `records` may turn into, and for open
    /// blocks.
    pub fn has_room_for_all(&self, bytes: u64, records: u64) -> bool {
        self.queue().has_room_for_all(bytes, records)
    }

    /// Applies the limits and timings of another plan, for a queue that stays where it is.
    pub fn set_plan(&self, plan: &OutputPlan) {
        let mut queue = self.queue();
        match (&mut *queue, plan.queue_kind) {
            (OutputQueue::Disk(queue), QueueKind::Disk { sync_window_ms }) => {
                queue.set_plan(DiskQueuePlan::within(plan.queue, sync_window_ms));
            }
            (queue, _) => queue.set_limits(plan.queue),
        }
    }

    /// Wakes the output, to check its queue and its orders.
    pub fn wake(&self) {
        self.senders.iter().for_each(|slot| slot.more.notify_one());
        if self.is_thread.load(Relaxed) {
            self.more_for_thread.notify_one();
        }
    }

    /// From now on `notify` is notified when something in the queue may have been settled or synced.
    pub fn notify_progress(&self, notify: &Arc<Notify>) {
        self.progress.get_or_init(|| Arc::clone(notify));
    }

    /// Something of the queue may have been settled or synced.
    pub fn progressed(&self) {
        if let Some(notify) = self.progress.get() {
            notify.notify_one();
        }
    }

    /// Has its file opened again, which may have been moved away.
    pub fn reopen(&self) {
        // Under the lock of a thread that is about to wait, so that it sees it.
        let queue = self.queue();
        self.reopens.store(true, Relaxed);
        drop(queue);
        self.wake();
    }

    /// True once after each [`Self::reopen`].
    pub fn take_reopen(&self) -> bool {
        self.reopens.swap(false, Relaxed)
    }

    /// Waits on a thread until there may be something to do besides what it has `seen`, or for at most this long.
    pub fn wait(&self, seen: Seen, at_most: Duration) {
        let queue = self.queue();
        // Under the lock that every append takes too, so that its wake-up is seen.
        self.is_thread.store(true, Relaxed);
        if !self.has_news(&*queue, seen) {
            let _guard =
                self.more_for_thread.wait_timeout(queue, at_most).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn has_news(&self, queue: &impl Queue, seen: Seen) -> bool {
        let reopens = self.reopens.load(Relaxed);
        (queue.copies() > 0 && !seen.records) || (self.is_stopping() && !seen.stop) || reopens
    }

    /// Waiting bytes, in the queue and in the senders.
    pub fn bytes(&self) -> u64 {
        self.bytes_of(&mut self.queue())
    }

    fn bytes_of(&self, queue: &mut OutputQueue<Folder>) -> u64 {
        let ahead = self.lanes().map_or(0, |lanes| lanes.bytes());
        queue.bytes() + ahead + self.senders.iter().map(|slot| slot.bytes.load(Relaxed)).sum::<u64>()
    }

    /// Copies that are lost if the process ends now; none when the queue is locked. Never waits. Copies on disk are not
    /// lost.
    pub fn would_lose(&self) -> Option<u64> {
        let queue = self.queue_now()?;
        if self.disk().is_some() {
            return Some(0);
        }
        Some(self.copies_of(&queue))
    }

    /// The current sum of the account.
    pub fn sum(&self) -> OutputSum {
        self.sum_of(&self.queue())
    }

    fn sum_of(&self, queue: &OutputQueue<Folder>) -> OutputSum {
        self.account.sum(self.copies_of(queue))
    }

    /// Copies in the queue, in the senders and between them.
    fn copies_of(&self, queue: &OutputQueue<Folder>) -> u64 {
        // They are locked only by the holder of the queue.
        let ahead = self.lanes().map_or(0, |lanes| lanes.copies());
        let held: u64 = self.senders.iter().map(|slot| slot.copies.load(Relaxed)).sum();
        queue.copies() + ahead + held + self.failover.moving_copies.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use deliver::plan::WhenFull;
    use model::SECOND_NS;

    use super::*;

    fn at(s: u64) -> Now {
        Now::default().plus_ns(s * SECOND_NS)
    }

    #[test]
    fn an_offered_block_drops_no_others() {
        for when_full in [WhenFull::Block, WhenFull::DropOldest, WhenFull::DropNewest] {
            let limits = QueueLimits { records_max: 3, when_full, ..QueueLimits::default() };
            let outlet = Outlet::new("o", limits, &Arc::new(OutputAccount::default()));
            let two = || Block::lines(b"a 1 2\nb 1 2\n".to_vec(), 2, 0);
            assert!(outlet.offer(two(), at(1)).is_some());
            assert_eq!(outlet.offer(two(), at(1)), None);
            let sum = outlet.account.sum(outlet.queue().copies());
            assert_eq!((sum.copies, sum.dropped, sum.queued), (2, 0, 2), "{when_full:?}");
            assert_eq!(outlet.queue().limits(), limits);
        }
    }

    #[test]
    fn a_thread_that_cannot_write_does_not_wake_for_waiting_records() {
        let outlet = Outlet::new("file", QueueLimits::default(), &Arc::default());
        let has_news = |records, stop| outlet.has_news(&*outlet.queue(), Seen { records, stop });
        assert!(!has_news(false, false));
        let _place = outlet.append(Block::lines(b"a 1 1\n".to_vec(), 1, 0), Now::default());
        assert!(has_news(false, false) && !has_news(true, false));
        outlet.reopen();
        assert!(has_news(true, false) && outlet.take_reopen() && !has_news(true, false));
        outlet.stop(0);
        assert!(has_news(true, false) && !has_news(true, true));
    }
}
