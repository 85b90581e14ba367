//! `staunch explain` knows every word that a daemon and its clients show: names and labels of `/metrics`, members of the API's
//! documents, headings of `top`, `status` and `queue ls`, members of log lines.
//!
//! Words are collected from real output, so that a new one without a page fails here. Not here: what a page says.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::daemon::STAUNCH;
use crate::support::{Builder, Daemon, udp, wait_for};

/// Labels whose values are a closed set of ours, and not names from a config.
const CLOSED_LABELS: [&str; 5] = ["outcome", "reason", "result", "type", "error"];

/// A daemon that has something of everything.
const CONFIG: &str = "stop_timeout = \"1s\"\n\
    [sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\", \"tcp://127.0.0.1:0\"]\n\
    [sources.lines]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
    [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"1s\"\n\
    [transforms.router]\ntype = \"relay\"\nfrom = [\"lines\"]\n\
    [transforms.router.clusters]\nring = { type = \"failover\", to = [\"dead\", \"live\"] }\n\
    [[transforms.router.rules]]\nto = [\"ring\"]\n\
    [outputs.dead]\ntype = \"graphite\"\nfrom = [\"router\"]\nto = [\"tcp://127.0.0.1:1\"]\nqueue = { kind = \"disk\" }\n\
    [outputs.live]\ntype = \"graphite\"\nfrom = [\"router\"]\nto = [\"tcp://127.0.0.1:1\"]\n\
    [outputs.copy]\ntype = \"udp\"\nfrom = [\"app\"]\nto = [\"udp://127.0.0.1:9\"]\n\
    [outputs.file]\ntype = \"graphite_file\"\nfrom = [\"stats\"]\n\
    [management]\nlisten = \"127.0.0.1:0\"\n";

fn run(args: &[&str]) -> String {
    let run = Command::new(STAUNCH).args(args).stdin(Stdio::null()).output().expect("the binary starts");
    String::from_utf8(run.stdout).expect("it is text")
}

/// Every word of the list that `staunch explain` prints without one.
fn known() -> BTreeSet<String> {
    let listed = run(&["explain"]);
    listed.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

fn members(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(table) => {
            for (member, value) in table {
                into.insert(member.clone());
                members(value, into);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| members(value, into)),
        _ => {}
    }
}

/// Names of metrics, and values of labels that are ours.
fn of_metrics(text: &str, into: &mut BTreeSet<String>) {
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split(' ').next()) {
            into.insert(name.to_owned());
        }
        let Some((_, labels)) = line.split_once('{').filter(|_| !line.starts_with('#')) else { continue };
        let (labels, _) = labels.rsplit_once('}').expect("labels end");
        for (label, value) in labels.split("\",").filter_map(|label| label.split_once("=\"")) {
            into.insert(label.to_owned());
            let value = value.trim_end_matches('"');
            if CLOSED_LABELS.contains(&label) && !value.is_empty() {
                into.insert(value.to_owned());
            }
        }
    }
}

/// Single words between two or more blanks: the headings of a table, without its sentences.
fn headings(line: &str) -> impl Iterator<Item = String> {
    let cells = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
    let words = cells.flat_map(|cell| cell.split(' ').filter(move |_| !cell.contains("since")));
    let words = words.map(|word| word.trim_matches(['[', ']', ':']).to_lowercase());
    words.filter(|word| !word.is_empty() && word.parse::<u64>().is_err())
}

fn of_screens(daemon: &Daemon, into: &mut BTreeSet<String>) {
    let api = daemon.http().to_string();
    let top = run(&["top", "--once", "--api", &api]);
    let is_heading =
        |line: &&str| ["SOURCES", "RELAYS", "CLUSTERS", "OUTPUTS"].iter().any(|name| line.contains(name));
    let found: Vec<&str> = top.lines().filter(is_heading).collect();
    assert_eq!(found.len(), 4, "{top}");
    into.extend(found.iter().flat_map(|line| headings(line)));
    let status = run(&["status", "--no-wait", "--api", &api]);
    let tables = status.split("\n\n").skip(1).filter_map(|table| table.lines().next());
    into.extend(tables.flat_map(headings).filter(|word| !["empty", "none"].contains(&word.as_str())));
    let data_dir = daemon.folder.path().join("staunch-data").display().to_string();
    let listed = run(&["queue", "ls", "--data-dir", &data_dir]);
    into.extend(headings(
        listed.lines().next().expect("there is a queue on disk").replace(' ', "  ").as_str(),
    ));
    for args in [
        &["top", "--once", "--json", "--api", &api][..],
        &["status", "--json", "--no-wait", "--api", &api],
        &["queue", "ls", "--json", "--data-dir", &data_dir],
    ] {
        let text = run(args);
        members(
            &serde_json::from_str(&text).unwrap_or_else(|_| panic!("{args:?} prints no JSON: {text}")),
            into,
        );
    }
}

/// Words that are names of this test's config or of the system, and no words of ours.
const NAMES: [&str; 2] = ["pid", "data_dir"];

#[test]
fn explain_knows_every_word_on_screen() {
    let mut daemon = Builder::native(CONFIG).start();
    udp(daemon.at("app", "udp")).send(b"hits:1|c\nt:5|ms\nbad").expect("it is there");
    let metrics = wait_for("a flush, and an output that is down", || {
        let text = daemon.get("/metrics").body;
        let down = "staunch_output_down{output=\"dead\"} 1";
        Some(text).filter(|text| text.contains("staunch_flush_age_seconds{") && text.contains(down))
    });
    let mut words = BTreeSet::new();
    of_metrics(&metrics, &mut words);
    for path in ["accounts", "relay", "queues", "series"] {
        members(&daemon.json(&format!("/api/v1/{path}")), &mut words);
    }
    of_screens(&daemon, &mut words);
    daemon.stop();
    words.extend(["time", "level", "message", "fields"].map(str::to_owned));
    // Words of version 0.1.0 that notes and dashboards still have.
    words.extend(["rejected", "refused", "internal"].map(str::to_owned));
    assert!(words.len() > 200, "{words:?}");
    let known = known();
    let has_page = |word: &str| {
        let rate = word.strip_suffix("_per_s");
        known.contains(word) || rate.is_some_and(|counted| known.contains(counted)) || NAMES.contains(&word)
    };
    let without: Vec<&String> = words.iter().filter(|word| !has_page(word)).collect();
    assert!(without.is_empty(), "words without a page: {without:?}");
}

#[test]
fn explain_finds_rates_metrics_and_old_words() {
    for (word, part) in [
        ("records_per_s", "the rate of `records` per second"),
        ("staunch_output_down", "1 while"),
        ("process_open_fds", "Open file descriptors"),
        ("staunch_source_batch_packets_bucket", "Histogram"),
        ("ECONNREFUSED", "an error of the system"),
        ("refused_by_peer", "rejected_by_peer: a family of outcomes"),
        ("refused", "rejected_by_peer"),
        ("internal", "a family of outcomes"),
        ("copy/s", "Copies routed"),
    ] {
        let text = run(&["explain", word]);
        assert!(text.contains(part), "{word}: {text}");
    }
}
