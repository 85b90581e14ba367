//! Encodes the aggregates of a window as StatsD lines for another StatsD server (spec statsd §16.51).
//!
//! Path of a series: `Aggregator::tick` -> **[`AggregateEncoder::encode`]** -> `Packer` -> the output's queue.
//! Counters are sent as their sums, gauges as their values, sets as their members and timers as the values of the
//! window. The next server computes the same results as from the clients' own lines, except for the window. Estimates
//! (members of sets and values of timers that were not kept) cannot be sent; they are counted as left out.
//! Not here: aggregates as numbers (`graphite`).
//! Invariant: each record is counted as encoded or as left out.

use model::{Flushed, Kind, Label, SeriesRef};

use super::super::expansion::written_bytes_max;
use super::form::{Form, TagFormat};
use super::plan::{RewriteError, RewritePlan};
use super::tags::{TagTexts, Tags};
use super::validated::Rewrite;
use super::write::write_decimal;
use crate::graphite::replace_bad_bytes;
use crate::number::js_format;
use crate::steps::touch;

/// How a gauge below 0 is written, by the receiver's reading of signs (spec statsd §1, §16.16).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NegativeGauges {
    /// `g:-5|g`: the receiver reads a sign as part of the number (DogStatsD, Net::Statsd::Server).
    Signed,
    /// `g:0|g` and then `g:-5|g`: the receiver reads a sign as a change of the stored value (node).
    ZeroFirst,
    /// `g:=-5|g`: the receiver is Staunch.
    Equals,
}

/// The type that timers are sent as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerType {
    /// `ms`. Classic receivers reject values below 0.
    Timer,
    /// `h`
    Histogram,
    /// `d`
    Distribution,
}

/// The encoding that the receiver accepts.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregateEncoding {
    /// Prefix, suffix, tag edits, and the tag format of `to.tags`. No other field of `to` is used.
    pub names: RewritePlan,
    /// See [`NegativeGauges`].
    pub negative_gauges: NegativeGauges,
    /// See [`TimerType`].
    pub timer_type: TimerType,
    /// Several values per line, `1:2:3|ms`; otherwise each value gets its own line.
    pub packed: bool,
    /// Also send counters whose sum is 0. Without them the receiver does not see idle series.
    pub zero_counters: bool,
    /// Samples with a client's time keep it (`T`); otherwise they are sent without a time.
    pub times: bool,
    /// Longest line, in bytes without LF; a line with a single value may be longer.
    pub line_bytes_max: usize,
}

/// Result of encoding one series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// Lines appended, each with its LF.
    pub lines: u64,
    /// Samples in the lines: one of a counter or gauge, members of a set, values of a timer.
    pub samples: u64,
    /// Samples left out, in the same unit, with the reason.
    pub left_out: Option<(LeftOut, u64)>,
    /// Samples dropped because the output of the series would be more than
    /// [`WRITTEN_PER_BYTE_MAX`](super::super::WRITTEN_PER_BYTE_MAX) bytes for each byte of its name, its tags and its
    /// samples.
    pub dropped: u64,
    /// Tags omitted from the series' name because the format cannot represent them.
    pub tags_left_out: u32,
}

/// Why samples of a series were left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// Nothing happened in the window: a counter at 0 without `zero_counters`, a timer without values, a set without
    /// members. Nothing is lost.
    Idle,
    /// A set or a timer over its exact limit: its members or values were replaced by an estimate. Also a set for
    /// which the aggregation does not keep members.
    Estimated,
    /// Not a finite number.
    NonFinite,
}

/// Writes flushed series as StatsD lines.
#[derive(Clone, Debug)]
pub struct AggregateEncoder {
    form: AggregateEncoding,
    names: Rewrite,
    head: Vec<u8>,
    field: Vec<u8>,
    tail: Vec<u8>,
    name: Vec<u8>,
    /// Tags omitted from the current series.
    tags_left_out: u32,
}

impl AggregateEncoder {
    /// An encoder with this encoding.
    ///
    /// # Errors
    /// [`RewriteError`] for an invalid plan in `names`.
    pub fn new(form: AggregateEncoding) -> Result<AggregateEncoder, RewriteError> {
        let names = Rewrite::new(&form.names)?;
        let [head, field, tail, name] = [const { Vec::new() }; 4];
        Ok(AggregateEncoder { form, names, head, field, tail, name, tags_left_out: 0 })
    }

    /// Appends the lines of one series.
    pub fn encode(&mut self, flushed: &Flushed<'_>, out: &mut Vec<u8>) -> Encoded {
        let encoded = self.series(flushed, out);
        let tags_left_out = if encoded.lines > 0 { self.tags_left_out } else { 0 };
        Encoded { tags_left_out, ..encoded }
    }

