//! From a checked `[outputs.NAME]` to its plans: one for each endpoint.

use std::path::{Path, PathBuf};

use deliver::plan::SenderPlan;
use wire::graphite::Namespace;

pub use super::asked::endpoint_name;
use super::asked::{Asked, Outputs, endpoints, sender};
use super::clusters;
use super::fields::Fields;
use super::{checks, email, http_output, packets, riemann_output, store, transport};
use crate::diagnostic::{Code, Diagnostic, Place};
use crate::options::Section;
use crate::options::table::endpoints::CONNECTIONS;
use crate::options::table::opentsdb::PUT;
use crate::options::table::outputs::{FILE_FORMS, FILES, GRAPHITE, ROTATION};
use crate::options::table::packets::PACKET;
use crate::options::table::transport::OUTPUT_TRANSPORT;
use crate::plan::{
    Compression, ConsoleEncoding, Destination, Endpoint, Feed, Framing, GraphiteEncoding, OutputKind,
    PacketsPlan, WhisperPlan,
};

/// Where an output's file lies by default.
type PathOf<'a> = dyn Fn(&str) -> PathBuf + 'a;

/// A type of output: its default for an empty section, and the reader of its options. Its rows print it (`groups`).
struct OutputType {
    section: Section,
    /// One with endpoints has none yet.
    empty: fn(&PathOf<'_>) -> OutputKind,
    read: fn(&Asked<'_>, OutputKind, &mut Vec<Diagnostic>) -> Outputs,
}

/// No endpoint yet.
const NOWHERE: Endpoint = Endpoint { host: String::new(), port: 0 };

/// All types.
const TYPES: &[OutputType] = &[
    OutputType {
        section: Section::OutputGraphite,
        empty: |_| OutputKind::Graphite {
            to: NOWHERE,
            form: GraphiteEncoding::Lines,
            namespace: Namespace::default(),
            sender: SenderPlan::default(),
            connections: 1,
            line_bytes_max: OutputKind::LINE_BYTES_MAX,
            compression: Compression::Plain,
            tls: None,
        },
        read: graphite_outputs,
    },
    OutputType {
        section: Section::OutputGraphiteFile,
        empty: |path| OutputKind::GraphiteFile {
            path: path("points.graphite"),
            // 1 GiB together with the rotated files.
            file_bytes_max: 64 << 20,
            files_max: 15,
            peer: false,
            namespace: Namespace::default(),
        },
        read: file_or_console,
    },
    OutputType {
        section: Section::OutputWhisper,
        empty: |path| OutputKind::Whisper(Box::new(WhisperPlan::new(path("whisper")))),
        read: whisper_output,
    },
    OutputType {
        section: Section::OutputOpenTsdb,
        empty: |_| OutputKind::OpenTsdb {
            to: NOWHERE,
            namespace: Namespace::default(),
            default_tag: "source=staunch".into(),
            sender: SenderPlan::default(),
        },
        read: opentsdb_outputs,
    },
    OutputType {
        section: Section::OutputConsole,
        empty: |_| OutputKind::Console { form: ConsoleEncoding::Node, pretty: false },
        read: file_or_console,
    },
    OutputType {
        section: Section::OutputPerlFile,
        empty: |_| OutputKind::PerlFile { path: PathBuf::new(), stats_prefix: "statsd".into() },
        read: file_or_console,
    },
    OutputType {
        section: Section::OutputUdp,
        empty: |_| OutputKind::Packets(PacketsPlan::new(Destination::Udp(NOWHERE))),
        read: packet_outputs,
    },
    OutputType {
        section: Section::OutputTcp,
        empty: |_| OutputKind::Packets(PacketsPlan::new(Destination::Tcp(NOWHERE))),
        read: packet_outputs,
    },
    OutputType {
        section: Section::OutputUnix,
        empty: |_| OutputKind::Packets(PacketsPlan::new(Destination::UnixDatagram(PathBuf::new()))),
        read: packet_outputs,
    },
    OutputType {
        section: Section::OutputEventFile,
        empty: |path| OutputKind::EventFile {
            path: path("events.jsonl"),
            file_bytes_max: 16 << 20,
            files_max: 4,
        },
        read: file_or_console,
    },
    OutputType {
        section: Section::OutputHttp,
        empty: |_| OutputKind::Http(Box::default()),
        read: http_output::outputs,
    },
    OutputType {
        section: Section::OutputEmail,
        empty: |_| OutputKind::Email(Box::default()),
        read: email::outputs,
    },
    OutputType {
        section: Section::OutputRiemann,
        empty: |_| OutputKind::Riemann(Box::default()),
        read: riemann_output::outputs,
    },
];

fn type_of(section: Section) -> &'static OutputType {
    TYPES.iter().find(|one| one.section == section).expect("a test looks for each section of an output")
}

/// The default of an output section with only `type` and `from`.
pub(super) fn default_kind(section: Section, data_dir: &Path, name: &str) -> OutputKind {
    (type_of(section).empty)(&|file| data_dir.join(name).join(file))
}

/// All plans of one section, and their cluster, if it has one.
pub(super) fn build(asked: &Asked<'_>, data_dir: &Path, wrong: &mut Vec<Diagnostic>) -> Outputs {
    if let Some(fields) = asked.fields.table("queue")
        && let Some(place) = fields.place_of("sync_window").filter(|_| fields.word("kind") != Some("disk"))
    {
        let message = "`sync_window` has no effect: the queue is in memory";
        let hint = "write kind = \"disk\" beside it to keep the queue on disk";
        wrong.push(Diagnostic::warning(Code::NoEffect, message).at(place).label("ignored").hint(hint));
    }
    if let Some(fields) = asked.fields.table("queue")
        && let Some(place) = fields.place_of("max_wait")
        && fields.word("when_full").is_some_and(|word| word != "wait")
    {
        let message = "`max_wait` has no effect with this `when_full`";
        let hint = "only `when_full = \"wait\"`, the default, has a limit for the time";
        wrong.push(Diagnostic::warning(Code::NoEffect, message).at(place).label("ignored").hint(hint));
    }
    let section = asked.fields.section;
    (type_of(section).read)(asked, default_kind(section, data_dir, asked.name), wrong)
}

/// An output without an endpoint.
fn file_or_console(asked: &Asked<'_>, mut kind: OutputKind, wrong: &mut Vec<Diagnostic>) -> Outputs {
    let Asked { name, fields, .. } = *asked;
    fields.fill(&mut kind, &FILES);
    fields.fill(&mut kind, &ROTATION);
    fields.fill(&mut kind, &FILE_FORMS);
    if let OutputKind::GraphiteFile { file_bytes_max, files_max, namespace, .. } = &mut kind {
        *namespace = self::namespace(fields, wrong);
        if *file_bytes_max == 0 {
            fields.ignored("max_files", "`max_files` has no effect: the file is never rotated", wrong);
            *files_max = 0;
        }
    }
    let place = if fields.section == Section::OutputConsole { fields.place } else { fields.at("path") };
    (vec![asked.output(name.to_owned(), kind, place)], None)
}

/// A store of whisper files. Its queue is always on disk: it is the log of the store.
fn whisper_output(asked: &Asked<'_>, mut kind: OutputKind, wrong: &mut Vec<Diagnostic>) -> Outputs {
    let Asked { name, fields, .. } = *asked;
    if let OutputKind::Whisper(plan) = &mut kind {
        store::fill(plan, fields, wrong);
        plan.namespace = self::namespace(fields, wrong);
    }
    let mut built = asked.output(name.to_owned(), kind, fields.at("path"));
    store::keep_on_disk(&mut built.plan, fields, wrong);
    (vec![built], None)
}

/// Outputs to carbon and compatible programs, one for each endpoint.
fn graphite_outputs(asked: &Asked<'_>, mut model: OutputKind, wrong: &mut Vec<Diagnostic>) -> Outputs {
    let Asked { name, fields, .. } = *asked;
    for group in [&GRAPHITE, &CONNECTIONS, &OUTPUT_TRANSPORT] {
        fields.fill(&mut model, group);
    }
    let sender_plan = sender(fields, wrong);
    let names = self::namespace(fields, wrong);
    if let OutputKind::Graphite { namespace, sender, tls, .. } = &mut model {
        (*namespace, *sender) = (names.clone(), sender_plan);
        transport::check_endpoint(tls.as_deref(), fields, wrong);
    }
    let form = fields.value("encoding");
    let endpoints = endpoints(fields);
    unfit_datagrams(fields, endpoints, wrong);
    if form == Some(GraphiteEncoding::Pickle) {
        let message = "`max_line_bytes` has no effect: pickle frames contain no lines";
        fields.ignored("max_line_bytes", message, wrong);
    }
    let split = endpoints.len() > 1;
    let each = endpoints.iter().map(|(to, place)| {
        let kind = match to {
            Destination::Udp(to) => {
                let syslog = form == Some(GraphiteEncoding::Syslog);
                let namespace = names.clone();
                OutputKind::GraphiteDatagrams { to: to.clone(), syslog, namespace, sender: sender_plan }
            }
            _ => model.with_destination(to),
        };
        asked.output(if split { endpoint_name(name, to) } else { name.to_owned() }, kind, *place)
    });
    (each.collect(), None)
}

/// Outputs to OpenTSDB, one for each endpoint.
fn opentsdb_outputs(asked: &Asked<'_>, mut model: OutputKind, wrong: &mut Vec<Diagnostic>) -> Outputs {
    let Asked { name, fields, .. } = *asked;
    fields.fill(&mut model, &PUT);
    if let OutputKind::OpenTsdb { namespace, default_tag, sender, .. } = &mut model {
        (*namespace, *sender) = (self::namespace(fields, wrong), self::sender(fields, wrong));
        let is_safe = |part: &str| !part.is_empty() && part.bytes().all(wire::opentsdb::is_safe);
        if !default_tag.split_once('=').is_some_and(|(name, value)| is_safe(name) && is_safe(value)) {
            let label = "`name=value` of letters, digits, `-`, `_`, `.` and `/`";
            fields.wrong("default_tag", Code::BadValue, "`default_tag` is no tag", label, wrong);
        }
    }
    let endpoints = endpoints(fields);
    let each = endpoints.iter().map(|(to, place)| {
        let name = if endpoints.len() > 1 { endpoint_name(name, to) } else { name.to_owned() };
        asked.output(name, model.with_destination(to), *place)
    });
    (each.collect(), None)
}

fn packet_outputs(asked: &Asked<'_>, _empty: OutputKind, wrong: &mut Vec<Diagnostic>) -> Outputs {
    let Asked { name, fields, from } = *asked;
    let endpoints = endpoints(fields);
    let Some((first, _)) = endpoints.first() else { return (Vec::new(), None) };
    let mut model = PacketsPlan::new(first.clone());
    fields.fill(&mut model, &PACKET);
    if fields.section != Section::OutputUdp {
        model.sender = sender(fields, wrong);
    }
    if model.framing == Framing::Frames && endpoints.iter().all(|(to, _)| to.is_datagram()) {
        fields.ignored("framing", "`framing` has no effect: the endpoints take datagrams", wrong);
    }
    let in_cluster = clusters::is_wanted(fields);
    let takes_aggregates = from.iter().any(|feed| matches!(feed, Feed::Transform(_)));
    model.lines = packets::lines(fields, first, packets::Around { in_cluster, takes_aggregates }, wrong);
    let model = OutputKind::Packets(model);
    let destinations: Vec<Destination> = endpoints.iter().map(|(to, _)| to.clone()).collect();
    let cluster = clusters::draft(fields, &destinations, wrong);
    let checks = checks::of_endpoints(fields, endpoints, wrong);
    let mut built = Vec::with_capacity(endpoints.len());
    for (at, (to, place)) in endpoints.iter().enumerate() {
        let split = endpoints.len() > 1 || in_cluster;
        let name = if split { endpoint_name(name, to) } else { name.to_owned() };
        let mut output = asked.output(name, model.with_destination(to), *place);
        output.plan.check = checks.get(at).cloned();
        built.push(output);
    }
    (built, cluster)
}

/// Reports options for streams in a section with datagram endpoints.
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

/// Options that only the modern namespace uses.
const MODERN_ONLY: [&str; 5] =
    ["global_prefix", "counter_prefix", "timer_prefix", "gauge_prefix", "set_prefix"];

pub(super) fn namespace(fields: &Fields, wrong: &mut Vec<Diagnostic>) -> Namespace {
    let namespace: Namespace = fields.read();
    for key in MODERN_ONLY.into_iter().filter(|_| namespace.legacy) {
        if let Some(place) = fields.place_of(key) {
            let message = format!("`{key}` has no effect in the namespace `legacy`");
            let hint = "write namespace = \"modern\" to use it; names of series then change";
            wrong.push(Diagnostic::warning(Code::NoEffect, message).at(place).label("ignored").hint(hint));
        }
    }
    namespace
}

#[test]
fn each_type_of_output_is_read() {
    for (word, section) in crate::options::Family::Outputs.types() {
        assert_eq!(TYPES.iter().filter(|one| one.section == section).count(), 1, "{word}");
        assert_eq!(default_kind(section, Path::new("data"), "o").facts().section, section, "{word}");
    }
}
