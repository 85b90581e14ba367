//! Windows of events: by number, and by the time of the events.

use std::collections::VecDeque;

use super::arguments::Args;
use super::{fields, state};
use crate::arithmetic;
use crate::event::Field;
use crate::graph::{Graph, Limit, Node, TimerId, Turn};
use crate::language::error::Outcome;
use crate::number::Number;
use crate::value::Value;

/// `moving-event-window`
#[derive(Debug)]
struct MovingEvents {
    size: usize,
    events: VecDeque<Value>,
}

impl Node for MovingEvents {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        self.events.push_back(std::mem::take(value));
        if self.events.len() > self.size {
            self.events.pop_front();
        }
        turn.emit(state::vector(&self.events));
        Ok(true)
    }

    fn save(&self, _: &Graph) -> Value {
        state::saved([("events", state::vector(&self.events))])
    }

    fn restore(&mut self, saved: &Value, _: &mut Turn<'_>) {
        self.events = state::values(saved, "events").into();
        self.events.truncate(self.size);
    }
}

/// The size of a window.
fn size(args: &mut Args<'_>) -> Outcome<usize> {
    let (size, most) = (args.count()?, args.graph.limits().window_events);
    if size > most {
        return Err(args.wrong(format!("a window has at most {most} events")));
    }
    Ok(size)
}

/// `(moving-event-window n c…)`
pub(super) fn moving_event_window(args: &mut Args<'_>) -> Outcome {
    let size = size(args)?;
    Ok(args.add(MovingEvents { size, events: VecDeque::new() }))
}

/// `fixed-event-window`
#[derive(Debug)]
struct FixedEvents {
    size: usize,
    events: Vec<Value>,
}

impl Node for FixedEvents {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        self.events.push(std::mem::take(value));
        if self.events.len() >= self.size {
            turn.emit(Value::vector(self.events.drain(..)));
        }
        Ok(true)
    }

    fn save(&self, _: &Graph) -> Value {
        state::saved([("events", state::vector(&self.events))])
    }

    fn restore(&mut self, saved: &Value, _: &mut Turn<'_>) {
        self.events = state::values(saved, "events");
    }
}

/// `(fixed-event-window n c…)`
pub(super) fn fixed_event_window(args: &mut Args<'_>) -> Outcome {
    let size = size(args)?;
    Ok(args.add(FixedEvents { size, events: Vec::new() }))
}

/// `moving-time-window`
#[derive(Debug)]
struct MovingTime {
    length: Number,
    /// The largest time so far.
    newest: Option<Number>,
    /// The smallest time in the window: while it is inside nothing has to leave.
    oldest: Option<Number>,
    events: VecDeque<Value>,
}

impl MovingTime {
    /// Removes what is out of the window.
    fn leave(&mut self, cutoff: &Number) -> Outcome<()> {
        if self.oldest.as_ref().is_none_or(|oldest| fields::is_less(cutoff, oldest)) {
            return Ok(());
        }
        let mut oldest: Option<Number> = None;
        let events = std::mem::take(&mut self.events);
        for event in events {
            if let Some(time) = fields::time(&event)? {
                if !fields::is_less(cutoff, time) {
                    continue;
                }
                if oldest.as_ref().is_none_or(|oldest| fields::is_less(time, oldest)) {
                    oldest = Some(time.clone());
                }
            }
            self.events.push_back(event);
        }
        self.oldest = oldest;
        Ok(())
    }
}

impl Node for MovingTime {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        if let Some(time) = fields::time(value)? {
            if fields::is_far_ahead(time, turn.now_us()) {
                turn.count(Limit::TimeAhead, 1);
                return Ok(true);
            }
            if self.newest.as_ref().is_none_or(|newest| fields::is_less(newest, time)) {
                self.newest = Some(time.clone());
            }
            let newest = self.newest.as_ref().unwrap_or(time);
            let cutoff = fields::subtract(newest, &self.length)?;
            if !fields::is_less(&cutoff, time) {
                return Ok(true);
            }
            if self.oldest.as_ref().is_none_or(|oldest| fields::is_less(time, oldest)) {
                self.oldest = Some(time.clone());
            }
            self.leave(&cutoff)?;
        }
        if self.events.len() >= turn.limits().window_events {
            self.events.pop_front();
            turn.count(Limit::WindowFull, 1);
        }
        self.events.push_back(std::mem::take(value));
        turn.emit(state::vector(&self.events));
        Ok(true)
    }

    fn save(&self, _: &Graph) -> Value {
        state::saved([
            ("newest", self.newest.clone().into()),
            ("oldest", self.oldest.clone().into()),
            ("events", state::vector(&self.events)),
        ])
    }

    fn restore(&mut self, saved: &Value, turn: &mut Turn<'_>) {
        let newest = state::number(saved, "newest");
        self.newest = newest.filter(|time| !fields::is_far_ahead(time, turn.now_us()));
        self.oldest = state::number(saved, "oldest");
        self.events = state::values(saved, "events").into();
    }
}

