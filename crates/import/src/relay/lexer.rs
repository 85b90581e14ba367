//! Splits configurations of carbon-c-relay into tokens (spec graphite §2.2).
//!
//! Keywords depend on the context, so the parser recognises them. The lexer never stops: an invalid character in a
//! word is reported, and the piece still counts as a word, so that one mistake gives one message.
//! Invariant: any text gives tokens that end in [`Kind::End`], in time proportional to its length.

use super::mistakes::Mistakes;
use config::diagnostic::{Code, Place};

/// Longest quoted string, in bytes, as in the original.
pub(super) const QUOTED_BYTES_MAX: usize = 1023;

/// One token.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub kind: Kind,
    pub place: Place,
    /// It is the first one on its line: a statement may begin here when the `;` before it is missing.
    pub first_on_line: bool,
}

/// Kind of a token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// A bare word: the bytes at its place.
    Word,
    /// A string in quotes, escapes resolved.
    Quoted(String),
    Semicolon,
    Equals,
    /// Text with a reported error: its statement cannot be parsed.
    Broken,
    End,
}

/// Characters of bare words.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "[](){}|\\^?*$&%<>:/,._+-".contains(c)
}

/// Splits all of `text`; errors go to `mistakes`.
pub(super) fn tokens(text: &str, mistakes: &mut Mistakes) -> Vec<Token> {
    let mut lexer = Lexer { text, at: 0, mistakes, tokens: Vec::new() };
    if text.starts_with('\u{feff}') {
        lexer.at = '\u{feff}'.len_utf8();
    }
    while lexer.token() {}
    lexer.tokens
}

struct Lexer<'a, 'm> {
    text: &'a str,
    at: usize,
    mistakes: &'m mut Mistakes,
    tokens: Vec<Token>,
}

impl Lexer<'_, '_> {
    /// Reads one token; false at the end of the text.
    fn token(&mut self) -> bool {
        let first_on_line = self.space() || self.tokens.is_empty();
        let start = self.at;
        let kind = match self.peek() {
            None => Kind::End,
            Some(';') => self.sign(Kind::Semicolon),
            Some('=') => self.sign(Kind::Equals),
            Some('"') => self.quoted(),
            Some(_) => self.word(),
        };
        let more = kind != Kind::End;
        self.tokens.push(Token { kind, place: Place::new(start, self.at), first_on_line });
        more
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn sign(&mut self, kind: Kind) -> Kind {
        self.at += 1;
        kind
    }

    /// Skips white space and comments; true when a line ended in them.
    fn space(&mut self) -> bool {
        let mut newline = false;
        while let Some(c) = self.peek() {
            match c {
                '\n' => newline = true,
                ' ' | '\t' | '\r' | '\u{b}' | '\u{c}' => {}
                '#' => {
                    self.at += self.rest().find('\n').unwrap_or(self.rest().len());
                    continue;
                }
                _ => break,
            }
            self.at += c.len_utf8();
        }
        newline
    }

    /// A bare word: up to white space, a sign, a quote or a comment. `\ ` includes the space.
    fn word(&mut self) -> Kind {
        let start = self.at;
        let mut wrong = None;
        while let Some(c) = self.peek() {
            if self.rest().starts_with("\\ ") {
                self.at += 2;
                continue;
            }
            if c.is_ascii_whitespace() || c == '\u{b}' || ";=\"#".contains(c) {
                break;
            }
            if !is_word(c) && wrong.is_none() {
                wrong = Some((c, Place::new(self.at, self.at + c.len_utf8())));
            }
            self.at += c.len_utf8();
        }
        let Some((c, place)) = wrong else { return Kind::Word };
        let word = &self.text[start..self.at];
        let shown = if c == '\'' { c.to_string() } else { c.escape_debug().to_string() };
        let message = format!("`{shown}` is not allowed in a word without quotes");
        let inner = word.strip_prefix('\'').map_or(word, |word| word.strip_suffix('\'').unwrap_or(word));
        let report = self.mistakes.error_at(Code::ImportSyntax, place, message).upstream("syntax error");
        if c == '\0' {
            report.label("the original stops reading at a zero byte");
        } else {
            report.label("not a character of words").hint(format!("write {}", quote(inner)));
        }
        Kind::Broken
    }

    /// A string in quotes. Without a closing quote it ends with its line.
    fn quoted(&mut self) -> Kind {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            let Some(c) = self.peek().filter(|c| *c != '\n') else {
                let place = Place::new(start, start + 1);
                let message = "this string has no end on its line";
                let report = self.mistakes.error_at(Code::ImportSyntax, place, message);
                report.label("no second `\"` on this line").upstream("unterminated string");
                return Kind::Broken;
            };
            self.at += c.len_utf8();
            match c {
                '"' => break,
                '\\' => match self.peek().filter(|c| *c != '\n') {
                    Some(next) => {
                        text.push(next);
                        self.at += next.len_utf8();
                    }
                    None => text.push(c),
                },
                _ => text.push(c),
            }
        }
        let place = Place::new(start, self.at);
        if text.contains(char::REPLACEMENT_CHARACTER) {
            let report = self.mistakes.error_at(Code::ImportSyntax, place, "this string is not UTF-8");
            let report = report.label("invalid bytes").upstream("syntax error");
            report.hint("convert the file with iconv, or write an expression of ASCII characters");
        } else if text.is_empty() {
            let message = "a string in quotes must not be empty";
            let report = self.mistakes.error_at(Code::ImportSyntax, place, message);
            report.label("nothing in it").upstream("empty string");
        } else if text.len() > QUOTED_BYTES_MAX {
            let message = format!("a string in quotes must not be longer than {QUOTED_BYTES_MAX} bytes");
            let report = self.mistakes.error_at(Code::ImportSyntax, place, message);
            report.label(format!("{} bytes", text.len())).upstream("string too long");
        } else {
            return Kind::Quoted(text);
        }
        Kind::Broken
    }
}

