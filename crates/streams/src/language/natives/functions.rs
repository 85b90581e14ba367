//! Functions that make functions.

use std::sync::Arc;

use crate::function::{Arity, Bound, Native};
use crate::language::classes::cannot_cast;
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::{ANY, Machine, Run};
use crate::natives;
use crate::object::class;
use crate::object::reference::{Atom, Sort};
use crate::value::Value;

natives! {
    /// Functions of functions.
    pub NATIVES = {
        "partial", 1, ANY, "A function with its first arguments given.", |_, a| Ok(bound(&PARTIAL, a));
        "comp", 0, ANY, "A function that calls functions, the last one first.", |_, a| Ok(bound(&COMPOSED, a));
        "juxt", 1, ANY, "A function that gives a vector of what functions give.", |_, a| Ok(bound(&JUXTAPOSED, a));
        "complement", 1, 1, "A function that is true where another one is not.", |_, a| Ok(bound(&COMPLEMENT, a));
        "constantly", 1, 1, "A function that always gives a value.", |_, a| Ok(bound(&CONSTANT, a));
        "fnil", 2, 4, "A function that replaces nil among its first arguments.", |_, a| Ok(bound(&FNIL, a));
        "every-pred", 1, ANY, "A function that is true if all functions are true of all its arguments.", |_, a| Ok(bound(&EVERY, a));
        "some-fn", 1, ANY, "A function that gives the first true result of functions of its arguments.", |_, a| Ok(bound(&SOME, a));
        "memoize", 1, 1, "A function that remembers results, up to a bound.", |_, a| {
            let cache = Value::Atom(Arc::new(Atom::new(Sort::Atom, Value::map([]))));
            Ok(bound(&MEMOIZED, &mut [std::mem::take(&mut a[0]), cache]))
        };
        " multimethod", 2, 2, "", |_, a| {
            let methods = Value::Atom(Arc::new(Atom::new(Sort::Atom, Value::map([]))));
            Ok(bound(&MULTIMETHOD, &mut [std::mem::take(&mut a[0]), std::mem::take(&mut a[1]), methods]))
        };
        " add-method", 3, 3, "", |m, a| {
            let Value::Bound(held) = &a[0] else { return Err(cannot_cast(&a[0], &class::FUNCTION)) };
            let Some(Value::Atom(methods)) = held.arguments.get(2) else { return Err(cannot_cast(&a[0], &class::FUNCTION)) };
            let key = m.realize(&a[1])?;
            let Value::Map(mut map) = methods.get() else { return Ok(Value::Nil) };
            Arc::make_mut(&mut map).insert(key, a[2].clone());
            methods.replace(Value::Map(map));
            Ok(a[0].clone())
        };
        "trampoline", 1, ANY, "Calls a function, and the functions that it gives, until there is another value.", |m, a| {
            let (function, given) = a.split_first_mut().expect("the table asks for one argument at least");
            let mut value = m.call(function, given)?;
            while matches!(value, Value::Closure(_) | Value::Native(_) | Value::Bound(_)) { value = m.call(&value, &mut [])?; }
            Ok(value)
        };
    }
}

/// Most results that a memoized function remembers.
const REMEMBERED_MAX: usize = 1_000;

const fn any(name: &'static str, code: &'static Run) -> Native {
    Native { name, arity: Arity { min: 0, max: None }, doc: "", code }
}

static PARTIAL: Native = any("partial", &Run(partial));
static COMPOSED: Native = any("comp", &Run(composed));
static JUXTAPOSED: Native = any("juxt", &Run(juxtaposed));
static COMPLEMENT: Native = any("complement", &Run(complement));
static CONSTANT: Native = any("constantly", &Run(|_, a| Ok(a[0].clone())));
static FNIL: Native = any("fnil", &Run(fnil));
static EVERY: Native = any("every-pred", &Run(every));
static SOME: Native = any("some-fn", &Run(some));
static MULTIMETHOD: Native = any("multimethod", &Run(multimethod));
static MEMOIZED: Native = any("memoize", &Run(memoized));

