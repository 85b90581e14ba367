//! Checkpoints: what aggregations hold, written to `<data_dir>/state/` every few seconds and read at the start.
//!
//! Path of a checkpoint: `pipeline::Turn`, a slice of series each time -> [`Saver`] -> a bounded channel ->
//! [`keeper::Keeper`] on a thread of its own. At the start [`restore()`] brings back what is there. When what is saved, in
//! which files, and which of them is read is decided in `pipeline::checkpoints`; which windows were told is noted by
//! [`handover`].
//!
//! What is promised after `kill -9` or a loss of power: of the window that was open at most what arrived after the last
//! checkpoint began is missing, gauges and idle series are back, and no window that was told is counted again. When it
//! is killed between handing a flush to the queues and noting its label, that window is told twice under one label,
//! the second time as the checkpoint knew it: Graphite keeps the later point. Records that waited in queues in memory
//! are lost as ever.
//!
//! A checkpoint that cannot be written changes nothing else: it is told once, and counted. Files that cannot be read
//! are told and left alone until two younger ones have replaced them.

pub mod handover;
mod keeper;
mod restore;
mod saver;
mod table;

pub use keeper::LastCheckpoints;
pub use restore::{remove_unwanted, restore};
pub use saver::Saver;
pub use table::{CheckpointFigures, CheckpointTable};
