//! An output's queue with what its task, the shard and, for a queue on disk, the thread that syncs it share.
//!
//! Invariant: no lock of an outlet is held while anybody waits for a disk's sync.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use config::plan::OutputPlan;
use deliver::disk_queue::{DiskQueue, Position, Promise, SyncDone};
use deliver::plan::{QueueKind, QueueLimits, WhenFull};
use deliver::queue::{Appended, Block, Left, MemoryQueue, OutputQueue, Queue};
use deliver::{EndpointState, Status};
use model::{CopyOutcome, Now, OutputAccount, OutputSum, Shed};
use tokio::sync::Notify;

use crate::daemon::queues::disk_plan;
use crate::disk::Folder;
use crate::outputs::errors::ErrorCounts;

/// Share of a queue, in hundredths, past which its output is `degraded` (spec statsd §14 R8).
const DEGRADED_PERCENT: u64 = 80;

/// Share of the time for stopping, in percent, in which the output of a queue on disk drains; the rest is for its last
/// sync.
const DRAIN_PERCENT: u64 = 80;

/// Nanoseconds of a millisecond.
const MS_NS: u64 = model::SECOND_NS / 1000;

/// What an output's check has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckState {
    /// Whether enough results say that the endpoint is well.
    pub up: bool,
    /// How the last check failed, in a word; none when it did not.
    pub failure: Option<&'static str>,
}

/// Where an output stands, as the API shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownState {
    /// The state.
    pub word: &'static str,
    /// The last failure in a word; empty for none.
    pub last_error: &'static str,
    /// How long it has been so, in nanoseconds; 0 before the first attempt.
    pub for_ns: u64,
}

/// Between the shard, which appends, and the output's task or thread, which takes.
#[derive(Debug)]
pub struct Outlet {
    /// As the plan names it.
    pub name: String,
    /// Its account.
    pub account: Arc<OutputAccount>,
    /// Errors that its endpoint or file gave, by the system's word.
    pub errors: ErrorCounts,
    queue: Mutex<OutputQueue<Folder>>,
    /// Of a queue on disk only.
    disk: OnceLock<OnDisk>,
    /// Told after each sync of a queue on disk: promises may have changed.
    pub synced: Notify,
    /// Wakes an output that is a task.
    more: Notify,
    /// Wakes an output that is a thread.
    more_for_thread: Condvar,
    /// A thread has waited: only then is there one to wake, which is a system call.
    is_thread: AtomicBool,
    /// What the sender holds outside the queue.
    sender_copies: AtomicU64,
    sender_bytes: AtomicU64,
    state: Mutex<Option<EndpointState>>,
    /// What its check has found, and since when; none without a check.
    checked: Mutex<Option<(CheckState, u64)>>,
    /// A task checks it.
    has_checks: AtomicBool,
    /// Monotonic nanosecond at which the queue became nearly full; 0 while it is not.
    degraded_since_ns: AtomicU64,
    /// No new blocks come: drain, then end.
    stopping: AtomicBool,
    /// Monotonic nanosecond at which draining ends.
    deadline_ns: AtomicU64,
    /// The task has ended.
    ended: AtomicBool,
    /// What follows a stop that may not be the last.
    parking: Mutex<Parking>,
    /// Told when that is decided.
    decided: Notify,
    /// The daemon ends: a queue on disk is synced a last time when the task has ended.
    closing: AtomicBool,
    /// Nobody syncs the queue on disk any more.
    released: AtomicBool,
}

/// Whether an output is to end, and when at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Orders {
    stopping: bool,
    deadline_ns: u64,
}

/// What follows the end of an output's task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parking {
    /// Nothing: it has been stopped for good.
    None,
    /// What waits is kept, until it is known whether another process goes on with it. Beside it the orders that it had.
    Parked(Orders),
    /// It goes on here, by these orders.
    GoesOn(Orders),
}

/// What the thread that syncs a queue on disk needs beside the queue.
#[derive(Debug)]
pub struct OnDisk {
    folder: Folder,
    /// Monotonic nanosecond at which the thread wakes by itself; 0 while it is awake.
    sleeps_until_ns: AtomicU64,
    work: Condvar,
}

impl OnDisk {
    /// Where the queue is.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Told by the thread, with the queue locked, before it looks for something to do.
    pub fn falls_asleep(&self) {
        self.sleeps_until_ns.store(u64::MAX, Relaxed);
    }

