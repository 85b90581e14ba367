//! Going through a sequence for one result.

use std::sync::Arc;

use super::sequences::conj_one;
use crate::function::Native;
use crate::function::{Arity, Bound};
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::{ANY, Machine, Run};
use crate::natives;
use crate::value::Value;

natives! {
    /// Reductions and searches.
    pub NATIVES = {
        "reduce", 2, 3, "One value from all: a function of what there is so far and the next value.", reduce;
        "reduce-kv", 3, 3, "One value from the entries of a map or the indexes and values of a vector.", reduce_kv;
        "reductions", 2, 3, "All steps of a reduction.", reductions;
        "reduced", 1, 1, "A value that ends a reduction.", |_, a| Ok(reduced(std::mem::take(&mut a[0])));
        "reduced?", 1, 1, "Whether a value ends a reduction.", |_, a| Ok(unreduced(&a[0]).is_some().into());
        "unreduced", 1, 1, "The value itself, without what ends a reduction.", |_, a| Ok(unreduced(&a[0]).unwrap_or_else(|| a[0].clone()));
        "into", 0, 2, "A collection with all values of another one.", into;
        "some", 2, 2, "The first true result of a function over values, or nil.", |m, a| Ok(search(m, a, true)?.unwrap_or_default());
        "every?", 2, 2, "Whether a function is true of all values.", |m, a| Ok(search(m, a, false)?.is_none().into());
        "not-any?", 2, 2, "Whether a function is true of no value.", |m, a| Ok(search(m, a, true)?.is_none().into());
        "not-every?", 2, 2, "Whether a function is not true of all values.", |m, a| Ok(search(m, a, false)?.is_some().into());
        "run!", 2, 2, "Calls a function with each value; nil.", |m, a| {
            let mut items = m.items(&a[1])?;
            while let Some(item) = items.next(m)? { m.call(&a[0], &mut [item])?; }
            Ok(Value::Nil)
        };
        "apply", 2, ANY, "Calls a function with the arguments, the last of which is a sequence of more.", apply;
        "group-by", 2, 2, "A map from what a function makes of values to vectors of these values.", group_by;
        "frequencies", 1, 1, "A map from each value to how often it is there.", frequencies;
        "zipmap", 2, 2, "A map of keys and values, in turn.", zipmap;
        "mapv", 2, ANY, "A vector of what a function makes of values, of one sequence or of several in turn.", mapv;
        "filterv", 2, 2, "A vector of the values of which a function is true.", |m, a| {
            let mut kept = Value::vector([]);
            let mut items = m.items(&a[1])?;
            while let Some(item) = items.next(m)? {
                if m.call(&a[0], &mut [item.clone()])?.is_true() { kept = conj_one(m, kept, item)?; }
            }
            Ok(kept)
        };
    }
}

/// What marks a value that ends a reduction: it is bound to this function, which nobody can name.
static REDUCED: Native = Native {
    name: "reduced",
    arity: Arity { min: 0, max: None },
    doc: "",
    code: &Run(|_, _| Ok(Value::Nil)),
};

fn reduced(value: Value) -> Value {
    Value::Bound(Arc::new(Bound::new(&REDUCED, Arc::new([value]))))
}

fn unreduced(value: &Value) -> Option<Value> {
    match value {
        Value::Bound(bound) if std::ptr::eq(bound.native, &raw const REDUCED) => {
            bound.arguments.first().cloned()
        }
        _ => None,
    }
}

fn reduce(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let function = arguments[0].clone();
    let mut items = machine.items(&arguments[arguments.len() - 1])?;
    let mut sum = match arguments {
        [_, start, _] => std::mem::take(start),
        _ => match items.next(machine)? {
            Some(first) => first,
            None => return machine.call(&function, &mut []),
        },
    };
    while let Some(item) = items.next(machine)? {
        sum = machine.call(&function, &mut [sum, item])?;
        if let Some(end) = unreduced(&sum) {
            return Ok(end);
        }
    }
    Ok(sum)
}

