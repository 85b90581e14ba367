//! Regular expressions in the syntax of Python 3.11's `re`, compiled by `regex-automata`: the only place that does it.
//!
//! Path of an expression: [`compile`] -> `Translation` (its text in the other syntax, character by character) -> a
//! [`Regex`]. Its users: functions of queries (`query/pattern.rs`), tag expressions (`catalog/tags/expression.rs`) and
//! the rules of whisper files (`whisper/rules/pattern.rs`).
//! Invariant: a search takes time linear in the name, and a compiled expression has bounded memory.
//! Not here: look-around, references to groups, conditions, atomic groups and possessive repetitions, which need
//! backtracking, and the flags `a` and `x`. Each is an error with its name and column. `$` matches at the end of the name
//! only, not also before a newline at the end.

use std::fmt;

use regex_automata::MatchKind;
use regex_automata::meta::{BuildError, Config, Regex};
use regex_automata::util::syntax;

/// Deepest nesting of groups and repetitions.
const NESTING_MAX: u32 = 100;

/// Most characters of all classes of an expression that ignores case. A compiler looks at each of them: a thousand times
/// `[a-\U0010ffff]` would take seconds.
const FOLDED_CHARS_MAX: u32 = 0x0014_0000;

/// Characters of `\w`, or a few more.
const WORD_CHARS: u32 = 0x0002_8000;

/// Letters after a `\` with the same meaning in both syntaxes, also in a class.
const SAME_ESCAPES: &str = "dDsSwWafnrtv";

/// What the searched names consist of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// Valid UTF-8, in which `.` is one character.
    Text,
    /// The same, but bytes that are no UTF-8 are possible: `.` does not match them.
    UncheckedText,
    /// Bytes: `.` is one byte, and classes are ASCII.
    Bytes,
}

/// How expressions are compiled, and the limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// What the names are.
    pub(crate) names: Names,
    /// Whether a match is any one (of many expressions), or the leftmost one.
    pub(crate) match_kind: MatchKind,
    /// Longest expression in bytes.
    pub(crate) pattern_bytes_max: usize,
    /// Most memory of the compiled expressions.
    pub(crate) compiled_bytes_max: usize,
    /// Most memory of what one thread has found out about names. A full cache is cleared.
    pub(crate) cache_bytes_max: usize,
}

/// Why an expression is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegexFault {
    /// It is longer than this number of bytes.
    TooLong(usize),
    /// Compiled, it needs more than this number of bytes.
    TooLarge(usize),
    /// Python accepts it, we do not.
    Unsupported {
        /// Which construct it is.
        construct: &'static str,
        /// Its place in characters, from 1.
        column: usize,
    },
    /// Python does not accept it either.
    Wrong {
        /// What is wrong.
        reason: &'static str,
        /// Its place in characters, from 1.
        column: usize,
    },
    /// The syntax is wrong in another way.
    Syntax(String),
}

impl fmt::Display for RegexFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegexFault::TooLong(max) => write!(f, "it is longer than {max} bytes"),
            RegexFault::TooLarge(max) => {
                write!(f, "it needs more than {} KiB once it is compiled", max >> 10)
            }
            RegexFault::Unsupported { construct, column } => {
                write!(f, "{construct} at column {column} is not supported")
            }
            RegexFault::Wrong { reason, column } => write!(f, "{reason} at column {column}"),
            RegexFault::Syntax(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for RegexFault {}

/// Which of some expressions is not accepted, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompileError {
    /// Its number, from 0; none when it is not one of them alone.
    pub(crate) pattern: Option<usize>,
    pub(crate) fault: RegexFault,
}

/// Compiles expressions that are searched for together.
///
/// # Errors
/// The first expression that is not accepted.
pub(crate) fn compile(texts: &[&str], options: Options) -> Result<Regex, CompileError> {
    let mut translated = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let faulty = |fault| CompileError { pattern: Some(index), fault };
        if text.len() > options.pattern_bytes_max {
            return Err(faulty(RegexFault::TooLong(options.pattern_bytes_max)));
        }
        translated.push(translate(text, options.names).map_err(faulty)?);
    }
    let config = Config::new()
        .match_kind(options.match_kind)
        .utf8_empty(options.names == Names::Text)
        .nfa_size_limit(Some(options.compiled_bytes_max))
        .onepass_size_limit(Some(options.compiled_bytes_max))
        .hybrid_cache_capacity(options.cache_bytes_max);
    let syntax =
        syntax::Config::new().unicode(options.names != Names::Bytes).utf8(false).nest_limit(NESTING_MAX);
    let built = Regex::builder().configure(config).syntax(syntax).build_many(&translated);
    built.map_err(|error| fault_of(&error, options))
}

