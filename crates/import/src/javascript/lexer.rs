//! Splits configuration files in JavaScript or JSON into tokens.
//!
//! The whole text is split at once, so that the parser can look ahead. Invariant: any text gives tokens or one
//! [`Fault`]; the last token is always [`Kind::End`]. Not here: the meaning of tokens (`interpreter`).

use config::diagnostic::Place;

use super::fault::Fault;
use super::number;

/// Which language is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grammar {
    JavaScript,
    /// RFC 8259, as `JSON.parse`.
    Json,
    /// Also `#` comments, trailing commas, and TAB in texts (JSON::XS `relaxed`).
    PerlJson,
}

/// One token.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub kind: Kind,
    pub place: Place,
    /// A line ends before this token: JavaScript may insert a missing `;` here.
    pub newline_before: bool,
}

/// Kind of a token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// Name or keyword.
    Word(String),
    Number(f64),
    /// Text in quotes, escapes resolved.
    Text(String),
    /// A piece of a template: `first` is the piece that begins it; after the `last` one there is no `${`.
    Template {
        text: String,
        first: bool,
        last: bool,
    },
    /// A regular expression as written, slashes and flags included.
    Regex(String),
    /// Operator or bracket.
    Sign(&'static str),
    End,
}

/// Operators and brackets, longer ones before their prefixes.
const SIGNS: &[&str] = &[
    ">>>=", "...", "===", "!==", "**=", "<<=", ">>=", ">>>", "&&=", "||=", "??=", "=>", "==", "!=", "<=",
    ">=", "&&", "||", "??", "?.", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<", ">>",
    "**", "{", "}", "(", ")", "[", "]", ".", ";", ",", "<", ">", "+", "-", "*", "/", "%", "&", "|", "^", "!",
    "~", "?", ":", "=", "@",
];

/// Splits all of `text`.
pub(super) fn tokens(text: &str, grammar: Grammar) -> Result<Vec<Token>, Fault> {
    let mut lexer = Lexer { text, grammar, at: 0, braces: Vec::new(), tokens: Vec::new() };
    if grammar != Grammar::Json && text.starts_with('\u{feff}') {
        lexer.at = '\u{feff}'.len_utf8();
    }
    while lexer.token()? {}
    Ok(lexer.tokens)
}

struct Lexer<'a> {
    text: &'a str,
    grammar: Grammar,
    at: usize,
    /// Open braces; true for one that a template's `${` opened.
    braces: Vec<bool>,
    tokens: Vec<Token>,
}

