//! The tables of spec graphite §3.6: keys, owners, points and carbon's own ring; and properties of the Graphite
//! family's sharding when endpoints go down and come back.

use proptest::prelude::*;

use super::fnv::fnv1a_32;
use super::*;

/// The clusters of the tables.
const N3: [&str; 3] = ["10.0.0.1:2003", "10.0.0.2:2003", "10.0.0.3:2003"];
const I3: [&str; 3] = ["127.0.0.1:2103=a", "127.0.0.1:2203=b", "127.0.0.1:2303=c"];
const H3: [&str; 3] = [
    "10.1.0.1:2003=4d79d13554fa1301476c1f9fe968b0ac",
    "10.1.0.2:2003=31f7a65e315586ac198bd798b6629ce4",
    "10.1.0.3:2003=b653412cd96b13c797658d2c48d952ae",
];
const J3: [&str; 3] = ["10.2.0.1:2003=10", "10.2.0.2:2003=2", "10.2.0.3:2003=1"];

const FORMS: [Sharding; 3] = [Sharding::CarbonCh, Sharding::Fnv1aCh, Sharding::JumpFnv1aCh];

const CARBON: Sharding = Sharding::CarbonPython { hash: CarbonHash::CarbonCh, fast: false, diverse: true };

fn cluster(sharding: &Sharding, labels: &[&str], replication: u8) -> Cluster {
    Cluster::replicated(sharding, labels, replication).expect("a valid cluster")
}

/// The owners of a key as in the tables: digits, counted from 1.
fn digits(cluster: &Cluster, key: &str) -> String {
    let mut owners = Vec::new();
    cluster.owners(key.as_bytes(), &mut owners);
    owners.iter().map(|owner| (owner + 1).to_string()).collect()
}

#[test]
fn keys_hash_as_in_the_specification() {
    // (key, position by MD5, position by FNV-1a, FNV-1a of 64 bits, member of three by `any_of`)
    #[rustfmt::skip]
    let table: &[(&str, i64, i64, u64, usize)] = &[
        ("a", 3265, 52512, 0xaf63_dc4c_8601_ec8c, 1),
        ("foo", 44221, 55076, 0xdcb2_7518_fed9_d577, 0),
        ("foo.bar", 1273, 58720, 0xa932_87dd_f705_0214, 2),
        ("foo.bar.baz", 63458, 20430, 0x1b25_e8bb_57c2_e71f, 0),
        ("carbon.agents.host1-a.cpuUsage", 32869, 24449, 0x9a39_476a_32c8_44e0, 0),
        ("carbon.relays.host1.metricsReceived", 25533, 3064, 0x4adc_81f5_46f2_eba3, 1),
        ("servers.web01.cpu.total.user", 64850, 53533, 0x0bcc_615e_cfee_cf89, 2),
        ("servers.web02.cpu.total.user", 33989, 32198, 0x819a_f381_5be8_af5a, 1),
        ("servers.web03.cpu.total.user", 45992, 25195, 0xf94b_ce85_ae9c_e21f, 0),
        ("servers.web10.loadavg.01", 5447, 37108, 0x05ec_8432_5ba1_dc31, 2),
        ("servers.db01.disk.sda.await", 15478, 38417, 0xe07e_3378_92d6_e9f1, 1),
        ("stats.counters.api.requests.count", 63519, 33331, 0x1c30_4fe9_ef53_ad06, 1),
        ("stats.counters.api.requests.rate", 55591, 60940, 0x6b2c_f0ed_da49_9a65, 2),
        ("stats.gauges.queue.depth", 58650, 28704, 0x6073_8a05_48c8_41c0, 1),
        ("stats.timers.api.latency.mean", 38973, 6212, 0x4496_dd03_c665_2431, 1),
        ("stats.timers.api.latency.upper_95", 51479, 21983, 0xf2c5_7305_e17a_12bf, 0),
        ("stats_counts.logins", 49740, 40678, 0xb385_d47e_85b3_cd23, 0),
        ("collectd.node17.interface-eth0.if_octets.rx", 42683, 521, 0x95e3_3521_beb1_0aee, 1),
        ("collectd.node17.interface-eth0.if_octets.tx", 5925, 7872, 0x95ce_3121_be9e_a818, 1),
        ("app.prod.eu-west-1.checkout.orders", 49357, 20413, 0x79c1_03be_ef52_daa4, 1),
        ("app.prod.us-east-1.checkout.orders", 23842, 4427, 0x8622_7e29_b7cd_4c78, 0),
        ("A-B_C:D#E", 13971, 49911, 0x175f_8c4a_3b47_f197, 0),
        ("my.super.metric", 64075, 64570, 0x94b1_b32d_e8ad_e4d8, 2),
        ("0.1.2.3.4.5.6.7.8.9", 34707, 12381, 0x926f_2ef0_d9dc_17be, 1),
    ];
    let (md5, fnv) = (cluster(&Sharding::CarbonCh, &N3, 1), cluster(&Sharding::Fnv1aCh, &N3, 1));
    let any_of = cluster(&Sharding::AnyOf, &N3, 1);
    for (key, by_md5, by_fnv, hash, member) in table {
        assert_eq!(md5.position(key.as_bytes()), Some(*by_md5), "{key}");
        assert_eq!(fnv.position(key.as_bytes()), Some(*by_fnv), "{key}");
        assert_eq!(fnv1a_64(key.as_bytes(), Bytes::Signed), *hash, "{key}");
        assert_eq!(any_of.owner(key.as_bytes()), Some(*member), "{key}");
    }
}

