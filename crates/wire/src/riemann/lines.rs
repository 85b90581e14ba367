//! Lines of Graphite and of OpenTSDB as events of Riemann (spec riemann §§2.1, 2.2).
//!
//! Path of a line: the intake -> [`graphite`] or [`opentsdb`] -> a batch of events. Other nodes get such lines as points
//! (`graphite::input`, `opentsdb`): here names stay as they were sent.
//! Pure: no allocation but for the batch. No input makes it panic.

use std::borrow::Cow;

use model::{EventLimit, EventTime, EventWriter, EventsBuilder, NumberRef, Reject, TextField};

/// What a line of OpenTSDB was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpentsdbLine {
    /// An event, which was added to the batch.
    Event,
    /// A question for the version.
    Version,
    /// Nothing.
    Blank,
}

/// Adds the event of a line of Graphite: `path value time`. With `tags`, `path;key=value` has fields.
///
/// # Errors
/// Why there is none.
pub fn graphite(line: &[u8], tags: bool, into: &mut EventsBuilder) -> Result<(), Reject> {
    let line = text_of(line);
    let mut words = line.split_whitespace();
    let path = words.next().ok_or(Reject::NoName)?;
    let value = words.next().ok_or(Reject::NoValue)?;
    let time = words.next().ok_or(Reject::NoTimestamp)?;
    if words.next().is_some() {
        return Err(Reject::TooManyFields);
    }
    let (value, time) = (number(value)?, seconds(time)?);
    let mut event = into.event();
    let (service, fields) = match path.split_once(';').filter(|_| tags) {
        Some((service, fields)) => (service, fields),
        None => (path, ""),
    };
    event.plain_text(TextField::Service, service);
    for field in fields.split(';').filter(|field| !field.is_empty()) {
        let (key, value) = field.split_once('=').ok_or(Reject::BadTag)?;
        event.plain_attribute(key, value).map_err(too_many)?;
    }
    finish(event, value, time);
    Ok(())
}

/// Adds the event of a line of OpenTSDB: `put metric time value tag=value …`. The first word may be any other.
///
/// # Errors
/// Why there is none.
pub fn opentsdb(line: &[u8], into: &mut EventsBuilder) -> Result<OpentsdbLine, Reject> {
    let line = text_of(line);
    let mut words = line.split_whitespace();
    match words.next() {
        None => return Ok(OpentsdbLine::Blank),
        Some("version") => return Ok(OpentsdbLine::Version),
        Some(_put) => {}
    }
    let metric = words.next().ok_or(Reject::NoName)?;
    let time = seconds(words.next().ok_or(Reject::NoTimestamp)?)?;
    let value = number(words.next().ok_or(Reject::NoValue)?)?;
    let mut service = metric.to_owned();
    let mut event = into.event();
    event.plain_text(TextField::Description, metric);
    for tag in words {
        let (key, value) = tag.split_once('=').ok_or(Reject::BadTag)?;
        if key != "host" {
            service.push(' ');
            service.push_str(tag);
        }
        // The service has its own meaning.
        let key = if key == "service" { "servicetag" } else { key };
        event.plain_attribute(key, value).map_err(too_many)?;
    }
    event.plain_text(TextField::Service, &service);
    finish(event, value, time);
    Ok(OpentsdbLine::Event)
}

fn finish(mut event: EventWriter<'_>, value: f64, time_s: i64) {
    event.metric(NumberRef::F64(value));
    event.time(EventTime::Seconds(time_s));
    event.finish();
}

/// What is not UTF-8 becomes U+FFFD.
fn text_of(line: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(line)
}

/// A number as Java reads it, except for NaN.
fn number(text: &str) -> Result<f64, Reject> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits != "Infinity" && !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return Err(Reject::BadValue);
    }
    text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text).parse().map_err(|_error| Reject::BadValue)
}

fn seconds(text: &str) -> Result<i64, Reject> {
    text.parse().map_err(|_error| Reject::BadTimestamp)
}

fn too_many(_limit: EventLimit) -> Reject {
    Reject::TooManyTags
}

#[cfg(test)]
mod tests {
    use model::ValueRef;

    use super::*;

