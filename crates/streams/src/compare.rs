//! Equality and order of values, and their shapes.
//!
//! - `equal`: Clojure's `=`. Lists equal vectors of the same values; an event equals no map.
//! - `order`: a total order for trees, in which just the equal values are equal.
//! - [`compare`]: Clojure's `compare`, which refuses values of different sorts.
//!
//! Sequences that are not computed are only equal to themselves: see [`Element`].

use std::cmp::Ordering;
use std::sync::Arc;

use crate::collections::element::{Element, Shape};
use crate::collections::map::Map;
use crate::effort::spend;
use crate::event::{Event, Field};
use crate::hash;
use crate::number::Number;
use crate::value::Value;

impl Element for Value {
    fn shape(&self) -> Shape {
        match self {
            Value::Nil
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Char(_)
            | Value::Text(_)
            | Value::Keyword(_)
            | Value::Symbol(_)
            | Value::Pattern(_)
            | Value::Native(_)
            | Value::Stream(_)
            | Value::Var(_)
            | Value::Class(_)
            | Value::Namespace(_)
            | Value::Moment(_) => Shape::default(),
            Value::Atom(_) => Shape::EMPTY,
            Value::List(list) => list.shape(),
            Value::Vector(vector) => vector.shape(),
            Value::Map(map) => map.shape(),
            Value::Set(set) => set.shape(),
            Value::Seq(seq) => seq.shape(),
            Value::Event(event) => event_shape(event),
            Value::Closure(closure) => closure.shape(),
            Value::Bound(bound) => bound.shape(),
            // Compared by its address, so what it computes does not matter.
            Value::Delay(delay) => Shape { lazy: false, ..delay.shape() },
            Value::Exception(exception) => {
                let mut shape = Shape::EMPTY;
                shape.hold(exception.data.shape());
                shape.hold(exception.cause.shape());
                Shape { lazy: false, ..shape }
            }
        }
    }

    fn hash(&self) -> i32 {
        hash::hash(self)
    }

    fn equal(&self, other: &Self) -> bool {
        match (self, other) {
            (Value::Nil, Value::Nil) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Number(a), Value::Number(b)) => a.equal(b),
            (Value::Char(a), Value::Char(b)) => a == b,
            (Value::Text(a), Value::Text(b)) | (Value::Keyword(a), Value::Keyword(b)) => {
                is_affordable(a.len().min(b.len())) && a == b
            }
            (Value::Symbol(a), Value::Symbol(b)) => a.name == b.name,
            (Value::Vector(a), Value::Vector(b)) => {
                Arc::ptr_eq(a, b)
                    || a.len() == b.len() && spend(a.len()) && a.iter().zip(b.iter()).all(|(a, b)| a.equal(b))
            }
            (Value::List(a), Value::List(b)) => {
                Arc::ptr_eq(a, b)
                    || a.len() == b.len() && spend(a.len()) && a.iter().zip(b.iter()).all(|(a, b)| a.equal(b))
            }
            (Value::List(list), Value::Vector(vector)) | (Value::Vector(vector), Value::List(list)) => {
                list.len() == vector.len()
                    && spend(list.len())
                    && list.iter().zip(vector.iter()).all(|(a, b)| a.equal(b))
            }
            (Value::Map(a), Value::Map(b)) => Arc::ptr_eq(a, b) || equal_maps(a, b),
            (Value::Set(a), Value::Set(b)) => {
                Arc::ptr_eq(a, b)
                    || a.len() == b.len() && spend(a.len()) && a.iter().all(|value| b.get(value).is_some())
            }
            (Value::Event(a), Value::Event(b)) => Arc::ptr_eq(a, b) || equal_events(a, b),
            _ => address(self).is_some_and(|a| Some(a) == address(other)),
        }
    }

    fn order(&self, other: &Self) -> Ordering {
        rank(self).cmp(&rank(other)).then_with(|| order_within(self, other))
    }
}

/// Counts the effort of comparing so many bytes; short texts are compared as fast as other values.
fn is_affordable(bytes: usize) -> bool {
    const BYTES_PER_VALUE: usize = 128;
    bytes < BYTES_PER_VALUE || spend(bytes / BYTES_PER_VALUE)
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.equal(other)
    }
}

fn event_shape(event: &Event) -> Shape {
    let mut shape = Shape::EMPTY;
    Field::ALL.iter().for_each(|field| shape.hold(event.get(*field).shape()));
    event.attributes().iter().for_each(|(_, value)| shape.hold(value.shape()));
    shape
}

fn equal_maps(a: &Map<Value>, b: &Map<Value>) -> bool {
    a.len() == b.len()
        && spend(a.len())
        && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| value.equal(other)))
}

fn equal_events(a: &Event, b: &Event) -> bool {
    let other = |name: &str| b.attribute(name);
    spend(Field::ALL.len() + a.attributes().len())
        && Field::ALL.iter().all(|field| a.get(*field).equal(b.get(*field)))
        && a.attributes().len() == b.attributes().len()
        && a.attributes().iter().all(|(name, value)| other(name).is_some_and(|other| value.equal(other)))
}

