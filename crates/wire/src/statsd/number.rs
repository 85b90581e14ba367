//! Parses numbers as the dialects do: JavaScript's `Number` (spec statsd §2.3), `strtod` (§5.2), Perl's prefix (§4).
//!
//! Path of a packet: the parsers of the dialects call these functions with one value or rate.
//! Not here: whether a value may be negative or infinite; the dialects decide that.
//! Invariant: every text gives a number or `None`, never a panic; decimals are correctly rounded.

use super::blank::{js_trim, perl_blank};
use crate::number::double;

/// Powers of ten that are exact in a double, as many as [`plain`] needs.
const POWERS_OF_TEN: [f64; 16] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// Most characters that [`plain`] accepts: their digits stay below 2^53.
const PLAIN_CHARS_MAX: usize = 15;

/// An integer of seconds above 0, digits only, within the signed 64 bits that clients use.
pub(super) fn whole_seconds(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let mut seconds = 0_i64;
    for &byte in text {
        let digit = char::from(byte).to_digit(10)?;
        seconds = seconds.checked_mul(10)?.checked_add(i64::from(digit))?;
    }
    u64::try_from(seconds).ok().filter(|&seconds| seconds > 0)
}

/// Digits with at most one point, no sign, at most [`PLAIN_CHARS_MAX`] characters: the form of nearly all values.
///
/// Exact: the digits are below 10^15 < 2^53 and the power of ten is a double, so one division rounds once.
/// `None` means that the text has another form; it may still be a number.
#[inline]
pub(super) fn plain(text: &[u8]) -> Option<f64> {
    if text.len() > PLAIN_CHARS_MAX {
        return None;
    }
    let mut digits = 0_u64;
    let mut point = None;
    for (at, &byte) in text.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            digits = digits * 10 + u64::from(digit);
        } else if byte == b'.' && point.is_none() {
            point = Some(at);
        } else {
            return None;
        }
    }
    match point {
        None if text.is_empty() => None,
        None => Some(digits as f64),
        Some(_) if text.len() == 1 => None,
        Some(at) => Some(digits as f64 / POWERS_OF_TEN[text.len() - 1 - at]),
    }
}

/// 0x01 in each byte of a word.
const ONES: u64 = 0x0101_0101_0101_0101;

/// The same for the first `len` of eight bytes, without a branch per digit; a point may not come first.
///
/// `None` also when `len` is not 1 to 8.
#[inline(always)]
pub(super) fn plain_short(text: [u8; 8], len: usize) -> Option<f64> {
    if len.wrapping_sub(1) >= 8 {
        return None;
    }
    // The digits are shifted to the high end of the word, the last one to the highest byte; zeros fill up in front.
    let digits = (u64::from_le_bytes(text) ^ (ONES * u64::from(b'0'))) << (64 - 8 * len);
    if digits_only(digits) {
        return Some(join_digits(digits));
    }
    if text[0] == b'.' { None } else { with_point(digits) }
}

/// The same for a word whose digits contain one point. Separate, so that integers need not wait for a division.
#[inline(never)]
fn with_point(digits: u64) -> Option<f64> {
    const POINT: u64 = (b'.' ^ b'0') as u64;
    let differs = digits ^ (ONES * POINT);
    let points = differs.wrapping_sub(ONES) & !differs & (ONES << 7);
    if points == 0 {
        return None;
    }
    // The bytes before the first point are shifted into its position. (A second point is not a digit.)
    let point = points.trailing_zeros() / 8;
    let before = (1_u64 << (8 * point)) - 1;
    let behind = !((before << 8) | 0xFF);
    let digits = (digits & behind) | ((digits & before) << 8);
    digits_only(digits).then(|| join_digits(digits) / POWERS_OF_TEN[7 - point as usize])
}

/// True when each byte is 0 to 9.
#[inline(always)]
fn digits_only(digits: u64) -> bool {
    (digits.wrapping_add(ONES * 0x76) | digits) & (ONES << 7) == 0
}

/// The number whose decimal digits are the bytes, the lowest byte first: neighbours are joined to pairs, pairs to
/// fours, fours to eight.
#[inline(always)]
fn join_digits(digits: u64) -> f64 {
    const PAIRS: u64 = 0x0000_00FF_0000_00FF;
    let pairs = digits * 10 + (digits >> 8);
    let low = (pairs & PAIRS).wrapping_mul(100 + (1_000_000 << 32));
    let high = ((pairs >> 16) & PAIRS).wrapping_mul(1 + (10_000 << 32));
    // 32 bits: the conversion from a signed integer is one instruction.
    f64::from((low.wrapping_add(high) >> 32) as u32)
}

/// Optional sign, digits with an optional point, optional exponent; the whole text. May overflow to infinity.
pub(super) fn decimal(text: &[u8]) -> Option<f64> {
    if let Some(number) = plain(text) {
        return Some(number);
    }
    let (negative, unsigned) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    // The library also parses `inf`, `nan` and a second sign: only a digit or a point may begin a number here.
    if !matches!(unsigned.first(), Some(b'0'..=b'9' | b'.')) {
        return None;
    }
    let number = plain(unsigned).or_else(|| double(unsigned))?;
    Some(if negative { -number } else { number })
}