    /// Told by the thread when it has found something.
    pub fn is_awake(&self) {
        self.sleeps_until_ns.store(0, Relaxed);
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
    fn wake_before(&self, at_ns: u64, _locked: &OutputQueue<Folder>) {
        if self.sleeps_until_ns.load(Relaxed) > at_ns {
            self.is_awake();
            self.work.notify_one();
        }
    }
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
        let disk = OnDisk { folder, sleeps_until_ns: AtomicU64::new(0), work: Condvar::new() };
        Outlet::with_queue(name, OutputQueue::Disk(Box::new(queue)), Some(disk), &account)
    }

    /// Puts a queue on disk in the place of one in memory that nothing has come into. Once.
    pub fn put_on_disk(&self, queue: DiskQueue<Folder>, folder: Folder) {
        let disk = OnDisk { folder, sleeps_until_ns: AtomicU64::new(0), work: Condvar::new() };
        let mut place = self.queue();
        debug_assert!(place.copies() == 0, "what was in memory would be shed");
        if self.disk.set(disk).is_ok() {
            *place = OutputQueue::Disk(Box::new(queue));
        }
        drop(place);
        self.wake();
    }

    fn with_queue(
        name: &str,
        queue: OutputQueue<Folder>,
        disk: Option<OnDisk>,
        account: &Arc<OutputAccount>,
    ) -> Outlet {
        Outlet {
            name: name.to_owned(),
            account: Arc::clone(account),
            errors: ErrorCounts::default(),
            queue: Mutex::new(queue),
            disk: disk.map(OnceLock::from).unwrap_or_default(),
            synced: Notify::new(),
            more: Notify::new(),
            more_for_thread: Condvar::new(),
            is_thread: AtomicBool::new(false),
            sender_copies: AtomicU64::new(0),
            sender_bytes: AtomicU64::new(0),
            state: Mutex::new(None),
            checked: Mutex::new(None),
            has_checks: AtomicBool::new(false),
            degraded_since_ns: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            deadline_ns: AtomicU64::new(u64::MAX),
            ended: AtomicBool::new(false),
            parking: Mutex::new(Parking::None),
            decided: Notify::new(),
            closing: AtomicBool::new(false),
            released: AtomicBool::new(false),
        }
    }

    /// The queue, for one short step.
    pub fn queue(&self) -> MutexGuard<'_, OutputQueue<Folder>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the thread that syncs needs; none for a queue in memory.
    pub fn disk(&self) -> Option<&OnDisk> {
        self.disk.get()
    }

    /// Place of the next block.
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

    /// Appends a block. What cannot wait at a full queue is shed there and counted. Gives the block's place, if it was
    /// kept.
    pub fn append(&self, block: Block, now: Now) -> Option<Position> {
        let (place, appended) = self.append_to(&mut self.queue(), block, now);
        let kept = appended == Appended::Kept;
        if let Appended::Full(block) = appended {
            // The shard serves sources that cannot wait, so it cannot wait either.
            let shed = CopyOutcome::Shed(Shed::QueueFull);
            self.account.pass(shed, u64::from(block.copies), block.copy_bytes());
        }
        self.wake();
        kept.then_some(place)
    }

    /// Appends a block that somebody keeps if there is no room for it now, whatever `when_full` says: nothing else is
    /// shed to make some. Gives its place, if it was taken.
    pub fn offer(&self, block: Block, now: Now) -> Option<Position> {
        let (place, appended) = {
            let mut queue = self.queue();
            if self.is_parked() {
                return None;
            }
            let limits = queue.limits();
            queue.set_limits(QueueLimits { when_full: WhenFull::Block, ..limits });
            let appended = self.append_to(&mut queue, block, now);
            queue.set_limits(limits);
            appended
        };
        self.wake();
        (appended == Appended::Kept).then_some(place)
    }

    fn append_to(&self, queue: &mut OutputQueue<Folder>, block: Block, now: Now) -> (Position, Appended) {
        let place = queue.accepted_up_to();
        let appended = queue.append(block, now);
        if let (Some(disk), OutputQueue::Disk(on_disk)) = (self.disk(), &*queue) {
            let window_ns = on_disk.plan().sync_window_ms * MS_NS;
            disk.wake_before(now.mono_ns + window_ns, queue);
        }
        if self.is_nearly_full(queue) {
            // It stays as it is when it is set already.
            let _since = self.degraded_since_ns.compare_exchange(0, now.mono_ns.max(1), Relaxed, Relaxed);
        }
        (place, appended)
    }

    /// Told by who has settled something in the queue itself: the disk is to know, and there may be room.
    pub fn changed(&self) {
        self.wake();
        self.wake_sync();
    }

