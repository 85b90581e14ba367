//! Checkpoints of a shard's aggregations: when which one is saved, in which files, and what the next process reads.
//!
//! Path of a checkpoint: [`Saver::turn`] beside the shard, a slice of series each time -> [`Piece`] -> [`Writer`], which may
//! be on another thread: a file of its own, synced, in the place of the older of two. At the start [`begin`] reads the
//! youngest that can be read, and [`Notes`] say which windows were told before. What the bytes mean is the matter of
//! `process::aggregate::checkpoint`.
//! Pure: a disk comes in as a [`model::Disk`]. Not here: threads, where the disk is, what is logged (`staunch`).
//! Invariant: a checkpoint that [`Writer`] calls whole is found by the next process, whatever becomes of this one.

mod files;
mod notes;
mod saver;
mod writer;

pub use files::{Generation, begin, generations, names, next_number, remove};
pub use notes::{Note, Notes, believed, set_back_ns, written_line};
pub use saver::{Keep, Piece, Saver};
pub use writer::{WriteError, Writer, Wrote};
