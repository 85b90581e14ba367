//! What a config declares while it is evaluated: top-level streams, servers, outputs, and notes for its author.
//!
//! Nothing takes effect while a config is loaded (spec riemann §7.2): the daemon makes sources and outputs of these.

use std::fmt;

use arcstr::ArcStr;

use crate::graph::NodeId;
use crate::index::KeepKeys;
use crate::position::Position;
use crate::value::Value;

/// Most services, and most outputs, of a config: each is a node of the daemon's plan.
pub const DECLARED_MAX: usize = 1_000;
/// Most notes that are kept; a loop of a config can make any number of them.
pub const NOTES_MAX: usize = 1_000;

/// A declaration with its place in the config.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed<T> {
    /// What is declared.
    pub what: T,
    /// Where the function was called.
    pub at: Position,
}

/// A top-level stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Top {
    /// Its node.
    pub node: NodeId,
    /// Where `streams` was called with it.
    pub at: Position,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// A name or an IP address.
    pub host: ArcStr,
    /// The port.
    pub port: u16,
}

impl fmt::Display for Listen {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(to, "[{}]:{}", self.host, self.port),
            false => write!(to, "{}:{}", self.host, self.port),
        }
    }
}

/// The files of a TLS server (spec riemann §1.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The private key.
    pub key: ArcStr,
    /// The certificate.
    pub cert: ArcStr,
    /// The certificate of the authority of the clients' certificates.
    pub ca_cert: ArcStr,
}

/// TCP or UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// `:tcp`
    Tcp,
    /// `:udp`
    Udp,
}

/// A server of the config (spec riemann §2).
#[derive(Clone, Debug, PartialEq)]
pub enum Server {
    /// `tcp-server`
    Tcp {
        /// Its address.
        listen: Listen,
        /// Its TLS, if any.
        tls: Option<TlsFiles>,
    },
    /// `udp-server`
    Udp {
        /// Its address.
        listen: Listen,
    },
    /// `ws-server`
    WebSocket {
        /// Its address.
        listen: Listen,
        /// Origins of web pages elsewhere that may subscribe; `*` for all.
        allowed_origins: Vec<ArcStr>,
    },
    /// `sse-server`
    Sse {
        /// Its address.
        listen: Listen,
        /// As of a WebSocket server; that of `Access-Control-Allow-Origin` in `:headers` is one of them.
        allowed_origins: Vec<ArcStr>,
    },
    /// `graphite-server`
    Graphite {
        /// Its address.
        listen: Listen,
        /// TCP or UDP.
        transport: Transport,
        /// `:parser-fn`: a function of each event, or nil.
        parser: Value,
        /// `:tags`: whether `a;k=v` has fields.
        tags: bool,
    },
    /// `opentsdb-server`
    Opentsdb {
        /// Its address.
        listen: Listen,
        /// `:parser-fn`
        parser: Value,
    },
}

impl Server {
    /// The function that makes it.
    pub fn function(&self) -> &'static str {
        match self {
            Server::Tcp { .. } => "tcp-server",
            Server::Udp { .. } => "udp-server",
            Server::WebSocket { .. } => "ws-server",
            Server::Sse { .. } => "sse-server",
            Server::Graphite { .. } => "graphite-server",
            Server::Opentsdb { .. } => "opentsdb-server",
        }
    }

    /// The function through which its events go first, if it has one.
    pub fn parser(&self) -> Option<&Value> {
        match self {
            Server::Graphite { parser: Value::Nil, .. } | Server::Opentsdb { parser: Value::Nil, .. } => None,
            Server::Graphite { parser, .. } | Server::Opentsdb { parser, .. } => Some(parser),
            Server::Tcp { .. } | Server::Udp { .. } | Server::WebSocket { .. } | Server::Sse { .. } => None,
        }
    }

    /// Its address.
    pub fn listen(&self) -> &Listen {
        match self {
            Server::Tcp { listen, .. }
            | Server::Udp { listen, .. }
            | Server::WebSocket { listen, .. }
            | Server::Sse { listen, .. }
            | Server::Graphite { listen, .. }
            | Server::Opentsdb { listen, .. } => listen,
        }
    }

    /// How it listens: two servers cannot have the same port and transport.
    pub fn transport(&self) -> Transport {
        match self {
            Server::Udp { .. } | Server::Graphite { transport: Transport::Udp, .. } => Transport::Udp,
            Server::Tcp { .. }
            | Server::WebSocket { .. }
            | Server::Sse { .. }
            | Server::Graphite { transport: Transport::Tcp, .. }
            | Server::Opentsdb { .. } => Transport::Tcp,
        }
    }
}

