//! Admission of connections: a limit on all connections of a listener, and a lower one per peer, so that no peer can
//! use all of them.
//!
//! A listener calls [`Admission::admit`]; the [`ConnectionSlot`] in the result lives as long as the connection. With
//! [`Admission::admit_or_replace`], an idle connection (its client neither sends nor reads) is replaced by a new one
//! when no slot is free: the one that has been idle the longest, of the peer with the most connections. Without an idle
//! one, the oldest connection of the peer with the most is replaced if that peer has at least two more than the new
//! connection's peer, so that a few busy peers cannot exclude others. Connections of sources, whose clients may be
//! silent between two flushes, are replaced only after a long silence ([`Admission::admit_or_replace_silent`]).
//! Not here: the limits (`config`), counters and their names (the listeners).
//! Invariant: a slot counts from `admit` until it is dropped or was asked to leave.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use model::{PeerKey, SECOND_NS};
use tokio::sync::Notify;

/// A connection that has been idle for less is replaced only by its own peer: its first request may be on its way.
const SETTLED_NS: u64 = SECOND_NS;

/// After a search among the connections of a source found no idle one, a new connection does not search again for this
/// long: the search would cost more than accepting the connection.
const LOOK_AGAIN_NS: u64 = SECOND_NS / 10;

/// Least interval between two log lines about rejections.
const LOG_EVERY_NS: u64 = 60 * SECOND_NS;

/// The key of an address; `Local` for a client of a unix socket.
pub fn peer_key(address: Option<IpAddr>) -> PeerKey {
    match address.map(|address| address.to_canonical()) {
        Some(IpAddr::V4(address)) => PeerKey::V4(address.to_bits()),
        Some(IpAddr::V6(address)) => PeerKey::V6((address.to_bits() >> 64) as u64),
        None => PeerKey::Local,
    }
}

/// Most connections at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of all peers.
    pub all: usize,
    /// Of one peer.
    pub per_peer: usize,
}

/// Which limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The limit of all connections.
    All,
    /// The limit of this peer.
    PerPeer,
}

/// Why a connection must leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// It was idle, and its slot is needed.
    Replaced,
    /// It was active, its peer has the most connections, and a peer with fewer needs a slot.
    Preempted,
}

/// The slots of one listener.
#[derive(Debug, Default)]
pub struct Admission {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next_id: u64,
    slots: BTreeMap<u64, (PeerKey, Arc<Waiting>)>,
    of_peer: BTreeMap<PeerKey, usize>,
    /// When a search found no connection that was silent for long, for a peer with this many connections.
    found_none: Option<(u64, usize)>,
}

#[derive(Debug)]
struct Waiting {
    /// Since when its connection is idle, in monotonic nanoseconds; `u64::MAX` while it is active.
    since_ns: AtomicU64,
    leave: OnceLock<Leave>,
    asked: Notify,
}

/// One slot, which is free again when this is dropped.
#[derive(Debug)]
pub struct ConnectionSlot {
    id: u64,
    waiting: Arc<Waiting>,
    admission: Arc<Admission>,
}

impl Admission {
    /// A slot for a connection of `peer`, if one is free.
    ///
    /// # Errors
    /// The limit that is reached.
    pub fn admit(self: &Arc<Admission>, peer: PeerKey, limits: Limits) -> Result<ConnectionSlot, Full> {
        let mut state = self.lock();
        match state.full(peer, limits) {
            None => Ok(state.slot(peer, self)),
            Some(full) => Err(full),
        }
    }

