//! Checks one value against its row: type, format and limits. A valid value becomes [`Checked`]; others cause a
//! diagnostic.
//!
//! Called by `fields` for each option of a table. Not here: tables of options (`fields`), and conditions on several
//! options (the builders, `wiring`, `conflicts`).
//! Invariant: `None` is returned only after a diagnostic, so that a plan without diagnostics is complete.

use std::path::PathBuf;

use foldhash::HashSet;
use process::aggregate::SeriesExpiry;
use process::glob::Glob;
use process::relay::STATEMENTS_MAX;

use super::fields::{Fields, table};
use super::tree::{Entry, Node, Value};
use crate::address::{BadAddress, parse_destination, parse_listen, parse_socket};
use crate::diagnostic::{Code, Diagnostic, Place, Severity, did_you_mean};
pub(super) use crate::options::checked::Checked;
use crate::options::{Row, Section, Type, quoted};
use crate::text::{Quantity, number_and_unit, parse_duration};

/// Most entries of a list: listeners, endpoints, names, percentiles, ….
pub(super) const LIST_MAX: usize = 1000;

/// Most clusters of one relay.
const CLUSTERS_MAX: usize = 10_000;

/// A value or its error. An error without a place belongs to the whole value.
type Read<T> = Result<T, Diagnostic>;

/// The name of the top level in messages.
pub(super) const TOP: &str = "the top level";

/// Checks the value of an option in the section that `whose` names. Errors are added to `wrong`. `None` after an error,
/// and for sections with names.
pub(super) fn check(row: &Row, whose: &str, node: &Node, wrong: &mut Vec<Diagnostic>) -> Option<Checked> {
    read(row, whose, node, wrong).unwrap_or_else(|mistake| {
        wrong.push(placed(mistake, node.place));
        None
    })
}

/// The value; `None` after a part of it was reported as invalid.
fn read(row: &Row, whose: &str, node: &Node, wrong: &mut Vec<Diagnostic>) -> Read<Option<Checked>> {
    let key = row.key;
    let plain;
    let node = match (row.value, &node.value) {
        // The value of a variable has no type of its own.
        (Type::Flag | Type::Whole { .. } | Type::Number { .. }, Value::Text(text)) if node.substituted => {
            plain = Node { value: super::yaml::plain_scalar(text), ..node.clone() };
            &plain
        }
        _ => node,
    };
    Ok(match (row.value, &node.value) {
        (Type::Named(_), _) => None,
        // Any kind except gauges, because "3 windows" is not allowed for the others.
        (Type::Table(Section::Expiry), Value::Text(text)) => Some(expiry("counters", text, false)?),
        (Type::Table(_) | Type::Tables(_) | Type::TableOrTables(_) | Type::NamedTables(_), _) => {
            return table_of_options(row, whose, node, wrong).map(Some);
        }
        (Type::Names | Type::Texts | Type::TextOrTexts, Value::List(list)) => {
            texts(row, list, wrong, |text| Ok(text.to_owned()))?.map(Checked::Texts)
        }
        (Type::Words(words), Value::List(list)) => {
            let texts = texts(row, list, wrong, |text| Ok(text.to_owned()))?;
            wrong.extend(texts.iter().flatten().filter_map(|text| strange_word(key, text, words)));
            texts.map(Checked::Texts)
        }
        (Type::Listen | Type::Endpoints(_), Value::List(list)) if list.is_empty() => {
            return Err(empty(key, node.place));
        }
        (Type::Listen, Value::List(list)) => {
            texts(row, list, wrong, |text| parse_listen(text).map_err(|bad| bad_address(key, bad)))?
                .map(Checked::Listen)
        }
        (Type::Endpoints(schemes), Value::List(list)) => {
            let parse = |text: &str| parse_destination(text, schemes).map_err(|bad| bad_address(key, bad));
            let mut endpoints = texts(row, list, wrong, parse)?;
            let mut distinct = HashSet::default();
            if let Some(endpoints) = &mut endpoints {
                endpoints.retain(|(endpoint, place)| {
                    let is_new = distinct.insert(endpoint.clone());
                    wrong.extend((!is_new).then(|| repeated(key, *place)));
                    is_new
                });
            }
            endpoints.map(Checked::Endpoints)
        }
        (Type::Globs, Value::List(list)) => {
            let globs = texts(row, list, wrong, |text| glob(key, text))?;
            globs.map(|globs| Checked::Globs(globs.into_iter().map(|(glob, _)| glob).collect()))
        }
        (Type::Percentiles | Type::Bins, Value::List(list)) => limits(row, list, wrong)?.map(Checked::Limits),
        (Type::Shares, Value::Table(entries)) => {
            bounded(key, entries.len(), LIST_MAX)?;
            each(entries.iter().map(|entry| (entry.key_place, share(key, entry))), wrong).map(Checked::Shares)
        }
        (Type::Map, Value::Table(entries)) => {
            let pairs = entries.iter().map(|entry| (entry.node.place, pair(entry)));
            each(pairs, wrong)
                .map(|pairs| Checked::Map(pairs.into_iter().map(|((key, _), text)| (key, text)).collect()))
        }
        (Type::Computes, Value::Table(_)) => computes(key, std::slice::from_ref(node), wrong)?,
        (Type::Computes, Value::List(list)) => computes(key, list, wrong)?,
        _ => Some(single(row, node)?),
    })
}

