//! Holt-Winters forecasts: additive triple exponential smoothing, bands around it, and what lies outside.

use crate::query::call::{Answer, Call, Range, Value};
use crate::query::error::QueryError;
use crate::query::functions::draw;
use crate::query::series::Series;
use crate::query::time_ranges::{bootstrapped, positive_seconds};

/// Weight of a value for the level, and for its season.
const ALPHA: f64 = 0.1;
const GAMMA: f64 = 0.1;
/// Weight of a value for the slope.
const BETA: f64 = 0.0035;

/// What is known after each point.
#[derive(Default)]
struct Smoothed {
    predictions: Vec<f64>,
    deviations: Vec<f64>,
}

/// Smooths values whose season has `season` points.
fn smooth(values: &[f64], season: usize) -> Smoothed {
    let mut out = Smoothed::default();
    let mut seasonals: Vec<f64> = Vec::with_capacity(values.len());
    let (mut level, mut slope, mut next) = (f64::NAN, 0.0, f64::NAN);
    let ago = |all: &[f64], at: usize| at.checked_sub(season).map_or(0.0, |at| all[at]);
    for (at, actual) in values.iter().copied().enumerate() {
        if actual.is_nan() {
            (level, slope) = (f64::NAN, 0.0);
            out.predictions.push(std::mem::replace(&mut next, f64::NAN));
            out.deviations.push(0.0);
            seasonals.push(0.0);
            continue;
        }
        let prediction = if at == 0 { actual } else { next };
        let last_level = if at == 0 || level.is_nan() { actual } else { level };
        let last_season = ago(&seasonals, at);
        let new_level = ALPHA * (actual - last_season) + (1.0 - ALPHA) * (last_level + slope);
        slope = BETA * (new_level - last_level) + (1.0 - BETA) * slope;
        level = new_level;
        seasonals.push(GAMMA * (actual - level) + (1.0 - GAMMA) * last_season);
        next = level + slope + ago(&seasonals, at + 1);
        let error = (actual - if prediction.is_nan() { 0.0 } else { prediction }).abs();
        let deviation = GAMMA * error + (1.0 - GAMMA) * ago(&out.deviations, at);
        out.predictions.push(prediction);
        out.deviations.push(deviation);
    }
    out
}

/// One series with its forecast from the beginning of the range.
struct Forecast {
    series: Series,
    smoothed: Smoothed,
    /// Values before the range.
    skipped: usize,
    start: i64,
}

/// The bootstrap interval, and the season in seconds.
fn arguments(call: &Call<'_>, at: usize) -> Result<(Range, i64), QueryError> {
    let earlier = bootstrapped(call.args.text(at).unwrap_or("7d"), call.range)?;
    Ok((earlier, positive_seconds(call.args.text(at + 1).unwrap_or("1d"))?))
}

/// Forecasts of all series; `at` is the parameter of the bootstrap interval.
fn forecasts(call: &mut Call<'_>, at: usize) -> Result<Vec<Forecast>, QueryError> {
    let (earlier, season) = arguments(call, at)?;
    let preview = call.range.from - earlier.from;
    let mut results = Vec::new();
    for series in call.evaluate_first(earlier)? {
        call.engine.poll(series.values.len())?;
        let points = season / series.step.max(1);
        let Some(points) = usize::try_from(points).ok().filter(|points| *points >= 2) else {
            let message = format!("a season of {season} s has fewer than two steps of {} s", series.step);
            return Err(QueryError::argument(message).hint("use a longer season"));
        };
        call.engine.charge_points(2 * series.values.len())?;
        call.engine.charge_steps(10 * series.values.len())?;
        let smoothed = smooth(&series.values, points);
        let skipped = usize::try_from(preview / series.step.max(1)).unwrap_or(usize::MAX);
        let start = series.start + preview;
        results.push(Forecast { skipped: skipped.min(series.values.len()), series, smoothed, start });
    }
    Ok(results)
}

