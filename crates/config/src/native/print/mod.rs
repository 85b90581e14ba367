//! A plan as the native TOML that reads back to it. Defaults are left out. The mirror of `sources`, `transforms`
//! and `outputs`: an option that is read there is written here, or the property test fails.
//!
//! What cannot be said in a file is not in a checked plan, with two exceptions: `built_in` is about the absence of
//! a file, and a path that is not UTF-8 is written with replacement characters.

mod packets;
mod relay;
mod transport;

use std::fmt::Write;
use std::path::Path;

use deliver::plan::{QueueKind, QueueLimits, SenderPlan, WhenFull};
use process::aggregate::{AggregatePlan, FlushAlign, PercentLabel, SeriesExpiry};
use wire::graphite::input::{Compatibility, MessageEncoding};
use wire::graphite::{Namespace, Numbers};
use wire::statsd::{GaugeSign, Options};

use self::packets::{print_check, print_packets};
use self::relay::print_relay;
use super::{default_http, default_management, empty_plan, outputs, sources, transforms};
use crate::address::{destination_name, listen_text};
use crate::plan::{
    AggregateTransform, ClusterPlan, ConsoleEncoding, Destination, Feed, Framing, GraphiteEncoding,
    GraphiteSource, HttpPlan, ManagementPlan, ManagementReplies, OutputKind, OutputPlan, Plan, SelfCounters,
    SourceKind, SourcePlan, TransformKind, TransformPlan, default_checkpoint_ms,
};
use crate::text::{duration, size};

