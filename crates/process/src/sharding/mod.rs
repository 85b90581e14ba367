//! Sharding: maps keys to endpoints of a cluster, instead of copying to all (spec statsd §13; R6 of §14; spec
//! graphite §3).
//!
//! Path of a line: `KeyReader::key` (the sharding key) -> **`Cluster::owner`** (`ring`, `carbon` or `shards`) ->
//! the queue of that endpoint. `health` turns results of checks into changes, which arrive as `Cluster::set_live`.
//! A relay calls `Cluster::owners` once per name, and `Cluster::fail_over` for each line whose owner is down.
//! Pure: no I/O, no clock, no name resolution; `owner` allocates only on rings with replicas.
//! Not here: sending health checks, and the handling of lines without an owner.
//! Invariants: an owner is live; without a live endpoint there is no owner; the same history of `set_live` gives
//! the same owners in every process.

mod carbon;
mod fnv;
mod health;
mod key;
mod label;
mod ring;
mod shards;

pub use health::{HEALTH_CHECKS_MAX, Health, HealthChange, HealthPlan};
pub use key::{KeyForm, KeyReader, node_key};

use carbon::{CarbonEncoding, CarbonRing};
use fnv::{Bytes, fnv1a_64};
use label::Label;
use ring::{Ring, RingKind};
use shards::{Shards, ShardsHash, mixed};

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

/// The endpoints of a cluster, their state, and the keys that they own.
#[derive(Clone, Debug)]
pub struct Cluster {
    live: Vec<bool>,
    /// The live endpoints in hashring's order: as configured, except that endpoints that came back are at the end,
    /// in the order of their return. The order decides between points of equal value.
    listed: Vec<u16>,
    rule: Rule,
    /// Owners per key.
    replication: usize,
}

#[derive(Clone, Debug)]
enum Rule {
    Ring(Ring),
    Carbon(CarbonRing),
    Shards(Shards),
}

impl Cluster {
    /// A cluster with all endpoints live. A label is the text that the original hashes for the ring: `host:port` as
    /// in its configuration, for the Graphite family followed by `=instance` if there is one. Methods without a
    /// ring use only the order.
    pub fn new<L: AsRef<[u8]>>(sharding: &Sharding, labels: &[L]) -> Result<Cluster, ClusterMistake> {
        Cluster::replicated(sharding, labels, 1)
    }

    /// As `new`, with `replication` owners per key. More than one only for the Graphite family, except `any_of`.
    pub fn replicated<L: AsRef<[u8]>>(
        sharding: &Sharding,
        labels: &[L],
        replication: u8,
    ) -> Result<Cluster, ClusterMistake> {
        if labels.len() > ENDPOINTS_MAX {
            return Err(ClusterMistake::TooManyEndpoints);
        }
        let rule = Rule::new(sharding, labels)?;
        let most = if rule.replicates() { labels.len().max(1) } else { 1 };
        if replication == 0 || usize::from(replication) > most {
            return Err(ClusterMistake::BadReplication { replication, most });
        }
        let listed = (0..labels.len() as u16).collect();
        let live = vec![true; labels.len()];
        let mut cluster = Cluster { live, listed, rule, replication: usize::from(replication) };
        cluster.rebuild();
        Ok(cluster)
    }

    /// The owner of `key`, as index into the list given to [`Cluster::new`]; the first of several. None when no
    /// endpoint is live.
    pub fn owner(&self, key: &[u8]) -> Option<usize> {
        let (owner, hash) = match &self.rule {
            Rule::Ring(ring) => return ring.owner(key),
            Rule::Carbon(ring) => (ring.owner(key)?, key_hash(key)),
            Rule::Shards(shards) => shards.owner(key)?,
        };
        if self.live[owner] { Some(owner) } else { self.fail_over(hash, &[]) }
    }

    /// Appends all owners of `key` to `to`, in order, live or not. Only the rings of StatsD's proxies are built
    /// from live endpoints alone.
    pub fn owners(&self, key: &[u8], to: &mut Vec<u16>) {
        match &self.rule {
            Rule::Ring(ring) => to.extend(ring.owner(key).map(|owner| owner as u16)),
            Rule::Carbon(ring) => ring.owners(key, self.replication, to),
            Rule::Shards(shards) => shards.owners(key, self.replication, to),
        }
    }

    /// The failover endpoint for one that is down: the live endpoint, not among `taken`, for which the key's hash
    /// (see [`key_hash`]) mixed with the endpoint's number is highest. So the keys of a failed endpoint spread over
    /// all others, no other key moves, and they return with it.
    pub fn fail_over(&self, hash: u64, taken: &[u16]) -> Option<usize> {
        let free = self.listed.iter().filter(|endpoint| !taken.contains(endpoint));
        let fail_over = free.max_by_key(|endpoint| mixed(hash, u64::from(**endpoint)))?;
        debug_assert!(self.live[usize::from(*fail_over)], "those listed are live");
        Some(usize::from(*fail_over))
    }

    /// The position of `key` on a ring of the Graphite family, or the number of its shard, from 0; None for other
    /// rings.
    pub fn position(&self, key: &[u8]) -> Option<i64> {
        match &self.rule {
            Rule::Carbon(ring) => Some(ring.position(key)),
            Rule::Shards(shards) => shards.shard(key).map(|(shard, _)| shard as i64),
            Rule::Ring(_) => None,
        }
    }

