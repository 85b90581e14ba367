//! Shared by examples that measure an aggregation.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use model::{Canonical, Kind, RawKey};

pub(crate) fn hash(kind: Kind, name: &[u8]) -> u64 {
    FixedState::with_seed(7).hash_one((kind as u8, name))
}

/// For names that are canonical already.
pub(crate) fn as_it_is(kind: Kind, raw: RawKey<'_>, out: &mut Vec<u8>) -> Canonical {
    out.extend_from_slice(raw.name);
    Canonical { name_len: raw.name.len(), clean: true, hash: hash(kind, raw.name) }
}

/// Processor time of this thread in nanoseconds, unaffected by other processes. 0 where the system does not provide
/// it.
pub(crate) fn cpu_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0.0)
}
