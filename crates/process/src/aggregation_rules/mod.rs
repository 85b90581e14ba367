//! Aggregation rules of a relay: combine many series into few, by window of the points' own timestamps (spec
//! graphite §2.7).
//!
//! Path of a point: `relay::Act::Feed` (the name of a result) -> **`AggregationRules::feed`** -> `Window::add`.
//! Some time after the end of its window: **`AggregationRules::tick`** -> the caller's `emit` -> the result's route
//! (`relay::Entry::Result`).
//! Time is an argument. A step back of the wall clock by at most two windows is absorbed, so that no window is
//! emitted twice; a larger one is followed (`clock`).
//! Not here: names of results (`relay`), values from text (`wire`), destinations of results.
//! Invariants: results of a series have growing timestamps, and each window is emitted once, unless the clock goes
//! back; every point that was counted is part of one result, or of the number that [`AggregationRules::finish`]
//! returns; the same calls give the same results in the same order.

mod clock;
mod plan;
#[cfg(any(test, feature = "promises"))]
pub mod promises;
mod result;
mod saved;
#[cfg(test)]
mod saved_tests;
mod series;
#[cfg(test)]
mod tests;
mod window;
mod windows;

pub use plan::{AggregationRulePlan, COMPUTES_MAX, Compute, ComputePlan, Late, Stamp};
pub use result::{Emitted, RuleResult};
pub use saved::{NotRestored, Restored, matched};

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::Hasher;
use std::io::Write;

use foldhash::{SharedSeed, fast::FoldHasher};
use hashbrown::HashTable;
use model::Now;

use crate::sharding::key_hash;
use clock::AggregationRuleClock;
use series::{PLACE_BYTES, Series};
use window::{Window, grown};
use windows::{WINDOW_BYTES, Windows};

/// Memory limits of aggregation rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AggregationRuleLimits {
    /// Maximum series: results with open windows.
    pub series_max: u32,
    /// Maximum bytes of names, windows and percentile values, for all results together. It counts allocated
    /// capacity, of which lists may have up to half as much again as they need. A window takes 56 bytes (128 when a
    /// result has more than 64 windows), and a value 8.
    pub bytes_max: usize,
    /// Maximum values of one percentile in one window: computing it takes all of them at once.
    pub values_max: usize,
}

/// Capacity for series that is kept although few are in use.
const PLACES_KEPT_MAX: usize = 1024;

/// Bytes of windows and values that cost as much to emit as a series with one window.
const BYTES_OF_ONE: usize = 2 * WINDOW_BYTES;

impl Default for AggregationRuleLimits {
    /// The same `series_max` as aggregations, 256 MiB, and percentiles that take at most some tens of milliseconds.
    fn default() -> AggregationRuleLimits {
        let series_max = model::limits::SERIES_MAX;
        AggregationRuleLimits { series_max, bytes_max: 256 << 20, values_max: 4_000_000 }
    }
}

/// Outcome of a value. A point with several values gets the least of their outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fed {
    /// Added to its window.
    Counted,
    /// Its window has ended; added to the oldest open window ([`Late::Oldest`]).
    CountedLate,
    /// Its window has ended.
    Late,
    /// Its timestamp is too far ahead: no window is kept for it.
    Early,
    /// It needed a new result beyond `series_max`.
    SeriesMax,
    /// It needed memory beyond `bytes_max`.
    BytesMax,
    /// It is infinite or NaN.
    NotFinite,
}

impl Fed {
    /// All of them, in order.
    pub const ALL: [Fed; 7] = [
        Fed::Counted,
        Fed::CountedLate,
        Fed::Late,
        Fed::Early,
        Fed::SeriesMax,
        Fed::BytesMax,
        Fed::NotFinite,
    ];

    /// The outcome's name in counters.
    pub fn word(self) -> &'static str {
        match self {
            Fed::Counted => "counted",
            Fed::CountedLate => "counted_late",
            Fed::Late => "late",
            Fed::Early => "early",
            Fed::SeriesMax => "series_max",
            Fed::BytesMax => "bytes_max",
            Fed::NotFinite => "not_finite",
        }
    }
}

