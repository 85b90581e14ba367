//! Fields, times and numbers of whatever streams get: events, or maps that a config made.

use std::cmp::Ordering;
use std::sync::Arc;

use arcstr::{ArcStr, literal};

use crate::arithmetic::{self, ArithmeticError};
use crate::collections::seq::Seq;
use crate::event::Field;
use crate::language::error::{EvalError, Outcome};
use crate::number::Number;
use crate::object::class;
use crate::value::Value;

/// Seconds that an event without a ttl lives (spec riemann §3.3).
const TTL_DEFAULT: i64 = 60;
/// Microseconds of a second.
const SECOND_US: i64 = 1_000_000;
/// The longest duration and the furthest time: a fourth of what 64 bits hold, so that sums of them fit.
const DURATION_US_MAX: i64 = i64::MAX / 4;

/// The keyword of a standard field.
pub fn keyword(field: Field) -> Value {
    Value::Keyword(match field {
        Field::Host => literal!("host"),
        Field::Service => literal!("service"),
        Field::State => literal!("state"),
        Field::Description => literal!("description"),
        Field::Metric => literal!("metric"),
        Field::Tags => literal!("tags"),
        Field::Time => literal!("time"),
        Field::Ttl => literal!("ttl"),
    })
}

/// A standard field of an event or a map; nil of anything else, as keywords give it.
pub fn get(value: &Value, field: Field) -> &Value {
    match value {
        Value::Event(event) => event.get(field),
        Value::Map(map) => map.get(&keyword(field)).unwrap_or(&Value::Nil),
        _ => &Value::Nil,
    }
}

/// Any field of an event or a map, by its name.
pub fn named<'v>(value: &'v Value, name: &ArcStr) -> &'v Value {
    match value {
        Value::Event(event) => event.named(name),
        Value::Map(map) => map.get(&Value::Keyword(name.clone())).unwrap_or(&Value::Nil),
        _ => &Value::Nil,
    }
}

/// Sets a standard field: in place if nobody else has the event.
///
/// # Errors
/// For a value that has no fields.
pub fn set(value: &mut Value, field: Field, new: Value) -> Outcome<()> {
    match value {
        Value::Event(event) => Arc::make_mut(event).set(field, new),
        Value::Map(map) => Arc::make_mut(map).insert(keyword(field), new),
        Value::Nil => *value = Value::map([(keyword(field), new)]),
        other => return Err(cannot("set a field of", other)),
    }
    Ok(())
}

/// Sets any field, by its name.
///
/// # Errors
/// For a value that has no fields.
pub fn set_named(value: &mut Value, name: &ArcStr, new: Value) -> Outcome<()> {
    match (Field::of(name), &mut *value) {
        (Some(field), value) => return set(value, field, new),
        (None, Value::Event(event)) => Arc::make_mut(event).set_attribute(name.clone(), new),
        (None, Value::Map(map)) => Arc::make_mut(map).insert(Value::Keyword(name.clone()), new),
        (None, Value::Nil) => *value = Value::map([(Value::Keyword(name.clone()), new)]),
        (None, other) => return Err(cannot("set a field of", other)),
    }
    Ok(())
}

/// Removes any field, by its name.
///
/// # Errors
/// For a value that has no fields.
pub fn remove_named(value: &mut Value, name: &ArcStr) -> Outcome<()> {
    match (Field::of(name), value) {
        (Some(field), Value::Event(event)) => Arc::make_mut(event).set(field, Value::Nil),
        (None, Value::Event(event)) => {
            if event.attribute(name).is_some() {
                Arc::make_mut(event).remove_attribute(name);
            }
        }
        (_, Value::Map(map)) => _ = Arc::make_mut(map).remove(&Value::Keyword(name.clone())),
        (_, Value::Nil) => {}
        (_, other) => return Err(cannot("remove a field of", other)),
    }
    Ok(())
}

/// The exception for a value of the wrong kind.
pub fn cannot(what: &str, value: &Value) -> EvalError {
    match value {
        Value::Nil => EvalError::throw(&class::NULL_POINTER, format!("cannot {what} nil")),
        other => {
            let text: String = crate::print::excerpt(other).chars().take(100).collect();
            EvalError::throw(&class::CLASS_CAST, format!("cannot {what} {text}"))
        }
    }
}

/// A number that must be one.
///
/// # Errors
/// For nil and what is no number.
pub fn number(value: &Value) -> Outcome<&Number> {
    value.as_number().ok_or_else(|| cannot("compute with", value))
}

