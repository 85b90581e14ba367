//! Tests of transitions, and a model test with a socket that fails at random.

use model::PacketBatch;
use proptest::prelude::*;

use super::*;
use crate::plan::{QueueLimits, WhenFull};
use crate::queue::{Appended, Block, MemoryQueue};

const MS: u64 = 1_000_000;

struct World {
    account: Arc<OutputAccount>,
    queue: MemoryQueue,
    sender: DatagramSender,
    now: Now,
}

impl World {
    fn new() -> World {
        World::with(QueueLimits::default())
    }

    fn with(limits: QueueLimits) -> World {
        let account = Arc::new(OutputAccount::default());
        World {
            queue: MemoryQueue::new(limits, Arc::clone(&account)),
            sender: DatagramSender::new(SenderPlan::default(), Arc::clone(&account), 1),
            account,
            now: Now::default().plus_ns(SECOND_NS),
        }
    }

    fn opened() -> World {
        let mut world = World::new();
        assert_eq!(world.poll(64), DatagramAction::Open);
        world.sender.on_opened(world.now);
        world
    }

    fn append(&mut self, packets: &[&[u8]]) {
        let mut batch = PacketBatch::default();
        packets.iter().for_each(|packet| batch.push(packet));
        assert_eq!(self.queue.append(Block::packets(batch, self.now.mono_ns), self.now), Appended::Kept);
    }

    fn poll(&mut self, packets_max: usize) -> DatagramAction<'_> {
        self.sender.poll(&mut self.queue, packets_max, self.now)
    }

    /// The packets that the sender wants to send now.
    fn packets(&mut self, packets_max: usize) -> Vec<Vec<u8>> {
        match self.poll(packets_max) {
            DatagramAction::Send(packets) => packets.iter().map(<[u8]>::to_vec).collect(),
            _ => Vec::new(),
        }
    }

    fn advance(&mut self, ms: u64) {
        self.now = self.now.plus_ns(ms * MS);
    }

    /// (delivered, dropped, rejected by peer, queued)
    fn sum(&mut self) -> (u64, u64, u64, u64) {
        let sum = self.account.sum(self.queue.copies() + self.sender.waiting_copies());
        assert!(sum.holds(), "{sum:?}");
        let bytes = self.account.queued_bytes.load(Relaxed);
        assert_eq!(bytes, self.queue.bytes() + self.sender.queued_bytes());
        (sum.delivered, sum.dropped, sum.rejected_by_peer, sum.queued)
    }
}

#[test]
fn packets_are_sent_in_order_up_to_the_given_number() {
    let mut world = World::opened();
    world.append(&[b"a", b"", b"ccc"]);
    world.append(&[b"d"]);
    assert_eq!(world.packets(2), [&b"a"[..], b""]);
    world.sender.on_sent(1, world.now);
    assert_eq!(world.packets(2), [b""], "the call may have been cut short by a rejection");
    world.sender.on_sent(1, world.now);
    assert_eq!(world.packets(2), [b"ccc"]);
    world.sender.on_sent(1, world.now);
    assert_eq!(world.packets(64), [b"d"]);
    world.sender.on_sent(1, world.now);
    assert_eq!(world.packets(64).len(), 0);
    assert_eq!(world.sum(), (3, 0, 0, 1), "the last ones may still be rejected");
    world.advance(1000);
    assert_eq!(world.poll(64), DatagramAction::Idle);
    assert_eq!(world.sum(), (4, 0, 0, 0));
    assert_eq!(world.account.bytes_delivered(), 5);
    assert_eq!(world.sender.take_state_change(), Some(StateChange::Up));
}

