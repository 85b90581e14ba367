//! A checked `[outputs.NAME]` to its plans: one for each endpoint.

use std::path::{Path, PathBuf};

use deliver::plan::{QueueKind, QueueLimits, SenderPlan, WhenFull};
use wire::graphite::{Namespace, Numbers};

use super::clusters::{self, Draft};
use super::fields::{Fields, table};
use super::value::Checked;
use super::{checks, packets, transport};
use crate::address::destination_name;
use crate::diagnostic::{Code, Diagnostic, Place};
use crate::options::Section;
use crate::plan::{
    Addresses, ConsoleEncoding, Destination, Feed, Framing, GraphiteEncoding, OutputKind, OutputPlan,
    PacketsPlan,
};

/// Default of `max_file_bytes` and `max_files` of points: 64 MiB and 15 rotated ones, 1 GiB in all.
pub(super) const POINT_FILES: (u64, u32) = (64 << 20, 15);

/// The same of events.
pub(super) const EVENT_FILES: (u64, u32) = (16 << 20, 4);

/// Default of `sync_window`, in milliseconds.
pub const SYNC_WINDOW_MS: u64 = 10;

/// What is said of a queue.
#[derive(Clone, Copy)]
struct Queue {
    limits: QueueLimits,
    kind: QueueKind,
}

impl Queue {
    fn of(kind: QueueKind) -> Queue {
        Queue { limits: QueueLimits::default_of(kind), kind }
    }
}

/// A plan without its feeds, and the place of its endpoint or file.
pub(super) struct Built {
    pub(super) plan: OutputPlan,
    pub(super) place: Place,
}

/// A section of an output.
pub(super) struct Asked<'a> {
    pub(super) name: &'a str,
    pub(super) section: Section,
    pub(super) fields: &'a Fields<'a>,
    pub(super) from: &'a [Feed],
}

/// All plans of one section, and the cluster that they make, if they do.
pub(super) fn build(
    asked: &Asked<'_>,
    data_dir: &Path,
    wrong: &mut Vec<Diagnostic>,
) -> (Vec<Built>, Option<Draft>) {
    let Asked { name, fields, .. } = *asked;
    let queue = queue(name, fields, wrong);
    match asked.section {
        Section::OutputUdp | Section::OutputTcp | Section::OutputUnix => packet_outputs(asked, queue, wrong),
        _ => (others(asked, queue, data_dir, wrong), None),
    }
}

/// Outputs that do not send packets.
fn others(asked: &Asked<'_>, queue: Queue, data_dir: &Path, wrong: &mut Vec<Diagnostic>) -> Vec<Built> {
    let Asked { name, section, fields, .. } = *asked;
    let one = |kind: OutputKind, place: Place| {
        vec![Built {
            plan: OutputPlan {
                name: name.to_owned(),
                kind,
                from: Vec::new(),
                queue: queue.limits,
                queue_kind: queue.kind,
                required: false,
                check: None,
            },
            place,
        }]
    };
    let path_place = || fields.place_of("path").unwrap_or(fields.place);
    match section {
        Section::OutputGraphite => graphite_outputs(asked, queue, wrong),
        Section::OutputGraphiteFile => {
            let (file_bytes_max, files_max) = rotation(fields, POINT_FILES, wrong);
            let path = fields.path("path").unwrap_or_else(|| default_path(data_dir, name, "points.graphite"));
            let (peer, namespace) = (fields.flag("peer").unwrap_or(false), namespace(fields, wrong));
            one(OutputKind::GraphiteFile { path, file_bytes_max, files_max, peer, namespace }, path_place())
        }
        Section::OutputConsole => {
            let form = match fields.word("encoding") {
                Some("perl") => ConsoleEncoding::Perl,
                _ => ConsoleEncoding::Node,
            };
            one(OutputKind::Console { form, pretty: fields.flag("pretty").unwrap_or(false) }, fields.place)
        }
        Section::OutputPerlFile => {
            let stats_prefix = fields.text("stats_prefix").unwrap_or_else(|| "statsd".into());
            let path = fields.path("path").unwrap_or_default();
            one(OutputKind::PerlFile { path, stats_prefix }, path_place())
        }
        Section::OutputEventFile => {
            let (file_bytes_max, files_max) = rotation(fields, EVENT_FILES, wrong);
            let path = fields.path("path").unwrap_or_else(|| default_path(data_dir, name, "events.jsonl"));
            one(OutputKind::EventFile { path, file_bytes_max, files_max }, path_place())
        }
        // No other section is an output.
        _ => Vec::new(),
    }
}

