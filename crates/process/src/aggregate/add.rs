//! Adds a batch of samples to their series: the hot path. Unknown names are handled in `create`.
//!
//! A batch is processed in groups of a few samples, in two passes. The first pass probes the index for the whole
//! group: the probes depend on the hash only, so their cache misses overlap. The second pass adds the samples in
//! order.

use model::{Canonical, FlushInfo, Flushed, Kind, Now, RawKey, Sample, SampleView, SeriesRef, Value};

use super::context::Context;
use super::counters::Counter;
use super::entry::{self, ACTIVE, Key, TOMBSTONE};
use super::gauges::Gauge;
use super::hint::{Found, Hint};
use super::index::{Place, short};
use super::sets::Set;
use super::state::AddResult;
use super::table::{self, Disposition, Stored};
use super::timers::Timer;
use super::{Added, Aggregator};

/// Samples whose index probes run in one pass. 16 and 64 were slower with a million names.
const GROUP: usize = 32;
/// Number of series from which they no longer fit into the CPU caches, so that prefetching pays (92 ns a sample
/// instead of 164, a million names in random order; example `add_speed`).
const MANY: u32 = 20_000;

/// Longest key (name and tags together, in bytes) that is looked up again for each value of a line. For shorter
/// keys a lookup costs less than keeping its result.
const SHORT_KEY_BYTES: usize = 64;

/// The callbacks of one `add` call.
struct Hooks<C, E> {
    canonical: C,
    emit: E,
}

