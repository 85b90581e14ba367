//! What the reference parsers read of one line, with its own copies of everything.

use std::collections::BTreeMap;

use model::{EventRef, EventTime, GaugeOp, Kind, Reject, ValueRef};

use super::super::Options;

/// One sample with its own copies of everything.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadSample {
    /// Family.
    pub kind: Kind,
    /// Raw name.
    pub name: Vec<u8>,
    /// Raw tag text.
    pub tags: Vec<u8>,
    /// Value.
    pub value: ReadValue,
    /// `1 / rate`.
    pub weight: f64,
    /// Effect of a gauge's value.
    pub gauge_op: GaugeOp,
    /// Client's time.
    pub timestamp_s: Option<u64>,
    /// Container id.
    pub container: Vec<u8>,
    /// External data.
    pub external: Vec<u8>,
}

/// One event or service check with its own copies of everything; a text that is absent is none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadEvent {
    /// Title of an event, name of a check.
    pub service: String,
    /// Text of an event, message of a check.
    pub description: Option<String>,
    /// State of a check.
    pub state: Option<String>,
    /// Client's host.
    pub host: Option<String>,
    /// Unix seconds.
    pub time_s: i64,
    /// Tags without duplicates, in order of arrival.
    pub tags: Option<Vec<String>>,
    /// All other fields by their keys.
    pub attributes: BTreeMap<String, String>,
}

impl ReadEvent {
    /// A parsed event of DogStatsD.
    ///
    /// # Panics
    /// When it has what only other events have.
    pub fn of(event: EventRef<'_>) -> ReadEvent {
        assert_eq!((event.metric(), event.ttl_s()), (None, None));
        let Some(EventTime::Seconds(time_s)) = event.time() else { panic!("whole seconds in {event:?}") };
        let own = |text: Option<&str>| text.map(str::to_owned);
        let attributes = event.attributes().map(|(key, value)| match value {
            ValueRef::Text(text) => (key.to_owned(), text.to_owned()),
            other => panic!("a text, not {other:?}"),
        });
        ReadEvent {
            service: own(event.service()).expect("each has a service"),
            description: own(event.description()),
            state: own(event.state()),
            host: own(event.host()),
            time_s,
            tags: event.tags().map(|tags| tags.map(str::to_owned).collect()),
            attributes: attributes.collect(),
        }
    }
}

/// A value: numbers by their bits, so that -0 differs from 0.
#[derive(Clone, Debug, PartialEq)]
pub enum ReadValue {
    /// Bits of the number.
    Bits(u64),
    /// Member of a set.
    Text(Vec<u8>),
}

impl ReadSample {
    pub(super) fn new(kind: Kind, name: &[u8], tags: &[u8], value: ReadValue) -> ReadSample {
        ReadSample {
            kind,
            name: name.to_vec(),
            tags: tags.to_vec(),
            value,
            weight: 1.0,
            gauge_op: GaugeOp::Assign,
            timestamp_s: None,
            container: Vec::new(),
            external: Vec::new(),
        }
    }
}

/// One parsed line.
#[derive(Default)]
pub(super) struct Line {
    pub(super) samples: Vec<ReadSample>,
    pub(super) event: Option<ReadEvent>,
    pub(super) event_fields_ignored: u64,
    pub(super) rejects: Vec<Reject>,
    pub(super) glued: bool,
    pub(super) name: Option<Vec<u8>>,
}

impl Line {
    pub(super) fn bad(why: Reject) -> Line {
        Line { rejects: vec![why], ..Line::default() }
    }
}

pub(super) fn key_within_limits(options: &Options, name: &[u8], tags: &[u8]) -> Result<(), Reject> {
    let many = !tags.is_empty() && split(tags, b",").len() > options.tags_max as usize;
    if options.tags_max > 0 && many {
        return Err(Reject::TooManyTags);
    }
    if options.key_bytes_max > 0 && name.len() + tags.len() > options.key_bytes_max as usize {
        return Err(Reject::KeyTooLong);
    }
    Ok(())
}

pub(super) fn split(text: &[u8], separator: &[u8]) -> Vec<Vec<u8>> {
    let mut pieces = vec![Vec::new()];
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with(separator) {
            pieces.push(Vec::new());
            at += separator.len();
        } else {
            let last = pieces.len() - 1;
            pieces[last].push(text[at]);
            at += 1;
        }
    }
    pieces
}

/// Perl's `split`: no empty pieces at the end.
pub(super) fn split_perl(text: &[u8], separator: &[u8]) -> Vec<Vec<u8>> {
    let mut pieces = split(text, separator);
    while pieces.last().is_some_and(|piece| piece.is_empty()) {
        pieces.pop();
    }
    pieces
}
