//! Sequences that are computed as they are looked at.
//!
//! Each function here makes a lazy sequence of one of the [`PARTS`], which gives the first value before another lazy sequence.
//! So `(take 5 (iterate inc 0))` computes five values.

use std::sync::Arc;

use super::arguments::{count, integer, number};
use super::sequences::{first, memory};
use crate::arithmetic;
use crate::collections::map::Map;
use crate::collections::seq::Seq;
use crate::collections::set::Set;
use crate::function::Native;
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::{ANY, Machine};
use crate::natives;
use crate::number::Number;
use crate::value::Value;

natives! {
    /// Functions that give lazy sequences.
    pub NATIVES = {
        "map", 2, ANY, "What a function makes of each value, of one sequence or of several in turn.", |m, a| Ok(part(m, "map", a));
        "mapcat", 2, ANY, "The values of all sequences that a function makes of values.", |m, a| {
            let mapped = part(m, "map", a);
            Ok(part(m, "flat", &mut [Value::Nil, mapped]))
        };
        "map-indexed", 2, 2, "What a function makes of each index and value.", |m, a| Ok(part(m, "map-indexed", &mut [a[0].clone(), Value::from(0_i64), a[1].clone()]));
        "keep", 2, 2, "What a function makes of each value, without nil.", |m, a| Ok(part(m, "keep", a));
        "keep-indexed", 2, 2, "What a function makes of each index and value, without nil.", |m, a| {
            let indexed = part(m, "map-indexed", &mut [a[0].clone(), Value::from(0_i64), a[1].clone()]);
            Ok(part(m, "keep", &mut [Value::Native(named("identity part")), indexed]))
        };
        "filter", 2, 2, "The values of which a function is true.", |m, a| Ok(part(m, "filter", &mut [a[0].clone(), true.into(), a[1].clone()]));
        "remove", 2, 2, "The values of which a function is not true.", |m, a| Ok(part(m, "filter", &mut [a[0].clone(), false.into(), a[1].clone()]));
        "take", 2, 2, "The first values, so many.", |m, a| Ok(part(m, "take", a));
        "take-while", 2, 2, "The values before the first one of which a function is not true.", |m, a| Ok(part(m, "take-while", a));
        "drop", 2, 2, "The values after the first ones, so many.", |m, a| Ok(part(m, "drop", a));
        "drop-while", 2, 2, "The values from the first one on of which a function is not true.", |m, a| Ok(part(m, "drop-while", a));
        "take-last", 2, 2, "The last values, so many.", |m, a| {
            let (many, all) = (count(&a[0])?, m.collect(&a[1])?);
            let from = all.len().saturating_sub(many);
            m.seq(&Value::list(all.into_iter().skip(from).collect::<Vec<_>>()))
        };
        "drop-last", 1, 2, "All but the last value, or but the last ones, so many.", |m, a| {
            let many = if a.len() == 2 { count(&a[0])? } else { 1 };
            let mut all = m.collect(&a[a.len() - 1])?;
            all.truncate(all.len().saturating_sub(many));
            Ok(Value::list(all))
        };
        "take-nth", 2, 2, "Every so manieth value, from the first one on.", |m, a| Ok(part(m, "take-nth", a));
        "split-at", 2, 2, "The first values, so many, and the others.", |m, a| {
            let (before, after) = (part(m, "take", &mut a.to_vec()), part(m, "drop", a));
            Ok(Value::vector([before, after]))
        };
        "split-with", 2, 2, "The values before the first one of which a function is not true, and the others.", |m, a| {
            let (before, after) = (part(m, "take-while", &mut a.to_vec()), part(m, "drop-while", a));
            Ok(Value::vector([before, after]))
        };
        "iterate", 2, 2, "A value, what a function makes of it, what it makes of that, and so on.", |m, a| Ok(part(m, "iterate", &mut [a[0].clone(), a[1].clone(), true.into()]));
        "repeat", 1, 2, "A value again and again, or so many times.", |m, a| match a {
            [value] => Ok(part(m, "repeat", &mut [value.clone()])),
            _ => { let forever = part(m, "repeat", &mut [a[1].clone()]); Ok(part(m, "take", &mut [a[0].clone(), forever])) }
        };
        "repeatedly", 1, 2, "What calls of a function give, again and again or so many times.", |m, a| match a {
            [function] => Ok(part(m, "repeatedly", &mut [function.clone()])),
            _ => { let forever = part(m, "repeatedly", &mut [a[1].clone()]); Ok(part(m, "take", &mut [a[0].clone(), forever])) }
        };
        "cycle", 1, 1, "The values again and again.", |m, a| Ok(part(m, "cycle", &mut [a[0].clone(), a[0].clone()]));
        "range", 0, 3, "Numbers from 0 or a start up to, but without, an end, in steps.", range;
        "concat", 0, ANY, "The values of sequences, one after the other.", |m, a| Ok(part(m, "concat", a));
        "lazy-cat*", 0, ANY, "The values of sequences, one after the other.", |m, a| Ok(part(m, "concat", a));
        "interleave", 0, ANY, "The first value of each sequence, the second one of each, and so on.", |m, a| Ok(part(m, "interleave", a));
        "interpose", 2, 2, "The values with another one between each two.", |m, a| Ok(part(m, "interpose", &mut [a[0].clone(), a[1].clone(), false.into()]));
        "partition", 2, 4, "Groups of so many values; the last one only if it is full or padded.", partition;
        "partition-all", 2, 3, "Groups of so many values; the last one may have fewer.", |m, a| {
            let step = if a.len() == 3 { a[1].clone() } else { a[0].clone() };
            positive(&a[0])?; positive(&step)?;
            Ok(part(m, "partition", &mut [a[0].clone(), step, "all".into(), a[a.len() - 1].clone()]))
        };
        "partition-by", 2, 2, "Groups of values of which a function gives the same.", |m, a| Ok(part(m, "partition-by", a));
        "distinct", 1, 1, "The values without those that came before.", |m, a| Ok(part(m, "distinct", &mut [Value::set([]), a[0].clone()]));
        "dedupe", 1, 1, "The values without those that are equal to the one before.", |m, a| Ok(part(m, "dedupe", &mut [Value::keyword(" none"), a[0].clone()]));
        "flatten", 1, 1, "The values inside of sequences within each other.", flatten;
        "tree-seq", 3, 3, "A tree's nodes, each before its children.", |m, a| Ok(part(m, "tree", &mut [a[0].clone(), a[1].clone(), Value::list([a[2].clone()])]));
        "lazy-seq*", 1, 1, "The lazy sequence that a function gives.", |m, a| { memory(m, 1)?; Ok(m.lazy(named("lazy"), [a[0].clone()])) };
        "replace", 2, 2, "The values with some replaced, as a map has it.", |m, a| {
            let mut all = Vec::new();
            for value in m.collect(&a[1])? {
                let key = m.realize(&value)?;
                all.push(m.lookup(&a[0], &key).unwrap_or(value));
            }
            Ok(if matches!(a[1], Value::Vector(_)) { Value::vector(all) } else { Value::list(all) })
        };
    }

    /// What lazy sequences run; no config can name these.
    pub PARTS = {
        " map", 2, ANY, "", map;
        " map-indexed", 3, 3, "", map_indexed;
        " keep", 2, 2, "", keep;
        " filter", 3, 3, "", filter;
        " take", 2, 2, "", take;
        " take-while", 2, 2, "", take_while;
        " drop", 2, 2, "", |m, a| {
            let mut items = m.items(&a[1])?;
            for _ in 0..count(&a[0])? { if items.next(m)?.is_none() { return Ok(Value::Nil); } }
            m.seq(&items.rest())
        };
        " drop-while", 2, 2, "", drop_while;
        " take-nth", 2, 2, "", take_nth;
        " iterate", 3, 3, "", iterate;
        " repeat", 1, 1, "", |m, a| { let rest = part(m, "repeat", &mut [a[0].clone()]); cell(m, a[0].clone(), rest) };
        " repeatedly", 1, 1, "", |m, a| { let value = m.call(&a[0].clone(), &mut [])?; let rest = part(m, "repeatedly", a); cell(m, value, rest) };
        " cycle", 2, 2, "", cycle;
        " concat", 0, ANY, "", concat;
        " flat", 2, 2, "", flat;
        " interleave", 0, ANY, "", interleave;
        " interpose", 3, 3, "", interpose;
        " partition", 4, 4, "", partition_part;
        " partition-by", 2, 2, "", partition_by;
        " distinct", 2, 2, "", distinct;
        " dedupe", 2, 2, "", dedupe;
        " tree", 3, 3, "", tree;
        " lazy", 1, 1, "", |m, a| m.call(&a[0].clone(), &mut []);
        " range", 2, 2, "", |m, a| {
            let next = arithmetic::add(number(&a[0])?, number(&a[1])?).map_err(EvalError::from)?;
            let rest = part(m, "range", &mut [Value::Number(next), a[1].clone()]);
            cell(m, a[0].clone(), rest)
        };
        " identity part", 1, 1, "", |_, a| Ok(a[0].clone());
        " map-of-pairs", 1, 1, "", map_of_pairs;
    }
}

