//! A whole pipeline in one thread: real intakes, shard, queues and senders; simulated network, disk and clocks.
//!
//! Path of a packet: [`World::datagram`] or [`World::stream`] -> `source` (intake) -> shard -> `outlet` (queue, sender)
//! -> `peer` (simulated endpoint) -> `arrivals` (decoded at the endpoint) -> the outlet's mailbox. Time advances only
//! in [`World::advance`], from one due action to the next, on both clocks; [`World::step_wall`] moves the wall clock
//! alone. Not here: what to do and what to expect (`flow`, `storm`).
//! Invariant: equal plans, seeds and calls give equal bytes at every endpoint.

pub(crate) mod arrivals;
pub(crate) mod canary;
pub(crate) mod host;
pub(crate) mod keeping;
mod moving;
pub(crate) mod outlet;
pub(crate) mod peer;
pub(crate) mod source;
pub(crate) mod stored;

use std::collections::BTreeMap;
use std::sync::Arc;

use config::plan::{OutputPlan, Plan};
use deliver::disk_queue::DiskQueuePlan;
use deliver::failover::Failover;
use deliver::plan::QueueKind;
use model::{
    Dropped, Kind, Now, Outcome, OutputId, OutputSum, RecordAccount, RecordSum, SECOND_NS, SourceId, Span,
};
use pipeline::{
    Accounts, Acks, Exchange, Host, SeriesRow, Shard, Taken, Turn, TurnLimits, merge_plans, predecessor,
};

use self::canary::Canary;
pub(crate) use self::host::Given;
use self::host::{Outlets, SimHost};
use self::keeping::Keeping;
use self::outlet::Outlet;
use self::source::{End, Source, Way};
use self::stored::Stored;
use crate::random::{Digest, Random};

/// Wall clock at the start: 2001-09-10T00:00:00Z, a multiple of every window that divides a day.
pub(crate) const START_S: u64 = 1_000_080_000;

const _: () = assert!(START_S.is_multiple_of(86_400), "windows on the wall grid begin with the flow");

/// Monotonic clock at the start. Not 0, so that code cannot rely on 0.
const START_MONO_NS: u64 = 1000 * SECOND_NS;

/// Most sources over all reloads, as in the daemon.
const SOURCES_MAX: usize = 1024;

/// Makes the seed of checkpoints differ from those of queues.
const KEEPING_SEED: u64 = 0x6b65_6570;

/// The same for the limits of a turn.
const TURN_SEED: u64 = 0x7475_726e;

/// How long a removed output may still send its queued data, as in the daemon.
const RETIRED_DRAIN_NS: u64 = 600 * SECOND_NS;

/// Checks for room in queues after the last event.
const LOOKS_MAX: usize = 3;

/// After this many turns without progress of time, the world is in an endless loop.
const TURNS_MAX: usize = 100_000;

/// The world's own settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Knobs {
    /// Seed of the hashes of keys from outside, and of the senders' jitter.
    pub(crate) seed: u64,
    /// Series that a sweep visits between two reads of the sources.
    pub(crate) sweep_series: usize,
    /// Limit of the exchange between connections and shard.
    pub(crate) exchange_bytes_max: usize,
    /// Memory for the batches of one turn.
    pub(crate) take_bytes: usize,
    /// Time of one piece of work, for the limits of a turn.
    pub(crate) work_ns: u64,
    pub(crate) canary: Option<Canary>,
    /// There are checkpoints, and disks of queues have small segments and slow syncs.
    pub(crate) rough_disks: bool,
}

impl Knobs {
    pub(crate) fn new(seed: u64) -> Knobs {
        Knobs {
            seed,
            sweep_series: 512,
            exchange_bytes_max: 64 << 20,
            take_bytes: TurnLimits::default().take_bytes,
            work_ns: 0,
            canary: None,
            rough_disks: false,
        }
    }

    /// Randomly, turns that end after little work.
    pub(crate) fn with_short_turns(self) -> Knobs {
        let mut random = Random::new(self.seed ^ TURN_SEED);
        let take_bytes = if random.chance(50) { random.between(1, 20_000) as usize } else { self.take_bytes };
        let work_ns = *random.pick(&[0, SECOND_NS / 1000, SECOND_NS / 100]);
        Knobs { take_bytes, work_ns, ..self }
    }

