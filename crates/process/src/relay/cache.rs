//! Cache of decisions by name, limited in entries and bytes: a known name costs one lookup.
//!
//! Path of a line: **[`CachedRouter::route`]** -> the young generation -> the old one -> `Router::decide`.
//! The cache has two generations. Names in use move to the young one. When that is full it becomes the old one, and
//! the previous old one is evicted. Names are compared byte for byte, never by hash alone. Equal decisions are
//! stored once: with three endpoints there are hardly more than three of them.
//! Not here: reload. A new plan gets a new `CachedRouter`, and the old cache goes away with the old router.
//! Invariants: a cached decision equals the router's own; neither limit is exceeded by more than one name.

use foldhash::{SharedSeed, fast::FoldHasher};
use hashbrown::HashTable;
use model::OutputId;
use std::hash::{Hash, Hasher};

use super::decision::{Act, Content, Decision, Draft, Line, Routing};
use super::expression::NAME_WORK;
use super::names::{FETCH_MAX, Names};
use super::router::{Entry, Router};

/// Work, in bytes searched, after which the caller should check the time: about a tenth of a millisecond of
/// searches in hostile names.
const WORK_MAX: u64 = 16 << 10;

/// Decisions freed per call, and pieces of names with them. It is more than the number of new names between two
/// calls.
const FREED_AT_ONCE: usize = 2 * (WORK_MAX / NAME_WORK) as usize;
const PIECES_FREED_AT_ONCE: usize = 8;

/// Evicted generations up to this size are freed at once.
const FREED_AT_ONCE_BYTES: usize = 256 << 10;

/// Work of a value for an aggregation rule: its series and window may be anywhere in memory.
const FED_WORK: u64 = 64;

/// Limits of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLimits {
    /// Maximum names in both generations together; at least 2.
    pub names_max: usize,
    /// Maximum bytes of names, tables and decisions in both generations together.
    pub bytes_max: usize,
}

impl Default for CacheLimits {
    /// Room for 2 million names of 48 bytes.
    fn default() -> CacheLimits {
        CacheLimits { names_max: 4 << 20, bytes_max: 512 << 20 }
    }
}

/// A router with a cache of its decisions.
#[derive(Debug)]
pub struct CachedRouter {
    router: Router,
    limits: CacheLimits,
    seed: u64,
    shared: SharedSeed,
    young: Generation,
    old: Generation,
    /// The evicted generation, freed in small steps: freeing millions of names at once would take some tens of
    /// milliseconds.
    evicted: Option<Box<Generation>>,
    /// Bytes searched since the last call of [`CachedRouter::has_worked_much`].
    work: u64,
    /// Buffers for new decisions.
    draft: Draft,
    figures: CacheFigures,
    /// Lines so far; `lb` uses it.
    turn: u64,
}

/// Figures of the cache since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheFigures {
    /// Lines whose name was cached.
    pub hits: u64,
    /// Lines for which the statements were evaluated.
    pub misses: u64,
    /// Evictions: times that the older half of the names was dropped.
    pub turned: u64,
}

#[derive(Debug, Default)]
struct Generation {
    /// Names, each with an index into `decisions`.
    names: Names,
    decisions: Vec<Decision>,
    /// Indexes into `decisions`, by content.
    known: HashTable<u32>,
    decisions_bytes: usize,
    /// Memory of the two tables above.
    tables_bytes: usize,
}

impl CachedRouter {
    /// Maximum names that [`fetch`](CachedRouter::fetch) prefetches.
    pub const FETCH_MAX: usize = FETCH_MAX;

    /// A router with an empty cache. `seed` must be random: otherwise senders can choose names of results that
    /// collide.
    pub fn new(router: Router, limits: CacheLimits, seed: u64) -> CachedRouter {
        assert!(limits.names_max >= 2 && limits.bytes_max / 2 < u32::MAX as usize, "offsets have 32 bits");
        CachedRouter {
            router,
            limits,
            seed,
            shared: SharedSeed::from_u64(seed),
            young: Generation::default(),
            old: Generation::default(),
            evicted: None,
            work: 0,
            draft: Draft::default(),
            figures: CacheFigures::default(),
            turn: 0,
        }
    }

