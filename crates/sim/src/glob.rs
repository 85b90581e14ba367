//! Patterns of names, the same as in the API, together with their text.

/// A pattern: `*`, `?`, `[a-z]`, `{a,b}`.
#[derive(Clone, Debug)]
pub(crate) struct Glob {
    text: String,
    glob: process::glob::Glob,
}

impl Glob {
    /// # Errors
    /// A sentence about the invalid part of `text`.
    pub(crate) fn new(text: &str) -> Result<Glob, String> {
        let glob = process::glob::Glob::new(text.as_bytes()).map_err(|error| error.to_string())?;
        Ok(Glob { text: text.to_owned(), glob })
    }

    /// The pattern as written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the pattern matches all of `name`.
    pub(crate) fn matches(&self, name: &str) -> bool {
        self.glob.matches(name.as_bytes())
    }
}

impl PartialEq for Glob {
    fn eq(&self, other: &Glob) -> bool {
        self.text == other.text
    }
}
