//! Series by expressions over tags, and the tags and values of these series.
//!
//! Path of a query: `Expressions::parse` -> `TagSearch::new` -> `TagSearch::step` with the catalog, until it is done ->
//! `TagSearch::finish`. The expression that leaves the fewest series gives the candidates: an equality those of its
//! value, another one those of all values that it accepts. Each candidate is then checked against all expressions.
//!
//! Between two slices the catalog may change. A series that exists from the first slice to the last is found exactly
//! once, one that comes or goes in between may be found or not.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;

use super::expression::{Expression, Expressions, Operator};
use super::list::{cut, is_beyond};
use crate::catalog::names::StoredAs;
use crate::catalog::search::{Budget, Found, Progress, SearchError, SearchLimits};
use crate::catalog::store::{Ids, Slot};
use crate::catalog::{Catalog, SeriesId};

/// What a search over series returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completion {
    /// The names of the series.
    Series,
    /// Their tags that no expression uses.
    Tags {
        /// What the tags begin with.
        prefix: Vec<u8>,
        /// The first ones in byte order.
        limit: usize,
    },
    /// Their values of one tag.
    Values {
        /// The tag.
        tag: Vec<u8>,
        /// What the values begin with.
        prefix: Vec<u8>,
        /// The first ones in byte order.
        limit: usize,
    },
}

/// Where the candidates come from.
#[derive(Debug)]
enum Base {
    /// The series with the value of this equality.
    Equal(usize),
    /// Being collected: the series with any value that this expression accepts; the next slot of its tag's values.
    Collecting {
        expression: usize,
        at: u32,
        moves: u64,
        ids: Ids,
    },
    Collected(Ids),
}

/// A search by expressions over tags.
#[derive(Debug)]
pub struct TagSearch {
    expressions: Expressions,
    wanted: Completion,
    budget: Budget,
    base: Option<Base>,
    /// The next candidate.
    next: u32,
    /// Names of series.
    series: Found,
    /// Tags or values, each with one of its series.
    texts: BTreeMap<Vec<u8>, SeriesId>,
    name: Vec<u8>,
}

/// Nodes of an expression's tag and value, and what it says about values, as of one slice.
struct Resolved {
    tag: Option<u32>,
    value: Option<u32>,
    /// Nodes are numbered by the catalog: no client chooses the keys, so that they need no secret seed.
    known: HashMap<u32, bool, FixedState>,
}

impl TagSearch {
    /// A search that has not begun.
    pub fn new(expressions: Expressions, wanted: Completion, limits: SearchLimits) -> TagSearch {
        TagSearch {
            expressions,
            wanted,
            budget: Budget::new(limits),
            base: None,
            next: 0,
            series: Found::default(),
            texts: BTreeMap::new(),
            name: Vec::new(),
        }
    }

    /// Takes about `steps` steps.
    ///
    /// # Errors
    /// [`SearchError`] when a limit of the search is exceeded.
    pub fn step(&mut self, catalog: &Catalog, steps: u64) -> Result<Progress, SearchError> {
        self.budget.begin(steps);
        let resolve = |expression: &Expression| Resolved {
            tag: catalog.tags.tag(&catalog.texts, &expression.tag),
            value: catalog.tags.value(&catalog.texts, &expression.tag, &expression.value),
            known: HashMap::default(),
        };
        let mut resolved: Vec<Resolved> = self.expressions.iter().map(resolve).collect();
        let mut base = match self.base.take() {
            Some(base) => base,
            None => self.choose(catalog, &resolved),
        };
        while let Base::Collecting { expression, at, moves, ids } = &mut base {
            let tag = resolved[*expression].tag;
            let expression = &self.expressions.as_slice()[*expression];
            match collect(catalog, expression, tag, at, moves, ids, &mut self.budget)? {
                Progress::Done => base = Base::Collected(std::mem::take(ids)),
                Progress::More => {
                    self.base = Some(base);
                    return Ok(Progress::More);
                }
            }
        }
        loop {
            let ids = match &base {
                Base::Equal(at) => resolved[*at].value.map(|value| catalog.tags.ids(value)),
                Base::Collected(ids) | Base::Collecting { ids, .. } => Some(ids),
            };
            let Some(id) = ids.and_then(|ids| ids.next(self.next)) else { return Ok(Progress::Done) };
            self.check(catalog, SeriesId(id), &mut resolved)?;
            let Some(next) = id.checked_add(1) else { return Ok(Progress::Done) };
            self.next = next;
            if self.budget.slice_ends() {
                self.base = Some(base);
                return Ok(Progress::More);
            }
        }
    }

    /// The result, after [`Progress::Done`]: in byte order, each once, normalised names with their ids, or tags or values
    /// with the id of one of their series.
    pub fn finish(mut self) -> Found {
        for (text, id) in self.texts {
            self.series.push(b"", &text, Some(id), false);
        }
        self.series.finish()
    }

