//! What `staunch status` has to say: the accounts, their rates, losses and warnings. Pure. Also what `--json` prints.
//!
//! Path: accounts and `/ready` -> **[`Report::of`]** -> `screen`, or JSON. Member names are an interface: `docs/status.md`
//! explains them. Not here: how rates are computed (`top::sample`), columns (`screen`).

use serde::{Serialize, Serializer};

use crate::top::api_client::Readiness;
use crate::top::document::{Document, Edge, Losses, Output, Source, Transform};
use crate::top::figure::{count, percent};
use crate::top::sample::{DiskState, EdgeSample, OutputSample, Sample, SourceSample, Sums};
use crate::top::totals::Totals;

/// One look at a daemon.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Report {
    /// The address that was asked.
    pub(super) api: String,
    /// Unix milliseconds by the daemon's clock.
    pub(super) time_ms: u64,
    pub(super) version: String,
    pub(super) commit: String,
    pub(super) uptime_s: u64,
    pub(super) ready: bool,
    /// The worst of all rows.
    pub(super) balance: Balance,
    /// Seconds that the rates are about; none without a second look.
    pub(super) interval_s: Option<f64>,
    pub(super) listeners: Vec<Listener>,
    pub(super) sources: Vec<RecordRow>,
    pub(super) transforms: Vec<RecordRow>,
    pub(super) outputs: Vec<OutputRow>,
    pub(super) totals: Totals,
    pub(super) losses: Vec<Loss>,
    pub(super) warnings: Vec<String>,
}

/// Whether the parts of an account add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Balance {
    /// Each record has one outcome.
    Balanced,
    /// Unknown at this moment, because records are moving.
    Moving,
    /// A record has no outcome although nothing moves: a bug.
    NotBalanced,
}

impl Balance {
    fn of(sums: Option<Sums>) -> Balance {
        match sums {
            Some(Sums::Hold) | None => Balance::Balanced,
            Some(Sums::Moving) => Balance::Moving,
            Some(Sums::Broken) => Balance::NotBalanced,
        }
    }
}

/// Addresses of one source or port.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Listener {
    /// Name of the source; `management`, `carbonlink` or `http` of the other ports.
    pub(super) name: String,
    pub(super) listen: Vec<String>,
}

/// Outcomes above 0, by their word.
pub(super) type Outcomes = Vec<(&'static str, u64)>;

/// A source, or what one node gave to a transform.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct RecordRow {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// The node that feeds a transform; none of a source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<String>,
    pub(super) records_per_s: Option<f64>,
    pub(super) received: u64,
    #[serde(serialize_with = "as_table")]
    pub(super) outcomes: Outcomes,
    pub(super) balance: Balance,
}

/// An output.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct OutputRow {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) state: String,
    pub(super) state_for_s: u64,
    pub(super) last_error: String,
    pub(super) copies_per_s: Option<f64>,
    pub(super) copies: u64,
    #[serde(serialize_with = "as_table")]
    pub(super) outcomes: Outcomes,
    pub(super) balance: Balance,
    pub(super) queue: QueueRow,
    /// It is down, loses copies or its disk fails.
    #[serde(skip)]
    pub(super) fails: bool,
}

/// The queue of an output.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct QueueRow {
    pub(super) copies: u64,
    pub(super) bytes: u64,
    pub(super) max_bytes: u64,
    pub(super) fill: f64,
    pub(super) oldest_s: f64,
    /// Of a queue on disk; none in memory.
    pub(super) disk: Option<DiskState>,
}

/// Records lost under one reason since the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Loss {
    /// A source or output; for what only a transform lost, `FROM -> TRANSFORM`.
    pub(super) node: String,
    pub(super) outcome: String,
    /// Empty where the outcome is the reason.
    pub(super) reason: String,
    pub(super) count: u64,
}

fn as_table<S: Serializer>(outcomes: &Outcomes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(outcomes.iter().copied())
}

