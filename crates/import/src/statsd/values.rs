//! Typed reading of single options, with JavaScript's notion of "not set", and the reports that go with it.
//!
//! A [`Section`] remembers which keys were read; [`Section::finish`] reports the others as unknown.

use std::net::IpAddr;

use crate::javascript::{Member, Node, Value, to_number};
use crate::report::{Report, Reports, one_of};
use config::diagnostic::{Code, Diagnostic, Place, nearest};

/// Which original the file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compat {
    /// node statsd: a JavaScript expression.
    Node,
    /// Net::Statsd::Server: JSON with `#` comments.
    Perl,
}

/// One import: the original, and the mistakes found so far.
pub(crate) struct Import<'a> {
    /// The file's text.
    pub text: &'a str,
    pub compat: Compat,
    /// It is the file of node's cluster proxy.
    pub proxy: bool,
    pub ignore_unknown_backends: bool,
    pub diagnostics: Vec<Diagnostic>,
}

/// An object of the file, and which of its keys are known.
pub(crate) struct Section<'a> {
    node: &'a Node,
    /// Prefix of its keys in messages: `graphite.`.
    prefix: String,
    known: Vec<&'static str>,
}

impl<'a> Section<'a> {
    pub(crate) fn root(node: &'a Node) -> Section<'a> {
        Section { node, prefix: String::new(), known: Vec::new() }
    }

    pub(crate) fn node(&self) -> &'a Node {
        self.node
    }

    /// The key with the names of the sections around it.
    pub(crate) fn name(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    /// The member of this key when it is there and not `undefined`.
    pub(crate) fn get(&mut self, key: &'static str) -> Option<&'a Member> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.node.member(key).filter(|member| member.value.value != Value::Undefined)
    }

    /// The member of this key when it counts as true: the originals write `config.key || default`.
    pub(crate) fn set(&mut self, key: &'static str) -> Option<&'a Member> {
        self.get(key).filter(|member| member.value.value.truthy())
    }

    /// Reports the keys that were not read.
    pub(crate) fn finish(&self, import: &mut Import<'_>) {
        for member in self.node.members() {
            if !self.known.contains(&member.key.as_str()) {
                import.unknown(self, member);
            }
        }
    }
}

/// Keys that node statsd knows and Net::Statsd::Server does not.
const NODE_ONLY: &[&str] = &[
    "servers",
    "address_ipv6",
    "graphitePicklePort",
    "graphiteProtocol",
    "globalSuffix",
    "flush_counts",
    "histogram",
    "calculatedTimerMetrics",
    "gaugesMaxTTL",
    "keyNameSanitize",
    "repeater",
    "repeaterProtocol",
    "healthStatus",
    "automaticConfigReload",
];

impl<'a> Import<'a> {
    pub(crate) fn new(text: &'a str, compat: Compat, ignore_unknown_backends: bool) -> Import<'a> {
        Import { text, compat, proxy: false, ignore_unknown_backends, diagnostics: Vec::new() }
    }

    pub(crate) fn of_proxy(text: &'a str) -> Import<'a> {
        Import { proxy: true, ..Import::new(text, Compat::Node, false) }
    }

    pub(crate) fn perl(&self) -> bool {
        self.compat == Compat::Perl
    }

    /// The daemon's name in messages.
    pub(crate) fn original(&self) -> &'static str {
        match self.compat {
            Compat::Node if self.proxy => "node's cluster proxy",
            Compat::Node => "node statsd",
            Compat::Perl => "Net::Statsd::Server",
        }
    }

    /// All that was found, in the order of the text.
    pub(crate) fn in_order(mut self) -> Vec<Diagnostic> {
        self.diagnostics.sort_by_key(|diagnostic| diagnostic.place.map_or(0, |place| place.start));
        self.diagnostics
    }

    pub(crate) fn error(
        &mut self,
        code: Code,
        at: impl Into<Option<Place>>,
        message: impl Into<String>,
    ) -> Report<'_> {
        self.diagnostics.error(code, at, message)
    }

    pub(crate) fn warn(
        &mut self,
        code: Code,
        at: impl Into<Option<Place>>,
        message: impl Into<String>,
    ) -> Report<'_> {
        self.diagnostics.warning(code, at, message)
    }

    /// The option of `member` has no effect in the original; `why` ends the sentence.
    pub(crate) fn no_effect(&mut self, name: &str, member: &Member, why: &str) -> Report<'_> {
        self.warn(Code::ImportNoEffect, member.key_place, format!("`{name}` has no effect{why}"))
    }

