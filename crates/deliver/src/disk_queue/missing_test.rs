//! Deleted files and an unavailable directory, while the queue is open.

use super::faulty_disk::{Faults, FaultyDisk};
use super::format::segment_name;
use super::*;

type Queued = DiskQueue<FaultyDisk>;

fn at_ms(ms: u64) -> Now {
    Now { mono_ns: 1 << 40, wall_ns: 1 << 60 }.plus_ns(ms * MS_NS)
}

fn open(disk: &FaultyDisk) -> (Queued, Recovery) {
    let plan = DiskQueuePlan { segment_bytes: 300, ..DiskQueuePlan::default() };
    DiskQueue::open(disk.clone(), plan, Arc::default(), 7, at_ms(0)).expect("the directory can be listed")
}

fn append(queue: &mut Queued, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let block = Block::lines(format!("{number}\n").into_bytes(), 1, at_ms(0).mono_ns);
        assert_eq!(queue.append(block, at_ms(0)), Appended::Kept);
    }
}

/// Six records, two in each of three segments, synced with the cursor.
fn six(disk: &FaultyDisk) -> Queued {
    let (mut queue, _) = open(disk);
    append(&mut queue, 0..6);
    assert_eq!(sync(&mut queue, disk), None);
    queue
}

fn sync(queue: &mut Queued, disk: &FaultyDisk) -> Option<DiskError> {
    queue.begin_last_sync().and_then(|job| queue.on_synced(job.perform(disk)).error)
}

fn look(queue: &mut Queued, disk: &FaultyDisk) -> Option<(DiskError, u64)> {
    let looked = queue.begin_directory_check().map(|look| look.perform(disk));
    looked.into_iter().for_each(|looked| queue.on_directory_checked(looked));
    queue.missing().map(|missing| (missing.error, missing.copies))
}

fn read(queue: &mut Queued, ms: u64) -> String {
    let mut texts = String::new();
    while let Some(entry) = queue.pop(at_ms(ms)) {
        texts.push_str(&String::from_utf8_lossy(&entry.block().bytes));
        entry.settle(CopyOutcome::Delivered);
    }
    let sum = queue.account().sum(queue.copies());
    assert!(sum.holds(), "{sum:?}");
    texts.replace('\n', "")
}

/// Reads everything, however long that takes.
fn read_all(queue: &mut Queued) -> String {
    (0..100).map(|turn| read(queue, turn * READ_AGAIN_MS)).collect()
}

fn deleted(queue: &Queued) -> u64 {
    queue.account().dropped(Dropped::Deleted)
}

/// Ends the queue as the daemon does.
fn end(mut queue: Queued, disk: &FaultyDisk) -> u64 {
    let _error = sync(&mut queue, disk);
    let _missing = look(&mut queue, disk);
    queue.drop_missing();
    let _error = sync(&mut queue, disk);
    let sum = queue.account().sum(queue.copies());
    assert!(sum.holds(), "{sum:?}");
    deleted(&queue)
}

#[test]
fn syncing_a_deleted_file_makes_nothing_safe_and_a_new_segment_is_created() {
    let disk = FaultyDisk::new(1);
    let (mut queue, _) = open(&disk);
    append(&mut queue, 0..1);
    disk.delete(&segment_name(1));
    assert_eq!(sync(&mut queue, &disk), Some(DiskError::Deleted));
    assert_eq!(queue.promise(Position(0)), Promise::InDoubt);
    let missing = Missing { error: DiskError::Deleted, segments: 1, copies: 1 };
    assert_eq!((queue.missing(), queue.counts().in_doubt_records), (Some(missing), 1));
    append(&mut queue, 1..2);
    assert_eq!(sync(&mut queue, &disk), None);
    assert_eq!(queue.promise(Position(1)), Promise::Safe);
    assert_eq!(disk.names().iter().filter(|name| name.ends_with(".segment")).count(), 1);
    assert_eq!(read(&mut queue, 0), "01", "records of open files are delivered");
    assert_eq!((deleted(&queue), queue.missing()), (0, None));
    assert_eq!(sync(&mut queue, &disk), None);
    assert_eq!((queue.segments(), disk.names().len()), (1, 2), "the open segment, and a cursor");
}

#[test]
fn a_settled_segment_removed_during_its_sync_is_not_missing() {
    let disk = FaultyDisk::new(1);
    let (mut queue, _) = open(&disk);
    append(&mut queue, 0..1);
    let job = queue.begin_sync(at_ms(10)).expect("a sync is due");
    queue.segments.clear();
    disk.delete(&segment_name(1));
    let synced = queue.on_synced(job.perform(&disk));
    assert_eq!((synced.error, synced.in_doubt_records), (None, 0));
}

