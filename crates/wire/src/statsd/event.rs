//! Parses DogStatsD events and service checks (spec statsd §5.3, §5.4).
//!
//! Path of a packet: `dogstatsd::event_or` -> **`event` / `check`** -> `Parsed::events`.
//! The fields of Riemann's events that they fill are a table in `docs/events.md`.

use std::fmt::{self, Display, Write};

use memchr::memchr;
use model::event::attribute;
use model::limits::EVENT_ENTRIES_MAX;
use model::{EventLimit, EventTime, EventWriter, Reject, Span, TextField};

use super::number::whole_seconds;
use super::sink::{Sink, check_tags};
use crate::text::Lossy;

/// Attributes of an event or a check, at most.
const ATTRIBUTES_MAX: usize = 6;

const _: () = assert!(ATTRIBUTES_MAX <= EVENT_ENTRIES_MAX, "no event or check has too many attributes");

/// Fields of an event or a check, as they are in the line. Of a field that repeats, the last one counts.
struct Fields<'a> {
    kind: Kind<'a>,
    time_s: u64,
    host: Option<&'a [u8]>,
    tags: Option<&'a [u8]>,
    container: Option<&'a [u8]>,
    /// Fields that are unknown or invalid.
    ignored: u64,
}

/// The fields of one kind.
enum Kind<'a> {
    Event {
        title: &'a [u8],
        text: &'a [u8],
        priority: &'static str,
        alert_type: &'static str,
        aggregation_key: Option<&'a [u8]>,
        source_type_name: Option<&'a [u8]>,
    },
    Check {
        name: &'a [u8],
        state: &'static str,
        message: Option<&'a [u8]>,
    },
}

/// `_e{<title bytes>,<text bytes>}:<title>|<text>|field…`
pub(super) fn event(sink: &mut Sink<'_, '_>) -> Result<(), Reject> {
    let (title, text, rest) = split_event(sink.line).ok_or(Reject::BadEvent)?;
    let kind = Kind::Event {
        title,
        text,
        priority: "normal",
        alert_type: "info",
        aggregation_key: None,
        source_type_name: None,
    };
    add(sink, kind, rest)
}

/// `_sc|<name>|<status>|field…`
pub(super) fn check(sink: &mut Sink<'_, '_>) -> Result<(), Reject> {
    let line = sink.line.strip_prefix(b"_sc|").ok_or(Reject::BadCheck)?;
    let (name, rest) = split_field(line);
    let (status, rest) = split_field(rest.strip_prefix(b"|").ok_or(Reject::BadCheck)?);
    let state = match status {
        b"0" => "ok",
        b"1" => "warning",
        b"2" => "critical",
        b"3" => "unknown",
        _ => return Err(Reject::BadCheck),
    };
    if name.is_empty() {
        return Err(Reject::BadCheck);
    }
    add(sink, Kind::Check { name, state, message: None }, rest)
}

/// Title, text, and the fields with the `|` before them. Split by the lengths: title and text may contain `|`.
pub(super) fn split_event(line: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let rest = line.strip_prefix(b"_e{")?;
    let comma = memchr(b',', rest)?;
    let brace = memchr(b'}', rest)?;
    let title_len = length(&rest[..comma])?;
    let text_len = length(rest.get(comma + 1..brace)?)?;
    let rest = rest[brace + 1..].strip_prefix(b":")?;
    if title_len == 0 {
        return None;
    }
    let (title, rest) = rest.split_at_checked(title_len)?;
    let (text, rest) = rest.strip_prefix(b"|")?.split_at_checked(text_len)?;
    matches!(rest, [] | [b'|', ..]).then_some((title, text, rest))
}

/// Digits only; a length that no packet could have is an error too.
fn length(text: &[u8]) -> Option<usize> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    str::from_utf8(text).ok()?.parse().ok()
}

/// The text before the first `|`, and the rest from there on.
fn split_field(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(memchr(b'|', text).unwrap_or(text.len()))
}

/// Parses the optional fields, each after a `|`, and adds the event. Unknown and invalid fields are counted and
/// skipped.
fn add<'a>(sink: &mut Sink<'a, '_>, kind: Kind<'a>, mut rest: &'a [u8]) -> Result<(), Reject> {
    let mut fields = Fields { kind, time_s: sink.now_s, host: None, tags: None, container: None, ignored: 0 };
    while let [b'|', text @ ..] = rest {
        let (field, next) = split_field(text);
        rest = next;
        if let [b'#', tags @ ..] = field {
            check_tags(sink.options(), tags)?;
            fields.tags = Some(tags);
        } else if fields.read(field).is_none() {
            fields.ignored += 1;
        }
    }
    let into = &mut *sink.into;
    let written = fields.write(into.events.event(), &mut into.tag_places);
    into.tag_places.clear();
    written.map_err(reject)?;
    into.event_fields_ignored += fields.ignored;
    Ok(())
}

fn reject(limit: EventLimit) -> Reject {
    match limit {
        EventLimit::Tags => Reject::TooManyTags,
        // Never: events and checks have few attributes, and no nested ones.
        EventLimit::Entries | EventLimit::Nesting => Reject::BadEvent,
    }
}

