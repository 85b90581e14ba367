//! Who comes next where many connections wait: sources take turns, and within a source its peers, so that a thousand
//! connections of one peer wait for each other and not another peer for all of them.
//!
//! [`Floor`]: when a connection is read, on the one thread that reads them all. [`Places`]: so many at once, of messages that
//! are taken apart (`Shared::turns`) and of TLS handshakes (`handshakes`).
//! Not here: how much one read takes (`stream`), and how many connections a peer may have (`admission`).
//! Invariant: a reader that stops waiting is passed over.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::{PeerKey, SECOND_NS, SourceId};
use tokio::sync::{Notify, oneshot, watch};

use crate::sources::stream::stopped;
use sys::clock::Clock;

/// Time that reads may take before those that wait have turns, and the runtime looks at its sockets and timers. One read may
/// be over it by itself.
const ROUND_NS: u64 = SECOND_NS / 1_000;

/// Those that wait, by key: the keys take turns.
#[derive(Debug)]
struct Rotation<K, T> {
    of: BTreeMap<K, VecDeque<T>>,
    /// Each key once.
    order: VecDeque<K>,
}

impl<K, T> Default for Rotation<K, T> {
    fn default() -> Rotation<K, T> {
        Rotation { of: BTreeMap::new(), order: VecDeque::new() }
    }
}

impl<K: Copy + Ord, T> Rotation<K, oneshot::Sender<T>> {
    fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    fn push(&mut self, key: K, waits: oneshot::Sender<T>) {
        let line = self.of.entry(key).or_insert_with(|| {
            self.order.push_back(key);
            VecDeque::new()
        });
        // Those that have stopped waiting since: who comes first mostly goes first.
        while line.front().is_some_and(oneshot::Sender::is_closed) {
            line.pop_front();
        }
        line.push_back(waits);
    }

    fn pop(&mut self) -> Option<oneshot::Sender<T>> {
        while let Some(key) = self.order.pop_front() {
            let Some(line) = self.of.get_mut(&key) else { continue };
            let next = std::iter::from_fn(|| line.pop_front()).find(|waits| !waits.is_closed());
            if line.is_empty() {
                self.of.remove(&key);
            } else {
                self.order.push_back(key);
            }
            if next.is_some() {
                return next;
            }
        }
        None
    }
}

/// A number of places. A reader that finds none waits, and peers take turns.
#[derive(Debug)]
pub(crate) struct Places {
    state: Mutex<PlacesState>,
}

#[derive(Debug)]
struct PlacesState {
    free: usize,
    waiting: Rotation<PeerKey, oneshot::Sender<Place>>,
}

/// One place, given to the next when it is dropped.
#[derive(Debug)]
pub(crate) struct Place(Option<Arc<Places>>);

impl Places {
    /// So many.
    pub(crate) fn new(places: usize) -> Places {
        Places { state: Mutex::new(PlacesState { free: places, waiting: Rotation::default() }) }
    }

    /// A place for `peer`, as soon as there is one. Cancel-safe: who stops waiting loses its place in the line.
    pub(crate) async fn take(self: &Arc<Places>, peer: PeerKey) -> Place {
        let waits = {
            let mut state = self.lock();
            if state.free > 0 {
                state.free -= 1;
                return Place(Some(Arc::clone(self)));
            }
            let (given, waits) = oneshot::channel();
            state.waiting.push(peer, given);
            waits
        };
        waits.await.expect("a place is given or waited for")
    }

    fn lock(&self) -> MutexGuard<'_, PlacesState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(places) = self.0.take() else { return };
        loop {
            let mut state = places.lock();
            let Some(next) = state.waiting.pop() else {
                state.free += 1;
                return;
            };
            drop(state);
            match next.send(Place(Some(Arc::clone(&places)))) {
                Ok(()) => return,
                // It has just stopped waiting. What comes back is not dropped as a place: the next one has it.
                Err(mut back) => back.0 = None,
            }
        }
    }
}

/// When a connection is read. All of them are on one thread, and a read is never interrupted: while reads take little time
/// together nobody waits, and then those that come wait for a round of the runtime.
#[derive(Debug, Default)]
pub struct Floor {
    state: Mutex<FloorState>,
    wanted: Notify,
}

