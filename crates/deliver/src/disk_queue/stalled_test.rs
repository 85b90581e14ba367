//! Shortages and disk failures while a queue reads: only damaged bytes count as damage.

use super::faulty_disk::{Faults, FaultyDisk};
use super::format::segment_name;
use super::*;

type Queued = DiskQueue<FaultyDisk>;

const EMFILE: DiskError = DiskError::Scarce { code: 24 };

fn at_ms(ms: u64) -> Now {
    Now { mono_ns: 1 << 40, wall_ns: 1 << 60 }.plus_ns(ms * MS_NS)
}

fn plan() -> DiskQueuePlan {
    DiskQueuePlan { segment_bytes: 300, ..DiskQueuePlan::default() }
}

/// Records `0\n` to `5\n`, two in each of three segments.
fn six() -> FaultyDisk {
    let disk = FaultyDisk::new(1);
    let (mut queue, _) = open(&disk, Unreadable::Fail).expect("an empty disk");
    for number in 0..6 {
        let block = Block::lines(format!("{number}\n").into_bytes(), 1, at_ms(0).mono_ns);
        assert_eq!(queue.append(block, at_ms(0)), Appended::Kept);
    }
    assert_eq!(queue.segments(), 3);
    let _synced = queue.begin_last_sync().map(|job| queue.on_synced(job.perform(&disk)));
    disk
}

fn open(disk: &FaultyDisk, unreadable: Unreadable) -> Result<(Queued, Recovery), DiskError> {
    DiskQueue::open_with(disk.clone(), plan(), Arc::default(), (7, unreadable), at_ms(0))
}

fn opened(disk: &FaultyDisk) -> Queued {
    open(disk, Unreadable::Fail).expect("everything can be read").0
}

/// Everything that can be read at this time.
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

fn damaged(queue: &Queued) -> u64 {
    queue.account().dropped(Dropped::Damaged)
}

fn files(disk: &FaultyDisk) -> Vec<(String, Option<Vec<u8>>)> {
    disk.names().into_iter().map(|name| (name.clone(), disk.bytes(&name))).collect()
}

#[test]
fn reading_waits_without_limit_while_resources_are_short() {
    let faults = [
        Faults { opens_fail: Some(EMFILE), ..Faults::default() },
        Faults { opens_fail: Some(DiskError::Denied), ..Faults::default() },
        Faults { away: true, ..Faults::default() },
    ];
    for faults in faults {
        let disk = six();
        let mut queue = opened(&disk);
        let first = queue.pop(at_ms(0)).expect("it is queued");
        first.settle(CopyOutcome::Delivered);
        disk.set_faults(faults.clone());
        // The rest of the segment that is open, and no more.
        assert_eq!(read(&mut queue, 0), "1", "{faults:?}");
        let error = queue.read_error().expect("the next segment cannot be opened");
        assert!(error.passes() && !queue.is_empty(), "{error}");
        let day_ms = 24 * 3_600_000;
        for ms in (250..10 * day_ms).step_by(day_ms as usize / 2) {
            assert_eq!(read(&mut queue, ms), "");
        }
        assert_eq!((damaged(&queue), queue.copies(), queue.segments()), (0, 4, 3));
        disk.set_faults(Faults::default());
        assert_eq!(read(&mut queue, 10 * day_ms), "2345");
        assert_eq!((queue.read_error(), damaged(&queue), queue.counts().damaged_ranges), (None, 0, 0));
    }
}

#[test]
fn a_single_failed_read_costs_nothing() {
    for calls in 0..20 {
        let disk = six();
        let mut queue = opened(&disk);
        disk.set_faults(Faults { read_error_in: Some(calls), ..Faults::default() });
        let (mut texts, mut ms) = (String::new(), 0);
        while !queue.is_empty() {
            texts += &read(&mut queue, ms);
            ms += READ_AGAIN_MS;
            assert!(ms < 10_000, "read {calls}");
        }
        assert_eq!((texts.as_str(), damaged(&queue)), ("012345", 0), "read {calls}");
        assert_eq!(queue.counts().quarantined_bytes, 0);
    }
}

