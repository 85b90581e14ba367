//! The queue in memory at each of its limits and past them.

use super::*;
use crate::plan::WhenFull;

const MS: u64 = 1_000_000;

fn at_ms(ms: u64) -> Now {
    Now::default().plus_ns(ms * MS)
}

/// A block of `copies` lines that uses `bytes` bytes of memory in all.
fn block_of(bytes: u64, copies: u32, now: Now) -> Block {
    let empty = Block::lines(Vec::new(), 0, 0).memory_bytes();
    let block = Block::lines(vec![b'\n'; (bytes - empty) as usize], copies, now.mono_ns);
    assert_eq!(block.memory_bytes(), bytes);
    block
}

fn queue_of(bytes_max: u64, when_full: WhenFull, age_max_ms: u64) -> MemoryQueue {
    MemoryQueue::new(
        QueueLimits { bytes_max, records_max: 0, when_full, age_max_ms, ..QueueLimits::default() },
        Arc::new(OutputAccount::default()),
    )
}

fn check(queue: &mut MemoryQueue, held: &[&Entry]) {
    let held_copies: u64 = held.iter().map(|entry| entry.copies()).sum();
    let sum = queue.account().sum(queue.copies() + held_copies);
    assert!(sum.holds(), "{sum:?}");
    let held_bytes: u64 = held.iter().map(|entry| entry.memory_bytes()).sum();
    assert_eq!(queue.account().queued_bytes.load(Relaxed), queue.bytes() + held_bytes);
}

#[test]
fn past_the_limit_when_full_decides() {
    // (when full, bytes of the third block, is it kept, copies dropped, time of the oldest block left)
    let table = [
        (WhenFull::Block, 400, true, 0, 1),
        (WhenFull::Block, 401, false, 0, 1),
        (WhenFull::DropOldest, 400, true, 0, 1),
        (WhenFull::DropOldest, 401, true, 1, 2),
        (WhenFull::DropOldest, 700, true, 1, 2),
        (WhenFull::DropOldest, 701, true, 3, 3),
        (WhenFull::DropNewest, 400, true, 0, 1),
        (WhenFull::DropNewest, 401, false, 4, 1),
    ];
    for (when_full, bytes, kept, dropped, oldest_ms) in table {
        let mut queue = queue_of(1000, when_full, 0);
        assert_eq!(queue.append(block_of(300, 1, at_ms(1)), at_ms(1)), Appended::Kept);
        assert_eq!(queue.append(block_of(300, 2, at_ms(2)), at_ms(2)), Appended::Kept);
        let third = block_of(bytes, 4, at_ms(3));
        let appended = queue.append(third.clone(), at_ms(3));
        let want = match (kept, when_full) {
            (true, _) => Appended::Kept,
            (false, WhenFull::Block) => Appended::Full(third),
            (false, _) => Appended::Dropped,
        };
        assert_eq!(appended, want, "{when_full:?} {bytes}");
        assert_eq!(queue.account().dropped(Dropped::QueueFull), dropped, "{when_full:?} {bytes}");
        assert_eq!(queue.oldest_ns(), Some(oldest_ms * MS), "{when_full:?} {bytes}");
        assert!(queue.bytes() <= 1000);
        check(&mut queue, &[]);
    }
}

#[test]
fn a_block_larger_than_the_limit_is_dropped_and_drops_no_other() {
    for when_full in [WhenFull::Block, WhenFull::DropOldest, WhenFull::DropNewest] {
        let mut queue = queue_of(1000, when_full, 0);
        assert_eq!(queue.append(block_of(300, 1, at_ms(0)), at_ms(0)), Appended::Kept);
        assert_eq!(queue.append(block_of(1001, 7, at_ms(0)), at_ms(0)), Appended::Dropped, "{when_full:?}");
        assert_eq!((queue.copies(), queue.account().dropped(Dropped::QueueFull)), (1, 7), "{when_full:?}");
        check(&mut queue, &[]);
        let mut queue = queue_of(1000, when_full, 0);
        assert_eq!(queue.append(block_of(1000, 7, at_ms(0)), at_ms(0)), Appended::Kept, "{when_full:?}");
    }
}

