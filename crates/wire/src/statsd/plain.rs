//! The fast path: plain lines, `name:digits|c`, optionally with `|@rate` and then `|#tags`, which all dialects read
//! alike.
//!
//! Nearly every line has this form, so a separate path pays off: it is several times as fast as the slow one. The
//! conditions are narrow. All other lines take the slow path, which accepts these lines too and gives the same result
//! (tests and the fuzz target compare them). A line is plain when
//! - one `:` and one `|` precede the type: one value, one bit;
//! - the name is not empty, within the limit, and does not begin with `_` (as events and checks of DogStatsD do);
//! - the value is 1 to 15 digits with at most one point among or after them, no sign, blank or exponent; for a set it
//!   is any non-empty text;
//! - the type is exactly `c`, `g`, `ms` or `s`, or where they are timers `h` or `d`: no CR, no blank;
//! - nothing follows it, or a rate of at most 8 digits and a point, or tags, or these two in this order: no other
//!   field, no CR at the end, no tags over a limit. `perl` has other rules for rates and tags: there nothing may
//!   follow.
//!
//! Implementation: [`Marks::read`] scans the packet in blocks and records the position of each `:`, `|` and LF,
//! without a branch per byte and independently of the parsing of lines. The next three marks are then the next line's
//! whole structure, and [`line()`] only checks that they are `:`, `|` and LF.
//! Invariant: bytes after the packet's end may be loaded with their neighbours and never have an effect.

use model::{GaugeOp, Kind, Sample, Span, Value};

use super::number::{plain, plain_short};
use super::parsed::Parsed;
use super::parser::Parser;
use super::sink::weight_of;
use crate::steps::touch;

/// Bytes that are scanned at once: as many as a word has bits.
const BLOCK: usize = 64;

/// Marks that one scan records. Few, because a packet of one line pays for all of them; a block may add [`BLOCK`].
const PLACES_MAX: usize = 128;

/// Most bytes of one scan: offsets fit 16 bits.
const READ_BYTES_MAX: usize = 4096;

/// Offsets that are written at once, even when there are fewer marks: most blocks have fewer.
const BURST: usize = 8;

/// The positions of the next marks of a packet.
pub(super) struct Marks {
    /// Offsets from `base`, ascending.
    places: [u16; PLACES_MAX + BURST],
    len: usize,
    /// The first mark that was not passed yet.
    next: usize,
    base: usize,
    /// The scanned range: `base .. covered`.
    covered: usize,
}

impl Marks {
    pub(super) fn new() -> Marks {
        Marks { places: [0; PLACES_MAX + BURST], len: 0, next: 0, base: 0, covered: 0 }
    }

    /// Discards all marks and scans from `at` on, in a packet that ends at `end` within `bytes`.
    #[inline(never)]
    pub(super) fn read(&mut self, bytes: &[u8], at: usize, end: usize) {
        debug_assert!(at < end && end <= bytes.len());
        self.base = at;
        self.next = 0;
        self.len = 0;
        let mut place = at;
        while place < end && place - at < READ_BYTES_MAX && self.len <= PLACES_MAX - BLOCK {
            let mut found = match bytes[place..].first_chunk::<BLOCK>() {
                Some(block) => marks_of(block),
                None => marks_of(&padded(&bytes[place..])),
            };
            if end - place < BLOCK {
                found &= (1 << (end - place)) - 1;
            }
            self.keep(found, place - at);
            place += BLOCK;
        }
        touch(place - at);
        self.covered = place.min(end);
        if place >= end {
            // The packet's end counts as an LF.
            self.places[self.len] = (end - at) as u16;
            self.len += 1;
        }
    }

    /// Records the positions of the bits of `found`, the marks of the block at `offset`.
    #[inline(always)]
    fn keep(&mut self, mut found: u64, offset: usize) {
        let count = found.count_ones() as usize;
        let mut burst = 0;
        while burst < count {
            let Some(places) = self.places[self.len + burst..].first_chunk_mut::<BURST>() else { break };
            for place in places {
                *place = (offset + found.trailing_zeros() as usize) as u16;
                found &= found.wrapping_sub(1);
            }
            burst += BURST;
        }
        self.len += count;
    }

    /// Position of the mark `count` after the next one.
    #[inline(always)]
    fn ahead(&self, count: usize) -> Option<usize> {
        let at = self.next + count;
        if at < self.len { Some(self.base + usize::from(*self.places.get(at)?)) } else { None }
    }

    /// True when the line that begins at `at` may have marks that were not scanned, and scanning from there helps.
    pub(super) fn exhausted(&self, at: usize, end: usize) -> bool {
        self.next + 3 > self.len && self.covered < end && at > self.base
    }

    /// End of the scanned range.
    pub(super) fn covered(&self) -> usize {
        self.covered
    }

    /// Passes all marks before `at`.
    pub(super) fn skip_to(&mut self, at: usize) {
        while self.next < self.len && self.base + usize::from(self.places[self.next]) < at {
            self.next += 1;
        }
    }
}

