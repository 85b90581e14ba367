//! From TOML text to the tree.

use toml::Spanned;
use toml::de::{DeInteger, DeString, DeTable, DeValue};

use super::tree::{Entry, Node, Value};
use crate::diagnostic::{Code, Diagnostic, Place};

/// Parses TOML. Returns a tree if the text is valid enough for further checks: a repeated key is an error that does not
/// affect the rest.
pub(super) fn read(text: &str) -> (Option<Node>, Vec<Diagnostic>) {
    let (root, errors) = DeTable::parse_recoverable(text);
    let diagnostics = first_ones(text, errors.iter().map(|error| diagnostic(text, error)).collect());
    let broken = diagnostics.iter().find(|diagnostic| diagnostic.code == Code::Syntax);
    if let Some((wrong, other)) = broken.and_then(|wrong| Some((wrong, OtherLanguage::of(text)?))) {
        return (None, vec![other.diagnostic(wrong.place.unwrap_or(Place::new(0, 0)))]);
    }
    let readable = diagnostics.iter().all(|diagnostic| diagnostic.code == Code::Repeated);
    let root =
        Node { place: Place::new(0, 0), value: Value::Table(table(root.get_ref())), substituted: false };
    (readable.then_some(root), diagnostics)
}

/// True when the first line is valid in YAML or JSON but not in TOML.
pub(super) fn begins_as_yaml(text: &str) -> bool {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match OtherLanguage::of(text) {
        Some(OtherLanguage::Yaml | OtherLanguage::Json) => true,
        Some(OtherLanguage::JavaScript) | None => false,
    }
}

/// The probable language of a text that is not TOML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OtherLanguage {
    Yaml,
    Json,
    /// A JavaScript object: a config file of node's statsd.
    JavaScript,
}

impl OtherLanguage {
    /// By the first line that is not empty or a comment.
    fn of(text: &str) -> Option<OtherLanguage> {
        let is_remark = |line: &&str| line.is_empty() || line.starts_with('#');
        let mut lines = text.lines().map(str::trim_end).skip_while(is_remark);
        let first = lines.next()?.trim_start();
        if let Some(inner) = first.strip_prefix('{').map(str::trim_start) {
            let inner = if inner.is_empty() { lines.next().unwrap_or_default().trim_start() } else { inner };
            let json = inner.starts_with('"');
            return Some(if json { OtherLanguage::Json } else { OtherLanguage::JavaScript });
        }
        let key = first.split_once(':').filter(|(_, rest)| rest.is_empty() || rest.starts_with([' ', '\t']));
        let is_word =
            |key: &str| key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        let yaml = first == "---" || key.is_some_and(|(key, _)| !key.is_empty() && is_word(key));
        yaml.then_some(OtherLanguage::Yaml)
    }

    fn diagnostic(self, place: Place) -> Diagnostic {
        let (what, hint) = match self {
            OtherLanguage::Yaml => {
                ("YAML", "give the file a name that ends in .yaml, and it is read as YAML")
            }
            OtherLanguage::Json => {
                ("JSON", "give the file a name that ends in .json, and it is read as JSON")
            }
            OtherLanguage::JavaScript => (
                "JavaScript",
                "a config of node's statsd is turned into a native one by `staunch import statsd FILE`",
            ),
        };
        Diagnostic::error(Code::Syntax, format!("this is {what}, and a file of this name is read as TOML"))
            .at(place)
            .label("not TOML")
            .hint(hint)
    }
}

/// Removes syntax errors on the line of the previous one, or the next line: errors after an unclosed bracket are noise.
/// Removes repeated keys in a section that is itself repeated.
fn first_ones(text: &str, mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let start = |diagnostic: &Diagnostic| diagnostic.place.map_or(0, |place| place.start.min(text.len()));
    diagnostics.sort_by_key(start);
    let mut before: Option<usize> = None;
    let mut section_end = 0;
    diagnostics.retain_mut(|diagnostic| {
        if diagnostic.code != Code::Syntax {
            let at = start(diagnostic);
            if at < section_end {
                return false;
            }
            if let Some((header, end)) = section_at(text, at) {
                diagnostic.message = format!("`{header}` is defined twice");
                diagnostic.label = "second definition".into();
                diagnostic.hint = Some("merge the two sections, or rename one".into());
                section_end = end;
            }
            return true;
        }
        let at = start(diagnostic);
        let lines = |from: usize| text.as_bytes()[from..at].iter().filter(|byte| **byte == b'\n').count();
        let follows = before.is_some_and(|before| lines(before) <= 1);
        before = Some(at);
        !follows
    });
    diagnostics
}

/// The section header at a place, and the end of the section. `None` for a place outside of headers.
fn section_at(text: &str, at: usize) -> Option<(&str, usize)> {
    let begin = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let header = text[begin..].lines().next()?;
    let is_header = header.trim_start().starts_with('[') && !header.contains(['{', '=']);
    let end = text[at..].find("\n[").map_or(text.len(), |next| at + next);
    is_header.then(|| (header.split('#').next().unwrap_or(header).trim(), end))
}

fn diagnostic(text: &str, error: &toml::de::Error) -> Diagnostic {
    let place = error.span().unwrap_or(0..0);
    if error.message().starts_with("duplicate key") {
        return Diagnostic::error(Code::Repeated, "this key is set twice")
            .at(place)
            .label("second definition")
            .hint("remove one of them");
    }
    let message = error.message().lines().collect::<Vec<_>>().join(", ");
    let is_at_header = text.get(place.start..).is_some_and(|rest| rest.starts_with('['));
    let hint =
        (is_at_header && message.contains("array")).then(|| "is the list before it closed with `]`?".into());
    Diagnostic { hint, ..Diagnostic::error(Code::Syntax, format!("this is not TOML: {message}")).at(place) }
}

fn table(from: &DeTable) -> Vec<Entry> {
    let mut entries: Vec<Entry> = from.iter().map(|(key, value)| entry(key, value)).collect();
    // The parser's map is sorted by key; users read from the top of the file.
    entries.sort_by_key(|entry| (entry.key_place, entry.node.place));
    entries
}

fn entry(key: &Spanned<DeString>, value: &Spanned<DeValue>) -> Entry {
    let key_place = key.span().into();
    let mut node = node(value);
    if matches!(node.value, Value::Table(_)) && node.place.start < Place::from(key.span()).start {
        // A table's own place would be its whole header; its key is more precise.
        node.place = key_place;
    }
    Entry { key: key.get_ref().to_string(), key_place, node }
}

fn node(from: &Spanned<DeValue>) -> Node {
    let value = match from.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => integer(number),
        DeValue::Float(number) => {
            Value::Number { value: number.as_str().parse().unwrap_or(f64::NAN), whole: None }
        }
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(list) => Value::List(list.iter().map(node).collect()),
        DeValue::Table(from) => Value::Table(table(from)),
    };
    Node { place: from.span().into(), value, substituted: false }
}

/// Numbers beyond `i64` keep their magnitude but count as not whole.
fn integer(number: &DeInteger) -> Value {
    let whole = i64::from_str_radix(number.as_str(), number.radix()).ok();
    let value = whole.map_or_else(|| number.as_str().parse().unwrap_or(f64::INFINITY), |whole| whole as f64);
    Value::Number { value, whole }
}
