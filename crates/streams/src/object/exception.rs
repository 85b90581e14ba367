//! Exceptions as values.

use arcstr::ArcStr;

use super::class::Class;

/// An exception that was thrown or made.
#[derive(Clone, Debug)]
pub struct Exception<V> {
    /// Its Java class.
    pub class: &'static Class,
    /// Its message; `None` prints as null.
    pub message: Option<ArcStr>,
    /// The map of `ex-info`; nil for others.
    pub data: V,
    /// The exception that caused it; nil without one.
    pub cause: V,
}

impl<V: Default> Exception<V> {
    /// An exception without data and cause.
    pub fn new(class: &'static Class, message: impl Into<ArcStr>) -> Self {
        Exception { class, message: Some(message.into()), data: V::default(), cause: V::default() }
    }
}
