//! A plan as the native TOML that reads back to it. Defaults are left out. Rows of the options table print themselves
//! ([`Out::options`]); here is the order of the groups, and each option whose row has no field: it is read by code in
//! `sources`, `transforms` or `outputs`, and written here. A test prints the example of each row, and reads it back.
//!
//! What cannot be said in a file is not in a checked plan, with two exceptions: `built_in` is about the absence of
//! a file, and a path that is not UTF-8 is written with replacement characters.

mod packets;
mod relay;
mod transport;

use std::fmt::{Display, Write};
use std::path::Path;

use deliver::plan::{QueueKind, QueueLimits, SenderPlan};
use process::aggregate::{AggregatePlan, ExpiryPlan, HistogramPlan, SeriesExpiry};
use process::glob::Glob;
use wire::graphite::Namespace;
use wire::graphite::input::Compatibility;
use wire::statsd::{Dialect, Options};

use self::packets::{print_check, print_packets};
use self::relay::print_relay;
use super::{default_http, default_management, empty_plan, outputs, sources, transforms};
use crate::address::{destination_name, listen_text};
use crate::options::Section::{
    Expiry, Histogram, Http, KeyFlush, Management, OutputConsole, OutputEventFile, OutputGraphite,
    OutputGraphiteFile, OutputPerlFile, OutputTcp, OutputUdp, OutputUnix, Queue, SourceGraphite, SourceSelf,
    SourceStatsd, Top, TransformAggregate,
};
use crate::options::field::{Checked, Group};
use crate::options::table::daemon::{HTTP, HTTP_CLIENTS, MANAGEMENT, TOP};
use crate::options::table::endpoints::{CONNECTIONS, SENDER};
use crate::options::table::outputs::{FILE_FORMS, FILES, GRAPHITE, NAMESPACE};
use crate::options::table::queue::QUEUE;
use crate::options::table::sources::{LISTENER, OWN, POINT, READING};
use crate::options::table::transforms::{AGGREGATION, BOUNDS, EXPIRY, HISTOGRAM, KEY_FLUSH, SURROUNDINGS};
use crate::options::table::transport::OUTPUT_TRANSPORT;
use crate::options::{self, Type};
use crate::plan::{
    AggregateTransform, ClusterPlan, Destination, Feed, GraphiteSource, HttpPlan, ManagementPlan,
    ManagementReplies, OutputKind, OutputPlan, OwnPlan, Plan, RelayOwnPlan, SourceKind, SourcePlan,
    TransformKind, TransformPlan, default_checkpoint_ms,
};
use crate::text::{duration, size};

/// The plan as a native TOML file: `check(print(plan))` gives the plan again.
pub fn print(plan: &Plan) -> String {
    let mut out = Out {
        text: String::from(
            "# `staunch check FILE` checks this file; options left out have their defaults.\n",
        ),
    };
    out.options(Top, &TOP, plan, &empty_plan());
    for source in &plan.sources {
        print_source(&mut out, source);
    }
    let sections = sections(plan);
    for transform in &plan.transforms {
        match &transform.kind {
            TransformKind::Aggregate(aggregate) => {
                print_aggregate(&mut out, plan, transform, aggregate);
            }
            TransformKind::Relay(relay) => print_relay(&mut out, plan, &sections, transform, relay),
        }
    }
    for section in &sections {
        print_output(&mut out, plan, &section.outputs[0], section);
    }
    print_http(&mut out, plan);
    for management in &plan.management {
        print_management(&mut out, plan, management);
    }
    out.text
}

fn print_http(out: &mut Out, plan: &Plan) {
    let (server, default) = (&plan.http_server, HttpPlan::default());
    if plan.http == Some(default_http()) && *server == default {
        return;
    }
    out.heading("http");
    match plan.http {
        None => out.key("enabled", "false".into()),
        Some(address) => {
            out.key_unless("listen", text(&address.to_string()), text(&default_http().to_string()));
        }
    }
    out.options(Http, &HTTP, server, &default);
    transport::print_listening(out, server.tls.as_deref());
    let of_peer = server.connections_max / 2;
    out.options(Http, &HTTP_CLIENTS, server, &HttpPlan { peer_connections_max: of_peer, ..default });
}

