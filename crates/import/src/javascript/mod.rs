//! Evaluates the JavaScript expressions in node statsd's configuration files (spec statsd §10.3), and reads the JSON of
//! Net::Statsd::Server's.
//!
//! `evaluate`: text -> `lexer` (tokens) -> `interpreter` (a tree of [`Node`]s, each with its place in the text). The supported language is that of configuration files: literals, `process.env`, operators, a
//! few functions, and one function around all of it that is called at once. Every expression is evaluated at most
//! once, so any text ends in time proportional to its length.
//! Not here: the meaning of the keys (`import::statsd`), reading files and the environment (the caller).
//! Invariant: any text gives a tree or located diagnostics; never a panic. The `_MAX` constants below limit nesting,
//! text and value sizes.

mod interpreter;
mod lexer;
mod number;
mod strings;

pub use number::{to_number, to_text};

use config::diagnostic::{Code, Diagnostic, Place};

/// Longest text in bytes.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// Deepest nesting of brackets, operators and values.
pub const DEPTH_MAX: usize = 64;
/// Most that one evaluation may create: bytes of text, and 64 for each value.
pub const MADE_MAX: usize = 8 << 20;

/// The environment of an expression.
pub struct Environment<'a> {
    /// Environment variables: `process.env`.
    pub vars: &'a dyn Fn(&str) -> Option<String>,
    /// Name of the machine: `require('os').hostname()`.
    pub hostname: String,
}

/// A value and its place in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// The expression that gave it, in bytes of the text.
    pub place: Place,
}

/// A JavaScript value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `undefined`
    Undefined,
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// Any number, NaN and the infinities included.
    Number(f64),
    /// A text. Lone surrogates are U+FFFD.
    Text(String),
    /// A regular expression as written; opaque.
    Regex(String),
    /// A list; holes are `undefined`.
    Array(Vec<Node>),
    /// Members in JavaScript's order: integer keys ascending, then the others as first written. Keys are distinct.
    Object(Vec<Member>),
}

/// One member of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Its key.
    pub key: String,
    /// Where the key was written.
    pub key_place: Place,
    /// Its value.
    pub value: Node,
}

impl Node {
    /// The member `key` of an object; none for other values.
    pub fn member(&self, key: &str) -> Option<&Member> {
        self.members().iter().find(|member| member.key == key)
    }

    /// The members of an object; empty for other values.
    pub fn members(&self) -> &[Member] {
        match &self.value {
            Value::Object(members) => members,
            _ => &[],
        }
    }
}

impl Value {
    /// Whether JavaScript converts it to true.
    pub fn truthy(&self) -> bool {
        match self {
            Value::Undefined | Value::Null => false,
            Value::Bool(truth) => *truth,
            Value::Number(number) => *number != 0.0 && !number.is_nan(),
            Value::Text(text) => !text.is_empty(),
            Value::Regex(_) | Value::Array(_) | Value::Object(_) => true,
        }
    }

    /// `String(value)`: `1,2` for a list, `[object Object]` for an object.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) {
        match self {
            Value::Undefined => out.push_str("undefined"),
            Value::Null => out.push_str("null"),
            Value::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
            Value::Number(number) => out.push_str(&to_text(*number)),
            Value::Text(text) | Value::Regex(text) => out.push_str(text),
            Value::Array(nodes) => join(nodes, ",", out),
            Value::Object(_) => out.push_str("[object Object]"),
        }
    }

    /// `Number(value)`.
    pub fn to_number(&self) -> f64 {
        match self {
            Value::Undefined => f64::NAN,
            Value::Null => 0.0,
            Value::Bool(truth) => f64::from(u8::from(*truth)),
            Value::Number(number) => *number,
            Value::Text(text) => to_number(text),
            Value::Regex(_) | Value::Array(_) | Value::Object(_) => to_number(&self.to_text()),
        }
    }

    /// A description for messages: `the text "x"`, `a list`.
    pub fn describe(&self) -> String {
        match self {
            Value::Undefined | Value::Null | Value::Bool(_) => self.to_text(),
            Value::Number(number) => format!("the number {}", to_text(*number)),
            Value::Text(text) if text.chars().count() > 60 => "a long string".into(),
            Value::Text(text) => format!("the string {text:?}"),
            Value::Regex(_) => "a regular expression".into(),
            Value::Array(_) => "a list".into(),
            Value::Object(_) => "an object".into(),
        }
    }
}

/// `array.join(separator)`: undefined and null are empty.
fn join(nodes: &[Node], separator: &str, out: &mut String) {
    for (at, node) in nodes.iter().enumerate() {
        if at > 0 {
            out.push_str(separator);
        }
        if !matches!(node.value, Value::Undefined | Value::Null) {
            node.value.write(out);
        }
    }
}

