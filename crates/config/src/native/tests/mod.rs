//! The options table against the checks, random texts against panics, plans against their printed form.

mod email;
mod http_output;
mod opentsdb;
mod packets;
mod plans;
mod relay_plans;
mod relays;
mod riemann;

use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::diagnostic::{Severity, render};
use crate::options::{Default, Row, Type};
use crate::plan::{ManagementPlan, OutputKind};

fn run(text: &str, format: Format) -> (Option<Plan>, Vec<Diagnostic>) {
    check(Source { name: "test", text }, format)
}

/// The plan of a text without errors.
fn good(text: &str) -> Plan {
    let (plan, wrong) = run(text, Format::Toml);
    plan.unwrap_or_else(|| panic!("{}\n{text}", render(Source { name: "test", text }, &wrong, false)))
}

fn codes(text: &str) -> Vec<&'static str> {
    run(text, Format::Toml).1.iter().map(|wrong| wrong.code.word()).collect()
}

/// The form of self-metrics that has the option `key`.
fn form_of(key: &str) -> &'static str {
    match key {
        "reset" | "report" => "encoding = \"carbon-c-relay\"\n",
        "program" => "encoding = \"carbon\"\n",
        _ => "",
    }
}

/// A whole file with `line` in a section, and the section's required options other than `key`.
fn file_with(section: Section, key: &str, line: &str) -> String {
    let kind = if key == "sync_window" { "kind = \"disk\"\n" } else { "" };
    let needs = |wanted: &[(&str, &str)]| -> String {
        let other = wanted.iter().filter(|(name, _)| *name != key);
        other.map(|(name, value)| format!("{name} = {value}\n")).collect()
    };
    let source = "[sources.app]\ntype = \"statsd\"\n";
    let transform = "[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\n";
    let all = format!("{source}{transform}");
    let output = |kind: &str, from: &str, more: &[(&str, &str)]| {
        format!("{all}[outputs.o]\ntype = \"{kind}\"\nfrom = [\"{from}\"]\n{}{line}", needs(more))
    };
    // The options that an option needs to have an effect.
    let packets = |to: &'static str| {
        let more = match key {
            "series_expiry" => ("max_series", "10"),
            "bare_tag_value" => ("convert", "\"graphite_tags\""),
            "ring_replicas" => ("sharding", "\"statsd-node\""),
            "key" | "labels" => ("sharding", "\"ketama\""),
            "shards" => ("sharding", "\"jump\""),
            _ => ("required", "false"),
        };
        [("to", to), more]
    };
    match section {
        Section::Top => format!("{line}\n{all}"),
        Section::SourceStatsd => format!("{source}{line}\n{transform}"),
        Section::SourceGraphite => file_with_points(key, line),
        Section::SourceOpenTsdb => {
            let to_carbon = "[outputs.o]\ntype = \"graphite\"\nfrom = [\"app\"]\nto = [\"tcp://h:2003\"]\n";
            format!("[sources.app]\ntype = \"opentsdb\"\n{line}\n{to_carbon}")
        }
        Section::SourceRiemann => file_with_events(key, line),
        Section::SourceTls | Section::OutputTls => file_with_tls(section, key, line),
        Section::SourceSelf => format!("{all}[sources.own]\ntype = \"self\"\n{}{line}", form_of(key)),
        Section::TransformAggregate => format!("{all}{line}"),
        Section::Histogram => all + "[[transforms.stats.histograms]]\n" + &needs(&[("bins", "[1]")]) + line,
        Section::Expiry => format!("{all}[transforms.stats.expiry]\n{line}"),
        Section::KeyFlush => {
            format!("{all}[transforms.stats.key_flush]\n{}{line}", needs(&[("interval", "\"10s\"")]))
        }
        Section::TransformStreams => file_with_streams(key, line),
        Section::TransformRelay | Section::RelayCluster | Section::RelayRule | Section::RelayStatistics => {
            relays::file_with(section, key, line)
        }
        Section::OutputGraphite => output("graphite", "stats", &[("to", "[\"tcp://h:2003\"]")]),
        Section::OutputOpenTsdb => output("opentsdb", "stats", &[("to", "[\"tcp://h:4242\"]")]),
        Section::OutputGraphiteFile => output("graphite_file", "stats", &[]),
        Section::OutputWhisper => output("whisper", "stats", &[]),
        Section::WhisperSchema | Section::WhisperAggregation | Section::OutputCompat => {
            whisper(section, key, line)
        }
        Section::OutputConsole => output("console", "stats", &[]),
        Section::OutputPerlFile => output("perl_file", "stats", &[("path", "\"p\"")]),
        Section::OutputUdp => output("udp", "app", &packets("[\"udp://h:8125\"]")),
        Section::OutputTcp => output("tcp", "app", &packets("[\"tcp://h:8125\"]")),
        Section::OutputUnix if key == "framing" => output("unix", "app", &packets("[\"unix:///s\"]")),
        // Shards are assigned by an endpoint's name, which the example contains.
        Section::OutputUnix if key == "shards" => output("unix", "app", &packets("[\"unix://h:8125\"]")),
        Section::OutputUnix => output("unix", "app", &packets("[\"unixgram:///s\"]")),
        Section::Aggregates => {
            let udp = output("udp", "stats", &packets("[\"udp://h:8125\"]"));
            format!("{}\n[outputs.o.aggregates]\n{line}", udp.strip_suffix(line).unwrap())
        }
        Section::Check => {
            let tcp = output("tcp", "app", &packets("[\"tcp://h:8125\"]"));
            let more = needs(check_with(key));
            format!("{}\n[outputs.o.check]\n{more}{line}", tcp.strip_suffix(line).unwrap())
        }
        section if is_of_events(section) => events(section, key, line, output),
        Section::Queue => file_with(Section::OutputConsole, "", "") + "\n[outputs.o.queue]\n" + kind + line,
        // The daemon's own ports.
        section => port(&all, section, key, line),
    }
}

