//! Rule files as users have them, and mistakes in each.

use model::OutputId;
use process::aggregation_rules::Compute;
use process::relay::{ClusterId, Entry, RelayPlan, Router, Statement, To};
use proptest::prelude::*;

use super::*;
use config::diagnostic::{Code, Diagnostic, Severity, Source, render};
use config::plan::{Listen, OutputKind};

/// The errors of a text: the marked text and the hint.
fn marked<T>(text: &str, (read, wrong): (Option<T>, Vec<Diagnostic>)) -> Vec<String> {
    assert_eq!(read.is_some(), wrong.is_empty(), "{wrong:?}");
    let _ = render(Source { name: "rules.conf", text }, &wrong, false);
    wrong.iter().map(|each| each.place.map_or("", |place| &text[place.start..place.end]).to_owned()).collect()
}

fn destination(host: &str, port: u16, instance: Option<&str>) -> CarbonDestination {
    CarbonDestination { host: host.into(), port, instance: instance.map(str::to_owned) }
}

const RELAY: &str = "# carbon-relay\n[web]\npattern = ^WEB\\.\ndestinations = 10.0.0.1:2004:a, 10.0.0.2:2004:b\n\
    continue = true\n\n[db]\npattern: ^db\\.(mysql|pg)\ndestinations = [::1]:2004,\n    10.0.0.2:2004:b\n\n\
    [rest]\ndefault = true\ndestinations = 10.0.0.3:2004\n";

#[test]
fn relay_rules_route_as_carbon_does() {
    let (rules, wrong) = relay_rules(RELAY, None);
    assert_eq!(wrong, []);
    let rules = rules.unwrap();
    assert_eq!(rules.rules[1].destinations[0], destination("::1", 2004, None));
    assert_eq!(rules.default, [destination("10.0.0.3", 2004, None)]);
    let mut known: Vec<CarbonDestination> = Vec::new();
    let (clusters, statements) = relay_statements(&rules, |one| {
        let at = known.iter().position(|known| known == one).unwrap_or(known.len());
        if at == known.len() {
            known.push(one.clone());
        }
        OutputId(at as u16)
    });
    let plan = RelayPlan { clusters, statements, ..RelayPlan::default() };
    let router = Router::new(&plan).unwrap();
    // 0 and 1 are those of [web], 2 is [::1], 3 is the default.
    for (name, want) in [("web.a", &[0, 1, 3][..]), ("Db.pg.x", &[2, 1]), ("other", &[3]), ("x.web.", &[3])] {
        let outputs: Vec<u16> = router
            .decide(Entry::Records, name.as_bytes())
            .plain()
            .unwrap()
            .iter()
            .map(|output| output.0)
            .collect();
        assert_eq!(outputs, want, "{name}");
    }
}

#[test]
fn mistakes_in_relay_rules_are_reported() {
    let table: &[(&str, &[&str])] = &[
        ("", &[""]),
        ("pattern = x\n[d]\ndefault = true\ndestinations = h:1", &["pattern"]),
        ("[a]\npattern = (x\ndestinations = h:1\n[d]\ndefault = true\ndestinations = h:1", &["("]),
        (
            "[a]\npattern = x\n[d]\ndefault = maybe\npattern = y\ndestinations = h",
            &["[a]", "h", "maybe", "y"],
        ),
        ("[d]\ndefault = true\ndestinations = h:0, :1, h:1:, h:x", &["h:0", ":1", "h:1:", "h:x"]),
        (
            "[d]\ndefault = true\ndestinations = h:1\n[d]\nnonsense\n[e",
            &["[d]", "nonsense", "[e", "[d]", "[d]"],
        ),
    ];
    for (text, want) in table {
        assert_eq!(marked(text, relay_rules(text, None)), *want, "{text:?}");
    }
    let known = [destination("10.0.0.3", 2004, None)];
    let (rules, wrong) = relay_rules(RELAY, Some(&known));
    assert_eq!((rules.unwrap().rules[0].destinations.len(), wrong.len()), (0, 4));
    assert!(wrong.iter().all(|wrong| wrong.severity == Severity::Warning));
}

