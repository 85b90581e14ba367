//! Which records arrived, how often, and what arrived that nobody sent: by ids, not by totals.
//!
//! Path of a line: an [`crate::endpoint::Endpoint`] reads it -> [`Oracle::hear`] finds its id -> a case asks for the
//! [`Count`] and compares it with what it sent. Each record has an id of its own in its name, and is compared whole:
//! a line that was torn or glued to another is a stranger, never an id.
//! Invariant: every line that arrives is counted once: as an id, as a point of a series that is watched, or as a
//! stranger.

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard};

/// Strangers that are kept to be shown.
const STRANGERS_SHOWN_MAX: usize = 3;

/// What lines look like where they arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As they were sent: `id_7:1|c`.
    Line,
    /// As they were sent to a relay: `id_7 1 1700000000`.
    Graphite,
    /// As points of counters in Graphite's legacy names: `stats_counts.id_7 1 1700000000`. Rates (`stats.…`) and
    /// counters at rest (0) are passed over.
    Point,
}

/// Appends the record with this id, as a sender sends it.
pub(crate) fn write_record(into: &mut Vec<u8>, id: u64) {
    writeln!(into, "id_{id}:1|c").expect("memory takes it");
}

/// Appends the record with this id as a Graphite line.
pub(crate) fn write_point(into: &mut Vec<u8>, id: u64) {
    writeln!(into, "id_{id} 1 1700000000").expect("memory takes it");
}

/// The records with these ids, line by line.
pub(crate) fn records(ids: Range<u64>) -> Vec<u8> {
    let mut lines = Vec::new();
    ids.for_each(|id| write_record(&mut lines, id));
    lines
}

/// What an oracle has heard.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Count {
    /// Different ids.
    pub(crate) arrived: u64,
    /// Arrivals beyond the first of an id.
    pub(crate) twice: u64,
    /// First arrivals behind a higher id.
    pub(crate) out_of_order: u64,
    /// Lines that nobody sent so.
    pub(crate) strangers: u64,
    /// The first of them.
    pub(crate) strangers_shown: Vec<String>,
}

/// See the module's header.
#[derive(Debug)]
pub(crate) struct Oracle {
    form: Form,
    heard: Mutex<Heard>,
    /// A copy of `Count::arrived` that costs its readers nothing.
    arrived: AtomicU64,
}

#[derive(Debug, Default)]
struct Heard {
    /// Arrivals by id.
    times: Vec<u8>,
    /// One above the highest id so far.
    next: u64,
    count: Count,
    /// Points of series without an id, by name: (second, value) in the order of arrival.
    points: BTreeMap<String, Vec<(u64, f64)>>,
}

impl Oracle {
    /// One that has heard nothing yet.
    pub(crate) fn new(form: Form) -> Oracle {
        Oracle { form, heard: Mutex::default(), arrived: AtomicU64::new(0) }
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().expect("no reader panics")
    }

    /// Takes whole lines, each with its line feed.
    pub(crate) fn hear(&self, lines: &[u8]) {
        let mut heard = self.heard();
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            match self.form {
                Form::Line | Form::Graphite => match id_of_line(line, self.form) {
                    Some(id) => heard.id(id),
                    None => heard.stranger(line),
                },
                Form::Point => heard.point(line),
            }
        }
        self.arrived.store(heard.count.arrived, SeqCst);
    }

    /// Different ids so far.
    pub(crate) fn arrived(&self) -> u64 {
        self.arrived.load(SeqCst)
    }

    /// Everything so far.
    pub(crate) fn count(&self) -> Count {
        self.heard().count.clone()
    }

    /// Ids of a range that did not arrive.
    pub(crate) fn missing(&self, ids: Range<u64>) -> Vec<u64> {
        let heard = self.heard();
        ids.filter(|id| heard.times.get(*id as usize).is_none_or(|times| *times == 0)).collect()
    }

    /// Points of a series without an id.
    pub(crate) fn points(&self, name: &str) -> Vec<(u64, f64)> {
        self.heard().points.get(name).cloned().unwrap_or_default()
    }

    /// The sum of such a series.
    pub(crate) fn total(&self, name: &str) -> f64 {
        self.points(name).iter().map(|(_, value)| value).sum()
    }
}

