//! Functions that change names, or what consolidation does with a series.

use super::nodes;
use crate::query::call::{Answer, Call, Value};
use crate::query::error::QueryError;
use crate::query::numbers;
use crate::query::series::Series;
use crate::query::series::aggregate::Aggregation;
use crate::query::series::consolidate::Consolidation;

/// Longest format of `aliasQuery`, and most digits that it may ask for.
const FORMAT_BYTES_MAX: usize = 1 << 10;
const FORMAT_WIDTH_MAX: usize = 100;

fn rename(call: &mut Call<'_>, mut name: impl FnMut(&Series) -> Result<String, QueryError>) -> Answer {
    let mut series = call.args.series(0);
    for one in &mut series {
        call.engine.poll(one.values.len())?;
        // Expressions read each byte, at several steps a byte.
        call.engine.poll(16 * one.name.len())?;
        one.name = name(one)?;
    }
    Ok(Value::Series(series))
}

/// `alias(S, name)`.
pub(crate) fn alias(call: &mut Call<'_>) -> Answer {
    let name = call.args.text(1).unwrap_or_default().to_owned();
    rename(call, |_| Ok(name.clone()))
}

/// `aliasByNode(S, *nodes)` and `aliasByTags(S, *tags)`.
pub(crate) fn alias_by_node(call: &mut Call<'_>) -> Answer {
    let nodes = call.args.values(1).to_vec();
    rename(call, |one| Ok(nodes::key(one, &nodes)))
}

/// `aliasSub(S, search, replace)`.
pub(crate) fn alias_sub(call: &mut Call<'_>) -> Answer {
    let pattern = call.pattern(1)?;
    let replacement = pattern.replacement(call.args.text(2).unwrap_or_default())?;
    rename(call, |one| pattern.replace(&one.name, &replacement))
}

/// `aliasQuery(S, search, replace, newName)`: names from the last value of another series.
pub(crate) fn alias_query(call: &mut Call<'_>) -> Answer {
    let pattern = call.pattern(1)?;
    let replacement = pattern.replacement(call.args.text(2).unwrap_or_default())?;
    let format = call.args.text(3).unwrap_or_default().to_owned();
    let mut series = call.args.series(0);
    for one in &mut series {
        call.engine.poll(one.values.len())?;
        let query = pattern.replace(&one.name, &replacement)?;
        let range = call.range;
        let found = call.engine.evaluate_text(&query, range)?;
        let Some(first) = found.first() else {
            return Err(QueryError::argument(format!("no series found for `{query}`")));
        };
        let value = Aggregation::Last.of(&first.values);
        if value.is_nan() {
            return Err(QueryError::argument(format!("`{query}` has no value")));
        }
        one.name = formatted(&format, value, first.is_integer)?;
    }
    Ok(Value::Series(series))
}

/// A format with one `%d`, `%i`, `%s`, `%f`, `%g`, `%e` or with `%.2f`, as Python fills it in.
fn formatted(format: &str, value: f64, is_integer: bool) -> Result<String, QueryError> {
    let wrong =
        || QueryError::argument(format!("`{format}` needs one place for a number, such as `%d` or `%.2f`"));
    if format.len() > FORMAT_BYTES_MAX {
        return Err(QueryError::argument(format!("a format has at most {FORMAT_BYTES_MAX} bytes")));
    }
    let mut out = String::new();
    let mut places = 0;
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let kind = rest
            .find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '-' | '+' | ' '))
            .ok_or_else(wrong)?;
        let (flags, tail) = rest.split_at(kind);
        let kind = tail.chars().next().ok_or_else(wrong)?;
        rest = &tail[kind.len_utf8()..];
        if kind == '%' {
            out.push('%');
            continue;
        }
        places += 1;
        out.push_str(&one_place(flags, kind, value, is_integer).ok_or_else(wrong)?);
    }
    out.push_str(rest);
    if places == 1 { Ok(out) } else { Err(wrong()) }
}

fn one_place(flags: &str, kind: char, value: f64, is_integer: bool) -> Option<String> {
    let (width, precision) = flags.split_once('.').unwrap_or((flags, ""));
    let precision = if precision.is_empty() { 6 } else { precision.parse::<usize>().ok()? };
    let sign = if width.contains('+') && value >= 0.0 { "+" } else { "" };
    let digits = width.trim_start_matches(['-', '+', ' ', '0']);
    let padded = if digits.is_empty() { 0 } else { digits.parse::<usize>().ok()? };
    if precision > FORMAT_WIDTH_MAX || padded > FORMAT_WIDTH_MAX {
        return None;
    }
    let text = match kind {
        'd' | 'i' => numbers::decimal(value),
        's' if is_integer => numbers::decimal(value),
        's' => numbers::repr(value),
        'f' | 'F' => format!("{value:.precision$}"),
        'g' => numbers::general(value),
        _ => return None,
    };
    let text = format!("{sign}{text}");
    Some(match width.trim_start_matches(['+', ' ']).bytes().next() {
        Some(b'-') => format!("{text:<padded$}"),
        Some(b'0') if text.starts_with(['-', '+']) => {
            let rest = padded.saturating_sub(1);
            format!("{}{:0>rest$}", &text[..1], &text[1..])
        }
        Some(b'0') => format!("{text:0>padded$}"),
        _ => format!("{text:>padded$}"),
    })
}

