//! Many records at once: one arena of bytes and an array of small structs with offsets into it.

use crate::{AckMark, Event, Extra, Peer, Point, Receipt, Sample, SourceId, Span};

/// Samples of one source, borrowed: what an intake hands to a shard on the same thread.
#[derive(Clone, Copy, Debug)]
pub struct SampleView<'a> {
    /// Where they came from.
    pub source: SourceId,
    /// The arena that all spans point into.
    pub bytes: &'a [u8],
    /// The samples, in order of arrival.
    pub samples: &'a [Sample],
    /// Rare fields, see [`Sample::extra`].
    pub extras: &'a [Extra],
}

/// What the packets of a batch held, whatever became of it: feeds the self counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Packets: datagrams, frames, or reads of a stream that gave a whole line.
    pub packets: u64,
    /// Lines, good or bad.
    pub lines: u64,
    /// Samples or lines that were refused.
    pub bad: u64,
}

impl Tally {
    /// Adds what another batch held.
    pub fn add(&mut self, more: Tally) {
        self.packets += more.packets;
        self.lines += more.lines;
        self.bad += more.bad;
    }
}

/// Least that a batch counts for, however little is in it: the allocator and the queues that it goes through need memory for
/// it as well, and taking it needs time.
pub const BATCH_BYTES_MIN: usize = 1024;

/// Samples of one source, owned: what crosses a thread border.
#[derive(Debug)]
pub struct SampleBatch {
    /// Where they came from.
    pub source: SourceId,
    /// The arena that all spans point into.
    pub bytes: Vec<u8>,
    /// Who sent them, if they are points and some output wants to know.
    pub peer: Peer,
    /// The packets as they came, for raw routes.
    pub packets: Vec<Span>,
    /// Name of each line, when the plan counts names (`keyFlush`).
    pub names: Vec<Span>,
    /// What the packets held.
    pub tally: Tally,
    /// The samples, in order of arrival.
    pub samples: Vec<Sample>,
    /// Rare fields, see [`Sample::extra`].
    pub extras: Vec<Extra>,
    /// Events of the same packets; they have no place in aggregation.
    pub events: Vec<Event>,
    /// Points, in order of arrival, of a source that gives nothing else. The arena is then their lines, each with its LF,
    /// and nothing between them.
    pub points: Vec<Point>,
    /// Stands for `samples.len() + events.len()` records, for the points, or for the packets when nothing looks inside them.
    pub receipt: Receipt,
    /// The client wants to be told when it need not keep the lines any more.
    pub ack: Option<AckMark>,
}

impl SampleBatch {
    /// The same batch, borrowed.
    pub fn view(&self) -> SampleView<'_> {
        SampleView { source: self.source, bytes: &self.bytes, samples: &self.samples, extras: &self.extras }
    }

    /// True when it holds nothing but its tally: no record, no client to answer, nothing for a raw route.
    pub fn is_tally_only(&self) -> bool {
        self.receipt.records() == 0 && self.ack.is_none() && self.packets.is_empty() && self.names.is_empty()
    }

    /// Memory that the batch holds, itself included, for exchanges that are bounded in bytes; at least [`BATCH_BYTES_MIN`].
    pub fn memory_bytes(&self) -> usize {
        let held = size_of::<SampleBatch>()
            + self.bytes.capacity()
            + (self.packets.capacity() + self.names.capacity()) * size_of::<Span>()
            + self.samples.capacity() * size_of::<Sample>()
            + self.extras.capacity() * size_of::<Extra>()
            + self.events.iter().map(Event::memory_bytes).sum::<usize>()
            + self.points.capacity() * size_of::<Point>();
        held.max(BATCH_BYTES_MIN)
    }
}

/// Packets with their borders, unparsed: what a raw route carries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketBatch {
    /// All packets, one behind the other.
    pub bytes: Vec<u8>,
    /// Where each packet lies in `bytes`.
    pub packets: Vec<Span>,
}

impl PacketBatch {
    /// Appends one packet.
    pub fn push(&mut self, packet: &[u8]) {
        self.packets.push(Span::new(self.bytes.len(), packet.len()));
        self.bytes.extend_from_slice(packet);
    }

    /// The packets, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.packets.iter().map(|packet| packet.of(&self.bytes))
    }

    /// Forgets the packets, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.packets.clear();
    }
}
