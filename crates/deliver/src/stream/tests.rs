//! Transitions of one sender.

use model::Dropped;

use super::*;
use crate::endpoint::Status;
use crate::plan::QueueLimits;
use crate::queue::{Appended, Block, MemoryQueue};

pub(super) const MS: u64 = 1_000_000;

pub(super) struct World {
    pub(super) account: Arc<OutputAccount>,
    pub(super) queue: MemoryQueue,
    pub(super) sender: StreamSender,
    pub(super) now: Now,
}

impl World {
    pub(super) fn new() -> World {
        World::with(QueueLimits::default())
    }

    pub(super) fn with(limits: QueueLimits) -> World {
        let account = Arc::new(OutputAccount::default());
        let queue = MemoryQueue::new(limits, Arc::clone(&account));
        let sender = StreamSender::new(SenderPlan::default(), Arc::clone(&account), 1);
        World { account, queue, sender, now: Now::default().plus_ns(SECOND_NS) }
    }

    fn connected() -> World {
        let mut world = World::new();
        assert_eq!(world.poll(), Action::Connect);
        world.sender.on_connected(world.now);
        assert_eq!(world.poll(), Action::Idle);
        assert_eq!(world.sender.take_state_change(), Some(StateChange::Up));
        world
    }

    pub(super) fn append(&mut self, text: &str) {
        let copies = text.matches('\n').count() as u32;
        let block = Block::lines(text.as_bytes().to_vec(), copies, self.now.mono_ns);
        assert_eq!(self.queue.append(block, self.now), Appended::Kept);
    }

    pub(super) fn poll(&mut self) -> Action<'_> {
        self.sender.poll(&mut self.queue, self.now)
    }

    pub(super) fn advance(&mut self, ms: u64) {
        self.now = self.now.plus_ns(ms * MS);
    }

    /// Lets time pass until the sender wants to connect. Returns the milliseconds.
    fn advance_until_connect(&mut self) -> u64 {
        let mut waited_ms = 0;
        while self.poll() != Action::Connect {
            self.advance(10);
            waited_ms += 10;
        }
        waited_ms
    }

    fn delivered(&self) -> u64 {
        let sum = self.account.sum(self.queue.copies() + self.sender.waiting_copies());
        assert!(sum.holds(), "{sum:?}");
        sum.delivered
    }

    fn resent(&self) -> u64 {
        self.account.resent.load(Relaxed)
    }
}

#[test]
fn a_line_is_settled_once_its_last_byte_is_acknowledged() {
    let mut world = World::connected();
    world.append("a 1\nb 2\nc 3\n");
    assert_eq!(world.poll(), Action::Write(b"a 1\nb 2\nc 3\n"));
    world.sender.on_written(6, world.now);
    assert_eq!(world.poll(), Action::Write(b"2\nc 3\n"));
    for (unacked, delivered) in [(6, 0), (3, 0), (2, 1), (1, 1), (0, 1)] {
        world.sender.on_acked(unacked, world.now);
        assert_eq!(world.delivered(), delivered, "{unacked} bytes not acknowledged");
    }
    world.sender.on_written(6, world.now);
    world.sender.on_acked(0, world.now);
    assert_eq!((world.delivered(), world.sender.queued_bytes(), world.resent()), (3, 0, 0));
    assert_eq!(world.poll(), Action::Idle);
}

#[test]
fn a_frame_is_settled_as_a_whole() {
    let mut world = World::connected();
    let block = Block::frames(b"abcdefgh".to_vec(), vec![(5, 10), (8, 7)], 0);
    assert_eq!(world.queue.append(block, world.now), Appended::Kept);
    assert_eq!(world.poll(), Action::Write(b"abcdefgh"));
    world.sender.on_written(8, world.now);
    for (unacked, delivered) in [(8, 0), (4, 0), (3, 10), (1, 10), (0, 17)] {
        world.sender.on_acked(unacked, world.now);
        assert_eq!(world.delivered(), delivered, "{unacked} bytes not acknowledged");
    }
}

