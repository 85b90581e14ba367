//! The sender of one datagram socket (UDP or unix): which packets to send next, and how to handle send errors.
//!
//! Path of a packet: `queue::pop` -> **`DatagramSender::poll`** returns `Send` -> sendmmsg -> `on_sent` -> settled.
//!
//! How the binary uses it: call `poll` and perform the action, with a connected socket (only those report ICMP errors).
//! Report the result of `Open` by `on_opened` or `on_open_failed`, that of `Send` by `on_sent` (number of packets sent,
//! from the front) and, if the system returned an error for the next one, by `on_error`. When
//! [`DatagramSender::needs_error_check`] is true, read the socket's pending error (SO_ERROR) before `poll` and report it by
//! `on_error`. Poll again after each report, when the queue got a block, and at [`DatagramSender::wake_ns`].
//!
//! A UDP rejection (ICMP port unreachable) belongs to an earlier packet, not to the one being sent. The copies of the
//! last `on_sent` are therefore confirmed only after a short time without a rejection. Each rejection is charged to
//! one of them, and the packet at the front is sent again. When sendmmsg sent fewer packets than given, the system
//! met an error and discarded it. The next packet is then sent alone: if the endpoint is down, its error stays
//! pending in the socket.
//!
//! After a rejection the sender probes: records stay queued, within the queue's limits, and one packet at a time checks
//! whether the endpoint is back. A dead endpoint so costs a packet now and then, not its share of the traffic.
//!
//! Not here: sockets, name resolution, UDP_SEGMENT.
//! Invariant: the account is balanced with `queue.copies() + sender.waiting_copies()` between any two calls.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use model::{CopyOutcome, Dropped, Now, OutputAccount, RejectedByPeer, SECOND_NS, Span};

use crate::endpoint::{EndpointState, Failure, Health, StateChange, Status};
use crate::pause::{Backoff, MS_NS, after_ms, earliest};
use crate::plan::SenderPlan;
use crate::queue::{BlockEncoding, Entry, Queue};

/// After so long without a rejection, sent packets count as delivered and the endpoint as up.
const CONFIRM_NS: u64 = SECOND_NS;

/// After so long without a rejection, a probe packet counts as delivered.
const PROBE_NS: u64 = SECOND_NS / 10;

/// Pause when the system had no buffer space for a packet, unless the socket becomes writable earlier.
const BLOCKED_PAUSE_NS: u64 = SECOND_NS / 20;

/// Consecutive rejections of the same packet before that packet itself counts as rejected.
const REFUSALS_MAX: u32 = 8;

/// The next action for the binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramAction<'a> {
    /// Create a socket (drop the old one) and connect it; report by `on_opened` or `on_open_failed`. Keep polling.
    Open,
    /// Send these, from the front.
    Send(Packets<'a>),
    /// Nothing to do before this time (monotonic nanoseconds), unless something happens. When the system had no buffer
    /// space: until the socket is writable (`on_writable`) or this time.
    WaitUntil(u64),
    /// Nothing to do until something happens.
    Idle,
}

/// Packets to send, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packets<'a> {
    /// The buffer that the spans refer to.
    pub bytes: &'a [u8],
    /// The place of each packet; at least one.
    pub spans: &'a [Span],
}

impl<'a> Packets<'a> {
    /// The packets' bytes.
    pub fn iter(self) -> impl ExactSizeIterator<Item = &'a [u8]> {
        self.spans.iter().map(move |span| span.of(self.bytes))
    }
}

/// Error of a send call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SendError {
    /// ECONNREFUSED on UDP: the endpoint's host rejected an earlier packet.
    Refused,
    /// EAGAIN, ENOBUFS: no buffer space now.
    WouldBlock,
    /// EMSGSIZE: the packet is larger than the socket or the path allows.
    TooBig,
    /// The socket has lost its peer (unix: ECONNREFUSED, ECONNRESET, ENOTCONN): it must be created again.
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

/// The block being sent.
#[derive(Debug)]
struct Held {
    entry: Entry,
    /// Its packets, when its encoding does not list them.
    cut: Vec<Span>,
}

impl Held {
    fn new(entry: Entry) -> Held {
        let block = entry.block();
        let mut cut = Vec::new();
        if !matches!(block.encoding, BlockEncoding::Packets(_)) {
            let mut from = 0;
            while from < block.bytes.len() {
                let to = block.boundary_after(from);
                cut.push(Span::new(from, to - from));
                from = to;
            }
        }
        Held { entry, cut }
    }

