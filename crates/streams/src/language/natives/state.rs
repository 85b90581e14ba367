//! Cells whose value changes, values that are computed later, and time.
//!
//! One thread runs a config at a time, so that refs, agents and futures are atoms by other names: `dosync` needs no
//! transactions, `send` and `future` run at once.

use std::sync::Arc;

use crate::collections::element::Element as _;
use crate::collections::seq::Lazy;
use crate::language::budget::VALUE_DEPTH_MAX;
use crate::language::classes::cannot_cast;
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::{ANY, Machine};
use crate::natives;
use crate::object::class;
use crate::object::reference::{Atom, Sort};
use crate::value::Value;

natives! {
    /// References and what is computed later.
    pub NATIVES = {
        "atom", 1, ANY, "A cell with a value.", |_, a| Ok(cell(Sort::Atom, &a[0]));
        "ref", 1, ANY, "A cell with a value, for `dosync`.", |_, a| Ok(cell(Sort::Ref, &a[0]));
        "volatile!", 1, 1, "A cell with a value.", |_, a| Ok(cell(Sort::Volatile, &a[0]));
        "agent", 1, ANY, "A cell with a value, for `send`.", |_, a| Ok(cell(Sort::Agent, &a[0]));
        "promise", 0, 0, "A cell that gets its value once.", |_, _| Ok(cell(Sort::Promise, &Value::Nil));
        "deref", 1, 3, "The value of a cell, a delay or a var; `@x`.", deref;
        "reset!", 2, 2, "Gives a cell a value.", |m, a| set(m, &a[0], a[1].clone());
        "ref-set", 2, 2, "Gives a ref a value.", |m, a| set(m, &a[0], a[1].clone());
        "vreset!", 2, 2, "Gives a volatile cell a value.", |m, a| set(m, &a[0], a[1].clone());
        "reset-vals!", 2, 2, "Gives a cell a value; a vector of the old and the new one.", |m, a| {
            let old = value(&a[0])?;
            let new = set(m, &a[0], a[1].clone())?;
            Ok(Value::vector([old, new]))
        };
        "swap!", 2, ANY, "Gives a cell what a function makes of its value.", |m, a| swap(m, a).map(|(_, new)| new);
        "alter", 2, ANY, "Gives a ref what a function makes of its value.", |m, a| swap(m, a).map(|(_, new)| new);
        "commute", 2, ANY, "Gives a ref what a function makes of its value.", |m, a| swap(m, a).map(|(_, new)| new);
        "vswap!", 2, ANY, "Gives a volatile cell what a function makes of its value.", |m, a| swap(m, a).map(|(_, new)| new);
        "swap-vals!", 2, ANY, "Gives a cell what a function makes of its value; a vector of the old and the new one.", |m, a| swap(m, a).map(|(old, new)| Value::vector([old, new]));
        "send", 2, ANY, "Gives an agent what a function makes of its value, at once; the agent.", |m, a| { let agent = a[0].clone(); swap(m, a)?; Ok(agent) };
        "send-off", 2, ANY, "Gives an agent what a function makes of its value, at once; the agent.", |m, a| { let agent = a[0].clone(); swap(m, a)?; Ok(agent) };
        "await", 0, ANY, "Nil: `send` has been done.", |_, _| Ok(Value::Nil);
        "ensure", 1, 1, "The value of a ref.", |_, a| value(&a[0]);
        "compare-and-set!", 3, 3, "Gives a cell a value if it has the expected one; whether it had.", |m, a| {
            let old = value(&a[0])?;
            let same = m.realize(&old)? == m.realize(&a[1])?;
            if same { set(m, &a[0], a[2].clone())?; }
            Ok(same.into())
        };
        "deliver", 2, 2, "Gives a promise its value, once.", |m, a| match &a[0] {
            Value::Atom(atom) if atom.is_delivered() => Ok(Value::Nil),
            promise => { set(m, promise, a[1].clone())?; Ok(promise.clone()) }
        };
        "force", 1, 1, "The value of a delay; any other value itself.", |m, a| match &a[0] {
            Value::Delay(delay) => { let delay = Arc::clone(delay); m.force(&delay) }
            other => Ok(other.clone()),
        };
        "delay*", 1, 1, "The value of a function, computed when it is needed.", |_, a| Ok(Value::Delay(Arc::new(Lazy::new(std::mem::take(&mut a[0]), Arc::new([])))));
        "delay?", 1, 1, "Whether a value is a delay.", |_, a| Ok(matches!(a[0], Value::Delay(_)).into());
        "realized?", 1, 1, "Whether a value that comes later is there.", |_, a| match &a[0] {
            Value::Delay(delay) => Ok(delay.known().is_some().into()),
            Value::Atom(atom) => Ok(atom.is_delivered().into()),
            Value::Seq(seq) => Ok(match &**seq { crate::collections::seq::Seq::Lazy(lazy) => lazy.known().is_some(), _ => true }.into()),
            other => Err(cannot_cast(other, &class::DELAY)),
        };
        "future-call", 1, 1, "The value of a function, which runs at once.", |m, a| { let value = m.call(&a[0].clone(), &mut [])?; Ok(cell(Sort::Agent, &value)) };
        "future-cancel", 1, 1, "False: a future has run.", |_, _| Ok(false.into());
        "future-done?", 1, 1, "True: a future has run.", |_, _| Ok(true.into());
        "future?", 1, 1, "Whether a value is a future.", |_, a| Ok(matches!(&a[0], Value::Atom(atom) if atom.sort == Sort::Agent).into());
        "alter-var-root", 2, ANY, "Gives a var what a function makes of its value.", |m, a| {
            let Value::Var(var) = a[0].clone() else { return Err(cannot_cast(&a[0], &class::VAR)) };
            let mut given: Vec<Value> = std::iter::once(var.get().unwrap_or_default()).chain(a[2..].iter().cloned()).collect();
            let value = m.call(&a[1], &mut given)?;
            var.set(value.clone());
            Ok(value)
        };
        "var-get", 1, 1, "The value of a var.", |m, a| match a[0].clone() { Value::Var(var) => m.global(&var), other => Err(cannot_cast(&other, &class::VAR)) };
        "var-set", 2, 2, "Gives a var a value where `binding` bound it.", |m, a| match &a[0] {
            Value::Var(var) => m.set_binding(var, a[1].clone()),
            other => Err(cannot_cast(other, &class::VAR)),
        };
        "bound?", 0, ANY, "Whether all vars have values.", |_, a| Ok(a.iter().all(|value| !matches!(value, Value::Var(var) if var.get().is_none())).into());
        "add-watch", 3, 3, "Refused: nothing watches a cell here.", |_, _| Err(EvalError::throw(&class::UNSUPPORTED, "add-watch is not supported"));
        "remove-watch", 2, 2, "The cell: nothing watches it.", |_, a| Ok(a[0].clone());
        "set-validator!", 2, 2, "Refused: nothing validates a cell here.", |_, _| Err(EvalError::throw(&class::UNSUPPORTED, "set-validator! is not supported"));
        "meta", 1, 1, "Nil: values have no metadata here.", |_, _| Ok(Value::Nil);
        "with-meta", 2, 2, "The value itself: values have no metadata here.", |_, a| Ok(a[0].clone());
        "vary-meta", 2, ANY, "The value itself: values have no metadata here.", |_, a| Ok(a[0].clone());
        " with-bindings", 2, 2, "", |m, a| {
            let mut bound = Vec::new();
            for (var, value) in super::maps::entries(m, &a[0])? {
                match var { Value::Var(var) => bound.push((var, value)), other => return Err(cannot_cast(&other, &class::VAR)) }
            }
            m.with_bindings(bound, &a[1])
        };
    }
}