#[test]
fn keys_have_the_same_owners_as_in_carbon_c_relay() {
    // Two owners of each key: carbon_ch, fnv1a_ch and jump_fnv1a_ch over N3, I3, H3 and J3.
    #[rustfmt::skip]
    let table: &[(&str, [&str; 12])] = &[
        ("a", ["23", "13", "32", "12", "31", "13", "32", "32", "31", "31", "32", "13"]),
        ("foo", ["31", "31", "31", "31", "12", "32", "31", "32", "23", "23", "13", "21"]),
        ("foo.bar", ["31", "32", "32", "13", "31", "32", "32", "12", "23", "23", "13", "21"]),
        ("foo.bar.baz", ["23", "12", "32", "13", "31", "13", "21", "23", "12", "12", "21", "32"]),
        ("carbon.agents.host1-a.cpuUsage", ["21", "12", "13", "13", "23", "31", "21", "32", "21", "21", "12", "23"]),
        ("carbon.relays.host1.metricsReceived", ["21", "21", "23", "13", "12", "21", "13", "31", "23", "23", "13", "21"]),
        ("servers.web01.cpu.total.user", ["23", "31", "31", "32", "23", "23", "23", "21", "12", "12", "21", "32"]),
        ("servers.web02.cpu.total.user", ["31", "13", "12", "23", "23", "32", "23", "12", "32", "32", "31", "12"]),
        ("servers.web03.cpu.total.user", ["13", "31", "12", "31", "23", "31", "31", "21", "23", "23", "13", "21"]),
        ("servers.web10.loadavg.01", ["32", "12", "21", "12", "31", "23", "12", "23", "31", "31", "32", "13"]),
        ("servers.db01.disk.sda.await", ["31", "12", "13", "32", "12", "23", "12", "32", "21", "21", "12", "23"]),
        ("stats.counters.api.requests.count", ["23", "12", "23", "31", "12", "12", "12", "32", "21", "21", "12", "23"]),
        ("stats.counters.api.requests.rate", ["23", "32", "21", "31", "23", "31", "32", "13", "32", "32", "31", "12"]),
        ("stats.gauges.queue.depth", ["31", "23", "13", "23", "31", "31", "13", "23", "13", "13", "23", "31"]),
        ("stats.timers.api.latency.mean", ["13", "23", "12", "31", "13", "23", "23", "21", "21", "21", "12", "23"]),
        ("stats.timers.api.latency.upper_95", ["21", "21", "13", "21", "13", "32", "12", "31", "13", "13", "23", "31"]),
        ("stats_counts.logins", ["13", "32", "12", "13", "13", "32", "13", "12", "31", "31", "32", "13"]),
        ("collectd.node17.interface-eth0.if_octets.rx", ["23", "31", "32", "23", "23", "21", "13", "23", "12", "12", "21", "32"]),
        ("collectd.node17.interface-eth0.if_octets.tx", ["12", "23", "13", "31", "13", "13", "21", "13", "21", "21", "12", "23"]),
        ("app.prod.eu-west-1.checkout.orders", ["13", "13", "12", "31", "23", "13", "21", "23", "31", "31", "32", "13"]),
        ("app.prod.us-east-1.checkout.orders", ["21", "23", "12", "12", "32", "12", "21", "12", "12", "12", "21", "32"]),
        ("A-B_C:D#E", ["32", "23", "31", "23", "23", "13", "13", "23", "13", "13", "23", "31"]),
        ("my.super.metric", ["21", "12", "13", "23", "32", "32", "31", "23", "23", "23", "13", "21"]),
        ("0.1.2.3.4.5.6.7.8.9", ["21", "13", "31", "31", "12", "32", "32", "31", "13", "13", "23", "31"]),
    ];
    let clusters = |replication| {
        let pairs = FORMS.iter().flat_map(|form| [N3, I3, H3, J3].map(|labels| (form, labels)));
        pairs.map(|(form, labels)| cluster(form, &labels, replication)).collect::<Vec<_>>()
    };
    let (one, two, three) = (clusters(1), clusters(2), clusters(3));
    for (key, wants) in table {
        for (at, want) in wants.iter().enumerate() {
            assert_eq!(digits(&one[at], key), want[..1], "{key} in column {at}");
            assert_eq!(one[at].owner(key.as_bytes()).map(|owner| owner + 1), want[..1].parse().ok());
            assert_eq!(digits(&two[at], key), *want, "{key} in column {at}");
            let missing = ["1", "2", "3"].iter().find(|digit| !want.contains(**digit)).expect("one of three");
            assert_eq!(digits(&three[at], key), format!("{want}{missing}"), "{key} in column {at}");
        }
    }
}

