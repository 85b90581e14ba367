//! Relays as tables: valid and invalid options, and the places of errors.

use model::{Dropped, OutputId, Reject, SourceId, TransformId};
use process::aggregation_rules::{Compute, Late, Stamp};
use process::relay::{Distribution, MemberNode, Statement, To};
use process::sharding::{CarbonHash, Sharding};

use super::*;
use crate::plan::{RELAYS_IN_A_ROW_MAX, RelayTransform, TransformKind};

/// A source, a relay and its outputs, followed by `rest`.
fn file(rest: &str) -> String {
    format!(
        "[sources.lines]\ntype = \"graphite\"\n\
         [outputs.a]\ntype = \"graphite\"\nfrom = [\"r\"]\nto = [\"tcp://h1:1\", \"tcp://h2:2\"]\n\
         [outputs.b]\ntype = \"graphite\"\nfrom = [\"r\"]\nto = [\"udp://[::1]:3\"]\n\
         [outputs.f]\ntype = \"graphite_file\"\nfrom = [\"r\"]\npath = \"/f\"\nmax_file_bytes = \"off\"\n\
         [transforms.r]\ntype = \"relay\"\nfrom = [\"lines\"]\n{rest}"
    )
}

/// Clusters with all outputs, so that none is unused.
const ALL: &str = "[transforms.r.clusters.all]\ntype = \"forward\"\nto = [\"a\", \"b\", \"f\"]\n";

fn relay(rest: &str) -> RelayTransform {
    let plan = good(&file(rest));
    plan.transforms[0].kind.as_relay().expect("a relay").clone()
}

#[test]
fn members_with_one_position_on_the_ring_are_reported() {
    let warned = |kind: &str, to: &str, second: &str| {
        let text = file(&format!(
            "[transforms.r.clusters.c]\ntype = \"{kind}\"\nto = [{to}]\n[[transforms.r.rules]]\nto = \"c\"\n"
        ))
        .replace("tcp://h2:2", second);
        let (_, wrong) = run(&text, Format::Toml);
        let of_rings = wrong.into_iter().filter(|wrong| wrong.code == crate::diagnostic::Code::RingCollision);
        of_rings.map(|wrong| wrong.hint.unwrap_or_default()).collect::<Vec<_>>()
    };
    let hint = "this ring ignores ports: give each an instance, here such as \"a/h1:2=b\"";
    for (kind, to, second, want) in [
        ("carbon_ch", "\"a\"", "tcp://h1:2", Some(hint)),
        ("carbon_ch", "\"a/h1:1\", \"a/h1:2\"", "tcp://h1:2", Some(hint)),
        ("python_carbon_ch", "\"a\"", "tcp://h1:2", Some(hint)),
        ("python_mmh3_ch", "\"a\"", "tcp://h1:2", Some(hint)),
        (
            "python_fnv1a_ch",
            "\"a\"",
            "tcp://h2:2",
            Some("this ring uses instances only: give each an instance, here such as \"a/h2:2=b\""),
        ),
        ("carbon_ch", "\"a\"", "tcp://h2:2", None),
        ("carbon_ch", "\"a/h1:1=a\", \"a/h1:2=b\"", "tcp://h1:2", None),
        ("carbon_ch", "\"a/h1:1\", \"a/h1:2=b\"", "tcp://h1:2", None),
        ("fnv1a_ch", "\"a\"", "tcp://h1:2", None),
        ("jump_fnv1a_ch", "\"a\"", "tcp://h1:2", None),
        ("python_fast_carbon_ch", "\"a\"", "tcp://h1:2", None),
        ("any_of", "\"a\"", "tcp://h1:2", None),
        ("forward", "\"a\"", "tcp://h1:2", None),
    ] {
        assert_eq!(warned(kind, to, second), Vec::from_iter(want), "{kind} {to} {second}");
    }
}

