//! Points as events of Riemann: of sources and aggregations that other nodes read as well.
//!
//! Path of a point: `pipeline`, where it has reached streams -> [`point`] -> a batch of events. The event is the one that Riemann's
//! `graphite-server` makes with `:tags true` (spec riemann §2.1), except for tags whose names are those of fields that a point has.
//! Not here: lines of a source of Riemann (`lines`), which rejects other lines than a source of points.
//! Pure: no allocation but for the batch. No input makes it panic.

use std::borrow::Cow;

use model::{EventTime, EventsBuilder, NumberRef, Reject, TextField};

use crate::graphite::{number, whole};

/// Fields of an event that a tag does not replace: the attribute is the tag's name with `tag` after it, as in events of OpenTSDB.
const OWN_FIELDS: [(&str, &str); 5] = [
    ("service", "servicetag"),
    ("metric", "metrictag"),
    ("time", "timetag"),
    ("ttl", "ttltag"),
    ("tags", "tagstag"),
];

/// Adds the event of a point: `name` with `;key=value` for each tag, its value and its time (Unix seconds; a fraction is cut off).
/// The tags `host`, `state` and `description` are those fields, others are attributes. Infinite values are metrics.
///
/// # Errors
/// Why there is no event; nothing is added then. NaN is no metric.
pub fn point(name: &[u8], value: &[u8], time: &[u8], into: &mut EventsBuilder) -> Result<(), Reject> {
    let metric = match value {
        [] => return Err(Reject::NoValue),
        text => number(text).ok_or(Reject::BadValue)?,
    };
    if metric.is_nan() {
        return Err(Reject::NonFinite);
    }
    let time_s = match time {
        [] => return Err(Reject::NoTimestamp),
        text => whole(text).ok_or(Reject::BadTimestamp)?,
    };
    let mut parts = name.split(|byte| *byte == b';');
    let service = text_of(parts.next().unwrap_or_default());
    if service.is_empty() {
        return Err(Reject::NoName);
    }
    let mut event = into.event();
    event.plain_text(TextField::Service, &service);
    for tag in parts.filter(|tag| !tag.is_empty()) {
        let tag = text_of(tag);
        let (key, value) = tag.split_once('=').ok_or(Reject::BadTag)?;
        let own = OWN_FIELDS.iter().find(|(field, _)| *field == key);
        let key = own.map_or(key, |(_, instead)| *instead);
        event.plain_attribute(key, value).map_err(|_limit| Reject::TooManyTags)?;
    }
    event.metric(NumberRef::F64(metric));
    event.time(EventTime::Seconds(time_s));
    event.finish();
    Ok(())
}

/// Bytes that are not UTF-8 become U+FFFD.
fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

#[cfg(test)]
mod tests {
    use model::ValueRef;

    use super::*;

    /// The events of a batch as texts: service, metric, time, attributes.
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
            format!("{} {metric} {time}{attributes}", event.service().unwrap_or("-"))
        };
        events.view().iter().map(one).collect()
    }

    #[test]
    fn points_are_events_or_have_a_reason() {
        let table: &[([&str; 3], Result<&str, Reject>)] = &[
            (["a.b", "1.50", "1700000000"], Ok("a.b 1.5 1700000000")),
            (["a", "-1e3", "1700000000.9"], Ok("a -1000 1700000000")),
            (["a", "inf", "-5"], Ok("a inf -5")),
            (["a;host=h;dc=x=y", "1", "5"], Ok("a 1 5 host=h dc=x=y")),
            (["a;service=s;ttl=9;state=ok;", "1", "5"], Ok("a 1 5 servicetag=s ttltag=9 state=ok")),
            (["a;metric=m;time=t;tags=x", "1", "5"], Ok("a 1 5 metrictag=m timetag=t tagstag=x")),
            (["a;k=", "1", "5"], Ok("a 1 5 k=")),
            (["a;k", "1", "5"], Err(Reject::BadTag)),
            ([";k=v", "1", "5"], Err(Reject::NoName)),
            (["a", "nan", "5"], Err(Reject::NonFinite)),
            (["a", "x", "5"], Err(Reject::BadValue)),
            (["a", "", ""], Err(Reject::NoValue)),
            (["a", "1", ""], Err(Reject::NoTimestamp)),
            (["a", "1", "now"], Err(Reject::BadTimestamp)),
        ];
        for ([name, value, time], want) in table {
            let mut events = EventsBuilder::default();
            let got = point(name.as_bytes(), value.as_bytes(), time.as_bytes(), &mut events);
            let want_events: Vec<String> = want.iter().map(|one| (*one).to_owned()).collect();
            assert_eq!((got, shown(&events)), (want.map(drop), want_events), "{name} {value} {time}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let mut events = EventsBuilder::default();
        assert_eq!(point(b"a\xff;k=\xfe", b"1", b"5", &mut events), Ok(()));
        assert_eq!(shown(&events), ["a\u{fffd} 1 5 k=\u{fffd}"]);
    }

    #[test]
    fn an_event_has_a_bounded_number_of_tags() {
        let name = |number: usize| format!("a{}", ";k=v".repeat(number));
        let mut events = EventsBuilder::default();
        let max = model::limits::EVENT_ENTRIES_MAX;
        assert_eq!(point(name(max).as_bytes(), b"1", b"5", &mut events), Ok(()));
        assert_eq!(point(name(max + 1).as_bytes(), b"1", b"5", &mut events), Err(Reject::TooManyTags));
        assert_eq!(events.view().len(), 1, "nothing of it was added");
    }

    proptest::proptest! {
        #[test]
        fn any_point_gives_an_event_or_a_reason(
            name in "[a;=\u{e9}\u{0}]{0,20}", value in "[0-9.\\-+einfaN]{0,8}", time in "[0-9.\\-e]{0,20}"
        ) {
            let mut events = EventsBuilder::default();
            let is_event = point(name.as_bytes(), value.as_bytes(), time.as_bytes(), &mut events).is_ok();
            assert_eq!(events.view().len(), usize::from(is_event));
        }
    }
}
