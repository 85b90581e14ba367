//! The workload of `cargo xtask instructions`: Riemann's messages of 100 events through the decoder.
//!
//! `riemann_messages KIND EVENTS`: EVENTS events of 10,000 services, as clients send them. KIND is `plain` for six fields (host, service,
//! state, metric, time, ttl), `full` for a description, two tags and two attributes more, `encoded` for the reply of the plain ones and
//! `json` for their lines. No clock and no socket: the same arguments cost the same instructions. With `speed` as EVENTS, nanoseconds per
//! event are printed instead.
#![allow(clippy::print_stderr, reason = "an example says how to call it")]
#![allow(clippy::print_stdout, reason = "its numbers are its output")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use model::{EventTime, EventsBuilder, NumberRef, TextField};
use wire::riemann::json::{self, Absent, JsonOptions, JsonTimes};
use wire::riemann::{Limits, decode, events_reply, request};

const SERVICES: usize = 10_000;
const EVENTS_PER_MESSAGE: usize = 100;
const RECEIVED: EventTime = EventTime::Micros(1_700_000_000_123_000);
const ROUNDS: usize = 50;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [kind, events] = args.as_slice() else {
        eprintln!("usage: riemann_messages plain|full|encoded|json EVENTS|speed");
        return ExitCode::FAILURE;
    };
    let batches = batches(kind == "full");
    let messages: Vec<Vec<u8>> = batches.iter().map(|batch| encoded(kind, batch)).collect();
    let mut batch = EventsBuilder::default();
    if events == "speed" {
        let mut best = f64::INFINITY;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            (0..batches.len()).for_each(|at| work(kind, &batches[at], &messages[at], &mut batch));
            best = best.min(start.elapsed().as_nanos() as f64 / SERVICES as f64);
        }
        println!("{kind:<10} {best:>7.1} ns per event, best of {ROUNDS}");
        return ExitCode::SUCCESS;
    }
    let Ok(events) = events.parse::<usize>() else {
        eprintln!("EVENTS is a number or `speed`");
        return ExitCode::FAILURE;
    };
    for at in 0..events / EVENTS_PER_MESSAGE {
        let at = at % batches.len();
        work(kind, &batches[at], &messages[at], &mut batch);
    }
    ExitCode::SUCCESS
}

/// Processes the events of one message.
fn work(kind: &str, events: &EventsBuilder, message: &[u8], into: &mut EventsBuilder) {
    into.clear();
    match kind {
        "encoded" => {
            black_box(encoded(kind, black_box(events)));
        }
        "json" => {
            let options = JsonOptions { bytes_max: 64 * 1024, times: JsonTimes::Micros };
            for line in black_box(message).split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                json::decode(line, RECEIVED, options, into).expect("the line is good");
            }
            assert_eq!(into.len(), EVENTS_PER_MESSAGE);
        }
        _ => {
            let decoded = decode(black_box(message), RECEIVED, Limits::default(), into);
            assert_eq!(decoded.map(|message| message.events), Ok(EVENTS_PER_MESSAGE), "each message is good");
        }
    }
    black_box(into);
}

fn encoded(kind: &str, batch: &EventsBuilder) -> Vec<u8> {
    let mut out = Vec::with_capacity(16 * 1024);
    match kind {
        "encoded" => events_reply(batch.view().iter(), &mut out),
        "json" => batch.view().iter().for_each(|event| {
            json::encode(event, Absent::Null, &mut out);
            out.push(b'\n');
        }),
        _ => request(None, batch.view().iter(), &mut out),
    }
    out
}

fn batches(is_full: bool) -> Vec<EventsBuilder> {
    (0..SERVICES / EVENTS_PER_MESSAGE)
        .map(|message| {
            let mut batch = EventsBuilder::default();
            (0..EVENTS_PER_MESSAGE)
                .for_each(|at| add(message * EVENTS_PER_MESSAGE + at, is_full, &mut batch));
            batch
        })
        .collect()
}

fn add(number: usize, is_full: bool, batch: &mut EventsBuilder) {
    let number = number * 2_654_435_761 % SERVICES;
    let mut event = batch.event();
    event.text(TextField::Host, format_args!("web{:02}.example.com", number % 97));
    event.text(TextField::Service, format_args!("requests endpoint{number:05}"));
    event.text(TextField::State, "ok");
    event.metric(NumberRef::F64(number as f64 / 8.0));
    event.time(EventTime::Micros(1_700_000_000_000_000 + number as i64 * 1_000));
    event.ttl_s(60.0);
    if is_full {
        event.text(TextField::Description, "the requests of an endpoint in the last ten seconds");
        event.plain_tag("production").expect("two tags");
        event.plain_tag("europe").expect("two tags");
        event.plain_attribute("datacenter", "ams1").expect("two attributes");
        event.plain_attribute("version", "2.17.3").expect("two attributes");
    }
    event.finish();
}
