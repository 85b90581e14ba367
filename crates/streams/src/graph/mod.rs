//! The graph of a config's streams: its nodes, who feeds whom, and their timers.
//!
//! A config is evaluated once. Each call of a stream's constructor adds a [`Node`] here, after its children, so that the config
//! gets a tree of ids. Then events come: [`Graph::push`] gives a value to a node; what the node emits goes to its children, in
//! order, before `push` returns. Timers do the same from [`Graph::advance`].
//! Not here: what the nodes compute (`nodes`), functions of the config (`language`), the index and the outputs.
//! Invariants: a node never runs within its own turn; what a child throws ends that child's part only.

mod called;
mod caught;
mod children;
mod hashes;
mod id;
mod identity;
mod limits;
mod overruns;
mod timers;
mod trial;
mod trials;
mod turn;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Range;

use foldhash::fast::FixedState;

pub use called::Called;
pub use caught::Caught;
pub use children::Children;
pub use id::NodeId;
pub use identity::Identity;
pub use limits::{Counts, Limit, Limits};
pub use timers::TimerId;
pub use turn::{CHILDREN, Turn};

use self::caught::CAUGHT_MAX;
pub(crate) use self::caught::exception_event;
use self::hashes::Hashes;
use self::overruns::Overruns;
use self::timers::{LATE_US_MAX, Timers};
use self::trials::Trials;
use self::turn::To;
use crate::index;
use crate::language::error::{EvalError, Outcome, Reason};
use crate::language::evaluation::Evaluation;
use crate::object::class;
use crate::position::Position;
use crate::riemann::surroundings::Surroundings;
use crate::value::Value;

/// Nodes that pass a value on to each other, at most: a config can feed a stream's output to the stream itself.
pub const DEPTH_MAX: usize = 256;

/// What a stream computes. Deterministic: it depends on the values, the timers and the clock of its turns.
pub trait Node: fmt::Debug + Send {
    /// A value has come: an event, a vector of events, or whatever the config made of them. The node may take it or change it in
    /// place: the others that get it have their own. Returns whether it matched, for streams that serve as predicates; the others
    /// return true.
    ///
    /// # Errors
    /// An exception. Values that were emitted before it go to the children all the same.
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool>;

    /// The node was added: the place to set timers that run from the beginning, and to look at the clock.
    fn start(&mut self, turn: &mut Turn<'_>) {
        let _ = turn;
    }

    /// A timer that it set is due.
    ///
    /// # Errors
    /// An exception, as for `push`.
    fn due(&mut self, timer: TimerId, turn: &mut Turn<'_>) -> Outcome<()> {
        let _ = turn;
        unreachable!("this node sets no timers, but {timer:?} is due")
    }

    /// What it remembers, as a value that [`Node::restore`] of the same stream of another graph takes back. Nil for a node that
    /// remembers nothing.
    fn save(&self, graph: &Graph) -> Value {
        let _ = graph;
        Value::Nil
    }

    /// As `save`, a part of it: with so many forks at most, from the place on where the part before ended, and where this one ends if it is
    /// not the last. `restore` takes them one after the other. None for a node without forks.
    fn save_part(&self, graph: &Graph, from: usize, most: usize) -> Option<(Value, Option<usize>)> {
        let _ = (graph, from, most);
        None
    }

    /// How many forks it has, and the nodes of all of them: they go with it.
    fn forks(&self) -> (u64, Vec<NodeId>) {
        (0, Vec::new())
    }

    /// The function with which it makes streams for each key.
    fn maker(&self) -> Option<&Value> {
        None
    }

    /// Makes for once, while the config is loaded, what it makes later for a key ([`Turn::try_with`]).
    ///
    /// # Errors
    /// A mistake of the config.
    fn trial(&mut self, turn: &mut Turn<'_>) -> Outcome<()> {
        let _ = turn;
        Ok(())
    }

    /// Takes back what `save` gave. The node was just started. Anything else leaves it as it is, in whole or in part.
    fn restore(&mut self, saved: &Value, turn: &mut Turn<'_>) {
        let _ = (saved, turn);
    }
}

