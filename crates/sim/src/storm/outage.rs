//! Faults of disks, processes and machines in a storm, and the checks after the next start.
//!
//! Not here: sequences of faults (`nights`).

use deliver::disk_queue::faulty_disk::{Faults, FaultyDisk};
use model::{DiskError, OutputId};

use super::end::End;
use super::memory::{self, LOST_WRITE_MAX};
use super::pipeline::{CALM, KEPT};
use super::vault::{Found, Legacy, Vault};
use super::{MS_NS, Storm};
use crate::random::Random;
use crate::world::outlet::Outlet;
use crate::world::stored::Stored;

impl Storm {
    /// Causes a fault on the disk of one output.
    pub(super) fn disk(&mut self) {
        let at = self.random.below(self.world.outlets.len() as u64) as usize;
        let outlet = &mut self.world.outlets[at];
        let (Some(stored), Some(vault)) = (&mut outlet.stored, self.vaults.get_mut(&OutputId(at as u16)))
        else {
            return;
        };
        let random = &mut self.random;
        let what = if CALM.contains(&outlet.name.as_str()) || random.chance(15) {
            self.end_of_next = End::by_chance(random);
            let calls = random.below(40);
            stored.disk.change_faults(|faults| faults.crash_in = Some(calls));
            format!("call {calls} kills the process: {:?}", self.end_of_next)
        } else if random.chance(30) {
            match random.chance(30) {
                true => all_is_there(stored),
                false => shortage(stored, random),
            }
        } else {
            vault.disk_failed = true;
            fault(stored, vault, random, KEPT.contains(&outlet.name.as_str()))
        };
        self.story.tell(format!("disk of `{}`: {what}", outlet.name));
    }

    /// Causes a fault on the disk of checkpoints and notes.
    pub(super) fn state_disk(&mut self) {
        let Some(keeping) = &self.world.keeping else { return };
        let random = &mut self.random;
        let calls = random.below(20);
        let change = |change: &dyn Fn(&mut Faults)| keeping.disk.change_faults(change);
        let what = match random.below(8) {
            0..=2 => {
                self.end_of_next = End::by_chance(random);
                change(&|faults| faults.crash_in = Some(calls));
                format!("call {calls} kills the process: {:?}", self.end_of_next)
            }
            3 => {
                change(&|faults| faults.sync_error_in = Some(calls / 5));
                format!("sync {} fails", calls / 5)
            }
            4 => {
                change(&|faults| faults.write_error_in = Some(calls / 3));
                format!("write {} fails", calls / 3)
            }
            5 => {
                let left = random.below(4000);
                let bytes_max = Some(keeping.used() + left);
                change(&|faults| faults.bytes_max = bytes_max);
                format!("{left} bytes are left on it")
            }
            6 => {
                change(&|faults| faults.bytes_max = None);
                "there is room".to_owned()
            }
            _ => {
                let write = calls % LOST_WRITE_MAX;
                self.memory.damage();
                change(&|faults| faults.lose_write_in = Some(write));
                format!("write {write} is lost")
            }
        };
        self.story.tell(format!("disk of checkpoints: {what}"));
    }

