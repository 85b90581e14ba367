//! Expressions that need a backtracking engine: look-around, atomic groups, back references.
//!
//! On some names such a search takes exponential time, so it has limits: on the number of steps, and on the length
//! of the name, because each step may scan the rest of it. At a limit the search gives up; callers count that and
//! treat it as no match. All searches of a record share another limit (`budget`).
//! Names are bytes here as well: the engine's `.` matches one byte, and its classes are ASCII only.
//! Not here: which expressions need it (`syntax`). Most names never reach this engine (`prefilter`).

use std::sync::{Arc, OnceLock};

use fancy_regex::{BytesMode, Captures, CompileError, Error, ParseError, Regex, RegexBuilder};

use super::budget::Budget;
use super::found::{Found, GaveUp};

/// Maximum backtracking steps of one search.
pub const BACKTRACKING_STEPS_MAX: usize = 50_000;

/// Longest name, or rest of a line, that is searched.
pub const BACKTRACKING_BYTES_MAX: usize = 2_048;

/// Steps of the first, cheap attempt. Most names need fewer.
const SHORT_STEPS_MAX: usize = 1_000;

/// Longest name that is searched without counting against the limit of the record.
const FREE_BYTES_MAX: usize = 256;

/// Longest expression in the engine's syntax: each part that the linear engine can match has an automaton.
const EXPRESSION_BYTES_MAX: usize = 8 << 10;

/// Maximum instructions of an expression.
const INSTRUCTIONS_MAX: usize = 16 << 10;

/// Maximum memory of an automaton, and of its cache.
const PART_BYTES_MAX: usize = 64 << 10;

/// A compiled expression.
#[derive(Clone, Debug)]
pub(super) struct Backtracking {
    /// In the engine's syntax, as `syntax` wrote it.
    text: Arc<str>,
    /// Compiled at the first search; empty until then in a copy for another thread.
    engines: OnceLock<Engines>,
    budget: Budget,
}

/// An engine has caches behind locks, so each router compiles its own.
#[derive(Clone, Debug)]
struct Engines {
    /// With the low step limit.
    short: Box<Regex>,
    /// With the full step limit.
    long: Box<Regex>,
}

impl Backtracking {
    /// Compiles an expression that `syntax` wrote.
    ///
    /// # Errors
    /// Why the engine rejects it, as text; None when it is too large.
    pub(super) fn new(text: &str, budget: &Budget) -> Result<Backtracking, Option<String>> {
        if text.len() > EXPRESSION_BYTES_MAX {
            return Err(None);
        }
        let engines = OnceLock::from(Engines::new(text)?);
        Ok(Backtracking { text: text.into(), engines, budget: budget.clone() })
    }

    /// A copy with another budget limit. It is compiled when it is first searched.
    pub(super) fn detached(&self, budget: &Budget) -> Backtracking {
        Backtracking { text: Arc::clone(&self.text), engines: OnceLock::new(), budget: budget.clone() }
    }

    pub(super) fn is_in(&self, name: &[u8]) -> Result<bool, GaveUp> {
        self.search(name, |regex| regex.is_match(name))
    }

    pub(super) fn find(&self, name: &[u8]) -> Result<Option<Found>, GaveUp> {
        let captures = self.search(name, |regex| regex.captures(name))?;
        Ok(captures.as_ref().map(found))
    }

    /// The first match that begins at or after a position.
    pub(super) fn find_from(&self, name: &[u8], from: usize) -> Result<Option<Found>, GaveUp> {
        let captures = self.search(name, |regex| regex.captures_from_pos(name, from))?;
        Ok(captures.as_ref().map(found))
    }

    /// Searches within both limits: that of the search and that of the record.
    fn search<'r, R>(
        &'r self,
        name: &[u8],
        search: impl Fn(&'r Regex) -> Result<R, Error>,
    ) -> Result<R, GaveUp> {
        let is_free = name.len() <= FREE_BYTES_MAX;
        if name.len() > BACKTRACKING_BYTES_MAX || !is_free && !self.budget.take(name.len()) {
            return Err(GaveUp);
        }
        let compiled = || Engines::new(&self.text).expect("it was compiled before");
        let Engines { short, long } = self.engines.get_or_init(compiled);
        if let Ok(found) = search(short) {
            return Ok(found);
        }
        // The search may cost as much as one of the longest names.
        if !self.budget.take(BACKTRACKING_BYTES_MAX) {
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
                "each branch of a look-behind must have a fixed length"
            }
            CompileError::InnerError(_) | CompileError::PatternTooComplex => return None,
            _ => return Some(error.to_string()),
        },
        _ => return Some(error.to_string()),
    };
    Some(known.to_owned())
}
