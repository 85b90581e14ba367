//! Random valid plans that can be written as a file.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use deliver::plan::{QueueKind, QueueLimits, SenderPlan, WhenFull};
use graphite::whisper::{AggregationMethod, Space};
use model::{AckWhen, OutputId, SourceId, TransformId};
use process::aggregate::{
    AggregatePlan, ExpiryPlan, FlushAlign, HistogramPlan, KeyFlushPlan, PercentLabel, SeriesExpiry,
};
use process::glob::Glob;
use process::sharding::{HealthPlan, KeyForm, RingReplicas, Sharding};
use process::stage::StagePlan;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use wire::graphite::{Namespace, Numbers};
use wire::statsd::rewrite::{
    AggregateEncoding, Distributions, Form, Gauges, NegativeGauges, RewritePlan, Strip, TagFormat, TimerType,
};
use wire::statsd::{Dialect, GaugeSign, Options};

use super::super::{clusters, outputs, wiring};
use crate::plan::*;

fn http_server() -> impl Strategy<Value = HttpPlan> {
    let file = || option::of("[a-z]{1,6}").prop_map(|path| path.map(PemFile::new));
    let origin = "https?://[a-z][a-z0-9.-]{0,9}(:[1-9][0-9]{0,3})?";
    let names = (vec("[a-z][a-z0-9.-]{0,9}[a-z]", 0..3), vec(origin, 0..2));
    let parts = (names, file(), file(), 2usize..500, 1usize..500);
    parts.prop_map(|((allowed_hosts, allowed_origins), token_file, cert, connections_max, of_peer)| {
        let tls = cert.map(|cert| {
            let identity = Identity { key: cert.clone(), cert };
            Box::new(ListenTls { identity, client_ca: None, min: TlsVersion::V1_2, max: TlsVersion::V1_3 })
        });
        let peer_connections_max = of_peer.min(connections_max);
        HttpPlan { allowed_hosts, allowed_origins, token_file, tls, connections_max, peer_connections_max }
    })
}

fn graphite_api() -> impl Strategy<Value = GraphiteApiPlan> {
    let peer = "http://[a-z][a-z0-9.-]{0,9}(:[1-9][0-9]{0,3})?(/[a-z]{1,5})?";
    let parts = (
        any::<bool>(),
        0u64..3_600_000,
        (1u64 << 20)..(1 << 40),
        1usize..1000,
        vec(peer, 0..3),
        100u64..3_600_000,
    );
    parts.prop_map(|(open, cache_ms, cache_bytes_max, events_max, peers, peer_timeout_ms)| GraphiteApiPlan {
        open,
        cache_ms,
        cache_bytes_max,
        events_max,
        peers,
        peer_timeout_ms,
    })
}

/// A whole plan. Addresses, files and names are made distinct by their numbers.
pub(super) fn plan() -> impl Strategy<Value = Plan> {
    let parts = (
        (options().boxed(), options().boxed()),
        vec((any::<bool>(), prop_oneof![4 => source().boxed(), 1 => own_source().boxed()]), 1..4),
        vec((aggregate().boxed(), any::<u8>()), 0..4),
        vec((prop_oneof![2 => output(), 1 => packets_output().boxed()], any::<u8>()), 0..5),
        vec(management().boxed(), 0..3),
        (option::weighted(0.8, ip().boxed()), http_server().boxed(), graphite_api().boxed()),
        (
            "[a-zé./ ]{1,9}",
            0u64..3_600_000,
            100u64..3_600_000,
            (1u64 << 20)..=(1 << 40),
            any::<bool>(),
            option::of(1usize..=64),
        ),
    );
    parts.prop_map(
        |(
            options,
            sources,
            transforms,
            drafts,
            management,
            (http, http_server, graphite_api),
            (data_dir, stop_timeout_ms, hot_restart_timeout_ms, unfinished_bytes_max, reload_on_change, readers),
        )| {
            let mut plan = Plan {
                http: http.map(|ip| SocketAddr::new(ip, 50_000)),
                http_server,
                graphite_api,
                management,
                data_dir: data_dir.into(),
                stop_timeout_ms,
                hot_restart_timeout_ms,
                unfinished_bytes_max,
                readers,
                reload_on_change,
                ..Plan::default()
            };
            for (at, management) in plan.management.iter_mut().enumerate() {
                management.listen.set_port(40_000 + at as u16);
            }
            // Two sets of options: an aggregation takes from sources with one of them.
            let groups: Vec<bool> = sources.iter().map(|(group, _)| *group).collect();
            for (at, (group, source)) in sources.into_iter().enumerate() {
                plan.sources.push(finish_source(at, source, if group { options.1 } else { options.0 }));
            }
            for (at, (mut aggregate, bits)) in transforms.into_iter().enumerate() {
                if let Some(log) = &mut aggregate.key_flush_log {
                    *log = format!("/logs/{at}").into();
                }
                let group = groups[usize::from(bits) % groups.len()];
                let of_group: Vec<u16> =
                    (0..groups.len()).filter(|s| groups[*s] == group).map(|s| s as u16).collect();
                let from = subset(&of_group, bits).into_iter().map(|id| Feed::Source(SourceId(id))).collect();
                let kind = TransformKind::Aggregate(Box::new(aggregate));
                plan.transforms.push(TransformPlan { name: format!("t.{at}"), kind, from });
            }
            for (at, (draft, bits)) in drafts.into_iter().enumerate() {
                finish_output(at, draft, bits, &mut plan);
            }
            for management in &mut plan.management {
                if matches!(management.replies, ManagementReplies::Proxy { cluster } if cluster >= plan.clusters.len()) {
                    management.replies = ManagementReplies::Node;
                }
            }
            wiring::count_names(&mut plan);
            plan
        },
    )
}

