//! Invariants of reading a saved state, checked for one input. Called by seeded tests and by the fuzz target
//! `checkpoint`, never in production.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use model::{Canonical, Kind, Now, RawKey, SECOND_NS};

use super::format::{BlockHeader, BlockKind};
use super::{LastFlush, Slice};
use crate::aggregate::{AggregatePlan, Aggregator, ExpiryPlan, KeyFlushPlan, SeriesExpiry, Tick};

const ID: u64 = 0x5eed;
const SERIES_MAX: u32 = 40;
/// Memory of an aggregation with a few series, with room for keys of every length.
const BASE_BYTES: u64 = 16 << 20;
/// Maximum memory per byte read: a member of a set is two bytes, with room to grow.
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

/// Restores `bytes`, flushes, and saves the rest. Returns the number of restored series.
fn read(bytes: &[u8], emitted_s: Option<u64>, idle: SeriesExpiry) -> u64 {
    let mut aggregator = Aggregator::new(plan(idle), START);
    let Ok(restored) =
        aggregator.restore(bytes, LastFlush { label_s: emitted_s, number: None }, START, canonical)
    else {
        assert!(aggregator.is_empty(), "an invalid state changes nothing");
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

/// The saved state of an aggregation without series: header, a block of busy names, the end.
fn empty() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut aggregator = Aggregator::new(plan(SeriesExpiry::Keep), START);
    assert!(aggregator.save_begin(ID, 1, START, &mut bytes));
    while aggregator.save_slice(100, &mut bytes) == Slice::More {}
    bytes
}

/// A block with valid checksums and any body.
fn block(kind: BlockKind, body: &[u8], to: &mut Vec<u8>) {
    let start = BlockHeader::reserve(to);
    to.extend_from_slice(body);
    BlockHeader::fill(kind, body.len() as u32, ID, start, to);
}

/// Reads `garbage` at every place where bytes are read. Panics when an invariant is violated.
pub fn check(garbage: &[u8]) {
    read(garbage, None, SeriesExpiry::Keep);
    [BlockKind::Series, BlockKind::BusyNames, BlockKind::End]
        .into_iter()
        .for_each(|kind| inside(kind, garbage));
    around(garbage);
    over(garbage);
}

/// Runs one of these checks, chosen by the first byte, so that the fuzz target tries more inputs in the same time.
pub fn check_one(garbage: &[u8]) {
    let [which, garbage @ ..] = garbage else { return };
    match which % 8 {
        0 => {
            let _series = read(garbage, None, SeriesExpiry::Keep);
        }
        1 => inside(BlockKind::BusyNames, garbage),
        2 => inside(BlockKind::End, garbage),
        3 => around(garbage),
        4 => over(garbage),
        _ => inside(BlockKind::Series, garbage),
    }
}

/// Garbage as the body of a block with valid checksums.
fn inside(kind: BlockKind, garbage: &[u8]) {
    let mut bytes = empty()[..super::format::HEADER_BYTES].to_vec();
    block(kind, garbage, &mut bytes);
    read(&bytes, None, SeriesExpiry::Keep);
    read(&bytes, Some(START.wall_seconds() + 1), SeriesExpiry::Delete { ttl_windows: 2 });
}

/// A series between garbage is restored.
fn around(garbage: &[u8]) {
    let mut bytes = empty()[..super::format::HEADER_BYTES].to_vec();
    bytes.extend_from_slice(garbage);
    let start = BlockHeader::reserve(&mut bytes);
    bytes.extend_from_slice(&[Kind::Counter as u8, 0, 1, 0, b'a', 0, 0, 0, 0, 0, 0, 0x45, 0x40]);
    BlockHeader::fill(BlockKind::Series, 1, ID, start, &mut bytes);
    bytes.extend_from_slice(garbage);
    assert!(read(&bytes, None, SeriesExpiry::Keep) >= 1, "undamaged series are restored");
}

/// Garbage over every part of a valid state.
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

    /// Bytes that look like records: kinds, small numbers, a few lengths, NaN and infinities.
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
        fn any_bytes_are_read_without_a_panic(garbage in prop_oneof![likely(), prop::collection::vec(any::<u8>(), 0..300)]) {
            check(&garbage);
        }
    }
}
