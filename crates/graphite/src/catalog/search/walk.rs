//! Walks the tree of names along a glob.
//!
//! Path of a query: `NameGlob::new` -> `Search::new` -> `Search::step` with the catalog, until it is done -> `Search::finish`.
//! A frame is a node, the set of the glob's components that its children may match, and the place where it goes on. With
//! components without wildcards the children are looked up, otherwise listed. A `**` keeps its component in the set, so
//! each node is visited at most once, however many `**` there are.
//!
//! Between two slices the catalog may change. A name that exists from the first slice to the last is found exactly once.
//! One that comes or goes in between may be found or not; its id may be gone. A caller that needs the series looks its path up
//! again. When children have moved to other slots (most siblings were removed), the search begins again; the steps that
//! it has taken count.

use super::found::{Budget, Found, Progress, SearchError, SearchLimits};
use crate::catalog::glob::{LEVELS_SET_MAX, NameGlob, Part};
use crate::catalog::store::{NO_SERIES, ROOT, Slot};
use crate::catalog::{Catalog, SeriesId};

/// Which paths a search returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Series, and prefixes of series.
    All,
    /// Series only.
    Leaves,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    node: u32,
    /// Components of the glob, one bit each.
    parts: u128,
    /// The next slot, or the next text of the only component.
    at: u32,
    /// Length of the node's path.
    path_len: usize,
}

/// A search by a glob.
#[derive(Debug)]
pub struct Search {
    glob: NameGlob,
    wanted: Wanted,
    budget: Budget,
    /// [`crate::catalog::store::Tree::moves`] when the walk began; none before.
    moves: Option<u64>,
    frames: Vec<Frame>,
    /// Path of the last frame's node.
    path: Vec<u8>,
    found: Found,
    known: Known,
}

/// Numbers of the glob's texts in the catalog, as of one slice.
#[derive(Debug)]
struct Known {
    /// Per component, where its texts begin in `numbers`.
    begins: Vec<usize>,
    /// The slice, and the number or none.
    numbers: Vec<(u64, Option<u32>)>,
    slice: u64,
}

impl Known {
    fn new(glob: &NameGlob) -> Known {
        let (mut begins, mut count) = (Vec::new(), 0);
        for part in &glob.parts {
            begins.push(count);
            count += if let Part::Texts(texts) = part { texts.len() } else { 0 };
        }
        Known { begins, numbers: vec![(0, None); count], slice: 0 }
    }

    fn number(&mut self, catalog: &Catalog, part: usize, at: usize, text: &[u8]) -> Option<u32> {
        let known = &mut self.numbers[self.begins[part] + at];
        if known.0 != self.slice {
            *known = (self.slice, catalog.texts.find(text));
        }
        known.1
    }
}

/// What became of one child.
enum Step {
    Next,
    /// All children were seen.
    Up,
}

impl Search {
    /// A search that has not begun.
    pub fn new(glob: NameGlob, wanted: Wanted, limits: SearchLimits) -> Search {
        Search {
            known: Known::new(&glob),
            glob,
            wanted,
            budget: Budget::new(limits),
            moves: None,
            frames: Vec::new(),
            path: Vec::new(),
            found: Found::default(),
        }
    }

    /// Takes about `steps` steps of some 0.1 µs.
    ///
    /// # Errors
    /// [`SearchError`] when a limit of the search is exceeded. It is over then.
    pub fn step(&mut self, catalog: &Catalog, steps: u64) -> Result<Progress, SearchError> {
        self.budget.begin(steps);
        self.known.slice += 1;
        if let Some(name) = &self.glob.exact {
            self.found.clear();
            if let Some(id) = catalog.find(name) {
                self.found.push(b"", name, Some(id), false);
            }
            self.budget.check_results(self.found.len())?;
            return Ok(Progress::Done);
        }
        self.resume(catalog)?;
        while let Some(frame) = self.frames.last().copied() {
            if let Step::Up = self.visit(catalog, frame)? {
                self.frames.pop();
                self.path.truncate(self.frames.last().map_or(0, |frame| frame.path_len));
            }
            // Not before the first visit: each slice comes closer to the end.
            if self.budget.slice_ends() {
                return Ok(Progress::More);
            }
        }
        Ok(Progress::Done)
    }

    /// The result, after [`Progress::Done`].
    pub fn finish(self) -> Found {
        self.found.finish()
    }

    /// The glob.
    pub fn glob(&self) -> &NameGlob {
        &self.glob
    }

