//! Streams to alerting services and chats beside those of `posts` (spec riemann §14.2).
//!
//! Path of an event: `posts::Posts` -> a [`Form`] of this file -> a request for each event, or for each push and recipient. All of them
//! are notifications: what is queued for them is on disk.

use std::sync::Arc;

use arcstr::{ArcStr, literal};

use super::declared::OutputNumber;
use super::options::Options;
use super::outputs::native;
use super::posts::{
    FORM, Form, Request, basic, declare_post, encoded, formatted, json_of, named_state, needed, object,
    post_form, stream_to, word,
};
use crate::event::Field;
use crate::function::Bound;
use crate::graph::Turn;
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
        "victorops", 2, 2, "Streams of messages to VictorOps: info, warning, critical, acknowledgement and recovery.", victorops;
        "twilio", 0, ANY, "A function that makes streams of text messages to telephone numbers.", |m, a| messenger(m, "twilio", a);
        "mailgun", 0, ANY, "A function that makes streams of mails by Mailgun.", |m, a| messenger(m, "mailgun", a);
        "telegram", 0, ANY, "A stream to a chat of Telegram: a message for each event.", telegram;
        "pushover", 2, 3, "A stream to a user of Pushover: a message for each event.", pushover;
        "msteams", 0, ANY, "A stream to a channel of Microsoft Teams: a message for each event.", msteams;
    }

    /// What `twilio` and `mailgun` give, with the number of the output, which of them it is, its sender, and its functions for subject
    /// and body.
    MESSENGER = {
        "messenger", 5, ANY, "A stream that sends messages to these recipients.", to_recipients;
    }
}

/// A service with a message for each event.
#[derive(Debug)]
enum Service {
    VictorOps { kind: &'static str },
    Telegram { options: Value, formatter: Value },
    Pushover { token: ArcStr, user: ArcStr, formatter: Value },
    Teams { formatter: Value },
}

impl Form for Service {
    fn requests(&self, events: &[Value], turn: &mut Turn<'_>) -> Outcome<Vec<Request>> {
        let mut requests = Vec::new();
        for event in events {
            let body = match self {
                Service::VictorOps { kind } => alert(event, kind, turn)?,
                Service::Telegram { options, formatter } => {
                    let text = match formatted(event, formatter, turn)? {
                        Value::Nil => text_of(event),
                        text => to_str(&text),
                    };
                    object(&[("text", Value::from(text))], options, turn)?
                }
                Service::Pushover { token, user, formatter } => {
                    let more = formatted(event, formatter, turn)?;
                    pushed((token, user), event, &more)
                }
                Service::Teams { formatter } => match formatted(event, formatter, turn)? {
                    Value::Nil => card(event, turn)?,
                    message => json_of(&message, turn)?,
                },
            };
            requests.push(Request { of: event.clone(), body, path: None });
        }
        Ok(requests)
    }