/// The part of a name, without the space that keeps it from configs.
fn named(name: &str) -> &'static Native {
    let found = PARTS.iter().find(|part| part.name.trim_start() == name);
    found.expect("parts are named by literals, and a test makes each of them")
}

/// The lazy sequence of a part; takes its arguments.
fn part(machine: &Machine<'_>, name: &str, arguments: &mut [Value]) -> Value {
    machine.lazy(named(name), arguments.iter_mut().map(std::mem::take).collect::<Vec<_>>())
}

/// A value before a sequence.
fn cell(machine: &mut Machine<'_>, first: Value, rest: Value) -> Outcome {
    memory(machine, 4)?;
    Ok(Value::Seq(Arc::new(Seq::cons(first, rest))))
}

fn map(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let [function, sequences @ ..] = arguments else { return Ok(Value::Nil) };
    let (mut given, mut next) = (Vec::new(), vec![function.clone()]);
    for sequence in sequences {
        let Some((first, rest)) = machine.uncons(sequence)? else { return Ok(Value::Nil) };
        given.push(first);
        next.push(rest);
    }
    let value = machine.call(function, &mut given)?;
    let rest = part(machine, "map", &mut next);
    cell(machine, value, rest)
}

fn map_indexed(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let Some((first, rest)) = machine.uncons(&arguments[2])? else { return Ok(Value::Nil) };
    let index = integer(&arguments[1])?;
    let value = machine.call(&arguments[0], &mut [arguments[1].clone(), first])?;
    let rest = part(machine, "map-indexed", &mut [arguments[0].clone(), Value::from(index + 1), rest]);
    cell(machine, value, rest)
}

