//! A walk finds what the queue delivers, and changes nothing.

use super::faulty_disk::{Faults, FaultyDisk};
use super::inspect::{Begin, Inspection, Step, Stretch};
use super::salvage::{Salvaged, quarantined, salvage};
use super::*;
use crate::queue::Queue;

/// Result of a walk.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Walked {
    /// Blocks, as text, and whether each is queued.
    pub(super) blocks: Vec<(String, bool)>,
    pub(super) damage: Vec<Stretch>,
    pub(super) written_from: Option<u64>,
}

impl Walked {
    pub(super) fn waiting(&self) -> Vec<&str> {
        self.blocks.iter().filter(|block| block.1).map(|block| block.0.as_str()).collect()
    }

    pub(super) fn lost_copies(&self) -> u64 {
        self.damage.iter().map(|stretch| stretch.lost.copies).sum()
    }

    fn kinds(&self) -> Vec<DamageKind> {
        self.damage.iter().flat_map(|stretch| &stretch.ranges).map(|range| range.kind).collect()
    }
}

pub(super) fn walk(disk: &FaultyDisk, begin: Begin, live: bool) -> Walked {
    let before = files(disk);
    let inspection = Inspection::of(disk, live).expect("the directory can be listed");
    let mut walked = Walked::default();
    let visit = &mut |step: Step<'_>| -> Result<(), ()> {
        match step {
            Step::Record(record) => {
                let text = String::from_utf8_lossy(&record.block.bytes).into_owned();
                walked.blocks.push((text, record.waits));
            }
            Step::Damage(stretch) => walked.damage.push(stretch.clone()),
            Step::NotRead { error, .. } => panic!("everything can be read: {error}"),
            Step::BeingWritten(from) => walked.written_from = Some(from),
        }
        Ok(())
    };
    inspection.walk(disk, begin, visit).expect("the visitor does not fail");
    let about = quarantined(&inspection, disk);
    salvage::<_, ()>(&inspection, disk, &about, &mut |_| Ok(())).expect("the visitor does not fail");
    assert!(before == files(disk), "inspection changes nothing");
    walked
}

fn files(disk: &FaultyDisk) -> Vec<(String, Vec<u8>)> {
    let names = disk.list().expect("the directory can be listed");
    names.into_iter().map(|name| (name.clone(), disk.bytes(&name).expect("it is listed"))).collect()
}

/// A disk whose queue got `0\n` to `5\n`, two in each of three segments, and settled the first `settled`.
fn six(settled: usize) -> FaultyDisk {
    let disk = FaultyDisk::new(1);
    let plan = DiskQueuePlan { segment_bytes: 300, ..DiskQueuePlan::default() };
    let (mut queue, _) =
        DiskQueue::open(disk.clone(), plan, Arc::default(), 77, now()).expect("an empty disk");
    for number in 0..6 {
        let block = Block::lines(format!("{number}\n").into_bytes(), 1, now().mono_ns);
        assert_eq!(queue.append(block, now()), Appended::Kept);
    }
    for _ in 0..settled {
        queue.pop(now()).expect("six are queued").settle(CopyOutcome::Delivered);
    }
    if let Some(job) = queue.begin_last_sync() {
        // Not synced: settled segments are not removed.
        let _done = job.perform(&disk);
    }
    disk
}

fn now() -> Now {
    Now { mono_ns: 1 << 40, wall_ns: 1 << 60 }
}

const HEADER: usize = format::SEGMENT_HEADER_BYTES;
const RECORD: usize = format::RECORD_HEADER_BYTES + 2;

/// Blocks that a queue returns, and the copies that it counts as damaged.
fn drained(disk: &FaultyDisk) -> (Vec<String>, u64) {
    let account = Arc::new(OutputAccount::default());
    let (mut queue, _) =
        DiskQueue::open(disk.copy(), DiskQueuePlan::default(), Arc::clone(&account), 1, now())
            .expect("the directory can be listed");
    let mut texts = Vec::new();
    while let Some(entry) = queue.pop(now()) {
        texts.push(String::from_utf8_lossy(&entry.block().bytes).into_owned());
        entry.settle(CopyOutcome::Delivered);
    }
    (texts, account.dropped(Dropped::Damaged))
}

