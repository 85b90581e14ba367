//! Series to curves: consolidated to pixels, coloured and stacked (spec graphite §6.5, §6.13).
//!
//! Invariant: a value of a curve is finite or NaN, which is null; all curves together have at most `POINTS_MAX` values, or
//! two for each.

use super::color::Color;
use super::options::{AreaMode, Options};
use super::request::{DrawError, KeepGoing};
use crate::query::Series;

/// Most values that all curves of an image have together.
const POINTS_MAX: usize = 200_000;

/// Larger values are drawn as this, so that sums and differences stay finite.
const VALUE_MAX: f64 = 1e300;

/// How a curve is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Line,
    Area,
    /// Vertical lines.
    Infinite,
    /// Only the base of the next one.
    Hidden,
}

/// One series as it is drawn.
#[derive(Debug)]
pub(super) struct Curve<'s> {
    pub(super) series: &'s Series,
    pub(super) color: Color,
    pub(super) kind: Kind,
    /// True on the second axis.
    pub(super) is_right: bool,
    /// Epoch seconds of the first value.
    pub(super) start: i64,
    /// Seconds between two values.
    pub(super) step: i64,
    pub(super) values: Vec<f64>,
    /// What an area stands on, for each value; nothing is the zero line.
    pub(super) base: Option<Vec<f64>>,
}

impl Curve<'_> {
    /// Epoch seconds of the value of a number.
    pub(super) fn time(&self, number: usize) -> i64 {
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        self.start.saturating_add(self.step.saturating_mul(number))
    }

    /// The value at a time; NaN outside.
    fn at(&self, time: i64) -> f64 {
        let number = time.saturating_sub(self.start).div_euclid(self.step);
        usize::try_from(number).ok().and_then(|number| self.values.get(number)).copied().unwrap_or(f64::NAN)
    }

    /// The values at times that are not its own.
    fn on(&self, grid: (i64, i64, usize)) -> Vec<f64> {
        let (start, step, count) = grid;
        let time = |number: usize| start.saturating_add(step.saturating_mul(number as i64));
        (0..count).map(|number| self.at(time(number))).collect()
    }

    fn grid(&self) -> (i64, i64, usize) {
        (self.start, self.step, self.values.len())
    }

    /// True if there is no value to draw.
    pub(super) fn is_null(&self) -> bool {
        self.values.iter().all(|value| value.is_nan())
    }
}

/// The curves of all series on so many pixels for the time from `span.0` to `span.1`, in the order of the series.
pub(super) fn curves<'s>(
    all: &'s [Series],
    options: &Options,
    (span, pixels): ((i64, i64), f64),
    keep_going: &mut KeepGoing<'_>,
) -> Result<Vec<Curve<'s>>, DrawError> {
    let mut curves: Vec<Curve<'s>> = Vec::with_capacity(all.len());
    let has_axes = all.iter().any(|one| one.drawing.is_on_second_axis);
    let per_series_max = (POINTS_MAX / all.len().max(1)).max(2);
    let mut colored = 0;
    for (number, series) in all.iter().enumerate() {
        keep_going().map_err(DrawError::Stopped)?;
        let drawing = &series.drawing;
        let side = if drawing.is_on_second_axis { &options.right } else { &options.left };
        let named = drawing.color.as_deref().and_then(Color::parse);
        let color = named.or(side.color.filter(|_| has_axes)).unwrap_or_else(|| {
            colored += usize::from(!drawing.is_invisible);
            options.colors.line(colored.saturating_sub(1))
        });
        let is_area = drawing.is_stacked
            || match options.area_mode {
                AreaMode::None => false,
                AreaMode::First => number == 0,
                AreaMode::All | AreaMode::Stacked => true,
            };
        let kind = match (drawing.is_invisible, drawing.is_infinite, is_area) {
            (true, ..) => Kind::Hidden,
            (_, true, _) => Kind::Infinite,
            (.., true) => Kind::Area,
            (.., false) => Kind::Line,
        };
        let (start, values, step) = consolidated(series, options, (span, pixels), per_series_max);
        let is_right = drawing.is_on_second_axis;
        curves.push(Curve { series, color, kind, is_right, start, step, values, base: None });
    }
    stand_on_stacks(&mut curves);
    if options.area_mode == AreaMode::Stacked {
        for is_right in [false, true] {
            pile(&mut curves, is_right, pixels, keep_going)?;
        }
    }
    Ok(curves)
}

