//! Encoding of the blocks in a queue in memory, for the successor process (hot restart).
//!
//! Path of a block: `finish_stop` of its sender -> **[`MemoryQueue::queued_blocks`]** -> [`QueuedBlock::encode`] -> another process ->
//! [`QueuedBlock::decode`] -> **[`MemoryQueue::append_handed_over`]** -> `pop`.
//! Not here: the transfer (hot restart in the binary), blocks on disk (`disk_queue::unsettled`).
//! Invariant: any byte string decodes to a block that senders can cut, or to none (fuzz target `left`). Copies with an
//! outcome stay in the account that counted them; the successor counts the others as routed.

use std::sync::Arc;

use super::{MemoryQueue, Queue};
use crate::block::{Block, BlockEncoding, PARTITIONS};
use crate::disk_queue::{Progress, decode_boundaries, encode_boundaries, encoding_code};
use crate::plan::QueueLimits;

/// Bytes before the boundaries.
const HEADER_BYTES: usize = 56;

/// A queued block and its delivery progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedBlock {
    block: Block,
    progress: Progress,
}

impl QueuedBlock {
    /// A block without any settled copy.
    pub fn whole(block: Block) -> QueuedBlock {
        let progress = Progress::start(block.copies, block.copy_bytes());
        QueuedBlock { block, progress }
    }

    /// The block, if none of its copies is settled.
    pub fn into_whole(self) -> Option<Block> {
        (self.progress == Progress::start(self.block.copies, self.block.copy_bytes())).then_some(self.block)
    }

    /// Copies that have no outcome yet.
    pub fn copies(&self) -> u64 {
        u64::from(self.progress.copies_left)
    }