struct Out {
    text: String,
}

impl Out {
    fn heading(&mut self, heading: &str) {
        self.line(&format!("\n[{heading}]"));
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn key(&mut self, key: &str, value: String) {
        writeln!(self.text, "{key} = {value}").expect("a String takes all that is written");
    }

    fn key_unless(&mut self, key: &str, value: String, default: String) {
        if value != default {
            self.key(key, value);
        }
    }

    /// The options of a group that are not the default. `table` is the section that they stand in.
    fn options<T>(&mut self, table: options::Section, group: &Group<T>, plan: &T, default: &T) {
        for (key, value) in given(table, group, plan, default) {
            self.key(key, value);
        }
    }

    fn flag_unless(&mut self, key: &str, value: bool, default: bool) {
        self.key_unless(key, value.to_string(), default.to_string());
    }
}

/// What [`Out::options`] writes.
fn given<T>(table: options::Section, group: &Group<T>, plan: &T, default: &T) -> Vec<(&'static str, String)> {
    let options = group.fields.iter().filter(|option| option.sections.contains(&table));
    let differs = options.filter(|option| option.required || (option.get)(plan) != (option.get)(default));
    differs.filter_map(|option| Some((option.key, written((option.get)(plan)?, option.value)))).collect()
}

/// A value of a row of the type `of`.
fn written(value: Checked, of: Type) -> String {
    let pattern = |glob: &Glob| String::from_utf8_lossy(glob.pattern()).into_owned();
    match (value, of) {
        (Checked::Text(value), _) => text(&value),
        (Checked::Path(value), _) => path(&value),
        (Checked::Word(word), _) => text(word),
        (Checked::Flag(flag), _) => flag.to_string(),
        (Checked::Number(number), _) => number.to_string(),
        (Checked::Whole(0), Type::DurationOrOff { .. } | Type::SizeOrOff { .. }) => text("off"),
        (Checked::Whole(ms), Type::Duration { .. } | Type::DurationOrOff { .. }) => time(ms),
        (Checked::Whole(size), Type::Size { .. } | Type::SizeOrOff { .. }) => bytes(size),
        (Checked::Whole(number), _) => number.to_string(),
        (Checked::Address(address), _) => text(&address.to_string()),
        (Checked::Listen(listen), _) => list(listen.iter().map(|(listen, _)| text(&listen_text(listen)))),
        (Checked::Endpoints(to), _) => list(to.iter().map(|(to, _)| text(&to.to_string()))),
        (Checked::Texts(values), _) => texts(values.iter().map(|(value, _)| &**value)),
        (Checked::Limits(limits), _) => list(limits.iter().map(|(value, written)| limit(*value, written))),
        (Checked::Expiry(expiry), _) => expiry_text(expiry),
        (Checked::Globs(globs), _) => list(globs.iter().map(|glob| text(&pattern(glob)))),
        (Checked::Shares(shares), _) => {
            table(shares.iter().map(|(glob, share)| (pattern(glob), share.to_string())))
        }
        (Checked::Map(pairs), _) => table(pairs.iter().map(|(key, value)| (key.clone(), text(value)))),
        (Checked::Computes(pairs), _) => {
            table(pairs.iter().map(|((compute, _), name)| (compute.clone(), text(name))))
        }
    }
}

/// A TOML basic string.
fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                write!(out, "\\u{:04X}", u32::from(c)).expect("a String takes all that is written")
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn bare_or_quoted(key: &str) -> String {
    let bare = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    if bare { key.to_owned() } else { text(key) }
}

fn path(path: &Path) -> String {
    text(&path.to_string_lossy())
}

fn time(ms: u64) -> String {
    text(&duration(ms))
}

fn bytes(bytes: u64) -> String {
    text(&size(bytes))
}

fn texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    list(texts.into_iter().map(text))
}

