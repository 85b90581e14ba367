//! The checked plan: what exists here is valid. Built from a native file, an original's file, or the defaults.

use std::net::SocketAddr;
use std::path::PathBuf;

use deliver::plan::{QueueKind, QueueLimits, SenderPlan};
use model::{AckWhen, OutputId, SourceId, TransformId};
use process::aggregate::AggregatePlan;
use process::placement::{HealthPlan, KeyForm, Placement};
use process::relay::{RelayPlan, Statement};
use process::rollup::RollupLimits;
use process::stage::StagePlan;
use wire::graphite::{Namespace, input};
use wire::statsd::rewrite::{AggregateForm, NegativeGauges, RewritePlan, TimerType};
use wire::statsd::{Dialect, Options};

pub use crate::transport::{EndpointTls, Identity, ListenTls, Packing, PemFile, TlsVersion};

/// A whole pipeline and the daemon around it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Sources; a [`SourceId`] is an index into them.
    pub sources: Vec<SourcePlan>,
    /// Transforms; a [`TransformId`] is an index into them.
    pub transforms: Vec<TransformPlan>,
    /// Outputs; a [`model::OutputId`] is an index into them.
    pub outputs: Vec<OutputPlan>,
    /// Outputs that share the lines of their sources instead of each getting all of them.
    pub clusters: Vec<ClusterPlan>,
    /// HTTP: `/healthz`, `/metrics`, `/api/v1`. None when switched off.
    pub http: Option<SocketAddr>,
    /// StatsD management ports.
    pub management: Vec<ManagementPlan>,
    /// Where files go that have no path of their own.
    pub data_dir: PathBuf,
    /// Longest time between SIGTERM and exit, in milliseconds.
    pub stop_timeout_ms: u64,
    /// Longest time that nobody reads while another process takes over, in milliseconds.
    pub take_over_timeout_ms: u64,
    /// Reload when the config file changes, not only on SIGHUP.
    pub reload_on_change: bool,
    /// True for the built-in defaults: a taken port is then a warning, not an error.
    pub built_in: bool,
}

/// Why a source's lines cannot be acknowledged when their copies are safe, or delivered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Against<'a> {
    /// They become part of an aggregate, which is in memory, and is many lines in one.
    Aggregated(&'a TransformPlan),
    /// The output's queue is in memory.
    InMemory(&'a OutputPlan),
    /// Nothing proves that what the output sends has arrived.
    Datagrams(&'a OutputPlan),
}

impl Plan {
    /// What stands first against acknowledging the lines of `source` at that time; none when nothing does.
    pub fn against(&self, source: SourceId, when: AckWhen) -> Option<Against<'_>> {
        if when == AckWhen::Accepted {
            return None;
        }
        let mut transforms = self.transforms.iter().filter(|transform| transform.from.contains(&source));
        if let Some(transform) = transforms.find(|transform| transform.kind.aggregates()) {
            return Some(Against::Aggregated(transform));
        }
        let takes = |output: &&OutputPlan| output.from.iter().any(|feed| self.leads_from(source, *feed));
        let mut outputs = self.outputs.iter().filter(takes);
        if when == AckWhen::Safe {
            return outputs.find(|output| !output.queue_kind.is_disk()).map(Against::InMemory);
        }
        let sends_datagrams =
            |kind: &OutputKind| matches!(kind, OutputKind::Packets(packets) if packets.to.is_datagram());
        outputs.find(|output| sends_datagrams(&output.kind)).map(Against::Datagrams)
    }
}

impl Plan {
    /// Whether a feed brings the records of `source` as they are: it is the source, or a relay of it.
    pub fn leads_from(&self, source: SourceId, feed: Feed) -> bool {
        match feed {
            Feed::Source(id) => id == source,
            Feed::Transform(id) => self.transforms.get(id.index()).is_some_and(|transform| {
                transform.kind.as_relay().is_some() && transform.from.contains(&source)
            }),
        }
    }

    /// Whether the names that a relay gets have their tags in them: that is up to its sources, of which the first is asked.
    pub fn tags_are_named(&self, relay: &str) -> bool {
        let transform = self.transforms.iter().find(|transform| transform.name == relay);
        let source = transform.and_then(|transform| self.sources.get(transform.from.first()?.index()));
        let points = source.and_then(|source| source.kind.points());
        points.is_some_and(|points| points.reading.names_have_tags())
    }

    /// Aggregations with their ids, in the plan's order.
    pub fn aggregates(&self) -> impl Iterator<Item = (TransformId, &TransformPlan, &AggregateTransform)> {
        let transforms = self.transforms.iter().enumerate();
        transforms.filter_map(|(at, plan)| Some((TransformId(at as u16), plan, plan.kind.as_aggregate()?)))
    }

    /// Relays with their ids, in the plan's order.
    pub fn relays(&self) -> impl Iterator<Item = (TransformId, &TransformPlan, &RelayTransform)> {
        let transforms = self.transforms.iter().enumerate();
        transforms.filter_map(|(at, plan)| Some((TransformId(at as u16), plan, plan.kind.as_relay()?)))
    }
}

/// One place that a source listens at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// `udp://host:port`.
    Udp(SocketAddr),
    /// `tcp://host:port`, lines.
    Tcp(SocketAddr),
    /// `unix:///path`: stream of lines. `mode` is the socket file's permissions.
    UnixStream {
        /// Path; `@name` for an abstract one.
        path: PathBuf,
        /// Permissions of the socket file.
        mode: Option<u32>,
    },
    /// `unixgram:///path`: datagrams.
    UnixDatagram {
        /// Path; `@name` for an abstract one.
        path: PathBuf,
        /// Permissions of the socket file.
        mode: Option<u32>,
    },
    /// `unix-frames:///path`: stream of packets, each behind its length as 4 bytes little-endian (DogStatsD).
    UnixFrames {
        /// Path; `@name` for an abstract one.
        path: PathBuf,
        /// Permissions of the socket file.
        mode: Option<u32>,
    },
}

