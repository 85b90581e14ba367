//! The sender of one datagram socket (UDP or unix): which packets to send now, and what errors mean.
//!
//! Path of a packet: `queue::pop` -> **`DatagramSender::poll`** gives `Send` -> sendmmsg -> `on_sent` -> settled.
//!
//! How the binary drives it: call `poll` and do what it says, with a connected socket (so that refusals are
//! seen). Answer `Open` with `on_opened` or `on_open_failed`, `Send` with `on_sent` (how many left, from the
//! front) and then, if the system gave an error for the next one, `on_error`. Before a poll, when
//! [`DatagramSender::asks_for_error`] says so, ask the socket for a pending error (SO_ERROR) and report it the same
//! way. Poll again after each report, when the queue got something, and at [`DatagramSender::wake_ns`].
//!
//! A refusal (ICMP port unreachable) tells of an earlier packet, not of the one that is being sent. The copies
//! of the last `on_sent` therefore wait a moment before they count as delivered, each refusal is charged to
//! one of them, and the packet at the front is tried again. When fewer packets left than were asked for, the system
//! met an error and forgot it: the next packet goes alone, and leaves an error behind if nobody is there.
//!
//! An endpoint that refuses is not fed any further: records wait in the queue, under its limits, while one packet at
//! a time finds out whether somebody is there again. A dead endpoint so costs a packet now and then, not its share of
//! the traffic.
//!
//! Not here: sockets, name resolution, UDP_SEGMENT.
//! Invariant: the account's sum holds with `queue.copies() + sender.waiting_copies()` between any two calls.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use model::{CopyOutcome, Dropped, Now, OutputAccount, RejectedByPeer, SECOND_NS, Span};

use crate::endpoint::{EndpointState, Failure, Health, News, Status};
use crate::pause::{Backoff, MS_NS, after_ms, earliest};
use crate::plan::SenderPlan;
use crate::queue::{BlockEncoding, Entry, Queue};

/// Without a refusal for so long, what was sent counts as arrived and the endpoint as up.
const PROOF_NS: u64 = SECOND_NS;

/// Without a refusal for so long, a packet that was sent to find out has arrived.
const PROBE_NS: u64 = SECOND_NS / 10;

/// Pause after the system had no room for a packet, unless it says earlier that it has.
const BLOCKED_PAUSE_NS: u64 = SECOND_NS / 20;

/// Refusals in a row at the same packet before it is charged to that packet itself.
const REFUSALS_MAX: u32 = 8;

/// What the binary has to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramAction<'a> {
    /// Make a socket (drop the old one), connect it; answer with `on_opened` or `on_open_failed`. Go on polling.
    Open,
    /// Send these, from the front.
    Send(Packets<'a>),
    /// Nothing to do before this time (monotonic nanoseconds), unless something happens. When the system had no
    /// room: until the socket is writable (`on_writable`) or this time.
    WaitUntil(u64),
    /// Nothing to do until something happens.
    Idle,
}

/// Packets to send, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packets<'a> {
    /// What the spans point into.
    pub bytes: &'a [u8],
    /// Where each packet lies; at least one.
    pub spans: &'a [Span],
}

impl<'a> Packets<'a> {
    /// The packets' bytes.
    pub fn iter(self) -> impl ExactSizeIterator<Item = &'a [u8]> {
        self.spans.iter().map(move |span| span.of(self.bytes))
    }
}

/// What the system said about sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SendError {
    /// ECONNREFUSED on UDP: the endpoint's host refused an earlier packet.
    Refused,
    /// EAGAIN, ENOBUFS: no room now.
    WouldBlock,
    /// EMSGSIZE: the packet is larger than the socket or the path allows.
    TooBig,
    /// The socket has lost its peer (unix: ECONNREFUSED, ECONNRESET, ENOTCONN): it must be made anew.
    Gone,
    /// Anything else.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Closed { retry_ns: u64 },
    Opening { deadline_ns: u64 },
    Open,
    Stopped,
}

/// The block that is being sent.
#[derive(Debug)]
struct Held {
    entry: Entry,
    /// Its packets, when its form does not list them.
    cut: Vec<Span>,
}

impl Held {
    fn new(entry: Entry) -> Held {
        let block = entry.block();
        let mut cut = Vec::new();
        if !matches!(block.form, BlockEncoding::Packets(_)) {
            let mut from = 0;
            while from < block.bytes.len() {
                let to = block.border_after(from);
                cut.push(Span::new(from, to - from));
                from = to;
            }
        }
        Held { entry, cut }
    }

