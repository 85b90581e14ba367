//! Queues that sources wait for (`when_full = "wait"`), in memory and on disk: who waits, how long, and what is dropped.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use model::{CopyOutcome, DiskError, Dropped, Now, OutputAccount};
use proptest::prelude::*;

use super::wait::WAIT_WINDOW_MS;
use super::*;
use crate::disk_queue::faulty_disk::FaultyDisk;
use crate::disk_queue::{DiskQueue, DiskQueuePlan};
use crate::pause::MS_NS;
use crate::plan::WhenFull;

type Either = OutputQueue<FaultyDisk>;

fn at_ms(ms: u64) -> Now {
    Now { mono_ns: 1 << 40, wall_ns: 1 << 60 }.plus_ns(ms * MS_NS)
}

fn line(ms: u64) -> Block {
    Block::lines(b"some.name 1 2\n".to_vec(), 1, at_ms(ms).mono_ns)
}

/// Bytes that one line takes in the queue.
fn line_bytes(on_disk: bool) -> u64 {
    let empty = queue_of(on_disk, 1 << 20, 0);
    let (mut queue, _disk) = empty;
    assert_eq!(queue.append(line(0), at_ms(0)), Appended::Kept);
    queue.bytes()
}

/// A queue with segments of ten lines, if it is on disk.
fn queue_of(on_disk: bool, bytes_max: u64, records_max: u64) -> (Either, FaultyDisk) {
    let limits = QueueLimits { bytes_max, records_max, max_wait_ms: 1_000, ..QueueLimits::default() };
    assert_eq!(limits.when_full, WhenFull::Wait);
    let (account, disk) = (Arc::new(OutputAccount::default()), FaultyDisk::new(7));
    if !on_disk {
        return (OutputQueue::Memory(MemoryQueue::new(limits, account)), disk);
    }
    let plan = DiskQueuePlan { limits, segment_bytes: 80 + 10 * 110, ..DiskQueuePlan::default() };
    let (queue, _) =
        DiskQueue::open(disk.clone(), plan, account, 1, at_ms(0)).expect("the directory is empty");
    (OutputQueue::Disk(Box::new(queue)), disk)
}

fn account(queue: &mut Either) -> Arc<OutputAccount> {
    match queue {
        OutputQueue::Memory(queue) => Arc::clone(queue.account()),
        OutputQueue::Disk(queue) => Arc::clone(queue.account()),
    }
}

/// Appends lines until there is no room for one more.
fn fill(queue: &mut Either, one: u64, ms: u64) {
    while queue.has_room(one, 1) {
        assert_eq!(queue.append(line(ms), at_ms(ms)), Appended::Kept);
    }
}

fn check(queue: &mut Either, in_flight: &[Entry]) {
    let held: u64 = in_flight.iter().map(Entry::copies).sum();
    let account = account(queue);
    let sum = account.sum(queue.copies() + held);
    assert!(sum.holds(), "{sum:?}");
    let held: u64 = in_flight.iter().map(Entry::memory_bytes).sum();
    assert_eq!(account.queued_bytes.load(Relaxed), queue.bytes() + held);
}

#[test]
fn a_full_queue_drops_to_half_when_sources_have_waited_for_max_wait() {
    for on_disk in [false, true] {
        let one = line_bytes(on_disk);
        // A limit of bytes, and one of records.
        for (bytes_max, records_max) in [(100 * one, 0), (1 << 30, 100)] {
            let (mut queue, _disk) = queue_of(on_disk, bytes_max, records_max);
            fill(&mut queue, one, 0);
            assert_eq!((queue.copies(), queue.look_again_ns()), (100, u64::MAX));
            for ms in [0, 200, 400, 600, 800, 999] {
                assert_eq!(queue.room(one, 1, || false, at_ms(ms)), Room::None, "at {ms} ms");
                assert!(queue.look_again_ns() <= at_ms(1_000).mono_ns);
            }
            assert_eq!(queue.take_wait_report(), None);
            assert_eq!(queue.room(one, 1, || false, at_ms(1_000)), Room::Unneeded);
            assert_eq!((queue.copies(), queue.look_again_ns()), (50, u64::MAX), "on disk: {on_disk}");
            assert_eq!(account(&mut queue).dropped(Dropped::QueueFull), 50);
            assert_eq!(queue.take_wait_report(), Some(WaitReport::DropsBegin));
            check(&mut queue, &[]);
            // Within the window nobody waits any more.
            fill(&mut queue, one, 2_000);
            assert_eq!(queue.room(one, 1, || false, at_ms(2_000)), Room::Unneeded);
            assert_eq!((queue.copies(), queue.take_wait_report()), (50, None));
            // Later they do, and the report has all that was dropped.
            fill(&mut queue, one, 3_000);
            assert_eq!(queue.room(one, 1, || false, at_ms(2_000 + WAIT_WINDOW_MS)), Room::None);
            assert_eq!(queue.take_wait_report(), Some(WaitReport::DropsEnd(100)));
            check(&mut queue, &[]);
        }
    }
}

