//! Parts of sequences and vectors, and new ones.

use std::cmp::Ordering;
use std::sync::Arc;

use super::arguments::{count, integer};
use super::predicates::{order, order_by};
use crate::collections::list::List;
use crate::collections::seq::Seq;
use crate::collections::vector::Vector;
use crate::language::budget::ITEMS_MAX;
use crate::language::classes::{cannot_cast, class_of};
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::{ANY, Machine};
use crate::natives;
use crate::object::class;
use crate::value::Value;

natives! {
    /// Sequences and vectors.
    pub NATIVES = {
        "seq", 1, 1, "The values as a sequence; nil if there are none.", |m, a| m.seq(&a[0]);
        "first", 1, 1, "The first value; nil if there is none.", |m, a| first(m, &a[0]);
        "second", 1, 1, "The second value.", |m, a| { let rest = next(m, &a[0])?; first(m, &rest) };
        "rest", 1, 1, "All but the first value, perhaps empty.", |m, a| rest(m, &a[0]);
        "next", 1, 1, "All but the first value; nil if there are none.", |m, a| next(m, &a[0]);
        "ffirst", 1, 1, "The first value of the first value.", |m, a| { let inner = first(m, &a[0])?; first(m, &inner) };
        "fnext", 1, 1, "The second value.", |m, a| { let rest = next(m, &a[0])?; first(m, &rest) };
        "nnext", 1, 1, "All but the first two values; nil if there are none.", |m, a| { let rest = next(m, &a[0])?; next(m, &rest) };
        "nfirst", 1, 1, "All but the first value of the first value.", |m, a| { let inner = first(m, &a[0])?; next(m, &inner) };
        "last", 1, 1, "The last value.", last;
        "butlast", 1, 1, "All but the last value; nil if there are none.", |m, a| {
            let mut all = m.collect(&a[0])?;
            all.pop();
            Ok(if all.is_empty() { Value::Nil } else { Value::list(all) })
        };
        "nth", 2, 3, "The value at an index, or the one given.", nth;
        "nthnext", 2, 2, "What follows so many values; nil if there is nothing.", |m, a| { if a[0].is_nil() { return Ok(Value::Nil); } let rest = drop(m, &a[0], &a[1])?; m.seq(&rest) };
        "nthrest", 2, 2, "What follows so many values.", |m, a| {
            let rest = drop(m, &a[0], &a[1])?;
            Ok(if rest.is_nil() { Value::list([]) } else { rest })
        };
        "cons", 2, 2, "A value before a sequence.", cons;
        "conj", 0, ANY, "A collection with more values, where it takes them most easily.", conj;
        "list", 0, ANY, "A list of the arguments.", |m, a| { memory(m, a.len())?; Ok(Value::list(a.iter_mut().map(std::mem::take))) };
        "list*", 1, ANY, "The arguments before the sequence that is the last one.", list_star;
        "vector", 0, ANY, "A vector of the arguments.", |m, a| { memory(m, a.len())?; Ok(Value::vector(a.iter_mut().map(std::mem::take))) };
        "vec", 1, 1, "The values as a vector.", |m, a| match &a[0] {
            Value::Vector(_) => Ok(a[0].clone()),
            other => m.collect(other).map(Value::vector),
        };
        "subvec", 2, 3, "The values of a vector from an index up to, but without, another.", subvec;
        "count", 1, 1, "How many values there are.", |m, a| length(m, &a[0]).map(Value::from);
        "bounded-count", 2, 2, "How many values there are, counted up to a number.", |m, a| {
            let most = count(&a[0])?;
            let mut items = m.items(&a[1])?;
            let mut found = 0;
            while found < most && items.next(m)?.is_some() { found += 1; }
            Ok(found.into())
        };
        "empty?", 1, 1, "Whether there are no values.", |m, a| Ok(m.seq(&a[0])?.is_nil().into());
        "not-empty", 1, 1, "The collection; nil if it is empty.", |m, a| Ok(if m.seq(&a[0])?.is_nil() { Value::Nil } else { a[0].clone() });
        "reverse", 1, 1, "The values from the last to the first.", |m, a| { let mut all = m.collect(&a[0])?; all.reverse(); Ok(Value::list(all)) };
        "rseq", 1, 1, "The values of a vector from the last to the first; nil if there are none.", |m, a| {
            let mut all = m.collect(&a[0])?;
            all.reverse();
            Ok(if all.is_empty() { Value::Nil } else { Value::list(all) })
        };
        "sort", 1, 2, "The values in order, by `compare` or a function.", |m, a| {
            let (by, of) = if a.len() == 2 { (Some(a[0].clone()), &a[1]) } else { (None, &a[0]) };
            let pairs = m.collect(of)?.into_iter().map(|value| (value.clone(), value)).collect();
            sorted(m, pairs, by.as_ref())
        };
        "sort-by", 2, 3, "The values in the order of what a function makes of them.", |m, a| {
            let (by, of) = if a.len() == 3 { (Some(a[1].clone()), &a[2]) } else { (None, &a[1]) };
            let mut pairs = Vec::new();
            for value in m.collect(of)? {
                pairs.push((m.call(&a[0].clone(), &mut [value.clone()])?, value));
            }
            sorted(m, pairs, by.as_ref())
        };
        "shuffle", 1, 1, "A vector of the values in a random order.", |m, a| {
            let mut all = m.collect(&a[0])?;
            for index in (1..all.len()).rev() {
                let other = usize::try_from(m.host.random() % (index as u64 + 1)).unwrap_or_default();
                all.swap(index, other);
            }
            Ok(Value::vector(all))
        };
        "peek", 1, 1, "The last value of a vector, the first one of a list.", |m, a| match &a[0] {
            Value::Vector(vector) => Ok(vector.last().cloned().unwrap_or_default()),
            other => first(m, other),
        };
        "pop", 1, 1, "A vector without its last value, a list without its first one.", pop;
        "doall", 1, 2, "The sequence, all of it computed.", |m, a| { let of = a[a.len() - 1].clone(); walk(m, &of)?; Ok(of) };
        "dorun", 1, 2, "Computes all of a sequence; nil.", |m, a| { let of = a[a.len() - 1].clone(); walk(m, &of)?; Ok(Value::Nil) };
        "to-array", 1, 1, "The values as a vector: there are no arrays here.", |m, a| m.collect(&a[0]).map(Value::vector);
        "into-array", 1, 2, "The values as a vector: there are no arrays here.", |m, a| m.collect(&a[a.len() - 1]).map(Value::vector);
        "object-array", 1, 1, "The values as a vector: there are no arrays here.", |m, a| m.collect(&a[0]).map(Value::vector);
    }
}

