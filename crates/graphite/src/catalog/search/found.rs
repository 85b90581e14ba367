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

    /// Paths that another node has found, each a series or a prefix of series.
    pub fn of_paths<'p>(paths: impl IntoIterator<Item = (&'p [u8], bool)>) -> Found {
        let mut found = Found::default();
        for (path, is_leaf) in paths {
            found.add(Node {
                path,
                name: last_component(path),
                leaf: is_leaf.then_some(SeriesId::ELSEWHERE),
                branch: !is_leaf,
            });
        }
        found.finish_by(union)
    }

    /// What several searches have found, each path once.
    pub fn joined(mut all: Vec<Found>) -> Found {
        if all.len() <= 1 {
            return all.pop().unwrap_or_default();
        }
        let mut joined = Found::default();
        for node in all.iter().flat_map(Found::nodes) {
            joined.add(node);
        }
        joined.finish_by(union)
    }

    fn add(&mut self, node: Node<'_>) {
        let begin = self.text.len();
        self.text.extend_from_slice(node.path);
        let (end, length) = (self.text.len(), node.name.len());
        self.entries.push(Entry { begin, name: end - length, end, leaf: node.leaf, branch: node.branch });
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

    /// Sorts, and takes the later entry of a path that went and came again during the search.
    pub(in crate::catalog) fn finish(self) -> Found {
        self.finish_by(|_, later| later)
    }

    /// Sorts, and makes one entry of those of one path.
    fn finish_by(mut self, join: impl Fn(What, What) -> What) -> Found {
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
                (kept.leaf, kept.branch) = join((kept.leaf, kept.branch), (later.leaf, later.branch));
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

/// What a path is: its series, and whether it is a prefix of others.
type What = (Option<SeriesId>, bool);

fn union((leaf, branch): What, (other_leaf, is_branch): What) -> What {
    (leaf.or(other_leaf), branch || is_branch)
}

/// The last component of a path; a name with tags as a whole.
fn last_component(path: &[u8]) -> &[u8] {
    if path.contains(&b';') {
        return path;
    }
    path.rsplit(|byte| *byte == b'.').next().unwrap_or(path)
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

#[test]
fn paths_of_several_nodes_are_joined() {
    let of = |paths: &[(&'static str, bool)]| {
        Found::of_paths(paths.iter().map(|(path, is_leaf)| (path.as_bytes(), *is_leaf)))
    };
    let a = of(&[("a.b", true), ("a.c", false), ("a.c", true), ("t;k=v.w", true)]);
    let b = of(&[("a.b", false), ("a.a", true), ("a.c", true)]);
    let want = [("a.a", true, false), ("a.b", true, true), ("a.c", true, true), ("t;k=v.w", true, false)];
    let joined = Found::joined(vec![a, b]);
    let got: Vec<_> = joined.nodes().map(|node| (node.path, node.leaf.is_some(), node.branch)).collect();
    assert_eq!(got, want.map(|(path, leaf, branch)| (path.as_bytes(), leaf, branch)));
    assert!(joined.nodes().all(|node| node.path.ends_with(node.name)));
    assert!(Found::joined(Vec::new()).is_empty());
}
