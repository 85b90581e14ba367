//! Streams through real graphs, with a virtual clock.

mod by;
mod forms;
mod properties;
mod rig;
mod vectors;
