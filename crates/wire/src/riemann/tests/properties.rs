//! For any events: what is encoded is decoded; for any bytes: both decoders agree.

use model::{EventTime, EventsBuilder, NumberRef, TextField};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use prost::Message as _;

use super::{RECEIVED, decoded, fits};
use crate::riemann::json::{self, Absent, JsonLine, JsonOptions, JsonTimes};
use crate::riemann::reference::{Attribute, Event, Msg, Query, State};
use crate::riemann::{reference, request};

/// Texts that are keys of standard fields, empty, long, or not UTF-8.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => "[a-c/. ]{0,3}".prop_map(String::into_bytes),
        2 => prop_oneof![Just("host"), Just("state"), Just("service"), Just("description"), Just("tags"), Just("time"), Just("ttl"), Just("metric")]
            .prop_map(|key| key.as_bytes().to_vec()),
        1 => "\\PC{0,200}".prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..6),
    ]
}

fn attributes() -> impl Strategy<Value = Attribute> {
    // Without a key it is undecodable, which should be rare.
    (option::weighted(0.99, bytes()), option::of(bytes())).prop_map(|(key, value)| Attribute { key, value })
}

fn events() -> impl Strategy<Value = Event> {
    let texts = (option::of(bytes()), option::of(bytes()), option::of(bytes()), option::of(bytes()));
    let numbers = (option::of(any::<i64>()), option::of(any::<i64>()), option::of(any::<f32>()));
    let metrics = (option::of(any::<i64>()), option::of(any::<f64>()), option::of(any::<f32>()));
    (texts, numbers, metrics, vec(bytes(), 0..4), vec(attributes(), 0..4)).prop_map(
        |((host, service, state, description), (time, time_micros, ttl), metrics, tags, attributes)| Event {
            time,
            state,
            service,
            host,
            description,
            tags,
            ttl,
            attributes,
            time_micros,
            metric_sint64: metrics.0,
            metric_d: metrics.1,
            metric_f: metrics.2,
        },
    )
}

fn messages() -> impl Strategy<Value = Msg> {
    let query = option::of(option::of(bytes()).prop_map(|string| Query { string }));
    let states = vec(Just(State {}), 0..2);
    (option::of(any::<bool>()), option::of(bytes()), states, query, vec(events(), 0..4))
        .prop_map(|(ok, error, states, query, events)| Msg { ok, error, states, query, events })
}

/// An event that JSON can have: no NaN in other bits, no number of single precision.
fn write(number: usize, texts: &[String], metric: Option<Result<i64, f64>>, into: &mut EventsBuilder) {
    let mut event = into.event();
    event.text(TextField::Host, &texts[0]);
    event.text(TextField::State, &texts[1]);
    if let Some(metric) = metric {
        event.metric(metric.map_or_else(NumberRef::F64, NumberRef::I64));
    }
    event.ttl_s(number as f32 / 4.0);
    event.time(EventTime::Seconds(number as i64 * 1_000_003));
    event.no_tags();
    fits(event.tag(&texts[2]));
    fits(event.begin_map(&format!("x{}", texts[3])));
    // Another key than the list's: of equal ones only the last is written.
    fits(event.text_attribute(&format!("x{}", texts[0]), &texts[1]));
    fits(event.begin_list("y"));
    fits(event.text_attribute("", &texts[3]));
    event.end();
    event.end();
    event.finish();
}

