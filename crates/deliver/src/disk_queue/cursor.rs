//! The cursor file: up to where records are settled and written, in three slots.
//!
//! A write goes to the slot that is neither the last synced one nor the last written one. If that write is cut short,
//! a new process still finds the last written cursor, and after a loss of power the last synced one. After a failed
//! sync, the other cursor file is used. The next process does not know of the failure: it rewrites and syncs the slot
//! that it found before it relies on it.

use model::{Disk, DiskError};

use super::format::{CURSOR_BYTES, CursorState, SLOT_BYTES, SLOT_BYTES_MIN, SLOT_OFFSETS, Slot, Totals};

pub(super) const NAMES: [&str; 2] = ["cursor-0", "cursor-1"];

#[derive(Debug)]
pub(super) struct Cursor<F> {
    queue_id: u64,
    /// The file in use, and its index in [`NAMES`].
    file: Option<F>,
    name: usize,
    write: u64,
    /// The last written cursor, and its slot.
    written: Option<(CursorState, usize)>,
    synced: Option<(CursorState, usize)>,
    /// The cursor that the running sync covers.
    running: Option<(CursorState, usize)>,
    /// Since when `written`, or the cursor to write, differs from `synced`.
    pub(super) since_ns: Option<u64>,
    /// Since when `written` differs from the cursor to write. None also after a failed write: it is repeated with the
    /// next sync.
    pub(super) unwritten_since_ns: Option<u64>,
    /// The last write failed.
    failed: bool,
    name_is_new: bool,
}

/// The last slot of a file of version 1 ends earlier.
fn slot_len<D: Disk>(disk: &D, file: &D::File, offset: u64) -> Result<usize, DiskError> {
    let left = disk.size(file)?.saturating_sub(offset);
    Ok(left.clamp(SLOT_BYTES_MIN as u64, SLOT_BYTES as u64) as usize)
}

fn read_slot<D: Disk>(disk: &D, file: &D::File, offset: u64) -> Result<[u8; SLOT_BYTES], DiskError> {
    let len = slot_len(disk, file, offset)?;
    let mut bytes = [0; SLOT_BYTES];
    disk.read_at(file, offset, &mut bytes[..len])?;
    Ok(bytes)
}

/// Makes a slot of an earlier run durable. Its own sync may have failed, after which the kernel marks the pages clean: a
/// sync alone would prove nothing. So the slot is written again with the same bytes, which a cut write cannot damage.
fn make_safe<D: Disk>(disk: &D, file: &D::File, offset: u64) -> Result<(), DiskError> {
    let len = slot_len(disk, file, offset)?;
    let bytes = read_slot(disk, file, offset).or_else(|_| read_slot(disk, file, offset))?;
    disk.write_at(file, offset, &[&bytes[..len]])?;
    disk.sync(file)?;
    disk.sync_directory()
}

type SlotBytes = [u8; SLOT_BYTES];

/// Result of [`read_slots`].
type Slots = (Vec<(Slot, usize, usize)>, bool);

/// All readable slots, of any queue: (slot, index of the file, index of the slot). And whether a cursor was ever
/// written, readable or not: a file that was only prepared is all zeros. `passed` decides which read errors are
/// skipped; a missing file is none.
pub(super) fn read_slots<D: Disk>(
    disk: &D,
    passed: impl Fn(Result<SlotBytes, DiskError>) -> Result<Option<SlotBytes>, DiskError>,
) -> Result<Slots, DiskError> {
    let (mut found, mut was_written) = (Vec::new(), false);
    for (name, file) in NAMES.iter().map(|name| disk.open(name)).enumerate() {
        let file = match file {
            Err(DiskError::NotFound) => continue,
            file => file,
        };
        for (place, offset) in SLOT_OFFSETS.into_iter().enumerate() {
            let read = file
                .clone()
                .and_then(|file| read_slot(disk, &file, offset).or_else(|_| read_slot(disk, &file, offset)));
            was_written |= match read {
                Ok(bytes) => bytes != [0; SLOT_BYTES],
                Err(error) => error != DiskError::Short,
            };
            let slot = passed(read)?.and_then(|bytes| Slot::decode(&bytes));
            found.extend(slot.map(|slot| (slot, name, place)));
        }
    }
    Ok((found, was_written))
}

