//! Calling values: functions of the config, natives, and the collections and keywords that are functions too.

use std::sync::Arc;

use super::budget::VALUE_DEPTH_MAX;
use super::classes::cannot_cast;
use super::error::{EvalError, Outcome};
use super::expr::Group;
use super::machine::{Machine, code};
use crate::collections::element::Element as _;
use crate::function::{Closure, Native};
use crate::graph::Graph;
use crate::number::Number;
use crate::object::class;
use crate::value::Value;

impl Machine<'_> {
    /// Calls a value with arguments, which it may take out of their places.
    ///
    /// # Errors
    /// What it throws, if it is no function, if it takes another number of arguments, and if the budget ends.
    pub fn call(&mut self, function: &Value, arguments: &mut [Value]) -> Outcome {
        match function {
            Value::Closure(closure) => {
                self.stack.extend(arguments.iter_mut().map(std::mem::take));
                self.call_closure(closure, arguments.len())
            }
            Value::Native(native) => self.call_native(native, arguments),
            Value::Bound(bound) => {
                let mut all: Vec<Value> = Vec::with_capacity(bound.arguments.len() + arguments.len());
                all.extend(bound.arguments.iter().cloned());
                all.extend(arguments.iter_mut().map(std::mem::take));
                self.call_native(bound.native, &mut all)
            }
            Value::Keyword(_) | Value::Symbol(_) => {
                let [of, default @ ..] = arguments else { return Err(arity(0, function)) };
                if default.len() > 1 {
                    return Err(arity(arguments.len(), function));
                }
                let found = self.lookup(of, function);
                Ok(found.unwrap_or_else(|| default.first().cloned().unwrap_or_default()))
            }
            Value::Map(_) | Value::Set(_) | Value::Event(_) => {
                let [key, default @ ..] = arguments else { return Err(arity(0, function)) };
                if default.len() > 1 {
                    return Err(arity(arguments.len(), function));
                }
                let key = self.realize(key)?;
                let found = self.lookup(function, &key);
                Ok(found.unwrap_or_else(|| default.first().cloned().unwrap_or_default()))
            }
            Value::Vector(vector) => {
                let [index] = arguments else { return Err(arity(arguments.len(), function)) };
                let Value::Number(Number::Int(index)) = index else {
                    return Err(EvalError::illegal_argument("Key must be integer"));
                };
                let found = usize::try_from(*index).ok().and_then(|index| vector.get(index));
                found.cloned().ok_or_else(|| EvalError::new_index(*index))
            }
            Value::Var(var) => {
                let value = self.global(var)?;
                if matches!(value, Value::Var(_)) {
                    return Err(cannot_cast(&value, &class::FUNCTION));
                }
                self.call(&value, arguments)
            }
            Value::Stream(stream) => {
                let [value] = arguments else { return Err(arity(arguments.len(), function)) };
                if value.shape().lazy {
                    *value = self.realize(value)?;
                }
                self.budget.enter()?;
                let result = self.graph.push_owned(*stream, value);
                self.budget.leave();
                result.map(Value::Bool)
            }
            other => Err(cannot_cast(other, &class::FUNCTION)),
        }
    }

    /// Calls a function of `clojure.core`.
    ///
    /// # Errors
    /// What it throws, and if there is no such function.
    pub fn call_core(&mut self, name: &str, arguments: &mut [Value]) -> Outcome {
        let entry = self.world.namespaces().find("clojure.core", name).map(|named| named.entry.clone());
        match entry {
            Some(super::namespace::Entry::Native(native)) => self.call_native(native, arguments),
            _ => Err(EvalError::throw(&class::UNSUPPORTED, format!("clojure.core has no function {name}"))),
        }
    }

    /// Calls a function of the config, whose arguments are the last values of the stack.
    pub(super) fn call_closure(&mut self, closure: &Arc<Closure<Value>>, given: usize) -> Outcome {
        let group = closure.code.as_any().downcast_ref::<Group>();
        let function = group.and_then(|group| group.functions.get(closure.index as usize));
        let function =
            function.expect("closures are made of groups by `eval`, with indexes of their functions");
        self.call_function(closure, function, given)
    }

    fn call_native(&mut self, native: &'static Native, arguments: &mut [Value]) -> Outcome {
        if !native.arity.takes(arguments.len()) {
            let message = format!("Wrong number of args ({}) passed to: {}", arguments.len(), native.name);
            return Err(EvalError::throw(&class::ARITY, message));
        }
        let run = code(native).ok_or_else(|| {
            EvalError::throw(
                &class::RUNTIME_EXCEPTION,
                format!("Can't take value of a macro: {}", native.name),
            )
        })?;
        self.budget.step(1)?;
        self.budget.enter()?;
        let result = run(self, arguments);
        self.budget.leave();
        self.charge_effort()?;
        let value = result?;
        if value.shape().depth > VALUE_DEPTH_MAX {
            return Err(EvalError::too_deep());
        }
        Ok(value)
    }

    /// The value of a key in a map, an event, a set, a vector or a text; `None` where there is none.
    pub fn lookup(&self, of: &Value, key: &Value) -> Option<Value> {
        match of {
            Value::Event(event) => match key {
                Value::Keyword(name) => match crate::event::Field::of(name) {
                    Some(field) => Some(event.get(field).clone()),
                    None => event.attribute(name).cloned(),
                },
                _ => None,
            },
            Value::Map(map) => map.get(key).cloned(),
            Value::Set(set) => set.get(key).cloned(),
            Value::Vector(vector) => match key {
                Value::Number(Number::Int(index)) => vector.get(usize::try_from(*index).ok()?).cloned(),
                _ => None,
            },
            Value::Text(text) => match key {
                Value::Number(Number::Int(index)) => {
                    let index = usize::try_from(*index).ok()?;
                    crate::effort::spend(index.min(text.len()) / 8);
                    text.chars().nth(index).map(Value::Char)
                }
                _ => None,
            },
            _ => None,
        }
    }
}

impl Graph {
    /// Calls a function of the config, or any other value that can be called, within the budget of what runs.
    ///
    /// # Errors
    /// What it throws, and the limits of the budget.
    pub fn call(&mut self, function: &Value, arguments: &[Value]) -> Outcome {
        let mut machine = Machine::within(self);
        match function {
            Value::Closure(closure) => {
                machine.stack.extend_from_slice(arguments);
                machine.call_closure(closure, arguments.len())
            }
            other => machine.call(other, &mut arguments.to_vec()),
        }
    }

    /// What [`Graph::call`] gives, with all sequences inside computed: streams compare values and take them apart.
    ///
    /// # Errors
    /// As those of a call, also for a sequence without an end.
    pub fn value_of(&mut self, function: &Value, arguments: &[Value]) -> Outcome {
        let value = self.call(function, arguments)?;
        match value.shape().lazy {
            false => Ok(value),
            true => Machine::within(self).realize(&value),
        }
    }
}

impl EvalError {
    /// An index that a collection does not have.
    pub fn new_index(index: i64) -> EvalError {
        EvalError::throw(&class::INDEX_OUT_OF_BOUNDS, format!("index {index}"))
    }
}

fn arity(given: usize, function: &Value) -> EvalError {
    let name = crate::print::excerpt(function);
    let name: String = name.chars().take(60).collect();
    EvalError::throw(&class::ARITY, format!("Wrong number of args ({given}) passed to: {name}"))
}
