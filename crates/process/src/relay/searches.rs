//! Caches of the linear engine, for all expressions of a router, within one memory limit.
//!
//! The engine caches the automaton states that it has met, up to a limit per expression, and has scratch space for
//! searches. Senders can choose names that fill all these caches. So there is a limit for all together: beyond it
//! all caches are dropped except the one in use, and are filled again as needed.
//! Not here: compiling (`expression`), and expressions that backtrack, which have limits of their own.
//! Invariants: memory never exceeds [`SEARCHES_BYTES_MAX`] by more than one search has added; two routers never
//! share a cache, so that no thread waits for another one's search.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use regex_automata::meta::{BuildError, Builder, Cache, Config, Regex};
use regex_automata::util::captures::Captures;
use regex_automata::util::syntax;
use regex_automata::{Input, MatchKind, Span};

use super::budget::Budget;
use super::found::Found;

/// Maximum memory of the caches of all expressions of a router.
pub const SEARCHES_BYTES_MAX: usize = 64 << 20;

/// The cache of one expression, with its size after the last search.
type Held = (Box<Cache>, usize);

/// All caches of a router. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Searches {
    memory: Arc<Mutex<Memory>>,
    /// Backtracking budget of a record.
    pub(super) budget: Budget,
}

#[derive(Debug, Default)]
pub(super) struct Memory {
    /// By expression.
    held: Vec<Option<Held>>,
    bytes: usize,
    forgotten: u64,
}

/// Figures of the caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchFigures {
    /// Memory of the caches in bytes.
    pub bytes: usize,
    /// Times that all caches were dropped for lack of room.
    pub forgotten: u64,
}

/// An expression compiled for the linear engine.
#[derive(Clone, Debug)]
pub(super) struct Linear {
    regex: Regex,
    searches: Searches,
    /// Its index in the memory.
    place: usize,
}

impl Searches {
    /// The same caches for expressions that search the rest of lines, with a separate backtracking budget.
    pub(super) fn for_rests(&self) -> Searches {
        Searches { memory: Arc::clone(&self.memory), budget: Budget::default() }
    }

    pub(super) fn figures(&self) -> SearchFigures {
        let memory = self.lock();
        SearchFigures { bytes: memory.bytes, forgotten: memory.forgotten }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    fn search<R>(&mut self, place: usize, regex: &Regex, search: impl FnOnce(&mut Cache) -> R) -> R {
        let (cache, bytes) = self.held[place].get_or_insert_with(|| (Box::new(regex.create_cache()), 0));
        let result = search(cache);
        let now = cache.memory_usage() + size_of::<Cache>();
        self.bytes = self.bytes - *bytes + now;
        *bytes = now;
        if self.bytes > SEARCHES_BYTES_MAX {
            self.forget_all_but(place);
        }
        result
    }

    #[cold]
    fn forget_all_but(&mut self, place: usize) {
        let kept = self.held[place].take().filter(|(_, bytes)| *bytes <= SEARCHES_BYTES_MAX);
        self.held.iter_mut().for_each(|held| *held = None);
        self.bytes = kept.as_ref().map_or(0, |(_, bytes)| *bytes);
        self.held[place] = kept;
        self.forgotten += 1;
    }
}

impl Linear {
    /// Compiles an expression that `syntax` wrote. The automaton uses at most `compiled_max` bytes, and its cache
    /// at most `remembered_max` in each direction.
    pub(super) fn new(
        text: &str,
        compiled_max: usize,
        remembered_max: usize,
        searches: &Searches,
    ) -> Result<Linear, Box<BuildError>> {
        let config = Config::new()
            .match_kind(MatchKind::LeftmostFirst)
            .utf8_empty(false)
            .nfa_size_limit(Some(compiled_max))
            .hybrid_cache_capacity(remembered_max);
        let syntax = syntax::Config::new().unicode(false).utf8(false).dot_matches_new_line(true);
        let regex = Builder::new().configure(config).syntax(syntax).build(text)?;
        let mut memory = searches.lock();
        memory.held.push(None);
        let place = memory.held.len() - 1;
        drop(memory);
        Ok(Linear { regex, searches: searches.clone(), place })
    }

    /// The same automaton with other caches.
    pub(super) fn detached(&self, searches: &Searches) -> Linear {
        let mut memory = searches.lock();
        let places = memory.held.len().max(self.place + 1);
        memory.held.resize_with(places, || None);
        drop(memory);
        Linear { regex: self.regex.clone(), searches: searches.clone(), place: self.place }
    }

