//! Outputs of a checked plan: destinations, encodings, queues, and clusters.

use std::path::{Path, PathBuf};

use deliver::plan::{QueueKind, QueueLimits, SenderPlan};
use model::OutputId;
use process::sharding::{HealthPlan, KeyForm, Sharding};
use process::stage::StagePlan;
use wire::graphite::{LinePrefix, Namespace};
use wire::statsd::rewrite::{AggregateEncoding, NegativeGauges, RewritePlan, TimerType};

use crate::kinds::RecordKind;
use crate::options::section::Section;

use super::{
    Compression, EmailPlan, EndpointTls, Feed, HttpOutputPlan, Link, OutputFacts, RequestForm,
    RiemannOutputPlan, StreamLink, WhisperPlan, Written,
};

/// Default of `sync_window`, in milliseconds.
pub const SYNC_WINDOW_MS: u64 = 10;

/// An output.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputPlan {
    /// The name given by the user; with several endpoints `name/host:port`.
    pub name: String,
    /// Its destination and encoding.
    pub kind: OutputKind,
    /// Its edges; at least one.
    pub from: Vec<Feed>,
    /// Limits of its queue.
    pub queue: QueueLimits,
    /// Where its queue is stored.
    pub queue_kind: QueueKind,
    /// Whether `/ready` fails while its endpoint is down.
    pub required: bool,
    /// The health check of its endpoint; `None` without one.
    pub check: Option<CheckPlan>,
}

impl OutputPlan {
    /// An output with a queue in memory, without a health check, and not required.
    pub fn new(name: impl Into<String>, kind: OutputKind, from: Vec<Feed>) -> OutputPlan {
        OutputPlan {
            name: name.into(),
            kind,
            from,
            queue: QueueLimits::default(),
            queue_kind: QueueKind::Memory,
            required: false,
            check: None,
        }
    }
}

/// Endpoints that shard lines: each line goes to the owner of its key.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterPlan {
    /// The name given by the user.
    pub name: String,
    /// The sharding of keys.
    pub sharding: Sharding,
    /// The part of a line that is its key.
    pub key: KeyForm,
    /// Its outputs, in the order of the sharding. They get lines only through the cluster.
    pub members: Vec<OutputId>,
    /// The label of each member in the sharding: `host:port` as written by the user.
    pub labels: Vec<String>,
}

/// A health check of an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckPlan {
    /// The kind of check.
    pub kind: CheckKind,
    /// Its address.
    pub at: Endpoint,
    /// Interval between two checks, and the timeout of a check, in milliseconds.
    pub every_ms: u64,
    /// How many results decide.
    pub health: HealthPlan,
}

/// The kind of a health check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckKind {
    /// `health` on a StatsD management port; the reply must contain `up` (spec statsd §13).
    Management,
    /// A TCP connection must succeed.
    Connect,
    /// A GET of this path must return a status of 200 to 299.
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