fn is_of_events(section: Section) -> bool {
    matches!(
        section,
        Section::OutputEventFile | Section::OutputEmail | Section::OutputHttp | Section::OutputRiemann
    )
}

/// The same in an output of events, with what `key` needs beside it.
fn events(
    section: Section,
    key: &str,
    line: &str,
    output: impl Fn(&str, &str, &[(&str, &str)]) -> String,
) -> String {
    let given = !line.is_empty();
    let smtp = if key == "tls" { "\"smtps://h\"" } else { "\"smtp://h\"" };
    let mail = [("smtp", smtp), ("recipients", "[\"a@b\"]")];
    let web = ("url", if key == "tls" { "\"https://h/\"" } else { "\"http://h/\"" });
    match (section, key) {
        (Section::OutputEmail, "user") if given => {
            output("email", "app", &[mail[0], mail[1], ("password", "\"p\"")])
        }
        (Section::OutputEmail, "password") if given => {
            output("email", "app", &[mail[0], mail[1], ("user", "\"u\"")])
        }
        (Section::OutputEmail, "recipients") if !given => {
            output("email", "app", &[mail[0], ("from_event", "true")])
        }
        (Section::OutputEmail, _) => output("email", "app", &mail),
        (Section::OutputHttp, "body") if given => output("http", "app", &[web, ("encoding", "\"template\"")]),
        (Section::OutputHttp, "tags" | "precision") => {
            output("http", "app", &[web, ("encoding", "\"influxdb\"")])
        }
        (Section::OutputHttp, _) => output("http", "app", &[web]),
        (Section::OutputRiemann, _) => output("riemann", "app", &[("to", "[\"tcp://h:5555\"]")]),
        _ => output("event_file", "app", &[]),
    }
}

/// The same in a source of type `riemann`.
fn file_with_events(key: &str, line: &str) -> String {
    let events = "[outputs.o]\ntype = \"event_file\"\nfrom = [\"app\"]\n";
    // Datagrams are not encrypted.
    let listen = match key {
        "tls" | "encoding" => "listen = [\"tcp://127.0.0.1:0\"]\n",
        "tags" => "encoding = \"graphite\"\n",
        "allowed_origins" => "listen = [\"tcp://127.0.0.1:0\"]\nencoding = \"http\"\n",
        _ => "",
    };
    format!("[sources.app]\ntype = \"riemann\"\n{listen}{line}\n{events}")
}

/// The same in a transform of type `streams`.
fn file_with_streams(key: &str, line: &str) -> String {
    let from = if key == "from" { "" } else { "from = [\"app\"]\n" };
    let file = if key == "file" { "" } else { "file = \"riemann.config\"\n" };
    format!("{}[transforms.r]\ntype = \"streams\"\n{from}{file}{line}", file_with_events("", ""))
}

/// The same in the table of one of the daemon's own ports. `all` has a source, an aggregation and an output.
fn port(all: &str, section: Section, key: &str, line: &str) -> String {
    match section {
        Section::GraphiteApi => file_with(Section::OutputWhisper, "", "") + "\n[graphite_api]\n" + line,
        Section::CarbonLink => file_with(Section::OutputWhisper, "", "") + "\n[carbonlink]\n" + line,
        Section::Management if key == "cluster" => all.to_owned() + &management_of_a_cluster(line),
        Section::Management => format!("{all}[management]\n{line}"),
        _ => all.to_owned() + &http_with(section, key, line),
    }
}

