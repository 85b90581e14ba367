//! Transforms of a checked plan: the computations between sources and outputs.

use std::path::PathBuf;

use model::{Dropped, OutputId, Reject, SourceId, TransformId};
use process::aggregate::AggregatePlan;
use process::aggregation_rules::AggregationRuleLimits;
use process::relay::{MemberNode, RelayPlan, Statement};
use wire::graphite::Namespace;
use wire::statsd::Dialect;

use super::{Feed, Plan, StreamsTransform, TransformFacts};
use crate::kinds::NodeKind;
use crate::options::Section;

/// The destination of rules that drop points.
pub const BLACKHOLE: &str = "blackhole";

/// A transform.
#[derive(Clone, Debug, PartialEq)]
pub struct TransformPlan {
    /// The name given by the user.
    pub name: String,
    /// Its computation.
    pub kind: TransformKind,
    /// Its edges; at least one. Sources of an aggregation share one set of [`Options`](wire::statsd::Options).
    pub from: Vec<Feed>,
}

impl TransformPlan {
    /// Whether a source feeds it.
    pub fn takes_from(&self, source: SourceId) -> bool {
        self.from.contains(&Feed::Source(source))
    }

    /// The sources that feed it.
    pub fn sources(&self) -> impl Iterator<Item = SourceId> {
        self.from.iter().filter_map(|feed| match feed {
            Feed::Source(id) => Some(*id),
            Feed::Transform(_) => None,
        })
    }

    /// The transforms that feed it.
    pub fn transforms(&self) -> impl Iterator<Item = TransformId> {
        self.from.iter().filter_map(|feed| match feed {
            Feed::Transform(id) => Some(*id),
            Feed::Source(_) => None,
        })
    }
}

/// The computation of a transform.
#[derive(Clone, Debug, PartialEq)]
pub enum TransformKind {
    /// Aggregates samples by window.
    Aggregate(Box<AggregateTransform>),
    /// Routes points by their names.
    Relay(Box<RelayTransform>),
    /// Runs a Riemann config.
    Streams(Box<StreamsTransform>),
}

impl TransformKind {
    /// The aggregation, if it is one.
    pub fn as_aggregate(&self) -> Option<&AggregateTransform> {
        match self {
            TransformKind::Aggregate(aggregate) => Some(aggregate),
            TransformKind::Relay(_) | TransformKind::Streams(_) => None,
        }
    }

    /// Whether it has a state that checkpoints can keep.
    pub fn has_state(&self) -> bool {
        match self {
            TransformKind::Aggregate(_) | TransformKind::Streams(_) => true,
            TransformKind::Relay(_) => false,
        }
    }

    /// Milliseconds between two checkpoints of its state; 0 for none.
    pub fn checkpoint_ms(&self) -> u64 {
        match self {
            TransformKind::Aggregate(aggregate) => aggregate.checkpoint_ms,
            TransformKind::Streams(streams) => streams.checkpoint_ms,
            // Its aggregation rules are handed over in hot restarts only.
            TransformKind::Relay(_) => 0,
        }
    }

    /// The section that makes it.
    pub fn section(&self) -> Section {
        match self {
            TransformKind::Aggregate(_) => Section::TransformAggregate,
            TransformKind::Relay(_) => Section::TransformRelay,
            TransformKind::Streams(_) => Section::TransformStreams,
        }
    }

    /// The relay, if it is one.
    pub fn as_relay(&self) -> Option<&RelayTransform> {
        match self {
            TransformKind::Relay(relay) => Some(relay),
            TransformKind::Aggregate(_) | TransformKind::Streams(_) => None,
        }
    }

    /// The streams, if it is a Riemann config.
    pub fn as_streams(&self) -> Option<&StreamsTransform> {
        match self {
            TransformKind::Streams(streams) => Some(streams),
            TransformKind::Aggregate(_) | TransformKind::Relay(_) => None,
        }
    }

    /// What all code asks about it that is not about one kind only.
    pub fn facts(&self) -> TransformFacts {
        let node = NodeKind::of(self.section(), None).expect("the table of kinds has each transform");
        match self {
            TransformKind::Aggregate(_) => {
                TransformFacts { node, forwards: false, participle: Some("aggregated") }
            }
            TransformKind::Relay(_) => TransformFacts { node, forwards: true, participle: None },
            TransformKind::Streams(_) => {
                TransformFacts { node, forwards: false, participle: Some("handled by streams") }
            }
        }
    }

    /// Whether its input records become part of aggregates.
    pub fn aggregates(&self) -> bool {
        match self {
            TransformKind::Aggregate(_) | TransformKind::Streams(_) => true,
            TransformKind::Relay(relay) => relay.has_aggregation_rules(),
        }
    }

    /// Whether it can drop records for this reason, besides points made of aggregates that cannot be written.
    pub fn drops(&self, reason: Dropped) -> bool {
        match self {
            TransformKind::Aggregate(_) => {
                matches!(reason, Dropped::SeriesMax | Dropped::TimerValuesMax | Dropped::AggregateFull)
            }
            TransformKind::Streams(_) => false,
            TransformKind::Relay(relay) => {
                let of_rules = matches!(
                    reason,
                    Dropped::SeriesMax | Dropped::Late | Dropped::Early | Dropped::AggregationRuleFull
                );
                matches!(reason, Dropped::Stopped | Dropped::TooManyCopies)
                    || (of_rules && relay.has_aggregation_rules())
            }
        }
    }

