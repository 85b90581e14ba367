//! Macros that define: `defn`, `ns`, `declare`, `defmulti`.

use super::forms::{core, items, quote, special, wrong};
use crate::language::error::Outcome;
use crate::language::machine::{ANY, Expansion};
use crate::macros;
use crate::value::Value;

macros! {
    /// Definitions.
    pub MACROS = {
        "defn", 2, ANY, "(defn name doc? [parameters] body…): defines a function.", defn;
        "defn-", 2, ANY, "As `defn`.", defn;
        "declare", 0, ANY, "Names that are defined later.", |_, f| Ok(special("do", f.iter().map(|name| special("def", [name.clone()])).collect::<Vec<_>>()));
        "ns", 1, ANY, "(ns name (:require …) (:use …)): makes a namespace the current one.", ns;
        "import", 0, ANY, "Nothing: classes are found by their short names.", |_, _| Ok(Value::Nil);
        "defmulti", 2, ANY, "(defmulti name f): a function with a method for each value of f.", |_, f| {
            let rest: Vec<&Value> = f[1..].iter().filter(|form| !matches!(form, Value::Text(_))).collect();
            let Some(dispatch) = rest.first() else { return Err(wrong("`defmulti` takes a function")) };
            Ok(special("def", [f[0].clone(), core(" multimethod", [(*dispatch).clone(), quote(f[0].clone())])]))
        };
        "defmethod", 3, ANY, "(defmethod name value [parameters] body…): a method for a value.", |_, f| {
            Ok(core(" add-method", [f[0].clone(), f[1].clone(), special("fn", f[2..].iter().cloned())]))
        };
    }
}

fn defn(_: &mut Expansion<'_, '_>, forms: &[Value]) -> Outcome {
    let [name, rest @ ..] = forms else { return Ok(Value::Nil) };
    if name.as_symbol().is_none() {
        return Err(wrong("a function's name is needed first"));
    }
    let mut rest = rest;
    if let [Value::Text(_), more @ ..] = rest {
        rest = more;
    }
    if let [Value::Map(_), more @ ..] = rest
        && !more.is_empty()
    {
        rest = more;
    }
    // A map after the last body is about the function too.
    if let [before @ .., Value::Map(_)] = rest
        && before.first().is_some_and(|first| items(first).is_some())
    {
        rest = before;
    }
    let function = special("fn", std::iter::once(name.clone()).chain(rest.iter().cloned()));
    Ok(special("def", [name.clone(), function]))
}

fn ns(_: &mut Expansion<'_, '_>, forms: &[Value]) -> Outcome {
    let [name, clauses @ ..] = forms else { return Ok(Value::Nil) };
    let mut all = vec![core("in-ns", [quote(name.clone())])];
    for clause in clauses {
        let Some(parts) = items(clause) else { continue };
        let Some((head, specs)) = parts.split_first() else { continue };
        let function = match head {
            Value::Keyword(name) | Value::Text(name) => name.to_string(),
            Value::Symbol(symbol) => symbol.name.to_string(),
            _ => return Err(wrong("a clause of `ns` begins with a keyword")),
        };
        match function.as_str() {
            "require" | "use" | "refer" if !specs.is_empty() => {
                all.push(core(&function, specs.iter().map(|spec| quote(spec.clone())).collect::<Vec<_>>()));
            }
            "require" | "use" | "import" | "gen-class" | "refer-clojure" | "load" => {}
            other => return Err(wrong(&format!("`:{other}` is no clause of `ns`"))),
        }
    }
    all.push(Value::Nil);
    Ok(special("do", all))
}
