//! A seeded run of an aggregation whose wall clock is set forward and back by seconds, days and years, while its
//! process is stopped, killed and replaced.
//!
//! Path of a sample: [`ClockStorm::send`] -> intake -> shard -> the windows' lines -> [`ledger::Ledger`], which checks
//! the labels. Checkpoints and notes are the same as in other storms (`world::keeping`), on a disk without faults.
//! The checks after each window: two windows after a step, labels follow the clock again; while the clock is right, no
//! label is used twice or skipped; windows of a wrong clock are counted; each sample is in one window.
//!
//! Its seeds are separate from those of other storms. Not here: queues, senders, faults of disks (`storm`), aggregation
//! rules of relays.

mod ledger;

use config::plan::Plan;
use model::{Now, OutputId, SECOND_NS, SourceId, Span};
use pipeline::{Accounts, Acks, Exchange, Host, Kept, Scratch, Shard, Turn, TurnLimits};
use process::aggregate::ClockFigures;

use self::ledger::Ledger;
use crate::random::Random;
use crate::storm::Found;
use crate::world::canary::Canary;
use crate::world::host::SimHost;
use crate::world::keeping::{Event, Keeping};
use crate::world::outlet::Outlet;
use crate::world::{Given, start};

/// Steps of one run.
const STEPS: usize = 80;

/// Checkpoints in a window.
const CHECKPOINTS: u64 = 5;

/// After this many turns without progress of time, the shard is in an endless loop.
const TURNS_MAX: usize = 1000;

const MS_NS: u64 = 1_000_000;
const DAY_S: i64 = 86_400;

/// The figures of one run or several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockCalm {
    /// Samples that were sent.
    pub sent: u64,
    /// Windows that were flushed with a label.
    pub windows: u64,
    /// Steps of the wall clock.
    pub steps: u64,
    /// Stops, kills and hot restarts of the process.
    pub restarts: u64,
    /// Windows counted as mislabelled.
    pub mislabelled: u64,
    /// Dropped labels of predecessors.
    pub dropped: u64,
}

impl ClockCalm {
    /// Adds the figures of another run.
    pub fn add(&mut self, other: &ClockCalm) {
        self.sent += other.sent;
        self.windows += other.windows;
        self.steps += other.steps;
        self.restarts += other.restarts;
        self.mislabelled += other.mislabelled;
        self.dropped += other.dropped;
    }
}

/// One run.
///
/// # Errors
/// The first failed check.
pub fn clock_storm(seed: u64) -> Result<ClockCalm, Found> {
    clock_storm_with(seed, None)
}

/// The same with a known bug.
///
/// # Errors
/// As above.
pub fn clock_storm_with(seed: u64, canary: Option<Canary>) -> Result<ClockCalm, Found> {
    let mut storm = ClockStorm::new(seed, canary);
    let mut at = 0;
    let mut all = || -> Result<(), String> {
        while at < STEPS {
            storm.step()?;
            at += 1;
        }
        storm.end()
    };
    match all() {
        Ok(()) => Ok(storm.calm),
        Err(message) => Err(Found { seed, step: at, message: format!("{message}\n{}", storm.story_text()) }),
    }
}

fn plan(align: &str, window_s: u64) -> Plan {
    let checkpoint_ms = window_s * 1000 / CHECKPOINTS;
    let text = format!(
        "[sources.s]\ntype = \"statsd\"\n\
         [transforms.t]\ntype = \"aggregate\"\nfrom = [\"s\"]\nwindow = \"{window_s}s\"\nflush_align = \"{align}\"\n\
         self_counters = \"none\"\ncheckpoint = \"{checkpoint_ms}ms\"\n\
         [outputs.o]\ntype = \"graphite\"\nfrom = [\"t\"]\nto = [\"tcp://10.0.0.1:2003\"]\n"
    );
    let source = config::diagnostic::Source { name: "storm.toml", text: &text };
    config::check(source, config::Format::Toml).0.expect("the configuration is good")
}

fn turn_of(shard: Shard, keeping: &Keeping) -> Turn {
    let limits = TurnLimits { flush_series: usize::MAX, save_series: keeping.slice, ..TurnLimits::default() };
    Turn::new(shard, limits)
}

