//! The HTTP API: pages of series, the accounts, and self-metrics whose names are an interface.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use serde_json::Value;

use crate::support::traffic::send_all;
use crate::support::{Builder, Daemon, FakeGraphite, udp};

fn start() -> (Daemon, FakeGraphite) {
    let graphite = FakeGraphite::new();
    let toml = crate::sources::config(&["udp://127.0.0.1:0"], &graphite)
        .replace("window = \"1h\"", "window = \"1h\"\nself_counters = \"none\"");
    (Builder::native(&toml).start(), graphite)
}

fn names(page: &Value) -> Vec<String> {
    let rows = page["series"].as_array().expect("a list of series");
    rows.iter().map(|row| row["name"].as_str().expect("a text").to_owned()).collect()
}

#[test]
fn series_are_found_by_glob_and_type() {
    let (mut daemon, _graphite) = start();
    udp(daemon.at("app", "udp"))
        .send(b"web.hits:1|c\nweb.hits:2|c\nweb.time:5|ms\nweb.time:7|ms\nweb.load:3.5|g\nweb.users:a|s\ndb.hits:1|c|#dc:x,az:1")
        .expect("it is there");
    daemon.wait_source("app", "aggregated", 7);
    for (query, want) in [
        ("", &["db.hits", "web.hits", "web.load", "web.time", "web.users"][..]),
        ("?name=web.*", &["web.hits", "web.load", "web.time", "web.users"]),
        ("?name=*.hits", &["db.hits", "web.hits"]),
        ("?name=web.%7Bhits,load%7D", &["web.hits", "web.load"]),
        ("?name=w?b.[hl]*", &["web.hits", "web.load"]),
        ("?type=timer", &["web.time"]),
        ("?type=set&name=*", &["web.users"]),
        ("?name=nobody", &[]),
    ] {
        let page = daemon.json(&format!("/api/v1/series{query}"));
        let mut found = names(&page);
        found.sort_unstable();
        assert_eq!(found, want, "{query}");
        assert!(page.get("next").is_none(), "{query}: all is on one page");
    }
    let value = |query: &str| daemon.json(&format!("/api/v1/series?{query}"))["series"][0].clone();
    assert_eq!(value("name=web.hits")["value"], 3.0);
    assert_eq!(value("name=web.load")["value"], 3.5);
    assert_eq!(value("name=web.time")["values"], serde_json::json!([5.0, 7.0]));
    assert_eq!(value("name=web.users")["value"], 1.0);
    let tagged = value("name=db.hits");
    assert_eq!(
        (&tagged["tags"], &tagged["type"]),
        (&serde_json::json!(["az:1", "dc:x"]), &Value::from("counter"))
    );
    assert_eq!(tagged["transform"], "stats");
    daemon.stop();
}

/// A client that sends a datagram and then asks finds it: a script (and the first example of the README) does just that.
#[test]
fn a_datagram_is_in_the_answer_to_a_question_that_was_asked_after_it() {
    let (mut daemon, _graphite) = start();
    let client = udp(daemon.at("app", "udp"));
    let done = AtomicBool::new(false);
    let missing = std::thread::scope(|scope| {
        // The daemon has something to do when the question comes.
        scope.spawn(|| {
            let busy = udp(daemon.at("app", "udp"));
            let packet = b"busy:1|c\n".repeat(50);
            while !done.load(Relaxed) {
                let _ = busy.send(&packet);
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
        });
        let missing = (0..300)
            .filter(|n| {
                client.send(format!("asked.{n}:1|c").as_bytes()).expect("it is there");
                names(&daemon.json(&format!("/api/v1/series?name=asked.{n}"))).is_empty()
            })
            .count();
        done.store(true, Relaxed);
        missing
    });
    // A busy kernel may hand a datagram on from a thread of its own, after the call that sent it.
    assert!(missing <= 3, "{missing} of 300 answers were made before what had come was read");
    daemon.stop();
}

#[test]
fn five_thousand_series_are_paged_without_gap_or_double() {
    let (mut daemon, _graphite) = start();
    let packets =
        (0..250).map(|at| (0..20).map(|n| format!("s.{:04}:1|c\n", at * 20 + n)).collect::<String>());
    send_all(&udp(daemon.at("app", "udp")), packets);
    daemon.wait_source("app", "aggregated", 5000);
    for (limit, glob, want) in
        [(1000, "*", 5000), (997, "s.*", 5000), (100, "s.?0??", 1000 / 2), (7, "s.000?", 10)]
    {
        let mut seen = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = daemon.json(&format!("/api/v1/series?name={glob}&limit={limit}{cursor}"));
            let found = names(&page);
            assert!(found.len() <= limit);
            seen.extend(found);
            match page["next"].as_u64() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(seen.len(), want, "{glob}");
        assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), want, "{glob}: none twice");
    }
    daemon.stop();
}

#[test]
fn bad_queries_get_a_sentence() {
    let (mut daemon, _graphite) = start();
    for (query, part) in [
        ("type=counters", "`type` is counter, gauge, timer or set"),
        ("name=%5Ba", "`name` is no glob"),
        (&format!("name={}", "x".repeat(2000)), "`name` is longer than"),
        ("cursor=x", "cursor"),
        ("limit=-1", "limit"),
        ("limit=0", "`limit`"),
        ("nam=x", "nam"),
    ] {
        let answer = daemon.get(&format!("/api/v1/series?{query}"));
        assert_eq!(answer.status, 400, "{query}: {}", answer.body);
        assert!(answer.body.contains(part), "{query}: {}", answer.body);
        assert_eq!(answer.body.trim_end().lines().count(), 1, "{query}: {}", answer.body);
    }
    for cursor in [u64::MAX, 1 << 40, 12_345] {
        assert_eq!(
            daemon.get(&format!("/api/v1/series?cursor={cursor}")).status,
            200,
            "past the end there is nothing"
        );
    }
    assert_eq!(daemon.get("/nowhere").status, 404);
    assert_eq!(daemon.get("/").status, 200);
    daemon.stop();
}

