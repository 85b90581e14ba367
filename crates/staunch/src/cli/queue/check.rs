//! `staunch queue check`: every byte of a queue, and what damage costs.

use std::process::ExitCode;

use deliver::disk_queue::Totals;
use deliver::disk_queue::inspect::{
    Begin, CursorPlace, DamagedRange, FoundRecord, Inspection, Step, Stretch,
};
use deliver::disk_queue::salvage::{Quarantined, quarantined};
use model::SECOND_NS;
use serde_json::{Value, json};

use super::place::{Place, Queue};
use crate::cli::{FAILED, MISTAKES};
use crate::clock::Clock;
use crate::talk;

/// Damaged stretches that are listed; all are counted.
const STRETCHES_SHOWN: usize = 1000;

/// Files of the quarantine that the text lists.
const FILES_SHOWN: usize = 10;

/// How often a long walk says where it is.
const PROGRESS_NS: u64 = 2 * SECOND_NS;

/// What is in one segment.
#[derive(Clone, Debug, Default, PartialEq)]
struct Segment {
    sequence: u64,
    bytes: u64,
    records: u64,
    copies: u64,
    record_bytes: u64,
    /// Unix nanoseconds of its oldest and youngest record.
    made_ns: Option<(u64, u64)>,
}

/// What was found in one queue.
#[derive(Debug, Default)]
struct Report {
    name: String,
    segments: Vec<Segment>,
    cursor: Option<CursorPlace>,
    cursor_lost: bool,
    /// Segments that the disk does not open, and that are not the queue's.
    unreadable: u64,
    foreign: Vec<(u64, u64)>,
    waiting_records: u64,
    waiting_copies: u64,
    stretches: Vec<Stretch>,
    ranges: u64,
    damaged_bytes: u64,
    lost_copies: u64,
    written_from: Option<u64>,
    quarantine: Vec<Quarantined>,
}

impl Report {
    fn is_sound(&self) -> bool {
        self.ranges == 0 && self.lost_copies == 0 && self.unreadable == 0 && self.foreign.is_empty()
    }

    fn record(&mut self, record: &FoundRecord<'_>) {
        if record.waits {
            self.waiting_records += 1;
            self.waiting_copies += u64::from(record.block.copies);
        }
        if let Some(segment) = self.segments.iter_mut().rfind(|segment| segment.sequence == record.segment) {
            segment.records += 1;
            segment.copies += u64::from(record.block.copies);
            segment.record_bytes += record.disk_bytes;
            let made = record.made_wall_ns;
            let (first, last) = segment.made_ns.unwrap_or((made, made));
            segment.made_ns = Some((first.min(made), last.max(made)));
        }
    }

    fn damage(&mut self, stretch: &Stretch) {
        self.ranges += stretch.ranges.len() as u64;
        self.damaged_bytes += stretch.ranges.iter().map(|range| range.to - range.from).sum::<u64>();
        self.lost_copies += stretch.lost.copies;
        if self.stretches.len() < STRETCHES_SHOWN {
            self.stretches.push(stretch.clone());
        }
    }
}

/// `staunch queue check`
pub(super) fn check(place: &mut Place, names: &[String], as_json: bool) -> anyhow::Result<ExitCode> {
    let queues = place.pick(names)?;
    let (mut reports, mut failed) = (Vec::new(), false);
    for queue in &queues {
        match walk(place, queue) {
            Ok(report) => reports.push(report),
            Err(error) => {
                failed = true;
                talk::say(&format!("staunch: {error:#}\n"));
            }
        }
    }
    if as_json {
        let queues: Vec<Value> = reports.iter().map(document).collect();
        let mut text = serde_json::to_string_pretty(&json!({ "queues": queues }))?;
        text.push('\n');
        talk::data(text.as_bytes())?;
    } else if queues.is_empty() {
        talk::say(&format!("staunch: nothing is queued on disk in {}\n", place.data_dir.display()));
    } else {
        talk::data(reports.iter().map(text).collect::<String>().as_bytes())?;
    }
    Ok(match (failed, reports.iter().all(Report::is_sound)) {
        (true, _) => ExitCode::from(FAILED),
        (false, false) => ExitCode::from(MISTAKES),
        (false, true) => ExitCode::SUCCESS,
    })
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
        foreign: inspection.foreign().to_vec(),
        quarantine: quarantined(&inspection, &disk),
        ..Report::default()
    };
    let all: u64 = inspection.segments().map(|segment| segment.1).sum();
    let (mut read, mut told_ns) = (0, Clock::mono_ns());
    let visit = &mut |step: Step<'_>| -> Result<(), ()> {
        match step {
            Step::Record(record) => {
                report.record(&record);
                read += record.disk_bytes;
            }
            Step::Damage(stretch) => report.damage(stretch),
            Step::BeingWritten(from) => report.written_from = Some(from),
        }
        let now_ns = Clock::mono_ns();
        if now_ns.saturating_sub(told_ns) > PROGRESS_NS {
            told_ns = now_ns;
            let (read, all) = (talk::bytes(read), talk::bytes(all));
            talk::say(&format!("staunch: {}: {read} of {all}\n", queue.name));
        }
        Ok(())
    };
    let walked = inspection.walk(&disk, Begin::First, visit);
    debug_assert!(walked.is_ok(), "nothing in it ends the walk");
    Ok(report)
}

