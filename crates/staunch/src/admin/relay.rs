//! `/api/v1/relay`: the figures of each relay: its points by result, its route cache, its aggregation rules, its
//! clusters.

mod explain;

use std::collections::BTreeMap;

use config::plan::Plan;
use model::OutputId;
use pipeline::RelayState;
use process::relay::{Member, RelayCluster};
use serde::Serialize;

use crate::daemon::shared::Shared;
use crate::daemon::worker::Asking;
use crate::route_explanation::sharing;

pub use explain::{ExplainQuery, Explains, explain};

/// Relays whose figures are read in one slice of the shard's thread.
const SLICE_RELAYS: usize = 64;

/// The whole document.
#[derive(Debug, Serialize)]
pub struct RelayPage {
    /// One row for each relay.
    pub relays: Vec<RelayRow>,
}

/// One relay, since the start, including reloads and hot restarts. Every point is counted in `points`; the other
/// figures overlap.
#[derive(Debug, Default, Serialize)]
pub struct RelayRow {
    /// Its transform.
    pub transform: String,
    /// Points at its statements, including results and statistics.
    pub points: u64,
    /// Points dropped by the blackhole.
    pub blackholed: u64,
    /// Points that no statement sent.
    pub unmatched: u64,
    /// Points that failed a `validate`.
    pub invalid: u64,
    /// Points without any copy or aggregation, for any reason.
    pub nowhere: u64,
    /// Copies above the maximum for one point.
    pub copies_refused: u64,
    /// Invalid names from statements: empty, too long, or with white space.
    pub names_refused: u64,
    /// Searches that reached the limit of backtracking, which counts as no match.
    pub gave_up: u64,
    /// Points passed to aggregation rules, once for each rule.
    pub rolled_up: u64,
    /// Values passed to aggregation rules, by result.
    pub fed: BTreeMap<&'static str, u64>,
    /// Results of aggregation rules.
    pub results: u64,
    /// Infinite results, which were not sent.
    pub results_not_finite: u64,
    /// Results that were not routed before a stop.
    pub results_stopped: u64,
    /// Values of windows whose aggregation rule was removed before they ended.
    pub values_left: u64,
    /// Open results.
    pub aggregation_rule_series: u64,
    /// Memory of aggregation rules, in bytes.
    pub aggregation_rule_bytes: u64,
    /// How often the wall clock was set back by more than two windows, and aggregation rules followed it.
    pub aggregation_rule_jumps_back: u64,
    /// Results that were sent at once because their windows were ahead of such a clock.
    pub aggregation_future_results: u64,
    /// Names in the route cache.
    pub names: u64,
    /// Memory of the route cache, in bytes.
    pub names_bytes: u64,
    /// Points with a name in the route cache.
    pub names_found: u64,
    /// Points whose name had to be matched against the statements.
    pub names_decided: u64,
    /// How often the older half of the names was removed for lack of room.
    pub names_forgotten: u64,
    /// Its clusters, in the order of the configuration.
    pub clusters: Vec<ClusterRow>,
}

/// One cluster of a relay.
#[derive(Debug, Default, Serialize)]
pub struct ClusterRow {
    /// Its name.
    pub name: String,
    /// Its sharding.
    pub sharing: &'static str,
    /// In the order of the configuration.
    pub members: Vec<MemberRow>,
}

/// One member of a cluster.
#[derive(Debug, Default, Serialize)]
pub struct MemberRow {
    /// The output or relay.
    pub output: String,
    /// It has failed over, in a cluster with failover.
    pub out: bool,
}

