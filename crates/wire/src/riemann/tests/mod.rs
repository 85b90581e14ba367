//! Tables for each rule of the formats, properties, and the corpus.

mod corpus;
mod decoding;
mod encoding;
mod json;
mod properties;
mod recorded;

use model::{EventLimit, EventTime, EventWriter, EventsBuilder};

use super::{Limits, Message, MessageReject, decode};

/// When the messages of tests arrive.
const RECEIVED: EventTime = EventTime::Micros(1_700_000_000_123_000);

/// Decodes a message into a batch of its own.
fn decoded(bytes: &[u8]) -> (EventsBuilder, Result<Message<'_>, MessageReject>) {
    let mut batch = EventsBuilder::default();
    let result = decode(bytes, RECEIVED, Limits::default(), &mut batch);
    (batch, result)
}

/// A batch of one event.
fn one(write: impl FnOnce(&mut EventWriter<'_>)) -> EventsBuilder {
    let mut batch = EventsBuilder::default();
    let mut event = batch.event();
    write(&mut event);
    event.finish();
    batch
}

/// A writer's step in a test, which is within all limits.
fn fits(written: Result<(), EventLimit>) {
    written.expect("it is within the limits");
}

/// A field of a message of up to 127 bytes.
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    assert!(value.len() < 0x80, "the length has one byte");
    [&[number << 3 | 2, value.len() as u8], value].concat()
}
