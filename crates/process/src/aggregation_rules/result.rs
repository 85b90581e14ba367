//! What an aggregation rule emits: its results, and how many of them.

use super::Compute;

/// One result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RuleResult<'a> {
    /// Index in the list given to [`AggregationRules::new`](super::AggregationRules::new).
    pub aggregation_rule: u16,
    /// The computed function.
    pub compute: Compute,
    /// Its name.
    pub name: &'a [u8],
    /// Finite.
    pub value: f64,
    /// Unix seconds.
    pub timestamp: u64,
    /// See [`AggregationRulePlan::exact`](super::AggregationRulePlan::exact).
    pub exact: bool,
}

/// Result of [`AggregationRules::tick`](super::AggregationRules::tick) or [`AggregationRules::finish`](super::AggregationRules::finish).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Emitted {
    /// Results emitted.
    pub results: u64,
    /// Results that were infinite and not emitted.
    pub not_finite: u64,
    /// Values in windows that had not ended, dropped by [`AggregationRules::finish`](super::AggregationRules::finish).
    pub values_left: u64,
    /// True when more results are due: call again at once.
    pub more: bool,
}
