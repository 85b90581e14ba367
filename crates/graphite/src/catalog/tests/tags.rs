//! Expressions, lists and completion over tags, against a plain filter of all names.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const NAMES: &str = "disk.used;dc=dc1;rack=a1;server=web01 disk.used;dc=dc1;rack=a2;server=web02 \
    disk.used;dc=dc2;rack=b1;server=web03 disk.free;dc=dc1;server=web01 cpu;host=x ~odd;dc=dc2 plain.name";

fn expressions(texts: &str) -> Expressions {
    Expressions::parse(texts.split(' ').map(str::as_bytes)).expect("good expressions")
}

fn series(catalog: &Catalog, texts: &str) -> Vec<String> {
    let found = catalog.find_series(expressions(texts), search_limits()).expect("within limits");
    assert!(found.nodes().all(|node| catalog.find(node.path) == node.leaf));
    found.nodes().map(|node| text(node.path)).collect()
}

#[test]
fn series_are_found_by_every_operator() {
    let catalog = catalog(NAMES);
    let table: &[(&str, &[&str])] = &[
        ("dc=dc2", &["disk.used;dc=dc2;rack=b1;server=web03", "~odd;dc=dc2"]),
        ("name=odd", &["~odd;dc=dc2"]),
        ("name=disk.free", &["disk.free;dc=dc1;server=web01"]),
        ("name=~disk rack=", &["disk.free;dc=dc1;server=web01"]),
        ("dc=dc1 rack!=a1", &["disk.free;dc=dc1;server=web01", "disk.used;dc=dc1;rack=a2;server=web02"]),
        (
            "rack!= server!=web01",
            &["disk.used;dc=dc1;rack=a2;server=web02", "disk.used;dc=dc2;rack=b1;server=web03"],
        ),
        (
            "server=~web0[23]",
            &["disk.used;dc=dc1;rack=a2;server=web02", "disk.used;dc=dc2;rack=b1;server=web03"],
        ),
        ("dc!= server!=~web", &["~odd;dc=dc2"]),
        (
            "dc=dc1 server=~.*",
            &[
                "disk.free;dc=dc1;server=web01",
                "disk.used;dc=dc1;rack=a1;server=web01",
                "disk.used;dc=dc1;rack=a2;server=web02",
            ],
        ),
        ("dc=dc3", &[]),
        ("no=tag", &[]),
        ("no!= dc=dc1", &[]),
        ("dc=dc1 dc=dc2", &[]),
        ("plain.name!=", &[]),
    ];
    for (texts, want) in table {
        assert_eq!(series(&catalog, texts), *want, "{texts}");
    }
}

fn list(
    catalog: &Catalog,
    tag: Option<&str>,
    filter: Option<&str>,
    prefix: &str,
    limit: Option<usize>,
) -> Vec<String> {
    let filter = filter.map(|filter| Filter::new(filter).expect("a filter"));
    let mut list = TagList::new(tag.map(str::as_bytes), filter, prefix.as_bytes(), limit, search_limits());
    while list.step(catalog, 1).expect("within limits") == Progress::More {}
    list.finish().into_iter().map(|counted| format!("{} {}", text(&counted.text), counted.count)).collect()
}

#[test]
fn tags_and_values_are_listed_with_counts() {
    let mut catalog = catalog(NAMES);
    assert_eq!(list(&catalog, None, None, "", None), ["dc 2", "host 1", "name 4", "rack 3", "server 3"]);
    assert_eq!(list(&catalog, None, Some("r|d"), "", None), ["dc 2", "rack 3"]);
    assert_eq!(list(&catalog, None, None, "", Some(2)), ["dc 2", "host 1"]);
    assert_eq!(list(&catalog, Some("dc"), None, "", None), ["dc1 3", "dc2 2"]);
    assert_eq!(list(&catalog, Some("server"), None, "web0", Some(1)), ["web01 2"]);
    assert_eq!(list(&catalog, Some("server"), Some(".*2"), "", None), ["web02 1"]);
    assert_eq!(
        list(&catalog, Some("name"), None, "", None),
        ["cpu 1", "disk.free 1", "disk.used 3", "odd 1"]
    );
    assert!(list(&catalog, Some("no"), None, "", None).is_empty());
    assert!(list(&catalog, None, None, "", Some(0)).is_empty());
    catalog.remove(b"cpu;host=x");
    assert_eq!(list(&catalog, None, None, "h", None), [""; 0], "a tag goes with its last series");
}

fn complete(catalog: &Catalog, texts: &str, wanted: Completion) -> Vec<String> {
    let mut search = TagSearch::new(expressions(texts), wanted, search_limits());
    while search.step(catalog, 1).expect("within limits") == Progress::More {}
    search.finish().nodes().map(|node| text(node.path)).collect()
}

#[test]
fn tags_and_values_of_matching_series_are_completed() {
    let catalog = catalog(NAMES);
    let tags = |texts, prefix: &str, limit| {
        complete(&catalog, texts, Completion::Tags { prefix: prefix.into(), limit })
    };
    let values = |texts, tag: &str, prefix: &str, limit| {
        complete(&catalog, texts, Completion::Values { tag: tag.into(), prefix: prefix.into(), limit })
    };
    assert_eq!(tags("dc=dc1", "", 100), ["name", "rack", "server"]);
    assert_eq!(tags("dc=dc1 name!=disk.used", "", 100), ["server"]);
    assert_eq!(tags("dc=dc1", "r", 100), ["rack"]);
    assert_eq!(tags("dc=dc1", "", 1), ["name"]);
    assert_eq!(tags("dc=dc1", "", 0), [""; 0]);
    assert_eq!(values("dc=dc1", "server", "", 100), ["web01", "web02"]);
    assert_eq!(values("dc=dc1", "server", "", 1), ["web01"]);
    assert_eq!(values("dc=~dc", "rack", "a", 100), ["a1", "a2"]);
    assert_eq!(values("server!=", "no", "", 100), [""; 0]);
}

