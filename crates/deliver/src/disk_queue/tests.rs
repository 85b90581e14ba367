//! Tests of each kind of damage, each limit, and each error of the disk.

use super::faulty_disk::{Faults, FaultyDisk};
use super::*;
use crate::plan::WhenFull;

type Queued = DiskQueue<FaultyDisk>;

const MS: u64 = MS_NS;

fn at_ms(ms: u64) -> Now {
    Now { mono_ns: 1000 * MS, wall_ns: 1_000_000_000 * MS }.plus_ns(ms * MS)
}

fn plan(segment_bytes: u64) -> DiskQueuePlan {
    DiskQueuePlan { segment_bytes, ..DiskQueuePlan::default() }
}

fn open(disk: &FaultyDisk, plan: DiskQueuePlan) -> (Queued, Recovery) {
    DiskQueue::open(disk.clone(), plan, Arc::default(), 77, at_ms(0)).expect("the directory can be listed")
}

fn block(text: &str) -> Block {
    Block::lines(text.as_bytes().to_vec(), text.matches('\n').count() as u32, at_ms(0).mono_ns)
}

fn append(queue: &mut Queued, text: &str) {
    assert_eq!(queue.append(block(text), at_ms(0)), Appended::Kept, "{text:?}");
    check(queue, 0);
}

fn text(entry: &Entry) -> String {
    String::from_utf8(entry.block().bytes.to_vec()).expect("ASCII")
}

fn check(queue: &Queued, held: u64) {
    let sum = queue.account().sum(queue.copies() + held);
    assert!(sum.holds(), "{sum:?}");
    assert_eq!(queue.account().copies_queued(), queue.copies() + held);
}

fn drain(queue: &mut Queued) -> Vec<String> {
    let (mut texts, mut ms) = (Vec::new(), 0);
    loop {
        match queue.pop(at_ms(ms)) {
            Some(entry) => {
                texts.push(text(&entry));
                check(queue, entry.copies());
                entry.settle(CopyOutcome::Delivered);
            }
            // A sender that waits for a failed read.
            None if queue.read_error().is_some() && ms < 60_000 => ms += READ_AGAIN_MS,
            None => break,
        }
    }
    assert_eq!((queue.copies(), queue.bytes()), (0, 0));
    assert_eq!(queue.account().queued_bytes.load(Relaxed), 0);
    texts
}

fn sync(queue: &mut Queued, disk: &FaultyDisk) -> Option<Synced> {
    let job = queue.begin_last_sync()?;
    Some(queue.on_synced(job.perform(disk)))
}

/// Bytes on disk of a block with this text.
fn disk_bytes(text: &str) -> u64 {
    (format::RECORD_HEADER_BYTES + text.len()) as u64
}

/// A disk with records `0\n` to `5\n`, two in each of three segments.
fn six() -> FaultyDisk {
    let disk = FaultyDisk::new(1);
    let (mut queue, _) = open(&disk, plan(300));
    (0..6).for_each(|number| append(&mut queue, &format!("{number}\n")));
    assert_eq!(queue.segments(), 3);
    assert!(sync(&mut queue, &disk).is_some());
    disk
}

const HEADER: usize = format::SEGMENT_HEADER_BYTES;
const RECORD: usize = format::RECORD_HEADER_BYTES + 2;
const MARK: usize = format::RECORD_HEADER_BYTES;

#[test]
fn unsettled_records_are_delivered_in_order_and_again_in_the_next_run() {
    let disk = six();
    let (mut queue, report) = open(&disk, plan(300));
    let want = Recovery {
        segments: 3,
        copies_queued: 6,
        queued_bytes: 6 * disk_bytes("0\n"),
        ..Recovery::default()
    };
    assert_eq!(report, want);
    let entries: Vec<Entry> = (0..5).map(|_| queue.pop(at_ms(0)).expect("six are queued")).collect();
    check(&queue, 5);
    for (at, entry) in entries.into_iter().enumerate() {
        assert_eq!(text(&entry), format!("{at}\n"));
        // The fourth is dropped unsettled: it is queued again, and stops the cursor.
        if at != 3 {
            entry.settle(CopyOutcome::Delivered);
        }
    }
    check(&queue, 0);
    assert_eq!((queue.copies(), queue.settled_up_to()), (2, Position(3)));
    assert!(sync(&mut queue, &disk).is_some());
    assert_eq!(queue.segments(), 2, "the first one is settled");
    drop(queue);
    let (mut queue, report) = open(&disk, plan(300));
    assert_eq!((report.segments, report.copies_queued, report.cursor_lost), (2, 3, false));
    append(&mut queue, "6\n");
    // The fifth was settled after one that was not.
    assert_eq!(drain(&mut queue), ["3\n", "4\n", "5\n", "6\n"]);
    assert!(sync(&mut queue, &disk).is_some());
    let (mut queue, report) = open(&disk, plan(300));
    assert_eq!((report.copies_queued, report.segments_removed), (0, 1));
    append(&mut queue, "7\n");
    assert_eq!(queue.accepted_up_to(), Position(8));
    assert_eq!(drain(&mut queue), ["7\n"]);
}

#[test]
fn damage_of_each_kind_costs_only_its_records_and_is_counted() {
    type Change = fn(&mut Vec<u8>);
    const FIRST: &str = "0000000000000001.segment";
    const SECOND: &str = "0000000000000002.segment";
    const LAST: &str = "0000000000000003.segment";
    // (name, file, change, records delivered, copies damaged, the same where the cursor is lost as well)
    let table: &[(&str, &str, Change, &str, u64, u64)] = &[
        ("a body", FIRST, |b| b[HEADER + RECORD - 1] ^= 1, "12345", 1, 1),
        ("a record's header", FIRST, |b| b[HEADER + 9] ^= 1, "12345", 1, 1),
        ("a marker", SECOND, |b| b[HEADER] ^= 1, "01345", 1, 1),
        ("a mark", SECOND, |b| b[HEADER + 2 * RECORD + 50] ^= 1, "012345", 0, 0),
        ("the last header", LAST, |b| b[HEADER + RECORD + 30] ^= 1, "01234", 1, 1),
        ("the last body", LAST, |b| b[HEADER + 2 * RECORD - 1] ^= 1, "01234", 1, 1),
        ("the last mark", LAST, |b| b[HEADER + 2 * RECORD + 50] ^= 1, "012345", 0, 0),
        (
            "the last header and the mark",
            LAST,
            |b| {
                b[HEADER + RECORD + 30] ^= 1;
                b[HEADER + 2 * RECORD + 50] ^= 1;
            },
            "01234",
            1,
            0,
        ),
        ("the mark cut off", LAST, |b| b.truncate(HEADER + 2 * RECORD), "012345", 0, 0),
        ("the last body cut off", LAST, |b| b.truncate(HEADER + 2 * RECORD - 1), "01234", 1, 1),
        ("the last header cut off", LAST, |b| b.truncate(HEADER + RECORD + 9), "01234", 1, 0),
        ("the last record cut off", LAST, |b| b.truncate(HEADER + RECORD), "01234", 1, 0),
        ("all of the last segment's records cut off", LAST, |b| b.truncate(HEADER), "0123", 2, 0),
        ("the last segment cut to nothing", LAST, |b| b.clear(), "0123", 2, 0),
        ("nothing but zeros in the last segment", LAST, |b| b.fill(0), "0123", 2, 0),
        ("a tail cut off", SECOND, |b| b.truncate(HEADER + RECORD + 9), "01245", 1, 1),
        ("all records cut off", SECOND, |b| b.truncate(HEADER), "0145", 2, 2),
        ("cut to nothing", SECOND, |b| b.clear(), "0145", 2, 2),
        ("nothing but zeros", SECOND, |b| b.fill(0), "0145", 2, 2),
        ("a segment's header", FIRST, |b| b[3] ^= 1, "012345", 0, 0),
        ("the last segment's header", LAST, |b| b[3] ^= 1, "012345", 0, 0),
        ("bytes put in", SECOND, |b| drop(b.splice(HEADER..HEADER, [7; 999])), "012345", 0, 0),
        ("bytes taken out", SECOND, |b| drop(b.drain(HEADER..HEADER + 5)), "01345", 1, 1),
        ("a header taken out", SECOND, |b| drop(b.drain(..HEADER)), "012345", 0, 0),
        ("bytes behind", LAST, |b| b.extend([1; 500]), "012345", 0, 0),
        ("zeros behind", SECOND, |b| b.resize(9000, 0), "012345", 0, 0),
    ];
    for (name, file, change, want, damaged, without_cursor) in table {
        for (cursor, damaged) in [(true, *damaged), (false, *without_cursor)] {
            let disk = six();
            disk.damage(file, change);
            if !cursor {
                disk.remove("cursor-0").expect("the file exists");
            }
            check_damaged(&disk, &format!("{name}, cursor {cursor}"), want, damaged);
        }
    }
}

