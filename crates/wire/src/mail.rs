//! Events as texts of mails, as Riemann's mailer writes them (spec riemann §14.2).
//!
//! A record of a mail has its text, and what a subject of several events is made of: [`push_record`] and [`text_of`]. Not here:
//! the mail itself, and how it is sent.

use model::{EventRef, EventTime, ValueRef};

use crate::report::{event_number_json, event_value_json, java_date};

/// Between the parts of a record; no part but the text has it.
const SEPARATOR: u8 = 0x1f;

/// Different values that a subject names; of more it has the number.
const NAMED_MAX: usize = 4;

/// Appends the default text for an event: all of its fields, but for the attributes in `skip`.
pub fn push_text(event: EventRef<'_>, skip: &[&str], out: &mut Vec<u8>) {
    let seconds = match event.time() {
        Some(EventTime::Seconds(seconds)) => seconds,
        Some(EventTime::Micros(micros)) => micros.div_euclid(1_000_000),
        None => 0,
    };
    let at = java_date(u64::try_from(seconds).unwrap_or(0));
    let text = |text: Option<&str>| text.unwrap_or("").to_owned();
    let mut metric = Vec::new();
    if let Some(number) = event.metric() {
        event_number_json(number, &mut metric);
    }
    let tags: Vec<&str> = event.tags().into_iter().flatten().collect();
    let attributes: Vec<String> = event
        .attributes()
        .filter(|(key, _)| !skip.contains(key))
        .map(|(key, value)| {
            let mut shown = Vec::new();
            match value {
                ValueRef::Text(text) | ValueRef::Keyword(text) => shown.extend_from_slice(text.as_bytes()),
                value => event_value_json(value, &mut shown),
            }
            format!(":{key} {}", String::from_utf8_lossy(&shown))
        })
        .collect();
    let whole = format!(
        "At {at}\n{} {} {} ({})\nTags: [{}]\nCustom Attributes: {{{}}}\n\n{}",
        text(event.host()),
        text(event.service()),
        text(event.state()),
        String::from_utf8_lossy(&metric),
        tags.join(", "),
        attributes.join(", "),
        text(event.description()),
    );
    out.extend_from_slice(whole.as_bytes());
}

/// The addresses of a list with commas.
pub fn addresses(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|address| !address.is_empty())
}

/// Appends a record: what a subject needs of the event, and its text.
pub fn push_record(event: EventRef<'_>, text: &[u8], out: &mut Vec<u8>) {
    for part in [event.host(), event.service(), event.state()] {
        out.extend(part.unwrap_or("").bytes().filter(|byte| *byte != SEPARATOR));
        out.push(SEPARATOR);
    }
    out.extend_from_slice(text);
}

/// The text of a record.
pub fn text_of(record: &[u8]) -> &[u8] {
    parts(record).1
}

fn parts(record: &[u8]) -> ([&[u8]; 3], &[u8]) {
    let mut rest = record;
    let mut found: [&[u8]; 3] = [b""; 3];
    for part in &mut found {
        let end = memchr::memchr(SEPARATOR, rest).unwrap_or(0);
        *part = &rest[..end];
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    (found, rest)
}

/// The subject of a mail with these records: the different hosts, services and states.
pub fn subject(records: &[Vec<u8>]) -> String {
    let words = ["hosts", "services", "states"];
    let of = |at: usize| human_unique(records.iter().map(|record| parts(record).0[at]), words[at]);
    let all = (0..words.len()).map(of).filter(|part| !part.is_empty());
    all.collect::<Vec<_>>().join(" ")
}

/// Different values: one, `a and b`, up to four, or their number.
fn human_unique<'a>(values: impl Iterator<Item = &'a [u8]>, word: &str) -> String {
    let mut different: Vec<&[u8]> = values.filter(|value| !value.is_empty()).collect();
    let mut seen = std::collections::BTreeSet::new();
    different.retain(|value| seen.insert(*value));
    let shown: Vec<_> =
        different.iter().take(NAMED_MAX).map(|value| String::from_utf8_lossy(value)).collect();
    match &shown[..] {
        _ if different.len() > NAMED_MAX => format!("{} {word}", different.len()),
        [one, other] => format!("{one} and {other}"),
        some => some.join(", "),
    }
}

#[test]
fn subjects_and_texts_are_those_of_riemann() {
    use model::{EventsBuilder, NumberRef, TextField};

    let mut events = EventsBuilder::default();
    for host in ["a", "b", "a", "c", "d", "e"] {
        let mut event = events.event();
        event.plain_text(TextField::Host, host);
        event.plain_text(TextField::Service, "disk");
        event.plain_text(TextField::Description, "full\u{1f}!");
        event.metric(NumberRef::I64(5));
        event.time(EventTime::Seconds(1_700_000_000));
        event.finish();
    }
    let mut text = Vec::new();
    let first = events.view().iter().next().expect("there are some");
    push_text(first, &[], &mut text);
    assert_eq!(
        String::from_utf8_lossy(&text),
        "At Tue Nov 14 22:13:20 UTC 2023\na disk  (5)\nTags: []\nCustom Attributes: {}\n\nfull\u{1f}!"
    );
    let records: Vec<Vec<u8>> = events
        .view()
        .iter()
        .map(|event| {
            let mut record = Vec::new();
            push_record(event, &text, &mut record);
            assert_eq!(text_of(&record), text);
            record
        })
        .collect();
    for (number, want) in
        [(1, "a disk"), (2, "a and b disk"), (3, "a and b disk"), (4, "a, b, c disk"), (6, "5 hosts disk")]
    {
        assert_eq!(subject(&records[..number]), want);
    }
}
