//! `mailer`: streams whose events become mails (spec riemann §14.2).
//!
//! Path of an event: a stream of the config -> **[`Mails`]** (subject and body by the config's functions) -> `Effect::Event` with them
//! as attributes -> an output of type `email` of the daemon, which has the connection, retries and the account.

use std::sync::Arc;

use arcstr::{ArcStr, literal};
use model::limits::MAIL_RECIPIENTS_MAX;

use super::declared::{Mailer, Output, OutputNumber};
use super::options::Options;
use super::outputs::{declare, events, native};
use super::surroundings::Effect;
use crate::event::{Event, Field};
use crate::function::Bound;
use crate::graph::{Node, Turn};
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::{ANY, Machine};
use crate::natives;
use crate::nodes::fields;
use crate::number::Number;
use crate::position::Position;
use crate::print::to_str;
use crate::value::Value;

natives! {
    /// Functions of `riemann.config`.
    pub(super) NATIVES = {
        "mailer", 0, ANY, "A function that makes streams to recipients.", mailer;
    }

    /// What `mailer` gives, with the number of its output, its sender, and its functions for subject and body.
    EMAIL = {
        "email", 4, ANY, "A stream that sends mails to these recipients.", email;
    }
}

fn mailer(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let known = [
        "host",
        "port",
        "user",
        "pass",
        "ssl",
        "tls",
        "sender",
        "from",
        "to",
        "subject",
        "body",
        "reply-to",
        "cc",
        "bcc",
        "message-id",
        "user-agent",
        "content-type",
    ];
    // Options of the server and of the message, in one map or in two: the later ones count.
    let mut given: Vec<(Value, Value)> = Vec::new();
    let is_maps = arguments.iter().all(|one| matches!(one, Value::Map(_) | Value::Nil));
    let merged = match is_maps {
        true => {
            for map in arguments.iter() {
                if let Value::Map(map) = map {
                    given.extend(map.iter().map(|(key, value)| (key.clone(), value.clone())));
                }
            }
            vec![Value::map(given)]
        }
        false => arguments.to_vec(),
    };
    let options = Options::of(machine, "mailer", &merged, &known)?;
    for missing in ["message-id", "user-agent", "content-type"] {
        if options.get(missing).is_some() {
            let text = format!("mailer: :{missing} has no effect");
            machine.graph.surroundings.declared.note(options.at.clone(), text);
        }
    }
    let is_on =
        |key: &str| options.is_set(key) && options.get(key).is_none_or(|value| to_str(value) != ":no");
    let (scheme, port) = if is_on("ssl") { ("smtps", 465) } else { ("smtp", 25) };
    let host = options.host()?;
    if let [Some(_), None] = [options.text("user")?, options.text("pass")?] {
        return Err(options.wrong(":user needs :pass"));
    }
    if host.is_none() {
        let text = "mailer without :host: mails go to the mail server at 127.0.0.1:25, not through sendmail";
        machine.graph.surroundings.declared.note(options.at.clone(), text);
    }
    let smtp = format!("{scheme}://{}:{}", host.unwrap_or(literal!("127.0.0.1")), options.port(port)?);
    let what = Mailer {
        smtp: smtp.into(),
        starttls: is_on("tls") && !is_on("ssl"),
        user: options.text("user")?,
        password: options.text("pass")?,
    };
    let output = declare(machine, "mailer", Output::Mail(Box::new(what)), options.at.clone())?;
    let head = head(machine, &options)?;
    let function = |key: &str| match options.get(key) {
        Some(function) => function.clone(),
        None => native(machine, "riemann.common", key),
    };
    let held = [i64::from(output.0).into(), Value::map(head), function("subject"), function("body")];
    Ok(Value::Bound(Arc::new(Bound::new(&EMAIL[0], held.into()))))
}

/// The addresses of each mail: of its sender, and of copies.
fn head(machine: &mut Machine<'_>, options: &Options) -> Outcome<Vec<(Value, Value)>> {
    let mut head = vec![(Value::keyword("from"), Value::Text(literal!("riemann")))];
    for key in ["from", "sender", "reply-to", "cc", "bcc"] {
        let Some(given) = options.get(key) else { continue };
        let is_list = matches!(key, "cc" | "bcc");
        let all = addresses(machine, given)
            .map_err(|_| options.wrong(format_args!(":{key} must be an address")))?;
        if all.len() != 1 && !is_list {
            return Err(options.wrong(format_args!(":{key} must be one address")));
        }
        note_local(machine, &options.at, &all);
        head.push((Value::keyword(key), Value::from(all.join(","))));
    }
    Ok(head)
}

