//! Java's regular expressions in the syntax of our engine (spec riemann §5.3).
//!
//! Most constructs are the same. Changed are: classes (Java's are ASCII only), `.` (stops at five kinds of line break),
//! quoted parts, counts, escapes of characters, and operators within `[…]` that only the engine has.
//! Not here: whether the expression is valid beyond that; the engine checks that.

use std::iter::Peekable;
use std::str::Chars;

/// An expression in the engine's syntax.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Translated {
    pub(super) text: String,
    /// It has look-around, back references or atomic parts.
    pub(super) backtracks: bool,
    /// It has `$` or `\Z`, which also match before a line break at the end of the text.
    pub(super) ends: bool,
}

/// Translates an expression.
///
/// # Errors
/// What Java or our engine does not have, as a sentence.
pub(super) fn translate(text: &str) -> Result<Translated, String> {
    let mut reader = Reader {
        rest: text.chars().peekable(),
        out: Translated { text: String::with_capacity(text.len()), backtracks: false, ends: false },
        depth: 0,
        dot: if has_dot_all(text) { "." } else { "[^\\n\\r\\u{85}\\u{2028}\\u{2029}]" },
        repeated: false,
    };
    while let Some(letter) = reader.rest.next() {
        reader.letter(letter)?;
    }
    Ok(reader.out)
}

/// Whether a flag makes `.` match line breaks, anywhere in the expression.
fn has_dot_all(text: &str) -> bool {
    text.split("(?").skip(1).any(|rest| {
        let flags = rest.split([')', ':', '-']).next().unwrap_or_default();
        !flags.is_empty() && flags.bytes().all(|flag| b"imsxu".contains(&flag)) && flags.contains('s')
    })
}

struct Reader<'t> {
    rest: Peekable<Chars<'t>>,
    out: Translated,
    /// Open `[`.
    depth: usize,
    /// What `.` is.
    dot: &'static str,
    /// The last part was a quantifier.
    repeated: bool,
}

