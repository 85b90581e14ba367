//! The relay's statements: which endpoints a line goes to, and under which name (spec graphite §2).
//!
//! Path of a line: its name (`wire`) -> **`CachedRouter::route`** -> for a name that is not known `Router::decide`, rule
//! after rule -> `Decision::run` -> an [`Act`] for each copy and each value of an aggregation rule (`aggregation rule`).
//! Not here: what a line looks like (`wire`), queues (`deliver`), the language (`config`). No I/O, no clock.
//! Invariants: statements are met in the plan's order, strictly; a cached decision equals a fresh one; whatever
//! [`Router::explain`] tells is what happens.

mod backtracking;
mod cache;
mod decision;
mod effort;
mod explain;
mod expression;
mod mistake;
mod moving;
mod names;
mod plan;
mod replacement;
mod router;
mod searches;
mod sieve;
mod syntax;
#[cfg(test)]
mod tests;

pub use backtracking::{BACKTRACKING_BYTES_MAX, BACKTRACKING_STEPS_MAX};
pub use cache::{CacheFigures, CacheLimits, CachedRouter};
pub use decision::{Act, COPIES_MAX, Decision, End, Line, Routing};
pub use explain::{Chosen, Did, Explanation, Meeting, Sent, Why};
pub use expression::{COMPILED_BYTES_MAX, Class, Expression, GaveUp, Outline};
pub use mistake::{MistakeAt, RelayMistake, RelayWarning};
pub use moving::Successors;
pub use plan::{
    AggregateStatement, ClusterId, ExpressionPlan, MatchPlan, Member, RelayCluster, RelayPlan, RewritePlan,
    Sharing, Statement, To, ValidatePlan,
};
pub use replacement::{LostReference, lost_references, statistics_prefix};
pub use router::{Entry, NAME_BYTES_MAX, Router, RouterToAsk, STATEMENTS_MAX};
pub use searches::{SEARCHES_BYTES_MAX, SearchFigures};
pub use syntax::{DEPTH_MAX, GROUPS_MAX, Note, NoteAbout, REPEAT_MAX, Refusal};