/// Outputs to carbon and its like, one for each endpoint.
fn graphite_outputs(asked: &Asked<'_>, queue: Queue, wrong: &mut Vec<Diagnostic>) -> Vec<Built> {
    let Asked { name, fields, .. } = *asked;
    let (form, namespace) = (graphite_form(fields), namespace(fields, wrong));
    let sender = sender(fields, wrong);
    let connections = fields.whole("connections").map_or(1, |count| count as u8);
    let line_bytes_max = fields.whole_u32("max_line_bytes").unwrap_or(OutputKind::LINE_BYTES_MAX);
    let required = fields.flag("required").unwrap_or(false);
    let endpoints = endpoints(fields);
    unfit_datagrams(fields, endpoints, wrong);
    if let Some(at) = fields.place_of("max_line_bytes").filter(|_| form == GraphiteEncoding::Pickle) {
        let message = "`max_line_bytes` has no effect: pickle frames contain no lines";
        wrong.push(Diagnostic::warning(Code::NoEffect, message).at(at).label("ignored"));
    }
    let (compression, tls) = (transport::compression(fields), transport::endpoint(name, fields, wrong));
    let split = endpoints.len() > 1;
    let each = endpoints.iter().filter_map(|(to, place)| {
        let kind = match to {
            Destination::Tcp(to) => {
                let (to, namespace, tls) = (to.clone(), namespace.clone(), tls.clone());
                OutputKind::Graphite {
                    to,
                    form,
                    namespace,
                    sender,
                    connections,
                    line_bytes_max,
                    compression,
                    tls,
                }
            }
            Destination::Udp(to) => {
                let syslog = form == GraphiteEncoding::Syslog;
                OutputKind::GraphiteDatagrams { to: to.clone(), syslog, sender }
            }
            // Its row has no other schemes.
            Destination::UnixDatagram(_) | Destination::UnixStream(_) => return None,
        };
        let name = if split { endpoint_name(name, to) } else { name.to_owned() };
        let (queue, queue_kind) = (queue.limits, queue.kind);
        let plan = OutputPlan { name, kind, from: Vec::new(), queue, queue_kind, required, check: None };
        Some(Built { plan, place: *place })
    });
    each.collect()
}

/// Where an output's file is when it has no path of its own.
pub(super) fn default_path(data_dir: &Path, name: &str, file: &str) -> PathBuf {
    data_dir.join(name).join(file)
}

/// Name of one endpoint's output.
pub fn endpoint_name(name: &str, to: &Destination) -> String {
    format!("{name}/{}", destination_name(to))
}

fn endpoints<'a>(fields: &'a Fields) -> &'a [(Destination, Place)] {
    match fields.other("to") {
        Some(Checked::Endpoints(to)) => to,
        _ => &[],
    }
}

fn packet_outputs(
    asked: &Asked<'_>,
    queue: Queue,
    wrong: &mut Vec<Diagnostic>,
) -> (Vec<Built>, Option<Draft>) {
    let Asked { name, section, fields, from } = *asked;
    let sender = if section == Section::OutputUdp { PacketsPlan::UDP_SENDER } else { sender(fields, wrong) };
    let endpoints = endpoints(fields);
    let destinations: Vec<Destination> = endpoints.iter().map(|(to, _)| to.clone()).collect();
    let in_cluster = clusters::is_wanted(fields);
    let takes_aggregates = from.iter().any(|feed| matches!(feed, Feed::Transform(_)));
    let around = packets::Around { in_cluster, takes_aggregates };
    let lines = match destinations.first() {
        Some(to) => packets::lines(name, fields, to, around, wrong),
        None => None,
    };
    let cluster = clusters::draft(fields, &destinations, wrong);
    let checks = checks::of_endpoints(name, fields, endpoints, wrong);
    let framing = framing(section, fields, &destinations, wrong);
    let addresses = addresses(section, fields);
    let required = fields.flag("required").unwrap_or(false);
    let mut built = Vec::with_capacity(endpoints.len());
    for (at, (to, place)) in endpoints.iter().enumerate() {
        let framing = if to.is_datagram() { Framing::Lines } else { framing };
        let packets = PacketsPlan { to: to.clone(), framing, addresses, sender, lines: lines.clone() };
        let split = endpoints.len() > 1 || in_cluster;
        let plan = OutputPlan {
            name: if split { endpoint_name(name, to) } else { name.to_owned() },
            kind: OutputKind::Packets(packets),
            from: Vec::new(),
            queue: queue.limits,
            queue_kind: queue.kind,
            required,
            check: checks.get(at).cloned(),
        };
        built.push(Built { plan, place: *place });
    }
    (built, cluster)
}

