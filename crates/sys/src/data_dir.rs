//! The data directory: its owner and its contents.
//!
//! | name | contents |
//! |---|---|
//! | `lock` | locked by the daemon that owns the directory; its text names that process. The directory itself is
//! locked, too, because the file may be deleted |
//! | `queues/NAME/` | the queue on disk of output NAME |
//! | `known-queues` | the names of all folders in `queues` so far (`staunch::daemon::known_queues`) |
//! | `state/` | the state of aggregations |
//! | `last-flush` | labels for the next start (`staunch::daemon::handover`) |
//!
//! Only a daemon that keeps data there locks the directory. Daemons that write nothing may share it. Not here: the
//! contents of queues (`deliver::disk_queue`), opening queues (`staunch::daemon::queues`), which plans need the
//! directory (`staunch::daemon::kept`).

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The locked file.
pub const LOCK_FILE: &str = "lock";

/// The folder of queues.
const QUEUES: &str = "queues";

/// The folder of states.
const STATE: &str = "state";

/// Number of attempts to lock, and the pause between them.
const LOCK_TRIES: u32 = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// The pause between attempts while the predecessor is ending.
const LOCK_LATER_PAUSE: Duration = Duration::from_millis(100);

/// The target of log lines, for filters.
const LOG_TARGET: &str = "staunch::daemon::data_dir";

/// Longest text of a lock file that is read.
const HOLDER_BYTES_MAX: u64 = 256;

/// The directory, owned by this process until this value is dropped or the process ends.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    lock: File,
    /// The directory, open and locked. Some systems and file systems cannot open or lock a directory; then only the
    /// file is locked.
    opened: Option<Arc<File>>,
}

/// Why this process cannot own the directory.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// Another process owns it.
    #[error(
        "the data directory {} is in use by another daemon ({holder}): two would write the same files\n  \
         hint: stop that one, or give this one a `data_dir` of its own",
        path.display()
    )]
    Held {
        /// The directory.
        path: PathBuf,
        /// The owner, according to the lock file.
        holder: String,
    },
    /// It cannot be created, or its lock cannot be opened.
    #[error(
        "cannot use the data directory {}: {cause}\n  hint: make it writable for this user, or set `data_dir`",
        path.display()
    )]
    Unusable {
        /// The directory.
        path: PathBuf,
        /// The cause. It is in the message before the hint; a `source` would be shown after it.
        cause: io::Error,
    },
}

impl DataDir {
    /// Locks the directory `path` for this process, and creates it if needed. The lock file contains `http`, for the
    /// message of a process that finds the directory locked.
    ///
    /// The lock ends with the process, so a file that is left behind does no harm. Child processes do not inherit it.
    ///
    /// # Errors
    /// When another process owns it, or it cannot be used.
    pub fn lock(path: &Path, http: Option<SocketAddr>) -> Result<DataDir, DataDirError> {
        let unusable = |cause| DataDirError::Unusable { path: path.to_owned(), cause };
        fs::create_dir_all(path).map_err(unusable)?;
        let file = path.join(LOCK_FILE);
        let mut options = OpenOptions::new();
        let lock =
            options.read(true).write(true).create(true).truncate(false).open(file).map_err(unusable)?;
        match try_lock(&lock) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(DataDirError::Held { path: path.to_owned(), holder: holder(&lock) });
            }
            Err(TryLockError::Error(cause)) => return Err(unusable(cause)),
        }
        let opened = File::open(path).ok().map(Arc::new);
        let locked = opened.as_ref().map(|opened| try_lock(opened));
        if let Some(Err(TryLockError::WouldBlock)) = locked {
            // The locked file was deleted.
            return Err(DataDirError::Held {
                path: path.to_owned(),
                holder: "its lock was deleted".to_owned(),
            });
        }
        if let Err(error) = write_holder(&mut &lock, http) {
            // The disk is full, perhaps with queued data.
            tracing::warn!(target: LOG_TARGET, "cannot write the owner of the data directory {}: {error}", path.display());
        }
        Ok(DataDir { path: path.to_owned(), lock, opened })
    }

    /// The directory, with the lock of the predecessor.
    pub fn inherit(path: &Path, lock: File) -> DataDir {
        let opened = File::open(path).ok().map(Arc::new);
        if let Some(opened) = opened.as_ref().filter(|opened| opened.try_lock().is_err()) {
            lock_later(Arc::downgrade(opened));
        }
        DataDir { path: path.to_owned(), lock, opened }
    }

    /// Writes the owner into the lock file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn sign(&self, http: Option<SocketAddr>) -> io::Result<()> {
        write_holder(&mut &self.lock, http)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The locked file.
    pub fn lock_file(&self) -> &File {
        &self.lock
    }

    /// The directory, open; `None` where the system does not open directories.
    pub fn opened(&self) -> Option<Arc<File>> {
        self.opened.clone()
    }

    /// The folder of queues.
    pub fn queues_dir(&self) -> PathBuf {
        self.path.join(QUEUES)
    }

    /// The folder of states.
    pub fn state_dir(&self) -> PathBuf {
        self.path.join(STATE)
    }
}

