//! Makes batches of points, and reads messages of many points.
//!
//! Path of a packet: `Intake` frames it -> `Protocol::read`, or for messages **[`Messages::read`]** -> a parser of
//! `wire` -> **[`batches`]** -> `Shard::push`, which forwards the lines. The batch's arena holds the lines as they are
//! sent on, not as the socket returned them: most are copied into it once, together with their neighbours. Not here:
//! framing (`intake`), the protocols (`protocol`), outputs (`encode`).
//! Invariant: a batch of messages holds at most [`PIECE_BYTES_MAX`] of lines and an element, whatever the messages
//! unfold to; the rest waits in [`Messages`] only until it has been forwarded.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use model::{Batches, Now, Packets, Peer, Points, Receipt, Records, Reject, SourceAccount, SourceId, Span};
use wire::frame::LengthFramer;
use wire::graphite::input::{MessageReader, PIECE_BYTES_MAX, Parsed};

use crate::intake::protocol::MessageReading;
use crate::intake::rejects::settle_rejects;

/// Messages of one connection that have been read and not yet forwarded.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// The part of the last read that is not framed yet.
    rest: Vec<u8>,
    /// A message, and how far it has been read.
    opened: Option<(Vec<u8>, MessageReader)>,
}

/// Settles refused records, and makes batches of the rest. They came in so many packets or reads. Raw routes (`raw`)
/// take each line as a packet.
pub(crate) fn batches<'a>(
    (source, peer, raw): (SourceId, Peer, bool),
    account: &Arc<SourceAccount>,
    packets: usize,
    now: Now,
    (parsed, lines): (&'a Parsed, &'a mut Vec<Span>),
) -> Batches<'a> {
    settle_rejects(account, &parsed.rejects);
    if packets > 0 {
        account.packets.fetch_add(packets as u64, Relaxed);
        account.last_packet_s.store(now.wall_seconds(), Relaxed);
    }
    account.lines.fetch_add(parsed.lines, Relaxed);
    let mut batches = Batches::new(source);
    if parsed.points.is_empty() {
        // Everything read is in the account. There is no acknowledgement for a read without a point.
        return batches;
    }
    let bytes = parsed.bytes.as_slice();
    if raw {
        lines.extend(parsed.points.iter().map(|point| point.line));
        let packets = Packets { bytes: Cow::Borrowed(bytes), packets: Cow::Borrowed(lines) };
        batches.push(Records::Packets(packets), None);
    }
    let points = Points { bytes: Cow::Borrowed(bytes), points: Cow::Borrowed(&parsed.points), peer };
    batches.push(Records::Points(points), Some(Receipt::receive(account, parsed.points.len() as u64)));
    batches
}

impl Messages {
    /// True when nothing is left to forward before the next read.
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty() && self.opened.is_none()
    }

    /// Memory that it holds, about: the memory of an open message is only partly counted.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.rest.capacity() + self.opened.as_ref().map_or(0, |(message, _)| message.capacity())
    }

    /// Continues with what is left, or with `bytes` when nothing is, until a piece is full. `bad` gets the first bad
    /// element of each message.
    pub(crate) fn read(
        &mut self,
        reading: &MessageReading,
        framer: &mut LengthFramer,
        bytes: &[u8],
        now: Now,
        into: &mut Parsed,
        mut bad: impl FnMut(&[u8], (Reject, Span)),
    ) -> MessagesRead {
        let mut read = MessagesRead::default();
        debug_assert!(self.is_empty() || bytes.is_empty(), "what was read is handed on before more is");
        let left = std::mem::take(&mut self.rest);
        let mut rest = if bytes.is_empty() { &left } else { bytes };
        loop {
            let (message, mut opened) = match self.opened.take() {
                Some((message, opened)) => (Cow::Owned(message), opened),
                None => {
                    let message = match framer.next(&mut rest) {
                        Ok(Some(message)) => message,
                        Ok(None) => return read,
                        Err(lost) => return MessagesRead { lost: Some(lost), ..read },
                    };
                    read.begun += 1;
                    let opened = MessageReader::new(reading.form, &message);
                    (message, opened)
                }
            };
            let span = Span::new(0, message.len());
            let more = reading.reader.piece(&mut opened, &message, span, now.wall_seconds(), into);
            if let Some(first) = into.first_reject.take() {
                bad(&message, first);
            }
            self.opened = more.then(|| (message.into_owned(), opened));
            if self.opened.is_some() || into.bytes.len() >= PIECE_BYTES_MAX {
                self.rest = rest.to_vec();
                return read;
            }
        }
    }
}

/// The result of reading messages, without the points.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MessagesRead {
    /// Messages that were started.
    pub(crate) begun: usize,
    /// Why the next one could not be framed.
    pub(crate) lost: Option<Reject>,
}
