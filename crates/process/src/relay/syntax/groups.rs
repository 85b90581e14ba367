//! Groups: constructs that begin with `(`, and back references to them. Capturing or not, switches, look-around.

use super::reader::{Atom, Engine, NOT_REPEATABLE, Note, NoteAbout, Reader, Refusal, TOO_BIG};
use super::{DEPTH_MAX, GROUPS_MAX};

/// Groups that need backtracking, their names, and their replacement for the linear engine.
const BACKTRACKED: [(&[u8], &str, Rest); 5] = [
    (b"(?=", "a look-ahead", Rest::Nothing),
    (b"(?!", "a look-ahead", Rest::Nothing),
    (b"(?<=", "a look-behind", Rest::Nothing),
    (b"(?<!", "a look-behind", Rest::Nothing),
    (b"(?>", "an atomic group", Rest::Group),
];

/// The linear engine's replacement for a group that it does not know.
#[derive(Clone, Copy, PartialEq)]
enum Rest {
    Nothing,
    Group,
}

/// The kind of a group, by its first bytes.
enum Opening {
    /// A switch such as `(?i)`, or a comment: it has no body.
    Empty,
    /// A complete back reference.
    Reference,
    /// A group that is translated like any other; its start is in the output.
    Group,
    /// Look-around: nothing but a position is left of it.
    Look,
}

