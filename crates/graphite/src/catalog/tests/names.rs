//! Names that come, go and are renamed, against a plain map; limits; memory.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[test]
fn names_are_inserted_found_renamed_and_removed() {
    let mut catalog = Catalog::new(limits(), SEED);
    let id = catalog.insert(b"a.b").expect("a name").id();
    assert_eq!(catalog.insert(b"a.b"), Ok(Inserted::Known(id)));
    let tagged = catalog.insert(b"m;y=2;x=1").expect("a name").id();
    assert_eq!(catalog.insert(br#"m{x="1",y="2"}"#), Ok(Inserted::Known(tagged)));
    assert_eq!(
        (catalog.find(b"a.b"), catalog.find(b"a"), catalog.find(b"m;x=1;y=2")),
        (Some(id), None, Some(tagged))
    );
    let mut name = Vec::new();
    assert!(catalog.name(tagged, &mut name) && !catalog.name(SeriesId(99), &mut name));
    assert_eq!(text(&name), "m;x=1;y=2");
    assert_eq!(
        (catalog.len(), catalog.tagged(), catalog.next(0), catalog.next(1), catalog.next(2)),
        (2, 1, Some(id), Some(tagged), None)
    );
    assert_eq!(catalog.rename(b"a.b", b"a.b"), Ok(id));
    assert_eq!(catalog.rename(b"a.b", b"m;x=1;y=2"), Err(Refused::Exists(tagged)));
    assert_eq!(catalog.rename(b"a", b"b"), Err(Refused::Unknown));
    assert_eq!(catalog.rename(b"a.b", b"a..b"), Err(Refused::Name(BadName::EmptyComponent)));
    assert_eq!(catalog.rename(b"a.b", b"a.b.c"), Ok(id));
    assert_eq!((catalog.find(b"a.b"), catalog.find(b"a.b.c")), (None, Some(id)));
    assert_eq!(catalog.rename(b"a.b.c", b"n;t=v"), Ok(id));
    assert_eq!((catalog.remove(b"n;t=v"), catalog.remove(b"n;t=v")), (Some(id), None));
    assert!(catalog.remove_id(tagged) && catalog.is_empty());
    catalog.check();
}

#[test]
fn a_catalog_refuses_names_above_its_limits() {
    let mut catalog = Catalog::new(CatalogLimits { names_max: 2, ..limits() }, SEED);
    catalog.insert(b"a").expect("below the limit");
    catalog.insert(b"b").expect("at the limit");
    assert_eq!(catalog.insert(b"c"), Err(Refused::TooManyNames { names_max: 2 }));
    assert_eq!(catalog.insert(b"a").map(Inserted::id), Ok(SeriesId(0)), "a known name needs no room");
    assert_eq!(catalog.rename(b"a", b"c"), Ok(SeriesId(0)), "a renamed series takes its own room");
    catalog.remove(b"b");
    catalog.insert(b"d").expect("there is room again");
    catalog.check();

    const BYTES_MAX: usize = 2 << 20;
    let mut catalog = Catalog::new(CatalogLimits { bytes_max: BYTES_MAX, ..limits() }, SEED);
    let mut count = 0;
    let refused = loop {
        match catalog.insert(format!("some.name{count}.{count};host=h{count}").as_bytes()) {
            Ok(_) => count += 1,
            Err(refused) => break refused,
        }
        assert!(catalog.memory_bytes() < BYTES_MAX + (512 << 10), "{}", catalog.memory_bytes());
    };
    assert_eq!(refused, Refused::TooManyBytes { bytes_max: BYTES_MAX });
    assert!(count > 5_000 && refused.to_string().contains("limit"), "{count}");
}

#[test]
fn memory_is_given_back_while_names_come_and_go() {
    let mut catalog = Catalog::new(limits(), SEED);
    let name = |round: u32| match round % 3 {
        0 => format!("servers.web{}.metric{round}", round / 50),
        1 => format!("pods.pod{round}.cpu"),
        _ => format!("requests;pod=p{round};zone=z{}", round % 3),
    };
    let mut most = 0;
    for round in 0..12_000 {
        catalog.insert(name(round).as_bytes()).expect("a name");
        if round >= 2_000 {
            assert!(catalog.remove(name(round - 2_000).as_bytes()).is_some());
        }
        most = most.max(catalog.memory_bytes());
    }
    assert_eq!(catalog.len(), 2_000);
    assert!(most < 3 << 20, "{most} bytes");
    catalog.check();
}

/// The normal form of a name has itself as its normal form, or the name is refused.
#[test]
fn names_whose_normal_form_would_be_another_name_are_refused() {
    let table: [(&str, Result<&str, BadName>); 6] = [
        ("a{;c=\"};b=1", Err(BadName::Tag)),
        ("a{\"};name=x", Err(BadName::Tag)),
        ("m{a=\"{\\\"}\"}", Err(BadName::Tag)),
        ("a..b;name=x", Err(BadName::EmptyComponent)),
        ("a.b;name=x", Ok("a.b")),
        ("a{;c=\"};d=1", Ok("a{;c=\"};d=1")),
    ];
    for (name, want) in table {
        let normal = normal_name(name.as_bytes());
        assert_eq!(normal, want.map(|want| want.as_bytes().to_vec()), "{name}");
        if let Ok(normal) = normal {
            assert_eq!(normal_name(&normal).as_deref(), Ok(&*normal), "{name}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn a_catalog_is_a_map_of_names(
        steps in prop::collection::vec((0u8..4, "[ab](\\.[ab]{1,2}){0,3}|[ab];[xy]=[12](;z=[12])?", "[ab](\\.[ab]){0,3}|a;x=[1-4]"), 0..150),
    ) {
        let mut catalog = Catalog::new(limits(), SEED);
        let mut model: BTreeMap<String, SeriesId> = BTreeMap::new();
        for (kind, name, other) in steps {
            match kind {
                0 | 1 => {
                    let inserted = catalog.insert(name.as_bytes()).expect("a name");
                    match model.get(&name) {
                        Some(id) => prop_assert_eq!(inserted, Inserted::Known(*id)),
                        None => {
                            prop_assert!(matches!(inserted, Inserted::New(_)));
                            prop_assert!(model.values().all(|id| *id != inserted.id()));
                            model.insert(name, inserted.id());
                        }
                    }
                }
                2 => prop_assert_eq!(catalog.remove(name.as_bytes()), model.remove(&name)),
                _ => {
                    let renamed = catalog.rename(name.as_bytes(), other.as_bytes());
                    if let Ok(id) = renamed {
                        prop_assert_eq!(model.remove(&name), Some(id));
                        prop_assert_eq!(model.insert(other, id), None);
                    } else {
                        prop_assert!(!model.contains_key(&name) || model.contains_key(&other));
                    }
                }
            }
            prop_assert_eq!(catalog.len() as usize, model.len());
        }
        catalog.check();
        for (name, id) in &model {
            prop_assert_eq!(catalog.find(name.as_bytes()), Some(*id));
        }
        let tagged = model.keys().filter(|name| name.contains(';')).count();
        prop_assert_eq!(catalog.tagged() as usize, tagged);
        for name in model.keys() {
            catalog.remove(name.as_bytes());
        }
        catalog.check();
        prop_assert!(catalog.is_empty());
    }

    #[test]
    fn any_bytes_are_a_name_or_are_refused(names in prop::collection::vec(
        prop::collection::vec(prop_oneof![Just(b';'), Just(b'='), Just(b'.'), Just(b'{'), Just(b'"'), Just(b'}'), Just(b'~'),
            Just(b'\\'), any::<u8>()], 0..30), 0..20)) {
        let mut catalog = Catalog::new(limits(), SEED);
        for name in names {
            if let Ok(inserted) = catalog.insert(&name) {
                let mut normal = Vec::new();
                prop_assert!(catalog.name(inserted.id(), &mut normal));
                prop_assert_eq!(normal_name(&name), Ok(normal.clone()));
                prop_assert_eq!(normal_name(&normal), Ok(normal));
            }
        }
        catalog.check();
    }
}
