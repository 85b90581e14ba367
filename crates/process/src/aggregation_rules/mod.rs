//! AggregationRules: many series into few, by window of the points' own time (spec graphite §2.7).
//!
//! Path of a point: `relay::Act::Feed` (a result's name) -> **`AggregationRules::feed`** -> `Window::add`. Some time after its
//! window is over: **`AggregationRules::tick`** -> the caller's `emit` -> the result's route (`relay::Entry::Result`).
//! Time comes in as an argument. A wall clock that is set back by two windows at most stands still here until it is where it
//! was, so that no window is told twice; one that is set back by more is followed (`clock`).
//! Not here: names of results (`relay`), values from text (`wire`), where results go.
//! Invariants: a series' results come with growing timestamps, each window once, unless the clock is followed back; every point that counted is in one
//! result, or in what [`AggregationRules::finish`] gives back; the same calls give the same results in the same order.

mod clock;
mod plan;
#[cfg(any(test, feature = "promises"))]
pub mod promises;
mod saved;
#[cfg(test)]
mod saved_tests;
mod series;
#[cfg(test)]
mod tests;
mod window;
mod windows;

pub use plan::{AggregationRulePlan, COMPUTES_MAX, Compute, ComputePlan, Late, Stamp};
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
use window::Window;
use windows::{WINDOW_BYTES, Windows, grown};

/// Bounds of what aggregation rules hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AggregationRuleLimits {
    /// Most results under way.
    pub series_max: u32,
    /// Most bytes of names, windows and values of percentiles, of all results together: of the room that is taken for them, of
    /// which lists have up to half as much again. A window takes 56 bytes, 128 where a result has more than 64, and a value 8.
    pub bytes_max: usize,
    /// Most values of one percentile in one window: the result looks at all of them at once.
    pub values_max: usize,
}

/// Places of results that are kept although few of them are in use.
const PLACES_KEPT_MAX: usize = 1024;

/// Bytes of windows and values that are as much work to tell as a series of one window.
const BYTES_OF_ONE: usize = 2 * WINDOW_BYTES;

impl Default for AggregationRuleLimits {
    /// As many series as an aggregation has, 256 MiB, and some tens of milliseconds.
    fn default() -> AggregationRuleLimits {
        let series_max = model::limits::SERIES_MAX;
        AggregationRuleLimits { series_max, bytes_max: 256 << 20, values_max: 4_000_000 }
    }
}

/// What became of a value. The least is what a point that has several counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fed {
    /// It counts in its window.
    Counted,
    /// Its window is over, and it counts in the oldest one that is not ([`Late::Oldest`]).
    CountedLate,
    /// Its window is over.
    Late,
    /// It is of a time so far ahead that no window is kept for it.
    Early,
    /// It would have begun a result past `series_max`.
    SeriesMax,
    /// It would have taken room past `bytes_max`.
    BytesMax,
    /// It is infinite or no number.
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

    /// The word that names it where it is counted.
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
    /// Place in the list given to [`AggregationRules::new`].
    pub aggregation_rule: u16,
    /// Place in its computes.
    pub compute: u16,
    /// The result's name.
    pub name: &'a [u8],
    /// The value.
    pub value: f64,
    /// Unix seconds, as the line has them.
    pub timestamp: i64,
}

/// One result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rolled<'a> {
    /// Place in the list given to [`AggregationRules::new`].
    pub aggregation_rule: u16,
    /// What was computed.
    pub compute: Compute,
    /// Its name.
    pub name: &'a [u8],
    /// Finite.
    pub value: f64,
    /// Unix seconds.
    pub timestamp: u64,
    /// See [`AggregationRulePlan::exact`].
    pub exact: bool,
}

impl Rolled<'_> {
    /// The text behind the name, as carbon-c-relay writes it: ` 12.500000 1700000010`; counts are whole.
    pub fn write_rest(&self, out: &mut Vec<u8>) {
        let written = match self.compute {
            Compute::Count => write!(out, " {:.0} {}", self.value, self.timestamp),
            _ if self.exact => write!(out, " {} {}", self.value, self.timestamp),
            _ => write!(out, " {:.6} {}", self.value, self.timestamp),
        };
        written.expect("a vector takes all");
    }
}

