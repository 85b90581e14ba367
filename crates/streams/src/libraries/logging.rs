//! `clojure.tools.logging`: lines for the log.

use crate::language::error::{EvalError, Outcome, Reason};
use crate::language::host::Level;
use crate::language::machine::{ANY, Machine};
use crate::natives;
use crate::print::to_str;
use crate::value::Value;

natives! {
    /// The namespace.
    pub(super) NATIVES = {
        "trace", 0, ANY, "Logs values, for details of single steps.", |m, a| log(m, Level::Trace, a);
        "debug", 0, ANY, "Logs values, for engineers.", |m, a| log(m, Level::Debug, a);
        "info", 0, ANY, "Logs values.", |m, a| log(m, Level::Info, a);
        "warn", 0, ANY, "Logs values as a warning.", |m, a| log(m, Level::Warn, a);
        "error", 0, ANY, "Logs values as an error.", |m, a| log(m, Level::Error, a);
        "fatal", 0, ANY, "Logs values as a fatal error.", |m, a| log(m, Level::Fatal, a);
        "tracef", 1, ANY, "Logs a text made with `format`.", |m, a| logf(m, Level::Trace, a);
        "debugf", 1, ANY, "Logs a text made with `format`.", |m, a| logf(m, Level::Debug, a);
        "infof", 1, ANY, "Logs a text made with `format`.", |m, a| logf(m, Level::Info, a);
        "warnf", 1, ANY, "Logs a text made with `format` as a warning.", |m, a| logf(m, Level::Warn, a);
        "errorf", 1, ANY, "Logs a text made with `format` as an error.", |m, a| logf(m, Level::Error, a);
        "fatalf", 1, ANY, "Logs a text made with `format` as a fatal error.", |m, a| logf(m, Level::Fatal, a);
        "log", 2, ANY, "Logs values at a level, such as :info.", |m, a| {
            let level = level(&a[0])?;
            log(m, level, &a[1..])
        };
        "spy", 1, 2, "Logs a value, at a level or for engineers, and returns it: `[level] value`.", |m, a| {
            let value = a[a.len() - 1].clone();
            let level = if a.len() == 2 { level(&a[0])? } else { Level::Debug };
            log(m, level, std::slice::from_ref(&value))?;
            Ok(value)
        };
    }
}

/// The level of a keyword, such as `:info`.
fn level(value: &Value) -> Outcome<Level> {
    let Value::Keyword(name) = value else {
        return Err(crate::nodes::fields::cannot("use as a level", value));
    };
    Ok(match name.as_str() {
        "trace" => Level::Trace,
        "debug" => Level::Debug,
        "info" => Level::Info,
        "warn" => Level::Warn,
        "error" => Level::Error,
        "fatal" => Level::Fatal,
        other => return Err(EvalError::illegal_argument(format!("there is no level :{other}"))),
    })
}

/// Values with spaces between them; an exception that comes first as its class and message.
fn log(machine: &mut Machine<'_>, level: Level, values: &[Value]) -> Outcome {
    let mut text = String::new();
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            text.push(' ');
        }
        let value = machine.realize(value)?;
        match value {
            Value::Exception(thrown) => text.push_str(&EvalError::new(Reason::Thrown(thrown)).to_string()),
            other => text.push_str(&to_str(&other)),
        }
        machine.budget.text(text.len())?;
    }
    if !machine.is_trial() {
        machine.host.log(level, &text);
    }
    Ok(Value::Nil)
}

/// `(infof format value…)`, `(infof exception format value…)`
fn logf(machine: &mut Machine<'_>, level: Level, values: &[Value]) -> Outcome {
    let (thrown, values) = match values {
        [thrown @ Value::Exception(_), values @ ..] if !values.is_empty() => (Some(thrown.clone()), values),
        values => (None, values),
    };
    let text = machine.call_core("format", &mut values.to_vec())?;
    let lines: Vec<Value> = thrown.into_iter().chain([text]).collect();
    log(machine, level, &lines)
}