/// The same in a table of an output of type `whisper`.
fn whisper(section: Section, key: &str, line: &str) -> String {
    let pattern = if key == "pattern" {
        ""
    } else {
        "pattern = '^a'
"
    };
    let retentions = if key == "retentions" {
        ""
    } else {
        "retentions = \"1s:1h\"
"
    };
    let table = match section {
        Section::WhisperSchema => format!(
            "[[outputs.o.schemas]]
{pattern}{retentions}"
        ),
        Section::WhisperAggregation => format!(
            "[[outputs.o.aggregations]]
{pattern}"
        ),
        _ => "[outputs.o.compat]
"
        .to_owned(),
    };
    format!(
        "{}
{table}{line}",
        file_with(Section::OutputWhisper, "", "")
    )
}

/// What an option of a health check needs beside it.
fn check_with(key: &str) -> &'static [(&'static str, &'static str)] {
    match key {
        "path" => &[("kind", "\"http\""), ("port", "80")],
        "port" | "at" => &[("kind", "\"connect\"")],
        "down_after" | "up_after" => &[("kind", "\"connect\""), ("checks", "64")],
        _ => &[("kind", "\"management\""), ("port", "8126")],
    }
}

fn http_with(section: Section, key: &str, line: &str) -> String {
    if section == Section::HttpTls {
        let cert = if key == "cert" { "" } else { "cert = \"c.pem\"\n" };
        return format!("[http.tls]\n{cert}{line}");
    }
    let more = if key == "max_connections_per_peer" { "max_connections = 10000\n" } else { "" };
    format!("[http]\n{more}{line}")
}

/// The same in `tls` of a source of points, or of an output to carbon.
fn file_with_tls(section: Section, key: &str, line: &str) -> String {
    let cert = if key == "cert" { "" } else { "cert = \"c.pem\"\n" };
    if section == Section::SourceTls {
        let listen = "listen = [\"tcp://127.0.0.1:2003\"]";
        return file_with_points("", &format!("{listen}\n[sources.in.tls]\n{cert}{line}"));
    }
    let output = file_with(Section::OutputGraphite, "", "");
    let ca = if key == "skip_hostname_check" { "ca = \"c.pem\"\n" } else { "" };
    format!("{output}\n[outputs.o.tls]\n{ca}{cert}{line}")
}

fn management_of_a_cluster(line: &str) -> String {
    let nodes =
        "[outputs.nodes]\ntype = \"udp\"\nfrom = [\"app\"]\nto = [\"udp://h:1\"]\nsharding = \"jump\"\n";
    let more = nodes.replace("outputs.nodes", "outputs.more");
    let replies = if line.is_empty() { "" } else { "replies = \"proxy\"\n" };
    format!("{more}{nodes}[management]\n{replies}{line}")
}

/// The same in a source of points.
fn file_with_points(key: &str, line: &str) -> String {
    let more = match key {
        "max_message_bytes" => "encoding = \"pickle\"\nlisten = [\"tcp://127.0.0.1:2004\"]\n",
        "encoding" | "transport" | "tls" => "listen = [\"tcp://127.0.0.1:2004\"]\n",
        "name_characters" => "compatibility = \"c-relay\"\n",
        _ => "",
    };
    let file = "[outputs.o]\ntype = \"graphite_file\"\nfrom = [\"in\"]\n";
    format!("[sources.in]\ntype = \"graphite\"\n{more}{line}\n{file}")
}

fn each_row() -> impl Iterator<Item = (Section, &'static Row)> {
    Section::ALL.iter().copied().flat_map(|section| section.rows().map(move |row| (section, row)))
}

#[test]
fn writing_a_default_changes_nothing() {
    for (section, row) in each_row() {
        if let Default::Toml(toml) = row.default {
            let written = good(&file_with(section, row.key, &format!("{} = {toml}", row.key)));
            assert_eq!(written, good(&file_with(section, row.key, "")), "{section:?} {}", row.key);
        }
    }
}

#[test]
fn each_example_is_valid_changes_the_plan_and_is_printed() {
    for (section, row) in each_row() {
        // A raw output takes from other nodes than the rest.
        if row.example.is_empty() || row.key == "from" {
            continue;
        }
        let with = good(&file_with(section, row.key, &format!("{} = {}", row.key, row.example)));
        let printed = print(&with);
        assert_eq!(good(&printed), with, "{section:?} {}:\n{printed}", row.key);
        // The plan contains the options of included files, but not their names.
        if row.default != Default::Required && row.key != "include" {
            assert_ne!(with, good(&file_with(section, row.key, "")), "{section:?} {}", row.key);
        }
    }
}

#[test]
fn each_missing_required_option_is_reported() {
    for (section, row) in each_row().filter(|(_, row)| row.default == Default::Required) {
        if matches!(row.key, "type" | "from" | "sources") {
            continue;
        }
        assert!(codes(&file_with(section, row.key, "")).contains(&"C006"), "{section:?} {}", row.key);
    }
    assert_eq!(codes("[sources.a]\n"), ["C006", "C017"], "type");
    assert_eq!(codes("[sources.a]\ntype = \"statsd\"\n[outputs.o]\ntype = \"console\"\n"), ["C006"], "from");
    assert_eq!((codes(""), codes("[sources]\n")), (vec!["C023"], vec!["C023"]));
}

