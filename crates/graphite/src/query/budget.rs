//! What one request may cost. All three limits are arguments of a request.

use super::error::{Code, QueryError};

/// Longest name that a function may make, in bytes.
pub const NAME_BYTES_MAX: usize = 1 << 20;

/// Units of work between two questions whether to go on. One loop over the values of one series is not interrupted.
pub const STEPS_BETWEEN_POLLS: usize = 100_000;

/// A function's report of work that it has done, which may end the request.
pub(crate) type Poll<'p> = dyn FnMut(usize) -> Result<(), QueryError> + 'p;

/// Limits of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most series that are fetched for all targets together.
    pub series_max: usize,
    /// Most values that are fetched and computed together.
    pub points_max: usize,
    /// Most units of work: about one for each value, window element, and byte of a name.
    pub steps_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { series_max: 100_000, points_max: 50_000_000, steps_max: 1_000_000_000 }
    }
}

/// What is left of the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Series that may still be fetched.
    pub series: usize,
    /// Values that may still be fetched or computed.
    pub points: usize,
}

/// What a request has cost so far.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: Limits,
    series: usize,
    points: usize,
    steps: usize,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Budget {
        Budget { limits, series: 0, points: 0, steps: 0 }
    }

    pub(crate) fn room(&self) -> Room {
        Room {
            series: self.limits.series_max.saturating_sub(self.series),
            points: self.limits.points_max.saturating_sub(self.points),
        }
    }

    /// Counts fetched series.
    pub(crate) fn charge_series(&mut self, count: usize) -> Result<(), QueryError> {
        let hint = "use narrower globs or tag expressions";
        charge(&mut self.series, count, self.limits.series_max, "series", hint)
    }

    /// Counts fetched and computed values.
    pub(crate) fn charge_points(&mut self, count: usize) -> Result<(), QueryError> {
        let hint = "use a shorter time range, larger steps, or narrower globs";
        charge(&mut self.points, count, self.limits.points_max, "points", hint)
    }

    /// Counts work.
    pub(crate) fn charge_steps(&mut self, count: usize) -> Result<(), QueryError> {
        let hint = "use fewer nested functions, smaller windows, or a shorter time range";
        charge(&mut self.steps, count, self.limits.steps_max, "steps of work", hint)
    }
}

fn charge(spent: &mut usize, count: usize, max: usize, what: &str, hint: &str) -> Result<(), QueryError> {
    *spent = spent.saturating_add(count);
    if *spent <= max {
        return Ok(());
    }
    Err(QueryError::new(Code::Limit, format!("this request needs more than {max} {what}")).hint(hint))
}

#[test]
fn each_limit_is_reached_and_named() {
    let limits = Limits { series_max: 2, points_max: 3, steps_max: 4 };
    let mut budget = Budget::new(limits);
    assert_eq!(budget.room(), Room { series: 2, points: 3 });
    assert!(
        budget.charge_series(2).is_ok() && budget.charge_points(3).is_ok() && budget.charge_steps(4).is_ok()
    );
    assert_eq!(budget.room(), Room { series: 0, points: 0 });
    let message = |result: Result<(), QueryError>| result.expect_err("above the limit").to_string();
    assert!(message(budget.charge_series(1)).contains("more than 2 series"));
    assert!(message(budget.charge_points(1)).contains("more than 3 points"));
    assert!(message(budget.charge_steps(usize::MAX)).contains("more than 4 steps"));
}
