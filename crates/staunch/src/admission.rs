//! Who may have a place: a bound on all connections of a listener, and a lower one on those of one peer, so that nobody
//! can take every place.
//!
//! A listener asks with [`Admission::admit`]; the [`ConnectionSlot`] that it gets is held for as long as the connection lives. Where
//! [`Admission::admit_or_replace`] is asked, a connection that only waits (for its client to say something, or to read)
//! gives way to a new one when there is no other place: of the peer that has the most, the one that has waited the longest.
//! When none waits, the oldest of the peer that has the most does, if it has at least two more than the peer that comes: few
//! peers that are always at work lock nobody out. Connections of sources, whose clients may be silent between two flushes, give
//! way only when they have been silent for long
//! ([`Admission::admit_or_replace_silent`]).
//! Not here: the limits (`config`), what is counted and under which name (the listeners).
//! Invariant: a place is counted from `admit` until its slot is dropped, or was asked to leave.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use model::{PeerKey, SECOND_NS};
use tokio::sync::Notify;

/// A connection that has waited for less gives way to others of its own peer at most: its first request may be on the way.
const SETTLED_NS: u64 = SECOND_NS;

/// Whoever comes when all connections of a source are taken, and none was silent for long, changes nothing of that for so long:
/// looking at all of them again for each would cost more than to accept it.
const LOOK_AGAIN_NS: u64 = SECOND_NS / 10;

/// A refusal is told at most once in so long.
const TOLD_EVERY_NS: u64 = 60 * SECOND_NS;

/// The key of an address; none for a client of a unix socket.
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
    /// Of everybody.
    pub all: usize,
    /// Of one peer.
    pub per_peer: usize,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// Everybody together has as many as may be.
    All,
    /// This peer has.
    PerPeer,
}

/// Why a connection is to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// It only waited, and its place is needed.
    Replaced,
    /// It was at work, and its peer has the most connections; the place is needed by one that has fewer.
    Preempted,
}

/// The places of one listener.
#[derive(Debug, Default)]
pub struct Admission {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next_id: u64,
    slots: BTreeMap<u64, (PeerKey, Arc<Waiting>)>,
    of_peer: BTreeMap<PeerKey, usize>,
    /// When nobody was found who was silent for long, for a peer that had so many connections.
    found_none: Option<(u64, usize)>,
}

#[derive(Debug)]
struct Waiting {
    /// Since when its connection only waits, monotonic nanoseconds; `u64::MAX` while it is at work.
    since_ns: AtomicU64,
    leave: OnceLock<Leave>,
    asked: Notify,
}

/// One place, given back when it is dropped.
#[derive(Debug)]
pub struct ConnectionSlot {
    id: u64,
    waiting: Arc<Waiting>,
    admission: Arc<Admission>,
}

impl Admission {
    /// A place for a connection of `peer`, if there is one.
    ///
    /// # Errors
    /// Which limit is reached.
    pub fn admit(self: &Arc<Admission>, peer: PeerKey, limits: Limits) -> Result<ConnectionSlot, Full> {
        let mut state = self.lock();
        match state.full(peer, limits) {
            None => Ok(state.slot(peer, self)),
            Some(full) => Err(full),
        }
    }

    /// The same. When there is none, a connection is asked to leave. Where the peer's own limit is reached: one of its own that
    /// has only waited for `stalled_ns`, the one that has waited the longest. Else one that has waited for a second, of the
    /// peers that have more connections (of its own for `stalled_ns`); and when there is none, one of the peer that has the
    /// most, at work or not, if it still has more than this one then. What that costs grows with the connections that are open.
    ///
    /// # Errors
    /// Which limit is reached when nobody can be asked.
    pub fn admit_or_replace(
        self: &Arc<Admission>,
        peer: PeerKey,
        limits: Limits,
        now_ns: u64,
        stalled_ns: u64,
    ) -> Result<ConnectionSlot, Full> {
        let mut state = self.lock();
        // A reload may have lowered the limits: then one makes no room.
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

    /// The same for connections whose clients may be silent for some time. When all places are taken, one is asked to leave that
    /// has been silent for `silent_ns`, of the peer that has the most, if that has at least two more than this one: the one that
    /// has been silent the longest. Gives that peer, and how many it had.
    ///
    /// # Errors
    /// Which limit is reached when nobody is asked.
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
        // One for one: where a reload has lowered the limit, nobody is cut for what is past it.
        let leaves =
            state.ask_to_leave(now_ns, |_of, others, waited| others >= has + 2 && waited >= Some(silent_ns));
        if leaves.is_none() {
            state.found_none = Some((now_ns, has));
            return Err(Full::All);
        }
        Ok((state.slot(peer, self), leaves))
    }

