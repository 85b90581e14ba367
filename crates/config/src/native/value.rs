//! One value against its row: type, form and limits. What passes is [`Checked`]; what does not is a diagnostic.
//!
//! Called by `fields` for each option of a table. Not here: tables of options (`fields`), and what several options
//! must be together (the builders, `wiring`, `conflicts`).
//! Invariant: None is given only after a diagnostic was, so that a plan without diagnostics is whole.

use std::path::PathBuf;

use process::aggregate::SeriesExpiry;
use process::glob::Glob;

use super::tree::{Entry, Node, Value};
use crate::address::{BadAddress, parse_destination, parse_listen, parse_socket};
use crate::diagnostic::{Code, Diagnostic, Place, nearest};
pub(super) use crate::options::field::Checked;
use crate::options::{Row, Scheme, Type, quoted};
use crate::plan::Destination;
use crate::text::{duration, parse_duration, parse_size, size};

/// Most entries of a list: listeners, endpoints, names, percentiles, ….
pub(super) const LIST_MAX: usize = 1000;

/// Checks one value that is not a table of options. Mistakes go into `wrong`; None when there was one.
pub(super) fn check(row: &Row, node: &Node, wrong: &mut Vec<Diagnostic>) -> Option<Checked> {
    let key = row.key;
    match (row.value, &node.value) {
        (Type::Text, Value::Text(text)) => Some(Checked::Text(text.clone())),
        (Type::Path, Value::Text(text)) => path(key, text, node.place, wrong),
        (Type::Word(words), Value::Text(text)) => word(key, text, words, node.place, wrong),
        (Type::Flag, Value::Flag(flag)) => Some(Checked::Flag(*flag)),
        (Type::Whole { min, max }, Value::Number { whole: Some(number), .. }) => {
            whole(key, *number, (min, max), node.place, wrong)
        }
        (Type::Number { min, max }, Value::Number { value, .. }) => {
            if (min..=max).contains(value) {
                return Some(Checked::Number(*value));
            }
            wrong.push(out_of_range(key, &format!("{min} to {max}")).at(node.place));
            None
        }
        (Type::DurationOrOff { .. }, Value::Text(text)) if text == "off" => Some(Checked::Whole(0)),
        (Type::DurationOrOff { min_ms, max_ms }, _) => {
            measure(row, node, (min_ms, max_ms), &DURATION_OR_OFF, wrong)
        }
        (Type::Duration { min_ms, max_ms }, _) => measure(row, node, (min_ms, max_ms), &DURATION, wrong),
        (Type::Size { min, max }, _) => measure(row, node, (min, max), &SIZE, wrong),
        (Type::SizeOrOff { .. }, Value::Text(text)) if text == "off" => Some(Checked::Whole(0)),
        (Type::SizeOrOff { min, max }, _) => measure(row, node, (min, max), &SIZE_OR_OFF, wrong),
        (Type::Address, Value::Text(text)) => {
            let read = parse_socket(text).map_err(|bad| bad_address(key, bad, node.place));
            read.map_err(|diagnostic| wrong.push(diagnostic)).ok().map(Checked::Address)
        }
        (Type::Listen, _) => {
            let each = |text: &str| parse_listen(text);
            addresses(row, node, each, wrong).map(Checked::Listen)
        }
        (Type::Endpoints(schemes), _) => endpoints(row, node, schemes, wrong),
        (Type::Names | Type::Texts | Type::TextOrTexts, Value::List(list)) => {
            texts(row, list, node.place, wrong).map(Checked::Texts)
        }
        (Type::TextOrTexts, Value::Text(text)) => Some(Checked::Texts(vec![(text.clone(), node.place)])),
        (Type::Computes, Value::Table(_) | Value::List(_)) => {
            computes(key, node, wrong).map(Checked::Computes)
        }
        (Type::Words(words), Value::List(list)) => {
            let texts = texts(row, list, node.place, wrong)?;
            strange_words(key, &texts, words, wrong);
            Some(Checked::Texts(texts))
        }
        (Type::Percentiles, Value::List(list)) => percentiles(row, list, node.place, wrong),
        (Type::Bins, Value::List(list)) => bins(row, list, node.place, wrong),
        (Type::Expiry { gauges }, Value::Text(text)) => idle(row, text, gauges, node.place, wrong),
        (Type::Globs, Value::List(list)) => globs(row, list, node.place, wrong),
        (Type::Shares, Value::Table(entries)) => shares(row, entries, node.place, wrong),
        (Type::Map, Value::Table(entries)) => map(entries, wrong),
        (_, value) => {
            wrong.push(mismatch(row, value).at(node.place));
            None
        }
    }
}

