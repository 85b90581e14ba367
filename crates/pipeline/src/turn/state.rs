//! The parts of a turn's state: what it took, queued blocks that move, and when there is something to flush.
//!
//! Path of a packet: none. Not here: the turn itself, and what it does with these parts (`taking`, `failover`, `flushing`).

use model::{Now, OutputId};

use super::host::Outputs;
use super::moves::Moves;

/// What a turn took out of the exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Something: the exchange has room again.
    pub any: bool,
    /// More is left that no output blocks: the next turn should follow at once.
    pub more: bool,
}

/// Blocks on their way to failover members.
#[derive(Debug)]
pub(super) struct Moving {
    pub(super) moves: Moves,
    /// When there is more to move, monotonic nanoseconds.
    pub(super) due_ns: u64,
}

impl Default for Moving {
    fn default() -> Moving {
        Moving { moves: Moves::default(), due_ns: u64::MAX }
    }
}

/// A flush waits for outputs that have more than this queued although their endpoints take data …
const AHEAD_BYTES_MAX: u64 = 4 << 20;

/// … and have taken some within this time …
const PROGRESS_WITHIN_NS: u64 = model::SECOND_NS / 50;

/// … but never longer than this, so that no endpoint delays a flush.
const WAIT_MAX_NS: u64 = model::SECOND_NS;

/// Pause between two looks at these outputs.
const LOOK_PAUSE_NS: u64 = model::SECOND_NS / 1000;

/// When the shard has something to flush.
#[derive(Debug)]
pub(super) struct Flushing {
    /// When a window is due, or a flush continues.
    pub(super) due_ns: u64,
    /// When lines have waited long enough for others to share a packet with.
    pub(super) lines_due_ns: u64,
    /// The flush waits for outputs since then.
    waits_since_ns: Option<u64>,
    /// By output.
    progress: Vec<Progress>,
}

/// How far an endpoint has come.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// Bytes that it had taken at the last look.
    bytes: u64,
    /// When that last changed, monotonic nanoseconds.
    changed_ns: u64,
}

impl Default for Flushing {
    fn default() -> Flushing {
        Flushing { due_ns: 0, lines_due_ns: u64::MAX, waits_since_ns: None, progress: Vec::new() }
    }
}

impl Flushing {
    /// When to go on, monotonic nanoseconds.
    pub(super) fn next_ns(&self, now: Now) -> u64 {
        if self.due_ns <= now.mono_ns && self.waits_since_ns.is_some() {
            return now.mono_ns + LOOK_PAUSE_NS;
        }
        self.due_ns
    }

    /// True while a flush should wait a little for an endpoint that is taking data. An endpoint that takes nothing is never
    /// waited for.
    pub(super) fn waits_for(&mut self, outputs: &mut impl Outputs, count: usize, now: Now) -> bool {
        self.progress.resize(count, Progress::default());
        let mut is_ahead = false;
        for (at, progress) in self.progress.iter_mut().enumerate() {
            let output = OutputId(at as u16);
            let bytes = outputs.account(output).bytes_delivered();
            if std::mem::replace(&mut progress.bytes, bytes) != bytes {
                progress.changed_ns = now.mono_ns;
            }
            let takes = now.mono_ns - progress.changed_ns < PROGRESS_WITHIN_NS;
            is_ahead |= takes && outputs.queued_bytes(output) > AHEAD_BYTES_MAX;
        }
        if !is_ahead {
            self.waits_since_ns = None;
            return false;
        }
        let since_ns = *self.waits_since_ns.get_or_insert(now.mono_ns);
        now.mono_ns - since_ns < WAIT_MAX_NS
    }
}
