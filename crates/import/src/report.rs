//! Adds diagnostics to a list: `wrong.error(code, place, message).label(…).hint(…)`.

use config::diagnostic::{Code, Diagnostic, Place, nearest};

/// A diagnostic of a list, for its label and hint.
pub(crate) struct Report<'a>(&'a mut Diagnostic);

impl<'a> Report<'a> {
    /// Adds a diagnostic to a list.
    pub(crate) fn of(list: &'a mut Vec<Diagnostic>, diagnostic: Diagnostic) -> Report<'a> {
        Report(list.push_mut(diagnostic))
    }

    /// The text at the caret.
    pub(crate) fn label(self, label: impl Into<String>) -> Report<'a> {
        self.0.label = label.into();
        self
    }

    /// How to correct it.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Report<'a> {
        self.0.hint = Some(hint.into());
        self
    }
}

/// A list of diagnostics.
pub(crate) trait Reports {
    /// Adds an error.
    fn error(&mut self, code: Code, at: impl Into<Option<Place>>, message: impl Into<String>) -> Report<'_>;

    /// Adds a warning.
    fn warning(&mut self, code: Code, at: impl Into<Option<Place>>, message: impl Into<String>)
    -> Report<'_>;
}

impl Reports for Vec<Diagnostic> {
    fn error(&mut self, code: Code, at: impl Into<Option<Place>>, message: impl Into<String>) -> Report<'_> {
        Report::of(self, Diagnostic { place: at.into(), ..Diagnostic::error(code, message) })
    }

    fn warning(
        &mut self,
        code: Code,
        at: impl Into<Option<Place>>,
        message: impl Into<String>,
    ) -> Report<'_> {
        Report::of(self, Diagnostic { place: at.into(), ..Diagnostic::warning(code, message) })
    }
}

/// The hint for a word that is not known: the nearest known one, or else all of them.
pub(crate) fn did_you_mean<'w>(
    word: &str,
    known: impl Iterator<Item = &'w str> + Clone,
    what: &str,
) -> String {
    match nearest(word, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("{what} are {}", known.collect::<Vec<_>>().join(", ")),
    }
}

/// The value of a word in a table.
///
/// # Errors
/// A hint when it is not in the table. `what` are its words.
pub(crate) fn keyword<T: Copy>(table: &[(&str, T)], word: &str, what: &str) -> Result<T, String> {
    match table.iter().find(|(known, _)| *known == word) {
        Some((_, value)) => Ok(*value),
        None => Err(did_you_mean(word, table.iter().map(|(known, _)| *known), what)),
    }
}

/// `a`, `a or b`, `a, b or c`.
pub(crate) fn one_of(words: &[String]) -> String {
    joined(words, "or")
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn all_of(words: &[String]) -> String {
    joined(words, "and")
}

fn joined(words: &[String], before_last: &str) -> String {
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} {before_last} {last}", rest.join(", ")),
        None => String::new(),
    }
}
