mod expiring;
mod inserting;
mod searching;

use std::sync::Arc;

use super::{Index, Limits, Progress, Search, SearchLimits};
use crate::event::{Event, Field};
use crate::number::Number;
use crate::query::Query;
use crate::value::Value;

const LIMITS: Limits = Limits { events_max: 1_000, bytes_max: 1 << 30 };
const SEARCH: SearchLimits = SearchLimits { results_max: usize::MAX, steps_max: u64::MAX };

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn int(value: i64) -> Value {
    Value::Number(Number::Int(value))
}

fn tags(tags: &[&str]) -> Value {
    Value::Vector(Arc::new(tags.iter().map(|tag| text(tag)).collect()))
}

/// An event of 1000 s with a metric.
fn event(host: &str, service: &str, metric: i64) -> Event {
    let mut event = Event::default();
    event.set(Field::Host, text(host));
    event.set(Field::Service, text(service));
    event.set(Field::State, text("ok"));
    event.set(Field::Metric, int(metric));
    event.set(Field::Time, int(1_000));
    event
}

fn index_of(events: impl IntoIterator<Item = Event>) -> Index {
    let mut index = Index::new(LIMITS, 1);
    for event in events {
        index.insert(Arc::new(event)).expect("within the limits");
    }
    index
}

fn query(text: &str) -> Arc<Query> {
    Arc::new(Query::new(text).unwrap_or_else(|error| panic!("{text}: {error}")))
}

/// Runs a search to its end, in slices.
fn run(search: &mut Search, index: &Index, steps: u64) -> (Vec<Arc<Event>>, Progress) {
    let mut found = Vec::new();
    loop {
        let progress = search.run(index, steps, &mut found);
        if progress != Progress::More {
            assert_eq!(search.run(index, steps, &mut found), progress, "an ended search does nothing");
            return (found, progress);
        }
    }
}

/// `host/service metric` of each event, sorted.
fn shown(events: &[Arc<Event>]) -> Vec<String> {
    let name =
        |value: &Value| if let Value::Text(text) = value { text.to_string() } else { format!("{value:?}") };
    let metric = |value: &Value| if let Value::Number(number) = value { number.as_f64() } else { f64::NAN };
    let mut shown: Vec<String> = events
        .iter()
        .map(|event| {
            let (host, service) = (event.get(Field::Host), event.get(Field::Service));
            format!("{}/{} {}", name(host), name(service), metric(event.get(Field::Metric)))
        })
        .collect();
    shown.sort();
    shown
}

fn search(index: &Index, text: &str) -> Vec<String> {
    let (found, progress) = run(&mut Search::new(&query(text), index, SEARCH), index, u64::MAX);
    assert_eq!(progress, Progress::Done);
    shown(&found)
}
