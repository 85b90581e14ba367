//! Recorded events through a config under virtual time: what it would have done, and when.
//!
//! The clock is at the time of each event, after the timers that are due until then, as for `inject!` (spec riemann §13). It never goes
//! back. Nothing leaves: effects and log lines are shown. Not here: files of recorded events (the command `staunch riemann replay`), and
//! the texts of effects (`shown`).

use arcstr::ArcStr;
use model::{EventRef, EventTime};

use super::engine::{Engine, Setup};
use super::files::{Files, Recorded};
use super::shown::{shown, without_places};
use super::surroundings::Effect;
use crate::json;
use crate::language::host::Level;
use crate::language::load::LoadError;
use crate::print::to_str;
use crate::value::Value;

/// Events further apart than 30 days are not of one recording, or one of them has a wrong time: the timers in between, any number, run
/// once.
pub const STEP_US_MIN: i64 = 30 * 24 * 3_600 * 1_000_000;

/// The end of the year 9999: the clock does not go further, so that there is a time after each timer.
const TIME_US_MAX: i64 = 253_402_300_799 * 1_000_000;

/// Something that a config would have done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// When, by the virtual clock, in microseconds since 1970.
    pub at_us: i64,
    /// To which output, or `log` with the level.
    pub to: ArcStr,
    /// The event or the request as JSON, the line of a point, or the text for the log.
    pub what: String,
    /// The same without places in the config, if it names one: lines that moved make no difference.
    pub without_places: Option<String>,
}

impl Action {
    /// Its time in ISO 8601, with milliseconds.
    pub fn time(&self) -> String {
        to_str(&json::write::iso_time(&Value::of_time_us(self.at_us)))
    }

    /// What it is compared by, and sorted.
    pub fn key(&self) -> (i64, &str, &str) {
        (self.at_us, &self.to, self.without_places.as_ref().unwrap_or(&self.what))
    }
}

/// A config under virtual time.
#[derive(Debug)]
pub struct Replay {
    engine: Engine,
    /// The names of its outputs.
    outputs: Vec<ArcStr>,
    /// The names of its files.
    files: Vec<String>,
}

/// The time of an event in microseconds since 1970, if it has one.
pub fn time_us(event: EventRef<'_>) -> Option<i64> {
    match event.time()? {
        EventTime::Seconds(seconds) => Some(seconds.saturating_mul(1_000_000)),
        EventTime::Micros(micros) => Some(micros),
    }
}

impl Replay {
    /// Loads a config whose clock begins at that time. `outputs` are the names of its outputs, in the order of their declarations.
    ///
    /// # Errors
    /// All of its mistakes.
    pub fn load(files: &Files, outputs: Vec<String>, now_us: i64) -> Result<Replay, LoadError> {
        let host = Box::new(Recorded::new(files.clone(), 0));
        let engine = Engine::load(&files.main, host, Setup { now_us, ..Setup::DEFAULT })?;
        let others = files.texts.keys().filter(|name| **name != files.main).cloned();
        let files = std::iter::once(files.main.clone()).chain(others).collect();
        Ok(Replay { engine, outputs: outputs.into_iter().map(ArcStr::from).collect(), files })
    }

    /// Its clock, in microseconds since 1970.
    pub fn now_us(&self) -> i64 {
        self.engine.now_us()
    }

    /// Exceptions that nothing handled, of all streams.
    pub fn threw(&self) -> u64 {
        self.engine.figures().threw
    }

    /// Runs the timers until that time, each at its own; past [`STEP_US_MIN`], each once.
    pub fn advance(&mut self, now_us: i64, actions: &mut Vec<Action>) {
        let now_us = now_us.min(TIME_US_MAX);
        if now_us.saturating_sub(self.engine.now_us()) > STEP_US_MIN {
            let what = format!(
                "the clock steps to {}: timers until then run once",
                to_str(&json::write::iso_time(&Value::of_time_us(now_us)))
            );
            actions.push(Action {
                at_us: self.engine.now_us(),
                to: arcstr::literal!("log warn"),
                what,
                without_places: None,
            });
            self.engine.step_clock(now_us);
        }
        while !self.engine.advance(now_us, 1) {
            self.take(actions);
        }
        self.take(actions);
    }

    /// Gives it an event, after the timers that are due by its time.
    pub fn push(&mut self, event: EventRef<'_>, actions: &mut Vec<Action>) {
        if let Some(time_us) = time_us(event) {
            self.advance(time_us, actions);
        }
        // It is counted among those of all streams, and logged.
        let _threw = self.engine.push(event);
        self.take(actions);
    }

    /// Adds what it wants to do.
    fn take(&mut self, actions: &mut Vec<Action>) {
        let at_us = self.engine.now_us();
        let effects: Vec<Effect> = self.engine.effects().collect();
        for effect in effects {
            let (output, what) = match effect {
                // Nobody subscribes.
                Effect::Published { .. } | Effect::WatchEnded { .. } => continue,
                Effect::Line { output, line } => (output, line.trim_end().to_owned()),
                Effect::Event { output, event } => {
                    let declared = self.engine.declared().outputs.get(usize::from(output.0));
                    (output, shown(declared.map(|placed| &placed.what), &event))
                }
            };
            let to = self.outputs.get(usize::from(output.0)).cloned().unwrap_or_default();
            actions.push(Action { at_us, to, what, without_places: None });
        }
        let (lines, more) = self.engine.take_lines();
        for (level, what) in lines {
            let without_places = without_places(&what, &self.files);
            actions.push(Action { at_us, to: arcstr::format!("log {}", word(level)), what, without_places });
        }
        if more > 0 {
            let what = format!("{more} more lines");
            actions.push(Action { at_us, to: arcstr::literal!("log"), what, without_places: None });
        }
    }
}

fn word(level: Level) -> &'static str {
    match level {
        Level::Fatal => "fatal",
        Level::Error => "error",
        Level::Warn => "warn",
        Level::Info => "info",
        Level::Debug => "debug",
        Level::Trace => "trace",
    }
}
