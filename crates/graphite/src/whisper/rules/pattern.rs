//! The patterns of all rules as one automaton: a name is read once, and the first rule that matches is known.
//!
//! Linear in the name, whatever the patterns are, and bounded in memory: expressions that need backtracking are
//! rejected. Names are bytes: `.` is one byte, and classes of characters are ASCII.

use std::fmt;

use regex_automata::meta::Regex;
use regex_automata::{Input, MatchKind, PatternSet};

use crate::python_regex::{Names, Options, RegexFault, compile};

/// Most patterns of one file.
pub const PATTERNS_MAX: usize = 1024;

/// Longest pattern in bytes.
pub const PATTERN_BYTES_MAX: usize = 4096;

/// Most memory of the compiled patterns together.
pub const COMPILED_BYTES_MAX: usize = 16 << 20;

/// Most memory of what one thread has found out about names. A full cache is cleared.
const REMEMBERED_BYTES_MAX: usize = 2 << 20;

/// Why a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// Number of the pattern, from 0; none when it is not one of them alone.
    pub pattern: Option<usize>,
    /// What is wrong.
    pub fault: PatternFault,
}

/// What is wrong with a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternFault {
    /// More than [`PATTERNS_MAX`] patterns.
    TooMany,
    /// One of them is not accepted, or they are too large together.
    Regex(RegexFault),
}

impl fmt::Display for PatternFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatternFault::TooMany => write!(f, "there are more than {PATTERNS_MAX} patterns"),
            PatternFault::Regex(fault) => fault.fmt(f),
        }
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pattern {
            Some(pattern) => write!(f, "pattern {}: {}", pattern + 1, self.fault),
            None => write!(f, "{}", self.fault),
        }
    }
}

impl std::error::Error for PatternError {}

/// Compiled patterns.
#[derive(Clone, Debug)]
pub struct Patterns {
    regex: Option<Regex>,
    count: usize,
}

impl Patterns {
    /// Compiles Python's regular expressions.
    ///
    /// # Errors
    /// The first one that cannot be used.
    pub fn new<'p>(patterns: impl Iterator<Item = &'p str>) -> Result<Patterns, PatternError> {
        let mut texts = Vec::new();
        for (index, pattern) in patterns.enumerate() {
            if index == PATTERNS_MAX {
                return Err(PatternError { pattern: None, fault: PatternFault::TooMany });
            }
            texts.push(pattern);
        }
        if texts.is_empty() {
            return Ok(Patterns { regex: None, count: 0 });
        }
        let options = Options {
            names: Names::Bytes,
            match_kind: MatchKind::All,
            pattern_bytes_max: PATTERN_BYTES_MAX,
            compiled_bytes_max: COMPILED_BYTES_MAX,
            cache_bytes_max: REMEMBERED_BYTES_MAX,
        };
        let regex = compile(&texts, options).map_err(|error| PatternError {
            pattern: error.pattern,
            fault: PatternFault::Regex(error.fault),
        })?;
        Ok(Patterns { regex: Some(regex), count: texts.len() })
    }

    /// The number of the first pattern that is found in the name.
    pub fn first_in(&self, name: &[u8]) -> Option<usize> {
        let mut found = PatternSet::new(self.count);
        self.regex.as_ref()?.which_overlapping_matches(&Input::new(name), &mut found);
        found.iter().next().map(|pattern| pattern.as_usize())
    }
}
