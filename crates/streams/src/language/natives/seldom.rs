//! Functions of `clojure.core` that few configs use.

use super::arguments::{integer, number, text};
use crate::collections::element::Element as _;
use crate::function::Bound;
use crate::language::classes::cannot_cast;
use crate::language::error::Outcome;
use crate::language::machine::{ANY, Machine};
use crate::natives;
use crate::object::class;
use crate::object::reference::Sort;
use crate::symbol::split_name;
use crate::value::Value;

natives! {
    /// The functions.
    pub NATIVES = {
        "replicate", 2, 2, "So many times a value.", |m, a| m.call_core("repeat", a);
        "pmap", 2, ANY, "The same as `map`: there are no threads.", |m, a| m.call_core("map", a);
        "sequence", 1, 1, "The sequence of a collection; empty where `seq` is nil.", |m, a| {
            let seq = m.seq(&a[0])?;
            Ok(if seq.is_nil() { Value::list([]) } else { seq })
        };
        "random-sample", 2, 2, "Values, each with a probability.", |m, a| {
            let probability = number(&a[0])?.as_f64();
            let mut all = m.collect(&a[1])?;
            all.retain(|_| ((m.host.random() >> 11) as f64 / (1_u64 << 53) as f64) < probability);
            Ok(Value::list(all))
        };
        "comparator", 1, 1, "A function that compares as `compare` does, by one that says what is less.", |_, a| {
            Ok(Value::Bound(std::sync::Arc::new(Bound::new(&PARTS[0], [a[0].clone()].into()))))
        };
        "isa?", 2, 2, "Whether values are equal, or one class descends from another one.", |m, a| match (&a[0], &a[1]) {
            (Value::Class(child), Value::Class(parent)) => Ok(child.is_a(parent).into()),
            (child, parent) => Ok(m.realize(child)?.equal(&m.realize(parent)?).into()),
        };
        "volatile?", 1, 1, "Whether a value is a volatile cell.", |_, a| Ok(matches!(&a[0], Value::Atom(atom) if atom.sort == Sort::Volatile).into());
        "simple-ident?", 1, 1, "Whether a value is a keyword or a symbol without a namespace.", |_, a| Ok((has_space(&a[0]) == Some(false)).into());
        "qualified-ident?", 1, 1, "Whether a value is a keyword or a symbol with a namespace.", |_, a| Ok((has_space(&a[0]) == Some(true)).into());
        "uri?", 1, 1, "Whether a value is a URI, which no value here is.", |_, _| Ok(false.into());
        "bytes?", 1, 1, "Whether a value is an array of bytes, which no value here is.", |_, _| Ok(false.into());
        "inst-ms", 1, 1, "The milliseconds of a time since 1970.", |_, a| match &a[0] {
            Value::Moment(moment) => Ok(moment.milliseconds.into()),
            other => Err(cannot_cast(other, &class::DATE)),
        };
        "unchecked-negate", 1, 1, "The negative in 64 bits, without overflow.", |_, a| Ok(integer(&a[0])?.wrapping_neg().into());
        "unchecked-long", 1, 1, "A number as a 64-bit integer, towards zero.", |_, a| Ok(integer(&a[0])?.into());
        "parse-uuid", 1, 1, "The text of a UUID in small letters, or nil.", |_, a| Ok(uuid(text(&a[0])?).into());
        "clojure-version", 0, 0, "The version of Clojure whose functions these are.", |_, _| Ok("1.11.1".into());
    }

    /// What `comparator` gives.
    PARTS = {
        "comparator", 3, 3, "", compare;
    }
}

fn compare(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let [less, a, b] = arguments else { return Ok(Value::Nil) };
    if machine.call(less, &mut [a.clone(), b.clone()])?.is_true() {
        return Ok((-1_i64).into());
    }
    Ok(i64::from(machine.call(less, &mut [b.clone(), a.clone()])?.is_true()).into())
}

/// Whether a keyword or a symbol has a namespace.
fn has_space(value: &Value) -> Option<bool> {
    match value {
        Value::Keyword(name) => Some(split_name(name).0.is_some()),
        Value::Symbol(symbol) => Some(split_name(&symbol.name).0.is_some()),
        _ => None,
    }
}

/// Five groups of 8, 4, 4, 4 and 12 hexadecimal digits; Java takes shorter ones too.
fn uuid(text: &str) -> Option<String> {
    let groups: Vec<&str> = text.split('-').collect();
    let widths = [8, 4, 4, 4, 12];
    let fits = |(group, width): (&&str, usize)| {
        (1..=width).contains(&group.len()) && group.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let is_right = groups.len() == widths.len() && groups.iter().zip(widths).all(fits);
    is_right.then(|| {
        let padded: Vec<String> = groups
            .iter()
            .zip(widths)
            .map(|(group, width)| format!("{:0>width$}", group.to_lowercase()))
            .collect();
        padded.join("-")
    })
}
