//! What holds of any bytes in a queue's directory, checked for one input: by seeded tests and by the fuzz target
//! `segment`. Never part of a packet's path.

use std::convert::Infallible;
use std::sync::Arc;

use model::{CopyOutcome, Now, OutputAccount, Shed};

use super::faulty_disk::FaultyDisk;
use super::format::{RecordHeader, SegmentHeader, Totals, segment_name};
use super::inspect::{Begin, Inspection, Step};
use super::salvage::{quarantined, salvage};
use super::{DiskQueue, DiskQueuePlan};
use crate::block::Block;
use crate::queue::Queue;

const QUEUE_ID: u64 = 0x5eed_0000_0000_0001;

/// Puts `garbage` wherever bytes are read, and panics where a promise does not hold.
pub fn check(garbage: &[u8]) {
    alone(garbage);
    between(garbage, true);
    flipped(garbage);
}

/// Looks at it without opening, as `staunch queue` does: the blocks that wait, and the copies that are lost.
fn walk(disk: &FaultyDisk) -> (Vec<Vec<u8>>, u64) {
    let inspection = Inspection::of(disk, false).expect("the directory can be listed");
    let (mut blocks, mut lost) = (Vec::new(), 0);
    let visit = &mut |step: Step<'_>| -> Result<(), Infallible> {
        match step {
            Step::Record(record) => blocks.push(record.block.bytes.to_vec()),
            Step::Damage(stretch) => lost += stretch.lost.copies,
            Step::BeingWritten(_) => unreachable!("nobody writes"),
        }
        Ok(())
    };
    let Ok(()) = inspection.walk(disk, Begin::Cursor, visit);
    let Ok(()) =
        salvage(&inspection, disk, &quarantined(&inspection, disk), &mut |_| Ok::<(), Infallible>(()));
    (blocks, lost)
}

/// Opens, reads everything, checks the sum; gives the blocks and the copies that were damaged.
fn drain(disk: &FaultyDisk) -> (Vec<Vec<u8>>, u64) {
    let walked = walk(disk);
    let account = Arc::new(OutputAccount::default());
    let now = Now::default();
    let (mut queue, report) =
        DiskQueue::open(disk.clone(), DiskQueuePlan::default(), Arc::clone(&account), 1, now)
            .expect("the directory can be listed");
    assert_eq!(report.copies_waiting, queue.copies());
    let mut blocks = Vec::new();
    while let Some(entry) = queue.pop(now) {
        blocks.push(entry.block().bytes.to_vec());
        entry.settle(CopyOutcome::Delivered);
        let sum = account.sum(queue.copies());
        assert!(sum.holds(), "{sum:?}");
    }
    assert_eq!((queue.copies(), queue.bytes(), account.copies_waiting()), (0, 0, 0));
    assert_eq!(walked, (blocks.clone(), account.shed(Shed::Damaged)), "looking and reading find the same");
    let _readable = walk(disk);
    // It can be written to, whatever was there.
    let kept = queue.append(Block::lines(b"new\n".to_vec(), 1, 0), now);
    assert_eq!(kept, crate::queue::Appended::Kept);
    assert_eq!(queue.pop(now).map(|entry| entry.block().bytes.to_vec()), Some(b"new\n".to_vec()));
    (blocks, account.shed(Shed::Damaged))
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

/// Whole records come back from between garbage, behind the segment's header or garbage in its place.
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

/// Each flipped byte takes one record at most, and it is counted.
fn flipped(garbage: &[u8]) {
    let mut totals = Totals::default();
    let mut bytes = header().encode().to_vec();
    let mut blocks = Vec::new();
    for number in 0..8_u8 {
        blocks.push(vec![b'a' + number; 50]);
        bytes.extend_from_slice(&record(blocks.last().expect("just pushed"), &mut totals));
    }
    let flips = garbage.chunks_exact(3).take(4);
    let count = flips.len();
    for flip in flips {
        let at = usize::from(u16::from_le_bytes([flip[0], flip[1]])) % bytes.len();
        bytes[at] ^= flip[2];
    }
    let disk = FaultyDisk::new(1);
    disk.store(&segment_name(3), &bytes);
    let (found, damaged) = drain(&disk);
    let expected: Vec<Vec<u8>> = blocks.iter().filter(|block| found.contains(block)).cloned().collect();
    assert_eq!(found, expected, "in order, each once");
    assert!(found.len() + count >= blocks.len(), "{} of {}", found.len(), blocks.len());
    assert!(found.len() as u64 + damaged <= blocks.len() as u64, "{damaged} damaged");
}
