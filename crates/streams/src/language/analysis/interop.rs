//! What looks like Java: `(.method x)`, `(Class. x)`, `(new Class x)`, `(. x method)`. Static methods are names like any
//! other: `(Math/floor x)`.
//!
//! Methods are functions of the namespace [`METHODS`], constructors of [`CONSTRUCTORS`].

use arcstr::ArcStr;

use super::analyzer::{Analyzer, MISTAKE};
use super::meaning::Meaning;
use crate::collections::list::List;
use crate::language::diagnostic::nearest;
use crate::language::expr::Expr;
use crate::language::interop::{CONSTRUCTORS, METHODS};
use crate::object::class;
use crate::position::Position;
use crate::value::Value;

impl Analyzer<'_, '_> {
    /// The expression of a list whose head is `.method` or `Class.`; `None` for any other.
    pub(super) fn java_form(&mut self, name: &ArcStr, at: &Position, list: &List<Value>) -> Option<Expr> {
        if name.len() < 2 || name.contains('/') {
            return None;
        }
        let rest: Vec<Value> = list.iter().skip(1).cloned().collect();
        if let Some(method) = name.strip_prefix('.').filter(|method| !method.starts_with('.')) {
            return Some(self.method(method, at, &rest));
        }
        let class = name.strip_suffix('.')?;
        Some(self.constructor(&Value::symbol(class), at, &rest))
    }

    pub(super) fn new_form(&mut self, forms: &[Value]) -> Expr {
        match forms {
            [class, rest @ ..] => self.constructor(class, &Position::default(), rest),
            [] => self.complain("`new` takes a class"),
        }
    }

    pub(super) fn dot_form(&mut self, forms: &[Value]) -> Expr {
        match forms {
            [target, Value::Symbol(method), rest @ ..] => {
                let forms: Vec<Value> = std::iter::once(target).chain(rest).cloned().collect();
                self.method(&method.name, &method.at, &forms)
            }
            [target, Value::List(call)] => {
                let Some(Value::Symbol(method)) = call.first() else {
                    return self.complain("a method's name is needed");
                };
                let forms: Vec<Value> = std::iter::once(target).chain(call.iter().skip(1)).cloned().collect();
                self.method(&method.name, &method.at, &forms)
            }
            _ => self.complain("`.` takes a value and a method"),
        }
    }

    fn method(&mut self, method: &str, at: &Position, forms: &[Value]) -> Expr {
        // `.-field` reads a field.
        let method = method.strip_prefix('-').unwrap_or(method);
        if forms.is_empty() {
            return self.mistake(at, format!("`.{method}` needs the value that it is called on"), None);
        }
        let found = self.meaning(&format!("{METHODS}/{method}"));
        let Ok(Meaning::Native(native)) = found else {
            let namespaces = self.machine.world.namespaces();
            let known = namespaces.get(METHODS).map(|space| space.names.keys());
            let near = nearest(method, known.into_iter().flatten().map(|name| &**name)).map(str::to_owned);
            drop(namespaces);
            let hint = near.map(|near| format!("did you mean `.{near}`?"));
            let hint = hint.or_else(|| {
                Some("only methods of texts, numbers, dates and exceptions are known".to_owned())
            });
            return self.mistake(at, format!("there is no method `.{method}`"), hint);
        };
        let [target, rest @ ..] = forms else { return MISTAKE };
        let target = self.form(target, false);
        let target = self.core_call(" target", vec![target, Expr::Constant(Value::text(method))]);
        self.apply_native(native, vec![target], rest)
    }

    fn constructor(&mut self, class: &Value, at: &Position, forms: &[Value]) -> Expr {
        let Some(found) = self.class(class) else { return MISTAKE };
        if found.is_a(&class::THROWABLE) {
            let Ok(Meaning::Native(native)) = self.meaning(&format!("{CONSTRUCTORS}/Throwable")) else {
                return MISTAKE;
            };
            return self.apply_native(native, vec![Expr::Constant(Value::Class(found))], forms);
        }
        match self.meaning(&format!("{CONSTRUCTORS}/{}", found.short_name())) {
            Ok(Meaning::Native(native)) => self.apply_native(native, Vec::new(), forms),
            _ => self.mistake(at, format!("a `{}` cannot be made here", found.name), None),
        }
    }

    fn apply_native(
        &mut self,
        native: &'static crate::function::Native,
        mut arguments: Vec<Expr>,
        forms: &[Value],
    ) -> Expr {
        arguments.extend(self.forms(forms.iter()));
        let function = Expr::Constant(Value::Native(native));
        let at = self.at.clone();
        match crate::language::machine::code(native).filter(|_| native.arity.takes(arguments.len())) {
            Some(run) => {
                let arguments = arguments.into();
                Expr::Native(Box::new(crate::language::expr::NativeCall { run, arguments, at }))
            }
            None => {
                let arguments = arguments.into();
                Expr::Call(Box::new(crate::language::expr::Call { function, arguments, at }))
            }
        }
    }
}