fn finish_source(at: usize, mut source: SourcePlan, options: Options) -> SourcePlan {
    source.name = format!("s_{at}");
    if let SourceKind::Own(_) = &source.kind {
        return source;
    }
    source.kind = SourceKind::Statsd(options);
    for (n, listen) in source.listen.iter_mut().enumerate() {
        let number = at * 10 + n;
        match listen {
            Listen::Udp(address) | Listen::Tcp(address) => address.set_port(10_000 + number as u16),
            Listen::UnixStream { path, .. }
            | Listen::UnixDatagram { path, .. }
            | Listen::UnixFrames { path, .. } => *path = format!("{}{number}", path.display()).into(),
        }
    }
    source
}

/// A non-empty part of `of`, in an order that depends on `bits`.
fn subset(of: &[u16], bits: u8) -> Vec<u16> {
    let mut part: Vec<u16> = of.iter().copied().filter(|n| bits >> (n % 8) & 1 == 1).collect();
    if part.is_empty() {
        part.push(of[usize::from(bits) % of.len()]);
    }
    if bits & 4 == 4 {
        part.reverse();
    }
    part
}

/// An output without edges, its number of endpoints, and their cluster.
type Draft = (OutputPlan, usize, Option<ClusterDraft>);

/// The parts of a cluster: sharding, key, its own labels, and numbers that assign shards to endpoints.
type ClusterDraft = (u8, KeyForm, bool, Vec<u8>);

/// The cluster of the outputs from `first` on.
fn finish_cluster(name: &str, first: usize, (form, key, own, numbers): ClusterDraft, plan: &mut Plan) {
    let members: Vec<OutputId> = (first..plan.outputs.len()).map(|at| OutputId(at as u16)).collect();
    let to: Vec<Destination> = members
        .iter()
        .map(|id| match &plan.outputs[id.index()].kind {
            OutputKind::Packets(packets) => packets.to.clone(),
            _ => unreachable!("only packets are shared"),
        })
        .collect();
    let shards: Vec<usize> = numbers.iter().map(|number| usize::from(*number) % to.len()).collect();
    let sharding = match form % 5 {
        0 => Sharding::StatsdNode(RingReplicas::One),
        1 => Sharding::StatsdNode(RingReplicas::Four),
        2 => Sharding::Ketama,
        3 => Sharding::Jump(shards),
        _ => Sharding::Murmur3Statsrelay(shards),
    };
    let mut labels = clusters::default_labels(&to);
    if own {
        labels.iter_mut().for_each(|label| label.push('é'));
    }
    plan.clusters.push(ClusterPlan { name: name.into(), sharding, key, members, labels });
}

fn on_disk(kind: QueueKind) -> QueueKind {
    match kind {
        QueueKind::Memory => QueueKind::Disk { sync_window_ms: SYNC_WINDOW_MS },
        disk @ QueueKind::Disk { .. } => disk,
    }
}

/// What an output takes from.
fn feeds(takes_both: bool, raw: bool, bits: u8, plan: &Plan) -> Vec<Feed> {
    let all = |number: usize| (0..number as u16).collect::<Vec<_>>();
    if takes_both && bits & 32 == 32 && !plan.transforms.is_empty() {
        let sources = subset(&all(plan.sources.len()), bits).into_iter().map(|n| Feed::Source(SourceId(n)));
        sources.chain([Feed::Transform(TransformId(0))]).collect()
    } else if raw {
        subset(&all(plan.sources.len()), bits).into_iter().map(|n| Feed::Source(SourceId(n))).collect()
    } else {
        subset(&all(plan.transforms.len()), bits)
            .into_iter()
            .map(|n| Feed::Transform(TransformId(n)))
            .collect()
    }
}

