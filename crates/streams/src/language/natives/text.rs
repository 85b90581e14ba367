//! Texts, names, printing, and regular expressions.

use std::sync::Arc;

use super::arguments::{integer, text};
use crate::language::budget::TEXT_BYTES_MAX;
use crate::language::classes::cannot_cast;
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::{ANY, Machine};
use crate::language::natives::strings;
use crate::natives;
use crate::object::class;
use crate::object::pattern::Pattern;
use crate::print::{to_str, to_text};
use crate::symbol::split_name;
use crate::value::Value;

natives! {
    /// Texts.
    pub NATIVES = {
        "str", 0, ANY, "The texts of values, one after the other; nil is empty.", |m, a| { let text = joined(m, a, "", to_str)?; Ok(Value::from(text)) };
        "pr-str", 0, ANY, "Values as they are written in code, with spaces between.", |m, a| joined(m, a, " ", |v| to_text(v, true)).map(Value::from);
        "prn-str", 0, ANY, "As `pr-str`, with a line end.", |m, a| Ok(Value::from(joined(m, a, " ", |v| to_text(v, true))? + "\n"));
        "print-str", 0, ANY, "Values for humans, with spaces between.", |m, a| joined(m, a, " ", |v| to_text(v, false)).map(Value::from);
        "println-str", 0, ANY, "As `print-str`, with a line end.", |m, a| Ok(Value::from(joined(m, a, " ", |v| to_text(v, false))? + "\n"));
        "pr", 0, ANY, "Prints values as they are written in code.", |m, a| print(m, a, true, "");
        "prn", 0, ANY, "Prints values as they are written in code, and a line end.", |m, a| print(m, a, true, "\n");
        "print", 0, ANY, "Prints values for humans.", |m, a| print(m, a, false, "");
        "println", 0, ANY, "Prints values for humans, and a line end.", |m, a| print(m, a, false, "\n");
        "pprint", 1, 2, "Prints a value as it is written in code, and a line end.", |m, a| print(m, &mut a[..1], true, "\n");
        "newline", 0, 0, "Prints a line end.", |m, _| { m.print("\n"); Ok(Value::Nil) };
        "flush", 0, 0, "Nil: nothing is held back.", |_, _| Ok(Value::Nil);
        "format", 1, ANY, "A text with values in it, as Java's String.format writes them.", super::format::format;
        "printf", 1, ANY, "Prints what `format` makes.", |m, a| {
            let text = super::format::format(m, a)?;
            m.print(&to_str(&text));
            Ok(Value::Nil)
        };
        "subs", 2, 3, "A part of a text, from an index up to, but without, another.", strings::substring;
        "name", 1, 1, "The name of a keyword or a symbol, without its namespace; a text itself.", |_, a| name(&a[0]);
        "namespace", 1, 1, "The namespace of a keyword or a symbol, or nil.", |_, a| match &a[0] {
            Value::Keyword(name) => Ok(split_name(name).0.into()),
            Value::Symbol(symbol) => Ok(split_name(&symbol.name).0.into()),
            other => Err(cannot_cast(other, &class::KEYWORD)),
        };
        "keyword", 1, 2, "A keyword of a name, perhaps with a namespace.", |_, a| Ok(match a {
            [Value::Keyword(name)] => Value::Keyword(name.clone()),
            [Value::Text(name)] => Value::Keyword(name.clone()),
            [Value::Symbol(symbol)] => Value::Keyword(symbol.name.clone()),
            [Value::Nil, name] => Value::keyword(&to_str(&self::name(name)?)),
            [space, name] => Value::Keyword(arcstr::format!("{}/{}", to_str(&self::name(space)?), to_str(&self::name(name)?))),
            _ => Value::Nil,
        });
        "find-keyword", 1, 2, "A keyword of a name.", |_, a| name(&a[0]).map(|name| Value::keyword(&to_str(&name)));
        "symbol", 1, 2, "A symbol of a name, perhaps with a namespace.", |_, a| Ok(match a {
            [Value::Symbol(_)] => a[0].clone(),
            [Value::Keyword(name)] | [Value::Text(name)] => Value::symbol(name),
            [Value::Var(var)] => Value::symbol(&format!("{}/{}", var.namespace, var.name)),
            [Value::Nil, name] => Value::symbol(&to_str(name)),
            [space, name] => Value::symbol(&format!("{}/{}", to_str(space), to_str(name))),
            _ => return Err(cannot_cast(&a[0], &class::SYMBOL)),
        });
        "gensym", 0, 1, "A symbol that nobody else has.", |m, a| {
            let stem = a.first().map_or_else(|| "G__".to_owned(), to_str);
            Ok(Value::symbol(&format!("{stem}{}", m.world.unique())))
        };
        "char", 1, 1, "The character of a number.", |_, a| match &a[0] {
            Value::Char(_) => Ok(a[0].clone()),
            other => {
                let part = u32::try_from(integer(other)?).ok().filter(|code| *code <= 0xffff).and_then(char::from_u32);
                part.map(Value::Char).ok_or_else(|| EvalError::illegal_argument(format!("Value out of range for char: {}", to_str(other))))
            }
        };
        "re-pattern", 1, 1, "The regular expression of a text.", |m, a| match &a[0] {
            Value::Pattern(_) => Ok(a[0].clone()),
            other => pattern(m, text(other)?),
        };
        "re-find", 2, 2, "The first place where a regular expression matches, with its groups if it has some.", |m, a| {
            let (pattern, text) = (regex(&a[0])?, text(&a[1])?);
            m.budget.step(pattern.steps(text.len()))?;
            let found = pattern.search().captures(text.as_str()).map_err(too_hard)?;
            Ok(found.map(|found| groups(&found)).unwrap_or_default())
        };
        "re-matches", 2, 2, "The text, if a regular expression matches all of it, with its groups if it has some.", |m, a| {
            let (pattern, text) = (regex(&a[0])?, text(&a[1])?);
            m.budget.step(pattern.steps(text.len()))?;
            let whole = pattern.whole().map_err(|reason| EvalError::throw(&class::PATTERN_SYNTAX, reason))?;
            Ok(whole.captures(text.as_str()).map_err(too_hard)?.map(|found| groups(&found)).unwrap_or_default())
        };
        "re-seq", 2, 2, "All places where a regular expression matches; nil if there are none.", |m, a| {
            let (pattern, text) = (regex(&a[0])?, text(&a[1])?);
            m.budget.step(pattern.steps(text.len()))?;
            let mut all = Vec::new();
            for found in pattern.search().captures_iter(text.as_str()) {
                m.budget.step(pattern.steps(0))?;
                m.budget.memory(4 * size_of::<Value>())?;
                all.push(groups(&found.map_err(too_hard)?));
            }
            Ok(if all.is_empty() { Value::Nil } else { Value::list(all) })
        };
        "read-string", 1, 1, "The first form of a text.", |m, a| {
            let text = text(&a[0])?.clone();
            // Regular expressions in it are compiled.
            m.budget.step(1 + text.len() / 8 + READ_PATTERN_STEPS * text.matches("#\"").count())?;
            m.read_form(&text)?.ok_or_else(|| EvalError::throw(&class::RUNTIME_EXCEPTION, "EOF while reading"))
        };
        " with-out-str", 1, 1, "", |m, a| m.captured_print(&a[0].clone()).map(Value::from);
        "random-uuid", 0, 0, "The text of a random UUID.", |m, _| {
            let (high, low) = (m.host.random(), m.host.random());
            // Version 4, variant 1.
            let (high, low) = ((high & !0xf000) | 0x4000, (low & !(3 << 62)) | (2 << 62));
            Ok(Value::from(format!("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff, high & 0xffff, low >> 48, low & 0xffff_ffff_ffff)))
        };
    }
}

/// Steps for each regular expression that a text to be read may have.
const READ_PATTERN_STEPS: usize = 2_000;

/// The texts of values with a separator between them.
pub(super) fn joined(
    machine: &mut Machine<'_>,
    values: &[Value],
    separator: &str,
    text: fn(&Value) -> String,
) -> Outcome<String> {
    let mut all = String::new();
    for (index, value) in values.iter().enumerate() {
        let value = machine.realize(value)?;
        let part = text(&value);
        machine.budget.text(part.len() + separator.len())?;
        machine.budget.step((part.len() + separator.len()) / 256)?;
        if index > 0 {
            all.push_str(separator);
        }
        all.push_str(&part);
        if all.len() > TEXT_BYTES_MAX {
            return Err(EvalError::too_much_memory());
        }
    }
    Ok(all)
}

fn print(machine: &mut Machine<'_>, values: &mut [Value], readable: bool, end: &str) -> Outcome {
    let text = if readable { |v: &Value| to_text(v, true) } else { |v: &Value| to_text(v, false) };
    let text = joined(machine, values, " ", text)? + end;
    machine.print(&text);
    Ok(Value::Nil)
}

fn name(value: &Value) -> Outcome {
    match value {
        Value::Text(_) => Ok(value.clone()),
        Value::Keyword(name) => Ok(split_name(name).1.into()),
        Value::Symbol(symbol) => Ok(split_name(&symbol.name).1.into()),
        other => Err(cannot_cast(other, &class::KEYWORD)),
    }
}

/// The regular expression of a text.
pub(in crate::language) fn pattern(machine: &mut Machine<'_>, source: &arcstr::ArcStr) -> Outcome {
    // Compiling takes time and memory in proportion to the text, with a large factor.
    machine.budget.step(100 + 10 * source.len())?;
    machine.budget.memory(1000 + 100 * source.len())?;
    match Pattern::new(source.clone()) {
        Ok(pattern) => Ok(Value::Pattern(Arc::new(pattern))),
        Err(reason) => Err(EvalError::throw(&class::PATTERN_SYNTAX, reason)),
    }
}

pub(in crate::language) fn regex(value: &Value) -> Outcome<&Arc<Pattern>> {
    match value {
        Value::Pattern(pattern) => Ok(pattern),
        other => Err(cannot_cast(other, &class::PATTERN)),
    }
}

/// What a match is as a value: its text, or a vector with those of its groups too.
fn groups(found: &fancy_regex::Captures<'_, str>) -> Value {
    let group = |index| found.get(index).map(|group| Value::text(group.as_str())).unwrap_or_default();
    if found.len() == 1 { group(0) } else { Value::vector((0..found.len()).map(group)) }
}

/// A search that was given up.
pub(in crate::language) fn too_hard(error: fancy_regex::Error) -> EvalError {
    match error {
        fancy_regex::Error::RuntimeError(_) => EvalError::too_many_steps(),
        other => EvalError::throw(&class::PATTERN_SYNTAX, other.to_string()),
    }
}