    /// Kills the process, or the whole machine, and starts another process.
    pub(super) fn crash(&mut self, end: End) -> Result<(), String> {
        let power = end == End::PowerLoss;
        self.story.tell(format!("{end:?}"));
        let calm = self.since();
        self.before.add(&calm);
        match end {
            End::Killed => self.tally.kills += 1,
            End::PowerLoss => self.tally.power_losses += 1,
        }
        let legacies = self.leave_disks(power)?;
        self.world.sleep(self.random.below(20_000) * MS_NS);
        self.world.restart(power);
        self.clients.restart();
        self.memory.begin(&self.world.plan);
        let back = self.world.counters(memory::FOLLOWED, "ledger.");
        self.tally.restored += back.values().sum::<f64>() as u64;
        let sent = &self.traffic.ledger;
        for (at, legacy) in legacies.iter().enumerate() {
            let outlet = &mut self.world.outlets[at];
            let Some(watch) = self.watches.get_mut(&OutputId(at as u16)) else { continue };
            // The bytes that were on the wire when the connection ended.
            watch.look(outlet).map_err(|what| in_output(outlet, &what))?;
            let (left, units) =
                if outlet.asleep { (&legacy.units[..], &[][..]) } else { (&[][..], &legacy.units[..]) };
            watch.leave(left);
            let forgotten = watch.restart(units, sent, &back);
            if CALM.contains(&outlet.name.as_str()) {
                let checked = self.memory.check(power, sent, &back, &watch.given(), &forgotten);
                checked.map_err(|what| in_output(outlet, &what))?;
            }
            self.tally.found += legacy.found;
            self.tally.lost += legacy.lost;
            self.tally.damaged += legacy.damaged;
        }
        self.memory.restart(power, sent);
        self.rain();
        if let Some(broken) = self.world.broken_sums().into_iter().next() {
            return Err(format!("after a restart {broken}"));
        }
        let first = self.traffic.first();
        self.world.datagram("a", &first)?;
        if self.memory.may_be_damaged() {
            self.traffic.follow_only(&self.world.counters(memory::FOLLOWED, "ledger."));
        }
        Ok(())
    }

    /// Decides the contents of each disk for the next process, and checks them.
    fn leave_disks(&mut self, power: bool) -> Result<Vec<Legacy>, String> {
        let mut legacies = Vec::new();
        for (at, outlet) in self.world.outlets.iter_mut().enumerate() {
            let (Some(vault), Some(stored)) = (self.vaults.get_mut(&OutputId(at as u16)), &mut outlet.stored)
            else {
                legacies.push(Legacy::default());
                continue;
            };
            stored.die(power);
            if ![CALM, KEPT].concat().contains(&outlet.name.as_str()) {
                if self.random.chance(20) {
                    vault.damages += flip(stored, &mut self.random, "segment");
                }
                vault.cursor_damaged |=
                    self.random.chance(5) && flip(stored, &mut self.random, "cursor-") > 0;
            }
            let (blocks, damaged) = stored.peek(self.world.now);
            let found = Found { blocks, damaged };
            let legacy = vault.die(outlet, power, &found).map_err(|what| in_output(outlet, &what))?;
            if let Some(stored) = &outlet.stored
                && self.random.chance(10)
            {
                // The next process dies early.
                let calls = self.random.below(20);
                self.story.tell(format!("the next process dies in call {calls} to `{}`", outlet.name));
                self.end_of_next = End::by_chance(&mut self.random);
                stored.disk.change_faults(|faults| faults.crash_in = Some(calls));
            }
            legacies.push(legacy);
        }
        if let Some(keeping) = &mut self.world.keeping {
            keeping.die(power);
            if self.random.chance(10) && flip_of(&keeping.disk, &mut self.random, "") > 0 {
                self.memory.damage();
            }
        }
        Ok(legacies)
    }

    /// After an orderly stop, the next process finds no data. (A power loss at that moment may restore a removed
    /// segment with delivered blocks.) `left`: outputs, by index, whose disks keep their data.
    pub(super) fn nothing_comes_back(&mut self, left: &[bool]) -> Result<(), String> {
        for (output, vault) in &self.vaults {
            let outlet = &mut self.world.outlets[output.index()];
            let is_read = !vault.cursor_damaged && !left[output.index()];
            let Some(stored) = outlet.stored.as_mut().filter(|_| is_read) else { continue };
            stored.die(false);
            let (blocks, damaged) = stored.peek(self.world.now);
            if !blocks.is_empty() || damaged > 0 {
                let what =
                    format!("after an orderly stop {} blocks are back and {damaged} damaged", blocks.len());
                return Err(in_output(outlet, &what));
            }
        }
        Ok(())
    }
}

impl Storm {
    /// After an orderly stop, every window has been emitted: the next process restores no counters.
    pub(super) fn nothing_is_left_to_count(&mut self) -> Result<(), String> {
        if let Some(keeping) = &mut self.world.keeping {
            keeping.die(false);
        }
        let calm = self.since();
        self.before.add(&calm);
        self.world.restart(false);
        let back = self.world.counters(memory::FOLLOWED, "ledger.");
        match back.iter().find(|(_, value)| **value != 0.0) {
            Some((name, value)) => Err(format!("after an orderly stop {value} of counter `{name}` are back")),
            None => Ok(()),
        }
    }
}

