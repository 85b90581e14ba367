//! Searches: which events they look at, their limits and slices, and that every plan finds what a scan finds, also
//! while the index changes.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;

use super::super::{SearchCounts, Stop};
use super::*;
use crate::query::{Operand, Pattern, Tree};

/// Two hundred events on ten hosts; each has a service of its own, and every third one a tag.
fn fleet() -> Index {
    index_of((0..200_i64).map(|at| {
        let mut event = event(&format!("web{}", at % 10), &format!("cpu {at}"), at);
        if at % 3 == 0 {
            event.set(Field::Tags, tags(&["third", "x"]));
        }
        event
    }))
}

#[test]
fn planning_costs_little_and_is_counted_however_long_texts_are() {
    let long = |at: i64| format!("{at}{}", "x".repeat(100_000));
    let index = index_of((0..64).map(|at| event(&long(at), &long(at), at)));
    let parts: Vec<String> =
        (0..60).map(|at| format!("host =~ \"%{at}y%\" and service =~ \"%{at}z%\"")).collect();
    for text in [parts.join(" and "), parts.join(" or ")] {
        let search = Search::new(&query(&text), &index, SEARCH);
        let steps = search.counts().steps;
        assert!(steps >= 120, "{steps} steps: each part is at least one");
        assert!(steps < 20_000, "{steps} steps before the first slice");
    }
}

#[test]
fn query_looks_only_at_events_of_the_best_set() {
    let index = fleet();
    let table: &[(&str, usize, u64)] = &[
        ("true", 200, 200),
        ("false", 0, 0),
        ("host = \"web3\"", 20, 20),
        ("\"web3\" = host", 20, 20),
        ("host = nil", 0, 0),
        ("host = \"none\"", 0, 0),
        ("host = \"web3\" and service = \"cpu 13\"", 1, 1),
        ("service = \"cpu 13\" and metric > 0 and host = \"web3\"", 1, 1),
        ("host = \"web3\" and service = \"cpu 14\"", 0, 0),
        ("tagged \"third\"", 67, 67),
        ("tagged \"third\" and host = \"web3\"", 7, 20),
        ("metric > 100 and tagged \"third\"", 33, 67),
        ("host = \"web3\" or host = \"web4\"", 40, 40),
        ("host = \"web3\" or tagged \"third\"", 80, 80),
        ("host = \"web3\" or metric = 4", 21, 200),
        ("service =~ \"cpu 1%\"", 111, 111),
        ("service =~ \"cpu 13\"", 1, 1),
        ("service =~ \"%9\"", 20, 20),
        ("service =~ \"cpu 19%\" or service =~ \"cpu 18%\"", 22, 22),
        ("service =~ \"cpu 19%\" or service = \"cpu 5\"", 12, 12),
        ("service =~ \"cpu 19%\" or host = \"web3\"", 30, 200),
        ("service =~ \"cpu 19%\" and host = \"web3\"", 1, 20),
        ("service =~ \"cpu 199%\" and host = \"web9\"", 1, 1),
        ("service ~= \"^cpu .$\"", 10, 10),
        ("not host = \"web3\"", 180, 200),
        ("host = \"web3\" and not tagged \"x\"", 13, 20),
        ("(host = \"web3\" and service = \"cpu 13\") or host = \"web4\"", 21, 40),
        ("false or host = \"web3\"", 20, 20),
        ("true or host = \"web3\"", 200, 200),
        ("host != \"web3\"", 180, 200),
    ];
    for (text, found, looked_at) in table {
        let mut search = Search::new(&query(text), &index, SEARCH);
        let (events, progress) = run(&mut search, &index, u64::MAX);
        let SearchCounts { looked_at: looks, found: count, .. } = search.counts();
        assert_eq!(
            (events.len(), count, looks, progress),
            (*found, *found, *looked_at, Progress::Done),
            "{text}"
        );
    }
}

#[test]
fn results_and_work_are_limited() {
    let index = fleet();
    for (text, count) in [("true", 200), ("host = \"web3\"", 20), ("service =~ \"cpu 1%\"", 111)] {
        let limited = |results_max| SearchLimits { results_max, ..SEARCH };
        let (found, progress) = run(&mut Search::new(&query(text), &index, limited(count)), &index, 100);
        assert_eq!((found.len(), progress), (count, Progress::Done), "{text}");
        let (found, progress) = run(&mut Search::new(&query(text), &index, limited(count - 1)), &index, 100);
        assert_eq!((found.len(), progress), (count - 1, Progress::Stopped(Stop::Results)), "{text}");
        let limits = SearchLimits { steps_max: 100, ..SEARCH };
        let (found, progress) = run(&mut Search::new(&query(text), &index, limits), &index, 30);
        assert_eq!(progress, Progress::Stopped(Stop::Steps), "{text}");
        assert!((1..=17).contains(&found.len()), "{text}: {}", found.len());
    }
    assert_eq!(Stop::Results.name(), "max_results");
}

