//! Texts with places for the fields of an event: `{{host}} is {{state}}`.
//!
//! Path of an event: `pipeline::encode` -> **[`Template::render`]** -> a record of a request (`request`). A place is a name, and
//! perhaps a filter after `|`. Names other than those of the fields are attributes; what is absent is written as nothing.
//! Not here: where templates come from (`config`), and what is sent (`request`).

use model::{EventRef, EventTime, NumberRef, ValueRef};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use crate::report::{event_json_line, event_number_json, event_value_json, numeric_date};
use crate::text::json_string;

/// A compiled template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Field(Field, Filter),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Field {
    Host,
    Service,
    State,
    Description,
    Metric,
    Time,
    Ttl,
    Tags,
    /// The whole event.
    Event,
    Attribute(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filter {
    None,
    /// For a string of JSON, without its quotes; a number, list or map as JSON.
    Json,
    /// Percent-encoded.
    Url,
    /// Percent-encoded already: in a URL, bytes that may be there are written as they are.
    Encoded,
    /// Unix milliseconds.
    Milliseconds,
    /// `2023-11-14T22:13:20Z`.
    Iso,
    /// `2023.11.14`.
    Date,
}

/// Where a text is written: what must not come into it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Around {
    /// A body, which may contain anything.
    Body,
    /// A URL: values are percent-encoded.
    Url,
    /// One line, such as a header: control characters become spaces.
    Line,
}

/// Why a text is no template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The place, as it was written.
    pub written: String,
    /// What is wrong with it.
    pub what: &'static str,
    /// What to do about it.
    pub hint: &'static str,
}

/// All but the unreserved characters of RFC 3986.
const RESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The same without those with a meaning in path and query: for what is encoded already.
const OF_URLS: AsciiSet = RESERVED
    .remove(b'/')
    .remove(b'%')
    .remove(b'?')
    .remove(b'&')
    .remove(b'=')
    .remove(b'+')
    .remove(b',')
    .remove(b':')
    .remove(b';')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*');

/// The filters, for messages.
const FILTERS: &str = "the filters are json, url, encoded, and for the time also ms, iso and date";

impl Template {
    /// Compiles a text.
    ///
    /// # Errors
    /// The first mistake.
    pub fn parse(text: &str) -> Result<Template, Mistake> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find("{{") {
            let (before, from) = rest.split_at(at);
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            let mistake = |end: usize, what, hint| {
                let written = from.chars().take(end.min(40)).collect();
                Err(Mistake { written, what, hint })
            };
            let Some(end) = from.find("}}") else {
                return mistake(40, "`{{` without `}}`", "write {{service}}, or a single `{`");
            };
            let inner = from[2..end].trim();
            let (name, filter) = inner
                .split_once('|')
                .map_or((inner, None), |(name, filter)| (name.trim_end(), Some(filter.trim_start())));
            if name.is_empty() || name.contains(['{', '}', '"', '|']) || name.contains(char::is_whitespace) {
                let hint = "write the name of a field or an attribute, such as {{service}}; with a brace before it, leave a space";
                return mistake(end + 2, "this is no name of a field", hint);
            }
            let field = Field::named(name);
            let Some(filter) = Filter::named(filter) else {
                return mistake(end + 2, "there is no such filter", FILTERS);
            };
            if filter.is_of_time() && field != Field::Time {
                return mistake(end + 2, "this filter is for {{time}}", FILTERS);
            }
            parts.push(Part::Field(field, filter));
            rest = &from[end + 2..];
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Template(parts))
    }

    /// True when it is the same text for every event.
    pub fn is_fixed(&self) -> bool {
        self.0.iter().all(|part| matches!(part, Part::Text(_)))
    }

    /// The number of [`dot_parts`] of a target that are its own text: others are those of events.
    pub fn own_dot_parts(&self) -> usize {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(own) => text.push_str(own),
                Part::Field(..) => text.push('x'),
            }
        }
        dot_parts(text.as_bytes())
    }

    /// Appends the text for an event.
    pub fn render(&self, event: EventRef<'_>, around: Around, out: &mut Vec<u8>) {
        let mut value = Vec::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => out.extend_from_slice(text.as_bytes()),
                Part::Field(field, filter) => {
                    value.clear();
                    field.write(event, *filter, &mut value);
                    match (around, filter) {
                        (Around::Url, Filter::Encoded) => out.extend(encoded(&value, &OF_URLS)),
                        (Around::Url, _) | (_, Filter::Url) => out.extend(encoded(&value, &RESERVED)),
                        (Around::Line, _) => {
                            out.extend(
                                value.iter().map(|byte| if byte.is_ascii_control() { b' ' } else { *byte }),
                            );
                        }
                        (Around::Body, _) => out.extend_from_slice(&value),
                    }
                }
            }
        }
    }
}