/// What a call of [`AggregationRules::tick`] or [`AggregationRules::finish`] told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Results.
    pub results: u64,
    /// Results that were infinite and were not told.
    pub not_finite: u64,
    /// Values in windows that were not over, which end with [`AggregationRules::finish`].
    pub values_left: u64,
    /// There is more to do now: call again.
    pub more: bool,
}

/// Counts for self-metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AggregationRuleFigures {
    /// Results under way.
    pub series: u32,
    /// Bytes of names, windows and kept values.
    pub bytes: usize,
    /// Times that the wall clock was set back by more than two windows.
    pub jumps_back: u64,
    /// Results of windows that such a clock had not come to: sent at once, with the time that their points had.
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
    /// The shortest window of the plans.
    shortest_s: u64,
    future_results: u64,
    /// In the order in which they began, but for places that are used again.
    series: Vec<Option<Series>>,
    /// Places that are used again, the first one first.
    free: BinaryHeap<Reverse<u32>>,
    index: HashTable<u32>,
    /// What names, windows and values take.
    bytes: usize,
    /// Nothing is due before this second.
    due_s: u64,
    /// The same as far as the sweep under way has seen.
    next_due_s: u64,
    /// Where the sweep goes on; 0 when none is under way.
    cursor: usize,
}

impl AggregationRules {
    /// AggregationRules without results, by plans that hold ([`AggregationRulePlan::check`]). Draw `seed` at random, or senders can choose
    /// names that collide; results do not depend on it.
    pub fn new(
        plans: Vec<AggregationRulePlan>,
        limits: AggregationRuleLimits,
        seed: u64,
    ) -> AggregationRules {
        assert!(plans.iter().all(|plan| plan.check().is_ok()), "plans are checked before");
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

    /// Takes one value.
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

    /// Tells the results that are due, at most of `series_max` series, in the order in which these began. One with many
    /// windows, or with many values in them, counts for several. Call it a few times a second, and again at once while there
    /// is more.
    pub fn tick(&mut self, now: Now, series_max: usize, mut emit: impl FnMut(Rolled<'_>)) -> Told {
        let now_s = self.time(now);
        let mut told = Told::default();
        if self.cursor == 0 {
            if now_s < self.due_s {
                return told;
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
            let bytes = series.tell(plan, over, &mut told, &mut emit);
            let (bytes_ahead, ahead) = series.tell_ahead(plan, first, &mut told, &mut emit);
            self.future_results += ahead;
            self.bytes -= bytes + bytes_ahead;
            budget = budget.saturating_sub((bytes + bytes_ahead) / BYTES_OF_ONE);
            if series.windows.is_empty() && now_s >= series.due_s(plan) {
                self.end(at);
            } else {
                self.next_due_s = self.next_due_s.min(series.due_s(plan));
            }
        }
        told.more = end < self.series.len();
        self.cursor = if told.more { end } else { 0 };
        if !told.more {
            self.due_s = self.next_due_s;
            self.give_back();
        }
        told
    }

    /// The second at which something is due; none when nothing is under way.
    pub fn due_s(&self) -> Option<u64> {
        let due_s = if self.cursor == 0 { self.due_s } else { self.clock.now_s };
        (due_s != u64::MAX).then_some(due_s)
    }

    /// Whether [`Self::tick`] has something to do.
    pub fn is_due(&self, now: Now) -> bool {
        self.due_s()
            .is_some_and(|due_s| due_s <= now.wall_seconds() || self.clock.is_back(now, self.shortest_s))
    }

    /// The end: tells every window whose seconds have passed, whether late points may come or not, and forgets the rest,
    /// whose values it counts.
    pub fn finish(&mut self, now: Now, mut emit: impl FnMut(Rolled<'_>)) -> Told {
        let now_s = self.time(now);
        let mut told = Told::default();
        for series in self.series.iter_mut().flatten() {
            series.finish(&self.plans[usize::from(series.aggregation_rule)], now_s, &mut told, &mut emit);
        }
        self.forget();
        told
    }

    fn forget(&mut self) {
        (self.series, self.free, self.index) = (Vec::new(), BinaryHeap::new(), HashTable::new());
        (self.bytes, self.cursor, self.due_s, self.next_due_s) = (0, 0, u64::MAX, u64::MAX);
    }

    /// Takes other plans and bounds, for a reload: results of the aggregation rule `at` go on as those of `to[at]` ([`matched`]), and
    /// the others end as with [`Self::finish`]: what is told of them names their aggregation rule of before.
    pub fn replan(
        &mut self,
        plans: Vec<AggregationRulePlan>,
        limits: AggregationRuleLimits,
        to: &[Option<u16>],
        now: Now,
        mut emit: impl FnMut(Rolled<'_>),
    ) -> Told {
        assert!(plans.iter().all(|plan| plan.check().is_ok()), "plans are checked before");
        assert_eq!(to.len(), self.plans.len(), "each aggregation rule goes on or ends");
        let now_s = self.time(now);
        let before = std::mem::take(&mut self.series);
        self.shortest_s = shortest_s(&plans);
        let of_before = std::mem::replace(&mut self.plans, plans);
        self.limits = limits;
        self.forget();
        let mut told = Told::default();
        for mut series in before.into_iter().flatten() {
            let aggregation_rule = usize::from(series.aggregation_rule);
            match to[aggregation_rule] {
                Some(aggregation_rule) => {
                    series.aggregation_rule = aggregation_rule;
                    self.put(series);
                }
                None => series.finish(&of_before[aggregation_rule], now_s, &mut told, &mut emit),
            }
        }
        told
    }

    /// Counts for self-metrics.
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
            // Each series is looked at: those that were told may be open again, and nothing waits for a day.
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
        self.series[at].as_ref().expect("the index names places in use")
    }

    fn begin(&mut self, hash: u64, feed: &Feed<'_>, open: u64) -> usize {
        let splay_s = self.splay_s(feed.aggregation_rule, feed.name);
        let (aggregation_rule, compute) = (feed.aggregation_rule, feed.compute);
        let name = feed.name.into();
        self.insert(Series { hash, name, aggregation_rule, compute, splay_s, open, windows: Windows::new() })
    }

    /// Of the name alone, so that the same input is told at the same time by each process.
    fn splay_s(&self, aggregation_rule: u16, name: &[u8]) -> u64 {
        key_hash(name) % u64::from(self.plans[usize::from(aggregation_rule)].every_s.min(10))
    }

    /// A series with its windows, which is not there yet.
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
        let series = self.series[at].as_mut().expect("the index names places in use");
        let taken = series.windows.bytes();
        let (windows, kept, values) = match series.windows.get(number) {
            Some(window) => {
                (taken, window.kept_bytes_of_one_more(compute) - window.kept_bytes(), window.kept())
            }
            None => {
                (series.windows.bytes_of_one_more(), Window::default().kept_bytes_of_one_more(compute), 0)
            }
        };
        // A list that becomes a tree may take less.
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

    /// What is taken of `bytes_max`.
    fn taken_bytes(&self) -> usize {
        self.bytes + PLACE_BYTES * self.series.capacity()
    }

    fn has_room(&self, more: usize) -> bool {
        self.taken_bytes() + more <= self.limits.bytes_max
    }

    /// What a series of this name takes more, without windows.
    fn bytes_of_one_more(&self, name: &[u8]) -> usize {
        let is_full = self.free.is_empty() && self.series.len() == self.series.capacity();
        let places = if is_full { grown(self.series.len()) - self.series.len() } else { 0 };
        name.len() + places * PLACE_BYTES
    }

    /// After a peak: places behind the last series go, and room for many more than there are.
    fn give_back(&mut self) {
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
            // No more than there are places, with which it is counted.
            let room = grown(self.free.len()).min(self.series.capacity());
            self.free.reserve_exact(room.saturating_sub(self.free.len()));
        }
        self.free.push(Reverse(at as u32));
    }
}

/// What the first window of a result takes.
fn first_bytes(compute: Compute) -> usize {
    Windows::new().bytes_of_one_more() + Window::default().kept_bytes_of_one_more(compute)
}

fn shortest_s(plans: &[AggregationRulePlan]) -> u64 {
    plans.iter().map(|plan| u64::from(plan.every_s)).min().unwrap_or(0)
}