fn reduce_kv(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let function = arguments[0].clone();
    let mut sum = std::mem::take(&mut arguments[1]);
    let of = &arguments[2];
    let indexed = matches!(of, Value::Vector(_));
    let mut items = machine.items(of)?;
    let mut index = 0_i64;
    while let Some(item) = items.next(machine)? {
        let (key, value) = match &item {
            Value::Vector(entry) if !indexed => {
                (entry.first().cloned().unwrap_or_default(), entry.last().cloned().unwrap_or_default())
            }
            _ => (Value::from(index), item.clone()),
        };
        sum = machine.call(&function, &mut [sum, key, value])?;
        index += 1;
        if let Some(end) = unreduced(&sum) {
            return Ok(end);
        }
    }
    Ok(sum)
}

fn reductions(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let function = arguments[0].clone();
    let mut items = machine.items(&arguments[arguments.len() - 1])?;
    let start = match arguments {
        [_, start, _] => Some(std::mem::take(start)),
        _ => items.next(machine)?,
    };
    let Some(mut sum) = start else { return Ok(Value::list([machine.call(&function, &mut [])?])) };
    let mut all = vec![sum.clone()];
    while let Some(item) = items.next(machine)? {
        machine.budget.memory(size_of::<Value>())?;
        sum = machine.call(&function, &mut [sum, item])?;
        if let Some(end) = unreduced(&sum) {
            all.push(end);
            break;
        }
        all.push(sum.clone());
    }
    Ok(Value::list(all))
}

fn into(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let [to, from] = arguments else {
        return Ok(arguments.first().cloned().unwrap_or_else(|| Value::vector([])));
    };
    let mut items = machine.items(from)?;
    let mut to = std::mem::take(to);
    while let Some(item) = items.next(machine)? {
        to = conj_one(machine, to, item)?;
    }
    Ok(to)
}

/// The first result that is true, or that is not, of a function over values.
fn search(machine: &mut Machine<'_>, arguments: &mut [Value], wanted: bool) -> Outcome<Option<Value>> {
    let mut items = machine.items(&arguments[1])?;
    while let Some(item) = items.next(machine)? {
        let result = machine.call(&arguments[0], &mut [item])?;
        if result.is_true() == wanted {
            return Ok(Some(result));
        }
    }
    Ok(None)
}

fn apply(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let (last, before) = arguments.split_last_mut().expect("the table asks for two arguments at least");
    let mut rest = machine.collect(last)?;
    let [function, first @ ..] = before else { return Err(EvalError::illegal_argument("no function")) };
    if first.is_empty() {
        return machine.call(function, &mut rest);
    }
    let mut all: Vec<Value> = first.iter_mut().map(std::mem::take).collect();
    all.append(&mut rest);
    machine.call(function, &mut all)
}

fn group_by(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let mut items = machine.items(&arguments[1])?;
    let mut groups = crate::collections::map::Map::default();
    while let Some(item) = items.next(machine)? {
        let key = machine.call(&arguments[0], &mut [item.clone()])?;
        let key = machine.realize(&key)?;
        let group = groups.get(&key).cloned().unwrap_or_else(|| Value::vector([]));
        let group = conj_one(machine, group, item)?;
        groups.insert(key, group);
    }
    Ok(Value::Map(Arc::new(groups)))
}

fn frequencies(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let mut items = machine.items(&arguments[0])?;
    let mut counts = crate::collections::map::Map::default();
    while let Some(item) = items.next(machine)? {
        machine.budget.memory(4 * size_of::<Value>())?;
        let key = machine.realize(&item)?;
        let count =
            counts.get(&key).and_then(Value::as_number).map_or(0.0, crate::number::Number::as_f64) as i64;
        counts.insert(key, Value::from(count + 1));
    }
    Ok(Value::Map(Arc::new(counts)))
}

fn zipmap(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let (mut keys, mut values) = (machine.items(&arguments[0])?, machine.items(&arguments[1])?);
    let mut map = crate::collections::map::Map::default();
    while let Some(key) = keys.next(machine)? {
        let Some(value) = values.next(machine)? else { break };
        machine.budget.memory(4 * size_of::<Value>())?;
        map.insert(machine.realize(&key)?, value);
    }
    Ok(Value::Map(Arc::new(map)))
}

fn mapv(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let mut all = Vec::new();
    for of in &arguments[1..] {
        all.push(machine.items(of)?);
    }
    let mut made = Value::vector([]);
    loop {
        let mut given = Vec::with_capacity(all.len());
        for items in &mut all {
            match items.next(machine)? {
                Some(item) => given.push(item),
                None => return Ok(made),
            }
        }
        let item = machine.call(&arguments[0], &mut given)?;
        made = conj_one(machine, made, item)?;
    }
}