#[test]
fn values_at_a_limit_are_accepted_and_above_it_rejected() {
    for (section, row) in each_row() {
        let (inside, outside): (Vec<String>, Vec<String>) = match row.value {
            Type::Whole { min, max } => {
                let below = min.checked_sub(1).map_or_else(|| "-1".into(), |below| below.to_string());
                (vec![min.to_string(), max.to_string()], vec![below, (max + 1).to_string()])
            }
            Type::Quantity { of, min, max, .. } => measures(min, max, |value| of.text(value)),
            Type::Number { min, max } => (
                vec![min.to_string(), max.to_string()],
                vec!["-0.1".into(), (max + 0.1).to_string(), "nan".into(), "inf".into()],
            ),
            _ => continue,
        };
        for value in inside {
            // Another rule: `max_retry_delay` must not be below `min_retry_delay`.
            let more = if row.key == "max_retry_delay" { "\nmin_retry_delay = \"1ms\"" } else { "" };
            let more = if row.key == "min_retry_delay" { "\nmax_retry_delay = \"1h\"" } else { more };
            // Another rule: one peer must not have more connections than all together.
            let more = match (row.key, section) {
                ("max_connections_per_peer", Section::Management) => "\nmax_connections = 100000",
                ("max_connections_per_peer", Section::Http) => more,
                ("max_connections_per_peer", _) => "\nmax_connections = 1000000",
                _ => more,
            };
            good(&file_with(section, row.key, &format!("{} = {value}{more}", row.key)));
        }
        for value in outside {
            let found = codes(&file_with(section, row.key, &format!("{} = {value}", row.key)));
            assert!(found.contains(&"C005"), "{section:?} {} = {value}: {found:?}", row.key);
        }
    }
}

fn measures(min: u64, max: u64, text: impl Fn(u64) -> String) -> (Vec<String>, Vec<String>) {
    let quoted = |value: u64| format!("\"{}\"", text(value));
    let outside = min.checked_sub(1).into_iter().chain([max + 1]);
    (vec![quoted(min), quoted(max)], outside.map(quoted).collect())
}

#[test]
fn every_option_rejects_values_of_other_types() {
    for (section, row) in each_row() {
        if matches!(row.value, Type::Named(_)) || matches!(row.key, "type" | "from") {
            continue;
        }
        for value in
            ["1979-05-27", "[[1]]", "{ x = [] }", "nan", "-1", "\"\\u0000\"", "[\"\\u0000\"]", "[0, -1]"]
        {
            // No value may cause a panic; other tests check valid values.
            let text = file_with(section, row.key, &format!("{} = {value}", row.key));
            let (plan, wrong) = run(&text, Format::Toml);
            assert_eq!(plan.is_none(), has_errors(&wrong));
            if value == "1979-05-27" {
                assert!(wrong.iter().any(|wrong| wrong.code == Code::WrongType), "{section:?} {}", row.key);
            }
        }
    }
}

#[test]
fn too_many_sections_are_one_error() {
    let sections = |number: usize| -> String {
        (0..number)
            .map(|n| format!("[sources.s{n}]\ntype = \"statsd\"\nlisten = [\"unix://{n}\"]\n"))
            .collect()
    };
    assert!(codes(&sections(SECTIONS_MAX)).iter().all(|code| *code == "C017"));
    assert!(codes(&sections(SECTIONS_MAX + 1)).contains(&"C024"));
    let endpoints = |number: usize| {
        let to: Vec<String> = (0..number).map(|n| format!("\"udp://h{n}:1\"")).collect();
        file_with(Section::OutputUdp, "to", &format!("to = [{}]", to.join(", ")))
    };
    assert_eq!(good(&endpoints(value::LIST_MAX)).outputs.len(), value::LIST_MAX);
    assert_eq!(codes(&endpoints(value::LIST_MAX + 1)), ["C017", "C024"]);
    let more = "\n[outputs.p]\ntype = \"console\"\nfrom = [\"stats\"]\n";
    assert_eq!(codes(&format!("{}{more}", endpoints(SECTIONS_MAX))), ["C024"]);
}

