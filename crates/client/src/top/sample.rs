//! Two accounts documents to one sample: rates, fill, and whether the sums hold. Also what `--json` prints.
//!
//! Member names are an interface: `docs/top.md` explains them.

use model::Now;
use serde::Serialize;

use super::document::{Disk, Document, Edge, Output, Relay, Source};
use super::relays::{ClusterSample, RelaySample, relay_sample};
use super::totals::Totals;

/// Whether the two sums of an account hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Sums {
    /// Every record has one outcome.
    Hold,
    /// Not at this moment, and records are moving: unknown.
    Moving,
    /// Not, although nothing has moved for a look: a bug.
    Broken,
}

impl Sums {
    fn of(holds: bool, unmoved: bool) -> Sums {
        match (holds, unmoved) {
            (true, _) => Sums::Hold,
            (false, false) => Sums::Moving,
            (false, true) => Sums::Broken,
        }
    }
}

/// One look at a daemon.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Sample {
    /// Unix milliseconds: the daemon's clock, or ours when it is away.
    pub(crate) time_ms: u64,
    /// Who was asked.
    pub(crate) api: String,
    /// Whether it answered. If not, sources and outputs are empty.
    pub(crate) reachable: bool,
    /// Unix milliseconds of the first of the questions in a row that were not answered.
    pub(crate) away_since_ms: Option<u64>,
    /// Why it did not answer.
    pub(crate) error: Option<String>,
    /// Seconds that the rates are about; none without a look before.
    pub(crate) interval_s: Option<f64>,
    /// The worst of all rows; none when it is away.
    pub(crate) sums: Option<Sums>,
    /// Since the daemon's start; none when it is away.
    pub(crate) totals: Option<Totals>,
    /// In the order of the configuration.
    pub(crate) sources: Vec<SourceSample>,
    /// In the order of the configuration.
    pub(crate) outputs: Vec<OutputSample>,
    /// In the order of the configuration.
    pub(crate) relays: Vec<RelaySample>,
    /// Of all transforms.
    #[serde(skip)]
    pub(crate) edges: Vec<EdgeSample>,
}

/// What one node gave to a transform.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EdgeSample {
    pub(crate) transform: String,
    pub(crate) from: String,
    pub(crate) records_per_s: Option<f64>,
    pub(crate) sums: Option<Sums>,
}

impl Sample {
    /// The clusters of all relays, each with its relay.
    pub(crate) fn clusters(&self) -> impl Iterator<Item = (&RelaySample, &ClusterSample)> {
        self.relays.iter().flat_map(|relay| relay.clusters.iter().map(move |cluster| (relay, cluster)))
    }
}

/// One source. Rates are none without a look before, or when the daemon started anew in between.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct SourceSample {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) packets_per_s: Option<f64>,
    pub(crate) records_per_s: Option<f64>,
    pub(crate) bytes_per_s: Option<f64>,
    pub(crate) kernel_dropped: u64,
    pub(crate) kernel_dropped_per_s: Option<f64>,
    pub(crate) rejected: u64,
    pub(crate) rejected_per_s: Option<f64>,
    pub(crate) dropped: u64,
    pub(crate) dropped_per_s: Option<f64>,
    /// Share of its receive buffer that the fullest UDP socket uses; none without one.
    pub(crate) receive_queue_fill: Option<f64>,
    pub(crate) sums: Option<Sums>,
    #[serde(skip)]
    pub(crate) listen: Vec<String>,
    #[serde(skip)]
    pub(crate) reasons: Vec<(String, u64)>,
}

/// One output: one endpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct OutputSample {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) state: String,
    pub(crate) state_for_s: u64,
    pub(crate) last_error: String,
    pub(crate) last_error_text: String,
    pub(crate) last_error_time_ms: u64,
    pub(crate) stalled_for_s: u64,
    pub(crate) copies_per_s: Option<f64>,
    pub(crate) delivered_per_s: Option<f64>,
    pub(crate) lost: u64,
    pub(crate) lost_per_s: Option<f64>,
    /// The reason that lost most since the look before, or since the start when nothing was lost since.
    pub(crate) lost_reason: Option<String>,
    pub(crate) queued: u64,
    pub(crate) queued_bytes: u64,
    pub(crate) queue_bytes_max: u64,
    /// `queued_bytes` as a share of `queue_bytes_max`.
    pub(crate) queue_fill: f64,
    pub(crate) oldest_s: f64,
    /// Its queue on disk; none for a queue in memory.
    pub(crate) disk: Option<DiskSample>,
    pub(crate) sums: Option<Sums>,
    #[serde(skip)]
    pub(crate) reasons: Vec<(String, u64)>,
}

