//! What a relay is told to do. Made by `config` from a relay.conf or from native tables.
//!
//! Plain structs with no opinion: what cannot work (an expression that does not compile, a cluster that is not there) is
//! told by `Router::new`, with the place, so that `config` can point at the line.
//! Not here: addresses, transports and queues of endpoints (`config`, `deliver`); a member only says which output it is.

use model::OutputId;

use crate::aggregation_rules::AggregationRulePlan;
use crate::bytes::put_varint;
use crate::sharding::Sharding;

/// Place of a cluster in [`RelayPlan::clusters`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClusterId(pub u16);

impl ClusterId {
    /// The id as an index.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A relay, whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RelayPlan {
    /// The clusters that statements name. `blackhole` is none of them: see [`To::Blackhole`].
    pub clusters: Vec<RelayCluster>,
    /// In the order in which each name meets them.
    pub statements: Vec<Statement>,
    /// Where the relay's own statistics go.
    pub statistics: To,
    /// An output gets each point once, however many statements send it there: the first copy counts. So do carbon's own
    /// relays.
    pub once: bool,
}

impl RelayPlan {
    /// What tells each `aggregate` statement from others that do something else with what they are fed: windows,
    /// computes, names and expressions, in the statements' order. Where its results go is no part of it.
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

/// Endpoints, and how records are shared out between them.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayCluster {
    /// As the user calls it.
    pub name: String,
    /// In the order of the configuration, which counts.
    pub members: Vec<Member>,
    /// Which of them gets a record.
    pub sharing: Sharing,
}

/// One endpoint as a member of one cluster. An output may be a member of several clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Whose queue the copies go to.
    pub output: OutputId,
    /// The address as written, without port and brackets; the path of a file.
    pub host: String,
    /// The port; 0 for a file.
    pub port: u16,
    /// What stands in place of the address where keys are placed.
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
pub enum Sharing {
    /// Every one: `forward`, `file`.
    Copies,
    /// Those that own the key: `any_of`, `carbon_ch`, `fnv1a_ch`, `jump_fnv1a_ch`, carbon's own rings.
    Placed {
        /// How keys are placed.
        sharding: Sharding,
        /// Members that own a key: at least 1, at most as many as there are.
        replication: u8,
        /// Another member stands in for one that is down (`any_of`, `dynamic`); otherwise records wait for it.
        fail_over: bool,
    },
    /// The first one that is up; the first when none is.
    Failover,
    /// One after the other, leaving out those that are down: `lb`, which carbon-c-relay does not know.
    Turns,
}

impl Sharing {
    /// Whether `route using` has a say: `any_of` goes by the name whatever it says, as with the original.
    pub fn watches_route_using(&self) -> bool {
        matches!(self, Sharing::Placed { sharding, .. } if *sharding != Sharding::AnyOf)
    }
}

/// One rule for names.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// `match`: sends a record on.
    Match(MatchPlan),
    /// `rewrite`: gives it another name for all statements that follow.
    Rewrite(RewritePlan),
    /// `aggregate`: feeds it to an aggregation rule.
    Aggregate(AggregateStatement),
}

/// An expression as written. The form is POSIX's extended one with Perl's `\d` and its like; a name is searched for
/// it, from anywhere to anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionPlan {
    /// As in the configuration after unquoting.
    pub text: String,
    /// Letters match without regard to case, as in carbon's relay-rules.conf.
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
    /// Each one is a rule of its own with the same action, so that a name that two of them match is sent twice. Empty:
    /// `*`, every name.
    pub expressions: Vec<ExpressionPlan>,
    /// Names that one of these is found in do not match.
    pub unless: Vec<ExpressionPlan>,
    /// What the rest of the line must look like.
    pub validate: Option<ValidatePlan>,
    /// The key by which hashed clusters place it, as a replacement (spec graphite §2.6); none: the name.
    pub route_using: Option<String>,
    /// Where copies go.
    pub to: To,
    /// No later statement sees the record. Without a `send to` it has no effect.
    pub stop: bool,
}

/// `validate EXPR else log|drop`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidatePlan {
    /// Looked for in what stands behind the name: the tags if there are any, value and timestamp.
    pub expression: ExpressionPlan,
    /// `else log`: whoever looks after the relay wants to see the line.
    pub log: bool,
}

/// Where a statement sends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum To {
    /// There is no `send to`.
    #[default]
    Nowhere,
    /// `send to blackhole`: swallowed, and no later statement sees it.
    Blackhole,
    /// To each of these.
    Clusters(Vec<ClusterId>),
}

/// `rewrite EXPR into REPL`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewritePlan {
    /// What is replaced.
    pub expression: ExpressionPlan,
    /// The replacement (spec graphite §2.6).
    pub into: String,
    /// Every occurrence and not only the first, as in carbon's rewrite-rules.conf.
    pub every_occurrence: bool,
}

/// `aggregate EXPR… every … [send to …] [stop]`.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregateStatement {
    /// Each one is a rule of its own: a name that two of them match is counted twice. At least one.
    pub expressions: Vec<ExpressionPlan>,
    /// Windows and what is computed from them.
    pub aggregation_rule: AggregationRulePlan,
    /// Where results go, and nowhere else. [`To::Nowhere`]: they meet the statements from the top, as records do.
    pub to: To,
    /// No later statement sees the record that was fed in.
    pub stop: bool,
    /// A record that counts in a result of its own name is replaced by it: later `aggregate` statements see it, others do
    /// not. So does carbon's aggregator.
    pub replaces: bool,
}
