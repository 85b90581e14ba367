//! Tests of transitions, and a model test with files that fail at any byte.

use std::collections::BTreeMap;

use model::{Dropped, SECOND_NS};
use proptest::prelude::*;

use super::*;
use crate::endpoint::Status;
use crate::plan::QueueLimits;
use crate::queue::{Appended, Block, MemoryQueue};

/// A directory with the current file (number 0), its rotated files, and their sender.
struct World {
    account: Arc<OutputAccount>,
    queue: MemoryQueue,
    sender: FileSender,
    now: Now,
    files: BTreeMap<u32, Vec<u8>>,
    plan: FilePlan,
    opened: u32,
}

impl World {
    fn new(plan: FilePlan) -> World {
        let account = Arc::new(OutputAccount::default());
        World {
            queue: MemoryQueue::new(QueueLimits::default(), Arc::clone(&account)),
            sender: FileSender::new(plan, Arc::clone(&account), 1),
            account,
            now: Now::default().plus_ns(SECOND_NS),
            files: BTreeMap::new(),
            plan,
            opened: 0,
        }
    }

    fn bounded(file_bytes_max: u64, files_max: u32) -> World {
        World::new(FilePlan { file_bytes_max, files_max, ..FilePlan::default() })
    }

    fn append(&mut self, text: &str) {
        let copies = text.matches('\n').count() as u32;
        let block = Block::lines(text.as_bytes().to_vec(), copies, self.now.mono_ns);
        assert_eq!(self.queue.append(block, self.now), Appended::Kept);
    }

    fn poll(&mut self) -> FileAction<'_> {
        self.sender.poll(&mut self.queue, self.now)
    }

    /// Performs the sender's next action; a write takes at most `take` bytes. False when there is nothing to do.
    fn step(&mut self, take: usize) -> bool {
        match self.sender.poll(&mut self.queue, self.now) {
            FileAction::Open => {
                let size = self.files.entry(0).or_default().len() as u64;
                self.opened += 1;
                let ended = self.files[&0].last().is_none_or(|last| *last == b'\n');
                self.sender.on_opened(size, ended, self.now);
            }
            FileAction::Write(bytes) => {
                assert!(!bytes.is_empty());
                let take = take.min(bytes.len());
                self.files.get_mut(&0).expect("the file was opened").extend_from_slice(&bytes[..take]);
                self.sender.on_written(take, self.now);
            }
            FileAction::Rotate => {
                let steps: Vec<_> =
                    rotation(self.plan.files_max, |number| self.files.contains_key(&number)).collect();
                for step in steps {
                    match step {
                        RotationStep::Remove(number) => assert!(self.files.remove(&number).is_some()),
                        RotationStep::Rename(from, to) => {
                            let file = self.files.remove(&from).expect("a renamed file exists");
                            assert!(self.files.insert(to, file).is_none(), "no file is overwritten");
                        }
                    }
                }
                self.sender.on_rotated();
            }
            FileAction::Close | FileAction::WaitUntil(_) | FileAction::Idle => return false,
        }
        self.check();
        true
    }

    fn run(&mut self) {
        while self.step(usize::MAX) {}
    }

    fn check(&mut self) {
        let sum = self.account.sum(self.queue.copies() + self.sender.waiting_copies());
        assert!(sum.holds(), "{sum:?}");
        let bytes = self.account.queued_bytes.load(Relaxed);
        assert_eq!(bytes, self.queue.bytes() + self.sender.queued_bytes());
    }

    fn delivered(&mut self) -> u64 {
        self.check();
        self.account.sum(0).delivered
    }

    fn texts(&self) -> Vec<(u32, &str)> {
        self.files.iter().map(|(number, bytes)| (*number, std::str::from_utf8(bytes).unwrap())).collect()
    }
}

