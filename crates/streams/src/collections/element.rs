//! What a collection needs to know of its elements.

use std::cmp::Ordering;

/// What is known of a value without looking into it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// How many collections are around its innermost value: 0 for a number, 1 for `[1]`.
    pub depth: u32,
    /// Whether a sequence that may have to be computed is inside.
    pub lazy: bool,
}

impl Shape {
    /// The shape of a collection without elements.
    pub const EMPTY: Shape = Shape { depth: 1, lazy: false };

    /// Adds an element to the collection of this shape.
    pub fn hold(&mut self, element: Shape) {
        self.depth = self.depth.max(element.depth.saturating_add(1));
        self.lazy |= element.lazy;
    }
}

/// A value that collections can hold.
///
/// Comparisons and hashes see nothing of a sequence that is not computed yet: values of a shape that is `lazy`
/// are computed before they are compared (`Machine::realize`).
pub trait Element: Clone + Default + Send + Sync + 'static {
    /// Its shape.
    fn shape(&self) -> Shape;
    /// Clojure's hash of it (`hash`), which decides on the order of large maps and of sets.
    fn hash(&self) -> i32;
    /// Clojure's `=`.
    fn equal(&self, other: &Self) -> bool;
    /// An order of all values in which exactly the equal ones are equal, apart from numbers that are not.
    fn order(&self, other: &Self) -> Ordering;
}

/// A key of a tree, which stands where Clojure's hash map has it.
#[derive(Clone, Debug)]
pub struct Key<V> {
    /// The hash, its groups of five bits from the lowest to the highest: the path through Clojure's tries.
    path: u32,
    /// The key itself.
    pub value: V,
}

impl<V: Element> Key<V> {
    /// The key of a value.
    pub fn new(value: V) -> Self {
        let hash = value.hash().cast_unsigned();
        let path =
            (0..6).fold(hash >> 30, |path, group| path | ((hash >> (5 * group)) & 31) << (27 - 5 * group));
        Key { path, value }
    }
}

impl<V: Element> PartialEq for Key<V> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<V: Element> Eq for Key<V> {}

impl<V: Element> PartialOrd for Key<V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<V: Element> Ord for Key<V> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.path.cmp(&other.path).then_with(|| self.value.order(&other.value))
    }
}