#[test]
fn yaml_and_json_give_the_same_plan_as_toml() {
    let toml = "stop_timeout = \"1s\"\n[sources.a]\ntype = \"statsd\"\nlisten = [\"udp://[::1]:1\"]\n\
        [transforms.t]\ntype = \"aggregate\"\nfrom = [\"a\"]\npercentiles = [90, 99.9]\n\
        [outputs.o]\ntype = \"console\"\nfrom = [\"t\"]\npretty = true\n";
    let yaml = "stop_timeout: 1s\nsources:\n  a:\n    type: statsd\n    listen: ['udp://[::1]:1']\n\
        transforms:\n  t: {type: aggregate, from: [a], percentiles: [90, 99.9]}\n\
        outputs:\n  o:\n    type: console\n    from:\n    - t\n    pretty: true\nmanagement:\n";
    let json = r#"{"stop_timeout": "1s", "sources": {"a": {"type": "statsd", "listen": ["udp://[::1]:1"]}},
        "transforms": {"t": {"type": "aggregate", "from": ["a"], "percentiles": [90, 99.9]}},
        "outputs": {"o": {"type": "console", "from": ["t"], "pretty": true}}}"#;
    let want = good(toml);
    assert_eq!(run(json, Format::of_name("x.json")), (Some(want.clone()), Vec::new()));
    // `management:` without a value is a management port with the defaults.
    let management = vec![ManagementPlan::default()];
    assert_eq!(run(yaml, Format::of_name("x.YAML")), (Some(Plan { management, ..want }), Vec::new()));
}

#[test]
fn deep_nesting_is_an_error_without_a_crash() {
    for deep in ["[".repeat(100_000), "{a: ".repeat(100_000), "- ".repeat(100_000)] {
        assert_eq!(run(&deep, Format::Yaml).1[0].code, Code::Syntax);
        assert_eq!(run(&format!("x = {deep}"), Format::Toml).1[0].code, Code::Syntax);
    }
    assert!(has_errors(&run(&format!("x{}.y = 1", ".a".repeat(100_000)), Format::Toml).1));
}

#[test]
fn a_byte_order_mark_does_not_move_places() {
    for (format, text) in [(Format::Toml, "\u{feff}bad = 1\n"), (Format::Yaml, "\u{feff}bad: 1\n")] {
        let (_, wrong) = run(text, format);
        let place = wrong.iter().find(|wrong| wrong.code == Code::UnknownKey).unwrap().place.unwrap();
        assert_eq!(&text[place.start..place.end], "bad");
    }
}

#[test]
fn wildcards_and_loopback_collide_as_the_system_sees_them() {
    let table = [
        ("udp://0.0.0.0:1", "udp://127.0.0.1:1", true),
        ("udp://[::]:1", "udp://127.0.0.1:1", true),
        ("udp://[::]:1", "udp://[::1]:1", true),
        ("udp://[::1]:1", "udp://127.0.0.1:1", false),
        ("udp://0.0.0.0:1", "udp://[::1]:1", false),
        ("udp://127.0.0.1:1", "tcp://127.0.0.1:1", false),
        ("udp://127.0.0.1:1", "udp://127.0.0.2:1", false),
        ("udp://127.0.0.1:0", "udp://127.0.0.1:0", false),
        ("unix:///x", "unixgram:///./x", true),
        ("tcp://0.0.0.0:8680", "udp://127.0.0.1:1", true),
    ];
    for (one, other, collide) in table {
        let text = format!("[sources.a]\ntype = \"statsd\"\nlisten = [\"{one}\", \"{other}\"]\n");
        assert_eq!(codes(&text).contains(&"C016"), collide, "{one} {other}");
    }
    let table = [
        ("udp://127.0.0.1:1", "127.0.0.1:1", true),
        ("udp://127.0.0.1:1", "localhost:1", true),
        ("udp://0.0.0.0:1", "127.0.0.5:1", true),
        ("udp://0.0.0.0:1", "0.0.0.0:1", true),
        ("udp://[::]:1", "[::1]:1", true),
        ("udp://127.0.0.1:1", "127.0.0.1:2", false),
        ("udp://0.0.0.0:1", "10.0.0.5:1", false),
        ("udp://10.0.0.5:1", "10.0.0.5:1", true),
        ("udp://10.0.0.5:1", "example.org:1", false),
        ("udp://127.0.0.1:1", "127.1:1", true),
        ("udp://127.0.0.1:1", "LOCALHOST.:1", true),
        ("udp://[::1]:1", "ip6-localhost:1", true),
        ("udp://0.0.0.0:1", "ip6-localhost:1", false),
        ("udp://[::]:1", "127.9.9.9:1", true),
        ("udp://[::]:1", "[::ffff:127.0.0.1]:1", true),
        ("udp://127.0.0.2:1", "127.0.0.1:1", false),
        ("udp://127.0.0.2:1", "0.0.0.0:1", false),
        ("tcp://127.0.0.1:1", "127.0.0.1:1", false),
    ];
    for (listen, to, is_loop) in table {
        let text = format!(
            "[sources.a]\ntype = \"statsd\"\nlisten = [\"{listen}\"]\n[outputs.o]\ntype = \"udp\"\nfrom = [\"a\"]\nto = [\"udp://{to}\"]\n"
        );
        assert_eq!(codes(&text).contains(&"C015"), is_loop, "{listen} {to}");
        let cluster = format!("{text}sharding = \"jump\"\n");
        assert_eq!(codes(&cluster).contains(&"C015"), is_loop, "{listen} {to} in a cluster");
    }
    let table = [
        ("unixgram:///run/s", "unixgram:///run/./s", true),
        ("unix:///run/s?mode=666", "unix:///run/s", true),
        ("unix-frames:///run/s", "unix:///run/s", true),
        ("unix://@s", "unix://@s", true),
        ("unix://@s", "unix://s", false),
        ("unixgram:///run/s", "unixgram:///run/t", false),
    ];
    for (heard, to, is_loop) in table {
        let text = format!(
            "[sources.a]\ntype = \"statsd\"\nlisten = [\"{heard}\"]\n[outputs.o]\ntype = \"unix\"\nfrom = [\"a\"]\nto = [\"{to}\"]\n"
        );
        assert_eq!(codes(&text).contains(&"C015"), is_loop, "{heard} {to}");
    }
}

