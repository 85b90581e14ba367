//! Parsing and formatting numbers exactly as node statsd and Net::Statsd::Server do.
//!
//! Parsing: JavaScript's `Number(text)`, used by the `etsy` and `perl` dialects (spec statsd §2.3). Formatting:
//! JavaScript's shortest form (§8.4), Perl's `%.6f` and `%d` (§4). Not here: which values a dialect accepts.
//! Invariant: for each finite `x`, `js_parse` of the output of `js_format` is `x` bit for bit (except that `-0`
//! becomes `0`).

pub(crate) mod parse;

pub(crate) use parse::{double, is_decimal, is_js_space};
pub use parse::{js_parse, js_trim};

/// Integers of a smaller magnitude are exact in a double and print as plain digits.
const EXACT_INTEGER_END: f64 = 9_007_199_254_740_992.0;

/// Decimal places that [`js_format`] tries before the general algorithm, with their powers of ten.
const TRIED_DECIMALS: [(usize, f64); 2] = [(1, 1e1), (3, 1e3)];

/// Appends `x` as JavaScript prints it: shortest digits that parse back, `1e+21`, `1e-7`, `-0` as `0`.
///
/// NaN and the infinities give `NaN`, `Infinity` and `-Infinity`. Callers whose protocol has no such numbers
/// must filter them first.
#[inline]
pub fn js_format(x: f64, out: &mut Vec<u8>) {
    if x.abs() < EXACT_INTEGER_END {
        let whole = x as i64;
        if whole as f64 == x {
            out.extend_from_slice(itoa::Buffer::new().format(whole).as_bytes());
            return;
        }
        if few_decimals(x, out) {
            return;
        }
    }
    out.extend_from_slice(ryu_js::Buffer::new().format(x).as_bytes());
}

/// Writes a number of at most three decimals and returns true; writes nothing for others. Most rates are such numbers,
/// because window lengths are round.
///
/// A decimal of at most 15 significant digits is the shortest text for its double: when `digits / 10^n` equals `x`,
/// those digits without trailing zeros are the answer.
#[inline]
fn few_decimals(x: f64, out: &mut Vec<u8>) -> bool {
    for (decimals, power) in TRIED_DECIMALS {
        let scaled = (x.abs() * power).round();
        if !(1.0..1e15).contains(&scaled) || scaled / power != x.abs() {
            continue;
        }
        let (mut digits, mut decimals) = (scaled as u64, decimals);
        while digits.is_multiple_of(10) {
            digits /= 10;
            decimals -= 1;
        }
        assert!(decimals > 0, "integers are handled before");
        write_decimal(x < 0.0, digits, decimals, out);
        return true;
    }
    false
}

/// Appends `digits` with a decimal point before the last `decimals` of them, and a leading zero if needed.
fn write_decimal(negative: bool, digits: u64, decimals: usize, out: &mut Vec<u8>) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(digits).as_bytes();
    // A sign, `0.00` and 15 digits at most.
    let mut text = [b'0'; 32];
    let mut at = 0;
    if negative {
        text[0] = b'-';
        at = 1;
    }
    let whole = digits.len().saturating_sub(decimals);
    let zeros = decimals.saturating_sub(digits.len());
    text[at..at + whole].copy_from_slice(&digits[..whole]);
    at += whole.max(1);
    text[at] = b'.';
    at += 1 + zeros;
    let fraction = &digits[whole..];
    text[at..at + fraction.len()].copy_from_slice(fraction);
    out.extend_from_slice(&text[..at + fraction.len()]);
}

/// Appends `x` as C's `%.6f` prints it: six decimals of the exact value, ties to even, `-0.000000` kept.
pub fn fixed6(x: f64, out: &mut Vec<u8>) {
    use std::io::Write;

    if x.abs() < EXACT_INTEGER_END && x as i64 as f64 == x && !(x == 0.0 && x.is_sign_negative()) {
        out.extend_from_slice(itoa::Buffer::new().format(x as i64).as_bytes());
        out.extend_from_slice(b".000000");
        return;
    }
    write!(out, "{x:.6}").expect("writing to a Vec cannot fail");
}

/// Appends `x` as Perl's `%d` prints it: truncated toward zero. Beyond 64 bits the integer part is printed in full,
/// where Perl would wrap around.
pub fn truncated(x: f64, out: &mut Vec<u8>) {
    use std::io::Write;

    if x.abs() < EXACT_INTEGER_END {
        out.extend_from_slice(itoa::Buffer::new().format(x as i64).as_bytes());
        return;
    }
    write!(out, "{:.0}", x.trunc()).expect("writing to a Vec cannot fail");
}

#[cfg(test)]
mod tests;
