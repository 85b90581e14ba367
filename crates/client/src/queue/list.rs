//! `staunch queue ls`: one row for each queue on disk.

use std::process::ExitCode;

use deliver::disk_queue::QuarantinedSegment;
use deliver::disk_queue::inspect::Inspection;
use deliver::disk_queue::salvage::quarantined;
use model::SECOND_NS;
use serde_json::{Value, json};

use super::counts::copies;
use super::document::QueueRow;
use super::place::{Place, Queue};
use crate::exit_code::FAILED;
use crate::owner::Owner;
use crate::stdio::{self, shown};
use crate::top::figure;
use sys::clock::Clock;

/// Segments of a queue that are named below the table.
const MISPLACED_SHOWN: usize = 10;

/// Whose a queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A daemon writes it.
    InUse(Owner),
    /// No daemon runs.
    Stopped,
    /// No output has it.
    Orphan,
}

impl State {
    fn text(self) -> String {
        match self {
            State::InUse(owner) => format!("in use by {}", owner.text()),
            State::Stopped => "stopped".into(),
            State::Orphan => "orphan".into(),
        }
    }

    fn word(self) -> &'static str {
        match self {
            State::InUse(_) => "in_use",
            State::Stopped => "stopped",
            State::Orphan => "orphan",
        }
    }
}

/// One queue.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    name: String,
    path: String,
    state: State,
    copies_queued: u64,
    queued_bytes: u64,
    oldest_s: Option<f64>,
    segments: usize,
    bytes: u64,
    quarantined: usize,
    quarantined_bytes: u64,
    /// Of those that wait, in files that are gone, as far as a daemon says so.
    records_missing: u64,
    /// A daemon has it and cannot look into it.
    busy: bool,
    /// Segments that are not where their records belong, and that the next start moves to quarantine.
    misplaced: Vec<QuarantinedSegment>,
}

