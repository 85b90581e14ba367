//! The properties of a kind of source, transform or output that the rest of the program needs. A new kind defines them in
//! one place: [`OutputKind::facts`](super::OutputKind::facts), [`SourceKind::facts`](super::SourceKind::facts) or
//! [`TransformKind::facts`](super::TransformKind::facts). Code outside of `config` and of the encoders, parsers and
//! machines of `pipeline` uses these facts instead of the kind, except for what only one kind has.
//!
//! Not here: the kinds themselves (`source`, `transform`, `output`); what a kind takes and gives (the table in
//! `options::section`).

use std::path::Path;

use deliver::plan::{BatchPlan, SenderPlan};
use wire::graphite::{LinePrefix, Namespace};

use super::{
    Addresses, Compression, Destination, EmailPlan, EndpointTls, HttpOutputPlan, RiemannOutputPlan,
    WhisperPlan,
};
use crate::kinds::{NodeKind, RecordKind};
use crate::options::section::Section;

/// An output, for all code except its encoder.
#[derive(Clone, Debug)]
pub struct OutputFacts<'a> {
    /// Its section.
    pub section: Section,
    /// The kinds of records that it takes with its options.
    pub takes: &'static [RecordKind],
    /// How its bytes are sent.
    pub link: Link<'a>,
    /// What its queue contains.
    pub written: Written,
    /// Its encoding, if there are several: blocks of one must not be sent as blocks of another.
    pub encoding: Option<&'static str>,
    /// What is written before each line.
    pub line_prefix: Option<LinePrefix>,
    /// Longest line of points, without its LF; `u32::MAX` for no limit.
    pub line_bytes_max: u32,
    /// The names of series of aggregates, if options determine them.
    pub namespace: Option<&'a Namespace>,
}

/// How the bytes of an output leave.
#[derive(Clone, Debug)]
pub enum Link<'a> {
    /// On connections.
    Stream(StreamLink<'a>),
    /// As datagrams.
    Datagrams {
        /// Its endpoints.
        to: Destination,
        /// Retries and time-outs.
        sender: SenderPlan,
        /// Which addresses of its name are used.
        addresses: Addresses,
    },
    /// As requests, each with an answer.
    Requests {
        /// The endpoint.
        to: Destination,
        /// Retries and time-outs.
        sender: SenderPlan,
        /// What is sent.
        form: RequestForm<'a>,
    },
    /// Into a file.
    File {
        /// The current file.
        path: &'a Path,
        /// A larger file is rotated; 0: never.
        file_bytes_max: u64,
        /// Rotated files that are kept.
        files_max: u32,
        /// The file is closed after this time without writes.
        closes_when_idle: bool,
    },
    /// Into a store, which can be read: its blocks stay in the queue until their records are in it durably.
    Store(&'a WhisperPlan),
    /// To standard output.
    Stdout,
    /// To standard error.
    Stderr,
}

/// The requests of an output.
#[derive(Clone, Copy, Debug)]
pub enum RequestForm<'a> {
    /// To an HTTP server.
    Http(&'a HttpOutputPlan),
    /// Mails to an SMTP server.
    Mail(&'a EmailPlan),
    /// Messages to another Riemann.
    Riemann(&'a RiemannOutputPlan),
}

impl<'a> RequestForm<'a> {
    /// Limits of a request.
    pub fn batch(self) -> BatchPlan {
        match self {
            RequestForm::Http(plan) => plan.batch(),
            RequestForm::Mail(plan) => plan.batch(),
            RequestForm::Riemann(plan) => plan.batch(),
        }
    }

    /// The encryption of its connections, if any.
    pub fn tls(self) -> Option<&'a EndpointTls> {
        match self {
            RequestForm::Http(plan) => plan.tls.as_deref(),
            RequestForm::Mail(plan) => plan.tls.as_deref(),
            RequestForm::Riemann(plan) => plan.tls.as_deref(),
        }
    }

    /// Whether its endpoints are those of an option `to`.
    pub fn has_to(self) -> bool {
        match self {
            RequestForm::Http(_) | RequestForm::Mail(_) => false,
            RequestForm::Riemann(_) => true,
        }
    }
}

/// Connections of an output.
#[derive(Clone, Debug)]
pub struct StreamLink<'a> {
    /// The endpoint.
    pub to: Destination,
    /// Retries and time-outs.
    pub sender: SenderPlan,
    /// Which addresses of its name are used.
    pub addresses: Addresses,
    /// Connections that share the queue.
    pub connections: u8,
    /// The compression of their bytes.
    pub compression: Compression,
    /// Their encryption, if any.
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
            Link::Stream(StreamLink { to, .. }) | Link::Datagrams { to, .. } | Link::Requests { to, .. } => {
                Some(to)
            }
            Link::File { .. } | Link::Store(_) | Link::Stdout | Link::Stderr => None,
        }
    }

    /// Connections that share the queue: 1 if there are none.
    pub fn connections(&self) -> usize {
        match self {
            Link::Stream(stream) => usize::from(stream.connections),
            Link::Datagrams { .. }
            | Link::Requests { .. }
            | Link::File { .. }
            | Link::Store(_)
            | Link::Stdout
            | Link::Stderr => 1,
        }
    }
}

/// The contents of the blocks in an output's queue.
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
    /// Packets, and frames of repacked lines.
    Packets,
}

/// A source, for all code except its intake.
#[derive(Clone, Copy, Debug)]
pub struct SourceFacts<'a> {
    /// Its row in the table of kinds.
    pub node: &'static NodeKind,
    /// The daemon's own metrics, which are not traffic: the interval in milliseconds, and the prefix of their names.
    pub report: Option<(u64, &'a str)>,
    /// A line that a shell can send to it.
    pub to_try: Option<&'static str>,
    /// Whether the names of its points include their tags.
    pub names_have_tags: bool,
}

impl SourceFacts<'_> {
    /// True for points, which are not aggregated.
    pub fn gives_points(&self) -> bool {
        self.node.gives.contains(&RecordKind::Points)
    }
}

/// A transform, for all code that is not about one kind only.
#[derive(Clone, Copy, Debug)]
pub struct TransformFacts {
    /// Its row in the table of kinds.
    pub node: &'static NodeKind,
    /// Its records leave it one by one, though perhaps with another name: they are not parts of results.
    pub forwards: bool,
    /// What it does with records, as a participle: `check` prints it before the nodes that it feeds. None if each record
    /// goes to other nodes, as rules say that `check` prints.
    pub participle: Option<&'static str>,
}

impl TransformFacts {
    /// True for aggregates. A transform that takes points gets points made of them.
    pub fn gives_aggregates(&self) -> bool {
        self.node.gives.contains(&RecordKind::Aggregates)
    }
}