#[test]
fn rewrite_rules_are_read() {
    let text = "[pre]\n# comment\n^collectd\\.([a-z]+)\\. = \\1.system.\n=x=y\n[post]\n(a)(b) = \\g<2>3\\1\n_sum$ =\n";
    let (rules, wrong) = rewrite_rules(text);
    assert_eq!(wrong, []);
    let rules = rules.unwrap();
    let rule = |pattern: &str, into: &str| CarbonRewrite { pattern: pattern.into(), into: into.into() };
    assert_eq!(rules.pre, [rule("^collectd\\.([a-z]+)\\.", "\\g{1}.system."), rule("", "x=y")]);
    assert_eq!(rules.post, [rule("(a)(b)", "\\g{2}3\\g{1}"), rule("_sum$", "")]);
    let Statement::Rewrite(first) = &rewrite_statements(&rules.pre)[0] else { panic!() };
    assert!(first.every_occurrence);
    let table: &[(&str, &[&str])] = &[
        ("a = b", &["a = b"]),
        ("[pra]\na = b", &["[pra]", "a = b"]),
        ("[pre]\nnothing", &["nothing"]),
        ("[pre]\n  a(b = c", &["("]),
        ("[pre]\n(a) = \\2", &["\\2"]),
        ("[pre]\n(a) = x\\g<0>", &["\\g<0>"]),
        ("[pre]\n(a) = x\\n", &["\\n"]),
        ("[pre]\n(a) = x\\", &["\\"]),
    ];
    for (text, want) in table {
        assert_eq!(marked(text, rewrite_rules(text)), *want, "{text:?}");
    }
}

#[test]
fn aggregation_rules_are_read() {
    let text = "# comment\n<env>.applications.<app>.all.requests (60) = sum <env>.applications.<app>.*.requests\n\
        all.<rest> (10) = p999 host*.<<rest>>\n";
    let (rules, wrong) = aggregation_rules(text);
    assert_eq!(wrong, []);
    let rules = rules.unwrap();
    assert_eq!(rules[0].input, "^([^.]+?)\\.applications\\.([^.]+?)\\.[^.]+\\.requests$");
    assert_eq!(rules[0].output, "\\g{1}.applications.\\g{2}.all.requests");
    assert_eq!((rules[0].frequency_s, rules[0].method), (60, Compute::Sum));
    assert_eq!((&*rules[1].input, rules[1].method), ("^host[^.]*\\.(.+?)$", Compute::Interpolated(999)));
    let statements = aggregation_statements(&rules, &To::Clusters(vec![ClusterId(0)]));
    let Statement::Aggregate(first) = &statements[0] else { panic!() };
    assert_eq!((first.aggregation_rule.every_s, first.aggregation_rule.check()), (60, Ok(())));
    let table: &[(&str, &[&str])] = &[
        ("nonsense", &["nonsense"]),
        ("a (x) = sum b", &["x"]),
        ("a (0) = sum b", &["0"]),
        ("a (10) = summ b", &["summ"]),
        ("a.<x> (10) = sum b.<y>", &["<x>"]),
        ("a (10) = sum b(c", &["b(c"]),
        ("a (10) = sum", &["a (10) = sum"]),
        ("a (x) = sun b(", &["x", "sun", "b("]),
    ];
    for (text, want) in table {
        assert_eq!(marked(text, aggregation_rules(text)), *want, "{text:?}");
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "(?s)(\\[[a-z]{0,3}\\]|pattern|destinations|default|[=:<>*.()\\\\, \n#0-9é]|.){0,60}") {
        let show = |wrong: &[Diagnostic]| render(Source { name: "x", text: &text }, wrong, false);
        show(&relay_rules(&text, None).1);
        show(&rewrite_rules(&text).1);
        show(&aggregation_rules(&text).1);
    }
}

/// carbon.conf with rule files beside it: the plan, and all diagnostics.
fn imported(conf: &str, section: &str, files: &[(&str, &str)]) -> (Option<config::plan::Plan>, Vec<String>) {
    let read = |name: &str| {
        let found = files.iter().find(|(known, _)| *known == name);
        found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| "not there".to_owned())
    };
    let (plan, files) = carbon(("carbon.conf", conf), &Invocation::of_section(section), &read);
    if let Some(plan) = &plan {
        // The printed file gives the imported plan.
        let text = config::print(plan);
        let (again, wrong) = config::check(Source { name: "t", text: &text }, config::Format::Toml);
        assert_eq!(again.as_ref(), Some(plan), "{wrong:?}\n{text}");
    }
    let said = files.iter().flat_map(|file| &file.diagnostics);
    (plan, said.map(|wrong| format!("{} {}", wrong.code.word(), wrong.message)).collect())
}

