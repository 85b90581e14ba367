//! The disk interface of a queue: a trait for one directory with one owner, with only the calls that a queue needs
//! (design §2).
//!
//! The binary implements it with real files, the simulator with files that fail, tear and lose writes. Calls take
//! `&self`, so that a sync can run on another thread while the queue appends.
//!
//! Guarantees of an implementation: a name or a byte that was synced survives a crash. One that was not synced may
//! survive, in part or not at all, in any order. Callers rely on nothing else.

use std::fmt;

/// Why a disk operation failed. Closed and `Copy`: a queue decides by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiskError {
    /// No file of this name.
    NotFound,
    /// A file of this name exists already.
    Exists,
    /// No space left, or a quota is used up. Temporary.
    Full,
    /// The file ends before the requested bytes.
    Short,
    /// Not permitted, or mounted read-only.
    Denied,
    /// The system has temporarily run out of a resource: file descriptors, memory.
    Scarce {
        /// The system's error code.
        code: i32,
    },
    /// The directory is missing, or another one is in its place. It may come back.
    Away,
    /// The open file has no name any more, or the directory was deleted. Data written to it is lost when this process
    /// ends; it does not come back.
    Deleted,
    /// The name belongs to a pipe, a socket or a device, which cannot be read like a file.
    NotAFile,
    /// Anything else, with the system's error code (0 where there is none).
    Io {
        /// The system's error code.
        code: i32,
    },
}

impl DiskError {
    /// True when the error says nothing about the bytes on the disk: a resource is short, the directory missing or
    /// access denied. The caller retries later, and counts nothing as damaged (design §12).
    pub fn passes(self) -> bool {
        match self {
            DiskError::Full | DiskError::Denied | DiskError::Scarce { .. } | DiskError::Away => true,
            DiskError::NotFound
            | DiskError::Exists
            | DiskError::Short
            | DiskError::Deleted
            | DiskError::NotAFile
            | DiskError::Io { .. } => false,
        }
    }
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DiskError::NotFound => f.write_str("no such file"),
            DiskError::Exists => f.write_str("the file already exists"),
            DiskError::Full => f.write_str("no space left on the disk"),
            DiskError::Short => f.write_str("the file ends too early"),
            DiskError::Denied => f.write_str("not permitted"),
            DiskError::Scarce { code } => {
                write!(f, "the system is short of file descriptors or memory (error {code})")
            }
            DiskError::Away => f.write_str("the folder is missing or was replaced"),
            DiskError::Deleted => f.write_str("the file or its folder was deleted"),
            DiskError::NotAFile => f.write_str("not a regular file"),
            DiskError::Io { code } => write!(f, "the disk failed (error {code})"),
        }
    }
}

impl std::error::Error for DiskError {}

/// Result of reserving space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// The space is allocated for the file.
    Allocated,
    /// There is enough space now, but other files may use it: the file system cannot reserve space.
    FreeNow,
}

/// One directory. Names are plain file names, never paths.
pub trait Disk: fmt::Debug {
    /// An open file. A clone is the same file, and stays usable when its name is removed or changed.
    type File: Clone + fmt::Debug;

    /// Names of all files, in any order.
    fn list(&self) -> Result<Vec<String>, DiskError>;

    /// Creates a file for reading and writing. Fails with [`DiskError::Exists`] if there is one of this name.
    /// The name is not durable before [`Disk::sync_directory`].
    fn create(&self, name: &str) -> Result<Self::File, DiskError>;

    /// Opens a file for reading and writing.
    fn open(&self, name: &str) -> Result<Self::File, DiskError>;

    /// Writes all `parts`, one after the other, from `offset` on; the file grows as needed. After an error any part of
    /// the bytes may have been written. Not durable before [`Disk::sync`].
    fn write_at(&self, file: &Self::File, offset: u64, parts: &[&[u8]]) -> Result<(), DiskError>;

    /// Reserves space for `bytes` from `offset` on; the file's size does not change. An optimisation: no guarantee
    /// may depend on it. Fails with [`DiskError::Full`] when there is not enough space.
    fn reserve(&self, _file: &Self::File, _offset: u64, _bytes: u64) -> Result<Reserved, DiskError> {
        Ok(Reserved::FreeNow)
    }

    /// Fills `bytes` from `offset` on, or fails with [`DiskError::Short`].
    fn read_at(&self, file: &Self::File, offset: u64, bytes: &mut [u8]) -> Result<(), DiskError>;

    /// Size of the file in bytes.
    fn size(&self, file: &Self::File) -> Result<u64, DiskError>;

    /// Size of the file of this name, also when it cannot be opened.
    fn size_of(&self, name: &str) -> Result<u64, DiskError>;

    /// Makes all bytes written to the file so far durable. After an error it is unknown which bytes are durable, and
    /// a retry proves nothing: the system may have discarded them. Bytes of a file without a name, or in a missing
    /// directory, are not durable, whatever the system returns: [`DiskError::Deleted`], [`DiskError::Away`].
    fn sync(&self, file: &Self::File) -> Result<(), DiskError>;

    /// Makes the names in the directory durable.
    fn sync_directory(&self) -> Result<(), DiskError>;

    /// Renames a file. The new name must be free.
    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError>;

    /// Renames a file, replacing one of that name. After a crash the name belongs to either of them, never to none.
    fn replace(&self, from: &str, to: &str) -> Result<(), DiskError>;

    /// Removes a file.
    fn remove(&self, name: &str) -> Result<(), DiskError>;
}