/// Panics where a walk and the queue disagree.
pub(super) fn check_agreement(disk: &FaultyDisk) -> Walked {
    let walked = walk(disk, Begin::First, false);
    let (blocks, damaged) = drained(disk);
    assert_eq!(walked.waiting(), blocks);
    assert_eq!(walked.lost_copies(), damaged, "{:?}", walked.damage);
    let waiting: Vec<(String, bool)> = walked.blocks.iter().filter(|block| block.1).cloned().collect();
    assert_eq!(walk(disk, Begin::Cursor, false).blocks, waiting);
    walked
}

#[test]
fn inspection_finds_damage_and_counts_it_as_the_queue_does() {
    use DamageKind::{Body, CutOff, NotARecord};
    /// (name, segment, change, queued records, kinds, copies lost)
    type Row = (&'static str, u64, fn(&mut Vec<u8>), &'static str, &'static [DamageKind], u64);
    let table: &[Row] = &[
        ("nothing", 1, |_| {}, "12345", &[], 0),
        ("a settled record", 1, |b| b[HEADER + RECORD - 1] ^= 1, "12345", &[Body], 0),
        ("the header of a settled record", 1, |b| b[HEADER + 9] ^= 1, "12345", &[NotARecord], 0),
        ("a body", 1, |b| b[HEADER + 2 * RECORD - 1] ^= 1, "2345", &[Body], 1),
        (
            "two bodies",
            2,
            |b| (b[HEADER + RECORD - 1], b[HEADER + 2 * RECORD - 1]) = (0, 0),
            "145",
            &[Body, Body],
            2,
        ),
        ("a marker", 2, |b| b[HEADER] ^= 1, "1345", &[NotARecord], 1),
        ("the last body", 3, |b| b[HEADER + 2 * RECORD - 1] ^= 1, "1234", &[Body], 1),
        ("the last body cut off", 3, |b| b.truncate(HEADER + 2 * RECORD - 1), "1234", &[CutOff], 1),
        ("the last header", 3, |b| b[HEADER + RECORD + 9] ^= 1, "1234", &[NotARecord], 1),
        ("the last header cut off", 3, |b| b.truncate(HEADER + RECORD + 9), "1234", &[CutOff], 1),
        ("the last record cut off", 3, |b| b.truncate(HEADER + RECORD), "1234", &[], 1),
        ("the last mark", 3, |b| b[HEADER + 2 * RECORD + 9] ^= 1, "12345", &[NotARecord], 0),
        ("all records cut off", 2, |b| b.truncate(HEADER), "145", &[], 2),
        ("nothing but zeros", 2, |b| b.fill(0), "145", &[], 2),
        ("a segment's header", 2, |b| b[3] ^= 1, "12345", &[NotARecord], 0),
        ("bytes put in", 2, |b| drop(b.splice(HEADER..HEADER, [7; 999])), "12345", &[NotARecord], 0),
        ("bytes behind", 3, |b| b.extend([1; 500]), "12345", &[NotARecord], 0),
    ];
    for (name, segment, change, want, kinds, lost) in table {
        let disk = six(1);
        disk.damage(&format::segment_name(*segment), change);
        let walked = check_agreement(&disk);
        assert_eq!(walked.waiting().concat().replace('\n', ""), *want, "{name}");
        assert_eq!((walked.kinds().as_slice(), walked.lost_copies()), (*kinds, *lost), "{name}");
    }
    for missing in 1..4 {
        let disk = six(1);
        disk.remove(&format::segment_name(missing)).expect("the file exists");
        check_agreement(&disk);
    }
}

/// Copies a file of the queue under another number, and removes the first where `moved`.
fn copy(disk: &FaultyDisk, from: u64, to: u64, moved: bool) {
    let bytes = disk.bytes(&format::segment_name(from)).expect("the file exists");
    disk.store(&format::segment_name(to), &bytes);
    if moved {
        disk.remove(&format::segment_name(from)).expect("the file exists");
    }
}

/// Which of the six records are complete in some file of the directory.
fn kept(disk: &FaultyDisk) -> String {
    let all: Vec<u8> = files(disk).into_iter().flat_map(|(_, bytes)| bytes).collect();
    let is_there = |number: &u64| {
        let block = Block::lines(format!("{number}\n").into_bytes(), 1, 0);
        let before = Totals {
            records: *number,
            copies: *number,
            copy_bytes: 2 * number,
            disk_bytes: number * RECORD as u64,
        };
        let header = format::RecordHeader::of(&block, &[], before, now().wall_ns, 77).expect("small");
        let record = [&header.encode(77)[..], &block.bytes].concat();
        memchr::memmem::find(&all, &record).is_some()
    };
    (0..6).filter(is_there).map(|number| number.to_string()).collect()
}

/// (name, settled, change by another program, queued records, copies lost, quarantined, kept for the next run)
type Move =
    (&'static str, usize, fn(&FaultyDisk), &'static str, u64, &'static [(u64, &'static str)], &'static str);