fn list(values: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", values.into_iter().collect::<Vec<_>>().join(", "))
}

/// An inline table with keys of the user's.
fn table(pairs: impl Iterator<Item = (String, String)>) -> String {
    inline(pairs.map(|(key, value)| (bare_or_quoted(&key), value)))
}

/// An inline table.
fn inline<K: Display>(pairs: impl IntoIterator<Item = (K, String)>) -> String {
    let pairs: Vec<String> = pairs.into_iter().map(|(key, value)| format!("{key} = {value}")).collect();
    if pairs.is_empty() { "{}".into() } else { format!("{{ {} }}", pairs.join(", ")) }
}

/// A number where it says the same as its text, the text otherwise.
fn limit(value: f64, written: &str) -> String {
    // TOML's -0 is 0.
    let same = value.is_finite() && value.to_string() == written && written != "-0";
    if same { written.to_owned() } else { text(written) }
}

fn print_management(out: &mut Out, plan: &Plan, management: &ManagementPlan) {
    out.heading(if plan.management.len() > 1 { "[management]" } else { "management" });
    let default = default_management();
    out.key_unless("listen", text(&management.listen.to_string()), text(&default.listen.to_string()));
    match management.replies {
        ManagementReplies::Node => {}
        ManagementReplies::Perl => out.key("replies", text("perl")),
        ManagementReplies::Proxy { cluster } => {
            out.key("replies", text("proxy"));
            out.key("cluster", text(plan.clusters.get(cluster).map_or("", |cluster| &*cluster.name)));
        }
    }
    out.options(Management, &MANAGEMENT, management, &default);
    if !management.config.is_empty() {
        out.heading("management.config");
        for (key, value) in &management.config {
            out.key(&bare_or_quoted(key), text(value));
        }
    }
}

fn print_source(out: &mut Out, source: &SourcePlan) {
    let default = match &source.kind {
        SourceKind::Graphite(_) => sources::graphite_plan(&source.name, Compatibility::Strict),
        SourceKind::Statsd(_) | SourceKind::Own(_) | SourceKind::RelayOwn(_) => {
            sources::default_plan(&source.name)
        }
    };
    out.heading(&format!("sources.{}", bare_or_quoted(&source.name)));
    let word = match &source.kind {
        SourceKind::Statsd(_) => "statsd",
        SourceKind::Graphite(_) => "graphite",
        SourceKind::Own(OwnPlan { every_ms, prefix }) => {
            let own = RelayOwnPlan { every_ms: *every_ms, prefix: prefix.clone(), ..sources::relay_own() };
            out.key("type", text("self"));
            return out.options(SourceSelf, &OWN, &own, &sources::relay_own());
        }
        SourceKind::RelayOwn(own) => {
            out.key("type", text("self"));
            out.key("encoding", text("carbon-c-relay"));
            return out.options(SourceSelf, &OWN, own, &sources::relay_own());
        }
    };
    out.key("type", text(word));
    let listen = source.listen.iter().map(listen_text);
    out.key("listen", list(listen.map(|listen| text(&listen))));
    let table = if source.kind.is_graphite() { SourceGraphite } else { SourceStatsd };
    out.options(table, &LISTENER, source, &default);
    transport::print_source(out, source);
    match &source.kind {
        SourceKind::Statsd(options) => {
            let default = Options { dialect: Dialect::Union, ..Options::of(options.dialect) };
            out.options(SourceStatsd, &READING, options, &default);
        }
        SourceKind::Graphite(points) => {
            out.options(SourceGraphite, &POINT, points, &GraphiteSource::of(Compatibility::Strict));
        }
        SourceKind::Own(_) | SourceKind::RelayOwn(_) => {}
    }
}

