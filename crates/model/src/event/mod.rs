//! Events: the records of Riemann, and DogStatsD's events and service checks.
//!
//! Path of an event: a parser of `wire` writes it with [`EventsBuilder`] -> a batch of [`Events`] -> [`EventRef`], which the
//! outputs read.
//! An event is a struct of fixed size. Its texts are spans of the arena; its tags, its attributes and the rare numbers are
//! in arrays beside it. A field that is absent differs from an empty one.
//! Not here: what DogStatsD's fields become (`wire::statsd`), how an event is written (`wire::report`).

pub mod attribute;
mod build;
#[cfg(test)]
mod tests;
mod value;

pub use build::{EventLimit, EventWriter, EventsBuilder, EventsEnd};
pub use value::{Entries, Items, NumberRef, Ratio, ValueRef};

use std::borrow::Cow;
use std::fmt;

use crate::Span;
use crate::memory::memory_of;
use value::{Entry, Number, Pool, text_of};

/// Events of some packets: the arena of their texts, and arrays that point into it.
#[derive(Clone, Debug, Default)]
pub struct Events<'a> {
    /// The arena that all spans point into.
    text: Cow<'a, str>,
    /// In order of arrival.
    events: Cow<'a, [EventRecord]>,
    /// The tags of all events.
    tags: Cow<'a, [Span]>,
    /// The attributes of all events, see [`Entry`].
    entries: Cow<'a, [Entry]>,
    /// Exact rationals, see [`Number::Ratio`].
    ratios: Cow<'a, [Ratio]>,
}

/// Events, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct EventsView<'a> {
    text: &'a str,
    events: &'a [EventRecord],
    tags: &'a [Span],
    entries: &'a [Entry],
    ratios: &'a [Ratio],
}

/// One event, as it is stored. [`EventRef`] reads it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct EventRecord {
    /// By [`TextField`].
    texts: [OptionalSpan; TextField::COUNT],
    metric: Option<Number>,
    time: Option<EventTime>,
    ttl_s: Option<f32>,
    /// In the array of tags.
    tags: OptionalSpan,
    /// In the array of entries.
    attributes: Span,
}

const _: () = assert!(size_of::<EventRecord>() <= 96, "an event stays within one and a half cache lines");

/// The fields of an event that are texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TextField {
    /// The machine, or whatever else the event is about.
    Host,
    /// What is measured or checked there. Host and service together identify a series of events.
    Service,
    /// Any word: `ok`, `warning`, `critical`, `expired`.
    State,
    /// Text for humans.
    Description,
}

impl TextField {
    const COUNT: usize = 4;
}

/// When an event happened. Whole seconds and a fraction of zero differ: Riemann prints and compares them differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventTime {
    /// Unix seconds.
    Seconds(i64),
    /// Unix microseconds.
    Micros(i64),
}

/// A span, or none, in the size of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OptionalSpan(Span);

impl OptionalSpan {
    /// No arena is long enough for it.
    const ABSENT: OptionalSpan = OptionalSpan(Span { at: u32::MAX, len: 0 });

    fn get(self) -> Option<Span> {
        (self != OptionalSpan::ABSENT).then_some(self.0)
    }
}

impl EventRecord {
    /// All fields absent.
    const EMPTY: EventRecord = EventRecord {
        texts: [OptionalSpan::ABSENT; TextField::COUNT],
        metric: None,
        time: None,
        ttl_s: None,
        tags: OptionalSpan::ABSENT,
        attributes: Span { at: 0, len: 0 },
    };
}

impl Events<'_> {
    /// The events, borrowed.
    pub fn view(&self) -> EventsView<'_> {
        EventsView {
            text: &self.text,
            events: &self.events,
            tags: &self.tags,
            entries: &self.entries,
            ratios: &self.ratios,
        }
    }

    /// Removes the first events; the arena keeps their texts.
    pub fn skip(&mut self, events: usize) {
        match &mut self.events {
            Cow::Borrowed(all) => *all = &all[events..],
            Cow::Owned(all) => drop(all.drain(..events)),
        }
    }

    /// Memory that they take beside its owner.
    pub(crate) fn memory_bytes(&self) -> usize {
        let Events { text, events, tags, entries, ratios } = self;
        let text = match text {
            Cow::Borrowed(_) => 0,
            Cow::Owned(text) => text.capacity(),
        };
        text + memory_of(events) + memory_of(tags) + memory_of(entries) + memory_of(ratios)
    }

    /// The same in memory of their own.
    pub fn into_owned(self) -> Events<'static> {
        let Events { text, events, tags, entries, ratios } = self;
        Events {
            text: Cow::Owned(text.into_owned()),
            events: Cow::Owned(events.into_owned()),
            tags: Cow::Owned(tags.into_owned()),
            entries: Cow::Owned(entries.into_owned()),
            ratios: Cow::Owned(ratios.into_owned()),
        }
    }
}

