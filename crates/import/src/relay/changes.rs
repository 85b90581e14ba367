//! Unified diff of two configurations in their canonical forms, which the original prints at SIGHUP.
//!
//! Path: `print` of both -> lines -> [`edits`] (the fewest lines removed and added, Myers) -> hunks with context.
//! Not here: SIGHUP, and printing the lines (`staunch`).
//! Invariant: time and memory are limited by [`EDITS_MAX`]; a larger difference is shown as all lines removed and added.

use std::fmt::Write as _;

/// Lines of context around a change.
const CONTEXT: usize = 3;

/// Most removed and added lines before the search for the fewest ends: its memory grows with the square.
const EDITS_MAX: usize = 1_000;

/// One line of either text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edit<'a> {
    Stays(&'a str),
    Goes(&'a str),
    Comes(&'a str),
}

/// The hunks of a unified diff, without the two lines that name the files; empty when the texts are equal.
pub fn changes(before: &str, after: &str) -> String {
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let edits = edits(&before, &after);
    let changed: Vec<usize> = edits
        .iter()
        .enumerate()
        .filter(|(_, edit)| !matches!(edit, Edit::Stays(_)))
        .map(|(at, _)| at)
        .collect();
    let mut out = String::new();
    let mut next = 0;
    while next < changed.len() {
        let first = next;
        // Changes whose context overlaps share a hunk.
        while next + 1 < changed.len() && changed[next + 1] - changed[next] <= 2 * CONTEXT + 1 {
            next += 1;
        }
        let from = changed[first].saturating_sub(CONTEXT);
        let to = (changed[next] + CONTEXT + 1).min(edits.len());
        hunk(&edits, from, to, &mut out);
        next += 1;
    }
    out
}

fn hunk(edits: &[Edit<'_>], from: usize, to: usize, out: &mut String) {
    let old = |edits: &[Edit<'_>]| edits.iter().filter(|edit| !matches!(edit, Edit::Comes(_))).count();
    let new = |edits: &[Edit<'_>]| edits.iter().filter(|edit| !matches!(edit, Edit::Goes(_))).count();
    let (head, body) = (&edits[..from], &edits[from..to]);
    let range = |before: usize, lines: usize| match lines {
        // An empty range is given as after the line before it.
        0 => format!("{before},0"),
        1 => format!("{}", before + 1),
        _ => format!("{},{lines}", before + 1),
    };
    let _ = writeln!(out, "@@ -{} +{} @@", range(old(head), old(body)), range(new(head), new(body)));
    for edit in body {
        let (sign, line) = match edit {
            Edit::Stays(line) => (' ', line),
            Edit::Goes(line) => ('-', line),
            Edit::Comes(line) => ('+', line),
        };
        let _ = writeln!(out, "{sign}{line}");
    }
}

/// The edits from one text to the other, line by line.
fn edits<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<Edit<'a>> {
    let head = before.iter().zip(after).take_while(|(one, other)| one == other).count();
    let (old, new) = (&before[head..], &after[head..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(one, other)| one == other).count();
    let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
    let mut edits: Vec<Edit<'a>> = before[..head].iter().map(|line| Edit::Stays(line)).collect();
    match fewest(old, new) {
        Some(between) => edits.extend(between),
        None => {
            edits.extend(old.iter().map(|line| Edit::Goes(line)));
            edits.extend(new.iter().map(|line| Edit::Comes(line)));
        }
    }
    edits.extend(before[before.len() - tail..].iter().map(|line| Edit::Stays(line)));
    edits
}

/// How far each diagonal (lines of the old text minus those of the new one) has been followed in the old text.
#[derive(Clone)]
struct Reach(Vec<i32>);

impl Reach {
    fn at(&self, diagonal: i32) -> i32 {
        self.0[(diagonal + self.0.len() as i32 / 2) as usize]
    }

    fn set(&mut self, diagonal: i32, line: i32) {
        let middle = self.0.len() as i32 / 2;
        self.0[(diagonal + middle) as usize] = line;
    }

    /// The diagonal that the `count`th edit comes from: from the one above by an added line, else from below.
    fn source(&self, count: i32, diagonal: i32) -> i32 {
        let comes =
            diagonal == -count || (diagonal != count && self.at(diagonal - 1) < self.at(diagonal + 1));
        if comes { diagonal + 1 } else { diagonal - 1 }
    }
}

/// The fewest edits (Myers 1986): for each number of edits, how far each diagonal can be followed. None past the limit.
fn fewest<'a>(old: &[&'a str], new: &[&'a str]) -> Option<Vec<Edit<'a>>> {
    let most = (old.len() + new.len()).min(EDITS_MAX) as i32;
    let mut reach = Reach(vec![0; 2 * most as usize + 3]);
    let mut rounds = Vec::new();
    for count in 0..=most {
        rounds.push(reach.clone());
        for diagonal in (-count..=count).step_by(2) {
            let source = reach.source(count, diagonal);
            let mut line = reach.at(source) + i32::from(source < diagonal);
            let equal = |line: i32| {
                let (old, new) = (old.get(line as usize), new.get((line - diagonal) as usize));
                old.is_some() && old == new
            };
            while equal(line) {
                line += 1;
            }
            reach.set(diagonal, line);
            if line >= old.len() as i32 && line - diagonal >= new.len() as i32 {
                return Some(walked_back(old, new, &rounds));
            }
        }
    }
    None
}

/// Reconstructs the edits from the ends of both texts.
fn walked_back<'a>(old: &[&'a str], new: &[&'a str], rounds: &[Reach]) -> Vec<Edit<'a>> {
    let (mut x, mut y) = (old.len() as i32, new.len() as i32);
    let mut edits = Vec::new();
    for (count, reach) in rounds.iter().enumerate().rev() {
        let from = if count == 0 { 0 } else { reach.source(count as i32, x - y) };
        let (before_x, before_y) = if count == 0 { (0, 0) } else { (reach.at(from), reach.at(from) - from) };
        while x > before_x && y > before_y {
            (x, y) = (x - 1, y - 1);
            edits.push(Edit::Stays(old[x as usize]));
        }
        if count > 0 {
            edits.push(match x > before_x {
                true => Edit::Goes(old[before_x as usize]),
                false => Edit::Comes(new[before_y as usize]),
            });
            (x, y) = (before_x, before_y);
        }
    }
    edits.reverse();
    edits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_printed_as_by_diff() {
        let numbered = |range: std::ops::RangeInclusive<u32>| {
            range.map(|number| format!("{number}\n")).collect::<String>()
        };
        let table = [
            ("a\n".to_owned(), "a\n".to_owned(), ""),
            (String::new(), "a\nb\n".into(), "@@ -0,0 +1,2 @@\n+a\n+b\n"),
            ("a\n".into(), String::new(), "@@ -1 +0,0 @@\n-a\n"),
            ("a\nb\nc\n".into(), "a\nx\nc\n".into(), "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n"),
            (
                numbered(1..=9),
                numbered(1..=9).replace("5\n", ""),
                "@@ -2,7 +2,6 @@\n 2\n 3\n 4\n-5\n 6\n 7\n 8\n",
            ),
            // Three lines of context each overlap at seven lines between two changes.
            (
                numbered(1..=10),
                numbered(2..=9),
                "@@ -1,4 +1,3 @@\n-1\n 2\n 3\n 4\n@@ -7,4 +6,3 @@\n 7\n 8\n 9\n-10\n",
            ),
            (numbered(1..=8), numbered(2..=7), "@@ -1,8 +1,6 @@\n-1\n 2\n 3\n 4\n 5\n 6\n 7\n-8\n"),
        ];
        for (before, after, want) in table {
            assert_eq!(changes(&before, &after), want, "{before:?} to {after:?}");
        }
    }

    /// Reconstructs the old and the new text from the edits.
    fn both(edits: &[Edit<'_>]) -> (String, String) {
        let side = |out: fn(&Edit<'_>) -> bool| {
            let line = |edit: &Edit<'_>| match edit {
                Edit::Stays(line) | Edit::Goes(line) | Edit::Comes(line) => format!("{line}\n"),
            };
            edits.iter().filter(|edit| !out(edit)).map(line).collect::<String>()
        };
        (side(|edit| matches!(edit, Edit::Comes(_))), side(|edit| matches!(edit, Edit::Goes(_))))
    }

    #[test]
    fn edits_turn_one_text_into_the_other_and_are_bounded() {
        let mut state = 7_u32;
        let mut next = move |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % below
        };
        for _ in 0..300 {
            let mut text = |lines: u32| (0..lines).map(|_| format!("{}\n", next(4))).collect::<String>();
            let (before, after) = (text(9), text(7));
            let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
            assert_eq!(both(&edits(&old, &new)), (before.clone(), after.clone()));
        }
        let long = |word: &str| (0..2 * EDITS_MAX).map(|at| format!("{word}{at}\n")).collect::<String>();
        let (before, after) = (format!("{}same\n{}", long("a"), long("b")), format!("{}same\n", long("c")));
        let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
        let all = edits(&old, &new);
        assert_eq!(all.len(), old.len() + new.len(), "every line is removed and added");
        assert_eq!(both(&all), (before.clone(), after.clone()));
    }
}