/// Parses the line at `at`, which begins at the next marks, in a packet that ends at `end`, and returns the offset
/// after its LF. `None`, and nothing added, when the line is not plain.
#[inline(always)]
pub(super) fn line(
    parser: &Parser,
    bytes: &[u8],
    at: usize,
    end: usize,
    marks: &mut Marks,
    into: &mut Parsed,
) -> Option<usize> {
    let limits = &parser.plain;
    if marks.next + 3 > marks.len {
        return None;
    }
    let &places = marks.places.get(marks.next..)?.first_chunk::<3>()?;
    let [colon, pipe, type_end] = places.map(|place| marks.base + usize::from(place));
    let (name, value) = (bytes.get(at..colon)?, bytes.get(colon + 1..pipe)?);
    let shaped = bytes[colon] == b':' && bytes[pipe] == b'|' && !matches!(name.first(), None | Some(b'_'));
    if !shaped {
        return None;
    }
    let kind = match bytes.get(pipe + 1..type_end)? {
        b"c" => Kind::Counter,
        b"g" => Kind::Gauge,
        b"ms" => Kind::Timer,
        b"s" if !value.is_empty() => Kind::Set,
        b"h" | b"d" if limits.histograms => Kind::Timer,
        _ => return None,
    };
    let mut fields = Fields { weight: 1.0, tags: &[], stop: type_end, marks: 3 };
    if type_end != end && bytes[type_end] != b'\n' {
        fields = read_fields(parser, bytes, type_end, end, marks)?;
    }
    if name.len() + fields.tags.len() > limits.key_bytes_max {
        return None;
    }
    // Before the value: otherwise the value would be saved across the call for long names.
    let hash = parser.hasher.hash(kind, name, fields.tags);
    let value = match kind {
        Kind::Set => Value::Text(Span::new(colon + 1, value.len())),
        _ => Value::Number(match short_number(bytes, colon + 1, value.len()) {
            Some(number) => number,
            None => plain(value).filter(|_| value[0] != b'.')?,
        }),
    };
    let span = Span::new(at, name.len());
    if parser.options.count_names {
        into.names.push(span);
    }
    into.lines += 1;
    into.samples.push(Sample {
        hash,
        value,
        weight: if matches!(kind, Kind::Counter | Kind::Timer) { fields.weight } else { 1.0 },
        name: span,
        tags: match fields.tags.len() {
            0 => Span::default(),
            len => Span::new(fields.stop - len, len),
        },
        kind,
        gauge_op: GaugeOp::Assign,
        extra: 0,
    });
    marks.next += fields.marks;
    Some(fields.stop + 1)
}

/// The fields after the type.
struct Fields<'a> {
    weight: f64,
    tags: &'a [u8],
    /// Position of the LF.
    stop: usize,
    /// Number of marks in the whole line.
    marks: usize,
}

/// Parses `|@rate`, `|#tags` or both, from the `|` at `at` to the line's LF.
#[inline(always)]
fn read_fields<'a>(
    parser: &Parser,
    bytes: &'a [u8],
    at: usize,
    end: usize,
    marks: &Marks,
) -> Option<Fields<'a>> {
    let ends_line = |place: usize| place == end || bytes[place] == b'\n';
    if !parser.plain.fields || bytes[at] != b'|' {
        return None;
    }
    let mut fields = Fields { weight: 1.0, tags: &[], stop: at, marks: 3 };
    if bytes.get(at + 1) == Some(&b'@') {
        fields.stop = marks.ahead(3)?;
        fields.marks = 4;
        let rate = short_number(bytes, at + 2, fields.stop.checked_sub(at + 2)?)?;
        fields.weight = weight_of(&parser.options, rate)?;
        if ends_line(fields.stop) {
            return Some(fields);
        }
    }
    let start = fields.stop + 2;
    if bytes[fields.stop] != b'|' || bytes.get(start - 1) != Some(&b'#') {
        return None;
    }
    loop {
        fields.stop = marks.ahead(fields.marks)?;
        fields.marks += 1;
        if ends_line(fields.stop) {
            break;
        }
        if bytes[fields.stop] == b'|' {
            return None;
        }
    }
    // `get`: the `#` is outside of the packet when it ends right before it.
    fields.tags = bytes.get(start..fields.stop)?;
    let plain = fields.tags.len() <= parser.plain.tag_bytes_max && fields.tags.last() != Some(&b'\r');
    plain.then_some(fields)
}

/// The number of `len` characters at `at`, when it is short. At the end of an arena there may be no eight bytes to
/// load; such numbers are parsed another way.
#[inline(always)]
fn short_number(bytes: &[u8], at: usize, len: usize) -> Option<f64> {
    bytes.get(at..)?.first_chunk().and_then(|&eight| plain_short(eight, len))
}

/// The end of an arena padded to a block, where a block would reach past it.
#[cold]
#[inline(never)]
fn padded(rest: &[u8]) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[..rest.len()].copy_from_slice(rest);
    block
}

/// One bit for each `:`, `|` and LF of the block.
#[inline(always)]
fn marks_of(block: &[u8; BLOCK]) -> u64 {
    // Compilers make 16-byte comparisons of this loop.
    let mut flags = [0_u8; BLOCK];
    for (flag, &byte) in flags.iter_mut().zip(block) {
        *flag = if byte == b':' || byte == b'|' || byte == b'\n' { 0xFF } else { 0 };
    }
    // Each flag keeps the bit of its position among eight; the multiplication collects them in the highest byte.
    let mut marks = 0;
    for (at, eight) in flags.as_chunks::<8>().0.iter().enumerate() {
        let bits = u64::from_le_bytes(*eight) & 0x8040_2010_0804_0201;
        marks |= bits.wrapping_mul(0x0101_0101_0101_0101) >> 56 << (8 * at);
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn exactly_the_marks_are_found(
            bytes in proptest::collection::vec(prop_oneof![Just(b':'), Just(b'|'), Just(b'\n'), any::<u8>()], BLOCK),
        ) {
            let want = bytes.iter().enumerate().fold(0_u64, |marks, (at, byte)| {
                marks | u64::from(b":|\n".contains(byte)) << at
            });
            prop_assert_eq!(marks_of(&padded(&bytes)), want);
        }
    }
}