/// A number as it is sent: those of single precision are sent in double precision too.
fn in_double(number: NumberRef<'_>) -> NumberRef<'_> {
    match number {
        NumberRef::F32(number) => NumberRef::F64(number.into()),
        other => other,
    }
}

proptest! {
    #[test]
    fn both_decoders_agree_on_messages(message in messages(), again in messages()) {
        let bytes = message.encode_to_vec();
        reference::compare(&bytes);
        // Two messages in a row are their merged message.
        reference::compare(&[bytes, again.encode_to_vec()].concat());
    }

    #[test]
    fn both_decoders_agree_on_mutated_messages(
        message in messages(),
        mutations in vec((any::<prop::sample::Index>(), any::<u8>(), 0..3), 1..6),
    ) {
        let mut bytes = message.encode_to_vec();
        for (place, byte, kind) in mutations {
            let at = place.index(bytes.len() + 1);
            match kind {
                0 if at < bytes.len() => bytes[at] = byte,
                1 if at < bytes.len() => drop(bytes.remove(at)),
                _ => bytes.insert(at, byte),
            }
        }
        reference::compare(&bytes);
    }

    #[test]
    fn both_decoders_agree_on_any_bytes(bytes in vec(any::<u8>(), 0..40)) {
        reference::compare(&bytes);
    }

    #[test]
    fn decoded_events_are_encoded_and_decoded_to_the_same(message in messages()) {
        let bytes = message.encode_to_vec();
        let (batch, result) = decoded(&bytes);
        prop_assume!(result.is_ok());
        let mut first = Vec::new();
        request(Some("q"), batch.view().iter(), &mut first);
        reference::compare(&first);
        let (again, result) = decoded(&first);
        prop_assert_eq!(result.map(|message| (message.events, message.query)), Ok((batch.len(), Some("q".into()))));
        for (one, other) in batch.view().iter().zip(again.view().iter()) {
            for field in [TextField::Host, TextField::Service, TextField::State, TextField::Description] {
                prop_assert_eq!(one.text(field), other.text(field));
            }
            prop_assert_eq!(one.ttl_s().map(f32::to_bits), other.ttl_s().map(f32::to_bits));
            prop_assert_eq!(one.tags().map(Iterator::collect::<Vec<_>>), other.tags().map(Iterator::collect::<Vec<_>>));
            for (key, _) in one.attributes() {
                prop_assert_eq!(one.attribute(key), other.attribute(key));
            }
            let is_nan = |number: Option<NumberRef<'_>>| matches!(number, Some(NumberRef::F64(number)) if number.is_nan());
            let (one_metric, other_metric) = (one.metric().map(in_double), other.metric());
            prop_assert!(one_metric == other_metric || is_nan(one_metric) && is_nan(other_metric));
        }
        // What was encoded once is encoded the same again, times included.
        let mut second = Vec::new();
        request(Some("q"), again.view().iter(), &mut second);
        prop_assert_eq!(first, second);
    }

    #[test]
    fn json_events_are_read_as_they_were_written(
        number in 0_usize..10_000,
        texts in vec("[ -~\\n\\u{0}\\u{7f}é😀]{0,8}", 4),
        metric in option::of(prop_oneof![any::<i64>().prop_map(Ok), any::<f64>().prop_filter("NaN", |x| !x.is_nan()).prop_map(Err)]),
    ) {
        let mut batch = EventsBuilder::default();
        write(number, &texts, metric, &mut batch);
        let event = batch.view().iter().next().expect("one event");
        for absent in [Absent::Null, Absent::Omitted] {
            let mut line = Vec::new();
            json::encode(event, absent, &mut line);
            let mut again = EventsBuilder::default();
            let options = JsonOptions { bytes_max: line.len(), times: JsonTimes::Micros };
            let result = json::decode(&line, RECEIVED, options, &mut again);
            prop_assert_eq!(result, Ok(JsonLine::Event), "{}", String::from_utf8_lossy(&line));
            prop_assert_eq!(again.view().iter().next(), Some(event), "{}", String::from_utf8_lossy(&line));
        }
    }

    #[test]
    fn any_text_is_an_event_or_is_rejected_without_a_trace(
        line in "[\\[\\]{}:,\"\\\\ua0-9.eE+ntrue]{0,40}|\\{\"(host|tags|time|ttl|metric|k)\":[\\[\\]{}:,\"\\\\ua0-9.eE+ntrue]{0,20}\\}",
    ) {
        let mut batch = EventsBuilder::default();
        let options = JsonOptions { bytes_max: 1000, times: JsonTimes::Seconds };
        let result = json::decode(line.as_bytes(), RECEIVED, options, &mut batch);
        prop_assert_eq!(batch.len(), usize::from(result == Ok(JsonLine::Event)));
        prop_assert!(result == Ok(JsonLine::Event) || batch == EventsBuilder::default());
    }
}
