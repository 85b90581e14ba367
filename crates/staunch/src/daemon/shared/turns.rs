//! The order of waiting connections: sources take turns, and within a source its peers, so that a thousand connections
//! of one peer wait for each other, and another peer does not wait for all of them.
//!
//! [`Floor`]: turns for reading, one for each thread that reads connections: a read needs time, and room in the
//! exchange. [`Places`]: limited slots, for messages being decoded (`Shared::turns`) and TLS handshakes
//! (`sources::stream::handshakes`). Not here: the size of one read (`sources::stream`), limits on connections (`admission`), the order within the exchange
//! (`pipeline::Exchange`).
//! Invariants: a waiter that stops is skipped. A source without room is checked once for each time that there may be
//! some, and only as many of its connections are woken as find room.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{Batches, PeerKey, SECOND_NS, SourceId};
use pipeline::{Exchange, Rotation};
use tokio::sync::{Notify, oneshot, watch};

use super::stop_order::stopped;
use sys::clock::Clock;

/// Time for reads before waiting connections have turns, and the runtime polls its sockets and timers. A single read
/// may exceed it.
const ROUND_NS: u64 = SECOND_NS / 1_000;

/// Longest wait for room in the exchange before checking again: closing an empty exchange sends no notification.
const ROOM_PAUSE: Duration = Duration::from_millis(500);

/// Waiters by key.
type Waiting<K, T> = Rotation<K, oneshot::Sender<T>>;

/// Queues one after other live waiters of its key: mostly first come, first served.
fn join<K: Copy + Ord, T>(waiting: &mut Waiting<K, T>, key: K, waits: oneshot::Sender<T>) {
    waiting.forget_first_of(key, |waits| !waits.is_closed());
    waiting.push(key, waits);
}

fn next<K: Copy + Ord, T>(waiting: &mut Waiting<K, T>) -> Option<oneshot::Sender<T>> {
    waiting.pop_where(|waits| !waits.is_closed()).map(|(_, waits)| waits)
}

/// A number of slots. A waiter without one waits, and peers take turns.
#[derive(Debug)]
pub(crate) struct Places {
    state: Mutex<PlacesState>,
}

#[derive(Debug)]
struct PlacesState {
    free: usize,
    waiting: Waiting<PeerKey, Place>,
}

/// One slot, passed to the next waiter when it is dropped.
#[derive(Debug)]
pub(crate) struct Place(Option<Arc<Places>>);

impl Places {
    /// This many.
    pub(crate) fn new(places: usize) -> Places {
        Places { state: Mutex::new(PlacesState { free: places, waiting: Rotation::default() }) }
    }

    /// A slot for `peer`, as soon as there is one. Cancel-safe: a waiter that stops loses its position.
    pub(crate) async fn take(self: &Arc<Places>, peer: PeerKey) -> Place {
        let waits = {
            let mut state = self.lock();
            if state.free > 0 {
                state.free -= 1;
                return Place(Some(Arc::clone(self)));
            }
            let (given, waits) = oneshot::channel();
            join(&mut state.waiting, peer, given);
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
            let Some(next) = next(&mut state.waiting) else {
                state.free += 1;
                return;
            };
            drop(state);
            match next.send(Place(Some(Arc::clone(&places)))) {
                Ok(()) => return,
                // It has just stopped waiting. The returned slot must not be dropped: the next waiter gets it.
                Err(mut back) => back.0 = None,
            }
        }
    }
}

/// Turns for reading, of the connections of one reader thread. They are all on that thread, and a read is never
/// interrupted. While reads are short and the exchange has room, nobody waits. Otherwise new ones wait for a round of
/// the runtime, or for room.
#[derive(Debug)]
pub struct Floor {
    state: Mutex<FloorState>,
    exchange: Arc<Exchange>,
    /// Notified when the exchange has room again.
    room: Arc<Notify>,
    wanted: Notify,
}

#[derive(Debug, Default)]
struct FloorState {
    /// Time used by the reads of this round.
    spent_ns: u64,
    /// By source.
    of: BTreeMap<SourceId, Waiting<PeerKey, ()>>,
    /// Sources with waiters. Each source in `of` is in exactly one of `order` and `full`.
    order: VecDeque<SourceId>,
    /// Sources without room at their last check.
    full: VecDeque<SourceId>,
    /// The source of the last turn with room, until a batch is sent: other readers may use the same room, and a batch
    /// that was read must not wait outside of the exchange.
    found_room: Option<SourceId>,
    /// No more rounds: nobody waits any more.
    ended: bool,
}

/// The position of a waiter among those of its peer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    Last,
    /// It had a turn that it could not use.
    First,
}