    /// Asks the connection to leave that has waited the longest, of the peer that has the most: the process lacks what the next
    /// connection needs. False when each has something to do.
    pub fn make_room(&self, now_ns: u64) -> bool {
        self.lock().ask_to_leave(now_ns, |_of, _has, waited| waited.is_some()).is_some()
    }

    /// A place for a connection that is there already: another process has accepted it.
    pub fn admit_anyway(self: &Arc<Admission>, peer: PeerKey) -> ConnectionSlot {
        self.lock().slot(peer, self)
    }

    /// Connections that have a place.
    pub fn open(&self) -> usize {
        self.lock().slots.len()
    }

    /// The peer that has most connections, and how many, for the end of a line of the log; empty where all are of one
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
            // With both, room for everybody must be made among its own.
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

    /// None when it was forgotten already.
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

    /// Asks one of those to leave that `may` says so of, by its peer, how many connections that has, and how long it has waited,
    /// if it does: of the peer that has the most, the one that has waited the longest, else the oldest. Gives its peer, and how many
    /// that had. None when there is none.
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
        // It is asked once: it is forgotten here.
        let _first = waiting.leave.set(leave);
        waiting.asked.notify_waiters();
        Some((of, has))
    }
}

impl ConnectionSlot {
    /// From now on its connection waits for its client, and may be asked to leave.
    pub fn wait_begins(&self, now_ns: u64) {
        self.waiting.since_ns.store(now_ns, Relaxed);
    }

    /// The client has said something, or read something.
    pub fn wait_ends(&self) {
        self.waiting.since_ns.store(u64::MAX, Relaxed);
    }

    /// True when its place was needed, and is another one's.
    pub fn is_to_leave(&self) -> bool {
        self.waiting.leave.get().is_some()
    }