/// One value for one result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feed<'a> {
    /// Index in the list given to [`AggregationRules::new`].
    pub aggregation_rule: u16,
    /// Index in its computes.
    pub compute: u16,
    /// Name of the result.
    pub name: &'a [u8],
    /// The value.
    pub value: f64,
    /// Unix seconds, from the line.
    pub timestamp: i64,
}

impl RuleResult<'_> {
    /// The text after the name, as carbon-c-relay writes it: ` 12.500000 1700000010`; counts are integers.
    pub fn write_rest(&self, out: &mut Vec<u8>) {
        let written = match self.compute {
            Compute::Count => write!(out, " {:.0} {}", self.value, self.timestamp),
            _ if self.exact => write!(out, " {} {}", self.value, self.timestamp),
            _ => write!(out, " {:.6} {}", self.value, self.timestamp),
        };
        written.expect("a vector takes all");
    }
}

/// Figures for self-metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AggregationRuleFigures {
    /// Results with open windows.
    pub series: u32,
    /// Bytes of names, windows and values.
    pub bytes: usize,
    /// Steps back of the wall clock by more than two windows.
    pub jumps_back: u64,
    /// Results of windows that lie in the future after such a step: emitted at once, with the timestamps of their
    /// points.
    pub future_results: u64,
}

/// All aggregation rules of a relay, owned by one thread.
#[derive(Clone, Debug)]
pub struct AggregationRules {
    plans: Vec<AggregationRulePlan>,
    limits: AggregationRuleLimits,
    seed: u64,
    shared: SharedSeed,
    clock: AggregationRuleClock,
    /// The shortest window of all plans.
    shortest_s: u64,
    future_results: u64,
    /// In order of creation, except for reused slots.
    series: Vec<Option<Series>>,
    /// Slots to reuse, lowest first.
    free: BinaryHeap<Reverse<u32>>,
    index: HashTable<u32>,
    /// Bytes of names, windows and values.
    bytes: usize,
    /// No result is due before this second.
    due_s: u64,
    /// The next `due_s`, as far as the current sweep has come.
    next_due_s: u64,
    /// Position of the current sweep; 0 when there is none.
    cursor: usize,
}

impl AggregationRules {
    /// Aggregation rules without results. Plans must be valid ([`AggregationRulePlan::check`]). `seed` must be
    /// random: otherwise senders can choose names that collide. Results do not depend on it.
    pub fn new(
        plans: Vec<AggregationRulePlan>,
        limits: AggregationRuleLimits,
        seed: u64,
    ) -> AggregationRules {
        assert!(plans.iter().all(|plan| plan.check().is_ok()), "plans are checked by the caller");
        AggregationRules {
            shortest_s: shortest_s(&plans),
            plans,
            limits,
            seed,
            shared: SharedSeed::from_u64(seed),
            clock: AggregationRuleClock::default(),
            future_results: 0,
            series: Vec::new(),
            free: BinaryHeap::new(),
            index: HashTable::new(),
            bytes: 0,
            due_s: u64::MAX,
            next_due_s: u64::MAX,
            cursor: 0,
        }
    }

    /// Adds one value.
    pub fn feed(&mut self, feed: Feed<'_>, now: Now) -> Fed {
        if !feed.value.is_finite() {
            return Fed::NotFinite;
        }
        let now_s = self.time(now);
        let plan = &self.plans[usize::from(feed.aggregation_rule)];
        let (compute, late) = (plan.computes[usize::from(feed.compute)].compute, plan.late);
        let every = u64::from(plan.every_s);
        let first = self.clock.first(plan.every_s, plan.expire_s);
        let hash = self.hash(feed.aggregation_rule, feed.compute, feed.name);
        let known = self.find(hash, &feed);
        let known_open = known.map(|at| self.at(at)).map(|series| {
            let open = series.open_now(plan, now_s, first);
            if series.windows.is_empty() { open.max(first) } else { open }
        });
        let open = known_open.unwrap_or(first);
        let wanted = u64::try_from(feed.timestamp).map_or(0, |second| second / every);
        let over = feed.timestamp < 0 || wanted < open;
        if over && late == Late::Dropped {
            return Fed::Late;
        }
        if wanted >= open.max(first).saturating_add(plan.windows()) {
            return Fed::Early;
        }
        let number = wanted.max(open);
        let at = match known {
            Some(at) => at,
            None if self.index.len() >= self.limits.series_max as usize => return Fed::SeriesMax,
            None if !self.has_room(self.bytes_of_one_more(feed.name) + first_bytes(compute)) => {
                return Fed::BytesMax;
            }
            None => self.begin(hash, &feed, open),
        };
        match self.add(at, open, number, compute, feed.value) {
            false => Fed::BytesMax,
            true if over => Fed::CountedLate,
            true => Fed::Counted,
        }
    }

