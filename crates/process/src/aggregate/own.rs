//! Series of our own: self counters and gauges, by canonical name.
//!
//! They have no hash until a sample of the same name comes in from outside and adopts them. Their names are
//! ours, so the list stays short, and a user's series of the same name is the same series.

use model::{FlushInfo, Flushed, GaugeOp, Kind, RawKey};

use super::Aggregator;
use super::counters::Counter;
use super::gauges::Gauge;
use super::index::{Place, short};
use super::table::{ACTIVE, GHOST, INDEXED, OWN, PARITY, State};

#[derive(Clone, Debug)]
struct Own {
    kind: Kind,
    name: Box<[u8]>,
    /// None while it does not exist.
    id: Option<u32>,
}

/// Names that were ever given to [`Aggregator::add_own`].
#[derive(Clone, Debug, Default)]
pub(super) struct OwnSeries {
    list: Vec<Own>,
}

impl OwnSeries {
    fn place(&self, kind: Kind, name: &[u8]) -> Option<usize> {
        self.list.iter().position(|own| own.kind == kind && *own.name == *name)
    }

    /// How many exist.
    pub(super) fn held(&self) -> u32 {
        self.list.iter().filter(|own| own.id.is_some()).count() as u32
    }

    /// A series was made from outside. True when it is one of ours that did not exist.
    pub(super) fn link(&mut self, kind: Kind, key: RawKey<'_>, id: u32) -> bool {
        if !key.tags.is_empty() {
            return false;
        }
        let Some(at) = self.place(kind, key.name) else { return false };
        debug_assert!(self.list[at].id.is_none(), "an existing one would have been adopted");
        self.list[at].id = Some(id);
        true
    }

    /// The series was removed.
    pub(super) fn forget(&mut self, kind: Kind, id: u32) {
        if let Some(own) = self.list.iter_mut().find(|own| own.kind == kind && own.id == Some(id)) {
            own.id = None;
        }
    }
}

impl Aggregator {
    /// Adds to a counter, or sets a gauge, of our own. The name must be canonical. Such a series is not bound by
    /// `series_max`; a gauge never expires, a counter does unless `keep_contains` says otherwise. Other kinds
    /// and values that are not finite are ignored: nobody has such figures about himself.
    pub fn add_own(
        &mut self,
        kind: Kind,
        name: &str,
        value: f64,
        mut emit: impl FnMut(&FlushInfo, Flushed<'_>),
    ) {
        debug_assert!(value.is_finite() && matches!(kind, Kind::Counter | Kind::Gauge));
        match kind {
            Kind::Counter => self.change_own::<Counter>(name, &mut emit, |counter| counter.add(value, false)),
            Kind::Gauge => {
                self.change_own::<Gauge>(name, &mut emit, |gauge| gauge.add(value, GaugeOp::Assign, false));
            }
            Kind::Timer | Kind::Set => {}
        }
    }

    /// Sets a gauge of our own in the window that has just been closed: to be called right after
    /// [`super::Tick::Started`], for figures that are known only then, such as node's `timestamp_lag`
    /// (spec statsd §15). Without a sweep under way, or when the gauge is flushed already, it is as `add_own`.
    pub fn add_own_closing(&mut self, name: &str, value: f64, emit: impl FnMut(&FlushInfo, Flushed<'_>)) {
        debug_assert!(value.is_finite());
        let created = self.totals.created;
        let Some(id) = self.own_id::<Gauge>(name) else { return };
        let is_new = self.totals.created != created;
        let entry = self.tables.gauges.slab.get_mut(id);
        if self.closing.is_some() && is_new && self.cursor.is_before::<Gauge>() {
            entry.set_parity(self.parity ^ PARITY);
        }
        if entry.parity() == self.parity || entry.has(GHOST) {
            return self.add_own(Kind::Gauge, name, value, emit);
        }
        entry.state.add(value, GaugeOp::Assign, false);
        entry.set(ACTIVE);
        entry.seen = self.beat;
    }

    fn change_own<S: State>(
        &mut self,
        name: &str,
        emit: &mut impl FnMut(&FlushInfo, Flushed<'_>),
        change: impl FnOnce(&mut S) -> bool,
    ) {
        let Some(id) = self.own_id::<S>(name) else { return };
        if !S::table(&self.tables).slab.get(id).is_open(self.parity) {
            self.open::<S>(id, emit);
        }
        let entry = S::table_mut(&mut self.tables).slab.get_mut(id);
        if change(&mut entry.state) {
            entry.set(ACTIVE);
            entry.seen = self.beat;
        }
    }

    /// Its number, if need be a new one. The first time a name is used all series are searched, because a user's
    /// series of that name may exist.
    fn own_id<S: State>(&mut self, name: &str) -> Option<u32> {
        let at = match self.own.place(S::KIND, name.as_bytes()) {
            Some(at) => at,
            None => {
                let id = self.search::<S>(name.as_bytes());
                if let Some(id) = id {
                    S::table_mut(&mut self.tables).slab.get_mut(id).set(OWN);
                }
                self.own.list.push(Own { kind: S::KIND, name: name.as_bytes().into(), id });
                self.own.list.len() - 1
            }
        };
        if self.own.list[at].id.is_none() {
            let id = self.birth::<S>(RawKey { name: name.as_bytes(), tags: b"" }, is_clean(name))?;
            S::table_mut(&mut self.tables).slab.get_mut(id).set(OWN);
            self.own.list[at].id = Some(id);
        }
        self.own.list[at].id
    }

    /// A series without tags by its name, by looking at all of them.
    fn search<S: State>(&self, name: &[u8]) -> Option<u32> {
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

    /// The series of our own that has this canonical key, from now on found by its hash.
    pub(super) fn adopt<S: State>(&mut self, hash: u64, key: RawKey<'_>) -> Option<u32> {
        if !key.tags.is_empty() {
            return None;
        }
        let id = self.own.list[self.own.place(S::KIND, key.name)?].id?;
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
