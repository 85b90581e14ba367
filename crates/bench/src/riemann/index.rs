//! An index of very many events: its memory, its queries, and datagrams that come meanwhile.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use model::{EventTime, EventsBuilder, PacketBatch};
use sys::clock::Clock;

use super::connection::Connection;
use super::events::{self, add_indexed};
use super::node::{CONFIG, Node, Program};
use crate::contestant::api_client::Counts;
use crate::ground::Ground;
use crate::report::{Check, Row, ScenarioReport, figure};
use crate::traffic::generator::Generator;
use crate::traffic::packets::Ring;
use crate::{BenchError, failed};

/// Events of the service that a user of Riemann searched for, of a million (riemann issue 367).
const SMR: u64 = 12_756;
const SMR_OF: u64 = 1_000_000;

/// Events of a message that fills the index, and messages sent before their replies are read.
const PACK: u64 = 100;
const IN_FLIGHT: usize = 16;

/// Events of a datagram, and a second's events.
const PACK_OF_DATAGRAM: u64 = 10;
const EVENTS_PER_SECOND: u64 = 200_000;

/// Queries of each kind, while nothing else comes.
const LOOKUPS: u64 = 200;
const SCANS: u64 = 20;

/// Time between two scans while datagrams come.
const SCAN_EVERY: Duration = Duration::from_millis(250);

/// The last datagrams have come, or are lost, after so many looks without a change.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const LOOKS_UNCHANGED_MAX: u32 = 20;

/// The asked figures.
const EVENT_BYTES_MAX: f64 = 500.0;
const LOOKUP_MS_MAX: f64 = 1.0;
const SCAN_MS_MAX: f64 = 100.0;

const SCAN: &str = "service =~ \"smr-%\"";

/// A query's time in milliseconds, and the events of its reply.
fn ask(connection: &mut Connection, text: &str) -> io::Result<(f64, usize)> {
    let (message, mut reply) = (events::query(text), Vec::new());
    let begin_ns = Clock::mono_ns();
    connection.ask(&message, &mut reply)?;
    let took_ms = (Clock::mono_ns() - begin_ns) as f64 / 1e6;
    let mut found = EventsBuilder::default();
    let decoded =
        wire::riemann::decode(&reply, EventTime::Seconds(0), wire::riemann::Limits::default(), &mut found);
    match decoded {
        Ok(message) => Ok((took_ms, message.events)),
        Err(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "the reply to a query is no message")),
    }
}

fn fill(connection: &mut Connection, many: u64, special: u64) -> io::Result<()> {
    let (mut batch, mut bytes, mut messages) = (EventsBuilder::default(), Vec::new(), 0);
    for first in (0..many).step_by(PACK as usize) {
        batch.clear();
        (first..(first + PACK).min(many)).for_each(|number| add_indexed(number, special, &mut batch));
        events::framed(&batch, &mut bytes);
        messages += 1;
        if messages == IN_FLIGHT || first + PACK >= many {
            connection.write(&bytes)?;
            connection.read_replies(messages)?;
            (messages, bytes) = (0, Vec::new());
        }
    }
    connection.settle()
}

/// Datagrams of the events of the index, in no order.
fn datagrams(many: u64, special: u64) -> Ring {
    const DATAGRAMS: u64 = 20_000;
    const STRIDE: u64 = 7_919_317;
    let (mut packets, mut batch, mut bytes) = (PacketBatch::default(), EventsBuilder::default(), Vec::new());
    for datagram in 0..DATAGRAMS {
        batch.clear();
        bytes.clear();
        let numbers = datagram * PACK_OF_DATAGRAM..(datagram + 1) * PACK_OF_DATAGRAM;
        numbers.for_each(|at| add_indexed(at * STRIDE % many, special, &mut batch));
        wire::riemann::request(None, batch.view().iter(), &mut bytes);
        packets.push(&bytes);
    }
    Ring { packets, pack: PACK_OF_DATAGRAM }
}

/// What was measured while datagrams came.
struct Beside {
    sent: u64,
    scans: Vec<f64>,
    lookups: Vec<f64>,
}

/// Sends datagrams at a fixed rate, and queries meanwhile.
fn beside(
    to: SocketAddr,
    connection: &mut Connection,
    ring: &Ring,
    (many, seconds): (u64, u64),
) -> io::Result<Beside> {
    let rate = EVENTS_PER_SECOND / PACK_OF_DATAGRAM;
    let ended = AtomicBool::new(false);
    thread::scope(|threads| {
        let sender = threads.spawn(|| {
            let sent = Generator::new(to).and_then(|mut to| to.send(ring, rate * seconds, rate));
            ended.store(true, Relaxed);
            sent
        });
        let (mut scans, mut lookups, mut number) = (Vec::new(), Vec::new(), 0);
        while !ended.load(Relaxed) {
            scans.push(ask(connection, SCAN)?.0);
            lookups.push(ask(connection, &lookup(number, many))?.0);
            number += 1;
            thread::sleep(SCAN_EVERY);
        }
        let sent = sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(Beside { sent: sent.samples, scans, lookups })
    })
}

