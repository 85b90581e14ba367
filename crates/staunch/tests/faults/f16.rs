//! F16: `kill -9` in a loop, under load, with a store of whisper files.
//!
//! In each round a client sends points, and waits until the daemon says that all are in its log and that the log is synced: these are
//! safe, and never sent again. Then it sends more, and the kill comes while they are under way: these are sent again to the next
//! instance. Files are written all the time, so that kills come at every step: the log, a new file, an update, a sync. In the
//! end each point must be in the answers with its value, from memory, and from files alone after a stop.

use std::io::Write as _;
use std::net::TcpStream;
use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::finding::{Bench, End, Finding};
use crate::support::{Builder, Daemon};

/// Series of the points; each point of one is a second later than the one before.
const SERIES: u64 = 500;

/// How long before the start the first points are, in seconds: more than a run has points of one series.
const AGE_S: u64 = 80_000;

/// Points of a round that are safe before the kill, and those that are under way.
const SAFE: u64 = 10_000;
const UNDER_WAY: u64 = 5_000;

const PATIENCE: Duration = Duration::from_secs(60);

/// The lines of points.
fn lines(ids: Range<u64>, first_s: u64) -> Vec<u8> {
    let mut text = Vec::new();
    for id in ids {
        writeln!(text, "f16.s{} {id} {}", id % SERIES, first_s + id / SERIES).expect("memory takes it");
    }
    text
}

/// How many of these points an answer has with their values.
fn found(daemon: &Daemon, ids: &Range<u64>, first_s: u64) -> u64 {
    let last_s = first_s + ids.end / SERIES;
    let mut count = 0;
    for series in 0..SERIES {
        let path = format!("/render?format=json&target=f16.s{series}&from={}&until={last_s}", first_s - 1);
        let answer = daemon.get(&path);
        if answer.status != 200 {
            // The store is being opened.
            return 0;
        }
        let answer: Value = serde_json::from_str(&answer.body).expect("it is JSON");
        for point in answer[0]["datapoints"].as_array().into_iter().flatten() {
            let (Some(value), Some(time)) = (point[0].as_f64(), point[1].as_u64()) else { continue };
            let id = (time - first_s) * SERIES + series;
            count += u64::from(ids.contains(&id) && value == id as f64);
        }
    }
    count
}

/// Sends points, and waits until they are in the log and it is synced. False when that does not come.
fn send_safely(bench: &Bench, daemon: &Daemon, ids: Range<u64>, first_s: u64) -> bool {
    let copies = |row: &Value| Daemon::number(row, "copies");
    let had = copies(&daemon.output("store"));
    let count = ids.end - ids.start;
    let sent =
        TcpStream::connect(daemon.at("app", "tcp")).and_then(|mut to| to.write_all(&lines(ids, first_s)));
    let safe = || {
        let row = daemon.output("store");
        (copies(&row) >= had + count && Daemon::number(&row, "disk/blocks_unsynced") == 0).then_some(())
    };
    sent.is_ok() && bench.wait("the log to be synced", PATIENCE, safe).is_some()
}

pub(crate) fn run(bench: &Bench) -> End {
    let kills: u64 = bench.pick(12, 200);
    let toml = "[sources.app]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
                [outputs.store]\ntype = \"whisper\"\nfrom = [\"app\"]\nwrite_after = \"1s\"\n\
                schemas = [{ pattern = \"\", retentions = \"1s:1d,1m:7d\" }]\n";
    let mut daemon = Builder::native(toml).start();
    let first_s = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() - AGE_S;
    let mut random = bench.random();
    let mut finding = Finding::default();
    // What is not safe begins here.
    let mut next = 0;
    for kill in 0..kills {
        let went_on = send_safely(bench, &daemon, next..next + SAFE, first_s);
        finding.promise(went_on, || format!("points were not safe after {kill} kills:\n{}", daemon.stderr()));
        if !went_on {
            break;
        }
        next += SAFE;
        // Also while nothing but files is written.
        std::thread::sleep(Duration::from_millis(random.below(300) as u64));
        let under_way = lines(next..next + UNDER_WAY, first_s);
        let _reset = TcpStream::connect(daemon.at("app", "tcp")).and_then(|mut to| to.write_all(&under_way));
        std::thread::sleep(Duration::from_micros(random.below(20_000) as u64));
        daemon.signal("KILL");
        daemon.wait_exit();
        daemon.start_again();
        bench.say(|| format!("{kill} of {kills} kills, {next} points"));
    }
    let went_on = send_safely(bench, &daemon, next..next + SAFE, first_s);
    finding.promise(went_on, || format!("the last points were not safe:\n{}", daemon.stderr()));
    let ids = 0..next + SAFE;
    finding.done = format!("store, {kills} kills -9");
    finding.sent = ids.end;
    let in_time = bench.wait("the points to be readable", PATIENCE, || {
        (found(&daemon, &ids, first_s) == ids.end).then_some(())
    });
    finding.promise(in_time.is_some(), || "safe points are not in answers".into());
    daemon.stop();
    daemon.start_again();
    let readable = bench.wait("the store to be open", PATIENCE, || {
        let found = found(&daemon, &ids, first_s);
        (found > 0).then_some(found)
    });
    finding.arrived = readable.unwrap_or_default();
    finding.promise_exact();
    let pending = daemon.json("/api/v1/stores")["stores"][0]["points_in_memory"].as_u64();
    finding.promise(pending == Some(0), || format!("{pending:?} points were not in files after a stop"));
    finding.figure(format!("{SERIES} series; each kill amid {UNDER_WAY} points that were sent again; after SIGTERM from files alone"));
    daemon.assert_sums_hold();
    daemon.stop();
    End::Ran(finding)
}
