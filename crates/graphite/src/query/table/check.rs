//! Arguments of a call against the parameters of its function: number, names, types, options.
//!
//! Types of calls and paths are known before they are evaluated, so a target is checked whole before a fetch.

use super::row::{Default, Function, Param, ParamType};
use super::{find, functions, nearest_name};
use crate::query::call::{Args, Value};
use crate::query::error::{Code, QueryError, nearest};
use crate::query::series::aggregate::Aggregation;
use crate::query::target::{Call, Expr, ExprKind, Literal};
use crate::query::time::{TIME_BYTES_MAX, parse_offset};

/// The value of a literal.
pub(crate) fn literal(literal: &Literal) -> Value {
    match literal {
        Literal::Int(int) => Value::Int(*int),
        Literal::Float(float) => Value::Float(*float),
        Literal::Text(text) => Value::Text(text.clone()),
        Literal::Bool(flag) => Value::Bool(*flag),
        Literal::None => Value::None,
    }
}

/// Checks a whole target whose templates are expanded.
pub(crate) fn check(expr: &Expr) -> Result<(), QueryError> {
    let ExprKind::Call(call) = &expr.kind else { return Ok(()) };
    let function = find(&call.name).ok_or_else(|| unknown(&call.name).at(expr.at))?;
    for arg in call.args.iter().chain(call.named.iter().map(|named| &named.value)) {
        check(arg)?;
    }
    bind(function, call, expr.at, &mut |arg| Ok(preview(arg))).map(drop)
}

fn unknown(name: &str) -> QueryError {
    let mistake = QueryError::new(Code::UnknownFunction, format!("unknown function `{name}`"));
    match nearest_name(name) {
        Some(near) => mistake.hint(format!("did you mean `{near}`?")),
        None => mistake,
    }
}

/// A value of the type that an argument will have.
fn preview(arg: &Expr) -> Value {
    match &arg.kind {
        ExprKind::Literal(value) => literal(value),
        ExprKind::Call(call) if matches!(call.name.as_str(), "mapSeries" | "map") => Value::Lists(Vec::new()),
        ExprKind::Call(_) | ExprKind::Path(_) | ExprKind::Template(_) => Value::Series(Vec::new()),
    }
}

/// Gives each parameter its values. `value` computes an argument.
pub(crate) fn bind(
    function: &Function,
    call: &Call,
    at: usize,
    value: &mut dyn FnMut(&Expr) -> Result<Value, QueryError>,
) -> Result<Args, QueryError> {
    let params = function.params;
    let mut args = Args(vec![Vec::new(); params.len()]);
    let mut set = |index: usize, arg: &Expr| {
        let param = &params[index];
        let value = convert(param, value(arg)?);
        let value = value.map_err(|mistake| mistake.at(arg.at).in_function(&call.name))?;
        args.0[index].push(value);
        Ok(())
    };
    for (index, arg) in call.args.iter().enumerate() {
        let last = params.len().saturating_sub(1);
        match params.get(index.min(last)) {
            Some(param) if index <= last || param.is_multiple => set(index.min(last), arg)?,
            _ => {
                let message = format!("at most {} arguments, not {}", params.len(), call.args.len());
                let hint = format!("it is {}", function.signature(&call.name));
                return Err(QueryError::argument(message).hint(hint).at(arg.at).in_function(&call.name));
            }
        }
    }
    for named in &call.named {
        let index = position(function, &named.name).map_err(|m| m.at(named.at).in_function(&call.name))?;
        if index < call.args.len() || call.named.iter().any(|o| o.at < named.at && o.name == named.name) {
            let message = format!("`{}` is given twice", named.name);
            return Err(QueryError::argument(message).at(named.at).in_function(&call.name));
        }
        set(index, &named.value)?;
    }
    for (param, values) in params.iter().zip(&mut args.0) {
        let is_absent = values.is_empty() || !param.is_multiple && values[0] == Value::None;
        if is_absent && param.is_required {
            let message = format!("the argument `{}` is missing", param.name);
            let hint = format!("it is {}", function.signature(&call.name));
            return Err(QueryError::argument(message).hint(hint).at(at).in_function(&call.name));
        }
        if is_absent && let Some(default) = param.default {
            *values = vec![value_of(default)];
        }
    }
    Ok(args)
}

