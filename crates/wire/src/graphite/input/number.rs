//! Validates the numbers of Graphite lines, which are passed on as text.
//!
//! Accepted: decimals with a sign, a point and an exponent, and the words `inf`, `infinity` and `nan` in any case.
//! Underscores (Python) and hexadecimal (Go) are rejected in all modes: no client sends them, and they hide typos.

use crate::number::{double, is_decimal};

/// The class of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    /// A decimal within the range of a double.
    Finite(f64),
    /// A decimal beyond it.
    Overflow,
    /// A word for infinity.
    Infinite,
    /// The word for NaN.
    Nan,
}

/// True for a text that every parser reads as a finite number of 0 or more: few digits with a point among or after
/// them.
pub(super) fn is_plain(text: &[u8]) -> bool {
    const PLAIN_LEN_MAX: usize = 32;
    let points = text.iter().filter(|byte| **byte == b'.').count();
    let digits = text.iter().filter(|byte| byte.is_ascii_digit()).count();
    let begins = text.first().is_some_and(u8::is_ascii_digit);
    begins && text.len() <= PLAIN_LEN_MAX && points <= 1 && points + digits == text.len()
}

/// Parses `text`; `None` when it is not a number.
pub(super) fn read(text: &[u8]) -> Option<Number> {
    let unsigned = match text {
        [b'+' | b'-', rest @ ..] => rest,
        _ => text,
    };
    if is_decimal(unsigned) {
        let text = text.strip_prefix(b"+").unwrap_or(text);
        let value = double(text)?;
        return Some(if value.is_finite() { Number::Finite(value) } else { Number::Overflow });
    }
    let is = |word: &str| unsigned.eq_ignore_ascii_case(word.as_bytes());
    if is("inf") || is("infinity") {
        Some(Number::Infinite)
    } else if is("nan") {
        Some(Number::Nan)
    } else {
        None
    }
}

#[test]
fn numbers_are_decimals_and_three_words() {
    use Number::{Finite, Infinite, Nan, Overflow};
    let table: &[(&str, Option<Number>)] = &[
        ("1", Some(Finite(1.0))),
        ("-1.50", Some(Finite(-1.5))),
        ("+.5", Some(Finite(0.5))),
        ("5.", Some(Finite(5.0))),
        ("1e3", Some(Finite(1000.0))),
        ("1E-3", Some(Finite(0.001))),
        ("1e999", Some(Overflow)),
        ("-1e999", Some(Overflow)),
        ("-Inf", Some(Infinite)),
        ("INFINITY", Some(Infinite)),
        ("nan", Some(Nan)),
        ("", None),
        (".", None),
        ("-", None),
        ("+-1", None),
        ("1e", None),
        ("1e+", None),
        ("1_000", None),
        ("0x10", None),
        ("0x1p3", None),
        ("1,5", None),
        ("1.2.3", None),
        ("infinit", None),
        ("N", None),
    ];
    for (text, want) in table {
        assert_eq!(read(text.as_bytes()), *want, "{text:?}");
        let finite = matches!(want, Some(Finite(value)) if *value >= 0.0);
        assert!(finite || !is_plain(text.as_bytes()), "{text:?}");
    }
}
