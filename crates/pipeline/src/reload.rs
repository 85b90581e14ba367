//! Merges a new plan with the one in force: ids keep their meaning, and so do accounts and queues.
//!
//! Rows in both plans keep their place; removed ones stay as a row that nothing feeds, so that its account still adds
//! up; new ones follow at the end.

use config::plan::{Feed, OutputPlan, Plan, SourcePlan};
use model::{OutputId, SourceId};

/// `new` with the ids of `old`: a [`SourceId`] or [`model::OutputId`] means the same under both.
pub fn merge_plans(old: &Plan, new: &Plan) -> Plan {
    let mut plan = new.clone();
    plan.sources = laid(
        &old.sources,
        &new.sources,
        |a, b| a.name == b.name,
        |gone| SourcePlan { listen: Vec::new(), ..gone.clone() },
    );
    let moved = |id: SourceId| {
        let name = &new.sources[id.index()].name;
        let at = plan.sources.iter().position(|source| source.name == *name);
        SourceId(at.expect("every source of the new plan was matched or added") as u16)
    };
    for transform in &mut plan.transforms {
        for feed in &mut transform.from {
            if let Feed::Source(id) = feed {
                *id = moved(*id);
            }
        }
    }
    let with_moved_feeds = |output: &OutputPlan| {
        let mut output = output.clone();
        for feed in &mut output.from {
            if let Feed::Source(id) = feed {
                *id = moved(*id);
            }
        }
        output
    };
    let new_outputs: Vec<OutputPlan> = new.outputs.iter().map(with_moved_feeds).collect();
    // A changed output gets a new place: its queue holds blocks made for the old one.
    let same = |known: &OutputPlan, output: &OutputPlan| {
        known.name == output.name && known.kind == output.kind && !known.from.is_empty()
    };
    plan.outputs =
        laid(&old.outputs, &new_outputs, same, |gone| OutputPlan { from: Vec::new(), ..gone.clone() });
    for (known, output) in old.outputs.iter().zip(&mut plan.outputs) {
        // A queue stays where it is while it is open; its limits are those of its kind.
        if known.queue_kind.is_disk() != output.queue_kind.is_disk() {
            (output.queue, output.queue_kind) = (known.queue, known.queue_kind);
        }
    }
    let moved = |id: &OutputId| {
        let output = &new_outputs[id.index()];
        let at = plan.outputs.iter().position(|known| same(known, output));
        OutputId(at.expect("every output of the new plan was matched or added") as u16)
    };
    for cluster in &mut plan.clusters {
        cluster.members = cluster.members.iter().map(moved).collect();
    }
    // Transforms have the ids of the new plan.
    for output in plan.transforms.iter_mut().flat_map(|transform| transform.kind.outputs_mut()) {
        *output = moved(output);
    }
    plan
}

/// The output, retired by now, whose queue on disk and account the one at `at` continues: a name has one queue on disk,
/// whatever its endpoint is.
pub fn predecessor(plan: &Plan, at: usize) -> Option<OutputId> {
    let output = &plan.outputs[at];
    let is_same = |known: &OutputPlan| known.name == output.name && known.queue_kind.is_disk();
    let at = plan.outputs[..at].iter().rposition(is_same).filter(|_| output.queue_kind.is_disk())?;
    Some(OutputId(at as u16))
}

fn laid<T: Clone>(old: &[T], new: &[T], same: impl Fn(&T, &T) -> bool, gone: impl Fn(&T) -> T) -> Vec<T> {
    let kept = |known: &T| new.iter().find(|new| same(known, new)).cloned().unwrap_or_else(|| gone(known));
    let mut rows: Vec<T> = old.iter().map(kept).collect();
    rows.extend(new.iter().filter(|new| old.iter().all(|known| !same(known, new))).cloned());
    rows
}
