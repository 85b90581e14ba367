//! What queries cost: series as JSON, names, and a dashboard beside points that come.

use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use super::node::Node;
use super::originals::{GraphiteWeb, Originals};
use super::place::{now_s, removed, scenario_folder};
use super::traffic::{Names, send};
use crate::ground::Ground;
use crate::report::{Check, Row, ScenarioReport, figure};
use crate::{BenchError, failed};
use sys::clock::Clock;

/// Series and points of each that a query reads.
const SERIES: Names = Names { count: 1_000, of_server: 1 };
const POINTS: u64 = 360;

/// The queries, with their names in the report. `{}` is for the series.
const TARGETS: [(&str, &str); 6] = [
    ("plain", "{}"),
    ("sumSeries", "sumSeries({})"),
    ("movingAverage", "movingAverage({},10)"),
    ("groupByNode", "groupByNode({},1,'sum')"),
    ("highestAverage", "highestAverage({},10)"),
    ("asPercent", "asPercent({})"),
];

/// Requests of each query in a run; graphite-web gets fewer.
const REQUESTS: u64 = 20;
const REQUESTS_OF_ORIGINAL: u64 = 3;

/// The asked figures.
const TIMES_CHEAPER_MIN: f64 = 50.0;
const FILES_TIMES_MAX: f64 = 2.0;

/// Nothing is written to files before it is asked for.
const IN_MEMORY: &str = "write_after = \"1h\"";

fn path_of(target: &str, series: &str, (from_s, until_s): (u64, u64)) -> String {
    let target = target.replace("{}", series).replace('\'', "%27").replace('{', "%7B").replace('}', "%7D");
    format!("/render?format=json&noCache=1&target={target}&from={from_s}&until={until_s}&now={until_s}")
}

/// Milliseconds of CPU for one request.
fn cost(
    requests: u64,
    cpu_ns: &dyn Fn() -> Result<u64, BenchError>,
    get: &dyn Fn() -> Result<Vec<u8>, BenchError>,
) -> Result<(f64, usize), BenchError> {
    let length = get()?.len();
    let before_ns = cpu_ns()?;
    for _ in 0..requests {
        get()?;
    }
    Ok(((cpu_ns()? - before_ns) as f64 / 1e6 / requests as f64, length))
}

/// The queries from memory, from files, and by graphite-web from the same files.
pub(super) fn render(
    ground: &mut Ground<'_>,
    (folder, runs): (&Path, u64),
    originals: &Originals,
) -> Result<ScenarioReport, BenchError> {
    let folder = scenario_folder(folder, "render")?;
    let place = folder.join("staunch");
    let node = Node::start(&ground.stand, &place, ground.stand.core, IN_MEMORY)?;
    let until_s = now_s() / 10 * 10;
    let range = (until_s - POINTS * 10, until_s);
    send(node.lines, SERIES, (1..=POINTS).map(|number| range.0 + number * 10))
        .map_err(failed("send points"))?;
    node.until_copies(SERIES.count * POINTS)?;
    let mut figures: Vec<Vec<f64>> = vec![Vec::new(); 3 * TARGETS.len()];
    let mut different = 0;
    let ours = |row: usize, figures: &mut Vec<Vec<f64>>| {
        for (number, (_, target)) in TARGETS.iter().enumerate() {
            let path = path_of(target, "servers.*.cpu.user", range);
            let (ms, _) = cost(REQUESTS, &|| node.cpu_ns(), &|| node.get(&path))?;
            figures[row * TARGETS.len() + number].push(ms);
        }
        Ok::<_, BenchError>(())
    };
    for run in 1..=runs {
        ground.say(&format!("render: from memory, run {run} of {runs}"));
        ours(0, &mut figures)?;
    }
    node.drain()?;
    let original = match &originals.graphite_web {
        Some(program) => Some(GraphiteWeb::start(&ground.stand, program, &place)?),
        None => None,
    };
    for run in 1..=runs {
        ground.say(&format!("render: from files, run {run} of {runs}"));
        ours(1, &mut figures)?;
        let Some(original) = &original else { continue };
        for (number, (_, target)) in TARGETS.iter().enumerate() {
            let path = path_of(target, "servers.*.cpu.user", range);
            let get = || original.get(&path);
            let (ms, length) = cost(REQUESTS_OF_ORIGINAL, &|| original.cpu_ns(), &get)?;
            figures[2 * TARGETS.len() + number].push(ms);
            // Python prints sums of fractions with other last digits at times.
            let other = node.get(&path)?.len();
            different += usize::from(other.abs_diff(length) * 100 > length);
        }
    }
    drop((node, original));
    removed(&folder)?;
    Ok(render_report(figures, different))
}