/// A table of options, or several.
fn table_of_options(row: &Row, whose: &str, node: &Node, wrong: &mut Vec<Diagnostic>) -> Read<Checked> {
    let key = row.key;
    let mut read = |section, whose, place, entries| Fields::check(section, whose, place, entries, wrong);
    match (row.value, &node.value) {
        (Type::Tables(section) | Type::TableOrTables(section), Value::List(list)) => {
            tables(key, section, whose, list, wrong).map(Checked::Tables)
        }
        (Type::TableOrTables(section), _) => {
            Ok(Checked::Tables(vec![read(section, format!("`{key}`"), node.place, table(key, node)?)]))
        }
        (Type::NamedTables(section), _) => {
            named_tables(key, section, whose, table(key, node)?, wrong).map(Checked::NamedTables)
        }
        (Type::Table(section), _) => {
            let whose = if whose == TOP { format!("`{key}`") } else { format!("`{key}` of {whose}") };
            Ok(Checked::Table(read(section, whose, node.place, table(key, node)?)))
        }
        (_, value) => Err(mismatch(row, value)),
    }
}

/// A value that is neither a list nor a table.
fn single(row: &Row, node: &Node) -> Read<Checked> {
    let key = row.key;
    match (row.value, &node.value) {
        (Type::Text, Value::Text(text)) => Ok(Checked::Text(text.clone())),
        (Type::Path, Value::Text(text)) => path(key, text),
        (Type::Word(words), Value::Text(text)) => word(key, text, words),
        (Type::Flag, Value::Flag(flag)) => Ok(Checked::Flag(*flag)),
        (Type::Whole { min, max }, Value::Number { whole: Some(number), .. }) => {
            let number = u64::try_from(*number).ok().filter(|number| (min..=max).contains(number));
            number.map(Checked::Whole).ok_or_else(|| out_of_range(key, &format!("{min} to {max}")))
        }
        (Type::Number { min, max }, Value::Number { value, .. }) => match value {
            value if (min..=max).contains(value) => Ok(Checked::Number(*value)),
            _ => Err(out_of_range(key, &row.value.limits())),
        },
        (Type::Quantity { or_off: true, .. }, Value::Text(text)) if text == "off" => Ok(Checked::Whole(0)),
        (Type::Quantity { of, min, max, .. }, Value::Text(text)) => match of.parse(text) {
            Some(value) if (min..=max).contains(&value) => Ok(Checked::Whole(value)),
            Some(_) => Err(out_of_range(key, &row.value.limits())),
            None => Err(no_quantity(row, text, of)),
        },
        (Type::Address, Value::Text(text)) => {
            parse_socket(text).map(Checked::Address).map_err(|bad| bad_address(key, bad))
        }
        (Type::TextOrTexts, Value::Text(text)) => Ok(Checked::Texts(vec![(text.clone(), node.place)])),
        (Type::Expiry { gauges }, Value::Text(text)) => expiry(key, text, gauges),
        (_, value) => Err(mismatch(row, value)),
    }
}

/// The same error, at `place` unless it has a place.
fn placed(mistake: Diagnostic, place: Place) -> Diagnostic {
    Diagnostic { place: mistake.place.or(Some(place)), ..mistake }
}

/// All values; `None` when one of them is invalid. Each has the place next to it.
fn each<T>(values: impl Iterator<Item = (Place, Read<T>)>, wrong: &mut Vec<Diagnostic>) -> Option<Vec<T>> {
    let mut right = Vec::new();
    let before = wrong.len();
    for (place, value) in values {
        match value {
            Ok(value) => right.push(value),
            Err(mistake) => wrong.push(placed(mistake, place)),
        }
    }
    (wrong.len() == before).then_some(right)
}