pub(super) fn memory(machine: &mut Machine<'_>, items: usize) -> Outcome<()> {
    machine.budget.memory((items + 2) * size_of::<Value>())
}

pub(super) fn first(machine: &mut Machine<'_>, of: &Value) -> Outcome {
    match of {
        Value::Vector(vector) => Ok(vector.first().cloned().unwrap_or_default()),
        Value::List(list) => Ok(list.first().cloned().unwrap_or_default()),
        other => Ok(machine.uncons(other)?.map(|(first, _)| first).unwrap_or_default()),
    }
}

/// All but the first value: nil or anything with `seq`.
pub(super) fn rest(machine: &mut Machine<'_>, of: &Value) -> Outcome {
    let rest = machine.uncons(of)?.map(|(_, rest)| rest);
    Ok(rest.filter(|rest| !rest.is_nil()).unwrap_or_else(|| Value::list([])))
}

fn next(machine: &mut Machine<'_>, of: &Value) -> Outcome {
    let rest = rest(machine, of)?;
    machine.seq(&rest)
}

fn last(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    if let Value::Vector(vector) = &arguments[0] {
        return Ok(vector.last().cloned().unwrap_or_default());
    }
    let mut items = machine.items(&arguments[0])?;
    let mut last = Value::Nil;
    while let Some(item) = items.next(machine)? {
        last = item;
    }
    Ok(last)
}