fn fault_of(error: &BuildError, options: Options) -> CompileError {
    let fault = match (error.syntax_error(), error.size_limit()) {
        (Some(syntax), _) => RegexFault::Syntax(last_line(&syntax.to_string())),
        (None, Some(_)) => RegexFault::TooLarge(options.compiled_bytes_max),
        (None, None) => RegexFault::Syntax(last_line(&error.to_string())),
    };
    CompileError { pattern: error.pattern().map(|pattern| pattern.as_usize()), fault }
}

/// The reason, without the lines that show the translated expression.
fn last_line(message: &str) -> String {
    let last = message.lines().last().unwrap_or(message);
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

/// Steps of some 10 ns that it takes to compile an expression, at most and roughly.
pub(crate) fn compile_steps(text: &str) -> usize {
    let folds = text.contains("(?") && text.contains('[');
    1_000 + 500 * text.len() + if folds { 500_000 } else { 0 }
}

/// What a repetition would repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    /// The begin of the expression, of a group or of an alternative, or a place such as `^`.
    Nothing,
    /// A character, a class or a group.
    Item,
    /// Something with a repetition.
    Repeated,
}

/// An expression on its way from one syntax to the other.
struct Translation<'t> {
    text: &'t str,
    /// Bytes of it that are done.
    at: usize,
    out: String,
    names: Names,
    last: Last,
    /// True behind the place where flags for the whole expression may be.
    has_begun: bool,
    /// Where the groups begin that are open.
    open: Vec<usize>,
    /// True behind a flag that ignores case.
    ignores_case: bool,
    /// Characters of the classes behind it.
    folded_chars: u32,
}

/// Python's syntax in that of `regex-automata`.
fn translate(text: &str, names: Names) -> Result<String, RegexFault> {
    let mut all = Translation {
        text,
        at: 0,
        out: String::with_capacity(text.len() + 8),
        names,
        last: Last::Nothing,
        has_begun: false,
        open: Vec::new(),
        ignores_case: false,
        folded_chars: 0,
    };
    while let Some(next) = all.peek() {
        match next {
            '(' => all.group()?,
            ')' => all.close()?,
            '*' | '+' | '?' => all.repetition(1, &next.to_string())?,
            '{' => all.braces()?,
            _ => all.item(next)?,
        }
    }
    match all.open.pop() {
        Some(at) => Err(all.wrong(at, "the `(` has no `)`")),
        None => Ok(all.out),
    }
}

