//! Invariants of reading a saved state of aggregation rules, checked for one input. Called by seeded tests and by
//! the fuzz target `aggregation_rules`, never in production.

use model::{Now, SECOND_NS};
use twox_hash::XxHash3_64;

use super::{
    AggregationRuleFigures, AggregationRuleLimits, AggregationRulePlan, AggregationRules, Compute,
    ComputePlan, Feed, Late, Stamp,
};
use crate::bytes::put_varint;

const ID: u64 = 7;
const LIMITS: AggregationRuleLimits =
    AggregationRuleLimits { series_max: 40, bytes_max: 4_000, values_max: 20 };

/// Two aggregation rules with results of every kind.
pub(super) fn plans() -> Vec<AggregationRulePlan> {
    let plan = |every_s, expire_s, computes: &[Compute], late| AggregationRulePlan {
        every_s,
        expire_s,
        stamp: Stamp::End,
        computes: computes
            .iter()
            .map(|compute| ComputePlan { compute: *compute, name: "r".into() })
            .collect(),
        late,
        exact: false,
    };
    let all = [Compute::Sum, Compute::Percentile(90), Compute::Stddev, Compute::Count];
    vec![plan(10, 25, &all, Late::Dropped), plan(3, 4, &all[..2], Late::Oldest)]
}

/// The keys of the plans.
pub(super) fn keys(plans: &[AggregationRulePlan]) -> Vec<Vec<u8>> {
    let key = |plan: &AggregationRulePlan| {
        let mut key = Vec::new();
        plan.write_key(&mut key);
        key
    };
    plans.iter().map(key).collect()
}

pub(super) fn at(second: u64) -> Now {
    Now { mono_ns: 0, wall_ns: second * SECOND_NS }
}

/// A body with valid header and checksum.
pub(super) fn sealed(body: &[u8]) -> Vec<u8> {
    let mut bytes = b"STNROL\r\n\x01\0\0\0\x07\0\0\0\0\0\0\0".to_vec();
    bytes.extend_from_slice(body);
    let checksum = XxHash3_64::oneshot_with_seed(ID, &bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Reads `garbage`, depending on its first byte: as a whole state, as a body with a valid checksum, or as the
/// series of known aggregation rules. Panics when an invariant is violated.
pub fn check_one(garbage: &[u8]) {
    let [which, garbage @ ..] = garbage else { return };
    match which % 4 {
        0 => read(garbage),
        1 => read(&sealed(garbage)),
        _ => read(&sealed(&series(garbage))),
    }
}

/// A body that ends with `garbage`, after the keys of both aggregation rules.
fn series(garbage: &[u8]) -> Vec<u8> {
    let keys = keys(&plans());
    let mut body = Vec::new();
    put_varint(1_000, &mut body);
    put_varint(keys.len() as u64, &mut body);
    for key in keys {
        put_varint(key.len() as u64, &mut body);
        body.extend_from_slice(&key);
    }
    body.extend_from_slice(garbage);
    body
}

fn read(bytes: &[u8]) {
    let keys = keys(&plans());
    let mut aggregation_rules = AggregationRules::new(plans(), LIMITS, 1);
    let Ok(restored) = aggregation_rules.restore(&keys, bytes) else {
        assert_eq!(
            aggregation_rules.figures(),
            AggregationRuleFigures::default(),
            "everything is restored, or nothing"
        );
        return;
    };
    let figures = aggregation_rules.figures();
    assert_eq!(u64::from(figures.series), restored.series);
    assert!(figures.series <= LIMITS.series_max && figures.bytes <= LIMITS.bytes_max, "{figures:?}");
    check_restored(&aggregation_rules, &keys);
    for (compute, name) in [(0, b"n"), (1, b"m"), (2, b"n"), (3, b"n")] {
        let feed = Feed { aggregation_rule: 0, compute, name, value: 2.5, timestamp: 1_000 };
        let _fed = aggregation_rules.feed(feed, at(1_001));
    }
    let _emitted = aggregation_rules.tick(at(1_020), 3, |result| result.write_rest(&mut Vec::new()));
    check_restored(&aggregation_rules, &keys);
    let _emitted =
        aggregation_rules.finish(at(u64::MAX / SECOND_NS), |result| result.write_rest(&mut Vec::new()));
    assert_eq!(held(&aggregation_rules), (0, 0), "nothing is left when all was emitted");
}

/// Series and bytes. Counters are not saved.
fn held(aggregation_rules: &AggregationRules) -> (u32, usize) {
    let AggregationRuleFigures { series, bytes, jumps_back: _, future_results: _ } =
        aggregation_rules.figures();
    (series, bytes)
}

/// Checks that saving and restoring keeps the state.
fn check_restored(aggregation_rules: &AggregationRules, keys: &[Vec<u8>]) {
    let saved = aggregation_rules.save(keys, ID);
    let mut next = AggregationRules::new(plans(), LIMITS, 2);
    let restored = next.restore(keys, &saved).expect("a valid saved state");
    assert_eq!(restored.values_left, 0);
    let ((series, bytes), (series_before, bytes_before)) = (held(&next), held(aggregation_rules));
    assert_eq!((series, next.save(keys, ID).len()), (series_before, saved.len()));
    assert!(bytes <= bytes_before, "{bytes} bytes of {bytes_before}: spare capacity is not saved");
}