/// Destination and encoding of an output.
#[derive(Clone, Debug, PartialEq)]
pub enum OutputKind {
    /// Graphite over TCP.
    Graphite {
        /// One endpoint.
        to: Endpoint,
        /// Lines or pickle frames.
        form: GraphiteEncoding,
        /// The names of series.
        namespace: Namespace,
        /// Retries and time-outs.
        sender: SenderPlan,
        /// Connections that share its queue; each has its own series. At least 1.
        connections: u8,
        /// Longest line without its LF: longer ones are not sent. No effect on pickle frames.
        line_bytes_max: u32,
        /// Compression of its connections.
        compression: Compression,
        /// TLS of its connections, if any.
        tls: Option<Box<EndpointTls>>,
    },
    /// Graphite lines over UDP, one per datagram.
    GraphiteDatagrams {
        /// One endpoint.
        to: Endpoint,
        /// Each line is a syslog message.
        syslog: bool,
        /// The names of series.
        namespace: Namespace,
        /// Retries and time-outs.
        sender: SenderPlan,
    },
    /// Graphite lines in a file.
    GraphiteFile {
        /// The current file; rotated ones get `.1`, `.2`, ….
        path: PathBuf,
        /// Size at which the file is rotated; 0: never, but other programs may move it away.
        file_bytes_max: u64,
        /// Number of rotated files to keep.
        files_max: u32,
        /// Write the client's address before each line.
        peer: bool,
        /// The names of series.
        namespace: Namespace,
    },
    /// Whisper files.
    Whisper(Box<WhisperPlan>),
    /// `put` lines of OpenTSDB over TCP.
    OpenTsdb {
        /// One endpoint.
        to: Endpoint,
        /// What series of aggregates are called.
        namespace: Namespace,
        /// `name=value`, for points without tags.
        default_tag: String,
        /// Retries and time-outs.
        sender: SenderPlan,
    },
    /// One document per flush on stdout or stderr.
    Console {
        /// Its format.
        form: ConsoleEncoding,
        /// Indented (`prettyprint`).
        pretty: bool,
    },
    /// Net::Statsd::Server's file backend (spec statsd §9.3), appended to.
    PerlFile {
        /// The file.
        path: PathBuf,
        /// Keys that begin with this and a dot are omitted.
        stats_prefix: String,
    },
    /// Packets of a source, or their processed lines, to a StatsD endpoint.
    Packets(PacketsPlan),
    /// Events as JSON lines appended to a file of bounded size.
    EventFile {
        /// The current file; rotated ones get `.1`, `.2`, ….
        path: PathBuf,
        /// Size at which the file is rotated.
        file_bytes_max: u64,
        /// Number of rotated files to keep.
        files_max: u32,
    },
    /// Events to an HTTP server.
    Http(Box<HttpOutputPlan>),
    /// Events by mail.
    Email(Box<EmailPlan>),
    /// Events to another Riemann.
    Riemann(Box<RiemannOutputPlan>),
}

impl OutputKind {
    /// Default of `max_line_bytes` of an output of type `graphite`: carbon closes a connection at a longer line (spec
    /// graphite §1.1).
    pub const LINE_BYTES_MAX: u32 = 16 << 10;
}

/// An output of packets.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketsPlan {
    /// One endpoint.
    pub to: Destination,
    /// How packets are separated on a stream; no effect on datagrams.
    pub framing: Framing,
    /// Which addresses of its host name are used.
    pub addresses: Addresses,
    /// Retries and time-outs.
    pub sender: SenderPlan,
    /// The processing of their lines. `None`: packets are forwarded unchanged.
    pub lines: Option<Box<LinesPlan>>,
}

/// Processing of parsed packets: selects and changes lines, and repacks them. Such an output also takes aggregates, as
/// samples.
#[derive(Clone, Debug, PartialEq)]
pub struct LinesPlan {
    /// The selection of lines.
    pub stage: StagePlan,
    /// The changes of lines.
    pub rewrite: RewritePlan,
    /// Longest packet of several lines, in bytes; 0: one packet per line.
    pub packet_bytes_max: usize,
    /// Longest time that a line is delayed to be joined with others, in milliseconds.
    pub flush_delay_ms: u64,
    /// The conversion of aggregates to samples.
    pub aggregates: AggregateEncoding,
}

impl LinesPlan {
    /// Default of `max_packet_bytes` for UDP: it fits a frame of 1,500 bytes with its headers, with some reserve.
    pub const UDP_PACKET_BYTES_MAX: usize = 1432;

    /// The same for unix sockets and streams.
    pub const OTHER_PACKET_BYTES_MAX: usize = 8192;

    /// Default of `flush_delay`.
    pub const FLUSH_DELAY_MS: u64 = 100;

    /// Default of `series_expiry`.
    pub const SERIES_IDLE_NS: u64 = 3_600 * 1_000_000_000;

    /// All lines of an output to `to`, unchanged: repacked, or one packet per line.
    pub fn new(to: &Destination, each_its_own: bool) -> LinesPlan {
        let packet_bytes_max = LinesPlan::packet_bytes_default(to);
        LinesPlan {
            stage: StagePlan { series_idle_ns: LinesPlan::SERIES_IDLE_NS, ..StagePlan::default() },
            rewrite: RewritePlan::default(),
            packet_bytes_max: if each_its_own { 0 } else { packet_bytes_max },
            flush_delay_ms: LinesPlan::FLUSH_DELAY_MS,
            aggregates: LinesPlan::aggregates(packet_bytes_max),
        }
    }

