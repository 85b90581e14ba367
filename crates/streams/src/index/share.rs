//! Equal texts of events as one text: an event of a million should not have its own copy of `ok`, or of its tags.

use std::sync::Arc;

use arcstr::ArcStr;

use crate::collections::element::Element;
use crate::event::{Event, Field};
use crate::number::Number;
use crate::value::Value;

/// Events with more custom fields keep their own copies: finding the equal ones takes the square of their number.
const ATTRIBUTES_MAX: usize = 32;

/// States that are kept once. There are few words for states.
const STATES_MAX: usize = 16;

/// The first states that were seen.
#[derive(Debug, Default)]
pub(super) struct States {
    seen: Vec<ArcStr>,
}

impl States {
    /// The value with the text as it is kept.
    pub(super) fn kept(&mut self, state: &Value) -> Value {
        let Value::Text(text) = state else {
            return state.clone();
        };
        if let Some(seen) = self.seen.iter().find(|seen| *seen == text) {
            return Value::Text(seen.clone());
        }
        // A long one is no word that comes again.
        if self.seen.len() < STATES_MAX && text.len() <= 64 {
            self.seen.push(text.clone());
        }
        state.clone()
    }
}

/// Whether they are the same copy, or nothing that has copies.
fn is_shared(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => ArcStr::ptr_eq(a, b),
        (Value::Vector(a), Value::Vector(b)) => Arc::ptr_eq(a, b),
        (_, _) => true,
    }
}

/// Whether an event differs from its predecessor in numbers of a fixed size alone: it takes as much, and has the same texts.
pub(super) fn differs_in_numbers(event: &Event, predecessor: &Event) -> bool {
    let is_fixed = |number: &Number| matches!(number, Number::Int(_) | Number::Float(_) | Number::Double(_));
    let is_like = |field: Field| match (event.get(field), predecessor.get(field)) {
        (Value::Nil, Value::Nil) => true,
        (Value::Text(a), Value::Text(b)) => ArcStr::ptr_eq(a, b),
        (Value::Vector(a), Value::Vector(b)) => Arc::ptr_eq(a, b),
        (Value::Number(a), Value::Number(b)) => is_fixed(a) && is_fixed(b),
        (_, _) => false,
    };
    Field::ALL.into_iter().all(is_like)
        && event.attributes().is_empty()
        && predecessor.attributes().is_empty()
}

/// Sets a field to an equal value, without a copy of the event if it has that copy already.
pub(super) fn set_shared(event: &mut Arc<Event>, field: Field, kept: &Value) {
    if !is_shared(event.get(field), kept) {
        Arc::make_mut(event).set(field, kept.clone());
    }
}

/// Takes the texts of the predecessor where they are equal.
pub(super) fn share(event: &mut Arc<Event>, predecessor: &Event) {
    const FIELDS: [Field; 5] = [Field::Host, Field::Service, Field::State, Field::Description, Field::Tags];
    let has_copy = FIELDS.map(|field| {
        let (new, kept) = (event.get(field), predecessor.get(field));
        !is_shared(new, kept) && Value::equal(new, kept)
    });
    if has_copy.contains(&true) {
        let event = Arc::make_mut(event);
        for (field, _) in FIELDS.into_iter().zip(has_copy).filter(|(_, has_copy)| *has_copy) {
            event.set(field, predecessor.get(field).clone());
        }
    }
    let count = event.attributes().len();
    if count == predecessor.attributes().len() && (1..=ATTRIBUTES_MAX).contains(&count) {
        share_attributes(event, predecessor);
    }
}

fn share_attributes(event: &mut Arc<Event>, predecessor: &Event) {
    let pairs = || event.attributes().iter().zip(predecessor.attributes());
    let same_names = pairs().all(|((name, _), (kept, _))| name == kept);
    let has_copies = pairs().any(|((name, value), (kept_name, kept))| {
        !ArcStr::ptr_eq(name, kept_name) || !is_shared(value, kept) && Value::equal(value, kept)
    });
    if !same_names || !has_copies {
        return;
    }
    // An event's names cannot be changed, so that it is built again.
    let mut shared = Event::default();
    for field in Field::ALL {
        shared.set(field, event.get(field).clone());
    }
    for ((_, value), (name, kept)) in pairs() {
        let value = if Value::equal(value, kept) { kept } else { value };
        shared.add_attribute(name.clone(), value.clone());
    }
    *event = Arc::new(shared);
}