impl Lexer<'_> {
    /// Reads one token; false at the end of the text.
    fn token(&mut self) -> Result<bool, Fault> {
        let newline_before = self.blank()?;
        let start = self.at;
        let kind = match self.peek() {
            None => Kind::End,
            Some(c) if self.grammar != Grammar::JavaScript => self.json(c)?,
            Some(quote @ ('"' | '\'')) => self.quoted(quote)?,
            Some('`') => {
                self.at += 1;
                self.template(start)?
            }
            Some('}') if self.braces.last() == Some(&true) => {
                self.at += 1;
                self.braces.pop();
                self.template(start)?
            }
            Some(c) if c.is_ascii_digit() || (c == '.' && self.digit_at(self.at + 1)) => self.number()?,
            Some(c) if starts_word(c) => self.word(),
            Some('/') if self.regex_may_stand_here() => self.regex()?,
            Some(c) => self.sign(c)?,
        };
        let more = kind != Kind::End;
        self.tokens.push(Token { kind, place: Place { start, end: self.at }, newline_before });
        Ok(more)
    }

    /// A token of JSON that begins with `c`. Words are the parser's mistakes, unless JSON has them.
    fn json(&mut self, c: char) -> Result<Kind, Fault> {
        match c {
            '"' => self.quoted(c),
            '-' | '.' | '0'..='9' => self.number(),
            '{' | '}' | '[' | ']' | ':' | ',' => self.sign(c),
            _ if starts_word(c) => Ok(self.word()),
            _ => {
                let place = Place { start: self.at, end: self.at + c.len_utf8() };
                let message = format!("`{}` is not JSON", c.escape_debug());
                let fault = Fault::syntax(place, message, "not known here");
                Err(match c {
                    '\'' => fault.hint("strings and keys need double quotes here"),
                    '/' => fault.hint("comments begin with `#` here"),
                    _ => fault,
                })
            }
        }
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn digit_at(&self, at: usize) -> bool {
        self.text.as_bytes().get(at).is_some_and(u8::is_ascii_digit)
    }

    /// Skips white space and comments; true when a line ended in them.
    fn blank(&mut self) -> Result<bool, Fault> {
        let mut newline = false;
        let is_javascript = self.grammar == Grammar::JavaScript;
        let is_space =
            if is_javascript { number::is_space } else { |c| matches!(c, ' ' | '\t' | '\r' | '\n') };
        loop {
            let start = self.at;
            if is_javascript && self.rest().starts_with("//") {
                self.at += self.rest().find(is_line_end).unwrap_or(self.rest().len());
            } else if self.grammar == Grammar::PerlJson && self.rest().starts_with('#') {
                self.at += self.rest().find('\n').unwrap_or(self.rest().len());
            } else if is_javascript && self.rest().starts_with("/*") {
                let Some(end) = self.rest()[2..].find("*/") else {
                    let place = Place { start, end: start + 2 };
                    return Err(Fault::syntax(place, "this comment has no end", "`*/` is missing"));
                };
                newline |= self.rest()[..end + 2].contains(is_line_end);
                self.at += end + 4;
            } else {
                match self.peek() {
                    Some(c) if is_space(c) => {
                        newline |= is_line_end(c);
                        self.at += c.len_utf8();
                    }
                    _ => return Ok(newline),
                }
            }
        }
    }

    fn word(&mut self) -> Kind {
        let rest = self.rest();
        let end = rest.find(|c| !continues_word(c)).unwrap_or(rest.len());
        let word = rest[..end].to_owned();
        self.at += end;
        Kind::Word(word)
    }

    fn sign(&mut self, c: char) -> Result<Kind, Fault> {
        let Some(&sign) = SIGNS.iter().find(|sign| self.rest().starts_with(**sign)) else {
            let place = Place { start: self.at, end: self.at + c.len_utf8() };
            let message = format!("`{}` is not JavaScript", c.escape_debug());
            let fault = Fault::syntax(place, message, "not known here");
            let hint = "comments begin with `//`; `#` is Net::Statsd::Server's (Perl) form";
            return Err(if c == '#' { fault.hint(hint) } else { fault });
        };
        // `a?.5:b` is a conditional with the number .5, as in JavaScript.
        let sign = if sign == "?." && self.digit_at(self.at + 2) { "?" } else { sign };
        self.at += sign.len();
        match sign {
            "{" => self.braces.push(false),
            "}" => {
                self.braces.pop();
            }
            _ => {}
        }
        Ok(Kind::Sign(sign))
    }

    /// A `/` begins a regular expression where a value may begin, and divides after a value.
    fn regex_may_stand_here(&self) -> bool {
        match self.tokens.last().map(|token| &token.kind) {
            None => true,
            Some(Kind::Sign(sign)) => !matches!(*sign, ")" | "]" | "}"),
            Some(Kind::Word(word)) => matches!(word.as_str(), "return" | "typeof" | "void" | "in" | "of"),
            Some(Kind::Template { last, .. }) => !last,
            Some(Kind::Number(_) | Kind::Text(_) | Kind::Regex(_) | Kind::End) => false,
        }
    }

    fn regex(&mut self) -> Result<Kind, Fault> {
        let start = self.at;
        self.at += 1;
        let mut in_class = false;
        loop {
            match self.next() {
                Some('/') if !in_class => break,
                Some('[') => in_class = true,
                Some(']') => in_class = false,
                Some('\\') if self.peek().is_some_and(|c| !is_line_end(c)) => {
                    self.next();
                }
                Some(c) if !is_line_end(c) => {}
                _ => {
                    let place = Place { start, end: start + 1 };
                    return Err(Fault::syntax(place, "this regular expression has no end", "`/` is missing"));
                }
            }
        }
        while self.peek().is_some_and(continues_word) {
            self.next();
        }
        Ok(Kind::Regex(self.text[start..self.at].to_owned()))
    }

    fn number(&mut self) -> Result<Kind, Fault> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        // Only JSON's numbers begin with a sign; JavaScript has an operator for it.
        let mut end = start + usize::from(bytes[start] == b'-');
        while let Some(byte) = bytes.get(end) {
            let exponent_sign = matches!(byte, b'+' | b'-')
                && matches!(bytes[end - 1], b'e' | b'E')
                && !bytes[start..].starts_with(b"0x")
                && !bytes[start..].starts_with(b"0X");
            if !(byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_') || exponent_sign) {
                break;
            }
            end += 1;
        }
        self.at = end;
        let written = &self.text[start..end];
        let place = Place { start, end };
        let is_json = self.grammar != Grammar::JavaScript;
        if !is_json
            && written.ends_with('n')
            && written[..written.len() - 1].bytes().all(|b| b.is_ascii_digit())
        {
            return Err(Fault::unsupported(
                place,
                format!("`{written}` is a BigInt, which is not supported here"),
            ));
        }
        match if is_json { json_literal(written) } else { literal(written) } {
            Some(number) if !self.peek().is_some_and(continues_word) => Ok(Kind::Number(number)),
            _ => Err(Fault::syntax(place, format!("`{written}` is not a number"), "not a number")),
        }
    }

    fn quoted(&mut self, quote: char) -> Result<Kind, Fault> {
        let start = self.at;
        self.at += 1;
        let is_json = self.grammar != Grammar::JavaScript;
        let mut text = String::new();
        loop {
            match self.next() {
                Some(c) if c == quote => return Ok(Kind::Text(text)),
                Some('\\') if is_json && !self.json_escape_follows() => {
                    let place = Place { start: self.at - 1, end: self.at };
                    return Err(Fault::syntax(place, "this escape is not JSON", "not an escape"));
                }
                Some('\\') => self.escape(&mut text, false)?,
                Some('\t') if self.grammar == Grammar::PerlJson => text.push('\t'),
                Some('\0'..='\u{1f}') if is_json => {
                    let place = Place { start: self.at - 1, end: self.at };
                    let message = "line ends and control characters need an escape in a string";
                    return Err(Fault::syntax(place, message, "needs an escape"));
                }
                Some('\n' | '\r') | None => {
                    let place = Place { start, end: start + 1 };
                    return Err(Fault::syntax(
                        place,
                        "this string has no end",
                        format!("`{quote}` is missing"),
                    ));
                }
                Some(c) => text.push(c),
            }
        }
    }

    /// After a backslash: whether JSON has this escape.
    fn json_escape_follows(&self) -> bool {
        self.rest().starts_with(['"', '\\', '/', 'b', 'f', 'n', 'r', 't', 'u'])
            && !self.rest().starts_with("u{")
    }

    /// The piece of a template from here to its `${` or its end; `start` is the start of the template.
    fn template(&mut self, start: usize) -> Result<Kind, Fault> {
        let first = self.text[start..].starts_with('`');
        let mut text = String::new();
        loop {
            match self.next() {
                Some('`') => return Ok(Kind::Template { text, first, last: true }),
                Some('$') if self.peek() == Some('{') => {
                    self.at += 1;
                    self.braces.push(true);
                    return Ok(Kind::Template { text, first, last: false });
                }
                Some('\\') => self.escape(&mut text, true)?,
                Some('\r') => {
                    // CRLF and CR are one LF in a template.
                    if self.peek() != Some('\n') {
                        text.push('\n');
                    }
                }
                Some(c) => text.push(c),
                None => {
                    let place = Place { start, end: start + 1 };
                    return Err(Fault::syntax(place, "this template has no end", "` is missing"));
                }
            }
        }
    }

    /// An escape, after its backslash.
    fn escape(&mut self, text: &mut String, template: bool) -> Result<(), Fault> {
        let start = self.at - 1;
        let bad = |end| Fault::syntax(Place { start, end }, "this escape is not valid", "not an escape");
        let Some(c) = self.next() else {
            return Err(bad(start + 1));
        };
        match c {
            'n' => text.push('\n'),
            'r' => text.push('\r'),
            't' => text.push('\t'),
            'b' => text.push('\u{8}'),
            'f' => text.push('\u{c}'),
            'v' => text.push('\u{b}'),
            // A continued line: neither the backslash nor the line end counts.
            '\r' => {
                if self.peek() == Some('\n') {
                    self.at += 1;
                }
            }
            '\n' | '\u{2028}' | '\u{2029}' => {}
            'x' => {
                let code = self.hex(2).ok_or_else(|| bad(self.at))?;
                text.push(char::from_u32(code).unwrap_or('\u{fffd}'));
            }
            'u' => {
                let code = self.unicode().ok_or_else(|| bad(self.at))?;
                text.push(char::from_u32(code).unwrap_or('\u{fffd}'));
            }
            '0'..='9' if template && (c != '0' || self.digit_at(self.at)) => return Err(bad(self.at)),
            '0'..='7' => text.push(self.octal(c)),
            other => text.push(other),
        }
        Ok(())
    }

    /// An octal escape, as sloppy JavaScript reads it: up to three digits, at most 255.
    fn octal(&mut self, first: char) -> char {
        let mut code = first.to_digit(8).unwrap_or(0);
        let most = if first <= '3' { 2 } else { 1 };
        for _ in 0..most {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(8)) else { break };
            self.at += 1;
            code = code * 8 + digit;
        }
        char::from_u32(code).unwrap_or('\u{fffd}')
    }

    fn hex(&mut self, digits: usize) -> Option<u32> {
        let digits = self.rest().get(..digits).filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()))?;
        let code = u32::from_str_radix(digits, 16).ok()?;
        self.at += digits.len();
        Some(code)
    }

    /// After `\u`: four digits or `{digits}`; two escapes of a surrogate pair are one character.
    fn unicode(&mut self) -> Option<u32> {
        if self.peek() == Some('{') {
            let end = self.rest().find('}')?;
            let code =
                u32::from_str_radix(self.rest().get(1..end)?, 16).ok().filter(|code| *code <= 0x10_ffff)?;
            self.at += end + 1;
            return Some(code);
        }
        let high = self.hex(4)?;
        if !(0xd800..0xdc00).contains(&high) || !self.rest().starts_with("\\u") {
            return Some(high);
        }
        let back = self.at;
        self.at += 2;
        match self.hex(4) {
            Some(low) if (0xdc00..0xe000).contains(&low) => {
                Some(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00))
            }
            _ => {
                self.at = back;
                Some(high)
            }
        }
    }
}