/// A value with its prefix and units: `2.5` and `M`.
fn with_units(value: f64, system: &str, units: &str) -> (f64, String) {
    let (base, prefixes): (f64, [&str; 5]) = match system {
        "binary" => (1024.0, ["Pi", "Ti", "Gi", "Mi", "Ki"]),
        _ => (1000.0, ["P", "T", "G", "M", "k"]),
    };
    let whole = |scaled: f64| {
        let is_near = scaled - scaled.floor() < 1e-11 && value > 1.0;
        if is_near { scaled.floor() } else { scaled }
    };
    for (power, prefix) in (1..=5).rev().zip(prefixes) {
        let size = base.powi(power);
        if value.abs() >= size {
            return (whole(value / size), format!("{prefix}{units}"));
        }
    }
    (whole(value), units.to_owned())
}

/// A value as Python's `str` prints it.
fn printed(value: f64, is_integer: bool) -> String {
    if value.is_nan() {
        "None".to_owned()
    } else if is_integer {
        numbers::decimal(value)
    } else {
        numbers::repr(value)
    }
}

/// `legendValue(S, *valueTypes)`.
pub(crate) fn legend_value(call: &mut Call<'_>) -> Answer {
    let mut types: Vec<String> = call.args.values(1).iter().map(Value::text).collect();
    let system = types.pop_if(|last| last == "si" || last == "binary");
    call.engine.charge_steps(types.len())?;
    rename(call, |one| {
        let mut name = one.name.clone();
        for kind in &types {
            let function = Aggregation::from_name(kind);
            let value = function.map_or(f64::NAN, |function| function.of(&one.values));
            let is_whole =
                function.is_some_and(|f| f.keeps_integers() && one.is_integer || f == Aggregation::Count);
            let text = match (&system, function) {
                (_, None) => "(?)".to_owned(),
                (None, Some(_)) => printed(value, is_whole),
                (Some(_), Some(_)) if value.is_nan() => "None".to_owned(),
                (Some(system), Some(_)) => {
                    let (scaled, prefix) = with_units(value, system, "");
                    format!("{scaled:.2}{prefix}")
                }
            };
            name = match &system {
                None => format!("{name} ({kind}: {text})"),
                Some(_) => format!("{name:<20}{kind:<5}{text:<10}"),
            };
        }
        Ok(name)
    })
}

/// `cactiStyle(S, system, units)`.
pub(crate) fn cacti_style(call: &mut Call<'_>) -> Answer {
    let system = call.args.text(1).filter(|system| !system.is_empty()).map(str::to_owned);
    let units = call.args.text(2).unwrap_or_default().to_owned();
    let format = |value: f64| match &system {
        _ if value.is_nan() => "nan".to_owned(),
        Some(system) => {
            let (scaled, suffix) = with_units(value, system, &units);
            let space = if units.is_empty() { "" } else { " " };
            format!("{scaled:.2}{space}{suffix}")
        }
        None if units.is_empty() => format!("{value:.2}"),
        None => format!("{value:.2} {units}"),
    };
    let series = call.args.series(0);
    let functions = [Aggregation::Last, Aggregation::Max, Aggregation::Min];
    // Columns are as wide as the widest value without its fraction; 3 for a value that is missing or 0.
    let whole = |value: f64| if value.is_nan() || value == 0.0 { 3.0 } else { value.trunc() };
    let mut widths = [3; 3];
    for one in &series {
        call.engine.poll(3 * one.values.len())?;
        for (width, function) in widths.iter_mut().zip(functions) {
            *width = 3 + format(whole(function.of(&one.values))).chars().count().max(*width - 3);
        }
    }
    let name_width = series.iter().map(|one| one.name.chars().count()).max().unwrap_or(0);
    call.engine.charge_steps(name_width.saturating_mul(series.len()))?;
    let mut results = series;
    for one in &mut results {
        call.engine.poll(one.values.len())?;
        let [last, max, min] = functions.map(|function| format(function.of(&one.values)));
        let [a, b, c] = widths;
        one.name = format!("{:<name_width$} Current:{last:<a$} Max:{max:<b$} Min:{min:<c$} ", one.name);
    }
    Ok(Value::Series(results))
}

/// An index as Python's slices count it.
fn slice_start(start: i64, len: usize) -> usize {
    super::filter::slice_end(start, len)
}