/// The value of a default.
pub(crate) fn value_of(default: Default) -> Value {
    match default {
        Default::Int(int) => Value::Int(int),
        Default::Float(float) => Value::Float(float),
        Default::Text(text) => Value::Text(text.to_owned()),
        Default::Bool(flag) => Value::Bool(flag),
        Default::Infinity => Value::Float(f64::INFINITY),
    }
}

fn position(function: &Function, name: &str) -> Result<usize, QueryError> {
    if let Some(index) = function.params.iter().position(|param| param.name == name) {
        return Ok(index);
    }
    let mistake = QueryError::argument(format!("unknown argument `{name}`"));
    Err(match nearest(name, function.params.iter().map(|param| param.name)) {
        Some(near) => mistake.hint(format!("did you mean `{near}`?")),
        None => mistake.hint(format!("it is {}", function.signature(function.name))),
    })
}

/// A value of the parameter's type, or why it is none.
fn convert(param: &Param, value: Value) -> Result<Value, QueryError> {
    if value == Value::None {
        return Ok(value);
    }
    let converted = typed(param, &value)?.unwrap_or(value);
    if let Value::Text(text) = &converted
        && !param.options.is_empty()
        && !param.options.contains(&text.as_str())
    {
        let message = format!("`{}` is one of {}, not `{text}`", param.name, param.options.join(", "));
        return Err(QueryError::argument(message));
    }
    Ok(converted)
}

/// The converted value; None when the value is right as it is.
fn typed(param: &Param, value: &Value) -> Result<Option<Value>, QueryError> {
    let wrong = |what: &str| {
        let mistake = QueryError::argument(format!("`{}` is {what}, not {}", param.name, described(value)));
        match value {
            Value::Series(_) if param.kind != ParamType::SeriesLists => {
                Err(mistake.hint("write text in quotes"))
            }
            _ => Err(mistake),
        }
    };
    let converted = match (param.kind, value) {
        (ParamType::Any, _)
        | (ParamType::SeriesList, Value::Series(_))
        | (ParamType::SeriesLists, Value::Lists(_)) => return Ok(None),
        (ParamType::SeriesList, _) => return wrong("a list of series"),
        (ParamType::SeriesLists, _) => return wrong("the lists of mapSeries"),
        (_, Value::Series(_) | Value::Lists(_)) => return wrong(expectation(param.kind)),
        (ParamType::Boolean, value) => boolean(value),
        (ParamType::Float, value) => float(value),
        (ParamType::Integer | ParamType::Node, value) => integer(value),
        (ParamType::IntOrInf, value) => {
            integer(value).or_else(|| float(value).filter(|v| *v == Value::Float(f64::INFINITY)))
        }
        (ParamType::Interval, Value::Text(text)) => return interval(param, text),
        (ParamType::IntOrInterval, Value::Text(text)) => return interval(param, text),
        (ParamType::IntOrInterval, value) => integer(value),
        (ParamType::NodeOrTag, Value::Text(_)) => return Ok(None),
        (ParamType::NodeOrTag, value) => integer(value),
        (ParamType::AggFunc | ParamType::AggOrSeriesFunc, Value::Text(text)) => {
            return function_name(param, text);
        }
        (ParamType::Date, Value::Text(text)) if text.len() > TIME_BYTES_MAX => None,
        (ParamType::Date, Value::Text(_) | Value::Int(_)) => return Ok(None),
        // `alignTo` was a flag once: true and false are ignored.
        (ParamType::String, Value::Bool(_)) if param.name == "alignTo" => Some(Value::None),
        (ParamType::String | ParamType::Tag, Value::Text(_)) => return Ok(None),
        (ParamType::String | ParamType::Tag, value) => Some(Value::Text(value.text())),
        (ParamType::Interval | ParamType::AggFunc | ParamType::AggOrSeriesFunc | ParamType::Date, _) => None,
    };
    match converted {
        Some(converted) => Ok(Some(converted)),
        None => wrong(expectation(param.kind)),
    }
}

