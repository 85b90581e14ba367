//! A config that runs: events and time in, effects out.
//!
//! Path of an event: [`Engine::push`] -> `record` (an event of the language) -> each top-level stream, in their order -> the graph.
//! What streams want done outside is in [`Engine::effects`] afterwards; the index has changed already.
//! Pure: the clock is an argument, and files are asked of the [`Host`].
//! Invariant: an event goes through every top-level stream, whatever those before it throw (spec riemann §17.1).

use std::sync::Arc;

use arcstr::{ArcStr, literal};
use model::EventRef;

use super::declared::Declared;
pub use super::dispatch::StreamError;
use super::record::Interner;
use super::state::restoring::{self, Restored};
use super::state::saving::Saving;
use super::surroundings::{Effect, Figures};
use super::testing::recorded::Testing;
use super::watching::{WatchError, WatchId};
use super::{dispatch, lints, namespaces, services};
use crate::event::Event;
use crate::graph::{self, Graph, Identity, Limit, NodeId};
use crate::index::{self, Index, Progress, Search, SearchLimits};
use crate::language::budget::{self, Budget};
use crate::language::error::Outcome;
use crate::language::evaluation::Evaluation;
use crate::language::host::{Host, Level};
use crate::language::load::LoadError;
use crate::language::machine::Machine;
use crate::position::Position;
use crate::query::Query;
use crate::value::Value;

/// How a config is loaded.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The server's clock, in microseconds since 1970.
    pub now_us: i64,
    /// A number for hashes that is not known outside of the process.
    pub seed: u64,
    /// Limits of windows and forks.
    pub graph: graph::Limits,
    /// Limits of the index.
    pub index: index::Limits,
    /// What loading may use.
    pub load: budget::Limits,
    /// What each event and each timer may use.
    pub event: budget::Limits,
    /// Whether it is loaded for its tests (spec riemann §13).
    pub testing: bool,
}

impl Setup {
    /// The usual limits.
    pub const DEFAULT: Setup = Setup {
        now_us: 0,
        seed: 0,
        graph: graph::Limits::DEFAULT,
        index: index::Limits::DEFAULT,
        load: budget::Limits::LOAD,
        event: budget::Limits::EVENT,
        testing: false,
    };
}

/// See the module's header.
#[derive(Debug)]
pub struct Engine {
    pub(super) graph: Graph,
    interner: Interner,
    /// The streams of the config, by what they are when it is loaded again.
    pub(super) identities: Vec<(Identity, NodeId)>,
    /// The checkpoint under way.
    saving: Option<Saving>,
    /// Whether something came since the last checkpoint began.
    is_changed: bool,
}

impl Engine {
    /// Loads a config: `file` is its name for the host.
    ///
    /// # Errors
    /// All of its mistakes.
    pub fn load(file: &str, host: Box<dyn Host>, setup: Setup) -> Result<Engine, LoadError> {
        let world = Arc::new(namespaces::world());
        let evaluation = Evaluation::new(world, host);
        let mut graph = Graph::new(evaluation, setup.now_us).with_limits(setup.graph);
        graph.surroundings.index_limits = setup.index;
        graph.surroundings.seed = setup.seed;
        graph.surroundings.testing = setup.testing.then(Testing::default);
        namespaces::intern_core(&graph.evaluation.world);
        let mut machine = Machine::new(&mut graph, setup.load);
        machine.namespace = literal!("riemann.config");
        let loaded = machine.load_main(file).and_then(|_| match graph.run_trials() {
            diagnostics if diagnostics.is_empty() => Ok(()),
            diagnostics => Err(LoadError { diagnostics, error: None, notes: Vec::new() }),
        });
        for (at, text) in lints::find(&std::mem::take(&mut graph.evaluation.forms)) {
            graph.surroundings.declared.note(at, text);
        }
        if let Err(error) = loaded {
            let notes = graph.surroundings.declared.notes.into_iter();
            return Err(LoadError { notes: notes.map(|note| (note.at, note.text)).collect(), ..error });
        }
        if graph.surroundings.declared.top.is_empty() {
            let at = Position { file: ArcStr::from(file), line: 1, column: 1 };
            let text = "the config has no (streams …): its events go nowhere";
            graph.surroundings.declared.note(at, text);
        }
        graph.surroundings.declared.is_loaded = true;
        if !setup.testing {
            graph.evaluation.host.close_files();
        }
        graph.evaluation.event_limits = setup.event;
        graph.evaluation.budget = Budget::new(setup.event);
        if !setup.testing {
            services::start_instrumentation(&mut graph);
        }
        let top: Vec<NodeId> = graph.surroundings.declared.top.iter().map(|top| top.node).collect();
        let nodes: Vec<NodeId> = graph.nodes().collect();
        let identities = graph.identities(&top, &nodes);
        Ok(Engine { graph, interner: Interner::new(setup.seed), identities, saving: None, is_changed: true })
    }

