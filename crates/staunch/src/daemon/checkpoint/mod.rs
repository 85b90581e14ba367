//! Checkpoints: the state of aggregations, written to `<data_dir>/state/` every few seconds and read at the start.
//!
//! Path of a checkpoint: `pipeline::Turn`, a slice of series each time -> [`Saver`] -> a bounded channel ->
//! [`keeper::Keeper`] on its own thread. At the start [`restore()`] restores the state. `pipeline::checkpoints` decides
//! what is saved when, in which files, and which of them is read; [`handover`] notes the emitted windows.
//!
//! Guarantee after `kill -9` or a power loss: of the open window, at most the samples since the last checkpoint began
//! are missing, gauges and idle series are restored, and no emitted window is counted again. If the process is killed
//! between appending a flush to the queues and noting its label, that window is emitted twice with one label, the
//! second time from the checkpoint: Graphite keeps the later point. Records in queues in memory are lost.
//!
//! A failed checkpoint affects nothing else: it is logged once, and counted. Unreadable files are logged and kept until
//! two newer ones have replaced them.

pub mod handover;
mod keeper;
mod restore;
mod saver;
mod table;

pub use keeper::LastCheckpoints;
pub use restore::{remove_unwanted, restore};
pub use saver::Saver;
pub use table::{CheckpointFigures, CheckpointTable};
