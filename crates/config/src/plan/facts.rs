//! What the rest of the program asks about a kind of source or output. A new kind answers in one place: [`OutputKind::facts`] or
//! [`SourceKind::facts`]. Code outside of `config` and of the encoders and parsers of `pipeline` looks at these facts, and not at
//! the kind: how it is sent, not what it is.
//!
//! Not here: the kinds themselves (`source`, `output`); what a kind takes and gives (the table in `options::section`).

use std::path::Path;

use deliver::plan::SenderPlan;
use wire::graphite::{LinePrefix, Namespace};

use super::{Addresses, Compression, Destination, EndpointTls};
use crate::kinds::{NodeKind, RecordKind};
use crate::options::section::Section;

/// What an output is to everything but its encoder.
#[derive(Clone, Debug)]
pub struct OutputFacts<'a> {
    /// The section that makes it.
    pub section: Section,
    /// Kinds of records that it takes, as far as its options let it.
    pub takes: &'static [RecordKind],
    /// How its bytes leave.
    pub link: Link<'a>,
    /// What its queue consists of.
    pub written: Written,
    /// Which of several encodings it writes, where blocks of one must not go on as blocks of another.
    pub encoding: Option<&'static str>,
    /// What stands before each line.
    pub line_prefix: Option<LinePrefix>,
    /// Longest line of points, without its LF; `u32::MAX` for no limit.
    pub line_bytes_max: u32,
    /// What series of aggregates are called, where that is up to options.
    pub namespace: Option<&'a Namespace>,
}

/// How the bytes of an output leave.
#[derive(Clone, Debug)]
pub enum Link<'a> {
    /// On connections.
    Stream(StreamLink<'a>),
    /// As datagrams.
    Datagrams {
        /// Where they go.
        to: Destination,
        /// Retries and time-outs.
        sender: SenderPlan,
        /// Which addresses of its name get them.
        addresses: Addresses,
    },
    /// Into a file.
    File {
        /// The file that is written now.
        path: &'a Path,
        /// A file that is larger is rotated; 0: none ever is.
        file_bytes_max: u64,
        /// Rotated files that are kept.
        files_max: u32,
        /// The file is closed while nothing is written.
        closes_when_idle: bool,
    },
    /// To standard output.
    Stdout,
    /// To standard error.
    Stderr,
}

/// Connections of an output.
#[derive(Clone, Debug)]
pub struct StreamLink<'a> {
    /// Where they go.
    pub to: Destination,
    /// Retries and time-outs.
    pub sender: SenderPlan,
    /// Which addresses of its name get them.
    pub addresses: Addresses,
    /// Connections that share the queue.
    pub connections: u8,
    /// How their bytes are packed.
    pub compression: Compression,
    /// How they are encrypted, if they are.
    pub tls: Option<&'a EndpointTls>,
}

impl StreamLink<'_> {
    /// One plain connection.
    pub(crate) fn plain(to: Destination, sender: SenderPlan) -> StreamLink<'static> {
        StreamLink {
            to,
            sender,
            addresses: Addresses::First,
            connections: 1,
            compression: Compression::Plain,
            tls: None,
        }
    }
}

impl Link<'_> {
    /// The endpoint; none for files and the console.
    pub fn destination(&self) -> Option<&Destination> {
        match self {
            Link::Stream(StreamLink { to, .. }) | Link::Datagrams { to, .. } => Some(to),
            Link::File { .. } | Link::Stdout | Link::Stderr => None,
        }
    }

    /// Connections that share the queue: 1 where there are none.
    pub fn connections(&self) -> usize {
        match self {
            Link::Stream(stream) => usize::from(stream.connections),
            Link::Datagrams { .. } | Link::File { .. } | Link::Stdout | Link::Stderr => 1,
        }
    }
}

/// What the blocks of an output's queue consist of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// Graphite lines, `name value time`.
    PointLines,
    /// Lines of another kind.
    Lines,
    /// Pickle frames of points.
    Pickle,
    /// One document for each flush.
    Documents,
    /// Packets, and frames of what is packed anew.
    Packets,
}

/// What a source is to everything but its intake.
#[derive(Clone, Copy, Debug)]
pub struct SourceFacts<'a> {
    /// Its row in the table of kinds.
    pub node: &'static NodeKind,
    /// The daemon's own figures, which are no traffic: how often in milliseconds, and what their names begin with.
    pub report: Option<(u64, &'a str)>,
    /// A line that a shell can send to it.
    pub to_try: Option<&'static str>,
    /// Whether the names of its points have their tags in them.
    pub names_have_tags: bool,
}

impl SourceFacts<'_> {
    /// True for points, which no aggregation reads.
    pub fn gives_points(&self) -> bool {
        self.node.gives.contains(&RecordKind::Points)
    }
}