/// The metric, if there is one.
///
/// # Errors
/// If it is no number.
pub fn metric(value: &Value) -> Outcome<Option<&Number>> {
    number_or_nil(get(value, Field::Metric))
}

/// The time, if there is one.
///
/// # Errors
/// If it is no number.
pub fn time(value: &Value) -> Outcome<Option<&Number>> {
    number_or_nil(get(value, Field::Time))
}

/// A number, or nil.
///
/// # Errors
/// If it is something else.
pub fn number_or_nil(value: &Value) -> Outcome<Option<&Number>> {
    match value {
        Value::Nil => Ok(None),
        other => number(other).map(Some),
    }
}

/// The exception of a computation.
pub fn computed(result: Result<Number, ArithmeticError>) -> Outcome<Number> {
    result.map_err(EvalError::from)
}

/// Whether a number is one that a stream may keep: one NaN or infinity in a sum or a mean stays there for ever.
pub(super) fn is_kept(number: &Number) -> bool {
    number.as_f64().is_finite()
}

/// Whether a stream may not keep a time as the latest one: it is more than a day ahead of the server's clock, or no time at all. Of all
/// events after it, none would be as late.
pub(super) fn is_far_ahead(time: &Number, now_us: i64) -> bool {
    const AHEAD_US_MAX: i64 = 24 * 3_600 * 1_000_000;
    !is_kept(time) || to_us(time) > now_us.saturating_add(AHEAD_US_MAX)
}

/// `+`
///
/// # Errors
/// Of 64-bit overflow.
pub fn add(a: &Number, b: &Number) -> Outcome<Number> {
    if let (Number::Int(a), Number::Int(b)) = (a, b) {
        let result = a.checked_add(*b).map(Number::Int);
        return computed(result.ok_or(ArithmeticError::Overflow));
    }
    if let Some((a, b)) = both_inexact(a, b) {
        return Ok(Number::Double(a + b));
    }
    computed(arithmetic::add(a, b)).map(whole)
}

/// The operands of what is computed in double precision: one of them is inexact, and none is long.
#[inline]
fn both_inexact(a: &Number, b: &Number) -> Option<(f64, f64)> {
    let is_short = |number: &Number| matches!(number, Number::Int(_) | Number::Float(_) | Number::Double(_));
    ((is_inexact(a) || is_inexact(b)) && is_short(a) && is_short(b)).then(|| (a.as_f64(), b.as_f64()))
}

/// `-`
///
/// # Errors
/// Of 64-bit overflow.
pub fn subtract(a: &Number, b: &Number) -> Outcome<Number> {
    if let (Number::Int(a), Number::Int(b)) = (a, b) {
        let result = a.checked_sub(*b).map(Number::Int);
        return computed(result.ok_or(ArithmeticError::Overflow));
    }
    computed(arithmetic::subtract(a, b)).map(whole)
}

/// `*`
///
/// # Errors
/// Of 64-bit overflow.
pub fn multiply(a: &Number, b: &Number) -> Outcome<Number> {
    if let (Number::Int(a), Number::Int(b)) = (a, b) {
        let result = a.checked_mul(*b).map(Number::Int);
        return computed(result.ok_or(ArithmeticError::Overflow));
    }
    computed(arithmetic::multiply(a, b)).map(whole)
}

/// `/`
///
/// # Errors
/// By zero.
pub fn divide(a: &Number, b: &Number) -> Outcome<Number> {
    computed(arithmetic::divide(a, b)).map(whole)
}

/// Most bits of an exact ratio's numerator, and of its denominator, in streams and folds: sums of ratios grow by some bits with each event,
/// without end. One that would have more is a double.
pub const EXACT_BITS_MAX: u64 = 1_024;

/// Sums and products of ratios that come out even are big integers in Clojure; streams give small ones, which are equal and
/// cheaper. Ratios with too many bits become doubles.
#[inline]
fn whole(number: Number) -> Number {
    if matches!(number, Number::Int(_) | Number::Float(_) | Number::Double(_)) {
        return number;
    }
    shortened(number)
}

fn shortened(number: Number) -> Number {
    match &number {
        Number::Ratio(ratio) if ratio.numer().bits().max(ratio.denom().bits()) > EXACT_BITS_MAX => {
            Number::Double(number.as_f64())
        }
        Number::Big(big) => i64::try_from(&**big).map_or(number, Number::Int),
        Number::Int(_) | Number::Ratio(_) | Number::Float(_) | Number::Double(_) => number,
    }
}

