//! `clojure.walk`

use std::sync::Arc;

use super::maps::entries;
use crate::collections::map::Map;
use crate::language::error::Outcome;
use crate::language::machine::Machine;
use crate::natives;
use crate::value::Value;

natives! {
    /// `clojure.walk`
    pub NATIVES = {
        "walk", 3, 3, "A collection of what a function makes of its values, given to another function.", |m, a| {
            let (inner, outer) = (a[0].clone(), a[1].clone());
            let made = inside(m, &a[2].clone(), &mut |m, value| m.call(&inner, &mut [value]))?;
            m.call(&outer, &mut [made])
        };
        "prewalk", 2, 2, "A value and all values in it, replaced by what a function makes of them, outer ones first.", |m, a| { let f = a[0].clone(); outer_first(m, &a[1].clone(), &mut |m, value| m.call(&f, &mut [value])) };
        "postwalk", 2, 2, "A value and all values in it, replaced by what a function makes of them, inner ones first.", |m, a| { let f = a[0].clone(); inner_first(m, &a[1].clone(), &mut |m, value| m.call(&f, &mut [value])) };
        "prewalk-replace", 2, 2, "A value with those in it replaced that a map has, outer ones first.", |m, a| { let map = a[0].clone(); outer_first(m, &a[1].clone(), &mut |m, value| replaced(m, &map, value)) };
        "postwalk-replace", 2, 2, "A value with those in it replaced that a map has, inner ones first.", |m, a| { let map = a[0].clone(); inner_first(m, &a[1].clone(), &mut |m, value| replaced(m, &map, value)) };
        "keywordize-keys", 1, 1, "A value whose maps have keywords instead of texts as keys.", |m, a| inner_first(m, &a[0].clone(), &mut |m, value| keys(m, value, |key| match key {
            Value::Text(text) => Value::Keyword(text),
            other => other,
        }));
        "stringify-keys", 1, 1, "A value whose maps have texts instead of keywords as keys.", |m, a| inner_first(m, &a[0].clone(), &mut |m, value| keys(m, value, |key| match key {
            Value::Keyword(name) => Value::text(crate::symbol::split_name(&name).1),
            other => other,
        }));
    }
}

type Change<'c> = &'c mut dyn FnMut(&mut Machine<'_>, Value) -> Outcome;

/// A collection of the same sort with changed values; any other value as it is.
fn inside(machine: &mut Machine<'_>, of: &Value, change: Change<'_>) -> Outcome {
    Ok(match of {
        Value::Map(_) => {
            let mut map = Map::default();
            for (key, value) in entries(machine, of)? {
                let changed = change(machine, Value::vector([key, value]))?;
                let Value::Map(one) = super::maps::conj_entry(machine, Value::map([]), &changed)? else {
                    continue;
                };
                for (key, value) in one.iter() {
                    map.insert(machine.realize(key)?, value.clone());
                }
            }
            Value::Map(Arc::new(map))
        }
        Value::Event(_) => {
            let mut event = of.clone();
            for (key, value) in entries(machine, of)? {
                let changed = change(machine, Value::vector([key, value]))?;
                event = super::maps::conj_entry(machine, event, &changed)?;
            }
            event
        }
        Value::Vector(_) | Value::List(_) | Value::Seq(_) | Value::Set(_) => {
            let mut all = machine.collect(of)?;
            for value in &mut all {
                *value = change(machine, std::mem::take(value))?;
            }
            match of {
                Value::Vector(_) => Value::vector(all),
                Value::Set(_) => {
                    let all = all.iter().map(|value| machine.realize(value)).collect::<Outcome<Vec<_>>>()?;
                    Value::set(all)
                }
                _ => Value::list(all),
            }
        }
        other => other.clone(),
    })
}

fn inner_first(machine: &mut Machine<'_>, of: &Value, change: Change<'_>) -> Outcome {
    machine.budget.enter()?;
    let made = inside(machine, of, &mut |machine, value| inner_first(machine, &value, change));
    machine.budget.leave();
    change(machine, made?)
}

fn outer_first(machine: &mut Machine<'_>, of: &Value, change: Change<'_>) -> Outcome {
    let changed = change(machine, of.clone())?;
    machine.budget.enter()?;
    let made = inside(machine, &changed, &mut |machine, value| outer_first(machine, &value, change));
    machine.budget.leave();
    made
}

fn replaced(machine: &mut Machine<'_>, map: &Value, value: Value) -> Outcome {
    let key = machine.realize(&value)?;
    Ok(machine.lookup(map, &key).unwrap_or(value))
}

fn keys(machine: &mut Machine<'_>, value: Value, change: fn(Value) -> Value) -> Outcome {
    if !matches!(value, Value::Map(_)) {
        return Ok(value);
    }
    Ok(Value::map(entries(machine, &value)?.into_iter().map(|(key, value)| (change(key), value))))
}