/// One line of a cache, as nodes of forks are met one by one.
#[repr(align(64))]
struct Slot {
    /// None while the node has its turn, and after it was removed.
    node: Option<Box<dyn Node>>,
    children: Children,
    /// By ports: the end of each port's children. None if there is but one port.
    ports: Option<Box<[u32]>>,
    /// Where exceptions of its children go, as events; none: to [`Graph::take_caught`].
    rescue: Option<NodeId>,
    /// The node that has this place; none after it was removed.
    id: Option<NodeId>,
}

const _: () = assert!(size_of::<Slot>() == 64, "a slot is a line of a cache");

/// See the module's header.
pub struct Graph {
    slots: Vec<Slot>,
    /// The form of the node of each slot, see `identity`.
    forms: Vec<u64>,
    /// What made the nodes of the config, and where.
    origins: HashMap<NodeId, (&'static str, Position), FixedState>,
    /// The same by forms, for nodes of forks; without a place if several places have the form.
    origins_of_forms: HashMap<u64, (&'static str, Position), FixedState>,
    /// Of these, those that call a function of the config.
    called: HashMap<NodeId, Called, FixedState>,
    free: Vec<NodeId>,
    timers: Timers,
    now_us: i64,
    /// Timers that are due before that time are due then.
    late_before_us: i64,
    /// What evaluations share. The language adds `call` to the graph, which calls functions of the config.
    pub evaluation: Evaluation,
    /// What streams reach outside of the graph.
    pub surroundings: Surroundings,
    /// What the nodes have emitted and their children have not got yet.
    emitted: Vec<(To, Value)>,
    /// How deep `push` is nested.
    depth: usize,
    /// Values that were passed on for the event, or the timer, at hand.
    pushes: u64,
    /// Nodes that were removed since timers of removed nodes were.
    removed: usize,
    /// While a node makes others: their ids.
    made: Option<Vec<NodeId>>,
    trials: Trials,
    /// The handler of exceptions of the nodes that are added.
    rescue: Option<NodeId>,
    caught: Vec<Caught>,
    caught_more: u64,
    not_continued: BTreeMap<String, u64>,
    overruns: Overruns,
    limits: Limits,
    counts: Counts,
    hashes: Hashes,
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph")
            .field("nodes", &self.len())
            .field("now_us", &self.now_us)
            .finish_non_exhaustive()
    }
}

impl Graph {
    /// An empty graph at an instant of the server's clock, in microseconds since 1970.
    pub fn new(evaluation: Evaluation, now_us: i64) -> Graph {
        Graph {
            slots: Vec::new(),
            forms: Vec::new(),
            origins: HashMap::default(),
            origins_of_forms: HashMap::default(),
            called: HashMap::default(),
            free: Vec::new(),
            timers: Timers::default(),
            now_us,
            late_before_us: i64::MIN,
            evaluation,
            surroundings: Surroundings::new(index::Limits::DEFAULT, 0),
            emitted: Vec::new(),
            depth: 0,
            pushes: 0,
            removed: 0,
            made: None,
            trials: Trials::default(),
            rescue: None,
            caught: Vec::new(),
            caught_more: 0,
            not_continued: BTreeMap::new(),
            overruns: Overruns::default(),
            limits: Limits::default(),
            counts: Counts::default(),
            hashes: Hashes::new(0),
        }
    }

    /// The same graph with other limits; before nodes are added.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Graph {
        Graph { limits, hashes: Hashes::new(limits.hash_seed), ..self }
    }

    /// The limits.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// How often its limits were reached, and how many forks there are.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether it has no node.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Counts that a limit had an effect, so many times.
    pub(crate) fn count(&mut self, limit: Limit, times: u64) {
        self.counts.add(limit, times);
    }

    /// The server's clock, in microseconds since 1970.
    pub fn now_us(&self) -> i64 {
        self.now_us
    }

    /// Adds a node with its children, by ports.
    ///
    /// # Panics
    /// With 2^32 nodes, which no memory has.
    pub fn add(&mut self, node: Box<dyn Node>, ports: &[&[NodeId]]) -> NodeId {
        self.add_of(0, node, ports)
    }

