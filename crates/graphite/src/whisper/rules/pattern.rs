//! The patterns of all rules as one automaton: a name is read once, and the first rule that matches is known.
//!
//! Linear in the name, whatever the patterns are, and bounded in memory: expressions that need backtracking are
//! rejected. Names are bytes: `.` is one byte, and classes of characters are ASCII.

use std::fmt;

use regex_automata::meta::{BuildError, Builder, Config, Regex};
use regex_automata::util::syntax;
use regex_automata::{Input, MatchKind, PatternSet};

use super::python;

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
    /// It is longer than [`PATTERN_BYTES_MAX`].
    TooLong,
    /// The compiled patterns need more than [`COMPILED_BYTES_MAX`].
    TooLarge,
    /// It needs backtracking: a reference to a group, a look-around, a condition or a possessive repetition.
    NeedsBacktracking {
        /// Its place in bytes.
        at: usize,
    },
    /// Python does not know this escape.
    UnknownEscape {
        /// Its place in bytes.
        at: usize,
    },
    /// A class in brackets has a character that is not ASCII.
    NotAsciiClass {
        /// Its place in bytes.
        at: usize,
    },
    /// The syntax is wrong.
    Syntax {
        /// The message of the library that reads it.
        message: String,
    },
}

impl fmt::Display for PatternFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatternFault::TooMany => write!(f, "there are more than {PATTERNS_MAX} patterns"),
            PatternFault::TooLong => write!(f, "the pattern is longer than {PATTERN_BYTES_MAX} bytes"),
            PatternFault::TooLarge => {
                write!(
                    f,
                    "the patterns need more than {} MiB once they are compiled",
                    COMPILED_BYTES_MAX >> 20
                )
            }
            PatternFault::NeedsBacktracking { at } => {
                write!(
                    f,
                    "the pattern needs backtracking (at byte {at}), which could take minutes for one name"
                )
            }
            PatternFault::UnknownEscape { at } => write!(f, "unknown escape at byte {at}"),
            PatternFault::NotAsciiClass { at } => {
                write!(f, "a class in brackets has a character that is not ASCII (at byte {at})")
            }
            PatternFault::Syntax { message } => f.write_str(message),
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
            if pattern.len() > PATTERN_BYTES_MAX {
                return Err(PatternError { pattern: Some(index), fault: PatternFault::TooLong });
            }
            let text = python::translated(pattern);
            texts.push(text.map_err(|fault| PatternError { pattern: Some(index), fault })?);
        }
        if texts.is_empty() {
            return Ok(Patterns { regex: None, count: 0 });
        }
        let config = Config::new()
            .match_kind(MatchKind::All)
            .utf8_empty(false)
            .nfa_size_limit(Some(COMPILED_BYTES_MAX))
            .hybrid_cache_capacity(REMEMBERED_BYTES_MAX);
        let syntax = syntax::Config::new().unicode(false).utf8(false);
        let regex = Builder::new().configure(config).syntax(syntax).build_many(&texts).map_err(refused)?;
        Ok(Patterns { regex: Some(regex), count: texts.len() })
    }

    /// The number of the first pattern that is found in the name.
    pub fn first_in(&self, name: &[u8]) -> Option<usize> {
        let mut found = PatternSet::new(self.count);
        self.regex.as_ref()?.which_overlapping_matches(&Input::new(name), &mut found);
        found.iter().next().map(|pattern| pattern.as_usize())
    }
}

fn refused(error: BuildError) -> PatternError {
    let fault = match (error.syntax_error(), error.size_limit()) {
        (Some(syntax), _) => PatternFault::Syntax { message: short(&syntax.to_string()) },
        (None, Some(_)) => PatternFault::TooLarge,
        (None, None) => PatternFault::Syntax { message: error.to_string() },
    };
    PatternError { pattern: error.pattern().map(|pattern| pattern.as_usize()), fault }
}

/// The last line of a message that shows the pattern with a mark below it.
fn short(message: &str) -> String {
    let last = message.lines().last().unwrap_or(message);
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}