#[test]
fn names_are_counted_for_sources_with_a_name_report() {
    let text = "[sources.a]\ntype = \"statsd\"\n\
        [sources.b]\ntype = \"statsd\"\nlisten = [\"unix://b\"]\n\
        [sources.c]\ntype = \"statsd\"\nlisten = [\"unix://c\"]\n\
        [transforms.t]\ntype = \"aggregate\"\nfrom = [\"a\"]\nkey_flush = { interval = \"1m\" }\n\
        [transforms.u]\ntype = \"aggregate\"\nfrom = [\"b\", \"a\"]\n\
        [transforms.v]\ntype = \"aggregate\"\nfrom = [\"c\"]\n";
    let counts: Vec<bool> =
        good(text).sources.iter().map(|source| source.kind.reading().count_names).collect();
    assert_eq!(counts, [true, true, false]);
}

#[test]
fn the_defaults_stay_on_loopback_and_print_as_a_file() {
    let plan = defaults(Path::new("d"));
    assert!(plan.built_in && plan.http.unwrap().ip().is_loopback());
    let (read, wrong) = run(&print(&plan), Format::Toml);
    assert_eq!((read, wrong), (Some(Plan { built_in: false, ..plan.clone() }), Vec::new()));
    let OutputKind::Whisper(store) = &plan.outputs[0].kind else { panic!("points go to a store") };
    assert_eq!((&*store.path, store.files_bytes_max), (Path::new("d/store/whisper"), 4 << 30));
}

#[test]
fn printed_endpoints_are_one_section_when_they_can_be() {
    let text = "[sources.a]\ntype = \"statsd\"\n[outputs.copy]\ntype = \"udp\"\nfrom = [\"a\"]\n\
        to = [\"udp://h:1\", \"udp://[::2]:1\"]\n";
    let mut plan = good(text);
    assert_eq!(plan.outputs[1].name, "copy/[::2]:1");
    let printed = print(&plan);
    assert!(
        printed.contains("[outputs.copy]\n") && printed.contains("to = [\"udp://h:1\", \"udp://[::2]:1\"]")
    );
    plan.outputs[1].queue.age_max_ms = 7;
    let printed = print(&plan);
    assert!(printed.contains("[outputs.\"copy/h:1\"]") && printed.contains("[outputs.\"copy/[::2]:1\"]"));
    assert_eq!(good(&printed), plan);
    assert!(codes(&printed.replace("copy/h:1", "copy/i:1")).contains(&"C009"));
}

