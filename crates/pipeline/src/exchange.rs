//! The way from connections to the shard's thread: batches in order, bounded in bytes for each source.
//!
//! Reader threads have queues of their own in it (`packet_lanes`); a UDP reader that runs the shard itself does not use it.
//! A sender never waits inside: when its source has no room, it stops reading from its peer until there is room. Batches
//! that an output with `when_full = "block"` has no room for stay here, so that only their source waits.
//!
//! While no source waits, batches leave in the order in which they came. While one waits, sources take turns, and the peers
//! of a source take turns ([`Exchange::take_in_turn`]): freed room is shared among sources and peers, whatever the number of
//! their connections. Batches of one peer at one source always stay in order.

mod packet_lanes;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::{Batches, PeerKey, SourceId};

use self::packet_lanes::PacketLanes;
use crate::rotation::Rotation;

/// A bounded queue of batches between threads.
#[derive(Debug)]
pub struct Exchange {
    lanes: Mutex<Lanes>,
    /// Bound of each source.
    bytes_max: usize,
    /// Records inside, per source.
    in_flight: Vec<AtomicU64>,
    /// From readers of datagrams.
    packets: PacketLanes,
}

#[derive(Debug, Default)]
struct Lanes {
    /// By source, as far as one has sent something.
    of: Vec<Lane>,
    /// Batches in all lanes.
    batches: usize,
    /// Number of the next batch.
    next: u64,
    /// The source that had the last turn.
    last: usize,
    closed: bool,
}

/// Batches of one source, numbered over all sources as they came.
#[derive(Debug, Default)]
struct Lane {
    batches: Rotation<PeerKey, (u64, Batches<'static>)>,
    /// By the number of each peer's next batch: whose it is.
    by_age: BTreeMap<u64, PeerKey>,
    /// Who sent the latest batch, and its number.
    latest: Option<(u64, PeerKey)>,
    bytes: usize,
}

impl Lane {
    fn push(&mut self, number: u64, from: PeerKey, batch: Batches<'static>) {
        self.bytes += batch.memory_bytes();
        if self.batches.first_of(from).is_none() {
            self.by_age.insert(number, from);
        }
        self.latest = Some((number, from));
        self.batches.push(from, (number, batch));
    }

    /// The rest of a batch is the next one of its peer, and as old as one that comes now.
    fn put_back(&mut self, number: u64, from: PeerKey, batch: Batches<'static>) {
        self.bytes += batch.memory_bytes();
        if let Some((next, _)) = self.batches.first_of(from) {
            self.by_age.remove(next);
        }
        self.by_age.insert(number, from);
        self.batches.put_back(from, (number, batch));
    }

    /// The batch that came last, as long as it is inside.
    fn last(&mut self) -> Option<&mut Batches<'static>> {
        let (latest, from) = self.latest?;
        self.batches.last_of(from).filter(|(number, _)| *number == latest).map(|(_, batch)| batch)
    }

    fn pop_oldest(&mut self) -> Option<(PeerKey, Batches<'static>)> {
        let (_, from) = self.by_age.first_key_value()?;
        let from = *from;
        let popped = self.batches.pop_of(from)?;
        Some(self.popped(from, popped))
    }

    /// The batch whose turn it is, with its number.
    fn pop_numbered(&mut self) -> Option<(u64, PeerKey, Batches<'static>)> {
        let (from, (number, batch)) = self.batches.pop()?;
        let (from, batch) = self.popped(from, (number, batch));
        Some((number, from, batch))
    }

    /// The same batch is again the next one, as if it had not been popped.
    fn push_front(&mut self, number: u64, from: PeerKey, batch: Batches<'static>) {
        self.bytes += batch.memory_bytes();
        if let Some((next, _)) = self.batches.first_of(from) {
            self.by_age.remove(next);
        }
        self.by_age.insert(number, from);
        self.batches.push_front(from, (number, batch));
    }

