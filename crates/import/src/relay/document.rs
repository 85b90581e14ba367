//! [`RelayConf`]: a checked configuration of carbon-c-relay.
//!
//! Names are resolved (a rule has the numbers of its clusters, a cluster those of its servers), expressions are
//! compiled, and the order is that of the files. A document that exists is valid. Two documents with the same content
//! are equal, wherever it was written: a [`Span`] equals every other.
//! Not here: the effect on a record (`process::relay`); how it is printed (`print`).

use process::aggregation_rules::Stamp;
use process::relay::{Distribution, To, statistics_prefix};
use process::sharding::Sharding;

use super::pattern::Pattern;

pub use super::span::Span;
pub use config::transport::{Compression, PemFile};

/// A whole configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelayConf {
    /// Clusters in the order of the files; names are unique.
    pub clusters: Vec<Cluster>,
    /// Servers in the order in which they were first named. Clusters share them: one queue, one connection.
    pub servers: Vec<Server>,
    /// Rules in the order of the files.
    pub rules: Vec<Rule>,
    /// Options of the relay's own statistics.
    pub statistics: Statistics,
    /// Listeners; empty for the defaults of the command line.
    pub listen: Vec<Listener>,
}

/// `cluster NAME …;`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// Its sharding, and its members.
    pub kind: ClusterKind,
    /// Where the name was written.
    pub span: Span,
}

/// The members of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterKind {
    /// Servers.
    Servers {
        /// The keyword: `forward`, `carbon_ch` ….
        word: &'static str,
        /// Which members get a record. `replication` is at most the number of members.
        distribution: Distribution,
        /// `useall`: every address of a name is a member.
        use_all: bool,
        /// Indices into the servers, in the order of the file.
        members: Vec<usize>,
    },
    /// `file`: lines appended to each path.
    File {
        /// With the client's address at the start of each line.
        ip: bool,
        /// The paths as written.
        paths: Vec<String>,
    },
}

impl ClusterKind {
    /// The keyword.
    pub fn word(&self) -> &'static str {
        match self {
            ClusterKind::Servers { word, .. } => word,
            ClusterKind::File { ip: true, .. } => "file ip",
            ClusterKind::File { ip: false, .. } => "file",
        }
    }

    /// Indices of its servers.
    pub fn members(&self) -> &[usize] {
        match self {
            ClusterKind::Servers { members, .. } => members,
            ClusterKind::File { .. } => &[],
        }
    }
}

/// Keywords of clusters of servers, and how they distribute records. carbon-c-relay has no `lb`; nanotube has.
pub(super) const DISTRIBUTIONS: [(&str, Distribution); 7] = [
    ("forward", Distribution::Copies),
    ("any_of", sharded(Sharding::AnyOf, true)),
    ("failover", Distribution::Failover),
    ("lb", Distribution::RoundRobin),
    ("carbon_ch", sharded(Sharding::CarbonCh, false)),
    ("fnv1a_ch", sharded(Sharding::Fnv1aCh, false)),
    ("jump_fnv1a_ch", sharded(Sharding::JumpFnv1aCh, false)),
];

const fn sharded(sharding: Sharding, fail_over: bool) -> Distribution {
    Distribution::Sharded { sharding, replication: 1, fail_over }
}

/// Whether a keyword is that of a consistent hash (spec graphite §3), which has options of its own.
pub(super) fn hashes(word: &str) -> bool {
    word.ends_with("_ch")
}

/// A member of clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Host name or address as written, without brackets.
    pub host: String,
    /// Port, never 0.
    pub port: u16,
    /// Its name on hash rings.
    pub instance: Option<String>,
    /// Its protocol.
    pub proto: Proto,
    /// Format of the lines.
    pub lines: Lines,
    /// Compression of the stream.
    pub compression: Compression,
    /// Encryption of the stream.
    pub tls: ServerTls,
    /// Where it was first named.
    pub span: Span,
}

/// `proto`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Proto {
    /// `tcp`
    #[default]
    Tcp,
    /// `udp`
    Udp,
}

impl Proto {
    /// The keyword.
    pub fn word(self) -> &'static str {
        match self {
            Proto::Tcp => "tcp",
            Proto::Udp => "udp",
        }
    }
}

/// `type` of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lines {
    /// `linemode`
    #[default]
    Plain,
    /// `syslog`: each line in a syslog message.
    Syslog,
}

impl Lines {
    /// The keyword.
    pub fn word(self) -> &'static str {
        match self {
            Lines::Plain => "linemode",
            Lines::Syslog => "syslog",
        }
    }
}

/// `ssl` and `mtls` of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ServerTls {
    /// Neither.
    #[default]
    None,
    /// `ssl`
    Tls,
    /// `mtls CERT KEY`
    Mutual {
        /// Our certificate.
        cert: PemFile,
        /// Its key.
        key: PemFile,
    },
}

/// One rule. A statement with several expressions is one rule here: they share the action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// `match …;`
    Match(MatchRule),
    /// `rewrite …;`
    Rewrite(RewriteRule),
    /// `aggregate …;`
    Aggregate(AggregateRule),
}

impl Rule {
    /// The whole statement.
    pub fn span(&self) -> Span {
        match self {
            Rule::Match(rule) => rule.span,
            Rule::Rewrite(rule) => rule.span,
            Rule::Aggregate(rule) => rule.span,
        }
    }

