//! `/api/v1/accounts` as it is read. What a daemon of another version lacks is 0, what it has beyond is not looked at.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The whole document.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(crate) struct Document {
    /// Unix milliseconds at which it was made.
    pub(crate) time_ms: u64,
    #[serde(default)]
    pub(crate) sources: Vec<Source>,
    #[serde(default)]
    pub(crate) transforms: Vec<Transform>,
    #[serde(default)]
    pub(crate) outputs: Vec<Output>,
    #[serde(default)]
    pub(crate) daemon: Daemon,
    #[serde(default)]
    pub(crate) management: Port,
    #[serde(default)]
    pub(crate) http: Port,
    #[serde(default)]
    pub(crate) carbonlink: Port,
    /// Of `/api/v1/relay`.
    #[serde(skip)]
    pub(crate) relays: Vec<Relay>,
}

/// The process.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Daemon {
    pub(crate) version: String,
    pub(crate) commit: String,
    pub(crate) uptime_s: u64,
}

/// Ports of one kind that are no source.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Port {
    pub(crate) listen: Vec<String>,
}

/// One transform, in the API's words.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Transform {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) edges: Vec<Edge>,
}

/// What one node gave to a transform.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Edge {
    pub(crate) from: String,
    pub(crate) received: u64,
    pub(crate) rejected: u64,
    pub(crate) dropped: u64,
    pub(crate) duplicate: u64,
    pub(crate) filtered: u64,
    pub(crate) aggregated: u64,
    pub(crate) routed: u64,
    pub(crate) internal: u64,
    pub(crate) in_flight: u64,
    pub(crate) balanced: bool,
    pub(crate) losses: Losses,
}

/// `/api/v1/relay`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Relays {
    pub(crate) relays: Vec<Relay>,
}

/// One relay, in the API's words.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Relay {
    pub(crate) transform: String,
    pub(crate) points: u64,
    pub(crate) nowhere: u64,
    pub(crate) unmatched: u64,
    pub(crate) blackholed: u64,
    pub(crate) invalid: u64,
    pub(crate) names: u64,
    pub(crate) clusters: Vec<Cluster>,
}

/// One cluster of a relay.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Cluster {
    pub(crate) name: String,
    pub(crate) sharing: String,
    pub(crate) members: Vec<Member>,
}

/// One member of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Member {
    pub(crate) output: String,
    pub(crate) out: bool,
}

/// Counts by family and reason.
pub(crate) type Losses = BTreeMap<String, BTreeMap<String, u64>>;

/// One source, in the API's words.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Source {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) listen: Vec<String>,
    pub(crate) received: u64,
    pub(crate) rejected: u64,
    pub(crate) dropped: u64,
    pub(crate) duplicate: u64,
    pub(crate) filtered: u64,
    pub(crate) aggregated: u64,
    pub(crate) routed: u64,
    pub(crate) internal: u64,
    pub(crate) in_flight: u64,
    pub(crate) balanced: bool,
    pub(crate) losses: Losses,
    pub(crate) kernel_dropped: u64,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) sockets: Vec<Socket>,
}

/// One UDP socket.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Socket {
    pub(crate) rx_queue_bytes: u64,
    pub(crate) buffer_bytes: u64,
}

/// One output, in the API's words.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Output {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) copies: u64,
    pub(crate) delivered: u64,
    pub(crate) dropped: u64,
    pub(crate) rejected_by_peer: u64,
    pub(crate) filtered: u64,
    pub(crate) expired: u64,
    pub(crate) moved: u64,
    pub(crate) internal: u64,
    pub(crate) queued: u64,
    pub(crate) in_doubt: u64,
    pub(crate) balanced: bool,
    pub(crate) losses: Losses,
    pub(crate) state: String,
    pub(crate) state_for_s: u64,
    pub(crate) last_error: String,
    pub(crate) last_error_text: String,
    pub(crate) last_error_time_ms: u64,
    pub(crate) stalled_for_s: u64,
    pub(crate) queued_bytes: u64,
    pub(crate) max_bytes: u64,
    pub(crate) oldest_s: f64,
    pub(crate) disk: Option<Disk>,
}

/// A queue on disk, in the API's words.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Disk {
    pub(crate) segments: u64,
    pub(crate) blocks_unsynced: u64,
    pub(crate) blocks_in_doubt: u64,
    pub(crate) write_errors: u64,
    pub(crate) sync_errors: u64,
    /// Why the disk takes nothing now.
    #[serde(default)]
    pub(crate) write_error: Option<String>,
    /// Why nothing can be read although records wait.
    #[serde(default)]
    pub(crate) read_error: Option<String>,
    /// Why the next process would not find what waits.
    #[serde(default)]
    pub(crate) missing: Option<String>,
    #[serde(default)]
    pub(crate) records_missing: u64,
}

