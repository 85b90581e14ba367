//! An output's queue with what its task, the shard and, for a queue on disk, the thread that syncs it share.
//!
//! A queue on disk belongs to a name. When a reload gives the name to another endpoint the outlet has a successor, which
//! shares the queue and the account, and whose task starts when that of the first has ended.
//!
//! Invariant: no lock of an outlet is held while anybody waits for a disk's sync.

mod health;
mod parking;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use config::plan::OutputPlan;
use deliver::disk_queue::{DiskQueue, Position, Promise, SyncDone};
use deliver::lanes::Lanes;
use deliver::plan::{QueueKind, QueueLimits, WhenFull};
use deliver::queue::{Appended, Block, MemoryQueue, OutputQueue, Queue};
use deliver::stream::{Action, StreamSender};
use deliver::{EndpointState, Status};
use model::{Now, OutputAccount, OutputSum, Shed};
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::daemon::queues::disk_plan;
use crate::disk::Folder;
use crate::outputs::errors::ErrorCounts;
pub use health::{CheckState, ShownState};

/// Share of a queue, in hundredths, past which its output is `degraded` (spec statsd §14 R8).
const DEGRADED_PERCENT: u64 = 80;

/// Share of the time for stopping, in percent, in which the output of a queue on disk drains; the rest is for its last
/// sync.
const DRAIN_PERCENT: u64 = 80;

/// Nanoseconds of a millisecond.
const MS_NS: u64 = model::SECOND_NS / 1000;

/// A thread that syncs is not woken for what was settled when it wakes by itself within this time.
const SETTLED_WITHIN_NS: u64 = 20 * MS_NS;

/// Between the shard, which appends, and the output's task or thread, which takes.
#[derive(Debug)]
pub struct Outlet {
    /// As the plan names it.
    pub name: String,
    /// Its account.
    pub account: Arc<OutputAccount>,
    /// Errors that its endpoint or file gave, by the system's word.
    pub errors: ErrorCounts,
    queue: Arc<Mutex<OutputQueue<Folder>>>,
    /// Of a queue on disk only.
    disk: OnceLock<Arc<OnDisk>>,
    /// Told after each sync of a queue on disk: promises may have changed.
    pub synced: Arc<Notify>,
    /// Between the senders of an output of several connections; locked after the queue.
    lanes: Option<Mutex<Lanes>>,
    /// One for each connection.
    senders: Box<[Seat]>,
    /// Wakes an output that is a thread.
    more_for_thread: Condvar,
    /// A thread has waited: only then is there one to wake, which is a system call.
    is_thread: AtomicBool,
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
    /// Told when all tasks have ended.
    at_end: Notify,
    /// The orders that it had when it was parked; none while it is not.
    parked: Mutex<Option<Orders>>,
    /// Told when it is no more.
    unparked: Notify,
    /// Told when something of the queue may have been settled or synced; nobody until somebody waits for that.
    progress: Progress,
}

/// Who is told that a queue gets on. Shared by all outlets of the queue.
type Progress = Arc<OnceLock<Arc<Notify>>>;

/// What one sender of an output tells of itself.
#[derive(Debug, Default)]
struct Seat {
    /// Wakes its task.
    more: Notify,
    /// What it holds outside the queue.
    copies: AtomicU64,
    bytes: AtomicU64,
    state: Mutex<Option<EndpointState>>,
    /// Its task has ended.
    ended: AtomicBool,
    /// When its task ends, that was for nothing: it begins anew.
    goes_on: AtomicBool,
}

/// Whether an output is to end, and when at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Orders {
    stopping: bool,
    deadline_ns: u64,
}

