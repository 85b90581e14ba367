//! A seeded run of a relay with faults: clusters of all kinds, endpoints that go down, hang and break, processes that
//! are killed with the data in their memory.
//!
//! After each step, both balances hold for every source and output. Only lines that were sent arrive, complete. In
//! clusters without failover, each series arrives in order at each endpoint; a line may arrive again. At the end,
//! without faults, every line has arrived at all its endpoints, except for copies counted as dropped and copies that a
//! killed process had only in memory.
//!
//! Its seeds are separate from those of other storms (`storm`), which keep their meaning. Not here: the world
//! (`world`), disks that fail (`storm`).

mod clusters;
mod ledger;

use std::path::Path;

use config::plan::Plan;
use import::relay::flags::{Flags, Machine, settings};
use import::relay::plan::{Relay, relay};
use import::relay::read_text;
use model::{Dropped, OutputId};

use self::clusters::CONF;
use self::ledger::Ledger;
use crate::random::Random;
use crate::storm::Found;
use crate::world::peer::{State, Weather};
use crate::world::source::End;
use crate::world::{Knobs, World, start};

/// Steps of one run.
const STEPS: usize = 120;

/// Number of clients.
const CLIENTS: usize = 3;

const MS_NS: u64 = 1_000_000;

/// The source of all clients.
const SOURCE: &str = "lines";

/// The figures of one run or several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayCalm {
    /// Lines that clients sent.
    pub sent: u64,
    /// Copies that were delivered.
    pub delivered: u64,
    /// Copies that moved to other outputs.
    pub moved: u64,
    /// Copies dropped while their endpoint was down.
    pub dropped: u64,
    /// Lines that arrived at an endpoint more than once.
    pub twice: u64,
    /// Lines with fewer endpoints than intended, because one failover member replaced two members at different times.
    pub doubled: u64,
    /// Processes that were killed.
    pub kills: u64,
    /// Fingerprint of all bytes that arrived anywhere, and of every disk.
    pub digest: u64,
}

impl RelayCalm {
    /// Adds the figures of another run.
    pub fn add(&mut self, other: &RelayCalm) {
        self.sent += other.sent;
        self.delivered += other.delivered;
        self.moved += other.moved;
        self.dropped += other.dropped;
        self.twice += other.twice;
        self.doubled += other.doubled;
        self.kills += other.kills;
        self.digest ^= other.digest;
    }
}

/// One run.
///
/// # Errors
/// The first failed check.
pub fn relay_storm(seed: u64) -> Result<RelayCalm, Found> {
    let mut storm = RelayStorm::new(seed);
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
        Ok(()) => Ok(RelayCalm { digest: storm.world.digest(), ..storm.calm() }),
        Err(message) => Err(Found { seed, step: at, message }),
    }
}

fn plan(random: &mut Random, on_disk: bool) -> Plan {
    let conf = read_text("relay.conf", CONF).conf.expect("the configuration is good");
    let flags = Flags { config: Some("relay.conf".into()), ..Flags::default() };
    let machine = Machine { hostname: "host".into(), cores: 1 };
    let settings = settings(&flags, &machine).0.expect("there are no flags");
    let queue_dir = on_disk.then(|| Path::new("queues"));
    let asked = Relay { conf: &conf, settings: &settings, queue_given: false, queue_dir, http: None };
    let mut plan = relay(&asked).0.expect("the configuration is good");
    for output in &mut plan.outputs {
        if random.chance(40) {
            output.queue.bytes_max = random.between(2_000, 20_000);
        }
        if random.chance(20) {
            output.queue.records_max = random.between(20, 500);
        }
    }
    plan
}

struct RelayStorm {
    random: Random,
    world: World,
    on_disk: bool,
    ledger: Ledger,
    /// By client: how many connections it has ended.
    connections: [u32; CLIENTS],
    /// The accounts of killed processes.
    before: RelayCalm,
}

impl RelayStorm {
    fn new(seed: u64) -> RelayStorm {
        let mut random = Random::new(seed);
        let on_disk = random.chance(50);
        let exchange_bytes_max = random.between(1, 200_000) as usize;
        let knobs = Knobs { exchange_bytes_max, ..Knobs::new(seed).with_short_turns() };
        let plan = plan(&mut random, on_disk);
        let world = World::new(plan, start(0), knobs);
        let names: Vec<String> = world.outlets.iter().map(|outlet| outlet.name.clone()).collect();
        let mut storm = RelayStorm {
            random,
            world,
            on_disk,
            ledger: Ledger::new(&names),
            connections: [0; CLIENTS],
            before: RelayCalm::default(),
        };
        for outlet in &mut storm.world.outlets {
            let random = Random::new(storm.random.next());
            outlet.set_weather(Weather { random, buffer_max: storm.random.between(1, 65_536) as usize });
        }
        storm
    }

