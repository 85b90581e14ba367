//! Maps, events and sets.
//!
//! An event keeps its sort while its keys are keywords; without one of its standard fields it is a plain map (spec §3.1).

use std::sync::Arc;

use super::arguments::integer;
use super::sequences::{conj_one, memory};
use crate::collections::map::Map;
use crate::collections::set::Set;
use crate::event::{Event, Field};
use crate::language::budget::ITEMS_MAX;
use crate::language::classes::cannot_cast;
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::{ANY, Machine};
use crate::language::sequence::{entry, event_entries};
use crate::natives;
use crate::object::class;
use crate::value::Value;

natives! {
    /// Maps and sets.
    pub NATIVES = {
        "get", 2, 3, "The value of a key, or nil, or the value given.", get;
        "get-in", 2, 3, "The value at the end of a path of keys.", get_in;
        "assoc", 1, ANY, "A map, an event or a vector with other values for keys.", assoc;
        "assoc-in", 3, 3, "A map with another value at the end of a path of keys.", |m, a| {
            let path = m.collect(&a[1])?;
            let value = a[2].clone();
            at_path(m, a[0].clone(), &path, &mut |_, _| Ok(value.clone()))
        };
        "update", 3, ANY, "A map with what a function makes of the value of a key.", |m, a| {
            let (key, function) = (a[1].clone(), a[2].clone());
            let old = get(m, &mut [a[0].clone(), key.clone()])?;
            let mut given: Vec<Value> = std::iter::once(old).chain(a[3..].iter().cloned()).collect();
            let value = m.call(&function, &mut given)?;
            assoc_one(m, std::mem::take(&mut a[0]), key, value)
        };
        "update-in", 3, ANY, "A map with what a function makes of the value at the end of a path of keys.", |m, a| {
            let path = m.collect(&a[1])?;
            let (function, more) = (a[2].clone(), a[3..].to_vec());
            at_path(m, a[0].clone(), &path, &mut |m, old| {
                let mut given: Vec<Value> = std::iter::once(old).chain(more.iter().cloned()).collect();
                m.call(&function, &mut given)
            })
        };
        "dissoc", 1, ANY, "A map without some keys.", dissoc;
        "merge", 0, ANY, "A map with the entries of others; later ones win.", merge;
        "merge-with", 1, ANY, "A map with the entries of others; a function makes one value of two.", merge_with;
        "select-keys", 2, 2, "A map with some of the entries of another one.", |m, a| {
            let mut map = Map::default();
            for key in m.collect(&a[1])? {
                let key = m.realize(&key)?;
                if let Some(value) = m.lookup(&a[0], &key) { map.insert(key, value); }
            }
            Ok(Value::Map(Arc::new(map)))
        };
        "contains?", 2, 2, "Whether a map has a key, a set a value, a vector an index.", contains;
        "find", 2, 2, "The entry of a key; nil if there is none.", |m, a| {
            let key = m.realize(&a[1])?;
            Ok(m.lookup(&a[0], &key).map(|value| entry(key, value)).unwrap_or_default())
        };
        "keys", 1, 1, "The keys of a map; nil if it has none.", |m, a| column(m, &a[0], true);
        "vals", 1, 1, "The values of a map; nil if it has none.", |m, a| column(m, &a[0], false);
        "key", 1, 1, "The key of an entry.", |_, a| of_entry(&a[0], 0);
        "val", 1, 1, "The value of an entry.", |_, a| of_entry(&a[0], 1);
        "hash-map", 0, ANY, "A map of keys and values.", |m, a| pairs(m, a, Map::hashed());
        "array-map", 0, ANY, "A map of keys and values, in their order.", |m, a| pairs(m, a, Map::default());
        "update-keys", 2, 2, "A map with what a function makes of its keys.", |m, a| {
            let mut map = Map::default();
            for (key, value) in entries(m, &a[0])? { let key = m.call(&a[1], &mut [key])?; map.insert(m.realize(&key)?, value); }
            Ok(Value::Map(Arc::new(map)))
        };
        "update-vals", 2, 2, "A map with what a function makes of its values.", |m, a| {
            let mut map = Map::default();
            for (key, value) in entries(m, &a[0])? { let value = m.call(&a[1], &mut [value])?; map.insert(key, value); }
            Ok(Value::Map(Arc::new(map)))
        };
        "set", 1, 1, "The values as a set.", |m, a| {
            let all = m.collect(&a[0])?;
            set_of(m, all)
        };
        "hash-set", 0, ANY, "A set of the arguments.", |m, a| set_of(m, a.iter_mut().map(std::mem::take).collect());
        "disj", 1, ANY, "A set without some values.", |m, a| {
            let [set, values @ ..] = a else { return Ok(Value::Nil) };
            let mut set = match std::mem::take(set) {
                Value::Nil => return Ok(Value::Nil),
                Value::Set(set) => set,
                other => return Err(cannot_cast(&other, &class::IPERSISTENT_SET)),
            };
            for value in values { let value = m.realize(value)?; Arc::make_mut(&mut set).remove(&value); }
            Ok(Value::Set(set))
        };
        "empty", 1, 1, "An empty collection of the same sort.", |_, a| Ok(match &a[0] {
            Value::Vector(_) => Value::vector([]),
            Value::Map(_) | Value::Event(_) => Value::map([]),
            Value::Set(_) => Value::set([]),
            Value::List(_) | Value::Seq(_) => Value::list([]),
            _ => Value::Nil,
        });
        "transient", 1, 1, "The collection: there are no transient ones here.", |_, a| Ok(std::mem::take(&mut a[0]));
        "persistent!", 1, 1, "The collection.", |_, a| Ok(std::mem::take(&mut a[0]));
        "conj!", 1, 2, "As `conj`.", |m, a| match a { [to, item] => conj_one(m, std::mem::take(to), std::mem::take(item)), _ => Ok(a[0].clone()) };
        "assoc!", 3, ANY, "As `assoc`.", assoc;
        "dissoc!", 2, ANY, "As `dissoc`.", dissoc;
    }
}

