//! Events between the house's batches and the language's values (spec riemann §§1.1, 1.2).
//!
//! Texts that come again (hosts, services, states, tags, keys) are the same text in all events: [`Interner`].

use std::hash::BuildHasher;
use std::sync::Arc;

use arcstr::ArcStr;
use model::{
    EventLimit, EventRef, EventTime, EventWriter, EventsBuilder, NumberRef, Ratio, TextField, ValueRef,
};

use crate::event::{Event, Field};
use crate::index::is_infinity;
use crate::nodes::fields;
use crate::number::Number;
use crate::print::to_str;
use crate::value::Value;

/// Places of the interner: a power of two.
const PLACES: usize = 1 << 14;
/// Longer texts are seldom the same.
const TEXT_BYTES_MAX: usize = 256;
/// Lists and maps within each other that an output gets, at most; deeper ones become texts.
const NESTING_MAX: u32 = model::limits::EVENT_NESTING_MAX as u32;

/// Texts that came before, one at each place of a table: a new text takes the place of an older one with the same hash.
pub(super) struct Interner {
    places: Box<[ArcStr]>,
    hasher: foldhash::fast::FixedState,
}

impl std::fmt::Debug for Interner {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Interner").finish_non_exhaustive()
    }
}

impl Interner {
    /// An empty one. The seed must not be known to clients.
    pub(super) fn new(seed: u64) -> Interner {
        Interner {
            places: vec![ArcStr::new(); PLACES].into(),
            hasher: foldhash::fast::FixedState::with_seed(seed),
        }
    }

    fn text(&mut self, text: &str) -> ArcStr {
        if text.len() > TEXT_BYTES_MAX {
            return ArcStr::from(text);
        }
        let place = &mut self.places[self.hasher.hash_one(text) as usize % PLACES];
        if place != text {
            *place = ArcStr::from(text);
        }
        place.clone()
    }

    /// The event of a record. Its attributes become custom fields, and those named `host`, `service`, `state` or `description`
    /// replace the proper fields, as Riemann does it; `time`, `ttl`, `metric` and `tags` are ignored.
    pub(super) fn event(&mut self, record: EventRef<'_>) -> Event {
        let mut event = Event::default();
        let texts = [
            (Field::Host, TextField::Host),
            (Field::Service, TextField::Service),
            (Field::State, TextField::State),
        ];
        for (field, of) in texts {
            if let Some(text) = record.text(of) {
                event.set(field, Value::Text(self.text(text)));
            }
        }
        if let Some(text) = record.text(TextField::Description) {
            event.set(Field::Description, Value::text(text));
        }
        if let Some(metric) = record.metric() {
            event.set(Field::Metric, number(metric));
        }
        match record.time() {
            Some(EventTime::Seconds(seconds)) => event.set(Field::Time, seconds.into()),
            Some(EventTime::Micros(micros)) => event.set(Field::Time, (micros as f64 / 1e6).into()),
            None => {}
        }
        if let Some(ttl_s) = record.ttl_s() {
            event.set(Field::Ttl, Value::Number(Number::Float(ttl_s)));
        }
        if let Some(tags) = record.tags() {
            let tags = tags.map(|tag| Value::Text(self.text(tag)));
            event.set(Field::Tags, Value::vector(tags));
        }
        let mut custom = Vec::new();
        for (key, value) in record.attributes() {
            let value = self.value(value);
            match Field::of(key) {
                Some(field @ (Field::Host | Field::Service | Field::State | Field::Description)) => {
                    event.set(field, value);
                }
                Some(Field::Metric | Field::Tags | Field::Time | Field::Ttl) => {}
                None => custom.push((self.text(key), value)),
            }
        }
        if !custom.is_empty() {
            event.set_attributes(custom);
        }
        event
    }

    fn value(&mut self, value: ValueRef<'_>) -> Value {
        match value {
            ValueRef::Nil => Value::Nil,
            ValueRef::Bool(is_true) => Value::Bool(is_true),
            ValueRef::Number(given) => number(given),
            ValueRef::Text(text) => Value::Text(self.text(text)),
            ValueRef::Keyword(name) => Value::Keyword(self.text(name)),
            ValueRef::List(items) => {
                let items: Vec<Value> = items.map(|item| self.value(item)).collect();
                Value::vector(items)
            }
            ValueRef::Map(entries) => {
                let entries: Vec<(Value, Value)> =
                    entries.map(|(key, value)| (Value::Keyword(self.text(key)), self.value(value))).collect();
                Value::map(entries)
            }
        }
    }
}

fn number(number: NumberRef<'_>) -> Value {
    Value::Number(match number {
        NumberRef::I64(number) => Number::Int(number),
        NumberRef::F64(number) => Number::Double(number),
        NumberRef::F32(number) => Number::Float(number),
        NumberRef::Ratio(ratio) => {
            let (numerator, denominator) = (ratio.numerator(), ratio.denominator());
            Number::Ratio(Arc::new(num_rational::Ratio::new(numerator.into(), denominator.into())))
        }
        NumberRef::BigInteger(digits) => match digits.parse() {
            Ok(big) => Number::Big(Arc::new(big)),
            Err(_) => Number::Double(f64::NAN),
        },
    })
}

