//! The index in a config: `index`, `update-index`, `delete-from-index`, and `riemann.index` (spec riemann §§4, 10.7).

use std::sync::Arc;

use arcstr::{ArcStr, literal};

use super::record;
use super::services::undeclared;
use super::surroundings::INDEX_CHANNEL;
use super::{publishing, trees};
use crate::event::{Event, Field};
use crate::graph::{Graph, Node, NodeId, Turn};
use crate::index::{DEFAULT_TTL_S, Index, Progress, Search, SearchLimits, same_fields};
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::{ANY, Machine};
use crate::natives;
use crate::nodes::fields;
use crate::object::class;
use crate::query::Query;
use crate::value::Value;

/// Events that a search of a config gives, at most.
const RESULTS_MAX: usize = 100_000;

natives! {
    /// Functions of `riemann.config`.
    pub(super) CONFIG = {
        "index", 0, ANY, "The index: a stream that keeps the latest event of each host and service.", |m, _| index(m);
        "update-index", 1, ANY, "A stream that puts its events into the index.", |_, a| Ok(a[0].clone());
        "delete-from-index", 0, 1, "A stream that deletes the events of the index with the same host and service, or the same fields.", |m, a| {
            let fields = match a.first() {
                None | Some(Value::Nil) => None,
                Some(Value::Keyword(name)) => Some(vec![name.clone()]),
                Some(list) => {
                    let names = fields::items(list).unwrap_or_default().into_iter();
                    Some(names.filter_map(|name| match name { Value::Keyword(name) => Some(name), _ => None }).collect())
                }
            };
            Ok(Value::Stream(m.graph.add(Box::new(Delete { fields }), &[])))
        };
    }

    /// Functions of `riemann.index`. Their first argument is the index of the config, the only one.
    pub(super) INDEX = {
        "index", 0, 0, "The index.", |m, _| index(m);
        "insert", 2, 2, "Puts an event into the index.", |m, a| insert(m.graph, &mut a[1]).map(|()| Value::Nil);
        "update", 2, 2, "Puts an event into the index.", |m, a| insert(m.graph, &mut a[1]).map(|()| Value::Nil);
        "lookup", 3, 3, "The event of a host and service, or nil.", |m, a| {
            let found = m.graph.surroundings.index.as_ref().and_then(|index| index.lookup(&a[1], &a[2]));
            Ok(found.map(|event| Value::Event(Arc::clone(event))).unwrap_or_default())
        };
        "delete", 2, 2, "Deletes the event with the host and service of an event.", |m, a| {
            let index = m.graph.surroundings.index.as_mut();
            let (host, service) = (fields::get(&a[1], Field::Host), fields::get(&a[1], Field::Service));
            index.and_then(|index| index.delete(host, service));
            Ok(Value::Nil)
        };
        "delete-exactly", 2, 2, "Deletes an event if it is still the latest one.", |m, a| {
            if let (Some(index), Some(event)) = (m.graph.surroundings.index.as_mut(), record::event_of(&a[1])) {
                index.delete_exactly(&event);
            }
            Ok(Value::Nil)
        };
        "clear", 1, 1, "Deletes all events.", |m, _| {
            if let Some(index) = m.graph.surroundings.index.as_mut() { index.clear(); }
            Ok(Value::Nil)
        };
        "search", 2, 2, "The events that match the tree of a query.", |m, a| search(m, &a[1]);
        "default-ttl", 0, 0, "Seconds that an event without a ttl lives.", |_, _| Ok(DEFAULT_TTL_S.into());
    }

    /// Functions of `riemann.query`.
    pub(super) QUERY = {
        "ast", 1, 1, "The tree of a query's text.", |m, a| {
            let text = crate::print::to_str(&a[0]);
            let tree = crate::query::ast(&text).map_err(|error| EvalError::illegal_argument(error.to_string()))?;
            // The list form of a tree is a form of the language.
            m.read_form(&tree.to_string()).map(Option::unwrap_or_default)
        };
    }
}