fn framing(section: Section, fields: &Fields, to: &[Destination], wrong: &mut Vec<Diagnostic>) -> Framing {
    if section == Section::OutputUdp || fields.word("framing") != Some("frames") {
        return Framing::Lines;
    }
    if to.iter().all(Destination::is_datagram) {
        let place = fields.place_of("framing").unwrap_or(fields.place);
        let message = "`framing` has no effect: the endpoints take datagrams";
        wrong.push(Diagnostic::warning(Code::NoEffect, message).at(place).label("ignored"));
    }
    Framing::Frames
}

fn addresses(section: Section, fields: &Fields) -> Addresses {
    let of_hosts = section != Section::OutputUnix;
    if of_hosts && fields.word("addresses") == Some("round_robin") {
        Addresses::RoundRobin
    } else {
        Addresses::First
    }
}

/// Options that only streams use, in a section with endpoints that take datagrams.
fn unfit_datagrams(fields: &Fields, to: &[(Destination, Place)], wrong: &mut Vec<Diagnostic>) {
    let Some((_, place)) = to.iter().find(|(to, _)| to.is_datagram()) else { return };
    if fields.word("encoding") == Some("pickle") {
        let message = "pickle frames need a stream";
        wrong.push(
            Diagnostic::error(Code::BadValue, message).at(*place).label("this endpoint takes datagrams"),
        );
    }
    for key in ["transport", "tls"] {
        if let Some(at) = fields.place_of(key) {
            let message = format!("`{key}` is for streams");
            let hint = "leave it out, or give the `udp://` endpoints a section of their own";
            wrong.push(Diagnostic::error(Code::BadValue, message).at(at).label("datagrams").hint(hint));
        }
    }
    for key in ["connections", "max_line_bytes"] {
        if let Some(at) = fields.place_of(key).filter(|_| to.iter().all(|(to, _)| to.is_datagram())) {
            let message = format!("`{key}` has no effect: the endpoints take datagrams");
            wrong.push(Diagnostic::warning(Code::NoEffect, message).at(at).label("ignored"));
        }
    }
}

fn graphite_form(fields: &Fields) -> GraphiteEncoding {
    match fields.word("encoding") {
        Some("pickle") => GraphiteEncoding::Pickle,
        Some("syslog") => GraphiteEncoding::Syslog,
        _ => GraphiteEncoding::Lines,
    }
}

/// Bound of a file, 0 for none, and how many rotated ones there are.
fn rotation(fields: &Fields, (bytes, files): (u64, u32), wrong: &mut Vec<Diagnostic>) -> (u64, u32) {
    let bytes = fields.whole("max_file_bytes").unwrap_or(bytes);
    if bytes != 0 {
        return (bytes, fields.whole_u32("max_files").unwrap_or(files));
    }
    if let Some(place) = fields.place_of("max_files") {
        let message = "`max_files` has no effect: the file is never rotated";
        wrong.push(Diagnostic::warning(Code::NoEffect, message).at(place).label("ignored"));
    }
    (0, 0)
}

/// Options that only the modern namespace uses.
const MODERN_ONLY: [&str; 5] =
    ["global_prefix", "counter_prefix", "timer_prefix", "gauge_prefix", "set_prefix"];

