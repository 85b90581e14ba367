use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::super::{Age, Expired, KeepKeys, age, expired_event};
use super::*;
use crate::collections::element::Element;

fn ratio(numerator: i64, denominator: i64) -> Number {
    Number::Ratio(Arc::new(num_rational::BigRational::new(numerator.into(), denominator.into())))
}

fn sweep(index: &mut Index, now: &Number) -> Vec<String> {
    let mut expired: Vec<Expired> = Vec::new();
    while !index.expire(now, 1, &mut expired) {}
    shown(&expired.into_iter().map(|expired| expired.event).collect::<Vec<_>>())
}

#[test]
fn age_follows_state_time_and_ttl() {
    let number = |number: Number| Value::Number(number);
    let (nil, double) = (Value::Nil, |value: f64| Value::Number(Number::Double(value)));
    let now = ratio(1_000_500, 1_000);
    let table: &[(&str, Value, Value, Number, Age)] = &[
        ("ok", int(940), nil.clone(), Number::Int(1_000), Age::Live),
        ("ok", int(940), nil.clone(), now.clone(), Age::Expired),
        ("ok", int(939), nil.clone(), Number::Int(1_000), Age::Expired),
        ("ok", int(990), number(Number::Float(10.5)), now.clone(), Age::Live),
        ("ok", int(990), number(Number::Float(10.25)), now.clone(), Age::Expired),
        ("ok", double(990.0), int(10), now.clone(), Age::Expired),
        ("ok", number(ratio(1_979, 2)), int(11), now.clone(), Age::Live),
        ("ok", int(0), double(f64::INFINITY), now.clone(), Age::Live),
        ("ok", int(0), double(f64::NAN), now.clone(), Age::Live),
        ("ok", double(f64::NAN), int(1), now.clone(), Age::Live),
        ("ok", int(i64::MIN), int(1), Number::Int(i64::MAX), Age::Expired),
        ("ok", nil.clone(), int(1), now.clone(), Age::Live),
        ("expired", nil.clone(), nil.clone(), now.clone(), Age::Expired),
        ("expired", int(1_000), int(99), now.clone(), Age::Expired),
        ("ok", int(1), text("60"), now.clone(), Age::Unknown),
        ("ok", int(1), text("infinity"), now.clone(), Age::Live),
        ("ok", int(1), Value::keyword("infinity"), now.clone(), Age::Live),
        ("ok", text("1"), nil, now, Age::Unknown),
    ];
    for (state, time, ttl, now, want) in table {
        let mut event = event("a", "s", 1);
        event.set(Field::State, text(state));
        event.set(Field::Time, time.clone());
        event.set(Field::Ttl, ttl.clone());
        assert_eq!(age(&event, now), *want, "{state} {time:?} {ttl:?} at {now:?}");
    }
}

#[test]
fn sweep_removes_expired_events_once_in_bounded_slices() {
    let mut events = vec![event("a", "s", 1), event("a", "t", 2), event("a", "u", 3), event("a", "v", 4)];
    events[1].set(Field::Ttl, int(10));
    events[2].set(Field::Ttl, Value::Number(Number::Double(f64::INFINITY)));
    events[3].set(Field::Ttl, text("soon"));
    let mut for_ever = event("a", "w", 5);
    for_ever.set(Field::Ttl, Value::keyword("infinity"));
    events.push(for_ever);
    let mut index = index_of(events);
    let mut expired = Vec::new();
    assert!(index.expire(&Number::Int(1_000), 1, &mut expired), "there is one to look at");
    assert_eq!((expired.len(), expired[0].age), (1, Age::Unknown));
    assert!(!index.expire(&ratio(10_100_001, 10_000), 0, &mut expired), "nothing was looked at");
    assert_eq!(sweep(&mut index, &Number::Int(1_010)), [""; 0]);
    assert_eq!(sweep(&mut index, &ratio(10_100_001, 10_000)), ["a/t 2"]);
    assert_eq!(sweep(&mut index, &Number::Int(1_060)), [""; 0]);
    assert_eq!(sweep(&mut index, &Number::Int(1_061)), ["a/s 1"]);
    assert_eq!(sweep(&mut index, &Number::Int(i64::MAX)), [""; 0]);
    assert_eq!(search(&index, "true"), ["a/u 3", "a/w 5"]);
}