impl<F: Clone> Cursor<F> {
    /// Continues after the slot that recovery chose.
    pub(super) fn new<D: Disk<File = F>>(
        disk: &D,
        queue_id: u64,
        found: Option<(Slot, usize, usize)>,
    ) -> Cursor<F> {
        let mut cursor = Cursor {
            queue_id,
            file: None,
            name: 0,
            write: 0,
            written: None,
            synced: None,
            running: None,
            since_ns: None,
            unwritten_since_ns: None,
            failed: false,
            name_is_new: false,
        };
        if let Some((slot, name, place)) = found {
            cursor.name = name;
            cursor.write = slot.write;
            // It is not known whether this slot was synced; the others may only be written when it is.
            let is_safe = |file: &F| make_safe(disk, file, SLOT_OFFSETS[place]).is_ok();
            cursor.file = disk.open(NAMES[name]).ok().filter(is_safe);
            match cursor.file {
                Some(_) => cursor.synced = Some((slot.noted(), place)),
                None => cursor.name = 1 - name,
            }
            cursor.written = cursor.synced;
        }
        // If the disk has no room for it now, a later write tries again.
        let _prepared = cursor.open(disk);
        cursor
    }

    /// Notes since when `noted` has to be written.
    pub(super) fn look(&mut self, noted: CursorState, now_ns: u64) {
        let is_written = self.written.is_some_and(|(written, _)| written == noted);
        if is_written || self.failed {
            self.unwritten_since_ns = None;
        } else {
            self.unwritten_since_ns.get_or_insert(now_ns);
        }
    }

    /// Writes `noted` if it differs from the last write. A write survives this process, but not a loss of power.
    pub(super) fn write<D: Disk<File = F>>(&mut self, disk: &D, noted: CursorState) -> Result<(), DiskError> {
        let result = self.try_write(disk, noted);
        self.unwritten_since_ns = None;
        self.failed = result.is_err();
        result
    }

    fn try_write<D: Disk<File = F>>(&mut self, disk: &D, noted: CursorState) -> Result<(), DiskError> {
        debug_assert!(self.running.is_none(), "the slot is being synced");
        if self.written.is_some_and(|(written, _)| written == noted) {
            return Ok(());
        }
        let file = self.open(disk)?;
        let taken = [self.written, self.synced].map(|kept| kept.map(|(_, at)| at));
        let at = (0..SLOT_OFFSETS.len()).find(|at| !taken.contains(&Some(*at)));
        let at = at.expect("at most two of three slots are in use");
        let write = self.write.saturating_add(1);
        let CursorState { settled, place, written } = noted;
        let slot = Slot { queue_id: self.queue_id, write, place, settled, written };
        disk.write_at(&file, SLOT_OFFSETS[at], &[&slot.encode()])?;
        self.write = write;
        self.written = Some((noted, at));
        Ok(())
    }

    fn open<D: Disk<File = F>>(&mut self, disk: &D) -> Result<F, DiskError> {
        if let Some(file) = &self.file {
            return Ok(file.clone());
        }
        let name = NAMES[self.name];
        let file = match disk.create(name) {
            Err(DiskError::Exists) => {
                disk.remove(name)?;
                disk.create(name)?
            }
            created => created?,
        };
        // Allocate the whole file now: a full disk must not stop the cursor, which is what frees segments.
        disk.write_at(&file, 0, &[&[0; CURSOR_BYTES]])?;
        self.name_is_new = true;
        self.file = Some(file.clone());
        Ok(file)
    }

    /// True when the synced cursor differs from `noted`.
    pub(super) fn is_behind(&self, noted: CursorState) -> bool {
        self.synced.is_none_or(|(synced, _)| synced != noted)
    }

    /// Up to where records are settled, by the synced cursor.
    pub(super) fn safe(&self) -> Option<Totals> {
        self.synced.map(|(noted, _)| noted.settled)
    }

    /// The file to sync, when the written cursor is not synced, and whether the file's name is new.
    pub(super) fn begin(&mut self) -> Option<(F, bool)> {
        if self.written.is_none() || self.written == self.synced {
            return None;
        }
        let file = self.file.clone()?;
        self.running = self.written;
        self.since_ns = None;
        Some((file, self.name_is_new))
    }

    /// Stops using the file when it is not in the directory any more; the other one is written from then on.
    pub(super) fn check_file(&mut self, is_there: impl FnOnce(&str) -> bool) {
        if self.file.is_some() && self.running.is_none() && !is_there(NAMES[self.name]) {
            self.file = None;
            self.name = 1 - self.name;
            (self.written, self.synced) = (None, None);
        }
    }

    /// The sync ended. Returns the cursor that is synced now, if it succeeded.
    pub(super) fn finish(&mut self, good: bool) -> Option<CursorState> {
        let ran = self.running.take()?;
        if !good {
            // The other file may have a slot that was synced; the new slots have higher numbers.
            self.file = None;
            self.name = 1 - self.name;
            (self.written, self.synced) = (None, None);
            return None;
        }
        self.name_is_new = false;
        self.synced = Some(ran);
        Some(ran.0)
    }
}
