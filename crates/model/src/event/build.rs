//! Writes events into the arena and the arrays of a batch.

use std::borrow::Cow;
use std::fmt::{Display, Write};

use super::value::{Entry, Value};
use super::{
    EventRecord, EventRef, EventTime, Events, EventsView, Number, NumberRef, OptionalSpan, Ratio, TextField,
    ValueRef,
};
use crate::Span;
use crate::limits::{EVENT_ENTRIES_MAX, EVENT_NESTING_MAX, EVENT_TAGS_MAX};

/// Collects events. Reuse it: [`EventsBuilder::clear`] keeps the memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventsBuilder {
    text: String,
    events: Vec<EventRecord>,
    tags: Vec<Span>,
    entries: Vec<Entry>,
    ratios: Vec<Ratio>,
}

/// Why an event cannot be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventLimit {
    /// It has more than [`EVENT_TAGS_MAX`] tags.
    Tags,
    /// Its attributes have more than [`EVENT_ENTRIES_MAX`] values.
    Entries,
    /// A value is nested in more than [`EVENT_NESTING_MAX`] lists and maps.
    Nesting,
}

impl EventsBuilder {
    /// A new event, with all fields absent. [`EventWriter::finish`] adds it.
    pub fn event(&mut self) -> EventWriter<'_> {
        let begin = self.lengths();
        EventWriter {
            record: EventRecord { attributes: Span::new(self.entries.len(), 0), ..EventRecord::EMPTY },
            begin,
            open: [0; EVENT_NESTING_MAX],
            depth: 0,
            into: self,
        }
    }

    /// Adds a copy of an event.
    pub fn push(&mut self, event: EventRef<'_>) -> Result<(), EventLimit> {
        let mut copy = self.event();
        for field in [TextField::Host, TextField::Service, TextField::State, TextField::Description] {
            if let Some(text) = event.text(field) {
                copy.plain_text(field, text);
            }
        }
        event.metric().into_iter().for_each(|metric| copy.metric(metric));
        event.time().into_iter().for_each(|time| copy.time(time));
        event.ttl_s().into_iter().for_each(|ttl_s| copy.ttl_s(ttl_s));
        if let Some(mut tags) = event.tags() {
            copy.no_tags();
            tags.try_for_each(|tag| copy.plain_tag(tag))?;
        }
        event.attributes().try_for_each(|(key, value)| copy.attribute(key, value))?;
        copy.finish();
        Ok(())
    }

    /// The events, borrowed, as a batch.
    pub fn batch(&self) -> Events<'_> {
        Events {
            text: Cow::Borrowed(&self.text),
            events: Cow::Borrowed(&self.events),
            tags: Cow::Borrowed(&self.tags),
            entries: Cow::Borrowed(&self.entries),
            ratios: Cow::Borrowed(&self.ratios),
        }
    }

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

    /// How many they are.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Forgets the events, keeps the memory.
    pub fn clear(&mut self) {
        let EventsBuilder { text, events, tags, entries, ratios } = self;
        text.clear();
        events.clear();
        tags.clear();
        entries.clear();
        ratios.clear();
    }

    /// Gives memory back, so that each array keeps at most so many bytes.
    pub fn shrink_to(&mut self, bytes_max: usize) {
        let EventsBuilder { text, events, tags, entries, ratios } = self;
        text.shrink_to(bytes_max);
        events.shrink_to(bytes_max / size_of::<EventRecord>());
        tags.shrink_to(bytes_max / size_of::<Span>());
        entries.shrink_to(bytes_max / size_of::<Entry>());
        ratios.shrink_to(bytes_max / size_of::<Ratio>());
    }

    /// Where the batch ends now, for [`EventsBuilder::truncate`].
    pub fn end(&self) -> EventsEnd {
        EventsEnd(self.lengths())
    }

    /// Forgets the events that were added since `end` was taken. Does nothing when the batch was cleared in between.
    pub fn truncate(&mut self, end: EventsEnd) {
        self.truncate_to(end.0);
    }

    /// Bytes of all texts. Spans have 32 bits: keep them below 4 GiB.
    pub fn text_bytes(&self) -> usize {
        self.text.len()
    }

    fn lengths(&self) -> Lengths {
        Lengths {
            text: self.text.len(),
            events: self.events.len(),
            tags: self.tags.len(),
            entries: self.entries.len(),
            ratios: self.ratios.len(),
        }
    }

    fn truncate_to(&mut self, lengths: Lengths) {
        self.text.truncate(lengths.text);
        self.events.truncate(lengths.events);
        self.tags.truncate(lengths.tags);
        self.entries.truncate(lengths.entries);
        self.ratios.truncate(lengths.ratios);
    }

    fn store_text(&mut self, text: impl Display) -> Span {
        let at = self.text.len();
        write!(self.text, "{text}").expect("a String takes all text, and Display of text gives no error");
        Span::new(at, self.text.len() - at)
    }

    /// The same without the formatting machinery, which costs more than copying a short text.
    #[inline]
    fn store_plain(&mut self, text: &str) -> Span {
        let at = self.text.len();
        self.text.push_str(text);
        Span::new(at, text.len())
    }

    #[inline]
    fn store_number(&mut self, number: NumberRef<'_>) -> Number {
        match number {
            NumberRef::I64(number) => Number::I64(number),
            NumberRef::F64(number) => Number::F64(number),
            NumberRef::F32(number) => Number::F32(number),
            NumberRef::Ratio(ratio) => {
                self.ratios.push(ratio);
                Number::Ratio((self.ratios.len() - 1) as u32)
            }
            NumberRef::BigInteger(digits) => Number::BigInteger(self.store_text(digits)),
        }
    }
}

