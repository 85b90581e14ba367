//! From YAML text (including JSON) to the tree.
//!
//! The parser returns a sequence of events. They are assembled with an explicit stack, so that deep nesting cannot
//! exhaust the thread's stack. Keys of a mapping that `<<` names are added to the surrounding mapping, after its own.
//! Limits: [`DEPTH_MAX`], and [`NODES_MAX`] against aliases that multiply each other.

use foldhash::{HashMap, HashSet};
use saphyr_parser::{Event, Parser, ScalarStyle, Tag};

use super::tree::{Entry, Node, Value};
use crate::diagnostic::{Code, Diagnostic, Place};

/// Deepest nesting. Options need at most 5.
const DEPTH_MAX: usize = 64;

/// Most values of a file; each use of an alias counts.
const NODES_MAX: usize = 200_000;

/// Parses YAML. There is no tree after a syntax error, because YAML's structure depends on every earlier line.
pub(super) fn read(text: &str) -> (Option<Node>, Vec<Diagnostic>) {
    let mut builder = Builder::new(text);
    match builder.events(text) {
        Err(wrong) => (None, vec![*wrong]),
        Ok(()) => {
            let empty = Node { place: Place::new(0, 0), value: Value::Table(Vec::new()), substituted: false };
            let root = match builder.root {
                None | Some(Node { value: Value::Nothing, .. }) => empty,
                Some(root) => root,
            };
            (Some(root), builder.diagnostics)
        }
    }
}

/// Boxed: most texts have none.
type Wrong = Box<Diagnostic>;

/// An unfinished list or table.
struct Open {
    anchor: usize,
    start: usize,
    nodes: usize,
    into: Into,
}

enum Into {
    List(Vec<Node>),
    Table {
        entries: Vec<Entry>,
        keys: HashSet<String>,
        key: Option<(String, Place)>,
        /// The value of `<<`.
        merged: Option<Node>,
    },
}

/// The key of a mapping whose entries belong to the mapping around it (YAML 1.1).
const MERGE: &str = "<<";

struct Builder {
    /// The byte of each character, only for texts with non-ASCII characters.
    bytes: Vec<usize>,
    text_len: usize,
    stack: Vec<Open>,
    root: Option<Node>,
    /// Values by anchor, each with its number of nodes.
    anchors: HashMap<usize, (Node, usize)>,
    nodes: usize,
    documents: usize,
    diagnostics: Vec<Diagnostic>,
}

impl Builder {
    fn new(text: &str) -> Builder {
        let bytes =
            if text.is_ascii() { Vec::new() } else { text.char_indices().map(|(at, _)| at).collect() };
        Builder {
            bytes,
            text_len: text.len(),
            stack: Vec::new(),
            root: None,
            anchors: HashMap::default(),
            nodes: 0,
            documents: 0,
            diagnostics: Vec::new(),
        }
    }

    /// The byte of a character that the parser counted.
    fn byte(&self, character: usize) -> usize {
        if self.bytes.is_empty() {
            character.min(self.text_len)
        } else {
            self.bytes.get(character).copied().unwrap_or(self.text_len)
        }
    }

    fn events(&mut self, text: &str) -> Result<(), Wrong> {
        for event in Parser::new_from_str(text) {
            let (event, span) = event.map_err(|error| {
                let (at, hint) = self.mistake(text, self.byte(error.marker().index()), error.info());
                let message = format!("this is not YAML: {}", error.info());
                Box::new(Diagnostic { hint, ..Diagnostic::error(Code::Syntax, message).at(at..at + 1) })
            })?;
            let start = self.byte(span.start.index());
            let place = Place::new(start, self.byte(span.end.index()).max(start));
            self.event(event, place)?;
        }
        Ok(())
    }

    /// The byte of a syntax error that the parser noticed at `noticed`, and what is probably missing there.
    fn mistake(&self, text: &str, noticed: usize, info: &str) -> (usize, Option<String>) {
        let line_of = |at: usize| text[..at].matches('\n').count() + 1;
        let noticed = text.floor_char_boundary(noticed.min(text.len()));
        if info.contains("tab") {
            let tab = text[noticed..].find("\n\t").map_or(noticed, |before| noticed + before + 1);
            return (tab, Some("indent with spaces: YAML takes no tabs there".into()));
        }
        if info.contains("quoted scalar") {
            return (noticed, Some("is the quote closed?".into()));
        }
        if info.contains("simple key expect") {
            // Noticed at the next key; the error is in the text before it.
            let before = text[..noticed].trim_end();
            let begin = before.rfind('\n').map_or(0, |before| before + 1);
            let begin = begin + before[begin..].len() - before[begin..].trim_start().len();
            return (begin, Some("is there a `:` behind the key?".into()));
        }
        let open = self.stack.last().map(|open| open.start);
        let open = open.filter(|at| text.get(*at..).is_some_and(|rest| rest.starts_with(['[', '{'])));
        let Some(open) = open else { return (noticed, None) };
        let begin = text[..noticed].rfind('\n').map_or(0, |before| before + 1);
        let begin = begin + text[begin..noticed].len() - text[begin..noticed].trim_start().len();
        (begin, Some(format!("is the `{}` of line {} closed?", &text[open..open + 1], line_of(open))))
    }

