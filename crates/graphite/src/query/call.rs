//! What a function sees: its checked arguments, the time range, and the request around it.
//!
//! Functions ask for more through [`Engine`], so that no function file depends on the evaluation.

use jiff::tz::TimeZone;

use super::budget::Limits;
use super::error::QueryError;
use super::numbers;
use super::pattern::Pattern;
use super::series::Series;
use super::series::align::{Column, Grid, align};
use super::target::Expr;
use crate::python_regex::compile_steps;

/// A time range in epoch seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Range {
    /// Points after this time.
    pub from: i64,
    /// Points up to this time.
    pub until: i64,
}

/// Furthest time of a range, before and after 1970: no sum of times and steps overflows.
const TIME_MAX: i64 = 1 << 40;

fn limited(time: i64) -> i64 {
    time.clamp(-TIME_MAX, TIME_MAX)
}

impl Range {
    /// Both ends moved by some seconds.
    pub(crate) fn moved(self, seconds: i64) -> Range {
        let moved = |time: i64| limited(time.saturating_add(seconds));
        Range { from: moved(self.from), until: moved(self.until) }
    }

    /// Begins some seconds earlier.
    pub(crate) fn earlier(self, seconds: i64) -> Range {
        Range { from: limited(self.from.saturating_sub(seconds)), ..self }
    }
}

/// Old behaviours of graphite-web that somebody may depend on. All are off by default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Compat {
    /// Only the beginning of a target has to be an expression.
    pub graphite_web_prefix_parse: bool,
    /// Combining functions number rows from the start of each series instead of by time.
    pub combine_by_index: bool,
    /// A last value that some series lack is null in sums and the like (`RENDER_TRIM_RECENT_IN_AGGREGATE`).
    pub trim_recent: bool,
}

/// One request: the range, the time, and the limits.
#[derive(Clone, Copy, Debug)]
pub struct Request<'r> {
    /// The time range.
    pub range: Range,
    /// Epoch seconds of the current time, for time expressions in targets.
    pub now: i64,
    /// Zone of dates and alignments.
    pub zone: &'r TimeZone,
    /// Share of known values that combined and consolidated values need; None is 0.
    pub x_files_factor: Option<f64>,
    /// Values of the request for templates, by name.
    pub template: &'r [(String, String)],
    /// Old behaviours.
    pub compat: Compat,
    /// What the request may cost.
    pub limits: Limits,
    /// Seed of `randomWalk`.
    pub seed: u64,
}

/// A value between functions.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A list of series.
    Series(Vec<Series>),
    /// A list of lists, which only `mapSeries` gives and `reduceSeries` takes.
    Lists(Vec<Vec<Series>>),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Text.
    Text(String),
    /// True or false.
    Bool(bool),
    /// No value.
    None,
}

impl Value {
    /// As Python's `str` prints it.
    pub(crate) fn text(&self) -> String {
        match self {
            Value::Int(int) => int.to_string(),
            Value::Float(float) => numbers::repr(*float),
            Value::Text(text) => text.clone(),
            Value::Bool(true) => "True".to_owned(),
            Value::Bool(false) => "False".to_owned(),
            Value::Series(_) | Value::Lists(_) | Value::None => "None".to_owned(),
        }
    }

    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Value::Int(int) => Some(*int as f64),
            Value::Float(float) => Some(*float),
            _ => None,
        }
    }
}

/// What a function gives.
pub(crate) type Answer = Result<Value, QueryError>;

/// The arguments of a call: for each parameter its values, after the check of their number and types.
#[derive(Debug, Default)]
pub(crate) struct Args(pub(crate) Vec<Vec<Value>>);

impl Args {
    /// The value of a parameter; `Value::None` if it is absent.
    pub(crate) fn value(&self, at: usize) -> &Value {
        self.0.get(at).and_then(|values| values.first()).unwrap_or(&Value::None)
    }

    /// All values of a parameter that takes several.
    pub(crate) fn values(&self, at: usize) -> &[Value] {
        self.0.get(at).map_or(&[], Vec::as_slice)
    }

    /// Takes the series of a parameter.
    pub(crate) fn series(&mut self, at: usize) -> Vec<Series> {
        self.lists(at).into_iter().flatten().collect()
    }

