//! Parses StatsD packets to samples and events, in four dialects (spec statsd §§1–6).
//!
//! Path of a packet: the source's intake -> [`Parser::packet`] -> for each line the fast path (`plain`) or, for all
//! other lines, the parser of the dialect (`etsy`, `perl`, `dogstatsd`, `union`) -> [`Parsed`]. The aggregator calls
//! [`Parser::canonical`] for the stored name of each raw key that is new to it.
//! Not here: splitting streams into packets (`frame`), aggregation (`process`), the optional tag styles of §6.
//! Pure: no I/O, no clock, and no allocation per sample or event once the vectors of `Parsed` have grown.
//! Invariants: every line ends as samples, events or counted rejects, and none of them twice; no input makes it
//! panic; the fast and the slow path give the same result, which `reference` checks (fuzz target `statsd`).

mod blank;
mod dogstatsd;
mod etsy;
mod event;
mod expansion;
mod key;
mod number;
mod options;
mod parsed;
mod parser;
mod perl;
mod plain;
#[cfg(any(test, feature = "reference"))]
pub mod reference;
pub mod rewrite;
mod sink;
#[cfg(test)]
mod tests;
mod union;

pub use expansion::{LINE_WRITTEN_BYTES_MAX, WRITTEN_BYTES_ALWAYS, WRITTEN_PER_BYTE_MAX};
pub use key::hash_key;
pub use options::{Dialect, GaugeSign, Options};
pub use parsed::Parsed;
pub use parser::Parser;

use memchr::memchr;
use model::{Canonical, Kind, RawKey, Span};

use crate::steps::touch;
use plain::Marks;
use sink::{Hashed, Sink};

impl Parser {
    /// Parses every line of the packet at `packet` in `bytes` and appends to `into`; all spans point into `bytes`.
    ///
    /// `now_s` (Unix seconds) is the time of events without one.
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

    /// Parses lines from `at` on, at least one, as far as `marks` reaches; returns the offset after them.
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

    /// The slow path: any line, without its LF.
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
    /// `etsy` and `perl` merge the tags into the name; `union` sanitises the name unless the options say otherwise;
    /// `union` and `dogstatsd` sort and deduplicate the tags. A canonical key is its own canonical form.
    pub fn canonical(&self, kind: Kind, key: RawKey<'_>, out: &mut Vec<u8>) -> Canonical {
        key::write_canonical(&self.options, &self.hasher, kind, key, out)
    }
}