fn keep(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let mut items = machine.items(&arguments[1])?;
    while let Some(item) = items.next(machine)? {
        let value = machine.call(&arguments[0], &mut [item])?;
        if !value.is_nil() {
            let rest = part(machine, "keep", &mut [arguments[0].clone(), items.rest()]);
            return cell(machine, value, rest);
        }
    }
    Ok(Value::Nil)
}

fn filter(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let mut items = machine.items(&arguments[2])?;
    while let Some(item) = items.next(machine)? {
        if machine.call(&arguments[0], &mut [item.clone()])?.is_true() == arguments[1].is_true() {
            let rest =
                part(machine, "filter", &mut [arguments[0].clone(), arguments[1].clone(), items.rest()]);
            return cell(machine, item, rest);
        }
    }
    Ok(Value::Nil)
}

fn take(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let many = count(&arguments[0])?;
    if many == 0 {
        return Ok(Value::Nil);
    }
    let Some((first, rest)) = machine.uncons(&arguments[1])? else { return Ok(Value::Nil) };
    let rest = if many == 1 { Value::Nil } else { part(machine, "take", &mut [Value::from(many - 1), rest]) };
    cell(machine, first, rest)
}

fn take_while(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let Some((first, rest)) = machine.uncons(&arguments[1])? else { return Ok(Value::Nil) };
    if !machine.call(&arguments[0], &mut [first.clone()])?.is_true() {
        return Ok(Value::Nil);
    }
    let rest = part(machine, "take-while", &mut [arguments[0].clone(), rest]);
    cell(machine, first, rest)
}