/// A list of texts, each parsed by `parse`, with its place.
fn texts<T>(
    row: &Row,
    list: &[Node],
    wrong: &mut Vec<Diagnostic>,
    parse: impl Fn(&str) -> Read<T>,
) -> Read<Option<Vec<(T, Place)>>> {
    bounded(row.key, list.len(), LIST_MAX)?;
    let entry = |node: &Node| match &node.value {
        Value::Text(text) => Ok((parse(text)?, node.place)),
        other => Err(wrong_type(row.key, &row.value.wanted(), other)),
    };
    Ok(each(list.iter().map(|node| (node.place, entry(node))), wrong))
}

fn tables(
    key: &str,
    section: Section,
    whose: &str,
    list: &[Node],
    wrong: &mut Vec<Diagnostic>,
) -> Read<Vec<Fields>> {
    bounded(key, list.len(), if section == Section::RelayRule { STATEMENTS_MAX } else { LIST_MAX })?;
    let mut tables = Vec::with_capacity(list.len());
    for (at, node) in list.iter().enumerate() {
        let whose = match section {
            Section::RelayRule => format!("rule {} of {whose}", at + 1),
            Section::Histogram => format!("histogram {} of {whose}", at + 1),
            _ => format!("`{key}`"),
        };
        match table(key, node) {
            Ok(entries) => {
                // A table's place is only its brackets: the error is shown in its first line.
                let place = entries.first().map_or(node.place, |entry| entry.key_place);
                tables.push(Fields::check(section, whose, place, entries, wrong));
            }
            Err(mistake) => wrong.push(mistake),
        }
    }
    Ok(tables)
}

fn named_tables(
    key: &str,
    section: Section,
    whose: &str,
    entries: &[Entry],
    wrong: &mut Vec<Diagnostic>,
) -> Read<Vec<(String, Fields)>> {
    bounded(key, entries.len(), CLUSTERS_MAX)?;
    let mut tables = Vec::with_capacity(entries.len());
    for Entry { key: name, key_place, node } in entries {
        let whose = format!("cluster `{name}` of {whose}");
        match table(name, node) {
            Ok(entries) => {
                tables.push((name.clone(), Fields::check(section, whose, *key_place, entries, wrong)));
            }
            Err(mistake) => wrong.push(mistake),
        }
    }
    Ok(tables)
}

/// A table of texts, or a list of such tables, with the place of each key.
fn computes(key: &str, tables: &[Node], wrong: &mut Vec<Diagnostic>) -> Read<Option<Checked>> {
    bounded(key, tables.len(), LIST_MAX)?;
    let entries = |node: &Node| match &node.value {
        Value::Table(entries) => Ok(entries.clone()),
        other => Err(wrong_type(key, "a list of tables", other)),
    };
    let tables = each(tables.iter().map(|node| (node.place, entries(node))), wrong);
    let entries: Vec<Entry> = tables.iter().flatten().flatten().cloned().collect();
    let pairs = each(entries.iter().map(|entry| (entry.node.place, pair(entry))), wrong);
    Ok(pairs.filter(|_| tables.is_some()).map(Checked::Computes))
}

/// The key with its place, and the text.
fn pair(entry: &Entry) -> Read<((String, Place), String)> {
    match &entry.node.value {
        Value::Text(text) => Ok(((entry.key.clone(), entry.key_place), text.clone())),
        other => Err(wrong_type(&entry.key, "a string", other)),
    }
}

pub(super) fn wrong_type(key: &str, wanted: &str, got: &Value) -> Diagnostic {
    Diagnostic::error(Code::WrongType, format!("`{key}` must be {wanted}, not {}", got.kind()))
        .label(format!("this is {}", got.kind()))
}

