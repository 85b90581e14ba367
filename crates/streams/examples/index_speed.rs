//! Measures an index of a million events: memory, inserts, searches and their slices, expiry.
//!
//! `cargo run --release -p streams --example index_speed`; pin it with `taskset -c 1`. Times are wall-clock times.
#![allow(clippy::print_stdout, reason = "an example prints to its user")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::sync::Arc;
use std::time::Instant;

use streams::event::{Event, Field};
use streams::index::{Expired, Index, Limits, Progress, SLICE_STEPS, SWEEP_EVENTS, Search, SearchLimits};
use streams::number::Number;
use streams::query::{Meter, Pattern, Query};
use streams::value::Value;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const EVENTS: u32 = 1_000_000;
const SERVICES: u32 = 40;
/// Events of the service that a user searched for (riemann issue 367).
const SMR: u32 = 12_756;
const LIMITS: Limits = Limits { events_max: 2_000_000, bytes_max: 8 << 30 };
const SEARCH: SearchLimits = SearchLimits { results_max: 2_000_000, steps_max: 1_000_000_000 };

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

/// An event as a decoder makes it: each text is new.
fn event(at: u32, metric: f64) -> Arc<Event> {
    let service = if at < SMR { format!("smr-{at}") } else { format!("cpu {}", at % SERVICES) };
    let mut event = Event::default();
    event.set(Field::Host, text(&format!("web-{:06}", at / SERVICES)));
    event.set(Field::Service, text(&service));
    event.set(Field::State, text("ok"));
    event.set(Field::Metric, Value::Number(Number::Double(metric)));
    event.set(Field::Time, Value::Number(Number::Int(1_700_000_000)));
    event.set(Field::Ttl, Value::Number(Number::Float(300.0)));
    event.set(Field::Tags, Value::Vector(Arc::new([text("prod"), text("web")].into_iter().collect())));
    Arc::new(event)
}

/// Memory of the process in bytes, by the kernel.
fn resident_bytes() -> f64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: f64 = text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(f64::NAN);
    pages * 4096.0
}

fn ns(began: Instant, count: u32) -> f64 {
    began.elapsed().as_secs_f64() * 1e9 / f64::from(count)
}

fn build() -> Index {
    let before = resident_bytes();
    let mut index = Index::new(LIMITS, 1);
    let mut longest: f64 = 0.0;
    let began = Instant::now();
    for at in 0..EVENTS {
        let event = event(at, 0.5);
        let one = Instant::now();
        index.insert(event).expect("within the limits");
        longest = longest.max(one.elapsed().as_secs_f64());
    }
    println!(
        "{EVENTS} events made and inserted: {:.0} ns each, the longest {:.2} ms",
        ns(began, EVENTS),
        longest * 1e3
    );
    let each = |bytes: f64| bytes / f64::from(EVENTS);
    let taken = each(resident_bytes() - before);
    println!("memory: {taken:.0} bytes an event; estimate {:.0}", each(index.memory_bytes() as f64));
    index
}

