//! Clojure's arithmetic (spec riemann §3.2): integers of 64 bits whose overflow is an error, exact ratios, big integers that
//! stay big, and doubles as soon as one operand is one.

use std::sync::Arc;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed as _, ToPrimitive as _, Zero as _};

use crate::effort::spend;
use crate::number::Number;

/// Most bits of a big integer.
pub const BIG_BITS_MAX: u64 = 1 << 16;

/// Why a computation has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArithmeticError {
    /// Past 64 bits.
    Overflow,
    /// By an exact zero.
    DivideByZero,
    /// A big integer past [`BIG_BITS_MAX`].
    TooBig,
    /// Infinite, or not a number, where an integer is needed.
    NotFinite,
}

type Result = std::result::Result<Number, ArithmeticError>;

/// Two operands on one level.
enum Pair {
    Ints(i64, i64),
    Bigs(BigInt, BigInt),
    Ratios(BigRational, BigRational),
    Doubles(f64, f64),
}

fn pair(a: &Number, b: &Number) -> Pair {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => Pair::Ints(*a, *b),
        (Number::Float(_) | Number::Double(_), _) | (_, Number::Float(_) | Number::Double(_)) => {
            Pair::Doubles(a.as_f64(), b.as_f64())
        }
        (Number::Ratio(_), _) | (_, Number::Ratio(_)) => Pair::Ratios(exact(a), exact(b)),
        (Number::Big(_), _) | (_, Number::Big(_)) => Pair::Bigs(exact(a).to_integer(), exact(b).to_integer()),
    }
}

/// Counts the effort of a computation with a number of so many bits: multiplying takes time with their square, and a ratio
/// in lowest terms some multiple of it.
fn spend_on(bits: u64, per_square: u64) {
    let words = bits.div_ceil(64);
    spend(usize::try_from(words + words * words / per_square).unwrap_or(usize::MAX));
}

/// Squares of words of a big integer, or of a ratio, that are one value of effort.
const BIG_PER_SQUARE: u64 = 16;
const RATIO_PER_SQUARE: u64 = 2;

fn exact(number: &Number) -> BigRational {
    match number {
        Number::Big(value) => spend_on(value.bits(), BIG_PER_SQUARE),
        Number::Ratio(value) => spend_on(value.numer().bits() + value.denom().bits(), RATIO_PER_SQUARE),
        Number::Int(_) | Number::Float(_) | Number::Double(_) => {}
    }
    number.exact().expect("only floating-point numbers have no exact value, and the caller has none")
}

/// A big integer within its bound.
fn big(value: BigInt) -> Result {
    if value.bits() > BIG_BITS_MAX {
        return Err(ArithmeticError::TooBig);
    }
    Ok(Number::Big(Arc::new(value)))
}

/// A ratio in lowest terms; a whole one is a big integer, as in Clojure.
pub fn ratio(value: BigRational) -> Result {
    if value.is_integer() {
        return big(value.to_integer());
    }
    if value.numer().bits() > BIG_BITS_MAX || value.denom().bits() > BIG_BITS_MAX {
        return Err(ArithmeticError::TooBig);
    }
    Ok(Number::Ratio(Arc::new(value)))
}

/// `+`
pub fn add(a: &Number, b: &Number) -> Result {
    match pair(a, b) {
        Pair::Ints(a, b) => a.checked_add(b).map(Number::Int).ok_or(ArithmeticError::Overflow),
        Pair::Bigs(a, b) => big(a + b),
        Pair::Ratios(a, b) => ratio(a + b),
        Pair::Doubles(a, b) => Ok(Number::Double(a + b)),
    }
}

/// `-`
pub fn subtract(a: &Number, b: &Number) -> Result {
    match pair(a, b) {
        Pair::Ints(a, b) => a.checked_sub(b).map(Number::Int).ok_or(ArithmeticError::Overflow),
        Pair::Bigs(a, b) => big(a - b),
        Pair::Ratios(a, b) => ratio(a - b),
        Pair::Doubles(a, b) => Ok(Number::Double(a - b)),
    }
}

