//! The transforms that take points: of an aggregation's results, and of sources.
//!
//! Path of a point: `Transforms::push_points`, or `Fed::route` for results -> **[`Takers`]** -> `chain` for relays, and `point_events`
//! for Riemann configs. Not here: edges of points between relays (`chain`).

use config::plan::{Feed, Plan};

use crate::Accounts;
use crate::shard::transforms::chain::Relays;
use crate::shard::transforms::streams::{self, AllStreams};
use crate::shard::transforms::wiring::Edge;

/// All transforms that take points.
pub(crate) struct Takers<'t> {
    pub(crate) relays: &'t mut Relays,
    pub(crate) streams: &'t mut AllStreams,
}

/// The edges of points from one node.
#[derive(Debug, Default)]
pub(crate) struct PointEdges {
    pub(crate) relays: Vec<Edge>,
    pub(crate) streams: Vec<Edge>,
}

impl PointEdges {
    /// Those from `feed`.
    pub(crate) fn from(feed: Feed, plan: &Plan, accounts: &Accounts) -> PointEdges {
        let relays = plan.relays().map(|(_, transform, _)| transform);
        PointEdges {
            relays: Edge::all_from(feed, plan, accounts, relays),
            streams: Edge::all_from(feed, plan, accounts, streams::takers(plan)),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.relays.is_empty() && self.streams.is_empty()
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Edge> {
        self.relays.iter().chain(&self.streams)
    }
}
