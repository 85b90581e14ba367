//! `${NAME}` in the strings of a native file: replaced by environment variables and by contents of files.
//!
//! Path of a string: `toml` or `yaml` (text to a tree) -> [`resolve`] (strings of the tree) -> `fields` and `value`.
//! The file is parsed first, so that a value can never add a key, a section or a quote. Not here: reading the
//! environment and files, which the caller's [`Variables`] does.
//! Invariant: no diagnostic shows a value. [`Resolved::hide`] replaces it by the reference, `${NAME}`.

use super::tree::{Node, Value};
use crate::diagnostic::{Code, Diagnostic, Place};

/// Longest string after replacement, and longest file that a reference may name.
pub const VALUE_BYTES_MAX: usize = 64 * 1024;

/// Most references in all strings of a configuration.
const REFERENCES_MAX: usize = 10_000;

/// The values of references.
pub trait Variables {
    /// The value of an environment variable; `None` when it is not set.
    ///
    /// # Errors
    /// When its value cannot be used, with the reason.
    fn environment(&self, name: &str) -> Result<Option<String>, String>;

    /// The contents of a file.
    ///
    /// # Errors
    /// When it cannot be read, with the reason.
    fn file(&self, path: &str) -> Result<String, String>;
}

/// For texts written by the program itself, and for tests: no variable is set.
#[derive(Clone, Copy, Debug)]
pub struct NoVariables;

impl Variables for NoVariables {
    fn environment(&self, _name: &str) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn file(&self, _path: &str) -> Result<String, String> {
        Err("files are not read here".to_owned())
    }
}

/// The strings with references.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    strings: Vec<ResolvedString>,
    references: usize,
    /// Contents of files, which are secret.
    pub(super) secrets: Vec<String>,
}

/// A string before and after replacement.
#[derive(Debug)]
struct ResolvedString {
    place: Place,
    written: String,
    value: String,
    /// Its references with their values.
    parts: Vec<(String, String)>,
}

/// Replaces the references in every string below `node`. Keys stay as they are.
pub(super) fn resolve(
    node: &mut Node,
    variables: &dyn Variables,
    resolved: &mut Resolved,
    wrong: &mut Vec<Diagnostic>,
) {
    match &mut node.value {
        Value::Text(text) if text.contains('$') => {
            let written = std::mem::take(text);
            let mut parts = Vec::new();
            match string(&written, variables, &mut parts, resolved) {
                Ok(value) => text.clone_from(&value),
                Err(mistake) => {
                    wrong.push(mistake.diagnostic(node.place));
                    text.clone_from(&written);
                }
            }
            if !parts.is_empty() {
                node.substituted = true;
                let value = text.clone();
                resolved.strings.push(ResolvedString { place: node.place, written, value, parts });
            }
        }
        Value::List(list) => list.iter_mut().for_each(|node| resolve(node, variables, resolved, wrong)),
        Value::Table(entries) => {
            entries.iter_mut().for_each(|entry| resolve(&mut entry.node, variables, resolved, wrong));
        }
        Value::Text(_) | Value::Number { .. } | Value::Flag(_) | Value::Nothing | Value::Date => {}
    }
}

/// Why a string cannot be resolved.
struct Mistake {
    message: String,
    label: String,
    hint: Option<String>,
}

impl Mistake {
    fn new(message: impl Into<String>, label: impl Into<String>) -> Mistake {
        Mistake { message: message.into(), label: label.into(), hint: None }
    }

    fn hint(self, hint: impl Into<String>) -> Mistake {
        Mistake { hint: Some(hint.into()), ..self }
    }

    fn diagnostic(self, place: Place) -> Diagnostic {
        let diagnostic = Diagnostic::error(Code::Variable, self.message).at(place).label(self.label);
        Diagnostic { hint: self.hint, ..diagnostic }
    }
}