/// `*`
pub fn multiply(a: &Number, b: &Number) -> Result {
    match pair(a, b) {
        Pair::Ints(a, b) => a.checked_mul(b).map(Number::Int).ok_or(ArithmeticError::Overflow),
        Pair::Bigs(a, b) => big(a * b),
        Pair::Ratios(a, b) => ratio(a * b),
        Pair::Doubles(a, b) => Ok(Number::Double(a * b)),
    }
}

/// `/`: exact, and an integer where it comes out even.
pub fn divide(a: &Number, b: &Number) -> Result {
    match pair(a, b) {
        Pair::Ints(_, 0) => Err(ArithmeticError::DivideByZero),
        Pair::Ints(a, b) => match a.checked_rem(b) {
            Some(0) => Ok(Number::Int(a / b)),
            _ => {
                let value = BigRational::new(BigInt::from(a), BigInt::from(b));
                // `(/ Long/MIN_VALUE -1)` is past 64 bits, and Clojure makes it big.
                if value.is_integer() { big(value.to_integer()) } else { ratio(value) }
            }
        },
        Pair::Bigs(_, b) if b.is_zero() => Err(ArithmeticError::DivideByZero),
        Pair::Bigs(a, b) => ratio(BigRational::new(a, b)),
        Pair::Ratios(_, b) if b.is_zero() => Err(ArithmeticError::DivideByZero),
        Pair::Ratios(a, b) => ratio(a / b),
        // Clojure's rule for numbers that are values, as metrics are: a zero in double precision is an error too, unless an
        // operand is not a number. Its compiler has another one for literals.
        Pair::Doubles(a, 0.0) if !a.is_nan() => Err(ArithmeticError::DivideByZero),
        Pair::Doubles(a, b) => Ok(Number::Double(a / b)),
    }
}

/// `quot`: the quotient towards zero.
pub fn quotient(a: &Number, b: &Number) -> Result {
    match pair(a, b) {
        Pair::Ints(_, 0) => Err(ArithmeticError::DivideByZero),
        Pair::Ints(a, b) => {
            a.checked_div(b).map_or_else(|| big(-BigInt::from(a)), |value| Ok(Number::Int(value)))
        }
        Pair::Bigs(_, b) if b.is_zero() => Err(ArithmeticError::DivideByZero),
        Pair::Bigs(a, b) => big(a / b),
        Pair::Ratios(_, b) if b.is_zero() => Err(ArithmeticError::DivideByZero),
        Pair::Ratios(a, b) => big((a / b).to_integer()),
        Pair::Doubles(_, 0.0) => Err(ArithmeticError::DivideByZero),
        Pair::Doubles(a, b) => whole(a / b).map(Number::Double),
    }
}

/// `rem`: what `quot` leaves, with the sign of the dividend.
pub fn remainder(a: &Number, b: &Number) -> Result {
    match pair(a, b) {
        Pair::Ints(_, 0) => Err(ArithmeticError::DivideByZero),
        Pair::Ints(a, b) => Ok(Number::Int(a.checked_rem(b).unwrap_or(0))),
        Pair::Bigs(_, b) if b.is_zero() => Err(ArithmeticError::DivideByZero),
        Pair::Bigs(a, b) => big(a % b),
        Pair::Ratios(_, b) if b.is_zero() => Err(ArithmeticError::DivideByZero),
        Pair::Ratios(a, b) => {
            let whole = BigRational::from_integer((&a / &b).to_integer());
            ratio(a - whole * b)
        }
        Pair::Doubles(_, 0.0) => Err(ArithmeticError::DivideByZero),
        Pair::Doubles(a, b) => whole(a / b).map(|whole| Number::Double(a - whole * b)),
    }
}

/// A quotient without its fraction; a small one has no negative zero, as it was an integer in between.
fn whole(value: f64) -> std::result::Result<f64, ArithmeticError> {
    match value {
        value if !value.is_finite() => Err(ArithmeticError::NotFinite),
        value if value.abs() < i64::MAX as f64 => Ok(value as i64 as f64),
        value => Ok(value.trunc()),
    }
}