    /// The default conversion of aggregates to samples.
    pub(crate) fn aggregates(line_bytes_max: usize) -> AggregateEncoding {
        AggregateEncoding {
            names: RewritePlan::default(),
            negative_gauges: NegativeGauges::ZeroFirst,
            timer_type: TimerType::Timer,
            packed: false,
            zero_counters: false,
            times: false,
            line_bytes_max,
        }
    }

    /// Default of the longest packet of several lines.
    pub fn packet_bytes_default(to: &Destination) -> usize {
        match to {
            Destination::Udp(_) => LinesPlan::UDP_PACKET_BYTES_MAX,
            _ => LinesPlan::OTHER_PACKET_BYTES_MAX,
        }
    }
}

impl PacketsPlan {
    /// Unchanged packets to `to`.
    pub fn new(to: Destination) -> PacketsPlan {
        let is_udp = matches!(to, Destination::Udp(_));
        let sender = if is_udp { PacketsPlan::UDP_SENDER } else { SenderPlan::default() };
        PacketsPlan { to, framing: Framing::Lines, addresses: Addresses::First, sender, lines: None }
    }

    /// Retries of UDP endpoints: connecting takes no time, and queued packets for an endpoint that is down soon become
    /// stale.
    pub const UDP_SENDER: SenderPlan = SenderPlan {
        retry_min_ms: 100,
        retry_max_ms: 2_000,
        connect_timeout_ms: 5_000,
        write_timeout_ms: 10_000,
    };
}

/// A destination of packets.
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

    /// The host and the port; none for a path.
    pub fn host(&self) -> Option<&Endpoint> {
        match self {
            Destination::Udp(to) | Destination::Tcp(to) => Some(to),
            Destination::UnixDatagram(_) | Destination::UnixStream(_) => None,
        }
    }

    /// True when each packet is sent as a datagram.
    pub fn is_datagram(&self) -> bool {
        matches!(self, Destination::Udp(_) | Destination::UnixDatagram(_))
    }
}

/// `udp://host:port`, `unixgram:///path`, … as written in configs.
impl std::fmt::Display for Destination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&crate::address::destination_text(self))
    }
}

/// How packets are separated on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// An LF after each packet that has none at its end.
    Lines,
    /// Its length before each packet, as 4 bytes little-endian (DogStatsD).
    Frames,
}

/// Which addresses of an endpoint's host name get packets; all are one endpoint (spec statsd §14 R7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addresses {
    /// The first address that works.
    #[default]
    First,
    /// All addresses in turn: for datagrams in parts, for streams with each new connection.
    RoundRobin,
}

