//! What a series is called, before and after the dialect has read its name.

/// A piece of a batch's byte arena: `at .. at + len`.
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

    /// The bytes that the span names in `arena`.
    #[inline]
    pub fn of(self, arena: &[u8]) -> &[u8] {
        &arena[self.at as usize..][..self.len as usize]
    }

    /// True when the span holds no byte.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// A series' name as it stood on the wire: cheap to compare, not yet canonical.
///
/// The aggregator finds a known series by these bytes alone; the dialect's rules (sanitising, tag order)
/// run only when a raw key is seen for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawKey<'a> {
    /// Text before the first `:`.
    pub name: &'a [u8],
    /// Text of the tag field without its `#`; empty when there is none.
    pub tags: &'a [u8],
}

/// How a dialect wants a raw key to be stored. The canonical bytes themselves go into a caller's buffer:
/// the name first, then the tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Canonical {
    /// Bytes of the name; what follows in the buffer is the tags.
    pub name_len: usize,
    /// True when the name has only `a-z A-Z 0-9 _ - . ; =` and every tag is a plain `key:value` of such
    /// bytes: outputs may then copy it without looking.
    pub clean: bool,
    /// Hash that the canonical bytes would have as a raw key of the same kind.
    pub hash: u64,
}

/// A series as outputs see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesRef<'a> {
    /// Canonical name. In the `etsy` dialect it carries its tags as `;k=v`, as node keeps them.
    pub name: &'a [u8],
    /// Canonical tags: `k:v` and bare words, sorted, without doubles, joined with `,`. Empty in `etsy`.
    pub tags: &'a [u8],
    /// See [`Canonical::clean`].
    pub clean: bool,
}
