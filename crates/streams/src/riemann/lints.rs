//! Traps of Riemann configs that are no mistakes of the language (spec riemann §17.19–21): notes for `staunch check`.
//!
//! They are found in the forms as they were read, without evaluation: a stream that a name stands for is not followed.

use crate::event::Field;
use crate::nodes::library::MACROS;
use crate::nodes::table;
use crate::position::Position;
use crate::symbol::split_name;
use crate::value::Value;

/// Functions whose value is another one at each call.
const CHANGING: &[&str] =
    &["unix-time", "linear-time", "now", "rand", "rand-int", "rand-nth", "random-uuid", "currentTimeMillis"];
/// Streams that stop by the ttl of their events.
const UNTIL_EXPIRED: &[&str] =
    &["rate", "percentiles", "fold-interval", "fold-interval-metric", "coalesce", "ddt"];
/// Streams whose first argument is a function of each event.
const MAPPING: &[&str] = &["smap", "smap*", "smapcat", "sreduce"];

/// What is around a form.
#[derive(Clone, Default)]
struct Around {
    /// A `default` of the ttl.
    sets_ttl: bool,
    /// A stream that stops by the ttl.
    until_expired: Option<String>,
    /// A field that events need to come here, and that expired events do not have.
    lost: Option<String>,
}

/// Finds the traps in the forms of a config; each with its place.
pub(super) fn find(forms: &[Value]) -> Vec<(Position, String)> {
    let mut lints = Lints { kept: None, found: Vec::new() };
    forms.iter().for_each(|form| lints.read_reaper(form));
    forms.iter().for_each(|form| lints.form(form, &Around::default()));
    lints.found
}

struct Lints {
    /// The fields of expired events; none if nothing expires, or all fields are kept.
    kept: Option<Vec<String>>,
    found: Vec<(Position, String)>,
}

/// The name at the head of a list, without its namespace, and what comes after it.
fn call(form: &Value) -> Option<(String, Vec<&Value>, &Position)> {
    let Value::List(list) = form else { return None };
    let name = list.first()?.as_symbol()?;
    Some((split_name(name).1.to_owned(), list.iter().skip(1).collect(), &list.at))
}

fn is_function(name: &str) -> bool {
    matches!(name, "fn" | "fn*" | "defn" | "defn-" | "quote")
}

/// The forms within a form.
fn parts(form: &Value) -> Vec<&Value> {
    match form {
        Value::List(list) => list.iter().collect(),
        Value::Vector(vector) => vector.iter().collect(),
        Value::Set(set) => set.iter().collect(),
        Value::Map(map) => map.iter().flat_map(|(key, value)| [key, value]).collect(),
        _ => Vec::new(),
    }
}

/// The first call of one of these functions in a form, functions of each event left out.
fn changing(form: &Value) -> Option<String> {
    if let Some((name, ..)) = call(form) {
        if is_function(&name) {
            return None;
        }
        if CHANGING.contains(&name.as_str()) {
            return Some(name);
        }
    }
    parts(form).into_iter().find_map(changing)
}

/// Whether `default` sets the ttl.
fn is_of_ttl(arguments: &[&Value]) -> bool {
    let ttl = Value::keyword("ttl");
    match arguments.first() {
        Some(Value::Map(map)) => map.get(&ttl).is_some(),
        Some(key) => **key == ttl,
        None => false,
    }
}

impl Lints {
    fn note(&mut self, at: &Position, text: String) {
        self.found.push((at.clone(), text));
    }

    /// `(periodically-expire [interval] [{:keep-keys …}])`
    fn read_reaper(&mut self, form: &Value) {
        if let Some((name, arguments, _)) = call(form)
            && name == "periodically-expire"
        {
            let options = arguments.iter().find_map(|argument| match argument {
                Value::Map(map) => Some(map.get(&Value::keyword("keep-keys")).cloned().unwrap_or_default()),
                _ => None,
            });
            let keys = match options {
                None | Some(Value::Nil) => vec!["host".to_owned(), "service".to_owned()],
                Some(Value::Vector(keys)) => keys
                    .iter()
                    .map(|key| crate::print::to_str(key).trim_start_matches(':').to_owned())
                    .collect(),
                // All fields, or an expression.
                Some(_) => return,
            };
            self.kept = Some(keys);
        }
        parts(form).into_iter().for_each(|part| self.read_reaper(part));
    }

    fn form(&mut self, form: &Value, around: &Around) {
        let mut inner = around.clone();
        if let Some((name, arguments, at)) = call(form) {
            match name.as_str() {
                "with" | "default" => {
                    self.constant(&name, &arguments, at);
                    if name == "default" && is_of_ttl(&arguments) {
                        self.late_ttl(around, at);
                        inner.sets_ttl = true;
                    }
                }
                "where" => inner.lost = arguments.first().and_then(|test| self.lost(test)).or(inner.lost),
                "tagged" | "tagged-all" | "tagged-any" => {
                    inner.lost = self.is_lost("tags").then(|| "tags".to_owned()).or(inner.lost);
                }
                "else" => inner.lost = None,
                "expired" => self.expired(around, at),
                name if UNTIL_EXPIRED.contains(&name) => inner.until_expired = Some(name.to_owned()),
                name if MAPPING.contains(&name) => self.mapping(name, &arguments, at),
                "changed-state" => self.options(&name, arguments.first().copied(), at),
                "changed" => self.options(&name, arguments.get(1).copied(), at),
                name if is_function(name) => inner = Around::default(),
                _ => {}
            }
        }
        self.children(form);
        if let Value::List(list) = form
            && list.len() > 1
            && list
                .first()
                .and_then(call)
                .is_some_and(|(name, arguments, _)| name == "index" && arguments.is_empty())
        {
            let text = "`(index)` is called for each event here: write `(let [index (index)] …)` around the streams, and `(index event)`";
            self.note(&list.at, text.to_owned());
        }
        parts(form).into_iter().for_each(|part| self.form(part, &inner));
    }

