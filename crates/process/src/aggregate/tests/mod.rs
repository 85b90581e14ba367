//! Tests of the whole aggregation through its public API. `rig` has the shared helpers.

mod checkpoint;
mod examples;
mod idle;
mod limits;
mod manage;
mod model_check;
mod old_checkpoint;
mod rig;
