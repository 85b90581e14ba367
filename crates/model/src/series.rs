//! Names of series, before and after the dialect's normalisation.

/// A range of a batch's byte arena: `at .. at + len`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Span {
    /// First byte.
    pub at: u32,
    /// Number of bytes.
    pub len: u32,
}

impl Span {
    /// A span over `at .. at + len`. Arenas are bounded far below 4 GiB (see `limits`).
    pub fn new(at: usize, len: usize) -> Span {
        debug_assert!(at <= u32::MAX as usize && len <= u32::MAX as usize, "an arena is under 4 GiB");
        Span { at: at as u32, len: len as u32 }
    }

    /// The bytes of the span in `arena`.
    #[inline]
    pub fn of(self, arena: &[u8]) -> &[u8] {
        &arena[self.at as usize..][..self.len as usize]
    }

    /// True when the span is empty.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// A series' name as sent: cheap to compare, not yet canonical.
///
/// The aggregator looks up known series by these bytes alone. The dialect's rules (sanitising, tag order) are applied
/// only to a raw key that is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawKey<'a> {
    /// Text before the first `:`.
    pub name: &'a [u8],
    /// Text of the tag field without its `#`; empty when there is none.
    pub tags: &'a [u8],
}

/// Result of normalising a raw key by its dialect. The canonical bytes are written to a caller's buffer: the name
/// first, then the tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Canonical {
    /// Length of the name; the rest of the buffer is the tags.
    pub name_len: usize,
    /// True when the name has only `a-z A-Z 0-9 _ - . ; =` and every tag is a plain `key:value` of such
    /// bytes: outputs may then copy it without validation.
    pub clean: bool,
    /// Hash of the canonical bytes as a raw key of the same kind.
    pub hash: u64,
}

/// A series as passed to outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesRef<'a> {
    /// Canonical name. In the `etsy` dialect it includes its tags as `;k=v`, as in node.
    pub name: &'a [u8],
    /// Canonical tags: `k:v` and bare words, sorted, deduplicated, joined with `,`. Empty in `etsy`.
    pub tags: &'a [u8],
    /// See [`Canonical::clean`].
    pub clean: bool,
}
