//! The queue of one output on disk: accepted records survive a crash of the process, synced ones also a loss of power.
//!
//! Path of a packet: pipeline -> [`DiskQueue::append`] -> a segment -> [`DiskQueue::pop`] -> a sender -> settled.
//! Pure: files come in as a [`Disk`], time as [`Now`], and a sync is a job that the caller performs on its own thread.
//! Not here: the lock on the directory, the sync thread, senders.
//!
//! How the binary uses it: `append` and `pop` as with a queue in memory. At [`DiskQueue::sync_due_ns`] take
//! [`DiskQueue::begin_sync`], perform it without a lock on the queue, and report by [`DiskQueue::on_synced`]. A block's
//! position is [`DiskQueue::accepted_up_to`] before its `append`; [`DiskQueue::promise`] returns its durability. At the
//! end: settle or drop all entries, take [`DiskQueue::begin_last_sync`], perform it, report it, drop the queue. Dropping
//! unsettled entries, or the queue, loses nothing: the next run reads those records again.
//!
//! Guarantees, with a disk that keeps synced bytes:
//! - No record that was reported as safe is lost.
//! - No record is delivered again that was settled, with all records before it, before the last cursor that was
//!   written (a killed process) or synced (a loss of power).
//! - Any bytes in the directory can be opened. Every undamaged record is read, and the copies of damaged ones are
//!   counted as dropped (`damaged`) where a header, the end mark of a segment or the cursor shows that they existed.
//!
//! # Format
//!
//! A directory has segments (`0000000000000001.segment`), two cursor files of which one is in use (`cursor-0`,
//! `cursor-1`), and the quarantine (`….quarantine`: one line with the reason and a copy of the bytes, or a whole
//! segment). Numbers are little-endian. `checksum` is XXH3-64 of all bytes of the structure before it, with the seed
//! given. `totals` are four numbers of 8 bytes: records, copies, bytes of copies and bytes on disk since the queue
//! was created. Every header has them, so what lies between any two headers is known exactly, without reading it.
//! After the last record of a segment comes its end mark, the header of an empty record of encoding 3. The next
//! record overwrites it.
//!
//! | segment header | bytes | | record header | bytes | | cursor slot | bytes |
//! |---|---|---|---|---|---|---|---|
//! | magic `STNSEG\r\n` | 8 | | marker `f1 53 71 1a` | 4 | | magic `STNCUR\r\n` | 8 |
//! | version 1 | 4 | | encoding: 0 lines, 1 frames, 2 packets, 3 mark | 4 | | version 2 | 4 |
//! | size of this header, 80 | 4 | | queue id | 8 | | size of this slot, 120 | 4 |
//! | queue id, random | 8 | | totals before it | 32 | | queue id | 8 |
//! | sequence number, as in the name | 8 | | created at, Unix ns | 8 | | number of this write | 8 |
//! | totals before it | 32 | | bytes of its copies | 8 | | segment of the first unsettled record | 8 |
//! | created at, Unix ns | 8 | | copies | 4 | | its offset there | 8 |
//! | checksum, seed 0 | 8 | | bytes of boundaries, 8 per frame or packet | 4 | | totals up to there | 32 |
//! | | | | bytes of the block | 4 | | totals of all written records | 32 |
//! | | | | partition + 1; 0: none | 4 | | checksum, seed 0 | 8 |
//! | | | | checksum of the body, seed below | 8 | | | |
//! | | | | checksum, seed queue id | 8 | | | |
//!
//! After a record's header come the boundaries (frames: end, copies; packets: offset, length; 4 bytes each) and the
//! block. The body's checksum is that of the block, seeded by that of the boundaries, seeded by the queue id. The id
//! never leaves the disk, so a record inside bytes from the network does not match. The slots of a cursor file are at
//! 0, 4096 and 8192; the one with the highest number of a write is valid. Slots of version 1, of 88 bytes without the
//! written totals, are read as well. Segments whose records are all settled are removed once the cursor is synced.

