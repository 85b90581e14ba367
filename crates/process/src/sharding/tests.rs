//! The tables of spec statsd §13, tables of the other methods' authors, and properties when endpoints go down and
//! come back.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::ring::{RingKind, digests};
use super::*;

const NODE: Sharding = Sharding::StatsdNode(RingReplicas::One);

fn labels(count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("10.0.0.{number}:8125")).collect()
}

fn cluster(sharding: &Sharding, count: usize) -> Cluster {
    Cluster::new(sharding, &labels(count)).expect("a valid cluster")
}

/// One sharding of each method, over `count` endpoints.
fn every_form(count: usize) -> Vec<Sharding> {
    let shards: ShardTable =
        if count == 0 { Vec::new() } else { (0..101).map(|shard| shard * 7 % count).collect() };
    vec![
        NODE,
        Sharding::StatsdNode(RingReplicas::Four),
        Sharding::Ketama,
        Sharding::Jump(Vec::new()),
        Sharding::Jump(shards.clone()),
        Sharding::Murmur3Statsrelay(Vec::new()),
        Sharding::Murmur3Statsrelay(shards),
    ]
}

fn keys(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|number| format!("app{}.host{number}.requests", number % 13).into_bytes()).collect()
}

fn owners(cluster: &Cluster, keys: &[Vec<u8>]) -> Vec<Option<usize>> {
    keys.iter().map(|key| cluster.owner(key)).collect()
}

fn ring(cluster: &Cluster) -> &Ring {
    match &cluster.rule {
        Rule::Ring(ring) => ring,
        Rule::Carbon(_) | Rule::Shards(_) => panic!("sharding without such a ring"),
    }
}

#[test]
fn keys_have_the_same_owners_as_on_nodes_ring() {
    const SIZES: [usize; 5] = [2, 3, 5, 7, 10];
    // The value is the last octet, so the index plus one.
    let table: &[(&str, [usize; 5])] = &[
        ("", [2, 3, 3, 7, 7]),
        ("a", [2, 3, 5, 6, 6]),
        ("b", [2, 3, 3, 3, 3]),
        ("foo", [2, 2, 2, 6, 6]),
        ("gorets", [2, 3, 3, 4, 10]),
        ("a.b.c", [2, 2, 2, 7, 10]),
        ("web01.cpu.user", [1, 3, 3, 3, 3]),
        ("x;env=prod", [1, 1, 1, 1, 9]),
        ("stats.api.latency", [2, 3, 3, 3, 3]),
        ("A", [2, 2, 2, 2, 2]),
        ("key with space", [1, 1, 1, 1, 1]),
        ("users.online", [1, 1, 1, 1, 8]),
    ];
    for (at, size) in SIZES.into_iter().enumerate() {
        let cluster = cluster(&NODE, size);
        for (key, want) in table {
            assert_eq!(cluster.owner(key.as_bytes()), Some(want[at] - 1), "{key:?} of {size}");
        }
    }
}

#[test]
fn nodes_ring_has_its_first_points() {
    let cluster = cluster(&NODE, 3);
    let first: Vec<(u32, usize)> =
        ring(&cluster).points().take(6).map(|(point, at)| (point, at + 1)).collect();
    let want = [(1838331, 3), (91039864, 3), (192917123, 3), (196559908, 2), (209552594, 3), (230565238, 1)];
    assert_eq!(first, want);
}

#[test]
fn keys_of_a_node_that_goes_down_move_and_return() {
    let keys = ["", "a", "b", "foo", "gorets", "a.b.c", "web01.cpu.user", "x;env=prod", "A", "users.online"];
    let mut cluster = cluster(&NODE, 3);
    let before = keys.map(|key| cluster.owner(key.as_bytes()));
    assert!(cluster.set_live(1, false));
    for (key, before) in keys.iter().zip(before) {
        let want = if ["foo", "a.b.c", "A"].contains(key) { Some(2) } else { before };
        assert_eq!(cluster.owner(key.as_bytes()), want, "{key:?}");
    }
    assert!(cluster.set_live(1, true));
    assert_eq!(keys.map(|key| cluster.owner(key.as_bytes())), before);
}