#[test]
fn each_error_has_its_outcome() {
    // (error, outcome of the first packet, is it the first of the next send, longest pause in ms)
    let table = [
        (SendError::Refused, (0, 0, 0, 2), true, 250),
        (SendError::WouldBlock, (0, 0, 0, 2), true, 50),
        (SendError::TooBig, (0, 1, 0, 1), false, 0),
        (SendError::Gone, (0, 0, 0, 2), true, 250),
        (SendError::Other, (0, 0, 1, 1), false, 250),
    ];
    for (error, want, again, pause_ms) in table {
        let mut world = World::opened();
        world.append(&[b"a", b"b"]);
        assert_eq!(world.packets(64).len(), 2);
        world.sender.on_error(error, world.now);
        assert_eq!(world.sum(), want, "{error:?}");
        if pause_ms > 0 {
            let DatagramAction::WaitUntil(at_ns) = world.poll(64) else { panic!("{error:?} causes a pause") };
            assert!(at_ns - world.now.mono_ns <= pause_ms * MS, "{error:?}");
            assert_eq!(world.sender.wake_ns(), Some(at_ns));
            world.now.mono_ns = at_ns;
        }
        if world.poll(64) == DatagramAction::Open {
            world.sender.on_opened(world.now);
        }
        assert_eq!(
            world.packets(64).first().map(Vec::as_slice),
            Some(if again { &b"a"[..] } else { b"b" }),
            "{error:?}"
        );
    }
    assert_eq!(World::new().account.dropped(Dropped::TooBig), 0);
}

#[test]
fn a_rejecting_address_does_not_delay_other_addresses() {
    let mut world = World::opened();
    world.append(&[b"a", b"bb", b"c", b"d"]);
    assert_eq!(world.packets(1), [b"a"]);
    world.sender.on_sent(1, world.now);
    world.sender.on_address_error(SendError::Refused);
    assert_eq!(world.sum(), (0, 0, 1, 3));
    assert_eq!(world.packets(1), [b"bb"], "at once, without a probe");
    world.sender.on_address_error(SendError::Gone);
    assert_eq!(world.sum(), (0, 0, 1, 3), "it was not sent: the next address gets it");
    // Cut short by a rejection, which counts for two packets, as the rejection of the next packet shows.
    assert_eq!(world.packets(64).len(), 3);
    world.sender.on_sent(1, world.now);
    assert_eq!(world.packets(64), [b"c"]);
    world.sender.on_sent(1, world.now);
    world.sender.on_address_error(SendError::Refused);
    assert_eq!(world.sum(), (0, 0, 3, 1));
    assert_eq!(world.packets(64), [b"d"]);
    world.sender.on_sent(1, world.now);
    world.advance(1000);
    assert_eq!(world.poll(64), DatagramAction::Idle);
    world.sender.on_address_error(SendError::Refused);
    assert_eq!(world.sum(), (1, 0, 3, 0), "confirmed packets are not rejected any more");
    assert_eq!(
        (world.sender.take_state_change(), world.sender.take_state_change()),
        (Some(StateChange::Up), None)
    );
    assert_eq!(world.account.errors.load(Relaxed), 4);
}

#[test]
fn a_dead_endpoint_gets_probe_packets_while_records_stay_queued() {
    let mut world = World::opened();
    (0..40).for_each(|_| world.append(&[b"a"]));
    assert_eq!(world.packets(64).len(), 1);
    world.sender.on_sent(1, world.now);
    world.sender.on_error(SendError::Refused, world.now);
    for refused in 1..20 {
        assert_eq!(world.sum(), (0, 0, refused, 40 - refused));
        let DatagramAction::WaitUntil(at_ns) = world.poll(64) else {
            panic!("it pauses before the next one")
        };
        assert_eq!(world.sender.wake_ns(), Some(at_ns));
        world.now.mono_ns = at_ns;
        assert_eq!(world.packets(64).len(), 1, "one probe packet");
        world.sender.on_sent(1, world.now);
        assert!(matches!(world.poll(64), DatagramAction::WaitUntil(_)));
        world.sender.on_error(SendError::Refused, world.now);
    }
    assert_eq!(world.sender.take_state_change(), Some(StateChange::Down { failure: Failure::Refused }));
    assert!(
        matches!(world.sender.take_state_change(), Some(StateChange::StillDown { .. })),
        "more than a minute has passed"
    );
    assert_eq!((world.sender.take_state_change(), world.sender.state().attempts), (None, 20));
    // The endpoint is back: the probe is not rejected, and the others follow at once.
    world.advance(15_000);
    world.append(&[b"b", b"c"]);
    assert_eq!(world.packets(64), [b"a"]);
    world.sender.on_sent(1, world.now);
    world.advance(99);
    assert_eq!(world.packets(64).len(), 0, "the probe is not confirmed yet");
    world.advance(1);
    for _ in 0..19 {
        assert_eq!(world.packets(64), [b"a"]);
        world.sender.on_sent(1, world.now);
    }
    assert_eq!(world.packets(64), [b"b", b"c"]);
    world.sender.on_sent(2, world.now);
    world.poll(64);
    assert_eq!(world.sender.state().status, Status::Down, "not confirmed as up yet");
    world.advance(1000);
    world.poll(64);
    assert!(matches!(world.sender.take_state_change(), Some(StateChange::Recovered { attempts: 20, .. })));
    assert_eq!(world.sum(), (22, 0, 20, 0));
}

