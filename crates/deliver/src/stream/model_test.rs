//! A sender against a simulated kernel and peer that record every byte, driven by random operations.
//!
//! Checked after every operation: the account, the gauge, the limits. Checked at the end: order, no record cut, none
//! lost that is not counted as dropped, none doubled that was not in flight when a connection ended.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::plan::{QueueLimits, WhenFull};
use crate::queue::{Appended, Block, BlockEncoding, MemoryQueue};

#[derive(Clone, Debug)]
enum Op {
    /// Records of a new block, and the length of each.
    Append(usize, usize),
    /// Poll; the socket accepts at most so many bytes of a write.
    Poll(usize),
    ConnectOk,
    ConnectFail,
    /// So many more bytes reach the peer's kernel.
    Arrive(usize),
    /// The unacknowledged bytes are reported to the sender.
    Report,
    /// The compressor or TLS session, if there is one, flushes: so many bytes on the wire.
    Flush(usize),
    /// The socket accepts so many bytes on the wire.
    Send(usize),
    /// So many more bytes arrive without a report to the sender, then the connection ends.
    Close(usize, bool),
    Pass(u64),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        4 => (1..5_usize, 1..60_usize).prop_map(|(records, len)| Op::Append(records, len)),
        6 => prop_oneof![0..8_usize, 0..400_usize].prop_map(Op::Poll),
        3 => Just(Op::ConnectOk),
        1 => Just(Op::ConnectFail),
        3 => (0..200_usize).prop_map(Op::Arrive),
        4 => Just(Op::Report),
        3 => (1..300_usize).prop_map(Op::Flush),
        3 => (0..300_usize).prop_map(Op::Send),
        1 => (0..200_usize, any::<bool>()).prop_map(|(bytes, orderly)| Op::Close(bytes, orderly)),
        3 => prop_oneof![0..50_u64, 0..4000_u64].prop_map(Op::Pass),
    ];
    proptest::collection::vec(op, 0..150)
}

fn limits() -> impl Strategy<Value = QueueLimits> {
    let when_full = prop_oneof![
        Just(WhenFull::Block),
        Just(WhenFull::Wait),
        Just(WhenFull::DropOldest),
        Just(WhenFull::DropNewest)
    ];
    let bytes_max = prop_oneof![1500..6000_u64, Just(1 << 30)];
    let records_max = prop_oneof![2 => Just(0), 1 => 1..60_u64];
    let age_max_ms = prop_oneof![3 => Just(0), 1 => 1..20_000_u64];
    (bytes_max, records_max, when_full, age_max_ms).prop_map(
        |(bytes_max, records_max, when_full, age_max_ms)| QueueLimits {
            bytes_max,
            records_max,
            when_full,
            age_max_ms,
            ..QueueLimits::default()
        },
    )
}

/// One connection: what the kernel accepted, and how far it got.
#[derive(Default)]
struct Connection {
    taken: Vec<u8>,
    arrived: usize,
    reported: usize,
    wire: Wire,
}

/// A compressor or TLS session between the sender and the kernel. Its units are readable as a whole or not at all.
#[derive(Default)]
struct Wire {
    marks: Marks,
    /// Ends of units, on the wire and in the lines.
    units: Vec<(usize, usize)>,
    made: usize,
    sent: usize,
    arrived: usize,
}

impl Connection {
    /// Makes all accepted bytes readable, in a unit of so many bytes.
    fn flush(&mut self, bytes: usize) {
        if self.units_end() < self.taken.len() {
            self.wire.made += bytes;
            self.wire.units.push((self.wire.made, self.taken.len()));
            self.wire.marks.flushed(self.wire.made as u64);
        }
    }

    fn units_end(&self) -> usize {
        self.wire.units.last().map_or(0, |(_, lines)| *lines)
    }

    fn arrive_wrapped(&mut self, bytes: usize) {
        self.wire.arrived = self.wire.arrived.saturating_add(bytes).min(self.wire.sent);
        let whole = self.wire.units.iter().rfind(|(wire, _)| *wire <= self.wire.arrived);
        self.arrived = whole.map_or(0, |(_, lines)| *lines);
    }
}

/// Numbers of the whole records in `bytes`; checks that none is cut.
fn records(bytes: &[u8]) -> Vec<u64> {
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |lf| lf + 1);
    let record = |line: &[u8]| {
        let text = std::str::from_utf8(line).expect("records are ASCII");
        let number = text.trim_end_matches('x').strip_suffix(' ').expect("a record is `number xxx`");
        assert!(text.ends_with('x'), "torn: {text:?}");
        number.parse().expect("a record begins with its number")
    };
    bytes[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(record).collect()
}

struct Sim {
    account: Arc<OutputAccount>,
    queue: MemoryQueue,
    sender: StreamSender,
    now: Now,
    frames: bool,
    /// There is a compressor or TLS session between the sender and the kernel.
    wrapped: bool,
    connecting: bool,
    connection: Option<Connection>,
    /// Records with their copies that were routed.
    routed: BTreeMap<u64, u64>,
    next: u64,
    arrived: Vec<u64>,
    /// Records that the kernel accepted whole, with how often.
    taken: BTreeMap<u64, u64>,
    /// How often a record was in flight when a connection ended.
    in_flight: BTreeMap<u64, u64>,
    trace: Vec<String>,
}

