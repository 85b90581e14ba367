//! Relay statements: which endpoints a line goes to, and under which name (spec graphite §2).
//!
//! Path of a line: its name (`wire`) -> **`CachedRouter::route`** -> for a name that is not cached
//! `Router::decide`, rule after rule -> `Decision::run` -> an [`Act`] for each copy and each value of an
//! aggregation rule (`aggregation_rules`).
//! Not here: parsing of lines (`wire`), queues (`deliver`), the configuration language (`config`). No I/O, no
//! clock.
//! Invariants: statements are evaluated strictly in the plan's order; a cached decision equals a fresh one;
//! [`Router::explain`] describes exactly what happens.

mod backtracking;
mod budget;
mod cache;
mod decision;
mod evaluate;
mod explain;
mod expression;
mod failover;
mod found;
mod mistake;
mod names;
mod plan;
mod prefilter;
mod replacement;
mod router;
mod searches;
mod syntax;
#[cfg(test)]
mod tests;

pub use backtracking::{BACKTRACKING_BYTES_MAX, BACKTRACKING_STEPS_MAX};
pub use cache::{CacheFigures, CacheLimits, CachedRouter};
pub use decision::{Act, COPIES_MAX, Decision, End, Line, Routing};
pub use explain::{Chosen, Explanation, RuleAction, RuleMatch, Sent, Why};
pub use expression::{COMPILED_BYTES_MAX, Class, Expression, Outline};
pub use failover::Successors;
pub use found::GaveUp;
pub use mistake::{MistakeAt, RelayMistake, RelayWarning};
pub use plan::{
    AggregateStatement, ClusterId, Distribution, ExpressionPlan, MatchPlan, Member, MemberNode, RelayCluster,
    RelayPlan, RewritePlan, Statement, To, ValidatePlan,
};
pub use replacement::{LostReference, NAME_BYTES_MAX, lost_references, statistics_prefix};
pub use router::{Entry, Router, RouterSnapshot, STATEMENTS_MAX};
pub use searches::{SEARCHES_BYTES_MAX, SearchFigures};
pub use syntax::{DEPTH_MAX, GROUPS_MAX, Note, NoteAbout, REPEAT_MAX, Refusal};