impl<'t> Translation<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Passes over the text if it is next.
    fn skip(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text);
        self.at += if is_next { text.len() } else { 0 };
        is_next
    }

    fn column(&self, at: usize) -> usize {
        self.text[..at].chars().count() + 1
    }

    fn wrong(&self, at: usize, reason: &'static str) -> RegexFault {
        RegexFault::Wrong { reason, column: self.column(at) }
    }

    fn unsupported(&self, at: usize, construct: &'static str) -> RegexFault {
        RegexFault::Unsupported { construct, column: self.column(at) }
    }

    /// Whatever is no group and no repetition.
    fn item(&mut self, next: char) -> Result<(), RegexFault> {
        self.has_begun = true;
        self.last = Last::Item;
        match next {
            '\\' => return self.escape(),
            '[' => return self.class(),
            '^' | '$' | '|' => {
                self.last = Last::Nothing;
                self.out.push(next);
            }
            '.' => self.out.push('.'),
            _ => self.literal(next),
        }
        self.at += next.len_utf8();
        Ok(())
    }

    /// A character that means itself.
    fn literal(&mut self, c: char) {
        // `\<` and `\>` are boundaries of words.
        if c.is_ascii_punctuation() && !matches!(c, '<' | '>') {
            self.out.push('\\');
        }
        self.out.push(c);
    }

    /// A `\` outside of classes, and what follows it.
    fn escape(&mut self) -> Result<(), RegexFault> {
        let at = self.at;
        match self.rest().as_bytes().get(1) {
            Some(b'A') => self.place("\\A"),
            Some(b'Z') => self.place("\\z"),
            Some(b'b') => self.place("\\b"),
            Some(b'B') => self.place("\\B"),
            Some(b'0') => {
                self.at += 1;
                let c = self.octal(3, at)?;
                self.literal(c);
            }
            Some(b'1'..=b'9') => {
                let digits = self.rest().bytes().skip(1).take(3).filter(|byte| matches!(byte, b'0'..=b'7'));
                if digits.count() < 3 {
                    return Err(self.unsupported(at, "a reference to a group"));
                }
                self.at += 1;
                let c = self.octal(3, at)?;
                self.literal(c);
            }
            _ => {
                if let Some(c) = self.common_escape()? {
                    self.literal(c);
                }
            }
        }
        Ok(())
    }

    /// A `\` and a letter that match a place.
    fn place(&mut self, translated: &str) {
        self.out.push_str(translated);
        self.last = Last::Nothing;
        self.at += 2;
    }

    /// What means the same inside and outside of classes; a character that is left to the caller to add.
    fn common_escape(&mut self) -> Result<Option<char>, RegexFault> {
        let at = self.at;
        self.at += 1;
        let Some(escaped) = self.peek() else {
            return Err(self.wrong(at, "a backslash without a character after it"));
        };
        self.at += escaped.len_utf8();
        match escaped {
            'x' => self.hexadecimal(2, at).map(Some),
            'u' => self.hexadecimal(4, at).map(Some),
            'U' => self.hexadecimal(8, at).map(Some),
            'N' => Err(self.unsupported(at, "a character by its name")),
            _ if SAME_ESCAPES.contains(escaped) => {
                self.out.extend(['\\', escaped]);
                Ok(None)
            }
            _ if escaped.is_ascii_alphanumeric() => Err(self.wrong(at, "an unknown escape")),
            _ => Ok(Some(escaped)),
        }
    }

    /// At most so many octal digits.
    fn octal(&mut self, digits_max: usize, at: usize) -> Result<char, RegexFault> {
        let digits = self.rest().bytes().take(digits_max).take_while(|byte| matches!(byte, b'0'..=b'7'));
        let (len, value) =
            digits.fold((0, 0), |(len, value), digit| (len + 1, value * 8 + u32::from(digit - b'0')));
        self.at += len;
        let c = char::from_u32(value).filter(|_| value <= 0o377);
        c.ok_or_else(|| self.wrong(at, "an octal escape above `\\377`"))
    }

    /// Exactly so many hexadecimal digits.
    fn hexadecimal(&mut self, len: usize, at: usize) -> Result<char, RegexFault> {
        let digits = self.rest().get(..len).filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let value = digits.and_then(|text| u32::from_str_radix(text, 16).ok());
        self.at += len;
        value.and_then(char::from_u32).ok_or_else(|| self.wrong(at, "an incomplete escape"))
    }

    /// A class in brackets. In Python `[`, `&&`, `--` and `~~` inside mean themselves.
    fn class(&mut self) -> Result<(), RegexFault> {
        let begin = self.at;
        self.at += 1;
        self.out.push('[');
        if self.skip("^") {
            self.out.push('^');
        }
        let mut is_first = true;
        loop {
            match self.peek() {
                None => return Err(self.wrong(begin, "the `[` has no `]`")),
                Some(']') if !is_first => break,
                Some(_) => {}
            }
            is_first = false;
            let at = self.at;
            let first = self.member()?;
            let is_range = self.rest().starts_with('-') && !self.rest().starts_with("-]");
            let mut last = first;
            if is_range && self.rest().len() > 1 {
                self.at += 1;
                self.out.push('-');
                last = self.member()?;
            }
            if let (Some(first), Some(last)) = (first, last) {
                self.count_folded(at, u32::from(last).saturating_sub(u32::from(first)) + 1)?;
            }
        }
        self.at += 1;
        self.out.push(']');
        Ok(())
    }

    /// Counts characters of a class.
    fn count_folded(&mut self, at: usize, chars: u32) -> Result<(), RegexFault> {
        if self.ignores_case && self.names != Names::Bytes {
            self.folded_chars = self.folded_chars.saturating_add(chars);
        }
        if self.folded_chars > FOLDED_CHARS_MAX {
            return Err(self.unsupported(at, "a class of so many characters, with case ignored,"));
        }
        Ok(())
    }

    /// One member of a class, or one end of a range; its character, if it is one.
    fn member(&mut self) -> Result<Option<char>, RegexFault> {
        let at = self.at;
        let bytes = self.rest().as_bytes();
        let c = match (bytes.first(), bytes.get(1)) {
            (Some(b'\\'), Some(b'0'..=b'7')) => {
                self.at += 1;
                Some(self.octal(3, at)?)
            }
            (Some(b'\\'), Some(b'b')) => {
                self.at += 2;
                Some('\u{8}')
            }
            (Some(b'\\'), letter) => {
                let chars = match letter {
                    Some(b'D' | b'S' | b'W') => u32::from(char::MAX),
                    Some(b'w') => WORD_CHARS,
                    _ => 1,
                };
                self.count_folded(at, chars)?;
                self.common_escape()?
            }
            _ => {
                let c = self.peek();
                self.at += c.map_or(0, char::len_utf8);
                c
            }
        };
        match c {
            Some(c) if self.names == Names::Bytes && !c.is_ascii() => {
                return Err(self.unsupported(at, "a character of a class that is not ASCII"));
            }
            Some(c) => self.literal(c),
            None => {}
        }
        Ok(c)
    }

    /// A `(`, with what says which kind of group it opens.
    fn group(&mut self) -> Result<(), RegexFault> {
        const BACKTRACKING: [(&str, &str); 7] = [
            ("(?=", "a look-ahead"),
            ("(?!", "a look-ahead"),
            ("(?<=", "a look-behind"),
            ("(?<!", "a look-behind"),
            ("(?P=", "a reference to a group"),
            ("(?(", "a condition"),
            ("(?>", "an atomic group"),
        ];
        let at = self.at;
        if let Some((_, name)) = BACKTRACKING.iter().find(|(start, _)| self.rest().starts_with(start)) {
            return Err(self.unsupported(at, name));
        }
        if self.skip("(?#") {
            let Some(end) = self.rest().find(')') else {
                return Err(self.wrong(at, "a comment without its `)`"));
            };
            self.at += end + 1;
            return Ok(());
        }
        if self.skip("(?P<") {
            let name = self.rest().split_once('>').map_or("", |(name, _)| name);
            let begins = name.starts_with(|c: char| c == '_' || c.is_alphabetic());
            if !begins || !name.chars().all(|c| c == '_' || c.is_alphanumeric()) {
                return Err(self.wrong(at, "a group without a valid name"));
            }
            self.out.extend(["(?P<", name, ">"]);
            self.at += name.len() + 1;
        } else if self.skip("(?") {
            if !self.flags(at)? {
                return Ok(());
            }
        } else {
            self.at += 1;
            self.out.push('(');
        }
        self.has_begun = true;
        self.last = Last::Nothing;
        self.open.push(at);
        Ok(())
    }

    /// Flags after `(?`; true when they open a group.
    fn flags(&mut self, at: usize) -> Result<bool, RegexFault> {
        let mut flags = String::new();
        let (mut is_any, mut is_off) = (false, false);
        loop {
            let Some(next) = self.peek() else { return Err(self.wrong(at, "the `(` has no `)`")) };
            match next {
                'i' | 'm' | 's' => {
                    self.ignores_case |= next == 'i' && !is_off;
                    flags.push(next);
                }
                'u' if !is_off => {}
                'a' if self.names == Names::Bytes && !is_off => {}
                'a' => return Err(self.unsupported(at, "the flag `a` (classes of ASCII)")),
                'x' => return Err(self.unsupported(at, "the flag `x` (spaces and comments)")),
                '-' if !is_off => {
                    is_off = true;
                    flags.push('-');
                }
                ':' if !flags.ends_with('-') => {
                    self.at += 1;
                    self.out.extend(["(?", &flags, ":"]);
                    return Ok(true);
                }
                ')' if is_any && !is_off => {
                    self.at += 1;
                    if self.has_begun {
                        return Err(self.wrong(at, "flags for all that are not at the start"));
                    }
                    if !flags.is_empty() {
                        self.out.extend(["(?", &flags, ")"]);
                    }
                    return Ok(false);
                }
                _ => return Err(self.wrong(at, "an unknown kind of group")),
            }
            is_any = true;
            self.at += 1;
        }
    }

    fn close(&mut self) -> Result<(), RegexFault> {
        if self.open.pop().is_none() {
            return Err(self.wrong(self.at, "a `)` without its `(`"));
        }
        self.at += 1;
        self.out.push(')');
        self.last = Last::Item;
        Ok(())
    }

    /// A `{`: a repetition if it looks like one, otherwise text.
    fn braces(&mut self) -> Result<(), RegexFault> {
        let inner = self.rest()[1..].split_once('}').map_or("", |(inner, _)| inner);
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let (least, most) = inner.split_once(',').unwrap_or((inner, inner));
        if inner.is_empty() || !digits(least) || !digits(most) {
            return self.item('{');
        }
        let least = if least.is_empty() { "0" } else { least };
        let most = if inner.contains(',') { format!(",{most}") } else { String::new() };
        self.repetition(inner.len() + 2, &format!("{{{least}{most}}}"))
    }

    /// A repetition of some bytes, with a `?` behind it if it is lazy, or a `+` if it is possessive.
    fn repetition(&mut self, len: usize, translated: &str) -> Result<(), RegexFault> {
        let at = self.at;
        match self.last {
            Last::Nothing => return Err(self.wrong(at, "a repetition of nothing")),
            Last::Repeated => return Err(self.wrong(at, "a repetition of a repetition")),
            Last::Item => {}
        }
        self.at += len;
        self.out.push_str(translated);
        if self.rest().starts_with('+') {
            return Err(self.unsupported(at, "a possessive repetition"));
        }
        if self.skip("?") {
            self.out.push('?');
        }
        self.last = Last::Repeated;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex_automata::Input;

    use super::*;

    const BOTH: [Names; 2] = [Names::Text, Names::Bytes];

    fn options(names: Names) -> Options {
        let (pattern_bytes_max, compiled_bytes_max) = (4096, 1 << 20);
        let match_kind = MatchKind::LeftmostFirst;
        Options { names, match_kind, pattern_bytes_max, compiled_bytes_max, cache_bytes_max: 1 << 20 }
    }

    fn compiled(text: &str, names: Names) -> Result<Regex, RegexFault> {
        compile(&[text], options(names)).map_err(|error| error.fault)
    }

    /// The text of the first match, or `none`; compared with Python 3.11.
    fn first<'n>(text: &str, names: Names, name: &'n str) -> Result<&'n str, RegexFault> {
        Ok(compiled(text, names)?.find(Input::new(name)).map_or("none", |found| &name[found.range()]))
    }

    #[test]
    fn constructs_match_as_in_python() {
        let table = [
            (r"a\07b", "a\u{7}b", "a\u{7}b"),
            (r"\0", "a\0", "\0"),
            (r"a\056b", "axb a.b", "a.b"),
            (r"\0561", ".1", ".1"),
            (r"\101+", "xAA", "AA"),
            (r"[\b]", "b\u{8}", "\u{8}"),
            (r"[\101\7]+", "7A\u{7}", "A\u{7}"),
            (r"[\0560]+", "x.0", ".0"),
            (r"a{,2}b", "aaab", "aab"),
            ("a{,}", "aaa", "aaa"),
            ("a{2}", "aaa", "aa"),
            ("a{2,}?", "aaa", "aa"),
            ("a{b", "a{b", "a{b"),
            ("a{}", "a{}", "a{}"),
            ("a{1,b}", "a{1,b}", "a{1,b}"),
            ("{b}", "{b}", "{b}"),
            ("}]", "a}]", "}]"),
            ("[]a]+", "x]a", "]a"),
            ("[^]a]+", "]xa", "x"),
            ("[a[&&b]+", "[&b", "[&b"),
            ("[~~b||]+", "~|b", "~|b"),
            ("[+--a]+", "x-,b", "-,"),
            ("[--/]", "a.b", "."),
            ("[a-]+", "b-a", "-a"),
            ("[a-c-e]+", "d-ae", "-ae"),
            ("[a#b ]+", "c# ", "# "),
            ("[<>]+", "a<>", "<>"),
            (r"a\Z", "aa", "a"),
            (r"\Aa", "ba", "none"),
            (r"\<a\>", "<a>", "<a>"),
            (r"\x41\u0042\U00000043", "ABC", "ABC"),
            (r"\b\{x\}\B", "a{x}", "{x}"),
            (r"\b{start", "a{start", "{start"),
            ("a(?#note)*b", "aab", "aab"),
            ("(?i)(?s)A.", "xa\n", "a\n"),
            ("(?u)a(?i:B)(?-i:c)", "aBc", "aBc"),
            ("(?P<host>a)|b", "b", "b"),
            ("(?:a|b)*?c", "abc", "abc"),
            ("()*x", "x", "x"),
            ("a|*", "", "a repetition of nothing at column 3"),
            ("é+", "aéé", "éé"),
        ];
        for (text, name, want) in table {
            for names in BOTH {
                let got =
                    first(text, names, name).map(str::to_owned).unwrap_or_else(|fault| fault.to_string());
                assert_eq!(got, want, "{text} in {name:?}, {names:?}");
            }
        }
    }

    #[test]
    fn classes_of_text_are_those_of_unicode_and_of_bytes_are_ascii() {
        let table = [
            (r"\w+", "éa", "éa", "a"),
            (r"\d+", "\u{661}1", "\u{661}1", "1"),
            ("(?i)É", "é", "é", "none"),
            ("^.$", "é", "é", "none"),
        ];
        for (text, name, of_text, of_bytes) in table {
            assert_eq!(first(text, Names::Text, name), Ok(of_text), "{text}");
            assert_eq!(first(text, Names::UncheckedText, name), Ok(of_text), "{text}");
            assert_eq!(first(text, Names::Bytes, name), Ok(of_bytes), "{text}");
        }
        assert_eq!(first("[é-ü]", Names::Text, "ö"), Ok("ö"));
        assert_eq!(first(r"\xe9", Names::Bytes, "é"), Ok("é"));
    }

    #[test]
    fn unsupported_constructs_are_named_with_their_column() {
        let table = [
            ("é(?=b)", "a look-ahead at column 2"),
            ("(?!b)", "a look-ahead at column 1"),
            ("a(?<=b)", "a look-behind at column 2"),
            ("(?<!b)", "a look-behind at column 1"),
            (r"(a)\1", "a reference to a group at column 4"),
            ("(?P<n>a)(?P=n)", "a reference to a group at column 9"),
            ("(a)?(?(1)b|c)", "a condition at column 5"),
            ("(?>a)", "an atomic group at column 1"),
            ("a++", "a possessive repetition at column 2"),
            ("a{2}+", "a possessive repetition at column 2"),
            (r"a\N{DIGIT ONE}", "a character by its name at column 2"),
            ("(?x) a", "the flag `x` (spaces and comments) at column 1"),
        ];
        for (text, want) in table {
            for names in BOTH {
                let got = compiled(text, names).map(|_| ()).map_err(|fault| fault.to_string());
                assert_eq!(got, Err(format!("{want} is not supported")), "{text}");
            }
        }
        assert!(compiled("(?a)b", Names::Text).is_err() && compiled("(?a)b", Names::Bytes).is_ok());
        assert!(compiled("[é]", Names::Bytes).is_err());
    }

    #[test]
    fn mistakes_are_those_of_python() {
        let table = [
            ("(", "the `(` has no `)` at column 1"),
            ("a)", "a `)` without its `(` at column 2"),
            ("[a", "the `[` has no `]` at column 1"),
            ("[a-", "the `[` has no `]` at column 1"),
            ("[]", "the `[` has no `]` at column 1"),
            ("*a", "a repetition of nothing at column 1"),
            ("^*", "a repetition of nothing at column 2"),
            (r"\b+", "a repetition of nothing at column 3"),
            ("(?i)*", "a repetition of nothing at column 5"),
            ("{1}x", "a repetition of nothing at column 1"),
            ("a**", "a repetition of a repetition at column 3"),
            ("a{2}{3}", "a repetition of a repetition at column 5"),
            ("a*(?#b)?", "a repetition of a repetition at column 8"),
            ("a\\", "a backslash without a character after it at column 2"),
            (r"a\q", "an unknown escape at column 2"),
            (r"\z", "an unknown escape at column 1"),
            (r"\pL", "an unknown escape at column 1"),
            (r"[\Z]", "an unknown escape at column 2"),
            (r"[\8]", "an unknown escape at column 2"),
            (r"\777", "an octal escape above `\\377` at column 1"),
            (r"\x{41}", "an incomplete escape at column 1"),
            (r"\u12", "an incomplete escape at column 1"),
            (r"\ud800", "an incomplete escape at column 1"),
            ("(?P<1>a)", "a group without a valid name at column 1"),
            ("(?P<a", "a group without a valid name at column 1"),
            ("(?<n>a)", "an unknown kind of group at column 1"),
            ("(?)", "an unknown kind of group at column 1"),
            ("(?-:a)", "an unknown kind of group at column 1"),
            ("(?U)a", "an unknown kind of group at column 1"),
            ("(?i-m)a", "an unknown kind of group at column 1"),
            ("(?i", "the `(` has no `)` at column 1"),
            ("(?#a", "a comment without its `)` at column 1"),
            ("a(?i)b", "flags for all that are not at the start at column 2"),
        ];
        for (text, want) in table {
            for names in BOTH {
                let got = compiled(text, names).map(|_| ()).map_err(|fault| fault.to_string());
                assert_eq!(got, Err(want.to_owned()), "{text}");
            }
        }
        for text in ["a{3,2}", "[b-a]", r"[a-\d]", "(?P<n>a)(?P<n>b)", "a{99999999999}"] {
            assert!(matches!(compiled(text, Names::Text), Err(RegexFault::Syntax(_))), "{text}");
        }
    }

    #[test]
    fn length_size_and_nesting_are_limited() {
        let nested = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
        assert!(compiled(&"a".repeat(4096), Names::Text).is_ok());
        assert_eq!(compiled(&"a".repeat(4097), Names::Text).err(), Some(RegexFault::TooLong(4096)));
        assert!(compiled(&nested(NESTING_MAX as usize), Names::Text).is_ok());
        assert!(compiled(&nested(NESTING_MAX as usize + 1), Names::Text).is_err());
        for text in [r"(?:\w{900}){900}", "(?:(?:a{1000}){1000}){1000}"] {
            assert_eq!(compiled(text, Names::Text).err(), Some(RegexFault::TooLarge(1 << 20)), "{text}");
        }
    }

    #[test]
    fn classes_of_many_characters_are_limited_if_case_is_ignored() {
        let all = "[a-\u{10ffff}]";
        for text in
            [format!("(?i){all}"), all.repeat(500), format!("{all}{all}(?i)").replace("(?i)", "(?i:a)")]
        {
            assert!(compiled(&text, Names::Text).is_ok(), "{text}");
        }
        for text in [format!("(?i){all}{all}"), format!("(?i:{all})b{all}"), r"(?i)[\Wa][\Sa]".to_owned()] {
            let fault = compiled(&text, Names::Text).expect_err("too many");
            assert!(fault.to_string().starts_with("a class of so many characters"), "{text}: {fault}");
        }
        assert!(compiled(&format!("(?i)[{}]", r"\w".repeat(8)), Names::Text).is_ok());
        assert!(compiled(&r"(?i)[\W]".repeat(9)[..8], Names::Bytes).is_ok());
    }

    proptest! {
        #[test]
        fn any_text_is_an_expression_or_a_fault(text in "[-ab0-9é(){}|?*+<>=!:#,i^$.\\[\\]\\\\wWbxuPn]{0,24}", name in "[abé0-9-]{0,12}") {
            for names in [Names::Text, Names::UncheckedText, Names::Bytes] {
                match compiled(&text, names) {
                    Ok(regex) => {
                        let found = regex.find(Input::new(&name));
                        prop_assert!(names == Names::Bytes || found.is_none_or(|found| name.is_char_boundary(found.end())));
                    }
                    Err(fault) => prop_assert!(!fault.to_string().is_empty()),
                }
            }
        }
    }
}
