//! What the streams of a config remember, as bytes that outlive the process: windows, counters, forks of `by`, the index.
//!
//! - [`archive`]: values as bytes; `shared`: those that are written once. [`saving`]: a checkpoint, in slices. [`restoring`]: what an engine takes back of it.
//!
//! A state goes to the stream with the same identity (`graph::identity`), whatever else has changed in the config. What a stream
//! remembers as a function, an atom or a lazy sequence cannot be saved: nil stands for it, and is counted.
//! Not here: files of checkpoints, and when they are written (`pipeline::checkpoints`).

pub mod archive;
pub mod restoring;
pub mod saving;
mod shared;
