//! What one instance leaves for the next beside checkpoints: for each aggregation the last window that was emitted
//! completely.
//!
//! A window is emitted when the blocks of its flush are in the outputs' queues. Its label keeps the next instance from
//! emitting that slot again; the number of the last checkpoint up to that window keeps it from counting such a
//! checkpoint again, even if wall clocks and grids have changed in between.

use std::collections::{BTreeMap, BTreeSet};

use config::plan::TransformPlan;
use model::{Now, SECOND_NS};
use process::aggregate::checkpoint::LastFlush;

/// Starts the line with the time at which the notes were written, Unix seconds. No note looks like it.
const WRITTEN: &str = "written ";

/// Starts the line of a removed aggregation, before its name.
const GONE: &str = "gone ";

/// A clock that was set back by more windows than this has left wrong labels, see docs/restarts.md.
const JUMP_WINDOWS: u64 = 2;

/// The line with the wall clock of the notes.
pub fn written_line(now: Now) -> String {
    format!("{WRITTEN}{}\n", now.wall_ns / SECOND_NS)
}

/// How far the wall clock was set back, at least, since notes were written; 0 when they have no time.
pub fn set_back_ns(text: &str, now: Now) -> u64 {
    let seconds = text.lines().find_map(|line| line.strip_prefix(WRITTEN)?.parse::<u64>().ok());
    seconds.unwrap_or(0).saturating_mul(SECOND_NS).saturating_sub(now.wall_ns)
}

/// The note, without a label from a clock that was set back since by more windows than can be compensated.
pub fn believed(transform: &TransformPlan, noted: LastFlush, set_back_ns: u64) -> LastFlush {
    let window_ns = transform.kind.as_aggregate().map_or(0, |aggregate| aggregate.plan.window_ms * 1_000_000);
    let is_wrong = set_back_ns > JUMP_WINDOWS * window_ns;
    if is_wrong { LastFlush { label_s: None, ..noted } } else { noted }
}

/// The last emitted window of one aggregation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// Label of the window, Unix seconds.
    pub label_s: u64,
    /// Every checkpoint up to this number is of that window or an earlier one; none when there are none.
    pub number: Option<u64>,
}

/// The notes of all aggregations that ever emitted a window: those missing from the current plan may come back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    by_name: BTreeMap<String, Note>,
    /// Those in the plan in force; at the start, those in the previous one.
    here: BTreeSet<String>,
}

impl Notes {
    /// Reads the output of [`Notes::to_text`]. Invalid lines are ignored.
    pub fn of_text(text: &str) -> Notes {
        let notes = text.lines().filter_map(|line| {
            let (figures, name) = line.split_once(' ')?;
            let (label, number) = match figures.split_once('/') {
                Some((label, number)) => (label, Some(number.parse().ok()?)),
                None => (figures, None),
            };
            Some((name.to_owned(), Note { label_s: label.parse().ok()?, number }))
        });
        let by_name: BTreeMap<String, Note> = notes.collect();
        let mut here: BTreeSet<String> = by_name.keys().cloned().collect();
        for name in text.lines().filter_map(|line| line.strip_prefix(GONE)) {
            here.remove(name);
        }
        Notes { by_name, here }
    }

    /// A line `LABEL/NUMBER NAME` or `LABEL NAME` for each aggregation, then one for each removed one.
    pub fn to_text(&self) -> String {
        let line = |(name, note): (&String, &Note)| match note.number {
            Some(number) => format!("{}/{number} {name}\n", note.label_s),
            None => format!("{} {name}\n", note.label_s),
        };
        let gone = self.by_name.keys().filter(|name| !self.here.contains(*name));
        let gone = gone.map(|name| format!("{GONE}{name}\n"));
        self.by_name.iter().map(line).chain(gone).collect()
    }

    /// A plan with these aggregations is in force. True when the previous one had others.
    pub fn in_force<'a>(&mut self, names: impl Iterator<Item = &'a str>) -> bool {
        let here = names.map(str::to_owned).collect();
        let before = std::mem::replace(&mut self.here, here);
        before != self.here
    }

    /// True when the last plan did not have the aggregation: others may have emitted windows meanwhile that it did not.
    pub fn is_new(&self, name: &str) -> bool {
        !self.here.contains(name)
    }

    /// A window has been emitted. True when that was not known. Numbers never decrease.
    pub fn flushed(&mut self, name: &str, note: Note) -> bool {
        let before = self.by_name.get(name).copied();
        let number = note.number.max(before.and_then(|before| before.number));
        let note = Note { number, ..note };
        if before == Some(note) {
            return false;
        }
        self.by_name.insert(name.to_owned(), note);
        true
    }

    /// What is known of an aggregation.
    pub fn of(&self, name: &str) -> LastFlush {
        let note = self.by_name.get(name);
        LastFlush { label_s: note.map(|note| note.label_s), number: note.and_then(|note| note.number) }
    }

    /// The latest label of those that are not `known`: they were removed, and another aggregation may emit the same
    /// series.
    pub fn latest_of_others(&self, known: impl Fn(&str) -> bool) -> Option<u64> {
        self.by_name.iter().filter(|(name, _)| !known(name)).map(|(_, note)| note.label_s).max()
    }
}

#[test]
fn notes_come_back_and_numbers_never_go_back() {
    let mut notes = Notes::default();
    assert!(notes.in_force(["stats", "a b"].into_iter()));
    let note = |label_s, number| Note { label_s, number };
    for (name, noted, news) in [
        ("stats", note(1060, Some(7)), true),
        ("stats", note(1060, Some(7)), false),
        ("stats", note(1050, None), true),
        ("a b", note(5, None), true),
    ] {
        assert_eq!(notes.flushed(name, noted), news, "{name} {noted:?}");
    }
    assert_eq!(notes.to_text(), "5 a b\n1050/7 stats\n");
    assert_eq!(Notes::of_text(&notes.to_text()), notes);
    assert!(!notes.in_force(["stats", "a b"].into_iter()), "nothing new");
    assert!(notes.in_force(["stats"].into_iter()));
    assert_eq!(notes.to_text(), "5 a b\n1050/7 stats\ngone a b\n");
    assert_eq!(Notes::of_text(&notes.to_text()), notes);
    notes.flushed("a b", note(6, None));
    assert_eq!(["stats", "a b", "never noted"].map(|name| notes.is_new(name)), [false, true, true]);
    let others = |known: &[&str]| notes.latest_of_others(|name| known.contains(&name));
    assert_eq!((others(&[]), others(&["stats"]), others(&["stats", "a b"])), (Some(1050), Some(6), None));
    let read = |text: &str| Notes::of_text(text).of("x");
    for (text, label_s, number) in [
        ("no number\n\n12\n7 x\n", Some(7), None),
        ("7/3 x\n", Some(7), Some(3)),
        ("7/ x\n", None, None),
        ("/3 x\n", None, None),
        ("", None, None),
    ] {
        assert_eq!(read(text), LastFlush { label_s, number }, "{text:?}");
    }
}
