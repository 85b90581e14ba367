//! Sources of a checked plan: listeners and parsing.

use std::net::SocketAddr;
use std::path::PathBuf;

use model::AckWhen;
use wire::graphite::input;
use wire::statsd::{Dialect, Options};

use super::{Compression, ListenTls, SourceFacts};
use crate::kinds::NodeKind;
use crate::options::section::Section;

/// One listener of a source.
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
    /// `unix-frames:///path`: stream of packets, each after its length as 4 bytes little-endian (DogStatsD).
    UnixFrames {
        /// Path; `@name` for an abstract one.
        path: PathBuf,
        /// Permissions of the socket file.
        mode: Option<u32>,
    },
}

impl Listen {
    /// The address of a network socket, and whether it is for datagrams. `None` for a path.
    pub fn socket(&self) -> Option<(SocketAddr, bool)> {
        match self {
            Listen::Udp(address) => Some((*address, true)),
            Listen::Tcp(address) => Some((*address, false)),
            Listen::UnixStream { .. } | Listen::UnixDatagram { .. } | Listen::UnixFrames { .. } => None,
        }
    }

    /// True when it receives datagrams.
    pub fn is_datagram(&self) -> bool {
        matches!(self, Listen::Udp(_) | Listen::UnixDatagram { .. })
    }
}

/// A source.
#[derive(Clone, Debug, PartialEq)]
pub struct SourcePlan {
    /// The name given by the user.
    pub name: String,
    /// Its protocol.
    pub kind: SourceKind,
    /// Its listeners; at least one, except for [`SourceKind::Own`] and its like, which have none.
    pub listen: Vec<Listen>,
    /// Receive buffer of each datagram socket, in bytes.
    pub receive_buffer_bytes: u64,
    /// Most connections at once.
    pub connections_max: usize,
    /// Most connections of one peer; `None` for half of all.
    pub connections_per_peer_max: Option<usize>,
    /// Connections that send nothing for this long are closed; 0 for never.
    pub idle_timeout_ms: u64,
    /// Longest line of a stream, in bytes.
    pub line_bytes_max: usize,
    /// Whether the last line of a stream counts without its LF (node drops it).
    pub tail_counts: bool,
    /// The condition for acknowledging lines to clients on connections; `None` for no acknowledgements.
    pub ack_when: Option<AckWhen>,
    /// Compression of its streams; only [`SourceKind::Graphite`] has any.
    pub compression: Compression,
    /// TLS of its connections, if any; only for [`SourceKind::Graphite`] and [`SourceKind::Riemann`].
    pub tls: Option<Box<ListenTls>>,
}

impl SourcePlan {
    /// Most connections of one peer at once, per listener.
    pub fn connections_per_peer_max(&self) -> usize {
        let half = || model::limits::connections_per_peer(self.connections_max);
        self.connections_per_peer_max.unwrap_or_else(half)
    }
}

/// Protocol of a source.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceKind {
    /// StatsD, in one of its dialects.
    Statsd(Options),
    /// Graphite points, which are forwarded unchanged.
    Graphite(GraphiteSource),
    /// Lines of OpenTSDB, which become points.
    OpenTsdb,
    /// Messages of Riemann's clients, which have events.
    Riemann(RiemannSource),
    /// The daemon's own figures as StatsD lines. It listens nowhere, and is not traffic.
    Own(OwnPlan),
    /// The relays' own figures as points, with carbon-c-relay's names. It has no listener.
    RelayOwn(RelayOwnPlan),
    /// The daemon's own figures as points, with carbon's names. It has no listener.
    CarbonOwn(CarbonOwnPlan),
}

/// How Graphite points are received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphiteSource {
    /// The parsing of lines, and of elements of messages.
    pub reading: input::Options,
    /// What its connections carry.
    pub carries: Carries,
    /// Longest message, in bytes.
    pub message_bytes_max: usize,
}