#[test]
fn rotation_renames_files_up_to_the_first_free_number() {
    use RotationStep::{Remove, Rename};
    let table: [(u32, &[u32], &[RotationStep]); 7] = [
        (0, &[], &[Remove(0)]),
        (1, &[], &[Rename(0, 1)]),
        (1, &[1], &[Remove(1), Rename(0, 1)]),
        (3, &[], &[Rename(0, 1)]),
        (3, &[1, 3], &[Rename(1, 2), Rename(0, 1)]),
        (3, &[1, 2, 3], &[Remove(3), Rename(2, 3), Rename(1, 2), Rename(0, 1)]),
        (u32::MAX, &[1], &[Rename(1, 2), Rename(0, 1)]),
    ];
    for (files_max, exist, want) in table {
        let steps: Vec<_> = rotation(files_max, |number| exist.contains(&number)).collect();
        assert_eq!(steps, want, "{files_max} files, {exist:?} exist");
    }
}

#[test]
fn a_line_past_max_file_bytes_goes_to_a_new_file() {
    // (limit, content of file 0 at first, files at the end)
    type Files = &'static [(u32, &'static str)];
    let table: [(u64, &str, Files); 6] = [
        (0, "old\n", &[(0, "old\naa\nbb\ncc\n")]),
        (9, "", &[(0, "aa\nbb\ncc\n")]),
        (8, "", &[(0, "cc\n"), (1, "aa\nbb\n")]),
        (9, "old\n", &[(0, "bb\ncc\n"), (1, "old\naa\n")]),
        (3, "", &[(0, "cc\n"), (1, "bb\n"), (2, "aa\n")]),
        (2, "", &[(0, "cc\n"), (1, "bb\n"), (2, "aa\n")]),
    ];
    for (file_bytes_max, old, want) in table {
        let mut world = World::bounded(file_bytes_max, 2);
        if !old.is_empty() {
            world.files.insert(0, old.as_bytes().to_vec());
        }
        world.append("aa\nbb\ncc\n");
        world.run();
        assert_eq!(world.texts(), want, "bound {file_bytes_max} after {old:?}");
        assert_eq!(world.delivered(), 3);
    }
}

#[test]
fn at_most_files_max_rotated_files_are_kept() {
    for files_max in [0, 1, 3] {
        let mut world = World::bounded(3, files_max);
        for number in 0..9 {
            world.append(&format!("{number}a\n"));
            world.run();
        }
        let want: Vec<_> = (0..=files_max).map(|number| (number, format!("{}a\n", 8 - number))).collect();
        let want: Vec<_> = want.iter().map(|(number, text)| (*number, text.as_str())).collect();
        assert_eq!(world.texts(), want, "{files_max} files");
    }
}

#[test]
fn a_frame_goes_to_one_file() {
    let mut world = World::bounded(8, 5);
    let block = Block::frames(b"a\nbb\nccccccc\n\nd".to_vec(), vec![(5, 1), (14, 1), (15, 1)], 0);
    assert_eq!(world.queue.append(block, world.now), Appended::Kept);
    world.run();
    assert_eq!(world.texts(), [(0, "d"), (1, "ccccccc\n\n"), (2, "a\nbb\n")]);
}

#[test]
fn a_full_disk_is_logged_once_and_the_cut_line_is_completed() {
    let mut world = World::bounded(100, 1);
    world.append("aa\nbbbb\ncc\n");
    assert_eq!(world.poll(), FileAction::Open);
    world.sender.on_opened(0, true, world.now);
    assert_eq!(world.poll(), FileAction::Write(b"aa\nbbbb\ncc\n"));
    world.sender.on_written(5, world.now);
    for failures in 1..=5 {
        world.sender.on_error(world.now);
        assert_eq!(world.account.errors.load(Relaxed), failures);
        let FileAction::WaitUntil(at_ns) = world.poll() else { panic!("there is a pause after a failure") };
        world.now.mono_ns = at_ns;
        assert_eq!(world.poll(), FileAction::Open);
        world.sender.on_opened(5, false, world.now);
        assert_eq!(world.poll(), FileAction::Write(b"bb\n"), "the rest of the line first");
    }
    assert_eq!(world.sender.take_state_change(), Some(StateChange::Up));
    assert_eq!(world.sender.take_state_change(), Some(StateChange::Down { failure: Failure::WriteFailed }));
    assert_eq!((world.sender.take_state_change(), world.delivered()), (None, 1));
    world.sender.on_written(3, world.now);
    assert_eq!(world.poll(), FileAction::Write(b"cc\n"));
    world.sender.on_written(3, world.now);
    assert!(matches!(world.sender.take_state_change(), Some(StateChange::Recovered { attempts: 5, .. })));
    assert_eq!((world.delivered(), world.poll()), (3, FileAction::Idle));
}

