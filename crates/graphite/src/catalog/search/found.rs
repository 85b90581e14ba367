//! What a search has found, and how it may end.

use std::fmt;

use crate::catalog::SeriesId;

/// Limits of one search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchLimits {
    /// Most results.
    pub results_max: usize,
    /// Most steps. A step looks at one name, tag or value, and takes about 0.1 µs.
    pub steps_max: u64,
}

/// Whether a search goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The steps of this slice are used up; call again.
    More,
    /// All is found.
    Done,
}

/// A search that exceeds its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchError {
    /// More results than `results_max`.
    TooManyResults {
        /// The limit.
        results_max: usize,
    },
    /// More steps than `steps_max`.
    TooManySteps {
        /// The limit.
        steps_max: u64,
    },
}

impl fmt::Display for SearchError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SearchError::TooManyResults { results_max } => write!(
                to,
                "the query has more than {results_max} results: replace a wildcard by a name or by a list in braces, \
                 or add an expression"
            ),
            SearchError::TooManySteps { steps_max } => write!(
                to,
                "the query takes more than {steps_max} steps: begin it with components without wildcards, avoid \
                 `**`, or add an expression `tag=value`"
            ),
        }
    }
}

impl std::error::Error for SearchError {}

/// Steps that are left of a slice and of a whole search.
#[derive(Clone, Copy, Debug)]
pub(in crate::catalog) struct Budget {
    limits: SearchLimits,
    spent: u64,
    slice: u64,
}

impl Budget {
    pub(in crate::catalog) fn new(limits: SearchLimits) -> Budget {
        Budget { limits, spent: 0, slice: 0 }
    }

    /// Begins a slice, which has at least one step.
    pub(in crate::catalog) fn begin(&mut self, steps: u64) {
        self.slice = self.spent.saturating_add(steps.max(1));
    }

    /// Counts steps. An error when the search has taken too many.
    #[inline]
    pub(in crate::catalog) fn spend(&mut self, steps: u64) -> Result<(), SearchError> {
        self.spent = self.spent.saturating_add(steps);
        if self.spent > self.limits.steps_max {
            return Err(SearchError::TooManySteps { steps_max: self.limits.steps_max });
        }
        Ok(())
    }

    /// True when the slice has no step left.
    #[inline]
    pub(in crate::catalog) fn slice_ends(&self) -> bool {
        self.spent >= self.slice
    }

    pub(in crate::catalog) fn check_results(&self, results: usize) -> Result<(), SearchError> {
        let results_max = self.limits.results_max;
        if results > results_max { Err(SearchError::TooManyResults { results_max }) } else { Ok(()) }
    }

    pub(in crate::catalog) fn results_max(&self) -> usize {
        self.limits.results_max
    }
}

/// One path that was found: a series, a prefix of series, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node<'a> {
    /// The whole path, or the name of a tagged series.
    pub path: &'a [u8],
    /// Its last component; a tagged name as a whole.
    pub name: &'a [u8],
    /// The series of this name.
    pub leaf: Option<SeriesId>,
    /// True when longer names begin with this path and a dot.
    pub branch: bool,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    begin: usize,
    name: usize,
    end: usize,
    leaf: Option<SeriesId>,
    branch: bool,
}

/// The paths that a search has found: sorted by last component, then by path, each once.
#[derive(Debug, Default)]
pub struct Found {
    text: Vec<u8>,
    entries: Vec<Entry>,
}

impl Found {
    /// Number of paths.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True when nothing was found.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The paths, sorted by last component, then by path.
    pub fn nodes(&self) -> impl Iterator<Item = Node<'_>> + Clone {
        self.entries.iter().map(|entry| self.node(entry))
    }

    /// The paths in byte order.
    pub fn by_path(&self) -> Vec<Node<'_>> {
        let mut nodes: Vec<Node<'_>> = self.nodes().collect();
        nodes.sort_unstable_by_key(|node| node.path);
        nodes
    }

    /// Memory in use.
    pub fn memory_bytes(&self) -> usize {
        self.text.capacity() + self.entries.capacity() * size_of::<Entry>()
    }

    fn node(&self, entry: &Entry) -> Node<'_> {
        Node {
            path: &self.text[entry.begin..entry.end],
            name: &self.text[entry.name..entry.end],
            leaf: entry.leaf,
            branch: entry.branch,
        }
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.entries.clear();
    }

    /// Adds `prefix.name`.
    pub(super) fn push(&mut self, prefix: &[u8], name: &[u8], leaf: Option<SeriesId>, branch: bool) {
        let begin = self.text.len();
        self.text.extend_from_slice(prefix);
        if !prefix.is_empty() {
            self.text.push(b'.');
        }
        let at = self.text.len();
        self.text.extend_from_slice(name);
        self.entries.push(Entry { begin, name: at, end: self.text.len(), leaf, branch });
    }

    /// Sorts, and joins the entries of a path that went and came again during the search.
    pub(super) fn finish(mut self) -> Found {
        let text = std::mem::take(&mut self.text);
        let key = |entry: &Entry| (&text[entry.name..entry.end], &text[entry.begin..entry.end]);
        self.entries.sort_by(|a, b| key(a).cmp(&key(b)));
        self.entries.dedup_by(|later, kept| {
            let same = key(later) == key(kept);
            if same {
                (kept.leaf, kept.branch) = (later.leaf, later.branch);
            }
            same
        });
        Found { text, entries: self.entries }
    }
}
