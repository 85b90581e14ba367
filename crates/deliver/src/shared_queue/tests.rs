//! Random senders on one queue: order per series, no loss, a balanced account, and connections that stall.

use std::sync::Arc;

use model::OutputAccount;
use proptest::prelude::*;

use super::*;
use crate::plan::WhenFull;
use crate::queue::{MemoryQueue, OutputQueue};

/// The queue and its connections, as the binary uses them.
struct Shared {
    queue: OutputQueue<crate::disk_queue::faulty_disk::FaultyDisk>,
    connections: SharedQueue,
}

impl Shared {
    fn connection(
        &mut self,
        number: usize,
    ) -> ConnectionQueue<'_, OutputQueue<crate::disk_queue::faulty_disk::FaultyDisk>> {
        self.connections.of(&mut self.queue, number)
    }

    fn ready(&mut self) -> u16 {
        self.connections.ready(&mut self.queue)
    }
}

const NOW: Now = Now { mono_ns: 1_000, wall_ns: 1_000 };

fn queue(on_disk: bool, account: &Arc<OutputAccount>, connections: usize) -> Shared {
    let limits = QueueLimits {
        bytes_max: 1 << 20,
        records_max: 0,
        when_full: WhenFull::Block,
        age_max_ms: 0,
        ..QueueLimits::default()
    };
    let queue = if on_disk {
        let plan = crate::disk_queue::DiskQueuePlan { limits, ..Default::default() };
        let disk = crate::disk_queue::faulty_disk::FaultyDisk::new(7);
        let opened = crate::disk_queue::DiskQueue::open(disk, plan, Arc::clone(account), 1, NOW);
        OutputQueue::Disk(Box::new(opened.expect("the directory can be listed").0))
    } else {
        OutputQueue::Memory(MemoryQueue::new(limits, Arc::clone(account)))
    };
    Shared { queue, connections: SharedQueue::new(connections) }
}

fn block(number: u64, partition: Option<u8>) -> Block {
    Block { partition, ..Block::lines(format!("{number}\n").into_bytes(), 1, NOW.mono_ns) }
}

fn number_of(entry: &Entry) -> u64 {
    let text = std::str::from_utf8(&entry.block().bytes).expect("digits");
    text.trim().parse().expect("a number")
}

fn partition_of(entry: &Entry) -> Option<u8> {
    entry.block().partition
}

#[derive(Clone, Debug)]
enum Op {
    Append(Option<u8>),
    Pop(usize),
    /// The connection's oldest block is delivered.
    Deliver(usize),
    /// The connection ends: all its blocks go back.
    Lose(usize),
    Recall,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => (0..PARTITIONS).prop_map(|partition| Op::Append(Some(partition))),
        3 => Just(Op::Append(None)),
        8 => (0..4_usize).prop_map(Op::Pop),
        6 => (0..4_usize).prop_map(Op::Deliver),
        1 => (0..4_usize).prop_map(Op::Lose),
        1 => Just(Op::Recall),
    ];
    proptest::collection::vec(op, 0..200)
}