fn check_damaged(disk: &FaultyDisk, name: &str, want: &str, damaged: u64) {
    // In these cases there are no bytes to quarantine.
    let nothing_left = [
        "the mark cut off",
        "the last record cut off",
        "all of the last segment's records cut off",
        "the last segment cut to nothing",
        "all records cut off",
        "cut to nothing",
        "a header taken out",
    ];
    let (mut queue, report) = open(disk, plan(300));
    assert_eq!(queue.copies(), report.copies_queued, "{name}");
    assert_eq!(drain(&mut queue).concat().replace('\n', ""), want, "{name}");
    assert_eq!(queue.account().dropped(Dropped::Damaged), damaged, "{name}");
    assert_eq!((queue.counts().damaged_records, queue.lost_before_start()), (damaged, damaged), "{name}");
    // Skipped bytes are quarantined, once.
    let kept =
        disk.list().expect("the directory can be listed").iter().any(|file| file.ends_with(".quarantine"));
    let there = !nothing_left.iter().any(|nothing| name.starts_with(nothing));
    assert_eq!((kept, queue.counts().damaged_ranges), (there, u64::from(there)), "{name}");
    // The next run finds none of it again.
    append(&mut queue, "6\n");
    let _ = sync(&mut queue, disk);
    let (mut queue, report) = open(disk, plan(300));
    assert_eq!((drain(&mut queue), report.copies_gone), (vec!["6\n".to_owned()], 0), "{name}");
    assert_eq!(queue.account().dropped(Dropped::Damaged), 0, "{name}");
}

/// A directory of version 1: no end marks, and cursors without written totals.
#[test]
fn a_queue_of_version_1_can_be_opened() {
    for settled in 0..6 {
        let disk = six();
        let (mut queue, _) = open(&disk, plan(300));
        for _ in 0..settled {
            queue.pop(at_ms(0)).expect("six are queued").settle(CopyOutcome::Delivered);
        }
        drop(queue.begin_last_sync().map(|job| job.perform(&disk)));
        (1..=3)
            .for_each(|segment| disk.damage(&format::segment_name(segment), |b| b.truncate(b.len() - MARK)));
        disk.damage("cursor-0", |bytes| {
            bytes.truncate(format::SLOT_OFFSETS[2] as usize + format::SLOT_BYTES_MIN)
        });
        for offset in format::SLOT_OFFSETS.map(|offset| offset as usize) {
            disk.damage("cursor-0", |bytes| format::tests::to_version_1(&mut bytes[offset..]));
        }
        let (mut queue, report) = open(&disk, plan(300));
        assert_eq!((report.copies_queued, report.cursor_lost), (6 - settled, false));
        let first = queue.pop(at_ms(0)).expect("some are queued");
        first.settle(CopyOutcome::Delivered);
        append(&mut queue, "6\n");
        let _ = sync(&mut queue, &disk);
        let (mut queue, report) = open(&disk, plan(300));
        assert_eq!((report.copies_queued, report.cursor_lost), (6 - settled, false));
        assert_eq!(drain(&mut queue).len() as u64, 6 - settled);
        assert_eq!(queue.account().dropped(Dropped::Damaged), 0);
    }
}

#[test]
fn damage_to_records_of_this_run_is_not_counted_for_an_earlier_run() {
    let disk = six();
    let (mut queue, _) = open(&disk, plan(300));
    append(&mut queue, "6\n");
    append(&mut queue, "7\n");
    let files = disk
        .list()
        .expect("the directory can be listed")
        .into_iter()
        .filter(|name| name.ends_with(".segment"));
    let own = files.max().expect("there are segments");
    disk.damage(&own, |bytes| bytes[HEADER + 96] ^= 1);
    assert_eq!(drain(&mut queue).concat().replace('\n', ""), "0123457");
    assert_eq!((queue.account().dropped(Dropped::Damaged), queue.lost_before_start()), (1, 0));
}

#[test]
fn a_missing_segment_is_counted() {
    let table: [(&[u64], &str, u64, u64); 5] = [
        (&[1], "2345", 2, 0),
        (&[2], "0145", 2, 0),
        (&[3], "0123", 2, 2),
        (&[2, 3], "01", 4, 4),
        (&[1, 2, 3], "", 6, 6),
    ];
    for (missing, want, damaged, gone) in table {
        let disk = six();
        for segment in missing {
            disk.remove(&format::segment_name(*segment)).expect("the file exists");
        }
        let (mut queue, report) = open(&disk, plan(300));
        assert_eq!((report.copies_queued, report.copies_gone), (6, gone), "{missing:?}");
        assert_eq!(drain(&mut queue).concat().replace('\n', ""), want);
        assert_eq!(queue.account().dropped(Dropped::Damaged), damaged, "{missing:?}");
        append(&mut queue, "6\n");
        assert_eq!(queue.accepted_up_to(), Position(7), "no number is used twice");
    }
}

/// A loss of power restores an earlier attempt at the last number that had failed and was cleaned up, and the segment
/// of the record that has the number since is gone.
#[test]
fn copies_known_only_from_the_cursor_are_counted_as_damaged() {
    // (copies of the attempt, of the record; copies damaged)
    for (tried, own, damaged) in [(1, 2, 1), (1, 5, 4), (2, 2, 0), (3, 1, 0)] {
        let disk = FaultyDisk::new(1);
        let (mut queue, _) = open(&disk, plan(1000));
        append(&mut queue, "0\n");
        let first = format::segment_name(1);
        let wiped = disk.bytes(&first).expect("it was created");
        append(&mut queue, &"try\n".repeat(tried));
        let with_try = disk.bytes(&first).expect("it was created");
        drop(queue);
        disk.store(&first, &wiped);
        let (mut queue, _) = open(&disk, plan(1000));
        append(&mut queue, &"own\n".repeat(own));
        assert!(sync(&mut queue, &disk).is_some());
        disk.store(&first, &with_try);
        disk.delete(&format::segment_name(2));
        let (mut queue, report) = open(&disk, plan(1000));
        let queued = 1 + tried.max(own) as u64;
        assert_eq!((report.copies_queued, report.copies_gone), (queued, damaged), "{tried}, {own}");
        assert_eq!(drain(&mut queue), ["0\n", &"try\n".repeat(tried)]);
        assert_eq!(queue.account().dropped(Dropped::Damaged), damaged);
    }
}

