//! An output's queue with what its task and the shard share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deliver::plan::QueueLimits;
use deliver::queue::{Appended, Block, MemoryQueue, Queue};
use deliver::{EndpointState, Status};
use model::{CopyOutcome, Now, OutputAccount, OutputSum, Shed};
use tokio::sync::Notify;

use crate::outputs::errors::ErrorCounts;

/// Share of a queue, in hundredths, past which its output is `degraded` (spec statsd §14 R8).
const DEGRADED_PERCENT: u64 = 80;

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
    queue: Mutex<MemoryQueue>,
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
}

/// What follows the end of an output's task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parking {
    /// Nothing: it has been stopped for good.
    None,
    /// What waits is kept, until it is known whether another process goes on with it.
    Parked,
    /// It goes on here.
    GoesOn,
}

impl Outlet {
    /// An empty queue within `limits`.
    pub fn new(name: &str, limits: QueueLimits, account: &Arc<OutputAccount>) -> Outlet {
        Outlet {
            name: name.to_owned(),
            account: Arc::clone(account),
            errors: ErrorCounts::default(),
            queue: Mutex::new(MemoryQueue::new(limits, Arc::clone(account))),
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
        }
    }

    /// The queue, for one short step.
    pub fn queue(&self) -> MutexGuard<'_, MemoryQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a block. What cannot wait at a full queue is shed there and counted.
    pub fn append(&self, block: Block, now: Now) {
        let appended = {
            let mut queue = self.queue();
            let appended = queue.append(block, now);
            if self.is_nearly_full(&queue) {
                // It stays as it is when it is set already.
                let _since = self.degraded_since_ns.compare_exchange(0, now.mono_ns.max(1), Relaxed, Relaxed);
            }
            appended
        };
        if let Appended::Full(block) = appended {
            // The shard serves sources that cannot wait, so it cannot wait either.
            let shed = CopyOutcome::Shed(Shed::QueueFull);
            self.account.pass(shed, u64::from(block.copies), block.copy_bytes());
        }
        self.wake();
    }

    /// True when a batch of `bytes` and `records` would be taken without losing anything. An empty queue takes any.
    pub fn takes(&self, bytes: u64, records: u64) -> bool {
        // By the account: what the sender took out of the queue a moment ago it has not published yet.
        self.account.copies_waiting() == 0 || self.queue().has_room(bytes, records)
    }

    fn is_nearly_full(&self, queue: &MemoryQueue) -> bool {
        let limits = queue.limits();
        let past = |held: u64, most: u64| {
            most > 0 && u128::from(held) * 100 > u128::from(most) * u128::from(DEGRADED_PERCENT)
        };
        past(self.account.bytes_waiting.load(Relaxed), limits.bytes_max)
            || past(self.account.copies_waiting(), limits.records_max)
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
        if self.degraded_since_ns.load(Relaxed) != 0 && !self.is_nearly_full(&self.queue()) {
            self.degraded_since_ns.store(0, Relaxed);
        }
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
        self.queue().keep(true);
        *self.parking() = Parking::Parked;
        self.stop(deadline_ns);
    }

    /// The output goes on as if it had never been parked.
    pub fn go_on(&self) {
        self.decide(Parking::GoesOn);
    }

    /// Another process has what waits here: the output ends.
    pub fn let_go(&self) {
        self.decide(Parking::None);
    }

    fn decide(&self, decision: Parking) {
        let mut parking = self.parking();
        if *parking == Parking::Parked {
            *parking = decision;
            self.decided.notify_one();
        }
    }

    fn parking(&self) -> MutexGuard<'_, Parking> {
        self.parking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asked by the output's task after its end: true when it is to begin anew. Waits while it is parked.
    pub async fn goes_on(&self) -> bool {
        loop {
            // Cancel-safe: a decision that was told before anybody waited leaves its permit.
            let decided = self.decided.notified();
            let parking = *self.parking();
            match parking {
                Parking::None => return false,
                Parking::Parked => decided.await,
                Parking::GoesOn => break,
            }
        }
        self.queue().keep(false);
        self.deadline_ns.store(u64::MAX, Relaxed);
        self.stopping.store(false, Relaxed);
        self.ended.store(false, Relaxed);
        *self.parking() = Parking::None;
        true
    }

    /// True once the output is to drain and end.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }

    /// When draining ends.
    pub fn deadline_ns(&self) -> u64 {
        self.deadline_ns.load(Relaxed)
    }

    /// Told by the task as its last act.
    pub fn set_ended(&self) {
        self.ended.store(true, Relaxed);
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
                outlet.append(one(), at(2));
            }
            assert_eq!(shown(&outlet, 5).0, "up", "eight of ten are not over 80 %");
            outlet.append(one(), at(3));
            outlet.append(one(), at(4));
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