impl OutputSample {
    /// Down, losing copies, or with a disk that fails: what somebody has to look at.
    pub(crate) fn fails(&self) -> bool {
        let disk_fails = self.disk.as_ref().is_some_and(|disk| disk.state == DiskState::Failing);
        self.state == "down" || self.lost_per_s.is_some_and(|per_s| per_s > 0.0) || disk_fails
    }
}

/// How safe what waits on disk is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DiskState {
    /// All of it is synced.
    #[default]
    Safe,
    /// Some of it is not synced yet.
    Unsynced,
    /// The disk takes or gives nothing now, files are gone, a write or a sync has failed since the look before, or a sync has
    /// failed of what still waits.
    Failing,
}

/// A queue on disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct DiskSample {
    pub(crate) state: DiskState,
    pub(crate) segments: u64,
    pub(crate) blocks_unsynced: u64,
    pub(crate) blocks_in_doubt: u64,
    pub(crate) write_errors: u64,
    pub(crate) sync_errors: u64,
    /// What is wrong with the disk now, in words.
    pub(crate) trouble: Option<String>,
}

/// Makes samples of the looks at one daemon.
#[derive(Clone, Debug)]
pub(crate) struct Tracker {
    api: String,
    before: Option<(Document, Now)>,
    away_since_ms: Option<u64>,
}

impl Tracker {
    /// A tracker that has seen nothing yet.
    pub(crate) fn new(api: &str) -> Tracker {
        Tracker { api: api.to_owned(), before: None, away_since_ms: None }
    }

    /// Takes what was seen at `now`.
    pub(crate) fn take(&mut self, seen: Result<Document, String>, now: Now) -> Sample {
        match seen {
            Ok(document) => self.take_document(document, now),
            Err(error) => self.take_error(error, now),
        }
    }

    fn take_error(&mut self, error: String, now: Now) -> Sample {
        let time_ms = now.wall_ns / 1_000_000;
        self.before = None;
        Sample {
            time_ms,
            api: self.api.clone(),
            reachable: false,
            away_since_ms: Some(*self.away_since_ms.get_or_insert(time_ms)),
            error: Some(error),
            interval_s: None,
            sums: None,
            totals: None,
            sources: Vec::new(),
            outputs: Vec::new(),
            relays: Vec::new(),
            edges: Vec::new(),
        }
    }

    fn take_document(&mut self, document: Document, now: Now) -> Sample {
        self.away_since_ms = None;
        let interval = self.before.as_ref().map(|(before, at)| Interval {
            before,
            seconds: now.mono_ns.saturating_sub(at.mono_ns).max(1) as f64 / 1e9,
        });
        let sources: Vec<SourceSample> =
            document.sources.iter().map(|source| source_sample(source, interval.as_ref())).collect();
        let outputs: Vec<OutputSample> =
            document.outputs.iter().map(|output| output_sample(output, interval.as_ref())).collect();
        let edges = edges(&document, interval.as_ref());
        let sums = sources.iter().map(|row| row.sums).chain(outputs.iter().map(|row| row.sums));
        let sums = sums.chain(edges.iter().map(|row| row.sums));
        let sample = Sample {
            time_ms: document.time_ms,
            api: self.api.clone(),
            reachable: true,
            away_since_ms: None,
            error: None,
            interval_s: interval.as_ref().map(|interval| interval.seconds),
            sums: Some(sums.flatten().max().unwrap_or(Sums::Hold)),
            totals: Some(Totals::of(&document)),
            relays: self::relays(&document, interval.as_ref()),
            sources,
            outputs,
            edges,
        };
        self.before = Some((document, now));
        sample
    }
}

