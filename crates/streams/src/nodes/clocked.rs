//! When streams with a clock run (spec riemann §8.5): parts of the nodes, which own them.

use super::{fields, state};
use crate::graph::{TimerId, Turn};
use crate::language::error::Outcome;
use crate::number::Number;
use crate::value::Value;

/// Runs every interval from the first event on, until the last event has expired (periodic-until-expired).
#[derive(Debug)]
pub struct UntilExpired {
    interval_us: i64,
    delay_us: i64,
    /// When the last event expires: none for never.
    expires: Option<Number>,
    timer: Option<TimerId>,
}

impl UntilExpired {
    /// One that runs first so long after its first event.
    pub fn new(interval_us: i64, delay_us: i64) -> UntilExpired {
        assert!(interval_us > 0, "constructors refuse intervals of nothing");
        UntilExpired { interval_us, delay_us, expires: None, timer: None }
    }

    /// An event has come. Returns whether it has expired.
    ///
    /// # Errors
    /// If its time or ttl is no number.
    pub fn event(&mut self, value: &Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        let is_expired = fields::is_expired(value, turn.now_us())?;
        let expires = fields::expires_at(value)?;
        match (&mut self.expires, expires) {
            // The usual case, without the drop of what may be shared.
            (Some(Number::Int(old)), Some(Number::Int(new))) => *old = new,
            (old, new) => *old = new,
        }
        match (is_expired, self.timer) {
            (true, Some(timer)) => {
                turn.cancel_timer(timer);
                self.timer = None;
            }
            (false, None) => self.timer = Some(turn.set_timer(turn.now_us() + self.delay_us)),
            (true, None) | (false, Some(_)) => {}
        }
        Ok(is_expired)
    }

    /// Its timer is due. Returns whether to run.
    pub fn due(&mut self, timer: TimerId, turn: &mut Turn<'_>) -> bool {
        let expires = self.expires.as_ref();
        if expires.is_some_and(|expires| fields::is_less(expires, &fields::now(turn.now_us()))) {
            self.timer = None;
            return false;
        }
        self.timer = Some(turn.repeat_timer(timer, timer.due_us().saturating_add(self.interval_us)));
        true
    }

    /// Its state.
    pub fn save(&self) -> Value {
        state::saved([("expires", self.expires.clone().into()), ("timer", state::of_timer(self.timer))])
    }

    /// Takes its state back.
    pub fn restore(&mut self, saved: &Value, turn: &mut Turn<'_>) {
        self.expires = state::number(saved, "expires");
        self.timer = state::timer((saved, "timer"), self.timer, self.interval_us.max(self.delay_us), turn);
    }
}

/// `next-tick`: the smallest `anchor + k·interval` after `now`.
pub fn next_tick_us(anchor_us: i64, interval_us: i64, now_us: i64) -> i64 {
    let ticks = now_us.saturating_sub(anchor_us).div_euclid(interval_us).saturating_add(1);
    anchor_us.saturating_add(ticks.saturating_mul(interval_us))
}

/// Windows on a grid from when the stream was made (part-time-simple): a window's end is only set when an event comes.
#[derive(Debug)]
pub struct Grid {
    interval_us: i64,
    anchor_us: i64,
    end: Option<TimerId>,
}

impl Grid {
    /// A grid; [`Grid::start`] gives it its anchor.
    pub fn new(interval_us: i64) -> Grid {
        assert!(interval_us > 0, "constructors refuse intervals of nothing");
        Grid { interval_us, anchor_us: 0, end: None }
    }

    /// The stream was made now.
    pub fn start(&mut self, turn: &Turn<'_>) {
        self.anchor_us = turn.now_us();
    }

    /// An event has come.
    pub fn event(&mut self, turn: &mut Turn<'_>) {
        if self.end.is_none() {
            self.end = Some(turn.set_timer(next_tick_us(self.anchor_us, self.interval_us, turn.now_us())));
        }
    }

    /// The window has ended. Returns when it began and when it ended.
    pub fn due(&mut self, timer: TimerId) -> (i64, i64) {
        self.end = None;
        (timer.due_us().saturating_sub(self.interval_us), timer.due_us())
    }

    /// Its state.
    pub fn save(&self) -> Value {
        state::saved([("anchor", self.anchor_us.into()), ("end", state::of_timer(self.end))])
    }

    /// Takes its state back.
    pub fn restore(&mut self, saved: &Value, turn: &mut Turn<'_>) {
        // One of a clock that was ahead is as good: the grid goes both ways.
        self.anchor_us = state::int(saved, "anchor").unwrap_or(self.anchor_us);
        self.end = state::timer((saved, "end"), self.end, self.interval_us, turn);
    }
}

#[cfg(test)]
mod tests {
    use super::next_tick_us;

    #[test]
    fn next_tick_is_the_first_point_of_the_grid_after_now() {
        let table = [((0, 5, 0), 5), ((0, 50, 49), 50), ((0, 5, 5), 10), ((2, 5, 3), 7), ((10, 5, 3), 5)];
        for ((anchor, interval, now), want) in table {
            assert_eq!(next_tick_us(anchor, interval, now), want, "{anchor} {interval} {now}");
        }
        assert_eq!(next_tick_us(0, i64::MAX, i64::MAX), i64::MAX, "it saturates");
    }
}
