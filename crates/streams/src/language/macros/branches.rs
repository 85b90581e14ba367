//! Macros that choose: `when`, `cond`, `case`, `and`, `or`, …

use super::forms::{bind, body, core, pairs, quote, when, wrong};
use crate::language::error::Outcome;
use crate::language::machine::{ANY, Expansion};
use crate::macros;
use crate::value::Value;

macros! {
    /// Choices.
    pub MACROS = {
        "when", 1, ANY, "(when test body…): the body, if the test is true.", |_, f| Ok(when(f[0].clone(), body(&f[1..]), Value::Nil));
        "when-not", 1, ANY, "(when-not test body…): the body, if the test is not true.", |_, f| Ok(when(f[0].clone(), Value::Nil, body(&f[1..])));
        "if-not", 2, 3, "(if-not test then else): as `if`, the other way round.", |_, f| Ok(when(f[0].clone(), f.get(2).cloned().unwrap_or_default(), f[1].clone()));
        "if-let", 2, 3, "(if-let [name test] then else): binds the test's value if it is true.", |e, f| {
            let (then, otherwise) = (f[1].clone(), f.get(2).cloned().unwrap_or_default());
            tested(e, &f[0], false, then, otherwise)
        };
        "when-let", 1, ANY, "(when-let [name test] body…): binds the test's value if it is true.", |e, f| tested(e, &f[0], false, body(&f[1..]), Value::Nil);
        "if-some", 2, 3, "(if-some [name test] then else): binds the test's value if it is not nil.", |e, f| {
            let (then, otherwise) = (f[1].clone(), f.get(2).cloned().unwrap_or_default());
            tested(e, &f[0], true, then, otherwise)
        };
        "when-some", 1, ANY, "(when-some [name test] body…): binds the test's value if it is not nil.", |e, f| tested(e, &f[0], true, body(&f[1..]), Value::Nil);
        "when-first", 1, ANY, "(when-first [name values] body…): binds the first value if there is one.", |e, f| {
            let [[name, values]] = &*pairs(&f[0])? else { return Err(wrong("`when-first` takes one pair")) };
            let seq = e.unique("seq");
            let inner = bind(name.clone(), core("first", [seq.clone()]), body(&f[1..]));
            Ok(bind(seq.clone(), core("seq", [values.clone()]), when(seq, inner, Value::Nil)))
        };
        "cond", 0, ANY, "(cond test value…): the value of the first true test.", |_, f| {
            let (pairs, rest) = f.as_chunks::<2>();
            if !rest.is_empty() { return Err(wrong("`cond` takes pairs, and the last test has no value")); }
            Ok(pairs.iter().rev().fold(Value::Nil, |otherwise, [test, then]| when(test.clone(), then.clone(), otherwise)))
        };
        "condp", 2, ANY, "(condp f value test then… default): the form whose test f accepts with the value.", condp;
        "case", 1, ANY, "(case value constant then… default): the form of a constant that is equal to the value.", case;
        "and", 0, ANY, "The first value that is not true, else the last one.", |e, f| Ok(chain(e, f, true));
        "or", 0, ANY, "The first value that is true, else the last one.", |e, f| Ok(chain(e, f, false));
        "assert", 1, 2, "Throws if a form is not true.", |_, f| {
            let text = format!("Assert failed: {}", crate::print::to_text(&f[0], true));
            let message = match f.get(1) {
                Some(more) => core("str", ["Assert failed: ".into(), more.clone(), Value::from(format!("\n{}", crate::print::to_text(&f[0], true)))]),
                None => Value::from(text),
            };
            Ok(when(f[0].clone(), Value::Nil, core(" throw-assert", [message])))
        };
        "comment", 0, ANY, "Nothing: the forms are not evaluated.", |_, _| Ok(Value::Nil);
    }
}

/// Tests a value and binds it to a pattern, which only the first branch sees.
fn tested(
    expansion: &Expansion<'_, '_>,
    bindings: &Value,
    some: bool,
    then: Value,
    otherwise: Value,
) -> Outcome {
    let pairs = pairs(bindings)?;
    let [[pattern, value]] = &*pairs else { return Err(wrong("one pair of a name and a test is needed")) };
    let name = expansion.unique("test");
    let test = if some { core("some?", [name.clone()]) } else { name.clone() };
    let then = bind(pattern.clone(), name.clone(), then);
    Ok(bind(name, value.clone(), when(test, then, otherwise)))
}

fn chain(expansion: &Expansion<'_, '_>, forms: &[Value], all: bool) -> Value {
    let Some((last, before)) = forms.split_last() else { return if all { true.into() } else { Value::Nil } };
    before.iter().rev().fold(last.clone(), |rest, form| {
        let name = expansion.unique("value");
        let (then, otherwise) = if all { (rest, name.clone()) } else { (name.clone(), rest) };
        bind(name.clone(), form.clone(), when(name, then, otherwise))
    })
}

fn condp(expansion: &mut Expansion<'_, '_>, forms: &[Value]) -> Outcome {
    let (function, value) = (expansion.unique("function"), expansion.unique("value"));
    let mut clauses = Vec::new();
    let mut rest = &forms[2..];
    let mut default = core(" throw-case", [value.clone()]);
    while let [test, more @ ..] = rest {
        rest = match more {
            [] => {
                default = test.clone();
                more
            }
            [Value::Keyword(arrow), then, after @ ..] if arrow == ">>" => {
                clauses.push((test.clone(), then.clone(), true));
                after
            }
            [then, after @ ..] => {
                clauses.push((test.clone(), then.clone(), false));
                after
            }
        };
    }
    let chosen = clauses.into_iter().rev().fold(default, |otherwise, (test, then, pass)| {
        let test = Value::list([function.clone(), test, value.clone()]);
        if !pass {
            return when(test, then, otherwise);
        }
        let result = expansion.unique("result");
        bind(result.clone(), test, when(result.clone(), Value::list([then, result]), otherwise))
    });
    Ok(bind(function, forms[0].clone(), bind(value, forms[1].clone(), chosen)))
}

fn case(expansion: &mut Expansion<'_, '_>, forms: &[Value]) -> Outcome {
    let value = expansion.unique("value");
    let (pairs, rest) = forms[1..].as_chunks::<2>();
    let default = rest.first().cloned().unwrap_or_else(|| core(" throw-case", [value.clone()]));
    let equal = |constant: &Value| core("=", [value.clone(), quote(constant.clone())]);
    let chosen = pairs.iter().rev().fold(default, |otherwise, [constant, then]| {
        let test = match constant {
            // A list has several constants.
            Value::List(list) => any_of(list.iter().map(equal).collect()),
            constant => equal(constant),
        };
        when(test, then.clone(), otherwise)
    });
    Ok(bind(value.clone(), forms[0].clone(), chosen))
}

fn any_of(tests: Vec<Value>) -> Value {
    tests.into_iter().rev().fold(Value::Bool(false), |rest, test| when(test, Value::Bool(true), rest))
}
