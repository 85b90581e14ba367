//! Functions as values. How they run is the business of `language`.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::collections::element::{Element, Shape};

/// What a closure runs; `language` knows what it is.
pub trait Code: Any + Send + Sync + fmt::Debug {
    /// The code as what it is.
    fn as_any(&self) -> &dyn Any;
    /// The name of one of its functions, if it has one.
    fn name(&self, index: u32) -> Option<&str>;
    /// A hash of what was written ([`crate::form`]).
    fn form(&self) -> u64;
}

/// A function that a config wrote, with the values that it captured.
#[derive(Clone, Debug)]
pub struct Closure<V> {
    /// The code of it, and of those that `letfn` makes beside it.
    pub code: Arc<dyn Code>,
    /// Which of them it is.
    pub index: u32,
    /// What they captured.
    pub captures: Arc<[V]>,
    shape: Shape,
}

impl<V: Element> Closure<V> {
    /// A closure over these values.
    pub fn new(code: Arc<dyn Code>, index: u32, captures: Arc<[V]>) -> Self {
        let shape = shape_of(&captures);
        Closure { code, index, captures, shape }
    }

    /// The one beside it with this index.
    pub fn sibling(&self, index: u32) -> Self {
        Closure {
            code: Arc::clone(&self.code),
            index,
            captures: Arc::clone(&self.captures),
            shape: self.shape,
        }
    }

    /// Its shape: closures over closures are deep, as vectors in vectors are.
    pub fn shape(&self) -> Shape {
        self.shape
    }
}

/// How many arguments a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arity {
    /// At least.
    pub min: usize,
    /// At most; `None` for any number.
    pub max: Option<usize>,
}

impl Arity {
    /// Whether it takes so many.
    pub fn takes(self, count: usize) -> bool {
        count >= self.min && self.max.is_none_or(|max| count <= max)
    }
}

/// A function of ours: an entry of the tables that completion and the reference page come from.
pub struct Native {
    /// Its name in its namespace.
    pub name: &'static str,
    /// How many arguments it takes.
    pub arity: Arity,
    /// What it does, in one line.
    pub doc: &'static str,
    /// What runs; `language` knows what it is.
    pub code: &'static (dyn Any + Send + Sync),
}

impl fmt::Debug for Native {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Native").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A native function with its first arguments.
#[derive(Clone, Debug)]
pub struct Bound<V> {
    /// The native.
    pub native: &'static Native,
    /// The arguments that come before those of a call.
    pub arguments: Arc<[V]>,
    shape: Shape,
}

impl<V: Element> Bound<V> {
    /// The native with these arguments.
    pub fn new(native: &'static Native, arguments: Arc<[V]>) -> Self {
        let shape = shape_of(&arguments);
        Bound { native, arguments, shape }
    }

    /// Its shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }
}

/// The shape of a function; comparing one never looks inside, so it is not lazy.
fn shape_of<V: Element>(held: &[V]) -> Shape {
    let mut shape = Shape::EMPTY;
    held.iter().for_each(|value| shape.hold(value.shape()));
    Shape { lazy: false, ..shape }
}
