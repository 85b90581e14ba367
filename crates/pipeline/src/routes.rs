//! Which transforms and outputs a source's records and a transform's aggregates go to: fixed for a plan's life.

use config::plan::{Feed, OutputKind, Plan};
use model::{OutputId, SourceId, TransformId};

use crate::packets::Sharing;

/// Where the records of one source go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SourceRoutes {
    /// Aggregations of its samples.
    pub(crate) transforms: Vec<TransformId>,
    /// Outputs of its packets as they came.
    pub(crate) raw: Sharing,
    /// Outputs of its events.
    pub(crate) events: Vec<OutputId>,
}

impl SourceRoutes {
    /// True when something looks inside the source's packets.
    pub(crate) fn parses(&self) -> bool {
        !self.transforms.is_empty() || !self.events.is_empty()
    }
}

fn takes_packets(kind: &OutputKind) -> bool {
    matches!(kind, OutputKind::Packets(_))
}

fn takes_events(kind: &OutputKind) -> bool {
    matches!(kind, OutputKind::EventFile { .. })
}

/// Routes of the source `id`. Events also follow the edges of the source's transforms.
pub(crate) fn of_source(plan: &Plan, id: SourceId) -> SourceRoutes {
    let mut routes = SourceRoutes::default();
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
        if !routes.raw.add(plan, output_id) && takes_events(&output.kind) {
            routes.events.push(output_id);
        }
    }
    routes
}

/// Outputs of what the transform `id` flushes.
pub(crate) fn of_transform(plan: &Plan, id: TransformId) -> Vec<OutputId> {
    let outputs = plan.outputs.iter().enumerate();
    let fed = outputs.filter(|(_, output)| {
        output.from.contains(&Feed::Transform(id))
            && !takes_packets(&output.kind)
            && !takes_events(&output.kind)
    });
    fed.map(|(at, _)| OutputId(at as u16)).collect()
}