    fn series(&mut self, flushed: &Flushed<'_>, out: &mut Vec<u8>) -> Encoded {
        match *flushed {
            Flushed::Counter { count, .. } if count == 0.0 && !self.form.zero_counters => {
                Encoded::left_out(LeftOut::Idle, 1)
            }
            Flushed::Counter { series, count, .. } => self.number(series, count, Kind::Counter, None, out),
            Flushed::Gauge { series, value } => self.number(series, value, Kind::Gauge, None, out),
            Flushed::Timestamped { series, kind, value, time_s } => {
                self.number(series, value, kind, Some(time_s).filter(|_| self.form.times), out)
            }
            Flushed::Set { series, count, members } => self.set(series, count, members, out),
            Flushed::Timer { series, labels, aggregates, values } => {
                if values.is_empty() {
                    return Encoded::of_no_values(labels, aggregates);
                }
                self.timer(series, count_of(labels, aggregates), values, out)
            }
        }
    }

    /// Prepares the text before and after the values, the same for all lines of the series.
    fn begin(&mut self, series: SeriesRef<'_>) {
        let mut name = series.name;
        if !series.clean {
            // No dialect has sanitised the name: bytes that would end it become `_`.
            self.name.clear();
            replace_bad_bytes(name, b":|", &mut self.name);
            name = &self.name;
        }
        let (name, in_name) = match memchr::memchr(b';', name) {
            None => (name, None),
            Some(at) => (&name[..at], Some(&name[at + 1..])),
        };
        let texts = TagTexts { in_name, field: Some(series.tags).filter(|tags| !tags.is_empty()) };
        let tags = Tags::of(self.names.form.tags, &self.names.edits, texts);
        self.head.clear();
        self.tags_left_out = self.names.write_name(name, &tags, &mut self.head);
        self.head.push(b':');
        self.field.clear();
        if tags.has_field() {
            tags.write_field(&mut self.field);
        }
    }

    fn number(
        &mut self,
        series: SeriesRef<'_>,
        value: f64,
        kind: Kind,
        time_s: Option<u64>,
        out: &mut Vec<u8>,
    ) -> Encoded {
        if !value.is_finite() {
            return Encoded::left_out(LeftOut::NonFinite, 1);
        }
        self.begin(series);
        let mut encoded = Encoded { samples: 1, ..Encoded::default() };
        let is_gauge = kind == Kind::Gauge;
        let type_text: &[u8] = if is_gauge { b"|g" } else { b"|c" };
        out.extend_from_slice(&self.head);
        // A gauge with its own time is absolute in every dialect that supports times.
        if is_gauge && value < 0.0 && time_s.is_none() {
            match self.form.negative_gauges {
                NegativeGauges::Signed => {}
                NegativeGauges::Equals => out.push(b'='),
                NegativeGauges::ZeroFirst => {
                    out.push(b'0');
                    self.end_line(type_text, None, out, &mut encoded);
                    out.extend_from_slice(&self.head);
                }
            }
        }
        js_format(value, out);
        self.end_line(type_text, time_s, out, &mut encoded);
        encoded
    }

    fn end_line(&self, type_text: &[u8], time_s: Option<u64>, out: &mut Vec<u8>, encoded: &mut Encoded) {
        out.extend_from_slice(type_text);
        out.extend_from_slice(&self.field);
        if let Some(time_s) = time_s {
            out.extend_from_slice(b"|T");
            crate::text::integer(time_s, out);
        }
        out.push(b'\n');
        encoded.lines += 1;
    }

    fn set(&mut self, series: SeriesRef<'_>, count: u64, members: &[u8], out: &mut Vec<u8>) -> Encoded {
        if members.is_empty() {
            let why = if count == 0 { LeftOut::Idle } else { LeftOut::Estimated };
            return Encoded::left_out(why, count.max(1));
        }
        self.begin(series);
        let mut encoded = Encoded::default();
        let mut room = self.room(out);
        for member in members.split(|&byte| byte == b'\n') {
            if !room.takes(member.len(), out) {
                encoded.dropped += 1;
                continue;
            }
            out.extend_from_slice(&self.head);
            // DogStatsD's members may contain a colon, which ends a value in a classic receiver.
            let safe =
                |byte: &u8| if *byte == b'|' || *byte == b':' && !self.form.packed { b'_' } else { *byte };
            out.extend(member.iter().map(safe));
            self.end_line(b"|s", None, out, &mut encoded);
            encoded.samples += 1;
        }
        encoded
    }