    /// The option of `member` has an effect in the original and none here; `instead` ends the sentence.
    pub(crate) fn no_counterpart(&mut self, name: &str, member: &Member, instead: &str) -> Report<'_> {
        self.warn(Code::NotCarriedOver, member.key_place, format!("`{name}` has no counterpart{instead}"))
    }

    /// `name` has the wrong type; `wanted` is the right one.
    pub(crate) fn wrong_type(&mut self, name: &str, value: &Node, wanted: &str) {
        let message = format!("`{name}` must be {wanted}, and is {}", value.value.describe());
        self.error(Code::ImportBadType, value.place, message).label(format!("not {wanted}"));
    }

    /// `name` has the right type and an impossible value.
    pub(crate) fn bad_value(&mut self, name: &str, value: &Node, wanted: &str) {
        let message = format!("`{name}` must be {wanted}, and is {}", value.value.describe());
        self.error(Code::ImportBadValue, value.place, message);
    }

    fn unknown(&mut self, section: &Section<'_>, member: &Member) {
        let name = section.name(&member.key);
        let message = format!("{} has no option `{name}`: it has no effect", self.original());
        let hint = if self.perl() && NODE_ONLY.contains(&member.key.as_str()) {
            Some("node statsd has it; if this is node's file, say `--compat node`".into())
        } else {
            nearest(&member.key, section.known.iter().copied()).map(|word| format!("did you mean `{word}`?"))
        };
        let warning = Diagnostic::warning(Code::ImportUnknownKey, message).at(member.key_place);
        self.diagnostics.push(Diagnostic { hint, ..warning });
    }

    /// The section of this key; none when it is missing; reported when it is no object.
    pub(crate) fn section<'n>(&mut self, outer: &mut Section<'n>, key: &'static str) -> Option<Section<'n>> {
        let member = outer.set(key)?;
        self.object(&outer.name(key), &member.value)
    }

    /// The section of a value; reported when it is no object.
    pub(crate) fn object<'n>(&mut self, name: &str, node: &'n Node) -> Option<Section<'n>> {
        if !matches!(node.value, Value::Object(_)) {
            self.wrong_type(name, node, "an object");
            return None;
        }
        Some(Section { node, prefix: format!("{name}."), known: Vec::new() })
    }

    /// One of several words, which must be written as in the table; none when missing or reported.
    pub(crate) fn keyword<T: Copy>(
        &mut self,
        section: &mut Section<'_>,
        key: &'static str,
        words: &[(&str, T)],
    ) -> Option<T> {
        let node = &section.set(key)?.value;
        let is_it = |(word, _): &&(&str, T)| matches!(&node.value, Value::Text(text) if text == word);
        if let Some((_, value)) = words.iter().find(is_it) {
            return Some(*value);
        }
        let words: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        self.bad_value(&section.name(key), node, &one_of(&words));
        None
    }

    /// A finite number, texts converted; none when missing or reported.
    pub(crate) fn number(&mut self, name: &str, node: &Node) -> Option<f64> {
        let number = match &node.value {
            Value::Number(number) => *number,
            Value::Text(text) => to_number(text),
            _ => f64::NAN,
        };
        let blank = matches!(&node.value, Value::Text(text) if text.trim().is_empty());
        if number.is_finite() && !blank {
            return Some(number);
        }
        self.wrong_type(name, node, "a number");
        None
    }

    /// A whole number within limits; none when it does not count as true (the original's default applies) or is
    /// reported.
    pub(crate) fn integer(
        &mut self,
        section: &mut Section<'_>,
        key: &'static str,
        least: u64,
        most: u64,
    ) -> Option<u64> {
        let name = section.name(key);
        let given = section.get(key)?;
        if matches!(given.value.value, Value::Number(number) if number.is_nan()) {
            let message = format!("`{name}` is not a number here, so that the default holds");
            let hint = "an environment variable that is not set?";
            self.warn(Code::ImportBadValue, given.value.place, message).hint(hint);
            return None;
        }
        let node = &section.set(key)?.value;
        let number = self.number(&name, node)?;
        if number == 0.0 && least > 0 {
            // The text "0": the number 0 would not have counted as set.
            return None;
        }
        if number.fract() != 0.0 || number < least as f64 || number > most as f64 {
            self.bad_value(&name, node, &format!("a whole number from {least} to {most}"));
            return None;
        }
        Some(number as u64)
    }

    /// A text, numbers converted; none when it does not count as true or is reported.
    pub(crate) fn text(&mut self, section: &mut Section<'_>, key: &'static str) -> Option<String> {
        let member = section.set(key)?;
        self.text_of(&section.name(key), &member.value)
    }

    /// The text of a value, numbers converted.
    pub(crate) fn text_of(&mut self, name: &str, node: &Node) -> Option<String> {
        match &node.value {
            Value::Text(text) => Some(text.clone()),
            Value::Number(_) => Some(node.value.to_text()),
            _ => {
                self.wrong_type(name, node, "a string");
                None
            }
        }
    }

    /// True or false; none when missing or reported. Null and 0 are false, other numbers true, and so are texts, as
    /// in the original: also "false", for which there is a warning, as for any text that is neither.
    pub(crate) fn switch(&mut self, section: &mut Section<'_>, key: &'static str) -> Option<bool> {
        let node = &section.get(key)?.value;
        let name = section.name(key);
        let text = match &node.value {
            Value::Bool(_) | Value::Null | Value::Number(_) => return Some(node.value.truthy()),
            Value::Text(text) => text,
            _ => {
                self.wrong_type(&name, node, "true or false");
                return None;
            }
        };
        let says = |words: [&str; 4]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
        if text.is_empty() || self.perl() && text == "0" {
            return Some(false);
        }
        if says(["false", "no", "off", "0"]) {
            let message =
                format!("`{name}` is the string {text:?}, which {} treats as true", self.original());
            let hint = "write false without quotes; for an environment variable: process.env.NAME === 'true'";
            self.warn(Code::ImportBadType, node.place, message).hint(hint);
        } else if !says(["true", "yes", "on", "1"]) {
            let message = format!("`{name}` is {}, which counts as true", node.value.describe());
            self.warn(Code::ImportBadType, node.place, message).hint("write true or false");
        }
        Some(true)
    }

    /// The entries of a list; empty when missing, null or false, reported when it is something else.
    pub(crate) fn list<'n>(&mut self, section: &mut Section<'n>, key: &'static str) -> Option<&'n [Node]> {
        let member = section.set(key)?;
        match &member.value.value {
            Value::Array(nodes) => Some(nodes),
            _ => {
                self.wrong_type(&section.name(key), &member.value, "a list");
                None
            }
        }
    }

    /// A name or address to connect to.
    pub(crate) fn host(&mut self, name: &str, node: &Node) -> Option<String> {
        let host = self.text_of(name, node)?;
        let odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, ':' | '/' | '[' | ']' | '@');
        if host.parse::<IpAddr>().is_err() && (host.contains(odd) || host.is_empty()) {
            self.bad_value(name, node, "a host name or address without port");
            return None;
        }
        Some(host)
    }
}