impl Aggregator {
    /// Adds the samples of `view`, in order.
    ///
    /// `canonical` is called for unknown raw keys: it appends the canonical name, and after it the canonical tags,
    /// to the buffer. A key that is canonical already must come back unchanged. `emit` receives samples that carry
    /// a timestamp, and series of a closed window that get a sample before the sweep reaches them.
    pub fn add(
        &mut self,
        view: SampleView<'_>,
        now: Now,
        canonical: impl FnMut(Kind, RawKey<'_>, &mut Vec<u8>) -> Canonical,
        emit: impl FnMut(&FlushInfo, Flushed<'_>),
    ) -> Added {
        let mut added = Added::default();
        let mut hooks = Hooks { canonical, emit };
        self.beat = entry::beat(now);
        self.changed |= !view.samples.is_empty();
        self.found = None;
        let many = self.entries() > MANY;
        for samples in view.samples.chunks(GROUP) {
            let mut places = [None; GROUP];
            for (place, sample) in places.iter_mut().zip(samples) {
                *place = self.keys.index.probe(short(sample.hash));
            }
            if many {
                self.touch(&places);
            }
            for (place, sample) in places.iter().zip(samples) {
                let raw = RawKey { name: sample.name.of(view.bytes), tags: sample.tags.of(view.bytes) };
                let hint = Hint { hash: sample.hash, raw, place: *place };
                if sample.extra != 0 && self.route(&view, sample, hint, &mut hooks, &mut added) {
                    continue;
                }
                self.add_sample(view.bytes, sample, hint, &mut hooks, &mut added);
            }
        }
        debug_assert_eq!(
            view.samples.len() as u64,
            added.aggregated
                + added.routed
                + added.dropped_series_max
                + added.dropped_timer_values
                + added.dropped_bytes_max
                + added.rejected_non_finite,
            "every sample is counted once"
        );
        added
    }

    /// Prefetches what the samples of a group need, so that their cache misses overlap: first the entries, then the
    /// keys that the entries point at.
    fn touch(&self, places: &[Option<Place>; GROUP]) {
        let mut keys = [Key::default(); GROUP];
        for (key, place) in keys.iter_mut().zip(places) {
            if let Some(place) = place {
                *key = self.keys.key_at(&self.tables, *place);
            }
        }
        let mut seen = 0;
        for key in keys {
            seen ^= self.keys.arena.touch(key.at, key.name_len as usize);
        }
        std::hint::black_box(seen);
    }

    #[inline]
    fn add_sample<C, E>(
        &mut self,
        bytes: &[u8],
        sample: &Sample,
        hint: Hint<'_>,
        hooks: &mut Hooks<C, E>,
        added: &mut Added,
    ) where
        C: FnMut(Kind, RawKey<'_>, &mut Vec<u8>) -> Canonical,
        E: FnMut(&FlushInfo, Flushed<'_>),
    {
        let weight = sample.weight;
        let number = match sample.value {
            Value::Number(number) if sample.kind == Kind::Counter => number * weight,
            Value::Number(number) => number,
            Value::Text(member) if sample.kind == Kind::Set => {
                let member = member.of(bytes);
                return self.change::<Set, C, E>(hint, hooks, added, |set, seed, context| {
                    set.add(member, seed, context)
                });
            }
            Value::Text(_) => f64::NAN,
        };
        if sample.kind == Kind::Set || !(number.is_finite() || self.context.allow_non_finite) {
            // Checked before a series is created. The value of a set sample is text, so it has no such check.
            added.rejected_non_finite += 1;
            return;
        }
        match sample.kind {
            Kind::Counter => self.change::<Counter, C, E>(hint, hooks, added, |counter, _, context| {
                AddResult::finite(counter.add(number, context.allow_non_finite))
            }),
            Kind::Gauge => self.change::<Gauge, C, E>(hint, hooks, added, |gauge, _, context| {
                AddResult::finite(gauge.add(number, sample.gauge_op, context.allow_non_finite))
            }),
            Kind::Timer | Kind::Set => self.change::<Timer, C, E>(hint, hooks, added, |timer, _, context| {
                timer.add(number, weight, context)
            }),
        }
    }

    /// Finds or creates the series of a sample, moves it to the current window, and applies the sample.
    #[inline]
    fn change<S: Stored, C, E>(
        &mut self,
        hint: Hint<'_>,
        hooks: &mut Hooks<C, E>,
        added: &mut Added,
        change: impl FnOnce(&mut S, u32, &mut Context) -> AddResult,
    ) where
        C: FnMut(Kind, RawKey<'_>, &mut Vec<u8>) -> Canonical,
        E: FnMut(&FlushInfo, Flushed<'_>),
    {
        let Some(id) = self.find::<S, C>(hint, &mut hooks.canonical, added) else {
            self.count_refused(hint.raw, added);
            return;
        };
        if !S::table(&self.tables).slab.get(id).is_open(self.parity) {
            self.open::<S>(id, &mut hooks.emit);
        }
        let entry = S::table_mut(&mut self.tables).slab.get_mut(id);
        match change(&mut entry.state, entry.hash, &mut self.context) {
            AddResult::Added => {
                entry.set(ACTIVE);
                entry.seen = self.beat;
                added.aggregated += 1;
            }
            AddResult::NonFinite => added.rejected_non_finite += 1,
            AddResult::Full => added.dropped_timer_values += 1,
            AddResult::NoRoom => added.dropped_bytes_max += 1,
        }
    }

    /// The series of a sample. Creates it when it is unknown; None at a limit.
    #[inline(always)]
    fn find<S: Stored, C>(&mut self, hint: Hint<'_>, canonical: &mut C, added: &mut Added) -> Option<u32>
    where
        C: FnMut(Kind, RawKey<'_>, &mut Vec<u8>) -> Canonical,
    {
        if hint.raw.name.len() + hint.raw.tags.len() > SHORT_KEY_BYTES {
            return self.find_once::<S, C>(hint, canonical, added);
        }
        let known = hint.place.and_then(|place| self.keys.confirm::<S>(&self.tables, place, hint.raw));
        known.or_else(|| self.find_once::<S, C>(hint, canonical, added))
    }

    /// As `find`, for long or unknown keys: one lookup for all values of a line.
    #[cold]
    #[inline(never)]
    fn find_once<S: Stored, C>(&mut self, hint: Hint<'_>, canonical: &mut C, added: &mut Added) -> Option<u32>
    where
        C: FnMut(Kind, RawKey<'_>, &mut Vec<u8>) -> Canonical,
    {
        let at = Found::place(hint.raw);
        if let Some(found) = &self.found
            && (found.at, found.kind) == (at, S::KIND)
        {
            return found.id;
        }
        let id = self.locate::<S>(hint, canonical, added);
        self.found = Some(Found { at, kind: S::KIND, id });
        id
    }

    /// Moves a series to the current window: flushes it if the sweep has not done so, and revives a tombstone.
    #[cold]
    #[inline(never)]
    pub(super) fn open<S: Stored>(&mut self, id: u32, emit: &mut impl FnMut(&FlushInfo, Flushed<'_>)) {
        let table = S::table_mut(&mut self.tables);
        let entry = table.slab.get_mut(id);
        if entry.parity() != self.parity {
            let closing = self.closing.as_mut().expect("the other parity exists only during a sweep");
            let idle = S::idle(&self.plan.idle);
            // On `Remove` the series starts again, with this sample as its first.
            if table::flush(entry, &self.keys.arena, idle, closing, &mut self.context, emit)
                == Disposition::Drain
            {
                table.tombstones += 1;
            }
        }
        if entry.has(TOMBSTONE) {
            entry.unset(TOMBSTONE);
            table.tombstones -= 1;
        }
    }

    /// Emits a counter or gauge sample that carries a timestamp. False when the sample has none.
    #[inline(never)]
    fn route<C, E>(
        &mut self,
        view: &SampleView<'_>,
        sample: &Sample,
        hint: Hint<'_>,
        hooks: &mut Hooks<C, E>,
        added: &mut Added,
    ) -> bool
    where
        C: FnMut(Kind, RawKey<'_>, &mut Vec<u8>) -> Canonical,
        E: FnMut(&FlushInfo, Flushed<'_>),
    {
        let extra = view.extras.get(usize::from(sample.extra) - 1);
        let Some(time_s) = extra.and_then(|extra| extra.timestamp_s) else { return false };
        let value = match (sample.kind, sample.value) {
            (Kind::Counter, Value::Number(number)) => number * sample.weight,
            (Kind::Gauge, Value::Number(number)) => number,
            _ => return false,
        };
        if !value.is_finite() && !self.context.allow_non_finite {
            added.rejected_non_finite += 1;
            return true;
        }
        self.canonical.clear();
        let form = (hooks.canonical)(sample.kind, hint.raw, &mut self.canonical);
        let (name, tags) = self.canonical.split_at(form.name_len);
        let series = SeriesRef { name, tags, clean: form.clean };
        let window_s = self.plan.window_ms as f64 / 1000.0;
        let info = FlushInfo { time_s, window_s, elapsed_s: window_s };
        (hooks.emit)(&info, Flushed::Timestamped { series, kind: sample.kind, value, time_s });
        added.routed += 1;
        true
    }
}