    /// Encodes it. Times become ages, since the successor's monotonic clock may have another origin.
    pub fn encode(&self, now_ns: u64) -> Vec<u8> {
        let QueuedBlock { block, progress } = self;
        let mut boundaries = Vec::new();
        encode_boundaries(&block.encoding, &mut boundaries);
        let mut bytes = Vec::with_capacity(HEADER_BYTES + boundaries.len() + block.bytes.len());
        let age_ns = now_ns.saturating_sub(block.at_ns);
        let places = [progress.settled as u64, progress.written_before as u64, progress.packets_done as u64];
        for number in [age_ns, progress.bytes_left].iter().chain(&places) {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let encoding = u32::from(encoding_code(&block.encoding));
        let partition = block.partition.map_or(0, |partition| u32::from(partition) + 1);
        for number in [block.copies, progress.copies_left, boundaries.len() as u32, encoding | partition << 8]
        {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        debug_assert_eq!(bytes.len(), HEADER_BYTES, "the header's fields fit its size");
        bytes.extend_from_slice(&boundaries);
        bytes.extend_from_slice(&block.bytes);
        bytes
    }

    /// Decodes the result of [`Self::encode`]. None when the bytes are not a block, or its fields contradict each other.
    pub fn decode(bytes: &[u8], now_ns: u64) -> Option<QueuedBlock> {
        let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let (longs, shorts) = header.split_at(5 * 8);
        let long = |at: usize| longs.as_chunks::<8>().0.get(at).map(|bytes| u64::from_le_bytes(*bytes));
        let short = |at: usize| shorts.as_chunks::<4>().0.get(at).map(|bytes| u32::from_le_bytes(*bytes));
        let (copies, copies_left, borders_len) = (short(0)?, short(1)?, short(2)?);
        let (boundaries, block_bytes) = rest.split_at_checked(borders_len as usize)?;
        let block_len = u32::try_from(block_bytes.len()).ok()?;
        let [encoding, partition, 0, 0] = short(3)?.to_le_bytes() else { return None };
        let encoding = decode_boundaries(encoding, boundaries, block_len)?;
        let partition = match partition {
            0 => None,
            partition => Some(partition - 1).filter(|partition| *partition < PARTITIONS),
        };
        let at_ns = now_ns.saturating_sub(long(0)?);
        let block = Block { bytes: Arc::new(block_bytes.to_vec()), copies, encoding, at_ns, partition };
        let place = |at: usize| usize::try_from(long(at)?).ok().filter(|place| *place <= block_bytes.len());
        let progress = Progress {
            settled: place(2)?,
            written_before: place(3)?,
            packets_done: usize::try_from(long(4)?).ok()?,
            copies_left,
            bytes_left: long(1)?,
        };
        let possible = copies_left <= copies
            && progress.packets_done <= copies as usize
            && progress.bytes_left <= block.copy_bytes()
            && in_order(&block.encoding);
        possible.then_some(QueuedBlock { block, progress })
    }
}

impl MemoryQueue {
    /// All queued blocks, oldest first. They stay in this queue until the successor has confirmed that it has them.
    pub fn queued_blocks(&self) -> impl ExactSizeIterator<Item = QueuedBlock> {
        self.entries
            .iter()
            .map(|entry| QueuedBlock { block: entry.block.clone(), progress: entry.progress() })
    }

    /// Appends a block of the predecessor, whatever the limits are here: it was accepted under the predecessor's limits.
    pub fn append_handed_over(&mut self, left: QueuedBlock) {
        self.push_back(left.block, left.progress);
    }
}

/// Whether the boundaries are ordered as the block's senders assume.
fn in_order(encoding: &BlockEncoding) -> bool {
    match encoding {
        BlockEncoding::Lines => true,
        BlockEncoding::Frames(frames) => frames.is_sorted_by_key(|frame| frame.0),
        BlockEncoding::Packets(packets) => packets.is_sorted_by(|one, next| one.at + one.len <= next.at),
    }
}

/// Check of the fuzz target: any bytes decode to a block that can be queued, cut and encoded again, or to none.
///
/// # Panics
/// When the check fails.
pub fn check_handover(bytes: &[u8]) {
    let Some(left) = QueuedBlock::decode(bytes, 0) else { return };
    let account = Arc::new(model::OutputAccount::default());
    let mut queue = MemoryQueue::new(QueueLimits::default(), Arc::clone(&account));
    queue.append_handed_over(left.clone());
    assert!(queue.queued_blocks().eq([left.clone()]), "the block is queued as decoded");
    assert!(account.sum(queue.copies()).holds() && queue.copies() == left.copies());
    let Some(mut entry) = queue.pop(model::Now::default()) else { panic!("one block is queued") };
    let (len, mut at) = (entry.block().bytes.len(), entry.settled);
    while at < len {
        let next = entry.block().boundary_after(at);
        assert!(at < next && next <= len, "the boundary after {at} is at {next} of {len}");
        entry.delivered_up_to(next);
        at = next;
    }
    entry.settle(model::CopyOutcome::Delivered);
    assert!(account.sum(0).holds() && account.copies_queued() == 0);
}

#[cfg(test)]
mod tests {
    use model::{Now, PacketBatch};

    use super::*;
    use crate::queue::Appended;

    const AT_NS: u64 = 7_000_000_000;

    fn encodings() -> [Block; 3] {
        let mut batch = PacketBatch::default();
        for packet in [&b"a:1|c"[..], b"", b"bb:2|c\nc:3|g"] {
            batch.push(packet);
        }
        [
            Block { partition: Some(3), ..Block::lines(b"a 1 2\nbb 3 4\n".to_vec(), 2, AT_NS) },
            Block::frames(b"abcdef".to_vec(), vec![(2, 3), (6, 1)], AT_NS),
            Block::packets(batch, AT_NS),
        ]
    }

    #[test]
    fn queued_blocks_are_handed_over_with_their_progress() {
        let now = Now { mono_ns: AT_NS, wall_ns: 0 };
        let here = Arc::new(model::OutputAccount::default());
        let mut queue = MemoryQueue::new(QueueLimits::default(), Arc::clone(&here));
        queue.keep(true);
        for block in encodings() {
            assert_eq!(queue.append(block, now), Appended::Kept);
        }
        let mut first = queue.pop(now).expect("three are queued");
        first.delivered_up_to(6);
        first.written_before = 13;
        queue.put_back(first);
        queue.on_sender_stopped();
        let encoded: Vec<Vec<u8>> = queue.queued_blocks().map(|left| left.encode(AT_NS + 5)).collect();
        let there = Arc::new(model::OutputAccount::default());
        // The successor takes the blocks whatever its limits are.
        let limits = QueueLimits { bytes_max: 1, records_max: 1, ..QueueLimits::default() };
        let mut other = MemoryQueue::new(limits, Arc::clone(&there));
        encoded.iter().for_each(|bytes| {
            other.append_handed_over(QueuedBlock::decode(bytes, 105).expect("it was encoded"))
        });
        assert_eq!((queue.copies(), other.copies()), (8, 8));
        assert_eq!(there.sum(8).copies, 8, "the delivered one is in the other account");
        assert!(here.sum(queue.copies()).holds() && there.sum(other.copies()).holds());
        let aged = |left: QueuedBlock| QueuedBlock { block: Block { at_ns: 100, ..left.block }, ..left };
        assert!(
            other.queued_blocks().eq(queue.queued_blocks().map(aged)),
            "five nanoseconds old on both clocks"
        );
        let first = other.pop(now).expect("three are queued");
        assert_eq!((first.settled, first.written_before, first.copies()), (6, 13, 1));
        first.settle(model::CopyOutcome::Delivered);
        queue.keep(false);
        queue.on_sender_stopped();
        assert_eq!((queue.copies(), here.dropped(model::Dropped::Stopped)), (0, 8));
    }

    #[test]
    fn invalid_bytes_decode_to_none_and_decoded_blocks_can_be_sent() {
        for block in encodings() {
            let progress = Progress::start(block.copies, block.copy_bytes());
            let good = QueuedBlock { block, progress }.encode(AT_NS);
            check_handover(&good);
            for len in 0..good.len() {
                check_handover(&good[..len]);
            }
            for bit in 0..good.len() * 8 {
                let mut flipped = good.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                check_handover(&flipped);
            }
        }
        let block = Block::lines(b"a 1 2\n".to_vec(), 1, 0);
        let whole = Progress::start(1, 6);
        let more_left = Progress { copies_left: 2, ..whole };
        for progress in [Progress { settled: 7, ..whole }, more_left, Progress { packets_done: 2, ..whole }] {
            let bytes = QueuedBlock { block: block.clone(), progress }.encode(0);
            assert_eq!(QueuedBlock::decode(&bytes, 0), None, "{progress:?}");
        }
        let unordered = Block::frames(b"abcdef".to_vec(), vec![(6, 1), (2, 1)], 0);
        let progress = Progress::start(2, 6);
        assert_eq!(QueuedBlock::decode(&QueuedBlock { block: unordered, progress }.encode(0), 0), None);
    }
}
