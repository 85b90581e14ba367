//! One document per flush with the members of node's console backend, as JSON (spec statsd §9.1, §9.2).

use model::{FlushInfo, Flushed, Kind, Label, SeriesRef};

use super::{Documented, date};
use crate::series_text;
use crate::text::{integer, json_number, json_string};

/// Largest document that is still useful to a reader of the console.
pub const DOCUMENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Format of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleEncoding {
    /// `Flushing stats at  <JavaScript's date text>`; indented when `pretty`.
    Node {
        /// Each value on a line of its own.
        pretty: bool,
    },
    /// `Flushing stats at <localtime>` and one line of JSON.
    Perl,
}

/// Builds the document of each flush. Series are grouped by member, so they may come in any order.
#[derive(Debug)]
pub struct Console {
    form: ConsoleEncoding,
    document_bytes_max: usize,
    percentiles: Vec<u8>,
    time_s: u64,
    members: [Vec<u8>; MEMBERS.len()],
    name: Vec<u8>,
    done: Documented,
}

/// Members of the document, in order. The last one is our extension, and omitted when empty.
const MEMBERS: [&str; 7] =
    ["counters", "timers", "gauges", "timer_data", "counter_rates", "sets", "timestamped"];
const COUNTERS: usize = 0;
const TIMERS: usize = 1;
const GAUGES: usize = 2;
const TIMER_DATA: usize = 3;
const COUNTER_RATES: usize = 4;
const SETS: usize = 5;
const TIMESTAMPED: usize = 6;

impl Console {
    /// A writer for one output. `percentiles` are the thresholds of the aggregation, for the member `pctThreshold`.
    pub fn new(form: ConsoleEncoding, percentiles: &[f64], document_bytes_max: usize) -> Console {
        let mut texts = Vec::new();
        separated(percentiles, |threshold, out| json_number(*threshold, out), &mut texts);
        Console {
            form,
            document_bytes_max,
            percentiles: texts,
            time_s: 0,
            members: Default::default(),
            name: Vec::new(),
            done: Documented::default(),
        }
    }

    /// Begins the document of a flush; an unfinished one is discarded.
    pub fn begin(&mut self, info: &FlushInfo) {
        self.time_s = info.time_s;
        self.members.iter_mut().for_each(Vec::clear);
        self.done = Documented::default();
    }

    /// Adds one series, or counts it as left out when it does not fit.
    pub fn add(&mut self, flushed: &Flushed<'_>) {
        let before = self.members.each_ref().map(Vec::len);
        match *flushed {
            Flushed::Counter { series, count, rate } => {
                self.member(COUNTERS, series, |out| json_number(count, out));
                self.member(COUNTER_RATES, series, |out| json_number(rate, out));
            }
            Flushed::Gauge { series, value } => self.member(GAUGES, series, |out| json_number(value, out)),
            Flushed::Timer { series, labels, aggregates, values } => {
                self.member(TIMER_DATA, series, |out| timer_data(labels, aggregates, out));
                let bytes_max = self.document_bytes_max;
                self.member(TIMERS, series, |out| numbers(values, bytes_max, out));
            }
            Flushed::Set { series, count, members } => {
                self.member(SETS, series, |out| set(members, count, out));
            }
            Flushed::Timestamped { series, kind, value, time_s } => {
                self.timestamped(series, kind, value, time_s);
            }
        }
        if self.members.iter().map(Vec::len).sum::<usize>() > self.document_bytes_max {
            self.members.iter_mut().zip(before).for_each(|(member, len)| member.truncate(len));
            self.done.left_out += 1;
        } else {
            self.done.series += 1;
        }
    }