#[test]
fn replaced_event_expires_at_its_own_deadline() {
    let mut index = index_of([event("a", "s", 1), event("b", "s", 1)]);
    let mut later = event("a", "s", 2);
    later.set(Field::Time, int(1_050));
    index.insert(Arc::new(later)).unwrap();
    let mut sooner = event("b", "s", 3);
    sooner.set(Field::Ttl, int(1));
    index.insert(Arc::new(sooner)).unwrap();
    assert_eq!(sweep(&mut index, &Number::Int(1_002)), ["b/s 3"]);
    assert_eq!(sweep(&mut index, &Number::Int(1_100)), [""; 0]);
    assert_eq!(sweep(&mut index, &Number::Int(1_111)), ["a/s 2"]);
}

#[test]
fn expired_event_has_the_fields_that_are_kept() {
    let mut event = event("a", "s", 7);
    event.set(Field::Description, text("why"));
    event.set_attribute("dc".into(), text("eu"));
    let now = Number::Int(2_000);
    let kept = |keep: &KeepKeys| {
        let expired = expired_event(&event, &now, keep);
        assert!(Value::equal(expired.get(Field::State), &text("expired")));
        assert!(Value::equal(expired.get(Field::Time), &int(2_000)));
        let names = ["host", "service", "metric", "description", "dc", "absent"];
        names.into_iter().filter(|name| expired.named(name).is_true()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(kept(&KeepKeys::default()), "host service");
    assert_eq!(kept(&KeepKeys::All), "host service metric description dc");
    let names = ["service", "dc", "absent", "time", "state"];
    assert_eq!(kept(&KeepKeys::Fields(names.map(Into::into).to_vec())), "service dc");
    assert_eq!(kept(&KeepKeys::Fields(Vec::new())), "");
}

/// Times and ttls of all kinds of numbers, in a small range so that many are equal.
fn number() -> impl Strategy<Value = Number> {
    prop_oneof![
        (0..40_i64).prop_map(Number::Int),
        (0..400_i64).prop_map(|tenths| ratio(tenths, 10)),
        (0..400_i64).prop_map(|tenths| Number::Double(tenths as f64 / 10.0)),
        (0..400_i64).prop_map(|tenths| Number::Float(tenths as f32 / 10.0)),
        Just(Number::Double(f64::NAN)),
        Just(Number::Double(f64::NEG_INFINITY)),
    ]
}

proptest! {
    #[test]
    fn sweeps_agree_with_a_check_of_all(
        steps in prop::collection::vec((0..12_i64, number(), number(), 0..3_usize, number()), 1..60),
    ) {
        let mut index = Index::new(LIMITS, 1);
        let mut all: BTreeMap<i64, Event> = BTreeMap::new();
        for (key, time, ttl, kind, now) in steps {
            let mut event = event("a", &key.to_string(), key);
            event.set(Field::Time, Value::Number(time));
            event.set(Field::Ttl, if kind == 0 { Value::Nil } else { Value::Number(ttl) });
            index.insert(Arc::new(event.clone())).unwrap();
            all.insert(key, event);
            if kind != 1 {
                continue;
            }
            let gone = |event: &Event| age(event, &now) != Age::Live;
            let want: Vec<Arc<Event>> = all.values().filter(|e| gone(e)).cloned().map(Arc::new).collect();
            all.retain(|_, event| !gone(event));
            prop_assert_eq!(sweep(&mut index, &now), shown(&want), "at {:?}", now);
            prop_assert_eq!(index.len(), all.len());
        }
    }
}