#[test]
fn after_a_short_send_one_packet_probes_for_the_error() {
    // (error of the packet that was sent alone, sum after it, packets of the next call)
    let table = [
        (None, (0, 0, 0, 5), 3),
        (Some(SendError::Refused), (0, 0, 2, 3), 0),
        (Some(SendError::WouldBlock), (0, 0, 0, 5), 0),
    ];
    for (error, want, next) in table {
        let mut world = World::opened();
        world.append(&[b"a", b"b", b"c", b"d", b"e"]);
        assert!(!world.sender.needs_error_check(world.now), "nothing was sent");
        assert_eq!(world.packets(64).len(), 5);
        world.sender.on_sent(1, world.now);
        assert!(!world.sender.needs_error_check(world.now), "the next send returns it");
        assert_eq!(world.packets(64), [b"b"]);
        world.sender.on_sent(1, world.now);
        assert!(world.sender.needs_error_check(world.now));
        if let Some(error) = error {
            world.sender.on_error(error, world.now);
        }
        assert_eq!(world.sum(), want, "{error:?}");
        assert_eq!(world.packets(64).len(), next, "{error:?}");
    }
    let mut world = World::opened();
    world.append(&[b"a", b"b"]);
    world.poll(64);
    world.sender.on_sent(2, world.now);
    world.advance(999);
    assert!(!world.sender.needs_error_check(world.now));
    world.advance(1);
    assert!(world.sender.needs_error_check(world.now), "before they are confirmed");
    world.poll(64);
    assert!(world.sum() == (2, 0, 0, 0) && !world.sender.needs_error_check(world.now));
}

#[test]
fn an_endpoint_is_down_at_its_first_rejection_even_after_long_uptime() {
    let mut world = World::opened();
    for _ in 0..3 {
        world.append(&[b"a"]);
        world.poll(64);
        world.sender.on_sent(1, world.now);
        world.advance(5000);
        world.poll(64);
    }
    assert_eq!((world.sum(), world.sender.state().status), ((3, 0, 0, 0), Status::Up));
    world.append(&[b"a"]);
    world.poll(64);
    world.sender.on_sent(1, world.now);
    let confirm_ns = world.now.mono_ns + CONFIRM_NS;
    assert_eq!(world.poll(64), DatagramAction::WaitUntil(confirm_ns));
    world.advance(999);
    world.sender.on_error(SendError::Refused, world.now);
    assert_eq!((world.sum(), world.sender.state().status), ((3, 0, 1, 0), Status::Down));
    assert_eq!(world.poll(64), DatagramAction::Idle);
}

#[test]
fn a_packet_rejected_repeatedly_is_given_up_and_the_next_is_sent() {
    let mut world = World::opened();
    world.append(&[b"a", b"b"]);
    for _ in 0..REFUSALS_MAX {
        world.advance(15_000);
        assert_eq!(world.packets(64)[0], b"a");
        world.sender.on_error(SendError::Refused, world.now);
        assert_eq!(world.sum(), (0, 0, 0, 2));
    }
    world.sender.on_error(SendError::Refused, world.now);
    assert_eq!(world.sum(), (0, 0, 1, 1));
    world.advance(15_000);
    assert_eq!(world.packets(64), [b"b"]);
}

#[test]
fn a_blocked_socket_counts_as_down_after_the_write_timeout() {
    let mut world = World::opened();
    world.append(&[b"a"]);
    let mut blocked_ms = 0;
    while world.sender.state().status != Status::Down {
        if let DatagramAction::Send(_) = world.poll(64) {
            world.sender.on_error(SendError::WouldBlock, world.now);
        }
        world.advance(10);
        blocked_ms += 10;
    }
    assert_eq!(blocked_ms, 10_010);
    assert_eq!(world.sender.take_state_change(), Some(StateChange::Down { failure: Failure::Blocked }));
    world.sender.on_writable();
    assert_eq!(world.packets(64), [b"a"], "it continues as soon as there is buffer space");
    world.sender.on_sent(1, world.now);
    world.advance(1000);
    world.poll(64);
    assert!(matches!(world.sender.take_state_change(), Some(StateChange::Recovered { .. })));
    assert_eq!(world.sum(), (1, 0, 0, 0));
}