fn cell(sort: Sort, value: &Value) -> Value {
    Value::Atom(Arc::new(Atom::new(sort, value.clone())))
}

fn atom(value: &Value) -> Outcome<&Arc<Atom<Value>>> {
    match value {
        Value::Atom(atom) => Ok(atom),
        other => Err(cannot_cast(other, &class::ATOM)),
    }
}

fn value(of: &Value) -> Outcome {
    atom(of).map(|atom| atom.get())
}

fn deref(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    match &arguments[0] {
        Value::Atom(atom) if atom.is_delivered() => Ok(atom.get()),
        Value::Atom(_) => match arguments.get(2) {
            Some(default) => Ok(default.clone()),
            None => Err(EvalError::throw(
                &class::ILLEGAL_STATE,
                "this promise has no value, and nothing runs that could give it one",
            )),
        },
        Value::Delay(delay) => {
            let delay = Arc::clone(delay);
            machine.force(&delay)
        }
        Value::Var(var) => machine.global(&Arc::clone(var)),
        other => Err(cannot_cast(other, &class::ATOM)),
    }
}

fn set(_: &mut Machine<'_>, of: &Value, value: Value) -> Outcome {
    if value.shape().depth >= VALUE_DEPTH_MAX {
        return Err(EvalError::too_deep());
    }
    drop(atom(of)?.replace(value.clone()));
    Ok(value)
}

/// Gives a cell what a function makes of its value: the old and the new one.
fn swap(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome<(Value, Value)> {
    let [of, function, more @ ..] = arguments else { return Ok((Value::Nil, Value::Nil)) };
    let old = value(of)?;
    let mut given: Vec<Value> =
        std::iter::once(old.clone()).chain(more.iter_mut().map(std::mem::take)).collect();
    let new = machine.call(function, &mut given)?;
    set(machine, of, new.clone())?;
    Ok((old, new))
}
