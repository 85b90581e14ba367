//! Expressions of carbon-c-relay to the syntax of our regular expressions (spec graphite §2.5, §8.1).
//!
//! The original is built with the C library's POSIX extended expressions or with PCRE2, and its users write for both. Each
//! construct is read as the library reads that knows it. Where both do and mean different things, the reading is
//! PCRE2's, and a [`Note`] says so; what only a backtracking engine can do (look-around, back references) is refused.
//! Both work on bytes, and so does the translation: a quantifier behind `é` repeats its last byte.
//!
//! Path: `translate` -> alternation -> branch -> piece -> atom, brackets as a set of bytes.
//! Invariant: any bytes give a translation that the `regex` crate can parse, or one [`Refusal`] within the expression;
//! depth and repetitions are bounded by the `_max` constants.

use std::ops::Range;

mod brackets;

/// Deepest nesting of parentheses.
pub const DEPTH_MAX: usize = 64;
/// Most groups that capture; the original has room for so many.
pub const GROUPS_MAX: usize = 63;
/// Largest number in `{…}`, as in the C library.
pub const REPEAT_MAX: u32 = 32_767;

/// An expression in the syntax of the `regex` crate, for bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Translated {
    /// What the crate reads.
    pub regex: String,
    /// Groups that capture, without group 0.
    pub groups: usize,
    /// Where builds of the original differ, or what surely was not meant.
    pub notes: Vec<Note>,
}

/// A place where a reader should look twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Bytes of the expression.
    pub at: Range<usize>,
    /// What is so.
    pub message: String,
    /// What to write.
    pub hint: String,
}

/// Why there is no translation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Bytes of the expression.
    pub at: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What to write, where that is clear.
    pub hint: Option<String>,
    /// The C library's words for it.
    pub upstream: &'static str,
}

impl Refusal {
    fn new(at: Range<usize>, message: &str, upstream: &'static str) -> Refusal {
        Refusal { at, message: message.into(), hint: None, upstream }
    }

    fn hint(mut self, hint: impl Into<String>) -> Refusal {
        self.hint = Some(hint.into());
        self
    }
}

/// Most quantifiers behind one atom: each puts what stands before it into one more group.
const STACKED_MAX: u32 = 8;

const NOT_REPEATABLE: &str = "Invalid preceding regular expression";

/// Translates an expression. With `captures` its groups are used, so that it matters which of several possible
/// matches is taken.
///
/// # Errors
/// The first construct that cannot be read, or that needs a backtracking engine.
pub fn translate(expression: &[u8], captures: bool) -> Result<Translated, Refusal> {
    let mut reader = Reader {
        text: expression,
        at: 0,
        captures,
        depth: 0,
        out: Translated { regex: "(?s-u)".into(), groups: 0, notes: Vec::new() },
    };
    reader.alternation()?;
    if reader.peek() == Some(b')') {
        let refusal = Refusal::new(reader.at..reader.at + 1, "this `)` closes nothing", "Unmatched ) or \\)");
        return Err(refusal.hint("write `\\)` for the character itself"));
    }
    Ok(reader.out)
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    captures: bool,
    depth: usize,
    out: Translated,
}