fn drop_while(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let mut items = machine.items(&arguments[1])?;
    while let Some(item) = items.next(machine)? {
        if !machine.call(&arguments[0], &mut [item.clone()])?.is_true() {
            return cell(machine, item, items.rest());
        }
    }
    Ok(Value::Nil)
}

fn take_nth(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let Some((first, mut rest)) = machine.uncons(&arguments[1])? else { return Ok(Value::Nil) };
    // A step under 1 repeats the first value for ever, as in Clojure.
    let skipped = integer(&arguments[0])?.checked_sub(1).and_then(|skipped| usize::try_from(skipped).ok());
    let Some(skipped) = skipped else {
        let rest = part(machine, "take-nth", arguments);
        return cell(machine, first, rest);
    };
    let mut items = machine.items(&rest)?;
    let mut left = skipped;
    while left > 0 && items.next(machine)?.is_some() {
        left -= 1;
    }
    rest = if left > 0 { Value::Nil } else { items.rest() };
    let rest = part(machine, "take-nth", &mut [arguments[0].clone(), rest]);
    cell(machine, first, rest)
}

fn iterate(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let [function, value, is_first] = arguments else { return Ok(Value::Nil) };
    let value = if is_first.is_true() {
        value.clone()
    } else {
        machine.call(function, &mut [std::mem::take(value)])?
    };
    let rest = part(machine, "iterate", &mut [function.clone(), value.clone(), false.into()]);
    cell(machine, value, rest)
}

fn cycle(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let found = machine.uncons(&arguments[1])?;
    let found = if found.is_none() { machine.uncons(&arguments[0])? } else { found };
    let Some((first, rest)) = found else { return Ok(Value::Nil) };
    let rest = part(machine, "cycle", &mut [arguments[0].clone(), rest]);
    cell(machine, first, rest)
}

fn concat(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let Some((inner, outer)) = arguments.split_first_mut() else { return Ok(Value::Nil) };
    machine.budget.step(outer.len())?;
    machine.budget.memory(size_of_val(outer))?;
    // The sequences that follow are one list, of which each part has the rest: `(apply concat …)` has many.
    let outer = Value::list(outer.iter_mut().map(std::mem::take));
    flat(machine, &mut [std::mem::take(inner), outer])
}

/// The values of a sequence, then those of the sequences of another one.
fn flat(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let (mut inner, mut outer) = (arguments[0].clone(), arguments[1].clone());
    loop {
        machine.budget.step(1)?;
        if let Some((first, rest)) = machine.uncons(&inner)? {
            let rest = part(machine, "flat", &mut [rest, outer]);
            return cell(machine, first, rest);
        }
        let Some((next, rest)) = machine.uncons(&outer)? else { return Ok(Value::Nil) };
        (inner, outer) = (next, rest);
    }
}

fn interleave(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let (mut firsts, mut next) = (Vec::new(), Vec::new());
    for sequence in arguments.iter() {
        let Some((first, rest)) = machine.uncons(sequence)? else { return Ok(Value::Nil) };
        firsts.push(first);
        next.push(rest);
    }
    if firsts.is_empty() {
        return Ok(Value::Nil);
    }
    let mut all = part(machine, "interleave", &mut next);
    while let Some(first) = firsts.pop() {
        all = cell(machine, first, all)?;
    }
    Ok(all)
}

