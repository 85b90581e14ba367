//! Static methods and fields of Java's classes: `Math/floor`, `Long/parseLong`, `System/getenv`.

use super::arguments::{integer, number, text};
use super::{numbers, strings};
use crate::language::classes::cannot_cast;
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::ANY;
use crate::natives;
use crate::number::Number;
use crate::object::class;
use crate::print::to_str;
use crate::value::Value;

natives! {
    /// `java.lang.Math`
    pub MATH = {
        "abs", 1, 1, "The number without its sign.", |_, a| match number(&a[0])? {
            Number::Int(value) => Ok(value.wrapping_abs().into()),
            other => Ok(other.as_f64().abs().into()),
        };
        "floor", 1, 1, "The greatest whole number that is not greater.", |_, a| one(a, f64::floor);
        "ceil", 1, 1, "The least whole number that is not less.", |_, a| one(a, f64::ceil);
        "rint", 1, 1, "The nearest whole number, of two the even one.", |_, a| one(a, f64::round_ties_even);
        "round", 1, 1, "The nearest integer, of two the greater one.", |_, a| Ok(Value::from((number(&a[0])?.as_f64() + 0.5).floor() as i64));
        "sqrt", 1, 1, "The square root.", |_, a| one(a, f64::sqrt);
        "cbrt", 1, 1, "The cube root.", |_, a| one(a, f64::cbrt);
        "exp", 1, 1, "A power of e.", |_, a| one(a, f64::exp);
        "log", 1, 1, "The natural logarithm.", |_, a| one(a, f64::ln);
        "log10", 1, 1, "The decimal logarithm.", |_, a| one(a, f64::log10);
        "log1p", 1, 1, "The natural logarithm of one more.", |_, a| one(a, f64::ln_1p);
        "sin", 1, 1, "The sine.", |_, a| one(a, f64::sin);
        "cos", 1, 1, "The cosine.", |_, a| one(a, f64::cos);
        "tan", 1, 1, "The tangent.", |_, a| one(a, f64::tan);
        "asin", 1, 1, "The arc sine.", |_, a| one(a, f64::asin);
        "acos", 1, 1, "The arc cosine.", |_, a| one(a, f64::acos);
        "atan", 1, 1, "The arc tangent.", |_, a| one(a, f64::atan);
        "atan2", 2, 2, "The angle of a point.", |_, a| two(a, f64::atan2);
        "hypot", 2, 2, "The distance of a point.", |_, a| two(a, f64::hypot);
        "pow", 2, 2, "A power.", |_, a| two(a, f64::powf);
        "signum", 1, 1, "-1.0, 0.0 or 1.0.", |_, a| one(a, |value| if value == 0.0 || value.is_nan() { value } else { value.signum() });
        "max", 2, 2, "The greater number.", |_, a| extreme(a, true);
        "min", 2, 2, "The less number.", |_, a| extreme(a, false);
        "random", 0, 0, "A random number from 0 up to, but without, 1.", |m, _| Ok(Value::from((m.host.random() >> 11) as f64 / (1_u64 << 53) as f64));
        "toRadians", 1, 1, "Degrees as radians.", |_, a| one(a, f64::to_radians);
        "toDegrees", 1, 1, "Radians as degrees.", |_, a| one(a, f64::to_degrees);
        "floorDiv", 2, 2, "The quotient, downwards.", |_, a| floor(a, i64::div_euclid);
        "floorMod", 2, 2, "What `floorDiv` leaves.", |_, a| floor(a, i64::rem_euclid);
    }

    /// `java.lang.Long`
    pub LONG = {
        "parseLong", 1, 2, "The integer of a text.", |_, a| integer_of(a, i64::MIN, i64::MAX);
        "valueOf", 1, 2, "The integer of a text or a number.", |_, a| integer_of(a, i64::MIN, i64::MAX);
        "toString", 1, 2, "The text of an integer.", |_, a| radix_text(a);
        "toHexString", 1, 1, "The text of an integer with the radix 16.", |_, a| Ok(Value::from(format!("{:x}", integer(&a[0])?)));
        "toBinaryString", 1, 1, "The text of an integer with the radix 2.", |_, a| Ok(Value::from(format!("{:b}", integer(&a[0])?)));
        "compare", 2, 2, "-1, 0 or 1: how two integers compare.", |_, a| Ok((integer(&a[0])?.cmp(&integer(&a[1])?) as i64).into());
    }

    /// `java.lang.Integer`
    pub INTEGER = {
        "parseInt", 1, 2, "The integer of a text.", |_, a| integer_of(a, i64::from(i32::MIN), i64::from(i32::MAX));
        "valueOf", 1, 2, "The integer of a text or a number.", |_, a| integer_of(a, i64::from(i32::MIN), i64::from(i32::MAX));
        "toString", 1, 2, "The text of an integer.", |_, a| radix_text(a);
        "toHexString", 1, 1, "The text of an integer with the radix 16.", |_, a| Ok(Value::from(format!("{:x}", integer(&a[0])? as i32)));
        "compare", 2, 2, "-1, 0 or 1: how two integers compare.", |_, a| Ok((integer(&a[0])?.cmp(&integer(&a[1])?) as i64).into());
    }

    /// `java.lang.Float`
    pub FLOAT = {
        "parseFloat", 1, 1, "The float of a text.", |_, a| Ok(Value::Number(Number::Float(number(&double_of(&a[0])?)?.as_f64() as f32)));
        "valueOf", 1, 1, "The float of a text or a number.", |_, a| Ok(Value::Number(Number::Float(number(&double_of(&a[0])?)?.as_f64() as f32)));
    }

    /// `java.lang.Double`
    pub DOUBLE = {
        "parseDouble", 1, 1, "The double of a text.", |_, a| double_of(&a[0]);
        "valueOf", 1, 1, "The double of a text or a number.", |_, a| double_of(&a[0]);
        "toString", 1, 1, "The text of a number.", |_, a| Ok(Value::from(to_str(&a[0])));
        "isNaN", 1, 1, "Whether a number is not a number.", |_, a| Ok(number(&a[0])?.as_f64().is_nan().into());
        "isInfinite", 1, 1, "Whether a number is infinite.", |_, a| Ok(number(&a[0])?.as_f64().is_infinite().into());
        "compare", 2, 2, "-1, 0 or 1: how two numbers compare.", |_, a| Ok((number(&a[0])?.as_f64().total_cmp(&number(&a[1])?.as_f64()) as i64).into());
    }

    /// `java.lang.Boolean`
    pub BOOLEAN = {
        "parseBoolean", 1, 1, "Whether a text is `true`.", |_, a| Ok(a[0].as_text().is_some_and(|text| text.eq_ignore_ascii_case("true")).into());
        "valueOf", 1, 1, "Whether a text is `true`.", |_, a| Ok((matches!(&a[0], Value::Bool(true)) || a[0].as_text().is_some_and(|text| text.eq_ignore_ascii_case("true"))).into());
    }

    /// `java.lang.String`
    pub STRING = {
        "format", 1, ANY, "A text with values in it.", |m, a| match a {
            // Java takes the values in an array, which is a vector here.
            [template, Value::Vector(values)] => {
                let mut all: Vec<Value> = std::iter::once(template.clone()).chain(values.iter().cloned()).collect();
                super::format::format(m, &mut all)
            }
            given => super::format::format(m, given),
        };
        "valueOf", 1, 1, "The text of a value.", |_, a| Ok(Value::from(if a[0].is_nil() { "null".to_owned() } else { to_str(&a[0]) }));
        "join", 2, 2, "The texts of values, with a separator between them.", |m, a| {
            let all = m.collect(&a[1])?;
            super::text::joined(m, &all, text(&a[0])?, to_str).map(Value::from)
        };
    }

    /// `java.lang.Character`
    pub CHARACTER = {
        "isDigit", 1, 1, "Whether a character is a digit.", |_, a| character(a, char::is_numeric);
        "isLetter", 1, 1, "Whether a character is a letter.", |_, a| character(a, char::is_alphabetic);
        "isLetterOrDigit", 1, 1, "Whether a character is a letter or a digit.", |_, a| character(a, char::is_alphanumeric);
        "isUpperCase", 1, 1, "Whether a character is a capital letter.", |_, a| character(a, char::is_uppercase);
        "isLowerCase", 1, 1, "Whether a character is a small letter.", |_, a| character(a, char::is_lowercase);
        "isWhitespace", 1, 1, "Whether a character is white space.", |_, a| character(a, char::is_whitespace);
    }

    /// `java.lang.System`
    pub SYSTEM = {
        "getenv", 0, 1, "An environment variable, or nil.", |m, a| match a {
            [] => Ok(Value::map([])),
            [name, ..] => Ok(m.host.environment(text(name)?).map(Value::from).unwrap_or_default()),
        };
        "getProperty", 1, 2, "Nil or the default: there are no properties of a JVM.", |_, a| Ok(a.get(1).cloned().unwrap_or_default());
        "currentTimeMillis", 0, 0, "Milliseconds since 1970.", |m, _| Ok(m.graph.now_us().div_euclid(1_000).into());
        "nanoTime", 0, 0, "Nanoseconds since any moment.", |m, _| Ok(m.graph.now_us().saturating_mul(1_000).into());
        "exit", 1, 1, "Refused: a config does not end the daemon.", |_, _| refused("System/exit");
    }

    /// `java.lang.Thread`
    pub THREAD = {
        "sleep", 1, 2, "Refused: a stream must not wait.", |_, _| refused("Thread/sleep");
    }

    /// `java.net.InetAddress`
    pub INET_ADDRESS = {
        "getLocalHost", 0, 0, "This machine: its name.", |m, _| Ok(Value::from(m.host.host_name()));
    }

    /// `java.util.regex.Pattern`
    pub PATTERN = {
        "compile", 1, 2, "The regular expression of a text.", |m, a| super::text::pattern(m, text(&a[0])?);
        "quote", 1, 1, "The text of a regular expression that matches a text.", |_, a| Ok(Value::from(format!("\\Q{}\\E", text(&a[0])?)));
        "matches", 2, 2, "Whether a regular expression matches all of a text.", |m, a| {
            let pattern = super::text::pattern(m, text(&a[0])?)?;
            let whole = super::text::regex(&pattern)?.whole().map_err(|reason| EvalError::throw(&class::PATTERN_SYNTAX, reason))?;
            Ok(whole.is_match(text(&a[1])?.as_str()).map_err(super::text::too_hard)?.into())
        };
    }

    /// `java.util.UUID`
    pub UUID = {
        "randomUUID", 0, 0, "The text of a random UUID.", |m, _| m.call(&Value::Native(random_uuid()), &mut []);
    }
}

