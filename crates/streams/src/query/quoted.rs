//! String literals of queries: their escapes, in both directions (spec riemann §5.1).

use std::fmt::{self, Write};

use super::error::QueryError;

/// The text of a string literal, which is given with its quotes. `at` is its position in the query.
///
/// # Errors
/// An escape that EDN does not have.
pub(super) fn unquoted(literal: &str, at: usize) -> Result<String, QueryError> {
    let inner = &literal[1..literal.len() - 1];
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(escape) = rest.find('\\') {
        out.push_str(&rest[..escape]);
        let at = at + literal.len() - 1 - rest.len() + escape;
        let (letter, len) = escaped(&rest[escape + 1..]).map_err(|message| QueryError::new(at, message))?;
        out.push(letter);
        rest = &rest[escape + 1 + len..];
    }
    out.push_str(rest);
    Ok(out)
}

/// The character of an escape, without its backslash, and its length.
fn escaped(text: &str) -> Result<(char, usize), String> {
    let letter = text.chars().next().ok_or("EOF while reading string")?;
    let simple = match letter {
        't' => '\t',
        'r' => '\r',
        'n' => '\n',
        'b' => '\u{8}',
        'f' => '\u{c}',
        '\\' => '\\',
        '"' => '"',
        'u' => return unicode(text),
        'o' => return octal(&text[1..]).map(|(letter, len)| (letter, len + 1)),
        '0'..='7' => return octal(text),
        _ => return Err(format!("Unsupported escape character: \\{letter}")),
    };
    Ok((simple, 1))
}

/// `uXXXX`; two of them for a character that takes two units of UTF-16.
fn unicode(text: &str) -> Result<(char, usize), String> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 5)?.strip_prefix('u')?;
        if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            u16::from_str_radix(digits, 16).ok()
        } else {
            None
        }
    };
    let first = unit(0).ok_or("Invalid unicode escape: \\u needs four hexadecimal digits")?;
    let second = if text.get(5..6) == Some("\\") { unit(6) } else { None };
    let mut decoded = char::decode_utf16([first].into_iter().chain(second));
    match decoded.next() {
        Some(Ok(letter)) => Ok((letter, if letter.len_utf16() == 2 { 11 } else { 5 })),
        Some(Err(_)) | None => Err(format!("Invalid character constant: \\u{first:04x}")),
    }
}

/// One to three octal digits, at most 377.
fn octal(text: &str) -> Result<(char, usize), String> {
    let len = text.bytes().take(3).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
    match u8::from_str_radix(&text[..len], 8) {
        Ok(code) => Ok((char::from(code), len)),
        Err(_) => Err("Octal escape sequence must be in range [0, 377].".to_owned()),
    }
}

/// Writes a text as a string literal.
pub(super) fn write_quoted(text: &str, out: &mut impl Write) -> fmt::Result {
    out.write_char('"')?;
    for letter in text.chars() {
        match letter {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\t' => out.write_str("\\t")?,
            '\r' => out.write_str("\\r")?,
            '\u{8}' => out.write_str("\\b")?,
            '\u{c}' => out.write_str("\\f")?,
            _ => out.write_char(letter)?,
        }
    }
    out.write_char('"')
}