    fn popped(
        &mut self,
        from: PeerKey,
        (number, batch): (u64, Batches<'static>),
    ) -> (PeerKey, Batches<'static>) {
        self.by_age.remove(&number);
        if let Some((next, _)) = self.batches.first_of(from) {
            self.by_age.insert(*next, from);
        }
        self.bytes -= batch.memory_bytes();
        (from, batch)
    }
}

/// One look at what is inside: a source that cannot have its turn is asked once.
#[derive(Debug, Default)]
pub struct Look {
    /// By source: it waits.
    waits: Vec<bool>,
}

impl Exchange {
    /// An empty exchange for so many sources, with `bytes_max` for each: a batch is taken as long as those before it are under
    /// that, so that what is inside may be over it by one batch.
    pub fn new(bytes_max: usize, sources: usize) -> Exchange {
        let in_flight = (0..sources).map(|_| AtomicU64::new(0)).collect();
        Exchange { lanes: Mutex::default(), bytes_max, in_flight, packets: PacketLanes::default() }
    }

    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts `batch` of the peer `from` at the end, or gives it back when there is no room for it. One that is nothing but a tally is added to the
    /// one before it, however full the source's share is: a flood of bad lines behind it takes no memory.
    ///
    /// # Errors
    /// The batch itself: the caller keeps it and stops reading until it is taken.
    #[expect(clippy::result_large_err, reason = "the error is the batch itself, handed back")]
    pub fn try_send(&self, from: PeerKey, batch: Batches<'static>) -> Result<(), Batches<'static>> {
        self.send_within(from, batch, self.bytes_max)
    }

    /// The same of a batch that was read when [`Self::has_room`] was true: it is taken although another reader may have used
    /// that room since. Each reader sends one such batch at most for each time that it has looked.
    ///
    /// # Errors
    /// The batch itself, when nobody takes it any more.
    #[expect(clippy::result_large_err, reason = "the error is the batch itself, handed back")]
    pub fn send_into_found_room(
        &self,
        from: PeerKey,
        batch: Batches<'static>,
    ) -> Result<(), Batches<'static>> {
        self.send_within(from, batch, usize::MAX)
    }

    #[expect(clippy::result_large_err, reason = "the error is the batch itself, handed back")]
    fn send_within(
        &self,
        from: PeerKey,
        batch: Batches<'static>,
        bytes_max: usize,
    ) -> Result<(), Batches<'static>> {
        let source = batch.source.index();
        let mut lanes = self.lanes();
        if lanes.of.len() <= source {
            lanes.of.resize_with(source + 1, Lane::default);
        }
        if let Some(tally) = batch.tally_only()
            && !lanes.closed
            && let Some(last) = lanes.of[source].last()
            && last.add_tally(tally)
        {
            return Ok(());
        }
        let held = lanes.of[source].bytes;
        if lanes.closed || held >= bytes_max {
            return Err(batch);
        }
        self.in_flight[source].fetch_add(batch.records(), Relaxed);
        let number = lanes.next;
        lanes.next += 1;
        lanes.batches += 1;
        lanes.of[source].push(number, from, batch);
        Ok(())
    }

    /// True when a batch of `source` would be taken now, or none ever will. A reader that asks before it reads holds nothing
    /// while it waits.
    pub fn has_room(&self, source: SourceId) -> bool {
        let lanes = self.lanes();
        lanes.closed || lanes.of.get(source.index()).is_none_or(|lane| lane.bytes < self.bytes_max)
    }

    /// Counts `records` of `source` as in flight until [`Exchange::uncount_outside`]: they were read, and are with nobody else.
    pub fn count_outside(&self, source: SourceId, records: u64) {
        self.in_flight[source.index()].fetch_add(records, Relaxed);
    }

    /// Ends what [`Exchange::count_outside`] began.
    pub fn uncount_outside(&self, source: SourceId, records: u64) {
        self.in_flight[source.index()].fetch_sub(records, Relaxed);
    }

