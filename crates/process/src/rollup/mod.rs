//! Rollups: many series into few, by window of the points' own time (spec graphite §2.7).

mod plan;

pub use plan::{Compute, ComputePlan, Late, RollupPlan, Stamp};
