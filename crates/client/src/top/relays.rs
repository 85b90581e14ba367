//! What relays do: rates of a relay, and who of each cluster is up. Also what `--json` prints.
//!
//! Path: `/api/v1/relay` and the accounts of its outputs -> **[`relay_sample`]** -> rows of [`super::screen`].
//! Member names are an interface: `docs/top.md` explains them.

use serde::Serialize;

use super::document::{Cluster, Document, Output, Relay};

/// One relay. Rates as of a source.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct RelaySample {
    pub(crate) name: String,
    pub(crate) points_per_s: Option<f64>,
    /// Those that were copied somewhere or fed an aggregation rule.
    pub(crate) routed_per_s: Option<f64>,
    pub(crate) unmatched_per_s: Option<f64>,
    pub(crate) blackholed_per_s: Option<f64>,
    pub(crate) invalid_per_s: Option<f64>,
    pub(crate) names: u64,
    pub(crate) clusters: Vec<ClusterSample>,
}

/// One cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct ClusterSample {
    pub(crate) name: String,
    pub(crate) sharing: String,
    pub(crate) members: u64,
    /// Outputs whose endpoint cannot be reached.
    pub(crate) down: Vec<String>,
    /// Outputs that have failed over to others.
    pub(crate) out: Vec<String>,
    /// Copies that wait for its members.
    pub(crate) queued: u64,
    pub(crate) queued_bytes: u64,
    /// Of the fullest queue.
    pub(crate) queue_fill: f64,
    /// Of the copy that has waited longest.
    pub(crate) oldest_s: f64,
}

/// The relay of `document`; `per_s` gives the rate of a figure, if it is known.
pub(super) fn relay_sample(
    document: &Document,
    relay: &Relay,
    per_s: &dyn Fn(fn(&Relay) -> u64) -> Option<f64>,
) -> RelaySample {
    RelaySample {
        name: relay.transform.clone(),
        points_per_s: per_s(|row| row.points),
        routed_per_s: per_s(|row| row.points.saturating_sub(row.nowhere)),
        unmatched_per_s: per_s(|row| row.unmatched),
        blackholed_per_s: per_s(|row| row.blackholed),
        invalid_per_s: per_s(|row| row.invalid),
        names: relay.names,
        clusters: relay.clusters.iter().map(|cluster| cluster_sample(document, cluster)).collect(),
    }
}

fn cluster_sample(document: &Document, cluster: &Cluster) -> ClusterSample {
    let of = |name: &str| document.outputs.iter().find(|output| output.name == name);
    let accounts = || cluster.members.iter().filter_map(|member| of(&member.output));
    let most = |read: fn(&Output) -> f64| accounts().map(read).fold(0.0, f64::max);
    let out = cluster.members.iter().filter(|member| member.out);
    ClusterSample {
        name: cluster.name.clone(),
        sharing: cluster.sharing.clone(),
        members: cluster.members.len() as u64,
        down: accounts().filter(|row| row.state == "down").map(|row| row.name.clone()).collect(),
        out: out.map(|member| member.output.clone()).collect(),
        queued: accounts().map(|row| row.queued).sum(),
        queued_bytes: accounts().map(|row| row.queued_bytes).sum(),
        queue_fill: most(Output::fill),
        oldest_s: most(|row| row.oldest_s),
    }
}

#[test]
fn a_cluster_is_the_sum_of_its_members() {
    use super::document::Member;

    let output = |name: &str, state: &str, waiting: u64| Output {
        name: name.into(),
        state: state.into(),
        queued: waiting,
        queued_bytes: 10 * waiting,
        max_bytes: 1000,
        oldest_s: waiting as f64 / 10.0,
        ..Output::default()
    };
    let outputs = vec![output("a", "up", 1), output("b", "down", 40), output("other", "down", 9)];
    let member = |output: &str, out| Member { output: output.into(), out };
    let cluster = Cluster {
        name: "ring".into(),
        sharing: "any_of".into(),
        members: vec![member("a", false), member("b", true), member("gone", false)],
    };
    let relay =
        Relay { transform: "r".into(), points: 10, nowhere: 3, clusters: vec![cluster], ..Relay::default() };
    let document = Document { outputs, ..Document::default() };
    let sample = relay_sample(&document, &relay, &|read| Some(read(&relay) as f64));
    assert_eq!((sample.points_per_s, sample.routed_per_s), (Some(10.0), Some(7.0)));
    let want = ClusterSample {
        name: "ring".into(),
        sharing: "any_of".into(),
        members: 3,
        down: vec!["b".into()],
        out: vec!["b".into()],
        queued: 41,
        queued_bytes: 410,
        queue_fill: 0.4,
        oldest_s: 4.0,
    };
    assert_eq!(sample.clusters, [want]);
}