/// A source.
#[derive(Clone, Debug, PartialEq)]
pub struct SourcePlan {
    /// As the user named it.
    pub name: String,
    /// Its protocol.
    pub kind: SourceKind,
    /// Where it listens; at least one, and none for [`SourceKind::Own`] and [`SourceKind::RelayOwn`].
    pub listen: Vec<Listen>,
    /// Receive buffer of each datagram socket, in bytes.
    pub receive_buffer_bytes: u64,
    /// Most connections at once.
    pub connections_max: usize,
    /// A connection that sent nothing for so long is closed; 0 for never.
    pub idle_timeout_ms: u64,
    /// Longest line of a stream, in bytes.
    pub line_bytes_max: usize,
    /// Whether the last line of a stream counts although its LF never came (node drops it).
    pub tail_counts: bool,
    /// When clients on connections are told that a line need not be kept; never where it is none.
    pub ack_when: Option<AckWhen>,
    /// How its streams are packed; only [`SourceKind::Graphite`] has others than plain ones.
    pub packing: Packing,
    /// How they are encrypted, if they are; only of [`SourceKind::Graphite`].
    pub tls: Option<Box<ListenTls>>,
}

/// Protocol of a source.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceKind {
    /// StatsD, in one of its dialects.
    Statsd(Options),
    /// Graphite points, which go on as they are.
    Graphite(GraphiteSource),
    /// The daemon's own figures as StatsD lines. It listens nowhere, and is not traffic.
    Own(OwnPlan),
    /// The relays' own figures as points, under carbon-c-relay's names. It listens nowhere.
    RelayOwn(RelayOwnPlan),
}

/// How Graphite points come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphiteSource {
    /// How lines are read, and the elements of messages.
    pub reading: input::Options,
    /// Frames of messages in the place of lines.
    pub messages: Option<input::MessageForm>,
    /// Longest message, in bytes.
    pub message_bytes_max: usize,
}

impl GraphiteSource {
    /// Default of `message_bytes_max`.
    pub const MESSAGE_BYTES_MAX: usize = 16 << 20;

    /// Lines, read as a personality reads them.
    pub fn of(personality: input::Personality) -> GraphiteSource {
        GraphiteSource {
            reading: input::Options::of(personality),
            messages: None,
            message_bytes_max: GraphiteSource::MESSAGE_BYTES_MAX,
        }
    }
}

