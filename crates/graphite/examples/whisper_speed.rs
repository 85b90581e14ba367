//! Measures the CPU time of a point that is stored by `update_many`, on real files.
//!
//! `cargo run --release -p graphite --example whisper_speed -- FOLDER`; FOLDER is made and removed, best in a tmpfs such
//! as /dev/shm. Pin it with `taskset -c 1`. The layout is `10s:6h,1m:7d`, the files are sparse. Each call gets 1, 6 or 60
//! points of neighbouring steps, in three ways: the file is opened and its header read; it is opened with what was known
//! of it; it stays open. System time is included.
#![allow(clippy::print_stdout, reason = "an example prints to its user")]

mod files;

use std::sync::Arc;

use files::{Files, RealFile};
use graphite::whisper::{
    AggregationMethod, Header, Known, Layout, Point, Scratch, Space, UpdateOptions, WhisperFile, create_in,
    parse_retentions,
};
use model::{DiskError, FileTree as _};

const FILES: usize = 1000;
const START: i64 = 1_700_000_000;
/// Points of each file and measurement: an hour of them, so that each way stores the same ones.
const POINTS: i64 = 360;

type Failure = Box<dyn std::error::Error>;

/// Processor time of this thread in nanoseconds; 0 where the system does not provide it.
fn cpu_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0.0)
}

/// How a file is found again at each call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Opened,
    Known,
    Kept,
}

fn path(folder: &str, index: usize) -> String {
    format!("{folder}/servers/web{}/load{index}.wsp", index % 100)
}

fn open(tree: &Files, path: &str) -> Result<RealFile, DiskError> {
    tree.open(path)
}

/// Stores `each` points per call in all files; nanoseconds per point.
fn measured(tree: &Files, folder: &str, way: Way, each: i64, begin: i64) -> Result<f64, Failure> {
    let mut scratch = Scratch::default();
    let mut known: Vec<Option<Known>> = Vec::new();
    let mut kept: Vec<WhisperFile<RealFile>> = Vec::new();
    let mut points = Vec::new();
    let options = UpdateOptions::default();
    for index in 0..FILES {
        let file = WhisperFile::open(open(tree, &path(folder, index))?)?;
        known.push(Some(file.known()));
        if way == Way::Kept {
            kept.push(file);
        }
    }
    let paths: Vec<_> = (0..FILES).map(|index| path(folder, index)).collect();
    let start = cpu_ns();
    for round in 0..POINTS / each {
        let first = begin + round * each * 10;
        let now = first + (each - 1) * 10;
        for (index, path) in paths.iter().enumerate() {
            points.clear();
            points.extend((0..each).map(|at| Point { time: first + at * 10, value: at as f64 }));
            let mut opened;
            let file = match (way, known[index].take()) {
                (Way::Kept, _) => &mut kept[index],
                (Way::Known, Some(known)) => {
                    opened = WhisperFile::open_known(open(tree, path)?, known);
                    &mut opened
                }
                (Way::Opened | Way::Known, _) => {
                    opened = WhisperFile::open(open(tree, path)?)?;
                    &mut opened
                }
            };
            let written = file.update_many(&mut points, now, &options, &mut scratch)?;
            assert_eq!(written.written, each.unsigned_abs());
            known[index] = if way == Way::Known { Some(file.known()) } else { None };
        }
    }
    Ok((cpu_ns() - start) / (FILES as f64 * POINTS as f64))
}

fn main() -> Result<(), Failure> {
    let folder = std::env::args().nth(1).ok_or("the folder is missing")?;
    let tree = Files::here();
    let layout = Layout::new(&parse_retentions("10s:6h,1m:7d")?)?;
    let header = Arc::new(Header::new(&layout, AggregationMethod::Average, 0.5)?);
    let start = cpu_ns();
    for index in 0..FILES {
        create_in(&tree, &path(&folder, index), &header, Space::Sparse)?;
    }
    println!("create: {:.1} µs per file", (cpu_ns() - start) / FILES as f64 / 1000.0);
    let mut begin = START;
    // The first hour is not measured: blocks are used for the first time.
    for (measure, rounds) in [("", 1), ("ns per point, median of 5", 5)] {
        for each in [1, 6, 60] {
            for (way, name) in [(Way::Opened, "opened"), (Way::Known, "known"), (Way::Kept, "kept open")] {
                let mut figures = Vec::new();
                for _ in 0..rounds {
                    figures.push(measured(&tree, &folder, way, each, begin)?);
                    begin += POINTS * 10;
                }
                figures.sort_by(f64::total_cmp);
                if !measure.is_empty() {
                    println!("{each:2} points a call, {name:9}: {:6.0} {measure}", figures[rounds / 2]);
                }
            }
        }
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
