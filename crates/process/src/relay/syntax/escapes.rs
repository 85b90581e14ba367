//! Escapes: constructs that begin with a backslash, outside brackets.

use super::groups;
use super::reader::{Atom, Reader, Refusal};

impl Reader<'_> {
    pub(super) fn escape(&mut self) -> Result<Atom, Refusal> {
        let start = self.at;
        let Some(&byte) = self.text.get(start + 1) else {
            let refusal = Refusal::new(start..start + 1, "nothing follows this `\\`", "Trailing backslash");
            return Err(
                refusal.hint("write `\\\\` for the character itself; in quotes each `\\` is written twice")
            );
        };
        self.at += 2;
        match byte {
            b'w' | b'W' | b's' | b'S' => Ok(self.class(&format!("\\{}", char::from(byte)))),
            b'd' => Ok(self.perl_class(start, "[0-9]")),
            b'D' => Ok(self.perl_class(start, "[^0-9]")),
            b'h' => Ok(self.perl_class(start, "[ \\t]")),
            b'H' => Ok(self.perl_class(start, "[^ \\t]")),
            b'V' => Ok(self.perl_class(start, "[^\\n-\\r]")),
            b'N' => Ok(self.perl_class(start, "[^\\n]")),
            b'b' | b'B' => Ok(self.zero_width(&format!("\\{}", char::from(byte)))),
            b'<' => Ok(self.zero_width("\\<")),
            b'>' => Ok(self.zero_width("\\>")),
            b'`' | b'A' => Ok(self.zero_width("\\A")),
            b'\'' | b'z' | b'Z' => Ok(self.zero_width("\\z")),
            b'1'..=b'9' => self.numbered(start, byte),
            b'g' | b'k' if self.reference().is_some() => {
                let (number, bytes) = self.reference().unwrap_or_default();
                self.at += bytes;
                self.back_reference(start..self.at, number)
            }
            b't' | b'n' | b'r' | b'f' | b'v' | b'a' | b'e' => {
                let letter = char::from(byte);
                let message = format!(
                    "`\\{letter}` is a control character, which no name has; builds with the C library read the letter"
                );
                self.note(start..self.at, message, format!("write `{letter}`"));
                let control = match byte {
                    b't' => "\\t",
                    b'n' => "\\n",
                    b'r' => "\\r",
                    b'f' => "\\x0C",
                    b'v' => "[\\n-\\r]",
                    b'a' => "\\x07",
                    _ => "\\x1B",
                };
                Ok(self.class(control))
            }
            b'x' if self.hex().is_some() => {
                let message = "builds with the C library read `\\x` as the letter";
                self.note(start..self.at, message, "write the character itself");
                let byte = self.hex().unwrap_or_default();
                self.at += 2;
                Ok(self.byte(byte))
            }
            _ if byte.is_ascii_alphanumeric() => {
                let letter = char::from(byte);
                let message = format!("`\\{letter}` is read as the letter `{letter}`, as the C library does");
                let hint = format!("write `{letter}`, or `[[:space:]]` and the like for a class");
                self.note(start..self.at, message, hint);
                Ok(self.byte(byte))
            }
            _ => Ok(self.byte(byte)),
        }
    }

    /// The byte of two hexadecimal digits.
    pub(super) fn hex(&self) -> Option<u8> {
        let digits = std::str::from_utf8(self.rest().get(..2)?).ok()?;
        // Parsing a number alone would accept a sign too.
        let good = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if good { u8::from_str_radix(digits, 16).ok() } else { None }
    }

    fn class(&mut self, text: &str) -> Atom {
        self.out.push_str(text);
        Atom::Other
    }

    fn zero_width(&mut self, text: &str) -> Atom {
        self.out.push_str(text);
        Atom::Nothing
    }

    /// A class that the C library does not know.
    fn perl_class(&mut self, start: usize, class: &str) -> Atom {
        let letter = char::from(self.text[start + 1]);
        let message = format!(
            "`\\{letter}` is read as `{class}`; builds with the C library read the letter `{letter}`"
        );
        self.note(start..self.at, message, format!("write `{class}`, which all builds read alike"));
        self.class(class)
    }

    /// `\1` to `\9`. If a digit follows, PCRE2 may read a larger number or an octal one.
    fn numbered(&mut self, start: usize, digit: u8) -> Result<Atom, Refusal> {
        let at = start..self.at;
        if self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            let message =
                "a back reference has one digit, as in the C library; builds with PCRE2 may read more";
            self.note(at.clone(), message, format!("write \\g{{{}}}", char::from(digit)));
        }
        self.back_reference(at, usize::from(digit - b'0'))
    }

    /// Parses a reference after `\g` or `\k`: `{1}`, `{-1}`, `{name}`, `<name>`, `'name'`. Returns the group and
    /// the length in bytes.
    fn reference(&self) -> Option<(usize, usize)> {
        let rest = self.rest();
        let close = match rest.first()? {
            b'{' => b'}',
            b'<' => b'>',
            b'\'' => b'\'',
            _ => return None,
        };
        let (back, inner) = match &rest[1..] {
            [b'-', inner @ ..] => (true, inner),
            inner => (false, inner),
        };
        let (name, end) = groups::name(inner, close)?;
        let number = std::str::from_utf8(name).ok().and_then(|name| name.parse::<usize>().ok());
        let number = match number {
            Some(number) if back => (self.groups + 1).saturating_sub(number),
            Some(number) => number,
            None => self.named(name),
        };
        Some((number, 1 + usize::from(back) + end))
    }
}
