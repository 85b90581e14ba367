//! Which parts of a plan are stored in the data directory.
//!
//! Not here: the directory itself and its lock (`sys::data_dir`).

use config::plan::Plan;

/// True when the plan needs the data directory, so that no other process may have it.
pub(crate) fn is_needed(plan: &Plan) -> bool {
    plan.outputs.iter().any(|output| output.queue_kind.is_disk())
}

/// True when the plan uses the data directory, but works without it.
pub(crate) fn is_wanted(plan: &Plan) -> bool {
    plan.checkpoints().next().is_some()
}
