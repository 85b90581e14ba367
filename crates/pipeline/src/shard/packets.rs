//! Raw routes: packets of a source to the outputs that take them unchanged.
//!
//! Path of a packet: `Shard::push` -> **[`Sharing::blocks`]** -> one block whose bytes all verbatim outputs share. The
//! packets are copied once, out of the reader's arena, however many endpoints there are. Not here: outputs that parse
//! lines (`encode`), queues and senders (`deliver`).

use std::sync::Arc;

use config::plan::{Framing, OutputKind, PacketsPlan, Plan};
use deliver::queue::{Block, BlockEncoding};
use model::{Now, OutputId, Span};

use crate::Routed;

/// The verbatim outputs of one source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sharing {
    /// Datagram outputs and streams of lines: one block serves them all.
    shared: Vec<OutputId>,
    /// Streams of length-prefixed packets.
    framed: Vec<OutputId>,
    /// One of `shared` is a stream, so each packet needs an LF after it.
    line_feeds: bool,
}

impl Sharing {
    /// Adds the output `id` if it takes packets unchanged.
    pub(crate) fn add(&mut self, plan: &Plan, id: OutputId) -> bool {
        let OutputKind::Packets(packets) = &plan.outputs[id.index()].kind else { return false };
        let PacketsPlan { to, framing, .. } = packets;
        match framing {
            Framing::Frames if !to.is_datagram() => self.framed.push(id),
            Framing::Lines | Framing::Frames => {
                self.line_feeds |= !to.is_datagram();
                self.shared.push(id);
            }
        }
        true
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.shared.is_empty() && self.framed.is_empty()
    }

    /// A block for each output, of all `packets`.
    pub(crate) fn blocks(&self, bytes: &[u8], packets: &[Span], now: Now, out: &mut Routed) {
        if packets.is_empty() {
            return;
        }
        if let Some((last, others)) = self.shared.split_last() {
            let block = block(bytes, packets, self.line_feeds, now);
            out.blocks.extend(others.iter().map(|id| (*id, block.clone())));
            out.blocks.push((*last, block));
        }
        if let Some((last, others)) = self.framed.split_last() {
            let block = framed_block(bytes, packets, now);
            out.blocks.extend(others.iter().map(|id| (*id, block.clone())));
            out.blocks.push((*last, block));
        }
    }
}

/// One copy of `packets`, with an LF after each that is not empty and does not end in LF, if that is asked for.
fn block(bytes: &[u8], packets: &[Span], line_feeds: bool, now: Now) -> Block {
    let sum: usize = packets.iter().map(|packet| packet.len as usize + usize::from(line_feeds)).sum();
    let mut copy = Vec::with_capacity(sum);
    let mut spans = Vec::with_capacity(packets.len());
    for packet in packets {
        let packet = packet.of(bytes);
        spans.push(Span::new(copy.len(), packet.len()));
        copy.extend_from_slice(packet);
        if line_feeds && packet.last().is_some_and(|last| *last != b'\n') {
            copy.push(b'\n');
        }
    }
    let copies = u32::try_from(spans.len()).expect("a reader's batch has under 4 Gi packets");
    Block {
        bytes: Arc::new(copy),
        copies,
        encoding: BlockEncoding::Packets(Arc::new(spans)),
        at_ns: now.mono_ns,
        partition: None,
    }
}

/// The packets, each after its length, 4 bytes little-endian (spec statsd §5.5).
fn framed_block(bytes: &[u8], packets: &[Span], now: Now) -> Block {
    let sum: usize = packets.iter().map(|packet| packet.len as usize + size_of::<u32>()).sum();
    let mut copy = Vec::with_capacity(sum);
    let mut frames = Vec::with_capacity(packets.len());
    for packet in packets {
        copy.extend_from_slice(&packet.len.to_le_bytes());
        copy.extend_from_slice(packet.of(bytes));
        frames.push((u32::try_from(copy.len()).expect("a reader's arena is under 4 GiB"), 1));
    }
    Block::frames(copy, frames, now.mono_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Now = Now { mono_ns: 7, wall_ns: 0 };

    fn spans(places: &[(usize, usize)]) -> Vec<Span> {
        places.iter().map(|(at, len)| Span::new(*at, *len)).collect()
    }

    #[test]
    fn outputs_share_one_copy_of_the_packets() {
        let sharing = Sharing {
            shared: vec![OutputId(0), OutputId(2)],
            framed: vec![OutputId(1), OutputId(3)],
            line_feeds: true,
        };
        let mut out = Routed::default();
        // Slots of a reader's arena, with old bytes between them.
        sharing.blocks(b"a:1|c__b\n__", &spans(&[(0, 5), (7, 2), (9, 0)]), NOW, &mut out);
        let ids: Vec<u16> = out.blocks.iter().map(|(id, _)| id.0).collect();
        assert_eq!(ids, [0, 2, 1, 3]);
        let [first, second, framed, framed_too] = [0, 1, 2, 3].map(|at| &out.blocks[at].1);
        assert!(Arc::ptr_eq(&first.bytes, &second.bytes) && Arc::ptr_eq(&framed.bytes, &framed_too.bytes));
        assert_eq!(first.bytes.as_slice(), b"a:1|c\nb\n");
        assert_eq!(first.encoding, BlockEncoding::Packets(Arc::new(spans(&[(0, 5), (6, 2), (8, 0)]))));
        assert_eq!((first.copies, first.copy_bytes(), first.at_ns), (3, 7, 7));
        assert_eq!(framed.bytes.as_slice(), b"\x05\0\0\0a:1|c\x02\0\0\0b\n\0\0\0\0");
        assert_eq!(framed.encoding, BlockEncoding::Frames(vec![(9, 1), (15, 1), (19, 1)]));
    }

    #[test]
    fn without_a_stream_no_byte_is_added() {
        let sharing = Sharing { shared: vec![OutputId(0)], ..Sharing::default() };
        let mut out = Routed::default();
        sharing.blocks(b"abcd", &spans(&[(0, 1), (2, 2)]), NOW, &mut out);
        assert_eq!(out.blocks[0].1.bytes.as_slice(), b"acd");
        sharing.blocks(b"abcd", &[], NOW, &mut out);
        assert_eq!(out.blocks.len(), 1);
    }
}