/// `staunch queue ls`
pub(super) fn list(place: &Place, in_use: Option<&[QueueRow]>, as_json: bool) -> anyhow::Result<ExitCode> {
    let (mut rows, mut failed) = (Vec::new(), false);
    for queue in place.queues()? {
        match row_of(place, &queue, in_use) {
            Ok(row) => rows.push(row),
            Err(error) => {
                failed = true;
                stdio::say(&format!("staunch: {error:#}\n"));
            }
        }
    }
    if as_json {
        let mut text = serde_json::to_string_pretty(&document(place, &rows))?;
        text.push('\n');
        stdio::data(text.as_bytes())?;
    } else if rows.is_empty() && !failed {
        stdio::say(&format!("staunch: nothing is queued on disk in {}\n", place.data_dir.display()));
    } else {
        stdio::data(table(&rows).as_bytes())?;
    }
    if !as_json {
        stdio::say(&missing_text(in_use.unwrap_or_default()));
        stdio::say(&busy_text(in_use.unwrap_or_default()));
        stdio::say(&rows.iter().map(misplaced_text).collect::<String>());
    }
    Ok(if failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

fn row_of(place: &Place, queue: &Queue, in_use: Option<&[QueueRow]>) -> anyhow::Result<Row> {
    let disk = queue.folder()?;
    let inspection = Inspection::of(&disk, place.owner.is_some())
        .map_err(|error| anyhow::anyhow!("cannot read {}: {error}", queue.path.display()))?;
    let quarantine = quarantined(&inspection, &disk);
    let waiting = inspection.waiting();
    let oldest = inspection.oldest_wall_ns(&disk);
    let age_s = |made_ns: u64| Clock::now().wall_ns.saturating_sub(made_ns) as f64 / SECOND_NS as f64;
    let listed = in_use.and_then(|queues| queues.iter().find(|listed| listed.name == queue.name));
    let (copies_queued, queued_bytes, oldest_s) = match listed {
        Some(listed) => (listed.copies, listed.bytes, listed.oldest_s),
        None => (waiting.copies, waiting.disk_bytes, oldest.map(age_s)),
    };
    Ok(Row {
        misplaced: inspection.recovery().misplaced,
        name: queue.name.clone(),
        path: queue.path.display().to_string(),
        state: state(place, &queue.name, in_use.map(|_| listed.is_some())),
        copies_queued,
        queued_bytes,
        oldest_s,
        segments: inspection.segments().count(),
        bytes: inspection.segments().map(|segment| segment.1).sum(),
        quarantined: quarantine.len(),
        quarantined_bytes: quarantine.iter().map(|file| file.bytes).sum(),
        records_missing: listed.and_then(|listed| listed.disk).map_or(0, |disk| disk.records_missing),
        busy: listed.is_some_and(|listed| listed.busy),
    })
}

/// `in_use`: whether the daemon says that it has the queue.
fn state(place: &Place, name: &str, in_use: Option<bool>) -> State {
    let unknown = place.plan.is_some() && place.output(name).is_none();
    match (place.owner, in_use) {
        (Some(owner), Some(true)) => State::InUse(owner),
        (Some(_), Some(false)) => State::Orphan,
        _ if unknown => State::Orphan,
        (Some(owner), None) => State::InUse(owner),
        (None, _) => State::Stopped,
    }
}

fn table(rows: &[Row]) -> String {
    let state_width = rows.iter().map(|row| row.state.text().len()).max().unwrap_or(0).max("state".len());
    // Names are whole, however wide that is: the other commands take nothing else.
    let name_width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).max("queue".len());
    // One space between figures: the table has 80 columns with names of up to 13.
    let line = |name: &str, state: &str, [queued, bytes, oldest, segments, quarantined]: [&str; 5]| {
        format!(
            "{name:<name_width$}  {state:<state_width$} {queued:>6} {bytes:>8} {oldest:>6} {segments:>8} \
             {quarantined:>11}\n"
        )
    };
    let mut text = line("queue", "state", ["queued", "bytes", "oldest", "segments", "quarantined"]);
    for row in rows {
        let oldest = row.oldest_s.map_or_else(|| "-".to_owned(), figure::age);
        let figures = [
            figure::count(row.copies_queued as f64),
            figure::bytes(row.queued_bytes),
            oldest,
            figure::count(row.segments as f64),
            figure::count(row.quarantined as f64),
        ];
        text.push_str(&line(&shown(&row.name), &row.state.text(), figures.each_ref().map(String::as_str)));
    }
    text
}

/// Which queues of a running daemon have records in files that are gone; their folders may be as well.
pub(super) fn missing_text(in_use: &[QueueRow]) -> String {
    let missing = |row: &QueueRow| row.disk.map_or(0, |disk| disk.records_missing);
    let gone = in_use.iter().filter(|row| missing(row) > 0);
    gone.map(|row| {
        let lost = copies(missing(row));
        let name = shown(&row.name);
        format!("staunch: {name}: {lost} in missing files; a stop of the daemon loses them\n")
    })
    .collect()
}

/// Which queues of a running daemon it could not look into.
pub(super) fn busy_text(in_use: &[QueueRow]) -> String {
    let line = |row: &QueueRow| {
        format!(
            "staunch: {}: the queue is busy, perhaps because its disk does not answer; some figures are old\n",
            shown(&row.name)
        )
    };
    in_use.iter().filter(|row| row.busy).map(line).collect()
}

/// Files of a queue that somebody copied or renamed.
fn misplaced_text(row: &Row) -> String {
    let name = shown(&row.name);
    let line = |segment: &QuarantinedSegment| {
        format!("staunch: {name}: {}; the next start moves it to quarantine\n", segment.text())
    };
    let mut text: String = row.misplaced.iter().take(MISPLACED_SHOWN).map(line).collect();
    if row.misplaced.len() > MISPLACED_SHOWN {
        let more = row.misplaced.len() - MISPLACED_SHOWN;
        text.push_str(&format!("staunch: {name}: and {more} more such segments\n"));
    }
    text
}

fn document(place: &Place, rows: &[Row]) -> Value {
    let owner = place.owner.map(|owner| json!({ "pid": owner.pid, "http": owner.http }));
    let rows: Vec<Value> = rows.iter().map(document_of).collect();
    json!({ "data_dir": place.data_dir.display().to_string(), "daemon": owner, "queues": rows })
}

fn document_of(row: &Row) -> Value {
    json!({
        "name": row.name,
        "path": row.path,
        "state": row.state.word(),
        "copies_queued": row.copies_queued,
        "queued_bytes": row.queued_bytes,
        "oldest_s": row.oldest_s,
        "segments": row.segments,
        "bytes": row.bytes,
        "quarantined": row.quarantined,
        "quarantined_bytes": row.quarantined_bytes,
        "records_missing": row.records_missing,
        "busy": row.busy,
        "segments_misplaced": row.misplaced.iter().map(|segment| segment.sequence).collect::<Vec<u64>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::document::DiskFigures;
    use super::*;

    fn row(name: &str, state: State, copies_queued: u64, queued_bytes: u64) -> Row {
        Row {
            name: name.into(),
            path: format!("d/queues/{name}"),
            state,
            copies_queued,
            queued_bytes,
            oldest_s: (copies_queued > 0).then_some(11_000.0),
            segments: 3,
            bytes: queued_bytes + 240,
            quarantined: 0,
            quarantined_bytes: 0,
            records_missing: 0,
            busy: false,
            misplaced: Vec::new(),
        }
    }

    #[test]
    fn the_table_fits_a_terminal() {
        let owner = Owner { pid: Some(4_194_304), http: None };
        let rows = [
            row("carbon", State::InUse(owner), 1_234_567, 64 << 20),
            row("web", State::Orphan, 0, 0),
            row("10.0.0.5:2003", State::Stopped, 12, 1200),
        ];
        let want = "\
queue          state                 queued    bytes oldest segments quarantined
carbon         in use by pid 4194304  1.23M 64.0 MiB     3h        3           0
web            orphan                     0      0 B      -        3           0
10.0.0.5:2003  stopped                   12 1.17 KiB     3h        3           0
";
        let found = table(&rows);
        assert_eq!(found, want, "\n{found}");
        assert!(found.lines().all(|line| line.chars().count() <= 80));
        // A longer one is whole: it is to be given to other commands.
        let long = "datacentre/eu-west-1.example.org:2003";
        assert!(table(&[row(long, State::Stopped, 12, 1200)]).contains(&format!("\n{long}  stopped ")));
    }

    #[test]
    fn control_characters_in_queue_names_are_replaced() {
        let name = "a\x1b[2Jb";
        let disk = Some(DiskFigures { records_missing: 1, ..DiskFigures::default() });
        let listed = [QueueRow { name: name.into(), busy: true, disk, ..QueueRow::default() }];
        let misplaced = QuarantinedSegment {
            sequence: 9,
            bytes: 500,
            why: deliver::disk_queue::QuarantineReason::Foreign,
        };
        let row = Row { misplaced: vec![misplaced; 11], ..row(name, State::Stopped, 1, 1) };
        let texts = [
            table(std::slice::from_ref(&row)),
            missing_text(&listed),
            busy_text(&listed),
            misplaced_text(&row),
        ];
        for text in texts {
            assert!(text.contains("a\u{fffd}[2Jb") && !text.contains('\x1b'), "{text:?}");
        }
        assert!(document_of(&row).to_string().contains("a\\u001b[2Jb"), "JSON has the name itself");
    }

    #[test]
    fn queues_that_the_daemon_cannot_look_into_are_named() {
        let listed = |name: &str, busy| QueueRow { name: name.into(), busy, ..QueueRow::default() };
        let text = busy_text(&[listed("carbon", true), listed("web", false)]);
        assert!(
            text.starts_with("staunch: carbon: the queue is busy") && text.lines().count() == 1,
            "{text}"
        );
    }

    #[test]
    fn segments_that_somebody_moved_are_named_up_to_ten() {
        use deliver::disk_queue::QuarantineReason;
        let segment =
            |sequence| QuarantinedSegment { sequence, bytes: 500, why: QuarantineReason::Misnamed(3) };
        for (count, lines) in [(0, 0), (1, 1), (10, 10), (11, 11), (99, 11)] {
            let misplaced = (9..9 + count).map(segment).collect();
            let text = misplaced_text(&Row { misplaced, ..row("carbon", State::Stopped, 0, 0) });
            assert_eq!(text.lines().count(), lines, "{text}");
        }
        let one = Row { misplaced: vec![segment(9)], ..row("carbon", State::Stopped, 0, 0) };
        let want = "staunch: carbon: 0000000000000009.segment: its header is that of 0000000000000003.segment; the next \
                    start moves it to quarantine\n";
        assert_eq!(misplaced_text(&one), want);
    }
}
