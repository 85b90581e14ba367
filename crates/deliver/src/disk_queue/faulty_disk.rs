//! A disk in memory for tests: it tracks synced and unsynced bytes, and fails on request.
//!
//! Never part of a packet's path: for model tests, the fuzz target and the simulator.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::{Disk, DiskError, Reserved};

/// Faults to inject, and when. Counters count calls that change something; 0 is the next one.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Disk size for all files together; past it a write is cut short with [`DiskError::Full`].
    pub bytes_max: Option<u64>,
    /// The process dies in that call: a write is done in part, every later call fails.
    pub crash_in: Option<u64>,
    /// That write is reported as done, and is lost: the bytes are zeros, or the old ones.
    pub lose_write_in: Option<u64>,
    /// That write is cut short and fails.
    pub write_error_in: Option<u64>,
    /// Every write fails before its first byte.
    pub writes_fail: bool,
    /// That sync fails: some of its bytes are durable, some never will be.
    pub sync_error_in: Option<u64>,
    /// (name, first byte, last byte) that cannot be read.
    pub unreadable: Vec<(String, u64, u64)>,
    /// That read fails; the next one succeeds.
    pub read_error_in: Option<u64>,
    /// Files can be neither opened nor created nor listed, for lack of descriptors, memory or permission. Open files
    /// still work.
    pub opens_fail: Option<DiskError>,
    /// The file of this name cannot be opened.
    pub unopenable: Option<String>,
    /// `reserve` reserves no space, it only checks for it.
    pub only_checks_space: bool,
    /// The directory is unavailable: nothing in it can be reached by name. Open files work, and a sync proves nothing.
    pub away: bool,
}

#[derive(Clone, Debug, Default)]
struct FileState {
    bytes: Vec<u8>,
    safe: Vec<u8>,
    /// Space is reserved for the file up to here.
    reserved: usize,
    /// Writes since the last sync.
    unsynced: Vec<(usize, Vec<u8>)>,
}

impl FileState {
    /// Disk space that it uses.
    fn room(&self) -> usize {
        self.bytes.len().max(self.reserved)
    }
}

#[derive(Clone, Debug, Default)]
struct State {
    files: Vec<FileState>,
    names: BTreeMap<String, usize>,
    names_safe: BTreeMap<String, usize>,
    faults: Faults,
    faults_met: u64,
    bytes_read: u64,
    dead: bool,
    random: u64,
}

/// See the module's header. A clone is the same disk.
#[derive(Clone, Debug, Default)]
pub struct FaultyDisk(Arc<Mutex<State>>);

const DEAD: DiskError = DiskError::Io { code: 0 };
const FAILED: DiskError = DiskError::Io { code: 5 };
const SECTOR_BYTES: usize = 512;

impl State {
    /// SplitMix64.
    fn random(&mut self, below: usize) -> usize {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % below.max(1) as u64) as usize
    }

    /// Whether the process dies in the call that begins.
    fn crashes(&mut self) -> Result<bool, DiskError> {
        if self.dead {
            return Err(DEAD);
        }
        self.dead = due(&mut self.faults.crash_in);
        self.faults_met += u64::from(self.dead);
        Ok(self.dead)
    }

    /// Whether files can be opened now.
    fn opens(&mut self) -> Result<(), DiskError> {
        self.reaches()?;
        self.faults_met += u64::from(self.faults.opens_fail.is_some());
        self.faults.opens_fail.map_or(Ok(()), Err)
    }

    /// Whether names can be reached now.
    fn reaches(&mut self) -> Result<(), DiskError> {
        self.faults_met += u64::from(self.faults.away);
        if self.faults.away { Err(DiskError::Away) } else { Ok(()) }
    }

    fn put(&mut self, file: usize, offset: usize, bytes: &[u8]) {
        put(&mut self.files[file].bytes, offset, bytes);
        self.files[file].unsynced.push((offset, bytes.to_vec()));
    }

    fn used(&self) -> u64 {
        self.names.values().map(|file| self.files[*file].room() as u64).sum()
    }

    /// How much a file may grow beyond its reserved space.
    fn left(&self) -> u64 {
        self.faults.bytes_max.map_or(u64::MAX, |max| max.saturating_sub(self.used()))
    }

    /// Decides which unsynced writes reach the disk, sector by sector.
    fn reach(&mut self, file: usize) {
        for (offset, bytes) in std::mem::take(&mut self.files[file].unsynced) {
            for (at, sector) in bytes.chunks(SECTOR_BYTES).enumerate() {
                let kept = match self.random(8) {
                    0..3 => 0,
                    3 => self.random(sector.len()),
                    _ => sector.len(),
                };
                if kept > 0 {
                    put(&mut self.files[file].safe, offset + at * SECTOR_BYTES, &sector[..kept]);
                }
            }
        }
    }
}

