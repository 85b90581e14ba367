//! Graphite lines to points, with the manners of four originals (spec graphite §1.1).
//!
//! Path of a packet: the source's intake -> [`Reader::packet`] -> for each line the short way (`plain`) or, when the line
//! is anything but plain, the reader of the compatibility (`fields` or `relay`) -> [`Parsed`].
//! A point goes on as text. Lines that are in their final form already, which is nearly all of them, are recognised as
//! they stand and copied in one go with their neighbours; only the others are put together anew.
//! Not here: splitting streams into packets (`frame`), where points go.
//! Pure: no I/O, no clock, and no allocation per line once the vectors of `Parsed` have grown.
//! Invariants: every line that is not empty ends as one point or one counted reject; no byte string makes it panic; the
//! short way and the long one say the same, which `reference` checks (fuzz target `graphite`).

mod fields;
mod message;
mod name;
mod number;
mod options;
mod plain;
mod protobuf;
#[cfg(any(test, feature = "reference"))]
pub mod reference;
mod relay;
#[cfg(test)]
mod tests;

pub use message::{MessageEncoding, Opened, PIECE_BYTES_MAX};
pub use options::{Compatibility, Kept, NameForm, Options};

use std::hash::Hasher;

use foldhash::{SharedSeed, fast::FoldHasher};
use memchr::memchr;
use model::{Point, Reject, Span};

use crate::cost::touch;

/// What packets held. Reuse it: [`Parsed::clear`] keeps the memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// The points' lines as they go on, each with its LF and none between them.
    pub bytes: Vec<u8>,
    /// Points, in order of arrival; their spans point into `bytes`.
    pub points: Vec<Point>,
    /// Lines that are not empty, good or bad.
    pub lines: u64,
    /// Lines refused, by [`Reject::index`].
    pub rejects: [u64; Reject::COUNT],
    /// The first bad line, as a piece of what it was read from, and its reason: for the one clear log message.
    pub first_reject: Option<(Reject, Span)>,
    /// Elements of a message on their way to be read as lines; empty between two calls.
    elements: Vec<u8>,
}

impl Parsed {
    /// Forgets everything but the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.points.clear();
        self.lines = 0;
        self.rejects = [0; Reject::COUNT];
        self.first_reject = None;
    }

    /// Lines refused, for whatever reason.
    pub fn rejected(&self) -> u64 {
        self.rejects.iter().sum()
    }

    fn reject(&mut self, why: Reject, line: Span) {
        self.rejects[why.index()] += 1;
        if self.first_reject.is_none() {
            self.first_reject = Some((why, line));
        }
    }
}

/// The parts of a line that was put together anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parts {
    name_len: usize,
    tags_len: usize,
}

/// Reads lines for one listener. Has no state that a line could change.
#[derive(Clone)]
pub struct Reader {
    options: Options,
    hasher: NameHasher,
    /// `c-relay`: what becomes of each byte of a name. `0` for those that end or shape it: blanks, dots, and `;` unless it
    /// is kept.
    cleaned: [u8; 256],
    /// The short way may be taken: it keeps the bytes that `-c` has when it is not given, so these must be among the kept.
    quick: bool,
    name_len_max: usize,
}

impl Reader {
    /// A reader whose hashes of names are seeded with `seed`; draw it at random (see [`hash_name`]).
    pub fn new(options: Options, seed: u64) -> Reader {
        let keeps_usual = Kept::default().bytes().all(|byte| options.kept.has(byte));
        Reader {
            options,
            hasher: NameHasher::new(seed),
            cleaned: relay::cleaned(&options.kept),
            quick: keeps_usual || options.compatibility != Compatibility::CRelay,
            name_len_max: if options.name_bytes_max == 0 {
                usize::MAX
            } else {
                options.name_bytes_max as usize
            },
        }
    }

    /// The options that it was made with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Reads every line of the packet at `packet` in `bytes` and appends to `into`. The last line may have no LF.
    ///
    /// `now_s` (Unix seconds) is the time of lines that carry none, where that is wanted.
    ///
    /// # Panics
    /// When `packet` does not lie in `bytes`.
    pub fn packet(&self, bytes: &[u8], packet: Span, now_s: u64, into: &mut Parsed) {
        let mut at = packet.at as usize;
        let end = at + packet.len as usize;
        assert!(end <= bytes.len(), "a packet lies in its arena");
        // Lines from here on are in their final form and not copied yet.
        let mut run = at;
        while at < end {
            let line_end = memchr(b'\n', &bytes[at..end]).map_or(end, |len| at + len);
            let line = &bytes[at..line_end];
            touch(line.len() + 1);
            if let Some(name_len) = plain::name_len(self, line) {
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

    /// The long way: any line at all, without its LF.
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

    /// Appends `line` in its final form, and its point; on a mistake nothing stays behind.
    fn keep(&self, line: &[u8], now_s: u64, into: &mut Parsed) -> Result<(), Reject> {
        touch(line.len());
        let begin = into.bytes.len();
        let read = match self.options.compatibility {
            Compatibility::CRelay => relay::clean(self, line, &mut into.bytes),
            Compatibility::Strict | Compatibility::Carbon | Compatibility::GoCarbon => {
                fields::read(&self.options, line, now_s, &mut into.bytes)
            }
        };
        let too_long = |parts: &Parts| parts.name_len > self.name_len_max;
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

/// Hash of a name: what [`Reader`] writes into [`Point::hash`].
///
/// Seed it at random, or outsiders can choose names that collide. For many names a `Reader` is quicker: this function
/// derives the hasher's state from the seed anew.
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
        // The shared part comes from the seed as well: a fixed one would let outsiders aim at its constants.
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