impl Sim {
    fn new(limits: QueueLimits, frames: bool, acks: bool, seed: u64) -> Sim {
        let account = Arc::new(OutputAccount::default());
        let sender = StreamSender::new(SenderPlan::default(), Arc::clone(&account), seed);
        Sim {
            queue: MemoryQueue::new(limits, Arc::clone(&account)),
            sender: if acks { sender } else { sender.without_acks() },
            account,
            now: Now::default().plus_ns(SECOND_NS),
            frames,
            wrapped: false,
            connecting: false,
            connection: None,
            routed: BTreeMap::new(),
            next: 0,
            arrived: Vec::new(),
            taken: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            trace: Vec::new(),
        }
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Append(records, len) => self.append(*records, *len),
            Op::Poll(take) => self.poll(*take),
            Op::ConnectOk if self.connecting => {
                self.connecting = false;
                self.connection = Some(Connection::default());
                self.sender.on_connected(self.now);
            }
            Op::ConnectFail if self.connecting => {
                self.connecting = false;
                self.sender.on_connect_failed(self.now);
            }
            Op::Arrive(bytes) => self.arrive(*bytes),
            Op::Report => self.report(),
            Op::Flush(bytes) => {
                if let Some(connection) = self.connection.as_mut().filter(|_| self.wrapped) {
                    connection.flush(*bytes);
                }
            }
            Op::Send(bytes) => {
                if let Some(Connection { wire, .. }) = self.connection.as_mut() {
                    wire.sent = wire.sent.saturating_add(*bytes).min(wire.made);
                }
            }
            Op::Close(bytes, orderly) if self.connection.is_some() => {
                self.arrive(*bytes);
                let settled = if *orderly { usize::MAX } else { self.settled() };
                self.close(settled);
                let why = if *orderly { CloseReason::Peer } else { CloseReason::Broken };
                self.sender.on_closed(why, self.now);
            }
            Op::Pass(ms) => self.now = self.now.plus_ns(ms * 1_000_000),
            Op::ConnectOk | Op::ConnectFail | Op::Close(..) => {}
        }
        self.check();
    }

    fn append(&mut self, records: usize, len: usize) {
        let (mut bytes, mut ends, mut copies) = (Vec::new(), Vec::new(), Vec::new());
        for number in self.next..self.next + records as u64 {
            bytes.extend_from_slice(format!("{number} {}\n", "x".repeat(len)).as_bytes());
            // A frame counts for several copies, a line for one.
            let weight = if self.frames { 1 + number % 3 } else { 1 };
            ends.push((bytes.len() as u32, weight as u32));
            copies.push((number, weight));
        }
        self.next += records as u64;
        let mut block = Block::frames(bytes, ends, self.now.mono_ns);
        if !self.frames {
            block.encoding = BlockEncoding::Lines;
        }
        match self.queue.append(block, self.now) {
            Appended::Kept | Appended::Dropped => self.routed.extend(copies),
            Appended::Full(_) => {}
        }
    }

    fn poll(&mut self, take: usize) {
        let settled = self.settled();
        let action = self.sender.poll(&mut self.queue, self.now);
        self.trace.push(format!("{action:?}"));
        match action {
            Action::Connect => self.connecting = true,
            Action::Write(bytes) => {
                assert!(!bytes.is_empty());
                let take = take.min(bytes.len());
                let connection = self.connection.as_mut().expect("writes need a connection");
                connection.taken.extend_from_slice(&bytes[..take]);
                connection.wire.marks.take(take);
                self.sender.on_written(take, self.now);
            }
            Action::Close(CloseReason::ConnectTimeout) => self.connecting = false,
            Action::Close(_) => self.close(settled),
            Action::WaitUntil(at_ns) => assert!(at_ns > self.now.mono_ns, "a wait ends later than now"),
            Action::Idle => {}
        }
    }

    fn arrive(&mut self, bytes: usize) {
        if let Some(connection) = &mut self.connection {
            if self.wrapped {
                return connection.arrive_wrapped(bytes);
            }
            connection.arrived = connection.arrived.saturating_add(bytes).min(connection.taken.len());
        }
    }

    fn report(&mut self) {
        if let Some(connection) = &mut self.connection {
            connection.reported = connection.arrived;
            let unacked = (connection.taken.len() - connection.arrived) as u64;
            if self.wrapped {
                let known = connection.wire.marks.unacked(connection.wire.arrived as u64);
                assert_eq!(known, unacked, "only readable bytes count");
            }
            self.sender.on_acked(unacked, self.now);
        }
    }

    /// Bytes that count as delivered when the connection breaks now, of those reported.
    fn settled(&self) -> usize {
        if self.sender.on_probation(self.now) { self.sender.settled as usize } else { usize::MAX }
    }

    fn close(&mut self, settled: usize) {
        let Some(connection) = self.connection.take() else { return };
        let settled = settled.min(connection.reported);
        self.arrived.extend(records(&connection.taken[..connection.arrived]));
        let taken = records(&connection.taken);
        for number in &taken[records(&connection.taken[..settled]).len()..] {
            *self.in_flight.entry(*number).or_default() += 1;
        }
        for number in taken {
            *self.taken.entry(number).or_default() += 1;
        }
    }

    fn check(&mut self) {
        let sum = self.account.sum(self.queue.copies() + self.sender.waiting_copies());
        assert!(sum.holds(), "{sum:?}");
        let bytes = self.account.queued_bytes.load(Relaxed);
        assert_eq!(bytes, self.queue.bytes() + self.sender.queued_bytes());
        assert!(bytes <= self.queue.limits().bytes_max);
        assert!(self.sender.queued_bytes() <= IN_FLIGHT_BYTES_MAX);
    }

    /// A working peer from now on, until nothing is queued.
    fn drain(&mut self) {
        for _ in 0..10_000 {
            let arrives = [Op::Flush(7), Op::Send(usize::MAX), Op::Arrive(usize::MAX), Op::Report];
            for op in [Op::Poll(usize::MAX), Op::ConnectOk].iter().chain(&arrives).chain(&[Op::Pass(200)]) {
                self.apply(op);
            }
            if self.queue.copies() + self.sender.waiting_copies() == 0 {
                self.close(usize::MAX);
                return;
            }
        }
        panic!("records stay queued although the peer works");
    }

    fn check_end(&self, acks: bool) {
        let sum = self.account.sum(0);
        assert!(sum.holds() && sum.copies == self.routed.values().sum::<u64>(), "{sum:?}");
        let (mut seen, mut last, mut counts) = (BTreeSet::new(), None, BTreeMap::<u64, u64>::new());
        for number in &self.arrived {
            *counts.entry(*number).or_default() += 1;
            if seen.insert(*number) {
                assert!(last < Some(*number), "{number} came first after {last:?}");
                last = Some(*number);
            }
        }
        for (number, count) in counts {
            let in_flight = self.in_flight.get(&number).copied().unwrap_or(0);
            assert!(
                count <= 1 + in_flight,
                "{number} arrived {count} times, was in flight {in_flight} times"
            );
        }
        let copies_of = |numbers: &BTreeSet<u64>| numbers.iter().map(|n| self.routed[n]).sum::<u64>();
        if acks {
            let missing = self.routed.keys().copied().filter(|number| !seen.contains(number)).collect();
            assert!(copies_of(&missing) <= sum.dropped, "{missing:?} are missing, {} dropped", sum.dropped);
            assert!(sum.delivered <= copies_of(&seen), "delivered copies have arrived");
        }
        let again = self.taken.iter().map(|(number, count)| (count - 1) * self.routed[number]).sum::<u64>();
        let resent = self.account.resent.load(Relaxed);
        assert_eq!(resent, again, "whole records written a second time");
        let in_doubt = self.account.in_doubt.load(Relaxed);
        assert!(resent <= in_doubt, "{resent} resent, but only {in_doubt} were in doubt");
        assert_eq!(self.account.queued_bytes.load(Relaxed), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn no_record_is_lost_cut_or_reordered(
        ops in ops(), limits in limits(), frames: bool, acks in prop::bool::weighted(0.8), seed: u64, wrapped: bool,
    ) {
        let acks = acks || wrapped;
        let mut sim = Sim::new(limits, frames, acks, seed);
        sim.wrapped = wrapped;
        for op in &ops {
            sim.apply(op);
        }
        sim.drain();
        sim.check_end(acks);
    }

    #[test]
    fn a_stop_at_any_time_settles_all_copies(ops in ops(), limits in limits(), stop_ms in 0..3000_u64) {
        let mut sim = Sim::new(limits, false, true, 1);
        for op in &ops {
            sim.apply(op);
        }
        let deadline_ns = sim.now.mono_ns + stop_ms * 1_000_000;
        sim.sender.begin_stop(deadline_ns);
        while !sim.sender.stopped() {
            prop_assert!(sim.now.mono_ns <= deadline_ns);
            for op in [Op::Poll(3), Op::Arrive(1), Op::Report, Op::Pass(50)] {
                if !sim.sender.stopped() {
                    sim.now.mono_ns = sim.now.mono_ns.min(deadline_ns);
                    sim.apply(&op);
                }
            }
            sim.now.mono_ns = sim.now.mono_ns.min(deadline_ns);
        }
        sim.sender.finish_stop(&mut sim.queue, sim.now);
        prop_assert!(sim.account.sum(0).holds());
        prop_assert_eq!(sim.account.queued_bytes.load(Relaxed), 0);
    }

    #[test]
    fn the_same_seed_and_operations_give_the_same_actions(ops in ops(), limits in limits(), seed: u64) {
        let run = || {
            let mut sim = Sim::new(limits, false, true, seed);
            ops.iter().for_each(|op| sim.apply(op));
            sim.trace
        };
        prop_assert_eq!(run(), run());
    }
}
