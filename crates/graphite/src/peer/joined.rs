//! The series of several stores or nodes as one list.
//!
//! Invariant: the answer does not depend on the order of the nodes, so that every node of a group gives the same one.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use crate::query::Fetched;

/// All series of `parts`, sorted by name, one for each name. Of a series that several have, the best is taken (see below), and
/// its gaps are filled from the others whose values are of the same times.
///
/// The best covers most seconds with values; among equals it has the finest step, the earliest start, the most values, and the
/// greater first value that differs.
pub fn joined(parts: Vec<Vec<Fetched>>) -> Vec<Fetched> {
    let mut all: BTreeMap<String, Vec<Fetched>> = BTreeMap::new();
    for mut one in parts.into_iter().flatten() {
        let name = std::mem::take(&mut one.name);
        all.entry(name).or_default().push(one);
    }
    let one = |(name, copies): (String, Vec<Fetched>)| Some(Fetched { name, ..best(copies)? });
    all.into_iter().filter_map(one).collect()
}

fn best(copies: Vec<Fetched>) -> Option<Fetched> {
    let mut ranked: Vec<_> = copies.into_iter().map(|one| (rank(&one), one)).collect();
    ranked.sort_by(|(rank_a, a), (rank_b, b)| rank_a.cmp(rank_b).then_with(|| by_values(a, b)));
    let mut ranked = ranked.into_iter().map(|(_, one)| one);
    let mut best = ranked.next()?;
    for other in ranked {
        fill(&mut best, &other);
    }
    Some(best)
}

type Rank = (Reverse<i64>, i64, i64, Reverse<usize>);

fn rank(one: &Fetched) -> Rank {
    let known = one.values.iter().filter(|value| !value.is_nan()).count();
    let seconds = i64::try_from(known).unwrap_or(i64::MAX).saturating_mul(one.step);
    (Reverse(seconds), one.step, one.start, Reverse(one.values.len()))
}

fn by_values(a: &Fetched, b: &Fetched) -> Ordering {
    let mut pairs = a.values.iter().zip(&b.values);
    pairs.find_map(|(a, b)| Some(b.total_cmp(a)).filter(|order| order.is_ne())).unwrap_or(Ordering::Equal)
}

fn fill(gaps: &mut Fetched, other: &Fetched) {
    let apart = other.start - gaps.start;
    if gaps.step != other.step || apart % gaps.step != 0 {
        return;
    }
    let first = apart / gaps.step;
    for (at, value) in (first..).zip(&other.values) {
        let gap = usize::try_from(at).ok().and_then(|at| gaps.values.get_mut(at));
        if let Some(gap) = gap.filter(|gap| gap.is_nan()) {
            *gap = *value;
        }
    }
}