/// The look before, and how long ago it was.
struct Interval<'a> {
    before: &'a Document,
    seconds: f64,
}

impl Interval<'_> {
    fn source(&self, name: &str) -> Option<&Source> {
        self.before.sources.iter().find(|row| row.name == name)
    }

    fn output(&self, name: &str) -> Option<&Output> {
        self.before.outputs.iter().find(|row| row.name == name)
    }

    fn edge(&self, transform: &str, from: &str) -> Option<&Edge> {
        let transform = self.before.transforms.iter().find(|row| row.name == transform)?;
        transform.edges.iter().find(|edge| edge.from == from)
    }

    fn relay(&self, name: &str) -> Option<&Relay> {
        self.before.relays.iter().find(|row| row.transform == name)
    }
}

/// None when the count went back: the daemon started anew.
fn rate(now: u64, before: Option<u64>, interval: Option<&Interval<'_>>) -> Option<f64> {
    Some(now.checked_sub(before?)? as f64 / interval?.seconds)
}

fn relays(document: &Document, interval: Option<&Interval<'_>>) -> Vec<RelaySample> {
    let sample = |row: &Relay| {
        let before = interval.and_then(|interval| interval.relay(&row.transform));
        let per_s = |read: fn(&Relay) -> u64| rate(read(row), before.map(read), interval);
        relay_sample(document, row, &per_s)
    };
    document.relays.iter().map(sample).collect()
}

fn edges(document: &Document, interval: Option<&Interval<'_>>) -> Vec<EdgeSample> {
    let rows = document.transforms.iter().flat_map(|row| row.edges.iter().map(move |edge| (&row.name, edge)));
    let sample = |(transform, edge): (&String, &Edge)| {
        let before = interval.and_then(|interval| interval.edge(transform, &edge.from));
        EdgeSample {
            transform: transform.clone(),
            from: edge.from.clone(),
            records_per_s: rate(edge.received, before.map(|before| before.received), interval),
            sums: Some(Sums::of(edge.balanced, before.is_some_and(|before| before == edge))),
        }
    };
    rows.map(sample).collect()
}

fn source_sample(row: &Source, interval: Option<&Interval<'_>>) -> SourceSample {
    let before = interval.and_then(|interval| interval.source(&row.name));
    let per_s = |read: fn(&Source) -> u64| rate(read(row), before.map(read), interval);
    let filled = |socket: &super::document::Socket| {
        (socket.buffer_bytes > 0).then(|| socket.rx_queue_bytes as f64 / socket.buffer_bytes as f64)
    };
    let reasons = row.losses.values().flatten().map(|(reason, count)| (reason.clone(), *count));
    SourceSample {
        name: row.name.clone(),
        kind: row.kind.clone(),
        packets_per_s: per_s(|row| row.packets),
        records_per_s: per_s(|row| row.received),
        bytes_per_s: per_s(|row| row.bytes),
        kernel_dropped: row.kernel_dropped,
        kernel_dropped_per_s: per_s(|row| row.kernel_dropped),
        rejected: row.rejected,
        rejected_per_s: per_s(|row| row.rejected),
        dropped: row.dropped + row.internal,
        dropped_per_s: per_s(|row| row.dropped + row.internal),
        receive_queue_fill: row.sockets.iter().filter_map(filled).reduce(f64::max),
        sums: Some(Sums::of(row.balanced, before.is_some_and(|before| unmoved_source(before, row)))),
        listen: row.listen.clone(),
        reasons: most_first(reasons),
    }
}

