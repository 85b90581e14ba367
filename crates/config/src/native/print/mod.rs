//! A plan as the native TOML that reads back to it. Defaults are left out. Rows of the options table say themselves what is
//! written ([`Fields::give`]); here is the order of the groups, and each option whose row has no field: it is read by code in
//! `sources`, `transforms` or `outputs`, and written here. A test prints the example of each row, and reads it back.
//!
//! What cannot be said in a file is not in a checked plan, with two exceptions: `built_in` is about the absence of
//! a file, and a path that is not UTF-8 is written with replacement characters.

mod packets;
mod relay;

use std::fmt::{Display, Write};

use deliver::plan::SenderPlan;
use foldhash::HashSet;
use process::aggregate::{AggregatePlan, SeriesExpiry};
use process::glob::Glob;
use wire::graphite::Namespace;
use wire::graphite::input::Compatibility;
use wire::statsd::{Dialect, Options};

use self::packets::give_packets;
use super::fields::Fields;
use super::{checks, default_http, default_management, empty_plan, outputs, sources, transforms};
use crate::address::{destination_name, listen_text};
use crate::diagnostic::Place;
use crate::options::field::Checked;
use crate::options::table::daemon::{HTTP, HTTP_CLIENTS, MANAGEMENT, TOP};
use crate::options::table::endpoints::{CONNECTIONS, ENDPOINT, SENDER};
use crate::options::table::outputs::{FILE_FORMS, FILES, GRAPHITE, NAMESPACE, ROTATION};
use crate::options::table::queue::OF_OUTPUTS;
use crate::options::table::sources::{LISTENER, OWN, POINT, READING};
use crate::options::table::transforms::{AGGREGATION, BOUNDS, REPORT, SURROUNDINGS};
use crate::options::table::transport::{OUTPUT_TRANSPORT, SOURCE_TRANSPORT};
use crate::options::{Section, Type};
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
    let mut top = Fields::empty(Section::Top);
    top.give(&TOP, plan, &empty_plan());
    out.options("", &top);
    for source in &plan.sources {
        out.section(&format!("sources.{}", bare_or_quoted(&source.name)), &source_fields(source));
    }
    let outputs = groups(plan);
    for transform in &plan.transforms {
        let fields = match &transform.kind {
            TransformKind::Aggregate(aggregate) => aggregate_fields(plan, transform, aggregate),
            TransformKind::Relay(relay) => relay::fields(plan, &outputs, transform, relay),
        };
        out.section(&format!("transforms.{}", bare_or_quoted(&transform.name)), &fields);
    }
    for group in &outputs {
        print_output(&mut out, plan, group);
    }
    let http = http_fields(plan);
    if http.given().next().is_some() {
        out.section("http", &http);
    }
    for management in &plan.management {
        let heading = if plan.management.len() > 1 { "[management]" } else { "management" };
        out.section(heading, &management_fields(plan, management));
    }
    out.text
}

struct Out {
    text: String,
}

impl Out {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn section(&mut self, heading: &str, fields: &Fields) {
        self.line(&format!("\n[{heading}]"));
        self.options(heading, fields);
    }

    /// The options of a section; those that are tables with headings of their own come last.
    fn options(&mut self, heading: &str, fields: &Fields) {
        let mut tables: Vec<(&str, &Checked)> = Vec::new();
        for (row, value) in fields.given() {
            match value {
                Checked::Tables(_) | Checked::NamedTables(_) => tables.push((row.key, value)),
                Checked::Map(_) if fields.section == Section::Management => tables.push((row.key, value)),
                _ => self.option(row.key, value, row.value),
            }
        }
        let heading = heading.trim_matches(['[', ']']);
        for (key, value) in tables {
            match value {
                Checked::Tables(tables) => {
                    tables.iter().for_each(|table| self.section(&format!("[{heading}.{key}]"), table));
                }
                Checked::NamedTables(tables) => {
                    for (name, table) in tables {
                        self.section(&format!("{heading}.{key}.{}", bare_or_quoted(name)), table);
                    }
                }
                Checked::Map(pairs) => {
                    self.line(&format!("\n[{heading}.{key}]"));
                    pairs.iter().for_each(|(key, value)| self.key(&bare_or_quoted(key), &text(value)));
                }
                _ => {}
            }
        }
    }