const MOVES: &[Move] = &[
    ("a copy behind all", 1, |d| copy(d, 2, 9, false), "12345", 0, &[(9, "misnamed")], "012345"),
    ("a copy before all", 1, |d| copy(d, 3, 0, false), "12345", 0, &[(0, "misnamed")], "012345"),
    ("the first renamed", 1, |d| copy(d, 1, 9, true), "2345", 1, &[(9, "misnamed")], "012345"),
    ("one within renamed", 1, |d| copy(d, 2, 9, true), "145", 2, &[(9, "misnamed")], "012345"),
    ("one within renamed to the front", 1, |d| copy(d, 2, 0, true), "145", 2, &[(0, "misnamed")], "012345"),
    ("the last renamed", 1, |d| copy(d, 3, 9, true), "123", 2, &[(9, "misnamed")], "012345"),
    ("the last renamed to the front", 1, |d| copy(d, 3, 0, true), "123", 2, &[(0, "misnamed")], "012345"),
    ("all settled and renamed", 6, |d| copy(d, 3, 9, true), "", 0, &[(9, "misnamed")], "45"),
    (
        "swapped",
        1,
        |d| {
            copy(d, 2, 9, true);
            copy(d, 3, 2, true);
            copy(d, 9, 3, true);
        },
        "1",
        4,
        &[(2, "misnamed"), (3, "misnamed")],
        "012345",
    ),
    (
        "an older copy behind the one that is read, its header damaged",
        3,
        |d| {
            copy(d, 2, 3, false);
            d.damage(&format::segment_name(3), |bytes| {
                bytes.truncate(HEADER + RECORD);
                bytes[3] ^= 1;
            });
        },
        "",
        3,
        &[(2, "displaced")],
        "23",
    ),
    (
        "another in the place of the one that is read, its header damaged",
        1,
        |d| {
            copy(d, 2, 1, true);
            d.damage(&format::segment_name(1), |bytes| bytes[3] ^= 1);
        },
        "2345",
        1,
        &[],
        "2345",
    ),
    (
        "the last renamed to the front, its header damaged",
        1,
        |d| {
            copy(d, 3, 0, true);
            d.damage(&format::segment_name(0), |bytes| bytes[3] ^= 1);
        },
        "123",
        2,
        &[(0, "displaced")],
        "012345",
    ),
];

#[test]
fn a_misplaced_segment_is_quarantined_and_reported() {
    for (name, settled, act, want, lost, quarantined, want_kept) in MOVES {
        let disk = six(*settled);
        act(&disk);
        let walked = check_agreement(&disk);
        assert_eq!(walked.waiting().concat().replace('\n', ""), *want, "{name}");
        assert_eq!(walked.lost_copies(), *lost, "{name}");
        let inspection = Inspection::of(&disk, false).expect("the directory can be listed");
        let found: Vec<(u64, &str)> = inspection
            .unusable_segments()
            .iter()
            .map(|quarantined| (quarantined.sequence, quarantined.why.word()))
            .collect();
        assert_eq!(&found, quarantined, "{name}");
        let opened = DiskQueue::open(disk.clone(), DiskQueuePlan::default(), Arc::default(), 1, now());
        let (queue, report) = opened.expect("the directory can be listed");
        assert_eq!(report.misplaced, inspection.unusable_segments(), "{name}");
        assert_eq!(queue.counts().damaged_ranges, quarantined.len() as u64, "{name}");
        drop(queue);
        assert_eq!(kept(&disk), *want_kept, "{name}");
        for (sequence, _) in *quarantined {
            let names = disk.list().expect("the directory can be listed");
            let is_there =
                names.contains(&format::quarantine_name(*sequence, format::QuarantineContent::Misplaced));
            assert!(is_there && !names.contains(&format::segment_name(*sequence)), "{name}: {names:?}");
        }
    }
}

