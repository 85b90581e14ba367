//! Golden tests of users' files; single options by table; random text.
//!
//! `tests/import/statsd_proxy/NAME.js` with `NAME.want`: the configuration and the diagnostics as a user sees them.
//! After an intended change `UPDATE=1 cargo test -p import statsd_proxy` rewrites the `.want` files: read the diff.

use process::sharding::{Cluster, Sharding};
use proptest::prelude::*;

use super::*;
use crate::corpus;
use config::diagnostic::{Severity, Source, render};

fn vars(name: &str) -> Option<String> {
    let value = match name {
        "FIRST_PORT" => "8135",
        "STATSD_PORT" => "9125",
        _ => return None,
    };
    Some(value.to_owned())
}

fn import(text: &str) -> (Option<ProxyConfig>, Vec<Diagnostic>) {
    statsd_proxy(text, &Environment { vars: &vars, hostname: "web1.example".into() })
}

const NODE: &str = "{host: 'h', port: 1, adminport: 2}";

/// A valid file with one node and `more` keys, with or without warnings.
fn good(more: &str) -> ProxyConfig {
    let (config, diagnostics) = import(&format!("{{nodes: [{NODE}], {more}}}"));
    config.unwrap_or_else(|| panic!("{more}: {diagnostics:?}"))
}

fn describe(config: &ProxyConfig) -> String {
    let mut lines = Vec::new();
    for node in &config.nodes {
        lines.push(format!("node {:?} {} {}, label {}", node.host, node.port, node.adminport, node.label));
    }
    lines.push(format!("listen {:?}, nodes over IPv6 {}", config.listen, config.nodes_ipv6));
    lines.push(format!("management {}", config.management));
    lines.extend(config.management_config.iter().map(|(key, value)| format!("  {key}: {value}")));
    lines.push(format!("check every {} ms, replicas {:?}", config.check_interval_ms, config.ring_replicas));
    lines.push(format!("reload on change {}\n", config.reload_on_change));
    lines.join("\n")
}

#[test]
fn corpus_files_give_the_expected_results() {
    let files = corpus::files("import/statsd_proxy", "js");
    assert!(files.len() >= 6, "{files:?}");
    for path in files {
        let (name, text) = corpus::read(&path);
        let (config, diagnostics) = import(&text);
        let mut got = config.as_ref().map_or("no configuration\n".into(), describe);
        got += &render(Source { name: &name, text: &text }, &diagnostics, false);
        corpus::assert_wanted(&path, &got);
    }
}

#[test]
fn options_not_set_have_the_originals_defaults() {
    for more in
        ["", "port: 0, mgmt_port: '', checkInterval: null, forkCount: 0, cacheSize: 0, ring_replicas: 0"]
    {
        let config = good(more);
        assert_eq!(config.listen, Listen::Udp("0.0.0.0:8125".parse().unwrap()));
        assert_eq!(config.management, "[::]:8126".parse().unwrap());
        assert_eq!((config.check_interval_ms, config.nodes_ipv6), (10_000, false));
        assert_eq!((config.ring_replicas, config.reload_on_change), (RingReplicas::One, true));
    }
}

#[test]
fn listeners_are_those_of_the_original() {
    let udp = |text: &str| Listen::Udp(text.parse().unwrap());
    let tcp = |text: &str| Listen::Tcp(text.parse().unwrap());
    for (more, listen, ipv6) in [
        ("address: '10.1.2.3', port: '9125'", udp("10.1.2.3:9125"), false),
        ("address_ipv6: true", udp("[::]:8125"), true),
        ("server: './servers/tcp'", tcp("[::]:8125"), false),
        ("server: './servers/tcp', address_ipv6: true, address: '::1'", tcp("[::1]:8125"), true),
        (
            "server: './servers/tcp', socket: '/run/s', socket_mod: 0660",
            Listen::UnixStream { path: "/run/s".into(), mode: Some(0o660) },
            false,
        ),
    ] {
        let (config, diagnostics) = import(&format!("{{nodes: [{NODE}], {more}}}"));
        let config = config.unwrap_or_else(|| panic!("{more}: {diagnostics:?}"));
        assert_eq!((config.listen, config.nodes_ipv6), (listen, ipv6), "{more}");
        assert_eq!(diagnostics, [], "{more}");
    }
}

