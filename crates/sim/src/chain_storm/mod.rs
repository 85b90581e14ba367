//! A seeded run of a random graph: one to four relays that feed each other, an aggregation between, and outputs that several nodes
//! feed, in bad weather: endpoints that go down, hang and break, processes that are killed.
//!
//! After each step the account of every source, output and edge is balanced, everything that arrived is explained
//! ([`graph::Graph`]), and along each edge between two relays there were as many visits as the explanations of the lines say. At the
//! end, when the weather has cleared, each explained copy is at its output, but for as many as that output counts as dropped and
//! for what a killed process had only in memory. So are points of the aggregation that have come to any output.
//!
//! A space of seeds of its own. Not here: clusters that fail over (`relay_storm`), disks that fail (`storm`).

mod graph;
mod ledger;

use model::{Dropped, SECOND_NS};

use self::graph::{Graph, LINES, SAMPLES};
use self::ledger::Ledger;
use crate::random::Random;
use crate::storm::Found;
use crate::world::canary::Canary;
use crate::world::peer::{State, Weather};
use crate::world::{Knobs, World, start};

/// Steps of one run.
const STEPS: usize = 60;

/// Clients that send.
const CLIENTS: usize = 2;

const MS_NS: u64 = 1_000_000;

/// What a run was like, or several together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainCalm {
    /// Lines that clients sent.
    pub sent: u64,
    /// Copies of them that the explanations say.
    pub copies: u64,
    /// Points of the aggregation that arrived.
    pub points: u64,
    /// Points that passed an edge between two relays.
    pub visits: u64,
    /// Copies that were delivered.
    pub delivered: u64,
    /// Copies that were dropped for want of room.
    pub dropped: u64,
    /// Processes that were killed.
    pub kills: u64,
    /// Fingerprint of all bytes that arrived anywhere, and of every disk.
    pub digest: u64,
}

impl ChainCalm {
    /// Adds what another run was like.
    pub fn add(&mut self, other: &ChainCalm) {
        self.sent += other.sent;
        self.copies += other.copies;
        self.points += other.points;
        self.visits += other.visits;
        self.delivered += other.delivered;
        self.dropped += other.dropped;
        self.kills += other.kills;
        self.digest ^= other.digest;
    }
}

/// One run.
///
/// # Errors
/// The first thing that must not have happened.
pub fn chain_storm(seed: u64) -> Result<ChainCalm, Found> {
    chain_storm_with(seed, None)
}

/// The same with a bug that we know.
///
/// # Errors
/// As above.
pub fn chain_storm_with(seed: u64, canary: Option<Canary>) -> Result<ChainCalm, Found> {
    let mut storm = ChainStorm::new(seed, canary);
    let mut at = 0;
    let mut all = || -> Result<(), String> {
        while at < STEPS {
            storm.step()?;
            storm.check()?;
            at += 1;
        }
        storm.end()
    };
    match all() {
        Ok(()) => Ok(storm.calm()),
        Err(message) => Err(Found { seed, step: at, message }),
    }
}

struct ChainStorm {
    random: Random,
    world: World,
    graph: Graph,
    on_disk: bool,
    ledger: Ledger,
    /// By client: connections that have ended.
    connections: [u32; CLIENTS],
    /// By output: what the accounts of killed processes said.
    dropped: Vec<u64>,
    before: ChainCalm,
}

impl ChainStorm {
    fn new(seed: u64, canary: Option<Canary>) -> ChainStorm {
        let mut random = Random::new(seed);
        let on_disk = random.chance(50);
        let graph = Graph::new(&mut random, on_disk);
        let knobs = Knobs::new(seed).with_short_turns();
        let plan = match canary {
            Some(Canary::RuleForgotten) => graph.without_last_rules(),
            _ => graph.plan.clone(),
        };
        let mut world = World::new(plan, start(0), knobs);
        for outlet in &mut world.outlets {
            let weather = Random::new(random.next());
            outlet.set_weather(Weather { random: weather, buffer_max: random.between(1, 65_536) as usize });
        }
        let outputs = graph.plan.outputs.len();
        ChainStorm {
            random,
            world,
            graph,
            on_disk,
            ledger: Ledger::new(outputs),
            connections: [0; CLIENTS],
            dropped: vec![0; outputs],
            before: ChainCalm::default(),
        }
    }

    fn step(&mut self) -> Result<(), String> {
        match self.random.below(100) {
            0..=39 => self.lines(),
            40..=49 => self.samples(),
            50..=64 => self.endpoint(),
            65..=66 => self.kill(),
            67..=79 => self.world.turn(),
            80..=95 => {
                let ms = self.random.between(1, 3_000);
                self.world.advance(ms * MS_NS)
            }
            _ => self.world.advance(self.random.between(1, 40) * SECOND_NS),
        }
    }

    /// A client sends some lines, in pieces.
    fn lines(&mut self) -> Result<(), String> {
        let client = self.random.below(CLIENTS as u64) as usize;
        let connection = format!("c{client}-{}", self.connections[client]);
        let count =
            if self.random.chance(20) { self.random.between(50, 500) } else { self.random.between(1, 30) };
        let mut text = Vec::new();
        for _ in 0..count {
            self.ledger.line(&self.graph, &mut self.random, &connection, &mut text);
        }
        let cut = self.random.below(text.len() as u64 + 1) as usize;
        self.world.stream(LINES, &connection, false, &text[..cut])?;
        if self.random.chance(50) {
            self.world.turn()?;
        }
        self.world.stream(LINES, &connection, false, &text[cut..])
    }

