//! Calls into the shard's thread, from any other: they run between two turns of its loop, so that control is never a record
//! among data.
//!
//! Invariant: every call is answered, by an error when the thread has ended.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};

use super::Worker;
use crate::sys::Waker;

type Job = Box<dyn FnOnce(&mut Worker) + Send>;

/// Calls into the worker, from any thread.
#[derive(Clone)]
pub struct ShardHandle {
    jobs: Arc<Mutex<Jobs>>,
    pub(super) waker: Arc<Waker>,
    pub(super) asleep: Arc<AtomicBool>,
    /// Told when the thread ends.
    end: Arc<Notify>,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<Job>,
    /// Nobody takes jobs any more.
    ended: bool,
}

impl std::fmt::Debug for ShardHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ShardHandle")
    }
}

impl ShardHandle {
    /// A handle, to be given to the worker and to everyone who calls it.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn new() -> io::Result<ShardHandle> {
        Ok(ShardHandle {
            jobs: Arc::default(),
            waker: Arc::new(Waker::new()?),
            asleep: Arc::default(),
            end: Arc::default(),
        })
    }

    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when the worker has ended, in whatever way. For one caller.
    pub async fn ended(&self) {
        self.end.notified().await;
    }

    /// Runs `job` on the worker's thread between two turns. The answer is an error when the worker has ended.
    pub fn call<R: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Worker) -> R + Send + 'static,
    ) -> oneshot::Receiver<R> {
        let (answer, receiver) = oneshot::channel();
        let job: Job = Box::new(move |worker| {
            // Whoever asked may have gone away; the job was done all the same.
            let _gone = answer.send(job(worker));
        });
        let mut jobs = self.jobs();
        if !jobs.ended {
            jobs.waiting.push_back(job);
            self.waker.wake();
        }
        receiver
    }

    /// Calls that wait for the worker.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.jobs().waiting.len()
    }

    /// As if the worker had ended.
    #[cfg(test)]
    pub(crate) fn end(&self) {
        drop(TellEnd(self.clone()));
    }

    /// Wakes the worker to look at the exchange.
    pub fn wake(&self) {
        if self.asleep.load(Relaxed) {
            self.waker.wake();
        }
    }
}

impl Worker {
    pub(super) fn run_jobs(&mut self) {
        let jobs = std::mem::take(&mut self.handle.jobs().waiting);
        for job in jobs {
            job(self);
        }
    }
}

/// Whoever waits for an answer is told that none will come, also when the thread panics.
pub(super) struct TellEnd(pub(super) ShardHandle);

impl Drop for TellEnd {
    fn drop(&mut self) {
        let jobs = {
            let mut jobs = self.0.jobs();
            jobs.ended = true;
            std::mem::take(&mut jobs.waiting)
        };
        drop(jobs);
        self.0.end.notify_one();
    }
}

#[test]
fn calls_to_a_worker_that_ended_are_answered_by_an_error() {
    let handle = ShardHandle::new().expect("a descriptor is free");
    let waiting = handle.call(|_worker| 1);
    drop(TellEnd(handle.clone()));
    let late = handle.call(|_worker| 2);
    assert!(waiting.blocking_recv().is_err() && late.blocking_recv().is_err());
}
