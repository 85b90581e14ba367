//! Clojure, as far as Riemann's configs use it (spec riemann §16).
//!
//! Path of a form: `reader` -> [`load`] -> `analysis` (macros expanded, names resolved) -> `expr` -> `eval`. A function that the
//! config wrote is called by [`machine::Machine::call`], at load time and for each event.
//!
//! - [`world`], [`namespace`]: what names mean. [`evaluation`]: its state. [`machine`]: who runs. [`budget`]: for how long. [`host`]: what it may ask.
//! - [`refused`]: names of Clojure's own that are not there, and why.
//! - `macros`, `natives`: Clojure's own macros and functions, in tables from which completion and the reference page are made.
//!
//! ```
//! use std::sync::Arc;
//! use streams::graph::Graph;
//! use streams::language::{budget::Limits, evaluation::Evaluation, host::Nowhere, machine::Machine};
//!
//! let evaluation = Evaluation::new(Arc::new(streams::language::clojure()), Box::new(Nowhere::default()));
//! let mut graph = Graph::new(evaluation, 0);
//! let mut machine = Machine::new(&mut graph, Limits::LOAD);
//! let double = machine.load("(fn [x] (* 2 x))", "example.clj").expect("it is right");
//! let six = machine.call(&double, &mut [3_i64.into()]).expect("it is within its budget");
//! assert_eq!(six, 6_i64.into());
//! ```

mod analysis;
pub mod budget;
mod call;
pub mod classes;
pub mod diagnostic;
pub mod error;
mod eval;
pub mod evaluation;
mod expr;
pub mod host;
pub mod interop;
pub mod load;
pub mod machine;
pub mod macros;
pub mod namespace;
pub mod natives;
pub mod refused;
pub mod sequence;
pub mod world;

use crate::function::Native;
use world::{Library, World};

/// The names of the special forms.
pub fn special_forms() -> &'static [&'static str] {
    analysis::SPECIAL_FORMS
}

/// A world with Clojure's own namespaces.
pub fn clojure() -> World {
    let world = World::empty();
    let tables = [
        ("clojure.core", natives::CORE),
        ("clojure.string", &[natives::strings::NATIVES] as &[&[Native]]),
        ("clojure.set", &[natives::sets::NATIVES]),
        ("clojure.walk", &[natives::walk::NATIVES]),
        (interop::METHODS, natives::METHODS),
        (interop::CONSTRUCTORS, &[natives::constructors::NATIVES]),
    ];
    for (namespace, tables) in tables {
        for natives in tables {
            world.add(Library { namespace, natives, macros: &[] });
        }
    }
    for (class, natives) in natives::statics::CLASSES {
        world.add(Library { namespace: class, natives, macros: &[] });
    }
    for (class, name, value) in natives::statics::constants() {
        world.add_constant(class, name, value);
    }
    for macros in macros::CORE {
        world.add(Library { namespace: "clojure.core", natives: &[], macros });
    }
    world
}

#[cfg(test)]
pub(crate) mod tests;
