//! How long points that are only in the log take to be readable after a kill.

use std::path::Path;
use std::thread;
use std::time::Duration;

use super::node::Node;
use super::place::{now_s, removed, scenario_folder};
use super::traffic::{Names, send};
use crate::ground::Ground;
use crate::report::{Check, Row, ScenarioReport, figure};
use crate::{BenchError, failed};
use sys::clock::Clock;

/// Series of the points.
const SERIES: u64 = 50_000;

/// The asked time for fifty million points.
const SECONDS_MAX: f64 = 15.0;

/// Longest wait for the sync of the last block.
const SYNC_WAIT: Duration = Duration::from_secs(1);

/// Fills the log, kills the daemon, and starts it again.
pub(super) fn recovery(
    ground: &mut Ground<'_>,
    folder: &Path,
    points: u64,
) -> Result<ScenarioReport, BenchError> {
    let folder = scenario_folder(folder, "recovery")?;
    let names = Names::of(SERIES.min(points));
    let times = (points / names.count).clamp(1, 2000);
    let place = folder.join("staunch");
    let more =
        "write_after = \"1h\"\nmax_memory = \"8GiB\"\nqueue = { kind = \"disk\", max_bytes = \"16GiB\" }";
    ground.say(&format!("recovery: sends {} points", figure((times * names.count) as f64)));
    let node = Node::start(&ground.stand, &place, ground.stand.core, more)?;
    let first_s = now_s() / 10 * 10 - times * 10;
    send(node.lines, names, (0..times).map(|number| first_s + number * 10)).map_err(failed("send points"))?;
    node.until_copies(times * names.count)?;
    thread::sleep(SYNC_WAIT);
    // Dropped is killed.
    drop(node);
    ground.say("recovery: starts again");
    let start_ns = Clock::mono_ns();
    let node = Node::start(&ground.stand, &place, ground.stand.core, more)?;
    let last_s = first_s + (times - 1) * 10;
    let path = format!(
        "/render?format=raw&noCache=1&target=servers.web{}.cpu.total&from={}&until={last_s}",
        names.count / 10 - 1,
        last_s - 10
    );
    loop {
        let answer = node.get(&path)?;
        let text = String::from_utf8_lossy(&answer);
        if text.trim_end().rsplit('|').next().is_some_and(|value| value.ends_with(".25")) {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    let seconds = (Clock::mono_ns() - start_ns) as f64 / 1e9;
    drop(node);
    removed(&folder)?;
    let rows = vec![Row { who: "staunch", what: "start to last point", unit: "s", runs: vec![seconds] }];
    let checks = vec![Check::at_most("s until the last point is readable:", seconds, SECONDS_MAX)];
    let what = format!(
        "{} points of {} series in the log only, kill -9, start; until a query has the last point",
        figure((times * names.count) as f64),
        figure(names.count as f64)
    );
    Ok(ScenarioReport { name: "recovery", what, rows, checks })
}
