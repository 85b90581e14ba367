//! What can go wrong with an open file. All closed and `Copy`: the store decides by them.

use std::fmt;

use model::DiskError;

use crate::whisper::format::{Damage, RangeError};

/// Why a file cannot be used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FileError {
    /// Its bytes are not those of a whisper file, or not of one that can be used.
    Damaged(Damage),
    /// The disk failed, or a resource is short: the bytes may be good.
    Disk(DiskError),
}

impl From<DiskError> for FileError {
    fn from(error: DiskError) -> FileError {
        FileError::Disk(error)
    }
}

impl From<Damage> for FileError {
    fn from(damage: Damage) -> FileError {
        FileError::Damaged(damage)
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::Damaged(damage) => write!(f, "not a usable whisper file: {damage}"),
            FileError::Disk(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for FileError {}

/// A single point is outside the time that the file covers: older than its maximum retention, or after now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotCovered {
    /// Age of the point in seconds; negative in the future.
    pub age: i64,
    /// Maximum retention of the file in seconds; ages from 0 to below it are covered.
    pub retention: i64,
}

impl fmt::Display for NotCovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NotCovered { age, retention } = self;
        if *age < 0 {
            write!(f, "the point is {} s in the future", age.unsigned_abs())
        } else {
            write!(f, "the point is {age} s old, and the file covers {retention} s")
        }
    }
}

/// Why a single point was not written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UpdateError {
    /// It is outside the time that the file covers.
    NotCovered(NotCovered),
    /// The file cannot be used.
    File(FileError),
}

impl From<FileError> for UpdateError {
    fn from(error: FileError) -> UpdateError {
        UpdateError::File(error)
    }
}

impl fmt::Display for UpdateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UpdateError::NotCovered(why) => write!(f, "{why}"),
            UpdateError::File(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for UpdateError {}

/// Why a range was not fetched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FetchError {
    /// The range is invalid for this file.
    Range(RangeError),
    /// The file cannot be used.
    File(FileError),
}

impl From<RangeError> for FetchError {
    fn from(error: RangeError) -> FetchError {
        FetchError::Range(error)
    }
}

impl From<FileError> for FetchError {
    fn from(error: FileError) -> FetchError {
        FetchError::File(error)
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FetchError::Range(error) => write!(f, "{error}"),
            FetchError::File(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for FetchError {}
