//! The workload of `cargo xtask instructions`: decoded events through the streams of a riemann.config.
//!
//! `riemann_events KIND EVENTS`: EVENTS events of six fields, of 10,000 hosts and services. KIND is `ingest` for an index, a `where` and a
//! `rate` that each event goes through, `closure` for a function that changes the event, `by` for a `rate` of each host and service. No
//! clock and no socket: the same arguments cost the same instructions.
#![allow(clippy::print_stderr, reason = "an example says how to call it")]

use std::hint::black_box;
use std::process::ExitCode;

use model::{EventTime, EventsBuilder, NumberRef, TextField};
use streams::riemann::engine::{Engine, Setup};
use streams::riemann::files::{Files, Recorded};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const KEYS: u64 = 10_000;
const EVENTS_PER_BATCH: u64 = 100;
const START_S: i64 = 1_700_000_000;
/// The clock of the config goes on by so much with each batch.
const STEP_US: i64 = 50;

/// The streams of each kind.
const KINDS: [(&str, &str); 3] = [
    (
        "ingest",
        "(let [index (index)]
           (streams (default :ttl 60 index (where (service #\"^requests \") (rate 5 (with :service \"rate\" index))))))",
    ),
    ("closure", "(streams (smap (fn [e] (assoc e :metric (/ (:metric e) 1000.0))) (sdo)))"),
    ("by", "(streams (by [:host :service] (rate 5 (sdo))))"),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [kind, events] = args.as_slice() else {
        eprintln!("usage: riemann_events ingest|closure|by EVENTS");
        return ExitCode::FAILURE;
    };
    let streams = KINDS.iter().find(|(name, _)| name == kind);
    let (Some((_, text)), Ok(events)) = (streams, events.parse::<u64>()) else {
        eprintln!("KIND is ingest, closure or by; EVENTS is a number");
        return ExitCode::FAILURE;
    };
    let mut engine = engine(text);
    let batches: Vec<EventsBuilder> = (0..KEYS / EVENTS_PER_BATCH).map(batch).collect();
    for at in 0..events / EVENTS_PER_BATCH {
        let now_us = engine.now_us() + STEP_US;
        engine.advance(now_us, usize::MAX);
        for event in batches[at as usize % batches.len()].view().iter() {
            black_box(engine.push(event)).expect("these streams throw nothing");
        }
        black_box(engine.effects().count());
    }
    ExitCode::SUCCESS
}

fn engine(text: &str) -> Engine {
    const MAIN: &str = "riemann.config";
    let mut files = Files { main: MAIN.into(), host_name: "localhost".into(), ..Files::default() };
    files.texts.insert(MAIN.into(), Ok(format!("(instrumentation {{:enabled? false}}) {text}")));
    let setup = Setup { now_us: START_S * 1_000_000, ..Setup::DEFAULT };
    Engine::load(MAIN, Box::new(Recorded::new(files, 1)), setup).expect("a good config")
}

fn batch(number: u64) -> EventsBuilder {
    let mut batch = EventsBuilder::default();
    for at in 0..EVENTS_PER_BATCH {
        let number = (number * EVENTS_PER_BATCH + at) * 2_654_435_761 % KEYS;
        let mut event = batch.event();
        event.text(TextField::Host, format_args!("web{:02}.example.com", number % 100));
        event.text(TextField::Service, format_args!("requests endpoint{:02}", number / 100));
        event.text(TextField::State, "ok");
        event.metric(NumberRef::F64(number as f64 / 8.0));
        event.time(EventTime::Seconds(START_S));
        event.ttl_s(60.0);
        event.finish();
    }
    batch
}