/// Replaces references in one string: `$$` is a dollar, `${…}` a reference, any other dollar is unchanged.
fn string(
    text: &str,
    variables: &dyn Variables,
    parts: &mut Vec<(String, String)>,
    resolved: &mut Resolved,
) -> Result<String, Mistake> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        if let Some(behind) = behind.strip_prefix('$') {
            out.push('$');
            rest = behind;
            continue;
        }
        let Some(inner) = behind.strip_prefix('{') else {
            out.push('$');
            rest = behind;
            continue;
        };
        let Some((reference, behind)) = inner.split_once('}') else {
            return Err(Mistake::new("a reference to a variable has no end", "`}` is missing")
                .hint("write $${ for the characters ${"));
        };
        resolved.references += 1;
        if resolved.references > REFERENCES_MAX {
            let label = format!("at most {REFERENCES_MAX}");
            return Err(Mistake::new("the configuration has too many references to variables", label));
        }
        let (value, is_secret) = value(reference, variables)?;
        out.push_str(&value);
        if is_secret {
            resolved.secrets.push(value.clone());
        }
        parts.push((format!("${{{reference}}}"), value));
        rest = behind;
        if out.len() > VALUE_BYTES_MAX {
            let label = format!("at most {VALUE_BYTES_MAX} bytes");
            return Err(Mistake::new("the string is too long after its variables are replaced", label));
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// The value of the text between `${` and `}`, and whether it is the content of a file.
fn value(reference: &str, variables: &dyn Variables) -> Result<(String, bool), Mistake> {
    if let Some(path) = reference.strip_prefix("file:") {
        let text = variables.file(path).map_err(|why| Mistake::new(format!("cannot read `{path}`"), why))?;
        if text.len() > VALUE_BYTES_MAX {
            let label = format!("at most {VALUE_BYTES_MAX} bytes");
            return Err(Mistake::new(format!("`{path}` is too long for a value"), label));
        }
        let text = text.strip_suffix('\n').unwrap_or(&text);
        return Ok((text.strip_suffix('\r').unwrap_or(text).to_owned(), true));
    }
    let (name, rest) = match reference.find(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        Some(at) => reference.split_at(at),
        None => (reference, ""),
    };
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(forms("this is no reference to a variable"));
    }
    let read = |why| Mistake::new(format!("the value of `{name}` cannot be used"), why);
    let found = variables.environment(name).map_err(read)?;
    let set = found.clone().filter(|value| !value.is_empty());
    let value = match (rest, rest.get(..2)) {
        ("", _) => found.ok_or_else(|| not_set(name, "not set in the environment of this command")),
        (_, Some(":-")) => Ok(set.unwrap_or_else(|| rest[2..].to_owned())),
        (_, Some(":?")) => set.ok_or_else(|| match &rest[2..] {
            "" => not_set(name, "not set, or empty"),
            message => not_set(name, message),
        }),
        (_, Some(_) | None) => Err(forms(&format!("`{name}` is followed by `{rest}`"))),
    }?;
    Ok((value, false))
}

fn not_set(name: &str, label: &str) -> Mistake {
    Mistake::new(format!("the variable `{name}` has no value"), label)
        .hint(format!("set it, or give a default: ${{{name}:-DEFAULT}}"))
}

fn forms(message: &str) -> Mistake {
    Mistake::new(message, "not a reference to a variable")
        .hint("forms are ${NAME}, ${NAME:-DEFAULT}, ${NAME:?MESSAGE} and ${file:PATH}; write $${ for the characters ${")
}

/// Shortest value that is hidden in diagnostics about other places: shorter ones occur as words in many messages.
const HIDDEN_ELSEWHERE_MIN: usize = 4;

impl Resolved {
    /// Replaces values by their references.
    pub(super) fn hide(&self, diagnostics: &mut [Diagnostic]) {
        for diagnostic in diagnostics.iter_mut().filter(|diagnostic| diagnostic.code != Code::Variable) {
            for string in &self.strings {
                let is_here = diagnostic.place == Some(string.place);
                if is_here {
                    string.hide_here(diagnostic);
                } else {
                    string.hide_in(diagnostic, HIDDEN_ELSEWHERE_MIN);
                }
            }
        }
    }
}

/// Removes errors about a string whose variable has no value.
pub(super) fn drop_later_mistakes(diagnostics: &mut Vec<Diagnostic>) {
    let is_first = |diagnostic: &&Diagnostic| diagnostic.code == Code::Variable;
    let without_value: Vec<Place> =
        diagnostics.iter().filter(is_first).filter_map(|diagnostic| diagnostic.place).collect();
    diagnostics.retain(|diagnostic| {
        diagnostic.code == Code::Variable
            || diagnostic.place.is_none_or(|place| !without_value.contains(&place))
    });
}

impl ResolvedString {
    fn hide_in(&self, diagnostic: &mut Diagnostic, min_len: usize) {
        let whole = std::iter::once((&self.written, &self.value));
        let parts = self.parts.iter().map(|(reference, value)| (reference, value));
        for (reference, value) in whole.chain(parts).filter(|(_, value)| value.len() >= min_len) {
            for text in [Some(&mut diagnostic.message), Some(&mut diagnostic.label), diagnostic.hint.as_mut()]
            {
                text.into_iter().for_each(|text| *text = without(text, value, reference));
            }
        }
    }

