//! `clojure.string`. Indexes count UTF-16 units, as in Java.

use arcstr::ArcStr;
use fancy_regex::Captures;

use super::arguments::{integer, text};
use super::text::{pattern, regex, too_hard};
use crate::language::classes::cannot_cast;
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::Machine;
use crate::natives;
use crate::object::class;
use crate::print::to_str;
use crate::value::Value;

natives! {
    /// `clojure.string`
    pub NATIVES = {
        "join", 1, 2, "The texts of values, with a separator between them.", |m, a| {
            let (separator, of) = if a.len() == 2 { (to_str(&a[0]), &a[1]) } else { (String::new(), &a[0]) };
            let all = m.collect(of)?;
            super::text::joined(m, &all, &separator, to_str).map(Value::from)
        };
        "split", 2, 3, "A vector of the parts of a text between the places where a regular expression matches.", split;
        "split-lines", 1, 1, "A vector of the lines of a text.", |m, a| {
            let lines = pattern(m, &arcstr::literal!("\\r?\\n"))?;
            split(m, &mut [a[0].clone(), lines])
        };
        "replace", 3, 3, "A text with all places replaced where a text, a character or a regular expression is.", |m, a| replace(m, a, true);
        "replace-first", 3, 3, "A text with the first place replaced where a text, a character or a regular expression is.", |m, a| replace(m, a, false);
        "re-quote-replacement", 1, 1, "A text that replaces as it is.", |_, a| Ok(Value::from(looked_at(&to_str(&a[0])).replace('\\', "\\\\").replace('$', "\\$")));
        "upper-case", 1, 1, "A text in capital letters.", |m, a| changed(m, &a[0], str::to_uppercase);
        "lower-case", 1, 1, "A text in small letters.", |m, a| changed(m, &a[0], str::to_lowercase);
        "capitalize", 1, 1, "A text whose first letter is a capital one, and the others small.", |m, a| changed(m, &a[0], |text| {
            let mut parts = text.chars();
            parts.next().map(|first| first.to_uppercase().chain(parts.as_str().to_lowercase().chars()).collect()).unwrap_or_default()
        });
        "trim", 1, 1, "A text without white space at its ends.", |m, a| changed(m, &a[0], |text| text.trim_matches(is_space).to_owned());
        "triml", 1, 1, "A text without white space at its beginning.", |m, a| changed(m, &a[0], |text| text.trim_start_matches(is_space).to_owned());
        "trimr", 1, 1, "A text without white space at its end.", |m, a| changed(m, &a[0], |text| text.trim_end_matches(is_space).to_owned());
        "trim-newline", 1, 1, "A text without line ends at its end.", |m, a| changed(m, &a[0], |text| text.trim_end_matches(['\n', '\r']).to_owned());
        "reverse", 1, 1, "A text from its end to its beginning.", |m, a| changed(m, &a[0], |text| text.chars().rev().collect());
        "blank?", 1, 1, "Whether a text is nil or has nothing but white space.", |_, a| Ok((a[0].is_nil() || looked_at(text(&a[0])?).chars().all(is_space)).into());
        "starts-with?", 2, 2, "Whether a text begins with another one.", |_, a| Ok(required(&a[0])?.starts_with(text(&a[1])?.as_str()).into());
        "ends-with?", 2, 2, "Whether a text ends with another one.", |_, a| Ok(required(&a[0])?.ends_with(text(&a[1])?.as_str()).into());
        "includes?", 2, 2, "Whether a text has another one in it.", |_, a| Ok(looked_at(&required(&a[0])?).contains(text(&a[1])?.as_str()).into());
        "index-of", 2, 3, "The first index of a text or a character in a text, or nil.", |_, a| {
            let text = required(&a[0])?;
            let from = a.get(2).map_or(Ok(0), integer)?;
            Ok(index_of(&text, &to_str(&a[1]), from).into())
        };
        "last-index-of", 2, 3, "The last index of a text or a character in a text, or nil.", |_, a| {
            let text = required(&a[0])?;
            let from = a.get(2).map_or(Ok(i64::MAX), integer)?;
            Ok(last_index_of(&text, &to_str(&a[1]), from).into())
        };
        "escape", 2, 2, "A text whose characters are replaced as a function or a map has it.", |m, a| {
            let source = required(&a[0])?;
            let mut to = String::new();
            for part in source.chars() {
                let found = m.call(&a[1], &mut [Value::Char(part)])?;
                let found = if found.is_nil() { String::from(part) } else { to_str(&found) };
                m.budget.text(found.len())?;
                to.push_str(&found);
            }
            Ok(Value::from(to))
        };
    }
}

