//! A directory as the disk of a queue: `model::Disk` with real files.
//!
//! Path of a packet: `deliver::disk_queue::DiskQueue::append` -> **`Folder::write_at`** -> the page cache, and with
//! the next sync the disk.
//! Not here: the layout of files (`deliver`), locking of the directory (`data_dir`), when to sync
//! (`daemon::queues::syncs`).
//! Invariant: the directory has one owner, who holds the lock of the data directory. Checking that a name is free and
//! using it are therefore separate calls. While the directory is missing or another one is in its place (it was
//! moved, or its file system is not mounted), nothing is created, reported missing or removed there:
//! [`DiskError::Away`]. A directory that was deleted ([`DiskError::Deleted`]) is created again with the next file, if
//! its data directory is still the locked one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use model::{Disk, DiskError, Reserved};

/// One directory. A clone refers to the same one.
#[derive(Clone, Debug)]
pub struct Folder {
    path: Arc<Path>,
    read_only: bool,
    /// Kept open for syncing; replaced when the directory was created again. Not on systems without directory handles.
    #[cfg(unix)]
    handle: Arc<RwLock<Arc<File>>>,
    /// Its data directory, open and with its path: nothing is created in another one.
    root: Option<(Arc<Path>, Arc<File>)>,
}

impl Folder {
    /// Opens the directory `path`, creating it and its parents if needed.
    ///
    /// # Errors
    /// When it cannot be created, is not a directory, or may not be read or written.
    pub fn open(path: PathBuf) -> io::Result<Folder> {
        create_durably(&path)?;
        fs::read_dir(&path)?;
        Ok(Folder {
            #[cfg(unix)]
            handle: Arc::new(RwLock::new(Arc::new(File::open(&path)?))),
            root: None,
            read_only: false,
            path: path.into(),
        })
    }

    /// The same in our own data directory: if the directory is deleted later, it is created again there.
    ///
    /// # Errors
    /// The same.
    pub fn open_in(root: &Path, opened_root: Arc<File>, path: PathBuf) -> io::Result<Folder> {
        Ok(Folder { root: Some((root.into(), opened_root)), ..Folder::open(path)? })
    }

