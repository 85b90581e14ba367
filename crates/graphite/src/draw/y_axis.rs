//! A y axis: its limits, its lines and their labels (spec graphite §6.5).
//!
//! Invariant: the limits are finite and `low < high`; the number of lines is limited by the height in pixels.

use super::options::{Options, Side, Units};
use crate::query::numbers;

/// Larger values are drawn as this, so that differences between two stay finite.
const VALUE_MAX: f64 = 1e300;

/// Fewest pixels between two lines of the grid.
const LINE_PIXELS_MIN: f64 = 3.0;

/// A y axis.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    /// In values, or in powers if it is logarithmic.
    low: f64,
    high: f64,
    log_base: Option<f64>,
    /// Values with labels, from the lowest.
    pub(super) ticks: Vec<(f64, String)>,
    /// Distance of two ticks in the measure of `low`.
    step: f64,
}

impl Scale {
    /// An axis for values from `range.0` to `range.1` on so many pixels.
    pub(super) fn new(range: Option<(f64, f64)>, side: &Side, options: &Options, height: f64) -> Scale {
        match options.log_base {
            Some(base) => logarithmic(base, range, side, (options, height)),
            None => linear(range, side, options, height),
        }
    }

    /// Share of the height, from below: 0 is the lowest value. None for what a logarithmic axis cannot show.
    pub(super) fn share(&self, value: f64) -> Option<f64> {
        let measure = match self.log_base {
            Some(_) if value <= 0.0 => return None,
            Some(base) => value.ln() / base.ln(),
            None => value.clamp(-VALUE_MAX, VALUE_MAX),
        };
        // A line that leaves the image goes on for some of its heights, so that its slope is right.
        Some(((measure - self.low) / (self.high - self.low)).clamp(-8.0, 9.0))
    }

    /// Where areas begin: at zero, if it is on the axis.
    pub(super) fn base(&self) -> f64 {
        self.share(0.0).unwrap_or(0.0).clamp(0.0, 1.0)
    }

    /// Shares of the height for `count` lines between each two ticks.
    pub(super) fn minor(&self, count: usize, height: f64) -> Vec<f64> {
        let gap = self.step / (self.high - self.low) * height;
        if count == 0 || gap / (count + 1) as f64 <= LINE_PIXELS_MIN {
            return Vec::new();
        }
        // Also before the first tick, as a limit can be between two.
        let before = self.ticks.first().map(|(value, _)| self.before(*value));
        let starts = before.into_iter().chain(self.ticks.iter().map(|(value, _)| *value));
        let all = starts.flat_map(|value| (1..=count).map(move |number| (value, number)));
        all.filter_map(|(value, number)| self.between(value, number as f64 / (count + 1) as f64))
            .filter(|share| (0.0..=1.0).contains(share))
            .collect()
    }

    /// The tick before a value.
    fn before(&self, value: f64) -> f64 {
        match self.log_base {
            Some(base) => value * base.powf(-self.step),
            None => value - self.step,
        }
    }

    /// The place behind a tick by a part of the step; those of a logarithmic axis are even in values.
    fn between(&self, value: f64, part: f64) -> Option<f64> {
        match self.log_base {
            Some(base) => self.share(value + (value * base.powf(self.step) - value) * part),
            None => self.share(value + self.step * part),
        }
    }
}

/// Limits of the values with those of the options.
fn limits(range: Option<(f64, f64)>, side: &Side) -> (f64, f64) {
    let (low, high) = range.unwrap_or((0.0, 1.0));
    let mut high = side.limit.map_or(high, |limit| high.min(limit));
    let mut low = low;
    if let Some(min) = side.min {
        low = min;
    }
    if let Some(max) = side.max {
        high = max;
    }
    let (low, high) = (low.clamp(-VALUE_MAX, VALUE_MAX), high.clamp(-VALUE_MAX, VALUE_MAX));
    // Less than this between the two gives the same number again when labels are computed.
    let least = (low.abs().max(high.abs()) * 1e-9).max(1e-290);
    if high - low >= least {
        return (low, high);
    }
    // So little is zero on any axis.
    let is_zero = |value: f64| value.abs() < 1e-280;
    let around = |value: f64| if is_zero(value) { 1.0 } else { value.abs() * 0.1 };
    match (side.min, side.max) {
        (Some(_), _) => (low, low + around(low)),
        (None, Some(_)) => (high - around(high), high),
        (None, None) if is_zero(low) => (0.0, 1.0),
        (None, None) => (low - around(low), low + around(low)),
    }
}