    /// Whether it can reject records for this reason, by its options.
    pub fn rejects(&self, reason: Reject) -> bool {
        match self {
            TransformKind::Aggregate(_) => false,
            // Points that are no events.
            TransformKind::Streams(_) => matches!(
                reason,
                Reject::NoName
                    | Reject::NoValue
                    | Reject::BadValue
                    | Reject::NonFinite
                    | Reject::NoTimestamp
                    | Reject::BadTimestamp
                    | Reject::BadTag
                    | Reject::TooManyTags
            ),
            TransformKind::Relay(relay) => {
                (reason == Reject::Invalid && relay.validates())
                    || (reason == Reject::NonFinite && relay.has_aggregation_rules())
            }
        }
    }

    /// The outputs that its options name, to give them other ids.
    pub fn outputs_mut(&mut self) -> impl Iterator<Item = &mut OutputId> {
        let (clusters, streams) = match self {
            TransformKind::Aggregate(_) => (&mut [][..], &mut [][..]),
            TransformKind::Relay(relay) => (&mut relay.plan.clusters[..], &mut [][..]),
            TransformKind::Streams(streams) => (&mut [][..], streams.outputs_mut()),
        };
        let members = clusters.iter_mut().flat_map(|cluster| &mut cluster.members);
        let members = members.filter_map(|member| match &mut member.node {
            MemberNode::Output(output) => Some(output),
            MemberNode::Relay(_) => None,
        });
        members.chain(streams.iter_mut().map(|output| &mut output.id))
    }
}

impl Plan {
    /// The transforms whose state is saved, by name, and the milliseconds between two checkpoints.
    pub fn checkpoints(&self) -> impl Iterator<Item = (&str, u64)> {
        let of = |transform: &'_ TransformPlan| transform.kind.checkpoint_ms();
        self.transforms
            .iter()
            .map(move |transform| (transform.name.as_str(), of(transform)))
            .filter(|(_, every_ms)| *every_ms > 0)
    }

    /// Aggregations with their ids, in the plan's order.
    pub fn aggregates(&self) -> impl Iterator<Item = (TransformId, &TransformPlan, &AggregateTransform)> {
        let transforms = self.transforms.iter().enumerate();
        transforms.filter_map(|(at, plan)| Some((TransformId(at as u16), plan, plan.kind.as_aggregate()?)))
    }

    /// Riemann configs with their ids, in the plan's order.
    pub fn streams(&self) -> impl Iterator<Item = (TransformId, &TransformPlan, &StreamsTransform)> {
        let transforms = self.transforms.iter().enumerate();
        transforms.filter_map(|(at, plan)| Some((TransformId(at as u16), plan, plan.kind.as_streams()?)))
    }

    /// Relays with their ids, in the plan's order.
    pub fn relays(&self) -> impl Iterator<Item = (TransformId, &TransformPlan, &RelayTransform)> {
        let transforms = self.transforms.iter().enumerate();
        transforms.filter_map(|(at, plan)| Some((TransformId(at as u16), plan, plan.kind.as_relay()?)))
    }
}

/// Most relays on the way of a point.
pub const RELAYS_IN_A_ROW_MAX: usize = 16;

/// A relay with its limits.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayTransform {
    /// The statements. Outputs and relays in its clusters are those of the [`Plan`], and take from this
    /// relay.
    pub plan: RelayPlan,
    /// Most names in the route cache.
    pub names_max: u64,
    /// Limits of its `aggregate` statements.
    pub aggregation_rules: AggregationRuleLimits,
}

impl RelayTransform {
    /// Default of `max_names`: about 400 MiB with names of 48 bytes.
    pub const NAMES_MAX: u64 = 4 << 20;

    fn has_aggregation_rules(&self) -> bool {
        self.plan.statements.iter().any(|statement| matches!(statement, Statement::Aggregate(_)))
    }

    fn validates(&self) -> bool {
        self.plan.statements.iter().any(|statement| match statement {
            Statement::Match(rule) => rule.validate.is_some(),
            Statement::Rewrite(_) | Statement::Aggregate(_) => false,
        })
    }
}

/// An aggregation with its surroundings.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregateTransform {
    /// The aggregation itself.
    pub plan: AggregatePlan,
    /// Name of the daemon's own counters (`<prefix>.packets_received` …); empty for none.
    pub stats_prefix: String,
    /// Which of its own counters exist: node's three, or Perl's two.
    pub self_counters: SelfCounters,
    /// File of the `keyFlush` report; stdout when absent.
    pub key_flush_log: Option<PathBuf>,
    /// Milliseconds between two checkpoints of its state; 0 for none.
    pub checkpoint_ms: u64,
    /// Names of its points for transforms. Outputs have their own names.
    pub namespace: Namespace,
}

/// Default of `checkpoint`: every five seconds, except where a replaced original starts without state.
///
/// Saving costs the shard's thread about 20 ns per series (example `checkpoint_cost`): every 5 s, that is 0.4 % of a
/// core for a million series. A crash then loses at most half of a window of 10 s.
pub fn default_checkpoint_ms(dialect: Dialect) -> u64 {
    match dialect {
        Dialect::Union | Dialect::Dogstatsd => 5_000,
        Dialect::Etsy | Dialect::Perl => 0,
    }
}

/// Its own counters that an aggregation reports with the users' series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelfCounters {
    /// `bad_lines_seen`, `packets_received`, `metrics_received`, gauge `timestamp_lag` (spec statsd §15).
    Node,
    /// `bad_lines_seen`, `packets_received`.
    Perl,
    /// None.
    None,
}