/// Start, values and step of a series when each value has its pixels.
fn consolidated(
    series: &Series,
    options: &Options,
    (span, pixels): ((i64, i64), f64),
    count_max: usize,
) -> (i64, Vec<f64>, i64) {
    let step = series.step.max(1);
    let length = span.1.saturating_sub(span.0).max(1) as f64;
    let pixels_per_value = pixels.max(1.0) * step as f64 / length;
    let by_pixels = (options.x_step_min / pixels_per_value).ceil().clamp(1.0, 1e9) as usize;
    let by_count = series.values.len().div_ceil(count_max);
    let per_bucket = by_pixels.max(by_count).max(1);
    // Buckets begin at multiples of their length, so that a graph does not flicker while time goes on. The part of a bucket
    // at the left edge is left out, as it would show too small a sum.
    let number = series.start.div_euclid(step).rem_euclid(per_bucket as i64);
    let dropped = (per_bucket - usize::try_from(number).unwrap_or(0)) % per_bucket;
    let dropped = if dropped < series.values.len() { dropped } else { 0 };
    let values = &series.values[dropped..];
    let mut values = series.consolidation.apply(values, 0, per_bucket, series.x_files_factor);
    for value in &mut values {
        *value = match *value {
            value if value.is_finite() => value.clamp(-VALUE_MAX, VALUE_MAX),
            _ if options.null_is_zero => 0.0,
            _ => f64::NAN,
        };
    }
    let start = series.start.saturating_add(step.saturating_mul(dropped as i64));
    (start, values, step.saturating_mul(per_bucket as i64))
}

/// Areas of `stacked()` and `areaBetween()` have their sums already: each stands on the one before.
fn stand_on_stacks(curves: &mut [Curve<'_>]) {
    for number in 0..curves.len() {
        let (before, rest) = curves.split_at_mut(number);
        let curve = &mut rest[0];
        if curve.kind != Kind::Area || !curve.series.drawing.is_stacked {
            continue;
        }
        let hidden = before.last().filter(|last| last.kind == Kind::Hidden);
        let stack = curve.series.drawing.stack;
        let same = |other: &&Curve<'_>| {
            other.kind == Kind::Area && other.series.drawing.is_stacked && other.series.drawing.stack == stack
        };
        let below = hidden.or_else(|| before.iter().rev().find(same).filter(|_| stack > 0));
        curve.base = below.map(|below| below.on(curve.grid()));
    }
}

/// `areaMode=stacked`: each area of a side stands on the sum of those before it. All get one grid, the finest of theirs.
fn pile(
    curves: &mut [Curve<'_>],
    is_right: bool,
    pixels: f64,
    keep_going: &mut KeepGoing<'_>,
) -> Result<(), DrawError> {
    let is_piled = |curve: &Curve<'_>| {
        curve.kind == Kind::Area && curve.is_right == is_right && !curve.series.drawing.is_stacked
    };
    let all = || curves.iter().filter(|curve| is_piled(curve));
    let (Some(start), Some(step)) = (all().map(|one| one.start).min(), all().map(|one| one.step).min())
    else {
        return Ok(());
    };
    let end = all().map(|one| one.time(one.values.len())).max().unwrap_or(start);
    let length = end.saturating_sub(start).max(1);
    let count_max = (pixels.max(1.0) * 4.0).min((POINTS_MAX / all().count().max(1)).max(2) as f64);
    let step = step.max((length as f64 / count_max).ceil() as i64).max(1);
    let count = usize::try_from(length / step + i64::from(length % step > 0)).unwrap_or(0);
    let mut total = vec![0.0_f64; count];
    for curve in curves.iter_mut().filter(|curve| is_piled(curve)) {
        keep_going().map_err(DrawError::Stopped)?;
        let own = curve.on((start, step, count));
        let base = total.clone();
        for (sum, value) in total.iter_mut().zip(&own) {
            *sum = (*sum + if value.is_nan() { 0.0 } else { *value }).clamp(-VALUE_MAX, VALUE_MAX);
        }
        let top = own.iter().zip(&total).map(|(own, sum)| if own.is_nan() { f64::NAN } else { *sum });
        curve.values = top.collect();
        (curve.start, curve.step, curve.base) = (start, step, Some(base));
    }
    Ok(())
}

