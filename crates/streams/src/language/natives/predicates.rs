//! Equality, order, and what a value is.

use std::cmp::Ordering;

use super::arguments::integer;
use crate::collections::element::Element as _;
use crate::collections::set::Set;
use crate::compare::{compare, difference};
use crate::language::classes::{cannot_cast, class_of};
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::{ANY, Machine};
use crate::natives;
use crate::object::class;
use crate::value::Value;

natives! {
    /// Predicates.
    pub NATIVES = {
        "=", 1, ANY, "Whether values are equal; numbers of different types are not.", |m, a| equal(m, a).map(Value::from);
        "not=", 1, ANY, "Whether values are not all equal.", |m, a| equal(m, a).map(|equal| (!equal).into());
        "identical?", 2, 2, "Whether two values are the same one.", identical;
        "compare", 2, 2, "Less than 0, 0 or more: how two values compare.", |m, a| order(m, &a[0], &a[1]).map(|order| difference(&a[0], &a[1], order).into());
        "hash", 1, 1, "Clojure's hash of a value.", |m, a| Ok(i64::from(m.realize(&a[0])?.hash()).into());
        "not", 1, 1, "Whether a value is nil or false.", |_, a| Ok((!a[0].is_true()).into());
        "boolean", 1, 1, "False of nil and false, else true.", |_, a| Ok(a[0].is_true().into());
        "identity", 1, 1, "The value itself.", |_, a| Ok(std::mem::take(&mut a[0]));
        "nil?", 1, 1, "Whether a value is nil.", |_, a| Ok(a[0].is_nil().into());
        "some?", 1, 1, "Whether a value is not nil.", |_, a| Ok((!a[0].is_nil()).into());
        "any?", 1, 1, "True.", |_, _| Ok(true.into());
        "true?", 1, 1, "Whether a value is true.", |_, a| Ok(matches!(a[0], Value::Bool(true)).into());
        "false?", 1, 1, "Whether a value is false.", |_, a| Ok(matches!(a[0], Value::Bool(false)).into());
        "boolean?", 1, 1, "Whether a value is true or false.", |_, a| Ok(matches!(a[0], Value::Bool(_)).into());
        "string?", 1, 1, "Whether a value is a text.", |_, a| Ok(matches!(a[0], Value::Text(_)).into());
        "char?", 1, 1, "Whether a value is a character.", |_, a| Ok(matches!(a[0], Value::Char(_)).into());
        "keyword?", 1, 1, "Whether a value is a keyword.", |_, a| Ok(matches!(a[0], Value::Keyword(_)).into());
        "symbol?", 1, 1, "Whether a value is a symbol.", |_, a| Ok(matches!(a[0], Value::Symbol(_)).into());
        "ident?", 1, 1, "Whether a value is a keyword or a symbol.", |_, a| Ok(matches!(a[0], Value::Keyword(_) | Value::Symbol(_)).into());
        "simple-keyword?", 1, 1, "Whether a value is a keyword without a namespace.", |_, a| Ok(keyword(&a[0], false).into());
        "qualified-keyword?", 1, 1, "Whether a value is a keyword with a namespace.", |_, a| Ok(keyword(&a[0], true).into());
        "simple-symbol?", 1, 1, "Whether a value is a symbol without a namespace.", |_, a| Ok(symbol(&a[0], false).into());
        "qualified-symbol?", 1, 1, "Whether a value is a symbol with a namespace.", |_, a| Ok(symbol(&a[0], true).into());
        "map?", 1, 1, "Whether a value is a map; an event is one.", |_, a| Ok(matches!(a[0], Value::Map(_) | Value::Event(_)).into());
        "record?", 1, 1, "Whether a value is a record: an event is one.", |_, a| Ok(matches!(a[0], Value::Event(_)).into());
        "vector?", 1, 1, "Whether a value is a vector.", |_, a| Ok(matches!(a[0], Value::Vector(_)).into());
        "map-entry?", 1, 1, "Whether a value is a vector of two.", |_, a| Ok(matches!(&a[0], Value::Vector(v) if v.len() == 2).into());
        "set?", 1, 1, "Whether a value is a set.", |_, a| Ok(matches!(a[0], Value::Set(_)).into());
        "list?", 1, 1, "Whether a value is a list.", |_, a| Ok(matches!(a[0], Value::List(_)).into());
        "seq?", 1, 1, "Whether a value is a list or another sequence, and no vector.", |_, a| Ok(matches!(a[0], Value::List(_) | Value::Seq(_)).into());
        "sequential?", 1, 1, "Whether a value is a list, a sequence or a vector.", |_, a| Ok(sequential(&a[0]).into());
        "coll?", 1, 1, "Whether a value is a collection.", |_, a| Ok(collection(&a[0]).into());
        "associative?", 1, 1, "Whether a value is a map or a vector.", |_, a| Ok(matches!(a[0], Value::Map(_) | Value::Event(_) | Value::Vector(_)).into());
        "counted?", 1, 1, "Whether the count of a value is known without a walk.", |_, a| Ok((collection(&a[0]) && !matches!(a[0], Value::Seq(_))).into());
        "seqable?", 1, 1, "Whether a value has a sequence.", |_, a| Ok((collection(&a[0]) || matches!(a[0], Value::Nil | Value::Text(_))).into());
        "sorted?", 1, 1, "Whether a value is a sorted collection, which none here is.", |_, _| Ok(false.into());
        "reversible?", 1, 1, "Whether a value is a vector.", |_, a| Ok(matches!(a[0], Value::Vector(_)).into());
        "indexed?", 1, 1, "Whether a value is a vector.", |_, a| Ok(matches!(a[0], Value::Vector(_)).into());
        "fn?", 1, 1, "Whether a value was made as a function.", |_, a| Ok(function(&a[0]).into());
        "ifn?", 1, 1, "Whether a value can be called.", |_, a| Ok((function(&a[0]) || callable(&a[0])).into());
        "var?", 1, 1, "Whether a value is a var.", |_, a| Ok(matches!(a[0], Value::Var(_)).into());
        "class?", 1, 1, "Whether a value is a class.", |_, a| Ok(matches!(a[0], Value::Class(_)).into());
        "inst?", 1, 1, "Whether a value is a time.", |_, a| Ok(matches!(a[0], Value::Moment(_)).into());
        "uuid?", 1, 1, "Whether a value is a UUID, which is a text here.", |_, _| Ok(false.into());
        "class", 1, 1, "The Java class of a value; nil of nil.", |_, a| Ok(class_or_nil(&a[0]));
        "type", 1, 1, "The Java class of a value; nil of nil.", |_, a| Ok(class_or_nil(&a[0]));
        "instance?", 2, 2, "Whether a value is of a class.", |_, a| match &a[0] {
            Value::Class(class) => Ok((!a[1].is_nil() && class_of(&a[1]).is_a(class)).into()),
            other => Err(cannot_cast(other, &class::CLASS)),
        };
        "distinct?", 1, ANY, "Whether no two values are equal.", |m, a| {
            let count = a.len();
            let set: Set<Value> = a.iter().map(|value| m.realize(value)).collect::<Outcome<Vec<_>>>()?.into_iter().collect();
            Ok((set.len() == count).into())
        };
    }
}

