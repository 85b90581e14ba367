//! What the streams of a config reach outside of their graph: the index, channels, outputs, and each other from the top.
//!
//! Streams change nothing outside of the process: what they want done is an [`Effect`], which the engine's owner takes. This is
//! the one border of side effects.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use arcstr::ArcStr;

use super::declared::{Declared, OutputNumber};
use super::testing::recorded::Testing;
use super::watching::{Shape, WatchId, Watches};
use crate::collections::element::Element;
use crate::event::Event;
use crate::graph::NodeId;
use crate::index::{Change, Index, Limits, Reject};
use crate::value::Value;

/// Events that streams send through all top-level streams again while one event is handled, at most. A `reinject` below a
/// stream that passes what it reinjected would go on for ever.
pub const REINJECTED_MAX: usize = 10_000;
/// Effects of one event or timer, at most.
pub const EFFECTS_MAX: usize = 1_000_000;
/// Most functions that subscribe to channels.
pub const SUBSCRIPTIONS_MAX: usize = 10_000;

/// The channel of the index (spec riemann §6.1).
pub const INDEX_CHANNEL: ArcStr = arcstr::literal!("index");

/// What is to be done outside.
#[derive(Clone, Debug)]
pub enum Effect {
    /// A point for a Graphite output: its line, with the line's end.
    Line {
        /// The output.
        output: OutputNumber,
        /// `path value time\n`
        line: String,
    },
    /// An event for an output.
    Event {
        /// The output.
        output: OutputNumber,
        /// The event.
        event: Arc<Event>,
    },
    /// An event of a channel for subscribers outside.
    Published {
        /// Those whose query it matches; at least one.
        watches: Vec<WatchId>,
        /// The event.
        event: Arc<Event>,
        /// How it is written.
        shape: Shape,
    },
    /// A watch is no more: its query takes too much work for each event.
    WatchEnded {
        /// Its id.
        watch: WatchId,
    },
}

/// How often limits of the surroundings had an effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Events that went through the top-level streams.
    pub streamed: u64,
    /// Times that a top-level stream threw.
    pub threw: u64,
    /// Events that were not reinjected, as there were too many for one event.
    pub not_reinjected: u64,
    /// Effects that were dropped, as there were too many.
    pub effects_dropped: u64,
    /// Events that are in the index for the first time, or again.
    pub indexed: u64,
    /// Events that the index rejected.
    pub not_indexed: u64,
    /// Events of the index that expired.
    pub expired: u64,
}

/// Exceptions in the log.
#[derive(Debug, Default)]
pub struct Complaints {
    /// The second of the last one.
    pub(super) second: i64,
    /// How many there were in that second.
    pub(super) logged: u32,
    /// How many were left out since.
    pub(super) left_out: u64,
    /// The stream that threw last, with its place.
    pub(super) last_place: String,
}

/// See the module's header.
#[derive(Debug)]
pub struct Surroundings {
    /// What the config has declared.
    pub declared: Declared,
    /// The index; none unless the config has one.
    pub index: Option<Index>,
    /// The stream that puts events into it.
    pub index_stream: Option<NodeId>,
    /// The limits of the index.
    pub index_limits: Limits,
    /// Tasks of the config that will run again.
    pub tasks: BTreeSet<NodeId>,
    /// Functions by the channel to which they subscribe.
    pub subscriptions: Vec<(Value, Value)>,
    /// What subscribers outside want to have.
    pub watches: Watches,
    /// Events for all top-level streams, after the event at hand.
    pub reinjected: VecDeque<Value>,
    /// What is to be done outside.
    pub effects: Vec<Effect>,
    /// Its counters.
    pub figures: Figures,
    /// The taps and tests of the config; none outside of test mode.
    pub testing: Option<Testing>,
    /// Exceptions in the log.
    pub complaints: Complaints,
    /// A number for the hashes of the index that is not known outside.
    pub seed: u64,
}

impl Surroundings {
    /// Without an index.
    pub fn new(index_limits: Limits, seed: u64) -> Surroundings {
        Surroundings {
            declared: Declared::default(),
            index: None,
            index_stream: None,
            index_limits,
            tasks: BTreeSet::new(),
            subscriptions: Vec::new(),
            watches: Watches::default(),
            reinjected: VecDeque::new(),
            effects: Vec::new(),
            figures: Figures::default(),
            testing: None,
            complaints: Complaints::default(),
            seed,
        }
    }

    /// Adds an event for all top-level streams.
    pub fn reinject(&mut self, event: Value) {
        match self.reinjected.len() < REINJECTED_MAX {
            true => self.reinjected.push_back(event),
            false => self.figures.not_reinjected += 1,
        }
    }

    /// Adds an effect.
    pub fn effect(&mut self, effect: Effect) {
        match self.effects.len() < EFFECTS_MAX {
            true => self.effects.push(effect),
            false => self.figures.effects_dropped += 1,
        }
    }

    /// Inserts an event into the index, if there is one.
    ///
    /// # Errors
    /// If the index rejects it.
    pub fn insert(&mut self, event: &Arc<Event>) -> Result<(), Reject> {
        let Some(index) = &mut self.index else { return Ok(()) };
        match index.insert(Arc::clone(event)) {
            Ok(Change::Added | Change::Replaced(_) | Change::Removed(_) | Change::Nothing) => {
                self.figures.indexed += 1;
                Ok(())
            }
            Err(reject) => {
                self.figures.not_indexed += 1;
                Err(reject)
            }
        }
    }

    /// The functions that subscribe to a channel, in the order of their subscriptions.
    pub fn subscribers(&self, channel: &Value) -> Vec<Value> {
        let of_channel = self.subscriptions.iter().filter(|(name, _)| name.equal(channel));
        of_channel.map(|(_, function)| function.clone()).collect()
    }
}