pub(crate) mod commit;
mod cursor;
mod expiry;
#[cfg(any(test, feature = "faulty_disk"))]
pub mod faulty_disk;
mod format;
mod handing_over;
mod holding;
pub mod inspect;
#[cfg(test)]
mod inspect_test;
mod misplaced;
mod missing;
#[cfg(test)]
mod missing_test;
#[cfg(test)]
mod model_test;
#[cfg(test)]
mod old_format_test;
#[cfg(any(test, feature = "faulty_disk"))]
pub mod promises;
mod quarantine;
mod reading;
mod recovery;
pub mod salvage;
mod scan;
pub(crate) mod settle;
mod stalled;
#[cfg(test)]
mod stalled_test;
mod stamps;
mod state;
#[cfg(test)]
mod tests;
mod unsettled;
mod writing;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use model::{CopyOutcome, Disk, DiskError, Dropped, Now, OutputAccount};

use crate::block::Block;
use crate::pause::MS_NS;
use crate::plan::{QueueKind, QueueLimits};
use crate::queue::entry::{Appended, Entry};
use crate::queue::interface::Queue;
use crate::queue::wait::WaitBudget;
use commit::{Commit, NotSynced};
pub use commit::{Promise, SyncDone, SyncJob, Synced};
use cursor::Cursor;
pub use format::Totals;
use format::{Place, RecordHeader};
pub(crate) use format::{decode_boundaries, encode_boundaries, encoding_code};
pub use missing::{DirectoryCheck, DirectoryListing, Missing};
use quarantine::Quarantine;
pub use quarantine::{QuarantineReason, QuarantinedSegment};
use recovery::Survey;
pub use recovery::{Recovery, Unreadable};
pub use scan::DamageKind;
use scan::SegmentReader;
use settle::Settlement;
pub use settle::{OPEN_RECORDS_MAX, Position};
pub(crate) use settle::{Progress, SettleLog};
use stamps::Stamps;
pub use state::{DiskQueueCounts, FAILING_MS_MAX, HELD_BYTES_MAX, READ_AGAIN_MS};
use state::{Expiry, Held, KeptOpen, Returned, Segment, Stalled};
pub use unsettled::Unsettled;

/// Settings of a queue on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskQueuePlan {
    /// Limits. `max_bytes` counts the unsettled records on disk. Files are removed as a whole, so up to
    /// `segment_bytes` more may be in use, and the records settled since the last cursor.
    pub limits: QueueLimits,
    /// A segment that would grow larger is closed and a new one created. A single record may be larger.
    pub segment_bytes: u64,
    /// How long an accepted record may wait for a group sync, in milliseconds.
    pub sync_window_ms: u64,
    /// How long a settled record may wait until the cursor is synced: those records may be delivered twice after a
    /// loss of power.
    pub cursor_window_ms: u64,
    /// Most bytes of damaged ranges to keep in the quarantine.
    pub quarantine_bytes_max: u64,
}

/// Share of a queue's bound that one segment takes at most: files are removed as a whole.
const SEGMENTS_MIN: u64 = 8;

/// Segments are at least this large, in queues of four of them or more. A file system that has to make hundreds of files a second spends
/// more on them than on the records: ext4 looks through the files removed in the last five seconds for each new one.
const SEGMENT_BYTES_LEAST: u64 = 2 << 20;

impl DiskQueuePlan {
    /// The plan of a queue within `limits`: small queues have small segments.
    pub fn within(limits: QueueLimits, sync_window_ms: u64) -> DiskQueuePlan {
        let usual = DiskQueuePlan::default();
        let least = if limits.bytes_max / 4 >= SEGMENT_BYTES_LEAST { SEGMENT_BYTES_LEAST } else { 0 };
        let segment_bytes = usual.segment_bytes.min((limits.bytes_max / SEGMENTS_MIN).max(least));
        DiskQueuePlan { limits, sync_window_ms, segment_bytes, ..usual }
    }
}

impl Default for DiskQueuePlan {
    fn default() -> Self {
        DiskQueuePlan {
            limits: QueueLimits::default_of(QueueKind::Disk { sync_window_ms: 10 }),
            segment_bytes: 64 << 20,
            sync_window_ms: 10,
            cursor_window_ms: 250,
            quarantine_bytes_max: 256 << 20,
        }
    }
}

/// A bug that the model test and the simulator must find. The feature `canary` is never on in a release:
/// [`crate::HAS_CANARIES`].
#[cfg(any(test, feature = "canary"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canary {
    /// A record is reported as safe when it is written and not synced.
    SafeBeforeSync,
    /// The cursor treats records that were read as settled.
    CursorPastUnsettled,
    /// A failed sync counts as a good one.
    SyncTriedAgain,
    /// A segment is removed when its last record was read.
    SegmentRemovedTooEarly,
    /// Bytes that could not be read for lack of a descriptor count as damaged.
    ScarcityIsDamage,
}

