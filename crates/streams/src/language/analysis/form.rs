//! Any form: constants, collections, calls, and the expansion of macros.

use std::sync::Arc;

use arcstr::ArcStr;

use super::analyzer::{Analyzer, MISTAKE};
use super::meaning::Meaning;
use super::scope::Scope;
use super::special;
use crate::collections::list::List;
use crate::event::Field;
use crate::language::error::EvalError;
use crate::language::expr::{Call, Expr, NativeCall};
use crate::language::machine::{Expansion, code, macro_code};
use crate::position::Position;
use crate::value::Value;

/// Most forms around a form, after expansion.
const DEPTH_MAX: u32 = 200;

impl Analyzer<'_, '_> {
    /// Expands the macros at the head of a form until there is none.
    pub(in crate::language) fn expand_all(&mut self, form: &Value) -> Value {
        let mut form = form.clone();
        while let Some(expanded) = self.expand_once(&form) {
            form = expanded;
        }
        form
    }

    /// The expression of a form at the top level, and how many slots its frame needs.
    pub(in crate::language) fn top_level(&mut self, form: &Value) -> (Expr, u32) {
        self.scopes = vec![Scope::default()];
        let expr = self.form(form, false);
        (expr, self.scope().most_slots())
    }

    /// The expression of a form; `tail` says whether its value is that of the loop or function around it.
    pub(super) fn form(&mut self, form: &Value, tail: bool) -> Expr {
        if self.depth == DEPTH_MAX || self.machine.budget.check_analysis().is_err() {
            return self.mistake(&Position::default(), "forms are too deep within each other", None);
        }
        self.depth += 1;
        let expr = match form {
            Value::Symbol(symbol) => self.symbol(&symbol.name, &symbol.at),
            Value::List(list) if !list.is_empty() => {
                let outer = self.at.clone();
                if list.at.is_known() {
                    self.at = list.at.clone();
                }
                let expr = self.list(form, list, tail);
                self.at = outer;
                expr
            }
            Value::Vector(vector) => {
                let items = self.forms(vector.iter());
                match constants(&items) {
                    Some(constants) => Expr::Constant(Value::vector(constants)),
                    None => Expr::Vector(items.into()),
                }
            }
            Value::Set(set) => {
                let items = self.forms(set.iter());
                // Two values that turn out equal are an error when the set is made.
                match constants(&items).filter(|constants| all_different(constants)) {
                    Some(constants) => Expr::Constant(Value::set(constants)),
                    None => Expr::Set(items.into()),
                }
            }
            Value::Map(map) => {
                let (keys, values): (Vec<&Value>, Vec<&Value>) = map.iter().unzip();
                let (keys, values) = (self.forms(keys.into_iter()), self.forms(values.into_iter()));
                match (constants(&keys).filter(|keys| all_different(keys)), constants(&values)) {
                    (Some(keys), Some(values)) => Expr::Constant(Value::map(keys.into_iter().zip(values))),
                    _ => Expr::Map(keys.into_iter().zip(values).collect()),
                }
            }
            other => Expr::Constant(other.clone()),
        };
        self.depth -= 1;
        expr
    }