/// Names with their types; panics on whatever is no Prometheus text.
fn families(text: &str) -> BTreeMap<String, String> {
    let (mut help, mut kinds) = (BTreeSet::new(), BTreeMap::new());
    let mut samples = BTreeSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, text) = rest.split_once(' ').expect("a name and a text");
            assert!(!text.is_empty() && help.insert(name.to_owned()), "once: {line}");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a name and a type");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert!(kinds.insert(name.to_owned(), kind.to_owned()).is_none(), "once: {line}");
        } else {
            let (series, value) = line.rsplit_once(' ').expect("a series and a value");
            value.parse::<f64>().unwrap_or_else(|_| panic!("no number: {line}"));
            let name = series.split('{').next().expect("a split has a first part");
            let of_histogram = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            let name = of_histogram
                .filter(|name| kinds.get(*name).is_some_and(|kind| kind == "histogram"))
                .unwrap_or(name);
            assert!(help.contains(name) && kinds.contains_key(name), "without HELP or TYPE: {line}");
            assert_eq!(series.contains('{'), series.ends_with('}'), "{line}");
            assert!(samples.insert(series.to_owned()), "twice: {line}");
        }
    }
    assert!(text.ends_with('\n'));
    kinds
}

#[test]
fn self_metrics_keep_their_names() {
    let (mut daemon, _graphite) = start();
    let socket = udp(daemon.at("app", "udp"));
    socket.send(b"a:1|c\nb:1|g\nbad").expect("it is there");
    daemon.wait_source("app", "received", 3);
    let answer = daemon.get("/metrics");
    assert!(answer.head.contains("content-type: text/plain; version=0.0.4"), "{}", answer.head);
    let families = families(&answer.body);
    let names: String = families.iter().map(|(name, kind)| format!("{name} {kind}\n")).collect();
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/metrics.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(golden, &names).expect("the golden file can be written");
    }
    let want = std::fs::read_to_string(golden).unwrap_or_default();
    assert_eq!(
        names, want,
        "names of self-metrics are an interface: a change needs UPDATE=1 and a line in CHANGELOG.md"
    );
    assert!(answer.body.contains(
        "staunch_source_records_total{source=\"app\",outcome=\"rejected\",reason=\"no_type\"} 1\n"
    ));
    assert!(answer.body.contains("staunch_series{transform=\"stats\",type=\"counter\"} 1\n"));
    for (bound, calls) in [("1", 1), ("64", 1), ("+Inf", 1)] {
        let bucket =
            format!("staunch_source_batch_packets_bucket{{source=\"app\",le=\"{bound}\"}} {calls}\n");
        assert!(answer.body.contains(&bucket), "{bucket}{}", answer.body);
    }
    assert!(answer.body.contains("staunch_source_batch_packets_sum{source=\"app\"} 1\n"));
    assert!(answer.body.contains("staunch_source_balanced{source=\"app\"} 1\n"));
    daemon.stop();
}

/// Series of losses are there before the first one, so that `increase()` sees it.
#[test]
fn losses_have_their_series_at_0_before_the_first_one() {
    let (mut daemon, _graphite) = start();
    let losses = |daemon: &Daemon| {
        let text = daemon.get("/metrics").body;
        let rows = text.lines().filter_map(|line| line.rsplit_once(' '));
        let of_losses = rows.filter(|(series, _)| {
            let counts = [
                "staunch_source_records_total{",
                "staunch_transform_records_total{",
                "staunch_output_copies_total{",
            ];
            counts.iter().any(|name| series.starts_with(name)) && !series.contains("reason=\"\"")
        });
        of_losses.map(|(series, value)| (series.to_owned(), value.to_owned())).collect::<BTreeMap<_, _>>()
    };
    let before = losses(&daemon);
    assert!(before.values().all(|value| value == "0"), "{before:#?}");
    for (series, there) in [
        ("staunch_source_records_total{source=\"app\",outcome=\"rejected\",reason=\"no_type\"}", true),
        ("staunch_source_records_total{source=\"app\",outcome=\"dropped\",reason=\"series_max\"}", true),
        ("staunch_source_records_total{source=\"app\",outcome=\"rejected\",reason=\"no_timestamp\"}", false),
        (
            "staunch_transform_records_total{transform=\"stats\",from=\"app\",outcome=\"dropped\",reason=\"series_max\"}",
            true,
        ),
        ("staunch_output_copies_total{output=\"carbon\",outcome=\"dropped\",reason=\"queue_full\"}", true),
    ] {
        assert_eq!(before.contains_key(series), there, "{series}: {before:#?}");
    }
    let bad = ["bad", "a|c", "a:x|c", "a:1|q", "a:1|c|@2", "a:-1|ms", ":1|c", "a:inf|g"];
    udp(daemon.at("app", "udp")).send(bad.join("\n").as_bytes()).expect("it is there");
    daemon.wait_source("app", "received", bad.len() as u64);
    let after = losses(&daemon);
    assert!(after.values().any(|value| value != "0"), "{after:#?}");
    let new: Vec<&String> = after.keys().filter(|series| !before.contains_key(*series)).collect();
    assert!(new.is_empty(), "series that began with their first loss: {new:#?}");
    daemon.stop();
}

#[test]
fn health_and_readiness() {
    let (mut daemon, _graphite) = start();
    assert_eq!((daemon.get("/healthz").status, daemon.get("/ready").status), (200, 200));
    daemon.stop();
}
