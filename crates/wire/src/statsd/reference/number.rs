//! Numbers, parsed character by character.

/// JavaScript white space, which differs from Rust's in two characters.
pub(super) fn js_blank(char: char) -> bool {
    char == '\u{feff}' || (char.is_whitespace() && char != '\u{85}')
}

pub(super) fn js_trim(text: &[u8]) -> String {
    String::from_utf8_lossy(text).trim_matches(js_blank).to_string()
}

/// JavaScript's `Number(text)`: NaN when it is not a number.
pub(super) fn js_number(text: &[u8], strict: bool) -> f64 {
    if text.is_empty() {
        return f64::NAN;
    }
    let text = js_trim(text);
    if text.is_empty() {
        return if strict { f64::NAN } else { 0.0 };
    }
    for (prefix, bits) in [("0x", 4), ("0o", 3), ("0b", 1)] {
        if let Some(digits) = text.to_lowercase().strip_prefix(prefix)
            && text.is_ascii()
        {
            return if strict { f64::NAN } else { binary(digits, bits) };
        }
    }
    match text.as_str() {
        "Infinity" | "+Infinity" => f64::INFINITY,
        "-Infinity" => f64::NEG_INFINITY,
        text => decimal(text),
    }
}

/// The common subset of Go and C: NaN for NaN, and for texts that are not a number.
pub(super) fn go_number(text: &[u8], strict: bool) -> Option<f64> {
    let text = String::from_utf8_lossy(text).to_string();
    let lower = text.to_lowercase();
    let unsigned = lower.strip_prefix(['+', '-']).unwrap_or(&lower);
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    if text.is_ascii() {
        match unsigned {
            "inf" | "infinity" => return Some(sign * f64::INFINITY),
            "nan" => return Some(f64::NAN),
            _ => {}
        }
        if let Some(digits) = unsigned.strip_prefix("0x") {
            return Some(sign * binary(digits, 4)).filter(|number| !strict && !number.is_nan());
        }
    }
    Some(decimal(&text)).filter(|number| !number.is_nan())
}

/// Perl's conversion: the longest numeric prefix.
pub(super) fn perl_number(text: &[u8]) -> f64 {
    let text: String = text.iter().map(|&byte| char::from(byte)).collect();
    let text = text.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let lower = text.to_ascii_lowercase();
    let unsigned = lower.strip_prefix(['+', '-']).unwrap_or(&lower);
    if unsigned.starts_with("inf") {
        return f64::INFINITY;
    }
    if unsigned.starts_with("nan") {
        return f64::NAN;
    }
    let ends = (0..=text.len()).rev().filter(|&end| text.is_char_boundary(end));
    ends.map(|end| decimal(&text[..end])).find(|number| !number.is_nan()).unwrap_or(
        // A sign alone is not a number, but Perl keeps it in front of the 0 that it reads.
        if text.starts_with('-') { -0.0 } else { 0.0 },
    )
}

/// `[sign] digits [. digits] [e [sign] digits]`, else NaN.
pub(super) fn decimal(text: &str) -> f64 {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        None => (unsigned, "0"),
        Some((mantissa, exponent)) => (mantissa, exponent.strip_prefix(['+', '-']).unwrap_or(exponent)),
    };
    let digits = |text: &str| text.chars().all(|char| char.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if !digits(whole) || !digits(fraction) || whole.len() + fraction.len() == 0 {
        return f64::NAN;
    }
    if exponent.is_empty() || !digits(exponent) {
        return f64::NAN;
    }
    text.parse().unwrap_or(f64::NAN)
}

/// Digits of 1, 3 or 4 bits, rounded half to even after 53 bits; NaN when there is none or one is invalid.
fn binary(digits: &str, bits_per_digit: u32) -> f64 {
    let mut bits = Vec::new();
    for char in digits.chars() {
        let Some(digit) = char.to_digit(1 << bits_per_digit) else { return f64::NAN };
        bits.extend((0..bits_per_digit).rev().map(|place| digit >> place & 1));
    }
    if digits.is_empty() {
        return f64::NAN;
    }
    while bits.first() == Some(&0) {
        bits.remove(0);
    }
    let kept = bits.len().min(53);
    let mut number = bits[..kept].iter().fold(0_u64, |number, bit| number * 2 + u64::from(*bit));
    if let Some((half, rest)) = bits[kept..].split_first() {
        let above_half = rest.contains(&1);
        if *half == 1 && (above_half || number % 2 == 1) {
            number += 1;
        }
    }
    number as f64 * 2_f64.powi((bits.len() - kept) as i32)
}
