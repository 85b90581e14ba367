//! Clojure's numbers as Riemann's configs and queries see them: how they compare (spec riemann §3.2).

use std::cmp::Ordering;
use std::sync::Arc;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{FromPrimitive, ToPrimitive};

/// A number. Small: the exact forms beyond 64 bits are behind a pointer.
#[derive(Clone, Debug)]
pub enum Number {
    /// A 64-bit integer.
    Int(i64),
    /// An integer beyond 64 bits, or one that was written with the suffix `N`.
    Big(Arc<BigInt>),
    /// An exact ratio in lowest terms, its denominator at least 2.
    Ratio(Arc<BigRational>),
    /// Single precision: only `metric_f` and `ttl` of the wire give it.
    Float(f32),
    /// Double precision.
    Double(f64),
}

impl Number {
    /// Its value in double precision.
    #[inline]
    pub fn as_f64(&self) -> f64 {
        match self {
            Number::Int(value) => *value as f64,
            Number::Float(value) => f64::from(*value),
            Number::Double(value) => *value,
            Number::Big(_) | Number::Ratio(_) => self.rounded(),
        }
    }

    /// Out of line: few numbers are big, and many are asked for their value.
    #[cold]
    fn rounded(&self) -> f64 {
        let value = match self {
            Number::Big(value) => value.to_f64(),
            Number::Ratio(value) => value.to_f64(),
            Number::Int(_) | Number::Float(_) | Number::Double(_) => Some(self.as_f64()),
        };
        value.unwrap_or(f64::NAN)
    }

    /// Whether both are equal for Clojure's `=`: integers equal integers, ratios ratios, floating-point numbers each other,
    /// and none of one sort equals one of another sort.
    pub fn equal(&self, other: &Number) -> bool {
        match (self, other) {
            (Number::Int(a), Number::Int(b)) => a == b,
            (Number::Int(a), Number::Big(b)) | (Number::Big(b), Number::Int(a)) => **b == BigInt::from(*a),
            (Number::Big(a), Number::Big(b)) => a == b,
            (Number::Ratio(a), Number::Ratio(b)) => a == b,
            (Number::Float(_) | Number::Double(_), Number::Float(_) | Number::Double(_)) => {
                self.as_f64() == other.as_f64()
            }
            (Number::Int(_) | Number::Big(_), Number::Ratio(_) | Number::Float(_) | Number::Double(_))
            | (Number::Ratio(_), Number::Int(_) | Number::Big(_) | Number::Float(_) | Number::Double(_))
            | (Number::Float(_) | Number::Double(_), Number::Int(_) | Number::Big(_) | Number::Ratio(_)) => {
                false
            }
        }
    }

    /// How their values compare, whatever their sorts: for `<`, `<=`, `>`, `>=` and `==`. `None` where one is not a number.
    pub fn compare(&self, other: &Number) -> Option<Ordering> {
        match (self, other) {
            (Number::Int(a), Number::Int(b)) => Some(a.cmp(b)),
            (Number::Float(_) | Number::Double(_), _) | (_, Number::Float(_) | Number::Double(_)) => {
                self.as_f64().partial_cmp(&other.as_f64())
            }
            (Number::Big(_) | Number::Ratio(_), _) | (_, Number::Big(_) | Number::Ratio(_)) => {
                Some(self.exact()?.cmp(&other.exact()?))
            }
        }
    }

    /// Its exact value; `None` for infinities and what is not a number.
    pub fn exact(&self) -> Option<BigRational> {
        match self {
            Number::Int(value) => Some(BigRational::from_integer(BigInt::from(*value))),
            Number::Big(value) => Some(BigRational::from_integer((**value).clone())),
            Number::Ratio(value) => Some((**value).clone()),
            Number::Float(value) => BigRational::from_f32(*value),
            Number::Double(value) => BigRational::from_f64(*value),
        }
    }
}
