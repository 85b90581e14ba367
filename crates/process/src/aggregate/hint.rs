//! What a batch knows about the series of a sample: the probe made ahead of it, and the lookup before it.

use model::{Kind, RawKey};

use super::index::Place;

/// A sample with the result of its index probe.
#[derive(Clone, Copy)]
pub(super) struct Hint<'a> {
    pub(super) hash: u64,
    pub(super) raw: RawKey<'a>,
    pub(super) place: Option<Place>,
}

/// The lookup result of the last sample with a long or unknown key. All values of one line share a key, and it is
/// looked up once. Otherwise a line with many values would cost their number times the length of its name.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// Where the key lies in memory, which does not move during one call: start and length of name and tags.
    pub(super) at: [usize; 4],
    pub(super) kind: Kind,
    pub(super) id: Option<u32>,
}

impl Found {
    pub(super) fn place(raw: RawKey<'_>) -> [usize; 4] {
        [raw.name.as_ptr().addr(), raw.name.len(), raw.tags.as_ptr().addr(), raw.tags.len()]
    }
}
