//! Quantifiers after an atom: `*`, `+`, `?`, `{…}`, several in a row, and the `?` that makes one lazy.

use std::ops::Range;

use super::REPEAT_MAX;
use super::reader::{NOT_REPEATABLE, Reader, Refusal, TOO_BIG};

/// Maximum quantifiers after one atom: each wraps the previous ones into one more group.
const STACKED_MAX: u32 = 8;

/// A quantifier in the engines' syntax.
struct Repeat {
    text: String,
    least: u32,
    /// Its length in the expression.
    bytes: usize,
}

impl Reader<'_> {
    /// Reads all quantifiers after an atom that begins at `from` in the output. True when there was one.
    pub(super) fn quantifiers(&mut self, from: usize, repeatable: bool) -> Result<bool, Refusal> {
        let (mut before, mut count) = (None, 0);
        while let Some(repeat) = self.quantifier()? {
            let at = self.at - repeat.bytes..self.at;
            count += 1;
            if !repeatable || count > STACKED_MAX {
                let message = if repeatable {
                    format!("at most {STACKED_MAX} quantifiers are allowed in a row")
                } else {
                    "there is nothing here that can be repeated".into()
                };
                return Err(Refusal::new(at, &message, NOT_REPEATABLE));
            }
            if let Some(least) = before
                && repeat.text == "?"
            {
                self.note_lazy(at, least);
                self.out.push('?');
                before = None;
                continue;
            }
            if count > 1 {
                if repeat.text == "+" {
                    let message = "`+` behind a quantifier repeats it, as in the C library; builds with PCRE2 read it \
                        as possessive";
                    self.note(at, message, "remove it");
                }
                self.wrap(from);
            }
            self.out.push_str(&repeat.text);
            before = Some(repeat.least);
        }
        Ok(count > 0)
    }

    fn note_lazy(&mut self, at: Range<usize>, least: u32) {
        if self.captures || least > 0 {
            let message = "`?` behind a quantifier takes as little as possible; builds with the C library read it as \
                `(…)?`";
            let hint = "leave it out, or use a class that stops at the right character, such as [^.]*";
            self.note(at, message, hint);
        }
    }

    /// Wraps the output from `from` on into a group.
    fn wrap(&mut self, from: usize) {
        self.out.insert_str(from, "(?:");
        self.out.push(')');
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
            let refusal =
                Refusal::new(at, "this is not a number of repetitions", "Invalid content of \\{\\}");
            return Err(refusal.hint("write {2}, {2,} or {2,5}, or `\\{` for the character itself"));
        }
        let number = |text: &str, empty: Option<u32>| match text {
            "" => Ok(empty),
            text => match text.parse::<u32>() {
                Ok(number) if number <= REPEAT_MAX => Ok(Some(number)),
                _ => Err(Refusal::new(
                    at.clone(),
                    &format!("at most {REPEAT_MAX} repetitions are allowed"),
                    TOO_BIG,
                )),
            },
        };
        let (least, most) = (number(least, Some(0))?.unwrap_or(0), number(most, None)?);
        if most.is_some_and(|most| most < least) {
            let refusal =
                Refusal::new(at, "the maximum is smaller than the minimum", "Invalid content of \\{\\}");
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