fn print_aggregate(
    out: &mut Out,
    plan: &Plan,
    TransformPlan { name, from, .. }: &TransformPlan,
    transform: &AggregateTransform,
) {
    let name = bare_or_quoted(name);
    let default = transforms::default_plan();
    out.heading(&format!("transforms.{name}"));
    out.key("type", text("aggregate"));
    out.key("from", texts(from.iter().filter_map(|feed| name_of(plan, feed))));
    let sources = from.iter().filter_map(|feed| match feed {
        Feed::Source(id) => plan.sources.get(id.index()),
        Feed::Transform(_) => None,
    });
    let by_dialect = sources.map(|source| default_checkpoint_ms(source.kind.reading().dialect));
    let checkpoint_ms = by_dialect.min().unwrap_or(default.checkpoint_ms);
    let default = AggregateTransform { checkpoint_ms, ..default };
    out.options(TransformAggregate, &SURROUNDINGS, transform, &default);
    out.options(TransformAggregate, &NAMESPACE, &transform.namespace, &default.namespace);
    let (plan, default) = (&transform.plan, &default.plan);
    // `window` is written even when it is the default: whoever reads the file looks for it.
    let without_window = AggregatePlan { window_ms: 0, ..default.clone() };
    out.options(TransformAggregate, &AGGREGATION, plan, &without_window);
    print_expiry(out, &plan.idle, &default.idle);
    out.options(TransformAggregate, &BOUNDS, plan, default);
    if let Some(key_flush) = &plan.key_flush {
        let log = transform.key_flush_log.as_deref().map(|log| ("log", path(log)));
        let given = given(KeyFlush, &KEY_FLUSH, key_flush, &transforms::KEY_FLUSH_DEFAULT);
        out.key("key_flush", inline(given.into_iter().chain(log)));
    }
    for histogram in &plan.histograms {
        out.heading(&format!("[transforms.{name}.histograms]"));
        out.options(
            Histogram,
            &HISTOGRAM,
            histogram,
            &HistogramPlan { name_contains: String::new(), bins: Vec::new() },
        );
    }
}

fn print_expiry(out: &mut Out, expiry: &ExpiryPlan, default: &ExpiryPlan) {
    let all_one = [expiry.gauges, expiry.timers, expiry.sets].iter().all(|other| *other == expiry.counters);
    let by_windows = matches!(expiry.gauges, SeriesExpiry::Delete { ttl_windows } if ttl_windows != 1);
    if all_one && !by_windows {
        out.key_unless("expiry", expiry_text(expiry.counters), expiry_text(default.counters));
    } else {
        out.key("expiry", inline(given(Expiry, &EXPIRY, expiry, default)));
    }
}

fn expiry_text(expiry: SeriesExpiry) -> String {
    match expiry {
        SeriesExpiry::Keep => text("keep"),
        SeriesExpiry::Delete { ttl_windows: 1 } => text("delete"),
        SeriesExpiry::Delete { ttl_windows } => text(&format!("{ttl_windows} windows")),
        SeriesExpiry::After { seconds } => time(seconds.saturating_mul(1000)),
    }
}

/// Outputs that one section of the file makes; at least one.
struct Section<'a> {
    name: &'a str,
    /// Place of the first of them in the plan.
    first: usize,
    endpoints: Vec<Destination>,
    outputs: &'a [OutputPlan],
    cluster: Option<&'a ClusterPlan>,
}

/// The sections that make the plan's outputs, in their order.
fn sections(plan: &Plan) -> Vec<Section<'_>> {
    let mut sections: Vec<Section> = Vec::new();
    let mut rest = &plan.outputs[..];
    while !rest.is_empty() {
        let first = plan.outputs.len() - rest.len();
        let begins = |cluster: &&ClusterPlan| cluster.members.first().is_some_and(|id| id.index() == first);
        let section = match plan.clusters.iter().find(begins) {
            Some(cluster) => {
                let outputs = &rest[..cluster.members.len().min(rest.len())];
                let endpoints = destinations(outputs);
                Section { name: &cluster.name, first, endpoints, outputs, cluster: Some(cluster) }
            }
            None => {
                let (mut name, mut endpoints) = group(rest, |id| in_cluster(plan, first + id));
                if sections.iter().any(|section| section.name == name) {
                    // Others of this name stand elsewhere in the plan, so that each says its own.
                    name = &rest[0].name;
                    endpoints.truncate(1);
                }
                let outputs = &rest[..endpoints.len().max(1)];
                Section { name, first, endpoints, outputs, cluster: None }
            }
        };
        rest = &rest[section.outputs.len()..];
        sections.push(section);
    }
    sections
}

