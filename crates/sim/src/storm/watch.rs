//! Watches one output: its arrivals must be the blocks given to it, complete, in order, and once.
//!
//! The shard's blocks are split into numbered units (points, lines, packets). Each arrival is looked up among them. An
//! unknown unit is damaged or invented. A unit after a later one is a duplicate: only a stream sender may send one, and
//! must count it as resent.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

use deliver::queue::{Block, BlockEncoding};
use model::OutputId;

use super::pipeline::KEPT;
use crate::world::World;
use crate::world::arrivals::{Arrived, Cutter, Reading};
use crate::world::outlet::{Link, Outlet};

/// The records of one output.
#[derive(Debug)]
pub(super) struct Watch {
    reading: Reading,
    /// Unit -> its numbers, ascending.
    given: BTreeMap<Vec<u8>, Vec<u64>>,
    numbered: u64,
    /// Numbers of the units that the process found on disk at its start. From `fresh` on, units are its own.
    found: Vec<Range<u64>>,
    fresh: u64,
    /// Numbers of units on a disk that no process reads now.
    left: Vec<Range<u64>>,
    /// One more than the number of the last unit that arrived in order.
    next: u64,
    /// One more than the number of the last unit that arrived.
    expected: u64,
    /// How often it was unknown which of several equal units has arrived.
    guesses: u64,
    /// Units that arrived in order.
    arrived: u64,
    /// Units that arrived after later ones.
    twice: u64,
    /// A unit was given that is not one copy: a packet of several lines.
    several_copies: bool,
    /// Sums of the followed counters, over points that were given, that arrived, and that are lost.
    sums: BTreeMap<String, Sums>,
    /// Acknowledged lines of clients that have arrived.
    kept: BTreeSet<Vec<u8>>,
    /// Points of followed counters that have not arrived, by number.
    pending: BTreeMap<u64, (String, f64)>,
}

/// The sums of one followed counter.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    given: f64,
    arrived: f64,
    /// Given, but lost with the process or the machine.
    lost: f64,
    /// Sent, but never given, because the process died before its window ended.
    forgotten: f64,
}

impl Watch {
    pub(super) fn new(reading: Reading) -> Watch {
        Watch {
            reading,
            given: BTreeMap::new(),
            numbered: 0,
            found: Vec::new(),
            fresh: 0,
            left: Vec::new(),
            next: 0,
            expected: 0,
            guesses: 0,
            arrived: 0,
            twice: 0,
            several_copies: false,
            sums: BTreeMap::new(),
            kept: BTreeSet::new(),
            pending: BTreeMap::new(),
        }
    }

    /// A block was given to the output. Returns the numbers of its units.
    pub(super) fn gave(&mut self, block: &Block) -> Range<u64> {
        let first = self.numbered;
        let mut units = VecDeque::new();
        let mut cutter = Cutter::new(self.reading);
        match &block.encoding {
            BlockEncoding::Packets(packets) if self.reading == Reading::Packets => {
                packets.iter().for_each(|packet| cutter.push(packet.of(&block.bytes), &mut units));
            }
            BlockEncoding::Frames(frames) if self.reading == Reading::Packets => {
                let mut from = 0;
                for (end, _copies) in frames {
                    cutter.push(&block.bytes[from..*end as usize], &mut units);
                    from = *end as usize;
                }
            }
            _ => cutter.push(&block.bytes, &mut units),
        }
        self.several_copies |= units.len() as u64 != u64::from(block.copies);
        for unit in units {
            if let Some((name, value)) = followed(&unit) {
                self.sums.entry(name.clone()).or_default().given += value;
                self.pending.insert(self.numbered, (name, value));
            }
            self.given.entry(unit.bytes()).or_default().push(self.numbered);
            self.numbered += 1;
        }
        first..self.numbered
    }