    fn packets(&self) -> &[Span] {
        match &self.entry.block().form {
            BlockEncoding::Packets(packets) => packets,
            BlockEncoding::Lines | BlockEncoding::Frames(_) => &self.cut,
        }
    }

    /// Copies in the next `packets` packets, and their bytes. The last packet takes what is left.
    fn copies_in(&self, packets: usize) -> (u32, u64) {
        let done = self.entry.packets_done;
        let all = self.packets();
        if done + packets >= all.len() {
            return (self.entry.copies() as u32, self.entry.bytes_left());
        }
        let bytes = all[done..done + packets].iter().map(|packet| u64::from(packet.len)).sum();
        let copies = match self.entry.block().form {
            BlockEncoding::Packets(_) => packets as u32,
            BlockEncoding::Lines | BlockEncoding::Frames(_) => {
                let (from, to) = (all[done].at as usize, all[done + packets].at as usize);
                self.entry.block().copies_between(from, to).0
            }
        };
        (copies.min(self.entry.copies() as u32), bytes)
    }
}

/// See the module's header.
#[derive(Debug)]
pub struct DatagramSender {
    plan: SenderPlan,
    account: Arc<OutputAccount>,
    backoff: Backoff,
    health: Health,
    phase: Phase,
    held: Option<Held>,
    /// Sent last, and not refused so far.
    unproven_copies: u64,
    unproven_bytes: u64,
    /// When that was.
    sent_ns: u64,
    /// When the first packet was sent since the socket was made or a packet was refused.
    quiet_since_ns: Option<u64>,
    /// Packets of the last `Send`.
    asked: usize,
    /// The last call sent fewer packets than it was asked for: its error may have been a refusal.
    cut_short: bool,
    /// The call before the last one was cut short: a refusal that follows was not the first.
    after_cut: bool,
    /// Refusals since a packet left last.
    refusals: u32,
    /// One packet at a time is sent, because the last one was refused.
    probing: bool,
    /// No packet is sent before.
    held_until_ns: u64,
    blocked_since_ns: Option<u64>,
    blocked_until_ns: u64,
    backlog_copies: u64,
    stop_ns: Option<u64>,
}

impl DatagramSender {
    /// A sender without a socket yet. The seed decides the jitter of its pauses and nothing else. Of the plan,
    /// `write_timeout_ms` says how long the system may have no room before the endpoint counts as down.
    pub fn new(plan: SenderPlan, account: Arc<OutputAccount>, seed: u64) -> DatagramSender {
        DatagramSender {
            plan,
            account,
            backoff: Backoff::new(plan.retry_min_ms, plan.retry_max_ms, seed),
            health: Health::new(),
            phase: Phase::Closed { retry_ns: 0 },
            held: None,
            unproven_copies: 0,
            unproven_bytes: 0,
            sent_ns: 0,
            quiet_since_ns: None,
            asked: 0,
            cut_short: false,
            after_cut: false,
            refusals: 0,
            probing: false,
            held_until_ns: 0,
            blocked_since_ns: None,
            blocked_until_ns: 0,
            backlog_copies: 0,
            stop_ns: None,
        }
    }

    /// Other pauses and time-outs from now on, for a reload.
    pub fn set_plan(&mut self, plan: SenderPlan) {
        self.plan = plan;
        self.backoff.set_bounds(plan.retry_min_ms, plan.retry_max_ms);
    }

