//! Writes pieces of checkpoints to files.

use model::{Disk, DiskError};

use super::files::{self, NewFile};
use super::saver::Piece;

/// Why a checkpoint could not be written, or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// The disk failed.
    Disk(DiskError),
    /// It is larger than 4 GiB.
    TooLarge,
}

impl From<DiskError> for WriteError {
    fn from(error: DiskError) -> WriteError {
        WriteError::Disk(error)
    }
}

impl std::fmt::Display for WriteError {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            WriteError::Disk(error) => write!(to, "{error}"),
            WriteError::TooLarge => to.write_str("a checkpoint is larger than 4 GiB"),
        }
    }
}

/// The result of a piece.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Wrote {
    /// Nothing to report.
    Nothing,
    /// A checkpoint is whole: the next process finds it, also after a power loss.
    Whole {
        /// The aggregation.
        name: String,
        /// Number of the checkpoint.
        number: u64,
        /// When saving began, monotonic nanoseconds.
        begun_ns: u64,
        /// Its size.
        bytes: u64,
        /// Series in it.
        series: u64,
    },
    /// The file on disk was still what the aggregation held.
    Same {
        /// The aggregation.
        name: String,
        /// When that was checked, monotonic nanoseconds.
        at_ns: u64,
    },
    /// The files of the aggregation are removed.
    Removed {
        /// The aggregation.
        name: String,
    },
    /// It could not be written: the rest of it is discarded, and the existing ones stay.
    Failed {
        /// The aggregation.
        name: String,
        /// Why.
        why: WriteError,
    },
}

/// Writes one checkpoint after the other.
#[derive(Debug)]
pub struct Writer<D: Disk> {
    disk: D,
    under_way: Option<UnderWay<D>>,
}

#[derive(Debug)]
struct UnderWay<D: Disk> {
    name: String,
    number: u64,
    begun_ns: u64,
    file: NewFile<D>,
}

impl<D: Disk + Clone> Writer<D> {
    /// Nothing is being written.
    pub fn new(disk: D) -> Writer<D> {
        Writer { disk, under_way: None }
    }

    /// Writes the next piece. May wait for the disk.
    pub fn take(&mut self, piece: Piece) -> Wrote {
        match piece {
            Piece::Begin { name, number, begun_ns } => {
                // The unfinished one is removed first: they share a name.
                self.under_way = None;
                match NewFile::create(self.disk.clone(), &name) {
                    Ok(file) => self.under_way = Some(UnderWay { name, number, begun_ns, file }),
                    Err(error) => return Wrote::Failed { name, why: error.into() },
                }
                Wrote::Nothing
            }
            Piece::Bytes(bytes) => {
                let Some(mut under_way) = self.under_way.take() else { return Wrote::Nothing };
                if let Err(why) = under_way.file.write(&bytes) {
                    return Wrote::Failed { name: under_way.name, why };
                }
                self.under_way = Some(under_way);
                Wrote::Nothing
            }
            Piece::End { series } => {
                let Some(UnderWay { name, number, begun_ns, file }) = self.under_way.take() else {
                    return Wrote::Nothing;
                };
                match file.finish(&name) {
                    Ok(bytes) => Wrote::Whole { name, number, begun_ns, bytes, series },
                    Err(why) => Wrote::Failed { name, why },
                }
            }
            Piece::Void => {
                self.under_way = None;
                Wrote::Nothing
            }
            Piece::Same { name, at_ns } => Wrote::Same { name, at_ns },
            Piece::Remove { name } => {
                self.under_way = None;
                let _any = files::remove(&self.disk, &name);
                Wrote::Removed { name }
            }
        }
    }
}
