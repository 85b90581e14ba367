//! Batches, answers, pauses and the stop of a sender of requests.

use model::SECOND_NS;

use super::*;
use crate::endpoint::Status;
use crate::plan::QueueLimits;
use crate::queue::{Appended, Block, MemoryQueue};

const BATCH: BatchPlan = BatchPlan { records_max: 3, bytes_max: 1 << 20, delay_ms: 1_000 };

struct World {
    queue: MemoryQueue,
    sender: RequestSender,
    account: Arc<OutputAccount>,
}

impl World {
    fn new(batch: BatchPlan) -> World {
        let account = Arc::new(OutputAccount::default());
        let queue = MemoryQueue::new(QueueLimits::default(), Arc::clone(&account));
        let sender = RequestSender::new(SenderPlan::default(), batch, Arc::clone(&account), 1);
        World { queue, sender, account }
    }

    fn add(&mut self, lines: &str) {
        let block = Block::lines(lines.as_bytes().to_vec(), lines.matches('\n').count() as u32, 0);
        assert_eq!(self.queue.append(block, at(0)), Appended::Kept);
    }

    fn poll(&mut self, s: u64) -> RequestAction {
        let action = self.sender.poll(&mut self.queue, at(s));
        assert!(self.account.sum(self.queue.copies() + self.sender.waiting_copies()).holds());
        action
    }

    fn lines(&self) -> Vec<String> {
        self.sender.lines().into_iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect()
    }
}

fn at(s: u64) -> Now {
    Now::default().plus_ns(s * SECOND_NS)
}

fn failed(retry_after_ms: Option<u64>) -> Answer {
    Answer::Failed { why: Failure::NoAnswer, retry_after_ms, in_doubt: true }
}

#[test]
fn records_wait_for_others_until_a_request_is_full_or_their_time_is_over() {
    let mut world = World::new(BATCH);
    assert_eq!(world.poll(1), RequestAction::Idle);
    world.add("a\n");
    assert_eq!(world.poll(1), RequestAction::WaitUntil(at(2).mono_ns));
    world.add("b\nc\nd\n");
    assert_eq!(world.poll(1), RequestAction::Send);
    assert_eq!(world.lines(), ["a", "b", "c"]);
    // A request may take fewer than offered.
    world.sender.on_answer(2, Answer::Accepted, at(1));
    assert_eq!(
        (world.poll(1), world.lines()),
        (RequestAction::WaitUntil(at(2).mono_ns), vec!["c".into(), "d".into()])
    );
    assert_eq!(world.poll(2), RequestAction::Send);
    world.sender.on_answer(2, Answer::Rejected, at(2));
    assert_eq!(world.poll(2), RequestAction::Idle);
    let sum = world.account.sum(0);
    assert_eq!((sum.delivered, sum.rejected_by_peer, sum.copies), (2, 2, 4));
    assert_eq!(world.sender.state().status, Status::Up);
}

#[test]
fn a_request_has_at_most_so_many_bytes_but_at_least_one_record() {
    let mut world = World::new(BatchPlan { records_max: 100, bytes_max: 6, delay_ms: 1_000 });
    world.add("aa\nbb\nccccccccc\nd\n");
    for want in [&["aa", "bb"][..], &["ccccccccc"], &["d"]] {
        assert_eq!(
            world.poll(9),
            if want == ["d"] { RequestAction::WaitUntil(at(10).mono_ns) } else { RequestAction::Send }
        );
        assert_eq!(world.lines(), want);
        world.sender.on_answer(want.len() as u32, Answer::Accepted, at(9));
    }
    assert!(world.account.sum(0).holds());
}

#[test]
fn a_failed_request_is_sent_again_after_the_pause_that_its_endpoint_asks_for() {
    let mut world = World::new(BATCH);
    world.add("a\nb\nc\n");
    assert_eq!(world.poll(1), RequestAction::Send);
    world.sender.on_answer(3, failed(Some(7_000)), at(1));
    assert_eq!(world.poll(1), RequestAction::WaitUntil(at(8).mono_ns));
    assert_eq!(
        (world.sender.waiting_copies(), world.queue.copies()),
        (0, 3),
        "they may be dropped meanwhile"
    );
    assert_eq!((world.sender.state().status, world.account.in_doubt.load(Relaxed)), (Status::Down, 3));
    assert_eq!((world.poll(8), world.lines().len()), (RequestAction::Send, 3));
    // No endpoint can ask for more than an hour; without a request, the own pause counts.
    world.sender.on_answer(3, failed(Some(u64::MAX)), at(8));
    assert_eq!(world.poll(8), RequestAction::WaitUntil(at(8 + 3_600).mono_ns));
    assert_eq!(world.poll(4_000), RequestAction::Send);
    world.sender.on_answer(3, failed(None), at(4_000));
    let RequestAction::WaitUntil(until_ns) = world.poll(4_000) else { panic!("it waits") };
    assert!(until_ns <= at(4_001).mono_ns);
    assert_eq!(world.poll(4_001), RequestAction::Send);
    world.sender.on_answer(3, Answer::Accepted, at(4_001));
    assert_eq!((world.account.sum(0).delivered, world.poll(4_001)), (3, RequestAction::Idle));
}

#[test]
fn a_stop_sends_what_waits_and_ends_at_its_deadline() {
    let mut world = World::new(BATCH);
    world.add("a\n");
    assert!(matches!(world.poll(1), RequestAction::WaitUntil(_)));
    world.sender.begin_stop(at(5).mono_ns);
    assert_eq!(world.poll(1), RequestAction::Send);
    world.sender.on_answer(1, failed(Some(60_000)), at(1));
    assert_eq!(world.poll(1), RequestAction::WaitUntil(at(5).mono_ns));
    assert_eq!((world.poll(5), world.sender.stopped()), (RequestAction::Idle, true));
    world.sender.finish_stop(&mut world.queue, at(5));
    assert_eq!(world.account.sum(0).dropped, 1);
    assert!(world.account.sum(0).holds());
}