    /// Counts `records` of `source` as in flight for as long as their batch waits outside for room.
    pub fn outside(&self, source: SourceId, records: u64) -> Outside<'_> {
        let in_flight = &self.in_flight[source.index()];
        in_flight.fetch_add(records, Relaxed);
        Outside { in_flight, records }
    }

    /// Moves all batches to `into`, oldest first. Their records stop being in flight.
    pub fn take_all(&self, into: &mut Vec<Batches<'static>>) {
        while let Some((_, batch)) = self.take_oldest() {
            into.push(batch);
        }
    }

    /// Takes out the oldest batch, if there is one, and says whose it is.
    pub fn take_oldest(&self) -> Option<(PeerKey, Batches<'static>)> {
        let mut lanes = self.lanes();
        if lanes.batches == 0 {
            return None;
        }
        let oldest = |(source, lane): (usize, &Lane)| Some((*lane.by_age.first_key_value()?.0, source));
        let (_, source) = lanes.of.iter().enumerate().filter_map(oldest).min()?;
        let (from, batch) = lanes.of[source].pop_oldest()?;
        Some((from, self.taken(&mut lanes, batch)))
    }

    /// Takes out the next batch of the next source whose turn it is and that is `ready` for it, if there is one. A source
    /// that is not keeps its turn, and is not asked again in this `look`.
    pub fn take_in_turn(
        &self,
        look: &mut Look,
        mut ready: impl FnMut(&Batches<'static>) -> bool,
    ) -> Option<(PeerKey, Batches<'static>)> {
        let (sources, first) = {
            let lanes = self.lanes();
            if lanes.batches == 0 {
                return None;
            }
            (lanes.of.len(), lanes.last + 1)
        };
        look.waits.resize(sources.max(look.waits.len()), false);
        for source in (first..first + sources).map(|at| at % sources) {
            if look.waits[source] {
                continue;
            }
            // It leaves its lane meanwhile: `ready` looks at all of it, and readers do not wait for that.
            let Some((number, from, batch)) = self.lanes().of[source].pop_numbered() else { continue };
            if ready(&batch) {
                let mut lanes = self.lanes();
                lanes.last = source;
                return Some((from, self.taken(&mut lanes, batch)));
            }
            self.lanes().of[source].push_front(number, from, batch);
            look.waits[source] = true;
        }
        None
    }

    fn taken(&self, lanes: &mut Lanes, batch: Batches<'static>) -> Batches<'static> {
        lanes.batches -= 1;
        self.in_flight[batch.source.index()].fetch_sub(batch.records(), Relaxed);
        batch
    }

    /// Puts back what is left of a batch that was taken: it is the next one of its peer, and comes behind what others have
    /// sent so far. There is room for it however much is inside, also when nothing else is taken any more.
    pub fn set_back(&self, from: PeerKey, batch: Batches<'static>) {
        self.in_flight[batch.source.index()].fetch_add(batch.records(), Relaxed);
        let mut lanes = self.lanes();
        let number = lanes.next;
        lanes.next += 1;
        lanes.batches += 1;
        lanes.of[batch.source.index()].put_back(number, from, batch);
    }

    /// Takes no more batches: nobody will come for them. What is inside stays for [`Self::take_all`] and [`Self::take_packets`].
    pub fn close(&self) {
        self.lanes().closed = true;
        self.close_packet_lanes();
    }

    /// True once nothing is taken any more.
    pub fn is_closed(&self) -> bool {
        self.lanes().closed
    }

    /// True when a batch of that peer and source is inside.
    pub fn holds(&self, source: SourceId, from: PeerKey) -> bool {
        let lanes = self.lanes();
        lanes.of.get(source.index()).is_some_and(|lane| lane.batches.first_of(from).is_some())
    }

    /// True when nothing is inside.
    pub fn is_empty(&self) -> bool {
        self.lanes().batches == 0
    }

    /// What is inside of all sources: (bytes of memory, records).
    pub fn held(&self) -> (u64, u64) {
        let lanes = self.lanes();
        let bytes: usize = lanes.of.iter().map(|lane| lane.bytes).sum();
        let records = self.in_flight.iter().take(lanes.of.len()).map(|records| records.load(Relaxed));
        (bytes as u64, records.sum())
    }

    /// Records of `source` that are inside.
    pub fn in_flight(&self, source: SourceId) -> u64 {
        self.in_flight.get(source.index()).map_or(0, |records| records.load(Relaxed))
    }
}

/// Records whose batch waits for room outside an [`Exchange`]. Dropped when it has found room, or another end.
#[derive(Debug)]
pub struct Outside<'a> {
    in_flight: &'a AtomicU64,
    records: u64,
}