fn linear(range: Option<(f64, f64)>, side: &Side, options: &Options, height: f64) -> Scale {
    let (low, high) = limits(range, side);
    let usable = |step: &f64| (high - low) / step <= (height / LINE_PIXELS_MIN).max(2.0);
    let (step, mut bottom, mut top) = match side.step.filter(usable) {
        Some(step) => (step, (low / step).floor() * step, (high / step).ceil() * step),
        None => chosen(low, high, options, height),
    };
    if side.min.is_some() {
        bottom = low;
    }
    if side.max.is_some() || side.ends_at_data {
        top = high;
    }
    let (bottom, top) = if top > bottom { (bottom, top) } else { (low, high) };
    let mut scale = Scale { low: bottom, high: top, log_base: None, ticks: Vec::new(), step };
    // Lines are at multiples of the step, counted from a lower limit that the client has set.
    let first = if side.min.is_some() { bottom } else { (bottom / step).ceil() * step };
    let count = ((top - first) / step + 1e-6).floor().clamp(0.0, 2_000.0) as usize;
    for number in 0..=count {
        let value = first + number as f64 * step;
        let value = if value.abs() < step * 1e-6 { 0.0 } else { value };
        scale.ticks.push((value, label(value, step, options.units)));
    }
    scale
}

/// Step, bottom and top with the least room that stays unused below and above the values.
fn chosen(low: f64, high: f64, options: &Options, height: f64) -> (f64, f64, f64) {
    let by_height = match height {
        ..=60.0 => &[2, 3][..],
        ..=500.0 => &[4, 5, 6],
        _ => &[8, 9, 10],
    };
    let divisors = if options.divisors.is_empty() { by_height } else { &options.divisors };
    let most = f64::from(divisors.iter().copied().max().unwrap_or(4));
    let variance = high - low;
    let mut best: Option<(f64, (f64, f64, f64))> = None;
    for divisor in divisors {
        for step in pretty(variance / (1.0 + most), options.units) {
            let bottom = step * (low / step + 1e-9).floor();
            let top = bottom + step * f64::from(*divisor);
            if top < high - step * 1e-9 {
                continue;
            }
            let unused = (low - bottom).max(top - high);
            if best.is_none_or(|(least, _)| unused < least) {
                best = Some((unused, (step, bottom, top)));
            }
            break;
        }
    }
    best.map_or((variance, low, high), |(_, found)| found)
}

/// Steps of round numbers from about `least` on.
fn pretty(least: f64, units: Units) -> impl Iterator<Item = f64> {
    const TRIES: i32 = 40;
    let is_binary = units == Units::Binary && least >= 0.5;
    let base: f64 = if is_binary { 2.0 } else { 10.0 };
    let start = least.log(base).floor().clamp(-307.0, 1_000.0) as i32;
    (0..TRIES).map(move |number| {
        if is_binary {
            return 2.0_f64.powi(start + number);
        }
        let mantissa = [1.0, 2.0, 5.0][usize::try_from(number % 3).unwrap_or(0)];
        mantissa * 10.0_f64.powi(start + number / 3)
    })
}

fn logarithmic(base: f64, range: Option<(f64, f64)>, side: &Side, rest: (&Options, f64)) -> Scale {
    let (options, height) = rest;
    let power = |value: f64| value.min(VALUE_MAX).ln() / base.ln();
    let (low, high) = range.filter(|(low, high)| *low > 0.0 && high >= low).unwrap_or((1.0, base));
    let high = side.limit.filter(|limit| *limit > 0.0).map_or(high, |limit| high.min(limit));
    let min = side.min.filter(|min| *min > 0.0).map(power);
    let max = side.max.filter(|max| *max > 0.0).map(power);
    let bottom = min.unwrap_or_else(|| (power(low) + 1e-9).floor());
    let top =
        max.unwrap_or_else(|| if side.ends_at_data { power(high) } else { (power(high) - 1e-9).ceil() });
    let top = if top > bottom { top } else { bottom + 1.0 };
    let lines_max = (height / (options.font.size * 1.5)).max(1.0);
    let step = ((top - bottom) / lines_max).ceil().max(1.0);
    let mut scale = Scale { low: bottom, high: top, log_base: Some(base), ticks: Vec::new(), step };
    let first = bottom.ceil();
    let count = ((top - first) / step + 1e-6).floor().clamp(0.0, 2_000.0) as usize;
    for number in 0..=count {
        let value = base.powf(first + number as f64 * step);
        scale.ticks.push((value, label(value, value, options.units)));
    }
    scale
}

const SI: [(f64, &str); 5] = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
const BINARY: [(f64, &str); 5] = [
    (1_125_899_906_842_624.0, "Pi"),
    (1_099_511_627_776.0, "Ti"),
    (1_073_741_824.0, "Gi"),
    (1_048_576.0, "Mi"),
    (1_024.0, "Ki"),
];
const SEC: [(f64, &str); 5] =
    [(31_536_000.0, "Y"), (2_592_000.0, "M"), (86_400.0, "D"), (3_600.0, "H"), (60.0, "m")];
const MSEC: [(f64, &str); 6] = [
    (31_536_000_000.0, "Y"),
    (2_592_000_000.0, "M"),
    (86_400_000.0, "D"),
    (3_600_000.0, "H"),
    (60_000.0, "m"),
    (1_000.0, "s"),
];