    fn turn(&self, shard: Shard, keeping: Option<&Keeping>) -> Turn {
        let limits = TurnLimits::default();
        let save_series = keeping.map_or(limits.save_series, |keeping| keeping.slice);
        let (flush_series, take_bytes) = (self.sweep_series, self.take_bytes);
        Turn::new(shard, TurnLimits { flush_series, take_bytes, save_series, ..limits })
    }
}

/// The disk of an output's queue, if its plan has one. Randomly, all its limits are small and it is slow.
fn stored(output: &OutputPlan, seed: u64, knobs: &Knobs) -> Option<Stored> {
    let QueueKind::Disk { sync_window_ms } = output.queue_kind else { return None };
    let plan = DiskQueuePlan { limits: output.queue, sync_window_ms, ..DiskQueuePlan::default() };
    if !knobs.rough_disks {
        return Some(Stored::new(plan, (0, 0), seed, knobs.canary));
    }
    let mut random = Random::new(seed);
    let plan = DiskQueuePlan {
        segment_bytes: random.between(500, 20_000),
        cursor_window_ms: random.between(20, 1000),
        quarantine_bytes_max: random.between(0, 100_000),
        ..plan
    };
    let sync_ns = *random.pick(&[(0, 0), (0, 20_000_000), (1_000_000, 5_000_000_000)]);
    Some(Stored::new(plan, sync_ns, random.next(), knobs.canary))
}

/// See the module's header.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) plan: Plan,
    /// The last requested plan. In `plan`, an open queue keeps its kind.
    asked: Plan,
    pub(crate) now: Now,
    pub(crate) sources: Vec<Source>,
    pub(crate) outlets: Vec<Outlet>,
    /// Copies of all appended blocks, if requested.
    pub(crate) given: Option<Vec<Given>>,
    pub(crate) stopped: bool,
    /// Checkpoints and notes; `None` without a disk for them.
    pub(crate) keeping: Option<Keeping>,
    accounts: Accounts,
    acks: Acks,
    turn: Turn,
    exchange: Exchange,
    /// Endpoints with failover.
    failovers: BTreeMap<OutputId, Failover>,
    /// Wake-ups with an action while time passed.
    pub(crate) wakes: u64,
    knobs: Knobs,
}

/// The start, with the wall clock off by this many milliseconds.
pub(crate) fn start(step_ms: i64) -> Now {
    let wall_ns = (START_S * SECOND_NS).saturating_add_signed(step_ms.saturating_mul(1_000_000));
    Now { mono_ns: START_MONO_NS, wall_ns }
}

impl World {
    /// A pipeline that starts at `now`; its senders are not connected yet.
    pub(crate) fn new(plan: Plan, now: Now, knobs: Knobs) -> World {
        let accounts = Accounts::default().carried_to(&plan);
        let keeping = knobs.rough_disks.then(|| Keeping::new(knobs.seed ^ KEEPING_SEED, knobs.canary));
        let turn = knobs.turn(Shard::new(&plan, &accounts, knobs.seed, now), keeping.as_ref());
        let mut world = World {
            asked: plan.clone(),
            now,
            sources: Vec::new(),
            outlets: Vec::new(),
            given: None,
            stopped: false,
            keeping,
            accounts,
            acks: Acks::default(),
            turn,
            exchange: Exchange::new(knobs.exchange_bytes_max, SOURCES_MAX),
            failovers: BTreeMap::new(),
            wakes: 0,
            knobs,
            plan,
        };
        world.begin_keeping();
        // There are no outlets yet, so there are no successors.
        let _no_successors = world.wire();
        world
    }

    /// The shard of a new process restores the state of its predecessor.
    fn begin_keeping(&mut self) {
        if let Some(keeping) = &mut self.keeping {
            keeping.begin(&self.plan, &mut self.turn, self.now);
        }
    }

