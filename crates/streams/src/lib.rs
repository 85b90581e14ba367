//! Riemann: its configuration language, its streams, its index and its query language.
//!
//! A config is read and evaluated once, which leaves a graph of stream nodes ([`graph`]). Events then pass through the
//! graph; only functions that the config wrote itself run in the interpreter.
//!
//! - [`value`], [`event`], [`number`]: what the language computes with. An event is a value like any other.
//! - [`collections`], [`function`], [`object`], [`symbol`]: what values are made of.
//! - [`compare`], [`hash`], [`form`], [`arithmetic`], [`mod@print`]: what can be done with values without running code.
//! - [`json`]: events and values as JSON, and back.
//! - [`reader`]: text to forms, with positions. [`language`]: forms to closures, and Clojure's own functions.
//! - [`graph`]: who feeds whom, and timers. [`nodes`], [`folds`]: what Riemann's streams and folds compute.
//! - [`libraries`]: functions of values that configs use besides Clojure's. [`riemann`]: a config that runs, and what it declares.
//! - [`effort`]: what comparing and hashing cost, for the budget.
//! - [`query`]: the query language. [`index`]: the latest event of each host and service.
//!
//! Pure: no I/O, no clock. The time, files of the config and the environment are asked of the caller.

pub mod arithmetic;
pub mod collections;
pub mod compare;
pub mod effort;
pub mod event;
pub mod folds;
pub mod form;
pub mod function;
pub mod graph;
pub mod hash;
pub mod index;
pub mod json;
pub mod language;
pub mod libraries;
pub mod nodes;
pub mod number;
pub mod object;
pub mod position;
pub mod print;
pub mod query;
pub mod reader;
pub mod riemann;
pub mod symbol;
pub mod value;
