//! Errors and warnings about a configuration file, with place and advice: for native files and imports.
//!
//! A check collects all [`Diagnostic`]s of a file; [`render`] shows them to people, [`to_json`] to editors. Places are
//! byte ranges of the file's text. They may be wrong (a parser may place an error after the end of the file), so they
//! are clipped to the text before use: no diagnostic can cause a panic. Not here: the meaning of the codes (`code.rs`),
//! and the checks themselves.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet, normalize_untrusted_str, renderer};

pub use crate::code::Code;

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The configuration is not used.
    Error,
    /// It works, but probably not as intended.
    Warning,
}

impl Severity {
    /// `error` or `warning`.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

/// Byte range in the file's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// First byte.
    pub start: usize,
    /// One more than the last byte.
    pub end: usize,
}

impl Place {
    /// The bytes `start .. end`.
    pub fn new(start: usize, end: usize) -> Place {
        Place { start, end }
    }

    /// The same range, clipped to `text` and to borders of characters.
    fn clipped(self, text: &str) -> Place {
        let start = text.floor_char_boundary(self.start.min(text.len()));
        let end = text.floor_char_boundary(self.end.min(text.len())).max(start);
        Place { start, end }
    }
}

impl From<std::ops::Range<usize>> for Place {
    fn from(range: std::ops::Range<usize>) -> Place {
        Place { start: range.start, end: range.end }
    }
}

/// One error or warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its code; `staunch explain CODE` shows the page.
    pub code: Code,
    /// The severity.
    pub severity: Severity,
    /// The mistake in one sentence without a full stop.
    pub message: String,
    /// The place; `None` for the whole file.
    pub place: Option<Place>,
    /// The text at the caret; may be empty.
    pub label: String,
    /// Advice.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// An error.
    pub fn error(code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            severity: Severity::Error,
            message: message.into(),
            place: None,
            label: String::new(),
            hint: None,
        }
    }

    /// A warning.
    pub fn warning(code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, message) }
    }

    /// The same with a place.
    pub fn at(mut self, place: impl Into<Place>) -> Diagnostic {
        self.place = Some(place.into());
        self
    }

    /// The same, with the text at the caret.
    pub fn label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = label.into();
        self
    }

    /// The same, with advice.
    pub fn hint(mut self, hint: impl Into<String>) -> Diagnostic {
        self.hint = Some(hint.into());
        self
    }
}

/// A file, with the name that users know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source<'a> {
    /// A path, or a name such as `<stdin>`.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
}

/// True when one of them is an error.
pub fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
}

/// Most diagnostics that are shown: more are useless, and each takes some hundred bytes.
pub const SHOWN_MAX: usize = 1_000;

/// The number of diagnostics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Errors.
    pub errors: usize,
    /// Warnings.
    pub warnings: usize,
}

/// Counts diagnostics.
pub fn count<'a>(diagnostics: impl IntoIterator<Item = &'a Diagnostic>) -> Count {
    diagnostics.into_iter().fold(Count::default(), |mut count, diagnostic| {
        match diagnostic.severity {
            Severity::Error => count.errors += 1,
            Severity::Warning => count.warnings += 1,
        }
        count
    })
}

/// All diagnostics for people, each with code, place, source line, caret and hint, and a last line with their number.
/// If there are more than [`SHOWN_MAX`], it omits some, warnings first, and says how many. Ends with a line feed; empty
/// without diagnostics.
pub fn render(source: Source, diagnostics: &[Diagnostic], colour: bool) -> String {
    render_files(&[(source, diagnostics)], colour)
}

