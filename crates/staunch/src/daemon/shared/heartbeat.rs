//! Checks whether a thread still answers: one that answers calls, or one that runs a runtime.

use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

#[cfg(test)]
use crate::daemon::worker::ShardHandle;

/// A question to a thread that answers calls, one at a time however many ask.
#[derive(Debug, Default)]
pub struct Heartbeat(tokio::sync::Mutex<Option<oneshot::Receiver<()>>>);

/// The result of a heartbeat check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    /// The thread has answered.
    Alive,
    /// It has not answered before the timeout.
    Late,
    /// It has ended.
    Ended,
}

impl Heartbeat {
    /// Calls by `ask`, and waits for the answer for at most so long. A question without an answer is not asked twice.
    pub async fn beat(&self, ask: impl FnOnce() -> oneshot::Receiver<()>, at_most: Duration) -> Beat {
        let answer = async {
            let mut asked = self.0.lock().await;
            let answer = asked.get_or_insert_with(ask);
            // Cancel-safe: the check stays for the next caller.
            let answered = answer.await;
            *asked = None;
            answered
        };
        match tokio::time::timeout(at_most, answer).await {
            Ok(Ok(())) => Beat::Alive,
            Ok(Err(_gone)) => Beat::Ended,
            Err(_late) => Beat::Late,
        }
    }
}

/// A heartbeat check of a runtime's thread, one at a time for all callers.
#[derive(Debug)]
pub struct Pulse {
    runtime: Handle,
    asked: tokio::sync::Mutex<Option<JoinHandle<()>>>,
}

impl Pulse {
    /// For that runtime.
    pub fn of(runtime: Handle) -> Pulse {
        Pulse { runtime, asked: tokio::sync::Mutex::default() }
    }

    /// Checks, with a timeout. An unanswered check is not sent again.
    pub async fn beat(&self, at_most: Duration) -> Beat {
        let answer = async {
            let mut asked = self.asked.lock().await;
            let answer = asked.get_or_insert_with(|| self.runtime.spawn(async {}));
            // Cancel-safe: the check stays for the next caller.
            let answered = answer.await;
            *asked = None;
            answered
        };
        match tokio::time::timeout(at_most, answer).await {
            Ok(Ok(())) => Beat::Alive,
            Ok(Err(_gone)) => Beat::Ended,
            Err(_late) => Beat::Late,
        }
    }
}

#[test]
fn a_runtime_with_a_busy_thread_is_late() {
    let busy = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let ours = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let pulse = Pulse::of(busy.handle().clone());
    for _ in 0..2 {
        assert_eq!(ours.block_on(pulse.beat(Duration::from_millis(5))), Beat::Late);
    }
    busy.block_on(tokio::task::yield_now());
    assert_eq!(ours.block_on(pulse.beat(Duration::from_secs(30))), Beat::Alive);
}

#[tokio::test]
async fn an_unanswered_check_is_sent_once() {
    let (heartbeat, shard) = (Heartbeat::default(), ShardHandle::new().expect("a descriptor is free"));
    for _ in 0..3 {
        let late = heartbeat.beat(|| shard.call(|_worker| ()), Duration::from_millis(5));
        assert_eq!(late.await, Beat::Late);
    }
    assert_eq!(shard.waiting(), 1);
    shard.end();
    let ended = heartbeat.beat(|| shard.call(|_worker| ()), Duration::from_secs(30));
    assert_eq!(ended.await, Beat::Ended);
}
