//! Combinations of the options of packet outputs.

use process::sharding::{HealthPlan, KeyForm, RingReplicas, Sharding};
use wire::statsd::rewrite::{Form, NegativeGauges, TagFormat};

use super::{codes, good};
use crate::plan::*;

/// A file with one output of packets that takes from `from`, with these lines.
fn file(kind: &str, from: &str, lines: &str) -> String {
    let to = match kind {
        "udp" => "udp://h:1",
        "tcp" => "tcp://h:1",
        _ => "unixgram:///s",
    };
    format!(
        "[sources.app]\ntype = \"statsd\"\n[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\n\
         [outputs.o]\ntype = \"{kind}\"\nfrom = [\"{from}\"]\nto = [\"{to}\"]\n{lines}\n"
    )
}

fn packets(plan: &Plan) -> &PacketsPlan {
    match &plan.outputs[0].kind {
        OutputKind::Packets(packets) => packets,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_mode_follows_from_the_options() {
    // Packet bytes: `None` for verbatim, 0 for one packet per line.
    let table: &[(&str, &str, &str, Option<usize>)] = &[
        ("udp", "app", "", None),
        ("udp", "app", "mode = \"verbatim\"", None),
        ("udp", "app", "required = true", None),
        ("udp", "app", "mode = \"repack\"", Some(1432)),
        ("tcp", "app", "mode = \"repack\"", Some(8192)),
        ("unix", "app", "mode = \"repack\"", Some(8192)),
        ("udp", "app", "mode = \"lines\"", Some(0)),
        ("udp", "app", "allow = [\"a\"]", Some(1432)),
        ("udp", "app", "allow = [\"a\"]\nmode = \"lines\"", Some(0)),
        ("udp", "app", "max_packet_bytes = \"512B\"", Some(512)),
        ("udp", "app", "flush_delay = \"1s\"", Some(1432)),
        ("udp", "app", "convert = \"keep\"", Some(1432)),
        ("udp", "stats", "", Some(1432)),
        ("udp", "app", "sharding = \"copy\"", None),
        ("udp", "app", "sharding = \"jump\"", Some(0)),
        ("udp", "app", "sharding = \"jump\"\nprefix = \"a.\"", Some(0)),
        ("udp", "app", "sharding = \"jump\"\nflush_delay = \"1s\"", Some(1432)),
        ("udp", "app", "sharding = \"jump\"\nmode = \"repack\"", Some(1432)),
    ];
    for (kind, from, lines, want) in table {
        let plan = good(&file(kind, from, lines));
        let got = packets(&plan).lines.as_ref().map(|lines| lines.packet_bytes_max);
        assert_eq!(got, *want, "{kind} from {from}: {lines}");
    }
    for (from, lines) in [
        ("app", "mode = \"verbatim\"\nevents = true"),
        ("app", "mode = \"verbatim\"\nsharding = \"jump\""),
        ("stats", "mode = \"verbatim\""),
    ] {
        let found = codes(&file("udp", from, lines));
        assert_eq!(found.iter().filter(|code| **code == "C025").count(), 1, "{from}: {lines}: {found:?}");
    }
}

#[test]
fn switches_change_single_parts_of_a_form() {
    let table: &[(&str, Form)] = &[
        ("convert = \"etsy\"", Form::ETSY),
        ("convert = \"etsy\"\nevents = true", Form { events: true, ..Form::ETSY }),
        ("convert = \"dogstatsd_1_0\"\nstrip = []", Form { strip: Form::KEEP.strip, ..Form::DOGSTATSD_1_0 }),
        ("tag_format = \"graphite\"", Form::GRAPHITE_TAGS),
    ];
    for (lines, want) in table {
        let plan = good(&file("udp", "app", lines));
        let lines_plan = packets(&plan).lines.as_ref().unwrap();
        assert_eq!(lines_plan.rewrite.to, *want, "{lines}");
        assert_eq!(lines_plan.aggregates.names, lines_plan.rewrite, "aggregates are called alike");
    }
    let printed = crate::print(&good(&file("udp", "app", "convert = \"etsy\"\ntag_format = \"graphite\"")));
    assert!(printed.contains("convert = \"etsy_tags\"") && !printed.contains("tag_format"), "{printed}");
    assert_eq!(Form::ETSY_TAGS.tags, TagFormat::Graphite);
}

#[test]
fn aggregates_have_their_own_format() {
    let lines = "max_packet_bytes = \"512B\"\naggregates = { negative_gauges = \"signed\", packed = true }";
    let plan = good(&file("udp", "stats", lines));
    let form = &packets(&plan).lines.as_ref().unwrap().aggregates;
    let got = (form.negative_gauges, form.packed, form.times, form.line_bytes_max);
    assert_eq!(got, (NegativeGauges::Signed, true, false, 512));
}

#[test]
fn a_cluster_has_its_endpoints_as_outputs() {
    let text = |more: &str| {
        format!(
            "[sources.app]\ntype = \"statsd\"\n[outputs.first]\ntype = \"console\"\nfrom = [\"t\"]\n\
             [transforms.t]\ntype = \"aggregate\"\nfrom = [\"app\"]\n[outputs.c]\ntype = \"tcp\"\nfrom = [\"app\"]\n\
             to = [\"tcp://b:1\", \"tcp://[::1]:2\"]\n{more}\n"
        )
    };
    let plan = good(&text("sharding = \"statsd-node\"\nring_replicas = 4\nkey = \"series\""));
    let cluster = &plan.clusters[0];
    assert_eq!((&*cluster.name, cluster.key), ("c", KeyForm::Series));
    assert_eq!(cluster.sharding, Sharding::StatsdNode(RingReplicas::Four));
    assert_eq!(cluster.labels, ["b:1", "[::1]:2"]);
    let members: Vec<&str> = cluster.members.iter().map(|id| &*plan.outputs[id.index()].name).collect();
    assert_eq!(members, ["c/b:1", "c/[::1]:2"]);
    let shards = "sharding = \"jump\"\nshards = { \"b:1\" = \"3, 0-1\", \"[::1]:2\" = \"2\" }";
    assert_eq!(good(&text(shards)).clusters[0].sharding, Sharding::Jump(vec![0, 0, 1, 0]));
    let one = good(&file("udp", "app", "sharding = \"ketama\""));
    assert_eq!(one.outputs[0].name, "o/h:1", "a member is named after its endpoint, even the only one");
    let named = file("udp", "app", "sharding = \"ketama\"").replace("outputs.o", "outputs.\"o/h:1\"");
    assert!(codes(&named).contains(&"C009"), "{:?}", codes(&named));
}

#[test]
fn shards_have_their_limits() {
    let codes_of = |ranges: &str| {
        codes(&file("udp", "app", &format!("sharding = \"jump\"\nshards = {{ \"h:1\" = \"{ranges}\" }}")))
    };
    assert!(!codes_of("0-65535").contains(&"C026"));
    for ranges in ["0-65536", "", "1", "0-1, 1", "0-", "-1", "0,", "+0", "0-99999999999999999999"] {
        assert!(codes_of(ranges).contains(&"C026"), "{ranges:?}");
    }
}

#[test]
fn checks_use_the_configured_addresses() {
    let check = |kind: &str, check: &str| {
        let plan = good(&file(kind, "app", &format!("check = {{ {check} }}")));
        plan.outputs[0].check.clone().unwrap()
    };
    let at = |host: &str, port| Endpoint { host: host.into(), port };
    let table = [
        ("tcp", "kind = \"connect\"", CheckKind::Connect, at("h", 1)),
        ("udp", "kind = \"connect\", port = 7", CheckKind::Connect, at("h", 7)),
        ("udp", "kind = \"management\", port = 8126", CheckKind::Management, at("h", 8126)),
        ("unix", "kind = \"http\", at = [\"[::1]:80\"]", CheckKind::Http("/".into()), at("::1", 80)),
    ];
    for (kind, line, want, place) in table {
        let plan = check(kind, line);
        assert_eq!((plan.kind, plan.at), (want, place), "{kind}: {line}");
        assert_eq!((plan.every_ms, plan.health), (10_000, HealthPlan::default()), "{kind}: {line}");
    }
    let slow = check("tcp", "kind = \"connect\", checks = 5, down_after = 3, every = \"1s\"");
    assert_eq!((slow.every_ms, slow.health), (1_000, HealthPlan::new(5, 3, 1).unwrap()));
}

#[test]
fn a_management_port_in_proxy_mode_has_a_cluster() {
    let port = |more: &str| file("udp", "app", &format!("sharding = \"jump\"\n[management]\n{more}"));
    let replies = |text: &str| good(text).management[0].replies;
    assert_eq!(replies(&port("replies = \"proxy\"")), ManagementReplies::Proxy { cluster: 0 });
    assert_eq!(
        replies(&port("replies = \"proxy\"\ncluster = \"o\"")),
        ManagementReplies::Proxy { cluster: 0 }
    );
    assert!(codes(&port("replies = \"proxy\"\ncluster = \"p\"")).contains(&"C014"));
    assert!(codes(&port("cluster = \"o\"")).contains(&"C022"));
    let none = file("udp", "app", "[management]\nreplies = \"proxy\"");
    assert!(codes(&none).contains(&"C006"));
    // Only one error: the cluster is missing because of it.
    let broken = port("replies = \"proxy\"").replace("\"jump\"", "\"ketama\"\nlabels = []");
    assert!(!codes(&broken).contains(&"C006"), "{:?}", codes(&broken));
}
