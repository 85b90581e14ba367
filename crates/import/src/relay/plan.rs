//! `staunch relay -f FILE [flags]` as a plan: a configuration and a command line of carbon-c-relay (spec graphite §2).
//!
//! Path: `import::relay` (the file) and `import::relay::flags` (the command line) -> **[`relay`]** -> a [`Plan`] with
//! one source for each transport of the listeners, one relay, and one output for each server and file.
//! Not here: the meaning of statements (`process::relay`), the options of the command line (`staunch::cli`).

mod transport;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use deliver::plan::{QueueKind, QueueLimits, SenderPlan, WhenFull};
use model::{OutputId, SourceId, TransformId};
use process::aggregation_rules::AggregationRuleLimits;
use process::relay::RelayPlan;
use wire::graphite::Namespace;
use wire::graphite::input::{Compatibility, Kept};

use crate::relay::flags::{Settings, Submission};
use crate::relay::{
    Compression, Lines, Listener, Lowered, Mistake, Proto, Receptor, RelayConf, RelayOutput, Server,
    has_errors, lower,
};
use config::address::{destination_name, loopback_addresses};
use config::diagnostic::{Code, Diagnostic};
use config::native::{graphite_source, own_source};
use config::plan::{
    Destination, Endpoint, Feed, GraphiteEncoding, Listen, OutputKind, OutputPlan, Plan, RelayOwnPlan,
    RelayReport, RelayTransform, SYNC_WINDOW_MS, SourceKind, SourcePlan, TransformKind, TransformPlan,
};

/// Name of the relay.
pub const RELAY: &str = "relay";

/// Name of its first source; later ones get a number.
const SOURCE: &str = "lines";

/// Name of the source of its statistics.
pub const STATISTICS: &str = "statistics";

/// A configuration, a command line, and options of ours.
#[derive(Clone, Copy, Debug)]
pub struct Relay<'a> {
    /// The configuration.
    pub conf: &'a RelayConf,
    /// The command line.
    pub settings: &'a Settings,
    /// Whether `-q` was given. Otherwise queues have a limit in bytes, and not one of 25,000 records.
    pub queue_given: bool,
    /// Directory for disk queues of all endpoints; none for queues in memory.
    pub queue_dir: Option<&'a Path>,
    /// The HTTP API; none when switched off.
    pub http: Option<SocketAddr>,
}

/// The plan, when there is no error, and the mistakes.
pub fn relay(asked: &Relay<'_>) -> (Option<Plan>, Vec<Mistake>) {
    let mut wrong = Vec::new();
    let mut plan = Plan { http: asked.http, ..Plan::default() };
    if let Some(dir) = asked.queue_dir {
        plan.data_dir = dir.to_owned();
    }
    plan.sources = sources(asked, &mut wrong);
    plan.sources.push(statistics(asked));
    let from = (0..plan.sources.len()).map(|at| Feed::Source(SourceId(at as u16))).collect();
    let Lowered { plan: relay, outputs } = lower(asked.conf);
    let feed = Feed::Transform(TransformId(0));
    plan.outputs = outputs_of(asked, &relay, &outputs, feed);
    let relay = RelayTransform {
        plan: relay,
        names_max: RelayTransform::NAMES_MAX,
        aggregation_rules: AggregationRuleLimits::default(),
    };
    plan.transforms.push(TransformPlan {
        name: RELAY.to_owned(),
        kind: TransformKind::Relay(Box::new(relay)),
        from,
    });
    let failed = has_errors(&wrong);
    (Some(plan).filter(|_| !failed), wrong)
}

/// The default listeners: TCP and UDP at every address, and a unix socket.
fn default_listeners(port: u16) -> Vec<Listener> {
    let at = |proto| Receptor::Port { host: None, port, proto };
    let socket = Receptor::Unix(format!("/tmp/.s.carbon-c-relay.{port}"));
    let receptors = vec![at(Proto::Tcp), at(Proto::Udp), socket];
    vec![Listener { compression: Compression::Plain, tls: None, receptors }]
}

