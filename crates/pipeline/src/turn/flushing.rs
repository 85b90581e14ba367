//! When windows are flushed: a slice of series in each turn, and not far ahead of outputs that are still sending.
//!
//! Not here: which windows are due, and what a flush emits (`shard`, `process::aggregate`).

use model::Now;

use super::{Host, Turn};

impl Turn {
    /// Flushes a slice of the windows that are due, and closes open blocks when nothing more comes into them.
    pub(super) fn flush(&mut self, host: &mut impl Host, now: Now) {
        let Turn { shard, routed, flushing, limits, .. } = self;
        flushing.due_ns = flushing.due_ns.min(shard.timers_ns());
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
