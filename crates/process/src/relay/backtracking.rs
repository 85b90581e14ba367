//! Expressions that only a backtracking engine can match: look-around, atomic groups, back references.
//!
//! Such a search can take for ever on some names, so it has limits: of steps, and of the name's length, because a step may
//! look at all that follows. At a limit it gives up, which its callers count and take for no match. All searches of a record
//! have a limit together (`effort`).
//! Names are bytes here as well: the engine's `.` is one of them, and its classes know ASCII only.
//! Not here: what such an expression looks like (`syntax`); most names do not get so far (`sieve`).

use std::sync::{Arc, OnceLock};

use fancy_regex::{BytesMode, Captures, CompileError, Error, ParseError, Regex, RegexBuilder};

use super::effort::Effort;
use super::expression::{Found, GaveUp};

/// Most steps back of one search.
pub const BACKTRACKING_STEPS_MAX: usize = 50_000;

/// Longest name, or rest of a line, that is searched.
pub const BACKTRACKING_BYTES_MAX: usize = 2_048;

/// Steps back that a search is tried with at first: of most names it needs fewer.
const SHORT_STEPS_MAX: usize = 1_000;

/// Longest name in which such a search is free.
const FREE_BYTES_MAX: usize = 256;

/// Longest expression in the engine's form: each part of it that the linear engine can do has an automaton.
const EXPRESSION_BYTES_MAX: usize = 8 << 10;

/// Most instructions of an expression.
const INSTRUCTIONS_MAX: usize = 16 << 10;

/// Most memory of an automaton, and of what it remembers.
const PART_BYTES_MAX: usize = 64 << 10;

/// An expression, compiled.
#[derive(Clone, Debug)]
pub(super) struct Backtracking {
    /// As `syntax` wrote it.
    text: Arc<str>,
    /// None until the first search of one that was set apart.
    engines: OnceLock<Engines>,
    effort: Effort,
}

/// An engine remembers what it has met, behind locks of its own: each router compiles its own.
#[derive(Clone, Debug)]
struct Engines {
    /// With few steps.
    short: Box<Regex>,
    /// With all of them.
    long: Box<Regex>,
}

impl Backtracking {
    /// Compiles what `syntax` wrote.
    ///
    /// # Errors
    /// Why the engine does not take it, in words; none when it is too large.
    pub(super) fn new(text: &str, effort: &Effort) -> Result<Backtracking, Option<String>> {
        if text.len() > EXPRESSION_BYTES_MAX {
            return Err(None);
        }
        let engines = OnceLock::from(Engines::new(text)?);
        Ok(Backtracking { text: text.into(), engines, effort: effort.clone() })
    }

    /// The same expression with another effort. It is compiled anew when it is first searched.
    pub(super) fn apart(&self, effort: &Effort) -> Backtracking {
        Backtracking { text: Arc::clone(&self.text), engines: OnceLock::new(), effort: effort.clone() }
    }

    pub(super) fn is_in(&self, name: &[u8]) -> Result<bool, GaveUp> {
        self.search(name, |regex| regex.is_match(name))
    }

    pub(super) fn find(&self, name: &[u8]) -> Result<Option<Found>, GaveUp> {
        let captures = self.search(name, |regex| regex.captures(name))?;
        Ok(captures.as_ref().map(found))
    }

    /// The first match that begins at a place or behind it.
    pub(super) fn find_from(&self, name: &[u8], from: usize) -> Result<Option<Found>, GaveUp> {
        let captures = self.search(name, |regex| regex.captures_from_pos(name, from))?;
        Ok(captures.as_ref().map(found))
    }

    /// Searches within all limits: those of the search, and that of the record.
    fn search<'r, R>(
        &'r self,
        name: &[u8],
        search: impl Fn(&'r Regex) -> Result<R, Error>,
    ) -> Result<R, GaveUp> {
        let is_free = name.len() <= FREE_BYTES_MAX;
        if name.len() > BACKTRACKING_BYTES_MAX || !is_free && !self.effort.take(name.len()) {
            return Err(GaveUp);
        }
        let compiled = || Engines::new(&self.text).expect("it was compiled before");
        let Engines { short, long } = self.engines.get_or_init(compiled);
        if let Ok(found) = search(short) {
            return Ok(found);
        }
        // It may take as long as one of the longest names.
        if !self.effort.take(BACKTRACKING_BYTES_MAX) {
            return Err(GaveUp);
        }
        search(long).map_err(|_| GaveUp)
    }
}

impl Engines {
    fn new(text: &str) -> Result<Engines, Option<String>> {
        let built = |steps_max| {
            let regex = RegexBuilder::new(text)
                .bytes_mode(BytesMode::Ascii)
                .dot_matches_new_line(true)
                .backtrack_limit(steps_max)
                .delegate_size_limit(PART_BYTES_MAX)
                .delegate_dfa_size_limit(PART_BYTES_MAX)
                .max_prog_size(INSTRUCTIONS_MAX)
                .build();
            regex.map(Box::new).map_err(|error| sentence(&error))
        };
        Ok(Engines { short: built(SHORT_STEPS_MAX)?, long: built(BACKTRACKING_STEPS_MAX)? })
    }
}

fn found(captures: &Captures<'_, [u8]>) -> Found {
    let mut spans = captures.iter().map(|group| group.map(|group| (group.start(), group.end())));
    let span = spans.next().flatten().expect("a match has a whole");
    Found { span, groups: spans.collect() }
}

fn sentence(error: &Error) -> Option<String> {
    let known = match error {
        Error::ParseError(_, ParseError::RecursionExceeded) => {
            "its groups are nested too deep for look-around"
        }
        Error::CompileError(error) => match &**error {
            CompileError::LookBehindNotConst | CompileError::VariableLookBehindRequiresFeature => {
                "each branch of a look-behind must have one length"
            }
            CompileError::InnerError(_) | CompileError::PatternTooComplex => return None,
            _ => return Some(error.to_string()),
        },
        _ => return Some(error.to_string()),
    };
    Some(known.to_owned())
}