impl Heard {
    fn id(&mut self, id: u64) {
        let place = id as usize;
        if place >= self.times.len() {
            self.times.resize((place + 1).next_power_of_two(), 0);
        }
        let times = &mut self.times[place];
        if *times > 0 {
            self.count.twice += 1;
        } else {
            self.count.arrived += 1;
            self.count.out_of_order += u64::from(id < self.next);
            self.next = self.next.max(id + 1);
        }
        *times = times.saturating_add(1);
    }

    fn point(&mut self, line: &[u8]) {
        let Some((name, value, time_s)) = parse_point(line) else { return self.stranger(line) };
        let Some(name) = name.strip_prefix("stats_counts.") else {
            // Rates, and the number of series of a flush.
            if !name.starts_with("stats.") && !name.starts_with("statsd.") {
                self.stranger(line);
            }
            return;
        };
        match name.strip_prefix("id_").map(str::parse) {
            None => self.points.entry(name.to_owned()).or_default().push((time_s, value)),
            Some(Ok(_at_rest)) if value == 0.0 => {}
            Some(Ok(id)) if value == 1.0 => self.id(id),
            // A record that was added up twice is one that arrived twice, in a place where totals hide it.
            Some(Ok(id)) if value == 2.0 => (0..2).for_each(|_| self.id(id)),
            Some(_) => self.stranger(line),
        }
    }

    fn stranger(&mut self, line: &[u8]) {
        self.count.strangers += 1;
        if self.count.strangers_shown.len() < STRANGERS_SHOWN_MAX {
            let shown = String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned();
            self.count.strangers_shown.push(shown);
        }
    }
}

fn id_of_line(line: &[u8], form: Form) -> Option<u64> {
    let end: &[u8] = if form == Form::Graphite { b" 1 1700000000" } else { b":1|c" };
    let digits = line.strip_prefix(b"id_")?.strip_suffix(end)?;
    let first = *digits.first()?;
    // As it was written: no sign, no leading zero.
    let canonical = digits.iter().all(u8::is_ascii_digit) && (first != b'0' || digits.len() == 1);
    (canonical && digits.len() < 12)
        .then(|| digits.iter().fold(0, |id, digit| id * 10 + u64::from(digit - b'0')))
}

fn parse_point(line: &[u8]) -> Option<(&str, f64, u64)> {
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let point = (words.next()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    words.next().is_none().then_some(point)
}

/// What the oracle is worth: shown before every run, since a harness of its own has no other tests.
pub(crate) fn self_test() {
    let lines = Oracle::new(Form::Line);
    lines.hear(&records(0..3));
    lines.hear(b"id_5:1|c\nid_4:1|c\nid_1:1|c\nid_1id_2:1|c\nid_07:1|c\nid_9:1|\nid_:1|c\n");
    let count = lines.count();
    assert_eq!((count.arrived, count.twice, count.out_of_order, count.strangers), (5, 1, 1, 4), "{count:?}");
    assert_eq!((lines.arrived(), lines.missing(0..7)), (5, vec![3, 6]));
    let points = Oracle::new(Form::Point);
    points
        .hear(b"stats.id_1 0.1 10\nstats_counts.id_1 1 10\nstats_counts.id_1 0 20\nstats_counts.id_2 2 10\n");
    points.hear(b"stats_counts.hits 4 10\nstats_counts.hits 5 20\nstats_counts.id_3 1\nother 1 10\n");
    let count = points.count();
    assert_eq!((count.arrived, count.twice, count.strangers), (2, 1, 2), "{count:?}");
    assert_eq!((points.points("hits"), points.total("hits")), (vec![(10, 4.0), (20, 5.0)], 9.0));
}
