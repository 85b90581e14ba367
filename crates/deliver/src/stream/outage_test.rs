//! Outages: an endpoint that is down for ten minutes, and one dead endpoint among five.

use model::Dropped;

use super::*;
use crate::plan::{QueueLimits, WhenFull};
use crate::queue::{Appended, Block, MemoryQueue};

const WINDOW_S: u64 = 10;
const LINES: u64 = 100;

/// One output and its endpoint. A flush is one block of [`LINES`] lines that begin with the flush's number.
struct Output {
    account: Arc<OutputAccount>,
    queue: MemoryQueue,
    sender: StreamSender,
    connected: bool,
    received: Vec<u8>,
}

impl Output {
    fn new(limits: QueueLimits, seed: u64) -> Output {
        let account = Arc::new(OutputAccount::default());
        Output {
            queue: MemoryQueue::new(limits, Arc::clone(&account)),
            sender: StreamSender::new(SenderPlan::default(), Arc::clone(&account), seed),
            account,
            connected: false,
            received: Vec::new(),
        }
    }

    fn flush(&mut self, flush: u64, now: Now) {
        let text: String = (0..LINES).map(|line| format!("{flush} {line}\n")).collect();
        let block = Block::lines(text.into_bytes(), LINES as u32, now.mono_ns);
        assert!(!matches!(self.queue.append(block, now), Appended::Full(_)));
    }

    /// The binary's work at one moment; `alive` says whether the endpoint answers.
    fn run(&mut self, alive: bool, now: Now) {
        if self.connected && !alive {
            self.connected = false;
            self.sender.on_closed(CloseReason::Broken, now);
        }
        loop {
            match self.sender.poll(&mut self.queue, now) {
                Action::Connect if alive => {
                    self.connected = true;
                    self.sender.on_connected(now);
                }
                Action::Connect => self.sender.on_connect_failed(now),
                Action::Write(bytes) => {
                    self.received.extend_from_slice(bytes);
                    let written = bytes.len();
                    self.sender.on_written(written, now);
                    self.sender.on_acked(0, now);
                }
                Action::Close(_) => self.connected = false,
                Action::WaitUntil(_) | Action::Idle => break,
            }
        }
        let sum = self.account.sum(self.queue.copies() + self.sender.waiting_copies());
        assert!(sum.holds(), "{sum:?}");
    }

    /// Flushes of which lines arrived, each once and whole, in order of arrival.
    fn flushes(&self) -> Vec<u64> {
        let text = std::str::from_utf8(&self.received).expect("ASCII");
        let lines: Vec<&str> = text.lines().collect();
        let mut flushes = Vec::new();
        for block in lines.chunks(LINES as usize) {
            let flush = block[0].split(' ').next().expect("a flush's number");
            for (place, line) in block.iter().enumerate() {
                assert_eq!(*line, format!("{flush} {place}"), "every line once, in order");
            }
            flushes.push(flush.parse().expect("a number"));
        }
        flushes
    }
}

/// Twenty minutes of flushes; the endpoint is down from the fifth to the fifteenth.
fn ten_minutes_away(limits: QueueLimits) -> Output {
    let mut output = Output::new(limits, 1);
    for s in 0..1200 {
        let now = Now::default().plus_ns(s * SECOND_NS);
        if s % WINDOW_S == 0 {
            output.flush(s / WINDOW_S, now);
        }
        output.run(!(305..905).contains(&s), now);
    }
    output
}

