//! A seeded run of a Riemann config whose process is stopped, killed, replaced and reloaded, on a disk that is full or fails now and then.
//!
//! Path of an event: [`StreamStorm::send`] -> intake -> shard -> streams -> the index, which [`StreamStorm::index`] asks as a client does.
//! Checkpoints are those of other storms (`world::keeping`). The checks: the index is always that of a run of the first so many events,
//! with nothing lost or doubled in counters, windows, forks and memories of changes; a stop, a hot restart and a reload lose none; a kill
//! and a power loss lose no event that came before the last whole checkpoint. Then the client goes on with the event after these, so that
//! what the streams remember besides the index shows in what comes next.
//!
//! Its seeds are separate from those of other storms. Not here: queues, senders (`storm`), the wall clock (`clock_storm`), sockets (F19 of
//! the fault bench).

mod ledger;

use std::sync::Arc;

use config::plan::Plan;
use config::streams::{attach, evaluate, unloaded};
use model::{EventTime, EventsBuilder, Now, NumberRef, OutputId, SECOND_NS, SourceId, Span, TextField};
use pipeline::{Accounts, Acks, Exchange, Host, Kept, Scratch, Shard, Turn, TurnLimits, merge_plans};
use streams::query::Query;
use streams::riemann::files::Reader;

use self::ledger::{Event, Ledger};
use crate::random::Random;
use crate::storm::Found;
use crate::world::canary::Canary;
use crate::world::host::SimHost;
use crate::world::keeping::{self, Keeping};
use crate::world::outlet::Outlet;
use crate::world::start;

/// Steps of one run.
const STEPS: usize = 100;

/// Times that events are sent in a step, at most.
const SENDS_MAX: usize = 12;

/// After this many turns without progress of time, the shard is in an endless loop.
const TURNS_MAX: usize = 1000;

const MS_NS: u64 = 1_000_000;

/// The config; `BEFORE` and `AFTER` are streams that reloads change.
const STREAMS: &str = "
(instrumentation {:enabled? false})
(def i (index))
(defn as [service & children] (apply smap (fn [e] {:host \"storm\" :service (if (fn? service) (service e) service)
                                                   :metric (:metric e) :time (:time e) :ttl 1e12}) children))
