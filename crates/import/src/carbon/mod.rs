//! Rule files of carbon's own daemons, written in Python (spec graphite §4.3): relay-rules.conf, rewrite-rules.conf,
//! aggregation-rules.conf, blacklist.conf, whitelist.conf, storage-schemas.conf and storage-aggregation.conf.
//!
//! Each has a reader that gives what the file says, or all of its mistakes; those that route also say so in the words of
//! [`process::relay`]. [`carbon`] reads carbon.conf, which says in what order the rules are met and where the rest goes, and
//! makes a plan of all of it.
//! Not here: opening files.
//! Invariant: any text gives rules or located mistakes; never a panic.

mod aggregation;
mod conf;
mod expression;
mod ini;
mod keys;
mod lists;
mod plan;
mod relay;
mod rewrite;
mod statements;
mod storage;

pub use aggregation::{AggregationRule, aggregation_rules, aggregation_statements};
pub use lists::{list, list_statements};
pub use plan::{CarbonFile, carbon};
pub use relay::{CarbonDestination, CarbonRelayRule, CarbonRelayRules, relay_rules, relay_statements};
pub use rewrite::{CarbonRewrite, RewriteRules, rewrite_rules, rewrite_statements};
pub use storage::{Archive, Schema, StorageAggregation, WhisperMethod, storage_aggregation, storage_schemas};

/// Most rules of one file.
pub const RULES_MAX: usize = 65_535;

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
mod golden_tests;
#[cfg(test)]
mod tests;