fn equal(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome<bool> {
    for index in 1..arguments.len() {
        let (before, from) = arguments.split_at_mut(index);
        let (a, b) = (&before[index - 1], &from[0]);
        // Collections of different sorts need no walk; a sequence is computed to be compared.
        let is_equal = if a.shape().lazy || b.shape().lazy {
            let (a, b) = (machine.realize(a)?, machine.realize(b)?);
            a.equal(&b)
        } else {
            a.equal(b)
        };
        if !is_equal {
            return Ok(false);
        }
    }
    Ok(true)
}

fn identical(_: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let same = match (&arguments[0], &arguments[1]) {
        (Value::Vector(a), Value::Vector(b)) => std::sync::Arc::ptr_eq(a, b),
        (Value::Map(a), Value::Map(b)) => std::sync::Arc::ptr_eq(a, b),
        (Value::Set(a), Value::Set(b)) => std::sync::Arc::ptr_eq(a, b),
        (Value::List(a), Value::List(b)) => std::sync::Arc::ptr_eq(a, b),
        (Value::Event(a), Value::Event(b)) => std::sync::Arc::ptr_eq(a, b),
        (a, b) => a.equal(b),
    };
    Ok(same.into())
}

/// How two values compare; texts and vectors too.
///
/// # Errors
/// If they have no order.
pub(in crate::language) fn order(machine: &mut Machine<'_>, a: &Value, b: &Value) -> Outcome<Ordering> {
    let (a, b) = (machine.realize(a)?, machine.realize(b)?);
    compare(&a, &b).ok_or_else(|| {
        let comparable = matches!(
            a,
            Value::Number(_) | Value::Text(_) | Value::Keyword(_) | Value::Symbol(_) | Value::Char(_)
        );
        if comparable {
            cannot_cast(&b, class_of(&a))
        } else {
            EvalError::throw(
                &class::CLASS_CAST,
                format!("{} cannot be cast to java.lang.Comparable", class_of(&a).name),
            )
        }
    })
}

/// How a function says that two values compare: a number, or whether the first comes before the second.
pub(in crate::language) fn order_by(
    machine: &mut Machine<'_>,
    by: &Value,
    a: &Value,
    b: &Value,
) -> Outcome<Ordering> {
    match machine.call(by, &mut [a.clone(), b.clone()])? {
        Value::Bool(true) => Ok(Ordering::Less),
        Value::Bool(false) | Value::Nil => {
            let after = machine.call(by, &mut [b.clone(), a.clone()])?;
            Ok(if after.is_true() { Ordering::Greater } else { Ordering::Equal })
        }
        number => Ok(integer(&number)?.cmp(&0)),
    }
}

fn keyword(value: &Value, qualified: bool) -> bool {
    matches!(value, Value::Keyword(name) if crate::symbol::split_name(name).0.is_some() == qualified)
}

fn symbol(value: &Value, qualified: bool) -> bool {
    value.as_symbol().is_some_and(|name| crate::symbol::split_name(name).0.is_some() == qualified)
}

pub(in crate::language) fn sequential(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Seq(_) | Value::Vector(_))
}

pub(in crate::language) fn collection(value: &Value) -> bool {
    sequential(value) || matches!(value, Value::Map(_) | Value::Event(_) | Value::Set(_))
}

fn function(value: &Value) -> bool {
    matches!(value, Value::Closure(_) | Value::Native(_) | Value::Bound(_) | Value::Stream(_))
}

fn callable(value: &Value) -> bool {
    matches!(
        value,
        Value::Keyword(_)
            | Value::Symbol(_)
            | Value::Map(_)
            | Value::Event(_)
            | Value::Set(_)
            | Value::Vector(_)
            | Value::Var(_)
    )
}

fn class_or_nil(value: &Value) -> Value {
    if value.is_nil() { Value::Nil } else { Value::Class(class_of(value)) }
}
