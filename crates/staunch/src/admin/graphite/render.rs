//! `/render`: targets to series, series to bytes (spec graphite §6.2 to §6.4).

use axum::http::StatusCode;
use graphite::answer::json::JsonOptions;
use graphite::answer::{charts, json, msgpack, pickle, protobuf, text};
use graphite::draw::{DrawError, Faces, Options, SERIES_MAX, View, draw};
use graphite::query::time::{Clock, parse_time};
use graphite::query::{Code, Compat, QueryError, Range, Request, Series, TimeZone, limit_points, render};

use super::limits::{LIMITS, TEXT_VALUES_MAX};
use super::page::{CSV, MSGPACK, PICKLE, PNG, PROTOBUF, Page, SVG, TEXT, wrapped};
use super::parameters::{Parameters, bad, zone};
use super::picture;
use super::queries::AllStores;
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

impl Format {
    fn is_text(self) -> bool {
        match self {
            Format::Json | Format::Csv | Format::Raw | Format::Dygraph | Format::Rickshaw => true,
            Format::Pickle | Format::Msgpack | Format::Protobuf2 | Format::Protobuf3 => false,
        }
    }
}

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Data(Format),
    /// SVG for programs that have all faces, PNG otherwise.
    Image(Faces),
}

/// Words of `format`. carbonapi and go-carbon call their second protocol by three names.
const FORMATS: [(&str, Wanted); 13] = [
    ("json", Wanted::Data(Format::Json)),
    ("csv", Wanted::Data(Format::Csv)),
    ("raw", Wanted::Data(Format::Raw)),
    ("pickle", Wanted::Data(Format::Pickle)),
    ("msgpack", Wanted::Data(Format::Msgpack)),
    ("dygraph", Wanted::Data(Format::Dygraph)),
    ("rickshaw", Wanted::Data(Format::Rickshaw)),
    ("protobuf", Wanted::Data(Format::Protobuf2)),
    ("protobuf3", Wanted::Data(Format::Protobuf2)),
    ("carbonapi_v2_pb", Wanted::Data(Format::Protobuf2)),
    ("carbonapi_v3_pb", Wanted::Data(Format::Protobuf3)),
    ("svg", Wanted::Image(Faces::All)),
    ("png", Wanted::Image(Faces::Regular)),
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

fn wanted(parameters: &Parameters) -> Result<Wanted, Refusal> {
    let flags = [("rawData", Format::Raw), ("pickle", Format::Pickle)];
    if let Some((_, format)) = flags.into_iter().find(|(flag, _)| parameters.get(flag).is_some()) {
        return Ok(Wanted::Data(format));
    }
    let Some(given) = parameters.get("format").filter(|given| !given.is_empty()) else {
        return Ok(Wanted::Image(Faces::Regular));
    };
    let known = FORMATS.iter().find(|(word, _)| *word == given);
    known.map(|(_, wanted)| *wanted).ok_or_else(|| {
        let words = FORMATS.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        let given: String = given.chars().take(40).collect();
        bad(format!("`format` is one of {words}, not `{given}`"))
    })
}

/// Answers a request.
pub(super) fn answer(parameters: &Parameters, stores: &mut AllStores) -> Result<Page, Refusal> {
    match wanted(parameters)? {
        Wanted::Data(format) => data(parameters, format, stores),
        Wanted::Image(faces) => image(parameters, faces, stores),
    }
}

fn data(parameters: &Parameters, format: Format, stores: &mut AllStores) -> Result<Page, Refusal> {
    let most = parameters.number("maxDataPoints", 0)?;
    let zone = zone(parameters);
    let (mut series, range) = series(parameters, &zone, stores)?;
    if format == Format::Json {
        limit_points(&mut series, usize::try_from(most).unwrap_or(0));
    }
    let values: usize = series.iter().map(|one| one.values.len()).sum();
    if values > TEXT_VALUES_MAX && format.is_text() {
        let why = format!(
            "the answer would have {values} values, and has at most {TEXT_VALUES_MAX}: use a shorter range, narrower globs or \
             maxDataPoints"
        );
        return Err((StatusCode::UNPROCESSABLE_ENTITY, why));
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

/// An image of the series. Wrong options are found before the query.
fn image(parameters: &Parameters, faces: Faces, stores: &mut AllStores) -> Result<Page, Refusal> {
    let options = Options::read(&|name| parameters.get(name).map(str::to_owned)).map_err(bad)?;
    let zone = zone(parameters);
    let (series, range) = series(parameters, &zone, stores)?;
    let view = View { from: range.from, until: range.until, zone: &zone };
    let picture = draw(&series, &options, &view, faces, &mut || stores.goes_on());
    let picture = picture.map_err(|why| {
        let why = match why {
            DrawError::TooManySeries(count) => {
                format!("an image has at most {SERIES_MAX} series, not {count}: use narrower globs or tag expressions")
            }
            DrawError::Stopped(why) => why.to_string(),
        };
        (StatusCode::UNPROCESSABLE_ENTITY, why)
    })?;
    // What follows needs the memory.
    drop(series);
    match faces {
        Faces::Regular => Ok((PNG, picture::png(&picture, || stores.goes_on())?)),
        Faces::All if parameters.get("jsonp").is_some_and(|name| !name.is_empty()) => {
            let mut text = Vec::new();
            json::push_text(picture.svg().as_bytes(), &mut text);
            wrapped(parameters, text)
        }
        Faces::All => Ok((SVG, picture.svg().into_bytes())),
    }
}

/// The series of the targets, and their range.
fn series(
    parameters: &Parameters,
    zone: &TimeZone,
    stores: &mut AllStores,
) -> Result<(Vec<Series>, Range), Refusal> {
    let (range, now) = range(parameters, stores.now, zone)?;
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
    let template = parameters.in_brackets("template");
    let request = Request {
        range,
        now,
        zone,
        x_files_factor: factor,
        template: &template,
        compat: Compat::default(),
        limits: LIMITS,
        seed: sys::random_seed(),
    };
    Ok((render(&targets, &request, stores).map_err(refusal)?, range))
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
