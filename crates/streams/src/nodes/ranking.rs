//! `top` and `clock-skew`: streams that compare events of different hosts.

use super::arguments::Args;
use super::function::Function;
use super::{fields, state};
use crate::collections::element::Element;
use crate::event::Field;
use crate::graph::{CHILDREN, Graph, Limit, Node, Turn};
use crate::language::error::Outcome;
use crate::number::Number;
use crate::value::Value;

/// The port of the events that are not in the top.
const BOTTOM: u16 = CHILDREN + 1;

#[derive(Clone, Debug)]
struct Ranked {
    host: Value,
    service: Value,
    rank: Number,
    event: Value,
}

/// `top`: in order, the largest first; equal ones in the order in which they came.
#[derive(Debug)]
struct Top {
    size: usize,
    function: Function,
    demote: bool,
    ranked: Vec<Ranked>,
}

impl Top {
    /// Puts an event where it belongs. Returns whether it is in the top, and what had to leave.
    fn rank(&mut self, rank: Number, event: &Value) -> (bool, Option<Value>) {
        let at = self.ranked.partition_point(|ranked| !fields::order(&ranked.rank, &rank).is_lt());
        if at >= self.size {
            return (false, None);
        }
        let (host, service) =
            (fields::get(event, Field::Host).clone(), fields::get(event, Field::Service).clone());
        self.ranked.insert(at, Ranked { host, service, rank, event: event.clone() });
        let last = if self.ranked.len() > self.size { self.ranked.pop() } else { None };
        (true, last.map(|ranked| ranked.event))
    }
}

impl Node for Top {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        let rank = self.function.call(value, turn)?;
        let rank = fields::number_or_nil(&rank)?.cloned();
        let is_expired = fields::is_expired(value, turn.now_us())?;
        let (host, service) = (fields::get(value, Field::Host), fields::get(value, Field::Service));
        self.ranked.retain(|ranked| !ranked.host.equal(host) || !ranked.service.equal(service));
        if is_expired {
            turn.emit_at(CHILDREN, value.clone());
            turn.emit_at(BOTTOM, std::mem::take(value));
            return Ok(true);
        }
        let (is_in, out) = rank.map_or((false, None), |rank| self.rank(rank, value));
        if let Some(out) = out.filter(|_| self.demote) {
            turn.emit_at(CHILDREN, fields::expire(&out, turn.now_us()));
            turn.emit_at(BOTTOM, out);
        }
        let (to, other) = if is_in { (CHILDREN, BOTTOM) } else { (BOTTOM, CHILDREN) };
        turn.emit_at(other, fields::expire(value, turn.now_us()));
        turn.emit_at(to, std::mem::take(value));
        Ok(true)
    }

    fn save(&self, _: &Graph) -> Value {
        let ranked = |ranked: &Ranked| Value::vector([ranked.rank.clone().into(), ranked.event.clone()]);
        state::saved([("ranked", Value::vector(self.ranked.iter().map(ranked)))])
    }

    fn restore(&mut self, saved: &Value, _: &mut Turn<'_>) {
        for (rank, event) in state::values(saved, "ranked").iter().filter_map(state::pair) {
            if let Some(rank) = rank.as_number() {
                self.rank(rank.clone(), &event);
            }
        }
    }
}

/// `(top k f top-stream [bottom-stream [demote?]])`
pub(super) fn top(args: &mut Args<'_>) -> Outcome {
    let size = args.count()?.min(args.graph.limits().window_events);
    let function = args.function()?;
    let streams = args.rest();
    let (top, bottom, demote) = match streams {
        [top] => (top, None, false),
        [top, bottom] => (top, Some(bottom), true),
        [top, bottom, demote] => (top, Some(bottom), demote.is_true()),
        _ => {
            return Err(
                args.wrong("a stream, perhaps a second one, and then whether it gets what leaves the top")
            );
        }
    };
    let top = args.graph.child(top);
    let bottom: Vec<_> = bottom.into_iter().map(|bottom| args.graph.child(bottom)).collect();
    Ok(args.add_with(Top { size, function, demote, ranked: Vec::new() }, &[&[top], &bottom]))
}

/// `clock-skew`: how far each host's clock is ahead of the server's, in order. As all of them go on together, the order stays.
#[derive(Debug)]
struct ClockSkew(Vec<(Number, Value)>);

impl Node for ClockSkew {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        if fields::is_expired(value, turn.now_us())? {
            turn.emit(std::mem::take(value));
            return Ok(true);
        }
        let time = fields::number(fields::get(value, Field::Time))?.clone();
        let now = fields::now(turn.now_us());
        let (ahead, host) = (fields::subtract(&time, &now)?, fields::get(value, Field::Host).clone());
        match self.0.iter().position(|(_, known)| known.equal(&host)) {
            Some(at) => _ = self.0.remove(at),
            None if self.0.len() >= HOSTS_MAX => {
                self.0.pop();
                turn.count(Limit::KeysFull, 1);
            }
            None => {}
        }
        let at = self.0.partition_point(|(known, _)| fields::order(known, &ahead).is_lt());
        self.0.insert(at, (ahead, host));
        let (median, _) = &self.0[self.0.len() / 2];
        let skew = fields::subtract(&time, &fields::add(median, &now)?)?;
        fields::set(value, Field::Metric, Value::Number(skew))?;
        turn.emit(std::mem::take(value));
        Ok(true)
    }

    fn save(&self, _: &Graph) -> Value {
        let host = |(ahead, host): &(Number, Value)| Value::vector([ahead.clone().into(), host.clone()]);
        state::saved([("hosts", Value::vector(self.0.iter().map(host)))])
    }

    fn restore(&mut self, saved: &Value, _: &mut Turn<'_>) {
        let hosts = state::values(saved, "hosts");
        let number = |(ahead, host): (Value, Value)| Some((ahead.as_number()?.clone(), host));
        self.0 = hosts.iter().take(HOSTS_MAX).filter_map(state::pair).filter_map(number).collect();
        self.0.sort_by(|(a, _), (b, _)| fields::order(a, b));
    }
}

/// Hosts whose clocks are compared, at most: each event looks through all of them.
const HOSTS_MAX: usize = 10_000;

/// `(clock-skew c…)`
pub(super) fn clock_skew(args: &mut Args<'_>) -> Outcome {
    Ok(args.add(ClockSkew(Vec::new())))
}
