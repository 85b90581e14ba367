//! Whisper files, byte for byte as the Python library writes them.
//!
//! Path of a point: the store -> [`names`]: the path of its series -> [`rules`]: the layout of a new file ->
//! [`WhisperFile::create`] or [`WhisperFile::open`] -> [`WhisperFile::update_many`].
//! Pure: files come in as [`model::TreeFile`] and [`model::FileTree`], times as arguments.
//! Not here: which file is written when, memory for points, and the log that makes them safe (the store); names in
//! memory (`catalog`); INI files (`import`).
//! Invariants: any bytes as a file give a value or a named error; memory per call is bounded by the points of the
//! call or the length of the answer, and in `tools` by the points of a file; every point of a call is counted once
//! ([`Written`]).
//!
//! | folder or file | job |
//! |---|---|
//! | `format/` | header, archives and their rules, aggregation methods, retention texts |
//! | `file/` | one open file: create, open, update, propagate, fetch |
//! | `tools/` | what the command line offers besides: dump, resize, merge, fill, diff, changes of a header |
//! | `names` | series names to paths and back |
//! | `rules` | which layout and aggregation a new series gets |
//! | `promises` | what holds of any bytes as a file, for tests and the fuzz target |

pub mod file;
pub mod format;
pub mod names;
#[cfg(any(test, feature = "promises"))]
pub mod promises;
pub mod rules;
pub mod tools;

pub use file::{
    FetchError, Fetched, FileError, Known, MAX_FUTURE_LEAST, NotCovered, Opened, Point, Scratch, Space,
    UpdateError, UpdateOptions, WhisperFile, Written, create_in, lock_in,
};
pub use format::{
    AggregationMethod, Archive, ArchivePlan, Damage, FetchRange, Header, Layout, LayoutError, RangeError,
    RetentionError, RetentionFault, parse_retention, parse_retentions,
};