#[test]
fn after_ten_minutes_of_outage_every_flush_arrives_once_and_in_order() {
    for when_full in [WhenFull::DropOldest, WhenFull::DropNewest, WhenFull::Block] {
        let mut output = ten_minutes_away(QueueLimits { when_full, ..QueueLimits::default() });
        assert_eq!(output.flushes(), (0..120).collect::<Vec<u64>>());
        let sum = output.account.sum(0);
        assert_eq!((sum.copies, sum.delivered, sum.dropped), (120 * LINES, 120 * LINES, 0));
        assert_eq!(output.account.resent.load(Relaxed), 0);
        assert_eq!(output.sender.take_state_change(), Some(StateChange::Up));
        assert_eq!(
            output.sender.take_state_change(),
            Some(StateChange::Down { failure: Failure::ConnectFailed })
        );
        let still = output.sender.take_state_change();
        assert!(matches!(still, Some(StateChange::StillDown { .. })), "after a minute: {still:?}");
        let back = output.sender.take_state_change();
        let Some(StateChange::Recovered { down_ns, waiting_copies, attempts }) = back else {
            panic!("{back:?}")
        };
        assert!((590..=625).contains(&(down_ns / SECOND_NS)), "{down_ns} ns");
        assert!((59 * LINES..=63 * LINES).contains(&waiting_copies), "{waiting_copies} copies");
        assert!((40..=90).contains(&attempts), "{attempts} attempts");
        assert_eq!(output.sender.take_state_change(), None, "one line down, one line up");
    }
}

#[test]
fn records_past_the_queue_limit_in_an_outage_are_counted_as_dropped() {
    let block_bytes = {
        let mut probe = Output::new(QueueLimits::default(), 1);
        probe.flush(30, Now::default());
        probe.queue.bytes()
    };
    // Room for about 20 of the 60 flushes.
    let limits = QueueLimits { bytes_max: 20 * block_bytes, ..QueueLimits::default() };
    let newest_first = ten_minutes_away(QueueLimits { when_full: WhenFull::DropOldest, ..limits });
    let oldest_first = ten_minutes_away(QueueLimits { when_full: WhenFull::DropNewest, ..limits });
    for output in [&newest_first, &oldest_first] {
        let (flushes, sum) = (output.flushes(), output.account.sum(0));
        assert!(flushes.is_sorted() && sum.holds());
        assert_eq!(sum.delivered, flushes.len() as u64 * LINES, "delivered lines have arrived");
        assert_eq!(sum.dropped, output.account.dropped(Dropped::QueueFull));
        assert!((35 * LINES..=45 * LINES).contains(&sum.dropped), "{} lines dropped", sum.dropped);
        assert!(output.account.queued_bytes_high.load(Relaxed) <= limits.bytes_max);
    }
    assert!(!newest_first.flushes().contains(&31) && newest_first.flushes().contains(&90));
    assert!(oldest_first.flushes().contains(&31) && !oldest_first.flushes().contains(&89));
}

#[test]
fn records_too_old_after_an_outage_are_counted_as_too_old() {
    let output = ten_minutes_away(QueueLimits { age_max_ms: 60_000, ..QueueLimits::default() });
    let sum = output.account.sum(0);
    assert!(sum.holds() && output.flushes().is_sorted());
    assert_eq!(sum.dropped, output.account.dropped(Dropped::TooOld));
    assert!((50 * LINES..=58 * LINES).contains(&sum.dropped), "{} lines dropped", sum.dropped);
}

#[test]
fn one_dead_endpoint_among_five_delays_no_other() {
    let limits = QueueLimits { bytes_max: QueueLimits::BYTES_MIN, ..QueueLimits::default() };
    let mut outputs: Vec<Output> = (0..5).map(|seed| Output::new(limits, seed)).collect();
    for s in 0..6000 {
        let now = Now::default().plus_ns(s * SECOND_NS);
        for (place, output) in outputs.iter_mut().enumerate() {
            if s % WINDOW_S == 0 {
                output.flush(s / WINDOW_S, now);
            }
            output.run(place != 2, now);
        }
    }
    for (place, output) in outputs.iter().enumerate() {
        let sum = output.account.sum(output.queue.copies());
        assert!(sum.holds());
        if place == 2 {
            assert!(sum.delivered == 0 && sum.dropped > 0 && sum.queued > 0, "{sum:?}");
        } else {
            assert_eq!((sum.delivered, sum.dropped), (600 * LINES, 0), "endpoint {place}");
            assert_eq!(output.flushes(), (0..600).collect::<Vec<u64>>());
        }
    }
}
