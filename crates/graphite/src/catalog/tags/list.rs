//! Lists of tags and of one tag's values, sorted, with a filter, a prefix and a limit.

use std::collections::BTreeMap;

use super::expression::Filter;
use crate::catalog::Catalog;
use crate::catalog::search::{Budget, Progress, SearchError, SearchLimits};
use crate::catalog::store::{ROOT, Slot};

/// A tag or a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Its number in the catalog; stays while it is used.
    pub id: u32,
    /// The tag or the value.
    pub text: Vec<u8>,
    /// Values of the tag, or series with the value.
    pub count: u32,
}

/// A list of tags, or of the values of one. Between slices the catalog may change: what is there all the time is listed.
#[derive(Debug)]
pub struct TagList {
    /// None: the tags.
    tag: Option<Box<[u8]>>,
    filter: Option<Filter>,
    prefix: Box<[u8]>,
    limit: Option<usize>,
    budget: Budget,
    at: u32,
    moves: Option<u64>,
    /// Text to number and count.
    found: BTreeMap<Vec<u8>, (u32, u32)>,
}

impl TagList {
    /// All tags, or all values of a tag: those that begin with `prefix` and that `filter` matches; the first `limit` in
    /// byte order.
    pub fn new(
        tag: Option<&[u8]>,
        filter: Option<Filter>,
        prefix: &[u8],
        limit: Option<usize>,
        limits: SearchLimits,
    ) -> TagList {
        TagList {
            tag: tag.map(Into::into),
            filter,
            prefix: prefix.into(),
            limit,
            budget: Budget::new(limits),
            at: 0,
            moves: None,
            found: BTreeMap::new(),
        }
    }

    /// Takes about `steps` steps.
    ///
    /// # Errors
    /// [`SearchError`] when a limit is exceeded; results that `limit` cuts off do not count.
    pub fn step(&mut self, catalog: &Catalog, steps: u64) -> Result<Progress, SearchError> {
        self.budget.begin(steps);
        let tree = &catalog.tags.tree;
        if self.moves != Some(tree.moves()) {
            self.moves = Some(tree.moves());
            self.at = 0;
            self.found.clear();
        }
        let parent = match &self.tag {
            None => Some(ROOT),
            Some(tag) => catalog.tags.tag(&catalog.texts, tag),
        };
        let Some(parent) = parent else { return Ok(Progress::Done) };
        loop {
            let slot = tree.slot(parent, self.at);
            self.at += 1;
            self.budget.spend(1)?;
            match slot {
                Slot::End => return Ok(Progress::Done),
                Slot::Hole => {}
                Slot::Child(child) => self.take(catalog, child)?,
            }
            if self.budget.slice_ends() {
                return Ok(Progress::More);
            }
        }
    }

    fn take(&mut self, catalog: &Catalog, child: u32) -> Result<(), SearchError> {
        let tree = &catalog.tags.tree;
        let text = catalog.texts.get(tree.text(child));
        if !text.starts_with(&self.prefix) || is_beyond(&self.found, self.limit, text) {
            return Ok(());
        }
        if let Some(filter) = &self.filter {
            self.budget.spend(filter.cost(text))?;
            if !filter.matches(text) {
                return Ok(());
            }
        }
        let count = if self.tag.is_some() { catalog.tags.ids(child).len() } else { tree.children(child) };
        self.found.insert(text.to_vec(), (child, count));
        cut(&mut self.found, self.limit);
        self.budget.check_results(self.found.len())
    }

    /// The list in byte order, after [`Progress::Done`]. For a tag that no series has, it is empty.
    pub fn finish(self) -> Vec<Counted> {
        self.found.into_iter().map(|(text, (id, count))| Counted { id, text, count }).collect()
    }
}

/// True when the text is behind the first `limit` ones.
pub(super) fn is_beyond<T>(found: &BTreeMap<Vec<u8>, T>, limit: Option<usize>, text: &[u8]) -> bool {
    let last = || found.last_key_value().is_none_or(|(last, _)| text > last.as_slice());
    limit.is_some_and(|limit| found.len() >= limit && last())
}

/// Removes what is behind the first `limit` ones.
pub(super) fn cut<T>(found: &mut BTreeMap<Vec<u8>, T>, limit: Option<usize>) {
    while limit.is_some_and(|limit| found.len() > limit) {
        found.pop_last();
    }
}
