//! One event of a message, into a batch (spec riemann §1.1).
//!
//! Tags and attributes are written as they come; what a later field may change is kept until the end.

use model::{EventTime, EventWriter, EventsBuilder, NumberRef, TextField};

use super::fields::{Fields, Undecodable, Wire};
use super::message::MessageReject;
use crate::text::Lossy;

const TEXTS: [TextField; 4] = [TextField::Host, TextField::Service, TextField::State, TextField::Description];

/// The texts that are fields of an event, by [`TextField`].
type Texts<'a> = [Option<&'a [u8]>; TEXTS.len()];

/// Fields of which the last one counts.
#[derive(Default)]
struct Known<'a> {
    texts: Texts<'a>,
    /// Attributes with the keys of texts. They override the texts, wherever they are in the message.
    overriding: Texts<'a>,
    seconds: Option<i64>,
    micros: Option<i64>,
    integer: Option<i64>,
    double: Option<f64>,
    single: Option<f32>,
}

/// Decodes an event and adds it. On an error nothing is added.
pub(super) fn event(
    bytes: &[u8],
    received: EventTime,
    into: &mut EventsBuilder,
) -> Result<(), MessageReject> {
    let mut event = into.event();
    let mut known = Known::default();
    let mut fields = Fields::of(bytes);
    while let Some(field) = fields.next()? {
        match field {
            (1, Wire::Varint(time)) => known.seconds = Some(time as i64),
            (2, Wire::Bytes(state)) => known.texts[TextField::State as usize] = Some(state),
            (3, Wire::Bytes(service)) => known.texts[TextField::Service as usize] = Some(service),
            (4, Wire::Bytes(host)) => known.texts[TextField::Host as usize] = Some(host),
            (5, Wire::Bytes(text)) => known.texts[TextField::Description as usize] = Some(text),
            (7, Wire::Bytes(tag)) => match str::from_utf8(tag) {
                Ok(tag) => event.plain_tag(tag)?,
                Err(_) => event.tag(Lossy(tag))?,
            },
            (8, Wire::Four(ttl_s)) => event.ttl_s(f32::from_le_bytes(ttl_s)),
            (9, Wire::Bytes(attribute)) => add_attribute(attribute, &mut known.overriding, &mut event)?,
            (10, Wire::Varint(time)) => known.micros = Some(time as i64),
            (13, Wire::Varint(metric)) => known.integer = Some(zigzag(metric)),
            (14, Wire::Eight(metric)) => known.double = Some(f64::from_le_bytes(metric)),
            (15, Wire::Four(metric)) => known.single = Some(f32::from_le_bytes(metric)),
            _unknown => {}
        }
    }
    known.write(received, event);
    Ok(())
}

impl Known<'_> {
    fn write(&self, received: EventTime, mut event: EventWriter<'_>) {
        for (at, field) in TEXTS.into_iter().enumerate() {
            match self.overriding[at].or(self.texts[at]).map(|text| (text, str::from_utf8(text))) {
                None => {}
                Some((_, Ok(text))) => event.plain_text(field, text),
                Some((bytes, Err(_))) => event.text(field, Lossy(bytes)),
            }
        }
        if let Some(metric) = self.integer {
            event.metric(NumberRef::I64(metric));
        } else if let Some(metric) = self.double {
            event.metric(NumberRef::F64(metric));
        } else if let Some(metric) = self.single {
            event.metric(NumberRef::F32(metric));
        }
        event.time(match (self.micros, self.seconds) {
            (Some(micros), _) => EventTime::Micros(micros),
            (None, Some(seconds)) => EventTime::Seconds(seconds),
            (None, None) => received,
        });
        event.finish();
    }
}

/// `Attribute { required string key = 1; string value = 2 }`. An absent value is empty.
fn add_attribute<'a>(
    bytes: &'a [u8],
    overriding: &mut Texts<'a>,
    event: &mut EventWriter<'_>,
) -> Result<(), MessageReject> {
    let (mut key, mut value) = (None, &b""[..]);
    let mut fields = Fields::of(bytes);
    while let Some(field) = fields.next()? {
        match field {
            (1, Wire::Bytes(text)) => key = Some(text),
            (2, Wire::Bytes(text)) => value = text,
            _unknown => {}
        }
    }
    match key.ok_or(Undecodable)? {
        b"tags" | b"time" | b"ttl" | b"metric" => {}
        b"host" => overriding[TextField::Host as usize] = Some(value),
        b"service" => overriding[TextField::Service as usize] = Some(value),
        b"state" => overriding[TextField::State as usize] = Some(value),
        b"description" => overriding[TextField::Description as usize] = Some(value),
        key => match (str::from_utf8(key), str::from_utf8(value)) {
            (Ok(key), Ok(value)) => event.plain_attribute(key, value)?,
            (Ok(key), Err(_)) => event.text_attribute(key, Lossy(value))?,
            (Err(_), _) => event.text_attribute(&String::from_utf8_lossy(key), Lossy(value))?,
        },
    }
    Ok(())
}

/// The integer of a `sint64`.
fn zigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}
