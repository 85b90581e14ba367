//! Namespaces: names to functions, macros and vars.

use std::sync::Arc;

use arcstr::ArcStr;

use crate::function::Native;
use crate::object::reference::Var;
use crate::value::Value;

/// Names with values of one sort. They are only looked up while a config is loaded.
pub type Names<T> = std::collections::BTreeMap<ArcStr, T>;

/// What a name means.
#[derive(Clone)]
pub enum Entry {
    /// A function of ours.
    Native(&'static Native),
    /// A macro of ours.
    Macro(&'static Native),
    /// A constant of ours: `Math/PI`.
    Constant(Value),
    /// What the config defined.
    Var(Arc<Var<Value>>),
}

/// A name that a namespace has, with the namespace that it comes from.
#[derive(Clone)]
pub struct Named {
    /// Where it was defined.
    pub home: ArcStr,
    /// What it means.
    pub entry: Entry,
}

/// One namespace.
#[derive(Default)]
pub struct Namespace {
    /// Its names, own ones and referred ones.
    pub names: Names<Named>,
    /// Short names of other namespaces.
    pub aliases: Names<ArcStr>,
    /// Whether it is ours, so that the config adds nothing to it.
    pub is_native: bool,
}

/// All namespaces.
#[derive(Default)]
pub struct Namespaces {
    all: Names<Namespace>,
}

impl Namespaces {
    /// A namespace.
    pub fn get(&self, name: &str) -> Option<&Namespace> {
        self.all.get(name)
    }

    /// A namespace, which is made if it is not there.
    pub fn make(&mut self, name: &ArcStr) -> &mut Namespace {
        self.all.entry(name.clone()).or_default()
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &ArcStr> {
        self.all.keys()
    }

    /// What a name means in a namespace, through its own names and those of `clojure.core`.
    pub fn find(&self, namespace: &str, name: &str) -> Option<&Named> {
        let own = self.all.get(namespace).and_then(|space| space.names.get(name));
        own.or_else(|| self.all.get("clojure.core")?.names.get(name))
    }

    /// The full name of a namespace that another one may have an alias for.
    pub fn full_name(&self, namespace: &str, alias: &str) -> Option<ArcStr> {
        let own = self.all.get(namespace).and_then(|space| space.aliases.get(alias)).cloned();
        own.or_else(|| self.all.get_key_value(alias).map(|(name, _)| name.clone()))
    }
}
