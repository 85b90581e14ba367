//! A folder with everything in it as the tree of a whisper store: `model::FileTree` with real files.
//!
//! Path of a point: the store -> `graphite::whisper` -> **`RealFile::write_at`** -> the page cache -> **`Tree::sync_all`** -> the disk.
//! Not here: which file is written when, and the layout of files (`graphite`).
//! Links are followed, as operators move parts of a tree to other disks by links. Their file systems are synced too.
//! Folders are created with the first file in them, and removed with the last one.
//! Invariant: no call leaves the root by its path, and none waits for a pipe. When another folder is in the place of the root (it was moved,
//! or its file system is not mounted), nothing is created in it, and a sync fails: [`DiskError::Away`].

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use model::{DiskError, EntryKind, FileFacts, FileTree, FileVersion, FolderId, Reserved, TreeFile};

use crate::clock::Clock;
use crate::disk::{is_same, reason};

/// Most file systems other than that of the root that links of a tree may lead to. Files on further ones cannot be opened for writing,
/// because they would not be synced.
pub const FILE_SYSTEMS_MAX: usize = 64;

/// A tree of real files. A clone is the same tree.
#[derive(Clone, Debug)]
pub struct Tree {
    root: Arc<Path>,
    read_only: bool,
    opened: Arc<File>,
    unsynced: Arc<Unsynced>,
    /// When the root was last seen in its place, for reads: a query looks for many files that are not there yet.
    seen_ns: Arc<AtomicU64>,
}

/// How long a read relies on that.
const SEEN_NS: u64 = 100_000_000;

/// How often the folders of a new file are created, when others remove them at the same time.
const FOLDERS_GONE_MAX: usize = 64;

/// An open file of a [`Tree`].
#[derive(Debug)]
pub struct RealFile {
    file: File,
    read_only: bool,
    /// Its version when it was opened.
    version: Option<FileVersion>,
}

/// What the next [`Tree::sync_all`] has to sync besides the root: an open file on each other file system, by device.
#[derive(Debug, Default)]
struct Unsynced {
    others: Mutex<BTreeMap<u64, Arc<File>>>,
}

impl Tree {
    /// Opens the folder, and creates it and its parents if needed.
    ///
    /// # Errors
    /// When it cannot be created or opened, or is not a folder.
    pub fn open(root: PathBuf) -> io::Result<Tree> {
        crate::disk::create_durably(&root)?;
        Tree::at(root, false)
    }

    /// Opens a folder that exists. All changes fail with [`DiskError::Denied`].
    ///
    /// # Errors
    /// When it cannot be opened, or is not a folder.
    pub fn open_read_only(root: PathBuf) -> io::Result<Tree> {
        Tree::at(root, true)
    }

    fn at(root: PathBuf, read_only: bool) -> io::Result<Tree> {
        // An error for what is not a folder.
        fs::read_dir(&root)?;
        let opened = Arc::new(open_folder(&root)?);
        let (unsynced, seen_ns) = (Arc::default(), Arc::default());
        Ok(Tree { opened, root: root.into(), read_only, unsynced, seen_ns })
    }

