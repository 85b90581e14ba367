//! Maps: up to eight entries in the order in which they came, more in the order of Clojure's hash maps.

use super::element::{Element, Key, Shape};

/// Most entries that are kept in their order, as in Clojure.
const ORDERED_MAX: usize = 8;

/// A persistent map.
#[derive(Clone, Debug)]
pub struct Map<V: Element> {
    entries: Entries<V>,
    shape: Shape,
}

#[derive(Clone, Debug)]
enum Entries<V: Element> {
    Ordered(Vec<(V, V)>),
    Tree(rpds::RedBlackTreeMapSync<Key<V>, V>),
}

impl<V: Element> Map<V> {
    /// An empty map that never keeps the order in which entries came: `(hash-map)`.
    pub fn hashed() -> Self {
        Map { entries: Entries::Tree(rpds::RedBlackTreeMapSync::new_sync()), shape: Shape::EMPTY }
    }

    /// Its shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// How many entries it has.
    pub fn len(&self) -> usize {
        match &self.entries {
            Entries::Ordered(entries) => entries.len(),
            Entries::Tree(tree) => tree.size(),
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key.
    pub fn get(&self, key: &V) -> Option<&V> {
        self.get_entry(key).map(|(_, value)| value)
    }

    /// The entry of a key, with the key as the map has it.
    pub fn get_entry(&self, key: &V) -> Option<(&V, &V)> {
        match &self.entries {
            Entries::Ordered(entries) => {
                entries.iter().find(|(known, _)| known.equal(key)).map(|(key, value)| (key, value))
            }
            Entries::Tree(tree) => {
                tree.get_key_value(&Key::new(key.clone())).map(|(key, value)| (&key.value, value))
            }
        }
    }

    /// Adds an entry, or replaces the value of an old one.
    pub fn insert(&mut self, key: V, value: V) {
        self.shape.hold(key.shape());
        self.shape.hold(value.shape());
        match &mut self.entries {
            Entries::Ordered(entries) => {
                if let Some((_, old)) = entries.iter_mut().find(|(known, _)| known.equal(&key)) {
                    *old = value;
                } else if entries.len() < ORDERED_MAX {
                    entries.push((key, value));
                } else {
                    let mut tree = rpds::RedBlackTreeMapSync::new_sync();
                    for (key, value) in entries.drain(..) {
                        tree.insert_mut(Key::new(key), value);
                    }
                    tree.insert_mut(Key::new(key), value);
                    self.entries = Entries::Tree(tree);
                }
            }
            Entries::Tree(tree) => {
                let key = Key::new(key);
                // The key that came first stays, as in Clojure.
                let key = tree.get_key_value(&key).map(|(known, _)| known.clone()).unwrap_or(key);
                tree.insert_mut(key, value);
            }
        }
    }

    /// Removes an entry; whether there was one.
    pub fn remove(&mut self, key: &V) -> bool {
        match &mut self.entries {
            Entries::Ordered(entries) => {
                let found = entries.iter().position(|(known, _)| known.equal(key));
                found.map(|index| entries.remove(index)).is_some()
            }
            Entries::Tree(tree) => tree.remove_mut(&Key::new(key.clone())),
        }
    }

    /// Its entries, in its order.
    pub fn iter(&self) -> impl Iterator<Item = (&V, &V)> {
        let (ordered, tree) = match &self.entries {
            Entries::Ordered(entries) => (Some(entries), None),
            Entries::Tree(tree) => (None, Some(tree)),
        };
        let ordered = ordered.into_iter().flatten().map(|(key, value)| (key, value));
        ordered.chain(tree.into_iter().flat_map(|tree| tree.iter().map(|(key, value)| (&key.value, value))))
    }
}

impl<V: Element> Default for Map<V> {
    fn default() -> Self {
        Map { entries: Entries::Ordered(Vec::new()), shape: Shape::EMPTY }
    }
}

impl<V: Element> FromIterator<(V, V)> for Map<V> {
    fn from_iter<I: IntoIterator<Item = (V, V)>>(entries: I) -> Self {
        let mut map = Map::default();
        entries.into_iter().for_each(|(key, value)| map.insert(key, value));
        map
    }
}
