//! `format`, as Java's `String.format` writes texts and numbers. Not here: dates (`%t`).

use crate::arithmetic;
use crate::language::budget::TEXT_BYTES_MAX;
use crate::language::classes::class_of;
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::Machine;
use crate::number::Number;
use crate::print::to_str;
use crate::value::Value;

use super::arguments::text;

/// Most digits that a width or a precision asks for.
const WIDTH_MAX: usize = 1_000;

/// One `%…` of a format.
#[derive(Default)]
struct Place {
    index: Option<usize>,
    left: bool,
    zero: bool,
    plus: bool,
    space: bool,
    group: bool,
    parentheses: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
    conversion: char,
}

/// The text of a format and its values.
pub(super) fn format(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let template = text(&arguments[0])?.clone();
    let values: Vec<Value> =
        arguments[1..].iter().map(|value| machine.realize(value)).collect::<Outcome<_>>()?;
    let mut to = String::new();
    let mut rest = template.as_str();
    let mut next = 0;
    while let Some(at) = rest.find('%') {
        to.push_str(&rest[..at]);
        let (place, after) = place(&rest[at + 1..])?;
        rest = after;
        // Digits past those of the value are computed too.
        let width = place.width + place.precision.unwrap_or(0);
        machine.budget.step(1 + width / 4)?;
        let part = match place.conversion {
            'n' => "\n".to_owned(),
            '%' => padded(&place, "%".to_owned()),
            _ => {
                let index = place.index.unwrap_or_else(|| {
                    next += 1;
                    next
                });
                let missing = || {
                    EvalError::illegal_argument(format!(
                        "Format specifier '%{}' has no value",
                        place.conversion
                    ))
                };
                written(&place, values.get(index.wrapping_sub(1)).ok_or_else(missing)?)?
            }
        };
        machine.budget.text(part.len())?;
        machine.budget.step(part.len() / 256)?;
        to.push_str(&part);
        if to.len() > TEXT_BYTES_MAX {
            return Err(EvalError::too_much_memory());
        }
    }
    to.push_str(rest);
    machine.budget.text(to.len())?;
    Ok(Value::from(to))
}

/// Reads what follows a `%`.
fn place(text: &str) -> Outcome<(Place, &str)> {
    let mut place = Place::default();
    let mut rest = text;
    let digits = |rest: &str| rest.len() - rest.trim_start_matches(|part: char| part.is_ascii_digit()).len();
    let number = |digits: &str| digits.parse::<usize>().ok().filter(|number| *number <= WIDTH_MAX);
    let wrong = || {
        EvalError::illegal_argument(format!("Conversion = '%{}'", text.chars().take(10).collect::<String>()))
    };
    let count = digits(rest);
    if count > 0 && rest[count..].starts_with('$') {
        place.index = Some(number(&rest[..count]).ok_or_else(wrong)?);
        rest = &rest[count + 1..];
    }
    while let Some(flag) = rest.chars().next() {
        let to = match flag {
            '-' => &mut place.left,
            '0' => &mut place.zero,
            '+' => &mut place.plus,
            ' ' => &mut place.space,
            ',' => &mut place.group,
            '(' => &mut place.parentheses,
            '#' => &mut place.alternate,
            _ => break,
        };
        *to = true;
        rest = &rest[1..];
    }
    let count = digits(rest);
    if count > 0 {
        place.width = number(&rest[..count]).ok_or_else(wrong)?;
        rest = &rest[count..];
    }
    if let Some(after) = rest.strip_prefix('.') {
        let count = digits(after);
        place.precision = Some(number(&after[..count]).ok_or_else(wrong)?);
        rest = &after[count..];
    }
    place.conversion = rest.chars().next().ok_or_else(wrong)?;
    let after = &rest[place.conversion.len_utf8()..];
    Ok((place, after))
}