    /// The process has died, and the next one has found these units on disk. They may arrive again, in order; other
    /// units that have not arrived are lost.
    ///
    /// For each followed counter, `sent` is the sum sent, and `back` is the restored sum in an open window, or in a
    /// closed one that is not emitted. Returns the loss of each since the previous call.
    pub(super) fn restart(
        &mut self,
        found: &[Range<u64>],
        sent: &BTreeMap<String, u64>,
        back: &BTreeMap<String, f64>,
    ) -> BTreeMap<String, f64> {
        (self.arrived, self.twice, self.guesses) = (0, 0, 0);
        if let Some(first) = found.first() {
            (self.next, self.expected) = (first.start, first.start);
        }
        (self.found, self.fresh) = (found.to_vec(), self.numbered);
        let there = |number: &u64| found.iter().any(|range| range.contains(number));
        for (name, value) in self.pending.extract_if(.., |number, _| !there(number)).map(|(_, point)| point) {
            self.sums.entry(name).or_default().lost += value;
        }
        let mut forgotten = BTreeMap::new();
        for (name, sent) in sent {
            let sums = self.sums.entry(name.clone()).or_default();
            let all = *sent as f64 - sums.given - back.get(name).copied().unwrap_or(0.0);
            let before = std::mem::replace(&mut sums.forgotten, all);
            forgotten.insert(name.clone(), all - before);
        }
        forgotten
    }

    /// These units are on a disk that no process reads now.
    pub(super) fn leave(&mut self, left: &[Range<u64>]) {
        self.left = left.to_vec();
    }

    /// A process reads that disk again: its units arrive before newer ones.
    pub(super) fn wake(&mut self) {
        self.found = std::mem::take(&mut self.left);
        if let Some(first) = self.found.first() {
            (self.next, self.expected) = (first.start, first.start);
        }
    }

    /// Sums of the points of followed counters given so far.
    pub(super) fn given(&self) -> BTreeMap<String, f64> {
        self.sums.iter().map(|(name, sums)| (name.clone(), sums.given)).collect()
    }

    /// Checks the arrivals since the previous call.
    ///
    /// # Errors
    /// The failed check.
    pub(super) fn look(&mut self, outlet: &mut Outlet) -> Result<(), String> {
        let resent = outlet.account.resent.load(Relaxed);
        for arrival in outlet.mailbox.drain(..) {
            let unit = arrival.what.bytes();
            let Some(number) = self.number_of(&unit, self.twice < resent) else {
                return Err(format!("`{}` arrived, but was never given", unit.escape_ascii()));
            };
            if unit.starts_with(b"kept.") {
                self.kept.insert(unit);
            }
            self.expected = number + 1;
            if number >= self.next {
                self.next = number + 1;
                self.arrived += 1;
            } else {
                self.twice += 1;
            }
            if let Some((name, value)) = self.pending.remove(&number) {
                self.sums.entry(name).or_default().arrived += value;
            }
        }
        Ok(())
    }

    /// Whether an acknowledged line of a client has arrived.
    pub(super) fn has_arrived(&self, line: &str) -> bool {
        self.kept.contains(line.as_bytes())
    }

    /// Which of several equal units has arrived: the first one not yet arrived, or, if units were sent `again`, perhaps
    /// the last one before it. The latter is a guess.
    fn number_of(&mut self, unit: &[u8], again: bool) -> Option<u64> {
        let alike = self.given.get(unit)?;
        // A window that is emitted twice has equal points.
        let is_due =
            |number: &&u64| **number >= self.fresh || self.found.iter().any(|range| range.contains(*number));
        let expected = self.first_due(if again { self.expected } else { self.next });
        let at = alike.partition_point(|number| *number < expected);
        let ahead = alike[at..].iter().find(is_due).or(alike.get(at));
        Some(match (ahead, at.checked_sub(1).and_then(|before| alike.get(before))) {
            (Some(number), Some(before)) if again && *number != expected => {
                self.guesses += 1;
                *before
            }
            (Some(number), _) => *number,
            (None, before) => *before?,
        })
    }

    /// The first number from `number` on that can still arrive: before `fresh`, only units found on disk.
    fn first_due(&self, number: u64) -> u64 {
        let later =
            self.found.iter().filter(|range| range.end > number).map(|range| range.start.max(number)).min();
        later.unwrap_or(self.fresh.max(number)).min(self.fresh.max(number))
    }

