//! TLS handshakes in progress: a total limit, and half of it per peer.
//!
//! A handshake without a slot waits for one: those of a peer in their order, and peers take turns, so that a peer waits
//! for at most one handshake of each other peer. A handshake whose client takes longer than [`STALL`] gives its slot to
//! waiting ones. A connection requests a slot only with its first byte, so silent ones use none. The expensive part (a
//! signature, some milliseconds with a long key) is done in [`Handshakes::step`]: one at a time, and the runtime's
//! thread does all its other work before the next, peers in turn. Not here: the handshake itself (`wrapping`).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use model::PeerKey;

use crate::daemon::shared::turns;

/// Most handshakes at once, over all listeners, for each reader. Each costs a signature and some kilobytes.
pub(super) const HANDSHAKES_MAX: usize = 512;

/// Most of them of one peer.
pub(super) const HANDSHAKES_PER_PEER_MAX: usize = HANDSHAKES_MAX / 2;

/// Timeout for a client's part of a handshake while others wait. If served at once, it takes two round trips.
pub(super) const STALL: Duration = Duration::from_secs(1);

/// Checks for waiting handshakes within one stall.
const LOOKS: u32 = 4;

/// Handshakes in progress, and waiting ones.
#[derive(Debug)]
pub(super) struct Handshakes {
    all: Arc<turns::Places>,
    /// How many wait for one of `all`.
    waiting: Arc<AtomicUsize>,
    of_peer: Mutex<BTreeMap<PeerKey, OfPeer>>,
    /// Turns for steps.
    steps: Arc<turns::Places>,
}

/// Slots of a peer, and how many handshakes wait for one.
#[derive(Clone, Debug)]
struct Places {
    free: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct OfPeer {
    places: Places,
    /// Handshakes with a slot, or waiting for one.
    here: usize,
}

/// A handshake with a slot.
pub(super) struct Handshake {
    waiting: [Arc<AtomicUsize>; 2],
    _of_peer: OwnedSemaphorePermit,
    _of_all: turns::Place,
    _here: Here,
}

/// A peer is known as long as it has a handshake.
struct Here {
    peer: PeerKey,
    of: Arc<Handshakes>,
}

impl Default for Handshakes {
    fn default() -> Handshakes {
        Handshakes {
            all: Arc::new(turns::Places::new(HANDSHAKES_MAX)),
            waiting: Arc::default(),
            of_peer: Mutex::default(),
            steps: Arc::new(turns::Places::new(1)),
        }
    }
}

impl Handshakes {
    /// Begins a handshake of `peer`, as soon as there is a slot. Cancel-safe.
    pub(super) async fn begin(self: &Arc<Handshakes>, peer: PeerKey) -> Handshake {
        let (places, here) = self.come(peer);
        let of_peer = places.take().await;
        let of_all = {
            let _waits = Waits::new(&self.waiting);
            self.all.take(peer).await
        };
        Handshake {
            waiting: [places.waiting, Arc::clone(&self.waiting)],
            _of_peer: of_peer,
            _of_all: of_all,
            _here: here,
        }
    }

    /// Does a step of a handshake of `peer` in its turn. All other work of the runtime's thread, including reads of
    /// other sources, is done before the next step. Cancel-safe until the step is done.
    pub(super) async fn step<T>(&self, peer: PeerKey, step: impl FnOnce() -> T) -> T {
        let _turn = self.steps.take(peer).await;
        let done = step();
        tokio::task::yield_now().await;
        done
    }

    fn come(self: &Arc<Handshakes>, peer: PeerKey) -> (Places, Here) {
        let mut peers = self.lock();
        let of_peer = peers
            .entry(peer)
            .or_insert_with(|| OfPeer { places: Places::new(HANDSHAKES_PER_PEER_MAX), here: 0 });
        of_peer.here += 1;
        (of_peer.places.clone(), Here { peer, of: Arc::clone(self) })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PeerKey, OfPeer>> {
        self.of_peer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        let mut peers = self.of.lock();
        if let Some(of_peer) = peers.get_mut(&self.peer) {
            of_peer.here -= 1;
            if of_peer.here == 0 {
                peers.remove(&self.peer);
            }
        }
    }
}

impl Places {
    fn new(places: usize) -> Places {
        Places { free: Arc::new(Semaphore::new(places)), waiting: Arc::default() }
    }

