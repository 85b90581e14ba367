//! Golden tests of users' files; single options by table; random text.
//!
//! `tests/import/statsd/NAME.js` with `NAME.want`: a summary of the plan and the diagnostics as a user sees them.
//! After an intended change `UPDATE=1 cargo test -p import statsd` rewrites the `.want` files: read the diff.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use crate::corpus;
use config::diagnostic::render;
use config::plan::ManagementReplies;

fn vars(name: &str) -> Option<String> {
    let value = match name {
        "GRAPHITE_HOST" => "carbon.example",
        "GRAPHITE_PORT" => "2103",
        "STATSD_PORT" => "9125",
        "FLUSH_INTERVAL" => "60000",
        "NODE_ENV" => "production",
        "DELETE_IDLE" => "true",
        "REPEATERS" => "10.0.0.1:8125,10.0.0.2:8126",
        _ => return None,
    };
    Some(value.to_owned())
}

fn import(text: &str, compat: Option<Compat>) -> (Option<Plan>, Vec<Diagnostic>) {
    let environment = Environment { vars: &vars, hostname: "web1.example".into() };
    statsd(text, &environment, compat.unwrap_or_else(|| detect(text)), false)
}

/// A summary of the plan: what a file can change, one thing a line.
fn describe(plan: &Plan) -> String {
    let mut out = String::new();
    let mut line = |text: String| writeln!(out, "{text}").unwrap();
    let source = &plan.sources[0];
    let SourceKind::Statsd(options) = &source.kind else { panic!("no StatsD") };
    for listen in &source.listen {
        line(format!("listen {listen:?}"));
    }
    line(format!(
        "reads {:?}, sanitize {}, count names {}",
        options.dialect, options.sanitize, options.count_names
    ));
    let transform = plan.transforms[0].kind.as_aggregate().expect("an aggregation");
    let aggregate = &transform.plan;
    line(format!("window {} ms, {:?}", aggregate.window_ms, aggregate.align));
    line(format!("percentiles {:?}, {:?}", aggregate.percentiles, aggregate.percent_label));
    for histogram in &aggregate.histograms {
        line(format!("histogram {:?} {:?}", histogram.name_contains, histogram.bins));
    }
    line(format!("timers {:?}, rate ignored {}", aggregate.timer_aggregates, aggregate.timer_rate_ignored));
    let idle = &aggregate.idle;
    line(format!("idle c {:?} g {:?} t {:?} s {:?}", idle.counters, idle.gauges, idle.timers, idle.sets));
    line(format!("self {:?} {:?}", transform.stats_prefix, transform.self_counters));
    line(format!("key flush {:?} to {:?}", aggregate.key_flush, transform.key_flush_log));
    for output in &plan.outputs {
        line(format!("output {} {:?}", output.name, output.kind));
    }
    for management in &plan.management {
        line(format!(
            "management {} perl {} healthy {}",
            management.listen,
            management.replies == ManagementReplies::Perl,
            management.healthy
        ));
    }
    out
}

#[test]
fn corpus_files_give_the_expected_results() {
    let files = corpus::files("import/statsd", "js");
    assert!(files.len() >= 15, "{files:?}");
    for path in files {
        let (name, text) = corpus::read(&path);
        let (plan, diagnostics) = import(&text, None);
        if let Some(plan) = &plan {
            let printed = config::print(plan);
            let again = config::check(Source { name: "printed", text: &printed }, Format::Toml).0;
            assert_eq!(again.as_ref(), Some(plan), "{name} gives\n{printed}");
        }
        let mut got = format!("{:?}\n", detect(&text));
        got += &plan.as_ref().map_or("no plan\n".into(), describe);
        got += &render(Source { name: &name, text: &text }, &diagnostics, false);
        corpus::assert_wanted(&path, &got);
    }
}

/// The plan of a valid node file, with or without warnings.
fn node(text: &str) -> Plan {
    let (plan, diagnostics) = import(text, Some(Compat::Node));
    plan.unwrap_or_else(|| panic!("{text}: {diagnostics:?}"))
}

fn aggregate_of(plan: &Plan) -> &AggregateTransform {
    plan.transforms[0].kind.as_aggregate().expect("an aggregation")
}