    /// The same, but without a free slot a connection is asked to leave. At the peer's own limit: one of the peer that
    /// has been idle for `stalled_ns`, the one idle the longest. Otherwise: one that has been idle for a second, of the
    /// peers with more connections (for its own peer, `stalled_ns`). Otherwise: one of the peer with the most
    /// connections, active or not, if that peer still has more than this one then. The cost grows with the number of
    /// open connections.
    ///
    /// # Errors
    /// The limit that is reached, when no connection can be asked.
    pub fn admit_or_replace(
        self: &Arc<Admission>,
        peer: PeerKey,
        limits: Limits,
        now_ns: u64,
        stalled_ns: u64,
    ) -> Result<ConnectionSlot, Full> {
        let mut state = self.lock();
        // A reload may have lowered the limits: then one slot is not enough.
        while let Some(full) = state.full(peer, limits) {
            let has = state.of(peer);
            let is_own = |of: PeerKey, waited: Option<u64>| of == peer && waited >= Some(stalled_ns);
            let leaves = match full {
                Full::PerPeer => state.ask_to_leave(now_ns, |of, _has, waited| is_own(of, waited)),
                Full::All => {
                    let settled = Some(stalled_ns.max(SETTLED_NS));
                    state
                        .ask_to_leave(now_ns, |of, others, waited| {
                            is_own(of, waited) || (others > has && waited >= settled)
                        })
                        .or_else(|| state.ask_to_leave(now_ns, |_of, others, _waited| others >= has + 2))
                }
            };
            if leaves.is_none() {
                return Err(full);
            }
        }
        Ok(state.slot(peer, self))
    }

    /// The same for connections whose clients may be silent for some time. Without a free slot, a connection is asked
    /// to leave that has been silent for `silent_ns`: the one silent the longest, of the peer with the most
    /// connections, if that peer has at least two more than this one. Returns that peer and its number of connections.
    ///
    /// # Errors
    /// The limit that is reached, when no connection is asked.
    pub fn admit_or_replace_silent(
        self: &Arc<Admission>,
        peer: PeerKey,
        limits: Limits,
        now_ns: u64,
        silent_ns: u64,
    ) -> Result<(ConnectionSlot, Option<(PeerKey, usize)>), Full> {
        let mut state = self.lock();
        match state.full(peer, limits) {
            None => return Ok((state.slot(peer, self), None)),
            Some(Full::PerPeer) => return Err(Full::PerPeer),
            Some(Full::All) => {}
        }
        let has = state.of(peer);
        let is_known = |(at_ns, of): (u64, usize)| has >= of && now_ns.saturating_sub(at_ns) < LOOK_AGAIN_NS;
        if state.found_none.is_some_and(is_known) {
            return Err(Full::All);
        }
        // One for one: after a reload with a lower limit, connections above it stay.
        let leaves =
            state.ask_to_leave(now_ns, |_of, others, waited| others >= has + 2 && waited >= Some(silent_ns));
        if leaves.is_none() {
            state.found_none = Some((now_ns, has));
            return Err(Full::All);
        }
        Ok((state.slot(peer, self), leaves))
    }

    /// Asks the connection to leave that has been idle the longest, of the peer with the most, because the process
    /// lacks a resource for the next connection. False when all are active.
    pub fn make_room(&self, now_ns: u64) -> bool {
        self.lock().ask_to_leave(now_ns, |_of, _has, waited| waited.is_some()).is_some()
    }

    /// A slot for an existing connection, which another process has accepted.
    pub fn admit_anyway(self: &Arc<Admission>, peer: PeerKey) -> ConnectionSlot {
        self.lock().slot(peer, self)
    }

    /// Number of slots in use.
    pub fn open(&self) -> usize {
        self.lock().slots.len()
    }

