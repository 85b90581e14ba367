//! Globs over trees of names: tables of spec graphite §6.6, random globs over random names, hostile globs, and catalogs
//! that change between the slices of a search.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const NAMES: &str = "servers.web1.cpu.user servers.web1.cpu.system servers.web2.cpu.user servers.db1.disk \
    servers.web1 stats.a stats.b.c x.y.z x.y";

fn found(catalog: &Catalog, glob: &str) -> Vec<String> {
    let glob = NameGlob::new(glob.as_bytes()).expect("a glob");
    let found = catalog.search(glob, Wanted::All, search_limits()).expect("within limits");
    let kind = |node: Node<'_>| match (node.leaf.is_some(), node.branch) {
        (true, true) => "both",
        (true, false) => "leaf",
        _ => "branch",
    };
    found.nodes().map(|node| format!("{} {}", text(node.path), kind(node))).collect()
}

#[test]
fn globs_find_series_and_prefixes() {
    let catalog = catalog(&format!("{NAMES} a;x=1.2 it*ems.b"));
    let table: &[(&str, &[&str])] = &[
        ("servers", &["servers branch"]),
        ("servers.web1", &["servers.web1 both"]),
        ("servers.*", &["servers.db1 branch", "servers.web1 both", "servers.web2 branch"]),
        ("servers.web?.cpu.user", &["servers.web1.cpu.user leaf", "servers.web2.cpu.user leaf"]),
        ("servers.{web1,db1}.*", &["servers.web1.cpu branch", "servers.db1.disk leaf"]),
        ("servers.{we{b1,b2}}.cpu.u*", &["servers.web1.cpu.user leaf", "servers.web2.cpu.user leaf"]),
        ("servers.[!d]*2", &["servers.web2 branch"]),
        ("**.user", &["servers.web1.cpu.user leaf", "servers.web2.cpu.user leaf"]),
        ("x.**.z", &["x.y.z leaf"]),
        ("x.**", &["x.y both", "x.y.z leaf"]),
        ("x.**.**", &["x.y both", "x.y.z leaf"]),
        ("x.**.y.**.z", &["x.y.z leaf"]),
        ("Servers.web1", &[]),
        ("servers.", &[]),
        ("", &[]),
        (r"it\*ems.b", &["it*ems.b leaf"]),
        ("a;x=1.2", &["a;x=1.2 leaf"]),
        ("a;x=*", &[]),
        ("a;x", &[]),
        ("a", &[]),
    ];
    for (glob, want) in table {
        assert_eq!(found(&catalog, glob), *want, "{glob}");
    }
}

#[test]
fn answers_have_the_order_and_uniqueness_of_graphite_web() {
    let catalog = catalog(NAMES);
    let search = |glob: &str| {
        catalog
            .search(NameGlob::new(glob.as_bytes()).expect("a glob"), Wanted::All, search_limits())
            .expect("found")
    };
    let tree = |glob: &str, wildcards| -> Vec<String> {
        let rows = search(glob).tree_rows(glob.as_bytes(), wildcards).into_iter();
        rows.map(|row| format!("{} {} {}", text(&row.text), text(&row.id), row.branch)).collect()
    };
    assert_eq!(tree("x.*", false), ["y x.y true"], "a path that is both is one branch");
    assert_eq!(tree("st*.*", true), ["* st*.* true", "b st*.b true", "a st*.a false"]);
    assert_eq!(
        tree("servers.*.cpu.*", false),
        ["system servers.*.cpu.system false", "user servers.*.cpu.user false"]
    );
    assert_eq!(tree("x.*", true).len(), 2, "a branch and a leaf of one name are more than one");
    assert_eq!(tree("st*.b*", true).len(), 1, "no row `*` beside one name");
    let completer: Vec<String> = search("x.*")
        .completer_rows(true)
        .iter()
        .map(|row| {
            format!("{} {} {}", row.path.as_deref().map_or("-".into(), text), text(&row.name), row.leaf)
        })
        .collect();
    assert_eq!(completer, ["x.y. y false", "x.y y true", "- * false"]);
    let json: Vec<String> = search("{x,stats}.*")
        .rows_by_path()
        .map(|(node, leaf)| format!("{} {leaf}", text(node.path)))
        .collect();
    assert_eq!(json, ["stats.a true", "stats.b false", "x.y false", "x.y true"]);
    let list: Vec<String> = search("*.*").rows().map(|(node, _)| text(node.name)).collect();
    assert_eq!(list, ["a", "b", "db1", "web1", "web1", "web2", "y", "y"]);
    assert_eq!(search("servers.*.*").components_at(Some(1)), [b"db1".as_slice(), b"web1", b"web2"]);
    assert_eq!(search("servers.*.*").components_at(None), [b"cpu".as_slice(), b"disk"]);
    assert!(search("servers.*.*").components_at(Some(9)).is_empty());
    assert_eq!(search("*.*").paths(true), [b"servers.web1".as_slice(), b"stats.a", b"x.y"]);
    assert_eq!(search("x.*").paths(false), [b"x.y"]);
    for (typed, variants, want) in [
        ("a..b", false, "a*.b*"),
        ("a.", false, "a.*"),
        ("a*", false, "a*"),
        ("x.a,b", true, "x.{a,b*}"),
        ("a,b.{c,d}.", true, "{a,b}.{c,d}.*"),
        ("", false, "*"),
    ] {
        assert_eq!(text(&completer_query(typed.as_bytes(), variants)), want, "{typed}");
    }
}