#[test]
fn an_unreadable_range_is_skipped_and_its_segment_quarantined() {
    let disk = six();
    let mut queue = opened(&disk);
    let unreadable = vec![(segment_name(2), 0, u64::MAX)];
    disk.set_faults(Faults { unreadable, ..Faults::default() });
    assert_eq!(read(&mut queue, 0), "01");
    let last = (FAILING_MS_MAX - 1) / READ_AGAIN_MS * READ_AGAIN_MS;
    for ms in (READ_AGAIN_MS..=last).step_by(READ_AGAIN_MS as usize) {
        assert_eq!((read(&mut queue, ms).as_str(), damaged(&queue)), ("", 0), "at {ms} ms");
    }
    assert_eq!(queue.read_error(), Some(DiskError::Io { code: 5 }));
    assert_eq!(read(&mut queue, FAILING_MS_MAX), "45");
    assert_eq!((damaged(&queue), queue.read_error()), (2, None));
    let _synced = queue.begin_last_sync().map(|job| queue.on_synced(job.perform(&disk)));
    let names = disk.names();
    assert!(names.contains(&format::quarantine_name(2, format::QuarantineContent::Whole)), "{names:?}");
}

#[test]
fn an_unreadable_range_is_not_skipped_without_enough_attempts() {
    let disk = six();
    let mut queue = opened(&disk);
    disk.set_faults(Faults { unreadable: vec![(segment_name(2), 0, u64::MAX)], ..Faults::default() });
    assert_eq!(read(&mut queue, 0), "01");
    // A machine that slept tried twice in a day.
    assert_eq!(read(&mut queue, 86_400_000), "");
    assert_eq!(damaged(&queue), 0);
    // Failures before and after a shortage do not add up.
    disk.change_faults(|faults| faults.opens_fail = Some(EMFILE));
    queue.reader = None;
    assert_eq!(read(&mut queue, 2 * 86_400_000), "");
    disk.set_faults(Faults::default());
    assert_eq!(read(&mut queue, 3 * 86_400_000), "2345");
}

#[test]
fn the_sender_is_woken_once_after_each_pause() {
    let disk = six();
    let mut queue = opened(&disk);
    disk.set_faults(Faults { opens_fail: Some(EMFILE), ..Faults::default() });
    let _none = read(&mut queue, 0);
    // The sync thread has no other work left.
    disk.set_faults(Faults::default());
    let _synced = queue.begin_last_sync().map(|job| queue.on_synced(job.perform(&disk)));
    disk.set_faults(Faults { opens_fail: Some(EMFILE), ..Faults::default() });
    assert_eq!(queue.sync_due_ns(at_ms(1)), Some(at_ms(READ_AGAIN_MS).mono_ns));
    assert!(!queue.read_again(at_ms(READ_AGAIN_MS - 1)));
    assert!(queue.read_again(at_ms(READ_AGAIN_MS)));
    assert!(!queue.read_again(at_ms(READ_AGAIN_MS)), "once");
    assert_eq!(queue.sync_due_ns(at_ms(READ_AGAIN_MS)), None);
    assert_eq!(read(&mut queue, READ_AGAIN_MS), "", "it tries, and fails again");
    assert_eq!(queue.sync_due_ns(at_ms(READ_AGAIN_MS)), Some(at_ms(2 * READ_AGAIN_MS).mono_ns));
}

#[test]
fn a_dropped_entry_waits_for_an_unreadable_segment() {
    let disk = six();
    let mut queue = opened(&disk);
    let entries: Vec<Entry> = (0..3).map(|_| queue.pop(at_ms(0)).expect("it is queued")).collect();
    drop(entries);
    disk.set_faults(Faults { opens_fail: Some(EMFILE), ..Faults::default() });
    assert_eq!(read(&mut queue, 0), "");
    assert_eq!((queue.copies(), damaged(&queue)), (6, 0));
    disk.set_faults(Faults::default());
    assert_eq!(read(&mut queue, READ_AGAIN_MS), "012345");
}