    /// The peer with the most connections and their number, for the end of a log line; empty when all belong to one
    /// unix socket.
    pub fn most_as_text(&self) -> String {
        let state = self.lock();
        let most = state.of_peer.iter().max_by_key(|(_, count)| **count);
        let most = most.filter(|(peer, _)| **peer != PeerKey::Local);
        most.map_or_else(String::new, |(peer, count)| format!("; {peer} has most, {count}"))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn full(&self, peer: PeerKey, limits: Limits) -> Option<Full> {
        let full = peer != PeerKey::Local && self.of(peer) >= limits.per_peer;
        match (self.slots.len() >= limits.all, full) {
            // With both, the slot must come from its own connections.
            (_, true) if limits.per_peer < limits.all => Some(Full::PerPeer),
            (true, _) => Some(Full::All),
            (false, true) => Some(Full::PerPeer),
            (false, false) => None,
        }
    }

    fn of(&self, peer: PeerKey) -> usize {
        self.of_peer.get(&peer).copied().unwrap_or(0)
    }

    fn slot(&mut self, peer: PeerKey, admission: &Arc<Admission>) -> ConnectionSlot {
        let id = self.next_id;
        self.next_id += 1;
        let waiting = Arc::new(Waiting {
            since_ns: AtomicU64::new(u64::MAX),
            leave: OnceLock::new(),
            asked: Notify::new(),
        });
        self.slots.insert(id, (peer, Arc::clone(&waiting)));
        *self.of_peer.entry(peer).or_insert(0) += 1;
        ConnectionSlot { id, waiting, admission: Arc::clone(admission) }
    }

    /// `None` when it was already removed.
    fn forget(&mut self, id: u64) -> Option<Arc<Waiting>> {
        let (peer, waiting) = self.slots.remove(&id)?;
        let left = self.of(peer).saturating_sub(1);
        if left == 0 {
            self.of_peer.remove(&peer);
        } else {
            self.of_peer.insert(peer, left);
        }
        Some(waiting)
    }

    /// Asks one connection to leave, among those for which `may` returns true; its arguments are the peer, the peer's
    /// number of connections, and the idle time, if any. Of the peer with the most, it is the one that has been idle
    /// the longest, otherwise the oldest. Returns the peer and its number of connections; `None` without such a
    /// connection.
    fn ask_to_leave(
        &mut self,
        now_ns: u64,
        may: impl Fn(PeerKey, usize, Option<u64>) -> bool,
    ) -> Option<(PeerKey, usize)> {
        let candidates = self.slots.iter().filter_map(|(id, (of, waiting))| {
            let waited_ns = now_ns.checked_sub(waiting.since_ns.load(Relaxed));
            let has = self.of(*of);
            may(*of, has, waited_ns).then_some((has, waited_ns, Reverse(*id), *of))
        });
        let (has, waited_ns, Reverse(id), of) = candidates.max()?;
        let waiting = self.forget(id)?;
        let leave = if waited_ns.is_some() { Leave::Replaced } else { Leave::Preempted };
        // It is asked once, and removed here.
        let _first = waiting.leave.set(leave);
        waiting.asked.notify_waiters();
        Some((of, has))
    }
}

impl ConnectionSlot {
    /// Its connection is idle from now on, and may be asked to leave.
    pub fn wait_begins(&self, now_ns: u64) {
        self.waiting.since_ns.store(now_ns, Relaxed);
    }

    /// The client has sent or read something.
    pub fn wait_ends(&self) {
        self.waiting.since_ns.store(u64::MAX, Relaxed);
    }

    /// True when its slot was given to another connection.
    pub fn is_to_leave(&self) -> bool {
        self.waiting.leave.get().is_some()
    }

    /// Resolves when its slot is needed. Cancel-safe.
    pub async fn asked_to_leave(&self) -> Leave {
        loop {
            let mut asked = std::pin::pin!(self.waiting.asked.notified());
            // Enabled before the check, so that no notification is missed.
            asked.as_mut().enable();
            if let Some(leave) = self.waiting.leave.get() {
                return *leave;
            }
            asked.await;
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.admission.lock().forget(self.id);
    }
}

/// Limits log lines about rejections.
#[derive(Debug, Default)]
pub struct Refusals {
    state: Mutex<(Option<u64>, u64)>,
}

impl Refusals {
    /// Counts a rejection. Returns the number since the last log line when it is time for another one: at once for the
    /// first, then at most once a minute.
    pub fn note(&self, now_ns: u64) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (logged_ns, unlogged) = &mut *state;
        *unlogged += 1;
        if logged_ns.is_some_and(|logged_ns| now_ns.saturating_sub(logged_ns) < LOG_EVERY_NS) {
            return None;
        }
        *logged_ns = Some(now_ns);
        Some(std::mem::take(unlogged))
    }