    fn is_notification(&self) -> bool {
        true
    }
}

fn victorops(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let [Value::Text(key), Value::Text(routing)] = arguments else {
        return Err(EvalError::illegal_argument("(victorops api-key routing-key): both must be texts"));
    };
    let url = format!(
        "https://alert.victorops.com/integrations/generic/20131114/alert/{}/{}",
        encoded(key),
        encoded(routing)
    );
    let options = Options::of(machine, "victorops", &[], &["timeout"])?;
    let mut streams = Vec::new();
    for kind in ["info", "warning", "critical", "acknowledgement", "recovery"] {
        let form = Box::new(Service::VictorOps { kind });
        let stream = post_form(machine, &options, (url.clone(), Vec::new()), form)?;
        streams.push((Value::Keyword(ArcStr::from(kind)), stream));
    }
    Ok(Value::map(streams))
}

fn alert(event: &Value, kind: &str, turn: &mut Turn<'_>) -> Outcome<String> {
    let text = |of| to_str(fields::get(event, of));
    let time = fields::get(event, Field::Time).as_number().map(fields::to_us);
    let members = [
        ("message_type", Value::from(kind.to_uppercase())),
        ("entity_id", Value::from(format!("{}/{}", text(Field::Host), text(Field::Service)))),
        ("timestamp", time.map(|us| us.div_euclid(1_000_000).into()).unwrap_or_default()),
        ("state_message", Value::from(text_of(event))),
        ("monitoring_tool", Value::from("riemann".to_owned())),
    ];
    object(&members, &Value::Nil, turn)
}

/// The state, and the description behind it if there is one.
fn text_of(event: &Value) -> String {
    let description = to_str(fields::get(event, Field::Description));
    let state = named_state(event);
    if description.is_empty() { state } else { format!("{state}\n\n{description}") }
}

fn telegram(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let known = ["token", "telegram-options", "message-formatter", "http-options"];
    let options = Options::of(machine, "telegram", arguments, &known)?;
    let of_chat = options.get("telegram-options").cloned().unwrap_or_default();
    if fields::named(&of_chat, &literal!("chat_id")).is_nil() {
        return Err(options.wrong(":telegram-options needs a :chat_id"));
    }
    let url = format!("https://api.telegram.org/bot{}/sendMessage", needed(&options, "token")?);
    let formatter = options.get("message-formatter").cloned().unwrap_or_default();
    let form = Box::new(Service::Telegram { options: of_chat, formatter });
    post_form(machine, &options, (url, Vec::new()), form)
}

fn pushover(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let (Value::Text(token), Value::Text(user)) = (&arguments[0], &arguments[1]) else {
        return Err(EvalError::illegal_argument("(pushover token user): both must be texts"));
    };
    let (token, user) = (token.clone(), user.clone());
    let options = Options::of(machine, "pushover", &arguments[2..], &["formatter"])?;
    let formatter = options.get("formatter").cloned().unwrap_or_default();
    let form = Box::new(Service::Pushover { token, user, formatter });
    let url = "https://api.pushover.net/1/messages.json".to_owned();
    post_form(machine, &options, (url, vec![FORM]), form)
}

fn pushed((token, user): (&ArcStr, &ArcStr), event: &Value, more: &Value) -> String {
    let text = |of| to_str(fields::get(event, of));
    let mut members = vec![
        ("token".to_owned(), token.to_string()),
        ("user".to_owned(), user.to_string()),
        ("title".to_owned(), format!("{} {}", text(Field::Host), text(Field::Service))),
        ("message".to_owned(), text_of(event)),
    ];
    if let Value::Map(more) = more {
        for (name, value) in more.iter() {
            let name = to_str(name).trim_start_matches(':').to_owned();
            members.retain(|(known, _)| *known != name);
            members.push((name, to_str(value)));
        }
    }
    form(&members)
}

/// A form of the web.
fn form(members: &[(String, String)]) -> String {
    let each = members.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value)));
    each.collect::<Vec<_>>().join("&")
}

fn msteams(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let options = Options::of(machine, "msteams", arguments, &["url", "formatter", "http-options"])?;
    let url = needed(&options, "url")?.to_string();
    let formatter = options.get("formatter").cloned().unwrap_or_default();
    post_form(machine, &options, (url, Vec::new()), Box::new(Service::Teams { formatter }))
}

fn card(event: &Value, turn: &mut Turn<'_>) -> Outcome<String> {
    let text = |of| to_str(fields::get(event, of));
    let members = [
        ("@type", Value::from("MessageCard".to_owned())),
        ("@context", Value::from("https://schema.org/extensions".to_owned())),
        ("title", Value::from(format!("{} {}", text(Field::Host), text(Field::Service)))),
        ("text", Value::from(text_of(event))),
    ];
    object(&members, &Value::Nil, turn)
}

/// Messages to recipients of their own.
#[derive(Debug)]
struct Messages {
    is_mail: bool,
    from: String,
    to: Vec<String>,
    subject: Value,
    body: Value,
}

