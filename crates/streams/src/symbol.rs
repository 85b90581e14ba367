//! Names as the reader finds them.

use arcstr::ArcStr;

use crate::position::Position;

/// A symbol. Two of them are equal if their names are, wherever they stand.
#[derive(Clone, Debug)]
pub struct Symbol {
    /// Its name, with its namespace and a slash if it has one.
    pub name: ArcStr,
    /// Where it was read; unknown for one that was made.
    pub at: Position,
    /// `^:dynamic` before it: a var of this name can be bound.
    pub dynamic: bool,
}

impl Symbol {
    /// A symbol without a place.
    pub fn new(name: ArcStr) -> Self {
        Symbol { name, at: Position::default(), dynamic: false }
    }
}

/// The namespace and the name of a symbol or a keyword: `a.b/c` is `(Some("a.b"), "c")`, `/` has no namespace.
pub fn split_name(name: &str) -> (Option<&str>, &str) {
    match name.split_once('/') {
        Some((space, rest)) if !space.is_empty() && !rest.is_empty() => (Some(space), rest),
        _ => (None, name),
    }
}