/// Collects an object's members: the last of equal keys wins, at the place of the first.
#[derive(Default)]
struct Members {
    members: Vec<Member>,
    index: std::collections::BTreeMap<String, usize>,
}

impl Members {
    fn set(&mut self, member: Member) {
        match self.index.get(&member.key) {
            Some(&at) => self.members[at] = member,
            None => {
                self.index.insert(member.key.clone(), self.members.len());
                self.members.push(member);
            }
        }
    }

    /// The object, in JavaScript's order.
    fn finish(mut self) -> Value {
        self.members.sort_by_key(|member| array_index(&member.key).map_or(u64::MAX, u64::from));
        Value::Object(self.members)
    }
}

/// The integer of a key that JavaScript treats as an array index.
fn array_index(key: &str) -> Option<u32> {
    let number: u32 = key.parse().ok()?;
    (number != u32::MAX && number.to_string() == key).then_some(number)
}

/// Evaluates a configuration file's text.
///
/// # Errors
/// One located diagnostic: a syntax error, an error that node reports as well, or JavaScript that is not supported here,
/// with a workaround.
pub fn evaluate(text: &str, environment: &Environment<'_>) -> Result<Node, Vec<Diagnostic>> {
    let run = |tokens: Vec<lexer::Token>| interpreter::run(&tokens, environment);
    tokens(text, Grammar::JavaScript).and_then(run).map_err(|fault| vec![fault.diagnostic()])
}

/// Reads a file of Net::Statsd::Server: JSON with `#` comments and trailing commas, without single quotes or bare keys
/// (spec statsd §10.2).
///
/// # Errors
/// One located diagnostic with the first mistake.
pub fn perl(text: &str) -> Result<Node, Vec<Diagnostic>> {
    json(text, Grammar::PerlJson).map_err(|fault| vec![fault.diagnostic()])
}

/// Which language is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grammar {
    JavaScript,
    /// RFC 8259, as `JSON.parse`.
    Json,
    /// Also `#` comments, trailing commas, and TAB in texts (JSON::XS `relaxed`).
    PerlJson,
}

fn json(text: &str, grammar: Grammar) -> Result<Node, Fault> {
    interpreter::json(&tokens(text, grammar)?, grammar)
}

fn tokens(text: &str, grammar: Grammar) -> Result<Vec<lexer::Token>, Fault> {
    // Texts of `JSON.parse` are limited by `MADE_MAX`.
    if grammar != Grammar::Json && text.len() > TEXT_BYTES_MAX {
        let message = format!("the file is longer than {TEXT_BYTES_MAX} bytes");
        return Err(Fault::syntax(Place::new(0, 0), message, ""));
    }
    lexer::tokens(text, grammar)
}

/// Whether there is a `#` that JavaScript does not allow: a Perl file's comment.
pub(crate) fn stops_at_hash(text: &str) -> bool {
    let stop = lexer::tokens(text, Grammar::JavaScript).err().map(|fault| fault.place);
    stop.is_some_and(|place| text.get(place.start..place.end) == Some("#"))
}

/// Why a text has no value. The public functions convert it to a [`Diagnostic`].
#[derive(Clone, Debug, PartialEq)]
struct Fault {
    supported: bool,
    place: Place,
    message: String,
    label: String,
    hint: Option<String>,
}

/// Workaround for unsupported JavaScript.
const CONVERT: &str = "write the value itself, or convert the file on a machine with node: \
    node -p 'JSON.stringify(eval(\"config=\" + require(\"fs\").readFileSync(\"FILE\", \"utf8\")), null, 2)'";

impl Fault {
    /// The text is not JavaScript, or node reports an error here as well.
    fn syntax(place: Place, message: impl Into<String>, label: impl Into<String>) -> Fault {
        Fault { supported: true, place, message: message.into(), label: label.into(), hint: None }
    }

    /// Valid JavaScript that is not supported.
    fn unsupported(place: Place, message: impl Into<String>) -> Fault {
        let hint = Some(CONVERT.into());
        Fault { supported: false, place, message: message.into(), label: "not supported here".into(), hint }
    }

    fn hint(self, hint: impl Into<String>) -> Fault {
        Fault { hint: Some(hint.into()), ..self }
    }

    fn diagnostic(self) -> Diagnostic {
        let code = if self.supported { Code::ImportSyntax } else { Code::UnsupportedJavascript };
        let diagnostic = Diagnostic::error(code, self.message).at(self.place).label(self.label);
        Diagnostic { hint: self.hint, ..diagnostic }
    }
}

#[cfg(test)]
mod perl_tests;
#[cfg(test)]
mod tests;
