//! JavaScript's conversions between texts and numbers, as far as configuration files need them.

/// JavaScript white space and line ends, as `trim` removes them.
pub(super) fn is_space(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\u{b}' | '\u{c}' | '\r' | ' ' | '\u{a0}' | '\u{feff}' | '\u{1680}')
        || matches!(
            c,
            '\u{2000}'..='\u{200a}' | '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
        )
}

/// `text.trim()`.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// `String(number)`: the shortest digits that round-trip, exponents from 1e21 and below 1e-6.
pub fn to_text(number: f64) -> String {
    ryu_js::Buffer::new().format(number).to_owned()
}

/// `Number(text)`: NaN when the text is no number, 0 when it is blank.
pub fn to_number(text: &str) -> f64 {
    let text = trim(text);
    if text.is_empty() {
        return 0.0;
    }
    if let Some((radix, digits)) = radix_prefix(text) {
        return integer(digits, radix).unwrap_or(f64::NAN);
    }
    match decimal_prefix(text) {
        Some((number, length)) if length == text.len() => number,
        _ => f64::NAN,
    }
}

/// `parseFloat(text)`: the longest decimal at the start.
pub(super) fn parse_float(text: &str) -> f64 {
    decimal_prefix(text.trim_start_matches(is_space)).map_or(f64::NAN, |(number, _)| number)
}

/// `parseInt(text, radix)`: the longest run of digits at the start; `None` without a radix.
pub(super) fn parse_int(text: &str, radix: Option<u32>) -> f64 {
    let text = text.trim_start_matches(is_space);
    let (negative, text) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (radix, text) = match (radix, hexadecimal) {
        (None | Some(16), Some(rest)) => (16, rest),
        (radix, _) => (radix.unwrap_or(10), text),
    };
    if !(2..=36).contains(&radix) {
        return f64::NAN;
    }
    let digits = text.find(|c: char| !c.is_digit(radix)).unwrap_or(text.len());
    match integer(&text[..digits], radix) {
        Some(number) if negative => -number,
        Some(number) => number,
        None => f64::NAN,
    }
}

/// The integer of these digits; none when there are none or one is not a digit.
pub(super) fn integer(digits: &str, radix: u32) -> Option<f64> {
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    if radix == 10 {
        return digits.parse().ok();
    }
    if let Ok(exact) = u64::from_str_radix(digits, radix) {
        // One rounding, as in JavaScript.
        return Some(exact as f64);
    }
    let digit = |c: char| f64::from(c.to_digit(radix).unwrap_or(0));
    Some(digits.chars().fold(0.0, |sum, c| sum * f64::from(radix) + digit(c)))
}

/// `0x`, `0o` or `0b` at the start, and the digits after it.
pub(super) fn radix_prefix(text: &str) -> Option<(u32, &str)> {
    let rest = text.strip_prefix('0')?;
    let radix = match rest.as_bytes().first()? {
        b'x' | b'X' => 16,
        b'o' | b'O' => 8,
        b'b' | b'B' => 2,
        _ => return None,
    };
    Some((radix, &rest[1..]))
}

/// The longest decimal (or `Infinity`) at the start of `text`, with its length in bytes.
pub(super) fn decimal_prefix(text: &str) -> Option<(f64, usize)> {
    let bytes = text.as_bytes();
    let sign = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    if text[sign..].starts_with("Infinity") {
        let number = if bytes[0] == b'-' { f64::NEG_INFINITY } else { f64::INFINITY };
        return Some((number, sign + "Infinity".len()));
    }
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let whole = digits(sign);
    let mut end = sign + whole;
    let mut fraction = 0;
    if bytes.get(end) == Some(&b'.') {
        fraction = digits(end + 1);
        if whole + fraction > 0 {
            end += 1 + fraction;
        }
    }
    if whole + fraction == 0 {
        return None;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let signed = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = if signed <= bytes.len() { digits(signed) } else { 0 };
        if exponent > 0 {
            end = signed + exponent;
        }
    }
    text[..end].parse().ok().map(|number| (number, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_converted_to_numbers_as_in_javascript() {
        let table: &[(&str, f64)] = &[
            ("8125", 8125.0),
            (" 8125\n", 8125.0),
            ("", 0.0),
            (" \u{feff}", 0.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("-1e3", -1000.0),
            ("1e+2", 100.0),
            ("0x1F", 31.0),
            ("0o17", 15.0),
            ("0b11", 3.0),
            ("Infinity", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("007", 7.0),
        ];
        for (text, want) in table {
            assert_eq!(to_number(text), *want, "text {text:?}");
        }
        for text in ["abc", "1e", "1,5", "1_000", "--1", "-0x10", "0x", "inf", "nan", "+", ".", "1 2", "é"] {
            assert!(to_number(text).is_nan(), "text {text:?}");
        }
    }

    #[test]
    fn parse_int_and_parse_float_read_the_longest_prefix() {
        let table: &[(&str, Option<u32>, f64)] = &[
            ("8125/udp", Some(10), 8125.0),
            (" -12.9", None, -12.0),
            ("0x1f", None, 31.0),
            ("0x1f", Some(10), 0.0),
            ("0x1f", Some(16), 31.0),
            ("755", Some(8), 493.0),
            ("zz", Some(36), 1295.0),
        ];
        for (text, radix, want) in table {
            assert_eq!(parse_int(text, *radix), *want, "text {text:?}");
        }
        assert!(parse_int("abc", None).is_nan() && parse_int("", None).is_nan());
        assert!(parse_int("12", Some(1)).is_nan() && parse_int("12", Some(37)).is_nan());
        assert_eq!(parse_float("3.5s"), 3.5);
        assert_eq!(parse_float("1e"), 1.0);
        assert!(parse_float("x1").is_nan());
    }

    #[test]
    fn numbers_print_as_in_javascript() {
        let table: &[(f64, &str)] =
            &[(90.0, "90"), (99.9, "99.9"), (1e21, "1e+21"), (1e-7, "1e-7"), (-0.0, "0"), (f64::NAN, "NaN")];
        for (number, want) in table {
            assert_eq!(to_text(*number), *want);
        }
    }
}
