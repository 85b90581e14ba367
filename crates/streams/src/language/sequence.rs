//! Sequences of all sorts: what `seq`, `first` and `rest` are for them, and going through their values.

use std::sync::Arc;

use super::budget::ITEMS_MAX;
use super::error::{EvalError, Outcome};
use super::machine::Machine;
use crate::collections::element::Element as _;
use crate::collections::list::List;
use crate::collections::map::Map;
use crate::collections::seq::{Lazy, Seq, State};
use crate::collections::set::Set;
use crate::collections::vector::Vector;
use crate::event::{Event, Field};
use crate::function::Native;
use crate::object::class;
use crate::object::exception::Exception;
use crate::value::Value;

/// The values of anything with `seq`, one after the other. Lazy ones are computed as they are reached.
#[derive(Clone, Debug)]
pub struct Items(Source);

#[derive(Clone, Debug)]
enum Source {
    Empty,
    Vector(Arc<Vector<Value>>, usize),
    List(List<Value>),
    /// Nil or anything else with `seq`.
    Seq(Value),
}

impl Items {
    /// The next value; uses a step.
    ///
    /// # Errors
    /// What a lazy sequence throws, and if no steps are left.
    pub fn next(&mut self, machine: &mut Machine<'_>) -> Outcome<Option<Value>> {
        machine.budget.step(1)?;
        match &mut self.0 {
            Source::Empty => Ok(None),
            Source::Vector(vector, index) => {
                let item = vector.get(*index).cloned();
                *index += 1;
                Ok(item)
            }
            Source::List(list) => {
                let first = list.first().cloned();
                *list = list.rest();
                Ok(first)
            }
            Source::Seq(seq) => {
                let Some((first, rest)) = machine.uncons(seq)? else { return Ok(None) };
                match machine.items(&rest) {
                    Ok(items) => *self = items,
                    Err(error) => return Err(error),
                }
                Ok(Some(first))
            }
        }
    }

    /// What is left, as a value with `seq`.
    pub fn rest(self) -> Value {
        match self.0 {
            Source::Empty => Value::Nil,
            Source::Vector(vector, from) if from < vector.len() => {
                Value::Seq(Arc::new(Seq::View { vector, from }))
            }
            Source::Vector(..) => Value::Nil,
            Source::List(list) => Value::List(Arc::new(list)),
            Source::Seq(seq) => seq,
        }
    }
}

/// The entries of an event that a sequence of it shows: the standard fields, absent ones too, then the others.
pub fn event_entries(event: &Event) -> impl Iterator<Item = (Value, Value)> {
    let standard = Field::ALL.iter().map(|field| (Value::keyword(field.name()), event.get(*field).clone()));
    standard
        .chain(event.attributes().iter().map(|(name, value)| (Value::Keyword(name.clone()), value.clone())))
}

/// An entry of a map as a value.
pub fn entry(key: Value, value: Value) -> Value {
    Value::vector([key, value])
}

