//! Hashes of keys that outside data choose: with a seed, and the same for values that are equal.

use std::hash::Hasher;

use foldhash::{SharedSeed, fast::FoldHasher};

use crate::collections::element::Element;
use crate::number::Number;
use crate::value::Value;

/// Lists within each other of which all elements are hashed with the seed.
const DEPTH_MAX: u32 = 4;

/// Hashes with a seed.
#[derive(Clone, Debug)]
pub(super) struct Hashes {
    seed: u64,
    shared: SharedSeed,
}

impl Hashes {
    pub(super) fn new(seed: u64) -> Hashes {
        Hashes { seed, shared: SharedSeed::from_u64(seed) }
    }

    /// The hash of a key of these parts.
    pub(super) fn of(&self, parts: &[Value]) -> u64 {
        let mut hasher = FoldHasher::with_seed(self.seed, &self.shared);
        parts.iter().for_each(|part| hash(part, DEPTH_MAX, &mut hasher));
        hasher.finish()
    }
}

fn hash(value: &Value, depth: u32, to: &mut FoldHasher<'_>) {
    match value {
        Value::Text(text) => {
            to.write(text.as_bytes());
            to.write_u8(0xff);
        }
        Value::Keyword(name) => {
            to.write(name.as_bytes());
            to.write_u8(0xfe);
        }
        Value::Nil => to.write_u8(1),
        Value::Bool(value) => to.write_u8(2 + u8::from(*value)),
        Value::Number(Number::Int(value)) => to.write_i64(*value),
        // -0.0 equals 0.0.
        Value::Number(number @ (Number::Float(_) | Number::Double(_))) => {
            to.write_u64((number.as_f64() + 0.0).to_bits())
        }
        Value::Number(Number::Big(big)) if i64::try_from(&**big).is_ok() => {
            to.write_i64(i64::try_from(&**big).unwrap_or_default());
        }
        Value::Vector(vector) if depth > 0 => list(vector.iter(), depth, to),
        Value::List(values) if depth > 0 => list(values.iter(), depth, to),
        other => to.write_i32(other.hash()),
    }
}

fn list<'v>(values: impl Iterator<Item = &'v Value>, depth: u32, to: &mut FoldHasher<'_>) {
    to.write_u8(4);
    values.for_each(|value| hash(value, depth - 1, to));
    to.write_u8(5);
}