#[test]
fn blocks_in_flight_count_against_the_limit() {
    for (when_full, want_dropped) in
        [(WhenFull::DropOldest, 1), (WhenFull::DropNewest, 1), (WhenFull::Block, 0)]
    {
        let mut queue = queue_of(1000, when_full, 0);
        assert_eq!(queue.append(block_of(600, 3, at_ms(0)), at_ms(0)), Appended::Kept);
        let entry = queue.pop(at_ms(0)).expect("one block is queued");
        assert!(queue.is_empty() && queue.has_room(400, 1) && !queue.has_room(401, 1));
        let appended = queue.append(block_of(401, 1, at_ms(0)), at_ms(0));
        assert!(!matches!(appended, Appended::Kept), "{when_full:?}");
        assert_eq!(queue.account().dropped(Dropped::QueueFull), want_dropped, "{when_full:?}");
        check(&mut queue, &[&entry]);
        assert_eq!(queue.append(block_of(400, 1, at_ms(0)), at_ms(0)), Appended::Kept);
        check(&mut queue, &[&entry]);
        entry.settle(CopyOutcome::Delivered);
        assert!(queue.has_room(600, 1));
        check(&mut queue, &[]);
    }
}

#[test]
fn copies_are_limited_but_a_single_block_may_be_larger() {
    for (when_full, kept, dropped) in [(WhenFull::DropOldest, 7, 6), (WhenFull::DropNewest, 10, 3)] {
        let limits = QueueLimits {
            bytes_max: 1 << 20,
            records_max: 10,
            when_full,
            age_max_ms: 0,
            ..QueueLimits::default()
        };
        let mut queue = MemoryQueue::new(limits, Arc::new(OutputAccount::default()));
        for copies in [6, 4, 3] {
            let _kept_or_dropped = queue.append(block_of(300, copies, at_ms(0)), at_ms(0));
        }
        assert_eq!(
            (queue.copies(), queue.account().dropped(Dropped::QueueFull)),
            (kept, dropped),
            "{when_full:?}"
        );
        assert_eq!(queue.account().copies_waiting_high(), 10, "{when_full:?}");
        check(&mut queue, &[]);
        queue.drop_all(Dropped::Stopped);
        assert_eq!(queue.append(block_of(300, 11, at_ms(0)), at_ms(0)), Appended::Kept, "{when_full:?}");
    }
    // Blocks that the sender holds count as well.
    let limits = QueueLimits { records_max: 10, when_full: WhenFull::Block, ..QueueLimits::default() };
    let mut queue = MemoryQueue::new(limits, Arc::new(OutputAccount::default()));
    assert_eq!(queue.append(block_of(300, 8, at_ms(0)), at_ms(0)), Appended::Kept);
    let entry = queue.pop(at_ms(0)).expect("one block is queued");
    assert!(matches!(queue.append(block_of(300, 3, at_ms(0)), at_ms(0)), Appended::Full(_)));
    assert_eq!(queue.append(block_of(300, 2, at_ms(0)), at_ms(0)), Appended::Kept);
    check(&mut queue, &[&entry]);
}

#[test]
fn a_returned_block_can_be_appended_again_or_dropped() {
    let mut queue = queue_of(1000, WhenFull::Block, 0);
    assert_eq!(queue.append(block_of(1000, 3, at_ms(0)), at_ms(0)), Appended::Kept);
    let Appended::Full(block) = queue.append(block_of(1000, 5, at_ms(1)), at_ms(1)) else { panic!("full") };
    assert_eq!(queue.account().sum(3).copies, 3, "nothing was counted");
    queue.pop(at_ms(1)).expect("one block").settle(CopyOutcome::Delivered);
    assert_eq!(queue.append(block, at_ms(2)), Appended::Kept);
    queue.drop_block(block_of(1000, 7, at_ms(3)), Dropped::QueueFull);
    assert_eq!((queue.account().dropped(Dropped::QueueFull), queue.copies()), (7, 5));
    check(&mut queue, &[]);
}

