//! The first records of a batch, for outputs that have no room for all of it.
//!
//! Only packets and points are divided: nothing else goes from a source to a queue that the source waits for. A batch whose
//! client waits for an acknowledgement is one promise, and stays whole.

use std::borrow::Cow;

use super::{Batch, Batches, PacketBatch, Packets, Point, Points, Records, Span};

impl Batches<'_> {
    /// Most records that a part may have: something is left behind it. 0 when they cannot be divided.
    pub fn part_max(&self) -> usize {
        if self.ack.is_some() {
            return 0;
        }
        let mut batches = self.iter();
        let records = match batches.next().map(|batch| &batch.records) {
            Some(Records::Packets(packets)) => packets.packets.len(),
            Some(Records::Points(points)) => points.points.len(),
            Some(Records::Samples(_) | Records::Events(_)) | None => 0,
        };
        let is_followed = batches.next().is_some();
        if is_followed { records } else { records.saturating_sub(1) }
    }

    /// A copy of the first `records`, at most [`Self::part_max`], without a receipt: to ask whether there is room for them.
    pub fn part(&self, records: usize) -> Batches<'static> {
        debug_assert!(records <= self.part_max(), "{records} of {}", self.part_max());
        let mut part = Batches::new(self.source);
        match self.iter().next().map(|batch| &batch.records) {
            Some(Records::Packets(packets)) => part.push(Records::Packets(packets.first(records)), None),
            Some(Records::Points(points)) => part.push(Records::Points(points.first(records)), None),
            Some(Records::Samples(_) | Records::Events(_)) | None => {}
        }
        part
    }

    /// Splits off the first `records`, at most [`Self::part_max`], with their part of the receipt.
    pub fn split_part(&mut self, records: usize) -> Batches<'static> {
        let mut part = self.part(records);
        let Some(Batch { records: left, receipt }) =
            self.batches.get_mut(usize::from(self.taken)).and_then(Option::as_mut)
        else {
            return part;
        };
        if let (Some(of_part), Some(receipt)) = (&mut part.batches[0], receipt.as_mut()) {
            // Packets and points are counted one by one.
            of_part.receipt = Some(receipt.split(records as u64));
        }
        let is_empty = match left {
            Records::Packets(packets) => {
                packets.skip(records);
                packets.packets.is_empty()
            }
            Records::Points(points) => {
                points.skip(records);
                points.points.is_empty()
            }
            Records::Samples(_) | Records::Events(_) => false,
        };
        if is_empty && receipt.as_ref().is_none_or(|receipt| receipt.records() == 0) {
            self.taken += 1;
        }
        part
    }
}

impl Packets<'_> {
    /// Takes the first packets away; the arena keeps their bytes.
    fn skip(&mut self, packets: usize) {
        match &mut self.packets {
            Cow::Borrowed(all) => *all = &all[packets..],
            Cow::Owned(all) => drop(all.drain(..packets)),
        }
    }

    fn first(&self, packets: usize) -> Packets<'static> {
        let mut first = PacketBatch::default();
        self.packets[..packets].iter().for_each(|packet| first.push(packet.of(&self.bytes)));
        Packets { bytes: Cow::Owned(first.bytes), packets: Cow::Owned(first.packets) }
    }
}

impl Points<'_> {
    fn first(&self, points: usize) -> Points<'static> {
        let first = &self.points[..points];
        let (Some(begin), Some(last)) = (first.first(), first.last()) else {
            return Points { bytes: Cow::default(), points: Cow::default(), peer: self.peer };
        };
        let begin = begin.line.at;
        // With its LF.
        let end = (last.line.at + last.line.len + 1) as usize;
        let moved =
            |point: &Point| Point { line: Span { at: point.line.at - begin, ..point.line }, ..*point };
        Points {
            bytes: Cow::Owned(self.bytes[begin as usize..end].to_vec()),
            points: Cow::Owned(first.iter().map(moved).collect()),
            peer: self.peer,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{AckMark, AckWhen, ConnectionId, Outcome, Peer, Receipt, SourceAccount, SourceId};

    /// Three packets `a`, `bb`, `ccc`, and the points of the same lines.
    fn records() -> (Packets<'static>, Points<'static>) {
        let spans = [Span::new(0, 1), Span::new(2, 2), Span::new(5, 3)];
        let bytes = Cow::Borrowed(&b"a\nbb\nccc\n"[..]);
        let point = |line| Point { hash: 7, line, name_len: 1, tags_len: 0 };
        let points = Cow::Owned(spans.map(point).to_vec());
        let packets = Packets { bytes: bytes.clone(), packets: Cow::Owned(spans.to_vec()) };
        (packets, Points { bytes, points, peer: Peer::UNKNOWN })
    }

    /// The lines of all packets and points, in order.
    fn lines(batches: &Batches<'_>) -> Vec<String> {
        let mut lines = Vec::new();
        for batch in batches.iter() {
            let (bytes, spans): (&[u8], Vec<Span>) = match &batch.records {
                Records::Packets(packets) => (&packets.bytes, packets.packets.to_vec()),
                Records::Points(points) => {
                    (&points.bytes, points.points.iter().map(|point| point.line).collect())
                }
                Records::Samples(_) | Records::Events(_) => panic!("none were added"),
            };
            lines.extend(spans.iter().map(|line| String::from_utf8_lossy(line.of(bytes)).into_owned()));
        }
        lines
    }

    #[test]
    fn parts_have_the_records_in_order_and_the_receipt_is_split_by_their_number() {
        for of_packets in [true, false] {
            let account = Arc::new(SourceAccount::default());
            let (packets, points) = records();
            let records = if of_packets { Records::Packets(packets) } else { Records::Points(points) };
            let mut left = Batches::one(SourceId(3), records, Receipt::receive(&account, 3));
            assert_eq!((left.part_max(), lines(&left.part(2))), (2, vec!["a".to_owned(), "bb".to_owned()]));
            assert_eq!(left.part(2).records(), 0, "a copy promises nothing");
            let first = left.split_part(2);
            assert_eq!((first.source, first.records(), left.records()), (SourceId(3), 2, 1));
            assert_eq!((lines(&first), lines(&left)), (vec!["a".into(), "bb".into()], vec!["ccc".into()]));
            assert_eq!(left.part_max(), 0, "the last record is no part");
            first.settle(Outcome::Routed);
            left.settle(Outcome::Routed);
            assert!(account.sum(0).holds());
        }
    }

    #[test]
    fn packets_beside_points_are_split_off_to_the_last_one_and_have_no_receipt() {
        let account = Arc::new(SourceAccount::default());
        let (packets, points) = records();
        let mut left = Batches::new(SourceId(0));
        left.push(Records::Packets(packets), None);
        left.push(Records::Points(points), Some(Receipt::receive(&account, 3)));
        assert_eq!(left.part_max(), 3);
        let first = left.split_part(3);
        assert_eq!((lines(&first).len(), first.records()), (3, 0));
        assert!(left.packets().is_none());
        assert_eq!((left.part_max(), lines(&left).len(), left.records()), (2, 3, 3));
        left.settle(Outcome::Routed);
    }

    #[test]
    fn a_batch_with_an_acknowledgement_is_not_divided() {
        let account = Arc::new(SourceAccount::default());
        let mut whole =
            Batches::one(SourceId(0), Records::Points(records().1), Receipt::receive(&account, 3));
        whole.ack =
            Some(AckMark { connection: ConnectionId(0), up_to: 3, rejected: 0, when: AckWhen::Delivered });
        assert_eq!(whole.part_max(), 0);
        whole.settle(Outcome::Routed);
    }
}