impl<'a> EventsView<'a> {
    /// How many they are.
    pub fn len(self) -> usize {
        self.events.len()
    }

    /// True when there are none.
    pub fn is_empty(self) -> bool {
        self.events.is_empty()
    }

    /// The events, in order of arrival.
    pub fn iter(self) -> impl ExactSizeIterator<Item = EventRef<'a>> {
        self.events.iter().map(move |record| EventRef { batch: self, record })
    }

    fn pool(self) -> Pool<'a> {
        Pool { text: self.text, ratios: self.ratios }
    }
}

/// One event of a batch.
///
/// Two events are equal when the same fields are present and have the same values: a number has the same type and the same
/// bits, tags and attributes have the same order. (Streams and queries compare numbers by rules of their own.)
#[derive(Clone, Copy)]
pub struct EventRef<'a> {
    batch: EventsView<'a>,
    record: &'a EventRecord,
}

impl<'a> EventRef<'a> {
    /// One of the fields that are texts.
    pub fn text(self, field: TextField) -> Option<&'a str> {
        self.record.texts[field as usize].get().map(|span| text_of(self.batch.text, span))
    }

    /// The machine, or whatever else the event is about.
    pub fn host(self) -> Option<&'a str> {
        self.text(TextField::Host)
    }

    /// What is measured or checked there.
    pub fn service(self) -> Option<&'a str> {
        self.text(TextField::Service)
    }

    /// Any word: `ok`, `warning`, `critical`, `expired`.
    pub fn state(self) -> Option<&'a str> {
        self.text(TextField::State)
    }

    /// Text for humans.
    pub fn description(self) -> Option<&'a str> {
        self.text(TextField::Description)
    }

    /// What was measured.
    pub fn metric(self) -> Option<NumberRef<'a>> {
        self.record.metric.map(|number| NumberRef::of(number, self.batch.pool()))
    }

    /// When it happened.
    pub fn time(self) -> Option<EventTime> {
        self.record.time
    }

    /// Seconds for which the event is valid.
    pub fn ttl_s(self) -> Option<f32> {
        self.record.ttl_s
    }

    /// The tags in order; `None` differs from no tags.
    pub fn tags(self) -> Option<impl ExactSizeIterator<Item = &'a str>> {
        let EventsView { text, tags, .. } = self.batch;
        let Span { at, len } = self.record.tags.get()?;
        Some(tags[at as usize..][..len as usize].iter().map(move |tag| text_of(text, *tag)))
    }

    /// All other fields, in order. A key may repeat: the last one counts.
    pub fn attributes(self) -> Entries<'a> {
        let Span { at, len } = self.record.attributes;
        Entries::new(self.batch.pool(), &self.batch.entries[at as usize..][..len as usize])
    }

    /// The attribute with this key.
    pub fn attribute(self, key: &str) -> Option<ValueRef<'a>> {
        self.attributes().filter(|(name, _)| *name == key).last().map(|(_, value)| value)
    }

    /// The attribute with this key, if it is a text.
    pub fn text_attribute(self, key: &str) -> Option<&'a str> {
        match self.attribute(key)? {
            ValueRef::Text(text) => Some(text),
            ValueRef::Nil
            | ValueRef::Bool(_)
            | ValueRef::Number(_)
            | ValueRef::Keyword(_)
            | ValueRef::List(_)
            | ValueRef::Map(_) => None,
        }
    }
}

impl PartialEq for EventRef<'_> {
    fn eq(&self, other: &EventRef<'_>) -> bool {
        let same_texts = [TextField::Host, TextField::Service, TextField::State, TextField::Description]
            .into_iter()
            .all(|field| self.text(field) == other.text(field));
        let same_tags = match (self.tags(), other.tags()) {
            (None, None) => true,
            (Some(ours), Some(theirs)) => ours.eq(theirs),
            (None, Some(_)) | (Some(_), None) => false,
        };
        same_texts
            && same_tags
            && self.metric() == other.metric()
            && self.time() == other.time()
            && self.ttl_s().map(f32::to_bits) == other.ttl_s().map(f32::to_bits)
            && self.attributes() == other.attributes()
    }
}

impl fmt::Debug for EventRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("host", &self.host())
            .field("service", &self.service())
            .field("state", &self.state())
            .field("description", &self.description())
            .field("metric", &self.metric())
            .field("time", &self.time())
            .field("ttl_s", &self.ttl_s())
            .field("tags", &self.tags().map(Iterator::collect::<Vec<_>>))
            .field("attributes", &self.attributes())
            .finish()
    }
}