    fn timer(&mut self, series: SeriesRef<'_>, count: f64, values: &[f64], out: &mut Vec<u8>) -> Encoded {
        self.begin(series);
        let type_text: &[u8] = match self.form.timer_type {
            TimerType::Timer => b"|ms",
            TimerType::Histogram => b"|h",
            TimerType::Distribution => b"|d",
        };
        self.tail.clear();
        self.tail.extend_from_slice(type_text);
        // Sampled values count for more than one observation. The window only has the total, so each value gets an
        // equal part of it.
        let share = values.len() as f64 / count;
        if share < 1.0 && share.is_normal() {
            self.tail.extend_from_slice(b"|@");
            write_decimal(share, &mut self.tail);
        }
        self.tail.extend_from_slice(&self.field);
        self.timer_lines(values, out)
    }

    /// Output limit for the lines of the current series.
    fn room(&self, out: &[u8]) -> Room {
        Room { begin: out.len(), came_bytes: self.head.len() + self.field.len() }
    }

    /// Writes as many values per line as fit, each line with head and tail.
    fn timer_lines(&self, values: &[f64], out: &mut Vec<u8>) -> Encoded {
        let mut encoded = Encoded::default();
        let mut bad = 0;
        let mut text = Vec::new();
        let mut room = self.room(out);
        // Start of the open line; none when there is none.
        let mut open = None;
        for &value in values {
            if !value.is_finite() {
                bad += 1;
                continue;
            }
            text.clear();
            js_format(value, &mut text);
            if !room.takes(text.len(), out) {
                encoded.dropped += 1;
                continue;
            }
            if let Some(begin) = open {
                let line_len = out.len() - begin + 1 + text.len() + self.tail.len();
                if self.form.packed && line_len <= self.form.line_bytes_max {
                    out.push(b':');
                    out.extend_from_slice(&text);
                    encoded.samples += 1;
                    continue;
                }
                out.extend_from_slice(&self.tail);
                out.push(b'\n');
                encoded.lines += 1;
            }
            open = Some(out.len());
            out.extend_from_slice(&self.head);
            out.extend_from_slice(&text);
            encoded.samples += 1;
        }
        if open.is_some() {
            out.extend_from_slice(&self.tail);
            out.push(b'\n');
            encoded.lines += 1;
        }
        if bad > 0 {
            encoded.left_out = Some((LeftOut::NonFinite, bad));
        }
        encoded
    }
}

/// Output limit of a series. Samples of one name may arrive in one line, and the name is written for each.
#[derive(Clone, Copy, Debug)]
struct Room {
    begin: usize,
    /// Bytes of name, tags and samples, counted once.
    came_bytes: usize,
}

impl Room {
    /// Whether one more sample of this many bytes may be written.
    fn takes(&mut self, bytes: usize, out: &[u8]) -> bool {
        self.came_bytes += bytes + 1;
        touch(bytes);
        out.len() - self.begin < written_bytes_max(self.came_bytes)
    }
}

impl Encoded {
    /// A timer without values: it is idle, or its values were replaced by a sketch.
    fn of_no_values(labels: &[Label], aggregates: &[(u16, f64)]) -> Encoded {
        // An idle timer has at most its two counts, and they are 0.
        if aggregates.iter().all(|(_, value)| *value == 0.0) {
            return Encoded::left_out(LeftOut::Idle, 1);
        }
        Encoded::left_out(LeftOut::Estimated, (count_of(labels, aggregates) as u64).max(1))
    }

    fn left_out(why: LeftOut, samples: u64) -> Encoded {
        Encoded { left_out: Some((why, samples)), ..Encoded::default() }
    }
}

impl AggregateEncoding {
    /// For DogStatsD and compatible servers: `#` tags, several values per line, absolute gauges, times. Timers are
    /// sent as `ms`.
    pub fn dogstatsd() -> AggregateEncoding {
        let to = Form { tags: TagFormat::Dogstatsd, ..Form::KEEP };
        AggregateEncoding {
            names: RewritePlan { to, ..RewritePlan::default() },
            negative_gauges: NegativeGauges::Signed,
            packed: true,
            times: true,
            ..AggregateEncoding::default()
        }
    }
}

impl Default for AggregateEncoding {
    /// For node: tags only in names, one value per line, signs that are changes, packets of 1432 bytes.
    fn default() -> AggregateEncoding {
        let to = Form { tags: TagFormat::Graphite, ..Form::KEEP };
        AggregateEncoding {
            names: RewritePlan { to, ..RewritePlan::default() },
            negative_gauges: NegativeGauges::ZeroFirst,
            timer_type: TimerType::Timer,
            packed: false,
            zero_counters: true,
            times: false,
            line_bytes_max: 1432,
        }
    }
}

/// Number of observations of a timer's window, including those removed by sampling.
fn count_of(labels: &[Label], aggregates: &[(u16, f64)]) -> f64 {
    let is_count = |at: u16| labels.get(usize::from(at)).is_some_and(|label| &**label == "count");
    aggregates.iter().find(|(at, _)| is_count(*at)).map_or(0.0, |(_, value)| *value)
}