/// A whole file with `line` in a section of a relay, and the section's required options other than `key`.
pub(super) fn file_with(section: Section, key: &str, line: &str) -> String {
    match section {
        Section::TransformRelay if key == "clusters" && !line.is_empty() => {
            file("").replace("outputs.a]", "outputs.carbon]") + line
        }
        Section::TransformRelay => file(&format!("{line}\n")),
        Section::RelayCluster => {
            let share = match key {
                "type" => "",
                "diverse_replicas" => "type = \"python_carbon_ch\"\n",
                _ => "type = \"carbon_ch\"\n",
            };
            let to = if key == "to" { "" } else { "to = [\"a\", \"b\"]\n" };
            // The most members that an option may require.
            let many = line == "replication = 255";
            let hosts: Vec<String> = (0..255).map(|at| format!("\"tcp://m{at}:1\"")).collect();
            let text = file(&format!("[transforms.r.clusters.all]\n{share}{to}{line}"));
            let text = text.replace(
                "outputs.a]",
                if line.contains("carbon\"]") { "outputs.carbon]" } else { "outputs.a]" },
            );
            if many { text.replace("\"tcp://h1:1\", \"tcp://h2:2\"", &hosts.join(", ")) } else { text }
        }
        Section::RelayRule => {
            let more = match key {
                "compute" => "match = \"x\"\nevery = \"60s\"\nexpire = \"4294967295s\"\n",
                "every" => "match = \"x\"\nexpire = \"4294967295s\"\ncompute = { sum = \"s\" }\n",
                "expire" => "match = \"x\"\nevery = \"1s\"\ncompute = { sum = \"s\" }\n",
                "stamp" | "late" | "exact" | "replaces" => {
                    "match = \"x\"\nevery = \"60s\"\nexpire = \"70s\"\ncompute = { sum = \"s\" }\n"
                }
                "into" => "match = \"x\"\n",
                "all" => "match = \"x\"\ninto = \"y\"\n",
                "on_invalid" => "validate = \"x\"\n",
                "ignore_case" => "match = \"x\"\n",
                _ => "",
            };
            let alone = line.is_empty() && matches!(key, "compute" | "every" | "expire" | "into");
            let more = if alone { "match = \"x\"\n" } else { more };
            file(&format!("{ALL}[[transforms.r.rules]]\n{more}{line}"))
        }
        _ => file(&format!("{ALL}[transforms.r.statistics]\n{line}")),
    }
}

#[test]
fn clusters_and_rules_are_those_of_the_file() {
    let relay = relay(
        "max_names = 7\nmax_aggregation_series = 8\nmax_aggregation_bytes = \"1MiB\"\nstatistics = { to = [\"y\"] }\n\
         [transforms.r.clusters]\n\
         x = { type = \"carbon_ch\", replication = 2, dynamic = true, to = [\"b=i\", \"a/h2:2\", \"b/[::1]:3\", \"f\"] }\n\
         y = { type = \"python_mmh3_ch\", diverse_replicas = false, to = [\"a\", \"b\"] }\n\
         z = { type = \"any_of\", to = [\"a\"] }\n\
         [[transforms.r.rules]]\nmatch = ['^a\\.', \"*\"]\nignore_case = true\nvalidate = \"1$\"\non_invalid = \"drop\"\n\
         key = '\\1'\nto = [\"x\", \"z\"]\nstop = true\n\
         [[transforms.r.rules]]\nmatch = \"(a)b\"\ninto = '\\1'\nall = true\n\
         [[transforms.r.rules]]\nmatch = \"c\"\nevery = \"1m\"\nexpire = \"75s\"\nstamp = \"middle\"\nlate = \"oldest\"\n\
         compute = [{ p90 = \"p\", sum = \"s\" }, { sum = \"t\", permille_999 = \"u\" }]\n\
         [[transforms.r.rules]]\nmatch = \"*\"\nto = \"blackhole\"\n",
    );
    assert_eq!(
        (relay.names_max, relay.aggregation_rules.series_max, relay.aggregation_rules.bytes_max),
        (7, 8, 1 << 20)
    );
    let labels =
        |at: usize| relay.plan.clusters[at].members.iter().map(|member| member.label()).collect::<Vec<_>>();
    assert_eq!(labels(0), ["::1:3=i", "h2:2", "::1:3", "/f:0"]);
    assert_eq!(labels(1), ["h1:1", "h2:2", "::1:3"]);
    let placed =
        |sharding, replication, fail_over| Distribution::Sharded { sharding, replication, fail_over };
    let python = Sharding::CarbonPython { hash: CarbonHash::Mmh3Ch, fast: false, diverse: false };
    let distribution: Vec<&Distribution> =
        relay.plan.clusters.iter().map(|cluster| &cluster.distribution).collect();
    let want =
        [placed(Sharding::CarbonCh, 2, true), placed(python, 1, false), placed(Sharding::AnyOf, 1, true)];
    assert_eq!(distribution, want.iter().collect::<Vec<_>>());
    let Statement::Match(route) = &relay.plan.statements[0] else { panic!("no route") };
    let expressions: Vec<(&str, bool)> =
        route.expressions.iter().map(|each| (&*each.text, each.ignore_case)).collect();
    assert_eq!(expressions, [("^a\\.", true), ("^", true)]);
    let validate = route.validate.as_ref().expect("a check");
    assert_eq!((&*validate.expression.text, validate.log), ("1$", false));
    assert_eq!((route.route_using.as_deref(), route.stop), (Some("\\1"), true));
    let Statement::Rewrite(rewrite) = &relay.plan.statements[1] else { panic!("no rewrite") };
    assert_eq!((&*rewrite.into, rewrite.every_occurrence), ("\\1", true));
    let Statement::Aggregate(rule) = &relay.plan.statements[2] else { panic!("no aggregation rule") };
    let aggregation_rule = &rule.aggregation_rule;
    assert_eq!((aggregation_rule.every_s, aggregation_rule.expire_s), (60, 75));
    assert_eq!((aggregation_rule.stamp, aggregation_rule.late), (Stamp::Middle, Late::Oldest));
    let computes: Vec<(Compute, &str)> =
        aggregation_rule.computes.iter().map(|each| (each.compute, &*each.name)).collect();
    let want = [
        (Compute::Percentile(90), "p"),
        (Compute::Sum, "s"),
        (Compute::Sum, "t"),
        (Compute::Interpolated(999), "u"),
    ];
    assert_eq!(computes, want);
    let Statement::Match(last) = &relay.plan.statements[3] else { panic!("no route") };
    assert_eq!((last.expressions.len(), &last.to), (0, &To::Blackhole));
}

