//! A tree of files in memory, for tests, the fuzz target and the simulator. It counts calls, and fails on request.
//!
//! Never part of a packet's path. A power loss leaves what was synced ([`MemoryTree::after_power_loss`]). After a sync that failed, what
//! was written before it is still read, and later syncs leave it in memory: so does Linux, which reports such an error once. A write to
//! the same page brings all of the page to the disk, as it does there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::{DiskError, EntryKind, FileFacts, FileTree, FileVersion, Reserved, TreeFile};

/// Calls so far, of a tree and all its files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Files opened and created.
    pub opens: u64,
    /// Calls of `read_at`.
    pub reads: u64,
    /// Calls of `write_at`.
    pub writes: u64,
    /// Calls of `size`.
    pub sizes: u64,
    /// Calls of `version`.
    pub versions: u64,
    /// Syncs of files and folders.
    pub syncs: u64,
}

/// Faults to inject.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Space for all files together; a write above it is cut short and fails with [`DiskError::Full`].
    pub bytes_max: Option<u64>,
    /// The write with this number from now on is cut in half and fails; 0 is the next one.
    pub write_error_in: Option<u64>,
    /// Likewise, and it is cut where its first page ends, as a killed process leaves it.
    pub killed_in: Option<u64>,
    /// Every read fails.
    pub reads_fail: Option<DiskError>,
    /// The tree is mounted read-only.
    pub read_only: bool,
    /// The next sync of the tree fails.
    pub sync_fails: bool,
    /// Syncs of the tree succeed, and make nothing durable.
    pub sync_lies: bool,
}

/// What a disk writes at once.
const PAGE_BYTES: usize = 4096;

/// A change of a file that is not synced.
#[derive(Debug)]
enum Change {
    Write {
        file: usize,
        /// Where the first page that it changed begins.
        start: usize,
        /// The file became longer.
        grows: bool,
        /// The pages that it changed, whole, as they were after it.
        pages: Vec<u8>,
    },
    Extend {
        file: usize,
        bytes: usize,
    },
}

#[derive(Debug, Default)]
struct State {
    files: Vec<Vec<u8>>,
    /// Index of each file, and its time, by path.
    paths: BTreeMap<String, usize>,
    /// When each file was written last, and how often it was.
    modified: BTreeMap<usize, (i64, i64)>,
    now: i64,
    calls: Calls,
    faults: Faults,
    /// Done and not synced, in order.
    unsynced: Vec<Change>,
    /// What a power loss leaves: the bytes of each file, and the paths.
    durable: (Vec<Vec<u8>>, BTreeMap<String, usize>),
}

impl State {
    fn sync(&mut self) -> Result<(), DiskError> {
        self.calls.syncs += 1;
        if self.faults.sync_lies {
            return Ok(());
        }
        let unsynced = std::mem::take(&mut self.unsynced);
        if std::mem::take(&mut self.faults.sync_fails) {
            return Err(DiskError::Io { code: 5 });
        }
        let (files, paths) = &mut self.durable;
        paths.clone_from(&self.paths);
        files.resize(self.files.len(), Vec::new());
        for change in unsynced {
            match change {
                Change::Write { file, start, pages, .. } => {
                    let to = &mut files[file];
                    to.resize(self.files[file].len(), 0);
                    to[start..start + pages.len()].copy_from_slice(&pages);
                }
                Change::Extend { file, bytes } => {
                    let longer = files[file].len().max(bytes);
                    files[file].resize(longer, 0);
                }
            }
        }
        Ok(())
    }

    fn index(&self, path: &str) -> Result<usize, DiskError> {
        checked(path)?;
        self.paths.get(path).copied().ok_or(DiskError::NotFound)
    }

    fn version(&self, index: usize) -> FileVersion {
        let (_, changed) = self.modified.get(&index).copied().unwrap_or_default();
        FileVersion { file: index as u64, changed }
    }

    fn touch(&mut self, index: usize) {
        let (time, changes) = self.modified.entry(index).or_default();
        (*time, *changes) = (self.now, *changes + 1);
    }

    fn used(&self) -> u64 {
        self.paths.values().map(|index| self.files[*index].len() as u64).sum()
    }

