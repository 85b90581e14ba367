//! The shard's thread in a hot restart: brings it into a state that another process can continue, and restarts it when
//! that process does not (`daemon::hot_restart` has the steps).

use config::plan::Listen;
use deliver::plan::QueueLimits;
use deliver::queue::{Block, Queue};
use model::{Figure, OutputId, SourceId};
use pipeline::{Host, Kept, Routed, SavedState};

use super::limits::LAST_READ_MAX_NS;
use super::{DatagramSocket, SEARCH_MAX_NS, Worker};
use crate::daemon::checkpoint::LastCheckpoints;
use crate::kernel::Drops;
use sys::clock::Clock;

/// What another process continues.
#[derive(Debug)]
pub struct PassedOn {
    /// Datagram sockets, by source and address.
    pub sockets: Vec<(SourceId, Listen)>,
    /// Aggregations and relays.
    pub kept: Kept,
    /// A number that is not known outside, for their state.
    pub state_id: u64,
}

/// What another process needs of the shard's thread.
#[derive(Debug)]
pub struct HandedOver {
    /// The state of each aggregation.
    pub states: Vec<SavedState>,
    /// The figures of each relay, by its name.
    pub relays: Vec<(String, Vec<Figure>)>,
    /// The counted kernel drops, by socket: address, and number there.
    pub drops: Vec<(SourceId, Listen, usize, Drops)>,
    /// The last blocks of aggregations and relays that are not passed on. They are in no queue yet.
    pub last: Vec<(OutputId, Block)>,
}

impl Worker {
    /// Does nothing but answer calls until [`Self::thaw`].
    pub fn freeze(&mut self) {
        self.frozen = true;
    }

    /// Begins, or goes on where it was.
    pub fn thaw(&mut self) {
        self.frozen = false;
        self.go_on_reading();
        self.turn.look_at_windows();
    }

    /// Makes no more checkpoints. The caller has unfinished ones completed before another process writes there.
    pub fn end_checkpoints(&mut self) -> Option<LastCheckpoints> {
        self.saver.end(&mut self.turn)
    }

    /// Makes checkpoints by the plan, from the start or again.
    pub fn resume_checkpoints(&mut self, plan: &config::plan::Plan) {
        self.saver.follow(plan, &mut self.turn, Clock::now());
    }

    /// Brings everything into a state that another process can go on with, and freezes. Sockets that are not `passed` on
    /// are emptied, and aggregations flushed, which [`Self::go_back`] undoes; what waits at the other sockets is left to the process that reads them next.
    ///
    /// # Errors
    /// When what connections brought waits for a disk, or relays still search for names that they do not know: everything is
    /// left as it is.
    pub fn hand_over(&mut self, passed: &PassedOn) -> Result<HandedOver, &'static str> {
        self.rest_elsewhere(&passed.sockets);
        let is_passed = |socket: &DatagramSocket| socket.is_at(&passed.sockets);
        let (kept, left): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.sockets).into_iter().partition(is_passed);
        self.sockets = left;
        let until_ns = Clock::mono_ns() + LAST_READ_MAX_NS;
        while self.receive(SEARCH_MAX_NS).brought() && Clock::mono_ns() < until_ns {}
        self.sockets.extend(kept);
        let (turn, mut host, exchange) = self.parts();
        if turn.waits_for_disk(exchange, &mut host, Clock::now()) {
            return Err(
                "connections wait for room on the disk of a queue: make room there, raise its `max_bytes` by a reload, or `staunch queue drop`",
            );
        }
        if !self.take_all_until(until_ns) {
            self.deliver(Clock::now());
            return Err("relays are still matching new names");
        }
        let now = Clock::now();
        self.count_drops();
        let states = self.turn.shard.export(&passed.kept, passed.state_id, now, &mut self.turn.routed);
        self.deliver(now);
        let (turn, mut host, _) = self.parts();
        turn.note_flushes(&mut host);
        // Saved: until the other process continues, nothing of this has happened.
        let notes = self.handover.known();
        let mut last = Routed::default();
        let before = self.turn.shard.flush_others(&passed.kept, now, &mut last);
        let (turn, mut host, _) = self.parts();
        turn.note_flushes(&mut host);
        self.before_last = Some((before, notes));
        let (turn, mut host, _) = self.parts();
        turn.end_moves(host.outputs());
        self.freeze();
        let drops = self
            .sockets
            .iter()
            .map(|socket| (socket.source, socket.listen.clone(), socket.number, socket.gauge.drops()));
        let drops = drops.chain(self.drops_elsewhere()).collect();
        let mut relays = self.turn.shard.counted_by_relays();
        relays.retain(|(name, _)| passed.kept.relays.contains(name));
        Ok(HandedOver { drops, relays, states, last: last.blocks })
    }

    /// The other process does not go on: everything is as it was before [`Self::hand_over`], also where that has not
    /// been called.
    pub fn go_back(&mut self, plan: &config::plan::Plan) {
        for (outlet, output) in self.outlets.iter().zip(&plan.outputs) {
            outlet.set_plan(output);
        }
        if let Some((before, notes)) = self.before_last.take() {
            self.turn.shard.go_back(before);
            self.turn.skip_notes();
            self.handover.put_back(notes);
        }
        self.resume_checkpoints(plan);
        self.thaw();
    }

    /// What waits for room in a queue must be in it before anybody else can go on with it: until [`Self::go_back`] there is
    /// room for all.
    pub fn take_all_in(&mut self) {
        for outlet in &self.outlets {
            let mut queue = outlet.queue();
            let limits = queue.limits();
            if limits.when_full.ever_waits() {
                queue.set_limits(QueueLimits { bytes_max: u64::MAX, records_max: 0, ..limits });
            }
        }
        self.turn.look_for_room();
    }
}