#[test]
fn labels_are_hashed_as_in_the_original() {
    let text =
        "{nodes: [{host: '10.0.0.1', port: 8125, adminport: 1}, {host: 'H', port: '08125', adminport: 1},
        {host: '::1', port: 0x1fbd, adminport: 1}]}";
    let nodes = import(text).0.expect("a good file").nodes;
    let labels: Vec<&str> = nodes.iter().map(|node| node.label.as_str()).collect();
    assert_eq!(labels, ["10.0.0.1:8125", "H:08125", "::1:8125"]);
    assert!(nodes.iter().all(|node| node.port == 8125));
    assert!(Cluster::new(&Sharding::StatsdNode(RingReplicas::One), &labels).is_ok());
}

#[test]
fn the_config_command_prints_the_file() {
    let pairs = good("checkInterval: 1000, log: {backend: 'stdout'}").management_config;
    let pairs: Vec<String> = pairs.into_iter().map(|(key, value)| format!("{key}: {value}")).collect();
    assert_eq!(pairs, ["nodes > 0: [object Object]", "checkInterval: 1000", "log > backend: stdout"]);
}

#[test]
fn the_number_of_nodes_is_limited_by_the_cluster_limit() {
    let nodes = |count: usize| {
        let node = |number| format!("{{host: 'h{number}', port: 1, adminport: 1}}");
        format!("{{nodes: [{}]}}", (0..count).map(node).collect::<Vec<_>>().join(","))
    };
    assert_eq!(import(&nodes(ENDPOINTS_MAX)).0.expect("at the limit").nodes.len(), ENDPOINTS_MAX);
    let (config, diagnostics) = import(&nodes(ENDPOINTS_MAX + 1));
    assert_eq!((config, diagnostics.len(), diagnostics[0].code), (None, 1, Code::ImportBadValue));
}

/// Text, code, the words at the caret.
const MISTAKES: &[(&str, Code, &str)] = &[
    ("[1]", Code::ImportBadType, "[1]"),
    ("{}", Code::ImportBadValue, "{}"),
    ("{nodes: null}", Code::ImportBadValue, "null"),
    ("{nodes: []}", Code::ImportBadValue, "[]"),
    ("{nodes: 'h:8125'}", Code::ImportBadType, "'h:8125'"),
    ("{nodes: ['h:8125']}", Code::ImportBadType, "'h:8125'"),
    ("{nodes: [{port: 1, adminport: 2}]}", Code::ImportBadValue, "{port: 1, adminport: 2}"),
    ("{nodes: [{host: 'h', adminport: 2}]}", Code::ImportBadValue, "{host: 'h', adminport: 2}"),
    ("{nodes: [{host: 'h', port: 1}]}", Code::ImportBadValue, "{host: 'h', port: 1}"),
    ("{nodes: [{host: '', port: 1, adminport: 2}]}", Code::ImportBadValue, "''"),
    ("{nodes: [{host: 'h:1', port: 1, adminport: 2}]}", Code::ImportBadValue, "'h:1'"),
    ("{nodes: [{host: ['h'], port: 1, adminport: 2}]}", Code::ImportBadType, "['h']"),
    ("{nodes: [{host: 'h', port: '0', adminport: 2}]}", Code::ImportBadValue, "'0'"),
    ("{nodes: [{host: 'h', port: 1.5, adminport: 2}]}", Code::ImportBadValue, "1.5"),
    ("{nodes: [{host: 'h', port: 1, adminport: 'x'}]}", Code::ImportBadType, "'x'"),
    ("{nodes: [{host: 'h', port: 1, adminport: 65536}]}", Code::ImportBadValue, "65536"),
    ("{nodes: [NODE], port: 65536}", Code::ImportBadValue, "65536"),
    ("{nodes: [NODE], address: 'h'}", Code::ImportBadValue, "'h'"),
    ("{nodes: [NODE], server: 'statsd-http'}", Code::ImportBadValue, "'statsd-http'"),
    ("{nodes: [NODE], mgmt_port: 1.5}", Code::ImportBadValue, "1.5"),
    ("{nodes: [NODE], mgmt_address: 'h'}", Code::ImportBadValue, "'h'"),
    ("{nodes: [NODE], checkInterval: '10s'}", Code::ImportBadType, "'10s'"),
    ("{nodes: [NODE], checkInterval: 2147483648}", Code::ImportBadValue, "2147483648"),
    ("{nodes: [NODE], forkCount: 'cpus'}", Code::ImportBadType, "'cpus'"),
    ("{nodes: [NODE], cacheSize: {}}", Code::ImportBadType, "{}"),
    ("{nodes: [NODE], ring_replicas: 3}", Code::ImportBadValue, "3"),
    ("{nodes: [NODE], ring_replicas: 'four'}", Code::ImportBadType, "'four'"),
    ("{nodes: [NODE], automaticConfigReload: {}}", Code::ImportBadType, "{}"),
    ("{nodes: [NODE], log: 'syslog'}", Code::ImportBadType, "'syslog'"),
];