/// See the module's header.
#[derive(Debug)]
pub struct DiskQueue<D: Disk> {
    disk: D,
    plan: DiskQueuePlan,
    account: Arc<OutputAccount>,
    queue_id: u64,
    /// Maps the wall clock, which the disk stores, to the monotonic one, for as long as the queue is open: steps of
    /// the wall clock meanwhile change no age.
    stamps: Stamps,
    opened_end: u64,
    /// Copies of earlier runs that were lost without having been read.
    lost_before_start: u64,
    segments: VecDeque<Segment>,
    /// The last segment, while it is open for writing.
    writer: Option<D::File>,
    next_sequence: u64,
    end: Totals,
    reader: Option<SegmentReader<D::File>>,
    place: Place,
    read: Totals,
    /// The next record to read, once it has been looked up.
    front: Option<(RecordHeader, Place)>,
    /// Open files of segments that cannot be opened by name.
    kept_open: KeptOpen<D::File>,
    /// The directory was unavailable at the last check or sync.
    is_away: bool,
    /// Why nothing can be read; none while reading works.
    stalled: Option<Stalled>,
    expiry: Expiry,
    /// Monotonic time of the last call that had the time as an argument.
    now_ns: u64,
    returned: BTreeMap<u64, Returned>,
    returned_copies: u64,
    returned_bytes: u64,
    settlement: Settlement,
    log: Arc<SettleLog>,
    commit: Commit<D::File>,
    cursor: Cursor<D::File>,
    /// Segments were dropped because the disk is full, and the cursor that frees them is not synced yet.
    making_room: bool,
    /// Space reserved in the open segment, up to this offset.
    reserved: u64,
    /// Error of the last write; none when it succeeded.
    write_error: Option<DiskError>,
    held: Held,
    wait: Box<WaitBudget>,
    quarantine: Quarantine,
    counts: DiskQueueCounts,
    /// Reused for each append.
    boundaries: Vec<u8>,
    #[cfg(any(test, feature = "canary"))]
    canary: Option<Canary>,
}

/// A queue that was read and is not open yet, see [`DiskQueue::prepare`].
#[derive(Debug)]
pub struct Prepared<D: Disk> {
    disk: D,
    plan: DiskQueuePlan,
    survey: Survey,
    quarantine: Quarantine,
}

impl<D: Disk> Prepared<D> {
    /// The second half of opening: cleans up the directory, and counts the queued records as routed.
    ///
    /// # Errors
    /// Only with [`Unreadable::Skip`], when an unreadable segment cannot be quarantined.
    pub fn open(
        self,
        account: Arc<OutputAccount>,
        fresh_id: u64,
        now: Now,
    ) -> Result<(DiskQueue<D>, Recovery), DiskError> {
        self.open_after(None, account, (fresh_id, now))
    }

    /// The second half of opening, from the position that the predecessor process handed over.
    ///
    /// # Errors
    /// As [`Prepared::open`].
    pub fn open_after(
        self,
        unsettled: Option<Unsettled>,
        account: Arc<OutputAccount>,
        (fresh_id, now): (u64, Now),
    ) -> Result<(DiskQueue<D>, Recovery), DiskError> {
        DiskQueue::of_prepared(self, unsettled, account, (fresh_id, now))
    }
}

impl<D: Disk> DiskQueue<D> {
    /// Opens the directory, whatever its content, and counts the queued records as routed. Fails when the directory
    /// cannot be listed, or something in it cannot be read for a reason that may pass ([`DiskError::passes`]): then
    /// nothing was changed, and the caller retries later. Unreadable bytes are skipped. `fresh_id` is a random
    /// number: the id of a new queue.
    pub fn open(
        disk: D,
        plan: DiskQueuePlan,
        account: Arc<OutputAccount>,
        fresh_id: u64,
        now: Now,
    ) -> Result<(DiskQueue<D>, Recovery), DiskError> {
        DiskQueue::open_with(disk, plan, account, (fresh_id, Unreadable::Skip), now)
    }