/// `(moving-time-window n c…)`
pub(super) fn moving_time_window(args: &mut Args<'_>) -> Outcome {
    let length = args.number()?;
    Ok(args.add(MovingTime { length, newest: None, oldest: None, events: VecDeque::new() }))
}

/// `fixed-time-window` and `fixed-offset-time-window`
#[derive(Debug)]
struct FixedTime {
    length: Number,
    /// Whether windows begin at multiples of the length.
    is_aligned: bool,
    /// With the option `:flush-after`: microseconds of the server's clock after a window's end when it is passed on without a
    /// later event.
    flush_after_us: Option<i64>,
    flush: Option<TimerId>,
    /// When the open window began; none before the first event with a time.
    start: Option<Number>,
    events: Vec<Value>,
}

impl FixedTime {
    /// Passes the open window and the empty ones up to that of a time. Returns whether the time is in the window that is open then.
    fn flush_until(&mut self, time: &Number, turn: &mut Turn<'_>) -> Outcome<bool> {
        let Some(start) = self.start.clone() else {
            self.start = Some(match self.is_aligned {
                true => fields::subtract(time, &fields::computed(arithmetic::modulo(time, &self.length))?)?,
                false => time.clone(),
            });
            self.set_flush(turn);
            return Ok(true);
        };
        if fields::is_less(time, &start) {
            return Ok(false);
        }
        let ahead = fields::subtract(time, &start)?;
        if fields::is_less(&ahead, &self.length) {
            return Ok(true);
        }
        let windows = fields::computed(arithmetic::quotient(&ahead, &self.length))?;
        turn.emit(Value::vector(self.events.drain(..)));
        let empty = arithmetic::to_long(&windows).unwrap_or(i64::MAX).saturating_sub(1).max(0) as u64;
        let most = turn.limits().empty_windows as u64;
        (0..empty.min(most)).for_each(|_| turn.emit(Value::vector([])));
        if empty > most {
            turn.count(Limit::EmptyWindows, empty - most);
        }
        self.start = Some(fields::add(&start, &fields::multiply(&windows, &self.length)?)?);
        self.set_flush(turn);
        Ok(true)
    }

    fn set_flush(&mut self, turn: &mut Turn<'_>) {
        if let Some(timer) = self.flush.take() {
            turn.cancel_timer(timer);
        }
        let (Some(after_us), Some(start)) = (self.flush_after_us, &self.start) else { return };
        let end_us = fields::to_us(start).saturating_add(fields::to_us(&self.length));
        self.flush = Some(turn.set_timer(end_us.saturating_add(after_us).max(turn.now_us())));
    }
}

impl Node for FixedTime {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        if let Some(time) = fields::time(value)? {
            let time = time.clone();
            if fields::is_far_ahead(&time, turn.now_us()) {
                turn.count(Limit::TimeAhead, 1);
                return Ok(true);
            }
            if !self.flush_until(&time, turn)? {
                return Ok(true);
            }
        }
        self.events.push(std::mem::take(value));
        if self.flush.is_none() {
            self.set_flush(turn);
        }
        if self.events.len() >= turn.limits().window_events {
            turn.count(Limit::FlushedEarly, 1);
            turn.emit(Value::vector(self.events.drain(..)));
        }
        Ok(true)
    }

    fn due(&mut self, _: TimerId, turn: &mut Turn<'_>) -> Outcome<()> {
        self.flush = None;
        if let Some(start) = &self.start {
            self.start = Some(fields::add(start, &self.length)?);
            turn.emit(Value::vector(self.events.drain(..)));
        }
        Ok(())
    }

    fn save(&self, _: &Graph) -> Value {
        state::saved([
            ("start", self.start.clone().into()),
            ("events", state::vector(&self.events)),
            ("flush", state::of_timer(self.flush)),
        ])
    }

    fn restore(&mut self, saved: &Value, turn: &mut Turn<'_>) {
        let start = state::number(saved, "start");
        self.start = start.filter(|time| !fields::is_far_ahead(time, turn.now_us()));
        self.events = state::values(saved, "events");
        // The end of a window is a time of events, which may be ahead of the clock.
        let start_us = self.start.as_ref().map_or(turn.now_us(), fields::to_us);
        let end_us = start_us.saturating_add(fields::to_us(&self.length));
        let due_us = end_us.saturating_add(self.flush_after_us.unwrap_or(0));
        let after_us = due_us.saturating_sub(turn.now_us());
        self.flush = state::timer((saved, "flush"), self.flush, after_us, turn);
    }
}

