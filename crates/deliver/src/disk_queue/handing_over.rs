//! A hot restart: the position of a queue is handed to another process, which goes on from there.
//!
//! Not here: the position as bytes (`unsettled`).

use model::Disk;

use super::DiskQueue;
use super::state::Returned;
use super::unsettled::{Unsettled, end_of};

impl<D: Disk> DiskQueue<D> {
    /// The position, when no sender holds an entry. None when nothing was read, when an entry is still held, and when
    /// a damaged segment has to be kept: the next process reads that one again and finds the damage.
    pub fn unsettled(&mut self) -> Option<Unsettled> {
        self.take_notes();
        if self.read.records == 0
            || self.segments.iter().any(|segment| segment.unreadable || segment.kept_whole)
        {
            return None;
        }
        let records = self.settlement.records().map(|(header, place)| {
            let progress = match self.returned.get(&header.before.records)? {
                Returned::Entry(entry) => entry.progress(),
                Returned::Progress(progress) => *progress,
            };
            Some((header, place, progress))
        });
        let records = records.collect::<Option<_>>()?;
        Some(Unsettled { queue_id: self.queue_id, read: self.read, place: self.place, records })
    }

    /// Continues from another process's position. Its unsettled records are the next ones to be sent.
    pub(super) fn resume_from(&mut self, unsettled: Unsettled) {
        let Unsettled { read, place, records, .. } = unsettled;
        let place = self.place.max(place);
        let mut done = self.read.records;
        for (header, start, progress) in records {
            let number = header.before.records;
            if number > done {
                self.settlement.settle_range(done, header.before, start);
            }
            self.settlement.add_popped(header, start, end_of(&header, start));
            self.count_returned(u64::from(progress.copies_left), header.disk_bytes(), true);
            self.returned.insert(number, Returned::Progress(progress));
            done = number + 1;
        }
        if read.records > done {
            self.settlement.settle_range(done, read, place);
        }
        (self.read, self.place) = (read, place);
    }
}
