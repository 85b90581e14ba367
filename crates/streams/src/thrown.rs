//! What a function of a config throws.

use std::fmt;

use arcstr::ArcStr;

use crate::value::Value;

/// The classes of exceptions that configs and tests know by name (spec riemann §10.6).
pub mod class {
    use arcstr::{ArcStr, literal};

    /// An operation on nil.
    pub const NULL_POINTER: ArcStr = literal!("java.lang.NullPointerException");
    /// Overflow, or a division by zero.
    pub const ARITHMETIC: ArcStr = literal!("java.lang.ArithmeticException");
    /// A value of a kind that the function does not take.
    pub const CLASS_CAST: ArcStr = literal!("java.lang.ClassCastException");
    /// An argument that the function does not take.
    pub const ILLEGAL_ARGUMENT: ArcStr = literal!("java.lang.IllegalArgumentException");
    /// Too many calls within each other.
    pub const STACK_OVERFLOW: ArcStr = literal!("java.lang.StackOverflowError");
    /// Something that cannot be done now.
    pub const ILLEGAL_STATE: ArcStr = literal!("java.lang.IllegalStateException");
    /// Any other.
    pub const RUNTIME: ArcStr = literal!("java.lang.RuntimeException");
}

/// An exception: what a function throws in place of giving a value.
#[derive(Clone, Debug)]
pub struct Thrown {
    /// Name of its Java class.
    pub class: ArcStr,
    /// Text for humans.
    pub message: ArcStr,
    /// The value that the config threw; nil for exceptions of the language itself.
    pub value: Value,
}

impl Thrown {
    /// An exception without a value.
    pub fn new(class: ArcStr, message: impl Into<ArcStr>) -> Thrown {
        Thrown { class, message: message.into(), value: Value::Nil }
    }
}

impl fmt::Display for Thrown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, self.message)
    }
}

impl std::error::Error for Thrown {}
