//! The syntax tree of a query (spec riemann §5.5). Configs build it by hand as well, from lists.
//!
//! `Display` prints the list form: `(and (= :host "web1") (:like "cpu%" :service))`.

use std::sync::Arc;

use arcstr::ArcStr;

use super::pattern::Pattern;
use crate::collections::element::Element;
use crate::number::Number;
use crate::value::Value;

/// A query. Equal for equal texts: regular expressions compare by text, and not-a-number equals itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// `:host`, `true`, `1`: whether it is neither nil nor false.
    Value(Operand),
    /// `(= a b)`
    Equal(Operand, Operand),
    /// `(not= a b)`
    NotEqual(Operand, Operand),
    /// `(< a b)` and its like: true only for two numbers that compare so.
    Compare(Comparison, Operand, Operand),
    /// `(:like "pat%" a)`: `%` stands for any run of characters without line breaks.
    Like(ArcStr, Operand),
    /// `(:regex #"re" a)`: searched in the text.
    Regex(Arc<Pattern>, Operand),
    /// `(:tagged "t")`
    Tagged(ArcStr),
    /// `(not a)`
    Not(Box<Tree>),
    /// `(and a b …)`. Made by [`Tree::and`].
    And(Vec<Tree>),
    /// `(or a b …)`. Made by [`Tree::or`].
    Or(Vec<Tree>),
}

/// What a comparison is about.
#[derive(Clone, Debug)]
pub enum Operand {
    /// A field of the event, standard or custom, by its name; nil where it is absent.
    Field(ArcStr),
    /// A literal.
    Literal(Value),
}

/// How two numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Less,
    /// `>`
    Greater,
    /// `<=`
    LessOrEqual,
    /// `>=`
    GreaterOrEqual,
}

impl Tree {
    /// `(and a b …)` of any number of parts. The first one's parts become parts of it: `(and (and a b) c)` is the same tree
    /// as `(and a b c)`, as `and` is left-associative. None is `true`, one is that part.
    pub fn and(parts: Vec<Tree>) -> Tree {
        let flat = flattened(parts, |part| match part {
            Tree::And(inner) => Ok(inner),
            other => Err(other),
        });
        let none = || Tree::Value(Operand::Literal(Value::Bool(true)));
        one_or(flat, none, Tree::And)
    }

    /// `(or a b …)`, likewise. None is `nil`.
    pub fn or(parts: Vec<Tree>) -> Tree {
        let flat = flattened(parts, |part| match part {
            Tree::Or(inner) => Ok(inner),
            other => Err(other),
        });
        one_or(flat, || Tree::Value(Operand::Literal(Value::Nil)), Tree::Or)
    }
}

/// The parts, with those of the first one in its place if `inner` gives them.
fn flattened(parts: Vec<Tree>, inner: impl Fn(Tree) -> Result<Vec<Tree>, Tree>) -> Vec<Tree> {
    let mut parts = parts.into_iter();
    let mut flat = match parts.next().map(inner) {
        None => Vec::new(),
        Some(Ok(inner)) => inner,
        Some(Err(first)) => vec![first],
    };
    flat.extend(parts);
    flat
}

fn one_or(mut parts: Vec<Tree>, none: impl Fn() -> Tree, many: impl Fn(Vec<Tree>) -> Tree) -> Tree {
    match parts.len() {
        0 => none(),
        1 => parts.remove(0),
        _ => many(parts),
    }
}

impl Operand {
    /// The field of that name.
    pub fn field(name: &str) -> Operand {
        Operand::Field(name.into())
    }

    /// A text.
    pub fn text(text: &str) -> Operand {
        Operand::Literal(Value::Text(text.into()))
    }

    /// An integer.
    pub fn int(value: i64) -> Operand {
        Operand::Literal(Value::Number(Number::Int(value)))
    }
}

impl PartialEq for Operand {
    fn eq(&self, other: &Operand) -> bool {
        match (self, other) {
            (Operand::Field(a), Operand::Field(b)) => a == b,
            (Operand::Literal(a), Operand::Literal(b)) => Value::equal(a, b) || is_nan(a) && is_nan(b),
            (Operand::Field(_), Operand::Literal(_)) | (Operand::Literal(_), Operand::Field(_)) => false,
        }
    }
}

fn is_nan(value: &Value) -> bool {
    matches!(value, Value::Number(Number::Double(_) | Number::Float(_)) if !Value::equal(value, value))
}

impl Comparison {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Comparison::Less => "<",
            Comparison::Greater => ">",
            Comparison::LessOrEqual => "<=",
            Comparison::GreaterOrEqual => ">=",
        }
    }

    /// Whether two numbers compare so; never if one is not a number.
    pub fn holds(self, a: &Number, b: &Number) -> bool {
        match self {
            Comparison::Less => a.compare(b).is_some_and(std::cmp::Ordering::is_lt),
            Comparison::Greater => a.compare(b).is_some_and(std::cmp::Ordering::is_gt),
            Comparison::LessOrEqual => a.compare(b).is_some_and(std::cmp::Ordering::is_le),
            Comparison::GreaterOrEqual => a.compare(b).is_some_and(std::cmp::Ordering::is_ge),
        }
    }
}