#[test]
fn a_cut_line_is_written_from_its_start_in_another_file() {
    for size in [0, 4, 6] {
        let mut world = World::bounded(100, 1);
        world.append("aa\nbbbb\n");
        world.poll();
        world.sender.on_opened(0, true, world.now);
        world.poll();
        world.sender.on_written(5, world.now);
        world.sender.on_error(world.now);
        world.now = world.now.plus_ns(SECOND_NS);
        assert_eq!(world.poll(), FileAction::Open);
        world.sender.on_opened(size, true, world.now);
        assert_eq!(world.poll(), FileAction::Write(b"bbbb\n"), "size {size} instead of 5");
        world.sender.on_written(5, world.now);
        assert_eq!(world.delivered(), 2);
    }
}

#[test]
fn a_file_that_cannot_be_opened_is_logged_at_start() {
    let mut world = World::bounded(100, 1);
    assert_eq!(world.poll(), FileAction::Open);
    world.sender.on_error(world.now);
    assert_eq!(world.sender.take_state_change(), Some(StateChange::Down { failure: Failure::OpenFailed }));
    assert!(matches!(world.poll(), FileAction::WaitUntil(_)));
}

#[test]
fn close_when_idle_closes_the_file_once_everything_is_written() {
    let mut world = World::new(FilePlan { close_when_idle: true, ..FilePlan::default() });
    assert_eq!(world.poll(), FileAction::Idle, "no file before the first record");
    for flush in 1..=3 {
        world.append("aa\n");
        while world.step(2) {}
        assert_eq!((world.opened, world.poll()), (flush, FileAction::Idle));
    }
    assert_eq!(world.texts(), [(0, "aa\naa\naa\n")]);
}

#[test]
fn a_failed_rotation_is_retried_and_the_file_does_not_grow() {
    let mut world = World::bounded(4, 1);
    world.append("aa\nbb\n");
    while world.poll() != FileAction::Rotate {
        assert!(world.step(usize::MAX));
    }
    world.sender.on_error(world.now);
    assert!(matches!(world.poll(), FileAction::WaitUntil(_)));
    assert_eq!(world.queue.copies(), 1, "back in the queue, within its limits");
    world.now = world.now.plus_ns(SECOND_NS);
    world.run();
    assert_eq!(world.texts(), [(0, "bb\n"), (1, "aa\n")]);
}