impl Form for Messages {
    fn requests(&self, events: &[Value], turn: &mut Turn<'_>) -> Outcome<Vec<Request>> {
        let Some(first) = events.first() else { return Ok(Vec::new()) };
        let list = [Value::vector(events.iter().cloned())];
        let body = to_str(&turn.call(&self.body, &list)?);
        let text = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        if !self.is_mail {
            let message = |to: &String| {
                let body = form(&[text("From", &self.from), text("To", to), text("Body", &body)]);
                Request { of: first.clone(), body, path: None }
            };
            return Ok(self.to.iter().map(message).collect());
        }
        let subject = to_str(&turn.call(&self.subject, &list)?);
        let members = [
            text("from", &self.from),
            text("to", &self.to.join(",")),
            text("subject", &subject),
            text("text", &body),
        ];
        Ok(vec![Request { of: first.clone(), body: form(&members), path: None }])
    }

    fn is_notification(&self) -> bool {
        true
    }
}

/// `(twilio options)`, `(mailgun options)`: options of the service and of the message in one map, or in two.
fn messenger(machine: &mut Machine<'_>, function: &'static str, arguments: &[Value]) -> Outcome {
    let known = ["account", "key", "service-key", "sender", "domain", "from", "to", "subject", "body"];
    let mut given: Vec<(Value, Value)> = Vec::new();
    let merged = match arguments.iter().all(|one| matches!(one, Value::Map(_) | Value::Nil)) {
        true => {
            for map in arguments {
                if let Value::Map(map) = map {
                    given.extend(map.iter().map(|(key, value)| (key.clone(), value.clone())));
                }
            }
            vec![Value::map(given)]
        }
        false => arguments.to_vec(),
    };
    let options = Options::of(machine, function, &merged, &known)?;
    let key = match options.text("service-key")? {
        Some(key) => key,
        None => needed(&options, "key")?,
    };
    let is_mail = function == "mailgun";
    let (url, login, sender) = if is_mail {
        let sender = needed(&options, "sender")?;
        let of_sender = sender.rsplit_once('@').map_or("", |(_, domain)| domain.trim_end_matches('>'));
        let domain = options.text("domain")?.unwrap_or(ArcStr::from(of_sender));
        if domain.is_empty() {
            return Err(options.wrong(":sender must be an address"));
        }
        (format!("https://api.mailgun.net/v3/{}/messages", encoded(&domain)), basic("api", &key), sender)
    } else {
        let account = needed(&options, "account")?;
        let url = format!("https://api.twilio.com/2010-04-01/Accounts/{}/Messages.json", encoded(&account));
        (url, basic(&account, &key), literal!("+15005550006"))
    };
    let from = word(&options, "from", "")?;
    let from = if from.is_empty() { Value::Text(sender) } else { Value::from(from) };
    let output = declare_post(machine, &options, (url, vec![FORM, login]), true)?;
    let function = |key: &str| match options.get(key) {
        Some(function) => function.clone(),
        None => native(machine, "riemann.common", if key == "subject" { "subject" } else { "body" }),
    };
    let held = [i64::from(output.0).into(), is_mail.into(), from, function("subject"), function("body")];
    Ok(Value::Bound(Arc::new(Bound::new(&MESSENGER[0], held.into()))))
}

fn to_recipients(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let [Value::Number(Number::Int(output)), is_mail, from, subject, body, to @ ..] = arguments else {
        return Err(EvalError::illegal_argument("it needs recipients"));
    };
    let mut recipients = Vec::new();
    for one in to.iter() {
        let all = fields::items(one).unwrap_or_else(|| vec![one.clone()]);
        for one in all {
            match one {
                Value::Text(address) if !address.is_empty() => recipients.push(address.to_string()),
                other => return Err(fields::cannot("use as the address of a recipient", &other)),
            }
        }
    }
    if recipients.is_empty() {
        return Err(EvalError::illegal_argument("it needs recipients"));
    }
    let form = Messages {
        is_mail: is_mail.is_true(),
        from: to_str(from),
        to: recipients,
        subject: subject.clone(),
        body: body.clone(),
    };
    let output = OutputNumber(u16::try_from(*output).unwrap_or(u16::MAX));
    Ok(stream_to(machine, output, Box::new(form)))
}
