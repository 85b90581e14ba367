//! The relays of a shard, and the path of a point through several of them.
//!
//! Path of a point: `Transforms::push_points` -> **[`Relays::push`]** -> [`Relays::points`] -> `Relay::point`, and for
//! each copy that a cluster sends to another relay: an entry in the next [`Level`] -> `Relay::point` of that relay, until
//! a level is empty. Not here: one relay's routing (`relay`), the explanation of a route (`shard::explain`).
//! Invariants: a point makes at most [`VISITS_MAX`] visits to further relays, and any more are counted as refused; no
//! level has entries when a call returns; by then each visit is in the account of its edge.

use std::sync::Arc;

use config::plan::{Plan, RelayTransform};
use model::{Now, OutputId, Peer, Point, RecordAccount, Span, TransformId};
use process::relay::Entry;

use crate::Routed;
use crate::encode::OutputEncoder;
use crate::shard::transforms::relay::{Due, Ended, LOOK_EVERY_NS, PointEnd, Relay};
use crate::shard::transforms::wiring::{Edge, Wiring};

/// Most visits of one point to relays after the first one. A line has at most as many copies, too.
pub(crate) const VISITS_MAX: usize = process::relay::COPIES_MAX;

/// Points that each relay routes before the next one does: the question whether to go on follows after all of them.
pub(crate) const AT_ONCE_POINTS: usize = 4;

/// All relays of a shard.
#[derive(Debug, Default)]
pub(crate) struct Relays {
    /// In the order of the plan.
    all: Vec<Relay>,
    /// Their edges to other relays, by the ids of these.
    next: Vec<Vec<Next>>,
    /// Their indexes, each relay after those that feed it.
    order: Vec<usize>,
    /// Buffers.
    levels: Levels,
}

/// An edge to another relay.
#[derive(Debug)]
pub(crate) struct Next {
    /// The relay's id, as statements refer to it.
    id: TransformId,
    /// Its index.
    at: usize,
    account: Arc<RecordAccount>,
    /// Points of this call that are not in the account yet.
    ended: Ended,
    received: u64,
}

impl Next {
    fn new(id: TransformId, at: usize, account: Arc<RecordAccount>) -> Next {
        Next { id, at, account, ended: Ended::default(), received: 0 }
    }
}

/// Points that a relay has routed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// How they ended at this relay: a copy for another relay is a copy.
    pub(crate) here: Ended,
    /// How they ended after all relays that got them.
    pub(crate) through: Ended,
    /// Their number.
    pub(crate) points: usize,
}

#[derive(Debug, Default)]
struct Levels {
    now: Level,
    next: Level,
    /// Visits that the current point may still make.
    left: usize,
    /// Edges with figures that are not in their account: index of the relay, and of its edge.
    used: Vec<(usize, usize)>,
}

/// Points on their way to relays that are equally far from the first one.
#[derive(Debug, Default)]
struct Level {
    /// Lines that are not in the batch, each with its LF.
    bytes: Vec<u8>,
    visits: Vec<Visit>,
}

#[derive(Clone, Copy, Debug)]
struct Visit {
    /// Index of the relay that sends it, and of its edge.
    from: (usize, usize),
    point: Point,
    /// Its line lies in `Level::bytes`, not in the batch.
    is_own: bool,
    /// It has a new name, whose hash is not known.
    is_renamed: bool,
}

impl Level {
    fn clear(&mut self) {
        self.bytes.clear();
        self.visits.clear();
    }

    /// Appends a line.
    fn line(&mut self, name: &[u8], rest: &[u8]) -> Span {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(rest);
        let line = Span::new(begin, self.bytes.len() - begin);
        self.bytes.push(b'\n');
        line
    }
}