/// A value with its unit, to the digits that a step needs.
pub(super) fn label(value: f64, step: f64, units: Units) -> String {
    let table: &[(f64, &str)] = match units {
        Units::Si => &SI,
        Units::Binary => &BINARY,
        Units::Sec => &SEC,
        Units::Msec => &MSEC,
        Units::None => &[],
    };
    let found = table.iter().find(|(size, _)| value.abs() >= *size * (1.0 - 1e-9));
    let (size, unit) = found.copied().unwrap_or((1.0, ""));
    let (value, step) = (value / size, step / size);
    // Beyond these the digits would be longer than the graph.
    if value != 0.0 && !(1e-6..1e7).contains(&value.abs()) {
        return if unit.is_empty() {
            numbers::general(value)
        } else {
            format!("{} {unit}", numbers::general(value))
        };
    }
    let is_decimal = matches!(units, Units::Si | Units::None) || unit.is_empty();
    let places_max = if is_decimal { 9.0 } else { 2.0 };
    let exact = |places: usize| (step - numbers::round(step, places as i32)).abs() < step * 1e-6;
    let places = (0..=places_max as usize).find(|places| exact(*places)).unwrap_or(places_max as usize);
    let text = format!("{value:.places$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if unit.is_empty() { text.to_owned() } else { format!("{text} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::super::options::tests::options;
    use super::*;

    fn scale(range: Option<(f64, f64)>, query: &str) -> (Vec<String>, f64, f64) {
        let options = options(query).expect("right");
        let scale = Scale::new(range, &options.left, &options, 200.0);
        (scale.ticks.into_iter().map(|(_, label)| label).collect(), scale.low, scale.high)
    }

    #[test]
    fn lines_are_at_round_numbers_around_the_values() {
        for (range, query, want) in [
            ((0.0, 100.0), "", "0 20 40 60 80 100"),
            ((31.0, 40.0), "", "30 32 34 36 38 40"),
            ((0.0, 1.0), "", "0 0.2 0.4 0.6 0.8 1"),
            ((0.0, 5000.0), "", "0 1 k 2 k 3 k 4 k 5 k"),
            ((0.0, 1.6e9), "", "0 500 M 1 G 1.5 G 2 G"),
            ((-10.0, 10.0), "", "-10 -5 0 5 10"),
            ((0.0, 100.0), "yStep=50", "0 50 100"),
            ((0.0, 97.0), "yDivisors=2", "0 50 100"),
            ((0.0, 97.0), "yMin=10&yMax=30&yStep=10", "10 20 30"),
            ((0.0, 97.0), "yLimit=50", "0 10 20 30 40 50"),
            ((0.0, 4096.0), "yUnitSystem=binary", "0 1 Ki 2 Ki 3 Ki 4 Ki"),
            ((0.0, 5000.0), "yUnitSystem=none", "0 1000 2000 3000 4000 5000"),
            ((0.0, 400.0), "yUnitSystem=sec", "0 1.67 m 3.33 m 5 m 6.67 m"),
            ((0.0, 4000.0), "yUnitSystem=msec", "0 1 s 2 s 3 s 4 s"),
            ((1.0, 900.0), "logBase=10", "1 10 100 1 k"),
            ((5.0, 5.0), "yMin=0", "0 1 2 3 4 5"),
        ] {
            assert_eq!(scale(Some(range), query).0.join(" "), want, "{range:?} {query}");
        }
        assert_eq!(scale(None, "").0.join(" "), "0 0.2 0.4 0.6 0.8 1");
        let (_, low, high) = scale(Some((3.0, 97.0)), "yMax=max");
        assert_eq!((low, high), (0.0, 97.0), "the data's maximum");
    }

    #[test]
    fn limits_are_finite_and_lines_are_few_whatever_the_values_are() {
        let values =
            [-1e308, -1e300, -1.0, -1e-300, 0.0, 5e-324, 1e-300, 1e-9, 1.0, 1.0 + 1e-15, 1e15, 1e300, 1e308];
        let queries = [
            "",
            "logBase=10",
            "logBase=1.01",
            "logBase=e",
            "yStep=1e-300",
            "yStep=1e300",
            "yUnitSystem=binary",
            "yMin=5&yMax=-5",
            "yMin=1e308",
            "yMax=-1e308",
            "yMin=-1e308&yMax=1e308",
            "yLimit=-3",
            "yUnitSystem=sec",
            "logBase=2&yMin=-1&yMax=0",
            "yMax=max",
        ];
        for query in queries {
            let options = options(query).expect("right");
            for (low, high) in values.iter().flat_map(|low| values.iter().map(move |high| (*low, *high))) {
                let scale = Scale::new(Some((low, high)), &options.left, &options, 200.0);
                let shown = format!("{query} {low} {high} {scale:?}");
                assert!(scale.low.is_finite() && scale.high.is_finite() && scale.low < scale.high, "{shown}");
                assert!(scale.ticks.len() <= 201, "{shown}");
                assert!(
                    scale.ticks.iter().all(|(value, label)| !value.is_nan() && label.len() < 25),
                    "{shown}"
                );
                for value in values {
                    assert!(scale.share(value).is_none_or(|share| (-8.0..=9.0).contains(&share)), "{shown}");
                }
                assert!(scale.minor(3, 200.0).len() <= 1_000);
            }
        }
    }
}
