//! Numbers: arithmetic, comparison, conversion, bits.

use num_bigint::BigInt;
use std::cmp::Ordering;

use super::arguments::{count, integer, number, text};
use crate::arithmetic::{self, ArithmeticError};
use crate::language::classes::cannot_cast;
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::{ANY, Machine};
use crate::natives;
use crate::number::Number;
use crate::object::class;
use crate::value::Value;

natives! {
    /// Arithmetic and its like.
    pub NATIVES = {
        "+", 0, ANY, "The sum of numbers; 64-bit integers overflow with an exception.", |_, a| fold(a, Number::Int(0), arithmetic::add);
        "*", 0, ANY, "The product of numbers; 64-bit integers overflow with an exception.", |_, a| fold(a, Number::Int(1), arithmetic::multiply);
        "-", 1, ANY, "The difference of numbers, or the negative of one.", |_, a| reduce(a, Number::Int(0), arithmetic::subtract);
        "/", 1, ANY, "The quotient of numbers, exact for integers, or one over a number.", |_, a| reduce(a, Number::Int(1), arithmetic::divide);
        "+'", 0, ANY, "The sum; past 64 bits a big integer.", |_, a| fold(a, Number::Int(0), |a, b| arithmetic::or_big(arithmetic::add, a, b));
        "*'", 0, ANY, "The product; past 64 bits a big integer.", |_, a| fold(a, Number::Int(1), |a, b| arithmetic::or_big(arithmetic::multiply, a, b));
        "-'", 1, ANY, "The difference; past 64 bits a big integer.", |_, a| reduce(a, Number::Int(0), |a, b| arithmetic::or_big(arithmetic::subtract, a, b));
        "inc", 1, 1, "One more.", |_, a| two(arithmetic::add, &a[0], &Value::from(1_i64));
        "dec", 1, 1, "One less.", |_, a| two(arithmetic::subtract, &a[0], &Value::from(1_i64));
        "inc'", 1, 1, "One more; past 64 bits a big integer.", |_, a| two(|a, b| arithmetic::or_big(arithmetic::add, a, b), &a[0], &Value::from(1_i64));
        "dec'", 1, 1, "One less; past 64 bits a big integer.", |_, a| two(|a, b| arithmetic::or_big(arithmetic::subtract, a, b), &a[0], &Value::from(1_i64));
        "quot", 2, 2, "The quotient, towards zero.", |_, a| two(arithmetic::quotient, &a[0], &a[1]);
        "rem", 2, 2, "What `quot` leaves, with the sign of the first number.", |_, a| two(arithmetic::remainder, &a[0], &a[1]);
        "mod", 2, 2, "What division leaves, with the sign of the second number.", |_, a| two(arithmetic::modulo, &a[0], &a[1]);
        "max", 1, ANY, "The greatest number.", |_, a| extreme(a, Ordering::Greater);
        "min", 1, ANY, "The least number.", |_, a| extreme(a, Ordering::Less);
        "abs", 1, 1, "The number without its sign.", |_, a| abs(&a[0]);
        "<", 1, ANY, "Whether each number is less than the next.", |_, a| in_order(a, Ordering::is_lt);
        "<=", 1, ANY, "Whether each number is at most the next.", |_, a| in_order(a, Ordering::is_le);
        ">", 1, ANY, "Whether each number is greater than the next.", |_, a| in_order(a, Ordering::is_gt);
        ">=", 1, ANY, "Whether each number is at least the next.", |_, a| in_order(a, Ordering::is_ge);
        "==", 1, ANY, "Whether numbers have the same value, whatever their types.", |_, a| in_order(a, Ordering::is_eq);
        "zero?", 1, 1, "Whether a number is 0.", |_, a| Ok(number(&a[0])?.is_zero().into());
        "pos?", 1, 1, "Whether a number is greater than 0.", |_, a| in_order(&mut [a[0].clone(), Value::from(0_i64)], Ordering::is_gt);
        "neg?", 1, 1, "Whether a number is less than 0.", |_, a| Ok(number(&a[0])?.is_negative().into());
        "even?", 1, 1, "Whether an integer is even.", |_, a| Ok((!odd(&a[0])?).into());
        "odd?", 1, 1, "Whether an integer is odd.", |_, a| Ok(odd(&a[0])?.into());
        "number?", 1, 1, "Whether a value is a number.", |_, a| Ok(a[0].as_number().is_some().into());
        "integer?", 1, 1, "Whether a value is an integer of any size.", |_, a| is(&a[0], Number::is_integer);
        "int?", 1, 1, "Whether a value is an integer of 64 bits.", |_, a| is(&a[0], |n| matches!(n, Number::Int(_)));
        "pos-int?", 1, 1, "Whether a value is a 64-bit integer greater than 0.", |_, a| is(&a[0], |n| matches!(n, Number::Int(1..)));
        "neg-int?", 1, 1, "Whether a value is a 64-bit integer less than 0.", |_, a| is(&a[0], |n| matches!(n, Number::Int(..0)));
        "nat-int?", 1, 1, "Whether a value is a 64-bit integer that is not negative.", |_, a| is(&a[0], |n| matches!(n, Number::Int(0..)));
        "float?", 1, 1, "Whether a value is a float or a double.", |_, a| is(&a[0], Number::is_floating);
        "double?", 1, 1, "Whether a value is a double.", |_, a| is(&a[0], |n| matches!(n, Number::Double(_)));
        "ratio?", 1, 1, "Whether a value is a ratio.", |_, a| is(&a[0], |n| matches!(n, Number::Ratio(_)));
        "rational?", 1, 1, "Whether a value is an integer or a ratio.", |_, a| is(&a[0], |n| !n.is_floating());
        "decimal?", 1, 1, "Whether a value is a decimal, which no value here is.", |_, _| Ok(false.into());
        "NaN?", 1, 1, "Whether a number is not a number.", |_, a| Ok(number(&a[0])?.as_f64().is_nan().into());
        "infinite?", 1, 1, "Whether a number is infinite.", |_, a| Ok(number(&a[0])?.as_f64().is_infinite().into());
        "long", 1, 1, "A number or a character as a 64-bit integer, towards zero.", |_, a| Ok(integer(&a[0])?.into());
        "int", 1, 1, "A number or a character as an integer of 32 bits, towards zero.", |_, a| bounded::<i32>(&a[0], "int");
        "short", 1, 1, "A number as an integer of 16 bits, towards zero.", |_, a| bounded::<i16>(&a[0], "short");
        "byte", 1, 1, "A number as an integer of 8 bits, towards zero.", |_, a| bounded::<i8>(&a[0], "byte");
        "double", 1, 1, "A number in double precision.", |_, a| Ok(number(&a[0])?.as_f64().into());
        "float", 1, 1, "A number in single precision.", |_, a| float(&a[0]);
        "num", 1, 1, "A number as it is.", |_, a| number(&a[0]).cloned().map(Value::Number);
        "bigint", 1, 1, "A number, or the text of one, as a big integer.", |_, a| big(&a[0]);
        "biginteger", 1, 1, "A number, or the text of one, as a big integer.", |_, a| big(&a[0]);
        "bigdec", 1, 1, "A number in double precision: there are no decimals here.", |_, a| Ok(number(&a[0])?.as_f64().into());
        "rationalize", 1, 1, "The exact value of a number's shortest text.", |_, a| wrap(arithmetic::rationalize(number(&a[0])?));
        "numerator", 1, 1, "The numerator of a ratio.", |_, a| part(&a[0], true);
        "denominator", 1, 1, "The denominator of a ratio.", |_, a| part(&a[0], false);
        "unchecked-inc", 1, 1, "One more; past 64 bits from the least integer on.", |_, a| Ok(integer(&a[0])?.wrapping_add(1).into());
        "unchecked-dec", 1, 1, "One less; past 64 bits from the greatest integer on.", |_, a| Ok(integer(&a[0])?.wrapping_sub(1).into());
        "unchecked-add", 2, 2, "The sum in 64 bits, without overflow.", |_, a| bits(a, i64::wrapping_add);
        "unchecked-subtract", 2, 2, "The difference in 64 bits, without overflow.", |_, a| bits(a, i64::wrapping_sub);
        "unchecked-multiply", 2, 2, "The product in 64 bits, without overflow.", |_, a| bits(a, i64::wrapping_mul);
        "bit-and", 2, ANY, "The bits that all integers have.", |_, a| bits(a, |a, b| a & b);
        "bit-or", 2, ANY, "The bits that any integer has.", |_, a| bits(a, |a, b| a | b);
        "bit-xor", 2, ANY, "The bits in which integers differ.", |_, a| bits(a, |a, b| a ^ b);
        "bit-and-not", 2, ANY, "The bits of the first integer that no other has.", |_, a| bits(a, |a, b| a & !b);
        "bit-not", 1, 1, "The bits that an integer has not.", |_, a| bits(&mut [a[0].clone(), (-1_i64).into()], |a, b| a ^ b);
        "bit-shift-left", 2, 2, "The bits moved up.", |_, a| bits(a, |a, b| a.wrapping_shl(shift(b)));
        "bit-shift-right", 2, 2, "The bits moved down; the sign stays.", |_, a| bits(a, |a, b| a.wrapping_shr(shift(b)));
        "unsigned-bit-shift-right", 2, 2, "The bits moved down, with zeros above.", |_, a| bits(a, |a, b| a.cast_unsigned().wrapping_shr(shift(b)).cast_signed());
        "bit-set", 2, 2, "The integer with a bit.", |_, a| bits(a, |a, b| a | 1_i64.wrapping_shl(shift(b)));
        "bit-clear", 2, 2, "The integer without a bit.", |_, a| bits(a, |a, b| a & !1_i64.wrapping_shl(shift(b)));
        "bit-flip", 2, 2, "The integer with a bit the other way.", |_, a| bits(a, |a, b| a ^ 1_i64.wrapping_shl(shift(b)));
        "bit-test", 2, 2, "Whether an integer has a bit.", |_, a| Ok((integer(&a[0])?.wrapping_shr(shift(integer(&a[1])?)) & 1 == 1).into());
        "rand", 0, 1, "A random number from 0 up to, but without, 1 or the one given.", rand;
        "rand-int", 1, 1, "A random integer from 0 up to, but without, the one given.", |m, a| Ok(Value::from((unit(m) * number(&a[0])?.as_f64()) as i64));
        "rand-nth", 1, 1, "A random value of a collection.", rand_nth;
        "parse-long", 1, 1, "The integer of a text, or nil.", |_, a| Ok(text(&a[0])?.parse::<i64>().ok().into());
        "parse-double", 1, 1, "The double of a text, or nil.", |_, a| Ok(parse_double(text(&a[0])?.trim()).into());
        "parse-boolean", 1, 1, "The boolean of the text `true` or `false`, else nil.", |_, a| Ok(text(&a[0])?.parse::<bool>().ok().into());
        "min-key", 2, ANY, "The value for which a function gives the least number.", |m, a| extreme_key(m, a, Ordering::is_le);
        "max-key", 2, ANY, "The value for which a function gives the greatest number.", |m, a| extreme_key(m, a, Ordering::is_ge);
    }
}

