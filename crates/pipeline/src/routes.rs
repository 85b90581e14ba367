//! Which transforms and outputs a source's records and a transform's aggregates go to: fixed for a plan's life.

use config::plan::{Feed, OutputKind, PacketsPlan, Plan};
use deliver::plan::WhenFull;
use model::{AckWhen, OutputId, SourceId, TransformId};

use crate::packets::Sharing;

/// Where the records of one source go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SourceRoutes {
    /// Aggregations of its samples.
    pub(crate) transforms: Vec<TransformId>,
    /// Outputs of its packets as they came.
    pub(crate) raw: Sharing,
    /// Outputs that look into its packets.
    pub(crate) lines: Vec<OutputId>,
    /// Clusters, by their place in the plan.
    pub(crate) clusters: Vec<usize>,
    /// Outputs of its events.
    pub(crate) events: Vec<OutputId>,
    /// Every output that takes something of it without an aggregation in between.
    pub(crate) reached: Vec<OutputId>,
    /// Outputs of its packets that the source waits for when they are full, if it can wait.
    pub(crate) blocking: Vec<OutputId>,
    /// What its clients may be told of their lines.
    pub(crate) acks: Vec<AckWhen>,
}

impl SourceRoutes {
    /// True when the source's packets go somewhere without having been aggregated.
    pub(crate) fn takes_packets(&self) -> bool {
        !(self.raw.is_empty() && self.lines.is_empty() && self.clusters.is_empty())
    }

    /// True when the source's packets have to be read as samples.
    pub(crate) fn parses(&self) -> bool {
        !self.transforms.is_empty() || !self.events.is_empty()
    }
}

fn looks_into_lines(kind: &OutputKind) -> bool {
    matches!(kind, OutputKind::Packets(PacketsPlan { lines: Some(_), .. }))
}

fn cluster_of(plan: &Plan, id: OutputId) -> Option<usize> {
    plan.clusters.iter().position(|cluster| cluster.members.contains(&id))
}

fn takes_aggregates(kind: &OutputKind) -> bool {
    match kind {
        OutputKind::Packets(_) => looks_into_lines(kind),
        OutputKind::EventFile { .. } => false,
        _ => true,
    }
}

fn takes_events(kind: &OutputKind) -> bool {
    matches!(kind, OutputKind::EventFile { .. })
}

/// Routes of the source `id`. Events also follow the edges of the source's transforms.
pub(crate) fn of_source(plan: &Plan, id: SourceId) -> SourceRoutes {
    let keeps = |when: &AckWhen| plan.against(id, *when).is_none();
    let acks = AckWhen::ALL.into_iter().filter(keeps).collect();
    let mut routes = SourceRoutes { acks, ..SourceRoutes::default() };
    for (at, transform) in plan.transforms.iter().enumerate() {
        if transform.from.contains(&id) {
            routes.transforms.push(TransformId(at as u16));
        }
    }
    for (at, output) in plan.outputs.iter().enumerate() {
        let feeds = |feed: &Feed| match feed {
            Feed::Source(source) => *source == id,
            Feed::Transform(transform) => takes_events(&output.kind) && routes.transforms.contains(transform),
        };
        if !output.from.iter().any(feeds) {
            continue;
        }
        let output_id = OutputId(at as u16);
        routes.reached.push(output_id);
        if matches!(output.kind, OutputKind::Packets(_)) && output.queue.when_full == WhenFull::Block {
            routes.blocking.push(output_id);
        }
        if let Some(cluster) = cluster_of(plan, output_id) {
            if !routes.clusters.contains(&cluster) {
                routes.clusters.push(cluster);
            }
        } else if looks_into_lines(&output.kind) {
            routes.lines.push(output_id);
        } else if !routes.raw.add(plan, output_id) && takes_events(&output.kind) {
            routes.events.push(output_id);
        }
    }
    routes
}

/// Outputs of what the transform `id` flushes.
pub(crate) fn of_transform(plan: &Plan, id: TransformId) -> Vec<OutputId> {
    let outputs = plan.outputs.iter().enumerate();
    let fed = outputs
        .filter(|(_, output)| output.from.contains(&Feed::Transform(id)) && takes_aggregates(&output.kind));
    fed.map(|(at, _)| OutputId(at as u16)).collect()
}