#[test]
fn foreign_files_are_ignored_and_foreign_segments_quarantined() {
    let disk = six();
    let other = six();
    other.damage("0000000000000002.segment", |bytes| {
        let mut header =
            format::SegmentHeader::decode(bytes.first_chunk().expect("a header")).expect("whole");
        (header.queue_id, header.sequence) = (1, 4);
        bytes[..HEADER].copy_from_slice(&header.encode());
    });
    disk.store(
        "0000000000000004.segment",
        &other.bytes("0000000000000002.segment").expect("the file exists"),
    );
    disk.store("notes.txt", b"mine");
    disk.store("ffffffffffffffff.segment", b"not ours");
    let (mut queue, report) = open(&disk, plan(300));
    assert_eq!((report.segments, report.segments_damaged), (3, 1));
    assert_eq!(drain(&mut queue).len(), 6);
    append(&mut queue, "6\n");
    let names = disk.list().expect("the directory can be listed");
    for name in [
        "notes.txt",
        "ffffffffffffffff.segment",
        "0000000000000004-whole.quarantine",
        "0000000000000005.segment",
    ] {
        assert!(names.iter().any(|found| found == name), "{name} in {names:?}");
    }
}

#[test]
fn a_file_larger_than_any_segment_is_read_up_to_the_limit_and_then_quarantined() {
    let max = recovery::SEGMENT_BYTES_MAX;
    // (bytes of the last segment, is it too large), at the limit and past it.
    for (size, is_oversized) in [(max, false), (max + 1, true), (8 * max, true)] {
        let disk = six();
        // As a program does that sets a file's length: zeros that are not on the disk.
        disk.damage("0000000000000003.segment", |bytes| bytes.resize(size as usize, 0));
        let before = disk.bytes_read();
        let (mut queue, report) = open(&disk, plan(300));
        let read = disk.bytes_read() - before;
        // Once from its beginning, and once for the range that is damaged.
        assert!(read < 3 * max, "{read} bytes of {size}");
        assert_eq!((report.segments_oversized, report.copies_queued), (u64::from(is_oversized), 6), "{size}");
        append(&mut queue, "6\n");
        assert_eq!(drain(&mut queue).len(), 7, "{size}");
        let _synced = sync(&mut queue, &disk);
        let names = disk.list().expect("the directory can be listed");
        let is_kept = names.iter().any(|name| name == "0000000000000003-whole.quarantine");
        assert!(is_kept || !is_oversized, "{size}: {names:?}");
        assert_eq!(queue.account().dropped(Dropped::Damaged), 0, "{size}");
    }
}

#[test]
fn a_large_file_without_a_record_is_searched_up_to_the_limit() {
    let max = recovery::SEGMENT_BYTES_MAX;
    let disk = FaultyDisk::new(1);
    disk.store("0000000000000003.segment", &vec![0; 8 * max as usize]);
    let (mut queue, report) = open(&disk, plan(300));
    assert!(disk.bytes_read() < 3 * max, "{} bytes", disk.bytes_read());
    assert_eq!((report.segments_oversized, report.copies_queued), (1, 0));
    append(&mut queue, "0\n");
    assert_eq!(drain(&mut queue), ["0\n"]);
}

#[test]
fn any_slot_of_the_cursor_may_be_damaged() {
    for slot in format::SLOT_OFFSETS {
        let disk = six();
        let (mut queue, _) = open(&disk, plan(300));
        for _ in 0..3 {
            queue.pop(at_ms(0)).expect("it is queued").settle(CopyOutcome::Delivered);
            assert!(sync(&mut queue, &disk).is_some());
        }
        drop(queue);
        disk.damage("cursor-0", |bytes| bytes[slot as usize + 20] ^= 1);
        let (mut queue, report) = open(&disk, plan(300));
        // Each write was synced, so that two slots take turns; the first write has the written totals, the fourth is
        // the last.
        let want = if slot == format::SLOT_OFFSETS[1] {
            vec!["2\n", "3\n", "4\n", "5\n"]
        } else {
            vec!["3\n", "4\n", "5\n"]
        };
        assert!(!report.cursor_lost);
        assert_eq!(drain(&mut queue), want);
        assert_eq!(queue.account().dropped(Dropped::Damaged), 0);
    }
}

#[test]
fn an_older_slot_of_the_cursor_never_refers_to_a_newer_segment() {
    for slot in format::SLOT_OFFSETS {
        let disk = FaultyDisk::new(1);
        // Every other run finds no segment, and leaves none.
        let open_twice = || {
            let (mut queue, _) = open(&disk, plan(300));
            let _written = sync(&mut queue, &disk);
            drop(queue);
            open(&disk, plan(300)).0
        };
        for number in 0..5 {
            let mut queue = open_twice();
            append(&mut queue, &format!("{number}\n"));
            assert_eq!(drain(&mut queue), [format!("{number}\n")]);
            assert!(sync(&mut queue, &disk).is_some());
        }
        let mut queue = open_twice();
        append(&mut queue, "a line that is longer\n");
        append(&mut queue, "b\n");
        drop(queue);
        disk.damage("cursor-0", |bytes| bytes[slot as usize + 20] ^= 1);
        let (mut queue, _) = open(&disk, plan(300));
        assert_eq!(drain(&mut queue), ["a line that is longer\n", "b\n"]);
    }
}

#[test]
fn a_cursor_is_lost_only_where_one_was_written() {
    let lost = |disk: &FaultyDisk| open(&disk.copy(), plan(300)).1.cursor_lost;
    let disk = six();
    assert!(!lost(&disk), "nothing was settled: the file is only prepared");
    disk.store("cursor-1", b"");
    assert!(!lost(&disk), "a crash before it was prepared");
    let (mut queue, _) = open(&disk, plan(300));
    queue.pop(at_ms(0)).expect("it is queued").settle(CopyOutcome::Delivered);
    assert!(sync(&mut queue, &disk).is_some());
    assert!(!lost(&disk));
    disk.damage("cursor-0", |bytes| bytes.iter_mut().for_each(|byte| *byte ^= 1));
    assert!(lost(&disk));
    // Without any cursor file the first segment shows it: something was settled and removed before it.
    disk.remove("cursor-0").expect("the file exists");
    assert!(!lost(&disk), "the first segment is there");
    disk.remove("0000000000000001.segment").expect("the file exists");
    assert!(lost(&disk));
}

#[test]
fn past_the_limit_when_full_decides() {
    let two = "b\nc\n";
    let bytes_max = disk_bytes("a\n") + disk_bytes(two);
    // (when full, bytes less, result for the third, copies dropped, records delivered)
    let table = [
        (WhenFull::Block, 0, Appended::Full(block("d\n")), 0, vec!["a\n", two]),
        (WhenFull::DropOldest, 0, Appended::Kept, 1, vec![two, "d\n"]),
        (WhenFull::DropNewest, 0, Appended::Dropped, 1, vec!["a\n", two]),
        (WhenFull::DropOldest, 1, Appended::Kept, 3, vec!["d\n"]),
    ];
    for (when_full, less, third, dropped, out) in table {
        let disk = FaultyDisk::new(1);
        let limits = QueueLimits {
            bytes_max: bytes_max - less,
            records_max: 0,
            when_full,
            age_max_ms: 0,
            ..QueueLimits::default()
        };
        let (mut queue, _) = open(&disk, DiskQueuePlan { limits, ..plan(1000) });
        append(&mut queue, "a\n");
        assert_eq!(queue.append(block(two), at_ms(0)), Appended::Kept, "{when_full:?}");
        if less == 0 {
            assert_eq!(queue.append(block("d\n"), at_ms(0)), third, "{when_full:?}");
        } else {
            assert_eq!(queue.append(block("d\n"), at_ms(0)), Appended::Kept);
        }
        assert_eq!(queue.account().dropped(Dropped::QueueFull), dropped, "{when_full:?}");
        check(&queue, 0);
        assert_eq!(drain(&mut queue), out, "{when_full:?}");
    }
}

