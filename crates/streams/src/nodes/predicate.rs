//! Predicates of `where` and its relatives, taken apart as far as they can run without the interpreter (spec riemann §9).
//!
//! A predicate comes as a value: a function, or data whose first element is a keyword of the namespace `riemann`, which
//! [`super::forms`] writes for what it understands of an expression:
//!
//! | Data | True if |
//! |---|---|
//! | `[:riemann/and p…]`, `[:riemann/or p…]`, `[:riemann/not p]` | as they say |
//! | `[:riemann/match f x]` | the value of `f` matches `x` (§9.2) |
//! | `[:riemann/compare "<" o…]` | the operands are in that order; also `>`, `<=`, `>=`, `==`, `=`, `not=` |
//! | `[:riemann/tagged-all x]`, `[:riemann/tagged-any x]` | the event has these tags |
//! | `[:riemann/expired]`, `[:riemann/nil f]` | the event has expired; the value of `f` is nil |
//! | `[:riemann/field f]`, `[:riemann/constant x]` | the value is neither nil nor false |
//! | `[:riemann/call f]` | the function gives neither nil nor false |
//!
//! An operand is `[:riemann/field f]` or `[:riemann/constant x]`.

use std::cmp::Ordering;
use std::sync::Arc;

use arcstr::ArcStr;

use super::fields;
use super::function::Function;
use crate::collections::element::Element;
use crate::event::Field;
use crate::graph::Turn;
use crate::language::error::{EvalError, Outcome};
use crate::object::class;
use crate::object::pattern::Pattern;
use crate::value::Value;

/// Predicates within each other, at most: the reader allows no deeper forms.
const DEPTH_MAX: usize = crate::reader::names::DEPTH_MAX as usize;

/// See the module's header.
#[derive(Clone, Debug)]
pub enum Predicate {
    /// All are true.
    And(Box<[Predicate]>),
    /// One is true.
    Or(Box<[Predicate]>),
    /// It is not true.
    Not(Box<Predicate>),
    /// The value of a function matches.
    Match(Function, Matcher),
    /// Operands compare like that, each with the next one.
    Compare(Comparison, Box<[Operand]>),
    /// All tags, or one of them, are the event's.
    Tagged {
        /// Whether it takes all of them.
        all: bool,
        /// The tags.
        tags: Box<[Value]>,
    },
    /// The event has expired.
    Expired,
    /// The operand is nil.
    IsNil(Operand),
    /// The operand is neither nil nor false.
    Holds(Operand),
}

/// How operands compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `==`: numbers by their value.
    SameNumber,
    /// `=`
    Equal,
    /// `not=`
    NotEqual,
}

/// What is compared.
#[derive(Clone, Debug)]
pub enum Operand {
    /// A value.
    Constant(Value),
    /// A function's value of the event.
    Function(Function),
}

/// The first argument of `match`, which decides on what it does with the second one (spec riemann §9.2).
#[derive(Clone, Debug)]
pub enum Matcher {
    /// The value is a text in which it is found.
    Pattern(Arc<Pattern>),
    /// The value is a text that begins so: a pattern of `^` and letters.
    Prefix(ArcStr),
    /// The value is a text in which this is: a pattern of letters only.
    Contains(ArcStr),
    /// Each entry matches.
    Map(Box<[(Value, Matcher)]>),
    /// It gives true for the value.
    Function(Value),
    /// The value is equal; of sets, it is in the set.
    Value(Value),
}

impl Comparison {
    /// The comparison of that name.
    pub fn of(name: &str) -> Option<Comparison> {
        Some(match name {
            "<" => Comparison::Less,
            "<=" => Comparison::LessOrEqual,
            ">" => Comparison::Greater,
            ">=" => Comparison::GreaterOrEqual,
            "==" => Comparison::SameNumber,
            "=" => Comparison::Equal,
            "not=" => Comparison::NotEqual,
            _ => return None,
        })
    }

    /// The comparison that a function is, if it is one of ours.
    pub fn of_function(function: &Value) -> Option<Comparison> {
        match function {
            Value::Native(native) => Comparison::of(native.name),
            _ => None,
        }
    }

    /// Whether two values compare so.
    ///
    /// # Errors
    /// Of values that are no numbers, but for `=` and `not=`.
    pub fn holds(self, a: &Value, b: &Value) -> Outcome<bool> {
        let is = |wanted: fn(Ordering) -> bool| -> Outcome<bool> {
            Ok(fields::number(a)?.compare(fields::number(b)?).is_some_and(wanted))
        };
        match self {
            Comparison::Less => is(Ordering::is_lt),
            Comparison::LessOrEqual => is(Ordering::is_le),
            Comparison::Greater => is(Ordering::is_gt),
            Comparison::GreaterOrEqual => is(Ordering::is_ge),
            Comparison::SameNumber => is(Ordering::is_eq),
            Comparison::Equal => Ok(a.equal(b)),
            Comparison::NotEqual => Ok(!a.equal(b)),
        }
    }
}

