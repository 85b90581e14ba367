//! Guarantees of the queue for any bytes in its directory, checked for one input: by seeded tests and by the fuzz target
//! `segment`. Never part of a packet's path.

use std::convert::Infallible;
use std::sync::Arc;

use model::{CopyOutcome, Dropped, Now, OutputAccount};

use super::cursor::NAMES;
use super::faulty_disk::FaultyDisk;
use super::format::{
    CURSOR_BYTES, Place, RecordHeader, SEGMENT_HEADER_BYTES, SLOT_OFFSETS, SegmentHeader, Slot, Totals,
    segment_name,
};
use super::inspect::{Begin, Inspection, Step};
use super::salvage::{quarantined, salvage};
use super::{DiskQueue, DiskQueuePlan};
use crate::block::Block;
use crate::queue::Queue;

const QUEUE_ID: u64 = 0x5eed_0000_0000_0001;

/// Puts `garbage` wherever bytes are read, and panics where a guarantee is broken.
pub fn check(garbage: &[u8]) {
    alone(garbage);
    between(garbage, true);
    flipped(garbage);
    built(garbage);
}

/// One of these checks, chosen by the first byte: the fuzz target tries more inputs in the same time.
pub fn check_one(garbage: &[u8]) {
    let [which, garbage @ ..] = garbage else { return };
    match which % 8 {
        0 => alone(garbage),
        1 => between(garbage, true),
        2 | 3 => flipped(garbage),
        _ => built(garbage),
    }
}

/// Inspects it without opening, as `staunch queue` does: the queued blocks, and the copies that are lost.
fn walk(disk: &FaultyDisk) -> (Vec<Vec<u8>>, u64) {
    let inspection = Inspection::of(disk, false).expect("the directory can be listed");
    let (mut blocks, mut lost) = (Vec::new(), 0);
    let visit = &mut |step: Step<'_>| -> Result<(), Infallible> {
        match step {
            Step::Record(record) => blocks.push(record.block.bytes.to_vec()),
            Step::Damage(stretch) => lost += stretch.lost.copies,
            Step::BeingWritten(_) => unreachable!("no process writes"),
            Step::NotRead { error, .. } => unreachable!("everything can be read: {error}"),
        }
        Ok(())
    };
    let Ok(()) = inspection.walk(disk, Begin::Cursor, visit);
    let Ok(()) =
        salvage(&inspection, disk, &quarantined(&inspection, disk), &mut |_| Ok::<(), Infallible>(()));
    (blocks, lost)
}

/// Opens, reads everything, checks the account; returns the blocks and the damaged copies.
fn drain(disk: &FaultyDisk) -> (Vec<Vec<u8>>, u64) {
    let walked = walk(disk);
    let account = Arc::new(OutputAccount::default());
    let now = Now::default();
    let (mut queue, report) =
        DiskQueue::open(disk.clone(), DiskQueuePlan::default(), Arc::clone(&account), 1, now)
            .expect("the directory can be listed");
    assert_eq!(report.copies_queued, queue.copies());
    let mut blocks = Vec::new();
    while let Some(entry) = queue.pop(now) {
        blocks.push(entry.block().bytes.to_vec());
        entry.settle(CopyOutcome::Delivered);
        let sum = account.sum(queue.copies());
        assert!(sum.holds(), "{sum:?}");
    }
    assert_eq!((queue.copies(), queue.bytes(), account.copies_queued()), (0, 0, 0));
    assert_eq!(
        walked,
        (blocks.clone(), account.dropped(Dropped::Damaged)),
        "inspection and reading find the same"
    );
    let _readable = walk(disk);
    // It can be written to, whatever its content was.
    let kept = queue.append(Block::lines(b"new\n".to_vec(), 1, 0), now);
    assert_eq!(kept, crate::queue::Appended::Kept);
    assert_eq!(queue.pop(now).map(|entry| entry.block().bytes.to_vec()), Some(b"new\n".to_vec()));
    (blocks, account.dropped(Dropped::Damaged))
}

/// Nothing but garbage, under each name.
fn alone(garbage: &[u8]) {
    let disk = FaultyDisk::new(1);
    for name in
        ["cursor-0", "cursor-1", "0000000000000003.segment", "ffffffffffffffff.segment", "x.quarantine"]
    {
        disk.store(name, garbage);
    }
    let (blocks, _) = drain(&disk);
    assert_eq!(blocks, Vec::<Vec<u8>>::new(), "no record of a queue's id is made by chance");
}

fn header() -> SegmentHeader {
    SegmentHeader { queue_id: QUEUE_ID, sequence: 3, before: Totals::default(), made_wall_ns: 0 }
}

fn record(bytes: &[u8], before: &mut Totals) -> Vec<u8> {
    let block = Block::lines(bytes.to_vec(), 1, 0);
    let header = RecordHeader::of(&block, &[], *before, 0, QUEUE_ID).expect("a small block");
    *before = header.after();
    [&header.encode(QUEUE_ID)[..], bytes].concat()
}

/// Whole records are read between garbage, after the segment's header or garbage in its place.
pub(super) fn between(garbage: &[u8], as_header: bool) {
    let blocks = [b"first\n".to_vec(), garbage.to_vec(), b"third\n".to_vec()];
    let mut totals = Totals::default();
    let records = blocks.each_ref().map(|block| record(block, &mut totals));
    let whole = header().encode();
    for head in [&whole[..], garbage].into_iter().take(1 + usize::from(as_header)) {
        let mut bytes = head.to_vec();
        for record in &records {
            bytes.extend_from_slice(garbage);
            bytes.extend_from_slice(record);
        }
        bytes.extend_from_slice(garbage);
        let disk = FaultyDisk::new(1);
        disk.store(&segment_name(3), &bytes);
        assert_eq!(drain(&disk), (blocks.to_vec(), 0));
    }
}

