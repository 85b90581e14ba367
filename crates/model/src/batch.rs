//! Batches: many records of one kind, as an arena of bytes and an array of small structs with offsets into it.
//!
//! Path of a packet: an intake makes [`Batches`] from each read -> the shard takes the batches one by one. On one
//! thread they borrow the reader's memory; batches sent to another thread own theirs ([`Batches::into_owned`]).

mod part;

use std::borrow::Cow;

use crate::memory::{memory_of, owned};
use crate::{AckMark, Events, EventsView, Extra, Peer, Point, Receipt, Sample, SourceId, Span};

/// The least memory counted for the batches of a read, because the allocator and the queues also need memory for small
/// ones, and taking them needs time.
pub const BATCH_BYTES_MIN: usize = 1024;

/// Records of one kind from one read.
#[derive(Debug)]
pub struct Batch<'a> {
    /// The records.
    pub records: Records<'a>,
    /// Their promised outcome. `None` where another batch of the same read has the receipt: packets whose samples or
    /// points are in other batches.
    pub receipt: Option<Receipt>,
}

/// The records of a batch, all of one kind.
#[derive(Debug)]
pub enum Records<'a> {
    /// Packets with their borders, unparsed.
    Packets(Packets<'a>),
    /// StatsD observations.
    Samples(Samples<'a>),
    /// Graphite points.
    Points(Points<'a>),
    /// Events.
    Events(Events<'a>),
}

/// Unparsed packets, for raw routes.
#[derive(Clone, Debug)]
pub struct Packets<'a> {
    /// The arena.
    pub bytes: Cow<'a, [u8]>,
    /// The position of each packet in it.
    pub packets: Cow<'a, [Span]>,
}

/// StatsD observations of some packets.
#[derive(Clone, Debug)]
pub struct Samples<'a> {
    /// The arena that all spans point into.
    pub bytes: Cow<'a, [u8]>,
    /// In order of arrival.
    pub samples: Cow<'a, [Sample]>,
    /// Rare fields, see [`Sample::extra`].
    pub extras: Cow<'a, [Extra]>,
    /// Name of each line, when the plan counts names (`keyFlush`).
    pub names: Cow<'a, [Span]>,
    /// Counts of the packets' contents.
    pub tally: Tally,
}

/// Graphite points.
#[derive(Clone, Debug)]
pub struct Points<'a> {
    /// Their lines, each with its LF, without gaps.
    pub bytes: Cow<'a, [u8]>,
    /// In order of arrival.
    pub points: Cow<'a, [Point]>,
    /// The sender, if an output needs it.
    pub peer: Peer,
}

/// Borrowed samples, for an aggregation.
#[derive(Clone, Copy, Debug)]
pub struct SampleView<'a> {
    /// The arena that all spans point into.
    pub bytes: &'a [u8],
    /// The samples, in order of arrival.
    pub samples: &'a [Sample],
    /// Rare fields, see [`Sample::extra`].
    pub extras: &'a [Extra],
}

/// Counts of the packets' contents, with any outcome: for the self-metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Packets: datagrams, frames, or reads of a stream with a whole line.
    pub packets: u64,
    /// Lines, valid or not.
    pub lines: u64,
    /// Rejected samples or lines.
    pub bad: u64,
}

impl Tally {
    /// Adds the counts of another batch.
    pub fn add(&mut self, more: Tally) {
        self.packets += more.packets;
        self.lines += more.lines;
        self.bad += more.bad;
    }
}

impl<'a> Samples<'a> {
    /// The samples, for an aggregation.
    #[inline]
    pub fn view(&self) -> SampleView<'_> {
        SampleView { bytes: &self.bytes, samples: &self.samples, extras: &self.extras }
    }

    /// A copy that owns its memory.
    pub fn into_owned(self) -> Samples<'static> {
        let Samples { bytes, samples, extras, names, tally } = self;
        Samples {
            bytes: owned(bytes),
            samples: owned(samples),
            extras: owned(extras),
            names: owned(names),
            tally,
        }
    }
}

impl Packets<'_> {
    /// A copy that owns its memory.
    pub fn into_owned(self) -> Packets<'static> {
        Packets { bytes: owned(self.bytes), packets: owned(self.packets) }
    }
}

impl Points<'_> {
    /// A copy that owns its memory.
    pub fn into_owned(self) -> Points<'static> {
        Points { bytes: owned(self.bytes), points: owned(self.points), peer: self.peer }
    }

    /// Removes the first points; the arena keeps their lines.
    pub fn skip(&mut self, points: usize) {
        match &mut self.points {
            Cow::Borrowed(all) => *all = &all[points..],
            Cow::Owned(all) => drop(all.drain(..points)),
        }
    }
}

