//! The total timeout of a response: a client that reads a byte now and then must not keep it forever.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// The timeouts of the responses on one connection, one after the other.
#[derive(Debug)]
pub(super) struct Deadline {
    time_max: Duration,
    /// Whether a response is in progress.
    reads: watch::Sender<bool>,
}

/// A response in progress, until it is dropped.
#[derive(Debug)]
pub(super) struct Reading(Arc<Deadline>);

impl Deadline {
    /// Each response has this timeout.
    pub(super) fn new(time_max: Duration) -> Deadline {
        Deadline { time_max, reads: watch::Sender::new(false) }
    }

    /// A response begins.
    pub(super) fn begin(self: &Arc<Deadline>) -> Reading {
        self.reads.send_replace(true);
        Reading(Arc::clone(self))
    }

    /// Resolves when a response was not read in time. It must be polled all the time; calling it again restarts the
    /// timeout of the current response.
    pub(super) async fn passed(&self) {
        let mut reads = self.reads.subscribe();
        loop {
            let time_max = if *reads.borrow_and_update() { self.time_max } else { Duration::MAX };
            // It ends at the next change, or at the timeout.
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
    async fn the_timeout_is_for_one_response() {
        let short = Arc::new(Deadline::new(Duration::from_millis(5)));
        let soon = Duration::from_millis(20);
        assert!(tokio::time::timeout(soon, short.passed()).await.is_err(), "there is no answer");
        drop(short.begin());
        assert!(tokio::time::timeout(soon, short.passed()).await.is_err(), "it was read");
        let _reading = short.begin();
        short.passed().await;
    }
}