/// A line for each diagnostic with a place: the code, the underlined text, and the label.
fn diagnostics_of(text: &str) -> Vec<String> {
    let (plan, wrong) = run(text, Format::Toml);
    assert_eq!(plan.is_none(), has_errors(&wrong));
    let line = |wrong: &Diagnostic| {
        let at = wrong.place.map_or("", |place| &text[place.start..place.end]);
        format!("{} {at} {}", wrong.code.word(), wrong.label)
    };
    wrong.iter().map(line).collect()
}

#[test]
fn all_errors_are_reported_at_their_places() {
    let rule =
        |text: &str| format!("{ALL}[[transforms.r.rules]]\nto = \"all\"\n[[transforms.r.rules]]\n{text}\n");
    let cluster = |text: &str| {
        format!("{ALL}[transforms.r.clusters.c]\n{text}\n[[transforms.r.rules]]\nto = [\"all\", \"c\"]\n")
    };
    let table: &[(String, &[&str])] = &[
        (rule("match = ['a(b', 'c', 'd[']\nto = \"alll\""), &["C030 ( this `(` is not closed", "C030 [ this `[` is not closed", "C014 \"alll\" clusters are: all"]),
        (rule("match = \"a\"\nvalidate = \"+\"\nto = [\"all\"]"), &["C030 + there is nothing here to repeat"]),
        (rule("match = \"a\"\ninto = \"b\"\nto = [\"all\"]"), &["C029 [\"all\"] not here"]),
        (rule("match = \"a\"\nevery = \"1s\"\nto = \"all\""), &["C029 \"1s\" not here"]),
        (rule("match = \"a\"\nall = true\nto = \"all\""), &["C029 true not here"]),
        (rule("into = \"b\""), &["C006 into a rewrite says which names it is for"]),
        (rule("match = []\nto = \"all\""), &["C020 [] at least one is needed"]),
        (rule("match = \"\"\nto = \"all\""), &["C030 \"\" this is empty"]),
        (rule("match = [\"a\", \"b\"]\ninto = \"c\""), &["C029 [\"a\", \"b\"] a rewrite has one"]),
        (rule("match = \"a\"\ncompute = {}\nevery = \"1s\"\nexpire = \"2s\""), &["C020 {} at least one is needed"]),
        (
            rule("match = \"a\"\ncompute = { sun = \"x\" }\nevery = \"2s\"\nexpire = \"2s\""),
            &["C029 sun unknown", "C005 \"2s\" not longer than `every`"],
        ),
        (
            rule("match = \"a\"\ncompute = { sum = \"x\" }\nevery = \"1500ms\""),
            &["C006 match `expire` is missing", "C004 \"1500ms\" points have times in seconds"],
        ),
        (rule("match = \"a\"\nto = [\"all\", \"blackhole\"]"), &["C029 \"blackhole\" would drop"]),
        (rule("match = \"a\"\nto = []"), &["C020 [] at least one is needed"]),
        (rule("match = \"a\"\nstop = true"), &["C031 \"a\" a rule that sends nowhere does not stop"]),
        (rule("match = \"a\""), &["C031 \"a\" it neither sends nor validates"]),
        (rule("to = \"all\"\nstop = true\n[[transforms.r.rules]]\nmatch = \"b\"\nto = \"all\""), &["C031 \"b\" rule 2 matches every name"]),
        (
            rule("match = \"a\"\ncompute = { sum = \"sum.a\" }\nevery = \"1s\"\nexpire = \"2s\""),
            &["C031 \"a\" matches a name that it gives"],
        ),
        (cluster("type = \"forwar\"\nto = [\"a\"]"), &["C004 \"forwar\" must be one of"]),
        (cluster("type = \"lb\"\nto = [\"d\", \"a/h1:9\"]"), &["C014 \"d\" nodes are: a, b, f", "C014 \"a/h1:9\" endpoints are"]),
        (cluster("type = \"lb\"\nto = [\"a\", \"a/h1:1\"]"), &["C021 \"a/h1:1\" the second one"]),
        (cluster("type = \"carbon_ch\"\nto = [\"a=x\", \"b=\"]"), &["C026 \"a=x\" `a` has 2 endpoints", "C026 \"b=\" no instance after"]),
        (cluster("type = \"carbon_ch\"\nreplication = 3\nto = [\"a\"]"), &["C026 3 it has 2 members"]),
        (cluster("type = \"lb\"\nreplication = 1\nto = [\"a\"]"), &["C022 1 ignored"]),
        (cluster("type = \"fnv1a_ch\"\nto = []"), &["C020 [] at least one is needed"]),
        (
            "[transforms.r.clusters.blackhole]\ntype = \"lb\"\nto = [\"a\", \"b\", \"f\"]\n".to_owned(),
            &["C009 blackhole this name is reserved", "C017 blackhole gets nothing"],
        ),
        (
            "[transforms.r.clusters.x]\ntype = \"lb\"\nto = [\"a/h1:1\"]\n[[transforms.r.rules]]\nto = \"x\"\n".to_owned(),
            &["C017 a gets nothing", "C017 b gets nothing", "C017 f gets nothing"],
        ),
        (format!("{ALL}rules = 1\n"), &["C017 all gets nothing", "C002 rules unknown option"]),
    ];
    let mut unlike = Vec::new();
    for (rest, want) in table {
        let got = diagnostics_of(&file(rest));
        if got.len() != want.len() || !got.iter().zip(*want).all(|(got, want)| got.starts_with(want)) {
            unlike.push(format!("{rest}\n{got:#?}\n{want:#?}"));
        }
    }
    assert!(unlike.is_empty(), "{}", unlike.join("\n\n"));
}