    /// The path of its root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn may_change(&self) -> Result<(), DiskError> {
        if self.read_only { Err(DiskError::Denied) } else { Ok(()) }
    }

    fn check_in_place(&self) -> Result<(), DiskError> {
        if is_same(&self.root, &self.opened) { Ok(()) } else { Err(DiskError::Away) }
    }

    /// `NotFound` if the root was in its place a moment ago.
    fn not_found<T>(&self) -> Result<T, DiskError> {
        let now_ns = Clock::mono_ns();
        if now_ns.saturating_sub(self.seen_ns.load(Relaxed)) > SEEN_NS {
            self.check_in_place()?;
            self.seen_ns.store(now_ns, Relaxed);
        }
        Err(DiskError::NotFound)
    }

    /// `NotFound` only if the root is the one that was opened.
    fn reason(&self, error: io::Error) -> DiskError {
        // A link to itself, or a name that is too long for this file system: nothing is wrong with the disk.
        #[cfg(unix)]
        if matches!(error.raw_os_error(), Some(libc::ELOOP | libc::ENAMETOOLONG)) {
            return DiskError::NotAFile;
        }
        match reason(error) {
            DiskError::NotFound => self.check_in_place().err().unwrap_or(DiskError::NotFound),
            // A file where the path has a folder.
            DiskError::Away => self.check_in_place().err().unwrap_or(DiskError::NotAFile),
            other => other,
        }
    }

    fn opened(&self, opened: io::Result<File>, path: &Path, to_write: bool) -> Result<RealFile, DiskError> {
        let file = opened.map_err(|error| {
            // The system's errors for a socket or a folder are those of a disk that fails.
            let is_clear = matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound);
            if !is_clear && fs::metadata(path).is_ok_and(|found| !found.is_file()) {
                return DiskError::NotAFile;
            }
            self.reason(error)
        })?;
        let found = file.metadata().map_err(reason)?;
        if !found.is_file() {
            return Err(DiskError::NotAFile);
        }
        if to_write {
            self.unsynced.note(&found, path)?;
        }
        Ok(RealFile { file, read_only: !to_write, version: version_of(&found) })
    }

    /// The path in the system. Rejects one that could leave the root.
    fn path(&self, path: &str) -> Result<PathBuf, DiskError> {
        if path.split('/').all(is_name) { Ok(self.root.join(path)) } else { Err(DiskError::NotAFile) }
    }

    /// The same, or the root for `""`.
    fn folder(&self, path: &str) -> Result<PathBuf, DiskError> {
        if path.is_empty() { Ok(self.root.to_path_buf()) } else { self.path(path) }
    }

    /// Calls `then` with the folders above a path there. One that became empty is removed by other threads, also between the two: the folders
    /// are then created again.
    fn in_folders<R>(
        &self,
        path: &str,
        then: impl Fn() -> io::Result<R>,
    ) -> Result<io::Result<R>, DiskError> {
        let mut last = DiskError::NotFound;
        for _ in 0..FOLDERS_GONE_MAX {
            match self.create_folders(path) {
                // A folder that goes between two looks at it seems to be a file.
                Err(error @ (DiskError::NotFound | DiskError::NotAFile)) => last = error,
                Err(error) => return Err(error),
                Ok(()) => match then() {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => last = DiskError::NotFound,
                    done => return Ok(done),
                },
            }
        }
        Err(last)
    }

    /// Removes the folders above a path that are empty. Links to folders stay, and so does the root.
    fn remove_empty_folders(&self, path: &str) {
        let mut folder = path;
        while let Some((above, _name)) = folder.rsplit_once('/') {
            let Ok(in_tree) = self.path(above) else { return };
            // Windows would remove the link.
            if cfg!(windows) && !fs::symlink_metadata(&in_tree).is_ok_and(|found| found.is_dir()) {
                return;
            }
            // The system refuses it for all others, also for one in which a file was just created.
            if fs::remove_dir(in_tree).is_err() {
                return;
            }
            folder = above;
        }
    }

    /// Creates the folders above a path. Their names are durable after the next sync of the tree.
    fn create_folders(&self, path: &str) -> Result<(), DiskError> {
        self.check_in_place()?;
        let Some((folders, _name)) = path.rsplit_once('/') else { return Ok(()) };
        fs::create_dir_all(self.path(folders)?).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => DiskError::NotAFile,
            _ => self.reason(error),
        })
    }
}

/// Opening a pipe would block until a process opens its other end.
fn reader() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    options.read(true);
    options
}

fn new_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    options
}

fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..")
        && !name.contains(if cfg!(windows) { &['\0', '\\', ':'][..] } else { &['\0'][..] })
}

#[cfg(unix)]
fn open_folder(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Folders are opened with a flag of their own.
#[cfg(windows)]
fn open_folder(path: &Path) -> io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt;
    const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;
    OpenOptions::new().read(true).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(path)
}

impl Unsynced {
    /// Keeps the file open a second time. A copy of its descriptor would keep its lock, too.
    #[cfg(unix)]
    fn note(&self, found: &fs::Metadata, path: &Path) -> Result<(), DiskError> {
        use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if !others.contains_key(&found.dev()) {
            if others.len() >= FILE_SYSTEMS_MAX {
                return Err(DiskError::Denied);
            }
            let file =
                OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(reason)?;
            // Another one may have its path by now.
            if file.metadata().map_err(reason)?.dev() != found.dev() {
                return Err(DiskError::Away);
            }
            others.insert(found.dev(), Arc::new(file));
        }
        Ok(())
    }