type Operation = fn(&Number, &Number) -> Result<Number, ArithmeticError>;

fn wrap(result: Result<Number, ArithmeticError>) -> Outcome {
    result.map(Value::Number).map_err(EvalError::from)
}

fn two(operation: Operation, a: &Value, b: &Value) -> Outcome {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => wrap(operation(a, b)),
        (Value::Number(_), b) => Err(cannot_cast(b, &class::NUMBER)),
        (a, _) => Err(cannot_cast(a, &class::NUMBER)),
    }
}

fn fold(arguments: &mut [Value], start: Number, operation: Operation) -> Outcome {
    match arguments {
        [a, b] => two(operation, a, b),
        [] => Ok(Value::Number(start)),
        [first, rest @ ..] => {
            number(first)?;
            rest.iter().try_fold(first.clone(), |sum, next| two(operation, &sum, next))
        }
    }
}

/// As `fold`, but a single argument is the second operand.
fn reduce(arguments: &mut [Value], start: Number, operation: Operation) -> Outcome {
    match arguments {
        [only] => two(operation, &Value::Number(start), only),
        many => fold(many, start, operation),
    }
}

fn abs(value: &Value) -> Outcome {
    match number(value)? {
        // The least integer has no positive one; Clojure gives it back.
        Number::Int(value) => Ok(value.wrapping_abs().into()),
        Number::Float(value) => Ok(Value::Number(Number::Float(value.abs()))),
        Number::Double(value) => Ok(value.abs().into()),
        other if other.is_negative() => two(arithmetic::subtract, &Value::from(0_i64), value),
        _ => Ok(value.clone()),
    }
}

