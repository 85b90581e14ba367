//! Limits of one request of this API.

use graphite::query::Limits;

/// What one query may cost: its values take at most some 100 MiB.
pub(super) const LIMITS: Limits =
    Limits { series_max: 50_000, points_max: 10_000_000, steps_max: 1_000_000_000 };

/// Most values of an answer as text: some 100 MB of JSON. Formats for programs take a third of it, and have only the limit of a query.
pub(super) const TEXT_VALUES_MAX: usize = 3_000_000;

/// Most names of one answer.
pub(in crate::admin) const NAMES_MAX: usize = 1_000_000;
