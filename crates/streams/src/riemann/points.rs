//! Streams to stores of numbers and documents beside those of `posts`: InfluxDB's new forms, Prometheus' Pushgateway, Librato and bulk
//! requests to Elasticsearch (spec riemann §14.1).
//!
//! Path of an event: `posts::Posts` -> a [`Form`] of this file -> the body and the rest of the URL of a request. Events of one vector
//! with the same URL are one request. Not here: lines on plain connections.

use std::sync::Arc;

use arcstr::{ArcStr, literal};

use super::declared::TimeUnit;
use super::options::Options;
use super::posts::{
    Form, ISO, PARAMETERS, PATH, Request, basic, encoded, field, formatted, index_suffix, json_of, login,
    moment, name_of, object, post_form, precision, word,
};
use crate::event::{Event, Field};
use crate::function::Bound;
use crate::graph::Turn;
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::{ANY, Machine};
use crate::natives;
use crate::nodes::fields;
use crate::number::Number;
use crate::print::{number_text, to_str};
use crate::value::Value;

natives! {
    /// Functions of `riemann.config`.
    pub(super) NATIVES = {
        "influxdb2", 0, ANY, "A stream to InfluxDB 2: a line for each event with a metric.", influxdb2;
        "prometheus", 0, ANY, "A stream to a Pushgateway of Prometheus: a request for each event with a metric.", |m, a| prometheus(m, "prometheus", a);
        "prometheus-batch", 0, ANY, "A stream to a Pushgateway of Prometheus: events of a vector with the same labels are one request.", |m, a| prometheus(m, "prometheus-batch", a);
        "librato-metrics", 2, ANY, "Streams of gauges, counters and annotations to Librato.", librato;
        "elasticsearch-bulk", 0, ANY, "A stream to Elasticsearch: a bulk request for each event, or each vector of events.", bulk;
        "default-bulk-formatter", 0, ANY, "The formatter of `elasticsearch-bulk`, with an index of its own.", |m, a| {
            let options = Options::of(m, "default-bulk-formatter", a, &["es-index", "type", "es-action", "index-suffix"])?;
            let held = bulk_options(&options)?.map(Value::from);
            Ok(Value::Bound(Arc::new(Bound::new(&BULK_EVENT[0], held.into()))))
        };
    }

    /// What `default-bulk-formatter` gives, with its options.
    BULK_EVENT = {
        "bulk-event", 5, 5, "A document with its place, for a bulk request.", |_, a| {
            let [index, suffix, kind, action, event] = a else { unreachable!("the table says how many there are") };
            Ok(bulk_event([index, suffix, kind, action].map(|text| to_str(text)), event))
        };
    }
}

/// The header of lines of text.
pub(super) const TEXT: (ArcStr, ArcStr) = (literal!("Content-Type"), literal!("text/plain; charset=utf-8"));

/// One request for neighbours with the same rest of the URL.
fn grouped(lines: Vec<(Value, String, String)>) -> Vec<Request> {
    let mut requests: Vec<Request> = Vec::new();
    for (of, path, line) in lines {
        match requests.last_mut() {
            Some(last) if last.path.as_deref() == Some(&*path) => last.body.push_str(&line),
            Some(_) | None => requests.push(Request { of, body: line, path: Some(path) }),
        }
    }
    requests
}

/// Microseconds; those of the clock for an event without a time.
fn time_us(event: &Value, turn: &Turn<'_>) -> Outcome<i64> {
    Ok(fields::time(event)?.map_or_else(|| turn.now_us(), fields::to_us))
}

/// A line of InfluxDB; none without a field that has a value.
fn influx_line(
    measurement: &str,
    tags: &[(String, String)],
    values: &[(String, Value)],
    time: i64,
) -> Option<String> {
    let escaped = |text: &str, special: &str| {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            let c = if c.is_control() { ' ' } else { c };
            if special.contains(c) {
                out.push('\\');
            }
            out.push(c);
        }
        out
    };
    let mut line = escaped(measurement, ", ");
    for (name, value) in tags.iter().filter(|(name, value)| !name.is_empty() && !value.is_empty()) {
        line.push_str(&format!(",{}={}", escaped(name, ",= "), escaped(value, ",= ")));
    }
    let mut between = ' ';
    for (name, value) in values.iter().filter(|(name, _)| !name.is_empty()) {
        let value = match value {
            Value::Nil => continue,
            Value::Bool(value) => value.to_string(),
            Value::Number(number @ (Number::Int(_) | Number::Big(_))) => {
                format!("{}i", number_text(number, false).trim_end_matches('N'))
            }
            Value::Number(number) => match number.as_f64() {
                value if value.is_finite() => value.to_string(),
                _ => continue,
            },
            text => match to_str(text) {
                text if text.is_empty() => continue,
                text => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
            },
        };
        line.push_str(&format!("{between}{}={value}", escaped(name, ",= ")));
        between = ',';
    }
    (between == ',' && !measurement.is_empty()).then(|| format!("{line} {time}\n"))
}

