//! A whole glob: components with dots between them, or a tagged name that is looked up as it is.

use std::fmt;

pub(in crate::catalog) use super::component::Part;
use crate::catalog::normal_name;

/// Longest glob in bytes: a list of some thousand hosts in braces.
pub const GLOB_BYTES_MAX: usize = 64 * 1024;
/// Most components of a glob; names have at most [`crate::catalog::LEVELS_MAX`].
pub const GLOB_LEVELS_MAX: usize = 120;
/// A set of components is a word of this many bits: one for each, and one for the end.
pub(in crate::catalog) const LEVELS_SET_MAX: u32 = u128::BITS;

const _: () = assert!(GLOB_LEVELS_MAX + 2 <= LEVELS_SET_MAX as usize, "a `**` at the end becomes `**.*`");

/// Why a glob is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadGlob {
    /// Longer than [`GLOB_BYTES_MAX`].
    TooLong,
    /// More components than [`GLOB_LEVELS_MAX`].
    TooDeep,
}

impl fmt::Display for BadGlob {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadGlob::TooLong => {
                write!(to, "the query is longer than {GLOB_BYTES_MAX} bytes: divide its list of names")
            }
            BadGlob::TooDeep => {
                write!(to, "the query has more than {GLOB_LEVELS_MAX} components, more than any name has")
            }
        }
    }
}

impl std::error::Error for BadGlob {}

/// A compiled glob.
#[derive(Debug)]
pub struct NameGlob {
    text: Box<[u8]>,
    pub(in crate::catalog) parts: Vec<Part>,
    /// The normal form of a tagged name.
    pub(in crate::catalog) exact: Option<Box<[u8]>>,
}

impl NameGlob {
    /// Compiles a glob. A text with a `;` is a tagged name and matches only itself.
    ///
    /// # Errors
    /// [`BadGlob`] when it is too long. Braces and brackets without their other half are ordinary characters.
    pub fn new(text: &[u8]) -> Result<NameGlob, BadGlob> {
        if text.len() > GLOB_BYTES_MAX {
            return Err(BadGlob::TooLong);
        }
        let mut glob = NameGlob { text: text.into(), parts: Vec::new(), exact: None };
        if text.contains(&b';') {
            // A name that is not valid is in no catalog: no part matches nothing.
            glob.exact = normal_name(text).ok().map(Vec::into_boxed_slice);
            return Ok(glob);
        }
        let mut levels = 0;
        for component in text.split(|byte| *byte == b'.') {
            levels += 1;
            if levels > GLOB_LEVELS_MAX {
                return Err(BadGlob::TooDeep);
            }
            let part = Part::new(component);
            // Two `**` in a row are one.
            if !(matches!(part, Part::Levels) && matches!(glob.parts.last(), Some(Part::Levels))) {
                glob.parts.push(part);
            }
        }
        if matches!(glob.parts.last(), Some(Part::Levels)) {
            glob.parts.push(Part::Any);
        }
        Ok(glob)
    }

    /// Its source.
    pub fn text(&self) -> &[u8] {
        &self.text
    }
}

/// True when a text has wildcards, so that it may match several names.
pub fn is_pattern(text: &[u8]) -> bool {
    text.iter().any(|byte| b"*?[{".contains(byte))
}

#[test]
fn globs_are_limited_in_bytes_and_components() {
    assert!(NameGlob::new(&[b'*'; GLOB_BYTES_MAX]).is_ok());
    assert_eq!(NameGlob::new(&[b'*'; GLOB_BYTES_MAX + 1]).err(), Some(BadGlob::TooLong));
    assert!(
        NameGlob::new(vec!["**"; GLOB_LEVELS_MAX].join(".").as_bytes())
            .is_ok_and(|glob| glob.parts.len() == 2)
    );
    let deep = NameGlob::new(vec!["*"; GLOB_LEVELS_MAX].join(".").as_bytes());
    assert!(deep.is_ok_and(|glob| glob.parts.len() == GLOB_LEVELS_MAX));
    assert_eq!(
        NameGlob::new(vec!["*"; GLOB_LEVELS_MAX + 1].join(".").as_bytes()).err(),
        Some(BadGlob::TooDeep)
    );
    assert!(is_pattern(b"a.{b,c}") && !is_pattern(b"a.b"));
}
