//! Clients of other Riemanns, and `forward` (spec riemann §12.3).
//!
//! Path of an event: `forward`, or `send-event` of a function -> `Effect::Event` -> an output of type `riemann` of the daemon, which has
//! the connection, the batches, retries and the account. So nothing here waits for the other Riemann, and nothing is lost with a
//! broken connection. Not here: queries to it, which would have to wait.

use std::sync::Arc;

use arcstr::{ArcStr, literal};

use super::declared::{Output, OutputNumber, Transport};
use super::options::Options;
use super::outputs::{declare, events};
use super::record;
use super::surroundings::Effect;
use crate::function::Bound;
use crate::graph::{Graph, Node, Turn};
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::{ANY, Machine};
use crate::natives;
use crate::nodes::fields;
use crate::number::Number;
use crate::object::class;
use crate::object::reference::{Atom, Sort};
use crate::value::Value;

/// Clients of a `multi-client`, at most.
const CLIENTS_MAX: usize = 100;

natives! {
    /// Functions of `riemann.config`.
    pub(super) CONFIG = {
        "forward", 1, 1, "A stream to another Riemann, by a client of it.", forward;
    }

    /// Functions of `riemann.client`.
    pub(super) NATIVES = {
        "tcp-client", 0, ANY, "A client of another Riemann, over TCP: its events are acknowledged, and sent again if they are not.", |m, a| client(m, "tcp-client", Transport::Tcp, a);
        "udp-client", 0, ANY, "A client of another Riemann, over UDP: its events are sent once.", |m, a| client(m, "udp-client", Transport::Udp, a);
        "multi-client", 1, 1, "A client that shares out events among others.", multi_client;
        "batch-client", 1, ANY, "The client itself: its output batches.", |_, a| outputs_of(&a[0]).map(|_| a[0].clone());
        "send-event", 2, 3, "Queues an event for another Riemann; a promise that has its value.", |m, a| send(m, &a[0].clone(), &a[1].clone());
        "send-events", 2, 3, "Queues events for another Riemann; a promise that has its value.", |m, a| send(m, &a[0].clone(), &a[1].clone());
        "connected?", 1, 1, "True: the output connects when it has something to send.", |_, a| outputs_of(&a[0]).map(|_| true.into());
        "connect!", 1, 1, "The client: the output connects when it has something to send.", |_, a| outputs_of(&a[0]).map(|_| a[0].clone());
        "reconnect!", 1, 1, "The client: the output connects again by itself.", |_, a| outputs_of(&a[0]).map(|_| a[0].clone());
        "flush!", 1, 1, "Nil: what is queued is sent anyway.", |_, a| outputs_of(&a[0]).map(|_| Value::Nil);
        "close!", 1, 1, "Nil: an output ends with its config.", |_, a| outputs_of(&a[0]).map(|_| Value::Nil);
        "query", 2, ANY, "Refused: streams would have to wait for the answer.", |_, _| {
            let message = "query of another Riemann is not available: streams would have to wait for the answer";
            Err(EvalError::throw(&class::UNSUPPORTED, message))
        };
    }

    /// What `tcp-client` gives, with the numbers of its outputs.
    CLIENT = {
        "client", 1, ANY, "A client of another Riemann.", |_, _| {
            Err(EvalError::illegal_argument("a client is no function: use (forward client)"))
        };
    }
}

