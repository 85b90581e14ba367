//! What single streams cost: nanoseconds of an event beyond an empty stream.
//!
//! Each stream is the only one of a config. An event takes the path that it takes in the daemon after its message was decoded: into an
//! event of the language, and to the stream. The clock of the config is virtual, and goes on by a tenth of a second with each thousand
//! events.
//! Not here: `by` with very many forks (`forks`), the way from the socket (`ingest`).

use std::hint::black_box;

use model::EventsBuilder;
use streams::riemann::engine::{Engine, Setup};
use streams::riemann::files::{Files, Recorded};
use sys::CpuClock;

use super::events::{self, add_known};
use crate::ground::Ground;
use crate::report::{Check, Row, ScenarioReport, figure};
use crate::{BenchError, failed};

/// Passes of a run; the quickest counts, since the machine may have other work.
pub(super) const PASSES: usize = 5;

/// Events of a pass, and those between two steps of the clock.
const EVENTS: u64 = 100_000;
const EVENTS_OF_STEP: usize = 1_000;
const STEP_US: i64 = 100_000;

/// The asked figure of a closure.
const CLOSURE_NS_MAX: f64 = 500.0;

/// The row with the closure that has a limit.
const CLOSURE: &str = "smap with a closure";

/// The streams that the configs of the corpus use most (spec riemann §16.3), in that order, and the closure. `out` drops everything.
/// All events have about the same time, so that a window of event time must be empty: a longer one would have all of them.
const STREAMS: &[(&str, &str)] = &[
    ("index", "(index)"),
    ("default", "(default :ttl 60 out)"),
    ("expired", "(expired out)"),
    ("where, equal", "(where (state \"warning\") out)"),
    ("where, expression", "(where (service #\"^requests\") out)"),
    ("where, and, else", "(where (and (state \"ok\") (> metric 5)) out (else out))"),
    ("with", "(with :state \"ok\" out)"),
    ("with, attribute", "(with :dc \"a\" out)"),
    ("rate", "(rate 5 out)"),
    ("by", "(by [:host :service] out)"),
    ("by and rate", "(by [:host :service] (rate 5 out))"),
    ("smap", "(smap :metric out)"),
    (CLOSURE, "(smap (fn [e] (assoc e :metric (/ (:metric e) 1000.0))) out)"),
    ("fn", "(fn [e] (out e))"),
    ("async-queue!", "(async-queue! :q {:queue-size 1000} out)"),
    ("batch", "(batch 100 1 out)"),
    ("throttle", "(throttle 5 60 out)"),
    ("changed-state", "(by [:host :service] (changed-state {:init \"ok\"} out))"),
    ("rollup", "(rollup 5 60 out)"),
    ("call-rescue", "(fn [e] (call-rescue e [out]))"),
    ("changed", "(changed :state out)"),
    ("moving-time-window", "(moving-time-window 0 out)"),
    ("tap", "(tap :here out)"),
    ("coalesce", "(coalesce 5 out)"),
    ("where*", "(where* (fn [e] (= \"warning\" (:state e))) out)"),
    ("splitp", "(splitp <= metric 5000 out 1000 out out)"),
    ("percentiles", "(percentiles 5 [0.5 0.95 0.99] out)"),
    ("project", "(project [(state \"warning\") (state \"ok\")] out)"),
    ("fixed-time-window", "(fixed-time-window 60 out)"),
    ("tagged", "(tagged \"production\" out)"),
    ("adjust", "(adjust [:metric * 2] out)"),
    ("runs", "(runs 3 :state out)"),
    ("tag", "(tag \"seen\" out)"),
    ("sdo", "(sdo out out)"),
    ("scale", "(scale 2 out)"),
];

/// A config that runs, with one stream.
pub(super) fn engine(stream: &str) -> Result<Engine, BenchError> {
    const MAIN: &str = "riemann.config";
    let text = format!("(instrumentation {{:enabled? false}}) (def out (sdo)) (streams {stream})");
    let mut files = Files { main: MAIN.into(), host_name: "localhost".into(), ..Files::default() };
    files.texts.insert(MAIN.into(), Ok(text));
    let setup = Setup { now_us: 1_700_000_000_000_000, ..Setup::DEFAULT };
    Engine::load(MAIN, Box::new(Recorded::new(files, 1)), setup)
        .map_err(|error| BenchError::Argument(format!("{stream}: {error}")))
}

