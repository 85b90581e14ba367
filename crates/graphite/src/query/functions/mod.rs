//! The functions, in files by what they do. Their names, parameters and descriptions are in `table`.
//!
//! A function takes its series out of the [`Call`](super::call::Call), changes them in place where it can, and gives
//! them back. Loops over values have no branches where possible: a null is NaN and stays NaN.

pub(crate) mod calculate;
pub(crate) mod combine;
pub(crate) mod draw;
pub(crate) mod filter;
pub(crate) mod generate;
pub(crate) mod names;
mod nodes;
pub(crate) mod transform;
