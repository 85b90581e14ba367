//! Explains the routing of a line: which rules match, where copies go, and why. For `staunch relay --explain` and
//! the test mode.
//!
//! A direct implementation of the specification: it evaluates rule after rule for one line, without precomputation.
//! So tests compare `Decision` and the cache with it.
//! Not here: printing.

use super::decision::{COPIES_MAX, End, Line, Routing};
use super::found::GaveUp;
use super::replacement::{Replacement, can_be_sent};
use super::router::{Action, Check, Entry, Router, Rule};
use super::{ClusterId, Distribution, MemberNode, MistakeAt, To};

/// The route of one line through the statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The rules that matched, in order. A line that bypasses the statements matches none.
    pub matches: Vec<RuleMatch>,
    /// Copies sent without a rule: results and statistics with a `send to` of their own.
    pub direct: Vec<Sent>,
    /// Expressions whose search gave up, which counts as no match: see [`GaveUp`].
    pub gave_up: Vec<MistakeAt>,
    /// Counts.
    pub routing: Routing,
}

impl Explanation {
    /// The copies that are sent, in their order, each with its rule. At most [`COPIES_MAX`].
    pub fn copies(&self) -> impl Iterator<Item = (Option<&RuleMatch>, Chosen)> {
        let by_rules = self.matches.iter().flat_map(|rule_match| {
            let sent = match &rule_match.action {
                RuleAction::Sent(sent) => sent.as_slice(),
                RuleAction::Nothing
                | RuleAction::Blackholed
                | RuleAction::Renamed(_)
                | RuleAction::NotRenamed(_)
                | RuleAction::Fed { .. } => &[],
            };
            sent.iter().flat_map(|sent| &sent.chosen).map(move |chosen| (Some(rule_match), *chosen))
        });
        let direct = self.direct.iter().flat_map(|sent| &sent.chosen).map(|chosen| (None, *chosen));
        direct.chain(by_rules).take(self.routing.copies as usize)
    }
}

/// A rule that matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleMatch {
    /// Index of the statement in the plan.
    pub statement: usize,
    /// Index of the expression that matched; 0 for `*`.
    pub expression: usize,
    /// The name that matched.
    pub name: Vec<u8>,
    /// Result of its `validate`; None without one.
    pub valid: Option<bool>,
    /// The action of the rule.
    pub action: RuleAction,
    /// True when no later rule was evaluated.
    pub stopped: bool,
}

/// The action of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleAction {
    /// None: it has no destination, or its `validate` failed.
    Nothing,
    /// Copies, by cluster.
    Sent(Vec<Sent>),
    /// The line was dropped by the blackhole.
    Blackholed,
    /// The line was renamed.
    Renamed(Vec<u8>),
    /// The new name cannot be sent, so the line kept its name.
    NotRenamed(Vec<u8>),
    /// The names of the results that the value is fed to, in the order of the aggregation rule's computes; None for
    /// a name that cannot be sent.
    Fed {
        /// Index in [`Router::aggregation_rules`].
        aggregation_rule: u16,
        /// One name per compute.
        names: Vec<Option<Vec<u8>>>,
    },
}

/// Copies for one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The cluster.
    pub cluster: ClusterId,
    /// The sharding key: the name, or the result of `route using`. None in clusters without sharding.
    pub key: Option<Vec<u8>>,
    /// Position on the cluster's hash ring, or the number of the shard: `hash_pos` in the original's `-d` output.
    pub position: Option<i64>,
    /// Members that get a copy. Copies beyond [`COPIES_MAX`] are listed but not sent.
    pub chosen: Vec<Chosen>,
}

/// A member that gets a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Its index in the cluster.
    pub member: usize,
    /// Its node.
    pub node: MemberNode,
    /// The reason.
    pub why: Why,
}

/// Why a member gets a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Every member gets one.
    AllMembers,
    /// It owns the key.
    Owner,
    /// It is the failover member of this owner, which is down.
    Failover {
        /// The owner.
        owner: usize,
    },
    /// It is the first that is up.
    FirstUp,
    /// It is its turn.
    Turn,
    /// No failover member is up: the copy is queued.
    NoneUp,
}

impl Router {
    /// The route of one line with the current state of endpoints. `turn` as for [`Decision::run`].
    ///
    /// [`Decision::run`]: super::Decision::run
    pub fn explain(&self, entry: Entry, line: Line<'_>, turn: u64) -> Explanation {
        self.explain_while(entry, line, turn, &mut || true).expect("it goes on to its end")
    }

