//! A checked `[outputs.NAME]` to its plans: one for each endpoint.

use std::path::{Path, PathBuf};

use deliver::plan::{QueueKind, QueueLimits, SenderPlan};
use wire::graphite::Namespace;

use super::clusters::{self, Draft};
use super::fields::Fields;
use super::value::Checked;
use super::{checks, packets, transport};
use crate::address::destination_name;
use crate::diagnostic::{Code, Diagnostic, Place};
use crate::options::Section;
use crate::options::table::endpoints::{CONNECTIONS, SENDER};
use crate::options::table::outputs::{FILE_FORMS, FILES, GRAPHITE, NAMESPACE};
use crate::options::table::queue::QUEUE;
use crate::options::table::transport::OUTPUT_TRANSPORT;
use crate::plan::{
    Addresses, Compression, ConsoleEncoding, Destination, Endpoint, Feed, Framing, GraphiteEncoding,
    OutputKind, OutputPlan, PacketsPlan,
};

/// An output of a section that sends no packets, as the section means it when nothing is said but `type` and `from`. One
/// to carbon has no endpoint yet.
pub(super) fn default_kind(section: Section, data_dir: &Path, name: &str) -> OutputKind {
    let path = |file: &str| data_dir.join(name).join(file);
    let namespace = Namespace::default();
    match section {
        Section::OutputGraphiteFile => OutputKind::GraphiteFile {
            path: path("points.graphite"),
            // With the rotated ones 1 GiB in all.
            file_bytes_max: 64 << 20,
            files_max: 15,
            peer: false,
            namespace,
        },
        Section::OutputConsole => OutputKind::Console { form: ConsoleEncoding::Node, pretty: false },
        Section::OutputPerlFile => {
            OutputKind::PerlFile { path: PathBuf::new(), stats_prefix: "statsd".into() }
        }
        Section::OutputEventFile => {
            OutputKind::EventFile { path: path("events.jsonl"), file_bytes_max: 16 << 20, files_max: 4 }
        }
        _ => OutputKind::Graphite {
            to: Endpoint { host: String::new(), port: 0 },
            form: GraphiteEncoding::Lines,
            namespace,
            sender: SenderPlan::default(),
            connections: 1,
            line_bytes_max: OutputKind::LINE_BYTES_MAX,
            compression: Compression::Plain,
            tls: None,
        },
    }
}

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

    /// An output with this queue, without feeds.
    fn output(self, name: String, kind: OutputKind, required: bool) -> OutputPlan {
        let (queue, queue_kind) = (self.limits, self.kind);
        OutputPlan { name, kind, from: Vec::new(), queue, queue_kind, required, check: None }
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
        Section::OutputGraphite => (graphite_outputs(asked, queue, wrong), None),
        _ => (vec![file_or_console(asked, queue, data_dir, wrong)], None),
    }
}

/// An output without an endpoint.
fn file_or_console(asked: &Asked<'_>, queue: Queue, data_dir: &Path, wrong: &mut Vec<Diagnostic>) -> Built {
    let Asked { name, section, fields, .. } = *asked;
    let mut kind = default_kind(section, data_dir, name);
    fields.fill(&mut kind, &FILES);
    fields.fill(&mut kind, &FILE_FORMS);
    match &mut kind {
        OutputKind::GraphiteFile { file_bytes_max, files_max, namespace, .. } => {
            rotation(fields, file_bytes_max, files_max, wrong);
            *namespace = self::namespace(fields, wrong);
        }
        OutputKind::EventFile { file_bytes_max, files_max, .. } => {
            rotation(fields, file_bytes_max, files_max, wrong);
        }
        _ => {}
    }
    let place = if section == Section::OutputConsole { fields.place } else { fields.at("path") };
    Built { plan: queue.output(name.to_owned(), kind, false), place }
}

/// Outputs to carbon and its like, one for each endpoint.
fn graphite_outputs(asked: &Asked<'_>, queue: Queue, wrong: &mut Vec<Diagnostic>) -> Vec<Built> {
    let Asked { name, fields, .. } = *asked;
    let mut model = default_kind(asked.section, Path::new(""), name);
    for group in [&GRAPHITE, &CONNECTIONS, &OUTPUT_TRANSPORT] {
        fields.fill(&mut model, group);
    }
    let tls_plan = transport::endpoint(name, fields, wrong);
    let sender_plan = sender(fields, wrong);
    if let OutputKind::Graphite { namespace, sender, tls, .. } = &mut model {
        (*namespace, *sender, *tls) = (self::namespace(fields, wrong), sender_plan, tls_plan);
    }
    let form = fields.value("encoding");
    let required = fields.value("required").unwrap_or_default();
    let endpoints = endpoints(fields);
    unfit_datagrams(fields, endpoints, wrong);
    if form == Some(GraphiteEncoding::Pickle) {
        let message = "`max_line_bytes` has no effect: pickle frames contain no lines";
        fields.ignored("max_line_bytes", message, wrong);
    }
    let split = endpoints.len() > 1;
    let each = endpoints.iter().filter_map(|(to, place)| {
        let kind = match to {
            Destination::Tcp(_) => with_destination(&model, to),
            Destination::Udp(to) => {
                let syslog = form == Some(GraphiteEncoding::Syslog);
                OutputKind::GraphiteDatagrams { to: to.clone(), syslog, sender: sender_plan }
            }
            // Its row has no other schemes.
            Destination::UnixDatagram(_) | Destination::UnixStream(_) => return None,
        };
        let name = if split { endpoint_name(name, to) } else { name.to_owned() };
        let plan = queue.output(name, kind, required);
        Some(Built { plan, place: *place })
    });
    each.collect()
}