/// How Riemann's events are received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RiemannSource {
    /// Longest message of a connection, or line of JSON, in bytes.
    pub message_bytes_max: usize,
    /// What its connections carry.
    pub encoding: RiemannEncoding,
    /// Whether the tags of a name become fields, with [`RiemannEncoding::Graphite`].
    pub tags: bool,
    /// Web pages elsewhere that may subscribe, with [`RiemannEncoding::Http`]; `*` for all.
    pub allowed_origins: Vec<String>,
}

impl Default for RiemannSource {
    fn default() -> RiemannSource {
        RiemannSource {
            message_bytes_max: wire::riemann::MESSAGE_BYTES_MAX,
            encoding: RiemannEncoding::Messages,
            tags: false,
            allowed_origins: Vec::new(),
        }
    }
}

/// What connections of a source of Riemann's events carry (spec riemann §§1, 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RiemannEncoding {
    /// Protobuf messages, each behind its length.
    Messages,
    /// HTTP: WebSockets, server-sent events, and bodies of JSON lines.
    Http,
    /// Lines of Graphite, each of which becomes an event (spec riemann §2.1).
    Graphite,
    /// Lines of OpenTSDB (spec riemann §2.2).
    Opentsdb,
}

/// What connections of a source of points carry (spec graphite §1.1 to §1.3, §1.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// Lines.
    Lines,
    /// Messages of many points, each behind its length.
    Messages(input::MessageEncoding),
    /// Requests of HTTP, whose bodies are lines or a message.
    Http,
}

impl GraphiteSource {
    /// Default of `max_message_bytes`.
    pub const MESSAGE_BYTES_MAX: usize = 16 << 20;

    /// Lines, parsed in a compatibility mode.
    pub fn of(compatibility: input::Compatibility) -> GraphiteSource {
        GraphiteSource {
            reading: input::Options::of(compatibility),
            carries: Carries::Lines,
            message_bytes_max: GraphiteSource::MESSAGE_BYTES_MAX,
        }
    }
}