/// The addresses of a text or of a list of texts.
fn addresses(machine: &mut Machine<'_>, value: &Value) -> Outcome<Vec<ArcStr>> {
    let all = match value {
        Value::Vector(_) | Value::List(_) | Value::Seq(_) | Value::Set(_) => machine.collect(value)?,
        one => vec![one.clone()],
    };
    let all = all.into_iter().map(|one| match one {
        Value::Text(address) if !address.is_empty() => Ok(address),
        other => Err(fields::cannot("use as the address of a recipient", &other)),
    });
    all.collect()
}

/// Notes addresses without a domain: they are of the machine on which the daemon runs, as for sendmail.
fn note_local(machine: &mut Machine<'_>, at: &Position, addresses: &[ArcStr]) {
    for address in addresses.iter().filter(|address| !address.contains('@')) {
        let text =
            format!("the address `{address}` has no domain: it is completed with the name of the machine");
        machine.graph.surroundings.declared.note(at.clone(), text);
    }
}

/// `(email "a@b" …)`, `(email ["a@b" …])`
fn email(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let [output, head, subject, body, to @ ..] = arguments else {
        return Err(EvalError::illegal_argument("(email …) needs recipients"));
    };
    let Value::Number(Number::Int(output)) = output else {
        return Err(EvalError::illegal_argument("(email …) belongs to a mailer"));
    };
    let mut recipients = Vec::new();
    for one in to.iter() {
        recipients.extend(addresses(machine, one)?);
    }
    if recipients.is_empty() {
        return Err(EvalError::illegal_argument("(email …) needs recipients"));
    }
    let copies = [literal!("cc"), literal!("bcc")].map(|key| match fields::named(head, &key) {
        Value::Text(list) => list.split(',').count(),
        _ => 0,
    });
    if recipients.len() + copies.iter().sum::<usize>() > MAIL_RECIPIENTS_MAX {
        let message =
            format!("(email …): a mail has at most {MAIL_RECIPIENTS_MAX} recipients, :cc and :bcc included");
        return Err(EvalError::illegal_argument(message));
    }
    let at = machine.here().clone();
    note_local(machine, &at, &recipients);
    let mut attributes = vec![(literal!("to"), Value::from(recipients.join(",")))];
    for key in [literal!("from"), literal!("cc"), literal!("bcc"), literal!("sender"), literal!("reply-to")] {
        let value = fields::named(head, &key).clone();
        if !value.is_nil() {
            attributes.push((key, value));
        }
    }
    let output = OutputNumber(u16::try_from(*output).unwrap_or(u16::MAX));
    let node = Mails { output, attributes, subject: subject.clone(), body: body.clone() };
    Ok(Value::Stream(machine.graph.add(Box::new(node), &[])))
}

/// A stream that sends a mail for each event, or each vector of events.
#[derive(Debug)]
struct Mails {
    output: OutputNumber,
    /// Sender, recipients and the like, as attributes of what the output gets.
    attributes: Vec<(ArcStr, Value)>,
    subject: Value,
    body: Value,
}

impl Node for Mails {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        let all = events(value)?;
        let Some(first) = all.first() else { return Ok(true) };
        let mut event = Event::default();
        for field in [Field::Host, Field::Service, Field::State, Field::Time] {
            event.set(field, fields::get(first, field).clone());
        }
        let list = [Value::vector(all.iter().cloned())];
        let subject = to_str(&turn.call(&self.subject, &list)?);
        let body = to_str(&turn.call(&self.body, &list)?);
        for (name, value) in &self.attributes {
            event.set_attribute(name.clone(), value.clone());
        }
        event.set_attribute(literal!("subject"), Value::from(subject));
        event.set_attribute(literal!("body"), Value::from(body));
        turn.graph().surroundings.effect(Effect::Event { output: self.output, event: event.into() });
        Ok(true)
    }
}
