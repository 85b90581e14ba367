//! Encodes flushed series as Graphite points: plaintext lines, or the opcodes of a pickle.
//!
//! Path of a series: `process::aggregate` flush -> `model::Flushed` -> **`Encoder::lines`** (or `pickle_points`, then
//! `pickle_frames`) -> a block in the output's queue. A name is built from parts that are computed once: prefix, the
//! series' own name, suffix, tags (spec statsd §8.1). The text of the time is computed once per flush.
//! Not here: computing the aggregates (`process`), sending to carbon (`deliver`).
//! Invariant: each point is written completely, or not at all and counted in [`Encoded`]. The output never contains
//! white space in a name, a number that is not finite, or a line for which carbon would close the connection.

use std::marker::PhantomData;

use model::{FlushInfo, Flushed, Kind};

use super::name::{NAME_BYTES_MAX, Name, Names, plain};
use super::{Namespace, Numbers, pickle};
use crate::number::{fixed6, js_format, truncated};

/// How many points of a call were written, and how many skipped. The sum is the number of points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// Points written.
    pub points: u32,
    /// Points skipped because their value is NaN or infinite.
    pub non_finite: u32,
    /// Points skipped because their name cannot be written: empty after sanitising, white space or control bytes
    /// after its first `;`, or longer than [`NAME_BYTES_MAX`].
    pub unsafe_names: u32,
}

impl std::ops::AddAssign for Encoded {
    fn add_assign(&mut self, other: Encoded) {
        self.points += other.points;
        self.non_finite += other.non_finite;
        self.unsafe_names += other.unsafe_names;
    }
}

/// The daemon's own metrics at the end of each flush (spec statsd §8.1, §8.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnFigures {
    /// Unix seconds of the flush.
    pub time_s: u64,
    /// Timestamp (Unix seconds) of the four `graphiteStats` points about the previous flush.
    pub connect_time_s: u64,
    /// Series in this flush.
    pub num_stats: u64,
    /// Milliseconds spent on computing the flush.
    pub calculation_ms: u64,
    /// Milliseconds spent on timers.
    pub processing_ms: u64,
    /// Unix seconds of the last failed attempt to deliver; 0 for none.
    pub last_exception_s: u64,
    /// Unix seconds of the last flush delivered.
    pub last_flush_s: u64,
    /// Milliseconds that queueing of the previous flush took.
    pub flush_ms: u64,
    /// Bytes of the previous flush.
    pub flush_length: u64,
}

/// Writes flushed series with the names of one namespace.
#[derive(Debug)]
pub struct Encoder {
    affixes: Affixes,
    numbers: Numbers,
    counts: bool,
    names: Names,
    own: [Vec<u8>; OWN_NAMES.len()],
    time: TimeText,
}

/// Names of the daemon's own points: (whether the legacy namespace prepends `stats.`, the name after `prefixStats`).
const OWN_NAMES: [(bool, &str); 7] = [
    (false, "numStats"),
    (true, "graphiteStats.calculationtime"),
    (true, "processing_time"),
    (true, "graphiteStats.last_exception"),
    (true, "graphiteStats.last_flush"),
    (true, "graphiteStats.flush_time"),
    (true, "graphiteStats.flush_length"),
];

/// Number of own points with the flush's time; the others have the connection's.
const OWN_OF_FLUSH: usize = 3;

/// The text before and after a series' own name, dots included.
#[derive(Debug)]
struct Affixes {
    rate: (Vec<u8>, Vec<u8>),
    count: (Vec<u8>, Vec<u8>),
    timer: Vec<u8>,
    gauge: Vec<u8>,
    set: (Vec<u8>, Vec<u8>),
    /// The global suffix with its dot, or empty.
    global: Vec<u8>,
}

/// The parts of one point's name, in order; the tags of `name` come last.
#[derive(Clone, Copy)]
struct PointName<'a> {
    prefix: &'a [u8],
    name: Name<'a>,
    /// A timer's aggregate, without its dot; empty for other kinds.
    label: &'a [u8],
    suffix: &'a [u8],
}

/// A time as text for each encoding, recomputed only when it changes.
#[derive(Debug, Default)]
struct TimeText {
    time_s: Option<u64>,
    /// ` <time>` LF.
    line: Vec<u8>,
    /// The bytes between name and value of a pickled point.
    pickle: Vec<u8>,
}

impl TimeText {
    fn set(&mut self, time_s: u64) {
        if self.time_s == Some(time_s) {
            return;
        }
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(time_s).as_bytes();
        self.time_s = Some(time_s);
        self.line.clear();
        for piece in [b" ".as_slice(), digits, b"\n"] {
            self.line.extend_from_slice(piece);
        }
        self.pickle.clear();
        for piece in [pickle::TIME_BEGIN, digits, pickle::VALUE_BEGIN] {
            self.pickle.extend_from_slice(piece);
        }
    }
}

/// An encoding: how the three parts of a point are written.
trait Form {
    fn point(
        name: PointName<'_>,
        value: f64,
        write: fn(f64, &mut Vec<u8>),
        time: &TimeText,
        out: &mut Vec<u8>,
    );
}

