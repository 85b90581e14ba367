//! Riemann: its configuration language, its streams, its index and its query language.
//!
//! A config is read and evaluated once, which leaves a graph of stream nodes (`graph`). Events then pass through the
//! graph; only functions that the config wrote itself run in the interpreter.
//!
//! - [`value`], [`event`], [`number`]: what the language computes with. An event is a value like any other.
//! - `reader`: text to forms, with positions. `language`: forms to closures, and Clojure's own functions.
//! - `query`: the query language. `index`: the latest event of each host and service.
//!
//! Pure: no I/O, no clock. The time, files of the config and the environment are asked of the caller.

pub mod event;
pub mod graph;
pub mod number;
pub mod thrown;
pub mod value;
