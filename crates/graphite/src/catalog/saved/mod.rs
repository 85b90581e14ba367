//! The catalog as bytes: a snapshot, and a journal of the changes since it began.
//!
//! Both are sequences of pieces (`piece`), each with checksums, so that damage costs only its piece. A snapshot is written
//! while the catalog changes: first a new journal begins, then [`Snapshot::next`] writes piece after piece. Reading the
//! snapshot and then its journal gives the catalog as of the journal's end: of two records about an id or about a name the
//! later one counts. Ids stay.
//!
//! Names piece, for each name: id minus the previous id of the piece (varint), length of what the name shares with the
//! previous one (one byte), length of the rest (varint), the rest. Changes piece, for each change: 1, id (varint),
//! length (varint), name: the id has this name now; or 2, id: the series went. Begin piece: 1 for a snapshot, 2 for a journal,
//! its generation (8 bytes), and of a snapshot the numbers of texts, of nodes of paths, of tags and values, and of names
//! with tags (varints), for which a reader makes room. End piece: number of names in the snapshot (4 bytes). Numbers are
//! little-endian.
//!
//! Not here: files, and when they are synced.

mod journal;
mod piece;
#[cfg(any(test, feature = "promises"))]
pub mod promises;
mod reader;
mod snapshot;
#[cfg(test)]
mod tests;

pub use journal::Journal;
pub use piece::{PIECE_BYTES_MAX, SAVED_VERSION};
pub use reader::{DAMAGE_LIST_MAX, Damage, Damaged, Reader, SavedKind, SavedReport};
pub use snapshot::Snapshot;