impl Seat {
    fn state(&self) -> Option<EndpointState> {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the thread that syncs a queue on disk needs beside the queue.
#[derive(Debug)]
pub struct OnDisk {
    folder: Folder,
    /// Monotonic nanosecond at which the thread wakes by itself; 0 while it is awake.
    sleeps_until_ns: AtomicU64,
    /// Outlets of the queue whose tasks have not ended.
    open: AtomicU32,
    /// The daemon ends: the queue is synced a last time when all tasks have ended.
    closing: AtomicBool,
    /// Nobody syncs it any more.
    released: AtomicBool,
    work: Condvar,
}

impl OnDisk {
    /// Where the queue is.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    fn new(folder: Folder) -> OnDisk {
        OnDisk {
            folder,
            sleeps_until_ns: AtomicU64::new(0),
            open: AtomicU32::new(0),
            closing: AtomicBool::new(false),
            released: AtomicBool::new(false),
            work: Condvar::new(),
        }
    }

    /// True when the daemon ends and nothing is settled or appended any more: only the last sync is left.
    pub fn is_done(&self) -> bool {
        self.closing.load(Relaxed) && self.open.load(Relaxed) == 0
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
        Outlet::with_queue(name, OutputQueue::Disk(Box::new(queue)), Some(OnDisk::new(folder)), &account)
    }

    /// Puts a queue on disk in the place of one in memory that nothing has come into. Once.
    pub fn put_on_disk(&self, queue: DiskQueue<Folder>, folder: Folder) {
        let mut place = self.queue();
        debug_assert!(place.copies() == 0, "what was in memory would be shed");
        let disk = OnDisk::new(folder);
        disk.open.store(u32::from(!self.has_ended()), Relaxed);
        if self.disk.set(Arc::new(disk)).is_ok() {
            *place = OutputQueue::Disk(Box::new(queue));
        }
        drop(place);
        self.wake();
    }

    /// Another outlet of the same queue on disk, for another endpoint. Its task may begin when this one's has ended.
    pub fn successor(&self) -> Outlet {
        let queue = Arc::clone(&self.queue);
        let (disk, synced) = (self.disk.get().cloned(), Arc::clone(&self.synced));
        let mut outlet = Outlet::sharing(&self.name, queue, disk, synced, &self.account);
        outlet.progress = Arc::clone(&self.progress);
        outlet
    }

    fn with_queue(
        name: &str,
        queue: OutputQueue<Folder>,
        disk: Option<OnDisk>,
        account: &Arc<OutputAccount>,
    ) -> Outlet {
        Outlet::sharing(name, Arc::new(Mutex::new(queue)), disk.map(Arc::new), Arc::default(), account)
    }

    fn sharing(
        name: &str,
        queue: Arc<Mutex<OutputQueue<Folder>>>,
        disk: Option<Arc<OnDisk>>,
        synced: Arc<Notify>,
        account: &Arc<OutputAccount>,
    ) -> Outlet {
        if let Some(disk) = &disk {
            disk.open.fetch_add(1, Relaxed);
        }
        Outlet {
            name: name.to_owned(),
            account: Arc::clone(account),
            errors: ErrorCounts::default(),
            queue,
            disk: disk.map(OnceLock::from).unwrap_or_default(),
            synced,
            lanes: None,
            senders: Box::new([Seat::default()]),
            more_for_thread: Condvar::new(),
            is_thread: AtomicBool::new(false),
            checked: Mutex::new(None),
            has_checks: AtomicBool::new(false),
            degraded_since_ns: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            deadline_ns: AtomicU64::new(u64::MAX),
            at_end: Notify::new(),
            parked: Mutex::new(None),
            unparked: Notify::new(),
            progress: Progress::default(),
        }
    }

    /// The queue, for one short step.
    pub fn queue(&self) -> MutexGuard<'_, OutputQueue<Folder>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// With so many connections that share the queue.
    #[must_use]
    pub fn with_connections(mut self, connections: usize) -> Outlet {
        if connections > 1 {
            self.lanes = Some(Mutex::new(Lanes::new(connections)));
            self.senders = (0..connections).map(|_| Seat::default()).collect();
        }
        self
    }

    /// How many connections share the queue.
    pub fn connections(&self) -> usize {
        self.senders.len()
    }

    fn lanes(&self) -> Option<MutexGuard<'_, Lanes>> {
        self.lanes.as_ref().map(|lanes| lanes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Asks the sender of connection `number` what to do next.
    pub fn poll<'s>(&self, number: usize, sender: &'s mut StreamSender, now: Now) -> Action<'s> {
        let mut queue = self.queue();
        match self.lanes() {
            None => sender.poll(&mut *queue, now),
            Some(mut lanes) => sender.poll(&mut lanes.of(&mut *queue, number), now),
        }
    }

    /// The sender of connection `number` ends: what it holds goes back.
    pub fn finish_stop(&self, number: usize, sender: &mut StreamSender, now: Now) {
        let mut queue = self.queue();
        match self.lanes() {
            None => sender.finish_stop(&mut *queue, now),
            Some(mut lanes) => sender.finish_stop(&mut lanes.of(&mut *queue, number), now),
        }
    }

    /// Puts back what waits for one of several connections: the queue then has all that no sender holds.
    pub fn recall(&self) {
        let mut queue = self.queue();
        if let Some(mut lanes) = self.lanes() {
            lanes.recall(&mut *queue);
        }
    }