fn get(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let key = machine.realize(&arguments[1])?;
    let found = machine.lookup(&arguments[0], &key);
    Ok(found.unwrap_or_else(|| arguments.get(2).cloned().unwrap_or_default()))
}

fn get_in(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let mut value = arguments[0].clone();
    for key in machine.collect(&arguments[1])? {
        let key = machine.realize(&key)?;
        match machine.lookup(&value, &key) {
            Some(found) => value = found,
            None => return Ok(arguments.get(2).cloned().unwrap_or_default()),
        }
    }
    Ok(value)
}

fn assoc(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let [map, pairs @ ..] = arguments else { return Ok(Value::Nil) };
    let (pairs, rest) = pairs.as_chunks_mut::<2>();
    if !rest.is_empty() || pairs.is_empty() {
        return Err(EvalError::illegal_argument(
            "assoc expects even number of arguments after map/vector, found odd number",
        ));
    }
    let mut map = std::mem::take(map);
    for [key, value] in pairs {
        map = assoc_one(machine, map, std::mem::take(key), std::mem::take(value))?;
    }
    Ok(map)
}

/// A map, an event or a vector with another value for a key. One that nobody else has is changed in its place.
pub(super) fn assoc_one(machine: &mut Machine<'_>, to: Value, key: Value, value: Value) -> Outcome {
    memory(machine, 2)?;
    match to {
        Value::Event(mut event) => match &key {
            Value::Keyword(name) => {
                match Field::of(name) {
                    Some(field) => Arc::make_mut(&mut event).set(field, value),
                    None => {
                        machine.budget.step(event.attributes().len() / 16)?;
                        Arc::make_mut(&mut event).set_attribute(name.clone(), value);
                    }
                }
                Ok(Value::Event(event))
            }
            _ => {
                let map: Map<Value> = event_entries(&event).collect();
                assoc_one(machine, Value::Map(Arc::new(map)), key, value)
            }
        },
        Value::Map(mut map) => {
            let key = machine.realize(&key)?;
            if map.len() >= ITEMS_MAX {
                return Err(EvalError::too_much_memory());
            }
            Arc::make_mut(&mut map).insert(key, value);
            Ok(Value::Map(map))
        }
        Value::Nil => Ok(Value::map([(machine.realize(&key)?, value)])),
        Value::Vector(mut vector) => {
            let Value::Number(_) = key else {
                return Err(EvalError::illegal_argument("Key must be integer"));
            };
            let index = integer(&key)?;
            let at = usize::try_from(index).ok().filter(|at| *at <= vector.len());
            let at = at.ok_or_else(|| EvalError::new_index(index))?;
            if Arc::make_mut(&mut vector).set(at, value) {
                Ok(Value::Vector(vector))
            } else {
                Err(EvalError::new_index(index))
            }
        }
        other => Err(cannot_cast(&other, &class::IPERSISTENT_MAP)),
    }
}