#[test]
fn too_old_blocks_are_dropped_at_their_expiry_time() {
    // (age limit, time, blocks left of those made at 0, 5 and 10 ms)
    let table = [(0, 1_000_000, 3), (10, 10, 3), (10, 11, 2), (10, 15, 2), (10, 16, 1), (10, 21, 0)];
    for (age_max_ms, time_ms, left) in table {
        let mut queue = queue_of(10_000, WhenFull::Block, age_max_ms);
        for ms in [0, 5, 10] {
            assert_eq!(queue.append(block_of(500, 1, at_ms(ms)), at_ms(10)), Appended::Kept);
        }
        queue.expire(at_ms(time_ms));
        assert_eq!(queue.blocks(), left, "{age_max_ms} ms at {time_ms} ms");
        assert_eq!(queue.account().dropped(Dropped::TooOld), 3 - left as u64);
        let expires_ns = queue.expires_ns();
        assert_eq!(expires_ns.is_some(), age_max_ms > 0 && left > 0);
        assert!(expires_ns.is_none_or(|at_ns| at_ns > time_ms * MS));
        check(&mut queue, &[]);
    }
}

#[test]
fn every_call_with_the_time_expires_blocks() {
    let mut queue = queue_of(600, WhenFull::Block, 10);
    assert_eq!(queue.append(block_of(500, 1, at_ms(0)), at_ms(0)), Appended::Kept);
    assert_eq!(
        queue.append(block_of(500, 1, at_ms(11)), at_ms(11)),
        Appended::Kept,
        "the old one is dropped"
    );
    assert!(queue.pop(at_ms(22)).is_none());
    assert_eq!(queue.account().dropped(Dropped::TooOld), 2);
    check(&mut queue, &[]);
}

#[test]
fn a_block_put_back_is_the_oldest_again_and_keeps_its_progress() {
    let mut queue = queue_of(10_000, WhenFull::DropOldest, 0);
    for (text, ms) in [("a\nb\n", 1), ("c\n", 2)] {
        let copies = text.len() as u32 / 2;
        let block = Block::lines(text.as_bytes().to_vec(), copies, ms * MS);
        assert_eq!(queue.append(block, at_ms(ms)), Appended::Kept);
    }
    let mut entry = queue.pop(at_ms(3)).expect("two blocks");
    assert_eq!(entry.delivered_up_to(3), 1);
    check(&mut queue, &[&entry]);
    queue.put_back(entry);
    assert_eq!((queue.copies(), queue.oldest_ns()), (2, Some(MS)));
    check(&mut queue, &[]);
    assert!(queue.drop_front(Dropped::QueueFull));
    let sum = queue.account().sum(queue.copies());
    assert_eq!((sum.delivered, sum.dropped, sum.queued), (1, 1, 1));
    check(&mut queue, &[]);
}

#[test]
fn dropped_entries_and_queues_settle_all_copies() {
    let mut queue = queue_of(10_000, WhenFull::Block, 0);
    for _ in 0..3 {
        assert_eq!(queue.append(block_of(500, 2, at_ms(0)), at_ms(0)), Appended::Kept);
    }
    drop(queue.pop(at_ms(0)));
    check(&mut queue, &[]);
    let account = Arc::clone(queue.account());
    drop(queue);
    let sum = account.sum(0);
    assert!(sum.holds() && sum.dropped == 6 && account.dropped(Dropped::Stopped) == 6, "{sum:?}");
    assert_eq!((account.queued_bytes.load(Relaxed), account.queued_bytes_high.load(Relaxed)), (0, 1500));
}

#[test]
fn room_is_ample_only_within_the_limit_even_in_an_empty_queue() {
    use crate::disk_queue::faulty_disk::FaultyDisk;
    use crate::queue::{OutputQueue, Room};

    let limits = QueueLimits {
        bytes_max: 1 << 30,
        records_max: 1280,
        when_full: WhenFull::BlockWhileUp,
        age_max_ms: 0,
        ..QueueLimits::default()
    };
    let mut queue: OutputQueue<FaultyDisk> =
        OutputQueue::Memory(MemoryQueue::new(limits, Arc::new(OutputAccount::default())));
    for (records, want) in [(10, Room::Ample), (11, Room::Tight), (5_000, Room::Tight)] {
        assert_eq!(queue.room(100, records, || false, at_ms(0)), want, "{records} records");
        assert_eq!(queue.has_ample_room(100, records), want == Room::Ample, "{records} records");
    }
    // A batch of two blocks: the second would push the first one out.
    assert_eq!(queue.append_admitted(block_of(5_000, 2_000, at_ms(0)), at_ms(0)), Appended::Kept);
    assert_eq!(queue.append_admitted(block_of(5_000, 1, at_ms(0)), at_ms(0)), Appended::Kept);
    assert_eq!((queue.copies(), queue.room(100, 1, || false, at_ms(0))), (2_001, Room::None));
    queue.in_memory().expect("it is").drop_all(Dropped::Stopped);
}