fn due(counter: &mut Option<u64>) -> bool {
    match counter {
        Some(0) => {
            *counter = None;
            true
        }
        Some(left) => {
            *left -= 1;
            false
        }
        None => false,
    }
}

fn put(to: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    if to.len() < offset + bytes.len() {
        to.resize(offset + bytes.len(), 0);
    }
    to[offset..offset + bytes.len()].copy_from_slice(bytes);
}

impl FaultyDisk {
    /// An empty disk. The seed decides which bytes a crash keeps.
    pub fn new(seed: u64) -> FaultyDisk {
        FaultyDisk(Arc::new(Mutex::new(State { random: seed, ..State::default() })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another disk with the same files, and no faults.
    pub fn copy(&self) -> FaultyDisk {
        let state = State { faults: Faults::default(), dead: false, ..self.state().clone() };
        FaultyDisk(Arc::new(Mutex::new(state)))
    }

    /// Faults from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// Changes the faults.
    pub fn change_faults(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut self.state().faults);
    }

    /// Number of faults that occurred.
    pub fn faults_met(&self) -> u64 {
        self.state().faults_met
    }

    /// Number of bytes read.
    pub fn bytes_read(&self) -> u64 {
        self.state().bytes_read
    }

    /// True when the process has died in a call.
    pub fn is_dead(&self) -> bool {
        self.state().dead
    }

    /// A new process: it finds all written bytes.
    pub fn restart(&self) {
        let mut state = self.state();
        (state.dead, state.faults) = (false, Faults::default());
    }

    /// A new process after a loss of power: it finds the synced bytes, and any part of the others.
    pub fn lose_power(&self) {
        let mut guard = self.state();
        let state = &mut *guard;
        (state.dead, state.faults) = (false, Faults::default());
        for file in 0..state.files.len() {
            state.reach(file);
            state.files[file].bytes = state.files[file].safe.clone();
        }
        let (names, safe) = (std::mem::take(&mut state.names), std::mem::take(&mut state.names_safe));
        let mut all: Vec<&String> = names.keys().chain(safe.keys()).collect();
        all.sort_unstable();
        all.dedup();
        for name in all {
            let found = match (names.get(name), safe.get(name)) {
                (Some(file), Some(same)) if file == same => Some(*file),
                (new, old) => [new, old][state.random(2)].copied(),
            };
            state.names.extend(found.map(|file| (name.clone(), file)));
        }
        state.names_safe = state.names.clone();
    }

    /// Sets a file's bytes, synced.
    pub fn store(&self, name: &str, bytes: &[u8]) {
        let mut state = self.state();
        let file = state.files.len();
        let (safe, unsynced) = (bytes.to_vec(), Vec::new());
        state.files.push(FileState { bytes: bytes.to_vec(), safe, reserved: 0, unsynced });
        state.names.insert(name.to_owned(), file);
        state.names_safe.insert(name.to_owned(), file);
    }

    /// Names of all files, regardless of faults.
    pub fn names(&self) -> Vec<String> {
        self.state().names.keys().cloned().collect()
    }

    /// Another program deletes a file. Processes that have it open keep reading and writing it.
    pub fn delete(&self, name: &str) {
        let mut state = self.state();
        state.names.remove(name);
        state.names_safe.remove(name);
    }

    /// A file's bytes.
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.state();
        state.names.get(name).map(|file| state.files[*file].bytes.clone())
    }

    /// Changes a file's bytes, synced or not, without a trace.
    pub fn damage(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.state();
        if let Some(file) = state.names.get(name).copied() {
            let file = &mut state.files[file];
            change(&mut file.bytes);
            file.safe = file.bytes.clone();
            file.unsynced.clear();
        }
    }
}

impl Disk for FaultyDisk {
    type File = usize;

