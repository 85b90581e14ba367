//! Vectors.

use std::ops::Deref;

use super::element::{Element, Shape};

/// A persistent vector; reads as [`rpds::VectorSync`].
#[derive(Clone, Debug)]
pub struct Vector<V> {
    items: rpds::VectorSync<V>,
    shape: Shape,
}

impl<V: Element> Vector<V> {
    /// Its shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Appends a value.
    pub fn push(&mut self, value: V) {
        self.shape.hold(value.shape());
        self.items.push_back_mut(value);
    }

    /// Replaces the value at an index, or appends it at the index after the last; whether the index was one of these.
    #[must_use]
    pub fn set(&mut self, index: usize, value: V) -> bool {
        if index == self.items.len() {
            self.push(value);
            return true;
        }
        self.shape.hold(value.shape());
        self.items.set_mut(index, value)
    }

    /// Removes the last value, if there is one.
    pub fn pop(&mut self) {
        self.items.drop_last_mut();
    }
}

impl<V> Default for Vector<V> {
    fn default() -> Self {
        Vector { items: rpds::VectorSync::new_sync(), shape: Shape::EMPTY }
    }
}

impl<V> Deref for Vector<V> {
    type Target = rpds::VectorSync<V>;

    fn deref(&self) -> &Self::Target {
        &self.items
    }
}

impl<V: Element> FromIterator<V> for Vector<V> {
    fn from_iter<I: IntoIterator<Item = V>>(items: I) -> Self {
        let mut vector = Vector::default();
        items.into_iter().for_each(|item| vector.push(item));
        vector
    }
}
