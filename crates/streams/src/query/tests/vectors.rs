//! The table of spec riemann §5.6.

use super::{Event, Field, Meter, Number, Query, event, matches, tags, text};
use crate::query::ast;
use crate::value::Value;

/// The events of the table, each with its letter.
fn index() -> Vec<(char, Event)> {
    let mut a = event(Some("web1"), "cpu", "ok", Number::Double(0.5));
    a.set(Field::Tags, tags(&["prod", "web"]));
    a.set_attribute("dc".into(), text("eu"));
    let mut b = event(Some("web2"), "cpu", "warning", Number::Double(0.75));
    b.set(Field::Tags, tags(&["prod"]));
    b.set_attribute("dc".into(), text("us"));
    let mut c = event(Some("db1"), "disk /var", "critical", Number::Int(10));
    c.set(Field::Description, text("full disk"));
    let mut d = event(Some("db2"), "disk /", "", Number::Int(-3));
    d.set(Field::State, Value::Nil);
    let e = event(None, "nohost", "ok", Number::Int(1));
    let f = event(Some("a.b-c_d"), "api %d", "ok", Number::Int(0));
    vec![('A', a), ('B', b), ('C', c), ('D', d), ('E', e), ('F', f)]
}

const ALL: &str = "ABCDEF";

/// (query, letters of the events that match)
const QUERIES: &[(&str, &str)] = &[
    ("true", ALL),
    ("not nil", ALL),
    ("not false", ALL),
    ("1", ALL),
    ("0", ALL),
    ("\"str\"", ALL),
    ("false", ""),
    ("nil", ""),
    ("null", ""),
    ("not true", ""),
    ("host", "ABCDF"),
    ("host = nil", "E"),
    ("host != nil", "ABCDF"),
    ("nil = host", "E"),
    ("\"web1\" = host", "A"),
    ("metric = 1", "E"),
    ("metric = 1.0", ""),
    ("metric = 0.5", "A"),
    ("metric = 10N", "C"),
    ("metric > 0.5", "BCE"),
    ("metric >= 0.5", "ABCE"),
    ("metric <= 0", "DF"),
    ("metric < Infinity", ALL),
    ("metric < NaN", ""),
    ("state > 5", ""),
    ("ttl = 300", ""),
    ("ttl = 300.0", ALL),
    ("ttl > 299", ALL),
    ("time > 0", ALL),
    ("tagged \"prod\"", "AB"),
    ("tagged \"prod\" and tagged \"web\"", "A"),
    ("not tagged \"prod\"", "CDEF"),
    ("service =~ \"disk%\"", "CD"),
    ("service =~ \"disk\"", ""),
    ("service =~ \"\"", ""),
    ("service =~ \"%/var\"", "C"),
    ("service =~ \"%\"", ALL),
    ("service =~ \"api _d\"", ""),
    ("service =~ \"api %d\"", "F"),
    ("service ~= \"d.sk\"", "CD"),
    ("host ~= \"web[12]\"", "AB"),
    ("metric =~ \"1%\"", ""),
    ("metric ~= \"1\"", ""),
    ("dc = \"eu\"", "A"),
    ("dc = nil", "CDEF"),
    ("host = \"web1\" or host = \"web2\" and state = \"ok\"", "A"),
    ("(host = \"web1\" or host = \"web2\") and state = \"warning\"", "B"),
    ("not host = \"web1\" and state = \"ok\"", "EF"),
    ("not (host = \"web1\" and state = \"ok\")", "BCDEF"),
    ("host = web1", "E"),
    ("host = host", ALL),
    ("host = \"we\\u00621\"", "A"),
    ("host = \"we\\o1421\"", "A"),
    ("host = \"web1\",", "A"),
    ("metric = .5", ""),
    ("a.b = nil", ALL),
    ("a:b = nil", ALL),
    ("a-b = nil", ALL),
    ("tags", "AB"),
    ("tags = \"prod\"", ""),
    ("1 < 2", ALL),
    ("2 > 1.5", ALL),
    ("1 = 1", ALL),
    // Upstream has errors for these.
    ("host=\"web1\"", "A"),
    ("host!=\"web1\"", "BCDEF"),
    ("host =\"web1\"", "A"),
    ("host= \"web1\"", "A"),
    ("metric>0.5", "BCE"),
    ("metric >-4", ALL),
    ("metric<=0", "DF"),
    ("metric=-3", "D"),
    ("service=~\"disk%\"", "CD"),
    ("service~=\"d.sk\"", "CD"),
    ("(host=\"web1\")or(host=\"web2\")", "AB"),
    ("host=web1", "E"),
];

#[test]
fn queries_of_the_table_match_as_upstream() {
    let index = index();
    for (query, want) in QUERIES {
        let found: String =
            index.iter().filter(|(_, event)| matches(query, event)).map(|(letter, _)| *letter).collect();
        assert_eq!(found, *want, "query {query}");
    }
}

#[test]
fn texts_give_the_trees_of_upstream() {
    let table: &[(&str, &str)] = &[
        ("state = true", "(= :state true)"),
        ("metric_f = 1", "(= :metric_f 1)"),
        ("null", "nil"),
        ("host", ":host"),
        ("state = -1.2e-5", "(= :state -1.2e-5)"),
        ("state = 10N", "(= :state 10N)"),
        ("state != 2", "(not= :state 2)"),
        ("state >= -Infinity", "(>= :state -Infinity)"),
        ("state = \"\\b\\t\\n\\f\\r \\\" \\\\\"", "(= :state \"\\b\\t\\n\\f\\r \\\" \\\\\")"),
        ("state =~ \"%foo%\"", "(:like \"%foo%\" :state)"),
        ("state ~= \"a\\\\d\"", "(:regex #\"a\\d\" :state)"),
        ("tagged \"cat\"", "(:tagged \"cat\")"),
        ("not host = 1", "(not (= :host 1))"),
        ("((host = 1))", "(= :host 1)"),
        ("1 and 2 and 3", "(and (and 1 2) 3)"),
        ("(1 and 2) and 3", "(and (and 1 2) 3)"),
        ("1 and (2 and 3)", "(and 1 (and 2 3))"),
        ("not host = 1 or host = 2 and host = 3", "(or (not (= :host 1)) (and (= :host 2) (= :host 3)))"),
        ("not ((host = 1 or host = 2) and host = 3)", "(not (and (or (= :host 1) (= :host 2)) (= :host 3)))"),
        ("AND", ":AND"),
        ("android", ":android"),
        ("a=b = 1", "(= :a=b 1)"),
        ("- = -", "(= :- :-)"),
    ];
    for (text, want) in table {
        let tree = ast(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(tree.to_string(), *want, "text {text}");
        assert_eq!(ast(text), Ok(tree.clone()), "equal texts give equal trees: {text}");
        assert_eq!(ast(&tree.to_query()), Ok(tree), "{text} as a query again");
    }
}

#[test]
fn work_is_counted_for_each_part_and_long_texts() {
    let query = Query::new("host = \"a\" and state = \"b\"").unwrap();
    let mut meter = Meter::default();
    assert!(!query.matches(&event(Some("x"), "s", "b", Number::Int(0)), &mut meter));
    assert_eq!(meter, Meter { steps: 2, gave_up: 0 }, "`and` stops at the first part that is false");
    let long = "x".repeat(64_000);
    let query = Query::new("host =~ \"%y%\"").unwrap();
    let mut meter = Meter::default();
    assert!(!query.matches(&event(Some(&long), "s", "b", Number::Int(0)), &mut meter));
    assert_eq!(meter.steps, 1 + 1_000);
}