/// A wrong type, with the correct way to write the probable meaning.
fn mismatch(row: &Row, got: &Value) -> Diagnostic {
    let hint = match (row.value, got) {
        (Type::Flag, Value::Text(text)) if matches!(&**text, "true" | "false") => {
            Some(format!("write {text} without quotes"))
        }
        (Type::Whole { .. } | Type::Number { .. }, Value::Text(text)) if text.parse::<f64>().is_ok() => {
            Some(format!("write {text} without quotes"))
        }
        (Type::Quantity { of, .. }, Value::Number { value, .. }) => {
            Some(format!("write it with its unit, such as \"{value}{}\"", of.usual))
        }
        (Type::Listen | Type::Endpoints(_), Value::Text(text)) => match bad_entry(row.value, text) {
            None => Some(format!("write [\"{text}\"]")),
            Some(bad) => bad.hint.map(as_list),
        },
        (Type::Listen | Type::Endpoints(_), Value::Number { value, .. }) => {
            bad_entry(row.value, &value.to_string()).and_then(|bad| bad.hint).map(as_list)
        }
        (Type::Names | Type::Texts | Type::Globs | Type::Words(_), Value::Text(text)) => {
            Some(format!("write [\"{text}\"]"))
        }
        (Type::Percentiles | Type::Bins, Value::Number { value, .. }) => Some(format!("write [{value}]")),
        (Type::Address, Value::Number { whole: Some(port @ 1..=65_535), .. }) => {
            Some(format!("write \"127.0.0.1:{port}\""))
        }
        (Type::Text | Type::Map, Value::Number { value, .. }) => Some(format!("write \"{value}\"")),
        _ => None,
    };
    Diagnostic { hint, ..wrong_type(row.key, &row.value.wanted(), got) }
}

/// A hint of what to write as an entry, for somebody who wrote no list: what it quotes gets brackets.
fn as_list(hint: String) -> String {
    let parts = hint.split('"').enumerate();
    parts.map(|(at, part)| if at % 2 == 1 { format!("[\"{part}\"]") } else { part.to_owned() }).collect()
}

/// The mistake in an entry of a list of addresses.
fn bad_entry(of: Type, text: &str) -> Option<BadAddress> {
    match of {
        Type::Endpoints(schemes) => parse_destination(text, schemes).err(),
        _ => parse_listen(text).err(),
    }
}

fn bad_value(message: String, label: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Code::BadValue, message).label(label)
}

fn out_of_range(key: &str, limits: &str) -> Diagnostic {
    Diagnostic::error(Code::OutOfRange, format!("`{key}` is outside its limits"))
        .label(format!("must be {limits}"))
}

fn bad_address(key: &str, bad: BadAddress) -> Diagnostic {
    Diagnostic { hint: bad.hint, ..bad_value(format!("`{key}` has an invalid address"), bad.label) }
}

fn path(key: &str, text: &str) -> Read<Checked> {
    let why = match text {
        "" => "this is empty",
        _ if text.contains('\0') => "a path cannot contain NUL",
        _ => return Ok(Checked::Path(PathBuf::from(text))),
    };
    Err(bad_value(format!("`{key}` is not a path"), why))
}

fn word(key: &str, text: &str, words: &'static [&'static str]) -> Read<Checked> {
    if let Some(word) = words.iter().find(|word| **word == text) {
        return Ok(Checked::Word(word));
    }
    let mistake =
        bad_value(format!("`{key}` has an invalid value"), format!("must be one of {}", quoted(words)));
    Err(Diagnostic { hint: did_you_mean(text, words.iter().copied()), ..mistake })
}

/// A text without a unit, or with another program's unit, with the probable meaning.
fn no_quantity(row: &Row, text: &str, of: &Quantity) -> Diagnostic {
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
    let (number, unit) = number_and_unit(text.trim());
    let unit = unit.trim().to_ascii_lowercase();
    let others = || OTHERS.iter().find(|(others, _)| others.contains(&&*unit)).map(|(_, ours)| *ours);
    let ours = if unit.is_empty() { Some(of.usual) } else { others() };
    let ours = ours.map(|ours| format!("{number}{ours}")).filter(|ours| of.parse(ours).is_some());
    let [first, second, third, fourth, last] = of.units();
    let or_off = if matches!(row.value, Type::Quantity { or_off: true, .. }) { ", or \"off\"" } else { "" };
    let label = format!("must be a number and {first}, {second}, {third}, {fourth} or {last}{or_off}");
    let mistake = bad_value(format!("`{}` is not {}", row.key, row.value.wanted()), label);
    Diagnostic { hint: ours.map(|ours| format!("write \"{ours}\"")), ..mistake }
}

pub(super) fn empty(key: &str, place: Place) -> Diagnostic {
    Diagnostic::error(Code::Empty, format!("`{key}` is empty")).at(place).label("at least one is needed")
}

pub(super) fn repeated(key: &str, place: Place) -> Diagnostic {
    Diagnostic::error(Code::Repeated, format!("`{key}` has an entry twice")).at(place).label("the second one")
}

fn bounded(key: &str, entries: usize, most: usize) -> Read<()> {
    if entries <= most {
        return Ok(());
    }
    let message = format!("`{key}` has {entries} entries");
    Err(Diagnostic::error(Code::TooMany, message).label(format!("at most {most}")))
}