/// JavaScript's `Number(text)`; `None` where that is NaN or the text is empty. May be infinite.
///
/// `strict` rejects blank texts and the notations with `0x`, `0o` and `0b`.
pub(super) fn js_parse(text: &[u8], strict: bool) -> Option<f64> {
    if let Some(number) = plain(text) {
        return Some(number);
    }
    if text.is_empty() {
        return None;
    }
    let text = js_trim(text);
    match text {
        [] => (!strict).then_some(0.0),
        [b'0', b'x' | b'X', digits @ ..] if !strict => power_of_two(digits, 4),
        [b'0', b'o' | b'O', digits @ ..] if !strict => power_of_two(digits, 3),
        [b'0', b'b' | b'B', digits @ ..] if !strict => power_of_two(digits, 1),
        b"Infinity" | b"+Infinity" => Some(f64::INFINITY),
        b"-Infinity" => Some(f64::NEG_INFINITY),
        _ => decimal(text),
    }
}

/// The common subset of C's `strtod` and Go's `ParseFloat`, without white space: decimals, `inf`, `infinity` and
/// `nan` in any case, and unless `strict` hexadecimal integers. Hexadecimal fractions are not supported.
pub(super) fn strtod(text: &[u8], strict: bool) -> Option<f64> {
    if let Some(number) = decimal(text) {
        return Some(number);
    }
    let (sign, unsigned) = match text {
        [b'-', rest @ ..] => (-1.0, rest),
        [b'+', rest @ ..] => (1.0, rest),
        _ => (1.0, text),
    };
    let number = match unsigned {
        [b'0', b'x' | b'X', digits @ ..] if !strict => power_of_two(digits, 4)?,
        _ if unsigned.eq_ignore_ascii_case(b"inf") || unsigned.eq_ignore_ascii_case(b"infinity") => {
            f64::INFINITY
        }
        _ if unsigned.eq_ignore_ascii_case(b"nan") => f64::NAN,
        _ => return None,
    };
    Some(sign * number)
}

/// A text as Perl converts it to a number: the longest numeric prefix after white space, 0 when there is none.
///
/// Texts that begin with `inf` or `nan`, in any case, are infinite and NaN as in Perl.
pub(super) fn perl_number(text: &[u8]) -> f64 {
    if let Some(number) = plain(text) {
        return number;
    }
    let start = text.iter().position(|&byte| !perl_blank(byte)).unwrap_or(text.len());
    let text = &text[start..];
    let sign_len = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let unsigned = &text[sign_len..];
    let sign = if text.first() == Some(&b'-') { -1.0 } else { 1.0 };
    match unsigned.first_chunk::<3>() {
        Some(word) if word.eq_ignore_ascii_case(b"inf") => return sign * f64::INFINITY,
        Some(word) if word.eq_ignore_ascii_case(b"nan") => return f64::NAN,
        _ => {}
    }
    sign * decimal_prefix(unsigned)
}

/// The longest unsigned decimal prefix of `text`; 0 when there is none.
pub(super) fn decimal_prefix(text: &[u8]) -> f64 {
    decimal(&text[..decimal_prefix_len(text)]).unwrap_or(0.0)
}

/// Length of the longest prefix that is an unsigned decimal; 0 when there is none.
fn decimal_prefix_len(text: &[u8]) -> usize {
    let digits = |from: usize| text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(0);
    let mut len = whole;
    let mut digits_seen = whole;
    if text.get(len) == Some(&b'.') {
        let fraction = digits(len + 1);
        digits_seen += fraction;
        len += 1 + fraction;
    }
    if digits_seen == 0 {
        return 0;
    }
    if matches!(text.get(len), Some(b'e' | b'E')) {
        let sign_len = usize::from(matches!(text.get(len + 1), Some(b'+' | b'-')));
        let exponent = digits(text.len().min(len + 1 + sign_len));
        if exponent > 0 {
            len += 1 + sign_len + exponent;
        }
    }
    len
}

