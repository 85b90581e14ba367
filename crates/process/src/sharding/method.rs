//! The sharding methods, their options, and what makes a cluster of them invalid.
//!
//! Not here: how a method finds the owner of a key (`ring`, `carbon`, `shards`).

/// Maximum endpoints of a cluster.
pub const ENDPOINTS_MAX: usize = 1024;

/// Maximum virtual shards of a cluster.
pub const SHARDS_MAX: usize = 65_536;

/// The sharding method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sharding {
    /// The ring of node's cluster proxy: MD5, 40 digests per endpoint (39 in clusters of some sizes).
    StatsdNode(RingReplicas),
    /// The ring of libketama with equal weights: MD5, 40 digests per endpoint, four points each.
    Ketama,
    /// Jump consistent hash over 64-bit FNV-1a, as in jjneely's statsrelay (Go).
    Jump(ShardTable),
    /// 32-bit MurmurHash3 with seed 0xaccd3d34, modulo the number of shards, as in the statsrelay of Lyft and Uber
    /// (C, later Rust).
    Murmur3Statsrelay(ShardTable),
    /// carbon-c-relay's `carbon_ch`: a ring of MD5 by address or instance.
    CarbonCh,
    /// carbon-c-relay's `fnv1a_ch`: a ring of FNV-1a by address and port, or by instance.
    Fnv1aCh,
    /// carbon-c-relay's `jump_fnv1a_ch`: jump hash over the endpoints in the order of their instances.
    JumpFnv1aCh,
    /// carbon-c-relay's `any_of`: FNV-1a modulo the number of endpoints.
    AnyOf,
    /// The ring of carbon's own daemons, written in Python.
    CarbonPython {
        /// The hash function and its input.
        hash: CarbonHash,
        /// One point per endpoint, and a key's hash modulo their number (`fast-hashing`).
        fast: bool,
        /// Owners of one key are on different hosts (`DIVERSE_REPLICAS`, on by default).
        diverse: bool,
    },
}

/// `ROUTER_HASH_TYPE` of carbon's own daemons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CarbonHash {
    /// MD5 by address and instance.
    #[default]
    CarbonCh,
    /// FNV-1a by instance.
    Fnv1aCh,
    /// MurmurHash3 by address and instance.
    Mmh3Ch,
}

/// Points of the ring per digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RingReplicas {
    /// Statsd since 0.8.0 (hashring 3.2.0): the first word of the digest.
    #[default]
    One,
    /// Statsd before 0.8.0 (hashring 1.0.1): all four words.
    Four,
}

/// The endpoint of each virtual shard, by index; empty for one shard per endpoint, in order.
///
/// With many more shards than endpoints, a cluster is resized by moving some shards to the new endpoint: the keys
/// of all other shards stay where they are.
pub type ShardTable = Vec<usize>;

impl Sharding {
    /// The method's name in configuration files.
    pub fn name(&self) -> &'static str {
        match self {
            Sharding::StatsdNode(_) => "statsd-node",
            Sharding::Ketama => "ketama",
            Sharding::Jump(_) => "jump",
            Sharding::Murmur3Statsrelay(_) => "murmur3-statsrelay",
            Sharding::CarbonCh => "carbon_ch",
            Sharding::Fnv1aCh => "fnv1a_ch",
            Sharding::JumpFnv1aCh => "jump_fnv1a_ch",
            Sharding::AnyOf => "any_of",
            Sharding::CarbonPython { .. } => "carbon-python",
        }
    }
}

/// Why a cluster is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterMistake {
    /// More than [`ENDPOINTS_MAX`] endpoints.
    TooManyEndpoints,
    /// More than [`SHARDS_MAX`] shards.
    TooManyShards,
    /// Two endpoints have the same label, so that their points would coincide.
    SameLabel {
        /// The one listed first.
        first: usize,
        /// The one listed again.
        again: usize,
    },
    /// A shard is assigned to an endpoint that is not listed.
    NoSuchEndpoint {
        /// Index of the shard.
        shard: usize,
        /// The endpoint that it names.
        endpoint: usize,
    },
    /// A label is not `HOST:PORT` or `HOST:PORT=INSTANCE`.
    BadLabel {
        /// Index of the endpoint.
        endpoint: usize,
    },
    /// The replication is 0, more than the number of endpoints, or more than one where the method supports only
    /// one.
    BadReplication {
        /// The configured replication.
        replication: u8,
        /// The maximum.
        most: usize,
    },
}

impl std::fmt::Display for ClusterMistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ClusterMistake::TooManyEndpoints => write!(f, "a cluster has at most {ENDPOINTS_MAX} endpoints"),
            ClusterMistake::TooManyShards => write!(f, "a cluster has at most {SHARDS_MAX} shards"),
            ClusterMistake::SameLabel { first, again } => {
                write!(f, "endpoint {again} is endpoint {first} again")
            }
            ClusterMistake::NoSuchEndpoint { shard, endpoint } => {
                write!(f, "shard {shard} is on endpoint {endpoint}, which is not listed")
            }
            ClusterMistake::BadLabel { endpoint } => {
                write!(f, "endpoint {endpoint} is not given as HOST:PORT or HOST:PORT=INSTANCE")
            }
            ClusterMistake::BadReplication { replication, most } => {
                write!(f, "a key can be on 1 to {most} endpoints, not on {replication}")
            }
        }
    }
}

impl std::error::Error for ClusterMistake {}