/// The value of a JavaScript number literal; none when it is not one.
fn literal(written: &str) -> Option<f64> {
    let separated = written.contains('_');
    let bytes = written.as_bytes();
    let digit = |at: Option<&u8>| at.is_some_and(u8::is_ascii_hexdigit);
    let misplaced = |(at, byte): (usize, &u8)| {
        *byte == b'_' && !(at > 0 && digit(bytes.get(at - 1)) && digit(bytes.get(at + 1)))
    };
    if separated && bytes.iter().enumerate().any(misplaced) {
        return None;
    }
    let plain = written.replace('_', "");
    if let Some((radix, digits)) = number::radix_prefix(&plain) {
        return number::integer(digits, radix);
    }
    // `0755` is octal, as in sloppy JavaScript, and has no fraction; `089` and `08.5` are decimal.
    let whole = plain.bytes().take_while(u8::is_ascii_digit).count();
    if whole > 1 && plain.starts_with('0') {
        if separated {
            return None;
        }
        if plain[..whole].bytes().all(|byte| byte < b'8') {
            return number::integer(&plain, 8);
        }
    }
    number::decimal_prefix(&plain).filter(|(_, length)| *length == plain.len()).map(|(number, _)| number)
}

/// The value of a number of JSON; none when it is not one.
fn json_literal(written: &str) -> Option<f64> {
    let (whole, fraction) = written.split_once('.').unwrap_or((written, "0"));
    let digits = whole.strip_prefix('-').unwrap_or(whole).as_bytes();
    let is_zero_led = digits.len() > 1 && digits[0] == b'0' && digits[1].is_ascii_digit();
    let is_json = digits.first().is_some_and(u8::is_ascii_digit)
        && !is_zero_led
        && fraction.as_bytes().first().is_some_and(u8::is_ascii_digit);
    written.parse().ok().filter(|_| is_json)
}

fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

fn starts_word(c: char) -> bool {
    c == '$' || c == '_' || c.is_alphabetic()
}

fn continues_word(c: char) -> bool {
    starts_word(c) || c.is_alphanumeric() || matches!(c, '\u{200c}' | '\u{200d}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Result<Vec<Kind>, Fault> {
        let mut kinds: Vec<Kind> =
            tokens(text, Grammar::JavaScript)?.into_iter().map(|token| token.kind).collect();
        assert_eq!(kinds.pop(), Some(Kind::End));
        Ok(kinds)
    }

    fn one(text: &str) -> Option<Kind> {
        kinds(text).ok().filter(|kinds| kinds.len() == 1).and_then(|mut kinds| kinds.pop())
    }

    #[test]
    fn number_literals_are_read() {
        let table: &[(&str, f64)] = &[
            ("0", 0.0),
            ("8125", 8125.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("1e3", 1000.0),
            ("1E-2", 0.01),
            ("1e+2", 100.0),
            ("0x1F", 31.0),
            ("0xe", 14.0),
            ("0o17", 15.0),
            ("0b101", 5.0),
            ("0777", 511.0),
            ("089", 89.0),
            ("08.5", 8.5),
            ("1_000_000", 1_000_000.0),
            ("0xff_ff", 65535.0),
        ];
        for (text, want) in table {
            assert_eq!(one(text), Some(Kind::Number(*want)), "text {text:?}");
        }
        for text in ["1e", "0x", "0b2", "1_", "_1_", "1__0", "3px", "1.2.3", "10n", "0_7", "01.5", "1é"] {
            assert!(!matches!(one(text), Some(Kind::Number(_))), "text {text:?}");
        }
    }

    #[test]
    fn string_literals_and_escapes_are_read() {
        let table: &[(&str, &str)] = &[
            (r#"'a"b'"#, "a\"b"),
            (r#""a'b""#, "a'b"),
            (r"'\n\r\t\b\f\v\0\\\''", "\n\r\t\u{8}\u{c}\u{b}\0\\'"),
            (r"'\x41\u0042\u{43}'", "ABC"),
            (r"'\ud83d\ude00'", "\u{1f600}"),
            (r"'\ud83d'", "\u{fffd}"),
            (r"'\101\7\8'", "A\u{7}8"),
            ("'a\\\nb\\\r\nc'", "abc"),
            ("'caf\u{e9}\u{2028}'", "caf\u{e9}\u{2028}"),
        ];
        for (text, want) in table {
            assert_eq!(one(text), Some(Kind::Text((*want).to_owned())), "text {text:?}");
        }
        for text in ["'a", "\"a\n\"", r"'\x4'", r"'\u00g0'", r"'\u{110000}'", r"'\u{", "'\\"] {
            assert!(kinds(text).is_err(), "text {text:?}");
        }
    }

    #[test]
    fn a_slash_is_division_or_starts_a_regular_expression() {
        let regex = |text: &str| Kind::Regex(text.to_owned());
        assert_eq!(kinds("[/a[/]b/gi]").unwrap()[1], regex("/a[/]b/gi"));
        assert_eq!(kinds("a / b / c").unwrap()[1], Kind::Sign("/"));
        assert_eq!(kinds(r"return /\//").unwrap()[1], regex(r"/\//"));
        assert!(kinds("[/a\n/]").is_err());
    }

    #[test]
    fn nested_templates_are_read() {
        let piece = |text: &str, first, last| Kind::Template { text: text.to_owned(), first, last };
        assert_eq!(kinds("`a`").unwrap(), [piece("a", true, true)]);
        let got = kinds("`a${ {b:`c`} }d`").unwrap();
        assert_eq!(got.first(), Some(&piece("a", true, false)));
        assert_eq!(got.last(), Some(&piece("d", false, true)));
        assert!(kinds("`a").is_err());
    }

    #[test]
    fn comments_are_skipped_and_line_ends_are_noticed() {
        let got = tokens("a // x\n/* y\n */ b /* z */ c", Grammar::JavaScript).unwrap();
        let newlines: Vec<bool> = got.iter().map(|token| token.newline_before).collect();
        assert_eq!(newlines, [false, true, false, false]);
        assert!(tokens("/* no end", Grammar::JavaScript).is_err());
        assert!(tokens("# perl", Grammar::JavaScript).is_err_and(|fault| fault.hint.is_some()));
    }
}