proptest! {
    #[test]
    fn a_printed_plan_reads_back(plan in plans::plan()) {
        let text = print(&plan);
        let (read, wrong) = run(&text, Format::Toml);
        let shown = render(Source { name: "test", text: &text }, &wrong, false);
        prop_assert!(read.is_some(), "{}\n{}", shown, text);
        prop_assert_eq!(read.unwrap(), plan, "{}", text);
        prop_assert!(wrong.iter().all(|wrong| wrong.severity == Severity::Warning));
    }

    #[test]
    fn a_printed_relay_reads_back(plan in relay_plans::plan()) {
        let text = print(&plan);
        let (read, wrong) = run(&text, Format::Toml);
        let shown = render(Source { name: "test", text: &text }, &wrong, false);
        prop_assert!(read.is_some(), "{}\n{}", shown, text);
        prop_assert_eq!(read.unwrap(), plan, "{}", text);
    }

    #[test]
    fn no_cut_relay_panics(plan in relay_plans::plan(), from in any::<prop::sample::Index>()) {
        let text = print(&plan);
        let from = text.floor_char_boundary(from.index(text.len() + 1));
        for text in [&text[..from], &text[from..]] {
            let (plan, wrong) = run(text, Format::Toml);
            prop_assert_eq!(plan.is_none(), has_errors(&wrong));
        }
    }

    #[test]
    fn no_text_panics(text in "(?s).{0,100}") {
        for format in [Format::Toml, Format::Yaml] {
            let (plan, wrong) = run(&text, format);
            prop_assert_eq!(plan.is_none(), has_errors(&wrong));
        }
    }

    #[test]
    fn no_broken_file_panics(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..40),
        cut in any::<prop::sample::Index>(),
    ) {
        let text: String = pieces.concat();
        let cut = text.floor_char_boundary(cut.index(text.len() + 1));
        for format in [Format::Toml, Format::Yaml] {
            for text in [&text[..], &text[..cut], &text[cut..]] {
                let (plan, wrong) = run(text, format);
                prop_assert_eq!(plan.is_none(), has_errors(&wrong), "{}", text);
                render(Source { name: "test", text }, &wrong, true);
            }
        }
    }

    #[test]
    fn no_cut_or_doubled_file_panics(
        plan in plans::plan(),
        from in any::<prop::sample::Index>(),
        to in any::<prop::sample::Index>(),
    ) {
        let text = print(&plan);
        let (a, b) = (from.index(text.len()), to.index(text.len()));
        let (a, b) = (text.floor_char_boundary(a.min(b)), text.floor_char_boundary(a.max(b)));
        let texts = [
            format!("{}{}", &text[..a], &text[b..]),
            format!("{}{}", &text[..b], &text[a..]),
        ];
        for text in texts {
            let (plan, wrong) = run(&text, Format::Toml);
            prop_assert_eq!(plan.is_none(), has_errors(&wrong), "{}", text);
            render(Source { name: "test", text: &text }, &wrong, false);
        }
    }
}

/// What files are made of, in both formats.
const PIECES: &[&str] = &[
    "[sources.a]\n",
    "sources:\n",
    "  a:\n",
    "    ",
    "type",
    " = ",
    ": ",
    "\"statsd\"",
    "statsd",
    "\n",
    "\r\n",
    "listen",
    "[",
    "]",
    "{",
    "}",
    "\"udp://127.0.0.1:1\"",
    ", ",
    "[transforms.t]\n",
    "transforms",
    "aggregate",
    "from",
    "[\"a\"]",
    "percentiles",
    "-",
    "- ",
    "90",
    "1e999",
    "0x",
    "[outputs.o]\n",
    "outputs",
    "graphite",
    "to",
    "queue",
    "{ kind = \"disk\" }",
    "expiry",
    "histograms",
    "[[transforms.t.histograms]]\n",
    "bins",
    "&x ",
    "*x",
    "!!str ",
    "!",
    "|\n",
    ">\n",
    "---\n",
    "...\n",
    "#",
    "'",
    "\"",
    "\"\"\"",
    "'''",
    "\\",
    "\u{e9}",
    "\t",
    "%",
    "@",
    "<<",
    "?",
    "management",
    "[[management]]\n",
    "config",
    "true",
    "null",
    "1979-05-27",
    ".",
    "a",
    "=",
];

#[test]
fn printed_sources_of_points_read_back() {
    let file = "[outputs.o]\ntype = \"graphite\"\nfrom = [\"in\"]\nto = [\"tcp://h:2003\"]\n";
    for more in [
        "",
        "tail_counts = true\nmissing_timestamp = \"now\"\nmax_name_bytes = \"255B\"\n",
        "compatibility = \"c-relay\"\nname_characters = \"-;/\"\nmax_line_bytes = \"32KiB\"\n",
        "names = \"as_sent\"\ncompatibility = \"carbon\"\n",
        "compatibility = \"go-carbon\"\nlisten = [\"udp://127.0.0.1:2003\", \"unix:///run/g\"]\n",
        "encoding = \"pickle\"\nlisten = [\"tcp://127.0.0.1:2004\"]\nmax_message_bytes = \"1MiB\"\n",
        "encoding = \"protobuf\"\ncompatibility = \"carbon\"\nlisten = [\"tcp://127.0.0.1:2005\"]\n",
        "listen = [\"tcp://127.0.0.1:2005\"]\ntransport = \"lz4\"\ntls = { cert = \"/a \\\"b\" }\n",
        "listen = [\"unix:///s\"]\ntls = { cert = \"c\", key = \"k\", client_ca = \"a\", min = \"1.3\" }\n",
        "listen = [\"unix:///s\"]\ntransport = \"gzip\"\ntls = { cert = \"c\", max = \"1.2\" }\n",
    ] {
        let plan = good(&format!("[sources.in]\ntype = \"graphite\"\n{more}\n{file}"));
        assert!(plan.sources[0].kind.gives_points());
        assert_eq!(good(&print(&plan)), plan, "{more}");
    }
}