/// The error if another process owns the directory. Changes nothing there.
pub fn held(path: &Path) -> Option<DataDirError> {
    let lock = File::open(path.join(LOCK_FILE)).ok()?;
    let is_held = matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock));
    is_held.then(|| DataDirError::Held { path: path.to_owned(), holder: holder(&lock) })
}

/// Locks the directory when the predecessor, which still has it locked, has ended.
fn lock_later(opened: Weak<File>) {
    let locks = move || {
        while let Some(opened) = opened.upgrade()
            && let Err(TryLockError::WouldBlock) = opened.try_lock()
        {
            drop(opened);
            std::thread::sleep(LOCK_LATER_PAUSE);
        }
    };
    if let Err(error) = std::thread::Builder::new().name("lock".into()).spawn(locks) {
        // The file is locked in any case.
        tracing::warn!(target: LOG_TARGET, "cannot lock the data directory itself: {error}");
    }
}

/// Retries, because commands that only read (`staunch queue`) take the lock for an instant.
fn try_lock(lock: &File) -> Result<(), TryLockError> {
    for _ in 1..LOCK_TRIES {
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            tried => return tried,
        }
    }
    lock.try_lock()
}

/// True when there is state of aggregations for a plan without checkpoints to remove.
pub fn has_state(data_dir: &Path) -> bool {
    data_dir.join(STATE).is_dir()
}

/// The folder of queues in `data_dir`.
pub fn queues_dir(data_dir: &Path) -> PathBuf {
    data_dir.join(QUEUES)
}

/// The owner, according to the lock file.
fn holder(mut lock: &File) -> String {
    let mut text = String::new();
    // On some systems a locked file cannot be read. The owner is then unknown.
    let _unread = Read::take(&mut lock, HOLDER_BYTES_MAX).read_to_string(&mut text);
    let words = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(", ");
    if words.is_empty() { "it does not say which".to_owned() } else { words }
}

fn write_holder(lock: &mut &File, http: Option<SocketAddr>) -> io::Result<()> {
    let mut text = format!("process {}\n", std::process::id());
    if let Some(http) = http {
        // Writing to a `String` cannot fail.
        let _written = writeln!(text, "http {http}");
    }
    lock.rewind()?;
    // Overwrites the text, which needs no more space on the disk.
    lock.write_all(text.as_bytes())?;
    lock.set_len(text.len() as u64)
}

/// The folder of an output's queue: the output's name, with `%XX` for each byte that is not a letter, a digit, `_`, `-`
/// or `.`. Names begin with a letter or digit, so that none is `.` or `..`.
pub fn queue_folder(output: &str) -> String {
    let mut folder = String::with_capacity(output.len());
    for byte in output.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.') {
            folder.push(char::from(byte));
        } else {
            // Writing to a `String` cannot fail.
            let _written = write!(folder, "%{byte:02X}");
        }
    }
    folder
}