#[test]
fn listings_have_every_name() {
    let catalog = catalog("b.a a c;x=y");
    let list = |with_tagged| {
        let mut listing = Listing::new(with_tagged, search_limits());
        while listing.step(&catalog, 1).expect("within limits") == Progress::More {}
        listing.finish().paths(true).into_iter().map(text).collect::<Vec<_>>()
    };
    assert_eq!(list(false), ["a", "b.a"]);
    assert_eq!(list(true), ["a", "b.a", "c;x=y"]);
    let mut listing = Listing::new(true, SearchLimits { results_max: 2, steps_max: 100 });
    assert_eq!(listing.step(&catalog, 100), Err(SearchError::TooManyResults { results_max: 2 }));
}

#[test]
fn limits_on_results_and_steps_are_named() {
    let names: Vec<String> = (0..100).map(|at| format!("a.b{at}")).collect();
    let catalog = catalog(&names.join(" "));
    let run = |glob: &str, results_max, steps_max| {
        let glob = NameGlob::new(glob.as_bytes()).expect("a glob");
        catalog.search(glob, Wanted::All, SearchLimits { results_max, steps_max }).map(|found| found.len())
    };
    assert_eq!(run("a.*", 100, 10_000), Ok(100));
    assert_eq!(run("a.*", 99, 10_000), Err(SearchError::TooManyResults { results_max: 99 }));
    assert_eq!(run("a.*", 100, 100), Err(SearchError::TooManySteps { steps_max: 100 }));
    for error in [run("a.*", 99, 10_000), run("a.*", 100, 100)] {
        assert!(error.expect_err("too many").to_string().contains("expression"));
    }
    let glob = NameGlob::new(b"a;b=c").expect("a glob");
    assert!(catalog.search(glob, Wanted::All, SearchLimits { results_max: 0, steps_max: 1 }).is_ok());
}

#[test]
fn hostile_globs_cost_no_more_than_their_limit() {
    let mut names = String::new();
    for at in 0..300 {
        names += &format!("a{at}.a.a.a.a.a.a.a.b{} ", "a".repeat(at));
    }
    let catalog = catalog(&names);
    let globs = [
        "**.**.**.**.c".to_owned(),
        "*".repeat(GLOB_BYTES_MAX),
        "{a,b}".repeat(5_000),
        "*a".repeat(3_000),
        ["**"; 20].join(".a."),
        "[a-z]*".repeat(10_000),
        "{".repeat(GLOB_BYTES_MAX),
        ["*a*a*a*a*a*b"; 9].join("."),
    ];
    for text in &globs {
        for steps_max in [10, 20_000] {
            let glob = NameGlob::new(text.as_bytes()).expect("a glob");
            let mut search = Search::new(glob, Wanted::All, SearchLimits { results_max: 10_000, steps_max });
            let mut slices = 0;
            while search.step(&catalog, 100) == Ok(Progress::More) {
                slices += 1;
                assert!(slices <= steps_max / 100 + 1, "each slice counts its steps");
            }
        }
    }
}

#[test]
fn each_node_is_visited_once_however_many_levels_the_glob_has() {
    let mut names = String::new();
    for at in 0..1000 {
        names += &format!("a.b.c.d.e.f{at} ");
    }
    let catalog = catalog(&names);
    let glob = NameGlob::new(b"**.*.**.*.**.f7").expect("a glob");
    let found = catalog.search(glob, Wanted::All, SearchLimits { results_max: 10, steps_max: 4_000 });
    assert_eq!(found.map(|found| found.len()), Ok(1));
}