/// The same for several files, with one last line for all.
pub fn render_files(files: &[(Source<'_>, &[Diagnostic])], colour: bool) -> String {
    let all = || files.iter().flat_map(|(_, diagnostics)| diagnostics.iter());
    if all().next().is_none() {
        return String::new();
    }
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.decor_style(renderer::DecorStyle::Ascii);
    let mut out = String::new();
    let mut shown = Shown::of(all());
    for (source, diagnostics) in files.iter().filter(|(_, diagnostics)| !diagnostics.is_empty()) {
        let lines = Lines::new(source.text);
        for diagnostic in diagnostics.iter().filter(|diagnostic| shown.takes(diagnostic)) {
            out.push_str(&renderer.render(&[group(*source, &lines, diagnostic)]));
            out.push('\n');
        }
    }
    if shown.left_out > 0 {
        let title = Level::NOTE.primary_title(format!("{} more are not shown", shown.left_out));
        out.push_str(&renderer.render(&[Group::with_title(title)]));
        out.push('\n');
    }
    out.push_str(&renderer.render(&[Group::with_title(closing(count(all())))]));
    out.push('\n');
    out
}

/// The diagnostics that are shown: at most [`SHOWN_MAX`], the first errors and, if there is room, the first warnings.
struct Shown {
    errors_room: usize,
    warnings_room: usize,
    left_out: usize,
}

impl Shown {
    fn of<'a>(all: impl Iterator<Item = &'a Diagnostic>) -> Shown {
        let errors_room = count(all).errors.min(SHOWN_MAX);
        Shown { errors_room, warnings_room: SHOWN_MAX - errors_room, left_out: 0 }
    }

    fn takes(&mut self, diagnostic: &Diagnostic) -> bool {
        let room = match diagnostic.severity {
            Severity::Error => &mut self.errors_room,
            Severity::Warning => &mut self.warnings_room,
        };
        let takes = *room > 0;
        *room -= usize::from(takes);
        self.left_out += usize::from(!takes);
        takes
    }
}

/// Most bytes of a line that are shown; of a longer line, the part around the caret.
const LINE_BYTES_SHOWN_MAX: usize = 2000;

fn group<'a>(source: Source<'a>, lines: &Lines<'a>, diagnostic: &'a Diagnostic) -> Group<'a> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = Group::with_title(level.primary_title(&*diagnostic.message).id(diagnostic.code.word()));
    match diagnostic.place {
        Some(place) => group = group.element(snippet(source, lines, diagnostic, place)),
        None => group = group.element(annotate_snippets::Origin::path(source.name)),
    }
    if let Some(hint) = &diagnostic.hint {
        group = group.element(Level::HELP.with_name("hint").message(normalize_untrusted_str(hint)));
    }
    group.element(Level::HELP.message(format!("staunch explain {}", diagnostic.code.word())))
}

/// The first line of a place, with a caret under it. A longer place, such as a whole table, is marked to the end of its
/// first line.
fn snippet<'a>(
    source: Source<'a>,
    lines: &Lines<'a>,
    diagnostic: &'a Diagnostic,
    place: Place,
) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
    let place = place.clipped(source.text);
    let number = lines.number(place.start);
    let line = lines.range(number);
    let text = &source.text[line.start..line.end];
    let start = place.start.min(line.end) - line.start;
    let end = (place.end.min(line.end) - line.start).max(start);
    let (text, start, end) =
        if text.len() > LINE_BYTES_SHOWN_MAX { cut(text, start, end) } else { (text, start, end) };
    let mark = AnnotationKind::Primary.span(start..end);
    let mark = if diagnostic.label.is_empty() {
        mark
    } else {
        mark.label(normalize_untrusted_str(&diagnostic.label))
    };
    Snippet::source(text).path(source.name).line_start(number + 1).annotation(mark)
}

/// The part of a very long line around a place, and the place in that part.
fn cut(text: &str, start: usize, end: usize) -> (&str, usize, usize) {
    let from = text.floor_char_boundary(start.saturating_sub(LINE_BYTES_SHOWN_MAX / 2));
    let to = text.floor_char_boundary((from + LINE_BYTES_SHOWN_MAX).min(text.len())).max(start);
    (&text[from..to], start - from, end.clamp(start, to) - from)
}

fn closing(Count { errors, warnings }: Count) -> annotate_snippets::Title<'static> {
    let count = |number: usize, one: &str| format!("{number} {one}{}", if number == 1 { "" } else { "s" });
    match (errors, warnings) {
        (0, _) => Level::WARNING.primary_title(format!("no errors, {}", count(warnings, "warning"))),
        (_, 0) => Level::ERROR.primary_title(count(errors, "error")),
        _ => {
            Level::ERROR.primary_title(format!("{}, {}", count(errors, "error"), count(warnings, "warning")))
        }
    }
}

