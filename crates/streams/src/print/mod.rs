//! Values as text: `pr-str` (readable) and `str` (for humans), as Clojure prints them.
//!
//! Sequences that are not computed print as `#<lazy>`: `Machine` computes what it prints first. Output is bounded by
//! [`PRINTED_BYTES_MAX`], and values are not deeper than `language::budget::VALUE_DEPTH_MAX`.

pub mod moment;

use std::fmt::Write as _;

use model::java::{JavaDouble, JavaSingle};

use crate::effort::spend;
use crate::event::{Event, Field};
use crate::number::Number;
use crate::object::reference::Sort;
use crate::value::Value;

/// Most cells that contain each other and are printed.
const CELLS_MAX: u32 = 4;
/// Bytes of a value's text after which the rest is left out: a value that shares its parts has far more text than memory.
pub const PRINTED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The same for messages.
const EXCERPT_BYTES_MAX: usize = 100;
/// Bytes of a text that cost as much as a value that is looked at.
const BYTES_PER_VALUE: usize = 8;

/// The text of a value: readable if `readable` (`pr-str`), else with texts and characters as they are (`print`).
pub fn to_text(value: &Value, readable: bool) -> String {
    to_text_within(value, readable, PRINTED_BYTES_MAX)
}

/// The text of a value for a message: its beginning, if it is long.
pub fn excerpt(value: &Value) -> String {
    to_text_within(value, true, EXCERPT_BYTES_MAX)
}

/// As [`to_text`], but what comes after so many bytes is left out, and `…` stands there. The text is not cut within a text of the value.
fn to_text_within(value: &Value, readable: bool, bytes_max: usize) -> String {
    let mut printer = Printer { to: String::new(), readable, cells: 0, bytes_max, is_cut: false };
    printer.value(value);
    spend(printer.to.len() / BYTES_PER_VALUE);
    printer.to
}

/// What `str` makes of a value: nil is empty, a text is itself, what is inside of collections is readable.
pub fn to_str(value: &Value) -> String {
    match value {
        Value::Nil => String::new(),
        Value::Text(text) => text.to_string(),
        Value::Char(part) => part.to_string(),
        Value::Number(number) => number_text(number, false),
        Value::Pattern(pattern) => pattern.source.to_string(),
        Value::Moment(moment) => moment::plain(**moment),
        other => to_text(other, true),
    }
}

/// The text of a number; a big integer has its `N` if it is readable.
pub fn number_text(number: &Number, readable: bool) -> String {
    match number {
        Number::Int(value) => value.to_string(),
        Number::Big(value) => format!("{value}{}", if readable { "N" } else { "" }),
        Number::Ratio(value) => format!("{}/{}", value.numer(), value.denom()),
        Number::Float(value) if readable && !value.is_finite() => symbolic(f64::from(*value)),
        Number::Double(value) if readable && !value.is_finite() => symbolic(*value),
        Number::Float(value) => JavaSingle(*value).to_string(),
        Number::Double(value) => JavaDouble(*value).to_string(),
    }
}

/// What the reader understands as an infinity or as no number: `##Inf`, `##-Inf`, `##NaN`.
fn symbolic(value: f64) -> String {
    let name = if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Inf"
    } else {
        "-Inf"
    };
    format!("##{name}")
}

struct Printer {
    to: String,
    readable: bool,
    /// How many cells are around the value: they may contain themselves.
    cells: u32,
    bytes_max: usize,
    is_cut: bool,
}

impl Printer {
    /// Whether there is no room for more; the first time it says so in the text.
    fn is_full(&mut self) -> bool {
        if self.to.len() >= self.bytes_max && !self.is_cut {
            self.is_cut = true;
            self.to.push('…');
        }
        self.is_cut
    }