#[test]
fn popped_blocks_count_against_the_limit_and_a_larger_block_is_dropped() {
    let disk = FaultyDisk::new(1);
    let limits = QueueLimits {
        bytes_max: disk_bytes("a\n"),
        records_max: 0,
        when_full: WhenFull::DropOldest,
        age_max_ms: 0,
        ..QueueLimits::default()
    };
    let (mut queue, _) = open(&disk, DiskQueuePlan { limits, ..plan(1000) });
    append(&mut queue, "a\n");
    let entry = queue.pop(at_ms(0)).expect("one");
    assert_eq!(queue.append(block("b\n"), at_ms(0)), Appended::Dropped, "nothing in the queue can make room");
    assert_eq!(queue.append(block("too\nbig\n"), at_ms(0)), Appended::Dropped);
    assert_eq!(queue.account().dropped(Dropped::QueueFull), 3);
    check(&queue, 1);
    queue.put_back(entry);
    assert_eq!(
        queue.append(block("c\n"), at_ms(0)),
        Appended::Kept,
        "a block that was put back can be dropped"
    );
    assert_eq!(drain(&mut queue), ["c\n"]);
}

#[test]
fn expiry_ignores_wall_clock_steps_and_survives_a_restart() {
    let disk = FaultyDisk::new(1);
    let limits = QueueLimits { age_max_ms: 100, ..QueueLimits::default() };
    let plan = DiskQueuePlan { limits, ..plan(1000) };
    let (mut queue, _) = open(&disk, plan);
    append(&mut queue, "a\n");
    // The wall clock steps an hour in both directions: no age changes.
    for wall_ns in [at_ms(3_600_000).wall_ns, at_ms(0).wall_ns - 3_600_000 * MS] {
        let now = Now { wall_ns, ..at_ms(100) };
        queue.expire(now);
        assert_eq!((queue.copies(), queue.expires_ns()), (1, Some(at_ms(100).mono_ns + 1)));
    }
    queue.expire(at_ms(101));
    assert_eq!((queue.copies(), queue.account().dropped(Dropped::TooOld)), (0, 1));
    append(&mut queue, "b\n");
    drop(queue);
    // The next run, with another monotonic clock: (wall clock since, expired at once).
    for (wall_ms, expired) in [(99, false), (102, true), (0, false)] {
        let now = Now { mono_ns: 5 * MS, wall_ns: at_ms(wall_ms).wall_ns };
        let (mut queue, _) =
            DiskQueue::open(disk.copy(), plan, Arc::default(), 1, now).expect("the directory can be listed");
        queue.expire(now);
        // `a` is there again, since the cursor was not written.
        assert_eq!(queue.copies(), if expired { 0 } else { 2 }, "{wall_ms} ms");
    }
}

/// A machine without a battery for its clock: the daemon starts in 1970, and then the clock is set.
#[test]
fn old_records_are_dropped_in_slices_and_the_sender_is_woken_for_the_next() {
    let disk = FaultyDisk::new(1);
    let limits = QueueLimits { age_max_ms: 1000, ..plan(0).limits };
    let aged = DiskQueuePlan { limits, ..plan(20_000) };
    let large = "x".repeat(300 << 10) + "\n";
    // (blocks, text of each, calls until nothing is too old)
    for (blocks, lines, calls) in [(600, "a\n", 3), (256, "a\n", 1), (257, "a\n", 2), (10, large.as_str(), 2)]
    {
        let disk = disk.copy();
        let (mut queue, _) = open(&disk, aged);
        (0..blocks).for_each(|_| append(&mut queue, lines));
        assert_eq!(
            queue.append(Block::lines(b"young\n".to_vec(), 1, at_ms(5000).mono_ns), at_ms(0)),
            Appended::Kept
        );
        let dropped = |queue: &Queued| queue.account().dropped(Dropped::TooOld);
        let mut before = 0;
        for call in 1..calls {
            assert!(queue.pop(at_ms(2000)).is_none(), "{blocks}: old records are not returned");
            assert!(dropped(&queue) > before && dropped(&queue) < blocks, "{blocks}: slice {call}");
            before = dropped(&queue);
            assert!(queue.is_paused() && !queue.is_empty());
            assert!(queue.sync_due_ns(at_ms(2000)).is_some_and(|due_ns| due_ns <= at_ms(2000).mono_ns));
            assert!(queue.read_again(at_ms(2000)) && !queue.read_again(at_ms(2000)), "once");
        }
        let young = queue.pop(at_ms(2000)).expect("it is young");
        assert_eq!((text(&young), dropped(&queue)), ("young\n".to_owned(), blocks));
        young.settle(CopyOutcome::Delivered);
        assert!(!queue.is_paused() && !queue.read_again(at_ms(2000)));
        check(&queue, 0);
    }
}

#[test]
fn old_records_make_room_for_new_blocks_with_any_when_full() {
    for when_full in [WhenFull::Block, WhenFull::DropNewest, WhenFull::DropOldest] {
        let disk = FaultyDisk::new(1);
        let bytes_max = 600 * disk_bytes("a\n");
        let limits = QueueLimits { age_max_ms: 1000, bytes_max, when_full, ..plan(0).limits };
        let (mut queue, _) = open(&disk, DiskQueuePlan { limits, ..plan(20_000) });
        (0..600).for_each(|_| append(&mut queue, "a\n"));
        // As long as all that one slice drops, and half as much again.
        let long = "x".repeat((bytes_max * 2 / 3) as usize) + "\n";
        let young = Block::lines(long.into_bytes(), 1, at_ms(2000).mono_ns);
        assert_eq!(queue.append(young, at_ms(2000)), Appended::Kept, "{when_full:?}");
        let account = queue.account();
        assert_eq!((account.dropped(Dropped::TooOld), account.dropped(Dropped::QueueFull)), (512, 0));
    }
}

#[test]
fn knows_oldest_is_true_when_the_age_needs_no_read() {
    let disk = FaultyDisk::new(1);
    let (mut queue, _) = open(&disk, plan(20_000));
    assert!(queue.knows_oldest() && queue.oldest_age_ns(at_ms(1)).is_none(), "there is none");
    (0..3).for_each(|_| append(&mut queue, "a\n"));
    let asks = |queue: &mut Queued| {
        let before = disk.bytes_read();
        let knows = queue.knows_oldest();
        let age_ns = if knows { queue.oldest_age_ns(at_ms(5)) } else { None };
        assert_eq!(disk.bytes_read(), before);
        (knows, age_ns.is_some())
    };
    assert_eq!(asks(&mut queue), (false, false), "it is on disk");
    assert!(queue.oldest_age_ns(at_ms(5)).is_some());
    assert_eq!(asks(&mut queue), (true, true));
    assert_eq!(queue.oldest_open_age_ns(at_ms(5)), None, "none was taken");
    let entry = queue.pop(at_ms(5)).expect("three are queued");
    assert_eq!(asks(&mut queue), (false, false), "the next one is on disk");
    let held_ns = queue.oldest_open_age_ns(at_ms(7)).expect("one is held");
    assert_eq!(queue.oldest_open_age_ns(at_ms(9)), Some(held_ns + 2 * MS));
    drop(entry);
    assert_eq!(asks(&mut queue), (true, true), "the one that was put back is older");
}