fn interpose(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let Some((first, rest)) = machine.uncons(&arguments[1])? else { return Ok(Value::Nil) };
    let separator = arguments[0].clone();
    let rest = part(machine, "interpose", &mut [separator.clone(), rest, true.into()]);
    let all = cell(machine, first, rest)?;
    if arguments[2].is_true() { cell(machine, separator, all) } else { Ok(all) }
}

fn positive(value: &Value) -> Outcome<()> {
    if integer(value)? < 1 {
        return Err(EvalError::illegal_argument("groups and their steps have at least one value"));
    }
    Ok(())
}

fn partition(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let (size, step, pad) = match arguments {
        [size, _] => (size.clone(), size.clone(), Value::Nil),
        [size, step, _] => (size.clone(), step.clone(), Value::Nil),
        [size, step, pad, _] => {
            let pad = machine.collect(pad)?;
            (size.clone(), step.clone(), Value::vector(pad))
        }
        _ => return Ok(Value::Nil),
    };
    positive(&size)?;
    positive(&step)?;
    let of = arguments[arguments.len() - 1].clone();
    Ok(part(machine, "partition", &mut [size, step, pad, of]))
}

/// Size, step, what to do with a last group that is not full (nothing, a vector to pad it with, a text to keep it), values.
fn partition_part(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let (size, step) = (count(&arguments[0])?, count(&arguments[1])?);
    let mut items = machine.items(&arguments[3])?;
    let mut group = Vec::new();
    while group.len() < size
        && let Some(item) = items.next(machine)?
    {
        memory(machine, 1)?;
        group.push(item);
    }
    if group.is_empty() {
        return Ok(Value::Nil);
    }
    let is_full = group.len() == size;
    match &arguments[2] {
        Value::Nil if !is_full => return Ok(Value::Nil),
        Value::Vector(pad) if !is_full => {
            group.extend(pad.iter().take(size - group.len()).cloned());
            return cell(machine, Value::list(group), Value::Nil);
        }
        _ => {}
    }
    let mut items = machine.items(&arguments[3])?;
    for _ in 0..step {
        if items.next(machine)?.is_none() {
            break;
        }
    }
    let mut next = [arguments[0].clone(), arguments[1].clone(), arguments[2].clone(), items.rest()];
    let rest = part(machine, "partition", &mut next);
    cell(machine, Value::list(group), rest)
}

fn partition_by(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let mut items = machine.items(&arguments[1])?;
    let Some(item) = items.next(machine)? else { return Ok(Value::Nil) };
    let key = machine.call(&arguments[0], &mut [item.clone()])?;
    let key = machine.realize(&key)?;
    let mut group = vec![item];
    loop {
        let before = items.clone();
        let Some(item) = items.next(machine)? else { return cell(machine, Value::list(group), Value::Nil) };
        let next = machine.call(&arguments[0], &mut [item.clone()])?;
        if machine.realize(&next)? != key {
            let rest = part(machine, "partition-by", &mut [arguments[0].clone(), before.rest()]);
            return cell(machine, Value::list(group), rest);
        }
        memory(machine, 1)?;
        group.push(item);
    }
}

fn distinct(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let Value::Set(seen) = std::mem::take(&mut arguments[0]) else { return Ok(Value::Nil) };
    let mut items = machine.items(&arguments[1])?;
    while let Some(item) = items.next(machine)? {
        let key = machine.realize(&item)?;
        if seen.get(&key).is_none() {
            let mut seen: Set<Value> = (*seen).clone();
            seen.insert(key);
            let rest = part(machine, "distinct", &mut [Value::Set(Arc::new(seen)), items.rest()]);
            return cell(machine, item, rest);
        }
    }
    Ok(Value::Nil)
}

fn dedupe(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let mut items = machine.items(&arguments[1])?;
    while let Some(item) = items.next(machine)? {
        let key = machine.realize(&item)?;
        if key != arguments[0] {
            let rest = part(machine, "dedupe", &mut [key, items.rest()]);
            return cell(machine, item, rest);
        }
    }
    Ok(Value::Nil)
}