/// The identity of a value that is equal to nothing but itself.
fn address(value: &Value) -> Option<(u32, usize)> {
    let at = match value {
        Value::Seq(seq) => Arc::as_ptr(seq).addr(),
        Value::Pattern(pattern) => Arc::as_ptr(pattern).addr(),
        Value::Closure(closure) => Arc::as_ptr(closure).addr(),
        Value::Native(native) => std::ptr::from_ref(*native).addr(),
        Value::Stream(node) => usize::try_from(node.number()).unwrap_or(usize::MAX),
        Value::Bound(bound) => Arc::as_ptr(bound).addr(),
        Value::Var(var) => Arc::as_ptr(var).addr(),
        Value::Atom(atom) => Arc::as_ptr(atom).addr(),
        Value::Delay(delay) => Arc::as_ptr(delay).addr(),
        Value::Exception(exception) => Arc::as_ptr(exception).addr(),
        Value::Class(class) => std::ptr::from_ref(*class).addr(),
        Value::Namespace(name) => usize::try_from(hash::text(name).cast_unsigned()).unwrap_or_default(),
        Value::Moment(instant) => usize::try_from(instant.milliseconds).unwrap_or_default(),
        Value::Nil
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Char(_)
        | Value::Text(_)
        | Value::Keyword(_)
        | Value::Symbol(_)
        | Value::List(_)
        | Value::Vector(_)
        | Value::Map(_)
        | Value::Set(_)
        | Value::Event(_) => return None,
    };
    Some((rank(value), at))
}

/// The sort of a value; values of different ranks are never equal.
fn rank(value: &Value) -> u32 {
    match value {
        Value::Nil => 0,
        Value::Bool(_) => 1,
        Value::Number(Number::Int(_) | Number::Big(_)) => 2,
        Value::Number(Number::Ratio(_)) => 3,
        Value::Number(Number::Float(_) | Number::Double(_)) => 4,
        Value::Char(_) => 5,
        Value::Text(_) => 6,
        Value::Keyword(_) => 7,
        Value::Symbol(_) => 8,
        Value::List(_) | Value::Vector(_) => 9,
        Value::Map(_) => 10,
        Value::Set(_) => 11,
        Value::Event(_) => 12,
        Value::Seq(_) => 13,
        Value::Pattern(_) => 14,
        Value::Closure(_) => 15,
        Value::Native(_) => 16,
        Value::Bound(_) => 17,
        Value::Stream(_) => 18,
        Value::Var(_) => 19,
        Value::Atom(_) => 20,
        Value::Delay(_) => 21,
        Value::Exception(_) => 22,
        Value::Class(_) => 23,
        Value::Namespace(_) => 24,
        Value::Moment(instant) => 25 + u32::from(instant.is_joda),
    }
}

/// The order of values of one rank. Texts, numbers and vectors have the order of `compare`.
fn order_within(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => {
            a.compare(b).unwrap_or_else(|| a.as_f64().total_cmp(&b.as_f64()))
        }
        (Value::Char(a), Value::Char(b)) => a.cmp(b),
        (Value::Text(a), Value::Text(b)) | (Value::Keyword(a), Value::Keyword(b)) => {
            if is_affordable(a.len().min(b.len())) { a.cmp(b) } else { Ordering::Equal }
        }
        (Value::Symbol(a), Value::Symbol(b)) => a.name.cmp(&b.name),
        (Value::List(a), Value::List(b)) => in_turn(a.iter(), b.iter()),
        (Value::List(a), Value::Vector(b)) => in_turn(a.iter(), b.iter()),
        (Value::Vector(a), Value::List(b)) => in_turn(a.iter(), b.iter()),
        (Value::Vector(a), Value::Vector(b)) => in_turn(a.iter(), b.iter()),
        (Value::Map(a), Value::Map(b)) => a.len().cmp(&b.len()).then_with(|| {
            if spend(a.len()) { order_entries(entries(a.iter()), entries(b.iter())) } else { Ordering::Equal }
        }),
        (Value::Set(a), Value::Set(b)) => a
            .len()
            .cmp(&b.len())
            .then_with(|| in_turn(sorted(a.iter()).into_iter(), sorted(b.iter()).into_iter())),
        (Value::Event(a), Value::Event(b)) => {
            if !spend(Field::ALL.len() + a.attributes().len()) {
                return Ordering::Equal;
            }
            let fields = Field::ALL.iter().map(|field| a.get(*field).order(b.get(*field)));
            let standard = fields.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal);
            standard.then_with(|| order_entries(attributes(a), attributes(b)))
        }
        _ => address(a).cmp(&address(b)),
    }
}

fn in_turn<'a>(a: impl Iterator<Item = &'a Value>, mut b: impl Iterator<Item = &'a Value>) -> Ordering {
    for a in a {
        // The answer is thrown away.
        if !spend(1) {
            return Ordering::Equal;
        }
        let Some(b) = b.next() else { return Ordering::Greater };
        let order = a.order(b);
        if order.is_ne() {
            return order;
        }
    }
    if b.next().is_some() { Ordering::Less } else { Ordering::Equal }
}