fn destinations(outputs: &[OutputPlan]) -> Vec<Destination> {
    outputs.iter().filter_map(|output| destination(&output.kind)).collect()
}

fn in_cluster(plan: &Plan, at: usize) -> bool {
    plan.clusters.iter().any(|cluster| cluster.members.iter().any(|id| id.index() == at))
}

/// How an output is called in the file, and the endpoints that one section can say at once: those that differ in
/// the endpoint only and are called after it.
fn group(outputs: &[OutputPlan], in_cluster: impl Fn(usize) -> bool) -> (&str, Vec<Destination>) {
    let first = &outputs[0];
    let Some(to) = destination(&first.kind) else { return (&first.name, Vec::new()) };
    let Some(base) = base_name(first, &to) else { return (&first.name, vec![to]) };
    let mut endpoints = vec![to];
    for (at, other) in outputs.iter().enumerate().skip(1) {
        let Some(to) = destination(&other.kind) else { break };
        let alike = !in_cluster(at)
            && outputs::with_destination(&first.kind, &to) == other.kind
            && (&first.from, first.queue, first.queue_kind, first.required)
                == (&other.from, other.queue, other.queue_kind, other.required)
            && packets::checked_alike(first.check.as_ref(), other.check.as_ref())
            && base_name(other, &to) == Some(base)
            && packets_table(&to) == packets_table(&endpoints[0]);
        if !alike || endpoints.contains(&to) {
            break;
        }
        endpoints.push(to);
    }
    if endpoints.len() == 1 { (&first.name, endpoints) } else { (base, endpoints) }
}

/// `carbon` of `carbon/10.0.0.5:2003`, when that is its endpoint.
fn base_name<'a>(output: &'a OutputPlan, to: &Destination) -> Option<&'a str> {
    output.name.strip_suffix(&*destination_name(to))?.strip_suffix('/')
}

fn destination(kind: &OutputKind) -> Option<Destination> {
    match kind {
        OutputKind::Graphite { to, .. } => Some(Destination::Tcp(to.clone())),
        OutputKind::GraphiteDatagrams { to, .. } => Some(Destination::Udp(to.clone())),
        OutputKind::Packets(packets) => Some(packets.to.clone()),
        _ => None,
    }
}

/// The section that makes an output.
fn table_of(kind: &OutputKind) -> options::Section {
    match kind {
        OutputKind::Graphite { .. } | OutputKind::GraphiteDatagrams { .. } => OutputGraphite,
        OutputKind::GraphiteFile { .. } => OutputGraphiteFile,
        OutputKind::Console { .. } => OutputConsole,
        OutputKind::PerlFile { .. } => OutputPerlFile,
        OutputKind::EventFile { .. } => OutputEventFile,
        OutputKind::Packets(packets) => packets_table(&packets.to),
    }
}

fn packets_table(to: &Destination) -> options::Section {
    match to {
        Destination::Udp(_) => OutputUdp,
        Destination::Tcp(_) => OutputTcp,
        Destination::UnixDatagram(_) | Destination::UnixStream(_) => OutputUnix,
    }
}