/// The greatest or least number; not a number if one is none.
fn extreme(arguments: &mut [Value], wanted: Ordering) -> Outcome {
    if let [only] = arguments {
        return Ok(std::mem::take(only));
    }
    let mut best = number(&arguments[0])?;
    for argument in &arguments[1..] {
        let next = number(argument)?;
        if best.as_f64().is_nan() {
            continue;
        }
        if next.as_f64().is_nan() || next.compare(best) == Some(wanted) {
            best = next;
        }
    }
    Ok(Value::Number(best.clone()))
}

fn extreme_key(machine: &mut Machine<'_>, arguments: &mut [Value], better: fn(Ordering) -> bool) -> Outcome {
    let function = arguments[0].clone();
    let mut best: Option<(Value, Value)> = None;
    for value in &arguments[1..] {
        let key = machine.call(&function, &mut [value.clone()])?;
        let is_better = match &best {
            Some((known, _)) => number(&key)?.compare(number(known)?).is_some_and(better),
            None => true,
        };
        if is_better {
            best = Some((key, value.clone()));
        }
    }
    Ok(best.map(|(_, value)| value).unwrap_or_default())
}

fn in_order(arguments: &mut [Value], accept: fn(Ordering) -> bool) -> Outcome {
    if arguments.len() == 1 {
        return Ok(true.into());
    }
    for pair in arguments.windows(2) {
        let [a, b] = pair else { continue };
        if !number(a)?.compare(number(b)?).is_some_and(accept) {
            return Ok(false.into());
        }
    }
    Ok(true.into())
}

