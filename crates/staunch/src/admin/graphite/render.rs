//! `/render`: targets to series, series to bytes (spec graphite §6.2 to §6.4).

use axum::http::StatusCode;
use graphite::answer::json::JsonOptions;
use graphite::answer::{charts, json, msgpack, pickle, protobuf, text};
use graphite::query::time::{Clock, parse_time};
use graphite::query::{Code, Compat, QueryError, Range, Request, TimeZone, limit_points, render};

use super::page::{CSV, MSGPACK, PICKLE, PROTOBUF, Page, TEXT, wrapped};
use super::parameters::{Parameters, bad, zone};
use super::queries::{AllStores, LIMITS};
use crate::admin::refusal::Refusal;

/// Most bytes of all targets together.
const TARGETS_BYTES_MAX: usize = 1 << 20;

/// Format of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Json,
    Csv,
    Raw,
    Pickle,
    Msgpack,
    Dygraph,
    Rickshaw,
    /// carbonapi's second protocol.
    Protobuf2,
    /// carbonapi's third protocol.
    Protobuf3,
}

/// Words of `format`. carbonapi and go-carbon call their second protocol by three names.
const FORMATS: [(&str, Format); 11] = [
    ("json", Format::Json),
    ("csv", Format::Csv),
    ("raw", Format::Raw),
    ("pickle", Format::Pickle),
    ("msgpack", Format::Msgpack),
    ("dygraph", Format::Dygraph),
    ("rickshaw", Format::Rickshaw),
    ("protobuf", Format::Protobuf2),
    ("protobuf3", Format::Protobuf2),
    ("carbonapi_v2_pb", Format::Protobuf2),
    ("carbonapi_v3_pb", Format::Protobuf3),
];

/// The time range of a request: from and until, in order.
pub(super) fn range(parameters: &Parameters, now: i64, zone: &TimeZone) -> Result<(Range, i64), Refusal> {
    let time = |name: &str, default: &str, now: i64| {
        let text = parameters.get(name).filter(|text| !text.is_empty()).unwrap_or(default);
        let clock = Clock { now, zone };
        parse_time(text, &clock).map_err(|error| bad(format!("`{name}` is not a time: {error} in `{text}`")))
    };
    let now = match parameters.get("now") {
        Some(_) => time("now", "now", now)?,
        None => now,
    };
    let (from, until) = (time("from", "-1d", now)?, time("until", "now", now)?);
    if from == until {
        return Err(bad("Invalid empty time range: `from` and `until` are equal"));
    }
    Ok((Range { from: from.min(until), until: from.max(until) }, now))
}

fn format(parameters: &Parameters) -> Result<Format, Refusal> {
    let flags = [("rawData", Format::Raw), ("pickle", Format::Pickle)];
    if let Some((_, format)) = flags.into_iter().find(|(flag, _)| parameters.get(flag).is_some()) {
        return Ok(format);
    }
    let words = || FORMATS.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
    let Some(given) = parameters.get("format") else {
        return Err(bad(format!("add `format=json`, or another one of {}", words())));
    };
    let known = FORMATS.iter().find(|(word, _)| *word == given);
    known.map(|(_, format)| *format).ok_or_else(|| {
        let given: String = given.chars().take(40).collect();
        bad(format!("`format` is one of {}, not `{given}`", words()))
    })
}

