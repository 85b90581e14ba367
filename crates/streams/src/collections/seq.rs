//! Sequences that are not lists: cells, sequences that are computed when they are looked at, views of vectors, ranges.

use std::sync::{Arc, Mutex, PoisonError};

use super::element::{Element, Shape};
use super::later::drop_later;
use super::vector::Vector;

/// A sequence.
#[derive(Debug)]
pub enum Seq<V: Element> {
    /// A value before any other sequence, which is nil or anything with `seq`.
    Cons {
        /// The first value.
        first: V,
        /// What comes after it.
        rest: V,
        /// The shape of both.
        shape: Shape,
    },
    /// A sequence that is computed when it is looked at.
    Lazy(Lazy<V>),
    /// The values of a vector from an index on, which it has.
    View {
        /// The vector.
        vector: Arc<Vector<V>>,
        /// The index of the first value.
        from: usize,
    },
    /// Integers from `start` up or down to, but without, `end`; at least one.
    Range {
        /// The first integer.
        start: i64,
        /// Where it ends.
        end: i64,
        /// From one to the next; not 0.
        step: i64,
    },
}

/// A computation whose result is kept.
#[derive(Debug)]
pub struct Lazy<V: Element> {
    state: Mutex<State<V>>,
    shape: Shape,
}

/// How far a computation is.
#[derive(Clone, Debug)]
pub enum State<V> {
    /// Not begun: call the function with the arguments.
    Waiting {
        /// What computes the value.
        function: V,
        /// Its arguments.
        arguments: Arc<[V]>,
    },
    /// It runs, so it must not need itself.
    Running,
    /// Its value.
    Ready(V),
}

impl<V: Element> Lazy<V> {
    /// A computation that has not begun.
    pub fn new(function: V, arguments: Arc<[V]>) -> Self {
        let mut shape = Shape::EMPTY;
        shape.hold(function.shape());
        arguments.iter().for_each(|argument| shape.hold(argument.shape()));
        shape.lazy = true;
        Lazy { state: Mutex::new(State::Waiting { function, arguments }), shape }
    }

    /// How far it is; one that has not begun is marked as running, and the caller has to run it.
    pub fn begin(&self) -> State<V> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = state.clone();
        if matches!(before, State::Waiting { .. }) {
            *state = State::Running;
        }
        before
    }

    /// Keeps the value, or puts back what failed.
    pub fn set(&self, state: State<V>) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// Its value, if it is known.
    pub fn known(&self) -> Option<V> {
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Ready(value) => Some(value.clone()),
            State::Waiting { .. } | State::Running => None,
        }
    }

    /// Its shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }
}

impl<V: Element> Seq<V> {
    /// A value before a sequence.
    pub fn cons(first: V, rest: V) -> Self {
        let mut shape = rest.shape();
        shape.hold(first.shape());
        Seq::Cons { first, rest, shape }
    }

    /// Its shape. The length of a chain does not count as depth, since chains are dropped one cell after the other.
    pub fn shape(&self) -> Shape {
        let shape = match self {
            Seq::Cons { shape, .. } => *shape,
            Seq::Lazy(lazy) => lazy.shape(),
            Seq::View { vector, .. } => vector.shape(),
            Seq::Range { .. } => Shape::EMPTY,
        };
        Shape { lazy: true, ..shape }
    }
}

impl<V: Element> Drop for Seq<V> {
    fn drop(&mut self) {
        if let Seq::Cons { rest, .. } = self {
            drop_later(std::mem::take(rest));
        }
    }
}

impl<V: Element> Drop for Lazy<V> {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let State::Ready(value) = state {
            drop_later(std::mem::take(value));
        }
    }
}