/// The classes with their methods.
pub static CLASSES: &[(&str, &[crate::function::Native])] = &[
    ("Math", MATH),
    ("Long", LONG),
    ("Integer", INTEGER),
    ("Double", DOUBLE),
    ("Float", FLOAT),
    ("Boolean", BOOLEAN),
    ("String", STRING),
    ("Character", CHARACTER),
    ("System", SYSTEM),
    ("Thread", THREAD),
    ("InetAddress", INET_ADDRESS),
    ("Pattern", PATTERN),
    ("UUID", UUID),
];

/// The classes' constants.
pub fn constants() -> [(&'static str, &'static str, Value); 12] {
    [
        ("Math", "PI", std::f64::consts::PI.into()),
        ("Math", "E", std::f64::consts::E.into()),
        ("Long", "MAX_VALUE", i64::MAX.into()),
        ("Long", "MIN_VALUE", i64::MIN.into()),
        ("Integer", "MAX_VALUE", i64::from(i32::MAX).into()),
        ("Integer", "MIN_VALUE", i64::from(i32::MIN).into()),
        ("Double", "MAX_VALUE", f64::MAX.into()),
        ("Double", "MIN_VALUE", 5e-324.into()),
        ("Double", "POSITIVE_INFINITY", f64::INFINITY.into()),
        ("Double", "NEGATIVE_INFINITY", f64::NEG_INFINITY.into()),
        ("Double", "NaN", f64::NAN.into()),
        ("Boolean", "TRUE", true.into()),
    ]
}