fn nth(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let index = integer(&arguments[1])?;
    let found = match (&arguments[0], usize::try_from(index)) {
        (Value::Nil, _) => return Ok(arguments.get(2).cloned().unwrap_or_default()),
        (Value::Vector(vector), Ok(index)) => vector.get(index).cloned(),
        (of, _) if !matches!(of, Value::Vector(_) | Value::List(_) | Value::Seq(_) | Value::Text(_)) => {
            let message = format!("nth not supported on this type: {}", class_of(&arguments[0]).short_name());
            return Err(EvalError::throw(&class::UNSUPPORTED, message));
        }
        (_, Err(_)) => None,
        (other, Ok(index)) => {
            let mut items = machine.items(other)?;
            let mut found = items.next(machine)?;
            for _ in 0..index {
                if found.is_none() {
                    break;
                }
                found = items.next(machine)?;
            }
            found
        }
    };
    match (found, arguments.get(2)) {
        (Some(found), _) => Ok(found),
        (None, Some(default)) => Ok(default.clone()),
        (None, None) => Err(EvalError::new_index(index)),
    }
}

fn drop(machine: &mut Machine<'_>, of: &Value, many: &Value) -> Outcome {
    let mut items = machine.items(of)?;
    for _ in 0..count(many)? {
        if items.next(machine)?.is_none() {
            return Ok(Value::Nil);
        }
    }
    Ok(items.rest())
}

fn cons(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    memory(machine, 1)?;
    let [first, rest] = arguments else { return Ok(Value::Nil) };
    let first = std::mem::take(first);
    Ok(match rest {
        Value::Nil => Value::list([first]),
        Value::List(list) => {
            let mut list: List<Value> = (**list).clone();
            list.at = crate::position::Position::default();
            list.push_front(first);
            Value::List(Arc::new(list))
        }
        Value::Seq(_) | Value::Vector(_) => Value::Seq(Arc::new(Seq::cons(first, std::mem::take(rest)))),
        other => {
            let rest = machine.seq(other)?;
            Value::Seq(Arc::new(Seq::cons(first, rest)))
        }
    })
}

fn conj(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let [to, items @ ..] = arguments else { return Ok(Value::vector([])) };
    let mut to = std::mem::take(to);
    for item in items {
        to = conj_one(machine, to, std::mem::take(item))?;
    }
    Ok(to)
}

/// A collection with one more value; a collection that nobody else has is changed in its place.
pub(super) fn conj_one(machine: &mut Machine<'_>, to: Value, item: Value) -> Outcome {
    memory(machine, 1)?;
    match to {
        Value::Nil => Ok(Value::list([item])),
        Value::Vector(mut vector) => {
            if vector.len() >= ITEMS_MAX {
                return Err(EvalError::too_much_memory());
            }
            Arc::make_mut(&mut vector).push(item);
            Ok(Value::Vector(vector))
        }
        Value::List(mut list) => {
            Arc::make_mut(&mut list).push_front(item);
            Ok(Value::List(list))
        }
        Value::Set(mut set) => {
            let item = machine.realize(&item)?;
            if set.len() >= ITEMS_MAX {
                return Err(EvalError::too_much_memory());
            }
            if set.get(&item).is_none() {
                Arc::make_mut(&mut set).insert(item);
            }
            Ok(Value::Set(set))
        }
        Value::Map(_) | Value::Event(_) => super::maps::conj_entry(machine, to, &item),
        Value::Seq(_) => Ok(Value::Seq(Arc::new(Seq::cons(item, to)))),
        other => Err(cannot_cast(&other, &class::PERSISTENT_COLLECTION)),
    }
}

pub(super) fn list_star(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let (last, before) = arguments.split_last_mut().expect("the table asks for one argument at least");
    let mut all: Vec<Value> = before.iter_mut().map(std::mem::take).collect();
    if all.is_empty() {
        return machine.seq(last);
    }
    memory(machine, all.len())?;
    let mut seq = std::mem::take(last);
    while let Some(value) = all.pop() {
        seq = cons(machine, &mut [value, seq])?;
    }
    Ok(seq)
}

