//! Parses Graphite lines to points, compatible with four programs (spec graphite §1.1).
//!
//! Path of a packet: the source's intake -> [`Reader::packet`] -> for each line the fast path (`plain`) or, for all
//! other lines, the parser of the compatibility mode (`fields` or `relay`) -> [`Parsed`]. A point is passed on as
//! text. Nearly all lines are in their final form already: they are recognised without rewriting and copied in one
//! run with their neighbours. Only the others are rebuilt.
//! Not here: splitting streams into packets (`frame`), routing of points.
//! Pure: no I/O, no clock, and no allocation per line once the vectors of `Parsed` have grown.
//! Invariants: every non-empty line ends as one point or one counted reject; no input makes it panic; the fast and
//! the slow path give the same result, which `reference` checks (fuzz target `graphite`).

mod fields;
mod message;
mod name;
mod number;
mod options;
mod parsed;
mod plain;
mod protobuf;
#[cfg(any(test, feature = "reference"))]
pub mod reference;
mod relay;
#[cfg(test)]
mod tests;

pub use message::{MessageEncoding, MessageReader, PIECE_BYTES_MAX};
pub use options::{Compatibility, Kept, NameForm, Options};
pub use parsed::Parsed;

use std::hash::Hasher;

use foldhash::{SharedSeed, fast::FoldHasher};
use memchr::memchr;
use model::{Point, Reject, Span};

use crate::steps::touch;
use parsed::Parts;
use plain::PlainLimits;

/// Parses the lines of one listener. Has no state that a line could change.
#[derive(Clone)]
pub struct Reader {
    options: Options,
    hasher: NameHasher,
    /// `c-relay`: the replacement of each byte of a name. `0` for bytes that end or structure it: spaces, tabs, dots,
    /// and `;` unless it is kept.
    cleaned: [u8; 256],
    plain: PlainLimits,
}

impl Reader {
    /// A reader that seeds the hashes of names with `seed`; use a random seed (see [`hash_name`]).
    pub fn new(options: Options, seed: u64) -> Reader {
        Reader {
            hasher: NameHasher::new(seed),
            cleaned: relay::cleaned(&options.kept),
            plain: PlainLimits::of(&options),
            options,
        }
    }

    /// The reader's options.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Parses every line of the packet at `packet` in `bytes` and appends to `into`. The last line may have no LF.
    ///
    /// `now_s` (Unix seconds) is the time of lines without one, if the options allow them.
    ///
    /// # Panics
    /// When `packet` does not lie in `bytes`.
    pub fn packet(&self, bytes: &[u8], packet: Span, now_s: u64, into: &mut Parsed) {
        let mut at = packet.at as usize;
        let end = at + packet.len as usize;
        assert!(end <= bytes.len(), "a packet lies in its arena");
        // Start of the run of lines in their final form that are not copied yet.
        let mut run = at;
        while at < end {
            let line_end = memchr(b'\n', &bytes[at..end]).map_or(end, |len| at + len);
            let line = &bytes[at..line_end];
            touch(line.len() + 1);
            if let Some(name_len) = plain::name_len(&self.plain, line) {
                into.lines += 1;
                into.points.push(Point {
                    hash: self.hasher.hash(&line[..name_len]),
                    line: Span::new(into.bytes.len() + (at - run), line.len()),
                    name_len: name_len as u32,
                    tags_len: 0,
                });
            } else {
                into.bytes.extend_from_slice(&bytes[run..at]);
                self.any_line(bytes, Span::new(at, line.len()), now_s, into);
                run = line_end + 1;
            }
            at = line_end + 1;
        }
        if run < end {
            into.bytes.extend_from_slice(&bytes[run..end]);
            if bytes[end - 1] != b'\n' {
                into.bytes.push(b'\n');
            }
        }
    }

    /// The slow path: any line, without its LF.
    #[inline(never)]
    fn any_line(&self, arena: &[u8], line: Span, now_s: u64, into: &mut Parsed) {
        let (mut at, mut text) = (line.at as usize, line.of(arena));
        if self.options.compatibility == Compatibility::CRelay {
            while let Some(end) = memchr(b'\r', text) {
                self.line(&text[..end], at, now_s, into);
                at += end + 1;
                text = &text[end + 1..];
            }
        }
        self.line(text.strip_suffix(b"\r").unwrap_or(text), at, now_s, into);
    }

    fn line(&self, line: &[u8], at: usize, now_s: u64, into: &mut Parsed) {
        if line.is_empty() {
            return;
        }
        into.lines += 1;
        if let Err(why) = self.keep(line, now_s, into) {
            into.reject(why, Span::new(at, line.len()));
        }
    }

    /// Appends `line` in its final form, and its point; appends nothing on an error.
    fn keep(&self, line: &[u8], now_s: u64, into: &mut Parsed) -> Result<(), Reject> {
        touch(line.len());
        let begin = into.bytes.len();
        let read = match self.options.compatibility {
            Compatibility::CRelay => relay::clean(&self.cleaned, line, &mut into.bytes),
            Compatibility::Strict | Compatibility::Carbon | Compatibility::GoCarbon => {
                fields::read(&self.options, line, now_s, &mut into.bytes)
            }
        };
        let too_long = |parts: &Parts| parts.name_len > self.plain.name_len_max;
        let read = match read {
            Ok(parts) if too_long(&parts) => Err(Reject::NameTooLong),
            read => read,
        };
        let parts = read.inspect_err(|_| into.bytes.truncate(begin))?;
        let line = Span::new(begin, into.bytes.len() - begin);
        debug_assert!(parts.name_len > 0 && parts.name_len + parts.tags_len < line.len as usize);
        into.points.push(Point {
            hash: self.hasher.hash(&line.of(&into.bytes)[..parts.name_len]),
            line,
            name_len: parts.name_len as u32,
            tags_len: parts.tags_len as u32,
        });
        into.bytes.push(b'\n');
        Ok(())
    }
}

/// Hash of a name: the value of [`Point::hash`].
///
/// Seed it at random, or clients can choose names that collide. For many names a `Reader` is faster: this function
/// derives the hasher's state from the seed on each call.
pub fn hash_name(seed: u64, name: &[u8]) -> u64 {
    NameHasher::new(seed).hash(name)
}

/// The hash function of one seed.
#[derive(Clone)]
struct NameHasher {
    seed: u64,
    shared: SharedSeed,
}

impl NameHasher {
    fn new(seed: u64) -> NameHasher {
        // The shared part is derived from the seed as well: with a fixed one, clients could exploit its constants.
        NameHasher { seed, shared: SharedSeed::from_u64(seed) }
    }

    #[inline(always)]
    fn hash(&self, name: &[u8]) -> u64 {
        touch(name.len());
        let mut hasher = FoldHasher::with_seed(self.seed, &self.shared);
        hasher.write(name);
        hasher.finish()
    }
}
