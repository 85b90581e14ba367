//! When windows are flushed: a slice of series in each turn, and not far ahead of outputs that are still sending.
//!
//! Not here: which windows are due, and what a flush emits (`shard`, `process::aggregate`).

use model::{Now, OutputId};

use super::{Host, Outputs, Turn};

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
    due_ns: u64,
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
    fn waits_for(&mut self, outputs: &mut impl Outputs, count: usize, now: Now) -> bool {
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

impl Turn {
    /// Flushes a slice of the windows that are due, and closes open blocks when nothing more comes into them.
    pub(super) fn flush(&mut self, host: &mut impl Host, now: Now) {
        let Turn { shard, routed, flushing, limits, .. } = self;
        let is_due = now.mono_ns >= flushing.due_ns || shard.has_results();
        if is_due && !flushing.waits_for(host.outputs(), shard.outputs.len(), now) {
            let until_ns = host.mono_ns().saturating_add(limits.search_ns);
            let go_on = &mut || host.mono_ns() < until_ns;
            flushing.due_ns = shard.tick_while(now, limits.flush_series, routed, go_on);
        }
        if flushing.due_ns > now.mono_ns {
            shard.close_blocks(now, routed);
        }
        flushing.lines_due_ns = shard.close_due(now, routed);
    }

    /// The next turn looks which windows are due.
    pub fn look_at_windows(&mut self) {
        self.flushing.due_ns = 0;
    }
}