/// What has been counted since `before`, once it is all that was sent, or nothing changes any more.
fn settled(node: &Node, before: Counts, sent: u64) -> Result<Counts, BenchError> {
    let (mut last, mut unchanged) = (Counts::default(), 0);
    loop {
        let now = node.counts()?.since(before);
        unchanged = if now == last { unchanged + 1 } else { 0 };
        if now.samples >= sent || unchanged == LOOKS_UNCHANGED_MAX {
            return Ok(now);
        }
        last = now;
        thread::sleep(LOOK_EVERY);
    }
}

/// The query for one of the hosts.
fn lookup(number: u64, many: u64) -> String {
    format!("host = \"web{:06}\"", number * 7_919 % (many / 40).max(1))
}

/// Memory and queries of an index of `many` events, and ingestion for `seconds` beside queries.
pub(super) fn index(ground: &mut Ground<'_>, many: u64, seconds: u64) -> Result<ScenarioReport, BenchError> {
    let special = SMR * many / SMR_OF;
    let node = Node::start(&ground.stand, Program::Staunch, CONFIG)?;
    let asked = || failed("query a daemon");
    let mut connection = Connection::open(node.address).map_err(failed("connect to a daemon"))?;
    let before = node.memory()?.resident;
    ground.say("index: fills it");
    fill(&mut connection, many, special).map_err(failed("send events"))?;
    let bytes = node.memory()?.resident.saturating_sub(before) as f64 / many as f64;
    ground.say("index: queries");
    let (mut lookups, mut scans, mut found) = (Vec::new(), Vec::new(), 0);
    let began_ns = node.cpu_ns()?;
    for number in 0..LOOKUPS {
        lookups.push(ask(&mut connection, &lookup(number, many)).map_err(asked())?.0);
    }
    let between_ns = node.cpu_ns()?;
    for _ in 0..SCANS {
        let (took_ms, events) = ask(&mut connection, SCAN).map_err(asked())?;
        scans.push(took_ms);
        found = events;
    }
    let cpu_ms = |from: u64, to: u64, queries: u64| vec![(to - from) as f64 / 1e6 / queries as f64];
    let of_lookup = cpu_ms(began_ns, between_ns, LOOKUPS);
    let of_scan = cpu_ms(between_ns, node.cpu_ns()?, SCANS);
    ground.say("index: datagrams beside queries");
    let ring = datagrams(many, special);
    let counts = node.counts()?;
    let beside =
        beside(node.address, &mut connection, &ring, (many, seconds)).map_err(failed("send datagrams"))?;
    let counted = settled(&node, counts, beside.sent)?;
    drop(connection);
    node.stop()?;
    let row = |what, unit, runs| Row { who: "staunch", what, unit, runs };
    let rows = vec![
        row("memory of an event", "bytes", vec![bytes]),
        row("host = \"x\"", "ms", lookups),
        row("service =~ \"smr-%\"", "ms", scans),
        row("CPU of host = \"x\"", "ms", of_lookup),
        row("CPU of smr-%", "ms", of_scan),
        row("host, while busy", "ms", beside.lookups),
        row("smr-%, while busy", "ms", beside.scans),
    ];
    let sent = beside.sent as f64;
    let checks = vec![
        Check::at_most("bytes of an event:", bytes, EVENT_BYTES_MAX),
        Check::at_most("ms of host = \"x\":", rows[1].median(), LOOKUP_MS_MAX),
        Check::at_most("ms of service =~ \"smr-%\":", rows[2].median(), SCAN_MS_MAX),
        Check::at_least("events found by it, of those that match:", found as f64, special as f64),
        Check::at_least(
            &format!("events received, of {} sent in datagrams:", figure(sent)),
            counted.samples as f64,
            sent,
        ),
        Check::at_most("datagrams that the kernel dropped:", counted.dropped as f64, 0.0),
    ];
    let what = format!(
        "{} events, {} of them match the scan; then {} events/s in datagrams of {PACK_OF_DATAGRAM} for {seconds} s, both queries \
         every {} ms; times are from the request to the whole reply",
        figure(many as f64),
        figure(special as f64),
        figure(EVENTS_PER_SECOND as f64),
        SCAN_EVERY.as_millis()
    );
    Ok(ScenarioReport { name: "index", what, rows, checks })
}
