//! When events expire, and what is made of them then (spec riemann §3.3, §4.3).

use std::sync::Arc;

use arcstr::ArcStr;

use crate::event::{Event, Field};
use crate::number::Number;
use crate::value::Value;

/// The ttl of an event without one, in seconds.
pub const DEFAULT_TTL_S: i64 = 60;

/// State of an expired event.
const EXPIRED: &str = "expired";

/// Whether an event is expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// It is not.
    Live,
    /// It is: by its state, or because its ttl has passed.
    Expired,
    /// It cannot be known: its time or ttl is no number. Upstream's check throws.
    Unknown,
}

/// Whether an event is expired at that time, in Unix seconds.
pub fn age(event: &Event, now: &Number) -> Age {
    if is_expired_by_state(event) {
        return Age::Expired;
    }
    match (event.get(Field::Time), ttl(event)) {
        (Value::Nil, _) => Age::Live,
        (Value::Number(time), Some(ttl)) if is_past(now, time, &ttl) => Age::Expired,
        (Value::Number(_), Some(_)) => Age::Live,
        (_, _) => Age::Unknown,
    }
}

/// Whether its state says so.
pub(super) fn is_expired_by_state(event: &Event) -> bool {
    matches!(event.get(Field::State), Value::Text(state) if state == EXPIRED)
}

/// The ttl; None if it is no number.
fn ttl(event: &Event) -> Option<Number> {
    match event.get(Field::Ttl) {
        Value::Nil => Some(Number::Int(DEFAULT_TTL_S)),
        Value::Number(ttl) => Some(ttl.clone()),
        word if is_infinity(word) => Some(Number::Double(f64::INFINITY)),
        _ => None,
    }
}

/// `:ttl :infinity`, or `"infinity"`: an event that never expires (spec riemann §17.20).
pub fn is_infinity(ttl: &Value) -> bool {
    matches!(ttl, Value::Keyword(word) | Value::Text(word) if word == "infinity")
}

/// `now - time > ttl`, exactly for exact numbers.
fn is_past(now: &Number, time: &Number, ttl: &Number) -> bool {
    if let (Number::Int(now), Number::Int(time), Number::Int(ttl)) = (now, time, ttl) {
        return i128::from(*now) - i128::from(*time) > i128::from(*ttl);
    }
    let age = match (now, time) {
        (Number::Float(_) | Number::Double(_), _) | (_, Number::Float(_) | Number::Double(_)) => {
            Number::Double(now.as_f64() - time.as_f64())
        }
        (Number::Int(_) | Number::Big(_) | Number::Ratio(_), _) => {
            let (Some(now), Some(time)) = (now.exact(), time.exact()) else {
                return false;
            };
            // Only compared, so that it does not matter whether it is an integer.
            Number::Ratio(Arc::new(now - time))
        }
    };
    age.compare(ttl).is_some_and(std::cmp::Ordering::is_gt)
}

/// A time that is not after the first one at which the event is expired; infinite if it never is.
pub(super) fn due(event: &Event) -> f64 {
    let (Value::Number(time), Some(ttl)) = (event.get(Field::Time), ttl(event)) else {
        // To be looked at by the next sweep, which reports it.
        return f64::NEG_INFINITY;
    };
    let (time, ttl) = (time.as_f64(), ttl.as_f64());
    let due = time + ttl;
    if due.is_nan() {
        return f64::INFINITY;
    }
    // More than what rounding does to the numbers, their sum, and their difference to the present time.
    let rounding = (time.abs() + ttl.abs()) * (8.0 * f64::EPSILON);
    if rounding.is_finite() { due - rounding } else { due }
}

/// Which fields of an event its expired event keeps (`:keep-keys`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeepKeys {
    /// `:keep-keys :all`
    All,
    /// Fields by name, standard or custom.
    Fields(Vec<ArcStr>),
}

impl Default for KeepKeys {
    /// Host and service.
    fn default() -> KeepKeys {
        KeepKeys::Fields(vec![Field::Host.name().into(), Field::Service.name().into()])
    }
}

/// The expired event of an event: the fields that are kept, state `expired`, and the time at which it was expired.
pub fn expired_event(event: &Event, now: &Number, keep: &KeepKeys) -> Event {
    let mut expired = match keep {
        KeepKeys::All => event.clone(),
        KeepKeys::Fields(names) => {
            let mut expired = Event::default();
            for name in names {
                match (Field::of(name), event.attribute(name)) {
                    (Some(field), _) => expired.set(field, event.get(field).clone()),
                    (None, Some(value)) => expired.set_attribute(name.clone(), value.clone()),
                    (None, None) => {}
                }
            }
            expired
        }
    };
    expired.set(Field::State, Value::Text(arcstr::literal!("expired")));
    expired.set(Field::Time, Value::Number(now.clone()));
    expired
}
