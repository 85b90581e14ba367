//! Macros that pass a value through forms: `->`, `cond->`, `some->`, `doto`, …

use super::forms::{bind, body, core, special, when, wrong};
use crate::language::error::Outcome;
use crate::language::machine::{ANY, Expansion};
use crate::macros;
use crate::value::Value;

macros! {
    /// Threading.
    pub MACROS = {
        "->", 1, ANY, "A value, put first into each form in turn.", |_, f| Ok(f[1..].iter().fold(f[0].clone(), |value, form| put(value, form, false)));
        "->>", 1, ANY, "A value, put last into each form in turn.", |_, f| Ok(f[1..].iter().fold(f[0].clone(), |value, form| put(value, form, true)));
        "as->", 2, ANY, "A value under a name, and each form's value under it in turn.", |_, f| {
            let name = &f[1];
            let (last, before) = f[2..].split_last().map_or((name.clone(), &f[2..2]), |(last, before)| (last.clone(), before));
            Ok(std::iter::once(&f[0]).chain(before).rev().fold(last, |inner, value| bind(name.clone(), value.clone(), inner)))
        };
        "cond->", 1, ANY, "A value, put first into each form whose test is true.", |e, f| conditional(e, f, false);
        "cond->>", 1, ANY, "A value, put last into each form whose test is true.", |e, f| conditional(e, f, true);
        "some->", 1, ANY, "A value, put first into each form in turn, as long as it is not nil.", |e, f| Ok(while_some(e, f, false));
        "some->>", 1, ANY, "A value, put last into each form in turn, as long as it is not nil.", |e, f| Ok(while_some(e, f, true));
        "doto", 1, ANY, "A value, after each form was called with it as its first argument.", |e, f| {
            let name = e.unique("value");
            let calls = f[1..].iter().map(|form| put(name.clone(), form, false));
            let forms: Vec<Value> = calls.chain([name.clone()]).collect();
            Ok(bind(name.clone(), f[0].clone(), body(&forms)))
        };
        "..", 2, ANY, "Methods called on what the one before gave.", |_, f| Ok(f[1..].iter().fold(f[0].clone(), |value, form| special(".", [value, form.clone()])));
        "memfn", 1, ANY, "A function that calls a method.", |e, f| {
            let target = e.unique("target");
            let parameters = std::iter::once(target.clone()).chain(f[1..].iter().cloned());
            let call = special(".", [target.clone(), f[0].clone()].into_iter().chain(f[1..].iter().cloned()));
            Ok(super::forms::function(parameters.collect::<Vec<_>>(), call))
        };
    }
}

/// Puts a value into a form: a list gets it after its head or at its end, anything else is called with it.
fn put(value: Value, form: &Value, last: bool) -> Value {
    let Value::List(list) = form else { return Value::list([form.clone(), value]) };
    let mut parts: Vec<Value> = list.iter().cloned().collect();
    parts.insert(if last { parts.len() } else { 1.min(parts.len()) }, value);
    let made = crate::collections::list::List::at(list.at.clone(), parts.into_iter());
    Value::List(std::sync::Arc::new(made))
}

fn conditional(expansion: &Expansion<'_, '_>, forms: &[Value], last: bool) -> Outcome {
    let name = expansion.unique("value");
    let (pairs, rest) = forms[1..].as_chunks::<2>();
    if !rest.is_empty() {
        return Err(wrong("pairs of a test and a form are needed"));
    }
    let steps =
        pairs.iter().map(|[test, form]| when(test.clone(), put(name.clone(), form, last), name.clone()));
    let values: Vec<Value> = std::iter::once(forms[0].clone()).chain(steps).collect();
    Ok(values.into_iter().rev().fold(name.clone(), |inner, value| bind(name.clone(), value, inner)))
}

fn while_some(expansion: &Expansion<'_, '_>, forms: &[Value], last: bool) -> Value {
    let name = expansion.unique("value");
    let step = |form: &Value| when(core("nil?", [name.clone()]), Value::Nil, put(name.clone(), form, last));
    let values: Vec<Value> = std::iter::once(forms[0].clone()).chain(forms[1..].iter().map(step)).collect();
    values.into_iter().rev().fold(name.clone(), |inner, value| bind(name.clone(), value, inner))
}
