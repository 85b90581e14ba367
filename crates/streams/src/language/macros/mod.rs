//! Clojure's own macros, in tables: name, number of forms, what it does, code.
//!
//! What they make names functions by `clojure.core/…`, so that locals of the same name do not matter.

pub mod bindings;
pub mod branches;
pub mod definitions;
mod forms;
pub mod loops;
pub mod threading;

use crate::function::Native;

/// The tables of `clojure.core`.
pub static CORE: &[&[Native]] =
    &[bindings::MACROS, branches::MACROS, definitions::MACROS, loops::MACROS, threading::MACROS];