fn fixed_time(args: &mut Args<'_>, is_aligned: bool) -> Outcome {
    let (length, _) = args.seconds()?;
    let options = args.options().cloned().unwrap_or_default();
    let flush_after_us = state::number(&options, "flush-after").map(|seconds| fields::to_us(&seconds).max(0));
    Ok(args.add(FixedTime {
        length,
        is_aligned,
        flush_after_us,
        flush: None,
        start: None,
        events: Vec::new(),
    }))
}

/// `(fixed-time-window n [{:flush-after s}] c…)`
pub(super) fn fixed_time_window(args: &mut Args<'_>) -> Outcome {
    fixed_time(args, false)
}

/// `(fixed-offset-time-window n [{:flush-after s}] c…)`
pub(super) fn fixed_offset_time_window(args: &mut Args<'_>) -> Outcome {
    fixed_time(args, true)
}

/// `predict-linear`: the line through the last events.
#[derive(Debug)]
struct PredictLinear {
    size: usize,
    ahead: Number,
    /// At most one fit in so many microseconds.
    refit_us: Option<i64>,
    /// Times and metrics.
    points: VecDeque<(Number, Number)>,
    /// Slope, value at time 0, and when it was computed.
    line: Option<(Number, Number, i64)>,
}

impl PredictLinear {
    fn fit(&self) -> Outcome<(Number, Number)> {
        let count = Number::Int(self.points.len() as i64);
        let zero = Number::Int(0);
        let mut sums = [zero.clone(), zero.clone(), zero.clone(), zero];
        for (x, y) in &self.points {
            let terms = [x.clone(), y.clone(), fields::multiply(x, y)?, fields::multiply(x, x)?];
            for (sum, term) in sums.iter_mut().zip(&terms) {
                *sum = fields::add(sum, term)?;
            }
        }
        let [x, y, xy, xx] = &sums;
        let rise = fields::subtract(&fields::multiply(&count, xy)?, &fields::multiply(x, y)?)?;
        let run = fields::subtract(&fields::multiply(&count, xx)?, &fields::multiply(x, x)?)?;
        let slope = fields::divide(&rise, &run)?;
        let base = fields::divide(&fields::subtract(y, &fields::multiply(&slope, x)?)?, &count)?;
        Ok((slope, base))
    }
}

impl Node for PredictLinear {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        let (Some(metric), Some(time)) = (fields::metric(value)?, fields::time(value)?) else {
            return Ok(true);
        };
        let time = time.clone();
        self.points.push_back((time.clone(), metric.clone()));
        if self.points.len() > self.size {
            self.points.pop_front();
        }
        if self.points.len() < 2 {
            return Ok(true);
        }
        let (now_us, refit_us) = (turn.now_us(), self.refit_us);
        let is_fresh = |made: i64| refit_us.is_some_and(|refit_us| now_us.saturating_sub(made) < refit_us);
        let line = match self.line.take().filter(|(_, _, made)| is_fresh(*made)) {
            Some(line) => line,
            None => {
                let (slope, base) = self.fit()?;
                (slope, base, now_us)
            }
        };
        let at = fields::add(&time, &self.ahead)?;
        let predicted = fields::add(&line.1, &fields::multiply(&line.0, &at)?)?;
        self.line = Some(line);
        fields::set(value, Field::Metric, Value::Number(predicted))?;
        turn.emit(std::mem::take(value));
        Ok(true)
    }

    fn save(&self, _: &Graph) -> Value {
        let point = |(x, y): &(Number, Number)| Value::vector([x.clone().into(), y.clone().into()]);
        let line = self.line.clone();
        let line = line.map(|(slope, base, made)| Value::vector([slope.into(), base.into(), made.into()]));
        state::saved([("points", Value::vector(self.points.iter().map(point))), ("line", line.into())])
    }

    fn restore(&mut self, saved: &Value, turn: &mut Turn<'_>) {
        let points = state::values(saved, "points");
        let numbers = |(x, y): (Value, Value)| Some((x.as_number()?.clone(), y.as_number()?.clone()));
        self.points = points.iter().filter_map(state::pair).filter_map(numbers).take(self.size).collect();
        let line = state::values(saved, "line");
        let line: Vec<&Number> = line.iter().filter_map(Value::as_number).collect();
        self.line = match line[..] {
            // Not later than now: the clock may have been ahead.
            [slope, base, Number::Int(made)] => {
                Some((slope.clone(), base.clone(), (*made).min(turn.now_us())))
            }
            _ => None,
        };
    }
}

/// `(predict-linear n s [r] c…)`
pub(super) fn predict_linear(args: &mut Args<'_>) -> Outcome {
    let (size, ahead) = (size(args)?, args.number()?);
    let refit_us = match args.peek() {
        Some(Value::Number(_)) => Some(fields::to_us(&args.number()?)),
        _ => None,
    };
    Ok(args.add(PredictLinear { size, ahead, refit_us, points: VecDeque::new(), line: None }))
}