struct Lines;

impl Form for Lines {
    #[inline]
    fn point(
        name: PointName<'_>,
        value: f64,
        write: fn(f64, &mut Vec<u8>),
        time: &TimeText,
        out: &mut Vec<u8>,
    ) {
        out.extend_from_slice(name.prefix);
        out.extend_from_slice(name.name.head);
        if !name.label.is_empty() {
            out.push(b'.');
            out.extend_from_slice(name.label);
        }
        out.extend_from_slice(name.suffix);
        if !name.name.tail.is_empty() {
            out.extend_from_slice(name.name.tail);
        }
        out.push(b' ');
        write(value, out);
        out.extend_from_slice(&time.line);
    }
}

struct Pickled;

impl Form for Pickled {
    fn point(
        name: PointName<'_>,
        value: f64,
        write: fn(f64, &mut Vec<u8>),
        time: &TimeText,
        out: &mut Vec<u8>,
    ) {
        out.extend_from_slice(pickle::POINT_BEGIN);
        pickle::escape(name.prefix, out);
        // Sanitised: no byte of it needs a backslash.
        out.extend_from_slice(name.name.head);
        if !name.label.is_empty() {
            out.push(b'.');
            pickle::escape(name.label, out);
        }
        for piece in [name.suffix, name.name.tail] {
            if !piece.is_empty() {
                pickle::escape(piece, out);
            }
        }
        out.extend_from_slice(&time.pickle);
        write(value, out);
        out.extend_from_slice(pickle::POINT_END);
    }
}

impl Encoder {
    /// An encoder for one output. White space and control characters in the namespace become `_`.
    pub fn new(namespace: Namespace) -> Encoder {
        let own = OWN_NAMES.map(|(below_stats, name)| {
            let first = match (namespace.legacy, below_stats) {
                (true, true) => "stats",
                (true, false) => "",
                (false, _) => &namespace.global_prefix,
            };
            let mut full = prefix(&[first, &namespace.stats_prefix]);
            full.extend_from_slice(name.as_bytes());
            full.extend_from_slice(&suffix(&[&namespace.global_suffix]));
            full
        });
        Encoder {
            affixes: Affixes::of(&namespace),
            numbers: namespace.numbers,
            counts: namespace.counts,
            names: Names::new(&namespace.bare_tag_value, namespace.numbers == Numbers::Perl),
            own,
            time: TimeText::default(),
        }
    }

    /// Appends the series' points as lines `name value time`, each ended by LF.
    pub fn lines(&mut self, info: &FlushInfo, flushed: &Flushed<'_>, out: &mut Vec<u8>) -> Encoded {
        self.series::<Lines>(info, flushed, out)
    }

    /// Appends the daemon's own points, which end a flush: `numStats`, `calculationtime`, `processing_time`, and the
    /// four about the previous flush.
    pub fn own_lines(&mut self, own: &OwnFigures, out: &mut Vec<u8>) -> Encoded {
        self.own::<Lines>(own, OWN_NAMES.len(), out)
    }

    /// Those of them that are about the flush, and not about how it was sent: for points that no connection of ours has sent yet.
    pub fn own_lines_of_flush(&mut self, own: &OwnFigures, out: &mut Vec<u8>) -> Encoded {
        self.own::<Lines>(own, OWN_OF_FLUSH, out)
    }

    /// Appends the series' points as pickle opcodes, without frames: see [`super::pickle_frames`].
    pub fn pickle_points(&mut self, info: &FlushInfo, flushed: &Flushed<'_>, out: &mut Vec<u8>) -> Encoded {
        self.series::<Pickled>(info, flushed, out)
    }

    /// Like [`Encoder::own_lines`], as pickle opcodes.
    pub fn own_pickle_points(&mut self, own: &OwnFigures, out: &mut Vec<u8>) -> Encoded {
        self.own::<Pickled>(own, OWN_NAMES.len(), out)
    }

    fn series<F: Form>(&mut self, info: &FlushInfo, flushed: &Flushed<'_>, out: &mut Vec<u8>) -> Encoded {
        let Encoder { affixes, numbers, counts, names, time, .. } = self;
        let (fixed, whole): (WriteNumber, WriteNumber) = match numbers {
            Numbers::Shortest => (js_format, js_format),
            Numbers::Perl => (fixed6, truncated),
        };
        time.set(match *flushed {
            Flushed::Timestamped { time_s, .. } => time_s,
            _ => info.time_s,
        });
        let mut points = Points::<F> { encoded: Encoded::default(), time, out, form: PhantomData };
        match *flushed {
            Flushed::Counter { series, count, rate } => {
                let name = names.of(series);
                points.add(&affixes.rate.0, name, b"", &affixes.rate.1, rate, fixed);
                if *counts {
                    points.add(&affixes.count.0, name, b"", &affixes.count.1, count, whole);
                }
            }
            Flushed::Timer { series, labels, aggregates, .. } => {
                let name = names.of(series);
                for &(label, value) in aggregates {
                    let label = labels[usize::from(label)].as_bytes();
                    let write = if is_count(label) { whole } else { fixed };
                    points.add(&affixes.timer, name, label, &affixes.global, value, write);
                }
            }
            Flushed::Gauge { series, value } => {
                points.add(&affixes.gauge, names.of(series), b"", &affixes.global, value, fixed);
            }
            Flushed::Set { series, count, .. } => {
                points.add(&affixes.set.0, names.of(series), b"", &affixes.set.1, count as f64, whole);
            }
            Flushed::Timestamped { series, kind: Kind::Counter, value, .. } => {
                points.add(&affixes.count.0, names.of(series), b"", &affixes.count.1, value, whole);
            }
            // Only counters and gauges carry a time (spec statsd §5.2).
            Flushed::Timestamped { series, value, .. } => {
                points.add(&affixes.gauge, names.of(series), b"", &affixes.global, value, fixed);
            }
        }
        points.encoded
    }

