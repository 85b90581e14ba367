//! Clojure's hashes (`hash`): configs use them as keys, and they decide on the order of large maps and of sets.
//!
//! Not a defence against chosen keys: the trees that use these hashes compare the values of equal ones, so that many
//! keys of one hash cost no more than others.

use num_bigint::BigInt;

use crate::effort::spend;
use crate::event::Field;
use crate::number::Number;
use crate::symbol::split_name;
use crate::value::Value;

/// The hash of a value; 0 for those that are only equal to themselves.
pub fn hash(value: &Value) -> i32 {
    match value {
        Value::Bool(true) => 1231,
        Value::Bool(false) => 1237,
        Value::Number(number) => of_number(number),
        Value::Char(part) => i32::try_from(u32::from(*part)).unwrap_or_default(),
        Value::Text(text) => {
            spend(text.len() / 16);
            hash_int(java_hash(text))
        }
        Value::Keyword(name) => symbol(name).wrapping_add(0x9e37_79b9_u32.cast_signed()),
        Value::Symbol(name) => symbol(&name.name),
        Value::List(list) => ordered(list.iter()),
        Value::Vector(vector) => ordered(vector.iter()),
        Value::Map(map) => unordered(map.iter().map(|(key, value)| ordered([key, value].into_iter()))),
        Value::Set(set) => unordered(set.iter().map(hash)),
        Value::Event(event) => {
            let standard = Field::ALL.iter().map(|field| (Value::keyword(field.name()), event.get(*field)));
            let custom = event.attributes().iter().map(|(name, value)| (Value::Keyword(name.clone()), value));
            unordered(standard.chain(custom).map(|(key, value)| ordered([&key, value].into_iter())))
        }
        Value::Moment(instant) => fold_long(instant.milliseconds),
        Value::Nil
        | Value::Seq(_)
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
        | Value::Namespace(_) => 0,
    }
}

/// The hash of a text.
pub fn text(text: &str) -> i32 {
    hash_int(java_hash(text))
}

/// Java's `hashCode` of a text.
pub fn java_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

fn of_number(number: &Number) -> i32 {
    match number {
        Number::Int(value) => hash_long(*value),
        Number::Big(value) => match i64::try_from(&**value) {
            Ok(value) => hash_long(value),
            Err(_) => big(value),
        },
        Number::Ratio(ratio) => big(ratio.numer()) ^ big(ratio.denom()),
        Number::Float(value) => {
            if *value == 0.0 {
                0
            } else {
                value.to_bits().cast_signed()
            }
        }
        Number::Double(value) => {
            if *value == 0.0 {
                0
            } else {
                fold_long(value.to_bits().cast_signed())
            }
        }
    }
}

fn fold_long(value: i64) -> i32 {
    let bits = value.cast_unsigned();
    ((bits ^ (bits >> 32)) as u32).cast_signed()
}

/// Java's `hashCode` of a big integer.
fn big(value: &BigInt) -> i32 {
    let (sign, digits) = value.to_u32_digits();
    let hash = digits.iter().rev().fold(0_u32, |hash, digit| hash.wrapping_mul(31).wrapping_add(*digit));
    let hash = hash.cast_signed();
    if sign == num_bigint::Sign::Minus { hash.wrapping_neg() } else { hash }
}

fn symbol(name: &str) -> i32 {
    let (space, name) = split_name(name);
    let seed = unencoded(name);
    let other = space.map_or(0, java_hash).cast_unsigned();
    let mixed = other
        .wrapping_add(0x9e37_79b9)
        .wrapping_add(seed.cast_unsigned() << 6)
        .wrapping_add((seed >> 2).cast_unsigned());
    seed ^ mixed.cast_signed()
}

/// Murmur3 of a text's UTF-16 units.
fn unencoded(text: &str) -> i32 {
    let units: Vec<u16> = text.encode_utf16().collect();
    let (pairs, rest) = units.as_chunks::<2>();
    let hash =
        pairs.iter().fold(0, |hash, [low, high]| mix(hash, u32::from(*low) | (u32::from(*high) << 16)));
    let hash = rest.iter().fold(hash, |hash, unit| hash ^ mix_key(u32::from(*unit)));
    finish(hash, u32::try_from(units.len()).unwrap_or(u32::MAX).wrapping_mul(2))
}

fn hash_int(value: i32) -> i32 {
    if value == 0 { 0 } else { finish(mix(0, value.cast_unsigned()), 4) }
}

fn hash_long(value: i64) -> i32 {
    let bits = value.cast_unsigned();
    if bits == 0 { 0 } else { finish(mix(mix(0, bits as u32), (bits >> 32) as u32), 8) }
}

fn ordered<'a>(values: impl Iterator<Item = &'a Value>) -> i32 {
    let (mut sum, mut count) = (1_i32, 0_u32);
    for value in values {
        // The answer is thrown away.
        if !spend(1) {
            break;
        }
        (sum, count) = (sum.wrapping_mul(31).wrapping_add(hash(value)), count + 1);
    }
    finish(mix(0, sum.cast_unsigned()), count)
}

fn unordered(hashes: impl Iterator<Item = i32>) -> i32 {
    let hashes = hashes.take_while(|_| spend(1));
    let (sum, count) = hashes.fold((0_i32, 0), |(sum, count), hash| (sum.wrapping_add(hash), count + 1));
    finish(mix(0, sum.cast_unsigned()), count)
}

fn mix_key(key: u32) -> u32 {
    key.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593)
}

fn mix(hash: u32, key: u32) -> u32 {
    (hash ^ mix_key(key)).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
}

fn finish(hash: u32, length: u32) -> i32 {
    let hash = hash ^ length;
    let hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    let hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    (hash ^ (hash >> 16)).cast_signed()
}
