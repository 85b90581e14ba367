//! Blocks kept in memory while the disk fails, to be written later.
//!
//! Path of a packet: [`DiskQueue::append`] returns the block -> **[`DiskQueue::hold`]** -> a new segment, once a write
//! succeeds. A write error is final for its segment, not for the block.
//! Not here: a full disk, which counts as a full queue (`writing`).
//! Invariant: held blocks come after everything on disk and before new blocks. They are limited in bytes and in time;
//! past either limit they are dropped (`disk_failed`). The time runs only while the disk itself fails.

use std::sync::atomic::Ordering::Relaxed;

use model::{CopyOutcome, Disk, DiskError, Dropped, Now};

use super::settle::Position;
use super::state::HELD_BYTES_MAX;
use super::{DiskQueue, count_queued_bytes};
use crate::block::Block;
use crate::pause::MS_NS;
use crate::queue::entry::Appended;
use crate::queue::interface::Queue;

/// Pause between two retries, in milliseconds.
const TRY_EVERY_MS: u64 = 250;

impl<D: Disk> DiskQueue<D> {
    /// For sources that cannot wait: takes a block that [`Queue::append`] returned. While the disk fails the block is
    /// kept in memory and written later. Otherwise, or past the limits, it is dropped and counted.
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
        count_queued_bytes(&self.account, disk_bytes);
        self.held.copies += copies;
        self.held.disk_bytes += disk_bytes;
        self.held.blocks.push_back(block);
        Appended::Kept
    }

    /// Copies held in memory. They cannot be sent before they are on disk.
    pub fn held_copies(&self) -> u64 {
        self.held.copies
    }

    /// Every block before it is on disk; later ones are held in memory.
    pub fn written_up_to(&self) -> Position {
        Position(self.end.records)
    }

    /// When held blocks are retried.
    pub(super) fn held_due_ns(&self) -> Option<u64> {
        let due_ns = self.held.tried.mono_ns + TRY_EVERY_MS * MS_NS;
        (self.held.len() > 0).then_some(due_ns)
    }

    /// Writes held blocks, if a retry is due. Drops them when the disk has failed for too long.
    pub(super) fn retry_held(&mut self, now: Now) {
        if self.held_due_ns().is_some_and(|due_ns| due_ns <= now.mono_ns) {
            self.write_held(now);
        }
        if self.held.failed_for_too_long(now) {
            while self.drop_held(Dropped::DiskFailed) {}
        }
    }

    /// The last retry: afterwards no block is held.
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
            // Its copies are counted as routed already.
            let _written = self.held.pop(header.disk_bytes());
        }
    }

    /// Drops the oldest held block.
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
    use super::super::{DiskQueuePlan, FAILING_MS_MAX, Promise};
    use super::*;
    use crate::plan::{QueueLimits, WhenFull};

    const EIO: DiskError = DiskError::Io { code: 5 };

    fn at_ms(ms: u64) -> Now {
        Now { mono_ns: 1 << 40, wall_ns: 1 << 60 }.plus_ns(ms * MS_NS)
    }

    fn open(disk: &FaultyDisk, when_full: WhenFull) -> DiskQueue<FaultyDisk> {
        let limits = QueueLimits { when_full, ..QueueLimits::default() };
        let plan = DiskQueuePlan { limits, ..DiskQueuePlan::default() };
        DiskQueue::open(disk.clone(), plan, Arc::default(), 1, at_ms(0))
            .expect("the directory can be listed")
            .0
    }

    /// Appends as a source that cannot wait does.
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
    fn a_held_block_survives_a_disk_failure_and_keeps_its_order() {
        for when_full in [WhenFull::Block, WhenFull::DropNewest, WhenFull::DropOldest] {
            let disk = FaultyDisk::new(1);
            let mut queue = open(&disk, when_full);
            assert_eq!(give(&mut queue, "0\n", 0), Appended::Kept);
            fail(&disk);
            assert_eq!(give(&mut queue, "1\n", 0), Appended::Kept);
            assert_eq!((queue.write_error(), queue.accepted_up_to().0, queue.copies()), (Some(EIO), 2, 2));
            assert_eq!(queue.promise(super::super::Position(1)), Promise::Accepted);
            assert_eq!(drain(&mut queue, 0), "0", "held blocks cannot be sent");
            assert!(!queue.is_empty() && !queue.reserve(10, at_ms(1)), "a source that can wait has to");
            // Between two retries nothing is written, even if the disk works again.
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
    fn held_blocks_are_limited_in_bytes() {
        let disk = FaultyDisk::new(1);
        let mut queue = open(&disk, WhenFull::Block);
        fail(&disk);
        // Each record is 96 bytes and its line on disk.
        let line = format!("{}\n", "x".repeat(103));
        let appended: Vec<Appended> = (0..3).map(|_| give(&mut queue, &line, 0)).collect();
        assert_eq!(appended, [Appended::Kept, Appended::Kept, Appended::Dropped]);
        assert_eq!((queue.account().dropped(Dropped::DiskFailed), queue.copies()), (1, 2));
        // A block larger than the limit is never held.
        mend(&disk);
        sync(&mut queue, &disk, 300);
        fail(&disk);
        assert_eq!(give(&mut queue, &line.repeat(4), 300), Appended::Dropped);
        assert_eq!((queue.account().dropped(Dropped::DiskFailed), queue.held.len()), (2, 0));
    }

    #[test]
    fn sources_stop_waiting_for_a_failing_disk_until_a_write_succeeds() {
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
        assert_eq!(queue.accepted_up_to().0, 0, "the position is used again");
        assert!(queue.reserve(10, at_ms(FAILING_MS_MAX + 1)), "sources do not wait any more");
        assert_eq!(give(&mut queue, "1\n", FAILING_MS_MAX + 1), Appended::Dropped);
        assert_eq!(queue.account().dropped(Dropped::DiskFailed), 2);
        mend(&disk);
        assert_eq!(give(&mut queue, "2\n", FAILING_MS_MAX + 2), Appended::Kept);
        fail(&disk);
        assert_eq!(give(&mut queue, "3\n", FAILING_MS_MAX + 3), Appended::Kept, "the time starts again");
        assert_eq!(drain(&mut queue, FAILING_MS_MAX + 3), "2");
    }

    #[test]
    fn held_blocks_are_written_or_dropped_at_the_last_sync() {
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
    fn held_blocks_can_be_dropped_and_a_full_disk_holds_none() {
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
        fn held_blocks_are_delivered_in_order_or_counted(ops in ops()) {
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