impl Records<'_> {
    /// A copy that owns its memory.
    pub fn into_owned(self) -> Records<'static> {
        match self {
            Records::Packets(packets) => Records::Packets(packets.into_owned()),
            Records::Samples(samples) => Records::Samples(samples.into_owned()),
            Records::Points(points) => Records::Points(points.into_owned()),
            Records::Events(events) => Records::Events(events.into_owned()),
        }
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Records::Packets(Packets { bytes, packets }) => memory_of(bytes) + memory_of(packets),
            Records::Samples(Samples { bytes, samples, extras, names, tally: _ }) => {
                memory_of(bytes) + memory_of(samples) + memory_of(extras) + memory_of(names)
            }
            Records::Points(Points { bytes, points, peer: _ }) => memory_of(bytes) + memory_of(points),
            Records::Events(events) => events.memory_bytes(),
        }
    }
}

impl Batch<'_> {
    /// A copy that owns its memory.
    pub fn into_owned(self) -> Batch<'static> {
        Batch { records: self.records.into_owned(), receipt: self.receipt }
    }

    /// Number of records of its receipt.
    pub fn receipt_records(&self) -> u64 {
        self.receipt.as_ref().map_or(0, Receipt::records)
    }
}

/// Most batches of one read: packets, their samples or points, and events of the same packets.
const KINDS_MAX: usize = 3;

/// The batches of one read: one for each kind of record in it, in the order of the shard.
#[derive(Debug)]
pub struct Batches<'a> {
    /// The source.
    pub source: SourceId,
    batches: [Option<Batch<'a>>; KINDS_MAX],
    /// Number of batches taken out.
    taken: u8,
    /// Number of batches added.
    added: u8,
    /// The client requests an acknowledgement for the lines.
    pub ack: Option<AckMark>,
}

impl<'a> Batches<'a> {
    /// No batch yet.
    #[inline]
    pub fn new(source: SourceId) -> Batches<'a> {
        Batches { source, batches: [None, None, None], taken: 0, added: 0, ack: None }
    }

    /// One batch.
    pub fn one(source: SourceId, records: Records<'a>, receipt: Receipt) -> Batches<'a> {
        let mut one = Batches::new(source);
        one.push(records, Some(receipt));
        one
    }

    /// Adds a batch at the end.
    ///
    /// # Panics
    /// When there is already one of each kind: the caller made two of one kind.
    #[inline]
    pub fn push(&mut self, records: Records<'a>, receipt: Option<Receipt>) {
        // The index checks the limit.
        self.batches[usize::from(self.added)] = Some(Batch { records, receipt });
        self.added += 1;
    }

    /// The batches, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Batch<'a>> {
        self.batches[usize::from(self.taken)..].iter().flatten()
    }

    /// Removes and returns the next batch.
    #[inline]
    pub fn take_next(&mut self) -> Option<&mut Batch<'a>> {
        let next = self.batches.get_mut(usize::from(self.taken))?.as_mut()?;
        self.taken += 1;
        Some(next)
    }

    /// Makes the last removed batch the next one again, because a part of it is left.
    pub fn put_back(&mut self) {
        debug_assert!(self.taken > 0, "one was taken");
        self.taken -= 1;
    }

    /// A copy that owns its memory, for another thread.
    pub fn into_owned(self) -> Batches<'static> {
        let mut owned = Batches { ack: self.ack, ..Batches::new(self.source) };
        for Batch { records, receipt } in self.batches.into_iter().skip(usize::from(self.taken)).flatten() {
            owned.push(records.into_owned(), receipt);
        }
        owned
    }

    /// Number of records without an outcome.
    pub fn records(&self) -> u64 {
        self.iter().map(Batch::receipt_records).sum()
    }

    /// The unparsed packets, if the source has raw routes.
    pub fn packets(&self) -> Option<&Packets<'a>> {
        self.iter().find_map(|batch| match &batch.records {
            Records::Packets(packets) => Some(packets),
            Records::Samples(_) | Records::Points(_) | Records::Events(_) => None,
        })
    }

    /// The samples.
    pub fn samples(&self) -> Option<&Samples<'a>> {
        self.iter().find_map(|batch| match &batch.records {
            Records::Samples(samples) => Some(samples),
            Records::Packets(_) | Records::Points(_) | Records::Events(_) => None,
        })
    }

    /// The points.
    pub fn points(&self) -> Option<&Points<'a>> {
        self.iter().find_map(|batch| match &batch.records {
            Records::Points(points) => Some(points),
            Records::Packets(_) | Records::Samples(_) | Records::Events(_) => None,
        })
    }

    /// The events.
    pub fn events(&self) -> Option<EventsView<'_>> {
        self.iter().find_map(|batch| match &batch.records {
            Records::Events(events) => Some(events.view()),
            Records::Packets(_) | Records::Samples(_) | Records::Points(_) => None,
        })
    }

    /// The tally of its samples if there is nothing else: no record, no acknowledgement, nothing for a raw route.
    pub fn tally_only(&self) -> Option<Tally> {
        if self.ack.is_some() {
            return None;
        }
        let [Some(Batch { records, receipt: None }), None, None] = &self.batches else { return None };
        match records {
            Records::Samples(samples) => {
                (samples.samples.is_empty() && samples.names.is_empty()).then_some(samples.tally)
            }
            Records::Packets(_) | Records::Points(_) | Records::Events(_) => None,
        }
    }

    /// Adds the tally of another read, if this one has samples.
    pub fn add_tally(&mut self, tally: Tally) -> bool {
        let samples = self.batches.iter_mut().flatten().find_map(|batch| match &mut batch.records {
            Records::Samples(samples) => Some(samples),
            Records::Packets(_) | Records::Points(_) | Records::Events(_) => None,
        });
        samples.map(|samples| samples.tally.add(tally)).is_some()
    }

    /// True when there is nothing to pass on.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.taken == self.added && self.ack.is_none()
    }

    /// Memory of the batches, including the struct, for exchanges with a limit in bytes; at least [`BATCH_BYTES_MIN`].
    pub fn memory_bytes(&self) -> usize {
        let held: usize = self.iter().map(|batch| batch.records.memory_bytes()).sum();
        (size_of::<Batches<'_>>() + held).max(BATCH_BYTES_MIN)
    }

    /// Settles all of their records.
    pub fn settle(self, outcome: crate::Outcome) {
        self.batches
            .into_iter()
            .flatten()
            .filter_map(|batch| batch.receipt)
            .for_each(|receipt| receipt.settle(outcome));
    }
}

