//! Tests of the whole aggregation, through its public face. `rig` is what they share.

mod checkpoint;
mod examples;
mod idle;
mod limits;
mod manage;
mod model_check;
mod rig;
