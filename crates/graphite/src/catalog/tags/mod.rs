//! Searches by tags (spec graphite §6.9): expressions, lists of tags and values, completion.

mod expression;
mod list;
mod series;

pub use expression::{
    ALL_COMPILED_BYTES_MAX, BadExpression, EXPRESSION_BYTES_MAX, EXPRESSIONS_MAX, Expression, Expressions,
    Filter,
};
pub use list::{Counted, TagList};
pub use series::{Completion, TagSearch};