impl Reader<'_> {
    pub(super) fn group(&mut self) -> Result<Atom, Refusal> {
        let (start, from) = (self.at, self.out.len());
        self.at += 1;
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let message = format!("parentheses are nested more than {DEPTH_MAX} deep");
            return Err(Refusal::new(start..start + 1, &message, TOO_BIG));
        }
        let (fold, groups) = (self.fold, self.groups);
        let opening = if self.peek() == Some(b'?') { self.perl_group(start)? } else { self.capture(start)? };
        if let Opening::Empty | Opening::Reference = opening {
            self.depth -= 1;
            return Ok(if let Opening::Empty = opening { Atom::Nothing } else { Atom::Other });
        }
        let captures = self.groups > groups;
        if captures {
            self.open.push(self.groups);
        }
        self.alternation()?;
        if self.peek() != Some(b')') {
            let refusal = Refusal::new(start..start + 1, "this `(` is not closed", "Unmatched ( or \\(");
            return Err(refusal.hint("add `)`, or write `\\(` for the character itself"));
        }
        self.at += 1;
        self.depth -= 1;
        self.fold = fold;
        if captures {
            self.open.pop();
        }
        self.out.push(')');
        if !matches!(opening, Opening::Look) {
            return Ok(Atom::Other);
        }
        if self.engine == Engine::Linear {
            self.out.truncate(from);
        }
        Ok(Atom::Nothing)
    }

    fn capture(&mut self, start: usize) -> Result<Opening, Refusal> {
        self.groups += 1;
        if self.groups > GROUPS_MAX {
            let message = format!("an expression has at most {GROUPS_MAX} groups");
            return Err(Refusal::new(start..start + 1, &message, "too many match groups"));
        }
        // A back reference needs it even when captures are not requested.
        let captures = self.captures || self.engine == Engine::Backtracking;
        self.out.push_str(if captures { "(" } else { "(?:" });
        Ok(Opening::Group)
    }

    /// Constructs that begin with `(?`, which only PCRE2 knows.
    fn perl_group(&mut self, start: usize) -> Result<Opening, Refusal> {
        let rest = &self.text[start..];
        if let Some((sign, what, left)) = BACKTRACKED.iter().find(|(sign, ..)| rest.starts_with(sign)) {
            self.at = start + sign.len();
            self.needs_backtracking(start, what);
            let sign = if self.engine == Engine::Backtracking { sign } else { &b"(?:"[..] };
            self.out.extend(sign.iter().map(|byte| char::from(*byte)));
            return Ok(if *left == Rest::Nothing { Opening::Look } else { Opening::Group });
        }
        if rest.starts_with(b"(?#")
            && let Some(end) = rest.iter().position(|byte| *byte == b')')
        {
            self.at = start + end + 1;
            return Ok(Opening::Empty);
        }
        if let Some((end, fold)) = switches(&rest[2..]) {
            self.at = start + 2 + end + 1;
            self.fold = fold.unwrap_or(self.fold);
            if rest[2 + end] == b')' {
                return Ok(Opening::Empty);
            }
            self.out.push_str("(?:");
            return Ok(Opening::Group);
        }
        let signs = [(&b"(?P<"[..], b'>'), (b"(?<", b'>'), (b"(?'", b'\'')];
        if let Some((sign, close)) = signs.into_iter().find(|(sign, _)| rest.starts_with(sign))
            && let Some((name, end)) = name(&rest[sign.len()..], close)
        {
            if self.names.iter().any(|(known, _)| known == name) {
                let at = start..start + sign.len() + end;
                return Err(Refusal::new(at, "another group has this name", NOT_REPEATABLE));
            }
            self.at = start + sign.len() + end;
            let opening = self.capture(start)?;
            self.names.push((name.to_vec(), self.groups));
            return Ok(opening);
        }
        if rest.starts_with(b"(?P=")
            && let Some((name, end)) = name(&rest[4..], b')')
        {
            self.at = start + 4 + end;
            let at = start..self.at;
            let number = self.named(name);
            self.back_reference(at, number)?;
            return Ok(Opening::Reference);
        }
        let refusal = Refusal::new(start..start + 2, "this kind of group is not supported", NOT_REPEATABLE);
        Err(refusal.hint(
            "known are (…), (?:…), (?i:…), (?i), (?<name>…), (?>…) and look-around: (?=…), (?!…), (?<=…), (?<!…)",
        ))
    }

    /// The number of the group with this name; a number without a group if there is none.
    pub(super) fn named(&self, name: &[u8]) -> usize {
        let known = self.names.iter().find(|(known, _)| known == name);
        known.map_or(0, |(_, number)| *number)
    }

    /// A back reference: the text that a group matched, again.
    pub(super) fn back_reference(
        &mut self,
        at: std::ops::Range<usize>,
        number: usize,
    ) -> Result<Atom, Refusal> {
        if number == 0 || number > self.groups || self.open.contains(&number) {
            let refusal =
                Refusal::new(at, "no group of this number ends before it", "Invalid back reference");
            return Err(refusal.hint("groups are counted from 1, by their opening parentheses"));
        }
        self.needs_backtracking(at.start, "a back reference");
        self.out.push_str(&match self.engine {
            Engine::Linear => "(?:.*)".to_owned(),
            Engine::Backtracking => format!("(?{}:\\{number})", if self.fold { "i" } else { "" }),
        });
        Ok(Atom::Other)
    }

    /// Reports the first construct that needs backtracking.
    fn needs_backtracking(&mut self, start: usize, what: &str) {
        if !std::mem::replace(&mut self.backtracks, true) {
            let message = format!("{what} is matched by backtracking, slower than other expressions");
            let hint = "to avoid it, match the names to exclude in an earlier rule that stops";
            let (about, at, hint) = (NoteAbout::Backtracking, start..self.at, hint.to_owned());
            self.notes.push(Note { about, at, message, hint });
        }
    }
}

/// Parses switches up to a `)` or a `:`. Returns its position, and the new case sensitivity. Other switches are
/// about line ends.
fn switches(rest: &[u8]) -> Option<(usize, Option<bool>)> {
    let end = rest.iter().position(|byte| !b"ims-".contains(byte))?;
    let (mut fold, mut on) = (None, true);
    for byte in &rest[..end] {
        match byte {
            b'-' if on => on = false,
            b'-' => return None,
            b'i' => fold = Some(on),
            _ => {}
        }
    }
    matches!(rest[end], b')' | b':').then_some((end, fold))
}

/// A name, and the position after its closing character.
pub(super) fn name(rest: &[u8], close: u8) -> Option<(&[u8], usize)> {
    let end = rest.iter().position(|byte| *byte == close)?;
    let name = &rest[..end];
    let good = name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    (good && !name.is_empty()).then_some((name, end + 1))
}