#[test]
fn searches_by_tags_have_limits() {
    let mut catalog = Catalog::new(limits(), SEED);
    for at in 0..1000 {
        catalog.insert(format!("m;id=a{at}{};dc=x", "a".repeat(100)).as_bytes()).expect("a name");
    }
    let run = |texts, results_max, steps_max| {
        catalog
            .find_series(expressions(texts), SearchLimits { results_max, steps_max })
            .map(|found| found.len())
    };
    assert_eq!(run("dc=x", 1000, 100_000), Ok(1000));
    assert_eq!(run("dc=x", 999, 100_000), Err(SearchError::TooManyResults { results_max: 999 }));
    assert_eq!(run("dc=x", 1000, 1000), Err(SearchError::TooManySteps { steps_max: 1000 }));
    assert_eq!(run("id=~(a*)*b", 1000, 2000), Err(SearchError::TooManySteps { steps_max: 2000 }));
    let mut list =
        TagList::new(Some(b"id"), None, b"", None, SearchLimits { results_max: 10, steps_max: 10_000 });
    assert_eq!(list.step(&catalog, 10_000), Err(SearchError::TooManyResults { results_max: 10 }));
    let mut list =
        TagList::new(Some(b"id"), None, b"", Some(10), SearchLimits { results_max: 10, steps_max: 10_000 });
    assert_eq!(list.step(&catalog, 10_000), Ok(Progress::Done));
}

/// A name as a map of tags, `name` among them.
fn tags_of(name: &str) -> BTreeMap<&str, &str> {
    let mut parts = name.split(';');
    let metric = parts.next().unwrap_or_default();
    let mut tags: BTreeMap<&str, &str> = parts.filter_map(|part| part.split_once('=')).collect();
    tags.insert("name", metric.trim_start_matches('~'));
    tags
}

fn name() -> impl Strategy<Value = String> {
    let tag = ("[xyz]", "[ab]{1,2}").prop_map(|(tag, value)| format!(";{tag}={value}"));
    ("~?[mn]", prop::collection::vec(tag, 1..4)).prop_filter_map("one name", |(metric, tags)| {
        normal_name(format!("{metric}{}", tags.concat()).as_bytes()).ok().map(|name| text(&name))
    })
}

fn expression() -> impl Strategy<Value = String> {
    (
        prop_oneof!["[xyz]", Just("name".to_owned())],
        prop_oneof![Just("="), Just("!="), Just("=~"), Just("!=~")],
        prop_oneof![
            "[abmn]{0,2}",
            Just("a|b".to_owned()),
            Just("^b".to_owned()),
            Just(".".to_owned()),
            Just("a*$".to_owned())
        ],
    )
        .prop_map(|(tag, operator, value)| format!("{tag}{operator}{value}"))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn expressions_agree_with_a_filter_of_all_names(
        stay in prop::collection::btree_set(name(), 0..40),
        changes in prop::collection::vec((any::<bool>(), name()), 0..30),
        texts in prop::collection::vec(expression(), 1..4),
        slice in 1u64..10,
    ) {
        let mut catalog = Catalog::new(limits(), SEED);
        for name in &stay {
            catalog.insert(name.as_bytes()).expect("a name");
        }
        let Ok(parsed) = Expressions::parse(texts.iter().map(|text| text.as_bytes())) else {
            let empty = |text: &String| Expression::parse(text.as_bytes()).is_ok_and(|one| one.accepts(b""));
            prop_assert!(texts.iter().all(empty));
            return Ok(());
        };
        let accepted = |name: &&String| {
            let tags = tags_of(name);
            parsed.iter().all(|one| one.accepts(tags.get(text(one.tag()).as_str()).unwrap_or(&"").as_bytes()))
        };
        let want: BTreeSet<String> = stay.iter().filter(accepted).cloned().collect();
        let found = catalog.find_series(parsed.clone(), search_limits()).expect("within limits");
        prop_assert!(found.nodes().map(|node| text(node.path)).eq(want.iter().cloned()));

        let mut changes = changes.iter();
        let mut all = stay.clone();
        let mut search = TagSearch::new(parsed.clone(), Completion::Series, search_limits());
        while search.step(&catalog, slice).expect("within limits") == Progress::More {
            if let Some((comes, name)) = changes.next() {
                if *comes {
                    catalog.insert(name.as_bytes()).expect("a name");
                    all.insert(name.clone());
                } else if !stay.contains(name) {
                    catalog.remove(name.as_bytes());
                }
            }
        }
        catalog.check();
        let got: BTreeSet<String> = search.finish().nodes().map(|node| text(node.path)).collect();
        let most: BTreeSet<String> = all.iter().filter(accepted).cloned().collect();
        prop_assert!(got.is_superset(&want) && got.is_subset(&most));
    }
}