impl Reader<'_> {
    fn letter(&mut self, letter: char) -> Result<(), String> {
        let was_repeated = std::mem::take(&mut self.repeated);
        match letter {
            '\\' => return self.escape(),
            '[' => self.open_class(),
            ']' if self.depth > 0 => {
                self.depth -= 1;
                self.out.text.push(']');
            }
            '~' if self.depth > 0 => self.out.text.push_str("\\~"),
            _ if self.depth > 0 => self.out.text.push(letter),
            '(' if self.rest.peek() == Some(&'?') => return self.group(),
            '.' => self.out.text.push_str(self.dot),
            '$' => {
                self.out.ends = true;
                self.out.text.push('$');
            }
            '{' => self.count()?,
            '}' => self.out.text.push_str("\\}"),
            '*' | '+' | '?' => {
                self.repeated = !was_repeated;
                self.out.backtracks |= was_repeated && letter == '+';
                self.out.text.push(letter);
            }
            _ => self.out.text.push(letter),
        }
        Ok(())
    }

    /// `[`, and a `]` that is a member because it is the first.
    fn open_class(&mut self) {
        self.depth += 1;
        self.out.text.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.out.text.push('^');
        }
        match self.rest.peek() {
            Some(']') => self.out.text.push_str("\\]"),
            Some(':') => self.out.text.push_str("\\:"),
            _ => return,
        }
        self.rest.next();
    }

    /// `{n}`, `{n,}` or `{n,m}`: the brace is read.
    fn count(&mut self) -> Result<(), String> {
        const INVALID: &str = "illegal repetition";
        let least = self.digits(10, 5).ok_or(INVALID)?;
        self.out.text.push_str(&format!("{{{least}"));
        if self.rest.next_if_eq(&',').is_some() {
            self.out.text.push(',');
            if let Some(most) = self.digits(10, 5) {
                self.out.text.push_str(&most.to_string());
                if most < least {
                    return Err(INVALID.to_owned());
                }
            }
        }
        self.rest.next_if_eq(&'}').ok_or(INVALID)?;
        self.out.text.push('}');
        self.repeated = true;
        Ok(())
    }

    /// `(?…`: the opening parenthesis is read.
    fn group(&mut self) -> Result<(), String> {
        let mut opening = String::from("(");
        while let Some(letter) = self.rest.next_if(|letter| *letter != ')') {
            opening.push(letter);
            // Flags and names are short.
            let ended = matches!(letter, ':' | '=' | '!' | '>');
            if ended || opening.len() > 64 {
                break;
            }
        }
        match &opening[2..] {
            "=" | "!" | "<=" | "<!" | ">" => self.out.backtracks = true,
            name if name.starts_with('<') && name.ends_with('>') => {}
            flags if !flags.is_empty() && flags.trim_end_matches(':').bytes().all(is_flag) => {}
            ":" => {}
            unknown => return Err(format!("unknown group or flag `(?{unknown}`")),
        }
        self.out.text.push_str(&opening);
        Ok(())
    }

    /// The backslash is read.
    fn escape(&mut self) -> Result<(), String> {
        const BREAKS: &str = "\\n\\x0B\\f\\r\\u{85}\\u{2028}\\u{2029}";
        const BLANKS: &str = " \\t\\u{a0}\\u{1680}\\u{180e}\\u{2000}-\\u{200a}\\u{202f}\\u{205f}\\u{3000}";
        let letter = self.rest.next().ok_or("a backslash at the end")?;
        let out = &mut self.out.text;
        match letter {
            'd' => out.push_str("[0-9]"),
            'D' => out.push_str("[^0-9]"),
            'w' => out.push_str("[a-zA-Z0-9_]"),
            'W' => out.push_str("[^a-zA-Z0-9_]"),
            's' => out.push_str("[ \\t\\n\\x0B\\f\\r]"),
            'S' => out.push_str("[^ \\t\\n\\x0B\\f\\r]"),
            'h' => out.push_str(&format!("[{BLANKS}]")),
            'H' => out.push_str(&format!("[^{BLANKS}]")),
            'v' => out.push_str(&format!("[{BREAKS}]")),
            'V' => out.push_str(&format!("[^{BREAKS}]")),
            'R' if self.depth == 0 => out.push_str(&format!("(?:\\r\\n|[{BREAKS}])")),
            'e' => out.push_str("\\x1B"),
            't' | 'n' | 'r' | 'f' | 'a' => out.extend(['\\', letter]),
            'A' | 'z' | 'b' | 'B' if self.depth == 0 => out.extend(['\\', letter]),
            'Z' if self.depth == 0 => {
                out.push('$');
                self.out.ends = true;
            }
            'G' if self.depth == 0 => {
                out.push_str("\\G");
                self.out.backtracks = true;
            }
            'Q' => self.quoted(),
            'c' | 'x' | 'u' | '0' => return self.code(letter),
            'p' | 'P' => return self.property(letter),
            'k' | '1'..='9' if self.depth == 0 => {
                out.extend(['\\', letter]);
                self.out.backtracks = true;
            }
            _ if letter.is_ascii_alphanumeric() => return Err(format!("illegal escape `\\{letter}`")),
            _ => push_literal(letter, out),
        }
        Ok(())
    }

    /// `\Q…\E`.
    fn quoted(&mut self) {
        while let Some(letter) = self.rest.next() {
            if letter == '\\' && self.rest.next_if_eq(&'E').is_some() {
                return;
            }
            push_literal(letter, &mut self.out.text);
        }
    }

    /// A character by its code: `\cX`, `\xhh`, `\x{h…}`, `\uhhhh`, `\0ooo`.
    fn code(&mut self, kind: char) -> Result<(), String> {
        let code = match kind {
            'c' => self.rest.next().map(|letter| u32::from(letter) ^ 64),
            'x' if self.rest.next_if_eq(&'{').is_some() => {
                let code = self.digits(16, 6);
                self.rest.next_if_eq(&'}').and(code)
            }
            'x' => self.digits(16, 2),
            'u' => self.digits(16, 4),
            _ => self.digits(8, 3),
        };
        let letter = code.and_then(char::from_u32).ok_or_else(|| format!("illegal escape `\\{kind}`"))?;
        push_literal(letter, &mut self.out.text);
        Ok(())
    }

    fn digits(&mut self, radix: u32, most: usize) -> Option<u32> {
        let mut code = None;
        for _ in 0..most {
            let Some(digit) = self.rest.peek().and_then(|letter| letter.to_digit(radix)) else {
                break;
            };
            self.rest.next();
            code = Some(code.unwrap_or(0) * radix + digit);
        }
        code
    }

    /// `\p{…}`, `\P{…}`, `\pL`.
    fn property(&mut self, kind: char) -> Result<(), String> {
        let mut name = String::new();
        if self.rest.next_if_eq(&'{').is_some() {
            while let Some(letter) = self.rest.next_if(|letter| *letter != '}' && name.len() < 64) {
                name.push(letter);
            }
            self.rest.next_if_eq(&'}').ok_or("a property without its end")?;
        } else {
            name.extend(self.rest.next());
        }
        let not = if kind == 'P' { "^" } else { "" };
        let posix = match name.as_str() {
            "Lower" => "a-z",
            "Upper" => "A-Z",
            "ASCII" => "\\x00-\\x7F",
            "Alpha" => "a-zA-Z",
            "Digit" => "0-9",
            "Alnum" => "a-zA-Z0-9",
            "Punct" => "!-/:-@\\[-`\\{-\\~",
            "Graph" => "!-\\~",
            "Print" => " -\\~",
            "Blank" => " \\t",
            "Cntrl" => "\\x00-\\x1F\\x7F",
            "XDigit" => "0-9a-fA-F",
            "Space" => " \\t\\n\\x0B\\f\\r",
            other => {
                let other = other.strip_prefix("Is").unwrap_or(other);
                self.out.text.push_str(&format!("\\{kind}{{{other}}}"));
                return Ok(());
            }
        };
        self.out.text.push_str(&format!("[{not}{posix}]"));
        Ok(())
    }
}

/// Flags that mean the same in both; `u` is always on in the engine.
fn is_flag(flag: u8) -> bool {
    b"imsxu-".contains(&flag)
}

/// A character that stands for itself.
fn push_literal(letter: char, out: &mut String) {
    if letter.is_ascii_alphanumeric() || letter == '_' || !letter.is_ascii() {
        out.push(letter);
    } else {
        out.push_str(&format!("\\x{:02X}", u32::from(letter)));
    }
}