#[test]
fn a_close_rewinds_to_the_first_unacknowledged_line() {
    // (bytes written, bytes not acknowledged, delivered before, sent again, (in doubt, resent))
    let whole: &'static [u8] = b"aa\nbb\ncc\n";
    type Row = (usize, u64, u64, &'static [u8], (u64, u64));
    let table: [Row; 8] = [
        (0, 0, 0, whole, (0, 0)),
        (1, 0, 0, whole, (1, 0)),
        (3, 3, 0, whole, (1, 1)),
        (3, 0, 1, b"bb\ncc\n", (0, 0)),
        (5, 1, 1, b"bb\ncc\n", (1, 0)),
        (8, 3, 1, b"bb\ncc\n", (2, 1)),
        (9, 3, 2, b"cc\n", (1, 1)),
        (9, 1, 2, b"cc\n", (1, 1)),
    ];
    for (written, unacked, delivered, again, (in_doubt, resent)) in table {
        let mut world = World::connected();
        world.append("aa\nbb\ncc\n");
        assert_eq!(world.poll(), Action::Write(whole));
        world.sender.on_written(written, world.now);
        world.sender.on_acked(unacked, world.now);
        assert_eq!(world.delivered(), delivered, "{written} written, {unacked} not acknowledged");
        world.sender.on_closed(CloseReason::Broken, world.now);
        assert_eq!(world.sender.in_flight_bytes(), 0);
        let doubt = [&world.account.in_doubt, &world.account.in_doubt_bytes].map(|count| count.load(Relaxed));
        assert_eq!(doubt, [in_doubt, unacked], "{written} written, {unacked} not acknowledged");
        assert!(matches!(world.poll(), Action::WaitUntil(_)));
        assert_eq!(world.sender.waiting_copies(), 0, "blocks in flight are in the queue again");
        world.advance(250);
        assert_eq!(world.poll(), Action::Connect);
        world.sender.on_connected(world.now);
        assert_eq!(world.poll(), Action::Write(again), "{written} written, {unacked} not acknowledged");
        world.sender.on_written(again.len(), world.now);
        world.sender.on_acked(0, world.now);
        // The connection before was closed at once: this one has to last.
        assert_eq!(world.delivered(), delivered, "{written}, {unacked}");
        world.advance(1000);
        world.poll();
        assert_eq!((world.delivered(), world.resent()), (3, resent), "{written}, {unacked}");
    }
}

#[test]
fn attempts_have_jitter_and_an_outage_is_logged_once() {
    let mut world = World::new();
    world.append("a 1\n");
    for step_ms in [250, 500, 1000, 2000, 4000, 8000, 15_000, 15_000] {
        assert_eq!(world.poll(), Action::Connect);
        world.sender.on_connect_failed(world.now);
        let Action::WaitUntil(at_ns) = world.poll() else { panic!("there is a pause after a failure") };
        let pause_ns = at_ns - world.now.mono_ns;
        assert!(pause_ns >= step_ms * MS / 2 && pause_ns <= step_ms * MS, "{pause_ns} ns of {step_ms} ms");
        assert_eq!(world.sender.wake_ns(), Some(at_ns));
        world.now = world.now.plus_ns(pause_ns - 1);
        assert_eq!(world.poll(), Action::WaitUntil(at_ns));
        world.now = world.now.plus_ns(1);
    }
    assert_eq!(world.sender.take_state_change(), Some(StateChange::Down { failure: Failure::ConnectFailed }));
    assert_eq!((world.sender.take_state_change(), world.sender.state().attempts), (None, 8));
    assert_eq!(world.account.errors.load(Relaxed), 8);
    assert_eq!(world.poll(), Action::Connect);
    world.sender.on_connected(world.now);
    assert_eq!(world.poll(), Action::Write(b"a 1\n"));
    assert_eq!(world.sender.state().status, Status::Down, "a connection alone does not count as up");
    world.sender.on_written(4, world.now);
    world.sender.on_acked(0, world.now);
    let news = world.sender.take_state_change();
    assert!(matches!(news, Some(StateChange::Recovered { attempts: 8, waiting_copies: 1, .. })), "{news:?}");
    assert_eq!(world.sender.state().status, Status::Up);
}

#[test]
fn connecting_times_out() {
    let mut world = World::new();
    assert_eq!(world.poll(), Action::Connect);
    let deadline_ns = world.now.mono_ns + 5000 * MS;
    assert_eq!(world.poll(), Action::WaitUntil(deadline_ns));
    world.advance(4999);
    assert_eq!(world.poll(), Action::WaitUntil(deadline_ns));
    world.advance(1);
    assert_eq!(world.poll(), Action::Close(CloseReason::ConnectTimeout));
    assert!(matches!(world.poll(), Action::WaitUntil(_)));
    world.sender.on_connected(world.now);
    assert!(matches!(world.poll(), Action::WaitUntil(_)), "the attempt has timed out");
    assert_eq!(
        world.sender.take_state_change(),
        Some(StateChange::Down { failure: Failure::ConnectTimeout })
    );
}

#[test]
fn a_tls_handshake_that_times_out_is_a_tls_failure() {
    let mut world = World::new();
    for (begun, failure) in [(true, Failure::TlsFailed), (false, Failure::ConnectTimeout)] {
        assert_eq!(world.poll(), Action::Connect);
        if begun {
            world.sender.on_handshake_begun();
        }
        world.append("a 1\n");
        world.advance(5000);
        assert_eq!(world.poll(), Action::Close(CloseReason::ConnectTimeout));
        assert_eq!(world.sender.state().last_failure, Some((failure, world.now)));
        world.advance(15_000);
    }
}

#[test]
fn a_peer_without_acknowledgements_is_closed_after_the_write_timeout() {
    // Written at 0 and again at 6 s: only acknowledgements restart the timeout, writes do not.
    for (acked_at_ms, closed_at_ms) in [(None, 10_000), (Some(4000), 14_000), (Some(9999), 19_999)] {
        let mut world = World::connected();
        let start_ns = world.now.mono_ns;
        world.append("aa\nbb\n");
        world.poll();
        world.sender.on_written(6, world.now);
        let mut ms = 0;
        loop {
            if ms == 6000 {
                world.append("cc\n");
            }
            if Some(ms) == acked_at_ms {
                world.sender.on_acked(world.sender.in_flight_bytes() - 1, world.now);
            }
            match world.poll() {
                Action::Write(b"cc\n") => world.sender.on_written(3, world.now),
                Action::Close(CloseReason::WriteTimeout) => break,
                _ => {}
            }
            world.advance(1);
            ms += 1;
        }
        assert_eq!(world.now.mono_ns - start_ns, closed_at_ms * MS, "acknowledged at {acked_at_ms:?}");
        assert_eq!(world.sender.state().last_failure.map(|failure| failure.0), Some(Failure::WriteTimeout));
        world.delivered();
    }
}

#[test]
fn an_endpoint_that_requires_tls_is_down_although_its_kernel_acknowledges_lines() {
    let mut world = World::connected();
    world.append("aa\n");
    for attempt in 1..=3 {
        world.append("bb\n");
        let Action::Write(bytes) = world.poll() else { panic!("a line is queued") };
        let len = bytes.len();
        world.sender.on_written(len, world.now);
        world.sender.on_acked(0, world.now);
        world.advance(5);
        world.sender.on_closed(CloseReason::TlsWanted, world.now);
        let state = world.sender.state();
        assert_eq!((state.status, state.attempts), (Status::Down, attempt), "nothing was in flight");
        assert_eq!(state.last_failure.map(|failure| failure.0), Some(Failure::TlsWanted));
        world.advance_until_connect();
        world.sender.on_connected(world.now);
    }
}

/// The next connection accepts one line, whole or not at all, and lasts so long.
fn take_a_line_and_end(world: &mut World, acked: bool, lives_ms: u64, why: CloseReason) {
    if world.poll() != Action::Connect {
        world.advance_until_connect();
    }
    world.sender.on_connected(world.now);
    let Action::Write(bytes) = world.poll() else { panic!("a line is queued") };
    let len = bytes.len();
    world.sender.on_written(len, world.now);
    world.sender.on_acked(if acked { 0 } else { len as u64 }, world.now);
    let end_ns = world.now.mono_ns + lives_ms * MS;
    while world.now.mono_ns < end_ns {
        world.poll();
        world.advance(10);
    }
    world.sender.on_closed(why, world.now);
}

#[test]
fn an_endpoint_that_closes_at_once_is_down_although_its_kernel_acknowledges_lines() {
    use CloseReason::{Broken, Peer};
    // How long each connection lasts in ms, and how it ends; whether the last end was one too many; undelivered lines.
    type Ends<'a> = &'a [(u64, CloseReason)];
    let table: [(Ends<'_>, bool, u64); 8] = [
        (&[(5, Peer), (5, Peer)], false, 0),
        (&[(5, Peer), (0, Peer), (990, Peer)], true, 0),
        // After the first connection a line counts only when it was read: a reset means that something was not.
        (&[(5, Broken), (5, Peer), (5, Broken)], true, 1),
        (&[(5, Broken), (5, Broken), (5, Broken), (5, Broken)], true, 1),
        (&[(5, Broken), (1000, Broken)], false, 0),
        (&[(5, Peer), (5, Peer), (1000, Peer)], false, 0),
        (&[(5, Peer), (5, Peer), (1000, Peer), (5, Peer), (5, Peer)], false, 0),
        (&[(5, Peer), (5, Peer), (1000, Peer), (5, Peer), (5, Peer), (5, Peer)], true, 0),
    ];
    for (ends, failing, left) in table {
        let mut world = World::connected();
        world.sender.on_closed(Peer, world.now.plus_ns(60 * SECOND_NS));
        for (lives_ms, why) in ends {
            if world.queue.is_empty() {
                world.append("aa\n");
            }
            take_a_line_and_end(&mut world, true, *lives_ms, *why);
            world.poll();
        }
        assert_eq!(world.queue.copies(), left, "{ends:?}");
        let state = world.sender.state();
        let last = state.last_failure.map(|(failure, _)| failure);
        assert_eq!(last, failing.then_some(Failure::ClosesAtOnce), "{ends:?}");
        assert_eq!(state.status == Status::Down, failing, "{ends:?}");
    }
}

#[test]
fn an_endpoint_that_closed_at_once_is_up_once_a_connection_lasts() {
    let mut world = World::new();
    for _ in 0..5 {
        world.append("aa\n");
        // Not acknowledged: it goes back and is sent again, as on any broken connection.
        take_a_line_and_end(&mut world, false, 5, CloseReason::Broken);
    }
    assert_eq!((world.delivered(), world.resent()), (0, 4));
    let news: Vec<StateChange> = std::iter::from_fn(|| world.sender.take_state_change()).collect();
    let (down, changed) = (
        StateChange::Down { failure: Failure::Broken },
        StateChange::NewReason { failure: Failure::ClosesAtOnce },
    );
    assert_eq!(news, [down, changed]);
    world.advance_until_connect();
    world.sender.on_connected(world.now);
    let made_ns = world.now.mono_ns;
    loop {
        match world.poll() {
            Action::Write(bytes) => {
                let len = bytes.len();
                world.sender.on_written(len, world.now);
                world.sender.on_acked(0, world.now);
            }
            Action::WaitUntil(at_ns) => world.now = world.now.plus_ns(at_ns - world.now.mono_ns),
            Action::Idle => break,
            other => panic!("{other:?}"),
        }
        let lasts = world.now.mono_ns >= made_ns + SECOND_NS;
        assert!(
            lasts || world.sender.state().status == Status::Down,
            "acknowledged lines alone do not count as up"
        );
    }
    assert_eq!((world.delivered(), world.sender.state().status), (5, Status::Up));
    let news = world.sender.take_state_change();
    assert!(matches!(news, Some(StateChange::Recovered { attempts: 5, .. })), "{news:?}");
}

#[test]
fn a_socket_that_accepts_nothing_is_closed_after_the_write_timeout() {
    let mut world = World::connected();
    world.advance(60_000);
    world.append("aa\n");
    assert_eq!(world.poll(), Action::Write(b"aa\n"));
    assert_eq!(world.sender.wake_ns(), Some(world.now.mono_ns + 10_000 * MS));
    world.advance(9999);
    assert_eq!(world.poll(), Action::Write(b"aa\n"));
    world.advance(1);
    assert_eq!(world.poll(), Action::Close(CloseReason::WriteTimeout));
}

#[test]
fn an_endpoint_that_accepts_bytes_and_never_reads_stays_down() {
    let mut world = World::connected();
    world.append("aa\n");
    // (milliseconds after connecting at which it acknowledges the line, whether it is up then)
    for (takes_at_ms, up) in [(0, false), (999, false), (1000, true)] {
        world.append("bb\ncc\n");
        loop {
            match world.poll() {
                Action::Write(bytes) => {
                    let len = bytes.len();
                    world.sender.on_written(len, world.now);
                }
                Action::Close(CloseReason::WriteTimeout) => break,
                _ => world.advance(100),
            }
        }
        assert_eq!(world.sender.state().status, Status::Down);
        world.advance_until_connect();
        world.sender.on_connected(world.now);
        let Action::Write(bytes) = world.poll() else { panic!("a line is queued") };
        let len = bytes.len();
        world.sender.on_written(len, world.now);
        world.advance(takes_at_ms);
        world.sender.on_acked(len as u64 - 3, world.now);
        assert_eq!(world.sender.state().status == Status::Up, up, "after {takes_at_ms} ms");
        world.sender.on_closed(CloseReason::Broken, world.now);
        world.advance_until_connect();
        world.sender.on_connected(world.now);
    }
    // An endpoint with an empty queue is up, too.
    while !world.queue.is_empty() || world.sender.waiting_copies() > 0 {
        if let Action::Write(bytes) = world.poll() {
            let len = bytes.len();
            world.sender.on_written(len, world.now);
        }
        world.sender.on_acked(0, world.now);
    }
    assert_eq!(world.poll(), Action::Idle);
    assert_eq!(world.sender.state().status, Status::Up);
}

#[test]
fn an_endpoint_in_failover_is_probed_with_an_empty_queue() {
    for probes in [false, true] {
        let mut world = World::connected();
        world.sender.probe(probes);
        world.append("aa\n");
        world.poll();
        world.sender.on_closed(CloseReason::Broken, world.now);
        assert!(matches!(world.poll(), Action::WaitUntil(_)));
        world.queue.pop(world.now).expect("it came back").settle(CopyOutcome::Moved);
        if !probes {
            assert_eq!(world.poll(), Action::Idle);
            continue;
        }
        world.advance_until_connect();
        world.sender.on_connect_failed(world.now);
        world.advance_until_connect();
        world.sender.on_connected(world.now);
        assert_eq!(world.poll(), Action::Idle);
        assert_eq!(world.sender.state().status, Status::Up);
        // An endpoint that is up may close an idle connection: no need to reconnect at once.
        world.sender.on_closed(CloseReason::Peer, world.now);
        assert_eq!(world.poll(), Action::Idle);
    }
}

#[test]
fn a_connection_may_be_idle_and_closed_without_a_failure() {
    let mut world = World::connected();
    world.advance(3_600_000);
    assert_eq!(world.poll(), Action::Idle);
    assert_eq!(world.sender.wake_ns(), None);
    world.sender.on_closed(CloseReason::Peer, world.now);
    assert_eq!(world.sender.state().status, Status::Idle);
    assert_eq!(world.account.errors.load(Relaxed), 0);
    world.advance(60_000);
    assert_eq!(world.poll(), Action::Idle, "nothing to send: no need to connect");
    world.append("a\n");
    assert_eq!(world.poll(), Action::Connect);
    world.sender.on_connected(world.now);
    world.poll();
    world.sender.on_written(2, world.now);
    world.sender.on_acked(0, world.now);
    assert_eq!((world.sender.state().status, world.sender.take_state_change()), (Status::Up, None));
}

#[test]
fn a_peer_that_closes_at_once_is_retried_with_growing_pauses() {
    for acked in [0, 1] {
        let mut world = World::new();
        world.append(&"a\n".repeat(1000));
        let mut pause_ms = 0;
        for _ in 0..10 {
            world.sender.poll(&mut world.queue, world.now);
            world.sender.on_connected(world.now);
            world.poll();
            world.sender.on_written(10, world.now);
            world.sender.on_acked(10 - acked, world.now);
            world.sender.on_closed(CloseReason::Peer, world.now);
            pause_ms = world.advance_until_connect();
        }
        assert!(pause_ms >= 7500, "{pause_ms} ms with {acked} bytes acknowledged");
    }
}

#[test]
fn a_connection_that_lasted_resets_the_backoff() {
    for (lived_ms, short) in [(4999, false), (5000, true)] {
        let mut world = World::new();
        world.append("a\nb\n");
        for _ in 0..6 {
            world.advance_until_connect();
            world.sender.on_connect_failed(world.now);
        }
        world.advance_until_connect();
        world.sender.on_connected(world.now);
        world.poll();
        world.sender.on_written(2, world.now);
        world.advance(lived_ms);
        world.sender.on_closed(CloseReason::Broken, world.now);
        let Action::WaitUntil(at_ns) = world.poll() else { panic!("a pause") };
        assert_eq!(at_ns - world.now.mono_ns <= 250 * MS, short, "lived {lived_ms} ms");
    }
}

#[test]
fn bytes_in_flight_are_limited() {
    let limits = QueueLimits { bytes_max: 8000, ..QueueLimits::default() };
    let mut world = World::with(limits);
    world.poll();
    world.sender.on_connected(world.now);
    let text = "x".repeat(999) + "\n";
    for _ in 0..6 {
        world.append(&text);
    }
    let mut blocks = 0;
    while let Action::Write(bytes) = world.poll() {
        let written = bytes.len();
        world.sender.on_written(written, world.now);
        blocks += 1;
        assert!(world.sender.queued_bytes() <= limits.bytes_max / 2);
    }
    assert_eq!((blocks, world.queue.blocks()), (3, 3), "half of the limit");
    world.sender.on_acked(2001, world.now);
    assert_eq!(world.delivered(), 0);
    world.sender.on_acked(2000, world.now);
    assert!(matches!(world.poll(), Action::Write(_)), "the first block arrived and makes room");
}

#[test]
fn a_single_block_of_any_size_may_be_in_flight() {
    let mut world = World::with(QueueLimits { bytes_max: 2000, ..QueueLimits::default() });
    world.poll();
    world.sender.on_connected(world.now);
    world.append(&("x".repeat(1500) + "\n"));
    assert!(matches!(world.poll(), Action::Write(_)));
}

#[test]
fn acknowledgement_checks_slow_down_without_progress() {
    let mut world = World::connected();
    world.append("aa\nbb\n");
    world.poll();
    world.sender.on_written(6, world.now);
    let mut pauses_ms = Vec::new();
    for _ in 0..8 {
        let Action::WaitUntil(at_ns) = world.poll() else { panic!("bytes are in flight") };
        pauses_ms.push((at_ns - world.now.mono_ns) / MS);
        world.now = world.now.plus_ns(at_ns - world.now.mono_ns);
        world.sender.on_acked(6, world.now);
    }
    assert_eq!(pauses_ms, [10, 20, 40, 80, 160, 320, 500, 500]);
    world.sender.on_acked(3, world.now);
    let check_ns = world.now.mono_ns + 10 * MS;
    assert_eq!(world.poll(), Action::WaitUntil(check_ns));
}

#[test]
fn without_acknowledgements_written_lines_count_as_delivered() {
    let mut world = World::new();
    world.sender = StreamSender::new(SenderPlan::default(), Arc::clone(&world.account), 1).without_acks();
    world.poll();
    world.sender.on_connected(world.now);
    world.append("aa\nbb\n");
    world.poll();
    for (written, delivered) in [(2, 0), (1, 1), (2, 1)] {
        world.sender.on_written(written, world.now);
        assert_eq!((world.delivered(), world.sender.in_flight_bytes()), (delivered, 0));
    }
    world.sender.on_closed(CloseReason::Peer, world.now);
    world.advance(250);
    assert_eq!(world.poll(), Action::Connect);
    world.sender.on_connected(world.now);
    assert_eq!(world.poll(), Action::Write(b"bb\n"), "a cut line is sent from its start");
    world.sender.on_written(3, world.now);
    world.advance(1000);
    world.poll();
    assert_eq!((world.delivered(), world.resent()), (2, 0));
}

#[test]
fn a_stop_sends_queued_lines_and_closes() {
    let mut world = World::connected();
    world.append("aa\n");
    world.sender.begin_stop(world.now.mono_ns + 1000 * MS);
    assert_eq!(world.poll(), Action::Write(b"aa\n"));
    world.sender.on_written(3, world.now);
    assert!(matches!(world.poll(), Action::WaitUntil(_)), "not acknowledged yet");
    world.sender.on_acked(0, world.now);
    assert_eq!(world.poll(), Action::Close(CloseReason::Stopped));
    assert!(world.sender.stopped() && world.poll() == Action::Idle);
    world.sender.finish_stop(&mut world.queue, world.now);
    assert_eq!((world.delivered(), world.account.dropped(Dropped::Stopped)), (1, 0));
    assert_eq!(world.sender.state().status, Status::Stopped);
}

#[test]
fn a_stop_ends_at_its_deadline_in_every_phase() {
    type Bring = fn(&mut World);
    let steps: [(&str, Bring); 4] = [
        ("down", |world| {
            world.poll();
            world.sender.on_connect_failed(world.now);
        }),
        ("connecting", |world| assert_eq!(world.poll(), Action::Connect)),
        ("unwritten", |world| {
            world.poll();
            world.sender.on_connected(world.now);
            world.poll();
        }),
        ("unacknowledged", |world| {
            world.poll();
            world.sender.on_connected(world.now);
            world.poll();
            world.sender.on_written(4, world.now);
        }),
    ];
    for (name, bring) in steps {
        let mut world = World::new();
        world.append("aa\nbb\n");
        bring(&mut world);
        let deadline_ns = world.now.mono_ns + 100 * MS;
        world.sender.begin_stop(deadline_ns);
        assert!(world.sender.wake_ns().is_some_and(|at_ns| at_ns <= deadline_ns), "{name}");
        world.poll();
        assert!(!world.sender.stopped(), "{name}");
        world.advance(100);
        let end = world.poll();
        assert!(matches!(end, Action::Idle | Action::Close(CloseReason::Stopped)), "{name}: {end:?}");
        assert!(world.sender.stopped(), "{name}");
        world.delivered();
        world.sender.finish_stop(&mut world.queue, world.now);
        assert_eq!((world.delivered(), world.account.dropped(Dropped::Stopped)), (0, 2), "{name}");
        assert_eq!(world.account.queued_bytes.load(Relaxed), 0, "{name}");
    }
}

#[test]
fn a_stop_with_an_empty_queue_ends_at_once() {
    let mut world = World::new();
    world.sender.begin_stop(world.now.mono_ns + 1000 * MS);
    assert_eq!(world.poll(), Action::Idle);
    assert!(world.sender.stopped());
}

#[test]
fn requeued_blocks_are_dropped_first_by_drop_oldest() {
    let mut world = World::with(QueueLimits { bytes_max: 3000, ..QueueLimits::default() });
    world.poll();
    world.sender.on_connected(world.now);
    let line = |name: &str| name.to_string() + &"x".repeat(998) + "\n";
    world.append(&line("a"));
    world.poll();
    world.sender.on_written(1000, world.now);
    world.append(&line("b"));
    world.sender.on_closed(CloseReason::Broken, world.now);
    world.poll();
    world.append(&line("c"));
    assert_eq!((world.delivered(), world.account.dropped(Dropped::QueueFull)), (0, 1));
    world.advance(250);
    world.poll();
    world.sender.on_connected(world.now);
    assert_eq!(world.poll(), Action::Write(line("b").as_bytes()));
}

#[test]
fn impossible_acknowledgements_are_ignored() {
    let mut world = World::connected();
    world.append("aa\n");
    world.poll();
    world.sender.on_acked(0, world.now);
    world.sender.on_acked(u64::MAX, world.now);
    world.sender.on_written(3, world.now);
    world.sender.on_acked(u64::MAX, world.now);
    assert_eq!(world.delivered(), 0);
    world.sender.on_acked(0, world.now);
    world.sender.on_acked(2, world.now);
    assert_eq!(world.delivered(), 1, "delivered lines stay delivered");
}

#[test]
fn a_block_with_a_wrong_copy_count_is_settled_completely() {
    for copies in [0, 1, 2, 3, 9] {
        let mut world = World::connected();
        let block = Block::lines(b"aa\nbb\ncc".to_vec(), copies, world.now.mono_ns);
        assert_eq!(world.queue.append(block, world.now), Appended::Kept);
        world.poll();
        world.sender.on_written(8, world.now);
        for unacked in (0..8).rev() {
            world.sender.on_acked(unacked, world.now);
            world.delivered();
        }
        assert_eq!((world.delivered(), world.sender.waiting_copies()), (u64::from(copies), 0));
    }
}

#[test]
fn a_reload_changes_only_pauses_and_timeouts() {
    let mut world = World::connected();
    world.append("aa\n");
    world.poll();
    world.sender.on_written(3, world.now);
    world.sender.set_plan(SenderPlan {
        retry_min_ms: 4,
        retry_max_ms: 4,
        write_timeout_ms: 7,
        ..SenderPlan::default()
    });
    assert_eq!(world.sender.wake_ns(), Some(world.now.mono_ns + 7 * MS));
    world.advance(7);
    assert_eq!(world.poll(), Action::Close(CloseReason::WriteTimeout));
    let latest_ns = world.now.mono_ns + 4 * MS;
    assert!(matches!(world.poll(), Action::WaitUntil(at_ns) if at_ns <= latest_ns));
    assert_eq!(world.queue.copies(), 1);
}

#[test]
fn a_caller_without_acknowledgement_reports_does_not_spin() {
    let mut world = World::connected();
    world.append("aa\nbb\n");
    world.poll();
    world.sender.on_written(3, world.now);
    for _ in 0..50 {
        let (now_ns, wake_ns) = (world.now.mono_ns, world.sender.wake_ns().expect("bytes are in flight"));
        assert!(wake_ns > now_ns);
        world.now.mono_ns = wake_ns;
        assert_eq!(world.poll(), Action::Write(b"bb\n"));
    }
}

#[test]
fn blocks_in_flight_at_a_stop_are_resent_by_the_next_sender_and_counted() {
    let mut world = World::connected();
    world.queue.keep(true);
    world.append("aa\nbb\ncc\n");
    assert_eq!(world.poll(), Action::Write(b"aa\nbb\ncc\n"));
    world.sender.on_written(9, world.now);
    world.sender.on_acked(4, world.now);
    world.sender.begin_stop(0);
    assert_eq!(world.poll(), Action::Close(CloseReason::Stopped));
    world.sender.finish_stop(&mut world.queue, world.now);
    assert_eq!(world.account.in_doubt.load(Relaxed), 2);
    world.sender = StreamSender::new(SenderPlan::default(), Arc::clone(&world.account), 2);
    assert_eq!(world.poll(), Action::Connect);
    world.sender.on_connected(world.now);
    assert_eq!(world.poll(), Action::Write(b"bb\ncc\n"));
    world.sender.on_written(6, world.now);
    world.sender.on_acked(0, world.now);
    assert_eq!((world.delivered(), world.resent()), (3, 2));
}

#[test]
fn a_draining_sender_waits_for_acknowledgements_and_pops_nothing() {
    // (acknowledged in time, copies delivered, copies left for the next sender)
    for (acked, delivered, left) in [(true, 2, 1), (false, 0, 3)] {
        let mut world = World::connected();
        world.append("a 1\nb 2\n");
        assert_eq!(world.poll(), Action::Write(b"a 1\nb 2\n"));
        world.sender.on_written(4, world.now);
        world.append("c 3\n");
        world.sender.begin_drain(world.now.plus_ns(SECOND_NS).mono_ns);
        // A line that was begun is written to its end.
        assert_eq!(world.poll(), Action::Write(b"b 2\n"));
        world.sender.on_written(4, world.now);
        assert!(matches!(world.poll(), Action::WaitUntil(_)));
        world.advance(if acked { 10 } else { 1000 });
        if acked {
            world.sender.on_acked(0, world.now);
        }
        assert_eq!(world.poll(), Action::Close(CloseReason::Stopped));
        assert!(world.sender.stopped());
        world.sender.requeue(&mut world.queue);
        assert_eq!((world.delivered(), world.queue.copies()), (delivered, left), "acknowledged: {acked}");
    }
}

#[test]
fn a_draining_sender_stops_at_once_when_its_endpoint_is_down() {
    for connecting in [false, true] {
        let mut world = World::new();
        world.append("a 1\n");
        assert_eq!(world.poll(), Action::Connect);
        if !connecting {
            world.sender.on_connect_failed(world.now);
        }
        world.sender.begin_drain(u64::MAX);
        world.poll();
        assert!(world.sender.stopped());
        assert_eq!(world.queue.copies(), 1);
    }
}