    /// As [`DiskQueue::open`], with a choice of what happens to unreadable bytes.
    pub fn open_with(
        disk: D,
        plan: DiskQueuePlan,
        account: Arc<OutputAccount>,
        (fresh_id, unreadable): (u64, Unreadable),
        now: Now,
    ) -> Result<(DiskQueue<D>, Recovery), DiskError> {
        DiskQueue::prepare(disk, plan, unreadable)?.open(account, fresh_id, now)
    }

    /// The first half of opening: reads everything needed, and changes nothing. Another process may still use the
    /// directory, as long as it writes nothing there between this call and [`Prepared::open`].
    ///
    /// # Errors
    /// As [`DiskQueue::open`].
    pub fn prepare(disk: D, plan: DiskQueuePlan, unreadable: Unreadable) -> Result<Prepared<D>, DiskError> {
        let survey = recovery::survey(&disk, unreadable, false)?;
        let quarantine = Quarantine::new(&disk, &survey.names, plan.quarantine_bytes_max)?;
        Ok(Prepared { disk, plan, survey, quarantine })
    }

    fn of_prepared(
        Prepared { disk, plan, survey, quarantine }: Prepared<D>,
        unsettled: Option<Unsettled>,
        account: Arc<OutputAccount>,
        (fresh_id, now): (u64, Now),
    ) -> Result<(DiskQueue<D>, Recovery), DiskError> {
        let found = recovery::recover(&disk, (survey, quarantine), plan.segment_bytes, fresh_id)?;
        let was_handed_over = unsettled.is_some();
        let begin = (found.settled, found.place);
        let unsettled = unsettled.filter(|unsettled| unsettled.fits(found.queue_id, begin, found.end));
        let waiting = unsettled
            .as_ref()
            .map_or_else(|| found.end.since(found.settled), |unsettled| unsettled.waiting(found.end));
        account.route(waiting.copies, waiting.copy_bytes);
        count_queued_bytes(&account, waiting.disk_bytes);
        let report = Recovery {
            copies_queued: waiting.copies,
            queued_bytes: waiting.disk_bytes,
            unsettled_lost: was_handed_over && unsettled.is_none(),
            ..found.report
        };
        let ends = found.segments.iter().skip(1).map(|next| next.before.records).chain([found.end.records]);
        let ranges = found.segments.iter().zip(ends).map(|(segment, end)| {
            let first = segment.before.records;
            (segment.sequence, first..end.max(first))
        });
        let commit = Commit::new(ranges, found.end.records, now.mono_ns);
        let mut queue = DiskQueue {
            disk,
            plan,
            account,
            queue_id: found.queue_id,
            stamps: Stamps::new(now, found.end.records),
            opened_end: found.end.records,
            lost_before_start: 0,
            segments: found.segments,
            writer: None,
            next_sequence: found.next_sequence,
            end: found.end,
            reader: None,
            place: found.place,
            read: found.settled,
            front: None,
            kept_open: KeptOpen::default(),
            is_away: false,
            stalled: None,
            expiry: Expiry::default(),
            now_ns: now.mono_ns,
            returned: BTreeMap::new(),
            returned_copies: 0,
            returned_bytes: 0,
            settlement: Settlement::new(found.settled, found.place),
            log: Arc::default(),
            commit,
            cursor: found.cursor,
            making_room: false,
            reserved: 0,
            write_error: None,
            held: Held::default(),
            wait: Box::default(),
            quarantine: found.quarantine,
            counts: found.counts,
            boundaries: Vec::new(),
            #[cfg(any(test, feature = "canary"))]
            canary: None,
        };
        unsettled.into_iter().for_each(|unsettled| queue.resume_from(unsettled));
        if queue.cursor_is_behind() {
            // Makes the found files part of the cursor, so that losing more of them is noticed. Retried with the
            // first sync.
            let _noted = queue.cursor.write(&queue.disk, queue.noted());
        }
        Ok((queue, report))
    }

    /// Drops all records that no sender holds.
    pub fn drop_all(&mut self, reason: Dropped) {
        self.take_notes();
        while self.drop_front(reason) {}
    }

    /// Every block before it is safe or in doubt.
    pub fn safe_up_to(&self) -> Position {
        Position(self.commit.safe_up_to())
    }