    /// Begins, or drops the frames of nodes that are gone.
    fn resume(&mut self, catalog: &Catalog) -> Result<(), SearchError> {
        if self.moves != Some(catalog.tree.moves()) {
            self.moves = Some(catalog.tree.moves());
            self.found.clear();
            self.path.clear();
            self.frames.clear();
            if !self.glob.parts.is_empty() {
                let parts = self.closure(1);
                self.frames.push(Frame { node: ROOT, parts, at: 0, path_len: 0 });
            }
        }
        self.budget.spend(self.frames.len() as u64 / 4)?;
        let is_there = |pair: &[Frame]| {
            let begin = pair[0].path_len + usize::from(pair[0].path_len > 0);
            let text = catalog.tree.text(pair[1].node);
            catalog.tree.parent(pair[1].node) == pair[0].node
                && catalog.texts.find(&self.path[begin..pair[1].path_len]) == Some(text)
        };
        if let Some(gone) = self.frames.windows(2).position(|pair| !is_there(pair)) {
            self.frames.truncate(gone + 1);
            self.path.truncate(self.frames[gone].path_len);
        }
        Ok(())
    }

    /// Looks at the next child of the last frame.
    fn visit(&mut self, catalog: &Catalog, frame: Frame) -> Result<Step, SearchError> {
        let first = frame.parts.trailing_zeros() as usize;
        let last = self.frames.len() - 1;
        self.frames[last].at += 1;
        self.budget.spend(1)?;
        // With one component there is no `**` before it: its texts are looked up.
        if let Part::Texts(texts) = &self.glob.parts[first]
            && frame.parts.count_ones() == 1
        {
            let Some(text) = texts.get(frame.at as usize) else { return Ok(Step::Up) };
            let Some(number) = self.known.number(catalog, first, frame.at as usize, text) else {
                return Ok(Step::Next);
            };
            if let Some(child) = catalog.tree.child(frame.node, number) {
                let parts = self.closure(1 << (first + 1));
                self.take(catalog, child, number, parts)?;
            }
            return Ok(Step::Next);
        }
        let child = match catalog.tree.slot(frame.node, frame.at) {
            Slot::End => return Ok(Step::Up),
            Slot::Hole => return Ok(Step::Next),
            Slot::Child(child) => child,
        };
        let number = catalog.tree.text(child);
        let text = catalog.texts.get(number);
        let (mut rest, mut parts, mut work) = (frame.parts, 0, 0);
        while rest != 0 {
            let at = rest.trailing_zeros();
            rest &= rest - 1;
            let part = &self.glob.parts[at as usize];
            work += 4;
            if matches!(part, Part::Levels) {
                parts |= 1 << at;
            } else if part.matches(text, &mut work) {
                parts |= 1 << (at + 1);
            }
        }
        self.budget.spend(work / 16)?;
        if parts != 0 {
            let parts = self.closure(parts);
            self.take(catalog, child, number, parts)?;
        }
        Ok(Step::Next)
    }

    /// Adds the components behind each `**` of a set: it may match no component at all.
    fn closure(&self, mut parts: u128) -> u128 {
        let mut rest = parts;
        while rest != 0 {
            let at = rest.trailing_zeros();
            rest &= rest - 1;
            if matches!(self.glob.parts.get(at as usize), Some(Part::Levels)) {
                debug_assert!(at + 1 < LEVELS_SET_MAX, "a glob ends before the set does");
                parts |= 1 << (at + 1);
            }
        }
        parts
    }

    /// Takes a child to which the glob's components behind it are `parts`.
    fn take(&mut self, catalog: &Catalog, child: u32, text: u32, parts: u128) -> Result<(), SearchError> {
        let end = 1u128 << self.glob.parts.len();
        let has_children = catalog.tree.has_children(child);
        if parts & end != 0 {
            let series = catalog.tree.series(child);
            let leaf = if series == NO_SERIES { None } else { Some(SeriesId(series)) };
            let branch = has_children && self.wanted == Wanted::All;
            if leaf.is_some() || branch {
                self.budget.spend(1 + self.path.len() as u64 / 64)?;
                self.found.push(&self.path, catalog.texts.get(text), leaf, branch);
                self.budget.check_results(self.found.len())?;
            }
        }
        let parts = parts & !end;
        if parts != 0 && has_children {
            if !self.path.is_empty() {
                self.path.push(b'.');
            }
            self.path.extend_from_slice(catalog.texts.get(text));
            self.frames.push(Frame { node: child, parts, at: 0, path_len: self.path.len() });
        }
        Ok(())
    }
}

impl Catalog {
    /// All paths that a glob matches, in one slice.
    ///
    /// # Errors
    /// [`SearchError`] when a limit is exceeded.
    pub fn search(&self, glob: NameGlob, wanted: Wanted, limits: SearchLimits) -> Result<Found, SearchError> {
        let mut search = Search::new(glob, wanted, limits);
        while search.step(self, u64::MAX)? == Progress::More {}
        Ok(search.finish())
    }
}
