//! Most room that batches need in the queues of outputs.

use model::{Batches, Span};

/// More than a queue needs for a block besides its bytes and the positions of its packets.
const BLOCK_COST_BYTES: u64 = 1024;

/// More than stands around a record in a block: its place, a line feed or a length, and a short line prefix.
const RECORD_COST_BYTES: u64 = 48;

/// Room that a queue needs for the packets or points of a read as they came, at most: (bytes of memory, records). It depends on
/// the records alone, and not on the memory that they lie in.
pub(crate) fn room_verbatim(batches: &Batches<'_>) -> (u64, u64) {
    let sum = |spans: &mut dyn Iterator<Item = Span>| {
        spans.fold((0, 0), |(bytes, records), span| (bytes + u64::from(span.len), records + 1))
    };
    let packets = batches.packets().map_or((0, 0), |all| sum(&mut all.packets.iter().copied()));
    let points = batches.points().map_or((0, 0), |all| sum(&mut all.points.iter().map(|point| point.line)));
    let (bytes, records) = (packets.0.max(points.0), packets.1.max(points.1));
    if records == 0 {
        return (0, 0);
    }
    (2 * bytes + RECORD_COST_BYTES * records + BLOCK_COST_BYTES, records)
}

/// Room that a queue needs for the events of a read, about: as their texts are written, and with so much around each. Templates may need
/// more: see `Shard::multiplies`.
pub(crate) fn room_for_events(batches: &Batches<'_>) -> (u64, u64) {
    const EVENT_COST_BYTES: u64 = 256;
    let records = batches.events().map_or(0, |events| events.len() as u64);
    match records {
        0 => (0, 0),
        _ => (2 * batches.memory_bytes() as u64 + EVENT_COST_BYTES * records + BLOCK_COST_BYTES, records),
    }
}

/// Most memory of a block of so many frames with `bytes` between them: its buffer may have grown to twice the size.
pub(crate) fn block_memory_bytes(bytes: u64, frames: u64) -> u64 {
    2 * (bytes + frames * size_of::<(u32, u32)>() as u64) + BLOCK_COST_BYTES
}