#[test]
fn a_start_without_resources_changes_nothing_and_can_be_retried() {
    let disk = six();
    let mut queue = opened(&disk);
    assert_eq!(queue.pop(at_ms(0)).map(|entry| entry.settle(CopyOutcome::Delivered)), Some(()));
    let _synced = queue.begin_last_sync().map(|job| queue.on_synced(job.perform(&disk)));
    drop(queue);
    let before = files(&disk);
    let failing = [
        (Faults { opens_fail: Some(EMFILE), ..Faults::default() }, EMFILE),
        (Faults { opens_fail: Some(DiskError::Denied), ..Faults::default() }, DiskError::Denied),
        (Faults { away: true, ..Faults::default() }, DiskError::Away),
    ];
    for (faults, want) in failing {
        disk.set_faults(faults);
        for unreadable in [Unreadable::Fail, Unreadable::Skip] {
            assert_eq!(open(&disk, unreadable).err(), Some(want));
        }
        assert_eq!(files(&disk), before);
    }
    disk.set_faults(Faults::default());
    for name in disk.names() {
        let unreadable = vec![(name.clone(), 0, u64::MAX)];
        disk.set_faults(Faults { unreadable, ..Faults::default() });
        assert_eq!(open(&disk, Unreadable::Fail).err(), Some(DiskError::Io { code: 5 }), "{name}");
        assert_eq!(files(&disk), before, "{name}");
    }
    disk.set_faults(Faults::default());
    let mut queue = opened(&disk);
    assert_eq!((read(&mut queue, 0).as_str(), damaged(&queue)), ("12345", 0));
}

/// Another process may continue with the directory instead, and nothing may stop this one from opening it.
#[test]
fn a_prepared_queue_has_changed_nothing_and_opens_despite_disk_errors() {
    let faults = [
        Faults::default(),
        Faults { opens_fail: Some(EMFILE), ..Faults::default() },
        Faults { opens_fail: Some(DiskError::Denied), ..Faults::default() },
        Faults { away: true, ..Faults::default() },
    ];
    for faults in faults {
        let disk = six();
        // Opening quarantines it.
        disk.store(&segment_name(9), &[b'x'; 200]);
        let before = files(&disk);
        let prepared = DiskQueue::prepare(disk.clone(), plan(), Unreadable::Fail).expect("all can be read");
        assert_eq!(files(&disk), before);
        disk.set_faults(faults.clone());
        let opened = prepared.open(Arc::default(), 7, at_ms(0));
        let (mut queue, found) = opened.expect("everything was read before");
        assert_eq!((found.copies_queued, found.segments_damaged), (6, 1), "{faults:?}");
        disk.set_faults(Faults::default());
        assert_eq!((read(&mut queue, 0).as_str(), damaged(&queue)), ("012345", 0), "{faults:?}");
    }
}

#[test]
fn an_unreadable_segment_counts_in_the_quarantine_with_its_size() {
    let disk = six();
    let name = disk.names().into_iter().find(|name| format::segment_sequence(name).is_some()).expect("three");
    let bytes = disk.bytes(&name).expect("the file exists").len() as u64;
    disk.set_faults(Faults { unopenable: Some(name.clone()), ..Faults::default() });
    let (queue, report) = open(&disk, Unreadable::Skip).expect("unreadable bytes are skipped");
    assert_eq!((report.segments_unreadable, queue.counts().quarantined_bytes), (1, bytes));
    assert_eq!(queue.quarantine.whole_bytes(), bytes);
    drop(queue);
    // The next start knows it by its new name, and cannot open it, either.
    let kept = disk.names().into_iter().find(|kept| format::is_quarantine(kept)).expect("it was kept");
    disk.set_faults(Faults { unopenable: Some(kept), ..Faults::default() });
    let (queue, _) = open(&disk, Unreadable::Fail).expect("everything else can be read");
    assert_eq!(queue.quarantine.whole_bytes(), bytes);
}

#[test]
fn any_single_read_may_fail_at_start() {
    let mut succeeded = 0;
    for calls in 0..60 {
        let disk = six();
        disk.set_faults(Faults { read_error_in: Some(calls), ..Faults::default() });
        let found = open(&disk, Unreadable::Fail);
        succeeded += u64::from(found.is_ok());
        drop(found);
        disk.set_faults(Faults::default());
        assert_eq!(read(&mut opened(&disk), 0), "012345", "read {calls}");
    }
    assert!(succeeded > 0);
}

#[test]
fn an_earlier_segment_that_cannot_be_opened_is_synced_later_and_not_in_doubt() {
    let disk = six();
    let mut queue = opened(&disk);
    disk.set_faults(Faults { opens_fail: Some(EMFILE), ..Faults::default() });
    let job = queue.begin_sync(at_ms(0)).expect("the segments of an earlier run");
    let synced = queue.on_synced(job.perform(&disk));
    assert_eq!((synced.in_doubt_records, synced.error, synced.safe_up_to), (0, None, Position(0)));
    assert_eq!((queue.counts().sync_errors, queue.counts().read_errors), (0, 3));
    let due_ns = queue.sync_due_ns(at_ms(0)).expect("it is retried");
    assert!(due_ns > at_ms(READ_AGAIN_MS - 1).mono_ns);
    disk.set_faults(Faults::default());
    let job = queue.begin_sync(at_ms(2 * READ_AGAIN_MS)).expect("the same again");
    assert_eq!(queue.on_synced(job.perform(&disk)).safe_up_to, Position(6));
}