fn names() -> impl Strategy<Value = BTreeSet<String>> {
    let component = prop_oneof!["[ab]{1,3}", Just("a".to_owned()), Just("web1".to_owned())];
    let name = prop::collection::vec(component, 1..5).prop_map(|parts| parts.join("."));
    prop::collection::btree_set(name, 0..40)
}

fn glob() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => "[ab*?]{1,4}",
        2 => Just("**".to_owned()),
        2 => Just("*".to_owned()),
        2 => r"[ab*?{},\[\]!\\-]{1,8}",
        1 => Just("{a,b{a,b*},}".to_owned()),
        1 => Just("a{,b}[!a]*".to_owned()),
        1 => Just("we{b1,b2}".to_owned()),
    ];
    prop::collection::vec(part, 1..5).prop_map(|parts| parts.join("."))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn globs_agree_with_the_reference(names in names(), glob in glob()) {
        let mut catalog = Catalog::new(limits(), SEED);
        for name in &names {
            catalog.insert(name.as_bytes()).expect("a name");
        }
        let found = catalog.search(NameGlob::new(glob.as_bytes()).expect("a glob"), Wanted::All, search_limits());
        let found = found.expect("within limits");
        let got: Vec<(String, (bool, bool))> =
            found.by_path().iter().map(|node| (text(node.path), (node.leaf.is_some(), node.branch))).collect();
        let want: Vec<_> = reference::find(&names, &glob).into_iter().collect();
        prop_assert_eq!(&got, &want);
        for node in found.nodes() {
            prop_assert_eq!(catalog.find(node.path), node.leaf);
        }
        let leaves = catalog.search(NameGlob::new(glob.as_bytes()).expect("a glob"), Wanted::Leaves, search_limits());
        let got: Vec<String> = leaves.expect("within limits").by_path().iter().map(|node| text(node.path)).collect();
        prop_assert!(want.iter().filter(|(_, kind)| kind.0).map(|(path, _)| path).eq(&got));
    }

    #[test]
    fn names_that_stay_are_found_once_while_others_come_and_go(
        stay in names(),
        changes in prop::collection::vec((any::<bool>(), "[ab]{1,2}(\\.[ab]{1,2}){0,2}"), 0..60),
        glob in glob(), slice in 1u64..6, many in any::<bool>(),
    ) {
        let mut catalog = Catalog::new(limits(), SEED);
        let filler = |at: usize| format!("a.f{at}");
        if many {
            // Most of them go during the search, so that children move.
            (0..200).for_each(|at| assert!(catalog.insert(filler(at).as_bytes()).is_ok()));
        }
        for name in &stay {
            catalog.insert(name.as_bytes()).expect("a name");
        }
        let mut all = stay.clone();
        all.extend(changes.iter().map(|(_, name)| name.clone()));
        if many {
            all.extend((0..200).map(filler));
        }
        let mut search = Search::new(
            NameGlob::new(glob.as_bytes()).expect("a glob"),
            Wanted::Leaves,
            SearchLimits { results_max: 1000, steps_max: 100_000 },
        );
        let mut changes = changes.iter();
        let mut gone = 0;
        while search.step(&catalog, slice).expect("within limits") == Progress::More {
            if let Some((comes, name)) = changes.next() {
                if *comes {
                    catalog.insert(name.as_bytes()).expect("a name");
                } else if !stay.contains(name) {
                    catalog.remove(name.as_bytes());
                }
            }
            for _ in 0..7 {
                catalog.remove(filler(gone).as_bytes());
                gone += 1;
            }
        }
        catalog.check();
        let found = search.finish();
        let got: Vec<String> = found.by_path().iter().map(|node| text(node.path)).collect();
        let leaves = |names: &BTreeSet<String>| -> BTreeSet<String> {
            reference::find(names, &glob).into_iter().filter(|(_, kind)| kind.0).map(|(path, _)| path).collect()
        };
        let unique: BTreeSet<String> = got.iter().cloned().collect();
        prop_assert_eq!(unique.len(), got.len(), "each once");
        prop_assert!(unique.is_superset(&leaves(&stay)), "{:?} {:?}", unique, leaves(&stay));
        prop_assert!(unique.is_subset(&leaves(&all)));
    }
}