impl SourceKind {
    /// How its StatsD lines are read. Own lines mean the same in every dialect, and points are no StatsD.
    pub fn reading(&self) -> Options {
        match self {
            SourceKind::Statsd(options) => *options,
            SourceKind::Own(_) | SourceKind::Graphite(_) | SourceKind::RelayOwn(_) => {
                Options::of(Dialect::Union)
            }
        }
    }

    /// How its points are read; none when it gives none. A relay's own are cleaned as the original cleans them.
    pub fn points(&self) -> Option<GraphiteSource> {
        match self {
            SourceKind::Graphite(source) => Some(*source),
            SourceKind::RelayOwn(_) => Some(GraphiteSource::of(input::Personality::CRelay)),
            SourceKind::Statsd(_) | SourceKind::Own(_) => None,
        }
    }

    /// True for points, which nothing aggregates.
    pub fn is_graphite(&self) -> bool {
        self.points().is_some()
    }

    /// True for the daemon's own figures, which are no traffic.
    pub fn is_own(&self) -> bool {
        matches!(self, SourceKind::Own(_) | SourceKind::RelayOwn(_))
    }
}

/// Self-metrics as a source (spec statsd §14 R11).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnPlan {
    /// Time between two reports, in milliseconds.
    pub every_ms: u64,
    /// What names begin with, before a dot; may be empty.
    pub prefix: String,
}

/// Statistics of relays under carbon-c-relay's names (spec graphite §2.10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayOwnPlan {
    /// Time between two reports, in milliseconds.
    pub every_ms: u64,
    /// Counters are differences to the report before (`reset counters after interval`), and not totals.
    pub reset: bool,
    /// What names begin with, before a dot.
    pub prefix: String,
    /// What becomes of a report.
    pub report: RelayReport,
}

/// What becomes of a report on relays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RelayReport {
    /// Points, which go where the relays' statements say.
    #[default]
    Points,
    /// Lines of the log (`-d`).
    Log,
    /// One line for people on stdout (`-S`).
    Line,
    /// Nothing but a word in the log on losses and queues that are filling up, which the others have too (`-s`).
    Losses,
}

impl RelayReport {
    /// Each of them.
    pub const ALL: [RelayReport; 4] =
        [RelayReport::Points, RelayReport::Log, RelayReport::Line, RelayReport::Losses];

    /// The word in native files.
    pub fn word(self) -> &'static str {
        match self {
            RelayReport::Points => "points",
            RelayReport::Log => "log",
            RelayReport::Line => "line",
            RelayReport::Losses => "losses",
        }
    }
}

/// A transform.
#[derive(Clone, Debug, PartialEq)]
pub struct TransformPlan {
    /// As the user named it.
    pub name: String,
    /// What it does.
    pub kind: TransformKind,
    /// Sources that feed it; at least one. Those of an aggregation share one set of [`Options`].
    pub from: Vec<SourceId>,
}

/// What a transform does.
#[derive(Clone, Debug, PartialEq)]
pub enum TransformKind {
    /// Aggregates samples by window.
    Aggregate(Box<AggregateTransform>),
    /// Sends points on by their names.
    Relay(Box<RelayTransform>),
}

impl TransformKind {
    /// The aggregation, if it is one.
    pub fn as_aggregate(&self) -> Option<&AggregateTransform> {
        match self {
            TransformKind::Aggregate(aggregate) => Some(aggregate),
            TransformKind::Relay(_) => None,
        }
    }

    /// The relay, if it is one.
    pub fn as_relay(&self) -> Option<&RelayTransform> {
        match self {
            TransformKind::Relay(relay) => Some(relay),
            TransformKind::Aggregate(_) => None,
        }
    }

    /// Whether records that it takes become part of something else.
    pub fn aggregates(&self) -> bool {
        match self {
            TransformKind::Aggregate(_) => true,
            TransformKind::Relay(relay) => {
                relay.plan.statements.iter().any(|statement| matches!(statement, Statement::Aggregate(_)))
            }
        }
    }
}

