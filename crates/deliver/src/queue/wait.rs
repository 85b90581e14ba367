//! How long sources wait for a queue that is full (`when_full = "wait"`): at most `max_wait` in any 10 s.
//!
//! Path of a batch: [`super::OutputQueue::room`] finds no room -> **[`WaitBudget::wait`]** says whether the source waits. Once
//! the budget is used up, the queue drops its oldest blocks until it is half empty.
//! Pure: the caller passes the time, and asks again at [`WaitBudget::look_again_ns`] or earlier.
//! Not here: what is dropped (`room`).
//! Invariant: a caller that asks in time keeps sources waiting for at most `max_wait` in any window.

use crate::pause::MS_NS;

/// The window in which `max_wait` applies.
pub const WAIT_WINDOW_MS: u64 = 10_000;

/// Waits are added up per slot. A slot leaves the sum as a whole, after the last moment of it has left the window.
const SLOT_NS: u64 = 100 * MS_NS;

/// Slots of the window, and the current one.
const SLOTS: usize = (WAIT_WINDOW_MS * MS_NS / SLOT_NS) as usize + 1;

/// A source that waits asks at least this often. After a longer pause, only this much of it counts as waiting.
const ASK_WITHIN_NS: u64 = 200 * MS_NS;

/// A batch without room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Need {
    pub(super) bytes: u64,
    pub(super) records: u64,
}

/// What the log reports about a queue that sources have waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReport {
    /// Sources have waited for as long as they may. The queue drops its oldest blocks.
    DropsBegin,
    /// No source has waited so long for one window. So many copies were dropped since the beginning.
    DropsEnd(u64),
}

/// The drops of a queue whose budget was used up.
#[derive(Clone, Copy, Debug)]
struct Episode {
    /// Copies that the account counts as dropped for want of room, before this episode.
    dropped_before: u64,
    /// When the budget was used up last, monotonic nanoseconds.
    used_up_ns: u64,
}

/// See the module's header.
#[derive(Debug)]
pub(crate) struct WaitBudget {
    /// Nanoseconds of waiting, by the number of the slot modulo [`SLOTS`].
    slots: [u64; SLOTS],
    /// Their sum.
    waited_ns: u64,
    /// Number of the newest slot.
    newest: u64,
    /// Time of the last question while a source waits.
    asked_ns: Option<u64>,
    /// The smallest batch that waits.
    need: Option<Need>,
    look_again_ns: u64,
    /// The queue is being emptied to a half.
    pub(super) is_halving: bool,
    episode: Option<Episode>,
    report: Option<WaitReport>,
}

impl Default for WaitBudget {
    fn default() -> Self {
        WaitBudget {
            slots: [0; SLOTS],
            waited_ns: 0,
            newest: 0,
            asked_ns: None,
            need: None,
            look_again_ns: u64::MAX,
            is_halving: false,
            episode: None,
            report: None,
        }
    }
}

impl WaitBudget {
    /// There is no room for a batch. True: its source waits. False: sources have waited for `max_wait_ms` in the last window.
    pub(super) fn wait(&mut self, need: Need, max_wait_ms: u64, now_ns: u64) -> bool {
        self.count(now_ns);
        let left_ns = max_wait_ms.saturating_mul(MS_NS).saturating_sub(self.waited_ns);
        if left_ns == 0 {
            self.end(now_ns);
            return false;
        }
        let smallest = self.need.map_or(need, |known| Need {
            bytes: known.bytes.min(need.bytes),
            records: known.records.min(need.records),
        });
        (self.need, self.asked_ns) = (Some(smallest), Some(now_ns));
        self.look_again_ns = now_ns.saturating_add(left_ns.min(ASK_WITHIN_NS));
        true
    }

    /// The smallest batch that waits.
    pub(super) fn need(&self) -> Option<Need> {
        self.need
    }

    /// Sources wait no more: there is room for a batch, or it is made.
    pub(super) fn end(&mut self, now_ns: u64) {
        self.count(now_ns);
        (self.need, self.asked_ns, self.look_again_ns) = (None, None, u64::MAX);
    }