fn in_unit(time_us: i64, unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Seconds => time_us.div_euclid(1_000_000),
        TimeUnit::Milliseconds => time_us.div_euclid(1_000),
        TimeUnit::Microseconds => time_us,
    }
}

/// Names and values of a map; none of anything else.
fn pairs(value: &Value) -> Vec<(String, Value)> {
    match value {
        Value::Map(map) => map.iter().map(|(key, value)| (name_of(key), value.clone())).collect(),
        _ => Vec::new(),
    }
}

/// `influxdb2`
#[derive(Debug)]
struct Influx2 {
    unit: TimeUnit,
}

impl Form for Influx2 {
    fn requests(&self, events: &[Value], turn: &mut Turn<'_>) -> Outcome<Vec<Request>> {
        let mut lines = Vec::new();
        for event in events {
            let Some(metric) = fields::metric(event)?.cloned() else { continue };
            let tags = [("host".to_owned(), to_str(&field(event, Field::Host)))];
            let values = [("value".to_owned(), Value::Number(metric))];
            let time = in_unit(time_us(event, turn)?, self.unit);
            let line = influx_line(&to_str(&field(event, Field::Service)), &tags, &values, time);
            lines.extend(line.map(|line| (event.clone(), String::new(), line)));
        }
        Ok(grouped(lines))
    }

    fn is_notification(&self) -> bool {
        false
    }
}

fn influxdb2(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let known = ["organization", "bucket", "scheme", "host", "port", "token", "precision"];
    let options = Options::of(machine, "influxdb2", arguments, &known)?;
    let (unit, mut short) = precision(&options)?;
    if short == "u" {
        short = "us";
    }
    let url = format!(
        "{}://{}:{}/api/v2/write?org={}&bucket={}&precision={short}",
        word(&options, "scheme", "http")?,
        word(&options, "host", "localhost")?,
        options.port(8086)?,
        encoded(&word(&options, "organization", "riemann")?),
        encoded(&word(&options, "bucket", "riemann")?),
    );
    let mut headers = vec![TEXT];
    if let Some(token) = options.text("token")? {
        headers.push((literal!("Authorization"), arcstr::format!("Token {token}")));
    }
    post_form(machine, &options, (url, headers), Box::new(Influx2 { unit }))
}

/// `influxdb` with `:version :new-stream`: events say what their measurement, tags and fields are.
#[derive(Debug)]
struct NewStream {
    tags: Vec<(String, Value)>,
    /// The database and other parameters, unless an event has its own.
    parameters: Vec<(&'static str, &'static str, Option<String>)>,
    unit: TimeUnit,
}

/// The stream; `url` has a place for its parameters.
pub(super) fn new_stream(machine: &mut Machine<'_>, options: &Options, url: String) -> Outcome {
    let mut parameters = vec![("db", "db", Some(word(options, "db", "riemann")?))];
    for (key, parameter) in PARAMETERS {
        let value = options.get(key).map(name_of);
        parameters.push((key, parameter, value));
    }
    let tags = options.get("tags").map(pairs).unwrap_or_default();
    let unit = precision(options)?.0;
    post_form(machine, options, (url, vec![TEXT]), Box::new(NewStream { tags, parameters, unit }))
}

