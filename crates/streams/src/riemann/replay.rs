//! Recorded events through a config under virtual time: what it would have done, and when.
//!
//! The clock is at the time of each event, after the timers that are due until then, as for `inject!` (spec riemann §13). It never goes
//! back. Nothing leaves: effects and log lines are shown. Not here: files of recorded events (the command `staunch riemann replay`).

use arcstr::ArcStr;
use model::{EventRef, EventTime};

use super::declared::Output;
use super::engine::{Engine, Setup};
use super::record::event_of;
use super::surroundings::Effect;
use crate::event::Field;
use crate::json;
use crate::language::budget::{Budget, Limits};
use crate::language::host::{Host, Level};
use crate::language::load::LoadError;
use crate::nodes::fields;
use crate::print::to_str;
use crate::value::Value;

/// Events further apart than 30 days are not of one recording, or one of them has a wrong time: the timers in between, any number, run
/// once.
pub const STEP_US_MIN: i64 = 30 * 24 * 3_600 * 1_000_000;

/// The end of the year 9999: the clock does not go further, so that there is a time after each timer.
const TIME_US_MAX: i64 = 253_402_300_799 * 1_000_000;

/// Something that a config would have done.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Action {
    /// When, by the virtual clock, in microseconds since 1970.
    pub at_us: i64,
    /// To which output, or `log` with the level.
    pub to: ArcStr,
    /// The event as JSON, the line of a point, or the text for the log.
    pub what: String,
}

impl Action {
    /// Its time in ISO 8601, with milliseconds.
    pub fn time(&self) -> String {
        to_str(&json::write::iso_time(&Value::of_time_us(self.at_us)))
    }
}

/// A recorded event.
#[derive(Clone, Copy, Debug)]
pub enum Recorded<'e> {
    /// Of a message.
    Message(EventRef<'e>),
    /// Of a line of JSON: see [`event_of_json`].
    Json(&'e Value),
}

impl Recorded<'_> {
    /// Its time in microseconds since 1970, if it has one.
    pub fn time_us(self) -> Option<i64> {
        match self {
            Recorded::Message(event) => match event.time()? {
                EventTime::Seconds(seconds) => Some(seconds.saturating_mul(1_000_000)),
                EventTime::Micros(micros) => Some(micros),
            },
            Recorded::Json(event) => fields::get(event, Field::Time).as_number().map(fields::to_us),
        }
    }
}

/// The event of a line of JSON, as an output of type `event_file` writes it. Members that are no fields become attributes.
///
/// # Errors
/// If the line is no object of JSON.
pub fn event_of_json(line: &str) -> Result<Value, String> {
    let read = json::read::read(line, true, &mut Budget::new(Limits::EVENT));
    let value = read.map_err(|error| error.to_string())?.unwrap_or_default();
    event_of(&value).map(Value::Event).ok_or_else(|| "it is no object".to_owned())
}

/// A config under virtual time.
#[derive(Debug)]
pub struct Replay {
    engine: Engine,
    outputs: Vec<ArcStr>,
    /// Events that went through it.
    pub events: u64,
    /// Events at which a stream threw, that nothing handled.
    pub threw: u64,
}

impl Replay {
    /// Loads a config whose clock begins at that time.
    ///
    /// # Errors
    /// All of its mistakes.
    pub fn load(file: &str, host: Box<dyn Host>, now_us: i64) -> Result<Replay, LoadError> {
        let engine = Engine::load(file, host, Setup { now_us, ..Setup::DEFAULT })?;
        let outputs = engine.declared().outputs.iter().map(|output| name(&output.what)).collect();
        Ok(Replay { engine, outputs, events: 0, threw: 0 })
    }

    /// Its clock, in microseconds since 1970.
    pub fn now_us(&self) -> i64 {
        self.engine.now_us()
    }

    /// Runs the timers until that time, each at its own; past [`STEP_US_MIN`], each once.
    pub fn advance(&mut self, now_us: i64, actions: &mut Vec<Action>) {
        let now_us = now_us.min(TIME_US_MAX);
        if now_us.saturating_sub(self.engine.now_us()) > STEP_US_MIN {
            let what = format!(
                "the clock steps to {}: timers until then run once",
                to_str(&json::write::iso_time(&Value::of_time_us(now_us)))
            );
            actions.push(Action { at_us: self.engine.now_us(), to: arcstr::literal!("log warn"), what });
            self.engine.step_clock(now_us);
        }
        while !self.engine.advance(now_us, 1) {
            self.take(actions);
        }
        self.take(actions);
    }

    /// Gives it an event, after the timers that are due by its time.
    pub fn push(&mut self, event: Recorded<'_>, actions: &mut Vec<Action>) {
        if let Some(time_us) = event.time_us() {
            self.advance(time_us, actions);
        }
        self.events += 1;
        let pushed = match event {
            Recorded::Message(event) => self.engine.push(event),
            Recorded::Json(event) => self.engine.push_value(event.clone()),
        };
        self.threw += u64::from(pushed.is_err());
        self.take(actions);
    }

    /// Adds what it wants to do.
    fn take(&mut self, actions: &mut Vec<Action>) {
        let at_us = self.engine.now_us();
        let named = |number: u16| self.outputs.get(usize::from(number)).cloned().unwrap_or_default();
        for effect in self.engine.effects() {
            let (output, what) = match effect {
                // Nobody subscribes.
                Effect::Published { .. } => continue,
                Effect::Line { output, line } => (output, line.trim_end().to_owned()),
                Effect::Event { output, event } => {
                    (output, json::event_json(&event).unwrap_or_else(|error| format!("an event: {error}")))
                }
            };
            actions.push(Action { at_us, to: named(output.0), what });
        }
        let (lines, more) = self.engine.take_lines();
        for (level, what) in lines {
            actions.push(Action { at_us, to: arcstr::format!("log {}", word(level)), what });
        }
        if more > 0 {
            let what = format!("{more} more lines");
            actions.push(Action { at_us, to: arcstr::literal!("log"), what });
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

/// An output as people know it.
fn name(output: &Output) -> ArcStr {
    match output {
        Output::Graphite { host, port, .. } => arcstr::format!("graphite {host}:{port}"),
        Output::Riemann { host, port, .. } => arcstr::format!("riemann {host}:{port}"),
        // The path may be a secret.
        Output::Post(post) => post.url.split('/').nth(2).unwrap_or_default().into(),
        Output::Mail(mailer) => mailer.smtp.clone(),
        Output::Named(name) => name.clone(),
    }
}
