//! A checkpoint of a config that runs, in slices.
//!
//! Streams of the config are taken as they are when it begins. Forks of `by` and events of the index are taken while events go on, each
//! as it is when it is its turn: those of the first [`AT_ONCE`] forks and events at the beginning, too.
//!
//! Clients choose how large events are, so each slice ends by its bytes after each event, fork or state. One that is too large by itself,
//! or that a full checkpoint has no room for, is left out and counted.

use std::collections::VecDeque;
use std::sync::Arc;

use super::archive::{Archive, VALUE_BYTES_MAX};
use super::shared::Shared;
use crate::event::Event;
use crate::graph::{Graph, Identity, NodeId};
use crate::value::Value;

/// Forks and events of the index that are taken when the checkpoint begins, at most: it takes the shard's thread 10 to 20 ms.
pub const AT_ONCE: usize = 10_000;

/// Forks whose states are written together.
const FORKS_TOGETHER: usize = 16;

/// Bytes of a checkpoint and of its parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// The beginning ends after so many bytes, though fewer forks and events were taken than may be.
    begin: usize,
    /// So does a slice.
    slice: usize,
    /// Of one event, fork or state.
    value: usize,
    /// Of all.
    total: u64,
}

impl Bounds {
    /// What holds: files of checkpoints have room for 4 GiB.
    pub(super) const DEFAULT: Bounds =
        Bounds { begin: 4 << 20, slice: 256 * 1024, value: VALUE_BYTES_MAX, total: 2 << 30 };
}

const _: () = assert!(Bounds::DEFAULT.begin + 2 * Bounds::DEFAULT.value < u32::MAX as usize, "of a block");

/// What a record is.
pub(super) mod record {
    /// Identity, origin, state of a stream.
    pub(in super::super) const STREAM: u8 = 1;
    /// An event of the index.
    pub(in super::super) const EVENT: u8 = 2;
}

/// What is still to be written.
#[derive(Debug)]
enum Part {
    /// What a stream remembers.
    State(Identity, NodeId, Value),
    /// A stream with forks, from that one on.
    Forks(Identity, NodeId, usize),
    /// The index, from that slot on.
    Index(u32),
}

/// A checkpoint under way.
#[derive(Debug)]
pub struct Saving {
    parts: VecDeque<Part>,
    bounds: Bounds,
    shared: Shared,
    /// Bytes so far.
    bytes: u64,
    /// It has no room for another record.
    is_full: bool,
    sums: Sums,
}

/// What a checkpoint has, and has not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Records that were written.
    pub records: u64,
    /// Functions, atoms and lazy sequences that streams remember: they cannot be saved.
    pub lost: u64,
    /// Events, forks, states, and values of them, that are too large: they are not in it.
    pub too_large: u64,
    /// Events, forks and states that it has no room for.
    pub left_out: u64,
}

impl Saving {
    /// What it has so far.
    pub fn sums(&self) -> Sums {
        self.sums
    }

    /// Takes the state of the streams of a config as it is now.
    pub(in super::super) fn begin(graph: &Graph, streams: &[(Identity, NodeId)], to: &mut Vec<u8>) -> Saving {
        Saving::begin_within(Bounds::DEFAULT, graph, streams, to)
    }

    fn begin_within(
        bounds: Bounds,
        graph: &Graph,
        streams: &[(Identity, NodeId)],
        to: &mut Vec<u8>,
    ) -> Saving {
        let mut parts = VecDeque::new();
        for (identity, node) in streams {
            match graph.save_part(*node, 0, 0) {
                Some(_) => parts.push_back(Part::Forks(*identity, *node, 0)),
                None => match graph.save(*node) {
                    Value::Nil => {}
                    state => parts.push_back(Part::State(*identity, *node, state)),
                },
            }
        }
        if graph.surroundings.index.is_some() {
            parts.push_back(Part::Index(0));
        }
        // States are taken already; what changes comes first here.
        parts.make_contiguous().sort_by_key(|part| matches!(part, Part::State(..)));
        let (shared, sums) = (Shared::default(), Sums::default());
        let mut saving = Saving { parts, bounds, shared, bytes: 0, is_full: false, sums };
        let (mut left, end) = (AT_ONCE, to.len().saturating_add(bounds.begin));
        while left > 0
            && to.len() < end
            && matches!(saving.parts.front(), Some(Part::Forks(..) | Part::Index(_)))
        {
            left = left.saturating_sub(saving.part(graph, left, end, to));
        }
        saving
    }

