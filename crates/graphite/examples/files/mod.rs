//! Real files for examples, on unix. Paths are those of the system: nothing here is safe against hostile ones.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use model::{DiskError, EntryKind, FileFacts, FileTree, Reserved, TreeFile};

/// A folder with all files in it.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    root: PathBuf,
}

/// An open file.
#[derive(Debug)]
pub(crate) struct RealFile {
    file: File,
}

impl Files {
    /// The current folder; absolute paths work too.
    pub(crate) fn here() -> Files {
        Files { root: PathBuf::new() }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }
}

fn failed(error: io::Error) -> DiskError {
    match error.kind() {
        io::ErrorKind::NotFound => DiskError::NotFound,
        io::ErrorKind::AlreadyExists => DiskError::Exists,
        io::ErrorKind::StorageFull => DiskError::Full,
        io::ErrorKind::UnexpectedEof => DiskError::Short,
        io::ErrorKind::PermissionDenied => DiskError::Denied,
        _ => DiskError::Io { code: error.raw_os_error().unwrap_or(0) },
    }
}

fn opened(path: &Path, options: &mut OpenOptions) -> Result<RealFile, DiskError> {
    Ok(RealFile { file: options.read(true).open(path).map_err(failed)? })
}

impl FileTree for Files {
    type File = RealFile;

    fn open(&self, path: &str) -> Result<RealFile, DiskError> {
        opened(&self.path(path), OpenOptions::new().write(true))
    }

    fn open_to_read(&self, path: &str) -> Result<RealFile, DiskError> {
        opened(&self.path(path), &mut OpenOptions::new())
    }

    fn create(&self, path: &str) -> Result<RealFile, DiskError> {
        let path = self.path(path);
        let first = opened(&path, OpenOptions::new().write(true).create_new(true));
        match (first, path.parent()) {
            (Err(DiskError::NotFound), Some(folder)) => {
                fs::create_dir_all(folder).map_err(failed)?;
                opened(&path, OpenOptions::new().write(true).create_new(true))
            }
            (first, _) => first,
        }
    }

    fn exists(&self, path: &str) -> Result<bool, DiskError> {
        Ok(self.path(path).is_file())
    }

    fn list(&self, folder: &str, each: &mut dyn FnMut(&str, EntryKind) -> bool) -> Result<(), DiskError> {
        for entry in fs::read_dir(self.path(folder)).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let kind = match entry.path() {
                path if path.is_dir() => EntryKind::Folder,
                path if path.is_file() => EntryKind::File,
                _ => EntryKind::Other,
            };
            if !each(&entry.file_name().to_string_lossy(), kind) {
                break;
            }
        }
        Ok(())
    }

    fn remove(&self, path: &str) -> Result<(), DiskError> {
        fs::remove_file(self.path(path)).map_err(failed)
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        fs::rename(self.path(from), self.path(to)).map_err(failed)
    }

    fn is_current(&self, path: &str, file: &RealFile) -> Result<bool, DiskError> {
        let (here, opened) =
            (fs::metadata(self.path(path)).map_err(failed)?, file.file.metadata().map_err(failed)?);
        Ok((here.dev(), here.ino()) == (opened.dev(), opened.ino()))
    }

    fn facts(&self, path: &str) -> Result<FileFacts, DiskError> {
        let facts = fs::metadata(self.path(path)).map_err(failed)?;
        Ok(FileFacts { bytes: facts.len(), disk_bytes: facts.blocks() * 512, modified: facts.mtime() })
    }

    fn sync_folder(&self, folder: &str) -> Result<(), DiskError> {
        File::open(self.path(folder)).and_then(|folder| folder.sync_all()).map_err(failed)
    }

    /// Only the root: examples do not survive a power loss.
    fn sync_all(&self) -> Result<(), DiskError> {
        self.sync_folder("")
    }
}

impl TreeFile for RealFile {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DiskError> {
        self.file.read_exact_at(bytes, offset).map_err(failed)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.file.write_all_at(bytes, offset).map_err(failed)
    }

    fn size(&self) -> Result<u64, DiskError> {
        Ok(self.file.metadata().map_err(failed)?.len())
    }

    fn extend(&self, bytes: u64) -> Result<(), DiskError> {
        self.file.set_len(bytes).map_err(failed)
    }

    fn allocate(&self, bytes: u64) -> Result<Reserved, DiskError> {
        self.file.set_len(bytes).map_err(failed)?;
        Ok(Reserved::FreeNow)
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.file.sync_data().map_err(failed)
    }

    fn lock(&self) -> Result<(), DiskError> {
        self.file.lock().map_err(failed)
    }

    fn unlock(&self) -> Result<(), DiskError> {
        self.file.unlock().map_err(failed)
    }
}
