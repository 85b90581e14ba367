//! Inserts: what is kept, replaced, removed or rejected, and the memory of it.

use std::sync::Arc;

use super::super::{Change, Index, Limits, Reject, same_fields};
use super::*;
use crate::collections::element::Element;
use crate::query::tag_texts;

#[test]
fn latest_event_of_a_key_is_kept_whatever_its_time() {
    let mut index = Index::new(LIMITS, 1);
    let first = event("a", "s", 1);
    assert!(matches!(index.insert(Arc::new(first)), Ok(Change::Added)));
    let mut older = event("a", "s", 2);
    older.set(Field::Time, int(5));
    let Ok(Change::Replaced(old)) = index.insert(Arc::new(older)) else { panic!("the key is known") };
    assert!(Value::equal(old.get(Field::Metric), &int(1)));
    assert!(Value::equal(index.lookup(&text("a"), &text("s")).unwrap().get(Field::Metric), &int(2)));
    assert_eq!(index.len(), 1);
}

#[test]
fn expired_event_removes_the_entry_of_its_key() {
    let mut index = index_of([event("a", "s", 1), event("a", "t", 2)]);
    let mut expired = event("a", "s", 9);
    expired.set(Field::State, text("expired"));
    let Ok(Change::Removed(old)) = index.insert(Arc::new(expired.clone())) else { panic!("it was there") };
    assert!(Value::equal(old.get(Field::Metric), &int(1)));
    assert!(matches!(index.insert(Arc::new(expired)), Ok(Change::Nothing)));
    assert_eq!(search(&index, "true"), ["a/t 2"]);
}

#[test]
fn parts_of_keys_are_nil_text_or_scalar() {
    let number = |number: Number| Value::Number(number);
    let parts = [
        Value::Nil,
        text(""),
        text("nil"),
        Value::Keyword("nil".into()),
        Value::Bool(false),
        Value::Char('a'),
        text("a"),
        int(1),
        number(Number::Double(1.0)),
        number(Number::Double(0.0)),
        number(Number::Big(Arc::new(num_bigint::BigInt::from(u64::MAX)))),
    ];
    let mut index = Index::new(LIMITS, 1);
    for (at, host) in parts.iter().enumerate() {
        for (other, service) in parts.iter().enumerate() {
            let mut event = event("", "", (100 * at + other) as i64);
            event.set(Field::Host, host.clone());
            event.set(Field::Service, service.clone());
            assert!(matches!(index.insert(Arc::new(event)), Ok(Change::Added)), "{host:?} {service:?}");
        }
    }
    for (at, host) in parts.iter().enumerate() {
        for (other, service) in parts.iter().enumerate() {
            let found = index.lookup(host, service).expect("it was inserted");
            assert!(Value::equal(found.get(Field::Metric), &int((100 * at + other) as i64)));
        }
    }
    // Equal for `=`, though written otherwise.
    let one = number(Number::Big(Arc::new(1.into())));
    assert!(index.lookup(&one, &number(Number::Double(-0.0))).is_some());
    assert!(index.lookup(&number(Number::Float(1.0)), &text("a")).is_some());
    assert_eq!(search(&index, "host = nil").len(), parts.len());
    assert_eq!(search(&index, "host = 1 and service = nil").len(), 1);
    for host in &parts {
        for service in &parts {
            assert!(index.delete(host, service).is_some());
            assert!(index.delete(host, service).is_none());
        }
    }
    assert!(index.is_empty() && index.memory_bytes() == 0);
}

#[test]
fn events_are_rejected_with_their_reason() {
    let mut index = Index::new(Limits { events_max: 2, ..LIMITS }, 1);
    let mut no_time = event("a", "s", 1);
    no_time.set(Field::Time, Value::Nil);
    let error = index.insert(Arc::new(no_time)).unwrap_err();
    assert_eq!((error, error.to_string().as_str()), (Reject::NoTime, "cannot index event with no time"));
    for bad in [tags(&["a"]), Value::Number(Number::Double(f64::NAN))] {
        let mut event = event("a", "s", 1);
        event.set(Field::Service, bad);
        assert_eq!(index.insert(Arc::new(event)).unwrap_err(), Reject::BadKey);
    }
    assert!(index.insert(Arc::new(event("a", "s", 1))).is_ok());
    assert!(index.insert(Arc::new(event("a", "t", 1))).is_ok());
    assert_eq!(index.insert(Arc::new(event("a", "u", 1))).unwrap_err(), Reject::TooManyEvents);
    assert!(index.insert(Arc::new(event("a", "t", 2))).is_ok(), "known keys are replaced in a full index");
    assert!(index.delete(&text("a"), &text("s")).is_some());
    assert!(index.insert(Arc::new(event("a", "u", 1))).is_ok(), "a removed event makes room");
}

