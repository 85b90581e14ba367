//! Numbers as Java prints them: `Double.toString` and `Float.toString`.
//!
//! Riemann's JSON, its text forms and what configs print show them (spec riemann §3.2, §3.4).
//! The digits are the fewest that give the same number, at least two of them, as Java does since version 19. Earlier versions print
//! some numbers with one digit more.
//! Not here: integers and ratios, which Java prints as everybody does.

use std::fmt::{self, Display, LowerExp, Write};

/// `1.0`, `0.001`, `1.0E7`, `1.0E-4`, `-0.0`, `NaN`, `Infinity`.
#[derive(Clone, Copy, Debug)]
pub struct JavaDouble(pub f64);

/// The same with the digits of single precision: `0.1`.
#[derive(Clone, Copy, Debug)]
pub struct JavaSingle(pub f32);

impl Display for JavaDouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JavaDouble(number) = *self;
        let whole = number as i64;
        // Most numbers that are printed are small integers. The bits differ for -0.
        if whole.unsigned_abs() < PLAIN_END && (whole as f64).to_bits() == number.to_bits() {
            return write!(f, "{whole}.0");
        }
        match number {
            _ if number.is_nan() => f.write_str("NaN"),
            f64::INFINITY => f.write_str("Infinity"),
            f64::NEG_INFINITY => f.write_str("-Infinity"),
            _ => finite(number, f),
        }
    }
}

impl Display for JavaSingle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JavaSingle(number) = *self;
        if number.is_finite() { finite(number, f) } else { JavaDouble(number.into()).fmt(f) }
    }
}

/// Numbers from here on are printed with an exponent.
const PLAIN_END: u64 = 10_000_000;

/// The exponents of numbers that are printed without one: 0.001 up to `PLAIN_END`.
const PLAIN: std::ops::Range<i32> = -3..7;

fn finite(number: impl LowerExp, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut text = Short::default();
    write!(text, "{number:e}")?;
    if !text.as_str().contains('.') {
        // One digit: Java looks for the nearest number of two digits, which matters for the smallest numbers, as 4.9E-324.
        text.len = 0;
        write!(text, "{number:.1e}")?;
    }
    let (negative, text) = text.as_str().strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    let (digits, exponent) = text.split_once('e').ok_or(fmt::Error)?;
    let exponent: i32 = exponent.parse().map_err(|_| fmt::Error)?;
    let (first, rest) = digits.split_once('.').ok_or(fmt::Error)?;
    f.write_str(negative)?;
    if !PLAIN.contains(&exponent) {
        return write!(f, "{first}.{rest}E{exponent}");
    }
    let zeros = exponent.unsigned_abs() as usize;
    if exponent < 0 {
        // `{:.1e}` gives a digit that is 0.
        let rest = if rest == "0" { "" } else { rest };
        return write!(f, "0.{:0<width$}{first}{rest}", "", width = zeros - 1);
    }
    let (whole, fraction) = rest.split_at(rest.len().min(zeros));
    let fraction = if fraction.is_empty() { "0" } else { fraction };
    write!(f, "{first}{whole:0<zeros$}.{fraction}")
}

/// Longest text of a number: a sign, 17 digits, a point, and an exponent as `e-324`.
const SHORT_BYTES: usize = 32;

/// A text without an allocation.
#[derive(Default)]
struct Short {
    bytes: [u8; SHORT_BYTES],
    len: usize,
}

impl Short {
    fn as_str(&self) -> &str {
        str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

impl Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.len..self.len + text.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn doubles_print_as_in_java() {
        let table: &[(f64, &str)] = &[
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-5.0, "-5.0"),
            (100.0, "100.0"),
            (120.5, "120.5"),
            (1234567.0, "1234567.0"),
            (9_999_999.0, "9999999.0"),
            (9_999_999.999, "9999999.999"),
            (-9_999_999.0, "-9999999.0"),
            (10_000_000.0, "1.0E7"),
            (-10_000_000.0, "-1.0E7"),
            (12_345_678.9, "1.23456789E7"),
            (1e11, "1.0E11"),
            (1e23, "1.0E23"),
            (1e300, "1.0E300"),
            (f64::MAX, "1.7976931348623157E308"),
            (0.1, "0.1"),
            (-0.1, "-0.1"),
            (0.01, "0.01"),
            (0.001, "0.001"),
            (0.0012, "0.0012"),
            (0.000999, "9.99E-4"),
            (1e-4, "1.0E-4"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1.0 / 3.0, "0.3333333333333333"),
            (f64::MIN_POSITIVE, "2.2250738585072014E-308"),
            (f64::from_bits(1), "4.9E-324"),
            (f64::from_bits(2), "9.9E-324"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ];
        for (number, want) in table {
            assert_eq!(JavaDouble(*number).to_string(), *want);
        }
    }

    #[test]
    fn singles_print_with_their_own_digits() {
        let table: &[(f32, &str)] = &[
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (60.0, "60.0"),
            (16_777_216.0, "1.6777216E7"),
            (1.0 / 3.0, "0.33333334"),
            (f32::MAX, "3.4028235E38"),
            (f32::from_bits(1), "1.4E-45"),
            (f32::NAN, "NaN"),
            (f32::NEG_INFINITY, "-Infinity"),
        ];
        for (number, want) in table {
            assert_eq!(JavaSingle(*number).to_string(), *want);
        }
    }

    proptest! {
        #[test]
        fn printed_numbers_parse_to_the_same_number(bits in any::<u64>(), plain in -1e9..1e9) {
            for number in [f64::from_bits(bits), plain, plain / 1e9].into_iter().filter(|number| !number.is_nan()) {
                let text = JavaDouble(number).to_string();
                prop_assert!(text.contains('.') || number.is_infinite(), "{text}");
                prop_assert_eq!(text.parse::<f64>().map(f64::to_bits), Ok(number.to_bits()), "{}", text);
                let single = number as f32;
                let text = JavaSingle(single).to_string();
                prop_assert_eq!(text.parse::<f32>().map(f32::to_bits), Ok(single.to_bits()), "{}", text);
            }
        }
    }
}
