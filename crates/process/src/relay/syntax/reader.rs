//! What has been read of an expression, and what can be wrong with it.
//!
//! Not here: the grammar (`syntax` and the files beside this one).

use std::ops::Range;

/// A hint for the author of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Its subject.
    pub about: NoteAbout,
    /// Byte range in the expression.
    pub at: Range<usize>,
    /// The observation.
    pub message: String,
    /// Suggested change.
    pub hint: String,
}

/// The subject of a [`Note`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteAbout {
    /// Builds of the original differ, or it is probably not intended.
    Reading,
    /// The expression is matched by backtracking.
    Backtracking,
}

/// Why an expression cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Byte range in the expression.
    pub at: Range<usize>,
    /// The error as text, without capital and full stop.
    pub message: String,
    /// Suggested change, if there is an obvious one.
    pub hint: Option<String>,
    /// The C library's message for it.
    pub upstream: &'static str,
}

impl Refusal {
    pub(in crate::relay) fn new(at: Range<usize>, message: &str, upstream: &'static str) -> Refusal {
        Refusal { at, message: message.into(), hint: None, upstream }
    }

    pub(in crate::relay) fn hint(mut self, hint: impl Into<String>) -> Refusal {
        self.hint = Some(hint.into());
        self
    }
}

pub(in crate::relay) const NOT_REPEATABLE: &str = "Invalid preceding regular expression";
pub(in crate::relay) const TOO_BIG: &str = "Regular expression too big";

/// The engine for which the text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    Linear,
    Backtracking,
}

pub(super) struct Reader<'a> {
    pub(super) text: &'a [u8],
    pub(super) at: usize,
    pub(super) engine: Engine,
    pub(super) captures: bool,
    /// Ignore case, from here to the end of the group.
    pub(super) fold: bool,
    pub(super) depth: usize,
    pub(super) out: String,
    /// Capture groups so far.
    pub(super) groups: usize,
    /// Groups that are still open.
    pub(super) open: Vec<usize>,
    /// Names of groups, and their numbers.
    pub(super) names: Vec<(Vec<u8>, usize)>,
    pub(super) notes: Vec<Note>,
    /// A construct that needs backtracking was read.
    pub(super) backtracks: bool,
}

/// The kind of a piece of a branch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Atom {
    /// A literal byte.
    Byte(u8),
    /// A position between two bytes.
    Nothing,
    Other,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a [u8], engine: Engine, fold: bool, captures: bool) -> Reader<'a> {
        let (open, names, notes) = (Vec::new(), Vec::new(), Vec::new());
        let (out, groups) = (String::with_capacity(text.len() + 8), 0);
        let (at, depth, backtracks) = (0, 0, false);
        Reader { text, at, engine, captures, fold, depth, out, groups, open, names, notes, backtracks }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        &self.text[self.at..]
    }

    pub(super) fn note(&mut self, at: Range<usize>, message: impl Into<String>, hint: impl Into<String>) {
        let (message, hint) = (message.into(), hint.into());
        self.notes.push(Note { about: NoteAbout::Reading, at, message, hint });
    }
}