    fn samples(&mut self) -> Result<(), String> {
        let lines = (0..self.random.between(1, 20)).map(|_| format!("hits.s{}:1|c\n", self.random.below(8)));
        let packet: String = lines.collect();
        self.world.datagram(SAMPLES, packet.as_bytes())
    }

    fn endpoint(&mut self) -> Result<(), String> {
        let now = self.world.now;
        let at = self.random.below(self.world.outlets.len() as u64) as usize;
        let outlet = &mut self.world.outlets[at];
        match self.random.below(10) {
            0..=2 => outlet.set_state(State::Down, now),
            3 => outlet.set_state(State::Hang, now),
            4..=7 => outlet.set_state(State::Up, now),
            8 => outlet.cut(self.random.below(5_000), now),
            _ => {
                outlet.close_by_peer(now);
                Ok(())
            }
        }
    }

    /// The process is killed, and another begins.
    fn kill(&mut self) -> Result<(), String> {
        self.world.turn()?;
        self.check()?;
        let is_safe = self.on_disk && self.all_is_taken();
        for (dropped, outlet) in self.dropped.iter_mut().zip(&self.world.outlets) {
            *dropped += outlet.account.dropped(Dropped::QueueFull);
        }
        self.before = ChainCalm { kills: self.before.kills + 1, ..self.calm() };
        self.world.crash(false);
        // What the endpoints still read of the connections that ended.
        self.read()?;
        self.connections.iter_mut().for_each(|connection| *connection += 1);
        self.ledger.killed(is_safe, self.world.now.wall_seconds() + 6);
        Ok(())
    }

    /// True when no line is on its way to the shard.
    fn all_is_taken(&mut self) -> bool {
        let is_read =
            self.world.source(LINES).is_none_or(|source| source.stalled() == 0 && source.has_read_all());
        is_read && self.world.all_is_in_queues()
    }

    /// What has arrived since the last look.
    fn read(&mut self) -> Result<(), String> {
        for (at, outlet) in self.world.outlets.iter_mut().enumerate() {
            for arrival in outlet.mailbox.drain(..) {
                let line = arrival.what.bytes();
                let arrived = self.ledger.arrived(&self.graph, at, &line);
                arrived.map_err(|why| format!("output `{}`: {why}", outlet.name))?;
            }
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), String> {
        if let Some(broken) = self.world.broken_sums().into_iter().next() {
            return Err(broken);
        }
        self.read()?;
        for outlet in &self.world.outlets {
            let account = &outlet.account;
            if account.lost_here() != account.dropped(Dropped::QueueFull) || account.refused() > 0 {
                return Err(format!("output `{}` lost something but for want of room", outlet.name));
            }
        }
        if !self.all_is_taken() {
            return Ok(());
        }
        for ((from, to), visits) in &self.ledger.visits {
            let edge = self.world.edge(to, from).ok_or_else(|| format!("no account of {from}->{to}"))?;
            let received = edge.sum(0).received;
            // Points of the aggregation may pass it, too.
            if received < *visits {
                return Err(format!(
                    "{received} points passed {from}->{to}, and {visits} that are explained"
                ));
            }
        }
        Ok(())
    }

    /// The weather clears and everything drains.
    fn end(&mut self) -> Result<(), String> {
        let now = self.world.now;
        self.world.outlets.iter_mut().try_for_each(|outlet| outlet.set_state(State::Up, now))?;
        self.world.advance(120 * SECOND_NS)?;
        self.check()?;
        self.world.stop()?;
        self.check()?;
        for (dropped, outlet) in self.dropped.iter_mut().zip(&self.world.outlets) {
            *dropped += outlet.account.dropped(Dropped::QueueFull);
            if outlet.waiting() > 0 {
                return Err(format!("output `{}` still has lines in its queue", outlet.name));
            }
        }
        self.ledger.check(&self.graph, &self.dropped)
    }

    fn calm(&self) -> ChainCalm {
        let sums = || self.world.outlets.iter().map(|outlet| outlet.account.sum(0));
        let visits = self
            .ledger
            .visits
            .keys()
            .filter_map(|(from, to)| Some(self.world.edge(to, from)?.sum(0).received));
        let mut calm = ChainCalm {
            delivered: sums().map(|sum| sum.delivered).sum(),
            dropped: sums().map(|sum| sum.dropped).sum(),
            visits: visits.sum(),
            ..ChainCalm::default()
        };
        calm.add(&self.before);
        let Ledger { lines: sent, copies, points_seen: points, .. } = self.ledger;
        ChainCalm { sent, copies, points, digest: self.world.digest(), ..calm }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_explained_copy_arrives_or_is_counted() {
        let mut all = ChainCalm::default();
        for seed in 0..12 {
            all.add(&chain_storm(seed).unwrap_or_else(|found| panic!("{found}")));
        }
        let ChainCalm { sent, copies, points, visits, delivered, dropped, kills, digest: _ } = all;
        let each = [sent, copies, points, visits, delivered, dropped, kills];
        assert!(each.iter().all(|count| *count > 0), "something never happened: {all:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same_run() {
        assert_eq!(chain_storm(3), chain_storm(3));
    }

    #[test]
    fn a_forgotten_rule_is_found() {
        let canary = Canary::RuleForgotten;
        let found = (0..20).find_map(|seed| chain_storm_with(seed, Some(canary)).err());
        let found = found.expect("a storm finds it");
        assert!(found.message.contains(canary.finding()), "{found}");
    }
}
