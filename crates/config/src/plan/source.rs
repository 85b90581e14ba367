//! Sources of a checked plan: what comes in, where, and how it is read.

use std::net::SocketAddr;
use std::path::PathBuf;

use model::AckWhen;
use wire::graphite::input;
use wire::statsd::{Dialect, Options};

use super::{Compression, ListenTls, SourceFacts};
use crate::kinds::NodeKind;
use crate::options::section::Section;

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

impl Listen {
    /// The address of a socket of the network, and whether it takes datagrams. None for a path.
    pub fn socket(&self) -> Option<(SocketAddr, bool)> {
        match self {
            Listen::Udp(address) => Some((*address, true)),
            Listen::Tcp(address) => Some((*address, false)),
            Listen::UnixStream { .. } | Listen::UnixDatagram { .. } | Listen::UnixFrames { .. } => None,
        }
    }

    /// True when each packet comes as a datagram.
    pub fn is_datagram(&self) -> bool {
        matches!(self, Listen::Udp(_) | Listen::UnixDatagram { .. })
    }
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
    /// Most of them from one peer; half of them where it is none.
    pub connections_per_peer_max: Option<usize>,
    /// A connection that sent nothing for so long is closed; 0 for never.
    pub idle_timeout_ms: u64,
    /// Longest line of a stream, in bytes.
    pub line_bytes_max: usize,
    /// Whether the last line of a stream counts although its LF never came (node drops it).
    pub tail_counts: bool,
    /// When clients on connections are told that a line need not be kept; never where it is none.
    pub ack_when: Option<AckWhen>,
    /// How its streams are packed; only [`SourceKind::Graphite`] has others than plain ones.
    pub compression: Compression,
    /// How they are encrypted, if they are; only of [`SourceKind::Graphite`].
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
    /// Graphite points, which go on as they are.
    Graphite(GraphiteSource),
    /// Lines of OpenTSDB, which become points.
    OpenTsdb,
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
    pub messages: Option<input::MessageEncoding>,
    /// Longest message, in bytes.
    pub message_bytes_max: usize,
}

impl GraphiteSource {
    /// Default of `max_message_bytes`.
    pub const MESSAGE_BYTES_MAX: usize = 16 << 20;

    /// Lines, read as a compatibility reads them.
    pub fn of(compatibility: input::Compatibility) -> GraphiteSource {
        GraphiteSource {
            reading: input::Options::of(compatibility),
            messages: None,
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
                let to_try = source.messages.is_none().then_some("hello.world 1 $(date +%s)");
                let names_have_tags = source.reading.names_have_tags();
                SourceFacts { names_have_tags, ..facts(Section::SourceGraphite, None, to_try) }
            }
            SourceKind::OpenTsdb => {
                facts(Section::SourceOpenTsdb, None, Some("put hello.world $(date +%s) 1 host=here"))
            }
            SourceKind::Own(OwnPlan { every_ms, prefix }) => {
                SourceFacts { report: Some((*every_ms, prefix)), ..facts(Section::SourceSelf, None, None) }
            }
            SourceKind::RelayOwn(own) => SourceFacts {
                report: Some((own.every_ms, &own.prefix)),
                names_have_tags: RelayOwnPlan::reading().names_have_tags(),
                ..facts(Section::SourceSelf, Some("carbon-c-relay"), None)
            },
        }
    }

    /// How its StatsD lines are read. Own lines mean the same in every dialect; what gives points is no StatsD.
    pub fn reading(&self) -> Options {
        if let SourceKind::Statsd(options) = self { *options } else { Options::of(Dialect::Union) }
    }

    /// The daemon's own figures as StatsD lines.
    pub fn as_own(&self) -> Option<&OwnPlan> {
        if let SourceKind::Own(own) = self { Some(own) } else { None }
    }

    /// The relays' own figures.
    pub fn as_relay_own(&self) -> Option<&RelayOwnPlan> {
        if let SourceKind::RelayOwn(own) = self { Some(own) } else { None }
    }

    /// True for points, which no aggregation reads.
    pub fn gives_points(&self) -> bool {
        self.facts().gives_points()
    }

    /// True for the daemon's own figures, which are no traffic.
    pub fn is_own(&self) -> bool {
        self.facts().report.is_some()
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

impl RelayOwnPlan {
    /// How its points are read: a relay's own are cleaned as the original cleans them.
    pub fn reading() -> input::Options {
        input::Options::of(input::Compatibility::CRelay)
    }
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
