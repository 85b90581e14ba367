//! The sender of one stream connection (TCP or unix): what to write next, and when records count as delivered.
//!
//! Path of a packet: `queue::pop` -> **`StreamSender::poll`** returns `Write` -> the binary writes -> `on_written`
//! -> `on_acked` -> settled as delivered.
//!
//! How the binary uses it: call `poll` and perform the action; report each result by the `on_…` method of that name.
//! Poll again after each report, when the queue got a block, and at [`StreamSender::wake_ns`]. While
//! [`StreamSender::in_flight_bytes`] is above 0, read the unacknowledged bytes from the kernel before each poll
//! (SIOCOUTQ) and report them by `on_acked`; for TCP also once more when the connection has ended in an error. Read
//! that figure only after all writes so far have been reported. On a unix socket it drops to 0 when the peer closes,
//! whether or not the peer has read the data: check after reading it that the peer was still connected, or do not
//! report it (`sys::unread` in the binary).
//!
//! Written blocks are kept until the peer's kernel has acknowledged them. When the connection ends, everything from
//! the first unacknowledged line or frame on goes back to the front of the queue. A line may so arrive twice, but
//! none is lost or cut, and the order is kept. The sender reconnects when there is something to send, after a pause
//! that doubles with each failure.
//!
//! On a compressed or encrypted connection, written means accepted by the compressor or TLS session, and [`Marks`]
//! translate the kernel's figure.
//!
//! Limit: bytes that the peer's kernel has acknowledged and its process never read are lost when that process dies, and
//! count as delivered. A protocol without replies cannot detect this. One exception: after a connection that the peer
//! closed at once, nothing is settled on the next one until it has lasted longer.
//!
//! Not here: sockets, name resolution, TLS, the queue's limits.
//! Invariant: the account is balanced with `queue.copies() + sender.waiting_copies()` between any two calls.

mod marks;
#[cfg(test)]
mod model_test;
#[cfg(test)]
mod outage_test;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use model::{CopyOutcome, Now, OutputAccount, SECOND_NS};

pub use self::marks::{MARKS_MAX, Marks};
use crate::endpoint::{EndpointState, Failure, Health, StateChange, Status};
use crate::pause::{Backoff, MS_NS, after_ms, earliest};
use crate::plan::SenderPlan;
use crate::queue::{Entry, Queue};

/// Most bytes (memory of their blocks) that are not acknowledged. A sender also stays below half of its queue's limit; a
/// single block may always be in flight.
pub const IN_FLIGHT_BYTES_MAX: u64 = 4 << 20;

/// A connection that lasted so long and then closed resets the backoff.
const STABLE_NS: u64 = 5 * SECOND_NS;

/// After a failure that the peer's kernel hides (see [`is_hidden_by_kernel`]), the endpoint counts as up again when bytes are
/// acknowledged so long after connecting.
const UP_AFTER_NS: u64 = SECOND_NS;

/// A connection that the peer ends within this time after its first bytes was closed at once. The endpoint counts as up
/// again when a connection lasts longer.
const AT_ONCE_NS: u64 = SECOND_NS;

/// So many consecutive connections closed at once are a failure: one or two may be a restart of the endpoint.
const CLOSED_AT_ONCE_MAX: u32 = 3;

/// Pauses between two checks of acknowledged bytes: short after progress, then doubling.
const ACK_PAUSE_MIN_NS: u64 = SECOND_NS / 100;
const ACK_PAUSE_MAX_NS: u64 = SECOND_NS / 2;