fn router(plan: &config::plan::Plan) -> Router {
    let (_, _, relay) = plan.relays().next().expect("a relay");
    Router::new(&relay.plan).expect("a checked plan")
}

#[test]
fn an_import_keeps_carbons_hash_ring() {
    // Spec graphite §3.6.4: the cluster whose ring has a collision.
    let conf = "[relay]\nLINE_RECEIVER_INTERFACE = 127.0.0.1\nPICKLE_RECEIVER_PORT = 0\nRELAY_METHOD = consistent-hashing\nREPLICATION_FACTOR = 2\n\
        DESTINATION_PROTOCOL = line\nDESTINATIONS = MEMBERS\n";
    let (plan, said) =
        imported(&conf.replace("MEMBERS", "10.0.0.1:2003, 10.0.0.2:2003, 10.0.0.3:2003"), "relay", &[]);
    assert_eq!(said, [""; 0]);
    let router = router(&plan.expect("a plan"));
    for (name, want) in [("m993473.b.661259", "13"), ("m586438.d.417406", "13"), ("m554933.f.828702", "13")] {
        let decision = router.decide(Entry::Records, name.as_bytes());
        let outputs = decision.plain().expect("no look at the line");
        let got: String = outputs.iter().map(|output| (output.0 + 1).to_string()).collect();
        assert_eq!(got, want, "{name}");
    }
}

#[test]
fn an_aggregator_config_rewrites_aggregates_and_routes() {
    let conf = "[aggregator]\nLINE_RECEIVER_INTERFACE = 127.0.0.1\nLINE_RECEIVER_PORT = 2023\nPICKLE_RECEIVER_PORT = 2024\n\
        ENABLE_UDP_LISTENER = True\nUDP_RECEIVER_PORT = 2023\nDESTINATIONS = 127.0.0.1:2004:a, 10.0.0.2:2104:b\n\
        MAX_QUEUE_SIZE = 5000\nUSE_FLOW_CONTROL = False\nFORWARD_ALL = False\nLOG_UPDATES = False\n\
        MAX_AGGREGATION_INTERVALS = 5\nMAX_QUEUE_SIZ = 1\n[aggregator:b]\nMAX_QUEUE_SIZE = 7\n";
    let files = [
        ("rewrite-rules.conf", "[pre]\n^web = www\n"),
        ("aggregation-rules.conf", "all.<x> (60) = sum www.*.<x>\n"),
    ];
    let (plan, said) = imported(conf, "aggregator:b", &files);
    let codes: Vec<&str> = said.iter().map(|line| &line[..4]).collect();
    assert_eq!(codes, ["I002", "I017"], "{said:#?}");
    let plan = plan.expect("a plan");
    let names: Vec<&str> = plan.sources.iter().map(|source| &*source.name).collect();
    assert_eq!(names, ["lines", "pickle", "self"]);
    let outputs: Vec<&str> = plan.outputs.iter().map(|output| &*output.name).collect();
    assert_eq!(outputs, ["carbon/127.0.0.1:2004", "carbon/10.0.0.2:2104"]);
    assert_eq!(plan.outputs[0].queue.records_max, 7);
    let router = router(&plan);
    let fed = router.decide(Entry::Records, b"web.a.hits");
    assert!(fed.plain().is_none_or(<[OutputId]>::is_empty), "only results go on");
    assert_eq!(router.decide(Entry::Result(0), b"all.hits").plain().map(<[OutputId]>::len), Some(1));
    assert_eq!(router.aggregation_rules().len(), 1);
}