#[test]
fn two_quarantined_segments_of_one_number_are_both_kept() {
    let disk = six(0);
    for (from, want) in [(1, 1), (2, 2), (3, 3)] {
        copy(&disk, from, 9, false);
        let opened = DiskQueue::open(disk.clone(), DiskQueuePlan::default(), Arc::default(), 1, now());
        drop(opened.expect("the directory can be listed"));
        let inspection = Inspection::of(&disk, false).expect("the directory can be listed");
        assert_eq!((inspection.unusable_segments(), quarantined(&inspection, &disk).len()), (&[][..], want));
    }
    let names: Vec<String> = disk.list().expect("the directory can be listed");
    for name in ["9-misplaced.quarantine", "9-misplaced-2.quarantine", "9-misplaced-3.quarantine"] {
        assert!(names.contains(&format!("000000000000000{name}")), "{names:?}");
    }
    let found: Vec<String> = salvaged(&disk).into_iter().map(|(text, ..)| text).collect();
    assert_eq!(found.len(), 6, "all their records are salvaged: {found:?}");
}

#[test]
fn settled_records_not_yet_removed_are_not_queued() {
    for settled in 0..=6 {
        let disk = six(settled);
        let walked = check_agreement(&disk);
        assert_eq!((walked.blocks.len(), walked.waiting().len()), (6, 6 - settled));
        let inspection = Inspection::of(&disk, false).expect("the directory can be listed");
        assert_eq!(inspection.waiting().copies, 6 - settled as u64);
        let cursor = inspection.cursor().map(|cursor| cursor.settled.copies);
        assert_eq!(cursor, Some(settled as u64));
        assert_eq!(inspection.oldest_wall_ns(&disk), (settled < 6).then_some(now().wall_ns));
        assert_eq!(inspection.segments().count(), 3);
    }
}

#[test]
fn an_incomplete_tail_counts_as_being_written_in_a_live_queue() {
    // Bytes of the last segment that are there: every length from its header on.
    let whole = six(1).bytes(&format::segment_name(3)).expect("the last one").len();
    for len in 0..=whole {
        let disk = six(1);
        disk.damage(&format::segment_name(3), |bytes| bytes.truncate(len));
        let live = walk(&disk, Begin::First, true);
        assert_eq!(live.damage, [], "{len}");
        let boundary = len <= HEADER || (len - HEADER).is_multiple_of(RECORD) || len == whole;
        assert_eq!(live.written_from.is_none(), boundary, "{len}");
        check_agreement(&disk);
    }
    // A record that overwrites one that a full disk cut short: its body is not written yet.
    let disk = six(1);
    let end = HEADER + 2 * RECORD;
    disk.damage(&format::segment_name(3), |bytes| bytes[end - 1] ^= 1);
    let live = walk(&disk, Begin::First, true);
    assert_eq!((live.damage.len(), live.written_from), (0, Some((end - RECORD) as u64)));
    // Damage before a valid record is damage, even while a process is writing.
    disk.damage(&format::segment_name(3), |bytes| bytes[HEADER + RECORD - 1] ^= 1);
    disk.damage(&format::segment_name(3), |bytes| bytes[end - 1] ^= 1);
    let live = walk(&disk, Begin::First, true);
    assert_eq!((live.kinds(), live.lost_copies()), (vec![DamageKind::Body], 1));
}

#[test]
fn segments_removed_during_a_walk_count_as_settled() {
    let disk = six(0);
    let inspection = Inspection::of(&disk, true).expect("the directory can be listed");
    disk.remove(&format::segment_name(2)).expect("the file exists");
    let mut found = Vec::new();
    let visit = &mut |step: Step<'_>| {
        match step {
            Step::Record(record) => found.push(record.number),
            Step::Damage(stretch) => return Err(stretch.clone()),
            Step::NotRead { error, .. } => panic!("everything can be read: {error}"),
            Step::BeingWritten(_) => {}
        }
        Ok(())
    };
    assert_eq!(inspection.walk(&disk, Begin::First, visit), Ok(()));
    assert_eq!(found, [0, 1, 4, 5]);
}

