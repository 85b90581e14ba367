//! Decisions known by name, bounded in number and in bytes: a name seen before costs one look-up.
//!
//! Path of a line: **[`CachedRouter::route`]** -> the young generation -> the old one -> `Router::decide`.
//! Two generations, like the series of a stage: what is used lies in the young one; when that is full it becomes the old
//! one, and the old one is forgotten. Names are compared byte for byte, never by hash alone. Equal decisions are kept
//! once: with three endpoints there are hardly more than three of them.
//! Not here: reload. Another plan is another `CachedRouter`, and what was known goes with the old one.
//! Invariants: a decision from here equals the router's own; neither bound is ever passed, but by one name.

use foldhash::{SharedSeed, fast::FoldHasher};
use hashbrown::HashTable;
use model::OutputId;
use std::hash::{Hash, Hasher};

use super::decision::{Act, Content, Decision, Draft, Line, Routing};
use super::names::{FETCH_MAX, Names};
use super::router::{Entry, Router};

/// Work after which somebody should look whether a turn has taken long enough, in bytes searched: some tenth of a millisecond
/// of searches that hostile names make slow.
const WORK_MAX: u64 = 16 << 10;

/// Decisions that are freed at each look, and pieces of names with them: more than the names that are new between two looks add.
const FREED_AT_ONCE: usize = 2 * (WORK_MAX / NAME_WORK) as usize;
const PIECES_FREED_AT_ONCE: usize = 8;

/// What is forgotten is freed at once up to this.
const FORGOTTEN_AT_ONCE_BYTES: usize = 256 << 10;

/// What a name that is new counts as at least.
pub(super) const NAME_WORK: u64 = 16;

/// What a value for an aggregation rule counts as: its series and its window are looked for wherever they are in memory.
const FED_WORK: u64 = 64;

/// How much is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLimits {
    /// Most names, in both generations together; at least 2.
    pub names_max: usize,
    /// Most bytes of names, tables and decisions, in both generations together.
    pub bytes_max: usize,
}

impl Default for CacheLimits {
    /// Room for 2 million names of 48 bytes.
    fn default() -> CacheLimits {
        CacheLimits { names_max: 4 << 20, bytes_max: 512 << 20 }
    }
}

/// A router that remembers its decisions.
#[derive(Debug)]
pub struct CachedRouter {
    router: Router,
    limits: CacheLimits,
    seed: u64,
    shared: SharedSeed,
    young: Generation,
    old: Generation,
    /// Forgotten, and freed bit by bit: millions of names at once would take some tens of milliseconds.
    gone: Option<Box<Generation>>,
    /// Searches since [`CachedRouter::has_worked_much`] was last asked, in bytes.
    work: u64,
    /// Room for decisions in the making.
    draft: Draft,
    figures: CacheFigures,
    /// Lines so far: `lb` goes by it.
    turn: u64,
}

/// What the cache did, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheFigures {
    /// Lines whose name was known.
    pub hits: u64,
    /// Lines for which the statements were walked through.
    pub misses: u64,
    /// Times that the older half of the names was forgotten.
    pub turned: u64,
}

#[derive(Debug, Default)]
struct Generation {
    /// Their numbers are places in `decisions`.
    names: Names,
    decisions: Vec<Decision>,
    /// Places in `decisions`, by content.
    known: HashTable<u32>,
    decisions_bytes: usize,
    /// Memory of the two tables above.
    tables_bytes: usize,
}

impl CachedRouter {
    /// Most names that [`fetch`](CachedRouter::fetch) brings near.
    pub const FETCH_MAX: usize = FETCH_MAX;

