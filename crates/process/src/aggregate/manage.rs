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
        /// The members, in order of arrival, with a line feed between them.
        members: &'a [u8],
    },
}

/// What follows a series that was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// The next.
    On,
    /// Nothing now; later the next.
    Stop,
    /// Nothing now; later the same series again, if it is still there.
    Again,
}

impl Aggregator {
    /// Shows series of one kind, each with its place, from a place on (0 for the first), for as long as `looks` lasts: one
    /// is spent on each series, also on one that cannot be seen. Stops at a series for which `see` says so. Gives the place to go on from; None at the end.
    /// Series that come and go between two calls may be missed, no other is shown twice.
    pub fn visit(
        &self,
        kind: Kind,
        from: usize,
        looks: &mut usize,
        mut see: impl FnMut(usize, SeriesRef<'_>, Current<'_>) -> Look,
    ) -> Option<usize> {
        match kind {
            Kind::Counter => self.visit_kind::<Counter>(from, looks, |place, series, counter| {
                see(place, series, Current::Counter(counter.sum))
            }),
            Kind::Gauge => self.visit_kind::<Gauge>(from, looks, |place, series, gauge| {
                see(place, series, Current::Gauge(gauge.value))
            }),
            Kind::Timer => self.visit_kind::<Timer>(from, looks, |place, series, timer| {
                see(place, series, Current::Timer { values: timer.values(), count: timer.count() })
            }),
            Kind::Set => self.visit_kind::<Set>(from, looks, |place, series, set| {
                see(place, series, Current::Set { count: set.count(), members: set.text() })
            }),
        }
    }

    fn visit_kind<S: State>(
        &self,
        from: usize,
        looks: &mut usize,
        mut see: impl FnMut(usize, SeriesRef<'_>, &S) -> Look,
    ) -> Option<usize> {
        let slab = &S::table(&self.tables).slab;
        let mut from = u32::try_from(from).ok()?;
        loop {
            let id = slab.next_taken(from)?;
            if *looks == 0 {
                return Some(id as usize);
            }
            *looks -= 1;
            from = id + 1;
            let entry = slab.get(id);
            if entry.has(GHOST) {
                continue;
            }
            match see(id as usize, entry.series(&self.keys.arena), &entry.state) {
                Look::On => {}
                Look::Stop => return slab.next_taken(from).map(|next| next as usize),
                Look::Again => return Some(id as usize),
            }
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
    pub fn delete_prefix(&mut self, kind: Kind, prefix: &[u8], mut deleted: impl FnMut(&[u8])) -> usize {
        let mut count = 0;
        self.delete_where(
            kind,
            |form| form.starts_with(prefix),
            |form| {
                count += 1;
                deleted(form);
            },
        );
        count
    }

    fn delete_where(&mut self, kind: Kind, is: impl Fn(&[u8]) -> bool, deleted: impl FnMut(&[u8])) {
        let before = self.totals.deleted;
        let _none = self.delete_some(kind, 0, usize::MAX, is, deleted);
        if self.totals.deleted != before {
            self.keys.purge_aliases(&self.tables);
        }
    }

    /// Deletes series of one kind whose written form (see [`Aggregator::delete`]) `is` one, from a place on (0 for the
    /// first), of at most `max` that are looked at, and shows each form to `deleted`. Gives the place to go on from; None
    /// at the end. Their aliases end with the next sweep, as those of expired series do.
    pub fn delete_some(
        &mut self,
        kind: Kind,
        from: usize,
        max: usize,
        is: impl Fn(&[u8]) -> bool,
        deleted: impl FnMut(&[u8]),
    ) -> Option<usize> {
        match kind {
            Kind::Counter => self.delete_of::<Counter>(from, max, is, deleted),
            Kind::Gauge => self.delete_of::<Gauge>(from, max, is, deleted),
            Kind::Timer => self.delete_of::<Timer>(from, max, is, deleted),
            Kind::Set => self.delete_of::<Set>(from, max, is, deleted),
        }
    }

    fn delete_of<S: State>(
        &mut self,
        from: usize,
        max: usize,
        is: impl Fn(&[u8]) -> bool,
        mut deleted: impl FnMut(&[u8]),
    ) -> Option<usize> {
        let mut from = u32::try_from(from).ok()?;
        let mut looked_at = 0;
        let mut form = Vec::new();
        loop {
            let id = S::table(&self.tables).slab.next_taken(from)?;
            if looked_at == max {
                return Some(id as usize);
            }
            looked_at += 1;
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
                self.changed = true;
            }
        }
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