    fn packets(&self) -> &[Span] {
        match &self.entry.block().encoding {
            BlockEncoding::Packets(packets) => packets,
            BlockEncoding::Lines | BlockEncoding::Frames(_) => &self.cut,
        }
    }

    /// Copies in the next `packets` packets, and their bytes. The last packet takes the rest.
    fn copies_in(&self, packets: usize) -> (u32, u64) {
        let done = self.entry.packets_done;
        let all = self.packets();
        if done + packets >= all.len() {
            return (self.entry.copies() as u32, self.entry.bytes_left());
        }
        let bytes = all[done..done + packets].iter().map(|packet| u64::from(packet.len)).sum();
        let copies = match self.entry.block().encoding {
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
    /// Copies of the last send, not rejected so far.
    unconfirmed_copies: u64,
    unconfirmed_bytes: u64,
    /// Time of that send.
    sent_ns: u64,
    /// Time of the first send since the socket was created or a packet was rejected.
    quiet_since_ns: Option<u64>,
    /// Packets of the last `Send`.
    asked: usize,
    /// The last call sent fewer packets than given: its error may have been a rejection.
    cut_short: bool,
    /// The call before the last one was cut short: a rejection that follows is the second one.
    after_cut: bool,
    /// Rejections since the last packet was sent.
    refusals: u32,
    /// One packet at a time is sent, because the last one was rejected.
    probing: bool,
    /// No packet is sent before this time.
    paused_until_ns: u64,
    blocked_since_ns: Option<u64>,
    blocked_until_ns: u64,
    backlog_copies: u64,
    stop_ns: Option<u64>,
}

impl DatagramSender {
    /// A sender without a socket. The seed decides only the jitter of its pauses. `write_timeout_ms` of the plan is
    /// the time without buffer space after which the endpoint counts as down.
    pub fn new(plan: SenderPlan, account: Arc<OutputAccount>, seed: u64) -> DatagramSender {
        DatagramSender {
            plan,
            account,
            backoff: Backoff::new(plan.retry_min_ms, plan.retry_max_ms, seed),
            health: Health::new(),
            phase: Phase::Closed { retry_ns: 0 },
            held: None,
            unconfirmed_copies: 0,
            unconfirmed_bytes: 0,
            sent_ns: 0,
            quiet_since_ns: None,
            asked: 0,
            cut_short: false,
            after_cut: false,
            refusals: 0,
            probing: false,
            paused_until_ns: 0,
            blocked_since_ns: None,
            blocked_until_ns: 0,
            backlog_copies: 0,
            stop_ns: None,
        }
    }

    /// Sets other pauses and timeouts, after a reload.
    pub fn set_plan(&mut self, plan: SenderPlan) {
        self.plan = plan;
        self.backoff.set_bounds(plan.retry_min_ms, plan.retry_max_ms);
    }

    /// The next action; at most `packets_max` packets at once. `queue` must be the same at each call.
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
        let nothing_queued = self.held.is_none();
        if self.stop_ns.is_some_and(|stop_ns| nothing_queued || now.mono_ns >= stop_ns) {
            self.stop(now);
            return DatagramAction::Idle;
        }
        if nothing_queued || now.mono_ns < self.blocked_until_ns.max(self.paused_until_ns) {
            return self.wait();
        }
        let Some(held) = &self.held else { return DatagramAction::Idle };
        let waiting = &held.packets()[held.entry.packets_done..];
        let packets_max = if self.probing || self.cut_short { 1 } else { packets_max.max(1) };
        let spans = &waiting[..waiting.len().min(packets_max)];
        self.asked = spans.len();
        DatagramAction::Send(Packets { bytes: &held.entry.block().bytes, spans })
    }

    /// The socket was created.
    pub fn on_opened(&mut self, _now: Now) {
        if matches!(self.phase, Phase::Opening { .. }) {
            self.phase = Phase::Open;
            self.account.connects.fetch_add(1, Relaxed);
            self.quiet_since_ns = None;
            self.cut_short = false;
            self.refusals = 0;
            self.paused_until_ns = 0;
            self.blocked_since_ns = None;
            self.blocked_until_ns = 0;
        }
    }

    /// The socket could not be created.
    pub fn on_open_failed(&mut self, now: Now) {
        self.on_no_address(Failure::ConnectFailed, now);
    }

    /// No address to send to, for this reason: the name does not resolve, or to one of our own listeners.
    pub fn on_no_address(&mut self, why: Failure, now: Now) {
        if matches!(self.phase, Phase::Opening { .. }) {
            self.close(why, now);
        }
    }

    /// True when an error may be pending in the socket that the next send would return too late or not at all: after
    /// a packet that was sent alone, and before sent packets count as delivered. Otherwise the next send returns the
    /// error, and reading it is a system call.
    pub fn needs_error_check(&self, now: Now) -> bool {
        let confirm_ns = if self.probing { PROBE_NS } else { CONFIRM_NS };
        self.unconfirmed_copies > 0
            && (self.asked == 1 || now.mono_ns >= self.sent_ns.saturating_add(confirm_ns))
    }

    /// The first `packets` packets of the last `Send` were sent.
    pub fn on_sent(&mut self, packets: usize, now: Now) {
        let Some(held) = &self.held else { return };
        let left = held.packets().len() - held.entry.packets_done;
        debug_assert!(packets <= left, "{packets} packets sent of {left}");
        let packets = packets.min(left);
        if packets == 0 {
            return;
        }
        // After a cut call, one more packet confirms nothing about the packets before it.
        if !self.cut_short {
            self.settle_confirmed();
        }
        let (copies, bytes) = self.advance(packets);
        self.unconfirmed_copies += copies;
        self.unconfirmed_bytes += bytes;
        self.after_cut = self.cut_short;
        self.cut_short = packets < self.asked;
        self.sent_ns = now.mono_ns;
        if self.probing {
            self.paused_until_ns = now.mono_ns.saturating_add(PROBE_NS);
        }
        self.quiet_since_ns.get_or_insert(now.mono_ns);
        self.refusals = 0;
        self.blocked_since_ns = None;
        self.blocked_until_ns = 0;
    }

    /// The packet at the front was not sent, or an error of an earlier one was pending.
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

    /// An error of one of several addresses while others accept packets: a rejection is charged, and sending goes on.
    /// The caller skips the address and sends the packet at the front to another one.
    pub fn on_address_error(&mut self, error: SendError) {
        if self.phase != Phase::Open {
            return;
        }
        self.cut_short = false;
        if error == SendError::Refused {
            self.charge_refusal();
        }
        self.account.errors.fetch_add(1, Relaxed);
    }

    /// The socket is writable again.
    pub fn on_writable(&mut self) {
        self.blocked_until_ns = 0;
    }

    /// From now on: send queued packets until `deadline_ns` (monotonic). When [`Self::stopped`] is true, call
    /// [`Self::finish_stop`].
    pub fn begin_stop(&mut self, deadline_ns: u64) {
        self.stop_ns = Some(deadline_ns);
    }

    /// True when the sender has stopped.
    pub fn stopped(&self) -> bool {
        self.phase == Phase::Stopped
    }

    /// Stops now. Unsent packets go back to the queue, which keeps them for the next run or drops them (`stopped`): see
    /// [`Queue::on_sender_stopped`].
    pub fn finish_stop(&mut self, queue: &mut impl Queue, now: Now) {
        self.settle_confirmed();
        if let Some(held) = self.held.take() {
            queue.put_back(held.entry);
        }
        queue.on_sender_stopped();
        self.stop(now);
    }

    /// When to poll next if nothing happens before.
    pub fn wake_ns(&self) -> Option<u64> {
        let phase_ns = match self.phase {
            Phase::Closed { retry_ns } => Some(retry_ns),
            Phase::Opening { deadline_ns } => Some(deadline_ns),
            Phase::Open if self.held.is_some() => Some(self.blocked_until_ns.max(self.paused_until_ns)),
            Phase::Open => None,
            Phase::Stopped => return None,
        };
        let confirm_ns = (self.unconfirmed_copies > 0).then(|| self.sent_ns.saturating_add(CONFIRM_NS));
        let not_up = self.health.state().status != Status::Up;
        let up_ns = self.quiet_since_ns.filter(|_| not_up).map(|ns| ns.saturating_add(CONFIRM_NS));
        let phase_ns = phase_ns.filter(|at_ns| *at_ns > 0);
        [phase_ns, confirm_ns, up_ns, self.stop_ns].into_iter().flatten().min()
    }

    /// Copies in the sender: being sent, or sent and not confirmed.
    pub fn waiting_copies(&self) -> u64 {
        self.unconfirmed_copies + self.held.as_ref().map_or(0, |held| held.entry.copies())
    }

    /// Memory in use by the sender.
    pub fn queued_bytes(&self) -> u64 {
        self.held.as_ref().map_or(0, |held| held.entry.memory_bytes())
    }

    /// When the block in the sender was created. It is older than anything in the queue.
    pub fn oldest_ns(&self) -> Option<u64> {
        self.held.as_ref().map(|held| held.entry.block().at_ns)
    }

    /// State of the endpoint.
    pub fn state(&self) -> EndpointState {
        self.health.state()
    }

    /// The next state change to log. Take and log them after each poll.
    pub fn take_state_change(&mut self) -> Option<StateChange> {
        self.health.take_state_change()
    }

    fn refused(&mut self, now: Now) {
        self.refusals += 1;
        self.quiet_since_ns = None;
        self.probing = true;
        self.paused_until_ns = now.mono_ns.saturating_add(self.backoff.fail());
        self.health.fail(Failure::Refused, now);
        if !self.charge_refusal() && self.refusals > REFUSALS_MAX {
            self.settle_front(CopyOutcome::RejectedByPeer(RejectedByPeer::ByPeer));
            self.refusals = 0;
        }
    }

    /// Charges a rejection to the last packets sent. False when all of those are confirmed.
    fn charge_refusal(&mut self) -> bool {
        // The system does not report which packet it was: assume one of average size.
        let Some(bytes_each) = self.unconfirmed_bytes.checked_div(self.unconfirmed_copies) else {
            return false;
        };
        let packets = if std::mem::take(&mut self.after_cut) { 2 } else { 1 };
        let (copies, bytes) =
            (packets.min(self.unconfirmed_copies), packets.min(self.unconfirmed_copies) * bytes_each);
        self.unconfirmed_copies -= copies;
        self.unconfirmed_bytes -= bytes;
        self.account.settle(CopyOutcome::RejectedByPeer(RejectedByPeer::ByPeer), copies, bytes);
        true
    }

    fn blocked(&mut self, now: Now) {
        self.blocked_until_ns = now.mono_ns.saturating_add(BLOCKED_PAUSE_NS);
        let since_ns = *self.blocked_since_ns.get_or_insert(now.mono_ns);
        let timeout_ns = self.plan.write_timeout_ms.saturating_mul(MS_NS);
        if now.mono_ns.saturating_sub(since_ns) >= timeout_ns && self.health.state().status != Status::Down {
            self.account.errors.fetch_add(1, Relaxed);
            self.quiet_since_ns = None;
            self.health.fail(Failure::Blocked, now);
        }
    }

    /// Confirms sent packets, and the endpoint as up, after enough time without a rejection.
    fn prove(&mut self, now: Now) {
        let probed = self.probing && self.unconfirmed_copies > 0;
        if probed && now.mono_ns >= self.sent_ns.saturating_add(PROBE_NS) {
            self.probing = false;
        }
        if self.unconfirmed_copies > 0 && now.mono_ns >= self.sent_ns.saturating_add(CONFIRM_NS) {
            self.settle_confirmed();
        }
        if self.quiet_since_ns.is_some_and(|since_ns| now.mono_ns >= since_ns.saturating_add(CONFIRM_NS)) {
            self.backoff.reset();
            self.health.succeed(self.backlog_copies, now);
        }
    }

    fn settle_confirmed(&mut self) {
        self.account.settle(CopyOutcome::Delivered, self.unconfirmed_copies, self.unconfirmed_bytes);
        self.unconfirmed_copies = 0;
        self.unconfirmed_bytes = 0;
    }

    /// Settles the packet at the front.
    fn settle_front(&mut self, outcome: CopyOutcome) {
        if self.held.is_some() {
            let (copies, bytes) = self.advance(1);
            self.account.settle(outcome, copies, bytes);
        }
    }

    /// Advances by `packets` packets, whose copies the caller settles.
    fn advance(&mut self, packets: usize) -> (u64, u64) {
        let Some(held) = &mut self.held else { return (0, 0) };
        let (copies, bytes) = held.copies_in(packets);
        held.entry.hand_over(copies, bytes);
        held.entry.packets_done += packets;
        if held.entry.packets_done >= held.packets().len() {
            self.held = None;
        }
        (u64::from(copies), bytes)
    }

    /// Drops the block in the sender when it is too old, as the queue does with queued blocks.
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
        self.settle_confirmed();
        self.quiet_since_ns = None;
        self.health.fail(failure, now);
        self.phase = Phase::Closed { retry_ns: now.mono_ns.saturating_add(self.backoff.fail()) };
    }

    fn stop(&mut self, now: Now) {
        self.settle_confirmed();
        self.phase = Phase::Stopped;
        self.health.stop(now);
    }

    fn wait(&self) -> DatagramAction<'static> {
        self.wake_ns().map_or(DatagramAction::Idle, DatagramAction::WaitUntil)
    }
}
