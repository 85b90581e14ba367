//! Reads messages of events, and makes batches of them.
//!
//! Path of a line: [`line()`] -> `wire::riemann::json` or `lines` -> [`batches`]. Path of a message: it is a datagram, or [`read`] cuts it out of a connection -> **[`message`]** -> `wire::riemann::decode` ->
//! [`batches`] -> `Shard::push`. Not here: the format (`wire::riemann`), when replies are written (`staunch`).
//! Invariants: each message of a connection has one reply, in order, except an undecodable one, which ends the connection. Replies
//! take less than three bytes for each byte of their messages and lengths.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use config::plan::{RiemannEncoding, RiemannSource};
use model::{
    Batches, EventLimit, EventTime, EventsBuilder, Now, Receipt, Records, Reject, SourceAccount, SourceId,
    Span,
};
use wire::frame::LengthFramer;
use wire::opentsdb;
use wire::riemann::json::{self, JsonLine, JsonOptions, JsonReject, JsonTimes};
use wire::riemann::lines::{self, OpentsdbLine};
use wire::riemann::{self, Limits, MessageReject};

use crate::intake::protocol::ProtocolReplies;
use crate::intake::rejects::settle_rejects;

/// Replies to `version` for one read, about: a client has one under way, if any.
const VERSION_REPLIES_BYTES_MAX: usize = 4096;

/// The events of one read, and its rejected records.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) events: EventsBuilder,
    /// Messages read, valid or not.
    pub(crate) messages: usize,
    /// Rejected records, by [`Reject::index`].
    pub(crate) rejects: [u64; Reject::COUNT],
    /// The first rejected datagram and its reason.
    pub(crate) first_reject: Option<(Reject, Span)>,
}

// Not derived: the standard library has no default of such a long array.
impl Default for Parsed {
    fn default() -> Parsed {
        Parsed {
            events: EventsBuilder::default(),
            messages: 0,
            rejects: [0; Reject::COUNT],
            first_reject: None,
        }
    }
}

impl Parsed {
    /// Empties it, and keeps so many bytes of each array.
    pub(crate) fn clear(&mut self, kept_bytes_max: usize) {
        self.events.clear();
        self.events.shrink_to(kept_bytes_max);
        self.messages = 0;
        self.rejects = [0; Reject::COUNT];
        self.first_reject = None;
    }
}

/// Why the rest of a connection is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// A message could not be decoded, and was counted.
    Undecodable,
    /// A message could not be framed; it is not counted yet.
    Lost(Reject),
}

/// Reads the messages that `bytes` complete, and appends a reply for each. `bad` gets each rejected one with its reason.
///
/// # Errors
/// Why the rest is not read. Everything before it was.
pub(crate) fn read(
    framer: &mut LengthFramer,
    bytes: &[u8],
    now: Now,
    into: &mut Parsed,
    replies: &mut ProtocolReplies,
    mut bad: impl FnMut(&[u8], Reject),
) -> Result<(), Unread> {
    let mut rest = bytes;
    while let Some(next) = framer.next(&mut rest).map_err(Unread::Lost)? {
        match message(&next, now, into, Some(replies)) {
            Ok(()) => {}
            Err(reason) => {
                bad(&next, reason);
                if reason == Reject::BadMessage {
                    framer.discard();
                    return Err(Unread::Undecodable);
                }
            }
        }
    }
    Ok(())
}

/// Reads one message, and appends the reply.
///
/// # Errors
/// Why it was rejected, which is counted. For [`Reject::BadMessage`] there is no reply.
pub(crate) fn message(
    bytes: &[u8],
    now: Now,
    into: &mut Parsed,
    replies: Option<&mut ProtocolReplies>,
) -> Result<(), Reject> {
    into.messages += 1;
    let (reply, result) = match riemann::decode(bytes, received(now), Limits::default(), &mut into.events) {
        Ok(message) => match (message.query, replies) {
            (Some(query), Some(replies)) => {
                replies.query(&query);
                return Ok(());
            }
            (Some(_), None) => return Ok(()),
            (None, replies) => return replied(None, replies, Ok(())),
        },
        Err(why) => {
            let reason = reason_of(why);
            into.rejects[reason.index()] += riemann::events_in_rejected(bytes).max(1) as u64;
            if reason == Reject::BadMessage {
                return Err(reason);
            }
            (why.reply(), Err(reason))
        }
    };
    replied(reply, replies, result)
}

