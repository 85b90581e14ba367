//! Channels, and events that go through all top-level streams again (spec riemann §§6.1, 10.7).

use super::surroundings::{Effect, SUBSCRIPTIONS_MAX};
use super::watching::Shape;
use super::{dispatch, record};
use crate::event::Field;
use crate::graph::{Graph, Node, Turn};
use crate::language::error::{EvalError, Outcome, Reason};
use crate::language::machine::{ANY, Machine};
use crate::natives;
use crate::object::class;
use crate::value::Value;

natives! {
    /// Functions of `riemann.streams`.
    pub(super) STREAMS = {
        "call-rescue", 2, 2, "Gives an event to streams; what one of them throws does not keep it from the others.", call_rescue;
        "reinject", 1, 1, "Sends an event through all top-level streams.", |m, a| reinject(m, &a[0]);
    }

    /// Functions of `riemann.config`.
    pub(super) CONFIG = {
        "publish", 1, 1, "A stream that publishes its events on a channel.", |m, a| {
            let publish = Publish { channel: a[0].clone() };
            Ok(Value::Stream(m.graph.add(Box::new(publish), &[])))
        };
        "subscribe", 2, 2, "Calls a function with each event of a channel; a stream that drops what it gets.", |m, a| subscribe(m, &a[0], &a[1]);
    }

    /// Functions of `riemann.pubsub`.
    pub(super) PUBSUB = {
        "publish!", 3, 3, "Publishes an event on a channel.", |m, a| publish(m.graph, &a[1], &a[2]).map(|()| Value::Nil);
        "subscribe!", 3, 4, "Calls a function with each event of a channel.", |m, a| subscribe(m, &a[1], &a[2]);
    }

    /// Functions of `riemann.core`.
    pub(super) CORE = {
        "stream!", 2, 2, "Sends an event through all top-level streams.", |m, a| reinject(m, &a[1]);
        "core", 0, ANY, "Refused: a config has one core.", |_, _| {
            Err(EvalError::throw(&class::UNSUPPORTED, "a config has one core, which is @core"))
        };
    }
}

/// Sends an event through all top-level streams once those of the event at hand have returned. Riemann does it at once, in the
/// middle of the stream.
fn reinject(machine: &mut Machine<'_>, event: &Value) -> Outcome {
    machine.graph.surroundings.reinject(event.clone());
    Ok(Value::Nil)
}

/// `(call-rescue event children)`, for streams that a config makes itself.
fn call_rescue(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let [event, children] = arguments else { unreachable!("the table says how many there are") };
    for child in machine.collect(children)? {
        let Value::Stream(node) = child else {
            match machine.call(&child, &mut [event.clone()]) {
                Ok(_) => {}
                Err(error) if matches!(error.reason(), Reason::Thrown(_)) => {
                    dispatch::threw(machine.graph, "a stream", event, &error);
                }
                // A limit ends the event, here as everywhere.
                Err(error) => return Err(error),
            }
            continue;
        };
        machine.graph.push_and_catch(node, event);
    }
    Ok(true.into())
}

fn subscribe(machine: &mut Machine<'_>, channel: &Value, function: &Value) -> Outcome {
    let subscriptions = &mut machine.graph.surroundings.subscriptions;
    if subscriptions.len() == SUBSCRIPTIONS_MAX {
        let message = format!("a config can subscribe {SUBSCRIPTIONS_MAX} functions to channels");
        return Err(EvalError::throw(&class::ILLEGAL_STATE, message));
    }
    if !machine.graph.evaluation.is_trial() {
        subscriptions.push((channel.clone(), function.clone()));
    }
    crate::nodes::construct(machine.graph, "sdo", &[])
}

/// Notes the event for subscribers outside, and calls those of the config, one after the other.
///
/// # Errors
/// What one of them throws; those after it are not called (spec riemann §6.1).
pub(super) fn publish(graph: &mut Graph, channel: &Value, event: &Value) -> Outcome<()> {
    note(graph, channel, event);
    if graph.surroundings.subscriptions.is_empty() {
        return Ok(());
    }
    let subscribers = graph.surroundings.subscribers(channel);
    subscribers.iter().try_for_each(|function| graph.call(function, std::slice::from_ref(event)).map(|_| ()))
}

/// Notes the event of a channel for subscribers outside whose queries match it.
fn note(graph: &mut Graph, channel: &Value, value: &Value) {
    let surroundings = &mut graph.surroundings;
    if surroundings.watches.is_empty() {
        return;
    }
    // Names in addresses are texts: a keyword is another channel.
    let Value::Text(channel) = channel else { return };
    let Some(event) = record::event_of(value) else { return };
    // What the index expires is a map in Riemann, there and on its way through the streams.
    let is_expired = matches!(event.get(Field::State), Value::Text(state) if state == "expired");
    let is_map = is_expired || !matches!(value, Value::Event(_));
    let shape = if is_map { Shape::Map } else { Shape::Record };
    let (watches, ended) = surroundings.watches.matching(channel, &event);
    if !watches.is_empty() {
        surroundings.effect(Effect::Published { watches, event, shape });
    }
    if let Some(ended) = ended {
        surroundings.effect(Effect::WatchEnded { watch: ended });
    }
}

/// `(publish channel)`
#[derive(Debug)]
struct Publish {
    channel: Value,
}

impl Node for Publish {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        publish(turn.graph(), &self.channel, value).map(|()| true)
    }
}
