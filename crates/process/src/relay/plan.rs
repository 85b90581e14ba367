//! Plan of a relay: clusters and statements, built by `config` from a relay.conf or from native tables.
//!
//! Plain structs without checks. `Router::new` reports errors (an expression that does not compile, an unknown
//! cluster) with their place, so that `config` can point at the line.
//! Not here: addresses, transports and queues of endpoints (`config`, `deliver`); a member only names its output.

use model::{OutputId, TransformId};

use crate::aggregation_rules::AggregationRulePlan;
use crate::bytes::put_varint;
use crate::sharding::Sharding;

/// Index of a cluster in [`RelayPlan::clusters`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClusterId(pub u16);

impl ClusterId {
    /// The id as an index.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A complete relay.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RelayPlan {
    /// The clusters that statements name, without `blackhole`: see [`To::Blackhole`].
    pub clusters: Vec<RelayCluster>,
    /// In evaluation order.
    pub statements: Vec<Statement>,
    /// Destination of the relay's own statistics.
    pub statistics: To,
    /// Each output gets a point once, however many statements send it there: the first copy counts. Carbon's own
    /// relays do the same.
    pub once: bool,
}

impl RelayPlan {
    /// The relays that are members of its clusters, each once, in order.
    pub fn next_relays(&self) -> Vec<TransformId> {
        let members = self.clusters.iter().flat_map(|cluster| &cluster.members);
        let mut relays: Vec<TransformId> = members.filter_map(|member| member.node.relay()).collect();
        relays.sort_unstable();
        relays.dedup();
        relays
    }

    /// The aggregation rules of its `aggregate` statements, in order.
    pub fn aggregation_rules(&self) -> Vec<AggregationRulePlan> {
        let rule = |statement: &Statement| match statement {
            Statement::Aggregate(statement) => Some(statement.aggregation_rule.clone()),
            Statement::Match(_) | Statement::Rewrite(_) => None,
        };
        self.statements.iter().filter_map(rule).collect()
    }

    /// A key that identifies each `aggregate` statement, in order: its windows, computes, names and expressions.
    /// The destination of results is not part of it.
    pub fn aggregation_rule_keys(&self) -> Vec<Vec<u8>> {
        let key = |statement: &Statement| {
            let Statement::Aggregate(AggregateStatement { expressions, aggregation_rule, .. }) = statement
            else {
                return None;
            };
            let mut key = Vec::new();
            aggregation_rule.write_key(&mut key);
            for ExpressionPlan { text, ignore_case } in expressions {
                put_varint(u64::from(*ignore_case), &mut key);
                put_varint(text.len() as u64, &mut key);
                key.extend_from_slice(text.as_bytes());
            }
            Some(key)
        };
        self.statements.iter().filter_map(key).collect()
    }
}

/// A cluster: endpoints, and how records are distributed among them.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayCluster {
    /// The configured name.
    pub name: String,
    /// In configuration order, which matters.
    pub members: Vec<Member>,
    /// Which members get a record.
    pub distribution: Distribution,
}

/// A node that gets copies as a member of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemberNode {
    /// An output.
    Output(OutputId),
    /// Another relay. It is always up.
    Relay(TransformId),
}

impl MemberNode {
    /// The output, if it is one.
    pub fn output(self) -> Option<OutputId> {
        match self {
            MemberNode::Output(output) => Some(output),
            MemberNode::Relay(_) => None,
        }
    }

    /// The relay, if it is one.
    pub fn relay(self) -> Option<TransformId> {
        match self {
            MemberNode::Relay(relay) => Some(relay),
            MemberNode::Output(_) => None,
        }
    }
}

/// One endpoint, or another relay, as a member of one cluster. A node may be a member of several clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The node that gets the copies.
    pub node: MemberNode,
    /// The address as written, without port and brackets; the path of a file; the name of a relay.
    pub host: String,
    /// The port; 0 for a file or a relay.
    pub port: u16,
    /// Replaces the address as the member's name in sharding.
    pub instance: Option<String>,
}

