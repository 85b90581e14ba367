//! The grammar of JavaScript's `Number(text)`.

use std::str::from_utf8;

use lexical_parse_float::FromLexical;

/// Most digits that fit any `u64` and are exact in a double.
const EXACT_DIGITS: usize = 15;

/// Parses `text` as JavaScript's `Number(text)` does (spec statsd §2.3).
///
/// `None` for the empty text and for NaN. Overflow and the word `Infinity` give an infinity: the dialect decides
/// whether to accept it. A text of white space only is 0.
pub fn js_parse(text: &[u8]) -> Option<f64> {
    if let Some(value) = small_integer(text) {
        return Some(value);
    }
    if text.is_empty() {
        return None;
    }
    let text = js_trim(text);
    if text.is_empty() {
        return Some(0.0);
    }
    if let [b'0', radix, digits @ ..] = text {
        match radix {
            b'x' | b'X' => return power_of_two_radix(digits, 4),
            b'o' | b'O' => return power_of_two_radix(digits, 3),
            b'b' | b'B' => return power_of_two_radix(digits, 1),
            _ => {}
        }
    }
    let (negative, unsigned) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let magnitude = if unsigned == b"Infinity" {
        f64::INFINITY
    } else if is_decimal(unsigned) {
        double(unsigned)?
    } else {
        return None;
    };
    Some(if negative { -magnitude } else { magnitude })
}

/// The common case: an optional minus and up to 15 digits.
#[inline]
fn small_integer(text: &[u8]) -> Option<f64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > EXACT_DIGITS {
        return None;
    }
    let mut value = 0_u64;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    let value = value as f64;
    Some(if negative { -value } else { value })
}

/// The double nearest to a decimal, as the standard library parses it; infinite on overflow. Also parses `inf`,
/// `infinity` and `nan`.
///
/// A number whose first 19 digits do not decide the nearest double needs a long multiplication. This library takes
/// 0.2 µs for it; libraries that shift decimal digits take 9 µs for `98153118096864033785e280`, and a packet holds
/// thousands.
#[inline]
pub(crate) fn double(text: &[u8]) -> Option<f64> {
    f64::from_lexical(text).ok()
}

/// True for digits with an optional decimal point before, among or after them, and an optional exponent.
pub(crate) fn is_decimal(text: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(text);
    let mut rest = &text[whole..];
    let mut fraction = 0;
    if let [b'.', behind @ ..] = rest {
        fraction = digits(behind);
        rest = &behind[fraction..];
    }
    if whole + fraction == 0 {
        return false;
    }
    match rest {
        [] => true,
        [b'e' | b'E', b'+' | b'-', exponent @ ..] | [b'e' | b'E', exponent @ ..] => {
            !exponent.is_empty() && digits(exponent) == exponent.len()
        }
        _ => false,
    }
}

/// An integer in radix `2^bits`, rounded to the nearest double, ties to even. At least one digit.
fn power_of_two_radix(digits: &[u8], bits: u32) -> Option<f64> {
    if digits.is_empty() {
        return None;
    }
    let (mut value, mut shift, mut lost) = (0_u64, 0_i64, false);
    for &byte in digits {
        let digit = char::from(byte).to_digit(1 << bits)?;
        if value >> 59 == 0 {
            value = value << bits | u64::from(digit);
        } else {
            // `value` has at least 60 bits here: the remaining digits only decide a tie.
            shift += i64::from(bits);
            lost |= digit != 0;
        }
    }
    let nearest = (value | u64::from(lost)) as f64;
    let shift = i32::try_from(shift.min(2_000)).expect("bounded to 2000 on this line");
    // In two steps: 2^shift alone may overflow where the product does not (it never underflows).
    Some(nearest * 2_f64.powi(shift / 2) * 2_f64.powi(shift - shift / 2))
}

/// `text` without white space at both ends, as JavaScript's `trim` removes it: ASCII white space, NBSP, BOM
/// and the Unicode spaces (spec statsd §2.3).
pub fn js_trim(mut text: &[u8]) -> &[u8] {
    while let Some(len) = space_at_start(text) {
        text = &text[len..];
    }
    while let Some(len) = space_at_end(text) {
        text = &text[..text.len() - len];
    }
    text
}

/// True for JavaScript's white space.
pub(crate) fn is_js_space(c: char) -> bool {
    matches!(
        c,
        '\t' | '\n' | '\u{b}' | '\u{c}' | '\r' | ' ' | '\u{a0}' | '\u{feff}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}' | '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
    )
}

fn space_at_start(text: &[u8]) -> Option<usize> {
    let first = *text.first()?;
    if first.is_ascii() {
        return is_js_space(char::from(first)).then_some(1);
    }
    is_space_bytes(text.get(..2)?).then_some(2).or_else(|| is_space_bytes(text.get(..3)?).then_some(3))
}

fn space_at_end(text: &[u8]) -> Option<usize> {
    let last = *text.last()?;
    if last.is_ascii() {
        return is_js_space(char::from(last)).then_some(1);
    }
    [2, 3].into_iter().find(|len| text.len() >= *len && is_space_bytes(&text[text.len() - len..]))
}

/// True when the bytes are exactly one white space character.
fn is_space_bytes(bytes: &[u8]) -> bool {
    from_utf8(bytes).is_ok_and(|text| {
        let mut chars = text.chars();
        chars.next().is_some_and(is_js_space) && chars.next().is_none()
    })
}