fn is_space(part: char) -> bool {
    // Java's white space has no non-breaking ones.
    part.is_whitespace() && !matches!(part, '\u{a0}' | '\u{2007}' | '\u{202f}' | '\u{85}')
        || ('\u{1c}'..='\u{1f}').contains(&part)
}

/// The text of a value that `toString` is called on: anything but nil.
pub(super) fn required(value: &Value) -> Outcome<ArcStr> {
    match value {
        Value::Nil => Err(cannot_cast(value, &class::STRING)),
        Value::Text(text) => Ok(text.clone()),
        other => Ok(to_str(other).into()),
    }
}

fn changed(machine: &mut Machine<'_>, value: &Value, change: impl Fn(&str) -> String) -> Outcome {
    let text = required(value)?;
    // A letter may become three.
    machine.budget.text(text.len())?;
    machine.budget.step(1 + text.len() / 64)?;
    Ok(Value::from(change(&text)))
}

/// Counts the effort of going through a text.
pub(super) fn looked_at(text: &str) -> &str {
    crate::effort::spend(text.len() / 8);
    text
}

/// The index in bytes of an index in UTF-16 units; `None` past the end.
pub(super) fn byte_index(text: &str, units: i64) -> Option<usize> {
    let wanted = usize::try_from(units).ok()?;
    if text.is_ascii() {
        return (wanted <= text.len()).then_some(wanted);
    }
    let mut at = 0;
    for (index, part) in text.char_indices() {
        if at >= wanted {
            return Some(index);
        }
        at += part.len_utf16();
    }
    (at == wanted).then_some(text.len())
}

fn unit_index(text: &str, bytes: usize) -> i64 {
    i64::try_from(text[..bytes].encode_utf16().count()).unwrap_or(i64::MAX)
}

pub(super) fn index_of(text: &str, part: &str, from: i64) -> Option<i64> {
    looked_at(text);
    let from = byte_index(text, from.max(0))?;
    text[from..].find(part).map(|found| unit_index(text, from + found))
}

