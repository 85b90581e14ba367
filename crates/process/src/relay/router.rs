//! A relay's plan, compiled: its rules, its clusters, and which of their members are up (spec graphite §2.5).
//!
//! Path of a plan: **`Router::new`** -> `Builder`, statement after statement -> rules, in the plan's order.
//! Not here: the evaluation of the rules (`evaluate`), and what a line takes from it (`decision`).
//! Invariant: a router is used by one thread, and other threads use a snapshot ([`RouterSnapshot`]).

use std::sync::Arc;

use crate::aggregation_rules::AggregationRulePlan;
use crate::sharding::Cluster;
use model::OutputId;

use super::expression::{Class, Expression, Work};
use super::found::{Found, GaveUp};
use super::mistake::{MistakeAt, RelayMistake};
use super::prefilter::Prefilter;
use super::replacement::Replacement;
use super::searches::{SearchFigures, Searches};
use super::{
    AggregateStatement, ClusterId, Distribution, ExpressionPlan, MatchPlan, MemberNode, RelayCluster,
    RelayPlan, RewritePlan, Statement, To,
};

/// Maximum statements of a relay.
pub const STATEMENTS_MAX: usize = 65_535;

/// Where a line enters the relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// From a client: it meets all statements.
    Records,
    /// A result of the aggregation rule with this number: it goes to the rule's destination, or meets all
    /// statements.
    Result(u16),
    /// The relay's own statistics, treated in the same walk.
    Statistics,
}

/// A compiled plan. It knows which endpoints are up, and keeps no state of lines.
#[derive(Debug)]
pub struct Router {
    pub(super) statements: Arc<Statements>,
    pub(super) clusters: Vec<Arc<ClusterState>>,
}

/// The current state of a router, for use on another thread.
#[derive(Debug)]
pub struct RouterSnapshot {
    statements: Arc<Statements>,
    clusters: Vec<Arc<ClusterState>>,
}

/// The statements of a plan, compiled.
#[derive(Debug)]
pub(super) struct Statements {
    pub(super) rules: Vec<Rule>,
    pub(super) prefilter: Arc<Prefilter>,
    pub(super) checks: Vec<Expression>,
    /// Destination of the results of each aggregation rule.
    pub(super) results: Vec<To>,
    pub(super) statistics: To,
    aggregation_rules: Vec<AggregationRulePlan>,
    searches: Searches,
    /// The same for the text that `validate` searches.
    rests: Searches,
    /// Each output gets a line once.
    pub(super) once: bool,
    /// Cost of searching for all expressions of `rules`.
    work: Work,
}

/// One expression with its action.
#[derive(Debug)]
pub(super) struct Rule {
    /// Index of its statement in the plan.
    pub(super) statement: usize,
    /// Index in the statement.
    pub(super) expression: usize,
    /// None for `*`.
    matcher: Option<Expression>,
    /// Names that match one of these are excluded.
    unless: Vec<Expression>,
    pub(super) action: Action,
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    Send { check: Option<Check>, key: Option<Replacement>, to: To, stop: bool },
    Rewrite { into: Replacement, every_occurrence: bool },
    Feed { aggregation_rule: u16, names: Vec<Replacement>, stop: bool, replaces: bool },
}

/// A `validate`: the number of its expression, and whether failures are logged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check {
    pub(super) expression: u32,
    pub(super) log: bool,
}

/// A cluster and the state of its members.
#[derive(Clone, Debug)]
pub(super) struct ClusterState {
    pub(super) nodes: Vec<MemberNode>,
    pub(super) distribution: Distribution,
    /// The sharding; None for clusters without sharding.
    pub(super) sharding: Option<Cluster>,
    pub(super) up: Vec<bool>,
    /// Members that have been down at least once since the router was created.
    pub(super) been_down: Vec<bool>,
}

