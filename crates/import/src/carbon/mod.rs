//! Reads carbon.conf and the rule files of carbon's Python daemons (spec graphite §4.3): relay-rules.conf,
//! rewrite-rules.conf, aggregation-rules.conf, blacklist.conf, whitelist.conf, storage-schemas.conf and storage-aggregation.conf.
//!
//! Each file has a reader that returns its rules, or all of its mistakes; rules for routing are also translated to
//! [`process::relay`]. [`carbon`] reads carbon.conf, which sets the order of the rules and the destinations, and makes a
//! plan.
//! Not here: opening files.
//! Invariant: any text gives rules or located mistakes; never a panic.

mod aggregation;
mod conf;
mod directories;
mod expression;
mod ini;
mod instances;
mod invocation;
mod keys;
mod lists;
mod plan;
mod relay;
mod rewrite;
mod statements;
mod storage;

pub use aggregation::{AggregationRule, aggregation_rules, aggregation_statements};
pub use directories::{Directories, directories};
pub use instances::{daemon_sections, only_section, other_daemons};
pub use invocation::Invocation;
pub use lists::{list, list_statements};
pub use plan::{CarbonFile, carbon, harmless_last, is_incomplete};
pub use relay::{CarbonDestination, CarbonRelayRule, CarbonRelayRules, relay_rules, relay_statements};
pub use rewrite::{CarbonRewrite, RewriteRules, rewrite_rules, rewrite_statements};
pub use storage::{storage_aggregations, storage_schemas};

/// Most rules of one file.
pub const RULES_MAX: usize = 65_535;

/// Each line with content, trimmed, and the place of its first byte.
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