fn sources(asked: &Relay<'_>, wrong: &mut Vec<Mistake>) -> Vec<SourcePlan> {
    let defaults;
    let listeners = if asked.conf.listen.is_empty() {
        defaults = default_listeners(asked.settings.port);
        &defaults
    } else {
        &asked.conf.listen
    };
    let mut sources: Vec<SourcePlan> = Vec::new();
    for (at, listener) in listeners.iter().enumerate() {
        let name = if at == 0 { SOURCE.to_owned() } else { format!("{SOURCE}-{}", at + 1) };
        sources.push(source(name, asked.settings, listener, wrong));
    }
    sources
}

fn source(name: String, settings: &Settings, listener: &Listener, wrong: &mut Vec<Mistake>) -> SourcePlan {
    let mut plan = graphite_source(&name, Compatibility::CRelay);
    if let SourceKind::Graphite(source) = &mut plan.kind {
        source.reading.name_bytes_max = settings.name_bytes_max;
        source.reading.kept = Kept::new(&settings.allowed);
    }
    plan.listen = listener.receptors.iter().filter_map(|receptor| listen(receptor, wrong)).collect();
    // The original's length includes the line end.
    plan.line_bytes_max = settings.line_bytes_max.saturating_sub(1) as usize;
    plan.idle_timeout_ms = settings.idle_timeout_ms;
    if let Some(bytes) = settings.buffer_bytes {
        plan.receive_buffer_bytes = u64::from(bytes);
    }
    plan.compression = listener.compression;
    plan.tls = listener.tls.as_ref().and_then(|tls| transport::listen(tls, settings.ca.as_deref(), wrong));
    plan
}

/// The relay's own statistics, as a source.
fn statistics(asked: &Relay<'_>) -> SourcePlan {
    let Relay { conf: RelayConf { statistics, .. }, settings, .. } = asked;
    let report = match settings.submission {
        Submission::Report => RelayReport::Line,
        Submission::Quiet => RelayReport::Losses,
        Submission::No if settings.debug => RelayReport::Log,
        Submission::No => RelayReport::Points,
    };
    let own = RelayOwnPlan {
        every_ms: if report == RelayReport::Line { 1_000 } else { u64::from(statistics.every_s) * 1_000 },
        reset: statistics.reset,
        prefix: statistics.prefix_for(&settings.hostname),
        report,
    };
    SourcePlan { kind: SourceKind::RelayOwn(own), ..own_source(STATISTICS) }
}

fn listen(receptor: &Receptor, wrong: &mut Vec<Mistake>) -> Option<Listen> {
    let (host, port, proto) = match receptor {
        Receptor::Unix(path) => return Some(Listen::UnixStream { path: path.into(), mode: None }),
        Receptor::Port { host, port, proto } => (host, *port, *proto),
    };
    let ip = match host {
        None => Some(IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
        Some(host) => host.parse().ok().or_else(|| loopback_addresses(host).first().copied()),
    };
    let Some(ip) = ip else {
        let host = host.as_deref().unwrap_or_default();
        let message = format!("`listen` at `{host}`: names are not looked up here");
        let hint = "write the address of this machine at which to listen, or no address for all of them";
        wrong.push(Mistake::ours(0, Diagnostic::error(Code::ImportBadValue, message).hint(hint)));
        return None;
    };
    let address = SocketAddr::new(ip, port);
    Some(match proto {
        Proto::Tcp => Listen::Tcp(address),
        Proto::Udp => Listen::Udp(address),
    })
}

fn outputs_of(asked: &Relay<'_>, relay: &RelayPlan, outputs: &[RelayOutput], feed: Feed) -> Vec<OutputPlan> {
    let queue_kind = match asked.queue_dir {
        Some(_) => QueueKind::Disk { sync_window_ms: SYNC_WINDOW_MS },
        None => QueueKind::Memory,
    };
    // Clients wait for an endpoint that is slow, but not for one that is down.
    let when_full = if asked.settings.stalls == 0 { WhenFull::DropOldest } else { WhenFull::BlockWhileUp };
    let mut queue = QueueLimits { when_full, ..QueueLimits::default_of(queue_kind) };
    if asked.queue_given {
        queue.records_max = u64::from(asked.settings.queue);
    }
    let mut names = Names::of(relay);
    let mut plans: Vec<OutputPlan> = Vec::with_capacity(outputs.len());
    for (at, output) in outputs.iter().enumerate() {
        let kind = match output {
            RelayOutput::Server(server) => server_output(asked, &asked.conf.servers[*server]),
            RelayOutput::File { path, ip } => file_output(path, *ip),
        };
        let name = names.free(OutputId(at as u16), &kind);
        let (from, required, check) = (vec![feed], false, None);
        plans.push(OutputPlan { name, kind, from, queue, queue_kind, required, check });
    }
    plans
}

/// Longest part of an output's name that comes from its cluster.
const CLUSTER_BYTES_MAX: usize = 48;

/// A cluster's name, changed to be valid as the name of an output in a native file.
fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
    let name: String = name.chars().map(plain).take(CLUSTER_BYTES_MAX).collect();
    if name.starts_with(|c: char| c.is_ascii_alphanumeric()) { name } else { format!("c{name}") }
}