/// Whether `a` is less than `b`.
pub fn is_less(a: &Number, b: &Number) -> bool {
    a.compare(b) == Some(Ordering::Less)
}

/// An order of numbers for sorting; what is not a number comes last. It is total, for `sort` refuses any other: an integer and a double are
/// compared in double precision, so without this, three of them could have no order.
pub fn order(a: &Number, b: &Number) -> Ordering {
    let is_exact = |number: &Number| match number {
        Number::Int(_) | Number::Big(_) | Number::Ratio(_) => true,
        Number::Float(_) | Number::Double(_) => false,
    };
    let (in_double, other) = (a.as_f64(), b.as_f64());
    let by_value = in_double.partial_cmp(&other).unwrap_or_else(|| in_double.is_nan().cmp(&other.is_nan()));
    by_value.then_with(|| match (is_exact(a), is_exact(b)) {
        (true, true) => a.compare(b).unwrap_or(Ordering::Equal),
        (a, b) => a.cmp(&b),
    })
}

#[test]
fn numbers_of_all_sorts_have_one_order() {
    use num_bigint::BigInt;
    const EDGE: i64 = 1 << 53;
    let big = |by: i64| Number::Big(Arc::new(BigInt::from(EDGE) + by));
    let numbers = [
        Number::Double(f64::NEG_INFINITY),
        Number::Double(EDGE as f64),
        Number::Int(EDGE),
        Number::Int(EDGE + 1),
        big(2),
        Number::Double(EDGE as f64 + 4.0),
        Number::Int(EDGE + 4),
        Number::Double(f64::INFINITY),
        Number::Double(f64::NAN),
    ];
    for (at, a) in numbers.iter().enumerate() {
        for (other, b) in numbers.iter().enumerate() {
            assert_eq!(order(a, b), at.cmp(&other), "{a:?} {b:?}");
        }
    }
}

/// The server's clock as a number.
pub fn now(now_us: i64) -> Number {
    match now_us % SECOND_US {
        0 => Number::Int(now_us / SECOND_US),
        _ => Number::Ratio(Arc::new(num_rational::Ratio::new(now_us.into(), SECOND_US.into()))),
    }
}

/// Seconds as microseconds, within what timers can bear.
pub fn to_us(seconds: &Number) -> i64 {
    let us = match seconds {
        Number::Int(seconds) => seconds.saturating_mul(SECOND_US),
        Number::Big(_) | Number::Ratio(_) | Number::Float(_) | Number::Double(_) => {
            (seconds.as_f64() * SECOND_US as f64).round() as i64
        }
    };
    us.clamp(-DURATION_US_MAX, DURATION_US_MAX)
}

/// Whether an event has expired (spec riemann §3.3).
///
/// # Errors
/// If its time or ttl is no number.
pub fn is_expired(value: &Value, now_us: i64) -> Outcome<bool> {
    if matches!(get(value, Field::State), Value::Text(state) if state == "expired") {
        return Ok(true);
    }
    let ttl = match get(value, Field::Ttl) {
        Value::Nil => &Number::Int(TTL_DEFAULT),
        // `:ttl infinity`: such an event never expires.
        Value::Keyword(word) | Value::Text(word) if word == "infinity" => return Ok(false),
        ttl => number(ttl)?,
    };
    match (time(value)?, ttl) {
        (None, _) => Ok(false),
        (Some(Number::Int(time)), Number::Int(ttl)) => {
            Ok(i128::from(now_us) > (i128::from(*time) + i128::from(*ttl)) * i128::from(SECOND_US))
        }
        (Some(time), ttl) => match age_s(time, now_us).filter(|_| is_inexact(time) || is_inexact(ttl)) {
            Some(age_s) => Ok(ttl.as_f64() < age_s),
            None => is_older(time, ttl, now_us),
        },
    }
}

/// Whether now - time > ttl, by the arithmetic of the language.
fn is_older(time: &Number, ttl: &Number, now_us: i64) -> Outcome<bool> {
    Ok(is_less(ttl, &subtract(&now(now_us), time)?))
}

fn is_inexact(number: &Number) -> bool {
    matches!(number, Number::Float(_) | Number::Double(_))
}