/// A pattern of names.
fn glob(key: &str, text: &str) -> Read<Glob> {
    Glob::new(text.as_bytes())
        .map_err(|error| bad_value(format!("`{key}` has an invalid pattern"), error.to_string()))
}

fn share(key: &str, entry: &Entry) -> Read<(Glob, f64)> {
    let glob = glob(key, &entry.key)?;
    match &entry.node.value {
        Value::Number { value, .. } if (0.0..=1.0).contains(value) => Ok((glob, *value)),
        Value::Number { .. } => Err(out_of_range(key, "0 to 1").at(entry.node.place)),
        other => Err(wrong_type(&entry.key, "a number", other).at(entry.node.place)),
    }
}

/// Unknown words do no harm: a warning, so that lists of original programs can be used unchanged.
fn strange_word(key: &str, (text, place): &(String, Place), words: &[&str]) -> Option<Diagnostic> {
    if words.contains(&&**text) {
        return None;
    }
    let near = did_you_mean(text, words.iter().copied());
    let warning = Diagnostic::warning(Code::NoEffect, format!("`{key}`: unknown name \"{text}\"")).at(*place);
    let hint = near.unwrap_or_else(|| format!("there are {}", words.join(", ")));
    Some(warning.label("this entry has no effect").hint(hint))
}

/// Percentiles, or bins, which must ascend.
fn limits(row: &Row, list: &[Node], wrong: &mut Vec<Diagnostic>) -> Read<Option<Vec<(f64, String)>>> {
    let key = row.key;
    bounded(key, list.len(), LIST_MAX)?;
    let is_percentiles = row.value == Type::Percentiles;
    let one = |node: &Node| match limit(node) {
        Some((value, _)) if is_percentiles && !(-100.0..=100.0).contains(&value) => {
            Err(out_of_range(key, "-100 to 100"))
        }
        Some((value, text)) if !value.is_nan() => Ok((value, text)),
        _ => Err(wrong_type(key, &row.value.wanted(), &node.value)),
    };
    let limits = each(list.iter().map(|node| (node.place, one(node))), wrong);
    let read = limits.as_deref().unwrap_or_default();
    for (at, ((value, text), node)) in read.iter().zip(list).enumerate() {
        let before = &read[..at];
        if is_percentiles && before.iter().any(|(_, other)| other == text) {
            let severity = Severity::Warning;
            wrong.push(Diagnostic { severity, ..repeated(key, node.place) });
        } else if !is_percentiles && before.last().is_some_and(|(before, _)| before >= value) {
            let label = "not larger than the one before";
            wrong.push(bad_value(format!("`{key}` must ascend"), label).at(node.place));
        }
    }
    Ok(limits)
}

/// A number, or a text with one, and the text for names.
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

/// Longest expiry of idle series, in milliseconds.
const EXPIRY_MS_MAX: u64 = 365 * 86_400_000;

fn expiry(key: &str, text: &str, gauges: bool) -> Read<Checked> {
    let windows = text.strip_suffix(" windows").or_else(|| text.strip_suffix(" window"));
    let windows = windows.and_then(|number| number.parse::<u32>().ok());
    let out_of_range = |label: &str| {
        Err(Diagnostic::error(Code::OutOfRange, format!("`{key}` is outside its limits")).label(label))
    };
    let expiry = match (text, windows, parse_duration(text)) {
        ("keep", ..) => SeriesExpiry::Keep,
        ("delete", ..) => SeriesExpiry::Delete { ttl_windows: 1 },
        (_, Some(0), _) => return out_of_range("at least 1 window"),
        (_, Some(ttl_windows), _) if gauges || ttl_windows == 1 => SeriesExpiry::Delete { ttl_windows },
        (_, Some(_), _) => {
            let label = "only gauges can; write \"delete\" or a duration";
            return Err(bad_value(format!("`{key}` cannot count windows"), label));
        }
        (_, None, Some(ms)) if ms % 1000 == 0 && (1000..=EXPIRY_MS_MAX).contains(&ms) => {
            SeriesExpiry::After { seconds: ms / 1000 }
        }
        (_, None, Some(_)) => return out_of_range("whole seconds, 1s to 365d"),
        (_, None, None) => {
            let label = format!("must be {}", Type::Expiry { gauges }.wanted());
            return Err(bad_value(format!("`{key}` cannot be understood"), label));
        }
    };
    Ok(Checked::Expiry(expiry))
}
