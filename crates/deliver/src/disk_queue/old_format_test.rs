//! Queues on disk as version 0.1.0 wrote them, put together here from the description of its format, without the code that writes
//! queues today. If reading them breaks, the format has changed, and its version number must say so.

use std::sync::Arc;

use model::{CopyOutcome, Dropped, Now, OutputAccount};
use twox_hash::XxHash3_64;

use super::faulty_disk::FaultyDisk;
use super::*;
use crate::block::BlockEncoding;

const QUEUE_ID: u64 = 0x0123_4567_89ab_cdef;

const MADE_NS: u64 = 1_763_000_000_000_000_000;

/// Records, copies, bytes of copies, bytes on disk.
type Sums = [u64; 4];

struct Record {
    encoding: u32,
    copies: u32,
    copy_bytes: u64,
    /// Frames: (end, copies). Packets: (offset, length).
    boundaries: Vec<(u32, u32)>,
    block: &'static [u8],
    partition: u32,
}

fn numbers(to: &mut Vec<u8>, numbers: &[u64]) {
    numbers.iter().for_each(|number| to.extend_from_slice(&number.to_le_bytes()));
}

fn small_numbers(to: &mut Vec<u8>, numbers: &[u32]) {
    numbers.iter().for_each(|number| to.extend_from_slice(&number.to_le_bytes()));
}

fn segment_header(sequence: u64, before: Sums) -> Vec<u8> {
    let mut bytes = b"STNSEG\r\n".to_vec();
    small_numbers(&mut bytes, &[1, 80]);
    numbers(&mut bytes, &[QUEUE_ID, sequence]);
    numbers(&mut bytes, &before);
    numbers(&mut bytes, &[MADE_NS]);
    let checksum = XxHash3_64::oneshot(&bytes);
    numbers(&mut bytes, &[checksum]);
    assert_eq!(bytes.len(), 80);
    bytes
}

fn record_header(record: &Record, before: Sums, made_ns: u64, body_checksum: u64) -> Vec<u8> {
    let mut bytes = vec![0xf1, 0x53, 0x71, 0x1a];
    small_numbers(&mut bytes, &[record.encoding]);
    numbers(&mut bytes, &[QUEUE_ID]);
    numbers(&mut bytes, &before);
    numbers(&mut bytes, &[made_ns, record.copy_bytes]);
    let lens = [8 * record.boundaries.len() as u32, record.block.len() as u32];
    small_numbers(&mut bytes, &[record.copies, lens[0], lens[1], record.partition]);
    numbers(&mut bytes, &[body_checksum]);
    let checksum = XxHash3_64::oneshot_with_seed(QUEUE_ID, &bytes);
    numbers(&mut bytes, &[checksum]);
    assert_eq!(bytes.len(), 96);
    bytes
}

/// Appends a record and adds it to the sums.
fn put_record(to: &mut Vec<u8>, record: &Record, sums: &mut Sums) {
    let mut boundaries = Vec::new();
    record.boundaries.iter().for_each(|(one, two)| small_numbers(&mut boundaries, &[*one, *two]));
    let seed = XxHash3_64::oneshot_with_seed(QUEUE_ID, &boundaries);
    let body_checksum = XxHash3_64::oneshot_with_seed(seed, record.block);
    to.extend(record_header(record, *sums, MADE_NS, body_checksum));
    to.extend_from_slice(&boundaries);
    to.extend_from_slice(record.block);
    let disk_bytes = 96 + boundaries.len() as u64 + record.block.len() as u64;
    let of_record = [1, u64::from(record.copies), record.copy_bytes, disk_bytes];
    sums.iter_mut().zip(of_record).for_each(|(sum, more)| *sum += more);
}

fn put_end_mark(to: &mut Vec<u8>, sums: Sums) {
    let mark = Record { encoding: 3, copies: 0, copy_bytes: 0, boundaries: vec![], block: b"", partition: 0 };
    to.extend(record_header(&mark, sums, 0, 0));
}

