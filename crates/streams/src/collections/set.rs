//! Sets, in the order of Clojure's hash sets.

use super::element::{Element, Key, Shape};

/// A persistent set.
#[derive(Clone, Debug)]
pub struct Set<V: Element> {
    tree: rpds::RedBlackTreeMapSync<Key<V>, ()>,
    shape: Shape,
}

impl<V: Element> Set<V> {
    /// Its shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// How many values it has.
    pub fn len(&self) -> usize {
        self.tree.size()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }

    /// The value as the set has it.
    pub fn get(&self, value: &V) -> Option<&V> {
        self.tree.get_key_value(&Key::new(value.clone())).map(|(key, ())| &key.value)
    }

    /// Adds a value; whether it is new.
    pub fn insert(&mut self, value: V) -> bool {
        self.shape.hold(value.shape());
        let key = Key::new(value);
        let is_new = !self.tree.contains_key(&key);
        if is_new {
            self.tree.insert_mut(key, ());
        }
        is_new
    }

    /// Removes a value; whether there was one.
    pub fn remove(&mut self, value: &V) -> bool {
        self.tree.remove_mut(&Key::new(value.clone()))
    }

    /// Its values, in its order.
    pub fn iter(&self) -> impl Iterator<Item = &V> {
        self.tree.keys().map(|key| &key.value)
    }
}

impl<V: Element> Default for Set<V> {
    fn default() -> Self {
        Set { tree: rpds::RedBlackTreeMapSync::new_sync(), shape: Shape::EMPTY }
    }
}

impl<V: Element> FromIterator<V> for Set<V> {
    fn from_iter<I: IntoIterator<Item = V>>(values: I) -> Self {
        let mut set = Set::default();
        for value in values {
            set.insert(value);
        }
        set
    }
}