impl NewStream {
    fn line(&self, event: &Value, turn: &Turn<'_>) -> Outcome<Option<(String, String)>> {
        let own = |name: &str| fields::named(event, &ArcStr::from(name)).clone();
        let unit = match own("precision") {
            Value::Nil => self.unit,
            other => match &*name_of(&other) {
                "seconds" => TimeUnit::Seconds,
                "milliseconds" => TimeUnit::Milliseconds,
                "microseconds" => TimeUnit::Microseconds,
                _ => {
                    let message = ":precision must be :seconds, :milliseconds or :microseconds";
                    return Err(EvalError::illegal_argument(message));
                }
            },
        };
        let measurement = match own("measurement") {
            Value::Nil => field(event, Field::Service),
            given => given,
        };
        let mut tags = self.tags.clone();
        tags.extend(pairs(&own("influxdb-tags")));
        let mut texts: Vec<(String, String)> = Vec::new();
        for (name, value) in tags {
            texts.retain(|(known, _)| *known != name);
            texts.push((name, if value.is_nil() { String::new() } else { name_of(&value) }));
        }
        let values = match own("influxdb-fields") {
            Value::Nil => vec![("value".to_owned(), field(event, Field::Metric))],
            given => pairs(&given),
        };
        let time = in_unit(time_us(event, turn)?, unit);
        let Some(line) = influx_line(&to_str(&measurement), &texts, &values, time) else { return Ok(None) };
        let short = match unit {
            TimeUnit::Seconds => "s",
            TimeUnit::Milliseconds => "ms",
            TimeUnit::Microseconds => "u",
        };
        let mut query = format!("precision={short}");
        for (key, parameter, value) in &self.parameters {
            let of_event = match *key {
                "username" | "password" => Value::Nil,
                key => own(key),
            };
            let value = if of_event.is_nil() { value.clone() } else { Some(name_of(&of_event)) };
            if let Some(value) = value {
                query.push_str(&format!("&{parameter}={}", encoded(&value)));
            }
        }
        Ok(Some((query, line)))
    }
}

impl Form for NewStream {
    fn requests(&self, events: &[Value], turn: &mut Turn<'_>) -> Outcome<Vec<Request>> {
        let mut lines = Vec::new();
        for event in events {
            let line = self.line(event, turn)?;
            lines.extend(line.map(|(query, line)| (event.clone(), query, line)));
        }
        Ok(grouped(lines))
    }

    fn is_notification(&self) -> bool {
        false
    }
}

/// `prometheus`, `prometheus-batch`
#[derive(Debug)]
struct Pushgateway {
    separator: String,
    excluded: Vec<String>,
    is_batch: bool,
}

fn prometheus(machine: &mut Machine<'_>, function: &'static str, arguments: &[Value]) -> Outcome {
    let known = ["host", "port", "job", "separator", "exclude-fields"];
    let options = Options::of(machine, function, arguments, &known)?;
    let url = format!(
        "http://{}:{}/metrics/job/{}{{{{{PATH}|encoded}}}}",
        word(&options, "host", "localhost")?,
        options.port(9091)?,
        encoded(&word(&options, "job", "riemann")?)
    );
    let excluded = match options.get("exclude-fields") {
        None => ["service", "metric", "tags", "time", "ttl"].map(str::to_owned).to_vec(),
        Some(names) => fields::items(names).unwrap_or_default().iter().map(name_of).collect(),
    };
    let (separator, is_batch) = (word(&options, "separator", ",")?, function == "prometheus-batch");
    let form = Pushgateway { separator, excluded, is_batch };
    post_form(machine, &options, (url, vec![TEXT]), Box::new(form))
}