    fn value(&mut self, value: &Value) {
        if self.is_full() {
            return;
        }
        match value {
            Value::Nil => self.to.push_str("nil"),
            Value::Bool(value) => self.plain(value),
            Value::Number(number) => self.to.push_str(&number_text(number, true)),
            Value::Char(part) if self.readable => self.character(*part),
            Value::Char(part) => self.to.push(*part),
            Value::Text(text) if self.readable => self.quoted(text),
            Value::Text(text) => self.to.push_str(text),
            Value::Keyword(name) => self.plain(format_args!(":{name}")),
            Value::Symbol(symbol) => self.to.push_str(&symbol.name),
            Value::List(list) => self.items("(", list.iter(), ")"),
            Value::Vector(vector) => self.items("[", vector.iter(), "]"),
            Value::Set(set) => self.items("#{", set.iter(), "}"),
            Value::Map(map) => {
                let entries = map.iter().map(|(key, value)| (key.clone(), value));
                self.entries("{", entries);
            }
            Value::Event(event) => self.event(event),
            Value::Seq(_) => self.to.push_str("#<lazy>"),
            Value::Pattern(pattern) => self.plain(format_args!("#\"{}\"", pattern.source)),
            Value::Closure(closure) => {
                let name = closure.code.name(closure.index).unwrap_or("fn").to_owned();
                self.plain(format_args!("#<function {name}>"));
            }
            Value::Native(native) => self.plain(format_args!("#<function {}>", native.name)),
            Value::Bound(bound) => self.plain(format_args!("#<function {}>", bound.native.name)),
            Value::Stream(node) => self.plain(format_args!("#<stream {}>", node.number())),
            Value::Var(var) => self.plain(format_args!("#'{}/{}", var.namespace, var.name)),
            Value::Atom(atom) => {
                let name = match atom.sort {
                    Sort::Atom => "Atom",
                    Sort::Ref => "Ref",
                    Sort::Volatile => "Volatile",
                    Sort::Agent => "Agent",
                    Sort::Promise => "Promise",
                };
                self.cell(name, atom.get());
            }
            Value::Delay(delay) => self.cell("Delay", delay.known().unwrap_or_default()),
            Value::Exception(exception) => {
                let message = exception.message.as_deref().unwrap_or("null").to_owned();
                self.plain(format_args!("#<{}: {message}>", exception.class.name));
            }
            Value::Class(class) => self.to.push_str(class.name),
            Value::Namespace(name) => self.plain(format_args!("#<Namespace {name}>")),
            Value::Moment(instant) => self.plain(format_args!("#inst \"{}\"", moment::iso(**instant))),
        }
    }

    fn plain(&mut self, value: impl std::fmt::Display) {
        write!(self.to, "{value}").expect("writing to a text does not fail");
    }

    fn cell(&mut self, name: &str, value: Value) {
        self.plain(format_args!("#<{name}: "));
        if self.cells == CELLS_MAX {
            self.to.push('…');
        } else {
            self.cells += 1;
            self.value(&value);
            self.cells -= 1;
        }
        self.to.push('>');
    }

    fn items<'a>(&mut self, open: &str, items: impl Iterator<Item = &'a Value>, close: &str) {
        self.to.push_str(open);
        for (index, item) in items.enumerate() {
            if self.is_full() {
                break;
            }
            if index > 0 {
                self.to.push(' ');
            }
            self.value(item);
        }
        self.to.push_str(close);
    }

    fn entries<'a>(&mut self, open: &str, entries: impl Iterator<Item = (Value, &'a Value)>) {
        self.to.push_str(open);
        for (index, (key, value)) in entries.enumerate() {
            if self.is_full() {
                break;
            }
            if index > 0 {
                self.to.push_str(", ");
            }
            self.value(&key);
            self.to.push(' ');
            self.value(value);
        }
        self.to.push('}');
    }

    fn event(&mut self, event: &Event) {
        let standard = Field::ALL.iter().map(|field| (Value::keyword(field.name()), event.get(*field)));
        let custom = event.attributes().iter().map(|(name, value)| (Value::Keyword(name.clone()), value));
        self.entries("#riemann.codec.Event{", standard.chain(custom));
    }

    fn quoted(&mut self, text: &str) {
        self.to.push('"');
        for part in text.chars() {
            match part {
                '"' => self.to.push_str("\\\""),
                '\\' => self.to.push_str("\\\\"),
                '\n' => self.to.push_str("\\n"),
                '\r' => self.to.push_str("\\r"),
                '\t' => self.to.push_str("\\t"),
                '\u{8}' => self.to.push_str("\\b"),
                '\u{c}' => self.to.push_str("\\f"),
                other => self.to.push(other),
            }
        }
        self.to.push('"');
    }

    fn character(&mut self, part: char) {
        self.to.push('\\');
        match part {
            '\n' => self.to.push_str("newline"),
            '\r' => self.to.push_str("return"),
            '\t' => self.to.push_str("tab"),
            ' ' => self.to.push_str("space"),
            '\u{8}' => self.to.push_str("backspace"),
            '\u{c}' => self.to.push_str("formfeed"),
            other => self.to.push(other),
        }
    }
}