fn render_report(figures: Vec<Vec<f64>>, different: usize) -> ScenarioReport {
    let who = ["from memory", "from files", "graphite-web"];
    let mut rows: Vec<Row> = Vec::new();
    for (number, runs) in figures.into_iter().enumerate() {
        let (who, (what, _)) = (who[number / TARGETS.len()], TARGETS[number % TARGETS.len()]);
        rows.push(Row { who, what, unit: "ms CPU", runs });
    }
    let median = |group: usize, number: usize| rows[group * TARGETS.len() + number].median();
    let all = 0..TARGETS.len();
    let slower = all.clone().map(|number| median(1, number) / median(0, number)).fold(0.0, f64::max);
    let mut checks =
        vec![Check::at_most("from files, times from memory, the worst:", slower, FILES_TIMES_MAX)];
    if rows.iter().any(|row| row.who == who[2] && !row.runs.is_empty()) {
        let least = all.map(|number| median(2, number) / median(0, number)).fold(f64::INFINITY, f64::min);
        checks.push(Check::at_least("times cheaper than graphite-web, the least:", least, TIMES_CHEAPER_MIN));
        checks.push(Check::at_most("answers of another length than its:", different as f64, 0.0));
    }
    rows.retain(|row| !row.runs.is_empty());
    let what = format!(
        "servers.*.cpu.user with {} series of {POINTS} points as JSON, {REQUESTS} requests each (graphite-web: \
         {REQUESTS_OF_ORIGINAL}), caches off",
        figure(SERIES.count as f64)
    );
    ScenarioReport { name: "render", what, rows, checks }
}

/// Names of very many, all in memory.
pub(super) fn find(
    ground: &mut Ground<'_>,
    (folder, series, runs): (&Path, u64, u64),
) -> Result<ScenarioReport, BenchError> {
    /// Queries, with what they find of a million, and the asked milliseconds.
    const QUERIES: [(&str, &str, f64); 2] =
        [("1,111 by web1*", "servers.web1*.cpu.user", 3.0), ("10,000 by *", "servers.*.cpu.user", 20.0)];
    const BYTES_OF_NAME_MAX: f64 = 200.0;
    let folder = scenario_folder(folder, "find")?;
    let node = Node::start(&ground.stand, &folder.join("staunch"), ground.stand.core, IN_MEMORY)?;
    let names = Names { count: series, of_server: 100 };
    ground.say(&format!("find: sends {} names", figure(series as f64)));
    send(node.lines, names, [now_s()]).map_err(failed("send points"))?;
    while node.figure("series")? < series {
        thread::sleep(Duration::from_millis(100));
    }
    let mut rows = Vec::new();
    let mut checks = Vec::new();
    for (what, query, ms_max) in QUERIES {
        let mut figures = Vec::new();
        let path = format!("/metrics/find?format=json&query={query}");
        for _ in 0..runs {
            figures.push(cost(REQUESTS, &|| node.cpu_ns(), &|| node.get(&path))?.0);
        }
        rows.push(Row { who: "staunch", what, unit: "ms CPU", runs: figures });
        let median = rows.last().map(Row::median).unwrap_or_default();
        checks.push(Check::at_most(&format!("ms, {what}:"), median, ms_max));
    }
    let bytes = node.figure("name_bytes")? as f64 / series as f64;
    rows.push(Row { who: "staunch", what: "memory of a name", unit: "bytes", runs: vec![bytes] });
    checks.push(Check::at_most("bytes of a name:", bytes, BYTES_OF_NAME_MAX));
    drop(node);
    removed(&folder)?;
    let what = format!("{} names, a hundred of each server", figure(series as f64));
    Ok(ScenarioReport { name: "find", what, rows, checks })
}

