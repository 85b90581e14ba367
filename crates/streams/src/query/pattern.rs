//! Regular expressions of `~=`: Java's syntax, searched in the text, with limits on memory and steps.

use std::fmt;

use arcstr::ArcStr;
use fancy_regex::{Regex, RegexBuilder};

use super::error::on_one_line;
use super::java::{Translated, translate};
use super::like::is_line_break;
use super::limits::{BACKTRACKING_BYTES_MAX, BACKTRACKING_STEPS_MAX, PATTERN_BYTES_MAX, SEARCHED_BYTES_MAX};
use super::meter::Meter;

/// Backtracking steps of the first, cheap search. Most texts need fewer.
const SHORT_STEPS_MAX: usize = 500;

/// Maximum memory of an automaton, and of its cache.
const PART_BYTES_MAX: usize = 256 << 10;

/// Maximum instructions of an expression that backtracks.
const INSTRUCTIONS_MAX: usize = 16 << 10;

/// A compiled expression.
#[derive(Debug)]
pub struct Pattern {
    text: ArcStr,
    /// With the low limit on steps.
    short: Box<Regex>,
    /// With the full one, for an expression that needs backtracking.
    long: Option<Box<Regex>>,
    /// It may match before a line break at the end of the text.
    ends: bool,
}

/// Why a regular expression was rejected, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError(String);

impl fmt::Display for PatternError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "invalid regular expression: {}", self.0)
    }
}

impl std::error::Error for PatternError {}

/// By text.
impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.text == other.text
    }
}

impl Pattern {
    /// Compiles an expression. Takes up to some milliseconds.
    ///
    /// # Errors
    /// It is invalid, has a construct that we do not support, or is too large (`limits`).
    pub fn new(text: &str) -> Result<Pattern, PatternError> {
        if text.len() > PATTERN_BYTES_MAX {
            return Err(PatternError(format!("it has {} bytes; at most {PATTERN_BYTES_MAX}", text.len())));
        }
        let Translated { text: engine, backtracks, ends } =
            translate(text).map_err(|message| PatternError(on_one_line(&message)))?;
        let long = if backtracks { Some(compiled(&engine, BACKTRACKING_STEPS_MAX)?) } else { None };
        let short = compiled(&engine, SHORT_STEPS_MAX)?;
        Ok(Pattern { text: text.into(), short, long, ends })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is found in the text. A search that reaches a limit finds nothing; `meter` counts it.
    pub fn is_in(&self, text: &str, meter: &mut Meter) -> bool {
        if self.found(text, meter) {
            return true;
        }
        // Java's `$` also matches before a line break at the end.
        let without_break = || text.strip_suffix("\r\n").or_else(|| text.strip_suffix(is_line_break));
        self.ends && without_break().is_some_and(|text| self.found(text, meter))
    }

    fn found(&self, text: &str, meter: &mut Meter) -> bool {
        let bytes_max = if self.long.is_some() { BACKTRACKING_BYTES_MAX } else { SEARCHED_BYTES_MAX };
        if text.len() > bytes_max {
            meter.gave_up += 1;
            return false;
        }
        meter.steps += 4 + (text.len() / 16) as u64;
        match (self.short.is_match(text), &self.long) {
            (Ok(found), _) => return found,
            (Err(_), None) => {}
            (Err(_), Some(long)) => {
                meter.steps += BACKTRACKING_STEPS_MAX as u64;
                if let Ok(found) = long.is_match(text) {
                    return found;
                }
            }
        }
        meter.gave_up += 1;
        false
    }
}

fn compiled(text: &str, steps_max: usize) -> Result<Box<Regex>, PatternError> {
    let built = RegexBuilder::new(text)
        .backtrack_limit(steps_max)
        .delegate_size_limit(PART_BYTES_MAX)
        .delegate_dfa_size_limit(PART_BYTES_MAX)
        .max_prog_size(INSTRUCTIONS_MAX)
        .build();
    match built {
        Ok(regex) => Ok(Box::new(regex)),
        Err(error) => Err(PatternError(last_line(&error.to_string()))),
    }
}

/// The engine's errors may draw the expression over several lines.
fn last_line(message: &str) -> String {
    message.lines().last().unwrap_or_default().trim().trim_start_matches("error: ").to_owned()
}
