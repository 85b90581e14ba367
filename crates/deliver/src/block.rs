//! A block: many encoded records that move together, and the boundaries between them.
//!
//! The bytes are shared: outputs that send the same packets share one block, and each output counts all of it.

use std::sync::Arc;

use model::{PacketBatch, Span};

/// Recommended limit for the bytes of one block. Larger blocks work if the queue's limit allows them. Smaller blocks use
/// that limit better, because a block is kept or dropped as a whole.
pub const BLOCK_BYTES_MAX: usize = 128 * 1024;

/// Encoded records on their way to one output. A clone shares the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The bytes as sent to the endpoint.
    pub bytes: Arc<Vec<u8>>,
    /// Number of copies: records routed to the output.
    pub copies: u32,
    /// How the bytes divide into copies.
    pub encoding: BlockEncoding,
    /// When the block was created, monotonic nanoseconds.
    pub at_ns: u64,
    /// The partition of all series in the block, below [`PARTITIONS`]. None: the block may contain any series.
    pub partition: Option<u8>,
}

/// Number of partitions for the series of an output whose queue is shared by several connections. It is fixed, so a
/// series keeps its partition when the number of connections changes.
pub const PARTITIONS: u8 = 16;

/// How a block's bytes divide into copies. Senders cut a block only at these boundaries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockEncoding {
    /// One copy for each line that ends in LF.
    Lines,
    /// (end of the frame in the block's bytes, copies in the frame), ends ascending. A frame is sent as a whole or not at
    /// all: a pickle frame, a packet with its LF, a document.
    Frames(Vec<(u32, u32)>),
    /// One copy for each packet, ascending. Bytes between two packets, such as an LF, belong to the first one on a
    /// stream; a datagram sender leaves them out.
    Packets(Arc<Vec<Span>>),
}

impl Block {
    /// A block of `copies` lines, each ended by LF.
    pub fn lines(bytes: Vec<u8>, copies: u32, at_ns: u64) -> Block {
        Block { bytes: Arc::new(bytes), copies, encoding: BlockEncoding::Lines, at_ns, partition: None }
    }

    /// A block of frames: (end, copies) of each, ends ascending.
    pub fn frames(bytes: Vec<u8>, frames: Vec<(u32, u32)>, at_ns: u64) -> Block {
        let copies = frames.iter().map(|frame| frame.1).sum();
        Block {
            bytes: Arc::new(bytes),
            copies,
            encoding: BlockEncoding::Frames(frames),
            at_ns,
            partition: None,
        }
    }

    /// A block of packets, one copy each.
    pub fn packets(packets: PacketBatch, at_ns: u64) -> Block {
        let copies = u32::try_from(packets.packets.len()).expect("an arena has under 4 Gi packets");
        let encoding = BlockEncoding::Packets(Arc::new(packets.packets));
        Block { bytes: Arc::new(packets.bytes), copies, encoding, at_ns, partition: None }
    }

    /// Bytes of all copies, as an account counts them: bytes between packets are not included.
    pub fn copy_bytes(&self) -> u64 {
        match &self.encoding {
            BlockEncoding::Lines | BlockEncoding::Frames(_) => self.bytes.len() as u64,
            BlockEncoding::Packets(packets) => packets.iter().map(|packet| u64::from(packet.len)).sum(),
        }
    }

    /// Memory used by the block, unused capacity included. This counts against a queue's limit.
    pub fn memory_bytes(&self) -> u64 {
        let boundaries = match &self.encoding {
            BlockEncoding::Lines => 0,
            BlockEncoding::Frames(frames) => frames.capacity() * size_of::<(u32, u32)>(),
            BlockEncoding::Packets(packets) => packets.capacity() * size_of::<Span>(),
        };
        // Twice the fixed part: the queue's ring buffer may be half empty after it has grown.
        (self.bytes.capacity() + boundaries + 2 * FIXED_BYTES) as u64
    }

    /// Copies that end in `from + 1 ..= to`, and their bytes.
    pub(crate) fn copies_between(&self, from: usize, to: usize) -> (u32, u64) {
        if from >= to {
            return (0, 0);
        }
        match &self.encoding {
            BlockEncoding::Lines => {
                let lines = memchr::memchr_iter(b'\n', &self.bytes[from..to]).count();
                (lines as u32, (to - from) as u64)
            }
            BlockEncoding::Frames(frames) => {
                let first = frames.partition_point(|frame| frame.0 as usize <= from);
                let ended = frames[first..].iter().take_while(|frame| frame.0 as usize <= to);
                (ended.map(|frame| frame.1).sum(), (to - from) as u64)
            }
            BlockEncoding::Packets(packets) => {
                let (first, last) = (self.packets_up_to(packets, from), self.packets_up_to(packets, to));
                let bytes = packets[first..last].iter().map(|packet| u64::from(packet.len)).sum();
                ((last - first) as u32, bytes)
            }
        }
    }

    /// Number of packets that end at or before `at`, separators included.
    fn packets_up_to(&self, packets: &[Span], at: usize) -> usize {
        if at >= self.bytes.len() {
            return packets.len();
        }
        if at == 0 {
            return 0;
        }
        // A packet ends where the next one begins: count the packets that begin at or before `at`.
        packets.partition_point(|packet| packet.at as usize <= at).saturating_sub(1)
    }