fn boolean(value: &Value) -> Option<Value> {
    match value {
        Value::Bool(_) => Some(value.clone()),
        Value::Text(text) if text.eq_ignore_ascii_case("true") => Some(Value::Bool(true)),
        Value::Text(text) if text.eq_ignore_ascii_case("false") => Some(Value::Bool(false)),
        other => match other.number() {
            Some(0.0) => Some(Value::Bool(false)),
            Some(1.0) => Some(Value::Bool(true)),
            _ => None,
        },
    }
}

fn float(value: &Value) -> Option<Value> {
    match value {
        Value::Bool(flag) => Some(Value::Float(f64::from(u8::from(*flag)))),
        Value::Text(text) => text.trim().parse().ok().filter(|v: &f64| !v.is_nan()).map(Value::Float),
        other => other.number().map(Value::Float),
    }
}

fn integer(value: &Value) -> Option<Value> {
    match value {
        Value::Int(_) => Some(value.clone()),
        Value::Bool(flag) => Some(Value::Int(i64::from(*flag))),
        Value::Text(text) => text.trim().parse().ok().map(Value::Int),
        _ => None,
    }
}

fn interval(param: &Param, text: &str) -> Result<Option<Value>, QueryError> {
    match parse_offset(text) {
        Ok(_) => Ok(None),
        Err(cause) => {
            let message =
                format!("`{}` is an interval such as `5min`, not `{text}`: {}", param.name, cause.message);
            Err(QueryError::argument(message))
        }
    }
}

/// The name of an aggregation function, and of a combining function where the parameter takes one.
fn function_name(param: &Param, text: &str) -> Result<Option<Value>, QueryError> {
    let takes_functions = param.kind == ParamType::AggOrSeriesFunc;
    let is_aggregator = takes_functions && find(text).is_some_and(|function| function.is_aggregator);
    if is_aggregator || Aggregation::from_name(text).is_some() {
        return Ok(None);
    }
    let combining = functions().filter(|function| takes_functions && function.is_aggregator);
    let names = Aggregation::NAMES.into_iter().chain(combining.map(|function| function.name));
    let near = nearest(text, names).map(|near| format!("did you mean `{near}`?"));
    let hint = near.unwrap_or_else(|| format!("use one of {}", Aggregation::NAMES.join(", ")));
    Err(QueryError::argument(format!("`{}` is no aggregation function: `{text}`", param.name)).hint(hint))
}

fn expectation(kind: ParamType) -> &'static str {
    match kind {
        ParamType::AggFunc | ParamType::AggOrSeriesFunc => "an aggregation function in quotes",
        ParamType::Any => "a value",
        ParamType::Boolean => "true or false",
        ParamType::Date => "a time in quotes",
        ParamType::Float => "a number",
        ParamType::IntOrInf => "a whole number or inf",
        ParamType::IntOrInterval => "a whole number, or an interval in quotes",
        ParamType::Integer | ParamType::Node => "a whole number",
        ParamType::Interval => "an interval in quotes, such as '5min'",
        ParamType::NodeOrTag => "a whole number, or a tag in quotes",
        ParamType::SeriesList => "a list of series",
        ParamType::SeriesLists => "the lists of mapSeries",
        ParamType::String | ParamType::Tag => "text in quotes",
    }
}

fn described(value: &Value) -> String {
    match value {
        Value::Series(_) => "a list of series".to_owned(),
        Value::Lists(_) => "lists of series".to_owned(),
        Value::Text(text) => {
            let short: String = text.chars().take(40).collect();
            format!("'{short}'")
        }
        other => other.text(),
    }
}