    pub(super) fn forms<'f>(&mut self, forms: impl Iterator<Item = &'f Value>) -> Vec<Expr> {
        forms.map(|form| self.form(form, false)).collect()
    }

    /// Several forms, the last of which has the value.
    pub(super) fn body<'f>(&mut self, forms: impl Iterator<Item = &'f Value>, tail: bool) -> Expr {
        let forms: Vec<&Value> = forms.collect();
        let Some((last, before)) = forms.split_last() else { return Expr::Constant(Value::Nil) };
        let mut parts = self.forms(before.iter().copied());
        parts.push(self.form(last, tail));
        match parts.pop() {
            Some(only) if parts.is_empty() => only,
            last => {
                parts.extend(last);
                Expr::Do(parts.into())
            }
        }
    }

    fn list(&mut self, form: &Value, list: &Arc<List<Value>>, tail: bool) -> Expr {
        let Some(head) = list.first() else { return Expr::Constant(form.clone()) };
        if let Value::Symbol(symbol) = head {
            let is_local = self.place(&symbol.name).is_some();
            if !is_local {
                if let Some(special) = special::find(&symbol.name) {
                    let rest: Vec<Value> = list.iter().skip(1).cloned().collect();
                    return special(self, &rest, tail);
                }
                if let Some(expr) = self.java_form(&symbol.name, &symbol.at, list) {
                    return expr;
                }
                let mistakes = self.diagnostics.len();
                if let Some(expanded) = self.expand_once(form) {
                    if self.diagnostics.len() > mistakes {
                        return MISTAKE;
                    }
                    return self.form(&expanded, tail);
                }
            }
        }
        self.call(head, list)
    }

    fn call(&mut self, head: &Value, list: &List<Value>) -> Expr {
        let function = self.form(head, false);
        let arguments = self.forms(list.iter().skip(1));
        let at = self.at.clone();
        match (&function, &*arguments) {
            (Expr::Constant(Value::Native(native)), _) if native.arity.takes(arguments.len()) => {
                if let Some(run) = code(native) {
                    return Expr::Native(Box::new(NativeCall { run, arguments: arguments.into(), at }));
                }
            }
            (Expr::Constant(Value::Keyword(name)), [_]) => {
                let Some(argument) = arguments.into_iter().next() else { return MISTAKE };
                return match Field::of(name) {
                    Some(field) => Expr::Field(Box::new((field, argument))),
                    None => Expr::Lookup(Box::new((Value::Keyword(name.clone()), argument))),
                };
            }
            _ => {}
        }
        Expr::Call(Box::new(Call { function, arguments: arguments.into(), at }))
    }

    /// The call of a function of `clojure.core`.
    pub(super) fn core_call(&mut self, name: &str, arguments: Vec<Expr>) -> Expr {
        let at = self.at.clone();
        match self.meaning(&arcstr::format!("clojure.core/{name}")) {
            Ok(Meaning::Native(native)) => match code(native) {
                Some(run) => Expr::Native(Box::new(NativeCall { run, arguments: arguments.into(), at })),
                None => MISTAKE,
            },
            _ => self.mistake(&at, format!("this program has no `{name}`"), None),
        }
    }

    /// What a macro at the head of a form makes of it; `None` if there is none.
    pub(in crate::language) fn expand_once(&mut self, form: &Value) -> Option<Value> {
        let Value::List(list) = form else { return None };
        let Some(Value::Symbol(symbol)) = list.first() else { return None };
        if special::find(&symbol.name).is_some() || self.place(&symbol.name).is_some() {
            return None;
        }
        let mut rest: Vec<Value> = list.iter().skip(1).cloned().collect();
        let result = match self.meaning(&symbol.name).ok()? {
            Meaning::Macro(native) => {
                if !native.arity.takes(rest.len()) {
                    let message = format!("`{}` does not take {} forms", native.name, rest.len());
                    self.mistake(&symbol.at, message, Some(native.doc.to_owned()));
                    return Some(Value::Nil);
                }
                let locals = self.local_names();
                let at = if list.at.is_known() { list.at.clone() } else { self.at.clone() };
                let mut expansion = Expansion { machine: self.machine, at, locals: &locals };
                macro_code(native)?(&mut expansion, &rest)
            }
            Meaning::Var(var) if var.is_macro() => {
                let function = var.get().unwrap_or_default();
                self.machine.call(&function, &mut rest).and_then(|form| self.machine.realize(&form))
            }
            Meaning::Var(_) | Meaning::Native(_) | Meaning::Constant(_) => return None,
        };
        Some(self.expanded(result, &symbol.name, list))
    }

    fn expanded(&mut self, result: Result<Value, EvalError>, name: &ArcStr, list: &List<Value>) -> Value {
        match result {
            // What a macro made stands where it was used.
            Ok(Value::List(made)) if !made.at.is_known() => {
                let mut made = (*made).clone();
                made.at = list.at.clone();
                Value::List(Arc::new(made))
            }
            Ok(form) => form,
            Err(error) => {
                self.mistake(&list.at, format!("`{name}`: {error}"), None);
                Value::Nil
            }
        }
    }
}

/// The values of expressions that are all constants.
fn constants(exprs: &[Expr]) -> Option<Vec<Value>> {
    let constant = |expr: &Expr| match expr {
        Expr::Constant(value) => Some(value.clone()),
        _ => None,
    };
    exprs.iter().map(constant).collect()
}

fn all_different(values: &[Value]) -> bool {
    let set: crate::collections::set::Set<Value> = values.iter().cloned().collect();
    set.len() == values.len()
}