    /// Likewise, a node of a form (`crate::form`): what it remembers goes to the node of the same form in the same place when the config
    /// is loaded again.
    ///
    /// # Panics
    /// As [`Graph::add`].
    pub fn add_of(&mut self, form: u64, node: Box<dyn Node>, ports: &[&[NodeId]]) -> NodeId {
        let mut ends = Vec::with_capacity(ports.len());
        let mut end = 0;
        for port in ports {
            end += port.len() as u32;
            ends.push(end);
        }
        let id = match self.free.pop() {
            Some(id) => id.next(),
            None => NodeId::first(u32::try_from(self.slots.len()).expect("each node has more than a byte")),
        };
        let slot = Slot {
            node: Some(node),
            ports: (ports.len() > 1).then(|| ends.into()),
            children: Children::of(&ports.concat()),
            rescue: self.rescue,
            id: Some(id),
        };
        match self.slots.get_mut(id.place()) {
            Some(place) => (*place, self.forms[id.place()]) = (slot, form),
            None => {
                self.slots.push(slot);
                self.forms.push(form);
            }
        }
        if let Some(made) = &mut self.made {
            made.push(id);
        }
        if let Some(mut node) = self.slots[id.place()].node.take() {
            node.start(&mut Turn { graph: self, node: id });
            self.slots[id.place()].node = Some(node);
        }
        id
    }

    /// Likewise, a node that stays when what is made around it is removed: all of the config use it.
    ///
    /// # Panics
    /// As [`Graph::add`].
    pub fn add_for_all(&mut self, node: Box<dyn Node>) -> NodeId {
        let made = self.made.take();
        let id = self.add(node, &[]);
        self.made = made;
        id
    }

    /// Notes which constructor made a node, and where it was called.
    pub fn set_origin(&mut self, node: NodeId, constructor: &'static str, at: Position) {
        let of_form =
            self.origins_of_forms.entry(self.form_of(node)).or_insert_with(|| (constructor, at.clone()));
        if of_form.1 != at {
            of_form.1 = Position::default();
        }
        self.origins.insert(node, (constructor, at));
    }

    /// The constructor of a node, and where it was called while the config was loaded; unknown, for a stream of a fork, if streams
    /// of several places have its form.
    pub fn origin(&self, node: NodeId) -> Option<&(&'static str, Position)> {
        let of_form = || self.slot(node).and_then(|_| self.origins_of_forms.get(&self.form_of(node)));
        self.origins.get(&node).or_else(of_form)
    }

    /// A stream as the log names it: its constructor and its place in the config.
    pub fn name_of(&self, node: NodeId) -> String {
        match self.origin(node) {
            Some((constructor, at)) if at.is_known() => {
                format!("{} ({at})", constructor.trim_end_matches('*'))
            }
            Some((constructor, _)) => constructor.trim_end_matches('*').to_owned(),
            None => "a stream".to_owned(),
        }
    }

    /// Counts that a stream in a fork of `parent` remembered something and is no more in the changed config.
    pub(crate) fn add_not_continued(&mut self, name: &str, parent: NodeId) {
        // As many as a page shows, and some more.
        const NAMES_MAX: usize = 100;
        let name = format!("{name} in forks of {}", self.name_of(parent));
        if self.not_continued.len() < NAMES_MAX || self.not_continued.contains_key(&name) {
            *self.not_continued.entry(name).or_default() += 1;
        }
    }

    /// Streams of forks that are no more, with the number of their forks, since the last call.
    pub(crate) fn take_not_continued(&mut self) -> BTreeMap<String, u64> {
        std::mem::take(&mut self.not_continued)
    }

    /// Notes that it calls a function that the config wrote.
    pub fn set_called(&mut self, node: NodeId, called: Called) {
        self.called.insert(node, called);
    }

    /// The function of the config that a node calls, of those that were made while the config was loaded.
    pub fn called(&self, node: NodeId) -> Option<&Called> {
        self.called.get(&node)
    }

    /// The function with which a node makes streams for each key.
    pub fn maker(&self, node: NodeId) -> Option<&Value> {
        self.slot(node)?.node.as_ref()?.maker()
    }

    /// Removes a node: values for it go nowhere, and its timers are cancelled.
    pub fn remove(&mut self, id: NodeId) {
        let mut removed = vec![id];
        while let Some(id) = removed.pop() {
            let Some(slot) = self.slot_mut(id) else { continue };
            let node = slot.node.take();
            slot.id = None;
            slot.children = Children::of(&[]);
            self.free.push(id);
            self.removed += 1;
            removed.extend(node.map(|node| self.forks_of(&*node)).unwrap_or_default());
        }
        self.cancel_timers_of_removed();
    }