/// A map with another value at the end of a path.
fn at_path(
    machine: &mut Machine<'_>,
    of: Value,
    path: &[Value],
    change: &mut dyn FnMut(&mut Machine<'_>, Value) -> Outcome,
) -> Outcome {
    // An empty path is the key nil, as in Clojure.
    let (key, rest) = path.split_first().map_or((Value::Nil, path), |(key, rest)| (key.clone(), rest));
    let old = get(machine, &mut [of.clone(), key.clone()])?;
    let value = if rest.is_empty() {
        change(machine, old)?
    } else {
        machine.budget.enter()?;
        let value = at_path(machine, old, rest, change);
        machine.budget.leave();
        value?
    };
    use crate::collections::element::Element as _;
    if value.shape().depth > crate::language::budget::VALUE_DEPTH_MAX {
        return Err(EvalError::too_deep());
    }
    assoc_one(machine, of, key, value)
}

fn dissoc(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let [map, keys @ ..] = arguments else { return Ok(Value::Nil) };
    let mut map = std::mem::take(map);
    for key in keys {
        let key = machine.realize(key)?;
        map = match map {
            Value::Nil => Value::Nil,
            Value::Map(mut map) => {
                Arc::make_mut(&mut map).remove(&key);
                Value::Map(map)
            }
            Value::Event(event) => without_field(&event, &key),
            other => return Err(cannot_cast(&other, &class::IPERSISTENT_MAP)),
        };
    }
    Ok(map)
}

fn without_field(event: &Event, key: &Value) -> Value {
    let Value::Keyword(name) = key else { return Value::Event(Arc::new(event.clone())) };
    if Field::of(name).is_some() {
        return Value::map(event_entries(event).filter(|(known, _)| known != key));
    }
    let mut changed = Event::default();
    Field::ALL.iter().for_each(|field| changed.set(*field, event.get(*field).clone()));
    for (known, value) in event.attributes().iter().filter(|(known, _)| known != name) {
        changed.add_attribute(known.clone(), value.clone());
    }
    Value::Event(Arc::new(changed))
}

/// A map with one more entry, a vector of two, or with all entries of another map.
pub(super) fn conj_entry(machine: &mut Machine<'_>, to: Value, item: &Value) -> Outcome {
    match item {
        Value::Nil => Ok(to),
        Value::Vector(vector) => match (vector.first(), vector.get(1), vector.len()) {
            (Some(key), Some(value), 2) => assoc_one(machine, to, key.clone(), value.clone()),
            _ => Err(EvalError::illegal_argument("Vector arg to map conj must be a pair")),
        },
        Value::Map(_) | Value::Event(_) => entries(machine, item)?
            .into_iter()
            .try_fold(to, |to, (key, value)| assoc_one(machine, to, key, value)),
        other => {
            let name = crate::language::classes::class_of(other).name;
            Err(EvalError::illegal_argument(format!("Don't know how to create ISeq from: {name}")))
        }
    }
}

/// The entries of a map or an event; none of nil.
pub(in crate::language) fn entries(machine: &mut Machine<'_>, of: &Value) -> Outcome<Vec<(Value, Value)>> {
    let entries: Vec<(Value, Value)> = match of {
        Value::Nil => Vec::new(),
        Value::Map(map) => map.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
        Value::Event(event) => event_entries(event).collect(),
        other => return Err(cannot_cast(other, &class::IPERSISTENT_MAP)),
    };
    machine.budget.step(entries.len())?;
    memory(machine, 2 * entries.len())?;
    Ok(entries)
}

fn merge(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    if arguments.iter().all(Value::is_nil) {
        return Ok(Value::Nil);
    }
    let [first, rest @ ..] = arguments else { return Ok(Value::Nil) };
    let mut map = std::mem::take(first);
    if map.is_nil() {
        map = Value::map([]);
    }
    for more in rest {
        map = conj_one(machine, map, std::mem::take(more))?;
    }
    Ok(map)
}

fn merge_with(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let [function, maps @ ..] = arguments else { return Ok(Value::Nil) };
    if maps.iter().all(Value::is_nil) {
        return Ok(Value::Nil);
    }
    let mut merged = Value::Nil;
    for map in maps.iter() {
        if merged.is_nil() {
            merged = map.clone();
            continue;
        }
        for (key, value) in entries(machine, map)? {
            let value = match machine.lookup(&merged, &key) {
                Some(old) => machine.call(function, &mut [old, value])?,
                None => value,
            };
            merged = assoc_one(machine, merged, key, value)?;
        }
    }
    Ok(merged)
}

fn contains(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let key = machine.realize(&arguments[1])?;
    match &arguments[0] {
        Value::Nil | Value::Map(_) | Value::Event(_) | Value::Set(_) | Value::Vector(_) | Value::Text(_) => {
            Ok(machine.lookup(&arguments[0], &key).is_some().into())
        }
        other => {
            let name = crate::language::classes::class_of(other).name;
            Err(EvalError::illegal_argument(format!("contains? not supported on type: {name}")))
        }
    }
}

fn column(machine: &mut Machine<'_>, of: &Value, keys: bool) -> Outcome {
    if !matches!(of, Value::Nil | Value::Map(_) | Value::Event(_)) {
        let mut all = Vec::new();
        for item in machine.collect(of)? {
            all.push(of_entry(&item, usize::from(!keys))?);
        }
        return machine.seq(&Value::list(all));
    }
    let entries = entries(machine, of)?;
    if entries.is_empty() {
        return Ok(Value::Nil);
    }
    Ok(Value::list(
        entries.into_iter().map(|(key, value)| if keys { key } else { value }).collect::<Vec<_>>(),
    ))
}

fn of_entry(value: &Value, index: usize) -> Outcome {
    match value {
        Value::Vector(vector) if vector.len() == 2 => Ok(vector.get(index).cloned().unwrap_or_default()),
        other => Err(EvalError::throw(
            &class::CLASS_CAST,
            format!(
                "{} cannot be cast to java.util.Map$Entry",
                crate::language::classes::class_of(other).name
            ),
        )),
    }
}

fn pairs(machine: &mut Machine<'_>, arguments: &mut [Value], mut map: Map<Value>) -> Outcome {
    memory(machine, arguments.len())?;
    let (pairs, rest) = arguments.as_chunks::<2>();
    if let [odd] = rest {
        let text = crate::print::to_str(odd);
        return Err(EvalError::illegal_argument(format!("No value supplied for key: {text}")));
    }
    for [key, value] in pairs {
        map.insert(machine.realize(key)?, value.clone());
    }
    Ok(Value::Map(Arc::new(map)))
}

fn set_of(machine: &mut Machine<'_>, values: Vec<Value>) -> Outcome {
    memory(machine, 2 * values.len())?;
    let mut set = Set::default();
    for value in values {
        set.insert(machine.realize(&value)?);
    }
    Ok(Value::Set(Arc::new(set)))
}