#[test]
fn impossible_edges_of_relays_are_reported() {
    let around = |text: &str| format!("{}{ALL}[[transforms.r.rules]]\nto = \"all\"\n{text}", file(""));
    let table = [
        (
            "[outputs.c]\ntype = \"console\"\nfrom = [\"r\"]\n",
            "C028 \"r\" `r` gives points; `c` takes aggregates",
        ),
        ("[outputs.c]\ntype = \"udp\"\nfrom = [\"r\"]\nto = [\"udp://h:1\"]\n", "C028 \"r\" `r` gives"),
        (
            "[outputs.c]\ntype = \"event_file\"\nfrom = [\"r\"]\n",
            "C011 \"r\" `r` gives points; `c` takes events",
        ),
    ];
    for (text, want) in table {
        let got = diagnostics_of(&around(text));
        assert!(got.iter().any(|got| got.starts_with(want)), "{text}\n{got:#?}");
    }
    let other = "[transforms.q]\ntype = \"relay\"\nfrom = [\"lines\"]\n[transforms.q.clusters.x]\ntype = \"lb\"\nto = [\"a\"]\n";
    let got = diagnostics_of(&around(other));
    assert!(got.iter().any(|got| got == "C026 \"a\" `from` of output `a` does not name `q`"), "{got:#?}");
    let samples = "[sources.s]\ntype = \"statsd\"\n[transforms.q]\ntype = \"relay\"\nfrom = [\"s\"]\n";
    assert!(
        diagnostics_of(&around(samples))
            .iter()
            .any(|got| got.starts_with("C028 \"s\" `s` gives samples; `q` takes points"))
    );
    let aggregated = "[sources.s]\ntype = \"statsd\"\n[transforms.t]\ntype = \"aggregate\"\nfrom = [\"s\"]\n\
        [outputs.u]\ntype = \"graphite\"\nfrom = [\"t\"]\nto = [\"udp://h:1\"]\n";
    assert_eq!(diagnostics_of(&around(aggregated)), [""; 0], "an aggregation feeds datagrams too");
    let pickled =
        "[outputs.p]\ntype = \"graphite\"\nfrom = [\"lines\"]\nto = [\"udp://h:1\"]\nencoding = \"pickle\"\n";
    assert!(
        diagnostics_of(&around(pickled))
            .iter()
            .any(|got| got.starts_with("C004 \"udp://h:1\" this endpoint"))
    );
}

