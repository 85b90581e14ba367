//! Outputs of a plan that one section of the file can say at once.

use super::checks;
use crate::address::destination_name;
use crate::plan::{ClusterPlan, Destination, OutputPlan, Plan};

/// The outputs of one section; at least one.
pub(super) struct OutputGroup<'a> {
    pub(super) name: &'a str,
    /// The index of the first one in the plan.
    pub(super) first: usize,
    pub(super) endpoints: Vec<Destination>,
    pub(super) outputs: &'a [OutputPlan],
    pub(super) cluster: Option<&'a ClusterPlan>,
}

/// The sections for the plan's outputs, in their order.
pub(super) fn groups(plan: &Plan) -> Vec<OutputGroup<'_>> {
    let mut groups: Vec<OutputGroup> = Vec::new();
    // Outputs that a Riemann config makes have no section; they are the last ones.
    let own = plan.streams().flat_map(|(.., streams)| streams.outputs()).filter(|output| output.is_own);
    let end = own.map(|output| output.id.index()).min().unwrap_or(plan.outputs.len());
    let mut rest = &plan.outputs[..end];
    while !rest.is_empty() {
        let first = end - rest.len();
        let begins = |cluster: &&ClusterPlan| cluster.members.first().is_some_and(|id| id.index() == first);
        let cluster = plan.clusters.iter().find(begins);
        let (name, endpoints, number) = match cluster {
            Some(cluster) => {
                let number = cluster.members.len().min(rest.len());
                let endpoints = rest[..number].iter().filter_map(|output| output.kind.destination());
                (&*cluster.name, endpoints.collect(), number)
            }
            None => {
                let (mut name, mut endpoints) = group(rest, |id| in_cluster(plan, first + id));
                if groups.iter().any(|group| group.name == name) {
                    // Other outputs of this name are elsewhere in the plan, so each has its own section.
                    name = &rest[0].name;
                    endpoints.truncate(1);
                }
                let number = endpoints.len().max(1);
                (name, endpoints, number)
            }
        };
        let (outputs, after) = rest.split_at(number);
        groups.push(OutputGroup { name, first, endpoints, outputs, cluster });
        rest = after;
    }
    groups
}

fn in_cluster(plan: &Plan, at: usize) -> bool {
    plan.clusters.iter().any(|cluster| cluster.members.iter().any(|id| id.index() == at))
}

/// The name of an output in the file, and the endpoints that one section can describe: outputs that differ only in the
/// endpoint and are named after it.
fn group(outputs: &[OutputPlan], in_cluster: impl Fn(usize) -> bool) -> (&str, Vec<Destination>) {
    let first = &outputs[0];
    let Some(to) = first.kind.destination() else { return (&first.name, Vec::new()) };
    let Some(base) = base_name(first, &to) else { return (&first.name, vec![to]) };
    let mut endpoints = vec![to];
    for (at, other) in outputs.iter().enumerate().skip(1) {
        let Some(to) = other.kind.destination() else { break };
        let alike = !in_cluster(at)
            && first.kind.with_destination(&to) == other.kind
            && (&first.from, first.queue, first.queue_kind, first.required)
                == (&other.from, other.queue, other.queue_kind, other.required)
            && checks::alike(first.check.as_ref(), other.check.as_ref())
            && base_name(other, &to) == Some(base)
            && first.kind.facts().section == other.kind.facts().section;
        if !alike || endpoints.contains(&to) {
            break;
        }
        endpoints.push(to);
    }
    if endpoints.len() == 1 { (&first.name, endpoints) } else { (base, endpoints) }
}

/// `carbon` of `carbon/10.0.0.5:2003`, if that is its endpoint.
fn base_name<'a>(output: &'a OutputPlan, to: &Destination) -> Option<&'a str> {
    output.name.strip_suffix(&*destination_name(to))?.strip_suffix('/')
}