/// The smallest and the largest value on a side. On a logarithmic axis only those above zero count.
pub(super) fn range(curves: &[Curve<'_>], is_right: bool, is_log: bool) -> Option<(f64, f64)> {
    let on_side = |curve: &&Curve<'_>| curve.is_right == is_right;
    let drawn = |curve: &&Curve<'_>| matches!(curve.kind, Kind::Line | Kind::Area);
    let shown = |value: &f64| !value.is_nan() && (!is_log || *value > 0.0);
    let mut found: Option<(f64, f64)> = None;
    for curve in curves.iter().filter(on_side).filter(drawn) {
        let bases = curve.base.iter().flatten().zip(&curve.values);
        let bases = bases.filter(|(_, value)| !value.is_nan()).map(|(base, _)| base);
        // A stack begins at zero.
        let zero = (curve.series.drawing.is_stacked && curve.base.is_none()).then_some(&0.0);
        for value in curve.values.iter().chain(bases).chain(zero).filter(|value| shown(value)) {
            let (low, high) = found.unwrap_or((*value, *value));
            found = Some((low.min(*value), high.max(*value)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::options::tests::options;
    use super::super::tests::series;
    use super::*;

    fn drawn<'s>(all: &'s [Series], query: &str, pixels: f64) -> Vec<Curve<'s>> {
        let span = (all[0].start, all[0].end);
        curves(all, &options(query).expect("right"), (span, pixels), &mut || Ok(())).expect("not stopped")
    }

    #[test]
    fn values_are_consolidated_to_pixels_with_the_function_of_the_series() {
        let mut all = [series("a", &(0..60).map(f64::from).collect::<Vec<_>>())];
        assert_eq!(drawn(&all, "", 60.0)[0].values.len(), 60);
        let curves = drawn(&all, "", 20.0);
        assert_eq!((curves[0].values.len(), curves[0].values[0], curves[0].step), (20, 1.0, 180));
        assert_eq!(drawn(&all, "minXStep=2", 20.0)[0].values.len(), 10);
        all[0].consolidation = crate::query::Consolidation::Max;
        assert_eq!(drawn(&all, "", 20.0)[0].values[0], 2.0);
        // Buckets stay where they are when the range moves by a step.
        all[0].start += 60;
        assert_eq!(drawn(&all, "", 20.0)[0].start % 180, 0);
    }

    #[test]
    fn areas_stand_on_the_sum_of_those_before() {
        let nan = f64::NAN;
        let all = [series("a", &[1.0, 2.0, nan]), series("b", &[10.0, nan, 30.0])];
        let curves = drawn(&all, "areaMode=stacked", 100.0);
        assert_eq!(curves[0].base.as_deref(), Some(&[0.0, 0.0, 0.0][..]));
        assert_eq!(curves[1].base.as_deref(), Some(&[1.0, 2.0, 0.0][..]));
        assert_eq!(
            (curves[1].values[0], curves[1].values[1].is_nan(), curves[1].values[2]),
            (11.0, true, 30.0)
        );
        assert_eq!(range(&curves, false, false), Some((0.0, 30.0)));
        let kinds = |query| drawn(&all, query, 100.0).iter().map(|curve| curve.kind).collect::<Vec<_>>();
        assert_eq!(kinds("areaMode=first"), [Kind::Area, Kind::Line]);
        assert_eq!(kinds("areaMode=all"), [Kind::Area, Kind::Area]);
        assert_eq!(kinds(""), [Kind::Line, Kind::Line]);
        let zeros = drawn(&all, "drawNullAsZero=true", 100.0);
        assert_eq!(zeros[0].values, [1.0, 2.0, 0.0]);
    }

    #[test]
    fn many_long_series_have_few_points_together() {
        let long = series("a", &vec![1.0; 5_000]);
        let all = vec![long; 500];
        let total: usize = drawn(&all, "minXStep=0", 4_000.0).iter().map(|curve| curve.values.len()).sum();
        assert!(total <= POINTS_MAX, "{total}");
    }
}