impl Router {
    /// Compiles a plan. Endpoints count as up until [`Router::set_live`] changes that.
    ///
    /// # Errors
    /// All errors of the plan, in order.
    pub fn new(plan: &RelayPlan) -> Result<Router, Vec<RelayMistake>> {
        let searches = Searches::default();
        let mut builder = Builder { rests: searches.for_rests(), searches, ..Builder::default() };
        for (at, cluster) in plan.clusters.iter().enumerate() {
            builder.cluster(ClusterId(at as u16), cluster);
        }
        if plan.statements.len() > STATEMENTS_MAX || plan.clusters.len() > STATEMENTS_MAX {
            let why = format!("a relay has at most {STATEMENTS_MAX} statements and clusters");
            builder.mistakes.push(RelayMistake::new(MistakeAt::Plan, why));
            return Err(builder.mistakes);
        }
        for (at, statement) in plan.statements.iter().enumerate() {
            match statement {
                Statement::Match(plan) => builder.match_(at, plan),
                Statement::Rewrite(plan) => builder.rewrite(at, plan),
                Statement::Aggregate(plan) => builder.aggregate(at, plan),
            }
        }
        let (statistics, once) = (builder.to(MistakeAt::Statistics, &plan.statistics), plan.once);
        if !builder.mistakes.is_empty() {
            return Err(builder.mistakes);
        }
        let Builder { rules, checks, clusters, results, aggregation_rules, searches, rests, .. } = builder;
        let texts: Vec<_> = rules.iter().map(|rule| rule.matcher.as_ref()?.texts()).collect();
        let prefilter = Arc::new(Prefilter::new(&texts));
        let work = Work::of_name(rules.iter().flat_map(|rule| rule.matcher.iter().chain(&rule.unless)));
        let statements = Statements {
            rules,
            prefilter,
            checks,
            results,
            statistics,
            aggregation_rules,
            searches,
            rests,
            once,
            work,
        };
        Ok(Router {
            statements: Arc::new(statements),
            clusters: clusters.into_iter().map(Arc::new).collect(),
        })
    }

    /// A snapshot for another thread. It is cheap to take; the other thread calls [`RouterSnapshot::into_router`].
    pub fn snapshot(&self) -> RouterSnapshot {
        RouterSnapshot { statements: Arc::clone(&self.statements), clusters: self.clusters.clone() }
    }

    /// Starts the next name: resets its backtracking budget.
    pub(super) fn begin_name(&self) {
        self.statements.searches.budget.begin();
    }

    /// The same for the rest of a line.
    pub(super) fn begin_rest(&self) {
        self.statements.rests.budget.begin();
    }

    /// Maximum cost of deciding a name, in bytes searched: as if all expressions were searched for.
    pub(super) fn work(&self, name: &[u8]) -> u64 {
        self.statements.work.of(name.len())
    }

    /// Maximum cost of searching the rest of a line, in bytes.
    pub(super) fn work_behind_name(&self, rest: &[u8]) -> u64 {
        let work = |check: &Expression| check.work().of(rest.len());
        self.statements.checks.iter().map(work).sum()
    }

    /// Figures of the search caches.
    pub fn searches(&self) -> SearchFigures {
        self.statements.searches.figures()
    }

    /// The aggregation rules of the `aggregate` statements, in order. [`Entry::Result`] and
    /// [`Act::Feed`](super::Act::Feed) have an index in this list.
    pub fn aggregation_rules(&self) -> &[AggregationRulePlan] {
        &self.statements.aggregation_rules
    }

    /// Sets whether an endpoint is up, in all clusters. Only clusters whose members fail over to each other use it.
    pub fn set_live(&mut self, output: OutputId, live: bool) {
        for cluster in &mut self.clusters {
            let node = MemberNode::Output(output);
            if !cluster.nodes.contains(&node) {
                continue;
            }
            // Copied while a snapshot of it exists: only this cluster, which costs less than its new ring.
            let cluster = Arc::make_mut(cluster);
            for at in 0..cluster.nodes.len() {
                if cluster.nodes[at] == node {
                    cluster.up[at] = live;
                    cluster.been_down[at] |= !live;
                    if let Some(sharding) = &mut cluster.sharding {
                        sharding.set_live(at, live);
                    }
                }
            }
        }
    }

    /// How the expression at this position of a statement is matched; None for `*`.
    pub fn class(&self, statement: usize, expression: usize) -> Option<&super::Class> {
        let same = |rule: &&Rule| rule.statement == statement && rule.expression == expression;
        Some(self.statements.rules.iter().find(same)?.matcher.as_ref()?.class())
    }

    /// The sharding of a cluster; None for clusters without sharding.
    pub fn sharding(&self, cluster: ClusterId) -> Option<&Cluster> {
        self.clusters[cluster.index()].sharding.as_ref()
    }
}

impl RouterSnapshot {
    /// A router for another thread, from a snapshot. It shares automata and rings, which are immutable, and nothing
    /// that a search changes.
    pub fn into_router(self) -> Router {
        Router { statements: Arc::new(self.statements.detached()), clusters: self.clusters }
    }
}

