//! F17: the disk of a store and its log is full, and then there is room again.
//!
//! Both are on a small tmpfs of their own, most of which is somebody else's. A client sends points of many new series, until neither a
//! file nor the log takes more: it has to wait. The daemon is killed on the full disk and must start again. Then somebody frees
//! his part: the rest of the points is taken, and in the end each one is in the answers, from files alone after a stop.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::finding::{Bench, End, Finding};
use crate::small_disk;
use crate::support::{Builder, Daemon};

const PATIENCE: Duration = Duration::from_secs(60);

/// Points of each series; the log is too small for all.
const POINTS: u64 = 300;

/// Seconds between two of them.
const STEP_S: u64 = 10;

/// MiB that are free at first: less than the files need.
const FREE_MEBIBYTES: u64 = 6;

pub(crate) fn run(bench: &Bench) -> End {
    let mebibytes = bench.pick(64, 512);
    let series = bench.pick(2_000, 8_000);
    small_disk::run(bench, "F17", mebibytes, |disk| on_disk(bench, disk, (mebibytes, series)))
}

fn config(disk: &Path) -> String {
    format!(
        "data_dir = \"{}\"\n\
         [sources.app]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [outputs.store]\ntype = \"whisper\"\nfrom = [\"app\"]\npath = \"{}\"\nwrite_after = \"1s\"\n\
         schemas = [{{ pattern = \"\", retentions = \"10s:6h,1m:7d\" }}]\n\
         queue = {{ kind = \"disk\", max_bytes = \"1MiB\", when_full = \"block\" }}\n",
        disk.join("data").display(),
        disk.join("whisper").display()
    )
}

/// Sends all points, and ends when the daemon has read them.
fn send(to: &Daemon, series: u64, first_s: u64) -> std::thread::JoinHandle<()> {
    let to = to.at("app", "tcp");
    std::thread::spawn(move || {
        let mut stream = TcpStream::connect(to).expect("it listens");
        let mut lines = String::new();
        for id in 0..series * POINTS {
            let (one, time) = (id % series, first_s + id / series * STEP_S);
            writeln!(lines, "f17.s{one} {id} {time}").expect("memory takes it");
        }
        // A kill ends it.
        let _sent = stream.write_all(lines.as_bytes());
    })
}

/// How many points answers have.
fn readable(daemon: &Daemon, series: u64, first_s: u64) -> u64 {
    let until = first_s + POINTS * STEP_S;
    let answer = daemon.get(&format!("/render?format=json&target=f17.*&from={}&until={until}", first_s - 1));
    if answer.status != 200 {
        // The store is being opened.
        return 0;
    }
    let answer: Value = serde_json::from_str(&answer.body).expect("it is JSON");
    let mut count = 0;
    for one in answer.as_array().into_iter().flatten() {
        let name = one["target"].as_str().and_then(|name| name.strip_prefix("f17.s")?.parse::<u64>().ok());
        let Some(name) = name else { continue };
        for point in one["datapoints"].as_array().into_iter().flatten() {
            let (Some(value), Some(time)) = (point[0].as_f64(), point[1].as_u64()) else { continue };
            let id = (time - first_s) / STEP_S * series + name;
            count += u64::from(value == id as f64);
        }
    }
    count
}

fn on_disk(bench: &Bench, disk: &Path, (mebibytes, series): (u64, u64)) -> Finding {
    let ballast = disk.join("somebody-elses");
    std::fs::write(&ballast, vec![0; ((mebibytes - FREE_MEBIBYTES) << 20) as usize])
        .expect("the disk has room");
    let mut daemon = Builder::native(&config(disk)).start();
    let mut finding = Finding::default();
    let at = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() / 10 * 10 - 6_000;
    let waits = send(&daemon, series, at);
    let errors = |daemon: &Daemon| daemon.json("/api/v1/stores")["stores"][0]["errors"].as_u64().unwrap_or(0);
    let full = bench.wait("the disk to be full", PATIENCE, || (errors(&daemon) > 0).then_some(()));
    finding.promise(full.is_some(), || "the disk was never full: this run shows nothing".into());
    let row = daemon.output("store");
    finding.promise(Daemon::number(&row, "dropped") == 0, || format!("points were dropped: {row}"));
    // Longer than it takes to read all of it.
    let late = bench.wait("the client to wait", Duration::from_secs(3), || waits.is_finished().then_some(()));
    finding.promise(late.is_none(), || "the client did not have to wait".into());
    let before = readable(&daemon, series, at);
    // To the last byte, and it is killed there.
    let _full = std::fs::write(disk.join("the-rest"), vec![0; 1 << 26]);
    daemon.signal("KILL");
    daemon.wait_exit();
    daemon.start_again();
    let again = bench
        .wait("the points of before", PATIENCE, || (readable(&daemon, series, at) >= before).then_some(()));
    finding.promise(again.is_some(), || {
        format!(
            "{} of {before} points are readable after a start on the full disk",
            readable(&daemon, series, at)
        )
    });

    std::fs::remove_file(&ballast).expect("it is ours");
    std::fs::remove_file(disk.join("the-rest")).expect("it is ours");
    // What the killed process had not read is sent again, and what it had is the same.
    let sender = send(&daemon, series, at);
    let count = series * POINTS;
    // The log is small, so that the client has to wait for files again and again.
    let patience = PATIENCE * bench.pick(1, 5);
    let all = bench.wait("all points", patience, || (readable(&daemon, series, at) == count).then_some(()));
    finding.promise(all.is_some(), || {
        format!("{} of {count} points are readable", readable(&daemon, series, at))
    });
    finding.promise(sender.join().is_ok(), || "the client failed".into());
    daemon.assert_sums_hold();
    daemon.stop();
    daemon.start_again();
    // Names that a full disk did not let it save come with a walk through the files.
    let _walked = bench
        .wait("the points in files", PATIENCE, || (readable(&daemon, series, at) == count).then_some(()));
    (finding.sent, finding.arrived) = (count, readable(&daemon, series, at));
    let row = &daemon.json("/api/v1/stores")["stores"][0];
    finding.promise(row["points_in_memory"].as_u64() == Some(0), || {
        format!("not all in files after a stop: {row}")
    });
    finding.done = format!("store on a {mebibytes} MiB disk, full, killed and freed");
    finding
        .figure(format!("full after {before} readable points of {series} new series, and the client waited"));
    finding.promise_exact();
    daemon.stop();
    finding
}