/// A relay that sends all points to `to`.
fn sends(name: &str, from: &[&str], to: &str) -> String {
    format!(
        "[transforms.{name}]\ntype = \"relay\"\nfrom = {from:?}\n[transforms.{name}.clusters.all]\n\
         type = \"forward\"\nto = {to}\n[[transforms.{name}.rules]]\nto = \"all\"\n"
    )
}

const LINES: &str = "[sources.lines]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:2003\"]\n";

fn output(name: &str, from: &[&str]) -> String {
    format!("[outputs.{name}]\ntype = \"graphite_file\"\nfrom = {from:?}\n")
}

#[test]
fn a_relay_sends_to_relays_that_read_from_it() {
    let text = [
        LINES,
        &sends("a", &["lines"], "[\"b\", \"o\"]"),
        &sends("b", &["a", "lines"], "[\"o\"]"),
        &output("o", &["a", "b", "lines"]),
    ]
    .concat();
    let plan = good(&text);
    let relay = |at: usize| plan.transforms[at].kind.as_relay().expect("a relay");
    let nodes: Vec<MemberNode> = relay(0).plan.clusters[0].members.iter().map(|member| member.node).collect();
    assert_eq!(nodes, [MemberNode::Relay(TransformId(1)), MemberNode::Output(OutputId(0))]);
    assert_eq!(relay(0).plan.clusters[0].members[0].label(), "b:0", "a ring knows a relay by its name");
    assert_eq!(plan.feeds_of(SourceId(0)).len(), 3);
    // The order of the file does not matter.
    let text =
        [LINES, &sends("b", &["a"], "[\"o\"]"), &sends("a", &["lines"], "[\"b\"]"), &output("o", &["b"])]
            .concat();
    assert_eq!(good(&text).relays_in_order(), [1, 0]);
}

#[test]
fn losses_and_outputs_of_a_transform_follow_from_its_kind_and_rules() {
    let rule = |body: &str| {
        let rules = format!("{ALL}[[transforms.r.rules]]\nmatch = \"x\"\n{body}\n");
        TransformKind::Relay(Box::new(relay(&rules)))
    };
    let aggregation = crate::native::transforms::default_plan();
    let mut table = [
        (
            TransformKind::Aggregate(Box::new(aggregation)),
            vec![Dropped::SeriesMax, Dropped::TimerValuesMax, Dropped::AggregateFull],
            vec![],
            vec![],
        ),
        (rule("to = \"all\""), vec![Dropped::Stopped, Dropped::TooManyCopies], vec![], vec![0, 1, 2, 3]),
        (
            rule("validate = \"1$\"\nto = \"all\""),
            vec![Dropped::Stopped, Dropped::TooManyCopies],
            vec![Reject::Invalid],
            vec![0, 1, 2, 3],
        ),
        (
            rule("every = \"60s\"\nexpire = \"70s\"\ncompute = { sum = \"s\" }\nto = \"all\""),
            vec![
                Dropped::SeriesMax,
                Dropped::Late,
                Dropped::Early,
                Dropped::AggregationRuleFull,
                Dropped::Stopped,
                Dropped::TooManyCopies,
            ],
            vec![Reject::NonFinite],
            vec![0, 1, 2, 3],
        ),
    ];
    for (kind, drops, rejects, outputs) in &mut table {
        for reason in Dropped::ALL {
            assert_eq!(kind.drops(*reason), drops.contains(reason), "{reason:?} {kind:?}");
        }
        for reason in Reject::ALL {
            assert_eq!(kind.rejects(*reason), rejects.contains(reason), "{reason:?} {kind:?}");
        }
        let named: Vec<u16> = kind.outputs_mut().map(|output| output.0).collect();
        assert_eq!(named, *outputs, "{kind:?}");
    }
}