impl<'a> Fields<'a> {
    /// Reads one field. `None` when it is unknown, or not a field of this kind.
    fn read(&mut self, field: &'a [u8]) -> Option<()> {
        // External data and cardinality are valid, and ignored for events.
        match (field, &mut self.kind) {
            ([b'd', b':', time @ ..], _) => self.time_s = whole_seconds(time)?,
            ([b'h', b':', host @ ..], _) => self.host = Some(host),
            ([b'c', b':', container @ ..], _) => self.container = Some(container),
            ([b'e', b':', ..] | b"card:none" | b"card:low" | b"card:orchestrator" | b"card:high", _) => {}
            ([b'm', b':', text @ ..], Kind::Check { message, .. }) => *message = Some(text),
            (b"p:normal", Kind::Event { priority, .. }) => *priority = "normal",
            (b"p:low", Kind::Event { priority, .. }) => *priority = "low",
            ([b't', b':', word @ ..], Kind::Event { alert_type, .. }) => *alert_type = alert_of(word)?,
            ([b'k', b':', key @ ..], Kind::Event { aggregation_key, .. }) => *aggregation_key = Some(key),
            ([b's', b':', name @ ..], Kind::Event { source_type_name, .. }) => *source_type_name = Some(name),
            _ => return None,
        }
        Some(())
    }
    /// Writes the event. A field that is not in the line stays absent, except those that have a default.
    fn write(&self, mut event: EventWriter<'_>, places: &mut Vec<Span>) -> Result<(), EventLimit> {
        event.time(EventTime::Seconds(i64::try_from(self.time_s).unwrap_or(i64::MAX)));
        self.host.iter().for_each(|host| event.text(TextField::Host, Lossy(host)));
        if let Some(tags) = self.tags {
            event.no_tags();
            place_tags(tags, places);
            places.iter().try_for_each(|place| event.tag(Lossy(place.of(tags))))?;
        }
        match self.kind {
            Kind::Event { title, text, priority, alert_type, aggregation_key, source_type_name } => {
                event.text(TextField::Service, Unescaped { text: title, of_message: false });
                event.text(TextField::Description, Unescaped { text, of_message: false });
                event.text_attribute(attribute::KIND, attribute::EVENT)?;
                event.text_attribute(attribute::PRIORITY, priority)?;
                event.text_attribute(attribute::ALERT_TYPE, alert_type)?;
                optional(&mut event, attribute::AGGREGATION_KEY, aggregation_key)?;
                optional(&mut event, attribute::SOURCE_TYPE_NAME, source_type_name)?;
            }
            Kind::Check { name, state, message } => {
                event.text(TextField::Service, Lossy(name));
                event.text(TextField::State, state);
                if let Some(text) = message {
                    event.text(TextField::Description, Unescaped { text, of_message: true });
                }
                event.text_attribute(attribute::KIND, attribute::CHECK)?;
            }
        }
        optional(&mut event, attribute::CONTAINER_ID, self.container)?;
        event.finish();
        Ok(())
    }
}

fn optional(event: &mut EventWriter<'_>, key: &str, text: Option<&[u8]>) -> Result<(), EventLimit> {
    text.map_or(Ok(()), |text| event.text_attribute(key, Lossy(text)))
}

fn alert_of(word: &[u8]) -> Option<&'static str> {
    ["error", "warning", "info", "success"].into_iter().find(|alert| alert.as_bytes() == word)
}

/// Where the tags lie in their text, in their order, without duplicates and empty ones.
fn place_tags(tags: &[u8], places: &mut Vec<Span>) {
    let mut at = 0;
    for tag in tags.split(|&byte| byte == b',') {
        if !tag.is_empty() {
            places.push(Span::new(at, tag.len()));
        }
        at += tag.len() + 1;
    }
    // Sorted by text, then by position: duplicates become neighbours, and many tags take no quadratic time.
    places.sort_unstable_by_key(|place| (place.of(tags), place.at));
    places.dedup_by_key(|place| place.of(tags));
    places.sort_unstable_by_key(|place| place.at);
}

/// Text in which a backslash and `n` mean a newline, which a line cannot contain. In a check's message `m\:` means `m:`.
struct Unescaped<'a> {
    text: &'a [u8],
    of_message: bool,
}

impl Display for Unescaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unescaped { text, of_message } = *self;
        // The text up to `written` is written, that up to `at` has been looked at.
        let (mut written, mut at) = (0, 0);
        while let Some(found) = memchr(b'\\', &text[at..]) {
            let slash = at + found;
            at = slash + 1;
            match text[at..] {
                [b'n', ..] => {
                    Lossy(&text[written..slash]).fmt(f)?;
                    f.write_char('\n')?;
                    at += 1;
                    written = at;
                }
                [b':', ..] if of_message && text[..slash].ends_with(b"m") => {
                    Lossy(&text[written..slash]).fmt(f)?;
                    written = at;
                }
                _ => {}
            }
        }
        Lossy(&text[written..]).fmt(f)
    }
}
