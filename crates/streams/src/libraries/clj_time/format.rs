//! `clj-time.format`: times to texts and back, by Joda's patterns.

use super::moments::{joda, moment, named, now, too_far, zone};
use super::pattern::Pattern;
use crate::graph::Graph;
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::{ANY, Machine};
use crate::natives;
use crate::nodes::fields;
use crate::object::class;
use crate::object::time::{Moment, Zone};
use crate::print::to_str;
use crate::value::Value;

/// The formatters of clj-time. `X` is an offset that is `Z` for UTC, as Joda's ISO formats write it.
const FORMATTERS: &[(&str, &[&str])] = &[
    ("basic-date", &["yyyyMMdd"]),
    ("basic-date-time", &["yyyyMMdd'T'HHmmss.SSSX"]),
    ("basic-date-time-no-ms", &["yyyyMMdd'T'HHmmssX"]),
    ("basic-ordinal-date", &["yyyyDDD"]),
    ("basic-ordinal-date-time", &["yyyyDDD'T'HHmmss.SSSX"]),
    ("basic-ordinal-date-time-no-ms", &["yyyyDDD'T'HHmmssX"]),
    ("basic-time", &["HHmmss.SSSX"]),
    ("basic-time-no-ms", &["HHmmssX"]),
    ("basic-t-time", &["'T'HHmmss.SSSX"]),
    ("basic-t-time-no-ms", &["'T'HHmmssX"]),
    ("basic-week-date", &["xxxx'W'wwe"]),
    ("basic-week-date-time", &["xxxx'W'wwe'T'HHmmss.SSSX"]),
    ("basic-week-date-time-no-ms", &["xxxx'W'wwe'T'HHmmssX"]),
    ("date", &["yyyy-MM-dd"]),
    ("date-hour", &["yyyy-MM-dd'T'HH"]),
    ("date-hour-minute", &["yyyy-MM-dd'T'HH:mm"]),
    ("date-hour-minute-second", &["yyyy-MM-dd'T'HH:mm:ss"]),
    ("date-hour-minute-second-fraction", &["yyyy-MM-dd'T'HH:mm:ss.SSS"]),
    ("date-hour-minute-second-ms", &["yyyy-MM-dd'T'HH:mm:ss.SSS"]),
    ("date-time", &["yyyy-MM-dd'T'HH:mm:ss.SSSXX"]),
    ("date-time-no-ms", &["yyyy-MM-dd'T'HH:mm:ssXX"]),
    ("hour", &["HH"]),
    ("hour-minute", &["HH:mm"]),
    ("hour-minute-second", &["HH:mm:ss"]),
    ("hour-minute-second-fraction", &["HH:mm:ss.SSS"]),
    ("hour-minute-second-ms", &["HH:mm:ss.SSS"]),
    ("ordinal-date", &["yyyy-DDD"]),
    ("ordinal-date-time", &["yyyy-DDD'T'HH:mm:ss.SSSXX"]),
    ("ordinal-date-time-no-ms", &["yyyy-DDD'T'HH:mm:ssXX"]),
    ("time", &["HH:mm:ss.SSSXX"]),
    ("time-no-ms", &["HH:mm:ssXX"]),
    ("t-time", &["'T'HH:mm:ss.SSSXX"]),
    ("t-time-no-ms", &["'T'HH:mm:ssXX"]),
    ("week-date", &["xxxx-'W'ww-e"]),
    ("week-date-time", &["xxxx-'W'ww-e'T'HH:mm:ss.SSSXX"]),
    ("week-date-time-no-ms", &["xxxx-'W'ww-e'T'HH:mm:ssXX"]),
    ("weekyear", &["xxxx"]),
    ("weekyear-week", &["xxxx-'W'ww"]),
    ("weekyear-week-day", &["xxxx-'W'ww-e"]),
    ("year", &["yyyy"]),
    ("year-month", &["yyyy-MM"]),
    ("year-month-day", &["yyyy-MM-dd"]),
    ("rfc822", &["EEE, dd MMM yyyy HH:mm:ss Z"]),
    ("mysql", &["yyyy-MM-dd HH:mm:ss"]),
    ("date-parser", &["yyyy-MM-dd", "yyyy-MM", "yyyy", "yyyy-DDD", "xxxx-'W'ww-e", "xxxx-'W'ww"]),
    (
        "date-time-parser",
        &[
            "yyyy-MM-dd'T'HH:mm:ss.SSSSSSSSSXX",
            "yyyy-MM-dd'T'HH:mm:ssXX",
            "yyyy-MM-dd'T'HH:mm:ss.SSSSSSSSS",
            "yyyy-MM-dd'T'HH:mm:ss",
            "yyyy-MM-dd'T'HH:mmXX",
            "yyyy-MM-dd'T'HH:mm",
            "yyyy-MM-dd'T'HH",
            "yyyy-MM-dd",
            "yyyy-MM",
            "yyyy",
        ],
    ),
];
/// Patterns that a formatter tries, at most.
const PATTERNS_MAX: usize = 32;