    /// Makes sources and outlets follow the plan; existing ones continue.
    fn wire(&mut self) -> Result<(), String> {
        for (at, plan) in self.plan.sources.iter().enumerate() {
            let id = SourceId(at as u16);
            let maker = self.turn.shard.intakes(&self.plan, id, &self.accounts);
            match self.sources.get_mut(at) {
                Some(source) => source.reconfigure(plan, maker),
                None => self.sources.push(Source::new(id, plan, self.accounts.source(id), maker)),
            }
        }
        for (at, plan) in self.plan.outputs.iter().enumerate() {
            match self.outlets.get_mut(at) {
                Some(outlet) => outlet.set_limits(plan.queue),
                None => {
                    let seed = self.knobs.seed ^ at as u64;
                    // As in the daemon, a name has one queue on disk.
                    let outlet = if let Some(earlier) = predecessor(&self.plan, at) {
                        self.outlets[earlier.index()].succeed(plan, at, seed, self.now)?
                    } else {
                        let account = self.accounts.output(OutputId(at as u16));
                        let stored = stored(plan, seed, &self.knobs);
                        Outlet::new(plan, account, stored, (seed, self.knobs.canary), self.now)
                    };
                    self.outlets.push(outlet);
                }
            }
        }
        let deadline_ns = self.now.mono_ns.saturating_add(RETIRED_DRAIN_NS);
        let gone = self.outlets.iter_mut().zip(&self.plan.outputs).filter(|(_, plan)| plan.from.is_empty());
        gone.for_each(|(outlet, _)| outlet.retire(deadline_ns));
        Ok(())
    }

    /// A reload: unchanged parts continue with their state.
    ///
    /// # Errors
    /// When there are too many sources (nothing has changed then), or a sender is in an endless loop.
    pub(crate) fn reload(&mut self, new: &Plan) -> Result<(), String> {
        let plan = merge_plans(&self.plan, new);
        if plan.sources.len() > SOURCES_MAX {
            return Err(format!("more than {SOURCES_MAX} sources since the start"));
        }
        self.accounts = self.accounts.carried_to(&plan);
        self.turn.reconfigure(&plan, &self.accounts, self.now);
        self.plan = plan;
        self.asked = new.clone();
        self.wire()?;
        self.append_blocks();
        if let Some(keeping) = &mut self.keeping {
            keeping.follow(&self.plan, &mut self.turn, self.now);
        }
        Ok(())
    }

    /// The process dies, alone or with its machine, and another one starts.
    pub(crate) fn crash(&mut self, power: bool) {
        if let Some(keeping) = &mut self.keeping {
            keeping.die(power);
        }
        self.outlets
            .iter_mut()
            .filter_map(|outlet| outlet.stored.as_mut())
            .for_each(|stored| stored.die(power));
        self.restart(power);
    }

    /// Starts a new process after a crash: memory is lost, endpoints and disks are kept. The caller has decided the
    /// contents of the disks (`Stored::die`). A removed output leaves its disk to a later one of the same name.
    /// Requested changes of a queue's kind take effect.
    pub(crate) fn restart(&mut self, power: bool) {
        self.abandon();
        self.failovers.clear();
        if power {
            self.now.mono_ns = START_MONO_NS;
        }
        for output in self.plan.outputs.iter_mut().filter(|output| !output.from.is_empty()) {
            let asked = self.asked.outputs.iter();
            let same = |asked: &&OutputPlan| asked.name == output.name && asked.kind == output.kind;
            if let Some(asked) = asked.into_iter().find(same) {
                (output.queue, output.queue_kind) = (asked.queue, asked.queue_kind);
            }
        }
        self.accounts = Accounts::default().carried_to(&self.plan);
        let shard = Shard::new(&self.plan, &self.accounts, self.knobs.seed, self.now);
        self.turn = self.knobs.turn(shard, self.keeping.as_ref());
        self.begin_keeping();
        self.sources.clear();
        self.acks = Acks::default();
        for (at, outlet) in self.outlets.iter_mut().enumerate() {
            let account = self.accounts.output(OutputId(at as u16));
            let seed = self.knobs.seed ^ at as u64;
            let plan = &self.plan.outputs[at];
            if outlet.stored.is_none() && outlet.successor.is_none() && !plan.from.is_empty() {
                outlet.stored = stored(plan, seed, &self.knobs);
            }
            outlet.restart(plan, account, seed, self.now);
        }
        // All outlets are new, so there are no successors.
        let _no_successors = self.wire();
    }