fn random_uuid() -> &'static crate::function::Native {
    let found = super::text::NATIVES.iter().find(|native| native.name == "random-uuid");
    found.expect("the table of texts has it, and a test calls it")
}

fn refused(name: &str) -> Outcome {
    Err(EvalError::throw(&class::UNSUPPORTED, format!("{name} is not allowed in a config")))
}

fn one(arguments: &[Value], function: fn(f64) -> f64) -> Outcome {
    Ok(function(number(&arguments[0])?.as_f64()).into())
}

fn two(arguments: &[Value], function: fn(f64, f64) -> f64) -> Outcome {
    Ok(function(number(&arguments[0])?.as_f64(), number(&arguments[1])?.as_f64()).into())
}

fn extreme(arguments: &[Value], greatest: bool) -> Outcome {
    match (number(&arguments[0])?, number(&arguments[1])?) {
        (Number::Int(a), Number::Int(b)) => {
            Ok((if greatest { a.max(b) } else { a.min(b) }).to_owned().into())
        }
        (a, b) => {
            let (a, b) = (a.as_f64(), b.as_f64());
            if a.is_nan() || b.is_nan() {
                return Ok(f64::NAN.into());
            }
            Ok((if greatest { a.max(b) } else { a.min(b) }).into())
        }
    }
}