    fn search<R>(&self, search: impl FnOnce(&Regex, &mut Cache) -> R) -> R {
        self.searches.lock().search(self.place, &self.regex, |cache| search(&self.regex, cache))
    }

    pub(super) fn is_in(&self, name: &[u8]) -> bool {
        let input = Input::new(name).earliest(true);
        self.search(|regex, cache| regex.search_half_with(cache, &input).is_some())
    }

    pub(super) fn find(&self, name: &[u8]) -> Option<Found> {
        self.find_from(name, 0)
    }

    /// The first match that begins at or after a position. Anchors look at the text before it.
    pub(super) fn find_from(&self, name: &[u8], from: usize) -> Option<Found> {
        let mut captures = self.regex.create_captures();
        let input = Input::new(name).range(from..);
        self.search(|regex, cache| regex.search_captures_with(cache, &input, &mut captures));
        captures.is_match().then(|| found(&captures))
    }
}

fn found(captures: &Captures) -> Found {
    let span = |group: Span| (group.start, group.end);
    let whole = captures.get_group(0).map(span).expect("a match has a whole");
    let groups = (1..captures.group_len()).map(|group| captures.get_group(group).map(span));
    Found { span: whole, groups: groups.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relay::{Entry, MatchPlan, RelayPlan, Router, Statement, To};

    /// Names of two letters for which every automaton below meets new states at almost each byte.
    fn hostile_name(number: u64, len: usize) -> Vec<u8> {
        let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        (0..len).map(|_| b'a' + (next() % 2) as u8).collect()
    }

    #[test]
    fn caches_of_a_thousand_rules_stay_within_the_limit_under_hostile_names() {
        let statement = |rule: usize| {
            let text = format!("a[ab]{{{}}}[c-{}]", 11 + rule % 7, ['d', 'e', 'f', 'z'][rule % 4]);
            let expressions = vec![text.as_str().into()];
            Statement::Match(MatchPlan { expressions, to: To::Nowhere, ..MatchPlan::default() })
        };
        let statements: Vec<Statement> = (0..1_000).map(statement).collect();
        let plan = RelayPlan { statements, ..RelayPlan::default() };
        let router = Router::new(&plan).expect("a valid plan");
        let mut most = 0;
        for number in 0..2 {
            router.decide(Entry::Records, &hostile_name(number, 1_100));
            let figures = router.searches();
            assert!(figures.bytes <= SEARCHES_BYTES_MAX, "{figures:?} after {number} names");
            most = most.max(figures.bytes);
        }
        let figures = router.searches();
        assert!(figures.forgotten > 0 && most > SEARCHES_BYTES_MAX / 2, "{figures:?}, at most {most}");
        // A dropped cache does not change results.
        let name = [&hostile_name(3, 100)[..], b"d"].concat();
        for rule in [0, 1, 2, 3, 999] {
            let Statement::Match(plan) = statement(rule) else { panic!("a match") };
            let alone =
                super::super::Expression::new(&plan.expressions[0], false).expect("a valid expression");
            let found = router.explain(Entry::Records, super::super::Line { name: &name, rest: b"1 2" }, 0);
            let meets = found.matches.iter().any(|meeting| meeting.statement == rule);
            assert_eq!(alone.is_in(&name), Ok(meets), "rule {rule}");
        }
    }

    #[test]
    fn clones_share_their_caches_and_each_expression_has_its_own() {
        let searches = Searches::default();
        let one = Linear::new("[a-c]+x", 1 << 20, 1 << 17, &searches).expect("valid");
        let other = Linear::new("(b)(c)?", 1 << 20, 1 << 17, &searches).expect("valid");
        assert_eq!(searches.figures(), SearchFigures::default());
        assert!(one.is_in(b"abcx") && !one.clone().is_in(b"x"));
        let bytes = searches.figures().bytes;
        assert!(bytes > 0);
        let groups = |from| other.find_from(b"abcxb", from).map(|found| found.groups);
        assert_eq!(groups(0), Some(vec![Some((1, 2)), Some((2, 3))]));
        assert_eq!((groups(3), groups(5)), (Some(vec![Some((4, 5)), None]), None));
        assert_eq!(other.find(b"abcxb").map(|found| found.span), Some((1, 3)));
        assert!(searches.figures().bytes > bytes);
        let mut memory = searches.lock();
        memory.forget_all_but(1);
        assert!(memory.held[0].is_none() && memory.held[1].is_some());
        memory.forget_all_but(0);
        assert_eq!((memory.bytes, memory.forgotten), (0, 2));
    }
}
