//! What the command line offers besides storing and fetching, as functions over open files. A dump is
//! [`WhisperFile::each_slot`](super::WhisperFile::each_slot); the method and the xFilesFactor of a file are changed by
//! [`WhisperFile::set_method`](super::WhisperFile::set_method) and
//! [`WhisperFile::set_x_files_factor`](super::WhisperFile::set_x_files_factor).
//!
//! | file | job |
//! |---|---|
//! | `info` | header and size of a file |
//! | `timeline` | all known points of a file, each stretch of time from the finest archive that has it |
//! | `merge` | copies the points of a file into another one with the same archives |
//! | `fill` | copies points only where the other file has none |
//! | `diff` | points that differ |
//! | `resize` | the points of a file in a file with other archives |

mod diff;
mod fill;
mod info;
mod merge;
mod resize;
#[cfg(test)]
mod tests;
mod timeline;

pub use diff::{ArchiveDifference, DiffOptions, Difference, diff};
pub use fill::fill;
pub use info::{Info, info};
pub use merge::{MergeError, merge};
pub use resize::{Migration, ResizeError, resize, resize_in};
pub use timeline::timeline;