/// A relay with what surrounds it.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayTransform {
    /// The statements. Its outputs are those of the [`Plan`]; each takes from this relay alone.
    pub plan: RelayPlan,
    /// Names whose way is remembered, at most.
    pub names_max: u64,
    /// Bounds of what its `aggregate` statements hold.
    pub rollups: RollupLimits,
}

impl RelayTransform {
    /// Default of `names_max`: with names of 48 bytes some 400 MiB when all of them are there.
    pub const NAMES_MAX: u64 = 4 << 20;
}

/// An aggregation with what surrounds it.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregateTransform {
    /// The aggregation itself.
    pub plan: AggregatePlan,
    /// Name of the daemon's own counters (`<prefix>.packets_received` …); empty for none.
    pub stats_prefix: String,
    /// Which self counters exist: node's three, or Perl's two.
    pub self_counters: SelfCounters,
    /// File of the `keyFlush` report; stdout when absent.
    pub key_flush_log: Option<PathBuf>,
    /// Milliseconds between two checkpoints of its state; 0 for none.
    pub checkpoint_ms: u64,
}

/// `checkpoint` of an aggregation that does not say: every five seconds, but never where the original that is stood in
/// for begins each start with nothing.
///
/// Saving costs the shard's thread about 20 ns a series (example `checkpoint_cost`): every 5 s that is 0.4 % of a core for
/// a million series, and what a crash takes from a window of 10 s is at most half of it.
pub fn default_checkpoint_ms(dialect: Dialect) -> u64 {
    match dialect {
        Dialect::Union | Dialect::Dogstatsd => 5_000,
        Dialect::Etsy | Dialect::Perl => 0,
    }
}

/// Counters about itself that an aggregation reports beside the users' series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelfCounters {
    /// `bad_lines_seen`, `packets_received`, `metrics_received`, gauge `timestamp_lag` (spec statsd §15).
    Node,
    /// `bad_lines_seen`, `packets_received`.
    Perl,
    /// None.
    None,
}

/// What feeds an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feed {
    /// Raw packets or events of a source.
    Source(SourceId),
    /// What a transform gives.
    Transform(TransformId),
}

/// An output.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputPlan {
    /// As the user named it; with several endpoints `name/host:port`.
    pub name: String,
    /// Where the records go and in which form.
    pub kind: OutputKind,
    /// What feeds it; at least one.
    pub from: Vec<Feed>,
    /// Bounds of its queue.
    pub queue: QueueLimits,
    /// Where its queue is kept.
    pub queue_kind: QueueKind,
    /// Whether `/ready` says no while its endpoint is down.
    pub required: bool,
    /// How its endpoint is asked whether it is well; none: only by sending to it.
    pub check: Option<CheckPlan>,
}

/// Endpoints among which lines are shared: each goes to the one that owns its key.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterPlan {
    /// As the user named it.
    pub name: String,
    /// How keys are placed.
    pub placement: Placement,
    /// What of a line is its key.
    pub key: KeyForm,
    /// Its outputs, in the order that the placement goes by. They are fed through the cluster only.
    pub members: Vec<OutputId>,
    /// What the placement knows each member as: `host:port` as the user wrote it.
    pub labels: Vec<String>,
}

/// An active check of an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckPlan {
    /// What is asked.
    pub kind: CheckKind,
    /// Where.
    pub at: Endpoint,
    /// Time between two checks, and how long an answer may take, in milliseconds.
    pub every_ms: u64,
    /// How many answers decide.
    pub health: HealthPlan,
}

/// What a check asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckKind {
    /// `health` on a StatsD management port; the answer holds `up` (spec statsd §13).
    Management,
    /// That a TCP connection can be made.
    Connect,
    /// GET this path; the status is 200 to 299.
    Http(String),
}