/// A table of texts, or a list of such tables, with the place of each key.
fn computes(key: &str, node: &Node, wrong: &mut Vec<Diagnostic>) -> Option<Vec<((String, Place), String)>> {
    let before = wrong.len();
    let tables = match &node.value {
        Value::List(list) => bounded(key, list, node.place, wrong).then_some(&list[..])?,
        _ => std::slice::from_ref(node),
    };
    let mut pairs = Vec::new();
    for table in tables {
        let Value::Table(entries) = &table.value else {
            wrong.push(wrong_type(key, "a list of tables", &table.value).at(table.place));
            continue;
        };
        for entry in entries {
            match &entry.node.value {
                Value::Text(text) => pairs.push(((entry.key.clone(), entry.key_place), text.clone())),
                other => wrong.push(wrong_type(&entry.key, "a string", other).at(entry.node.place)),
            }
        }
    }
    (wrong.len() == before).then_some(pairs)
}

fn map(entries: &[Entry], wrong: &mut Vec<Diagnostic>) -> Option<Checked> {
    let mut map = Vec::with_capacity(entries.len());
    for entry in entries {
        match &entry.node.value {
            Value::Text(text) => map.push((entry.key.clone(), text.clone())),
            other => wrong.push(wrong_type(&entry.key, "a string", other).at(entry.node.place)),
        }
    }
    (map.len() == entries.len()).then_some(Checked::Map(map))
}

pub(super) fn wrong_type(key: &str, wanted: &str, got: &Value) -> Diagnostic {
    Diagnostic::error(Code::WrongType, format!("`{key}` must be {wanted}, not {}", got.kind()))
        .label(format!("this is {}", got.kind()))
}

/// A wrong type, with the right way to write what was probably meant.
fn mismatch(row: &Row, got: &Value) -> Diagnostic {
    let diagnostic = wrong_type(row.key, &row.value.wanted(), got);
    match (row.value, got) {
        (Type::Flag, Value::Text(text)) if matches!(&**text, "true" | "false") => {
            diagnostic.hint(format!("write {text} without quotes"))
        }
        (Type::Whole { .. } | Type::Number { .. }, Value::Text(text)) if text.parse::<f64>().is_ok() => {
            diagnostic.hint(format!("write {text} without quotes"))
        }
        (Type::Names | Type::Texts | Type::Globs | Type::Words(_), Value::Text(text)) => {
            diagnostic.hint(format!("write [\"{text}\"]"))
        }
        (Type::Percentiles | Type::Bins, Value::Number { value, .. }) => {
            diagnostic.hint(format!("write [{value}]"))
        }
        (Type::Address, Value::Number { whole: Some(port @ 1..=65_535), .. }) => {
            diagnostic.hint(format!("write \"127.0.0.1:{port}\""))
        }
        (Type::Text | Type::Map, Value::Number { value, .. }) => {
            diagnostic.hint(format!("write \"{value}\""))
        }
        _ => diagnostic,
    }
}

fn out_of_range(key: &str, limits: &str) -> Diagnostic {
    Diagnostic::error(Code::OutOfRange, format!("`{key}` is outside its limits"))
        .label(format!("must be {limits}"))
}

fn bad_address(key: &str, bad: BadAddress, place: Place) -> Diagnostic {
    let diagnostic = Diagnostic::error(Code::BadValue, format!("`{key}` has an invalid address"))
        .at(place)
        .label(bad.label);
    Diagnostic { hint: bad.hint, ..diagnostic }
}

fn path(key: &str, text: &str, place: Place, wrong: &mut Vec<Diagnostic>) -> Option<Checked> {
    if text.is_empty() || text.contains('\0') {
        wrong.push(
            Diagnostic::error(Code::BadValue, format!("`{key}` is not a path"))
                .at(place)
                .label(if text.is_empty() { "this is empty" } else { "a path cannot contain NUL" }),
        );
        return None;
    }
    Some(Checked::Path(PathBuf::from(text)))
}

fn word(
    key: &str,
    text: &str,
    words: &'static [&'static str],
    place: Place,
    wrong: &mut Vec<Diagnostic>,
) -> Option<Checked> {
    if let Some(word) = words.iter().find(|word| **word == text) {
        return Some(Checked::Word(word));
    }
    let mut diagnostic = Diagnostic::error(Code::BadValue, format!("`{key}` has an invalid value"))
        .at(place)
        .label(format!("must be one of {}", quoted(words)));
    diagnostic.hint = nearest(text, words.iter().copied()).map(|word| format!("did you mean \"{word}\"?"));
    wrong.push(diagnostic);
    None
}