/// An end of a batch, see [`EventsBuilder::end`].
#[derive(Clone, Copy, Debug)]
pub struct EventsEnd(Lengths);

/// Lengths of the arena and the arrays.
#[derive(Clone, Copy, Debug)]
struct Lengths {
    text: usize,
    events: usize,
    tags: usize,
    entries: usize,
    ratios: usize,
}

/// Writes one event. If it is dropped before [`EventWriter::finish`], the batch is as it was before.
#[derive(Debug)]
pub struct EventWriter<'b> {
    into: &'b mut EventsBuilder,
    record: EventRecord,
    /// What the drop goes back to.
    begin: Lengths,
    /// Indexes of the lists and maps that have begun and not ended.
    open: [u32; EVENT_NESTING_MAX],
    depth: usize,
}

impl EventWriter<'_> {
    /// Sets one of the fields that are texts.
    pub fn text(&mut self, field: TextField, text: impl Display) {
        self.record.texts[field as usize] = OptionalSpan(self.into.store_text(text));
    }

    /// [`EventWriter::text`] of a text that needs no formatting: faster.
    #[inline]
    pub fn plain_text(&mut self, field: TextField, text: &str) {
        self.record.texts[field as usize] = OptionalSpan(self.into.store_plain(text));
    }

    /// Sets what was measured.
    #[inline]
    pub fn metric(&mut self, metric: NumberRef<'_>) {
        self.record.metric = Some(self.into.store_number(metric));
    }

    /// Sets when it happened.
    pub fn time(&mut self, time: EventTime) {
        self.record.time = Some(time);
    }

    /// Sets for how many seconds the event is valid.
    pub fn ttl_s(&mut self, ttl_s: f32) {
        self.record.ttl_s = Some(ttl_s);
    }

    /// Tags are present, though there may be none.
    pub fn no_tags(&mut self) {
        if self.record.tags == OptionalSpan::ABSENT {
            self.record.tags = OptionalSpan(Span::new(self.into.tags.len(), 0));
        }
    }

    /// Adds a tag.
    pub fn tag(&mut self, tag: impl Display) -> Result<(), EventLimit> {
        self.count_tag()?;
        let tag = self.into.store_text(tag);
        self.into.tags.push(tag);
        Ok(())
    }

    /// [`EventWriter::tag`] of a text that needs no formatting: faster.
    #[inline]
    pub fn plain_tag(&mut self, tag: &str) -> Result<(), EventLimit> {
        self.count_tag()?;
        let tag = self.into.store_plain(tag);
        self.into.tags.push(tag);
        Ok(())
    }

    #[inline]
    fn count_tag(&mut self) -> Result<(), EventLimit> {
        self.no_tags();
        let OptionalSpan(tags) = &mut self.record.tags;
        if tags.len as usize == EVENT_TAGS_MAX {
            return Err(EventLimit::Tags);
        }
        tags.len += 1;
        Ok(())
    }

    /// Adds an attribute whose value is a text.
    pub fn text_attribute(&mut self, key: &str, text: impl Display) -> Result<(), EventLimit> {
        self.may_add()?;
        let value = Value::Text(self.into.store_text(text));
        self.add(key, value);
        Ok(())
    }

    /// [`EventWriter::text_attribute`] of a text that needs no formatting: faster.
    #[inline]
    pub fn plain_attribute(&mut self, key: &str, text: &str) -> Result<(), EventLimit> {
        self.may_add()?;
        let value = Value::Text(self.into.store_plain(text));
        self.add(key, value);
        Ok(())
    }

    /// Adds an attribute, or an entry of the list or map that began last and has not ended.
    pub fn attribute(&mut self, key: &str, value: ValueRef<'_>) -> Result<(), EventLimit> {
        let value = match value {
            ValueRef::Nil => Value::Nil,
            ValueRef::Bool(is_true) => Value::Bool(is_true),
            ValueRef::Number(number) => {
                self.may_add()?;
                Value::Number(self.into.store_number(number))
            }
            ValueRef::Text(text) => return self.plain_attribute(key, text),
            ValueRef::Keyword(name) => {
                self.may_add()?;
                Value::Keyword(self.into.store_text(name))
            }
            ValueRef::List(mut items) => {
                self.begin_list(key)?;
                items.try_for_each(|item| self.attribute("", item))?;
                self.end();
                return Ok(());
            }
            ValueRef::Map(mut entries) => {
                self.begin_map(key)?;
                entries.try_for_each(|(key, value)| self.attribute(key, value))?;
                self.end();
                return Ok(());
            }
        };
        self.may_add()?;
        self.add(key, value);
        Ok(())
    }

    /// Begins a list. Its items are added next, with empty keys.
    pub fn begin_list(&mut self, key: &str) -> Result<(), EventLimit> {
        self.begin(key, Value::List(0))
    }

    /// Begins a map. Its entries are added next.
    pub fn begin_map(&mut self, key: &str) -> Result<(), EventLimit> {
        self.begin(key, Value::Map(0))
    }

    fn begin(&mut self, key: &str, value: Value) -> Result<(), EventLimit> {
        self.may_add()?;
        let place = self.open.get_mut(self.depth).ok_or(EventLimit::Nesting)?;
        *place = self.into.entries.len() as u32;
        self.depth += 1;
        self.add(key, value);
        Ok(())
    }

    /// Ends the list or map that began last and has not ended.
    ///
    /// # Panics
    /// When there is none.
    pub fn end(&mut self) {
        assert!(self.depth > 0, "a list or map has begun");
        self.depth -= 1;
        let at = self.open[self.depth] as usize;
        let behind = (self.into.entries.len() - at - 1) as u32;
        match &mut self.into.entries[at].value {
            Value::List(entries) | Value::Map(entries) => *entries = behind,
            Value::Nil | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::Keyword(_) => {
                unreachable!("only lists and maps begin")
            }
        }
    }

    #[inline]
    fn may_add(&self) -> Result<(), EventLimit> {
        let entries = self.into.entries.len() - self.begin.entries;
        if entries >= EVENT_ENTRIES_MAX { Err(EventLimit::Entries) } else { Ok(()) }
    }

    #[inline]
    fn add(&mut self, key: &str, value: Value) {
        let key = if key.is_empty() { Span::default() } else { self.into.store_plain(key) };
        self.into.entries.push(Entry { key, value });
    }

    /// Adds the event to the batch.
    ///
    /// # Panics
    /// When a list or map has not ended.
    pub fn finish(mut self) {
        assert_eq!(self.depth, 0, "each list and map has ended");
        self.record.attributes.len = (self.into.entries.len() - self.begin.entries) as u32;
        self.into.events.push(self.record);
        self.begin = self.into.lengths();
    }
}

impl Drop for EventWriter<'_> {
    fn drop(&mut self) {
        self.into.truncate_to(self.begin);
    }
}