/// A text in quotes that reads back as itself.
pub(super) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        if c == '"' || c == '\\' {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

/// Whether a text can be written as a bare word.
pub(super) fn is_bare(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> (Vec<String>, usize) {
        let mut mistakes = Mistakes::default();
        let tokens = tokens(text, &mut mistakes);
        let show = |token: &Token| match &token.kind {
            Kind::Word => text[token.place.start..token.place.end].to_owned(),
            Kind::Quoted(text) => format!("<{text}>"),
            Kind::Semicolon => ";".into(),
            Kind::Equals => "=".into(),
            Kind::Broken => "!".into(),
            Kind::End => String::new(),
        };
        (tokens.iter().map(show).collect(), mistakes.len())
    }

    #[test]
    fn texts_are_tokenised_as_by_the_original() {
        let table: &[(&str, &[&str], usize)] = &[
            ("", &[""], 0),
            ("# only a comment", &[""], 0),
            ("\u{feff}a", &["a", ""], 0),
            ("a b\t;\r\n", &["a", "b", ";", ""], 0),
            ("^a\\.b(c|d)$;", &["^a\\.b(c|d)$", ";", ""], 0),
            ("a\\ b c", &["a\\ b", "c", ""], 0),
            ("h:2003=a", &["h:2003", "=", "a", ""], 0),
            ("a#b\nc", &["a", "c", ""], 0),
            ("a\"b c\"d", &["a", "<b c>", "d", ""], 0),
            (r#""q\"\\\d""#, &[r#"<q"\d>"#, ""], 0),
            ("\"é\"", &["<é>", ""], 0),
            ("é", &["!", ""], 1),
            ("'a b'", &["!", "!", ""], 2),
            ("a~b c!d", &["!", "!", ""], 2),
            ("a\0b", &["!", ""], 1),
            ("\"\"", &["!", ""], 1),
            ("\"a\nb", &["!", "b", ""], 1),
            ("\"a\\\nb", &["!", "b", ""], 1),
            ("\"a", &["!", ""], 1),
        ];
        for (text, want, wrong) in table {
            let want: Vec<String> = want.iter().map(|each| each.to_string()).collect();
            assert_eq!(cut(text), (want, *wrong), "{text:?}");
        }
    }

    #[test]
    fn quoted_strings_have_a_maximum_length() {
        for (bytes, wrong) in [(1, 0), (QUOTED_BYTES_MAX, 0), (QUOTED_BYTES_MAX + 1, 1)] {
            assert_eq!(cut(&quote(&"a".repeat(bytes))).1, wrong, "{bytes}");
        }
    }
}