    /// Opens the directory `path` read-only, for commands that inspect a directory that they do not own.
    ///
    /// # Errors
    /// When it is missing or may not be read.
    pub fn open_read_only(path: PathBuf) -> io::Result<Folder> {
        fs::read_dir(&path)?;
        Ok(Folder {
            #[cfg(unix)]
            handle: Arc::new(RwLock::new(Arc::new(File::open(&path)?))),
            root: None,
            read_only: true,
            path: path.into(),
        })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn may_change(&self) -> Result<(), DiskError> {
        if self.read_only { Err(DiskError::Denied) } else { Ok(()) }
    }

    fn open_with(&self, name: &str, options: &mut OpenOptions) -> Result<Arc<File>, DiskError> {
        // Opening a pipe of this name would block until a process opens its other end.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::custom_flags(options, libc::O_NONBLOCK);
        let path = self.path.join(name);
        let file = options.read(true).write(!self.read_only).open(&path).map_err(|error| {
            // The system's errors for a socket or a directory are those of a disk that fails.
            let is_other = fs::metadata(&path).is_ok_and(|found| !found.is_file());
            if is_other && error.kind() != io::ErrorKind::AlreadyExists {
                return DiskError::NotAFile;
            }
            self.reason(error)
        })?;
        if !file.metadata().map_err(reason)?.is_file() {
            return Err(DiskError::NotAFile);
        }
        Ok(Arc::new(file))
    }

    /// Classifies an error for the queue. `NotFound` only if the directory is the one that was opened.
    fn reason(&self, error: io::Error) -> DiskError {
        match reason(error) {
            DiskError::NotFound => self.check_in_place().err().unwrap_or(DiskError::NotFound),
            other => other,
        }
    }

    #[cfg(unix)]
    fn opened(&self) -> Arc<File> {
        Arc::clone(&self.handle.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// An error when the directory at the path is not the one that was opened.
    #[cfg(unix)]
    fn check_in_place(&self) -> Result<(), DiskError> {
        use std::os::unix::fs::MetadataExt;
        let here = match fs::metadata(&self.path) {
            Ok(here) => Some(here),
            Err(error) if reason_of(&error) == DiskError::NotFound => None,
            Err(error) => return Err(reason(error)),
        };
        let opened = self.opened().metadata().map_err(reason)?;
        match here {
            Some(here) if (here.dev(), here.ino()) == (opened.dev(), opened.ino()) => Ok(()),
            // Another directory is in its place, such as a restored copy.
            Some(_) if !is_empty(&self.path) => Err(DiskError::Away),
            _ if opened.nlink() == 0 => Err(DiskError::Deleted),
            _ => Err(DiskError::Away),
        }
    }

    /// Creates a deleted directory again, if its data directory is still the locked one.
    #[cfg(unix)]
    fn create_again(&self) -> Result<(), DiskError> {
        let ours = self.root.as_ref().is_some_and(|(path, opened)| is_same(path, opened));
        if !ours || self.read_only {
            return Err(DiskError::Deleted);
        }
        create_durably(&self.path).map_err(reason)?;
        let opened = File::open(&self.path).map_err(reason)?;
        *self.handle.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(opened);
        Ok(())
    }

    #[cfg(not(unix))]
    fn create_again(&self) -> Result<(), DiskError> {
        Err(DiskError::Deleted)
    }

    /// An error when the file was deleted.
    #[cfg(unix)]
    fn has_name(file: &File) -> Result<(), DiskError> {
        use std::os::unix::fs::MetadataExt;
        let links = file.metadata().map_err(reason)?.nlink();
        if links > 0 { Ok(()) } else { Err(DiskError::Deleted) }
    }

    /// Other systems keep the names of open files.
    #[cfg(not(unix))]
    fn has_name(_file: &File) -> Result<(), DiskError> {
        Ok(())
    }

    /// Other systems do not identify directories.
    #[cfg(not(unix))]
    fn check_in_place(&self) -> Result<(), DiskError> {
        if self.path.is_dir() { Ok(()) } else { Err(DiskError::Away) }
    }

    fn may_change_names(&self) -> Result<(), DiskError> {
        self.may_change()?;
        self.check_in_place()
    }
}

/// True when the directory at `path` is the open one.
#[cfg(unix)]
pub fn is_same(path: &Path, opened: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let of = |about: &fs::Metadata| (about.dev(), about.ino());
    matches!((fs::metadata(path), opened.metadata()), (Ok(here), Ok(opened)) if of(&here) == of(&opened))
}

/// Other systems do not identify directories; nor do they allow an open one to be removed.
#[cfg(not(unix))]
pub fn is_same(path: &Path, _opened: &File) -> bool {
    path.exists()
}

#[cfg(unix)]
fn is_empty(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// Creates a directory and its parents, and syncs each name, so that synced files in it can be found after a power
/// loss.
pub(crate) fn create_durably(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Ok(()) => sync_parent(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).ok_or(error)?;
            create_durably(parent)?;
            fs::create_dir(path)?;
            sync_parent(path)
        }
        Err(error) => Err(error),
    }
}

/// Replaces the file `name` by one with these bytes, or creates it. After a power loss there is the complete old or the
/// complete new file.
///
/// # Errors
/// When it cannot be written, synced or renamed. The old file is still there then, except after a failed directory
/// sync.
pub fn replace_durably(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let half = folder.join(format!("{name}.new"));
    let mut file = File::create(&half)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    let whole = folder.join(name);
    fs::rename(&half, &whole)?;
    sync_parent(&whole)
}

#[cfg(unix)]
fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

/// Other systems make names durable by themselves.
#[cfg(not(unix))]
fn sync_parent(_path: &Path) -> io::Result<()> {
    Ok(())
}

impl Disk for Folder {
    type File = Arc<File>;

    /// Names that are not UTF-8 are skipped: no queue creates them.
    fn list(&self) -> Result<Vec<String>, DiskError> {
        let mut names = Vec::new();
        self.check_in_place()?;
        for entry in fs::read_dir(&*self.path).map_err(|error| self.reason(error))? {
            let entry = entry.map_err(reason)?;
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if let Ok(name) = entry.file_name().into_string()
                && !is_folder
            {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> Result<Arc<File>, DiskError> {
        match self.may_change_names() {
            Err(DiskError::Deleted) => self.create_again()?,
            may => may?,
        }
        self.open_with(name, OpenOptions::new().create_new(true))
    }

    fn open(&self, name: &str) -> Result<Arc<File>, DiskError> {
        self.open_with(name, &mut OpenOptions::new())
    }

    fn write_at(&self, file: &Arc<File>, offset: u64, parts: &[&[u8]]) -> Result<(), DiskError> {
        self.may_change()?;
        crate::write_parts_at(file, offset, parts).map_err(reason)
    }

    fn reserve(&self, file: &Arc<File>, offset: u64, bytes: u64) -> Result<Reserved, DiskError> {
        self.may_change()?;
        crate::reserve(file, offset, bytes).map_err(reason)
    }

    fn read_at(&self, file: &Arc<File>, offset: u64, bytes: &mut [u8]) -> Result<(), DiskError> {
        crate::read_exact_at(file, offset, bytes).map_err(reason)
    }

    fn size(&self, file: &Arc<File>) -> Result<u64, DiskError> {
        file.metadata().map(|metadata| metadata.len()).map_err(reason)
    }

    fn size_of(&self, name: &str) -> Result<u64, DiskError> {
        fs::metadata(self.path.join(name)).map(|metadata| metadata.len()).map_err(|error| self.reason(error))
    }

    /// Syncs the file's bytes, and its size as far as it is needed to read them (fdatasync). The system also reports
    /// success for a deleted file.
    fn sync(&self, file: &Arc<File>) -> Result<(), DiskError> {
        file.sync_data().map_err(reason)?;
        Folder::has_name(file)?;
        self.check_in_place()
    }

    fn sync_directory(&self) -> Result<(), DiskError> {
        #[cfg(unix)]
        self.opened().sync_all().map_err(reason)?;
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        self.may_change_names()?;
        let to = self.path.join(to);
        if fs::symlink_metadata(&to).is_ok() {
            return Err(DiskError::Exists);
        }
        fs::rename(self.path.join(from), to).map_err(|error| self.reason(error))
    }

    fn replace(&self, from: &str, to: &str) -> Result<(), DiskError> {
        self.may_change_names()?;
        fs::rename(self.path.join(from), self.path.join(to)).map_err(|error| self.reason(error))
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        self.may_change_names()?;
        fs::remove_file(self.path.join(name)).map_err(|error| self.reason(error))
    }
}

/// Classifies an error for the queue, without checking the directory.
pub fn reason(error: io::Error) -> DiskError {
    reason_of(&error)
}

fn reason_of(error: &io::Error) -> DiskError {
    use io::ErrorKind as Kind;
    match error.kind() {
        Kind::NotFound => DiskError::NotFound,
        Kind::AlreadyExists => DiskError::Exists,
        Kind::StorageFull | Kind::QuotaExceeded => DiskError::Full,
        Kind::UnexpectedEof => DiskError::Short,
        Kind::PermissionDenied | Kind::ReadOnlyFilesystem => DiskError::Denied,
        Kind::NotADirectory | Kind::StaleNetworkFileHandle => DiskError::Away,
        _ => {
            let code = error.raw_os_error().unwrap_or(0);
            if crate::is_scarce(error) { DiskError::Scarce { code } } else { DiskError::Io { code } }
        }
    }
}

#[cfg(test)]
mod tests {
    use deliver::disk_queue::{DiskQueue, DiskQueuePlan, Promise};
    use deliver::queue::{Appended, Block, Queue};
    use model::{CopyOutcome, Now, OutputAccount};

    use super::*;

    fn folder() -> (tempfile::TempDir, Folder) {
        let held = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(held.path().join("a/b")).expect("made with its parents");
        (held, folder)
    }

    #[test]
    fn files_support_all_queue_operations() {
        let (_held, disk) = folder();
        let file = disk.create("one").expect("a new file");
        assert_eq!(disk.create("one").err(), Some(DiskError::Exists));
        assert_eq!(disk.open("two").err(), Some(DiskError::NotFound));
        disk.write_at(&file, 3, &[b"ab", b"", b"cdef"]).expect("written past the end");
        assert_eq!(disk.size(&file), Ok(9));
        let mut bytes = [9; 9];
        disk.read_at(&file, 0, &mut bytes).expect("all of it");
        assert_eq!(&bytes, b"\0\0\0abcdef");
        assert_eq!(disk.read_at(&file, 4, &mut bytes), Err(DiskError::Short));
        assert_eq!((disk.sync(&file), disk.sync_directory()), (Ok(()), Ok(())));
        disk.create("two").expect("another file");
        assert_eq!(disk.rename("one", "two"), Err(DiskError::Exists));
        disk.rename("one", "three").expect("a free name");
        assert_eq!(disk.remove("one"), Err(DiskError::NotFound));
        disk.remove("two").expect("it is there");
        fs::create_dir(disk.path().join("folder")).expect("a folder inside");
        assert_eq!(disk.list(), Ok(vec!["three".to_owned()]));
        // More parts, and more bytes, than one call accepts.
        let part = vec![7u8; 300];
        let parts = vec![&*part; 3000];
        disk.write_at(&file, 0, &parts).expect("written");
        assert_eq!(disk.size(&file), Ok(900_000));
    }

    #[test]
    fn replacing_a_file_leaves_no_temporary_file() {
        let held = tempfile::tempdir().expect("a folder");
        for bytes in [&b"one"[..], b"", b"two"] {
            replace_durably(held.path(), "note", bytes).expect("written");
            assert_eq!(fs::read(held.path().join("note")).expect("it is there"), bytes);
        }
        let names = fs::read_dir(held.path()).expect("it lists").count();
        assert_eq!(names, 1);
    }

    #[test]
    fn a_read_only_folder_rejects_changes() {
        let (_held, disk) = folder();
        let file = disk.create("one").expect("a new file");
        disk.write_at(&file, 0, &[b"abc"]).expect("written");
        let looking = Folder::open_read_only(disk.path().to_owned()).expect("it is there");
        assert_eq!(looking.list(), Ok(vec!["one".to_owned()]));
        let file = looking.open("one").expect("it may be read");
        let mut bytes = [0; 3];
        assert_eq!((looking.read_at(&file, 0, &mut bytes), &bytes), (Ok(()), b"abc"));
        assert_eq!(looking.write_at(&file, 0, &[b"x"]), Err(DiskError::Denied));
        assert_eq!(looking.create("two").err(), Some(DiskError::Denied));
        assert_eq!(looking.rename("one", "two"), Err(DiskError::Denied));
        assert_eq!(looking.remove("one"), Err(DiskError::Denied));
        assert!(Folder::open_read_only(disk.path().join("nothing")).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn pipes_devices_sockets_and_directories_are_rejected_without_blocking() {
        let (_held, disk) = folder();
        let made = std::process::Command::new("mkfifo").arg(disk.path().join("pipe")).status();
        assert!(made.is_ok_and(|status| status.success()), "there is mkfifo");
        std::os::unix::fs::symlink("/dev/zero", disk.path().join("device")).expect("made");
        let looking = Folder::open_read_only(disk.path().to_owned()).expect("it is there");
        let _socket = std::os::unix::net::UnixListener::bind(disk.path().join("socket")).expect("made");
        fs::create_dir(disk.path().join("directory")).expect("made");
        for name in ["pipe", "device", "socket", "directory"] {
            for disk in [&disk, &looking] {
                assert_eq!(disk.open(name).err(), Some(DiskError::NotAFile), "{name}");
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_missing_or_replaced_folder_is_not_reported_as_empty() {
        let (held, disk) = folder();
        let file = disk.create("one").expect("a new file");
        let away = held.path().join("away");
        fs::rename(disk.path(), &away).expect("moved");
        for another in [false, true] {
            if another {
                fs::create_dir(disk.path()).expect("the mount point");
            }
            assert_eq!(disk.open("one").err(), Some(DiskError::Away));
            assert_eq!(disk.create("two").err(), Some(DiskError::Away));
            assert_eq!(disk.list(), Err(DiskError::Away));
            let changed = [disk.rename("one", "two"), disk.replace("one", "two"), disk.remove("one")];
            assert_eq!(changed, [Err(DiskError::Away); 3]);
            let (written, synced) = (disk.write_at(&file, 0, &[b"a"]), disk.sync(&file));
            assert_eq!(
                (written, synced),
                (Ok(()), Err(DiskError::Away)),
                "the open file is not at its path any more"
            );
        }
        fs::remove_dir(disk.path()).expect("nothing was made in it");
        fs::rename(&away, disk.path()).expect("moved back");
        assert_eq!(disk.list(), Ok(vec!["one".to_owned()]));
        assert_eq!(disk.open("two").err(), Some(DiskError::NotFound), "it is not there");
    }

    #[cfg(unix)]
    #[test]
    fn a_deleted_file_fails_to_sync_and_a_deleted_folder_is_created_again_in_our_data_directory() {
        let (_held, disk) = folder();
        let file = disk.create("one").expect("a new file");
        fs::remove_file(disk.path().join("one")).expect("it is there");
        assert_eq!(disk.sync(&file), Err(DiskError::Deleted));
        assert_eq!((disk.list(), disk.open("one").err()), (Ok(Vec::new()), Some(DiskError::NotFound)));
        for (ours, another) in [(false, false), (true, false), (true, true)] {
            let held = tempfile::tempdir().expect("a folder");
            let root = held.path().join("data");
            fs::create_dir(&root).expect("a folder");
            let opened = Arc::new(File::open(&root).expect("it is there"));
            let disk = Folder::open_in(&root, opened, root.join("queues/o")).expect("made");
            let file = disk.create("one").expect("a new file");
            fs::remove_dir_all(if ours { root.join("queues") } else { root.clone() }).expect("it is there");
            if !ours {
                // Not our data directory.
                fs::create_dir(&root).expect("a folder");
            }
            assert_eq!((disk.list(), disk.sync(&file)), (Err(DiskError::Deleted), Err(DiskError::Deleted)));
            if another {
                fs::create_dir_all(disk.path()).expect("a folder");
                fs::write(disk.path().join("one"), "a copy that was put back").expect("written");
                assert_eq!(disk.create("two").err(), Some(DiskError::Away));
                continue;
            }
            let made = disk.clone().create("two").map(|file| disk.sync(&file));
            assert_eq!(made.err(), (!ours).then_some(DiskError::Deleted));
            assert_eq!(disk.list().ok(), ours.then(|| vec!["two".to_owned()]));
            assert!(ours || fs::read_dir(&root).is_ok_and(|mut entries| entries.next().is_none()));
        }
    }

    #[test]
    fn system_errors_are_classified_for_queues() {
        let of = |kind: io::ErrorKind| reason(kind.into());
        assert_eq!(of(io::ErrorKind::StorageFull), DiskError::Full);
        assert_eq!(of(io::ErrorKind::QuotaExceeded), DiskError::Full);
        assert_eq!(of(io::ErrorKind::UnexpectedEof), DiskError::Short);
        assert_eq!(of(io::ErrorKind::ReadOnlyFilesystem), DiskError::Denied);
        assert_eq!(of(io::ErrorKind::Other), DiskError::Io { code: 0 });
        #[cfg(target_os = "linux")]
        for (code, want) in [
            (libc::ENOSPC, DiskError::Full),
            (libc::EDQUOT, DiskError::Full),
            (libc::EACCES, DiskError::Denied),
            (libc::EROFS, DiskError::Denied),
            (libc::EMFILE, DiskError::Scarce { code: libc::EMFILE }),
            (libc::ENFILE, DiskError::Scarce { code: libc::ENFILE }),
            (libc::ENOMEM, DiskError::Scarce { code: libc::ENOMEM }),
            (libc::EAGAIN, DiskError::Scarce { code: libc::EAGAIN }),
            (libc::EINTR, DiskError::Scarce { code: libc::EINTR }),
            (libc::ESTALE, DiskError::Away),
            (libc::ENOTDIR, DiskError::Away),
            (libc::EIO, DiskError::Io { code: libc::EIO }),
        ] {
            assert_eq!(reason(io::Error::from_raw_os_error(code)), want);
        }
        #[cfg(target_os = "linux")]
        {
            let full = File::options().write(true).open("/dev/full").expect("the system has it");
            let error = crate::write_parts_at(&full, 0, &[b"x"]).expect_err("it is always full");
            assert_eq!(reason(error), DiskError::Full);
        }
    }

    fn at(s: u64) -> Now {
        Now { mono_ns: s * model::SECOND_NS, wall_ns: (1_000_000_000 + s) * model::SECOND_NS }
    }

    fn open(disk: &Folder) -> (DiskQueue<Folder>, u64) {
        let plan = DiskQueuePlan { segment_bytes: 4096, ..DiskQueuePlan::default() };
        let account = Arc::<OutputAccount>::default();
        let opened = DiskQueue::open(disk.clone(), plan, account, 7, at(100));
        let (queue, found) = opened.expect("a queue opens with any content");
        (queue, found.copies_queued)
    }

    #[test]
    fn a_queue_on_real_files_returns_its_records() {
        let (_held, disk) = folder();
        let (mut queue, waiting) = open(&disk);
        assert_eq!(waiting, 0);
        let line = |number: usize| format!("series.{number} {} 1\n", "9".repeat(100)).into_bytes();
        for number in 0..200 {
            let first = queue.accepted_up_to();
            let appended = queue.append(Block::lines(line(number), 1, 0), at(101));
            assert_eq!((appended, queue.promise(first)), (Appended::Kept, Promise::Accepted));
        }
        let job = queue.begin_sync(at(102)).expect("something to sync");
        let synced = queue.on_synced(job.perform(&disk));
        assert_eq!((synced.safe_up_to, synced.error), (queue.accepted_up_to(), None));
        for number in 0..50 {
            let entry = queue.pop(at(103)).expect("records are queued");
            assert_eq!(*entry.block().bytes, *line(number));
            entry.settle(CopyOutcome::Delivered);
        }
        let job = queue.begin_last_sync().expect("the cursor has moved");
        assert_eq!(queue.on_synced(job.perform(&disk)).error, None);
        drop(queue);
        let (mut queue, waiting) = open(&disk);
        assert_eq!(waiting, 150);
        let entries: Vec<_> = (50..200).map(|_| queue.pop(at(104)).expect("records are queued")).collect();
        for (entry, number) in entries.iter().zip(50..200) {
            assert_eq!(*entry.block().bytes, *line(number));
        }
        assert!(queue.is_empty());
    }
}
