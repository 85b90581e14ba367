//! Hashes of forms and of what streams are made of, the same in each process: identities of streams in a saved state.
//!
//! Not here: hashes of keys that clients choose (`graph::hashes`), Clojure's `hash` (`hash`).
//! Invariant: a release that changes such a hash loses the state of the streams that an earlier one saved.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use crate::collections::map::Map;
use crate::number::Number;
use crate::value::Value;

/// Values that a hash looks at, at most: what two forms have in common before that decides.
const VALUES_MAX: u32 = 10_000;
/// Collections in each other that a hash looks into, at most.
const DEPTH_MAX: u32 = 64;

/// The hash of a stream's own arguments: those that are no children.
pub fn of_arguments(name: &str, arguments: &[Value]) -> u64 {
    let mut form = Form { to: SipHasher13::new(), left: VALUES_MAX };
    form.text(0, name);
    form.all(arguments.iter(), DEPTH_MAX);
    form.to.finish()
}

/// The hash of code.
pub fn of_code(forms: &[Value]) -> u64 {
    of_arguments("", forms)
}

/// A hash of numbers.
pub fn of_numbers(numbers: &[u64]) -> u64 {
    let mut to = SipHasher13::new();
    numbers.iter().for_each(|number| to.write_u64(number.to_le()));
    to.finish()
}

struct Form {
    to: SipHasher13,
    left: u32,
}

impl Form {
    fn tag(&mut self, tag: u8) {
        self.to.write_u8(tag);
    }

    fn text(&mut self, tag: u8, text: &str) {
        self.tag(tag);
        self.to.write_u64((text.len() as u64).to_le());
        self.to.write(text.as_bytes());
    }

    fn all<'v>(&mut self, values: impl Iterator<Item = &'v Value>, depth: u32) {
        values.for_each(|value| self.value(value, depth));
        self.tag(u8::MAX);
    }

    /// Entries in whatever order: maps of equal entries have the same hash.
    fn entries<'v>(&mut self, entries: impl Iterator<Item = [&'v Value; 2]>, depth: u32) {
        let mut sum = 0_u64;
        for entry in entries {
            let mut one = Form { to: SipHasher13::new(), left: self.left };
            one.all(entry.into_iter(), depth);
            self.left = one.left;
            sum = sum.wrapping_add(one.to.finish());
        }
        self.to.write_u64(sum.to_le());
    }

    fn map(&mut self, map: &Map<Value>, depth: u32) {
        self.entries(map.iter().map(|(key, value)| [key, value]), depth);
    }

    fn value(&mut self, value: &Value, depth: u32) {
        if self.left == 0 || depth == 0 {
            return;
        }
        self.left -= 1;
        let depth = depth - 1;
        match value {
            Value::Nil => self.tag(1),
            Value::Bool(value) => self.tag(2 + u8::from(*value)),
            Value::Number(number) => self.number(number),
            Value::Char(char) => self.text(4, char.encode_utf8(&mut [0; 4])),
            Value::Text(text) => self.text(5, text),
            Value::Keyword(name) => self.text(6, name),
            Value::Symbol(symbol) => self.text(7, stem(&symbol.name)),
            Value::List(list) => {
                self.tag(8);
                self.all(list.iter(), depth);
            }
            Value::Vector(vector) => {
                self.tag(9);
                self.all(vector.iter(), depth);
            }
            Value::Map(map) => {
                self.tag(10);
                self.map(map, depth);
            }
            Value::Set(set) => {
                self.tag(11);
                self.entries(set.iter().map(|value| [value, &Value::Nil]), depth);
            }
            Value::Pattern(pattern) => self.text(12, &pattern.source),
            Value::Closure(closure) => {
                // What it captured may be another value with each load.
                self.tag(13);
                self.to.write_u64(closure.code.form().to_le());
                self.to.write_u32(closure.index.to_le());
            }
            Value::Native(native) => self.text(14, native.name),
            Value::Bound(bound) => {
                self.text(15, bound.native.name);
                self.all(bound.arguments.iter(), depth);
            }
            Value::Var(var) => self.text(16, &var.name),
            Value::Class(class) => self.text(17, class.name),
            Value::Namespace(name) => self.text(18, name),
            Value::Moment(moment) => {
                self.tag(19);
                self.to.write_i64(moment.milliseconds.to_le());
            }
            // Children have identities of their own.
            Value::Stream(_) => {}
            // These have no form: they are made anew with each load, or as they are needed.
            Value::Seq(_) | Value::Event(_) | Value::Atom(_) | Value::Delay(_) | Value::Exception(_) => {
                self.tag(20);
            }
        }
    }

    fn number(&mut self, number: &Number) {
        match number {
            Number::Int(value) => {
                self.tag(21);
                self.to.write_i64(value.to_le());
            }
            Number::Big(value) => self.text(22, &value.to_string()),
            Number::Ratio(value) => self.text(23, &value.to_string()),
            Number::Float(value) => {
                self.tag(24);
                self.to.write_u32(value.to_bits().to_le());
            }
            Number::Double(value) => {
                self.tag(25);
                self.to.write_u64(value.to_bits().to_le());
            }
        }
    }
}

/// A name without the number that makes it unique: `p1__37` of `#(…)` and `x__12__auto__` of a macro count from the file's begin, and a
/// form before them may be new.
fn stem(name: &str) -> &str {
    let unique = name.strip_suffix("__auto__").unwrap_or(name);
    match unique.rsplit_once("__") {
        Some((stem, number)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
            stem
        }
        _ => name,
    }
}

#[test]
fn the_number_of_a_generated_name_and_the_order_of_a_map_do_not_change_a_hash() {
    let hash = |value: Value| of_arguments("rate", &[value]);
    let (a, b) = (Value::keyword("a"), Value::keyword("b"));
    let map = |first: &Value, second: &Value| {
        Value::map([(first.clone(), Value::from(1_i64)), (second.clone(), Value::from(1_i64))])
    };
    let same = [
        (Value::symbol("p1__7"), Value::symbol("p1__123")),
        (Value::symbol("x__1__auto__"), Value::symbol("x__2__auto__")),
        (map(&a, &b), map(&b, &a)),
        (Value::vector([]), Value::vector([Value::Stream(crate::graph::NodeId::first(3))])),
    ];
    for (one, other) in same {
        assert_eq!(hash(one.clone()), hash(other.clone()), "{one:?} {other:?}");
    }
    let others = [
        (Value::symbol("p1__7"), Value::symbol("p2__7")),
        (Value::symbol("a__b"), Value::symbol("a__c")),
        (Value::text("a"), Value::keyword("a")),
        (Value::from(1_i64), Value::from(1.0)),
        (Value::vector([Value::vector([])]), Value::vector([Value::Nil])),
        (map(&a, &a), map(&a, &b)),
    ];
    for (one, other) in others {
        assert_ne!(hash(one.clone()), hash(other.clone()), "{one:?} {other:?}");
    }
    assert_eq!(
        of_arguments("rate", &[Value::from(5_i64)]),
        8_800_814_576_697_071_406,
        "the same in each process and release"
    );
}
