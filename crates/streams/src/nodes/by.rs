//! `by`: streams for each key, made when its first event comes (spec riemann §10.1, §17.2).
//!
//! A fork is removed when it has had no event for [`Limits::fork_idle_us`](crate::graph::Limits), or for the ttl of its last event
//! where that is longer. The forks are looked through in parts, so that none of these takes long. At the limit of forks a new one takes the
//! place of one that is idle (`idle`), which takes the time of a few forks however many there are.

use arcstr::{ArcStr, literal};
use hashbrown::HashTable;

use super::arguments::Args;
use super::function::Function;
use super::idle::Idle;
use super::state;
use super::{fields, forms};
use crate::collections::element::Element;
use crate::event::Field;
use crate::graph::{Children, Graph, Identity, Limit, Node, NodeId, TimerId, Turn};
use crate::language::error::Outcome;
use crate::number::Number;
use crate::value::Value;

/// The forks are looked through in so many parts at least, each a fraction of the idle time after the other.
const SWEEP_PARTS: usize = 16;

/// The key of the fork that is made while the config is loaded, and removed at once.
const TRIAL_KEY: ArcStr = literal!("trial");

/// Forks of a part, at most: it takes a few milliseconds if all of them are removed.
const SWEEP_FORKS_MAX: usize = 4_096;

/// A key: one value, or the values of a vector.
type Key = Box<[Value]>;

#[derive(Debug)]
struct Fork {
    key: Key,
    hash: u64,
    /// When its last event came.
    seen_us: i64,
    /// How long it may be idle.
    idle_us: i64,
    children: Children,
    /// All nodes that were made for it, the children among them.
    nodes: Children,
}

#[derive(Debug)]
struct By {
    key: Function,
    /// Makes the children of a key.
    fork: Value,
    /// Its name, of a macro whose streams do not depend on the key.
    is_same_for_all: bool,
    /// The streams of its forks by their identities, as the trial made them: name and place.
    inner: Vec<(Identity, ArcStr)>,
    /// The same, of the `by` whose state this one takes back.
    inner_before: Vec<(Identity, ArcStr)>,
    /// Places in `forks`, by key.
    places: HashTable<u32>,
    forks: Vec<Option<Fork>>,
    free: Vec<u32>,
    /// Where the next part of the sweep begins.
    sweep_at: usize,
    sweep: Option<TimerId>,
    /// The key of the event at hand: kept for its memory.
    wanted: Vec<Value>,
    /// The forks by their last events.
    idle: Idle,
}

/// `(by-fn fields new-fork)`
pub(super) fn by_fn(args: &mut Args<'_>) -> Outcome {
    let key = Function::of_keys(args.take()?);
    args.end_form();
    let fork = args.take()?.clone();
    let name = macro_name(args)?;
    let by = By {
        key,
        fork,
        is_same_for_all: name.is_some_and(|name| name != "by-builder"),
        inner: Vec::new(),
        inner_before: Vec::new(),
        places: HashTable::new(),
        forks: Vec::new(),
        free: Vec::new(),
        sweep_at: 0,
        sweep: None,
        wanted: Vec::new(),
        idle: Idle::default(),
    };
    let stream = args.add(by);
    if let Value::Stream(node) = stream {
        args.graph.add_trial(node);
    }
    Ok(stream)
}