/// The old segments could not be opened when the sync of the new one failed, and fail as well once they can be.
#[test]
fn records_in_doubt_stay_in_doubt_when_older_segments_fail_later() {
    // (which sync fails then: those of the three old segments and the directory's, or none; the records in doubt it
    // adds)
    for (fails, doubtful) in [(Some(0), 2), (Some(1), 2), (Some(2), 2), (Some(3), 6), (None, 0)] {
        let disk = six();
        let mut queue = opened(&disk);
        let block = Block::lines(b"6\n".to_vec(), 1, at_ms(0).mono_ns);
        assert_eq!(queue.append(block, at_ms(0)), Appended::Kept);
        let opens_fail = Some(EMFILE);
        disk.set_faults(Faults { opens_fail, sync_error_in: Some(0), ..Faults::default() });
        let job = queue.begin_sync(at_ms(10)).expect("a new record, and the segments of an earlier run");
        assert_eq!(queue.on_synced(job.perform(&disk)).in_doubt_records, 1);
        assert_eq!(queue.promise(Position(6)), Promise::InDoubt);
        disk.set_faults(Faults { sync_error_in: fails, ..Faults::default() });
        let job = queue.begin_sync(at_ms(20)).expect("the segments that could not be opened");
        let synced = queue.on_synced(job.perform(&disk));
        assert_eq!((synced.in_doubt_records, synced.safe_up_to), (doubtful, Position(7)), "{fails:?}");
        assert_eq!(queue.promise(Position(6)), Promise::InDoubt, "{fails:?}");
    }
}

/// It could not be opened when all its records were delivered and the cursor synced.
#[test]
fn an_earlier_segment_removed_meanwhile_is_no_failed_sync() {
    let disk = six();
    let mut queue = opened(&disk);
    assert_eq!(read(&mut queue, 0), "012345");
    disk.set_faults(Faults { opens_fail: Some(EMFILE), ..Faults::default() });
    let job = queue.begin_last_sync().expect("the segments of an earlier run, and the cursor");
    assert_eq!(queue.on_synced(job.perform(&disk)).cursor, Some(Position(6)));
    assert_eq!(queue.segments(), 0);
    disk.set_faults(Faults::default());
    if let Some(job) = queue.begin_last_sync() {
        let synced = queue.on_synced(job.perform(&disk));
        assert_eq!((synced.error, synced.in_doubt_records, synced.safe_up_to), (None, 0, Position(6)));
    }
    assert_eq!((queue.counts().sync_errors, queue.missing()), (0, None));
}

#[test]
fn removing_a_segment_is_retried() {
    let disk = six();
    let mut queue = opened(&disk);
    assert_eq!(read(&mut queue, 0), "012345");
    let job = queue.begin_last_sync().expect("the cursor has moved");
    let done = job.perform(&disk);
    disk.set_faults(Faults { away: true, ..Faults::default() });
    let _synced = queue.on_synced(done);
    assert_eq!((queue.segments(), queue.counts().remove_errors), (3, 1));
    disk.set_faults(Faults::default());
    let block = Block::lines(b"6\n".to_vec(), 1, at_ms(0).mono_ns);
    assert_eq!(queue.append(block, at_ms(0)), Appended::Kept);
    let _synced = queue.begin_last_sync().map(|job| queue.on_synced(job.perform(&disk)));
    assert_eq!(read(&mut queue, 0), "6");
    let _synced = queue.begin_last_sync().map(|job| queue.on_synced(job.perform(&disk)));
    assert_eq!(queue.segments(), 1, "the open segment");
}