impl Report {
    /// Of a daemon's accounts, their rates, and what it replies on `/ready`.
    pub(super) fn of(document: &Document, sample: &Sample, readiness: Readiness) -> Report {
        let sources = document.sources.iter().zip(&sample.sources);
        let outputs = document.outputs.iter().zip(&sample.outputs);
        let edges = document.transforms.iter().flat_map(|row| row.edges.iter().map(move |edge| (row, edge)));
        let transforms = edges.zip(&sample.edges).map(|((row, edge), sample)| edge_row(row, edge, sample));
        Report {
            api: sample.api.clone(),
            time_ms: document.time_ms,
            version: document.daemon.version.clone(),
            commit: document.daemon.commit.clone(),
            uptime_s: document.daemon.uptime_s,
            ready: readiness.ready,
            balance: Balance::of(sample.sums),
            interval_s: sample.interval_s,
            listeners: listeners(document),
            sources: sources.map(|(row, sample)| source_row(row, sample)).collect(),
            transforms: transforms.collect(),
            outputs: outputs.map(|(row, sample)| output_row(row, sample)).collect(),
            totals: Totals::of(document),
            losses: losses(document),
            warnings: warnings(sample, readiness),
        }
    }

    /// Ready, and nothing that somebody has to look at.
    pub(super) fn is_good(&self) -> bool {
        self.ready && self.warnings.is_empty()
    }
}

fn listeners(document: &Document) -> Vec<Listener> {
    let sources = document.sources.iter().map(|source| (source.name.as_str(), &source.listen));
    let ports = [
        ("management", &document.management.listen),
        ("carbonlink", &document.carbonlink.listen),
        ("http", &document.http.listen),
    ];
    let all = sources.chain(ports).filter(|(_, listen)| !listen.is_empty());
    all.map(|(name, listen)| Listener { name: name.to_owned(), listen: listen.clone() }).collect()
}

