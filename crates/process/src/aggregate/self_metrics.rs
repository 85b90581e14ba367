//! Self-metrics: counters and gauges about this process, by canonical name.
//!
//! They have no hash until a sample of the same name arrives from outside, which then shares the series. Only our
//! code names them, so the list stays short.

use model::{FlushInfo, Flushed, GaugeOp, Kind, RawKey};

use super::Aggregator;
use super::counters::Counter;
use super::entry::{ACTIVE, INDEXED, PARITY, SELF_METRIC, TOMBSTONE};
use super::gauges::Gauge;
use super::index::{Place, short};
use super::self_metric_names::SelfMetric;
use super::table::Stored;

impl Aggregator {
    /// Adds to a counter or sets a gauge that is a self-metric. The name must be canonical. Such a series is exempt
    /// from `series_max`. A gauge never expires; a counter does unless `keep_contains` lists it. Other kinds and
    /// values that are not finite are ignored.
    pub fn add_self_metric(
        &mut self,
        kind: Kind,
        name: &str,
        value: f64,
        mut emit: impl FnMut(&FlushInfo, Flushed<'_>),
    ) {
        debug_assert!(value.is_finite() && matches!(kind, Kind::Counter | Kind::Gauge));
        match kind {
            Kind::Counter => {
                self.change_self_metric::<Counter>(name, &mut emit, |counter| counter.add(value, false))
            }
            Kind::Gauge => {
                self.change_self_metric::<Gauge>(name, &mut emit, |gauge| {
                    gauge.add(value, GaugeOp::Assign, false)
                });
            }
            Kind::Timer | Kind::Set => {}
        }
    }

    /// Sets a self-metric gauge in the window that was just closed. Call it right after [`super::Tick::Started`],
    /// for figures that are known only then, such as node's `timestamp_lag` (spec statsd §15). Without a sweep
    /// under way, or when the gauge is flushed already, it is the same as `add_self_metric`.
    pub fn add_self_metric_closing(
        &mut self,
        name: &str,
        value: f64,
        emit: impl FnMut(&FlushInfo, Flushed<'_>),
    ) {
        debug_assert!(value.is_finite());
        let created = self.totals.created;
        let Some(id) = self.self_metric_id::<Gauge>(name) else { return };
        let is_new = self.totals.created != created;
        let entry = self.tables.gauges.slab.get_mut(id);
        if self.closing.is_some() && is_new && self.cursor.is_before::<Gauge>() {
            entry.set_parity(self.parity ^ PARITY);
        }
        if entry.parity() == self.parity || entry.has(TOMBSTONE) {
            return self.add_self_metric(Kind::Gauge, name, value, emit);
        }
        entry.state.add(value, GaugeOp::Assign, false);
        entry.set(ACTIVE);
        entry.seen = self.beat;
    }

    fn change_self_metric<S: Stored>(
        &mut self,
        name: &str,
        emit: &mut impl FnMut(&FlushInfo, Flushed<'_>),
        change: impl FnOnce(&mut S) -> bool,
    ) {
        let Some(id) = self.self_metric_id::<S>(name) else { return };
        if !S::table(&self.tables).slab.get(id).is_open(self.parity) {
            self.open::<S>(id, emit);
        }
        let entry = S::table_mut(&mut self.tables).slab.get_mut(id);
        if change(&mut entry.state) {
            entry.set(ACTIVE);
            entry.seen = self.beat;
        }
    }

    /// The number of the series; creates it if needed. The first use of a name searches all series, because a
    /// user's series of that name may exist.
    fn self_metric_id<S: Stored>(&mut self, name: &str) -> Option<u32> {
        let at = match self.self_metrics.place(S::KIND, name.as_bytes()) {
            Some(at) => at,
            None => {
                let id = self.search::<S>(name.as_bytes());
                if let Some(id) = id {
                    S::table_mut(&mut self.tables).slab.get_mut(id).set(SELF_METRIC);
                }
                self.self_metrics.list.push(SelfMetric { kind: S::KIND, name: name.as_bytes().into(), id });
                self.self_metrics.list.len() - 1
            }
        };
        if self.self_metrics.list[at].id.is_none() {
            let id = self.create_entry::<S>(RawKey { name: name.as_bytes(), tags: b"" }, is_clean(name))?;
            S::table_mut(&mut self.tables).slab.get_mut(id).set(SELF_METRIC);
            self.self_metrics.list[at].id = Some(id);
        }
        self.self_metrics.list[at].id
    }

    /// Finds a series without tags by name, with a scan of all series.
    fn search<S: Stored>(&self, name: &[u8]) -> Option<u32> {
        let slab = &S::table(&self.tables).slab;
        let mut from = 0;
        while let Some(id) = slab.next_taken(from) {
            if slab.get(id).key.is(RawKey { name, tags: b"" }, &self.keys.arena) {
                return Some(id);
            }
            from = id + 1;
        }
        None
    }

    /// The self-metric with this canonical key. From now on it is found by its hash.
    pub(super) fn adopt<S: Stored>(&mut self, hash: u64, key: RawKey<'_>) -> Option<u32> {
        if !key.tags.is_empty() {
            return None;
        }
        let id = self.self_metrics.list[self.self_metrics.place(S::KIND, key.name)?].id?;
        let entry = S::table_mut(&mut self.tables).slab.get_mut(id);
        if !entry.has(INDEXED) {
            entry.hash = short(hash);
            entry.set(INDEXED);
            self.keys.index.insert(short(hash), Place::series(S::KIND, id));
        }
        Some(id)
    }
}

/// See [`model::Canonical::clean`].
fn is_clean(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.;=".contains(&byte))
}