#[test]
fn listeners_are_those_of_the_original() {
    let udp = |text: &str| Listen::Udp(text.parse().unwrap());
    let tcp = |text: &str| Listen::Tcp(text.parse().unwrap());
    let unix = |path: &str, mode| Listen::UnixStream { path: path.into(), mode };
    let table: &[(&str, Vec<Listen>)] = &[
        ("{}", vec![udp("0.0.0.0:8125")]),
        ("{port: 0}", vec![udp("0.0.0.0:8125")]),
        ("{port: '9125'}", vec![udp("0.0.0.0:9125")]),
        ("{port: ''}", vec![udp("0.0.0.0:8125")]),
        ("{address: '10.1.2.3'}", vec![udp("10.1.2.3:8125")]),
        ("{address: 'localhost'}", vec![udp("127.0.0.1:8125")]),
        ("{address_ipv6: true}", vec![udp("[::]:8125")]),
        ("{address_ipv6: true, address: '::1'}", vec![udp("[::1]:8125")]),
        ("{address_ipv6: true, address: 'localhost'}", vec![udp("[::1]:8125")]),
        ("{server: './servers/tcp'}", vec![tcp("[::]:8125")]),
        ("{server: './servers/tcp.js', address: '0.0.0.0'}", vec![tcp("0.0.0.0:8125")]),
        ("{server: './servers/tcp', socket: '/run/s'}", vec![unix("/run/s", None)]),
        ("{server: './servers/tcp', socket: '/run/s', socket_mod: 0777}", vec![unix("/run/s", Some(0o777))]),
        ("{server: './servers/tcp', socket: '/run/s', socket_mod: '660'}", vec![unix("/run/s", Some(0o660))]),
        (
            "{servers: [{server: './servers/udp', port: 1}, {server: './servers/tcp', port: 2}]}",
            vec![udp("0.0.0.0:1"), tcp("[::]:2")],
        ),
    ];
    for (text, want) in table {
        assert_eq!(node(text).sources[0].listen, *want, "text {text}");
    }
}

#[test]
fn aggregation_options_are_read() {
    let percentiles = |text: &str| {
        let plan = node(&format!("{{percentThreshold: {text}}}"));
        let each = aggregate_of(&plan).plan.percentiles.clone();
        each.into_iter().map(|(percent, text)| format!("{percent}={text}")).collect::<Vec<_>>().join(" ")
    };
    for (text, want) in [
        ("95", "95=95"),
        ("'95'", "95=95"),
        ("0", "90=90"),
        ("null", "90=90"),
        ("[]", ""),
        ("[90, 99.9, -10, '50.0', 90]", "90=90 99.9=99.9 -10=-10 50=50.0"),
        ("[0, 100, -100]", "0=0 100=100 -100=-100"),
        ("90.0", "90=90"),
    ] {
        assert_eq!(percentiles(text), want, "percentThreshold {text}");
    }
    let keep = SeriesExpiry::Keep;
    let delete = |ttl_windows| SeriesExpiry::Delete { ttl_windows };
    for (text, counters, gauges) in [
        ("{}", keep, keep),
        ("{deleteIdleStats: true}", delete(1), delete(1)),
        ("{deleteIdleStats: true, deleteCounters: false}", keep, delete(1)),
        ("{deleteIdleStats: true, deleteGauges: null}", delete(1), keep),
        ("{deleteCounters: 1}", delete(1), keep),
        ("{deleteCounters: 'true', deleteIdleStats: ''}", delete(1), keep),
        ("{deleteGauges: true, gaugesMaxTTL: 6}", keep, delete(6)),
        ("{deleteGauges: true, gaugesMaxTTL: '6'}", keep, delete(1)),
        ("{deleteGauges: true, gaugesMaxTTL: 'x'}", keep, delete(1)),
        ("{deleteGauges: 'false', deleteCounters: 'no'}", delete(1), delete(1)),
        ("{deleteGauges: true, gaugesMaxTTL: -2}", keep, delete(1)),
        ("{deleteGauges: true, gaugesMaxTTL: 2.5}", keep, delete(1)),
        ("{deleteGauges: true, gaugesMaxTTL: 0}", keep, delete(1)),
    ] {
        let plan = node(text);
        let idle = aggregate_of(&plan).plan.idle;
        assert_eq!((idle.counters, idle.gauges), (counters, gauges), "text {text}");
    }
    let plan = node("{histogram: [{metric: '', bins: [0.01, 10, 'inf']}, {metric: 'x', bins: []}]}");
    let histograms = &aggregate_of(&plan).plan.histograms;
    let bins = vec![(0.01, "0.01".to_owned()), (10.0, "10".to_owned()), (f64::INFINITY, "inf".to_owned())];
    assert_eq!((&histograms[0].bins, histograms[1].bins.len()), (&bins, 0));
}