/// Gives an output a place of its own; `is_named`: it is named after its endpoint.
fn place(output: &mut OutputPlan, (at, n): (usize, usize), is_named: bool, folder: Option<PathBuf>) {
    let port = 30_000 + (at * 10 + n) as u16;
    match &mut output.kind {
        // The section has TCP endpoints only.
        OutputKind::GraphiteDatagrams { .. } => {}
        OutputKind::Graphite { to, .. } => {
            to.port = port;
            if is_named {
                output.name = outputs::endpoint_name(&output.name, &Destination::Tcp(to.clone()));
            }
        }
        OutputKind::Riemann(plan) => {
            if let Destination::Udp(to) | Destination::Tcp(to) = &mut plan.to {
                to.port = port;
            }
            if is_named {
                output.name = outputs::endpoint_name(&output.name, &plan.to);
            }
        }
        OutputKind::Packets(packets) => {
            match &mut packets.to {
                Destination::Udp(to) | Destination::Tcp(to) => to.port = port,
                Destination::UnixDatagram(path) | Destination::UnixStream(path) => {
                    *path = format!("/run/{at}-{n}?").into();
                }
            }
            if is_named {
                output.name = outputs::endpoint_name(&output.name, &packets.to);
            }
        }
        OutputKind::GraphiteFile { path, .. } if folder.is_some() => {
            *path = folder.unwrap_or_default().join("points.graphite");
        }
        OutputKind::GraphiteFile { path, .. }
        | OutputKind::EventFile { path, .. }
        | OutputKind::PerlFile { path, .. } => *path = format!("/files/{at}/{}", path.display()).into(),
        OutputKind::OpenTsdb { to, .. } => {
            to.port = port;
            if is_named {
                output.name = outputs::endpoint_name(&output.name, &Destination::Tcp(to.clone()));
            }
        }
        OutputKind::Whisper(store) => {
            store.path = format!("/trees/{at}").into();
            output.queue_kind = on_disk(output.queue_kind);
        }
        OutputKind::Console { .. } | OutputKind::Http(_) | OutputKind::Email(_) => {}
    }
}

fn finish_output(at: usize, (draft, endpoints, cluster): Draft, bits: u8, plan: &mut Plan) {
    let raw = matches!(
        draft.kind,
        OutputKind::Packets(_)
            | OutputKind::EventFile { .. }
            | OutputKind::Http(_)
            | OutputKind::Email(_)
            | OutputKind::Riemann(_)
    );
    if !raw && plan.transforms.is_empty() {
        return;
    }
    // One endpoint, in the URL.
    let endpoints =
        if matches!(draft.kind, OutputKind::Http(_) | OutputKind::Email(_)) { 1 } else { endpoints };
    let looks = matches!(&draft.kind, OutputKind::Packets(packets) if packets.lines.is_some());
    let from = feeds(looks && cluster.is_none(), raw, bits, plan);
    let name = format!("o-{at}");
    let first = plan.outputs.len();
    let split = endpoints > 1 || cluster.is_some();
    for n in 0..endpoints {
        let mut output = OutputPlan { name: name.clone(), from: from.clone(), ..draft.clone() };
        let folder = (bits & 128 == 128).then(|| plan.data_dir.join(&name));
        place(&mut output, (at, n), split || bits & 64 == 64, folder);
        if let Some(check) = &mut output.check
            && let OutputKind::Packets(PacketsPlan { to: Destination::Udp(to), .. }) = &output.kind
            && bits & 16 == 16
        {
            check.at.host = to.host.clone();
        }
        plan.outputs.push(output);
    }
    if let Some(cluster) = cluster {
        finish_cluster(&name, first, cluster, plan);
    }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-z._]{1,6}", "[\"\\\\\n\r\t\u{7f}\u{0}#=é\u{1b}' ]{0,6}", "\\PC{0,5}"]
}