/// Queries at a fixed rate beside points at a fixed rate.
pub(super) fn dashboard(
    ground: &mut Ground<'_>,
    (folder, seconds): (&Path, u64),
) -> Result<ScenarioReport, BenchError> {
    /// Queries in a second, and the threads that make them.
    const QUERIES: u64 = 20;
    const THREADS: u64 = 4;
    /// Series of the points, which come twice in a second.
    const NAMES: u64 = 100_000;
    let folder = scenario_folder(folder, "dashboard")?;
    let node = Node::start(&ground.stand, &folder.join("staunch"), ground.stand.core, "")?;
    let until_s = now_s() / 10 * 10;
    let range = (until_s - POINTS * 10, until_s);
    send(node.lines, SERIES, (1..=POINTS).map(|number| range.0 + number * 10))
        .map_err(failed("send points"))?;
    node.until_copies(SERIES.count * POINTS)?;
    ground.say(&format!("dashboard: {seconds} s"));
    let (sent, ends) = (AtomicU64::new(0), AtomicBool::new(false));
    let (waits, asked): (Mutex<Vec<f64>>, AtomicU64) = (Mutex::default(), AtomicU64::new(0));
    let begin_ns = Clock::mono_ns();
    let due = |number: u64, each: u64| begin_ns + number * model::SECOND_NS / each;
    let points = || -> io::Result<()> {
        for number in 0.. {
            sleep_until(due(number, 2));
            if ends.load(Relaxed) {
                break;
            }
            send(node.lines, Names::of(NAMES), [now_s()])?;
            sent.fetch_add(NAMES, Relaxed);
        }
        Ok(())
    };
    let queries = || -> Result<(), BenchError> {
        loop {
            let number = asked.fetch_add(1, Relaxed);
            if number >= seconds * QUERIES {
                return Ok(());
            }
            sleep_until(due(number, QUERIES));
            let (_, target) = TARGETS[number as usize % TARGETS.len()];
            node.get(&path_of(target, "servers.web{?,??,???}.cpu.user", range))?;
            let wait_ns = Clock::mono_ns() - due(number, QUERIES);
            waits.lock().map(|mut waits| waits.push(wait_ns as f64 / 1e6)).unwrap_or_default();
        }
    };
    thread::scope(|threads| {
        let points = threads.spawn(points);
        let asking: Vec<_> = (0..THREADS).map(|_| threads.spawn(queries)).collect();
        let mut result = Ok(());
        for thread in asking {
            let done = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result = result.and(done);
        }
        ends.store(true, Relaxed);
        let sent = points.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        sent.map_err(failed("send points"))?;
        result
    })?;
    let total = SERIES.count * POINTS + sent.load(Relaxed);
    let passed_s = (Clock::mono_ns() - begin_ns) as f64 / 1e9;
    node.until_copies(total)?;
    let (copies, lost) = node.copies()?;
    drop(node);
    removed(&folder)?;
    let figures = Beside {
        waits: waits.into_inner().unwrap_or_default(),
        points_per_s: sent.load(Relaxed) as f64 / passed_s,
        taken: (copies, total),
        lost,
    };
    let what = format!(
        "{QUERIES} queries/s of {} series with {POINTS} points, beside {} points/s, for {seconds} s",
        figure(SERIES.count as f64),
        figure((2 * NAMES) as f64)
    );
    Ok(figures.report(what))
}

/// What `dashboard` counts.
struct Beside {
    /// Milliseconds of each query, from when it was due.
    waits: Vec<f64>,
    points_per_s: f64,
    /// Points that were taken, of those sent.
    taken: (u64, u64),
    lost: u64,
}

impl Beside {
    fn report(mut self, what: String) -> ScenarioReport {
        self.waits.sort_by(f64::total_cmp);
        let waits = &self.waits;
        let at = |share: f64| {
            let place = (waits.len() as f64 * share) as usize;
            waits.get(place).or(waits.last()).copied().unwrap_or(0.0)
        };
        let row = |what, unit, value| Row { who: "staunch", what, unit, runs: vec![value] };
        let rows = vec![
            row("queries answered", "", waits.len() as f64),
            row("wait, median", "ms", at(0.5)),
            row("wait, p99", "ms", at(0.99)),
            row("points", "/s", self.points_per_s),
        ];
        let (taken, sent) = self.taken;
        let checks = vec![
            Check::at_least("points taken, of those sent:", taken as f64, sent as f64),
            Check::at_most("points lost:", self.lost as f64, 0.0),
        ];
        ScenarioReport { name: "dashboard", what, rows, checks }
    }
}

fn sleep_until(due_ns: u64) {
    thread::sleep(Duration::from_nanos(due_ns.saturating_sub(Clock::mono_ns())));
}
