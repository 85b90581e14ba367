//! Limits of one request of this API.

use graphite::query::Limits;

/// What one query may cost: its values take at most some 100 MiB.
pub(super) const LIMITS: Limits =
    Limits { series_max: 50_000, points_max: 10_000_000, steps_max: 1_000_000_000 };

/// Most names of one answer.
pub(in crate::admin) const NAMES_MAX: usize = 1_000_000;