    /// Cancels the timers of removed nodes once so many nodes were removed that looking through all timers is cheap for each of them.
    fn cancel_timers_of_removed(&mut self) {
        const REMOVED_MIN: usize = 1_024;
        if self.removed < REMOVED_MIN || self.removed < self.timers.len() / 2 {
            return;
        }
        self.cancel_all_timers_of_removed();
    }

    fn cancel_all_timers_of_removed(&mut self) {
        self.removed = 0;
        let slots = &self.slots;
        self.timers.keep(|id| slots.get(id.place()).is_some_and(|slot| slot.id == Some(id)));
    }

    /// Number of timers.
    pub fn timers(&self) -> usize {
        self.timers.len()
    }

    /// The nodes of the forks of a node that is gone.
    fn forks_of(&mut self, node: &dyn Node) -> Vec<NodeId> {
        let (forks, nodes) = node.forks();
        self.counts.add_forks(-forks.cast_signed());
        nodes
    }

    /// While `make` runs, exceptions of the nodes that it adds go to `handler` (spec riemann §10.6).
    pub fn with_rescue<T>(&mut self, handler: NodeId, make: impl FnOnce(&mut Graph) -> T) -> T {
        let outer = self.rescue.replace(handler);
        let made = make(self);
        self.rescue = outer;
        made
    }

    /// Gives a value to a node, and to its children what it emits. Returns whether it matched.
    ///
    /// # Errors
    /// What the node itself throws. What its children throw is caught.
    pub fn push(&mut self, id: NodeId, value: &Value) -> Outcome<bool> {
        self.push_owned(id, &mut value.clone())
    }

    /// As [`Graph::push`], for a value that nobody else needs: if it is an event and nobody else has it, streams change it in place.
    ///
    /// # Errors
    /// What the node itself throws.
    pub fn push_owned(&mut self, id: NodeId, value: &mut Value) -> Outcome<bool> {
        self.visit(id, |node, turn| node.push(value, turn)).unwrap_or(Ok(false))
    }

    /// As [`Graph::push`] for a function of the config that calls its children itself (`call-rescue`): what the node throws is
    /// caught, as for any child.
    pub fn push_and_catch(&mut self, id: NodeId, value: &Value) {
        self.push_to_child(id, id, &mut value.clone());
    }

    /// What a node remembers; nil if nothing.
    pub fn save(&self, id: NodeId) -> Value {
        let node = self.slot(id).and_then(|slot| slot.node.as_ref());
        node.map_or(Value::Nil, |node| node.save(self))
    }

    /// As [`Node::save_part`], for a node with forks.
    pub fn save_part(&self, id: NodeId, from: usize, most: usize) -> Option<(Value, Option<usize>)> {
        self.slot(id)?.node.as_ref()?.save_part(self, from, most)
    }

    /// Gives a node back what [`Graph::save`] returned for the same stream of an earlier graph. Anything else does no harm.
    pub fn restore(&mut self, id: NodeId, saved: &Value) {
        if self.depth == 0 {
            self.evaluation.begin_event();
        }
        if let Some(mut node) = self.slot_mut(id).and_then(|slot| slot.node.take()) {
            node.restore(saved, &mut Turn { graph: self, node: id });
            self.slots[id.place()].node = Some(node);
        }
    }

    /// Sets the clock, and runs the timers that are due by then, each at its own time; at most `max` of them. Returns whether all have
    /// run.
    pub fn advance(&mut self, now_us: i64, max: usize) -> bool {
        for _ in 0..max {
            let Some((timer, id)) = self.timers.take_due(now_us) else {
                self.now_us = self.now_us.max(now_us);
                return true;
            };
            if self.slot(id).is_none() {
                continue;
            }
            let timer =
                if timer.due_us() < self.late_before_us { timer.at(self.late_before_us) } else { timer };
            self.now_us = self.now_us.max(timer.due_us());
            if let Some(Err(error)) = self.visit(id, |node, turn| node.due(timer, turn)) {
                self.catch(id, id, error, &Value::Nil);
            }
        }
        false
    }

