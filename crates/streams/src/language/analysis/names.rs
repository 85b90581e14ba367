//! What a symbol means, and what to suggest for one that means nothing.

use std::sync::Arc;

use arcstr::ArcStr;

use super::analyzer::{Analyzer, MISTAKE};
use super::meaning::{Meaning, Unknown};
use crate::event::Field;
use crate::language::diagnostic::nearest;
use crate::language::expr::{Expr, Global};
use crate::language::namespace::Named;
use crate::language::refused;
use crate::object::class;
use crate::object::reference::Var;
use crate::position::Position;
use crate::symbol::split_name;
use crate::value::Value;

impl Analyzer<'_, '_> {
    /// The expression of a symbol.
    pub(super) fn symbol(&mut self, name: &ArcStr, at: &Position) -> Expr {
        if let Some(local) = self.place(name) {
            return local;
        }
        if name == "*ns*" || name == "clojure.core/*ns*" {
            return self.core_call(" current-namespace", Vec::new());
        }
        match self.meaning(name) {
            Ok(Meaning::Native(native)) => Expr::Constant(Value::Native(native)),
            Ok(Meaning::Constant(value)) => Expr::Constant(value),
            Ok(Meaning::Var(var)) if !var.is_macro() => {
                let at = if at.is_known() { at.clone() } else { self.at.clone() };
                Expr::Global(Box::new(Global { var, at }))
            }
            Ok(Meaning::Macro(_) | Meaning::Var(_)) => {
                let hint = format!("write a function around it: `#({name} …)`");
                self.mistake(at, format!("`{name}` is a macro, which is no value"), Some(hint))
            }
            Err(unknown) => self.unknown(name, at, &unknown),
        }
    }

    /// What a global name means in the current namespace.
    pub(super) fn meaning(&self, name: &str) -> Result<Meaning, Unknown> {
        let namespaces = self.machine.world.namespaces();
        let current = &self.machine.namespace;
        let found = match split_name(name) {
            (None, name) => namespaces.find(current, name).ok_or(Unknown::Name),
            (Some(space), name) => {
                let own = |space: &str| namespaces.get(space).map(|space| space.names.get(name));
                let full = namespaces.full_name(current, space);
                match full.and_then(|space| own(&space)) {
                    Some(found) => found.ok_or(Unknown::Name),
                    None => match class::find(space).and_then(|class| own(class.short_name())) {
                        Some(found) => found.ok_or(Unknown::Name),
                        None => Err(Unknown::Space(ArcStr::from(space))),
                    },
                }
            }
        };
        match found {
            Ok(Named { entry, .. }) => Ok(entry.clone().into()),
            Err(unknown) => match class::find(name) {
                Some(class) if split_name(name).0.is_none() => Ok(Meaning::Constant(Value::Class(class))),
                _ => Err(unknown),
            },
        }
    }

    fn unknown(&mut self, name: &ArcStr, at: &Position, unknown: &Unknown) -> Expr {
        match unknown {
            Unknown::Space(space) => {
                let namespaces = self.machine.world.namespaces();
                let aliases = namespaces.get(&self.machine.namespace).map(|space| space.aliases.keys());
                let names = namespaces.names().chain(aliases.into_iter().flatten()).map(|name| &**name);
                let near =
                    nearest(space, names.filter(|name| !name.starts_with(['.', ' ']))).map(str::to_owned);
                drop(namespaces);
                let hint = near.map(|near| format!("did you mean `{near}`?"));
                let hint = hint.or_else(|| Some("`require` or an alias for it may be missing".to_owned()));
                self.mistake(at, format!("there is no namespace or class `{space}` for `{name}`"), hint)
            }
            // In a `where` that is misspelt, fields are no mistakes.
            Unknown::Name if !self.diagnostics.is_empty() && Field::of(name).is_some() => MISTAKE,
            Unknown::Name => {
                if let Some(why) = refused::why(name) {
                    return self.mistake(at, format!("`{name}` is not available: {why}"), None);
                }
                let hint = match name.as_str() {
                    "email" => Some("define it: `(def email (mailer {:host \"…\" :from \"…\"}))`".to_owned()),
                    _ => self.suggest(name).map(|near| format!("did you mean `{near}`?")),
                };
                self.mistake(at, format!("`{name}` is not defined"), hint)
            }
        }
    }

    /// The nearest name that has a meaning.
    fn suggest(&self, name: &str) -> Option<String> {
        let (space, short) = split_name(name);
        let locals = if space.is_none() { self.local_names() } else { Vec::new() };
        // In an expression of `where` and its relatives, fields of the event come first.
        let fields = Field::ALL
            .iter()
            .map(|field| field.name())
            .filter(|_| locals.iter().any(|local| local == "event"));
        if let Some(field) = nearest(short, fields) {
            return Some(field.to_owned());
        }
        let namespaces = self.machine.world.namespaces();
        let current = &self.machine.namespace;
        let spaces: Vec<ArcStr> = match space {
            None => vec![current.clone(), arcstr::literal!("clojure.core")],
            Some(space) => {
                let class = class::find(space).map(|class| ArcStr::from(class.short_name()));
                namespaces.full_name(current, space).or(class).into_iter().collect()
            }
        };
        let names =
            spaces.iter().filter_map(|space| namespaces.get(space)).flat_map(|space| space.names.keys());
        let names = names.chain(&locals).map(|name| &**name).filter(|name| !name.starts_with(' '));
        let specials = super::special::NAMES.iter().copied().filter(|_| space.is_none());
        let near = nearest(short, names.chain(specials))?;
        Some(space.map_or_else(|| near.to_owned(), |space| format!("{space}/{near}")))
    }

    /// The var of a symbol that is to be bound or quoted.
    pub(super) fn var(&mut self, form: &Value) -> Result<Arc<Var<Value>>, Expr> {
        let Value::Symbol(symbol) = form else {
            let text = crate::print::to_text(form, true);
            return Err(self.mistake(&Position::default(), format!("`{text}` is no name of a var"), None));
        };
        match self.meaning(&symbol.name) {
            Ok(Meaning::Var(var)) => Ok(var),
            Ok(Meaning::Native(_) | Meaning::Macro(_) | Meaning::Constant(_)) => {
                let message = format!("`{}` is built in and cannot be bound", symbol.name);
                Err(self.mistake(&symbol.at, message, None))
            }
            Err(unknown) => Err(self.unknown(&symbol.name, &symbol.at, &unknown)),
        }
    }

    /// `(var x)`: functions of ours are values themselves.
    pub(super) fn quoted_var(&mut self, form: &Value) -> Expr {
        if let Value::Symbol(symbol) = form
            && let Ok(Meaning::Native(native)) = self.meaning(&symbol.name)
        {
            return Expr::Constant(Value::Native(native));
        }
        match self.var(form) {
            Ok(var) => Expr::Constant(Value::Var(var)),
            Err(mistake) => mistake,
        }
    }

    /// The class of a symbol, for `catch` and constructors.
    pub(super) fn class(&mut self, form: &Value) -> Option<&'static class::Class> {
        let name = form.as_symbol().cloned().unwrap_or_default();
        let found = class::find(&name);
        if found.is_none() {
            let at = match form {
                Value::Symbol(symbol) => symbol.at.clone(),
                _ => Position::default(),
            };
            let near = nearest(&name, class::ALL.iter().map(|class| class.short_name()));
            let hint = near.map(|near| format!("did you mean `{near}`?"));
            self.mistake(&at, format!("there is no class `{name}`"), hint);
        }
        found
    }
}