/// A host and a port, resolved when needed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// Name or address.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// Form and place of an output.
#[derive(Clone, Debug, PartialEq)]
pub enum OutputKind {
    /// Graphite over TCP.
    Graphite {
        /// One endpoint.
        to: Endpoint,
        /// Lines or pickle frames.
        form: GraphiteForm,
        /// What series are called.
        namespace: Namespace,
        /// Retries and time-outs.
        sender: SenderPlan,
        /// Connections that share its queue, each with series of its own; at least 1.
        connections: u8,
        /// How their bytes are packed.
        packing: Packing,
        /// How they are encrypted, if they are.
        tls: Option<Box<EndpointTls>>,
    },
    /// Graphite lines over UDP, each a datagram of its own.
    GraphiteDatagrams {
        /// One endpoint.
        to: Endpoint,
        /// Each line is a syslog message.
        syslog: bool,
        /// Retries and time-outs.
        sender: SenderPlan,
    },
    /// Graphite lines in a file.
    GraphiteFile {
        /// The file that is written now; rotated ones get `.1`, `.2`, ….
        path: PathBuf,
        /// A file that is larger is rotated; 0: none ever is, and others may move it away.
        file_bytes_max: u64,
        /// Rotated files that are kept.
        files_max: u32,
        /// The client's address stands before each line.
        peer: bool,
        /// What series are called.
        namespace: Namespace,
    },
    /// One document per flush on stdout or stderr.
    Console {
        /// Its form.
        form: ConsoleForm,
        /// Indented (`prettyprint`).
        pretty: bool,
    },
    /// Net::Statsd::Server's file backend (spec statsd §9.3), appended to.
    PerlFile {
        /// The file.
        path: PathBuf,
        /// Keys that start with this and a dot are left out.
        stats_prefix: String,
    },
    /// Packets of a source, or what becomes of their lines, to an endpoint that takes StatsD.
    Packets(PacketsPlan),
    /// Events as JSON lines appended to a file of bounded size.
    EventFile {
        /// The file that is written now; rotated ones get `.1`, `.2`, ….
        path: PathBuf,
        /// A file that is larger is rotated.
        file_bytes_max: u64,
        /// Rotated files that are kept.
        files_max: u32,
    },
}

/// An output of packets.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketsPlan {
    /// One endpoint.
    pub to: Destination,
    /// How packets follow each other on a stream; nothing to datagrams.
    pub framing: Framing,
    /// Which addresses of its name get them.
    pub addresses: Addresses,
    /// Retries and time-outs.
    pub sender: SenderPlan,
    /// What becomes of their lines. None: packets go as they came.
    pub lines: Option<Box<LinesPlan>>,
}

/// An output that looks into packets: takes lines apart, may leave some out or change them, and packs them anew. It
/// takes aggregates too, as samples.
#[derive(Clone, Debug, PartialEq)]
pub struct LinesPlan {
    /// Which lines it wants.
    pub stage: StagePlan,
    /// What is changed in them.
    pub rewrite: RewritePlan,
    /// Longest packet that several lines may make, in bytes; 0: each line is a packet.
    pub packet_bytes_max: usize,
    /// Longest time that a line waits for others, in milliseconds.
    pub flush_delay_ms: u64,
    /// How aggregates become samples.
    pub aggregates: AggregateForm,
}

impl LinesPlan {
    /// Default of `packet_bytes_max` for UDP: what fits into a frame of 1,500 bytes with its headers, and some to spare.
    pub const UDP_PACKET_BYTES_MAX: usize = 1432;

    /// The same for unix sockets and streams.
    pub const OTHER_PACKET_BYTES_MAX: usize = 8192;

    /// Default of `flush_delay`.
    pub const FLUSH_DELAY_MS: u64 = 100;

    /// Default of `series_idle`.
    pub const SERIES_IDLE_NS: u64 = 3_600 * 1_000_000_000;

    /// All lines of an output to `to`, unchanged: packed anew, or each its own packet.
    pub fn new(to: &Destination, each_its_own: bool) -> LinesPlan {
        let packet_bytes_max = LinesPlan::packet_bytes_default(to);
        LinesPlan {
            stage: StagePlan { series_idle_ns: LinesPlan::SERIES_IDLE_NS, ..StagePlan::default() },
            rewrite: RewritePlan::default(),
            packet_bytes_max: if each_its_own { 0 } else { packet_bytes_max },
            flush_delay_ms: LinesPlan::FLUSH_DELAY_MS,
            aggregates: AggregateForm {
                names: RewritePlan::default(),
                negative_gauges: NegativeGauges::ZeroFirst,
                timer_type: TimerType::Timer,
                packed: false,
                zero_counters: false,
                times: false,
                line_bytes_max: packet_bytes_max,
            },
        }
    }

