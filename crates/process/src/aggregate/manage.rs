//! Looking at series and deleting them from outside (management ports, the API).

use model::{Kind, SeriesRef};

use super::Aggregator;
use super::birth::is_exempt;
use super::counters::Counter;
use super::gauges::Gauge;
use super::sets::Set;
use super::table::{GHOST, KEPT, State};
use super::timers::Timer;

/// What a series holds now. While a sweep is under way, a series that it has not reached still shows the closed
/// window.
#[derive(Clone, Debug, PartialEq)]
pub enum Current<'a> {
    /// Sum of the window so far.
    Counter(f64),
    /// Last value.
    Gauge(f64),
    /// Values in order of arrival and the observations that they stand for. `values` is empty when there are
    /// so many that only a sketch of them is kept.
    Timer {
        /// The values.
        values: &'a [f64],
        /// Observations, sample rates included.
        count: f64,
    },
    /// Distinct members. `members` is empty when they are only estimated.
    Set {
        /// How many.
        count: u64,
        /// The members, in order of arrival.
        members: Vec<&'a [u8]>,
    },
}

impl Aggregator {
    /// Shows series of one kind from a place on (0 for the first), at most `max` of them. Gives the place to go on
    /// from; None at the end. Series that come and go between two calls may be missed, no other is shown twice.
    pub fn visit(
        &self,
        kind: Kind,
        from: usize,
        max: usize,
        mut see: impl FnMut(SeriesRef<'_>, Current<'_>),
    ) -> Option<usize> {
        match kind {
            Kind::Counter => self.visit_kind::<Counter>(from, max, |series, counter| {
                see(series, Current::Counter(counter.sum));
            }),
            Kind::Gauge => self.visit_kind::<Gauge>(from, max, |series, gauge| {
                see(series, Current::Gauge(gauge.value));
            }),
            Kind::Timer => self.visit_kind::<Timer>(from, max, |series, timer| {
                see(series, Current::Timer { values: timer.values(), count: timer.count() });
            }),
            Kind::Set => self.visit_kind::<Set>(from, max, |series, set| {
                let text = set.text();
                let members =
                    if text.is_empty() { Vec::new() } else { text.split(|b| *b == b'\n').collect() };
                see(series, Current::Set { count: set.count(), members });
            }),
        }
    }

    fn visit_kind<S: State>(
        &self,
        from: usize,
        max: usize,
        mut see: impl FnMut(SeriesRef<'_>, &S),
    ) -> Option<usize> {
        let slab = &S::table(&self.tables).slab;
        let mut from = u32::try_from(from).ok()?;
        let mut seen = 0;
        loop {
            let id = slab.next_taken(from)?;
            if seen == max {
                return Some(id as usize);
            }
            let entry = slab.get(id);
            if !entry.has(GHOST) {
                see(entry.series(&self.keys.arena), &entry.state);
                seen += 1;
            }
            from = id + 1;
        }
    }

    /// Deletes the series whose written form is `name`: its canonical name and, if it has tags, `;` and the
    /// canonical tags. What it held of an open window is gone. False when there is none. Looks at all series
    /// of the kind: some milliseconds for a million.
    pub fn delete(&mut self, kind: Kind, name: &[u8]) -> bool {
        let mut deleted = 0;
        self.delete_where(kind, |form| form == name, |_| deleted += 1);
        deleted > 0
    }

    /// Deletes the series whose written form (see [`Aggregator::delete`]) begins with `prefix`, shows each form to
    /// `deleted`, and gives their number.
    pub fn delete_prefix(&mut self, kind: Kind, prefix: &[u8], deleted: impl FnMut(&[u8])) -> usize {
        self.delete_where(kind, |form| form.starts_with(prefix), deleted)
    }

    fn delete_where(&mut self, kind: Kind, is: impl Fn(&[u8]) -> bool, deleted: impl FnMut(&[u8])) -> usize {
        let count = match kind {
            Kind::Counter => self.delete_of::<Counter>(is, deleted),
            Kind::Gauge => self.delete_of::<Gauge>(is, deleted),
            Kind::Timer => self.delete_of::<Timer>(is, deleted),
            Kind::Set => self.delete_of::<Set>(is, deleted),
        };
        if count > 0 {
            self.changed = true;
            self.keys.purge_aliases(&self.tables);
        }
        count
    }

    fn delete_of<S: State>(&mut self, is: impl Fn(&[u8]) -> bool, mut deleted: impl FnMut(&[u8])) -> usize {
        let (mut from, mut count) = (0, 0);
        let mut form = Vec::new();
        while let Some(id) = S::table(&self.tables).slab.next_taken(from) {
            from = id + 1;
            let entry = S::table(&self.tables).slab.get(id);
            if entry.has(GHOST) {
                continue;
            }
            let series = entry.series(&self.keys.arena);
            let tagged = !series.tags.is_empty();
            if tagged {
                form.clear();
                form.extend_from_slice(series.name);
                form.push(b';');
                form.extend_from_slice(series.tags);
            }
            let form = if tagged { &form } else { series.name };
            if is(form) {
                deleted(form);
                self.remove::<S>(id);
                self.totals.deleted += 1;
                count += 1;
            }
        }
        count
    }

    /// Works out anew which counters are exempt from deletion, after the plan's list has changed.
    pub(super) fn renew_exemptions(&mut self) {
        let slab = &mut self.tables.counters.slab;
        let mut from = 0;
        while let Some(id) = slab.next_taken(from) {
            from = id + 1;
            let entry = slab.get_mut(id);
            let exempt = is_exempt(entry.key.of(&self.keys.arena).name, &self.plan.keep_contains);
            if exempt { entry.set(KEPT) } else { entry.unset(KEPT) }
        }
    }
}
