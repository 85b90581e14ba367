//! What the most used streams cost: nanoseconds per event, and bytes per fork of `by`.
//!
//! `cargo run --release -p streams --example stream_costs`. The events have a host, a service, a state, an integer metric, a time, a
//! ttl and one tag; there are a thousand of them, of a hundred hosts. Each row is the least of
//! twenty runs, since the machine may have other work.

#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures time and prints it")]

use std::fs;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use arcstr::ArcStr;
use streams::event::{Event, Field};
use streams::graph::{Graph, NodeId};
use streams::language::budget::Limits;
use streams::language::evaluation::Evaluation;
use streams::language::host::Nowhere;
use streams::language::machine::Machine;
use streams::nodes::{construct, library};
use streams::number::Number;
use streams::value::Value;

/// Events of a run.
const EVENTS: usize = 100_000;
/// Forks of the large `by`.
const FORKS: usize = 1_000_000;

/// A graph in whose configs `out` drops everything.
fn graph() -> Graph {
    let world = Arc::new(streams::language::clojure());
    library::add(&world);
    let user = ArcStr::from("user");
    world.refer_all(&user, "riemann.streams");
    let mut graph =
        Graph::new(Evaluation::new(Arc::clone(&world), Box::new(Nowhere::default())), 1_000_000_000);
    world.intern(&user, &"out".into()).set(construct(&mut graph, "bit-bucket", &[]).unwrap_or_default());
    graph
}

/// The stream of a text. None if it has a mistake, which is printed.
fn make(graph: &mut Graph, text: &str) -> Option<NodeId> {
    match Machine::new(graph, Limits::LOAD).load(text, "costs") {
        Ok(Value::Stream(stream)) => Some(stream),
        Ok(_) => None,
        Err(error) => {
            println!("{text}: {error}");
            None
        }
    }
}

fn event(host: &ArcStr, number: i64) -> Value {
    let mut event = Event::default();
    event.set(Field::Host, Value::Text(host.clone()));
    event.set(Field::Service, Value::text("cpu user"));
    event.set(Field::State, Value::text(if number % 10 == 0 { "warning" } else { "ok" }));
    event.set(Field::Metric, Value::Number(Number::Int(number)));
    event.set(Field::Tags, Value::vector([Value::text("production")]));
    event.set(Field::Time, Value::Number(Number::Int(1_000)));
    event.set(Field::Ttl, Value::Number(Number::Int(60)));
    Value::Event(Arc::new(event))
}

fn events() -> Vec<Value> {
    let hosts: Vec<ArcStr> = (0..100).map(|host| format!("web{host}.example.com").into()).collect();
    (0..1_000).map(|at| event(&hosts[at % hosts.len()], at as i64)).collect()
}

/// Nanoseconds per event, in the best of twenty runs.
fn cost(mut run: impl FnMut()) -> f64 {
    let mut least = f64::INFINITY;
    for _ in 0..20 {
        let start = Instant::now();
        run();
        least = least.min(start.elapsed().as_nanos() as f64 / EVENTS as f64);
    }
    least
}

const STREAMS: &[&str] = &[
    "(sdo out)",
    "(default :ttl 60 out)",
    "(default :dc \"a\" out)",
    "(expired out)",
    "(where (state \"warning\") out)",
    "(where (service #\"^cpu\") out)",
    "(where (and (service \"cpu user\") (> metric 5)) out (else out))",
    "(with :state \"ok\" out)",
    "(rate 5 out)",
    "(where (service #\"^cpu\") (rate 5 out))",
    "(where (and (service \"cpu user\") (state \"ok\")) (rate 5 out))",
    "(where (service #\"c.u\") out)",
    "(by [:host :service] (sdo out))",
    "(by [:host :service] (rate 5 out))",
    "(smap :metric out)",
    "(batch 100 1 out)",
    "(throttle 5 60 out)",
    "(by [:host :service] (changed :state out))",
    "(rollup 5 60 out)",
    "(changed :state out)",
    "(moving-time-window 0 out)",
    "(moving-event-window 10 out)",
    "(coalesce 5 out)",
    "(percentiles 5 [0.5 0.99] out)",
    "(project [(service \"cpu user\") (state \"ok\")] out)",
    "(fixed-time-window 60 out)",
    "(tagged \"production\" out)",
    "(split (state \"critical\") out (state \"warning\") out out)",
    "(runs 3 :state out)",
    "(tag \"seen\" out)",
    "(scale 2 out)",
    "(counter out)",
];

fn streams() {
    let events = events();
    for text in STREAMS {
        let mut graph = graph();
        let Some(stream) = make(&mut graph, text) else { continue };
        let mut now_us = graph.now_us();
        let shared = cost(|| {
            for _ in 0..EVENTS / events.len() {
                for event in &events {
                    let _ = black_box(graph.push(stream, event));
                }
                now_us += 10_000;
                graph.advance(now_us, usize::MAX);
            }
        });
        println!("{shared:>8.1} ns  {text}");
    }
}

/// Streams that change an event that nobody else has.
fn owned() {
    let host: ArcStr = "web1.example.com".into();
    let make_only = cost(|| (0..EVENTS).for_each(|at| drop(black_box(event(&host, at as i64)))));
    for text in ["(sdo out)", "(with :state \"ok\" out)", "(with :dc \"a\" (default :ttl 60 (scale 2 out)))"]
    {
        let mut graph = graph();
        let Some(stream) = make(&mut graph, text) else { continue };
        let owned = cost(|| {
            (0..EVENTS).for_each(|at| {
                let _ = black_box(graph.push_owned(stream, &mut event(&host, at as i64)));
            });
        });
        println!("{:>8.1} ns  {text}, of an event that nobody else has", owned - make_only);
    }
}

/// Resident bytes of this process.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<usize>().ok()).unwrap_or(0) * 1_024
}

/// Which key comes when.
type Order = fn(usize) -> usize;

/// A `by` of many forks: each event is of another key, once in the order in which the keys came, once in an order that no cache
/// foresees.
fn million_forks() {
    let hosts: Vec<ArcStr> = (0..FORKS).map(|host| format!("web{host}.example.com").into()).collect();
    let orders: [(&str, Order); 2] =
        [("in their order", |at| at % FORKS), ("in no order", |at| (at * 7_919_317) % FORKS)];
    let walk = |graph: &mut Graph, stream, order: Order| {
        let mut next = 0;
        cost(|| {
            for at in next..next + EVENTS {
                let _ = black_box(graph.push_owned(stream, &mut event(&hosts[order(at)], 1)));
            }
            next += EVENTS;
        })
    };
    let mut alone = graph();
    let before = resident();
    let made = make(&mut alone, "(dotimes [_ 1000000] (counter out)) (counter out)");
    let children = resident().saturating_sub(before);
    let Some(counter) = made else { return };
    let mut graph = graph();
    let Some(by) = make(&mut graph, "(by [:host :service] (counter out))") else { return };
    let before = resident();
    hosts.iter().for_each(|host| drop(graph.push_owned(by, &mut event(host, 1))));
    let bytes = resident().saturating_sub(before);
    for (name, order) in orders {
        let (without, with) = (walk(&mut alone, counter, order), walk(&mut graph, by, order));
        println!("{with:>8.1} ns  by of {FORKS} forks {name}; {without:.1} ns without it");
    }
    let each = |bytes: usize| bytes / FORKS;
    println!("{:>8} bytes a fork, {} of them its children's", each(bytes), each(children));
}

fn main() {
    streams();
    owned();
    million_forks();
}
