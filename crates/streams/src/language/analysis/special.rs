//! The special forms other than functions and `try`.

use arcstr::ArcStr;

use super::analyzer::{Analyzer, MISTAKE};
use crate::language::expr::{Binding, Define, Expr, Let, Recur};
use crate::symbol::split_name;
use crate::value::Value;

/// A special form's analysis: the forms after its name, and whether it is in tail position.
pub(super) type Special = fn(&mut Analyzer<'_, '_>, &[Value], bool) -> Expr;

/// Their names, for suggestions.
pub(in crate::language) const NAMES: &[&str] = &[
    "def",
    "defmacro",
    "defonce",
    "if",
    "do",
    "let",
    "fn",
    "loop",
    "recur",
    "quote",
    "var",
    "try",
    "throw",
    "letfn",
    "binding",
    "with-redefs",
    "new",
];

/// The special form of a name, also with `clojure.core/` before it.
pub(super) fn find(name: &str) -> Option<Special> {
    let name = match split_name(name) {
        (None, name) | (Some("clojure.core"), name) => name,
        (Some(_), _) => return None,
    };
    Some(match name {
        "quote" => |analyzer, forms, _| analyzer.one(forms, "quote").map_or(MISTAKE, Expr::Constant),
        "if" => |analyzer, forms, tail| analyzer.if_form(forms, tail),
        "do" => |analyzer, forms, tail| analyzer.body(forms.iter(), tail),
        "let" | "let*" => |analyzer, forms, tail| analyzer.let_form(forms, tail),
        "loop" | "loop*" => |analyzer, forms, _| analyzer.loop_form(forms),
        "recur" => |analyzer, forms, tail| analyzer.recur_form(forms, tail),
        "fn" | "fn*" => |analyzer, forms, _| analyzer.fn_form(forms),
        "letfn" | "letfn*" => |analyzer, forms, tail| analyzer.letfn_form(forms, tail),
        "def" => |analyzer, forms, _| analyzer.def_form(forms, false, false),
        "defonce" => |analyzer, forms, _| analyzer.def_form(forms, false, true),
        "defmacro" => |analyzer, forms, _| analyzer.defmacro_form(forms),
        "var" => |analyzer, forms, _| match analyzer.one(forms, "var") {
            Some(form) => analyzer.quoted_var(&form),
            None => MISTAKE,
        },
        "throw" => |analyzer, forms, _| match analyzer.one(forms, "throw") {
            Some(form) => {
                let at = analyzer.at.clone();
                Expr::Throw(Box::new((analyzer.form(&form, false), at)))
            }
            None => MISTAKE,
        },
        "try" => |analyzer, forms, _| analyzer.try_form(forms),
        "binding" => |analyzer, forms, _| analyzer.binding_form(forms, false),
        "with-redefs" => |analyzer, forms, _| analyzer.binding_form(forms, true),
        "catch" | "finally" => |analyzer, _, _| analyzer.complain("it is only allowed in `try`"),
        "new" => |analyzer, forms, _| analyzer.new_form(forms),
        "." => |analyzer, forms, _| analyzer.dot_form(forms),
        _ => return None,
    })
}

impl Analyzer<'_, '_> {
    /// The only form after a name.
    fn one(&mut self, forms: &[Value], name: &str) -> Option<Value> {
        match forms {
            [only] => Some(only.clone()),
            _ => {
                self.complain(&format!("`{name}` takes one form, and here are {}", forms.len()));
                None
            }
        }
    }

    fn if_form(&mut self, forms: &[Value], tail: bool) -> Expr {
        let (test, then, otherwise) = match forms {
            [test, then] => (test, then, &Value::Nil),
            [test, then, otherwise] => (test, then, otherwise),
            _ => return self.complain("`if` takes a test and one or two forms"),
        };
        let parts = [self.form(test, false), self.form(then, tail), self.form(otherwise, tail)];
        Expr::If(Box::new(parts))
    }

    /// The bindings of `let` or `loop`, as slots and values.
    fn bindings(&mut self, forms: &[Value], name: &str) -> Option<Vec<(u32, Expr)>> {
        let Some(Value::Vector(vector)) = forms.first() else {
            self.complain(&format!("`{name}` takes its bindings in a vector"));
            return None;
        };
        if vector.len() % 2 == 1 {
            self.complain(&format!("the bindings of `{name}` are pairs, and one has no value"));
            return None;
        }
        let items: Vec<&Value> = vector.iter().collect();
        let (pairs, _) = items.as_chunks::<2>();
        let mut bindings = Vec::new();
        for [pattern, value] in pairs {
            let value = self.form(value, false);
            self.bind_pattern(pattern, value, &mut bindings);
        }
        Some(bindings)
    }

    fn let_form(&mut self, forms: &[Value], tail: bool) -> Expr {
        let mark = self.mark();
        let Some(bindings) = self.bindings(forms, "let") else { return MISTAKE };
        let body = self.body(forms[1..].iter(), tail);
        self.back_to(mark);
        Expr::Let(Box::new(Let { bindings: bindings.into(), body }))
    }

