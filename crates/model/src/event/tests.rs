//! What is written is what is read, copies are equal, and each limit.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::limits::{EVENT_ENTRIES_MAX, EVENT_NESTING_MAX, EVENT_TAGS_MAX};

const FIELDS: [TextField; 4] =
    [TextField::Host, TextField::Service, TextField::State, TextField::Description];

/// A value with memory of its own.
#[derive(Clone, Debug)]
enum OwnValue {
    Nil,
    Bool(bool),
    Number(OwnNumber),
    Text(String),
    Keyword(String),
    List(Vec<OwnValue>),
    Map(Vec<(String, OwnValue)>),
}

#[derive(Clone, Debug)]
enum OwnNumber {
    Plain(NumberRef<'static>),
    BigInteger(String),
}

#[derive(Clone, Debug)]
struct OwnEvent {
    texts: [Option<String>; 4],
    metric: Option<OwnNumber>,
    time: Option<EventTime>,
    ttl_s: Option<f32>,
    tags: Option<Vec<String>>,
    attributes: Vec<(String, OwnValue)>,
}

impl OwnNumber {
    fn number(&self) -> NumberRef<'_> {
        match self {
            OwnNumber::Plain(number) => *number,
            OwnNumber::BigInteger(digits) => NumberRef::BigInteger(digits),
        }
    }
}

fn write_value(key: &str, value: &OwnValue, event: &mut EventWriter<'_>) -> Result<(), EventLimit> {
    match value {
        OwnValue::Nil => event.attribute(key, ValueRef::Nil),
        OwnValue::Bool(is_true) => event.attribute(key, ValueRef::Bool(*is_true)),
        OwnValue::Number(number) => event.attribute(key, ValueRef::Number(number.number())),
        OwnValue::Text(text) => event.attribute(key, ValueRef::Text(text)),
        OwnValue::Keyword(name) => event.attribute(key, ValueRef::Keyword(name)),
        OwnValue::List(items) => {
            event.begin_list(key)?;
            items.iter().try_for_each(|item| write_value("", item, event))?;
            event.end();
            Ok(())
        }
        OwnValue::Map(entries) => {
            event.begin_map(key)?;
            entries.iter().try_for_each(|(key, value)| write_value(key, value, event))?;
            event.end();
            Ok(())
        }
    }
}

fn write(own: &OwnEvent, into: &mut EventsBuilder) -> Result<(), EventLimit> {
    let mut event = into.event();
    for (field, text) in FIELDS.into_iter().zip(&own.texts) {
        text.iter().for_each(|text| event.text(field, text));
    }
    own.metric.iter().for_each(|metric| event.metric(metric.number()));
    own.time.iter().for_each(|time| event.time(*time));
    own.ttl_s.iter().for_each(|ttl_s| event.ttl_s(*ttl_s));
    if let Some(tags) = &own.tags {
        event.no_tags();
        tags.iter().try_for_each(|tag| event.tag(tag))?;
    }
    own.attributes.iter().try_for_each(|(key, value)| write_value(key, value, &mut event))?;
    event.finish();
    Ok(())
}

fn is_value(read: &ValueRef<'_>, own: &OwnValue) -> bool {
    match (read, own) {
        (ValueRef::Nil, OwnValue::Nil) => true,
        (ValueRef::Bool(read), OwnValue::Bool(own)) => read == own,
        (ValueRef::Number(read), OwnValue::Number(own)) => *read == own.number(),
        (ValueRef::Text(read), OwnValue::Text(own)) => read == own,
        (ValueRef::Keyword(read), OwnValue::Keyword(own)) => read == own,
        (ValueRef::List(read), OwnValue::List(own)) => {
            read.clone().count() == own.len() && read.clone().zip(own).all(|(read, own)| is_value(&read, own))
        }
        (ValueRef::Map(read), OwnValue::Map(own)) => are_entries(read, own),
        _ => false,
    }
}

fn are_entries(read: &Entries<'_>, own: &[(String, OwnValue)]) -> bool {
    read.clone().count() == own.len()
        && read.clone().zip(own).all(|((key, read), (own_key, own))| key == own_key && is_value(&read, own))
}

