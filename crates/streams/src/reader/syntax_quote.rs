//! Syntax-quote: a form that builds the quoted form, with the holes filled.
//!
//! Symbols get the namespace that they have where they are written, so that a macro means the same wherever it is used;
//! `x#` becomes a name that nobody else has.

use std::collections::BTreeMap;

use arcstr::ArcStr;

use super::names::Names;
use crate::value::Value;

/// What `~x` is read as.
pub(super) const UNQUOTE: &str = "clojure.core/unquote";
/// What `~@x` is read as.
pub(super) const UNQUOTE_SPLICING: &str = "clojure.core/unquote-splicing";

/// The form that builds a quoted form.
pub(super) fn expand(form: &Value, names: &dyn Names) -> Value {
    Expansion { names, generated: BTreeMap::new() }.form(form)
}

struct Expansion<'n> {
    names: &'n dyn Names,
    generated: BTreeMap<String, ArcStr>,
}

impl Expansion<'_> {
    // The reader limits how deep forms are, and so this recursion.
    fn form(&mut self, form: &Value) -> Value {
        match form {
            Value::Symbol(symbol) => call("quote", [Value::symbol(&self.name(&symbol.name))]),
            Value::List(list) => {
                if let Some(inner) = hole(form, UNQUOTE) {
                    return inner;
                }
                if list.is_empty() {
                    return call("clojure.core/list", []);
                }
                let joined = self.joined(list.iter());
                // A list, not a lazy sequence: the form is to be read as code.
                call("clojure.core/apply", [Value::symbol("clojure.core/list"), joined])
            }
            Value::Vector(vector) => {
                let joined = self.joined(vector.iter());
                call("clojure.core/vec", [joined])
            }
            Value::Set(set) => {
                let joined = self.joined(set.iter());
                call("clojure.core/set", [joined])
            }
            Value::Map(map) => {
                let joined = self.joined(map.iter().flat_map(|(key, value)| [key, value]));
                call("clojure.core/apply", [Value::symbol("clojure.core/array-map"), joined])
            }
            other => other.clone(),
        }
    }

    fn joined<'v>(&mut self, items: impl Iterator<Item = &'v Value>) -> Value {
        let mut parts = Vec::new();
        for item in items {
            parts.push(match hole(item, UNQUOTE_SPLICING) {
                Some(inner) => inner,
                None => {
                    let item = self.form(item);
                    call("clojure.core/list", [item])
                }
            });
        }
        call("clojure.core/concat", parts)
    }

    fn name(&mut self, name: &ArcStr) -> ArcStr {
        match name.strip_suffix('#') {
            Some(stem) if !stem.is_empty() && !name.contains('/') => {
                let names = self.names;
                let make = || arcstr::format!("{stem}__{}__auto__", names.unique());
                self.generated.entry(stem.to_owned()).or_insert_with(make).clone()
            }
            _ => self.names.qualify(name),
        }
    }
}

/// The argument of `(name x)`.
fn hole(form: &Value, name: &str) -> Option<Value> {
    let Value::List(list) = form else { return None };
    let mut items = list.iter();
    let head = items.next()?.as_symbol()?;
    if head != name {
        return None;
    }
    items.next().cloned()
}

fn call(name: &str, arguments: impl IntoIterator<Item = Value>) -> Value {
    Value::list(std::iter::once(Value::symbol(name)).chain(arguments))
}