    /// The number since the last log line, if a minute has passed or at the end; `None` for 0. For the last ones of a
    /// series, which are otherwise not logged.
    pub fn rest(&self, now_ns: u64, is_end: bool) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (logged_ns, unlogged) = &mut *state;
        let is_due = logged_ns.is_some_and(|logged_ns| now_ns.saturating_sub(logged_ns) >= LOG_EVERY_NS);
        if *unlogged == 0 || !(is_due || is_end) {
            return None;
        }
        *logged_ns = Some(now_ns);
        Some(std::mem::take(unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { all: 4, per_peer: 2 };

    fn peer(address: &str) -> PeerKey {
        peer_key(Some(address.parse().expect("an address")))
    }

    #[test]
    fn addresses_of_one_peer_have_one_key() {
        let table = [
            ("10.0.0.1", "::ffff:10.0.0.1", true),
            ("10.0.0.1", "10.0.0.2", false),
            ("2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
            ("::1", "127.0.0.1", false),
        ];
        for (one, other, same) in table {
            assert_eq!(peer(one) == peer(other), same, "{one} {other}");
        }
    }

    #[test]
    fn limits_apply_to_all_and_to_each_peer_and_slots_are_freed() {
        let admission = Arc::new(Admission::default());
        let admit = |address: &str| admission.admit(peer(address), LIMITS);
        let first = admit("10.0.0.1").expect("room");
        let _second = admit("10.0.0.1").expect("room");
        assert_eq!(admit("::ffff:10.0.0.1").err(), Some(Full::PerPeer));
        let _others = [admit("10.0.0.2").expect("room"), admit("10.0.0.3").expect("room")];
        assert_eq!(admit("10.0.0.4").err(), Some(Full::All));
        assert_eq!(admission.most_as_text(), "; 10.0.0.1 has most, 2");
        assert_eq!(admission.admit(PeerKey::Local, LIMITS).err(), Some(Full::All));
        drop(first);
        assert_eq!(admission.open(), 3);
        let _again = admit("10.0.0.1").expect("room");
        // An existing connection is counted but not rejected.
        let handed = admission.admit_anyway(peer("10.0.0.5"));
        assert_eq!((admission.open(), admit("10.0.0.6").err()), (5, Some(Full::All)));
        drop(handed);
        assert!(admission.lock().of_peer.len() == 3, "peers without a connection are forgotten");
    }

    #[test]
    fn clients_of_unix_sockets_only_share_the_total_limit() {
        let admission = Arc::new(Admission::default());
        let slots: Vec<_> =
            std::iter::from_fn(|| admission.admit(peer_key(None), LIMITS).ok()).take(9).collect();
        assert_eq!((slots.len(), admission.most_as_text()), (LIMITS.all, String::new()));
    }

    /// How it was asked to leave, if it was.
    fn asked(slot: &ConnectionSlot) -> Option<Leave> {
        let mut asked = std::pin::pin!(slot.asked_to_leave());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match asked.as_mut().poll(&mut context) {
            std::task::Poll::Ready(leave) => Some(leave),
            std::task::Poll::Pending => None,
        }
    }

    #[test]
    fn idle_connections_are_replaced_longest_first_and_active_ones_never() {
        let admission = Arc::new(Admission::default());
        let come = |address: &str, now_ns| admission.admit_or_replace(peer(address), LIMITS, now_ns, 10);
        let (first, second) = (come("10.0.0.1", 0).expect("room"), come("10.0.0.1", 0).expect("room"));
        assert_eq!(come("10.0.0.1", 100).err(), Some(Full::PerPeer), "both are at work");
        first.wait_begins(95);
        second.wait_begins(92);
        assert_eq!(come("10.0.0.1", 101).err(), Some(Full::PerPeer), "neither has waited for long");
        let third = come("10.0.0.1", 102).expect("the second one leaves");
        assert_eq!((asked(&first), asked(&second), admission.open()), (None, Some(Leave::Replaced), 2));
        // It ends later, and nothing is freed twice.
        drop(second);
        assert_eq!(admission.open(), 2);
        first.wait_ends();
        third.wait_begins(110);
        let others = [come("10.0.0.2", 110).expect("room"), come("10.0.0.3", 110).expect("room")];
        others[0].wait_begins(103);
        // From the peer with the most connections, although another one has been idle longer.
        let _fifth = come("10.0.0.4", 120 + SETTLED_NS).expect("the third one leaves");
        assert_eq!((asked(&third), asked(&others[0]), asked(&first)), (Some(Leave::Replaced), None, None));
        drop((first, third, others));
        assert_eq!(admission.open(), 1);
    }

    #[test]
    fn active_peers_with_all_slots_give_one_to_each_new_peer() {
        let admission = Arc::new(Admission::default());
        let limits = Limits { all: 8, per_peer: 4 };
        let come = |last: u8| {
            let peer = peer_key(Some([10, 0, 0, last].into()));
            admission.admit_or_replace(peer, limits, 100, 10)
        };
        let busy: Vec<ConnectionSlot> =
            [1, 2].into_iter().flat_map(|last| [last; 4]).map_while(|last| come(last).ok()).collect();
        assert_eq!(busy.len(), limits.all);
        let third = come(3).expect("the oldest of those that have the most leaves");
        assert_eq!((asked(&busy[0]), admission.open()), (Some(Leave::Preempted), limits.all));
        // It has not sent anything yet, and keeps its slot.
        third.wait_begins(99);
        assert_eq!(come(1).err(), Some(Full::All), "the other one would have no more than this one then");
        assert_eq!(asked(&third), None);
        let others: Vec<ConnectionSlot> = (4..8).map_while(|last| come(last).ok()).collect();
        let leave: Vec<bool> = busy.iter().map(|slot| asked(slot).is_some()).collect();
        assert_eq!((others.len(), leave), (4, vec![true, true, true, false, true, true, false, false]));
        let _last = come(8).expect("the one that has two");
        assert_eq!(asked(&busy[6]), Some(Leave::Preempted));
        assert_eq!(come(9).err(), Some(Full::All), "each peer has one");
    }

    #[test]
    fn a_silent_connection_of_the_largest_peer_is_replaced_by_a_smaller_peer() {
        let second = SECOND_NS;
        // For each connection its peer and its silence in seconds (`None`: active); the number of connections of the
        // new one's peer; and the index of the one that leaves.
        type Case = (&'static [(u8, Option<u64>)], u8, Option<usize>);
        let table: &[Case] = &[
            (&[(1, Some(70)), (1, Some(90)), (2, Some(99)), (3, Some(95))], 4, Some(1)),
            (&[(1, Some(59)), (1, Some(9)), (2, None), (2, Some(59))], 4, None),
            (&[(1, None), (1, None), (2, None), (2, None)], 4, None),
            (&[(1, None), (1, None), (2, Some(60)), (2, Some(1))], 4, Some(2)),
            (&[(1, Some(99)), (1, Some(99)), (1, Some(98)), (2, Some(99))], 2, Some(0)),
            // Without a difference of two, they would only change places.
            (&[(1, Some(99)), (1, Some(99)), (2, Some(99)), (3, Some(99))], 2, None),
            (&[(1, Some(99)), (2, Some(99)), (3, Some(99)), (4, Some(99))], 5, None),
            (&[(1, Some(99)), (1, Some(99)), (1, Some(99)), (1, Some(99))], 1, None),
        ];
        let limits = Limits { all: 4, per_peer: 4 };
        for (case, (there, comes, leaves)) in table.iter().enumerate() {
            let admission = Arc::new(Admission::default());
            let key = |last: u8| peer_key(Some([10, 0, 0, last].into()));
            let now_ns = 100 * second;
            let come = |last| admission.admit_or_replace_silent(key(last), limits, now_ns, 60 * second);
            let slots: Vec<ConnectionSlot> =
                there.iter().map_while(|(last, _)| come(*last).ok().map(|(slot, _)| slot)).collect();
            for (slot, (_, silent_s)) in slots.iter().zip(*there) {
                if let Some(silent_s) = silent_s {
                    slot.wait_begins(now_ns - silent_s * second);
                }
            }
            let came = come(*comes);
            assert_eq!(came.is_ok(), leaves.is_some(), "case {case}");
            let left = slots.iter().position(|slot| asked(slot) == Some(Leave::Replaced));
            assert_eq!((left, admission.open()), (*leaves, 4), "case {case}");
            assert_eq!(left, slots.iter().position(ConnectionSlot::is_to_leave), "case {case}");
            if let (Ok((_, who)), Some(leaves)) = (came, leaves) {
                let of = there[*leaves].0;
                let had = there.iter().filter(|(last, _)| *last == of).count();
                assert_eq!(who, Some((key(of), had)), "case {case}");
            }
        }
    }

    #[test]
    fn a_search_without_result_is_not_repeated_at_once() {
        let admission = Arc::new(Admission::default());
        let limits = Limits { all: 4, per_peer: 4 };
        let come =
            |address: &str, now_ns| admission.admit_or_replace_silent(peer(address), limits, now_ns, 10);
        let slots: Vec<ConnectionSlot> = (0..4).map_while(|_| Some(come("10.0.0.1", 0).ok()?.0)).collect();
        assert_eq!(come("10.0.0.1", 100).err(), Some(Full::All));
        assert_eq!(come("10.0.0.2", 100).err(), Some(Full::All), "that was said of one that has more");
        slots[2].wait_begins(0);
        assert_eq!(come("10.0.0.3", 101).err(), Some(Full::All), "it was just looked");
        assert!(come("10.0.0.3", 100 + LOOK_AGAIN_NS).is_ok() && slots[2].is_to_leave());
    }

    #[test]
    fn of_the_largest_peer_an_idle_connection_leaves_first() {
        let admission = Arc::new(Admission::default());
        let limits = Limits { all: 4, per_peer: 4 };
        let come = |address: &str| admission.admit_or_replace(peer(address), limits, 100, 10);
        let many: Vec<ConnectionSlot> = (0..4).map_while(|_| come("10.0.0.1").ok()).collect();
        many[2].wait_begins(99);
        let _one = come("10.0.0.2").expect("although it has not waited for long");
        assert_eq!(asked(&many[2]), Some(Leave::Replaced));
        assert!(many.iter().filter(|slot| asked(slot).is_some()).count() == 1);
    }

    #[test]
    fn an_idle_connection_can_be_asked_to_leave_below_the_limits() {
        let admission = Arc::new(Admission::default());
        let slots =
            ["10.0.0.1", "10.0.0.2"].map(|address| admission.admit(peer(address), LIMITS).expect("room"));
        assert!(!admission.make_room(100), "both are at work");
        slots[0].wait_begins(100);
        assert!(admission.make_room(100) && asked(&slots[0]).is_some() && asked(&slots[1]).is_none());
        assert!(!admission.make_room(100), "it is gone");
        assert_eq!(admission.open(), 1);
    }

    #[test]
    fn rejections_are_logged_at_once_and_then_once_a_minute() {
        let refusals = Refusals::default();
        let minute = LOG_EVERY_NS;
        let logged = [5, 6, minute, minute + 5, minute + 6].map(|now_ns| refusals.note(now_ns));
        assert_eq!(logged, [Some(1), None, None, Some(3), None]);
        // The last ones are also logged, after a minute or at the end.
        let rest = |now_ns, is_end| refusals.rest(now_ns, is_end);
        assert_eq!((rest(minute + 7, false), rest(2 * minute + 5, false)), (None, Some(1)));
        assert_eq!((rest(9 * minute, false), rest(9 * minute, true)), (None, None), "nothing is left");
        assert_eq!((refusals.note(9 * minute), refusals.note(9 * minute)), (Some(1), None));
        assert_eq!((rest(9 * minute, true), rest(9 * minute, true)), (Some(1), None));
    }
}
