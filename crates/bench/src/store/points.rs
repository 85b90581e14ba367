//! What storing costs: a point of a known series, a new series, and a million series for minutes.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::node::{Node, files_in};
use super::originals::{CarbonCache, Originals};
use super::place::{FILE_AGE_S, now_s, removed, scenario_folder};
use super::traffic::{Names, send};
use crate::ground::Ground;
use crate::report::{Check, Row, ScenarioReport, figure};
use crate::{BenchError, failed};
use sys::clock::Clock;

/// Points of each series in a run: those of `write_after`, which a store writes at once.
const POINTS: u64 = 27;

/// Seconds between two points of a series.
const STEP_S: u64 = 10;

/// carbon-cache gets this share of the series: a run would take many minutes otherwise.
const CARBON_SHARE: u64 = 10;

/// The asked figures.
const POINT_US_MAX: f64 = 1.0;
const CREATE_US_MAX: f64 = 30.0;

/// The share of a second that the million's generator leaves.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// CPU of one point, with its log, its sync and its file.
pub(super) fn points(
    ground: &mut Ground<'_>,
    (folder, series, runs): (&Path, u64, u64),
    originals: &Originals,
) -> Result<ScenarioReport, BenchError> {
    let folder = scenario_folder(folder, "points")?;
    let (names, few) = (Names::of(series), Names::of((series / CARBON_SHARE).max(1)));
    let first_s = (now_s() - FILE_AGE_S) / 60 * 60;
    ground.say("points: creates the files");
    let node = Node::start(&ground.stand, &folder.join("staunch"), ground.stand.core, "")?;
    let sent = failed("send points");
    send(node.lines, names, [first_s - STEP_S]).map_err(sent)?;
    node.until_copies(names.count)?;
    node.drain()?;
    let carbon = match &originals.carbon {
        None => None,
        Some(carbon) => {
            let carbon = CarbonCache::start(&ground.stand, carbon, &folder.join("carbon"))?;
            send(carbon.lines, few, [first_s - STEP_S]).map_err(failed("send points"))?;
            carbon.until_idle()?;
            Some(carbon)
        }
    };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for run in 0..runs {
        ground.say(&format!("points: run {} of {runs}", run + 1));
        let begin_s = first_s + run * POINTS * STEP_S;
        let times = || (0..POINTS).map(move |number| begin_s + number * STEP_S);
        let before_ns = node.cpu_ns()?;
        send(node.lines, names, times()).map_err(failed("send points"))?;
        node.until_copies(names.count * (1 + (run + 1) * POINTS))?;
        node.drain()?;
        ours.push(micros(node.cpu_ns()? - before_ns, names.count * POINTS));
        if let Some(carbon) = &carbon {
            let before_ns = carbon.cpu_ns()?;
            send(carbon.lines, few, times()).map_err(failed("send points"))?;
            carbon.until_idle()?;
            theirs.push(micros(carbon.cpu_ns()? - before_ns, few.count * POINTS));
        }
    }
    let written = node.figure("points_written")?;
    drop((node, carbon));
    removed(&folder)?;
    let row = |who, runs| Row { who, what: "CPU per point", unit: "us", runs };
    let mut rows = vec![row("staunch", ours)];
    let mut checks = vec![
        Check::at_most("us per point:", rows[0].median(), POINT_US_MAX),
        Check::at_least(
            "points in files, of those sent:",
            written as f64,
            (names.count * (1 + runs * POINTS)) as f64,
        ),
    ];
    if !theirs.is_empty() {
        rows.push(row("carbon-cache", theirs));
        checks.push(Check::at_least(
            "times cheaper than carbon-cache:",
            rows[1].median() / rows[0].median(),
            1.0,
        ));
    }
    let what = format!(
        "{} series (carbon-cache: {}), {POINTS} points of {STEP_S} s of each in a run, until all are in synced files; sparse \
         files of {}",
        figure(names.count as f64),
        figure(few.count as f64),
        super::node::RETENTIONS
    );
    Ok(ScenarioReport { name: "points", what, rows, checks })
}