/// Names of outputs.
struct Names {
    /// The name of the first cluster of each output, changed to be valid.
    clusters: BTreeMap<OutputId, String>,
    /// Of clusters: an output without an endpoint must not have the name of a cluster's endpoints together.
    of_clusters: BTreeSet<String>,
    taken: BTreeSet<String>,
    /// The last number of names that were taken already.
    numbers: BTreeMap<String, usize>,
}

impl Names {
    fn of(relay: &RelayPlan) -> Names {
        let mut clusters = BTreeMap::new();
        for cluster in &relay.clusters {
            for member in &cluster.members {
                if let Some(output) = member.node.output() {
                    clusters.entry(output).or_insert_with(|| plain(&cluster.name));
                }
            }
        }
        let of_clusters = relay.clusters.iter().map(|cluster| plain(&cluster.name)).collect();
        Names { clusters, of_clusters, taken: BTreeSet::new(), numbers: BTreeMap::new() }
    }

    /// A unique name for an output, as native files have it: `CLUSTER/host:port` for one of several endpoints.
    fn free(&mut self, output: OutputId, kind: &OutputKind) -> String {
        let cluster = self.clusters.get(&output).map_or(RELAY, |cluster| cluster);
        let (word, endpoint) = match kind {
            OutputKind::Graphite { to, .. } => ("", destination_name(&Destination::Tcp(to.clone()))),
            OutputKind::GraphiteDatagrams { to, .. } => {
                ("-udp", destination_name(&Destination::Udp(to.clone())))
            }
            _ => ("-file", String::new()),
        };
        let start = format!("{cluster}{word}");
        let end = if endpoint.is_empty() { endpoint } else { format!("/{endpoint}") };
        let number = self.numbers.entry(format!("{start}{end}")).or_insert(0);
        loop {
            *number += 1;
            let count = if *number == 1 { String::new() } else { format!("-{number}") };
            let name = format!("{start}{count}{end}");
            if !(end.is_empty() && self.of_clusters.contains(&name)) && self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

fn server_output(asked: &Relay<'_>, server: &Server) -> OutputKind {
    let Server { host, port, proto, lines, compression, tls, .. } = server;
    let to = Endpoint { host: host.clone(), port: *port };
    let syslog = *lines == Lines::Syslog;
    // The original retries every 200 to 300 ms without end.
    let timeout_ms = u64::from(asked.settings.timeout_ms);
    let sender = SenderPlan {
        retry_min_ms: 250,
        retry_max_ms: 1_000,
        connect_timeout_ms: timeout_ms,
        write_timeout_ms: 10_000,
    };
    match proto {
        Proto::Tcp => OutputKind::Graphite {
            to,
            form: if syslog { GraphiteEncoding::Syslog } else { GraphiteEncoding::Lines },
            namespace: Namespace::default(),
            sender,
            connections: 1,
            line_bytes_max: OutputKind::LINE_BYTES_MAX,
            compression: *compression,
            tls: transport::endpoint(tls, asked.settings.ca.as_deref()),
        },
        Proto::Udp => OutputKind::GraphiteDatagrams { to, syslog, namespace: Namespace::default(), sender },
    }
}

fn file_output(path: &str, peer: bool) -> OutputKind {
    let namespace = Namespace::default();
    OutputKind::GraphiteFile { path: PathBuf::from(path), file_bytes_max: 0, files_max: 0, peer, namespace }
}