#[derive(Debug, Default)]
struct FloorState {
    /// By the reads of this round.
    spent_ns: u64,
    /// By source.
    of: BTreeMap<SourceId, Rotation<PeerKey, oneshot::Sender<()>>>,
    /// Each source that somebody waits at once.
    order: VecDeque<SourceId>,
    /// Nobody begins rounds any more: nobody waits either.
    ended: bool,
}

impl Floor {
    /// Waits for the turn of a connection of `peer` at `source`; false when there was nothing to wait for. What it reads then
    /// is read within [`Floor::run`], or it gives the turn back with [`Floor::pass`]. Cancel-safe: who stops waiting loses its
    /// place in the line.
    pub(crate) async fn turn(&self, source: SourceId, peer: PeerKey) -> bool {
        let waits = {
            let mut state = self.lock();
            if state.ended || (state.spent_ns < ROUND_NS && state.order.is_empty()) {
                return false;
            }
            let (given, waits) = oneshot::channel();
            state.push(source, peer, given);
            waits
        };
        self.wanted.notify_one();
        // Nobody takes a turn back.
        let _given = waits.await;
        true
    }

    /// Does a read, and lets the next one have its turn when there is time.
    pub(crate) fn run<T>(&self, read: impl FnOnce() -> T) -> T {
        let since_ns = Clock::mono_ns();
        let done = read();
        self.lock().spend(Clock::mono_ns().saturating_sub(since_ns));
        done
    }

    /// Gives a turn back that was not used.
    pub(crate) fn pass(&self) {
        self.lock().spend(0);
    }

    /// Begins rounds while somebody waits, until `stop` turns true. To be run on the runtime of the connections.
    pub async fn tend(&self, mut stop: watch::Receiver<bool>) {
        loop {
            // Both branches are cancel-safe: they only wait.
            tokio::select! {
                () = stopped(&mut stop) => break,
                () = self.wanted.notified() => {}
            }
            loop {
                // Comes back when the runtime has looked at its sockets and timers.
                tokio::task::yield_now().await;
                if !self.lock().begin_round() {
                    break;
                }
            }
        }
        let mut state = self.lock();
        state.ended = true;
        while state.begin_round() {}
    }

    fn lock(&self) -> MutexGuard<'_, FloorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FloorState {
    fn push(&mut self, source: SourceId, peer: PeerKey, given: oneshot::Sender<()>) {
        let peers = self.of.entry(source).or_insert_with(|| {
            self.order.push_back(source);
            Rotation::default()
        });
        peers.push(peer, given);
    }

    fn pop(&mut self) -> Option<oneshot::Sender<()>> {
        while let Some(source) = self.order.pop_front() {
            let Some(peers) = self.of.get_mut(&source) else { continue };
            let next = peers.pop();
            if peers.is_empty() {
                self.of.remove(&source);
            } else {
                self.order.push_back(source);
            }
            if next.is_some() {
                return next;
            }
        }
        None
    }

    fn spend(&mut self, ns: u64) {
        self.spent_ns += ns;
        if self.spent_ns < ROUND_NS {
            self.give_one();
        }
    }

    /// True while somebody waits.
    fn begin_round(&mut self) -> bool {
        self.spent_ns = 0;
        self.give_one();
        !self.order.is_empty()
    }