    /// As `explain`, but `goes_on` is called before each search and can stop it. None when it was stopped.
    pub fn explain_while(
        &self,
        entry: Entry,
        line: Line<'_>,
        turn: u64,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Option<Explanation> {
        self.begin_name();
        self.begin_rest();
        let mut walk = Walk {
            router: self,
            line,
            turn,
            name: line.name.to_vec(),
            copies: 0,
            copied: Vec::new(),
            replaced: false,
            feeds: 0,
            names_refused: 0,
            gave_up: Vec::new(),
        };
        let mut matches = Vec::new();
        let mut direct = Vec::new();
        let end = match self.direct(entry) {
            Some(To::Blackhole) => End::Blackholed,
            Some(to) => {
                direct = walk.send(to, None);
                End::Stopped
            }
            None => loop {
                let next = matches.last().map_or(0, |(at, _)| at + 1);
                let Some((at, rule_match, end)) = walk.next(next, goes_on)? else {
                    break if walk.replaced { End::Stopped } else { End::Exhausted };
                };
                matches.push((at, rule_match));
                if let Some(end) = end {
                    break end;
                }
            },
        };
        let sent = walk.copies.min(COPIES_MAX);
        let routing = Routing {
            copies: sent as u32,
            copies_refused: (walk.copies - sent) as u32,
            feeds: walk.feeds,
            names_refused: walk.names_refused,
            gave_up: walk.gave_up.len() as u32,
            end,
        };
        let matches = matches.into_iter().map(|(_, rule_match)| rule_match).collect();
        Some(Explanation { matches, direct, gave_up: walk.gave_up, routing })
    }
}

/// The position of a rule's expression. For a rule without expressions, the first one of its `unless`: no other can
/// give up.
fn place(rule: &Rule) -> MistakeAt {
    let statement = rule.statement;
    match rule.is_for_all() {
        true => MistakeAt::Unless { statement, expression: 0 },
        false => MistakeAt::Statement { statement, expression: Some(rule.expression) },
    }
}

/// The next matching rule: its index, the match, and why evaluation ends if it does.
type Next = (usize, RuleMatch, Option<End>);

/// A line while it is explained.
struct Walk<'a> {
    router: &'a Router,
    line: Line<'a>,
    turn: u64,
    name: Vec<u8>,
    copies: usize,
    /// Nodes that have a copy.
    copied: Vec<MemberNode>,
    /// True when the value was fed to a result of the same name, which replaces the line.
    replaced: bool,
    feeds: u32,
    names_refused: u32,
    gave_up: Vec<MistakeAt>,
}