    /// Latest time of the next question while a source waits, monotonic nanoseconds; `u64::MAX` while none does.
    pub(super) fn look_again_ns(&self) -> u64 {
        self.look_again_ns
    }

    /// The budget is used up. `dropped` copies have been dropped for want of room so far.
    pub(super) fn begin_drops(&mut self, dropped: u64, now_ns: u64) {
        let known = self.episode.replace(Episode {
            dropped_before: self.episode.map_or(dropped, |episode| episode.dropped_before),
            used_up_ns: now_ns,
        });
        if known.is_none() {
            self.report = Some(WaitReport::DropsBegin);
        }
    }

    /// Ends the episode one window after the budget was used up last.
    pub(super) fn update_drops(&mut self, dropped: u64, now_ns: u64) {
        let is_over =
            |episode: &mut Episode| now_ns.saturating_sub(episode.used_up_ns) >= WAIT_WINDOW_MS * MS_NS;
        if let Some(episode) = self.episode.take_if(is_over) {
            self.report = Some(WaitReport::DropsEnd(dropped.saturating_sub(episode.dropped_before)));
        }
    }

    /// True from the first drop until the report of the last one.
    pub(super) fn in_episode(&self) -> bool {
        self.episode.is_some()
    }

    /// What the log reports next, once.
    pub(super) fn take_report(&mut self) -> Option<WaitReport> {
        self.report.take()
    }

