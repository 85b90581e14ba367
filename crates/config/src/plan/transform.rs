//! Transforms of a checked plan: what is computed between sources and outputs.

use std::path::PathBuf;

use model::{SourceId, TransformId};
use process::aggregate::AggregatePlan;
use process::aggregation_rules::AggregationRuleLimits;
use process::relay::{RelayPlan, Statement};
use wire::graphite::Namespace;
use wire::statsd::Dialect;

use super::Feed;
use crate::options::Section;

/// Where a rule sends what nobody wants.
pub const BLACKHOLE: &str = "blackhole";

/// A transform.
#[derive(Clone, Debug, PartialEq)]
pub struct TransformPlan {
    /// As the user named it.
    pub name: String,
    /// What it does.
    pub kind: TransformKind,
    /// What feeds it; at least one. Sources of an aggregation share one set of [`Options`](wire::statsd::Options).
    pub from: Vec<Feed>,
}

impl TransformPlan {
    /// Whether a source feeds it.
    pub fn takes_from(&self, source: SourceId) -> bool {
        self.from.contains(&Feed::Source(source))
    }

    /// The sources among what feeds it.
    pub fn sources(&self) -> impl Iterator<Item = SourceId> {
        self.from.iter().filter_map(|feed| match feed {
            Feed::Source(id) => Some(*id),
            Feed::Transform(_) => None,
        })
    }

    /// The transforms among what feeds it.
    pub fn transforms(&self) -> impl Iterator<Item = TransformId> {
        self.from.iter().filter_map(|feed| match feed {
            Feed::Transform(id) => Some(*id),
            Feed::Source(_) => None,
        })
    }
}

/// What a transform does.
#[derive(Clone, Debug, PartialEq)]
pub enum TransformKind {
    /// Aggregates samples by window.
    Aggregate(Box<AggregateTransform>),
    /// Sends points on by their names.
    Relay(Box<RelayTransform>),
}

impl TransformKind {
    /// The aggregation, if it is one.
    pub fn as_aggregate(&self) -> Option<&AggregateTransform> {
        match self {
            TransformKind::Aggregate(aggregate) => Some(aggregate),
            TransformKind::Relay(_) => None,
        }
    }

    /// The section that makes it.
    pub fn section(&self) -> Section {
        match self {
            TransformKind::Aggregate(_) => Section::TransformAggregate,
            TransformKind::Relay(_) => Section::TransformRelay,
        }
    }

    /// The relay, if it is one.
    pub fn as_relay(&self) -> Option<&RelayTransform> {
        match self {
            TransformKind::Relay(relay) => Some(relay),
            TransformKind::Aggregate(_) => None,
        }
    }

    /// Whether records that it takes become part of something else.
    pub fn aggregates(&self) -> bool {
        match self {
            TransformKind::Aggregate(_) => true,
            TransformKind::Relay(relay) => {
                relay.plan.statements.iter().any(|statement| matches!(statement, Statement::Aggregate(_)))
            }
        }
    }
}

/// Most relays that a point passes one after another.
pub const RELAYS_IN_A_ROW_MAX: usize = 16;

/// A relay with what surrounds it.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayTransform {
    /// The statements. Outputs and relays that are members of its clusters are those of the [`Plan`](super::Plan), and take from
    /// this relay.
    pub plan: RelayPlan,
    /// Names whose way is remembered, at most.
    pub names_max: u64,
    /// Bounds of what its `aggregate` statements hold.
    pub aggregation_rules: AggregationRuleLimits,
}

impl RelayTransform {
    /// Default of `max_names`: with names of 48 bytes some 400 MiB when all of them are there.
    pub const NAMES_MAX: u64 = 4 << 20;
}

/// An aggregation with what surrounds it.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregateTransform {
    /// The aggregation itself.
    pub plan: AggregatePlan,
    /// Name of the daemon's own counters (`<prefix>.packets_received` …); empty for none.
    pub stats_prefix: String,
    /// Which self counters exist: node's three, or Perl's two.
    pub self_counters: SelfCounters,
    /// File of the `keyFlush` report; stdout when absent.
    pub key_flush_log: Option<PathBuf>,
    /// Milliseconds between two checkpoints of its state; 0 for none.
    pub checkpoint_ms: u64,
    /// Names of its points, where a transform takes them. Outputs have names of their own for them.
    pub namespace: Namespace,
}

/// `checkpoint` of an aggregation that does not say: every five seconds, but never where the original that is stood in
/// for begins each start with nothing.
///
/// Saving costs the shard's thread about 20 ns a series (example `checkpoint_cost`): every 5 s that is 0.4 % of a core for
/// a million series, and what a crash takes from a window of 10 s is at most half of it.
pub fn default_checkpoint_ms(dialect: Dialect) -> u64 {
    match dialect {
        Dialect::Union | Dialect::Dogstatsd => 5_000,
        Dialect::Etsy | Dialect::Perl => 0,
    }
}

/// Counters about itself that an aggregation reports beside the users' series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelfCounters {
    /// `bad_lines_seen`, `packets_received`, `metrics_received`, gauge `timestamp_lag` (spec statsd §15).
    Node,
    /// `bad_lines_seen`, `packets_received`.
    Perl,
    /// None.
    None,
}
