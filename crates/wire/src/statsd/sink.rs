//! Collects the result of one line: the parsers of the dialects add samples, extras and rejects through [`Sink`].

use model::{Extra, GaugeOp, Kind, RawKey, Reject, Sample, Span, Value};

use super::expansion::line_written_bytes_max;
use super::options::Options;
use super::parsed::Parsed;
use super::parser::Parser;
use crate::steps::touch;

/// Most [`Extra`]s of one [`Parsed`]: the range of the `u16` in a sample. Past it, a line with a time is rejected as
/// `timestamp_unsupported`; other lines lose their container id, which no computation uses.
pub(super) const EXTRAS_MAX: usize = u16::MAX as usize;

/// The line that is being parsed. All slices passed in are pieces of `arena`, so that spans can be computed.
pub(super) struct Sink<'a, 'p> {
    pub(super) parser: &'p Parser,
    pub(super) arena: &'a [u8],
    /// The line, without its LF.
    pub(super) line: &'a [u8],
    /// Unix seconds of arrival.
    pub(super) now_s: u64,
    pub(super) into: &'p mut Parsed,
    /// The hashes of the line's key, if it is long: a line has many values and one name.
    pub(super) hashed: Hashed,
}

/// Longest key (name and tags together, in bytes) that is hashed again for each value: caching it would cost more.
const SHORT_KEY_BYTES: usize = 64;

/// A hashed key, and its hash for each kind that was needed.
#[derive(Clone, Copy, Default)]
pub(super) struct Hashed {
    at: (Span, Span),
    of_kind: [Option<u64>; Kind::ALL.len()],
}

/// The lengths of a [`Parsed`], to roll back to when the rest of a line turns out invalid.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    pub(super) samples: usize,
    extras: usize,
}

/// The parts of a sample without its series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ParsedValue {
    pub(super) kind: Kind,
    pub(super) value: Value,
    pub(super) gauge_op: GaugeOp,
}

impl<'a> Sink<'a, '_> {
    pub(super) fn options(&self) -> &Options {
        &self.parser.options
    }

    /// The span of `piece`, a piece of the arena.
    pub(super) fn span(&self, piece: &[u8]) -> Span {
        if piece.is_empty() {
            return Span::default();
        }
        let at = piece.as_ptr().addr() - self.arena.as_ptr().addr();
        debug_assert!(at + piece.len() <= self.arena.len(), "a piece of the arena");
        Span::new(at, piece.len())
    }

    /// Counts the line's name for `keyFlush`.
    pub(super) fn name(&mut self, name: &'a [u8]) {
        if self.parser.options.count_names {
            let span = self.span(name);
            self.into.names.push(span);
        }
    }

    pub(super) fn reject(&mut self, why: Reject) {
        let line = self.span(self.line);
        self.into.reject(why, 1, line);
    }

    /// Counts invalid bits of a line that has valid ones too.
    pub(super) fn reject_bits(&mut self, first: Reject, bad: &[u64; Reject::COUNT]) {
        let line = self.span(self.line);
        self.into.reject(first, 0, line);
        for (count, more) in self.into.rejects.iter_mut().zip(bad) {
            *count += more;
        }
    }

    /// The hash of a long key, computed once for all values of its line.
    #[inline(never)]
    fn hash_long(&mut self, kind: Kind, key: RawKey<'_>, at: (Span, Span)) -> u64 {
        if self.hashed.at != at {
            self.hashed = Hashed { at, ..Hashed::default() };
        }
        let known = &mut self.hashed.of_kind[kind as usize];
        *known.get_or_insert_with(|| self.parser.hasher.hash(kind, key.name, key.tags))
    }

    /// Adds one sample. `extra` is a result of [`Sink::extra`], or 0.
    pub(super) fn sample(&mut self, key: RawKey<'a>, reading: ParsedValue, weight: f64, extra: u16) {
        let ParsedValue { kind, value, gauge_op } = reading;
        touch(1);
        let (name, tags) = (self.span(key.name), self.span(key.tags));
        let hash = if key.name.len() + key.tags.len() > SHORT_KEY_BYTES {
            self.hash_long(kind, key, (name, tags))
        } else {
            self.parser.hasher.hash(kind, key.name, key.tags)
        };
        self.into.samples.push(Sample { hash, value, weight, name, tags, kind, gauge_op, extra });
    }

    /// A member of a set as value.
    pub(super) fn text(&self, text: &[u8]) -> Value {
        Value::Text(self.span(text))
    }

    /// Stores `extra` for the samples of this line. Equal consecutive ones are stored once.
    pub(super) fn extra(&mut self, extra: Extra) -> Result<u16, Reject> {
        if extra == Extra::default() {
            return Ok(0);
        }
        let same = |last: &Extra| {
            last.timestamp_s == extra.timestamp_s
                && last.container.of(self.arena) == extra.container.of(self.arena)
                && last.external.of(self.arena) == extra.external.of(self.arena)
        };
        if !self.into.extras.last().is_some_and(same) {
            if self.into.extras.len() >= EXTRAS_MAX {
                return if extra.timestamp_s.is_some() { Err(Reject::TimestampUnsupported) } else { Ok(0) };
            }
            self.into.extras.push(extra);
        }
        Ok(self.into.extras.len() as u16)
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { samples: self.into.samples.len(), extras: self.into.extras.len() }
    }

    /// True when the samples since `mark`, each written with the whole key, are over the line's limit.
    pub(super) fn expands_too_far(&self, mark: Mark, key: RawKey<'_>) -> bool {
        let samples = self.into.samples.len() - mark.samples;
        samples * (key.name.len() + key.tags.len()) > line_written_bytes_max(self.line.len())
    }

    /// Removes the samples since `mark`.
    pub(super) fn roll_back(&mut self, mark: Mark) {
        self.into.samples.truncate(mark.samples);
        self.into.extras.truncate(mark.extras);
    }
}

/// An error when a line's name and tags are over the limits of its source.
pub(super) fn check_key(options: &Options, key: RawKey<'_>) -> Result<(), Reject> {
    check_tags(options, key.tags)?;
    if options.key_bytes_max != 0 && key.name.len() + key.tags.len() > options.key_bytes_max as usize {
        return Err(Reject::KeyTooLong);
    }
    Ok(())
}

/// An error when there are more tags than allowed; empty ones count.
pub(super) fn check_tags(options: &Options, tags: &[u8]) -> Result<(), Reject> {
    let tags_max = options.tags_max as usize;
    // Each further tag needs a comma, so a short text needs no counting.
    let many = tags_max != 0 && tags.len() >= tags_max && memchr::memchr_iter(b',', tags).count() >= tags_max;
    if many { Err(Reject::TooManyTags) } else { Ok(()) }
}

/// The weight of a sample with this rate: `1 / rate`, when the rate is within `0 < rate <= 1`, not below `rate_min`,
/// and not so small that its inverse overflows.
pub(super) fn weight_of(options: &Options, rate: f64) -> Option<f64> {
    let weight = 1.0 / rate;
    (rate > 0.0 && rate <= 1.0 && rate >= options.rate_min && weight.is_finite()).then_some(weight)
}
