//! Lists: what code is made of, and what `list` and `rest` give.

use super::element::{Element, Shape};
use crate::position::Position;

/// A persistent list.
#[derive(Clone, Debug)]
pub struct List<V> {
    items: rpds::ListSync<V>,
    shape: Shape,
    /// Where it was read; unknown for one that was made.
    pub at: Position,
}

impl<V: Element> List<V> {
    /// A list of these values, read at a place.
    pub fn at(at: Position, items: impl DoubleEndedIterator<Item = V>) -> Self {
        let mut list = List { at, ..List::default() };
        items.rev().for_each(|item| list.push_front(item));
        list
    }

    /// Its shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Puts a value before the others.
    pub fn push_front(&mut self, value: V) {
        self.shape.hold(value.shape());
        self.items.push_front_mut(value);
    }

    /// The first value.
    pub fn first(&self) -> Option<&V> {
        self.items.first()
    }

    /// All but the first value; the empty list of an empty one.
    pub fn rest(&self) -> Self {
        let mut items = self.items.clone();
        items.drop_first_mut();
        List { items, shape: self.shape, at: Position::default() }
    }

    /// How many values it has.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Its values.
    pub fn iter(&self) -> impl Iterator<Item = &V> {
        self.items.iter()
    }
}

impl<V> Default for List<V> {
    fn default() -> Self {
        List { items: rpds::ListSync::new_sync(), shape: Shape::EMPTY, at: Position::default() }
    }
}

impl<V: Element> FromIterator<V> for List<V> {
    fn from_iter<I: IntoIterator<Item = V>>(items: I) -> Self {
        List::at(Position::default(), items.into_iter().collect::<Vec<V>>().into_iter())
    }
}
