//! POSIX's extended expressions, with what Perl adds, written as the library wants them.
//!
//! The library reads Perl's form. What POSIX has otherwise: a `[` within brackets is itself, `&&`, `~~` and `--` there
//! mean nothing special, `\y` is a `y`, `{,3}` begins at 0. Where the two disagree Perl is followed, because the
//! original is mostly built with Perl's library: `[\.]` has no backslash in it, `\d` is a digit, `a+?` takes little.
//! Not here: whether the result is good; the library says so.

use std::fmt::Write;

/// The same expression in the library's form.
///
/// # Errors
/// What the library cannot do, in words.
pub(super) fn in_library_form(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len() + 8);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        rest = &rest[first.len_utf8()..];
        match first {
            '\\' => rest = escape(rest, &mut out)?,
            '[' => rest = brackets(rest, &mut out)?,
            '{' if rest.starts_with(',') => out.push_str("{0"),
            _ => out.push(first),
        }
    }
    Ok(out)
}

/// What follows a backslash outside brackets; gives what is left.
fn escape<'a>(rest: &'a str, out: &mut String) -> Result<&'a str, String> {
    let next = rest.chars().next().ok_or("a backslash at the end escapes nothing")?;
    match next {
        '0'..='9' => return Err("back-references within an expression are not supported".into()),
        '<' | '>' | 'b' | 'B' | 'd' | 'D' | 's' | 'S' | 'w' | 'W' | 'A' | 'z' | 'x' => {
            out.push('\\');
            out.push(next);
        }
        't' | 'n' | 'r' | 'f' | 'v' | 'a' => {
            out.push('\\');
            out.push(next);
        }
        'Z' | '\'' => out.push_str("\\z"),
        '`' => out.push_str("\\A"),
        _ => literal(next, out),
    }
    Ok(&rest[next.len_utf8()..])
}

/// What stands between brackets; `rest` begins behind the first one. Gives what is left behind the last one.
fn brackets<'a>(rest: &'a str, out: &mut String) -> Result<&'a str, String> {
    out.push('[');
    let mut rest = rest;
    if let Some(behind) = rest.strip_prefix('^') {
        out.push('^');
        rest = behind;
    }
    let mut first = true;
    loop {
        match rest.chars().next() {
            None => return Err("unclosed character class".into()),
            Some(']') if !first => {
                out.push(']');
                return Ok(&rest[1..]);
            }
            Some(_) => {}
        }
        first = false;
        if let Some(inner) = rest.strip_prefix("[:") {
            rest = named(inner, out)?;
            continue;
        }
        let (begin, behind) = element(rest)?;
        rest = behind;
        one(begin, out);
        let range = rest.strip_prefix('-').filter(|behind| !behind.is_empty() && !behind.starts_with(']'));
        if let (Element::Char(_), Some(behind)) = (begin, range) {
            let (end, behind) = element(behind)?;
            out.push('-');
            one(end, out);
            rest = behind;
        }
    }
}

/// What follows `[:`: the name of a set that both know. Gives what is left behind `:]`.
fn named<'a>(rest: &'a str, out: &mut String) -> Result<&'a str, String> {
    let end = rest.find(":]").ok_or("unclosed character class")?;
    let name = &rest[..end];
    if !SETS.contains(&name) {
        return Err(format!("there is no set of characters `[:{name}:]`"));
    }
    write!(out, "[:{name}:]").expect("a string takes all");
    Ok(&rest[end + 2..])
}

/// The sets that POSIX names.
const SETS: [&str; 12] = [
    "alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper",
    "xdigit",
];

#[derive(Clone, Copy)]
enum Element {
    Char(char),
    /// `\d` and its like.
    Set(char),
}

/// One element of a bracket expression: a character, an escape, `[.x.]` or `[=x=]`.
fn element(rest: &str) -> Result<(Element, &str), String> {
    let mut chars = rest.chars();
    let unclosed = || "unclosed character class".to_owned();
    let first = chars.next().ok_or_else(unclosed)?;
    for (begin, end) in [("[.", ".]"), ("[=", "=]")] {
        if let Some(inner) = rest.strip_prefix(begin) {
            let close = inner.find(end).ok_or_else(unclosed)?;
            let mut inner_chars = inner[..close].chars();
            return match (inner_chars.next(), inner_chars.next()) {
                (Some(single), None) => Ok((Element::Char(single), &inner[close + 2..])),
                _ => Err(format!("`{begin}{}{end}` is no single character", &inner[..close])),
            };
        }
    }
    if first != '\\' {
        return Ok((Element::Char(first), chars.as_str()));
    }
    let next = chars.next().ok_or_else(unclosed)?;
    let element = match next {
        'd' | 'D' | 's' | 'S' | 'w' | 'W' => Element::Set(next),
        't' => Element::Char('\t'),
        'n' => Element::Char('\n'),
        'r' => Element::Char('\r'),
        _ => Element::Char(next),
    };
    Ok((element, chars.as_str()))
}

fn one(element: Element, out: &mut String) {
    match element {
        Element::Char(char) if char.is_ascii() => literal(char, out),
        // Names are bytes: each byte of it is an element of its own, as it is for the original.
        Element::Char(char) => {
            for byte in char.encode_utf8(&mut [0; 4]).bytes() {
                write!(out, "\\x{byte:02x}").expect("a string takes all");
            }
        }
        Element::Set(letter) => {
            out.push('\\');
            out.push(letter);
        }
    }
}

/// A character that stands for itself.
fn literal(char: char, out: &mut String) {
    if char.is_ascii_punctuation() && !matches!(char, '<' | '>' | '_') {
        out.push('\\');
    }
    out.push(char);
}

#[test]
fn expressions_in_the_librarys_form() {
    let table = [
        ("a.b*", "a.b*"),
        ("^(a|b)\\.c$", "^(a|b)\\.c$"),
        ("\\d\\w\\<x\\>", "\\d\\w\\<x\\>"),
        ("\\y\\_\\-\\ ", "y_\\- "),
        ("\\`a\\'", "\\Aa\\z"),
        ("a{2}b{,3}c{1,}", "a{2}b{0,3}c{1,}"),
        ("[a-z]", "[a-z]"),
        ("[^a-z.]", "[^a-z\\.]"),
        ("[]a]", "[\\]a]"),
        ("[^]a]", "[^\\]a]"),
        ("[a-]", "[a\\-]"),
        ("[-a]", "[\\-a]"),
        ("[a[b]", "[a\\[b]"),
        ("[a&&b~~c]", "[a\\&\\&b\\~\\~c]"),
        ("[--/]", "[\\--\\/]"),
        ("[[:alpha:]_]", "[[:alpha:]_]"),
        ("[[.-.]a]", "[\\-a]"),
        ("[\\.\\d]", "[\\.\\d]"),
        ("[^\\]]+", "[^\\]]+"),
        ("[é]", "[\\xc3\\xa9]"),
        ("é", "é"),
    ];
    for (text, want) in table {
        assert_eq!(in_library_form(text).as_deref(), Ok(want), "{text:?}");
        let built = regex::bytes::RegexBuilder::new(want).unicode(false).build();
        assert!(built.is_ok(), "{want:?}: {built:?}");
    }
    for text in ["[", "[a", "[]", "[a\\", "[a-", "[[.a", "[[.ab.]]", "[[:no:]]", "\\1", "a\\"] {
        assert!(in_library_form(text).is_err(), "{text:?}");
    }
}