fn whole(
    key: &str,
    number: i64,
    (min, max): (u64, u64),
    place: Place,
    wrong: &mut Vec<Diagnostic>,
) -> Option<Checked> {
    match u64::try_from(number).ok().filter(|number| (min..=max).contains(number)) {
        Some(number) => Some(Checked::Whole(number)),
        None => {
            wrong.push(out_of_range(key, &format!("{min} to {max}")).at(place));
            None
        }
    }
}

/// A quantity that is written with its unit.
struct Measure {
    parse: fn(&str) -> Option<u64>,
    text: fn(u64) -> String,
    forms: &'static str,
    /// Unit to offer when a bare number was given.
    unit: &'static str,
}

const DURATION: Measure =
    Measure { parse: parse_duration, text: duration, forms: "a number and ms, s, m, h or d", unit: "s" };
const DURATION_OR_OFF: Measure = Measure { forms: "a number and ms, s, m, h or d, or \"off\"", ..DURATION };
const SIZE: Measure =
    Measure { parse: parse_size, text: size, forms: "a number and B, KiB, MiB, GiB or TiB", unit: "B" };
const SIZE_OR_OFF: Measure = Measure { forms: "a number and B, KiB, MiB, GiB or TiB, or \"off\"", ..SIZE };

/// What was probably meant by a number without a unit, or with one of other programs.
fn with_our_unit(text: &str, measure: &Measure) -> Option<String> {
    const OTHERS: [(&[&str], &str); 9] = [
        (&["tb", "t"], "TiB"),
        (&["gb", "g"], "GiB"),
        (&["mb", "m"], "MiB"),
        (&["kb", "k"], "KiB"),
        (&["bytes", "byte"], "B"),
        (&["days", "day"], "d"),
        (&["hours", "hour", "hrs", "hr"], "h"),
        (&["minutes", "minute", "mins", "min"], "m"),
        (&["seconds", "second", "secs", "sec"], "s"),
    ];
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim().to_ascii_lowercase();
    let ours = match &*unit {
        "" => Some(measure.unit),
        _ => OTHERS.iter().find(|(others, _)| others.contains(&&*unit)).map(|(_, ours)| *ours),
    };
    let whole = format!("{number}{}", ours?);
    (measure.parse)(&whole).map(|_| whole)
}

fn measure(
    row: &Row,
    node: &Node,
    (min, max): (u64, u64),
    measure: &Measure,
    wrong: &mut Vec<Diagnostic>,
) -> Option<Checked> {
    let Value::Text(text) = &node.value else {
        let mut diagnostic = mismatch(row, &node.value).at(node.place);
        if let Value::Number { value, .. } = node.value {
            diagnostic.hint = Some(format!("write it with its unit, such as \"{value}{}\"", measure.unit));
        }
        wrong.push(diagnostic);
        return None;
    };
    let Some(value) = (measure.parse)(text) else {
        let message = format!("`{}` is not {}", row.key, row.value.wanted());
        let mut diagnostic = Diagnostic::error(Code::BadValue, message)
            .at(node.place)
            .label(format!("must be {}", measure.forms));
        diagnostic.hint = with_our_unit(text, measure).map(|ours| format!("write \"{ours}\""));
        wrong.push(diagnostic);
        return None;
    };
    if !(min..=max).contains(&value) {
        let limits = format!("{} to {}", (measure.text)(min), (measure.text)(max));
        wrong.push(out_of_range(row.key, &limits).at(node.place));
        return None;
    }
    Some(Checked::Whole(value))
}

/// A list of addresses; one alone may stand without brackets.
fn addresses<T>(
    row: &Row,
    node: &Node,
    parse: impl Fn(&str) -> Result<T, BadAddress>,
    wrong: &mut Vec<Diagnostic>,
) -> Option<Vec<(T, Place)>> {
    let Value::List(list) = &node.value else {
        let mut diagnostic = mismatch(row, &node.value).at(node.place);
        diagnostic.hint = match &node.value {
            Value::Text(text) => match parse(text) {
                Ok(_) => Some(format!("write [\"{text}\"]")),
                Err(bad) => bad.hint,
            },
            Value::Number { value, .. } => parse(&value.to_string()).err().and_then(|bad| bad.hint),
            _ => diagnostic.hint,
        };
        wrong.push(diagnostic);
        return None;
    };
    let texts = texts(row, list, node.place, wrong)?;
    if texts.is_empty() {
        wrong.push(empty(row.key, node.place));
        return None;
    }
    let before = wrong.len();
    let mut read = Vec::with_capacity(texts.len());
    for (text, place) in &texts {
        match parse(text) {
            Ok(address) => read.push((address, *place)),
            Err(bad) => wrong.push(bad_address(row.key, bad, *place)),
        }
    }
    (wrong.len() == before).then_some(read)
}

