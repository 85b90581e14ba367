//! Numbers as Clojure writes them: `1`, `-2`, `0x1F`, `017`, `36rZZ`, `1/3`, `1.5`, `2e3`, `10N`, `1.5M`.

use std::sync::Arc;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::Zero as _;

use crate::arithmetic::{BIG_BITS_MAX, shrink};
use crate::number::Number;

/// Most bytes of a number: a decimal digit has a little over three bits.
const DIGITS_MAX: usize = (BIG_BITS_MAX / 4) as usize;

/// Whether a word must be a number: it begins with a digit, perhaps after a sign.
pub fn looks_like_number(word: &str) -> bool {
    word.strip_prefix(['+', '-']).unwrap_or(word).starts_with(|first: char| first.is_ascii_digit())
}

/// The number of a word; `Err` says what is wrong with it.
///
/// # Errors
/// Words that are no numbers, and numbers of too many digits.
pub fn parse(word: &str) -> Result<Number, &'static str> {
    if word.len() > DIGITS_MAX {
        return Err("a number of too many digits");
    }
    let (sign, digits) = match word.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", word.strip_prefix('+').unwrap_or(word)),
    };
    if let Some((numerator, denominator)) = digits.split_once('/') {
        return parse_ratio(sign, numerator, denominator);
    }
    if let Some(number) = parse_integer(sign, digits) {
        return Ok(number);
    }
    // Decimals of any precision are doubles here: nothing in Riemann gives or takes them.
    let plain = digits.strip_suffix('M').unwrap_or(digits);
    let marked = plain.len() < digits.len() || plain.contains(['.', 'e', 'E']);
    let is_decimal = marked && plain.bytes().all(|part| part.is_ascii_digit() || b".eE+-".contains(&part));
    match format!("{sign}{plain}").parse::<f64>() {
        Ok(value) if is_decimal => Ok(Number::Double(value)),
        _ => Err("not a number"),
    }
}

fn parse_ratio(sign: &str, numerator: &str, denominator: &str) -> Result<Number, &'static str> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    if !digits(numerator) || !digits(denominator) {
        return Err("not a number");
    }
    let numerator = big(&format!("{sign}{numerator}"), 10).ok_or("not a number")?;
    let denominator = big(denominator, 10).filter(|value| !value.is_zero()).ok_or("divide by zero")?;
    let ratio = BigRational::new(numerator, denominator);
    if ratio.is_integer() {
        return Ok(shrink(ratio.to_integer()));
    }
    Ok(Number::Ratio(Arc::new(ratio)))
}

fn parse_integer(sign: &str, digits: &str) -> Option<Number> {
    let (digits, is_big) = match digits.strip_suffix('N') {
        Some(digits) => (digits, true),
        None => (digits, false),
    };
    let lower = digits.get(..2).unwrap_or_default();
    let (radix, digits) = if lower.eq_ignore_ascii_case("0x") {
        (16, &digits[2..])
    } else if let Some((radix, digits)) = digits.split_once(['r', 'R']) {
        (radix.parse().ok().filter(|radix| (2..=36).contains(radix))?, digits)
    } else if digits.len() > 1 && digits.starts_with('0') {
        (8, &digits[1..])
    } else {
        (10, digits)
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    let value = big(&format!("{sign}{digits}"), radix)?;
    Some(if is_big { Number::Big(Arc::new(value)) } else { shrink(value) })
}

fn big(digits: &str, radix: u32) -> Option<BigInt> {
    BigInt::parse_bytes(digits.as_bytes(), radix)
}
