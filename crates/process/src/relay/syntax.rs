//! Translates expressions of carbon-c-relay into the syntax of our two engines (spec graphite §2.5, §8.1).
//!
//! The original is built either with the C library's POSIX extended expressions or with PCRE2, and its users write
//! for both. A construct that only one of the two knows has that meaning here. Where both know it and differ, it
//! has PCRE2's meaning, except for `a++`, and a [`Note`] reports it. Both work on bytes, and so does the
//! translation: a quantifier after `é` repeats its last byte.
//!
//! Path of a text: **`translate`** -> alternation -> branch -> atom (`groups`, `escapes`, `brackets`) -> `repeats`.
//! The first pass skips constructs that need backtracking. If there was one, a second pass translates for that
//! engine.
//! Not here: whether the result is too large; the engines check that.
//! Invariant: any text gives an expression that the engines can parse, or one [`Refusal`] within the text; depth
//! and repetitions are limited by the `_MAX` constants.

use std::ops::Range;

mod brackets;
mod escapes;
mod groups;
mod loops;
mod reader;
mod repeats;
#[cfg(test)]
mod tests;

pub(super) use reader::{NOT_REPEATABLE, TOO_BIG};
pub use reader::{Note, NoteAbout, Refusal};

use reader::{Atom, Engine, Reader};

/// Maximum nesting of parentheses.
pub const DEPTH_MAX: usize = 64;
/// Maximum number of capture groups, as in the original.
pub const GROUPS_MAX: usize = 63;
/// Largest number in `{…}`, as in the C library.
pub const REPEAT_MAX: u32 = 32_767;

/// An expression in the syntax of the engines. It matches bytes: `.` is any byte, and case matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Translated {
    /// For the linear engine. For an expression that needs backtracking it is the part without those constructs: it
    /// matches every name that the expression matches, and others.
    pub(super) linear: String,
    /// For the backtracking engine, if the expression needs it.
    pub(super) backtracking: Option<String>,
    /// Capture groups, without group 0.
    pub(super) groups: usize,
    pub(super) notes: Vec<Note>,
}

/// Translates an expression. With `captures`, positions and groups of matches are needed, so that it matters which
/// of several possible matches is taken. Without, groups only group.
///
/// # Errors
/// The first construct that is invalid.
pub(super) fn translate(text: &str, ignore_case: bool, captures: bool) -> Result<Translated, Refusal> {
    let read = |engine| {
        let mut reader = Reader::new(text.as_bytes(), engine, ignore_case, captures);
        reader.whole()?;
        Ok(reader)
    };
    let mut first = read(Engine::Linear)?;
    if captures && loops::may_differ(&first.out) {
        first.notes.push(Note {
            about: NoteAbout::Reading,
            at: 0..text.len(),
            message: "a repeated part prefers to match nothing: PCRE2 may find a shorter match".into(),
            hint: "leave out the `?` that makes a part of it lazy, or the empty alternative".into(),
        });
    }
    let backtracking = if first.backtracks { Some(read(Engine::Backtracking)?.out) } else { None };
    Ok(Translated { linear: first.out, backtracking, groups: first.groups, notes: first.notes })
}

/// One branch of an alternation: its bytes if it is a plain text.
type Literal = Option<Vec<u8>>;

impl Reader<'_> {
    fn whole(&mut self) -> Result<(), Refusal> {
        self.alternation()?;
        if self.peek().is_none() {
            return Ok(());
        }
        let refusal = Refusal::new(self.at..self.at + 1, "this `)` closes nothing", "Unmatched ) or \\)");
        Err(refusal.hint("write `\\)` for the character itself"))
    }

    /// `branch | branch | …`, up to a `)` or the end.
    fn alternation(&mut self) -> Result<(), Refusal> {
        let start = self.at;
        let mut branches = vec![self.branch()?];
        while self.peek() == Some(b'|') {
            self.at += 1;
            self.out.push('|');
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
        // The text after the group decides when the longer branch continues differently.
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
            let message =
                "the C library takes the longest of these, PCRE2 and Staunch the first that matches";
            self.note(at, message, "write the longer ones first");
        }
    }

    fn branch(&mut self) -> Result<Literal, Refusal> {
        let mut literal = Some(Vec::new());
        while let Some(byte) = self.peek() {
            if byte == b'|' || byte == b')' {
                break;
            }
            let from = self.out.len();
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
                self.out.push_str(&set);
                Ok(Atom::Other)
            }
            b'\\' => self.escape(),
            b'^' | b'$' | b'.' => {
                self.at += 1;
                self.out.push(char::from(byte));
                Ok(if byte == b'.' { Atom::Other } else { Atom::Nothing })
            }
            b'*' | b'+' | b'?' | b'{' => {
                let refusal =
                    Refusal::new(start..start + 1, "there is nothing here to repeat", NOT_REPEATABLE);
                let sign = char::from(byte);
                Err(refusal.hint(format!(
                    "write `\\{sign}` for the character itself, or `.{sign}` for any characters"
                )))
            }
            _ => {
                self.at += 1;
                Ok(self.byte(byte))
            }
        }
    }

    /// A literal byte.
    fn byte(&mut self, byte: u8) -> Atom {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' if self.fold => {
                let (lower, upper) = (byte.to_ascii_lowercase(), byte.to_ascii_uppercase());
                self.out.extend(['[', char::from(upper), char::from(lower), ']']);
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => self.out.push(char::from(byte)),
            b' ' | b'/' | b':' | b',' | b'=' | b';' | b'%' | b'@' | b'!' | b'"' | b'\'' | b'<' | b'>' => {
                self.out.push(char::from(byte));
            }
            0x21..=0x7e => self.out.extend(['\\', char::from(byte)]),
            _ => self.out.push_str(&format!("\\x{byte:02X}")),
        }
        Atom::Byte(byte)
    }
}
