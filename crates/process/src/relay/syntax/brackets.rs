//! Bracket expressions `[…]`: a set of bytes, with POSIX rules and PCRE2's escapes.
//!
//! In POSIX a backslash in brackets is literal, in PCRE2 and here it begins an escape. There is no note when the
//! backslash itself is the only difference (`[\\.]`): names contain none unless `-c` allows them.

use std::ops::Range;

use super::reader::{Reader, Refusal};

const UNCLOSED: &str = "Unmatched [, [^, [:, [., or [=";

/// True when a byte is in the class.
type Class = fn(u8) -> bool;

/// Named classes; `word` is PCRE2's.
const CLASSES: &[(&str, Class)] = &[
    ("alnum", |byte| byte.is_ascii_alphanumeric()),
    ("alpha", |byte| byte.is_ascii_alphabetic()),
    ("space", |byte| byte == b' ' || byte == b'\t'),
    ("cntrl", |byte| byte.is_ascii_control()),
    ("digit", |byte| byte.is_ascii_digit()),
    ("graph", |byte| byte.is_ascii_graphic()),
    ("lower", |byte| byte.is_ascii_lowercase()),
    ("print", |byte| byte.is_ascii_graphic() || byte == b' '),
    ("punct", |byte| byte.is_ascii_punctuation()),
    ("space", |byte| byte.is_ascii_whitespace() || byte == 0x0b),
    ("upper", |byte| byte.is_ascii_uppercase()),
    ("xdigit", |byte| byte.is_ascii_hexdigit()),
    ("word", |byte| byte.is_ascii_alphanumeric() || byte == b'_'),
];

/// A set of bytes.
struct Set([bool; 256]);

impl Set {
    fn add(&mut self, byte: u8) {
        self.0[usize::from(byte)] = true;
    }

    fn add_all(&mut self, is_in: impl Fn(u8) -> bool) {
        (0..=u8::MAX).filter(|byte| is_in(*byte)).for_each(|byte| self.add(byte));
    }

    /// Adds the letters of the other case.
    fn fold(&mut self) {
        for byte in (b'a'..=b'z').chain(b'A'..=b'Z') {
            if self.0[usize::from(byte)] {
                self.add(byte ^ 0x20);
            }
        }
    }

    /// In the engines' syntax.
    fn text(&self, negated: bool) -> String {
        let mut out = String::from(if negated { "[^" } else { "[" });
        let mut byte = 0;
        while byte < 256 {
            if !self.0[byte] {
                byte += 1;
                continue;
            }
            let end = (byte..256).find(|at| !self.0[*at]).unwrap_or(256) - 1;
            push(&mut out, byte);
            if end > byte + 1 {
                out.push('-');
            }
            if end > byte {
                push(&mut out, end);
            }
            byte = end + 1;
        }
        out.push(']');
        out
    }
}

fn push(out: &mut String, byte: usize) {
    match u8::try_from(byte).map(char::from) {
        Ok(c) if c.is_ascii_alphanumeric() || c == '_' || c == '.' => out.push(c),
        _ => out.push_str(&format!("\\x{byte:02X}")),
    }
}

/// One end of a range, or a whole class.
enum Item {
    Byte(u8),
    Class,
}

