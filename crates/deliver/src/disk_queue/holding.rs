//! Blocks that the disk did not take and that are kept in memory for another try.
//!
//! Path of a packet: [`DiskQueue::append`] hands a block back -> **[`DiskQueue::hold`]** -> a new segment, once the disk
//! takes it. An error of a write is final for its segment, not for the block.
//! Not here: a full disk, which is a full queue (`writing`).
//! Invariant: what is held comes behind everything on disk and before everything that comes; it is bounded in bytes and
//! in time, and past either bound it is dropped (`disk_failed`). Time counts only while the disk itself fails.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

use model::{CopyOutcome, Disk, DiskError, Dropped, Now};

use super::{DiskQueue, Position, hold};
use crate::block::Block;
use crate::pause::MS_NS;
use crate::queue::{Appended, Queue};

/// Most bytes that are held, as they would be on disk.
pub const HELD_BYTES_MAX: u64 = if cfg!(test) { 400 } else { 8 << 20 };

/// How long a disk may fail until nobody waits for it any more, in milliseconds.
pub const FAILING_MS_MAX: u64 = 10_000;

/// Pause between two tries, in milliseconds.
const TRY_EVERY_MS: u64 = 250;

/// What waits for the disk.
#[derive(Debug, Default)]
pub(super) struct Held {
    blocks: VecDeque<Block>,
    pub(super) copies: u64,
    pub(super) disk_bytes: u64,
    /// Since when each write has failed, but for want of room.
    failing_since_ns: Option<u64>,
    /// When a write was tried last.
    tried: Now,
}

impl Held {
    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// A write ended.
    pub(super) fn note(&mut self, result: Result<(), DiskError>, now: Now) {
        self.tried = now;
        match result {
            Ok(()) => self.failing_since_ns = None,
            // Room, descriptors, a folder: it is not the disk that fails.
            Err(error) if error.passes() => self.failing_since_ns = None,
            Err(_) => drop(self.failing_since_ns.get_or_insert(now.mono_ns)),
        }
    }

    /// Nobody waits for the disk any more.
    pub(super) fn failed_for_too_long(&self, now: Now) -> bool {
        let most_ns = FAILING_MS_MAX * MS_NS;
        self.failing_since_ns.is_some_and(|since_ns| now.mono_ns.saturating_sub(since_ns) >= most_ns)
    }

    fn pop(&mut self, disk_bytes: u64) -> Option<Block> {
        let block = self.blocks.pop_front()?;
        self.copies -= u64::from(block.copies);
        self.disk_bytes -= disk_bytes;
        Some(block)
    }
}

impl<D: Disk> DiskQueue<D> {
    /// For who cannot wait, a block that [`Queue::append`] has handed back: while the disk fails it is kept in memory
    /// and tried again; otherwise, or past the bounds, it is dropped and counted.
    pub fn hold(&mut self, block: Block, now: Now) -> Appended {
        let disk_bytes = self.header_of(&block, now).map(|header| header.disk_bytes());
        let fails = self.write_error.is_some_and(|error| error != DiskError::Full);
        let has_room = disk_bytes.is_some_and(|bytes| self.has_room(bytes, u64::from(block.copies)));
        if !fails || !has_room {
            self.drop_block(block, Dropped::QueueFull);
            return Appended::Dropped;
        }
        let fits = |bytes: &u64| self.held.disk_bytes + bytes <= HELD_BYTES_MAX;
        let Some(disk_bytes) = disk_bytes.filter(fits).filter(|_| !self.held.failed_for_too_long(now)) else {
            self.drop_block(block, Dropped::DiskFailed);
            return Appended::Dropped;
        };
        let copies = u64::from(block.copies);
        self.account.route(copies, block.copy_bytes());
        hold(&self.account, disk_bytes);
        self.held.copies += copies;
        self.held.disk_bytes += disk_bytes;
        self.held.blocks.push_back(block);
        Appended::Kept
    }

    /// Copies that wait in memory for the disk to take them. Nobody can send them meanwhile.
    pub fn held_copies(&self) -> u64 {
        self.held.copies
    }

    /// Every block before it is on disk; those behind it are held.
    pub fn written_up_to(&self) -> Position {
        Position(self.end.records)
    }

    /// When what is held is tried again.
    pub(super) fn held_due_ns(&self) -> Option<u64> {
        let due_ns = self.held.tried.mono_ns + TRY_EVERY_MS * MS_NS;
        (self.held.len() > 0).then_some(due_ns)
    }

