//! `/api/v1/relay`: what each relay has done with the points that met its statements, and what it remembers and holds.

mod explain;

use std::collections::BTreeMap;

use pipeline::RelayState;
use serde::Serialize;

use crate::daemon::shared::Shared;

pub use explain::{ExplainQuery, explain};

/// The whole document.
#[derive(Debug, Serialize)]
pub struct RelayPage {
    /// One row for each relay.
    pub relays: Vec<RelayRow>,
}

/// One relay, since the start, reloads and hot restarts included. Every point is counted in `points`; the figures behind it overlap.
#[derive(Debug, Default, Serialize)]
pub struct RelayRow {
    /// Its transform.
    pub transform: String,
    /// Points that met its statements, results and statistics among them.
    pub points: u64,
    /// Points that the blackhole took.
    pub blackholed: u64,
    /// Points that no statement sent anywhere.
    pub unmatched: u64,
    /// Points that failed a `validate`.
    pub invalid: u64,
    /// Points that were copied nowhere and fed no rollup, whatever the reason.
    pub nowhere: u64,
    /// Copies past the most that one point may have.
    pub copies_refused: u64,
    /// Points handed to rollups, once for each.
    pub rolled_up: u64,
    /// Values handed to rollups, by what became of them.
    pub fed: BTreeMap<&'static str, u64>,
    /// Results of rollups.
    pub results: u64,
    /// Results that were infinite, and so went nowhere.
    pub results_not_finite: u64,
    /// Values of windows that ended with their rollup before they were over.
    pub values_left: u64,
    /// Results under way.
    pub rollup_series: u64,
    /// Memory of what rollups hold, in bytes.
    pub rollup_bytes: u64,
    /// Names whose way is remembered.
    pub names: u64,
    /// Memory for them, in bytes.
    pub names_bytes: u64,
    /// Points whose name was known.
    pub names_found: u64,
    /// Points for whose name the statements were walked through.
    pub names_decided: u64,
    /// Times that the older half of the names was forgotten for want of room.
    pub names_forgotten: u64,
}

/// The document of this moment; without rows when the shard has ended.
pub async fn page(shared: &Shared) -> RelayPage {
    let asked = shared.shard.call(|worker| worker.shard.relays().collect::<Vec<_>>());
    RelayPage { relays: asked.await.unwrap_or_default().iter().map(row).collect() }
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
        rolled_up: figures.rolled_up,
        fed: figures.fed.iter().map(|(fed, count)| (fed.word(), count)).collect(),
        results: figures.results,
        results_not_finite: figures.results_not_finite,
        values_left: figures.values_left,
        rollup_series: u64::from(state.rollups.series),
        rollup_bytes: state.rollups.bytes as u64,
        names: state.names,
        names_bytes: state.names_bytes,
        names_found: state.cache.hits,
        names_decided: state.cache.misses,
        names_forgotten: state.cache.turned,
    }
}

#[test]
fn the_page_on_the_api_shows_this_document() {
    let page = include_str!("../../../../docs/api.md");
    let shown = page.split("```json\n").find(|rest| rest.contains("\"relays\"")).expect("it is shown");
    let shown = shown.split("```").next().expect("a first part");
    let shown: serde_json::Value = serde_json::from_str(shown).expect("the example is JSON");
    let figures = pipeline::RelayFigures::default();
    let state = RelayState {
        transform: String::new(),
        figures,
        cache: Default::default(),
        names: 0,
        names_bytes: 0,
        rollups: Default::default(),
    };
    let ours = serde_json::to_value(RelayPage { relays: vec![row(&state)] }).expect("serializes");
    let members = |value: &serde_json::Value| -> Vec<String> {
        value.as_object().into_iter().flat_map(|object| object.keys().cloned()).collect()
    };
    assert_eq!(members(&shown["relays"][0]), members(&ours["relays"][0]));
    assert_eq!(members(&shown["relays"][0]["fed"]), members(&ours["relays"][0]["fed"]));
}
