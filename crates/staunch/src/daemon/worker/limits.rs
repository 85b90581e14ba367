//! Limits of every thread that reads datagrams: the shard's, or those of `readers`.

use crate::kernel::BATCH_BOUNDS;

/// Most datagrams that one system call of the shard's thread takes.
pub(super) const BATCH_PACKETS: usize = 64;

/// Most datagrams that one system call of a reader's thread takes. More than [`BATCH_PACKETS`]: a batch that crosses threads has a
/// price of its own, and a quarter of them costs a quarter (`cargo run --release -p pipeline --example readers`).
pub(super) const READER_PACKETS: usize = 256;
const _: () =
    assert!(READER_PACKETS <= BATCH_BOUNDS[BATCH_BOUNDS.len() - 1], "the last class holds every call");

/// Longest time of the last reading of the sockets: what fits into the largest receive buffer, without later packets.
pub(super) const LAST_READ_MAX_NS: u64 = model::SECOND_NS;

/// How often the kernel's drop counts are read and reports of busy names are checked, in nanoseconds.
pub(super) const CHORES_EVERY_NS: u64 = model::SECOND_NS;