    /// What the config has declared.
    pub fn declared(&self) -> &Declared {
        &self.graph.surroundings.declared
    }

    /// The server's clock, in microseconds since 1970.
    pub fn now_us(&self) -> i64 {
        self.graph.now_us()
    }

    /// Counters.
    pub fn figures(&self) -> Figures {
        self.graph.surroundings.figures
    }

    /// The stream that threw last: its name and place; none if none has in the last minute.
    pub fn threw_lately(&self) -> Option<&str> {
        const LATELY_S: i64 = 60;
        let complaints = &self.graph.surroundings.complaints;
        let age_s = self.now_us().div_euclid(1_000_000) - complaints.second;
        (!complaints.last_place.is_empty() && age_s <= LATELY_S).then_some(&*complaints.last_place)
    }

    /// Counters of the graph's limits.
    pub fn counts(&self) -> &graph::Counts {
        self.graph.counts()
    }

    /// Number of nodes of the graph, those of forks and tasks included.
    pub fn nodes(&self) -> usize {
        self.graph.len()
    }

    /// The index, if the config has one.
    pub fn index(&self) -> Option<&Index> {
        self.graph.surroundings.index.as_ref()
    }

    /// Gives an event to all top-level streams.
    ///
    /// # Errors
    /// What the first of them threw that threw anything. The others have seen the event all the same.
    pub fn push(&mut self, record: EventRef<'_>) -> Result<(), StreamError> {
        let event = self.interner.event(record);
        self.push_value(Value::Event(Arc::new(event)))
    }

    /// As [`Engine::push`], for a server whose events go through a function of the config first (`:parser-fn`).
    ///
    /// # Errors
    /// What a stream threw, or the function, which has no place.
    pub fn push_parsed(&mut self, record: EventRef<'_>, parser: &Value) -> Result<(), StreamError> {
        let event = Value::Event(Arc::new(self.interner.event(record)));
        self.graph.evaluation.begin_event();
        let parsed = self.graph.call(parser, std::slice::from_ref(&event));
        match parsed {
            Ok(Value::Nil) => Ok(()),
            Ok(event) => self.push_value(event),
            Err(error) => {
                let error = StreamError { at: error.at().clone(), error };
                dispatch::threw(&mut self.graph, "a :parser-fn", &event, &error.error);
                Err(error)
            }
        }
    }

    /// As [`Engine::push`], for an event of the language.
    ///
    /// # Errors
    /// What the first of them threw that threw anything.
    pub fn push_value(&mut self, event: Value) -> Result<(), StreamError> {
        self.is_changed = true;
        dispatch::push(&mut self.graph, event)
    }

    /// Runs the timers that are due at that time, at most `max` of them, each at its own time. Returns whether all have run; the
    /// clock is at that time then.
    pub fn advance(&mut self, now_us: i64, max: usize) -> bool {
        self.is_changed |= self.next_due_us().is_some_and(|due_us| due_us <= now_us);
        dispatch::advance(&mut self.graph, now_us, max)
    }

    /// The clock will be at that time: see [`Graph::step_clock`]. For clocks of machines, before [`Engine::advance`].
    pub fn step_clock(&mut self, now_us: i64) {
        self.graph.step_clock(now_us);
    }

    /// When the next timer is due, in microseconds.
    pub fn next_due_us(&self) -> Option<i64> {
        self.graph.next_due_us()
    }

