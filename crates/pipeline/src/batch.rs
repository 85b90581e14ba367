//! What an intake hands on: borrowed on the same thread, owned across a border.

use model::{Event, Peer, Point, Receipt, SampleBatch, SampleView, Span, Tally};

/// More than a queue holds for a block beside its bytes and the places of its packets.
const BLOCK_COST_BYTES: u64 = 1024;

/// The records of some packets of one source, with the promise to settle them.
#[derive(Debug)]
pub struct Batch<'a> {
    /// The samples and the arena that all spans point into.
    pub view: SampleView<'a>,
    /// Who sent them, if they are points: see [`crate::Intake::wants_peers`].
    pub peer: Peer,
    /// The packets as they came, for raw routes.
    pub packets: &'a [Span],
    /// Name of each line, when the plan counts names (`keyFlush`).
    pub names: &'a [Span],
    /// Events of the same packets.
    pub events: Vec<Event>,
    /// Points of a source that gives nothing else; the arena is then their lines, each with its LF.
    pub points: &'a [Point],
    /// What the packets held, the refused lines included.
    pub tally: Tally,
    /// Stands for the samples and events, for the points, or for the packets of a source that only raw routes use.
    pub receipt: Receipt,
}

impl Batch<'_> {
    /// A copy of its own memory, to cross a thread border.
    pub fn into_owned(self) -> SampleBatch {
        SampleBatch {
            source: self.view.source,
            bytes: self.view.bytes.to_vec(),
            peer: self.peer,
            packets: self.packets.to_vec(),
            names: self.names.to_vec(),
            tally: self.tally,
            samples: self.view.samples.to_vec(),
            extras: self.view.extras.to_vec(),
            events: self.events,
            points: self.points.to_vec(),
            receipt: self.receipt,
            ack: None,
        }
    }

    /// True when there is nothing in it to hand on.
    pub fn is_empty(&self) -> bool {
        self.tally == Tally::default() && self.receipt.records() == 0
    }
}

/// Room that a queue needs for the packets of a batch as they came, at most: (bytes of memory, records).
pub(crate) fn room_verbatim(batch: &SampleBatch) -> (u64, u64) {
    let records = batch.packets.len().max(batch.points.len());
    (2 * batch.memory_bytes() as u64 + BLOCK_COST_BYTES, records as u64)
}

/// Memory of a block of so many frames with `bytes` between them, at most: what it grew in may be twice as large.
pub(crate) fn block_memory_bytes(bytes: u64, frames: u64) -> u64 {
    2 * (bytes + frames * size_of::<(u32, u32)>() as u64) + BLOCK_COST_BYTES
}

/// Runs `with` on an owned batch as if it had just come from an intake of this thread.
pub(crate) fn borrowed<R>(batch: SampleBatch, with: impl FnOnce(Batch<'_>) -> R) -> R {
    let SampleBatch {
        source,
        bytes,
        peer,
        packets,
        names,
        tally,
        samples,
        extras,
        events,
        points,
        receipt,
        ack: _,
    } = batch;
    let view = SampleView { source, bytes: &bytes, samples: &samples, extras: &extras };
    with(Batch { view, peer, packets: &packets, names: &names, events, points: &points, tally, receipt })
}