    /// Resolves when its place is needed. Cancel-safe.
    pub async fn asked_to_leave(&self) -> Leave {
        loop {
            let mut asked = std::pin::pin!(self.waiting.asked.notified());
            // Enabled before it is looked at: who asks in between is heard.
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

/// Tells of refusals, one line for many.
#[derive(Debug, Default)]
pub struct Refusals {
    state: Mutex<(Option<u64>, u64)>,
}

impl Refusals {
    /// Counts one. Gives how many there were since the last time when it is to be told of: at first at once, then at most
    /// once a minute.
    pub fn note(&self, now_ns: u64) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (told_ns, untold) = &mut *state;
        *untold += 1;
        if told_ns.is_some_and(|told_ns| now_ns.saturating_sub(told_ns) < TOLD_EVERY_NS) {
            return None;
        }
        *told_ns = Some(now_ns);
        Some(std::mem::take(untold))
    }

    /// How many there were since the last time, when a minute has passed since then, or it is the end. None when there
    /// were none. For the last ones of many, after which none is logged.
    pub fn rest(&self, now_ns: u64, is_end: bool) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (told_ns, untold) = &mut *state;
        let is_due = told_ns.is_some_and(|told_ns| now_ns.saturating_sub(told_ns) >= TOLD_EVERY_NS);
        if *untold == 0 || !(is_due || is_end) {
            return None;
        }
        *told_ns = Some(now_ns);
        Some(std::mem::take(untold))
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
    fn limits_hold_for_all_and_for_each_peer_and_are_given_back() {
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
        // What is there already is counted, and not refused.
        let handed = admission.admit_anyway(peer("10.0.0.5"));
        assert_eq!((admission.open(), admit("10.0.0.6").err()), (5, Some(Full::All)));
        drop(handed);
        assert!(admission.lock().of_peer.len() == 3, "peers without a connection are forgotten");
    }

    #[test]
    fn clients_of_unix_sockets_share_only_the_bound_on_all() {
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
    fn who_only_waits_gives_way_the_longest_first_and_nobody_at_work_does() {
        let admission = Arc::new(Admission::default());
        let come = |address: &str, now_ns| admission.admit_or_replace(peer(address), LIMITS, now_ns, 10);
        let (first, second) = (come("10.0.0.1", 0).expect("room"), come("10.0.0.1", 0).expect("room"));
        assert_eq!(come("10.0.0.1", 100).err(), Some(Full::PerPeer), "both are at work");
        first.wait_begins(95);
        second.wait_begins(92);
        assert_eq!(come("10.0.0.1", 101).err(), Some(Full::PerPeer), "neither has waited for long");
        let third = come("10.0.0.1", 102).expect("the second one leaves");
        assert_eq!((asked(&first), asked(&second), admission.open()), (None, Some(Leave::Replaced), 2));
        // It goes later, and nothing is given back twice.
        drop(second);
        assert_eq!(admission.open(), 2);
        first.wait_ends();
        third.wait_begins(110);
        let others = [come("10.0.0.2", 110).expect("room"), come("10.0.0.3", 110).expect("room")];
        others[0].wait_begins(103);
        // Of the peer that has the most, although another one has waited longer.
        let _fifth = come("10.0.0.4", 120 + SETTLED_NS).expect("the third one leaves");
        assert_eq!((asked(&third), asked(&others[0]), asked(&first)), (Some(Leave::Replaced), None, None));
        drop((first, third, others));
        assert_eq!(admission.open(), 1);
    }

    #[test]
    fn peers_at_work_that_have_all_places_give_one_to_each_that_comes() {
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
        // It has not said anything yet, and keeps its place.
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
    fn who_was_silent_for_long_of_the_peer_that_has_the_most_gives_way_to_one_that_has_fewer() {
        let second = SECOND_NS;
        // Of three peers, how many connections each has, for how many seconds they are silent (none: at work), how many of its own
        // the newcomer has; and which one of all leaves.
        type Case = (&'static [(u8, Option<u64>)], u8, Option<usize>);
        let table: &[Case] = &[
            (&[(1, Some(70)), (1, Some(90)), (2, Some(99)), (3, Some(95))], 4, Some(1)),
            (&[(1, Some(59)), (1, Some(9)), (2, None), (2, Some(59))], 4, None),
            (&[(1, None), (1, None), (2, None), (2, None)], 4, None),
            (&[(1, None), (1, None), (2, Some(60)), (2, Some(1))], 4, Some(2)),
            (&[(1, Some(99)), (1, Some(99)), (1, Some(98)), (2, Some(99))], 2, Some(0)),
            // They would only change places.
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
    fn who_finds_nobody_silent_is_not_looked_for_again_at_once() {
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
    fn of_the_peer_that_has_the_most_one_that_waits_leaves_first() {
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
    fn room_is_made_by_who_waits_whatever_the_limits() {
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
    fn refusals_are_told_at_once_and_then_by_the_minute() {
        let refusals = Refusals::default();
        let minute = TOLD_EVERY_NS;
        let told = [5, 6, minute, minute + 5, minute + 6].map(|now_ns| refusals.note(now_ns));
        assert_eq!(told, [Some(1), None, None, Some(3), None]);
        // The last one is logged as well, when it is time or at the end.
        let rest = |now_ns, is_end| refusals.rest(now_ns, is_end);
        assert_eq!((rest(minute + 7, false), rest(2 * minute + 5, false)), (None, Some(1)));
        assert_eq!((rest(9 * minute, false), rest(9 * minute, true)), (None, None), "nothing is left");
        assert_eq!((refusals.note(9 * minute), refusals.note(9 * minute)), (Some(1), None));
        assert_eq!((rest(9 * minute, true), rest(9 * minute, true)), (Some(1), None));
    }
}