    /// Counts the time since the last question, if a source has waited meanwhile.
    fn count(&mut self, now_ns: u64) {
        let newest = now_ns / SLOT_NS;
        let passed = newest.saturating_sub(self.newest).min(SLOTS as u64);
        for slot in (newest + 1).saturating_sub(passed)..=newest {
            self.waited_ns -= std::mem::take(&mut self.slots[(slot % SLOTS as u64) as usize]);
        }
        self.newest = self.newest.max(newest);
        let Some(mut from_ns) = self.asked_ns else { return };
        let to_ns = now_ns.min(from_ns.saturating_add(ASK_WITHIN_NS));
        while from_ns < to_ns {
            let slot = from_ns / SLOT_NS;
            let slot_ends_ns = (slot + 1).saturating_mul(SLOT_NS).min(to_ns);
            if slot + SLOTS as u64 > self.newest {
                self.slots[(slot % SLOTS as u64) as usize] += slot_ends_ns - from_ns;
                self.waited_ns += slot_ends_ns - from_ns;
            }
            from_ns = slot_ends_ns;
        }
        self.asked_ns = Some(now_ns);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NEED: Need = Need { bytes: 1000, records: 10 };

    #[test]
    fn a_source_waits_for_the_budget_and_again_after_the_window() {
        let mut budget = WaitBudget::default();
        let at_ns = |ms: u64| (1_000_000 + ms) * MS_NS;
        // (ms, does the source wait)
        for (ms, waits) in
            [(0, true), (150, true), (300, true), (499, true), (500, false), (501, false), (9_900, false)]
        {
            assert_eq!(budget.wait(NEED, 500, at_ns(ms)), waits, "at {ms} ms");
        }
        // One slot after the other leaves the window.
        for (ms, waits) in [(10_100, true), (10_300, true), (10_500, true), (10_600, false)] {
            assert_eq!(budget.wait(NEED, 500, at_ns(ms)), waits, "at {ms} ms");
        }
        assert!(budget.wait(NEED, 500, at_ns(30_000)));
    }

    #[test]
    fn time_after_the_end_of_a_wait_is_not_counted() {
        let mut budget = WaitBudget::default();
        let at_ns = |ms: u64| ms * MS_NS;
        for ms in [0, 150, 1_000, 1_150, 2_000] {
            assert!(budget.wait(NEED, 301, at_ns(ms)), "at {ms} ms");
            if ms % 1_000 == 150 {
                budget.end(at_ns(ms));
            }
        }
        assert!(!budget.wait(NEED, 301, at_ns(2_001)));
        // A source that asks no more does not wait: a long pause counts for little.
        let mut budget = WaitBudget::default();
        assert!(budget.wait(NEED, 301, at_ns(0)) && budget.wait(NEED, 301, at_ns(5_000)));
    }

    #[test]
    fn no_wait_is_allowed_by_a_budget_of_nothing() {
        let mut budget = WaitBudget::default();
        assert!(!budget.wait(NEED, 0, 7) && budget.need().is_none());
        assert_eq!(budget.look_again_ns(), u64::MAX);
        assert!(budget.wait(NEED, u64::MAX, 7));
    }

    #[test]
    fn the_smallest_batch_is_the_one_that_waits() {
        let mut budget = WaitBudget::default();
        for (bytes, records) in [(1000, 10), (2000, 5), (500, 20)] {
            assert!(budget.wait(Need { bytes, records }, 1000, 0));
        }
        assert_eq!(budget.need(), Some(Need { bytes: 500, records: 5 }));
        budget.end(0);
        assert_eq!(budget.need(), None);
    }

    #[test]
    fn an_episode_is_reported_when_it_begins_and_one_window_after_its_last_drop() {
        let mut budget = WaitBudget::default();
        let at_ns = |ms: u64| ms * MS_NS;
        for (ms, dropped) in [(0, 7), (5_000, 20), (14_000, 30)] {
            budget.update_drops(dropped, at_ns(ms));
            budget.begin_drops(dropped, at_ns(ms));
            let want = (ms == 0).then_some(WaitReport::DropsBegin);
            assert_eq!((budget.take_report(), budget.in_episode()), (want, true), "at {ms} ms");
        }
        budget.update_drops(31, at_ns(23_999));
        assert_eq!(budget.take_report(), None);
        budget.update_drops(31, at_ns(24_000));
        assert_eq!((budget.take_report(), budget.in_episode()), (Some(WaitReport::DropsEnd(24)), false));
    }

    /// Time that was waited in each window of 10 s that begins where a wait begins, or ends where one ends.
    fn most_in_a_window(waits: &[(u64, u64)]) -> u64 {
        let window_ns = WAIT_WINDOW_MS * MS_NS;
        let overlap = |from: u64, to: u64| -> u64 {
            waits.iter().map(|(start, end)| to.min(*end).saturating_sub(from.max(*start))).sum()
        };
        let begins = waits.iter().map(|(start, _)| overlap(*start, start + window_ns));
        let ends = waits.iter().map(|(_, end)| overlap(end.saturating_sub(window_ns), *end));
        begins.chain(ends).max().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn a_caller_that_asks_in_time_keeps_to_the_budget(
            max_wait_ms in 0u64..3_000,
            begin_ns in 0u64..1 << 40,
            steps in prop::collection::vec((0u64..260, any::<bool>(), 0u8..10), 1..400),
        ) {
            let mut budget = WaitBudget::default();
            let mut now_ns = begin_ns;
            let mut waits: Vec<(u64, u64)> = Vec::new();
            let mut waits_since: Option<u64> = None;
            for (pause_ms, pauses_long, ends) in steps {
                let pause_ns = if pauses_long && waits_since.is_none() { 40 * pause_ms } else { pause_ms } * MS_NS;
                now_ns = (now_ns + pause_ns).min(budget.look_again_ns());
                let waited = waits_since.map(|since_ns| (since_ns, now_ns));
                waits.extend(waited.filter(|(from, to)| from < to));
                if ends == 0 {
                    budget.end(now_ns);
                    waits_since = None;
                    continue;
                }
                let may_wait = budget.wait(NEED, max_wait_ms, now_ns);
                waits_since = may_wait.then_some(now_ns);
                // Who has waited less, counted in whole slots, may go on.
                let from_ns = now_ns.saturating_sub(WAIT_WINDOW_MS * MS_NS + SLOT_NS);
                let recent: u64 =
                    waits.iter().map(|(start, end)| end.saturating_sub(from_ns.max(*start))).sum();
                prop_assert!(may_wait || recent >= max_wait_ms * MS_NS, "{recent} ns of {max_wait_ms} ms");
            }
            let most_ns = most_in_a_window(&waits);
            prop_assert!(most_ns <= max_wait_ms * MS_NS, "{most_ns} ns of {max_wait_ms} ms");
        }
    }
}
