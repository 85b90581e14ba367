//! Net::Statsd::Server's file backend: tab-separated lines, one per value (spec statsd §9.3).

use model::{Flushed, Kind, SeriesRef};

use super::documented::Documented;
use crate::number::{fixed6, truncated};
use crate::series_text;

/// The lines of one flush. Unlike the original program it writes a timer's values and the members of sets.
#[derive(Debug)]
pub struct PerlFile {
    /// Names with this prefix are the daemon's own and not written; empty for none.
    own_prefix: Vec<u8>,
    document_bytes_max: usize,
    lines: Vec<u8>,
    name: Vec<u8>,
    done: Documented,
}

impl PerlFile {
    /// A writer for one output. Names that start with `stats_prefix` and a dot are not written; an empty prefix
    /// matches none.
    pub fn new(stats_prefix: &str, document_bytes_max: usize) -> PerlFile {
        let own_prefix =
            if stats_prefix.is_empty() { Vec::new() } else { format!("{stats_prefix}.").into_bytes() };
        PerlFile {
            own_prefix,
            document_bytes_max,
            lines: Vec::new(),
            name: Vec::new(),
            done: Documented::default(),
        }
    }

    /// Adds one series' lines, or counts it as left out when they do not fit.
    pub fn add(&mut self, flushed: &Flushed<'_>) {
        let before = self.lines.len();
        match *flushed {
            Flushed::Counter { series, count, .. }
            | Flushed::Timestamped { series, kind: Kind::Counter, value: count, .. } => {
                if self.named(series) {
                    self.line(b"c\t", |out| truncated(count, out));
                }
            }
            Flushed::Gauge { series, value } | Flushed::Timestamped { series, value, .. } => {
                if self.named(series) {
                    self.line(b"g\t", |out| fixed6(value, out));
                }
            }
            Flushed::Timer { series, values, .. } => {
                if self.named(series) {
                    self.timer(values);
                }
            }
            Flushed::Set { series, count, members } => {
                if self.named(series) {
                    self.line(b"s\t", |out| members_or_count(members, count, out));
                }
            }
        }
        if self.lines.len() > self.document_bytes_max {
            self.lines.truncate(before);
            self.done.left_out += 1;
        } else if self.lines.len() > before {
            self.done.series += 1;
        }
    }

    /// Appends the flush's lines, nothing if there are none, and begins the next flush.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Documented {
        out.append(&mut self.lines);
        std::mem::take(&mut self.done)
    }

    /// Stores the series' name without bytes that would break its line; false for the daemon's own names.
    fn named(&mut self, series: SeriesRef<'_>) -> bool {
        if !self.own_prefix.is_empty() && series.name.starts_with(&self.own_prefix) {
            return false;
        }
        self.name.clear();
        series_text(series, &mut self.name);
        for byte in &mut self.name {
            if matches!(byte, b'\t' | b'\n' | b'\r') {
                *byte = b'_';
            }
        }
        true
    }

    fn timer(&mut self, values: &[f64]) {
        for value in values {
            self.line(b"t\t", |out| fixed6(*value, out));
            // A timer may have a million values: stop early when they do not fit.
            if self.lines.len() > self.document_bytes_max {
                return;
            }
        }
    }

    fn line(&mut self, kind: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
        self.lines.extend_from_slice(kind);
        self.lines.extend_from_slice(&self.name);
        self.lines.push(b'\t');
        write(&mut self.lines);
        self.lines.push(b'\n');
    }
}

/// Members joined with `;`; their number when the members themselves were not kept.
fn members_or_count(members: &[u8], count: u64, out: &mut Vec<u8>) {
    if members.is_empty() {
        if count > 0 {
            crate::text::integer(count, out);
        }
        return;
    }
    out.extend(members.iter().map(|byte| match byte {
        b'\n' => b';',
        b'\t' | b'\r' => b'_',
        other => *other,
    }));
}