/// (segments whose files are deleted, records that the next process delivers, those that this one counts as deleted,
/// those that the next one counts as damaged).
const TABLE: [(&[u64], &str, u64, u64); 8] = [
    (&[], "012345", 0, 0),
    (&[1], "2345", 2, 0),
    (&[1, 2], "45", 4, 0),
    (&[1, 2, 3], "", 6, 0),
    (&[2], "0145", 0, 2),
    (&[3], "0123", 0, 2),
    (&[1, 3], "23", 2, 2),
    (&[2, 3], "01", 0, 4),
];

#[test]
fn records_of_deleted_files_have_one_outcome_at_the_end() {
    for (gone, next, by_this, by_next) in TABLE {
        for cursor_too in [false, true] {
            let disk = FaultyDisk::new(1);
            let mut queue = six(&disk);
            gone.iter().for_each(|sequence| disk.delete(&segment_name(*sequence)));
            let cursors = ["cursor-0", "cursor-1"];
            cursors.iter().filter(|_| cursor_too).for_each(|cursor| disk.delete(cursor));
            let missing = (!gone.is_empty()).then_some((DiskError::Deleted, 2 * gone.len() as u64));
            assert_eq!(look(&mut queue, &disk), missing, "{gone:?}");
            assert_eq!(deleted(&queue), 0, "while it runs it may deliver them");
            assert_eq!(end(queue, &disk), by_this, "{gone:?}");
            let (mut queue, _) = open(&disk);
            let found = read_all(&mut queue);
            let damaged = queue.account().dropped(Dropped::Damaged);
            assert_eq!((found.as_str(), damaged), (next, by_next), "{gone:?}");
        }
    }
}

#[test]
fn records_of_deleted_files_are_delivered_while_open_and_counted_otherwise() {
    for (gone, _, by_this, by_next) in TABLE {
        let disk = FaultyDisk::new(1);
        let mut queue = six(&disk);
        let first = queue.pop(at_ms(0)).expect("six are queued");
        gone.iter().for_each(|sequence| disk.delete(&segment_name(*sequence)));
        let _missing = look(&mut queue, &disk);
        assert_eq!(first.block().bytes.as_slice(), b"0\n");
        drop(first);
        // The first segment is open for reading, the last for writing.
        let lost = gone.contains(&2);
        assert_eq!(
            read_all(&mut queue),
            if lost { "0145" } else { "012345" },
            "{gone:?} {by_this} {by_next}"
        );
        assert_eq!(
            (deleted(&queue), queue.account().dropped(Dropped::Damaged)),
            (if lost { 2 } else { 0 }, 0)
        );
        assert_eq!((queue.missing(), queue.counts().damaged_records), (None, 0));
    }
}

#[test]
fn an_unavailable_directory_that_comes_back_loses_nothing() {
    let disk = FaultyDisk::new(1);
    let mut queue = six(&disk);
    disk.set_faults(Faults { away: true, ..Faults::default() });
    assert_eq!(look(&mut queue, &disk), Some((DiskError::Away, 6)));
    // The open segment may have room: a record written there is in doubt.
    let block = Block::lines(b"6\n".to_vec(), 1, at_ms(0).mono_ns);
    let appended = queue.append(block, at_ms(0));
    assert!(matches!(appended, Appended::Full(_)), "a new segment cannot be created");
    queue.drop_missing();
    assert_eq!((deleted(&queue), read(&mut queue, 0).as_str()), (0, ""));
    disk.set_faults(Faults::default());
    assert_eq!(look(&mut queue, &disk), None);
    assert_eq!((read_all(&mut queue).as_str(), deleted(&queue)), ("012345", 0));
}

#[test]
fn a_sync_in_an_unavailable_directory_makes_nothing_safe() {
    let disk = FaultyDisk::new(1);
    let (mut queue, _) = open(&disk);
    append(&mut queue, 0..1);
    disk.set_faults(Faults { away: true, ..Faults::default() });
    assert_eq!(sync(&mut queue, &disk), Some(DiskError::Away));
    assert_eq!(queue.promise(Position(0)), Promise::InDoubt);
    assert_eq!(queue.missing().map(|missing| missing.error), Some(DiskError::Away));
    assert_eq!(read(&mut queue, 0), "0", "its file is open");
    disk.set_faults(Faults::default());
    append(&mut queue, 1..2);
    assert_eq!((sync(&mut queue, &disk), look(&mut queue, &disk)), (None, None));
    assert_eq!((read(&mut queue, 0).as_str(), queue.promise(Position(1))), ("1", Promise::Safe));
}

#[test]
fn a_restored_file_is_not_missing_any_more() {
    let disk = FaultyDisk::new(1);
    let mut queue = six(&disk);
    let bytes = disk.bytes(&segment_name(2)).expect("the file exists");
    disk.delete(&segment_name(2));
    assert_eq!(look(&mut queue, &disk), Some((DiskError::Deleted, 2)));
    disk.store(&segment_name(2), &bytes);
    assert_eq!(look(&mut queue, &disk), None);
    assert_eq!((read(&mut queue, 0).as_str(), deleted(&queue)), ("012345", 0));
}