    async fn take(&self) -> OwnedSemaphorePermit {
        let _waits = Waits::new(&self.waiting);
        Arc::clone(&self.free).acquire_owned().await.expect("it is never closed")
    }
}

struct Waits<'a>(&'a AtomicUsize);

impl Waits<'_> {
    fn new(waiting: &AtomicUsize) -> Waits<'_> {
        waiting.fetch_add(1, Relaxed);
        Waits(waiting)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Handshake {
    /// Resolves when this much time has passed and other handshakes wait for its slot; checked several times within a
    /// `stall`. Cancel-safe.
    pub(super) async fn is_needed(&self, after: Duration, stall: Duration) {
        tokio::time::sleep(after).await;
        while self.waiting.iter().all(|waiting| waiting.load(Relaxed) == 0) {
            tokio::time::sleep(stall / LOOKS).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    fn peer(last: u8) -> PeerKey {
        crate::admission::peer_key(Some([10, 0, 0, last].into()))
    }

    /// Begins up to `most` handshakes of `peer` that get a slot at once.
    fn begin(all: &Arc<Handshakes>, peer: PeerKey, most: usize) -> Vec<Handshake> {
        // A runtime limits a task's work between two waits.
        let next = || match poll(pin!(tokio::task::unconstrained(all.begin(peer)))) {
            Poll::Ready(begun) => Some(begun),
            Poll::Pending => None,
        };
        std::iter::from_fn(next).take(most).collect()
    }

    #[test]
    fn no_peer_has_more_than_half_of_the_slots_and_waiting_handshakes_are_next() {
        let all = Arc::new(Handshakes::default());
        let mut first = begin(&all, peer(1), usize::MAX);
        assert_eq!(first.len(), HANDSHAKES_PER_PEER_MAX);
        let mut second = begin(&all, peer(2), usize::MAX);
        assert_eq!(first.len() + second.len(), HANDSHAKES_MAX);
        let mut third = pin!(all.begin(peer(3)));
        let mut again = pin!(all.begin(peer(1)));
        assert!(poll(third.as_mut()).is_pending() && poll(again.as_mut()).is_pending());
        second.pop();
        assert!(poll(again.as_mut()).is_pending(), "its own peer has as many as it may");
        assert!(poll(third.as_mut()).is_ready());
        // The free slot was returned by the third peer, and a peer's slots by itself.
        first.pop();
        assert!(poll(again.as_mut()).is_ready());
        drop((first, second));
        assert!(all.lock().is_empty(), "a peer without a handshake is forgotten");
    }

    #[test]
    fn peers_take_turns_with_any_number_of_waiting_handshakes() {
        let all = Arc::new(Handshakes::default());
        let mut under_way = begin(&all, peer(1), usize::MAX);
        under_way.extend(begin(&all, peer(2), usize::MAX));
        assert_eq!(under_way.len(), HANDSHAKES_MAX);
        let mut crowd: Vec<_> = (3..23)
            .flat_map(|last| (0..10).map(move |_| last))
            .map(|last| Box::pin(tokio::task::unconstrained(all.begin(peer(last)))))
            .collect();
        crowd.iter_mut().for_each(|waits| assert!(poll(waits.as_mut()).is_pending()));
        let mut honest = pin!(tokio::task::unconstrained(all.begin(peer(23))));
        assert!(poll(honest.as_mut()).is_pending());
        // One of each peer that was there before it.
        under_way.truncate(HANDSHAKES_MAX - 20);
        assert!(poll(honest.as_mut()).is_pending());
        under_way.pop();
        assert!(poll(honest.as_mut()).is_ready());
    }

    #[test]
    fn other_work_is_done_between_two_steps_and_peers_take_turns() {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("a runtime").block_on(async {
            let all = Arc::new(Handshakes::default());
            let (done, seen) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
            let mut tasks = tokio::task::JoinSet::new();
            for last in [1, 1, 1, 1, 1, 1, 2] {
                let (all, done) = (Arc::clone(&all), Arc::clone(&done));
                tasks.spawn(
                    async move { all.step(peer(last), || done.lock().expect("whole").push(last)).await },
                );
            }
            let (steps, looks) = (Arc::clone(&done), Arc::clone(&seen));
            let other = tokio::spawn(async move {
                loop {
                    let so_far = steps.lock().expect("whole").len();
                    looks.lock().expect("whole").push(so_far);
                    tokio::task::yield_now().await;
                }
            });
            while tasks.join_next().await.is_some() {}
            other.abort();
            assert_eq!(*done.lock().expect("whole"), [1, 1, 2, 1, 1, 1, 1]);
            let seen = seen.lock().expect("whole");
            assert!((1..7).all(|steps| seen.contains(&steps)), "one at a time: {seen:?}");
        });
    }

    #[test]
    fn a_slot_is_needed_only_when_another_handshake_waits() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(async {
            let all = Arc::new(Handshakes::default());
            let others = begin(&all, peer(1), HANDSHAKES_PER_PEER_MAX);
            let (of_peer, of_another) = (&others[0], begin(&all, peer(2), 1));
            let stall = Duration::from_millis(1);
            let mut waits = pin!(all.begin(peer(1)));
            assert!(poll(waits.as_mut()).is_pending());
            of_peer.is_needed(stall, stall).await;
            let free = tokio::time::timeout(stall * 20, of_another[0].is_needed(stall, stall)).await;
            assert!(free.is_err(), "nobody waits for a place of this peer");
        });
    }
}
