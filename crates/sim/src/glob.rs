//! Patterns of names, the same as in the API, that remember how they were written.

/// A pattern: `*`, `?`, `[a-z]`, `{a,b}`.
#[derive(Clone, Debug)]
pub(crate) struct Glob {
    text: String,
    glob: process::glob::Glob,
}

impl Glob {
    /// # Errors
    /// A sentence about what is no pattern in `text`.
    pub(crate) fn new(text: &str) -> Result<Glob, String> {
        let glob = process::glob::Glob::new(text.as_bytes()).map_err(|error| error.to_string())?;
        Ok(Glob { text: text.to_owned(), glob })
    }

    /// As it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether all of `name` fits.
    pub(crate) fn matches(&self, name: &str) -> bool {
        self.glob.matches(name.as_bytes())
    }
}

impl PartialEq for Glob {
    fn eq(&self, other: &Glob) -> bool {
        self.text == other.text
    }
}