#[test]
fn slice_ends_after_its_steps() {
    let index = fleet();
    for text in ["metric > 5", "host = \"web3\"", "tagged \"x\" or host = \"web4\"", "service =~ \"c%3%\""] {
        let mut search = Search::new(&query(text), &index, SEARCH);
        let mut found = Vec::new();
        let mut slices = 0;
        let mut before = 0;
        while search.run(&index, 1, &mut found) == Progress::More {
            let SearchCounts { steps, looked_at, .. } = search.counts();
            assert!(looked_at <= slices + 1, "{text}: one event a slice");
            assert!(steps > before, "{text}: each slice gets ahead");
            (before, slices) = (steps, slices + 1);
        }
        assert_eq!(shown(&found), super::search(&index, text), "{text}");
    }
}

#[test]
fn searches_that_give_up_are_counted() {
    let index = index_of([event(&"a".repeat(300), "s", 1)]);
    let mut search = Search::new(&query("host ~= \"^(a|a)*(?!a)b$\""), &index, SEARCH);
    assert!(run(&mut search, &index, 10).0.is_empty());
    assert_eq!(search.counts().gave_up, 1);
}

#[test]
fn deepest_query_is_planned_and_printed() {
    let index = fleet();
    let levels = crate::query::limits::DEPTH_MAX;
    let text = format!("{}tagged \"x\"{}", "host = \"a\" or 1 and (".repeat(levels), ")".repeat(levels));
    assert_eq!(super::search(&index, &text).len(), 67);
    let printed = query(&text).tree().to_string();
    assert_eq!(printed.matches("(or ").count(), levels, "{printed}");
    let negated = format!("{}host = \"web3\"", "not ".repeat(levels));
    assert_eq!(super::search(&index, &negated).len(), 20);
}

/// What happens between two slices, or before a search.
#[derive(Clone, Debug)]
enum Step {
    Insert { host: usize, service: usize, metric: i64, tags: usize },
    Delete { host: usize, service: usize },
    Expire { host: usize, service: usize },
}

const PARTS: [Option<&str>; 8] =
    [None, Some(""), Some("web1"), Some("web2"), Some("we%"), Some("db1"), Some("é\n"), Some("web10")];

fn part(at: usize) -> Value {
    match PARTS.get(at) {
        Some(part) => part.map_or(Value::Nil, text),
        None => int(1),
    }
}

fn tag_list(at: usize) -> Value {
    match at {
        0 => Value::Nil,
        1 => tags(&[]),
        2 => tags(&["a"]),
        3 => tags(&["a", "b", "a"]),
        4 => text("a"),
        _ => Value::Vector(Arc::new([int(1), text("b")].into_iter().collect())),
    }
}

fn step() -> impl Strategy<Value = Step> {
    let key = (0..=PARTS.len(), 0..=PARTS.len());
    prop_oneof![
        6 => (key.clone(), 0..4_i64, 0..6_usize)
            .prop_map(|((host, service), metric, tags)| Step::Insert { host, service, metric, tags }),
        1 => key.clone().prop_map(|(host, service)| Step::Delete { host, service }),
        1 => key.prop_map(|(host, service)| Step::Expire { host, service }),
    ]
}

fn apply(index: &mut Index, step: &Step) {
    let new = |host: usize, service: usize, metric| {
        let mut event = event("", "", metric);
        event.set(Field::Host, part(host));
        event.set(Field::Service, part(service));
        event
    };
    match step {
        Step::Insert { host, service, metric, tags } => {
            let mut event = new(*host, *service, *metric);
            event.set(Field::Tags, tag_list(*tags));
            index.insert(Arc::new(event)).unwrap();
        }
        Step::Delete { host, service } => {
            index.delete(&part(*host), &part(*service));
        }
        Step::Expire { host, service } => {
            let mut event = new(*host, *service, 0);
            event.set(Field::State, text("expired"));
            index.insert(Arc::new(event)).unwrap();
        }
    }
}

