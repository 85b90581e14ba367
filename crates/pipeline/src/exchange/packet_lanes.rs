//! The way from threads that read datagrams to the shard's thread: a lane for each reader, bounded in bytes for each source.
//!
//! Path of a packet: a reader's `Intake::datagrams` -> [`Exchange::send_packets`] -> [`Exchange::take_packets`] -> `Shard::push_while`.
//! Apart from the batches of connections: those may wait for a queue that is full (`block`), and datagrams wait for no queue. A lane
//! has one sender and is a queue, so what one reader has read stays in order.
//! Invariants: no reader waits in here, for the shard or for another reader. A lane takes a batch of a source as long as it
//! holds less than its bound of that source, so it exceeds the bound by one batch at most. A batch that it does not take goes
//! back to its reader, which settles it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::{Batches, SourceId};

use super::Exchange;

/// All lanes of an exchange.
#[derive(Debug, Default)]
pub(super) struct PacketLanes {
    of: Box<[Lane]>,
    /// Bound of each source in each lane.
    bytes_max: usize,
}

/// The lane of one reader. Lanes share no cache line, so that readers do not disturb each other.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Lane {
    inside: Mutex<Inside>,
    /// Batches inside, for a look without the lock.
    batches: AtomicUsize,
}

#[derive(Debug, Default)]
struct Inside {
    batches: VecDeque<Batches<'static>>,
    /// By source, as far as one has sent something.
    bytes: Vec<usize>,
    closed: bool,
}

impl Lane {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    fn bytes_of(&mut self, source: SourceId) -> &mut usize {
        let at = source.index();
        if self.bytes.len() <= at {
            self.bytes.resize(at + 1, 0);
        }
        &mut self.bytes[at]
    }

    /// Adds a batch that is nothing but a tally to the one before it.
    fn add_tally(&mut self, batch: &Batches<'static>) -> bool {
        let last = self.batches.back_mut().filter(|last| last.source == batch.source);
        last.zip(batch.tally_only()).is_some_and(|(last, tally)| last.add_tally(tally))
    }
}

impl Exchange {
    /// With a lane for each of so many readers of datagrams. In each lane, a source may have `bytes_max`.
    #[must_use]
    pub fn with_packet_lanes(mut self, readers: usize, bytes_max: usize) -> Exchange {
        self.packets = PacketLanes { of: (0..readers).map(|_| Lane::default()).collect(), bytes_max };
        self
    }

    /// Lanes of readers of datagrams.
    pub fn packet_lanes(&self) -> usize {
        self.packets.of.len()
    }

    /// Puts a batch at the end of a reader's lane. One that is nothing but a tally is added to the one before it, however full the
    /// lane is: a flood of bad lines behind it takes no memory.
    ///
    /// # Errors
    /// The batch itself, where its source has used up its room, or when nobody takes it any more ([`Exchange::is_closed`]).
    #[expect(clippy::result_large_err, reason = "the error is the batch itself, handed back")]
    pub fn send_packets(&self, reader: usize, batch: Batches<'static>) -> Result<(), Batches<'static>> {
        let lane = &self.packets.of[reader];
        let mut inside = lane.inside();
        if inside.closed {
            return Err(batch);
        }
        if inside.add_tally(&batch) {
            return Ok(());
        }
        let held = inside.bytes_of(batch.source);
        if *held >= self.packets.bytes_max {
            return Err(batch);
        }
        *held += batch.memory_bytes();
        self.in_flight[batch.source.index()].fetch_add(batch.records(), Relaxed);
        inside.batches.push_back(batch);
        lane.batches.store(inside.batches.len(), Relaxed);
        Ok(())
    }

    /// True when a batch of `source` would be taken from this reader now, or none ever will.
    pub fn has_packet_room(&self, reader: usize, source: SourceId) -> bool {
        let mut inside = self.packets.of[reader].inside();
        inside.closed || *inside.bytes_of(source) < self.packets.bytes_max
    }

    /// Takes out the oldest batch of a reader. Its records stop being in flight.
    pub fn take_packets(&self, reader: usize) -> Option<Batches<'static>> {
        let lane = &self.packets.of[reader];
        if lane.batches.load(Relaxed) == 0 {
            // One that comes just now is found by the next look; before it sleeps, the shard asks `has_packets`.
            return None;
        }
        let mut inside = lane.inside();
        let batch = inside.batches.pop_front()?;
        *inside.bytes_of(batch.source) -= batch.memory_bytes();
        lane.batches.store(inside.batches.len(), Relaxed);
        self.in_flight[batch.source.index()].fetch_sub(batch.records(), Relaxed);
        Some(batch)
    }

    /// Puts back what is left of a batch that was taken: it is the next one of its reader, however much is inside.
    pub fn set_packets_back(&self, reader: usize, batch: Batches<'static>) {
        self.in_flight[batch.source.index()].fetch_add(batch.records(), Relaxed);
        let lane = &self.packets.of[reader];
        let mut inside = lane.inside();
        *inside.bytes_of(batch.source) += batch.memory_bytes();
        inside.batches.push_front(batch);
        lane.batches.store(inside.batches.len(), Relaxed);
    }

    /// True when some reader's lane has a batch: whatever was sent before this call is seen.
    pub fn has_packets(&self) -> bool {
        self.packets.of.iter().any(|lane| !lane.inside().batches.is_empty())
    }

