//! Room that batches need in the queues of outputs, at most.

use model::Batches;

/// More than a queue holds for a block beside its bytes and the places of its packets.
const BLOCK_COST_BYTES: u64 = 1024;

/// Room that a queue needs for the packets or points of a read as they came, at most: (bytes of memory, records).
pub(crate) fn room_verbatim(batches: &Batches<'_>) -> (u64, u64) {
    let packets = batches.packets().map_or(0, |packets| packets.packets.len());
    let points = batches.points().map_or(0, |points| points.points.len());
    (2 * batches.memory_bytes() as u64 + BLOCK_COST_BYTES, packets.max(points) as u64)
}

/// Memory of a block of so many frames with `bytes` between them, at most: what it grew in may be twice as large.
pub(crate) fn block_memory_bytes(bytes: u64, frames: u64) -> u64 {
    2 * (bytes + frames * size_of::<(u32, u32)>() as u64) + BLOCK_COST_BYTES
}