    /// Wakes the senders that may take something now and could not before.
    fn wake_others(&self) {
        if self.lanes.is_none() {
            return;
        }
        let ready = {
            let mut queue = self.queue();
            self.lanes().map_or(0, |mut lanes| lanes.take_ready(&mut *queue))
        };
        let seats = self.senders.iter().enumerate().filter(|(number, _)| ready & (1 << number) != 0);
        seats.for_each(|(_, seat)| seat.more.notify_one());
    }

    /// What the thread that syncs needs; none for a queue in memory.
    pub fn disk(&self) -> Option<&OnDisk> {
        self.disk.get().map(|disk| &**disk)
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
        let partition = block.partition;
        let (place, appended) = self.append_to(&mut self.queue(), block, now);
        let kept = appended == Appended::Kept;
        if let Appended::Full(block) = appended {
            // The shard serves sources that cannot wait, so it cannot wait either.
            self.queue().shed_refused(block);
        }
        // Older blocks may have been shed to make room.
        self.progressed();
        match self.lanes().map(|lanes| lanes.lane_of(partition)) {
            None => self.wake(),
            Some(number) => self.senders[number].more.notify_one(),
        }
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

    /// [`Queue::shed_older`], also of what waits for other connections than the next one. None while it is parked: then
    /// nothing of it may change.
    pub fn shed_older(&self, age_ns: u64, reason: Shed, blocks_max: usize, now: Now) -> Option<bool> {
        let mut queue = self.queue();
        if self.is_parked() {
            return None;
        }
        Some(match self.lanes() {
            None => queue.shed_older(age_ns, reason, blocks_max, now),
            Some(mut lanes) => lanes.of(&mut *queue, 0).shed_older(age_ns, reason, blocks_max, now),
        })
    }

    /// Age of the oldest block that no sender holds, in nanoseconds.
    pub fn oldest_age_ns(&self, now: Now) -> Option<u64> {
        let mut queue = self.queue();
        match self.lanes() {
            None => queue.oldest_age_ns(now),
            Some(mut lanes) => lanes.of(&mut *queue, 0).oldest_age_ns(now),
        }
    }

    /// Told by who has settled something in the queue itself: the disk is to know, and there may be room.
    pub fn changed(&self) {
        self.progressed();
        self.wake();
        self.wake_sync();
    }

    /// True when a batch of `bytes` and `records` would be taken without losing anything. An empty queue takes any, as
    /// far as the disk has room for it.
    pub fn takes(&self, bytes: u64, records: u64, now: Now) -> bool {
        self.queue().takes(bytes, records, now)
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
        self.senders.iter().for_each(|seat| seat.more.notify_one());
        if self.is_thread.load(Relaxed) {
            self.more_for_thread.notify_one();
        }
    }

    /// From now on `whom` is told when something of the queue may have been settled or synced.
    pub fn tell_progress_to(&self, whom: &Arc<Notify>) {
        self.progress.get_or_init(|| Arc::clone(whom));
    }

    /// Something of the queue may have been settled or synced.
    pub fn progressed(&self) {
        if let Some(whom) = self.progress.get() {
            whom.notify_one();
        }
    }

    /// Resolves when there may be something to do for connection `number`.
    pub async fn woken(&self, number: usize) {
        self.senders[number].more.notified().await;
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

    /// Tells what the sender of connection `number` holds, for the account.
    pub fn publish(&self, number: usize, copies: u64, bytes: u64, state: EndpointState) {
        let seat = &self.senders[number];
        seat.copies.store(copies, Relaxed);
        seat.bytes.store(bytes, Relaxed);
        *seat.state.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
        self.progressed();
        self.wake_sync();
        self.wake_others();
        if self.degraded_since_ns.load(Relaxed) != 0 && !self.is_nearly_full(&*self.queue()) {
            self.degraded_since_ns.store(0, Relaxed);
        }
    }

    /// Something may have been settled, which the disk is to know soon: wakes a thread that would sleep for long.
    fn wake_sync(&self) {
        let Some(disk) = self.disk() else { return };
        let soon_ns = Clock::mono_ns() + SETTLED_WITHIN_NS;
        if disk.sleeps_until_ns.load(Relaxed) > soon_ns {
            disk.wake_before(soon_ns, &self.queue());
        }
    }

    /// Takes the result of a sync, and tells those who wait for one.
    pub fn on_synced(&self, done: SyncDone) {
        if let Some(queue) = self.queue().on_disk() {
            let _synced = queue.on_synced(done);
        }
        self.synced.notify_waiters();
        self.progressed();
    }

    /// Bytes that wait, in the queue and in the senders.
    pub fn bytes(&self) -> u64 {
        let mut queue = self.queue();
        let ahead = self.lanes().map_or(0, |lanes| lanes.bytes());
        queue.bytes() + ahead + self.senders.iter().map(|seat| seat.bytes.load(Relaxed)).sum::<u64>()
    }

    /// The account's sum now.
    pub fn sum(&self) -> OutputSum {
        let queue = self.queue();
        let ahead = self.lanes().map_or(0, |lanes| lanes.copies());
        let held: u64 = self.senders.iter().map(|seat| seat.copies.load(Relaxed)).sum();
        self.account.sum(queue.copies() + ahead + held)
    }

    /// Orders the output to drain until `deadline_ns` and end.
    pub fn stop(&self, deadline_ns: u64) {
        self.deadline_ns.store(deadline_ns, Relaxed);
        self.stopping.store(true, Relaxed);
        self.wake();
    }

    /// The daemon ends: as [`Outlet::stop`], and what is on disk is synced a last time. Part of the time until
    /// `deadline_ns` is left for that.
    pub fn close(&self, deadline_ns: u64, now: Now) {
        let drains_ns = deadline_ns.saturating_sub(now.mono_ns) / 100 * DRAIN_PERCENT;
        if let Some(disk) = self.disk() {
            disk.closing.store(true, Relaxed);
        }
        self.stop(if self.disk().is_some() { now.mono_ns + drains_ns } else { deadline_ns });
        self.wake_to_end();
    }

    fn wake_to_end(&self) {
        if let Some(disk) = self.disk() {
            disk.wake_before(0, &self.queue());
        }
    }

    /// Orders the output to leave at once, for its successor.
    pub fn hand_over(&self) {
        self.stop(0);
    }

    /// True once the output is to drain and end.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }

    /// When draining ends for connection `number`. When the daemon ends, a queue on disk whose endpoint is down is left at
    /// once: nothing of it is lost, and the next start may be waited for.
    pub fn deadline_ns(&self, number: usize) -> u64 {
        let is_down = || self.senders[number].state().is_some_and(|state| state.status == Status::Down);
        let leaves = self.disk().is_some_and(|disk| disk.closing.load(Relaxed));
        if leaves && is_down() {
            return 0;
        }
        self.deadline_ns.load(Relaxed)
    }

    /// Told by the task of connection `number` as its last act.
    pub fn set_ended(&self, number: usize) {
        let ended_before = self.senders[number].ended.swap(true, Relaxed);
        if let (Some(disk), false, true) = (self.disk(), ended_before, self.has_ended()) {
            disk.open.fetch_sub(1, Relaxed);
        }
        self.wake_to_end();
        self.at_end.notify_waiters();
    }

    /// What stays on disk of an output that a reload has removed and whose time is over; none while the daemon ends, or
    /// when a successor goes on.
    pub fn left_on_disk(&self) -> Option<(&OnDisk, u64)> {
        let copies = self.queue().copies();
        let disk = self.disk().filter(|disk| !disk.closing.load(Relaxed))?;
        (copies > 0 && self.deadline_ns.load(Relaxed) != 0).then_some((disk, copies))
    }

    /// Resolves when all tasks have ended.
    pub async fn ended(&self) {
        // Before the look, so that an end that comes between the two is not missed.
        let end = self.at_end.notified();
        if !self.has_ended() {
            end.await;
        }
    }

    /// True when all tasks but that of connection `number` have ended.
    pub fn ends_with(&self, number: usize) -> bool {
        let others = self.senders.iter().enumerate().filter(|(other, _)| *other != number);
        others.into_iter().all(|(_, seat)| seat.ended.load(Relaxed))
    }

    /// True when all tasks have ended.
    pub fn has_ended(&self) -> bool {
        self.senders.iter().all(|seat| seat.ended.load(Relaxed))
    }
}

/// An outlet that never had a task, after a reload that failed, is not waited for.
impl Drop for Outlet {
    fn drop(&mut self) {
        (0..self.connections()).for_each(|number| self.set_ended(number));
    }
}

#[cfg(test)]
mod tests {
    use deliver::Failure;
    use model::{CopyOutcome, SECOND_NS};

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
        outlet.publish(0, 0, 0, endpoint(Status::Starting, 0));
        assert_eq!(shown(&outlet, 5), ("starting", "", 0), "not since the machine was started");
        outlet.publish(0, 0, 0, endpoint(Status::Up, 2));
        assert_eq!(shown(&outlet, 5), ("up", "", 3));
        outlet.set_checked(CheckState { up: true, failure: Some("check_timeout") }, at(6));
        assert_eq!(shown(&outlet, 7), ("up", "", 5));
        for s in [8, 9] {
            outlet.set_checked(CheckState { up: false, failure: Some("check_answer") }, at(s));
        }
        assert_eq!(shown(&outlet, 10), ("down", "check_answer", 2));
        outlet.publish(0, 0, 0, endpoint(Status::Down, 3));
        outlet.set_checked(CheckState { up: true, failure: None }, at(11));
        assert_eq!(shown(&outlet, 12), ("down", "refused", 9));
    }

    #[test]
    fn what_waits_for_other_connections_is_shed_by_age_as_well() {
        let account = Arc::new(OutputAccount::default());
        let outlet = Outlet::new("o", QueueLimits::default(), &account).with_connections(4);
        for partition in 0..4 {
            let block = Block::lines(b"a 1 2\n".to_vec(), 1, at(u64::from(partition)).mono_ns);
            assert!(outlet.append(Block { partition: Some(partition), ..block }, at(3)).is_some());
        }
        // The last connection takes its own, and what is in front of it waits for the others.
        let held = outlet.lanes().expect("four connections").of(&mut *outlet.queue(), 3).pop(at(5));
        assert_eq!(outlet.oldest_age_ns(at(5)), Some(5 * SECOND_NS));
        assert_eq!(outlet.shed_older(4 * SECOND_NS, Shed::Dropped, 9, at(5)), Some(false));
        assert_eq!((account.shed(Shed::Dropped), outlet.oldest_age_ns(at(5))), (2, Some(3 * SECOND_NS)));
        assert_eq!(outlet.shed_older(0, Shed::Dropped, 1, at(5)), Some(true), "there may be more");
        assert_eq!((account.shed(Shed::Dropped), account.copies_waiting()), (3, 1));
        held.expect("it took its own").settle(CopyOutcome::Delivered);
        assert!(account.sum(0).holds());
    }

    #[test]
    fn what_is_offered_makes_no_room_for_itself() {
        for when_full in [WhenFull::Block, WhenFull::ShedOldest, WhenFull::ShedNewest] {
            let limits = QueueLimits { records_max: 3, when_full, ..QueueLimits::default() };
            let outlet = Outlet::new("o", limits, &Arc::new(OutputAccount::default()));
            let two = || Block::lines(b"a 1 2\nb 1 2\n".to_vec(), 2, 0);
            assert!(outlet.offer(two(), at(1)).is_some());
            assert_eq!(outlet.offer(two(), at(1)), None);
            let sum = outlet.account.sum(outlet.queue().copies());
            assert_eq!((sum.copies, sum.shed, sum.waiting), (2, 0, 2), "{when_full:?}");
            assert_eq!(outlet.queue().limits(), limits);
        }
    }

    #[test]
    fn an_output_whose_queue_is_nearly_full_is_degraded_until_it_is_not() {
        let one = || Block::lines(b"a 1 2\n".to_vec(), 1, 0);
        for (bytes_max, records_max) in [(1_000_000, 10), (10 * one().memory_bytes(), 0)] {
            let account = Arc::new(OutputAccount::default());
            let limits = QueueLimits { bytes_max, records_max, ..QueueLimits::default() };
            let outlet = Outlet::new("o", limits, &account);
            outlet.publish(0, 0, 0, endpoint(Status::Up, 1));
            for _ in 0..8 {
                let _place = outlet.append(one(), at(2));
            }
            assert_eq!(shown(&outlet, 5).0, "up", "eight of ten are not over 80 %");
            assert!(outlet.append(one(), at(3)).is_some());
            assert!(outlet.append(one(), at(4)).is_some());
            assert_eq!(shown(&outlet, 5), ("degraded", "", 2));
            outlet.publish(0, 0, 0, endpoint(Status::Down, 5));
            assert_eq!(shown(&outlet, 6), ("down", "refused", 1));
            for _ in 0..2 {
                let entry = outlet.queue().pop(at(6)).expect("it was appended");
                entry.settle(CopyOutcome::Delivered);
            }
            outlet.publish(0, 0, 0, endpoint(Status::Up, 6));
            assert_eq!(shown(&outlet, 7), ("up", "", 1));
        }
    }
}