#[test]
fn unreadable_ranges_are_reported_and_the_rest_is_found() {
    let disk = six(0);
    let at = (HEADER + RECORD + 5) as u64;
    let unreadable = vec![(format::segment_name(2), at, at)];
    disk.set_faults(Faults { unreadable, ..Faults::default() });
    let walked = walk(&disk, Begin::First, false);
    assert_eq!(walked.waiting().concat().replace('\n', ""), "01245");
    assert_eq!((walked.kinds(), walked.lost_copies()), (vec![DamageKind::Unreadable], 1));
}

#[test]
fn an_error_of_the_visitor_ends_the_walk() {
    let disk = six(0);
    let inspection = Inspection::of(&disk, false).expect("the directory can be listed");
    let mut steps = 0;
    let visit = &mut |_: Step<'_>| {
        steps += 1;
        if steps == 2 { Err("enough") } else { Ok(()) }
    };
    assert_eq!(inspection.walk(&disk, Begin::First, visit), Err("enough"));
    assert_eq!(steps, 2);
}

#[test]
fn an_empty_directory_has_no_queue() {
    let disk = FaultyDisk::new(1);
    assert_eq!(walk(&disk, Begin::First, false), Walked::default());
    let inspection = Inspection::of(&disk, false).expect("the directory can be listed");
    assert_eq!((inspection.waiting(), inspection.oldest_wall_ns(&disk)), (Totals::default(), None));
    assert_eq!((inspection.cursor(), inspection.recovery()), (None, Recovery::default()));
}

fn salvaged(disk: &FaultyDisk) -> Vec<(String, Option<u64>, bool)> {
    let inspection = Inspection::of(disk, false).expect("the directory can be listed");
    let mut found = Vec::new();
    let visit = &mut |salvaged: Salvaged| -> Result<(), ()> {
        found.push((
            String::from_utf8_lossy(&salvaged.block.bytes).into_owned(),
            salvaged.record.map(|record| record.0),
            salvaged.whole,
        ));
        Ok(())
    };
    salvage(&inspection, disk, &quarantined(&inspection, disk), visit).expect("the visitor does not fail");
    found
}

/// Opens the queue, which copies damage to the quarantine, and reads all of it.
fn quarantine_damage(disk: &FaultyDisk) {
    let (mut queue, _) = DiskQueue::open(disk.clone(), DiskQueuePlan::default(), Arc::default(), 1, now())
        .expect("the directory can be listed");
    let mut at = now();
    while !queue.is_empty() {
        match queue.pop(at) {
            Some(entry) => entry.settle(CopyOutcome::Delivered),
            None => at = at.plus_ns(READ_AGAIN_MS * MS_NS),
        }
    }
    let done = queue.begin_last_sync().map(|job| job.perform(disk));
    let _synced = done.map(|done| queue.on_synced(done));
}

#[test]
fn quarantined_files_have_a_reason_and_their_records_are_salvaged() {
    let disk = six(0);
    disk.damage(&format::segment_name(1), |bytes| bytes[HEADER + RECORD - 2] = b'x');
    let other = FaultyDisk::new(2);
    let (mut queue, _) = DiskQueue::open(other.clone(), DiskQueuePlan::default(), Arc::default(), 99, now())
        .expect("an empty disk");
    let block = Block::lines(b"from elsewhere\n".to_vec(), 1, now().mono_ns);
    assert_eq!(queue.append(block, now()), Appended::Kept);
    let mut foreign = other.bytes(&format::segment_name(1)).expect("it was written");
    let header = format::SegmentHeader::decode(foreign.first_chunk().expect("a header")).expect("whole");
    foreign[..HEADER].copy_from_slice(&format::SegmentHeader { sequence: 9, ..header }.encode());
    disk.store(&format::segment_name(9), &foreign);
    disk.store("mine.quarantine", b"no line");
    quarantine_damage(&disk);
    let inspection = Inspection::of(&disk, false).expect("the directory can be listed");
    let about: Vec<(String, String)> =
        quarantined(&inspection, &disk).into_iter().map(|file| (file.name, file.reason)).collect();
    let body = "0000000000000001.segment, bytes 80 to 178: the record's header is whole, but its block does not match \
                its checksum";
    let whole = "a whole segment: not this queue's, or one that the disk could not read";
    let want = [
        ("0000000000000001-0000000000000050.quarantine", body),
        ("0000000000000009-whole.quarantine", whole),
        ("mine.quarantine", whole),
    ];
    assert_eq!(about, want.map(|(name, reason)| (name.to_owned(), reason.to_owned())));
    assert_eq!(
        salvaged(&disk),
        [("x\n".to_owned(), Some(0), false), ("from elsewhere\n".to_owned(), Some(0), true)]
    );
}