/// `mod`: as `rem`, but with the sign of the divisor.
pub fn modulo(a: &Number, b: &Number) -> Result {
    let rest = remainder(a, b)?;
    let is_positive = |number: &Number| !number.is_zero() && !number.is_negative();
    if rest.is_zero() || is_positive(a) == is_positive(b) { Ok(rest) } else { add(&rest, b) }
}

/// `+'`, `-'`, `*'`: past 64 bits the result is big.
pub fn or_big(operation: fn(&Number, &Number) -> Result, a: &Number, b: &Number) -> Result {
    match operation(a, b) {
        Err(ArithmeticError::Overflow) => operation(&Number::Big(Arc::new(exact(a).to_integer())), b),
        result => result,
    }
}

/// An integer of a big one: of 64 bits if it fits.
pub fn shrink(value: BigInt) -> Number {
    value.to_i64().map_or_else(|| Number::Big(Arc::new(value)), Number::Int)
}

/// The 64-bit integer towards zero: `long`, `int`.
pub fn to_long(number: &Number) -> std::result::Result<i64, ArithmeticError> {
    match number {
        Number::Int(value) => Ok(*value),
        Number::Big(value) => value.to_i64().ok_or(ArithmeticError::Overflow),
        Number::Ratio(value) => value.to_integer().to_i64().ok_or(ArithmeticError::Overflow),
        Number::Float(_) | Number::Double(_) => {
            let value = number.as_f64();
            if value.is_nan() {
                return Ok(0);
            }
            // Both bounds are exact in double precision; the upper one is one more than the greatest integer.
            let fits = (i64::MIN as f64..=i64::MAX as f64).contains(&value);
            if fits { Ok(value as i64) } else { Err(ArithmeticError::Overflow) }
        }
    }
}

/// `rationalize`: the exact value of a double's shortest text; other numbers as they are.
pub fn rationalize(number: &Number) -> Result {
    match number {
        Number::Float(_) | Number::Double(_) => {
            let text = format!("{:e}", number.as_f64());
            let (digits, exponent) = text.split_once('e').ok_or(ArithmeticError::NotFinite)?;
            let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
            let all: BigInt = format!("{whole}{fraction}").parse().map_err(|_| ArithmeticError::NotFinite)?;
            let exponent: i64 = exponent.parse().map_err(|_| ArithmeticError::NotFinite)?;
            let shift = exponent - i64::try_from(fraction.len()).unwrap_or_default();
            let power = BigInt::from(10).pow(u32::try_from(shift.unsigned_abs()).unwrap_or(400));
            if shift >= 0 { big(all * power) } else { ratio(BigRational::new(all, power)) }
        }
        Number::Int(_) | Number::Big(_) | Number::Ratio(_) => Ok(number.clone()),
    }
}

/// The big integer of a number, towards zero: `bigint`.
pub fn to_big(number: &Number) -> Result {
    match number {
        Number::Float(_) | Number::Double(_) => {
            // By the shortest text, as Clojure does by way of a decimal.
            let exact = rationalize(number)?.exact().ok_or(ArithmeticError::NotFinite)?;
            big(exact.to_integer())
        }
        Number::Int(_) | Number::Big(_) | Number::Ratio(_) => big(exact(number).to_integer()),
    }
}

impl Number {
    /// Whether it is 0, in whatever form.
    pub fn is_zero(&self) -> bool {
        match self {
            Number::Int(value) => *value == 0,
            Number::Big(value) => value.is_zero(),
            Number::Ratio(_) => false,
            Number::Float(_) | Number::Double(_) => self.as_f64() == 0.0,
        }
    }

    /// Whether it is under 0.
    pub fn is_negative(&self) -> bool {
        match self {
            Number::Int(value) => *value < 0,
            Number::Big(value) => value.is_negative(),
            Number::Ratio(value) => value.is_negative(),
            Number::Float(_) | Number::Double(_) => self.as_f64() < 0.0,
        }
    }

    /// Whether it is an integer of any size.
    pub fn is_integer(&self) -> bool {
        matches!(self, Number::Int(_) | Number::Big(_))
    }

    /// Whether it is a float or a double.
    pub fn is_floating(&self) -> bool {
        matches!(self, Number::Float(_) | Number::Double(_))
    }
}
