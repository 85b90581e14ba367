//! Mistakes of a config that its load finds, and the nearest right name for a wrong one.

use std::fmt;

use crate::position::Position;

/// Names longer than this have no suggestion.
const NAME_CHARS_MAX: usize = 40;

/// A mistake with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Where it is.
    pub at: Position,
    /// What is wrong.
    pub message: String,
    /// What may help.
    pub hint: Option<String>,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}: {}", self.at, self.message)?;
        self.hint.iter().try_for_each(|hint| write!(to, " ({hint})"))
    }
}

/// The nearest of some names, if one is near enough to be meant.
pub fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let wanted: Vec<char> = name.chars().collect();
    if wanted.len() > NAME_CHARS_MAX {
        return None;
    }
    // At least one letter has to be right.
    let most = (1 + wanted.len() / 4).min(wanted.len().saturating_sub(1));
    let near = names.filter_map(|other| {
        let letters: Vec<char> = other.chars().take(NAME_CHARS_MAX + 1).collect();
        let far = letters.len().abs_diff(wanted.len()) > most;
        let distance = if far { usize::MAX } else { distance(&wanted, &letters) };
        // The name itself decides between equal ones, so that the answer does not depend on the order of a table.
        let other_begin = wanted.iter().zip(&letters).take_while(|(a, b)| a == b).count();
        // Of those that are equally near, the one that begins alike.
        (distance <= most).then_some((distance, usize::MAX - other_begin, other))
    });
    near.min().map(|(.., name)| name)
}

/// How many letters have to be put in, taken out, changed or swapped.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, to) in b.iter().enumerate() {
            let changed = above[j] + usize::from(from != to);
            let mut best = changed.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i - 1] == *to && *from == b[j - 1] {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}