/// The same output with another endpoint.
pub(super) fn with_destination(kind: &OutputKind, destination: &Destination) -> OutputKind {
    let mut kind = kind.clone();
    match (&mut kind, destination) {
        (OutputKind::Graphite { to, .. }, Destination::Tcp(host))
        | (OutputKind::GraphiteDatagrams { to, .. }, Destination::Udp(host)) => *to = host.clone(),
        (OutputKind::Packets(packets), _) => {
            packets.to = destination.clone();
            // Datagrams have no framing, whatever the section says.
            if destination.is_datagram() {
                packets.framing = Framing::Lines;
            }
        }
        _ => {}
    }
    kind
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
    let required = fields.value("required").unwrap_or_default();
    let mut built = Vec::with_capacity(endpoints.len());
    for (at, (to, place)) in endpoints.iter().enumerate() {
        let framing = if to.is_datagram() { Framing::Lines } else { framing };
        let packets = PacketsPlan { to: to.clone(), framing, addresses, sender, lines: lines.clone() };
        let split = endpoints.len() > 1 || in_cluster;
        let name = if split { endpoint_name(name, to) } else { name.to_owned() };
        let plan = queue.output(name, OutputKind::Packets(packets), required);
        let plan = OutputPlan { check: checks.get(at).cloned(), ..plan };
        built.push(Built { plan, place: *place });
    }
    (built, cluster)
}

fn framing(section: Section, fields: &Fields, to: &[Destination], wrong: &mut Vec<Diagnostic>) -> Framing {
    if section == Section::OutputUdp || fields.value("framing") != Some(Framing::Frames) {
        return Framing::Lines;
    }
    if to.iter().all(Destination::is_datagram) {
        fields.ignored("framing", "`framing` has no effect: the endpoints take datagrams", wrong);
    }
    Framing::Frames
}

fn addresses(section: Section, fields: &Fields) -> Addresses {
    let of_hosts = section != Section::OutputUnix;
    if of_hosts { fields.value("addresses").unwrap_or_default() } else { Addresses::First }
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
            let hint = "remove it, or give the `udp://` endpoints a section of their own";
            wrong.push(Diagnostic::error(Code::BadValue, message).at(at).label("datagrams").hint(hint));
        }
    }
    for key in
        ["connections", "max_line_bytes"].into_iter().filter(|_| to.iter().all(|(to, _)| to.is_datagram()))
    {
        fields.ignored(key, format!("`{key}` has no effect: the endpoints take datagrams"), wrong);
    }
}

/// Bound of a file, 0 for none, and how many rotated ones there are.
fn rotation(fields: &Fields, bytes: &mut u64, files: &mut u32, wrong: &mut Vec<Diagnostic>) {
    Fields::set(bytes, fields.value("max_file_bytes"));
    Fields::set(files, fields.value("max_files"));
    if *bytes == 0 {
        fields.ignored("max_files", "`max_files` has no effect: the file is never rotated", wrong);
        *files = 0;
    }
}

/// Options that only the modern namespace uses.
const MODERN_ONLY: [&str; 5] =
    ["global_prefix", "counter_prefix", "timer_prefix", "gauge_prefix", "set_prefix"];

pub(super) fn namespace(fields: &Fields, wrong: &mut Vec<Diagnostic>) -> Namespace {
    let mut namespace = Namespace::default();
    fields.fill(&mut namespace, &NAMESPACE);
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
    fields.fill(&mut sender, &SENDER);
    if sender.retry_max_ms < sender.retry_min_ms {
        let given = fields.place_of("max_retry_delay").is_some();
        let key = if given { "max_retry_delay" } else { "min_retry_delay" };
        let limits = format!("min_retry_delay is {}", crate::text::duration(sender.retry_min_ms));
        let message = format!(
            "`max_retry_delay` ({}) is below `min_retry_delay`",
            crate::text::duration(sender.retry_max_ms)
        );
        fields.wrong(key, Code::OutOfRange, message, limits, wrong);
    }
    sender
}

fn queue(name: &str, fields: &Fields, wrong: &mut Vec<Diagnostic>) -> Queue {
    let whose = format!("the queue of output `{name}`");
    let Some(fields) = fields.table("queue", Section::Queue, &whose, wrong) else {
        return Queue::of(QueueKind::Memory);
    };
    let sync_window_ms = fields.value("sync_window");
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
    fields.fill(&mut queue.limits, &QUEUE);
    queue
}