impl Matcher {
    /// The matcher of a value.
    pub fn of(value: &Value) -> Matcher {
        Matcher::within(value, DEPTH_MAX)
    }

    fn within(value: &Value, depth: usize) -> Matcher {
        match value {
            Value::Pattern(pattern) => Matcher::of_pattern(pattern),
            Value::Map(map) if depth > 0 => Matcher::Map(
                map.iter().map(|(key, of)| (key.clone(), Matcher::within(of, depth - 1))).collect(),
            ),
            Value::Closure(_)
            | Value::Native(_)
            | Value::Bound(_)
            | Value::Keyword(_)
            | Value::Stream(_)
            | Value::Var(_) => Matcher::Function(value.clone()),
            // Upstream calls vectors too, which only ever throws: sequences compare here.
            other => Matcher::Value(other.clone()),
        }
    }

    /// Patterns without any sign of their own need no search by an automaton.
    fn of_pattern(pattern: &Arc<Pattern>) -> Matcher {
        let source = pattern.source.as_str();
        let literal = source.strip_prefix('^').unwrap_or(source);
        let is_plain = |part: char| part.is_ascii_alphanumeric() || " _/:,=@%-".contains(part);
        match literal.chars().all(is_plain) {
            true if literal.len() < source.len() => Matcher::Prefix(literal.into()),
            true => Matcher::Contains(literal.into()),
            false => Matcher::Pattern(Arc::clone(pattern)),
        }
    }

    /// Whether a value matches.
    ///
    /// # Errors
    /// What a function throws, and if the search for a pattern takes too long.
    pub fn is_match(&self, value: &Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        match self {
            Matcher::Pattern(pattern) => match value {
                Value::Text(text) => pattern
                    .search()
                    .is_match(searched(text))
                    .map_err(|error| EvalError::throw(&class::STACK_OVERFLOW, error.to_string())),
                _ => Ok(false),
            },
            Matcher::Prefix(prefix) => {
                Ok(value.as_text().is_some_and(|text| text.starts_with(prefix.as_str())))
            }
            Matcher::Contains(part) => {
                Ok(value.as_text().is_some_and(|text| searched(text).contains(part.as_str())))
            }
            Matcher::Map(entries) => {
                for (key, matcher) in entries {
                    if !matcher.is_match(entry(value, key), turn)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Matcher::Function(Value::Keyword(name)) => Ok(fields::named(value, name).is_true()),
            Matcher::Function(function) => {
                turn.call(function, std::slice::from_ref(value)).map(|result| result.is_true())
            }
            Matcher::Value(Value::Set(set)) => Ok(set.get(value).is_some_and(Value::is_true)),
            Matcher::Value(wanted) => Ok(wanted.equal(value)),
        }
    }
}

/// Counts the effort of a search in a text.
fn searched(text: &str) -> &str {
    const BYTES_PER_VALUE: usize = 8;
    crate::effort::spend(text.len() / BYTES_PER_VALUE);
    text
}

/// The value of a key, as `get` gives it.
fn entry<'v>(value: &'v Value, key: &Value) -> &'v Value {
    match (value, key) {
        (Value::Map(map), key) => map.get(key).unwrap_or(&Value::Nil),
        (_, Value::Keyword(name)) => fields::named(value, name),
        _ => &Value::Nil,
    }
}

impl Operand {
    fn of(value: &Value) -> Outcome<Operand> {
        let (name, args) = data(value).ok_or_else(damaged)?;
        match (name.as_str(), &args[..]) {
            ("field", [function]) => Ok(Operand::Function(Function::of(function))),
            ("call", [function]) => Ok(Operand::Function(Function::Value(function.clone()))),
            ("constant", [value]) => Ok(Operand::Constant(value.clone())),
            _ => Err(damaged()),
        }
    }

