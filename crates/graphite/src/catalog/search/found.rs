//! What a search has found, and how it may end.

use std::cmp::Ordering;
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
        let shared = shared_prefix(self.nodes().map(|node| node.path));
        let mut nodes: Vec<(u64, Node<'_>)> =
            self.nodes().map(|node| (first_bytes(node.path, shared), node)).collect();
        nodes.sort_unstable_by(|(key_a, a), (key_b, b)| key_a.cmp(key_b).then_with(|| a.path.cmp(b.path)));
        nodes.into_iter().map(|(_, node)| node).collect()
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
    pub(in crate::catalog) fn push(
        &mut self,
        prefix: &[u8],
        name: &[u8],
        leaf: Option<SeriesId>,
        branch: bool,
    ) {
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
    pub(in crate::catalog) fn finish(mut self) -> Found {
        let text = std::mem::take(&mut self.text);
        let (path, name) =
            (|entry: &Entry| &text[entry.begin..entry.end], |entry: &Entry| &text[entry.name..entry.end]);
        let shared = shared_prefix(self.entries.iter().map(path));
        // Comparing numbers decides nearly all pairs; texts decide the others.
        let key = |entry: Entry| (first_bytes(name(&entry), 0), first_bytes(path(&entry), shared), entry);
        let mut keyed: Vec<(u64, u64, Entry)> = self.entries.iter().copied().map(key).collect();
        keyed.sort_unstable_by(|(name_a, path_a, a), (name_b, path_b, b)| {
            let names = || if a.is_short() && b.is_short() { Ordering::Equal } else { name(a).cmp(name(b)) };
            let by_name = name_a.cmp(name_b).then_with(names).then_with(|| name(a).len().cmp(&name(b).len()));
            by_name.then(path_a.cmp(path_b)).then_with(|| path(a).cmp(path(b))).then(a.begin.cmp(&b.begin))
        });
        self.entries.clear();
        self.entries.extend(keyed.into_iter().map(|(_, _, entry)| entry));
        self.entries.dedup_by(|later, kept| {
            let same = path(later) == path(kept);
            if same {
                (kept.leaf, kept.branch) = (later.leaf, later.branch);
            }
            same
        });
        Found { text, entries: self.entries }
    }
}

impl Entry {
    /// True when the first bytes of the name are the whole name.
    fn is_short(&self) -> bool {
        self.end - self.name <= size_of::<u64>()
    }
}

/// Length of what all texts begin with.
fn shared_prefix<'a>(mut texts: impl Iterator<Item = &'a [u8]>) -> usize {
    let Some(first) = texts.next() else { return 0 };
    texts.fold(first.len(), |shared, text| {
        first[..shared].iter().zip(text).position(|(a, b)| a != b).unwrap_or(shared.min(text.len()))
    })
}

/// Eight bytes from a position, in the order of the bytes; zeros behind the end.
fn first_bytes(text: &[u8], from: usize) -> u64 {
    let rest = &text[from..];
    match rest.first_chunk() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => rest.iter().zip((0..8).rev()).fold(0, |key, (byte, at)| key | u64::from(*byte) << (8 * at)),
    }
}

#[test]
fn paths_are_sorted_by_name_then_path() {
    let mut found = Found::default();
    let paths =
        ["b.x", "a.x", "a.x1", "a.long_name_b", "a.long_name_a", "b.long_name_a", "b.x\0", "a.x", "x", "a"];
    for path in paths {
        let (prefix, name) = path.rsplit_once('.').unwrap_or(("", path));
        found.push(prefix.as_bytes(), name.as_bytes(), None, path == "a.x");
    }
    let found = found.finish();
    let sorted: Vec<String> =
        found.nodes().map(|node| String::from_utf8_lossy(node.path).into_owned()).collect();
    assert_eq!(
        sorted,
        ["a", "a.long_name_a", "b.long_name_a", "a.long_name_b", "a.x", "b.x", "x", "b.x\0", "a.x1"]
    );
    let mut want = sorted.clone();
    want.sort();
    assert!(found.by_path().iter().map(|node| node.path).eq(want.iter().map(String::as_bytes)));
}