#[test]
fn printed_statistics_of_relays_read_back() {
    let file = "[outputs.o]\ntype = \"graphite\"\nfrom = [\"in\"]\nto = [\"tcp://h:2003\"]\n";
    for more in [
        "",
        "every = \"1m\"\nprefix = \"carbon.relays.web1:a\"\nreset = true\n",
        "report = \"log\"\n",
        "report = \"line\"\nevery = \"1s\"\n",
        "report = \"losses\"\nprefix = \"\"\n",
    ] {
        let own = format!("[sources.in]\ntype = \"self\"\nencoding = \"carbon-c-relay\"\n{more}\n{file}");
        let plan = good(&own);
        assert!(plan.sources[0].kind.gives_points() && plan.sources[0].kind.is_own());
        assert_eq!(good(&print(&plan)), plan, "{more}");
    }
    let of_self = |own: &str| codes(&format!("[sources.in]\ntype = \"self\"\n{own}\n{file}"));
    let word = |code: Code| code.word();
    let samples = [word(Code::NoEffect), word(Code::NoEffect), word(Code::NeedsAggregate)];
    assert_eq!(of_self("report = \"log\"\nreset = true\n"), samples);
    assert_eq!(of_self("encoding = \"carbon-c-relay\"\nprefix = \"a b\"\n"), [word(Code::BadValue)]);
}

#[test]
fn only_graphite_outputs_accept_points() {
    let table = [
        ("[outputs.o]\ntype = \"graphite\"\nto = [\"tcp://h:1\", \"tcp://h:2\"]\n", &[][..]),
        ("[outputs.o]\ntype = \"graphite\"\nto = [\"tcp://h:1\"]\nencoding = \"pickle\"\n", &[]),
        ("[outputs.o]\ntype = \"graphite_file\"\n", &[]),
        ("[outputs.o]\ntype = \"console\"\n", &["C028"]),
        ("[outputs.o]\ntype = \"perl_file\"\npath = \"p\"\n", &["C028"]),
        ("[outputs.o]\ntype = \"event_file\"\n", &["C028"]),
        ("[outputs.o]\ntype = \"udp\"\nto = [\"udp://h:1\"]\n", &[]),
        ("[outputs.o]\ntype = \"tcp\"\nto = [\"tcp://h:1\"]\nallow = [\"a.*\"]\n", &["C028"]),
        (
            "[outputs.o]\ntype = \"udp\"\nto = [\"udp://h:1\", \"udp://h:2\"]\nsharding = \"jump\"\n",
            &["C028"],
        ),
        ("[transforms.t]\ntype = \"aggregate\"\n", &["C017", "C028"]),
    ];
    for (taker, want) in table {
        let text = format!("[sources.in]\ntype = \"graphite\"\n{taker}from = [\"in\"]\n");
        assert_eq!(codes(&text), want, "{taker}");
    }
    let of = |listen: &str, more: &str| {
        let file = "[outputs.o]\ntype = \"graphite_file\"\nfrom = [\"in\"]\n";
        codes(&format!("[sources.in]\ntype = \"graphite\"\nlisten = [\"{listen}\"]\n{more}\n{file}"))
    };
    assert_eq!(of("unix-frames:///s", ""), ["C004"]);
    assert_eq!(of("udp://127.0.0.1:1", "encoding = \"pickle\""), ["C004"]);
    assert_eq!(of("unix:///s", "encoding = \"pickle\""), Vec::<&str>::new());
    assert_eq!(of("udp://127.0.0.1:1", "transport = \"gzip\""), ["C004"]);
    assert_eq!(of("unixgram:///s", "tls = { cert = \"c\" }"), ["C004"]);
    assert_eq!(of("unix:///s", "tls = { cert = \"c\", min = \"1.3\", max = \"1.2\" }"), ["C005"]);
    assert_eq!(of("unix:///s", "tls = { key = \"k\" }"), ["C006"]);
    assert_eq!(of("unix:///s", "tls = { cert = \"c\", min = \"1.1\" }"), ["C004"]);
    let out = "[outputs.p]\ntype = \"graphite\"\nfrom = [\"in\"]\nto = [\"tcp://h:1\"]\n";
    assert_eq!(of("unix:///s", &format!("{out}tls = {{ key = \"k\" }}")), ["C006"]);
    assert_eq!(of("unix:///s", &format!("{out}tls = {{ server_name = \"\" }}")), ["C004"]);
    assert_eq!(of("tcp://127.0.0.1:1", "name_characters = \"-\""), ["C022"]);
    assert_eq!(of("tcp://127.0.0.1:1", "compatibility = \"c-relay\"\nnames = \"tagged\""), ["C022"]);
    assert_eq!(of("tcp://127.0.0.1:1", "compatibility = \"c-relay\"\nname_characters = \"a b\""), ["C004"]);
}
