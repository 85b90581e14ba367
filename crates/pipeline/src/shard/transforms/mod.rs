//! The transforms of a shard, a file or two for each kind.

pub(crate) mod aggregation;
pub(crate) mod chain;
pub(crate) mod relay;
pub(crate) mod results;
