//! Numbers as Python prints and rounds them: `%g`, `repr`, `round`.

/// The shortest text that reads as the same float, as Python's `repr`: `31.0`, `1e-05`, `inf`.
#[must_use]
pub fn repr(value: f64) -> String {
    if !value.is_finite() {
        return non_finite(value);
    }
    let mut text = format!("{value:e}");
    let tie = tie_to_even(value, &text);
    let is_tie = tie.is_some();
    if let Some(even) = tie {
        text = even;
    }
    let (digits, exponent) = split_exponent(&text);
    if !(-4..16).contains(&exponent) {
        return scientific(digits, exponent);
    }
    let places = usize::try_from(count_digits(digits) - 1 - exponent).unwrap_or(0);
    let plain = if is_tie { format!("{value:.places$}") } else { format!("{value}") };
    if plain.contains('.') { plain } else { plain + ".0" }
}

/// The shortest text of a float that is in the middle between two of them: Python takes the even one, Rust the larger one.
fn tie_to_even(value: f64, shortest: &str) -> Option<String> {
    /// Fewer digits are never in the middle of two texts of the same float.
    const DIGITS_LEAST: i32 = 15;
    /// Floats with more binary places have more decimal places than a text in the middle.
    const PLACES: f64 = 131_072.0;
    let digits = count_digits(split_exponent(shortest).0);
    if digits < DIGITS_LEAST || (value * PLACES).fract() != 0.0 {
        return None;
    }
    let even = format!("{value:.*e}", usize::try_from(digits - 1).unwrap_or(0));
    (even != shortest && even.parse() == Ok(value)).then_some(even)
}

fn count_digits(text: &str) -> i32 {
    i32::try_from(text.bytes().filter(u8::is_ascii_digit).count()).unwrap_or(i32::MAX)
}

/// `%g`: six significant digits without trailing zeros.
#[must_use]
pub fn general(value: f64) -> String {
    significant(value, 6)
}

/// `%.Ng`: `digits` significant digits, at least one, without trailing zeros. Of the exact decimal value of the float, ties to even.
#[must_use]
pub fn significant(value: f64, digits: u8) -> String {
    if !value.is_finite() {
        return non_finite(value);
    }
    let digits = i32::from(digits.max(1));
    let text = format!("{value:.*e}", usize::try_from(digits - 1).unwrap_or(0));
    let (mantissa, exponent) = split_exponent(&text);
    if (-4..digits).contains(&exponent) {
        let places = usize::try_from(digits - 1 - exponent).unwrap_or(0);
        return without_zeros(&format!("{value:.places$}")).to_owned();
    }
    scientific(without_zeros(mantissa), exponent)
}

/// `%d` of a float: cut towards zero.
#[must_use]
pub fn decimal(value: f64) -> String {
    if value.is_finite() { format!("{:.0}", value.trunc() + 0.0) } else { non_finite(value) }
}

fn non_finite(value: f64) -> String {
    let text = if value.is_nan() {
        "nan"
    } else if value > 0.0 {
        "inf"
    } else {
        "-inf"
    };
    text.to_owned()
}

fn split_exponent(text: &str) -> (&str, i32) {
    let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
    (digits, exponent.parse().unwrap_or(0))
}