use process::aggregate::{FlushAlign, SeriesExpiry};

#[test]
fn falsy_values_mean_the_default() {
    let plan = node(
        "{flushInterval: 0, port: null, mgmt_port: '', prefixStats: 'x', graphitePort: false, keyFlush: {}}",
    );
    assert_eq!(plan.management[0].listen, "[::]:8126".parse().unwrap());
    assert_eq!(aggregate_of(&plan).plan.window_ms, 10_000);
    let (plan, diagnostics) = import("{port: parseInt(process.env.NONE)}", Some(Compat::Node));
    assert_eq!(plan.unwrap().sources[0].listen, [Listen::Udp("0.0.0.0:8125".parse().unwrap())]);
    assert!(diagnostics.iter().any(|found| found.code == Code::ImportBadValue));
}

#[test]
fn node_and_perl_differ_where_the_originals_do() {
    let text = r#"{"graphiteHost": "h", "backends": ["./backends/graphite", "./backends/console"], "deleteIdleStats": true}"#;
    let (node, _) = import(text, Some(Compat::Node));
    let (perl, _) = import(text, Some(Compat::Perl));
    let (node, perl) = (node.unwrap(), perl.unwrap());
    let (a, b) = (aggregate_of(&node), aggregate_of(&perl));
    assert_eq!((a.plan.align, b.plan.align), (FlushAlign::Start, FlushAlign::Interval));
    assert_eq!((a.self_counters, b.self_counters), (SelfCounters::Node, SelfCounters::Perl));
    assert_eq!((a.plan.timer_rate_ignored, b.plan.timer_rate_ignored), (false, true));
    assert_eq!((a.plan.keep_contains.len(), b.plan.keep_contains.len()), (3, 0));
    assert_eq!((a.plan.timer_exact_max, a.plan.set_exact_max, a.plan.timer_weights), (0, 0, false));
    let replies = |plan: &Plan| plan.management[0].replies;
    assert_eq!((replies(&node), replies(&perl)), (ManagementReplies::Node, ManagementReplies::Perl));
    assert_eq!(perl.sources[0].receive_buffer_bytes, 64 << 20);
    let perl_default = import("{}", Some(Compat::Perl)).0.unwrap();
    assert!(matches!(
        perl_default.outputs[0].kind,
        OutputKind::Console { form: config::plan::ConsoleEncoding::Perl, .. }
    ));
}