    /// When [`DiskQueue::begin_sync`] is due, monotonic nanoseconds. None while a job runs, or when nothing is to be
    /// synced. It may then return no job: writing the cursor needs none.
    pub fn sync_due_ns(&mut self, now: Now) -> Option<u64> {
        self.take_notes();
        if self.commit.is_running() {
            return None;
        }
        if self.commit.waits {
            self.commit.again(now.mono_ns.saturating_add(READ_AGAIN_MS * MS_NS));
        }
        if self.cursor_is_behind() {
            self.cursor.since_ns.get_or_insert(now.mono_ns);
            self.cursor.look(self.noted(), now.mono_ns);
        }
        let after = |since_ns: u64, window_ms: u64| since_ns.saturating_add(window_ms.saturating_mul(MS_NS));
        let records = self.commit.since_ns().map(|since_ns| after(since_ns, self.plan.sync_window_ms));
        let window_ms = self.cursor_window_ms();
        let cursor = self.cursor.since_ns.map(|since_ns| after(since_ns, window_ms));
        // Written sooner than synced: a killed process redelivers no more records than fit into one window of syncs.
        let write = self.cursor.unwritten_since_ns.map(|since_ns| after(since_ns, self.plan.sync_window_ms));
        let due = records.into_iter().chain(cursor).chain(write);
        due.chain(self.held_due_ns()).chain(self.read_due_ns()).min()
    }

    /// What to sync now. None while an earlier job runs, or when there is nothing.
    pub fn begin_sync(&mut self, now: Now) -> Option<SyncJob<D::File>> {
        self.retry_held(now);
        let window_ms = self.cursor_window_ms();
        let due_ns = |since_ns: u64| since_ns.saturating_add(window_ms.saturating_mul(MS_NS));
        let cursor_due = self.cursor.since_ns.is_some_and(|since_ns| due_ns(since_ns) <= now.mono_ns);
        self.begin(cursor_due)
    }

    fn cursor_window_ms(&self) -> u64 {
        if self.making_room { self.plan.sync_window_ms } else { self.plan.cursor_window_ms }
    }

    /// A last sync, with the cursor, before the queue is closed. Blocks held in memory are written or dropped first.
    pub fn begin_last_sync(&mut self) -> Option<SyncJob<D::File>> {
        self.write_or_drop_held();
        self.begin(true)
    }

    /// Takes the result of a job. Removes segments that are settled.
    pub fn on_synced(&mut self, mut done: SyncDone) -> Synced {
        self.take_notes();
        self.allow_removed(&mut done);
        let failed = |result: &Result<(), DiskError>| result.err();
        let segments = done.segments.iter().filter_map(|(_, result)| match result {
            Err(NotSynced::Failed(error)) => Some(*error),
            Ok(()) | Err(NotSynced::NotOpened(_)) => None,
        });
        let not_opened = |(_, result): &&(u64, _)| matches!(result, Err(NotSynced::NotOpened(_)));
        self.counts.read_errors += done.segments.iter().filter(not_opened).count() as u64;
        let errors: Vec<DiskError> =
            segments.chain(failed(&done.directory)).chain(failed(&done.cursor)).collect();
        self.counts.sync_errors += errors.len() as u64;
        #[cfg(any(test, feature = "canary"))]
        let done = self.ignore_failed_sync(done);
        let (closed, in_doubt_records) = self.commit.finish(&done);
        self.counts.in_doubt_records += in_doubt_records;
        self.is_away |= errors.contains(&DiskError::Away);
        for (sequence, file) in closed {
            self.close(sequence, file);
        }
        let cursor_good = done.cursor.is_ok() && done.directory.is_ok();
        let cursor = self.cursor.finish(cursor_good).map(|noted| noted.settled);
        if let Some(settled) = cursor {
            self.making_room = false;
            self.remove_settled(settled);
        }
        let cursor = cursor.map(|settled| Position(settled.records));
        Synced { safe_up_to: self.safe_up_to(), in_doubt_records, cursor, error: errors.first().copied() }
    }

    /// Enables a bug.
    #[cfg(any(test, feature = "canary"))]
    pub fn enable_canary(&mut self, canary: Option<Canary>) {
        self.canary = canary;
    }