    /// Start of packet `place`; past the last packet, the end of the bytes.
    fn packet_start(&self, packets: &[Span], place: usize) -> usize {
        packets.get(place).map_or(self.bytes.len(), |packet| packet.at as usize)
    }

    /// The last boundary in `from ..= at`, where `from` itself is one.
    pub(crate) fn boundary_before(&self, from: usize, at: usize) -> usize {
        if at >= self.bytes.len() {
            return self.bytes.len();
        }
        let boundary = match &self.encoding {
            BlockEncoding::Lines => memchr::memrchr(b'\n', &self.bytes[from..at]).map(|lf| from + lf + 1),
            BlockEncoding::Frames(frames) => {
                let after = frames.partition_point(|frame| frame.0 as usize <= at);
                after.checked_sub(1).map(|last| frames[last].0 as usize)
            }
            BlockEncoding::Packets(packets) => {
                Some(self.packet_start(packets, self.packets_up_to(packets, at)))
            }
        };
        boundary.unwrap_or(from).max(from)
    }

    /// The first boundary after `from`: the end of the copy that begins there.
    pub(crate) fn boundary_after(&self, from: usize) -> usize {
        let boundary = match &self.encoding {
            BlockEncoding::Lines => memchr::memchr(b'\n', &self.bytes[from..]).map(|lf| from + lf + 1),
            BlockEncoding::Frames(frames) => {
                let after = frames.partition_point(|frame| frame.0 as usize <= from);
                frames.get(after).map(|frame| frame.0 as usize)
            }
            BlockEncoding::Packets(packets) => {
                let place = packets.partition_point(|packet| packet.at as usize <= from);
                Some(self.packet_start(packets, place))
            }
        };
        boundary.unwrap_or(self.bytes.len()).min(self.bytes.len())
    }
}

/// Memory of a block beside its bytes, at most: the queue's entry for it, which checks that.
pub(crate) const FIXED_BYTES: usize = 144;

#[cfg(test)]
mod tests {
    use super::*;

    fn encodings() -> [Block; 4] {
        // Three copies that end at 2, 5 and 9, in each encoding.
        let mut batch = PacketBatch::default();
        for packet in [&b"a\n"[..], b"bb\n", b"ccc\n"] {
            batch.push(packet);
        }
        let gaps = vec![Span::new(0, 1), Span::new(2, 2), Span::new(5, 3)];
        [
            Block::lines(b"a\nbb\nccc\n".to_vec(), 3, 0),
            Block::frames(b"a\nbb\nccc\n".to_vec(), vec![(2, 1), (5, 1), (9, 1)], 0),
            Block::packets(batch, 0),
            Block::packets(PacketBatch { bytes: b"a\nbb\nccc\n".to_vec(), packets: gaps }, 0),
        ]
    }

    #[test]
    fn boundaries_and_copies_agree_in_all_encodings() {
        // (from, to, copies that end in between, last boundary up to `to`)
        let table = [(0, 0, 0, 0), (0, 1, 0, 0), (0, 2, 1, 2), (0, 4, 1, 2), (2, 4, 0, 2), (2, 5, 1, 5)];
        let table = table.into_iter().chain([(0, 9, 3, 9), (5, 8, 0, 5), (5, 9, 1, 9), (9, 9, 0, 9)]);
        for (from, to, copies, boundary) in table {
            for block in encodings() {
                assert_eq!(block.copies_between(from, to).0, copies, "{from}..{to} of {block:?}");
                assert_eq!(block.boundary_before(from, to), boundary, "{from}..{to} of {block:?}");
            }
        }
        for (from, boundary) in [(0, 2), (2, 5), (5, 9)] {
            for block in encodings() {
                assert_eq!(block.boundary_after(from), boundary, "{from} of {block:?}");
            }
        }
    }

    #[test]
    fn the_last_copy_without_lf_ends_with_the_block() {
        let block = Block::lines(b"a\nbb".to_vec(), 2, 0);
        assert_eq!(
            (block.boundary_after(2), block.boundary_before(2, 3), block.boundary_before(2, 4)),
            (4, 2, 4)
        );
        let block = Block::frames(b"abc".to_vec(), vec![(9, 1)], 0);
        assert_eq!((block.boundary_after(0), block.boundary_before(0, 2)), (3, 0));
    }

    #[test]
    fn empty_packets_count_as_copies_of_zero_bytes() {
        let spans = [(0, 0), (0, 2), (2, 0), (2, 0), (2, 1), (3, 0)].map(|(at, len)| Span::new(at, len));
        let block = Block::packets(PacketBatch { bytes: b"abc".to_vec(), packets: spans.to_vec() }, 0);
        assert_eq!((block.copies, block.copy_bytes()), (6, 3));
        // The first packet has no byte to end with and is counted with the second.
        assert_eq!(block.copies_between(0, 3), (6, 3));
        assert_eq!(block.copies_between(0, 2).0 + block.copies_between(2, 3).0, 6);
        assert_eq!((block.boundary_after(0), block.boundary_after(2)), (2, 3));
    }

    #[test]
    fn memory_bytes_count_unused_capacity() {
        let mut bytes = Vec::with_capacity(4096);
        bytes.push(b'\n');
        let block = Block::frames(bytes, Vec::with_capacity(10), 0);
        assert!(block.memory_bytes() >= 4096 + 80);
    }
}