#[test]
fn rings_have_the_points_of_the_specification() {
    // The first six and the last three, as position@member.
    let table = [
        (Sharding::CarbonCh, N3, "259@3 437@2 824@1 884@1 1213@1 1366@3", "65265@3 65298@3 65511@3"),
        (Sharding::CarbonCh, I3, "330@3 398@1 474@1 784@3 1253@3 1632@3", "64190@2 64302@3 64408@2"),
        (Sharding::CarbonCh, H3, "58@2 607@2 842@3 1015@1 1097@1 1230@3", "64883@3 65222@1 65518@3"),
        (Sharding::CarbonCh, J3, "161@2 190@1 222@1 248@3 276@1 850@2", "65358@3 65469@3 65501@1"),
        (Sharding::Fnv1aCh, N3, "487@3 845@2 874@3 1202@3 1243@3 1546@3", "65053@2 65332@3 65532@2"),
        (Sharding::Fnv1aCh, I3, "218@2 329@3 536@2 611@1 991@2 1100@3", "64778@3 65214@2 65465@1"),
        (Sharding::Fnv1aCh, H3, "656@1 1052@3 1383@2 1437@3 1534@2 1543@2", "64634@3 64636@1 65146@1"),
        (Sharding::Fnv1aCh, J3, "173@2 359@2 390@3 417@1 466@1 521@2", "64919@2 65094@2 65246@2"),
    ];
    for (sharding, labels, first, last) in table {
        let cluster = cluster(&sharding, &labels, 1);
        let points: Vec<String> =
            cluster.points().map(|(position, owner)| format!("{position}@{}", owner + 1)).collect();
        assert_eq!(points.len(), 300);
        assert_eq!(points[..6].join(" "), first, "{sharding:?} of {labels:?}");
        assert_eq!(points[297..].join(" "), last, "{sharding:?} of {labels:?}");
    }
}

#[test]
fn carbons_own_ring_differs_where_points_collide() {
    let (relay, carbon) = (cluster(&Sharding::CarbonCh, &N3, 2), cluster(&CARBON, &N3, 2));
    // (key, position, by carbon-c-relay, by carbon)
    let table = [
        ("m993473.b.661259", 7774, "12", "13"),
        ("m586438.d.417406", 7340, "12", "13"),
        ("m740633.d.540651", 7065, "12", "13"),
        ("m330932.b.810741", 6840, "12", "13"),
        ("m554933.f.828702", 7190, "12", "13"),
        ("m789457.b.259320", 7458, "12", "13"),
    ];
    for (key, position, by_relay, by_carbon) in table {
        assert_eq!(carbon.position(key.as_bytes()), Some(position), "{key}");
        assert_eq!(digits(&relay, key), by_relay, "{key}");
        assert_eq!(digits(&carbon, key), by_carbon, "{key}");
    }
    let at = |cluster: &Cluster, position| {
        cluster.points().filter(|(at, _)| *at == position).map(|(_, own)| own).collect::<Vec<_>>()
    };
    assert_eq!((at(&relay, 7798), at(&relay, 7799)), (vec![0, 0], vec![]));
    assert_eq!((at(&carbon, 7798), at(&carbon, 7799)), (vec![0], vec![2]));
}

