//! Streams through real graphs, with a virtual clock.

mod by;
mod folds;
mod forms;
mod limits;
mod properties;
mod rig;
mod vectors;