#[test]
fn room_ends_a_wait() {
    for on_disk in [false, true] {
        let one = line_bytes(on_disk);
        let (mut queue, _disk) = queue_of(on_disk, 100 * one, 0);
        for ms in (0..20_000).step_by(500) {
            fill(&mut queue, one, ms);
            assert_eq!(queue.room(one, 1, || false, at_ms(ms)), Room::None, "at {ms} ms");
            queue.pop(at_ms(ms)).expect("it is full").settle(CopyOutcome::Delivered);
            assert_ne!(queue.room(one, 1, || false, at_ms(ms)), Room::None);
        }
        assert_eq!(account(&mut queue).dropped(Dropped::QueueFull), 0);
    }
}

#[test]
fn data_in_flight_is_not_dropped_and_nobody_waits_for_it_longer() {
    for on_disk in [false, true] {
        let one = line_bytes(on_disk);
        let (mut queue, _disk) = queue_of(on_disk, 100 * one, 0);
        fill(&mut queue, one, 0);
        let in_flight: Vec<Entry> = (0..80).map_while(|_| queue.pop(at_ms(0))).collect();
        for ms in (0..1_000).step_by(100) {
            assert_eq!(queue.room(one, 1, || false, at_ms(ms)), Room::None);
        }
        assert_eq!(queue.room(one, 1, || false, at_ms(1_000)), Room::Unneeded);
        check(&mut queue, &in_flight);
        assert_eq!((queue.copies(), in_flight.len()), (0, 80));
        // A batch larger than what is free goes on as well: its blocks are dropped.
        assert_eq!(queue.room(90 * one, 90, || false, at_ms(1_001)), Room::Unneeded);
    }
}

#[test]
fn whole_segments_are_dropped_without_being_read() {
    let one = line_bytes(true);
    let (mut queue, disk) = queue_of(true, 100 * one, 0);
    fill(&mut queue, one, 0);
    disk.change_faults(|faults| faults.opens_fail = Some(DiskError::Denied));
    for ms in (0..=1_000).step_by(100) {
        let _room = queue.room(one, 1, || false, at_ms(ms));
    }
    assert_eq!((queue.copies(), account(&mut queue).dropped(Dropped::QueueFull)), (50, 50));
    check(&mut queue, &[]);
}

#[test]
fn a_disk_that_fails_makes_sources_wait_for_max_wait_and_drops_no_record() {
    let one = line_bytes(true);
    let (mut queue, disk) = queue_of(true, 100 * one, 0);
    for _ in 0..60 {
        assert_eq!(queue.append(line(0), at_ms(0)), Appended::Kept);
    }
    disk.change_faults(|faults| faults.away = true);
    for ms in (0..1_000).step_by(100) {
        assert_eq!(queue.room(one, 1, || false, at_ms(ms)), Room::None, "at {ms} ms");
    }
    assert_eq!(queue.room(one, 1, || false, at_ms(1_000)), Room::Unneeded);
    assert_eq!((queue.copies(), queue.take_wait_report()), (60, None));
}