fn written(place: &Place, value: &Value) -> Outcome<String> {
    let mismatch = || {
        let class = class_of(value).name;
        EvalError::illegal_argument(format!("{} != {class}", place.conversion))
    };
    let capital = place.conversion.is_ascii_uppercase();
    let made = match (place.conversion.to_ascii_lowercase(), value) {
        ('s', Value::Nil) => cut(place, "null"),
        ('s', value) => cut(place, &to_str(value)),
        ('b', value) => cut(place, if value.is_true() { "true" } else { "false" }),
        ('h', value) => format!("{:x}", crate::hash::hash(value)),
        ('c' | 'd' | 'x' | 'o' | 'f' | 'e' | 'g', Value::Nil) => cut(place, "null"),
        ('c', Value::Char(part)) => String::from(*part),
        ('c', Value::Number(Number::Int(code))) => {
            String::from(u32::try_from(*code).ok().and_then(char::from_u32).ok_or_else(mismatch)?)
        }
        ('d', Value::Number(number)) if number.is_integer() => {
            return Ok(decimal(place, &crate::print::number_text(number, false)));
        }
        ('x' | 'o', Value::Number(Number::Int(value))) => {
            let digits = if place.conversion == 'o' { format!("{value:o}") } else { format!("{value:x}") };
            let prefix = match (place.alternate, place.conversion) {
                (true, 'o') => "0",
                (true, _) => "0x",
                (false, _) => "",
            };
            let zeros = if place.zero { place.width.saturating_sub(digits.len() + prefix.len()) } else { 0 };
            format!("{prefix}{}{digits}", "0".repeat(zeros))
        }
        ('f' | 'e' | 'g', Value::Number(number)) if number.is_floating() => {
            return Ok(floating(place, number.as_f64()));
        }
        _ => return Err(mismatch()),
    };
    Ok(padded(place, if capital { made.to_uppercase() } else { made }))
}

fn cut(place: &Place, text: &str) -> String {
    match place.precision {
        Some(most) => text.chars().take(most).collect(),
        None => text.to_owned(),
    }
}

fn padded(place: &Place, text: String) -> String {
    let missing = place.width.saturating_sub(text.chars().count());
    if place.left { text + &" ".repeat(missing) } else { " ".repeat(missing) + &text }
}

/// A decimal number with its sign, groups of thousands, and zeros in front.
fn decimal(place: &Place, text: &str) -> String {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let (whole, fraction) = digits.find(['.', 'e']).map_or((digits, ""), |at| digits.split_at(at));
    let whole = if place.group { grouped(whole) } else { whole.to_owned() };
    let (before, after) = match (negative, place.parentheses) {
        (true, true) => ("(", ")"),
        (true, false) => ("-", ""),
        (false, _) if place.plus => ("+", ""),
        (false, _) if place.space => (" ", ""),
        (false, _) => ("", ""),
    };
    let length = before.len() + whole.len() + fraction.len() + after.len();
    let zeros = if place.zero { place.width.saturating_sub(length) } else { 0 };
    padded(place, format!("{before}{}{whole}{fraction}{after}", "0".repeat(zeros)))
}

fn grouped(digits: &str) -> String {
    let mut to = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            to.push(',');
        }
        to.push(digit);
    }
    to
}

fn floating(place: &Place, value: f64) -> String {
    if !value.is_finite() {
        let text = model::java::JavaDouble(value).to_string();
        return padded(
            &Place { zero: false, ..Place { width: place.width, left: place.left, ..Place::default() } },
            text,
        );
    }
    let precision = place.precision.unwrap_or(6);
    let text = match place.conversion.to_ascii_lowercase() {
        'f' => fixed(value, precision),
        'e' => exponential(value, precision),
        _ => {
            let precision = precision.max(1);
            let size = value.abs();
            if size != 0.0
                && !(1e-4..10_f64.powi(i32::try_from(precision).unwrap_or(i32::MAX))).contains(&size)
            {
                exponential(value, precision - 1)
            } else {
                let digits = if size == 0.0 { 1 } else { size.log10().floor() as i64 + 1 };
                fixed(value, usize::try_from(precision as i64 - digits).unwrap_or(0))
            }
        }
    };
    let text = if place.conversion.is_ascii_uppercase() { text.to_uppercase() } else { text };
    decimal(place, &text)
}

/// Rounds the shortest decimal text half up, as Java does: 0.125 is 0.13 with two digits, and 1.005 is 1.01.
fn fixed(value: f64, precision: usize) -> String {
    let exact = arithmetic::rationalize(&Number::Double(value)).ok().and_then(|number| number.exact());
    let Some(exact) = exact else { return format!("{value:.precision$}") };
    let scale = num_bigint::BigInt::from(10).pow(u32::try_from(precision).unwrap_or(u32::MAX));
    let scaled = exact * num_rational::BigRational::from_integer(scale);
    let rounded = scaled.round().to_integer();
    let digits = rounded.magnitude().to_string();
    let digits = format!("{digits:0>width$}", width = precision + 1);
    let (whole, fraction) = digits.split_at(digits.len() - precision);
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if precision == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

fn exponential(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(("+", exponent), |exponent| ("-", exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}