    fn event(&mut self, event: Event, place: Place) -> Result<(), Wrong> {
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(syntax(
                        "a configuration is one YAML document, and here a second one begins",
                        place,
                    ));
                }
            }
            Event::Alias(anchor) => {
                let (node, nodes) = self
                    .anchors
                    .get(&anchor)
                    .cloned()
                    .ok_or_else(|| syntax("this alias stands inside the value that it names", place))?;
                self.put(Node { place, ..node }, nodes, 0)?;
            }
            Event::Scalar(text, style, anchor, tag) => {
                let value = scalar(&text, style, tag.as_deref());
                self.put(Node { place, value, substituted: false }, 1, anchor)?;
            }
            Event::SequenceStart(anchor, _) => self.open(anchor, place, Into::List(Vec::new()))?,
            Event::MappingStart(anchor, _) => {
                let (entries, keys) = (Vec::new(), HashSet::default());
                self.open(anchor, place, Into::Table { entries, keys, key: None, merged: None })?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(place)?,
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        Ok(())
    }

    fn open(&mut self, anchor: usize, place: Place, into: Into) -> Result<(), Wrong> {
        if self.stack.len() == DEPTH_MAX {
            return Err(syntax(format!("this is nested more than {DEPTH_MAX} deep"), place));
        }
        if let Some(Open { into: Into::Table { key: None, .. }, .. }) = self.stack.last() {
            return Err(syntax("a key must be a string", place));
        }
        self.stack.push(Open { anchor, start: place.start, nodes: 1, into });
        Ok(())
    }

    fn close(&mut self, place: Place) -> Result<(), Wrong> {
        let Some(Open { anchor, start, nodes, into }) = self.stack.pop() else { return Ok(()) };
        let value = match into {
            Into::List(list) => Value::List(list),
            Into::Table { mut entries, mut keys, merged, .. } => {
                for entry in merged.into_iter().map(merged_entries).collect::<Result<Vec<_>, _>>()?.concat() {
                    // The mapping's own keys win, and of several mappings the first one that has a key.
                    if keys.insert(entry.key.clone()) {
                        entries.push(entry);
                    }
                }
                Value::Table(entries)
            }
        };
        let place = Place::new(start, place.end.max(start));
        self.put(Node { place, value, substituted: false }, nodes, anchor)
    }

    /// Stores a finished value of `nodes` nodes: as a key, a member, or the whole file.
    fn put(&mut self, node: Node, nodes: usize, anchor: usize) -> Result<(), Wrong> {
        self.nodes += nodes;
        if self.nodes > NODES_MAX {
            return Err(syntax(
                format!("the file has more than {NODES_MAX} values, aliases counted"),
                node.place,
            ));
        }
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), nodes));
        }
        let Some(open) = self.stack.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        open.nodes += nodes;
        match &mut open.into {
            Into::List(list) => list.push(node),
            Into::Table { entries, keys, key, merged } => match key.take() {
                None => *key = Some((key_text(&node)?, node.place)),
                Some((key, _)) if key == MERGE && keys.insert(key.clone()) => *merged = Some(node),
                Some((key, key_place)) => {
                    if keys.insert(key.clone()) {
                        entries.push(Entry { key, key_place, node });
                    } else {
                        self.diagnostics.push(
                            Diagnostic::error(Code::Repeated, "this key is set twice")
                                .at(key_place)
                                .label("second definition")
                                .hint("remove one of them"),
                        );
                    }
                }
            },
        }
        Ok(())
    }
}

fn syntax(message: impl ToString, place: Place) -> Wrong {
    Box::new(Diagnostic::error(Code::Syntax, message.to_string()).at(place))
}

