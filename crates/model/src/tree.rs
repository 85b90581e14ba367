//! The interface of a tree of files: traits for folders of many files that are read and written in place, with only the
//! calls that whisper files need (design §2).
//!
//! The binary implements them with real files, tests and the simulator with files in memory. [`Disk`](crate::Disk) is
//! the narrower interface of a queue: one folder, names without paths.
//!
//! Paths are relative to the root of the tree, in UTF-8, with `/` between the names. An implementation never leaves its
//! root: a path that is absolute, or has an empty name, `.` or `..` in it, is rejected with [`DiskError::NotAFile`],
//! on systems with other separators and drive names also a path with one of those.
//!
//! Guarantees of an implementation: a byte that was synced survives a crash, and so does the name of its file if its
//! folder was synced. What was not synced may survive, in part or not at all, in any order. Callers rely on nothing else.

use std::fmt;

use crate::disk::{DiskError, Reserved};

/// An open file of a tree. It stays usable when its name is removed or changed. All calls take `&self`, so that a sync
/// can run on another thread.
pub trait TreeFile: fmt::Debug {
    /// Fills `bytes` from `offset` on, or fails with [`DiskError::Short`].
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DiskError>;

    /// Writes all bytes from `offset` on; the file grows as needed, and reads as zeros where nothing was written. After an
    /// error any part of the bytes may have been written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError>;

    /// Size of the file in bytes.
    fn size(&self) -> Result<u64, DiskError>;

    /// Which file this is, and when anybody changed it last: equal versions mean that nobody changed it in between. None where
    /// the system is not exact enough about that.
    fn version(&self) -> Result<Option<FileVersion>, DiskError> {
        Ok(None)
    }

    /// The version that it had when its tree opened it, which costs no call of the system where opening asked for it.
    fn opened_version(&self) -> Result<Option<FileVersion>, DiskError> {
        self.version()
    }

    /// Makes the file at least `bytes` long. What was not written reads as zeros and takes no disk space where the file
    /// system has sparse files.
    fn extend(&self, bytes: u64) -> Result<(), DiskError>;

    /// Makes a file `bytes` long that the caller has just created and that nobody has written to. Like
    /// [`TreeFile::extend`], without a look at its size.
    fn extend_new(&self, bytes: u64) -> Result<(), DiskError> {
        self.extend(bytes)
    }

    /// Makes the file at least `bytes` long, with zeros, and reserves disk space for all of them if the file system can.
    /// Fails with [`DiskError::Full`] when there is not enough space.
    fn allocate(&self, bytes: u64) -> Result<Reserved, DiskError>;

    /// Makes all bytes written to the file so far durable. After an error it is unknown which bytes are durable.
    fn sync(&self) -> Result<(), DiskError>;

    /// Waits until no other open file of the same name, in this process or another one, is locked, and locks this one.
    /// The lock ends with [`TreeFile::unlock`] or when the file is closed. Programs that take no lock are not stopped.
    fn lock(&self) -> Result<(), DiskError>;

    /// Ends the lock.
    fn unlock(&self) -> Result<(), DiskError>;
}

/// A state of a file, of which only equality counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileVersion {
    /// What identifies the file in its file system.
    pub file: u64,
    /// When its bytes, its size, its name or its owner changed last. No program can set it.
    pub changed: i64,
}

/// What identifies a folder on its machine: file system and number. Equal for all names of one folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FolderId(pub u64, pub u64);

/// What an entry of a folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A regular file, or a link to one.
    File,
    /// A folder.
    Folder,
    /// A link to a folder, with what identifies that folder: such links can lead in circles.
    FolderLink(FolderId),
    /// A pipe, a socket, a device, or a link that leads nowhere.
    Other,
}

/// Facts of a file that need no opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// Size in bytes.
    pub bytes: u64,
    /// Bytes of disk space in use: less than `bytes` in a sparse file.
    pub disk_bytes: u64,
    /// When it was last written, in Unix seconds.
    pub modified: i64,
}

/// A folder with everything in it. A clone is the same tree.
pub trait FileTree: fmt::Debug {
    /// A file of this tree.
    type File: TreeFile;

    /// Opens a file for reading and writing.
    fn open(&self, path: &str) -> Result<Self::File, DiskError>;

    /// Opens a file for reading. Writes fail with [`DiskError::Denied`].
    fn open_to_read(&self, path: &str) -> Result<Self::File, DiskError>;

    /// Creates an empty file for reading and writing, and the folders of its path that are missing. Fails with
    /// [`DiskError::Exists`] if there is one of this path.
    fn create(&self, path: &str) -> Result<Self::File, DiskError>;

    /// True when the path belongs to a regular file or a link to one.
    fn exists(&self, path: &str) -> Result<bool, DiskError>;

    /// Calls `each` for all entries of a folder, in any order, until it returns false. The root is `""`. Names that are
    /// not UTF-8 are passed with U+FFFD in them, and cannot be opened.
    fn list(&self, folder: &str, each: &mut dyn FnMut(&str, EntryKind) -> bool) -> Result<(), DiskError>;

    /// Removes a file. Its folder stays.
    fn remove(&self, path: &str) -> Result<(), DiskError>;

    /// Gives a file another path, whose missing folders are created. A file that has that path is replaced: at each
    /// moment, also after a crash, the path belongs to either of them.
    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError>;

    /// True while the path belongs to this open file. False when the file was removed, or another one was given its path:
    /// then nobody reads what is written to it.
    fn is_current(&self, path: &str, file: &Self::File) -> Result<bool, DiskError>;

    /// Size and time of a file.
    fn facts(&self, path: &str) -> Result<FileFacts, DiskError>;

    /// Makes the names in a folder durable, and those of the folders above it.
    fn sync_folder(&self, folder: &str) -> Result<(), DiskError>;

    /// Makes everything durable that was written through this tree so far: bytes, and names of files and folders. One call
    /// for many files costs much less than a sync of each. After an error it is unknown what is durable.
    fn sync_all(&self) -> Result<(), DiskError>;
}
