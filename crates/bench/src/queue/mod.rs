//! `staunch bench queue`: how fast a queue on disk accepts and syncs records, beside a bare loop.
//!
//! Path of a packet: a block made here -> [`DaemonQueue::append`], as the shard calls it -> a segment -> the thread of
//! [`DaemonQueue::sync_until_closed`]. The bare loop appends the same bytes to one file and syncs it at the same interval, without
//! a queue.
//! Not here: sockets and senders. Nothing is read back, except to count the records at the end.

mod start;
#[cfg(test)]
mod test_queue;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use deliver::disk_queue::{DiskQueue, DiskQueuePlan};
use deliver::plan::{QueueLimits, WhenFull};
use deliver::queue::Block;
use model::{Now, OutputAccount, SECOND_NS};

use crate::ground::{RUNS_MAX, Talk, command_line, warning_of_load};
use crate::machine::Machine;
use crate::report::{Check, Report, Row, ScenarioReport, figure};
use crate::rounds::rounds;
use crate::{BenchError, failed};
use sys::clock::Clock;
use sys::disk::Folder;

/// Bytes of a record, and of a block of them.
const RECORD_BYTES: usize = 100;
const BLOCK_BYTES: usize = 64 << 10;

/// The promised megabytes per second on a disk with 1,000 MB/s of sequential writes; in proportion on a slower disk.
const ACCEPTED_MIN: f64 = 400.0;
const SAFE_MIN: f64 = 150.0;
const DISK_OF_THE_PROMISE: f64 = 1000.0;

/// The promise as a share of the bare loop's speed.
const TIMES_BARE_MIN: f64 = 0.4;

/// Two outputs must be as fast as one per written byte. The difference to 1 allows for noise.
const TWO_TIMES_ONE_MIN: f64 = 0.95;

/// The interval between two checks whether all records are safe.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Arguments of `staunch bench queue`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A folder on the disk to measure: where `data_dir` will be
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    pub folder: PathBuf,
    /// Runs of each
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=RUNS_MAX))]
    pub runs: u64,
    /// Megabytes of a run, shared by its outputs
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub megabytes: u64,
    /// Commit window in milliseconds of the queue's `sync_window` and of the bare loop
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(5..=20))]
    pub window: u64,
    /// Gigabytes that wait on disk when a daemon is started on them; 0 leaves that out
    #[arg(long, default_value_t = 10.0, value_parser = gigabytes, value_name = "N")]
    pub start_gigabytes: f64,
}

/// Most gigabytes that a queue is filled with.
const START_GIGABYTES_MAX: f64 = 900.0;

fn gigabytes(text: &str) -> Result<f64, String> {
    let gigabytes = text.parse().ok().filter(|gigabytes| (0.0..=START_GIGABYTES_MAX).contains(gigabytes));
    gigabytes.ok_or_else(|| format!("must be a number from 0 to {START_GIGABYTES_MAX}"))
}

/// The contestants, in the order of the report.
#[derive(Clone, Copy)]
enum Entrant {
    /// The disk itself: one sync at the end.
    Disk,
    BareLoop,
    OneOutput,
    TwoOutputs,
}

/// One run, in megabytes (of 1,000,000 bytes) a second.
#[derive(Clone, Copy, Debug, Default)]
struct Speeds {
    /// Until the last block was accepted.
    accepted: f64,
    /// Until all blocks were safe.
    safe: f64,
}

/// A queue on disk as the daemon uses it. The binary implements it, so that this crate does not depend on the daemon.
pub trait DaemonQueue: Send + Sync {
    /// Appends a block as the shard does. False when it was dropped.
    fn append(&self, block: Block, now: Now) -> bool;

    /// Syncs appended blocks until [`close`](DaemonQueue::close), as the daemon's thread does.
    fn sync_until_closed(&self);

    /// True when no block is left to be synced. A block whose sync failed counts as synced; the number of records then
    /// shows the loss.
    fn is_safe(&self) -> bool;

    /// Ends [`sync_until_closed`](DaemonQueue::sync_until_closed).
    fn close(&self, now: Now);

