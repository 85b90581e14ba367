//! Streams whose events become HTTP requests: databases, alerting services, chats (spec riemann §14).
//!
//! Path of an event: a stream of the config -> **[`Posts`]** (computes the body, with the config's formatter if there is one) ->
//! `Effect::Event` with the body as an attribute -> an output of type `http` of the daemon, whose template is that attribute. The
//! output has connections, retries and the account. Not here: `influxdb`'s lines, which the output writes.

use arcstr::{ArcStr, literal};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use siphasher::sip128::SipHasher13;

use super::declared::{Output, OutputNumber, Post, PostForm, TimeUnit};
use super::options::Options;
use super::outputs::{declare, events, native};
use super::points;
use super::record;
use super::surroundings::Effect;
use crate::event::{Event, Field};
use crate::graph::{Node, Turn};
use crate::json::charged;
use crate::json::write::{Style, write, write_object};
use crate::language::error::Outcome;
use crate::language::machine::{ANY, Machine};
use crate::natives;
use crate::nodes::fields;
use crate::print::to_str;
use crate::value::Value;

/// The attribute with the body of a request.
pub(super) const BODY: ArcStr = literal!("staunch.body");
/// The attribute with the part of a URL that depends on the event.
pub(super) const PATH: ArcStr = literal!("staunch.path");

natives! {
    /// Functions of `riemann.config`.
    pub(super) NATIVES = {
        "influxdb", 0, ANY, "A stream to InfluxDB 0.9 to 1.8: a line for each event with a metric.", influxdb;
        "elasticsearch", 0, ANY, "A stream to Elasticsearch: a document for each event.", elasticsearch;
        "datadog", 0, ANY, "A stream to Datadog: gauges.", datadog;
        "slack", 1, ANY, "A stream to a channel of Slack: a message for each event, or each vector of events.", slack;
        "pagerduty", 0, ANY, "Streams that trigger, acknowledge and resolve incidents of PagerDuty.", pagerduty;
        "opsgenie", 0, ANY, "Streams that trigger and resolve alerts of Opsgenie.", opsgenie;
    }
}

/// How events become the body of a request.
#[derive(Debug)]
enum Body {
    /// The output writes it; these tags are added to each event.
    InfluxDb {
        tags: Vec<(ArcStr, Value)>,
    },
    Elasticsearch {
        suffix: String,
        formatter: Value,
    },
    Datadog,
    Slack {
        formatter: Value,
        common: Vec<(&'static str, Value)>,
        words: [Value; 2],
    },
    PagerDuty {
        key: ArcStr,
        action: &'static str,
        formatter: Value,
        more: Value,
        is_v2: bool,
    },
    OpsgenieTrigger {
        formatter: Value,
    },
    OpsgenieResolve,
    /// That of a service in another file.
    Other(Box<dyn Form>),
}

impl Body {
    /// Whether it notifies people.
    fn is_notification(&self) -> bool {
        match self {
            Body::InfluxDb { .. } | Body::Elasticsearch { .. } | Body::Datadog => false,
            Body::Slack { .. }
            | Body::PagerDuty { .. }
            | Body::OpsgenieTrigger { .. }
            | Body::OpsgenieResolve => true,
            Body::Other(form) => form.is_notification(),
        }
    }
}

/// How the events of a push become requests.
pub(super) trait Form: std::fmt::Debug + Send {
    /// The requests, in their order. What `turn` is for: the config's formatters.
    ///
    /// # Errors
    /// What a formatter throws, or events that cannot be written.
    fn requests(&self, events: &[Value], turn: &mut Turn<'_>) -> Outcome<Vec<Request>>;

    /// Whether they notify people.
    fn is_notification(&self) -> bool;
}

/// A request for an output.
#[derive(Debug)]
pub(super) struct Request {
    /// The event that it is about, or the first one.
    pub(super) of: Value,
    /// Its body.
    pub(super) body: String,
    /// The part of the URL that depends on the event.
    pub(super) path: Option<String>,
}

/// A stream that posts.
#[derive(Debug)]
struct Posts {
    output: OutputNumber,
    body: Body,
}

impl Node for Posts {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        let all = events(value)?;
        if let Body::Slack { formatter, common, words } = &self.body {
            if let Some(first) = all.first() {
                let body = slack_body(&all, (formatter, common, words), turn)?;
                self.send(first, body, None, turn)?;
            }
            return Ok(true);
        }
        if let Body::Other(form) = &self.body {
            for Request { of, body, path } in form.requests(&all, turn)? {
                self.send(&of, body, path, turn)?;
            }
            return Ok(true);
        }
        for event in all {
            let (body, path) = match &self.body {
                Body::InfluxDb { tags } => {
                    self.send_line(event, tags, turn)?;
                    continue;
                }
                Body::Elasticsearch { suffix, formatter } => {
                    (document(&event, formatter, turn)?, Some(moment(&event, suffix)))
                }
                Body::Datadog => match series(&event, turn)? {
                    Some(body) => (body, None),
                    None => continue,
                },
                Body::PagerDuty { key, action, formatter, more, is_v2: false } => {
                    (incident(&event, (key, action), (formatter, more), turn)?, None)
                }
                Body::PagerDuty { key, action, formatter, more, is_v2: true } => {
                    (alert_event(&event, (key, action), (formatter, more), turn)?, None)
                }
                Body::OpsgenieTrigger { formatter } => (alert(&event, formatter, turn)?, None),
                Body::OpsgenieResolve => {
                    let close = format!("/{}/close?identifierType=alias", alias(&event));
                    ("{}".to_owned(), Some(close))
                }
                Body::Slack { .. } | Body::Other(_) => continue,
            };
            self.send(&event, body, path, turn)?;
        }
        Ok(true)
    }
}

impl Posts {
    fn send(&self, of: &Value, body: String, path: Option<String>, turn: &mut Turn<'_>) -> Outcome<()> {
        let mut event = Event::default();
        for field in [Field::Host, Field::Service, Field::Time] {
            event.set(field, fields::get(of, field).clone());
        }
        event.set_attribute(BODY, Value::from(body));
        if let Some(path) = path {
            event.set_attribute(PATH, Value::from(path));
        }
        turn.graph().surroundings.effect(Effect::Event { output: self.output, event: event.into() });
        Ok(())
    }