/// Text, code, the words at the caret.
const MISTAKES: &[(&str, Code, &str)] = &[
    ("[1]", Code::ImportBadType, "[1]"),
    ("undefined", Code::ImportBadType, "undefined"),
    ("{port: 'abc'}", Code::ImportBadType, "'abc'"),
    ("{port: [8125]}", Code::ImportBadType, "[8125]"),
    ("{port: 65536}", Code::ImportBadValue, "65536"),
    ("{port: -1}", Code::ImportBadValue, "-1"),
    ("{port: 81.5}", Code::ImportBadValue, "81.5"),
    ("{address: 'statsd.example'}", Code::ImportBadValue, "'statsd.example'"),
    ("{address: '::1'}", Code::ImportBadValue, "'::1'"),
    ("{address_ipv6: true, address: '127.0.0.1'}", Code::ImportBadValue, "'127.0.0.1'"),
    ("{server: './servers/http'}", Code::ImportBadValue, "'./servers/http'"),
    ("{server: 'udp'}", Code::ImportBadValue, "'udp'"),
    ("{servers: {}}", Code::ImportBadType, "{}"),
    ("{servers: []}", Code::ImportBadValue, "[]"),
    ("{servers: ['./servers/udp']}", Code::ImportBadType, "'./servers/udp'"),
    ("{servers: [{}, {port: 8125}]}", Code::ImportBadValue, "{port: 8125}"),
    ("{server: './servers/tcp', socket: 's', socket_mod: '999'}", Code::ImportBadValue, "'999'"),
    ("{flushInterval: '10s'}", Code::ImportBadType, "'10s'"),
    ("{flushInterval: 0.5}", Code::ImportBadValue, "0.5"),
    ("{flushInterval: -5}", Code::ImportBadValue, "-5"),
    ("{flushInterval: 2147483648}", Code::ImportBadValue, "2147483648"),
    ("{percentThreshold: [90, 101]}", Code::ImportBadValue, "101"),
    ("{percentThreshold: '90,95'}", Code::ImportBadType, "'90,95'"),
    ("{percentThreshold: {}}", Code::ImportBadType, "{}"),
    ("{percentThreshold: ['']}", Code::ImportBadType, "''"),
    ("{calculatedTimerMetrics: 'upper'}", Code::ImportBadType, "'upper'"),
    ("{calculatedTimerMetrics: [1]}", Code::ImportBadType, "1"),
    ("{histogram: {metric: '', bins: []}}", Code::ImportBadType, "{metric: '', bins: []}"),
    ("{histogram: [{bins: [1]}]}", Code::ImportBadValue, "{bins: [1]}"),
    ("{histogram: [{metric: ''}]}", Code::ImportBadValue, "{metric: ''}"),
    ("{histogram: [{metric: '', bins: [2, 1]}]}", Code::ImportBadValue, "1"),
    ("{histogram: [{metric: '', bins: ['inf', 1]}]}", Code::ImportBadValue, "1"),
    ("{histogram: [{metric: '', bins: ['x']}]}", Code::ImportBadType, "'x'"),
    ("{histogram: [{metric: /a/, bins: [1]}]}", Code::ImportBadType, "/a/"),
    ("{deleteGauges: []}", Code::ImportBadType, "[]"),
    ("{nodes: []}", Code::ImportBadValue, "nodes"),
    ("{keyFlush: 10}", Code::ImportBadType, "10"),
    ("{keyFlush: {interval: 'x'}}", Code::ImportBadType, "'x'"),
    ("{keyFlush: {percent: -1}}", Code::ImportBadValue, "-1"),
    ("{graphite: {legacyNamespace: 'false'}}", Code::ImportBadType, "'false'"),
    ("{graphite: {legacyNamespace: null}}", Code::ImportBadType, "null"),
    ("{graphite: {legacyNamespace: false, globalPrefix: {}}}", Code::ImportBadType, "{}"),
    ("{graphite: 'x'}", Code::ImportBadType, "'x'"),
    ("{graphiteHost: 'h:2003'}", Code::ImportBadValue, "'h:2003'"),
    ("{graphiteHost: 'http://h'}", Code::ImportBadValue, "'http://h'"),
    ("{graphiteHost: ['h']}", Code::ImportBadType, "['h']"),
    ("{graphiteHost: 'h', graphitePort: 'x'}", Code::ImportBadType, "'x'"),
    ("{graphiteProtocol: 'udp'}", Code::ImportBadValue, "'udp'"),
    ("{prefixStats: null}", Code::ImportBadType, "null"),
    ("{backends: './backends/graphite'}", Code::ImportBadType, "'./backends/graphite'"),
    ("{backends: [1]}", Code::ImportBadType, "1"),
    ("{backends: ['graphite']}", Code::UnknownBackend, "'graphite'"),
    ("{backends: ['statsd-librato-backend']}", Code::UnknownBackend, "'statsd-librato-backend'"),
    ("{backends: ['./backends/repeater'], repeater: [{port: 1}]}", Code::ImportBadValue, "{port: 1}"),
    ("{backends: ['./backends/repeater'], repeater: [{host: 'h'}]}", Code::ImportBadValue, "{host: 'h'}"),
    ("{backends: ['./backends/repeater'], repeater: ['h:1']}", Code::ImportBadType, "'h:1'"),
    (
        "{backends: ['./backends/repeater'], repeater: {host: 'h', port: 1}}",
        Code::ImportBadType,
        "{host: 'h', port: 1}",
    ),
    ("{repeaterProtocol: 'udp'}", Code::ImportBadValue, "'udp'"),
    ("{mgmt_port: 99999}", Code::ImportBadValue, "99999"),
    ("{mgmt_address: 'h'}", Code::ImportBadValue, "'h'"),
    ("{healthStatus: 'fine'}", Code::ImportBadValue, "'fine'"),
    ("{log: {backend: 'file'}}", Code::ImportBadValue, "'file'"),
    ("{console: {prettyprint: []}}", Code::ImportBadType, "[]"),
    ("{debug: {}}", Code::ImportBadType, "{}"),
];