#[test]
fn a_stop_writes_queued_lines_until_its_deadline() {
    for (works, delivered) in [(true, 2), (false, 0)] {
        let mut world = World::bounded(100, 1);
        world.append("aa\nbb\n");
        let deadline_ns = world.now.mono_ns + 10 * SECOND_NS;
        world.sender.begin_stop(deadline_ns);
        while !world.sender.stopped() {
            match world.poll() {
                FileAction::Open if !works => world.sender.on_error(world.now),
                FileAction::WaitUntil(at_ns) => world.now.mono_ns = at_ns,
                _ => {
                    world.step(usize::MAX);
                }
            }
        }
        assert!(world.now.mono_ns <= deadline_ns);
        world.sender.finish_stop(&mut world.queue, world.now);
        assert_eq!((world.delivered(), world.account.dropped(Dropped::Stopped)), (delivered, 2 - delivered));
        assert_eq!((world.sender.state().status, world.poll()), (Status::Stopped, FileAction::Idle));
        assert_eq!(world.account.queued_bytes.load(Relaxed), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_line_is_in_one_file_whole_and_in_order(
        file_bytes_max in 0..60_u64,
        steps in proptest::collection::vec((0..30_usize, prop::bool::weighted(0.2), 0..3_usize), 0..120),
    ) {
        let mut world = World::bounded(file_bytes_max, u32::MAX);
        let mut next = 0;
        for (take, fail, lines) in steps {
            if lines > 0 {
                let text: String = (next..next + lines).map(|n| format!("{n} {}\n", "x".repeat(n % 20))).collect();
                next += lines;
                world.append(&text);
            }
            if fail {
                world.poll();
                world.sender.on_error(world.now);
                world.now = world.now.plus_ns(SECOND_NS);
            } else {
                world.step(take);
            }
        }
        for _ in 0..20 {
            world.run();
            world.now = world.now.plus_ns(20 * SECOND_NS);
        }
        prop_assert_eq!(world.delivered(), next as u64);
        let mut numbers = Vec::new();
        for bytes in world.files.values().rev() {
            let text = std::str::from_utf8(bytes).unwrap();
            prop_assert!(text.is_empty() || text.ends_with('\n'), "a line spans two files");
            prop_assert!(file_bytes_max == 0 || bytes.len() as u64 <= file_bytes_max || text.lines().count() == 1);
            for line in text.lines() {
                let (number, rest) = line.split_once(' ').expect("number and rest");
                let number: usize = number.parse().expect("a number");
                prop_assert_eq!(rest.len(), number % 20);
                numbers.push(number);
            }
        }
        prop_assert_eq!(numbers, (0..next).collect::<Vec<_>>());
    }
}

/// Another process died in the middle of a line: joined with our `cc` it would be a line that nobody sent.
#[test]
fn an_incomplete_last_line_gets_an_lf_before_the_next_line() {
    for (bound, want) in [(0, "old\nto\naa\nbbbb\n"), (10, "old\nto\naa\n"), (9, "old\nto")] {
        let mut world = World::bounded(bound, 2);
        world.files.insert(0, b"old\nto".to_vec());
        world.append("aa\nbbbb\n");
        while world.step(1) {}
        let first = if bound == 0 { 0 } else { world.files.len() as u32 - 1 };
        assert_eq!(String::from_utf8_lossy(&world.files[&first]), want, "bound {bound}");
        assert_eq!(world.delivered(), 2);
    }
}

#[test]
fn reopen_switches_files_at_a_record_boundary() {
    let mut world = World::new(FilePlan::default());
    world.run();
    world.append("a 1 1\nb 2 2\n");
    assert!(world.step(8), "the second line is cut");
    let moved = world.files.remove(&0).expect("it was opened");
    world.files.insert(7, moved);
    world.sender.reopen();
    // The test has no open files: bytes written before the file is reopened go to the renamed file.
    let FileAction::Write(rest) = world.poll() else { panic!("the record is not whole") };
    let rest = rest.to_vec();
    world.sender.on_written(rest.len(), world.now);
    world.files.get_mut(&7).expect("it was moved").extend(rest);
    assert_eq!(world.poll(), FileAction::Close);
    world.run();
    assert_eq!((world.opened, &*world.texts()), (2, &[(0, ""), (7, "a 1 1\nb 2 2\n")][..]));
    world.append("c 3 3\n");
    world.run();
    assert_eq!(world.texts(), [(0, "c 3 3\n"), (7, "a 1 1\nb 2 2\n")]);
    assert_eq!((world.opened, world.delivered()), (2, 3));
}

#[test]
fn reopen_does_nothing_for_a_closed_file() {
    let mut world = World::new(FilePlan { close_when_idle: true, ..FilePlan::default() });
    world.sender.reopen();
    assert_eq!(world.poll(), FileAction::Idle);
    world.append("a 1 1\n");
    world.run();
    assert_eq!((world.opened, world.delivered()), (1, 1));
}