#[test]
fn records_created_after_the_clock_was_set_keep_their_time_in_the_next_run() {
    let disk = FaultyDisk::new(1);
    let limits = QueueLimits { age_max_ms: 3_600_000, ..QueueLimits::default() };
    let plan = DiskQueuePlan { limits, ..plan(1000) };
    let booted = |ms: u64| Now { mono_ns: ms * MS, wall_ns: ms * MS };
    let right = |ms: u64| Now { mono_ns: ms * MS, wall_ns: at_ms(ms).wall_ns };
    let (mut queue, _) = DiskQueue::open(disk.clone(), plan, Arc::default(), 1, booted(0))
        .expect("the directory can be listed");
    let made_at = |ms: u64| Block { at_ns: ms * MS, ..block("a\n") };
    assert_eq!(queue.append(made_at(1000), booted(1000)), Appended::Kept);
    assert_eq!(queue.append(made_at(5000), right(6000)), Appended::Kept);
    // This run knows the age of both.
    assert_eq!(queue.oldest_age_ns(right(7000)), Some(6000 * MS));
    let entries = [0, 1].map(|_| queue.pop(right(7000)).expect("two are queued"));
    assert_eq!(entries.each_ref().map(|entry| entry.block().at_ns), [1000 * MS, 5000 * MS]);
    drop((entries, queue));
    let now = Now { mono_ns: 5 * MS, wall_ns: at_ms(8000).wall_ns };
    let (mut queue, _) =
        DiskQueue::open(disk.copy(), plan, Arc::default(), 1, now).expect("the directory can be listed");
    queue.expire(now);
    assert_eq!(queue.copies(), 1, "a record of 1970 is too old");
    assert_eq!(queue.oldest_age_ns(now), Some(3000 * MS));
}

#[test]
fn settled_copies_stay_settled_when_an_entry_is_put_back() {
    for dropped in [false, true] {
        let disk = FaultyDisk::new(1);
        let (mut queue, _) = open(&disk, plan(1000));
        append(&mut queue, "a\nb\nc\n");
        append(&mut queue, "d\n");
        let mut entry = queue.pop(at_ms(0)).expect("two are queued");
        assert_eq!(entry.delivered_up_to(3), 1);
        check(&queue, entry.copies());
        if dropped {
            drop(entry);
        } else {
            queue.put_back(entry);
        }
        check(&queue, 0);
        assert_eq!(queue.copies(), 3);
        let entry = queue.pop(at_ms(0)).expect("two are queued");
        assert_eq!((entry.settled, entry.copies(), text(&entry)), (2, 2, "a\nb\nc\n".to_owned()));
        entry.settle(CopyOutcome::Delivered);
        assert_eq!(drain(&mut queue), ["d\n"]);
        assert_eq!(queue.account().sum(0).delivered, 4);
    }
}

#[test]
fn a_sync_is_due_after_its_window_and_reports_safe_records() {
    let disk = FaultyDisk::new(1);
    let (mut queue, _) = open(&disk, plan(1000));
    assert_eq!(queue.sync_due_ns(at_ms(0)), None);
    append(&mut queue, "a\n");
    assert_eq!(queue.sync_due_ns(at_ms(3)), Some(at_ms(10).mono_ns));
    assert_eq!((queue.promise(Position(0)), queue.safe_up_to()), (Promise::Accepted, Position(0)));
    let job = queue.begin_sync(at_ms(10)).expect("a sync is due");
    append(&mut queue, "b\n");
    assert!(queue.begin_sync(at_ms(10)).is_none() && queue.sync_due_ns(at_ms(10)).is_none());
    let synced = queue.on_synced(job.perform(&disk));
    assert_eq!(synced, Synced { safe_up_to: Position(1), in_doubt_records: 0, cursor: None, error: None });
    assert_eq!((queue.promise(Position(0)), queue.promise(Position(1))), (Promise::Safe, Promise::Accepted));
    // The cursor has a window of its own.
    let _ = sync(&mut queue, &disk);
    queue.pop(at_ms(20)).expect("two are queued").settle(CopyOutcome::Delivered);
    assert_eq!(queue.sync_due_ns(at_ms(20)), Some(at_ms(30).mono_ns), "to be written");
    assert!(queue.begin_sync(at_ms(30)).is_none());
    assert_eq!(queue.sync_due_ns(at_ms(30)), Some(at_ms(270).mono_ns));
    assert!(queue.begin_sync(at_ms(269)).is_none());
    assert!(queue.begin_sync(at_ms(270)).is_some());
}

#[test]
fn settled_records_are_in_the_cursor_within_the_sync_window_and_not_redelivered_after_a_kill() {
    let disk = six();
    let (mut queue, _) = open(&disk, plan(300));
    assert!(sync(&mut queue, &disk).is_some(), "the segments found at start are synced");
    assert_eq!(drain(&mut queue).len(), 6);
    // Well before the cursor is synced.
    assert_eq!(queue.sync_due_ns(at_ms(0)), Some(at_ms(10).mono_ns));
    assert_eq!(queue.begin_sync(at_ms(10)).map(|job| job.segments.len()), None, "a write needs no sync");
    assert_eq!(queue.sync_due_ns(at_ms(10)), Some(at_ms(250).mono_ns));
    drop(queue);
    assert_eq!(open(&disk, plan(300)).1.copies_queued, 0);
    // A write that fails is repeated with the next sync, not every window.
    let disk = six();
    let (mut queue, _) = open(&disk, plan(300));
    assert!(sync(&mut queue, &disk).is_some());
    assert_eq!(drain(&mut queue).len(), 6);
    disk.set_faults(Faults { write_error_in: Some(0), ..Faults::default() });
    assert_eq!(queue.sync_due_ns(at_ms(0)), Some(at_ms(10).mono_ns));
    assert!(queue.begin_sync(at_ms(10)).is_none());
    assert_eq!((queue.counts().write_errors, queue.sync_due_ns(at_ms(10))), (1, Some(at_ms(260).mono_ns)));
}

#[test]
fn records_left_unsynced_by_a_killed_process_are_synced_by_the_next() {
    let disk = FaultyDisk::new(1);
    let (mut queue, _) = open(&disk, plan(300));
    (0..6).for_each(|number| append(&mut queue, &format!("{number}\n")));
    drop(queue);
    let (mut queue, _) = open(&disk, plan(300));
    assert_eq!((queue.sync_due_ns(at_ms(0)), queue.safe_up_to()), (Some(at_ms(10).mono_ns), Position(0)));
    let job = queue.begin_sync(at_ms(10)).expect("a sync is due");
    assert_eq!(queue.on_synced(job.perform(&disk)).error, None);
    // It is not known whether the earlier run saw a failed sync.
    assert_eq!((queue.safe_up_to(), queue.promise(Position(0))), (Position(6), Promise::InDoubt));
    disk.lose_power();
    let (mut queue, _) = open(&disk, plan(300));
    assert_eq!(drain(&mut queue).len(), 6);
}

#[test]
fn a_failed_sync_closes_the_segment_and_leaves_records_in_doubt() {
    let disk = FaultyDisk::new(1);
    let (mut queue, _) = open(&disk, plan(1000));
    append(&mut queue, "a\n");
    let _ = sync(&mut queue, &disk);
    append(&mut queue, "b\n");
    disk.set_faults(Faults { sync_error_in: Some(0), ..Faults::default() });
    let synced = sync(&mut queue, &disk).expect("one is due");
    assert_eq!((synced.in_doubt_records, synced.error), (1, Some(DiskError::Io { code: 5 })));
    append(&mut queue, "c\n");
    assert_eq!(queue.segments(), 2, "a new one");
    let _ = sync(&mut queue, &disk);
    let promises = [0, 1, 2].map(|number| queue.promise(Position(number)));
    assert_eq!(promises, [Promise::Safe, Promise::InDoubt, Promise::Safe]);
    assert_eq!((queue.counts().in_doubt_records, queue.counts().sync_errors), (1, 1));
    assert_eq!(drain(&mut queue), ["a\n", "b\n", "c\n"], "records in doubt are delivered");
}