    fn send_line(&self, mut event: Value, tags: &[(ArcStr, Value)], turn: &mut Turn<'_>) -> Outcome<()> {
        for (name, value) in tags {
            fields::set_named(&mut event, name, value.clone())?;
        }
        let event = record::take_event(&mut event).ok_or_else(|| fields::cannot("send", &event))?;
        turn.graph().surroundings.effect(Effect::Event { output: self.output, event });
        Ok(())
    }
}

fn post(machine: &mut Machine<'_>, options: &Options, url: String, form: PostForm, body: Body) -> Outcome {
    post_with(machine, options, (url, Vec::new()), form, body)
}

fn post_with(
    machine: &mut Machine<'_>,
    options: &Options,
    (url, headers): (String, Vec<(ArcStr, ArcStr)>),
    form: PostForm,
    body: Body,
) -> Outcome {
    let what = Post { url: url.into(), headers, form, is_notification: body.is_notification() };
    let output = declare(machine, options.function, Output::Post(Box::new(what)), options.at.clone())?;
    Ok(Value::Stream(machine.graph.add(Box::new(Posts { output, body }), &[])))
}

/// A stream that posts what a form makes of its events.
pub(super) fn post_form(
    machine: &mut Machine<'_>,
    options: &Options,
    (url, headers): (String, Vec<(ArcStr, ArcStr)>),
    form: Box<dyn Form>,
) -> Outcome {
    post_with(machine, options, (url, headers), PostForm::Body, Body::Other(form))
}

/// An output of requests, for streams that are made later.
pub(super) fn declare_post(
    machine: &mut Machine<'_>,
    options: &Options,
    (url, headers): (String, Vec<(ArcStr, ArcStr)>),
    is_notification: bool,
) -> Outcome<OutputNumber> {
    let what = Post { url: url.into(), headers, form: PostForm::Body, is_notification };
    declare(machine, options.function, Output::Post(Box::new(what)), options.at.clone())
}

/// A stream to such an output.
pub(super) fn stream_to(machine: &mut Machine<'_>, output: OutputNumber, form: Box<dyn Form>) -> Value {
    Value::Stream(machine.graph.add(Box::new(Posts { output, body: Body::Other(form) }), &[]))
}

/// A text that must be there.
pub(super) fn needed(options: &Options, key: &str) -> Outcome<ArcStr> {
    options.text(key)?.ok_or_else(|| options.wrong(format_args!(":{key} is missing")))
}

/// A text, a keyword or its default.
pub(super) fn word(options: &Options, key: &str, default: &'static str) -> Outcome<String> {
    match options.get(key) {
        None => Ok(default.to_owned()),
        Some(Value::Text(word) | Value::Keyword(word)) => Ok(word.to_string()),
        Some(_) => Err(options.wrong(format_args!(":{key} must be a text or a keyword"))),
    }
}

fn influxdb(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let known = [
        "db",
        "scheme",
        "host",
        "port",
        "username",
        "password",
        "version",
        "precision",
        "tags",
        "tag-fields",
        "retention",
        "consistency",
        "timeout",
        "insecure",
    ];
    let options = Options::of(machine, "influxdb", arguments, &known)?;
    let is_new = match &*word(&options, "version", "deprecated")? {
        "deprecated" => false,
        "new-stream" => true,
        _ => return Err(options.wrong(":version must be :deprecated or :new-stream")),
    };
    if options.is_set("insecure") {
        return Err(options.wrong(":insecure is refused: certificates are always verified"));
    }
    let host = word(&options, "host", "localhost")?;
    let scheme = word(&options, "scheme", "http")?;
    if is_new {
        let place = format!("{scheme}://{host}:{}/write?{{{{{PATH}|encoded}}}}", options.port(8086)?);
        return points::new_stream(machine, &options, place);
    }
    let (unit, precision) = precision(&options)?;
    let db = word(&options, "db", "riemann")?;
    let mut url =
        format!("{scheme}://{host}:{}/write?db={}&precision={precision}", options.port(8086)?, encoded(&db));
    for (key, parameter) in PARAMETERS {
        if let Some(Value::Text(value) | Value::Keyword(value)) = options.get(key) {
            url.push_str(&format!("&{parameter}={}", encoded(value)));
        }
    }
    let mut names = match options.get("tag-fields") {
        None => vec![literal!("host")],
        Some(names) => {
            fields::items(names).unwrap_or_default().iter().map(|name| ArcStr::from(name_of(name))).collect()
        }
    };
    let tags: Vec<(ArcStr, Value)> = match options.get("tags") {
        Some(Value::Map(tags)) => {
            tags.iter().map(|(key, value)| (ArcStr::from(name_of(key)), Value::from(to_str(value)))).collect()
        }
        _ => Vec::new(),
    };
    names.extend(tags.iter().map(|(name, _)| name.clone()));
    let form = PostForm::InfluxDb { tags: names, unit };
    post(machine, &options, url, form, Body::InfluxDb { tags })
}

/// Options that are parameters of a write to InfluxDB, with their names there.
pub(super) const PARAMETERS: [(&str, &str); 4] =
    [("retention", "rp"), ("consistency", "consistency"), ("username", "u"), ("password", "p")];

/// `:precision`, and its name in a URL.
pub(super) fn precision(options: &Options) -> Outcome<(TimeUnit, &'static str)> {
    match &*word(options, "precision", "seconds")? {
        "seconds" => Ok((TimeUnit::Seconds, "s")),
        "milliseconds" => Ok((TimeUnit::Milliseconds, "ms")),
        "microseconds" => Ok((TimeUnit::Microseconds, "u")),
        _ => Err(options.wrong(":precision must be :seconds, :milliseconds or :microseconds")),
    }
}

/// Of a keyword without its colon.
pub(super) fn name_of(value: &Value) -> String {
    match value {
        Value::Keyword(name) => name.to_string(),
        other => to_str(other),
    }
}

fn elasticsearch(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let (given, formatter) = match arguments {
        [map @ Value::Map(_), formatter] => (std::slice::from_ref(&*map), formatter.clone()),
        given => (&*given, Value::Nil),
    };
    let known = [
        "es-endpoint",
        "es-index",
        "index-suffix",
        "type",
        "username",
        "password",
        "http-options",
        "timeout",
    ];
    let options = Options::of(machine, "elasticsearch", given, &known)?;
    let endpoint = word(&options, "es-endpoint", "http://127.0.0.1:9200")?;
    let (index, kind) = (word(&options, "es-index", "riemann")?, word(&options, "type", "event")?);
    let suffix = index_suffix(&options)?;
    let url =
        format!("{}/{}{{{{{PATH}}}}}/{}", endpoint.trim_end_matches('/'), encoded(&index), encoded(&kind));
    let headers = login(&options)?.into_iter().collect();
    post_with(machine, &options, (url, headers), PostForm::Body, Body::Elasticsearch { suffix, formatter })
}

/// `:index-suffix`, a pattern of Joda, as a format of jiff.
pub(super) fn index_suffix(options: &Options) -> Outcome<String> {
    let suffix = word(options, "index-suffix", "-yyyy.MM.dd")?;
    const PATTERNS: [(&str, &str); 4] = [("yyyy", "%Y"), ("MM", "%m"), ("dd", "%d"), ("HH", "%H")];
    let (mut format, mut rest) = (suffix.replace('%', "%%"), suffix);
    for (pattern, of_jiff) in PATTERNS {
        format = format.replace(pattern, of_jiff);
        rest = rest.replace(pattern, "");
    }
    if rest.contains(|c: char| c.is_ascii_alphabetic()) {
        return Err(options.wrong(":index-suffix can have yyyy, MM, dd and HH"));
    }
    Ok(format)
}

/// The header of `:username` and `:password`; none without a user.
pub(super) fn login(options: &Options) -> Outcome<Option<(ArcStr, ArcStr)>> {
    let Some(user) = options.text("username")? else { return Ok(None) };
    let password = options.text("password")?.unwrap_or_default();
    Ok(Some(basic(&user, &password)))
}

/// The header that names a user to an HTTP server.
pub(super) fn basic(user: &str, password: &str) -> (ArcStr, ArcStr) {
    let both = data_encoding::BASE64.encode(format!("{user}:{password}").as_bytes());
    (literal!("Authorization"), arcstr::format!("Basic {both}"))
}

fn datadog(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let options = Options::of(machine, "datadog", arguments, &["api-key"])?;
    let url =
        format!("https://app.datadoghq.com/api/v1/series?api_key={}", encoded(&needed(&options, "api-key")?));
    post(machine, &options, url, PostForm::Body, Body::Datadog)
}

fn slack(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let keyword = |name: &str| Value::Keyword(ArcStr::from(name));
    // `(slack account token user channel)` is the older form.
    let (account, message) = match arguments {
        [account @ Value::Text(_), token, user, channel] => (
            Value::map([(keyword("account"), account.clone()), (keyword("token"), token.clone())]),
            Value::map([(keyword("username"), user.clone()), (keyword("channel"), channel.clone())]),
        ),
        [account, message, ..] => (account.clone(), message.clone()),
        _ => (arguments[0].clone(), Value::Nil),
    };
    let credentials = Options::of(machine, "slack", &[account], &["account", "token", "webhook_uri"])?;
    let options = Options::of(machine, "slack", &[message], &["username", "channel", "icon", "formatter"])?;
    let url = match credentials.text("webhook_uri")? {
        Some(url) => url.to_string(),
        None => format!(
            "https://{}.slack.com/services/hooks/incoming-webhook?token={}",
            needed(&credentials, "account")?,
            encoded(&needed(&credentials, "token")?)
        ),
    };
    let text = |key: &str| options.get(key).cloned().unwrap_or_default();
    let icon = options.get("icon").cloned().unwrap_or_else(|| Value::from(":warning:".to_owned()));
    let common = vec![("channel", text("channel")), ("username", text("username")), ("icon_emoji", icon)];
    let words = [native(machine, "riemann.common", "subject"), native(machine, "riemann.common", "body")];
    let body = Body::Slack { formatter: text("formatter"), common, words };
    post_with(machine, &options, (url, vec![FORM]), PostForm::Body, body)
}

/// The header of the body of a form.
pub(super) const FORM: (ArcStr, ArcStr) =
    (literal!("Content-Type"), literal!("application/x-www-form-urlencoded"));

fn pagerduty(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let keyword = Value::Keyword(literal!("service-key"));
    let of_key = |key: &Value| Value::map([(keyword, key.clone())]);
    let given = match arguments {
        [key @ Value::Text(_)] => vec![of_key(key)],
        given => given.to_vec(),
    };
    let options =
        Options::of(machine, "pagerduty", &given, &["service-key", "version", "formatter", "options"])?;
    let is_v2 = match &*word(&options, "version", "v1")? {
        "v1" => false,
        "v2" => true,
        _ => return Err(options.wrong(":version must be :v1 or :v2")),
    };
    let url = match is_v2 {
        false => "https://events.pagerduty.com/generic/2010-04-15/create_event.json",
        true => "https://events.pagerduty.com/v2/enqueue",
    };
    let key = needed(&options, "service-key")?;
    let value = |key: &str| options.get(key).cloned().unwrap_or_default();
    let mut streams = Vec::new();
    for action in ["trigger", "acknowledge", "resolve"] {
        let (formatter, more) = (value("formatter"), value("options"));
        let body = Body::PagerDuty { key: key.clone(), action, formatter, more, is_v2 };
        let stream = post(machine, &options, url.to_owned(), PostForm::Body, body)?;
        streams.push((Value::Keyword(ArcStr::from(action)), stream));
    }
    Ok(Value::map(streams))
}

fn opsgenie(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let options = Options::of(machine, "opsgenie", arguments, &["api-key", "body-fn"])?;
    let headers =
        vec![(literal!("Authorization"), ArcStr::from(format!("GenieKey {}", needed(&options, "api-key")?)))];
    // Both streams have one output, so that no alert is closed before it is opened.
    let url = format!("https://api.opsgenie.com/v2/alerts{{{{{PATH}|encoded}}}}");
    let formatter = options.get("body-fn").cloned().unwrap_or_default();
    let trigger = Body::OpsgenieTrigger { formatter };
    let trigger = post_with(machine, &options, (url.clone(), headers.clone()), PostForm::Body, trigger)?;
    let resolve = post_with(machine, &options, (url, headers), PostForm::Body, Body::OpsgenieResolve)?;
    Ok(Value::map([
        (Value::Keyword(literal!("trigger")), trigger),
        (Value::Keyword(literal!("resolve")), resolve),
    ]))
}

/// A JSON object of the members that are not nil, and of those of a map, which count where both have one; within the budget.
///
/// # Errors
/// If it is too long, or a value has no JSON.
pub(super) fn object(members: &[(&str, Value)], more: &Value, turn: &mut Turn<'_>) -> Outcome<String> {
    let given: Vec<(String, &Value)> = match more {
        Value::Map(more) => more.iter().map(|(key, value)| (name_of(key), value)).collect(),
        _ => Vec::new(),
    };
    let is_own = |name: &str| !given.iter().any(|(other, _)| other == name);
    let own = members.iter().filter(|(name, value)| !value.is_nil() && is_own(name));
    let own = own.map(|(name, value)| (*name, value));
    let all = own.chain(given.iter().map(|(name, value)| (name.as_str(), *value)));
    charged(&mut turn.graph().evaluation.budget, |bytes_max| write_object(all, Style::plain(bytes_max)))
}

/// The JSON of a value, within the budget.
///
/// # Errors
/// If it is too long, or a value has no JSON.
pub(super) fn json_of(value: &Value, turn: &mut Turn<'_>) -> Outcome<String> {
    charged(&mut turn.graph().evaluation.budget, |bytes_max| write(value, Style::plain(bytes_max)))
}

/// A map with keywords of the members that are not nil.
fn map(members: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    let members = members.into_iter().filter(|(_, value)| !value.is_nil());
    Value::map(members.map(|(name, value)| (Value::keyword(name), value)))
}

pub(super) fn field(event: &Value, field: Field) -> Value {
    fields::get(event, field).clone()
}

/// `2023-11-14T22:13:20.000Z`, or in another format; empty without a time.
pub(super) fn moment(event: &Value, format: &str) -> String {
    let time = fields::get(event, Field::Time).as_number().map(fields::to_us);
    let moment = time.and_then(|us| jiff::Timestamp::from_microsecond(us).ok());
    moment.map_or_else(String::new, |moment| moment.strftime(format).to_string())
}

pub(super) const ISO: &str = "%Y-%m-%dT%H:%M:%S.000Z";

/// What the formatter makes of an event; nil without one.
pub(super) fn formatted(event: &Value, formatter: &Value, turn: &mut Turn<'_>) -> Outcome {
    match formatter {
        Value::Nil => Ok(Value::Nil),
        formatter => turn.value_of(formatter, std::slice::from_ref(event)),
    }
}

fn document(event: &Value, formatter: &Value, turn: &mut Turn<'_>) -> Outcome<String> {
    let more = formatted(event, formatter, turn)?;
    let members = [
        ("host", field(event, Field::Host)),
        ("service", field(event, Field::Service)),
        ("metric", field(event, Field::Metric)),
        ("state", field(event, Field::State)),
        ("tags", field(event, Field::Tags)),
        ("@timestamp", Value::from(moment(event, ISO))),
    ];
    object(&members, &more, turn)
}

/// None without a metric.
fn series(event: &Value, turn: &mut Turn<'_>) -> Outcome<Option<String>> {
    let Some(metric) = fields::metric(event)?.cloned() else { return Ok(None) };
    let time_s = fields::time(event)?.map_or(0, fields::to_us).div_euclid(1_000_000);
    let point = Value::vector([time_s.into(), Value::Number(metric)]);
    let one = map([
        ("points", Value::vector([point])),
        ("metric", field(event, Field::Service)),
        ("type", Value::from("gauge".to_owned())),
        ("host", field(event, Field::Host)),
        ("tags", field(event, Field::Tags)),
    ]);
    object(&[("series", Value::vector([one]))], &Value::Nil, turn).map(Some)
}

/// The payload as a field of a form.
fn slack_body(
    all: &[Value],
    (formatter, common, words): (&Value, &[(&'static str, Value)], &[Value; 2]),
    turn: &mut Turn<'_>,
) -> Outcome<String> {
    let list = Value::vector(all.to_vec());
    let more = match formatter {
        Value::Nil => {
            let subject = slack_text(&to_str(&turn.call(&words[0], std::slice::from_ref(&list))?));
            let body = slack_text(&to_str(&turn.call(&words[1], std::slice::from_ref(&list))?));
            let attachment = map([
                ("fallback", Value::from(subject.clone())),
                ("pretext", Value::from(subject)),
                ("text", Value::from(body)),
            ]);
            map([("attachments", Value::vector([attachment]))])
        }
        formatter => turn.value_of(formatter, &[list])?,
    };
    let body = format!("payload={}", encoded(&object(common, &more, turn)?));
    turn.graph().evaluation.budget.text(body.len())?;
    Ok(body)
}

/// Slack's own escapes.
fn slack_text(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

pub(super) fn named_state(event: &Value) -> String {
    let text = |of| to_str(fields::get(event, of));
    let (host, service) = (text(Field::Host), text(Field::Service));
    format!("{host} {service} is {} ({})", text(Field::State), text(Field::Metric))
}

fn incident(
    event: &Value,
    (key, action): (&ArcStr, &str),
    (formatter, more): (&Value, &Value),
    turn: &mut Turn<'_>,
) -> Outcome<String> {
    let text = |of| to_str(fields::get(event, of));
    let own = [
        ("service_key", Value::Text(key.clone())),
        ("event_type", Value::from(action.to_owned())),
        ("incident_key", Value::from(format!("{} {}", text(Field::Host), text(Field::Service)))),
        ("description", Value::from(named_state(event))),
        ("details", event.clone()),
    ];
    let formatted = formatted(event, formatter, turn)?;
    object(&own, if formatted.is_nil() { more } else { &formatted }, turn)
}

fn alert_event(
    event: &Value,
    (key, action): (&ArcStr, &str),
    (formatter, more): (&Value, &Value),
    turn: &mut Turn<'_>,
) -> Outcome<String> {
    let payload = match formatted(event, formatter, turn)? {
        Value::Nil => map([
            ("summary", Value::from(named_state(event))),
            ("source", field(event, Field::Host)),
            ("severity", field(event, Field::State)),
            ("timestamp", Value::from(moment(event, ISO))),
            ("custom_details", event.clone()),
        ]),
        payload => payload,
    };
    let members = [
        ("routing_key", Value::Text(key.clone())),
        ("event_action", Value::from(action.to_owned())),
        ("dedup_key", fields::named(event, &literal!("dedup-key")).clone()),
        ("payload", payload),
    ];
    object(&members, more, turn)
}

fn alert(event: &Value, formatter: &Value, turn: &mut Turn<'_>) -> Outcome<String> {
    let more = formatted(event, formatter, turn)?;
    let budget = &mut turn.graph().evaluation.budget;
    let details = charged(budget, |bytes_max| write(event, Style::plain(bytes_max)))?;
    let members = [
        ("message", Value::from(named_state(event))),
        ("alias", Value::from(alias(event))),
        ("description", Value::from(details)),
        ("tags", field(event, Field::Tags)),
        ("source", field(event, Field::Host)),
    ];
    object(&members, &more, turn)
}

/// The same for all events of a host, a service and tags.
fn alias(event: &Value) -> String {
    let mut tags: Vec<String> =
        fields::items(fields::get(event, Field::Tags)).unwrap_or_default().iter().map(to_str).collect();
    tags.sort_unstable();
    let text = |of| to_str(fields::get(event, of));
    let all = format!("{}\0{}\0{}", text(Field::Host), text(Field::Service), tags.join("\0"));
    // The same in each process and release, and no secret.
    format!("{:032x}", SipHasher13::new().hash(all.as_bytes()).as_u128())
}

/// Percent-encoded, but for the unreserved characters of RFC 3986.
pub(super) fn encoded(text: &str) -> String {
    const RESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    utf8_percent_encode(text, &RESERVED).to_string()
}
