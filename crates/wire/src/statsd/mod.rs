//! StatsD packets to samples and events, in four dialects (spec statsd §§1–6).
//!
//! Path of a packet: the source's intake -> [`Parser::packet`] -> for each line the short way (`plain`) or, when the
//! line is anything but plain, the reader of the dialect (`etsy`, `perl`, `dogstatsd`, `union`) -> [`Parsed`].
//! The aggregator later asks [`Parser::canonical`] for the stored form of a raw key that it meets the first time.
//! Not here: splitting streams into packets (`frame`), aggregation (`process`), the optional tag styles of §6.
//! Pure: no I/O, no clock, and no allocation per sample once the vectors of `Parsed` have grown.
//! Invariants: every line ends as samples, events or counted rejects, and none of them twice; no byte string makes
//! it panic; the short way and the long one say the same, which `reference` checks (fuzz target `statsd`).

mod blank;
mod dogstatsd;
mod etsy;
mod event;
mod key;
mod number;
mod options;
mod perl;
mod plain;
#[cfg(any(test, feature = "reference"))]
pub mod reference;
pub mod rewrite;
mod sink;
#[cfg(test)]
mod tests;
mod unfolded;
mod union;

pub use key::hash_key;
pub use options::{Dialect, GaugeSign, Options};
pub use unfolded::{LINE_WRITTEN_BYTES_MAX, WRITTEN_BYTES_ALWAYS, WRITTEN_PER_BYTE_MAX};

use memchr::memchr;
use model::{Canonical, Event, Extra, Kind, RawKey, Reject, Sample, Span};

use crate::cost::touch;
use key::KeyHasher;
use plain::{Marks, PlainLimits};
use sink::{Hashed, Sink};

/// What packets held. Reuse it: [`Parsed::clear`] keeps the memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    /// Observations, in order of arrival.
    pub samples: Vec<Sample>,
    /// Rare fields of samples, see [`Sample::extra`]. At most 65,535; equal neighbours share one.
    pub extras: Vec<Extra>,
    /// Events and service checks, in order of arrival.
    pub events: Vec<Event>,
    /// Lines, good or bad: node's `metrics_received`.
    pub lines: u64,
    /// Records refused, by [`Reject::index`]. A line of several bits may be refused in part.
    pub rejects: [u64; Reject::COUNT],
    /// The first bad line and its reason, for the one clear log message.
    pub first_reject: Option<(Reject, Span)>,
    /// `etsy`: lines whose last tag swallowed the fields behind it (spec §2.2, §16.29).
    pub glued_tag_fields: u64,
    /// Optional fields of events and checks that were not understood.
    pub event_fields_ignored: u64,
    /// The name of every line that has one, good or bad, when [`Options::count_names`] is set.
    pub names: Vec<Span>,
}

impl Parsed {
    /// Forgets everything but the memory.
    pub fn clear(&mut self) {
        let Parsed { samples, extras, events, names, .. } = self;
        samples.clear();
        extras.clear();
        events.clear();
        names.clear();
        self.lines = 0;
        self.rejects = [0; Reject::COUNT];
        self.first_reject = None;
        self.glued_tag_fields = 0;
        self.event_fields_ignored = 0;
    }

    /// Records refused, for whatever reason.
    pub fn rejected(&self) -> u64 {
        self.rejects.iter().sum()
    }

    /// Everything that needs an outcome: samples, events and refused records.
    pub fn records(&self) -> u64 {
        (self.samples.len() + self.events.len()) as u64 + self.rejected()
    }

    fn reject(&mut self, why: Reject, count: u64, line: Span) {
        self.rejects[why.index()] += count;
        if self.first_reject.is_none() {
            self.first_reject = Some((why, line));
        }
    }
}

/// Reads packets in one dialect. Has no state that a packet could change.
#[derive(Clone)]
pub struct Parser {
    options: Options,
    hasher: KeyHasher,
    plain: PlainLimits,
}

impl Parser {
    /// A parser whose key hashes are seeded with `seed`; draw it at random (see [`hash_key`]).
    pub fn new(options: Options, seed: u64) -> Parser {
        Parser { options, hasher: KeyHasher::new(seed), plain: PlainLimits::of(&options) }
    }

    /// The options that it was made with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Parses every line of the packet at `packet` in `bytes` and appends to `into`; all spans point into `bytes`.
    ///
    /// `now_s` (Unix seconds) is the time of events that carry none.
    ///
    /// # Panics
    /// When `packet` does not lie in `bytes`.
    pub fn packet(&self, bytes: &[u8], packet: Span, now_s: u64, into: &mut Parsed) {
        let mut at = packet.at as usize;
        let mut end = at + packet.len as usize;
        assert!(end <= bytes.len(), "a packet lies in its arena");
        if self.options.dialect == Dialect::Perl {
            // Perl's `split` drops empty pieces at the end, and only there.
            end = at + bytes[at..end].iter().rposition(|&byte| byte != b'\n').map_or(0, |last| last + 1);
        }
        let mut marks = Marks::new();
        while at < end {
            marks.read(bytes, at, end);
            at = self.marked_lines(bytes, at, end, &mut marks, now_s, into);
        }
    }

    /// Reads lines from `at` on, at least one, as far as `marks` goes; gives the place behind them.
    #[inline(always)]
    fn marked_lines(
        &self,
        bytes: &[u8],
        mut at: usize,
        end: usize,
        marks: &mut Marks,
        now_s: u64,
        into: &mut Parsed,
    ) -> usize {
        loop {
            if let Some(next) = plain::line(self, bytes, at, end, marks, into) {
                at = next;
            } else if marks.exhausted(at, end) {
                return at;
            } else {
                let line_end = memchr(b'\n', &bytes[at..end]).map_or(end, |len| at + len);
                self.line(bytes, &bytes[at..line_end], now_s, into);
                at = line_end + 1;
                marks.skip_to(at);
            }
            if at >= marks.covered() {
                return at;
            }
        }
    }

    /// The long way: any line at all, without its LF.
    #[inline(never)]
    fn line(&self, arena: &[u8], mut line: &[u8], now_s: u64, into: &mut Parsed) {
        let read: fn(&mut Sink<'_, '_>) = match self.options.dialect {
            Dialect::Etsy => etsy::line,
            Dialect::Perl => perl::line,
            Dialect::Dogstatsd => dogstatsd::line,
            Dialect::Union => union::line,
        };
        if matches!(self.options.dialect, Dialect::Dogstatsd | Dialect::Union) {
            line = line.strip_suffix(b"\r").unwrap_or(line);
        }
        touch(line.len());
        if line.is_empty() && self.options.dialect != Dialect::Perl {
            return;
        }
        into.lines += 1;
        read(&mut Sink { parser: self, arena, line, now_s, into, hashed: Hashed::default() });
    }

    /// Writes the canonical name and then the canonical tags of `key` into `out`, which is cleared first.
    ///
    /// `etsy` and `perl` fold the tags into the name; `union` sanitises the name unless told otherwise; `union` and
    /// `dogstatsd` sort the tags and drop doubles. A canonical key is its own canonical form.
    pub fn canonical(&self, kind: Kind, key: RawKey<'_>, out: &mut Vec<u8>) -> Canonical {
        key::write_canonical(&self.options, &self.hasher, kind, key, out)
    }
}