/// Packets with their borders, collected one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketBatch {
    /// All packets, without gaps.
    pub bytes: Vec<u8>,
    /// The position of each packet in `bytes`.
    pub packets: Vec<Span>,
}

impl PacketBatch {
    /// Appends one packet.
    pub fn push(&mut self, packet: &[u8]) {
        self.packets.push(Span::new(self.bytes.len(), packet.len()));
        self.bytes.extend_from_slice(packet);
    }

    /// The packets, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.packets.iter().map(|packet| packet.of(&self.bytes))
    }

    /// Removes the packets and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.packets.clear();
    }
}

#[test]
fn batches_are_taken_in_order_and_a_returned_one_comes_first() {
    use std::sync::Arc;

    use crate::{Outcome, SourceAccount};
    let account = Arc::new(SourceAccount::default());
    let spans = [Span::new(0, 1), Span::new(1, 1)];
    let packets = || Packets { bytes: Cow::Borrowed(b"ab"), packets: Cow::Borrowed(&spans) };
    let point = Point { hash: 0, line: Span::new(0, 1), name_len: 1, tags_len: 0 };
    let points = [point, Point { line: Span::new(1, 1), ..point }];
    let points = Points { bytes: Cow::Borrowed(b"ab"), points: Cow::Borrowed(&points), peer: Peer::UNKNOWN };
    let mut batches = Batches::new(SourceId(3));
    batches.push(Records::Packets(packets()), None);
    batches.push(Records::Points(points), Some(Receipt::receive(&account, 2)));
    let mut batches = batches.into_owned();
    assert_eq!((batches.records(), batches.is_empty(), batches.tally_only()), (2, false, None));
    assert!(batches.packets().is_some() && batches.points().is_some() && batches.samples().is_none());
    assert!(matches!(batches.take_next(), Some(Batch { records: Records::Packets(_), receipt: None })));
    let Some(Batch { records: Records::Points(points), .. }) = batches.take_next() else { panic!("points") };
    points.skip(1);
    assert_eq!(points.points[0].line, Span::new(1, 1));
    assert!(batches.is_empty());
    batches.put_back();
    let batches = batches.into_owned();
    assert!(batches.packets().is_none(), "it was taken");
    assert_eq!((batches.records(), batches.is_empty()), (2, false));
    batches.settle(Outcome::Routed);
    assert!(account.sum(0).holds());
}