/// One branch of an alternation: its bytes when it is nothing else.
type Literal = Option<Vec<u8>>;

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn rest(&self) -> &[u8] {
        &self.text[self.at..]
    }

    fn note(&mut self, at: Range<usize>, message: impl Into<String>, hint: impl Into<String>) {
        self.out.notes.push(Note { at, message: message.into(), hint: hint.into() });
    }

    /// `branch | branch | …`, up to a `)` or the end.
    fn alternation(&mut self) -> Result<(), Refusal> {
        let start = self.at;
        let mut branches = vec![self.branch()?];
        while self.peek() == Some(b'|') {
            self.at += 1;
            self.out.regex.push('|');
            branches.push(self.branch()?);
        }
        if self.captures {
            self.note_order(start..self.at, &branches);
        }
        Ok(())
    }

    /// POSIX takes the longest of several branches, PCRE2 the first one.
    fn note_order(&mut self, at: Range<usize>, branches: &[Literal]) {
        let behind = match self.text.get(at.end + 1..) {
            // The end of the name decides.
            Some(b"$") => return,
            Some([b'\\', byte, ..]) if !byte.is_ascii_alphanumeric() => Some(*byte),
            Some([byte, rest @ ..]) if !b".[(*+?{|)\\^$".contains(byte) => {
                Some(*byte).filter(|_| !rest.first().is_some_and(|next| b"*?{".contains(next)))
            }
            _ => None,
        };
        // What has to stand behind the group decides when the longer branch goes on with something else.
        let shadows = |one: &[u8], later: &[u8]| {
            later.len() > one.len()
                && later.starts_with(one)
                && behind.is_none_or(|behind| behind == later[one.len()])
        };
        let shadowed = branches.iter().enumerate().any(|(place, one)| {
            let mut later = branches[place + 1..].iter().flatten();
            one.as_ref().is_some_and(|one| later.any(|later| shadows(one, later)))
        });
        if shadowed {
            let message = "the C library takes the longest of these, PCRE2 and we the first that fits";
            self.note(at, message, "write the longer ones first");
        }
    }

    fn branch(&mut self) -> Result<Literal, Refusal> {
        let mut literal = Some(Vec::new());
        while let Some(byte) = self.peek() {
            if byte == b'|' || byte == b')' {
                break;
            }
            let from = self.out.regex.len();
            let atom = self.atom(byte)?;
            let repeated = self.quantifiers(from, atom != Atom::Nothing)?;
            literal = match (literal, atom) {
                (Some(mut bytes), Atom::Byte(byte)) if !repeated => {
                    bytes.push(byte);
                    Some(bytes)
                }
                _ => None,
            };
        }
        Ok(literal)
    }

    fn atom(&mut self, byte: u8) -> Result<Atom, Refusal> {
        let start = self.at;
        match byte {
            b'(' => self.group(),
            b'[' => {
                let set = brackets::read(self)?;
                self.out.regex.push_str(&set);
                Ok(Atom::Other)
            }
            b'\\' => self.escape(),
            b'^' | b'$' | b'.' => {
                self.at += 1;
                self.out.regex.push(char::from(byte));
                Ok(if byte == b'.' { Atom::Other } else { Atom::Nothing })
            }
            b'*' | b'+' | b'?' | b'{' => {
                let refusal = Refusal::new(start..start + 1, "nothing stands here to repeat", NOT_REPEATABLE);
                let sign = char::from(byte);
                Err(refusal.hint(format!(
                    "write `\\{sign}` for the character itself, or `.{sign}` for any characters"
                )))
            }
            _ => {
                self.at += 1;
                push_byte(&mut self.out.regex, byte);
                Ok(Atom::Byte(byte))
            }
        }
    }

    fn group(&mut self) -> Result<Atom, Refusal> {
        let start = self.at;
        self.at += 1;
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let message = format!("parentheses are nested more than {DEPTH_MAX} deep");
            return Err(Refusal::new(start..start + 1, &message, "Regular expression too big"));
        }
        if self.peek() == Some(b'?') {
            if self.perl_group(start)? {
                self.depth -= 1;
                return Ok(Atom::Nothing);
            }
        } else {
            self.capture(start)?;
        }
        self.alternation()?;
        if self.peek() != Some(b')') {
            let refusal = Refusal::new(start..start + 1, "this `(` is not closed", "Unmatched ( or \\(");
            return Err(refusal.hint("add `)`, or write `\\(` for the character itself"));
        }
        self.at += 1;
        self.depth -= 1;
        self.out.regex.push(')');
        Ok(Atom::Other)
    }

    fn capture(&mut self, start: usize) -> Result<(), Refusal> {
        self.out.groups += 1;
        if self.out.groups > GROUPS_MAX {
            let message = format!("an expression has at most {GROUPS_MAX} groups");
            return Err(Refusal::new(start..start + 1, &message, "too many match groups"));
        }
        self.out.regex.push('(');
        Ok(())
    }

    /// What begins with `(?`, which only PCRE2 knows. True when it was a switch such as `(?i)`, without a body.
    fn perl_group(&mut self, start: usize) -> Result<bool, Refusal> {
        let rest = &self.text[start..];
        for (sign, what) in [
            (&b"(?="[..], "look-ahead"),
            (b"(?!", "look-ahead"),
            (b"(?<=", "look-behind"),
            (b"(?<!", "look-behind"),
            (b"(?>", "an atomic group"),
            (b"(?|", "a branch reset"),
            (b"(?(", "a condition"),
            (b"(?R", "recursion"),
        ] {
            if rest.starts_with(sign) {
                return Err(backtracking(start..start + sign.len(), what));
            }
        }
        for sign in [&b"(?:"[..], b"(?i:", b"(?i)"] {
            if rest.starts_with(sign) {
                self.at = start + sign.len();
                self.out.regex.extend(sign.iter().map(|byte| char::from(*byte)));
                return Ok(sign.ends_with(b")"));
            }
        }
        let named = [&b"(?P<"[..], b"(?<"].into_iter().find(|sign| rest.starts_with(sign));
        if let Some(sign) = named
            && let Some(end) = rest.iter().position(|byte| *byte == b'>')
            && rest[sign.len()..end].iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
            && end > sign.len()
        {
            self.at = start + end + 1;
            self.capture(start)?;
            return Ok(false);
        }
        let refusal = Refusal::new(start..start + 2, "this kind of group is not known here", NOT_REPEATABLE);
        Err(refusal.hint("known are (…), (?:…), (?i:…), (?i) and (?<name>…)"))
    }

    fn escape(&mut self) -> Result<Atom, Refusal> {
        let at = self.at..self.at + 2;
        let Some(&byte) = self.text.get(self.at + 1) else {
            let refusal =
                Refusal::new(self.at..self.at + 1, "nothing stands behind this `\\`", "Trailing backslash");
            return Err(
                refusal.hint("write `\\\\` for the character itself; in quotes each `\\` is written twice")
            );
        };
        self.at += 2;
        match byte {
            b'w' | b'W' | b's' | b'S' | b'd' | b'D' => {
                if byte.eq_ignore_ascii_case(&b'd') {
                    let letter = char::from(byte);
                    let class = if byte == b'd' { "[0-9]" } else { "[^0-9]" };
                    let message = format!(
                        "`\\{letter}` is read as `{class}`; builds with the C library read the letter `{letter}`"
                    );
                    self.note(at, message, format!("write `{class}`, which all builds read alike"));
                }
                self.out.regex.extend(['\\', char::from(byte)]);
                Ok(Atom::Other)
            }
            b'b' | b'B' => self.out.zero_width(&format!("\\{}", char::from(byte))),
            b'<' => self.out.zero_width("\\b{start}"),
            b'>' => self.out.zero_width("\\b{end}"),
            b'`' | b'A' => self.out.zero_width("\\A"),
            b'\'' | b'z' | b'Z' => self.out.zero_width("\\z"),
            b'1'..=b'9' => Err(backtracking(at, "a back reference")),
            b't' | b'n' | b'r' | b'f' | b'v' | b'a' => {
                let letter = char::from(byte);
                let message = format!(
                    "`\\{letter}` is a control character, which no name has; builds with the C library read the letter"
                );
                self.note(at, message, format!("write `{letter}`"));
                self.out.regex.extend(['\\', letter]);
                Ok(Atom::Other)
            }
            b'x' if self.rest().len() >= 2 && self.rest()[..2].iter().all(u8::is_ascii_hexdigit) => {
                self.note(
                    at,
                    "builds with the C library read `\\x` as the letter",
                    "write the character itself",
                );
                self.out.regex.push_str("\\x");
                self.out
                    .regex
                    .extend(self.rest()[..2].iter().map(|byte| char::from(*byte)).collect::<Vec<_>>());
                self.at += 2;
                Ok(Atom::Other)
            }
            _ if byte.is_ascii_alphanumeric() => {
                let letter = char::from(byte);
                let message = format!("`\\{letter}` is read as the letter `{letter}`, as the C library does");
                self.note(
                    at,
                    message,
                    format!("write `{letter}`, or `[[:space:]]` and the like for a class"),
                );
                push_byte(&mut self.out.regex, byte);
                Ok(Atom::Byte(byte))
            }
            _ => {
                push_byte(&mut self.out.regex, byte);
                Ok(Atom::Byte(byte))
            }
        }
    }

    /// All quantifiers behind an atom that began at `from` in the output. True when there was one.
    fn quantifiers(&mut self, from: usize, repeatable: bool) -> Result<bool, Refusal> {
        let (mut before, mut count) = (None, 0);
        while let Some(repeat) = self.quantifier()? {
            let at = self.at - repeat.bytes..self.at;
            count += 1;
            if !repeatable || count > STACKED_MAX {
                let message = if repeatable {
                    format!("at most {STACKED_MAX} quantifiers can stand in a row")
                } else {
                    "nothing stands here that can be repeated".into()
                };
                return Err(Refusal::new(at, &message, NOT_REPEATABLE));
            }
            if let Some(least) = before
                && repeat.text == "?"
            {
                self.note_lazy(at, least);
                self.out.regex.push('?');
                before = None;
                continue;
            }
            if count > 1 {
                if repeat.text == "+" {
                    let message = "`+` behind a quantifier repeats it, as in the C library; builds with PCRE2 read it \
                        as possessive";
                    self.note(at, message, "leave it out");
                }
                self.wrap(from);
            }
            self.out.regex.push_str(&repeat.text);
            before = Some(repeat.least);
        }
        Ok(count > 0)
    }

    fn note_lazy(&mut self, at: Range<usize>, least: u32) {
        if self.captures || least > 0 {
            let message = "`?` behind a quantifier takes as little as possible; builds with the C library read it as \
                `(…)?`";
            let hint = "leave it out, or say with the class before it where to stop, such as [^.]*";
            self.note(at, message, hint);
        }
    }

    /// Puts what was written from `from` on into a group of its own.
    fn wrap(&mut self, from: usize) {
        self.out.regex.insert_str(from, "(?:");
        self.out.regex.push(')');
    }

    fn quantifier(&mut self) -> Result<Option<Repeat>, Refusal> {
        let (text, least) = match self.peek() {
            Some(b'*') => ("*".to_owned(), 0),
            Some(b'+') => ("+".to_owned(), 1),
            Some(b'?') => ("?".to_owned(), 0),
            Some(b'{') => return self.interval().map(Some),
            _ => return Ok(None),
        };
        self.at += 1;
        Ok(Some(Repeat { text, least, bytes: 1 }))
    }

    /// `{n}`, `{n,}`, `{,m}` or `{n,m}`.
    fn interval(&mut self) -> Result<Repeat, Refusal> {
        let start = self.at;
        let Some(end) = self.rest().iter().position(|byte| *byte == b'}') else {
            let refusal = Refusal::new(start..start + 1, "this `{` is not closed", "Unmatched \\{");
            return Err(refusal.hint("write `\\{` for the character itself"));
        };
        let inner = String::from_utf8_lossy(&self.text[start + 1..start + end]).into_owned();
        let at = start..start + end + 1;
        let (least, most) = inner.split_once(',').map_or((&*inner, &*inner), |(least, most)| (least, most));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(least) || !is_number(most) || (least.is_empty() && most.is_empty() && inner != ",") {
            let refusal = Refusal::new(at, "this is no number of repetitions", "Invalid content of \\{\\}");
            return Err(refusal.hint("write {2}, {2,} or {2,5}, or `\\{` for the character itself"));
        }
        let number = |text: &str, empty: Option<u32>| match text {
            "" => Ok(empty),
            text => match text.parse::<u32>() {
                Ok(number) if number <= REPEAT_MAX => Ok(Some(number)),
                _ => Err(Refusal::new(
                    at.clone(),
                    &format!("at most {REPEAT_MAX} repetitions can be asked for"),
                    "Regular expression too big",
                )),
            },
        };
        let (least, most) = (number(least, Some(0))?.unwrap_or(0), number(most, None)?);
        if most.is_some_and(|most| most < least) {
            let refusal = Refusal::new(at, "the most is smaller than the least", "Invalid content of \\{\\}");
            return Err(refusal.hint(format!("write {{{},{least}}}", most.unwrap_or(0))));
        }
        self.at = at.end;
        let text = match most {
            Some(most) if most == least => format!("{{{least}}}"),
            Some(most) => format!("{{{least},{most}}}"),
            None => format!("{{{least},}}"),
        };
        Ok(Repeat { text, least, bytes: end + 1 })
    }
}