#[test]
fn mistakes_are_errors_with_a_place() {
    for (text, code, words) in MISTAKES {
        let (plan, diagnostics) = import(text, Some(Compat::Node));
        assert!(plan.is_none(), "text {text}: {diagnostics:?}");
        let found = diagnostics.iter().find(|found| found.severity == Severity::Error);
        let found = found.unwrap_or_else(|| panic!("text {text}: {diagnostics:?}"));
        assert_eq!(found.code, *code, "text {text}: {found:?}");
        let place = found.place.unwrap();
        assert_eq!(&text[place.start..place.end], *words, "text {text}");
    }
}

#[test]
fn options_without_effect_give_warnings() {
    let table: &[(&str, Code, &str)] = &[
        ("{flushInteval: 1}", Code::ImportUnknownKey, "flushInteval"),
        ("{graphite: {legacyNamspace: 1}}", Code::ImportUnknownKey, "legacyNamspace"),
        ("{servers: [{prot: 1}]}", Code::ImportUnknownKey, "prot"),
        ("{keyFlush: {intervall: 1}}", Code::ImportUnknownKey, "intervall"),
        ("{log: {file: 'x'}}", Code::ImportUnknownKey, "file"),
        ("{console: {pretty: true}}", Code::ImportUnknownKey, "pretty"),
        ("{nodes: [], backends: []}", Code::ImportUnknownKey, "nodes"),
        ("{deleteSets: 'maybe'}", Code::ImportBadType, "'maybe'"),
        ("{deleteIdleStats: 'false'}", Code::ImportBadType, "'false'"),
        ("{keyNameSanitize: 'off'}", Code::ImportBadType, "'off'"),
        ("{legacyNamespace: false}", Code::ImportNoEffect, "legacyNamespace"),
        ("{globalPrefix: 'x'}", Code::ImportNoEffect, "globalPrefix"),
        ("{graphite: {globalPrefix: 'x'}}", Code::ImportNoEffect, "globalPrefix"),
        ("{graphite: {prefixStats: 'x'}}", Code::ImportNoEffect, "prefixStats"),
        ("{servers: [{}], port: 1}", Code::ImportNoEffect, "port"),
        ("{socket: '/run/s'}", Code::ImportNoEffect, "socket"),
        ("{server: './servers/tcp', socket_mod: 0777}", Code::ImportNoEffect, "socket_mod"),
        ("{server: './servers/tcp', socket: 's', port: 1}", Code::ImportNoEffect, "port"),
        ("{server: './servers/tcp', socket: 's', socket_mod: 777}", Code::ImportBadValue, "777"),
        ("{server: './servers/tcp', address_ipv6: true}", Code::ImportNoEffect, "address_ipv6"),
        ("{backends: [], graphiteHost: 'h'}", Code::ImportNoEffect, "graphiteHost"),
        ("{repeater: [{host: 'h', port: 1}]}", Code::ImportNoEffect, "repeater"),
        ("{console: {prettyprint: true}}", Code::ImportNoEffect, "console"),
        ("{calculatedTimerMetrics: ['upper_90']}", Code::ImportNoEffect, "'upper_90'"),
        ("{gaugesMaxTTL: 1.5}", Code::ImportBadValue, "1.5"),
        ("{gaugesMaxTTL: '6'}", Code::ImportBadValue, "'6'"),
        ("{keyFlush: {interval: 1, percent: 200}}", Code::ImportBadValue, "200"),
        ("{prefixStats: ''}", Code::NotCarriedOver, "''"),
        ("{debug: true}", Code::NotCarriedOver, "debug"),
        ("{dumpMessages: true}", Code::NotCarriedOver, "dumpMessages"),
        ("{title: 'x'}", Code::NotCarriedOver, "title"),
        ("{log: {backend: 'syslog'}}", Code::NotCarriedOver, "'syslog'"),
        ("{log: {backend: 'syslog', application: 'x'}}", Code::NotCarriedOver, "application"),
        ("{log: {level: 'LOG_DEBUG'}}", Code::ImportNoEffect, "level"),
        (
            "{backends: ['./backends/console', './backends/console']}",
            Code::NotCarriedOver,
            "'./backends/console'",
        ),
    ];
    for (text, code, words) in table {
        let (plan, diagnostics) = import(text, Some(Compat::Node));
        assert!(plan.is_some(), "text {text}: {diagnostics:?}");
        let hit = diagnostics.iter().any(|found| {
            found.code == *code && found.place.is_some_and(|place| &text[place.start..place.end] == *words)
        });
        assert!(hit, "text {text}: {diagnostics:?}");
    }
    let quiet = "{graphiteHost: 'h', debug: false, dumpMessages: false, title: false, automaticConfigReload: true, \
        log: {backend: 'stdout', application: 'statsd', level: 'LOG_INFO'}, keyFlush: {interval: 0}, repeater: null}";
    assert_eq!(import(quiet, Some(Compat::Node)).1, []);
}

