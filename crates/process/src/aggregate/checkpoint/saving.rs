//! Progress of a save, which the aggregation remembers between two slices.

/// Progress of a save.
#[derive(Clone, Copy, Debug)]
pub(in crate::aggregate) struct Saving {
    pub(super) id: u64,
    /// Index in [`model::Kind::ALL`]; after the kinds come the busy names, then the end.
    pub(super) stage: usize,
    /// First entry of the stage that is not visited yet.
    pub(super) from: u32,
    /// When it began.
    pub(super) beat: u32,
    pub(super) series: u64,
}