    /// The events of a batch as texts: service, description, metric, time, attributes.
    fn shown(events: &EventsBuilder) -> Vec<String> {
        let one = |event: model::EventRef<'_>| {
            let attributes = event.attributes().map(|(key, value)| match value {
                ValueRef::Text(text) => format!(" {key}={text}"),
                other => format!(" {key} {other:?}"),
            });
            let attributes: String = attributes.collect();
            let (Some(NumberRef::F64(metric)), Some(EventTime::Seconds(time))) =
                (event.metric(), event.time())
            else {
                panic!("{event:?}")
            };
            let (service, description) = (event.service().unwrap_or("-"), event.description().unwrap_or("-"));
            format!("{service}|{description}|{metric} {time}{attributes}")
        };
        events.view().iter().map(one).collect()
    }

    #[test]
    fn lines_of_graphite_are_events_or_say_why_not() {
        let table: &[(&str, bool, Result<&str, Reject>)] = &[
            ("a.b 1.5 5", false, Ok("a.b|-|1.5 5")),
            ("\ta.b  -1e3\t-5 \r", false, Ok("a.b|-|-1000 -5")),
            ("a Infinity 5", false, Ok("a|-|inf 5")),
            ("a 1f 5", false, Ok("a|-|1 5")),
            ("a;k=v 1 5", false, Ok("a;k=v|-|1 5")),
            ("a;k=v;k2=w=x; 1 5", true, Ok("a|-|1 5 k=v k2=w=x")),
            ("a;host=h 1 5", true, Ok("a|-|1 5 host=h")),
            ("a;k 1 5", true, Err(Reject::BadTag)),
            ("", false, Err(Reject::NoName)),
            ("a", false, Err(Reject::NoValue)),
            ("a 1", false, Err(Reject::NoTimestamp)),
            ("a 1 5 6", false, Err(Reject::TooManyFields)),
            ("a nan 5", false, Err(Reject::BadValue)),
            ("a inf 5", false, Err(Reject::BadValue)),
            ("a -NaN 5", false, Err(Reject::BadValue)),
            ("a x 5", false, Err(Reject::BadValue)),
            ("a 1 5.5", false, Err(Reject::BadTimestamp)),
            ("a 1 99999999999999999999", false, Err(Reject::BadTimestamp)),
        ];
        for (line, tags, want) in table {
            let mut events = EventsBuilder::default();
            let got = graphite(line.as_bytes(), *tags, &mut events);
            assert_eq!(
                (got, shown(&events)),
                (want.map(drop), want.iter().map(|one| (*one).to_owned()).collect()),
                "{line}"
            );
        }
    }

    #[test]
    fn lines_of_opentsdb_are_events_as_riemann_makes_them() {
        let table: &[(&str, Result<&str, Reject>)] = &[
            (
                "put sys.cpu 5 3.5 host=h cpu=0 service=z",
                Ok("sys.cpu cpu=0 service=z|sys.cpu|3.5 5 host=h cpu=0 servicetag=z"),
            ),
            ("x sys.cpu 5 3", Ok("sys.cpu|sys.cpu|3 5")),
            ("put", Err(Reject::NoName)),
            ("put a", Err(Reject::NoTimestamp)),
            ("put a 5", Err(Reject::NoValue)),
            ("put a 5 x", Err(Reject::BadValue)),
            ("put a x 5", Err(Reject::BadTimestamp)),
            ("put a 5 5 tag", Err(Reject::BadTag)),
        ];
        for (line, want) in table {
            let mut events = EventsBuilder::default();
            let got = opentsdb(line.as_bytes(), &mut events);
            let want_line = want.map(|_| OpentsdbLine::Event);
            assert_eq!(
                (got, shown(&events)),
                (want_line, want.iter().map(|one| (*one).to_owned()).collect()),
                "{line}"
            );
        }
        let mut events = EventsBuilder::default();
        assert_eq!(opentsdb(b"version\r", &mut events), Ok(OpentsdbLine::Version));
        assert_eq!(opentsdb(b" ", &mut events), Ok(OpentsdbLine::Blank));
    }

    proptest::proptest! {
        #[test]
        fn any_line_gives_an_event_or_a_reason(line in "[a;= 0-9.\\-Ife\\t\u{e9}\u{0}]{0,40}") {
            let mut events = EventsBuilder::default();
            let is_event = graphite(line.as_bytes(), true, &mut events).is_ok();
            assert_eq!(events.view().len(), usize::from(is_event));
            let is_event = opentsdb(line.as_bytes(), &mut events) == Ok(OpentsdbLine::Event);
            assert!(events.view().len() >= usize::from(is_event));
        }
    }

    #[test]
    fn an_event_has_a_bounded_number_of_tags() {
        let line = |number: usize| format!("put a 5 5{}", " k=v".repeat(number));
        let mut events = EventsBuilder::default();
        let max = model::limits::EVENT_ENTRIES_MAX;
        assert_eq!(opentsdb(line(max).as_bytes(), &mut events), Ok(OpentsdbLine::Event));
        assert_eq!(opentsdb(line(max + 1).as_bytes(), &mut events), Err(Reject::TooManyTags));
        assert_eq!(events.view().len(), 1, "nothing of it was added");
    }
}