/// The event that a value is: itself, or that of a map with keywords.
pub(super) fn event_of(value: &Value) -> Option<Arc<Event>> {
    match value {
        Value::Event(event) => Some(Arc::clone(event)),
        Value::Map(map) => {
            let mut event = Event::default();
            for (key, value) in map.iter() {
                // What has no name cannot be a field.
                let Value::Keyword(name) = key else { continue };
                match Field::of(name) {
                    Some(field) => event.set(field, value.clone()),
                    None => event.set_attribute(name.clone(), value.clone()),
                }
            }
            Some(Arc::new(event))
        }
        _ => None,
    }
}

/// As [`event_of`], of a value that nobody needs any more.
pub(super) fn take_event(value: &mut Value) -> Option<Arc<Event>> {
    match std::mem::take(value) {
        Value::Event(event) => Some(event),
        other => {
            let event = event_of(&other);
            *value = other;
            event
        }
    }
}

/// Appends an event to a batch, for an output or a reply.
///
/// # Errors
/// If it has more tags or attributes than an event may have; nothing is appended then.
pub fn write(event: &Event, into: &mut EventsBuilder) -> Result<(), EventLimit> {
    let mut record = into.event();
    let texts = [
        (Field::Host, TextField::Host),
        (Field::Service, TextField::Service),
        (Field::State, TextField::State),
        (Field::Description, TextField::Description),
    ];
    for (field, to) in texts {
        match event.get(field) {
            Value::Nil => {}
            Value::Text(text) => record.plain_text(to, text),
            other => record.plain_text(to, &to_str(other)),
        }
    }
    if let Value::Number(metric) = event.get(Field::Metric) {
        with_number(metric, |metric| record.metric(metric));
    }
    match event.get(Field::Time) {
        Value::Number(Number::Int(seconds)) => record.time(EventTime::Seconds(*seconds)),
        Value::Number(time) => record.time(EventTime::Micros(fields::to_us(time))),
        _ => {}
    }
    match event.get(Field::Ttl) {
        Value::Number(ttl) => record.ttl_s(ttl.as_f64() as f32),
        ttl if is_infinity(ttl) => record.ttl_s(f32::INFINITY),
        _ => {}
    }
    match event.get(Field::Tags) {
        Value::Nil => {}
        tags => {
            record.no_tags();
            for tag in fields::items(tags).unwrap_or_default() {
                match &tag {
                    Value::Text(tag) => record.plain_tag(tag)?,
                    other => record.plain_tag(&to_str(other))?,
                }
            }
        }
    }
    for (name, value) in event.attributes() {
        write_value(&mut record, name, value, NESTING_MAX)?;
    }
    record.finish();
    Ok(())
}

fn with_number<T>(number: &Number, take: impl FnOnce(NumberRef<'_>) -> T) -> T {
    match number {
        Number::Int(number) => take(NumberRef::I64(*number)),
        Number::Float(number) => take(NumberRef::F32(*number)),
        Number::Double(number) => take(NumberRef::F64(*number)),
        Number::Ratio(ratio) => {
            let parts = (i64::try_from(ratio.numer()), i64::try_from(ratio.denom()));
            let small = match parts {
                (Ok(numerator), Ok(denominator)) => Ratio::of(numerator, denominator),
                _ => None,
            };
            take(small.unwrap_or(NumberRef::F64(number.as_f64())))
        }
        Number::Big(big) => take(NumberRef::BigInteger(&big.to_string())),
    }
}

fn write_value(
    record: &mut EventWriter<'_>,
    name: &str,
    value: &Value,
    depth: u32,
) -> Result<(), EventLimit> {
    match value {
        Value::Nil => record.attribute(name, ValueRef::Nil),
        Value::Bool(is_true) => record.attribute(name, ValueRef::Bool(*is_true)),
        Value::Number(number) => {
            with_number(number, |number| record.attribute(name, ValueRef::Number(number)))
        }
        Value::Text(text) => record.plain_attribute(name, text),
        Value::Keyword(keyword) => record.attribute(name, ValueRef::Keyword(keyword)),
        Value::Map(map) if depth > 0 => {
            record.begin_map(name)?;
            for (key, value) in map.iter() {
                let key = match key {
                    Value::Keyword(key) | Value::Text(key) => key.clone(),
                    other => to_str(other).into(),
                };
                write_value(record, &key, value, depth - 1)?;
            }
            record.end();
            Ok(())
        }
        Value::Vector(_) | Value::List(_) | Value::Set(_) if depth > 0 => {
            record.begin_list(name)?;
            for item in fields::items(value).unwrap_or_default() {
                write_value(record, "", &item, depth - 1)?;
            }
            record.end();
            Ok(())
        }
        other => record.plain_attribute(name, &to_str(other)),
    }
}
