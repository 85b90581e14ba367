//! `staunch queue check`: reads every byte of a queue, and lists damage and the records lost by it.

use std::process::ExitCode;

use deliver::disk_queue::inspect::{
    Begin, CursorPlace, DamagedRange, FoundRecord, Inspection, Step, Stretch,
};
use deliver::disk_queue::salvage::{Quarantined, quarantined};
use deliver::disk_queue::{DamageKind, QuarantineReason, QuarantinedSegment, Totals};
use model::SECOND_NS;
use serde_json::{Value, json};

use super::api;
use super::counts::{copies, count_of, files};
use super::document::QueueRow;
use super::list::{busy_text, missing_text};
use super::place::{Place, Queue};
use crate::api_client::Access;
use crate::exit_code::{FAILED, MISTAKES};
use crate::stdio::{self, shown};
use sys::clock::Clock;

/// Damaged stretches that are listed; all are counted.
const STRETCHES_SHOWN: usize = 1000;

/// Unfinished ends of segments that the text lists.
const UNFINISHED_SHOWN: usize = 10;

/// Files of the quarantine that the text lists.
const FILES_SHOWN: usize = 10;

/// How often a long walk says where it is.
const PROGRESS_NS: u64 = 2 * SECOND_NS;

/// What is in one segment.
#[derive(Clone, Debug, Default, PartialEq)]
struct Segment {
    sequence: u64,
    bytes: u64,
    blocks: u64,
    copies: u64,
    /// Unix nanoseconds at which its oldest and youngest block were made.
    made_ns: Option<(u64, u64)>,
}

/// What was found in one queue.
#[derive(Debug, Default)]
struct Report {
    name: String,
    segments: Vec<Segment>,
    cursor: Option<CursorPlace>,
    cursor_lost: bool,
    /// Segments that the disk does not open, and those that are not read.
    unreadable: u64,
    unusable: Vec<QuarantinedSegment>,
    waiting_blocks: u64,
    waiting_copies: u64,
    stretches: Vec<Stretch>,
    ranges: u64,
    damaged_bytes: u64,
    lost_copies: u64,
    /// Ends of segments behind their last whole record, of writes that were cut short: no damage.
    unfinished: Vec<DamagedRange>,
    written_from: Option<u64>,
    quarantine: Vec<Quarantined>,
    /// Copies in files that are gone, as the daemon says that has them open.
    missing: u64,
}

impl Report {
    fn is_sound(&self) -> bool {
        let is_whole = self.ranges == 0 && self.lost_copies == 0 && self.missing == 0;
        is_whole && self.unreadable == 0 && self.unusable.is_empty()
    }

    fn record(&mut self, record: &FoundRecord<'_>) {
        if record.waits {
            self.waiting_blocks += 1;
            self.waiting_copies += u64::from(record.block.copies);
        }
        if let Some(segment) = self.segments.iter_mut().rfind(|segment| segment.sequence == record.segment) {
            segment.blocks += 1;
            segment.copies += u64::from(record.block.copies);
            let made = record.made_wall_ns;
            let (first, last) = segment.made_ns.unwrap_or((made, made));
            segment.made_ns = Some((first.min(made), last.max(made)));
        }
    }

    /// A write that a full disk or a kill cut short leaves bytes behind the last whole record of a segment, and what follows
    /// says that no record is missing.
    fn is_unfinished(&self, stretch: &Stretch) -> bool {
        let ends_segment = |range: &DamagedRange| {
            self.segments.iter().any(|segment| segment.sequence == range.segment && segment.bytes == range.to)
        };
        match stretch.ranges.as_slice() {
            [range] => {
                stretch.lost == Totals::default()
                    && matches!(range.kind, DamageKind::NotARecord | DamageKind::CutOff)
                    && ends_segment(range)
            }
            _ => false,
        }
    }

    fn damage(&mut self, stretch: &Stretch) {
        if self.is_unfinished(stretch) {
            // As many as there are segments, at most.
            self.unfinished.extend(&stretch.ranges);
            return;
        }
        self.ranges += stretch.ranges.len() as u64;
        self.damaged_bytes += stretch.ranges.iter().map(|range| range.to - range.from).sum::<u64>();
        self.lost_copies += stretch.lost.copies;
        if self.stretches.len() < STRETCHES_SHOWN {
            self.stretches.push(stretch.clone());
        }
    }
}