/// `substr(S, start, stop)`.
pub(crate) fn substr(call: &mut Call<'_>) -> Answer {
    let (start, stop) = (call.args.int(1).unwrap_or(0), call.args.int(2).unwrap_or(0));
    rename(call, |one| Ok(part(&one.name, start, stop)))
}

/// `aliasByMetric(S)`: the last node.
pub(crate) fn alias_by_metric(call: &mut Call<'_>) -> Answer {
    rename(call, |one| Ok(part(&one.name, -1, 0)))
}

/// Nodes of the text inside the innermost parentheses, up to its first comma.
fn part(name: &str, start: i64, stop: i64) -> String {
    let left = name.rfind('(').map_or(0, |at| at + 1);
    let right = name.find(')').unwrap_or(name.len());
    let inner = name.get(left..right).unwrap_or_default();
    let nodes: Vec<&str> = inner.split('.').collect();
    let from = slice_start(start, nodes.len());
    let until = if stop == 0 { nodes.len() } else { super::filter::slice_end(stop, nodes.len()) };
    let joined = nodes.get(from..until).unwrap_or_default().join(".");
    joined.split(',').next().unwrap_or_default().to_owned()
}

/// `upper(S, *pos)` and `lower(S, *pos)`.
pub(crate) fn change_case(call: &mut Call<'_>, is_upper: bool) -> Answer {
    let places: Vec<i64> = call.args.values(1).iter().filter_map(|v| v.number()).map(|n| n as i64).collect();
    let change = |text: &str| if is_upper { text.to_uppercase() } else { text.to_lowercase() };
    call.engine.charge_steps(places.len())?;
    rename(call, |one| {
        if places.is_empty() {
            return Ok(change(&one.name));
        }
        let mut parts: Vec<String> = one.name.chars().map(String::from).collect();
        for place in &places {
            let at = if *place < 0 { place.checked_add(parts.len() as i64) } else { Some(*place) };
            if let Some(part) = at.and_then(|at| usize::try_from(at).ok()).and_then(|at| parts.get_mut(at)) {
                *part = change(part);
            }
        }
        Ok(parts.concat())
    })
}

/// `consolidateBy(S, consolidationFunc)`.
pub(crate) fn consolidate_by(call: &mut Call<'_>) -> Answer {
    let name = call.args.text(1).unwrap_or_default().to_owned();
    set_consolidation(call, &name)
}

/// Sets the consolidation function of a name.
pub(crate) fn set_consolidation(call: &mut Call<'_>, name: &str) -> Answer {
    let Some(function) = Consolidation::from_name(name) else {
        return Err(QueryError::argument(format!("unknown consolidation function `{name}`")));
    };
    let mut series = call.args.series(0);
    for one in &mut series {
        call.engine.poll(one.values.len())?;
        one.consolidation = function;
        one.tags.set("consolidateBy", name);
        one.rename_with_path(format!("consolidateBy({},\"{name}\")", one.name));
    }
    Ok(Value::Series(series))
}

/// `setXFilesFactor(S, x)`: also for what is evaluated later in the request.
pub(crate) fn set_x_files_factor(call: &mut Call<'_>) -> Answer {
    let factor = call.args.float(1).unwrap_or(0.0);
    call.engine.state().x_files_factor = Some(factor);
    let mut series = call.args.series(0);
    for one in &mut series {
        call.engine.poll(one.values.len())?;
        one.x_files_factor = factor;
        one.tags.set("xFilesFactor", numbers::repr(factor));
    }
    Ok(Value::Series(series))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_filled_in_as_in_python() {
        let table = [
            ("%d req/s", "3 req/s"),
            ("%.2f", "3.50"),
            ("%s%%", "3.5%"),
            ("%05.1f", "003.5"),
            ("%-6d|", "3     |"),
            ("%6d|", "     3|"),
            ("%+d", "+3"),
            ("%g", "3.5"),
        ];
        for (format, want) in table {
            assert_eq!(formatted(format, 3.5, false).as_deref(), Ok(want), "{format}");
        }
        for format in ["", "%", "%d %d", "%x", "%1000d", "%.1000f"] {
            assert!(formatted(format, 3.5, false).is_err(), "{format}");
        }
        assert!(formatted(&"%%".repeat(FORMAT_BYTES_MAX / 2 + 1), 1.0, false).is_err());
    }

    #[test]
    fn parts_are_those_of_the_innermost_call() {
        let table = [
            ("a.b.c", 1, 0, "b.c"),
            ("f(g(a.b.c,'x'),2)", 1, 2, "b"),
            ("f(a.b,'c')", 1, 0, "b"),
            ("a.b.c", -1, 0, "c"),
            ("a.b.c", 0, -1, "a.b"),
            ("a)b(c", 0, 0, ""),
            ("a", 5, 2, ""),
        ];
        for (name, start, stop, want) in table {
            assert_eq!(part(name, start, stop), want, "{name}");
        }
    }
}