pub(super) fn namespace(fields: &Fields, wrong: &mut Vec<Diagnostic>) -> Namespace {
    let mut namespace = Namespace::default();
    match fields.word("namespace") {
        Some("legacy") => namespace.legacy = true,
        Some("modern") => namespace.legacy = false,
        _ => {}
    }
    Fields::set(&mut namespace.global_prefix, fields.text("global_prefix"));
    Fields::set(&mut namespace.counter_prefix, fields.text("counter_prefix"));
    Fields::set(&mut namespace.timer_prefix, fields.text("timer_prefix"));
    Fields::set(&mut namespace.gauge_prefix, fields.text("gauge_prefix"));
    Fields::set(&mut namespace.set_prefix, fields.text("set_prefix"));
    Fields::set(&mut namespace.global_suffix, fields.text("global_suffix"));
    Fields::set(&mut namespace.stats_prefix, fields.text("stats_prefix"));
    Fields::set(&mut namespace.counts, fields.flag("counts"));
    Fields::set(&mut namespace.bare_tag_value, fields.text("bare_tag_value"));
    match fields.word("numbers") {
        Some("shortest") => namespace.numbers = Numbers::Shortest,
        Some("perl") => namespace.numbers = Numbers::Perl,
        _ => {}
    }
    for key in MODERN_ONLY.into_iter().filter(|_| namespace.legacy) {
        if let Some(place) = fields.place_of(key) {
            let message = format!("`{key}` has no effect in the namespace `legacy`");
            let hint = "write namespace = \"modern\" to use it; names of series then change";
            wrong.push(Diagnostic::warning(Code::NoEffect, message).at(place).label("ignored").hint(hint));
        }
    }
    namespace
}

fn sender(fields: &Fields, wrong: &mut Vec<Diagnostic>) -> SenderPlan {
    let mut sender = SenderPlan::default();
    Fields::set(&mut sender.retry_min_ms, fields.whole("min_retry_delay"));
    Fields::set(&mut sender.retry_max_ms, fields.whole("max_retry_delay"));
    Fields::set(&mut sender.connect_timeout_ms, fields.whole("connect_timeout"));
    Fields::set(&mut sender.write_timeout_ms, fields.whole("write_timeout"));
    if sender.retry_max_ms < sender.retry_min_ms {
        let place =
            fields.place_of("max_retry_delay").or(fields.place_of("min_retry_delay")).unwrap_or(fields.place);
        let limits = format!("min_retry_delay is {}", crate::text::duration(sender.retry_min_ms));
        let message = format!(
            "`max_retry_delay` ({}) is below `min_retry_delay`",
            crate::text::duration(sender.retry_max_ms)
        );
        wrong.push(Diagnostic::error(Code::OutOfRange, message).at(place).label(limits));
    }
    sender
}

fn queue(name: &str, fields: &Fields, wrong: &mut Vec<Diagnostic>) -> Queue {
    let Some(node) = fields.node("queue") else { return Queue::of(QueueKind::Memory) };
    let Some(entries) = table("queue", node, wrong) else { return Queue::of(QueueKind::Memory) };
    let fields =
        Fields::read(Section::Queue, &format!("the queue of output `{name}`"), node.place, entries, wrong);
    let sync_window_ms = fields.whole("sync_window");
    let kind = match fields.word("kind") {
        Some("disk") => QueueKind::Disk { sync_window_ms: sync_window_ms.unwrap_or(SYNC_WINDOW_MS) },
        _ => QueueKind::Memory,
    };
    if let Some(place) = fields.place_of("sync_window").filter(|_| !kind.is_disk()) {
        let message = "`sync_window` has no effect: the queue is in memory";
        let hint = "write kind = \"disk\" beside it to keep the queue on disk";
        wrong.push(Diagnostic::warning(Code::NoEffect, message).at(place).label("ignored").hint(hint));
    }
    let mut queue = Queue::of(kind);
    let limits = &mut queue.limits;
    Fields::set(&mut limits.bytes_max, fields.whole("max_bytes"));
    Fields::set(&mut limits.records_max, fields.whole("max_records"));
    Fields::set(&mut limits.age_max_ms, fields.whole("max_age"));
    match fields.word("when_full") {
        Some("block") => limits.when_full = WhenFull::Block,
        Some("block_while_up") => limits.when_full = WhenFull::BlockWhileUp,
        Some("drop_oldest") => limits.when_full = WhenFull::DropOldest,
        Some("drop_newest") => limits.when_full = WhenFull::DropNewest,
        _ => {}
    }
    queue
}