    /// Its expressions, in the order of the file.
    pub fn patterns(&self) -> &[Pattern] {
        match self {
            Rule::Match(rule) => &rule.patterns,
            Rule::Rewrite(rule) => std::slice::from_ref(&rule.pattern),
            Rule::Aggregate(rule) => &rule.patterns,
        }
    }

    /// The rule as an aggregation, if it is one.
    pub fn as_aggregate(&self) -> Option<&AggregateRule> {
        if let Rule::Aggregate(rule) = self { Some(rule) } else { None }
    }
}

/// `match …;`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchRule {
    /// At least one. Each is tried: without `stop`, a name that matches two is sent twice.
    pub patterns: Vec<Pattern>,
    /// Condition on the text after the name.
    pub validate: Option<Validate>,
    /// Text to hash instead of the name.
    pub route_using: Option<String>,
    /// Destination; nowhere for a rule that only validates, or does nothing.
    pub send: To,
    /// Later rules are not tried; always with [`To::Blackhole`].
    pub stop: bool,
    /// The whole statement.
    pub span: Span,
}

/// `validate EXPR else log|drop`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validate {
    /// Expression that must match.
    pub pattern: Pattern,
    /// Whether lines that fail are logged.
    pub log: bool,
}

/// `rewrite EXPR into REPL;`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewriteRule {
    /// The expression to replace.
    pub pattern: Pattern,
    /// The replacement.
    pub into: String,
    /// The whole statement.
    pub span: Span,
}

/// `aggregate …;`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggregateRule {
    /// At least one.
    pub patterns: Vec<Pattern>,
    /// Length of a bucket in seconds, at least 1.
    pub every_s: u32,
    /// Age at which a bucket is sent, in seconds; more than `every_s`.
    pub expire_s: u32,
    /// Which time of the bucket the point has.
    pub timestamp: Stamp,
    /// The aggregates to compute, at least one.
    pub computes: Vec<Compute>,
    /// Where results go; nowhere for back to the first rule.
    pub send: To,
    /// Matching input is not passed on.
    pub stop: bool,
    /// The whole statement.
    pub span: Span,
}

/// Keywords of `timestamp at … of bucket`.
pub(super) const STAMPS: [(&str, Stamp); 3] =
    [("start", Stamp::Start), ("middle", Stamp::Middle), ("end", Stamp::End)];

/// `compute TYPE write to REPL`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compute {
    /// The keyword as the original prints it.
    pub word: String,
    /// The aggregate.
    pub what: process::aggregation_rules::Compute,
    /// Name of the result, a replacement (spec graphite §2.6) for the matched part of a name.
    pub name: String,
}

/// `statistics …;`, all of them together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Seconds between two reports, at least 1.
    pub every_s: u32,
    /// Report differences.
    pub reset: bool,
    /// Replacement over the host name; none for `carbon.relays.\.1`.
    pub prefix: Option<String>,
    /// Where they go; nowhere for into the rules.
    pub send: To,
    /// Rules do not match them.
    pub stop: bool,
}

impl Default for Statistics {
    fn default() -> Statistics {
        Statistics { every_s: 60, reset: false, prefix: None, send: To::Nowhere, stop: false }
    }
}

impl Statistics {
    /// The prefix of names on a host: the replacement over `^(([^.]+)(\..*)?)$`.
    pub fn prefix_for(&self, hostname: &str) -> String {
        let written = self.prefix.as_deref().unwrap_or("carbon.relays.\\.1");
        String::from_utf8_lossy(&statistics_prefix(written, hostname)).into_owned()
    }
}

/// Receptors with one transport, from one `listen` statement or from several in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Compression of the stream.
    pub compression: Compression,
    /// Encryption of the stream.
    pub tls: Option<ListenTls>,
    /// At least one.
    pub receptors: Vec<Receptor>,
}

/// `ssl` and `mtls` of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenTls {
    /// Clients must show a certificate.
    pub mutual: bool,
    /// The file with chain and key.
    pub pem: PemFile,
    /// Oldest version.
    pub min: Option<TlsVersion>,
    /// Newest version.
    pub max: Option<TlsVersion>,
    /// Ciphers up to TLS 1.2, by their OpenSSL names.
    pub ciphers: Option<String>,
    /// Suites of TLS 1.3.
    pub suites: Option<String>,
}

/// `protomin`, `protomax`
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// `ssl3`
    Ssl3,
    /// `tls1.0`
    Tls10,
    /// `tls1.1`
    Tls11,
    /// `tls1.2`
    Tls12,
    /// `tls1.3`
    Tls13,
}

impl TlsVersion {
    /// All of them, the oldest first.
    pub const ALL: [TlsVersion; 5] =
        [TlsVersion::Ssl3, TlsVersion::Tls10, TlsVersion::Tls11, TlsVersion::Tls12, TlsVersion::Tls13];

    /// The keyword.
    pub fn word(self) -> &'static str {
        match self {
            TlsVersion::Ssl3 => "ssl3",
            TlsVersion::Tls10 => "tls1.0",
            TlsVersion::Tls11 => "tls1.1",
            TlsVersion::Tls12 => "tls1.2",
            TlsVersion::Tls13 => "tls1.3",
        }
    }
}

/// One address to listen at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receptor {
    /// `[HOST:]PORT proto tcp|udp`
    Port {
        /// Address or name; none for every address.
        host: Option<String>,
        /// Port, never 0.
        port: u16,
        /// TCP or UDP.
        proto: Proto,
    },
    /// `PATH proto unix`
    Unix(String),
}