    /// True when a batch of `bytes` and `records` would be taken without losing anything. An empty queue takes any.
    pub fn takes(&self, bytes: u64, records: u64) -> bool {
        // By the account: what the sender took out of the queue a moment ago it has not published yet.
        self.account.copies_waiting() == 0 || self.queue().has_room(bytes, records)
    }

    fn is_nearly_full(&self, queue: &impl Queue) -> bool {
        let limits = queue.limits();
        let past = |held: u64, most: u64| {
            most > 0 && u128::from(held) * 100 > u128::from(most) * u128::from(DEGRADED_PERCENT)
        };
        past(self.account.bytes_waiting.load(Relaxed), limits.bytes_max)
            || past(self.account.copies_waiting(), limits.records_max)
    }

    /// Bounds and times of another plan, for a queue that stays where it is.
    pub fn set_plan(&self, plan: &OutputPlan) {
        let mut queue = self.queue();
        match (&mut *queue, plan.queue_kind) {
            (OutputQueue::Disk(queue), QueueKind::Disk { sync_window_ms }) => {
                queue.set_plan(disk_plan(plan.queue, sync_window_ms));
            }
            (queue, _) => queue.set_limits(plan.queue),
        }
    }

    /// Wakes the output, to look at its queue or at its orders.
    pub fn wake(&self) {
        self.more.notify_one();
        if self.is_thread.load(Relaxed) {
            self.more_for_thread.notify_one();
        }
    }

    /// Resolves when there may be something to do.
    pub async fn woken(&self) {
        self.more.notified().await;
    }

