//! The data directory: who has it, and what is where in it.
//!
//! | name | what |
//! |---|---|
//! | `lock` | locked by the daemon that has the directory; its text names that process. The directory itself is locked as
//! well: somebody may delete this file |
//! | `queues/NAME/` | the queue on disk of output NAME |
//! | `known-queues` | the names of those folders that there were (`staunch::daemon::known_queues`) |
//! | `state/` | the state of aggregations |
//! | `last-flush` | labels for the next start (`staunch::daemon::handover`) |
//!
//! Only a daemon that keeps something there takes the directory for itself: several that write nothing may share one.
//! Not here: what is in a queue (`deliver::disk_queue`), opening queues (`staunch::daemon::queues`), what of a plan needs the
//! directory (`staunch::daemon::kept`).

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Name of the file that is locked.
pub const LOCK_FILE: &str = "lock";

/// Name of the folder of queues.
const QUEUES: &str = "queues";

/// Name of the folder of states.
const STATE: &str = "state";

/// How often the lock is tried, and the pause between.
const LOCK_TRIES: u32 = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// The same for the directory of a process that is about to end.
const LOCK_LATER_PAUSE: Duration = Duration::from_millis(100);

/// Filters of log lines name the program.
const LOG_TARGET: &str = "staunch::daemon::data_dir";

/// Longest text of a lock that is believed.
const HOLDER_BYTES_MAX: u64 = 256;

/// The directory, ours until this is dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    lock: File,
    /// The directory, open and locked. Not every system or file system has folders opened or locked: then there is the file
    /// only.
    opened: Option<Arc<File>>,
}

/// Why the directory is not ours.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// Another process has it.
    #[error(
        "the data directory {} is in use by another daemon ({holder}): two would write the same files\n  \
         hint: stop that one, or give this one a `data_dir` of its own",
        path.display()
    )]
    Held {
        /// The directory.
        path: PathBuf,
        /// Who has it, as far as its text tells.
        holder: String,
    },
    /// It cannot be made, or its lock cannot be opened.
    #[error(
        "cannot use the data directory {}: {cause}\n  hint: make it writable for this user, or set `data_dir`",
        path.display()
    )]
    Unusable {
        /// The directory.
        path: PathBuf,
        /// Why. Told in front of the hint, where a source would come behind it.
        cause: io::Error,
    },
}

impl DataDir {
    /// Takes the directory `path` for this process, made when it is not there. `http` is told to whoever finds it taken.
    ///
    /// The lock goes with the process: a file that one left behind is no obstacle. It is not passed on to programs that
    /// this one starts.
    ///
    /// # Errors
    /// When another process has it, or it cannot be used.
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
            // The file that it has locked was deleted.
            return Err(DataDirError::Held {
                path: path.to_owned(),
                holder: "its lock was deleted".to_owned(),
            });
        }
        if let Err(error) = write_holder(&mut &lock, http) {
            // A full disk, such as one that what waits in queues has filled.
            tracing::warn!(target: LOG_TARGET, "cannot write the owner of the data directory {}: {error}", path.display());
        }
        Ok(DataDir { path: path.to_owned(), lock, opened })
    }

    /// The directory, with the lock of the process that had it before.
    pub fn inherit(path: &Path, lock: File) -> DataDir {
        let opened = File::open(path).ok().map(Arc::new);
        if let Some(opened) = opened.as_ref().filter(|opened| opened.try_lock().is_err()) {
            lock_later(Arc::downgrade(opened));
        }
        DataDir { path: path.to_owned(), lock, opened }
    }

    /// Writes into the lock who has it.
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

    /// The file whose lock says that the directory is ours.
    pub fn lock_file(&self) -> &File {
        &self.lock
    }

    /// The directory, open; none where the system does not open folders.
    pub fn opened(&self) -> Option<Arc<File>> {
        self.opened.clone()
    }

    /// Where queues are.
    pub fn queues_dir(&self) -> PathBuf {
        self.path.join(QUEUES)
    }

    /// Where states of aggregations are.
    pub fn state_dir(&self) -> PathBuf {
        self.path.join(STATE)
    }
}