/// An unsigned integer in base 2, 8 or 16 (`bits` per digit 1, 3 or 4), correctly rounded; `None` without digits.
fn power_of_two(digits: &[u8], bits: u32) -> Option<f64> {
    if digits.is_empty() {
        return None;
    }
    // 64 bits are a double's 53 and enough for rounding; of the bits shifted out it only matters whether one is set.
    let mut held = 0_u64;
    let mut shifted_out = 0_i32;
    let mut rest_not_zero = false;
    for &byte in digits {
        let digit = char::from(byte).to_digit(1 << bits)?;
        if held.leading_zeros() >= bits {
            held = held << bits | u64::from(digit);
        } else {
            shifted_out = shifted_out.saturating_add(bits as i32);
            rest_not_zero |= digit != 0;
        }
    }
    Some((held | u64::from(rest_not_zero)) as f64 * 2_f64.powi(shifted_out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn javascript_numbers() {
        let table: &[(&str, Option<f64>)] = &[
            ("", None),
            (" ", Some(0.0)),
            ("\u{a0}\u{feff}\t", Some(0.0)),
            (" 5 ", Some(5.0)),
            ("\u{2003}5\u{3000}", Some(5.0)),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            ("5.e3", Some(5000.0)),
            (".", None),
            (".e1", None),
            ("-.5e-1", Some(-0.05)),
            ("+3", Some(3.0)),
            ("007", Some(7.0)),
            ("1e3", Some(1000.0)),
            ("1E-2", Some(0.01)),
            ("1e400", Some(f64::INFINITY)),
            ("Infinity", Some(f64::INFINITY)),
            ("+Infinity", Some(f64::INFINITY)),
            ("-Infinity", Some(f64::NEG_INFINITY)),
            ("infinity", None),
            ("inf", None),
            ("-inf", None),
            ("NaN", None),
            ("nan", None),
            ("1,5", None),
            ("1_000", None),
            ("--1", None),
            ("+-1", None),
            ("1e", None),
            ("4f", None),
            ("+", None),
            ("- 1", None),
            ("0x10", Some(16.0)),
            ("0XfF", Some(255.0)),
            ("0b11", Some(3.0)),
            ("0o17", Some(15.0)),
            ("-0x10", None),
            ("0x", None),
            ("0b2", None),
            ("0x1.8", None),
            ("9007199254740993", Some(9_007_199_254_740_992.0)),
            ("0x20000000000001", Some(9_007_199_254_740_992.0)),
            ("0x20000000000003", Some(9_007_199_254_740_996.0)),
            ("0x200000000000010000000000000001", Some(2_f64.powi(117) + 2_f64.powi(65))),
            ("123456789012345", Some(123_456_789_012_345.0)),
            ("0.12345678901234", Some(0.123_456_789_012_34)),
        ];
        for (text, want) in table {
            assert_eq!(js_parse(text.as_bytes(), false), *want, "{text:?}");
        }
        assert!(js_parse(b"-0", false).is_some_and(|zero| zero == 0.0 && zero.is_sign_negative()));
        for text in ["0x10", "0b11", "0o17", " ", "\t\u{a0}"] {
            assert_eq!(js_parse(text.as_bytes(), true), None, "strict {text:?}");
        }
        assert_eq!(js_parse(b" 5 ", true), Some(5.0));
    }

    #[test]
    fn strtod_numbers() {
        let table: &[(&str, Option<f64>)] = &[
            ("1", Some(1.0)),
            ("+1.5e2", Some(150.0)),
            (" 1", None),
            ("1 ", None),
            ("INF", Some(f64::INFINITY)),
            ("-infinity", Some(f64::NEG_INFINITY)),
            ("infinit", None),
            ("-0x10", Some(-16.0)),
            ("0x1p3", None),
            ("0o7", None),
            ("", None),
            ("-", None),
        ];
        for (text, want) in table {
            assert_eq!(strtod(text.as_bytes(), false), *want, "{text:?}");
        }
        assert!(strtod(b"nan", true).is_some_and(f64::is_nan));
        assert_eq!(strtod(b"0x10", true), None);
    }

    #[test]
    fn perl_numbers() {
        let table: &[(&str, f64)] = &[
            ("", 0.0),
            ("abc", 0.0),
            ("12abc", 12.0),
            (" \t-3.5e1x", -35.0),
            ("1e", 1.0),
            ("1e+", 1.0),
            (".5.5", 0.5),
            (".", 0.0),
            ("1.2.3", 1.2),
            ("0x10", 0.0),
            ("+7", 7.0),
            ("--7", 0.0),
            ("1e400", f64::INFINITY),
            ("-Infinite", f64::NEG_INFINITY),
        ];
        for (text, want) in table {
            assert_eq!(perl_number(text.as_bytes()), *want, "{text:?}");
        }
        assert!(perl_number(b"NaNa").is_nan());
    }

    proptest! {
        #[test]
        fn decimals_match_the_standard_library(
            text in "[-+]?([0-9]{1,18}|[0-9]{0,9}\\.[0-9]{0,9})([eE][-+]?[0-9]{1,3})?",
        ) {
            prop_assert_eq!(decimal(text.as_bytes()), text.parse::<f64>().ok());
        }

        #[test]
        fn plain_short_matches_plain(text in "[0-9.]{1,8}|[0-9a-z.:/]{1,8}", behind in any::<[u8; 8]>()) {
            let mut eight = behind;
            eight[..text.len()].copy_from_slice(text.as_bytes());
            let want = plain(text.as_bytes()).filter(|_| !text.starts_with('.'));
            prop_assert_eq!(plain_short(eight, text.len()), want);
            prop_assert_eq!(plain_short(eight, 0), None);
            prop_assert_eq!(plain_short(eight, 9), None);
        }

        #[test]
        fn no_input_makes_a_parser_panic(text in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = (js_parse(&text, false), strtod(&text, false), perl_number(&text));
        }
    }
}
