//! What an intake does with Graphite lines and messages: it makes points of them.
//!
//! Path of a packet: `Intake` frames it -> **[`PointReading::read`]**, or of messages **[`Messages::read`]** ->
//! `wire::graphite::input` -> [`PointReading::batches`] -> `Shard::push`, which hands the lines on. The batch's arena is not what
//! the socket gave but the lines as they go on: most are copied into it once, together with their neighbours.
//! Not here: framing (`intake`), outputs (`encode`).
//! Invariant: a batch of messages holds [`PIECE_BYTES_MAX`] of lines and an element, whatever the messages unfold to; what is
//! left waits in [`Messages`], and is there for no longer than until it has been handed on.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use config::plan::GraphiteSource;
use model::{
    Batches, Now, Outcome, Packets, Peer, Points, Receipt, Records, Reject, SourceAccount, SourceId, Span,
};
use wire::frame::{LengthFramer, LengthOrder, LineEnd, LineFramer};
use wire::graphite::input::{Compatibility, MessageEncoding, MessageReader, PIECE_BYTES_MAX, Parsed, Reader};

/// How points of one source are read: made once, shared by its intakes.
#[derive(Clone)]
pub(crate) struct PointReading {
    pub(crate) reader: Arc<Reader>,
    messages: Option<MessageEncoding>,
    message_bytes_max: usize,
    /// Raw routes use the source: they take each line as a packet.
    raw: bool,
}

/// Messages of one connection that have been read and not handed on.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// What of the last read has not been framed.
    rest: Vec<u8>,
    /// A message, and how far it has been read.
    opened: Option<(Vec<u8>, MessageReader)>,
}

impl PointReading {
    pub(crate) fn new(source: &GraphiteSource, raw: bool, seed: u64) -> PointReading {
        PointReading {
            reader: Arc::new(Reader::new(source.reading, seed)),
            messages: source.messages,
            message_bytes_max: source.message_bytes_max,
            raw,
        }
    }

    /// The framer of a connection of lines.
    pub(crate) fn line_framer(&self, line_bytes_max: usize) -> LineFramer {
        let end = match self.reader.options().compatibility {
            Compatibility::CRelay => LineEnd::LfOrCr,
            Compatibility::Strict | Compatibility::Carbon | Compatibility::GoCarbon => LineEnd::Lf,
        };
        LineFramer::ended_by(end, line_bytes_max)
    }

    /// The framer of a connection of messages, when it carries them.
    pub(crate) fn message_framer(&self) -> Option<LengthFramer> {
        self.messages.map(|_| LengthFramer::ordered(LengthOrder::Big, self.message_bytes_max))
    }

    /// True when connections carry messages, not lines.
    pub(crate) fn takes_messages(&self) -> bool {
        self.messages.is_some()
    }

    /// Reads lines of a stream, or datagrams.
    pub(crate) fn read(&self, bytes: &[u8], packets: &[Span], now: Now, into: &mut Parsed) {
        for packet in packets {
            match self.messages {
                None => self.reader.packet(bytes, *packet, now.wall_seconds(), into),
                Some(form) => self.reader.message(form, bytes, *packet, now.wall_seconds(), into),
            }
        }
    }

    /// Settles what was refused, and makes batches of the rest. It came in so many packets or reads.
    pub(crate) fn batches<'a>(
        &self,
        (source, peer): (SourceId, Peer),
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
            // The account has what was read. Nobody waits for a read without a point.
            return batches;
        }
        let bytes = parsed.bytes.as_slice();
        if self.raw {
            lines.extend(parsed.points.iter().map(|point| point.line));
            let packets = Packets { bytes: Cow::Borrowed(bytes), packets: Cow::Borrowed(lines) };
            batches.push(Records::Packets(packets), None);
        }
        let points = Points { bytes: Cow::Borrowed(bytes), points: Cow::Borrowed(&parsed.points), peer };
        batches.push(Records::Points(points), Some(Receipt::receive(account, parsed.points.len() as u64)));
        batches
    }
}

impl Messages {
    /// True when nothing is to be handed on before another read.
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty() && self.opened.is_none()
    }

    /// Memory that it holds, about: of what a message is read into, not all is counted.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.rest.capacity() + self.opened.as_ref().map_or(0, |(message, _)| message.capacity())
    }

    /// Goes on with what is left, or with `bytes` when nothing is, until a piece is full. `bad` gets the first bad element of
    /// each message.
    pub(crate) fn read(
        &mut self,
        reading: &PointReading,
        framer: &mut LengthFramer,
        bytes: &[u8],
        now: Now,
        into: &mut Parsed,
        mut bad: impl FnMut(&[u8], (Reject, Span)),
    ) -> MessagesRead {
        let mut read = MessagesRead::default();
        let Some(form) = reading.messages else { return read };
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
                    let opened = MessageReader::new(form, &message);
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

/// What came of reading messages, beside points.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MessagesRead {
    /// Messages that were begun.
    pub(crate) begun: usize,
    /// Why the next one could not be framed.
    pub(crate) lost: Option<Reject>,
}

/// Settles refused records, by [`Reject::index`]; gives how many they are.
pub(crate) fn settle_rejects(account: &SourceAccount, rejects: &[u64; Reject::COUNT]) -> u64 {
    let bad = rejects.iter().sum();
    if bad > 0 {
        account.receive(bad);
        for reason in Reject::ALL {
            let records = rejects[reason.index()];
            if records > 0 {
                account.settle(Outcome::Rejected(*reason), records);
            }
        }
    }
    bad
}
