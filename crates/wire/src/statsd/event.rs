//! Parses DogStatsD events and service checks (spec statsd §5.3, §5.4).
//!
//! Path of a packet: `dogstatsd::event_or` -> **`event` / `check`** -> `Parsed::events`.
//! Rare compared with samples, so this code allocates.

use memchr::memchr;
use model::{Event, EventKind, EventState, Reject};

use super::dogstatsd::whole_seconds;
use super::sink::{Sink, check_tags};

/// `_e{<title bytes>,<text bytes>}:<title>|<text>|field…`
pub(super) fn event(sink: &mut Sink<'_, '_>) -> Result<(), Reject> {
    let (title, text, rest) = split_event(sink.line).ok_or(Reject::BadEvent)?;
    let kind = EventKind::Event {
        low_priority: false,
        alert: "info",
        aggregation_key: String::new(),
        source_type: String::new(),
    };
    let event = new_event(sink, kind, newlines(title), newlines(text), EventState::None);
    read_fields(sink, event, rest)
}

/// `_sc|<name>|<status>|field…`
pub(super) fn check(sink: &mut Sink<'_, '_>) -> Result<(), Reject> {
    let line = sink.line.strip_prefix(b"_sc|").ok_or(Reject::BadCheck)?;
    let (name, rest) = split_field(line);
    let (status, rest) = split_field(rest.strip_prefix(b"|").ok_or(Reject::BadCheck)?);
    let state = match status {
        b"0" => EventState::Ok,
        b"1" => EventState::Warning,
        b"2" => EventState::Critical,
        b"3" => EventState::Unknown,
        _ => return Err(Reject::BadCheck),
    };
    if name.is_empty() {
        return Err(Reject::BadCheck);
    }
    let event = new_event(sink, EventKind::Check, lossy(name), String::new(), state);
    read_fields(sink, event, rest)
}

fn new_event(
    sink: &Sink<'_, '_>,
    kind: EventKind,
    service: String,
    description: String,
    state: EventState,
) -> Event {
    Event {
        kind,
        service,
        description,
        state,
        host: String::new(),
        time_s: sink.now_s,
        tags: Vec::new(),
        container: String::new(),
        fields_ignored: 0,
    }
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
fn read_fields(sink: &mut Sink<'_, '_>, mut event: Event, mut rest: &[u8]) -> Result<(), Reject> {
    while let [b'|', text @ ..] = rest {
        let (field, next) = split_field(text);
        rest = next;
        if let [b'#', tags @ ..] = field {
            check_tags(sink.options(), tags)?;
            event.tags = tag_list(tags);
        } else if read_field(&mut event, field).is_none() {
            event.fields_ignored += 1;
        }
    }
    sink.into.event_fields_ignored += u64::from(event.fields_ignored);
    sink.into.events.push(event);
    Ok(())
}

/// Applies one field. `None` when it is unknown, or not a field of this kind of event.
fn read_field(event: &mut Event, field: &[u8]) -> Option<()> {
    // External data and cardinality are valid, and ignored for events.
    match (field, &mut event.kind) {
        ([b'd', b':', time @ ..], _) => event.time_s = whole_seconds(time)?,
        ([b'h', b':', host @ ..], _) => event.host = lossy(host),
        ([b'c', b':', container @ ..], _) => event.container = lossy(container),
        ([b'e', b':', ..] | b"card:none" | b"card:low" | b"card:orchestrator" | b"card:high", _) => {}
        ([b'm', b':', message @ ..], EventKind::Check) => event.description = unescape_message(message),
        (b"p:normal", EventKind::Event { low_priority, .. }) => *low_priority = false,
        (b"p:low", EventKind::Event { low_priority, .. }) => *low_priority = true,
        ([b't', b':', word @ ..], EventKind::Event { alert, .. }) => *alert = alert_of(word)?,
        ([b'k', b':', key @ ..], EventKind::Event { aggregation_key, .. }) => *aggregation_key = lossy(key),
        ([b's', b':', name @ ..], EventKind::Event { source_type, .. }) => *source_type = lossy(name),
        _ => return None,
    }
    Some(())
}

fn alert_of(word: &[u8]) -> Option<&'static str> {
    ["error", "warning", "info", "success"].into_iter().find(|alert| alert.as_bytes() == word)
}

/// Tags in their order, without duplicates and empty ones.
fn tag_list(tags: &[u8]) -> Vec<String> {
    // Sorted by text, then by position: duplicates become neighbours, and many tags take no quadratic time.
    let mut placed: Vec<(&[u8], usize)> =
        tags.split(|&byte| byte == b',').enumerate().map(|(place, tag)| (tag, place)).collect();
    placed.sort_unstable();
    placed.dedup_by_key(|(tag, _)| *tag);
    placed.sort_unstable_by_key(|&(_, place)| place);
    placed.into_iter().map(|(tag, _)| tag).filter(|tag| !tag.is_empty()).map(lossy).collect()
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// Backslash and `n` mean a newline, which a line cannot contain.
fn newlines(text: &[u8]) -> String {
    lossy(text).replace("\\n", "\n")
}

fn unescape_message(text: &[u8]) -> String {
    newlines(text).replace("m\\:", "m:")
}