    fn write(&mut self, index: usize, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        if self.faults.read_only {
            return Err(DiskError::Denied);
        }
        let (mut bytes, mut result) = (bytes, Ok(()));
        match &mut self.faults.write_error_in {
            Some(0) => {
                self.faults.write_error_in = None;
                (bytes, result) = (&bytes[..bytes.len() / 2], Err(DiskError::Io { code: 5 }));
            }
            Some(left) => *left -= 1,
            None => {}
        }
        let start = usize::try_from(offset).map_err(|_| DiskError::Full)?;
        match &mut self.faults.killed_in {
            Some(0) => {
                let rest_of_page = PAGE_BYTES - start % PAGE_BYTES;
                (bytes, result) = (&bytes[..bytes.len().min(rest_of_page)], Err(DiskError::Io { code: 4 }));
            }
            Some(left) => *left -= 1,
            None => {}
        }
        let end = start.checked_add(bytes.len()).ok_or(DiskError::Full)?;
        let more = end.saturating_sub(self.files[index].len());
        if self.faults.bytes_max.is_some_and(|max| more as u64 > max.saturating_sub(self.used())) {
            return Err(DiskError::Full);
        }
        let file = &mut self.files[index];
        let grows = file.len() < end;
        if grows {
            file.resize(end, 0);
        }
        file[start..end].copy_from_slice(bytes);
        let first = start - start % PAGE_BYTES;
        let pages = file[first..file.len().min(end.next_multiple_of(PAGE_BYTES))].to_vec();
        self.unsynced.push(Change::Write { file: index, start: first, grows, pages });
        self.touch(index);
        result
    }
}

/// A tree in memory. A clone is the same tree.
#[derive(Clone, Debug, Default)]
pub struct MemoryTree {
    state: Arc<Mutex<State>>,
}

/// An open file of a [`MemoryTree`].
#[derive(Clone, Debug)]
pub struct MemoryFile {
    state: Arc<Mutex<State>>,
    index: usize,
    to_read: bool,
    /// Its version when it was opened.
    version: FileVersion,
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Rejects a path that could leave the tree.
fn checked(path: &str) -> Result<(), DiskError> {
    let bad = |name: &str| matches!(name, "" | "." | "..") || name.contains('\0');
    if path.split('/').any(bad) { Err(DiskError::NotAFile) } else { Ok(()) }
}

impl MemoryTree {
    /// An empty tree.
    pub fn new() -> MemoryTree {
        MemoryTree::default()
    }

    /// A tree in which `path` is a file with these bytes.
    ///
    /// # Errors
    /// The path is invalid.
    pub fn with_file(path: &str, bytes: &[u8]) -> Result<MemoryTree, DiskError> {
        let tree = MemoryTree::new();
        tree.create(path)?.write_at(0, bytes)?;
        Ok(tree)
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// There is no such file.
    pub fn bytes(&self, path: &str) -> Result<Vec<u8>, DiskError> {
        let state = locked(&self.state);
        state.index(path).map(|index| state.files[index].clone())
    }

    /// The least that a power loss leaves of the tree: what was synced.
    pub fn after_power_loss(&self) -> MemoryTree {
        self.after_power_loss_with(&mut || false)
    }

    /// What a power loss leaves of the tree, if the file system has a journal: what was synced, and of the rest what `keeps` says. It is
    /// asked for each page of each write since the last sync, for each path that is new or gone, and for each longer file; one of these is
    /// kept only if those before it are, and a page of it only then.
    pub fn after_power_loss_with(&self, keeps: &mut dyn FnMut() -> bool) -> MemoryTree {
        let state = locked(&self.state);
        let (mut files, mut paths) = state.durable.clone();
        files.resize(state.files.len(), Vec::new());
        let mut is_journaled = true;
        for change in &state.unsynced {
            match change {
                Change::Extend { file, bytes } => {
                    is_journaled = is_journaled && keeps();
                    let longer = files[*file].len().max(*bytes);
                    if is_journaled {
                        files[*file].resize(longer, 0);
                    }
                }
                Change::Write { file, start, grows, pages } => {
                    let to = &mut files[*file];
                    for (at, page) in pages.chunks(PAGE_BYTES).enumerate() {
                        let first = start + at * PAGE_BYTES;
                        let place = first..first + page.len();
                        if keeps() && (*grows || place.end <= to.len()) {
                            to.resize(to.len().max(place.end), 0);
                            to[place].copy_from_slice(page);
                        }
                    }
                }
            }
        }
        for (path, index) in &state.paths {
            if paths.get(path) != Some(index) && keeps() {
                paths.insert(path.clone(), *index);
            }
        }
        paths.retain(|path, _| state.paths.contains_key(path) || !keeps());
        let durable = (files.clone(), paths.clone());
        let modified = state.modified.clone();
        let left = State { files, paths, modified, now: state.now, durable, ..State::default() };
        MemoryTree { state: Arc::new(Mutex::new(left)) }
    }

    /// A copy of the tree as it is now, with everything in it synced.
    pub fn copy(&self) -> MemoryTree {
        let state = locked(&self.state);
        let State { files, paths, modified, now, .. } = &*state;
        let copied = State {
            files: files.clone(),
            paths: paths.clone(),
            modified: modified.clone(),
            now: *now,
            durable: (files.clone(), paths.clone()),
            ..State::default()
        };
        MemoryTree { state: Arc::new(Mutex::new(copied)) }
    }

    /// Sets the time at which files are written from now on, in Unix seconds.
    pub fn set_now(&self, now: i64) {
        locked(&self.state).now = now;
    }

    /// Sets the faults, in place of earlier ones.
    pub fn set_faults(&self, faults: Faults) {
        locked(&self.state).faults = faults;
    }

    /// The calls since the last call of this function.
    pub fn take_calls(&self) -> Calls {
        std::mem::take(&mut locked(&self.state).calls)
    }

    fn file(&self, path: &str, to_read: bool) -> Result<MemoryFile, DiskError> {
        let mut state = locked(&self.state);
        let index = state.index(path)?;
        state.calls.opens += 1;
        let version = state.version(index);
        Ok(MemoryFile { state: Arc::clone(&self.state), index, to_read, version })
    }
}

impl FileTree for MemoryTree {
    type File = MemoryFile;