fn floor(arguments: &[Value], operation: fn(i64, i64) -> i64) -> Outcome {
    let (a, b) = (integer(&arguments[0])?, integer(&arguments[1])?);
    match b {
        0 => Err(EvalError::throw(&class::ARITHMETIC, "/ by zero")),
        -1 => {
            Ok(operation(0, 1).wrapping_add(if operation(1, 1) == 1 { a.wrapping_neg() } else { 0 }).into())
        }
        // For a negative divisor the Euclidean results differ from the floored ones, which are those of both negated.
        ..-1 => {
            let mirrored = operation(a.wrapping_neg(), -b);
            Ok((if operation(1, 1) == 1 { mirrored } else { -mirrored }).into())
        }
        1.. => Ok(operation(a, b).into()),
    }
}

fn integer_of(arguments: &[Value], least: i64, most: i64) -> Outcome {
    let radix = arguments.get(1).map_or(Ok(10), integer)?;
    let radix = u32::try_from(radix).ok().filter(|radix| (2..=36).contains(radix));
    let radix = radix.ok_or_else(|| EvalError::throw(&class::NUMBER_FORMAT, "radix out of range"))?;
    match &arguments[0] {
        Value::Number(_) => Ok(integer(&arguments[0])?.into()),
        Value::Nil => Err(EvalError::throw(&class::NUMBER_FORMAT, "Cannot parse null string: null")),
        other => strings::parse_integer(text(other)?, radix, least, most),
    }
}

fn radix_text(arguments: &[Value]) -> Outcome {
    let value = integer(&arguments[0])?;
    let radix = arguments.get(1).map_or(Ok(10), integer)?;
    let radix = u32::try_from(radix).ok().filter(|radix| (2..=36).contains(radix)).unwrap_or(10);
    Ok(Value::from(num_bigint::BigInt::from(value).to_str_radix(radix)))
}

fn double_of(value: &Value) -> Outcome {
    match value {
        Value::Number(number) => Ok(number.as_f64().into()),
        Value::Nil => Err(cannot_cast(value, &class::STRING)),
        other => {
            let text = text(other)?;
            let wrong = || {
                let message = if text.trim().is_empty() {
                    "empty String".to_owned()
                } else {
                    format!("For input string: \"{text}\"")
                };
                EvalError::throw(&class::NUMBER_FORMAT, message)
            };
            numbers::parse_double(text.trim()).map(Value::from).ok_or_else(wrong)
        }
    }
}

fn character(arguments: &[Value], test: fn(char) -> bool) -> Outcome {
    match &arguments[0] {
        Value::Char(part) => Ok(test(*part).into()),
        other => Err(cannot_cast(other, &class::CHARACTER)),
    }
}