#[test]
fn the_number_of_points_follows_the_librarys_arithmetic() {
    let short = |form| {
        let sizes = (1..=ENDPOINTS_MAX).filter(|size| digests(form, *size) != 40);
        sizes.inspect(|size| assert_eq!(digests(form, *size), 39, "{size}")).collect::<Vec<_>>()
    };
    assert_eq!(short(RingKind::StatsdNode(RingReplicas::One))[..8], [7, 14, 28, 49, 56, 98, 103, 112]);
    // libketama computes with floats.
    assert_eq!(short(RingKind::Ketama)[..4], [61, 122, 237, 244]);
    for (sharding, size, points) in [
        (NODE, 3, 120),
        (NODE, 7, 7 * 39),
        (Sharding::StatsdNode(RingReplicas::Four), 3, 480),
        (Sharding::StatsdNode(RingReplicas::Four), 7, 7 * 39 * 4),
        (Sharding::Ketama, 7, 1120),
        (Sharding::Ketama, 61, 61 * 39 * 4),
        (NODE, 0, 0),
    ] {
        assert_eq!(ring(&cluster(&sharding, size)).points().count(), points, "{} of {size}", sharding.name());
    }
}

#[test]
fn four_replicas_use_the_four_words_of_each_digest() {
    let with = |replicas| {
        let cluster = cluster(&Sharding::StatsdNode(replicas), 3);
        ring(&cluster).points().collect::<Vec<_>>()
    };
    let (one, four) = (with(RingReplicas::One), with(RingReplicas::Four));
    assert!(one.iter().all(|point| four.contains(point)));
    // MD5("10.0.0.1:8125-0"), little-endian words.
    for point in [0x5c0c_5784, 0x3130_3fcd, 0x7037_a5bc, 0xfe8d_766f] {
        assert!(four.contains(&(point, 0)), "{point:#x}");
    }
}

#[test]
fn of_equal_points_the_endpoint_listed_first_owns_the_key() {
    // Labels with a common point, found by search.
    let shared = 3_129_567_582;
    let mut cluster = Cluster::new(&NODE, &["tie-1161:8125", "tie-1931:8125"]).expect("a valid cluster");
    assert_eq!(ring(&cluster).points().filter(|(point, _)| *point == shared).count(), 2);
    let key = b"db.login.latency";
    let position = ring(&cluster).position(key);
    assert_eq!(ring(&cluster).points().find(|(point, _)| *point >= position), Some((shared, 0)));
    for (endpoint, live, owner) in
        [(1, false, 0), (1, true, 0), (0, false, 1), (0, true, 1), (1, false, 0), (1, true, 0)]
    {
        cluster.set_live(endpoint, live);
        assert_eq!(cluster.owner(key), Some(owner), "after {endpoint} {live}");
        assert_eq!(ring(&cluster).at(shared), Some(owner), "after {endpoint} {live}");
    }
}

#[test]
fn live_endpoints_are_listed_in_hashrings_order() {
    let mut cluster = cluster(&NODE, 4);
    let listed = |cluster: &Cluster| cluster.listed().collect::<Vec<_>>();
    assert_eq!(listed(&cluster), [0, 1, 2, 3]);
    assert!(cluster.set_live(1, false));
    assert!(!cluster.set_live(1, false), "it was down");
    assert_eq!(listed(&cluster), [0, 2, 3]);
    assert!(cluster.set_live(0, false));
    assert!(cluster.set_live(1, true));
    assert!(cluster.set_live(0, true));
    assert!(!cluster.set_live(0, true), "it was up");
    assert_eq!(listed(&cluster), [2, 3, 1, 0]);
    assert!(cluster.is_live(0) && cluster.len() == 4);
}

