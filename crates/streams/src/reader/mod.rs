//! Texts of configs to forms: Clojure's syntax of data, with the place of each symbol and list.
//!
//! Forms are values. `'x`, `@x`, `#(…)` and the others become the lists that they abbreviate; syntax-quote becomes a form
//! that builds what it quotes ([`syntax_quote`]).
//!
//! Invariant: any text gives forms or one [`ReadError`]; never a panic (fuzz target `riemann_config`). Nesting is
//! limited by [`names::DEPTH_MAX`].

pub mod error;
pub mod names;
pub mod numbers;
mod syntax_quote;
mod text;
mod tokens;

use arcstr::ArcStr;

use crate::position::Position;
use crate::value::Value;
use error::ReadError;
use names::Names;
use tokens::Forms;

/// Reads one form after the other.
#[derive(Debug)]
pub struct Reader<'t> {
    forms: Forms<'t>,
}

impl<'t> Reader<'t> {
    /// A reader of a text; `file` is its name in errors.
    pub fn new(text: &'t str, file: ArcStr) -> Self {
        Reader { forms: Forms::new(text, file) }
    }

    /// The next form; `None` at the end.
    ///
    /// # Errors
    /// Where the text breaks the syntax. The reader cannot go on then.
    pub fn next(&mut self, names: &dyn Names) -> Result<Option<Value>, ReadError> {
        self.forms.next(names)
    }

    /// Where the next form or what is before it begins.
    pub fn position(&self) -> Position {
        self.forms.position()
    }
}

#[cfg(test)]
mod tests;
