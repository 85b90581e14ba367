//! `clojure.set`

use std::sync::Arc;

use super::maps::{assoc_one, entries};
use crate::collections::map::Map;
use crate::collections::set::Set;
use crate::language::classes::cannot_cast;
use crate::language::error::Outcome;
use crate::language::machine::{ANY, Machine};
use crate::natives;
use crate::object::class;
use crate::value::Value;

natives! {
    /// `clojure.set`
    pub NATIVES = {
        "union", 0, ANY, "The values that any set has.", |m, a| {
            let mut all = match a { [] => return Ok(Value::set([])), [first, ..] => std::mem::take(first) };
            for more in &a[1..] {
                let mut items = m.items(more)?;
                if all.is_nil() { all = more.clone(); continue; }
                while let Some(item) = items.next(m)? { all = super::sequences::conj_one(m, all, item)?; }
            }
            Ok(all)
        };
        "intersection", 1, ANY, "The values that all sets have.", |m, a| kept(m, a, true);
        "difference", 1, ANY, "The values of the first set that no other one has.", |m, a| kept(m, a, false);
        "subset?", 2, 2, "Whether a set has no values but those of another one.", |m, a| subset(m, &a[0], &a[1]).map(Value::from);
        "superset?", 2, 2, "Whether a set has all values of another one.", |m, a| subset(m, &a[1], &a[0]).map(Value::from);
        "select", 2, 2, "The values of a set of which a function is true.", |m, a| {
            let mut found = Set::default();
            let mut items = m.items(&a[1])?;
            while let Some(item) = items.next(m)? {
                if m.call(&a[0], &mut [item.clone()])?.is_true() { found.insert(item); }
            }
            Ok(Value::Set(Arc::new(found)))
        };
        "map-invert", 1, 1, "A map from values to keys.", |m, a| {
            let mut map = Map::default();
            for (key, value) in entries(m, &a[0])? { map.insert(m.realize(&value)?, key); }
            Ok(Value::Map(Arc::new(map)))
        };
        "rename-keys", 2, 2, "A map with other keys, as a second map has it.", |m, a| renamed(m, &a[0], &a[1]);
        "rename", 2, 2, "A set of maps with other keys, as a map has it.", |m, a| {
            let mut found = Set::default();
            for map in m.collect(&a[0])? { found.insert(renamed(m, &map, &a[1])?); }
            Ok(Value::Set(Arc::new(found)))
        };
        "project", 2, 2, "A set of maps with some of their keys.", |m, a| {
            let keys = m.collect(&a[1])?;
            let mut found = Set::default();
            for map in m.collect(&a[0])? { found.insert(selected(m, &map, &keys)); }
            Ok(Value::Set(Arc::new(found)))
        };
        "index", 2, 2, "A map from the values of some keys to the sets of maps that have them.", |m, a| {
            let keys = m.collect(&a[1])?;
            let mut found: Map<Value> = Map::default();
            for map in m.collect(&a[0])? {
                let key = selected(m, &map, &keys);
                let group = found.get(&key).cloned().unwrap_or_else(|| Value::set([]));
                found.insert(key, super::sequences::conj_one(m, group, map)?);
            }
            Ok(Value::Map(Arc::new(found)))
        };
        "join", 2, 3, "A set of the maps of two sets that agree on their common keys, or on those that a map pairs.", join;
    }
}

fn set(value: &Value) -> Outcome<&Arc<Set<Value>>> {
    match value {
        Value::Set(set) => Ok(set),
        other => Err(cannot_cast(other, &class::IPERSISTENT_SET)),
    }
}

fn kept(machine: &mut Machine<'_>, arguments: &mut [Value], wanted: bool) -> Outcome {
    let (first, others) = arguments.split_first().expect("the table asks for one argument at least");
    if first.is_nil() {
        return Ok(Value::Nil);
    }
    let mut found = Set::clone(set(first)?);
    for value in set(first)?.iter() {
        machine.budget.step(others.len())?;
        let has = |other: &Value| machine.lookup(other, value).is_some();
        let stays = if wanted { others.iter().all(has) } else { !others.iter().any(has) };
        if !stays {
            found.remove(value);
        }
    }
    Ok(Value::Set(Arc::new(found)))
}

fn subset(machine: &mut Machine<'_>, small: &Value, large: &Value) -> Outcome<bool> {
    let mut items = machine.items(small)?;
    while let Some(item) = items.next(machine)? {
        if machine.lookup(large, &item).is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn renamed(machine: &mut Machine<'_>, map: &Value, names: &Value) -> Outcome {
    let names = entries(machine, names)?;
    let mut moved = Vec::new();
    let mut rest = Map::default();
    for (key, value) in entries(machine, map)? {
        match names.iter().find(|(old, _)| *old == key) {
            Some((_, new)) => moved.push((new.clone(), value)),
            None => rest.insert(key, value),
        }
    }
    moved
        .into_iter()
        .try_fold(Value::Map(Arc::new(rest)), |map, (key, value)| assoc_one(machine, map, key, value))
}

fn selected(machine: &Machine<'_>, map: &Value, keys: &[Value]) -> Value {
    let pairs = keys.iter().filter_map(|key| Some((key.clone(), machine.lookup(map, key)?)));
    Value::map(pairs)
}

fn join(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let (left, right) = (machine.collect(&arguments[0])?, machine.collect(&arguments[1])?);
    let (Some(a), Some(b)) = (left.first(), right.first()) else { return Ok(Value::set([])) };
    let pairs: Vec<(Value, Value)> = match arguments.get(2) {
        Some(map) => entries(machine, map)?,
        None => {
            let keys = entries(machine, a)?.into_iter().map(|(key, _)| key);
            keys.filter(|key| machine.lookup(b, key).is_some()).map(|key| (key.clone(), key)).collect()
        }
    };
    let mut found = Set::default();
    for a in &left {
        for b in &right {
            machine.budget.step(1 + pairs.len())?;
            let agree = |(key, other): &(Value, Value)| machine.lookup(a, key) == machine.lookup(b, other);
            if pairs.iter().all(agree) {
                found.insert(super::maps::conj_entry(machine, a.clone(), b)?);
            }
        }
    }
    Ok(Value::Set(Arc::new(found)))
}