impl Floor {
    /// For `exchange`, whose shard notifies `room`.
    pub fn new(exchange: Arc<Exchange>, room: Arc<Notify>) -> Floor {
        Floor { state: Mutex::default(), exchange, room, wanted: Notify::new() }
    }

    /// Waits for the turn of a connection of `peer` at `source`. There is then room for one batch, or the exchange is
    /// closed. Both hold until the next await. The caller reads within [`Floor::run`], or returns the turn with
    /// [`Floor::pass`]. Cancel-safe: a waiter that stops loses its position.
    pub(crate) async fn turn(&self, source: SourceId, peer: PeerKey) {
        let mut line = Line::Last;
        loop {
            let waits = {
                let mut state = self.lock();
                if state.ended {
                    return;
                }
                if state.is_free(source) && self.exchange.has_room(source) {
                    state.found_room = Some(source);
                    return;
                }
                let (given, waits) = oneshot::channel();
                state.push((source, peer), given, line);
                waits
            };
            self.wanted.notify_one();
            // Turns are never revoked.
            let _given = waits.await;
            if self.exchange.has_room(source) {
                self.lock().found_room = Some(source);
                return;
            }
            // An earlier turn has used the room.
            self.pass();
            line = Line::First;
        }
    }

    /// Does a read, and gives the next one its turn if there is time.
    pub(crate) fn run<T>(&self, read: impl FnOnce() -> T) -> T {
        let since_ns = Clock::mono_ns();
        let done = read();
        self.lock().spend(Clock::mono_ns().saturating_sub(since_ns), &self.exchange);
        done
    }