    fn own<F: Form>(&mut self, own: &OwnFigures, number: usize, out: &mut Vec<u8>) -> Encoded {
        let calculation: WriteNumber = match self.numbers {
            Numbers::Shortest => js_format,
            Numbers::Perl => fixed6,
        };
        let figures = [
            (own.num_stats, js_format as WriteNumber),
            (own.calculation_ms, calculation),
            (own.processing_ms, js_format),
            (own.last_exception_s, js_format),
            (own.last_flush_s, js_format),
            (own.flush_ms, js_format),
            (own.flush_length, js_format),
        ];
        let mut encoded = Encoded::default();
        for (at, ((value, write), name)) in figures.into_iter().zip(&self.own).take(number).enumerate() {
            self.time.set(if at < OWN_OF_FLUSH { own.time_s } else { own.connect_time_s });
            let mut points = Points::<F> { encoded, time: &self.time, out, form: PhantomData };
            points.add(name, Some(Name { head: b"", tail: b"" }), b"", b"", value as f64, write);
            encoded = points.encoded;
        }
        encoded
    }
}

type WriteNumber = fn(f64, &mut Vec<u8>);

/// Output buffer of the points of one call, and their counts.
struct Points<'a, F> {
    encoded: Encoded,
    time: &'a TimeText,
    out: &'a mut Vec<u8>,
    form: PhantomData<F>,
}

impl<F: Form> Points<'_, F> {
    #[inline]
    fn add(
        &mut self,
        prefix: &[u8],
        name: Option<Name<'_>>,
        label: &[u8],
        suffix: &[u8],
        value: f64,
        write: WriteNumber,
    ) {
        let name = name.map(|name| PointName { prefix, name, label, suffix });
        let Some(name) = name.filter(PointName::is_writable) else {
            self.encoded.unsafe_names += 1;
            return;
        };
        if !value.is_finite() {
            self.encoded.non_finite += 1;
            return;
        }
        F::point(name, value, write, self.time, self.out);
        self.encoded.points += 1;
    }
}

impl PointName<'_> {
    #[inline]
    fn is_writable(&self) -> bool {
        let untagged = self.prefix.len() + self.name.head.len() + self.label.len() + self.suffix.len();
        untagged > 0 && untagged + self.name.tail.len() <= NAME_BYTES_MAX
    }
}

impl Affixes {
    fn of(namespace: &Namespace) -> Affixes {
        let global = suffix(&[&namespace.global_suffix]);
        let count = suffix(&["count", &namespace.global_suffix]);
        if namespace.legacy {
            return Affixes {
                rate: (prefix(&["stats"]), global.clone()),
                count: (prefix(&["stats_counts"]), global.clone()),
                timer: prefix(&["stats", "timers"]),
                gauge: prefix(&["stats", "gauges"]),
                set: (prefix(&["stats", "sets"]), count),
                global,
            };
        }
        let below = |element: &str| prefix(&[&namespace.global_prefix, element]);
        let counter = below(&namespace.counter_prefix);
        Affixes {
            rate: (counter.clone(), suffix(&["rate", &namespace.global_suffix])),
            count: (counter, count.clone()),
            timer: below(&namespace.timer_prefix),
            gauge: below(&namespace.gauge_prefix),
            set: (below(&namespace.set_prefix), count),
            global,
        }
    }
}

/// The elements that are not empty, each followed by a dot.
fn prefix(elements: &[&str]) -> Vec<u8> {
    let elements = elements.iter().filter(|element| !element.is_empty());
    elements.flat_map(|element| [plain(element).as_bytes(), b"."].concat()).collect()
}

/// The elements that are not empty, each preceded by a dot.
fn suffix(elements: &[&str]) -> Vec<u8> {
    let elements = elements.iter().filter(|element| !element.is_empty());
    elements.flat_map(|element| [b".", plain(element).as_bytes()].concat()).collect()
}

/// True for the timer aggregates that Perl prints as whole numbers: `count` and `count_<percentile>`, not
/// the rate `count_ps`, and the bins of a histogram.
fn is_count(label: &[u8]) -> bool {
    let counts = label.strip_prefix(b"count").is_some_and(|rest| rest != b"_ps");
    counts || label.starts_with(b"histogram.")
}