fn in_output(outlet: &Outlet, what: &str) -> String {
    format!("output `{}`: {what}", outlet.name)
}

/// Causes a shortage for a while, or a single failure; describes it. No byte on the disk is damaged.
pub(super) fn shortage(stored: &Stored, random: &mut Random) -> String {
    let (what, change): (_, fn(&mut Faults)) = match random.below(4) {
        0 => ("no file can be opened: no descriptors", |faults| {
            faults.opens_fail = Some(DiskError::Scarce { code: 24 });
        }),
        1 => ("no file can be opened: no permission", |faults| faults.opens_fail = Some(DiskError::Denied)),
        2 => ("the folder is away", |faults| faults.away = true),
        _ => ("the next read fails", |faults| faults.read_error_in = Some(0)),
    };
    stored.disk.change_faults(change);
    what.to_owned()
}

/// Ends all shortages; describes that.
pub(super) fn all_is_there(stored: &Stored) -> String {
    stored.disk.change_faults(|faults| {
        (faults.opens_fail, faults.away, faults.read_error_in) = (None, false, None);
    });
    "everything is there again".to_owned()
}

/// Causes a fault; describes it. On a disk that is `kept`, no data is damaged.
pub(super) fn fault(stored: &Stored, vault: &mut Vault, random: &mut Random, kept: bool) -> String {
    let calls = random.below(6);
    match random.below(if kept { 7 } else { 10 }) {
        0..=1 => {
            let calls = calls / 2;
            stored.disk.change_faults(|faults| faults.sync_error_in = Some(calls));
            format!("sync {calls} fails")
        }
        2..=3 => {
            vault.write_fails = true;
            stored.disk.change_faults(|faults| faults.write_error_in = Some(calls));
            format!("write {calls} fails")
        }
        4..=5 => {
            let left = random.below(4000);
            let bytes_max = Some(stored.used() + left);
            stored.disk.change_faults(|faults| faults.bytes_max = bytes_max);
            format!("{left} bytes are left on it")
        }
        6 => {
            stored.disk.change_faults(|faults| faults.bytes_max = None);
            "there is room".to_owned()
        }
        7 => {
            // The lost write may be that of a cursor.
            vault.damages += 1;
            vault.cursor_damaged = true;
            stored.disk.change_faults(|faults| faults.lose_write_in = Some(calls));
            format!("write {calls} is lost")
        }
        8 => unreadable(stored, random),
        _ => {
            vault.damages += flip(stored, random, "segment");
            "a byte changes".to_owned()
        }
    }
}

/// Names of the files that have `part` in their names.
fn names(disk: &FaultyDisk, part: &str) -> Vec<String> {
    let mut names = disk.names();
    names.retain(|name| name.contains(part) && !name.ends_with(".quarantine"));
    names
}

/// Changes one byte of a file. Returns the number of changed bytes: 1, or 0 if there is none.
fn flip(stored: &Stored, random: &mut Random, part: &str) -> u64 {
    flip_of(&stored.disk, random, part)
}

fn flip_of(disk: &FaultyDisk, random: &mut Random, part: &str) -> u64 {
    let names = names(disk, part);
    if names.is_empty() {
        return 0;
    }
    let change = random.between(1, 255) as u8;
    let name = random.pick(&names).clone();
    disk.damage(&name, |bytes| {
        if !bytes.is_empty() {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] ^= change;
        }
    });
    1
}

/// Makes a range of one segment unreadable, or everything readable again. Describes it.
fn unreadable(stored: &Stored, random: &mut Random) -> String {
    let names = names(&stored.disk, "segment");
    if names.is_empty() || random.chance(30) {
        stored.disk.change_faults(|faults| faults.unreadable.clear());
        return "all of it can be read".to_owned();
    }
    let name = random.pick(&names).clone();
    let first = random.below(10_000);
    let last = first + random.below(5000);
    let what = format!("bytes {first} to {last} of {name} cannot be read");
    stored.disk.change_faults(|faults| faults.unreadable.push((name, first, last)));
    what
}
