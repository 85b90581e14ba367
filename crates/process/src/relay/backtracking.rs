//! Expressions that only a backtracking engine can match: look-around, atomic groups, back references.
//!
//! Such a search can take for ever on some names, so it has limits: of steps, and of the name's length, because a step may
//! look at all that follows. At a limit it gives up, which its callers count and take for no match.
//! Names are bytes here as well: the engine's `.` is one of them, and its classes know ASCII only.
//! Not here: what such an expression looks like (`syntax`); most names do not get so far (`sieve`).

use fancy_regex::{BytesMode, Captures, CompileError, Error, ParseError, Regex, RegexBuilder};

use super::expression::{Found, GaveUp};

/// Most steps back of one search.
pub const BACKTRACKING_STEPS_MAX: usize = 50_000;

/// Longest name, or rest of a line, that is searched.
pub const BACKTRACKING_BYTES_MAX: usize = 2_048;

/// Longest expression in the engine's form: each part of it that the linear engine can do has an automaton.
const EXPRESSION_BYTES_MAX: usize = 8 << 10;

/// Most instructions of an expression.
const INSTRUCTIONS_MAX: usize = 16 << 10;

/// Most memory of an automaton, and of what it remembers.
const PART_BYTES_MAX: usize = 64 << 10;

/// An expression, compiled.
#[derive(Clone, Debug)]
pub(super) struct Backtracking(Box<Regex>);

impl Backtracking {
    /// Compiles what `syntax` wrote.
    ///
    /// # Errors
    /// Why the engine does not take it, in words; none when it is too large.
    pub(super) fn new(text: &str) -> Result<Backtracking, Option<String>> {
        if text.len() > EXPRESSION_BYTES_MAX {
            return Err(None);
        }
        let built = RegexBuilder::new(text)
            .bytes_mode(BytesMode::Ascii)
            .dot_matches_new_line(true)
            .backtrack_limit(BACKTRACKING_STEPS_MAX)
            .delegate_size_limit(PART_BYTES_MAX)
            .delegate_dfa_size_limit(PART_BYTES_MAX)
            .max_prog_size(INSTRUCTIONS_MAX)
            .build();
        built.map(|regex| Backtracking(Box::new(regex))).map_err(|error| sentence(&error))
    }

    pub(super) fn is_in(&self, name: &[u8]) -> Result<bool, GaveUp> {
        within_limits(name)?;
        self.0.is_match(name).map_err(|_| GaveUp)
    }

    pub(super) fn find(&self, name: &[u8]) -> Result<Option<Found>, GaveUp> {
        within_limits(name)?;
        let captures = self.0.captures(name).map_err(|_| GaveUp)?;
        Ok(captures.as_ref().map(found))
    }

    /// The first match that begins at a place or behind it.
    pub(super) fn find_from(&self, name: &[u8], from: usize) -> Result<Option<Found>, GaveUp> {
        within_limits(name)?;
        let captures = self.0.captures_from_pos(name, from).map_err(|_| GaveUp)?;
        Ok(captures.as_ref().map(found))
    }
}

fn within_limits(name: &[u8]) -> Result<(), GaveUp> {
    if name.len() > BACKTRACKING_BYTES_MAX { Err(GaveUp) } else { Ok(()) }
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