fn output_sample(row: &Output, interval: Option<&Interval<'_>>) -> OutputSample {
    let before = interval.and_then(|interval| interval.output(&row.name));
    let per_s = |read: fn(&Output) -> u64| rate(read(row), before.map(read), interval);
    let reasons = row.reasons().into_iter().map(|(reason, count)| (reason.to_owned(), count));
    OutputSample {
        name: row.name.clone(),
        kind: row.kind.clone(),
        state: row.state.clone(),
        state_for_s: row.state_for_s,
        last_error: row.last_error.clone(),
        last_error_text: row.last_error_text.clone(),
        last_error_time_ms: row.last_error_time_ms,
        stalled_for_s: row.stalled_for_s,
        copies_per_s: per_s(|row| row.copies),
        delivered_per_s: per_s(|row| row.delivered),
        lost: row.lost(),
        lost_per_s: per_s(Output::lost),
        lost_reason: top_reason(row, before),
        queued: row.queued,
        queued_bytes: row.queued_bytes,
        queue_bytes_max: row.max_bytes,
        queue_fill: row.fill(),
        oldest_s: row.oldest_s,
        disk: row.disk.as_ref().map(|disk| disk_sample(disk, before.and_then(|before| before.disk.as_ref()))),
        sums: Some(Sums::of(row.balanced, before.is_some_and(|before| unmoved_output(before, row)))),
        reasons: most_first(reasons),
    }
}

fn disk_sample(disk: &Disk, before: Option<&Disk>) -> DiskSample {
    let errors = |disk: &Disk| disk.write_errors + disk.sync_errors;
    let failed = before.is_some_and(|before| errors(disk) > errors(before));
    let trouble = disk_trouble(disk);
    DiskSample {
        state: match () {
            () if failed || trouble.is_some() || disk.blocks_in_doubt > 0 => DiskState::Failing,
            () if disk.blocks_unsynced > 0 => DiskState::Unsynced,
            () => DiskState::Safe,
        },
        segments: disk.segments,
        blocks_unsynced: disk.blocks_unsynced,
        blocks_in_doubt: disk.blocks_in_doubt,
        write_errors: disk.write_errors,
        sync_errors: disk.sync_errors,
        trouble,
    }
}

fn disk_trouble(disk: &Disk) -> Option<String> {
    let missing =
        disk.missing.as_ref().map(|why| format!("{} records in missing files: {why}", disk.records_missing));
    let write = disk.write_error.as_ref().map(|why| format!("writes fail: {why}"));
    let read = disk.read_error.as_ref().map(|why| format!("reads fail: {why}"));
    missing.or(write).or(read)
}

fn top_reason(row: &Output, before: Option<&Output>) -> Option<String> {
    let reasons = row.reasons();
    let earlier = before.map(Output::reasons).unwrap_or_default();
    let since = |reason: &str, count: u64| count.saturating_sub(earlier.get(reason).copied().unwrap_or(0));
    let top = reasons.iter().max_by_key(|(reason, count)| (since(reason, **count), **count));
    top.filter(|(_, count)| **count > 0).map(|(reason, _)| (*reason).to_owned())
}

fn most_first(reasons: impl Iterator<Item = (String, u64)>) -> Vec<(String, u64)> {
    let mut reasons: Vec<_> = reasons.filter(|(_, count)| *count > 0).collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    reasons
}

fn unmoved_source(before: &Source, now: &Source) -> bool {
    let counts = |row: &Source| (row.received, row.packets, row.in_flight, row.losses.clone());
    counts(before) == counts(now)
}