/// Reads a bracket expression at the reader's position.
pub(super) fn read(reader: &mut Reader<'_>) -> Result<String, Refusal> {
    let start = reader.at;
    let unclosed = || {
        let refusal = Refusal::new(start..start + 1, "this `[` is not closed", UNCLOSED);
        refusal.hint("add `]`, or write `\\[` for the character itself; a literal `]` comes first")
    };
    reader.at += 1;
    let negated = reader.peek() == Some(b'^');
    reader.at += usize::from(negated);
    let mut set = Set([false; 256]);
    let first = reader.at;
    loop {
        let at = reader.at;
        let byte = reader.peek().ok_or_else(unclosed)?;
        if byte == b']' && at > first {
            reader.at += 1;
            break;
        }
        let Item::Byte(low) = item(reader, &mut set, byte, start)? else { continue };
        if reader.peek() == Some(b'-') && reader.text.get(reader.at + 1).is_some_and(|byte| *byte != b']') {
            reader.at += 1;
            let byte = reader.peek().ok_or_else(unclosed)?;
            range(reader, &mut set, low, byte, at, start)?;
        } else {
            set.add(low);
        }
    }
    let inner = &reader.text[first..reader.at - 1];
    if !negated && inner.len() > 2 && inner.starts_with(b":") && inner.ends_with(b":") {
        let class = String::from_utf8_lossy(inner).into_owned();
        let message = format!("`[{class}]` is a set of these characters, not a class");
        reader.note(start..reader.at, message, format!("write `[[{class}]]`"));
    }
    if reader.fold {
        set.fold();
    }
    Ok(set.text(negated))
}

/// The rest of `low-…`.
fn range(
    reader: &mut Reader<'_>,
    set: &mut Set,
    low: u8,
    byte: u8,
    at: usize,
    start: usize,
) -> Result<(), Refusal> {
    let high = item(reader, set, byte, start)?;
    let place = at..reader.at;
    let refuse = |message: &str| Err(Refusal::new(place.clone(), message, "Invalid range end"));
    match high {
        Item::Class => refuse("a range cannot end in a class"),
        Item::Byte(high) if high < low => refuse("this range ends before it begins"),
        Item::Byte(high) => {
            let goes_on = reader.peek() == Some(b'-') && reader.text.get(reader.at + 1) != Some(&b']');
            if goes_on && reader.text.get(reader.at + 1).is_some() {
                return refuse("a range cannot begin where another one ends");
            }
            set.add_all(|byte| (low..=high).contains(&byte));
            Ok(())
        }
    }
}

fn item(reader: &mut Reader<'_>, set: &mut Set, byte: u8, start: usize) -> Result<Item, Refusal> {
    match (byte, reader.text.get(reader.at + 1)) {
        (b'[', Some(b':')) => class(reader, set, start),
        (b'[', Some(sign @ (b'.' | b'='))) => collating(reader, *sign, start),
        (b'\\', Some(_)) => Ok(escape(reader, set)),
        _ => {
            reader.at += 1;
            Ok(Item::Byte(byte))
        }
    }
}

/// The text between `[:` and `:]`, and the byte range including both.
fn between<'a>(reader: &Reader<'a>, sign: u8, start: usize) -> Result<(&'a [u8], Range<usize>), Refusal> {
    let text = reader.text;
    let end = text[reader.at + 2..].windows(2).position(|two| two == [sign, b']']);
    let Some(end) = end else {
        return Err(Refusal::new(start..start + 1, "this `[` is not closed", UNCLOSED));
    };
    Ok((&text[reader.at + 2..reader.at + 2 + end], reader.at..reader.at + end + 4))
}

fn class(reader: &mut Reader<'_>, set: &mut Set, start: usize) -> Result<Item, Refusal> {
    let (name, place) = between(reader, b':', start)?;
    let written = String::from_utf8_lossy(name).into_owned();
    let (negated, name) = written.strip_prefix('^').map_or((false, &*written), |name| (true, name));
    let Some((_, is_in)) = CLASSES.iter().find(|(word, _)| *word == name) else {
        let refusal =
            Refusal::new(place, &format!("there is no class `{name}`"), "Invalid character class name");
        return Err(refusal.hint(match nearest(name) {
            Some(class) => format!("did you mean `[:{class}:]`?"),
            None => {
                let all: Vec<&str> = CLASSES.iter().map(|(word, _)| *word).collect();
                format!("classes are {}", all.join(", "))
            }
        }));
    };
    set.add_all(|byte| is_in(byte) != negated);
    reader.at = place.end;
    Ok(Item::Class)
}