#[test]
fn an_empty_block_is_not_queued() {
    let mut queue = queue_of(0, WhenFull::Block, 0);
    assert_eq!(queue.append(Block::lines(Vec::new(), 0, 0), at_ms(0)), Appended::Kept);
    assert_eq!((queue.blocks(), queue.account().sum(0).copies), (0, 0));
}

#[test]
fn memory_in_use_is_counted_not_bytes_of_records() {
    let mut queue = queue_of(4096, WhenFull::DropNewest, 0);
    let mut bytes = Vec::with_capacity(4096);
    bytes.push(b'\n');
    assert_eq!(queue.append(Block::lines(bytes, 1, 0), at_ms(0)), Appended::Dropped);
    // Packets without bytes use memory as well: their spans.
    let mut packets = model::PacketBatch::default();
    (0..1000).for_each(|_| packets.push(b""));
    assert_eq!(queue.append(Block::packets(packets, 0), at_ms(0)), Appended::Dropped);
    assert_eq!(queue.account().dropped(Dropped::QueueFull), 1001);
}

#[test]
fn sources_wait_by_when_full_and_admitted_batches_are_kept() {
    use crate::disk_queue::faulty_disk::FaultyDisk;
    use crate::queue::{OutputQueue, Room};

    let line = || Block::lines(b"a 1 2\n".to_vec(), 1, 0);
    let one = line().memory_bytes();
    // (when_full, room of a full queue whose endpoint is up, and down)
    let table = [
        (WhenFull::Block, Room::None, Room::None),
        (WhenFull::BlockWhileUp, Room::None, Room::Unneeded),
        (WhenFull::Wait, Room::None, Room::None),
        (WhenFull::DropOldest, Room::Unneeded, Room::Unneeded),
        (WhenFull::DropNewest, Room::Unneeded, Room::Unneeded),
    ];
    for (when_full, up, down) in table {
        let memory = queue_of(200 * one, when_full, 0);
        let mut queue: OutputQueue<FaultyDisk> = OutputQueue::Memory(memory);
        let waits = up == Room::None;
        for number in 0..200 {
            let room = queue.room(one, 1, || false, at_ms(0));
            let want = match waits {
                true if number > 200 - 128 => Room::Tight,
                true => Room::Ample,
                false => Room::Unneeded,
            };
            assert_eq!(room, want, "{when_full:?} with {number} lines");
            assert_eq!(queue.append(line(), at_ms(0)), Appended::Kept);
        }
        assert_eq!(queue.room(one, 1, || false, at_ms(0)), up, "{when_full:?}");
        assert_eq!(queue.room(one, 1, || true, at_ms(0)), down, "{when_full:?}");
        assert_eq!(queue.append_admitted(line(), at_ms(0)), Appended::Kept);
        assert_eq!((queue.copies(), queue.limits().bytes_max), (201, 200 * one));
        // For sources that cannot wait, the limit applies again.
        let appended = queue.append(line(), at_ms(0));
        let (copies, kept) = match when_full {
            WhenFull::BlockWhileUp | WhenFull::Wait | WhenFull::DropOldest => (200, Appended::Kept),
            WhenFull::Block => (201, Appended::Full(line())),
            WhenFull::DropNewest => (201, Appended::Dropped),
        };
        assert_eq!((queue.copies(), appended), (copies, kept), "{when_full:?}");
        queue.in_memory().expect("it is").drop_all(Dropped::Stopped);
    }
}

#[test]
fn a_replacement_queue_continues_at_the_settled_position() {
    let mut queue = MemoryQueue::after(Position(7), QueueLimits::default(), Arc::default());
    let (before, next) = (Position(6), Position(7));
    assert_eq!((queue.accepted_up_to(), queue.settled_up_to()), (next, next));
    assert_eq!((queue.promise(before), queue.promise(next)), (Promise::Safe, Promise::Accepted));
    assert_eq!(queue.append(block_of(400, 1, at_ms(0)), at_ms(0)), Appended::Kept);
    queue.pop(at_ms(0)).expect("it is queued").settle(CopyOutcome::Delivered);
    assert_eq!((queue.accepted_up_to(), queue.settled_up_to()), (Position(8), Position(8)));
}