#[test]
fn chains_of_relays_are_checked() {
    let both = format!("{}{}", sends("o", &["a"], "[\"p\"]"), output("p", &["o"]));
    let table = [
        (
            [sends("a", &["lines", "b"], "[\"b\"]"), sends("b", &["a"], "[\"a\"]")].concat(),
            "C012 \"b\" closes the circle `a` -> `b` -> `a`",
        ),
        (sends("a", &["lines", "a"], "[\"a\"]"), "C012 \"a\" closes the circle `a` -> `a`"),
        (
            [sends("a", &["lines"], "[\"b\"]"), sends("b", &["lines"], "[\"o\"]"), output("o", &["b"])]
                .concat(),
            "C026 \"b\" `from` of transform `b` does not name `a`",
        ),
        (
            [sends("a", &["lines"], "[\"o\"]"), sends("b", &["a"], "[\"o\"]"), output("o", &["a", "b"])]
                .concat(),
            "C017 b gets nothing from `a`",
        ),
        (
            [sends("a", &["lines"], "[\"c\"]"), sends("b", &["a"], "[\"o\"]"), output("o", &["a", "b"])]
                .concat(),
            "C014 \"c\" nodes are: o, b",
        ),
        (
            [&sends("a", &["lines"], "[\"o\"]"), &output("o", &["a"]), &*both].concat(),
            "C008 \"o\" both read from the relay",
        ),
        (
            [sends("a", &["lines"], "[\"b=\"]"), sends("b", &["a"], "[\"o\"]"), output("o", &["b"])].concat(),
            "C026 \"b=\" no instance after `=`",
        ),
    ];
    for (text, want) in table {
        let got = diagnostics_of(&format!("{LINES}{text}"));
        assert!(got.iter().any(|got| got == want), "{text}\n{want}\n{got:#?}");
    }
}

#[test]
fn a_chain_of_relays_has_a_limit() {
    let row = |relays: usize| {
        let relay = |at: usize| {
            let from = if at == 0 { "lines".to_owned() } else { format!("r{}", at - 1) };
            let to = if at + 1 == relays { "[\"o\"]".to_owned() } else { format!("[\"r{}\"]", at + 1) };
            sends(&format!("r{at}"), &[&from], &to)
        };
        let last = output("o", &[&format!("r{}", relays - 1)]);
        diagnostics_of(&format!("{LINES}{}{last}", (0..relays).map(relay).collect::<String>()))
    };
    assert_eq!(row(RELAYS_IN_A_ROW_MAX), [""; 0]);
    assert_eq!(row(RELAYS_IN_A_ROW_MAX + 1), ["C024 \"r15\" at most 16 relays in a row"]);
}

#[test]
fn yaml_gives_the_same_relay() {
    let yaml = "sources:\n  lines: {type: graphite}\ntransforms:\n  r:\n    type: relay\n    from: [lines]\n\
        \x20   clusters:\n      c: {type: carbon_ch, to: [o/h:1=x]}\n    rules:\n    - match: ['^a\\.']\n      to: [c]\n\
        \x20     stop: true\n    - {match: b, every: 1m, expire: 75s, compute: {sum: s, count: n}}\n\
        outputs:\n  o: {type: graphite, from: [r], to: ['tcp://h:1']}\n";
    let toml = "[sources.lines]\ntype = \"graphite\"\n[transforms.r]\ntype = \"relay\"\nfrom = [\"lines\"]\n\
        [transforms.r.clusters.c]\ntype = \"carbon_ch\"\nto = [\"o=x\"]\n\
        [[transforms.r.rules]]\nmatch = ['^a\\.']\nto = [\"c\"]\nstop = true\n\
        [[transforms.r.rules]]\nmatch = [\"b\"]\nevery = \"60s\"\nexpire = \"75s\"\ncompute = { sum = \"s\", count = \"n\" }\n\
        [outputs.o]\ntype = \"graphite\"\nfrom = [\"r\"]\nto = [\"tcp://h:1\"]\n";
    assert_eq!(run(yaml, Format::Yaml), (Some(good(toml)), Vec::new()));
}
