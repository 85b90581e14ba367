//! `fn` and `letfn`.

use std::sync::Arc;

use arcstr::ArcStr;

use super::analyzer::{Analyzer, MISTAKE};
use super::scope::Scope;
use crate::collections::vector::Vector;
use crate::form;
use crate::language::expr::{Body, Expr, Function, Functions, Group, Let, Make, Place};
use crate::symbol::Symbol;
use crate::value::Value;

impl Analyzer<'_, '_> {
    pub(super) fn fn_form(&mut self, forms: &[Value]) -> Expr {
        let (name, bodies) = match forms {
            [Value::Symbol(symbol), rest @ ..] => (Some(symbol.name.clone()), rest),
            rest => (None, rest),
        };
        self.scopes.push(Scope::of(vec![name.clone()]));
        let function = self.function(name, bodies);
        let captures = self.end_group();
        let Some(function) = function else { return MISTAKE };
        let group = Arc::new(Group { form: form::of_code(forms), functions: Box::new([function]) });
        Expr::Function(Box::new(Make { group, index: 0, captures }))
    }

    pub(super) fn letfn_form(&mut self, forms: &[Value], tail: bool) -> Expr {
        let Some(Value::Vector(specs)) = forms.first() else {
            return self.complain("`letfn` takes its functions in a vector");
        };
        let form = form::of_code(forms);
        let mut names = Vec::new();
        let mut bodies = Vec::new();
        for spec in specs.iter() {
            let items: Vec<Value> = match spec {
                Value::List(list) => list.iter().cloned().collect(),
                _ => Vec::new(),
            };
            let Some((Value::Symbol(symbol), rest)) = items.split_first() else {
                return self.complain("each function of `letfn` is a list with its name first");
            };
            names.push(symbol.name.clone());
            bodies.push(rest.to_vec());
        }
        let siblings = names.iter().cloned().map(Some).collect();
        self.scopes.push(Scope::of(siblings));
        let functions: Vec<Option<Function>> = names
            .iter()
            .zip(&bodies)
            .map(|(name, bodies)| self.function(Some(name.clone()), bodies))
            .collect();
        let captures = self.end_group();
        let Some(functions) = functions.into_iter().collect::<Option<Box<[Function]>>>() else {
            return MISTAKE;
        };
        let mark = self.mark();
        let slots = names.iter().map(|name| self.declare(name)).collect();
        let body = self.body(forms[1..].iter(), tail);
        self.back_to(mark);
        Expr::Functions(Box::new(Functions {
            group: Arc::new(Group { form, functions }),
            captures,
            slots,
            body,
        }))
    }

    /// Ends the innermost scope: what its closures capture.
    fn end_group(&mut self) -> Box<[Place]> {
        let scope = self.scopes.pop().unwrap_or_default();
        scope.captures.into_iter().map(|(_, place)| place).collect()
    }

    /// A function from one body or from several, each a list.
    fn function(&mut self, name: Option<ArcStr>, forms: &[Value]) -> Option<Function> {
        let mut bodies = Vec::new();
        if let [Value::Vector(parameters), body @ ..] = forms {
            bodies.push(self.function_body(parameters, body)?);
        } else {
            for form in forms {
                let items: Vec<Value> = match form {
                    Value::List(list) => list.iter().cloned().collect(),
                    _ => Vec::new(),
                };
                let [Value::Vector(parameters), body @ ..] = &*items else {
                    self.complain("a function takes its parameters in a vector");
                    return None;
                };
                bodies.push(self.function_body(parameters, body)?);
            }
        }
        if bodies.is_empty() {
            self.complain("a function needs a vector of parameters");
            return None;
        }
        // Bodies of a fixed number of arguments come before the one for the rest.
        bodies.sort_by_key(|body| body.rest);
        Some(Function { name, bodies: bodies.into() })
    }

    fn function_body(&mut self, parameters: &Vector<Value>, forms: &[Value]) -> Option<Body> {
        self.scope().begin_body();
        let (patterns, rest) = self.parameters(parameters)?;
        let mut slots = Vec::new();
        let mut prologue = Vec::new();
        let mut destructured = Vec::new();
        for pattern in patterns.iter().chain(&rest) {
            match pattern {
                Value::Symbol(symbol) => slots.push(self.declare(&symbol.name)),
                pattern => {
                    let slot = self.declare(&ArcStr::new());
                    slots.push(slot);
                    destructured.push((pattern, slot));
                }
            }
        }
        for (pattern, slot) in destructured {
            self.bind_pattern(pattern, Expr::Local(slot), &mut prologue);
        }
        self.scope().targets.push(slots);
        let forms = conditions(forms);
        let expr = self.body(forms.iter(), true);
        let expr = if prologue.is_empty() {
            expr
        } else {
            Expr::Let(Box::new(Let { bindings: prologue.into(), body: expr }))
        };
        let fixed = u32::try_from(patterns.len()).ok()?;
        Some(Body { fixed, rest: rest.is_some(), slots: self.scope().most_slots(), expr })
    }

    /// The patterns of the parameters, and that of the rest.
    fn parameters(&mut self, parameters: &Vector<Value>) -> Option<(Vec<Value>, Option<Value>)> {
        let is_rest = |form: &Value| matches!(form, Value::Symbol(symbol) if is_ampersand(symbol));
        let all: Vec<Value> = parameters.iter().cloned().collect();
        match all.iter().position(is_rest) {
            None => Some((all, None)),
            Some(index) if index + 2 == all.len() => Some((all[..index].to_vec(), all.last().cloned())),
            Some(_) => {
                self.complain("one name follows `&`, and nothing after it");
                None
            }
        }
    }
}

fn is_ampersand(symbol: &Symbol) -> bool {
    symbol.name == "&"
}

/// A body whose first form is a map of conditions, with assertions for those that must be true before.
fn conditions(forms: &[Value]) -> Vec<Value> {
    let [Value::Map(map), rest @ ..] = forms else { return forms.to_vec() };
    let (before, after) = (map.get(&Value::keyword("pre")), map.get(&Value::keyword("post")));
    if rest.is_empty() || before.or(after).is_none() {
        return forms.to_vec();
    }
    let asserted = |form: &Value| Value::list([Value::symbol("clojure.core/assert"), form.clone()]);
    let list = |value: Option<&Value>| match value {
        Some(Value::Vector(vector)) => vector.iter().map(asserted).collect(),
        _ => Vec::new(),
    };
    let mut all: Vec<Value> = list(before);
    let after = list(after);
    if after.is_empty() {
        all.extend(rest.iter().cloned());
        return all;
    }
    // The result is `%` in the conditions after.
    let body = Value::list(std::iter::once(Value::symbol("do")).chain(rest.iter().cloned()));
    let result = Value::symbol("%");
    let form = [Value::symbol("let"), Value::vector([result.clone(), body])];
    all.push(Value::list(form.into_iter().chain(after).chain([result])));
    all
}