    fn open(&self, path: &str) -> Result<MemoryFile, DiskError> {
        if locked(&self.state).faults.read_only {
            return Err(DiskError::Denied);
        }
        self.file(path, false)
    }

    fn open_to_read(&self, path: &str) -> Result<MemoryFile, DiskError> {
        self.file(path, true)
    }

    fn create(&self, path: &str) -> Result<MemoryFile, DiskError> {
        checked(path)?;
        let mut state = locked(&self.state);
        if state.faults.read_only {
            return Err(DiskError::Denied);
        }
        let folder = format!("{path}/");
        let is_folder = state.paths.keys().any(|other| other.starts_with(&folder));
        if is_folder || state.paths.contains_key(path) {
            return Err(DiskError::Exists);
        }
        let index = state.files.len();
        state.files.push(Vec::new());
        state.paths.insert(path.to_owned(), index);
        state.touch(index);
        drop(state);
        self.file(path, false)
    }

    fn exists(&self, path: &str) -> Result<bool, DiskError> {
        checked(path)?;
        Ok(locked(&self.state).paths.contains_key(path))
    }

    fn list(&self, folder: &str, each: &mut dyn FnMut(&str, EntryKind) -> bool) -> Result<(), DiskError> {
        let state = locked(&self.state);
        let start = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let mut entries: BTreeMap<String, EntryKind> = BTreeMap::new();
        for rest in state.paths.keys().filter_map(|path| path.strip_prefix(&start)) {
            match rest.split_once('/') {
                Some((name, _)) => entries.insert(name.to_owned(), EntryKind::Folder),
                None => entries.insert(rest.to_owned(), EntryKind::File),
            };
        }
        drop(state);
        if entries.is_empty() && !folder.is_empty() {
            return Err(DiskError::NotFound);
        }
        entries.iter().all(|(name, kind)| each(name, *kind));
        Ok(())
    }

    fn remove(&self, path: &str) -> Result<(), DiskError> {
        let mut state = locked(&self.state);
        state.index(path)?;
        if state.faults.read_only {
            return Err(DiskError::Denied);
        }
        state.paths.remove(path);
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        checked(to)?;
        let mut state = locked(&self.state);
        let index = state.index(from)?;
        if state.faults.read_only {
            return Err(DiskError::Denied);
        }
        state.paths.remove(from);
        state.paths.insert(to.to_owned(), index);
        Ok(())
    }

    fn is_current(&self, path: &str, file: &MemoryFile) -> Result<bool, DiskError> {
        checked(path)?;
        Ok(locked(&self.state).paths.get(path) == Some(&file.index))
    }

    fn facts(&self, path: &str) -> Result<FileFacts, DiskError> {
        let state = locked(&self.state);
        let index = state.index(path)?;
        let bytes = state.files[index].len() as u64;
        let (modified, _) = state.modified.get(&index).copied().unwrap_or_default();
        Ok(FileFacts { bytes, disk_bytes: bytes, modified })
    }

    fn sync_folder(&self, _folder: &str) -> Result<(), DiskError> {
        locked(&self.state).calls.syncs += 1;
        Ok(())
    }

    fn sync_all(&self) -> Result<(), DiskError> {
        locked(&self.state).sync()
    }
}

impl TreeFile for MemoryFile {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DiskError> {
        let mut state = locked(&self.state);
        state.calls.reads += 1;
        if let Some(error) = state.faults.reads_fail {
            return Err(error);
        }
        let start = usize::try_from(offset).map_err(|_| DiskError::Short)?;
        let end = start.checked_add(bytes.len()).ok_or(DiskError::Short)?;
        bytes.copy_from_slice(state.files[self.index].get(start..end).ok_or(DiskError::Short)?);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        let mut state = locked(&self.state);
        state.calls.writes += 1;
        if self.to_read {
            return Err(DiskError::Denied);
        }
        state.write(self.index, offset, bytes)
    }

