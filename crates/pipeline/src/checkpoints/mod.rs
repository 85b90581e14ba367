//! Checkpoints of a shard's aggregations and Riemann configs: when each is saved, in which files, and what the next process reads.
//!
//! Path of a checkpoint: [`Saver::turn`] beside the shard, a slice of series each time -> [`Piece`] -> [`Writer`],
//! which may be on another thread: a new file, synced, replaces the older of two. At the start [`begin`] reads the
//! youngest readable one, and [`Notes`] list the windows that were already emitted. The format of an
//! aggregation belongs to `process::aggregate::checkpoint`, that of a Riemann config to `streams`.
//! Pure: a disk comes in as a [`model::Disk`]. Not here: threads, the path of the disk, the log (`staunch`).
//! Invariant: a checkpoint that [`Writer`] reports as whole is found by the next process, however this one ends.

mod files;
mod notes;
mod saver;
pub(crate) mod streams;
mod writer;

pub use files::{Generation, begin, begin_streams, generations, names, next_number, remove};
pub use notes::{Note, Notes, believed, set_back_ns, written_line};
pub use saver::{Keep, Piece, Saver};
pub use writer::{WriteError, Writer, Wrote};