    fn list(&self) -> Result<Vec<String>, DiskError> {
        let mut state = self.state();
        if state.dead {
            return Err(DEAD);
        }
        state.opens()?;
        Ok(state.names.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> Result<usize, DiskError> {
        let mut state = self.state();
        if state.crashes()? {
            return Err(DEAD);
        }
        state.opens()?;
        if state.names.contains_key(name) {
            return Err(DiskError::Exists);
        }
        let file = state.files.len();
        state.files.push(FileState::default());
        state.names.insert(name.to_owned(), file);
        Ok(file)
    }

    fn open(&self, name: &str) -> Result<usize, DiskError> {
        let mut state = self.state();
        if state.dead {
            return Err(DEAD);
        }
        state.opens()?;
        if state.faults.unopenable.as_deref() == Some(name) {
            state.faults_met += 1;
            return Err(FAILED);
        }
        state.names.get(name).copied().ok_or(DiskError::NotFound)
    }

    fn size_of(&self, name: &str) -> Result<u64, DiskError> {
        let mut state = self.state();
        if state.dead {
            return Err(DEAD);
        }
        state.reaches()?;
        let file = state.names.get(name).copied().ok_or(DiskError::NotFound)?;
        Ok(state.files[file].bytes.len() as u64)
    }

    fn write_at(&self, file: &usize, offset: u64, parts: &[&[u8]]) -> Result<(), DiskError> {
        let mut state = self.state();
        let (bytes, offset) = (parts.concat(), offset as usize);
        let crashes = state.crashes()?;
        if crashes || due(&mut state.faults.write_error_in) {
            let part = state.random(bytes.len() + 1);
            state.put(*file, offset, &bytes[..part]);
            state.faults_met += u64::from(!crashes);
            return Err(if crashes { DEAD } else { FAILED });
        }
        if state.faults.writes_fail {
            state.faults_met += 1;
            return Err(FAILED);
        }
        let grows = (offset + bytes.len()).saturating_sub(state.files[*file].room());
        let room = state.left();
        if grows as u64 > room {
            let part = (bytes.len() + room as usize).saturating_sub(grows);
            state.put(*file, offset, &bytes[..part.min(bytes.len())]);
            state.faults_met += 1;
            return Err(DiskError::Full);
        }
        if due(&mut state.faults.lose_write_in) {
            state.faults_met += 1;
            let old = state.files[*file].bytes.len().max(offset);
            let zeros = vec![0; (offset + bytes.len()).saturating_sub(old)];
            state.put(*file, old, &zeros);
        } else {
            state.put(*file, offset, &bytes);
        }
        Ok(())
    }

    fn reserve(&self, file: &usize, offset: u64, bytes: u64) -> Result<Reserved, DiskError> {
        let mut state = self.state();
        if state.dead {
            return Err(DEAD);
        }
        let end = offset + bytes;
        if end.saturating_sub(state.files[*file].room() as u64) > state.left() {
            state.faults_met += 1;
            return Err(DiskError::Full);
        }
        if state.faults.only_checks_space {
            return Ok(Reserved::FreeNow);
        }
        let file = &mut state.files[*file];
        file.reserved = file.reserved.max(end as usize);
        Ok(Reserved::Allocated)
    }

    fn read_at(&self, file: &usize, offset: u64, bytes: &mut [u8]) -> Result<(), DiskError> {
        let mut state = self.state();
        if state.dead {
            return Err(DEAD);
        }
        let end = offset + bytes.len() as u64;
        let bad = state.faults.unreadable.iter().any(|(name, first, last)| {
            state.names.get(name) == Some(file) && offset <= *last && *first < end
        });
        if due(&mut state.faults.read_error_in) || bad {
            state.faults_met += 1;
            return Err(FAILED);
        }
        let found = state.files[*file].bytes.get(offset as usize..end as usize).ok_or(DiskError::Short)?;
        bytes.copy_from_slice(found);
        state.bytes_read += bytes.len() as u64;
        Ok(())
    }

    fn size(&self, file: &usize) -> Result<u64, DiskError> {
        let state = self.state();
        if state.dead { Err(DEAD) } else { Ok(state.files[*file].bytes.len() as u64) }
    }

    fn sync(&self, number: &usize) -> Result<(), DiskError> {
        let mut state = self.state();
        if state.crashes()? {
            return Err(DEAD);
        }
        if due(&mut state.faults.sync_error_in) {
            state.faults_met += 1;
            state.reach(*number);
            return Err(FAILED);
        }
        let file = &mut state.files[*number];
        // Bytes that a failed sync lost stay lost: only writes since then count.
        for (offset, bytes) in std::mem::take(&mut file.unsynced) {
            put(&mut file.safe, offset, &bytes);
        }
        state.reaches()?;
        if state.names.values().any(|named| named == number) { Ok(()) } else { Err(DiskError::Deleted) }
    }

    fn sync_directory(&self) -> Result<(), DiskError> {
        let mut state = self.state();
        if state.crashes()? {
            return Err(DEAD);
        }
        if due(&mut state.faults.sync_error_in) {
            state.faults_met += 1;
            return Err(FAILED);
        }
        state.names_safe = state.names.clone();
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        let mut state = self.state();
        if state.crashes()? {
            return Err(DEAD);
        }
        state.reaches()?;
        if state.names.contains_key(to) {
            return Err(DiskError::Exists);
        }
        let file = state.names.remove(from).ok_or(DiskError::NotFound)?;
        state.names.insert(to.to_owned(), file);
        Ok(())
    }

    fn replace(&self, from: &str, to: &str) -> Result<(), DiskError> {
        let mut state = self.state();
        if state.crashes()? {
            return Err(DEAD);
        }
        state.reaches()?;
        let file = state.names.remove(from).ok_or(DiskError::NotFound)?;
        state.names.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        let mut state = self.state();
        if state.crashes()? {
            return Err(DEAD);
        }
        state.reaches()?;
        state.names.remove(name).map(|_| ()).ok_or(DiskError::NotFound)
    }
}