    fn size(&self) -> Result<u64, DiskError> {
        let mut state = locked(&self.state);
        state.calls.sizes += 1;
        Ok(state.files[self.index].len() as u64)
    }

    fn version(&self) -> Result<Option<FileVersion>, DiskError> {
        let mut state = locked(&self.state);
        state.calls.versions += 1;
        Ok(Some(state.version(self.index)))
    }

    fn opened_version(&self) -> Result<Option<FileVersion>, DiskError> {
        Ok(Some(self.version))
    }

    fn extend(&self, bytes: u64) -> Result<(), DiskError> {
        let mut state = locked(&self.state);
        let had = state.files[self.index].len();
        let bytes = usize::try_from(bytes).map_err(|_| DiskError::Full)?;
        if bytes <= had {
            return Ok(());
        }
        // The same faults as for a write of its last byte.
        state.write(self.index, bytes as u64 - 1, &[0])?;
        state.unsynced.pop();
        state.unsynced.push(Change::Extend { file: self.index, bytes });
        Ok(())
    }

    fn allocate(&self, bytes: u64) -> Result<Reserved, DiskError> {
        self.extend(bytes).map(|()| Reserved::Allocated)
    }

    fn sync(&self) -> Result<(), DiskError> {
        locked(&self.state).calls.syncs += 1;
        Ok(())
    }

    fn lock(&self) -> Result<(), DiskError> {
        Ok(())
    }

    fn unlock(&self) -> Result<(), DiskError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_could_leave_the_tree_are_rejected() {
        let tree = MemoryTree::new();
        for path in ["", "/a", "a//b", "../a", "a/..", "./a", "a/\0", "a/"] {
            assert_eq!(tree.create(path).err(), Some(DiskError::NotAFile), "{path:?}");
            assert_eq!(tree.open(path).err(), Some(DiskError::NotAFile), "{path:?}");
        }
    }

    #[test]
    fn files_and_folders_are_listed_renamed_and_removed() {
        let tree = MemoryTree::with_file("a/b/c.wsp", b"12").expect("a path");
        assert_eq!(tree.create("a/b/c.wsp").err(), Some(DiskError::Exists));
        assert_eq!(tree.create("a/b").err(), Some(DiskError::Exists), "it is a folder");
        tree.set_now(7);
        let file = tree.open("a/b/c.wsp").expect("it exists");
        file.write_at(3, b"4").expect("no fault");
        assert_eq!(tree.bytes("a/b/c.wsp").expect("it exists"), b"12\x004");
        assert_eq!(tree.facts("a/b/c.wsp"), Ok(FileFacts { bytes: 4, disk_bytes: 4, modified: 7 }));
        tree.rename("a/b/c.wsp", "a/d.wsp").expect("it exists");
        let mut names = Vec::new();
        let listed = tree.list("a", &mut |name, kind| {
            names.push((name.to_owned(), kind));
            true
        });
        assert_eq!((listed, names), (Ok(()), vec![("d.wsp".to_owned(), EntryKind::File)]));
        let mut bytes = [0; 2];
        assert_eq!(file.read_at(3, &mut bytes), Err(DiskError::Short));
        tree.remove("a/d.wsp").expect("it exists");
        assert_eq!(tree.exists("a/d.wsp"), Ok(false));
        assert_eq!(file.read_at(0, &mut bytes), Ok(()), "an open file stays usable");
        assert_eq!(tree.open_to_read("a/d.wsp").err(), Some(DiskError::NotFound));
    }
    #[test]
    fn after_a_failed_sync_a_page_reaches_the_disk_with_the_next_write_to_it() {
        let tree = MemoryTree::with_file("f", &[1; PAGE_BYTES + 2]).expect("a path");
        tree.set_faults(Faults { sync_fails: true, ..Faults::default() });
        tree.sync_all().expect_err("a fault");
        let file = tree.open("f").expect("it exists");
        file.write_at(1, &[2]).expect("no fault");
        tree.sync_all().expect("no fault");
        let mut want = vec![1; PAGE_BYTES];
        want[1] = 2;
        want.extend([0, 0]);
        assert_eq!(tree.after_power_loss().bytes("f"), Ok(want));
        assert_eq!(file.read_at(PAGE_BYTES as u64, &mut [0]), Ok(()), "and all of it is read until then");
    }
}