#[test]
fn relay_rules_and_aggregated_hashing_are_imported() {
    let (plan, said) = imported(
        "[relay]\nRELAY_METHOD = rules\nLINE_RECEIVER_INTERFACE = 127.0.0.1\nPICKLE_RECEIVER_PORT = 0\n\
         DESTINATIONS = 10.0.0.1:2004:a, 10.0.0.2:2004:b, [::1]:2004, 10.0.0.3:2004\n",
        "relay",
        &[("relay-rules.conf", RELAY)],
    );
    assert_eq!(said, [""; 0]);
    let router = router(&plan.expect("a plan"));
    let outputs = |name: &str| router.decide(Entry::Records, name.as_bytes()).plain().map(<[OutputId]>::len);
    assert_eq!((outputs("web.x"), outputs("db.pg"), outputs("x")), (Some(3), Some(2), Some(1)));
    let (plan, _) = imported(
        "[relay]\nRELAY_METHOD = aggregated-consistent-hashing\nDESTINATION_PROTOCOL = line\n\
         DESTINATIONS = 10.0.0.1:2023:a, 10.0.0.2:2023:b, 10.0.0.3:2023:c\n",
        "relay",
        &[("aggregation-rules.conf", "sum.<app> (60) = sum <app>.*.hits\n")],
    );
    let router = self::router(&plan.expect("a plan"));
    let owner = |name: &str| router.decide(Entry::Records, name.as_bytes()).plain().map(<[OutputId]>::to_vec);
    for app in ["a", "b", "c", "d"] {
        let sum = owner(&format!("sum.{app}"));
        assert!((0..9).all(|host| owner(&format!("{app}.h{host}.hits")) == sum), "{app} stays together");
    }
}

#[test]
fn the_section_of_the_cache_is_imported_by_itself() {
    let relay = "[relay]\nLINE_RECEIVER_INTERFACE = 127.0.0.1\nPICKLE_RECEIVER_PORT = 0\nRELAY_METHOD = constant\n\
        DESTINATIONS = h:1\nUSER = USERNAME\n";
    let user = "I007 USER has no effect here";
    let table: &[(String, &[&str])] = &[
        (relay.replace("USERNAME", ""), &[]),
        (relay.replace("USERNAME", "carbon"), &[user]),
        (format!("[cache]\nUSER = carbon\n{}", relay.replace("USERNAME", "")), &[]),
    ];
    for (conf, want) in table {
        let (plan, said) = imported(conf, "relay", &[]);
        assert_eq!(
            (plan.is_some(), said.iter().map(String::as_str).collect::<Vec<_>>()),
            (true, want.to_vec()),
            "{conf}"
        );
    }
    for section in ["cache", "cache:b"] {
        let text = "[cache]\nLINE_RECEIVER_INTERFACE = 127.0.0.1\nPICKLE_RECEIVER_PORT = 0\nSTORAGE_DIR = /srv/\nCACHE_QUERY_INTERFACE = 127.0.0.1\n[cache:b]\nLINE_RECEIVER_PORT = 2103\n";
        let schemas = "[all]\npattern = .*\nretentions = 60s:1d\n";
        let (plan, said) = imported(text, section, &[("storage-schemas.conf", schemas)]);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("I019"), "{section}: {said:?}");
        let plan = plan.expect("a plan");
        let port = if section == "cache" { 2003 } else { 2103 };
        assert_eq!(plan.sources[0].listen, [Listen::Tcp(([127, 0, 0, 1], port).into())]);
        let OutputKind::Whisper(store) = &plan.outputs[0].kind else { panic!("{plan:?}") };
        assert_eq!(store.path.to_str(), Some("/srv/whisper"));
        assert!(plan.outputs[0].queue_kind.is_disk() && plan.transforms.is_empty());
        let (plan, said) = imported(text, section, &[]);
        assert_eq!(
            (plan, said.len()),
            (None, 2),
            "carbon-cache.py does not start without storage-schemas.conf"
        );
    }
}

#[test]
fn a_section_of_no_daemon_is_reported_and_those_of_other_daemons_are_not() {
    let relay = "LINE_RECEIVER_INTERFACE = ::1\nPICKLE_RECEIVER_PORT = 0\nRELAY_METHOD = constant\nDESTINATIONS = h:1\n";
    let conf = format!("[cache]\n[cache:b]\n[relay]\n{relay}[relay:b]\n[aggregator]\n[cahce]\n");
    for (section, want) in [
        ("relay:b", &["I007 [cahce] is not the section of a daemon"][..]),
        (
            "relay:zz",
            &[
                "I007 no section [relay:zz]; the settings of [relay] are used",
                "I007 [cahce] is not the section of a daemon",
            ],
        ),
    ] {
        let (plan, said) = imported(&conf, section, &[]);
        assert!(plan.is_some());
        assert_eq!(said, want);
    }
}

