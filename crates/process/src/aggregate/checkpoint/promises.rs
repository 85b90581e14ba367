//! What holds of any bytes that are read as saved state, checked for one input: by seeded tests and by the fuzz target
//! `checkpoint`. Never part of a sample's path.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use model::{Canonical, Kind, Now, RawKey, SECOND_NS};

use super::format::{BlockHeader, Form};
use super::{Slice, Told};
use crate::aggregate::{AggregatePlan, Aggregator, ExpiryPlan, KeyFlushPlan, SeriesExpiry, Tick};

const ID: u64 = 0x5eed;
const SERIES_MAX: u32 = 40;
/// What an aggregation of a few series takes, with room for keys of every length.
const BASE_BYTES: u64 = 16 << 20;
/// What a byte that was read may stand for in memory, at most: a member of a set is two, with room to grow.
const BYTES_PER_BYTE: u64 = 100;

const START: Now = Now { mono_ns: 50 * SECOND_NS, wall_ns: 1_000_000 * SECOND_NS };

fn plan(idle: SeriesExpiry) -> AggregatePlan {
    AggregatePlan {
        window_ms: 1000,
        timer_exact_max: 4,
        set_exact_max: 4,
        set_members: true,
        series_max: SERIES_MAX,
        idle: ExpiryPlan { counters: idle, gauges: idle, timers: idle, sets: idle },
        key_flush: Some(KeyFlushPlan { interval_ms: 1000, percent: 100.0, round_up: true }),
        ..AggregatePlan::default()
    }
}

fn canonical(kind: Kind, raw: RawKey<'_>, out: &mut Vec<u8>) -> Canonical {
    out.extend_from_slice(raw.name);
    out.extend_from_slice(raw.tags);
    let hash = FixedState::with_seed(3).hash_one((kind as u8, raw.name, raw.tags));
    Canonical { name_len: raw.name.len(), clean: false, hash }
}

/// Restores `bytes`, flushes, and saves what is left; gives the series that came back.
fn read(bytes: &[u8], told_s: Option<u64>, idle: SeriesExpiry) -> u64 {
    let mut aggregator = Aggregator::new(plan(idle), START);
    let Ok(restored) = aggregator.restore(bytes, Told { label_s: told_s, number: None }, START, canonical)
    else {
        assert!(aggregator.is_empty(), "what is no saved state changes nothing");
        return 0;
    };
    let figures = aggregator.figures();
    assert!(restored.series >= figures.series_total() && figures.series_total() <= u64::from(SERIES_MAX));
    assert!(figures.memory_bytes <= BASE_BYTES + BYTES_PER_BYTE * bytes.len() as u64, "{figures:?}");
    for seconds in [0, 1, 2] {
        let now = START.plus_ns(seconds * SECOND_NS);
        while !matches!(aggregator.tick(now, 100, |_, _| {}), Tick::Idle | Tick::Ended(_)) {}
        let _report = aggregator.key_flush(now);
    }
    let mut again = Vec::new();
    if aggregator.save_begin(ID, 1, START, &mut again) {
        while aggregator.save_slice(7, &mut again) == Slice::More {}
    }
    restored.series
}

/// The saved state of an aggregation without a series: header, a block of busy names, the end.
fn empty() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut aggregator = Aggregator::new(plan(SeriesExpiry::Keep), START);
    assert!(aggregator.save_begin(ID, 1, START, &mut bytes));
    while aggregator.save_slice(100, &mut bytes) == Slice::More {}
    bytes
}

/// A block whose checksums are right, whatever is in it.
fn block(form: Form, body: &[u8], to: &mut Vec<u8>) {
    let start = BlockHeader::reserve(to);
    to.extend_from_slice(body);
    BlockHeader::fill(form, body.len() as u32, ID, start, to);
}

/// Reads `garbage` in every place where bytes are read, and panics where a promise does not hold.
pub fn check(garbage: &[u8]) {
    read(garbage, None, SeriesExpiry::Keep);
    [Form::Series, Form::BusyNames, Form::End].into_iter().for_each(|form| inside(form, garbage));
    around(garbage);
    over(garbage);
}

/// One of these checks, by the first byte: the fuzz target gets to more inputs in the same time.
pub fn check_one(garbage: &[u8]) {
    let [which, garbage @ ..] = garbage else { return };
    match which % 8 {
        0 => {
            let _series = read(garbage, None, SeriesExpiry::Keep);
        }
        1 => inside(Form::BusyNames, garbage),
        2 => inside(Form::End, garbage),
        3 => around(garbage),
        4 => over(garbage),
        _ => inside(Form::Series, garbage),
    }
}

/// As the body of a block whose checksums are right.
fn inside(form: Form, garbage: &[u8]) {
    let mut bytes = empty()[..super::format::HEADER_BYTES].to_vec();
    block(form, garbage, &mut bytes);
    read(&bytes, None, SeriesExpiry::Keep);
    read(&bytes, Some(START.wall_seconds() + 1), SeriesExpiry::Delete { ttl_windows: 2 });
}

/// A series between garbage comes back.
fn around(garbage: &[u8]) {
    let mut bytes = empty()[..super::format::HEADER_BYTES].to_vec();
    bytes.extend_from_slice(garbage);
    let start = BlockHeader::reserve(&mut bytes);
    bytes.extend_from_slice(&[Kind::Counter as u8, 0, 1, 0, b'a', 0, 0, 0, 0, 0, 0, 0x45, 0x40]);
    BlockHeader::fill(Form::Series, 1, ID, start, &mut bytes);
    bytes.extend_from_slice(garbage);
    assert!(read(&bytes, None, SeriesExpiry::Keep) >= 1, "what is whole is read");
}

/// Any bytes over any other.
fn over(garbage: &[u8]) {
    let mut bytes = empty();
    for pair in garbage.as_chunks::<2>().0 {
        let at = usize::from(pair[0]) * bytes.len() / 256;
        bytes[at] ^= pair[1];
    }
    read(&bytes, None, SeriesExpiry::Keep);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bytes that look like records: kinds, small numbers, a few lengths, numbers that are none.
    fn likely() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            4 => (0u8..8).prop_map(|mark| vec![mark, 3, 1, 0, b'n']),
            2 => any::<f64>().prop_map(|number| number.to_le_bytes().to_vec()),
            2 => prop::collection::vec(0u8..4, 1..6),
            1 => Just(vec![0xff; 9]),
            1 => prop::collection::vec(any::<u8>(), 0..40),
            1 => Just(f64::NAN.to_le_bytes().to_vec()),
            1 => Just(vec![2, 1, 0, 0, 0, 2]),
        ];
        prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_are_read_without_harm(garbage in prop_oneof![likely(), prop::collection::vec(any::<u8>(), 0..300)]) {
            check(&garbage);
        }
    }
}