/// `staunch queue check`
pub(super) fn check(
    (place, access): (&mut Place, &Access),
    names: &[String],
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let queues = place.pick(names)?;
    let (mut reports, mut failed) = (Vec::new(), false);
    let listed = api::listed(place, access).unwrap_or_default();
    for queue in &queues {
        match walk(place, queue) {
            Ok(report) => reports.push(Report { missing: missing(&listed, &queue.name), ..report }),
            Err(error) => {
                failed = true;
                stdio::say(&format!("staunch: {error:#}\n"));
            }
        }
    }
    if as_json {
        let queues: Vec<Value> = reports.iter().map(document).collect();
        let mut text = serde_json::to_string_pretty(&json!({ "queues": queues }))?;
        text.push('\n');
        stdio::data(text.as_bytes())?;
    } else if queues.is_empty() {
        stdio::say(&format!("staunch: nothing is queued on disk in {}\n", place.data_dir.display()));
    } else {
        stdio::data(reports.iter().map(text).collect::<String>().as_bytes())?;
    }
    if !as_json {
        stdio::say(&missing_text(&listed));
        stdio::say(&busy_text(&listed));
    }
    Ok(match (failed, reports.iter().all(Report::is_sound)) {
        (true, _) => ExitCode::from(FAILED),
        (false, false) => ExitCode::from(MISTAKES),
        (false, true) => ExitCode::SUCCESS,
    })
}

/// Copies that only the daemon still has.
fn missing(listed: &[QueueRow], name: &str) -> u64 {
    let disk = listed.iter().find(|row| row.name == name).and_then(|row| row.disk);
    disk.map_or(0, |disk| disk.records_missing)
}

/// Looks at the queue; once more when a daemon was started meanwhile, which changes what is damage.
fn walk(place: &mut Place, queue: &Queue) -> anyhow::Result<Report> {
    loop {
        let live = place.owner.is_some();
        let report = walk_once(queue, live)?;
        place.refresh()?;
        if report.is_sound() || live == place.owner.is_some() {
            return Ok(report);
        }
    }
}

fn walk_once(queue: &Queue, live: bool) -> anyhow::Result<Report> {
    let disk = queue.folder()?;
    let inspection = Inspection::of(&disk, live)
        .map_err(|error| anyhow::anyhow!("cannot read {}: {error}", queue.path.display()))?;
    let segment = |(sequence, bytes)| Segment { sequence, bytes, ..Segment::default() };
    let mut report = Report {
        name: queue.name.clone(),
        segments: inspection.segments().map(segment).collect(),
        cursor: inspection.cursor(),
        cursor_lost: inspection.recovery().cursor_lost,
        unreadable: inspection.recovery().segments_unreadable,
        unusable: inspection.unusable_segments().to_vec(),
        quarantine: quarantined(&inspection, &disk),
        ..Report::default()
    };
    let all: u64 = inspection.segments().map(|segment| segment.1).sum();
    let (mut read, mut reported_ns) = (0, Clock::mono_ns());
    let visit = &mut |step: Step<'_>| -> anyhow::Result<()> {
        match step {
            Step::Record(record) => {
                report.record(&record);
                read += record.disk_bytes;
            }
            Step::Damage(stretch) => report.damage(stretch),
            Step::BeingWritten(from) => report.written_from = Some(from),
            Step::NotRead { segment, error } => {
                let path = queue.path.display();
                anyhow::bail!("cannot read segment {segment:016x} in {path}: {error}")
            }
        }
        let now_ns = Clock::mono_ns();
        if now_ns.saturating_sub(reported_ns) > PROGRESS_NS {
            reported_ns = now_ns;
            let (read, all) = (stdio::bytes(read), stdio::bytes(all));
            stdio::say(&format!("staunch: {}: {read} of {all}\n", shown(&queue.name)));
        }
        Ok(())
    };
    inspection.walk(&disk, Begin::First, visit)?;
    Ok(report)
}

fn plural(count: u64, word: &str) -> String {
    count_of(count, word, &format!("{word}s"))
}