    /// A router that knows no name yet. Draw `seed` at random, or senders can choose results' names that collide.
    pub fn new(router: Router, limits: CacheLimits, seed: u64) -> CachedRouter {
        assert!(limits.names_max >= 2 && limits.bytes_max / 2 < u32::MAX as usize, "offsets have 32 bits");
        CachedRouter {
            router,
            limits,
            seed,
            shared: SharedSeed::from_u64(seed),
            young: Generation::default(),
            old: Generation::default(),
            gone: None,
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

    /// Says whether an endpoint is up. Decisions hold on: they leave it open.
    pub fn set_live(&mut self, output: OutputId, live: bool) {
        self.router.set_live(output, live);
    }

    /// Tells each thing that becomes of a line. `hash` is the name's, by a function with a secret seed: the intake's
    /// own ([`Point::hash`](model::Point::hash)), or [`hash`](CachedRouter::hash) where there is none. A name that comes
    /// with two hashes is right twice, and known twice.
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
        // The borrow of `find` would hold the router too.
        let decision = &self.young.decisions[decision as usize];
        let line = Line { name: line.name, rest: line.rest };
        run(decision, &self.router, &mut self.work, line, turn, act)
    }

    /// Whether lines since the last time that it was have searched or fed so much that time has gone by. Names that are known
    /// search nothing, but for what looks behind them.
    #[inline]
    pub fn has_worked_much(&mut self) -> bool {
        let much = self.work >= WORK_MAX;
        if much {
            self.begin_work();
        }
        much
    }

    /// Values of the last line went to aggregation rules.
    #[inline]
    pub fn has_fed(&mut self, values: u32) {
        self.work += u64::from(values) * FED_WORK;
    }

    #[cold]
    fn begin_work(&mut self) {
        self.work = 0;
        if self.gone.as_mut().is_some_and(|gone| gone.free_some()) {
            self.gone = None;
        }
    }

    /// Has the memory brought near that [`route`](CachedRouter::route) will read for records with these hashes, of at
    /// most [`FETCH_MAX`](CachedRouter::FETCH_MAX) of them. With many names a line waits for little else.
    #[inline]
    pub fn fetch(&self, hashes: impl Iterator<Item = u64>) {
        self.young.names.fetch(hashes);
    }

    /// What becomes of lines of a name; `hash` as for [`route`](CachedRouter::route).
    #[inline]
    pub fn decision(&mut self, entry: Entry, hash: u64, name: &[u8]) -> &Decision {
        let decision = self.find(entry, hash, name);
        &self.young.decisions[decision as usize]
    }

    /// The hash of a name that no intake has hashed: a result's, a statistic's.
    pub fn hash(&self, name: &[u8]) -> u64 {
        let mut hasher = FoldHasher::with_seed(self.seed, &self.shared);
        hasher.write(name);
        hasher.finish()
    }

    /// What the cache did.
    pub fn figures(&self) -> CacheFigures {
        self.figures
    }

    /// Counts on from what another one did.
    pub fn go_on_with(&mut self, figures: CacheFigures) {
        let CacheFigures { hits, misses, turned } = figures;
        self.figures.hits += hits;
        self.figures.misses += misses;
        self.figures.turned += turned;
    }

    /// Names that are known.
    pub fn len(&self) -> usize {
        self.young.names.len() + self.old.names.len()
    }

    /// True when no name is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory that is held for names and decisions.
    pub fn memory_bytes(&self) -> usize {
        self.young.memory_bytes()
            + self.old.memory_bytes()
            + self.gone.as_ref().map_or(0, |gone| gone.memory_bytes())
    }

    /// The decision's place in the young generation.
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
        let older = self.old.names.take(hash, kind(entry), name);
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
            // Few are freed at once.
            self.gone = (old.memory_bytes() > FORGOTTEN_AT_ONCE_BYTES).then(|| Box::new(old));
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

/// The hash of name and entry, so that a result called like a thousand others lies apart from them. That of a record's
/// name is the name's own.
#[inline]
fn hash_of_both(kind: u32, hash: u64) -> u64 {
    // An odd factor with its bits all over: numbers that differ give hashes that differ, above and below.
    hash ^ u64::from(kind).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn content_hash(seed: u64, shared: &SharedSeed, content: &Content) -> u64 {
    let mut hasher = FoldHasher::with_seed(seed, shared);
    content.hash(&mut hasher);
    hasher.finish()
}

/// Joins the lifetimes of decision and line, which `Act` has one of.
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
    // The router is looked at where a line needs it, and few do.
    decision.run_plain(act).unwrap_or_else(|| {
        *work += router.work_behind_name(line.rest);
        decision.run_steps(router, line, turn, act)
    })
}

impl Generation {
    /// The place of the decision with this content, which is made when it is not known.
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

    /// Gives back some decisions and a piece of names. Says whether nothing but the tables is left.
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

    /// The same with one name more: tables and lists that are full double.
    fn memory_bytes_with(&self, name_bytes: usize, decision: &Content) -> usize {
        let full = self.decisions.len() == self.decisions.capacity();
        let grown = if full { self.decisions.capacity().max(1) * size_of::<Decision>() } else { 0 };
        let names = self.names.memory_bytes_with(name_bytes);
        names + self.tables_bytes + self.decisions_bytes + grown + decision.heap_bytes()
    }
}
