//! Riemann's wire formats: messages in protobuf, events in JSON (spec riemann §1, §3.4, §6.2).
//!
//! Path of a message: a connection's bytes -> [`framer`] -> [`decode`], which writes the events into a batch -> the source's routes;
//! the reply is one of `encode`. A datagram is one message without a length. Path of a line of JSON: [`json::decode`] -> the same
//! batch. [`json::encode`] is what subscribers read. [`lines`]: events of Graphite and OpenTSDB; [`points`]: events of points.
//! Not here: what a query means, streams, sockets, when a reply is due.
//! Invariants: a message gives all its events or none, and one reject. No input makes it panic or recurse deeper than a constant
//! (fuzz target `riemann`). Each byte costs a bounded number of steps and of bytes.

mod attributes;
mod encode;
mod event;
mod fields;
pub mod json;
mod keys;
pub mod lines;
mod message;
pub mod points;
#[cfg(any(test, feature = "reference"))]
pub mod reference;
mod string_form;
#[cfg(test)]
mod tests;

pub use encode::{OK_REPLY, error_reply, event_messages, events_reply, framed, more_events, request};
pub use message::{EVENTS_PER_MESSAGE_MAX, Limits, Message, MessageReject, decode, events_in_rejected};
pub use string_form::StringForm;

use crate::frame::{LengthFramer, LengthOrder};

/// Default limit of a message on a connection, without its length.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// The highest limit that an option may set: Riemann closes the connection of a longer message.
pub const MESSAGE_BYTES_LIMIT: usize = i32::MAX as usize;

const _: () = assert!(MESSAGE_BYTES_MAX <= MESSAGE_BYTES_LIMIT, "the default is allowed");

/// Splits a connection into messages. An empty message is legal. The framer's memory grows with the bytes that have arrived, whatever
/// the length promises.
pub fn framer(message_bytes_max: usize) -> LengthFramer {
    LengthFramer::ordered(LengthOrder::Big, message_bytes_max.min(MESSAGE_BYTES_LIMIT))
}