fn ip() -> impl Strategy<Value = IpAddr> + Clone {
    prop_oneof![
        Just(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        Just(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        any::<u32>().prop_map(|bits| IpAddr::V4(bits.into())),
        any::<u128>().prop_map(|bits| IpAddr::V6(Ipv6Addr::from(bits))),
    ]
}

fn options() -> impl Strategy<Value = Options> {
    let dialects = vec![Dialect::Union, Dialect::Etsy, Dialect::Perl, Dialect::Dogstatsd];
    let plain = select(dialects.clone()).prop_map(Options::of);
    let sign = select(vec![GaugeSign::Delta, GaugeSign::Absolute]);
    let any = (select(dialects), any::<[bool; 4]>(), sign, 0u32..=1 << 30, 0u32..=1_000_000, 0.0..=1.0f64)
        .prop_map(|(dialect, [a, b, c, d], gauge_sign, key_bytes_max, tags_max, rate_min)| Options {
            dialect,
            compat_quirks: a,
            strict_numbers: b,
            gauge_sign,
            allow_negative_timers: c,
            sanitize: d,
            key_bytes_max,
            tags_max,
            rate_min,
            count_names: false,
        });
    prop_oneof![plain, any]
}

fn listen() -> impl Strategy<Value = Listen> {
    let address = ip().prop_map(|ip| SocketAddr::new(ip, 0));
    let path = ("(@|/|)[a-zé?%= ]{1,9}", option::of(0u32..=0o7777));
    prop_oneof![
        address.clone().prop_map(Listen::Udp),
        address.prop_map(Listen::Tcp),
        path.clone().prop_map(|(path, mode)| Listen::UnixStream { path: path.into(), mode }),
        path.clone().prop_map(|(path, mode)| Listen::UnixDatagram { path: path.into(), mode }),
        path.prop_map(|(path, mode)| Listen::UnixFrames { path: path.into(), mode }),
    ]
}

fn source() -> impl Strategy<Value = SourcePlan> {
    let numbers = (4096u64..=1 << 30, 1usize..1_000_000, 0u64..1 << 34, 64usize..1 << 26, any::<bool>());
    let acks = any::<bool>();
    let per_peer = option::of(1usize..1_000_000);
    (vec(listen(), 1..4), numbers, acks, per_peer).prop_map(|(listen, numbers, acks, per_peer)| {
        let (buffer, connections, idle, line, tail_counts) = numbers;
        let answers = |listen: &Listen| !matches!(listen, Listen::Udp(_) | Listen::UnixDatagram { .. });
        let ack_when = (acks && listen.iter().any(answers)).then_some(AckWhen::Accepted);
        SourcePlan {
            name: String::new(),
            kind: SourceKind::Statsd(Options::of(Dialect::Union)),
            listen,
            receive_buffer_bytes: buffer,
            connections_max: connections,
            connections_per_peer_max: per_peer.map(|of_peer| of_peer.min(connections)),
            idle_timeout_ms: idle,
            line_bytes_max: line,
            tail_counts,
            ack_when,
            compression: Compression::Plain,
            tls: None,
        }
    })
}

fn own_source() -> impl Strategy<Value = SourcePlan> {
    (1_000u64..=86_400_000, "[a-z.]{0,5}").prop_map(|(every_ms, prefix)| SourcePlan {
        kind: SourceKind::Own(OwnPlan { every_ms, prefix }),
        ..super::super::sources::own_plan("")
    })
}

fn idle(windows: bool) -> impl Strategy<Value = SeriesExpiry> {
    prop_oneof![
        Just(SeriesExpiry::Keep),
        (1u32..if windows { 9 } else { 2 }).prop_map(|ttl_windows| SeriesExpiry::Delete { ttl_windows }),
        (1u64..=365 * 86_400).prop_map(|seconds| SeriesExpiry::After { seconds }),
        Just(SeriesExpiry::After { seconds: 300 }),
    ]
}

fn idle_plan() -> impl Strategy<Value = ExpiryPlan> {
    let all =
        idle(false).prop_map(|idle| ExpiryPlan { counters: idle, gauges: idle, timers: idle, sets: idle });
    let each = (idle(false), idle(true), idle(false), idle(false))
        .prop_map(|(counters, gauges, timers, sets)| ExpiryPlan { counters, gauges, timers, sets });
    prop_oneof![all, each]
}

fn percentile() -> impl Strategy<Value = (f64, String)> {
    let own = prop_oneof![-100.0..=100.0f64, (-100i32..=100).prop_map(f64::from)];
    prop_oneof![
        own.prop_map(|value| (value, value.to_string())),
        select(vec!["99.90", "-10.0", "1e1", "90", "-0"])
            .prop_map(|text| (text.parse().unwrap(), text.into())),
    ]
}

fn histogram() -> impl Strategy<Value = HistogramPlan> {
    let bin = prop_oneof![-1e3..1e6f64, any::<i32>().prop_map(f64::from), Just(1e300)];
    (text(), vec(bin, 0..5), any::<bool>()).prop_map(|(name_contains, mut bins, inf)| {
        bins.sort_by(f64::total_cmp);
        bins.dedup();
        bins.extend(inf.then_some(f64::INFINITY));
        HistogramPlan { name_contains, bins: bins.into_iter().map(|bin| (bin, bin.to_string())).collect() }
    })
}

fn aggregate() -> impl Strategy<Value = AggregateTransform> {
    let words = vec(prop_oneof![Just("mean".to_owned()), Just("upper_percent".to_owned()), text()], 0..3);
    let key_flush = option::of((1u64..1 << 34, 0.001..=100.0f64, any::<bool>(), any::<bool>()));
    let window = (1u64..1 << 34, select(vec![FlushAlign::Wall, FlushAlign::Start, FlushAlign::Interval]));
    let label = select(vec![PercentLabel::First, PercentLabel::Every]);
    let numbers = (0usize..1_000_000_000, 0usize..1_000_000_000, 1u32..1_000_000_000, 1u64 << 20..1 << 40);
    let counters = select(vec![SelfCounters::Node, SelfCounters::Perl, SelfCounters::None]);
    let lists = (vec(percentile(), 0..4), vec(histogram(), 0..3), words, vec(text(), 0..3), idle_plan());
    let own = (text(), counters, prop_oneof![Just(0u64), Just(5_000), 100..=3_600_000u64], namespace());
    let any = (window, label, lists, numbers, any::<[bool; 5]>(), key_flush, own).prop_map(
        |(
            (window_ms, align),
            percent_label,
            lists,
            numbers,
            flags,
            key_flush,
            (stats_prefix, self_counters, checkpoint_ms, namespace),
        )| {
            let plan = AggregatePlan {
                window_ms,
                align,
                measured_rates: flags[0],
                percentiles: lists.0,
                percent_label,
                histograms: lists.1,
                timer_aggregates: lists.2,
                timer_weights: flags[1],
                timer_rate_ignored: flags[2],
                timer_exact_max: numbers.0,
                set_exact_max: numbers.1,
                set_members: flags[3],
                idle: lists.4,
                series_max: numbers.2,
                bytes_max: numbers.3,
                keep_contains: lists.3,
                allow_non_finite: flags[4],
                key_flush: key_flush.map(|(interval_ms, percent, round_up, _)| KeyFlushPlan {
                    interval_ms,
                    percent,
                    round_up,
                }),
            };
            let log = key_flush.is_some_and(|(.., log)| log);
            let namespace = Namespace { stats_prefix: stats_prefix.clone(), ..namespace };
            AggregateTransform {
                plan,
                stats_prefix,
                self_counters,
                key_flush_log: log.then(Default::default),
                checkpoint_ms,
                namespace,
            }
        },
    );
    let default = super::super::transforms::default_plan();
    prop_oneof![1 => Just(default), 3 => any]
}

fn namespace() -> impl Strategy<Value = Namespace> {
    let words = proptest::array::uniform8(text());
    let any = (any::<bool>(), words, any::<bool>(), select(vec![Numbers::Shortest, Numbers::Perl])).prop_map(
        |(legacy, [a, b, c, d, e, f, g, h], counts, numbers)| Namespace {
            legacy,
            global_prefix: a,
            counter_prefix: b,
            timer_prefix: c,
            gauge_prefix: d,
            set_prefix: e,
            global_suffix: f,
            stats_prefix: g,
            counts,
            bare_tag_value: h,
            numbers,
        },
    );
    prop_oneof![Just(Namespace::default()), any]
}

fn sender() -> impl Strategy<Value = SenderPlan> {
    let any = (1u64..3_600_000, 0u64..1000, 1u64..3_600_000, 1u64..3_600_000).prop_map(
        |(min, more, connect, write)| SenderPlan {
            retry_min_ms: min,
            retry_max_ms: min + more,
            connect_timeout_ms: connect,
            write_timeout_ms: write,
        },
    );
    prop_oneof![Just(SenderPlan::default()), any]
}

fn stage() -> BoxedStrategy<StagePlan> {
    let pattern = || "[a-zé.*?\"]{0,5}".prop_map(|text| Glob::new(text.as_bytes()).unwrap());
    let share = || prop_oneof![Just(1.0), Just(0.0), 0.0..=1.0f64];
    let names = proptest::collection::btree_map("[a-z.*]{0,5}", share(), 0..3);
    let names = names.prop_map(|names| {
        names.into_iter().map(|(text, share)| (Glob::new(text.as_bytes()).unwrap(), share)).rev().collect()
    });
    let idle = prop_oneof![Just(LinesPlan::SERIES_IDLE_NS), (0u64..1 << 34).prop_map(|ms| ms * 1_000_000)];
    (vec(pattern(), 0..3), vec(pattern(), 0..3), share(), names, 0u32..9, idle)
        .prop_map(|(allow, deny, sample, sample_names, series_max, series_idle_ns)| StagePlan {
            allow,
            deny,
            sample,
            sample_names,
            series_max,
            series_idle_ns,
        })
        .boxed()
}

fn rewrite() -> BoxedStrategy<RewritePlan> {
    let affix = || "[a-zé. \"]{0,4}";
    let tag = || vec("[a-z]{1,3}:[a-zé\"]{0,3}", 0..3);
    let rename = proptest::collection::btree_map("[a-z.]{1,4}", "[a-z]{1,4}", 0..3);
    let rename = rename.prop_map(|rename| rename.into_iter().rev().collect());
    (affix(), affix(), vec("[a-z]{1,4}[*]?", 0..3), rename, tag(), "[a-z.é]{0,4}", form())
        .prop_map(|(prefix, suffix, tags_drop, tags_rename, tags_add, bare_tag_value, to)| RewritePlan {
            prefix,
            suffix,
            tags_drop,
            tags_rename,
            tags_add,
            bare_tag_value,
            to,
        })
        .boxed()
}

fn form() -> BoxedStrategy<Form> {
    let tags = select(vec![TagFormat::Keep, TagFormat::Drop, TagFormat::Dogstatsd, TagFormat::Graphite]);
    let types = select(vec![Distributions::Keep, Distributions::Histograms, Distributions::Timers]);
    let gauges = select(vec![Gauges::Keep, Gauges::SignsAreChanges, Gauges::SignsAreParts]);
    let any = (tags, types, gauges, any::<[bool; 8]>()).prop_map(
        |(tags, distributions, gauges, [a, b, c, d, e, f, g, h])| Form {
            tags,
            one_value_per_line: a,
            distributions,
            histograms_as_timers: b,
            gauges,
            strip: Strip { container: c, external: d, cardinality: e, time: f, unknown: g },
            events: h,
        },
    );
    prop_oneof![select(Form::NAMED.map(|(_, form)| form).to_vec()), any].boxed()
}

fn lines(to: Destination) -> BoxedStrategy<LinesPlan> {
    let size = prop_oneof![Just(0), Just(LinesPlan::packet_bytes_default(&to)), 64usize..=65_507];
    let delay = prop_oneof![Just(LinesPlan::FLUSH_DELAY_MS), 0u64..=60_000];
    let negative = select(vec![NegativeGauges::ZeroFirst, NegativeGauges::Signed, NegativeGauges::Equals]);
    let timers = select(vec![TimerType::Timer, TimerType::Histogram, TimerType::Distribution]);
    let any = (stage(), rewrite(), size, delay, negative, timers, any::<[bool; 3]>());
    any.prop_map(
        move |(stage, rewrite, packet_bytes_max, flush_delay_ms, negative_gauges, timer_type, flags)| {
            let usual = LinesPlan::packet_bytes_default(&to);
            let aggregates = AggregateEncoding {
                names: rewrite.clone(),
                negative_gauges,
                timer_type,
                packed: flags[0],
                zero_counters: flags[1],
                times: flags[2],
                line_bytes_max: if packet_bytes_max == 0 { usual } else { packet_bytes_max },
            };
            LinesPlan { stage, rewrite, packet_bytes_max, flush_delay_ms, aggregates }
        },
    )
    .boxed()
}

fn check() -> BoxedStrategy<CheckPlan> {
    let kind = select(vec![CheckKind::Management, CheckKind::Connect, CheckKind::Http("/a?b=\"".into())]);
    let host = select(vec!["h", "10.0.0.5", "fe80::1"]);
    let health = (1u32..=64, any::<[prop::sample::Index; 2]>()).prop_map(|(checks, [down, up])| {
        let within = |index: prop::sample::Index| 1 + index.index(checks as usize) as u32;
        HealthPlan::new(checks, within(down), within(up)).unwrap()
    });
    (kind, host, 1u16.., 1u64..1 << 34, health)
        .prop_map(|(kind, host, port, every_ms, health)| CheckPlan {
            kind,
            at: Endpoint { host: host.into(), port },
            every_ms,
            health,
        })
        .boxed()
}

/// Outputs of packets with all processing options.
fn packets_output() -> BoxedStrategy<Draft> {
    let host = select(vec!["h", "10.0.0.5", "fe80::1"]);
    let kind = (host, 0usize..4, sender(), any::<[bool; 2]>()).prop_map(
        |(host, scheme, sender, [frames, turns])| {
            let framing = if frames { Framing::Frames } else { Framing::Lines };
            let to = Endpoint { host: host.into(), port: 1 };
            let addresses = if turns && scheme < 2 { Addresses::RoundRobin } else { Addresses::First };
            let (to, sender, framing) = match scheme {
                0 => (Destination::Udp(to), PacketsPlan::UDP_SENDER, Framing::Lines),
                1 => (Destination::Tcp(to), sender, framing),
                2 => (Destination::UnixDatagram("/x".into()), sender, Framing::Lines),
                _ => (Destination::UnixStream("@x".into()), sender, framing),
            };
            PacketsPlan { to, framing, addresses, sender, lines: None }
        },
    );
    let with_lines = kind.prop_flat_map(|packets| {
        let lines = option::weighted(0.8, lines(packets.to.clone()));
        lines.prop_map(move |lines| PacketsPlan { lines: lines.map(Box::new), ..packets.clone() })
    });
    let key = select(vec![KeyForm::Node, KeyForm::Name, KeyForm::Series]);
    let cluster = option::of((any::<u8>(), key, any::<bool>(), vec(any::<u8>(), 0..9)));
    (with_lines, 1usize..4, any::<bool>(), option::of(check()), cluster)
        .prop_map(|(packets, endpoints, required, check, cluster)| {
            // Verbatim packets are not sharded.
            let cluster = cluster.filter(|_| packets.lines.is_some());
            let kind = OutputKind::Packets(packets);
            let queue = QueueLimits::default();
            let name = String::new();
            let queue_kind = QueueKind::Memory;
            let from = Vec::new();
            (OutputPlan { name, kind, from, queue, queue_kind, required, check }, endpoints, cluster)
        })
        .boxed()
}

fn queue() -> impl Strategy<Value = (QueueLimits, QueueKind)> {
    let when_full = select(vec![
        WhenFull::Wait,
        WhenFull::Block,
        WhenFull::BlockWhileUp,
        WhenFull::DropOldest,
        WhenFull::DropNewest,
    ]);
    let limits = (QueueLimits::BYTES_MIN..1 << 40, 0u64..1 << 30, when_full, 0u64..=10_000, 0u64..1 << 34);
    let limits = limits.prop_map(|(bytes_max, records_max, when_full, max_wait_ms, age_max_ms)| {
        QueueLimits { bytes_max, records_max, when_full, max_wait_ms, age_max_ms }
    });
    let kind = option::of(5u64..=20).prop_map(|window| match window {
        Some(sync_window_ms) => QueueKind::Disk { sync_window_ms },
        None => QueueKind::Memory,
    });
    (option::of(limits), kind)
        .prop_map(|(limits, kind)| (limits.unwrap_or_else(|| QueueLimits::default_of(kind)), kind))
}

/// Longest line of an output; frames have none.
fn longest(form: GraphiteEncoding, connections: u8) -> u32 {
    if form == GraphiteEncoding::Pickle { OutputKind::LINE_BYTES_MAX } else { 1024 << (connections % 7) }
}

fn output_kind() -> BoxedStrategy<OutputKind> {
    let host = select(vec!["h", "10.0.0.5", "fe80::1", "carbon-1.example.org"]);
    let to = host.prop_map(|host| Endpoint { host: host.into(), port: 1 });
    let file = ("[a-zé\" ]{1,5}", 4096u64..1 << 40, 0u32..=10_000);
    prop_oneof![
        (
            to.clone(),
            select(vec![GraphiteEncoding::Lines, GraphiteEncoding::Pickle, GraphiteEncoding::Syslog]),
            namespace(),
            sender(),
            1u8..=16,
            select(Compression::ALL.to_vec()),
            option::of(endpoint_tls()),
        )
            .prop_map(|(to, form, namespace, sender, connections, compression, tls)| {
                OutputKind::Graphite {
                    to,
                    form,
                    namespace,
                    sender,
                    connections,
                    line_bytes_max: longest(form, connections),
                    compression,
                    tls: tls.map(Box::new),
                }
            })
            .boxed(),
        (to.clone(), namespace(), sender(), select(vec!["source=staunch", "host=web-1", "é=ü/1"]))
            .prop_map(|(to, namespace, sender, tag)| {
                OutputKind::OpenTsdb { to, namespace, default_tag: tag.into(), sender }
            })
            .boxed(),
        (file.clone(), any::<bool>(), namespace())
            .prop_map(|((path, file_bytes_max, files_max), peer, namespace)| {
                let path = path.into();
                OutputKind::GraphiteFile { path, file_bytes_max, files_max, peer, namespace }
            })
            .boxed(),
        (whisper(), namespace()).prop_map(|(plan, namespace)| {
            OutputKind::Whisper(Box::new(WhisperPlan { namespace, ..plan }))
        }),
        (any::<bool>(), select(vec![ConsoleEncoding::Node, ConsoleEncoding::Perl]))
            .prop_map(|(pretty, form)| OutputKind::Console { form, pretty }),
        ("[a-z]{1,5}", text())
            .prop_map(|(path, stats_prefix)| OutputKind::PerlFile { path: path.into(), stats_prefix }),
        (to, 0usize..4, sender()).prop_map(|(to, scheme, sender)| {
            let (to, sender) = match scheme {
                0 => (Destination::Udp(to), PacketsPlan::UDP_SENDER),
                1 => (Destination::Tcp(to), sender),
                2 => (Destination::UnixDatagram("/x".into()), sender),
                _ => (Destination::UnixStream("@x".into()), sender),
            };
            let (framing, addresses) = (Framing::Lines, Addresses::First);
            OutputKind::Packets(PacketsPlan { to, framing, addresses, sender, lines: None })
        }),
        file.prop_map(|(path, file_bytes_max, files_max)| {
            OutputKind::EventFile { path: path.into(), file_bytes_max, files_max }
        }),
        http(),
        email(),
        riemann(),
    ]
    .boxed()
}

fn http() -> impl Strategy<Value = OutputKind> {
    let encodings = select(vec![HttpEncoding::Json, HttpEncoding::JsonLines, HttpEncoding::InfluxDb]);
    let urls = select(vec!["http://h/", "http://h:8086/write?db=a", "https://[::1]/{{service}}"]);
    (encodings, urls, option::of(1u32..=100_000), 0u64..1000, sender()).prop_map(
        |(encoding, url, events_max, delay_ms, sender)| {
            let tls = url.starts_with("https").then(Box::default);
            let headers = vec![("X-A".to_owned(), "\"é\" {{host}}".to_owned())];
            let plan = HttpOutputPlan {
                url: url.into(),
                headers,
                encoding,
                events_max,
                delay_ms,
                tls,
                sender,
                ..HttpOutputPlan::default()
            };
            OutputKind::Http(Box::new(plan))
        },
    )
}

fn riemann() -> impl Strategy<Value = OutputKind> {
    (any::<bool>(), 1u32..=65_536, 0u64..=3_600_000, any::<bool>(), sender()).prop_map(
        |(is_udp, events_max, delay_ms, is_encrypted, sender)| {
            let to = Endpoint { host: "10.0.0.5".into(), port: 5555 };
            let to = if is_udp { Destination::Udp(to) } else { Destination::Tcp(to) };
            let tls = (is_encrypted && !is_udp).then(Box::default);
            let plan = RiemannOutputPlan { events_max, delay_ms, tls, sender, ..RiemannOutputPlan::new(to) };
            OutputKind::Riemann(Box::new(plan))
        },
    )
}

fn email() -> impl Strategy<Value = OutputKind> {
    let servers =
        select(vec![("smtp://h", false), ("smtp://[::1]:587", true), ("smtps://mail.example.org", false)]);
    (servers, 1u32..=10_000, option::of(text()), option::of(select(vec!["a", "{{host}} é"])), sender())
        .prop_map(|((smtp, starttls), events_max, user, subject, sender)| {
            let tls = (starttls || smtp.starts_with("smtps")).then(Box::default);
            let (to, password) = (vec!["a@b.c".to_owned()], user.clone());
            let plan = EmailPlan {
                smtp: smtp.into(),
                starttls,
                user,
                password,
                to,
                subject: subject.map(str::to_owned),
                events_max,
                tls,
                sender,
                ..EmailPlan::default()
            };
            OutputKind::Email(Box::new(plan))
        })
}

fn whisper() -> impl Strategy<Value = WhisperPlan> {
    let pattern = || select(vec!["", "^servers\\.", "a\"b", "é$"]).prop_map(str::to_owned);
    let schema = (pattern(), select(vec!["10s:1d,1m:7d", "60:1440", "1s:1h"]))
        .prop_map(|(pattern, text)| SchemaPlan { pattern, retentions: text.into() });
    let methods = option::of(select(AggregationMethod::ALL.to_vec()));
    let aggregation = (pattern(), methods, option::of(select(vec![0.0, 0.25, 1.0])));
    let aggregation = aggregation.prop_map(|(pattern, method, x_files_factor)| AggregationPlan {
        pattern,
        method,
        x_files_factor,
    });
    let file = || option::of("/[a-z]{1,5}".prop_map(PathBuf::from));
    let rules = (vec(schema, 0..3), vec(aggregation, 0..3), file(), file());
    let numbers =
        (1u32..1000, any::<[bool; 5]>(), select(vec![Space::Sparse, Space::Zeros, Space::Allocate]));
    (rules, numbers).prop_map(
        |((schemas, aggregations, schemas_file, aggregations_file), (n, flags, new_files))| {
            let [lock, hash_tagged_names, first_duplicate, accept_future, online_migration] = flags;
            WhisperPlan {
                schemas,
                aggregations,
                schemas_file,
                aggregations_file,
                new_files,
                write_after_ms: u64::from(n) * 1000,
                stop_timeout_ms: u64::from(n) * 2000,
                points_bytes_max: u64::from(n) << 20,
                series_max: n,
                names_bytes_max: u64::from(n) << 20,
                files_bytes_max: if lock { 0 } else { u64::from(n) << 24 },
                future_max_ms: hash_tagged_names.then_some(u64::from(n) * 1000),
                lock,
                updates_per_second_max: n / 2,
                creates_per_minute_max: n / 3,
                hash_tagged_names,
                compat: WhisperCompat { first_duplicate, accept_future },
                online_migration: online_migration && !lock,
                ..WhisperPlan::new(PathBuf::new())
            }
        },
    )
}

fn output() -> BoxedStrategy<Draft> {
    (output_kind(), queue(), 1usize..4)
        .prop_map(|(kind, (queue, queue_kind), endpoints)| {
            let several = kind.destination().is_some();
            let endpoints = if several { endpoints } else { 1 };
            (
                OutputPlan {
                    name: String::new(),
                    kind,
                    from: Vec::new(),
                    queue,
                    required: false,
                    queue_kind,
                    check: None,
                },
                endpoints,
                None,
            )
        })
        .boxed()
}

fn pem() -> impl Strategy<Value = PemFile> {
    "[a-zé\\./]{1,5}".prop_map(PemFile::new)
}

fn identity() -> impl Strategy<Value = Identity> {
    (pem(), option::of(pem()))
        .prop_map(|(cert, key)| Identity { key: key.unwrap_or_else(|| cert.clone()), cert })
}

fn endpoint_tls() -> impl Strategy<Value = EndpointTls> {
    (option::of(pem()), option::of(identity()), option::of("[a-z.]{1,5}"), any::<bool>()).prop_map(
        |(ca, identity, server_name, skip_hostname_check)| EndpointTls {
            skip_hostname_check: skip_hostname_check && ca.is_some(),
            ca,
            identity,
            server_name,
        },
    )
}

fn management() -> impl Strategy<Value = ManagementPlan> {
    let replies = prop_oneof![
        Just(ManagementReplies::Node),
        Just(ManagementReplies::Perl),
        (0usize..3).prop_map(|cluster| ManagementReplies::Proxy { cluster }),
    ];
    let connections = (1usize..100_000, option::of(1usize..100_000));
    let config = proptest::collection::btree_map(text(), text(), 0..4);
    (ip(), replies, any::<[bool; 2]>(), config, connections).prop_map(
        |(ip, replies, [healthy, read_only], config, (connections_max, of_peer))| ManagementPlan {
            listen: SocketAddr::new(ip, 0),
            replies,
            healthy,
            config: config.into_iter().collect(),
            read_only,
            connections_max,
            connections_per_peer_max: of_peer.map(|of_peer| of_peer.min(connections_max)),
        },
    )
}