    /// What is to be done outside, since the last call.
    pub fn effects(&mut self) -> std::vec::Drain<'_, Effect> {
        self.graph.surroundings.effects.drain(..)
    }

    /// Adds a line for the log.
    pub fn log(&mut self, level: Level, text: &str) {
        self.graph.evaluation.host.log(level, text);
    }

    /// Lines for the log since the last call, and how many more there were.
    pub fn take_lines(&mut self) -> (Vec<(Level, String)>, u64) {
        self.graph.evaluation.host.take_lines()
    }

    /// Begins a search of the index; none without an index.
    pub fn search(&self, query: &Arc<Query>, limits: SearchLimits) -> Option<Search> {
        self.index().map(|index| Search::new(query, index, limits))
    }

    /// From now on, events of that channel that match the query are effects, [`Effect::Published`], until it is ended by its owner or by
    /// [`Effect::WatchEnded`].
    ///
    /// # Errors
    /// If there are too many.
    pub fn watch(&mut self, channel: &str, query: Arc<Query>) -> Result<WatchId, WatchError> {
        self.graph.surroundings.watches.add(channel, query)
    }

    /// Ends a watch.
    pub fn unwatch(&mut self, id: WatchId) {
        self.graph.surroundings.watches.remove(id);
    }

    /// Goes on with a search for so many steps.
    pub fn continue_search(&self, search: &mut Search, steps: u64, found: &mut Vec<Arc<Event>>) -> Progress {
        match &self.graph.surroundings.index {
            Some(index) => search.run(index, steps, found),
            None => Progress::Done,
        }
    }

    /// Whether events or timers came since the last checkpoint began.
    pub fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// The last checkpoint may not be on disk: the next one is made even without changes.
    pub fn save_again(&mut self) {
        self.is_changed = true;
    }

    /// Begins a checkpoint of what the streams remember and of the index, and adds its first bytes.
    pub fn save_begin(&mut self, to: &mut Vec<u8>) {
        self.is_changed = false;
        self.saving = Some(Saving::begin(&self.graph, &self.identities, to));
    }

    /// Whether a checkpoint has begun and is not whole.
    pub fn is_saving(&self) -> bool {
        self.saving.is_some()
    }

    /// Adds the next bytes: of so many forks of `by` or events of the index, at most. None if more is to come, or the number of records.
    pub fn save_slice(&mut self, most: usize, to: &mut Vec<u8>) -> Option<u64> {
        let Some(mut saving) = self.saving.take() else { return Some(0) };
        if !saving.slice(&self.graph, most, to) {
            self.saving = Some(saving);
            return None;
        }
        let sums = saving.sums();
        self.graph.count(Limit::StateTooLarge, sums.too_large);
        self.graph.count(Limit::CheckpointFull, sums.left_out);
        Some(sums.records)
    }

    /// Takes back what the streams and the index had when a checkpoint was made, before the first event.
    /// Each block has whole records.
    pub fn restore<'b>(&mut self, blocks: impl Iterator<Item = &'b [u8]>) -> Restored {
        restoring::restore(&mut self.graph, &self.identities, blocks)
    }

    /// Continues where another config's engine was: with its index, its watches, and what streams remember that are the same in both.
    pub fn adopt(&mut self, predecessor: Engine) -> Restored {
        let restored = restoring::carry(
            (&predecessor.graph, &predecessor.identities),
            (&mut self.graph, &self.identities),
        );
        let surroundings = &mut self.graph.surroundings;
        if surroundings.index.is_some()
            && let Some(index) = predecessor.graph.surroundings.index
        {
            surroundings.index = Some(index);
        }
        surroundings.watches = predecessor.graph.surroundings.watches;
        surroundings.figures = predecessor.graph.surroundings.figures;
        restored
    }

    /// Calls a function of the config outside of any event, with the limits of an event.
    ///
    /// # Errors
    /// What it throws.
    pub fn call(&mut self, function: &Value, arguments: &[Value]) -> Outcome {
        self.graph.evaluation.begin_event();
        self.graph.call(function, arguments)
    }

    /// The value of a var of the config.
    pub fn var(&self, namespace: &str, name: &str) -> Option<Value> {
        self.graph.evaluation.world.intern(&ArcStr::from(namespace), &ArcStr::from(name)).get()
    }
}
