//! One event of a message, into a batch (spec riemann §1.1).
//!
//! Tags and attributes are written as they come; what a later field may change is kept until the end.

use model::{EventTime, EventWriter, EventsBuilder, NumberRef, Span, TextField};

use super::fields::{Fields, Undecodable};
use super::keys::{attribute, event as keys};
use super::message::MessageReject;
use crate::steps::touch;
use crate::text::Lossy;

const TEXTS: [TextField; 4] = [TextField::Host, TextField::Service, TextField::State, TextField::Description];

/// Attributes with the keys of texts, by [`TextField`]: their values.
type Overriding<'a> = [Option<&'a [u8]>; TEXTS.len()];

/// Fields of which the last one counts.
#[derive(Default)]
struct Known<'a> {
    /// Where they are in the event, by [`TextField`].
    texts: [Option<Span>; TEXTS.len()],
    /// They override the texts, wherever they are in the message.
    overriding: Overriding<'a>,
    seconds: Option<i64>,
    micros: Option<i64>,
    integer: Option<i64>,
    double: Option<f64>,
    single: Option<f32>,
}

/// Decodes an event and adds it. Gives the number of texts that attributes override. On an error nothing is added.
pub(super) fn event(
    bytes: &[u8],
    received: EventTime,
    into: &mut EventsBuilder,
) -> Result<usize, MessageReject> {
    let mut event = into.event();
    let mut known = Known::default();
    let mut fields = Fields::of(bytes);
    while let Some(key) = fields.next_key()? {
        match key {
            keys::TIME => known.seconds = Some(fields.varint()? as i64),
            keys::STATE => known.texts[TextField::State as usize] = Some(place(bytes, &mut fields)?),
            keys::SERVICE => known.texts[TextField::Service as usize] = Some(place(bytes, &mut fields)?),
            keys::HOST => known.texts[TextField::Host as usize] = Some(place(bytes, &mut fields)?),
            keys::DESCRIPTION => {
                known.texts[TextField::Description as usize] = Some(place(bytes, &mut fields)?)
            }
            keys::TAG => add_tag(fields.bytes()?, &mut event)?,
            keys::TTL => event.ttl_s(f32::from_le_bytes(fields.array()?)),
            keys::ATTRIBUTE => add_attribute(fields.bytes()?, &mut known.overriding, &mut event)?,
            keys::TIME_MICROS => known.micros = Some(fields.varint()? as i64),
            keys::METRIC_SINT64 => known.integer = Some(zigzag(fields.varint()?)),
            keys::METRIC_D => known.double = Some(f64::from_le_bytes(fields.array()?)),
            keys::METRIC_F => known.single = Some(f32::from_le_bytes(fields.array()?)),
            unknown => fields.skip(unknown)?,
        }
    }
    let overridden = known.write(bytes, received, &mut event);
    event.finish();
    Ok(overridden)
}

impl Known<'_> {
    fn write(&self, bytes: &[u8], received: EventTime, event: &mut EventWriter<'_>) -> usize {
        let run = Run::of(bytes, &self.texts);
        let mut overridden = 0;
        for (at, field) in TEXTS.into_iter().enumerate() {
            match (self.overriding[at], self.texts[at]) {
                (None, None) => {}
                (Some(text), _) => {
                    overridden += 1;
                    add_text(field, text, event);
                }
                (None, Some(span)) => match run.get(span) {
                    Some(text) => event.plain_text(field, text),
                    None => add_text(field, span.of(bytes), event),
                },
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
        overridden
    }
}

/// The bytes from the first text of an event to its last one, if they are UTF-8 as a whole. Mostly they are, as keys and lengths
/// between texts are ASCII: one check instead of one for each text.
struct Run<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Run<'a> {
    fn of(bytes: &'a [u8], texts: &[Option<Span>]) -> Run<'a> {
        let (mut begin, mut end) = (bytes.len(), 0);
        for span in texts.iter().flatten() {
            let at = span.at as usize;
            (begin, end) = (begin.min(at), end.max(at + span.len as usize));
        }
        let run = bytes.get(begin..end).unwrap_or_default();
        touch(run.len());
        Run { text: str::from_utf8(run).unwrap_or_default(), at: begin }
    }

    /// The text, if it is in the run and begins and ends between characters.
    fn get(&self, span: Span) -> Option<&'a str> {
        let at = span.at as usize - self.at;
        self.text.get(at..at + span.len as usize)
    }
}

/// Reads a text's bytes, and gives their place in the event.
#[inline(always)]
fn place(event: &[u8], fields: &mut Fields<'_>) -> Result<Span, Undecodable> {
    let text = fields.bytes()?;
    Ok(Span::new(event.len() - fields.bytes_left() - text.len(), text.len()))
}

#[cold]
fn add_text(field: TextField, text: &[u8], event: &mut EventWriter<'_>) {
    match str::from_utf8(text) {
        Ok(text) => event.plain_text(field, text),
        Err(_) => event.text(field, Lossy(text)),
    }
}

fn add_tag(tag: &[u8], event: &mut EventWriter<'_>) -> Result<(), MessageReject> {
    match str::from_utf8(tag) {
        Ok(tag) => event.plain_tag(tag)?,
        Err(_) => event.tag(Lossy(tag))?,
    }
    Ok(())
}

/// `Attribute { required string key = 1; string value = 2 }`. An absent value is empty.
fn add_attribute<'a>(
    bytes: &'a [u8],
    overriding: &mut Overriding<'a>,
    event: &mut EventWriter<'_>,
) -> Result<(), MessageReject> {
    let (mut key, mut value) = (None, &b""[..]);
    let mut fields = Fields::of(bytes);
    while let Some(field) = fields.next_key()? {
        match field {
            attribute::KEY => key = Some(fields.bytes()?),
            attribute::VALUE => value = fields.bytes()?,
            unknown => fields.skip(unknown)?,
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
