//! The sender of requests with answers, such as HTTP or SMTP: which records are sent together, when, and what an answer
//! means for them.
//!
//! Path of a packet: `queue::pop` -> **`RequestSender::poll`** returns `Send` -> the binary sends the first of
//! [`RequestSender::lines`] -> `on_answer` -> settled.
//!
//! How the binary uses it: call `poll` and perform the action. A request may take fewer records than offered, but at least one;
//! report their number and the answer. There is one request at a time.
//!
//! A record counts as delivered when its request was accepted. A request without an answer may have arrived, and is sent
//! again: a record may arrive twice, but none is lost. After a failure all records go back to the queue, within its limits.
//!
//! Not here: sockets, and what a request looks like.
//! Invariant: the account is balanced with `queue.copies() + sender.waiting_copies()` between any two calls.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use model::{CopyOutcome, Now, OutputAccount, RejectedByPeer};

use crate::endpoint::{EndpointState, Failure, Health, StateChange};
use crate::pause::{Backoff, MS_NS, after_ms, earliest};
use crate::plan::{BatchPlan, SenderPlan};
use crate::queue::{Entry, Queue};

/// Longest pause that an endpoint can ask for.
pub const RETRY_AFTER_MS_MAX: u64 = 3_600_000;

/// The next action for the binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestAction {
    /// Send a request of the first records of [`RequestSender::lines`]; report by `on_answer`.
    Send,
    /// Nothing to do before this time (monotonic nanoseconds), unless something happens.
    WaitUntil(u64),
    /// Nothing to do until something happens.
    Idle,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The endpoint has its records.
    Accepted,
    /// The endpoint will never accept them.
    Rejected,
    /// They can be sent again.
    Failed {
        /// What happened.
        why: Failure,
        /// The pause that the endpoint asks for, in milliseconds.
        retry_after_ms: Option<u64>,
        /// The endpoint may have them nevertheless.
        in_doubt: bool,
    },
}

/// See the module's header.
#[derive(Debug)]
pub struct RequestSender {
    batch: BatchPlan,
    account: Arc<OutputAccount>,
    backoff: Backoff,
    health: Health,
    /// Oldest first.
    held: VecDeque<Entry>,
    /// When the first record of a request began to wait for others.
    since_ns: u64,
    /// After a failure: nothing is sent before this time.
    retry_ns: Option<u64>,
    stop_ns: Option<u64>,
    stopped: bool,
}

impl RequestSender {
    /// The seed decides only the jitter of its pauses.
    pub fn new(plan: SenderPlan, batch: BatchPlan, account: Arc<OutputAccount>, seed: u64) -> RequestSender {
        debug_assert!(batch.records_max > 0, "config checks that a request has records");
        RequestSender {
            batch,
            account,
            backoff: Backoff::new(plan.retry_min_ms, plan.retry_max_ms, seed),
            health: Health::new(),
            held: VecDeque::new(),
            since_ns: 0,
            retry_ns: None,
            stop_ns: None,
            stopped: false,
        }
    }

    /// The next action. `queue` must be the same at each call.
    pub fn poll(&mut self, queue: &mut impl Queue, now: Now) -> RequestAction {
        queue.expire(now);
        if self.stopped {
            return RequestAction::Idle;
        }
        if let Some(retry_ns) = self.retry_ns.filter(|retry_ns| now.mono_ns < *retry_ns) {
            // Meanwhile they may be dropped like any others.
            self.put_back(queue);
            queue.expire(now);
            return match self.stop_ns {
                Some(stop_ns) if queue.is_empty() || now.mono_ns >= stop_ns => self.stop(now),
                _ if queue.is_empty() => RequestAction::Idle,
                stop_ns => RequestAction::WaitUntil(earliest(retry_ns, [stop_ns, queue.expires_ns()])),
            };
        }
        if self.stop_ns.is_some_and(|stop_ns| now.mono_ns >= stop_ns) {
            return self.stop(now);
        }
        self.take(queue, now);
        if self.held.is_empty() {
            return if self.stop_ns.is_some() { self.stop(now) } else { RequestAction::Idle };
        }
        let due_ns = self.since_ns.saturating_add(self.batch.delay_ms.saturating_mul(MS_NS));
        if self.is_full() || self.stop_ns.is_some() || self.retry_ns.is_some() || now.mono_ns >= due_ns {
            return RequestAction::Send;
        }
        RequestAction::WaitUntil(due_ns)
    }

