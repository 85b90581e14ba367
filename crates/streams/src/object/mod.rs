//! Values that are not data: classes, exceptions, regular expressions, references, times.

pub mod class;
pub mod exception;
pub mod pattern;
pub mod reference;
pub mod time;
