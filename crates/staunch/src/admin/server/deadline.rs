//! The time that an answer has until it is read: a client that takes a byte now and then is patient for longer than we are.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// Of the answers on one connection, one after the other.
#[derive(Debug)]
pub(super) struct Deadline {
    time_max: Duration,
    /// Whether an answer is under way.
    reads: watch::Sender<bool>,
}

/// An answer under way, until it is dropped.
#[derive(Debug)]
pub(super) struct Reading(Arc<Deadline>);

impl Deadline {
    /// Each answer has so long.
    pub(super) fn new(time_max: Duration) -> Deadline {
        Deadline { time_max, reads: watch::Sender::new(false) }
    }

    /// An answer begins to be written.
    pub(super) fn begin(self: &Arc<Deadline>) -> Reading {
        self.reads.send_replace(true);
        Reading(Arc::clone(self))
    }

    /// Resolves when an answer was not read in time. To be waited for all the time; the time of an answer that is under way
    /// begins anew.
    pub(super) async fn passed(&self) {
        let mut reads = self.reads.subscribe();
        loop {
            let time_max = if *reads.borrow_and_update() { self.time_max } else { Duration::MAX };
            // It ends at the next change, or at the end of the time.
            if tokio::time::timeout(time_max, reads.changed()).await.is_err() {
                return;
            }
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.reads.send_replace(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_time_is_that_of_one_answer() {
        let short = Arc::new(Deadline::new(Duration::from_millis(5)));
        let soon = Duration::from_millis(20);
        assert!(tokio::time::timeout(soon, short.passed()).await.is_err(), "there is no answer");
        drop(short.begin());
        assert!(tokio::time::timeout(soon, short.passed()).await.is_err(), "it was read");
        let _reading = short.begin();
        short.passed().await;
    }
}