    /// One option; a long list has a line for each entry.
    fn option(&mut self, key: &str, value: &Checked, of: Type) {
        const LINE_CHARS_MAX: usize = 100;
        let line = written(value, of);
        match entries(value) {
            Some(entries) if line.chars().count() + key.len() > LINE_CHARS_MAX => {
                self.line(&format!("{key} = ["));
                entries.iter().for_each(|entry| self.line(&format!("    {entry},")));
                self.line("]");
            }
            _ => self.key(key, &line),
        }
    }

    fn key(&mut self, key: &str, value: &str) {
        self.line(&format!("{key} = {value}"));
    }
}

/// A value of a row of the type `of`.
fn written(value: &Checked, of: Type) -> String {
    let pattern = |glob: &Glob| String::from_utf8_lossy(glob.pattern()).into_owned();
    match (value, of) {
        (Checked::Text(value), _) => text(value),
        (Checked::Path(value), _) => text(&value.to_string_lossy()),
        (Checked::Word(word), _) => text(word),
        (Checked::Flag(flag), _) => flag.to_string(),
        (Checked::Number(number), _) => number.to_string(),
        (Checked::Whole(0), Type::Quantity { or_off: true, .. }) => text("off"),
        (Checked::Whole(value), Type::Quantity { of, .. }) => text(&of.text(*value)),
        (Checked::Whole(number), _) => number.to_string(),
        (Checked::Address(address), _) => text(&address.to_string()),
        (Checked::Listen(listen), _) => list(listen.iter().map(|(listen, _)| text(&listen_text(listen)))),
        (Checked::Endpoints(to), _) => list(to.iter().map(|(to, _)| text(&to.to_string()))),
        (Checked::Limits(limits), _) => list(limits.iter().map(|(value, written)| limit(*value, written))),
        (Checked::Expiry(expiry), _) => expiry_text(*expiry),
        (Checked::Globs(globs), _) => list(globs.iter().map(|glob| text(&pattern(glob)))),
        (Checked::Shares(shares), _) => {
            inline(shares.iter().map(|(glob, share)| (bare_or_quoted(&pattern(glob)), share.to_string())))
        }
        (Checked::Map(pairs), _) => {
            inline(pairs.iter().map(|(key, value)| (bare_or_quoted(key), text(value))))
        }
        (Checked::Texts(_), _) => list(entries(value).into_iter().flatten()),
        (Checked::Computes(pairs), _) => match entries(value) {
            Some(entries) => list(entries),
            None => inline(pairs.iter().map(|((compute, _), name)| (compute, text(name)))),
        },
        (Checked::Table(table), _) => {
            inline(table.given().map(|(row, value)| (row.key, written(value, row.value))))
        }
        (Checked::Tables(tables), _) => {
            let inline = |table: &Fields| written(&Checked::Table(table.clone()), of);
            list(tables.iter().map(inline))
        }
        (Checked::NamedTables(tables), _) => {
            let pair = |(name, table): &(String, Fields)| {
                (bare_or_quoted(name), written(&Checked::Table(table.clone()), of))
            };
            inline(tables.iter().map(pair))
        }
    }
}

/// The entries of a list that may be long. What is computed is a list when one computation has several names.
fn entries(value: &Checked) -> Option<Vec<String>> {
    match value {
        Checked::Texts(texts) => Some(texts.iter().map(|(value, _)| text(value)).collect()),
        Checked::Computes(pairs) => {
            let mut seen = HashSet::default();
            let distinct = pairs.iter().all(|((compute, _), _)| seen.insert(compute));
            let each = |((compute, _), name): &((String, Place), String)| inline([(compute, text(name))]);
            (!distinct).then(|| pairs.iter().map(each).collect())
        }
        _ => None,
    }
}