fn assert_is(read: EventRef<'_>, own: &OwnEvent) {
    for (field, text) in FIELDS.into_iter().zip(&own.texts) {
        assert_eq!(read.text(field), text.as_deref(), "{field:?}");
    }
    assert_eq!(read.metric(), own.metric.as_ref().map(OwnNumber::number));
    assert_eq!(read.time(), own.time);
    assert_eq!(read.ttl_s().map(f32::to_bits), own.ttl_s.map(f32::to_bits));
    let tags = own.tags.as_ref().map(|tags| tags.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(read.tags().map(Iterator::collect), tags);
    assert!(are_entries(&read.attributes(), &own.attributes), "{read:?} {own:?}");
}

fn numbers() -> impl Strategy<Value = OwnNumber> {
    let ratios = (any::<i64>(), any::<i64>()).prop_filter_map("no quotient", |(a, b)| Ratio::of(a, b));
    prop_oneof![
        any::<i64>().prop_map(|number| OwnNumber::Plain(NumberRef::I64(number))),
        any::<u64>().prop_map(|bits| OwnNumber::Plain(NumberRef::F64(f64::from_bits(bits)))),
        any::<u32>().prop_map(|bits| OwnNumber::Plain(NumberRef::F32(f32::from_bits(bits)))),
        ratios.prop_map(OwnNumber::Plain),
        "-?[1-9][0-9]{19,40}".prop_map(OwnNumber::BigInteger),
    ]
}

fn values() -> impl Strategy<Value = OwnValue> {
    let leaf = prop_oneof![
        Just(OwnValue::Nil),
        any::<bool>().prop_map(OwnValue::Bool),
        numbers().prop_map(OwnValue::Number),
        ".{0,6}".prop_map(OwnValue::Text),
        "[a-z]{1,4}".prop_map(OwnValue::Keyword),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(OwnValue::List),
            vec((".{0,4}", inner), 0..4).prop_map(OwnValue::Map),
        ]
    })
}

fn events() -> impl Strategy<Value = OwnEvent> {
    let text = || option::of(".{0,8}");
    let time =
        prop_oneof![any::<i64>().prop_map(EventTime::Seconds), any::<i64>().prop_map(EventTime::Micros),];
    let ttl_s = any::<u32>().prop_map(f32::from_bits);
    let numbers = (option::of(numbers()), option::of(time), option::of(ttl_s));
    let tags = option::of(vec(".{0,4}", 0..4));
    ([text(), text(), text(), text()], numbers, tags, vec((".{0,4}", values()), 0..5)).prop_map(
        |(texts, (metric, time, ttl_s), tags, attributes)| OwnEvent {
            texts,
            metric,
            time,
            ttl_s,
            tags,
            attributes,
        },
    )
}

proptest! {
    #[test]
    fn events_are_read_as_they_were_written_and_copied(own in vec(events(), 1..4)) {
        let mut first = EventsBuilder::default();
        for own in &own {
            write(own, &mut first).unwrap();
        }
        let batch = first.batch().into_owned();
        let mut copy = EventsBuilder::default();
        // Another place in the arena: no span of a copy is that of its original.
        copy.push(batch.view().iter().last().unwrap()).unwrap();
        batch.view().iter().for_each(|event| copy.push(event).unwrap());
        let all = || first.view().iter().zip(batch.view().iter()).zip(copy.view().iter().skip(1));
        prop_assert_eq!(all().count(), own.len());
        for (((read, owned), copied), own) in all().zip(&own) {
            assert_is(read, own);
            assert_is(copied, own);
            prop_assert!(read == owned && read == copied);
        }
    }
}

#[test]
fn absent_fields_differ_from_empty_ones() {
    let mut events = EventsBuilder::default();
    events.event().finish();
    for field in FIELDS {
        let mut event = events.event();
        event.text(field, "");
        event.finish();
    }
    let mut event = events.event();
    event.no_tags();
    event.finish();
    let mut event = events.event();
    event.time(EventTime::Seconds(0));
    event.finish();
    let mut event = events.event();
    event.time(EventTime::Micros(0));
    event.finish();
    let mut event = events.event();
    event.attribute("", ValueRef::Nil).unwrap();
    event.finish();
    for (at, one) in events.view().iter().enumerate() {
        for (other_at, other) in events.view().iter().enumerate() {
            assert_eq!(one == other, at == other_at, "{one:?} {other:?}");
        }
    }
}

#[test]
fn numbers_are_equal_when_type_and_bits_are() {
    let numbers = [
        NumberRef::I64(1),
        NumberRef::F64(1.0),
        NumberRef::F32(1.0),
        NumberRef::I64(0),
        NumberRef::F64(0.0),
        NumberRef::F64(-0.0),
        NumberRef::F64(f64::NAN),
        Ratio::of(1, 2).unwrap(),
        Ratio::of(1, 3).unwrap(),
        NumberRef::BigInteger("18446744073709551616"),
        NumberRef::BigInteger("-18446744073709551616"),
    ];
    for (at, one) in numbers.iter().enumerate() {
        for (other_at, other) in numbers.iter().enumerate() {
            assert_eq!(one == other, at == other_at, "{one:?} {other:?}");
        }
    }
}

#[test]
fn quotients_are_in_lowest_terms() {
    let table = [
        ((9, 2), Some("9/2")),
        ((-6, 4), Some("-3/2")),
        ((6, -4), Some("-3/2")),
        ((6, 3), Some("2")),
        ((0, -7), Some("0")),
        ((1, 0), None),
        ((i64::MIN, -1), None),
        ((1, i64::MIN), None),
        ((i64::MIN, i64::MIN), Some("1")),
        ((i64::MIN, 3), Some("-9223372036854775808/3")),
    ];
    for ((numerator, denominator), want) in table {
        let text = Ratio::of(numerator, denominator).map(|number| match number {
            NumberRef::Ratio(ratio) => format!("{}/{}", ratio.numerator(), ratio.denominator()),
            NumberRef::I64(number) => number.to_string(),
            other => panic!("{other:?}"),
        });
        assert_eq!(text.as_deref(), want, "{numerator} / {denominator}");
    }
}

