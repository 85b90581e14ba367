//! One message: events, a query, or a reply (spec riemann §1, §1.1).
//!
//! The message's fields are optional, and the last one counts where one repeats; queries merge, so the last text of any of them counts.
//! A field whose wire type is not the one of its number is an unknown field, and unknown fields are ignored. No field of Riemann's is
//! a repeated number, so there are no packed forms: a number in bytes is an unknown field too.
//! Legacy `State` messages must be decodable, and are ignored otherwise.
//! Texts that are not UTF-8 are accepted with U+FFFD in them, as Java's decoder does for this schema.

use std::borrow::Cow;

use model::{EventLimit, EventTime, EventsBuilder};

use super::event::event;
use super::fields::{Fields, Undecodable};
use super::keys::{message as keys, query};

/// Default limit of events in one message. An event of two bytes takes 96 bytes in a batch, so the message's length is no bound.
pub const EVENTS_PER_MESSAGE_MAX: usize = 1 << 16;

/// Spans of a batch have 32 bits.
const TEXT_BYTES_MAX: usize = u32::MAX as usize;

/// Bytes of text that a byte may become: one that is not UTF-8 becomes U+FFFD.
const EXPANSION_MAX: usize = char::REPLACEMENT_CHARACTER.len_utf8();

/// Limits of a message. Tags and attributes have those of [`EventLimit`].
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most events in a message.
    pub events_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { events_max: EVENTS_PER_MESSAGE_MAX }
    }
}

/// The fields of a message beside its events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message<'a> {
    /// How many events were added to the batch.
    pub events: usize,
    /// How many hosts, services, states and descriptions are those of an attribute with the same key. Hardly a sender wants that: it is
    /// worth a line in the log, once.
    pub overridden: usize,
    /// Text of the query, empty for a query without a text.
    pub query: Option<Cow<'a, str>>,
    /// It has legacy states, which were ignored.
    pub has_states: bool,
    /// Of a reply: whether the request was processed.
    pub ok: Option<bool>,
    /// Of a reply: text for humans.
    pub error: Option<Cow<'a, str>>,
}

/// Why a message was rejected as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageReject {
    /// It is no protobuf message, or lacks a required field. Riemann closes the connection without a reply.
    Undecodable,
    /// It has more than [`Limits::events_max`] events.
    TooManyEvents,
    /// An event has more than `EVENT_TAGS_MAX` tags.
    TooManyTags,
    /// An event has more than `EVENT_ENTRIES_MAX` attributes.
    TooManyAttributes,
    /// The texts of the batch would take 4 GiB.
    TooMuchText,
}

impl MessageReject {
    /// Every reason.
    pub const ALL: [MessageReject; 5] = [
        MessageReject::Undecodable,
        MessageReject::TooManyEvents,
        MessageReject::TooManyTags,
        MessageReject::TooManyAttributes,
        MessageReject::TooMuchText,
    ];

    /// The reason's name.
    pub fn word(self) -> &'static str {
        match self {
            MessageReject::Undecodable => "undecodable",
            MessageReject::TooManyEvents => "too_many_events",
            MessageReject::TooManyTags => "too_many_tags",
            MessageReject::TooManyAttributes => "too_many_attributes",
            MessageReject::TooMuchText => "too_much_text",
        }
    }

    /// The text of the reply. `None` where the connection is closed without one.
    pub fn reply(self) -> Option<&'static str> {
        match self {
            MessageReject::Undecodable => None,
            MessageReject::TooManyEvents => {
                Some("the message has too many events; send fewer in one message")
            }
            MessageReject::TooManyTags => Some("an event has too many tags"),
            MessageReject::TooManyAttributes => Some("an event has too many attributes"),
            MessageReject::TooMuchText => {
                Some("the message has too much text; send fewer events in one message")
            }
        }
    }
}

impl From<Undecodable> for MessageReject {
    fn from(_: Undecodable) -> MessageReject {
        MessageReject::Undecodable
    }
}

impl From<EventLimit> for MessageReject {
    fn from(limit: EventLimit) -> MessageReject {
        match limit {
            EventLimit::Tags => MessageReject::TooManyTags,
            // Attributes of a message are texts: none is nested.
            EventLimit::Entries | EventLimit::Nesting => MessageReject::TooManyAttributes,
        }
    }
}

/// Decodes one message, without its length, and appends its events to `into`. Events without a time get the time of `received`:
/// Riemann's has a resolution of milliseconds.
///
/// # Errors
/// Why the message was rejected. No event was added.
pub fn decode<'a>(
    bytes: &'a [u8],
    received: EventTime,
    limits: Limits,
    into: &mut EventsBuilder,
) -> Result<Message<'a>, MessageReject> {
    let end = into.end();
    let decoded = decode_fields(bytes, received, limits, into);
    if decoded.is_err() {
        into.truncate(end);
    }
    decoded
}

/// The number of events in a rejected message, up to its first byte that cannot be decoded. Their contents are not read.
pub fn events_in_rejected(bytes: &[u8]) -> usize {
    let mut events = 0;
    let mut fields = Fields::of(bytes);
    while let Ok(Some(key)) = fields.next_key() {
        if fields.skip(key).is_err() {
            break;
        }
        events += usize::from(key == keys::EVENT);
    }
    events
}

fn decode_fields<'a>(
    bytes: &'a [u8],
    received: EventTime,
    limits: Limits,
    into: &mut EventsBuilder,
) -> Result<Message<'a>, MessageReject> {
    let mut message = Message::default();
    let mut fields = Fields::of(bytes);
    while let Some(key) = fields.next_key()? {
        match key {
            keys::OK => message.ok = Some(fields.varint()? != 0),
            keys::ERROR => message.error = Some(String::from_utf8_lossy(fields.bytes()?)),
            keys::STATE => {
                Fields::of(fields.bytes()?).skip_all()?;
                message.has_states = true;
            }
            keys::QUERY => decode_query(fields.bytes()?, &mut message.query)?,
            keys::EVENT => {
                let bytes = fields.bytes()?;
                if message.events == limits.events_max {
                    return Err(MessageReject::TooManyEvents);
                }
                if bytes.len().saturating_mul(EXPANSION_MAX)
                    >= TEXT_BYTES_MAX.saturating_sub(into.text_bytes())
                {
                    return Err(MessageReject::TooMuchText);
                }
                message.overridden += event(bytes, received, into)?;
                message.events += 1;
            }
            unknown => fields.skip(unknown)?,
        }
    }
    Ok(message)
}

fn decode_query<'a>(bytes: &'a [u8], text: &mut Option<Cow<'a, str>>) -> Result<(), Undecodable> {
    text.get_or_insert_default();
    let mut fields = Fields::of(bytes);
    while let Some(key) = fields.next_key()? {
        match key {
            query::STRING => *text = Some(String::from_utf8_lossy(fields.bytes()?)),
            unknown => fields.skip(unknown)?,
        }
    }
    Ok(())
}
