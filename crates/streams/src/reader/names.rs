//! What the reader needs to know of names, and how deep it reads.

use arcstr::ArcStr;

/// Most brackets and quotes around a form.
pub const DEPTH_MAX: u32 = 128;

/// Backquotes within backquotes, at most: each one makes the form some six times as large.
pub const BACKQUOTES_MAX: u32 = 3;

/// What the reader asks about names.
pub trait Names {
    /// The current namespace.
    fn current(&self) -> ArcStr;
    /// The namespace of an alias.
    fn alias(&self, name: &str) -> Option<ArcStr>;
    /// A symbol of a syntax-quoted form with its namespace, as far as it has one.
    fn qualify(&self, name: &str) -> ArcStr;
    /// A number that no other generated name has.
    fn unique(&self) -> u64;
}

/// Names outside of any namespace, for `read-string` and tests.
#[derive(Debug, Default)]
pub struct NoNames;

impl Names for NoNames {
    fn current(&self) -> ArcStr {
        arcstr::literal!("user")
    }

    fn alias(&self, _: &str) -> Option<ArcStr> {
        None
    }

    fn qualify(&self, name: &str) -> ArcStr {
        ArcStr::from(name)
    }

    fn unique(&self) -> u64 {
        0
    }
}
