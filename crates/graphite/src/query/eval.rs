//! Evaluation of targets.
//!
//! Path of a request: [`render`] -> `parse`, `expand`, `check` for all targets -> `plan` (which paths for which ranges)
//! -> one `Fetch::fetch` -> `value` from the leaves to the root. Functions get their arguments as values, except those
//! that evaluate their first argument for other ranges: they get it as an expression (`TimeRanges`).
//! A window in points needs a second fetch, because its length depends on the step of what was fetched. So do targets
//! that functions make from data (`applyByNode`, `useSeriesAbove`, `aliasQuery`).
//! Not here: what functions do (`functions`), and how arguments are checked (`table`).

use std::collections::BTreeMap;

use super::budget::{Budget, STEPS_BETWEEN_POLLS};
use super::call::{Args, Call, Engine, Range, Request, State, Value};
use super::error::{Code, QueryError};
use super::fetch::{Ask, Fetch, FetchError, Selector, Stop};
use super::functions::combine::aggregate_series;
use super::series::aggregate::Aggregation;
use super::series::{Fetched, Series};
use super::table::{self, Function, Param, ParamType};
use super::target::{self, Expr, ExprKind, NamedArg, ParseOptions, expand, parse};
use super::time_ranges::{TimeRanges, ranges};

/// Deepest nesting of targets that functions make.
const MADE_TARGETS_MAX: usize = 4;

/// Most paths and ranges of one request.
pub const ASKS_MAX: usize = 100_000;

/// Evaluates all targets of a request, in order.
///
/// # Errors
/// The first mistake, with its target.
pub fn render(
    targets: &[&str],
    request: &Request<'_>,
    fetch: &mut dyn Fetch,
) -> Result<Vec<Series>, QueryError> {
    let mut evaluation = Evaluation {
        request,
        fetch,
        fetched: BTreeMap::new(),
        budget: Budget::new(request.limits),
        unpolled_steps: 0,
        state: State::default(),
        made_targets: 0,
    };
    let named = |target: &str| {
        let target = target.to_owned();
        move |mistake: QueryError| QueryError { target: Some(target), ..mistake }
    };
    let mut asks = Vec::new();
    let mut trees = Vec::with_capacity(targets.len());
    for target in targets.iter().filter(|target| !target.trim().is_empty()) {
        let tree = evaluation.read(target).map_err(named(target))?;
        evaluation.plan(&tree, request.range, &mut asks).map_err(named(target))?;
        trees.push((target, tree));
    }
    evaluation.fetch_all(asks)?;
    let mut results = Vec::new();
    for (target, tree) in trees {
        results.extend(evaluation.series(&tree, request.range).map_err(named(target))?);
    }
    Ok(results)
}

/// What is fetched for a path and a range, and how often it will still be used.
struct Entry {
    series: Vec<Fetched>,
    uses: usize,
}

struct Evaluation<'e> {
    request: &'e Request<'e>,
    fetch: &'e mut dyn Fetch,
    fetched: BTreeMap<Ask, Entry>,
    budget: Budget,
    /// Work since the store was asked whether to go on.
    unpolled_steps: usize,
    state: State,
    made_targets: usize,
}

fn of_fetch(cause: FetchError) -> QueryError {
    match cause {
        FetchError::Limit(message) => QueryError::new(Code::Limit, message),
        FetchError::Invalid(message) => QueryError::new(Code::Argument, message),
        FetchError::Failed(message) => QueryError::new(Code::Fetch, message),
        FetchError::Stopped(stop) => of_stop(stop),
    }
}

fn of_stop(stop: Stop) -> QueryError {
    let code = match stop {
        Stop::Deadline => Code::Deadline,
        Stop::Cancelled => Code::Cancelled,
    };
    QueryError::new(code, stop.to_string())
}