    /// The canary that treats a failed sync as a good one.
    #[cfg(any(test, feature = "canary"))]
    fn ignore_failed_sync(&self, mut done: SyncDone) -> SyncDone {
        if self.canary == Some(Canary::SyncTriedAgain) {
            done.segments.iter_mut().for_each(|segment| segment.1 = Ok(()));
        }
        done
    }

    /// Errors of the disk so far.
    pub fn counts(&self) -> DiskQueueCounts {
        self.counts
    }

    /// Names of the files in the quarantine.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn quarantined(&self) -> Result<Vec<String>, DiskError> {
        let mut names = self.disk.list()?;
        names.retain(|name| format::is_quarantine(name));
        Ok(names)
    }

    /// Removes a file from the quarantine; returns its bytes. None when it was removed already to make room.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove_quarantined(&mut self, name: &str) -> Result<Option<u64>, DiskError> {
        match self.quarantine.remove(&self.disk, name) {
            Err(DiskError::NotFound) => Ok(None),
            removed => {
                self.counts.remove_errors += u64::from(removed.is_err());
                removed.map(Some)
            }
        }
    }

    /// Empties the quarantine; returns the number of files and their bytes. It keeps the lock on the queue: where
    /// others wait for it, use [`Self::remove_quarantined`], file by file.
    pub fn remove_quarantine(&mut self) -> Result<(u64, u64), DiskError> {
        let (mut files, mut bytes) = (0, 0);
        for name in self.quarantined()? {
            if let Some(size) = self.remove_quarantined(&name)? {
                files += 1;
                bytes += size;
            }
        }
        Ok((files, bytes))
    }

    /// Error of the last write; none when it succeeded. While there is one, the disk accepts nothing.
    pub fn write_error(&self) -> Option<DiskError> {
        self.write_error
    }

    /// Segments on disk.
    pub fn segments(&self) -> usize {
        self.segments.len()
    }

    /// The current settings.
    pub fn plan(&self) -> DiskQueuePlan {
        self.plan
    }

    /// Sets other settings, from the next call on; a smaller `max_bytes` drops nothing by itself.
    pub fn set_plan(&mut self, plan: DiskQueuePlan) {
        self.plan = plan;
    }

    /// The account of the output.
    pub fn account(&self) -> &Arc<OutputAccount> {
        &self.account
    }

    pub(crate) fn wait(&self) -> &WaitBudget {
        &self.wait
    }

    pub(crate) fn wait_mut(&mut self) -> &mut WaitBudget {
        &mut self.wait
    }

    /// Reads the notes of entries that were settled or dropped.
    fn take_notes(&mut self) {
        for (number, left) in self.log.take() {
            match left {
                None => self.settlement.mark_settled(number),
                Some(progress) => {
                    let bytes = self.settlement.find(number).map_or(0, |(header, _)| header.disk_bytes());
                    self.count_returned(u64::from(progress.copies_left), bytes, true);
                    self.returned.insert(number, Returned::Progress(progress));
                }
            }
        }
        self.commit.forget(self.settlement.settled().records);
    }

    fn count_returned(&mut self, copies: u64, bytes: u64, came: bool) {
        if came {
            self.returned_copies += copies;
            self.returned_bytes += bytes;
        } else {
            self.returned_copies -= copies;
            self.returned_bytes -= bytes;
        }
    }
}

impl<D: Disk> Queue for DiskQueue<D> {
    /// Appends a block, within the limits. See [`Appended`]. Its position is [`DiskQueue::accepted_up_to`] before the
    /// call.
    ///
    /// A block larger than the limit is dropped (`queue_full`). A full disk counts as a full queue: with
    /// `drop_oldest` the oldest segment is dropped, and the new block with it if that does not free space at once. On
    /// a disk that fails, the block is returned whatever `when_full` says; a source that cannot wait calls
    /// [`DiskQueue::hold`].
    fn append(&mut self, block: Block, now: Now) -> Appended {
        if block.copies == 0 && block.bytes.is_empty() {
            return Appended::Kept;
        }
        self.expire(now);
        self.retry_held(now);
        let header =
            self.header_of(&block, now).filter(|header| header.disk_bytes() <= self.plan.limits.bytes_max);
        let Some(header) = header else {
            self.drop_block(block, Dropped::QueueFull);
            return Appended::Dropped;
        };
        self.expire_for_room((header.disk_bytes(), u64::from(header.copies)), now);
        let waiting = self.account.queued_bytes.load(Relaxed).saturating_add(header.disk_bytes());
        let room = (waiting, self.plan.limits.bytes_max);
        self.quarantine.make_room_for(&self.disk, room, &mut self.counts);
        let block = match self.fit(block, header.disk_bytes()) {
            Ok(block) => block,
            Err(appended) => return appended,
        };
        if self.held.len() > 0 {
            // It comes after the held blocks.
            return Appended::Full(block);
        }
        if let Err(error) = self.write(&header, &block, now) {
            return self.not_written(block, error, now);
        }
        self.account.route(u64::from(header.copies), header.copy_bytes);
        count_queued_bytes(&self.account, header.disk_bytes());
        Appended::Kept
    }

