//! `cheshire.core`: JSON texts. Not here: streams and files, which a config does not have.

use std::sync::Arc;

use crate::collections::map::Map;
use crate::json::charged;
use crate::json::read::read;
use crate::json::write::{Style, write};
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::{ANY, Machine};
use crate::natives;
use crate::nodes::fields;
use crate::object::class;
use crate::value::Value;

natives! {
    /// The namespace.
    pub(super) NATIVES = {
        "generate-string", 1, 2, "The JSON of a value; with :pretty or :escape-non-ascii in a map.", generate;
        "encode", 1, 2, "The JSON of a value; the same as generate-string.", generate;
        "parse-string", 1, 2, "The value of a JSON text; its keys keywords if the second argument is true, or what a function makes of them.", |m, a| {
            // A list at the top level, as there it is a lazy one in cheshire.
            match parse(m, a)? {
                Value::Vector(items) => Ok(Value::list(items.iter().cloned().collect::<Vec<_>>())),
                other => Ok(other),
            }
        };
        "parse-string-strict", 1, 2, "As parse-string, with a vector for an array at the top level.", parse;
        "decode", 1, 2, "The value of a JSON text; the same as parse-string.", |m, a| {
            m.call(&Value::Native(&NATIVES[2]), a)
        };
        "decode-strict", 1, 2, "The value of a JSON text; the same as parse-string-strict.", parse;
        "generate-stream", 0, ANY, "Refused: a config writes to no streams.", |_, _| refused("generate-stream", "generate-string");
        "encode-stream", 0, ANY, "Refused: a config writes to no streams.", |_, _| refused("encode-stream", "generate-string");
        "parse-stream", 0, ANY, "Refused: a config reads from no streams.", |_, _| refused("parse-stream", "parse-string");
        "decode-stream", 0, ANY, "Refused: a config reads from no streams.", |_, _| refused("decode-stream", "parse-string");
        "parsed-seq", 0, ANY, "Refused: a config reads from no streams.", |_, _| refused("parsed-seq", "parse-string");
        "generate-smile", 0, ANY, "Refused: bytes are no values here.", |_, _| refused("generate-smile", "generate-string");
        "parse-smile", 0, ANY, "Refused: bytes are no values here.", |_, _| refused("parse-smile", "parse-string");
    }
}

fn refused(name: &str, instead: &str) -> Outcome {
    let message = format!("cheshire's {name} is not available: use {instead}");
    Err(EvalError::throw(&class::UNSUPPORTED, message))
}

pub(super) fn generate(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let value = machine.realize(&arguments[0])?;
    let option = |name: &str| arguments.get(1).map(|given| fields::named(given, &name.into()).is_true());
    let style = Style {
        pretty: option("pretty").unwrap_or_default(),
        ascii: option("escape-non-ascii").unwrap_or_default(),
        bytes_max: 0,
    };
    charged(&mut machine.budget, |bytes_max| write(&value, Style { bytes_max, ..style })).map(Value::from)
}

fn parse(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let text = match &arguments[0] {
        Value::Nil => return Ok(Value::Nil),
        Value::Text(text) => text.clone(),
        other => return Err(fields::cannot("read JSON of", other)),
    };
    let (keywords, function) = match arguments.get(1) {
        None | Some(Value::Nil | Value::Bool(false)) => (false, None),
        Some(Value::Bool(true)) => (true, None),
        Some(function) => (false, Some(function.clone())),
    };
    let value = read(&text, keywords, &mut machine.budget)?.unwrap_or_default();
    match function {
        None => Ok(value),
        Some(function) => with_keys(machine, &value, &function),
    }
}

/// The value with each key of its objects as a function makes it. Values of JSON have no other collections than vectors and maps.
fn with_keys(machine: &mut Machine<'_>, value: &Value, function: &Value) -> Outcome {
    match value {
        Value::Vector(items) => {
            let made =
                items.iter().map(|item| with_keys(machine, item, function)).collect::<Outcome<Vec<_>>>()?;
            Ok(Value::vector(made))
        }
        Value::Map(map) => {
            let mut made = Map::default();
            for (key, value) in map.iter() {
                let key = machine.call(function, &mut [key.clone()])?;
                let key = machine.realize(&key)?;
                made.insert(key, with_keys(machine, value, function)?);
            }
            Ok(Value::Map(Arc::new(made)))
        }
        other => Ok(other.clone()),
    }
}
