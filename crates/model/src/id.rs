//! Indexes into the plan. An id is an index into the plan's list of that kind and is valid as long as the plan.

/// Index of a source in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(pub u16);

/// Index of a transform in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TransformId(pub u16);

/// Index of an output in the plan. An output with several endpoints has one id for each endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OutputId(pub u16);

/// A connection with acknowledgements. Ids are not reused within a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

impl SourceId {
    /// The id as an index.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl TransformId {
    /// The id as an index.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl OutputId {
    /// The id as an index.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}