/// The series that an expression wants from the store, and its text.
fn selected(expr: &Expr) -> Option<(Selector, &str)> {
    match &expr.kind {
        ExprKind::Path(path) => Some((Selector::Glob(path.clone()), path)),
        ExprKind::Call(call) => {
            let args = call.args.iter().chain(call.named.iter().map(|named| &named.value));
            let texts = args.filter_map(|arg| match &arg.kind {
                ExprKind::Literal(literal) => Some(table::literal(literal).text()),
                ExprKind::Path(_) | ExprKind::Call(_) | ExprKind::Template(_) => None,
            });
            call.raw.as_deref().map(|raw| (Selector::Tags(texts.collect()), raw))
        }
        ExprKind::Literal(_) | ExprKind::Template(_) => None,
    }
}

/// The argument of a parameter as it is written.
fn argument<'c>(function: &Function, call: &'c target::Call, index: usize) -> Option<&'c Expr> {
    let by_name =
        |named: &&NamedArg| function.params.get(index).is_some_and(|param| param.name == named.name);
    call.args.get(index).or_else(|| call.named.iter().find(by_name).map(|named| &named.value))
}

impl Evaluation<'_> {
    /// Reads a target, expands its templates and checks it.
    fn read(&mut self, text: &str) -> Result<Expr, QueryError> {
        self.charge_steps(text.len())?;
        let options = ParseOptions { accept_prefix: self.request.compat.graphite_web_prefix_parse };
        let tree = expand(parse(text, options)?, self.request.template)?;
        table::check(&tree)?;
        Ok(tree)
    }

    /// Collects the paths and ranges of an expression.
    fn plan(&mut self, expr: &Expr, range: Range, asks: &mut Vec<Ask>) -> Result<(), QueryError> {
        self.charge_steps(1)?;
        if let Some((selector, _)) = selected(expr) {
            if asks.len() == ASKS_MAX {
                let message = format!("this request fetches more than {ASKS_MAX} paths and ranges");
                return Err(QueryError::new(Code::Limit, message).at(expr.at));
            }
            asks.push(Ask { selector, range });
            return Ok(());
        }
        let ExprKind::Call(call) = &expr.kind else { return Ok(()) };
        let Some(function) = table::find(&call.name) else { return Ok(()) };
        let first = argument(function, call, 0);
        if let (Some(first), true) = (first, function.time_ranges != TimeRanges::Same) {
            let written = |index: usize| literal_of(function, call, index);
            for looked in ranges(function.time_ranges, &written, range, self.request) {
                self.plan(first, looked, asks)?;
            }
        }
        for arg in call.args.iter().chain(call.named.iter().map(|named| &named.value)) {
            let is_first = first.is_some_and(|first| std::ptr::eq(first, arg));
            if !is_first || function.time_ranges == TimeRanges::Same {
                self.plan(arg, range, asks)?;
            }
        }
        Ok(())
    }

    /// Fetches what is not fetched yet, in one call.
    fn fetch_all(&mut self, asks: Vec<Ask>) -> Result<(), QueryError> {
        let mut missing: Vec<Ask> = Vec::new();
        for ask in asks {
            if let Some(entry) = self.fetched.get_mut(&ask) {
                entry.uses += 1;
                continue;
            }
            missing.push(ask.clone());
            self.fetched.insert(ask, Entry { series: Vec::new(), uses: 1 });
        }
        if missing.is_empty() {
            return Ok(());
        }
        self.fetch.keep_going().map_err(of_stop)?;
        let answers = self.fetch.fetch(&missing, self.budget.room()).map_err(of_fetch)?;
        if answers.len() != missing.len() {
            let message = format!("the store has {} answers to {} requests", answers.len(), missing.len());
            return Err(QueryError::new(Code::Fetch, message));
        }
        self.fetch.keep_going().map_err(of_stop)?;
        for (ask, mut series) in missing.into_iter().zip(answers) {
            self.budget.charge_series(series.len())?;
            self.charge_points(series.iter().map(|one| one.values.len()).sum())?;
            if !series.is_sorted_by(|a, b| a.name <= b.name) {
                series.sort_by(|a, b| a.name.cmp(&b.name));
            }
            if let Some(entry) = self.fetched.get_mut(&ask) {
                entry.series = series;
            }
        }
        Ok(())
    }

    /// The series of a path; the last use takes them, others copy.
    fn path(&mut self, selector: Selector, path: &str, range: Range) -> Result<Vec<Series>, QueryError> {
        let ask = Ask { selector, range };
        if !self.fetched.contains_key(&ask) {
            self.fetch_all(vec![ask.clone()])?;
        }
        let factor = self.state.x_files_factor.or(self.request.x_files_factor).unwrap_or(0.0);
        let Some(entry) = self.fetched.get_mut(&ask) else { return Ok(Vec::new()) };
        let fetched = if entry.uses <= 1 {
            self.fetched.remove(&ask).map(|entry| entry.series).unwrap_or_default()
        } else {
            entry.uses -= 1;
            let mut copies = Vec::with_capacity(entry.series.len());
            for at in 0..entry.series.len() {
                let Some(one) = self.fetched.get(&ask).and_then(|entry| entry.series.get(at)) else { break };
                let one = one.clone();
                self.charge_points(one.values.len())?;
                copies.push(one);
            }
            copies
        };
        Ok(fetched.into_iter().map(|one| Series::from_store(one, path, factor)).collect())
    }

    /// An expression whose paths are planned.
    fn series(&mut self, expr: &Expr, range: Range) -> Result<Vec<Series>, QueryError> {
        match self.value(expr, range)? {
            Value::Series(series) => Ok(series),
            Value::Lists(lists) => Ok(lists.into_iter().flatten().collect()),
            other => {
                let message = format!("expected series, found {}", other.text());
                Err(QueryError::new(Code::Argument, message).at(expr.at))
            }
        }
    }

    fn value(&mut self, expr: &Expr, range: Range) -> Result<Value, QueryError> {
        if let Some((selector, path)) = selected(expr) {
            return self
                .path(selector, path, range)
                .map(Value::Series)
                .map_err(|mistake| mistake.at(expr.at));
        }
        match &expr.kind {
            ExprKind::Literal(value) => Ok(table::literal(value)),
            ExprKind::Call(call) => self.call(call, expr.at, range),
            ExprKind::Path(_) | ExprKind::Template(_) => Ok(Value::None),
        }
    }

    fn call(&mut self, call: &target::Call, at: usize, range: Range) -> Result<Value, QueryError> {
        let Some(function) = table::find(&call.name) else {
            return Err(
                QueryError::new(Code::UnknownFunction, format!("unknown function `{}`", call.name)).at(at)
            );
        };
        let first = argument(function, call, 0).filter(|_| function.time_ranges != TimeRanges::Same);
        let args = table::bind(function, call, at, &mut |arg| match first {
            Some(first) if std::ptr::eq(first, arg) => Ok(Value::Series(Vec::new())),
            _ => self.value(arg, range),
        })?;
        let answer = self.run(function, args, first, range);
        answer.map_err(|mistake| mistake.at(at).in_function(&call.name))
    }

    fn run(
        &mut self,
        function: &Function,
        args: Args,
        first: Option<&Expr>,
        range: Range,
    ) -> Result<Value, QueryError> {
        let answer = (function.run)(&mut Call { args, range, first, engine: self })?;
        let work = |series: &[Series]| series.iter().map(|one| one.values.len() + one.name.len()).sum();
        self.charge_steps(match &answer {
            Value::Series(series) => work(series),
            Value::Lists(lists) => lists.iter().map(|list| work(list)).sum(),
            _ => 1,
        })?;
        Ok(answer)
    }
}

