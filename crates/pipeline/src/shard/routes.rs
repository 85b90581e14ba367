//! Which outputs a source's records go to without a transform, or through one: fixed for a plan's life.
//!
//! Not here: which transforms they go to (`transforms`).

use config::kinds::RecordKind;
use config::plan::{Feed, OutputPlan, Plan};
use model::{AckWhen, OutputId, SourceId, TransformId};

use crate::shard::packets::Sharing;

/// The routes of the records of one source to outputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SourceRoutes {
    /// Outputs of its unchanged packets.
    pub(crate) raw: Sharing,
    /// Outputs that parse its packets.
    pub(crate) lines: Vec<OutputId>,
    /// Clusters, by their index in the plan.
    pub(crate) clusters: Vec<usize>,
    /// Outputs of its points.
    pub(crate) points: Vec<OutputId>,
    /// Outputs of its events.
    pub(crate) events: Vec<OutputId>,
    /// Every output that takes something of it without an aggregation in between, including those of relays.
    pub(crate) reached: Vec<OutputId>,
    /// Those of them that need the sender of a point.
    pub(crate) peers: Vec<OutputId>,
    /// Outputs of its packets that the source waits for when they are full, if it can wait.
    pub(crate) blocking: Vec<OutputId>,
    /// The acknowledgements that its outputs can keep.
    pub(crate) acks: Vec<AckWhen>,
}

impl SourceRoutes {
    /// True when the source's packets have a route without an aggregation.
    pub(crate) fn takes_packets(&self) -> bool {
        !(self.raw.is_empty() && self.lines.is_empty() && self.clusters.is_empty())
    }

    /// True when the source's points have a route.
    pub(crate) fn takes_points(&self) -> bool {
        !(self.raw.is_empty() && self.points.is_empty())
    }
}

/// Whether an output makes samples of packets and of aggregates, and therefore parses lines.
fn looks_into_lines(output: &OutputPlan) -> bool {
    takes(output, RecordKind::Packets) && takes(output, RecordKind::Aggregates)
}

fn takes(output: &OutputPlan, kind: RecordKind) -> bool {
    output.kind.takes().contains(&kind)
}

fn cluster_of(plan: &Plan, id: OutputId) -> Option<usize> {
    plan.clusters.iter().position(|cluster| cluster.members.contains(&id))
}

/// Routes of the source `id`. Events also follow the edges of the source's transforms.
pub(crate) fn of_source(plan: &Plan, id: SourceId) -> SourceRoutes {
    let keeps = |when: &AckWhen| plan.against(id, *when).is_none();
    let acks = AckWhen::ALL.into_iter().filter(keeps).collect();
    let mut routes = SourceRoutes { acks, ..SourceRoutes::default() };
    // Relays that its points reach, directly or through other relays.
    let mut behind = plan.feeds_of(id);
    behind.retain(|feed| *feed != Feed::Source(id));
    let points = plan.sources[id.index()].kind.gives_points();
    let events = plan.sources[id.index()].kind.facts().node.gives.contains(&RecordKind::Events);
    let takes_from_it = |at: &TransformId| {
        plan.transforms.get(at.index()).is_some_and(|transform| {
            // Streams decide themselves which events go on.
            transform.takes_from(id) && transform.kind.as_streams().is_none()
        })
    };
    for (at, output) in plan.outputs.iter().enumerate() {
        let feeds = |feed: &Feed| match feed {
            Feed::Source(source) => *source == id,
            Feed::Transform(transform) => takes(output, RecordKind::Events) && takes_from_it(transform),
        };
        let is_behind_relay = output.from.iter().any(|feed| behind.contains(feed));
        let is_fed = output.from.iter().any(feeds);
        if !is_behind_relay && !is_fed {
            continue;
        }
        let output_id = OutputId(at as u16);
        routes.reached.push(output_id);
        let of_points = points && takes(output, RecordKind::Points);
        let of_events =
            events && takes(output, RecordKind::Events) && output.from.contains(&Feed::Source(id));
        let waits = is_behind_relay || of_points || of_events || takes(output, RecordKind::Packets);
        if waits && output.queue.when_full.ever_waits() {
            routes.blocking.push(output_id);
        }
        if !is_fed {
            continue;
        }
        if of_points {
            routes.points.push(output_id);
            continue;
        }
        if let Some(cluster) = cluster_of(plan, output_id) {
            if !routes.clusters.contains(&cluster) {
                routes.clusters.push(cluster);
            }
        } else if looks_into_lines(output) {
            routes.lines.push(output_id);
        } else if !routes.raw.add(plan, output_id) && takes(output, RecordKind::Events) {
            routes.events.push(output_id);
        }
    }
    if plan.sources[id.index()].kind.as_relay_own().is_some() {
        // A relay's own metrics report how full its queues are: they do not wait for them.
        routes.blocking.clear();
    }
    let names_peers = |id: &&OutputId| plan.outputs[id.index()].kind.names_peers();
    routes.peers = routes.reached.iter().filter(names_peers).copied().collect();
    routes
}
