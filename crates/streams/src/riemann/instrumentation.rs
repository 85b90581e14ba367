//! Riemann's reports about itself, as events through the streams (spec riemann §15).
//!
//! Not here: figures of servers, which the daemon has.

use std::sync::Arc;

use arcstr::{ArcStr, literal};

use crate::event::{Event, Field};
use crate::graph::{Node, TimerId, Turn};
use crate::language::error::Outcome;
use crate::number::Number;
use crate::value::Value;

/// Reports the figures of the streams and of the index.
#[derive(Debug)]
pub(super) struct Reporter {
    interval_us: i64,
    /// When the last report was.
    last_us: i64,
    /// Events until then.
    streamed: u64,
}

impl Reporter {
    /// Reports so often, in microseconds.
    pub(super) fn new(interval_us: i64) -> Reporter {
        Reporter { interval_us, last_us: 0, streamed: 0 }
    }
}

impl Node for Reporter {
    fn start(&mut self, turn: &mut Turn<'_>) {
        self.last_us = turn.now_us();
        turn.set_timer(self.last_us.saturating_add(self.interval_us));
    }

    fn push(&mut self, _: &mut Value, _: &mut Turn<'_>) -> Outcome<bool> {
        Ok(true)
    }

    fn due(&mut self, _: TimerId, turn: &mut Turn<'_>) -> Outcome<()> {
        let now_us = turn.now_us();
        let graph = turn.graph();
        let host = ArcStr::from(graph.evaluation.host.host_name());
        let streamed = graph.surroundings.figures.streamed;
        let seconds = (now_us.saturating_sub(self.last_us)).max(1) as f64 / 1e6;
        let rate = (streamed - self.streamed) as f64 / seconds;
        let mut reports = vec![(literal!("riemann streams rate"), Number::Double(rate))];
        if let Some(index) = &graph.surroundings.index {
            let size = i64::try_from(index.len()).unwrap_or(i64::MAX);
            reports.push((literal!("riemann index size"), Number::Int(size)));
        }
        for (service, metric) in reports {
            let mut event = Event::default();
            event.set(Field::Host, Value::Text(host.clone()));
            event.set(Field::Service, Value::Text(service));
            event.set(Field::State, Value::Text(literal!("ok")));
            event.set(Field::Metric, Value::Number(metric));
            event.set(Field::Tags, Value::vector([Value::Text(literal!("riemann"))]));
            event.set(Field::Time, Value::of_time_us(now_us));
            let ttl_s = self.interval_us as f64 * 2.0 / 1e6;
            event.set(Field::Ttl, Value::Number(Number::Double(ttl_s)));
            graph.surroundings.reinject(Value::Event(Arc::new(event)));
        }
        (self.last_us, self.streamed) = (now_us, streamed);
        turn.set_timer(now_us.saturating_add(self.interval_us));
        Ok(())
    }
}