    /// Writes so many forks, events of the index or states, or fewer. Returns whether all are written.
    pub(in super::super) fn slice(&mut self, graph: &Graph, most: usize, to: &mut Vec<u8>) -> bool {
        let (mut left, end) = (most, to.len().saturating_add(self.bounds.slice));
        while left > 0 && to.len() < end && !self.parts.is_empty() {
            left = left.saturating_sub(self.part(graph, left, end, to));
        }
        self.parts.is_empty()
    }

    /// Writes of the next part what fits, until `to` has `end` bytes. Returns how much that was, one at least.
    fn part(&mut self, graph: &Graph, most: usize, end: usize, to: &mut Vec<u8>) -> usize {
        let Some(part) = self.parts.pop_front() else { return 1 };
        let mut archive = Archive::of(std::mem::take(to), std::mem::take(&mut self.shared));
        let wrote = match part {
            Part::State(identity, node, state) => {
                self.stream(graph, (identity, node), &state, &mut archive);
                1
            }
            Part::Forks(identity, node, from) => {
                let (wrote, next) = self.forks(graph, (identity, node), (from, most), &mut archive);
                next.into_iter().for_each(|next| self.parts.push_front(Part::Forks(identity, node, next)));
                wrote
            }
            Part::Index(from) => {
                let (wrote, next) = self.index(graph, (from, most), end, &mut archive);
                next.into_iter().for_each(|next| self.parts.push_front(Part::Index(next)));
                wrote
            }
        };
        let Archive { bytes, lost, too_large, shared, .. } = archive;
        (self.sums.lost, self.sums.too_large) = (self.sums.lost + lost, self.sums.too_large + too_large);
        (*to, self.shared) = (bytes, shared);
        wrote.max(1)
    }

    /// Writes the states of some forks, one by one if together they are too large for a slice. Returns how many places that
    /// were, and the one that follows.
    fn forks(
        &mut self,
        graph: &Graph,
        (identity, node): (Identity, NodeId),
        (from, most): (usize, usize),
        to: &mut Archive,
    ) -> (usize, Option<usize>) {
        let most = most.min(FORKS_TOGETHER);
        let Some((states, next)) = graph.save_part(node, from, most) else { return (1, None) };
        let slice = self.bounds.slice;
        if most == 1 || self.is_full {
            self.stream(graph, (identity, node), &states, to);
            return (most, next);
        }
        let is_written = self.record(slice, to, |to, most| {
            stream_start(graph, (identity, node), to);
            to.value_within(&states, most)
        });
        if is_written {
            return (most, next);
        }
        let Some((state, next)) = graph.save_part(node, from, 1) else { return (1, None) };
        self.stream(graph, (identity, node), &state, to);
        (1, next)
    }

    /// Writes events of the index. Returns how many slots that were, and the one that follows.
    fn index(
        &mut self,
        graph: &Graph,
        (from, most): (u32, usize),
        end: usize,
        to: &mut Archive,
    ) -> (usize, Option<u32>) {
        let Some(index) = &graph.surroundings.index else { return (1, None) };
        let (mut next, mut slots) = (Some(from), 0);
        while let Some(at) = next
            && slots < most
            && to.bytes.len() < end
        {
            let (events, after) = index.slots(at, 1);
            events.for_each(|event| self.event(event, to));
            (next, slots) = (after, slots + 1);
        }
        (slots, next)
    }

    fn event(&mut self, event: &Arc<Event>, to: &mut Archive) {
        self.or_left_out(to, |to, most| {
            to.bytes.push(record::EVENT);
            to.value_within(&Value::Event(Arc::clone(event)), most)
        });
    }

    fn stream(&mut self, graph: &Graph, stream: (Identity, NodeId), state: &Value, to: &mut Archive) {
        self.or_left_out(to, |to, most| {
            stream_start(graph, stream, to);
            to.value_within(state, most)
        });
    }

    /// Writes a record, or counts why it is not there.
    fn or_left_out(&mut self, to: &mut Archive, write: impl FnOnce(&mut Archive, usize) -> bool) {
        let has_room = self.room() >= self.bounds.value;
        if !self.is_full && self.record(self.bounds.value, to, write) {
            return;
        }
        self.is_full |= !has_room;
        match self.is_full {
            true => self.sums.left_out += 1,
            false => self.sums.too_large += 1,
        }
    }

