//! The events of the benchmark, and messages of them.

use std::fmt::Display;

use model::{EventTime, EventsBuilder, NumberRef, TextField};
use sys::clock::Clock;

/// Hosts and services of the events of a known few.
const HOSTS: u64 = 100;
const SERVICES: u64 = 100;

/// Pairs of host and service of a known few.
pub(super) const KEYS: u64 = HOSTS * SERVICES;

/// Time to live of events, and of those of an index of very many, which must not expire meanwhile; in seconds.
const TTL_S: f32 = 60.0;
const INDEXED_TTL_S: f32 = 86_400.0;

/// Adds an event of six fields, as agents send them.
pub(super) fn add(host: impl Display, service: impl Display, number: u64, batch: &mut EventsBuilder) {
    add_with_ttl((host, service), number, TTL_S, batch);
}

fn add_with_ttl(
    (host, service): (impl Display, impl Display),
    number: u64,
    ttl_s: f32,
    batch: &mut EventsBuilder,
) {
    let mut event = batch.event();
    event.text(TextField::Host, host);
    event.text(TextField::Service, service);
    event.text(TextField::State, if number.is_multiple_of(10) { "warning" } else { "ok" });
    event.metric(NumberRef::F64(number as f64 / 8.0));
    event.time(EventTime::Seconds(now_s()));
    event.ttl_s(ttl_s);
    event.finish();
}

/// The event with this number: of one of [`KEYS`] pairs, in an order without neighbours.
pub(super) fn add_known(number: u64, batch: &mut EventsBuilder) {
    let key = number.wrapping_mul(2_654_435_761) % KEYS;
    add(
        format_args!("web{:02}.example.com", key % HOSTS),
        format_args!("requests endpoint{:02}", key / HOSTS),
        number,
        batch,
    );
}

/// An event of an index of very many: so many services on a host, as an agent has.
pub(super) fn add_indexed(number: u64, special: u64, batch: &mut EventsBuilder) {
    const OF_HOST: u64 = 40;
    let host = format_args!("web{:06}", number / OF_HOST);
    if number < special {
        add_with_ttl((host, format_args!("smr-{number}")), number, INDEXED_TTL_S, batch);
    } else {
        add_with_ttl((host, format_args!("cpu {}", number % OF_HOST)), number, INDEXED_TTL_S, batch);
    }
}

/// The message of some events, with its length before it.
pub(super) fn framed(batch: &EventsBuilder, out: &mut Vec<u8>) {
    let is_whole = wire::riemann::framed(out, |out| wire::riemann::request(None, batch.view().iter(), out));
    assert!(is_whole, "a message of the benchmark is far below 4 GiB");
}

/// The message of a query, with its length before it.
pub(super) fn query(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let is_whole =
        wire::riemann::framed(&mut out, |out| wire::riemann::request(Some(text), std::iter::empty(), out));
    assert!(is_whole, "a query of the benchmark is far below 4 GiB");
    out
}

fn now_s() -> i64 {
    i64::try_from(Clock::now().wall_seconds()).unwrap_or(i64::MAX)
}

#[test]
fn the_known_few_are_as_many_as_they_say() {
    let mut batch = EventsBuilder::default();
    (0..KEYS).for_each(|number| add_known(number, &mut batch));
    let keys: std::collections::BTreeSet<_> =
        batch.view().iter().map(|event| (event.host(), event.service())).collect();
    assert_eq!(keys.len() as u64, KEYS);
}