    /// The points of a ring of the Graphite family, ascending, with their endpoints; for methods with shards, each
    /// shard with its endpoint. Empty for other rings.
    pub fn points(&self) -> impl Iterator<Item = (i64, usize)> {
        let ring = match &self.rule {
            Rule::Carbon(ring) => Some(ring.points()),
            Rule::Ring(_) | Rule::Shards(_) => None,
        };
        let shards = match &self.rule {
            Rule::Shards(shards) => shards.table(),
            Rule::Ring(_) | Rule::Carbon(_) => &[],
        };
        let shards = shards.iter().map(|endpoint| (i64::from(*endpoint), usize::from(*endpoint)));
        ring.into_iter().flatten().chain(shards)
    }

    /// Marks an endpoint as down (`false`) or up; true when that changed anything.
    ///
    /// Only keys that the endpoint owned move when it goes down, and exactly those return to it. Rings have an
    /// exception, as in the originals: with some numbers of live endpoints (7, 14, 28, 49, … on node's ring; 61,
    /// 122, … on libketama's) each has 39 digests instead of 40, and a few more keys move. And of two equal points,
    /// which are rare, the endpoint that came back loses its point.
    pub fn set_live(&mut self, endpoint: usize, live: bool) -> bool {
        assert!(endpoint < self.live.len(), "endpoints are those given to `new`");
        if self.live[endpoint] == live {
            return false;
        }
        self.live[endpoint] = live;
        if live {
            self.listed.push(endpoint as u16);
        } else {
            self.listed.retain(|listed| usize::from(*listed) != endpoint);
        }
        self.rebuild();
        true
    }

    /// True when the endpoint is live.
    pub fn is_live(&self, endpoint: usize) -> bool {
        self.live[endpoint]
    }

    /// The live endpoints in the order in which node's proxy lists them (`status`): those that came back are at the
    /// end.
    pub fn listed(&self) -> impl ExactSizeIterator<Item = usize> {
        self.listed.iter().map(|endpoint| usize::from(*endpoint))
    }

    /// Number of endpoints, live or not.
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// True without any endpoint.
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    fn rebuild(&mut self) {
        debug_assert_eq!(self.listed.len(), self.live.iter().filter(|live| **live).count());
        if let Rule::Ring(ring) = &mut self.rule {
            ring.rebuild(&self.listed);
        }
    }
}

impl Rule {
    fn new<L: AsRef<[u8]>>(sharding: &Sharding, labels: &[L]) -> Result<Rule, ClusterMistake> {
        let ring = |form| {
            no_label_twice(labels)?;
            Ok(Rule::Ring(Ring::new(form, labels)))
        };
        let shards = |hash, table| Ok(Rule::Shards(Shards::new(hash, table, labels.len())?));
        let carbon = |form| Ok(Rule::Carbon(CarbonRing::new(form, &parsed(labels)?)));
        match sharding {
            Sharding::StatsdNode(replicas) => ring(RingKind::StatsdNode(*replicas)),
            Sharding::Ketama => ring(RingKind::Ketama),
            Sharding::Jump(table) => shards(ShardsHash::Jump, table),
            Sharding::Murmur3Statsrelay(table) => shards(ShardsHash::Murmur3, table),
            Sharding::AnyOf => shards(ShardsHash::Fnv1aSigned, &Vec::new()),
            Sharding::JumpFnv1aCh => Ok(Rule::Shards(Shards::by_instance(&parsed(labels)?))),
            Sharding::CarbonCh => carbon(CarbonEncoding::RelayMd5),
            Sharding::Fnv1aCh => carbon(CarbonEncoding::RelayFnv1a),
            Sharding::CarbonPython { hash, fast, diverse } => {
                carbon(CarbonEncoding::Python { hash: *hash, fast: *fast, diverse: *diverse })
            }
        }
    }

    /// True when a key may have several owners.
    fn replicates(&self) -> bool {
        match self {
            Rule::Ring(_) => false,
            Rule::Carbon(_) => true,
            Rule::Shards(shards) => shards.replicates(),
        }
    }
}

/// The hash of a key for choosing failover endpoints.
pub fn key_hash(key: &[u8]) -> u64 {
    fnv1a_64(key, Bytes::Unsigned)
}

fn parsed<L: AsRef<[u8]>>(labels: &[L]) -> Result<Vec<Label<'_>>, ClusterMistake> {
    let parse = |(endpoint, label)| {
        Label::parse(AsRef::<[u8]>::as_ref(label)).ok_or(ClusterMistake::BadLabel { endpoint })
    };
    labels.iter().enumerate().map(parse).collect()
}

fn no_label_twice<L: AsRef<[u8]>>(labels: &[L]) -> Result<(), ClusterMistake> {
    let mut sorted: Vec<usize> = (0..labels.len()).collect();
    sorted.sort_by_key(|at| labels[*at].as_ref());
    let same = |pair: &&[usize]| labels[pair[0]].as_ref() == labels[pair[1]].as_ref();
    match sorted.windows(2).find(same) {
        Some(pair) => Err(ClusterMistake::SameLabel { first: pair[0], again: pair[1] }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod graphite_tests;
#[cfg(test)]
mod tests;