/// The macro that became this call, and makes its last argument: the config knows the stream by its name.
fn macro_name(args: &mut Args<'_>) -> Outcome<Option<&'static str>> {
    if args.peek().is_none() {
        return Ok(None);
    }
    let Value::Keyword(given) = args.take()? else { return Err(args.wrong("it takes two arguments")) };
    let name = forms::MACROS.iter().map(|(name, _)| *name).find(|name| given == name);
    let name = name.ok_or_else(|| args.wrong("it takes two arguments"))?;
    args.named(name);
    Ok(Some(name))
}

impl Node for By {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        self.read_key(value, turn)?;
        let hash = turn.hash(&self.wanted);
        let place = match self.find(hash) {
            Some(place) => place,
            None => match self.make(hash, turn)? {
                Some(place) => {
                    self.idle.file(place, turn.now_us());
                    place
                }
                None => return Ok(true),
            },
        };
        let fork = self.forks[place as usize].as_mut().expect("places are of forks that are there");
        fork.seen_us = turn.now_us();
        fork.idle_us = idle_us(value, turn);
        if let Some((last, others)) = fork.children.all().split_last() {
            others.iter().for_each(|child| turn.emit_to(*child, value.clone()));
            turn.emit_to(*last, std::mem::take(value));
        }
        Ok(true)
    }

    fn due(&mut self, _: TimerId, turn: &mut Turn<'_>) -> Outcome<()> {
        for _ in 0..self.sweep_part() {
            let place = self.sweep_at % self.forks.len();
            self.sweep_at = place + 1;
            let fork = self.forks[place].as_ref();
            if fork.is_some_and(|fork| turn.now_us().saturating_sub(fork.seen_us) > fork.idle_us) {
                self.remove(place, turn);
                turn.count(Limit::ForkIdle, 1);
            }
        }
        self.sweep = None;
        match self.places.is_empty() {
            true => {
                (self.forks, self.free) = (Vec::new(), Vec::new());
                self.idle.clear();
            }
            false => self.set_sweep(turn),
        }
        Ok(())
    }

    fn save(&self, graph: &Graph) -> Value {
        self.save_part(graph, 0, usize::MAX).map(|(saved, _)| saved).unwrap_or_default()
    }

    fn save_part(&self, graph: &Graph, from: usize, most: usize) -> Option<(Value, Option<usize>)> {
        let end = from.saturating_add(most).min(self.forks.len());
        let part = self.forks.get(from..end).unwrap_or_default();
        let forks = Value::vector(part.iter().flatten().map(|fork| fork.saved(graph)));
        let inner = if from == 0 { &*self.inner } else { &[] };
        let inner =
            inner.iter().flat_map(|(id, name)| [Value::from(id.cast_signed()), Value::Text(name.clone())]);
        let inner = Value::vector(inner);
        let saved =
            state::saved([("forks", forks), ("sweep", state::of_timer(self.sweep)), ("inner", inner)]);
        Some((saved, (end < self.forks.len()).then_some(end)))
    }

    fn restore(&mut self, saved: &Value, turn: &mut Turn<'_>) {
        // The first part of a state has them.
        for pair in state::values(saved, "inner").as_chunks::<2>().0 {
            if let [Value::Number(Number::Int(identity)), Value::Text(name)] = pair {
                self.inner_before.push((identity.cast_unsigned(), name.clone()));
            }
        }
        for fork in state::values(saved, "forks") {
            // One that cannot be made again is left out: its function throws now, or the state is damaged.
            self.restore_fork(&fork, turn);
        }
        if let Some(sweep) = self.sweep.take() {
            turn.cancel_timer(sweep);
        }
        self.sweep = state::timer((saved, "sweep"), None, sweep_us(turn), turn);
        if self.sweep.is_none() && !self.places.is_empty() {
            self.set_sweep(turn);
        }
    }

    fn maker(&self) -> Option<&Value> {
        Some(&self.fork)
    }

    fn trial(&mut self, turn: &mut Turn<'_>) -> Outcome<()> {
        let one = Value::Text(TRIAL_KEY);
        let argument = match &self.key {
            Function::Keys(keys) => state::vector(&vec![one; keys.len()]),
            _ => one,
        };
        let look = |graph: &Graph, children: Children, nodes: &[NodeId]| {
            let all = graph.identities(children.all(), nodes).into_iter();
            all.map(|(identity, node)| (identity, graph.name_of(node).into())).collect()
        };
        match turn.try_with(|graph| make(graph, &self.fork, argument), look) {
            Ok(inner) => {
                self.inner = inner;
                Ok(())
            }
            // Another key may be right.
            Err(error) if !self.is_same_for_all => {
                let node = turn.node();
                let at = turn.graph().origin(node).map(|(_, at)| at.clone()).unwrap_or_default();
                let text = format!(
                    "a trial with the key {TRIAL_KEY:?} threw `{}` ({}): outputs that its streams make are not known",
                    error.in_words(),
                    error.at()
                );
                turn.graph().surroundings.declared.note(at, text);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn forks(&self) -> (u64, Vec<NodeId>) {
        let nodes = self.forks.iter().flatten().flat_map(|fork| fork.nodes.all().iter().copied());
        (self.places.len() as u64, nodes.collect())
    }
}

impl Fork {
    /// `[key seen idle states]`, the states by the identities of their nodes.
    fn saved(&self, graph: &Graph) -> Value {
        let mut states = Vec::new();
        for (identity, node) in graph.identities(self.children.all(), self.nodes.all()) {
            let state = graph.save(node);
            if !state.is_nil() {
                states.extend([Value::from(identity.cast_signed()), state]);
            }
        }
        Value::vector([
            state::vector(&self.key),
            self.seen_us.into(),
            self.idle_us.into(),
            Value::vector(states),
        ])
    }

    /// The state of a node among those that `saved` gave.
    fn state(states: &[Value], identity: Identity) -> Option<&Value> {
        let is_its = |pair: &&[Value]| matches!(pair, [Value::Number(Number::Int(id)), _] if id.cast_unsigned() == identity);
        states.chunks(2).find(is_its)?.get(1)
    }
}

impl By {
    /// Reads the key of an event into `wanted`.
    fn read_key(&mut self, value: &Value, turn: &mut Turn<'_>) -> Outcome<()> {
        self.wanted.clear();
        let keys = match &self.key {
            Function::Keys(keys) => keys,
            key => std::slice::from_ref(key),
        };
        for key in keys {
            self.wanted.push(key.call(value, turn)?);
        }
        Ok(())
    }

    fn find(&self, hash: u64) -> Option<u32> {
        let is_wanted = |place: &u32| {
            let fork = self.forks[*place as usize].as_ref();
            fork.is_some_and(|fork| fork.hash == hash && is_same(&fork.key, &self.wanted))
        };
        self.places.find(hash, is_wanted).copied()
    }

    /// Makes the fork of the key at hand. None if there are as many as may be.
    fn make(&mut self, hash: u64, turn: &mut Turn<'_>) -> Outcome<Option<u32>> {
        if turn.counts().forks() >= turn.limits().forks && !self.evict(turn) {
            turn.count(Limit::ForksFull, 1);
            return Ok(None);
        }
        let key: Key = self.wanted.as_slice().into();
        let argument = match &self.key {
            Function::Keys(_) => state::vector(&key),
            _ => key.first().cloned().unwrap_or_default(),
        };
        let (children, nodes) = turn.make_with(|graph| make(graph, &self.fork, argument))?;
        let fork =
            Fork { key, hash, seen_us: turn.now_us(), idle_us: 0, children, nodes: Children::of(&nodes) };
        let place = match self.free.pop() {
            Some(place) => {
                self.forks[place as usize] = Some(fork);
                place
            }
            None => {
                self.forks.push(Some(fork));
                u32::try_from(self.forks.len() - 1).expect("each fork has at least one of at most 2^32 nodes")
            }
        };
        let forks = &self.forks;
        let hash_of = |place: &u32| forks[*place as usize].as_ref().map_or(0, |fork| fork.hash);
        self.places.insert_unique(hash, place, hash_of);
        turn.count_forks(1);
        if self.sweep.is_none() {
            self.set_sweep(turn);
        }
        Ok(Some(place))
    }

    fn remove(&mut self, place: usize, turn: &mut Turn<'_>) {
        let Some(fork) = self.forks[place].take() else { return };
        let at = self.places.find_entry(fork.hash, |known| *known as usize == place);
        at.map(|entry| entry.remove()).expect("each fork has its place");
        self.free.push(place as u32);
        turn.drop_nodes(fork.nodes.all());
        turn.count_forks(-1);
    }

    /// Removes the fork that had no event for the longest time, or one that comes near it. False if there is none.
    fn evict(&mut self, turn: &mut Turn<'_>) -> bool {
        let By { idle, forks, .. } = self;
        let seen_us = |place: u32| forks.get(place as usize)?.as_ref().map(|fork| fork.seen_us);
        let Some(place) = idle.take_oldest(seen_us) else { return false };
        self.remove(place as usize, turn);
        turn.count(Limit::ForkEvicted, 1);
        true
    }

    /// How many forks a part of the sweep looks at.
    fn sweep_part(&self) -> usize {
        self.forks.len().div_ceil(SWEEP_PARTS).min(SWEEP_FORKS_MAX)
    }

    fn set_sweep(&mut self, turn: &mut Turn<'_>) {
        // With more forks than the parts have room for, parts come more often, with pauses for other work.
        let parts = self.forks.len().div_ceil(self.sweep_part().max(1)).max(SWEEP_PARTS);
        let us_min = if parts > SWEEP_PARTS { 50_000 } else { 1_000_000 };
        let after_us = (turn.limits().fork_idle_us / parts as i64).max(us_min);
        self.sweep = Some(turn.set_timer(turn.now_us().saturating_add(after_us)));
    }

    /// Counts a stream of a fork that remembered something and is no more.
    fn not_continued(&self, identity: Identity, turn: &mut Turn<'_>) {
        let name = self.inner_before.iter().find(|(known, _)| *known == identity).map(|(_, name)| name);
        let by = turn.node();
        turn.graph().add_not_continued(name.map_or("a stream", ArcStr::as_str), by);
    }

    fn restore_fork(&mut self, saved: &Value, turn: &mut Turn<'_>) -> Option<()> {
        let Value::Vector(parts) = saved else { return None };
        let key = parts.first().and_then(fields::items)?;
        let is_whole = match &self.key {
            Function::Keys(keys) => keys.len() == key.len(),
            _ => key.len() == 1,
        };
        self.wanted = key;
        let hash = turn.hash(&self.wanted);
        if !is_whole || self.find(hash).is_some() {
            return None;
        }
        let place = self.make(hash, turn).ok()??;
        let fork = self.forks[place as usize].as_mut()?;
        let int = |at: usize| match parts.get(at) {
            Some(Value::Number(Number::Int(us))) => *us,
            _ => 0,
        };
        // Not later than now: the clock may have been ahead.
        (fork.seen_us, fork.idle_us) = (int(1).min(turn.now_us()), int(2).min(idle_us_max(turn)));
        self.idle.file(place, fork.seen_us);
        let states = parts.get(3).and_then(fields::items).unwrap_or_default();
        let identities = turn.graph().identities(fork.children.all(), fork.nodes.all());
        for (identity, node) in &identities {
            if let Some(state) = Fork::state(&states, *identity) {
                turn.restore_node(*node, state);
            }
        }
        for pair in states.as_chunks::<2>().0 {
            if let Value::Number(Number::Int(was)) = pair[0]
                && !identities.iter().any(|(identity, _)| *identity == was.cast_unsigned())
            {
                self.not_continued(was.cast_unsigned(), turn);
            }
        }
        Some(())
    }
}

/// Makes the children of a key.
fn make(graph: &mut Graph, fork: &Value, key: Value) -> Outcome<Children> {
    let made = graph.call(fork, &[key])?;
    let children = fields::items(&made).unwrap_or_else(|| vec![made.clone()]);
    let children: Vec<NodeId> = children.iter().map(|child| graph.child(child)).collect();
    Ok(Children::of(&children))
}

/// How long after one part of the sweep the next one is.
fn sweep_us(turn: &Turn<'_>) -> i64 {
    const SWEEP_US_MIN: i64 = 1_000_000;
    (turn.limits().fork_idle_us / SWEEP_PARTS as i64).max(SWEEP_US_MIN)
}

/// Longest time for which an event's ttl keeps its fork: 30 days, for clients choose it.
const IDLE_US_MAX: i64 = 30 * 24 * 3600 * 1_000_000;

/// How long the fork of an event may be idle.
fn idle_us(value: &Value, turn: &Turn<'_>) -> i64 {
    let ttl_us = fields::get(value, Field::Ttl).as_number().map_or(0, fields::to_us);
    ttl_us.min(IDLE_US_MAX).max(turn.limits().fork_idle_us)
}

fn idle_us_max(turn: &Turn<'_>) -> i64 {
    IDLE_US_MAX.max(turn.limits().fork_idle_us)
}

fn is_same(a: &[Value], b: &[Value]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.equal(b))
}
