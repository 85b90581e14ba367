//! Errors and warnings of one configuration: collected file by file, shown to users and to scripts.
//!
//! A configuration may be many files (`include`), and a [`Diagnostic`] has a place in one text only; so each is kept
//! with the number of its file, and with the original's message for the same mistake, since scripts search for that
//! (spec graphite §2.13). The original stops at the first mistake; [`Mistakes`] has all of them.

use std::collections::BTreeSet;

use super::span::Span;
use config::diagnostic::{Code, Diagnostic, Place, Severity, Source, render_files};

/// Most errors, and most warnings, kept for one configuration.
pub const MISTAKES_MAX: usize = 200;

/// One mistake or warning and the file that it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Index into the files that were read.
    pub file: usize,
    /// The diagnostic.
    pub diagnostic: Diagnostic,
    /// The original's message; none where it prints nothing.
    pub upstream: Option<Upstream>,
}

impl Mistake {
    /// In a file, or in none that could be shown; the original prints nothing.
    pub fn ours(file: usize, diagnostic: Diagnostic) -> Mistake {
        Mistake { file, diagnostic, upstream: None }
    }
}

/// The original's message for a mistake, and where it points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// The message.
    pub words: String,
    /// The token that the original had read when it found the mistake.
    pub at: UpstreamAt,
}

/// Which token the original points at: often a later one than the wrong one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamAt {
    /// The wrong one, as ours.
    Here,
    /// The first one that begins at or after this byte of the file.
    From(usize),
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileText {
    /// Its name on the command line or in an `include`.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Mistakes while they are collected.
#[derive(Debug, Default)]
pub(super) struct Mistakes {
    /// File of the next ones.
    pub file: usize,
    /// Clusters whose statements cannot be parsed: rules that name them are not reported.
    pub lost_clusters: BTreeSet<String>,
    found: Vec<Mistake>,
    errors: usize,
    /// The last one past the limit.
    past_limit: Vec<Mistake>,
}

/// A mistake in the list, for its label, hint and the original's message.
pub(super) struct Report<'a>(&'a mut Mistake);

impl<'a> Report<'a> {
    pub(super) fn label(self, label: impl Into<String>) -> Report<'a> {
        self.0.diagnostic.label = label.into();
        self
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Report<'a> {
        self.hint_if(Some(hint.into()))
    }

    pub(super) fn hint_if(self, hint: Option<String>) -> Report<'a> {
        self.0.diagnostic.hint = hint;
        self
    }

    /// The original's message, at the same place.
    pub(super) fn upstream(self, words: impl Into<String>) -> Report<'a> {
        self.upstream_at(UpstreamAt::Here, words)
    }

    /// The original's message, at another place of the same file.
    pub(super) fn upstream_at(self, at: UpstreamAt, words: impl Into<String>) -> Report<'a> {
        self.0.upstream = Some(Upstream { words: words.into(), at });
        self
    }
}

impl Mistakes {
    pub(super) fn error(&mut self, code: Code, span: Span, message: impl Into<String>) -> Report<'_> {
        self.keep(span.file, Diagnostic::error(code, message).at(span.place))
    }

    pub(super) fn warning(&mut self, code: Code, span: Span, message: impl Into<String>) -> Report<'_> {
        self.keep(span.file, Diagnostic::warning(code, message).at(span.place))
    }

    /// An error at a place of the current file.
    pub(super) fn error_at(&mut self, code: Code, place: Place, message: impl Into<String>) -> Report<'_> {
        self.error(code, Span { file: self.file, place }, message)
    }

    /// An error about the current file as a whole, or where no place is known.
    pub(super) fn whole(&mut self, code: Code, message: impl Into<String>) -> Report<'_> {
        self.keep(self.file, Diagnostic::error(code, message))
    }

    /// Errors and warnings have separate limits: an error is reported however many warnings there are.
    fn keep(&mut self, file: usize, diagnostic: Diagnostic) -> Report<'_> {
        let is_error = diagnostic.severity == Severity::Error;
        let before = if is_error { self.errors } else { self.found.len() - self.errors };
        let mistake = Mistake::ours(file, diagnostic);
        if before == MISTAKES_MAX {
            self.past_limit.clear();
            return Report(self.past_limit.push_mut(mistake));
        }
        self.errors += usize::from(is_error);
        Report(self.found.push_mut(mistake))
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.found.len()
    }

    pub(super) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// All of them, by file and then by place; those without a place last.
    pub(super) fn finish(mut self) -> Vec<Mistake> {
        let place = |mistake: &Mistake| mistake.diagnostic.place.map_or((1, 0), |place| (0, place.start));
        self.found.sort_by_key(|mistake| (mistake.file, place(mistake)));
        self.found
    }
}

/// Whether one of them is an error.
pub fn has_errors(mistakes: &[Mistake]) -> bool {
    mistakes.iter().any(|mistake| mistake.diagnostic.severity == Severity::Error)
}

/// All of them for a user, file by file.
pub fn render_mistakes(files: &[FileText], mistakes: &[Mistake], colour: bool) -> String {
    let of_file = |number: usize| -> Vec<Diagnostic> {
        let of = mistakes.iter().filter(|mistake| mistake.file == number);
        of.map(|mistake| mistake.diagnostic.clone()).collect()
    };
    let each: Vec<Vec<Diagnostic>> = (0..files.len()).map(of_file).collect();
    let each: Vec<(Source<'_>, &[Diagnostic])> = files
        .iter()
        .zip(&each)
        .map(|(file, diagnostics)| (Source { name: &file.name, text: &file.text }, &**diagnostics))
        .collect();
    render_files(&each, colour)
}