fn text(report: &Report) -> String {
    let verdict = match report {
        report if report.is_sound() => "sound",
        Report { missing: 0, .. } => "damaged",
        _ => "files are missing",
    };
    let bytes: u64 = report.segments.iter().map(|segment| segment.bytes).sum();
    let mut text = format!(
        "{}: {verdict}\n  {} in {}; {} queued, in {}\n",
        shown(&report.name),
        stdio::bytes(bytes),
        plural(report.segments.len() as u64, "segment"),
        copies(report.waiting_copies),
        plural(report.waiting_blocks, "whole block"),
    );
    for stretch in &report.stretches {
        text.push_str(&stretch_text(stretch));
    }
    if report.stretches.len() == STRETCHES_SHOWN {
        text.push_str("  … and more, which are counted below\n");
    }
    for segment in &report.unusable {
        let QuarantinedSegment { sequence, bytes, why } = segment;
        text.push_str(&format!("  {sequence:016x}.segment, {}:\n    {}\n", stdio::bytes(*bytes), why.text()));
    }
    if report.unreadable > 0 {
        text.push_str(&format!("  {} cannot be opened\n", plural(report.unreadable, "segment")));
    }
    if !report.is_sound() {
        text.push_str(&format!(
            "  in total {}, {}; {} of the queue cannot be read\n",
            plural(report.ranges, "damaged range"),
            stdio::bytes(report.damaged_bytes),
            copies(report.lost_copies),
        ));
    }
    for DamagedRange { segment, from, to, .. } in report.unfinished.iter().take(UNFINISHED_SHOWN) {
        text.push_str(&format!(
            "  {segment:016x}.segment ends with an incomplete write of {}:\n    it contains no queued record\n",
            stdio::bytes(to - from)
        ));
    }
    if report.unfinished.len() > UNFINISHED_SHOWN {
        text.push_str(&format!(
            "  … and {} more such segments\n",
            report.unfinished.len() - UNFINISHED_SHOWN
        ));
    }
    if report.cursor_lost {
        text.push_str("  no cursor: all records count as queued, and some may be delivered again\n");
    }
    if report.written_from.is_some() {
        text.push_str("  its end is being written\n");
    }
    if !report.quarantine.is_empty() {
        text.push_str(&quarantine_text(report));
    }
    text
}

fn stretch_text(stretch: &Stretch) -> String {
    let line = |range: &DamagedRange| {
        let DamagedRange { segment, from, to, kind } = range;
        format!("  {segment:016x}.segment, bytes {from} to {to}:\n    {}\n", kind.why())
    };
    let mut text: String = stretch.ranges.iter().map(line).collect();
    if stretch.ranges.is_empty() {
        text.push_str("  a segment, or the end of one, is missing\n");
    }
    let cost = match stretch.lost.copies {
        0 => "    it contains no queued record\n".to_owned(),
        lost => format!("    lost: {}, {}\n", copies(lost), stdio::bytes(stretch.lost.copy_bytes)),
    };
    text + &cost
}

fn quarantine_text(report: &Report) -> String {
    let bytes: u64 = report.quarantine.iter().map(|file| file.bytes).sum();
    let count = files(report.quarantine.len() as u64);
    let mut text = format!("  already in quarantine: {count}, {}\n", stdio::bytes(bytes));
    for file in report.quarantine.iter().take(FILES_SHOWN) {
        text.push_str(&file_text(&file.name, &file.reason));
    }
    if report.quarantine.len() > FILES_SHOWN {
        text.push_str("    …\n");
    }
    text
}

fn file_text(name: &str, reason: &str) -> String {
    format!("    {}\n      {}\n", shown(name), shown(reason))
}

fn totals(totals: Totals) -> Value {
    json!({ "blocks": totals.records, "copies": totals.copies, "bytes": totals.copy_bytes })
}