#[test]
fn mistakes_are_errors_with_a_place() {
    for (text, code, words) in MISTAKES {
        let text = text.replace("NODE", NODE);
        let (config, diagnostics) = import(&text);
        assert!(config.is_none(), "text {text}: {diagnostics:?}");
        let errors: Vec<_> = diagnostics.iter().filter(|found| found.severity == Severity::Error).collect();
        let [error] = errors[..] else { panic!("text {text}: {diagnostics:?}") };
        assert_eq!(error.code, *code, "text {text}: {error:?}");
        let place = error.place.unwrap();
        assert_eq!(&text[place.start..place.end], *words, "text {text}");
    }
}

#[test]
fn options_without_effect_give_warnings() {
    let table: &[(&str, Code, &str)] = &[
        ("forkCount: 2", Code::NotCarriedOver, "forkCount"),
        ("forkCount: '4'", Code::NotCarriedOver, "forkCount"),
        ("forkCount: 'auto'", Code::NotCarriedOver, "forkCount"),
        ("cacheSize: 100", Code::NotCarriedOver, "cacheSize"),
        ("log: {backend: 'syslog'}", Code::NotCarriedOver, "'syslog'"),
        ("host: '127.0.0.1'", Code::ImportNoEffect, "host"),
        ("host: 'localhost'", Code::ImportNoEffect, "host"),
        ("udp_version: 'udp6'", Code::ImportNoEffect, "udp_version"),
        ("udp_version: 'udp4', address_ipv6: true", Code::ImportNoEffect, "udp_version"),
        ("socket: '/run/s'", Code::ImportNoEffect, "socket"),
        ("healthStatus: 'up'", Code::ImportUnknownKey, "healthStatus"),
        ("servers: []", Code::ImportUnknownKey, "servers"),
        ("log: {file: 'x'}", Code::ImportUnknownKey, "file"),
        ("checkInterval: parseInt(process.env.NONE)", Code::ImportBadValue, "parseInt(process.env.NONE)"),
        ("automaticConfigReload: 'false'", Code::ImportBadType, "'false'"),
    ];
    for (more, code, words) in table {
        let text = format!("{{nodes: [{NODE}], {more}}}");
        let (config, diagnostics) = import(&text);
        assert!(config.is_some(), "{more}: {diagnostics:?}");
        let [warning] = &diagnostics[..] else { panic!("{more}: {diagnostics:?}") };
        assert_eq!(warning.code, *code, "{more}: {warning:?}");
        let place = warning.place.unwrap();
        assert_eq!(&text[place.start..place.end], *words, "{more}");
    }
    for nothing_lost in [
        "forkCount: 1",
        "cacheSize: 10000",
        "cacheSize: '10000'",
        "host: '0.0.0.0', udp_version: 'udp4'",
        "host: '10.0.0.5', address: '10.0.0.5'",
        "udp_version: 'udp6', address_ipv6: true, host: '::'",
        "log: {backend: 'stdout'}",
    ] {
        assert_eq!(import(&format!("{{nodes: [{NODE}], {nothing_lost}}}")).1, [], "{nothing_lost}");
    }
}

proptest! {
    #[test]
    fn any_values_give_a_configuration_or_errors(
        key in proptest::sample::select(vec![
            "nodes", "port", "address", "address_ipv6", "server", "socket", "mgmt_port", "mgmt_address", "host",
            "checkInterval", "cacheSize", "forkCount", "ring_replicas", "log", "automaticConfigReload", "udp_version",
        ]),
        value in proptest::sample::select(vec![
            "1", "-1", "0", "1e99", "NaN", "''", "'x'", "'::'", "'10.0.0.1'", "[]", "[[]]", "[{}]", "{}", "null",
            "true", "undefined", "/x/", "[{host: 'a', port: 1, adminport: 1, x: 1}]", "'./servers/tcp'",
        ]),
    ) {
        let text = format!("{{nodes: [{NODE}], {key}: {value}}}");
        let (config, diagnostics) = import(&text);
        prop_assert_eq!(config.is_none(), has_errors(&diagnostics), "{}: {:?}", text, diagnostics);
        if let Some(config) = config {
            prop_assert!(!config.nodes.is_empty() && config.check_interval_ms > 0);
        }
    }
}