fn unmoved_output(before: &Output, now: &Output) -> bool {
    let counts = |row: &Output| (row.copies, row.delivered, row.queued, row.losses.clone());
    counts(before) == counts(now)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::document::Socket;
    use super::*;

    pub(crate) fn at(seconds: f64) -> Now {
        let ns = (seconds * 1e9) as u64;
        Now { mono_ns: ns, wall_ns: 1_795_000_000_000_000_000 + ns }
    }

    fn losses(of: &[(&str, &str, u64)]) -> super::super::document::Losses {
        let mut losses = super::super::document::Losses::new();
        for (family, reason, count) in of {
            losses.entry((*family).to_owned()).or_default().insert((*reason).to_owned(), *count);
        }
        losses
    }

    fn source(received: u64, kernel_dropped: u64) -> Source {
        Source {
            name: "app".into(),
            kind: "statsd".into(),
            received,
            rejected: 3,
            packets: received / 2,
            bytes: received * 10,
            kernel_dropped,
            balanced: true,
            sockets: vec![
                Socket { rx_queue_bytes: 10, buffer_bytes: 100 },
                Socket { rx_queue_bytes: 50, buffer_bytes: 200 },
                Socket { rx_queue_bytes: 9, buffer_bytes: 0 },
            ],
            ..Source::default()
        }
    }

    fn document(sources: Vec<Source>, outputs: Vec<Output>) -> Document {
        Document { time_ms: 7, sources, outputs, ..Document::default() }
    }

    #[test]
    fn two_looks_give_rates() {
        let mut tracker = Tracker::new("here:1");
        let first = tracker.take(Ok(document(vec![source(100, 5)], Vec::new())), at(10.0));
        assert_eq!((first.interval_s, first.sources[0].packets_per_s), (None, None));
        assert_eq!((first.time_ms, first.api.as_str(), first.sums), (7, "here:1", Some(Sums::Hold)));
        let second = tracker.take(Ok(document(vec![source(300, 6)], Vec::new())), at(12.0));
        let row = &second.sources[0];
        assert_eq!(second.interval_s, Some(2.0));
        assert_eq!((row.packets_per_s, row.records_per_s), (Some(50.0), Some(100.0)));
        assert_eq!((row.bytes_per_s, row.kernel_dropped_per_s), (Some(1000.0), Some(0.5)));
        assert_eq!((row.rejected, row.rejected_per_s, row.kernel_dropped), (3, Some(0.0), 6));
        assert_eq!(row.receive_queue_fill, Some(0.25), "the fullest socket's");
    }

    #[test]
    fn a_daemon_that_started_anew_has_no_rates_for_one_look() {
        let mut tracker = Tracker::new("x");
        for (received, rate) in [(100, None), (10, None), (20, Some(10.0))] {
            let now = at(received as f64);
            let seen = document(vec![source(received, 0)], Vec::new());
            tracker.before.iter_mut().for_each(|(_, then)| then.mono_ns = now.mono_ns - 1_000_000_000);
            assert_eq!(tracker.take(Ok(seen), now).sources[0].records_per_s, rate, "{received}");
        }
    }

    #[test]
    fn downtime_is_shown_since_the_first_question_without_an_answer() {
        let mut tracker = Tracker::new("x");
        tracker.take(Ok(document(vec![source(1, 0)], Vec::new())), at(1.0));
        let since = Some(at(2.0).wall_ns / 1_000_000);
        for second in [2.0, 3.0] {
            let away = tracker.take(Err("refused".into()), at(second));
            assert_eq!((away.reachable, away.away_since_ms, away.sums), (false, since, None));
            assert_eq!((away.error.as_deref(), away.sources.len()), (Some("refused"), 0));
        }
        let back = tracker.take(Ok(document(vec![source(9, 0)], Vec::new())), at(4.0));
        assert!(back.reachable && back.away_since_ms.is_none() && back.interval_s.is_none());
        let again = tracker.take(Err("refused".into()), at(5.0));
        assert_eq!(again.away_since_ms, Some(at(5.0).wall_ns / 1_000_000));
    }

    #[test]
    fn the_reason_shown_is_the_one_that_loses_now() {
        let output = |of: &[(&str, &str, u64)], expired| {
            let losses = losses(of);
            let dropped = losses.values().flatten().map(|(_, count)| count).sum();
            Output { name: "a".into(), copies: 1000, dropped, expired, losses, ..Output::default() }
        };
        let full = ("dropped", "queue_full", 100);
        let table = [
            (output(&[], 0), None, Some(0.0)),
            (output(&[full], 0), Some("queue_full"), Some(100.0)),
            (output(&[full, ("rejected_by_peer", "too_big", 2)], 0), Some("too_big"), Some(2.0)),
            (output(&[full, ("rejected_by_peer", "too_big", 2)], 0), Some("queue_full"), Some(0.0)),
            (output(&[full, ("rejected_by_peer", "too_big", 2)], 1), Some("expired"), Some(1.0)),
        ];
        let mut tracker = Tracker::new("x");
        tracker.take(Ok(document(Vec::new(), vec![output(&[], 0)])), at(0.0));
        for (second, (output, reason, rate)) in table.into_iter().enumerate() {
            let lost = output.lost();
            let sample = tracker.take(Ok(document(Vec::new(), vec![output])), at(second as f64 + 1.0));
            let row = &sample.outputs[0];
            assert_eq!(
                (row.lost_reason.as_deref(), row.lost_per_s, row.lost),
                (reason, rate, lost),
                "{second}"
            );
        }
    }

    #[test]
    fn a_disk_that_fails_now_is_shown_before_what_it_has_not_synced() {
        let mut tracker = Tracker::new("x");
        for (second, (unsynced, in_doubt, write_errors, sync_errors, want)) in [
            (0, 0, 7, 7, DiskState::Safe),
            (3, 0, 7, 7, DiskState::Unsynced),
            (3, 0, 8, 7, DiskState::Failing),
            (0, 0, 8, 7, DiskState::Safe),
            (0, 0, 8, 8, DiskState::Failing),
            (2, 1, 8, 8, DiskState::Failing),
            (0, 0, 0, 0, DiskState::Safe),
        ]
        .into_iter()
        .enumerate()
        {
            let disk = Disk {
                segments: 2,
                blocks_unsynced: unsynced,
                blocks_in_doubt: in_doubt,
                write_errors,
                sync_errors,
                ..Disk::default()
            };
            let output = Output { name: "a".into(), disk: Some(disk), ..Output::default() };
            let sample = tracker.take(Ok(document(Vec::new(), vec![output])), at(second as f64));
            let disk = sample.outputs[0].disk.as_ref().expect("its queue is on disk");
            assert_eq!((disk.state, disk.segments, disk.blocks_unsynced), (want, 2, unsynced), "{second}");
        }
    }

    #[test]
    fn sums_are_broken_only_when_they_do_not_hold_at_rest() {
        let row = |received, holds| Source { balanced: holds, ..source(received, 0) };
        let mut tracker = Tracker::new("x");
        for (second, (received, holds, want)) in [
            (1, false, Sums::Moving),
            (2, false, Sums::Moving),
            (2, false, Sums::Broken),
            (2, true, Sums::Hold),
            (3, false, Sums::Moving),
        ]
        .into_iter()
        .enumerate()
        {
            let good = Source { name: "good".into(), ..row(9, true) };
            let seen = document(vec![row(received, holds), good], Vec::new());
            let sample = tracker.take(Ok(seen), at(second as f64));
            assert_eq!((sample.sums, sample.sources[0].sums), (Some(want), Some(want)), "{second}");
            assert_eq!(sample.sources[1].sums, Some(Sums::Hold));
        }
    }

    #[test]
    fn the_page_explains_every_member() {
        let page = include_str!("../../../../docs/top.md");
        let example = page.split("```json\n").nth(1).and_then(|rest| rest.split("```").next());
        let example: serde_json::Value =
            serde_json::from_str(example.expect("the page has an example")).expect("it is JSON");
        let mut tracker = Tracker::new("x");
        let output = Output { name: "a".into(), disk: Some(Disk::default()), ..Output::default() };
        let cluster = super::super::document::Cluster::default();
        let relay = Relay { clusters: vec![cluster], ..Relay::default() };
        let seen = Document { relays: vec![relay], ..document(vec![source(1, 0)], vec![output]) };
        let sample = tracker.take(Ok(seen), at(1.0));
        let sample = serde_json::to_value(sample).expect("it serializes");
        let members = |value: &serde_json::Value| -> Vec<String> {
            value.as_object().expect("an object").keys().cloned().collect()
        };
        for (shown, real) in [
            (&example, &sample),
            (&example["sources"][0], &sample["sources"][0]),
            (&example["outputs"][0], &sample["outputs"][0]),
            (&example["outputs"][0]["disk"], &sample["outputs"][0]["disk"]),
            (&example["relays"][0], &sample["relays"][0]),
            (&example["relays"][0]["clusters"][0], &sample["relays"][0]["clusters"][0]),
        ] {
            assert_eq!(members(shown), members(real));
            for member in members(real) {
                let row = |line: &str| line.starts_with("| ") && line.contains(&format!("`{member}`"));
                assert!(page.lines().any(row), "`{member}` has no row on the page");
            }
        }
    }
}
