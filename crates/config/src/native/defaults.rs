//! The plan of a start without a configuration file.

use std::net::SocketAddr;
use std::path::Path;

use deliver::plan::{QueueKind, QueueLimits};
use model::{SourceId, TransformId};
use wire::graphite::input::{Compatibility, MessageEncoding};

use super::{outputs, sources, transforms};
use crate::options::Section;
use crate::plan::{
    Carries, Feed, Listen, ManagementPlan, OutputKind, OutputPlan, Plan, SYNC_WINDOW_MS, SourceKind,
    TransformKind, TransformPlan,
};

/// Most bytes of the whisper files without a configuration file.
const DEFAULT_FILES_BYTES_MAX: u64 = 4 << 30;

/// Most connections of each source of Graphite points: with those of StatsD they fit most limits on open files.
const GRAPHITE_CONNECTIONS_MAX: usize = 1000;

/// The plan without a configuration file: StatsD, aggregated every 10 s, and Graphite as lines and pickle, all on loopback, into whisper
/// files (at most 4 GiB); events in a file (at most 80 MiB); the management port and HTTP.
pub fn defaults(data_dir: &Path) -> Plan {
    let feed = |source: u16| Feed::Source(SourceId(source));
    let graphite = |name: &str, port: u16, messages: Option<MessageEncoding>| {
        let at = SocketAddr::from(([127, 0, 0, 1], port));
        let mut plan = sources::graphite_plan(name, Compatibility::Strict);
        plan.listen =
            if messages.is_some() { vec![Listen::Tcp(at)] } else { vec![Listen::Udp(at), Listen::Tcp(at)] };
        plan.connections_max = GRAPHITE_CONNECTIONS_MAX;
        if let SourceKind::Graphite(source) = &mut plan.kind {
            source.carries = messages.map_or(Carries::Lines, Carries::Messages);
        }
        plan
    };
    let mut store = outputs::default_kind(Section::OutputWhisper, data_dir, "store");
    if let OutputKind::Whisper(plan) = &mut store {
        plan.files_bytes_max = DEFAULT_FILES_BYTES_MAX;
    }
    let from = vec![Feed::Transform(TransformId(0)), feed(1), feed(2)];
    let queue_kind = QueueKind::Disk { sync_window_ms: SYNC_WINDOW_MS };
    let queue = QueueLimits::default_of(queue_kind);
    let store = OutputPlan { queue, queue_kind, ..OutputPlan::new("store", store, from) };
    let events = outputs::default_kind(Section::OutputEventFile, data_dir, "events");
    Plan {
        sources: vec![
            sources::default_plan("statsd"),
            graphite("graphite", 2003, None),
            graphite("pickle", 2004, Some(MessageEncoding::Pickle)),
        ],
        transforms: vec![TransformPlan {
            name: "aggregate".into(),
            kind: TransformKind::Aggregate(Box::new(transforms::default_plan())),
            from: vec![feed(0)],
        }],
        outputs: vec![store, OutputPlan::new("events", events, vec![feed(0)])],
        management: vec![ManagementPlan::default()],
        data_dir: data_dir.to_owned(),
        built_in: true,
        ..Plan::default()
    }
}
