//! What cannot be used is kept aside, with the reason, as far as there is room for it: somebody may want to look.

use model::{Disk, DiskError};

use super::DiskQueueCounts;
use super::format::{is_quarantine, quarantine_name, segment_name};
use super::scan::{Damage, DamageKind};

const PIECE_BYTES: u64 = 64 * 1024;

/// The side files of one queue.
#[derive(Debug)]
pub(super) struct Quarantine {
    bytes: u64,
    bytes_max: u64,
}

impl Quarantine {
    /// Counts what earlier runs left.
    pub(super) fn new<D: Disk>(disk: &D, names: &[String], bytes_max: u64) -> Quarantine {
        let sizes = names.iter().filter(|name| is_quarantine(name)).filter_map(|name| {
            let file = disk.open(name).ok()?;
            disk.size(&file).ok()
        });
        Quarantine { bytes: sizes.sum(), bytes_max }
    }

    /// Removes all side files: how many, and their bytes.
    pub(super) fn remove<D: Disk>(&mut self, disk: &D) -> Result<(u64, u64), DiskError> {
        let (mut files, mut bytes) = (0, 0);
        for name in disk.list()?.iter().filter(|name| is_quarantine(name)) {
            let size = disk.open(name).and_then(|file| disk.size(&file)).unwrap_or(0);
            disk.remove(name)?;
            files += 1;
            bytes += size;
            self.bytes = self.bytes.saturating_sub(size);
        }
        Ok((files, bytes))
    }

    /// Copies a damaged range to a file of its own: one line with the reason, then the bytes that can be read.
    pub(super) fn keep_range<D: Disk>(
        &mut self,
        disk: &D,
        sequence: u64,
        damage: Damage,
        counts: &mut DiskQueueCounts,
    ) {
        let Damage { from, to, kind } = damage;
        counts.damaged_ranges += 1;
        let name = segment_name(sequence);
        let reason = format!("{name}, bytes {from} to {to}: {}\n", kind.why());
        let room = self.bytes_max.saturating_sub(self.bytes);
        if reason.len() as u64 + (to - from) > room {
            counts.quarantine_full += 1;
            return;
        }
        let Ok(source) = disk.open(&name) else { return };
        // An earlier run may have found the same range.
        let Ok(target) = disk.create(&quarantine_name(sequence, Some(from))) else { return };
        let mut written = 0;
        let mut put = |bytes: &[u8]| -> Result<(), DiskError> {
            disk.write_at(&target, written, &[bytes])?;
            written += bytes.len() as u64;
            Ok(())
        };
        let mut result = put(reason.as_bytes());
        let mut at = from;
        while at < to && result.is_ok() {
            let mut piece = vec![0; PIECE_BYTES.min(to - at) as usize];
            if disk.read_at(&source, at, &mut piece).is_ok() {
                result = put(&piece);
            }
            at += piece.len() as u64;
        }
        self.bytes += written;
        counts.quarantined_bytes += written;
        counts.write_errors += u64::from(result.is_err());
    }

    /// Moves a whole segment aside. It is removed when there is no room for it. An error leaves it where it is.
    pub(super) fn keep_segment<D: Disk>(
        &mut self,
        disk: &D,
        sequence: u64,
        size: u64,
        kind: DamageKind,
        counts: &mut DiskQueueCounts,
    ) -> Result<(), DiskError> {
        counts.damaged_ranges += u64::from(kind == DamageKind::Foreign);
        if size > self.bytes_max.saturating_sub(self.bytes) {
            counts.quarantine_full += 1;
            return disk.remove(&segment_name(sequence));
        }
        disk.rename(&segment_name(sequence), &quarantine_name(sequence, None))?;
        self.bytes += size;
        counts.quarantined_bytes += size;
        Ok(())
    }
}