#[test]
fn records_too_old_at_a_blocked_socket_are_dropped() {
    let mut world = World::with(QueueLimits { age_max_ms: 1000, ..QueueLimits::default() });
    world.poll(64);
    world.sender.on_opened(world.now);
    world.append(&[b"a", b"b", b"c"]);
    assert_eq!(world.packets(64).len(), 3);
    world.sender.on_sent(1, world.now);
    world.sender.on_error(SendError::WouldBlock, world.now);
    world.advance(1000);
    world.append(&[b"d"]);
    world.poll(64);
    assert_eq!(world.account.dropped(Dropped::TooOld), 0, "at the limit");
    world.advance(1);
    assert_eq!(world.packets(64), [b"d"]);
    assert_eq!((world.account.dropped(Dropped::TooOld), world.sum()), (2, (1, 2, 0, 1)));
}

#[test]
fn opening_a_socket_fails_or_times_out() {
    let mut world = World::new();
    world.append(&[b"a"]);
    assert_eq!(world.poll(64), DatagramAction::Open);
    world.sender.on_open_failed(world.now);
    let DatagramAction::WaitUntil(at_ns) = world.poll(64) else { panic!("a pause") };
    assert!(at_ns - world.now.mono_ns <= 250 * MS);
    world.now.mono_ns = at_ns;
    assert_eq!(world.poll(64), DatagramAction::Open);
    let deadline_ns = world.now.mono_ns + 5000 * MS;
    assert_eq!(world.poll(64), DatagramAction::WaitUntil(deadline_ns));
    world.advance(5000);
    assert!(matches!(world.poll(64), DatagramAction::WaitUntil(at_ns) if at_ns <= deadline_ns + 500 * MS));
    world.sender.on_opened(world.now);
    assert_eq!(world.packets(64).len(), 0, "the attempt has timed out");
    assert_eq!((world.account.errors.load(Relaxed), world.sum()), (2, (0, 0, 0, 1)));
}

#[test]
fn queue_limits_apply_while_the_socket_is_closed() {
    let mut world = World::with(QueueLimits { bytes_max: 4000, ..QueueLimits::default() });
    world.poll(64);
    world.sender.on_opened(world.now);
    world.append(&[b"first", b"second"]);
    world.poll(1);
    world.sender.on_sent(1, world.now);
    world.sender.on_error(SendError::Gone, world.now);
    world.poll(64);
    assert_eq!(world.sum(), (1, 0, 0, 1));
    for number in 0..100_u8 {
        world.append(&[&[number]]);
        world.poll(64);
    }
    let (delivered, dropped, refused, waiting) = world.sum();
    assert!(dropped > 80 && delivered + dropped + refused + waiting == 102);
    world.advance(250);
    world.poll(64);
    world.sender.on_opened(world.now);
    assert_eq!(world.packets(64), [[100 - waiting as u8]], "the oldest that is left");
}

#[test]
fn lines_and_frames_are_sent_as_packets() {
    let mut world = World::opened();
    let lines = Block::lines(b"a\nbb\n".to_vec(), 2, 0);
    let frames = Block::frames(b"cdd".to_vec(), vec![(1, 5), (3, 7)], 0);
    for block in [lines, frames] {
        assert_eq!(world.queue.append(block, world.now), Appended::Kept);
    }
    let mut sent = Vec::new();
    for waiting in [14, 13, 12, 7] {
        assert_eq!(world.sum().3, waiting);
        sent.extend(world.packets(1));
        world.sender.on_sent(1, world.now);
        world.sender.settle_confirmed();
    }
    assert_eq!(sent, [&b"a\n"[..], b"bb\n", b"c", b"dd"]);
    assert_eq!(world.sum(), (14, 0, 0, 0));
}