impl OutputKind {
    /// The properties that all code except its encoder needs. The only match over kinds of outputs, besides those that
    /// read and print its options (`native`) and that of the encoders (`pipeline::encode`).
    pub fn facts(&self) -> OutputFacts<'_> {
        const EVENTS: &[RecordKind] = &[RecordKind::Events];
        const POINTS: &[RecordKind] = &[RecordKind::Aggregates, RecordKind::Points];
        let file = |section, takes, path, (file_bytes_max, files_max)| {
            let link = Link::File { path, file_bytes_max, files_max, closes_when_idle: false };
            OutputFacts::plain(section, takes, link, Written::Lines)
        };
        match self {
            OutputKind::Graphite {
                to,
                form,
                namespace,
                sender,
                connections,
                line_bytes_max,
                compression,
                tls,
            } => {
                let plain = StreamLink::plain(Destination::Tcp(to.clone()), *sender);
                let (compression, tls) = (*compression, tls.as_deref());
                let link = StreamLink { connections: *connections, compression, tls, ..plain };
                let (written, encoding, line_prefix) = form.facts();
                OutputFacts {
                    encoding: Some(encoding),
                    line_prefix,
                    line_bytes_max: if written == Written::Pickle { u32::MAX } else { *line_bytes_max },
                    namespace: Some(namespace),
                    ..OutputFacts::plain(Section::OutputGraphite, POINTS, Link::Stream(link), written)
                }
            }
            OutputKind::GraphiteDatagrams { to, syslog, namespace, sender } => {
                let to = Destination::Udp(to.clone());
                let link = Link::Datagrams { to, sender: *sender, addresses: Addresses::First };
                OutputFacts {
                    line_prefix: syslog.then_some(LinePrefix::Syslog),
                    namespace: Some(namespace),
                    ..OutputFacts::plain(Section::OutputGraphite, POINTS, link, Written::Packets)
                }
            }
            OutputKind::GraphiteFile { path, file_bytes_max, files_max, peer, namespace } => OutputFacts {
                written: if *peer { Written::Lines } else { Written::PointLines },
                line_prefix: peer.then_some(LinePrefix::Peer),
                namespace: Some(namespace),
                ..file(Section::OutputGraphiteFile, POINTS, path, (*file_bytes_max, *files_max))
            },
            OutputKind::Whisper(plan) => OutputFacts {
                namespace: Some(&plan.namespace),
                ..OutputFacts::plain(Section::OutputWhisper, POINTS, Link::Store(plan), Written::PointLines)
            },
            OutputKind::OpenTsdb { to, namespace, sender, .. } => {
                let link = Link::Stream(StreamLink::plain(Destination::Tcp(to.clone()), *sender));
                let facts = OutputFacts::plain(Section::OutputOpenTsdb, POINTS, link, Written::Lines);
                OutputFacts { namespace: Some(namespace), ..facts }
            }
            OutputKind::Console { form, .. } => console(*form),
            OutputKind::PerlFile { path, .. } => perl_file(path),
            OutputKind::Packets(packets) => packets.facts(),
            OutputKind::EventFile { path, file_bytes_max, files_max } => {
                file(Section::OutputEventFile, EVENTS, path, (*file_bytes_max, *files_max))
            }
            OutputKind::Http(plan) => OutputFacts {
                encoding: Some(plan.encoding.word()),
                ..requests(Section::OutputHttp, plan.endpoint(), plan.sender, RequestForm::Http(plan))
            },
            OutputKind::Email(plan) => {
                requests(Section::OutputEmail, plan.endpoint(), plan.sender, RequestForm::Mail(plan))
            }
            OutputKind::Riemann(plan) => plan.facts(),
        }
    }

    /// The same output to another endpoint of the same kind.
    pub fn with_destination(&self, destination: &Destination) -> OutputKind {
        let mut kind = self.clone();
        match &mut kind {
            OutputKind::Graphite { to, .. }
            | OutputKind::GraphiteDatagrams { to, .. }
            | OutputKind::OpenTsdb { to, .. } => {
                if let Some(host) = destination.host() {
                    *to = host.clone();
                }
            }
            OutputKind::Packets(packets) => {
                packets.to = destination.clone();
                // Datagrams have no framing, regardless of the section's option.
                if destination.is_datagram() {
                    packets.framing = Framing::Lines;
                }
            }
            OutputKind::Riemann(plan) => plan.to = destination.clone(),
            OutputKind::GraphiteFile { .. }
            | OutputKind::Whisper(_)
            | OutputKind::Console { .. }
            | OutputKind::PerlFile { .. }
            | OutputKind::EventFile { .. }
            | OutputKind::Http(_)
            | OutputKind::Email(_) => {}
        }
        kind
    }

    /// The destination; `None` for files and the console.
    pub fn destination(&self) -> Option<Destination> {
        self.facts().link.destination().cloned()
    }

    /// The file that it writes, and the number of its rotated files.
    pub fn file(&self) -> Option<(&Path, u32)> {
        match self.facts().link {
            Link::File { path, files_max, .. } => Some((path, files_max)),
            Link::Stream(_)
            | Link::Datagrams { .. }
            | Link::Requests { .. }
            | Link::Store(_)
            | Link::Stdout
            | Link::Stderr => None,
        }
    }

    /// Whether it is a file that only other programs rotate.
    pub fn moved_by_others(&self) -> bool {
        matches!(self.facts().link, Link::File { file_bytes_max: 0, .. })
    }

    /// The kinds of records that it takes with its options: one of packets that does not parse lines takes no
    /// aggregates.
    pub fn takes(&self) -> &'static [RecordKind] {
        self.facts().takes
    }

    /// Whether it writes the sender of a point.
    pub fn names_peers(&self) -> bool {
        self.facts().line_prefix.is_some()
    }
}