/// The current document; without rows when the shard has ended.
pub async fn page(shared: &Shared, asking: &mut Asking) -> RelayPage {
    let mut states: Vec<RelayState> = Vec::new();
    let down = loop {
        let from = states.len();
        let asked = asking.call(move |worker| {
            (worker.turn.shard.relays_from(from, SLICE_RELAYS), worker.turn.shard.down().to_vec())
        });
        let (some, down) = asked.await.unwrap_or_default();
        let is_last = some.len() < SLICE_RELAYS;
        states.extend(some);
        if is_last {
            break down;
        }
    };
    let wiring = shared.wiring.load();
    let rows = states
        .iter()
        .map(|state| RelayRow { clusters: clusters(&wiring.plan, &state.transform, &down), ..row(state) });
    RelayPage { relays: rows.collect() }
}

/// The clusters of the relay with that name. `down`: outputs that have failed over.
fn clusters(plan: &Plan, relay: &str, down: &[OutputId]) -> Vec<ClusterRow> {
    let relays = plan.relays().filter(|(_, transform, _)| transform.name == relay);
    let relays = relays.map(|(_, _, known)| &known.plan);
    let member = |member: &Member| MemberRow {
        output: plan.member_name(member.node).to_owned(),
        out: member.node.output().is_some_and(|output| down.contains(&output)),
    };
    let row = |cluster: &RelayCluster| ClusterRow {
        name: cluster.name.clone(),
        sharing: sharing(cluster),
        members: cluster.members.iter().map(member).collect(),
    };
    relays.flat_map(|relay| &relay.clusters).map(row).collect()
}

fn row(state: &RelayState) -> RelayRow {
    let figures = &state.figures;
    RelayRow {
        transform: state.transform.clone(),
        points: figures.points,
        blackholed: figures.blackholed,
        unmatched: figures.unmatched,
        invalid: figures.invalid,
        nowhere: figures.nowhere,
        copies_refused: figures.copies_refused,
        names_refused: figures.names_refused,
        gave_up: figures.gave_up,
        rolled_up: figures.rolled_up,
        fed: figures.fed.iter().map(|(fed, count)| (fed.word(), count)).collect(),
        results: figures.results,
        results_not_finite: figures.results_not_finite,
        results_stopped: figures.results_stopped,
        values_left: figures.values_left,
        aggregation_rule_series: u64::from(state.aggregation_rules.series),
        aggregation_rule_bytes: state.aggregation_rules.bytes as u64,
        aggregation_rule_jumps_back: state.aggregation_rules.jumps_back,
        aggregation_future_results: state.aggregation_rules.future_results,
        names: state.names,
        names_bytes: state.names_bytes,
        names_found: state.cache.hits,
        names_decided: state.cache.misses,
        names_forgotten: state.cache.turned,
        clusters: Vec::new(),
    }
}

#[test]
fn the_page_on_the_api_shows_this_document() {
    let page = include_str!("../../../../docs/api.md");
    let shown = page
        .split("```json\n")
        .find(|rest| rest.contains("\"aggregation_rule_series\""))
        .expect("it is shown");
    let shown = shown.split("```").next().expect("a first part");
    let shown: serde_json::Value = serde_json::from_str(shown).expect("the example is JSON");
    let figures = pipeline::RelayFigures::default();
    let state = RelayState {
        transform: String::new(),
        figures,
        cache: Default::default(),
        names: 0,
        names_bytes: 0,
        aggregation_rules: Default::default(),
    };
    let ours = serde_json::to_value(RelayPage { relays: vec![row(&state)] }).expect("serializes");
    let members = |value: &serde_json::Value| -> Vec<String> {
        value.as_object().into_iter().flat_map(|object| object.keys().cloned()).collect()
    };
    assert_eq!(members(&shown["relays"][0]), members(&ours["relays"][0]));
    assert_eq!(members(&shown["relays"][0]["fed"]), members(&ours["relays"][0]["fed"]));
    let cluster = ClusterRow { members: vec![MemberRow::default()], ..ClusterRow::default() };
    let cluster = serde_json::to_value(cluster).expect("serializes");
    let first = &shown["relays"][0]["clusters"][0];
    assert_eq!(members(first), members(&cluster));
    assert_eq!(members(&first["members"][0]), members(&cluster["members"][0]));
}