    /// Longest packet of several lines when nothing else is asked for.
    pub fn packet_bytes_default(to: &Destination) -> usize {
        match to {
            Destination::Udp(_) => LinesPlan::UDP_PACKET_BYTES_MAX,
            _ => LinesPlan::OTHER_PACKET_BYTES_MAX,
        }
    }
}

impl PacketsPlan {
    /// How UDP endpoints are treated: there is no connection that takes time to make, and what waits for one that is
    /// away soon becomes stale.
    pub const UDP_SENDER: SenderPlan = SenderPlan {
        retry_min_ms: 100,
        retry_max_ms: 2_000,
        connect_timeout_ms: 5_000,
        write_timeout_ms: 10_000,
    };
}

/// Where packets can go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Destination {
    /// Datagrams to a host.
    Udp(Endpoint),
    /// A stream to a host.
    Tcp(Endpoint),
    /// Datagrams to a unix socket; `@name` for an abstract one.
    UnixDatagram(PathBuf),
    /// A stream to a unix socket; `@name` for an abstract one.
    UnixStream(PathBuf),
}

impl Destination {
    /// True for a host and a port, not a path.
    pub fn is_host(&self) -> bool {
        matches!(self, Destination::Udp(_) | Destination::Tcp(_))
    }

    /// True when each packet is sent as a datagram.
    pub fn is_datagram(&self) -> bool {
        matches!(self, Destination::Udp(_) | Destination::UnixDatagram(_))
    }
}

/// `udp://host:port`, `unixgram:///path`, … as configs write it.
impl std::fmt::Display for Destination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&crate::address::destination_text(self))
    }
}

/// How packets follow each other on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// LF behind each packet that has none at its end.
    Lines,
    /// Its length before each packet, 4 bytes little-endian (DogStatsD).
    Frames,
}

/// Which addresses of an endpoint's name get packets; all together are one endpoint (spec statsd §14 R7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addresses {
    /// The first that works.
    #[default]
    First,
    /// All in turn: datagrams some here, some there; of connections each goes to the next.
    RoundRobin,
}

impl OutputKind {
    /// Whether it is a file that only others move away.
    pub fn moved_by_others(&self) -> bool {
        match self {
            OutputKind::GraphiteFile { file_bytes_max, .. }
            | OutputKind::EventFile { file_bytes_max, .. } => *file_bytes_max == 0,
            OutputKind::PerlFile { .. } => true,
            _ => false,
        }
    }

    /// Whether it writes who sent a point.
    pub fn names_peers(&self) -> bool {
        match self {
            OutputKind::Graphite { form, .. } => *form == GraphiteForm::Syslog,
            OutputKind::GraphiteDatagrams { syslog, .. } => *syslog,
            OutputKind::GraphiteFile { peer, .. } => *peer,
            _ => false,
        }
    }
}

/// Wire form of Graphite points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphiteForm {
    /// `name value time` lines.
    Lines,
    /// Pickle frames.
    Pickle,
    /// The same lines, each a syslog message.
    Syslog,
}

/// Form of the console's document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleForm {
    /// `Flushing stats at  <date>` and node's members as JSON, on stdout.
    Node,
    /// `Flushing stats at <localtime>` and one line of JSON, on stderr.
    Perl,
}

/// Whose replies a management port gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManagementReplies {
    /// Those of node's statsd.
    Node,
    /// Those of Net::Statsd::Server.
    Perl,
    /// Those of node's cluster proxy (spec statsd §13).
    Proxy {
        /// Whose live endpoints `status` lists: an index into [`Plan::clusters`].
        cluster: usize,
    },
}

/// A StatsD management port (spec statsd §11).
#[derive(Clone, Debug, PartialEq)]
pub struct ManagementPlan {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Whose replies it gives.
    pub replies: ManagementReplies,
    /// State that `health` answers at first.
    pub healthy: bool,
    /// What `config` prints: key, or `key > sub`, and value.
    pub config: Vec<(String, String)>,
    /// Refuse the `del*` commands.
    pub read_only: bool,
}