    /// Counts a block as routed and dropped without storing it.
    fn drop_block(&self, block: Block, reason: Dropped) {
        self.account.pass(CopyOutcome::Dropped(reason), u64::from(block.copies), block.copy_bytes());
    }

    /// Takes the oldest block that no sender holds. It stays on disk until it is settled. Several blocks may be held
    /// at once and settled in any order.
    fn pop(&mut self, now: Now) -> Option<Entry> {
        self.expire(now);
        if self.expiry.has_more() {
            return None;
        }
        while let Some((number, returned)) = self.returned.pop_first() {
            match returned {
                Returned::Entry(entry) => {
                    self.count_returned(entry.copies(), entry.memory_bytes(), false);
                    return Some(entry);
                }
                Returned::Progress(progress) => {
                    let entry = self.read_returned(number, progress);
                    if entry.is_some() || self.stalled.is_some() {
                        return entry;
                    }
                }
            }
        }
        if self.settlement.len() >= OPEN_RECORDS_MAX {
            return None;
        }
        self.read_next()
    }

    /// Returns a block to its place: it is the next one again, and may be dropped like any other.
    fn put_back(&mut self, entry: Entry) {
        self.take_notes();
        let own = entry.is_of(&self.log);
        debug_assert!(own, "an entry is put back into its own queue");
        if !own {
            return;
        }
        self.count_returned(entry.copies(), entry.memory_bytes(), true);
        self.returned.insert(entry.number(), Returned::Entry(entry));
    }

    /// Drops records older than `age_max_ms` (`too_old`), one slice of them: [`Queue::is_paused`] while there are more.
    fn expire(&mut self, now: Now) {
        self.now_ns = self.now_ns.max(now.mono_ns);
        self.take_notes();
        self.expire_slice(now);
    }

    fn drop_front(&mut self, reason: Dropped) -> bool {
        self.take_notes();
        match self.returned.pop_first() {
            Some((_, Returned::Entry(entry))) => {
                self.count_returned(entry.copies(), entry.memory_bytes(), false);
                entry.settle(CopyOutcome::Dropped(reason));
                self.take_notes();
                true
            }
            Some((number, Returned::Progress(progress))) => {
                self.settle_returned(number, progress, reason);
                true
            }
            None => self.drop_unread(reason) || self.drop_held(reason),
        }
    }

    fn drop_run(&mut self, reason: Dropped, most: (u64, u64)) -> bool {
        self.take_notes();
        (self.returned.is_empty() && self.drop_segment(reason, most)) || self.drop_front(reason)
    }

    fn oldest_age_ns(&mut self, now: Now) -> Option<u64> {
        self.take_notes();
        let header = self.oldest()?;
        Some(self.stamps.wall_ns_of(now.mono_ns).saturating_sub(self.stamps.made_wall_ns(&header)))
    }

    /// When the oldest block that no sender holds becomes too old, monotonic nanoseconds. None without an age limit.
    fn expires_ns(&mut self) -> Option<u64> {
        if self.plan.limits.age_max_ms == 0 {
            return None;
        }
        let header = self.oldest()?;
        let age_max_ns = self.plan.limits.age_max_ms.saturating_mul(MS_NS);
        let wall_ns = self.stamps.made_wall_ns(&header).saturating_add(age_max_ns).saturating_add(1);
        Some(self.stamps.mono_ns_of(wall_ns))
    }

    /// True when no block is queued.
    fn is_empty(&mut self) -> bool {
        self.take_notes();
        self.returned.is_empty() && self.read.records >= self.end.records && self.held.len() == 0
    }