struct ClockStorm {
    random: Random,
    plan: Plan,
    accounts: Accounts,
    turn: Turn,
    exchange: Exchange,
    /// The output. It never connects; blocks are read from `given`.
    outlets: Vec<Outlet>,
    acks: Acks,
    given: Vec<Given>,
    keeping: Keeping,
    /// The time as the process sees it.
    now: Now,
    /// How far the wall clock is off.
    offset_ns: i128,
    /// The clock's error at the start: a process that ignores steps still believes it.
    offset_at_start_ns: i128,
    window_ns: u64,
    ledger: Ledger,
    canary: Option<Canary>,
    calm: ClockCalm,
    /// The last steps, for the failure message.
    story: Vec<String>,
}

impl ClockStorm {
    fn new(seed: u64, canary: Option<Canary>) -> ClockStorm {
        let mut random = Random::new(seed);
        let align = *random.pick(&["wall", "wall", "start", "interval"]);
        let window_s = *random.pick(&[1, 2, 10, 60]);
        let plan = plan(align, window_s);
        let accounts = Accounts::default().carried_to(&plan);
        let now = start(random.below(window_s * 1000) as i64);
        let mut keeping = Keeping::new(random.next(), None);
        let mut turn = turn_of(Shard::new(&plan, &accounts, seed, now), &keeping);
        keeping.begin(&plan, &mut turn, now);
        let outlet = Outlet::new(&plan.outputs[0], accounts.output(OutputId(0)), None, (seed, None), now);
        ClockStorm {
            random,
            plan,
            accounts,
            turn,
            exchange: Exchange::new(1, 1),
            outlets: vec![outlet],
            acks: Acks::default(),
            given: Vec::new(),
            keeping,
            now,
            offset_ns: 0,
            offset_at_start_ns: 0,
            window_ns: window_s * SECOND_NS,
            ledger: Ledger::new(align, window_s),
            canary,
            calm: ClockCalm::default(),
            story: vec![format!("{align}, windows of {window_s} s")],
        }
    }

    fn story_text(&self) -> String {
        self.story[self.story.len().saturating_sub(40)..].join("\n")
    }

    fn tell(&mut self, what: String) {
        let right_s = self.right_ns() as f64 / 1e9;
        self.story.push(format!("{right_s:.3} off by {:.3} s: {what}", self.offset_ns as f64 / 1e9));
    }

    /// The right time.
    fn right_ns(&self) -> u64 {
        (i128::from(self.now.wall_ns) - self.offset_ns) as u64
    }

    /// The time that the process sees.
    fn seen(&self) -> Now {
        if self.canary != Some(Canary::ClockStepIgnored) {
            return self.now;
        }
        Now { wall_ns: (i128::from(self.right_ns()) + self.offset_at_start_ns) as u64, ..self.now }
    }

    fn step(&mut self) -> Result<(), String> {
        match self.random.below(100) {
            0..50 => {
                let windows = self.random.between(1, 5);
                self.pass(windows * self.window_ns)
            }
            50..65 => {
                let ns = self.random.below(3 * self.window_ns);
                self.pass(ns)
            }
            65..85 => {
                self.set_clock();
                Ok(())
            }
            85..90 => self.stop(),
            90..95 => self.kill(),
            _ => self.replace(),
        }
    }

    /// Sets the wall clock right, or wrong by a random amount.
    fn set_clock(&mut self) {
        let window_s = (self.window_ns / SECOND_NS) as i64;
        let to_ns = if self.offset_ns != 0 && self.random.chance(60) {
            0
        } else {
            let away_s = *self.random.pick(&[
                1,
                window_s / 2,
                window_s,
                2 * window_s,
                3 * window_s,
                10 * window_s,
                20 * window_s,
                3600,
                DAY_S,
                365 * DAY_S,
            ]);
            let away_ns =
                i128::from(away_s) * i128::from(SECOND_NS) + i128::from(self.random.below(2000) * MS_NS);
            if self.random.chance(50) { away_ns } else { -away_ns }
        };
        self.now.wall_ns = (i128::from(self.right_ns()) + to_ns) as u64;
        self.offset_ns = to_ns;
        self.calm.steps += 1;
        let counted = self.figures().mislabelled;
        self.ledger.clock_was_set(to_ns, counted);
        self.tell("the clock was set".to_owned());
    }