fn scientific(digits: &str, exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// Rounds to decimal places as Python 3 does: the decimal value that the float has exactly, ties to even.
#[must_use]
pub fn round(value: f64, places: i32) -> f64 {
    /// Largest exact power of ten.
    const POWER_MAX: i32 = 22;
    if !value.is_finite() {
        return value;
    }
    if places <= 0 {
        let power = 10_f64.powi((-places).min(308));
        return if places == 0 { value.round_ties_even() } else { (value / power).round_ties_even() * power };
    }
    if places > 300 {
        return value;
    }
    if places <= POWER_MAX {
        let power = 10_f64.powi(places);
        let scaled = value * power;
        // Far from a tie the product's error cannot change the integer, and the quotient is the nearest float.
        if scaled.abs() < (1_u64 << 40) as f64 && ((scaled - scaled.floor()) - 0.5).abs() > 1e-3 {
            return scaled.round() / power;
        }
    }
    let digits = usize::try_from(places).unwrap_or(0);
    format!("{value:.digits$}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_in_python() {
        let table = [
            (31.0, "31.0", "31", "31"),
            (-0.5, "-0.5", "-0.5", "0"),
            (1e-5, "1e-05", "1e-05", "0"),
            (0.0001, "0.0001", "0.0001", "0"),
            (12_345_678.9, "12345678.9", "1.23457e+07", "12345678"),
            (999_999.5, "999999.5", "1e+06", "999999"),
            (100_000.0, "100000.0", "100000", "100000"),
            (1e16, "1e+16", "1e+16", "10000000000000000"),
            (123_456_789_012_345_680.0, "1.2345678901234568e+17", "1.23457e+17", "123456789012345680"),
            (0.1 + 0.2, "0.30000000000000004", "0.3", "0"),
            (1e300, "1e+300", "1e+300", ""),
            // In the middle of two texts with 16 digits.
            (2_323_083_961_004_393.0 / 4.0, "580770990251098.2", "5.80771e+14", "580770990251098"),
            (-3_091_197_338_871_627.0 / 4.0, "-772799334717906.8", "-7.72799e+14", "-772799334717906"),
            (f64::INFINITY, "inf", "inf", "inf"),
            (f64::NEG_INFINITY, "-inf", "-inf", "-inf"),
            (0.0, "0.0", "0", "0"),
        ];
        for (value, short, six, whole) in table {
            assert_eq!(repr(value), short);
            assert_eq!(general(value), six);
            assert!(whole.is_empty() || decimal(value) == whole, "{value}");
        }
    }

    #[test]
    fn many_digits_are_those_of_the_exact_value() {
        let table = [
            (0.1, "0.1000000000000000055511151231257827"),
            (5.0, "5"),
            (-0.0, "-0"),
            (1e22, "10000000000000000000000"),
            (1e40, "1.0000000000000000303786028427003667e+40"),
            (1e-5, "1.0000000000000000818030539140313095e-05"),
            (f64::NAN, "nan"),
        ];
        for (value, want) in table {
            assert_eq!(significant(value, 35), want);
        }
        assert_eq!(
            (significant(2.5, 1), significant(3.5, 0), significant(9.99, 2)),
            ("2".into(), "4".into(), "10".into())
        );
    }

    #[test]
    fn rounding_is_that_of_the_decimal_value() {
        let table = [
            (0.5, 0, 0.0),
            (1.5, 0, 2.0),
            (2.5, 0, 2.0),
            (1.25, 1, 1.2),
            (2.35, 1, 2.4),
            (-1.25, 1, -1.2),
            (2.675, 2, 2.67),
            (1.005, 2, 1.0),
            (0.183_333_333, 6, 0.183_333),
            (1_234.0, -2, 1_200.0),
            (1e300, 6, 1e300),
            (f64::INFINITY, 2, f64::INFINITY),
        ];
        for (value, places, want) in table {
            assert_eq!(round(value, places), want, "{value} to {places}");
        }
    }

    proptest::proptest! {
        #[test]
        fn the_short_way_rounds_as_the_long_one(value in -1e7..1e7_f64, places in 1..9_usize) {
            let long: f64 = format!("{value:.places$}").parse().expect("a number");
            proptest::prop_assert_eq!(round(value, i32::try_from(places).expect("small")), long);
        }

        #[test]
        fn repr_reads_as_the_same_float(bits in proptest::prelude::any::<u64>()) {
            let value = f64::from_bits(bits);
            proptest::prop_assert!(value.is_nan() || repr(value).parse::<f64>() == Ok(value));
        }
    }
}