/// The entries of the mappings that `<<` names.
fn merged_entries(node: Node) -> Result<Vec<Entry>, Wrong> {
    let wrong = |place| syntax("`<<` takes a mapping, or a list of mappings: write `<<: *NAME`", place);
    let entries = |node: Node| match node.value {
        Value::Table(entries) => Ok(entries),
        _ => Err(wrong(node.place)),
    };
    match node.value {
        Value::List(list) => Ok(list.into_iter().map(entries).collect::<Result<Vec<_>, _>>()?.concat()),
        _ => entries(node),
    }
}

fn key_text(node: &Node) -> Result<String, Wrong> {
    match &node.value {
        Value::Text(text) => Ok(text.clone()),
        Value::Number { value, whole } => {
            Ok(whole.map_or_else(|| value.to_string(), |whole| whole.to_string()))
        }
        Value::Flag(flag) => Ok(flag.to_string()),
        _ => Err(syntax("a key must be a string", node.place)),
    }
}

/// Parses a scalar by YAML's core schema. Quoted texts, block texts and texts with `!!str` are always texts.
fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    let is_text = tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
    if style != ScalarStyle::Plain || is_text {
        return Value::Text(text.to_owned());
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Nothing,
        "true" | "True" | "TRUE" => return Value::Flag(true),
        "false" | "False" | "FALSE" => return Value::Flag(false),
        ".nan" | ".NaN" | ".NAN" => return Value::Number { value: f64::NAN, whole: None },
        _ => {}
    }
    number(text).unwrap_or_else(|| Value::Text(text.to_owned()))
}

/// A text as YAML parses it without quotes.
pub(super) fn plain_scalar(text: &str) -> Value {
    scalar(text, ScalarStyle::Plain, None)
}