#[test]
fn a_stop_sends_queued_packets_until_its_deadline() {
    for (works, want) in [(true, (2, 0, 0, 0)), (false, (0, 2, 0, 0))] {
        let mut world = World::new();
        world.append(&[b"a", b"b"]);
        let deadline_ns = world.now.mono_ns + 3000 * MS;
        world.sender.begin_stop(deadline_ns);
        while !world.sender.stopped() {
            match world.poll(1) {
                DatagramAction::Open if works => world.sender.on_opened(world.now),
                DatagramAction::Open => world.sender.on_open_failed(world.now),
                DatagramAction::Send(_) => world.sender.on_sent(1, world.now),
                DatagramAction::WaitUntil(at_ns) => world.now.mono_ns = at_ns,
                DatagramAction::Idle => {}
            }
        }
        assert!(world.now.mono_ns <= deadline_ns);
        world.sender.finish_stop(&mut world.queue, world.now);
        assert_eq!(world.sum(), want);
        assert_eq!((world.sender.state().status, world.sender.wake_ns()), (Status::Stopped, None));
    }
}

#[derive(Clone, Debug)]
enum Op {
    Append(usize),
    Send(usize, usize),
    Error(SendError),
    ErrorOfOne(SendError),
    Open(bool),
    Pass(u64),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let error = prop_oneof![
        Just(SendError::Refused),
        Just(SendError::WouldBlock),
        Just(SendError::TooBig),
        Just(SendError::Gone),
        Just(SendError::Other),
    ];
    let op = prop_oneof![
        3 => (0..6_usize).prop_map(Op::Append),
        5 => (0..8_usize, 0..8_usize).prop_map(|(max, sent)| Op::Send(max, sent)),
        1 => error.prop_map(Op::Error),
        1 => prop_oneof![Just(SendError::Refused), Just(SendError::Gone)].prop_map(Op::ErrorOfOne),
        2 => prop::bool::weighted(0.8).prop_map(Op::Open),
        3 => (0..800_u64).prop_map(Op::Pass),
    ];
    proptest::collection::vec(op, 0..150)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_packet_is_sent_once_in_order_or_counted(ops in ops(), bytes_max in 600..4000_u64, block: bool) {
        let when_full = if block { WhenFull::Block } else { WhenFull::DropOldest };
        let mut world = World::with(QueueLimits { bytes_max, records_max: 0, when_full, age_max_ms: 0, ..QueueLimits::default() });
        let (mut next, mut left, mut opening) = (0_u32, Vec::new(), false);
        for op in ops {
            match op {
                Op::Append(packets) => {
                    let mut batch = PacketBatch::default();
                    (0..packets as u32).for_each(|place| batch.push(&(next + place).to_be_bytes()));
                    next += packets as u32;
                    let _maybe_full = world.queue.append(Block::packets(batch, world.now.mono_ns), world.now);
                }
                Op::Send(max, sent) => match world.sender.poll(&mut world.queue, max, world.now) {
                    DatagramAction::Send(packets) => {
                        let sent = sent.min(packets.spans.len());
                        left.extend(packets.iter().take(sent).map(|p| u32::from_be_bytes(p.try_into().unwrap())));
                        world.sender.on_sent(sent, world.now);
                    }
                    DatagramAction::Open => opening = true,
                    DatagramAction::WaitUntil(at_ns) => prop_assert!(at_ns > world.now.mono_ns),
                    DatagramAction::Idle => {}
                },
                Op::Error(error) => world.sender.on_error(error, world.now),
                Op::ErrorOfOne(error) => world.sender.on_address_error(error),
                Op::Open(works) if opening => {
                    opening = false;
                    if works { world.sender.on_opened(world.now) } else { world.sender.on_open_failed(world.now) }
                }
                Op::Open(_) => {}
                Op::Pass(ms) => {
                    world.advance(ms);
                    let (before, asks) = (world.sum().0, world.sender.needs_error_check(world.now));
                    opening |= world.poll(3) == DatagramAction::Open;
                    prop_assert!(asks || world.sum().0 == before, "nothing is confirmed before the pending error was read");
                }
            }
            let (delivered, _, refused, _) = world.sum();
            prop_assert!(delivered <= left.len() as u64 && left.len() as u64 <= delivered + refused + world.sender.waiting_copies());
            prop_assert!(world.account.queued_bytes.load(Relaxed) <= bytes_max);
        }
        prop_assert!(left.is_sorted_by(|a, b| a < b), "once each, in order: {left:?}");
        world.sender.finish_stop(&mut world.queue, world.now);
        prop_assert_eq!(world.sum().3, 0);
    }
}