/// A literal argument, or the default of its parameter.
fn literal_of(function: &Function, call: &target::Call, index: usize) -> Value {
    match argument(function, call, index).map(|expr| &expr.kind) {
        Some(ExprKind::Literal(literal)) => table::literal(literal),
        Some(_) => Value::None,
        None => match function.params.get(index).and_then(|param| param.default) {
            Some(default) => table::value_of(default),
            None => Value::None,
        },
    }
}

impl Engine for Evaluation<'_> {
    fn request(&self) -> &Request<'_> {
        self.request
    }

    fn state(&mut self) -> &mut State {
        &mut self.state
    }

    fn evaluate(&mut self, expr: &Expr, range: Range) -> Result<Vec<Series>, QueryError> {
        // What was planned is there; the rest is fetched together.
        let mut asks = Vec::new();
        self.plan(expr, range, &mut asks)?;
        if asks.iter().any(|ask| !self.fetched.contains_key(ask)) {
            self.fetch_all(asks)?;
        }
        self.series(expr, range)
    }

    fn evaluate_text(&mut self, text: &str, range: Range) -> Result<Vec<Series>, QueryError> {
        let within = |mistake: QueryError| {
            let message = format!("in the target `{text}`: {mistake}");
            QueryError::new(mistake.code, message)
        };
        if self.made_targets == MADE_TARGETS_MAX {
            let message = format!("targets that make targets are nested more than {MADE_TARGETS_MAX} deep");
            return Err(QueryError::new(Code::Limit, message));
        }
        let tree = self.read(text).map_err(within)?;
        self.made_targets += 1;
        let result = self.evaluate(&tree, range).map_err(within);
        self.made_targets -= 1;
        result
    }

    fn combine(
        &mut self,
        name: &str,
        lists: Vec<Vec<Series>>,
        range: Range,
    ) -> Result<Vec<Series>, QueryError> {
        let aggregation = Aggregation::from_name(name).filter(|_| !name.ends_with("Series"));
        if aggregation.is_some() {
            let name = if name == "avg" { "average" } else { name };
            let mut call = Call { args: Args::default(), range, first: None, engine: self };
            let series = lists.into_iter().flatten().collect();
            return Ok(aggregate_series(&mut call, series, name, None)?.into_iter().collect());
        }
        let Some(function) = table::find(name).filter(|function| function.time_ranges == TimeRanges::Same)
        else {
            return match Aggregation::from_name(name) {
                Some(_) => {
                    let short = name.strip_suffix("Series").unwrap_or(name);
                    self.combine(short, lists, range)
                }
                None => Err(QueryError::argument(format!("`{name}` does not combine series"))),
            };
        };
        let args = arguments(function, lists)
            .ok_or_else(|| QueryError::argument(format!("`{name}` cannot be called with series only")))?;
        match self.run(function, args, None, range)? {
            Value::Series(series) => Ok(series),
            Value::Lists(lists) => Ok(lists.into_iter().flatten().collect()),
            _ => Ok(Vec::new()),
        }
    }

    fn events(&mut self, range: Range, tags: Option<&[String]>) -> Result<Vec<i64>, QueryError> {
        let times = self.fetch.events(range, tags).map_err(of_fetch)?;
        self.charge_steps(times.len())?;
        Ok(times)
    }

    fn charge_points(&mut self, count: usize) -> Result<(), QueryError> {
        self.budget.charge_points(count)?;
        self.poll(count)
    }

    fn charge_steps(&mut self, count: usize) -> Result<(), QueryError> {
        self.budget.charge_steps(count)?;
        self.poll(count)
    }

    fn poll(&mut self, work: usize) -> Result<(), QueryError> {
        self.unpolled_steps = self.unpolled_steps.saturating_add(work);
        if self.unpolled_steps < STEPS_BETWEEN_POLLS {
            return Ok(());
        }
        self.unpolled_steps = 0;
        self.fetch.keep_going().map_err(of_stop)
    }

    fn points_left(&self) -> usize {
        self.budget.room().points
    }
}

/// Arguments of series only; None when the function needs others.
fn arguments(function: &Function, lists: Vec<Vec<Series>>) -> Option<Args> {
    let last = function.params.len().checked_sub(1)?;
    let mut args = Args(vec![Vec::new(); function.params.len()]);
    for (index, list) in lists.into_iter().enumerate() {
        let param = &function.params[index.min(last)];
        let takes_series = matches!(param.kind, ParamType::SeriesList | ParamType::Any);
        if !takes_series || index > last && !param.is_multiple {
            return None;
        }
        args.0[index.min(last)].push(Value::Series(list));
    }
    for (param, values) in function.params.iter().zip(&mut args.0) {
        fill(param, values)?;
    }
    Some(args)
}

/// The default of a parameter without values; None when it has to have one.
fn fill(param: &Param, values: &mut Vec<Value>) -> Option<()> {
    if values.is_empty() {
        match param.default {
            Some(default) => values.push(table::value_of(default)),
            None if param.is_required => return None,
            None => {}
        }
    }
    Some(())
}
