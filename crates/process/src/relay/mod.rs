//! The relay's statements: which endpoints a line goes to, and under which name (spec graphite §2).

mod plan;

pub use plan::{
    AggregateStatement, ClusterId, ExpressionPlan, MatchPlan, Member, RelayCluster, RelayPlan, RewritePlan,
    Sharing, Statement, To, ValidatePlan,
};