/// Each flipped byte costs one record at most, and it is counted: by the segment's header and the end mark, unless a
/// byte of these is flipped as well, and in any case when there is a cursor.
fn flipped(garbage: &[u8]) {
    let mut totals = Totals::default();
    let mut bytes = header().encode().to_vec();
    let mut blocks = Vec::new();
    for number in 0..8_u8 {
        blocks.push(vec![b'a' + number; 50]);
        bytes.extend_from_slice(&record(blocks.last().expect("just pushed"), &mut totals));
    }
    let written = totals;
    let mark_at = bytes.len();
    bytes.extend_from_slice(&RecordHeader::mark(written).encode(QUEUE_ID));
    let flips = garbage.chunks_exact(3).take(4);
    let count = flips.len();
    let whole = bytes.clone();
    for flip in flips {
        let at = usize::from(u16::from_le_bytes([flip[0], flip[1]])) % bytes.len();
        bytes[at] ^= flip[2];
    }
    for cursor in [false, true] {
        let disk = FaultyDisk::new(1);
        disk.store(&segment_name(3), &bytes);
        if cursor {
            disk.store(NAMES[0], &cursor_file(written));
        }
        let (found, damaged) = drain(&disk);
        let expected: Vec<Vec<u8>> = blocks.iter().filter(|block| found.contains(block)).cloned().collect();
        assert_eq!(found, expected, "in order, each once");
        assert!(found.len() + count >= blocks.len(), "{} of {}", found.len(), blocks.len());
        let accounted = found.len() as u64 + damaged;
        let same = |range: std::ops::Range<usize>| bytes[range.clone()] == whole[range];
        if cursor || same(0..SEGMENT_HEADER_BYTES) && same(mark_at..bytes.len()) {
            assert_eq!(accounted, blocks.len() as u64, "{damaged} damaged");
        } else {
            assert!(accounted <= blocks.len() as u64, "{damaged} damaged");
        }
    }
}

/// A cursor with nothing settled.
fn cursor_file(written: Totals) -> Vec<u8> {
    let place = Place { sequence: 3, offset: 0 };
    let slot = Slot { queue_id: QUEUE_ID, write: 1, place, settled: Totals::default(), written };
    let mut bytes = vec![0; CURSOR_BYTES];
    bytes[..slot.encode().len()].copy_from_slice(&slot.encode());
    bytes
}

/// Structures with valid checksums and impossible fields: `plan` says which, in which order, and with what between them.
fn built(plan: &[u8]) {
    let mut plan = Plan(plan);
    let mut segments = vec![Vec::new()];
    let mut cursor = vec![0; CURSOR_BYTES];
    while let Some(what) = plan.0.first().copied() {
        plan.0 = &plan.0[1..];
        let sequence = segments.len() as u64;
        let segment = segments.last_mut().expect("the list is never empty");
        let queue_id = if what & 0x80 == 0 { QUEUE_ID } else { plan.number() };
        match what % 8 {
            0 => segment.extend_from_slice(plan.bytes()),
            1 => {
                let header =
                    SegmentHeader { queue_id, sequence, before: plan.totals(), made_wall_ns: plan.number() };
                segment.extend_from_slice(&header.encode());
            }
            2 => segment.extend_from_slice(&RecordHeader::mark(plan.totals()).encode(queue_id)),
            3 if sequence < 4 => segments.push(Vec::new()),
            4 => {
                let place = Place { sequence: plan.number(), offset: plan.number() };
                let (write, settled, written) = (plan.number(), plan.totals(), plan.totals());
                let at = SLOT_OFFSETS[usize::from(what / 8) % SLOT_OFFSETS.len()] as usize;
                let slot = Slot { queue_id, write, place, settled, written }.encode();
                cursor[at..at + slot.len()].copy_from_slice(&slot);
            }
            _ => {
                let block = Block::lines(plan.bytes().to_vec(), plan.number() as u32, 0);
                let header = RecordHeader::of(&block, &[], plan.totals(), plan.number(), queue_id);
                let mut header = header.expect("a small block");
                if what & 0x40 != 0 {
                    header.encoding = (plan.number() % 5) as u8;
                    (header.copy_bytes, header.block_len) = (plan.number(), plan.number() as u32);
                }
                segment.extend_from_slice(&header.encode(queue_id));
                segment.extend_from_slice(&block.bytes);
            }
        }
    }
    let disk = FaultyDisk::new(1);
    for (at, segment) in segments.iter().enumerate() {
        disk.store(&segment_name(at as u64 + 1), segment);
    }
    disk.store(NAMES[0], &cursor);
    let _what_is_left = drain(&disk);
}

/// Fields from bytes; zeros when there are no more.
struct Plan<'a>(&'a [u8]);

impl<'a> Plan<'a> {
    /// Small numbers, mostly; some of eight bytes.
    fn number(&mut self) -> u64 {
        match self.0 {
            [0xff, rest @ ..] => {
                let (number, rest) = rest.split_at(rest.len().min(8));
                self.0 = rest;
                number.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
            }
            [number, rest @ ..] => {
                self.0 = rest;
                u64::from(*number)
            }
            [] => 0,
        }
    }

    fn totals(&mut self) -> Totals {
        let [records, copies, copy_bytes, disk_bytes] = [(); 4].map(|()| self.number());
        Totals { records, copies, copy_bytes, disk_bytes }
    }

    fn bytes(&mut self) -> &'a [u8] {
        let len = (self.number() as usize).min(self.0.len());
        let (bytes, rest) = self.0.split_at(len);
        self.0 = rest;
        bytes
    }
}