fn plural(count: u64, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

fn copies(count: u64) -> String {
    if count == 1 { "1 copy".into() } else { format!("{count} copies") }
}

fn text(report: &Report) -> String {
    let verdict = if report.is_sound() { "sound" } else { "damaged" };
    let bytes: u64 = report.segments.iter().map(|segment| segment.bytes).sum();
    let mut text = format!(
        "{}: {verdict}\n  {} in {}; {} in {} wait\n",
        report.name,
        talk::bytes(bytes),
        plural(report.segments.len() as u64, "segment"),
        copies(report.waiting_copies),
        plural(report.waiting_records, "whole record"),
    );
    for stretch in &report.stretches {
        text.push_str(&stretch_text(stretch));
    }
    if report.stretches.len() == STRETCHES_SHOWN {
        text.push_str("  … and more, which are counted below\n");
    }
    for (sequence, bytes) in &report.foreign {
        text.push_str(&format!("  {sequence:016x}.segment, {}: not of this queue\n", talk::bytes(*bytes)));
    }
    if report.unreadable > 0 {
        text.push_str(&format!("  {} cannot be opened\n", plural(report.unreadable, "segment")));
    }
    if !report.is_sound() {
        text.push_str(&format!(
            "  in all {}, {}; {} that waited cannot be read\n",
            plural(report.ranges, "damaged range"),
            talk::bytes(report.damaged_bytes),
            copies(report.lost_copies),
        ));
    }
    if report.cursor_lost {
        text.push_str("  no cursor: all of it waits, and some of that may have been delivered before\n");
    }
    if report.written_from.is_some() {
        text.push_str("  its end is being written\n");
    }
    if !report.quarantine.is_empty() {
        text.push_str(&aside_text(report));
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
        text.push_str("  a segment is missing\n");
    }
    let cost = match stretch.lost.copies {
        0 => "    nothing that waits was in it\n".to_owned(),
        lost => format!("    {} of {} were in it\n", copies(lost), talk::bytes(stretch.lost.copy_bytes)),
    };
    text + &cost
}

fn aside_text(report: &Report) -> String {
    let bytes: u64 = report.quarantine.iter().map(|file| file.bytes).sum();
    let count = plural(report.quarantine.len() as u64, "file");
    let mut text = format!("  kept aside from before: {count}, {}\n", talk::bytes(bytes));
    for file in report.quarantine.iter().take(FILES_SHOWN) {
        text.push_str(&format!("    {}\n      {}\n", file.name, file.reason));
    }
    if report.quarantine.len() > FILES_SHOWN {
        text.push_str("    …\n");
    }
    text
}

fn totals(totals: Totals) -> Value {
    json!({ "records": totals.records, "copies": totals.copies, "bytes": totals.copy_bytes })
}

fn document(report: &Report) -> Value {
    let ms = |ns: u64| ns / 1_000_000;
    let segment = |segment: &Segment| {
        json!({
            "segment": segment.sequence,
            "bytes": segment.bytes,
            "records": segment.records,
            "copies": segment.copies,
            "record_bytes": segment.record_bytes,
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
    let file = |file: &Quarantined| json!({ "name": file.name, "bytes": file.bytes, "reason": file.reason });
    json!({
        "name": report.name,
        "sound": report.is_sound(),
        "records_waiting": report.waiting_records,
        "copies_waiting": report.waiting_copies,
        "copies_lost": report.lost_copies,
        "damaged_ranges": report.ranges,
        "damaged_bytes": report.damaged_bytes,
        "being_written_from": report.written_from,
        "cursor": cursor,
        "segments": report.segments.iter().map(segment).collect::<Vec<Value>>(),
        "segments_unreadable": report.unreadable,
        "segments_foreign": report.foreign.iter().map(|foreign| foreign.0).collect::<Vec<u64>>(),
        "damage": report.stretches.iter().map(stretch).collect::<Vec<Value>>(),
        "quarantine": report.quarantine.iter().map(file).collect::<Vec<Value>>(),
    })
}