    fn give_one(&mut self) {
        while let Some(next) = self.pop() {
            if next.send(()).is_ok() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    fn peer(last: u8) -> PeerKey {
        crate::admission::peer_key(Some([10, 0, 0, last].into()))
    }

    /// In the order in which turns come: (source, peer).
    fn order(floor: &Floor, asked: &[(u16, u8)]) -> Vec<(u16, u8)> {
        let mut waits: Vec<_> = asked
            .iter()
            .map(|(source, last)| {
                let mut wait =
                    Box::pin(tokio::task::unconstrained(floor.turn(SourceId(*source), peer(*last))));
                assert!(poll(wait.as_mut()).is_pending(), "the round is over, or others wait");
                Some(wait)
            })
            .collect();
        let mut got = Vec::new();
        while got.len() < asked.len() {
            floor.lock().begin_round();
            let before = got.len();
            for (at, slot) in waits.iter_mut().enumerate() {
                if slot.as_mut().is_some_and(|wait| poll(wait.as_mut()) == Poll::Ready(true)) {
                    *slot = None;
                    got.push(asked[at]);
                    floor.lock().spend(ROUND_NS);
                }
            }
            assert_eq!(got.len(), before + 1, "one turn a round, as long as each takes all of it");
        }
        got
    }

    #[test]
    fn sources_take_turns_and_within_them_peers() {
        let floor = Floor::default();
        assert_eq!(poll(pin!(floor.turn(SourceId(0), peer(1)))), Poll::Ready(false), "nobody waits");
        floor.lock().spent_ns = ROUND_NS;
        // A peer with many connections, another one at the same source, a third one at another source.
        let asked = [(0, 1), (0, 1), (0, 1), (0, 1), (0, 2), (1, 3), (0, 2), (1, 1)];
        let want = [(0, 1), (1, 3), (0, 2), (1, 1), (0, 1), (0, 2), (0, 1), (0, 1)];
        assert_eq!(order(&floor, &asked), want);
        assert!(floor.lock().of.is_empty(), "nobody is remembered");
    }

    #[test]
    fn short_reads_share_a_round_and_who_has_gone_is_passed_over() {
        let floor = Floor::default();
        floor.lock().spent_ns = ROUND_NS;
        let mut waits: Vec<_> = (0..4).map(|_| Box::pin(floor.turn(SourceId(0), peer(1)))).collect();
        waits.iter_mut().for_each(|wait| assert!(poll(wait.as_mut()).is_pending()));
        drop(waits.remove(1));
        assert!(floor.lock().begin_round());
        assert_eq!(poll(waits[0].as_mut()), Poll::Ready(true));
        assert!(poll(waits[1].as_mut()).is_pending(), "not before the first one is done");
        floor.lock().spend(1);
        assert_eq!(poll(waits[1].as_mut()), Poll::Ready(true));
        assert!(poll(waits[2].as_mut()).is_pending());
        floor.pass();
        assert_eq!(poll(waits[2].as_mut()), Poll::Ready(true));
        assert!(!floor.lock().begin_round());
        assert_eq!(poll(pin!(floor.turn(SourceId(0), peer(1)))), Poll::Ready(false));
    }

    #[test]
    fn rounds_go_on_while_somebody_waits() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let floor = Arc::new(Floor::default());
            let (stop, stopping) = watch::channel(false);
            let tending = Arc::clone(&floor);
            let tends = tokio::spawn(async move { tending.tend(stopping).await });
            let reads = (0..50_u16).map(|number| {
                let floor = Arc::clone(&floor);
                tokio::spawn(async move {
                    for _ in 0..20 {
                        floor.turn(SourceId(number % 3), peer(number as u8 % 5)).await;
                        floor.run(|| floor.lock().spent_ns += ROUND_NS / 2);
                        tokio::task::yield_now().await;
                    }
                })
            });
            for read in reads.collect::<Vec<_>>() {
                read.await.expect("it comes to its end");
            }
            stop.send_replace(true);
            tends.await.expect("it ends");
            floor.lock().spent_ns = ROUND_NS;
            assert!(!floor.turn(SourceId(0), peer(1)).await, "nobody would end the wait");
        });
    }

    #[test]
    fn places_go_from_peer_to_peer() {
        let places = Arc::new(Places::new(1));
        let take = |last: u8| Box::pin(places.take(peer(last)));
        let Poll::Ready(first) = poll(take(1).as_mut()) else { panic!("it is free") };
        let mut waits: Vec<_> = [1, 1, 1, 2].into_iter().map(take).collect();
        waits.iter_mut().for_each(|wait| assert!(poll(wait.as_mut()).is_pending()));
        // Given and not taken: a reader that is gone by then passes it on.
        drop(first);
        drop(waits.remove(0));
        let Poll::Ready(other) = poll(waits[2].as_mut()) else { panic!("its turn") };
        assert!(poll(waits[0].as_mut()).is_pending());
        drop(waits.remove(0));
        drop(other);
        let Poll::Ready(last) = poll(waits[0].as_mut()) else { panic!("its turn") };
        drop(last);
        assert_eq!(places.lock().free, 1);
        assert!(places.lock().waiting.is_empty());
    }
}
