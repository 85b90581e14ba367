//! `mailer`: streams whose events become mails (spec riemann §14.2).
//!
//! Path of an event: a stream of the config -> **[`Mails`]** (subject and body by the config's functions) -> `Effect::Event` with them
//! as attributes -> an output of type `email` of the daemon, which has the connection, retries and the account.

use std::sync::Arc;

use arcstr::{ArcStr, literal};

use super::declared::{Mailer, Output, OutputNumber};
use super::options::Options;
use super::outputs::{declare, events};
use super::posts::native;
use super::surroundings::Effect;
use crate::event::{Event, Field};
use crate::function::Bound;
use crate::graph::{Node, Turn};
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::{ANY, Machine};
use crate::natives;
use crate::nodes::fields;
use crate::number::Number;
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
    for missing in ["sender", "cc", "bcc", "reply-to", "message-id", "user-agent", "content-type"] {
        if options.get(missing).is_some() {
            let text = format!("mailer: :{missing} has no effect yet");
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
    let function = |key: &str, default: &str| match options.get(key) {
        Some(function) => function.clone(),
        None => native(machine, "riemann.common", default),
    };
    let from = Value::Text(options.text("from")?.unwrap_or(literal!("riemann")));
    let held = [i64::from(output.0).into(), from, function("subject", "subject"), function("body", "body")];
    Ok(Value::Bound(Arc::new(Bound::new(&EMAIL[0], held.into()))))
}

/// `(email "a@b" …)`, `(email ["a@b" …])`
fn email(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let [output, from, subject, body, to @ ..] = arguments else {
        return Err(EvalError::illegal_argument("(email …) needs recipients"));
    };
    let Value::Number(Number::Int(output)) = output else {
        return Err(EvalError::illegal_argument("(email …) belongs to a mailer"));
    };
    let mut recipients = Vec::new();
    for one in to.iter() {
        let all = match one {
            Value::Vector(_) | Value::List(_) | Value::Seq(_) | Value::Set(_) => {
                fields::items(one).unwrap_or_default()
            }
            one => vec![one.clone()],
        };
        for one in all {
            match one {
                Value::Text(address) if !address.is_empty() => recipients.push(address),
                other => return Err(fields::cannot("use as the address of a recipient", &other)),
            }
        }
    }
    if recipients.is_empty() {
        return Err(EvalError::illegal_argument("(email …) needs recipients"));
    }
    let output = OutputNumber(u16::try_from(*output).unwrap_or(u16::MAX));
    let to = ArcStr::from(recipients.join(","));
    let node = Mails { output, from: from.clone(), to, subject: subject.clone(), body: body.clone() };
    Ok(Value::Stream(machine.graph.add(Box::new(node), &[])))
}

/// A stream that sends a mail for each event, or each vector of events.
#[derive(Debug)]
struct Mails {
    output: OutputNumber,
    from: Value,
    to: ArcStr,
    subject: Value,
    body: Value,
}

impl Node for Mails {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        let all = events(value);
        let Some(first) = all.first() else { return Ok(true) };
        let mut event = Event::default();
        for field in [Field::Host, Field::Service, Field::State, Field::Time] {
            event.set(field, fields::get(first, field).clone());
        }
        let list = [Value::vector(all.iter().cloned())];
        let subject = to_str(&turn.call(&self.subject, &list)?);
        let body = to_str(&turn.call(&self.body, &list)?);
        event.set_attribute(literal!("from"), self.from.clone());
        event.set_attribute(literal!("to"), Value::Text(self.to.clone()));
        event.set_attribute(literal!("subject"), Value::from(subject));
        event.set_attribute(literal!("body"), Value::from(body));
        turn.graph().surroundings.effect(Effect::Event { output: self.output, event: event.into() });
        Ok(true)
    }
}