/// A name of Prometheus.
fn prometheus_name(text: &str) -> String {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let name: String = text.chars().map(|c| if is_legal(c) { c } else { '_' }).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

/// Names and values of a map or an event that are not nil.
fn members_of(value: &Value) -> Vec<(String, Value)> {
    let standard = |event: &Event| {
        let of = |field: Field| (field.name().to_owned(), event.get(field).clone());
        Field::ALL.map(of)
    };
    let all: Vec<(String, Value)> = match value {
        Value::Event(event) => {
            let custom = event.attributes().iter().map(|(name, value)| (name.to_string(), value.clone()));
            standard(event).into_iter().chain(custom).collect()
        }
        Value::Map(map) => map.iter().map(|(key, value)| (name_of(key), value.clone())).collect(),
        _ => Vec::new(),
    };
    all.into_iter().filter(|(_, value)| !value.is_nil()).collect()
}

impl Pushgateway {
    /// `/host/H/instance/I/tags/T/label/value…`: those that the event has.
    fn labels(&self, event: &Value) -> String {
        let mut path = String::new();
        let mut label = |name: &str, value: &str| {
            // A slash would end the value.
            let value = encoded(&value.replace('/', "_"));
            if !value.is_empty() {
                path.push_str(&format!("/{}/{value}", prometheus_name(name)));
            }
        };
        let is_excluded = |name: &str| self.excluded.iter().any(|excluded| excluded == name);
        let named = |name: &'static str| fields::named(event, &ArcStr::from(name)).clone();
        for name in ["host", "instance"] {
            if !is_excluded(name) {
                label(name, &to_str(&named(name)));
            }
        }
        let tags: Vec<String> =
            fields::items(&named("tags")).unwrap_or_default().iter().map(to_str).collect();
        label("tags", &tags.join(&self.separator));
        // What is not a label in any case: the name, the value, and what is above.
        const KNOWN: [&str; 5] = ["service", "metric", "tags", "host", "instance"];
        for (name, value) in members_of(event) {
            if !is_excluded(&name) && !KNOWN.contains(&&*name) {
                label(&name, &name_of(&value));
            }
        }
        path
    }
}

impl Form for Pushgateway {
    fn requests(&self, events: &[Value], _turn: &mut Turn<'_>) -> Outcome<Vec<Request>> {
        let mut lines: Vec<(Value, String, String)> = Vec::new();
        for event in events {
            let Some(metric) = fields::metric(event)? else { continue };
            let name = prometheus_name(&to_str(&field(event, Field::Service)));
            if name.is_empty() {
                continue;
            }
            let line = format!("{name} {}\n", metric.as_f64());
            lines.push((event.clone(), self.labels(event), line));
        }
        if self.is_batch {
            // A group of the same labels is one request, in the order of its first event.
            lines.sort_by(|(_, one, _), (_, other, _)| one.cmp(other));
            return Ok(grouped(lines));
        }
        let each = lines.into_iter().map(|(of, path, body)| Request { of, body, path: Some(path) });
        Ok(each.collect())
    }

    fn is_notification(&self) -> bool {
        false
    }
}

/// `librato-metrics`
#[derive(Clone, Copy, Debug)]
enum Librato {
    Gauges,
    Counters,
    Annotation,
}

/// A name of Librato: at most 255 characters, some of which it does not know.
fn librato_name(text: &str) -> String {
    let known = |c: &char| c.is_ascii_alphanumeric() || ".:-_".contains(*c);
    text.replace(' ', ".").chars().filter(known).take(255).collect()
}

fn librato(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let [Value::Text(user), Value::Text(key), ..] = arguments else {
        return Err(EvalError::illegal_argument("(librato-metrics user key): both must be texts"));
    };
    let headers = vec![basic(user, key)];
    let options = Options::of(machine, "librato-metrics", &[], &["connection-timeout"])?;
    let metrics = "https://metrics-api.librato.com/v1/metrics".to_owned();
    let annotations = format!("https://metrics-api.librato.com/v1/annotations/{{{{{PATH}}}}}");
    let mut streams = Vec::new();
    for (name, url, form) in [
        ("gauge", &metrics, Librato::Gauges),
        ("counter", &metrics, Librato::Counters),
        ("annotation", &annotations, Librato::Annotation),
        ("start-annotation", &annotations, Librato::Annotation),
    ] {
        let stream = post_form(machine, &options, (url.clone(), headers.clone()), Box::new(form))?;
        streams.push((Value::Keyword(ArcStr::from(name)), stream));
    }
    Ok(Value::map(streams))
}

impl Form for Librato {
    fn requests(&self, events: &[Value], turn: &mut Turn<'_>) -> Outcome<Vec<Request>> {
        let (list, is_counter) = match self {
            Librato::Gauges => ("gauges", false),
            Librato::Counters => ("counters", true),
            Librato::Annotation => {
                return events.iter().map(|event| annotation(event, turn)).collect();
            }
        };
        let mut measured = Vec::new();
        for event in events {
            let Some(metric) = fields::metric(event)?.cloned() else { continue };
            let value = match metric {
                Number::Ratio(_) => Number::Double(metric.as_f64()),
                metric if is_counter => Number::Int(metric.as_f64() as i64),
                metric => metric,
            };
            let members = [
                ("name", Value::from(librato_name(&to_str(&field(event, Field::Service))))),
                ("source", librato_source(event)),
                ("value", Value::Number(value)),
                ("measure_time", in_unit(time_us(event, turn)?, TimeUnit::Seconds).into()),
            ];
            measured.push(object(&members, &Value::Nil, turn)?);
        }
        let Some(first) = events.first().filter(|_| !measured.is_empty()) else { return Ok(Vec::new()) };
        let body = format!("{{\"{list}\":[{}]}}", measured.join(","));
        Ok(vec![Request { of: first.clone(), body, path: None }])
    }

    fn is_notification(&self) -> bool {
        false
    }
}

fn librato_source(event: &Value) -> Value {
    match field(event, Field::Host) {
        Value::Nil => Value::Nil,
        host => Value::from(librato_name(&to_str(&host))),
    }
}

fn annotation(event: &Value, turn: &mut Turn<'_>) -> Outcome<Request> {
    let title = match fields::named(event, &literal!("title")) {
        Value::Nil => field(event, Field::State),
        title => title.clone(),
    };
    let service = to_str(&field(event, Field::Service));
    let members = [
        ("title", if title.is_nil() { Value::from(service.clone()) } else { title }),
        ("description", field(event, Field::Description)),
        ("source", librato_source(event)),
        ("start_time", in_unit(time_us(event, turn)?, TimeUnit::Seconds).into()),
    ];
    let body = object(&members, &Value::Nil, turn)?;
    Ok(Request { of: event.clone(), body, path: Some(librato_name(&service)) })
}

/// `elasticsearch-bulk`
#[derive(Debug)]
struct Bulk {
    /// Index, suffix, type and action, without a formatter.
    standard: [String; 4],
    formatter: Value,
}

fn bulk_options(options: &Options) -> Outcome<[String; 4]> {
    Ok([
        word(options, "es-index", "riemann")?,
        index_suffix(options)?,
        word(options, "type", "event")?,
        word(options, "es-action", "index")?,
    ])
}

fn bulk(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let known = [
        "es-endpoint",
        "es-index",
        "index-suffix",
        "type",
        "es-action",
        "username",
        "password",
        "formatter",
        "http-options",
        "timeout",
    ];
    let options = Options::of(machine, "elasticsearch-bulk", arguments, &known)?;
    let endpoint = word(&options, "es-endpoint", "http://127.0.0.1:9200")?;
    let url = format!("{}/_bulk", endpoint.trim_end_matches('/'));
    let mut headers = vec![(literal!("Content-Type"), literal!("application/x-ndjson"))];
    headers.extend(login(&options)?);
    let formatter = options.get("formatter").cloned().unwrap_or_default();
    let form = Bulk { standard: bulk_options(&options)?, formatter };
    post_form(machine, &options, (url, headers), Box::new(form))
}

/// A document and its place, as `default-bulk-formatter` gives them.
fn bulk_event([index, suffix, kind, action]: [String; 4], event: &Value) -> Value {
    let key = |name: &str| Value::Keyword(ArcStr::from(name));
    let place = Value::map([
        (key("_index"), Value::from(format!("{index}{}", moment(event, &suffix)))),
        (key("_type"), Value::from(kind)),
    ]);
    let source = Value::map([
        (key("host"), field(event, Field::Host)),
        (key("service"), field(event, Field::Service)),
        (key("metric"), field(event, Field::Metric)),
        (key("state"), field(event, Field::State)),
        (key("tags"), field(event, Field::Tags)),
        (key("@timestamp"), Value::from(moment(event, ISO))),
    ]);
    Value::map([
        (key("es-action"), Value::from(action)),
        (key("es-metadata"), place),
        (key("es-source"), source),
    ])
}

impl Bulk {
    /// The lines of an event; none if the formatter gives nil.
    fn lines(&self, event: &Value, turn: &mut Turn<'_>) -> Outcome<Option<String>> {
        let formatted = match &self.formatter {
            Value::Nil => bulk_event(self.standard.clone(), event),
            formatter => formatted(event, formatter, turn)?,
        };
        let Value::Map(_) = formatted else { return Ok(None) };
        let own = |name: &str| fields::named(&formatted, &ArcStr::from(name)).clone();
        let action = match own("es-action") {
            Value::Nil => "index".to_owned(),
            action => name_of(&action),
        };
        if !["index", "create", "update", "delete"].contains(&&*action) {
            let message = format!("`{action}` is no action of a bulk request");
            return Err(EvalError::illegal_argument(message));
        }
        let mut lines = object(&[(action.as_str(), own("es-metadata"))], &Value::Nil, turn)?;
        lines.push('\n');
        if action != "delete" {
            lines.push_str(&json_of(&own("es-source"), turn)?);
            lines.push('\n');
        }
        Ok(Some(lines))
    }
}

impl Form for Bulk {
    fn requests(&self, events: &[Value], turn: &mut Turn<'_>) -> Outcome<Vec<Request>> {
        let mut body = String::new();
        for event in events {
            body.push_str(&self.lines(event, turn)?.unwrap_or_default());
        }
        let first = events.first().filter(|_| !body.is_empty());
        Ok(first.map(|of| Request { of: of.clone(), body, path: None }).into_iter().collect())
    }

    fn is_notification(&self) -> bool {
        false
    }
}