#[test]
fn the_last_attribute_of_a_key_counts() {
    let mut events = EventsBuilder::default();
    let mut event = events.event();
    event.begin_map("k").unwrap();
    event.text_attribute("inner", "0").unwrap();
    event.end();
    event.text_attribute("k", "1").unwrap();
    event.text_attribute("k", "2").unwrap();
    event.finish();
    let event = events.view().iter().next().unwrap();
    assert_eq!(event.text_attribute("k"), Some("2"));
    assert_eq!(event.attribute("inner"), None, "it is an entry of the map");
}

#[test]
fn events_are_stored_up_to_each_limit_and_leave_nothing_past_it() {
    let tags = |count: usize| move |event: &mut EventWriter<'_>| (0..count).try_for_each(|_| event.tag("t"));
    let entries = |count: usize| {
        move |event: &mut EventWriter<'_>| {
            event.begin_list("k")?;
            (1..count).try_for_each(|_| event.attribute("", ValueRef::Text("v")))?;
            event.end();
            Ok(())
        }
    };
    let nested = |depth: usize| {
        move |event: &mut EventWriter<'_>| {
            (0..depth).try_for_each(|_| event.begin_map("k"))?;
            event.attribute("k", ValueRef::Number(NumberRef::BigInteger("18446744073709551616")))?;
            (0..depth).for_each(|_| event.end());
            Ok(())
        }
    };
    type Fill = Box<dyn Fn(&mut EventWriter<'_>) -> Result<(), EventLimit>>;
    let table: [(Fill, Fill, EventLimit); 3] = [
        (Box::new(tags(EVENT_TAGS_MAX)), Box::new(tags(EVENT_TAGS_MAX + 1)), EventLimit::Tags),
        (Box::new(entries(EVENT_ENTRIES_MAX)), Box::new(entries(EVENT_ENTRIES_MAX + 1)), EventLimit::Entries),
        (Box::new(nested(EVENT_NESTING_MAX)), Box::new(nested(EVENT_NESTING_MAX + 1)), EventLimit::Nesting),
    ];
    for (at_limit, past_limit, limit) in table {
        let mut events = EventsBuilder::default();
        let mut event = events.event();
        event.text(TextField::Service, "before");
        event.finish();
        let mut event = events.event();
        assert_eq!(at_limit(&mut event), Ok(()));
        event.finish();
        let before = events.clone();
        let mut event = events.event();
        event.metric(Ratio::of(1, 2).unwrap());
        assert_eq!(past_limit(&mut event), Err(limit));
        drop(event);
        assert_eq!(events, before);
        let mut copy = EventsBuilder::default();
        events.view().iter().for_each(|event| copy.push(event).unwrap());
        assert!(copy.view().iter().eq(events.view().iter()), "a copy has the same limits");
        events.clear();
        assert_eq!(events, EventsBuilder::default());
    }
}

#[test]
fn events_that_are_skipped_leave_the_others_as_they_are() {
    let mut builder = EventsBuilder::default();
    for host in ["a", "b", "c"] {
        let mut event = builder.event();
        event.text(TextField::Host, host);
        event.finish();
    }
    let hosts = |events: &Events<'_>| {
        let hosts = events.view().iter().map(|event| event.text(TextField::Host).unwrap_or("").to_owned());
        hosts.collect::<Vec<_>>()
    };
    for mut events in [builder.batch(), builder.batch().into_owned()] {
        events.skip(0);
        assert_eq!(hosts(&events), ["a", "b", "c"]);
        events.skip(2);
        assert_eq!(hosts(&events), ["c"]);
        events.skip(1);
        assert_eq!(hosts(&events), [""; 0]);
    }
}

#[test]
fn a_batch_is_truncated_to_an_earlier_end() {
    let mut batch = EventsBuilder::default();
    let add = |host: &str, batch: &mut EventsBuilder| {
        let mut event = batch.event();
        event.plain_text(TextField::Host, host);
        event.plain_tag("tag").expect("one tag");
        event.plain_attribute("key", host).expect("one attribute");
        event.metric(Ratio::of(1, 3).expect("it is small"));
        event.finish();
    };
    add("first", &mut batch);
    let (end, before) = (batch.end(), batch.clone());
    add("second", &mut batch);
    assert_eq!((batch.len(), batch.text_bytes()), (2, 5 + 3 + 5 + 3 + 6 + 3 + 6 + 3));
    batch.truncate(end);
    assert_eq!(batch, before);
    assert_eq!(batch.view().iter().next().and_then(EventRef::host), Some("first"));
    batch.clear();
    batch.truncate(end);
    assert!(batch.is_empty(), "a cleared batch stays empty");
}
