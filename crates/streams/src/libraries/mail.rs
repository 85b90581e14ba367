//! `riemann.common`: subject and body of a notification (spec riemann §14.2).

use std::collections::BTreeSet;
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
            Ok(human_unique(m, values.iter(), &to_str(&a[1]))?.into())
        };
        "subject", 1, 1, "Hosts, services and states of events, in words.", |m, a| {
            let events = m.collect(&a[0])?;
            let parts = [(Field::Host, "hosts"), (Field::Service, "services"), (Field::State, "states")];
            let mut texts = Vec::new();
            for (field, word) in parts {
                texts.extend(human_unique(m, events.iter().map(|event| fields::get(event, field)), word)?);
            }
            Ok(Value::from(texts.join(" ")))
        };
        "body", 1, 1, "The text of a mail about events.", body;
    }
}

/// Different values: one, `a and b`, up to four, or their number; none without a value.
fn human_unique<'v>(
    machine: &mut Machine<'_>,
    values: impl Iterator<Item = &'v Value>,
    word: &str,
) -> Outcome<Option<String>> {
    const NAMED_MAX: usize = 4;
    let (mut named, mut all): (Vec<String>, BTreeSet<String>) = (Vec::new(), BTreeSet::new());
    for value in values.filter(|value| !value.is_nil()) {
        let text = to_str(&machine.realize(value)?);
        // A search in a set is cheap in values, but each of its comparisons may go through the whole text.
        machine.budget.step(1 + text.len() / 16)?;
        machine.budget.text(text.len())?;
        if named.len() < NAMED_MAX && !named.contains(&text) {
            named.push(text.clone());
        }
        all.insert(text);
    }
    Ok(match &named[..] {
        [] => None,
        [one] => Some(one.clone()),
        [one, other] => Some(format!("{one} and {other}")),
        some if all.len() <= NAMED_MAX => Some(some.join(", ")),
        _ => Some(format!("{} {word}", all.len())),
    })
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