fn number(text: &str) -> Option<Value> {
    let radix = |digits: &str, radix| i64::from_str_radix(digits, radix).ok();
    let based = match text.get(..2) {
        Some("0x") if !text[2..].starts_with(['+', '-']) => radix(&text[2..], 16),
        Some("0o") if !text[2..].starts_with(['+', '-']) => radix(&text[2..], 8),
        _ => None,
    };
    if let Some(whole) = based {
        return Some(Value::Number { value: whole as f64, whole: Some(whole) });
    }
    let bare = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(bare, ".inf" | ".Inf" | ".INF") {
        let value = if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY };
        return Some(Value::Number { value, whole: None });
    }
    let plain = bare.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    if !plain || !bare.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let value = text.parse().ok()?;
    Some(Value::Number { value, whole: text.parse().ok() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_follow_the_core_schema() {
        let number = |value: f64| Value::Number { value, whole: None };
        let whole = |whole: i64| Value::Number { value: whole as f64, whole: Some(whole) };
        let table = [
            ("10", whole(10)),
            ("-7", whole(-7)),
            ("+7", whole(7)),
            ("0x1F", whole(31)),
            ("0o17", whole(15)),
            ("1.5", number(1.5)),
            (".5", number(0.5)),
            ("1e3", number(1000.0)),
            (".inf", number(f64::INFINITY)),
            ("-.Inf", number(f64::NEG_INFINITY)),
            ("99999999999999999999", number(1e20)),
            ("True", Value::Flag(true)),
            ("~", Value::Nothing),
            ("yes", Value::Text("yes".into())),
            ("inf", Value::Text("inf".into())),
            ("1.2.3", Value::Text("1.2.3".into())),
            ("10s", Value::Text("10s".into())),
            ("0x-1", Value::Text("0x-1".into())),
            ("e3", Value::Text("e3".into())),
            ("-", Value::Text("-".into())),
        ];
        for (text, want) in table {
            assert_eq!(scalar(text, ScalarStyle::Plain, None), want, "{text}");
        }
        assert_eq!(scalar("10", ScalarStyle::DoubleQuoted, None), Value::Text("10".into()));
    }

    #[test]
    fn places_are_bytes_and_aliases_are_bounded() {
        let text = "# é\na: [ü, &x {k: v}]\nb: *x\n";
        let (root, wrong) = read(text);
        assert!(wrong.is_empty(), "{wrong:?}");
        let Some(Node { value: Value::Table(entries), .. }) = root else { panic!("a table") };
        let place = entries[1].key_place;
        assert_eq!(&text[place.start..place.end], "b");
        assert_eq!(&text[entries[1].node.place.start..][..2], "*x");
        assert!(matches!(&entries[1].node.value, Value::Table(inner) if inner[0].key == "k"));

        let laughs: String = std::iter::once("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned())
            .chain((1..12).map(|n| format!("a{n}: &a{n} [{}]\n", format!("*a{}, ", n - 1).repeat(10))))
            .collect();
        let (root, wrong) = read(&laughs);
        assert!(root.is_none());
        assert!(wrong[0].message.contains("more than 200000 values"), "{wrong:?}");

        let (root, wrong) = read(&"[".repeat(DEPTH_MAX + 1));
        assert!(root.is_none() && wrong[0].code == Code::Syntax);
        assert!(read(&format!("{}{}", "[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX))).0.is_some());
    }

    /// The text of a tree, for comparison: keys and texts without places.
    fn shown(node: &Node) -> String {
        match &node.value {
            Value::Table(entries) => {
                let entries = entries.iter().map(|entry| format!("{}: {}", entry.key, shown(&entry.node)));
                format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
            }
            Value::List(list) => format!("[{}]", list.iter().map(shown).collect::<Vec<_>>().join(", ")),
            Value::Text(text) => text.clone(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn merge_keys_give_what_a_mapping_has_not_itself() {
        let table = [
            ("a: &x {k: v, l: w}\nb: {<<: *x, l: own, m: n}\n", "{a: {k: v, l: w}, b: {l: own, m: n, k: v}}"),
            (
                "a: &x {k: v}\nb: &y {k: w, l: l}\nc:\n  <<: [*x, *y]\n",
                "{a: {k: v}, b: {k: w, l: l}, c: {k: v, l: l}}",
            ),
            ("a: &x {k: v}\nb: &y {<<: *x}\nc: {<<: *y}\n", "{a: {k: v}, b: {k: v}, c: {k: v}}"),
            ("a: {<<: {k: v}}\n", "{a: {k: v}}"),
        ];
        for (text, want) in table {
            let (root, wrong) = read(text);
            assert!(wrong.is_empty(), "{text}: {wrong:?}");
            assert_eq!(root.as_ref().map(shown).as_deref(), Some(want), "{text}");
        }
        for (text, code) in [
            ("a: {<<: text}\n", Code::Syntax),
            ("a: {<<: [text]}\n", Code::Syntax),
            ("a: &x {k: v}\nb: {<<: *x, <<: *x}\n", Code::Repeated),
        ] {
            let (_, wrong) = read(text);
            assert_eq!(wrong.first().map(|wrong| wrong.code), Some(code), "{text}");
        }
        // A merged mapping counts as often as an alias.
        let many: String = (0..300).map(|n| format!("k{n}: v, ")).collect();
        let merges: String = (0..700).map(|n| format!("m{n}: {{<<: *x}}\n")).collect();
        let (_, wrong) = read(&format!("x: &x {{{many}}}\n{merges}"));
        assert!(wrong[0].message.contains("more than 200000 values"), "{wrong:?}");
    }

    #[test]
    fn syntax_errors_are_where_the_mistake_is() {
        let table = [
            ("a:\n  b: c\n\td: e\n", "\td", "indent with spaces"),
            ("a:\n  b: [c\nd: e\n", "d: e", "the `[` of line 2"),
            ("a: {b: c\nd: e\n", "d: e", "the `{` of line 1"),
            ("a: \"b\n  c: d\n", "\"b", "is the quote closed?"),
            ("a:\n  b: c\n  d\ne: f\n", "d\ne", "`:` behind the key"),
        ];
        for (text, at, hint) in table {
            let (root, wrong) = read(text);
            assert!(root.is_none(), "{text}");
            let [Diagnostic { place: Some(place), hint: Some(got), .. }] = &wrong[..] else {
                panic!("{text}: {wrong:?}")
            };
            assert!(text[place.start..].starts_with(at), "{text}: {wrong:?}");
            assert!(got.contains(hint), "{text}: {got}");
        }
    }

    #[test]
    fn texts_that_are_no_configuration_are_rejected_with_a_reason() {
        let table = [
            ("a: 1\na: 2\n", Code::Repeated, "set twice"),
            ("a: 1\n---\nb: 2\n", Code::Syntax, "second one begins"),
            ("a: [1\n", Code::Syntax, "not YAML"),
            ("[1]: 2\n", Code::Syntax, "a key must be a string"),
            ("a: &x [*x]\n", Code::Syntax, "inside the value"),
        ];
        for (text, code, message) in table {
            let (_, wrong) = read(text);
            assert_eq!(wrong.first().map(|wrong| wrong.code), Some(code), "{text}");
            assert!(wrong[0].message.contains(message), "{text}: {}", wrong[0].message);
        }
        assert_eq!(read("").0.map(|root| root.value), Some(Value::Table(Vec::new())));
    }
}
