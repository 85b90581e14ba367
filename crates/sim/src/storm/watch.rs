//! Watches one output: everything that arrives there must have been given to it, whole, in order, and once.
//!
//! The blocks that the shard gives are cut into units (points, lines, packets) and numbered. What arrives is looked
//! up among them: a unit that nobody gave is torn or invented; one that comes after a later one has been delivered
//! twice, which only a stream sender may do, and only if it counted it as resent.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering::Relaxed;

use deliver::queue::{Block, BlockForm};

use crate::world::arrivals::{Arrived, Cutter, Reading};
use crate::world::outlet::{Link, Outlet};

/// What is known of one output.
#[derive(Debug)]
pub(super) struct Watch {
    reading: Reading,
    /// Unit -> its numbers, ascending.
    given: BTreeMap<Vec<u8>, Vec<u64>>,
    numbered: u64,
    /// Number behind that of the last unit that arrived in order.
    next: u64,
    /// Units that arrived in order.
    arrived: u64,
    /// Units that arrived although later ones had.
    twice: u64,
    /// A unit was given that is not one copy: a packet of several lines.
    several_copies: bool,
    /// Sums of the counters that are followed, by point.
    sums: BTreeMap<String, f64>,
}

impl Watch {
    pub(super) fn new(reading: Reading) -> Watch {
        Watch {
            reading,
            given: BTreeMap::new(),
            numbered: 0,
            next: 0,
            arrived: 0,
            twice: 0,
            several_copies: false,
            sums: BTreeMap::new(),
        }
    }

    /// A block was given to the output.
    pub(super) fn gave(&mut self, block: &Block) {
        let mut units = VecDeque::new();
        let mut cutter = Cutter::new(self.reading);
        match &block.form {
            BlockForm::Packets(packets) if self.reading == Reading::Packets => {
                packets.iter().for_each(|packet| cutter.push(packet.of(&block.bytes), &mut units));
            }
            BlockForm::Frames(frames) if self.reading == Reading::Packets => {
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
            self.given.entry(unit.bytes()).or_default().push(self.numbered);
            self.numbered += 1;
        }
    }

    /// Takes in what has arrived since the last call.
    ///
    /// # Errors
    /// What must not have happened.
    pub(super) fn look(&mut self, outlet: &mut Outlet) -> Result<(), String> {
        for arrival in outlet.mailbox.drain(..) {
            let unit = arrival.what.bytes();
            let Some(numbers) = self.given.get(&unit) else {
                return Err(format!("`{}` arrived, and was never given", unit.escape_ascii()));
            };
            match numbers.get(numbers.partition_point(|number| *number < self.next)) {
                Some(number) => {
                    self.next = number + 1;
                    self.arrived += 1;
                    self.add_up(&arrival.what);
                }
                None => self.twice += 1,
            }
        }
        Ok(())
    }

    fn add_up(&mut self, arrived: &Arrived) {
        if let Arrived::Point { name, value, .. } = arrived
            && let Some(name) = name.strip_prefix("stats_counts.ledger.")
        {
            *self.sums.entry(format!("ledger.{name}")).or_default() += value.parse().unwrap_or(f64::NAN);
        }
    }

    /// Whether each unit is a copy in the account: packets over TCP, and those that are packed, may have several lines.
    fn unit_is_copy(&self, outlet: &Outlet) -> bool {
        !self.several_copies && !matches!((self.reading, &outlet.link), (Reading::Lines, Link::Stream(..)))
    }

    /// Whether the followed counters have arrived to the last unit.
    ///
    /// # Errors
    /// The first counter that has not.
    pub(super) fn check_ledger(&self, ledger: &BTreeMap<String, u64>) -> Result<(), String> {
        for (name, sent) in ledger {
            let got = self.sums.get(name).copied().unwrap_or(0.0);
            if got != *sent as f64 {
                return Err(format!("counter `{name}` was sent {sent}, and its points add up to {got}"));
            }
        }
        Ok(())
    }
}

/// Holds what arrived against one account: that of one output, or of several that had one name over reloads.
///
/// # Errors
/// What must not have happened.
pub(super) fn check_account(sharing: &[(&Watch, &Outlet)]) -> Result<(), String> {
    let Some((_, outlet)) = sharing.first() else { return Ok(()) };
    let twice: u64 = sharing.iter().map(|(watch, _)| watch.twice).sum();
    let resent = outlet.account.resent.load(Relaxed);
    let unit_is_copy = sharing.iter().all(|(watch, outlet)| watch.unit_is_copy(outlet));
    // Of a packet with several lines some may have arrived before its connection broke; none of it was a copy then.
    let reconnected = outlet.account.connects.load(Relaxed) > 1;
    let too_often = if unit_is_copy { twice > resent } else { twice > 0 && !reconnected };
    if too_often {
        return Err(format!("{twice} units arrived twice or out of order, and {resent} were resent"));
    }
    // A packet that went to nobody cannot be told from one that arrived until the refusal comes back.
    let lost = |outlet: &Outlet| match &outlet.link {
        Link::Datagram(_, peer) => peer.lost,
        Link::Stream(..) | Link::File(..) => 0,
    };
    let arrived: u64 = sharing.iter().map(|(watch, outlet)| watch.arrived + lost(outlet)).sum();
    let delivered = outlet.account.sum(0).delivered;
    if delivered > arrived && unit_is_copy {
        return Err(format!("{delivered} copies count as delivered, and {arrived} arrived"));
    }
    Ok(())
}
