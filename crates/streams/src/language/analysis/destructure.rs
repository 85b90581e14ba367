//! Patterns of bindings: `[a b & more :as all]`, `{:keys [a b] c :d :or {a 1} :as all}`.

use arcstr::ArcStr;

use super::analyzer::Analyzer;
use crate::collections::map::Map;
use crate::collections::vector::Vector;
use crate::language::expr::Expr;
use crate::symbol::split_name;
use crate::value::Value;

type Bindings = Vec<(u32, Expr)>;

impl Analyzer<'_, '_> {
    /// Binds the names of a pattern to the parts of a value.
    pub(super) fn bind_pattern(&mut self, pattern: &Value, value: Expr, to: &mut Bindings) {
        match pattern {
            Value::Symbol(symbol) if symbol.name.contains('/') => {
                self.complain(&format!("`{}`: a local has no namespace", symbol.name));
            }
            Value::Symbol(symbol) => {
                let slot = self.declare(&symbol.name);
                to.push((slot, value));
            }
            Value::Vector(vector) => self.bind_vector(vector, value, to),
            Value::Map(map) => self.bind_map(map, value, to),
            other => {
                let text = crate::print::to_text(other, true);
                self.complain(&format!(
                    "`{text}` can be bound to nothing: a name, a vector or a map is needed"
                ));
            }
        }
    }

    /// A slot for the value as a whole.
    fn whole(&mut self, value: Expr, to: &mut Bindings) -> u32 {
        let slot = self.declare(&ArcStr::new());
        to.push((slot, value));
        slot
    }

    fn bind_vector(&mut self, vector: &Vector<Value>, value: Expr, to: &mut Bindings) {
        let whole = self.whole(value, to);
        let mut patterns = vector.iter();
        let mut index = 0_i64;
        while let Some(pattern) = patterns.next() {
            let special = match pattern {
                Value::Symbol(symbol) if symbol.name == "&" => Some("&"),
                Value::Keyword(name) if name == "as" => Some(":as"),
                _ => None,
            };
            let position = Expr::Constant(Value::from(index));
            let Some(special) = special else {
                let nil = Expr::Constant(Value::Nil);
                let part = self.core_call("nth", vec![Expr::Local(whole), position, nil]);
                self.bind_pattern(pattern, part, to);
                index += 1;
                continue;
            };
            let Some(pattern) = patterns.next() else {
                self.complain(&format!("nothing follows `{special}`"));
                return;
            };
            let part = match special {
                "&" => self.core_call("nthnext", vec![Expr::Local(whole), position]),
                _ => Expr::Local(whole),
            };
            self.bind_pattern(pattern, part, to);
        }
    }

    fn bind_map(&mut self, map: &Map<Value>, value: Expr, to: &mut Bindings) {
        let value = self.core_call(" map-of-pairs", vec![value]);
        let whole = self.whole(value, to);
        let defaults = match map.get(&Value::keyword("or")) {
            Some(Value::Map(defaults)) => (**defaults).clone(),
            _ => Map::default(),
        };
        for (pattern, key) in map.iter() {
            match pattern {
                Value::Keyword(name) => match split_name(name) {
                    (None, "or") => {}
                    (None, "as") => self.bind_pattern(key, Expr::Local(whole), to),
                    (space, list @ ("keys" | "strs" | "syms")) => {
                        let Value::Vector(names) = key else {
                            self.complain(&format!("`:{name}` takes a vector of names"));
                            continue;
                        };
                        for form in names.iter() {
                            self.bind_key(form, (space, list), whole, &defaults, to);
                        }
                    }
                    _ => {
                        self.complain(&format!("`:{name}` has no meaning in a pattern"));
                    }
                },
                pattern => {
                    let key = self.form(key, false);
                    let default = pattern.as_symbol().cloned().unwrap_or_default();
                    let part = self.part(whole, key, &default, &defaults);
                    self.bind_pattern(pattern, part, to);
                }
            }
        }
    }

    /// One name of `:keys`, `:strs` or `:syms`, perhaps with a namespace before it or before the list's name.
    fn bind_key(
        &mut self,
        form: &Value,
        (space, list): (Option<&str>, &str),
        whole: u32,
        defaults: &Map<Value>,
        to: &mut Bindings,
    ) {
        let (Value::Keyword(name) | Value::Text(name)) = form.named() else {
            self.complain("names are needed here");
            return;
        };
        let (own, short) = split_name(&name);
        let full = match own.or(space) {
            Some(space) => arcstr::format!("{space}/{short}"),
            None => name.clone(),
        };
        let key = match list {
            "keys" => Value::Keyword(full),
            "strs" => Value::Text(full),
            _ => Value::symbol(&full),
        };
        let short = ArcStr::from(short);
        let part = self.part(whole, Expr::Constant(key), &short, defaults);
        let slot = self.declare(&short);
        to.push((slot, part));
    }

    /// The value of a key in the whole, or the default of the name that it gets.
    fn part(&mut self, whole: u32, key: Expr, name: &ArcStr, defaults: &Map<Value>) -> Expr {
        let default = defaults.get(&Value::symbol(name)).cloned();
        let mut arguments = vec![Expr::Local(whole), key];
        arguments.extend(default.map(|default| self.form(&default, false)));
        self.core_call("get", arguments)
    }
}

impl Value {
    /// A symbol's or keyword's name as a text; anything else as it is.
    fn named(&self) -> Value {
        match self {
            Value::Symbol(symbol) => Value::Text(symbol.name.clone()),
            other => other.clone(),
        }
    }
}