/// The plan as a native TOML file: `check(print(plan))` gives the plan again.
pub fn print(plan: &Plan) -> String {
    let mut out = Out {
        text: String::from(
            "# `staunch check FILE` checks this file; options left out have their defaults.\n",
        ),
    };
    let empty = empty_plan();
    out.key_unless("data_dir", path(&plan.data_dir), path(&empty.data_dir));
    out.key_unless("stop_timeout", time(plan.stop_timeout_ms), time(empty.stop_timeout_ms));
    let timeouts = (plan.hot_restart_timeout_ms, empty.hot_restart_timeout_ms);
    out.key_unless("hot_restart_timeout", time(timeouts.0), time(timeouts.1));
    let unfinished = (plan.unfinished_bytes_max, empty.unfinished_bytes_max);
    out.key_unless("max_unfinished_bytes", bytes(unfinished.0), bytes(unfinished.1));
    out.flag_unless("reload_on_change", plan.reload_on_change, empty.reload_on_change);
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
    out.key_unless("allowed_hosts", texts(server.allowed_hosts.iter().map(|host| &**host)), texts([]));
    let token =
        |server: &HttpPlan| server.token_file.as_ref().map(|file| path(&file.path)).unwrap_or_default();
    out.key_unless("token_file", token(server), token(&default));
    transport::print_listening(out, server.tls.as_deref());
    let numbers = |server: &HttpPlan| (server.connections_max, server.peer_connections_max);
    let (all, of_peer) = numbers(server);
    out.key_unless("max_connections", all.to_string(), default.connections_max.to_string());
    out.key_unless("max_connections_per_peer", of_peer.to_string(), (all / 2).to_string());
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

    fn flag_unless(&mut self, key: &str, value: bool, default: bool) {
        self.key_unless(key, value.to_string(), default.to_string());
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

/// An inline table of what is not the default.
fn inline(pairs: &[(&str, String, String)]) -> Option<String> {
    let given: Vec<String> = pairs
        .iter()
        .filter(|(_, value, default)| value != default)
        .map(|(key, value, _)| format!("{key} = {value}"))
        .collect();
    (!given.is_empty()).then(|| format!("{{ {} }}", given.join(", ")))
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
    out.flag_unless("healthy", management.healthy, default.healthy);
    out.flag_unless("read_only", management.read_only, default.read_only);
    let connections = (management.connections_max, default.connections_max);
    out.key_unless("max_connections", connections.0.to_string(), connections.1.to_string());
    if let Some(per_peer) = management.connections_per_peer_max {
        out.key("max_connections_per_peer", per_peer.to_string());
    }
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
        SourceKind::Own(own) => {
            out.key("type", text("self"));
            out.key_unless("every", time(own.every_ms), time(10_000));
            return out.key_unless("prefix", text(&own.prefix), text("staunch"));
        }
        SourceKind::RelayOwn(own) => {
            out.key("type", text("self"));
            out.key("encoding", text("carbon-c-relay"));
            out.key_unless("every", time(own.every_ms), time(10_000));
            out.key_unless("prefix", text(&own.prefix), text("staunch"));
            out.flag_unless("reset", own.reset, false);
            return out.key_unless("report", text(own.report.word()), text("points"));
        }
    };
    out.key("type", text(word));
    let listen = source.listen.iter().map(listen_text);
    out.key("listen", list(listen.map(|listen| text(&listen))));
    out.key_unless("receive_buffer", bytes(source.receive_buffer_bytes), bytes(default.receive_buffer_bytes));
    out.key_unless(
        "max_connections",
        source.connections_max.to_string(),
        default.connections_max.to_string(),
    );
    if let Some(per_peer) = source.connections_per_peer_max {
        out.key("max_connections_per_peer", per_peer.to_string());
    }
    out.key_unless("idle_timeout", time(source.idle_timeout_ms), time(default.idle_timeout_ms));
    out.key_unless(
        "max_line_bytes",
        bytes(source.line_bytes_max as u64),
        bytes(default.line_bytes_max as u64),
    );
    out.flag_unless("tail_counts", source.tail_counts, default.tail_counts);
    if let Some(when) = source.ack_when {
        out.key("ack_when", text(when.word()));
    }
    transport::print_source(out, source.compression, source.tls.as_deref());
    match &source.kind {
        SourceKind::Statsd(options) => print_reading(out, options),
        SourceKind::Graphite(points) => print_points(out, points),
        SourceKind::Own(_) | SourceKind::RelayOwn(_) => {}
    }
}

fn print_points(out: &mut Out, source: &GraphiteSource) {
    let default = GraphiteSource::of(Compatibility::Strict);
    match source.messages {
        None => {}
        Some(MessageEncoding::Pickle) => out.key("encoding", text("pickle")),
        Some(MessageEncoding::Protobuf) => out.key("encoding", text("protobuf")),
    }
    let size = |size: usize| bytes(size as u64);
    out.key_unless("max_message_bytes", size(source.message_bytes_max), size(default.message_bytes_max));
    let reading = source.reading;
    out.key_unless("compatibility", text(reading.compatibility.word()), text("strict"));
    if reading.missing_time_is_now {
        out.key("missing_timestamp", text("now"));
    }
    out.key_unless("max_name_bytes", bytes(reading.name_bytes_max.into()), bytes(0));
    out.key_unless("names", text(reading.names.word()), text("bare"));
    if reading.kept != default.reading.kept {
        let kept: String = reading.kept.bytes().map(char::from).collect();
        out.key("name_characters", text(&kept));
    }
}

fn print_reading(out: &mut Out, options: &Options) {
    let default = Options::of(options.dialect);
    out.key_unless("dialect", text(sources::dialect_word(options.dialect)), text("union"));
    let sign = |sign| match sign {
        GaugeSign::Delta => text("delta"),
        GaugeSign::Absolute => text("absolute"),
    };
    out.key_unless("gauge_sign", sign(options.gauge_sign), sign(default.gauge_sign));
    out.flag_unless("allow_negative_timers", options.allow_negative_timers, default.allow_negative_timers);
    out.flag_unless("strict_numbers", options.strict_numbers, default.strict_numbers);
    out.flag_unless("sanitize", options.sanitize, default.sanitize);
    out.key_unless("max_key_bytes", bytes(options.key_bytes_max.into()), bytes(default.key_bytes_max.into()));
    out.key_unless("max_tags", options.tags_max.to_string(), default.tags_max.to_string());
    out.key_unless("min_sample_rate", options.rate_min.to_string(), default.rate_min.to_string());
    out.flag_unless("compat_quirks", options.compat_quirks, default.compat_quirks);
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
    let default_ms = by_dialect.min().unwrap_or(default.checkpoint_ms);
    let checkpoint = |ms| if ms == 0 { text("off") } else { time(ms) };
    out.key_unless("checkpoint", checkpoint(transform.checkpoint_ms), checkpoint(default_ms));
    out.key_unless("stats_prefix", text(&transform.stats_prefix), text(&default.stats_prefix));
    print_prefixes(out, &transform.namespace, &default.namespace);
    print_numbers(out, &transform.namespace, &default.namespace);
    let counters = |counters| match counters {
        SelfCounters::Node => text("node"),
        SelfCounters::Perl => text("perl"),
        SelfCounters::None => text("none"),
    };
    out.key_unless("self_counters", counters(transform.self_counters), counters(default.self_counters));
    print_windows(out, &transform.plan, &default.plan);
    print_timers(out, &transform.plan, &default.plan);
    print_series(out, &transform.plan, &default.plan);
    if let Some(key_flush) = &transform.plan.key_flush {
        let pairs = [
            ("interval", time(key_flush.interval_ms), String::new()),
            ("percent", key_flush.percent.to_string(), "100".into()),
            ("round_up", key_flush.round_up.to_string(), "true".into()),
            ("log", transform.key_flush_log.as_deref().map(path).unwrap_or_default(), String::new()),
        ];
        out.key("key_flush", inline(&pairs).unwrap_or_default());
    }
    for histogram in &transform.plan.histograms {
        out.heading(&format!("[transforms.{name}.histograms]"));
        out.key_unless("name_contains", text(&histogram.name_contains), text(""));
        out.key("bins", list(histogram.bins.iter().map(|(value, written)| limit(*value, written))));
    }
}

fn print_windows(out: &mut Out, plan: &AggregatePlan, default: &AggregatePlan) {
    // Said even when it is the default: whoever reads the file looks for it.
    out.key("window", time(plan.window_ms));
    let align = |align| match align {
        FlushAlign::Wall => text("wall"),
        FlushAlign::Start => text("start"),
        FlushAlign::Interval => text("interval"),
    };
    out.key_unless("flush_align", align(plan.align), align(default.align));
    out.flag_unless("measured_rates", plan.measured_rates, default.measured_rates);
}

fn print_timers(out: &mut Out, plan: &AggregatePlan, default: &AggregatePlan) {
    let percentiles =
        |limits: &[(f64, String)]| list(limits.iter().map(|(value, written)| limit(*value, written)));
    out.key_unless("percentiles", percentiles(&plan.percentiles), percentiles(&default.percentiles));
    let label = |label| match label {
        PercentLabel::First => text("first"),
        PercentLabel::Every => text("every"),
    };
    out.key_unless("percent_label", label(plan.percent_label), label(default.percent_label));
    let words = |words: &[String]| texts(words.iter().map(|word| &**word));
    out.key_unless("timer_aggregates", words(&plan.timer_aggregates), words(&default.timer_aggregates));
    out.flag_unless("timer_weights", plan.timer_weights, default.timer_weights);
    out.flag_unless("timer_rate_ignored", plan.timer_rate_ignored, default.timer_rate_ignored);
    out.key_unless(
        "max_exact_timer_values",
        plan.timer_exact_max.to_string(),
        default.timer_exact_max.to_string(),
    );
}

fn print_series(out: &mut Out, plan: &AggregatePlan, default: &AggregatePlan) {
    out.key_unless(
        "max_exact_set_members",
        plan.set_exact_max.to_string(),
        default.set_exact_max.to_string(),
    );
    out.flag_unless("set_members", plan.set_members, default.set_members);
    let (idle, usual) = (&plan.idle, &default.idle);
    let all_one = [idle.gauges, idle.timers, idle.sets].iter().all(|other| *other == idle.counters);
    let by_windows = matches!(idle.gauges, SeriesExpiry::Delete { ttl_windows } if ttl_windows != 1);
    if all_one && !by_windows {
        out.key_unless("expiry", idle_text(idle.counters), idle_text(usual.counters));
    } else {
        let pairs = [
            ("counters", idle_text(idle.counters), idle_text(usual.counters)),
            ("gauges", idle_text(idle.gauges), idle_text(usual.gauges)),
            ("timers", idle_text(idle.timers), idle_text(usual.timers)),
            ("sets", idle_text(idle.sets), idle_text(usual.sets)),
        ];
        out.key("expiry", inline(&pairs).unwrap_or_else(|| "{}".into()));
    }
    out.key_unless("max_series", plan.series_max.to_string(), default.series_max.to_string());
    out.key_unless("max_bytes", bytes(plan.bytes_max), bytes(default.bytes_max));
    let words = |words: &[String]| texts(words.iter().map(|word| &**word));
    out.key_unless("keep_contains", words(&plan.keep_contains), words(&default.keep_contains));
    out.flag_unless("allow_non_finite", plan.allow_non_finite, default.allow_non_finite);
}

fn idle_text(idle: SeriesExpiry) -> String {
    match idle {
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
            && with_destination(&first.kind, &to) == other.kind
            && (&first.from, first.queue, first.queue_kind, first.required)
                == (&other.from, other.queue, other.queue_kind, other.required)
            && packets::checked_alike(first.check.as_ref(), other.check.as_ref())
            && base_name(other, &to) == Some(base)
            && packets_word(&to) == packets_word(&endpoints[0]);
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

fn with_destination(kind: &OutputKind, destination: &Destination) -> OutputKind {
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

/// The type that a config gives to an output of packets.
fn packets_word(to: &Destination) -> &'static str {
    match to {
        Destination::Udp(_) => "udp",
        Destination::Tcp(_) => "tcp",
        Destination::UnixDatagram(_) | Destination::UnixStream(_) => "unix",
    }
}

fn print_output(out: &mut Out, plan: &Plan, output: &OutputPlan, section: &Section<'_>) {
    out.heading(&format!("outputs.{}", bare_or_quoted(section.name)));
    let head = |out: &mut Out, kind: &str| {
        out.key("type", text(kind));
        out.key("from", texts(output.from.iter().filter_map(|feed| name_of(plan, feed))));
    };
    let to = |out: &mut Out| out.key("to", list(section.endpoints.iter().map(|to| text(&to.to_string()))));
    match &output.kind {
        OutputKind::Graphite {
            form,
            namespace,
            sender,
            connections,
            line_bytes_max,
            compression,
            tls,
            ..
        } => {
            head(out, "graphite");
            to(out);
            print_form(out, *form);
            print_namespace(out, namespace);
            out.key_unless("connections", connections.to_string(), "1".to_owned());
            out.key_unless(
                "max_line_bytes",
                bytes((*line_bytes_max).into()),
                bytes(OutputKind::LINE_BYTES_MAX.into()),
            );
            print_sender(out, sender);
            transport::print_output(out, *compression, tls.as_deref());
        }
        OutputKind::GraphiteDatagrams { sender, syslog, .. } => {
            head(out, "graphite");
            to(out);
            print_form(out, if *syslog { GraphiteEncoding::Syslog } else { GraphiteEncoding::Lines });
            print_sender(out, sender);
        }
        OutputKind::GraphiteFile { path: file, file_bytes_max, files_max, peer, namespace } => {
            head(out, "graphite_file");
            let default = outputs::default_path(&plan.data_dir, &output.name, "points.graphite");
            out.key_unless("path", path(file), path(&default));
            print_rotation(out, (*file_bytes_max, *files_max), outputs::POINT_FILES);
            out.flag_unless("peer", *peer, false);
            print_namespace(out, namespace);
        }
        OutputKind::Console { form, pretty } => {
            head(out, "console");
            print_console(out, *form);
            out.flag_unless("pretty", *pretty, false);
        }
        OutputKind::PerlFile { path: file, stats_prefix } => {
            head(out, "perl_file");
            out.key("path", path(file));
            out.key_unless("stats_prefix", text(stats_prefix), text("statsd"));
        }
        OutputKind::Packets(packets) => {
            head(out, packets_word(&packets.to));
            to(out);
            print_packets(out, section, packets);
            if !matches!(packets.to, Destination::Udp(_)) {
                print_sender(out, &packets.sender);
            }
        }
        OutputKind::EventFile { path: file, file_bytes_max, files_max } => {
            head(out, "event_file");
            let default = outputs::default_path(&plan.data_dir, &output.name, "events.jsonl");
            out.key_unless("path", path(file), path(&default));
            print_rotation(out, (*file_bytes_max, *files_max), outputs::EVENT_FILES);
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

fn print_console(out: &mut Out, encoding: ConsoleEncoding) {
    match encoding {
        ConsoleEncoding::Perl => out.key("encoding", text("perl")),
        ConsoleEncoding::Node => {}
    }
}

fn print_form(out: &mut Out, form: GraphiteEncoding) {
    match form {
        GraphiteEncoding::Lines => {}
        GraphiteEncoding::Pickle => out.key("encoding", text("pickle")),
        GraphiteEncoding::Syslog => out.key("encoding", text("syslog")),
    }
}

fn print_rotation(out: &mut Out, (file_bytes, files): (u64, u32), (usual_bytes, usual_files): (u64, u32)) {
    if file_bytes == 0 {
        return out.key("max_file_bytes", text("off"));
    }
    let most = file_bytes.saturating_mul(u64::from(files) + 1);
    out.line(&format!("# At most {} on disk: the file and {files} rotated ones.", size(most)));
    out.key_unless("max_file_bytes", bytes(file_bytes), bytes(usual_bytes));
    out.key_unless("max_files", files.to_string(), usual_files.to_string());
}

fn print_namespace(out: &mut Out, namespace: &Namespace) {
    let default = Namespace::default();
    print_prefixes(out, namespace, &default);
    out.key_unless("stats_prefix", text(&namespace.stats_prefix), text(&default.stats_prefix));
    print_numbers(out, namespace, &default);
}

fn print_prefixes(out: &mut Out, namespace: &Namespace, default: &Namespace) {
    let word = |legacy| text(if legacy { "legacy" } else { "modern" });
    out.key_unless("namespace", word(namespace.legacy), word(default.legacy));
    out.key_unless("global_prefix", text(&namespace.global_prefix), text(&default.global_prefix));
    out.key_unless("counter_prefix", text(&namespace.counter_prefix), text(&default.counter_prefix));
    out.key_unless("timer_prefix", text(&namespace.timer_prefix), text(&default.timer_prefix));
    out.key_unless("gauge_prefix", text(&namespace.gauge_prefix), text(&default.gauge_prefix));
    out.key_unless("set_prefix", text(&namespace.set_prefix), text(&default.set_prefix));
    out.key_unless("global_suffix", text(&namespace.global_suffix), text(&default.global_suffix));
}

fn print_numbers(out: &mut Out, namespace: &Namespace, default: &Namespace) {
    out.flag_unless("counts", namespace.counts, default.counts);
    out.key_unless("bare_tag_value", text(&namespace.bare_tag_value), text(&default.bare_tag_value));
    let numbers = |numbers| match numbers {
        Numbers::Shortest => text("shortest"),
        Numbers::Perl => text("perl"),
    };
    out.key_unless("numbers", numbers(namespace.numbers), numbers(default.numbers));
}

fn print_sender(out: &mut Out, sender: &SenderPlan) {
    let default = SenderPlan::default();
    out.key_unless("min_retry_delay", time(sender.retry_min_ms), time(default.retry_min_ms));
    out.key_unless("max_retry_delay", time(sender.retry_max_ms), time(default.retry_max_ms));
    out.key_unless("connect_timeout", time(sender.connect_timeout_ms), time(default.connect_timeout_ms));
    out.key_unless("write_timeout", time(sender.write_timeout_ms), time(default.write_timeout_ms));
}

fn print_queue(out: &mut Out, queue: &QueueLimits, kind: QueueKind) {
    let default = QueueLimits::default_of(kind);
    let (word, sync_window_ms) = match kind {
        QueueKind::Memory => ("memory", outputs::SYNC_WINDOW_MS),
        QueueKind::Disk { sync_window_ms } => ("disk", sync_window_ms),
    };
    let when_full = |when_full| match when_full {
        WhenFull::Block => text("block"),
        WhenFull::BlockWhileUp => text("block_while_up"),
        WhenFull::DropOldest => text("drop_oldest"),
        WhenFull::DropNewest => text("drop_newest"),
    };
    let pairs = [
        ("kind", text(word), text("memory")),
        ("max_bytes", bytes(queue.bytes_max), bytes(default.bytes_max)),
        ("max_records", queue.records_max.to_string(), default.records_max.to_string()),
        ("when_full", when_full(queue.when_full), when_full(default.when_full)),
        ("max_age", time(queue.age_max_ms), time(default.age_max_ms)),
        ("sync_window", time(sync_window_ms), time(outputs::SYNC_WINDOW_MS)),
    ];
    if let Some(queue) = inline(&pairs) {
        out.key("queue", queue);
    }
}