impl Statements {
    #[cfg(test)]
    pub(super) fn lock_searches(&self) -> impl Drop + '_ {
        self.searches.lock()
    }

    /// Takes bytes from the backtracking budget of the current name; false when too few are left.
    #[cfg(test)]
    pub(super) fn take_budget(&self, bytes: usize) -> bool {
        self.searches.budget.take(bytes)
    }

    fn detached(&self) -> Statements {
        let searches = Searches::default();
        let rests = searches.for_rests();
        Statements {
            rules: self.rules.iter().map(|rule| rule.detached(&searches)).collect(),
            prefilter: Arc::clone(&self.prefilter),
            checks: self.checks.iter().map(|check| check.detached(&rests)).collect(),
            results: self.results.clone(),
            statistics: self.statistics.clone(),
            aggregation_rules: self.aggregation_rules.clone(),
            searches,
            rests,
            work: self.work,
            once: self.once,
        }
    }
}

impl Rule {
    fn detached(&self, searches: &Searches) -> Rule {
        Rule {
            statement: self.statement,
            expression: self.expression,
            matcher: self.matcher.as_ref().map(|matcher| matcher.detached(searches)),
            unless: self.unless.iter().map(|expression| expression.detached(searches)).collect(),
            action: self.action.clone(),
        }
    }

    /// True when it feeds an aggregation rule. A record that is replaced by a result meets only such rules.
    pub(super) fn feeds(&self) -> bool {
        matches!(self.action, Action::Feed { .. })
    }

    /// True when it has no expression.
    pub(super) fn is_for_all(&self) -> bool {
        self.matcher.is_none()
    }

    /// The match in a name. The name of an aggregation's result is exactly the configured one where the expression
    /// is a text. Where it is a regular expression, the match in the name is replaced by it, with or without
    /// groups.
    pub(super) fn find(&self, name: &[u8]) -> Result<Option<Found>, GaveUp> {
        let found = self.found(name)?;
        for expression in self.unless.iter().filter(|_| found.is_some()) {
            if expression.is_in(name)? {
                return Ok(None);
            }
        }
        Ok(found)
    }

    fn found(&self, name: &[u8]) -> Result<Option<Found>, GaveUp> {
        let whole = || Found { span: (0, name.len()), groups: Vec::new() };
        let Some(matcher) = &self.matcher else { return Ok(Some(whole())) };
        match &self.action {
            // The position of the match is not needed.
            Action::Send { key: None, .. } => Ok(matcher.is_in(name)?.then(Found::default)),
            Action::Feed { .. } if *matcher.class() != Class::Regex => Ok(matcher.is_in(name)?.then(whole)),
            Action::Send { .. } | Action::Feed { .. } | Action::Rewrite { .. } => matcher.find(name),
        }
    }

    /// The name after a rewrite whose expression matched.
    pub(super) fn rewritten(
        &self,
        name: &[u8],
        found: Found,
        into: &Replacement,
        every: bool,
    ) -> Result<Vec<u8>, GaveUp> {
        match &self.matcher {
            Some(matcher) if every => Ok(into.replace_all(name, &matcher.find_all(name)?)),
            _ => Ok(into.replace(name, &found)),
        }
    }
}

#[derive(Default)]
struct Builder {
    rules: Vec<Rule>,
    checks: Vec<Expression>,
    clusters: Vec<ClusterState>,
    results: Vec<To>,
    aggregation_rules: Vec<AggregationRulePlan>,
    mistakes: Vec<RelayMistake>,
    searches: Searches,
    rests: Searches,
}

impl Builder {
    fn cluster(&mut self, id: ClusterId, plan: &RelayCluster) {
        let mut wrong = |why: String| self.mistakes.push(RelayMistake::new(MistakeAt::Cluster(id), why));
        if plan.members.is_empty() {
            wrong("a cluster needs at least one member".into());
        }
        let labels: Vec<String> = plan.members.iter().map(|member| member.label()).collect();
        let sharding = match &plan.distribution {
            Distribution::Sharded { sharding, replication, .. } => {
                let cluster = Cluster::replicated(sharding, &labels, *replication);
                cluster.map_err(|mistake| wrong(mistake.to_string())).ok()
            }
            Distribution::Copies | Distribution::Failover | Distribution::RoundRobin => None,
        };
        let nodes: Vec<MemberNode> = plan.members.iter().map(|member| member.node).collect();
        let (up, been_down) = (vec![true; nodes.len()], vec![false; nodes.len()]);
        self.clusters.push(ClusterState {
            nodes,
            distribution: plan.distribution.clone(),
            sharding,
            up,
            been_down,
        });
    }

