//! One open whisper file.
//!
//! | file | job |
//! |---|---|
//! | `open` | [`WhisperFile`]: create, open, its header |
//! | `ring` | slots: which one an interval has, reading and writing runs of them |
//! | `update` | points into their slots, with a count of each point |
//! | `propagate` | fine points to coarse ones |
//! | `set_order` | the order in which the original visits coarse intervals, which shows in an empty archive |
//! | `fetch` | values of a range |
//! | `error` | what can go wrong |
//!
//! # System calls
//! Opening costs a size and a read of the header, which usually brings the first base along (the time in the first slot
//! of an archive, from which the places of all others follow). Points in neighbouring slots are written by one call,
//! and those that a run of coarse points is made of are read by one. A caller that keeps a file's [`Known`] saves the
//! calls that read header and bases. So 60 points of neighbouring steps cost as many calls as one.

mod error;
mod fetch;
mod open;
mod propagate;
mod ring;
mod set_order;
#[cfg(test)]
mod tests;
mod update;

pub use error::{FetchError, FileError, NotCovered, UpdateError};
pub use fetch::Fetched;
pub use open::{Known, Opened, Space, WhisperFile, create_in, lock_in};
pub use ring::CHUNK_POINTS_MAX;
pub use update::{MAX_FUTURE_LEAST, Point, Scratch, UpdateOptions, Written};
