//! Points that go to Riemann configs: each becomes an event.
//!
//! Path of a point: `Transforms::push_points`, or `Fed::route` -> **[`AllStreams::push_points`]** -> `wire::riemann::points` ->
//! `Streams::push`, as events of a source. Not here: the mapping (`wire`), events of sources (`streams`).
//! Invariant: each point that comes is settled on each edge in the same call.

use model::{EventsBuilder, Now, Outcome, Point, Receipt, RecordAccount, Reject, SourceId};
use wire::riemann::points;

use crate::encode::{OutputEncoder, Routed};
use crate::shard::transforms::relay::Ended;
use crate::shard::transforms::streams::AllStreams;
use crate::shard::transforms::wiring::Edge;

/// Points after which the shard may do something else.
pub(crate) const POINTS_AT_ONCE: usize = 1_000;

/// How points ended in a Riemann config.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndedInStreams {
    /// Events that the streams have seen.
    events: u64,
    /// Events of a config that does not run.
    filtered: u64,
    /// Points that are no events, by [`Reject::index`].
    rejects: [u64; Reject::COUNT],
}

impl EndedInStreams {
    fn none() -> EndedInStreams {
        EndedInStreams { events: 0, filtered: 0, rejects: [0; Reject::COUNT] }
    }

    /// Adds those of further points.
    pub(crate) fn add(&mut self, more: &EndedInStreams) {
        self.events += more.events;
        self.filtered += more.filtered;
        self.rejects.iter_mut().zip(more.rejects).for_each(|(rejects, more)| *rejects += more);
    }

    fn parts(&self) -> impl Iterator<Item = (Outcome, u64)> {
        let events = [(Outcome::Aggregated, self.events), (Outcome::Filtered, self.filtered)];
        let rejects = self.rejects;
        let rejects =
            Reject::ALL.iter().map(move |reason| (Outcome::Rejected(*reason), rejects[reason.index()]));
        events.into_iter().chain(rejects).filter(|(_, records)| *records > 0)
    }

    fn settle_on(&self, edge: &RecordAccount) {
        for (outcome, records) in self.parts() {
            edge.receive(records);
            edge.settle(outcome, records);
        }
    }
}

/// How points of a source ended at the first transform that takes them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PointsEnded {
    Relays(Ended),
    Streams(EndedInStreams),
}

impl PointsEnded {
    /// Settles so many records of `receipt`.
    pub(crate) fn settle(&self, receipt: &mut Receipt) {
        match self {
            PointsEnded::Relays(ended) => ended.settle(receipt),
            PointsEnded::Streams(ended) => {
                ended.parts().for_each(|(outcome, records)| receipt.split(records).settle(outcome));
            }
        }
    }
}

impl AllStreams {
    /// Gives points, whose lines lie in `bytes`, to the configs of these edges, as events of `source`; results of aggregations have none.
    /// Returns how they ended at the first one; none without edges.
    pub(crate) fn push_points(
        &mut self,
        (edges, source): (&[Edge], Option<SourceId>),
        (bytes, points): (&[u8], &[Point]),
        outputs: &mut [OutputEncoder],
        now: Now,
        out: &mut Routed,
    ) -> Option<EndedInStreams> {
        if edges.is_empty() {
            return None;
        }
        let mut made = std::mem::take(&mut self.made);
        let rejects = events_of(bytes, points, &mut made);
        let events = made.len();
        let mut first = None;
        for Edge { at, account } in edges {
            let mut ended = EndedInStreams { rejects, ..EndedInStreams::none() };
            match self.at_mut(*at) {
                Some(streams) if events > 0 => {
                    streams.push((source, made.view(), 0, events), outputs, now, out);
                    ended.events = events as u64;
                }
                Some(_) => {}
                None => ended.filtered = events as u64,
            }
            ended.settle_on(account);
            first.get_or_insert(ended);
        }
        self.made = made;
        first
    }
}

/// The events of points, in their order. Returns why there are none of the others.
fn events_of(bytes: &[u8], points: &[Point], made: &mut EventsBuilder) -> [u64; Reject::COUNT] {
    let mut rejects = [0; Reject::COUNT];
    made.clear();
    for point in points {
        // Some protocols leave tags in the name.
        let name = &point.line.of(bytes)[..(point.name_len + point.tags_len) as usize];
        if let Err(reason) = points::point(name, point.value(bytes), point.time(bytes), made) {
            rejects[reason.index()] += 1;
        }
    }
    rejects
}