    fn send(&mut self) {
        let samples = self.random.between(1, 9);
        let packet = "hits:1|c\n".repeat(samples as usize);
        let mut intake = self.turn.shard.intakes(&self.plan, SourceId(0), &self.accounts).make();
        let mut scratch = Scratch::default();
        let spans = [Span::new(0, packet.len())];
        let now = self.seen();
        let batch = intake.datagrams(packet.as_bytes(), &spans, now, &mut scratch);
        self.turn.shard.push(batch, now, &mut self.turn.routed);
        self.ledger.sent += samples;
        self.calm.sent += samples;
    }

    /// Lets time pass and sends samples.
    fn pass(&mut self, ns: u64) -> Result<(), String> {
        let end_ns = self.now.mono_ns + ns;
        let mut turns = 0;
        while self.now.mono_ns < end_ns {
            turns = if self.turn()? { 0 } else { turns + 1 };
            let next_ns = self.turn.due_ns(self.now).min(self.keeping.due_ns()).min(end_ns);
            let next_ns = next_ns.max(self.now.mono_ns);
            turns = if next_ns > self.now.mono_ns { 0 } else { turns };
            if turns > TURNS_MAX {
                return Err("the shard is in an endless loop".to_owned());
            }
            self.now = self.now.plus_ns(next_ns - self.now.mono_ns);
            if self.random.chance(30) {
                self.send();
            }
        }
        self.turn().map(drop)
    }

    /// Does the work that is due. True when a window was flushed.
    fn turn(&mut self) -> Result<bool, String> {
        let now = self.seen();
        loop {
            let (turn, mut host, exchange) = self.parts(now);
            turn.run(exchange, &mut host, now);
            if !self.turn.continues(now) {
                break;
            }
        }
        let flushed = self.take(false)?;
        self.ledger.check_counted(self.figures().mislabelled)?;
        self.keeping.turn(0, now);
        self.note_events();
        Ok(flushed)
    }

    fn parts(&mut self, now: Now) -> (&mut Turn, SimHost<'_>, &Exchange) {
        let ClockStorm { turn, outlets, acks, given, keeping, exchange, .. } = self;
        (turn, SimHost::new(outlets, Some(given), acks, Some(keeping), now), exchange)
    }

    fn note_events(&mut self) {
        for (_, event) in std::mem::take(&mut self.keeping.events) {
            match event {
                Event::Begun { number, .. } => self.ledger.save_begins(number),
                Event::Whole { number, .. } => self.ledger.save_is_whole(number),
                Event::Noted => self.ledger.is_noted(),
                Event::Flushed { .. } | Event::Removed { .. } => {}
            }
        }
    }

    /// Reads the flushed lines. `early`: before the window's end.
    fn take(&mut self, early: bool) -> Result<bool, String> {
        let mut any = false;
        for Given { block, .. } in std::mem::take(&mut self.given) {
            for line in String::from_utf8_lossy(&block.bytes).lines() {
                let Some(rest) = line.strip_prefix("stats_counts.hits ") else { continue };
                let (value, label) = rest.split_once(' ').ok_or("a line without a time")?;
                let value: f64 = value.parse().map_err(|_| format!("no value: {line}"))?;
                let label_s: u64 = label.parse().map_err(|_| format!("no time: {line}"))?;
                self.tell(format!("label {label_s}, {value}{}", if early { ", early" } else { "" }));
                self.calm.windows += 1;
                any = true;
                let right_ns = self.right_ns();
                self.ledger.flushed(label_s, value as u64, (right_ns, self.now.wall_ns), early)?;
            }
        }
        Ok(any)
    }

    fn figures(&self) -> ClockFigures {
        self.turn.shard.figures().first().map(|figures| figures.figures.clock).unwrap_or_default()
    }