    fn is_paused(&mut self) -> bool {
        self.take_notes();
        if self.expiry.has_more() {
            return true;
        }
        let pauses = self.pauses().is_some();
        match self.returned.first_key_value() {
            Some((_, Returned::Entry(_))) => false,
            Some((_, Returned::Progress(_))) => pauses,
            None => !self.is_empty() && (pauses || self.settlement.len() >= OPEN_RECORDS_MAX),
        }
    }

    /// Copies in the queue, without those that senders hold. Damaged ones count until reading passes them.
    fn copies(&self) -> u64 {
        self.end.since(self.read).copies + self.returned_copies + self.log.copies_left() + self.held.copies
    }

    /// Bytes on disk of the queued blocks, without those that senders hold.
    fn bytes(&mut self) -> u64 {
        self.take_notes();
        self.end.since(self.read).disk_bytes + self.returned_bytes + self.held.disk_bytes
    }

    /// True when a block of `copies` copies and `disk_bytes` bytes fits the limits now.
    fn has_room(&self, disk_bytes: u64, copies: u64) -> bool {
        let held = self.account.queued_bytes.load(Relaxed);
        let held = held.saturating_add(self.quarantine.whole_bytes());
        let fits = held.saturating_add(disk_bytes) <= self.plan.limits.bytes_max;
        let waiting = self.account.copies_queued();
        let most = self.plan.limits.records_max;
        // Blocks move as a whole: an empty queue takes one that is larger than the limit.
        fits && (most == 0 || waiting == 0 || waiting.saturating_add(copies) <= most)
    }

    /// Position of the next block: every block before it was accepted. It decreases when blocks held in memory are
    /// dropped.
    fn accepted_up_to(&self) -> Position {
        Position(self.end.records + self.held.len() as u64)
    }

    /// Every block before it has its outcome.
    fn settled_up_to(&mut self) -> Position {
        self.take_notes();
        Position(self.settlement.settled().records)
    }

    /// Durability of a block that was appended. A record of an earlier run is in doubt until it has its outcome: it
    /// is synced with the first job, but the earlier run may have seen a failed sync, after which a good one proves
    /// nothing.
    fn promise(&mut self, of: Position) -> Promise {
        let settled = self.settlement.settled().records;
        if (settled..self.opened_end).contains(&of.0) {
            return Promise::InDoubt;
        }
        if of.0 >= self.end.records {
            return Promise::Accepted;
        }
        #[cfg(any(test, feature = "canary"))]
        if self.canary == Some(Canary::SafeBeforeSync) {
            return Promise::Safe;
        }
        self.commit.promise(of.0, settled)
    }

    fn oldest_ns(&mut self) -> Option<u64> {
        self.take_notes();
        let header = self.oldest()?;
        Some(self.stamps.mono_ns_of(self.stamps.made_wall_ns(&header)))
    }

    fn front_bytes(&mut self) -> Option<u64> {
        self.take_notes();
        self.oldest().map(|header| header.disk_bytes())
    }

    fn limits(&self) -> QueueLimits {
        self.plan.limits
    }

    fn set_limits(&mut self, limits: QueueLimits) {
        self.plan.limits = limits;
    }

    fn lost_before_start(&self) -> u64 {
        self.lost_before_start
    }

    /// Nothing to do: the disk keeps all records.
    fn on_sender_stopped(&mut self) {}
}

fn count_queued_bytes(account: &OutputAccount, disk_bytes: u64) {
    let waiting = account.queued_bytes.fetch_add(disk_bytes, Relaxed) + disk_bytes;
    account.queued_bytes_high.fetch_max(waiting, Relaxed);
}

#[test]
fn a_small_queue_has_small_segments() {
    let of = |bytes_max| {
        let limits = QueueLimits { bytes_max, ..QueueLimits::default() };
        DiskQueuePlan::within(limits, 5).segment_bytes
    };
    let table = [
        (QueueLimits::BYTES_MIN, 32 << 10),
        (8 << 20, 2 << 20),
        ((8 << 20) - 1, (1 << 20) - 1),
        (64 << 20, 8 << 20),
        (4 << 30, 64 << 20),
    ];
    for (bytes_max, want) in table {
        assert_eq!(of(bytes_max), want, "a queue of {bytes_max} bytes");
    }
}