impl Source {
    /// Everything that `received` is the sum of, by its word.
    pub(crate) fn parts(&self) -> [(&'static str, u64); 8] {
        [
            ("rejected", self.rejected),
            ("dropped", self.dropped),
            ("duplicate", self.duplicate),
            ("filtered", self.filtered),
            ("aggregated", self.aggregated),
            ("routed", self.routed),
            ("internal", self.internal),
            ("in_flight", self.in_flight),
        ]
    }
}

impl Edge {
    /// Everything that `received` is the sum of, by its word.
    pub(crate) fn parts(&self) -> [(&'static str, u64); 8] {
        [
            ("rejected", self.rejected),
            ("dropped", self.dropped),
            ("duplicate", self.duplicate),
            ("filtered", self.filtered),
            ("aggregated", self.aggregated),
            ("routed", self.routed),
            ("internal", self.internal),
            ("in_flight", self.in_flight),
        ]
    }
}

impl Output {
    /// Everything that `copies` is the sum of, by its word.
    pub(crate) fn parts(&self) -> [(&'static str, u64); 8] {
        [
            ("delivered", self.delivered),
            ("dropped", self.dropped),
            ("rejected_by_peer", self.rejected_by_peer),
            ("filtered", self.filtered),
            ("expired", self.expired),
            ("moved", self.moved),
            ("internal", self.internal),
            ("queued", self.queued),
        ]
    }

    /// What waits as a share of the queue's bound.
    pub(crate) fn fill(&self) -> f64 {
        if self.max_bytes == 0 { 0.0 } else { self.queued_bytes as f64 / self.max_bytes as f64 }
    }

    /// Copies that were lost, for whatever reason.
    pub(crate) fn lost(&self) -> u64 {
        self.dropped + self.rejected_by_peer + self.expired + self.internal
    }

    /// Every reason with its count, `expired` among them.
    pub(crate) fn reasons(&self) -> BTreeMap<&str, u64> {
        let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
        for (reason, count) in self.losses.values().flatten() {
            *reasons.entry(reason).or_default() += count;
        }
        reasons.insert("expired", self.expired);
        reasons
    }
}

#[test]
fn the_daemons_document_is_read_whole() {
    // The example on the page of the API has every member that there is (a test holds it to that).
    let page = include_str!("../../../../docs/api.md");
    let example = page.split("```json\n").nth(1).and_then(|rest| rest.split("```").next());
    let example = example.expect("the page has an example");
    let read: Document = serde_json::from_str(example).expect("it is read");
    let raw: serde_json::Value = serde_json::from_str(example).expect("it is JSON");
    let (source, output) = (&read.sources[0], &read.outputs[0]);
    let raw_source = &raw["sources"][0];
    assert_eq!(raw_source["received"], source.received);
    assert_eq!(raw_source["sockets"][0]["buffer_bytes"], source.sockets[0].buffer_bytes);
    assert_eq!(source.losses["rejected"]["no_type"], 1);
    let raw_output = &raw["outputs"][0];
    assert_eq!(raw_output["state"], output.state.as_str());
    assert_eq!(raw_output["max_bytes"], output.max_bytes);
    let disk = output.disk.as_ref().expect("the example's queue is on disk");
    assert_eq!(raw_output["disk"]["segments"], disk.segments);
    assert_eq!(raw["daemon"]["version"], read.daemon.version.as_str());
    assert_eq!(raw["daemon"]["uptime_s"], read.daemon.uptime_s);
    assert_eq!(raw["management"]["listen"][0], read.management.listen[0].as_str());
    assert_eq!(raw["http"]["listen"][0], read.http.listen[0].as_str());
    assert_eq!(raw["carbonlink"]["listen"][0], read.carbonlink.listen[0].as_str());
    let edge = &read.transforms[0].edges[0];
    assert_eq!((raw["transforms"][0]["edges"][0]["from"].as_str(), edge.aggregated), (Some(&*edge.from), 6));
    assert!(source.balanced && output.balanced && source.packets > 0 && output.copies > 0);
}

#[test]
fn the_relays_document_is_read_whole() {
    let page = include_str!("../../../../docs/api.md");
    let example = page.split("```json\n").find(|rest| rest.contains("\"rolled_up\"")).expect("it is shown");
    let example = example.split("```").next().expect("a first part");
    let read: Relays = serde_json::from_str(example).expect("it is read");
    let relay = &read.relays[0];
    assert!(relay.points > 0 && relay.nowhere > 0 && relay.unmatched > 0 && relay.blackholed > 0);
    let cluster = &relay.clusters[0];
    assert_eq!((&*cluster.name, &*cluster.sharing), ("ring", "fnv1a_ch"));
    assert!(cluster.members[1].out && !cluster.members[1].output.is_empty());
}
