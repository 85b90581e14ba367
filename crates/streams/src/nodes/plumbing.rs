//! Streams that only direct values: `sdo`, `expired`, `dual`, … and functions of the config as children.

use std::sync::Arc;

use super::arguments::Args;
use super::fields;
use crate::graph::{CHILDREN, Node, Turn};
use crate::language::error::Outcome;
use crate::number::Number;
use crate::object::reference::Atom;
use crate::value::Value;

/// A child that is a function: called with each value.
#[derive(Debug)]
pub(super) struct Call(Value);

impl Call {
    /// The node of a function.
    pub(super) fn new(function: Value) -> Call {
        Call(function)
    }
}

impl Node for Call {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        turn.call(&self.0, std::slice::from_ref(value)).map(|result| result.is_true())
    }
}

/// Passes everything.
#[derive(Debug)]
pub(super) struct Pass;

impl Node for Pass {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        turn.emit(std::mem::take(value));
        Ok(true)
    }
}

/// Drops everything.
#[derive(Debug)]
pub(super) struct Discard;

impl Node for Discard {
    fn push(&mut self, _: &mut Value, _: &mut Turn<'_>) -> Outcome<bool> {
        Ok(true)
    }
}

/// `(sdo c…)`: of one child it is that child.
pub(super) fn sdo(args: &mut Args<'_>) -> Outcome {
    match args.peek() {
        Some(Value::Stream(only)) if args.is_last() => Ok(Value::Stream(*only)),
        _ => Ok(args.add(Pass)),
    }
}

/// `bit-bucket` is a stream: a config uses it without a call, so that the event is the argument. Older configs call it.
pub(super) fn bit_bucket(args: &mut Args<'_>) -> Outcome {
    match args.take() {
        Ok(_) => Ok(Value::Nil),
        Err(_) => Ok(args.add(Discard)),
    }
}

/// `(execute-on executor c…)`, whose outputs have queues of their own here.
pub(super) fn execute_on(args: &mut Args<'_>) -> Outcome {
    args.take()?;
    Ok(args.add(Pass))
}

/// The options of a queue in Riemann.
const QUEUE_OPTIONS: &[&str] = &["queue-size", "core-pool-size", "max-pool-size", "keep-alive-time"];

/// `(async-queue! name options c…)`, likewise.
pub(super) fn async_queue(args: &mut Args<'_>) -> Outcome {
    args.take()?;
    if let Some(Value::Map(options)) = args.options() {
        for (key, _) in options.iter() {
            args.note_unknown(key, QUEUE_OPTIONS);
        }
    }
    Ok(args.add(Pass))
}

/// `(exception-stream* handler make)`: the children that the function `make` makes, with the handler for what they throw (spec
/// riemann §10.6).
pub(super) fn exception_stream(args: &mut Args<'_>) -> Outcome {
    args.end_form();
    let handler = args.take()?;
    let handler = args.graph.child(handler);
    let make = args.take()?;
    let made = args.graph.with_rescue(handler, |graph| graph.call(make, &[]))?;
    let children = fields::items(&made).unwrap_or_else(|| vec![made.clone()]);
    // Functions among them become streams here, and streams among them may have been made elsewhere.
    Ok(args.graph.with_rescue(handler, |graph| {
        let children: Vec<_> = children.iter().map(|child| graph.child(child)).collect();
        Value::Stream(graph.add(Box::new(Pass), &[&children]))
    }))
}

/// What a [`Choose`] looks at.
#[derive(Debug)]
enum Choice {
    Expired,
    NotExpired,
    Over(Number),
    Under(Number),
    /// From, to.
    Within(Number, Number),
    Without(Number, Number),
}

/// Passes some values.
#[derive(Debug)]
struct Choose(Choice);

impl Node for Choose {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        let metric = |choose: &dyn Fn(&Number) -> bool| -> Outcome<bool> {
            Ok(fields::metric(value)?.is_some_and(choose))
        };
        let is_less = fields::is_less;
        let is_within = |low: &Number, high: &Number, metric: &Number| {
            metric.compare(low).is_some_and(std::cmp::Ordering::is_ge)
                && metric.compare(high).is_some_and(std::cmp::Ordering::is_le)
        };
        let passes = match &self.0 {
            Choice::Expired => fields::is_expired(value, turn.now_us())?,
            Choice::NotExpired => !fields::is_expired(value, turn.now_us())?,
            Choice::Over(bound) => metric(&|metric| is_less(bound, metric))?,
            Choice::Under(bound) => metric(&|metric| is_less(metric, bound))?,
            Choice::Within(low, high) => metric(&|metric| is_within(low, high, metric))?,
            Choice::Without(low, high) => metric(&|metric| !is_within(low, high, metric))?,
        };
        if passes {
            turn.emit(std::mem::take(value));
        }
        Ok(passes)
    }
}