#[test]
fn a_failed_cursor_sync_moves_to_another_file_and_removes_nothing() {
    let disk = six();
    let (mut queue, _) = open(&disk, plan(300));
    for _ in 0..4 {
        queue.pop(at_ms(0)).expect("six are queued").settle(CopyOutcome::Delivered);
    }
    // The segments of the run before come first.
    disk.set_faults(Faults { sync_error_in: Some(3), ..Faults::default() });
    assert!(sync(&mut queue, &disk).expect("the cursor moved").error.is_some());
    assert_eq!(queue.segments(), 3);
    assert_eq!(sync(&mut queue, &disk).expect("it is still to be synced").error, None);
    assert_eq!(queue.segments(), 1);
    disk.lose_power();
    let (mut queue, _) = open(&disk, plan(300));
    assert_eq!(drain(&mut queue), ["4\n", "5\n"]);
    assert_eq!(queue.account().dropped(Dropped::Damaged), 0);
}

/// Killed before it could write to the other file; then the next run loses power.
#[test]
fn a_cursor_whose_sync_failed_is_not_trusted_by_the_next_run() {
    for seed in 0..40 {
        let disk = FaultyDisk::new(seed);
        let (mut queue, _) = open(&disk, plan(1000));
        (0..6).for_each(|number| append(&mut queue, &format!("{number}\n")));
        let settle_one = |queue: &mut Queued| {
            queue.pop(at_ms(0)).expect("some are queued").settle(CopyOutcome::Delivered);
        };
        (0..2).for_each(|_| settle_one(&mut queue));
        assert_eq!(sync(&mut queue, &disk).expect("all of it").cursor, Some(Position(2)));
        settle_one(&mut queue);
        disk.set_faults(Faults { sync_error_in: Some(0), ..Faults::default() });
        assert!(sync(&mut queue, &disk).expect("the cursor has moved").error.is_some());
        drop(queue);
        disk.restart();
        let (mut queue, _) = open(&disk, plan(1000));
        settle_one(&mut queue);
        let _written = queue.begin_sync(at_ms(0));
        disk.lose_power();
        let (mut queue, _) = open(&disk, plan(1000));
        let first = queue.pop(at_ms(0)).map(|entry| text(&entry));
        assert!(
            ["3\n", "4\n"].contains(&first.as_deref().expect("some are queued")),
            "seed {seed}: {first:?}"
        );
        assert_eq!(queue.account().dropped(Dropped::Damaged), 0);
    }
}

#[test]
fn reserved_space_is_available_for_the_next_block() {
    let disk = FaultyDisk::new(1);
    let limits = QueueLimits { when_full: WhenFull::Block, ..QueueLimits::default() };
    let (mut queue, _) = open(&disk, DiskQueuePlan { limits, ..plan(2000) });
    let one = "1\n".repeat(100);
    assert_eq!((queue.append(block(&one), at_ms(0)), queue.write_error()), (Appended::Kept, None));
    disk.change_faults(|faults| faults.bytes_max = Some(1000 + format::CURSOR_BYTES as u64));
    assert!(!queue.reserve(1000, at_ms(1)));
    assert_eq!(queue.write_error(), Some(DiskError::Full));
    assert!(queue.reserve(400, at_ms(1)), "less than is reserved at once otherwise");
    assert_eq!(queue.append(block(&one), at_ms(1)), Appended::Kept);
    disk.change_faults(|faults| faults.bytes_max = None);
    assert!(queue.reserve(1000, at_ms(2)));
    assert_eq!(queue.append(block(&one), at_ms(2)), Appended::Kept);
    assert_eq!((queue.write_error(), queue.segments()), (None, 1));
    assert!(queue.reserve(1900, at_ms(3)), "the next segment is created for it");
    assert_eq!(queue.segments(), 2);
}

#[test]
fn space_that_cannot_be_reserved_is_checked_each_time() {
    let disk = FaultyDisk::new(1);
    disk.change_faults(|faults| faults.only_checks_space = true);
    let limits = QueueLimits { when_full: WhenFull::Block, ..QueueLimits::default() };
    let (mut queue, _) = open(&disk, DiskQueuePlan { limits, ..plan(100_000) });
    let one = "1\n".repeat(100);
    append(&mut queue, &one);
    assert!(queue.reserve(400, at_ms(1)));
    // Another program has filled the disk.
    disk.change_faults(|faults| faults.bytes_max = Some(300));
    assert!(!queue.reserve(400, at_ms(1)), "the source has to wait");
    assert_eq!(queue.write_error(), Some(DiskError::Full));
    disk.change_faults(|faults| faults.bytes_max = None);
    assert!(queue.reserve(400, at_ms(2)));
    append(&mut queue, &one);
    assert_eq!((queue.write_error(), queue.account().dropped(Dropped::QueueFull)), (None, 0));
}

/// In either order: before the cursor is synced, or after it.
#[test]
fn a_full_disk_frees_the_open_segment_once_it_is_settled() {
    for synced_first in [true, false] {
        let disk = FaultyDisk::new(1);
        let limits = QueueLimits { when_full: WhenFull::Block, ..QueueLimits::default() };
        let (mut queue, _) = open(&disk, DiskQueuePlan { limits, ..plan(100_000) });
        let one = "1\n".repeat(100);
        append(&mut queue, &one);
        disk.change_faults(|faults| faults.bytes_max = Some(600 + format::CURSOR_BYTES as u64));
        assert!(!queue.reserve(400, at_ms(1)));
        assert_eq!(
            queue.append(block(&"1\n".repeat(200)), at_ms(1)),
            Appended::Full(block(&"1\n".repeat(200)))
        );
        assert_eq!(drain(&mut queue).len(), 1);
        if synced_first {
            let _ = sync(&mut queue, &disk);
        }
        assert!(!queue.reserve(400, at_ms(2)), "its space is not free yet");
        if !synced_first {
            let _ = sync(&mut queue, &disk);
        }
        assert_eq!(queue.segments(), 0);
        assert!(queue.reserve(400, at_ms(3)));
        append(&mut queue, &one);
        assert_eq!(queue.write_error(), None);
    }
}

#[test]
fn a_full_disk_counts_as_a_full_queue_until_there_is_space() {
    // (when full, the block on the full disk, copies dropped then, records delivered at the end)
    let table = [
        (WhenFull::Block, Appended::Full(block("6\n")), 0, "0123457"),
        (WhenFull::DropNewest, Appended::Dropped, 1, "0123457"),
        (WhenFull::DropOldest, Appended::Dropped, 3, "23457"),
    ];
    for (when_full, want, dropped, out) in table {
        let disk = six();
        let limits = QueueLimits { when_full, ..QueueLimits::default() };
        let (mut queue, _) = open(&disk, DiskQueuePlan { limits, ..plan(300) });
        let used = 3 * (HEADER + 2 * RECORD + MARK) as u64 + format::CURSOR_BYTES as u64;
        disk.set_faults(Faults { bytes_max: Some(used + HEADER as u64 + 50), ..Faults::default() });
        for _ in 0..3 {
            assert_eq!(queue.append(block("6\n"), at_ms(0)), want, "{when_full:?}");
            check(&queue, 0);
        }
        // Only the first of the three drops a segment: its space is freed with the cursor's sync.
        let dropped = if dropped == 0 { 0 } else { dropped + 2 };
        assert_eq!(queue.account().dropped(Dropped::QueueFull), dropped, "{when_full:?}");
        let _ = sync(&mut queue, &disk);
        if when_full != WhenFull::DropOldest {
            assert!(!matches!(queue.append(block("6\n"), at_ms(0)), Appended::Kept));
            disk.set_faults(Faults { bytes_max: Some(used + 1000), ..Faults::default() });
        }
        append(&mut queue, "7\n");
        drop(queue);
        let (mut queue, _) = open(&disk, plan(300));
        assert_eq!(drain(&mut queue).concat().replace('\n', ""), out, "{when_full:?}");
        assert_eq!(queue.account().dropped(Dropped::Damaged), 0);
    }
}

