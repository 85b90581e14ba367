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
mod method;
mod ring;
mod shards;

pub use health::{HEALTH_CHECKS_MAX, Health, HealthChange, HealthPlan};
pub use key::{KeyForm, KeyReader, node_key};
pub use method::{CarbonHash, ClusterMistake, ENDPOINTS_MAX, RingReplicas, SHARDS_MAX, ShardTable, Sharding};

use carbon::{CarbonEncoding, CarbonRing};
use fnv::{Bytes, fnv1a_64};
use label::Label;
use ring::{Ring, RingKind};
use shards::{Shards, ShardsHash, mixed};

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