natives! {
    /// The namespace.
    pub(super) NATIVES = {
        "formatter", 1, ANY, "A formatter of Joda's pattern, or of a name in `formatters`, perhaps with a zone; or of a zone and several patterns.", formatter;
        "with-zone", 2, 2, "The formatter, in another zone.", |_, a| {
            let zone = zone(&a[1])?;
            Ok(made(named(&a[0], "patterns").clone(), zone))
        };
        "unparse", 2, 2, "The text of a time, in the zone of the formatter.", |_, a| {
            let (patterns, zone) = parts(&a[0])?;
            let time = Moment { zone, ..moment(&a[1])? };
            let zoned = time.zoned().ok_or_else(too_far)?;
            Ok(Value::from(patterns.first().map(|pattern| pattern.format(&zoned, zone)).unwrap_or_default()))
        };
        "parse", 1, 2, "The time of a text, by a formatter; by all of them without one, and nil if none fits.", |m, a| match a {
            [text] => Ok(usual(m.graph, &to_str(text))?.map(joda).into()),
            [formatter, text, ..] => {
                let (patterns, zone) = parts(formatter)?;
                let text = to_str(text);
                parse(m.graph, &patterns, zone, &text)?.map(joda).map_err(|at| {
                    let at = text.get(at..).filter(|rest| !rest.is_empty() && rest.len() < text.len());
                    let place = at.map(|rest| format!(" is malformed at \"{rest}\"")).unwrap_or_default();
                    EvalError::illegal_argument(format!("Invalid format: \"{text}\"{place}"))
                })
            }
            [] => Ok(Value::Nil),
        };
        "with-locale", 2, 2, "Refused: names of months and days are English.", |_, _| {
            Err(EvalError::throw(&class::UNSUPPORTED, "with-locale is not available: names of months and days are English"))
        };
        "show-formatters", 0, 1, "Prints the names and patterns of all formatters.", |m, _| {
            for (name, patterns) in FORMATTERS {
                m.budget.step(1)?;
                let line = format!("{name:<40}{}\n", patterns[0]);
                m.print(&line);
            }
            Ok(Value::Nil)
        };
    }
}

/// A formatter: a map.
fn made(patterns: Value, zone: Zone) -> Value {
    Value::map([(Value::keyword("patterns"), patterns), (Value::keyword("zone"), Value::from(zone.name()))])
}

/// `formatters`
pub(super) fn formatters() -> Value {
    Value::map(FORMATTERS.iter().map(|(name, patterns)| {
        let patterns = Value::vector(patterns.iter().map(|pattern| Value::text(pattern)));
        (Value::keyword(name), made(patterns, Zone::UTC))
    }))
}

/// `(formatter "yyyy" [zone])`, `(formatter :date-time [zone])`, `(formatter zone "yyyy" "yyyy-MM" …)`
fn formatter(_: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let (patterns, at) = match arguments {
        [pattern] => (vec![pattern.clone()], Zone::UTC),
        [pattern, name] if !matches!(name, Value::Keyword(_)) && Zone::find(&to_str(name)).is_some() => {
            (vec![pattern.clone()], zone(name)?)
        }
        [name, patterns @ ..] => (patterns.to_vec(), zone(name)?),
        [] => (Vec::new(), Zone::UTC),
    };
    if patterns.len() > PATTERNS_MAX {
        return Err(EvalError::illegal_argument(format!("more than {PATTERNS_MAX} patterns")));
    }
    let mut texts = Vec::new();
    for pattern in patterns {
        match &pattern {
            Value::Keyword(name) => {
                let found = FORMATTERS.iter().find(|(known, _)| known == name);
                let unknown = || EvalError::illegal_argument(format!("there is no formatter :{name}"));
                texts.extend(found.ok_or_else(unknown)?.1.iter().map(|pattern| Value::text(pattern)));
            }
            Value::Text(text) => {
                Pattern::new(text).map_err(EvalError::illegal_argument)?;
                texts.push(pattern);
            }
            Value::Map(_) => texts.extend(fields::items(named(&pattern, "patterns")).unwrap_or_default()),
            other => return Err(fields::cannot("use as a pattern", other)),
        }
    }
    Ok(made(Value::vector(texts), at))
}

/// The patterns and the zone of a formatter.
fn parts(formatter: &Value) -> Outcome<(Vec<Pattern>, Zone)> {
    let texts = fields::items(named(formatter, "patterns")).filter(|texts| !texts.is_empty());
    let texts = texts.ok_or_else(|| fields::cannot("use as a formatter", formatter))?;
    let pattern = |text: &Value| Pattern::new(&to_str(text)).map_err(EvalError::illegal_argument);
    let patterns = texts.iter().take(PATTERNS_MAX).map(pattern).collect::<Outcome<_>>()?;
    Ok((patterns, zone(named(formatter, "zone"))?))
}

/// The time of a text by the first pattern that fits; otherwise the place up to which the best one did.
fn parse(graph: &mut Graph, patterns: &[Pattern], zone: Zone, text: &str) -> Outcome<Result<Moment, usize>> {
    let now_year = now(graph).zoned().map_or(1970, |now| now.year());
    let mut furthest = 0;
    for pattern in patterns {
        graph.evaluation.budget.step(1 + text.len() / 64)?;
        match pattern.parse(text, zone, now_year) {
            Ok(time) => return Ok(Ok(time)),
            Err(at) => furthest = furthest.max(at),
        }
    }
    Ok(Err(furthest))
}

/// The time of a text in one of the usual forms.
pub(in crate::libraries) fn usual(graph: &mut Graph, text: &str) -> Outcome<Option<Moment>> {
    // The most usual ones first; those of hours only would take years for hours.
    let is_full = |pattern: &&str| pattern.contains("yy") || pattern.contains("xx");
    let all = FORMATTERS.iter().rev().flat_map(|(_, patterns)| patterns.iter().copied()).filter(is_full);
    let hours = FORMATTERS.iter().flat_map(|(_, patterns)| patterns.iter().copied()).filter(|p| !is_full(p));
    for pattern in all.chain(hours) {
        let pattern = Pattern::new(pattern).expect("a test reads all patterns of the table");
        if let Ok(time) = parse(graph, &[pattern], Zone::UTC, text)? {
            return Ok(Some(time));
        }
    }
    Ok(None)
}
