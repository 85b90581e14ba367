//! The outputs of a config: streams whose events leave the process (spec riemann §14).
//!
//! They only add effects; queues, connections and retries are the daemon's.

use std::fmt::Write as _;

use arcstr::literal;

use super::declared::{DECLARED_MAX, Output, OutputNumber, Placed};
use super::options::Options;
use super::record;
use super::services::{transport, undeclared};
use super::surroundings::Effect;
use crate::effort;
use crate::graph::{Node, Turn};
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::{ANY, Machine};
use crate::language::namespace::Entry;
use crate::natives;
use crate::nodes::fields;
use crate::number::Number;
use crate::position::Position;
use crate::print::to_str;
use crate::value::Value;

natives! {
    /// Functions of `riemann.config`.
    pub(super) CONFIG = {
        "graphite", 0, ANY, "A stream to Graphite: a point for each event with a metric.", graphite;
    }

    /// Functions of `staunch`.
    pub(super) STAUNCH = {
        "output", 1, 1, "A stream to an output of the native config, by its name.", |m, a| {
            let name = match &a[0] {
                Value::Text(name) | Value::Keyword(name) => name.clone(),
                other => return Err(fields::cannot("use as the name of an output", other)),
            };
            let at = m.graph.evaluation.here().cloned().unwrap_or_default();
            let output = declare(m, "staunch/output", Output::Named(name), at)?;
            Ok(Value::Stream(m.graph.add(Box::new(Events { output }), &[])))
        };
    }
}

/// Adds an output, or finds the same one. After the load it finds those that were declared.
///
/// # Errors
/// If there are too many, and, after the load, if there is none such.
pub(super) fn declare(
    machine: &mut Machine<'_>,
    function: &str,
    output: Output,
    at: Position,
) -> Outcome<OutputNumber> {
    let is_loading = machine.is_loading();
    let outputs = &mut machine.graph.surroundings.declared.outputs;
    let known = outputs.iter().position(|known| known.what == output);
    let place = known.unwrap_or(outputs.len());
    if known.is_none() && !is_loading {
        return Err(undeclared(function));
    }
    if place == DECLARED_MAX {
        let message = format!("a config can have {DECLARED_MAX} outputs");
        return Err(EvalError::illegal_argument(message).within(&at));
    }
    if known.is_none() {
        outputs.push(Placed { what: output, at });
    }
    Ok(OutputNumber(place as u16))
}

fn graphite(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let known = [
        "host",
        "port",
        "protocol",
        "path",
        "pool-size",
        "max-pools-size",
        "claim-timeout",
        "reconnect-interval",
        "block-start",
    ];
    let options = Options::of(machine, "graphite", arguments, &known)?;
    let host = options.host()?.unwrap_or(literal!("127.0.0.1"));
    let (port, transport) = (options.port(2003)?, transport(&options)?);
    let path = match options.get("path") {
        Some(path) => path.clone(),
        None => native(machine, "riemann.graphite", "graphite-path-percentiles"),
    };
    let at = options.at.clone();
    let output = declare(machine, "graphite", Output::Graphite { host, port, transport }, at)?;
    Ok(Value::Stream(machine.graph.add(Box::new(Points { output, path }), &[])))
}

/// A function of Staunch's own.
pub(super) fn native(machine: &Machine<'_>, namespace: &str, name: &str) -> Value {
    match machine.world.namespaces().find(namespace, name).map(|named| &named.entry) {
        Some(Entry::Native(native)) => Value::Native(native),
        _ => unreachable!("the namespace {namespace} has {name}"),
    }
}

/// The events of a value: one, or those of a vector.
///
/// # Errors
/// If there are more values in it than one event may lead to: vectors can share their parts.
pub(super) fn events(value: &Value) -> Outcome<Vec<Value>> {
    let mut events = Vec::new();
    gather(value, &mut events)?;
    Ok(events)
}

fn gather(value: &Value, events: &mut Vec<Value>) -> Outcome<()> {
    if !effort::spend(1) {
        return Err(EvalError::too_many_steps());
    }
    match value {
        Value::Vector(_) | Value::List(_) | Value::Seq(_) => {
            fields::items(value).unwrap_or_default().iter().try_for_each(|value| gather(value, events))
        }
        Value::Nil => Ok(()),
        event => {
            events.push(event.clone());
            Ok(())
        }
    }
}

/// `graphite`
#[derive(Debug)]
struct Points {
    output: OutputNumber,
    path: Value,
}

impl Node for Points {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        for event in events(value)? {
            let Some(metric) = fields::metric(&event)?.cloned() else { continue };
            let path = to_str(&turn.call(&self.path, std::slice::from_ref(&event))?);
            let time_s = match fields::time(&event)? {
                Some(time) => fields::to_us(time).div_euclid(1_000_000),
                None => turn.now_us().div_euclid(1_000_000),
            };
            let line = line(&path, &metric, time_s)?;
            turn.graph().surroundings.effect(Effect::Line { output: self.output, line });
        }
        Ok(true)
    }
}

/// `path value time`, with an integer or a double (spec riemann §14.1).
fn line(path: &str, metric: &Number, time_s: i64) -> Outcome<String> {
    if path.is_empty() || path.bytes().any(|byte| byte.is_ascii_whitespace() || byte == 0) {
        let path: String = path.chars().take(100).collect();
        return Err(EvalError::illegal_argument(format!("`{path}` cannot be the name of a series")));
    }
    let mut line = String::with_capacity(path.len() + 40);
    line.push_str(path);
    line.push(' ');
    match metric {
        Number::Int(value) => write!(line, "{value}"),
        Number::Float(_) | Number::Double(_) | Number::Ratio(_) | Number::Big(_) => {
            let value = metric.as_f64();
            if !value.is_finite() {
                return Err(EvalError::illegal_argument("Graphite has no infinite values and no NaN"));
            }
            write!(line, "{}", crate::print::number_text(&Number::Double(value), false))
        }
    }
    .expect("a String takes any text");
    writeln!(line, " {time_s}").expect("a String takes any text");
    Ok(line)
}

/// A stream to an output that takes events.
#[derive(Debug)]
struct Events {
    output: OutputNumber,
}

impl Node for Events {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        for mut event in events(value)? {
            let event = record::take_event(&mut event).ok_or_else(|| fields::cannot("send", &event))?;
            turn.graph().surroundings.effect(Effect::Event { output: self.output, event });
        }
        Ok(true)
    }
}
