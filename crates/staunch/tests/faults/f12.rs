//! F12: a million new series in a minute, against `max_series`.
//!
//! A client that puts an id of its own into each name, as a mistake in a deployment does. Memory stays under a bound
//! that depends on `max_series` alone, what is refused is counted to the sample, and the series that were there
//! before go on.

use std::fmt::Write;
use std::time::{Duration, Instant};

use crate::endpoint::Endpoint;
use crate::finding::{Bench, End, Finding};
use crate::load::Client;
use crate::oracle::Form;
use crate::support::{Builder, Daemon};

/// Series that are there before.
const KNOWN: u64 = 100;

/// New series between two samples of each known one.
const CHUNK: u64 = 5_000;

/// What a daemon takes that has received nothing, its packet arena and its code included, with room to spare.
const BASE_BYTES: u64 = 64 << 20;

/// What a counter takes at most: its key, its raw name, its place in two indexes, and its points in the output's queue.
const SERIES_BYTES: u64 = 2 << 10;

fn config(endpoint: &Endpoint, series_max: u64) -> String {
    format!(
        "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"1s\"\nself_counters = \"none\"\n\
         max_series = {series_max}\n\
         [outputs.carbon]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"{}\"]\n",
        endpoint.to()
    )
}

pub(crate) fn run(bench: &Bench) -> End {
    let (new, series_max, lasts) =
        bench.pick((50_000, 10_000, Duration::ZERO), (1_000_000, 100_000, Duration::from_secs(60)));
    let endpoint = Endpoint::new(Form::Point);
    let mut daemon = Builder::native(&config(&endpoint, series_max)).start();
    let mut client = Client::new(daemon.at("app", "tcp"), 0);
    let known: String = (0..KNOWN).fold(String::new(), |mut lines, at| {
        writeln!(lines, "known{at}:1|c").expect("memory takes it");
        lines
    });
    client.write(known.as_bytes());
    let mut rounds = 1;
    let since = Instant::now();
    while client.next < new {
        client.send_at_once(CHUNK);
        client.write(known.as_bytes());
        rounds += 1;
        // In step with the minute.
        let due = lasts.mul_f64(client.next as f64 / new as f64);
        std::thread::sleep(due.saturating_sub(since.elapsed()));
        bench.say(|| format!("{} of {new} series", client.next));
    }
    daemon.wait_source("app", "received", new + rounds * KNOWN);
    // What was received is read, and may still be on its way to the aggregation.
    daemon.wait_source("app", "in_flight", 0);
    daemon.assert_sums_hold();
    let row = daemon.source("app");
    let memory = sys::memory_of(daemon.pid()).expect("it runs").resident_high;
    daemon.stop();
    let mut finding =
        Finding { sent: new, named: Daemon::number(&row, "losses/dropped/series_max"), ..Finding::default() };
    let expected = series_max - KNOWN;
    endpoint.read_to_the_end(bench);
    finding.add(&endpoint.oracle.count());
    finding.done = format!("{new} new series, limit {series_max}");
    let (named, arrived) = (finding.named, finding.arrived);
    finding.promise(arrived == expected && named == new - expected, || {
        format!("{arrived} series were let in and {named} refused; the limit leaves {expected}")
    });
    let short = (0..KNOWN).filter(|at| endpoint.oracle.total(&format!("known{at}")) != rounds as f64).count();
    finding.promise(short == 0, || format!("{short} of {KNOWN} known series lost samples"));
    let bound = BASE_BYTES + series_max * SERIES_BYTES;
    finding.figure(format!("{:.0} MB resident at most; bound {:.0} MB", mega(memory), mega(bound)));
    finding.promise(memory <= bound, || format!("{:.0} MB resident are over the bound", mega(memory)));
    finding.figure(format!("{KNOWN} known series, {rounds} samples each: {} exact", KNOWN - short as u64));
    finding.promise_exact();
    End::Ran(finding)
}

fn mega(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
