//! Read position and unsettled records, for the successor process (hot restart): the cursor only has the settled records
//! before the first unsettled one.
//!
//! Path: the senders have stopped -> [`DiskQueue::unsettled`](super::DiskQueue::unsettled) -> [`Unsettled::encode`] -> another process ->
//! [`Unsettled::decode`] -> [`Prepared::open_after`](super::Prepared::open_after). Without it everything from the
//! cursor on is sent again.
//! Invariant: any byte string decodes to a possible position, or to none. A position that does not fit the opened queue
//! changes nothing, and the queue sends everything from the cursor on.

use super::format::{Place, RECORD_HEADER_BYTES, Reader, RecordHeader, Totals, Writer};
use super::settle::{OPEN_RECORDS_MAX, Progress};

/// Queue id, totals and place of the next record to read.
const HEAD_BYTES: usize = 8 + 32 + 16;

/// A record's header, its place, and its progress.
const RECORD_BYTES: usize = RECORD_HEADER_BYTES + 16 + 4 * 8 + 4;

/// Records that were read and have unsettled copies. All other records before `read` are settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsettled {
    pub(super) queue_id: u64,
    pub(super) read: Totals,
    pub(super) place: Place,
    pub(super) records: Vec<(RecordHeader, Place, Progress)>,
}

impl Unsettled {
    /// Encodes it.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; HEAD_BYTES + self.records.len() * RECORD_BYTES];
        let mut out = Writer(&mut bytes);
        out.u64(self.queue_id);
        self.read.put(&mut out);
        self.place.put(&mut out);
        for (header, place, progress) in &self.records {
            out.bytes(&header.encode(self.queue_id));
            place.put(&mut out);
            for number in [progress.settled, progress.written_before, progress.packets_done] {
                out.u64(number as u64);
            }
            out.u64(progress.bytes_left);
            out.u32(progress.copies_left);
        }
        bytes
    }

    /// Decodes the result of [`Self::encode`]. None when the bytes cannot be a position of a queue.
    pub fn decode(bytes: &[u8]) -> Option<Unsettled> {
        let (head, records) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let (records, rest) = records.as_chunks::<RECORD_BYTES>();
        let mut reader = Reader(head);
        let (queue_id, read) = (reader.u64(), Totals::take(&mut reader));
        let place = Place::take(&mut reader);
        let records = records.iter().map(|bytes| record(bytes, queue_id)).collect::<Option<Vec<_>>>()?;
        let unsettled = Unsettled { queue_id, read, place, records };
        (rest.is_empty() && unsettled.is_in_order()).then_some(unsettled)
    }

    fn is_in_order(&self) -> bool {
        let (mut end, mut place) = (Totals::default(), Place::default());
        for (header, start, _) in &self.records {
            if !header.before.covers(end) || *start < place {
                return false;
            }
            (end, place) = (header.after(), end_of(header, *start));
        }
        self.records.len() <= OPEN_RECORDS_MAX && self.read.covers(end) && self.place >= place
    }

    /// Whether it fits this queue, in which everything up to `settled` is settled and everything up to `end` was
    /// written.
    pub(super) fn fits(&self, queue_id: u64, (settled, place): (Totals, Place), end: Totals) -> bool {
        let first = self.records.first();
        let begins = first.is_none_or(|(header, start, _)| header.before.covers(settled) && *start >= place);
        self.queue_id == queue_id && begins && self.read.covers(settled) && end.covers(self.read)
    }

    /// What is queued at that position: copies, their bytes, and bytes on disk.
    pub(super) fn waiting(&self, end: Totals) -> Totals {
        let left = |(header, _, progress): &(RecordHeader, Place, Progress)| Totals {
            records: 1,
            copies: u64::from(progress.copies_left),
            copy_bytes: progress.bytes_left,
            disk_bytes: header.disk_bytes(),
        };
        self.records.iter().map(left).fold(end.since(self.read), Totals::plus)
    }
}

/// Where the record after this one begins.
pub(super) fn end_of(header: &RecordHeader, start: Place) -> Place {
    Place { offset: start.offset.saturating_add(header.disk_bytes()), ..start }
}