    /// Gives its value to `look`.
    fn with<T>(
        &self,
        event: &Value,
        turn: &mut Turn<'_>,
        look: impl FnOnce(&Value, &mut Turn<'_>) -> Outcome<T>,
    ) -> Outcome<T> {
        match self {
            Operand::Constant(value) => look(value, turn),
            Operand::Function(function) => with_value(function, event, turn, look),
        }
    }
}

/// Gives a function's value to `look`, without a copy where it is a field.
fn with_value<T>(
    function: &Function,
    event: &Value,
    turn: &mut Turn<'_>,
    look: impl FnOnce(&Value, &mut Turn<'_>) -> Outcome<T>,
) -> Outcome<T> {
    match function.read(event) {
        Some(value) => look(value, turn),
        None => {
            let value = function.call(event, turn)?;
            look(&value, turn)
        }
    }
}

/// The name and the arguments of data of this module.
fn data(value: &Value) -> Option<(ArcStr, Vec<Value>)> {
    let Value::Vector(vector) = value else { return None };
    let Value::Keyword(name) = vector.first()? else { return None };
    let name = name.strip_prefix("riemann/")?;
    Some((name.into(), vector.iter().skip(1).cloned().collect()))
}

/// The children of `(else c…)`, which is such data too.
pub fn otherwise(value: &Value) -> Option<Vec<Value>> {
    data(value).filter(|(name, _)| name == "else").map(|(_, children)| children)
}

fn damaged() -> EvalError {
    EvalError::illegal_argument("this is no predicate")
}

impl Predicate {
    /// The predicate that a value is: data as the module's header says, or a function.
    ///
    /// # Errors
    /// If the data are damaged.
    pub fn of(value: &Value) -> Outcome<Predicate> {
        Predicate::within(value, DEPTH_MAX)
    }

    fn within(value: &Value, depth: usize) -> Outcome<Predicate> {
        let Some((name, args)) = data(value) else {
            return Ok(Predicate::Holds(Operand::Function(Function::of(value))));
        };
        let depth = depth.checked_sub(1).ok_or_else(damaged)?;
        let all = |args: &[Value]| -> Outcome<Box<[Predicate]>> {
            args.iter().map(|arg| Predicate::within(arg, depth)).collect()
        };
        Ok(match (name.as_str(), &args[..]) {
            ("and", args) => Predicate::And(all(args)?),
            ("or", args) => Predicate::Or(all(args)?),
            ("not", [arg]) => Predicate::Not(Box::new(Predicate::within(arg, depth)?)),
            ("match", [function, pattern]) => Predicate::Match(Function::of(function), Matcher::of(pattern)),
            ("compare", [Value::Text(comparison), operands @ ..]) => {
                let comparison = Comparison::of(comparison).ok_or_else(damaged)?;
                let operands: Outcome<_> = operands.iter().map(Operand::of).collect();
                Predicate::Compare(comparison, operands?)
            }
            ("tagged-all", [tags]) => Predicate::Tagged { all: true, tags: tags_of(tags)? },
            ("tagged-any", [tags]) => Predicate::Tagged { all: false, tags: tags_of(tags)? },
            ("expired", []) => Predicate::Expired,
            ("nil", [operand]) => Predicate::IsNil(Operand::of(operand)?),
            _ => Predicate::Holds(Operand::of(value)?),
        })
    }

    /// Whether it is true of a value.
    ///
    /// # Errors
    /// What functions throw, and comparisons of what is no number.
    pub fn is_true(&self, value: &Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        match self {
            Predicate::And(all) => {
                for part in all {
                    if !part.is_true(value, turn)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Predicate::Or(all) => {
                for part in all {
                    if part.is_true(value, turn)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Predicate::Not(part) => Ok(!part.is_true(value, turn)?),
            Predicate::Match(function, matcher) => {
                with_value(function, value, turn, |value, turn| matcher.is_match(value, turn))
            }
            Predicate::Compare(comparison, operands) => compare(*comparison, operands, value, turn),
            Predicate::Tagged { all, tags } => Ok(is_tagged(value, tags, *all)),
            Predicate::Expired => fields::is_expired(value, turn.now_us()),
            Predicate::IsNil(operand) => operand.with(value, turn, |value, _| Ok(value.is_nil())),
            Predicate::Holds(operand) => operand.with(value, turn, |value, _| Ok(value.is_true())),
        }
    }

    /// The value of the expression: a boolean where it is a test.
    ///
    /// # Errors
    /// As [`Predicate::is_true`].
    pub fn value(&self, value: &Value, turn: &mut Turn<'_>) -> Outcome {
        match self {
            Predicate::Holds(operand) => operand.with(value, turn, |value, _| Ok(value.clone())),
            test => test.is_true(value, turn).map(Value::Bool),
        }
    }
}

/// Each operand and the next one; `not=` is true unless all are equal.
fn compare(
    comparison: Comparison,
    operands: &[Operand],
    value: &Value,
    turn: &mut Turn<'_>,
) -> Outcome<bool> {
    if comparison == Comparison::NotEqual {
        return compare(Comparison::Equal, operands, value, turn).map(|equal| !equal);
    }
    for pair in operands.windows(2) {
        let [a, b] = pair else { continue };
        let holds = a.with(value, turn, |a, turn| b.with(value, turn, |b, _| comparison.holds(a, b)))?;
        if !holds {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The tags of an argument: one text, or a list of them.
///
/// # Errors
/// If it is something else.
pub fn tags_of(value: &Value) -> Outcome<Box<[Value]>> {
    match value {
        Value::Text(_) => Ok(Box::new([value.clone()])),
        list => fields::items(list)
            .map(Into::into)
            .ok_or_else(|| EvalError::illegal_argument("tags are a text or a list of texts")),
    }
}

/// Whether an event has all tags, or one of them.
pub fn is_tagged(value: &Value, tags: &[Value], all: bool) -> bool {
    let own = fields::get(value, Field::Tags);
    let has = |tag: &Value| match own {
        Value::Vector(own) => own.iter().any(|own| own.equal(tag)),
        Value::List(own) => own.iter().any(|own| own.equal(tag)),
        Value::Set(own) => own.get(tag).is_some(),
        _ => false,
    };
    !own.is_nil() && if all { tags.iter().all(has) } else { tags.iter().any(has) }
}
