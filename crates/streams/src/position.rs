//! The place of a form in a file of the config.

use std::fmt;

use arcstr::ArcStr;

/// A place in a text. The default is an unknown place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The file as the config names it.
    pub file: ArcStr,
    /// The line, from 1; 0 where the place is unknown.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

impl Position {
    /// Whether the place is known.
    pub fn is_known(&self) -> bool {
        self.line > 0
    }
}

impl fmt::Display for Position {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_known() {
            write!(to, "{}:{}:{}", self.file, self.line, self.column)
        } else {
            to.write_str("?")
        }
    }
}