fn print_output(out: &mut Out, plan: &Plan, output: &OutputPlan, section: &Section<'_>) {
    let kind = &output.kind;
    let of = table_of(kind);
    out.heading(&format!("outputs.{}", bare_or_quoted(section.name)));
    out.key("type", text(options::type_word(of).unwrap_or_default()));
    out.key("from", texts(output.from.iter().filter_map(|feed| name_of(plan, feed))));
    if !section.endpoints.is_empty() {
        out.key("to", list(section.endpoints.iter().map(|to| text(&to.to_string()))));
    }
    let default = outputs::default_kind(of, &plan.data_dir, &output.name);
    match kind {
        OutputKind::Graphite { namespace, sender, tls, .. } => {
            out.options(of, &GRAPHITE, kind, &default);
            out.options(of, &NAMESPACE, namespace, &Namespace::default());
            out.options(of, &CONNECTIONS, kind, &default);
            out.options(of, &SENDER, sender, &SenderPlan::default());
            out.options(of, &OUTPUT_TRANSPORT, kind, &default);
            transport::print_output(out, tls.as_deref());
        }
        OutputKind::GraphiteDatagrams { sender, syslog, .. } => {
            if *syslog {
                out.key("encoding", text("syslog"));
            }
            out.options(of, &SENDER, sender, &SenderPlan::default());
        }
        OutputKind::Packets(packets) => {
            print_packets(out, section, packets);
            out.options(of, &SENDER, &packets.sender, &SenderPlan::default());
        }
        OutputKind::GraphiteFile { .. }
        | OutputKind::Console { .. }
        | OutputKind::PerlFile { .. }
        | OutputKind::EventFile { .. } => {
            out.options(of, &FILES, kind, &default);
            print_rotation(out, kind, &default);
            out.options(of, &FILE_FORMS, kind, &default);
            if let OutputKind::GraphiteFile { namespace, .. } = kind {
                out.options(of, &NAMESPACE, namespace, &Namespace::default());
            }
        }
    }
    print_common(out, output, section);
}

/// The options that every type of output has.
fn print_common(out: &mut Out, output: &OutputPlan, section: &Section<'_>) {
    out.flag_unless("required", output.required, false);
    print_check(out, section.outputs);
    print_queue(out, &output.queue, output.queue_kind);
}

fn name_of<'a>(plan: &'a Plan, feed: &Feed) -> Option<&'a str> {
    match feed {
        Feed::Source(id) => plan.sources.get(id.index()).map(|source| &*source.name),
        Feed::Transform(id) => plan.transforms.get(id.index()).map(|transform| &*transform.name),
    }
}

/// `max_file_bytes` and `max_files`, with what they come to.
fn print_rotation(out: &mut Out, kind: &OutputKind, default: &OutputKind) {
    let of = |kind: &OutputKind| match kind {
        OutputKind::GraphiteFile { file_bytes_max, files_max, .. }
        | OutputKind::EventFile { file_bytes_max, files_max, .. } => Some((*file_bytes_max, *files_max)),
        _ => None,
    };
    let (Some((file_bytes, files)), Some((usual_bytes, usual_files))) = (of(kind), of(default)) else {
        return;
    };
    if file_bytes == 0 {
        return out.key("max_file_bytes", text("off"));
    }
    let most = file_bytes.saturating_mul(u64::from(files) + 1);
    out.line(&format!("# At most {} on disk: the file and {files} rotated ones.", size(most)));
    out.key_unless("max_file_bytes", bytes(file_bytes), bytes(usual_bytes));
    out.key_unless("max_files", files.to_string(), usual_files.to_string());
}

fn print_queue(out: &mut Out, queue: &QueueLimits, kind: QueueKind) {
    let (word, sync_window_ms) = match kind {
        QueueKind::Memory => (None, outputs::SYNC_WINDOW_MS),
        QueueKind::Disk { sync_window_ms } => (Some(("kind", text("disk"))), sync_window_ms),
    };
    let sync_window =
        (sync_window_ms != outputs::SYNC_WINDOW_MS).then(|| ("sync_window", time(sync_window_ms)));
    let limits = given(Queue, &QUEUE, queue, &QueueLimits::default_of(kind));
    let all: Vec<_> = word.into_iter().chain(limits).chain(sync_window).collect();
    if !all.is_empty() {
        out.key("queue", inline(all));
    }
}