    /// A loop's values have slots of their own, and patterns are bound from them in each turn.
    fn loop_form(&mut self, forms: &[Value]) -> Expr {
        let mark = self.mark();
        let Some(Value::Vector(vector)) = forms.first() else {
            return self.complain("`loop` takes its bindings in a vector");
        };
        if vector.len() % 2 == 1 {
            return self.complain("the bindings of `loop` are pairs, and one has no value");
        }
        let items: Vec<&Value> = vector.iter().collect();
        let (pairs, _) = items.as_chunks::<2>();
        let (mut bindings, mut inner, mut slots) = (Vec::new(), Vec::new(), Vec::new());
        for [pattern, value] in pairs {
            let value = self.form(value, false);
            match pattern {
                Value::Symbol(symbol) => {
                    let slot = self.declare(&symbol.name);
                    bindings.push((slot, value));
                    slots.push(slot);
                }
                pattern => {
                    let slot = self.declare(&ArcStr::new());
                    bindings.push((slot, value));
                    slots.push(slot);
                    // Later values of the bindings see the names of the pattern.
                    let mut first = Vec::new();
                    self.bind_pattern(pattern, Expr::Local(slot), &mut first);
                    bindings.append(&mut first);
                    self.bind_pattern(pattern, Expr::Local(slot), &mut inner);
                }
            }
        }
        self.scope().targets.push(slots);
        let body = self.body(forms[1..].iter(), true);
        self.scope().targets.pop();
        self.back_to(mark);
        let body =
            if inner.is_empty() { body } else { Expr::Let(Box::new(Let { bindings: inner.into(), body })) };
        Expr::Loop(Box::new(Let { bindings: bindings.into(), body }))
    }

    fn recur_form(&mut self, forms: &[Value], tail: bool) -> Expr {
        if !tail {
            return self.complain("`recur` only stands where the value of its loop or function is made");
        }
        let Some(slots) = self.scope().targets.last().cloned() else {
            return self.complain("`recur` without a loop or function around it");
        };
        if slots.len() != forms.len() {
            let message = format!(
                "`recur` gives {} values, and its loop or function takes {}",
                forms.len(),
                slots.len()
            );
            return self.complain(&message);
        }
        let values = self.forms(forms.iter());
        Expr::Recur(Box::new(Recur { slots: slots.into(), values: values.into() }))
    }

    pub(super) fn def_form(&mut self, forms: &[Value], is_macro: bool, once: bool) -> Expr {
        let (name, value) = match forms {
            [name] => (name, None),
            [name, value] | [name, Value::Text(_), value] => (name, Some(value)),
            _ => return self.complain("`def` takes a name, perhaps a text that explains it, and a value"),
        };
        let Value::Symbol(symbol) = name else { return self.complain("`def` takes a name first") };
        let name = match split_name(&symbol.name) {
            (None, _) => symbol.name.clone(),
            (Some(space), name) if space == self.machine.namespace => ArcStr::from(name),
            (Some(_), _) => {
                let message = format!("`{}` is a name of another namespace", symbol.name);
                return self.mistake(&symbol.at, message, None);
            }
        };
        let namespace = self.machine.namespace.clone();
        let var = self.machine.world.intern(&namespace, &name);
        if symbol.dynamic {
            var.make_dynamic();
        }
        let value = value.map(|value| self.form(value, false));
        Expr::Define(Box::new(Define { var, value, is_macro, once }))
    }

    fn defmacro_form(&mut self, forms: &[Value]) -> Expr {
        let [name, rest @ ..] = forms else { return self.complain("`defmacro` takes a name first") };
        let rest = without_docs(rest);
        let function =
            Value::list([Value::symbol("fn"), name.clone()].into_iter().chain(rest.iter().cloned()));
        self.def_form(&[name.clone(), function], true, false)
    }

    fn binding_form(&mut self, forms: &[Value], redefine: bool) -> Expr {
        let at = self.at.clone();
        let Some(Value::Vector(vector)) =
            forms.first().filter(|form| matches!(form, Value::Vector(v) if v.len() % 2 == 0))
        else {
            return self.complain("the bindings are a vector of pairs");
        };
        let items: Vec<&Value> = vector.iter().collect();
        let (pairs, _) = items.as_chunks::<2>();
        let mut vars = Vec::new();
        for [name, value] in pairs {
            let value = self.form(value, false);
            match self.var(name) {
                Ok(var) => vars.push((var, value)),
                Err(mistake) => return mistake,
            }
        }
        let body = self.body(forms[1..].iter(), false);
        Expr::Binding(Box::new(Binding { vars: vars.into(), body, at, redefine }))
    }
}

/// The forms of `defn` or `defmacro` after the name, without its text and its map.
pub(super) fn without_docs(mut forms: &[Value]) -> &[Value] {
    if let [Value::Text(_), rest @ ..] = forms {
        forms = rest;
    }
    if let [Value::Map(_), rest @ ..] = forms
        && !rest.is_empty()
    {
        forms = rest;
    }
    forms
}
