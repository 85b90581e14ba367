//! Rule files as they are found, and the mistakes of each.

use model::OutputId;
use process::relay::{ClusterId, Entry, RelayPlan, Router, Statement, To};
use process::rollup::Compute;
use proptest::prelude::*;

use super::*;
use crate::diagnostic::{Severity, Source, render};

/// The errors of a reading: the marked text and the hint.
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
    let plan = RelayPlan { clusters, statements, statistics: To::Nowhere };
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
fn mistakes_of_relay_rules_are_told() {
    let table: &[(&str, &[&str])] = &[
        ("", &[""]),
        ("pattern = x\n[d]\ndefault = true\ndestinations = h:1", &["pattern"]),
        ("[a]\ndestinations = h:1\n[d]\ndefault = true\ndestinations = h:1", &["[a]"]),
        ("[a]\npattern = (x\ndestinations = h:1\n[d]\ndefault = true\ndestinations = h:1", &["("]),
        ("[a]\npattern = x\n[d]\ndefault = maybe\npattern = y\ndestinations = h", &["[a]", "h", "maybe", ""]),
        ("[d]\ndefault = true\ndestinations = h:0, :1, h:1:, h:x", &["h:0, :1, h:1:, h:x"; 4]),
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
    assert_eq!((first.rollup.every_s, first.rollup.check()), (60, Ok(())));
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

#[test]
fn storage_files_are_read() {
    let text = "[carbon]\npattern = ^carbon\\.\nretentions = 60:90d\n[default]\nPATTERN = .*\n\
        retentions = 1min:30days, 10s:6h , 1h:1y\n";
    let (schemas, wrong) = storage_schemas(text);
    assert_eq!(wrong, []);
    let schemas = schemas.unwrap();
    let archive = |every_s, points| Archive { every_s, points };
    assert_eq!(schemas[0].archives, [archive(60, 129_600)]);
    assert_eq!(schemas[1].archives, [archive(10, 2160), archive(60, 43_200), archive(3600, 8760)]);
    for retentions in [
        "60",
        "60:x",
        "x:60",
        "0:1",
        "60:0",
        "60:10s",
        "10s:1h,10s:2h",
        "10s:1h,15s:1d",
        "10s:1d,60s:1h",
        "1s:5,10s:1d",
        "1q:1d",
        "1s:99999999999y",
    ] {
        let text = format!("[a]\npattern = x\nretentions = {retentions}");
        assert_eq!(marked(&text, storage_schemas(&text)), [retentions], "{retentions}");
    }
    assert_eq!(marked("[a]\npattern = x", storage_schemas("[a]\npattern = x")), ["[a]"]);
    let text = "[min]\npattern = \\.min$\nxFilesFactor = 0.1\naggregationMethod = min\n[all]\npattern = .*\n";
    let (rules, wrong) = storage_aggregation(text);
    assert_eq!(wrong, []);
    let rules = rules.unwrap();
    assert_eq!((rules[0].x_files_factor, rules[0].method), (Some(0.1), Some(WhisperMethod::Min)));
    assert_eq!((rules[1].x_files_factor, rules[1].method), (None, None));
    let text = "[a]\npattern = x\nxFilesFactor = 2\naggregationMethod = mean";
    assert_eq!(marked(text, storage_aggregation(text)), ["2", "mean"]);
}

proptest! {
    #[test]
    fn no_text_panics(text in "(?s)(\\[[a-z]{0,3}\\]|pattern|destinations|retentions|default|[=:<>*.()\\\\, \n#0-9é]|.){0,60}") {
        let show = |wrong: &[Diagnostic]| render(Source { name: "x", text: &text }, wrong, false);
        show(&relay_rules(&text, None).1);
        show(&rewrite_rules(&text).1);
        show(&aggregation_rules(&text).1);
        show(&storage_schemas(&text).1);
        show(&storage_aggregation(&text).1);
    }
}