/// That another process has the directory, when one does. Nothing is made or changed there.
pub fn held(path: &Path) -> Option<DataDirError> {
    let lock = File::open(path.join(LOCK_FILE)).ok()?;
    let is_held = matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock));
    is_held.then(|| DataDirError::Held { path: path.to_owned(), holder: holder(&lock) })
}

/// Locks the directory when the process that we have taken over from has ended. Until then that one has it locked.
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
        // The file is locked all the same.
        tracing::warn!(target: LOG_TARGET, "cannot lock the data directory itself: {error}");
    }
}

/// Who only looks (`staunch queue`) holds the lock for an instant to see whether it is free: that is waited for.
fn try_lock(lock: &File) -> Result<(), TryLockError> {
    for _ in 1..LOCK_TRIES {
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            tried => return tried,
        }
    }
    lock.try_lock()
}

/// True when there is state of aggregations that a plan without checkpoints has to clear away.
pub fn has_state(data_dir: &Path) -> bool {
    data_dir.join(STATE).is_dir()
}

/// Where the queues of the daemons of `data_dir` are.
pub fn queues_dir(data_dir: &Path) -> PathBuf {
    data_dir.join(QUEUES)
}

/// Who wrote the text of the lock.
fn holder(mut lock: &File) -> String {
    let mut text = String::new();
    // Where a lock keeps others from reading, it cannot be told.
    let _unread = Read::take(&mut lock, HOLDER_BYTES_MAX).read_to_string(&mut text);
    let words = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(", ");
    if words.is_empty() { "it does not say which".to_owned() } else { words }
}

fn write_holder(lock: &mut &File, http: Option<SocketAddr>) -> io::Result<()> {
    let mut text = format!("process {}\n", std::process::id());
    if let Some(http) = http {
        // A text takes everything.
        let _written = writeln!(text, "http {http}");
    }
    lock.rewind()?;
    // Over what is there, which takes no more room on the disk.
    lock.write_all(text.as_bytes())?;
    lock.set_len(text.len() as u64)
}

/// Name of the folder of an output's queue: the output's own, with `%XX` for each byte that is no letter, no digit and
/// none of `_`, `-` and `.`. Names begin with a letter or digit, so that none is `.` or `..`.
pub fn queue_folder(output: &str) -> String {
    let mut folder = String::with_capacity(output.len());
    for byte in output.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.') {
            folder.push(char::from(byte));
        } else {
            // A text takes everything.
            let _written = write!(folder, "%{byte:02X}");
        }
    }
    folder
}

/// The output whose queue is in `folder`; none for a folder that is no output's.
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
    fn a_directory_has_one_owner_and_says_who() {
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
    fn a_directory_without_its_lock_file_still_has_one_owner() {
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
    fn a_directory_that_cannot_be_used_is_told_with_its_cause() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "").expect("written");
        let error = DataDir::lock(&file, None).expect_err("it is a file");
        let told = error.to_string();
        let head = format!("cannot use the data directory {}: ", file.display());
        let (before, hint) = told.split_once("\n  hint: ").expect("a hint");
        assert!(before.starts_with(&head) && before.len() > head.len(), "without its cause: {told}");
        assert!(hint.ends_with("set `data_dir`"), "the cause comes before it: {told}");
    }

    /// On a disk that takes nothing the directory is ours all the same: what waits there is to be delivered.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_keeps_nobody_from_a_directory() {
        let folder = tempfile::tempdir().expect("a folder");
        std::os::unix::fs::symlink("/dev/full", folder.path().join(LOCK_FILE)).expect("a link");
        let held = DataDir::lock(folder.path(), None).expect("the lock needs no room");
        assert!(held.sign(None).is_err(), "nothing can be written there");
    }

    #[test]
    fn names_of_outputs_and_folders_lead_to_each_other() {
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