/// The next action for the binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<'a> {
    /// Connect; report by `on_connected` or `on_connect_failed`. Keep polling meanwhile.
    Connect,
    /// Write as much of this as the socket accepts now; report by `on_written`.
    Write(&'a [u8]),
    /// Drop the connection, or the attempt to connect. For the sender it is closed already.
    Close(CloseReason),
    /// Nothing to do before this time (monotonic nanoseconds), unless something happens.
    WaitUntil(u64),
    /// Nothing to do until something happens.
    Idle,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CloseReason {
    /// The peer closed it (EOF).
    Peer,
    /// It was reset, or reading or writing failed.
    Broken,
    /// It was not established in time.
    ConnectTimeout,
    /// The peer acknowledged nothing in time.
    WriteTimeout,
    /// TLS failed: the peer rejected our certificate, or sent bytes that are not TLS.
    TlsFailed,
    /// The peer answered plain lines with a TLS alert: it understood none of them.
    TlsWanted,
    /// The sender stops.
    Stopped,
}

/// With such a failure, the endpoint still accepts connections, and its kernel acknowledges the first bytes of each even
/// if no process reads them.
fn is_hidden_by_kernel(failure: Failure) -> bool {
    failure == Failure::WriteTimeout || ends_connections(failure)
}

/// With such a failure, the endpoint accepts a connection, perhaps all queued bytes, and then closes it: only a
/// connection that lasts shows that it is up.
fn ends_connections(failure: Failure) -> bool {
    matches!(failure, Failure::TlsWanted | Failure::TlsFailed | Failure::ClosesAtOnce)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Not connected; may connect from `retry_ns` on.
    Down { retry_ns: u64 },
    /// An attempt runs.
    Connecting { deadline_ns: u64 },
    /// Connected since `since_ns`.
    Up { since_ns: u64 },
    /// The sender has ended.
    Stopped,
}

/// A block in flight.
#[derive(Debug)]
struct Held {
    entry: Entry,
    /// Offset of the block's first byte in the bytes of this connection. Negative for a block whose front was settled
    /// on an earlier connection.
    starts_at: i64,
    /// Bytes from the block's front that are settled or were written to this connection.
    written: usize,
}

impl Held {
    /// Copies of which something was written and not all is acknowledged.
    fn in_doubt(&self) -> u64 {
        let block = self.entry.block();
        let boundary = block.boundary_before(self.entry.settled, self.written);
        let whole = block.copies_between(self.entry.settled, boundary).0;
        let begun = if boundary < self.written {
            block.copies_between(boundary, block.boundary_after(boundary)).0
        } else {
            0
        };
        u64::from(whole + begun)
    }
}

/// See the module's header.
#[derive(Debug)]
pub struct StreamSender {
    plan: SenderPlan,
    account: Arc<OutputAccount>,
    acks: bool,
    backoff: Backoff,
    health: Health,
    phase: Phase,
    /// Oldest first. Only the last one has unwritten bytes.
    held: VecDeque<Held>,
    held_bytes: u64,
    held_copies: u64,
    /// The endpoint was reached, and the TLS handshake is not finished.
    in_handshake: bool,
    /// When the first bytes of this connection were written.
    first_bytes_ns: Option<u64>,
    /// Consecutive connections that the peer closed at once.
    closed_at_once: u32,
    /// Bytes written to this connection.
    written: u64,
    acked: u64,
    /// Bytes of it whose copies are settled: all acknowledged ones, except while [`Self::on_probation`].
    settled: u64,
    /// When the peer last acknowledged something, or when the first bytes came in flight.
    progress_ns: u64,
    ack_pause_ns: u64,
    ack_check_ns: u64,
    /// Copies queued when connecting began.
    backlog_copies: u64,
    /// Connect although nothing is queued: at start, to detect early whether the endpoint is up.
    eager: bool,
    /// Connect although nothing is queued while the endpoint is down: its records go to other members meanwhile.
    probes: bool,
    stop_ns: Option<u64>,
    /// Another sender continues with the queue: take nothing more out of it.
    draining: bool,
}

impl StreamSender {
    /// A sender that has not connected yet. The seed decides only the jitter of its pauses.
    pub fn new(plan: SenderPlan, account: Arc<OutputAccount>, seed: u64) -> StreamSender {
        StreamSender {
            plan,
            account,
            acks: true,
            backoff: Backoff::new(plan.retry_min_ms, plan.retry_max_ms, seed),
            health: Health::new(),
            phase: Phase::Down { retry_ns: 0 },
            held: VecDeque::new(),
            held_bytes: 0,
            held_copies: 0,
            in_handshake: false,
            first_bytes_ns: None,
            closed_at_once: 0,
            written: 0,
            acked: 0,
            settled: 0,
            progress_ns: 0,
            ack_pause_ns: ACK_PAUSE_MIN_NS,
            ack_check_ns: 0,
            backlog_copies: 0,
            eager: true,
            probes: false,
            stop_ns: None,
            draining: false,
        }
    }

    /// For systems that do not report unacknowledged bytes: written bytes count as delivered.
    #[must_use]
    pub fn without_acks(mut self) -> StreamSender {
        self.acks = false;
        self
    }

    /// Whether it keeps trying to connect to an endpoint that is down when nothing is queued for it, as during a
    /// failover.
    pub fn probe(&mut self, probes: bool) {
        self.probes = probes;
    }

    /// Sets other pauses and timeouts, after a reload.
    pub fn set_plan(&mut self, plan: SenderPlan) {
        self.plan = plan;
        self.backoff.set_bounds(plan.retry_min_ms, plan.retry_max_ms);
    }

    /// The next action. `queue` must be the same at each call.
    pub fn poll(&mut self, queue: &mut impl Queue, now: Now) -> Action<'_> {
        queue.expire(now);
        match self.phase {
            Phase::Down { retry_ns } => self.poll_down(retry_ns, queue, now),
            Phase::Connecting { deadline_ns } => self.poll_connecting(deadline_ns, queue, now),
            Phase::Up { .. } => self.poll_up(queue, now),
            Phase::Stopped => Action::Idle,
        }
    }

    fn poll_down(&mut self, retry_ns: u64, queue: &mut impl Queue, now: Now) -> Action<'static> {
        self.requeue(queue);
        queue.expire(now);
        let nothing_queued = queue.is_empty() || self.draining;
        if let Some(stop_ns) = self.stop_ns
            && (nothing_queued || now.mono_ns >= stop_ns)
        {
            self.phase = Phase::Stopped;
            self.health.stop(now);
            return Action::Idle;
        }
        let probes = self.probes && self.health.state().status == Status::Down;
        if nothing_queued && !self.eager && !probes {
            return Action::Idle;
        }
        if now.mono_ns < retry_ns {
            return Action::WaitUntil(earliest(retry_ns, [self.stop_ns, queue.expires_ns()]));
        }
        let deadline_ns = after_ms(now, self.plan.connect_timeout_ms);
        self.phase = Phase::Connecting { deadline_ns };
        self.in_handshake = false;
        self.backlog_copies = queue.copies();
        Action::Connect
    }

    fn poll_connecting(&mut self, deadline_ns: u64, queue: &mut impl Queue, now: Now) -> Action<'static> {
        if self.draining || self.stop_ns.is_some_and(|stop_ns| now.mono_ns >= stop_ns) {
            return self.close_stopped(now);
        }
        if now.mono_ns >= deadline_ns {
            let failure = if self.in_handshake { Failure::TlsFailed } else { Failure::ConnectTimeout };
            self.failed(failure, now);
            return Action::Close(CloseReason::ConnectTimeout);
        }
        Action::WaitUntil(earliest(deadline_ns, [self.stop_ns, queue.expires_ns()]))
    }

    fn poll_up(&mut self, queue: &mut impl Queue, now: Now) -> Action<'_> {
        if self.settled < self.acked && !self.on_probation(now) {
            self.settle_arrived();
        }
        let all_sent = self.held.is_empty() && queue.is_empty();
        if all_sent && self.lasts_from_ns().is_none_or(|lasts_ns| now.mono_ns >= lasts_ns) {
            // No records left to prove the endpoint up: the established connection counts instead.
            self.health.succeed(self.backlog_copies, now);
        }
        let is_done = all_sent || self.draining && self.held.is_empty();
        if self.stop_ns.is_some_and(|stop_ns| is_done || now.mono_ns >= stop_ns) {
            return self.close_stopped(now);
        }
        if !self.held.is_empty() && now.mono_ns >= self.timeout_ns() {
            self.connection_lost(CloseReason::WriteTimeout, now);
            return Action::Close(CloseReason::WriteTimeout);
        }
        if now.mono_ns >= self.ack_check_ns {
            // The caller did not report acknowledged bytes: still do not spin.
            self.ack_check_ns = now.mono_ns + self.ack_pause_ns;
        }
        if self.unwritten().is_empty() && !self.draining {
            self.take_next(queue, now);
        }
        if self.unwritten().is_empty() {
            return self.wake_ns().map_or(Action::Idle, Action::WaitUntil);
        }
        Action::Write(self.unwritten())
    }

    /// The connection is established.
    pub fn on_connected(&mut self, now: Now) {
        if !matches!(self.phase, Phase::Connecting { .. }) {
            return;
        }
        self.phase = Phase::Up { since_ns: now.mono_ns };
        self.account.connects.fetch_add(1, Relaxed);
        self.eager = false;
        self.first_bytes_ns = None;
        self.written = 0;
        self.acked = 0;
        self.settled = 0;
        self.progress_ns = now.mono_ns;
        self.ack_pause_ns = ACK_PAUSE_MIN_NS;
        debug_assert!(self.held.is_empty(), "blocks in flight went back to the queue before connecting");
    }

    /// The TCP connection is established; the TLS handshake begins.
    pub fn on_handshake_begun(&mut self) {
        self.in_handshake = true;
    }

    /// Connecting failed.
    pub fn on_connect_failed(&mut self, now: Now) {
        self.on_attempt_failed(Failure::ConnectFailed, now);
    }

    /// Connecting failed for this reason: the name does not resolve, or to one of our own listeners, or TLS is unusable.
    pub fn on_attempt_failed(&mut self, why: Failure, now: Now) {
        if matches!(self.phase, Phase::Connecting { .. }) {
            self.failed(why, now);
        }
    }

    /// The socket accepted the first `bytes` bytes of the last `Write`.
    pub fn on_written(&mut self, bytes: usize, now: Now) {
        let Some(last) = self.held.back_mut() else { return };
        let left = last.entry.block().bytes.len() - last.written;
        debug_assert!(bytes <= left, "the socket took {bytes} of {left} bytes");
        let bytes = bytes.min(left);
        if bytes == 0 || !matches!(self.phase, Phase::Up { .. }) {
            return;
        }
        let written = last.written + bytes;
        let twice_up_to = written.min(last.entry.written_before);
        let (twice, _) = last.entry.block().copies_between(last.written, twice_up_to);
        self.account.resent.fetch_add(u64::from(twice), Relaxed);
        last.written = written;
        self.first_bytes_ns.get_or_insert(now.mono_ns);
        if self.written == self.acked {
            self.progress_ns = now.mono_ns;
            self.ack_pause_ns = ACK_PAUSE_MIN_NS;
            self.ack_check_ns = now.mono_ns + ACK_PAUSE_MIN_NS;
        }
        self.written += bytes as u64;
        if !self.acks {
            self.arrived(self.written, now);
        }
    }

    /// The kernel holds `unacked` bytes of this connection that the peer's kernel has not acknowledged. Whole lines
    /// and frames before them are settled as delivered.
    pub fn on_acked(&mut self, unacked: u64, now: Now) {
        if !self.acks || !matches!(self.phase, Phase::Up { .. }) {
            return;
        }
        let acked = self.written.saturating_sub(unacked);
        if acked > self.acked {
            self.arrived(acked, now);
            self.ack_pause_ns = ACK_PAUSE_MIN_NS;
        } else if now.mono_ns >= self.ack_check_ns {
            self.ack_pause_ns = (2 * self.ack_pause_ns).min(ACK_PAUSE_MAX_NS);
        }
        self.ack_check_ns = now.mono_ns + self.ack_pause_ns;
    }

    /// The connection ended. Does nothing when the sender knows already.
    pub fn on_closed(&mut self, why: CloseReason, now: Now) {
        match self.phase {
            Phase::Up { .. } => self.connection_lost(why, now),
            Phase::Connecting { .. } => self.failed(Failure::ConnectFailed, now),
            Phase::Down { .. } | Phase::Stopped => {}
        }
    }

    /// From now on: send queued records until `deadline_ns` (monotonic), then close. When [`Self::stopped`] is true,
    /// call [`Self::finish_stop`]. Nothing should be appended to the queue any more.
    pub fn begin_stop(&mut self, deadline_ns: u64) {
        self.stop_ns = Some(deadline_ns);
    }

    /// From now on: take nothing more from the queue, with which another sender continues; close when all blocks in
    /// flight are acknowledged, or at `deadline_ns` (monotonic). Otherwise as [`Self::begin_stop`].
    pub fn begin_drain(&mut self, deadline_ns: u64) {
        self.draining = true;
        self.stop_ns = Some(deadline_ns);
    }

    /// True when the sender has stopped.
    pub fn stopped(&self) -> bool {
        self.phase == Phase::Stopped
    }

    /// Stops now. Queued and unacknowledged records go back to the queue, which keeps them for the next run or drops
    /// them (`stopped`): see [`Queue::on_sender_stopped`].
    pub fn finish_stop(&mut self, queue: &mut impl Queue, now: Now) {
        self.requeue(queue);
        queue.on_sender_stopped();
        self.phase = Phase::Stopped;
        self.health.stop(now);
    }

    /// When to poll next if nothing happens before; also while a `Write` waits for the socket.
    pub fn wake_ns(&self) -> Option<u64> {
        match self.phase {
            Phase::Down { retry_ns } => Some(earliest(retry_ns, [self.stop_ns])),
            Phase::Connecting { deadline_ns } => Some(earliest(deadline_ns, [self.stop_ns])),
            Phase::Up { .. } if self.held.is_empty() => {
                [self.lasts_from_ns(), self.stop_ns].into_iter().flatten().min()
            }
            Phase::Up { .. } => {
                let check_ns = (self.acks && self.in_flight_bytes() > 0).then_some(self.ack_check_ns);
                let trial_ns = self.probation_ends_ns().filter(|_| self.settled < self.acked);
                Some(earliest(self.timeout_ns(), [check_ns, self.stop_ns, trial_ns]))
            }
            Phase::Stopped => None,
        }
    }

    /// Bytes written to this connection and not acknowledged. While above 0, check for acknowledgements.
    pub fn in_flight_bytes(&self) -> u64 {
        if matches!(self.phase, Phase::Up { .. }) { self.written - self.acked } else { 0 }
    }

    /// Copies in the sender: in flight, or written in part.
    pub fn waiting_copies(&self) -> u64 {
        self.held_copies
    }

    /// Memory in use by the sender.
    pub fn queued_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// When the oldest block in the sender was created. It is older than anything in the queue.
    pub fn oldest_ns(&self) -> Option<u64> {
        self.held.front().map(|held| held.entry.block().at_ns)
    }

    /// State of the endpoint.
    pub fn state(&self) -> EndpointState {
        self.health.state()
    }

    /// The next state change to log. Take and log them after each poll.
    pub fn take_state_change(&mut self) -> Option<StateChange> {
        self.health.take_state_change()
    }

    /// The unwritten bytes of the last block.
    fn unwritten(&self) -> &[u8] {
        match self.held.back() {
            Some(held) => &held.entry.block().bytes[held.written..],
            None => &[],
        }
    }

    /// Takes the next block that has bytes, if the in-flight limit allows it.
    fn take_next(&mut self, queue: &mut impl Queue, now: Now) {
        if self.on_probation(now) && !self.held.is_empty() {
            // One block at a time, sent again if the connection is reset: a peer that reads a little of each makes
            // progress.
            return;
        }
        let bytes_max = IN_FLIGHT_BYTES_MAX.min(queue.limits().bytes_max / 2);
        while let Some(next_bytes) = queue.front_bytes() {
            if self.held_bytes > 0 && self.held_bytes.saturating_add(next_bytes) > bytes_max {
                return;
            }
            let Some(entry) = queue.pop(now) else { return };
            if entry.settled >= entry.block().bytes.len() {
                entry.settle(CopyOutcome::Delivered);
                continue;
            }
            if self.held.is_empty() {
                self.progress_ns = now.mono_ns;
            }
            self.held_bytes += entry.memory_bytes();
            self.held_copies += entry.copies();
            let written = entry.settled;
            self.held.push_back(Held { starts_at: self.written as i64 - written as i64, written, entry });
            return;
        }
    }

    /// The peer has acknowledged the first `acked` bytes of this connection.
    fn arrived(&mut self, acked: u64, now: Now) {
        debug_assert!(
            acked > self.acked && acked <= self.written,
            "{} < {acked} <= {}",
            self.acked,
            self.written
        );
        self.acked = acked;
        self.progress_ns = now.mono_ns;
        if self.proves_up(now) {
            self.health.succeed(self.backlog_copies, now);
        }
        if !self.on_probation(now) {
            self.settle_arrived();
        }
    }

    /// When this connection, made after one that the peer closed at once, has lasted longer than that. Until then
    /// nothing of it is settled: a peer that resets it has not read the bytes that its kernel acknowledged.
    fn probation_ends_ns(&self) -> Option<u64> {
        let Phase::Up { since_ns } = self.phase else { return None };
        (self.closed_at_once > 0).then(|| self.begun_ns(since_ns).saturating_add(AT_ONCE_NS))
    }

    fn on_probation(&self, now: Now) -> bool {
        self.probation_ends_ns().is_some_and(|ends_ns| now.mono_ns < ends_ns)
    }

    /// Settles whole acknowledged copies as delivered.
    fn settle_arrived(&mut self) {
        self.settled = self.acked;
        while let Some(front) = self.held.front_mut() {
            let len = front.entry.block().bytes.len();
            let arrived = usize::try_from(self.acked as i64 - front.starts_at).unwrap_or(0).min(len);
            debug_assert!(arrived <= front.written, "only written bytes can be acknowledged");
            if arrived <= front.entry.settled {
                return;
            }
            self.held_copies -= u64::from(front.entry.delivered_up_to(arrived));
            if arrived < len {
                return;
            }
            self.held_bytes -= front.entry.memory_bytes();
            self.held.pop_front();
        }
    }

    /// Whether the acknowledged bytes show that the endpoint is up.
    fn proves_up(&self, now: Now) -> bool {
        if let Some(lasts_ns) = self.lasts_from_ns() {
            return now.mono_ns >= lasts_ns;
        }
        let EndpointState { status, last_failure, .. } = self.health.state();
        let hung =
            status == Status::Down && last_failure.is_some_and(|(failure, _)| is_hidden_by_kernel(failure));
        let since = |since_ns| now.mono_ns.saturating_sub(since_ns) >= UP_AFTER_NS;
        !hung || matches!(self.phase, Phase::Up { since_ns } if since(since_ns))
    }

    /// When this connection has lasted longer than those that the endpoint closed. None unless the endpoint is down
    /// for that reason.
    fn lasts_from_ns(&self) -> Option<u64> {
        let Phase::Up { since_ns } = self.phase else { return None };
        let EndpointState { status, last_failure, .. } = self.health.state();
        let ended = last_failure.is_some_and(|(failure, _)| ends_connections(failure));
        (status == Status::Down && ended).then(|| self.begun_ns(since_ns).saturating_add(AT_ONCE_NS))
    }

    /// When this connection got its first bytes; without any, when it was made.
    fn begun_ns(&self, since_ns: u64) -> u64 {
        self.first_bytes_ns.unwrap_or(since_ns)
    }

    /// Notes that the peer has ended the connection. True when it has closed too many in a row at once.
    fn is_closed_at_once_again(&mut self, since_ns: u64, now: Now) -> bool {
        let at_once = now.mono_ns.saturating_sub(self.begun_ns(since_ns)) < AT_ONCE_NS;
        if at_once {
            self.closed_at_once = self.closed_at_once.saturating_add(1);
        } else if self.first_bytes_ns.is_some() {
            // A connection that was left open and got no bytes shows nothing.
            self.closed_at_once = 0;
        }
        at_once && self.closed_at_once >= CLOSED_AT_ONCE_MAX
    }

    /// The connection ended: notes what may have to be sent a second time.
    fn connection_lost(&mut self, why: CloseReason, now: Now) {
        let Phase::Up { since_ns } = self.phase else { return };
        if why == CloseReason::Peer || !self.on_probation(now) {
            // EOF: a peer with unread data would have reset the connection, unless it half-closed first.
            self.settle_arrived();
        }
        let failure = match why {
            CloseReason::Peer | CloseReason::Broken if self.is_closed_at_once_again(since_ns, now) => {
                Failure::ClosesAtOnce
            }
            CloseReason::Peer => Failure::ClosedByPeer,
            CloseReason::Broken | CloseReason::Stopped => Failure::Broken,
            CloseReason::ConnectTimeout => Failure::ConnectTimeout,
            CloseReason::WriteTimeout => Failure::WriteTimeout,
            CloseReason::TlsFailed => Failure::TlsFailed,
            CloseReason::TlsWanted => Failure::TlsWanted,
        };
        // A peer that accepts connections and reads nothing must not be retried at the shortest pause.
        if now.mono_ns.saturating_sub(since_ns) >= STABLE_NS && !is_hidden_by_kernel(failure) {
            self.backoff.reset();
        }
        self.count_in_doubt();
        if self.held.is_empty() && !is_hidden_by_kernel(failure) {
            self.health.idle(now);
            self.phase = Phase::Down { retry_ns: now.mono_ns.saturating_add(self.backoff.fail()) };
        } else {
            self.failed(failure, now);
        }
        self.written = 0;
        self.acked = 0;
        self.settled = 0;
    }

    /// Written and unacknowledged bytes may be sent a second time, by this sender or the next one.
    fn count_in_doubt(&mut self) {
        let doubt = self.held.iter().map(Held::in_doubt).sum();
        self.account.in_doubt.fetch_add(doubt, Relaxed);
        self.account.in_doubt_bytes.fetch_add(self.written - self.settled, Relaxed);
        for held in &mut self.held {
            held.entry.written_before = held.entry.written_before.max(held.written);
        }
    }

    fn failed(&mut self, failure: Failure, now: Now) {
        self.account.errors.fetch_add(1, Relaxed);
        self.health.fail(failure, now);
        self.phase = Phase::Down { retry_ns: now.mono_ns.saturating_add(self.backoff.fail()) };
    }

    /// Puts blocks in flight back into the queue, oldest in front. Their settled parts stay settled.
    fn requeue(&mut self, queue: &mut impl Queue) {
        while let Some(held) = self.held.pop_back() {
            queue.put_back(held.entry);
        }
        self.held_bytes = 0;
        self.held_copies = 0;
    }

    fn close_stopped(&mut self, now: Now) -> Action<'static> {
        self.count_in_doubt();
        self.phase = Phase::Stopped;
        self.health.stop(now);
        Action::Close(CloseReason::Stopped)
    }

    fn timeout_ns(&self) -> u64 {
        let since_ns = self.progress_ns.max(self.probation_ends_ns().unwrap_or(0));
        since_ns.saturating_add(self.plan.write_timeout_ms.saturating_mul(MS_NS))
    }
}
