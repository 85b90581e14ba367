//! [`RelayConf`]: a checked configuration of carbon-c-relay.
//!
//! Names are resolved (a rule has the numbers of its clusters, a cluster those of its servers), expressions are
//! compiled, and the order is that of the files. A document that exists is valid. Two documents with the same content
//! are equal, wherever it was written: a [`Span`] equals every other.
//! Not here: the effect on a record (`process::relay`); how it is printed (`print`).

use process::sharding::Sharding;

use process::relay::statistics_prefix;

use super::pattern::Pattern;
use config::diagnostic::Place;

pub use config::transport::{Compression, PemFile};

/// Place in the files. Equal to every other span: documents are compared by their content.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Index into the files that were read.
    pub file: usize,
    /// Bytes of that file's text.
    pub place: Place,
}

impl PartialEq for Span {
    fn eq(&self, _: &Span) -> bool {
        true
    }
}

impl Eq for Span {}

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

/// How a cluster distributes records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterKind {
    /// `forward`, `any_of`, `failover`, and our `lb`.
    Plain {
        /// Which one.
        way: Way,
        /// Every address of a name is a member.
        use_all: bool,
        /// Indices into the servers, in the order of the file.
        members: Vec<usize>,
    },
    /// `carbon_ch`, `fnv1a_ch`, `jump_fnv1a_ch`.
    Hash {
        /// Which one.
        hash: Hash,
        /// Number of members that get each record: 1 to 255, and at most the number of members.
        replication: u8,
        /// Members fail over to each other.
        dynamic: bool,
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

/// Distribution without a hash ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Every member gets a copy.
    Forward,
    /// One member, by the hash of the name.
    AnyOf,
    /// The first member that is up.
    Failover,
    /// Round robin (nanotube's; carbon-c-relay has none).
    Balance,
}

impl Way {
    /// The keyword.
    pub fn word(self) -> &'static str {
        match self {
            Way::Forward => "forward",
            Way::AnyOf => "any_of",
            Way::Failover => "failover",
            Way::Balance => "lb",
        }
    }
}

/// Consistent hashing, as spec graphite §3 has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    /// §3.1
    Carbon,
    /// §3.2
    Fnv1a,
    /// §3.3
    JumpFnv1a,
}

impl Hash {
    /// The keyword.
    pub fn word(self) -> &'static str {
        match self {
            Hash::Carbon => "carbon_ch",
            Hash::Fnv1a => "fnv1a_ch",
            Hash::JumpFnv1a => "jump_fnv1a_ch",
        }
    }

    /// Its algorithm.
    pub fn sharding(self) -> Sharding {
        match self {
            Hash::Carbon => Sharding::CarbonCh,
            Hash::Fnv1a => Sharding::Fnv1aCh,
            Hash::JumpFnv1a => Sharding::JumpFnv1aCh,
        }
    }
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    pub route_using: Option<Replacement>,
    /// Destination; none for a rule that only validates, or does nothing.
    pub send: Option<SendTo>,
    /// Later rules are not tried; always with [`SendTo::Blackhole`].
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

/// `send to …`
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendTo {
    /// `blackhole`: drops the record, and always stops.
    Blackhole,
    /// Indices into the clusters, at least one, in the order of the file.
    Clusters(Vec<usize>),
}

/// `rewrite EXPR into REPL;`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewriteRule {
    /// The expression to replace.
    pub pattern: Pattern,
    /// The replacement.
    pub into: Replacement,
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
    pub timestamp: BucketTime,
    /// The aggregates to compute, at least one.
    pub computes: Vec<Compute>,
    /// Where results go; none for back to the first rule.
    pub send: Option<SendTo>,
    /// Matching input is not passed on.
    pub stop: bool,
    /// The whole statement.
    pub span: Span,
}

/// `timestamp at … of bucket`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BucketTime {
    /// `start`
    Start,
    /// `middle`
    Middle,
    /// `end`
    #[default]
    End,
}

impl BucketTime {
    /// The keyword.
    pub fn word(self) -> &'static str {
        match self {
            BucketTime::Start => "start",
            BucketTime::Middle => "middle",
            BucketTime::End => "end",
        }
    }
}

/// `compute TYPE write to REPL`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compute {
    /// The aggregate.
    pub what: ComputeType,
    /// Name of the result.
    pub name: Replacement,
}

/// An aggregate over the values of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComputeType {
    /// `sum`, `summary`
    Sum,
    /// `count`, `cnt`
    Count,
    /// `max`, `maximum`
    Max,
    /// `min`, `minimum`
    Min,
    /// `average`, `avg`
    Average,
    /// `median`
    Median,
    /// `percentileN`, N from 1 to 99.
    Percentile(u8),
    /// `variance`
    Variance,
    /// `stddev`
    Stddev,
}

impl ComputeType {
    /// The keyword as the original prints it.
    pub fn word(self) -> String {
        match self {
            ComputeType::Sum => "sum".into(),
            ComputeType::Count => "count".into(),
            ComputeType::Max => "max".into(),
            ComputeType::Min => "min".into(),
            ComputeType::Average => "average".into(),
            ComputeType::Median => "median".into(),
            ComputeType::Percentile(n) => format!("percentile{n}"),
            ComputeType::Variance => "variance".into(),
            ComputeType::Stddev => "stddev".into(),
        }
    }
}

/// A replacement text (spec graphite §2.6) for the matched part of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// As written, quotes resolved.
    pub written: String,
}

/// `statistics …;`, all of them together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Seconds between two reports, at least 1.
    pub every_s: u32,
    /// Report differences.
    pub reset: bool,
    /// Replacement over the host name; none for `carbon.relays.\.1`.
    pub prefix: Option<Replacement>,
    /// Where they go; none for into the rules.
    pub send: Option<SendTo>,
    /// Rules do not match them.
    pub stop: bool,
}

impl Default for Statistics {
    fn default() -> Statistics {
        Statistics { every_s: 60, reset: false, prefix: None, send: None, stop: false }
    }
}

impl Statistics {
    /// The prefix of names on a host: the replacement over `^(([^.]+)(\..*)?)$`.
    pub fn prefix_for(&self, hostname: &str) -> String {
        let written = self.prefix.as_ref().map_or("carbon.relays.\\.1", |prefix| &prefix.written);
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