#[test]
fn dropping_to_half_takes_several_calls_of_bounded_work() {
    let one = line_bytes(false);
    let (mut queue, _disk) = queue_of(false, 2_000 * one, 0);
    fill(&mut queue, one, 0);
    for ms in (0..1_000).step_by(100) {
        assert_eq!(queue.room(one, 1, || false, at_ms(ms)), Room::None);
    }
    let mut before = queue.copies();
    let mut calls = 0;
    while queue.copies() > 1_000 {
        assert_ne!(queue.room(one, 1, || false, at_ms(1_000)), Room::None);
        assert!(!queue.has_ample_room(one, 1), "the queue is asked batch by batch");
        assert!(before - queue.copies() <= 256, "{} at once", before - queue.copies());
        (before, calls) = (queue.copies(), calls + 1);
    }
    assert_eq!((queue.copies(), calls), (1_000, 4));
    // Half empty is enough.
    let _room = queue.room(one, 1, || false, at_ms(1_001));
    assert_eq!(queue.copies(), 1_000);
}

#[derive(Clone, Debug)]
enum Op {
    /// A source with a batch of so many lines asks for room, and appends them if it need not wait.
    Offer(u64),
    /// A source that cannot wait appends a line.
    Append,
    Pop,
    Settle,
    PutBack,
    /// So many milliseconds.
    Pass(u64),
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Each line has one outcome, sources wait within their budget, and room is found as soon as it is used up.
    #[test]
    fn sources_wait_within_their_budget_and_every_line_is_counted(
        on_disk in any::<bool>(),
        records_max in prop_oneof![Just(0_u64), 10..60_u64],
        ops in prop::collection::vec(prop_oneof![
            6 => (1..30_u64).prop_map(Op::Offer),
            2 => Just(Op::Append),
            1 => Just(Op::Pop),
            1 => Just(Op::Settle),
            1 => Just(Op::PutBack),
            5 => (0..400_u64).prop_map(Op::Pass),
        ], 1..150),
    ) {
        let one = line_bytes(on_disk);
        let (mut queue, _disk) = queue_of(on_disk, 60 * one, records_max);
        let (mut now, mut given) = (at_ms(0), 0);
        let mut in_flight: Vec<Entry> = Vec::new();
        // By source, as each offers batches of one size: since when it waits.
        let mut waited: Vec<(u64, u64)> = Vec::new();
        let mut waits_since = None;
        for op in ops {
            match op {
                Op::Offer(lines) => {
                    if queue.room(lines * one, lines, || false, now) == Room::None {
                        waits_since.get_or_insert(now.mono_ns);
                    } else {
                        waited.extend(waits_since.take().map(|since_ns| (since_ns, now.mono_ns)));
                        for _ in 0..lines {
                            given += 1;
                            let appended = queue.append(line(0), now);
                            prop_assert!(!matches!(appended, Appended::Full(_)));
                        }
                    }
                }
                Op::Append => {
                    given += 1;
                    let appended = queue.append(line(0), now);
                    prop_assert!(!matches!(appended, Appended::Full(_)), "who cannot wait is never asked to");
                }
                Op::Pop => in_flight.extend(queue.pop(now)),
                Op::Settle => in_flight.pop().into_iter().for_each(|entry| entry.settle(CopyOutcome::Delivered)),
                Op::PutBack => in_flight.pop().into_iter().for_each(|entry| queue.put_back(entry)),
                Op::Pass(ms) => {
                    // The caller asks in time.
                    let to_ns = (now.mono_ns + ms * MS_NS).min(queue.look_again_ns());
                    now = now.plus_ns(to_ns - now.mono_ns);
                }
            }
            check(&mut queue, &in_flight);
            prop_assert_eq!(account(&mut queue).sum(0).copies, given);
            let window_ns = WAIT_WINDOW_MS * MS_NS;
            let ends_ns = now.mono_ns;
            let all = waited.iter().copied().chain(waits_since.map(|since_ns| (since_ns, ends_ns)));
            let recent: u64 = all.map(|(from, to)| to.saturating_sub(from.max(ends_ns - window_ns))).sum();
            prop_assert!(recent <= 1_000 * MS_NS, "{recent} ns in one window");
        }
    }
}