/// A TOML string: within `'…'`, where no `\` is doubled, if it can stand there.
fn text(text: &str) -> String {
    if text.contains(['\\', '"']) && !text.contains(|c: char| c == '\'' || c.is_control()) {
        return format!("'{text}'");
    }
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

fn list(values: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", values.into_iter().collect::<Vec<_>>().join(", "))
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

/// A section with its `type`.
fn typed(section: Section) -> Fields {
    let mut fields = Fields::empty(section);
    fields.give_value("type", Checked::Text(section.word().unwrap_or_default().to_owned()));
    fields
}

/// The same with its `from`.
fn fed(section: Section, plan: &Plan, from: &[Feed]) -> Fields {
    let mut fields = typed(section);
    fields.give_value("from", Checked::texts(from.iter().map(|feed| plan.name_of(*feed))));
    fields
}

fn http_fields(plan: &Plan) -> Fields {
    let (server, default) = (&plan.http_server, HttpPlan::default());
    let mut fields = Fields::empty(Section::Http);
    match plan.http {
        None => fields.give_value("enabled", Checked::Flag(false)),
        Some(address) if address == default_http() => {}
        Some(address) => fields.give_value("listen", Checked::Address(address)),
    }
    fields.give(&HTTP, server, &default);
    let of_peer = server.connections_max / 2;
    fields.give(&HTTP_CLIENTS, server, &HttpPlan { peer_connections_max: of_peer, ..default });
    fields
}

fn management_fields(plan: &Plan, management: &ManagementPlan) -> Fields {
    let default = default_management();
    let mut fields = Fields::empty(Section::Management);
    if management.listen != default.listen {
        fields.give_value("listen", Checked::Address(management.listen));
    }
    match management.replies {
        ManagementReplies::Node => {}
        ManagementReplies::Perl => fields.give_value("replies", Checked::Word("perl")),
        ManagementReplies::Proxy { cluster } => {
            fields.give_value("replies", Checked::Word("proxy"));
            let name = plan.clusters.get(cluster).map(|cluster| cluster.name.clone());
            fields.give_value("cluster", Checked::Text(name.unwrap_or_default()));
        }
    }
    fields.give(&MANAGEMENT, management, &default);
    fields
}

fn source_fields(source: &SourcePlan) -> Fields {
    let (section, default) = match &source.kind {
        SourceKind::Statsd(_) => (Section::SourceStatsd, sources::default_plan("")),
        SourceKind::Graphite(_) => {
            (Section::SourceGraphite, sources::graphite_plan("", Compatibility::Strict))
        }
        SourceKind::Own(_) | SourceKind::RelayOwn(_) => (Section::SourceSelf, sources::own_plan("")),
    };
    let mut fields = typed(section);
    if !source.kind.is_own() {
        let listen = source.listen.iter().map(|listen| (listen.clone(), Place::new(0, 0)));
        fields.give_value("listen", Checked::Listen(listen.collect()));
    }
    fields.give(&LISTENER, source, &default);
    fields.give(&SOURCE_TRANSPORT, source, &default);
    match &source.kind {
        SourceKind::Statsd(options) => {
            let default = Options { dialect: Dialect::Union, ..Options::of(options.dialect) };
            fields.give(&READING, options, &default);
        }
        SourceKind::Graphite(points) => {
            fields.give(&POINT, points, &GraphiteSource::of(Compatibility::Strict));
        }
        SourceKind::Own(OwnPlan { every_ms, prefix }) => {
            let own = RelayOwnPlan { every_ms: *every_ms, prefix: prefix.clone(), ..sources::relay_own() };
            fields.give(&OWN, &own, &sources::relay_own());
        }
        SourceKind::RelayOwn(own) => {
            fields.give_value("encoding", Checked::Word("carbon-c-relay"));
            fields.give(&OWN, own, &sources::relay_own());
        }
    }
    fields
}

fn aggregate_fields(
    plan: &Plan,
    TransformPlan { from, .. }: &TransformPlan,
    transform: &AggregateTransform,
) -> Fields {
    let mut default = transforms::default_plan();
    let sources = from.iter().filter_map(|feed| match feed {
        Feed::Source(id) => plan.sources.get(id.index()),
        Feed::Transform(_) => None,
    });
    let by_dialect = sources.map(|source| default_checkpoint_ms(source.kind.reading().dialect));
    default.checkpoint_ms = by_dialect.min().unwrap_or(default.checkpoint_ms);
    let mut fields = fed(Section::TransformAggregate, plan, from);
    fields.give(&SURROUNDINGS, transform, &default);
    fields.give(&NAMESPACE, &transform.namespace, &default.namespace);
    // `window` is written even when it is the default: whoever reads the file looks for it.
    let without_window = AggregatePlan { window_ms: 0, ..default.plan.clone() };
    fields.give(&AGGREGATION, &transform.plan, &without_window);
    fields.give(&BOUNDS, &transform.plan, &default.plan);
    fields.give(&REPORT, transform, &default);
    fields
}

fn expiry_text(expiry: SeriesExpiry) -> String {
    match expiry {
        SeriesExpiry::Keep => text("keep"),
        SeriesExpiry::Delete { ttl_windows: 1 } => text("delete"),
        SeriesExpiry::Delete { ttl_windows } => text(&format!("{ttl_windows} windows")),
        SeriesExpiry::After { seconds } => text(&duration(seconds.saturating_mul(1000))),
    }
}

/// Outputs that one section of the file makes; at least one.
struct OutputGroup<'a> {
    name: &'a str,
    /// Place of the first of them in the plan.
    first: usize,
    endpoints: Vec<Destination>,
    outputs: &'a [OutputPlan],
    cluster: Option<&'a ClusterPlan>,
}

/// The sections that make the plan's outputs, in their order.
fn groups(plan: &Plan) -> Vec<OutputGroup<'_>> {
    let mut groups: Vec<OutputGroup> = Vec::new();
    let mut rest = &plan.outputs[..];
    while !rest.is_empty() {
        let first = plan.outputs.len() - rest.len();
        let begins = |cluster: &&ClusterPlan| cluster.members.first().is_some_and(|id| id.index() == first);
        let cluster = plan.clusters.iter().find(begins);
        let (name, endpoints, number) = match cluster {
            Some(cluster) => {
                let number = cluster.members.len().min(rest.len());
                let endpoints = rest[..number].iter().filter_map(|output| output.kind.destination());
                (&*cluster.name, endpoints.collect(), number)
            }
            None => {
                let (mut name, mut endpoints) = group(rest, |id| in_cluster(plan, first + id));
                if groups.iter().any(|group| group.name == name) {
                    // Others of this name stand elsewhere in the plan, so that each says its own.
                    name = &rest[0].name;
                    endpoints.truncate(1);
                }
                let number = endpoints.len().max(1);
                (name, endpoints, number)
            }
        };
        let (outputs, after) = rest.split_at(number);
        groups.push(OutputGroup { name, first, endpoints, outputs, cluster });
        rest = after;
    }
    groups
}