#[test]
fn carbons_rings_of_other_clusters_have_the_same_owners() {
    for labels in [I3, H3, J3] {
        // On one host there is one diverse replica only.
        let same_hosts = Sharding::CarbonPython { hash: CarbonHash::CarbonCh, fast: false, diverse: false };
        let (relay, carbon) = (cluster(&Sharding::CarbonCh, &labels, 2), cluster(&same_hosts, &labels, 2));
        assert!(relay.points().eq(carbon.points()));
        for number in 0..500 {
            let key = format!("m{number}.x");
            assert_eq!(digits(&relay, &key), digits(&carbon, &key), "{key}");
        }
    }
    assert_eq!(digits(&cluster(&CARBON, &I3, 2), "foo").len(), 1);
    assert_eq!(digits(&cluster(&CARBON, &H3, 2), "foo").len(), 2);
}

#[test]
fn carbons_ring_supports_its_other_hashes() {
    // Output of plain Python for `0-a` and `0-None`, and for the tuple's text with MurmurHash3.
    let ring = |hash, label: &str| {
        let cluster = cluster(&Sharding::CarbonPython { hash, fast: false, diverse: true }, &[label], 1);
        cluster.points().map(|(position, _)| position).collect::<Vec<_>>()
    };
    let folded = |key: &str| {
        let hash = fnv1a_32(key.as_bytes(), Bytes::Unsigned);
        i64::from(hash >> 16 ^ hash & 0xffff)
    };
    assert!(ring(CarbonHash::Fnv1aCh, "h:1=a").contains(&folded("0-a")));
    assert!(ring(CarbonHash::Fnv1aCh, "h:1").contains(&folded("99-None")));
    let signed = i64::from(shards::murmur3(b"('h', 'a'):0", 0) as i32);
    let points = ring(CarbonHash::Mmh3Ch, "h:1=a");
    assert!(points.contains(&signed));
    assert!(points.iter().any(|at| *at < 0) && points.iter().any(|at| *at > 65_535));
}

#[test]
fn names_above_ascii_hash_as_on_x86() {
    // Output of carbon-c-relay 3.7.3 on x86-64 with `-t`.
    let any_of = cluster(&Sharding::AnyOf, &N3, 1);
    let ring = cluster(&Sharding::Fnv1aCh, &["10.0.1.1:2003", "10.0.1.2:2003", "10.0.1.3:2003"], 1);
    let jump = cluster(&Sharding::JumpFnv1aCh, &N3, 1);
    let table = [
        ("é", ["2", "3", "2"]),
        ("größe", ["3", "1", "1"]),
        ("日本", ["2", "3", "2"]),
        ("naïve.x", ["2", "3", "3"]),
        ("ñ.ü", ["1", "1", "1"]),
    ];
    for (key, want) in table {
        assert_eq!([&any_of, &ring, &jump].map(|cluster| digits(cluster, key)), want, "{key}");
    }
    let unsigned = |key: &str| fnv1a_32(key.as_bytes(), Bytes::Unsigned) as usize % 3;
    assert!(table.iter().any(|(key, _)| any_of.owner(key.as_bytes()) != Some(unsigned(key))));
}

#[test]
fn jump_endpoints_are_ordered_by_instance() {
    // (labels, endpoints in that order)
    let table: &[(&[&str], &[u16])] = &[
        (&["h:1=10", "h:2=2", "h:3=1"], &[2, 1, 0]),
        (&["h:1=b", "h:2=a", "h:3=B"], &[2, 1, 0]),
        (&["h:1", "h:2=z", "h:3", "h:4=y"], &[3, 1, 0, 2]),
        (&["h:9", "h:1", "h:5"], &[0, 1, 2]),
        (&["h:1=07", "h:2=7", "h:3=6"], &[2, 0, 1]),
        // A cycle: 2 is before 10 as numbers, 10 before 1a and 1a before 2 as texts.
        (&["h:1=2", "h:2=10", "h:3=1a"], &[0, 1, 2]),
    ];
    for (labels, want) in table {
        let cluster = cluster(&Sharding::JumpFnv1aCh, labels, 1);
        let Rule::Shards(shards) = &cluster.rule else { panic!("sharding without a ring") };
        let owner = cluster.owner(b"a").expect("an owner");
        let position = cluster.position(b"a").expect("a shard");
        assert_eq!(usize::from(shards.table()[position as usize]), owner, "{labels:?}");
        assert_eq!(shards.table(), *want, "{labels:?}");
    }
}

