//! Streams that change each value: `with`, `default`, `smap`, `adjust`, `tag`, …

use std::sync::Arc;

use arcstr::ArcStr;

use super::arguments::Args;
use super::function::Function;
use super::{fields, state};
use crate::collections::set::Set;
use crate::event::Field;
use crate::graph::{Graph, Node, Turn};
use crate::language::error::Outcome;
use crate::number::Number;
use crate::value::Value;

/// `with` and `default`: what fields get.
#[derive(Debug)]
struct Assign {
    fields: Box<[(Name, Value)]>,
    /// `default`: only those that are nil.
    only_nil: bool,
}

/// The name of a field.
#[derive(Clone, Debug)]
enum Name {
    Standard(Field),
    Custom(ArcStr),
}

impl Assign {
    fn change(&self, value: &mut Value) -> Outcome<()> {
        for (name, new) in &self.fields {
            let old = match name {
                Name::Standard(field) => fields::get(value, *field),
                Name::Custom(name) => fields::named(value, name),
            };
            if self.only_nil && (new.is_nil() || !old.is_nil()) {
                continue;
            }
            match (new, name) {
                (Value::Nil, Name::Standard(field)) => {
                    fields::remove_named(value, &ArcStr::from(field.name()))?
                }
                (Value::Nil, Name::Custom(name)) => fields::remove_named(value, name)?,
                (new, Name::Standard(field)) => fields::set(value, *field, new.clone())?,
                (new, Name::Custom(name)) => fields::set_named(value, name, new.clone())?,
            }
        }
        Ok(())
    }
}

impl Node for Assign {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        match value {
            Value::Vector(events) if !self.only_nil => {
                let mut changed: Vec<Value> = events.iter().cloned().collect();
                changed.iter_mut().try_for_each(|event| self.change(event))?;
                turn.emit(Value::vector(changed));
            }
            _ => {
                self.change(value)?;
                turn.emit(std::mem::take(value));
            }
        }
        Ok(true)
    }
}

fn assign(args: &mut Args<'_>, only_nil: bool) -> Outcome {
    let entries: Vec<(Value, Value)> = match args.take()? {
        Value::Map(map) => map.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
        key => vec![(key.clone(), args.take()?.clone())],
    };
    let mut assigned = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        let Value::Keyword(name) = key else { return Err(args.wrong("fields are keywords")) };
        let name = Field::of(&name).map_or(Name::Custom(name), Name::Standard);
        assigned.push((name, value));
    }
    Ok(args.add(Assign { fields: assigned.into(), only_nil }))
}

/// `(with k v c…)`, `(with {k v} c…)`
pub(super) fn with(args: &mut Args<'_>) -> Outcome {
    assign(args, false)
}

/// `(default k v c…)`, `(default {k v} c…)`
pub(super) fn default(args: &mut Args<'_>) -> Outcome {
    assign(args, true)
}

/// `smap`, `smap*`, `smapcat`: what happens with the value of the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Give {
    UnlessNil,
    Always,
    Each,
}

#[derive(Debug)]
struct Map {
    function: Function,
    give: Give,
}

impl Node for Map {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        let result = self.function.call(value, turn)?;
        match self.give {
            Give::UnlessNil if result.is_nil() => {}
            Give::UnlessNil | Give::Always => turn.emit(result),
            Give::Each => each(&result, turn)?,
        }
        Ok(true)
    }
}

/// Passes each element.
fn each(value: &Value, turn: &mut Turn<'_>) -> Outcome<()> {
    match value {
        Value::Vector(vector) => vector.iter().for_each(|item| turn.emit(item.clone())),
        other => {
            let items = fields::items(other).ok_or_else(|| fields::cannot("take the elements of", other))?;
            items.into_iter().for_each(|item| turn.emit(item));
        }
    }
    Ok(())
}

fn map(args: &mut Args<'_>, give: Give) -> Outcome {
    let function = args.function()?;
    Ok(args.add(Map { function, give }))
}

/// `(smap f c…)`
pub(super) fn smap(args: &mut Args<'_>) -> Outcome {
    map(args, Give::UnlessNil)
}

/// `(smap* f c…)`, `(combine f c…)`
pub(super) fn smap_all(args: &mut Args<'_>) -> Outcome {
    map(args, Give::Always)
}

/// `(smapcat f c…)`
pub(super) fn smapcat(args: &mut Args<'_>) -> Outcome {
    map(args, Give::Each)
}

/// `sflatten`
#[derive(Debug)]
struct Flatten;

impl Node for Flatten {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        each(value, turn)?;
        Ok(true)
    }
}

/// `(sflatten c…)`
pub(super) fn sflatten(args: &mut Args<'_>) -> Outcome {
    Ok(args.add(Flatten))
}

/// `sreduce`: the value so far.
#[derive(Debug)]
struct Reduce {
    function: Value,
    /// None before the first value, which is the seed then.
    so_far: Option<Value>,
}

