//! Rule files of carbon's own daemons, written in Python (spec graphite §4.3): relay-rules.conf, rewrite-rules.conf,
//! aggregation-rules.conf, storage-schemas.conf and storage-aggregation.conf.
//!
//! Each has a reader that gives what the file says, or all of its mistakes; those that route also say so in the words of
//! [`process::relay`]. [`carbon`] reads carbon.conf, which says in what order the rules are met and where the rest goes, and
//! makes a plan of all of it.
//! Not here: opening files.
//! Invariant: any text gives rules or located mistakes; never a panic.

mod aggregation;
mod conf;
mod ini;
mod plan;
mod relay;
mod rewrite;
mod storage;

pub use aggregation::{AggregationRule, aggregation_rules, aggregation_statements};
pub use plan::{CarbonFile, carbon};
pub use relay::{CarbonDestination, CarbonRelayRule, CarbonRelayRules, relay_rules, relay_statements};
pub use rewrite::{CarbonRewrite, RewriteRules, rewrite_rules, rewrite_statements};
pub use storage::{Archive, Schema, StorageAggregation, WhisperMethod, storage_aggregation, storage_schemas};

use process::relay::{Expression, ExpressionPlan};

use crate::diagnostic::{Code, Diagnostic, Place};

/// Most rules of one file.
pub const RULES_MAX: usize = 65_535;

/// Checks an expression that begins at `start`; the number of its groups when it can be used.
fn expression(text: &str, start: usize, wrong: &mut Vec<Diagnostic>) -> Option<usize> {
    let refused = match Expression::new(&ExpressionPlan::from(text), true) {
        Ok(expression) => return Some(expression.groups()),
        Err(refused) => refused,
    };
    let place = Place::new(start + refused.at.start, start + refused.at.end);
    let mut diagnostic = Diagnostic::error(Code::BadExpression, refused.message).at(place);
    diagnostic.hint = refused.hint;
    wrong.push(diagnostic.label("in this expression"));
    None
}

/// Each line that says something, without the white space around it, and the place of its first byte.
fn lines(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let base = text.as_ptr() as usize;
    text.lines().filter_map(move |line| {
        let line = line.trim();
        let says = !line.is_empty() && !line.starts_with('#');
        says.then(|| (line, line.as_ptr() as usize - base))
    })
}

#[cfg(test)]
mod tests;