    /// Whether each unit is a copy in the account. Packets over TCP and repacked ones may have several lines.
    fn unit_is_copy(&self, outlet: &Outlet) -> bool {
        !self.several_copies && !matches!((self.reading, &outlet.link), (Reading::Lines, Link::Stream(..)))
    }

    /// Checks that the followed counters have arrived completely, except for units that died with a process.
    ///
    /// # Errors
    /// The first counter that has not.
    pub(super) fn check_ledger(&self, ledger: &BTreeMap<String, u64>) -> Result<(), String> {
        for (name, sent) in ledger {
            let sums = self.sums.get(name).copied().unwrap_or_default();
            if sums.arrived + sums.lost + sums.forgotten != *sent as f64 {
                return Err(format!("counter `{name}` was sent {sent}, but its points add up to {sums:?}"));
            }
        }
        Ok(())
    }
}

/// The name of a followed counter and the value of its point.
fn followed(unit: &Arrived) -> Option<(String, f64)> {
    let Arrived::Point { name, value, .. } = unit else { return None };
    let name = name.strip_prefix("stats_counts.ledger.")?;
    Some((format!("ledger.{name}"), value.parse().unwrap_or(f64::NAN)))
}

/// Compares the arrivals with one account, which several outputs of one name may have shared over reloads.
///
/// # Errors
/// The failed check.
pub(super) fn check_account(sharing: &[(&Watch, &Outlet)]) -> Result<(), String> {
    let Some((_, outlet)) = sharing.first() else { return Ok(()) };
    let twice: u64 = sharing.iter().map(|(watch, _)| watch.twice).sum();
    let resent = outlet.account.resent.load(Relaxed);
    let guesses: u64 = sharing.iter().map(|(watch, _)| watch.guesses).sum();
    let unit_is_copy = sharing.iter().all(|(watch, outlet)| watch.unit_is_copy(outlet));
    // Some lines of a packet may have arrived before its connection broke; none of these was a copy.
    let reconnected = outlet.account.connects.load(Relaxed) > 1;
    let too_often = if unit_is_copy { twice > resent + guesses } else { twice > 0 && !reconnected };
    if too_often {
        return Err(format!("{twice} units arrived twice or out of order, but {resent} were resent"));
    }
    // A packet to a closed port looks delivered until the rejection arrives.
    let lost = |outlet: &Outlet| match &outlet.link {
        Link::Datagram(_, peer) => peer.lost,
        Link::Stream(..) | Link::File(..) => 0,
    };
    let arrived: u64 = sharing.iter().map(|(watch, outlet)| watch.arrived + lost(outlet)).sum();
    let delivered = outlet.account.sum(0).delivered;
    if delivered > arrived + guesses && unit_is_copy {
        return Err(format!("{delivered} copies count as delivered, but {arrived} arrived"));
    }
    Ok(())
}

/// The watches of outputs whose lines are acknowledged to clients.
pub(super) fn kept<'a>(world: &World, watches: &'a BTreeMap<OutputId, Watch>) -> Vec<&'a Watch> {
    let at = KEPT.iter().filter_map(|name| world.outlet_at(name));
    at.filter_map(|at| watches.get(&OutputId(at as u16))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_a_window_emitted_twice_differ_from_resent_units() {
        let mut watch = Watch::new(Reading::Points);
        // Emitted, and found on disk: 0 and 1. Lost with the process: 2 and 3. Emitted once more: 4 and 5.
        for (number, unit) in [b"a", b"b", b"x", b"y", b"a", b"b"].into_iter().enumerate() {
            watch.given.entry(unit.to_vec()).or_default().push(number as u64);
        }
        (watch.numbered, watch.fresh, watch.next, watch.expected) = (6, 4, 2, 2);
        watch.found.push(0..2);
        assert_eq!(watch.number_of(b"a", true), Some(4));
        watch.expected = 5;
        assert_eq!(watch.number_of(b"b", true), Some(5));
        assert_eq!(watch.guesses, 0);
    }
}