#[test]
fn invalid_graphite_clusters_are_rejected() {
    let mistake = |sharding: &Sharding, labels: &[&str], replication| {
        Cluster::replicated(sharding, labels, replication).err()
    };
    for form in &FORMS {
        assert_eq!(mistake(form, &N3, 3), None);
        let past = ClusterMistake::BadReplication { replication: 4, most: 3 };
        assert_eq!(mistake(form, &N3, 4), Some(past));
        assert_eq!(past.to_string(), "a key can be on 1 to 3 endpoints, not on 4");
        let none = ClusterMistake::BadReplication { replication: 0, most: 3 };
        assert_eq!(mistake(form, &N3, 0), Some(none));
        let bad = ClusterMistake::BadLabel { endpoint: 1 };
        assert_eq!(mistake(form, &["h:1", "h"], 1), Some(bad));
        assert_eq!(bad.to_string(), "endpoint 1 is not given as HOST:PORT or HOST:PORT=INSTANCE");
    }
    let one_only = ClusterMistake::BadReplication { replication: 2, most: 1 };
    for form in [Sharding::AnyOf, Sharding::Ketama, Sharding::Jump(Vec::new())] {
        assert_eq!(mistake(&form, &N3, 2), Some(one_only), "{form:?}");
    }
    for form in &FORMS {
        assert_eq!(cluster(form, &[], 1).owner(b"a"), None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn keys_of_an_endpoint_that_is_down_fail_over_and_return(
        out in proptest::collection::btree_set(0usize..5, 0..6),
        replication in 1u8..=5,
        key in proptest::collection::vec(proptest::num::u8::ANY, 0..30),
    ) {
        let labels = ["a:1=1", "b:1=2", "c:1=3", "d:1=4", "e:1=5"];
        for form in FORMS.iter().chain([&CARBON]) {
            let mut cluster = cluster(form, &labels, replication);
            let (mut all_live, mut placed) = (Vec::new(), Vec::new());
            cluster.owners(&key, &mut all_live);
            prop_assert_eq!(all_live.len(), usize::from(replication));
            let mut distinct = all_live.clone();
            distinct.sort_unstable();
            distinct.dedup();
            prop_assert_eq!(distinct.len(), all_live.len());
            prop_assert_eq!(cluster.owner(&key), Some(usize::from(all_live[0])));
            for endpoint in &out {
                cluster.set_live(*endpoint, false);
            }
            cluster.owners(&key, &mut placed);
            prop_assert_eq!(&placed, &all_live, "sharding does not depend on live endpoints");
            let owner = cluster.owner(&key);
            prop_assert_eq!(owner.is_none(), out.len() == 5);
            prop_assert!(owner.is_none_or(|owner| cluster.is_live(owner)));
            let fail_over = cluster.fail_over(key_hash(&key), &placed);
            prop_assert!(fail_over.is_none_or(|own| cluster.is_live(own) && !placed.contains(&(own as u16))));
            let free = (0..5).any(|own| cluster.is_live(own) && !placed.contains(&(own as u16)));
            prop_assert_eq!(fail_over.is_some(), free);
        }
    }
}

#[test]
fn fast_hashing_visits_hosts_in_the_order_of_their_hashes() {
    // Output of carbon 1.1.10; members from 1.
    let labels = ["10.0.0.1:2004=a", "10.0.0.1:2104=b", "10.0.0.2:2004=a", "10.0.0.3:2004"];
    let keys = ["a", "foo.bar", "servers.web01.cpu.total.user", "my.super.metric", "stats_counts.logins"];
    let table = [
        (CarbonHash::Mmh3Ch, true, ["23", "31", "42", "14", "14"]),
        (CarbonHash::CarbonCh, true, ["13", "13", "23", "34", "41"]),
        (CarbonHash::CarbonCh, false, ["12", "12", "23", "34", "41"]),
        (CarbonHash::Fnv1aCh, true, ["41", "41", "13", "32", "32"]),
    ];
    for (hash, diverse, want) in table {
        let cluster = cluster(&Sharding::CarbonPython { hash, fast: true, diverse }, &labels, 2);
        assert_eq!(keys.map(|key| digits(&cluster, key)), want, "{hash:?} {diverse}");
    }
}