fn subvec(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let Value::Vector(vector) = &arguments[0] else {
        return Err(cannot_cast(&arguments[0], &class::IPERSISTENT_VECTOR));
    };
    let start = integer(&arguments[1])?;
    let end = arguments.get(2).map_or(Ok(vector.len() as i64), integer)?;
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let Some((start, end)) = range.filter(|(start, end)| start <= end && *end <= vector.len()) else {
        return Err(EvalError::new_index(end));
    };
    machine.budget.step(1 + (end - start) / 8)?;
    machine.budget.memory((end - start).saturating_mul(size_of::<Value>()))?;
    let items: Vector<Value> = (start..end).filter_map(|index| vector.get(index).cloned()).collect();
    Ok(Value::Vector(Arc::new(items)))
}

pub(super) fn length(machine: &mut Machine<'_>, of: &Value) -> Outcome<usize> {
    Ok(match of {
        Value::Nil => 0,
        Value::Text(text) => {
            machine.budget.step(1 + text.len() / 64)?;
            text.encode_utf16().count()
        }
        Value::Vector(vector) => vector.len(),
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        Value::Set(set) => set.len(),
        Value::Event(event) => crate::event::Field::ALL.len() + event.attributes().len(),
        Value::Seq(_) => {
            let mut items = machine.items(of)?;
            let mut count = 0;
            while items.next(machine)?.is_some() {
                count += 1;
            }
            count
        }
        other => {
            let message = format!("count not supported on this type: {}", class_of(other).short_name());
            return Err(EvalError::throw(&class::UNSUPPORTED, message));
        }
    })
}

fn pop(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let empty = |what: &str| EvalError::throw(&class::ILLEGAL_STATE, format!("Can't pop empty {what}"));
    match std::mem::take(&mut arguments[0]) {
        Value::Nil => Ok(Value::Nil),
        Value::Vector(vector) if vector.is_empty() => Err(empty("vector")),
        Value::Vector(mut vector) => {
            Arc::make_mut(&mut vector).pop();
            Ok(Value::Vector(vector))
        }
        Value::List(list) if list.is_empty() => Err(empty("list")),
        other @ (Value::List(_) | Value::Seq(_)) => rest(machine, &other),
        other => Err(cannot_cast(&other, &class::SEQUENTIAL)),
    }
}

fn walk(machine: &mut Machine<'_>, of: &Value) -> Outcome<()> {
    let mut items = machine.items(of)?;
    while items.next(machine)?.is_some() {}
    Ok(())
}

/// The values of pairs in the order of their keys. A merge sort of our own, since comparing may fail and has to be counted.
fn sorted(machine: &mut Machine<'_>, pairs: Vec<(Value, Value)>, by: Option<&Value>) -> Outcome {
    let mut runs: Vec<Vec<(Value, Value)>> = pairs.into_iter().map(|pair| vec![pair]).collect();
    while runs.len() > 1 {
        let mut merged = Vec::with_capacity(runs.len().div_ceil(2));
        let mut rest = runs.into_iter();
        while let Some(left) = rest.next() {
            merged.push(match rest.next() {
                Some(right) => merge(machine, left, right, by)?,
                None => left,
            });
        }
        runs = merged;
    }
    Ok(Value::list(runs.pop().unwrap_or_default().into_iter().map(|(_, value)| value)))
}

type Pairs = Vec<(Value, Value)>;

fn merge(machine: &mut Machine<'_>, left: Pairs, right: Pairs, by: Option<&Value>) -> Outcome<Pairs> {
    let mut all = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some((a, _)), Some((b, _))) = (left.peek(), right.peek()) {
        machine.budget.step(1)?;
        let order = match by {
            Some(by) => order_by(machine, by, a, b)?,
            None => order(machine, a, b)?,
        };
        all.extend(if order == Ordering::Greater { right.next() } else { left.next() });
    }
    all.extend(left);
    all.extend(right);
    Ok(all)
}