    /// Syncs all appended blocks.
    fn sync(&self);

    /// Records without an outcome.
    fn copies_queued(&self) -> u64;
}

/// Makes a daemon's queue from an open queue in a folder.
pub type Wrap<'a> = &'a (dyn Fn(DiskQueue<Folder>, Folder) -> Box<dyn DaemonQueue> + Sync);

/// Runs the benchmark. `talk` gets one line of progress at a time.
///
/// # Errors
/// When the folder cannot be written, or a queue has lost records.
pub fn run(args: &Args, wrap: Wrap<'_>, talk: Talk<'_>) -> Result<Report, BenchError> {
    let machine = Machine::look();
    let folder = args.folder.join(format!("staunch-bench-queue-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(failed("make a folder on the disk to measure"))?;
    let scenarios = measure(args, &folder, wrap, talk).and_then(|append| {
        let bytes = (args.start_gigabytes * 1e9) as u64;
        let start =
            (bytes > 0).then(|| start::measure((bytes, args.runs), &folder, wrap, talk)).transpose()?;
        Ok((append, start))
    });
    // The first error is returned. A folder that is left behind is as large as a run.
    let removed = fs::remove_dir_all(&folder).map_err(failed("remove its folder"));
    let (append, start) = scenarios?;
    removed?;
    let mut warnings: Vec<String> = warning_of_load(&machine).into_iter().collect();
    let mut scenarios = vec![append];
    match start {
        Some(Ok(start)) => scenarios.push(start),
        Some(Err(warning)) => warnings.push(warning),
        None => {}
    }
    let mut report = Report {
        bench: "queue",
        version: env!("CARGO_PKG_VERSION").into(),
        machine,
        command: command_line(),
        method: format!(
            "one thread appends, another syncs; megabytes are 1,000,000 bytes of records; the bare loop appends the \
             same blocks to one file and calls fdatasync after each {} ms of appending; {} runs of each, in turn",
            args.window, args.runs
        ),
        rival: String::new(),
        scenarios,
        warnings,
    };
    report.warn_of_noise();
    Ok(report)
}

fn measure(args: &Args, folder: &Path, wrap: Wrap<'_>, talk: Talk<'_>) -> Result<ScenarioReport, BenchError> {
    let blocks = (args.megabytes * 1_000_000).div_ceil(BLOCK_BYTES as u64);
    // Each of two outputs takes half. Many disks of virtual machines become slower after a while, and a run with twice
    // the data would measure that.
    let blocks_of_two = blocks.div_ceil(2);
    let block = block();
    let file = folder.join("file");
    let written = |window_ns| {
        let safe = bare_loop(&file, &block, blocks, window_ns).map_err(failed("write to the disk"))?;
        Ok(Speeds { accepted: safe, safe })
    };
    let entrants = [Entrant::Disk, Entrant::BareLoop, Entrant::OneOutput, Entrant::TwoOutputs];
    let runs = rounds(talk, "queue", args.runs, &entrants, |entrant, _round| match entrant {
        Entrant::Disk => written(u64::MAX),
        Entrant::BareLoop => written(args.window * (SECOND_NS / 1000)),
        Entrant::OneOutput => queue_run((folder, wrap), &block, blocks, args.window, 1),
        Entrant::TwoOutputs => queue_run((folder, wrap), &block, blocks_of_two, args.window, 2),
    })?;
    let speed = |who, what, runs: Vec<f64>| Row { who, what, unit: "MB/s", runs };
    let ratio = |who, what, runs: &[f64], by: &[f64]| {
        let runs = runs.iter().zip(by).map(|(run, by)| run / by).collect();
        Row { who, what, unit: "", runs }
    };
    let accepted = |at: usize| runs[at].iter().map(|run| run.accepted).collect::<Vec<f64>>();
    let safe = |at: usize| runs[at].iter().map(|run| run.safe).collect::<Vec<f64>>();
    let rows = vec![
        speed("disk", "written, one sync", safe(0)),
        speed("bare loop", "written and synced", safe(1)),
        speed(ONE, "accepted", accepted(2)),
        speed(ONE, "safe", safe(2)),
        ratio(ONE, TIMES_BARE, &safe(2), &safe(1)),
        speed(TWO, "accepted, both", accepted(3)),
        speed(TWO, "safe, both", safe(3)),
        ratio(TWO, TIMES_ONE, &safe(3), &safe(2)),
    ];
    let what = format!(
        "records of {RECORD_BYTES} bytes in blocks of 64 KiB, {} MB in a run, two outputs half each",
        figure(args.megabytes as f64)
    );
    Ok(ScenarioReport { name: "append", what, checks: checks(&rows), rows })
}

const ONE: &str = "one output";
const TWO: &str = "two outputs";
const TIMES_BARE: &str = "times the bare loop";
const TIMES_ONE: &str = "times one output";

fn checks(rows: &[Row]) -> Vec<Check> {
    let median = |who: &str, what: &str| {
        let row = rows.iter().find(|row| row.who == who && row.what == what);
        row.map_or(f64::NAN, Row::median)
    };
    let share = (median("disk", "written, one sync") / DISK_OF_THE_PROMISE).min(1.0);
    vec![
        Check::at_least("MB/s accepted on this disk:", median(ONE, "accepted"), ACCEPTED_MIN * share),
        Check::at_least("MB/s safe on this disk:", median(ONE, "safe"), SAFE_MIN * share),
        Check::at_least("safe, times the bare loop:", median(ONE, TIMES_BARE), TIMES_BARE_MIN),
        Check::at_least("safe with two outputs, times one:", median(TWO, TIMES_ONE), TWO_TIMES_ONE_MIN),
    ]
}

/// A block of different records, as lines.
pub(crate) fn block() -> Block {
    let mut bytes = Vec::with_capacity(BLOCK_BYTES);
    let mut copies = 0;
    while bytes.len() + RECORD_BYTES <= BLOCK_BYTES {
        let head = format!("some.series.of.a.service.{copies:08} 3.14159265 1700000000 ");
        bytes.extend_from_slice(head.as_bytes());
        bytes.resize((copies as usize + 1) * RECORD_BYTES - 1, b'x');
        bytes.push(b'\n');
        copies += 1;
    }
    Block::lines(bytes, copies, 0)
}

fn megabytes_a_second(bytes: u64, ns: u64) -> f64 {
    bytes as f64 / 1e6 / (ns.max(1) as f64 / SECOND_NS as f64)
}

/// Appends all blocks to one file, with a sync after each `window_ns` and at the end.
fn bare_loop(path: &Path, block: &Block, blocks: u64, window_ns: u64) -> io::Result<f64> {
    let mut file = File::create(path)?;
    let start_ns = Clock::mono_ns();
    let mut synced_ns = start_ns;
    for _block in 0..blocks {
        file.write_all(&block.bytes)?;
        if Clock::mono_ns() - synced_ns >= window_ns {
            file.sync_data()?;
            synced_ns = Clock::mono_ns();
        }
    }
    file.sync_data()?;
    let passed_ns = Clock::mono_ns() - start_ns;
    drop(file);
    fs::remove_file(path)?;
    Ok(megabytes_a_second(blocks * block.bytes.len() as u64, passed_ns))
}

/// Appends all blocks to each of `outputs` queues, and waits until all are safe.
fn queue_run(
    (folder, wrap): (&Path, Wrap<'_>),
    block: &Block,
    blocks: u64,
    window_ms: u64,
    outputs: usize,
) -> Result<Speeds, BenchError> {
    let places: Vec<PathBuf> = (0..outputs).map(|at| folder.join(format!("queue-{at}"))).collect();
    let outlets = places.iter().map(|place| open(place, window_ms, wrap)).collect::<Result<Vec<_>, _>>()?;
    let speeds = thread::scope(|threads| {
        for outlet in &outlets {
            threads.spawn(|| outlet.sync_until_closed());
        }
        let bytes = blocks * block.bytes.len() as u64 * outputs as u64;
        let start_ns = Clock::mono_ns();
        let mut dropped = 0;
        for _block in 0..blocks {
            let now = Clock::now();
            for outlet in &outlets {
                dropped += u64::from(!outlet.append(block.clone(), now));
            }
        }
        let accepted_ns = Clock::mono_ns() - start_ns;
        while dropped == 0 && outlets.iter().any(|outlet| !outlet.is_safe()) {
            thread::sleep(LOOK_EVERY);
        }
        let safe_ns = Clock::mono_ns() - start_ns;
        for outlet in &outlets {
            outlet.close(Clock::now());
        }
        let (accepted, safe) = (megabytes_a_second(bytes, accepted_ns), megabytes_a_second(bytes, safe_ns));
        (dropped == 0).then_some(Speeds { accepted, safe })
    });
    drop(outlets);
    let speeds = speeds.ok_or_else(|| broken("a block was not taken: look at the room on the disk"))?;
    for place in &places {
        let outlet = open(place, window_ms, wrap)?;
        let found = outlet.copies_queued();
        drop(outlet);
        fs::remove_dir_all(place).map_err(failed("remove a queue"))?;
        if found != blocks * u64::from(block.copies) {
            return Err(broken(&format!("{found} records came back, which is not what was taken")));
        }
    }
    Ok(speeds)
}

pub(crate) fn broken(why: &str) -> BenchError {
    BenchError::Counts { server: "the queue on disk", why: why.to_owned() }
}

pub(crate) fn open(place: &Path, window_ms: u64, wrap: Wrap<'_>) -> Result<Box<dyn DaemonQueue>, BenchError> {
    let opened = Folder::open(place.to_owned()).map_err(failed("make a queue's folder"))?;
    let limits =
        QueueLimits { bytes_max: u64::MAX / 2, when_full: WhenFull::DropNewest, ..QueueLimits::default() };
    let plan = DiskQueuePlan::within(limits, window_ms);
    let account = Arc::<OutputAccount>::default();
    let queue = DiskQueue::open(opened.clone(), plan, account, sys::random_seed(), Clock::now());
    let (queue, _found) = queue.map_err(|error| broken(&error.to_string()))?;
    Ok(wrap(queue, opened))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn arguments_have_defaults_and_bounds() {
        let args = parse::<Args>("").expect("all have defaults");
        assert_eq!((args.runs, args.megabytes, args.window, args.start_gigabytes), (5, 1000, 10, 10.0));
        for bad in [
            "--start-gigabytes=-1",
            "--start-gigabytes 901",
            "--start-gigabytes much",
            "--runs 0",
            "--megabytes 0",
            "--window 4",
            "--window 21",
        ] {
            assert!(parse::<Args>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_small_run_measures_everything_and_leaves_nothing_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let args =
            Args { folder: folder.path().into(), runs: 2, megabytes: 1, window: 5, start_gigabytes: 0.0 };
        let report = run(&args, &test_queue::wrap, &mut |_line| {}).expect("it runs");
        let rows = &report.scenarios[0].rows;
        assert_eq!(rows.len(), 8);
        assert!(rows.iter().all(|row| row.runs.len() == 2 && row.runs.iter().all(|run| *run > 0.0)));
        assert_eq!(report.scenarios[0].checks.len(), 4);
        assert!(report.to_string().lines().all(|line| line.chars().count() <= 80));
        assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 0);
    }

    #[test]
    fn the_promise_is_for_a_disk_of_a_gigabyte_a_second() {
        let row = |who, what, run| Row { who, what, unit: "", runs: vec![run] };
        let rows = |disk| {
            [
                row("disk", "written, one sync", disk),
                row(ONE, "accepted", 300.0),
                row(ONE, "safe", 100.0),
                row(ONE, TIMES_BARE, 0.5),
                row(TWO, TIMES_ONE, 1.0),
            ]
        };
        let met = |disk| checks(&rows(disk)).iter().map(|check| check.met).collect::<Vec<_>>();
        assert_eq!(met(500.0), [true; 4]);
        assert_eq!(met(2000.0), [false, false, true, true]);
    }
}