impl Member {
    /// `host:port=instance`, as [`Cluster::new`](crate::sharding::Cluster::new) takes it.
    pub fn label(&self) -> String {
        match &self.instance {
            Some(instance) => format!("{}:{}={instance}", self.host, self.port),
            None => format!("{}:{}", self.host, self.port),
        }
    }
}

/// Which members of a cluster get a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// All of them: `forward`, `file`.
    Copies,
    /// The owners of the key: `any_of`, `carbon_ch`, `fnv1a_ch`, `jump_fnv1a_ch`, carbon's own rings.
    Sharded {
        /// The sharding method.
        sharding: Sharding,
        /// Members that own each key: at least 1, at most all.
        replication: u8,
        /// A member that is down fails over to another one (`any_of`, `dynamic`). Otherwise its records stay
        /// queued.
        fail_over: bool,
    },
    /// The first one that is up; the first when none is.
    Failover,
    /// Round robin over the members that are up: `lb`, unknown to carbon-c-relay.
    RoundRobin,
}

impl Distribution {
    /// True when `route using` applies. `any_of` always uses the name, as in the original.
    pub fn follows_route_using(&self) -> bool {
        matches!(self, Distribution::Sharded { sharding, .. } if *sharding != Sharding::AnyOf)
    }
}

/// One rule for names.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// `match`: sends a record.
    Match(MatchPlan),
    /// `rewrite`: renames it for all later statements.
    Rewrite(RewritePlan),
    /// `aggregate`: feeds it to an aggregation rule.
    Aggregate(AggregateStatement),
}

/// An expression as written: POSIX extended syntax plus Perl's `\d` and similar. It is searched anywhere in the
/// name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionPlan {
    /// As in the configuration, after unquoting.
    pub text: String,
    /// Ignore the case of letters, as in carbon's relay-rules.conf.
    pub ignore_case: bool,
}

impl From<&str> for ExpressionPlan {
    fn from(text: &str) -> ExpressionPlan {
        ExpressionPlan { text: text.to_owned(), ignore_case: false }
    }
}

/// `match … [validate …] [route using …] [send to …] [stop]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MatchPlan {
    /// Each expression is a rule of its own with the same action, so that a name that matches two of them is sent
    /// twice. Empty: `*`, every name.
    pub expressions: Vec<ExpressionPlan>,
    /// Names that match one of these are excluded.
    pub unless: Vec<ExpressionPlan>,
    /// Condition on the rest of the line.
    pub validate: Option<ValidatePlan>,
    /// The sharding key for hashed clusters, as a replacement (spec graphite §2.6); None for the name.
    pub route_using: Option<String>,
    /// Destination of copies.
    pub to: To,
    /// Later statements do not see the record. No effect without a `send to`.
    pub stop: bool,
}

/// `validate EXPR else log|drop`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidatePlan {
    /// Searched in the text after the name: tags if any, value and timestamp.
    pub expression: ExpressionPlan,
    /// `else log`: log lines that do not match.
    pub log: bool,
}

/// The destination of a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum To {
    /// There is no `send to`.
    #[default]
    Nowhere,
    /// `send to blackhole`: drops the record; later statements do not see it.
    Blackhole,
    /// All of these clusters.
    Clusters(Vec<ClusterId>),
}

/// `rewrite EXPR into REPL`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewritePlan {
    /// The part of the name to replace.
    pub expression: ExpressionPlan,
    /// The replacement (spec graphite §2.6).
    pub into: String,
    /// Replace every match, not only the first, as in carbon's rewrite-rules.conf.
    pub every_occurrence: bool,
}

/// `aggregate EXPR… every … [send to …] [stop]`.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregateStatement {
    /// Each expression is a rule of its own: a name that matches two of them is counted twice. At least one.
    pub expressions: Vec<ExpressionPlan>,
    /// Windows and computes.
    pub aggregation_rule: AggregationRulePlan,
    /// Destination of the results, exclusively. With [`To::Nowhere`] they enter at the first statement, as records
    /// do.
    pub to: To,
    /// Later statements do not see the record.
    pub stop: bool,
    /// A record that is fed to a result of its own name is replaced by it: later `aggregate` statements see the
    /// record, others do not. Carbon's aggregator does the same.
    pub replaces: bool,
}