/// CPU of one new series with one point.
pub(super) fn create(
    ground: &mut Ground<'_>,
    (folder, series, runs): (&Path, u64, u64),
    originals: &Originals,
) -> Result<ScenarioReport, BenchError> {
    let folder = scenario_folder(folder, "create")?;
    let (names, few) = (Names::of(series), Names::of((series / CARBON_SHARE).max(1)));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for run in 0..runs {
        ground.say(&format!("create: run {} of {runs}", run + 1));
        let node = Node::start(&ground.stand, &folder.join(format!("staunch-{run}")), ground.stand.core, "")?;
        let before_ns = node.cpu_ns()?;
        send(node.lines, names, [now_s()]).map_err(failed("send points"))?;
        node.until_copies(names.count)?;
        node.drain()?;
        ours.push(micros(node.cpu_ns()? - before_ns, names.count));
        drop(node);
        if let Some(carbon) = &originals.carbon {
            let carbon = CarbonCache::start(&ground.stand, carbon, &folder.join(format!("carbon-{run}")))?;
            let before_ns = carbon.cpu_ns()?;
            send(carbon.lines, few, [now_s()]).map_err(failed("send points"))?;
            carbon.until_idle()?;
            theirs.push(micros(carbon.cpu_ns()? - before_ns, few.count));
        }
    }
    // Not before: ext4 looks for a long time at files that have just been removed when it creates others.
    removed(&folder)?;
    let row = |who, runs| Row { who, what: "CPU per new series", unit: "us", runs };
    let mut rows = vec![row("staunch", ours)];
    let checks = vec![Check::at_most("us per new series:", rows[0].median(), CREATE_US_MAX)];
    if !theirs.is_empty() {
        rows.push(row("carbon-cache", theirs));
    }
    let what = format!(
        "{} new series (carbon-cache: {}), ten in a folder, with one point each; sparse files",
        figure(names.count as f64),
        figure(few.count as f64)
    );
    Ok(ScenarioReport { name: "create", what, rows, checks })
}

/// Very many series every ten seconds, on all cores.
pub(super) fn million(
    ground: &mut Ground<'_>,
    (folder, series, seconds): (&Path, u64, u64),
) -> Result<ScenarioReport, BenchError> {
    let folder = scenario_folder(folder, "million")?;
    let names = Names { count: series, of_server: 100 };
    let place = folder.join("staunch");
    let more = "max_memory = \"2GiB\"\nqueue = { kind = \"disk\", max_bytes = \"8GiB\" }";
    let node = Node::start(&ground.stand, &place, None, more)?;
    let rounds = (seconds / STEP_S).max(1);
    let (mut memory, begun_ns) = (0_u64, Clock::mono_ns());
    for round in 0..rounds {
        ground.say(&format!("million: {} of {} s", round * STEP_S, rounds * STEP_S));
        send(node.lines, names, [now_s() / STEP_S * STEP_S]).map_err(failed("send points"))?;
        let next_ns = begun_ns + (round + 1) * STEP_S * model::SECOND_NS;
        while Clock::mono_ns() < next_ns {
            memory = memory.max(node.memory()?.resident);
            thread::sleep(LOOK_EVERY);
        }
    }
    node.until_copies(names.count * rounds)?;
    let cpu_ns = node.cpu_ns()?;
    let passed_ns = Clock::mono_ns() - begun_ns;
    ground.say("million: writes what is left");
    node.drain()?;
    let (copies, lost) = node.copies()?;
    let bytes = node.bytes_written()?;
    node.stop()?;
    let start_ns = Clock::mono_ns();
    let node = Node::start(&ground.stand, &place, None, more)?;
    let found = node.get("/metrics/expand?query=servers.web1*.cpu.user")?;
    let start_s = (Clock::mono_ns() - start_ns) as f64 / 1e9;
    drop(node);
    let files = files_in(&place);
    ground.say(&format!("million: removes {}", files.display()));
    removed(&folder)?;
    let row = |what, unit, value| Row { who: "staunch", what, unit, runs: vec![value] };
    let rows = vec![
        row("CPU, of one core", "%", cpu_ns as f64 * 100.0 / passed_ns as f64),
        row("memory, most", "MB", memory as f64 / 1e6),
        row("written per point", "bytes", bytes as f64 / copies.max(1) as f64),
        row("start to first find", "s", start_s),
        row("answer of the find", "bytes", found.len() as f64),
    ];
    let checks = vec![
        Check::at_least("points taken, of those sent:", copies as f64, (names.count * rounds) as f64),
        Check::at_most("points lost:", lost as f64, 0.0),
        Check::at_most("s from the start to the first find:", start_s, 2.0),
    ];
    let what = format!(
        "{} series every {STEP_S} s for {} s on all cores, then a stop and a start; a point takes 12 bytes in its file",
        figure(names.count as f64),
        rounds * STEP_S
    );
    Ok(ScenarioReport { name: "million", what, rows, checks })
}

fn micros(ns: u64, of: u64) -> f64 {
    ns as f64 / 1e3 / of.max(1) as f64
}

/// Whether there is room for the files of so many series.
pub(super) fn room_for(folder: &Path, series: u64) -> Result<Option<String>, BenchError> {
    /// A sparse file with three blocks, its inode and its share of a folder.
    const BYTES_EACH: u64 = 14_000;
    fs::create_dir_all(folder).map_err(failed("make its folder"))?;
    let room = sys::free_space_at(folder).map_err(failed("ask for the room on the disk"))?;
    let needed = series * BYTES_EACH;
    Ok((room < needed).then(|| {
        format!(
            "million: left out: it needs {} GB of room on the disk, and there are {}; see --many-series",
            figure(needed as f64 / 1e9),
            figure(room as f64 / 1e9)
        )
    }))
}
