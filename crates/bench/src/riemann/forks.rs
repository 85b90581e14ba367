//! `by [:host :service]` with very many forks: time and memory beyond its children.

use std::hint::black_box;

use model::EventsBuilder;
use streams::riemann::engine::Engine;
use sys::CpuClock;

use super::costs::{engine, own_clock, read};
use super::events::add;
use crate::ground::Ground;
use crate::report::{Check, Row, ScenarioReport, figure};
use crate::{BenchError, failed};

/// Events of a run.
const EVENTS: u64 = 100_000;

/// A prime with which keys come in an order that no cache foresees.
const STRIDE: u64 = 7_919_317;

/// The asked figures.
const MORE_NS_MAX: f64 = 300.0;
const FORK_BYTES_MAX: f64 = 300.0;

/// The child of each fork.
const CHILD: &str = "(counter out)";

/// Which key comes when.
type Order = fn(u64, u64) -> u64;

const ORDERS: [(&str, Order); 2] =
    [("keys in order", |at, many| at % many), ("keys in no order", |at, many| at * STRIDE % many)];

fn batch(numbers: impl Iterator<Item = u64>) -> EventsBuilder {
    let mut batch = EventsBuilder::default();
    numbers.for_each(|number| add(format_args!("web{number}.example.com"), "cpu user", number, &mut batch));
    batch
}

/// CPU nanoseconds of an event.
fn push(clock: &CpuClock, engine: &mut Engine, events: &EventsBuilder) -> Result<f64, BenchError> {
    let begin_ns = read(clock)?;
    for event in events.view().iter() {
        // What a stream throws is counted, and checked afterwards.
        let _threw = black_box(engine.push(event));
    }
    Ok((read(clock)? - begin_ns) as f64 / events.len() as f64)
}

fn resident() -> Result<u64, BenchError> {
    let memory = sys::memory_of(std::process::id()).map_err(failed("read its own memory"))?;
    Ok(memory.resident)
}

/// The cost of so many forks.
pub(super) fn forks(ground: &mut Ground<'_>, many: u64, runs: u64) -> Result<ScenarioReport, BenchError> {
    ground.say("forks: makes them");
    let clock = own_clock()?;
    let before = resident()?;
    let mut alone =
        engine(&format!("(let [made (atom nil)] (dotimes [_ {many}] (reset! made {CHILD})) @made)"))?;
    let children = resident()?.saturating_sub(before);
    let mut by = engine(&format!("(by [:host :service] {CHILD})"))?;
    let before = resident()?;
    for first in (0..many).step_by(EVENTS as usize) {
        push(&clock, &mut by, &batch(first..(first + EVENTS).min(many)))?;
    }
    let bytes = resident()?.saturating_sub(before);
    let forks = by.counts().forks();
    let mut rows = Vec::new();
    let mut more = Vec::new();
    for (name, order) in &ORDERS {
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for run in 0..runs {
            ground.say(&format!("forks: {name}, run {} of {runs}", run + 1));
            let events = batch((run * EVENTS..(run + 1) * EVENTS).map(|at| order(at, many)));
            without.push(push(&clock, &mut alone, &events)?);
            with.push(push(&clock, &mut by, &events)?);
        }
        let row = |who, runs| Row { who, what: name, unit: "ns", runs };
        rows.extend([row("without by", without), row("with by", with)]);
        more.push(rows[rows.len() - 1].median() - rows[rows.len() - 2].median());
    }
    let each = |bytes: u64| bytes as f64 / many as f64;
    let row = |what, bytes| Row { who: "a fork", what, unit: "bytes", runs: vec![bytes] };
    rows.extend([row("in all", each(bytes)), row("of its children", each(children))]);
    let beside = each(bytes) - each(children);
    let threw = by.figures().threw + alone.figures().threw;
    let checks = vec![
        Check::at_most("ns more than without by, keys in order:", more[0], MORE_NS_MAX),
        Check::at_most("ns more than without by, keys in no order:", more[1], MORE_NS_MAX),
        Check::at_most("bytes of a fork beside its children:", beside, FORK_BYTES_MAX),
        Check::at_least("forks, of the keys:", forks as f64, many as f64),
        Check::at_most("exceptions of streams:", threw as f64, 0.0),
    ];
    let what = format!("(by [:host :service] {CHILD}) with {} forks, one key each", figure(many as f64));
    Ok(ScenarioReport { name: "forks", what, rows, checks })
}
