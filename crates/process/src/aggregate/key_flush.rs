//! The names with the most lines (`keyFlush`, spec statsd §7.9).

use foldhash::quality::RandomState;
use hashbrown::HashMap;
use model::Now;

use super::plan::KeyFlushPlan;
use crate::bytes::{Bytes, put_varint};

/// Maximum number of names counted between two reports; lines of further names are not counted.
pub const BUSY_NAMES_MAX: usize = 100_000;

/// Maximum bytes of those names together.
const BUSY_BYTES_MAX: usize = 64 << 20;

/// Lines per name since the last report.
#[derive(Clone, Debug, Default)]
pub(super) struct BusyNames {
    plan: Option<KeyFlushPlan>,
    // The order of the map is never visible: reports are sorted by count and then by name.
    lines: HashMap<Box<[u8]>, u64, RandomState>,
    name_bytes: usize,
    dropped: u64,
    due_ns: u64,
}

impl BusyNames {
    pub(super) fn new(plan: Option<KeyFlushPlan>, now: Now) -> BusyNames {
        let mut names = BusyNames::default();
        names.follow(plan, now);
        names
    }

    /// Applies another plan. The counts stay unless the report is switched off.
    pub(super) fn follow(&mut self, plan: Option<KeyFlushPlan>, now: Now) {
        if self.plan.map(|plan| plan.interval_ms) != plan.map(|plan| plan.interval_ms) {
            self.due_ns = plan.map_or(0, |plan| now.mono_ns + interval_ns(plan));
        }
        self.plan = plan;
        if self.plan.is_none() {
            self.clear();
        }
    }

    /// Counts one line.
    pub(super) fn count(&mut self, name: &[u8]) {
        self.count_lines(name, 1);
    }

    fn count_lines(&mut self, name: &[u8], more: u64) {
        if self.plan.is_none() {
            return;
        }
        if let Some(lines) = self.lines.get_mut(name) {
            *lines = lines.saturating_add(more);
        } else if self.lines.len() < BUSY_NAMES_MAX && self.name_bytes + name.len() <= BUSY_BYTES_MAX {
            self.lines.insert(name.into(), more);
            self.name_bytes += name.len();
        } else {
            self.dropped = self.dropped.saturating_add(more);
        }
    }

    pub(super) fn due_ns(&self) -> Option<u64> {
        self.plan.map(|_| self.due_ns)
    }

    /// The report when it is due: names with their lines, busiest first. Resets the counts.
    pub(super) fn report(&mut self, now: Now) -> Option<Vec<(Vec<u8>, u64)>> {
        let plan = self.plan.filter(|_| now.mono_ns >= self.due_ns)?;
        let missed = (now.mono_ns - self.due_ns) / interval_ns(plan);
        self.due_ns += (missed + 1) * interval_ns(plan);
        let mut report: Vec<(Vec<u8>, u64)> =
            self.lines.drain().map(|(name, lines)| (name.into_vec(), lines)).collect();
        self.clear();
        report.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let share = report.len() as f64 * plan.percent / 100.0;
        let shown = if plan.round_up { share.ceil() } else { share.floor() };
        report.truncate(shown as usize);
        Some(report)
    }

    /// Appends names with their lines, see `checkpoint`. Returns the number of names.
    pub(super) fn save(&self, to: &mut Vec<u8>) -> u32 {
        for (name, lines) in &self.lines {
            put_varint(*lines, to);
            put_varint(name.len() as u64, to);
            to.extend_from_slice(name);
        }
        self.lines.len() as u32
    }

    /// Adds counts from a checkpoint, as far as there is room and the bytes are readable.
    pub(super) fn restore(&mut self, mut from: Bytes<'_>, names: u32) {
        let mut name = || {
            let lines = from.varint()?;
            let len = from.len_of(1)?;
            Some((lines, from.take(len)?))
        };
        for (lines, name) in (0..names).map_while(|_| name()) {
            self.count_lines(name, lines);
        }
    }

    fn clear(&mut self) {
        self.name_bytes = 0;
        self.lines.clear();
        self.lines.shrink_to(1024);
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.lines.allocation_size() + self.name_bytes
    }
}

fn interval_ns(plan: KeyFlushPlan) -> u64 {
    plan.interval_ms.max(1).saturating_mul(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(percent: f64, round_up: bool) -> Option<KeyFlushPlan> {
        Some(KeyFlushPlan { interval_ms: 10_000, percent, round_up })
    }

    #[test]
    fn the_busiest_share_is_reported_and_counts_are_reset() {
        for (percent, round_up, want) in
            [(100.0, true, "a3 c2 b1 d1"), (30.0, true, "a3 c2"), (30.0, false, "a3"), (1.0, false, "")]
        {
            let mut names = BusyNames::new(plan(percent, round_up), Now::default());
            b"abcaadc".iter().for_each(|name| names.count(&[*name]));
            assert_eq!(names.report(Now { mono_ns: 9_999_999_999, wall_ns: 0 }), None);
            let report = names.report(Now { mono_ns: 10_000_000_000, wall_ns: 0 }).expect("due");
            let text: Vec<String> =
                report.iter().map(|(name, lines)| format!("{}{lines}", name.escape_ascii())).collect();
            assert_eq!(text.join(" "), want);
            assert_eq!((names.len(), names.due_ns()), (0, Some(20_000_000_000)));
        }
    }

    #[test]
    fn the_table_is_limited_in_names_and_bytes() {
        let mut names = BusyNames::new(plan(100.0, true), Now::default());
        for name in 0..BUSY_NAMES_MAX as u32 + 5 {
            names.count(&name.to_le_bytes());
        }
        names.count(&0u32.to_le_bytes());
        assert_eq!((names.len(), names.dropped()), (BUSY_NAMES_MAX, 5));
        names.clear();
        let long = vec![b'x'; BUSY_BYTES_MAX / 2];
        [&long[..], &long[1..], b"y", b"z", b"y"].into_iter().for_each(|name| names.count(name));
        assert_eq!((names.len(), names.dropped()), (3, 6), "and in bytes");
        names.follow(None, Now::default());
        names.count(b"x");
        assert_eq!((names.len(), names.due_ns()), (0, None));
    }
}