pub(super) fn empty(key: &str, place: Place) -> Diagnostic {
    Diagnostic::error(Code::Empty, format!("`{key}` is empty")).at(place).label("at least one is needed")
}

fn endpoints(row: &Row, node: &Node, schemes: &[Scheme], wrong: &mut Vec<Diagnostic>) -> Option<Checked> {
    let read = addresses(row, node, |text| parse_destination(text, schemes), wrong)?;
    let mut distinct: Vec<(Destination, Place)> = Vec::with_capacity(read.len());
    for (endpoint, place) in read {
        if distinct.iter().any(|(other, _)| *other == endpoint) {
            wrong.push(repeated(row.key, place));
        } else {
            distinct.push((endpoint, place));
        }
    }
    Some(Checked::Endpoints(distinct))
}

pub(super) fn repeated(key: &str, place: Place) -> Diagnostic {
    Diagnostic::error(Code::Repeated, format!("`{key}` has an entry twice")).at(place).label("the second one")
}

/// A list of texts, each with its place.
fn texts(
    row: &Row,
    list: &[Node],
    place: Place,
    wrong: &mut Vec<Diagnostic>,
) -> Option<Vec<(String, Place)>> {
    if !bounded(row.key, list, place, wrong) {
        return None;
    }
    let before = wrong.len();
    let mut texts = Vec::with_capacity(list.len());
    for node in list {
        match &node.value {
            Value::Text(text) => texts.push((text.clone(), node.place)),
            other => wrong.push(wrong_type(row.key, &row.value.wanted(), other).at(node.place)),
        }
    }
    (wrong.len() == before).then_some(texts)
}

fn bounded(key: &str, list: &[Node], place: Place, wrong: &mut Vec<Diagnostic>) -> bool {
    if list.len() > LIST_MAX {
        wrong.push(too_many(key, list.len(), place));
    }
    list.len() <= LIST_MAX
}

/// A pattern of names.
fn glob(key: &str, text: &str, place: Place, wrong: &mut Vec<Diagnostic>) -> Option<Glob> {
    let bad = |error: process::glob::GlobError| {
        let message = format!("`{key}` has an invalid pattern");
        Diagnostic::error(Code::BadValue, message).at(place).label(error.to_string())
    };
    Glob::new(text.as_bytes()).map_err(|error| wrong.push(bad(error))).ok()
}

fn globs(row: &Row, list: &[Node], place: Place, wrong: &mut Vec<Diagnostic>) -> Option<Checked> {
    let texts = texts(row, list, place, wrong)?;
    let globs: Vec<Glob> =
        texts.iter().filter_map(|(text, place)| glob(row.key, text, *place, wrong)).collect();
    (globs.len() == texts.len()).then_some(Checked::Globs(globs))
}

fn shares(row: &Row, entries: &[Entry], place: Place, wrong: &mut Vec<Diagnostic>) -> Option<Checked> {
    if entries.len() > LIST_MAX {
        wrong.push(too_many(row.key, entries.len(), place));
        return None;
    }
    let mut shares = Vec::with_capacity(entries.len());
    for entry in entries {
        let glob = glob(row.key, &entry.key, entry.key_place, wrong);
        match (&entry.node.value, glob) {
            (Value::Number { value, .. }, glob) if (0.0..=1.0).contains(value) => {
                shares.extend(glob.map(|glob| (glob, *value)));
            }
            (Value::Number { .. }, _) => {
                wrong.push(out_of_range(row.key, "0 to 1").at(entry.node.place));
            }
            (other, _) => wrong.push(wrong_type(&entry.key, "a number", other).at(entry.node.place)),
        }
    }
    (shares.len() == entries.len()).then_some(Checked::Shares(shares))
}

fn too_many(key: &str, number: usize, place: Place) -> Diagnostic {
    let message = format!("`{key}` has {number} entries");
    Diagnostic::error(Code::TooMany, message).at(place).label(format!("at most {LIST_MAX}"))
}

