//! The number of a series.

/// A series of the catalog. The number stays while the series exists, also when it is renamed and when the catalog is
/// saved and read; after its removal another series may get it. Numbers are below the limit on names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesId(pub u32);

impl SeriesId {
    /// A series of another node, which has no number here.
    pub const ELSEWHERE: SeriesId = SeriesId(u32::MAX);
}
