//! `periodically-expire`: events of the index whose ttl has passed are removed, and go through the streams as expired ones (spec
//! riemann §4.3).

use std::sync::Arc;

use super::declared::Reaper;
use super::surroundings::INDEX_CHANNEL;
use super::{publishing, timing};
use crate::event::Event;
use crate::graph::{Graph, Node, TimerId, Turn};
use crate::index::{Age, KeepKeys, SWEEP_EVENTS, expired_event};
use crate::language::error::{EvalError, Outcome};
use crate::language::host::Level;
use crate::language::sequence::event_entries;
use crate::value::Value;

/// See the module's header.
#[derive(Debug)]
struct Sweep {
    reaper: Reaper,
    /// When the next sweep begins.
    next_us: i64,
}

/// Adds the sweeps to a graph.
pub(super) fn add(graph: &mut Graph, reaper: Reaper) {
    graph.add(Box::new(Sweep { reaper, next_us: 0 }), &[]);
}

impl Node for Sweep {
    fn start(&mut self, turn: &mut Turn<'_>) {
        self.next_us = turn.now_us().saturating_add(self.reaper.interval_us);
        turn.set_timer(self.next_us);
    }

    fn push(&mut self, _: &mut Value, _: &mut Turn<'_>) -> Outcome<bool> {
        Ok(true)
    }

    /// One slice of a sweep. The next slice has a timer of the same instant, so that other work comes between them.
    fn due(&mut self, _: TimerId, turn: &mut Turn<'_>) -> Outcome<()> {
        let now = timing::of_us(turn.now_us());
        let graph = turn.graph();
        let Some(index) = &mut graph.surroundings.index else {
            self.again(true, turn);
            return Ok(());
        };
        let mut expired = Vec::new();
        let done = index.expire(&now, SWEEP_EVENTS, &mut expired);
        let mut failed = None;
        for expired in expired {
            if expired.age == Age::Unknown {
                let text = "an event was removed from the index: its time or ttl is no number";
                graph.evaluation.host.log(Level::Error, text);
                continue;
            }
            graph.surroundings.figures.expired += 1;
            let event = reaped(expired_event(&expired.event, &now, &self.reaper.keep), &self.reaper.keep);
            if let Err(error) = publishing::publish(graph, &Value::Text(INDEX_CHANNEL), &event) {
                failed = Some(error);
            }
            graph.surroundings.reinject(event);
        }
        self.again(done, turn);
        failed.map_or(Ok(()), Err::<(), EvalError>)
    }
}

/// Fields that are not kept are not there either, also not as nil: the event is a map, as Riemann's is (spec riemann §3.4).
fn reaped(event: Event, keep: &KeepKeys) -> Value {
    match keep {
        KeepKeys::All => Value::Event(Arc::new(event)),
        KeepKeys::Fields(_) => Value::map(event_entries(&event).filter(|(_, value)| !value.is_nil())),
    }
}

impl Sweep {
    fn again(&mut self, done: bool, turn: &mut Turn<'_>) {
        if done {
            // On the grid; ticks that were missed are left out.
            let (now_us, interval_us) = (turn.now_us(), self.reaper.interval_us);
            let missed = now_us.saturating_sub(self.next_us) / interval_us;
            self.next_us = self.next_us.saturating_add(interval_us.saturating_mul(missed.saturating_add(1)));
        }
        turn.set_timer(if done { self.next_us } else { turn.now_us() });
    }
}
