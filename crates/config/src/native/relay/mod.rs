//! `[transforms.NAME]` with `type = "relay"`: from its tables to the plan for routing points.
//!
//! Path: `native::plan`, when outputs have their plans -> **[`build`]** -> `feeds` (allowed edges) -> `clusters`
//! (members are outputs) -> `rules` -> `verdict` (the router's errors, at their places in the file). `print` works in
//! reverse. Not here: the meaning of rules and the hashing of keys (`process`).
//! Invariant: `Router::new` accepts every plan that passes here.

mod clusters;
mod feeds;
mod names;
mod print;
mod rules;
mod verdict;

use model::TransformId;
use process::relay::{RelayPlan, To};

use self::names::Names;
use crate::diagnostic::{Diagnostic, has_errors};
use crate::options::{Family, Section};
use crate::plan::{Plan, RelayTransform, TransformKind};

pub(super) use feeds::check as check_feeds;
pub(super) use names::File;
pub(super) use print::fields;

/// Gives each relay of the plan its statements.
pub(super) fn build(file: File<'_>, plan: &mut Plan, wrong: &mut Vec<Diagnostic>) {
    let transforms =
        file.named.iter().filter(|named| named.family == Family::Transforms && named.fields.is_some());
    for (at, named) in transforms.enumerate() {
        let (Some(Section::TransformRelay), Some(fields)) = (named.section, &named.fields) else { continue };
        let mut relay: RelayTransform = fields.read();
        let before = wrong.len();
        let clusters = clusters::read(file, fields, TransformId(at as u16), plan, wrong);
        let mut names = Names::new(clusters.iter().map(|cluster| &*cluster.name));
        let statements = rules::read(fields, &mut names, wrong);
        let statistics = fields.table("statistics");
        let statistics = statistics.map_or(To::Nowhere, |fields| names.to(fields, wrong));
        names.unused(fields.named_tables("clusters"), wrong);
        relay.plan = RelayPlan { clusters, statements, statistics, ..relay.plan };
        let is_whole = !has_errors(&wrong[before..]);
        verdict::of(&relay.plan, fields, is_whole, wrong);
        if let Some(transform) = plan.transforms.get_mut(at) {
            transform.kind = TransformKind::Relay(Box::new(relay));
        }
    }
}