    /// Writes what is held, if a try is due. Past its time it is dropped.
    pub(super) fn try_held(&mut self, now: Now) {
        if self.held_due_ns().is_some_and(|due_ns| due_ns <= now.mono_ns) {
            self.write_held(now);
        }
        if self.held.failed_for_too_long(now) {
            while self.drop_held(Dropped::DiskFailed) {}
        }
    }

    /// A last try: nothing is held afterwards.
    pub(super) fn write_or_drop_held(&mut self) {
        if self.held.len() > 0 {
            self.write_held(self.held.tried);
        }
        while self.drop_held(Dropped::DiskFailed) {}
    }

    fn write_held(&mut self, now: Now) {
        while let Some(block) = self.held.blocks.front().cloned() {
            let Some(header) = self.header_of(&block, now) else { return };
            if self.write(&header, &block, now).is_err() {
                return;
            }
            // It is counted as routed already.
            let _written = self.held.pop(header.disk_bytes());
        }
    }

    /// Drops the oldest block that is held.
    pub(super) fn drop_held(&mut self, reason: Dropped) -> bool {
        let Some(block) = self.held.blocks.front().cloned() else { return false };
        let disk_bytes = self.header_of(&block, self.held.tried).map_or(0, |header| header.disk_bytes());
        let _dropped = self.held.pop(disk_bytes);
        self.account.settle(CopyOutcome::Dropped(reason), u64::from(block.copies), block.copy_bytes());
        self.account.queued_bytes.fetch_sub(disk_bytes, Relaxed);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::super::faulty_disk::{Faults, FaultyDisk};
    use super::super::{DiskQueuePlan, Promise};
    use super::*;
    use crate::plan::{QueueLimits, WhenFull};

    const EIO: DiskError = DiskError::Io { code: 5 };

    fn at_ms(ms: u64) -> Now {
        Now { mono_ns: 1 << 40, wall_ns: 1 << 60 }.plus_ns(ms * MS_NS)
    }

    fn open(disk: &FaultyDisk, when_full: WhenFull) -> DiskQueue<FaultyDisk> {
        let limits = QueueLimits { when_full, ..QueueLimits::default() };
        let plan = DiskQueuePlan { limits, ..DiskQueuePlan::default() };
        DiskQueue::open(disk.clone(), plan, Arc::default(), 1, at_ms(0)).expect("it lists").0
    }

    /// As who cannot wait does it.
    fn give(queue: &mut DiskQueue<FaultyDisk>, text: &str, ms: u64) -> Appended {
        let block = Block::lines(text.as_bytes().to_vec(), 1, at_ms(ms).mono_ns);
        let appended = match queue.append(block, at_ms(ms)) {
            Appended::Full(block) => queue.hold(block, at_ms(ms)),
            appended => appended,
        };
        check(queue);
        appended
    }

    fn check(queue: &mut DiskQueue<FaultyDisk>) {
        let sum = queue.account().sum(queue.copies());
        assert!(sum.holds(), "{sum:?}");
        assert_eq!(queue.account().queued_bytes.load(Relaxed), queue.bytes());
        assert!(queue.held.disk_bytes <= HELD_BYTES_MAX);
    }

    fn sync(queue: &mut DiskQueue<FaultyDisk>, disk: &FaultyDisk, ms: u64) {
        let job = queue.begin_sync(at_ms(ms));
        let _synced = job.map(|job| queue.on_synced(job.perform(disk)));
        check(queue);
    }

    fn drain(queue: &mut DiskQueue<FaultyDisk>, ms: u64) -> String {
        let mut texts = String::new();
        while let Some(entry) = queue.pop(at_ms(ms)) {
            texts.push_str(&String::from_utf8_lossy(&entry.block().bytes));
            entry.settle(CopyOutcome::Delivered);
        }
        texts.replace('\n', "")
    }

    fn fail(disk: &FaultyDisk) {
        disk.set_faults(Faults { writes_fail: true, ..Faults::default() });
    }

    fn mend(disk: &FaultyDisk) {
        disk.set_faults(Faults::default());
    }

    #[test]
    fn a_block_outlives_the_disk_s_failure_in_memory_and_comes_in_its_order() {
        for when_full in [WhenFull::Block, WhenFull::DropNewest, WhenFull::DropOldest] {
            let disk = FaultyDisk::new(1);
            let mut queue = open(&disk, when_full);
            assert_eq!(give(&mut queue, "0\n", 0), Appended::Kept);
            fail(&disk);
            assert_eq!(give(&mut queue, "1\n", 0), Appended::Kept);
            assert_eq!((queue.write_error(), queue.accepted_up_to().0, queue.copies()), (Some(EIO), 2, 2));
            assert_eq!(queue.promise(super::super::Position(1)), Promise::Accepted);
            assert_eq!(drain(&mut queue, 0), "0", "what is held has no place to be sent from");
            assert!(!queue.is_empty() && !queue.reserve(10, at_ms(1)), "who can wait does");
            // Between two tries nothing is written, whatever the disk would say.
            mend(&disk);
            assert_eq!(give(&mut queue, "2\n", 100), Appended::Kept);
            assert_eq!((queue.held.len(), queue.held_due_ns()), (2, Some(at_ms(250).mono_ns)));
            sync(&mut queue, &disk, 250);
            assert_eq!((queue.held.len(), queue.write_error()), (0, None));
            assert_eq!(give(&mut queue, "3\n", 251), Appended::Kept);
            assert!(queue.reserve(10, at_ms(251)));
            sync(&mut queue, &disk, 300);
            assert_eq!(queue.promise(super::super::Position(2)), Promise::Safe);
            disk.lose_power();
            assert_eq!(drain(&mut open(&disk, when_full), 300), "123", "{when_full:?}");
            assert_eq!(drain(&mut queue, 300), "123");
            assert_eq!(queue.account().lost_here(), 0);
        }
    }

    #[test]
    fn what_is_held_is_bounded_in_bytes() {
        let disk = FaultyDisk::new(1);
        let mut queue = open(&disk, WhenFull::Block);
        fail(&disk);
        // Each takes 96 bytes and its line on disk.
        let line = format!("{}\n", "x".repeat(103));
        let appended: Vec<Appended> = (0..3).map(|_| give(&mut queue, &line, 0)).collect();
        assert_eq!(appended, [Appended::Kept, Appended::Kept, Appended::Dropped]);
        assert_eq!((queue.account().dropped(Dropped::DiskFailed), queue.copies()), (1, 2));
        // What is larger than all that may be held never is.
        mend(&disk);
        sync(&mut queue, &disk, 300);
        fail(&disk);
        assert_eq!(give(&mut queue, &line.repeat(4), 300), Appended::Dropped);
        assert_eq!((queue.account().dropped(Dropped::DiskFailed), queue.held.len()), (2, 0));
    }

    #[test]
    fn a_disk_that_fails_for_long_is_waited_for_no_more_until_it_takes_something() {
        let disk = FaultyDisk::new(1);
        let mut queue = open(&disk, WhenFull::Block);
        fail(&disk);
        assert_eq!(give(&mut queue, "0\n", 0), Appended::Kept);
        let last = FAILING_MS_MAX - 1;
        assert!(!queue.reserve(10, at_ms(last)));
        sync(&mut queue, &disk, last);
        assert_eq!((queue.held.len(), queue.account().dropped(Dropped::DiskFailed)), (1, 0));
        sync(&mut queue, &disk, FAILING_MS_MAX);
        assert_eq!((queue.held.len(), queue.account().dropped(Dropped::DiskFailed)), (0, 1));
        assert_eq!(queue.accepted_up_to().0, 0, "the place is given again");
        assert!(queue.reserve(10, at_ms(FAILING_MS_MAX + 1)), "nobody waits behind it");
        assert_eq!(give(&mut queue, "1\n", FAILING_MS_MAX + 1), Appended::Dropped);
        assert_eq!(queue.account().dropped(Dropped::DiskFailed), 2);
        mend(&disk);
        assert_eq!(give(&mut queue, "2\n", FAILING_MS_MAX + 2), Appended::Kept);
        fail(&disk);
        assert_eq!(give(&mut queue, "3\n", FAILING_MS_MAX + 3), Appended::Kept, "time begins anew");
        assert_eq!(drain(&mut queue, FAILING_MS_MAX + 3), "2");
    }

    #[test]
    fn at_the_end_it_is_written_or_counted() {
        for (mended, out, dropped) in [(true, "01", 0), (false, "0", 1)] {
            let disk = FaultyDisk::new(1);
            let mut queue = open(&disk, WhenFull::Block);
            assert_eq!(give(&mut queue, "0\n", 0), Appended::Kept);
            fail(&disk);
            assert_eq!(give(&mut queue, "1\n", 0), Appended::Kept);
            if mended {
                mend(&disk);
            }
            let _synced = queue.begin_last_sync().map(|job| queue.on_synced(job.perform(&disk)));
            check(&mut queue);
            assert_eq!(queue.account().dropped(Dropped::DiskFailed), dropped);
            mend(&disk);
            assert_eq!(drain(&mut open(&disk, WhenFull::Block), 0), out);
        }
    }

    #[test]
    fn what_is_held_can_be_dropped_and_a_full_queue_or_disk_holds_nothing() {
        let disk = FaultyDisk::new(1);
        let mut queue = open(&disk, WhenFull::Block);
        fail(&disk);
        assert_eq!(give(&mut queue, "0\n", 0), Appended::Kept);
        queue.drop_all(Dropped::ByOperator);
        check(&mut queue);
        assert_eq!((queue.account().dropped(Dropped::ByOperator), queue.copies()), (1, 0));
        let limits = QueueLimits { bytes_max: 97, ..queue.limits() };
        queue.set_limits(limits);
        assert_eq!(give(&mut queue, "0\n", 0), Appended::Dropped, "larger than the queue");
        disk.set_faults(Faults { bytes_max: Some(0), ..Faults::default() });
        queue.set_limits(QueueLimits { bytes_max: 1000, ..limits });
        assert_eq!(give(&mut queue, "0\n", 0), Appended::Dropped);
        assert_eq!(
            (queue.account().dropped(Dropped::QueueFull), queue.write_error()),
            (2, Some(DiskError::Full))
        );
    }

    #[derive(Clone, Copy, Debug)]
    enum Op {
        /// A line of so many bytes.
        Give(usize),
        Fail,
        Mend,
        Full,
        Pass(u64),
        Sync,
        Reserve(u64),
        Drain,
    }

    fn ops() -> impl Strategy<Value = Vec<Op>> {
        let op = prop_oneof![
            8 => (8..150_usize).prop_map(Op::Give),
            2 => Just(Op::Fail),
            2 => Just(Op::Mend),
            1 => Just(Op::Full),
            3 => (0..300_u64).prop_map(Op::Pass),
            1 => (3000..6000_u64).prop_map(Op::Pass),
            3 => Just(Op::Sync),
            2 => (0..200_u64).prop_map(Op::Reserve),
            2 => Just(Op::Drain),
        ];
        proptest::collection::vec(op, 1..80)
    }

    fn numbers(texts: &str) -> Vec<usize> {
        texts.split_whitespace().map(|text| text.trim_end_matches('x').parse().expect("a number")).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        /// Whatever the disk does in between, each block comes once and in order, or was counted.
        #[test]
        fn what_is_kept_comes_in_order_or_is_counted(ops in ops()) {
            let disk = FaultyDisk::new(1);
            let mut queue = open(&disk, WhenFull::Block);
            let (mut ms, mut given, mut kept, mut came) = (0, 0, 0, Vec::new());
            for op in ops {
                match op {
                    Op::Give(len) => {
                        let text = format!("{:x<len$}\n", format!("{given} ").replace(' ', "x"));
                        given += 1;
                        kept += usize::from(give(&mut queue, &text, ms) == Appended::Kept);
                    }
                    Op::Fail => fail(&disk),
                    Op::Mend => mend(&disk),
                    Op::Full => disk.set_faults(Faults { bytes_max: Some(0), ..Faults::default() }),
                    Op::Pass(more) => ms += more,
                    Op::Sync => sync(&mut queue, &disk, ms),
                    Op::Reserve(bytes) => drop(queue.reserve(bytes, at_ms(ms))),
                    Op::Drain => came.extend(numbers(&drain(&mut queue, ms).replace('x', " "))),
                }
                check(&mut queue);
            }
            mend(&disk);
            let held = queue.held.len();
            let in_time = !queue.held.failed_for_too_long(at_ms(ms + 250));
            let failed = queue.account().dropped(Dropped::DiskFailed);
            sync(&mut queue, &disk, ms + 250);
            assert_eq!(queue.held.len(), 0);
            assert!(!in_time || failed == queue.account().dropped(Dropped::DiskFailed), "{held} held");
            came.extend(numbers(&drain(&mut queue, ms + 250).replace('x', " ")));
            assert!(came.is_sorted_by(|one, next| one < next), "{came:?}");
            let dropped = queue.account().sum(0).dropped as usize;
            assert_eq!((came.len() + dropped, queue.copies()), (given, 0), "{kept} kept");
        }
    }
}
