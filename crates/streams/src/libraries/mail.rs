//! `riemann.common`: subject and body of a notification (spec riemann §14.2).

use std::fmt::Write;

use arcstr::ArcStr;

use super::events::plain_number;
use crate::event::Field;
use crate::language::error::Outcome;
use crate::language::machine::Machine;
use crate::natives;
use crate::nodes::fields;
use crate::object::time::Moment;
use crate::print::to_str;
use crate::value::Value;

natives! {
    /// Part of the namespace.
    pub(super) NATIVES = {
        "human-uniq", 2, 2, "The values of a list that differ, in words: `a and b`, or `5 hosts`.", |m, a| {
            let values: Vec<Value> = m.collect(&a[0])?;
            Ok(Value::from(human_unique(values.iter(), &to_str(&a[1]))))
        };
        "subject", 1, 1, "Hosts, services and states of events, in words.", |m, a| {
            let events = m.collect(&a[0])?;
            let parts = [(Field::Host, "hosts"), (Field::Service, "services"), (Field::State, "states")];
            let parts = parts.map(|(field, word)| human_unique(events.iter().map(|event| fields::get(event, field)), word));
            Ok(Value::from(parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")))
        };
        "body", 1, 1, "The text of a mail about events.", body;
    }
}

/// Different values: one, `a and b`, up to four, or their number.
fn human_unique<'v>(values: impl Iterator<Item = &'v Value>, word: &str) -> String {
    const NAMED_MAX: usize = 4;
    let mut different: Vec<String> = Vec::new();
    for value in values.filter(|value| !value.is_nil()).map(to_str) {
        // Past the named ones only their number matters, and events may be many.
        if !different.contains(&value) && different.len() < 10_000 {
            different.push(value);
        }
    }
    match &different[..] {
        [] => String::new(),
        [one] => one.clone(),
        [one, other] => format!("{one} and {other}"),
        some if some.len() <= NAMED_MAX => some.join(", "),
        many => format!("{} {word}", many.len()),
    }
}

fn body(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let events = machine.collect(&arguments[0])?;
    let mut text = String::new();
    for (at, event) in events.iter().enumerate() {
        if at > 0 {
            text.push_str("\n\n\n");
        }
        one(event, &mut text);
        machine.budget.text(text.len())?;
    }
    Ok(Value::from(text))
}

fn one(event: &Value, to: &mut String) {
    let time = fields::get(event, Field::Time).as_number().map_or(0, fields::to_us);
    let at = Moment::date(time.div_euclid(1_000));
    let text = |field| to_str(fields::get(event, field));
    let metric = match fields::get(event, Field::Metric) {
        Value::Number(metric) => crate::print::number_text(&plain_number(metric), false),
        other => to_str(other),
    };
    let tags: Vec<String> =
        fields::items(fields::get(event, Field::Tags)).unwrap_or_default().iter().map(to_str).collect();
    let attributes: Vec<(ArcStr, Value)> = match event {
        Value::Event(event) => event.attributes().to_vec(),
        _ => Vec::new(),
    };
    let attributes: Vec<String> =
        attributes.iter().map(|(name, value)| format!(":{name} {}", to_str(value))).collect();
    let at = to_str(&Value::Moment(std::sync::Arc::new(at)));
    write!(
        to,
        "At {at}\n{} {} {} ({metric})\nTags: [{}]\nCustom Attributes: {{{}}}\n\n{}",
        text(Field::Host),
        text(Field::Service),
        text(Field::State),
        tags.join(", "),
        attributes.join(", "),
        text(Field::Description),
    )
    .expect("a String takes any text");
}