    /// The router.
    pub fn router(&self) -> &Router {
        &self.router
    }

    /// Sets whether an endpoint is up. Cached decisions stay valid: they do not depend on it.
    pub fn set_live(&mut self, output: OutputId, live: bool) {
        self.router.set_live(output, live);
    }

    /// Reports each action for a line. `hash` is the name's hash, from a function with a secret seed: the one that
    /// the intake computed ([`Point::hash`](model::Point::hash)), otherwise [`hash`](CachedRouter::hash). A name
    /// that arrives with two different hashes is routed correctly, and cached twice.
    #[inline]
    pub fn route(
        &mut self,
        entry: Entry,
        hash: u64,
        line: Line<'_>,
        act: &mut impl FnMut(Act<'_>),
    ) -> Routing {
        let turn = self.turn;
        self.turn += 1;
        let decision = self.find(entry, hash, line.name);
        // Borrowing through `find` would borrow the router too.
        let decision = &self.young.decisions[decision as usize];
        let line = Line { name: line.name, rest: line.rest };
        run(decision, &self.router, &mut self.work, line, turn, act)
    }

    /// True when lines since the last call have searched or aggregated enough that the caller should check the
    /// time. Cached names are not searched, except for `validate`.
    #[inline]
    pub fn has_worked_much(&mut self) -> bool {
        let much = self.work >= WORK_MAX;
        if much {
            self.begin_work();
        }
        much
    }

    /// Counts values of the last line that went to aggregation rules.
    #[inline]
    pub fn has_fed(&mut self, values: u32) {
        self.work += u64::from(values) * FED_WORK;
    }

    #[cold]
    fn begin_work(&mut self) {
        self.work = 0;
        if self.evicted.as_mut().is_some_and(|evicted| evicted.free_some()) {
            self.evicted = None;
        }
    }

    /// Prefetches the memory that [`route`](CachedRouter::route) will read for records with these hashes, at most
    /// [`FETCH_MAX`](CachedRouter::FETCH_MAX) of them. With many names, cache misses are most of the cost of a
    /// line.
    #[inline]
    pub fn fetch(&self, hashes: impl Iterator<Item = u64>) {
        self.young.names.fetch(hashes);
    }

    /// The decision for a name; `hash` as for [`route`](CachedRouter::route).
    #[inline]
    pub fn decision(&mut self, entry: Entry, hash: u64, name: &[u8]) -> &Decision {
        let decision = self.find(entry, hash, name);
        &self.young.decisions[decision as usize]
    }

    /// The hash of a name without one from the intake: of a result or a statistic.
    pub fn hash(&self, name: &[u8]) -> u64 {
        let mut hasher = FoldHasher::with_seed(self.seed, &self.shared);
        hasher.write(name);
        hasher.finish()
    }

    /// Figures of the cache.
    pub fn figures(&self) -> CacheFigures {
        self.figures
    }

    /// Continues from another cache's figures.
    pub fn go_on_with(&mut self, figures: CacheFigures) {
        let CacheFigures { hits, misses, turned } = figures;
        self.figures.hits += hits;
        self.figures.misses += misses;
        self.figures.turned += turned;
    }

    /// Number of cached names.
    pub fn len(&self) -> usize {
        self.young.names.len() + self.old.names.len()
    }

    /// True when no name is cached.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory of names and decisions.
    pub fn memory_bytes(&self) -> usize {
        self.young.memory_bytes()
            + self.old.memory_bytes()
            + self.evicted.as_ref().map_or(0, |evicted| evicted.memory_bytes())
    }

    /// The index of the decision in the young generation.
    #[inline]
    fn find(&mut self, entry: Entry, hash: u64, name: &[u8]) -> u32 {
        let kind = kind(entry);
        let hash = hash_of_both(kind, hash);
        if let Some(decision) = self.young.names.find(hash, kind, name) {
            self.figures.hits += 1;
            return decision;
        }
        self.found_elsewhere(entry, hash, name)
    }

    #[cold]
    fn found_elsewhere(&mut self, entry: Entry, hash: u64, name: &[u8]) -> u32 {
        let older = self.old.names.remove(hash, kind(entry), name);
        let older = older.map(|decision| self.old.decisions[decision as usize].clone());
        let content = match &older {
            Some(decision) => {
                self.figures.hits += 1;
                self.work += NAME_WORK;
                decision.content()
            }
            None => {
                self.figures.misses += 1;
                self.router.draft(entry, name, &mut self.draft);
                self.work += self.router.work(name);
                self.draft.content()
            }
        };
        let full = self.young.names.len() >= self.limits.names_max / 2;
        if full || self.young.memory_bytes_with(name.len(), content) > self.limits.bytes_max / 2 {
            self.figures.turned += 1;
            let old = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
            // Freed in small steps.
            self.evicted = (old.memory_bytes() > FREED_AT_ONCE_BYTES).then(|| Box::new(old));
        }
        let content_hash = |content: &Content| content_hash(self.seed, &self.shared, content);
        let decision = self.young.decision(content, content_hash);
        self.young.names.insert(hash, kind(entry), name, decision);
        decision
    }
}

/// The entry as a number.
#[inline]
fn kind(entry: Entry) -> u32 {
    match entry {
        Entry::Records => 0,
        Entry::Statistics => 1,
        Entry::Result(number) => u32::from(number) + 2,
    }
}

/// Combined hash of name and entry, so that results with the same name as other lines do not collide. For records
/// it is the name's own hash.
#[inline]
fn hash_of_both(kind: u32, hash: u64) -> u64 {
    // An odd factor with bits in all positions: different numbers give different hashes, in high and low bits.
    hash ^ u64::from(kind).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn content_hash(seed: u64, shared: &SharedSeed, content: &Content) -> u64 {
    let mut hasher = FoldHasher::with_seed(seed, shared);
    content.hash(&mut hasher);
    hasher.finish()
}

/// Joins the lifetimes of decision and line: `Act` has only one.
#[inline]
fn run<'a>(
    decision: &'a Decision,
    router: &Router,
    work: &mut u64,
    line: Line<'a>,
    turn: u64,
    act: &mut impl FnMut(Act<'_>),
) -> Routing {
    let act = &mut |one: Act<'a>| act(one);
    // The router is read only for lines that need it, which are few.
    decision.run_plain(act).unwrap_or_else(|| {
        *work += router.work_behind_name(line.rest);
        decision.run_steps(router, line, turn, act)
    })
}

impl Generation {
    /// The index of the decision with this content; stored if it is new.
    fn decision(&mut self, content: &Content, hash: impl Fn(&Content) -> u64) -> u32 {
        let own = hash(content);
        let decisions = &self.decisions;
        let same = |place: &u32| decisions[*place as usize].content() == content;
        if let Some(place) = self.known.find(own, same) {
            return *place;
        }
        let place = decisions.len() as u32;
        self.decisions_bytes += content.heap_bytes();
        self.decisions.push(content.decision());
        let decisions = &self.decisions;
        self.known.insert_unique(own, place, |place| hash(decisions[*place as usize].content()));
        self.tables_bytes = self.decisions.capacity() * size_of::<Decision>() + self.known.allocation_size();
        place
    }

    /// Frees some decisions and one piece of names. True when only the tables are left.
    fn free_some(&mut self) -> bool {
        for decision in self.decisions.drain(self.decisions.len().saturating_sub(FREED_AT_ONCE)..) {
            self.decisions_bytes -= decision.content().heap_bytes();
        }
        (0..PIECES_FREED_AT_ONCE).for_each(|_| self.names.free_piece());
        self.decisions.is_empty() && self.names.is_free()
    }

    fn memory_bytes(&self) -> usize {
        self.names.memory_bytes() + self.tables_bytes + self.decisions_bytes
    }

    /// The same after one more name: full tables and lists double.
    fn memory_bytes_with(&self, name_bytes: usize, decision: &Content) -> usize {
        let full = self.decisions.len() == self.decisions.capacity();
        let grown = if full { self.decisions.capacity().max(1) * size_of::<Decision>() } else { 0 };
        let names = self.names.memory_bytes_with(name_bytes);
        names + self.tables_bytes + self.decisions_bytes + grown + decision.heap_bytes()
    }
}