fn document(report: &Report) -> Value {
    let ms = |ns: u64| ns / 1_000_000;
    let segment = |segment: &Segment| {
        json!({
            "segment": segment.sequence,
            "bytes": segment.bytes,
            "blocks": segment.blocks,
            "copies": segment.copies,
            "made_ms": segment.made_ns.map(|(first, last)| [ms(first), ms(last)]),
        })
    };
    let range = |range: &DamagedRange| json!({ "segment": range.segment, "from": range.from, "to": range.to, "kind": range.kind.word() });
    let stretch = |stretch: &Stretch| {
        let ranges: Vec<Value> = stretch.ranges.iter().map(range).collect();
        json!({ "ranges": ranges, "lost": totals(stretch.lost) })
    };
    let cursor = report.cursor.map(|cursor| {
        json!({ "segment": cursor.segment, "offset": cursor.offset, "settled": totals(cursor.settled) })
    });
    let unusable = |segment: &QuarantinedSegment| {
        let header = match segment.why {
            QuarantineReason::Misnamed(header) => Some(header),
            QuarantineReason::Unreadable | QuarantineReason::Foreign | QuarantineReason::Displaced => None,
        };
        json!({ "segment": segment.sequence, "bytes": segment.bytes, "why": segment.why.word(), "header": header })
    };
    let file = |file: &Quarantined| json!({ "name": file.name, "bytes": file.bytes, "reason": file.reason });
    json!({
        "name": report.name,
        "sound": report.is_sound(),
        "records_missing": report.missing,
        "blocks_queued": report.waiting_blocks,
        "copies_queued": report.waiting_copies,
        "copies_lost": report.lost_copies,
        "damaged_ranges": report.ranges,
        "damaged_bytes": report.damaged_bytes,
        "unfinished": report.unfinished.iter().map(range).collect::<Vec<Value>>(),
        "being_written_from": report.written_from,
        "cursor": cursor,
        "segments": report.segments.iter().map(segment).collect::<Vec<Value>>(),
        "segments_unreadable": report.unreadable,
        "segments_foreign": report.unusable.iter().map(|segment| segment.sequence).collect::<Vec<u64>>(),
        "segments_unusable": report.unusable.iter().map(unusable).collect::<Vec<Value>>(),
        "damage": report.stretches.iter().map(stretch).collect::<Vec<Value>>(),
        "quarantine": report.quarantine.iter().map(file).collect::<Vec<Value>>(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use deliver::disk_queue::{DamageKind, DiskQueue, DiskQueuePlan};
    use deliver::queue::{Appended, Block, Queue as _};
    use model::CopyOutcome;

    use super::*;
    use sys::disk::Folder;

    #[test]
    fn control_characters_in_names_of_queues_and_files_are_replaced() {
        let report = Report { name: "a\x1bb".into(), ..Report::default() };
        let found = text(&report) + &file_text("c\x1bd", "e\x1bf");
        for name in ["a\u{fffd}b", "c\u{fffd}d", "e\u{fffd}f"] {
            assert!(found.contains(name) && !found.contains('\x1b'), "{found:?}");
        }
    }

    /// Appends, settles and syncs, so that segments come and go.
    fn use_queue(folder: &Folder, blocks: u64) {
        let plan = DiskQueuePlan { segment_bytes: 8192, cursor_window_ms: 0, ..DiskQueuePlan::default() };
        let opened = DiskQueue::open(folder.clone(), plan, Arc::default(), 7, Clock::now());
        let (mut queue, _) = opened.expect("an empty folder");
        for number in 0..blocks {
            let text = format!("series.{number} 1 {}\n", "7".repeat((number % 1500) as usize));
            let block = Block::lines(text.into_bytes(), 1, Clock::mono_ns());
            assert_eq!(queue.append(block, Clock::now()), Appended::Kept);
            if number > 50 {
                queue.pop(Clock::now()).expect("fifty wait").settle(CopyOutcome::Delivered);
            }
            if number % 8 == 0
                && let Some(job) = queue.begin_last_sync()
            {
                assert_eq!(queue.on_synced(job.perform(folder)).error, None);
            }
        }
    }

    #[test]
    fn a_queue_in_use_is_sound_whenever_one_looks() {
        let held = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(held.path().join("q")).expect("made");
        let queue = Queue { name: "q".into(), path: folder.path().to_owned() };
        let ended = Arc::new(AtomicBool::new(false));
        let writer = std::thread::spawn({
            let ended = Arc::clone(&ended);
            move || {
                use_queue(&folder, 500);
                ended.store(true, Relaxed);
            }
        });
        let mut walks = 0;
        while walks < 5 || !ended.load(Relaxed) {
            let report = walk_once(&queue, true).expect("it can be read");
            assert!(report.is_sound() && !report.cursor_lost, "walk {walks}: {}", text(&report));
            walks += 1;
        }
        writer.join().expect("the queue is well");
        let report = walk_once(&queue, false).expect("it can be read");
        assert!(report.is_sound() && report.waiting_copies >= 51, "{}", text(&report));
    }

    fn range(segment: u64, from: u64, to: u64, kind: DamageKind) -> DamagedRange {
        DamagedRange { segment, from, to, kind }
    }

    fn report() -> Report {
        let segment = |sequence, bytes| Segment { sequence, bytes, ..Segment::default() };
        Report {
            name: "carbon".into(),
            segments: vec![segment(3, 64 << 20), segment(4, 1 << 20)],
            waiting_blocks: 18_432,
            waiting_copies: 1_234_567,
            ..Report::default()
        }
    }

    #[test]
    fn a_sound_queue_is_two_lines() {
        let want = "\
carbon: sound
  65 MiB in 2 segments; 1234567 copies queued, in 18432 whole blocks
";
        assert_eq!(text(&report()), want);
        let young = Report { written_from: Some(99), ..report() };
        assert_eq!(text(&young), format!("{want}  its end is being written\n"));
    }

    /// What a full disk leaves when the process ends before the next write takes its place.
    #[test]
    fn an_end_that_was_not_finished_is_no_damage() {
        let held = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(held.path().join("q")).expect("made");
        let queue = Queue { name: "q".into(), path: folder.path().to_owned() };
        use_queue(&folder, 60);
        let sound = walk_once(&queue, false).expect("it can be read");
        assert!(sound.unfinished.is_empty());
        let last = sound.segments.last().expect("there are some");
        let path = folder.path().join(format!("{:016x}.segment", last.sequence));
        for bytes in [&b"app"[..], &[0; 300]] {
            let mut file = std::fs::OpenOptions::new().append(true).open(&path).expect("it is there");
            std::io::Write::write_all(&mut file, bytes).expect("written");
            let report = walk_once(&queue, false).expect("it can be read");
            assert!(report.is_sound(), "{}", text(&report));
            assert_eq!(report.waiting_copies, sound.waiting_copies);
            assert!(text(&report).contains("ends with an incomplete write of "), "{}", text(&report));
            assert_eq!(document(&report)["unfinished"][0]["segment"], json!(last.sequence));
        }
        // One byte of a record that waits is something else.
        let mut bytes = std::fs::read(&path).expect("readable");
        let inside = last.bytes as usize - 200;
        bytes[inside] ^= 1;
        std::fs::write(&path, bytes).expect("written");
        let report = walk_once(&queue, false).expect("it can be read");
        assert!(!report.is_sound() && report.lost_copies > 0, "{}", text(&report));
    }

    #[test]
    fn damage_is_reported_with_its_place_its_reason_and_its_cost_in_eighty_columns() {
        let lost = |copies, copy_bytes| Totals { copies, copy_bytes, ..Totals::default() };
        let mut report = Report {
            cursor_lost: true,
            unusable: [QuarantineReason::Foreign, QuarantineReason::Misnamed(3), QuarantineReason::Displaced]
                .map(|why| QuarantinedSegment { sequence: 9, bytes: 4096, why })
                .to_vec(),
            unreadable: 1,
            quarantine: Vec::new(),
            ..report()
        };
        for stretch in [
            Stretch { ranges: vec![range(3, 80, 4_000_000_000, DamageKind::Body)], lost: lost(1478, 65_571) },
            Stretch {
                ranges: vec![
                    range(3, 67_000_000, 67_108_864, DamageKind::NotARecord),
                    range(4, 80, 4096, DamageKind::Unreadable),
                ],
                lost: lost(1, 44),
            },
            Stretch { ranges: vec![range(4, 5000, 5099, DamageKind::NotARecord)], lost: lost(0, 0) },
            Stretch { ranges: Vec::new(), lost: lost(5, 200) },
        ] {
            report.damage(&stretch);
        }
        let want = "\
carbon: damaged
  65 MiB in 2 segments; 1234567 copies queued, in 18432 whole blocks
  0000000000000003.segment, bytes 80 to 4000000000:
    the record's header is whole, but its block does not match its checksum
    lost: 1478 copies, 64 KiB
  0000000000000003.segment, bytes 67000000 to 67108864:
    these bytes are no record: a header was damaged or never written
  0000000000000004.segment, bytes 80 to 4096:
    the disk could not read here
    lost: 1 copy, 44 B
  0000000000000004.segment, bytes 5000 to 5099:
    these bytes are no record: a header was damaged or never written
    it contains no queued record
  a segment, or the end of one, is missing
    lost: 5 copies, 200 B
  0000000000000009.segment, 4 KiB:
    not of this queue
  0000000000000009.segment, 4 KiB:
    its header is that of 0000000000000003.segment
  0000000000000009.segment, 4 KiB:
    another segment is where its records belong
  1 segment cannot be opened
  in total 4 damaged ranges, 3.7 GiB; 1484 copies of the queue cannot be read
  no cursor: all records count as queued, and some may be delivered again
";
        let found = text(&report);
        assert_eq!(found, want, "\n{found}");
        assert!(found.lines().all(|line| line.chars().count() <= 80));
        let document = document(&report);
        assert_eq!((&document["sound"], &document["copies_lost"]), (&json!(false), &json!(1484)));
        let first = json!([{ "segment": 3, "from": 80, "to": 4_000_000_000_u64, "kind": "body" }]);
        assert_eq!(document["damage"][0]["ranges"], first);
    }
}