/// An output of events that sends requests.
fn requests(section: Section, to: Endpoint, sender: SenderPlan, form: RequestForm<'_>) -> OutputFacts<'_> {
    let link = Link::Requests { to: Destination::Tcp(to), sender, form };
    OutputFacts::plain(section, &[RecordKind::Events], link, Written::Lines)
}

/// A document for each flush on stdout or stderr.
fn console(form: ConsoleEncoding) -> OutputFacts<'static> {
    let (link, encoding) = match form {
        ConsoleEncoding::Node => (Link::Stdout, "Node"),
        ConsoleEncoding::Perl => (Link::Stderr, "Perl"),
    };
    let takes = &[RecordKind::Aggregates];
    let facts = OutputFacts::plain(Section::OutputConsole, takes, link, Written::Documents);
    OutputFacts { encoding: Some(encoding), ..facts }
}

fn perl_file(path: &Path) -> OutputFacts<'_> {
    let link = Link::File { path, file_bytes_max: 0, files_max: 0, closes_when_idle: true };
    OutputFacts::plain(Section::OutputPerlFile, &[RecordKind::Aggregates], link, Written::Documents)
}

impl<'a> OutputFacts<'a> {
    /// An output without options that others ask for.
    pub(super) fn plain(
        section: Section,
        takes: &'static [RecordKind],
        link: Link<'a>,
        written: Written,
    ) -> OutputFacts<'a> {
        OutputFacts {
            section,
            takes,
            link,
            written,
            encoding: None,
            line_prefix: None,
            line_bytes_max: u32::MAX,
            namespace: None,
        }
    }
}

impl PacketsPlan {
    fn facts(&self) -> OutputFacts<'_> {
        let (to, sender, addresses) = (self.to.clone(), self.sender, self.addresses);
        let section = match to {
            Destination::Udp(_) => Section::OutputUdp,
            Destination::Tcp(_) => Section::OutputTcp,
            Destination::UnixDatagram(_) | Destination::UnixStream(_) => Section::OutputUnix,
        };
        let link = match to.is_datagram() {
            true => Link::Datagrams { to, sender, addresses },
            false => Link::Stream(StreamLink { addresses, ..StreamLink::plain(to, sender) }),
        };
        let takes: &[RecordKind] = match self.lines {
            Some(_) => &[RecordKind::Packets, RecordKind::Aggregates],
            None => &[RecordKind::Packets],
        };
        let encoding = match self.framing {
            Framing::Lines => "Lines",
            Framing::Frames => "Frames",
        };
        OutputFacts { encoding: Some(encoding), ..OutputFacts::plain(section, takes, link, Written::Packets) }
    }
}

/// Encoding of Graphite points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphiteEncoding {
    /// `name value time` lines.
    Lines,
    /// Pickle frames.
    Pickle,
    /// The same lines, each a syslog message.
    Syslog,
}

impl GraphiteEncoding {
    /// What its bytes are, how the encoding is called, and what stands before each line.
    fn facts(self) -> (Written, &'static str, Option<LinePrefix>) {
        match self {
            GraphiteEncoding::Lines => (Written::PointLines, "Lines", None),
            GraphiteEncoding::Pickle => (Written::Pickle, "Pickle", None),
            GraphiteEncoding::Syslog => (Written::Lines, "Syslog", Some(LinePrefix::Syslog)),
        }
    }
}

/// Format of the console's document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleEncoding {
    /// `Flushing stats at  <date>` and node's members as JSON, on stdout.
    Node,
    /// `Flushing stats at <localtime>` and one line of JSON, on stderr.
    Perl,
}
