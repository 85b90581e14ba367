//! Targets: `alias(sumSeries(servers.*.cpu), 'all')|scale(2)` as a tree with positions.
//!
//! Path of a text: [`parse`] -> [`Expr`] -> [`expand`] replaces templates -> `eval`.
//! Pure. Invariants: any text gives a tree or one [`QueryError`](super::QueryError) with a position in the text (fuzz
//! target `graphite_target`); a tree is at most [`NESTING_MAX`] deep, so that recursion over it is safe.
//! Not here: which functions exist and what they take (`table`).

mod parser;
mod template;
#[cfg(test)]
mod tests;

pub use parser::{ParseOptions, parse};
pub use template::expand;

/// Longest accepted target in bytes.
pub const TARGET_BYTES_MAX: usize = 128 << 10;

/// Deepest nesting of calls and pipes.
pub const NESTING_MAX: usize = 200;

/// Most values of a template, and most values of a request for its templates.
pub const TEMPLATE_VALUES_MAX: usize = 100;

/// An expression and its place in the target.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Byte position of its first character.
    pub at: usize,
    /// What it is.
    pub kind: ExprKind,
}

/// The kinds of expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// The path of one or more series, with globs, without its escapes.
    Path(String),
    /// A number, text, true, false or none.
    Literal(Literal),
    /// A function with its arguments.
    Call(Call),
    /// `template(…)`: a path or call with values for its `$names`.
    Template(Template),
}

/// A function with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Name as written.
    pub name: String,
    /// Arguments by position; a piped expression is the first.
    pub args: Vec<Expr>,
    /// Arguments by name.
    pub named: Vec<NamedArg>,
    /// The call as written; kept for `seriesByTag`, which the store reads.
    pub raw: Option<String>,
}

/// An argument by name: `reverse=true`.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedArg {
    /// Byte position of the name.
    pub at: usize,
    /// Name of the parameter.
    pub name: String,
    /// The argument.
    pub value: Expr,
}

/// `template(…)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// A path or a call.
    pub body: Box<Expr>,
    /// Names (`1`, `2`, … for arguments by position) and values.
    pub values: Vec<(String, Literal)>,
}

/// A value that is written in the target.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// A number without point and exponent.
    Int(i64),
    /// Any other number; `inf` is infinite.
    Float(f64),
    /// Text in quotes. Backslashes are kept, as in the original.
    Text(String),
    /// `true` or `false`.
    Bool(bool),
    /// `none`.
    None,
}