fn in_cluster(plan: &Plan, at: usize) -> bool {
    plan.clusters.iter().any(|cluster| cluster.members.iter().any(|id| id.index() == at))
}

/// How an output is called in the file, and the endpoints that one section can say at once: those that differ in
/// the endpoint only and are called after it.
fn group(outputs: &[OutputPlan], in_cluster: impl Fn(usize) -> bool) -> (&str, Vec<Destination>) {
    let first = &outputs[0];
    let Some(to) = first.kind.destination() else { return (&first.name, Vec::new()) };
    let Some(base) = base_name(first, &to) else { return (&first.name, vec![to]) };
    let mut endpoints = vec![to];
    for (at, other) in outputs.iter().enumerate().skip(1) {
        let Some(to) = other.kind.destination() else { break };
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

/// The section that makes an output.
fn table_of(kind: &OutputKind) -> Section {
    match kind {
        OutputKind::Graphite { .. } | OutputKind::GraphiteDatagrams { .. } => Section::OutputGraphite,
        OutputKind::GraphiteFile { .. } => Section::OutputGraphiteFile,
        OutputKind::Console { .. } => Section::OutputConsole,
        OutputKind::PerlFile { .. } => Section::OutputPerlFile,
        OutputKind::EventFile { .. } => Section::OutputEventFile,
        OutputKind::Packets(packets) => packets_table(&packets.to),
    }
}

fn packets_table(to: &Destination) -> Section {
    match to {
        Destination::Udp(_) => Section::OutputUdp,
        Destination::Tcp(_) => Section::OutputTcp,
        Destination::UnixDatagram(_) | Destination::UnixStream(_) => Section::OutputUnix,
    }
}

fn print_output(out: &mut Out, plan: &Plan, group: &OutputGroup<'_>) {
    let output = &group.outputs[0];
    let kind = &output.kind;
    let section = table_of(kind);
    let heading = format!("outputs.{}", bare_or_quoted(group.name));
    let mut fields = fed(section, plan, &output.from);
    if !group.endpoints.is_empty() {
        let to = group.endpoints.iter().map(|to| (to.clone(), Place::new(0, 0)));
        fields.give_value("to", Checked::Endpoints(to.collect()));
    }
    let default = outputs::default_kind(section, &plan.data_dir, &output.name);
    fields.give(&FILES, kind, &default);
    if let OutputKind::GraphiteFile { file_bytes_max, files_max, .. }
    | OutputKind::EventFile { file_bytes_max, files_max, .. } = kind
        && *file_bytes_max > 0
    {
        out.section(&heading, &fields);
        let most = file_bytes_max.saturating_mul(u64::from(*files_max) + 1);
        out.line(&format!("# At most {} on disk: the file and {files_max} rotated ones.", size(most)));
        fields = Fields::empty(section);
    } else {
        out.line(&format!("\n[{heading}]"));
    }
    fields.give(&ROTATION, kind, &default);
    fields.give(&GRAPHITE, kind, &default);
    fields.give(&FILE_FORMS, kind, &default);
    match kind {
        OutputKind::Graphite { namespace, sender, .. } => {
            fields.give(&NAMESPACE, namespace, &Namespace::default());
            fields.give(&CONNECTIONS, kind, &default);
            fields.give(&SENDER, sender, &SenderPlan::default());
            fields.give(&OUTPUT_TRANSPORT, kind, &default);
        }
        OutputKind::GraphiteDatagrams { sender, syslog, .. } => {
            if *syslog {
                fields.give_value("encoding", Checked::Word("syslog"));
            }
            fields.give(&SENDER, sender, &SenderPlan::default());
        }
        OutputKind::Packets(packets) => {
            give_packets(&mut fields, group, packets);
            fields.give(&SENDER, &packets.sender, &SenderPlan::default());
        }
        OutputKind::GraphiteFile { namespace, .. } => {
            fields.give(&NAMESPACE, namespace, &Namespace::default());
        }
        OutputKind::Console { .. } | OutputKind::PerlFile { .. } | OutputKind::EventFile { .. } => {}
    }
    let default = OutputPlan::new("", default, Vec::new());
    fields.give(&ENDPOINT, output, &default);
    if let Some(check) = checks::options(group.outputs) {
        fields.give_value("check", Checked::Table(Fields::of(&check)));
    }
    fields.give(&OF_OUTPUTS, output, &default);
    out.options(&heading, &fields);
}
