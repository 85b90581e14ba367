//! [host service] to slots.

use std::hash::{Hash, Hasher};

use hashbrown::HashTable;
use num_traits::ToPrimitive;

use super::hasher::SeededHasher;
use crate::number::Number;
use crate::value::Value;

/// Tables: each grows for itself, so that growing never takes long.
const TABLES: usize = 64;

/// A key's hash: 32 bits that its table keeps, and 6 that choose the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyHash(u64);

impl KeyHash {
    fn table(self) -> usize {
        self.0 as usize % TABLES
    }

    fn kept(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

#[derive(Clone, Copy, Debug)]
struct Place {
    hash: u32,
    slot: u32,
}

/// Slots by key. Of keys with the same hash the caller, who has the events, chooses the right one.
#[derive(Debug)]
pub(super) struct Keys {
    tables: Vec<HashTable<Place>>,
    hasher: SeededHasher,
}

/// The table needs 64 bits again.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Keys {
    pub(super) fn new(hasher: SeededHasher) -> Keys {
        Keys { tables: (0..TABLES).map(|_| HashTable::new()).collect(), hasher }
    }

    /// What it hashes with.
    pub(super) fn hasher(&self) -> &SeededHasher {
        &self.hasher
    }

    /// The hash of a key; None if one of its parts cannot be one.
    pub(super) fn hash(&self, host: &Value, service: &Value) -> Option<KeyHash> {
        let mut hasher = self.hasher.start();
        (write(host, &mut hasher) && write(service, &mut hasher)).then(|| KeyHash(hasher.finish()))
    }

    pub(super) fn find(&self, hash: KeyHash, same: impl Fn(u32) -> bool) -> Option<u32> {
        let kept = hash.kept();
        let is_it = |place: &Place| place.hash == kept && same(place.slot);
        self.tables[hash.table()].find(spread(kept), is_it).map(|place| place.slot)
    }

    /// The caller has made sure that the key is new.
    pub(super) fn insert(&mut self, hash: KeyHash, slot: u32) {
        let place = Place { hash: hash.kept(), slot };
        self.tables[hash.table()].insert_unique(spread(place.hash), place, |place| spread(place.hash));
    }

    pub(super) fn remove(&mut self, hash: KeyHash, slot: u32) {
        let found = self.tables[hash.table()].find_entry(spread(hash.kept()), |place| place.slot == slot);
        found.expect("an event in a slot has a key").remove();
    }
}

/// Hashes one part of a key, equally for values that are equal for `=`. False for what cannot be a key.
fn write(part: &Value, hasher: &mut impl Hasher) -> bool {
    match part {
        Value::Nil => hasher.write_u8(0),
        Value::Text(text) => text.as_str().hash(hasher),
        Value::Bool(value) => value.hash(hasher),
        Value::Char(letter) => letter.hash(hasher),
        Value::Keyword(name) => (1_u8, name.as_str()).hash(hasher),
        Value::Number(number) => return write_number(number, hasher),
        Value::Symbol(_)
        | Value::List(_)
        | Value::Vector(_)
        | Value::Map(_)
        | Value::Set(_)
        | Value::Seq(_)
        | Value::Event(_)
        | Value::Pattern(_)
        | Value::Closure(_)
        | Value::Native(_)
        | Value::Bound(_)
        | Value::Stream(_)
        | Value::Var(_)
        | Value::Atom(_)
        | Value::Delay(_)
        | Value::Exception(_)
        | Value::Class(_)
        | Value::Namespace(_)
        | Value::Moment(_) => return false,
    }
    true
}

fn write_number(number: &Number, hasher: &mut impl Hasher) -> bool {
    match number {
        Number::Int(value) => value.hash(hasher),
        Number::Big(value) => match value.to_i64() {
            Some(value) => value.hash(hasher),
            None => value.hash(hasher),
        },
        Number::Ratio(value) => value.hash(hasher),
        Number::Float(_) | Number::Double(_) => {
            let value = number.as_f64();
            // Both zeros are equal.
            (if value == 0.0 { 0 } else { value.to_bits() }).hash(hasher);
            return !value.is_nan();
        }
    }
    true
}
