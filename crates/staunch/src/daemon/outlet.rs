//! An output's queue with what its task and the shard share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deliver::EndpointState;
use deliver::plan::QueueLimits;
use deliver::queue::{Appended, Block, MemoryQueue};
use model::{CopyOutcome, Now, OutputAccount, OutputSum, Shed};
use tokio::sync::Notify;

use crate::outputs::errors::ErrorCounts;

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
    /// No new blocks come: drain, then end.
    stopping: AtomicBool,
    /// Monotonic nanosecond at which draining ends.
    deadline_ns: AtomicU64,
    /// The task has ended.
    ended: AtomicBool,
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
            stopping: AtomicBool::new(false),
            deadline_ns: AtomicU64::new(u64::MAX),
            ended: AtomicBool::new(false),
        }
    }

    /// The queue, for one short step.
    pub fn queue(&self) -> MutexGuard<'_, MemoryQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a block. What cannot wait at a full queue is shed there and counted.
    pub fn append(&self, block: Block, now: Now) {
        let appended = self.queue().append(block, now);
        if let Appended::Full(block) = appended {
            // The shard serves sources that cannot wait, so it cannot wait either.
            let shed = CopyOutcome::Shed(Shed::QueueFull);
            self.account.pass(shed, u64::from(block.copies), block.copy_bytes());
        }
        self.wake();
    }

    /// True when a batch of `bytes` and `records` would be taken without losing anything. An empty queue takes any.
    pub fn takes(&self, bytes: u64, records: u64) -> bool {
        let queue = self.queue();
        let nothing_waits = queue.is_empty() && self.sender_copies.load(Relaxed) == 0;
        nothing_waits || queue.has_room(bytes, records)
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