    /// The clock will be at that time. If that is more than an hour ahead, timers that are due until then run once, as if they were due
    /// then, and not at each of their times: the clock has stepped, or the machine was suspended.
    pub fn step_clock(&mut self, now_us: i64) {
        if now_us.saturating_sub(self.now_us) > LATE_US_MAX {
            self.late_before_us = now_us;
        }
    }

    /// When the next timer is due, in microseconds.
    pub fn next_due_us(&self) -> Option<i64> {
        self.timers.next_due_us()
    }

    /// Whether there are exceptions to take.
    pub fn has_caught(&self) -> bool {
        !self.caught.is_empty() || self.caught_more > 0
    }

    /// The exceptions that no stream of the config handles, since the last call, and how many more there were.
    pub fn take_caught(&mut self) -> (Vec<Caught>, u64) {
        (std::mem::take(&mut self.caught), std::mem::take(&mut self.caught_more))
    }

    /// One turn of a node, and what it emits given to its children. None if it was removed.
    fn visit<T>(
        &mut self,
        id: NodeId,
        run: impl FnOnce(&mut dyn Node, &mut Turn<'_>) -> Outcome<T>,
    ) -> Option<Outcome<T>> {
        if self.depth > 0 && self.pushes >= self.limits.pushes {
            self.counts.add(Limit::PushesFull, 1);
            return None;
        }
        if let Err(error) = self.enter() {
            return Some(Err(error));
        }
        self.pushes += 1;
        let before = self.emitted.len();
        let done = self.turn(id, run);
        if self.emitted.len() > before {
            self.pass_on(id, before);
        }
        self.depth -= 1;
        self.evaluation.budget.leave();
        done
    }

    /// Goes one stream deeper. Functions that call streams, and streams that call functions, share the bound of the stack.
    fn enter(&mut self) -> Outcome<()> {
        if self.depth >= DEPTH_MAX {
            let message = "streams pass this event on to each other without an end";
            return Err(EvalError::throw(&class::STACK_OVERFLOW, message));
        }
        if self.depth == 0 {
            self.pushes = 0;
            self.evaluation.begin_event();
        }
        self.evaluation.budget.enter()?;
        self.depth += 1;
        Ok(())
    }

    /// The place of a node, while no other node has it.
    fn slot(&self, id: NodeId) -> Option<&Slot> {
        self.slots.get(id.place()).filter(|slot| slot.id == Some(id))
    }

    fn slot_mut(&mut self, id: NodeId) -> Option<&mut Slot> {
        self.slots.get_mut(id.place()).filter(|slot| slot.id == Some(id))
    }

    /// One turn of a node. None if it was removed.
    fn turn<T>(
        &mut self,
        id: NodeId,
        run: impl FnOnce(&mut dyn Node, &mut Turn<'_>) -> Outcome<T>,
    ) -> Option<Outcome<T>> {
        if !self.overruns.is_empty()
            && let Some(left_out) = self.leave_out(id)
        {
            return Some(Err(left_out));
        }
        let (steps_before, memory_before) = self.budget_left();
        let slot = self.slot_mut(id)?;
        let Some(mut node) = slot.node.take() else {
            let message = "a stream cannot get an event while it handles one";
            return Some(Err(EvalError::throw(&class::ILLEGAL_STATE, message)));
        };
        let done = run(&mut *node, &mut Turn { graph: self, node: id });
        let done = match self.evaluation.charge_effort() {
            Ok(()) => done,
            Err(error) => Err(error),
        };
        if let Err(error) = &done {
            self.note_overrun(id, error, (steps_before, memory_before));
        }
        // What it called may have removed it.
        match self.slot_mut(id) {
            Some(slot) => {
                // The place is empty; `forget` spares each visit the look at what an assignment would drop.
                std::mem::forget(slot.node.replace(node));
            }
            None => self.forks_of(&*node).into_iter().for_each(|node| self.remove(node)),
        }
        Some(done)
    }

    fn budget_left(&self) -> (u64, u64) {
        let budget = &self.evaluation.budget;
        (budget.steps_left(), budget.memory_left())
    }

    /// What a stream throws that is left out for the rest of the second.
    #[cold]
    fn leave_out(&mut self, id: NodeId) -> Option<EvalError> {
        let now_us = self.now_us;
        if !self.overruns.leave_out(self.kind_of(id), now_us) {
            return None;
        }
        self.counts.add(Limit::LeftOut, 1);
        let message =
            "this stream takes too many steps or too much memory: it is left out for the rest of this second";
        Some(EvalError::throw(&class::ILLEGAL_STATE, message))
    }

    /// Counts that a stream ended at a limit, if it is the one that used most of it. Others may only have found that nothing was left.
    #[cold]
    fn note_overrun(&mut self, id: NodeId, error: &EvalError, (steps, memory): (u64, u64)) {
        let (steps_left, memory_left) = self.budget_left();
        let limits = self.evaluation.event_limits;
        let is_overrun = match error.reason() {
            Reason::TooManySteps => steps.saturating_sub(steps_left) > limits.steps / 2,
            Reason::TooMuchMemory => memory.saturating_sub(memory_left) > limits.memory_bytes / 2,
            Reason::TooDeep | Reason::Thrown(_) => false,
        };
        if is_overrun {
            let (kind, now_us) = (self.kind_of(id), self.now_us);
            self.overruns.note(kind, now_us);
        }
    }

    /// What the same streams of all forks have in common: their form, or, without one, a number of its own.
    fn kind_of(&self, id: NodeId) -> u64 {
        match self.forms.get(id.place()) {
            Some(0) | None => id.place() as u64,
            Some(form) => *form,
        }
    }

    /// Gives what was emitted since then to the children.
    fn pass_on(&mut self, id: NodeId, before: usize) {
        for at in before..self.emitted.len() {
            let (to, mut value) = std::mem::replace(&mut self.emitted[at], (To::Port(0), Value::Nil));
            match to {
                To::Node(child) => self.push_to_child(id, child, &mut value),
                To::Port(port) => self.push_to_port(id, port, &mut value),
            }
        }
        self.emitted.truncate(before);
    }

    /// Gives a value to the children of a port: each but the last gets a copy.
    fn push_to_port(&mut self, id: NodeId, port: u16, value: &mut Value) {
        let Some(range) = self.slot(id).map(|slot| slot.port(port)) else { return };
        for at in range.clone() {
            // Its children can change while it is at them: it is removed with its fork.
            let Some(child) = self.slot(id).and_then(|slot| slot.child(port, at)) else { return };
            match at + 1 == range.end {
                true => self.push_to_child(id, child, value),
                false => self.push_to_child(id, child, &mut value.clone()),
            }
        }
    }

    fn push_to_child(&mut self, parent: NodeId, child: NodeId, value: &mut Value) {
        if let Err(error) = self.push_owned(child, value) {
            self.catch(parent, child, error, value);
        }
    }

    fn catch(&mut self, parent: NodeId, node: NodeId, error: EvalError, value: &Value) {
        // A stream that was made elsewhere has the handler of the stream that passes to it.
        let handler = |node| self.slot(node).and_then(|slot| slot.rescue);
        let rescue = handler(node).or_else(|| handler(parent)).filter(|rescue| *rescue != node);
        let event = rescue.map(|rescue| (rescue, exception_event(&error, value, self.now_us)));
        let Some((rescue, event)) = event else {
            return self.keep_caught(Caught { parent, node, error, value: value.clone() });
        };
        if let Err(error) = self.push(rescue, &event) {
            self.keep_caught(Caught { parent: node, node: rescue, error, value: event });
        }
    }

    fn keep_caught(&mut self, caught: Caught) {
        match self.caught.len() < CAUGHT_MAX {
            true => self.caught.push(caught),
            false => self.caught_more += 1,
        }
    }
}

impl Slot {
    /// Where the children of a port are.
    fn port(&self, port: u16) -> Range<usize> {
        let all = self.children.all().len();
        let port = usize::from(port);
        let Some(ports) = &self.ports else { return if port == 0 { 0..all } else { all..all } };
        let end = |port: usize| ports.get(port).map_or(all, |end| *end as usize);
        (if port == 0 { 0 } else { end(port - 1) })..end(port)
    }

    fn child(&self, port: u16, at: usize) -> Option<NodeId> {
        self.port(port).contains(&at).then(|| self.children.all().get(at).copied())?
    }
}