    /// What to do next; at most `packets_max` packets at once. `queue` must be the same at each call.
    pub fn poll(&mut self, queue: &mut impl Queue, packets_max: usize, now: Now) -> DatagramAction<'_> {
        queue.expire(now);
        self.prove(now);
        match self.phase {
            Phase::Closed { retry_ns } => self.poll_closed(retry_ns, queue, now),
            Phase::Opening { deadline_ns } => {
                if self.stop_ns.is_some_and(|stop_ns| now.mono_ns >= stop_ns) {
                    self.stop(now);
                    return DatagramAction::Idle;
                }
                if now.mono_ns < deadline_ns {
                    return DatagramAction::WaitUntil(earliest(
                        deadline_ns,
                        [self.stop_ns, queue.expires_ns()],
                    ));
                }
                self.close(Failure::ConnectTimeout, now);
                self.wait()
            }
            Phase::Open => self.poll_open(queue, packets_max, now),
            Phase::Stopped => DatagramAction::Idle,
        }
    }

    fn poll_closed(&mut self, retry_ns: u64, queue: &mut impl Queue, now: Now) -> DatagramAction<'static> {
        if let Some(held) = self.held.take() {
            queue.put_back(held.entry);
            queue.expire(now);
        }
        if self.stop_ns.is_some_and(|stop_ns| queue.is_empty() || now.mono_ns >= stop_ns) {
            self.stop(now);
            return DatagramAction::Idle;
        }
        if now.mono_ns < retry_ns {
            return DatagramAction::WaitUntil(earliest(retry_ns, [self.stop_ns, queue.expires_ns()]));
        }
        self.phase = Phase::Opening { deadline_ns: after_ms(now, self.plan.connect_timeout_ms) };
        self.backlog_copies = queue.copies();
        DatagramAction::Open
    }

    fn poll_open(&mut self, queue: &mut impl Queue, packets_max: usize, now: Now) -> DatagramAction<'_> {
        self.expire_held(queue, now);
        self.take_next(queue, now);
        let nothing_waits = self.held.is_none();
        if self.stop_ns.is_some_and(|stop_ns| nothing_waits || now.mono_ns >= stop_ns) {
            self.stop(now);
            return DatagramAction::Idle;
        }
        if nothing_waits || now.mono_ns < self.blocked_until_ns.max(self.held_until_ns) {
            return self.wait();
        }
        let Some(held) = &self.held else { return DatagramAction::Idle };
        let waiting = &held.packets()[held.entry.packets_done..];
        let packets_max = if self.probing || self.cut_short { 1 } else { packets_max.max(1) };
        let spans = &waiting[..waiting.len().min(packets_max)];
        self.asked = spans.len();
        DatagramAction::Send(Packets { bytes: &held.entry.block().bytes, spans })
    }

    /// The socket is there.
    pub fn on_opened(&mut self, _now: Now) {
        if matches!(self.phase, Phase::Opening { .. }) {
            self.phase = Phase::Open;
            self.account.connects.fetch_add(1, Relaxed);
            self.quiet_since_ns = None;
            self.cut_short = false;
            self.refusals = 0;
            self.held_until_ns = 0;
            self.blocked_since_ns = None;
            self.blocked_until_ns = 0;
        }
    }

    /// The socket could not be made.
    pub fn on_open_failed(&mut self, now: Now) {
        self.on_no_address(Failure::ConnectFailed, now);
    }

    /// There is no address to send to, for this reason: the name has none, or it is one of our own.
    pub fn on_no_address(&mut self, why: Failure, now: Now) {
        if matches!(self.phase, Phase::Opening { .. }) {
            self.close(why, now);
        }
    }

    /// True when an error may wait in the socket that the next send would tell too late, or not at all: after a packet
    /// that went alone, and before what was sent counts as arrived. In between a send tells by itself, and each
    /// question is a system call.
    pub fn asks_for_error(&self, now: Now) -> bool {
        let proof_ns = if self.probing { PROBE_NS } else { PROOF_NS };
        self.unproven_copies > 0 && (self.asked == 1 || now.mono_ns >= self.sent_ns.saturating_add(proof_ns))
    }

    /// The first `packets` packets of the last `Send` left.
    pub fn on_sent(&mut self, packets: usize, now: Now) {
        let Some(held) = &self.held else { return };
        let left = held.packets().len() - held.entry.packets_done;
        debug_assert!(packets <= left, "{packets} packets sent of {left}");
        let packets = packets.min(left);
        if packets == 0 {
            return;
        }
        // One more than a cut call had sent proves nothing about those yet.
        if !self.cut_short {
            self.settle_proven();
        }
        let (copies, bytes) = self.pass(packets);
        self.unproven_copies += copies;
        self.unproven_bytes += bytes;
        self.after_cut = self.cut_short;
        self.cut_short = packets < self.asked;
        self.sent_ns = now.mono_ns;
        if self.probing {
            self.held_until_ns = now.mono_ns.saturating_add(PROBE_NS);
        }
        self.quiet_since_ns.get_or_insert(now.mono_ns);
        self.refusals = 0;
        self.blocked_since_ns = None;
        self.blocked_until_ns = 0;
    }

    /// The packet at the front did not leave, or an error of an earlier one was pending.
    pub fn on_error(&mut self, error: SendError, now: Now) {
        if self.phase != Phase::Open {
            return;
        }
        self.cut_short = false;
        match error {
            SendError::WouldBlock => return self.blocked(now),
            SendError::Refused => self.refused(now),
            SendError::TooBig => self.settle_front(CopyOutcome::Dropped(Dropped::TooBig)),
            SendError::Gone => return self.close(Failure::Broken, now),
            SendError::Other => {
                self.settle_front(CopyOutcome::RejectedByPeer(RejectedByPeer::SendError));
                return self.close(Failure::WriteFailed, now);
            }
        }
        self.account.errors.fetch_add(1, Relaxed);
    }

    /// The same of one address of several, while others take packets: a refusal is charged, and nothing is held back.
    /// The caller passes the address over; the packet at the front goes to another one.
    pub fn on_error_of_one(&mut self, error: SendError) {
        if self.phase != Phase::Open {
            return;
        }
        self.cut_short = false;
        if error == SendError::Refused {
            self.charge_refusal();
        }
        self.account.errors.fetch_add(1, Relaxed);
    }

    /// The socket has room again.
    pub fn on_writable(&mut self) {
        self.blocked_until_ns = 0;
    }

    /// From now on: send what waits until `deadline_ns` (monotonic). [`Self::stopped`] tells when it is done;
    /// then call [`Self::finish_stop`].
    pub fn begin_stop(&mut self, deadline_ns: u64) {
        self.stop_ns = Some(deadline_ns);
    }

    /// True when the sender will do nothing any more.
    pub fn stopped(&self) -> bool {
        self.phase == Phase::Stopped
    }

    /// Ends it now: whatever did not leave goes back to the queue, which keeps it for the next run or drops it
    /// (`stopped`): see [`Queue::leave`].
    pub fn finish_stop(&mut self, queue: &mut impl Queue, now: Now) {
        self.settle_proven();
        if let Some(held) = self.held.take() {
            queue.put_back(held.entry);
        }
        queue.leave();
        self.stop(now);
    }

    /// When to poll next although nothing happened.
    pub fn wake_ns(&self) -> Option<u64> {
        let phase_ns = match self.phase {
            Phase::Closed { retry_ns } => Some(retry_ns),
            Phase::Opening { deadline_ns } => Some(deadline_ns),
            Phase::Open if self.held.is_some() => Some(self.blocked_until_ns.max(self.held_until_ns)),
            Phase::Open => None,
            Phase::Stopped => return None,
        };
        let proof_ns = (self.unproven_copies > 0).then(|| self.sent_ns.saturating_add(PROOF_NS));
        let not_up = self.health.state().status != Status::Up;
        let up_ns = self.quiet_since_ns.filter(|_| not_up).map(|ns| ns.saturating_add(PROOF_NS));
        let phase_ns = phase_ns.filter(|at_ns| *at_ns > 0);
        [phase_ns, proof_ns, up_ns, self.stop_ns].into_iter().flatten().min()
    }

    /// Copies that the sender holds: being sent, or sent a moment ago.
    pub fn waiting_copies(&self) -> u64 {
        self.unproven_copies + self.held.as_ref().map_or(0, |held| held.entry.copies())
    }

    /// Memory that the sender holds.
    pub fn queued_bytes(&self) -> u64 {
        self.held.as_ref().map_or(0, |held| held.entry.memory_bytes())
    }

    /// When the block that the sender holds was made. Older than anything in the queue.
    pub fn oldest_ns(&self) -> Option<u64> {
        self.held.as_ref().map(|held| held.entry.block().at_ns)
    }

    /// What is known about the endpoint.
    pub fn state(&self) -> EndpointState {
        self.health.state()
    }

    /// The next change of state that has not been logged. Take them after each poll and report.
    pub fn take_news(&mut self) -> Option<News> {
        self.health.take_news()
    }

    fn refused(&mut self, now: Now) {
        self.refusals += 1;
        self.quiet_since_ns = None;
        self.probing = true;
        self.held_until_ns = now.mono_ns.saturating_add(self.backoff.fail());
        self.health.fail(Failure::Refused, now);
        if !self.charge_refusal() && self.refusals > REFUSALS_MAX {
            self.settle_front(CopyOutcome::RejectedByPeer(RejectedByPeer::ByPeer));
            self.refusals = 0;
        }
    }

    /// Charges a refusal to what was sent last. False when all of that counts as arrived already.
    fn charge_refusal(&mut self) -> bool {
        // Which ones they were is not told: average ones.
        let Some(bytes_each) = self.unproven_bytes.checked_div(self.unproven_copies) else { return false };
        let packets = if std::mem::take(&mut self.after_cut) { 2 } else { 1 };
        let (copies, bytes) =
            (packets.min(self.unproven_copies), packets.min(self.unproven_copies) * bytes_each);
        self.unproven_copies -= copies;
        self.unproven_bytes -= bytes;
        self.account.settle(CopyOutcome::RejectedByPeer(RejectedByPeer::ByPeer), copies, bytes);
        true
    }

    fn blocked(&mut self, now: Now) {
        self.blocked_until_ns = now.mono_ns.saturating_add(BLOCKED_PAUSE_NS);
        let since_ns = *self.blocked_since_ns.get_or_insert(now.mono_ns);
        let patience_ns = self.plan.write_timeout_ms.saturating_mul(MS_NS);
        if now.mono_ns.saturating_sub(since_ns) >= patience_ns && self.health.state().status != Status::Down {
            self.account.errors.fetch_add(1, Relaxed);
            self.quiet_since_ns = None;
            self.health.fail(Failure::Blocked, now);
        }
    }

    /// What enough time without a refusal tells.
    fn prove(&mut self, now: Now) {
        let probed = self.probing && self.unproven_copies > 0;
        if probed && now.mono_ns >= self.sent_ns.saturating_add(PROBE_NS) {
            self.probing = false;
        }
        if self.unproven_copies > 0 && now.mono_ns >= self.sent_ns.saturating_add(PROOF_NS) {
            self.settle_proven();
        }
        if self.quiet_since_ns.is_some_and(|since_ns| now.mono_ns >= since_ns.saturating_add(PROOF_NS)) {
            self.backoff.reset();
            self.health.good(self.backlog_copies, now);
        }
    }

    fn settle_proven(&mut self) {
        self.account.settle(CopyOutcome::Delivered, self.unproven_copies, self.unproven_bytes);
        self.unproven_copies = 0;
        self.unproven_bytes = 0;
    }

    /// Gives the packet at the front its outcome.
    fn settle_front(&mut self, outcome: CopyOutcome) {
        if self.held.is_some() {
            let (copies, bytes) = self.pass(1);
            self.account.settle(outcome, copies, bytes);
        }
    }

    /// Moves on by `packets` packets, whose copies the caller settles.
    fn pass(&mut self, packets: usize) -> (u64, u64) {
        let Some(held) = &mut self.held else { return (0, 0) };
        let (copies, bytes) = held.copies_in(packets);
        held.entry.hand_over(copies, bytes);
        held.entry.packets_done += packets;
        if held.entry.packets_done >= held.packets().len() {
            self.held = None;
        }
        (u64::from(copies), bytes)
    }

    /// What is held because the endpoint takes nothing grows old as what is in the queue does.
    fn expire_held(&mut self, queue: &impl Queue, now: Now) {
        let made_ns = self.held.as_ref().map(|held| held.entry.block().at_ns);
        let expires_ns = made_ns.and_then(|made_ns| queue.limits().expires_ns(made_ns));
        if expires_ns.is_some_and(|at_ns| at_ns <= now.mono_ns)
            && let Some(held) = self.held.take()
        {
            held.entry.settle(CopyOutcome::Dropped(Dropped::TooOld));
        }
    }

    fn take_next(&mut self, queue: &mut impl Queue, now: Now) {
        while self.held.is_none() {
            let Some(entry) = queue.pop(now) else { return };
            let held = Held::new(entry);
            if held.packets().len() > held.entry.packets_done {
                self.held = Some(held);
            } else {
                held.entry.settle(CopyOutcome::Delivered);
            }
        }
    }

    fn close(&mut self, failure: Failure, now: Now) {
        self.account.errors.fetch_add(1, Relaxed);
        self.settle_proven();
        self.quiet_since_ns = None;
        self.health.fail(failure, now);
        self.phase = Phase::Closed { retry_ns: now.mono_ns.saturating_add(self.backoff.fail()) };
    }

    fn stop(&mut self, now: Now) {
        self.settle_proven();
        self.phase = Phase::Stopped;
        self.health.stop(now);
    }

    fn wait(&self) -> DatagramAction<'static> {
        self.wake_ns().map_or(DatagramAction::Idle, DatagramAction::WaitUntil)
    }
}
