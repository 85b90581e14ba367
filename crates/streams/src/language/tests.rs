use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;

use super::budget::Limits;
use super::evaluation::Evaluation;
use super::host::{Host, Nowhere};
use super::machine::Machine;
use crate::graph::Graph;
use crate::print::to_text;

mod effort;
mod loads;
mod properties;

/// A graph without streams, for code of Clojure.
pub(crate) fn graph(host: impl Host + 'static) -> Graph {
    Graph::new(Evaluation::new(Arc::new(super::clojure()), Box::new(host)), 0)
}

/// What a text evaluates to, printed; or its mistakes.
fn evaluated(text: &str) -> String {
    let mut graph = graph(Nowhere::default());
    graph.advance(1_000_000, 1);
    let mut machine = Machine::new(&mut graph, Limits { steps: 1_000_000, ..Limits::EVENT });
    match machine.load(text, "t") {
        Ok(value) => match machine.realize(&value) {
            Ok(value) => to_text(&value, true),
            Err(error) => format!("!{error}"),
        },
        // The mistake is in words; the class is that of the exception.
        Err(error) => format!("!{error} {}", error.error.iter().map(ToString::to_string).collect::<String>()),
    }
}

fn lines(table: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = table.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(";;"));
    lines.map(|line| line.split_once(" => ").expect("a line has an arrow"))
}

/// Each line of a table: an expression, `=>`, what it evaluates to, or `!` and a part of the mistake.
fn check(table: &str) {
    let mut wrong = Vec::new();
    for (text, want) in lines(table) {
        let got = evaluated(text);
        let fits = match want.strip_prefix('!') {
            // A class or a part of the message is enough.
            Some(part) => got.starts_with('!') && got.contains(part),
            None => got.replace('\n', "\\n") == want,
        };
        if !fits {
            wrong.push(format!("{text}\n   want {want}\n   got  {got}"));
        }
    }
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn forms_evaluate_as_in_clojure() {
    check(include_str!("tests/forms.clj"));
}

/// Results of Clojure 1.11.1 itself.
#[test]
fn results_are_those_of_clojure() {
    check(include_str!("tests/clojure.clj"));
    check(include_str!("tests/sample.clj"));
}

#[test]
fn names_that_clojure_does_not_settle_evaluate() {
    check(include_str!("tests/names.clj"));
}

#[test]
fn every_name_has_a_line_in_a_table() {
    let tables = [
        include_str!("tests/forms.clj"),
        include_str!("tests/clojure.clj"),
        include_str!("tests/sample.clj"),
        include_str!("tests/names.clj"),
    ];
    let is_end = |part: char| part.is_whitespace() || "()[]{}\"'`~@#,".contains(part);
    // `.method`, and `java.util.UUID/method` as `UUID/method`.
    let short = |word: &str| match word.split_once('/') {
        Some((space, name)) => format!("{}/{name}", space.rsplit('.').next().unwrap_or(space)),
        None => word.trim_start_matches('.').to_owned(),
    };
    let words = |text: &'static str| text.split(is_end).flat_map(move |word| [word.to_owned(), short(word)]);
    let all = tables.iter().flat_map(|table| lines(table));
    let mut used: BTreeSet<String> = all.flat_map(|(text, _)| words(text)).collect();
    // Quotes at the end of a name are part of it.
    used.extend(["+'", "-'", "*'", "inc'", "dec'"].map(str::to_owned));
    let world = super::clojure();
    let namespaces = world.namespaces();
    let mut missing = Vec::new();
    for space in namespaces.names() {
        let names = namespaces.get(space).expect("it was listed").names.keys();
        for name in names.filter(|name| !name.starts_with(' ')) {
            let ways = [
                name.to_string(),
                format!("{space}/{name}"),
                format!("{name}."),
                format!("java.util.{name}."),
            ];
            let found = ways.iter().enumerate().any(|(index, way)| {
                // A short name of another namespace than Clojure's own ones would be found by accident.
                (index != 0 || space == "clojure.core" || space.starts_with(' ')) && used.contains(way)
            });
            if !found {
                missing.push(format!("{space}/{name}"));
            }
        }
    }
    assert!(missing.is_empty(), "{} names: {}", missing.len(), missing.join(" "));
}

/// The public names of clojure.core 1.11, and its special forms.
#[test]
fn every_name_of_clojure_is_there_or_refused_with_a_reason() {
    use super::refused::{REFUSED, why};
    let world = super::clojure();
    let namespaces = world.namespaces();
    let core = namespaces.get("clojure.core").expect("it is there");
    // Those of `try` are parts of its form, and `*ns*` is read by the analysis.
    let forms =
        [super::special_forms(), &["catch", "finally", "letfn*", "let*", "loop*", "fn*", ".", "*ns*"]]
            .concat();
    let is_there = |name: &str| core.names.contains_key(name) || forms.contains(&name);
    let clojure: BTreeSet<&str> = include_str!("tests/core_names.txt").lines().collect();
    let wrong: Vec<&&str> = clojure.iter().filter(|name| is_there(name) == why(name).is_some()).collect();
    assert!(wrong.is_empty(), "neither there nor refused, or both: {wrong:?}");
    let all: Vec<&str> = REFUSED.iter().flat_map(|refused| refused.names.iter().copied()).collect();
    let unknown: Vec<&&str> = all.iter().filter(|name| !clojure.contains(**name)).collect();
    assert!(unknown.is_empty(), "no names of Clojure: {unknown:?}");
    assert_eq!(all.len(), all.iter().collect::<BTreeSet<_>>().len(), "a name has one reason");
}
