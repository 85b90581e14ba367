//! Events and time to all top-level streams of a config, and what these send there again.
//!
//! Invariant: an event goes through every top-level stream, whatever those before it throw (spec riemann §17.1).

use super::declared::Top;
use super::surroundings::{Complaints, REINJECTED_MAX};
use crate::event::Field;
use crate::graph::{Caught, Graph, NodeId};
use crate::language::error::EvalError;
use crate::language::host::Level;
use crate::nodes::fields;
use crate::position::Position;
use crate::value::Value;

/// Exceptions of streams that are logged in a second, at most.
const COMPLAINTS_MAX: u32 = 10;

/// A top-level stream threw.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{error} in the stream of {at}")]
pub struct StreamError {
    /// Where `streams` was called with it.
    pub at: Position,
    /// What it threw.
    pub error: EvalError,
}

/// Gives an event to all top-level streams, and then what these send there.
///
/// # Errors
/// What the first of them threw that threw anything.
pub(super) fn push(graph: &mut Graph, event: Value) -> Result<(), StreamError> {
    let result = stream(graph, event);
    drain(graph);
    result
}

/// Runs the timers that are due at that time, at most `max` of them. Returns whether all have run.
pub(super) fn advance(graph: &mut Graph, now_us: i64, max: usize) -> bool {
    for _ in 0..max {
        // One at a time: events that it sends to the top come before the next timer.
        if graph.advance(now_us, 1) {
            return true;
        }
        drain(graph);
    }
    false
}

/// Gives an event to the top-level streams. Logs what they throw.
fn stream(graph: &mut Graph, mut event: Value) -> Result<(), StreamError> {
    graph.surroundings.figures.streamed += 1;
    let mut first = Ok(());
    let streams = graph.surroundings.declared.top.len();
    for number in 0..streams {
        let Top { node, .. } = graph.surroundings.declared.top[number];
        let result = match number + 1 == streams {
            true => graph.push_owned(node, &mut event),
            false => graph.push_owned(node, &mut event.clone()),
        };
        if let Err(error) = result {
            graph.surroundings.figures.threw += 1;
            let at = graph.surroundings.declared.top[number].at.clone();
            let (place, on) = (place(graph, node, &error, &at), subject(&event));
            complain(graph, &place, || format!("{place} threw{on}: {}", error.in_words()));
            let error = StreamError { at, error };
            if first.is_ok() {
                first = Err(error);
            }
        }
    }
    first
}

/// Gives the top-level streams what streams sent there, and logs what was thrown and not handled.
pub(super) fn drain(graph: &mut Graph) {
    let mut sent = 0;
    while let Some(event) = graph.surroundings.reinjected.pop_front() {
        if sent == REINJECTED_MAX {
            let lost = 1 + graph.surroundings.reinjected.len() as u64;
            graph.surroundings.figures.not_reinjected += lost;
            graph.surroundings.reinjected.clear();
            break;
        }
        sent += 1;
        // Logged and counted; no client waits for it.
        let _threw = stream(graph, event);
    }
    if !graph.has_caught() {
        return;
    }
    let (caught, more) = graph.take_caught();
    for caught in caught {
        graph.surroundings.figures.threw += 1;
        let place = place(graph, caught.node, &caught.error, &Position::default());
        let Caught { error, value, .. } = caught;
        complain(graph, &place, || format!("{place} threw{}: {}", subject(&value), error.in_words()));
    }
    graph.surroundings.figures.threw += more;
    graph.surroundings.complaints.left_out += more;
}

/// Counts and logs an exception of a function of a server, which is outside of all streams.
pub(super) fn threw(graph: &mut Graph, function: &str, event: &Value, error: &EvalError) {
    graph.surroundings.figures.threw += 1;
    let place = format!("{function} ({})", error.at());
    complain(graph, &place, || format!("{place} threw{}: {}", subject(event), error.in_words()));
}

/// The stream that threw: its name in the config and its place, and the place inside it if there is one.
fn place(graph: &Graph, node: NodeId, error: &EvalError, top: &Position) -> String {
    let inner = error.at();
    match graph.origin(node) {
        // A function of the config as a stream is named by the form that threw.
        Some(("function", at)) => format!("a function ({})", if inner.is_known() { inner } else { at }),
        Some((name, at)) => {
            let name = name.trim_end_matches('*');
            match (at.is_known(), inner.is_known() && inner != at) {
                (true, true) => format!("{name} ({at}, in {inner})"),
                (true, false) => format!("{name} ({at})"),
                (false, true) => format!("{name} (in {inner})"),
                // Several calls of the config have this form.
                (false, false) => name.to_owned(),
            }
        }
        None if inner.is_known() => format!("a function ({inner})"),
        None if top.is_known() => format!("a stream of ({top})"),
        None => "a stream".to_owned(),
    }
}

/// The event that a stream threw at, for the log: ` on host "a" service "b"`; empty for a timer.
fn subject(value: &Value) -> String {
    const TEXT_CHARS_MAX: usize = 100;
    let is_list = matches!(value, Value::Vector(_) | Value::List(_) | Value::Seq(_));
    let first = match is_list {
        true => fields::items(value).and_then(|items| items.first().cloned()).unwrap_or_default(),
        false => value.clone(),
    };
    let mut text = String::new();
    for field in [Field::Host, Field::Service] {
        if let Value::Text(of) = fields::get(&first, field) {
            let of: String = of.chars().take(TEXT_CHARS_MAX).collect();
            text.push_str(&format!(" {} {of:?}", field.name()));
        }
    }
    match (text.is_empty(), is_list) {
        (true, _) => text,
        (false, true) => format!(" on events, the first of{text}"),
        (false, false) => format!(" on{text}"),
    }
}

/// Logs an exception, unless there were many in this second: a stream may throw for each event.
fn complain(graph: &mut Graph, place: &str, text: impl FnOnce() -> String) {
    place.clone_into(&mut graph.surroundings.complaints.last_place);
    let second = graph.now_us().div_euclid(1_000_000);
    let Complaints { second: last, logged, left_out, .. } = &mut graph.surroundings.complaints;
    if second != *last {
        (*last, *logged) = (second, 0);
    }
    if *logged == COMPLAINTS_MAX {
        *left_out += 1;
        return;
    }
    *logged += 1;
    let left_out = std::mem::take(left_out);
    let mut text = text();
    if left_out > 0 {
        text.push_str(&format!("; {left_out} exceptions before this one were not logged"));
    }
    graph.evaluation.host.log(Level::Warn, &text);
}