/// `(expired c…)`
pub(super) fn expired(args: &mut Args<'_>) -> Outcome {
    Ok(args.add(Choose(Choice::Expired)))
}

/// `(not-expired c…)`
pub(super) fn not_expired(args: &mut Args<'_>) -> Outcome {
    Ok(args.add(Choose(Choice::NotExpired)))
}

/// `(over x c…)`
pub(super) fn over(args: &mut Args<'_>) -> Outcome {
    let bound = args.number()?;
    Ok(args.add(Choose(Choice::Over(bound))))
}

/// `(under x c…)`
pub(super) fn under(args: &mut Args<'_>) -> Outcome {
    let bound = args.number()?;
    Ok(args.add(Choose(Choice::Under(bound))))
}

fn bounds(args: &mut Args<'_>) -> Outcome<(Number, Number)> {
    let bounds = fields::items(args.take()?).unwrap_or_default();
    let numbers: Vec<&Number> = bounds.iter().filter_map(Value::as_number).collect();
    match numbers[..] {
        [low, high] => Ok((low.clone(), high.clone())),
        _ => Err(args.wrong("a vector of two numbers is needed")),
    }
}

/// `(within [low high] c…)`
pub(super) fn within(args: &mut Args<'_>) -> Outcome {
    let (low, high) = bounds(args)?;
    Ok(args.add(Choose(Choice::Within(low, high))))
}

/// `(without [low high] c…)`
pub(super) fn without(args: &mut Args<'_>) -> Outcome {
    let (low, high) = bounds(args)?;
    Ok(args.add(Choose(Choice::Without(low, high))))
}

/// `dual`: each event goes to one child, and its expiry to the other one.
#[derive(Debug)]
struct Dual(super::predicate::Predicate);

impl Node for Dual {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        if fields::is_expired(value, turn.now_us())? {
            turn.emit_at(CHILDREN, value.clone());
            turn.emit_at(CHILDREN + 1, std::mem::take(value));
            return Ok(true);
        }
        let is_true = self.0.is_true(value, turn)?;
        let (to, other) = if is_true { (CHILDREN, CHILDREN + 1) } else { (CHILDREN + 1, CHILDREN) };
        turn.emit_at(other, fields::expire(value, turn.now_us()));
        turn.emit_at(to, std::mem::take(value));
        Ok(true)
    }
}

/// `(dual predicate true-stream false-stream)`
pub(super) fn dual(args: &mut Args<'_>) -> Outcome {
    let predicate = args.predicate()?;
    let children = args.children();
    let [to, other] = children[..] else { return Err(args.wrong("two streams are needed")) };
    Ok(args.add_with(Dual(predicate), &[&[to], &[other]]))
}

/// `append` and `register`: an atom that keeps events.
#[derive(Debug)]
struct Keep {
    atom: Arc<Atom<Value>>,
    all: bool,
}

impl Node for Keep {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        if !self.all {
            self.atom.replace(value.clone());
            return Ok(true);
        }
        let mut all =
            fields::items(&self.atom.get()).ok_or_else(|| fields::cannot("append to", &self.atom.get()))?;
        if all.len() >= turn.limits().window_events {
            all.remove(0);
            turn.count(crate::graph::Limit::WindowFull, 1);
        }
        all.push(value.clone());
        self.atom.replace(Value::vector(all));
        Ok(true)
    }
}

fn keep(args: &mut Args<'_>, all: bool) -> Outcome {
    let Value::Atom(atom) = args.take()? else { return Err(args.wrong("an atom is needed")) };
    Ok(args.add(Keep { atom: Arc::clone(atom), all }))
}

/// `(append atom)`
pub(super) fn append(args: &mut Args<'_>) -> Outcome {
    keep(args, true)
}

/// `(register atom)`
pub(super) fn register(args: &mut Args<'_>) -> Outcome {
    keep(args, false)
}