impl Node for Reduce {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        let Some(so_far) = &self.so_far else {
            self.so_far = Some(std::mem::take(value));
            return Ok(true);
        };
        let next = turn.value_of(&self.function, &[so_far.clone(), value.clone()])?;
        self.so_far = Some(next.clone());
        turn.emit(next);
        Ok(true)
    }

    fn save(&self, _: &Graph) -> Value {
        state::saved([("so-far", Value::vector(self.so_far.iter().cloned()))])
    }

    fn restore(&mut self, saved: &Value, _: &mut Turn<'_>) {
        self.so_far = state::values(saved, "so-far").pop().or(self.so_far.take());
    }
}

/// `(sreduce f [init] c…)`: without an initial value the next argument is a child, which is a function.
pub(super) fn sreduce(args: &mut Args<'_>) -> Outcome {
    let function = args.take()?.clone();
    let is_child = args.peek().is_none_or(|next| {
        matches!(next, Value::Stream(_) | Value::Closure(_) | Value::Native(_) | Value::Bound(_))
    });
    let so_far = if is_child { None } else { Some(args.take()?.clone()) };
    Ok(args.add(Reduce { function, so_far }))
}

/// `adjust` of one field.
#[derive(Debug)]
struct Adjust {
    field: ArcStr,
    function: Value,
    /// The first one is the value of the field.
    arguments: Vec<Value>,
}

impl Node for Adjust {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        self.arguments[0] = fields::named(value, &self.field).clone();
        let new = turn.value_of(&self.function, &self.arguments)?;
        fields::set_named(value, &self.field, new)?;
        turn.emit(std::mem::take(value));
        Ok(true)
    }
}

/// `(adjust [field f & args] c…)`, `(adjust f c…)`
pub(super) fn adjust(args: &mut Args<'_>) -> Outcome {
    if !matches!(args.peek(), Some(Value::Vector(_))) {
        return smap(args);
    }
    let parts = fields::items(args.take()?).unwrap_or_default();
    let [Value::Keyword(field), function, more @ ..] = &parts[..] else {
        return Err(args.wrong("a vector of a field, a function and its further arguments is needed"));
    };
    let arguments = std::iter::once(Value::Nil).chain(more.iter().cloned()).collect();
    Ok(args.add(Adjust { field: field.clone(), function: function.clone(), arguments }))
}

/// `scale`
#[derive(Debug)]
struct Scale(Number);

impl Node for Scale {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        if let Some(metric) = fields::metric(value)? {
            let scaled = fields::multiply(metric, &self.0)?;
            fields::set(value, Field::Metric, Value::Number(scaled))?;
        }
        turn.emit(std::mem::take(value));
        Ok(true)
    }
}

/// `(scale k c…)`
pub(super) fn scale(args: &mut Args<'_>) -> Outcome {
    let factor = args.number()?;
    Ok(args.add(Scale(factor)))
}

/// `tag` and `untag`.
#[derive(Debug)]
struct Tag {
    tags: Vec<Value>,
    remove: bool,
}

impl Node for Tag {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        let old = fields::get(value, Field::Tags);
        let old = fields::items(old).ok_or_else(|| fields::cannot("take the tags of", old))?;
        let tags = if self.remove {
            old.into_iter().filter(|tag| !self.tags.contains(tag)).collect()
        } else {
            distinct(self.tags.iter().cloned().chain(old))
        };
        fields::set(value, Field::Tags, Value::Vector(Arc::new(tags.into_iter().collect())))?;
        turn.emit(std::mem::take(value));
        Ok(true)
    }
}

/// The values without repetitions, in their order.
fn distinct(values: impl Iterator<Item = Value>) -> Vec<Value> {
    /// Up to so many a search of each in all others is quicker than a set.
    const SEARCHED_MAX: usize = 16;
    let (mut distinct, mut set) = (Vec::new(), Set::default());
    for value in values {
        if distinct.len() == SEARCHED_MAX && set.is_empty() {
            set = distinct.iter().cloned().collect();
        }
        let is_new = match distinct.len() {
            0..SEARCHED_MAX => !distinct.contains(&value),
            _ => set.insert(value.clone()),
        };
        if is_new {
            distinct.push(value);
        }
    }
    distinct
}

fn tags(args: &mut Args<'_>, remove: bool) -> Outcome {
    let tags = match args.take()? {
        text @ Value::Text(_) => vec![text.clone()],
        list => fields::items(list).ok_or_else(|| args.wrong("a text or a list of texts is needed"))?,
    };
    Ok(args.add(Tag { tags, remove }))
}

/// `(tag t c…)`
pub(super) fn tag(args: &mut Args<'_>) -> Outcome {
    tags(args, false)
}

/// `(untag t c…)`
pub(super) fn untag(args: &mut Args<'_>) -> Outcome {
    tags(args, true)
}
