//! Takes blocks of lines from the queue and puts their points into the store.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use graphite::store::{Pushed, Refusal};
use graphite::whisper::Point;
use memchr::memchr;
use wire::graphite::stored_point;

use super::running::Running;
use crate::daemon::outlet::Seen;
use crate::daemon::shared::stores::OpenStore;
use crate::outputs::progress::worked;
use sys::clock::Clock;

/// Longest sleep: a stop also wakes the thread.
const NAP: Duration = Duration::from_millis(500);

/// Pause while the memory of points is full.
const FULL_PAUSE: Duration = Duration::from_millis(20);

/// Runs until the outlet stops and the points are written, or its time is over.
pub(super) fn run(running: &Running<'_>) {
    let Running { outlet, open, .. } = *running;
    loop {
        let since_ns = Clock::mono_ns();
        let stop = outlet.is_stopping();
        if stop && Clock::mono_ns() >= outlet.deadline_ns(0) {
            running.ends.store(true, Relaxed);
        }
        if running.ends.load(Relaxed) && running.has_written.load(Relaxed) {
            return;
        }
        let took = if running.ends.load(Relaxed) { Took::Nothing } else { take(running, open) };
        running.publish();
        worked(outlet, since_ns);
        match took {
            Took::Block => {}
            Took::Part => std::thread::sleep(FULL_PAUSE),
            Took::Nothing => {
                if stop {
                    // Everything is in memory: the other thread writes it, and ends.
                    running.ends.store(true, Relaxed);
                    std::thread::sleep(Duration::from_millis(5));
                } else {
                    outlet.wait(Seen { records: false, stop }, NAP);
                }
            }
        }
    }
}

enum Took {
    Block,
    /// The memory of points is full.
    Part,
    Nothing,
}

/// Takes the next block, as far as there is memory.
fn take(running: &Running<'_>, open: &OpenStore) -> Took {
    let now = Clock::now();
    let mut sender = running.sender();
    let Some((number, lines)) = sender.poll(&mut *running.outlet.queue(), now) else { return Took::Nothing };
    let at = i64::try_from(now.wall_seconds()).unwrap_or(i64::MAX);
    let (mut taken, mut full) = (0, false);
    while taken < lines.len() {
        let rest = &lines[taken..];
        let end = memchr(b'\n', rest).unwrap_or(rest.len());
        if push(open, &rest[..end], number, at) == Pushed::Full {
            full = true;
            break;
        }
        taken = (taken + end + 1).min(lines.len());
    }
    sender.taken(taken);
    if full {
        return Took::Part;
    }
    open.store.pushed_up_to(number + 1);
    Took::Block
}

fn push(open: &OpenStore, line: &[u8], block: u64, now: i64) -> Pushed {
    if line.is_empty() {
        return Pushed::Taken;
    }
    match stored_point(line) {
        Some(point) => {
            open.store.push(point.name, Point { time: point.time, value: point.value }, block, now)
        }
        None => {
            open.store.count_refused(Refusal::NotANumber, 1);
            Pushed::Refused(Refusal::NotANumber)
        }
    }
}