    /// Appends the document: its title line and the JSON, each ended by LF.
    ///
    /// When series were left out, the member `left_out` is their number.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Documented {
        let title = match self.form {
            ConsoleEncoding::Node { .. } => format!("Flushing stats at  {}\n", date::javascript(self.time_s)),
            ConsoleEncoding::Perl => format!("Flushing stats at {}\n", date::perl_localtime(self.time_s)),
        };
        out.extend_from_slice(title.as_bytes());
        let pretty = self.pretty();
        let (line, begin, end): (&[u8], &[u8], &[u8]) =
            if pretty { (b"\n  ", b"{\n    ", b"\n  }") } else { (b"", b"{", b"}") };
        out.push(b'{');
        for (at, (name, text)) in MEMBERS.iter().zip(&self.members).enumerate() {
            if at == TIMESTAMPED && text.is_empty() {
                continue;
            }
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(line);
            json_string(name.as_bytes(), out);
            out.extend_from_slice(if pretty { b": " } else { b":" });
            match (at, text.is_empty()) {
                (TIMESTAMPED, _) => bracketed(b"[", text, b"]", out),
                (_, true) => out.extend_from_slice(b"{}"),
                (_, false) => bracketed(begin, text, end, out),
            }
        }
        self.finish_tail(line, out);
        std::mem::take(&mut self.done)
    }

    fn finish_tail(&mut self, line: &[u8], out: &mut Vec<u8>) {
        let space: &[u8] = if self.pretty() { b" " } else { b"" };
        out.push(b',');
        out.extend_from_slice(line);
        out.extend_from_slice(b"\"pctThreshold\":");
        out.extend_from_slice(space);
        bracketed(b"[", &self.percentiles, b"]", out);
        if self.done.left_out > 0 {
            out.push(b',');
            out.extend_from_slice(line);
            out.extend_from_slice(b"\"left_out\":");
            out.extend_from_slice(space);
            integer(self.done.left_out, out);
        }
        out.extend_from_slice(if self.pretty() { b"\n}\n" } else { b"}\n" });
        self.members.iter_mut().for_each(Vec::clear);
    }

    fn pretty(&self) -> bool {
        self.form == ConsoleEncoding::Node { pretty: true }
    }

    /// Adds `"name": value` to one member.
    fn member(&mut self, at: usize, series: SeriesRef<'_>, write: impl FnOnce(&mut Vec<u8>)) {
        let pretty = self.pretty();
        self.name.clear();
        series_text(series, &mut self.name);
        let out = &mut self.members[at];
        if !out.is_empty() {
            out.extend_from_slice(if pretty { b",\n    " } else { b"," });
        }
        json_string(&self.name, out);
        out.extend_from_slice(if pretty { b": " } else { b":" });
        write(out);
    }

    fn timestamped(&mut self, series: SeriesRef<'_>, kind: Kind, value: f64, time_s: u64) {
        self.name.clear();
        series_text(series, &mut self.name);
        let out = &mut self.members[TIMESTAMPED];
        if !out.is_empty() {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"name\":");
        json_string(&self.name, out);
        out.extend_from_slice(b",\"kind\":");
        json_string(kind.word().as_bytes(), out);
        out.extend_from_slice(b",\"value\":");
        json_number(value, out);
        out.extend_from_slice(b",\"time\":");
        integer(time_s, out);
        out.push(b'}');
    }
}

fn bracketed(begin: &[u8], text: &[u8], end: &[u8], out: &mut Vec<u8>) {
    for piece in [begin, text, end] {
        out.extend_from_slice(piece);
    }
}

fn separated<T>(items: impl IntoIterator<Item = T>, write: impl Fn(T, &mut Vec<u8>), out: &mut Vec<u8>) {
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(item, out);
    }
}

/// The values as a list. A timer may have a million of them: once `out` is over `bytes_max` the caller discards
/// all of it, so the rest is not written.
fn numbers(values: &[f64], bytes_max: usize, out: &mut Vec<u8>) {
    out.push(b'[');
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        json_number(*value, out);
        if out.len() > bytes_max {
            return;
        }
    }
    out.push(b']');
}

/// The members as a list; their number when the members were not kept.
fn set(members: &[u8], count: u64, out: &mut Vec<u8>) {
    if members.is_empty() && count > 0 {
        return integer(count, out);
    }
    out.push(b'[');
    if !members.is_empty() {
        separated(members.split(|byte| *byte == b'\n'), json_string, out);
    }
    out.push(b']');
}

/// A timer's aggregates by label; its bins, which come last, in an object of their own, as in node.
fn timer_data(labels: &[Label], aggregates: &[(u16, f64)], out: &mut Vec<u8>) {
    const HISTOGRAM: &str = "histogram.";

    let mut in_histogram = false;
    out.push(b'{');
    for (at, &(label, value)) in aggregates.iter().enumerate() {
        let label = &*labels[usize::from(label)];
        let bin = label.strip_prefix(HISTOGRAM);
        if in_histogram && bin.is_none() {
            out.push(b'}');
        }
        if at > 0 {
            out.push(b',');
        }
        if bin.is_some() && !in_histogram {
            out.extend_from_slice(b"\"histogram\":{");
        }
        in_histogram = bin.is_some();
        json_string(bin.unwrap_or(label).as_bytes(), out);
        out.push(b':');
        json_number(value, out);
    }
    out.extend_from_slice(if in_histogram { b"}}" } else { b"}" });
}