/// Maximum wrong letters in a misspelled class name.
const TYPOS_MAX: usize = 2;

/// The class with the most similar name; None when no name is close.
fn nearest(name: &str) -> Option<&'static str> {
    let typos = CLASSES.iter().map(|(word, _)| (typos(name.as_bytes(), word.as_bytes()), *word));
    let (typos, word) = typos.min_by_key(|(typos, _)| *typos)?;
    (typos <= TYPOS_MAX && name.len() > TYPOS_MAX).then_some(word)
}

/// Edit distance of two words: letters inserted, missing or replaced. Swapped neighbours count as two.
fn typos(one: &[u8], other: &[u8]) -> usize {
    if one.len() > 2 * other.len() {
        return one.len();
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, byte) in one.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (column, wanted) in other.iter().enumerate() {
            let changed = diagonal + usize::from(byte != wanted);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

/// `[.x.]` and `[=x=]`: one byte, in the C locale.
fn collating(reader: &mut Reader<'_>, sign: u8, start: usize) -> Result<Item, Refusal> {
    let (name, place) = between(reader, sign, start)?;
    let &[byte] = name else {
        let refusal =
            Refusal::new(place, "only single characters are allowed here", "Invalid collation character");
        return Err(refusal.hint("write the character itself"));
    };
    reader.at = place.end;
    Ok(Item::Byte(byte))
}

/// A backslash and the characters after it.
fn escape(reader: &mut Reader<'_>, set: &mut Set) -> Item {
    let start = reader.at;
    let byte = reader.text[start + 1];
    reader.at += 2;
    let sign = char::from(byte).escape_default();
    if let Some(is_in) = perl_class(byte) {
        let message =
            format!("in brackets `\\{sign}` is a class; builds with the C library read `\\` and `{sign}`");
        let hint = "write [[:digit:]], [[:alnum:]_] or [[:space:]], which all builds read alike";
        reader.note(start..reader.at, message, hint);
        set.add_all(is_in);
        return Item::Class;
    }
    if let Some(control) = control(byte).or_else(|| reader.hex().filter(|_| byte == b'x')) {
        reader.at += if byte == b'x' { 2 } else { 0 };
        let message = "this is one character; builds with the C library read each character literally";
        let hint = "write the character itself; names have no control characters";
        reader.note(start..reader.at, message, hint);
        return Item::Byte(control);
    }
    let is_last = reader.peek() == Some(b']');
    if byte == b']' || (byte == b'-' && !is_last) {
        let message =
            format!("`\\{sign}` is read as `{sign}`; builds with the C library read `\\` by itself");
        let place = if byte == b']' { "first" } else { "last" };
        let hint = format!("put `{sign}` {place} in the brackets, without the `\\`");
        reader.note(start..reader.at, message, hint);
    }
    Item::Byte(byte)
}

/// `\d` and similar.
fn perl_class(letter: u8) -> Option<Class> {
    Some(match letter {
        b'd' => |byte| byte.is_ascii_digit(),
        b'D' => |byte| !byte.is_ascii_digit(),
        b'w' => |byte| byte.is_ascii_alphanumeric() || byte == b'_',
        b'W' => |byte| !(byte.is_ascii_alphanumeric() || byte == b'_'),
        b's' => |byte| byte.is_ascii_whitespace() || byte == 0x0b,
        b'S' => |byte| !(byte.is_ascii_whitespace() || byte == 0x0b),
        b'h' => |byte| byte == b' ' || byte == b'\t',
        b'H' => |byte| byte != b' ' && byte != b'\t',
        _ => return None,
    })
}

fn control(letter: u8) -> Option<u8> {
    Some(match letter {
        b'a' => 0x07,
        b'b' => 0x08,
        b't' => b'\t',
        b'n' => b'\n',
        b'f' => 0x0c,
        b'r' => b'\r',
        b'e' => 0x1b,
        _ => return None,
    })
}