impl Filter {
    fn named(word: Option<&str>) -> Option<Filter> {
        Some(match word {
            None => Filter::None,
            Some("json") => Filter::Json,
            Some("url") => Filter::Url,
            Some("encoded") => Filter::Encoded,
            Some("ms") => Filter::Milliseconds,
            Some("iso") => Filter::Iso,
            Some("date") => Filter::Date,
            Some(_) => return None,
        })
    }

    fn is_of_time(self) -> bool {
        matches!(self, Filter::Milliseconds | Filter::Iso | Filter::Date)
    }
}

impl Field {
    fn named(name: &str) -> Field {
        match name {
            "host" => Field::Host,
            "service" => Field::Service,
            "state" => Field::State,
            "description" => Field::Description,
            "metric" => Field::Metric,
            "time" => Field::Time,
            "ttl" => Field::Ttl,
            "tags" => Field::Tags,
            "event" => Field::Event,
            name => Field::Attribute(name.to_owned()),
        }
    }

    fn write(&self, event: EventRef<'_>, filter: Filter, out: &mut Vec<u8>) {
        let is_json = filter == Filter::Json;
        let text = |text: Option<&str>, out: &mut Vec<u8>| write_text(text.unwrap_or(""), is_json, out);
        match self {
            Field::Host => text(event.host(), out),
            Field::Service => text(event.service(), out),
            Field::State => text(event.state(), out),
            Field::Description => text(event.description(), out),
            Field::Metric => match event.metric() {
                Some(metric) => event_number_json(metric, out),
                None if is_json => out.extend_from_slice(b"null"),
                None => {}
            },
            Field::Time => write_time(event.time(), filter, out),
            Field::Ttl => {
                if let Some(ttl_s) = event.ttl_s() {
                    event_number_json(NumberRef::F32(ttl_s), out);
                } else if is_json {
                    out.extend_from_slice(b"null");
                }
            }
            Field::Tags => write_tags(event, is_json, out),
            Field::Event => {
                event_json_line(event, out);
                // Its line feed.
                out.pop();
            }
            Field::Attribute(name) => match event.attribute(name) {
                None | Some(ValueRef::Nil) => {}
                Some(ValueRef::Text(value) | ValueRef::Keyword(value)) => write_text(value, is_json, out),
                Some(value) => event_value_json(value, out),
            },
        }
    }
}

fn encoded<'v>(value: &'v [u8], set: &'static AsciiSet) -> impl Iterator<Item = u8> + use<'v> {
    percent_encode(value, set).flat_map(str::bytes)
}

fn write_text(text: &str, is_json: bool, out: &mut Vec<u8>) {
    if !is_json {
        return out.extend_from_slice(text.as_bytes());
    }
    let begin = out.len();
    json_string(text.as_bytes(), out);
    // Without the quotes, so that a text can be put together of several.
    out.pop();
    out.remove(begin);
}

