//! Listing and deleting series on request (management ports, the API).

use model::{Kind, SeriesRef};

use super::Aggregator;
use super::counters::Counter;
use super::create::is_exempt;
use super::entry::{KEPT, TOMBSTONE};
use super::gauges::Gauge;
use super::sets::Set;
use super::table::Stored;
use super::timers::Timer;

/// The current value of a series. While a sweep is under way, a series that it has not reached still shows the
/// closed window.
#[derive(Clone, Debug, PartialEq)]
pub enum Current<'a> {
    /// Sum of the window so far.
    Counter(f64),
    /// Last value.
    Gauge(f64),
    /// Values in order of arrival, and the number of observations. `values` is empty when there are so many that
    /// only a sketch is kept.
    Timer {
        /// The values.
        values: &'a [f64],
        /// Observations, scaled by sample rates.
        count: f64,
    },
    /// Distinct members. `members` is empty when they are only estimated.
    Set {
        /// Number of members.
        count: u64,
        /// The members in order of arrival, separated by line feeds.
        members: &'a [u8],
    },
}

/// What [`Aggregator::visit`] does after a series was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// Continue with the next series.
    Next,
    /// Pause, and continue later with the next series.
    Pause,
    /// Pause, and continue later with the same series, if it still exists.
    PauseHere,
}

impl Aggregator {
    /// Shows the series of one kind, each with its place, starting at a place (0 for the first). Each series costs
    /// one of `looks`, also one that is not shown. Stops when `looks` is used up or `see` asks for it. Returns the
    /// place to continue at; None at the end. Series that are created or removed between two calls may be missed.
    /// No series is shown twice.
    pub fn visit(
        &self,
        kind: Kind,
        from: usize,
        looks: &mut usize,
        mut see: impl FnMut(usize, SeriesRef<'_>, Current<'_>) -> Visit,
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

    fn visit_kind<S: Stored>(
        &self,
        from: usize,
        looks: &mut usize,
        mut see: impl FnMut(usize, SeriesRef<'_>, &S) -> Visit,
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
            if entry.has(TOMBSTONE) {
                continue;
            }
            match see(id as usize, entry.series(&self.keys.arena), &entry.state) {
                Visit::Next => {}
                Visit::Pause => return slab.next_taken(from).map(|next| next as usize),
                Visit::PauseHere => return Some(id as usize),
            }
        }
    }

    /// Deletes the series whose text form is `name`: its canonical name and, if it has tags, `;` and the canonical
    /// tags. Its value in the open window is lost. Returns false when there is no such series. Scans all series of
    /// the kind: some milliseconds for a million.
    pub fn delete(&mut self, kind: Kind, name: &[u8]) -> bool {
        let mut deleted = 0;
        self.delete_where(kind, |form| form == name, |_| deleted += 1);
        deleted > 0
    }

    /// Deletes the series whose text form (see [`Aggregator::delete`]) begins with `prefix`, passes each form to
    /// `deleted`, and returns their number.
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

    /// Deletes the series of one kind for whose text form (see [`Aggregator::delete`]) `is` returns true, and
    /// passes each form to `deleted`. Scans at most `max` series, starting at a place (0 for the first). Returns
    /// the place to continue at; None at the end. Their aliases are removed by the next sweep, as those of expired
    /// series are.
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

    fn delete_of<S: Stored>(
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
            if entry.has(TOMBSTONE) {
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

    /// Recomputes which counters are exempt from deletion, after the list in the plan has changed.
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