    fn step(&mut self) -> Result<(), String> {
        match self.random.below(100) {
            0..=39 => self.lines(),
            40..=54 => self.endpoint(),
            55..=56 => self.kill(),
            57..=79 => self.world.turn(),
            80..=95 => {
                let ms = self.random.between(1, 3_000);
                self.world.advance(ms * MS_NS)
            }
            _ => self.world.advance(self.random.between(1, 40) * 1000 * MS_NS),
        }
    }

    /// A client sends some lines, in several writes.
    fn lines(&mut self) -> Result<(), String> {
        let client = self.random.below(CLIENTS as u64) as usize;
        let connection = format!("c{client}-{}", self.connections[client]);
        let count =
            if self.random.chance(20) { self.random.between(100, 4_000) } else { self.random.between(1, 50) };
        let mut text = Vec::new();
        for _ in 0..count {
            self.ledger.line(&mut self.random, &connection, &mut text);
        }
        let cut = self.random.below(text.len() as u64 + 1) as usize;
        self.world.stream(SOURCE, &connection, false, &text[..cut])?;
        if self.random.chance(50) {
            self.world.turn()?;
        }
        self.world.stream(SOURCE, &connection, false, &text[cut..])?;
        if self.random.chance(10)
            && let Some(source) = self.world.source(SOURCE)
        {
            source.end(&connection, End::Orderly);
            // Its next lines use a new connection.
            self.connections[client] += 1;
        }
        Ok(())
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

    /// Kills the process and starts another. Unread data of clients is lost, and, with queues in memory, all copies
    /// that have not arrived.
    fn kill(&mut self) -> Result<(), String> {
        // Moved blocks may be between two disks.
        self.world.turn()?;
        self.check()?;
        let all_taken = self.world.source(SOURCE).is_none_or(|source| source.stalled() == 0)
            && self.world.all_is_in_queues();
        if !self.on_disk || !all_taken {
            self.ledger.doubt_what_has_not_arrived();
        }
        let kills = self.before.kills + 1;
        self.before = RelayCalm { kills, ..self.calm() };
        self.world.crash(false);
        // The rest that endpoints still read from closed connections.
        self.check()?;
        self.ledger.killed();
        Ok(())
    }

    fn check(&mut self) -> Result<(), String> {
        if let Some(broken) = self.world.broken_sums().into_iter().next() {
            return Err(broken);
        }
        for (at, outlet) in self.world.outlets.iter_mut().enumerate() {
            for arrival in outlet.mailbox.drain(..) {
                let line = arrival.what.bytes();
                self.ledger.arrived(at, &line).map_err(|why| format!("output `{}`: {why}", outlet.name))?;
            }
        }
        for outlet in &self.world.outlets {
            let account = &outlet.account;
            let lost = account.lost_here();
            if lost != account.dropped(Dropped::QueueFull) || account.refused() > 0 {
                return Err(format!(
                    "output `{}` lost copies for another reason than a full queue",
                    outlet.name
                ));
            }
        }
        Ok(())
    }

    /// All faults end, and all queues drain.
    fn end(&mut self) -> Result<(), String> {
        let now = self.world.now;
        self.world.outlets.iter_mut().try_for_each(|outlet| outlet.set_state(State::Up, now))?;
        self.world.advance(120_000 * MS_NS)?;
        self.check()?;
        self.world.stop()?;
        self.check()?;
        for (at, outlet) in self.world.outlets.iter().enumerate() {
            if outlet.waiting() > 0 || !self.world.output_is_live(OutputId(at as u16)) {
                return Err(format!("output `{}` is not live again after its faults ended", outlet.name));
            }
        }
        let dropped = self.calm().dropped;
        self.ledger.check(dropped)
    }

    fn calm(&self) -> RelayCalm {
        let sums = || self.world.outlets.iter().map(|outlet| outlet.account.sum(0));
        let mut calm = RelayCalm {
            delivered: sums().map(|sum| sum.delivered).sum(),
            moved: sums().map(|sum| sum.moved).sum(),
            dropped: sums().map(|sum| sum.dropped).sum(),
            ..RelayCalm::default()
        };
        calm.add(&self.before);
        let Ledger { lines: sent, twice, doubled, .. } = self.ledger;
        RelayCalm { sent, twice, doubled, ..calm }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(seeds: std::ops::Range<u64>) {
        let mut all = RelayCalm::default();
        for seed in seeds {
            all.add(&relay_storm(seed).unwrap_or_else(|found| panic!("{found}")));
        }
        let RelayCalm { sent, delivered, moved, dropped, twice, kills, doubled: _, digest: _ } = all;
        let each = [sent, delivered, moved, dropped, twice, kills];
        assert!(each.iter().all(|count| *count > 0), "something never happened: {all:?}");
    }

    #[test]
    fn relays_count_every_lost_line() {
        pass(0..6);
    }

    #[test]
    fn relays_count_every_lost_line_with_other_seeds() {
        pass(100..106);
    }

    #[test]
    fn the_same_seed_gives_the_same_run() {
        assert_eq!(relay_storm(7), relay_storm(7));
    }
}