BEFORE
(streams
  (counter (as \"sum\" i))
  (by :service (by :host (counter (as (fn [e] (str \"fork-\" (:service e))) i))))
  (changed-state {:init \"ok\"} (with :metric 1 (counter (as \"changes\" i))))
  (moving-event-window 5 (combine folds/sum (as \"last-five\" i)))
  (fixed-event-window 10 (combine folds/sum (as \"ten\" i)))
  (fixed-time-window 1 (combine folds/sum (as \"second\" i))))
AFTER";

/// Streams that a reload adds before and after the others, or removes. None has the form of one of the others:
/// only their order distinguishes streams of one form.
const OTHERS: &[&str] =
    &["", "(streams (rate 5 prn))", "(streams (by :state (throttle 3 5 (with :state \"seen\" prn))))"];

/// The figures of one run or several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamCalm {
    /// Events that were sent; those after a kill that were sent again count twice.
    pub sent: u64,
    /// Times that the index was compared.
    pub compared: u64,
    /// Complete checkpoints.
    pub checkpoints: u64,
    /// Kills and losses of power.
    pub kills: u64,
    /// Stops and hot restarts.
    pub restarts: u64,
    /// Reloads.
    pub reloads: u64,
    /// Events that kills lost, after the last checkpoint.
    pub lost: u64,
}

impl StreamCalm {
    /// Adds the figures of another run.
    pub fn add(&mut self, other: &StreamCalm) {
        self.sent += other.sent;
        self.compared += other.compared;
        self.checkpoints += other.checkpoints;
        self.kills += other.kills;
        self.restarts += other.restarts;
        self.reloads += other.reloads;
        self.lost += other.lost;
    }
}

/// One run.
///
/// # Errors
/// The first failed check.
pub fn stream_storm(seed: u64) -> Result<StreamCalm, Found> {
    stream_storm_with(seed, None)
}

/// The same with a known bug.
///
/// # Errors
/// As above.
pub fn stream_storm_with(seed: u64, canary: Option<Canary>) -> Result<StreamCalm, Found> {
    let mut storm = StreamStorm::new(seed, canary);
    let mut at = 0;
    let mut all = || -> Result<(), String> {
        while at < STEPS {
            storm.step()?;
            at += 1;
        }
        storm.stop()
    };
    match all() {
        Ok(()) => Ok(storm.calm),
        Err(message) => Err(Found { seed, step: at, message: format!("{message}\n{}", storm.story_text()) }),
    }
}

/// A config in memory.
struct Text(String);

impl Reader for Text {
    fn read_file(&mut self, _: &str) -> Result<String, String> {
        Ok(self.0.clone())
    }

    fn files_below(&mut self, _: &str) -> Result<Option<Vec<String>>, String> {
        Ok(None)
    }

    fn environment(&mut self, _: &str) -> Option<String> {
        None
    }

    fn host_name(&mut self) -> String {
        "storm".to_owned()
    }
}

/// A plan with the config, and these streams around it.
fn plan(checkpoint_ms: u64, before: &str, after: &str, now: Now) -> Plan {
    let text = format!(
        "[sources.s]\ntype = \"riemann\"\nlisten = [\"udp://10.0.0.1:5555\"]\n\
         [transforms.t]\ntype = \"streams\"\nfrom = [\"s\"]\nfile = \"riemann.config\"\ncheckpoint = \"{checkpoint_ms}ms\"\n\
         [outputs.o]\ntype = \"event_file\"\nfrom = [\"s\"]\npath = \"events\"\n"
    );
    let source = config::diagnostic::Source { name: "storm.toml", text: &text };
    let mut plan = config::check(source, config::Format::Toml).0.expect("the configuration is good");
    let streams = STREAMS.replace("BEFORE", before).replace("AFTER", after);
    let ids: Vec<_> = unloaded(&plan).into_iter().map(|(id, _)| id).collect();
    for id in ids {
        let now_us = (now.wall_ns / 1_000) as i64;
        let evaluated = evaluate("riemann.config", Box::new(Text(streams.clone())), now_us, 1);
        let wrong = attach(&mut plan, id, &evaluated);
        assert!(wrong.is_empty() && evaluated.declared.is_some(), "{wrong:?} {:?}", evaluated.said);
    }
    plan
}

fn turn_of(shard: Shard, keeping: &Keeping) -> Turn {
    let limits = TurnLimits { save_series: keeping.slice, ..TurnLimits::default() };
    Turn::new(shard, limits)
}

struct StreamStorm {
    random: Random,
    plan: Plan,
    checkpoint_ms: u64,
    accounts: Accounts,
    turn: Turn,
    exchange: Exchange,
    /// A file of events, which is never written: its blocks are of no interest.
    outlets: Vec<Outlet>,
    acks: Acks,
    keeping: Keeping,
    now: Now,
    ledger: Ledger,
    canary: Option<Canary>,
    calm: StreamCalm,
    /// The last steps, for the failure message.
    story: Vec<String>,
}

impl StreamStorm {
    fn new(seed: u64, canary: Option<Canary>) -> StreamStorm {
        let mut random = Random::new(seed);
        let checkpoint_ms = *random.pick(&[100, 1_000, 5_000]);
        let services = *random.pick(&[1, 3, 20, 60]);
        let now = start(random.below(5_000) as i64);
        let plan = plan(checkpoint_ms, "", "", now);
        let accounts = Accounts::default().carried_to(&plan);
        let mut keeping = Keeping::new(random.next(), canary);
        let mut turn = turn_of(Shard::new(&plan, &accounts, seed, now), &keeping);
        keeping.begin(&plan, &mut turn, now);
        let outlet = Outlet::new(&plan.outputs[0], accounts.output(OutputId(0)), None, (seed, None), now);
        StreamStorm {
            random,
            plan,
            checkpoint_ms,
            accounts,
            turn,
            exchange: Exchange::new(1, 1),
            outlets: vec![outlet],
            acks: Acks::default(),
            keeping,
            now,
            ledger: Ledger::new(services),
            canary,
            calm: StreamCalm::default(),
            story: vec![format!("{services} services, checkpoints every {checkpoint_ms} ms")],
        }
    }

    fn story_text(&self) -> String {
        self.story[self.story.len().saturating_sub(40)..].join("\n")
    }

    fn tell(&mut self, what: String) {
        let sent = self.ledger.sent;
        self.story.push(format!("{:.3}, {sent} events: {what}", self.now.mono_ns as f64 / 1e9));
    }

    fn step(&mut self) -> Result<(), String> {
        match self.random.below(100) {
            0..55 => {
                let ns = self.random.below(3 * self.checkpoint_ms * MS_NS);
                self.pass(ns)
            }
            55..70 => self.reload(),
            70..78 => self.kill(),
            78..84 => self.stop(),
            84..90 => self.replace(),
            _ => {
                self.disk_fails();
                Ok(())
            }
        }
    }

    /// Sends some events, a datagram each.
    fn send(&mut self) {
        let mut intake = self.turn.shard.intakes(&self.plan, SourceId(0), &self.accounts).make();
        let mut scratch = Scratch::default();
        for _ in 0..self.random.between(1, 8) {
            let message = message(&self.ledger.next());
            let spans = [Span::new(0, message.len())];
            let batch = intake.datagrams(&message, &spans, self.now, &mut scratch);
            self.turn.shard.push(batch, self.now, &mut self.turn.routed);
            self.calm.sent += 1;
        }
    }

    /// Lets time pass, and sends events meanwhile.
    fn pass(&mut self, ns: u64) -> Result<(), String> {
        let end_ns = self.now.mono_ns + ns;
        let (mut turns, mut sends) = (0, 0);
        while self.now.mono_ns < end_ns {
            self.turn();
            let next_ns = self.turn.due_ns(self.now).min(self.keeping.due_ns()).min(end_ns);
            let next_ns = next_ns.max(self.now.mono_ns);
            turns = if next_ns > self.now.mono_ns { 0 } else { turns + 1 };
            if turns > TURNS_MAX {
                return Err("the shard is in an endless loop".to_owned());
            }
            self.now = self.now.plus_ns(next_ns - self.now.mono_ns);
            if sends < SENDS_MAX && self.random.chance(40) {
                self.send();
                sends += 1;
            }
        }
        self.turn();
        self.is_exact()
    }

    /// Does the work that is due.
    fn turn(&mut self) {
        let now = self.now;
        loop {
            let (turn, mut host, exchange) = self.parts(now);
            turn.run(exchange, &mut host, now);
            if !self.turn.continues(now) {
                break;
            }
        }
        self.keeping.turn(0, now);
        self.note_events();
    }

    fn parts(&mut self, now: Now) -> (&mut Turn, SimHost<'_>, &Exchange) {
        let StreamStorm { turn, outlets, acks, keeping, exchange, .. } = self;
        (turn, SimHost::new(outlets, None, acks, Some(keeping), now), exchange)
    }

    fn note_events(&mut self) {
        for (_, event) in std::mem::take(&mut self.keeping.events) {
            match event {
                keeping::Event::Begun { number, .. } => self.ledger.save_begins(number),
                keeping::Event::Whole { number, .. } => {
                    self.calm.checkpoints += 1;
                    self.ledger.save_is_whole(number);
                }
                keeping::Event::Removed { .. } => self.ledger.is_removed(),
                keeping::Event::Flushed { .. } | keeping::Event::Noted => {}
            }
        }
    }

    /// Services and metrics in the index, sorted.
    fn index(&mut self) -> Result<Vec<(String, u64)>, String> {
        let mut query =
            self.turn.shard.query(SourceId(0), &Arc::new(Query::new("true").expect("it is a query")));
        while !query.run(&mut self.turn.shard) {}
        query.found().map_err(str::to_owned)?;
        let (mut all, mut text) = (Vec::new(), Vec::new());
        while query.next_json(&mut text) {
            let event: serde_json::Value =
                serde_json::from_slice(&text).map_err(|error| error.to_string())?;
            let service = event["service"].as_str().unwrap_or_default().to_owned();
            all.push((service, event["metric"].as_u64().ok_or("a metric is no number")?));
            text.clear();
        }
        all.sort();
        self.calm.compared += 1;
        Ok(all)
    }

    /// Nothing is lost.
    fn is_exact(&mut self) -> Result<(), String> {
        let index = self.index()?;
        self.ledger.check(&index)
    }

    /// A fault of the disk, or the end of all faults.
    fn disk_fails(&mut self) {
        let soon = self.random.below(4);
        let choice = self.random.below(5);
        self.keeping.disk.change_faults(|faults| match choice {
            0 => faults.write_error_in = Some(soon),
            1 => faults.sync_error_in = Some(soon),
            2 => faults.writes_fail = true,
            _ => (faults.writes_fail, faults.write_error_in, faults.sync_error_in) = (false, None, None),
        });
        self.tell(format!("the disk: {choice}"));
    }

    /// Other streams around those that are checked, and perhaps no other ones than before.
    fn reload(&mut self) -> Result<(), String> {
        let (before, after) = (*self.random.pick(OTHERS), *self.random.pick(OTHERS));
        let new = plan(self.checkpoint_ms, before, after, self.now);
        self.tell(format!("a reload: `{before}`, `{after}`"));
        self.plan = merge_plans(&self.plan, &new);
        self.accounts = self.accounts.carried_to(&self.plan);
        self.turn.reconfigure(&self.plan, &self.accounts, self.now);
        self.keeping.follow(&self.plan, &mut self.turn, self.now);
        self.calm.reloads += 1;
        self.turn();
        self.is_exact()
    }

    /// SIGTERM, then a start: all is there.
    fn stop(&mut self) -> Result<(), String> {
        self.turn();
        // A disk that fails may lose the last checkpoint: this is not about that.
        self.keeping.disk.change_faults(|faults| {
            (faults.writes_fail, faults.write_error_in, faults.sync_error_in) = (false, None, None);
        });
        let now = self.now;
        let (turn, mut host, _) = self.parts(now);
        let pieces = turn.stop(&mut host, now, u64::MAX);
        self.keeping.stop(pieces, 0, now);
        self.note_events();
        self.tell("stopped".to_owned());
        self.calm.restarts += 1;
        self.begin();
        let index = self.index()?;
        if self.canary.is_some() {
            return self.ledger.is_back(&index).map(drop);
        }
        self.ledger.check(&index)
    }

    /// `kill -9` or a power loss, perhaps in the middle of a write, then a start.
    fn kill(&mut self) -> Result<(), String> {
        if self.random.chance(50) {
            let writes = self.random.below(8);
            self.keeping.disk.change_faults(|faults| faults.crash_in = Some(writes));
            let ns = self.random.below(self.checkpoint_ms * MS_NS);
            self.pass(ns)?;
        }
        let power = self.random.chance(30);
        self.keeping.die(power);
        self.tell(format!("killed{}", if power { " with the machine" } else { "" }));
        self.calm.kills += 1;
        self.now = self.now.plus_ns(self.random.below(20 * SECOND_NS));
        self.begin();
        let index = self.index()?;
        self.calm.lost += self.ledger.is_back(&index)?;
        Ok(())
    }

    /// A new process of the same plan.
    fn begin(&mut self) {
        self.accounts = Accounts::default().carried_to(&self.plan);
        let shard = Shard::new(&self.plan, &self.accounts, self.random.next(), self.now);
        self.turn = turn_of(shard, &self.keeping);
        self.keeping.begin(&self.plan, &mut self.turn, self.now);
        self.ledger.begins();
    }

    /// A hot restart.
    fn replace(&mut self) -> Result<(), String> {
        self.turn();
        let now = self.now;
        let Turn { shard, routed, .. } = &mut self.turn;
        let states = shard.export(&Kept::of(&self.plan), self.random.next(), now, routed);
        let (turn, mut host, _) = self.parts(now);
        turn.append(host.outputs(), now);
        self.accounts = Accounts::default().carried_to(&self.plan);
        let shard = Shard::new(&self.plan, &self.accounts, self.random.next(), now);
        self.turn = turn_of(shard, &self.keeping);
        for state in &states {
            let restored = self.turn.shard.import_streams(&state.name, &state.bytes);
            let restored = restored.ok_or("a config is gone")?.map_err(|why| format!("{why:?}"))?;
            if restored.is_damaged {
                return Err("the state of a live process is damaged".to_owned());
            }
        }
        self.keeping.go_on(&self.plan, &mut self.turn, &[], now);
        self.ledger.begins();
        self.calm.restarts += 1;
        self.tell("replaced".to_owned());
        self.is_exact()
    }
}

/// The message of an event.
fn message(event: &Event) -> Vec<u8> {
    let mut events = EventsBuilder::default();
    let mut writer = events.event();
    writer.plain_text(TextField::Host, "h");
    writer.plain_text(TextField::Service, &format!("s{}", event.service));
    writer.plain_text(TextField::State, event.state);
    writer.metric(NumberRef::I64(event.number.cast_signed()));
    writer.time(EventTime::Seconds(event.time_s));
    writer.finish();
    let mut out = Vec::new();
    wire::riemann::request(None, events.view().iter(), &mut out);
    out
}

#[test]
fn storms_of_streams_pass_all_checks() {
    for seed in 0..3 {
        if let Err(found) = stream_storm(seed) {
            panic!("{found}");
        }
    }
}

#[test]
fn a_checkpoint_that_is_read_in_part_is_found() {
    let canary = Canary::StreamsForgotten;
    let found = (0..20).find_map(|seed| stream_storm_with(seed, Some(canary)).err());
    let found = found.expect("a known bug");
    assert!(found.message.contains(canary.finding()), "{found}");
}
