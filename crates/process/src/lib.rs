//! Computing on records: aggregation and routing. No I/O, no clock.

pub mod aggregate;
mod bytes;
pub mod glob;
pub mod placement;
pub mod relay;
pub mod rollup;
pub mod stage;