    /// Hides values in a diagnostic about this string. A label or hint that contains a part of a value is removed.
    fn hide_here(&self, diagnostic: &mut Diagnostic) {
        self.hide_in(diagnostic, 1);
        let shows_a_part = |text: &str| {
            let values = self.parts.iter().flat_map(|(_, value)| value.split(|c: char| !c.is_alphanumeric()));
            values
                .filter(|word| word.len() > 2 && !self.written.contains(word))
                .any(|word| text.contains(word))
        };
        if shows_a_part(&diagnostic.message) {
            diagnostic.message = "this value is not valid".to_owned();
        }
        if shows_a_part(&diagnostic.label) {
            diagnostic.label = format!("the value of {} is not valid here", self.written);
        }
        diagnostic.hint = diagnostic.hint.take().filter(|hint| !shows_a_part(hint));
    }
}

/// `text` with each `value` replaced by `by`, unless it is a part of a longer word.
fn without(text: &str, value: &str, by: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(value).filter(|_| !value.is_empty()) {
        let (before, behind) = (&rest[..at], &rest[at + value.len()..]);
        let joins = |left: Option<char>, right: Option<char>| {
            left.is_some_and(char::is_alphanumeric) && right.is_some_and(char::is_alphanumeric)
        };
        let last = before.chars().next_back().or_else(|| out.chars().next_back());
        let in_a_word =
            joins(last, value.chars().next()) || joins(value.chars().next_back(), behind.chars().next());
        out.push_str(before);
        out.push_str(if in_a_word { value } else { by });
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// A string as a file must contain it to mean `text`.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        out.push(character);
        if character == '$' && matches!(characters.peek(), Some('$' | '{')) {
            out.push('$');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::diagnostic::{Source, render};
    use crate::native::{Format, check_with};

    /// A few variables and one file.
    struct AFew;

    impl Variables for AFew {
        fn environment(&self, name: &str) -> Result<Option<String>, String> {
            Ok(match name {
                "HOST" => Some("carbon-7.example".into()),
                "ADDRESS" => Some("10.0.0.5:2003".into()),
                "SERIES" => Some("123".into()),
                "QUOTES" => Some("a\"\nevil = true\n[sources.evil]".into()),
                "EMPTY" => Some(String::new()),
                "SECRET" => Some("hunter2-hunter2".into()),
                "BINARY" => return Err("it is not UTF-8".into()),
                _ => None,
            })
        }

        fn file(&self, path: &str) -> Result<String, String> {
            if path == "/run/secrets/word" { Ok("s3cr3t\n".into()) } else { Err("no such file".into()) }
        }
    }

    fn one(text: &str) -> Result<String, String> {
        let mut resolved = Resolved::default();
        string(text, &AFew, &mut Vec::new(), &mut resolved)
            .map_err(|mistake| mistake.message + ": " + &mistake.label)
    }

    #[test]
    fn references_are_replaced_and_other_dollars_stay() {
        for (text, want) in [
            ("${HOST}", "carbon-7.example"),
            ("tcp://${HOST}:${PORT:-2003}", "tcp://carbon-7.example:2003"),
            ("${EMPTY}", ""),
            ("${EMPTY:-x}", "x"),
            ("${NONE:-}", ""),
            ("${NONE:-a:-b}", "a:-b"),
            ("${HOST:?set it}", "carbon-7.example"),
            ("${file:/run/secrets/word}", "s3cr3t"),
            ("$${HOST}", "${HOST}"),
            ("$$", "$"),
            ("^foo$", "^foo$"),
            ("a$b", "a$b"),
            ("$$${HOST}", "$carbon-7.example"),
            ("", ""),
        ] {
            assert_eq!(one(text).as_deref(), Ok(want), "{text}");
        }
    }

    #[test]
    fn a_reference_without_a_value_is_an_error() {
        for (text, want) in [
            ("${NONE}", "the variable `NONE` has no value: not set in the environment"),
            ("${NONE:?point it at carbon}", "the variable `NONE` has no value: point it at carbon"),
            ("${EMPTY:?}", "the variable `EMPTY` has no value: not set, or empty"),
            ("${HOST", "a reference to a variable has no end"),
            ("${}", "this is no reference to a variable"),
            ("${1A}", "this is no reference to a variable"),
            ("${HOST:+x}", "`HOST` is followed by `:+x`"),
            ("${HOST.x}", "`HOST` is followed by `.x`"),
            ("${HOST:é}", "`HOST` is followed by"),
            ("${BINARY}", "the value of `BINARY` cannot be used: it is not UTF-8"),
            ("${file:/none}", "cannot read `/none`: no such file"),
        ] {
            let got = one(text).expect_err(text);
            assert!(got.starts_with(want), "{text}: {got}");
        }
    }

    #[test]
    fn strings_and_references_have_limits() {
        struct Long(usize);
        impl Variables for Long {
            fn environment(&self, _: &str) -> Result<Option<String>, String> {
                Ok(Some("x".repeat(self.0)))
            }
            fn file(&self, _: &str) -> Result<String, String> {
                Ok("x".repeat(self.0))
            }
        }
        let fits =
            |text: &str, len| string(text, &Long(len), &mut Vec::new(), &mut Resolved::default()).is_ok();
        for text in ["${A}", "${file:a}"] {
            assert!(fits(text, VALUE_BYTES_MAX) && !fits(text, VALUE_BYTES_MAX + 1), "{text}");
        }
        assert!(fits(&"${A}".repeat(REFERENCES_MAX), 1) && !fits(&"${A}".repeat(REFERENCES_MAX + 1), 1));
    }

    const FILE: &str = "[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:1\"]\n\
        [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\n[outputs.carbon]\ntype = \"graphite\"\nfrom = [\"stats\"]\n";

    fn checked(more: &str) -> (Option<crate::plan::Plan>, String) {
        let text = format!("{FILE}{more}");
        let source = Source { name: "a.toml", text: &text };
        let (plan, wrong) = check_with(source, Format::Toml, &AFew);
        (plan, render(source, &wrong, false))
    }

    #[test]
    fn values_are_used_in_all_strings_and_never_add_keys() {
        let (plan, wrong) = checked("to = [\"tcp://${ADDRESS}\"]\nqueue = { max_records = \"${SERIES}\" }\n");
        assert_eq!(plan.expect(&wrong).outputs[0].queue.records_max, 123);
        let (plan, wrong) = checked("to = [\"tcp://10.0.0.5:2003\"]\n[sources.b]\ntype = \"${QUOTES}\"\n");
        assert!(plan.is_none() && !wrong.contains("evil") && wrong.contains("sources.b"), "{wrong}");
    }

    #[test]
    fn diagnostics_show_names_and_never_values() {
        for more in [
            "to = [\"tcp://${SECRET}\"]\n",
            "to = \"${SECRET}\"\n",
            "to = [\"${SECRET}://x\"]\n",
            "to = [\"tcp://10.0.0.5:2003\"]\nencoding = \"${SECRET}\"\n",
            "to = [\"tcp://10.0.0.5:2003\"]\nqueue = \"${SECRET}\"\n",
            "to = [\"tcp://10.0.0.5:2003\"]\n[outputs.o]\ntype = \"tcp\"\nto = [\"tcp://1.2.3.4:5\"]\nfrom = [\"${SECRET}\"]\n",
        ] {
            let (plan, wrong) = checked(more);
            assert!(plan.is_none() && !wrong.contains("hunter2"), "{more}: {wrong}");
            assert!(wrong.contains("${SECRET}") && wrong.contains("a.toml:1"), "{more}: {wrong}");
        }
    }

    #[test]
    fn the_printed_config_hides_contents_of_files() {
        let (plan, wrong) =
            checked("to = [\"tcp://${HOST}:1\"]\nglobal_prefix = \"${file:/run/secrets/word}\"\n");
        let plan = plan.expect(&wrong);
        let (whole, shown) = (crate::print(&plan), crate::print_shown(&plan));
        assert!(whole.contains("\"s3cr3t\"") && shown.contains("\"***\""), "{whole}{shown}");
        assert_eq!(whole.replace("s3cr3t", "***"), shown);
    }

    #[test]
    fn a_missing_variable_is_shown_with_its_place() {
        let (_, wrong) = checked("to = [\"tcp://10.0.0.5:2003\", \"tcp://${NONE}:2003\"]\n");
        assert!(
            wrong.starts_with("error[C039]: the variable `NONE` has no value\n  --> a.toml:10:"),
            "{wrong}"
        );
        assert!(wrong.ends_with("error: 1 error\n"), "{wrong}");
        assert!(wrong.contains("^^^") && wrong.contains("${NONE:-DEFAULT}"), "{wrong}");
    }

    proptest! {
        #[test]
        fn an_escaped_string_is_read_back(text in "[a$\\{\\}A]{0,12}") {
            prop_assert_eq!(one(&escaped(&text)).ok(), Some(text));
        }

        #[test]
        fn no_string_makes_it_panic(text in "[$\\{\\}:?a-é]{0,12}") {
            let _either = one(&text);
        }
    }
}