    /// True when the process has died in a call to a disk. Its later actions leave no trace on disk.
    pub(crate) fn is_dead(&self) -> bool {
        self.outlets.iter().any(Outlet::is_dead)
            || self.keeping.as_ref().is_some_and(|keeping| keeping.disk.is_dead())
    }

    /// Settles data that is in no queue, because no process will.
    fn abandon(&mut self) {
        let mut left = Vec::new();
        self.exchange.take_all(&mut left);
        left.into_iter().for_each(|batch| batch.settle(Outcome::Filtered));
        self.sources.iter_mut().for_each(|source| source.abandon(Outcome::Filtered));
    }

    /// The source of this name.
    pub(crate) fn source(&mut self, name: &str) -> Option<&mut Source> {
        self.sources.iter_mut().find(|source| source.plan.name == name)
    }

    /// The outlet of this name; of several over reloads, the one with a source.
    pub(crate) fn outlet(&mut self, name: &str) -> Option<&mut Outlet> {
        let at = self.outlet_at(name)?;
        self.outlets.get_mut(at)
    }

    /// Its index.
    pub(crate) fn outlet_at(&self, name: &str) -> Option<usize> {
        let outputs = self.plan.outputs.iter().enumerate().filter(|(_, output)| output.name == name);
        outputs.max_by_key(|(at, output)| (!output.from.is_empty(), *at)).map(|(at, _)| at)
    }

