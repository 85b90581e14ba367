//! `/events`: what happened and when, for annotations (spec graphite §6.10).
//!
//! Everyone who may read may post an event, as with points, but no web page of another origin. The events are in a file in `data_dir`
//! ([`log`]).

mod log;

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use serde::Deserialize;

use self::log::{Event, EventLog};
use super::page::{JSON, Page, wrapped};
use super::parameters::{Parameters, bad, zone};
use crate::admin::refusal::Refusal;
use config::plan::Plan;
use graphite::query::Range;
use graphite::query::time::{Clock, parse_time};

/// Most bytes of an event as JSON.
pub(super) const EVENT_BYTES_MAX: usize = 256 << 10;

/// Most bytes of events in one answer, as they are in memory.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// Events on the page for people.
const SHOWN: usize = 100;

const FILE: &str = "events.jsonl";
const HTML: &str = "text/html; charset=utf-8";

/// The events of the daemon.
#[derive(Debug)]
pub(super) struct Events(Mutex<EventLog>);

/// What a client posts.
#[derive(Debug, Deserialize)]
struct Posted {
    what: String,
    #[serde(default)]
    tags: Option<TagsPosted>,
    #[serde(default)]
    when: Option<f64>,
    #[serde(default)]
    data: Option<serde_json::Value>,
}

/// A list, or words with spaces between them.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum TagsPosted {
    List(Vec<String>),
    Words(String),
}

impl Events {
    /// Those of a daemon.
    pub(super) fn of(plan: &Plan) -> Events {
        let path: PathBuf = plan.data_dir.join(FILE);
        Events(Mutex::new(EventLog::new(path, plan.graphite_api.events_max)))
    }

    fn log(&self, plan: &Plan) -> Result<MutexGuard<'_, EventLog>, Refusal> {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.limit(plan.graphite_api.events_max);
        log.refresh().map_err(|error| failed(&log, &error))?;
        Ok(log)
    }

    /// Keeps a posted event.
    pub(super) fn post(&self, plan: &Plan, body: &[u8], now: i64) -> Result<Page, Refusal> {
        let posted: Posted = serde_json::from_slice(body).map_err(|error| {
            bad(format!("an event is JSON such as {{\"what\": \"release\", \"tags\": [\"web\"]}}: {error}"))
        })?;
        let tags = match posted.tags {
            None => Vec::new(),
            Some(TagsPosted::List(tags)) => tags,
            Some(TagsPosted::Words(words)) => words.split_whitespace().map(str::to_owned).collect(),
        };
        let data = match posted.data {
            None | Some(serde_json::Value::Null) => String::new(),
            Some(serde_json::Value::String(text)) => text,
            Some(other) => other.to_string(),
        };
        let when = posted.when.map_or(now, |when| when.floor() as i64);
        let event = Event { when, what: posted.what, data, tags, id: 0 };
        event.check().map_err(bad)?;
        let mut log = self.log(plan)?;
        log.add(event).map_err(|error| failed(&log, &error))?;
        Ok(("text/plain; charset=utf-8", Vec::new()))
    }

    /// `/events/get_data`
    pub(super) fn data(&self, plan: &Plan, parameters: &Parameters, now: i64) -> Result<Page, Refusal> {
        let zone = zone(parameters);
        let time = |name: &str, default: i64| match parameters.get(name).filter(|text| !text.is_empty()) {
            None => Ok(default),
            Some(text) => parse_time(text, &Clock { now, zone: &zone })
                .map_err(|error| bad(format!("`{name}` is not a time: {error} in `{text}`"))),
        };
        let (from, until) = (time("from", 0)?, time("until", now)?);
        let tags: Vec<String> =
            parameters.get("tags").unwrap_or("").split_whitespace().map(str::to_owned).collect();
        let any = match parameters.get("set") {
            None | Some("" | "intersection") => false,
            Some("union") => true,
            Some(_) => return Err(bad("`set` is union or intersection")),
        };
        let log = self.log(plan)?;
        let found: Vec<&Event> = log.between(from, until).filter(|event| event.has(&tags, any)).collect();
        if found.iter().map(|event| event.memory_bytes()).sum::<usize>() > ANSWER_BYTES_MAX {
            let why = format!(
                "these {} events have more than 16 MiB: narrow the range with `from` and `until`, or name `tags`",
                found.len()
            );
            return Err((StatusCode::UNPROCESSABLE_ENTITY, why));
        }
        wrapped(parameters, json(&found)?)
    }

    /// `/events/ID`
    pub(super) fn one(&self, plan: &Plan, id: &str) -> Result<Page, Refusal> {
        let log = self.log(plan)?;
        let found = id.parse().ok().and_then(|id| log.get(id));
        let found = found.ok_or((StatusCode::NOT_FOUND, "there is no event with this number".to_owned()))?;
        Ok((JSON, json(found)?))
    }

    /// `/events`: the last ones, for people.
    pub(super) fn page(&self, plan: &Plan) -> Result<Page, Refusal> {
        let log = self.log(plan)?;
        let last: Vec<&Event> = log.between(0, i64::MAX).collect();
        let rows = last.iter().rev().take(SHOWN).map(|event| {
            let time = jiff::Timestamp::from_second(event.when).unwrap_or_default();
            let time = time.strftime("%Y-%m-%d %H:%M:%S UTC");
            let tags = escaped(&event.tags.join(" "));
            format!("<tr><td>{time}<td>{}<td>{tags}<td>{}</tr>\n", escaped(&event.what), escaped(&event.data))
        });
        let rows: String = rows.collect();
        let page = format!(
            "<!DOCTYPE html>\n<title>Events</title>\n<h1>Events</h1>\n<p>The last {SHOWN}. Post one with \
             <code>curl -d '{{\"what\": \"release\", \"tags\": [\"web\"]}}' …/events/</code>\n<table>\n\
             <tr><th>time<th>what<th>tags<th>data</tr>\n{rows}</table>\n"
        );
        Ok((HTML, page.into_bytes()))
    }

    /// Times of the events in a range that have all of the tags.
    pub(super) fn times(
        &self,
        plan: &Plan,
        range: Range,
        tags: Option<&[String]>,
    ) -> Result<Vec<i64>, String> {
        let log = self.log(plan).map_err(|(_, why)| why)?;
        let found =
            log.between(range.from, range.until).filter(|event| event.has(tags.unwrap_or(&[]), false));
        Ok(found.map(|event| event.when).collect())
    }
}

fn failed(log: &EventLog, error: &io::Error) -> Refusal {
    (StatusCode::INTERNAL_SERVER_ERROR, format!("{}: {error}", log.path().display()))
}

fn json<T: serde::Serialize>(document: &T) -> Result<Vec<u8>, Refusal> {
    serde_json::to_vec(document).map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for one in text.chars() {
        match one {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            one => out.push(one),
        }
    }
    out
}