    /// Emits the results that are due, of at most `series_max` series, in order of creation. A series with many
    /// windows or values counts as several. Call it a few times a second, and again at once while `more` is true.
    pub fn tick(&mut self, now: Now, series_max: usize, mut emit: impl FnMut(RuleResult<'_>)) -> Emitted {
        let now_s = self.time(now);
        let mut emitted = Emitted::default();
        if self.cursor == 0 {
            if now_s < self.due_s {
                return emitted;
            }
            self.next_due_s = u64::MAX;
        }
        let (mut end, mut budget) = (self.cursor, series_max.max(1));
        while end < self.series.len() && budget > 0 {
            let at = end;
            (end, budget) = (end + 1, budget - 1);
            let Some(series) = &mut self.series[at] else { continue };
            let plan = &self.plans[usize::from(series.aggregation_rule)];
            let over = series.over(plan, now_s);
            let first = self.clock.first(plan.every_s, plan.expire_s);
            series.open = series.open_now(plan, now_s, first);
            let bytes = series.emit_before(plan, over, &mut emitted, &mut emit);
            let (bytes_ahead, ahead) = series.emit_ahead(plan, first, &mut emitted, &mut emit);
            self.future_results += ahead;
            self.bytes -= bytes + bytes_ahead;
            budget = budget.saturating_sub((bytes + bytes_ahead) / BYTES_OF_ONE);
            if series.windows.is_empty() && now_s >= series.due_s(plan) {
                self.end(at);
            } else {
                self.next_due_s = self.next_due_s.min(series.due_s(plan));
            }
        }
        emitted.more = end < self.series.len();
        self.cursor = if emitted.more { end } else { 0 };
        if !emitted.more {
            self.due_s = self.next_due_s;
            self.shrink();
        }
        emitted
    }

    /// The second at which a result is due; None without any open window.
    pub fn due_s(&self) -> Option<u64> {
        let due_s = if self.cursor == 0 { self.due_s } else { self.clock.now_s };
        (due_s != u64::MAX).then_some(due_s)
    }

    /// True when [`Self::tick`] has work to do.
    pub fn is_due(&self, now: Now) -> bool {
        self.due_s()
            .is_some_and(|due_s| due_s <= now.wall_seconds() || self.clock.is_back(now, self.shortest_s))
    }

    /// Emits every window whose time has passed, even if late points are still allowed, and drops the others, whose
    /// values it counts.
    pub fn finish(&mut self, now: Now, mut emit: impl FnMut(RuleResult<'_>)) -> Emitted {
        let now_s = self.time(now);
        let mut emitted = Emitted::default();
        for series in self.series.iter_mut().flatten() {
            series.finish(&self.plans[usize::from(series.aggregation_rule)], now_s, &mut emitted, &mut emit);
        }
        self.clear();
        emitted
    }

    fn clear(&mut self) {
        (self.series, self.free, self.index) = (Vec::new(), BinaryHeap::new(), HashTable::new());
        (self.bytes, self.cursor, self.due_s, self.next_due_s) = (0, 0, u64::MAX, u64::MAX);
    }

    /// Switches to other plans and limits at a reload. Results of the aggregation rule `at` continue under the rule
    /// `to[at]` ([`matched`]). The others end as with [`Self::finish`], emitted under their old rule.
    pub fn replan(
        &mut self,
        plans: Vec<AggregationRulePlan>,
        limits: AggregationRuleLimits,
        to: &[Option<u16>],
        now: Now,
        mut emit: impl FnMut(RuleResult<'_>),
    ) -> Emitted {
        assert!(plans.iter().all(|plan| plan.check().is_ok()), "plans are checked by the caller");
        assert_eq!(to.len(), self.plans.len(), "`to` has an entry for each aggregation rule");
        let now_s = self.time(now);
        let before = std::mem::take(&mut self.series);
        self.shortest_s = shortest_s(&plans);
        let of_before = std::mem::replace(&mut self.plans, plans);
        self.limits = limits;
        self.clear();
        let mut emitted = Emitted::default();
        for mut series in before.into_iter().flatten() {
            let aggregation_rule = usize::from(series.aggregation_rule);
            match to[aggregation_rule] {
                Some(aggregation_rule) => {
                    series.aggregation_rule = aggregation_rule;
                    self.put(series);
                }
                None => series.finish(&of_before[aggregation_rule], now_s, &mut emitted, &mut emit),
            }
        }
        emitted
    }

    /// Figures for self-metrics.
    pub fn figures(&self) -> AggregationRuleFigures {
        AggregationRuleFigures {
            series: self.index.len() as u32,
            bytes: self.taken_bytes(),
            jumps_back: self.clock.jumps_back,
            future_results: self.future_results,
        }
    }

    fn time(&mut self, now: Now) -> u64 {
        if self.clock.read(now, self.shortest_s) {
            // Every series is visited: closed windows may be open again, and results must not wait until the clock
            // catches up.
            (self.cursor, self.due_s) = (0, 0);
        }
        self.clock.now_s
    }

    fn hash(&self, aggregation_rule: u16, compute: u16, name: &[u8]) -> u64 {
        let of = u64::from(aggregation_rule) << 16 | u64::from(compute);
        let mut hasher = FoldHasher::with_seed(self.seed ^ of, &self.shared);
        hasher.write(name);
        hasher.finish()
    }

    fn find(&self, hash: u64, feed: &Feed<'_>) -> Option<usize> {
        let same = |at: &u32| {
            let series = self.at(*at as usize);
            series.hash == hash
                && (series.aggregation_rule, series.compute) == (feed.aggregation_rule, feed.compute)
                && *series.name == *feed.name
        };
        self.index.find(hash, same).map(|at| *at as usize)
    }

    fn at(&self, at: usize) -> &Series {
        self.series[at].as_ref().expect("the index refers to slots in use")
    }

    fn begin(&mut self, hash: u64, feed: &Feed<'_>, open: u64) -> usize {
        let splay_s = self.splay_s(feed.aggregation_rule, feed.name);
        let (aggregation_rule, compute) = (feed.aggregation_rule, feed.compute);
        let name = feed.name.into();
        self.insert(Series { hash, name, aggregation_rule, compute, splay_s, open, windows: Windows::new() })
    }

    /// It depends on the name only, so that each process emits the same input at the same time.
    fn splay_s(&self, aggregation_rule: u16, name: &[u8]) -> u64 {
        key_hash(name) % u64::from(self.plans[usize::from(aggregation_rule)].every_s.min(10))
    }

    /// Inserts a series with its windows. Its name must be new.
    fn put(&mut self, mut series: Series) {
        series.hash = self.hash(series.aggregation_rule, series.compute, &series.name);
        let due_s = series.due_s(&self.plans[usize::from(series.aggregation_rule)]);
        (self.due_s, self.next_due_s) = (self.due_s.min(due_s), self.next_due_s.min(due_s));
        self.bytes += series.windows_bytes();
        self.insert(series);
    }

    fn insert(&mut self, series: Series) -> usize {
        let hash = series.hash;
        let at = match self.free.pop() {
            Some(Reverse(at)) => at as usize,
            None => {
                if self.series.len() == self.series.capacity() {
                    self.series.reserve_exact(grown(self.series.len()) - self.series.len());
                }
                self.series.push(None);
                self.series.len() - 1
            }
        };
        self.bytes += series.name.len();
        self.series[at] = Some(series);
        let series = &self.series;
        let rehash = |at: &u32| series[*at as usize].as_ref().map_or(0, |series| series.hash);
        self.index.insert_unique(hash, at as u32, rehash);
        at
    }

    /// Adds a value to a window; false when there is no room for it.
    fn add(&mut self, at: usize, open: u64, number: u64, compute: Compute, value: f64) -> bool {
        let room = self.limits.bytes_max.saturating_sub(self.taken_bytes());
        let series = self.series[at].as_mut().expect("the index refers to slots in use");
        let taken = series.windows.bytes();
        let (windows, kept, values) = match series.windows.get(number) {
            Some(window) => {
                (taken, window.kept_bytes_of_one_more(compute) - window.kept_bytes(), window.kept())
            }
            None => {
                (series.windows.bytes_of_one_more(), Window::default().kept_bytes_of_one_more(compute), 0)
            }
        };
        // A list that becomes a tree may need less memory.
        let more = (windows + kept).saturating_sub(taken);
        if more > room || values >= self.limits.values_max {
            return false;
        }
        series.open = open;
        let window = series.windows.at(number);
        let kept = window.kept_bytes();
        window.add(compute, value);
        self.bytes += window.kept_bytes() - kept;
        self.bytes = self.bytes + series.windows.bytes() - taken;
        let due_s = series.due_s(&self.plans[usize::from(series.aggregation_rule)]);
        (self.due_s, self.next_due_s) = (self.due_s.min(due_s), self.next_due_s.min(due_s));
        true
    }

    /// Bytes that count against `bytes_max`.
    fn taken_bytes(&self) -> usize {
        self.bytes + PLACE_BYTES * self.series.capacity()
    }

    fn has_room(&self, more: usize) -> bool {
        self.taken_bytes() + more <= self.limits.bytes_max
    }

    /// Additional bytes for a series of this name, without windows.
    fn bytes_of_one_more(&self, name: &[u8]) -> usize {
        let is_full = self.free.is_empty() && self.series.len() == self.series.capacity();
        let places = if is_full { grown(self.series.len()) - self.series.len() } else { 0 };
        name.len() + places * PLACE_BYTES
    }

    /// Frees memory after a peak: slots after the last series, and excess capacity.
    fn shrink(&mut self) {
        if self.index.is_empty() {
            (self.series, self.free, self.index) = (Vec::new(), BinaryHeap::new(), HashTable::new());
            return;
        }
        if self.series.last().is_some_and(Option::is_some) {
            return;
        }
        while self.series.pop_if(|series| series.is_none()).is_some() {}
        let places = self.series.len();
        self.free.retain(|Reverse(at)| (*at as usize) < places);
        if self.series.capacity() <= PLACES_KEPT_MAX.max(4 * places) {
            return;
        }
        self.free.shrink_to_fit();
        self.series.shrink_to(2 * places);
        let series = &self.series;
        let rehash = |at: &u32| series[*at as usize].as_ref().map_or(0, |series| series.hash);
        self.index.shrink_to(2 * self.index.len(), rehash);
    }

    fn end(&mut self, at: usize) {
        let series = self.series[at].take().expect("a series in use");
        let entry = self.index.find_entry(series.hash, |place| *place as usize == at);
        entry.expect("a series in use is in the index").remove();
        self.bytes -= series.name.len() + series.windows.bytes();
        if self.free.len() == self.free.capacity() {
            // At most one entry per slot, and slots are counted with it.
            let room = grown(self.free.len()).min(self.series.capacity());
            self.free.reserve_exact(room.saturating_sub(self.free.len()));
        }
        self.free.push(Reverse(at as u32));
    }
}

/// Bytes of the first window of a result.
fn first_bytes(compute: Compute) -> usize {
    Windows::new().bytes_of_one_more() + Window::default().kept_bytes_of_one_more(compute)
}

fn shortest_s(plans: &[AggregationRulePlan]) -> u64 {
    plans.iter().map(|plan| u64::from(plan.every_s)).min().unwrap_or(0)
}