#[test]
fn only_unread_records_are_salvaged_from_a_segment_quarantined_after_reading() {
    let disk = six(0);
    let at = (HEADER + RECORD + 5) as u64;
    let unreadable = vec![(format::segment_name(2), at, at)];
    disk.set_faults(Faults { unreadable, ..Faults::default() });
    quarantine_damage(&disk);
    disk.set_faults(Faults::default());
    let names = disk.list().expect("the directory can be listed");
    assert!(names.iter().any(|name| name == "0000000000000002-whole.quarantine"), "{names:?}");
    assert_eq!(
        salvaged(&disk),
        [("3\n".to_owned(), Some(3), true)],
        "the disk reads it now; the other was delivered"
    );
}

#[test]
fn lines_behind_a_damaged_header_are_salvaged_when_their_checksum_matches() {
    // (byte of the second record, what is salvaged)
    for (at, want) in [(0, Some("1\n")), (20, Some("1\n")), (90, Some("1\n")), (80, None), (96, Some("0\n"))]
    {
        let disk = six(0);
        disk.damage(&format::segment_name(1), |bytes| bytes[HEADER + RECORD + at] ^= 1);
        quarantine_damage(&disk);
        let number = (at == 96).then_some(1);
        let want: Vec<_> = want.map(|text| (text.to_owned(), number, at != 96)).into_iter().collect();
        assert_eq!(salvaged(&disk), want, "byte {at}");
    }
}

#[test]
fn quarantined_files_can_be_removed_one_by_one() {
    let disk = six(0);
    for (name, bytes) in [("a.quarantine", 10), ("b.quarantine", 20), ("c.quarantine", 30)] {
        disk.store(name, &vec![7; bytes]);
    }
    let plan = DiskQueuePlan::default();
    let (mut queue, _) =
        DiskQueue::open(disk.clone(), plan, Arc::default(), 1, now()).expect("the directory can be listed");
    let mut names = queue.quarantined().expect("the directory can be listed");
    names.sort_unstable();
    assert_eq!(names, ["a.quarantine", "b.quarantine", "c.quarantine"]);
    assert_eq!(queue.remove_quarantined("b.quarantine"), Ok(Some(20)));
    assert_eq!(queue.remove_quarantined("b.quarantine"), Ok(None), "a missing file is no error");
    assert_eq!((queue.counts().quarantined_bytes, queue.counts().remove_errors), (0, 0));
    assert_eq!(queue.remove_quarantine(), Ok((2, 40)));
}

#[test]
fn removing_quarantined_files_makes_room() {
    let disk = six(0);
    disk.store("old.quarantine", &[7; 1000]);
    let plan = DiskQueuePlan { quarantine_bytes_max: 1100, ..DiskQueuePlan::default() };
    let (mut queue, _) =
        DiskQueue::open(disk.clone(), plan, Arc::default(), 1, now()).expect("the directory can be listed");
    assert_eq!(queue.quarantined(), Ok(vec!["old.quarantine".to_owned()]));
    assert_eq!(queue.remove_quarantine(), Ok((1, 1000)));
    assert_eq!(queue.remove_quarantine(), Ok((0, 0)));
    disk.damage(&format::segment_name(1), |bytes| bytes[HEADER + RECORD - 1] ^= 1);
    while let Some(entry) = queue.pop(now()) {
        entry.settle(CopyOutcome::Delivered);
    }
    assert_eq!((queue.counts().quarantine_full, queue.counts().damaged_ranges), (0, 1));
}