#[test]
fn invalid_utf8_in_a_key_hashes_as_its_replacement() {
    let cluster = cluster(&NODE, 30);
    let table: &[(&[u8], &str)] = &[
        (b"\xff", "\u{fffd}"),
        (b"a\xc3", "a\u{fffd}"),
        (b"\xe2\x82x\xf0\x9f", "\u{fffd}x\u{fffd}"),
        (b"\xed\xa0\x80", "\u{fffd}\u{fffd}\u{fffd}"),
        ("größe".as_bytes(), "größe"),
    ];
    for (key, text) in table {
        assert_eq!(cluster.owner(key), cluster.owner(text.as_bytes()), "{text:?}");
        assert_eq!(String::from_utf8_lossy(key), *text);
    }
    let raw = self::cluster(&Sharding::Ketama, 30);
    assert!((0..=255u8).any(|byte| byte > 127 && raw.owner(&[byte]) != raw.owner("\u{fffd}".as_bytes())));
}

#[test]
fn jump_has_the_same_owners_as_its_relay() {
    // Nodes 10 to 54 of the relay's own test, by their position in it.
    let cluster = cluster(&Sharding::Jump(Vec::new()), 45);
    for (key, want) in [
        ("foobar", 43),
        ("suebob.foo.honey.i.shrunk.the.kids", 48),
        ("5min.prod.dc06.graphite-web006-g6.kernel.net.netfilter.nf_conntrack_max", 14),
    ] {
        assert_eq!(cluster.owner(key.as_bytes()), Some(want - 10), "{key:?}");
    }
}

#[test]
fn murmur3_has_the_same_owners_as_its_relays() {
    // Both from the relay's own files: four shards on two endpoints, then on four.
    let two = Cluster::new(&Sharding::Murmur3Statsrelay(vec![0, 0, 1, 1]), &["9000", "9001"]).expect("valid");
    let four =
        Cluster::new(&Sharding::Murmur3Statsrelay(vec![0, 2, 1, 3]), &["9000", "9001", "9002", "9003"])
            .expect("valid");
    for (key, on_two, on_four) in [("apple", 1, 1), ("banana", 1, 3), ("orange", 0, 0), ("lemon", 0, 2)] {
        assert_eq!(two.owner(key.as_bytes()), Some(on_two), "{key:?}");
        assert_eq!(four.owner(key.as_bytes()), Some(on_four), "{key:?}");
    }
}

#[test]
fn keys_of_shards_that_do_not_move_stay() {
    let before: ShardTable = (0..64).map(|shard| shard % 2).collect();
    let mut after = before.clone();
    for shard in after.iter_mut().step_by(3) {
        *shard = 2;
    }
    for form in [Sharding::Jump, Sharding::Murmur3Statsrelay] {
        let (old, new) = (cluster(&form(before.clone()), 2), cluster(&form(after.clone()), 3));
        let mut moved = 0;
        for key in keys(5_000) {
            let (old, new) = (old.owner(&key), new.owner(&key));
            assert!(new == old || new == Some(2), "{key:?} goes from {old:?} to {new:?}");
            moved += usize::from(new != old);
        }
        // 22 of 64 shards: 1719 keys, plus or minus six standard deviations.
        assert!((1_500..=1_950).contains(&moved), "{moved} moved");
    }
}

#[test]
fn a_cluster_without_a_live_endpoint_owns_nothing() {
    for sharding in every_form(3) {
        let mut cluster = cluster(&sharding, 3);
        for endpoint in 0..3 {
            assert!(cluster.owner(b"a").is_some(), "{} without {endpoint}", sharding.name());
            cluster.set_live(endpoint, false);
        }
        assert_eq!(cluster.owner(b"a"), None, "{}", sharding.name());
        cluster.set_live(2, true);
        assert_eq!(cluster.owner(b"a"), Some(2), "{}", sharding.name());
    }
    for sharding in every_form(0) {
        let cluster = cluster(&sharding, 0);
        assert!(cluster.is_empty());
        assert_eq!(cluster.owner(b"a"), None, "{}", sharding.name());
    }
}