#[test]
fn a_failed_write_closes_the_segment_and_the_record_goes_to_the_next() {
    let disk = six();
    let (mut queue, _) = open(&disk, plan(1000));
    append(&mut queue, "6\n");
    disk.set_faults(Faults { write_error_in: Some(0), ..Faults::default() });
    append(&mut queue, "7\n");
    assert_eq!((queue.segments(), queue.counts().write_errors), (5, 1));
    drop(queue);
    let (mut queue, _) = open(&disk, plan(1000));
    assert_eq!(drain(&mut queue).concat().replace('\n', ""), "01234567");
    assert_eq!(queue.account().dropped(Dropped::Damaged), 0, "the record that was cut is there complete");
}

/// A block that was dropped because the disk failed during its write is neither delivered nor counted as damaged by
/// the next run, however much of it was written.
#[test]
fn a_partial_record_of_a_failed_write_is_not_read() {
    let text = format!("{:x<700}\n", "long");
    for room in [50, 200, 600, 790] {
        let disk = FaultyDisk::new(1);
        let limits = QueueLimits { when_full: WhenFull::DropNewest, ..QueueLimits::default() };
        let (mut queue, _) = open(&disk, DiskQueuePlan { limits, ..plan(10_000) });
        append(&mut queue, "0\n");
        let used = (format::CURSOR_BYTES + HEADER + RECORD + MARK) as u64;
        disk.set_faults(Faults { bytes_max: Some(used + room), ..Faults::default() });
        assert_eq!(queue.append(block(&text), at_ms(0)), Appended::Dropped);
        drop(queue);
        let (mut queue, report) = open(&disk, plan(10_000));
        assert_eq!((report.copies_queued, drain(&mut queue)), (1, vec!["0\n".to_owned()]), "room for {room}");
        assert_eq!(queue.account().dropped(Dropped::Damaged), 0);
    }
}

#[test]
fn unreadable_pages_are_skipped_and_their_segment_is_quarantined() {
    let disk = FaultyDisk::new(1);
    let (mut queue, _) = open(&disk, plan(1 << 20));
    let lines = "x".repeat(999) + "\n";
    for _ in 0..40 {
        append(&mut queue, &lines);
    }
    drop(queue);
    let name = format::segment_name(1);
    disk.set_faults(Faults { unreadable: vec![(name.clone(), 9000, 9001)], ..Faults::default() });
    let (mut queue, report) = open(&disk, plan(1 << 20));
    assert_eq!(report.copies_queued, 40);
    let found = drain(&mut queue).len() as u64;
    let damaged = queue.account().dropped(Dropped::Damaged);
    assert_eq!(found + damaged, 40);
    assert!((1..=5).contains(&damaged), "{damaged} of the page's records");
    let _ = sync(&mut queue, &disk);
    assert_eq!(queue.segments(), 0);
    let names = disk.list().expect("the directory can be listed");
    assert!(names.contains(&format::quarantine_name(1, format::QuarantineContent::Whole)), "{names:?}");
}

#[test]
fn opening_reads_only_headers_end_marks_and_unmarked_segment_ends() {
    let disk = FaultyDisk::new(1);
    let segment_bytes = 20_000;
    let (mut queue, _) = open(&disk, plan(segment_bytes));
    let lines = "x".repeat(199) + "\n";
    for _ in 0..4000 {
        append(&mut queue, &lines);
    }
    let segments = queue.segments() as u64;
    assert!(segments > 50);
    drop(queue);
    let last =
        disk.list().expect("the directory can be listed").into_iter().max().expect("there are segments");
    let tail = 1000;
    // (change of the last segment, bytes read beside headers and end marks at most)
    type Change = fn(&mut Vec<u8>);
    let table: [(Change, u64); 4] = [
        (|_| {}, 0),
        (|bytes| bytes.truncate(bytes.len() - 1), 3 * tail),
        (|bytes| bytes.truncate(bytes.len() - MARK - 1), 3 * tail),
        (|bytes| drop(bytes.splice(HEADER..HEADER + RECORD, [])), 2 * segment_bytes),
    ];
    for (at, (change, read_max)) in table.into_iter().enumerate() {
        let disk = disk.copy();
        disk.damage(&last, change);
        let before = disk.bytes_read();
        let (queue, report) = open(&disk, plan(segment_bytes));
        let read = disk.bytes_read() - before;
        assert_eq!((report.copies_queued, queue.copies()), (4000, 4000), "{at}");
        // Once for its content, once to see whether a cursor was ever written.
        let slots = 2 * 3 * format::SLOT_BYTES as u64;
        let most = segments * (HEADER + MARK) as u64 + slots + read_max;
        assert!(read <= most, "{at}: {read} bytes of {segments} segments");
    }
}

#[test]
fn opening_reads_the_beginning_of_a_segment_whose_header_is_damaged() {
    let disk = FaultyDisk::new(1);
    let segment_bytes = 2_000_000;
    let (mut queue, _) = open(&disk, plan(segment_bytes));
    let line = "x".repeat(19_999) + "\n";
    for _ in 0..800 {
        append(&mut queue, &line);
    }
    drop(queue);
    let mut names = disk.list().expect("the directory can be listed");
    names.retain(|name| format::segment_sequence(name).is_some());
    names.sort_unstable();
    let damaged = names.len().div_ceil(2);
    let first_record = format::RECORD_HEADER_BYTES + line.len();
    // (damaged bytes, records lost with them)
    for (lost, gone) in [(HEADER, 0), (HEADER + first_record, 1)] {
        let disk = disk.copy();
        for name in names.iter().step_by(2) {
            disk.damage(name, |bytes| bytes[..lost].iter_mut().for_each(|byte| *byte ^= 1));
        }
        let before = disk.bytes_read();
        let (queue, report) = open(&disk, plan(segment_bytes));
        let read = disk.bytes_read() - before;
        assert_eq!((report.segments_damaged, report.misplaced.len()), (damaged as u64, 0), "{lost}");
        // Only the first segment has no segment before it, whose end is its beginning.
        assert_eq!(queue.copies(), 800 - gone, "{lost}");
        let beginning = 400_000;
        let most = damaged as u64 * beginning + 100_000;
        assert!(read <= most, "{lost}: {read} bytes of {damaged} damaged segments");
    }
}

#[test]
fn open_records_are_bounded() {
    for settle_behind in [false, true] {
        let disk = FaultyDisk::new(1);
        let (mut queue, _) = open(&disk, plan(1 << 20));
        for _ in 0..OPEN_RECORDS_MAX + 2 {
            append(&mut queue, "a\n");
        }
        let mut held = Vec::new();
        while let Some(entry) = queue.pop(at_ms(0)) {
            if settle_behind && !held.is_empty() {
                entry.settle(CopyOutcome::Delivered);
            } else {
                held.push(entry);
            }
        }
        assert_eq!((queue.copies(), queue.accepted_up_to().0), (2, OPEN_RECORDS_MAX as u64 + 2));
        // The oldest was in the way.
        held.remove(0).settle(CopyOutcome::Delivered);
        assert_eq!(queue.pop(at_ms(0)).map(|entry| text(&entry)), Some("a\n".to_owned()));
        drop(held);
        assert_eq!(drain(&mut queue).len(), if settle_behind { 2 } else { OPEN_RECORDS_MAX + 1 });
    }
}

#[test]
fn segment_names_in_use_are_skipped() {
    let disk = six();
    let (mut queue, _) = open(&disk, plan(300));
    for sequence in 4..10 {
        disk.store(&format::segment_name(sequence), b"who put this here?");
    }
    append(&mut queue, "6\n");
    assert!(disk.bytes(&format::segment_name(10)).is_some());
    assert_eq!(drain(&mut queue).len(), 7);
}