    /// Writes a record whose value has at most so many bytes. Otherwise nothing is written, and false returned.
    fn record(
        &mut self,
        most: usize,
        to: &mut Archive,
        write: impl FnOnce(&mut Archive, usize) -> bool,
    ) -> bool {
        let before = to.bytes.len();
        let is_written = write(to, most.min(self.room()));
        match is_written {
            true => {
                self.bytes += (to.bytes.len() - before) as u64;
                self.sums.records += 1;
            }
            false => to.bytes.truncate(before),
        }
        is_written
    }

    /// Bytes that the checkpoint has room for.
    fn room(&self) -> usize {
        usize::try_from(self.bounds.total.saturating_sub(self.bytes)).unwrap_or(usize::MAX)
    }
}

/// The record of a stream, without its state.
fn stream_start(graph: &Graph, (identity, node): (Identity, NodeId), to: &mut Archive) {
    to.bytes.push(record::STREAM);
    to.number(identity);
    to.text(graph.name_of(node).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collections::element::Element;
    use crate::event::Field;
    use crate::riemann::tests::Running;

    const BIG: usize = 300_000;

    /// A config with an index of so many events with long descriptions and the same long tag.
    fn indexed(events: usize) -> Running {
        let mut running = Running::load("(let [index (index)] (streams index))", &[]).unwrap();
        let tag = Value::text(&"t".repeat(BIG));
        for number in 0..events {
            let mut event = Event::default();
            event.set(Field::Service, Value::from(number as i64));
            event.set(Field::Time, Value::from(0_i64));
            event.set(Field::Tags, Value::vector([tag.clone()]));
            event.set(Field::Description, Value::from(format!("{number}{}", "d".repeat(BIG))));
            running.engine.push_value(Value::Event(Arc::new(event))).unwrap();
        }
        running
    }

    /// The slices of a checkpoint, and what it has.
    fn slices(running: &Running, bounds: Bounds) -> (Vec<Vec<u8>>, Sums) {
        let mut slices = vec![Vec::new()];
        let graph = &running.engine.graph;
        let streams: Vec<(Identity, NodeId)> = running.engine.identities.clone();
        let mut saving = Saving::begin_within(bounds, graph, &streams, &mut slices[0]);
        loop {
            let mut bytes = Vec::new();
            let is_done = saving.slice(graph, usize::MAX, &mut bytes);
            slices.push(bytes);
            if is_done {
                return (slices, saving.sums());
            }
        }
    }

    #[test]
    fn slices_end_by_bytes_and_shared_texts_are_written_once() {
        let running = indexed(40);
        let (slices, sums) = slices(&running, Bounds::DEFAULT);
        let all: usize = slices.iter().map(Vec::len).sum();
        assert!((40 * BIG..43 * BIG).contains(&all), "{all}: 40 descriptions and one tag");
        assert!(slices[0].len() < Bounds::DEFAULT.begin + 2 * BIG, "{}", slices[0].len());
        assert!(slices[1..].iter().all(|slice| slice.len() < Bounds::DEFAULT.slice + 2 * BIG));
        assert!(slices.len() > 20, "{}", slices.len());
        assert_eq!(sums, Sums { records: sums.records, ..Sums::default() });
        let mut again = Running::load("(let [index (index)] (streams index))", &[]).unwrap();
        let restored = again.engine.restore(slices.iter().map(Vec::as_slice));
        assert_eq!((restored.events, restored.is_damaged), (40, false));
        let has_tag = |event: &Arc<Event>| match event.get(Field::Tags) {
            Value::Vector(tags) => tags.first().is_some_and(|tag| tag.equal(&Value::text(&"t".repeat(BIG)))),
            _ => false,
        };
        assert!(again.engine.index().unwrap().events().all(has_tag));
    }

    #[test]
    fn what_a_full_checkpoint_has_no_room_for_is_counted() {
        let running = indexed(10);
        let bounds = Bounds { total: 5 * BIG as u64, value: 3 * BIG, ..Bounds::DEFAULT };
        let (slices_of_it, sums) = slices(&running, bounds);
        let all: usize = slices_of_it.iter().map(Vec::len).sum();
        assert!(all <= 5 * BIG + 1_000, "{all}");
        assert!(sums.left_out >= 6 && sums.records >= 2 && sums.too_large == 0, "{sums:?}");
        let bounds = Bounds { value: BIG, ..Bounds::DEFAULT };
        let (_, sums) = slices(&running, bounds);
        assert_eq!((sums.too_large, sums.left_out), (10, 0));
    }
}
