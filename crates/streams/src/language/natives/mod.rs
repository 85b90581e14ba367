//! Clojure's own functions, in tables: name, number of arguments, what it does, code.

pub(in crate::language) mod arguments;
pub mod constructors;
pub mod exceptions;
mod format;
pub mod functions;
pub mod lazy;
pub mod maps;
pub mod methods;
pub mod numbers;
pub mod predicates;
pub mod reduction;
pub mod seldom;
pub mod sequences;
pub mod sets;
pub mod spaces;
pub mod state;
pub mod statics;
pub mod strings;
pub mod text;
pub mod walk;

use crate::function::Native;

/// The tables of `clojure.core`.
pub static CORE: &[&[Native]] = &[
    exceptions::NATIVES,
    functions::NATIVES,
    lazy::NATIVES,
    lazy::PARTS,
    maps::NATIVES,
    numbers::NATIVES,
    predicates::NATIVES,
    reduction::NATIVES,
    seldom::NATIVES,
    sequences::NATIVES,
    spaces::NATIVES,
    state::NATIVES,
    text::NATIVES,
];

/// The tables of Java's methods.
pub static METHODS: &[&[Native]] = &[methods::NATIVES];