    /// Sends a batch of the peer `from` to the shard. After a turn there is room for one batch, even if another reader
    /// has filled the source's share: so the share is exceeded by at most one batch per reader.
    ///
    /// # Errors
    /// The batch itself, as [`Exchange::try_send`].
    #[expect(clippy::result_large_err, reason = "the error is the batch itself, handed back")]
    pub(crate) fn send(&self, from: PeerKey, batch: Batches<'static>) -> Result<(), Batches<'static>> {
        if self.lock().found_room.take() == Some(batch.source) {
            self.exchange.send_into_found_room(from, batch)
        } else {
            self.exchange.try_send(from, batch)
        }
    }

    /// Returns an unused turn.
    pub(crate) fn pass(&self) {
        self.lock().spend(0, &self.exchange);
    }

    /// Runs rounds while connections wait, until the exchange is closed and `stop` turns true. Must run on the
    /// connections' runtime.
    pub async fn tend(&self, mut stop: watch::Receiver<bool>) {
        let mut stops = false;
        loop {
            let mut room = std::pin::pin!(self.room.notified());
            // Enabled before the exchange is checked, so that no notification is missed.
            room.as_mut().enable();
            loop {
                // Returns after the runtime has polled its sockets and timers.
                tokio::task::yield_now().await;
                let mut state = self.lock();
                state.ask_full(&self.exchange);
                if !state.begin_round(&self.exchange) {
                    break;
                }
            }
            if stops && self.exchange.is_closed() {
                break;
            }
            let waits_for_room = stops || !self.lock().full.is_empty();
            // All branches are cancel-safe: they only wait.
            tokio::select! {
                () = stopped(&mut stop), if !stops => stops = true,
                () = self.wanted.notified() => {}
                // The shard notifies in each of its turns: only waiters for room are woken.
                () = room, if waits_for_room => {}
                () = tokio::time::sleep(ROOM_PAUSE), if waits_for_room => {}
            }
        }
        let mut state = self.lock();
        state.ended = true;
        state.ask_full(&self.exchange);
        while state.begin_round(&self.exchange) {}
    }

    fn lock(&self) -> MutexGuard<'_, FloorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FloorState {
    /// True when a reader at `source` would overtake no waiter.
    fn is_free(&self, source: SourceId) -> bool {
        self.spent_ns < ROUND_NS && self.order.is_empty() && !self.of.contains_key(&source)
    }

    fn push(&mut self, (source, peer): (SourceId, PeerKey), given: oneshot::Sender<()>, line: Line) {
        let peers = self.of.entry(source).or_insert_with(|| {
            self.order.push_back(source);
            Rotation::default()
        });
        match line {
            Line::Last => join(peers, peer, given),
            Line::First => peers.push_front(peer, given),
        }
    }

    fn pop(&mut self, exchange: &Exchange) -> Option<oneshot::Sender<()>> {
        while let Some(source) = self.order.pop_front() {
            let Some(peers) = self.of.get_mut(&source) else { continue };
            if !exchange.has_room(source) {
                self.full.push_back(source);
                continue;
            }
            let next = next(peers);
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

    /// Sources with room again take turns again.
    fn ask_full(&mut self, exchange: &Exchange) {
        let FloorState { order, full, .. } = self;
        full.retain(|source| {
            let has_room = exchange.has_room(*source);
            if has_room {
                order.push_back(*source);
            }
            !has_room
        });
    }

    fn spend(&mut self, ns: u64, exchange: &Exchange) {
        self.spent_ns += ns;
        if self.spent_ns < ROUND_NS {
            self.give_one(exchange);
        }
    }

    /// True while a connection waits for a turn, and not for room.
    fn begin_round(&mut self, exchange: &Exchange) -> bool {
        self.spent_ns = 0;
        self.give_one(exchange);
        !self.order.is_empty()
    }

    fn give_one(&mut self, exchange: &Exchange) {
        while let Some(next) = self.pop(exchange) {
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

    use model::{Events, Outcome, Receipt, Records};

    use super::*;

    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    fn peer(last: u8) -> PeerKey {
        crate::admission::peer_key(Some([10, 0, 0, last].into()))
    }

    /// With room for one batch of each source.
    fn floor() -> Floor {
        Floor::new(Arc::new(Exchange::new(1, 8)), Arc::default())
    }

    /// One batch that fills its source's share.
    fn fill(floor: &Floor, source: u16, last: u8) {
        let receipt = Receipt::receive(&Arc::default(), 1);
        let batch = Batches::one(SourceId(source), Records::Events(Events::default()), receipt);
        assert!(floor.exchange.try_send(peer(last), batch).is_ok());
    }

    fn empty(floor: &Floor) {
        while let Some((_, batch)) = floor.exchange.take_oldest() {
            batch.settle(Outcome::Routed);
        }
    }

    /// The order of turns: (source, peer).
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
            floor.lock().begin_round(&floor.exchange);
            let before = got.len();
            for (at, slot) in waits.iter_mut().enumerate() {
                if slot.as_mut().is_some_and(|wait| poll(wait.as_mut()) == Poll::Ready(())) {
                    *slot = None;
                    got.push(asked[at]);
                    floor.lock().spend(ROUND_NS, &floor.exchange);
                }
            }
            assert_eq!(got.len(), before + 1, "one turn a round, as long as each takes all of it");
        }
        got
    }

    #[test]
    fn sources_take_turns_and_within_them_peers() {
        let floor = floor();
        assert_eq!(poll(pin!(floor.turn(SourceId(0), peer(1)))), Poll::Ready(()), "nobody waits");
        floor.lock().spent_ns = ROUND_NS;
        // A peer with many connections, another one at the same source, a third one at another source.
        let asked = [(0, 1), (0, 1), (0, 1), (0, 1), (0, 2), (1, 3), (0, 2), (1, 1)];
        let want = [(0, 1), (1, 3), (0, 2), (1, 1), (0, 1), (0, 2), (0, 1), (0, 1)];
        assert_eq!(order(&floor, &asked), want);
        assert!(floor.lock().of.is_empty(), "nobody is remembered");
    }

    #[test]
    fn short_reads_share_a_round_and_cancelled_waiters_are_skipped() {
        let floor = floor();
        floor.lock().spent_ns = ROUND_NS;
        let mut waits: Vec<_> = (0..4).map(|_| Box::pin(floor.turn(SourceId(0), peer(1)))).collect();
        waits.iter_mut().for_each(|wait| assert!(poll(wait.as_mut()).is_pending()));
        drop(waits.remove(1));
        assert!(floor.lock().begin_round(&floor.exchange));
        assert_eq!(poll(waits[0].as_mut()), Poll::Ready(()));
        assert!(poll(waits[1].as_mut()).is_pending(), "not before the first one is done");
        floor.lock().spend(1, &floor.exchange);
        assert_eq!(poll(waits[1].as_mut()), Poll::Ready(()));
        assert!(poll(waits[2].as_mut()).is_pending());
        floor.pass();
        assert_eq!(poll(waits[2].as_mut()), Poll::Ready(()));
        assert!(!floor.lock().begin_round(&floor.exchange));
        assert_eq!(poll(pin!(floor.turn(SourceId(0), peer(1)))), Poll::Ready(()));
    }

    #[test]
    fn room_is_given_in_turn_and_wakes_only_as_many_as_fit() {
        let floor = floor();
        fill(&floor, 0, 1);
        // A peer with many connections, and one with a single one, at a source without room.
        let asked: Vec<u8> = (0..100).map(|_| 1).chain([2]).collect();
        let mut waits: Vec<_> = asked
            .iter()
            .map(|last| Box::pin(tokio::task::unconstrained(floor.turn(SourceId(0), peer(*last)))))
            .collect();
        waits.iter_mut().for_each(|wait| assert!(poll(wait.as_mut()).is_pending()));
        let mut got = Vec::new();
        for _ in 0..4 {
            assert!(!floor.lock().begin_round(&floor.exchange), "who waits for room begins no rounds");
            assert_eq!(poll(pin!(floor.turn(SourceId(1), peer(1)))), Poll::Ready(()), "others have room");
            empty(&floor);
            floor.lock().ask_full(&floor.exchange);
            floor.lock().begin_round(&floor.exchange);
            let polled = waits.iter_mut().map(|wait| poll(wait.as_mut()).is_ready()).enumerate();
            let woken: Vec<usize> = polled.filter_map(|(at, woken)| woken.then_some(at)).collect();
            let [at] = woken[..] else { panic!("one for one place: {woken:?}") };
            drop(waits.remove(at));
            let last = if at == waits.len() && !got.contains(&2) { 2 } else { 1 };
            got.push(last);
            floor.run(|| fill(&floor, 0, last));
        }
        assert_eq!(got, [1, 2, 1, 1]);
        floor.exchange.close();
        let before = waits.len();
        floor.lock().ask_full(&floor.exchange);
        for _ in 0..before {
            floor.lock().begin_round(&floor.exchange);
        }
        waits.retain_mut(|wait| poll(wait.as_mut()).is_pending());
        assert!(waits.is_empty() && floor.lock().of.is_empty(), "nobody waits for what is closed");
        empty(&floor);
    }

    #[test]
    fn a_batch_read_in_a_turn_is_accepted_although_another_reader_filled_the_exchange() {
        let exchange = Arc::new(Exchange::new(1, 8));
        let floors = [1, 2].map(|_| Floor::new(Arc::clone(&exchange), Arc::default()));
        let batch = || {
            let receipt = Receipt::receive(&Arc::default(), 1);
            Batches::one(SourceId(0), Records::Events(Events::default()), receipt)
        };
        for floor in &floors {
            assert!(poll(pin!(floor.turn(SourceId(0), peer(1)))).is_ready(), "there is room");
        }
        assert!(floors.iter().all(|floor| floor.send(peer(1), batch()).is_ok()));
        // Each turn is for one batch.
        for floor in &floors {
            let back = floor.send(peer(1), batch()).expect_err("it is full");
            back.settle(Outcome::Routed);
            assert!(poll(pin!(floor.turn(SourceId(0), peer(1)))).is_pending());
        }
        empty(&floors[0]);
        exchange.close();
        let last = Floor::new(exchange, Arc::default());
        assert!(poll(pin!(last.turn(SourceId(0), peer(1)))).is_ready());
        let back = last.send(peer(1), batch()).expect_err("nobody takes it any more");
        back.settle(Outcome::Routed);
    }

    #[test]
    fn a_turn_without_room_is_not_lost() {
        let floor = floor();
        fill(&floor, 0, 1);
        let mut waits: Vec<_> =
            [2, 1, 1, 1].into_iter().map(|last| Box::pin(floor.turn(SourceId(0), peer(last)))).collect();
        waits.iter_mut().for_each(|wait| assert!(poll(wait.as_mut()).is_pending()));
        floor.lock().begin_round(&floor.exchange);
        empty(&floor);
        floor.lock().ask_full(&floor.exchange);
        floor.lock().begin_round(&floor.exchange);
        // It had its turn, but another one used the room.
        fill(&floor, 0, 3);
        assert!(poll(waits[0].as_mut()).is_pending());
        empty(&floor);
        floor.lock().ask_full(&floor.exchange);
        floor.lock().begin_round(&floor.exchange);
        assert!(poll(waits[0].as_mut()).is_ready(), "it is the next one still");
    }

    #[test]
    fn rounds_continue_while_connections_wait() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let floor = Arc::new(floor());
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
            floor.exchange.close();
            stop.send_replace(true);
            tends.await.expect("it ends");
            floor.lock().spent_ns = ROUND_NS;
            // Otherwise the wait would never end.
            floor.turn(SourceId(0), peer(1)).await;
        });
    }

    #[test]
    fn places_go_from_peer_to_peer() {
        let places = Arc::new(Places::new(1));
        let take = |last: u8| Box::pin(places.take(peer(last)));
        let Poll::Ready(first) = poll(take(1).as_mut()) else { panic!("it is free") };
        let mut waits: Vec<_> = [1, 1, 1, 2].into_iter().map(take).collect();
        waits.iter_mut().for_each(|wait| assert!(poll(wait.as_mut()).is_pending()));
        // Given but not used: an ended waiter passes it on.
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