    pub(super) fn close_packet_lanes(&self) {
        self.packets.of.iter().for_each(|lane| lane.inside().closed = true);
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::sync::Arc;

    use model::{BATCH_BYTES_MIN, Dropped, Outcome, Receipt, Records, Samples, SourceAccount, Tally};

    use super::*;

    const KIB: usize = 1024;

    fn samples(bytes: usize, tally: Tally) -> Samples<'static> {
        Samples {
            bytes: Cow::Owned(vec![0; bytes]),
            samples: Cow::Borrowed(&[]),
            extras: Cow::Borrowed(&[]),
            names: Cow::Borrowed(&[]),
            tally,
        }
    }

    /// One record of a source that holds so many bytes, itself included.
    fn batch(source: u16, account: &Arc<SourceAccount>, bytes: usize) -> Batches<'static> {
        let samples = samples(bytes - size_of::<Batches<'_>>(), Tally::default());
        Batches::one(SourceId(source), Records::Samples(samples), Receipt::receive(account, 1))
    }

    fn tally(lines: u64) -> Batches<'static> {
        let mut only = Batches::new(SourceId(0));
        let seen = Tally { packets: 1, lines, bad: lines };
        only.push(Records::Samples(samples(0, seen)), None);
        only
    }

    fn settled(taken: Option<Batches<'static>>) -> Option<usize> {
        let taken = taken?;
        let bytes = taken.memory_bytes();
        taken.settle(Outcome::Aggregated);
        Some(bytes)
    }

    #[test]
    fn batch_is_given_back_when_source_has_used_up_its_room_in_the_lane() {
        let accounts: [Arc<SourceAccount>; 2] = Default::default();
        let exchange = Exchange::new(1, 2).with_packet_lanes(2, 100 * KIB);
        let send = |reader, source: u16, kib: usize| {
            let sent =
                exchange.send_packets(reader, batch(source, &accounts[usize::from(source)], kib * KIB));
            sent.map_err(|back| back.settle(Outcome::Dropped(Dropped::ExchangeFull))).is_ok()
        };
        assert!(send(0, 0, 60) && exchange.has_packet_room(0, SourceId(0)));
        assert!(send(0, 0, 40), "exactly at the bound");
        assert!(!exchange.has_packet_room(0, SourceId(0)));
        assert!(!send(0, 0, 1), "past the bound");
        assert!(send(0, 1, 1) && send(1, 0, 99) && send(1, 0, 200), "other sources and readers have room");
        assert!(!exchange.has_packet_room(1, SourceId(0)), "past the bound by one batch");
        assert_eq!((exchange.in_flight(SourceId(0)), exchange.in_flight(SourceId(1))), (4, 1));
        assert_eq!(settled(exchange.take_packets(0)), Some(60 * KIB));
        assert!(exchange.has_packet_room(0, SourceId(0)));
        for kib in [40, 1] {
            assert_eq!(settled(exchange.take_packets(0)), Some(kib * KIB));
        }
        assert_eq!(settled(exchange.take_packets(0)), None);
        assert!(exchange.has_packets(), "of the other reader");
        for kib in [99, 200] {
            assert_eq!(settled(exchange.take_packets(1)), Some(kib * KIB));
        }
        assert!(!exchange.has_packets() && exchange.in_flight(SourceId(0)) == 0);
        assert!(accounts.iter().all(|account| account.sum(0).holds()));
        assert_eq!(accounts[0].dropped(Dropped::ExchangeFull), 1);
    }

    #[test]
    fn rest_of_a_batch_is_the_next_one_of_its_reader() {
        let account = Arc::default();
        let exchange = Exchange::new(1, 1).with_packet_lanes(1, 10 * KIB);
        for kib in [9, 8] {
            assert!(exchange.send_packets(0, batch(0, &account, kib * KIB)).is_ok());
        }
        let first = exchange.take_packets(0).expect("there are two");
        assert!(exchange.send_packets(0, batch(0, &account, 7 * KIB)).is_ok());
        exchange.set_packets_back(0, first);
        assert_eq!(exchange.in_flight(SourceId(0)), 3);
        for kib in [9, 8, 7] {
            assert_eq!(settled(exchange.take_packets(0)), Some(kib * KIB));
        }
        assert!(account.sum(0).holds());
    }

    #[test]
    fn closed_lanes_take_nothing_and_keep_what_they_hold() {
        let account = Arc::default();
        let exchange = Exchange::new(1, 1).with_packet_lanes(2, KIB);
        assert!(exchange.send_packets(1, batch(0, &account, KIB)).is_ok());
        exchange.close();
        for reader in [0, 1] {
            assert!(exchange.has_packet_room(reader, SourceId(0)), "nobody waits for room that never comes");
            let back = exchange.send_packets(reader, batch(0, &account, KIB)).expect_err("it is closed");
            back.settle(Outcome::Dropped(Dropped::Stopped));
        }
        assert_eq!(settled(exchange.take_packets(1)), Some(KIB));
        assert!(account.sum(0).holds());
    }

    #[test]
    fn tallies_of_bad_lines_take_no_memory() {
        let exchange = Exchange::new(1, 1).with_packet_lanes(1, BATCH_BYTES_MIN);
        for _ in 0..1000 {
            assert!(exchange.send_packets(0, tally(3)).is_ok());
        }
        let all = exchange.take_packets(0).expect("there is one");
        let samples = all.samples().map(|samples| samples.tally);
        assert_eq!(samples, Some(Tally { packets: 1000, lines: 3000, bad: 3000 }));
        assert!(exchange.take_packets(0).is_none());
    }
}