pub(super) fn last_index_of(text: &str, part: &str, from: i64) -> Option<i64> {
    looked_at(text);
    let end = byte_index(text, from).unwrap_or(text.len()).saturating_add(part.len());
    let mut end = end.min(text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    text[..end].rfind(part).map(|found| unit_index(text, found))
}

/// `subs` and `.substring`.
pub(super) fn substring(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let source = text(&arguments[0])?;
    let start = integer(&arguments[1])?;
    let end = arguments.get(2).map(integer).transpose()?;
    let length = looked_at(source).encode_utf16().count();
    let range = byte_index(source, start).zip(end.map_or(Some(source.len()), |end| byte_index(source, end)));
    let Some((from, to)) = range.filter(|(from, to)| from <= to) else {
        let end = end.unwrap_or_else(|| i64::try_from(length).unwrap_or(i64::MAX));
        let message = format!("begin {start}, end {end}, length {length}");
        return Err(EvalError::throw(&class::STRING_INDEX, message));
    };
    machine.budget.text(to - from)?;
    Ok(Value::text(&source[from..to]))
}

/// The parts of a text; empty ones at the end are dropped, unless a limit says how many parts there are at most.
pub(super) fn split(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let (source, pattern) = (text(&arguments[0])?, regex(&arguments[1])?);
    let limit = arguments.get(2).map_or(Ok(0), integer)?;
    machine.budget.step(source.len() / 16 + pattern.steps(source.len()))?;
    machine.budget.memory(source.len())?;
    let mut parts = Vec::new();
    let mut from = 0;
    for found in pattern.search().find_iter(source.as_str()) {
        let found = found.map_err(too_hard)?;
        machine.budget.step(pattern.steps(0))?;
        if limit > 0 && parts.len() as i64 == limit - 1 {
            break;
        }
        machine.budget.memory(4 * size_of::<Value>())?;
        // An empty match at the beginning makes no part.
        if found.end() == 0 {
            continue;
        }
        parts.push(Value::text(&source[from..found.start()]));
        from = found.end();
    }
    parts.push(Value::text(&source[from..]));
    if limit == 0 {
        while parts.len() > 1 && parts.last().and_then(Value::as_text).is_some_and(|part| part.is_empty()) {
            parts.pop();
        }
        // A text of separators only has no parts at all, but an empty one has itself.
        if parts.len() == 1 && !source.is_empty() && parts[0].as_text().is_some_and(|part| part.is_empty()) {
            parts.clear();
        }
    }
    Ok(Value::vector(parts))
}

fn replace(machine: &mut Machine<'_>, arguments: &mut [Value], all: bool) -> Outcome {
    let source = required(&arguments[0])?;
    machine.budget.step(1 + source.len() / 16)?;
    let Value::Pattern(pattern) = &arguments[1] else {
        let (from, to) = match (&arguments[1], &arguments[2]) {
            (Value::Char(from), to @ Value::Char(_)) => (String::from(*from), to_str(to)),
            (Value::Text(from), Value::Text(to)) => (from.to_string(), to.to_string()),
            (other, _) => {
                let text = crate::print::to_text(other, true);
                return Err(EvalError::illegal_argument(format!("Invalid match arg: {text}")));
            }
        };
        let count = if all { source.matches(from.as_str()).count() } else { 1 };
        machine.budget.text(source.len() + count.saturating_mul(to.len()))?;
        return Ok(Value::from(if all {
            source.replace(&from, &to)
        } else {
            source.replacen(&from, &to, 1)
        }));
    };
    machine.budget.step(pattern.steps(source.len()))?;
    let mut to = String::new();
    let mut from = 0;
    for found in pattern.search().captures_iter(source.as_str()) {
        let found = found.map_err(too_hard)?;
        machine.budget.step(pattern.steps(0))?;
        let Some(whole) = found.get(0) else { continue };
        let part = match &arguments[2] {
            Value::Text(template) => expand(template, &found)?,
            Value::Char(part) => String::from(*part),
            function => {
                let group =
                    |index| found.get(index).map(|group| Value::text(group.as_str())).unwrap_or_default();
                let matched =
                    if found.len() == 1 { group(0) } else { Value::vector((0..found.len()).map(group)) };
                let made = machine.call(function, &mut [matched])?;
                text(&made)?.to_string()
            }
        };
        machine.budget.text(whole.start() - from + part.len())?;
        to.push_str(&source[from..whole.start()]);
        to.push_str(&part);
        from = whole.end();
        if to.len() > crate::language::budget::TEXT_BYTES_MAX {
            return Err(EvalError::too_much_memory());
        }
        if !all {
            break;
        }
    }
    to.push_str(&source[from..]);
    machine.budget.text(source.len())?;
    Ok(Value::from(to))
}

/// A replacement with its groups: `$1`, `${name}`; a backslash takes the next sign as it is.
fn expand(template: &str, found: &Captures<'_, str>) -> Outcome<String> {
    let wrong = |reason: &str| EvalError::illegal_argument(reason.to_owned());
    let mut to = String::new();
    let mut parts = template.chars();
    while let Some(part) = parts.next() {
        match part {
            '\\' => to.push(parts.next().ok_or_else(|| wrong("character to be escaped is missing"))?),
            '$' if parts.as_str().starts_with('{') => {
                let (name, rest) = parts.as_str()[1..]
                    .split_once('}')
                    .ok_or_else(|| wrong("named capturing group is missing trailing '}'"))?;
                let group = found.name(name);
                to.push_str(group.map_or("", |group| group.as_str()));
                parts = rest.chars();
            }
            '$' => {
                let digit = parts
                    .next()
                    .and_then(|part| part.to_digit(10))
                    .ok_or_else(|| wrong("Illegal group reference"))?;
                let mut number = digit as usize;
                if number >= found.len() {
                    return Err(EvalError::throw(&class::INDEX_OUT_OF_BOUNDS, format!("No group {number}")));
                }
                // More digits belong to the number as long as there is such a group.
                while let Some(digit) = parts.as_str().chars().next().and_then(|part| part.to_digit(10)) {
                    let next = number * 10 + digit as usize;
                    if next >= found.len() {
                        break;
                    }
                    number = next;
                    parts.next();
                }
                to.push_str(found.get(number).map_or("", |group| group.as_str()));
            }
            other => to.push(other),
        }
    }
    Ok(to)
}

/// An integer as Java's `parseLong` and `parseInt` take it.
pub(super) fn parse_integer(text: &str, radix: u32, least: i64, most: i64) -> Outcome {
    let wrong = || EvalError::throw(&class::NUMBER_FORMAT, format!("For input string: \"{text}\""));
    let value = i64::from_str_radix(text, radix).map_err(|_| wrong())?;
    if (least..=most).contains(&value) { Ok(value.into()) } else { Err(wrong()) }
}