fn bound(native: &'static Native, arguments: &mut [Value]) -> Value {
    // What it was made with comes first in a call, with its number before it.
    let held = std::iter::once(Value::from(arguments.len())).chain(arguments.iter_mut().map(std::mem::take));
    let held: Arc<[Value]> = if takes_number(native) { held.collect() } else { held.skip(1).collect() };
    Value::Bound(Arc::new(Bound::new(native, held)))
}

/// Whether a native has to know where what it was made with ends.
fn takes_number(native: &Native) -> bool {
    [&COMPOSED, &JUXTAPOSED, &FNIL, &EVERY, &SOME].iter().any(|other| std::ptr::eq(*other, native))
}

/// What a function was made with, and the arguments of the call.
fn split(arguments: &mut [Value]) -> (&mut [Value], &mut [Value]) {
    let (number, rest) = arguments.split_at_mut(1);
    let held = number.first().and_then(Value::as_number).map_or(0.0, crate::number::Number::as_f64) as usize;
    rest.split_at_mut(held.min(rest.len()))
}

fn partial(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let (function, given) = arguments.split_first_mut().expect("`partial` holds a function");
    machine.call(function, given)
}

fn composed(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let (functions, given) = split(arguments);
    let Some((last, before)) = functions.split_last() else {
        return Ok(given.first().cloned().unwrap_or_default());
    };
    let value = machine.call(last, given)?;
    before.iter().rev().try_fold(value, |value, function| machine.call(function, &mut [value]))
}

fn juxtaposed(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let (functions, given) = split(arguments);
    let mut all = Vec::with_capacity(functions.len());
    for function in functions.iter() {
        all.push(machine.call(function, &mut given.to_vec())?);
    }
    Ok(Value::vector(all))
}

fn complement(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let result = partial(machine, arguments)?;
    Ok((!result.is_true()).into())
}

fn fnil(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let (held, given) = split(arguments);
    let (function, defaults) = held.split_first().expect("`fnil` holds a function");
    for (argument, default) in given.iter_mut().zip(defaults).filter(|(argument, _)| argument.is_nil()) {
        *argument = default.clone();
    }
    machine.call(function, given)
}

fn every(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let (functions, given) = split(arguments);
    for value in given.iter() {
        for function in functions.iter() {
            if !machine.call(function, &mut [value.clone()])?.is_true() {
                return Ok(false.into());
            }
        }
    }
    Ok(true.into())
}

fn some(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let (functions, given) = split(arguments);
    for value in given.iter() {
        for function in functions.iter() {
            let result = machine.call(function, &mut [value.clone()])?;
            if result.is_true() {
                return Ok(result);
            }
        }
    }
    Ok(Value::Nil)
}

fn memoized(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let [function, Value::Atom(cache), given @ ..] = arguments else { return Ok(Value::Nil) };
    let key = machine.realize(&Value::list(given.to_vec()))?;
    let known = cache.get();
    if let Some(found) = machine.lookup(&known, &key) {
        return Ok(found);
    }
    let value = machine.call(function, given)?;
    let Value::Map(mut map) = cache.get() else { return Ok(value) };
    // Forgetting all is enough: a function with so many different arguments gains little from a memory.
    if map.len() >= REMEMBERED_MAX {
        map = Arc::default();
    }
    Arc::make_mut(&mut map).insert(key, value.clone());
    cache.replace(Value::Map(map));
    Ok(value)
}

/// The dispatching function, its name, the methods, and the arguments of a call.
fn multimethod(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let [dispatch, name, Value::Atom(methods), given @ ..] = arguments else { return Ok(Value::Nil) };
    let key = machine.call(dispatch, &mut given.to_vec())?;
    let key = machine.realize(&key)?;
    let methods = methods.get();
    let method =
        machine.lookup(&methods, &key).or_else(|| machine.lookup(&methods, &Value::keyword("default")));
    let missing = || {
        let (name, key) = (crate::print::to_str(name), crate::print::to_text(&key, true));
        EvalError::illegal_argument(format!("No method in multimethod '{name}' for dispatch value: {key}"))
    };
    let method = method.ok_or_else(missing)?;
    machine.call(&method, given)
}
