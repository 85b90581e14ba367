//! Numbers and times as Python prints them.

use graphite::query::numbers::repr;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::args::Times;

/// `%.35g`: all digits of a double.
pub(super) fn exact(value: f64) -> String {
    const DIGITS: usize = 35;
    if !value.is_finite() {
        return if value.is_nan() { "nan".into() } else { repr(value) };
    }
    let text = format!("{value:.*e}", DIGITS - 1);
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..DIGITS as i32).contains(&exponent) {
        let places = usize::try_from(DIGITS as i32 - 1 - exponent).unwrap_or(0);
        return without_zeros(&format!("{value:.places$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_zeros(digits), exponent.unsigned_abs())
}

fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// `%f`
pub(super) fn fixed(value: f64) -> String {
    if value.is_finite() { format!("{value:.6}") } else { repr(value) }
}

/// A value, or `None`.
pub(super) fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| "None".to_owned(), repr)
}

/// A time: a number, `time.ctime`, or with a form.
pub(super) fn time(time: i64, times: &Times) -> anyhow::Result<String> {
    if !times.pretty {
        return Ok(time.to_string());
    }
    let Ok(at) = Timestamp::from_second(time) else { return Ok(time.to_string()) };
    let at = at.to_zoned_datetime(TimeZone::system());
    let form = times.form.as_deref().unwrap_or("%a %b %e %H:%M:%S %Y");
    jiff::fmt::strtime::format(form, &at)
        .map_err(|error| anyhow::anyhow!("`{form}` is no form of times: {error}"))
}

#[test]
fn numbers_are_printed_as_python_does() {
    for (value, want) in [
        (0.1, "0.1000000000000000055511151231257827"),
        (31.0, "31"),
        (-0.0, "-0"),
        (1e22, "10000000000000000000000"),
        (1e40, "1.0000000000000000303786028427003667e+40"),
        (1e-7, "9.9999999999999995474811182588625869e-08"),
        (1.0 / 3.0, "0.33333333333333331482961625624739099"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
        (f64::NAN, "nan"),
    ] {
        assert_eq!(exact(value), want);
    }
    assert_eq!(
        (fixed(1.5), fixed(-2e-7), optional(None)),
        ("1.500000".into(), "-0.000000".into(), "None".into())
    );
    let plain = Times { pretty: false, form: None };
    assert_eq!(time(7, &plain).expect("a number"), "7");
    let form = Times { pretty: true, form: Some("%Y".into()) };
    assert_eq!(time(1_710_000_000, &form).expect("a form"), "2024");
}