    fn choose(&self, catalog: &Catalog, resolved: &[Resolved]) -> Base {
        let all = self.expressions.as_slice().iter().zip(resolved).enumerate();
        let refusing = all.filter(|(_, (expression, _))| !expression.accepts_empty);
        let cost = |(_, (expression, resolved)): &(usize, (&Expression, &Resolved))| match expression.operator
        {
            Operator::Equal => (false, resolved.value.map_or(0, |value| catalog.tags.ids(value).len())),
            _ => (true, resolved.tag.map_or(0, |tag| catalog.tags.tree.children(tag))),
        };
        let (at, (expression, _)) =
            refusing.min_by_key(cost).expect("one expression refuses the empty value");
        match expression.operator {
            Operator::Equal => Base::Equal(at),
            _ => Base::Collecting { expression: at, at: 0, moves: 0, ids: Ids::default() },
        }
    }

    /// Checks a candidate against all expressions.
    fn check(
        &mut self,
        catalog: &Catalog,
        id: SeriesId,
        resolved: &mut [Resolved],
    ) -> Result<(), SearchError> {
        self.budget.spend(1)?;
        let Some(StoredAs::Key(key)) = catalog.place(id) else { return Ok(()) };
        let tree = &catalog.tags.tree;
        let values = catalog.tags.values_of(key);
        for (expression, resolved) in self.expressions.iter().zip(resolved) {
            let mut cost = 1;
            let value = match resolved.tag {
                Some(tag) => values.clone().inspect(|_| cost += 1).find(|value| tree.parent(*value) == tag),
                None => None,
            };
            self.budget.spend(cost / 4)?;
            let accepted = match (value, &expression.operator) {
                (None, _) => expression.accepts_empty,
                (Some(value), Operator::Equal) => resolved.value == Some(value),
                (Some(value), Operator::NotEqual) => resolved.value != Some(value),
                (Some(value), _) => match resolved.known.get(&value) {
                    Some(accepted) => *accepted,
                    None => {
                        let text = catalog.texts.get(tree.text(value));
                        self.budget.spend(expression.cost(text))?;
                        *resolved.known.entry(value).or_insert(expression.accepts(text))
                    }
                },
            };
            if !accepted {
                return Ok(());
            }
        }
        self.take(catalog, id, key)
    }

    fn take(&mut self, catalog: &Catalog, id: SeriesId, key: u32) -> Result<(), SearchError> {
        let tree = &catalog.tags.tree;
        let text = |node: u32| catalog.texts.get(tree.text(node));
        match &self.wanted {
            Completion::Series => {
                self.name.clear();
                catalog.name(id, &mut self.name);
                self.budget.spend(2 + self.name.len() as u64 / 64)?;
                self.series.push(b"", &self.name, Some(id), false);
            }
            Completion::Tags { prefix, limit } => {
                for value in catalog.tags.values_of(key) {
                    self.budget.spend(1)?;
                    let tag = text(tree.parent(value));
                    let used = || self.expressions.iter().any(|expression| *expression.tag == *tag);
                    let is_new = !is_beyond(&self.texts, Some(*limit), tag) && !self.texts.contains_key(tag);
                    if tag.starts_with(prefix) && is_new && !used() {
                        self.texts.insert(tag.to_vec(), id);
                        cut(&mut self.texts, Some(*limit));
                    }
                }
            }
            Completion::Values { tag, prefix, limit } => {
                let mut values = catalog.tags.values_of(key);
                self.budget.spend(1)?;
                if let Some(value) =
                    values.find(|value| text(tree.parent(*value)) == tag.as_slice()).map(text)
                    && value.starts_with(prefix)
                    && !is_beyond(&self.texts, Some(*limit), value)
                    && !self.texts.contains_key(value)
                {
                    self.texts.insert(value.to_vec(), id);
                    cut(&mut self.texts, Some(*limit));
                }
            }
        }
        self.budget.check_results(self.series.len() + self.texts.len())
    }
}

/// Collects the series with any value that an expression accepts.
fn collect(
    catalog: &Catalog,
    expression: &Expression,
    tag: Option<u32>,
    at: &mut u32,
    moves: &mut u64,
    ids: &mut Ids,
    budget: &mut Budget,
) -> Result<Progress, SearchError> {
    let tree = &catalog.tags.tree;
    let Some(tag) = tag else { return Ok(Progress::Done) };
    if *at == 0 || *moves != tree.moves() {
        // Series that were collected before stay: each candidate is checked.
        (*at, *moves) = (0, tree.moves());
    }
    loop {
        let slot = tree.slot(tag, *at);
        *at += 1;
        budget.spend(1)?;
        match slot {
            Slot::End => return Ok(Progress::Done),
            Slot::Hole => {}
            Slot::Child(value) => {
                let text = catalog.texts.get(tree.text(value));
                budget.spend(expression.cost(text))?;
                if expression.accepts(text) {
                    let more = catalog.tags.ids(value);
                    budget.spend(u64::from(more.len()) / 8)?;
                    let mut from = Some(0);
                    while let Some(id) = from.and_then(|from| more.next(from)) {
                        ids.insert(id);
                        from = id.checked_add(1);
                    }
                }
            }
        }
        if budget.slice_ends() {
            return Ok(Progress::More);
        }
    }
}

impl Catalog {
    /// The names of all series that satisfy the expressions, in one slice.
    ///
    /// # Errors
    /// [`SearchError`] when a limit is exceeded.
    pub fn find_series(&self, expressions: Expressions, limits: SearchLimits) -> Result<Found, SearchError> {
        let mut search = TagSearch::new(expressions, Completion::Series, limits);
        while search.step(self, u64::MAX)? == Progress::More {}
        Ok(search.finish())
    }
}