/// Answers a request.
pub(super) fn answer(parameters: &Parameters, stores: &mut AllStores) -> Result<Page, Refusal> {
    let format = format(parameters)?;
    let zone = zone(parameters);
    let (range, now) = range(parameters, stores.now, &zone)?;
    // What files cover depends on the time that the client asks for, so that an answer can be repeated.
    stores.now = now;
    let targets = parameters.all("target");
    if targets.iter().map(|target| target.len()).sum::<usize>() > TARGETS_BYTES_MAX {
        return Err(bad(format!("the targets are longer than {TARGETS_BYTES_MAX} bytes")));
    }
    let factor = match parameters.get("xFilesFactor").filter(|text| !text.is_empty()) {
        None => None,
        Some(text) => match text.parse::<f64>() {
            Ok(factor) if (0.0..=1.0).contains(&factor) => Some(factor),
            _ => return Err(bad(format!("`xFilesFactor` is a number from 0 to 1, not `{text}`"))),
        },
    };
    let most = parameters.number("maxDataPoints", 0)?;
    let template = parameters.in_brackets("template");
    let request = Request {
        range,
        now,
        zone: &zone,
        x_files_factor: factor,
        template: &template,
        compat: Compat::default(),
        limits: LIMITS,
        seed: sys::random_seed(),
    };
    let mut series = render(&targets, &request, stores).map_err(refusal)?;
    if format == Format::Json {
        limit_points(&mut series, usize::try_from(most).unwrap_or(0));
    }
    Ok(match format {
        Format::Json => {
            let options = JsonOptions { no_null_points: parameters.get("noNullPoints").is_some() };
            wrapped(parameters, json::series(&series, options))?
        }
        Format::Csv => (CSV, text::csv(&series, &zone)),
        Format::Raw => (TEXT, text::raw(&series)),
        Format::Pickle => (PICKLE, pickle::series(&series)),
        Format::Msgpack => (MSGPACK, msgpack::series(&series)),
        Format::Dygraph => wrapped(parameters, charts::dygraph(&series))?,
        Format::Rickshaw => wrapped(parameters, charts::rickshaw(&series))?,
        Format::Protobuf2 => (PROTOBUF, protobuf::series_v2(&series)),
        Format::Protobuf3 => (PROTOBUF, protobuf::series_v3(&series, (range.from, range.until))),
    })
}

/// A mistake with its place in the target.
fn refusal(error: QueryError) -> Refusal {
    let status = match error.code {
        Code::Syntax | Code::UnknownFunction | Code::Argument => StatusCode::BAD_REQUEST,
        Code::Limit | Code::Deadline | Code::Cancelled => StatusCode::UNPROCESSABLE_ENTITY,
        Code::Fetch => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let mut why = match (&error.code, &error.function) {
        (Code::UnknownFunction, _) => error.message.clone(),
        (_, Some(function)) => format!("{function}(): {}", error.message),
        (_, None) => error.message.clone(),
    };
    if let Some(target) = &error.target {
        why.push_str(&marked(target, error.at));
    }
    if let Some(hint) = &error.hint {
        why.push_str("\nhint: ");
        why.push_str(hint);
    }
    (status, why)
}

/// Most characters of a target that a message quotes, before and behind the place.
const QUOTED_CHARS: usize = 60;

/// The target with a caret below the place.
fn marked(target: &str, at: Option<usize>) -> String {
    let shown = |text: &str| text.replace(char::is_control, " ");
    let Some(at) = at.filter(|at| target.is_char_boundary(*at)) else {
        let short: String = target.chars().take(2 * QUOTED_CHARS).collect();
        return format!("\n  {}", shown(&short));
    };
    let (before, behind) = target.split_at(at);
    let mut before: Vec<char> = before.chars().rev().take(QUOTED_CHARS).collect();
    before.reverse();
    let before: String = before.into_iter().collect();
    let behind: String = behind.chars().take(QUOTED_CHARS).collect();
    format!("\n  {}{}\n  {}^", shown(&before), shown(&behind), " ".repeat(before.chars().count()))
}

#[test]
fn a_mistake_is_marked_in_its_target() {
    assert_eq!(marked("sum(a", Some(5)), "\n  sum(a\n       ^");
    assert_eq!(marked("sum(a", None), "\n  sum(a");
    let long = "x".repeat(500);
    let text = marked(&long, Some(250));
    assert!(text.len() < 250 && text.ends_with('^'), "{text}");
    assert_eq!(marked("é(", Some(1)), "\n  é(");
}