/// Trees over the fields that have sets, and some that have none.
fn tree() -> impl Strategy<Value = Tree> {
    let name = || prop::sample::select(&["host", "service"][..]).prop_map(Operand::field);
    let known = (0..=PARTS.len()).prop_map(|at| Operand::Literal(part(at)));
    let patterns = &["%", "we%", "web1%", "%1", "web1", "we%%", "", "é\n", "%e%1%"][..];
    let like = prop::sample::select(patterns);
    let regex = prop::sample::select(&["^web", "1$", "", "x", "^(?!w)"][..]);
    let tag = prop::sample::select(&["a", "b", "c"][..]);
    let leaf = prop_oneof![
        4 => (name(), known.clone()).prop_map(|(field, value)| Tree::Equal(field, value)),
        1 => (name(), known.clone()).prop_map(|(field, value)| Tree::Equal(value, field)),
        1 => (name(), known.clone()).prop_map(|(field, value)| Tree::NotEqual(field, value)),
        1 => (known.clone(), known.clone()).prop_map(|(a, b)| Tree::Equal(a, b)),
        1 => (name(), name()).prop_map(|(a, b)| Tree::Equal(a, b)),
        1 => (0..4_i64).prop_map(|metric| Tree::Equal(Operand::field("metric"), Operand::int(metric))),
        1 => known.prop_map(Tree::Value),
        1 => name().prop_map(Tree::Value),
        3 => (name(), like).prop_map(|(field, pattern)| Tree::Like(pattern.into(), field)),
        2 => (name(), regex)
            .prop_map(|(field, pattern)| Tree::Regex(Arc::new(Pattern::new(pattern).unwrap()), field)),
        3 => tag.prop_map(|tag| Tree::Tagged(tag.into())),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            1 => inner.clone().prop_map(|inner| Tree::Not(Box::new(inner))),
            3 => prop::collection::vec(inner.clone(), 2..4).prop_map(Tree::and),
            3 => prop::collection::vec(inner, 2..4).prop_map(Tree::or),
        ]
    })
}

fn keys(events: &[Arc<Event>]) -> Vec<String> {
    let key = |event: &Arc<Event>| format!("{:?} {:?}", event.get(Field::Host), event.get(Field::Service));
    events.iter().map(key).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn every_plan_gives_the_result_of_a_scan(
        steps in prop::collection::vec(step(), 0..60),
        trees in prop::collection::vec(tree(), 1..6),
        slice in 1..60_u64,
    ) {
        let mut index = Index::new(LIMITS, 1);
        steps.iter().for_each(|step| apply(&mut index, step));
        for tree in trees {
            let query = Arc::new(Query::of(tree).unwrap());
            let (want, _) = run(&mut Search::scan(&query, SEARCH), &index, u64::MAX);
            let mut planned = Search::new(&query, &index, SEARCH);
            let (found, _) = run(&mut planned, &index, slice);
            prop_assert_eq!(shown(&found), shown(&want), "{}", query.tree());
            prop_assert!(planned.counts().looked_at <= index.len() as u64, "no event is looked at twice");
        }
    }

    #[test]
    fn search_tolerates_changes_between_its_slices(
        before in prop::collection::vec(step(), 0..60),
        between in prop::collection::vec(step(), 0..40),
        tree in tree(),
        slice in 1..40_u64,
    ) {
        let mut index = Index::new(LIMITS, 1);
        before.iter().for_each(|step| apply(&mut index, step));
        let query = Arc::new(Query::of(tree).unwrap());
        let scan = |index: &Index| run(&mut Search::scan(&query, SEARCH), index, u64::MAX).0;
        // Events that match all the time.
        let mut always: BTreeSet<String> = keys(&scan(&index)).into_iter().collect();
        let mut ever = always.clone();
        let mut search = Search::new(&query, &index, SEARCH);
        let mut found = Vec::new();
        let mut changes = between.iter();
        while search.run(&index, slice, &mut found) == Progress::More {
            if let Some(step) = changes.next() {
                apply(&mut index, step);
                let now: BTreeSet<String> = keys(&scan(&index)).into_iter().collect();
                always = always.intersection(&now).cloned().collect();
                ever.extend(now);
            }
        }
        let found = keys(&found);
        let distinct: BTreeSet<String> = found.iter().cloned().collect();
        prop_assert!(always.is_subset(&distinct), "{}: {:?} of {:?}", query.tree(), distinct, always);
        prop_assert!(distinct.is_subset(&ever));
        let removals = between.iter().any(|step| !matches!(step, Step::Insert { .. }));
        prop_assert!(removals || distinct.len() == found.len(), "no event is found twice: {:?}", found);
    }

    #[test]
    fn removing_everything_leaves_nothing(steps in prop::collection::vec(step(), 0..80)) {
        let mut index = Index::new(LIMITS, 1);
        steps.iter().for_each(|step| apply(&mut index, step));
        let all = Arc::new(Query::new("true").unwrap());
        let mut removed = Vec::new();
        let mut search = Search::new(&all, &index, SEARCH);
        while search.delete(&mut index, 5, &mut removed) == Progress::More {}
        prop_assert!(index.is_empty());
        prop_assert_eq!(index.memory_bytes(), 0);
        prop_assert!(super::search(&index, "tagged \"a\"").is_empty());
        let mut expired = Vec::new();
        prop_assert!(index.expire(&Number::Int(i64::MAX), 1, &mut expired) && expired.is_empty());
    }
}
