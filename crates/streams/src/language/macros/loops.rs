//! Macros that repeat: `doseq`, `for`, `dotimes`, `while`.

use super::forms::{bind, body, core, function, pairs, special, when, wrong};
use crate::language::error::Outcome;
use crate::language::machine::ANY;
use crate::macros;
use crate::value::Value;

macros! {
    /// Loops.
    pub MACROS = {
        "doseq", 1, ANY, "(doseq [name values…] body…): the body for each value; nil.", |_, f| {
            nested(&pairs(&f[0])?, body(&f[1..]), &|parameter, inner, values| core("run!", [function([parameter], inner), values]))
        };
        "for", 2, 2, "(for [name values… :when test :let [name value] :while test] form): the form's value for each value.", |_, f| {
            let one = core("list", [f[1].clone()]);
            nested(&pairs(&f[0])?, one, &|parameter, inner, values| core("mapcat", [function([parameter], inner), values]))
        };
        "dotimes", 1, ANY, "(dotimes [name count] body…): the body for 0 up to, but without, the count.", |e, f| {
            let [[name, count]] = &*pairs(&f[0])? else { return Err(wrong("`dotimes` takes one pair")) };
            let end = e.unique("end");
            let again = special("recur", [core("inc", [name.clone()])]);
            let turn = special("do", [body(&f[1..]), again]);
            let turns = when(core("<", [name.clone(), end.clone()]), turn, Value::Nil);
            let turns = special("loop", [Value::vector([name.clone(), Value::from(0_i64)]), turns]);
            Ok(bind(end, core("long", [count.clone()]), turns))
        };
        "while", 1, ANY, "(while test body…): the body as long as the test is true; nil.", |_, f| {
            let turn = special("do", [body(&f[1..]), special("recur", [])]);
            Ok(special("loop", [Value::vector([]), when(f[0].clone(), turn, Value::Nil)]))
        };
    }
}

/// What goes through values: from a parameter, what is done with it, and the values.
type Through<'t> = &'t dyn Fn(Value, Value, Value) -> Value;

/// The loops of bindings, around an innermost form.
fn nested(pairs: &[[Value; 2]], inner: Value, through: Through<'_>) -> Outcome {
    let Some(([name, values], rest)) = pairs.split_first() else { return Ok(inner) };
    if matches!(name, Value::Keyword(_)) {
        return Err(wrong("a name and its values come before `:when`, `:let` and `:while`"));
    }
    let is_modifier = |[name, _]: &[Value; 2]| matches!(name, Value::Keyword(_));
    let end = rest.iter().position(|pair| !is_modifier(pair)).unwrap_or(rest.len());
    let (modifiers, outer) = rest.split_at(end);
    let mut form = nested(outer, inner, through)?;
    let mut values = values.clone();
    for (index, [modifier, argument]) in modifiers.iter().enumerate().rev() {
        let Value::Keyword(modifier) = modifier else { continue };
        form = match modifier.as_str() {
            "let" => special("let", [argument.clone(), form]),
            "when" => when(argument.clone(), form, Value::Nil),
            "while" => {
                let test = whether(&modifiers[..index], argument.clone());
                values = core("take-while", [function([name.clone()], test), values]);
                form
            }
            other => return Err(wrong(&format!("`:{other}` is not `:when`, `:let` or `:while`"))),
        };
    }
    Ok(through(name.clone(), form, values))
}

/// A test of `:while`, with what stands before it.
fn whether(before: &[[Value; 2]], test: Value) -> Value {
    before.iter().rev().fold(test, |test, [modifier, argument]| match modifier {
        Value::Keyword(name) if name == "let" => special("let", [argument.clone(), test]),
        Value::Keyword(name) if name == "when" => when(argument.clone(), test, Value::Bool(true)),
        _ => when(argument.clone(), test, Value::Bool(false)),
    })
}
