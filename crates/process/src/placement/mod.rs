//! Sharding instead of copying: which endpoint of a cluster a key belongs to (spec statsd §13; R6 of §14).
//!
//! Path of a line: `KeyReader::key` (the bytes that decide) -> **`Cluster::owner`** (`ring` or `shards`) -> the queue
//! of that endpoint. `health` turns the results of checks into changes, which come back as `Cluster::set_live`.
//! Pure: no I/O, no clock, no look-up of names; `owner` does not allocate.
//! Not here: who sends the health checks, and what becomes of a line that nobody owns.
//! Invariants: an owner is live; with no endpoint live there is none; the same history of `set_live` gives the same
//! owners in every process.

mod health;
mod key;
mod ring;
mod shards;

pub use health::{HEALTH_CHECKS_MAX, Health, HealthChange, HealthPlan};
pub use key::{KeyForm, KeyReader, node_key};

use ring::{Ring, RingForm};
use shards::{Shards, ShardsHash};

/// Most endpoints of a cluster.
pub const ENDPOINTS_MAX: usize = 1024;
/// Most virtual shards of a cluster.
pub const SHARDS_MAX: usize = 65_536;

/// How keys are placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The ring of node's cluster proxy: MD5, 40 digests for an endpoint (39 in clusters of some sizes).
    StatsdNode(RingReplicas),
    /// The ring of libketama with equal weights: MD5, 40 digests for an endpoint, four points of each.
    Ketama,
    /// Jump consistent hash over FNV-1a of 64 bits, as jjneely's statsrelay (Go) places.
    Jump(ShardTable),
    /// MurmurHash3 of 32 bits with seed 0xaccd3d34, modulo the number of shards, as the statsrelay of Lyft and Uber
    /// (C, later Rust) places.
    Murmur3Statsrelay(ShardTable),
}

/// How many points of the ring come from one digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RingReplicas {
    /// Statsd since 0.8.0 (hashring 3.2.0): the first of the digest's words.
    #[default]
    One,
    /// Statsd before 0.8.0 (hashring 1.0.1): all four words.
    Four,
}

/// Which endpoint each virtual shard lives on, by index; empty for one shard per endpoint, in their order.
///
/// With many more shards than endpoints a cluster is resized by giving some shards to the new endpoint: the keys of
/// all other shards stay where they are.
pub type ShardTable = Vec<usize>;

impl Placement {
    /// The form's name in configuration files.
    pub fn name(&self) -> &'static str {
        match self {
            Placement::StatsdNode(_) => "statsd-node",
            Placement::Ketama => "ketama",
            Placement::Jump(_) => "jump",
            Placement::Murmur3Statsrelay(_) => "murmur3-statsrelay",
        }
    }
}

/// Why a cluster cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterMistake {
    /// More than [`ENDPOINTS_MAX`] endpoints.
    TooManyEndpoints,
    /// More than [`SHARDS_MAX`] shards.
    TooManyShards,
    /// Two endpoints have the same label, so that the second one's points would lie on the first one's.
    SameLabel {
        /// The one listed first.
        first: usize,
        /// The one listed again.
        again: usize,
    },
    /// A shard lives on an endpoint that is not listed.
    NoSuchEndpoint {
        /// The shard's place in the table.
        shard: usize,
        /// The endpoint that it names.
        endpoint: usize,
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
        }
    }
}

impl std::error::Error for ClusterMistake {}

/// The endpoints of a cluster, which of them are live, and what each owns.
#[derive(Clone, Debug)]
pub struct Cluster {
    live: Vec<bool>,
    /// The live ones as hashring lists them: in the order given, but for those that came back, which stand at the end
    /// in the order of their return. It decides between points of equal value.
    listed: Vec<u16>,
    rule: Rule,
}

#[derive(Clone, Debug)]
enum Rule {
    Ring(Ring),
    Shards(Shards),
}

impl Cluster {
    /// A cluster whose endpoints are all live. A label is what the original hashes for a place on its ring:
    /// `host:port` as written in its configuration; the forms without a ring go by the order alone.
    pub fn new<L: AsRef<[u8]>>(placement: &Placement, labels: &[L]) -> Result<Cluster, ClusterMistake> {
        if labels.len() > ENDPOINTS_MAX {
            return Err(ClusterMistake::TooManyEndpoints);
        }
        let ring = |form| {
            no_label_twice(labels)?;
            Ok(Rule::Ring(Ring::new(form, labels)))
        };
        let rule = match placement {
            Placement::StatsdNode(replicas) => ring(RingForm::StatsdNode(*replicas))?,
            Placement::Ketama => ring(RingForm::Ketama)?,
            Placement::Jump(table) => Rule::Shards(Shards::new(ShardsHash::Jump, table, labels.len())?),
            Placement::Murmur3Statsrelay(table) => {
                Rule::Shards(Shards::new(ShardsHash::Murmur3, table, labels.len())?)
            }
        };
        let listed = (0..labels.len() as u16).collect();
        let mut cluster = Cluster { live: vec![true; labels.len()], listed, rule };
        cluster.rebuild();
        Ok(cluster)
    }

    /// The endpoint that `key` belongs to, by its place in the list given to [`Cluster::new`]. None when no endpoint
    /// is live.
    pub fn owner(&self, key: &[u8]) -> Option<usize> {
        let owner = match &self.rule {
            Rule::Ring(ring) => ring.owner(key)?,
            Rule::Shards(shards) => shards.owner(key, &self.live, &self.listed)?,
        };
        debug_assert!(self.live[owner], "an owner is live");
        Some(owner)
    }

    /// Takes an endpoint out (`false`) or puts it back; true when that changed anything.
    ///
    /// Only keys that the endpoint owned move when it goes, and exactly those return to it. On a ring there is an
    /// exception, as with the originals: with some numbers of live endpoints (7, 14, 28, 49, … on node's ring; 61, 122,
    /// … on libketama's) each has 39 digests instead of 40, and a few more keys move on the way there and back. And of
    /// two equal points, which are rare, the endpoint that came back loses its own.
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

    /// Whether the endpoint is live.
    pub fn is_live(&self, endpoint: usize) -> bool {
        self.live[endpoint]
    }

    /// The live endpoints in the order in which node's proxy lists them (`status`): those that came back at the end.
    pub fn listed(&self) -> impl ExactSizeIterator<Item = usize> {
        self.listed.iter().map(|endpoint| usize::from(*endpoint))
    }

    /// All endpoints, live or not.
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
mod tests;