    /// Other systems sync each file when it is closed.
    #[cfg(not(unix))]
    fn note(&self, _found: &fs::Metadata, _path: &Path) -> Result<(), DiskError> {
        Ok(())
    }

    fn files(&self) -> Vec<Arc<File>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

/// Makes everything on the file system of `file` durable.
#[cfg(target_os = "linux")]
fn sync_file_system(file: &File) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    // SAFETY: plain integers; the descriptor is borrowed for the call.
    crate::handle::checked(unsafe { libc::syncfs(file.as_raw_fd()) })?;
    Ok(())
}

/// Other systems have no call for one file system, and sync each file when it is closed.
#[cfg(not(target_os = "linux"))]
fn sync_file_system(_file: &File) -> io::Result<()> {
    Ok(())
}

#[cfg(not(target_os = "linux"))]
impl Drop for RealFile {
    fn drop(&mut self) {
        if !self.read_only {
            // There is nobody to report an error to: the next write to the file reports it.
            let _ = self.file.sync_data();
        }
    }
}

impl FileTree for Tree {
    type File = RealFile;

    fn open(&self, path: &str) -> Result<RealFile, DiskError> {
        self.may_change()?;
        let in_tree = self.path(path)?;
        self.opened(reader().write(true).open(&in_tree), &in_tree, true)
    }

    fn open_to_read(&self, path: &str) -> Result<RealFile, DiskError> {
        let in_tree = self.path(path)?;
        let opened = reader().open(&in_tree);
        if let Err(error) = &opened
            && error.kind() == io::ErrorKind::NotFound
        {
            return self.not_found();
        }
        self.opened(opened, &in_tree, false)
    }

    fn create(&self, path: &str) -> Result<RealFile, DiskError> {
        self.may_change()?;
        let in_tree = self.path(path)?;
        match new_file().open(&in_tree) {
            // The usual case is a name whose folders are there. Creating them looks whether the root is in its place.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let created = self.in_folders(path, || new_file().open(&in_tree))?;
                self.opened(created, &in_tree, true)
            }
            created => self.opened(created, &in_tree, true),
        }
    }

    fn exists(&self, path: &str) -> Result<bool, DiskError> {
        match fs::metadata(self.path(path)?) {
            Ok(found) => Ok(found.is_file()),
            Err(error) => match self.reason(error) {
                DiskError::NotFound | DiskError::NotAFile => Ok(false),
                other => Err(other),
            },
        }
    }

    fn list(&self, folder: &str, each: &mut dyn FnMut(&str, EntryKind) -> bool) -> Result<(), DiskError> {
        if folder.is_empty() {
            self.check_in_place()?;
        }
        for entry in fs::read_dir(self.folder(folder)?).map_err(|error| self.reason(error))? {
            let entry = entry.map_err(reason)?;
            let kind = match entry.file_type() {
                Ok(kind) if kind.is_file() => EntryKind::File,
                Ok(kind) if kind.is_dir() => EntryKind::Folder,
                _ => match fs::metadata(entry.path()) {
                    Ok(found) if found.is_file() => EntryKind::File,
                    Ok(found) if found.is_dir() => link_to(&found),
                    _ => EntryKind::Other,
                },
            };
            if !each(&entry.file_name().to_string_lossy(), kind) {
                break;
            }
        }
        Ok(())
    }

    fn remove(&self, path: &str) -> Result<(), DiskError> {
        self.may_change()?;
        fs::remove_file(self.path(path)?).map_err(|error| self.reason(error))?;
        self.remove_empty_folders(path);
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        self.may_change()?;
        let (old, new) = (self.path(from)?, self.path(to)?);
        fs::metadata(&old).map_err(|error| self.reason(error))?;
        let renamed = self.in_folders(to, || fs::rename(&old, &new));
        let renamed = renamed.and_then(|done| done.map_err(|error| self.reason(error)));
        self.remove_empty_folders(if renamed.is_ok() { from } else { to });
        renamed
    }

    fn is_current(&self, path: &str, file: &RealFile) -> Result<bool, DiskError> {
        Ok(is_same(&self.path(path)?, &file.file))
    }

    fn facts(&self, path: &str) -> Result<FileFacts, DiskError> {
        let found = fs::metadata(self.path(path)?).map_err(|error| self.reason(error))?;
        Ok(facts_of(&found))
    }

    fn sync_folder(&self, folder: &str) -> Result<(), DiskError> {
        let mut path = Some(folder);
        while let Some(folder) = path {
            #[cfg(unix)]
            open_folder(&self.folder(folder)?)
                .and_then(|folder| folder.sync_all())
                .map_err(|error| self.reason(error))?;
            path = match folder.rsplit_once('/') {
                Some((above, _name)) => Some(above),
                None => (!folder.is_empty()).then_some(""),
            };
        }
        Ok(())
    }

    fn sync_all(&self) -> Result<(), DiskError> {
        self.may_change()?;
        for file in self.unsynced.files() {
            sync_file_system(&file).map_err(reason)?;
        }
        sync_file_system(&self.opened).map_err(reason)?;
        self.check_in_place()
    }
}