    /// `(with :time (unix-time) …)`
    fn constant(&mut self, name: &str, arguments: &[&Value], at: &Position) {
        let value = match arguments {
            [map @ Value::Map(_), ..] | [_, map] => map,
            [_, value, ..] => value,
            _ => return,
        };
        if let Some(changing) = changing(value) {
            let text = format!(
                "`({changing})` is called once, while the config is loaded, so that `{name}` gives all events the same value: \
                 use `(smap (fn [event] (assoc event …)) …)`"
            );
            self.note(at, text);
        }
    }

    /// `(rate 5 (default :ttl 60 …))`
    fn late_ttl(&mut self, around: &Around, at: &Position) {
        if let Some(stream) = around.until_expired.as_ref().filter(|_| !around.sets_ttl) {
            let text = format!(
                "`default :ttl` comes too late below `{stream}`, which runs for ever after an event without a ttl: put it around `{stream}`"
            );
            self.note(at, text);
        }
    }

    /// `(smap (fn [event] (rate 5 …)))`
    fn mapping(&mut self, name: &str, arguments: &[&Value], at: &Position) {
        let function = arguments.first().and_then(|function| call(function));
        let Some((head, body, _)) = function.filter(|(head, ..)| head == "fn" || head == "fn*") else {
            return;
        };
        // Both forms of a function end with what it returns.
        let Some((stream, ..)) = body.last().and_then(|last| call(last)) else { return };
        let is_stream = table::find(&stream).is_some() || MACROS.iter().any(|native| native.name == stream);
        // Its name is that of a function too.
        if is_stream && stream != "match" && !head.is_empty() {
            let text = format!(
                "the function of `{name}` makes a new `{stream}` stream for each event, which gets no events: put `{stream}` below `{name}`"
            );
            self.note(at, text);
        }
    }

    /// `(changed-state :init "ok" …)`
    fn options(&mut self, name: &str, given: Option<&Value>, at: &Position) {
        if let Some(Value::Keyword(option)) = given
            && matches!(option.as_str(), "init" | "pairs?")
        {
            let text = format!(
                "the options of `{name}` are a map: `({name} … {{:{option} …}} …)`; here they are taken as streams"
            );
            self.note(at, text);
        }
    }

    /// `(streams (fn [event] (where …)))`
    fn children(&mut self, form: &Value) {
        let Some((name, arguments, _)) = call(form) else { return };
        let is_stream =
            |name: &str| table::find(name).is_some() || MACROS.iter().any(|native| native.name == name);
        // These have functions that make streams, or a message of their own.
        let is_other = ["by-fn", "by-builder", "pipe", "match"].contains(&name.as_str())
            || MAPPING.contains(&name.as_str())
            || name.starts_with("part-time")
            || name.starts_with("exception-stream");
        if is_other || !(name == "streams" || is_stream(&name)) {
            return;
        }
        for argument in arguments {
            let Some((head, body, at)) = call(argument) else { continue };
            let Some((stream, ..)) = body.last().and_then(|last| call(last)) else { continue };
            if matches!(head.as_str(), "fn" | "fn*") && stream != "match" && is_stream(&stream) {
                let text = format!(
                    "this function makes a new `{stream}` stream for each event, which gets no events: put `{stream}` in its place"
                );
                self.note(at, text);
            }
        }
    }

    fn is_lost(&self, field: &str) -> bool {
        let kept =
            |kept: &Vec<String>| !matches!(field, "state" | "time") && !kept.iter().any(|key| key == field);
        self.kept.as_ref().is_some_and(kept)
    }

    /// A field that a test needs and expired events do not have; none if the test may accept events without it.
    fn lost(&self, test: &Value) -> Option<String> {
        let field = match test {
            Value::Symbol(symbol) => Field::of(&symbol.name).map(|field| field.name().to_owned()),
            Value::Keyword(name) => Some(name.to_string()),
            Value::List(_) => match call(test) {
                Some((name, ..))
                    if matches!(name.as_str(), "not" | "or" | "nil?" | "not=" | "if" | "cond") =>
                {
                    return None;
                }
                Some((name, ..)) if name.starts_with("tagged") => Some("tags".to_owned()),
                Some((name, ..)) => Field::of(&name).map(|field| field.name().to_owned()),
                None => None,
            },
            _ => None,
        };
        let own = field.filter(|field| self.is_lost(field));
        own.or_else(|| match test {
            Value::List(_) => parts(test).into_iter().find_map(|part| self.lost(part)),
            _ => None,
        })
    }

    /// `(where (tagged "x") (expired …))`
    fn expired(&mut self, around: &Around, at: &Position) {
        if let Some(field) = &around.lost {
            let text = format!(
                "events that expire do not have the field `{field}`, which a stream around this `expired` tests: add `:{field}` to \
                 `:keep-keys` of `periodically-expire`"
            );
            self.note(at, text);
        }
    }
}