    /// Waits on a thread until there may be something to do, or so long.
    pub fn wait(&self, at_most: Duration) {
        let queue = self.queue();
        // Under the lock that every appended block has taken too, so that its wake-up sees it.
        self.is_thread.store(true, Relaxed);
        if queue.copies() == 0 && !self.is_stopping() {
            let _guard =
                self.more_for_thread.wait_timeout(queue, at_most).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Tells what the sender holds, for the account.
    pub fn publish(&self, copies: u64, bytes: u64, state: EndpointState) {
        self.sender_copies.store(copies, Relaxed);
        self.sender_bytes.store(bytes, Relaxed);
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
        self.wake_sync();
        if self.degraded_since_ns.load(Relaxed) != 0 && !self.is_nearly_full(&*self.queue()) {
            self.degraded_since_ns.store(0, Relaxed);
        }
    }

    /// Something may have been settled, which the disk is to know: wakes a thread that sleeps for good.
    fn wake_sync(&self) {
        if let Some(disk) = self.disk()
            && disk.sleeps_until_ns.load(Relaxed) == u64::MAX
        {
            disk.wake_before(u64::MAX - 1, &self.queue());
        }
    }

    /// Takes the result of a sync, and tells those who wait for one.
    pub fn on_synced(&self, done: SyncDone) {
        if let Some(queue) = self.queue().on_disk() {
            let _synced = queue.on_synced(done);
        }
        self.synced.notify_waiters();
    }

    /// True for the one caller that may begin to check the endpoint; false while somebody does.
    pub fn begin_checks(&self) -> bool {
        !self.has_checks.swap(true, Relaxed)
    }

    /// Told by whoever checks as the last act: nothing is known any more.
    pub fn end_checks(&self) {
        *self.checked.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.has_checks.store(false, Relaxed);
    }

    /// Tells what the endpoint's check has found.
    pub fn set_checked(&self, found: CheckState, now: Now) {
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        let since_ns = checked.filter(|(before, _)| before.up == found.up).map(|(_, since_ns)| since_ns);
        *checked = Some((found, since_ns.unwrap_or(now.mono_ns)));
    }

    /// Where the output stands: what sending has shown, unless a check says that the endpoint is down; and
    /// `degraded` while it takes what it is sent but its queue is nearly full.
    pub fn shown(&self, now: Now) -> ShownState {
        let shown = |word, last_error, since_ns: u64| {
            // 0: no change of state has been seen yet.
            let for_ns = if since_ns == 0 { 0 } else { now.mono_ns.saturating_sub(since_ns) };
            ShownState { word, last_error, for_ns }
        };
        let checked = *self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((CheckState { up: false, failure }, since_ns)) = checked {
            return shown("down", failure.unwrap_or("check_failed"), since_ns);
        }
        let Some(state) = self.state() else { return ShownState { word: "new", last_error: "", for_ns: 0 } };
        let last_error = state.last_failure.map_or("", |(failure, _)| failure.word());
        let degraded_since_ns = self.degraded_since_ns.load(Relaxed);
        if degraded_since_ns != 0 && matches!(state.status, Status::Up | Status::Idle) {
            return shown("degraded", last_error, degraded_since_ns);
        }
        shown(state.status.word(), last_error, state.since_ns)
    }

    /// State of the endpoint; none before the first attempt.
    pub fn state(&self) -> Option<EndpointState> {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that wait, in the queue and in the sender.
    pub fn bytes(&self) -> u64 {
        self.queue().bytes() + self.sender_bytes.load(Relaxed)
    }

    /// The account's sum now.
    pub fn sum(&self) -> OutputSum {
        let queue = self.queue();
        self.account.sum(queue.copies() + self.sender_copies.load(Relaxed))
    }

    /// Orders the output to drain until `deadline_ns` and end.
    pub fn stop(&self, deadline_ns: u64) {
        self.deadline_ns.store(deadline_ns, Relaxed);
        self.stopping.store(true, Relaxed);
        self.wake();
    }

    /// Orders the output to drain until `deadline_ns` and then to wait: what it has not delivered stays in the queue, and
    /// [`Self::go_on`] or [`Self::let_go`] says what becomes of it.
    pub fn park(&self, deadline_ns: u64) {
        let orders = Orders { stopping: self.is_stopping(), deadline_ns: self.deadline_ns.load(Relaxed) };
        *self.parking() = Parking::Parked(orders);
        // Whoever has the queue locked and has not seen that it is parked ends before this.
        if let Some(queue) = self.queue().in_memory() {
            queue.keep(true);
        }
        // What is on disk is synced, and then nobody touches it.
        self.closing.store(true, Relaxed);
        self.stop(deadline_ns);
        self.wake_to_end();
    }

    /// True when a parked output does nothing any more, neither to its endpoint nor on disk.
    pub fn is_at_rest(&self) -> bool {
        self.has_ended() && (self.disk().is_none() || self.released.load(Relaxed))
    }

    /// Told by the thread that syncs as its last act.
    pub fn set_released(&self) {
        self.released.store(true, Relaxed);
    }

    /// What waits in memory, oldest first. It goes on waiting.
    pub fn left(&self) -> Vec<Left> {
        self.queue().in_memory().map(|queue| queue.left().collect()).unwrap_or_default()
    }

    /// Takes what waited in another process's memory.
    pub fn go_on_with(&self, left: Left) {
        // Queues of one kind are one output's only with queues of that kind.
        if let Some(queue) = self.queue().in_memory() {
            queue.go_on_with(left);
        }
    }

    /// The output goes on as if it had never been parked. Whoever calls this starts the thread that syncs.
    pub fn go_on(&self) {
        self.closing.store(false, Relaxed);
        self.released.store(false, Relaxed);
        self.decide(Parking::GoesOn);
    }

    /// Another process has what waits here: the output ends.
    pub fn let_go(&self) {
        self.decide(|_| Parking::None);
    }

    /// True while it waits to be told what becomes of it.
    pub fn is_parked(&self) -> bool {
        matches!(*self.parking(), Parking::Parked(_))
    }

    fn decide(&self, decision: impl FnOnce(Orders) -> Parking) {
        let mut parking = self.parking();
        if let Parking::Parked(orders) = *parking {
            *parking = decision(orders);
            self.decided.notify_one();
        }
    }

    fn parking(&self) -> MutexGuard<'_, Parking> {
        self.parking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asked by the output's task after its end: true when it is to begin anew. Waits while it is parked.
    pub async fn goes_on(&self) -> bool {
        let orders = loop {
            // Cancel-safe: a decision that was told before anybody waited leaves its permit.
            let decided = self.decided.notified();
            let parking = *self.parking();
            match parking {
                Parking::None => return false,
                Parking::Parked(_) => decided.await,
                Parking::GoesOn(orders) => break orders,
            }
        };
        if let Some(queue) = self.queue().in_memory() {
            queue.keep(false);
        }
        self.deadline_ns.store(orders.deadline_ns, Relaxed);
        self.stopping.store(orders.stopping, Relaxed);
        self.ended.store(false, Relaxed);
        *self.parking() = Parking::None;
        true
    }

    /// The daemon ends: as [`Outlet::stop`], and what is on disk is synced a last time. Part of the time until
    /// `deadline_ns` is left for that.
    pub fn close(&self, deadline_ns: u64, now: Now) {
        let drains_ns = deadline_ns.saturating_sub(now.mono_ns) / 100 * DRAIN_PERCENT;
        self.closing.store(true, Relaxed);
        self.stop(if self.disk().is_some() { now.mono_ns + drains_ns } else { deadline_ns });
        self.wake_to_end();
    }

    fn wake_to_end(&self) {
        if let Some(disk) = self.disk() {
            disk.wake_before(0, &self.queue());
        }
    }

    /// True when the daemon ends and the task has ended: only the last sync is left.
    pub fn is_done(&self) -> bool {
        self.closing.load(Relaxed) && self.has_ended()
    }

    /// True once the output is to drain and end.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }

    /// When draining ends. When the daemon ends, a queue on disk whose endpoint is down is left at once: nothing of it is
    /// lost, and the next start may be waited for.
    pub fn deadline_ns(&self) -> u64 {
        let is_down = || self.state().is_some_and(|state| state.status == Status::Down);
        if self.disk().is_some() && self.closing.load(Relaxed) && is_down() {
            return 0;
        }
        self.deadline_ns.load(Relaxed)
    }

    /// Told by the task as its last act.
    pub fn set_ended(&self) {
        self.ended.store(true, Relaxed);
        self.wake_to_end();
    }

    /// True when the task has ended.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use deliver::Failure;
    use model::SECOND_NS;

    use super::*;

    fn at(s: u64) -> Now {
        Now::default().plus_ns(s * SECOND_NS)
    }

    fn endpoint(status: Status, since_s: u64) -> EndpointState {
        let last_failure = (status == Status::Down).then(|| (Failure::Refused, at(since_s)));
        EndpointState { status, since_ns: at(since_s).mono_ns, attempts: 0, last_failure }
    }

    fn shown(outlet: &Outlet, s: u64) -> (&'static str, &'static str, u64) {
        let ShownState { word, last_error, for_ns } = outlet.shown(at(s));
        (word, last_error, for_ns / SECOND_NS)
    }

    #[test]
    fn a_check_that_says_down_is_believed_before_what_sending_has_shown() {
        let outlet = Outlet::new("o", QueueLimits::default(), &Arc::new(OutputAccount::default()));
        assert_eq!(shown(&outlet, 5), ("new", "", 0));
        outlet.publish(0, 0, endpoint(Status::Starting, 0));
        assert_eq!(shown(&outlet, 5), ("starting", "", 0), "not since the machine was started");
        outlet.publish(0, 0, endpoint(Status::Up, 2));
        assert_eq!(shown(&outlet, 5), ("up", "", 3));
        outlet.set_checked(CheckState { up: true, failure: Some("check_timeout") }, at(6));
        assert_eq!(shown(&outlet, 7), ("up", "", 5));
        for s in [8, 9] {
            outlet.set_checked(CheckState { up: false, failure: Some("check_answer") }, at(s));
        }
        assert_eq!(shown(&outlet, 10), ("down", "check_answer", 2));
        outlet.publish(0, 0, endpoint(Status::Down, 3));
        outlet.set_checked(CheckState { up: true, failure: None }, at(11));
        assert_eq!(shown(&outlet, 12), ("down", "refused", 9));
    }

    #[test]
    fn an_output_whose_queue_is_nearly_full_is_degraded_until_it_is_not() {
        let one = || Block::lines(b"a 1 2\n".to_vec(), 1, 0);
        for (bytes_max, records_max) in [(1_000_000, 10), (10 * one().memory_bytes(), 0)] {
            let account = Arc::new(OutputAccount::default());
            let limits = QueueLimits { bytes_max, records_max, ..QueueLimits::default() };
            let outlet = Outlet::new("o", limits, &account);
            outlet.publish(0, 0, endpoint(Status::Up, 1));
            for _ in 0..8 {
                let _place = outlet.append(one(), at(2));
            }
            assert_eq!(shown(&outlet, 5).0, "up", "eight of ten are not over 80 %");
            assert!(outlet.append(one(), at(3)).is_some());
            assert!(outlet.append(one(), at(4)).is_some());
            assert_eq!(shown(&outlet, 5), ("degraded", "", 2));
            outlet.publish(0, 0, endpoint(Status::Down, 5));
            assert_eq!(shown(&outlet, 6), ("down", "refused", 1));
            for _ in 0..2 {
                let entry = outlet.queue().pop(at(6)).expect("it was appended");
                entry.settle(CopyOutcome::Delivered);
            }
            outlet.publish(0, 0, endpoint(Status::Up, 6));
            assert_eq!(shown(&outlet, 7), ("up", "", 1));
        }
    }
}