/// Reads one line, and appends the reply, if its client expects one.
///
/// # Errors
/// Why it was rejected, which is counted, and of JSON in the reply.
pub(crate) fn line(
    bytes: &[u8],
    source: &RiemannSource,
    now: Now,
    into: &mut Parsed,
    replies: Option<&mut Vec<u8>>,
) -> Result<(), Reject> {
    into.messages += 1;
    let result = match source.encoding {
        RiemannEncoding::Graphite => lines::graphite(bytes, source.tags, &mut into.events),
        RiemannEncoding::Opentsdb => lines::opentsdb(bytes, &mut into.events).map(|line| {
            if let (OpentsdbLine::Version, Some(replies)) = (line, replies)
                && replies.len() < VERSION_REPLIES_BYTES_MAX
            {
                replies.extend_from_slice(opentsdb::VERSION_REPLY);
            }
        }),
        RiemannEncoding::Http | RiemannEncoding::Messages => json_line(bytes, source, now, into, replies),
    };
    if let Err(reason) = result {
        into.rejects[reason.index()] += 1;
    }
    result
}

/// Reads one line of JSON, and appends the reply, which is a line as well. A line without an event has none.
fn json_line(
    bytes: &[u8],
    source: &RiemannSource,
    now: Now,
    into: &mut Parsed,
    replies: Option<&mut Vec<u8>>,
) -> Result<(), Reject> {
    let options = JsonOptions { bytes_max: source.message_bytes_max, times: JsonTimes::Seconds };
    let result = json::decode(bytes, received(now), options, &mut into.events);
    if let Some(replies) = replies {
        match &result {
            Ok(JsonLine::Null) => return Ok(()),
            Ok(JsonLine::Event) => replies.extend_from_slice(json::OK_REPLY),
            Err(why) => json::error_reply(why, replies),
        }
        replies.push(b'\n');
    }
    result.map(drop).map_err(|why| match why {
        JsonReject::Limit(EventLimit::Tags | EventLimit::Entries) => Reject::TooManyTags,
        JsonReject::TooLong(_) | JsonReject::TooMuchText => Reject::MessageTooBig,
        JsonReject::Syntax { .. }
        | JsonReject::LongNumber
        | JsonReject::NotAnObject
        | JsonReject::BadField { .. }
        | JsonReject::BadTime(_)
        | JsonReject::Limit(EventLimit::Nesting) => Reject::BadMessage,
    })
}

/// The time of an event that has none: Riemann's clock has milliseconds.
fn received(now: Now) -> EventTime {
    let received_ms = i64::try_from(now.wall_ns / 1_000_000).unwrap_or(i64::MAX / 1000);
    EventTime::Micros(received_ms * 1000)
}

/// Appends a reply: an error, or none.
fn replied(
    error: Option<&str>,
    replies: Option<&mut ProtocolReplies>,
    result: Result<(), Reject>,
) -> Result<(), Reject> {
    if let Some(replies) = replies {
        let is_whole = riemann::framed(&mut replies.bytes, |out| match error {
            Some(error) => riemann::error_reply(error, out),
            None => out.extend_from_slice(riemann::OK_REPLY),
        });
        debug_assert!(is_whole, "a reply is short");
    }
    result
}

fn reason_of(why: MessageReject) -> Reject {
    match why {
        MessageReject::Undecodable => Reject::BadMessage,
        MessageReject::TooManyEvents | MessageReject::TooMuchText => Reject::MessageTooBig,
        MessageReject::TooManyTags | MessageReject::TooManyAttributes => Reject::TooManyTags,
    }
}

/// Settles rejected records, and makes a batch of the events.
pub(crate) fn batches<'a>(
    source: SourceId,
    account: &Arc<SourceAccount>,
    now: Now,
    parsed: &'a Parsed,
) -> Batches<'a> {
    let mut batches = Batches::new(source);
    if parsed.messages == 0 {
        return batches;
    }
    account.packets.fetch_add(parsed.messages as u64, Relaxed);
    account.last_packet_s.store(now.wall_seconds(), Relaxed);
    let bad = settle_rejects(account, &parsed.rejects);
    // Events are counted as lines, like elements of pickles.
    account.lines.fetch_add(parsed.events.len() as u64 + bad, Relaxed);
    if !parsed.events.is_empty() {
        let receipt = Receipt::receive(account, parsed.events.len() as u64);
        batches.push(Records::Events(parsed.events.batch()), Some(receipt));
    }
    batches
}

#[cfg(test)]
mod tests;