/// A segment of another queue and one of garbage, where the quarantine has room for neither.
#[test]
fn only_ranges_with_a_bad_checksum_are_evicted_from_the_quarantine() {
    let disk = six();
    let mut other = disk.bytes(&segment_name(2)).expect("the file exists");
    let head = other.first_chunk_mut().expect("a header");
    let header = format::SegmentHeader::decode(head).expect("it is whole");
    *head = format::SegmentHeader { sequence: 9, queue_id: header.queue_id + 1, ..header }.encode();
    disk.store(&segment_name(8), &vec![7; 500]);
    disk.store(&segment_name(9), &other[..200]);
    let plan = DiskQueuePlan { quarantine_bytes_max: 10, ..plan() };
    let opened = DiskQueue::open(disk.clone(), plan, Arc::default(), 7, at_ms(0));
    let (mut queue, report) = opened.expect("everything can be read");
    assert_eq!(report.segments_damaged, 2);
    let names = disk.names();
    assert!(!names.contains(&format::quarantine_name(8, format::QuarantineContent::Whole)), "{names:?}");
    assert!(names.contains(&format::quarantine_name(9, format::QuarantineContent::Whole)), "{names:?}");
    assert_eq!(queue.counts().quarantine_full, 2);
    // It counts against the limit of the queue.
    let record = (format::RECORD_HEADER_BYTES + 2) as u64;
    let waiting = queue.bytes();
    for (spare, fits) in [(0, true), (1, false)] {
        let limits = QueueLimits { bytes_max: waiting + 200 + record - spare, ..queue.limits() };
        queue.set_limits(limits);
        assert_eq!(queue.has_room(record, 1), fits);
    }
    assert_eq!(read(&mut queue, 0), "012345");
}

#[test]
fn copies_of_damaged_ranges_are_removed_for_records() {
    let disk = six();
    disk.damage(&segment_name(1), |bytes| bytes[format::SEGMENT_HEADER_BYTES + 97] ^= 1);
    let mut queue = opened(&disk);
    let entry = queue.pop(at_ms(0)).expect("the second");
    let kept = queue.counts().quarantined_bytes;
    assert!(kept > 0 && damaged(&queue) <= 1);
    entry.settle(CopyOutcome::Delivered);
    let record = (format::RECORD_HEADER_BYTES + 2) as u64;
    let bytes_max = queue.bytes() + record + kept - 1;
    queue.set_limits(QueueLimits { bytes_max, ..queue.limits() });
    let block = Block::lines(b"6\n".to_vec(), 1, at_ms(0).mono_ns);
    assert_eq!(queue.append(block, at_ms(0)), Appended::Kept);
    assert!(disk.names().iter().all(|name| !name.ends_with(".quarantine")), "{:?}", disk.names());
    assert_eq!(queue.counts().quarantine_full, 1);
    assert_eq!(queue.account().dropped(Dropped::QueueFull), 0);
}

#[test]
fn a_segment_whose_damage_cannot_be_copied_is_quarantined() {
    let disk = six();
    disk.damage(&segment_name(1), |bytes| bytes[format::SEGMENT_HEADER_BYTES + 97] ^= 1);
    let mut queue = opened(&disk);
    let header = queue.front_bytes();
    assert!(header.is_some(), "the segment is open");
    disk.set_faults(Faults { opens_fail: Some(EMFILE), ..Faults::default() });
    let _one = read(&mut queue, 0);
    assert_eq!(damaged(&queue), 1, "the bytes were read");
    disk.set_faults(Faults::default());
    assert_eq!(read(&mut queue, READ_AGAIN_MS), "2345");
    let _synced = queue.begin_last_sync().map(|job| queue.on_synced(job.perform(&disk)));
    let names = disk.names();
    assert!(names.contains(&format::quarantine_name(1, format::QuarantineContent::Whole)), "{names:?}");
}

#[test]
fn writing_resumes_when_descriptors_are_available() {
    let disk = FaultyDisk::new(1);
    let mut queue = opened(&disk);
    disk.set_faults(Faults { opens_fail: Some(EMFILE), ..Faults::default() });
    let block = Block::lines(b"0\n".to_vec(), 1, at_ms(0).mono_ns);
    let Appended::Full(block) = queue.append(block, at_ms(0)) else { panic!("it cannot be written") };
    assert_eq!(queue.hold(block, at_ms(0)), Appended::Kept);
    // Past the time that a disk may fail: this one does not fail.
    let later = 10 * FAILING_MS_MAX;
    let _none = queue.begin_sync(at_ms(later));
    assert!(!queue.reserve(10, at_ms(later)), "a source that can wait has to");
    assert_eq!((queue.held_copies(), queue.account().lost_here()), (1, 0));
    disk.set_faults(Faults::default());
    let _job = queue.begin_sync(at_ms(later + 1000));
    assert_eq!(read(&mut queue, later + 1000), "0");
}