impl Walk<'_> {
    /// Finds the next rule that matches. The outer option is None when `goes_on` stopped it.
    fn next(&mut self, from: usize, goes_on: &mut dyn FnMut() -> bool) -> Option<Option<Next>> {
        let router = self.router;
        let mut rules = router.statements.rules.iter().enumerate().skip(from);
        let (at, rule, found) = loop {
            let Some((at, rule)) = rules.find(|(_, rule)| !self.replaced || rule.feeds()) else {
                return Some(None);
            };
            if !goes_on() {
                return None;
            }
            match rule.find(&self.name) {
                Ok(Some(found)) => break (at, rule, found),
                Ok(None) => {}
                Err(GaveUp) => self.gave_up.push(place(rule)),
            }
        };
        let mut rule_match = RuleMatch {
            statement: rule.statement,
            expression: rule.expression,
            name: self.name.clone(),
            valid: None,
            action: RuleAction::Nothing,
            stopped: false,
        };
        let end = match &rule.action {
            Action::Rewrite { into, every_occurrence } => {
                match rule.rewritten(&self.name, found, into, *every_occurrence) {
                    Ok(name) => rule_match.action = self.rename(name),
                    Err(GaveUp) => self.gave_up.push(place(rule)),
                }
                None
            }
            Action::Feed { aggregation_rule, names, stop, replaces } => {
                let name = |name: &Replacement| {
                    Some(name.replace(&self.name, &found)).filter(|name| can_be_sent(name))
                };
                let names: Vec<Option<Vec<u8>>> = names.iter().map(name).collect();
                let fed = names.iter().flatten().count();
                self.feeds += fed as u32;
                self.names_refused += (names.len() - fed) as u32;
                self.replaced |= *replaces && names.iter().flatten().any(|name| *name == self.name);
                rule_match.action = RuleAction::Fed { aggregation_rule: *aggregation_rule, names };
                stop.then_some(End::Stopped)
            }
            Action::Send { check, key, to, stop } => {
                rule_match.valid = check.map(|check| self.is_valid(check, rule.statement));
                let key = key.as_ref().map(|key| key.replace(&self.name, &found));
                let ends = match (to, rule_match.valid) {
                    (To::Nowhere, Some(false)) => Some(End::Invalid),
                    (To::Nowhere, _) => None,
                    (To::Blackhole, _) => Some(End::Blackholed),
                    (To::Clusters(_), _) => stop.then_some(End::Stopped),
                };
                rule_match.action = match (to, rule_match.valid) {
                    (_, Some(false)) | (To::Nowhere, _) => RuleAction::Nothing,
                    (To::Blackhole, _) => RuleAction::Blackholed,
                    (To::Clusters(_), _) => RuleAction::Sent(self.send(to, key)),
                };
                ends
            }
        };
        rule_match.stopped = end.is_some();
        Some(Some((at, rule_match, end)))
    }

    fn rename(&mut self, name: Vec<u8>) -> RuleAction {
        if !can_be_sent(&name) {
            self.names_refused += 1;
            return RuleAction::NotRenamed(name);
        }
        self.name.clone_from(&name);
        RuleAction::Renamed(name)
    }

    fn is_valid(&mut self, check: Check, statement: usize) -> bool {
        let found = self.router.statements.checks[check.expression as usize].is_in(self.line.rest);
        if found.is_err() {
            self.gave_up.push(MistakeAt::Validate { statement });
        }
        found == Ok(true)
    }

    fn send(&mut self, to: &To, key: Option<Vec<u8>>) -> Vec<Sent> {
        let To::Clusters(clusters) = to else { return Vec::new() };
        let key_of = |cluster: &ClusterId| {
            let follows = self.router.clusters[cluster.index()].distribution.follows_route_using();
            key.as_deref().filter(|_| follows).unwrap_or(&self.name)
        };
        let mut sent: Vec<Sent> =
            clusters.iter().map(|cluster| self.sent(*cluster, key_of(cluster))).collect();
        if self.router.statements.once {
            let copied = &mut self.copied;
            for chosen in sent.iter_mut().map(|sent| &mut sent.chosen) {
                chosen.retain(|chosen| {
                    let first = !copied.contains(&chosen.node);
                    copied.push(chosen.node);
                    first
                });
            }
        }
        self.copies += sent.iter().map(|sent| sent.chosen.len()).sum::<usize>();
        sent
    }

    fn sent(&self, cluster: ClusterId, key: &[u8]) -> Sent {
        let state = &self.router.clusters[cluster.index()];
        let all_down = state.up.iter().all(|up| !up);
        let mut chosen = Vec::new();
        let mut choose = |member: usize, why| {
            chosen.push(Chosen { member, node: state.nodes[member], why });
        };
        let mut position = None;
        match &state.distribution {
            Distribution::Copies => (0..state.nodes.len()).for_each(|member| choose(member, Why::AllMembers)),
            Distribution::Failover => {
                choose(state.first_up(), if all_down { Why::NoneUp } else { Why::FirstUp });
            }
            Distribution::RoundRobin => {
                choose(state.at_turn(self.turn), if all_down { Why::NoneUp } else { Why::Turn });
            }
            Distribution::Sharded { fail_over, .. } => {
                let sharding = self.router.sharding(cluster).expect("a cluster with sharding");
                position = sharding.position(key);
                let mut owners = Vec::new();
                sharding.owners(key, &mut owners);
                if *fail_over {
                    state.owners_or_failovers(&owners, key, |member, owner| {
                        let why = match state.up[member] {
                            true if member == owner => Why::Owner,
                            true => Why::Failover { owner },
                            false => Why::NoneUp,
                        };
                        choose(member, why);
                    });
                } else {
                    owners.iter().for_each(|owner| choose(usize::from(*owner), Why::Owner));
                }
            }
        }
        let key = matches!(state.distribution, Distribution::Sharded { .. }).then(|| key.to_vec());
        Sent { cluster, key, position, chosen }
    }
}