    /// The records of the next request, oldest first, without their LF; at least one after [`RequestAction::Send`].
    pub fn lines(&self) -> Vec<&[u8]> {
        let mut lines = Vec::new();
        let mut bytes = 0;
        for entry in &self.held {
            let mut at = entry.settled;
            while at < entry.block().bytes.len() {
                let end = entry.block().boundary_after(at);
                let line = &entry.block().bytes[at..end];
                bytes += line.len() as u64;
                let is_full = lines.len() >= self.batch.records_max as usize || bytes > self.batch.bytes_max;
                if is_full && !lines.is_empty() {
                    return lines;
                }
                lines.push(line.strip_suffix(b"\n").unwrap_or(line));
                at = end;
            }
        }
        lines
    }

    /// An attempt to send the first `records` records was repeated at once, although the endpoint may have them.
    pub fn in_doubt(&self, records: u32) {
        self.account.in_doubt.fetch_add(u64::from(records), Relaxed);
    }

    /// The endpoint has answered a request of the first `records` records, or the request has failed.
    pub fn on_answer(&mut self, records: u32, answer: Answer, now: Now) {
        let outcome = match answer {
            Answer::Accepted => CopyOutcome::Delivered,
            Answer::Rejected => CopyOutcome::RejectedByPeer(RejectedByPeer::ByPeer),
            Answer::Failed { why, retry_after_ms, in_doubt } => {
                self.account.errors.fetch_add(1, Relaxed);
                if in_doubt {
                    self.in_doubt(records);
                }
                self.health.fail(why, now);
                let own_ns = now.mono_ns.saturating_add(self.backoff.fail());
                let asked_ns = retry_after_ms.map(|ms| after_ms(now, ms.min(RETRY_AFTER_MS_MAX)));
                self.retry_ns = Some(asked_ns.map_or(own_ns, |asked_ns| asked_ns.max(own_ns)));
                return;
            }
        };
        self.settle(records, outcome);
        self.retry_ns = None;
        self.backoff.reset();
        self.health.succeed(self.waiting_copies(), now);
    }

    fn settle(&mut self, records: u32, outcome: CopyOutcome) {
        let mut left = records;
        while left > 0
            && let Some(entry) = self.held.front_mut()
        {
            let mut at = entry.settled;
            let len = entry.block().bytes.len();
            while left > 0 && at < len {
                at = entry.block().boundary_after(at);
                left -= 1;
            }
            entry.settle_up_to(outcome, at);
            if at >= len {
                self.held.pop_front();
            }
        }
    }

    fn take(&mut self, queue: &mut impl Queue, now: Now) {
        while !self.is_full() {
            let Some(entry) = queue.pop(now) else { return };
            if entry.settled >= entry.block().bytes.len() {
                entry.settle(CopyOutcome::Delivered);
                continue;
            }
            if self.held.is_empty() {
                self.since_ns = now.mono_ns;
            }
            self.held.push_back(entry);
        }
    }

    fn is_full(&self) -> bool {
        let bytes = self.held.iter().map(|entry| (entry.block().bytes.len() - entry.settled) as u64);
        self.waiting_copies() >= u64::from(self.batch.records_max)
            || bytes.sum::<u64>() >= self.batch.bytes_max
    }

    fn put_back(&mut self, queue: &mut impl Queue) {
        while let Some(entry) = self.held.pop_back() {
            queue.put_back(entry);
        }
    }

    /// From now on: send queued records until `deadline_ns` (monotonic). When [`Self::stopped`] is true, call
    /// [`Self::finish_stop`].
    pub fn begin_stop(&mut self, deadline_ns: u64) {
        self.stop_ns = Some(deadline_ns);
    }

    /// True when the sender has stopped.
    pub fn stopped(&self) -> bool {
        self.stopped
    }

    /// Stops now. Records that are not settled go back to the queue: see [`Queue::on_sender_stopped`].
    pub fn finish_stop(&mut self, queue: &mut impl Queue, now: Now) {
        self.put_back(queue);
        queue.on_sender_stopped();
        self.stop(now);
    }

    /// Copies in the sender.
    pub fn waiting_copies(&self) -> u64 {
        self.held.iter().map(Entry::copies).sum()
    }

    /// Memory in use by the sender.
    pub fn queued_bytes(&self) -> u64 {
        self.held.iter().map(Entry::memory_bytes).sum()
    }

    /// State of the endpoint.
    pub fn state(&self) -> EndpointState {
        self.health.state()
    }

    /// The next state change to log. Take and log them after each poll.
    pub fn take_state_change(&mut self) -> Option<StateChange> {
        self.health.take_state_change()
    }

    fn stop(&mut self, now: Now) -> RequestAction {
        self.stopped = true;
        self.health.stop(now);
        RequestAction::Idle
    }
}