/// The same diagnostics for programs, without the number of omitted ones ([`count`]): a list of objects with `file`,
/// `code`, `severity`, `message`, `label`, `hint` (or null), and `line`, `column`, `end_line`, `end_column` (from 1, in
/// characters, the end exclusive; null without a place).
pub fn to_json(source: Source, diagnostics: &[Diagnostic]) -> serde_json::Value {
    let lines = Lines::new(source.text);
    let each = |diagnostic: &Diagnostic| {
        let place = diagnostic.place.map(|place| place.clipped(source.text));
        let (line, column) = place.map(|place| lines.line_column(place.start)).unzip();
        let (end_line, end_column) = place.map(|place| lines.line_column(place.end)).unzip();
        serde_json::json!({
            "file": source.name,
            "code": diagnostic.code.word(),
            "severity": diagnostic.severity.word(),
            "message": diagnostic.message,
            "label": diagnostic.label,
            "hint": diagnostic.hint,
            "line": line,
            "column": column,
            "end_line": end_line,
            "end_column": end_column,
        })
    };
    let mut shown = Shown::of(diagnostics.iter());
    diagnostics.iter().filter(|diagnostic| shown.takes(diagnostic)).map(each).collect()
}

/// The starts of the lines of a text.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Lines<'a> {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Lines { text, starts: std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect() }
    }

    /// The line, from 0, of a byte.
    fn number(&self, byte: usize) -> usize {
        self.starts.partition_point(|start| *start <= byte).saturating_sub(1)
    }

    /// The bytes of a line without its end.
    fn range(&self, number: usize) -> Place {
        let start = self.starts[number];
        let end = self.starts.get(number + 1).map_or(self.text.len(), |next| next - 1);
        let end = if self.text[start..end].ends_with('\r') { end - 1 } else { end };
        Place { start, end }
    }

    /// Line and column of a byte, both from 1; the column counts characters.
    fn line_column(&self, byte: usize) -> (usize, usize) {
        let number = self.number(byte);
        (number + 1, self.text[self.starts[number]..byte].chars().count() + 1)
    }
}

