//! Methods of Java's classes that configs call on texts, numbers, dates, exceptions and collections.

use super::arguments::{integer, number, text};
use super::strings::{self, index_of, last_index_of, looked_at, required};
use super::text::{pattern, too_hard};
use crate::collections::element::Element as _;
use crate::language::classes::{cannot_cast, class_of};
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::{ANY, Machine};
use crate::natives;
use crate::number::Number;
use crate::object::class;
use crate::print::to_str;
use crate::value::Value;

natives! {
    /// Methods, each with the value that it is called on as its first argument.
    pub NATIVES = {
        "toLowerCase", 1, 2, "A text in small letters.", |m, a| { m.budget.text(text(&a[0])?.len())?; Ok(Value::from(looked_at(text(&a[0])?).to_lowercase())) };
        "toUpperCase", 1, 2, "A text in capital letters.", |m, a| { m.budget.text(text(&a[0])?.len())?; Ok(Value::from(looked_at(text(&a[0])?).to_uppercase())) };
        "trim", 1, 1, "A text without spaces and control characters at its ends.", |_, a| Ok(Value::text(looked_at(text(&a[0])?).trim_matches(|part| part <= ' ')));
        "strip", 1, 1, "A text without white space at its ends.", |_, a| Ok(Value::text(looked_at(text(&a[0])?).trim()));
        "length", 1, 1, "How many UTF-16 units a text has.", |_, a| Ok(looked_at(text(&a[0])?).encode_utf16().count().into());
        "isEmpty", 1, 1, "Whether a text or a collection is empty.", |m, a| Ok(m.seq(&a[0])?.is_nil().into());
        "isBlank", 1, 1, "Whether a text has nothing but white space.", |_, a| Ok(looked_at(text(&a[0])?).trim().is_empty().into());
        "contains", 2, 2, "Whether a text has another one in it, or a collection a value.", |m, a| match &a[0] {
            Value::Text(of) => Ok(looked_at(of).contains(required(&a[1])?.as_str()).into()),
            Value::Set(_) => { let key = m.realize(&a[1])?; Ok(m.lookup(&a[0], &key).is_some().into()) }
            other => {
                let wanted = m.realize(&a[1])?;
                for value in m.collect(other)? { if m.realize(&value)? == wanted { return Ok(true.into()); } }
                Ok(false.into())
            }
        };
        "containsKey", 2, 2, "Whether a map has a key.", |m, a| { let key = m.realize(&a[1])?; Ok(m.lookup(&a[0], &key).is_some().into()) };
        "get", 2, 2, "The value of a key or an index.", |m, a| { let key = m.realize(&a[1])?; Ok(m.lookup(&a[0], &key).unwrap_or_default()) };
        "size", 1, 1, "How many values a collection has.", |m, a| super::sequences::length(m, &a[0]).map(Value::from);
        "startsWith", 2, 2, "Whether a text begins with another one.", |_, a| Ok(text(&a[0])?.starts_with(text(&a[1])?.as_str()).into());
        "endsWith", 2, 2, "Whether a text ends with another one.", |_, a| Ok(text(&a[0])?.ends_with(text(&a[1])?.as_str()).into());
        "equals", 2, 2, "Whether two values are equal.", |m, a| Ok((m.realize(&a[0])? == m.realize(&a[1])?).into());
        "equalsIgnoreCase", 2, 2, "Whether two texts are equal but for the case of letters.", |_, a| Ok((looked_at(text(&a[0])?).to_lowercase() == looked_at(text(&a[1])?).to_lowercase()).into());
        "compareTo", 2, 2, "-1, 0 or 1: how two values compare.", |m, a| super::predicates::order(m, &a[0], &a[1]).map(|order| crate::compare::difference(&a[0], &a[1], order).into());
        "indexOf", 2, 3, "The first index of a text or a character in a text, or -1.", |_, a| {
            let from = a.get(2).map_or(Ok(0), integer)?;
            Ok(index_of(text(&a[0])?, &to_str(&a[1]), from).unwrap_or(-1).into())
        };
        "lastIndexOf", 2, 3, "The last index of a text or a character in a text, or -1.", |_, a| {
            let from = a.get(2).map_or(Ok(i64::MAX), integer)?;
            Ok(last_index_of(text(&a[0])?, &to_str(&a[1]), from).unwrap_or(-1).into())
        };
        "substring", 2, 3, "A part of a text.", strings::substring;
        "charAt", 2, 2, "The character at an index.", |_, a| {
            let (of, index) = (text(&a[0])?, integer(&a[1])?);
            let found = strings::byte_index(of, index).and_then(|at| of[at..].chars().next());
            found.map(Value::Char).ok_or_else(|| EvalError::throw(&class::STRING_INDEX, format!("index {index}")))
        };
        "concat", 2, 2, "Two texts as one.", |m, a| super::text::joined(m, &[Value::Text(text(&a[0])?.clone()), Value::Text(text(&a[1])?.clone())], "", to_str).map(Value::from);
        "replace", 3, 3, "A text with all places replaced where another one is.", |m, a| {
            let (of, from, to) = (text(&a[0])?, to_str(&a[1]), to_str(&a[2]));
            looked_at(of);
            m.budget.text(of.len() + of.matches(from.as_str()).count().saturating_mul(to.len()))?;
            Ok(Value::from(of.replace(&from, &to)))
        };
        "replaceAll", 3, 3, "A text with all places replaced where a regular expression matches.", |m, a| replace(m, a, "replace");
        "replaceFirst", 3, 3, "A text with the first place replaced where a regular expression matches.", |m, a| replace(m, a, "replace-first");
        "matches", 2, 2, "Whether a regular expression matches all of a text.", |m, a| {
            let pattern = pattern(m, text(&a[1])?)?;
            let whole = super::text::regex(&pattern)?.whole().map_err(|reason| EvalError::throw(&class::PATTERN_SYNTAX, reason))?;
            Ok(whole.is_match(looked_at(text(&a[0])?)).map_err(too_hard)?.into())
        };
        "split", 2, 3, "The parts of a text between the places where a regular expression matches.", |m, a| {
            let pattern = pattern(m, text(&a[1])?)?;
            let mut given = vec![a[0].clone(), pattern];
            given.extend(a.get(2).cloned());
            strings::split(m, &mut given)
        };
        "getBytes", 1, 2, "The bytes of a text in UTF-8, as a vector of integers from -128 to 127.", |m, a| {
            let text = text(&a[0])?;
            m.budget.memory(text.len().saturating_mul(size_of::<Value>()))?;
            Ok(Value::vector(text.bytes().map(|byte| Value::from(i64::from(byte.cast_signed())))))
        };
        "toString", 1, 1, "The text of a value.", |m, a| if a[0].is_nil() { Err(cannot_cast(&a[0], &class::OBJECT)) } else { super::text::joined(m, &a[..1], "", to_str).map(Value::from) };
        "hashCode", 1, 1, "Java's hash of a value.", |m, a| match &a[0] {
            Value::Text(text) => Ok(i64::from(crate::hash::java_hash(text)).into()),
            other => Ok(i64::from(m.realize(other)?.hash()).into()),
        };
        "getName", 1, 1, "The name of a class, a namespace, a keyword or a symbol.", |_, a| Ok(match &a[0] {
            Value::Class(class) => class.name.into(),
            Value::Namespace(name) => Value::symbol(name),
            Value::Keyword(name) => crate::symbol::split_name(name).1.into(),
            Value::Symbol(symbol) => crate::symbol::split_name(&symbol.name).1.into(),
            other => return Err(cannot_cast(other, &class::CLASS)),
        });
        "getSimpleName", 1, 1, "The name of a class without its package.", |_, a| match &a[0] { Value::Class(class) => Ok(class.short_name().into()), other => Err(cannot_cast(other, &class::CLASS)) };
        "getClass", 1, 1, "The class of a value.", |_, a| if a[0].is_nil() { Err(cannot_cast(&a[0], &class::OBJECT)) } else { Ok(Value::Class(class_of(&a[0]))) };
        "intValue", 1, 1, "A number as an integer.", |_, a| Ok(integer(&a[0])?.into());
        "longValue", 1, 1, "A number as an integer.", |_, a| Ok(integer(&a[0])?.into());
        "doubleValue", 1, 1, "A number in double precision.", |_, a| Ok(number(&a[0])?.as_f64().into());
        "floatValue", 1, 1, "A number in single precision.", |_, a| Ok(Value::Number(Number::Float(number(&a[0])?.as_f64() as f32)));
        "isNaN", 1, 1, "Whether a number is not a number.", |_, a| Ok(number(&a[0])?.as_f64().is_nan().into());
        "isInfinite", 1, 1, "Whether a number is infinite.", |_, a| Ok(number(&a[0])?.as_f64().is_infinite().into());
        "getTime", 1, 1, "Milliseconds since 1970.", |_, a| match &a[0] { Value::Moment(instant) => Ok(instant.milliseconds.into()), other => Err(cannot_cast(other, &class::DATE)) };
        "getMillis", 1, 1, "Milliseconds since 1970.", |_, a| match &a[0] { Value::Moment(instant) => Ok(instant.milliseconds.into()), other => Err(cannot_cast(other, &class::DATE_TIME)) };
        "getHostName", 1, 1, "The name of this machine.", |_, a| Ok(a[0].clone());
        "getCanonicalHostName", 1, 1, "The name of this machine.", |_, a| Ok(a[0].clone());
        "getHostAddress", 1, 1, "The name of this machine: addresses are not looked up.", |_, a| Ok(a[0].clone());
        "getMessage", 1, 1, "The message of an exception, or nil.", |_, a| super::exceptions::required(&a[0]).map(super::exceptions::message);
        "getLocalizedMessage", 1, 1, "The message of an exception, or nil.", |_, a| super::exceptions::required(&a[0]).map(super::exceptions::message);
        "getCause", 1, 1, "The cause of an exception, or nil.", |_, a| super::exceptions::required(&a[0]).map(|exception| exception.cause.clone());
        "getData", 1, 1, "The map of an exception, or nil.", |_, a| super::exceptions::required(&a[0]).map(|exception| exception.data.clone());
        "getStackTrace", 1, 1, "An empty vector: exceptions have a place instead.", |_, a| super::exceptions::required(&a[0]).map(|_| Value::vector([]));
        "printStackTrace", 1, 1, "Prints an exception.", |m, a| {
            let text = to_str(&a[0]);
            m.host.print(&(text + "\n"));
            Ok(Value::Nil)
        };
        "keySet", 1, 1, "The keys of a map.", |m, a| Ok(Value::set(super::maps::entries(m, &a[0])?.into_iter().map(|(key, _)| key)));
        "values", 1, 1, "The values of a map.", |m, a| Ok(Value::list(super::maps::entries(m, &a[0])?.into_iter().map(|(_, value)| value).collect::<Vec<_>>()));
        "pattern", 1, 1, "The text of a regular expression.", |_, a| super::text::regex(&a[0]).map(|pattern| Value::Text(pattern.source.clone()));
        "invoke", 1, ANY, "Calls a function.", |m, a| { let (function, given) = a.split_first_mut().expect("the table asks for one argument at least"); m.call(function, given) };
    }
}

fn replace(machine: &mut Machine<'_>, arguments: &mut [Value], name: &str) -> Outcome {
    let pattern = pattern(machine, text(&arguments[1])?)?;
    let native = strings::NATIVES.iter().find(|native| native.name == name);
    let native = native.expect("the table of texts has it, and a test calls it");
    machine.call(&Value::Native(native), &mut [arguments[0].clone(), pattern, arguments[2].clone()])
}