#[test]
fn entries_may_be_settled_on_other_threads() {
    let disk = six();
    let (mut queue, _) = open(&disk, plan(300));
    let entries: Vec<Entry> = std::iter::from_fn(|| queue.pop(at_ms(0))).collect();
    std::thread::scope(|scope| {
        for entry in entries {
            scope.spawn(move || entry.settle(CopyOutcome::Delivered));
        }
    });
    assert_eq!((queue.settled_up_to(), queue.copies()), (Position(6), 0));
    check(&queue, 0);
}

#[test]
fn the_quarantine_size_is_bounded() {
    let disk = six();
    for segment in 1..=3 {
        disk.damage(&format::segment_name(segment), |bytes| bytes[HEADER + RECORD - 1] ^= 1);
    }
    let room = |quarantine_bytes_max| DiskQueuePlan { quarantine_bytes_max, ..plan(300) };
    let (mut queue, _) = open(&disk.copy(), room(1 << 20));
    drain(&mut queue);
    let each = queue.counts().quarantined_bytes / 3;
    assert_eq!((queue.counts().damaged_ranges, queue.counts().quarantine_full), (3, 0));
    for (bytes_max, full) in [(2 * each, 1), (2 * each - 1, 2), (0, 3)] {
        let (mut queue, _) = open(&disk.copy(), room(bytes_max));
        assert_eq!(drain(&mut queue), ["1\n", "3\n", "5\n"]);
        assert_eq!(queue.counts().quarantine_full, full);
        assert!(queue.counts().quarantined_bytes <= bytes_max);
    }
}

#[test]
fn a_record_inside_received_bytes_is_not_read_as_a_record() {
    let disk = six();
    let inner = disk.bytes(&format::segment_name(1)).expect("the file exists");
    let fresh = FaultyDisk::new(2);
    let (mut queue, _) =
        DiskQueue::open(fresh.clone(), plan(9000), Arc::default(), 78, at_ms(0)).expect("an empty disk");
    assert_eq!(queue.append(Block::lines(inner, 1, 0), at_ms(0)), Appended::Kept);
    append(&mut queue, "after\n");
    drop(queue);
    fresh.damage(&format::segment_name(1), |bytes| bytes[HEADER + 4] ^= 1);
    let (mut queue, _) = open(&fresh, plan(9000));
    assert_eq!(drain(&mut queue), ["after\n"]);
    assert_eq!(queue.account().dropped(Dropped::Damaged), 1);
}

#[test]
fn any_bytes_can_be_opened_and_records_between_them_are_read() {
    let mut random = 1_u64;
    for round in 0..300 {
        let len = round * 7 % 700;
        let garbage: Vec<u8> = (0..len)
            .map(|_| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (random >> 56) as u8
            })
            .collect();
        promises::check(&garbage);
        let markers: Vec<u8> = format::MARKER.iter().copied().cycle().take(len).collect();
        promises::check(&markers);
        // Closer to the plan of a directory: small numbers.
        promises::check(
            &garbage.iter().map(|byte| if *byte < 8 { 0xff } else { byte & 0xc7 }).collect::<Vec<_>>(),
        );
    }
    // A whole segment of another queue, as it is and cut at all places.
    let other = six().bytes(&format::segment_name(1)).expect("the file exists");
    for cut in 0..other.len() {
        promises::between(&other[cut..], false);
    }
}

/// Found by the fuzz target `segment`: directories with valid checksums and impossible counts.
#[test]
fn impossible_totals_are_rejected() {
    let huge = [0xff_u8; 9];
    let plans: [Vec<u8>; 3] = [
        [&[4_u8][..], &huge.repeat(11)].concat(),
        [&[1_u8][..], &huge.repeat(5)].concat(),
        [&[2_u8][..], &huge.repeat(4)].concat(),
    ];
    plans.iter().for_each(|plan| promises::check(plan));
}

#[test]
fn drop_older_accepts_an_age_above_the_uptime() {
    let disk = FaultyDisk::new(1);
    let (mut queue, _) = open(&disk, plan(300));
    for ms in [0, 10, 20] {
        let block = Block::lines(format!("{ms}\n").into_bytes(), 1, at_ms(ms).mono_ns);
        assert_eq!(queue.append(block, at_ms(ms)), Appended::Kept);
    }
    drop(queue);
    // (uptime in milliseconds, age, blocks at most, whether there may be more, what is left)
    let table = [
        (900, 11, 9, false, "10 20"),
        (900, 10, 9, false, "20"),
        (1, 10, 9, false, "20"),
        (1, 11, 9, false, "10 20"),
        (1, 21, 9, false, "0 10 20"),
        (1, 0, 2, true, "20"),
        (1, 0, 3, true, ""),
        (1, 0, 4, false, ""),
    ];
    for (up_ms, age_ms, blocks_max, more, left) in table {
        let now = Now { mono_ns: up_ms * MS, wall_ns: at_ms(20).wall_ns };
        let (mut queue, _) = DiskQueue::open(disk.copy(), plan(300), Arc::default(), 1, now)
            .expect("the directory can be listed");
        let case = format!("{age_ms} ms, {blocks_max}");
        assert_eq!(queue.drop_older(age_ms * MS, Dropped::ByOperator, blocks_max, now), more, "{case}");
        let texts = drain(&mut queue);
        assert_eq!(queue.account().dropped(Dropped::ByOperator) as usize, 3 - texts.len(), "{case}");
        assert_eq!(texts.concat().trim().replace('\n', " "), left, "{case}");
    }
}

/// What a store does: it takes blocks far ahead of those that it settles.
#[test]
fn blocks_in_a_store_are_settled_in_parts_and_returned_when_they_are_dropped() {
    let (disk, mut queue) = (FaultyDisk::default(), None);
    let account = Arc::<model::OutputAccount>::default();
    let opened =
        DiskQueue::open(disk.clone(), DiskQueuePlan::default(), Arc::clone(&account), 1, Now::default());
    let queue = queue.insert(opened.expect("the directory can be listed").0);
    for lines in ["a 1 1\nb 2 2\nc 3 3\n", "d 4 4\n"] {
        let copies = lines.matches('\n').count() as u32;
        let appended = queue.append(Block::lines(lines.as_bytes().to_vec(), copies, 0), Now::default());
        assert_eq!(appended, Appended::Kept);
    }
    let pop = |queue: &mut DiskQueue<FaultyDisk>| queue.pop(Now::default());
    let (first, second) = (pop(queue).expect("queued"), pop(queue).expect("queued"));
    let (mut first, second) = (first.stored(), second.stored());
    assert_eq!((first.number(), second.number(), first.copies()), (0, 1, 3));
    assert_eq!(first.settle(CopyOutcome::Dropped(Dropped::TooOld), 1), 1);
    assert_eq!(first.settle(CopyOutcome::Delivered, 9), 2, "it has no more");
    drop(first);
    drop(second);
    assert_eq!(queue.settled_up_to().0, 1, "the second block has no outcome");
    assert_eq!(queue.account().sum(queue.copies()).delivered, 2);
    let again = pop(queue).expect("it is returned");
    assert_eq!((&**again.block().bytes, again.copies()), (&b"d 4 4\n"[..], 1));
    let mut again = again.stored();
    assert_eq!(again.settle(CopyOutcome::Delivered, u64::MAX), 1);
    drop(again);
    let sum = queue.account().sum(queue.copies());
    assert!(sum.holds() && sum.queued == 0 && queue.settled_up_to().0 == 2, "{sum:?}");
    assert_eq!(account.queued_bytes.load(std::sync::atomic::Ordering::Relaxed), 0);
}
