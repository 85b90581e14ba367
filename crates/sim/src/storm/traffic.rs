//! Random traffic: mostly valid lines, some that are invalid in every known way, some random bytes.

use std::collections::{BTreeMap, BTreeSet};

use crate::random::Random;

/// Number of counters whose every unit is followed from the socket to the endpoint.
const LEDGER_NAMES: u64 = 7;

/// Invalid lines, each in another way.
const BAD: &[&str] = &[
    "junk",
    ":1|c",
    "x:",
    "x:1",
    "x:y|c",
    "x:1|zz",
    "x:1|c|@9",
    "x:-1|ms",
    "x:1e999|c",
    "x:1|c|T0",
    "_e{9,9}:x|y",
    "_sc|x|9",
    "",
    "x:1:2:z|ms",
];

/// Makes packets, and records the expected sums of the followed counters.
#[derive(Debug)]
pub(super) struct Traffic {
    random: Random,
    /// Makes values and times unique.
    serial: u64,
    /// Followed counter -> sum of the samples sent.
    pub(super) ledger: BTreeMap<String, u64>,
    /// Counters that are no longer followed.
    kept_out: BTreeSet<String>,
}

impl Traffic {
    pub(super) fn new(seed: u64) -> Traffic {
        Traffic { random: Random::new(seed), serial: 0, ledger: BTreeMap::new(), kept_out: BTreeSet::new() }
    }

    /// A packet with every followed counter, so that no limit on series can exclude one.
    pub(super) fn first(&mut self) -> Vec<u8> {
        let lines: Vec<String> = (0..LEDGER_NAMES).map(|name| self.ledger_line(name)).collect();
        lines.join("\n").into_bytes()
    }

    fn ledger_line(&mut self, name: u64) -> String {
        let value = self.random.between(1, 1000);
        let name = format!("ledger.{name}");
        let line = format!("{name}:{value}|c");
        if !self.kept_out.contains(&name) {
            *self.ledger.entry(name).or_default() += value;
        }
        line
    }

    /// From now on, follows only counters that are `there`. A damaged checkpoint may have restored the most series that
    /// a transform accepts, without these.
    pub(super) fn follow_only(&mut self, there: &BTreeMap<String, f64>) {
        let kept_out = self.ledger.extract_if(.., |name, _| !there.contains_key(name));
        self.kept_out.extend(kept_out.map(|(name, _)| name));
    }

    /// A whole packet of some lines, including followed counters.
    pub(super) fn packet(&mut self) -> Vec<u8> {
        let mut packet = Vec::new();
        for _ in 0..self.random.below(12) {
            if self.random.chance(30) {
                let name = self.random.below(LEDGER_NAMES);
                let line = self.ledger_line(name);
                packet.extend_from_slice(line.as_bytes());
            } else {
                packet.extend(self.line());
            }
            packet.push(b'\n');
        }
        if self.random.chance(50) {
            packet.pop();
        }
        packet
    }

    /// Lines for a connection, without followed counters: a connection may break at any byte.
    pub(super) fn lines(&mut self) -> Vec<u8> {
        let mut lines = Vec::new();
        for _ in 0..self.random.between(1, 30) {
            lines.extend(self.line());
            lines.push(b'\n');
        }
        lines
    }

    fn line(&mut self) -> Vec<u8> {
        self.serial += 1;
        let (name, serial) = (self.name(), self.serial);
        let tags = *self.random.pick(&["", "", "|#env:prod", "|#b:2,a:1", "|#a:1,b:2", "|#bare"]);
        let text = match self.random.below(16) {
            0..=3 => format!("c.{name}:{serial}|c{tags}"),
            4 => format!("c.{name}:1|c|@0.1{tags}"),
            5..=6 => format!("g.{name}:{serial}|g{tags}"),
            7 => format!("g.{name}:-3|g"),
            8..=10 => format!("t.{name}:{}|ms{tags}", serial % 997),
            11 => format!("u.{name}:{serial}|s"),
            12 => format!("stamped.{name}:{serial}|g|T{}", 900_000_000 + serial),
            13 => format!("_e{{5,{}}}:title|{serial}", serial.to_string().len()),
            14 => (*self.random.pick(BAD)).to_owned(),
            _ => return self.bytes(),
        };
        text.into_bytes()
    }

    /// Few names, so that lines share them; sometimes a new one, so that limits are reached.
    fn name(&mut self) -> String {
        match self.random.below(10) {
            0 => format!("new.{}", self.serial),
            1 => format!("odd {}/x", self.random.below(5)),
            _ => self.random.below(12).to_string(),
        }
    }

    fn bytes(&mut self) -> Vec<u8> {
        let len = if self.random.chance(3) { 3000 } else { self.random.below(40) };
        (0..len).map(|_| self.random.next() as u8).collect()
    }
}