fn client(
    machine: &mut Machine<'_>,
    function: &'static str,
    transport: Transport,
    arguments: &[Value],
) -> Outcome {
    let known = [
        "host",
        "port",
        "remote-host",
        "remote-port",
        "local-host",
        "local-port",
        "tls?",
        "key",
        "cert",
        "ca-cert",
        "skip-hostname-check",
        "auto-connect",
        "max-size",
    ];
    let options = Options::of(machine, function, arguments, &known)?;
    for useless in ["local-host", "local-port"] {
        if options.get(useless).is_some() {
            let text = format!("{function}: :{useless} has no effect");
            machine.graph.surroundings.declared.note(options.at.clone(), text);
        }
    }
    let tls = options.tls()?;
    if tls.is_some() && transport == Transport::Udp {
        return Err(options.wrong(":tls? is for connections: datagrams are not encrypted"));
    }
    let host = match options.text("host")? {
        Some(host) => Some(host),
        None => options.text("remote-host")?,
    };
    let standard = if tls.is_some() { 5554 } else { 5555 };
    let what = Output::Riemann {
        host: host.unwrap_or(literal!("localhost")),
        port: options.port_of("port", options.port_of("remote-port", standard)?)?,
        transport,
        skip_hostname_check: tls.is_some() && options.is_set("skip-hostname-check"),
        tls,
    };
    let output = declare(machine, options.function, what, options.at.clone())?;
    Ok(of_outputs(&[output]))
}

/// A client as a value of the config.
fn of_outputs(outputs: &[OutputNumber]) -> Value {
    let numbers: Arc<[Value]> = outputs.iter().map(|output| i64::from(output.0).into()).collect();
    Value::Bound(Arc::new(Bound::new(&CLIENT[0], numbers)))
}

/// The outputs of a client.
fn outputs_of(client: &Value) -> Outcome<Vec<OutputNumber>> {
    let number = |value: &Value| match value {
        Value::Number(Number::Int(number)) => u16::try_from(*number).ok().map(OutputNumber),
        _ => None,
    };
    match client {
        Value::Bound(bound) if std::ptr::eq(bound.native, &CLIENT[0]) => {
            Ok(bound.arguments.iter().filter_map(number).collect())
        }
        other => Err(fields::cannot("use as a client of Riemann", other)),
    }
}

/// `(multi-client [client …])`
fn multi_client(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let mut outputs = Vec::new();
    for client in machine.collect(&arguments[0])? {
        outputs.extend(outputs_of(&client)?);
    }
    if outputs.is_empty() || outputs.len() > CLIENTS_MAX {
        let message = format!("(multi-client …) needs 1 to {CLIENTS_MAX} clients");
        return Err(EvalError::illegal_argument(message));
    }
    Ok(of_outputs(&outputs))
}

fn forward(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let outputs = outputs_of(&arguments[0])?;
    Ok(Value::Stream(machine.graph.add(Box::new(Forward { outputs, next: 0 }), &[])))
}

/// `(send-event client event)`: it is queued at once, so the promise has its value.
fn send(machine: &mut Machine<'_>, client: &Value, what: &Value) -> Outcome {
    let outputs = outputs_of(client)?;
    // Not always the first one, and without memory of the last: by the number of events that went through the config.
    let turn = machine.graph.surroundings.figures.streamed as usize;
    let list = match what {
        Value::Event(_) | Value::Map(_) | Value::Nil => what.clone(),
        list => Value::vector(machine.collect(list)?),
    };
    queue(machine.graph, outputs[turn % outputs.len()], &list)?;
    let reply = Value::map([(Value::Keyword(ArcStr::from("ok")), true.into())]);
    let promise = Atom::new(Sort::Promise, Value::Nil);
    drop(promise.replace(reply));
    Ok(Value::Atom(Arc::new(promise)))
}

fn queue(graph: &mut Graph, output: OutputNumber, value: &Value) -> Outcome<()> {
    for mut event in events(value)? {
        let event = record::take_event(&mut event).ok_or_else(|| fields::cannot("send", &event))?;
        graph.surroundings.effect(Effect::Event { output, event });
    }
    Ok(())
}

/// `forward`
#[derive(Debug)]
struct Forward {
    outputs: Vec<OutputNumber>,
    /// Which of them is next.
    next: usize,
}

impl Node for Forward {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        let output = self.outputs[self.next % self.outputs.len()];
        self.next = (self.next + 1) % self.outputs.len();
        queue(turn.graph(), output, value)?;
        Ok(true)
    }
}
