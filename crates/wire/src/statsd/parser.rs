//! What parsing a line needs beside the line: the options, the hash function, and the limits of the fast path.
//!
//! Not here: parsing (`plain`, and a file for each dialect).

use super::key::KeyHasher;
use super::options::{Dialect, Options};

/// Parses packets in one dialect. Has no state that a packet could change.
#[derive(Clone)]
pub struct Parser {
    pub(super) options: Options,
    pub(super) hasher: KeyHasher,
    pub(super) plain: PlainLimits,
}

impl Parser {
    /// A parser that seeds its key hashes with `seed`; use a random seed (see [`hash_key`](super::hash_key)).
    pub fn new(options: Options, seed: u64) -> Parser {
        Parser { options, hasher: KeyHasher::new(seed), plain: PlainLimits::of(&options) }
    }

    /// The parser's options.
    pub fn options(&self) -> &Options {
        &self.options
    }
}

/// The options that the conditions of the fast path depend on.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlainLimits {
    pub(super) key_bytes_max: usize,
    /// Tags of at most this many bytes cannot exceed the limit.
    pub(super) tag_bytes_max: usize,
    /// Rates and tags have the common syntax: all dialects but `perl`.
    pub(super) fields: bool,
    /// `h` and `d` are timers.
    pub(super) histograms: bool,
}

impl PlainLimits {
    pub(super) fn of(options: &Options) -> PlainLimits {
        let or_none = |max: u32| if max == 0 { usize::MAX } else { max as usize };
        PlainLimits {
            key_bytes_max: or_none(options.key_bytes_max),
            tag_bytes_max: or_none(options.tags_max) - 1,
            fields: options.dialect != Dialect::Perl,
            histograms: matches!(options.dialect, Dialect::Dogstatsd | Dialect::Union),
        }
    }
}
