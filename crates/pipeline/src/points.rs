//! What an intake does with Graphite lines and messages: it makes points of them.
//!
//! Path of a packet: `Intake` frames it -> **[`PointIntake::read`]** -> `wire::graphite::input` -> [`PointIntake::batch`] ->
//! `Shard::push`, which hands the lines on. The batch's arena is not what the socket gave but the lines as they go on: most
//! are copied into it once, together with their neighbours.
//! Not here: framing (`intake`), outputs (`encode`).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use config::plan::GraphiteSource;
use model::{Now, Outcome, Peer, Point, Receipt, Reject, SampleView, SourceAccount, SourceId, Span, Tally};
use wire::frame::{LengthFramer, LengthOrder, LineEnd, LineFramer};
use wire::graphite::input::{MessageForm, Parsed, Personality, Reader};

use crate::Batch;
use crate::intake::KEPT_BYTES_MAX;

/// How points of one source are read: made once, shared by its intakes.
#[derive(Clone)]
pub(crate) struct PointReading {
    pub(crate) reader: Arc<Reader>,
    messages: Option<MessageForm>,
    message_bytes_max: usize,
    /// Raw routes use the source: they take each line as a packet.
    raw: bool,
}

/// The part of an intake that makes points.
pub(crate) struct PointIntake {
    reading: PointReading,
    parsed: Parsed,
    /// Each line of a batch, when raw routes take them.
    lines: Vec<Span>,
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
        let end = match self.reader.options().personality {
            Personality::CRelay => LineEnd::LfOrCr,
            Personality::Strict | Personality::Carbon | Personality::GoCarbon => LineEnd::Lf,
        };
        LineFramer::ended_by(end, line_bytes_max)
    }

    /// The framer of a connection of messages, when it carries them.
    pub(crate) fn message_framer(&self) -> Option<LengthFramer> {
        self.messages.map(|_| LengthFramer::ordered(LengthOrder::Big, self.message_bytes_max))
    }

    pub(crate) fn intake(&self) -> PointIntake {
        PointIntake { reading: self.clone(), parsed: Parsed::default(), lines: Vec::new() }
    }
}

impl PointIntake {
    /// True when connections carry messages, not lines.
    pub(crate) fn takes_messages(&self) -> bool {
        self.reading.messages.is_some()
    }

    /// Reads what was framed: lines of a stream or datagrams, or whole messages. What was read before is forgotten.
    pub(crate) fn read(&mut self, bytes: &[u8], packets: &[Span], now: Now) {
        let PointIntake { reading, parsed, lines } = self;
        parsed.clear();
        parsed.bytes.shrink_to(KEPT_BYTES_MAX);
        parsed.points.shrink_to(KEPT_BYTES_MAX / size_of::<Point>());
        lines.clear();
        lines.shrink_to(KEPT_BYTES_MAX / size_of::<Span>());
        for packet in packets {
            match reading.messages {
                None => reading.reader.packet(bytes, *packet, now.wall_seconds(), parsed),
                Some(form) => reading.reader.message(form, bytes, *packet, now.wall_seconds(), parsed),
            }
        }
    }

    /// The first bad line of what was read.
    pub(crate) fn first_reject(&self) -> Option<(Reject, Span)> {
        self.parsed.first_reject
    }

    /// Settles what was refused, and makes a batch of the rest. It came in so many packets or reads.
    pub(crate) fn batch(
        &mut self,
        (source, peer): (SourceId, Peer),
        account: &Arc<SourceAccount>,
        packets: usize,
        now: Now,
    ) -> Batch<'_> {
        let PointIntake { reading, parsed, lines } = self;
        let bad = settle_rejects(account, &parsed.rejects);
        if packets > 0 {
            account.packets.fetch_add(packets as u64, Relaxed);
            account.last_packet_s.store(now.wall_seconds(), Relaxed);
        }
        account.lines.fetch_add(parsed.lines, Relaxed);
        if reading.raw {
            lines.extend(parsed.points.iter().map(|point| point.line));
        }
        Batch {
            view: SampleView { source, bytes: &parsed.bytes, samples: &[], extras: &[] },
            peer,
            packets: lines,
            names: &[],
            events: Vec::new(),
            points: &parsed.points,
            tally: Tally { packets: packets as u64, lines: parsed.lines, bad },
            receipt: Receipt::receive(account, parsed.points.len() as u64),
        }
    }
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