fn write_tags(event: EventRef<'_>, is_json: bool, out: &mut Vec<u8>) {
    let tags = event.tags().into_iter().flatten();
    if is_json {
        out.push(b'[');
    }
    for (at, tag) in tags.enumerate() {
        if at > 0 {
            out.extend_from_slice(if is_json { b"," } else { b", " });
        }
        if is_json { json_string(tag.as_bytes(), out) } else { out.extend_from_slice(tag.as_bytes()) }
    }
    if is_json {
        out.push(b']');
    }
}

fn write_time(time: Option<EventTime>, filter: Filter, out: &mut Vec<u8>) {
    let Some(time) = time else {
        if filter == Filter::Json {
            out.extend_from_slice(b"null");
        }
        return;
    };
    let micros = match time {
        EventTime::Seconds(seconds) => i128::from(seconds) * 1_000_000,
        EventTime::Micros(micros) => i128::from(micros),
    };
    let seconds = micros.div_euclid(1_000_000);
    // Years before 1970 or with more than four digits are no times of events.
    let shown = u64::try_from(seconds).unwrap_or(0).min(253_402_300_799);
    let text = match filter {
        Filter::Milliseconds => micros.div_euclid(1_000).to_string(),
        Filter::Iso => numeric_date(shown).replacen(' ', "T", 1) + "Z",
        Filter::Date => numeric_date(shown).chars().take(10).collect::<String>().replace('-', "."),
        Filter::None | Filter::Json | Filter::Url | Filter::Encoded => seconds.to_string(),
    };
    out.extend_from_slice(text.as_bytes());
}

/// How many parts of a URL's path are `.` or `..`, which lead to another path.
///
/// Encoding does not protect them: many servers decode a path before they resolve its dots.
pub fn dot_parts(target: &[u8]) -> usize {
    let path = target.split(|byte| matches!(byte, b'?' | b'#')).next().unwrap_or_default();
    let are_dots = |part: &&[u8]| {
        let (mut rest, mut dots) = (*part, 0);
        let after_dot = |rest: &[u8]| match rest {
            [b'.', ..] => Some(1),
            [b'%', b'2', b'e' | b'E', ..] => Some(3),
            _ => None,
        };
        while let Some(len) = after_dot(rest) {
            dots += 1;
            rest = &rest[len..];
        }
        rest.is_empty() && (1..=2).contains(&dots)
    };
    path.split(|byte| *byte == b'/').filter(are_dots).count()
}

#[cfg(test)]
mod tests {
    use model::{EventsBuilder, TextField};

    use super::*;