#[test]
fn invalid_clusters_are_rejected() {
    for sharding in every_form(1) {
        assert_eq!(cluster(&sharding, ENDPOINTS_MAX).len(), ENDPOINTS_MAX, "{}", sharding.name());
        let past = Cluster::new(&sharding, &labels(ENDPOINTS_MAX + 1));
        assert_eq!(past.err(), Some(ClusterMistake::TooManyEndpoints), "{}", sharding.name());
    }
    for form in [Sharding::Jump, Sharding::Murmur3Statsrelay] {
        assert!(Cluster::new(&form(vec![1; SHARDS_MAX]), &labels(2)).is_ok());
        let past = Cluster::new(&form(vec![1; SHARDS_MAX + 1]), &labels(2));
        assert_eq!(past.err(), Some(ClusterMistake::TooManyShards));
        let lost = Cluster::new(&form(vec![1, 0, 2]), &labels(2));
        assert_eq!(lost.err(), Some(ClusterMistake::NoSuchEndpoint { shard: 2, endpoint: 2 }));
    }
    let twice = ["b:1", "a:1", "c:1", "a:1"];
    let mistake = ClusterMistake::SameLabel { first: 1, again: 3 };
    assert_eq!(Cluster::new(&NODE, &twice).err(), Some(mistake));
    assert_eq!(mistake.to_string(), "endpoint 3 is endpoint 1 again");
    assert!(Cluster::new(&Sharding::Jump(Vec::new()), &twice).is_ok(), "labels do not matter there");
}

#[test]
fn keys_are_spread_evenly() {
    for sharding in every_form(10) {
        let cluster = cluster(&sharding, 10);
        let mut shares = BTreeMap::<_, u32>::new();
        for owner in owners(&cluster, &keys(20_000)) {
            *shares.entry(owner).or_default() += 1;
        }
        assert_eq!(shares.len(), 10, "{}: {shares:?}", sharding.name());
        // Rings of 40 points are that uneven.
        assert!(
            shares.values().all(|share| (1_000..=3_500).contains(share)),
            "{}: {shares:?}",
            sharding.name()
        );
    }
}

/// Cluster sizes around which the number of points per endpoint does not change.
const EVEN_SIZES: std::ops::RangeInclusive<usize> = 2..=6;

proptest! {
    // A case builds many rings, and MD5 without optimisation is slow.
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn only_keys_of_an_endpoint_that_goes_down_move_and_they_return(
        size in EVEN_SIZES,
        steps in proptest::collection::vec((0usize..6, proptest::bool::ANY), 1..12),
    ) {
        let keys = keys(100);
        for sharding in every_form(size) {
            let mut cluster = cluster(&sharding, size);
            let all_live = owners(&cluster, &keys);
            for (endpoint, live) in &steps {
                let endpoint = endpoint % size;
                let before = owners(&cluster, &keys);
                let changed = cluster.set_live(endpoint, *live);
                for (before, after) in before.iter().zip(owners(&cluster, &keys)) {
                    let concerned = changed && *(if *live { &after } else { before }) == Some(endpoint);
                    prop_assert!(concerned || after == *before || before.is_none() || after.is_none());
                    prop_assert!(after.is_none_or(|owner| cluster.is_live(owner)));
                }
                prop_assert_eq!(cluster.owner(b"x").is_none(), cluster.listed().len() == 0);
            }
            (0..size).for_each(|endpoint| { cluster.set_live(endpoint, true); });
            prop_assert_eq!(owners(&cluster, &keys), all_live);
        }
    }

    #[test]
    fn the_owner_equals_that_of_a_naive_search(
        size in 1usize..32,
        out in proptest::collection::vec(0usize..32, 0..8),
        key in proptest::collection::vec(proptest::num::u8::ANY, 0..40),
    ) {
        for sharding in [NODE, Sharding::StatsdNode(RingReplicas::Four), Sharding::Ketama] {
            let mut cluster = cluster(&sharding, size);
            for endpoint in &out {
                cluster.set_live(endpoint % size, false);
            }
            let ring = ring(&cluster);
            let position = ring.position(&key);
            let above = ring.points().filter(|(point, _)| *point >= position).min_by_key(|(point, _)| *point);
            let found = above.or_else(|| ring.points().min_by_key(|(point, _)| *point));
            prop_assert_eq!(cluster.owner(&key), found.map(|(_, owner)| owner));
        }
    }
}