#[test]
fn memory_is_limited_and_given_back() {
    let described = |service: &str, len: usize| {
        let mut event = event("a", service, 1);
        event.set(Field::Description, text(&"x".repeat(len)));
        event.set(Field::Tags, tags(&["one", service]));
        event.set_attribute("dc".into(), text("eu"));
        Arc::new(event)
    };
    let mut index = Index::new(Limits { bytes_max: 20_000, ..LIMITS }, 1);
    assert!(index.insert(described("s", 10_000)).is_ok());
    let one = index.memory_bytes();
    assert!((10_000..12_000).contains(&one), "{one}");
    assert_eq!(index.insert(described("t", 10_000)).unwrap_err(), Reject::TooManyBytes);
    assert_eq!(index.memory_bytes(), one, "a rejected event takes nothing");
    assert!(index.insert(described("t", 1_000)).is_ok());
    assert_eq!(index.insert(described("t", 10_000)).unwrap_err(), Reject::TooManyBytes);
    let kept = index.lookup(&text("a"), &text("t")).unwrap();
    assert!(
        Value::equal(kept.get(Field::Description), &text(&"x".repeat(1_000))),
        "the old event is still there"
    );
    let mut tagged = Event::clone(kept);
    tagged.set(Field::Tags, tags(&["y".repeat(10_000).as_str()]));
    assert_eq!(index.insert(Arc::new(tagged)).unwrap_err(), Reject::TooManyBytes, "tags count as well");
    assert!(index.insert(described("s", 10)).is_ok());
    assert!(index.insert(described("t", 10_000)).is_ok());
    index.delete(&text("a"), &text("s"));
    index.delete(&text("a"), &text("t"));
    assert_eq!(index.memory_bytes(), 0);
}

#[test]
fn equal_texts_and_tags_are_kept_once() {
    let mut tagged = event("a", "s", 1);
    tagged.set(Field::Tags, tags(&["x", "y"]));
    tagged.set(Field::Description, text("long"));
    tagged.set_attribute("dc".into(), text("eu"));
    let fresh = |metric: i64| {
        let mut event = event("a", "s", metric);
        event.set(Field::Tags, tags(&["x", "y"]));
        event.set(Field::Description, text("long"));
        event.set_attribute("dc".into(), text("eu"));
        event
    };
    let mut other = fresh(3);
    other.set(Field::Service, text("t"));
    let mut index = index_of([tagged, other]);
    let kept = Arc::clone(index.lookup(&text("a"), &text("s")).unwrap());
    let outside = Arc::new(fresh(2));
    index.insert(Arc::clone(&outside)).unwrap();
    assert!(tag_texts(outside.get(Field::Tags)).count() == 2, "the caller's event is not changed");
    let replaced = index.lookup(&text("a"), &text("s")).unwrap();
    assert!(Value::equal(&Value::Event(Arc::clone(replaced)), &Value::Event(outside)));
    let pointer = |value: &Value| match value {
        Value::Text(text) => text.as_ptr() as usize,
        Value::Vector(members) => Arc::as_ptr(members) as usize,
        _ => 0,
    };
    for field in [Field::Host, Field::Service, Field::State, Field::Description, Field::Tags] {
        assert_eq!(pointer(kept.get(field)), pointer(replaced.get(field)), "{field:?}");
    }
    assert_eq!(pointer(kept.named("dc")), pointer(replaced.named("dc")));
    let other = index.lookup(&text("a"), &text("t")).unwrap();
    for field in [Field::Host, Field::State, Field::Tags] {
        assert_eq!(pointer(kept.get(field)), pointer(other.get(field)), "{field:?} of another key");
    }
}

#[test]
fn lists_and_vectors_of_the_same_tags_may_follow_each_other() {
    let with = |value: &Value, state: &str, metric: i64| {
        let mut event = event("a", "s", metric);
        event.set(Field::Tags, value.clone());
        event.set(Field::State, text(state));
        event
    };
    let (vector, list) = (tags(&["x"]), Value::list([text("x")]));
    let sorts = [vector, list, tags(&["y"]), Value::Nil];
    for first in &sorts {
        for second in &sorts {
            for third in &sorts {
                let mut index =
                    index_of([with(first, "ok", 1), with(second, "bad", 2), with(third, "ok", 3)]);
                let kept = index.lookup(&text("a"), &text("s")).unwrap();
                assert!(Value::equal(kept.get(Field::Tags), third));
                index.insert(Arc::new(with(third, "expired", 4))).unwrap();
                assert_eq!(index.len(), 0);
            }
        }
    }
}

#[test]
fn deletes_are_exact_or_by_fields() {
    let mut index = index_of([event("a", "s", 1), event("a", "t", 2), event("b", "s", 3)]);
    assert!(index.delete_exactly(&Arc::new(event("a", "s", 9))).is_none(), "it has changed");
    assert!(index.delete_exactly(&Arc::new(event("a", "s", 1))).is_some());
    let by_state = same_fields(&["host".into(), "state".into()], &event("a", "x", 0));
    assert_eq!(by_state.to_string(), "(and (= :host \"a\") (= :state \"ok\"))");
    let mut removed = Vec::new();
    let mut search = Search::new(&Arc::new(Query::of(by_state).unwrap()), &index, SEARCH);
    assert_eq!(search.delete(&mut index, u64::MAX, &mut removed), Progress::Done);
    assert_eq!(shown(&removed), ["a/t 2"]);
    assert_eq!(super::search(&index, "true"), ["b/s 3"]);
    index.clear();
    assert!(index.is_empty() && super::search(&index, "true").is_empty());
}
