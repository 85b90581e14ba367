//! Replacement texts (spec graphite §2.6): what stands for the matched part of a name.

/// A replacement text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// As written, quotes resolved.
    pub written: String,
    /// What it is made of; one text, backslashes included, when the expression has no groups.
    pub pieces: Vec<Piece>,
}

impl Replacement {
    /// The text with groups, the first of which is number 1.
    pub fn expanded(&self, groups: &[&str]) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Group { number, case, dots } => {
                let group = number.checked_sub(1).and_then(|at| groups.get(at)).copied().unwrap_or_default();
                let group = if *dots { group.replace('.', "_") } else { group.to_owned() };
                match case {
                    Case::Kept => group,
                    Case::Lower => group.to_ascii_lowercase(),
                    Case::Upper => group.to_ascii_uppercase(),
                }
            }
        };
        self.pieces.iter().map(piece).collect()
    }
}

/// A part of a replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Itself.
    Text(String),
    /// What a group matched.
    Group {
        /// Its number, from 1; one that the expression does not have gives nothing.
        number: usize,
        /// ASCII letters changed.
        case: Case,
        /// Dots become underscores.
        dots: bool,
    },
}

/// What becomes of a group's letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Case {
    /// Nothing.
    #[default]
    Kept,
    /// `\_1`
    Lower,
    /// `\^1`
    Upper,
}

/// A reference in the text: where it stands, and the group that it names.
pub(super) struct Reference {
    /// Bytes of the text.
    pub at: std::ops::Range<usize>,
    /// 0 when the number is too large to be one.
    pub number: usize,
}

/// Reads a replacement for an expression with `groups` groups. The references that name none of them come with it.
pub(super) fn read(text: &str, groups: usize) -> (Replacement, Vec<Reference>) {
    let written = text.to_owned();
    if groups == 0 {
        return (Replacement { written, pieces: vec![Piece::Text(text.to_owned())] }, Vec::new());
    }
    let (mut pieces, mut lost, mut plain) = (Vec::new(), Vec::new(), String::new());
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let Some((group, bytes)) = reference(rest) else {
            let next = rest.chars().next().map_or(1, char::len_utf8);
            plain.push_str(&rest[..next]);
            at += next;
            continue;
        };
        if !plain.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
        }
        if let Piece::Group { number, .. } = group
            && !(1..=groups).contains(&number)
        {
            lost.push(Reference { at: at..at + bytes, number });
        }
        pieces.push(group);
        at += bytes;
    }
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    (Replacement { written, pieces }, lost)
}

/// The reference that a text begins with, and its bytes: `\1`, `\\1`, `\_1`, `\^.1`, `\g{.1}`.
fn reference(text: &str) -> Option<(Piece, usize)> {
    let rest = text.strip_prefix('\\')?;
    let rest = rest.strip_prefix('\\').unwrap_or(rest);
    let (rest, closed) = rest.strip_prefix("g{").map_or((rest, false), |rest| (rest, true));
    let (case, rest) = match rest.as_bytes().first() {
        Some(b'_') => (Case::Lower, &rest[1..]),
        Some(b'^') => (Case::Upper, &rest[1..]),
        _ => (Case::Kept, rest),
    };
    let (dots, rest) = rest.strip_prefix('.').map_or((false, rest), |rest| (true, rest));
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return None;
    }
    let number = rest[..digits].parse().unwrap_or(0);
    let rest = &rest[digits..];
    let rest = if closed { rest.strip_prefix('}')? } else { rest };
    Some((Piece::Group { number, case, dots }, text.len() - rest.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(number: usize, case: Case, dots: bool) -> Piece {
        Piece::Group { number, case, dots }
    }

    #[test]
    fn prefixes_of_statistics_are_made_of_the_hosts_name() {
        let table = [
            ("carbon.relays.\\.1", "carbon.relays.Web1_example_com"),
            ("a.\\_2", "a.web1"),
            ("a.\\^2\\3", "a.WEB1.example.com"),
            ("plain", "plain"),
            ("a\\4b\\0", "ab"),
        ];
        for (prefix, want) in table {
            let groups = ["Web1.example.com", "Web1", ".example.com"];
            assert_eq!(read(prefix, 3).0.expanded(&groups), want, "{prefix}");
        }
    }

    #[test]
    fn replacements_are_taken_apart() {
        let text = |text: &str| Piece::Text(text.into());
        let one = |number| group(number, Case::Kept, false);
        let table: &[(&str, usize, Vec<Piece>, usize)] = &[
            ("x.\\2.\\1", 2, vec![text("x."), one(2), text("."), one(1)], 0),
            ("n.\\_1", 1, vec![text("n."), group(1, Case::Lower, false)], 0),
            ("\\^.1b", 1, vec![group(1, Case::Upper, true), text("b")], 0),
            ("h.\\.1", 1, vec![text("h."), group(1, Case::Kept, true)], 0),
            ("\\\\1", 1, vec![one(1)], 0),
            ("\\g{_1}2", 1, vec![group(1, Case::Lower, false), text("2")], 0),
            ("\\g{1", 1, vec![text("\\g{1")], 0),
            ("\\12", 12, vec![one(12)], 0),
            ("\\3a", 2, vec![one(3), text("a")], 1),
            ("\\0", 1, vec![one(0)], 1),
            ("\\99999999999999999999999", 1, vec![one(0)], 1),
            ("\\x\\", 1, vec![text("\\x\\")], 0),
            ("é\\1", 1, vec![text("é"), one(1)], 0),
            ("a\\1", 0, vec![text("a\\1")], 0),
            ("", 1, vec![], 0),
        ];
        for (written, groups, want, lost) in table {
            let (got, references) = read(written, *groups);
            assert_eq!((&got.pieces, references.len()), (want, *lost), "{written}");
        }
    }
}
