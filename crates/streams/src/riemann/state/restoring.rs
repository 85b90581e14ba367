//! What the streams of a config take back of a checkpoint, or of the streams before them.

use std::collections::{BTreeSet, HashMap};

use foldhash::fast::FixedState;

use super::archive::{Damaged, Reader};
use super::saving::record;
use crate::graph::{Graph, Identity, NodeId};
use crate::riemann::record::event_of;
use crate::value::Value;

/// Streams that the log names at once, at most.
const NAMED_MAX: usize = 20;

/// What came of a saved state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Records of streams that took what they remembered; a stream with many forks has several.
    pub streams: u64,
    /// Records of any kind that were read.
    pub records: u64,
    /// Events that are in the index again.
    pub events: u64,
    /// Streams that remembered something and are no more, or have another form: constructor and place, at most 20.
    pub dropped: BTreeSet<String>,
    /// How many more of them there are.
    pub dropped_more: u64,
    /// The state was cut short or damaged: what came before that was taken.
    pub is_damaged: bool,
}

impl Restored {
    fn drop(&mut self, origin: impl FnOnce() -> String) {
        match self.dropped.len() < NAMED_MAX {
            true => drop(self.dropped.insert(origin())),
            false => self.dropped_more += 1,
        }
    }

    /// Lists the streams of forks that are no more.
    fn drop_inner(&mut self, graph: &mut Graph) {
        for (name, forks) in graph.take_not_continued() {
            self.drop(|| format!("{name} ({forks} of them)"));
        }
    }
}

/// Streams, to look them up by their identities.
type Nodes = HashMap<Identity, NodeId, FixedState>;

/// The streams of a config by their identities.
type Streams = [(Identity, NodeId)];

/// Gives a graph that was just loaded, with these streams, what a checkpoint has.
pub(in super::super) fn restore<'b>(
    graph: &mut Graph,
    streams: &Streams,
    blocks: impl Iterator<Item = &'b [u8]>,
) -> Restored {
    let nodes: Nodes = streams.iter().copied().collect();
    let mut restored = Restored::default();
    let mut reader = Reader::new(&[]);
    for block in blocks {
        reader.go_on(block);
        while reader.left() > 0 {
            if next(graph, &nodes, &mut reader, &mut restored).is_err() {
                restored.is_damaged = true;
                restored.drop_inner(graph);
                return restored;
            }
            restored.records += 1;
        }
    }
    restored.drop_inner(graph);
    restored
}

fn next(
    graph: &mut Graph,
    nodes: &Nodes,
    reader: &mut Reader<'_>,
    restored: &mut Restored,
) -> Result<(), Damaged> {
    match reader.byte()? {
        record::STREAM => {
            let identity = reader.number()?;
            let origin = reader.str()?;
            let state = reader.value()?;
            match nodes.get(&identity) {
                Some(node) => {
                    graph.restore(*node, &state);
                    restored.streams += 1;
                }
                None => restored.drop(|| origin.to_string()),
            }
        }
        record::EVENT => {
            let event = event_of(&reader.value()?).ok_or(Damaged)?;
            // One that the index rejects now was there under other limits.
            if let Some(index) = &mut graph.surroundings.index
                && index.insert(event).is_ok()
            {
                restored.events += 1;
            }
        }
        _ => return Err(Damaged),
    }
    Ok(())
}

/// Gives a graph that was just loaded what the streams of the one before it remember.
pub(in super::super) fn carry(
    (from, of): (&Graph, &Streams),
    (to, streams): (&mut Graph, &Streams),
) -> Restored {
    let nodes: Nodes = streams.iter().copied().collect();
    let mut restored = Restored::default();
    for (identity, old) in of {
        let state = from.save(*old);
        if is_empty(from, *old, &state) {
            continue;
        }
        match nodes.get(identity) {
            Some(node) => {
                to.restore(*node, &state);
                restored.streams += 1;
            }
            None => restored.drop(|| from.name_of(*old)),
        }
    }
    restored.drop_inner(to);
    restored
}

/// Whether a stream has nothing to lose.
fn is_empty(graph: &Graph, node: NodeId, state: &Value) -> bool {
    state.is_nil() || graph.save_part(node, 0, 0).is_some_and(|(_, next)| next.is_none())
}
