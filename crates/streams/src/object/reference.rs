//! Cells whose value changes: vars and atoms.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use arcstr::ArcStr;

use crate::collections::element::Element;
use crate::collections::later::drop_later;

/// A global name of a namespace.
#[derive(Debug)]
pub struct Var<V> {
    /// Its namespace.
    pub namespace: ArcStr,
    /// Its name there.
    pub name: ArcStr,
    root: RwLock<Option<V>>,
    dynamic: AtomicBool,
    macros: AtomicBool,
}

impl<V: Clone> Var<V> {
    /// A var without a value.
    pub fn new(namespace: ArcStr, name: ArcStr) -> Self {
        let (dynamic, macros) = (AtomicBool::new(false), AtomicBool::new(false));
        Var { namespace, name, root: RwLock::new(None), dynamic, macros }
    }

    /// Its value; `None` if it has none.
    pub fn get(&self) -> Option<V> {
        self.root.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets its value.
    pub fn set(&self, value: V) {
        let old = self.root.write().unwrap_or_else(PoisonError::into_inner).replace(value);
        drop(old);
    }

    /// Whether `binding` may bind it.
    pub fn is_dynamic(&self) -> bool {
        self.dynamic.load(Ordering::Relaxed)
    }

    /// Lets `binding` bind it.
    pub fn make_dynamic(&self) {
        self.dynamic.store(true, Ordering::Relaxed);
    }

    /// Whether its value is a macro.
    pub fn is_macro(&self) -> bool {
        self.macros.load(Ordering::Relaxed)
    }

    /// Says whether its value is a macro.
    pub fn set_macro(&self, is_macro: bool) {
        self.macros.store(is_macro, Ordering::Relaxed);
    }
}

/// What sort of cell an atom is: only its name differs, since no two threads change one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// `atom`
    Atom,
    /// `ref`
    Ref,
    /// `volatile!`
    Volatile,
    /// `agent`
    Agent,
    /// `promise`
    Promise,
}

/// A cell.
#[derive(Debug)]
pub struct Atom<V: Element> {
    /// What it was made as.
    pub sort: Sort,
    value: Mutex<V>,
    delivered: AtomicBool,
}

impl<V: Element> Atom<V> {
    /// A cell with a value.
    pub fn new(sort: Sort, value: V) -> Self {
        Atom { sort, value: Mutex::new(value), delivered: AtomicBool::new(sort != Sort::Promise) }
    }

    /// Its value.
    pub fn get(&self) -> V {
        self.value.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces its value; the old one.
    pub fn replace(&self, value: V) -> V {
        self.delivered.store(true, Ordering::Relaxed);
        std::mem::replace(&mut *self.value.lock().unwrap_or_else(PoisonError::into_inner), value)
    }

    /// Takes the value out while a function computes the next one; nil stands there meanwhile.
    pub fn take(&self) -> V {
        std::mem::take(&mut *self.value.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether it has a value: a promise may have none yet.
    pub fn is_delivered(&self) -> bool {
        self.delivered.load(Ordering::Relaxed)
    }
}

impl<V: Element> Drop for Atom<V> {
    fn drop(&mut self) {
        drop_later(std::mem::take(self.value.get_mut().unwrap_or_else(PoisonError::into_inner)));
    }
}