    fn match_(&mut self, statement: usize, plan: &MatchPlan) {
        let check = plan.validate.as_ref().map(|validate| {
            let at = MistakeAt::Validate { statement };
            let rests = self.rests.clone();
            if let Some(expression) = self.compiled_for(&rests, at, &validate.expression, false) {
                self.checks.push(expression);
            }
            Check { expression: self.checks.len().saturating_sub(1) as u32, log: validate.log }
        });
        let to = self.to(MistakeAt::Statement { statement, expression: None }, &plan.to);
        let captures = plan.route_using.is_some();
        let unless = plan.unless.iter().enumerate().filter_map(|(expression, plan)| {
            self.compiled(MistakeAt::Unless { statement, expression }, plan, false)
        });
        let unless: Vec<Expression> = unless.collect();
        for (expression, matcher) in self.matchers(statement, &plan.expressions, captures) {
            let groups = matcher.as_ref().map_or(0, Expression::groups);
            let key = plan.route_using.as_ref().map(|text| Replacement::parse(text, groups));
            let action = Action::Send { check, key, to: to.clone(), stop: plan.stop };
            self.rules.push(Rule { statement, expression, matcher, unless: unless.clone(), action });
        }
    }

    fn rewrite(&mut self, statement: usize, plan: &RewritePlan) {
        let at = MistakeAt::Statement { statement, expression: Some(0) };
        let Some(matcher) = self.compiled(at, &plan.expression, true) else { return };
        let into = Replacement::parse(&plan.into, matcher.groups());
        let action = Action::Rewrite { into, every_occurrence: plan.every_occurrence };
        let unless = Vec::new();
        self.rules.push(Rule { statement, expression: 0, matcher: Some(matcher), unless, action });
    }

    fn aggregate(&mut self, statement: usize, plan: &AggregateStatement) {
        let at = MistakeAt::Statement { statement, expression: None };
        let mut wrong = |why: &str| self.mistakes.push(RelayMistake::new(at, why.to_owned()));
        if plan.expressions.is_empty() {
            wrong("an aggregation needs an expression");
        }
        if let Err(why) = plan.aggregation_rule.check() {
            wrong(why);
        }
        let aggregation_rule = self.aggregation_rules.len() as u16;
        let to = self.to(at, &plan.to);
        self.results.push(to);
        self.aggregation_rules.push(plan.aggregation_rule.clone());
        for (expression, matcher) in self.matchers(statement, &plan.expressions, true) {
            let groups = matcher.as_ref().map_or(0, Expression::groups);
            let name =
                |compute: &crate::aggregation_rules::ComputePlan| Replacement::parse(&compute.name, groups);
            let names = plan.aggregation_rule.computes.iter().map(name).collect();
            let action = Action::Feed { aggregation_rule, names, stop: plan.stop, replaces: plan.replaces };
            self.rules.push(Rule { statement, expression, matcher, unless: Vec::new(), action });
        }
    }

    /// The compiled expressions with their positions; an expression that matches everything when there are none.
    fn matchers(
        &mut self,
        statement: usize,
        plans: &[ExpressionPlan],
        captures: bool,
    ) -> Vec<(usize, Option<Expression>)> {
        if plans.is_empty() {
            return vec![(0, None)];
        }
        let mut compile = |(at, plan)| {
            let place = MistakeAt::Statement { statement, expression: Some(at) };
            self.compiled(place, plan, captures).map(|expression| (at, Some(expression)))
        };
        plans.iter().enumerate().filter_map(&mut compile).collect()
    }

    fn compiled(&mut self, at: MistakeAt, plan: &ExpressionPlan, captures: bool) -> Option<Expression> {
        let searches = self.searches.clone();
        self.compiled_for(&searches, at, plan, captures)
    }

    fn compiled_for(
        &mut self,
        searches: &Searches,
        at: MistakeAt,
        plan: &ExpressionPlan,
        captures: bool,
    ) -> Option<Expression> {
        let refused = |refusal| self.mistakes.push(RelayMistake::refused(at, refusal));
        Expression::distribution(plan, captures, searches).map_err(refused).ok()
    }

    fn to(&mut self, at: MistakeAt, to: &To) -> To {
        if let To::Clusters(clusters) = to
            && let Some(missing) = clusters.iter().find(|cluster| cluster.index() >= self.clusters.len())
        {
            let why = format!("there is no cluster number {}", missing.0);
            self.mistakes.push(RelayMistake::new(at, why));
        }
        to.clone()
    }
}