impl Forecast {
    /// A result with the tags of graphite-web: those of all steps of the computation.
    fn result(&self, name: &str, tags: &[&'static str], values: Vec<f64>) -> Series {
        let name = format!("{name}({})", self.series.name);
        let mut result = Series::new(name, (self.start, self.series.end, self.series.step), values);
        result.tags = self.series.tags.clone();
        for tag in ["holtWintersForecast", "holtWintersDeviation"].iter().chain(tags) {
            result.tags.set(*tag, "1");
        }
        result.x_files_factor = self.series.x_files_factor;
        result
    }

    /// The lower (-1) or upper (1) band.
    fn band(&self, delta: f64, side: f64) -> Vec<f64> {
        let pairs = self.smoothed.predictions.iter().zip(&self.smoothed.deviations).skip(self.skipped);
        pairs.map(|(prediction, deviation)| prediction + side * (delta * deviation)).collect()
    }
}

/// `holtWintersForecast(S, bootstrapInterval, seasonality)`.
pub(crate) fn forecast(call: &mut Call<'_>) -> Answer {
    let results = forecasts(call, 1)?.into_iter().map(|one| {
        let values = one.smoothed.predictions[one.skipped..].to_vec();
        one.result("holtWintersForecast", &[], values)
    });
    Ok(Value::Series(results.collect()))
}

/// Lower and upper band of each series.
fn bands(call: &mut Call<'_>) -> Result<Vec<Series>, QueryError> {
    let delta = call.args.float(1).unwrap_or(3.0);
    let tags = ["holtWintersConfidenceLower", "holtWintersConfidenceUpper"];
    let mut results = Vec::new();
    for one in forecasts(call, 2)? {
        for (name, side) in tags.into_iter().zip([-1.0, 1.0]) {
            call.engine.poll(one.series.values.len())?;
            let mut band = one.result(name, &tags, one.band(delta, side));
            band.path.clone_from(&one.series.path);
            results.push(band);
        }
    }
    Ok(results)
}

/// `holtWintersConfidenceBands(S, delta, bootstrapInterval, seasonality)`.
pub(crate) fn confidence_bands(call: &mut Call<'_>) -> Answer {
    Ok(Value::Series(bands(call)?))
}

/// `holtWintersConfidenceArea(S, delta, bootstrapInterval, seasonality)`.
pub(crate) fn confidence_area(call: &mut Call<'_>) -> Answer {
    let mut series = draw::between(bands(call)?)?;
    for one in &mut series {
        call.engine.poll(one.values.len())?;
        one.tags.remove("areaBetween");
        one.tags.set("holtWintersConfidenceArea", "1");
        let name = one.name.replace("areaBetween", "holtWintersConfidenceArea");
        one.rename_with_path(name);
    }
    Ok(Value::Series(series))
}

/// `holtWintersAberration(S, delta, bootstrapInterval, seasonality)`: the distance to the bands, 0 within them.
pub(crate) fn aberration(call: &mut Call<'_>) -> Answer {
    let here = call.evaluate_first(call.range)?;
    let bands = bands(call)?;
    let mut results = Vec::new();
    for series in here {
        call.engine.poll(series.values.len())?;
        let band = |side: &str| {
            let name = format!("holtWintersConfidence{side}({})", series.name);
            // Of several series of one name the last one counts.
            bands.iter().rfind(|band| band.name == name)
        };
        call.engine.charge_steps(2 * bands.len())?;
        let (Some(lower), Some(upper)) = (band("Lower"), band("Upper")) else { continue };
        let limit = |band: &Series, at: usize| band.values.get(at).copied().unwrap_or(f64::NAN);
        let outside = |(at, value): (usize, &f64)| match (limit(lower, at), limit(upper, at)) {
            (_, upper) if *value > upper => value - upper,
            (lower, _) if *value < lower => value - lower,
            _ => 0.0,
        };
        let values = series.values.iter().enumerate().map(outside).collect();
        let name = format!("holtWintersAberration({})", series.name);
        let mut result = Series::new(name, (series.start, series.end, series.step), values);
        result.tags = series.tags;
        result.tags.set("holtWintersAberration", "1");
        result.x_files_factor = series.x_files_factor;
        results.push(result);
    }
    Ok(Value::Series(results))
}