/// Sorted by merging. `sort_by` panics if it notices that an order is none, as one is whose limit is reached halfway.
fn merge_sorted<T>(mut values: Vec<T>, order: &dyn Fn(&T, &T) -> Ordering) -> Vec<T> {
    if values.len() < 2 {
        return values;
    }
    let upper = values.split_off(values.len() / 2);
    let (lower, upper) = (merge_sorted(values, order), merge_sorted(upper, order));
    let mut merged = Vec::with_capacity(lower.len() + upper.len());
    let (mut lower, mut upper) = (lower.into_iter().peekable(), upper.into_iter().peekable());
    while let (Some(a), Some(b)) = (lower.peek(), upper.peek()) {
        let next = if order(a, b).is_gt() { upper.next() } else { lower.next() };
        merged.extend(next);
    }
    merged.extend(lower);
    merged.extend(upper);
    merged
}

fn sorted<'a>(values: impl Iterator<Item = &'a Value>) -> Vec<&'a Value> {
    merge_sorted(values.collect(), &|a: &&Value, b: &&Value| a.order(b))
}

fn entries<'a>(entries: impl Iterator<Item = (&'a Value, &'a Value)>) -> Vec<(Value, Value)> {
    let entries = entries.map(|(key, value)| (key.clone(), value.clone())).collect();
    merge_sorted(entries, &|(a, _), (b, _)| a.order(b))
}

fn attributes(event: &Event) -> Vec<(Value, Value)> {
    let all = event.attributes().iter().map(|(name, value)| (Value::Keyword(name.clone()), value.clone()));
    merge_sorted(all.collect(), &|(a, _), (b, _)| a.order(b))
}

fn order_entries(a: Vec<(Value, Value)>, b: Vec<(Value, Value)>) -> Ordering {
    let both = a.iter().zip(&b).map(|((key_a, a), (key_b, b))| key_a.order(key_b).then_with(|| a.order(b)));
    both.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
}

/// Clojure's `compare`: nil is least, numbers compare by value, vectors by length and then in turn. `None` where Clojure
/// throws, since the values have no order.
pub fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Nil, Value::Nil) => Some(Ordering::Equal),
        (Value::Nil, _) => Some(Ordering::Less),
        (_, Value::Nil) => Some(Ordering::Greater),
        // What is not a number compares as equal, as in Java's comparison of doubles by `<` and `>`.
        (Value::Number(a), Value::Number(b)) => Some(a.compare(b).unwrap_or(Ordering::Equal)),
        (Value::Vector(a), Value::Vector(b)) => {
            let mut order = a.len().cmp(&b.len());
            for (a, b) in a.iter().zip(b.iter()) {
                if order.is_ne() || !spend(1) {
                    break;
                }
                order = compare(a, b)?;
            }
            Some(order)
        }
        (Value::Text(a), Value::Text(b)) => {
            spend(a.len().min(b.len()) / 16);
            Some(a.encode_utf16().cmp(b.encode_utf16()))
        }
        (Value::Keyword(a), Value::Keyword(b)) => Some(compare_names(a, b)),
        (Value::Symbol(a), Value::Symbol(b)) => Some(compare_names(&a.name, &b.name)),
        (Value::Bool(_), Value::Bool(_)) | (Value::Char(_), Value::Char(_)) => Some(order_within(a, b)),
        (Value::Moment(a), Value::Moment(b)) => Some(a.milliseconds.cmp(&b.milliseconds)),
        _ => None,
    }
}

/// What `compare` and `.compareTo` give for two values whose order is known: Java's difference for texts and characters, else
/// -1, 0 or 1.
pub fn difference(a: &Value, b: &Value, order: Ordering) -> i64 {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => text_difference(a, b),
        (Value::Keyword(a), Value::Keyword(b)) if !a.contains('/') && !b.contains('/') => {
            text_difference(a, b)
        }
        (Value::Symbol(a), Value::Symbol(b)) if !a.name.contains('/') && !b.name.contains('/') => {
            text_difference(&a.name, &b.name)
        }
        (Value::Char(a), Value::Char(b)) => i64::from(u32::from(*a)) - i64::from(u32::from(*b)),
        _ => order as i64,
    }
}

/// The difference of the first UTF-16 units that differ, else that of the lengths.
fn text_difference(a: &str, b: &str) -> i64 {
    let differ = a.encode_utf16().zip(b.encode_utf16()).find(|(a, b)| a != b);
    let length = |text: &str| i64::try_from(text.encode_utf16().count()).unwrap_or(i64::MAX);
    differ.map_or_else(|| length(a) - length(b), |(a, b)| i64::from(a) - i64::from(b))
}

/// Names without a namespace come first.
fn compare_names(a: &str, b: &str) -> Ordering {
    let (a, b) = (crate::symbol::split_name(a), crate::symbol::split_name(b));
    a.cmp(&b)
}