/// The word most similar to `word`, if it is similar enough: at most a third of its letters differ. Upper and lower
/// case, and `-` and `_`, are equal.
pub fn nearest<'a>(word: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let fold = |word: &str| -> Vec<char> {
        word.chars()
            .take(WORD_CHARS_MAX)
            .flat_map(char::to_lowercase)
            .map(|c| if c == '-' { '_' } else { c })
            .collect()
    };
    let sought = fold(word);
    let most = (sought.len() / 3).max(1);
    words
        .map(|candidate| (distance(&sought, &fold(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= most && *distance < candidate.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// A hint with the most similar word: `did you mean "word"?`.
pub fn did_you_mean<'a>(word: &str, words: impl Iterator<Item = &'a str>) -> Option<String> {
    nearest(word, words).map(|near| format!("did you mean \"{near}\"?"))
}

/// The first names for a label: `outputs are: a, b, … (30 in all)`.
pub(crate) fn listed(what: &str, names: &[&str]) -> String {
    const SHOWN_MAX: usize = 12;
    match names.len() {
        0 => format!("there are no {what}"),
        all if all > SHOWN_MAX => format!("{what} are: {}, … ({all} in all)", names[..SHOWN_MAX].join(", ")),
        _ => format!("{what} are: {}", names.join(", ")),
    }
}

/// Most characters of words that are compared.
const WORD_CHARS_MAX: usize = 64;

/// Least number of letters to insert, remove, replace, or swap with a neighbour.
fn distance(one: &[char], other: &[char]) -> usize {
    let mut before = vec![0; other.len() + 1];
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1; other.len() + 1];
        for (j, b) in other.iter().enumerate() {
            let replaced = last[j] + usize::from(a != b);
            row[j + 1] = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == other[j - 1] && one[i - 1] == *b {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "[outputs.o]\ntype = \"graphite\"\nto = [\"carbon-a\", \"carbon_b\"]\n";

    #[test]
    fn a_diagnostic_shows_code_place_caret_hint_and_help() {
        let source = Source { name: "pipeline.toml", text: TEXT };
        let wrong = Diagnostic::error(Code::UnknownReference, "this output takes from nothing that exists")
            .at(48..58)
            .label("outputs are: carbon-a, carbon-b")
            .hint("did you mean `carbon-b`?");
        let unused = Diagnostic::warning(Code::Unused, "nothing takes from source `app`");
        let want = "\
error[C014]: this output takes from nothing that exists
 --> pipeline.toml:3:19
  |
3 | to = [\"carbon-a\", \"carbon_b\"]
  |                   ^^^^^^^^^^ outputs are: carbon-a, carbon-b
  |
  = hint: did you mean `carbon-b`?
  = help: staunch explain C014
warning[C017]: nothing takes from source `app`
--> pipeline.toml
 = help: staunch explain C017
error: 1 error, 1 warning
";
        let got = render(source, &[wrong.clone(), unused.clone()], false);
        assert_eq!(got, want, "{got}");
        assert!(render(source, std::slice::from_ref(&wrong), true).contains("\u{1b}["));
        assert_eq!(render(source, &[], true), "");
        let json = to_json(source, &[wrong, unused]);
        assert_eq!(json[0]["line"], 3);
        assert_eq!(json[0]["column"], 19);
        assert_eq!((&json[0]["end_line"], &json[0]["end_column"]), (&3.into(), &29.into()));
        assert_eq!(json[0]["code"], "C014");
        assert!(json[1]["line"].is_null() && json[1]["hint"].is_null());
    }

    #[test]
    fn only_the_first_diagnostics_are_shown_and_all_are_counted() {
        let source = Source { name: "pipeline.toml", text: TEXT };
        for (errors, warnings, shown, left_out) in [
            (SHOWN_MAX, 0, [SHOWN_MAX, 0], None),
            (SHOWN_MAX + 1, 0, [SHOWN_MAX, 0], Some("note: 1 more are not shown")),
            (0, SHOWN_MAX + 5, [0, SHOWN_MAX], Some("note: 5 more are not shown")),
            (3, SHOWN_MAX, [3, SHOWN_MAX - 3], Some("note: 3 more are not shown")),
            (2 * SHOWN_MAX, 7, [SHOWN_MAX, 0], Some("note: 1007 more are not shown")),
        ] {
            let mut all = vec![Diagnostic::warning(Code::Unused, "w").at(0..1); warnings];
            all.extend(vec![Diagnostic::error(Code::Syntax, "m").at(48..58); errors]);
            let text = render(source, &all, false);
            let lines = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
            assert_eq!([lines("error[C001]"), lines("warning[C017]")], shown, "{errors} {warnings}");
            assert_eq!(text.lines().find(|line| line.starts_with("note")), left_out);
            assert_eq!(count(&all), Count { errors, warnings });
            let last = text.lines().last().expect("a closing line");
            let number = if errors > 0 { errors } else { warnings };
            assert!(last.contains(&number.to_string()), "{last}");
            assert_eq!(to_json(source, &all).as_array().map(Vec::len), Some(shown.iter().sum()));
        }
    }

    #[test]
    fn a_similar_word_is_suggested() {
        let words = ["flushInterval", "percentiles", "window", "from", "to", "listen"];
        let table = [
            ("flushInteval", Some("flushInterval")),
            ("percentile", Some("percentiles")),
            ("Window", Some("window")),
            ("form", Some("from")),
            ("windwo", Some("window")),
            ("ot", Some("to")),
            ("x", None),
            ("completely_different", None),
            ("", None),
        ];
        for (word, want) in table {
            assert_eq!(nearest(word, words.into_iter()), want, "{word:?}");
        }
        assert_eq!(nearest("carbon_b", ["carbon-a", "carbon-b"].into_iter()), Some("carbon-b"));
        assert_eq!(nearest(&"x".repeat(1000), [&*"x".repeat(999)].into_iter()).map(str::len), Some(999));
    }

    proptest! {
        #[test]
        fn no_place_makes_it_panic(text in "(?s)([a-zé\r\n\t\u{1b}]|.){0,60}", start in 0usize..80, end in 0usize..80) {
            let source = Source { name: "x.toml", text: &text };
            let wrong = Diagnostic::error(Code::Syntax, "m\u{7}").at(start..end).label("l\n\u{1b}[1m").hint("h\n");
            prop_assert!(render(source, std::slice::from_ref(&wrong), false).contains("C001"));
            prop_assert_eq!(to_json(source, &[wrong]).as_array().map(Vec::len), Some(1));
        }

        #[test]
        fn a_long_line_is_cut_around_the_place(before in 0usize..5000, after in 0usize..5000) {
            let text = format!("{}é{}", "ä".repeat(before), "ö".repeat(after));
            let source = Source { name: "x.toml", text: &text };
            let shown = render(source, &[Diagnostic::error(Code::Syntax, "m").at(before * 2..before * 2 + 2)], false);
            prop_assert!(shown.contains('é') && shown.len() < 3 * LINE_BYTES_SHOWN_MAX);
        }
    }
}