/// Whether a node has children, what they are, and the nodes that are left.
fn tree(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let Some((node, mut rest)) = machine.uncons(&arguments[2])? else { return Ok(Value::Nil) };
    if machine.call(&arguments[0], &mut [node.clone()])?.is_true() {
        let children = machine.call(&arguments[1], &mut [node.clone()])?;
        let mut all = machine.collect(&children)?;
        while let Some(child) = all.pop() {
            rest = cell(machine, child, rest)?;
        }
    }
    let rest = part(machine, "tree", &mut [arguments[0].clone(), arguments[1].clone(), rest]);
    cell(machine, node, rest)
}

fn flatten(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    if !super::predicates::sequential(&arguments[0]) {
        return Ok(Value::list([]));
    }
    let mut flat = Vec::new();
    let mut open = vec![machine.items(&arguments[0])?];
    while let Some(mut items) = open.pop() {
        let Some(item) = items.next(machine)? else { continue };
        open.push(items);
        if super::predicates::sequential(&item) {
            if open.len() > crate::language::budget::VALUE_DEPTH_MAX as usize {
                return Err(EvalError::too_deep());
            }
            open.push(machine.items(&item)?);
        } else {
            memory(machine, 1)?;
            flat.push(item);
        }
    }
    Ok(Value::list(flat))
}

fn range(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let zero = Value::from(0_i64);
    let (start, end, step) = match arguments {
        [] => (&zero, None, None),
        [end] => (&zero, Some(&*end), None),
        [start, end] => (&*start, Some(&*end), None),
        [start, end, step] => (&*start, Some(&*end), Some(&*step)),
        _ => return Ok(Value::Nil),
    };
    let one = Value::from(1_i64);
    let (start, step) = (number(start)?, number(step.unwrap_or(&one))?);
    let Some(end) = end else {
        return Ok(Value::Seq(Arc::new(Seq::Range { start: 0, end: i64::MAX, step: 1 })));
    };
    let end = number(end)?;
    let forward = !step.is_negative();
    let ends =
        |at: &Number| at.compare(end).is_none_or(|order| if forward { order.is_ge() } else { order.is_le() });
    if step.is_zero() {
        let forever = part(machine, "repeat", &mut [Value::Number(start.clone())]);
        return Ok(if ends(start) { Value::list([]) } else { forever });
    }
    if ends(start) {
        return Ok(Value::list([]));
    }
    if let (Number::Int(start), Number::Int(end), Number::Int(step)) = (start, end, step) {
        return Ok(Value::Seq(Arc::new(Seq::Range { start: *start, end: *end, step: *step })));
    }
    let endless = part(machine, "range", &mut [Value::Number(start.clone()), Value::Number(step.clone())]);
    let (mut items, mut all) = (machine.items(&endless)?, Vec::new());
    while let Some(item) = items.next(machine)? {
        if ends(number(&item)?) {
            break;
        }
        memory(machine, 1)?;
        all.push(item);
    }
    Ok(Value::list(all))
}

/// The map of a value that is destructured as one: a sequence of keys and values, perhaps with a map at its end, is one too.
fn map_of_pairs(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let value = std::mem::take(&mut arguments[0]);
    if !matches!(value, Value::List(_) | Value::Seq(_)) {
        return Ok(value);
    }
    let all = machine.collect(&value)?;
    if let [only] = &*all {
        return Ok(only.clone());
    }
    let (pairs, rest) = all.as_chunks::<2>();
    let mut map = Map::default();
    for [key, value] in pairs {
        map.insert(machine.realize(key)?, value.clone());
    }
    let map = Value::Map(Arc::new(map));
    match rest {
        [] => Ok(map),
        [more] => super::maps::conj_entry(machine, map, more),
        _ => first(machine, &Value::Nil),
    }
}