    /// One datagram to a source.
    ///
    /// # Errors
    /// When it has no listener for datagrams.
    pub(crate) fn datagram(&mut self, source: &str, packet: &[u8]) -> Result<(), String> {
        let now = self.now;
        let source = self.sources.iter_mut().find(|known| known.plan.name == source);
        let source = source.ok_or("no such source")?;
        if !source.listens(Way::Datagrams) {
            return Err(format!(
                "source `{}` has no `udp://` or `unixgram://` to listen at",
                source.plan.name
            ));
        }
        let len = packet.len().min(model::limits::DATAGRAM_BYTES_MAX);
        if len < packet.len() {
            source.account.packets_truncated.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        let spans = [Span::new(0, len)];
        let batch = source.datagrams.datagrams(&packet[..len], &spans, now, &mut source.scratch);
        self.turn.shard.push(batch, now, &mut self.turn.routed);
        self.append_blocks();
        Ok(())
    }

    /// Bytes on a connection to a source; the first ones open it.
    ///
    /// # Errors
    /// When the source has no such listener, rejects the connection, or has one of the other kind with this name.
    pub(crate) fn stream(
        &mut self,
        source: &str,
        connection: &str,
        framed: bool,
        bytes: &[u8],
    ) -> Result<(), String> {
        let now = self.now;
        let World { sources, acks, .. } = self;
        let source = sources.iter_mut().find(|known| known.plan.name == source).ok_or("no such source")?;
        let known = source.connections().any(|known| known == connection);
        let way = if framed { Way::Frames } else { Way::Lines };
        if !known && !source.listens(way) {
            let schemes = if framed { "`unix-frames://`" } else { "`tcp://` or `unix://`" };
            return Err(format!("source `{}` has no {schemes} to listen at", source.plan.name));
        }
        source.send(connection, framed, bytes, now, acks)
    }

    /// Reads connections, runs the shard, and drives the senders, once each.
    ///
    /// # Errors
    /// When a sender is in an endless loop.
    pub(crate) fn turn(&mut self) -> Result<(), String> {
        self.turn_sources();
        self.turn_shard();
        self.turn_senders()?;
        self.turn_failovers();
        self.turn_acks(false);
        Ok(())
    }

    /// Sends acknowledgements to clients.
    fn turn_acks(&mut self, stops: bool) {
        let World { sources, outlets, acks, .. } = self;
        acks.resolve(&mut Outlets::new(outlets));
        sources.iter_mut().for_each(|source| source.reply(acks, stops));
    }

    fn turn_sources(&mut self) {
        for source in &mut self.sources {
            source.read(&self.exchange, &mut self.acks, self.now);
        }
    }

    fn turn_shard(&mut self) -> Taken {
        self.look_at_failed();
        let now = self.now;
        let (turn, mut host, exchange) = self.parts();
        let taken = turn.run(exchange, &mut host, now);
        let gave = self.gave();
        if let Some(keeping) = &mut self.keeping {
            keeping.turn(gave, self.now);
        }
        taken
    }

    /// Number of blocks given to outputs, if copies are requested.
    fn gave(&self) -> usize {
        self.given.as_ref().map_or(0, Vec::len)
    }

    /// When the next checkpoint action is due.
    fn keeping_due_ns(&self) -> u64 {
        self.keeping.as_ref().map_or(u64::MAX, Keeping::due_ns)
    }

    fn turn_senders(&mut self) -> Result<u64, String> {
        let mut wake_ns = u64::MAX;
        for outlet in &mut self.outlets {
            wake_ns = wake_ns.min(outlet.drive(self.now)?).min(outlet.sync(self.now)?);
        }
        Ok(wake_ns)
    }

    fn append_blocks(&mut self) {
        let now = self.now;
        let (turn, mut host, _) = self.parts();
        turn.append(host.outputs(), now);
    }

    /// The result of a health check of a cluster's endpoint. No effect on other outputs.
    pub(crate) fn set_member_live(&mut self, output: OutputId, live: bool) {
        self.turn.shard.set_member_live(output, live);
    }

    /// No failover member replaces the output's endpoint.
    pub(crate) fn output_is_live(&self, output: OutputId) -> bool {
        !self.turn.shard.down().contains(&output)
    }

    /// True when nothing is between sources and queues, except for unread bytes of connections.
    pub(crate) fn all_is_in_queues(&self) -> bool {
        self.exchange.is_empty() && self.turn.routed.blocks.is_empty()
    }

    /// Runs until there is nothing to do at this moment. Returns when the next action is due.
    ///
    /// # Errors
    /// When it never becomes idle.
    pub(crate) fn settle(&mut self) -> Result<u64, String> {
        let mut blocked_turns = 0;
        for _ in 0..TURNS_MAX {
            self.turn_sources();
            let taken = self.turn_shard();
            let queued = self.copies_queued();
            let wake_ns = self.turn_senders()?;
            let sent = self.copies_queued() < queued;
            if sent {
                // The daemon checks for room within some milliseconds. Here, time would advance only for that.
                self.turn.look_for_room();
            }
            self.turn_failovers();
            self.turn_acks(false);
            let moves = sent && self.outlets.iter().any(|outlet| outlet.failed && outlet.waiting() > 0);
            let stalled = self.sources.iter().any(|source| source.stalled() > 0);
            let nothing_waits = self.exchange.is_empty() && !stalled;
            // A batch that waits for room continues when a sender has made some, perhaps just now.
            blocked_turns = if taken.any { 0 } else { blocked_turns + 1 };
            let shard_ns = self.turn.due_ns(self.now).min(self.keeping_due_ns());
            let rests = shard_ns > self.now.mono_ns && !taken.more && !moves;
            if rests && (nothing_waits || blocked_turns > 1) {
                let idle_ns = self.sources.iter().map(Source::wake_ns).min().unwrap_or(u64::MAX);
                return Ok(wake_ns.min(shard_ns).min(idle_ns));
            }
        }
        Err("the shard never becomes idle".into())
    }

    /// Copies in the queues or with the senders.
    fn copies_queued(&self) -> u64 {
        self.outlets.iter().map(Outlet::waiting).sum()
    }

    /// Advances both clocks, from one due action to the next.
    ///
    /// # Errors
    /// When a part never becomes idle.
    pub(crate) fn advance(&mut self, ns: u64) -> Result<(), String> {
        let end_ns = self.now.mono_ns.saturating_add(ns);
        let mut hurried = 0;
        let mut looks_left = LOOKS_MAX;
        loop {
            let wake_ns = self.settle()?;
            if self.now.mono_ns >= end_ns || self.is_dead() {
                return Ok(());
            }
            hurried = if wake_ns <= self.now.mono_ns { hurried + 1 } else { 0 };
            if hurried > TURNS_MAX {
                return Err(self.always_due());
            }
            // Between two events, nothing changes for a batch that waits for room: only the first checks may find some.
            let look_ns = if looks_left > 0 { self.turn.look_ns() } else { u64::MAX };
            if look_ns < wake_ns {
                looks_left -= 1;
            } else {
                looks_left = LOOKS_MAX;
                self.wakes += 1;
            }
            let next_ns = wake_ns.min(look_ns).clamp(self.now.mono_ns + 1, end_ns);
            self.now = self.now.plus_ns(next_ns - self.now.mono_ns);
        }
    }

    fn always_due(&mut self) -> String {
        let now = self.now;
        let shard_ns = self.turn.due_ns(now);
        let due = |wake_ns: &Result<u64, String>| wake_ns.as_ref().is_ok_and(|at_ns| *at_ns <= now.mono_ns);
        let names = |of: &mut dyn FnMut(&mut Outlet) -> Result<u64, String>, outlets: &mut [Outlet]| {
            let due = outlets.iter_mut().filter_map(|outlet| due(&of(outlet)).then(|| outlet.name.clone()));
            due.collect::<Vec<_>>()
        };
        let senders = names(&mut |outlet| outlet.drive(now), &mut self.outlets);
        let syncs = names(&mut |outlet| outlet.sync(now), &mut self.outlets);
        format!(
            "something is always due and never done: of the shard {}, of senders {senders:?}, of syncs {syncs:?}",
            shard_ns <= now.mono_ns
        )
    }

    /// Advances the clocks without running anything, as on a machine that is busy with something else. Actions are late
    /// then, and new input interrupts a sweep.
    pub(crate) fn sleep(&mut self, ns: u64) {
        self.now = self.now.plus_ns(ns);
    }

    /// Removes arrivals from before the last call of [`Self::mark_arrivals`].
    pub(crate) fn forget_arrivals(&mut self) {
        self.outlets.iter_mut().for_each(Outlet::forget_arrivals);
    }

    /// Marks all current arrivals for the next call of [`Self::forget_arrivals`].
    pub(crate) fn mark_arrivals(&mut self) {
        self.outlets.iter_mut().for_each(Outlet::mark_arrivals);
    }

    /// The wall clock alone steps.
    pub(crate) fn step_wall(&mut self, back: bool, ns: u64) {
        let wall_ns = self.now.wall_ns;
        self.now.wall_ns = if back { wall_ns.saturating_sub(ns) } else { wall_ns.saturating_add(ns) };
    }

    /// SIGTERM: connections are closed, windows are flushed, senders drain within `stop_timeout`.
    ///
    /// # Errors
    /// When a part never becomes idle.
    pub(crate) fn stop(&mut self) -> Result<(), String> {
        self.sources.iter_mut().for_each(|source| source.end_all(End::Stopped));
        self.settle()?;
        // Sources no longer wait for outputs.
        self.sources.iter_mut().for_each(|source| source.abandon(Outcome::Dropped(Dropped::Stopped)));
        let now = self.now;
        let (turn, mut host, exchange) = self.parts();
        turn.keep_past_limits();
        let all = turn.take_all(exchange, &mut host, now, u64::MAX);
        debug_assert!(all, "the stop has no time limit here");
        turn.append(host.outputs(), now);
        turn.keep_past_limits_on_disk(host.outputs());
        let pieces = turn.stop(&mut host, now, u64::MAX);
        let gave = self.gave();
        if let Some(keeping) = &mut self.keeping {
            keeping.stop(pieces, gave, now);
        }
        let deadline_ns = self.now.mono_ns + self.plan.stop_timeout_ms * 1_000_000;
        self.outlets.iter_mut().for_each(|outlet| outlet.begin_stop(deadline_ns));
        // The shard has ended: only senders still have work.
        while !self.outlets.iter().all(Outlet::stopped) && self.now.mono_ns <= deadline_ns {
            let wake_ns = self.turn_senders()?;
            self.turn_acks(false);
            let next_ns = wake_ns.clamp(self.now.mono_ns + 1, deadline_ns + 1);
            self.now = self.now.plus_ns(next_ns - self.now.mono_ns);
        }
        let now = self.now;
        // The queues on disk are synced a last time; nothing is settled after that.
        self.turn_acks(false);
        self.outlets.iter_mut().for_each(|outlet| outlet.finish_stop(now));
        self.turn_acks(true);
        self.stopped = true;
        Ok(())
    }

    /// A source's sum now.
    pub(crate) fn source_sum(&self, source: &Source) -> RecordSum {
        source.account.sum(self.exchange.in_flight(source.id) + source.stalled())
    }

    /// An output's sum now. Outlets of one name over reloads share an account.
    pub(crate) fn output_sum(&self, outlet: &Outlet) -> OutputSum {
        let sharing = self.outlets.iter().filter(|other| Arc::ptr_eq(&other.account, &outlet.account));
        outlet.account.sum(sharing.map(Outlet::waiting).sum())
    }

    /// Both balances (design §5) of every source and output: a sentence for each that does not hold.
    pub(crate) fn broken_sums(&self) -> Vec<String> {
        let sources = self.sources.iter().filter_map(|source| {
            let sum = self.source_sum(source);
            let name = &source.plan.name;
            (!sum.holds()).then(|| format!("the sum of source `{name}` does not hold: {sum:?}"))
        });
        let outputs = self.outlets.iter().filter_map(|outlet| {
            let sum = self.output_sum(outlet);
            (!sum.holds()).then(|| format!("the sum of output `{}` does not hold: {sum:?}", outlet.name))
        });
        let edges = self.accounts.edges().filter_map(|(transform, from, account)| {
            let sum = account.sum(0);
            (!sum.holds()).then(|| format!("the sum of the edge {from}->{transform} does not hold: {sum:?}"))
        });
        sources.chain(outputs).chain(edges).collect()
    }

    /// The account of an edge into a transform.
    pub(crate) fn edge(&self, transform: &str, from: &str) -> Option<&RecordAccount> {
        self.accounts.edge(transform, from).map(|account| &**account)
    }

    /// Edges into transforms, with their names in flow files.
    pub(crate) fn edges(&self) -> Vec<String> {
        self.accounts.edges().map(|(transform, from, _)| format!("{from}->{transform}")).collect()
    }

    /// Every series of the shard.
    pub(crate) fn series(&self) -> Vec<SeriesRow> {
        let mut rows = Vec::new();
        let mut cursor = Some(0);
        while let Some(from) = cursor {
            let page = self.turn.shard.series(None, from, usize::MAX);
            rows.extend(page.rows().map(|series| series.row()));
            cursor = page.next;
        }
        rows
    }

    /// Sums of the counters of an aggregation whose names begin with `prefix`, in the open window and in a closed one
    /// that is not emitted yet.
    pub(crate) fn counters(&self, transform: &str, prefix: &str) -> BTreeMap<String, f64> {
        let rows =
            self.series().into_iter().filter(|row| row.transform == transform && row.kind == Kind::Counter);
        rows.filter(|row| row.name.starts_with(prefix)).map(|row| (row.name, row.value)).collect()
    }

    /// Deletes a series, as the management port does.
    pub(crate) fn delete(&mut self, kind: Kind, name: &str) -> bool {
        self.turn.shard.delete(kind, name.as_bytes())
    }

    /// Fingerprint of all arrivals and of every disk.
    pub(crate) fn digest(&self) -> u64 {
        let mut all = Digest::default();
        for outlet in &self.outlets {
            all.add(outlet.name.as_bytes());
            all.add(&outlet.digest().number().to_le_bytes());
            if let Some(stored) = &outlet.stored {
                all.add(&stored.digest().number().to_le_bytes());
            }
        }
        for (name, bytes) in self.keeping.iter().flat_map(Keeping::files) {
            all.add(name.as_bytes());
            all.add(&bytes);
        }
        all.number()
    }

    /// The turn and its arguments.
    fn parts(&mut self) -> (&mut Turn, SimHost<'_>, &Exchange) {
        let World { turn, outlets, given, acks, keeping, exchange, now, knobs, .. } = self;
        let mut host = SimHost::new(outlets, given.as_mut(), acks, keeping.as_mut(), *now);
        host.work_ns = knobs.work_ns;
        (turn, host, exchange)
    }
}

impl Drop for World {
    /// A simulation may end at any point, but receipts must be settled.
    fn drop(&mut self) {
        self.abandon();
    }
}
