//! The parts of an outlet's state, by their job. The code of each job is in the file of its name.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64};

use deliver::EndpointState;
use deliver::disk_queue::{DiskQueueCounts, Missing};
use deliver::failover::Failover;
use model::{DiskError, Now, SourceId};
use tokio::sync::Notify;

/// Nanoseconds of a millisecond.
pub(super) const MS_NS: u64 = model::SECOND_NS / 1000;

/// The published state of one sender of an output.
#[derive(Debug, Default)]
pub(super) struct SenderSlot {
    /// Wakes its task.
    pub(super) more: Notify,
    /// Copies that it holds outside the queue.
    pub(super) copies: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) state: Mutex<Option<EndpointState>>,
    /// Its task has ended.
    pub(super) ended: AtomicBool,
    /// When its task ends, the stop was cancelled: it starts again.
    pub(super) goes_on: AtomicBool,
}

/// The orders of an output to end.
#[derive(Debug)]
pub(super) struct Ending {
    /// No new blocks come: drain, then end.
    pub(super) stopping: AtomicBool,
    /// Monotonic nanosecond at which draining ends.
    pub(super) deadline_ns: AtomicU64,
    /// Monotonic nanosecond until which an output that leaves for its successor waits for data in flight; 0 if it does
    /// not leave.
    pub(super) leaves_by_ns: AtomicU64,
    /// Notified when one of its tasks has ended.
    pub(super) at_end: Notify,
    /// Its orders when it was parked; none while it is not parked.
    pub(super) parked: Mutex<Option<Orders>>,
    /// Notified when it is no longer parked.
    pub(super) unparked: Notify,
}

impl Default for Ending {
    fn default() -> Ending {
        Ending {
            stopping: AtomicBool::new(false),
            deadline_ns: AtomicU64::new(u64::MAX),
            leaves_by_ns: AtomicU64::new(0),
            at_end: Notify::new(),
            parked: Mutex::new(None),
            unparked: Notify::new(),
        }
    }
}

/// Whether an output has to end, and when at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Orders {
    pub(super) stopping: bool,
    pub(super) deadline_ns: u64,
}

/// Notifies the shard about an endpoint: whether it is live, and whether it has failed. It waits for nothing.
pub type NotifyLive = Box<dyn Fn(bool, bool) + Send + Sync>;

/// When the endpoint fails over, and the shard that is notified.
pub(super) struct Watcher {
    pub(super) failover: Failover,
    pub(super) notify: NotifyLive,
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watcher").field("failover", &self.failover).finish_non_exhaustive()
    }
}

/// Whether the endpoint can fail over, and the state that the shard knows.
#[derive(Debug, Default)]
pub(super) struct FailoverWatch {
    /// None if no other output can replace it.
    pub(super) watched: Mutex<Option<Watcher>>,
    pub(super) is_watched: AtomicBool,
    /// Other outputs get new records, because there is no room.
    pub(super) has_no_room: AtomicBool,
    /// Copies that are moving to other outputs.
    pub(super) moving_copies: AtomicU64,
}

/// The result of an output's checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckState {
    /// Whether enough results show that the endpoint is up.
    pub up: bool,
    /// How the last check failed, in a word; none when it succeeded.
    pub failure: Option<&'static str>,
}

/// The same, with times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checked {
    pub(super) found: CheckState,
    /// Monotonic nanoseconds since which it is up or down.
    pub(super) since_ns: u64,
    /// When a check last failed.
    pub(super) failed: Option<Now>,
}

/// The state of an output, as the API shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownState {
    /// The state.
    pub word: &'static str,
    /// The last failure in a word; empty for none.
    pub last_error: &'static str,
    /// Unix milliseconds of that failure; 0 for none.
    pub last_error_time_ms: u64,
    /// Time in that state, in nanoseconds; 0 before the first attempt.
    pub for_ns: u64,
}

/// The state of an endpoint besides that of the senders.
#[derive(Debug, Default)]
pub(super) struct Health {
    /// The result of its check, and since when; none without a check.
    pub(super) checked: Mutex<Option<Checked>>,
    /// A task checks it.
    pub(super) has_checks: AtomicBool,
    /// The word of a failure, and the system's message for it.
    pub(super) error_words: Mutex<Option<(&'static str, String)>>,
    /// Monotonic nanosecond at which the queue became nearly full; 0 while it is not.
    pub(super) degraded_since_ns: AtomicU64,
}

/// Figures of a queue on disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskLook {
    /// Files with records.
    pub segments: u64,
    /// Blocks that were accepted and are not synced yet.
    pub blocks_unsynced: u64,
    /// Errors so far.
    pub counts: DiskQueueCounts,
    /// Files that are not where the next process would look for them.
    pub missing: Option<Missing>,
    /// Why the disk accepts nothing now.
    pub write_error: Option<DiskError>,
    /// Why nothing can be read although records wait.
    pub read_error: Option<DiskError>,
}

/// The results of the last looks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Found {
    /// The last one found the queue locked: the next one does not wait again.
    pub(super) busy: bool,
    /// Monotonic nanosecond at which the oldest block was made.
    pub(super) oldest_ns: Option<u64>,
    pub(super) disk: DiskLook,
}

/// A source that waits, and since when, monotonic nanoseconds.
pub type BlockedSource = (SourceId, u64);