impl Machine<'_> {
    /// The values of a value; none of nil.
    ///
    /// # Errors
    /// If it has no `seq`.
    pub fn items(&mut self, of: &Value) -> Outcome<Items> {
        Ok(Items(match of {
            Value::Nil => Source::Empty,
            Value::Vector(vector) => Source::Vector(Arc::clone(vector), 0),
            Value::List(list) => Source::List((**list).clone()),
            Value::Text(text) => {
                self.budget.step(text.len())?;
                Source::Vector(Arc::new(text.chars().map(Value::Char).collect()), 0)
            }
            Value::Seq(seq) => match &**seq {
                Seq::View { vector, from } => Source::Vector(Arc::clone(vector), *from),
                Seq::Cons { .. } | Seq::Lazy(_) | Seq::Range { .. } => Source::Seq(of.clone()),
            },
            Value::Map(map) => {
                self.budget.step(map.len())?;
                let entries = map.iter().map(|(key, value)| entry(key.clone(), value.clone()));
                Source::Vector(Arc::new(entries.collect()), 0)
            }
            Value::Set(set) => {
                self.budget.step(set.len())?;
                Source::Vector(Arc::new(set.iter().cloned().collect()), 0)
            }
            Value::Event(event) => {
                let entries = event_entries(event).map(|(key, value)| entry(key, value));
                Source::Vector(Arc::new(entries.collect()), 0)
            }
            Value::Stream(stream) if self.graph.surroundings.index_stream == Some(*stream) => {
                Source::Vector(Arc::new(self.indexed()?), 0)
            }
            other => return Err(no_seq(other)),
        }))
    }

    /// The events of the index, which is a stream and a sequence (spec riemann §4.1).
    fn indexed(&mut self) -> Outcome<Vector<Value>> {
        let Some(index) = &self.graph.surroundings.index else { return Ok(Vector::default()) };
        if index.len() > ITEMS_MAX {
            return Err(EvalError::too_much_memory());
        }
        self.graph.evaluation.budget.step(index.len())?;
        self.graph.evaluation.budget.memory(index.len().saturating_mul(size_of::<Value>()))?;
        Ok(index.events().map(|event| Value::Event(Arc::clone(event))).collect())
    }

    /// The first value and what comes after it; `None` of an empty one.
    ///
    /// # Errors
    /// If it has no `seq`, and what a lazy sequence throws.
    pub fn uncons(&mut self, of: &Value) -> Outcome<Option<(Value, Value)>> {
        match of {
            Value::Nil => Ok(None),
            Value::List(list) => {
                let rest = || Value::List(Arc::new(list.rest()));
                Ok(list.first().map(|first| (first.clone(), rest())))
            }
            Value::Seq(seq) => match &**seq {
                Seq::Cons { first, rest, .. } => Ok(Some((first.clone(), rest.clone()))),
                Seq::Lazy(lazy) => {
                    let value = self.force(lazy)?;
                    self.uncons(&value)
                }
                Seq::View { vector, from } => Ok(view(vector, *from)),
                Seq::Range { start, end, step } => {
                    let next = start
                        .checked_add(*step)
                        .filter(|next| if *step > 0 { next < end } else { next > end });
                    let rest = next.map(|next| Seq::Range { start: next, end: *end, step: *step });
                    Ok(Some((
                        Value::from(*start),
                        rest.map_or(Value::Nil, |rest| Value::Seq(Arc::new(rest))),
                    )))
                }
            },
            Value::Vector(vector) => Ok(view(vector, 0)),
            other => {
                let mut items = self.items(other)?;
                Ok(items.next(self)?.map(|first| (first, items.rest())))
            }
        }
    }

    /// `seq`: nil of an empty one.
    ///
    /// # Errors
    /// If it has none, and what a lazy sequence throws.
    pub fn seq(&mut self, of: &Value) -> Outcome {
        match of {
            Value::Nil => Ok(Value::Nil),
            Value::List(list) => Ok(if list.is_empty() { Value::Nil } else { of.clone() }),
            Value::Vector(vector) => Ok(view_of(vector, 0)),
            Value::Seq(seq) => match &**seq {
                Seq::Lazy(lazy) => {
                    let value = self.force(lazy)?;
                    self.seq(&value)
                }
                Seq::Cons { .. } | Seq::View { .. } | Seq::Range { .. } => Ok(of.clone()),
            },
            other => {
                let items = self.items(other)?;
                Ok(items.rest())
            }
        }
    }

    /// All values, computed.
    ///
    /// # Errors
    /// If it has no `seq`, what a lazy sequence throws, and if they are too many.
    pub fn collect(&mut self, of: &Value) -> Outcome<Vec<Value>> {
        let mut items = self.items(of)?;
        let mut all = Vec::new();
        while let Some(item) = items.next(self)? {
            if all.len() == ITEMS_MAX {
                return Err(EvalError::too_much_memory());
            }
            self.budget.memory(size_of::<Value>())?;
            all.push(item);
        }
        Ok(all)
    }

    /// A sequence that a native computes when it is looked at.
    pub fn lazy(&self, native: &'static Native, arguments: impl IntoIterator<Item = Value>) -> Value {
        Value::Seq(Arc::new(Seq::Lazy(Lazy::new(Value::Native(native), arguments.into_iter().collect()))))
    }

    /// The value of a computation, which runs at most once.
    ///
    /// # Errors
    /// What it throws; then the next look at it tries again. If it needs itself.
    pub fn force(&mut self, lazy: &Lazy<Value>) -> Outcome {
        match lazy.begin() {
            State::Ready(value) => Ok(value),
            State::Running => {
                Err(EvalError::throw(&class::ILLEGAL_STATE, "a lazy sequence needs its own value"))
            }
            State::Waiting { function, arguments } => {
                let mut given: Vec<Value> = arguments.to_vec();
                let result = self.budget.memory(size_of::<Lazy<Value>>());
                let result = result.and_then(|()| self.call(&function, &mut given));
                // Sequences that give lazy sequences are gone through one after the other.
                let result = result.and_then(|value| self.settle(value));
                lazy.set(match &result {
                    Ok(value) => State::Ready(value.clone()),
                    Err(_) => State::Waiting { function, arguments },
                });
                result
            }
        }
    }

    /// Goes through lazy sequences that give lazy sequences, to the first one that is not.
    fn settle(&mut self, mut value: Value) -> Outcome {
        loop {
            let inner = match &value {
                Value::Seq(seq) => match &**seq {
                    Seq::Lazy(lazy) => match lazy.begin() {
                        State::Ready(inner) => inner,
                        State::Running => {
                            return Err(EvalError::throw(
                                &class::ILLEGAL_STATE,
                                "a lazy sequence needs its own value",
                            ));
                        }
                        State::Waiting { function, arguments } => {
                            let mut given: Vec<Value> = arguments.to_vec();
                            match self.call(&function, &mut given) {
                                Ok(inner) => {
                                    lazy.set(State::Ready(inner.clone()));
                                    inner
                                }
                                Err(error) => {
                                    lazy.set(State::Waiting { function, arguments });
                                    return Err(error);
                                }
                            }
                        }
                    },
                    Seq::Cons { .. } | Seq::View { .. } | Seq::Range { .. } => return Ok(value),
                },
                _ => return Ok(value),
            };
            self.budget.step(1)?;
            value = inner;
        }
    }

    /// The same value with all sequences inside computed and turned to lists, so that it can be compared and printed.
    ///
    /// # Errors
    /// What a lazy sequence throws, and if the budget ends, as it does for sequences without an end.
    pub fn realize(&mut self, value: &Value) -> Outcome {
        if !value.shape().lazy {
            return Ok(value.clone());
        }
        self.budget.enter()?;
        let result = self.realize_inside(value);
        self.budget.leave();
        result
    }

    fn realize_all<'v>(&mut self, values: impl Iterator<Item = &'v Value>) -> Outcome<Vec<Value>> {
        values.map(|value| self.realize(value)).collect()
    }

    fn realize_inside(&mut self, value: &Value) -> Outcome {
        let result = match value {
            Value::Seq(_) => {
                let all = self.collect(value)?;
                Value::list(self.realize_all(all.iter())?)
            }
            Value::List(list) => Value::list(self.realize_all(list.iter())?),
            Value::Vector(vector) => Value::vector(self.realize_all(vector.iter())?),
            Value::Set(set) => {
                Value::Set(Arc::new(self.realize_all(set.iter())?.into_iter().collect::<Set<Value>>()))
            }
            Value::Map(map) => {
                let mut made = Map::default();
                for (key, value) in map.iter() {
                    made.insert(self.realize(key)?, self.realize(value)?);
                }
                Value::Map(Arc::new(made))
            }
            Value::Event(event) => {
                let mut made = Event::default();
                for field in Field::ALL {
                    made.set(field, self.realize(event.get(field))?);
                }
                for (name, value) in event.attributes() {
                    made.set_attribute(name.clone(), self.realize(value)?);
                }
                Value::Event(Arc::new(made))
            }
            other => other.clone(),
        };
        if result.shape().depth > super::budget::VALUE_DEPTH_MAX {
            return Err(EvalError::too_deep());
        }
        Ok(result)
    }
}

fn view(vector: &Arc<Vector<Value>>, from: usize) -> Option<(Value, Value)> {
    vector.get(from).map(|first| (first.clone(), view_of(vector, from + 1)))
}

fn view_of(vector: &Arc<Vector<Value>>, from: usize) -> Value {
    if from >= vector.len() {
        return Value::Nil;
    }
    Value::Seq(Arc::new(Seq::View { vector: Arc::clone(vector), from }))
}

/// The error for a value without `seq`.
fn no_seq(value: &Value) -> EvalError {
    let name = super::classes::class_of(value).name;
    EvalError::exception(Exception::new(
        &class::ILLEGAL_ARGUMENT,
        format!("Don't know how to create ISeq from: {name}"),
    ))
}
