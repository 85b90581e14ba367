//! Processing of records: aggregation, relay rules, sharding and filter stages. No I/O, no clock.

pub mod aggregate;
pub mod aggregation_rules;
mod bytes;
pub mod glob;
pub mod relay;
pub mod sharding;
pub mod stage;