/// The clock of this thread's CPU time: other programs do not count.
pub(super) fn own_clock() -> Result<CpuClock, BenchError> {
    CpuClock::of_this_thread().map_err(failed("read its own CPU time"))
}

/// What it says.
pub(super) fn read(clock: &CpuClock) -> Result<u64, BenchError> {
    clock.read_ns().map_err(failed("read its own CPU time"))
}

/// One pass: nanoseconds of an event.
fn pass(clock: &CpuClock, engine: &mut Engine, events: &EventsBuilder) -> Result<f64, BenchError> {
    let rounds = (EVENTS as usize / events.len()).max(1);
    let begin_ns = read(clock)?;
    for _ in 0..rounds {
        for (at, event) in events.view().iter().enumerate() {
            // What a stream throws would be counted, and is checked afterwards.
            let _threw = black_box(engine.push(event));
            if at % EVENTS_OF_STEP == 0 {
                let now_us = engine.now_us() + STEP_US;
                engine.advance(now_us, usize::MAX);
            }
        }
    }
    Ok((read(clock)? - begin_ns) as f64 / (rounds * events.len()) as f64)
}

/// The quickest of some passes.
fn cost(clock: &CpuClock, engine: &mut Engine, events: &EventsBuilder) -> Result<f64, BenchError> {
    (0..PASSES).try_fold(f64::INFINITY, |least, _| Ok(pass(clock, engine, events)?.min(least)))
}

/// The streams one by one.
pub(super) fn streams(ground: &mut Ground<'_>, runs: u64) -> Result<ScenarioReport, BenchError> {
    let mut batch = EventsBuilder::default();
    (0..events::KEYS).for_each(|number| add_known(number, &mut batch));
    let clock = own_clock()?;
    let mut floor = engine("out")?;
    let mut engines = Vec::new();
    for (_, stream) in STREAMS {
        engines.push(engine(stream)?);
    }
    let mut floors = Vec::new();
    let mut costs: Vec<Vec<f64>> = vec![Vec::new(); STREAMS.len()];
    for run in 1..=runs {
        ground.say(&format!("streams: run {run} of {runs}"));
        let least = cost(&clock, &mut floor, &batch)?;
        floors.push(least);
        for (engine, costs) in engines.iter_mut().zip(&mut costs) {
            costs.push((cost(&clock, engine, &batch)? - least).max(0.0));
        }
    }
    let threw: u64 = engines.iter().map(|engine| engine.figures().threw).sum();
    let row = |who, what, runs| Row { who, what, unit: "ns", runs };
    let mut rows = vec![row("empty stream", "in all, per event", floors)];
    rows.extend(STREAMS.iter().zip(costs).map(|((name, _), runs)| row("beyond it", name, runs)));
    let closure = rows.iter().find(|row| row.what == CLOSURE).map_or(f64::INFINITY, Row::median);
    let checks = vec![
        Check::at_most("ns of an event, smap with a closure:", closure, CLOSURE_NS_MAX),
        Check::at_most("exceptions of streams:", threw as f64, 0.0),
    ];
    let what = format!(
        "{} events in a pass, of {} hosts and services; each stream alone in a config, with a child that drops everything",
        figure(EVENTS as f64),
        figure(events::KEYS as f64)
    );
    Ok(ScenarioReport { name: "streams", what, rows, checks })
}

#[test]
fn each_stream_of_the_table_loads_and_throws_nothing() {
    let mut batch = EventsBuilder::default();
    (0..200).for_each(|number| add_known(number, &mut batch));
    for (name, stream) in STREAMS {
        let mut engine = engine(stream).unwrap_or_else(|error| panic!("{name}: {error}"));
        for event in batch.view().iter() {
            engine.push(event).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        let now_us = engine.now_us() + 60_000_000;
        assert!(engine.advance(now_us, usize::MAX), "{name}");
        assert_eq!(engine.figures().threw, 0, "{name}");
    }
}