#[test]
fn perl_keys_differ() {
    let table: &[(&str, Code, &str)] = &[
        (r#"{"percentThreshold": 95}"#, Code::ImportNoEffect, "95"),
        (r#"{"flush_counts": false}"#, Code::ImportUnknownKey, r#""flush_counts""#),
        (r#"{"graphiteProtocol": "pickle"}"#, Code::ImportUnknownKey, r#""graphiteProtocol""#),
        (r#"{"histogram": []}"#, Code::ImportUnknownKey, r#""histogram""#),
        (r#"{"graphite": {"globalSuffix": "x"}}"#, Code::ImportUnknownKey, r#""globalSuffix""#),
        (r#"{"debugInterval": 1000}"#, Code::NotCarriedOver, r#""debugInterval""#),
        (r#"{"test": {"outputFile": "x"}}"#, Code::NotCarriedOver, r#""test""#),
        (r#"{"file": {"name": "x"}}"#, Code::ImportNoEffect, r#""file""#),
        (r#"{"prefixStats": ""}"#, Code::ImportBadValue, r#""""#),
        (r#"{"backends": ["Rrdtool"]}"#, Code::UnknownBackend, r#""Rrdtool""#),
        (r#"{"backends": ['Console']}"#, Code::ImportSyntax, "'"),
        (r#"{port: 8125}"#, Code::ImportSyntax, "port"),
        (r#"{"port": 8125 // x"#, Code::ImportSyntax, "/"),
    ];
    for (text, code, words) in table {
        let (_, diagnostics) = import(text, Some(Compat::Perl));
        let hit = diagnostics.iter().any(|found| {
            found.code == *code && found.place.is_some_and(|place| &text[place.start..place.end] == *words)
        });
        assert!(hit, "text {text}: {diagnostics:?}");
    }
    for name in ["Graphite", "graphite", "./backends/graphite", "Net::Statsd::Server::Backend::Graphite"] {
        let text = format!(r#"{{"backends": ["{name}"], "graphiteHost": "h",}} # end"#);
        let (plan, diagnostics) = import(&text, Some(Compat::Perl));
        assert_eq!((plan.unwrap().outputs.len(), diagnostics.len()), (1, 0), "{name}");
    }
}

#[test]
fn the_original_of_a_file_is_detected() {
    let table = [
        ("{}", Compat::Node),
        ("{port: 8125}", Compat::Node),
        ("// # not perl\n{a: '#'}", Compat::Node),
        ("# it's perl\n{}", Compat::Perl),
        ("{\"port\": 8125, # x\n}", Compat::Perl),
        (r#"{"backends": ["./backends/graphite"]}"#, Compat::Node),
        (r#"{"backends": ["Graphite"]}"#, Compat::Perl),
        (r#"{"backends": ["My::Backend"]}"#, Compat::Perl),
        (r#"{"backends": ["statsd-influxdb-backend"]}"#, Compat::Node),
        ("{backends: ['graphite']}", Compat::Node),
        ("", Compat::Node),
    ];
    for (text, want) in table {
        assert_eq!(detect(text), want, "text {text}");
    }
}

#[test]
fn unknown_backends_can_be_ignored() {
    let text = "{backends: ['./backends/graphite', 'statsd-influxdb-backend'], graphiteHost: 'h'}";
    let environment = Environment { vars: &vars, hostname: String::new() };
    let (plan, diagnostics) = statsd(text, &environment, Compat::Node, true);
    assert_eq!(plan.unwrap().outputs.len(), 1);
    assert!(diagnostics[0].code == Code::UnknownBackend && diagnostics[0].severity == Severity::Warning);
    assert!(diagnostics[0].message.contains("statsd-influxdb-backend"));
}

#[test]
fn the_config_command_lists_the_file() {
    let text = "{port: '1', 8: true, deleteIdleStats: false, none: null, u: undefined, re: /x/, \
        backends: ['./backends/console'], extra: [90, [1, 2]], graphite: {a: 1, b: {c: 2}}}";
    let plan = node(text);
    let lines: Vec<String> =
        plan.management[0].config.iter().map(|(key, value)| format!("{key}: {value}")).collect();
    let want = [
        "8: true",
        "port: 1",
        "deleteIdleStats: false",
        "u: undefined",
        "backends > 0: ./backends/console",
        "extra > 0: 90",
        "extra > 1: 1,2",
        "graphite > a: 1",
        "graphite > b: [object Object]",
        "flushInterval: 10000",
        "gaugesMaxTTL: 1",
        "deleteCounters: false",
        "deleteTimers: false",
        "deleteSets: false",
        "deleteGauges: false",
    ];
    assert_eq!(lines, want);
    let plan = node("{a: {b: 1}, 'a > b': 2, '': 3}");
    assert_eq!(plan.management[0].config[..2], [("a > b".into(), "1".into()), (String::new(), "3".into())]);
    let added = plan.management[0].config.len() - 2;
    for (entries, want) in [(9_999, 9_999), (10_000, 10_000), (10_001, 10_000)] {
        let plan = node(&format!("{{x: [{}]}}", "1,".repeat(entries)));
        assert_eq!(plan.management[0].config.len(), want + added);
    }
}

#[test]
fn the_config_command_lists_the_delete_options() {
    let plan = node("{flushInterval: 500, gaugesMaxTTL: 3, deleteIdleStats: true, deleteGauges: false}");
    let lines: Vec<_> =
        plan.management[0].config.iter().map(|(key, value)| format!("{key}: {value}")).collect();
    let want = [
        "flushInterval: 500",
        "gaugesMaxTTL: 3",
        "deleteIdleStats: true",
        "deleteGauges: false",
        "deleteCounters: true",
        "deleteTimers: true",
        "deleteSets: true",
    ];
    assert_eq!(lines, want);
}

#[test]
fn the_whole_plan_is_checked() {
    let repeater = |to: &str| format!("{{backends: ['./backends/repeater'], repeater: [{{{to}}}]}}");
    for (text, code) in [
        (repeater("host: '127.0.0.1', port: 8125"), Code::Loop),
        (repeater("host: 'localhost', port: 8125"), Code::Loop),
        ("{servers: [{port: 1}, {address: '127.0.0.1', port: 1}]}".into(), Code::AddressTaken),
        ("{server: './servers/tcp', port: 8126}".into(), Code::AddressTaken),
        (
            format!("{{backends: [], histogram: [{{metric: '', bins: [{}]}}]}}", ascending(1001)),
            Code::TooMany,
        ),
    ] {
        let (plan, diagnostics) = import(&text, Some(Compat::Node));
        let found = diagnostics.iter().any(|found| found.code == code);
        assert!(plan.is_none() && found, "{code:?} {diagnostics:?}");
    }
    let (plan, diagnostics) = import("{mgmt_port: 8680, graphiteHost: 'h'}", Some(Compat::Node));
    assert_eq!((plan.unwrap().http, diagnostics[0].code), (None, Code::AddressTaken));
}

fn ascending(n: usize) -> String {
    (1..=n).map(|limit| format!("{limit},")).collect()
}

#[test]
fn repeaters_are_fed_by_the_source() {
    let text = |protocol: &str| {
        format!(
            "{{backends: ['./backends/repeater'], repeaterProtocol: '{protocol}', repeater: [{{host: '::1', port: '1'}}]}}"
        )
    };
    for protocol in ["udp4", "udp6", "tcp"] {
        let plan = node(&text(protocol));
        let output = &plan.outputs[0];
        assert_eq!(output.name, "repeater");
        assert_eq!(output.from, [config::plan::Feed::Source(SOURCE)]);
        assert_eq!(
            matches!(&output.kind, OutputKind::Packets(packets) if !packets.to.is_datagram()),
            protocol == "tcp"
        );
    }
    let many = |n: usize| {
        let each: String = (1..=n).map(|port| format!("{{host: 'h', port: {port}}},")).collect();
        format!("{{backends: ['./backends/repeater'], repeater: [{each}]}}")
    };
    assert_eq!(node(&many(1000)).outputs[999].name, "repeater/h:1000");
    assert!(import(&many(1001), Some(Compat::Node)).0.is_none());
}

proptest! {
    #[test]
    fn any_object_gives_a_plan_or_errors(
        members in prop::collection::vec((prop::sample::select(KEYS), prop::sample::select(VALUES)), 0..12),
        perl in any::<bool>(),
    ) {
        let each: Vec<String> = members.iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
        let text = format!("{{{}}}", each.join(", "));
        let compat = if perl { Compat::Perl } else { Compat::Node };
        let (plan, diagnostics) = import(&text, Some(compat));
        prop_assert_eq!(plan.is_none(), has_errors(&diagnostics), "{}", text);
        if let Some(plan) = plan {
            let printed = config::print(&plan);
            let again = config::check(Source { name: "printed", text: &printed }, Format::Toml).0;
            prop_assert_eq!(again, Some(plan), "{}", printed);
        }
    }

    #[test]
    fn any_text_is_read_or_rejected(text in "(?s).{0,120}") {
        for compat in [None, Some(Compat::Node), Some(Compat::Perl)] {
            let (plan, diagnostics) = import(&text, compat);
            prop_assert_eq!(plan.is_none(), has_errors(&diagnostics));
        }
    }
}

const KEYS: &[&str] = &[
    "backends",
    "servers",
    "server",
    "address",
    "address_ipv6",
    "port",
    "socket",
    "socket_mod",
    "graphiteHost",
    "graphitePort",
    "graphitePicklePort",
    "graphiteProtocol",
    "graphite",
    "prefixStats",
    "flushInterval",
    "flush_counts",
    "percentThreshold",
    "calculatedTimerMetrics",
    "histogram",
    "deleteIdleStats",
    "deleteGauges",
    "gaugesMaxTTL",
    "keyNameSanitize",
    "keyFlush",
    "repeater",
    "repeaterProtocol",
    "console",
    "mgmt_address",
    "mgmt_port",
    "healthStatus",
    "dumpMessages",
    "debug",
    "log",
    "title",
    "automaticConfigReload",
    "file",
    "test",
    "legacyNamespace",
    "debugInterval",
    "x",
];

const VALUES: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "1",
    "-1",
    "2.5",
    "1e300",
    "8125",
    "\"\"",
    "\"0\"",
    "\"8125\"",
    "\"x\"",
    "\"false\"",
    "\"./servers/tcp\"",
    "\"::1\"",
    "\"localhost\"",
    "\"pickle\"",
    "\"down\"",
    "\"tcp\"",
    "[]",
    "[1]",
    "[\"90\", -5]",
    "[null]",
    "[\"./backends/graphite\"]",
    "[\"./backends/repeater\", \"./backends/console\"]",
    "[\"File\"]",
    "{}",
    "{\"legacyNamespace\": false, \"globalPrefix\": \"g\"}",
    "{\"interval\": 10, \"percent\": 3}",
    "{\"name\": \"f\"}",
    "[{\"host\": \"h\", \"port\": 1}]",
    "[{\"metric\": \"m\", \"bins\": [1, \"inf\"]}]",
    "[{\"port\": 1}, {\"port\": 1}]",
];