/// The output whose queue is in `folder`; `None` for any other folder.
pub fn output_of(folder: &str) -> Option<String> {
    let mut name = Vec::with_capacity(folder.len());
    let mut bytes = folder.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            name.push(byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|digit| char::from(digit).to_digit(16));
        let (high, low) = (digit()?, digit()?);
        name.push((high * 16 + low) as u8);
    }
    let name = String::from_utf8(name).ok()?;
    (!name.is_empty() && queue_folder(&name) == folder).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_daemon_is_rejected_with_the_name_of_the_owner() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("data");
        fs::create_dir(&path).expect("a folder");
        fs::write(path.join(LOCK_FILE), "process 1\nleft behind by one that was killed\n").expect("written");
        let http = "127.0.0.1:8680".parse().expect("an address");
        let held = DataDir::lock(&path, Some(http)).expect("a file alone is no lock");
        let error = DataDir::lock(&path, None).expect_err("it is held").to_string();
        let holder = format!("(process {}, http 127.0.0.1:8680)", std::process::id());
        assert!(error.contains(&holder) && error.contains(&path.display().to_string()), "{error}");
        assert_eq!(held.queues_dir(), queues_dir(&path));
        drop(held);
        DataDir::lock(&path, None).expect("it is free again");
        let text = fs::read_to_string(path.join(LOCK_FILE)).expect("it stays");
        assert_eq!(text, format!("process {}\n", std::process::id()));
    }

    #[cfg(unix)]
    #[test]
    fn a_directory_without_its_lock_file_is_still_locked() {
        let folder = tempfile::tempdir().expect("a folder");
        let held = DataDir::lock(folder.path(), None).expect("nobody has it");
        fs::remove_file(folder.path().join(LOCK_FILE)).expect("it is there");
        let error = DataDir::lock(folder.path(), None).expect_err("it is held").to_string();
        assert!(error.contains("its lock was deleted"), "{error}");
        let handed = DataDir::inherit(folder.path(), held.lock_file().try_clone().expect("a descriptor"));
        drop(held);
        std::thread::sleep(3 * LOCK_LATER_PAUSE);
        assert!(DataDir::lock(folder.path(), None).is_err(), "the next process has it");
        drop(handed);
        DataDir::lock(folder.path(), None).expect("it is free again");
    }

    #[test]
    fn an_unusable_directory_is_reported_with_its_cause() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "").expect("written");
        let error = DataDir::lock(&file, None).expect_err("it is a file");
        let text = error.to_string();
        let head = format!("cannot use the data directory {}: ", file.display());
        let (before, hint) = text.split_once("\n  hint: ").expect("a hint");
        assert!(before.starts_with(&head) && before.len() > head.len(), "without its cause: {text}");
        assert!(hint.ends_with("set `data_dir`"), "the cause comes before it: {text}");
    }

    /// On a full disk the directory can still be locked, so that queued data can be delivered.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_keeps_nobody_from_a_directory() {
        let folder = tempfile::tempdir().expect("a folder");
        std::os::unix::fs::symlink("/dev/full", folder.path().join(LOCK_FILE)).expect("a link");
        let held = DataDir::lock(folder.path(), None).expect("the lock needs no room");
        assert!(held.sign(None).is_err(), "nothing can be written there");
    }

    #[test]
    fn names_of_outputs_and_folders_convert_both_ways() {
        for (output, folder) in [
            ("carbon", "carbon"),
            ("a.b_c-9", "a.b_c-9"),
            ("carbon/10.0.0.5:2003", "carbon%2F10.0.0.5%3A2003"),
            ("copy/[::2]:1", "copy%2F%5B%3A%3A2%5D%3A1"),
            ("copy//run/café", "copy%2F%2Frun%2Fcaf%C3%A9"),
            ("100%", "100%25"),
        ] {
            assert_eq!(queue_folder(output), folder);
            assert_eq!(output_of(folder).as_deref(), Some(output));
        }
        for folder in ["", "a%", "a%2", "a%zz", "a%2f", "%FF", "a b", "%61"] {
            assert_eq!(output_of(folder), None, "{folder}");
        }
    }
}
