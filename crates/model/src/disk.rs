//! A disk as an argument: one directory of one owner, with what a queue needs of it and no more (design §2).
//!
//! The binary implements it with real files, the simulator with files that fail, tear and forget. Calls take `&self`,
//! so that a sync may run on another thread while the queue appends.
//!
//! What an implementation promises: a name or a byte that was synced survives a crash; one that was not may be there,
//! be there in part, or not be there at all, in any order. Nothing else is relied on.

use std::fmt;

/// Why a disk did not do what it was asked. Closed and `Copy`: a queue decides by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiskError {
    /// No file of that name.
    NotFound,
    /// There is a file of that name already.
    Exists,
    /// No space left, or a quota is used up. May pass.
    Full,
    /// The file ends before the bytes that were asked for.
    Short,
    /// Not permitted, or mounted read-only.
    Denied,
    /// The system is short of something that it may have again soon: file descriptors, memory.
    Scarce {
        /// As the system numbers it.
        code: i32,
    },
    /// The folder is not there, or another one is in its place. It may come back.
    Away,
    /// The open file has no name any more, or the folder was deleted: somebody removed it. What is written to it ends with
    /// this process, and it does not come back.
    Deleted,
    /// What has the name is a pipe, a socket or a device, which nothing can be read from in its order.
    NotAFile,
    /// Anything else, with the system's error code (0 where there is none).
    Io {
        /// As the system numbers it.
        code: i32,
    },
}

impl DiskError {
    /// True when the error says nothing about the bytes on the disk: something is short, away or not permitted. The caller
    /// waits and tries again, and counts nothing as damaged (design §12).
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
            DiskError::Exists => f.write_str("the file exists already"),
            DiskError::Full => f.write_str("no space left on the disk"),
            DiskError::Short => f.write_str("the file ends too early"),
            DiskError::Denied => f.write_str("not permitted"),
            DiskError::Scarce { code } => {
                write!(f, "the system is short of file descriptors or memory (error {code})")
            }
            DiskError::Away => f.write_str("the folder is away, or another one is in its place"),
            DiskError::Deleted => f.write_str("the file or its folder was deleted"),
            DiskError::NotAFile => f.write_str("it is no regular file"),
            DiskError::Io { code } => write!(f, "the disk failed (error {code})"),
        }
    }
}

impl std::error::Error for DiskError {}

/// How far room on a disk is there for who has asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// It is set aside: nobody else gets it.
    SetAside,
    /// There is room now, as far as is known, and others may take it: the file system sets none aside.
    Seen,
}

/// One directory. Names are plain file names, never paths.
pub trait Disk: fmt::Debug {
    /// An open file. A clone is the same file, and stays usable when its name is removed or changed.
    type File: Clone + fmt::Debug;

    /// Names of all files, in any order.
    fn list(&self) -> Result<Vec<String>, DiskError>;

    /// Makes a new file for reading and writing. Fails with [`DiskError::Exists`] rather than touch one that is there.
    /// The name is not safe before [`Disk::sync_directory`].
    fn create(&self, name: &str) -> Result<Self::File, DiskError>;

    /// Opens a file for reading and writing.
    fn open(&self, name: &str) -> Result<Self::File, DiskError>;

    /// Writes all `parts`, one behind the other, from `offset` on; the file grows as needed. After an error any part of
    /// the bytes may have been written. Not safe before [`Disk::sync`].
    fn write_at(&self, file: &Self::File, offset: u64, parts: &[&[u8]]) -> Result<(), DiskError>;

    /// Sees to it that `bytes` can be written from `offset` on without the disk being full; the file stays as it is. Nothing
    /// that was promised earlier may hang on it. Fails with [`DiskError::Full`] when there is no room.
    fn reserve(&self, _file: &Self::File, _offset: u64, _bytes: u64) -> Result<Reserved, DiskError> {
        Ok(Reserved::Seen)
    }

    /// Fills `bytes` from `offset` on, or fails with [`DiskError::Short`].
    fn read_at(&self, file: &Self::File, offset: u64, bytes: &mut [u8]) -> Result<(), DiskError>;

    /// Bytes in the file.
    fn size(&self, file: &Self::File) -> Result<u64, DiskError>;

    /// Bytes in the file of that name, also when it cannot be opened.
    fn size_of(&self, name: &str) -> Result<u64, DiskError>;

    /// Makes all bytes written to the file so far safe. After an error nobody knows which are, and asking again
    /// proves nothing: the system may have forgotten them. Bytes of a file that has no name any more, or whose folder is
    /// away, are not safe, whatever the system says: [`DiskError::Deleted`], [`DiskError::Away`].
    fn sync(&self, file: &Self::File) -> Result<(), DiskError>;

    /// Makes the names of the directory safe.
    fn sync_directory(&self) -> Result<(), DiskError>;

    /// Gives a file another name, which must be free.
    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError>;

    /// Gives a file another name, and a file that had it is gone. A crash leaves either of them under it, never none.
    fn replace(&self, from: &str, to: &str) -> Result<(), DiskError>;

    /// Removes a file.
    fn remove(&self, name: &str) -> Result<(), DiskError>;
}