fn odd(value: &Value) -> Outcome<bool> {
    let wrong = || {
        let text = crate::print::to_str(value);
        EvalError::illegal_argument(format!("Argument must be an integer: {text}"))
    };
    match value {
        Value::Number(Number::Int(value)) => Ok(value & 1 == 1),
        Value::Number(Number::Big(value)) => Ok(value.bit(0)),
        _ => Err(wrong()),
    }
}

fn is(value: &Value, test: fn(&Number) -> bool) -> Outcome {
    Ok(value.as_number().is_some_and(test).into())
}

fn bounded<T: TryFrom<i64>>(value: &Value, name: &str) -> Outcome {
    let integer = integer(value)?;
    match T::try_from(integer) {
        Ok(_) => Ok(integer.into()),
        Err(_) => Err(EvalError::illegal_argument(format!(
            "Value out of range for {name}: {}",
            crate::print::to_str(value)
        ))),
    }
}

fn float(value: &Value) -> Outcome {
    let wide = number(value)?.as_f64();
    let narrow = wide as f32;
    if narrow.is_infinite() {
        let message = format!("Value out of range for float: {}", crate::print::to_str(value));
        return Err(EvalError::illegal_argument(message));
    }
    Ok(Value::Number(Number::Float(narrow)))
}

fn big(value: &Value) -> Outcome {
    match value {
        Value::Text(text) => {
            let number = crate::reader::numbers::parse(text);
            let number = number.map_err(|_| {
                EvalError::throw(&class::NUMBER_FORMAT, format!("For input string: \"{text}\""))
            });
            wrap(arithmetic::to_big(&number?))
        }
        other => wrap(arithmetic::to_big(number(other)?)),
    }
}

fn part(value: &Value, numerator: bool) -> Outcome {
    match number(value)? {
        Number::Ratio(ratio) => {
            let part: &BigInt = if numerator { ratio.numer() } else { ratio.denom() };
            Ok(Value::Number(arithmetic::shrink(part.clone())))
        }
        Number::Int(_) | Number::Big(_) | Number::Float(_) | Number::Double(_) => {
            Err(cannot_cast(value, &class::RATIO))
        }
    }
}

fn bits(arguments: &mut [Value], operation: fn(i64, i64) -> i64) -> Outcome {
    let bit = |value: &Value| match value {
        Value::Number(Number::Int(value)) => Ok(*value),
        other => {
            number(other)?;
            Err(EvalError::illegal_argument(format!(
                "bit operation not supported for: {}",
                crate::language::classes::class_of(other).name
            )))
        }
    };
    let first = bit(&arguments[0])?;
    arguments[1..].iter().try_fold(first, |all, next| Ok(operation(all, bit(next)?))).map(Value::from)
}

/// Only the lowest six bits of a shift count, as in Java.
fn shift(by: i64) -> u32 {
    (by & 63) as u32
}

/// A random number from 0 up to, but without, 1.
fn unit(machine: &mut Machine<'_>) -> f64 {
    // The 53 bits that a double can hold.
    (machine.host.random() >> 11) as f64 / (1_u64 << 53) as f64
}

fn rand(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let below = arguments.first().map_or(Ok(1.0), |below| number(below).map(Number::as_f64))?;
    Ok((unit(machine) * below).into())
}

fn rand_nth(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let all = machine.collect(&arguments[0])?;
    let index = count(&Value::from((unit(machine) * all.len() as f64) as i64))?;
    all.get(index).cloned().ok_or_else(|| EvalError::new_index(0))
}

/// A double as Java's `Double.parseDouble` takes it.
pub(super) fn parse_double(text: &str) -> Option<f64> {
    let plain = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
    match plain.strip_prefix(['+', '-']).unwrap_or(plain) {
        "Infinity" | "NaN" => {
            let value = if plain.ends_with("NaN") { f64::NAN } else { f64::INFINITY };
            Some(if plain.starts_with('-') { -value } else { value })
        }
        digits if digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') => {
            plain.parse().ok()
        }
        _ => None,
    }
}
