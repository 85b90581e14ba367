//! Wakes the shard's thread, and reports its end. Not here: calls into it (`handle`).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use sys::Waker;
use tokio::sync::Notify;

/// Wakes the worker, from any thread.
#[derive(Clone, Debug)]
pub struct ShardWaker {
    pub(super) waker: Arc<Waker>,
    pub(super) asleep: Arc<AtomicBool>,
    /// Notified when the thread ends.
    end: Arc<Notify>,
}

impl ShardWaker {
    /// # Errors
    /// When the process has no file descriptor left.
    pub(super) fn new() -> io::Result<ShardWaker> {
        Ok(ShardWaker { waker: Arc::new(Waker::new()?), asleep: Arc::default(), end: Arc::default() })
    }

    /// Resolves when the worker has ended, for any reason. For one caller.
    pub(super) async fn ended(&self) {
        self.end.notified().await;
    }

    /// The worker has ended; or the daemon ends as if it had, because a thread that it needs has ended because of a bug.
    pub(super) fn note_end(&self) {
        self.end.notify_one();
    }

    /// Wakes the worker to check the exchange.
    pub(super) fn wake(&self) {
        if self.asleep.load(Relaxed) {
            self.waker.wake();
        }
    }
}
