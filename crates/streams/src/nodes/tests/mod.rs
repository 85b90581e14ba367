//! Streams through real graphs, with a virtual clock.

mod by;
mod folds;
mod forms;
mod limits;
mod properties;
pub(crate) mod rig;
mod vectors;
