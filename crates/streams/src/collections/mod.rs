//! The persistent collections of the language, over any sort of element.
//!
//! They do not know [`crate::value::Value`]: what they need of it is the trait [`element::Element`].

pub mod element;
pub mod later;
pub mod list;
pub mod map;
pub mod seq;
pub mod set;
pub mod vector;