/// `(index)`: one for a config, however often it is called (spec riemann §17.6).
fn index(machine: &mut Machine<'_>) -> Outcome {
    if let Some(stream) = machine.graph.surroundings.index_stream {
        return Ok(Value::Stream(stream));
    }
    if !machine.is_loading() {
        return Err(undeclared("index"));
    }
    let stream = machine.graph.add_for_all(Box::new(Insert));
    let surroundings = &mut machine.graph.surroundings;
    surroundings.index = Some(Index::new(surroundings.index_limits, surroundings.seed));
    surroundings.index_stream = Some(stream);
    set_core(machine, stream);
    Ok(Value::Stream(stream))
}

/// `@core` has the index under `:index`.
fn set_core(machine: &Machine<'_>, index: NodeId) {
    let core = machine.world.intern(&literal!("riemann.config"), &literal!("core"));
    if let Some(Value::Atom(core)) = core.get() {
        core.replace(Value::map([(Value::keyword("index"), Value::Stream(index))]));
    }
}

/// The stream that `(index)` is.
#[derive(Debug)]
struct Insert;

impl Node for Insert {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        insert(turn.graph(), value).map(|()| true)
    }
}

/// Puts an event into the index, and publishes it.
fn insert(graph: &mut Graph, value: &mut Value) -> Outcome<()> {
    let event = record::take_event(value).ok_or_else(|| fields::cannot("index", value))?;
    let kept = graph.surroundings.insert(&event);
    kept.map_err(|reject| EvalError::illegal_argument(reject.to_string()))?;
    publishing::publish(graph, &Value::Text(INDEX_CHANNEL), &Value::Event(event))
}

/// The events of a search. It is charged to what runs.
fn search(machine: &mut Machine<'_>, tree: &Value) -> Outcome {
    let tree = trees::of(tree)?;
    let query = Query::of(tree).map_err(|error| EvalError::illegal_argument(error.to_string()))?;
    let Some(index) = &machine.graph.surroundings.index else { return Ok(Value::list([])) };
    let limits =
        SearchLimits { results_max: RESULTS_MAX, steps_max: machine.graph.evaluation.budget.steps_left() };
    let mut search = Search::new(&Arc::new(query), index, limits);
    let mut found = Vec::new();
    let progress = search.run(index, u64::MAX, &mut found);
    let steps = search.counts().steps;
    machine.budget.step(usize::try_from(steps).unwrap_or(usize::MAX))?;
    match progress {
        Progress::Done => Ok(Value::list(found.into_iter().map(Value::Event))),
        Progress::More | Progress::Stopped(_) => Err(EvalError::throw(
            &class::ILLEGAL_STATE,
            format!("index/search: more than {RESULTS_MAX} events match, or the search takes too long"),
        )),
    }
}

/// `delete-from-index`
#[derive(Debug)]
struct Delete {
    /// The fields that have to be equal; none: host and service.
    fields: Option<Vec<ArcStr>>,
}

impl Node for Delete {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        let graph = turn.graph();
        let event: Arc<Event> = record::event_of(value).ok_or_else(|| fields::cannot("delete", value))?;
        let Some(index) = &mut graph.surroundings.index else { return Ok(true) };
        let Some(fields) = &self.fields else {
            index.delete(event.get(Field::Host), event.get(Field::Service));
            return Ok(true);
        };
        let tree = same_fields(fields, &event);
        let query = Query::of(tree).map_err(|error| EvalError::illegal_argument(error.to_string()))?;
        let steps_max = graph.evaluation.budget.steps_left();
        let limits = SearchLimits { results_max: usize::MAX, steps_max };
        let mut search = Search::new(&Arc::new(query), index, limits);
        search.delete(index, u64::MAX, &mut Vec::new());
        let steps = search.counts().steps;
        graph.evaluation.budget.step(usize::try_from(steps).unwrap_or(usize::MAX))?;
        Ok(true)
    }
}