/// The number of an output among those of a config.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OutputNumber(pub u16);

/// Where a config sends what it computes.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// `graphite`: lines of points.
    Graphite {
        /// A name or an IP address.
        host: ArcStr,
        /// The port.
        port: u16,
        /// TCP or UDP.
        transport: Transport,
    },
    /// `tcp-client`, `udp-client`: events to another Riemann, with `forward`.
    Riemann {
        /// A name or an IP address.
        host: ArcStr,
        /// The port.
        port: u16,
        /// TCP or UDP.
        transport: Transport,
        /// Its TLS, if any.
        tls: Option<TlsFiles>,
        /// Accept certificates of `ca-cert` with any name.
        skip_hostname_check: bool,
    },
    /// Requests to an HTTP server.
    Post(Box<Post>),
    /// Mails through a server.
    Mail(Box<Mailer>),
    /// `(staunch/output "NAME")`: events to an output of the native config.
    Named(ArcStr),
}

/// Requests of a config to an HTTP server (spec riemann §14).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// Where to; it may have places for attributes, such as `{{staunch.path}}`.
    pub url: ArcStr,
    /// Names and values of headers.
    pub headers: Vec<(ArcStr, ArcStr)>,
    /// What a request contains.
    pub form: PostForm,
    /// Whether it notifies people: what is queued for it outlives the process.
    pub is_notification: bool,
}

/// The server of a `mailer` (spec riemann §14.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mailer {
    /// `smtp://` or `smtps://`, host and port.
    pub smtp: ArcStr,
    /// Whether the connection is encrypted after its beginning.
    pub starttls: bool,
    /// The user, if the server wants one.
    pub user: Option<ArcStr>,
    /// Its password.
    pub password: Option<ArcStr>,
}

/// The body of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PostForm {
    /// Lines of InfluxDB, of events.
    InfluxDb {
        /// The fields that are tags.
        tags: Vec<ArcStr>,
        /// The unit of times.
        unit: TimeUnit,
    },
    /// The attribute `staunch.body` of each event.
    Body,
}

/// A unit of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
}

/// `(periodically-expire …)` (spec riemann §4.3).
#[derive(Clone, Debug, PartialEq)]
pub struct Reaper {
    /// Microseconds between two sweeps.
    pub interval_us: i64,
    /// The fields of expired events.
    pub keep: KeepKeys,
}

/// `(instrumentation …)` (spec riemann §15).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instrumentation {
    /// Microseconds between two reports.
    pub interval_us: i64,
    /// Whether there are any.
    pub enabled: bool,
}

impl Default for Instrumentation {
    fn default() -> Instrumentation {
        Instrumentation { interval_us: 10_000_000, enabled: true }
    }
}

/// Something about a config that its author should know, and that is no mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Where.
    pub at: Position,
    /// What.
    pub text: String,
}

/// See the module's header.
#[derive(Clone, Debug, Default)]
pub struct Declared {
    /// The top-level streams, in the order in which events pass them.
    pub top: Vec<Top>,
    /// The servers.
    pub servers: Vec<Placed<Server>>,
    /// The outputs; an [`OutputNumber`] is a place in it.
    pub outputs: Vec<Placed<Output>>,
    /// What expires events of the index; none if nothing does.
    pub reaper: Option<Placed<Reaper>>,
    /// The self-instrumentation; none unless the config says something about it.
    pub instrumentation: Option<Placed<Instrumentation>>,
    /// What its author should know.
    pub notes: Vec<Note>,
    /// Whether the load is over: what functions of events do adds no notes.
    pub(crate) is_loaded: bool,
}

impl Declared {
    /// Adds a note, unless there are too many, it is there already, or the load is over.
    pub fn note(&mut self, at: Position, text: impl Into<String>) {
        let note = Note { at, text: text.into() };
        if self.notes.len() < NOTES_MAX && !self.is_loaded && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}