impl Relays {
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Relay> {
        self.all.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Relay> {
        self.all.iter_mut()
    }

    pub(crate) fn at(&self, at: usize) -> &Relay {
        &self.all[at]
    }

    pub(crate) fn at_mut(&mut self, at: usize) -> &mut Relay {
        &mut self.all[at]
    }

    /// Their indexes, each after those that feed it.
    pub(crate) fn in_order(&self) -> Vec<usize> {
        self.order.clone()
    }

    /// Before another plan applies: routes the results of those that it does not have, and of aggregation rules that it
    /// does not have.
    pub(crate) fn close_for(
        &mut self,
        plan: &Plan,
        outputs: &mut [OutputEncoder],
        now: Now,
        out: &mut Routed,
    ) {
        for at in self.in_order() {
            match plan.relays().find(|(_, kept, _)| kept.name == self.at(at).name) {
                Some((_, _, relay)) => self.close_rules(at, relay, outputs, now, out),
                None => self.finish(at, outputs, now, out, &mut || true),
            }
        }
    }

    /// Applies a plan: those that keep their name keep their state.
    pub(crate) fn wire(&mut self, wiring: &Wiring<'_>) {
        let Wiring { plan, accounts, down, seed, .. } = *wiring;
        let mut before = std::mem::take(&mut self.all);
        let places: Vec<_> = plan.relays().map(|(id, transform, _)| (id, &*transform.name)).collect();
        let (mut all, mut edges) = (Vec::with_capacity(places.len()), Vec::with_capacity(places.len()));
        for (_, transform, relay) in plan.relays() {
            let known = before.iter().position(|known| known.name == transform.name);
            all.push(match known.map(|known| before.swap_remove(known)) {
                Some(mut known) => {
                    known.replan(relay, down, seed);
                    known
                }
                None => Relay::new(&transform.name, relay, down, seed),
            });
            let next = relay.plan.next_relays().into_iter().filter_map(|id| {
                let at = places.iter().position(|(known, _)| *known == id)?;
                let account = accounts.edge(places[at].1, &transform.name).map(Arc::clone);
                Some(Next::new(id, at, account.unwrap_or_default()))
            });
            edges.push(next.collect());
        }
        let order = plan.relays_in_order();
        debug_assert!(all.len() == edges.len() && all.len() == order.len(), "each relay is there once");
        (self.all, self.next, self.order) = (all, edges, order);
    }

    /// The indexes of relays that get something from one of `first`, including these.
    pub(crate) fn reached_from(&self, first: impl Iterator<Item = usize>) -> Vec<usize> {
        let mut is_reached = vec![false; self.all.len()];
        first.for_each(|at| is_reached[at] = true);
        for at in &self.order {
            if is_reached[*at] {
                self.next[*at].iter().for_each(|next| is_reached[next.at] = true);
            }
        }
        (0..self.all.len()).filter(|at| is_reached[*at]).collect()
    }

    /// Routes points of a source, whose lines lie in `bytes`, by the relays that it feeds. Returns how many, and how they
    /// ended after the first relay and those behind it; none without relays. After those whose names need long searches,
    /// `go_on` is called: if it returns false, the rest is left.
    #[expect(clippy::too_many_arguments, reason = "what it works on, once for each batch")]
    #[inline]
    pub(crate) fn push(
        &mut self,
        edges: &[Edge],
        entry: Entry,
        bytes: &[u8],
        points: &[Point],
        outputs: &mut [OutputEncoder],
        now: Now,
        out: &mut Routed,
        go_on: &mut dyn FnMut() -> bool,
    ) -> (usize, Option<Ended>) {
        match edges {
            [] => (points.len(), None),
            [Edge { at, account }] => {
                let Taken { here, through, points: taken } =
                    self.points(*at, entry, bytes, points, outputs, now, out, go_on);
                account.receive(taken as u64);
                here.settle_on(account);
                (taken, Some(through))
            }
            several => self.push_to_each(several, entry, bytes, points, outputs, now, out, go_on),
        }
    }

    /// The same for several relays, a few points at a time.
    #[expect(clippy::too_many_arguments, reason = "what it works on, once for each batch")]
    fn push_to_each(
        &mut self,
        edges: &[Edge],
        entry: Entry,
        bytes: &[u8],
        points: &[Point],
        outputs: &mut [OutputEncoder],
        now: Now,
        out: &mut Routed,
        go_on: &mut dyn FnMut() -> bool,
    ) -> (usize, Option<Ended>) {
        let (mut taken, mut ended): (usize, Option<Ended>) = (0, None);
        let (mut has_worked, mut goes_on) = (false, true);
        while goes_on && taken < points.len() {
            let some = &points[taken..points.len().min(taken + AT_ONCE_POINTS)];
            for (place, Edge { at, account }) in edges.iter().enumerate() {
                let worked = &mut || {
                    has_worked = true;
                    true
                };
                let Taken { here, through, points: _all } =
                    self.points(*at, entry, bytes, some, outputs, now, out, worked);
                account.receive(some.len() as u64);
                here.settle_on(account);
                if place == 0 {
                    ended.get_or_insert_default().add(through);
                }
            }
            taken += some.len();
            goes_on = !std::mem::take(&mut has_worked) || go_on();
        }
        (taken, ended)
    }

    /// Routes points, whose lines lie in `bytes`, and returns how many. After those whose names need long searches,
    /// `go_on` is called: if it returns false, the rest is left.
    #[expect(clippy::too_many_arguments, reason = "what it works on, once for each batch")]
    #[inline]
    pub(crate) fn points(
        &mut self,
        at: usize,
        entry: Entry,
        bytes: &[u8],
        points: &[Point],
        outputs: &mut [OutputEncoder],
        now: Now,
        out: &mut Routed,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Taken {
        if self.next[at].is_empty() {
            let (here, points) = self.all[at].points(entry, bytes, points, outputs, now, out, go_on);
            return Taken { here, through: here, points };
        }
        let mut taken = Taken { here: Ended::default(), through: Ended::default(), points: 0 };
        for point in points {
            let (here, through) = self.point(at, entry, bytes, *point, outputs, now, out);
            taken.here.count(here);
            taken.through.count(through);
            taken.points += 1;
            if self.has_worked_much(at) && !go_on() {
                break;
            }
        }
        self.settle_edges();
        taken
    }

    /// One point: how it ended at this relay, and after all relays that it passed.
    #[expect(clippy::too_many_arguments, reason = "what it works on, once for each point")]
    fn point(
        &mut self,
        at: usize,
        entry: Entry,
        bytes: &[u8],
        point: Point,
        outputs: &mut [OutputEncoder],
        now: Now,
        out: &mut Routed,
    ) -> (PointEnd, PointEnd) {
        let Relays { all, next, levels, .. } = self;
        levels.left = VISITS_MAX;
        let here =
            levels.visit((&mut all[at], &next[at]), at, entry, bytes, (point, false), outputs, now, out);
        let mut through = here.without_handed();
        while !levels.next.visits.is_empty() {
            let mut level = std::mem::replace(&mut levels.next, std::mem::take(&mut levels.now));
            for Visit { from: (giver, place), mut point, is_own, is_renamed } in level.visits.iter().copied()
            {
                let taker = next[giver][place].at;
                let bytes = if is_own { &*level.bytes } else { bytes };
                if is_renamed {
                    point.hash = all[taker].hash(point.name(bytes));
                }
                let (relay, entry) = ((&mut all[taker], &*next[taker]), Entry::Records);
                let end = levels.visit(relay, taker, entry, bytes, (point, is_own), outputs, now, out);
                through.add(end.without_handed());
                let edge = &mut next[giver][place];
                if edge.received == 0 {
                    levels.used.push((giver, place));
                }
                edge.received += 1;
                edge.ended.count(end);
            }
            level.clear();
            levels.now = level;
        }
        (here, through)
    }

    /// Whether any relay has done long searches since the last call.
    fn has_worked_much(&mut self, at: usize) -> bool {
        let mut much = self.all[at].has_worked_much();
        for (giver, edge) in &self.levels.used {
            much |= self.all[self.next[*giver][*edge].at].has_worked_much();
        }
        much
    }

    /// Puts the visits of this call into the accounts.
    fn settle_edges(&mut self) {
        while let Some((giver, edge)) = self.levels.used.pop() {
            let next = &mut self.next[giver][edge];
            next.account.receive(std::mem::take(&mut next.received));
            std::mem::take(&mut next.ended).settle_on(&next.account);
        }
    }

    /// Routes results that are due, of at most `series_max` series of each relay. Returns the monotonic nanosecond at
    /// which there may be more.
    pub(crate) fn tick(
        &mut self,
        now: Now,
        series_max: usize,
        outputs: &mut [OutputEncoder],
        out: &mut Routed,
        go_on: &mut dyn FnMut() -> bool,
    ) -> u64 {
        let mut due_ns = u64::MAX;
        for place in 0..self.order.len() {
            let at = self.order[place];
            let due = match self.all[at].compute_results(now, series_max) {
                Due::Never => u64::MAX,
                Due::Later => now.mono_ns + LOOK_EVERY_NS,
                Due::Now { is_more } => {
                    let all = self.route_results(at, outputs, now, out, go_on);
                    if is_more || !all { now.mono_ns } else { now.mono_ns + LOOK_EVERY_NS }
                }
            };
            due_ns = due_ns.min(due);
        }
        due_ns
    }

    /// Routes the results of all windows of a relay whose time is over; the values of later windows are counted as
    /// left. Results for which there is no time, as `go_on` decides, are counted.
    pub(crate) fn finish(
        &mut self,
        at: usize,
        outputs: &mut [OutputEncoder],
        now: Now,
        out: &mut Routed,
        go_on: &mut dyn FnMut() -> bool,
    ) {
        self.all[at].compute_last_results(now);
        if !self.route_results(at, outputs, now, out, go_on) {
            self.all[at].drop_results();
        }
    }

    /// Routes the results of a relay's aggregation rules that the plan no longer has, by its old statements.
    fn close_rules(
        &mut self,
        at: usize,
        plan: &RelayTransform,
        outputs: &mut [OutputEncoder],
        now: Now,
        out: &mut Routed,
    ) {
        self.all[at].close_rules(plan, now);
        let _all = self.route_results(at, outputs, now, out, &mut || true);
    }

    /// Routes everything that has been computed and not been routed yet.
    pub(crate) fn route_all_results(&mut self, outputs: &mut [OutputEncoder], now: Now, out: &mut Routed) {
        for at in self.in_order() {
            let _all = self.route_results(at, outputs, now, out, &mut || true);
        }
    }

    /// Returns whether all of them are routed: `go_on` is called after those whose names need long searches.
    fn route_results(
        &mut self,
        at: usize,
        outputs: &mut [OutputEncoder],
        now: Now,
        out: &mut Routed,
        go_on: &mut dyn FnMut() -> bool,
    ) -> bool {
        let Some(mut results) = self.all[at].take_results() else { return true };
        // They have no sender.
        outputs.iter_mut().for_each(|output| output.set_peer(Peer::OWN));
        while let Some((entry, point)) = self.all[at].next_result(&mut results) {
            let _ends = self.point(at, entry, results.bytes(), point, outputs, now, out);
            if self.has_worked_much(at) && !go_on() {
                break;
            }
        }
        self.settle_edges();
        self.all[at].put_results_back(results)
    }

    /// The relay of that name and those that copies of it may reach, each with the number that statements have for it: the first
    /// one, which has none, comes first.
    pub(crate) fn to_ask(&self, name: &str) -> Option<Vec<(Option<TransformId>, &Relay)>> {
        let first = self.all.iter().position(|relay| relay.name == name)?;
        let mut ids = vec![None; self.all.len()];
        self.next.iter().flatten().for_each(|next| ids[next.at] = Some(next.id));
        let behind = self.reached_from(std::iter::once(first)).into_iter().filter(|at| *at != first);
        let behind = behind.map(|at| (ids[at], &self.all[at]));
        Some(std::iter::once((None, &self.all[first])).chain(behind).collect())
    }

    /// Relays that send to the output.
    pub(crate) fn of_output(&self, output: OutputId) -> impl Iterator<Item = &Relay> {
        self.all.iter().filter(move |relay| relay.router().names(output))
    }
}

impl Levels {
    /// Routes a point at a relay. Copies for further relays are appended to the next level.
    #[expect(clippy::too_many_arguments, reason = "what it works on, once for each point")]
    fn visit(
        &mut self,
        (relay, edges): (&mut Relay, &[Next]),
        at: usize,
        entry: Entry,
        bytes: &[u8],
        (point, is_own): (Point, bool),
        outputs: &mut [OutputEncoder],
        now: Now,
        out: &mut Routed,
    ) -> PointEnd {
        let Levels { next: level, left, .. } = self;
        let rest = &point.line.of(bytes)[point.name_len as usize..];
        let mut hand = |id: TransformId, renamed: Option<&[u8]>| {
            let Ok(edge) = edges.binary_search_by_key(&id, |next| next.id) else { return false };
            if *left == 0 {
                return false;
            }
            *left -= 1;
            let handed = match renamed {
                None if !is_own => Visit { from: (at, edge), point, is_own, is_renamed: false },
                None => {
                    let line = level.line(point.name(bytes), rest);
                    let point = Point { line, ..point };
                    Visit { from: (at, edge), point, is_own, is_renamed: false }
                }
                Some(name) => {
                    let line = level.line(name, rest);
                    let point = Point { line, name_len: name.len() as u32, ..point };
                    Visit { from: (at, edge), point, is_own: true, is_renamed: true }
                }
            };
            level.visits.push(handed);
            true
        };
        relay.count_points(1);
        relay.point(entry, bytes, point, outputs, now, out, &mut hand)
    }
}
