//! The cursor file: how far everything is settled, and up to where it was written, in three slots.
//!
//! A write goes to the slot that is neither the one that was synced last nor the one that was written last: wherever it
//! is torn, the next process finds the last write, and the next machine the last sync. A file whose sync failed is
//! given up for another one. The next process does not know of that: it writes the slot that it found again before it trusts it.

use model::{Disk, DiskError};

use super::format::{CURSOR_BYTES, Place, SLOT_BYTES, SLOT_BYTES_MIN, SLOT_OFFSETS, Slot, Totals};

pub(super) const NAMES: [&str; 2] = ["cursor-0", "cursor-1"];

/// What a cursor tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Noted {
    /// Everything before it has its outcome.
    pub(super) settled: Totals,
    /// Where the first record is that has none.
    pub(super) place: Place,
    /// Everything before it was written to segments: what of it the next run does not find is gone.
    pub(super) written: Totals,
}

#[derive(Debug)]
pub(super) struct Cursor<F> {
    queue_id: u64,
    /// The file in use and its place in [`NAMES`].
    file: Option<F>,
    name: usize,
    write: u64,
    /// What was written last, and the slot that has it.
    written: Option<(Noted, usize)>,
    synced: Option<(Noted, usize)>,
    /// What the sync that runs will make safe.
    running: Option<(Noted, usize)>,
    /// When `written` or what should be written first differed from `synced`.
    pub(super) since_ns: Option<u64>,
    /// When `written` first differed from what should be written. None also while a write fails: it is tried again with
    /// the next sync.
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

/// Makes a slot safe that an earlier run wrote. Its own sync may have failed, after which the system calls the bytes clean: a
/// sync alone would prove nothing. The same bytes in their place change nothing, wherever the write is torn.
fn make_safe<D: Disk>(disk: &D, file: &D::File, offset: u64) -> Result<(), DiskError> {
    let len = slot_len(disk, file, offset)?;
    let bytes = read_slot(disk, file, offset).or_else(|_| read_slot(disk, file, offset))?;
    disk.write_at(file, offset, &[&bytes[..len]])?;
    disk.sync(file)?;
    disk.sync_directory()
}

type SlotBytes = [u8; SLOT_BYTES];

/// What [`read_slots`] gives.
type Slots = (Vec<(Slot, usize, usize)>, bool);

/// All slots that can be read, of any queue, with what each needs to go on: (slot, name, place of the slot). And whether
/// a cursor was written once, readable or not: a file that was only prepared is all zeros. `passed` says which errors
/// are passed over; a file that is not there is none.
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
    /// Goes on after the slot that recovery chose.
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
            // Nobody knows whether this slot was synced; the other ones may only be written when it is.
            let is_safe = |file: &F| make_safe(disk, file, SLOT_OFFSETS[place]).is_ok();
            cursor.file = disk.open(NAMES[name]).ok().filter(is_safe);
            match cursor.file {
                Some(_) => cursor.synced = Some((slot.noted(), place)),
                None => cursor.name = 1 - name,
            }
            cursor.written = cursor.synced;
        }
        // Without room for it now there may be some later.
        let _prepared = cursor.open(disk);
        cursor
    }

    /// Notes when `noted` is to be written.
    pub(super) fn look(&mut self, noted: Noted, now_ns: u64) {
        let is_written = self.written.is_some_and(|(written, _)| written == noted);
        if is_written || self.failed {
            self.unwritten_since_ns = None;
        } else {
            self.unwritten_since_ns.get_or_insert(now_ns);
        }
    }

    /// Writes `noted` if it is news. What is written survives this process, and not the machine.
    pub(super) fn write<D: Disk<File = F>>(&mut self, disk: &D, noted: Noted) -> Result<(), DiskError> {
        let result = self.try_write(disk, noted);
        self.unwritten_since_ns = None;
        self.failed = result.is_err();
        result
    }

    fn try_write<D: Disk<File = F>>(&mut self, disk: &D, noted: Noted) -> Result<(), DiskError> {
        debug_assert!(self.running.is_none(), "the slot is being synced");
        if self.written.is_some_and(|(written, _)| written == noted) {
            return Ok(());
        }
        let file = self.open(disk)?;
        let taken = [self.written, self.synced].map(|kept| kept.map(|(_, at)| at));
        let at = (0..SLOT_OFFSETS.len()).find(|at| !taken.contains(&Some(*at)));
        let at = at.expect("two of three slots are taken at most");
        let write = self.write.saturating_add(1);
        let Noted { settled, place, written } = noted;
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
        // All the room it will ever need: a full disk must not stop the cursor, which is what frees segments.
        disk.write_at(&file, 0, &[&[0; CURSOR_BYTES]])?;
        self.name_is_new = true;
        self.file = Some(file.clone());
        Ok(file)
    }

    /// True when what is safe lags behind `noted`.
    pub(super) fn is_behind(&self, noted: Noted) -> bool {
        self.synced.is_none_or(|(synced, _)| synced != noted)
    }

    /// How far everything is settled, as far as that is synced.
    pub(super) fn safe(&self) -> Option<Totals> {
        self.synced.map(|(noted, _)| noted.settled)
    }

    /// The file to sync, when what was written is not safe, and whether its name is new.
    pub(super) fn begin(&mut self) -> Option<(F, bool)> {
        if self.written.is_none() || self.written == self.synced {
            return None;
        }
        let file = self.file.clone()?;
        self.running = self.written;
        self.since_ns = None;
        Some((file, self.name_is_new))
    }

    /// Gives the file up when it is none of those that `is_there`; another one is written then.
    pub(super) fn look_for_file(&mut self, is_there: impl FnOnce(&str) -> bool) {
        if self.file.is_some() && self.running.is_none() && !is_there(NAMES[self.name]) {
            self.file = None;
            self.name = 1 - self.name;
            (self.written, self.synced) = (None, None);
        }
    }

    /// The sync ended. Returns what is safe now, if that is news.
    pub(super) fn finish(&mut self, good: bool) -> Option<Noted> {
        let ran = self.running.take()?;
        if !good {
            // The other file keeps what was safe in this one until it is read and outnumbered.
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