impl Drop for Outside<'_> {
    fn drop(&mut self) {
        self.in_flight.fetch_sub(self.records, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::sync::Arc;

    use model::{BATCH_BYTES_MIN, Outcome, Receipt, Records, Samples, SourceAccount, Span, Tally};

    use super::*;

    const PEER: PeerKey = PeerKey::V4(1);

    /// One record of a source, with so many bytes.
    fn of_source(source: u16, account: &Arc<SourceAccount>, bytes: usize) -> Batches<'static> {
        let samples = samples(bytes, &[], Tally::default());
        Batches::one(SourceId(source), Records::Samples(samples), Receipt::receive(account, 1))
    }

    fn samples(bytes: usize, names: &[Span], tally: Tally) -> Samples<'static> {
        Samples {
            bytes: Cow::Owned(vec![0; bytes]),
            samples: Cow::Borrowed(&[]),
            extras: Cow::Borrowed(&[]),
            names: Cow::Owned(names.to_vec()),
            tally,
        }
    }

    /// One record that holds so many KiB, itself included.
    fn batch(account: &Arc<SourceAccount>, kib: usize) -> Batches<'static> {
        of_source(0, account, kib * 1024 - size_of::<Batches<'_>>())
    }

    fn kib(batch: &Batches<'_>) -> usize {
        batch.memory_bytes() / 1024
    }

    fn bytes(batch: &Batches<'_>) -> usize {
        batch.samples().map_or(0, |samples| samples.bytes.len())
    }

    /// No record, but lines that were seen.
    fn tally(names: &[Span], lines: u64) -> Batches<'static> {
        let mut only = Batches::new(SourceId(0));
        let seen = Tally { packets: 1, lines, bad: lines };
        only.push(Records::Samples(samples(0, names, seen)), None);
        only
    }

    #[test]
    fn a_full_exchange_gives_the_batch_back() {
        let account = Arc::new(SourceAccount::default());
        let exchange = Exchange::new(100 * 1024, 2);
        assert!(exchange.try_send(PEER, batch(&account, 60)).is_ok());
        assert!(exchange.has_room(SourceId(0)));
        assert!(exchange.try_send(PEER, batch(&account, 40)).is_ok(), "exactly at the bound");
        assert!(!exchange.has_room(SourceId(0)) && exchange.has_room(SourceId(1)));
        let back = exchange.try_send(PEER, batch(&account, 1)).expect_err("past the bound");
        let outside = exchange.outside(SourceId(0), back.records());
        assert!(account.sum(exchange.in_flight(SourceId(0))).holds(), "what waits outside is in flight too");
        drop(outside);
        back.settle(Outcome::Filtered);
        assert_eq!(exchange.in_flight(SourceId(0)), 2);

        let mut taken = Vec::new();
        exchange.take_all(&mut taken);
        assert_eq!(taken.iter().map(kib).collect::<Vec<_>>(), [60, 40]);
        assert_eq!(exchange.in_flight(SourceId(0)), 0);
        taken.drain(..).for_each(|batch| batch.settle(Outcome::Aggregated));
        assert!(exchange.try_send(PEER, batch(&account, 99)).is_ok());
        assert!(
            exchange.try_send(PEER, batch(&account, 101)).is_ok(),
            "one that begins under the bound is taken whole"
        );
        assert!(!exchange.has_room(SourceId(0)));
        exchange.take_all(&mut taken);
        taken.drain(..).for_each(|batch| batch.settle(Outcome::Aggregated));
        exchange.close();
        assert!(exchange.is_closed() && exchange.is_empty() && exchange.has_room(SourceId(0)));
        let back = exchange.try_send(PEER, batch(&account, 1)).expect_err("nobody will come for it");
        back.settle(Outcome::Dropped(model::Dropped::Stopped));
        assert!(account.sum(0).holds());
    }

    #[test]
    fn a_source_that_waits_keeps_its_order_and_holds_up_no_other() {
        let account = Arc::new(SourceAccount::default());
        let exchange = Exchange::new(100 * 1024, 2);
        let send = |source: u16, kib: usize| {
            let batch = of_source(source, &account, kib * 1024 - size_of::<Batches<'_>>());
            exchange.try_send(PEER, batch).map_err(|back| back.settle(Outcome::Filtered))
        };
        for (source, kib) in [(0, 70), (1, 20), (0, 30), (1, 80)] {
            assert!(send(source, kib).is_ok());
        }
        assert!(send(0, 1).is_err() && send(1, 1).is_err(), "each source has a bound of its own");
        let mut got = Vec::new();
        let mut take = |ready: &dyn Fn(&Batches<'static>) -> bool| {
            let mut look = Look::default();
            while let Some((_, batch)) = exchange.take_in_turn(&mut look, ready) {
                got.push((batch.source.0, kib(&batch)));
                batch.settle(Outcome::Routed);
            }
        };
        take(&|batch| batch.source == SourceId(1));
        assert_eq!((exchange.in_flight(SourceId(0)), exchange.in_flight(SourceId(1))), (2, 0));
        assert!(send(1, 100).is_ok() && send(0, 1).is_err());
        // A batch that would do does not overtake one of its source that would not.
        assert!(exchange.take_in_turn(&mut Look::default(), |batch| kib(batch) == 30).is_none());
        take(&|_| true);
        assert_eq!(got, [(1, 20), (1, 80), (0, 70), (1, 100), (0, 30)]);
        assert!(exchange.is_empty() && account.sum(0).holds());
    }

    /// (source, last number of the peer's address) of what is taken, each as far as `ready`.
    fn in_turn(exchange: &Exchange, room: usize) -> Vec<(u16, u32)> {
        let mut look = Look::default();
        let next = || exchange.take_in_turn(&mut look, |_| true);
        let batches = std::iter::from_fn(next).take(room).map(|(_, batch)| {
            let from = bytes(&batch) as u32;
            let source = batch.source.0;
            batch.settle(Outcome::Routed);
            (source, from)
        });
        batches.collect()
    }

    #[test]
    fn room_goes_by_turns_to_sources_and_within_them_to_peers() {
        let account = Arc::new(SourceAccount::default());
        let exchange = Exchange::new(1 << 20, 3);
        // A peer with a hundred batches, and innocent ones behind it at its source and at another one.
        let sent = (0..100).map(|_| (0, 1)).chain([(0, 2), (0, 3), (2, 1), (2, 4), (2, 1)]);
        for (source, peer) in sent {
            let batch = of_source(source, &account, peer as usize);
            assert!(exchange.try_send(PeerKey::V4(peer), batch).is_ok());
        }
        assert_eq!(in_turn(&exchange, 3), [(2, 1), (0, 1), (2, 4)]);
        assert_eq!(in_turn(&exchange, 4), [(0, 2), (2, 1), (0, 3), (0, 1)], "turns go on from look to look");
        assert_eq!(exchange.take_oldest().map(|(_, batch)| batch.settle(Outcome::Routed)), Some(()));
        assert_eq!(in_turn(&exchange, 1_000), [(0, 1); 97]);
        assert_eq!((exchange.held(), exchange.is_empty()), ((0, 0), true));
        assert!(account.sum(0).holds());
        let lanes = exchange.lanes();
        assert!(lanes.of.iter().all(|lane| lane.batches.is_empty() && lane.by_age.is_empty()));
    }

    #[test]
    fn a_source_that_waits_is_asked_once_a_look() {
        let account = Arc::new(SourceAccount::default());
        let exchange = Exchange::new(1 << 20, 2);
        let send = |source: u16| {
            let batch = of_source(source, &account, 1);
            assert!(exchange.try_send(PEER, batch).is_ok());
        };
        (0..100).for_each(|_| send(0));
        (0..100).for_each(|_| send(1));
        let (mut look, mut asked, mut taken) = (Look::default(), [0; 2], 0);
        while let Some((_, batch)) = exchange.take_in_turn(&mut look, |batch| {
            asked[batch.source.index()] += 1;
            batch.source == SourceId(1)
        }) {
            taken += 1;
            batch.settle(Outcome::Routed);
        }
        assert_eq!((taken, asked), (100, [1, 100]));
        while let Some((_, batch)) = exchange.take_oldest() {
            batch.settle(Outcome::Routed);
        }
        assert!(exchange.take_in_turn(&mut look, |_| true).is_none() && account.sum(0).holds());
    }

    #[test]
    fn what_is_left_of_a_batch_is_the_next_of_its_peer_behind_those_of_others() {
        let account = Arc::new(SourceAccount::default());
        let exchange = Exchange::new(200 * 1024, 2);
        let of = |source: u16, kib: usize| of_source(source, &account, kib * 1024 - size_of::<Batches<'_>>());
        let other = PeerKey::V4(2);
        for (source, from, kib) in
            [(0, PEER, 70), (0, PEER, 40), (1, PEER, 20), (0, other, 10), (1, PEER, 30), (0, PEER, 15)]
        {
            assert!(exchange.try_send(from, of(source, kib)).is_ok());
        }
        let (from, first) = exchange.take_oldest().expect("there are six");
        assert_eq!((from, first.source.0, kib(&first)), (PEER, 0, 70));
        exchange.set_back(from, first);
        assert_eq!(exchange.in_flight(SourceId(0)), 4);
        assert!(exchange.try_send(PEER, of(1, 5)).is_ok());
        let rest = || {
            let mut got = Vec::new();
            while let Some((_, batch)) = exchange.take_oldest() {
                got.push((batch.source.0, kib(&batch)));
                batch.settle(Outcome::Routed);
            }
            got
        };
        assert_eq!(rest(), [(1, 20), (0, 10), (1, 30), (0, 70), (0, 40), (0, 15), (1, 5)]);
        // In turns likewise, and when nothing is taken any more.
        for (from, kib) in [(PEER, 70), (PEER, 40), (other, 10)] {
            assert!(exchange.try_send(from, of(0, kib)).is_ok());
        }
        let (from, first) = exchange.take_in_turn(&mut Look::default(), |_| true).expect("there are three");
        exchange.close();
        exchange.set_back(from, first);
        let mut got = Vec::new();
        while let Some((_, batch)) = exchange.take_in_turn(&mut Look::default(), |_| true) {
            got.push(kib(&batch));
            batch.settle(Outcome::Dropped(model::Dropped::Stopped));
        }
        assert_eq!(got, [10, 70, 40]);
        assert!(exchange.is_empty() && account.sum(0).holds());
    }

    #[test]
    fn batches_without_a_record_never_fill_the_memory() {
        let account = Arc::new(SourceAccount::default());
        let exchange = Exchange::new(100 * 1024, 2);
        // The first one goes on its own, those behind it with it.
        for lines in 1..=1_000 {
            assert!(exchange.try_send(PEER, tally(&[], lines)).is_ok());
        }
        assert_eq!(exchange.held(), (BATCH_BYTES_MIN as u64, 0));
        // Behind one that waits, in an exchange that is full.
        assert!(exchange.try_send(PEER, batch(&account, 200)).is_ok() && !exchange.has_room(SourceId(0)));
        let held = exchange.held();
        for _ in 0..1_000 {
            assert!(exchange.try_send(PEER, tally(&[], 2)).is_ok());
        }
        assert_eq!(exchange.held(), held);
        let mut taken = Vec::new();
        exchange.take_all(&mut taken);
        let tallies: Vec<(u64, u64)> = taken
            .iter()
            .filter_map(Batches::samples)
            .map(|some| (some.tally.packets, some.tally.bad))
            .collect();
        assert_eq!(tallies, [(1_000, 500_500), (1_000, 2_000)], "no line is lost to the counters");
        taken.drain(..).for_each(|batch| batch.settle(Outcome::Aggregated));
        // What a raw route wants, or a client waits for, goes by itself.
        for at in 0..3 {
            assert!(exchange.try_send(PEER, tally(&[Span::new(0, at)], 1)).is_ok());
        }
        assert_eq!(exchange.held().0, 3 * BATCH_BYTES_MIN as u64);
        exchange.close();
        assert!(exchange.try_send(PEER, tally(&[], 1)).is_err_and(|back| {
            back.settle(Outcome::Filtered);
            true
        }));
        assert!(account.sum(0).holds());
    }

    #[test]
    fn however_small_batches_are_so_many_fit() {
        let account = Arc::new(SourceAccount::default());
        let exchange = Exchange::new(100 * 1024, 2);
        let small = || of_source(0, &account, 0);
        for _ in 0..100 {
            assert!(exchange.try_send(PEER, small()).is_ok());
        }
        let back = exchange.try_send(PEER, small()).expect_err("each takes memory");
        back.settle(Outcome::Filtered);
        let mut taken = Vec::new();
        exchange.take_all(&mut taken);
        taken.drain(..).for_each(|batch| batch.settle(Outcome::Aggregated));
        assert_eq!(exchange.held(), (0, 0));
    }
}