impl SourceKind {
    /// What everything but its intake asks about it. The one match over kinds of sources, beside that which reads and prints its
    /// options (`native::sources`) and that of the protocols (`pipeline::intake::protocol`).
    pub fn facts(&self) -> SourceFacts<'_> {
        let facts = |section, encoding, to_try| SourceFacts {
            node: NodeKind::of(section, encoding).expect("the table of kinds has each source"),
            report: None,
            to_try,
            names_have_tags: false,
        };
        match self {
            SourceKind::Statsd(_) => facts(Section::SourceStatsd, None, Some("hello.world:1|c")),
            SourceKind::Graphite(source) => {
                // Nobody types a pickle.
                let to_try = (source.carries == Carries::Lines).then_some("hello.world 1 $(date +%s)");
                let names_have_tags = source.reading.names_have_tags();
                SourceFacts { names_have_tags, ..facts(Section::SourceGraphite, None, to_try) }
            }
            SourceKind::OpenTsdb => {
                facts(Section::SourceOpenTsdb, None, Some("put hello.world $(date +%s) 1 host=here"))
            }
            SourceKind::Riemann(source) => {
                let to_try = match source.encoding {
                    // Nobody types protobuf.
                    RiemannEncoding::Messages | RiemannEncoding::Http => None,
                    RiemannEncoding::Graphite => Some("hello.world 1 $(date +%s)"),
                    RiemannEncoding::Opentsdb => Some("put hello.world $(date +%s) 1 host=here"),
                };
                facts(Section::SourceRiemann, None, to_try)
            }
            SourceKind::Own(OwnPlan { every_ms, prefix }) => {
                SourceFacts { report: Some((*every_ms, prefix)), ..facts(Section::SourceSelf, None, None) }
            }
            SourceKind::RelayOwn(own) => SourceFacts {
                report: Some((own.every_ms, &own.prefix)),
                names_have_tags: RelayOwnPlan::reading().names_have_tags(),
                ..facts(Section::SourceSelf, Some("carbon-c-relay"), None)
            },
            SourceKind::CarbonOwn(own) => SourceFacts {
                report: Some((own.every_ms, &own.prefix)),
                names_have_tags: CarbonOwnPlan::reading().names_have_tags(),
                ..facts(Section::SourceSelf, Some("carbon"), None)
            },
        }
    }

    /// True when its connections carry HTTP.
    pub fn carries_http(&self) -> bool {
        self.takes_subscribers()
            || matches!(self, SourceKind::Graphite(source) if source.carries == Carries::Http)
    }

    /// True when clients on its connections subscribe to events.
    pub fn takes_subscribers(&self) -> bool {
        matches!(self, SourceKind::Riemann(source) if source.encoding == RiemannEncoding::Http)
    }

    /// Its own figures with carbon's names.
    pub fn as_carbon_own(&self) -> Option<&CarbonOwnPlan> {
        if let SourceKind::CarbonOwn(own) = self { Some(own) } else { None }
    }

    /// The parsing of its StatsD lines. Own lines have the same meaning in every dialect; a source of points has no
    /// StatsD lines.
    pub fn reading(&self) -> Options {
        if let SourceKind::Statsd(options) = self { *options } else { Options::of(Dialect::Union) }
    }

    /// The daemon's own metrics as StatsD lines.
    pub fn as_own(&self) -> Option<&OwnPlan> {
        if let SourceKind::Own(own) = self { Some(own) } else { None }
    }

    /// The relays' own metrics.
    pub fn as_relay_own(&self) -> Option<&RelayOwnPlan> {
        if let SourceKind::RelayOwn(own) = self { Some(own) } else { None }
    }

    /// True for points, which are not aggregated.
    pub fn gives_points(&self) -> bool {
        self.facts().gives_points()
    }

    /// True for the daemon's own metrics, which are not traffic.
    pub fn is_own(&self) -> bool {
        self.facts().report.is_some()
    }
}

/// Self-metrics as a source (spec statsd §14 R11).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnPlan {
    /// Time between two reports, in milliseconds.
    pub every_ms: u64,
    /// First part of the names, before a dot; may be empty.
    pub prefix: String,
}

/// Statistics of relays under carbon-c-relay's names (spec graphite §2.10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayOwnPlan {
    /// Time between two reports, in milliseconds.
    pub every_ms: u64,
    /// Counters are differences to the previous report (`reset counters after interval`) instead of totals.
    pub reset: bool,
    /// First part of the names, before a dot.
    pub prefix: String,
    /// The destination of a report.
    pub report: RelayReport,
}

impl RelayOwnPlan {
    /// The parsing of its points: a relay's own are cleaned as in the original.
    pub fn reading() -> input::Options {
        input::Options::of(input::Compatibility::CRelay)
    }
}

/// The destination of a report on relays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RelayReport {
    /// Points, which go to the destination in the relays' statements.
    #[default]
    Points,
    /// Lines of the log (`-d`).
    Log,
    /// One line on stdout (`-S`).
    Line,
    /// Only warnings in the log about losses and full queues, which the others include (`-s`).
    Losses,
}

/// Self-metrics under carbon's names (spec graphite §4.8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarbonOwnPlan {
    /// Time between two reports, in milliseconds.
    pub every_ms: u64,
    /// First part of the names, before a dot.
    pub prefix: String,
    /// The program of carbon whose figures they are.
    pub program: CarbonProgram,
}

impl CarbonOwnPlan {
    /// The parsing of its points.
    pub fn reading() -> input::Options {
        input::Options::of(input::Compatibility::Carbon)
    }
}

/// A program of carbon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CarbonProgram {
    /// carbon-cache.py
    #[default]
    Cache,
    /// carbon-relay.py
    Relay,
    /// carbon-aggregator.py
    Aggregator,
}