/// Words that mean nothing do no harm: a warning, so that the originals' lists can be kept as they are.
fn strange_words(
    key: &str,
    texts: &[(String, Place)],
    words: &'static [&'static str],
    wrong: &mut Vec<Diagnostic>,
) {
    for (text, place) in texts {
        if words.contains(&&**text) {
            continue;
        }
        let near = nearest(text, words.iter().copied()).map(|word| format!("did you mean \"{word}\"?"));
        let diagnostic = Diagnostic::warning(Code::NoEffect, format!("`{key}`: unknown name \"{text}\""))
            .at(*place)
            .label("this entry has no effect");
        wrong.push(diagnostic.hint(near.unwrap_or_else(|| format!("there are {}", words.join(", ")))));
    }
}

/// A number, or a text that says one, with the text that names are made of.
fn limit(node: &Node) -> Option<(f64, String)> {
    match &node.value {
        Value::Number { value, .. } => Some((*value, value.to_string())),
        Value::Text(text) if text == "inf" => Some((f64::INFINITY, "inf".into())),
        Value::Text(text) => {
            let plain = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e'));
            text.parse().ok().filter(|_| plain).map(|value| (value, text.clone()))
        }
        _ => None,
    }
}

fn percentiles(row: &Row, list: &[Node], place: Place, wrong: &mut Vec<Diagnostic>) -> Option<Checked> {
    if !bounded(row.key, list, place, wrong) {
        return None;
    }
    let mut limits: Vec<(f64, String)> = Vec::with_capacity(list.len());
    for node in list {
        match limit(node) {
            Some((value, _)) if !(-100.0..=100.0).contains(&value) => {
                wrong.push(out_of_range(row.key, "-100 to 100").at(node.place));
            }
            Some((_, text)) if limits.iter().any(|(_, other)| *other == text) => wrong.push(Diagnostic {
                severity: crate::diagnostic::Severity::Warning,
                ..repeated(row.key, node.place)
            }),
            Some(_) => {}
            None => wrong.push(wrong_type(row.key, &row.value.wanted(), &node.value).at(node.place)),
        }
        limits.extend(limit(node));
    }
    Some(Checked::Limits(limits))
}

fn bins(row: &Row, list: &[Node], place: Place, wrong: &mut Vec<Diagnostic>) -> Option<Checked> {
    if !bounded(row.key, list, place, wrong) {
        return None;
    }
    let mut limits: Vec<(f64, String)> = Vec::with_capacity(list.len());
    for node in list {
        let Some((value, text)) = limit(node).filter(|(value, _)| !value.is_nan()) else {
            wrong.push(wrong_type(row.key, &row.value.wanted(), &node.value).at(node.place));
            continue;
        };
        if limits.last().is_some_and(|(before, _)| *before >= value) {
            wrong.push(
                Diagnostic::error(Code::BadValue, format!("`{}` must ascend", row.key))
                    .at(node.place)
                    .label("not larger than the one before"),
            );
        }
        limits.push((value, text));
    }
    Some(Checked::Limits(limits))
}

/// Longest time that an idle series can be kept, in milliseconds.
const IDLE_MS_MAX: u64 = 365 * 86_400_000;

fn idle(row: &Row, text: &str, gauges: bool, place: Place, wrong: &mut Vec<Diagnostic>) -> Option<Checked> {
    let windows = text.strip_suffix(" windows").or_else(|| text.strip_suffix(" window"));
    let windows = windows.and_then(|number| number.parse::<u32>().ok());
    let refuse = |code, message: &str, label: String| {
        Diagnostic::error(code, format!("`{}` {message}", row.key)).at(place).label(label)
    };
    let refused = match (text, windows, parse_duration(text)) {
        ("keep", ..) => return Some(Checked::Expiry(SeriesExpiry::Keep)),
        ("delete", ..) => return Some(Checked::Expiry(SeriesExpiry::Delete { ttl_windows: 1 })),
        (_, Some(0), _) => refuse(Code::OutOfRange, "is outside its limits", "at least 1 window".into()),
        (_, Some(ttl_windows), _) if gauges || ttl_windows == 1 => {
            return Some(Checked::Expiry(SeriesExpiry::Delete { ttl_windows }));
        }
        (_, Some(_), _) => refuse(
            Code::BadValue,
            "cannot count windows",
            "only gauges can; write \"delete\" or a duration".into(),
        ),
        (_, None, Some(ms)) if ms % 1000 == 0 && (1000..=IDLE_MS_MAX).contains(&ms) => {
            return Some(Checked::Expiry(SeriesExpiry::After { seconds: ms / 1000 }));
        }
        (_, None, Some(_)) => {
            refuse(Code::OutOfRange, "is outside its limits", "whole seconds, 1s to 365d".into())
        }
        (_, None, None) => {
            refuse(Code::BadValue, "cannot be understood", format!("must be {}", row.value.wanted()))
        }
    };
    wrong.push(refused);
    None
}