    /// Stops, kills or replaces the process, with a random pause.
    fn be_away(&mut self) {
        let figures = self.figures();
        self.calm.mislabelled += figures.mislabelled;
        self.calm.dropped += figures.labels_dropped;
        self.calm.restarts += 1;
        let windows = *self.random.pick(&[0, 0, 1, 3, 30]);
        let away_ns = windows * self.window_ns + self.random.below(self.window_ns);
        self.now = self.now.plus_ns(away_ns);
        if self.random.chance(25) {
            self.set_clock();
        }
    }

    fn begin(&mut self) {
        self.offset_at_start_ns = self.offset_ns;
        self.accounts = Accounts::default().carried_to(&self.plan);
        let now = self.seen();
        let shard = Shard::new(&self.plan, &self.accounts, self.random.next(), now);
        self.turn = turn_of(shard, &self.keeping);
        self.keeping.begin(&self.plan, &mut self.turn, now);
        self.ledger.has_restarted(self.now.wall_ns);
        self.tell("a process begins".to_owned());
    }

    /// SIGTERM, then a start.
    fn stop(&mut self) -> Result<(), String> {
        self.stop_only()?;
        self.be_away();
        self.begin();
        Ok(())
    }

    fn stop_only(&mut self) -> Result<(), String> {
        self.turn()?;
        let now = self.seen();
        let (turn, mut host, _) = self.parts(now);
        let pieces = turn.stop(&mut host, now, u64::MAX);
        self.take(true)?;
        self.keeping.stop(pieces, 0, now);
        self.note_events();
        self.ledger.was_stopped();
        self.tell("stopped".to_owned());
        Ok(())
    }

    /// `kill -9`, then a start.
    fn kill(&mut self) -> Result<(), String> {
        self.turn()?;
        self.keeping.die(false);
        self.ledger.was_killed();
        self.tell("killed".to_owned());
        self.be_away();
        self.begin();
        Ok(())
    }

    /// A hot restart.
    fn replace(&mut self) -> Result<(), String> {
        self.turn()?;
        let now = self.seen();
        let Turn { shard, routed, .. } = &mut self.turn;
        let states = shard.export(&Kept::of(&self.plan), self.random.next(), now, routed);
        let (turn, mut host, _) = self.parts(now);
        turn.append(host.outputs(), now);
        self.take(false)?;
        self.calm.restarts += 1;
        let figures = self.figures();
        self.calm.mislabelled += figures.mislabelled;
        self.calm.dropped += figures.labels_dropped;
        self.accounts = Accounts::default().carried_to(&self.plan);
        self.offset_at_start_ns = self.offset_ns;
        let now = self.seen();
        let shard = Shard::new(&self.plan, &self.accounts, self.random.next(), now);
        self.turn = turn_of(shard, &self.keeping);
        self.keeping.go_on(&self.plan, &mut self.turn, &states, now);
        self.note_events();
        self.ledger.has_restarted(self.now.wall_ns);
        self.tell("replaced".to_owned());
        Ok(())
    }

    /// Sets the clock right for the rest of the run. All samples must be flushed, except those that may be missing.
    fn end(&mut self) -> Result<(), String> {
        self.now.wall_ns = self.right_ns();
        if self.offset_ns != 0 {
            let counted = self.figures().mislabelled;
            self.ledger.clock_was_set(0, counted);
        }
        self.offset_ns = 0;
        self.tell("the clock is right, and stays so".to_owned());
        self.pass(25 * self.window_ns)?;
        self.stop_only()?;
        let figures = self.figures();
        self.calm.mislabelled += figures.mislabelled;
        self.calm.dropped += figures.labels_dropped;
        self.ledger.end()
    }
}

#[test]
fn storms_with_clock_steps_pass_all_checks() {
    for seed in 0..40 {
        if let Err(found) = clock_storm(seed) {
            panic!("{found}");
        }
    }
}

#[test]
fn a_process_that_ignores_clock_steps_is_found() {
    let canary = Canary::ClockStepIgnored;
    let found = (0..20).find_map(|seed| clock_storm_with(seed, Some(canary)).err());
    let found = found.expect("a known bug");
    assert!(found.message.contains(canary.finding()), "{found}");
}