/// Order to keep: between blocks of one partition, and between a block without one and all others.
fn keeps_order(delivered: &[(u64, Option<u8>)]) -> bool {
    delivered.iter().enumerate().all(|(at, (number, partition))| {
        delivered[..at].iter().all(|(before, other)| {
            before < number || (partition.is_some() && other.is_some() && partition != other)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn series_keep_their_order_and_no_record_is_lost(ops in ops(), on_disk: bool, connections in 1..5_usize) {
        let account = Arc::new(OutputAccount::default());
        let mut shared = queue(on_disk, &account, connections);
        let mut held: Vec<VecDeque<Entry>> = (0..connections).map(|_| VecDeque::new()).collect();
        let (mut appended, mut delivered) = (0, Vec::new());
        let drain = (0..400).flat_map(|_| (0..4).flat_map(|connection| [Op::Pop(connection), Op::Deliver(connection)]));
        for op in ops.into_iter().chain(drain) {
            match op {
                Op::Append(partition) => {
                    let kept = shared.connection(0).append(block(appended, partition), NOW);
                    prop_assert_eq!(kept, Appended::Kept);
                    appended += 1;
                }
                Op::Pop(connection) => {
                    let connection = connection % connections;
                    let ready = shared.ready() & (1 << connection) != 0;
                    let popped = shared.connection(connection).pop(NOW);
                    prop_assert!(ready || popped.is_none(), "connection {} was not ready", connection);
                    held[connection].extend(popped);
                }
                Op::Deliver(connection) => {
                    if let Some(entry) = held[connection % connections].pop_front() {
                        delivered.push((number_of(&entry), partition_of(&entry)));
                        entry.settle(CopyOutcome::Delivered);
                    }
                }
                Op::Lose(connection) => {
                    while let Some(entry) = held[connection % connections].pop_back() {
                        shared.connection(connection % connections).put_back(entry);
                    }
                }
                Op::Recall => shared.connections.put_back_all(&mut shared.queue),
            }
            let held: u64 = held.iter().flatten().map(Entry::copies).sum();
            let sum = account.sum(shared.connection(0).copies() + held);
            prop_assert!(sum.holds(), "{:?}", sum);
        }
        prop_assert_eq!(delivered.len() as u64, appended, "all of it arrives");
        prop_assert!(keeps_order(&delivered), "{:?}", delivered);
        prop_assert!(shared.connection(0).is_empty());
    }
}

#[test]
fn a_stalled_connection_blocks_the_others_only_past_the_limit() {
    let account = Arc::new(OutputAccount::default());
    let mut shared = queue(false, &account, 2);
    let large = |partition| {
        let mut text = vec![b'x'; 40_000];
        text[39_999] = b'\n';
        Block { partition: Some(partition), ..Block::lines(text, 1, NOW.mono_ns) }
    };
    for _ in 0..10 {
        assert!(shared.connection(0).append(large(1), NOW) == Appended::Kept);
        assert!(shared.connection(0).append(large(0), NOW) == Appended::Kept);
    }
    let mut taken = Vec::new();
    while let Some(entry) = shared.connection(0).pop(NOW) {
        taken.push(entry);
    }
    assert_eq!((taken.len(), shared.ready()), (6, 0b10), "a quarter of the limit is kept");
    assert_eq!(shared.connections.take_ready(&mut shared.queue), 0, "connection 1 never asked");
    let other = shared.connection(1).pop(NOW).expect("it is kept for connection 1");
    assert_eq!(shared.connections.take_ready(&mut shared.queue), 0b01, "connection 0 got nothing before");
    assert_eq!(shared.connections.take_ready(&mut shared.queue), 0, "and is woken once");
    other.settle(CopyOutcome::Delivered);
    assert!(shared.connection(0).pop(NOW).is_some());
}

#[test]
fn the_last_sender_that_ends_drops_the_queue() {
    for (on_disk, waiting) in [(false, 0), (true, 2)] {
        let account = Arc::new(OutputAccount::default());
        let mut shared = queue(on_disk, &account, 2);
        for partition in [1, 0] {
            assert_eq!(shared.connection(0).append(block(0, Some(partition)), NOW), Appended::Kept);
        }
        let entry = shared.connection(0).pop(NOW).expect("its own");
        shared.connection(0).put_back(entry);
        shared.connection(0).on_sender_stopped();
        assert_eq!((shared.connection(1).copies(), account.dropped(Dropped::Stopped)), (2, 0), "{on_disk}");
        shared.connection(1).on_sender_stopped();
        assert_eq!(
            (shared.connection(1).copies(), account.dropped(Dropped::Stopped)),
            (waiting, 2 - waiting),
            "{on_disk}"
        );
    }
}

#[test]
fn series_are_hashed_to_the_same_partitions_in_every_run() {
    let mut counts = [0; PARTITIONS as usize];
    for number in 0..16_000 {
        counts[usize::from(partition(format!("app.requests.{number}").as_bytes(), b"env:prod"))] += 1;
    }
    assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    // Blocks of an earlier version may be queued on disk.
    assert_eq!((partition(b"a", b""), partition(b"a", b"b"), partition(b"", b"a")), (1, 13, 8));
}

#[test]
fn a_connection_is_empty_when_all_queued_blocks_belong_to_others() {
    let account = Arc::new(OutputAccount::default());
    let mut shared = queue(false, &account, 2);
    assert_eq!(shared.connection(0).append(block(0, Some(1)), NOW), Appended::Kept);
    assert!(!shared.connection(0).is_empty(), "its owner is not known yet");
    assert!(
        shared.connection(0).pop(NOW).is_none()
            && shared.connection(0).is_empty()
            && !shared.connection(1).is_empty()
    );
    assert_eq!(shared.connection(1).append(block(1, None), NOW), Appended::Kept);
    let entry = shared.connection(1).pop(NOW).expect("its own");
    assert!(shared.connection(1).pop(NOW).is_none() && shared.connection(1).is_empty());
    assert!(
        shared.connection(0).pop(NOW).is_none() && !shared.connection(0).is_empty(),
        "the blocks in flight come first"
    );
    assert_eq!(shared.connections.take_ready(&mut shared.queue), 0);
    entry.settle(CopyOutcome::Delivered);
    assert_eq!(shared.connections.take_ready(&mut shared.queue), 0b01, "now it may be sent");
    shared.connection(0).pop(NOW).expect("the one of no partition").settle(CopyOutcome::Delivered);
    assert!(shared.connection(0).is_empty());
}

#[test]
fn connections_do_not_wake_each_other_while_the_disk_fails() {
    use crate::disk_queue::READ_AGAIN_MS;
    use crate::disk_queue::faulty_disk::{Faults, FaultyDisk};

    let account = Arc::new(OutputAccount::default());
    let plan = crate::disk_queue::DiskQueuePlan::default();
    let disk = FaultyDisk::new(7);
    let (mut opened, _) = crate::disk_queue::DiskQueue::open(disk.clone(), plan, account, 1, NOW)
        .expect("the directory can be listed");
    for number in 0..2 {
        assert_eq!(opened.append(block(number, Some(number as u8)), NOW), Appended::Kept);
    }
    let _synced = opened.begin_last_sync().map(|job| opened.on_synced(job.perform(&disk)));
    let mut shared = Shared { queue: OutputQueue::Disk(Box::new(opened)), connections: SharedQueue::new(2) };
    let no_memory = model::DiskError::Scarce { code: 12 };
    disk.set_faults(Faults { opens_fail: Some(no_memory), read_error_in: Some(0), ..Faults::default() });
    for connection in [0, 1, 0, 1] {
        assert!(shared.connection(connection).pop(NOW).is_none(), "the disk gives nothing");
        assert_eq!(
            shared.connections.take_ready(&mut shared.queue),
            0,
            "connection {connection} would get nothing again"
        );
    }
    assert!(!shared.connection(0).is_empty() && !shared.connection(1).is_empty());
    disk.set_faults(Faults::default());
    // The sync thread wakes all of them then.
    let later = NOW.plus_ns(READ_AGAIN_MS * 1_000_000);
    let first = shared.connection(1).pop(later).expect("it can be read");
    assert_eq!((number_of(&first), shared.connections.take_ready(&mut shared.queue)), (1, 0b01));
    let other = shared.connection(0).pop(later).expect("it was before the other connection's block");
    first.settle(CopyOutcome::Delivered);
    other.settle(CopyOutcome::Delivered);
    assert!(shared.connection(0).is_empty() && shared.connection(1).is_empty());
}

#[test]
fn connections_do_not_wake_each_other_at_the_limit_of_open_records() {
    let account = Arc::new(OutputAccount::default());
    let mut shared = queue(true, &account, 2);
    for number in 0..=crate::disk_queue::OPEN_RECORDS_MAX as u64 {
        assert_eq!(shared.connection(0).append(block(number, Some(0)), NOW), Appended::Kept);
    }
    let mut taken: VecDeque<Entry> = std::iter::from_fn(|| shared.connection(0).pop(NOW)).collect();
    assert_eq!(taken.len(), crate::disk_queue::OPEN_RECORDS_MAX);
    assert!(shared.connection(1).pop(NOW).is_none());
    assert_eq!(shared.connections.take_ready(&mut shared.queue), 0, "both would get nothing again");
    taken.pop_front().expect("many").settle(CopyOutcome::Delivered);
    assert_eq!(shared.connections.take_ready(&mut shared.queue), 0b11);
    taken.extend(shared.connection(0).pop(NOW));
    taken.into_iter().for_each(|entry| entry.settle(CopyOutcome::Delivered));
    assert!(shared.connection(0).is_empty() && account.sum(0).holds());
}

#[test]
fn a_backlog_without_partitions_goes_to_the_first_connection_without_pauses() {
    let account = Arc::new(OutputAccount::default());
    let mut shared = queue(true, &account, 2);
    for (number, partition) in [(0, None), (1, None), (2, None), (3, Some(1)), (4, Some(0)), (5, None)] {
        assert_eq!(shared.connection(0).append(block(number, partition), NOW), Appended::Kept);
    }
    assert!(shared.connection(1).pop(NOW).is_none(), "the first connection has all of the run");
    let mut run: Vec<Entry> = std::iter::from_fn(|| shared.connection(0).pop(NOW)).collect();
    assert_eq!(run.iter().map(number_of).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(
        shared.connections.take_ready(&mut shared.queue),
        0,
        "the block after the run waits for all of it"
    );
    let last = run.pop().expect("three");
    run.into_iter().for_each(|entry| entry.settle(CopyOutcome::Delivered));
    assert_eq!(shared.connections.take_ready(&mut shared.queue), 0);
    shared.connection(0).put_back(last);
    assert!(shared.connection(1).pop(NOW).is_none());
    shared.connection(0).pop(NOW).expect("it is sent again").settle(CopyOutcome::Delivered);
    assert_eq!(shared.connections.take_ready(&mut shared.queue), 0b10, "the other block belongs to it");
    let behind = [1, 0].map(|connection| shared.connection(connection).pop(NOW).expect("each has one"));
    assert_eq!(behind.each_ref().map(number_of), [3, 4]);
    assert!(shared.connection(0).pop(NOW).is_none(), "another run: it starts after both");
    behind.into_iter().for_each(|entry| entry.settle(CopyOutcome::Delivered));
    assert_eq!(shared.connections.take_ready(&mut shared.queue), 0b01);
    assert_eq!(number_of(&shared.connection(0).pop(NOW).expect("it may be sent")), 5);
}
