//! Trees of queries that a config writes as lists: `(and (= :host "a") (:like "cpu%" :service))` (spec riemann §5.5).

use std::sync::Arc;

use crate::language::error::{EvalError, Outcome};
use crate::nodes::fields;
use crate::query::{Comparison, Operand, Pattern, Tree};
use crate::value::Value;

/// Lists within each other, at most.
const DEPTH_MAX: u32 = 100;

/// The tree of a list.
///
/// # Errors
/// If it is none.
pub(super) fn of(value: &Value) -> Outcome<Tree> {
    within(value, DEPTH_MAX)
}

fn wrong(value: &Value) -> EvalError {
    let text: String = crate::print::to_text(value, true).chars().take(100).collect();
    EvalError::illegal_argument(format!("{text} is not the tree of a query"))
}

fn within(value: &Value, depth: u32) -> Outcome<Tree> {
    let depth = depth.checked_sub(1).ok_or_else(|| wrong(value))?;
    let (Value::List(_) | Value::Seq(_), Some(parts)) = (value, fields::items(value)) else {
        return operand(value).map(Tree::Value);
    };
    let Some((head, parts)) = parts.split_first() else { return Err(wrong(value)) };
    let head = match head {
        Value::Symbol(symbol) => symbol.name.as_str(),
        Value::Keyword(name) => name.as_str(),
        _ => return Err(wrong(value)),
    };
    let all = || parts.iter().map(|part| within(part, depth)).collect::<Outcome<Vec<Tree>>>();
    let comparison =
        |comparison, [a, b]: [&Value; 2]| Ok(Tree::Compare(comparison, operand(a)?, operand(b)?));
    match (head, parts) {
        ("=", [a, b]) => Ok(Tree::Equal(operand(a)?, operand(b)?)),
        ("not=", [a, b]) => Ok(Tree::NotEqual(operand(a)?, operand(b)?)),
        ("<", [a, b]) => comparison(Comparison::Less, [a, b]),
        (">", [a, b]) => comparison(Comparison::Greater, [a, b]),
        ("<=", [a, b]) => comparison(Comparison::LessOrEqual, [a, b]),
        (">=", [a, b]) => comparison(Comparison::GreaterOrEqual, [a, b]),
        ("like", [Value::Text(pattern), of]) => Ok(Tree::Like(pattern.clone(), operand(of)?)),
        ("regex", [pattern, of]) => {
            let pattern = Pattern::new(&crate::print::to_str(pattern)).map_err(|_| wrong(value))?;
            Ok(Tree::Regex(Arc::new(pattern), operand(of)?))
        }
        ("tagged", [Value::Text(tag)]) => Ok(Tree::Tagged(tag.clone())),
        ("not", [inner]) => Ok(Tree::Not(Box::new(within(inner, depth)?))),
        ("and", [_, ..]) => Ok(Tree::and(all()?)),
        ("or", [_, ..]) => Ok(Tree::or(all()?)),
        _ => Err(wrong(value)),
    }
}

fn operand(value: &Value) -> Outcome<Operand> {
    match value {
        Value::Keyword(name) => Ok(Operand::Field(name.clone())),
        Value::Nil | Value::Bool(_) | Value::Number(_) | Value::Text(_) => {
            Ok(Operand::Literal(value.clone()))
        }
        other => Err(wrong(other)),
    }
}