fn above_0(parts: [(&'static str, u64); 8]) -> Outcomes {
    parts.into_iter().filter(|(_, count)| *count > 0).collect()
}

fn source_row(row: &Source, sample: &SourceSample) -> RecordRow {
    RecordRow {
        name: row.name.clone(),
        kind: row.kind.clone(),
        from: None,
        records_per_s: sample.records_per_s,
        received: row.received,
        outcomes: above_0(row.parts()),
        balance: Balance::of(sample.sums),
    }
}

fn edge_row(row: &Transform, edge: &Edge, sample: &EdgeSample) -> RecordRow {
    RecordRow {
        name: row.name.clone(),
        kind: row.kind.clone(),
        from: Some(edge.from.clone()),
        records_per_s: sample.records_per_s,
        received: edge.received,
        outcomes: above_0(edge.parts()),
        balance: Balance::of(sample.sums),
    }
}

fn output_row(row: &Output, sample: &OutputSample) -> OutputRow {
    OutputRow {
        name: row.name.clone(),
        kind: row.kind.clone(),
        state: row.state.clone(),
        state_for_s: row.state_for_s,
        last_error: row.last_error.clone(),
        copies_per_s: sample.copies_per_s,
        copies: row.copies,
        outcomes: above_0(row.parts()),
        balance: Balance::of(sample.sums),
        queue: QueueRow {
            copies: row.queued,
            bytes: row.queued_bytes,
            max_bytes: row.max_bytes,
            fill: row.fill(),
            oldest_s: row.oldest_s,
            disk: sample.disk.as_ref().map(|disk| disk.state),
        },
        fails: sample.fails(),
    }
}

/// Everything that was lost since the start. An output's `filtered` is none: the config wants it.
fn losses(document: &Document) -> Vec<Loss> {
    let mut losses = Vec::new();
    for source in &document.sources {
        lost(&source.name, &source.losses, &mut losses);
        if source.kernel_dropped > 0 {
            losses.push(Loss {
                node: source.name.clone(),
                outcome: "kernel_dropped".to_owned(),
                reason: String::new(),
                count: source.kernel_dropped,
            });
        }
    }
    for transform in &document.transforms {
        for edge in &transform.edges {
            // A record that has one transform is lost in the account of its source as well: it is listed once.
            let of_source = document.sources.iter().find(|source| source.name == edge.from);
            let at_source = |family: &str, reason: &str| {
                let reasons = of_source.and_then(|source| source.losses.get(family));
                reasons.and_then(|reasons| reasons.get(reason)).copied().unwrap_or(0)
            };
            let mut of_edge = Vec::new();
            lost(&format!("{} -> {}", edge.from, transform.name), &edge.losses, &mut of_edge);
            losses.extend(
                of_edge.into_iter().filter(|loss| loss.count > at_source(&loss.outcome, &loss.reason)),
            );
        }
    }
    for output in &document.outputs {
        lost(&output.name, &output.losses, &mut losses);
        if output.expired > 0 {
            let (node, outcome) = (output.name.clone(), "expired".to_owned());
            losses.push(Loss { node, outcome, reason: String::new(), count: output.expired });
        }
    }
    losses
}

fn lost(node: &str, losses: &Losses, into: &mut Vec<Loss>) {
    for (outcome, reasons) in losses.iter().filter(|(outcome, _)| *outcome != "filtered") {
        into.extend(reasons.iter().filter(|(_, count)| **count > 0).map(|(reason, count)| Loss {
            node: node.to_owned(),
            outcome: outcome.clone(),
            reason: reason.clone(),
            count: *count,
        }));
    }
}

/// What somebody has to look at, a sentence each.
fn warnings(sample: &Sample, readiness: Readiness) -> Vec<String> {
    let not_ready = if readiness.ready { "" } else { "not ready: " };
    let mut warnings: Vec<String> = readiness.lines.iter().map(|line| format!("{not_ready}{line}")).collect();
    if sample.sums == Some(Sums::Broken) {
        warnings.push("not balanced: a record has no outcome, which is a bug; report it".to_owned());
    }
    let above = |per_s: Option<f64>| per_s.filter(|per_s| *per_s > 0.0);
    for source in &sample.sources {
        let name = &source.name;
        if let Some(per_s) = above(source.kernel_dropped_per_s) {
            warnings.push(format!("source `{name}`: the kernel drops {} packets per second", count(per_s)));
        }
        if let Some(per_s) = above(source.dropped_per_s) {
            warnings.push(format!("source `{name}` loses {} records per second", count(per_s)));
        }
    }
    for output in &sample.outputs {
        let name = &output.name;
        if let Some(per_s) = above(output.lost_per_s) {
            let reason = output.lost_reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            warnings.push(format!("output `{name}` loses {} copies per second{reason}", count(per_s)));
        }
        if output.state == "degraded" {
            let fill = percent(output.queue_fill);
            warnings.push(format!("output `{name}` is degraded: its queue is {fill} full"));
        }
        if let Some(trouble) = output.disk.as_ref().and_then(|disk| disk.trouble.as_ref()) {
            warnings.push(format!("output `{name}`: disk: {trouble}"));
        }
    }
    warnings
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::top::document::{Daemon, Disk, Port};
    use crate::top::sample::Tracker;
    use model::Now;

    fn table(of: &[(&str, &str, u64)]) -> Losses {
        let mut losses = Losses::new();
        for (family, reason, count) in of {
            losses.entry((*family).to_owned()).or_default().insert((*reason).to_owned(), *count);
        }
        losses
    }

    /// A daemon that has something of everything, after so many records.
    pub(in crate::status) fn document(received: u64) -> Document {
        let source = Source {
            name: "app".into(),
            kind: "statsd".into(),
            listen: vec!["udp://127.0.0.1:8125".into(), "tcp://127.0.0.1:8125".into()],
            received,
            rejected: 1,
            dropped: 2,
            aggregated: received - 3,
            balanced: true,
            losses: table(&[("rejected", "no_type", 1), ("dropped", "series_max", 2)]),
            kernel_dropped: 7,
            ..Source::default()
        };
        let edge = Edge {
            from: "app".into(),
            received: received - 1,
            dropped: 2,
            aggregated: received - 3,
            balanced: true,
            losses: table(&[("dropped", "series_max", 2)]),
            ..Edge::default()
        };
        let file = Output {
            name: "points".into(),
            kind: "graphite_file".into(),
            state: "up".into(),
            copies: 33,
            delivered: 30,
            filtered: 3,
            balanced: true,
            losses: table(&[("filtered", "by_name", 3)]),
            max_bytes: 100,
            ..Output::default()
        };
        let carbon = Output {
            name: "carbon/10.0.0.1:2003".into(),
            kind: "graphite".into(),
            state: "down".into(),
            state_for_s: 80,
            last_error: "connect_failed".into(),
            copies: 40,
            dropped: 10,
            queued: 30,
            queued_bytes: 3000,
            max_bytes: 10_000,
            oldest_s: 42.0,
            balanced: true,
            losses: table(&[("dropped", "queue_full", 10)]),
            disk: Some(Disk::default()),
            ..Output::default()
        };
        Document {
            time_ms: 1_795_214_205_226,
            sources: vec![source],
            transforms: vec![Transform { name: "stats".into(), kind: "aggregate".into(), edges: vec![edge] }],
            outputs: vec![file, carbon],
            daemon: Daemon { version: "0.1.0".into(), commit: "87ab84392c1f".into(), uptime_s: 125 },
            management: Port { listen: vec!["tcp://127.0.0.1:8126".into()] },
            http: Port { listen: vec!["http://127.0.0.1:8680".into()] },
            carbonlink: Port { listen: vec!["tcp://127.0.0.1:7002".into()] },
            relays: Vec::new(),
        }
    }

    pub(in crate::status) fn report(looks: &[Document], readiness: Readiness) -> Report {
        let mut tracker = Tracker::new("127.0.0.1:8680");
        let mut last = None;
        for (second, document) in looks.iter().enumerate() {
            let ns = (second as u64 + 1) * 1_000_000_000;
            last = Some((document, tracker.take(Ok(document.clone()), Now { mono_ns: ns, wall_ns: ns })));
        }
        let (document, sample) = last.expect("there is a look");
        Report::of(document, &sample, readiness)
    }

    pub(in crate::status) fn ready() -> Readiness {
        Readiness { ready: true, lines: Vec::new() }
    }

    #[test]
    fn losses_are_listed_once_and_filtered_copies_are_none() {
        let report = report(&[document(10)], ready());
        let listed: Vec<_> = report
            .losses
            .iter()
            .map(|loss| (&*loss.node, &*loss.outcome, &*loss.reason, loss.count))
            .collect();
        assert_eq!(
            listed,
            [
                ("app", "dropped", "series_max", 2),
                ("app", "rejected", "no_type", 1),
                ("app", "kernel_dropped", "", 7),
                ("carbon/10.0.0.1:2003", "dropped", "queue_full", 10),
            ]
        );
        // A second transform lost what the first one has: only its own account says so.
        let mut document = document(10);
        document.transforms[0].edges[0].losses = table(&[("dropped", "series_max", 3)]);
        let report = self::report(&[document], ready());
        assert!(
            report.losses.iter().any(|loss| loss.node == "app -> stats" && loss.count == 3),
            "{report:?}"
        );
    }

    #[test]
    fn past_losses_are_no_warning_and_present_ones_are() {
        let quiet = report(&[document(10), document(20)], ready());
        assert!(quiet.is_good(), "{:?}", quiet.warnings);
        assert_eq!(quiet.sources[0].records_per_s, Some(10.0));
        assert_eq!(quiet.transforms[0].records_per_s, Some(10.0));
        let mut now = document(20);
        now.sources[0].kernel_dropped += 4;
        now.sources[0].dropped += 5;
        now.sources[0].aggregated -= 5;
        now.outputs[1].dropped += 6;
        now.outputs[1].copies += 6;
        now.outputs[1].losses = table(&[("dropped", "queue_full", 16)]);
        now.outputs[0].state = "degraded".into();
        now.outputs[0].queued_bytes = 91;
        now.outputs[1].disk = Some(Disk { write_error: Some("no space".into()), ..Disk::default() });
        let report = report(&[document(10), now], ready());
        assert_eq!(
            report.warnings,
            [
                "source `app`: the kernel drops 4 packets per second",
                "source `app` loses 5 records per second",
                "output `points` is degraded: its queue is 91% full",
                "output `carbon/10.0.0.1:2003` loses 6 copies per second: queue_full",
                "output `carbon/10.0.0.1:2003`: disk: writes fail: no space",
            ]
        );
        assert!(!report.is_good());
    }

    #[test]
    fn lines_of_ready_are_warnings_and_a_daemon_that_is_not_ready_is_not_good() {
        let trouble = "output `carbon` is down: connect_failed, for 80 s";
        let readiness = |ready, line: &str| Readiness { ready, lines: vec![line.to_owned()] };
        let up = report(&[document(10)], readiness(true, trouble));
        assert_eq!((up.ready, &*up.warnings[0], up.is_good()), (true, trouble, false));
        let stopping = report(&[document(10)], readiness(false, "stopping"));
        assert_eq!((stopping.ready, &*stopping.warnings[0]), (false, "not ready: stopping"));
        assert!(!stopping.is_good());
    }

    #[test]
    fn a_row_that_does_not_balance_at_rest_is_a_warning_and_a_moving_one_is_not() {
        let look = |received: u64| {
            let mut document = document(10);
            document.transforms[0].edges[0].received = received;
            document.transforms[0].edges[0].balanced = false;
            document
        };
        let moving = report(&[look(11), look(12)], ready());
        assert_eq!((moving.balance, moving.transforms[0].balance), (Balance::Moving, Balance::Moving));
        assert!(moving.is_good());
        let broken = report(&[look(12), look(12)], ready());
        assert_eq!(
            (broken.balance, broken.transforms[0].balance),
            (Balance::NotBalanced, Balance::NotBalanced)
        );
        assert!(broken.warnings[0].starts_with("not balanced: "), "{:?}", broken.warnings);
    }

    #[test]
    fn the_page_explains_every_member() {
        let page = include_str!("../../../../docs/status.md");
        let example = page.split("```json\n").nth(1).and_then(|rest| rest.split("```").next());
        let example: serde_json::Value =
            serde_json::from_str(example.expect("the page has an example")).expect("it is JSON");
        let report = report(&[document(10), document(20)], ready());
        let real = serde_json::to_value(report).expect("it serializes");
        let members = |value: &serde_json::Value| -> Vec<String> {
            value.as_object().expect("an object").keys().cloned().collect()
        };
        let paths: [&[&str]; 8] = [
            &[],
            &["listeners"],
            &["sources"],
            &["transforms"],
            &["outputs"],
            &["outputs", "queue"],
            &["totals"],
            &["losses"],
        ];
        for path in paths {
            let at = |document: &serde_json::Value| {
                path.iter().fold(document.clone(), |value, member| {
                    let value = value[member].clone();
                    if value.is_array() { value[0].clone() } else { value }
                })
            };
            let (shown, real) = (at(&example), at(&real));
            assert_eq!(members(&shown), members(&real), "{path:?}");
            for member in members(&real) {
                let row = |line: &str| line.starts_with("| ") && line.contains(&format!("`{member}`"));
                assert!(page.lines().any(row), "`{member}` has no row on the page");
            }
        }
    }
}