#[test]
fn stock_values_are_silent_and_what_is_missing_in_the_plan_is_marked() {
    let start =
        "LINE_RECEIVER_INTERFACE = ::1\nPICKLE_RECEIVER_PORT = 0\nCACHE_QUERY_PORT = 0\nDESTINATIONS = h:1\n";
    for (section, key, is_incomplete, want) in [
        ("cache", "USER =", false, ""),
        ("cache", "USER = carbon", false, "set the user in the service manager: `User=` of the systemd unit"),
        ("cache", "MIN_TIMESTAMP_RESOLUTION = 1", false, ""),
        ("cache", "MIN_TIMESTAMP_RESOLUTION = 10", true, "timestamps are stored as sent"),
        ("relay", "MIN_TIMESTAMP_RESOLUTION = 10", true, "timestamps are forwarded as sent"),
        ("aggregator", "MAX_AGGREGATION_INTERVALS = 5", false, ""),
        (
            "aggregator",
            "MAX_AGGREGATION_INTERVALS = 6",
            true,
            "each aggregate is sent once; late points are accepted until `expire`",
        ),
        ("cache", "LINE_RECIEVER_PORT = 2013", true, "did you mean LINE_RECEIVER_PORT?"),
        ("cache", "OWN_KEY_OF_AN_ADMIN = 1", false, ""),
    ] {
        let conf = format!("[{section}]\n{start}{key}\n");
        let files = [
            ("storage-schemas.conf", "[all]\npattern = .*\nretentions = 60s:1d\n"),
            ("relay-rules.conf", "[d]\ndefault = true\ndestinations = h:1\n"),
            ("aggregation-rules.conf", ""),
        ];
        let read = |name: &str| {
            let found = files.iter().find(|(known, _)| *known == name);
            found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| format!("cannot read {name}"))
        };
        let (plan, files) = carbon(("carbon.conf", &conf), &Invocation::of_section(section), &read);
        assert!(plan.is_some(), "{files:?}");
        let found = files.iter().flat_map(|file| &file.diagnostics);
        let hints: String = found.clone().filter_map(|one| one.hint.clone()).collect();
        assert_eq!((found.clone().any(super::is_incomplete), &*hints), (is_incomplete, want), "{conf}");
    }
}

#[test]
fn skipped_rules_are_marked_and_come_before_what_changes_nothing() {
    let conf = "[cache]\nLINE_RECEIVER_INTERFACE = ::1\nPICKLE_RECEIVER_PORT = 0\nCACHE_QUERY_PORT = 0\nLOG_UPDATES = True\n";
    for (schema, aggregation) in [
        ("10s:6h,15s:7d", "aggregationMethod = sum"),
        ("10s:6h", "aggregationMethod = avgerage"),
        ("10s:6h", "xFilesFactor = 50%"),
    ] {
        let read = |name: &str| match name {
            "storage-schemas.conf" => Ok(format!("[s]\npattern = .*\nretentions = {schema}\n")),
            "storage-aggregation.conf" => Ok(format!("[a]\npattern = .*\n{aggregation}\n")),
            _ => Err(format!("cannot read {name}")),
        };
        let (plan, files) = carbon(("carbon.conf", conf), &Invocation::of_section("cache"), &read);
        assert!(plan.is_some(), "{files:?}");
        let codes: Vec<Code> =
            harmless_last(&files).iter().flat_map(|(_, all)| all).map(|one| one.code).collect();
        assert_eq!(codes, [Code::ImportSkipped, Code::ImportNoEffect], "{schema} {aggregation}");
        assert!(files.iter().flat_map(|file| &file.diagnostics).any(is_incomplete));
    }
}