    /// Takes the lists of series of a parameter.
    pub(crate) fn lists(&mut self, at: usize) -> Vec<Vec<Series>> {
        let mut lists = Vec::new();
        for value in self.0.get_mut(at).map(std::mem::take).unwrap_or_default() {
            match value {
                Value::Series(series) => lists.push(series),
                Value::Lists(inner) => lists.extend(inner),
                Value::Int(_) | Value::Float(_) | Value::Text(_) | Value::Bool(_) | Value::None => {}
            }
        }
        lists
    }

    pub(crate) fn float(&self, at: usize) -> Option<f64> {
        self.value(at).number()
    }

    pub(crate) fn int(&self, at: usize) -> Option<i64> {
        match self.value(at) {
            Value::Int(int) => Some(*int),
            Value::Float(float) => Some(*float as i64),
            _ => None,
        }
    }

    pub(crate) fn text(&self, at: usize) -> Option<&str> {
        match self.value(at) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn is_true(&self, at: usize) -> bool {
        *self.value(at) == Value::Bool(true)
    }
}

/// What lasts from one function of a request to the next.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Set by `setXFilesFactor` for the rest of the request.
    pub(crate) x_files_factor: Option<f64>,
    /// Sums of `stacked`, by the name of the stack.
    pub(crate) stacks: Vec<(String, Vec<f64>)>,
}

/// The evaluation, as functions see it.
pub(crate) trait Engine {
    fn request(&self) -> &Request<'_>;
    fn state(&mut self) -> &mut State;
    /// Evaluates a part of the target for a range, and fetches for it what is not fetched yet.
    fn evaluate(&mut self, expr: &Expr, range: Range) -> Result<Vec<Series>, QueryError>;
    /// Evaluates a target that a function has made.
    fn evaluate_text(&mut self, text: &str, range: Range) -> Result<Vec<Series>, QueryError>;
    /// Calls a combining function, or an aggregation function, by name.
    fn combine(
        &mut self,
        name: &str,
        lists: Vec<Vec<Series>>,
        range: Range,
    ) -> Result<Vec<Series>, QueryError>;
    /// Times of events in the range that have all tags; None for all events.
    fn events(&mut self, range: Range, tags: Option<&[String]>) -> Result<Vec<i64>, QueryError>;
    fn charge_points(&mut self, count: usize) -> Result<(), QueryError>;
    fn charge_steps(&mut self, count: usize) -> Result<(), QueryError>;
    /// Reports work that counts against no limit or was charged before: the store may end the request.
    fn poll(&mut self, work: usize) -> Result<(), QueryError>;
    /// Values that may still be computed.
    fn points_left(&self) -> usize;
}

/// One call of a function.
pub(crate) struct Call<'c> {
    pub(crate) args: Args,
    pub(crate) range: Range,
    /// The first argument, for functions that evaluate it for other ranges.
    pub(crate) first: Option<&'c Expr>,
    pub(crate) engine: &'c mut dyn Engine,
}

impl Call<'_> {
    /// The first argument for a range.
    pub(crate) fn evaluate_first(&mut self, range: Range) -> Result<Vec<Series>, QueryError> {
        match self.first {
            Some(expr) => self.engine.evaluate(expr, range),
            None => Ok(self.args.series(0)),
        }
    }

    /// The regular expression of a parameter, paid for.
    pub(crate) fn pattern(&mut self, at: usize) -> Result<Pattern, QueryError> {
        let text = self.args.text(at).unwrap_or_default();
        self.engine.charge_steps(compile_steps(text))?;
        Pattern::new(text)
    }

    /// The factor for combining: `setXFilesFactor`, the request, or 0.
    pub(crate) fn x_files_factor(&mut self) -> f64 {
        self.engine.state().x_files_factor.or(self.engine.request().x_files_factor).unwrap_or(0.0)
    }

    /// Series on one grid, paid for; None without any series.
    pub(crate) fn align<'s>(
        &mut self,
        series: &[&'s Series],
    ) -> Result<Option<(Grid, Vec<Column<'s>>)>, QueryError> {
        let by_index = self.engine.request().compat.combine_by_index;
        let rows_max = self.engine.points_left();
        let aligned = align(series, by_index, rows_max, &mut |work| self.engine.poll(work))?;
        if let Some((grid, columns)) = &aligned {
            self.engine.charge_points(grid.rows)?;
            self.engine.charge_steps(columns.iter().map(|column| column.values.len()).sum())?;
        }
        Ok(aligned)
    }
}