#[cfg(unix)]
fn link_to(folder: &fs::Metadata) -> EntryKind {
    use std::os::unix::fs::MetadataExt as _;
    EntryKind::FolderLink(FolderId(folder.dev(), folder.ino()))
}

/// Nothing identifies the folder: links are not followed.
#[cfg(not(unix))]
fn link_to(_: &fs::Metadata) -> EntryKind {
    EntryKind::Other
}

#[cfg(unix)]
fn facts_of(found: &fs::Metadata) -> FileFacts {
    use std::os::unix::fs::MetadataExt;
    FileFacts { bytes: found.len(), disk_bytes: found.blocks().saturating_mul(512), modified: found.mtime() }
}

#[cfg(not(unix))]
fn facts_of(found: &fs::Metadata) -> FileFacts {
    let since = found.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    let modified = since.map_or(0, |since| since.as_secs() as i64);
    FileFacts { bytes: found.len(), disk_bytes: found.len(), modified }
}

/// Linux from 6.13 on stamps each change after a look at the time with a time of its own. Others count in ticks of some milliseconds.
#[cfg(unix)]
fn version_of(found: &fs::Metadata) -> Option<FileVersion> {
    use std::os::unix::fs::MetadataExt;
    // A file system whose times have whole milliseconds, or seconds, is not exact enough.
    let is_exact = found.ctime_nsec() % 1_000_000 != 0;
    let changed = found.ctime().wrapping_mul(1_000_000_000).wrapping_add(found.ctime_nsec());
    is_exact.then_some(FileVersion { file: found.ino(), changed })
}

#[cfg(not(unix))]
fn version_of(_: &fs::Metadata) -> Option<FileVersion> {
    None
}

impl TreeFile for RealFile {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DiskError> {
        crate::read_exact_at(&self.file, offset, bytes).map_err(reason)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        if self.read_only {
            return Err(DiskError::Denied);
        }
        crate::write_parts_at(&self.file, offset, &[bytes]).map_err(reason)
    }

    fn size(&self) -> Result<u64, DiskError> {
        Ok(self.file.metadata().map_err(reason)?.len())
    }

    fn version(&self) -> Result<Option<FileVersion>, DiskError> {
        Ok(version_of(&self.file.metadata().map_err(reason)?))
    }

    fn opened_version(&self) -> Result<Option<FileVersion>, DiskError> {
        Ok(self.version)
    }

    fn extend_new(&self, bytes: u64) -> Result<(), DiskError> {
        if self.read_only {
            return Err(DiskError::Denied);
        }
        self.file.set_len(bytes).map_err(reason)
    }

    fn extend(&self, bytes: u64) -> Result<(), DiskError> {
        if self.read_only {
            return Err(DiskError::Denied);
        }
        if self.size()? < bytes {
            self.file.set_len(bytes).map_err(reason)?;
        }
        Ok(())
    }

    fn allocate(&self, bytes: u64) -> Result<Reserved, DiskError> {
        if self.read_only {
            return Err(DiskError::Denied);
        }
        let size = self.size()?;
        let reserved = crate::reserve(&self.file, 0, bytes).map_err(reason)?;
        if size < bytes {
            self.file.set_len(bytes).map_err(reason)?;
        }
        Ok(reserved)
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.file.sync_data().map_err(reason)
    }

    fn lock(&self) -> Result<(), DiskError> {
        self.file.lock().map_err(reason)
    }

    fn unlock(&self) -> Result<(), DiskError> {
        self.file.unlock().map_err(reason)
    }
}

#[cfg(all(test, unix))]
mod tests;