#[test]
fn rule_files_are_those_of_conf_dir() {
    let start = "LINE_RECEIVER_INTERFACE = ::1\nPICKLE_RECEIVER_PORT = 0\nDESTINATIONS = h:1\n";
    let rules = "[d]\ndefault = true\ndestinations = h:1\n";
    let with = format!("[relay]\n{start}CONF_DIR = /srv/conf\n");
    let (plan, said) = imported(&with, "relay", &[("/srv/conf/relay-rules.conf", rules)]);
    assert_eq!((plan.is_some(), said), (true, Vec::new()));
    for (conf, name, hint) in [
        (with, "/srv/conf/relay-rules.conf", "rule files are in CONF_DIR, which is /srv/conf"),
        (
            format!("[relay]\n{start}"),
            "relay-rules.conf",
            "rule files are in the folder of carbon.conf, or in its CONF_DIR",
        ),
    ] {
        let read = |name: &str| Err(format!("cannot read {name}: not there"));
        let (plan, files) = carbon(("carbon.conf", &conf), &Invocation::of_section("relay"), &read);
        let found = &files[0].diagnostics[0];
        assert_eq!((plan, &*found.message), (None, &*format!("cannot read {name}: not there")));
        assert_eq!(found.hint.as_deref(), Some(hint));
    }
}

#[test]
fn keys_without_effect_are_reported_once_and_misspelt_ones_have_a_hint() {
    let own = "[relay]\nLINE_RECEIVER_INTERFACE = ::1\nPICKLE_RECEIVER_PORT = 0\nRELAY_METHOD = constant\nDESTINATIONS = h:1\n";
    for (key, want) in [
        ("CACHE_WRITE_STRATEGY = sortedd", Some("I007 CACHE_WRITE_STRATEGY has no effect here")),
        ("LOG_CREATES = True", Some("I007 LOG_CREATES has no effect here")),
        ("LOG_CREATES = False", None),
        ("GRAPHITE_URL = http://127.0.0.1:80", Some("I007 GRAPHITE_URL has no effect here")),
        ("ENABLE_TAGS = True", None),
        ("MAX_CREATE_PER_MINUTE = 5", Some("I002 carbon knows no key `MAX_CREATE_PER_MINUTE` in [relay]")),
    ] {
        let (plan, said) = imported(&format!("{own}{key}\n"), "relay", &[]);
        assert!(plan.is_some());
        assert_eq!(said.first().map(String::as_str), want, "{key}: {said:?}");
    }
    let typo = format!("{own}MAX_CREATE_PER_MINUTE = 5\n");
    let (_, files) = carbon(("c", &typo), &Invocation::of_section("relay"), &|_name| Err(String::new()));
    assert_eq!(files[0].diagnostics[0].hint.as_deref(), Some("did you mean MAX_CREATES_PER_MINUTE?"));
}

#[test]
fn mistakes_in_carbon_conf_are_reported() {
    let table: &[(&str, &str)] = &[
        ("", "C006"),
        ("[cache]\nX = 1\n", "C006"),
        ("[relay]\nRELAY_METHOD = fast-hasing\nDESTINATIONS = h:1\n", "I005"),
        ("[relay]\nRELAY_METHOD = fast-hashing\nDESTINATIONS = h:1, h:2\n", "I005"),
        ("[relay]\nRELAY_METHOD = constant\nDESTINATIONS = h:1\nDESTINATION_PROTOCOL = protobuf\n", "I005"),
        ("[relay]\nRELAY_METHOD = constant\nDESTINATIONS = h:1\nDESTINATION_TRANSPORT = tls\n", "I005"),
        ("[relay]\nRELAY_METHOD = constant\n", "C006"),
        ("[relay]\nRELAY_METHOD = constant\nDESTINATIONS = h\n", "I005"),
        ("[relay]\nDESTINATIONS = h:1\n", "I013"),
        ("[relay]\nRELAY_METHOD = constant\nDESTINATIONS = h:1\nLINE_RECEIVER_INTERFACE = here\n", "I005"),
        (
            "[relay]\nRELAY_METHOD = constant\nDESTINATIONS = h:1\nLINE_RECEIVER_PORT = 0\nPICKLE_RECEIVER_PORT = 0\n",
            "C006",
        ),
        ("[relay]\nRELAY_METHOD = constant\nDESTINATIONS = h:1\nREPLICATION_FACTOR = x\n", "I005"),
    ];
    for (conf, want) in table {
        let (plan, said) = imported(conf, "relay", &[]);
        assert!(plan.is_none() && said.iter().any(|line| line.starts_with(want)), "{conf}\n{said:#?}");
    }
}
