//! What one config has defined, and what it can use: its namespaces.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arcstr::ArcStr;

use super::namespace::{Entry, Named, Namespaces};
use crate::function::Native;
use crate::object::reference::Var;
use crate::value::Value;

/// Functions and macros that a namespace of ours has.
#[derive(Clone, Copy)]
pub struct Library {
    /// The namespace.
    pub namespace: &'static str,
    /// Its functions.
    pub natives: &'static [Native],
    /// Its macros.
    pub macros: &'static [Native],
}

/// The namespaces of one config. Made anew for each load, so that nothing of an old config is left.
#[derive(Default)]
pub struct World {
    namespaces: Mutex<Namespaces>,
    counter: AtomicU64,
}

impl World {
    /// A world without any names.
    pub fn empty() -> World {
        World::default()
    }

    /// The namespaces. They are locked for single look-ups only, never while code runs.
    pub fn namespaces(&self) -> MutexGuard<'_, Namespaces> {
        self.namespaces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that was not given before.
    pub fn unique(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::Relaxed)
    }

    /// Adds functions and macros of ours.
    pub fn add(&self, library: Library) {
        let home = ArcStr::from(library.namespace);
        let mut namespaces = self.namespaces();
        let space = namespaces.make(&home);
        space.is_native = true;
        let natives = library.natives.iter().map(|native| (native.name, Entry::Native(native)));
        let macros = library.macros.iter().map(|native| (native.name, Entry::Macro(native)));
        for (name, entry) in natives.chain(macros) {
            space.names.insert(ArcStr::from(name), Named { home: home.clone(), entry });
        }
    }

    /// Adds functions of ours.
    pub fn add_functions(&self, namespace: &str, natives: impl IntoIterator<Item = &'static Native>) {
        let home = ArcStr::from(namespace);
        let mut namespaces = self.namespaces();
        let space = namespaces.make(&home);
        space.is_native = true;
        for native in natives {
            let named = Named { home: home.clone(), entry: Entry::Native(native) };
            space.names.insert(ArcStr::from(native.name), named);
        }
    }

    /// Adds a constant of ours.
    pub fn add_constant(&self, namespace: &'static str, name: &'static str, value: Value) {
        let home = ArcStr::from(namespace);
        let named = Named { home: home.clone(), entry: Entry::Constant(value) };
        self.namespaces().make(&home).names.insert(ArcStr::from(name), named);
    }

    /// Lets a namespace use all names of another one without a prefix.
    pub fn refer_all(&self, namespace: &ArcStr, from: &str) {
        let mut namespaces = self.namespaces();
        let Some(space) = namespaces.get(from) else { return };
        let own = space.names.iter().filter(|(_, named)| named.home == from);
        let own: Vec<(ArcStr, Named)> = own.map(|(name, named)| (name.clone(), named.clone())).collect();
        namespaces.make(namespace).names.extend(own);
    }

    /// Lets a namespace use some names of another one without a prefix.
    ///
    /// # Panics
    /// If that one lacks a name.
    pub fn refer(&self, namespace: &ArcStr, from: &str, names: &[&str]) {
        let mut namespaces = self.namespaces();
        for name in names {
            let found = namespaces.get(from).and_then(|space| space.names.get(*name)).cloned();
            let found = found.unwrap_or_else(|| panic!("{from} has no {name}"));
            namespaces.make(namespace).names.insert(ArcStr::from(*name), found);
        }
    }

    /// Gives a namespace a short name within another one.
    pub fn alias(&self, namespace: &ArcStr, alias: &str, to: &str) {
        self.namespaces().make(namespace).aliases.insert(ArcStr::from(alias), ArcStr::from(to));
    }

    /// The var of a name, which is made if the namespace has none of its own.
    pub fn intern(&self, namespace: &ArcStr, name: &ArcStr) -> Arc<Var<Value>> {
        let mut namespaces = self.namespaces();
        let names = &mut namespaces.make(namespace).names;
        if let Some(Named { home, entry: Entry::Var(var) }) = names.get(name)
            && *home == *namespace
        {
            return Arc::clone(var);
        }
        let var = Arc::new(Var::new(namespace.clone(), name.clone()));
        names.insert(name.clone(), Named { home: namespace.clone(), entry: Entry::Var(Arc::clone(&var)) });
        var
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("World").finish_non_exhaustive()
    }
}