    #[test]
    fn numbers_that_are_none_are_null() {
        let mut events = EventsBuilder::default();
        for number in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut event = events.event();
            event.metric(NumberRef::F32(number));
            event.ttl_s(number);
            event.finish();
        }
        let template = Template::parse("[{{metric|json}},{{ttl|json}}]").expect("it is one");
        for event in events.view().iter() {
            let mut out = Vec::new();
            template.render(event, Around::Body, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), "[null,null]");
        }
    }

    #[test]
    fn fields_are_written_with_their_filters_and_absent_ones_are_empty() {
        let mut events = EventsBuilder::default();
        let mut event = events.event();
        event.plain_text(TextField::Host, "web 1");
        event.plain_text(TextField::Service, "disk /");
        event.plain_text(TextField::Description, "\"full\"\n");
        event.metric(NumberRef::F64(0.5));
        event.time(EventTime::Seconds(1_700_000_000));
        event.finish();
        let mut bare = events.event();
        bare.plain_text(TextField::Service, "s");
        bare.finish();
        let events = events.view();
        for (text, around, want, want_bare) in [
            ("{{host}} {{ service }}: {{metric}}", Around::Body, "web 1 disk /: 0.5", " s: "),
            ("{\"a\":\"{{description|json}}\"}", Around::Body, "{\"a\":\"\\\"full\\\"\\n\"}", "{\"a\":\"\"}"),
            ("[{{metric|json}},{{time|json}}]", Around::Body, "[0.5,1700000000]", "[null,null]"),
            ("x{{description}}", Around::Line, "x\"full\" ", "x"),
            ("/w?s={{service}}&h={{host}}", Around::Url, "/w?s=disk%20%2F&h=web%201", "/w?s=s&h="),
            ("{{host|url}}", Around::Body, "web%201", ""),
            ("/a{{service|encoded}}", Around::Url, "/adisk%20/", "/as"),
            ("{{host|encoded}}", Around::Body, "web 1", ""),
            (
                "{{time|ms}} {{time|iso}} {{time|date}}",
                Around::Body,
                "1700000000000 2023-11-14T22:13:20Z 2023.11.14",
                "  ",
            ),
            ("{{nothing}}{{tags}}{{tags|json}}{{ttl}}", Around::Body, "[]", "[]"),
            (
                "{ {{event}} }",
                Around::Body,
                "{ {\"service\":\"disk /\",\"time\":1700000000,\"host\":\"web 1\",\"description\":\"\\\"full\\\"\\n\",\"metric\":0.5} }",
                "{ {\"service\":\"s\"} }",
            ),
            ("plain }} text", Around::Body, "plain }} text", "plain }} text"),
        ] {
            let template = Template::parse(text).expect("it is one");
            for (event, want) in events.iter().zip([want, want_bare]) {
                let mut out = Vec::new();
                template.render(event, around, &mut out);
                assert_eq!(String::from_utf8_lossy(&out), want, "{text}");
            }
        }
    }

    #[test]
    fn dots_of_events_are_counted_beside_those_of_the_text() {
        for (text, host, own, rendered) in [
            ("/h/{{host}}/in", "..", 0, 1),
            ("/h/{{host}}/in", ".", 0, 1),
            ("/h/{{host}}", "..", 0, 1),
            ("/h/.{{host}}?a", ".", 0, 1),
            ("/h/%2e{{host}}", ".", 0, 1),
            ("/h/{{host}}{{host}}#a", ".", 0, 1),
            ("/h/{{host}}..", "", 0, 1),
            ("/h/../{{host}}/%2E%2e/in", "..", 2, 3),
            ("/h/../{{host}}/in", "a", 1, 1),
            ("/h/{{host}}/in", "...", 0, 0),
            ("/h/{{host}}/in", "a..b", 0, 0),
            ("/h/{{host}}x/in", "..", 0, 0),
            ("/h/{{host}}/in", "../..", 0, 0),
            ("/h/{{host}}/in", "%2E%2E", 0, 0),
            ("/h/{{host}}/in", "", 0, 0),
            ("/h?a=/{{host}}/../", "..", 0, 0),
        ] {
            let mut events = EventsBuilder::default();
            let mut event = events.event();
            event.plain_text(TextField::Host, host);
            event.finish();
            let template = Template::parse(text).expect("it is one");
            let mut out = Vec::new();
            events.view().iter().for_each(|event| template.render(event, Around::Url, &mut out));
            assert_eq!((template.own_dot_parts(), dot_parts(&out)), (own, rendered), "{text} {host}");
        }
    }

    #[test]
    fn a_mistake_names_the_place() {
        for (text, written) in [
            ("a {{host", "{{host"),
            ("{{}}", "{{}}"),
            ("{{{host}}", "{{{host}}"),
            ("{{host|upper}} b", "{{host|upper}}"),
            ("{{host|iso}}", "{{host|iso}}"),
            ("{{a b}}", "{{a b}}"),
        ] {
            assert_eq!(Template::parse(text).expect_err("a mistake").written, written, "{text}");
        }
        assert!(Template::parse("a } b").is_ok_and(|one| one.is_fixed()));
        assert!(Template::parse("{{a}}").is_ok_and(|one| !one.is_fixed()));
    }
}