/// Seconds since a time in double precision, as the exact ratio of the language would be rounded; the ttl of the wire is inexact, so
/// nearly every event is compared like that. None where a step of the computation could round differently.
fn age_s(time: &Number, now_us: i64) -> Option<f64> {
    const EXACT_MAX: u64 = 1 << f64::MANTISSA_DIGITS;
    // One division of integers that a double has exactly: it rounds once, as the ratio does.
    let seconds = |us: i64| (us.unsigned_abs() <= EXACT_MAX).then(|| us as f64 / SECOND_US as f64);
    match time {
        Number::Int(time) => seconds(now_us.checked_sub(time.checked_mul(SECOND_US)?)?),
        Number::Float(_) | Number::Double(_) => Some(seconds(now_us)? - time.as_f64()),
        Number::Big(_) | Number::Ratio(_) => None,
    }
}

#[test]
fn ages_in_double_precision_expire_as_exact_ones() {
    const NOW_S: i64 = 1_700_000_000;
    let times = [
        Number::Int(NOW_S),
        Number::Int(NOW_S - 60),
        Number::Int(i64::MAX),
        Number::Int(i64::MIN / SECOND_US),
        Number::Double(NOW_S as f64 - 59.9),
        Number::Double(f64::NAN),
        Number::Double(f64::INFINITY),
        Number::Float(NOW_S as f32),
        now(NOW_S * SECOND_US - 60_000_001),
    ];
    let ttls = [
        Number::Float(60.0),
        Number::Float(0.1),
        Number::Double(60.000_001),
        Number::Double(f64::NAN),
        Number::Double(-1.0),
        Number::Int(60),
        Number::Int(i64::MAX),
        now(60_000_001),
    ];
    for (time, ttl) in times.iter().flat_map(|time| ttls.iter().map(move |ttl| (time, ttl))) {
        for now_us in (-3..4).map(|more| NOW_S * SECOND_US + more).chain([0, 1, i64::MAX, i64::MIN]) {
            let mut event = crate::event::Event::default();
            event.set(Field::Time, Value::Number(time.clone()));
            event.set(Field::Ttl, Value::Number(ttl.clone()));
            let event = Value::Event(Arc::new(event));
            // Of integers the quick way has no overflow, which is an error.
            if let Ok(want) = is_older(time, ttl, now_us) {
                let is = is_expired(&event, now_us).ok();
                assert_eq!(is, Some(want), "{time:?} {ttl:?} {now_us}");
            }
        }
    }
}

/// When an event expires: its time and its ttl; none unless it has both.
///
/// # Errors
/// If one is no number.
pub fn expires_at(value: &Value) -> Outcome<Option<Number>> {
    let ttl = match get(value, Field::Ttl) {
        Value::Keyword(_) | Value::Text(_) | Value::Nil => return Ok(None),
        ttl => number(ttl)?,
    };
    time(value)?.map(|time| add(time, ttl)).transpose()
}

/// The event that says that another one has expired (spec riemann §3.3): a map that has no other fields.
pub fn expire(value: &Value, now_us: i64) -> Value {
    let kept = [Field::Host, Field::Service].map(|field| (keyword(field), get(value, field).clone()));
    let new = [
        (keyword(Field::State), Value::Text(literal!("expired"))),
        (keyword(Field::Time), Value::of_time_us(now_us)),
    ];
    Value::map(kept.into_iter().filter(|(_, value)| !value.is_nil()).chain(new))
}

/// Most numbers of a `range` that are taken at once.
const RANGE_MAX: usize = 1_000_000;

/// The values of a sequence that is there as a whole; none of nil. `None` for anything else, and for a sequence that is not
/// computed yet or is too long.
pub fn items(value: &Value) -> Option<Vec<Value>> {
    let mut items = Vec::new();
    let mut rest = value.clone();
    loop {
        rest = match &rest {
            Value::Nil => return Some(items),
            Value::Vector(vector) => {
                items.extend(vector.iter().cloned());
                return Some(items);
            }
            Value::List(list) => {
                items.extend(list.iter().cloned());
                return Some(items);
            }
            Value::Set(set) => {
                items.extend(set.iter().cloned());
                return Some(items);
            }
            Value::Seq(seq) => match &**seq {
                Seq::Cons { first, rest, .. } => {
                    items.push(first.clone());
                    rest.clone()
                }
                Seq::Lazy(lazy) => lazy.known()?,
                Seq::View { vector, from } => {
                    items.extend(vector.iter().skip(*from).cloned());
                    return Some(items);
                }
                Seq::Range { start, end, step } => {
                    let mut next = *start;
                    while if *step > 0 { next < *end } else { next > *end } {
                        if items.len() >= RANGE_MAX {
                            return None;
                        }
                        items.push(Value::from(next));
                        next = next.checked_add(*step)?;
                    }
                    return Some(items);
                }
            },
            _ => return None,
        };
    }
}