/// Replaces events of random keys, or of keys in their order, in batches as they come from a decoder.
fn replace(index: &mut Index, what: &str, order: impl Fn(u32) -> u32, is_shared: bool) {
    const BATCHES: u32 = 4_000;
    const BATCH: u32 = 64;
    let mut inserts = Vec::new();
    let mut drops = Vec::new();
    for batch in 0..BATCHES {
        let fresh = |at: u32| {
            let made = event(order(batch * BATCH + at), f64::from(at));
            if !is_shared {
                return made;
            }
            // As a decoder that keeps texts would make it.
            let known = index.lookup(made.get(Field::Host), made.get(Field::Service)).expect("a known key");
            let mut shared = Event::clone(known);
            shared.set(Field::Metric, made.get(Field::Metric).clone());
            Arc::new(shared)
        };
        let events: Vec<Arc<Event>> = (0..BATCH).map(fresh).collect();
        let mut changes = Vec::with_capacity(BATCH as usize);
        let began = Instant::now();
        for event in events {
            changes.push(index.insert(event));
        }
        inserts.push(ns(began, BATCH));
        let began = Instant::now();
        drop(changes);
        drops.push(ns(began, BATCH));
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let (insert, dropped) = (median(&mut inserts), median(&mut drops));
    println!("replaced, {what}: {insert:.0} ns each, and {dropped:.0} ns for the drop of the old event");
}

fn search(index: &Index, text: &str, is_scan: bool) {
    let query = Arc::new(Query::new(text).expect("a query"));
    let mut found = Vec::new();
    let (mut slices, mut longest, mut runs) = (Vec::new(), 0.0_f64, 0);
    let all = Instant::now();
    while runs < 3 || all.elapsed().as_secs_f64() < 0.2 {
        found.clear();
        runs += 1;
        let mut search =
            if is_scan { Search::scan(&query, SEARCH) } else { Search::new(&query, index, SEARCH) };
        loop {
            let began = Instant::now();
            let progress = search.run(index, SLICE_STEPS, &mut found);
            let took = began.elapsed().as_secs_f64() * 1e3;
            slices.push(took);
            longest = longest.max(took);
            if progress != Progress::More {
                break;
            }
        }
    }
    let took = all.elapsed().as_secs_f64() * 1e3 / f64::from(runs);
    slices.sort_by(f64::total_cmp);
    let median = slices[slices.len() / 2];
    let how = if is_scan { " (scan)" } else { "" };
    let count = slices.len() / runs as usize;
    println!(
        "  {text}{how}: {} found in {took:.3} ms; {count} slices, median {median:.3} ms, longest {longest:.3} ms",
        found.len()
    );
}

fn expire(index: &mut Index) {
    let sweep = |index: &mut Index, now: i64, what: &str| {
        let mut expired: Vec<Expired> = Vec::new();
        let (mut longest, mut slices) = (0.0_f64, 0);
        let began = Instant::now();
        let mut is_done = false;
        while !is_done {
            let one = Instant::now();
            is_done = index.expire(&Number::Int(now), SWEEP_EVENTS, &mut expired);
            longest = longest.max(one.elapsed().as_secs_f64());
            slices += 1;
        }
        let took = began.elapsed().as_secs_f64() * 1e3;
        println!(
            "sweep, {what}: {} expired in {took:.2} ms; {slices} slices, longest {:.2} ms",
            expired.len(),
            longest * 1e3
        );
    };
    sweep(index, 1_700_000_001, "nothing expired");
    sweep(index, 1_700_000_301, "all expired");
}

fn hostile() {
    let pattern = Pattern::new("^(a|a)*(?!a)b$").expect("an expression");
    let text = "a".repeat(1_000);
    let began = Instant::now();
    let mut meter = Meter::default();
    for _ in 0..100 {
        pattern.is_in(&text, &mut meter);
    }
    println!("an expression that gives up: {:.3} ms, {} steps", ns(began, 100) / 1e6, meter.steps / 100);
    let long = format!("host ~= \"a\" or {}", vec!["state = \"x\""; 4_000].join(" or "));
    let began = Instant::now();
    let query = Query::new(&long).expect("a query");
    println!("a query of {} bytes compiled in {:.2} ms", long.len(), ns(began, 1) / 1e6);
    let event = event(1, 0.5);
    let began = Instant::now();
    let mut meter = Meter::default();
    query.matches(&event, &mut meter);
    println!("  an event checked in {:.3} ms, {} steps", ns(began, 1) / 1e6, meter.steps);
}

fn main() {
    let mut index = build();
    let random = |at: u32| (u64::from(at) * 2_654_435_761 % u64::from(EVENTS)) as u32;
    replace(&mut index, "random keys, new texts", random, false);
    replace(&mut index, "random keys, shared texts", random, true);
    replace(&mut index, "keys in order, new texts", |at| at, false);
    replace(&mut index, "keys in order, shared texts", |at| at, true);
    for text in [
        "host = \"web-000123\"",
        "host = \"web-000123\" and service = \"cpu 12\"",
        "service =~ \"smr-%\"",
        "service ~= \"^smr-[0-9]+$\"",
        "service = \"cpu 12\"",
        "service =~ \"%12\"",
        "tagged \"prod\" and host = \"web-000123\"",
        "host = \"web-000123\" or host = \"web-000124\"",
        "metric > 1000000",
        "true",
    ] {
        search(&index, text, false);
    }
    search(&index, "service =~ \"smr-%\"", true);
    hostile();
    expire(&mut index);
}