impl Translated {
    fn zero_width(&mut self, text: &str) -> Result<Atom, Refusal> {
        self.regex.push_str(text);
        Ok(Atom::Nothing)
    }
}

/// What a piece of a branch is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Atom {
    /// One byte, itself.
    Byte(u8),
    /// A place between two bytes.
    Nothing,
    Other,
}

/// A quantifier as the `regex` crate writes it.
struct Repeat {
    text: String,
    least: u32,
    /// Its bytes in the expression.
    bytes: usize,
}

fn backtracking(at: Range<usize>, what: &str) -> Refusal {
    let message =
        format!("{what} needs an engine that can run for ever on some names, so it is not supported");
    Refusal::new(at, &message, NOT_REPEATABLE)
        .hint("split it into several rules: what must not match goes first, into a rule that stops")
}

/// A byte as the `regex` crate reads it.
fn push_byte(out: &mut String, byte: u8) {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => out.push(char::from(byte)),
        b' ' | b'/' | b':' | b',' | b'=' | b';' | b'%' | b'@' | b'!' | b'"' | b'\'' | b'<' | b'>' => {
            out.push(char::from(byte));
        }
        0x21..=0x7e => out.extend(['\\', char::from(byte)]),
        _ => out.push_str(&format!("\\x{byte:02X}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regex(text: &str) -> Result<regex::bytes::Regex, Refusal> {
        let translated = translate(text.as_bytes(), false)?;
        Ok(regex::bytes::Regex::new(&translated.regex).unwrap_or_else(|wrong| panic!("{text}: {wrong}")))
    }

    #[test]
    fn expressions_match_what_posix_says() {
        let table: &[(&str, &[&str], &[&str])] = &[
            ("^a\\.([a-z]+)\\.(.*)$", &["a.b.c"], &["a.B.c", "xa.b.c"]),
            ("a.c", &["abc", "a\nc"], &["ac"]),
            ("(web|db)[0-9]{2,3}\\.", &["web01.", "db123."], &["web1."]),
            ("[[:alpha:]_]+-[[:digit:]]", &["ab_-1"], &["-1", "a-b"]),
            ("^[^.]+$", &["abc"], &["a.b"]),
            ("[]a]x", &["]x", "ax"], &["bx"]),
            ("^[^]a]x", &["bx"], &["]x"]),
            ("^[a-]+$", &["a-"], &["b"]),
            ("^[\\.]+$", &["."], &["a", "\\"]),
            ("^[a\\-z]+$", &["a-z"], &["b"]),
            ("^[\\d]+$", &["12"], &["d"]),
            ("[[.a.]]+.[[=b=]]", &["axb"], &["a"]),
            ("^[a&&b[]+$", &["a&b["], &["c"]),
            ("a{,2}b$", &["b", "aab"], &["c"]),
            ("^a{2}{3}$", &["aaaaaa"], &["aaaaa"]),
            ("^(a**|b+*)$", &["", "aaa", "bb"], &["ab"]),
            ("^a{1}.\\d\\w\\s?$", &["ab1c"], &["abcd"]),
            ("\\<cpu\\>", &["a.cpu.b"], &["a.cpus"]),
            ("\\bcpu\\b", &["a.cpu.b"], &["a.cpus"]),
            ("a]b}c", &["a]b}c"], &[]),
            ("^(a|)b$", &["ab", "b"], &["cb"]),
            ("^()b$", &["b"], &[]),
            ("(^a|b$)", &["ax", "xb"], &["xay"]),
            ("a^b", &[], &["a^b", "ab"]),
            ("(?i)CPU", &["cpu"], &["cp"]),
            ("(?i:CPU).x", &["cpu.x"], &["cpu.X"]),
            ("(?:a|b)+c$", &["abc"], &["c"]),
            ("(?P<host>a+).(?<x>b)", &["aab", "a.b"], &["b"]),
            ("^a+?b*?c??$", &["aabc"], &["b"]),
            ("é+$", &["é", "xé"], &["e"]),
            ("^\\.\\-\\/\\:\\ \\#\\\"$", &[".-/: #\""], &[]),
            ("^\\q.$", &["qx"], &[]),
        ];
        for (text, yes, no) in table {
            let regex = regex(text).unwrap_or_else(|refusal| panic!("{text}: {refusal:?}"));
            for name in *yes {
                assert!(regex.is_match(name.as_bytes()), "{text} finds {name:?}: {}", regex.as_str());
            }
            for name in *no {
                assert!(
                    !regex.is_match(name.as_bytes()),
                    "{text} does not find {name:?}: {}",
                    regex.as_str()
                );
            }
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused_where_it_stands() {
        let table: &[(&str, Range<usize>)] = &[
            ("*a", 0..1),
            ("a(*b)", 2..3),
            ("a|*b", 2..3),
            ("^*a", 1..2),
            ("a\\b*", 3..4),
            ("{2}", 0..1),
            ("x(a", 1..2),
            ("x)a", 1..2),
            ("x[a", 1..2),
            ("x[]", 1..2),
            ("a[[:foo:]]", 2..9),
            ("[[.hyphen.]]", 1..11),
            ("[z-a]", 1..4),
            ("[a-c-e]", 1..4),
            ("[a-\\d]", 1..5),
            ("a{", 1..2),
            ("a{x}", 1..4),
            ("a{2,1}", 1..6),
            ("a{40000}", 1..8),
            ("a{99999999999}", 1..14),
            ("a\\", 1..2),
            ("(a)\\1", 3..5),
            ("a(?=b)", 1..4),
            ("(?<!b)a", 0..4),
            ("(?>a)", 0..3),
            ("(?x)a", 0..2),
            ("a*********", 9..10),
        ];
        for (text, at) in table {
            let refusal = translate(text.as_bytes(), true).expect_err(text);
            assert_eq!(refusal.at, *at, "{text}: {refusal:?}");
        }
        assert!(translate("(a)".repeat(GROUPS_MAX).as_bytes(), true).is_ok());
        assert!(translate("(a)".repeat(GROUPS_MAX + 1).as_bytes(), true).is_err());
        assert!(translate("(?:".repeat(DEPTH_MAX + 1).as_bytes(), true).is_err());
        assert!(regex(&format!("{}a{}", "(?:".repeat(DEPTH_MAX), ")".repeat(DEPTH_MAX))).is_ok());
    }

    #[test]
    fn a_note_says_where_builds_differ() {
        let table: &[(&str, bool, &str)] = &[
            ("a\\d", false, "\\d"),
            ("a[\\d]", false, "\\d"),
            ("[\\]a]", false, "\\]"),
            ("[\\-a]", false, "\\-"),
            ("[a\\-]", false, ""),
            ("[:alpha:]", false, "[:alpha:]"),
            ("a.*?b", false, ""),
            ("a.*?b", true, "?"),
            ("a.+?b", false, "?"),
            ("a.++b", false, "+"),
            ("a\\n", false, "\\n"),
            ("(sys|system)x", true, ""),
            ("(sys|system)t", true, "sys|system"),
            ("(sys|system).*", true, "sys|system"),
            ("(sys|system)\\.", true, ""),
            ("(sys|system)$", true, ""),
            ("(system|sys).*", true, ""),
            ("(sys|system).*", false, ""),
            ("^a\\.(x|y)\\.(.*)$", true, ""),
        ];
        for (text, captures, want) in table {
            let notes = translate(text.as_bytes(), *captures).unwrap().notes;
            let noted: Vec<&str> = notes.into_iter().map(|note| &text[note.at]).collect();
            assert_eq!(noted.concat(), *want, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_translate_or_are_refused(
            text in "(?s)([ab().*+?{}|^$\\\\\\[\\]0-9,:=-]|\\(\\?:|\\[:alpha:\\]|.){0,40}",
        ) {
            match translate(text.as_bytes(), true) {
                Ok(translated) => {
                    let built = regex::bytes::RegexBuilder::new(&translated.regex).size_limit(1 << 20).build();
                    if let Err(wrong) = built {
                        proptest::prop_assert!(matches!(wrong, regex::Error::CompiledTooBig(_)), "{text:?}: {wrong}");
                    }
                }
                Err(refusal) => proptest::prop_assert!(refusal.at.end <= text.len().max(1) + 1, "{text:?}: {refusal:?}"),
            }
        }
    }
}
