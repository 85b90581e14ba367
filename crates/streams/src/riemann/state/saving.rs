//! A checkpoint of a config that runs, in slices.
//!
//! Streams of the config are taken as they are when it begins. Forks of `by` and events of the index are taken while events go on, each
//! as it is when it is its turn: those of the first [`AT_ONCE`] forks and events at the beginning, too.

use std::collections::VecDeque;

use super::archive::Archive;
use crate::graph::{Graph, Identity, NodeId};
use crate::value::Value;

/// Forks and events of the index that are taken when the checkpoint begins, at most: it takes the shard's thread 10 to 20 ms.
pub const AT_ONCE: usize = 10_000;

/// A slice ends after so many bytes, though fewer forks were taken than may be.
const SLICE_BYTES: usize = 256 * 1024;

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
    /// Records so far.
    records: u64,
    /// Values that could not be saved.
    lost: u64,
}

impl Saving {
    /// Records that it has written.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Functions, atoms and lazy sequences that streams remember: they cannot be saved.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Takes the state of the streams of a config as it is now.
    pub(in super::super) fn begin(graph: &Graph, streams: &[(Identity, NodeId)], to: &mut Vec<u8>) -> Saving {
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
        let mut saving = Saving { parts, records: 0, lost: 0 };
        // States are taken already; what changes comes first here.
        saving.parts.make_contiguous().sort_by_key(|part| matches!(part, Part::State(..)));
        let mut left = AT_ONCE;
        while left > 0 && matches!(saving.parts.front(), Some(Part::Forks(..) | Part::Index(_))) {
            left = left.saturating_sub(saving.part(graph, left, to));
        }
        saving
    }

    /// Writes so many forks, events of the index or states, or fewer. Returns whether all are written.
    pub(in super::super) fn slice(&mut self, graph: &Graph, most: usize, to: &mut Vec<u8>) -> bool {
        let (mut left, end) = (most, to.len().saturating_add(SLICE_BYTES));
        while left > 0 && to.len() < end && !self.parts.is_empty() {
            left = left.saturating_sub(self.part(graph, left, to));
        }
        self.parts.is_empty()
    }

    /// Writes of the next part what fits. Returns how much that was, one at least.
    fn part(&mut self, graph: &Graph, most: usize, to: &mut Vec<u8>) -> usize {
        let Some(part) = self.parts.pop_front() else { return 1 };
        let mut archive = Archive { bytes: std::mem::take(to), lost: 0 };
        let wrote = match part {
            Part::State(identity, node, state) => {
                self.stream(graph, (identity, node), &state, &mut archive);
                1
            }
            Part::Forks(identity, node, from) => {
                // So that a slice ends soon after its bytes.
                let most = most.min(256);
                if let Some((state, next)) = graph.save_part(node, from, most) {
                    self.stream(graph, (identity, node), &state, &mut archive);
                    next.into_iter()
                        .for_each(|next| self.parts.push_front(Part::Forks(identity, node, next)));
                }
                most
            }
            Part::Index(from) => {
                let most = most.min(1_024) as u32;
                if let Some(index) = &graph.surroundings.index {
                    let (events, next) = index.slots(from, most);
                    for event in events {
                        archive.bytes.push(record::EVENT);
                        archive.value(&Value::Event(std::sync::Arc::clone(event)));
                        self.records += 1;
                    }
                    next.into_iter().for_each(|next| self.parts.push_front(Part::Index(next)));
                }
                most as usize
            }
        };
        self.lost += archive.lost;
        *to = archive.bytes;
        wrote.max(1)
    }

    fn stream(
        &mut self,
        graph: &Graph,
        (identity, node): (Identity, NodeId),
        state: &Value,
        to: &mut Archive,
    ) {
        to.bytes.push(record::STREAM);
        to.number(identity);
        to.text(graph.name_of(node).as_bytes());
        to.value(state);
        self.records += 1;
    }
}
