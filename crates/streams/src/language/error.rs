//! How an evaluation can end without a value.

use std::fmt;
use std::sync::Arc;

use crate::arithmetic::ArithmeticError;
use crate::object::class::{self, Class};
use crate::object::exception::Exception;
use crate::position::Position;
use crate::value::Value;

/// A value, or why there is none.
pub type Outcome<T = Value> = Result<T, EvalError>;

/// Why an evaluation ended.
#[derive(Clone, Debug)]
pub enum Reason {
    /// The limit on steps.
    TooManySteps,
    /// The limit on calls within each other, or on collections within each other.
    TooDeep,
    /// The limit on memory.
    TooMuchMemory,
    /// An exception that nobody caught.
    Thrown(Arc<Exception<Value>>),
}

/// An evaluation that ended without a value. One word, so that results stay small.
#[derive(Clone, Debug)]
pub struct EvalError(Box<(Reason, Position)>);

impl EvalError {
    /// Without a place: the call around it adds its own.
    pub fn new(reason: Reason) -> Self {
        EvalError(Box::new((reason, Position::default())))
    }

    /// The limit on steps is reached.
    pub fn too_many_steps() -> Self {
        EvalError::new(Reason::TooManySteps)
    }

    /// A limit on depth is reached.
    pub fn too_deep() -> Self {
        EvalError::new(Reason::TooDeep)
    }

    /// The limit on memory is reached.
    pub fn too_much_memory() -> Self {
        EvalError::new(Reason::TooMuchMemory)
    }

    /// An exception of a class.
    pub fn throw(class: &'static Class, message: impl Into<String>) -> Self {
        EvalError::exception(Exception::new(class, message.into()))
    }

    /// `java.lang.IllegalArgumentException`.
    pub fn illegal_argument(message: impl Into<String>) -> Self {
        EvalError::throw(&class::ILLEGAL_ARGUMENT, message)
    }

    /// An exception.
    pub fn exception(exception: Exception<Value>) -> Self {
        EvalError::new(Reason::Thrown(Arc::new(exception)))
    }

    /// What happened, for people: without the Java class where the message says it all.
    pub fn in_words(&self) -> String {
        let Reason::Thrown(exception) = self.reason() else { return self.to_string() };
        let is_plain = PLAIN.iter().any(|class| class.name == exception.class.name);
        match &exception.message {
            Some(message) if is_plain => message.to_string(),
            Some(message) => format!("{}: {message}", exception.class.short_name()),
            None => exception.class.short_name().to_owned(),
        }
    }

    /// Why it ended.
    pub fn reason(&self) -> &Reason {
        &self.0.0
    }

    /// The class of the exception; of a limit the one that says the same in Java. It is a tag of the exception's event (spec riemann
    /// §10.6).
    pub fn class(&self) -> &'static Class {
        match self.reason() {
            Reason::TooManySteps => &class::TIMEOUT,
            Reason::TooDeep => &class::STACK_OVERFLOW,
            Reason::TooMuchMemory => &class::OUT_OF_MEMORY,
            Reason::Thrown(exception) => exception.class,
        }
    }

    /// The innermost form that was evaluated; unknown outside of forms with a place.
    pub fn at(&self) -> &Position {
        &self.0.1
    }

    /// Adds the place of a form, unless an inner one is known.
    #[must_use]
    pub fn within(mut self, at: &Position) -> Self {
        if !self.0.1.is_known() {
            self.0.1 = at.clone();
        }
        self
    }
}

impl fmt::Display for EvalError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason() {
            Reason::TooManySteps => to.write_str("too many steps"),
            Reason::TooDeep => to.write_str("too deep: calls or collections within each other"),
            Reason::TooMuchMemory => to.write_str("too much memory"),
            Reason::Thrown(exception) => match &exception.message {
                Some(message) => write!(to, "{}: {message}", exception.class.name),
                None => to.write_str(exception.class.name),
            },
        }
    }
}

impl std::error::Error for EvalError {}

/// Classes whose messages need no class before them.
const PLAIN: &[&Class] = &[
    &class::ARITHMETIC,
    &class::CLASS_CAST,
    &class::FILE_NOT_FOUND,
    &class::ILLEGAL_ARGUMENT,
    &class::ILLEGAL_STATE,
    &class::NULL_POINTER,
    &class::RUNTIME_EXCEPTION,
    &class::UNSUPPORTED,
];

/// What a division by zero says.
pub const DIVIDED_BY_ZERO: &str = "Divide by zero";

impl From<ArithmeticError> for EvalError {
    fn from(error: ArithmeticError) -> EvalError {
        match error {
            ArithmeticError::Overflow => EvalError::throw(&class::ARITHMETIC, "integer overflow"),
            ArithmeticError::DivideByZero => EvalError::throw(&class::ARITHMETIC, DIVIDED_BY_ZERO),
            ArithmeticError::NotFinite => EvalError::throw(&class::NUMBER_FORMAT, "Infinite or NaN"),
            ArithmeticError::TooBig => EvalError::too_much_memory(),
        }
    }
}
