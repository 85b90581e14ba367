//! Takes blocks of lines from the queue and puts their points into the store.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use pipeline::storing::{Took, take};

use super::running::Running;
use crate::daemon::outlet::Seen;
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
        let took = if running.ends.load(Relaxed) {
            Took::Nothing
        } else {
            take(&open.store, &mut running.sender(), &mut *outlet.queue(), Clock::now())
        };
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