fn record(bytes: &[u8; RECORD_BYTES], queue_id: u64) -> Option<(RecordHeader, Place, Progress)> {
    let (header, rest) = bytes.split_first_chunk::<RECORD_HEADER_BYTES>()?;
    let header = RecordHeader::decode(header, queue_id).filter(|header| !header.is_mark())?;
    let mut reader = Reader(rest);
    let place = Place::take(&mut reader);
    let at = |number: u64| usize::try_from(number).ok().filter(|at| *at <= header.block_len as usize);
    let progress = Progress {
        settled: at(reader.u64())?,
        written_before: at(reader.u64())?,
        packets_done: usize::try_from(reader.u64()).ok()?,
        bytes_left: reader.u64(),
        copies_left: reader.u32(),
    };
    let possible = progress.copies_left <= header.copies
        && progress.packets_done <= header.copies as usize
        && progress.bytes_left <= header.copy_bytes;
    possible.then_some((header, place, progress))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::{CopyOutcome, Now};

    use super::super::faulty_disk::FaultyDisk;
    use super::super::{DiskQueue, DiskQueuePlan, Recovery, Unreadable};
    use super::*;
    use crate::block::Block;
    use crate::queue::{Appended, Queue};

    const NOW: Now = Now { mono_ns: 1 << 40, wall_ns: 1 << 60 };

    /// Six records of three lines; of the second two lines were delivered, the third completely, the rest is queued.
    fn left(disk: &FaultyDisk) -> Unsettled {
        let opened = DiskQueue::open(disk.clone(), DiskQueuePlan::default(), Arc::default(), 1, NOW);
        let mut queue = opened.expect("an empty disk").0;
        for number in 0..6 {
            let lines = format!("{number}a\n{number}b\n{number}c\n").into_bytes();
            assert_eq!(queue.append(Block::lines(lines, 3, NOW.mono_ns), NOW), Appended::Kept);
        }
        let mut entries: Vec<_> = (0..4).map_while(|_| queue.pop(NOW)).collect();
        entries.remove(2).settle(CopyOutcome::Delivered);
        entries.remove(0).settle(CopyOutcome::Delivered);
        let mut second = entries.remove(0);
        second.delivered_up_to(6);
        second.written_before = 9;
        assert_eq!(queue.unsettled(), None, "entries are held");
        queue.put_back(second);
        drop(entries);
        let unsettled = queue.unsettled().expect("no entry is held");
        let _synced = queue.begin_last_sync().map(|job| queue.on_synced(job.perform(disk)));
        unsettled
    }

    fn open(disk: &FaultyDisk, handed_over: Unsettled) -> (DiskQueue<FaultyDisk>, Recovery) {
        let prepared = DiskQueue::prepare(disk.clone(), DiskQueuePlan::default(), Unreadable::Fail);
        prepared
            .expect("everything can be read")
            .open_after(Some(handed_over), Arc::default(), (2, NOW))
            .expect("it reads")
    }

    fn queued(queue: &mut DiskQueue<FaultyDisk>) -> Vec<(String, u64)> {
        let mut queued = Vec::new();
        while let Some(entry) = queue.pop(NOW) {
            queued.push((String::from_utf8_lossy(&entry.block().bytes[..2]).into_owned(), entry.copies()));
            entry.settle(CopyOutcome::Delivered);
        }
        queued
    }

    #[test]
    fn another_process_sends_unsettled_records_and_counts_them_once() {
        let disk = FaultyDisk::new(1);
        let handed_over = left(&disk);
        let (mut queue, report) = open(&disk, handed_over.clone());
        assert_eq!((report.unsettled_lost, report.copies_queued, queue.copies()), (false, 10, 10));
        assert_eq!(queue.unsettled(), Some(handed_over), "as it was handed over");
        assert_eq!(queue.account().sum(10).copies, 10);
        let second = queue.pop(NOW).expect("it is queued");
        assert_eq!((second.copies(), second.progress().settled, second.written_before), (1, 6, 9));
        drop(second);
        let want =
            [("1a", 1), ("3a", 3), ("4a", 3), ("5a", 3)].map(|(first, copies)| (first.to_owned(), copies));
        assert_eq!(queued(&mut queue), want);
        assert_eq!((queue.settled_up_to().0, queue.account().copies_queued()), (6, 0));
    }

    #[test]
    fn a_position_of_another_queue_is_ignored() {
        let disk = FaultyDisk::new(1);
        let handed_over = left(&disk);
        let past_end = Totals { records: 7, ..handed_over.read };
        let before = Totals::default();
        for (what, wrong) in [
            ("another queue's", Unsettled { queue_id: 9, ..handed_over.clone() }),
            ("more than there is", Unsettled { read: past_end, ..handed_over.clone() }),
            (
                "less than the cursor says",
                Unsettled { read: before, records: Vec::new(), ..handed_over.clone() },
            ),
        ] {
            let (mut queue, report) = open(&disk.copy(), wrong);
            assert!(report.unsettled_lost, "{what}");
            // From the cursor on: the first record is settled.
            assert_eq!(queued(&mut queue).len(), 5, "{what}");
        }
    }

    #[test]
    fn any_bytes_decode_to_a_position_or_none() {
        let bytes = left(&FaultyDisk::new(1)).encode();
        let same =
            |bytes: &[u8]| Unsettled::decode(bytes).is_some_and(|handed_over| handed_over.encode() == bytes);
        assert!(same(&bytes));
        for len in 0..bytes.len() {
            assert!(Unsettled::decode(&bytes[..len]).is_none_or(|_| same(&bytes[..len])), "{len}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Unsettled::decode(&flipped).is_none_or(|_| same(&flipped)), "bit {bit}");
        }
        let handed_over = left(&FaultyDisk::new(1));
        let turned =
            Unsettled { records: handed_over.records.iter().rev().copied().collect(), ..handed_over };
        assert_eq!(Unsettled::decode(&turned.encode()), None, "not in order");
    }
}
