//! Recorded events, as files and as subscribers have them.

use model::event::attribute;
use model::{EventLimit, EventTime, EventWriter, EventsBuilder, NumberRef, TextField, ValueRef};
use proptest::prelude::*;

use super::{fits, one};
use crate::report::event_json_line;
use crate::riemann::json::{Absent, JsonLine, JsonReject, decode_recorded, encode};

const BYTES_MAX: usize = 1 << 20;
const NO_TIME: EventTime = EventTime::Micros(i64::MIN);

fn read(line: &[u8]) -> Result<EventsBuilder, JsonReject> {
    let mut batch = EventsBuilder::default();
    decode_recorded(line, BYTES_MAX, NO_TIME, &mut batch).map(|_| batch)
}

fn file_line(batch: &EventsBuilder) -> Vec<u8> {
    let mut line = Vec::new();
    batch.view().iter().for_each(|event| event_json_line(event, &mut line));
    line
}

/// All that an event of DogStatsD or of Riemann's clients can have.
fn full(event: &mut EventWriter<'_>) -> Result<(), EventLimit> {
    event.plain_text(TextField::Host, "web1");
    event.plain_text(TextField::Service, "cpu \"a\"");
    event.plain_text(TextField::State, "ok");
    event.plain_text(TextField::Description, "two\nlines");
    event.metric(NumberRef::F32(0.1));
    event.ttl_s(60.5);
    event.tag("t")?;
    event.text_attribute(attribute::KIND, attribute::EVENT)?;
    event.text_attribute(attribute::ALERT_TYPE, "error")?;
    event.text_attribute(attribute::SOURCE_TYPE_NAME, "nagios")?;
    event.text_attribute(attribute::CONTAINER_ID, "c")?;
    event.text_attribute(attribute::PRIORITY, "low")?;
    event.text_attribute(attribute::AGGREGATION_KEY, "k")?;
    event.text_attribute("region", "eu")?;
    event.text_attribute("alert", "of a client")?;
    event.begin_map("attributes")?;
    event.attribute("n", ValueRef::Number(NumberRef::I64(1)))?;
    event.end();
    event.attribute("no", ValueRef::Bool(false))
}

#[test]
fn events_of_an_event_file_are_read_as_they_were_written() {
    for time in
        [EventTime::Seconds(1_700_000_000), EventTime::Micros(1_700_000_000_123_456), EventTime::Seconds(-5)]
    {
        let batch = one(|event| {
            event.time(time);
            fits(full(event));
        });
        let again = read(&file_line(&batch)).expect("it is one");
        let (view, want) = (again.view(), batch.view());
        let (event, want) = (view.iter().next().expect("one"), want.iter().next().expect("one"));
        assert_eq!((event.time(), event.host(), event.state()), (want.time(), want.host(), want.state()));
        assert_eq!(event.ttl_s(), want.ttl_s());
        for key in ["region", "alert", attribute::ALERT_TYPE, attribute::KIND, attribute::CONTAINER_ID] {
            assert_eq!(event.text_attribute(key), want.text_attribute(key), "{key}");
        }
        assert_eq!(file_line(&again), file_line(&batch), "and so is all the rest");
    }
}

#[test]
fn events_of_subscribers_are_read_as_they_were_sent() {
    let batch = one(|event| {
        event.time(EventTime::Micros(1_700_000_000_500_000));
        fits(full(event));
    });
    let mut line = Vec::new();
    encode(batch.view().iter().next().expect("one"), Absent::Null, &mut line);
    let again = read(&line).expect("it is one");
    let event = again.view().iter().next().map(|event| event.time());
    assert_eq!(event, Some(Some(EventTime::Micros(1_700_000_000_500_000))));
    let mut written = Vec::new();
    encode(again.view().iter().next().expect("one"), Absent::Null, &mut written);
    assert_eq!(String::from_utf8_lossy(&written), String::from_utf8_lossy(&line));
}

#[test]
fn what_is_no_event_is_rejected_and_a_missing_time_can_be_seen() {
    for (line, want) in [
        ("{\"time\":1,\"metric\":\"z\"}", "`metric` must be a number"),
        ("{\"time\":1,\"attributes\":[1]}", "`attributes` must be an object"),
        (
            "{\"time\":1700000000000}",
            "`time` must be Unix seconds up to the year 9999, or a date and time as text",
        ),
        ("{\"time\":true}", "`time` must be Unix seconds up to the year 9999, or a date and time as text"),
        ("{\"time\":\"now\"}", "Invalid format: \"now\""),
        ("[1]", "an event must be an object"),
        ("{\"time\":1} x", "invalid JSON: expected the line's end after 11 bytes"),
    ] {
        assert_eq!(
            read(line.as_bytes()).map(|_| ()).map_err(|why| why.to_string()),
            Err(want.to_owned()),
            "{line}"
        );
    }
    let batch = read(b"{\"service\":\"a\",\"attributes\":{\"b\":1}}").expect("it is an event");
    assert_eq!(batch.view().iter().next().and_then(|event| event.time()), Some(NO_TIME));
    let mut batch = EventsBuilder::default();
    assert_eq!(decode_recorded(b" \n", BYTES_MAX, NO_TIME, &mut batch), Ok(JsonLine::Null));
}

proptest! {
    #[test]
    fn any_line_is_an_event_or_rejected(line in "\\{\"time\":[0-9]{1,4}(,\"[a-z]{1,3}\":[0-9\\[\\]\"{}:,tfn]{0,9}){0,3}\\}|.{0,30}") {
        if let Ok(batch) = read(line.as_bytes()) {
            for event in batch.view().iter() {
                prop_assert!(event.time().is_some());
            }
        }
    }
}