/// The cursor file with one slot, the first of three.
fn cursor(settled: (u64, u64), up_to: Sums, written: Sums) -> Vec<u8> {
    let mut bytes = b"STNCUR\r\n".to_vec();
    small_numbers(&mut bytes, &[2, 120]);
    numbers(&mut bytes, &[QUEUE_ID, 7, settled.0, settled.1]);
    numbers(&mut bytes, &up_to);
    numbers(&mut bytes, &written);
    let checksum = XxHash3_64::oneshot(&bytes);
    numbers(&mut bytes, &[checksum]);
    assert_eq!(bytes.len(), 120);
    bytes.resize(8192 + 120, 0);
    bytes
}

/// A queue of two segments whose first record is settled.
fn old_queue() -> FaultyDisk {
    let lines = |block, partition| Record {
        encoding: 0,
        copies: 2,
        copy_bytes: 12,
        boundaries: Vec::new(),
        block,
        partition,
    };
    let frames = Record {
        encoding: 1,
        copies: 3,
        copy_bytes: 5,
        boundaries: vec![(2, 1), (5, 2)],
        block: b"ab\x80cd",
        partition: 0,
    };
    let packets = Record {
        encoding: 2,
        copies: 2,
        copy_bytes: 4,
        boundaries: vec![(0, 1), (2, 3)],
        block: b"p\nqrs\n",
        partition: 0,
    };
    let (mut sums, mut first) = (Sums::default(), segment_header(1, Sums::default()));
    put_record(&mut first, &lines(b"a 1 2\nb 1 2\n", 0), &mut sums);
    let (settled, up_to) = ((1, first.len() as u64), sums);
    put_record(&mut first, &lines(b"c 1 2\nd 1 2\n", 4), &mut sums);
    put_end_mark(&mut first, sums);
    let mut second = segment_header(2, sums);
    put_record(&mut second, &frames, &mut sums);
    put_record(&mut second, &packets, &mut sums);
    put_end_mark(&mut second, sums);
    let disk = FaultyDisk::new(1);
    disk.store("0000000000000001.segment", &first);
    disk.store("0000000000000002.segment", &second);
    disk.store("cursor-0", &cursor(settled, up_to, sums));
    disk
}

#[test]
fn a_queue_of_version_0_1_0_is_read_from_its_cursor_on_and_goes_on() {
    let disk = old_queue();
    let account = Arc::new(OutputAccount::default());
    let now = Now { mono_ns: 1 << 50, wall_ns: MADE_NS + MS_NS };
    let open = || DiskQueue::open(disk.clone(), DiskQueuePlan::default(), Arc::clone(&account), 9, now);
    let (mut queue, found) = open().expect("the directory can be read");
    let want =
        Recovery { segments: 2, copies_queued: 7, queued_bytes: found.queued_bytes, ..Recovery::default() };
    assert_eq!(found, want);
    assert_eq!(queue.append(Block::lines(b"e 1 2\n".to_vec(), 1, now.mono_ns), now), Appended::Kept);
    let frames = BlockEncoding::Frames(vec![(2, 1), (5, 2)]);
    let packets = BlockEncoding::Packets(Arc::new(vec![model::Span::new(0, 1), model::Span::new(2, 3)]));
    for (bytes, copies, encoding, partition) in [
        (&b"c 1 2\nd 1 2\n"[..], 2, BlockEncoding::Lines, Some(3)),
        (b"ab\x80cd", 3, frames, None),
        (b"p\nqrs\n", 2, packets, None),
        (b"e 1 2\n", 1, BlockEncoding::Lines, None),
    ] {
        let entry = queue.pop(now).expect("four are queued");
        let block = entry.block();
        assert_eq!((&block.bytes[..], block.copies, block.partition), (bytes, copies, partition));
        assert_eq!(block.encoding, encoding);
        entry.settle(CopyOutcome::Delivered);
    }
    assert!(queue.pop(now).is_none());
    assert_eq!((account.dropped(Dropped::Damaged), account.sum(0).holds()), (0, true));
    let _synced = queue.begin_last_sync().map(|job| queue.on_synced(job.perform(&disk)));
    drop(queue);
    let (queue, found) = open().expect("the directory can be read");
    assert_eq!((queue.copies(), found.cursor_lost), (0, false));
}
